"""`hoofbeat show`: any folder, or one item of it with the evidence marked in its source.

Without an ID, the first screen of a folder says what it is and what was found. What documents and models wrote goes to
the terminal only after its control characters are made harmless. Where nothing can be coloured, evidence is between
» and «.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.text import Text

from hoofbeat.audit import Audit
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.corpus_show import show_command
from hoofbeat.cli.session import json_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.caveats import caveats
from hoofbeat.recipes.item_lookup import (
    BenchmarkItem,
    EvidencePlace,
    EvidencePlaces,
    find_item,
    item_ids,
    item_spans,
    question_trials,
)
from hoofbeat.recipes.recipe_items import FailedItem, RecipeItem, RejectedItem
from hoofbeat.recipes.trial_findings import trial_lines
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Cost, Counts, open_artefact
from hoofbeat.text import for_terminal

_FIRST = 10


_MARK = "black on yellow"
_LONGEST_VALUE = 1_500


@click.command("show")
@click.argument("artefact_path", metavar="FOLDER", type=click.Path(path_type=Path))
@click.argument("id", metavar="[ID]", required=False)
@click.option("--edition", default="", help="Another edition of a benchmark's questions.")
@click.option(
    "--corpus", "corpus_path", type=click.Path(path_type=Path), help="The corpus, if it is not beside the benchmark."
)
@click.option(
    "--around", type=click.IntRange(0, 100_000), default=200, show_default=True, help="Characters of context."
)
@json_option
@click.pass_context
def command(
    context: click.Context,
    artefact_path: Path,
    id: str | None,
    edition: str,
    corpus_path: Path | None,
    around: int,
    as_json: bool,
) -> None:
    """Show what is in FOLDER and what was found; with ID, one item of it.

    FOLDER is any folder that Hoofbeat wrote, or a folder of such folders. ID is a question of a benchmark (kept,
    rejected or failed), a document of a corpus, a question of a run, of judgments or of rankings, or a question of an
    audit (ID/SOURCE: one answer, with the passages that the model saw).
    """
    from hoofbeat.store.folder_library import artefact_folders

    inside = artefact_folders(artefact_path)
    if inside and inside != [artefact_path]:
        _collection(artefact_path, inside, id, as_json)
        return
    artefact = open_artefact(artefact_path)
    kind = artefact.manifest.kind
    if kind == "audit":
        from hoofbeat.cli.audit_show import show_audit

        show_audit(Audit(artefact), id, as_json=as_json)
    elif kind == "corpus" and id is not None:
        context.invoke(
            show_command, corpus_path=artefact_path, document_id=id, words=(), vocabularies=(), as_json=as_json
        )
    elif kind == "corpus":
        _Shown(artefact, as_json).listing({"documents": Corpus(artefact).ids()})
    elif kind == "benchmark":
        benchmark, shown = Benchmark(artefact, edition), _Shown(artefact, as_json)
        if id is None:
            shown.listing(item_ids(benchmark), benchmark.editions())
        else:
            shown.one(find_item(benchmark, id), EvidencePlaces(artefact, corpus_path, around))
    elif id is not None:
        from hoofbeat.cli.answer_show import show_question

        show_question(artefact, id, as_json=as_json)
    else:
        _overview(artefact, as_json)


def _collection(root: Path, folders: Sequence[Path], id: str | None, as_json: bool) -> None:
    """A folder of folders."""
    from hoofbeat.cli.folder_overview import show_collection

    if id is not None:
        raise UsageError(
            "this folder holds several folders, so ID does not say which one is meant",
            where=str(root),
            fix=f"name one of them: {shlex.join(['hoofbeat', 'show', str(folders[0]), id])}",
        )
    if as_json:
        opened = [open_artefact(folder) for folder in folders]
        told = [
            {"path": str(each.path), "kind": each.manifest.kind, "title": each.manifest.title,
             "counts": msgspec.to_builtins(each.manifest.counts)}
            for each in opened
        ]  # fmt: skip
        Screen(as_json=True).emit({"artefact": str(root), "kind": "folders", "folders": told})
        return
    show_collection(Screen(as_json=False, on_stdout=True), root, folders)
    screen = Screen(as_json=False)
    screen.next("hoofbeat", "show", folders[0])
    screen.next("hoofbeat", "serve", root)


def _overview(artefact: Artefact, as_json: bool) -> None:
    from hoofbeat.cli.folder_overview import next_command, show_folder

    if as_json:
        warnings = caveats(artefact.manifest)
        told = {"warnings": warnings} if warnings else {}
        _Shown(artefact, as_json).emit({"metrics": artefact.manifest.metrics, **told})
        return
    show_folder(Screen(as_json=False, on_stdout=True), artefact)
    if words := next_command(artefact):
        Screen(as_json=False).next(*words)


class _Shown:
    """Items of an artefact on standard output: for people, or as one JSON object."""

    def __init__(self, artefact: Artefact, as_json: bool) -> None:
        self._artefact = artefact
        self._as_json = as_json
        self._began = time.monotonic()
        self._console = Console(highlight=False, markup=False, emoji=False)

    def listing(self, ids: dict[str, tuple[str, ...]], editions: Sequence[str] = ()) -> None:
        """How many there are of each, and the first ids."""
        if self._as_json:
            first = {name: listed[:_FIRST] for name, listed in ids.items()}
            self.emit({"numbers": {name: len(listed) for name, listed in ids.items()}, "first": first})
            return
        from hoofbeat.cli.folder_overview import show_folder

        page = Screen(as_json=False, on_stdout=True)
        show_folder(page, self._artefact)
        page.title("Items")
        for name, listed in ((name, listed) for name, listed in ids.items() if listed):
            more = f" and {len(listed) - _FIRST:,} more" if len(listed) > _FIRST else ""
            page.say(f"{len(listed):,} {name}: {', '.join(listed[:_FIRST])}{more}")
        if editions:
            page.say(f"other editions: {', '.join(editions)}")
        first_id = next((listed[0] for listed in ids.values() if listed), "ID")
        Screen(as_json=False).next("hoofbeat", "show", self._artefact.path, first_id)

    def one(self, row: BenchmarkItem, evidence: EvidencePlaces) -> None:
        """One item with its evidence."""
        places = [evidence.place(span) for span in item_spans(row)]
        trials = question_trials(self._artefact, row.id) if isinstance(row, Question) else None
        if self._as_json:
            state = {Question: "question", RejectedItem: "rejected", FailedItem: "failed", RecipeItem: "item"}[
                type(row)
            ]
            tried = {"trials": msgspec.to_builtins(trials)} if trials else {}
            self.emit({"state": state, "item": row, "evidence": places, **tried})
            return
        if isinstance(row, Question):
            self._question(row)
            for line in trial_lines(trials) if trials else ():
                self._line(f"trial: {line}", "dim")
        else:
            self._candidate(row)
        for number, place in enumerate(places, start=1):
            self._place(number, place)

    def _question(self, question: Question) -> None:
        self._line(question.id, "bold")
        if question.context:
            self._block("context", question.context)
        self._block("question", question.text)
        for number, option in enumerate(question.options):
            right = option in question.right_answers
            self._line(f"  {chr(65 + number % 26)}. {option}{'  (answer)' if right else ''}", "green" if right else "")
        if not question.options:
            self._block("answer", question.answer or "(none)")
        for each in question.accepted:
            who = ", ".join(each.by) + (f" in {each.study}" if each.study else "")
            note = f" ({each.note})" if each.note else ""
            self._line(f"also accepted{f' by {who}' if who else ''}: {each.text}{note}", "green")
        self._facts("images", question.images)
        self._facts("documents", question.documents)
        for name in question.facets:
            self._line(f"{name}: {'; '.join(facet_values(question.facets, name))}", "dim")
        self._lineage(question)

    def _candidate(self, row: RejectedItem | FailedItem | RecipeItem) -> None:
        self._line(row.id, "bold")
        if isinstance(row, RejectedItem):
            self._line(f"rejected at {row.step}: {row.reason}", "bold red")
            if row.details:
                self._block("details", row.details)
        elif isinstance(row, FailedItem):
            self._line(f"failed at {row.step}: {row.failure.kind}: {row.failure.message}", "bold red")
        else:
            self._line("passed every step, but this edition has no question with its id", "dim")
        self._facts("documents", row.documents)
        for name, value in row.values.items():
            text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
            self._block(name, text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]} ...")
        if isinstance(row, RecipeItem):
            self._lineage(row)

    def _lineage(self, row: Question | RecipeItem) -> None:
        for step in row.lineage:
            parts = [step.name, step.prompt, step.model, step.note]
            self._line(f"step: {' · '.join(part for part in parts if part)}", "dim")

    def _place(self, number: int, place: EvidencePlace) -> None:
        span = place.span
        where = f"{span.document}, characters {span.start} to {span.end}"
        self._console.print()
        self._line(f"evidence {number}: {where}{f', {place.heading}' if place.heading else ''}", "bold")
        if place.broken:
            self._line(f"(shown without its context: {place.broken})", "dim")
        opening = "..." if place.before and len(place.before) < span.start else ""
        marked = Text(f"{opening}{for_terminal(place.before)}")
        plain = not self._console.is_terminal
        marked.append(f"»{for_terminal(span.quote)}«" if plain else for_terminal(span.quote), style=_MARK)
        marked.append(f"{for_terminal(place.after)}{'...' if place.after and place.more else ''}")
        self._print(marked)

    def _block(self, name: str, text: str) -> None:
        self._line(f"{name}:", "bold")
        self._line(text)

    def _facts(self, name: str, values: Sequence[str]) -> None:
        if values:
            self._line(f"{name}: {', '.join(values)}", "dim")

    def _line(self, text: str, style: str = "") -> None:
        self._print(Text(for_terminal(text), style=style))

    def _print(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self._console.is_terminal)

    def emit(self, value: dict[str, object]) -> None:
        """One JSON object, with what every command's object has."""
        manifest = self._artefact.manifest
        frame = {
            "artefact": str(self._artefact.path),
            "kind": manifest.kind,
            "counts": msgspec.to_builtins(manifest.counts or Counts()),
            "metrics": {},
            "cost": msgspec.to_builtins(Cost()),
            "seconds": round(time.monotonic() - self._began, 3),
        }
        Screen(as_json=True).emit({**frame, **value})
