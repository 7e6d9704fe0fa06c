"""The most serious single pairs, and what stands behind each: both answers and both passages, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars
from msgspec import Struct

from hoofbeat.audit.answers.citations import cites_heading
from hoofbeat.audit.findings.pair_arrays import Frame, sure_rows
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.records import Answer, Passage, Question

LEVELS = ("low", "medium", "high")
"""The levels of significance, least first."""

_TEXTS = ("reasoning", "topic", "basis", "judge")


class SeriousPair(Struct, frozen=True, kw_only=True):
    """One diverging pair. `alike` counts the pairs of its question with the same significance and label, itself too."""

    question: str
    a: str
    b: str
    label: str
    significance: str
    topic: str
    reasoning: str
    basis: str
    judge: str
    alike: int


class SourceSide(Struct, frozen=True, kw_only=True):
    """What one source said: its answer, the headings it cites, and the passage that stands behind it.

    The passage is the first that was shown under a cited heading, else the first of all; None where none was kept.
    """

    source: str
    text: str
    citations: tuple[str, ...]
    passage: Passage | None
    cited: bool


class SideBySide(Struct, frozen=True, kw_only=True):
    """A serious pair with its question's text and what both sources said; None where an answer is not known."""

    pair: SeriousPair
    text: str
    a: SourceSide | None
    b: SourceSide | None


def serious_pairs(
    table: Frame,
    domain: RelationLabels = FIVE_RELATIONS,
    levels: Sequence[str] = LEVELS,
    top: int = 20,
    *,
    per_question: int = 1,
) -> list[SeriousPair]:
    """The `top` diverging pairs by significance, then by label, then in the order of the table.

    `per_question` is how many of one question are listed at most (0: any number), so that one contested question does
    not fill the list. A pair without a significance comes after all that have one.
    """
    ranks = {name: place for place, name in enumerate(levels)}
    labels = {name: domain.order.index(name) for name in domain.diverging}
    keys = ("question", "a", "b", "label", "significance")
    rows = sure_rows(table)
    present = rows.collect_schema().names()
    found = (
        rows.with_row_index("row")
        .filter(polars.col("label").cast(polars.String).is_in(list(labels)))
        .select("row", *(polars.col(name).cast(polars.String) for name in keys))
        .with_columns(
            rank=polars.col("significance").replace_strict(ranks, default=-1, return_dtype=polars.Int64),
            place=polars.col("label").replace_strict(labels, return_dtype=polars.Int64),
        )
        .with_columns(alike=polars.len().over("question", "rank", "place"))
        .sort("rank", "place", "question", "a", "b", descending=[True, True, False, False, False])
    )
    if per_question:
        found = found.filter(polars.int_range(polars.len()).over("question") < per_question)
    chosen = found.head(top).collect()
    texts = [name for name in _TEXTS if name in present]
    behind = (
        rows.with_row_index("row")
        .filter(polars.col("row").is_in(chosen["row"].to_list()))
        .select("row", *(polars.col(name).cast(polars.String) for name in texts))
        .collect()
    )
    words = {row["row"]: row for row in behind.iter_rows(named=True)}
    return [
        SeriousPair(
            question=row["question"],
            a=row["a"],
            b=row["b"],
            label=row["label"],
            significance=row["significance"] or "",
            alike=row["alike"],
            **{name: words[row["row"]].get(name) or "" for name in _TEXTS},
        )
        for row in chosen.iter_rows(named=True)
    ]


def side_by_side(
    pairs: Sequence[SeriousPair], questions: Iterable[Question], answers: Iterable[Answer]
) -> list[SideBySide]:
    """The pairs with both answers and passages; only the answers that are needed are kept of those that go by."""
    wanted = {(pair.question, source) for pair in pairs for source in (pair.a, pair.b)}
    asked = {pair.question for pair in pairs}
    texts = {question.id: question.text for question in questions if question.id in asked}
    sides = {
        (answer.question, answer.source): _side(answer)
        for answer in answers
        if (answer.question, answer.source) in wanted
    }
    return [
        SideBySide(
            pair=pair,
            text=texts.get(pair.question, ""),
            a=sides.get((pair.question, pair.a)),
            b=sides.get((pair.question, pair.b)),
        )
        for pair in pairs
    ]


def _side(answer: Answer) -> SourceSide:
    under = [
        passage for cited in answer.citations for passage in answer.evidence if cites_heading(cited, passage.heading)
    ]
    return SourceSide(
        source=answer.source,
        text=answer.text,
        citations=answer.citations,
        passage=next(iter([*under, *answer.evidence]), None),
        cited=bool(under),
    )
