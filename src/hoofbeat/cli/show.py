"""`hoofbeat show`: one question, one rejected candidate or one document, with the evidence marked in its source.

Of an audit, it shows what each source says to one question, what it was shown and why, and how sources relate. What
documents and models wrote goes to the terminal only after its control characters are made harmless. Where nothing can
be coloured, evidence stands between » and «.
"""

from __future__ import annotations

import difflib
import shlex
import time
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.text import Text

from hoofbeat.audit import Audit
from hoofbeat.audit.pair_table import each_row
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.corpus_show import show_command
from hoofbeat.cli.session import json_option
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
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
from hoofbeat.recipes.trials import trial_lines
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.reports.tables import count_of
from hoofbeat.store import Artefact, Cost, Counts, open_artefact
from hoofbeat.text import for_terminal

_FIRST = 10


def show_audit(audit: Audit, id: str | None, *, as_json: bool) -> None:
    """Show the questions of an audit; one question (`ID`), or one answer with its evidence (`ID/SOURCE`)."""
    screen = Screen(as_json=as_json)
    if id is None:
        _listing(audit, screen, as_json)
        return
    name, source = _split(audit, id)
    question = next(question for question in audit.questions if question.id == name)
    answers = [
        answer for answer in audit.each_answer() if answer.question == name and (not source or answer.source == source)
    ]
    pairs = [pair for pair in _pairs(audit, name) if not source or source in (pair.a, pair.b)]
    if as_json:
        screen.emit({"artefact": str(audit.artefact.path), "question": question, "answers": answers, "pairs": pairs})
        return
    _Page(audit.names).question(question, answers, pairs, whole=bool(source))
    if not source and answers:
        words = ["hoofbeat", "show", str(audit.artefact.path), f"{name}/{answers[0].source}"]
        screen.say(f"next: {shlex.join(words)}")


def _listing(audit: Audit, screen: Screen, as_json: bool) -> None:
    ids = [question.id for question in audit.questions]
    if as_json:
        screen.emit({"artefact": str(audit.artefact.path), "numbers": {"questions": len(ids)}, "first": ids[:_FIRST]})
        return
    more = ", ..." if len(ids) > _FIRST else ""
    click.echo(
        for_terminal(
            f"{audit.artefact.manifest.title}\n{count_of(len(ids), 'question')}: {', '.join(ids[:_FIRST])}{more}"
        )
    )
    screen.say(f"next: {shlex.join(['hoofbeat', 'show', str(audit.artefact.path), *ids[:1]])}")


def _split(audit: Audit, id: str) -> tuple[str, str]:
    """The question, and the source where one is named."""
    questions = {question.id for question in audit.questions}
    if id in questions:
        return id, ""
    for source in audit.sources:
        name = id.removesuffix(f"/{source.id}")
        if name != id and name in questions:
            return name, source.id
    asked = next((name for name in questions if id.startswith(f"{name}/")), None)
    if asked is not None:
        sources = [source.id for source in audit.sources]
        close = difflib.get_close_matches(id.removeprefix(f"{asked}/"), sources, n=3, cutoff=0.3) or sources[:3]
        raise InputError(
            f"no source {id.removeprefix(f'{asked}/')} in this audit",
            where=str(audit.artefact.path),
            fix=f"name one of its {len(sources)} sources, such as {', '.join(close)}",
        )
    close = difflib.get_close_matches(id.partition("/")[0], questions, n=3, cutoff=0.5)
    raise InputError(
        f"no question {id} in this audit",
        where=str(audit.artefact.path),
        fix=f"the closest are {', '.join(close)}" if close else "name a question, or question/source",
    )


def _pairs(audit: Audit, question: str) -> list[Comparison]:
    import polars

    return list(each_row(audit.frame().filter(polars.col("question").cast(polars.String) == question).collect()))


class _Page:
    """One question on the terminal."""

    def __init__(self, names: SourceNames) -> None:
        self._console = Console(highlight=False)
        self._names = names

    def question(self, question: Question, answers: list[Answer], pairs: list[Comparison], *, whole: bool) -> None:
        """The question, what sources say, and how they relate; `whole`: with evidence and trace."""
        self._line(f"{question.id}: {question.full_text}", "bold")
        for answer in answers:
            self._answer(answer, whole=whole)
        for pair in pairs:
            self._pair(pair)

    def _answer(self, answer: Answer, *, whole: bool) -> None:
        who = self._names[answer.source]
        self._line(f"\n{who.full}" + ("" if who.full == who.id else f" ({who.id})"), "bold")
        if answer.failure is not None:
            self._line(f"failed: {answer.failure.kind}: {answer.failure.message}", "red")
        else:
            self._line("silent" if answer.absent else answer.text)
        if answer.citations:
            self._line(f"cites: {', '.join(answer.citations)}", "dim")
        for warning in answer.warnings:
            self._line(f"doubtful: {warning}", "yellow")
        if not whole:
            return
        for step in answer.trace:
            self._line(f"{step.stage}, {step.what}: {step.text}", "dim")
            for found in step.found:
                self._line(f"    {found}", "dim")
        for passage in answer.evidence:
            self._line(f"shown: {passage.heading or 'untitled'} ({passage.id})", "bold")
            self._line(passage.text)
        for name in answer.dropped:
            self._line(f"did not fit: {name}", "yellow")

    def _pair(self, pair: Comparison) -> None:
        both = self._names.both(pair.a, pair.b)
        if pair.failure is not None:
            self._line(f"\n{both}: no label ({pair.failure.kind}: {pair.failure.message})", "red")
            return
        facts = "; ".join(part for part in (pair.significance, pair.topic, pair.basis) if part)
        self._line(f"\n{both}: {pair.label} ({facts})")
        if pair.reasoning:
            self._line(self._names.with_names(pair.reasoning, pair.a, pair.b), "dim")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(for_terminal(text), style=style), soft_wrap=not self._console.is_terminal)


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
        trials = question_trials(self._artefact, row.id) if isinstance(row, Question) else None
        if self._as_json:
            state = {Question: "question", RejectedItem: "rejected", FailedItem: "failed", RecipeItem: "item"}[
                type(row)
            ]
            tried = {"trials": msgspec.to_builtins(trials)} if trials else {}
            self._emit({"state": state, "item": row, "evidence": places, **tried})
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
