"""Aging: which questions of a benchmark rest on reports that have stopped being rare.

A benchmark of rare cases ages: reports are cited, and what was off guideline becomes known. The rarity filter asked of
newer citations says which source documents would no longer pass, with the counts the corpus was filtered by beside
those of today.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.benchmarks.benchmark import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.citations import Citations, load_citations
from hoofbeat.corpus.filters.rare import RarityLimits, rarity
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.records import Document, Question
from hoofbeat.text import whole_number

STATES = ("rare", "unknown", "not rare", "no document")
HEADER = ("question", "document", "state", "cited_before", "cited_now", "others_before", "others_now", "why")


class AgingRow(Struct, frozen=True, kw_only=True):
    """One source document of a question: whether it is still rare, counts before and now (None: unknown), and why."""

    question: str
    document: str
    state: str
    cited_before: int | None = None
    cited_now: int | None = None
    others_before: int | None = None
    others_now: int | None = None
    why: str = ""


def aging_rows(
    bench: Benchmark, corpus: Corpus, citations: Path, limits: RarityLimits, *, before: Path | None = None
) -> list[AgingRow]:
    """The rows of a benchmark, by citation files or folders of them."""
    older = load_citations(before) if before else None
    return refilter(bench.questions, corpus.get, load_citations(citations), limits, before=older)


def refilter(
    questions: Iterable[Question],
    document: Callable[[str], Document],
    citations: Citations,
    limits: RarityLimits,
    *,
    before: Citations | None = None,
) -> list[AgingRow]:
    """A row for each question and source document, in their order; `document` looks one up (`Corpus.get`).

    Counts before come from `before`, or else from the marks that the rarity filter left on documents or
    questions. A question that names no document has no row.
    """
    rows: list[AgingRow] = []
    for question in questions:
        for id in question.documents:
            try:
                found = document(id)
            except InputError:
                rows.append(AgingRow(question=question.id, document=id, state="no document", why="not in this corpus"))
                continue
            rows.append(_aged(question, found, citations, limits, before))
    return rows


def aging_counts(rows: Iterable[AgingRow]) -> dict[str, int]:
    """How many questions are in each state; a question has the state of its worst document."""
    worst: dict[str, int] = {}
    for row in rows:
        rank = ("rare", "no document", "unknown", "not rare").index(row.state)
        worst[row.question] = max(rank, worst.get(row.question, 0))
    found = Counter(("rare", "no document", "unknown", "not rare")[rank] for rank in worst.values())
    return {state: found[state] for state in STATES}


def aging_table(rows: Sequence[AgingRow]) -> list[tuple[object, ...]]:
    """The rows as cells under `HEADER`; what is unknown is empty."""
    return [tuple(getattr(row, name) for name in HEADER) for row in rows]


def _aged(
    question: Question, document: Document, citations: Citations, limits: RarityLimits, before: Citations | None
) -> AgingRow:
    now = citations.of(document)
    verdict = rarity(document, now, limits)
    state = str(verdict.facets["rarity"]) if verdict.kept else "not rare"
    why = f"{verdict.reason}: {verdict.details}" if verdict.reason else ""
    if before is not None:
        then = before.of(document)
        cited, others = (then.total, then.not_case_reports) if then else (None, None)
    else:
        cited, others = (_mark(document, question, name) for name in ("cited_by", "cited_by_other"))
    return AgingRow(
        question=question.id,
        document=document.id,
        state=state,
        cited_before=cited,
        cited_now=now.total if now else None,
        others_before=others,
        others_now=now.not_case_reports if now else None,
        why=why or ("no year or no citation data, or citing articles of unknown type" if state == "unknown" else ""),
    )


def _mark(document: Document, question: Question, name: str) -> int | None:
    """The count that the rarity filter left on the document, or a recipe on a question of one document."""
    values = facet_values(document.facets, name) or (
        facet_values(question.facets, name) if len(question.documents) == 1 else []
    )
    return whole_number(next(iter(values), ""))
