"""`hoofbeat review apply`: what reviewers decided, carried out on a benchmark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from hoofbeat.benchmarks.benchmark import KIND
from hoofbeat.cli.console import Screen
from hoofbeat.cli.review_group import find_study, words_without_database
from hoofbeat.cli.review_invite import database_option
from hoofbeat.cli.session import json_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.recipes.review_tasks import ReviewLabel, read_labels
from hoofbeat.records import Document
from hoofbeat.review.apply_reviews import ReviewOutcome, apply_labels, describe_differences, version_of, write_applied
from hoofbeat.review.label_export import Origin, export_labels, join_exports, origin_of
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Artefact, check_target, open_artefact


@click.command("apply")
@click.argument("bench", type=click.Path(path_type=Path))
@database_option
@click.option("--study", "studies", multiple=True, help="Study whose decisions are applied; several may be given.")
@click.option("--labels", "labels_path", type=click.Path(path_type=Path), metavar="FILE",
              help="Labels in a file in place of a study, JSONL or CSV.")  # fmt: skip
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path),
              help="The corpus, where it does not lie beside: words of a source are added from it.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Folder for the new benchmark.")
@click.option("--dry-run", is_flag=True, help="Only print what would differ.")
@json_option
def command(
    bench: Path,
    database: str,
    studies: tuple[str, ...],
    labels_path: Path | None,
    corpus_path: Path | None,
    output: Path | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Carry out on BENCH what reviewers decided: a new benchmark of the next version, and what differs.

    Questions go that reviewers turned down by the rules of their recipe, options are dropped and words of the source
    added where they asked for it. BENCH itself is left as it is.
    """
    screen = Screen(as_json=as_json)
    if bool(studies) == bool(labels_path):
        raise UsageError("what is to be applied?", fix="name a study (--study) or a file of labels (--labels)")
    if output is None and not dry_run:
        raise UsageError("where is the new benchmark to go?", fix="name a folder with -o, or look first: --dry-run")
    artefact = open_artefact(bench, KIND)
    if output is not None:
        check_target(output.resolve(), KIND)
        if output.resolve() == bench.resolve():
            raise UsageError("the old benchmark is not overwritten", where=str(output), fix="name another folder")
    labels, origin = _labels(screen, artefact, database, studies, labels_path)
    source = _source(corpus_path) if corpus_path else None
    applied = apply_labels(artefact, labels, where=str(labels_path or ""), source=source)
    if dry_run or output is None:
        _show(screen, artefact, applied)
        return
    made = write_applied(
        artefact, applied, labels, output, command=words_without_database(), origin=_recorded(origin) if origin else {}
    )
    if applied.waits:
        screen.say(f"note: {len(applied.waits)} flagged questions wait for an expert's word, and stay for now")
    if applied.elsewhere:
        screen.say(f"note: {applied.elsewhere} labels are for items that are no questions here")
    screen.say(f"what differs: {output / 'diff.md'}")
    more: dict[str, Any] = {"version": version_of(made.manifest), **_counts(applied)} if as_json else {}
    screen.finish(made, next_step=("hoofbeat", "show", output), **more)


def _source(path: Path) -> Callable[[str], Document | None]:
    """The documents of a corpus by id."""
    corpus = Corpus.open(path)
    return lambda id: corpus.get(id) if id in corpus else None


def _labels(
    screen: Screen, artefact: Artefact, database: str, studies: tuple[str, ...], path: Path | None
) -> tuple[list[ReviewLabel], Origin | None]:
    """The labels, and where they come from; those of another version of the benchmark are refused."""
    if path is not None:
        origin = origin_of(path)
        if origin is None:
            screen.say("note: nothing beside the labels says which version they are of; only their items are checked")
        else:
            _check(artefact, origin)
        return read_labels(path), origin
    with ReviewStore.open(database) as store:
        export = join_exports([export_labels(store, find_study(store, name)) for name in studies])
    _check(artefact, export.origin)
    return [msgspec.convert(row, ReviewLabel) for row in export.rows], export.origin


def _check(artefact: Artefact, origin: Origin) -> None:
    if origin.format != "criteria":
        raise UsageError(
            f"labels of the form {origin.form} are not about questions of a benchmark",
            fix="export them, and give them to hoofbeat judge or hoofbeat audit validate",
        )
    if origin.source_sha256 != artefact.reference().sha256:
        raise UsageError(
            f"these labels are of another version of the benchmark ({origin.source}, {origin.source_sha256[:12]}; this "
            f"one is {artefact.reference().sha256[:12]})",
            where=str(artefact.path),
            fix="apply them to the version that was reviewed, or build again with --reviews",
        )


def _recorded(origin: Origin) -> dict[str, object]:
    return {"study": origin.study, "form": origin.form, "people": origin.people, "labels": origin.labels}


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
