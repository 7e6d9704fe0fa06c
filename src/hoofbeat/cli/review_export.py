"""`hoofbeat review export`: labels in the format that their reader takes; of an exam, a run."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_group import find_study, words_without_database
from hoofbeat.cli.review_invite import database_option
from hoofbeat.cli.session import check_file, json_option
from hoofbeat.errors import InputError, UsageError
from hoofbeat.review.assignments import EXAM
from hoofbeat.review.exam_results import write_exam_run
from hoofbeat.review.label_export import LabelExport, export_labels, join_exports, write_export
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import check_target

_NEXT = {
    "criteria": "hoofbeat build RECIPE CORPUS --reviews {file}, or hoofbeat review apply {source} --labels {file}",
    "pairs": "hoofbeat audit validate {source} --labels {file}{more} --partial",
    "answers": "hoofbeat judge {source} --human {file} --aspect {form}",
    "errors": "hoofbeat report {source} --errors {file}{more}",
}
_SETTLED = {"pairs": "--adjudicated", "errors": "--errors"}


@click.command("export")
@click.argument("names", metavar="STUDY...", nargs=-1, required=True)
@database_option
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("labels.jsonl"), show_default=True,
              help="File to write, .jsonl or .csv; of an exam, the run's folder.")  # fmt: skip
@click.option("--each", is_flag=True, help="Everybody's own labels of every round, without what was settled.")
@click.option("--blind", is_flag=True, help="Reviewer 1, 2, … in place of names.")
@json_option
def command(names: tuple[str, ...], database: str, output: Path, each: bool, blind: bool, as_json: bool) -> None:
    """Write what people said in STUDY.

    Several studies of one artefact can go into one file. Beside the labels lies a file that says what they are of, and,
    of pairs and answers, one with what adjudicators settled.
    """
    screen = Screen(as_json=as_json)
    with ReviewStore.open(database) as store:
        studies = [find_study(store, name) for name in names]
        if any(study.form == EXAM for study in studies):
            _export_exam(screen, store, studies, output, blind)
            return
        export = join_exports([export_labels(store, study, each=each, blind=blind) for study in studies])
    check_file(output, ".csv" if output.suffix == ".csv" else ".jsonl")
    if not export.rows:
        raise InputError("nobody has finished a label yet", fix="look at it with: hoofbeat review status")
    written = write_export(export, output)
    if as_json:
        origin = export.origin
        told = {"study": origin.study, "format": origin.format, "source": origin.source, "people": origin.people}
        screen.emit(
            {**told, "rows": len(export.rows), "settled": len(export.adjudicated), "files": list(map(str, written))}
        )
        return
    click.echo(f"labels: {output} ({len(export.rows)} rows, {export.origin.people} people)")
    for path in written[1:]:
        screen.say(f"beside: {path}")
    screen.say(f"next: {_next(export, written)}")


def _next(export: LabelExport, written: list[Path]) -> str:
    format = export.origin.format
    more = f" {_SETTLED[format]} {written[1]}" if export.adjudicated and format in _SETTLED else ""
    words = _NEXT[format]
    return words.format(file=written[0], source=export.origin.source, form=export.origin.form, more=more)


def _export_exam(screen: Screen, store: ReviewStore, studies: list[Study], output: Path, blind: bool) -> None:
    if len(studies) != 1:
        raise UsageError("an exam is written by itself", fix="name one exam")
    target = Path("exam") if output == Path("labels.jsonl") else output
    if target.suffix in (".jsonl", ".csv"):
        raise UsageError("an exam becomes a run, which is a folder", where=str(target), fix="name a folder with -o")
    check_target(target.resolve(), "run")
    artefact = write_exam_run(store, studies[0], target, blind=blind, command=words_without_database())
    screen.finish(artefact, next_step=("hoofbeat", "report", target, "-o", "report"))
