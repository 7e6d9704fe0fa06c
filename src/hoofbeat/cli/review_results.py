"""`hoofbeat review status`, `export` and `apply`: how far studies are, their labels, and what follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.benchmarks.benchmark import KIND
from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_people import database_option, words_without_database
from hoofbeat.cli.session import check_file, json_option, output_option
from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import Interval
from hoofbeat.review.adjudication_queue import queue_of
from hoofbeat.review.apply_reviews import (
    NO_ORIGIN,
    ReviewOutcome,
    apply_labels,
    corpus_source,
    describe_differences,
    labels_to_apply,
    version_of,
    write_applied,
)
from hoofbeat.review.assignments import EXAM
from hoofbeat.review.exam_results import write_exam_run
from hoofbeat.review.label_export import LabelExport, export_labels, join_exports, write_export
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_rounds import INSPECTIONS, Rounds, rounds_of
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.reviewer_agreement import StudyAgreement, StudyProgress, agreement_of, study_progress
from hoofbeat.store import Artefact, check_target, open_artefact
from hoofbeat.text import duration


@click.command("status")
@click.argument("names", metavar="[STUDY]...", nargs=-1)
@database_option
@click.option("--blind", is_flag=True, help="Show Reviewer 1, 2, … instead of names.")
@json_option
def status_command(names: tuple[str, ...], database: str, blind: bool, as_json: bool) -> None:
    """Show the progress of each STUDY (default: all): labels per person, open conflicts, and agreement."""
    screen = Screen(as_json=as_json)
    with ReviewStore.open(database) as store:
        studies = [store.find_study(name) for name in names] or store.studies()
        told = [_Told(store, study, blind) for study in studies]
    if as_json:
        screen.emit({"studies": [each.data() for each in told]})
        return
    if not told:
        screen.say("There is no study yet. Start one with: hoofbeat review FOLDER")
    for each in told:
        each.show(screen)


class _Told:
    """The state of a study."""

    def __init__(self, store: ReviewStore, study: Study, blind: bool) -> None:
        self.study = study
        self.progress: StudyProgress = study_progress(store, study, names=not blind)
        self.blind = blind
        self.waiting = 0
        self.agreement: StudyAgreement | None = None
        self.rounds: Rounds | None = None
        if study.form != EXAM:
            items, labels = store.items(study.id), store.labels(study.id)
            self.waiting = sum(each.open for each in queue_of(store, study))
            people = {row.person for row in store.assignments(study.id)}
            self.agreement = agreement_of(study, items, labels, people=people)
            if study.form in INSPECTIONS:
                self.rounds = rounds_of(study, items, labels, store.decisions(study.id))

    def data(self) -> dict[str, object]:
        """As one JSON object."""
        rows = [
            {
                name: value
                for name, value in msgspec.structs.asdict(row).items()
                if not (self.blind and name == "person")
            }
            for row in self.progress.people
        ]
        progress = {**msgspec.structs.asdict(self.progress), "people": rows, "share": self.progress.share}
        return {
            "study": msgspec.to_builtins(self.study),
            "progress": msgspec.to_builtins(progress),
            "to be settled": self.waiting,
            "agreement": msgspec.to_builtins(self.agreement.fields) if self.agreement else [],
            "rounds": msgspec.to_builtins(self.rounds) if self.rounds else None,
        }

    def show(self, screen: Screen) -> None:
        """As tables."""
        study, progress = self.study, self.progress
        screen.title(f"{study.id}: {study.title}{' (closed)' if study.closed else ''}")
        share = f"{progress.share:.0%}" if progress.share is not None else "none assigned"
        screen.say(
            f"{progress.items} items of {study.source}; {progress.done} of {progress.assigned} labels done, "
            f"{progress.skipped} skipped ({share}); {progress.unassigned} items not assigned; "
            f"{self.waiting} conflicts to settle"
        )
        if progress.people:
            header = ("person", "assigned", "done", "skipped", "started", "median time")
            screen.table(
                header,
                [
                    [
                        row.name,
                        *map(str, (row.assigned, row.done, row.skipped, row.draft)),
                        duration(row.median_seconds) if row.median_seconds is not None else "-",
                    ]
                    for row in progress.people
                ],
            )
        for field in self.agreement.fields if self.agreement else ():
            if field.items:
                screen.say(
                    f"{field.title}: α {_figure(field.alpha.value, field.alpha.interval)}, {field.share:.0%} of pairs "
                    f"agree, {field.items} items. {field.words}"
                )
        if self.rounds and self.rounds.sample:
            told = f"{self.rounds.passed} of {self.rounds.sample} passed, at least {self.rounds.min_passed:.0%} needed"
            screen.say(f"round {len(self.rounds.rounds)}: {told} ({self.rounds.verdict})")


def _figure(value: float | None, interval: Interval | None) -> str:
    if value is None:
        return "not defined"
    return f"{value:.2f}" + (f" ({interval.low:.2f} to {interval.high:.2f}{interval.few_note})" if interval else "")


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
              help="File to write, .jsonl or .csv; for an exam, the folder of the run.")  # fmt: skip
@click.option("--each", is_flag=True, help="Every person's own labels of every round, without settled conflicts.")
@click.option("--blind", is_flag=True, help="Show Reviewer 1, 2, … instead of names.")
@json_option
def export_command(names: tuple[str, ...], database: str, output: Path, each: bool, blind: bool, as_json: bool) -> None:
    """Write the labels of STUDY.

    Several studies of the same folder can go into one file. Beside the labels, Hoofbeat writes a file that says what
    they are about and, for pairs and answers, a file with the adjudicators' decisions.
    """
    screen = Screen(as_json=as_json)
    with ReviewStore.open(database) as store:
        studies = [store.find_study(name) for name in names]
        if any(study.form == EXAM for study in studies):
            _export_exam(screen, store, studies, output, blind)
            return
        export = join_exports([export_labels(store, study, each=each, blind=blind) for study in studies])
        drafts = sum(len(store.labels(study.id, states=["draft"])) for study in studies)
    check_file(output, ".csv" if output.suffix == ".csv" else ".jsonl")
    written = write_export(export, output)
    if as_json:
        origin = export.origin
        told = {"study": origin.study, "format": origin.format, "source": origin.source, "people": origin.people}
        screen.emit(
            {
                **told,
                "rows": len(export.rows),
                "settled": len(export.adjudicated),
                "drafts left out": drafts,
                "files": list(map(str, written)),
            }
        )
        return
    labels = "label" if len(export.rows) == 1 else "labels"
    people = "person" if export.origin.people == 1 else "people"
    click.echo(f"Exported {len(export.rows):,} {labels} of {export.origin.people:,} {people} → {output}")
    if drafts:
        screen.line(f"left out: {drafts:,} {'draft' if drafts == 1 else 'drafts'}, not saved as done")
    for path in written[1:]:
        screen.line(f"also wrote: {path}")
    screen.line(f"next: {_next(export, written)}")


def _next(export: LabelExport, written: list[Path]) -> str:
    format = export.origin.format
    more = f" {_SETTLED[format]} {written[1]}" if export.adjudicated and format in _SETTLED else ""
    words = _NEXT[format]
    return words.format(file=written[0], source=export.origin.source, form=export.origin.form, more=more)


def _export_exam(screen: Screen, store: ReviewStore, studies: list[Study], output: Path, blind: bool) -> None:
    if len(studies) != 1:
        raise UsageError("an exam can't be exported together with other studies", fix="name one exam")
    target = Path("exam") if output == Path("labels.jsonl") else output
    if target.suffix in (".jsonl", ".csv"):
        raise UsageError(
            "an exam is exported as a run, which is a folder", where=str(target), fix="name a folder with -o"
        )
    check_target(target.resolve(), "run")
    artefact = write_exam_run(store, studies[0], target, blind=blind, command=words_without_database())
    screen.finish(artefact, next_step=("hoofbeat", "report", target, "-o", "report"))


@click.command("apply")
@click.argument("bench", type=click.Path(path_type=Path))
@database_option
@click.option("--study", "studies", multiple=True, help="Study whose decisions to apply. Repeat it for several.")
@click.option("--labels", "labels_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Labels in a JSONL or CSV file, instead of a study.")  # fmt: skip
@click.option("--judged", multiple=True, type=click.Path(path_type=Path),
              help="Judgments of relevance: documents that support an answer get a grade. Repeat it "
              "for several.")  # fmt: skip
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path),
              help="The corpus, if it is not beside the benchmark: words from a source are added from it.")  # fmt: skip
@output_option(None, help="Folder for the new benchmark.")
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@json_option
def apply_command(
    bench: Path,
    database: str,
    studies: tuple[str, ...],
    labels_path: Path | None,
    judged: tuple[Path, ...],
    corpus_path: Path | None,
    output: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Apply reviewers' decisions to BENCH: writes the next version of the benchmark and a list of changes.

    Questions that reviewers rejected, by the rules of their recipe, are removed. Where reviewers asked for it, options
    are dropped, words of the source added, answers accepted and supporting documents graded. BENCH is not changed.
    """
    screen = Screen(as_json=as_json)
    if output is None and not dry_run:
        raise UsageError(
            "no folder for the new benchmark", fix="name one with -o, or look at the changes first: --dry-run"
        )
    artefact = open_artefact(bench, KIND)
    if output is not None:
        check_target(output.resolve(), KIND)
        if output.resolve() == bench.resolve():
            raise UsageError("Not overwritten: this is the old benchmark", where=str(output), fix="name another folder")
    labels, origin = labels_to_apply(artefact, database=database, studies=studies, file=labels_path, judged=judged)
    if origin is None:
        screen.say(f"note: {NO_ORIGIN}")
    applied = apply_labels(
        artefact,
        labels,
        where=str(labels_path or ""),
        source=corpus_source(corpus_path),
        study=origin.study if origin else "",
    )
    if dry_run or output is None:
        _show(screen, artefact, applied)
        return
    made = write_applied(artefact, applied, labels, output, command=words_without_database(), origin=origin)
    for note in applied.notes:
        screen.say(f"note: {note}")
    screen.line(f"changes: {output / 'diff.md'}")
    more: dict[str, Any] = {"version": version_of(made.manifest), **_counts(applied)} if as_json else {}
    screen.finish(made, next_step=("hoofbeat", "show", output), **more)


def _counts(applied: ReviewOutcome) -> dict[str, object]:
    return {
        "dropped": len(applied.dropped),
        "changed": len(applied.changed),
        "waiting": len(applied.waits),
        "unlabelled": applied.unlabelled,
    }


def _show(screen: Screen, artefact: Artefact, applied: ReviewOutcome) -> None:
    if screen.as_json:
        kept = len(applied.questions[""])
        rows = msgspec.to_builtins(applied.differences)
        screen.emit({"dry_run": True, "kept": kept, **_counts(applied), "differences": rows})
        return
    click.echo(describe_differences(artefact, applied))
