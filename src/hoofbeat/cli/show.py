"""`hoofbeat show`: one question, one rejected candidate or one document, with the evidence marked in its source.

What documents and models wrote goes to the terminal only after its control characters are made harmless. Where nothing
can be coloured, evidence stands between » and «.
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
from hoofbeat.cli.audit_show import show_audit
from hoofbeat.cli.console import Screen
from hoofbeat.cli.corpus_show import show_command
from hoofbeat.cli.session import json_option
from hoofbeat.corpus import Corpus
from hoofbeat.facets import facet_values
from hoofbeat.recipes.item_lookup import (
    BenchmarkItem,
    EvidencePlace,
    EvidencePlaces,
    find_item,
    item_ids,
    item_spans,
)
from hoofbeat.recipes.recipe_items import FailedItem, RecipeItem, RejectedItem
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Cost, Counts, open_artefact
from hoofbeat.text import for_terminal

_FIRST = 10
_MARK = "black on yellow"
_LONGEST_VALUE = 1_500


@click.command("show")
@click.argument("artefact_path", metavar="ARTEFACT", type=click.Path(path_type=Path))
@click.argument("id", metavar="[ID]", required=False)
@click.option("--edition", default="", help="Another edition of a benchmark's questions.")
@click.option("--corpus", "corpus_path", type=click.Path(path_type=Path), help="Corpus, if it does not lie beside it.")
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
    """Show one item of a benchmark (kept, rejected or failed) with its evidence, one document of a corpus, or one
    question of an audit (with ID/SOURCE: what that source was shown, and how it was found).

    Without ID: how many there are, and the first of them.
    """
    artefact = open_artefact(artefact_path, ("benchmark", "corpus", "audit"))
    if artefact.manifest.kind == "audit":
        show_audit(Audit(artefact), id, as_json=as_json)
        return
    if artefact.manifest.kind == "corpus":
        if id is not None:
            context.invoke(
                show_command, corpus_path=artefact_path, document_id=id, words=(), vocabularies=(), as_json=as_json
            )
        else:
            _Shown(artefact, as_json).listing({"documents": Corpus(artefact).ids()})
        return
    benchmark = Benchmark(artefact, edition)
    shown = _Shown(artefact, as_json)
    if id is None:
        shown.listing(item_ids(benchmark), benchmark.editions())
        return
    places = EvidencePlaces(artefact, corpus_path, around)
    shown.one(find_item(benchmark, id), places)


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
            self._emit({"numbers": {name: len(listed) for name, listed in ids.items()}, "first": first})
            return
        self._line(self._artefact.manifest.title or self._artefact.path.name, "bold")
        for name, listed in ids.items():
            more = ", ..." if len(listed) > _FIRST else ""
            told = f": {', '.join(listed[:_FIRST])}{more}" if listed else ""
            self._line(f"{len(listed)} {name}{told}")
        if editions:
            self._line(f"other editions: {', '.join(editions)}")
        first_id = next((listed[0] for listed in ids.values() if listed), "ID")
        Screen(as_json=False).say(f"next: {shlex.join(['hoofbeat', 'show', str(self._artefact.path), first_id])}")

    def one(self, row: BenchmarkItem, evidence: EvidencePlaces) -> None:
        """One item with its evidence."""
        places = [evidence.place(span) for span in item_spans(row)]
        if self._as_json:
            state = {Question: "question", RejectedItem: "rejected", FailedItem: "failed", RecipeItem: "item"}[
                type(row)
            ]
            self._emit({"state": state, "item": row, "evidence": places})
            return
        if isinstance(row, Question):
            self._question(row)
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
            right = option == question.answer
            self._line(f"  {chr(65 + number % 26)}. {option}{'  (answer)' if right else ''}", "green" if right else "")
        if not question.options:
            self._block("answer", question.answer or "(none)")
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
            self._line("went through every step; no question of this edition has its id", "dim")
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
            self._line(f"(shown without its surroundings: {place.broken})", "dim")
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

    def _emit(self, value: dict[str, object]) -> None:
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
