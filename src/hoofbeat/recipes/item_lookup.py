"""One item of a benchmark by its id, kept, rejected or failed, with where its evidence is in the documents."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.corpus import Corpus
from hoofbeat.errors import HoofbeatError, InputError
from hoofbeat.recipes.recipe_items import FailedItem, RecipeItem, RejectedItem
from hoofbeat.recipes.trial_findings import QuestionTrials, trials_of
from hoofbeat.records import Question, Span
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl

R = TypeVar("R")

BenchmarkItem = Question | RejectedItem | FailedItem | RecipeItem
"""What an id of a benchmark can name."""


class EvidencePlace(Struct, frozen=True, kw_only=True):
    """A span with the text around it in its document; `broken` says why that can't be shown.

    `more` says whether the document goes on after what is shown.
    """

    span: Span
    before: str = ""
    after: str = ""
    more: bool = False
    heading: str = ""
    broken: str = ""


def item_ids(benchmark: Benchmark) -> dict[str, tuple[str, ...]]:
    """The ids of the questions, and of what was rejected and failed."""
    artefact = benchmark.artefact
    return {
        "questions": tuple(question.id for question in benchmark.questions),
        "rejected": tuple(each.id for each in _rows(artefact, "rejected.jsonl", RejectedItem)),
        "failed": tuple(each.id for each in _rows(artefact, "failed.jsonl", FailedItem)),
    }


def find_item(benchmark: Benchmark, id: str) -> BenchmarkItem:
    """The item with this id: a question of the edition, else what became of the candidate."""
    artefact = benchmark.artefact
    every: Iterable[Iterable[BenchmarkItem]] = (
        benchmark.questions,
        _rows(artefact, "rejected.jsonl", RejectedItem),
        _rows(artefact, "failed.jsonl", FailedItem),
        _rows(artefact, "items.jsonl", RecipeItem),
    )
    seen: list[str] = []
    for rows in every:
        for row in rows:
            if row.id == id:
                return row
            seen.append(row.id)
    close = difflib.get_close_matches(id, dict.fromkeys(seen), n=3, cutoff=0.5)
    look = f"look for it: {shlex.join(['hoofbeat', 'show', str(artefact.path)])}" if seen else "the benchmark is empty"
    raise InputError(
        f"no item {id} in this benchmark",
        where=str(artefact.path),
        fix=f"the closest ids are {', '.join(close)}" if close else look,
    )


def question_trials(artefact: Artefact, id: str) -> QuestionTrials | None:
    """What the trials of a question found, where its recipe tried it."""
    item = next((row for row in _rows(artefact, "items.jsonl", RecipeItem) if row.id == id), None)
    return trials_of(item) if item is not None and item.get("trials") else None


def item_spans(item: BenchmarkItem) -> Sequence[Span]:
    """The evidence of an item."""
    if isinstance(item, RejectedItem):
        return (item.span,) if item.span else ()
    return item.evidence if isinstance(item, Question | RecipeItem) else ()


class EvidencePlaces:
    """Where spans are in the documents of the corpus, with `around` characters of context.

    Without `given` the corpus is looked for beside the benchmark, and one that is missing is no error.
    """

    def __init__(self, artefact: Artefact, given: Path | None, around: int) -> None:
        self._around = around
        self._corpus: Corpus | None = None
        self._why = ""
        try:
            self._corpus = find_corpus(given, artefact)
        except HoofbeatError as err:
            if given is not None:
                raise
            self._why = f"{err.what}: {err.fix}" if err.fix else err.what

    def place(self, span: Span) -> EvidencePlace:
        """The span with its surroundings, or why they can't be shown."""
        if self._corpus is None:
            return EvidencePlace(span=span, broken=self._why)
        try:
            document = self._corpus.get(span.document)
        except InputError as err:
            return EvidencePlace(span=span, broken=err.what)
        if document.text[span.start : span.end] != span.quote:
            return EvidencePlace(
                span=span, broken="the document has another text there: is this the corpus of the benchmark?"
            )
        heading = next((s.heading for s in reversed(document.sections) if s.start <= span.start), "")
        before = document.text[max(0, span.start - self._around) : span.start]
        end = span.end + self._around
        more = end < len(document.text)
        return EvidencePlace(span=span, before=before, after=document.text[span.end : end], more=more, heading=heading)


def _rows(artefact: Artefact, name: str, kind: type[R]) -> Iterator[R]:
    return read_jsonl(artefact.file(name), kind) if artefact.has(name) else iter(())
