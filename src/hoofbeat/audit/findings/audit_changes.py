"""Two audits of the same questions: which labels moved, what each source covers now, and the split of the change.

`relations` says what prevalence and intensity are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import Frame, label_counts, lazy, pairs_of
from hoofbeat.audit.findings.relations import (
    FIVE_RELATIONS,
    PrevalenceIntensity,
    RelationLabels,
    Relations,
    groups_of,
    split_of,
)
from hoofbeat.audit.findings.table_agreement import JoinedPairs, TableAgreement, join, joined_agreement
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import SAMPLES, Interval, mcnemar_exact, paired_difference
from hoofbeat.records import Answer, Question
from hoofbeat.text import some_of

KINDS = ("judged in both", "answered now", "silent now", "without a label")
"""How a pair's label can change: between two judgments, from absent, to absent, and from or to a failure."""


class LabelShift(Struct, frozen=True, kw_only=True):
    """Labels of the pairs that both audits planned, before (down) and after (across); the last is for no label.

    `same` of `pairs` keep their label; `only_before` and `only_after` are pairs that one audit planned.
    """

    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    pairs: int
    same: int
    only_before: int
    only_after: int


class CoverageChange(Struct, frozen=True, kw_only=True):
    """What one source covers of the `shared` questions that both audits put to it (and could score).

    `gained` are answered only in the second audit, `lost` only in the first; `change` is the difference of the
    coverages with the bootstrap interval of its questions, `p` the exact test of McNemar. `planned` are the questions
    put to it in each audit; a source that one audit did not ask has None for its coverage there.
    """

    source: str
    planned: tuple[int, int]
    coverage: tuple[float | None, float | None]
    shared: int
    gained: int
    lost: int
    change: float | None
    interval: Interval | None
    p: float


def split_between(
    joined: JoinedPairs,
    questions: Iterable[str] | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> PrevalenceIntensity:
    """How prevalence and intensity changed between two tables, or for some questions of them."""
    chosen = np.ones(len(joined.before.questions), bool)
    if questions is not None:
        wanted = set(questions)
        chosen = np.array([name in wanted for name in joined.before.questions], bool)
    return _Split(joined).of(chosen, samples, seed)


def split_by(
    joined: JoinedPairs,
    questions: Sequence[Question],
    facet: str,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> dict[str, PrevalenceIntensity]:
    """The same for each value of a facet of the questions, sorted, where both audits asked one of its questions."""
    members: dict[str, set[str]] = {}
    for question in questions:
        for name in groups_of(question, facet):
            members.setdefault(name, set()).add(question.id)
    split = _Split(joined)
    found = {}
    for name in sorted(members):
        chosen = np.array([question in members[name] for question in joined.before.questions], bool)
        if (chosen & split.both).any():
            found[name] = split.of(chosen, samples, seed)
    return found


def label_shift(joined: JoinedPairs) -> LabelShift:
    """How labels moved between the audits."""
    order = joined.before.domain.order
    size = len(order) + 1
    before, after = (np.where(label < 0, len(order), label).astype(np.int64) for label in joined.labels)
    counts = np.bincount(before * size + after, minlength=size * size).reshape(size, size)
    return LabelShift(
        labels=(*order, ""),
        counts=tuple(tuple(line) for line in counts.tolist()),
        pairs=len(before),
        same=int(np.trace(counts)),
        only_before=len(joined.before.label) - len(before),
        only_after=len(joined.after.label) - len(before),
    )


def changed_pairs(joined: JoinedPairs, before: Frame, after: Frame) -> polars.DataFrame:
    """Every pair that both audits planned and that has another label now, the most telling first.

    Ordered by kind (see `KINDS`), then by how far the label moved, then by question and sources. `before` and `after`
    are the tables that were joined, for the topics and significances in them.
    """
    pairs = joined.before
    first, second = joined.labels
    moved = np.flatnonzero(first != second)
    old, new = first[moved].astype(np.int64), second[moved].astype(np.int64)
    absent = pairs.absent
    kind = np.select([(old < 0) | (new < 0), old == absent, new == absent], [3, 1, 2], 0)
    rows = [joined.rows[0][moved], joined.rows[1][moved]]
    names = polars.Series([*pairs.domain.order, ""])
    table = polars.DataFrame(
        {
            "kind": polars.Series(KINDS)[kind],
            "question": polars.Series(pairs.questions, dtype=polars.String)[pairs.question[rows[0]]],
            "a": polars.Series(pairs.sources, dtype=polars.String)[pairs.a[rows[0]]],
            "b": polars.Series(pairs.sources, dtype=polars.String)[pairs.b[rows[0]]],
            "before": names[np.where(old < 0, len(names) - 1, old)],
            "after": names[np.where(new < 0, len(names) - 1, new)],
            **_texts(before, rows[0], "before"),
            **_texts(after, rows[1], "after"),
        }
    )
    order = np.lexsort((moved, -np.abs(new - old), kind))
    return table[order]


def coverage_changes(
    before: Iterable[Answer], after: Iterable[Answer], *, samples: int = SAMPLES, seed: int = 0
) -> list[CoverageChange]:
    """What each source covers in two audits, sorted by source; answers that failed are left out of what is shared."""
    first, second = _states(before), _states(after)
    return [
        _coverage_change(source, first.get(source, {}), second.get(source, {}), samples, seed)
        for source in sorted({*first, *second})
    ]


class _Split:
    """The row of each question that `split_of` takes."""

    def __init__(self, joined: JoinedPairs) -> None:
        sides = (joined.before, joined.after)
        size = len(joined.before.questions)
        columns: list[NDArray[np.int64]] = []
        self.failed = []
        for side in sides:
            diverging = side.by_question(side.diverging)
            columns += [
                side.by_question(),
                side.by_question(side.label == side.absent),
                side.by_question(side.judged),
                diverging,
                (diverging > 0).astype(np.int64),
            ]
            self.failed.append(side.by_question(side.label < 0))
        both = joined.before.judged[joined.rows[0]] & joined.after.judged[joined.rows[1]]
        question = joined.question[both]
        columns.append(np.bincount(question, minlength=size))
        for side, rows in zip(sides, joined.rows, strict=True):
            columns.append(np.bincount(question[side.diverging[rows[both]]], minlength=size))
        columns += [(columns[-2] > 0).astype(np.int64), (columns[-1] > 0).astype(np.int64), np.ones(size, np.int64)]
        self.rows = np.stack(columns, axis=1).astype(np.float64)
        self.asked = self.rows[:, 0] > 0, self.rows[:, 5] > 0
        self.both = self.asked[0] & self.asked[1]

    def of(self, chosen: NDArray[np.bool_], samples: int, seed: int) -> PrevalenceIntensity:
        """The split over the chosen questions that both audits asked."""
        mine = chosen & self.both
        if not mine.any():
            raise InputError("the two audits share no question", fix="give two audits of the same questions")
        return split_of(
            self.rows[mine],
            one_audit_only=int((chosen & (self.asked[0] ^ self.asked[1])).sum()),
            failed=(int(self.failed[0][mine].sum()), int(self.failed[1][mine].sum())),
            samples=samples,
            seed=seed,
        )


def _texts(table: Frame, rows: NDArray[np.int64], when: str) -> dict[str, polars.Series]:
    frame = lazy(table)
    present = frame.collect_schema().names()
    names = [name for name in ("topic", "significance") if name in present]
    found = frame.select(polars.col(name).cast(polars.String).gather(rows) for name in names).collect()
    return {f"{name}_{when}": found[name] for name in names}


def _states(answers: Iterable[Answer]) -> dict[str, dict[str, bool | None]]:
    """Source to question to whether it is answered; None where that is not known."""
    found: dict[str, dict[str, bool | None]] = {}
    for answer in answers:
        known = None if answer.failure or answer.absent is None else not answer.absent
        found.setdefault(answer.source, {})[answer.question] = known
    return found


def _coverage_change(
    source: str,
    before: dict[str, bool | None],
    after: dict[str, bool | None],
    samples: int,
    seed: int,
) -> CoverageChange:
    both = sorted(q for q in before.keys() & after.keys() if before[q] is not None and after[q] is not None)
    old, new = (np.array([bool(side[q]) for q in both], np.float64) for side in (before, after))
    gained, lost = int((new > old).sum()), int((old > new).sum())
    paired = paired_difference(new, old, samples=samples, seed=seed) if both else None
    return CoverageChange(
        source=source,
        planned=(len(before), len(after)),
        coverage=(_covered(before), _covered(after)),
        shared=len(both),
        gained=gained,
        lost=lost,
        change=paired.difference if paired else None,
        interval=paired.interval if paired else None,
        p=mcnemar_exact(gained, lost),
    )


def _covered(states: dict[str, bool | None]) -> float | None:
    return sum(state is True for state in states.values()) / len(states) if states else None


_NAMED = 3


class AuditSide(Struct, frozen=True, kw_only=True):
    """One of the two audits: its table of pairs, its questions, the names of its sources, and its answers."""

    table: Frame
    questions: Sequence[Question]
    sources: Sequence[str]
    answers: Iterable[Answer]


class AuditsComparison(Struct, frozen=True, kw_only=True):
    """What changed from one audit to the next; pairs of figures are before and after.

    `relations` are each audit's own rates, `split` what prevalence and intensity make of their change, `groups` the
    same by facet and value. `shift` says how labels moved, `agreement` how far they stayed, `coverage` what each source
    covers. `sources_only` and `questions_only` name what only one of the two has.
    """

    questions: int
    sources: int
    relations: tuple[Relations, Relations]
    split: PrevalenceIntensity
    groups: dict[str, dict[str, PrevalenceIntensity]]
    shift: LabelShift
    agreement: TableAgreement
    coverage: tuple[CoverageChange, ...]
    sources_only: tuple[tuple[str, ...], tuple[str, ...]]
    questions_only: tuple[tuple[str, ...], tuple[str, ...]]


def compare_audits(
    before: AuditSide,
    after: AuditSide,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    facets: Sequence[str] = (),
    samples: int = SAMPLES,
    seed: int = 0,
) -> tuple[AuditsComparison, JoinedPairs]:
    """Compare two audits of the same questions, and lay their tables over each other.

    A question of the same name with another text is refused, as are audits that share no question.
    """
    asked = [{question.id: question for question in side.questions} for side in (before, after)]
    shared = _shared(asked[0], asked[1])
    tables = pairs_of(before.table, domain), pairs_of(after.table, domain)
    joined = join(tables[0], tables[1], domain)
    names = [set(side.sources) for side in (before, after)]
    compared = AuditsComparison(
        questions=len(shared),
        sources=len(names[0] & names[1]),
        relations=(label_counts(tables[0], asked[0], domain), label_counts(tables[1], asked[1], domain)),
        split=split_between(joined, samples=samples, seed=seed),
        groups={facet: split_by(joined, shared, facet, samples=samples, seed=seed) for facet in facets},
        shift=label_shift(joined),
        agreement=joined_agreement(joined, samples=samples, seed=seed),
        coverage=tuple(coverage_changes(before.answers, after.answers, samples=samples, seed=seed)),
        sources_only=(tuple(sorted(names[0] - names[1])), tuple(sorted(names[1] - names[0]))),
        questions_only=(
            tuple(sorted(asked[0].keys() - asked[1].keys())),
            tuple(sorted(asked[1].keys() - asked[0].keys())),
        ),
    )
    return compared, joined


def reworded_questions(before: Iterable[Question], after: Iterable[Question]) -> list[str]:
    """The names under which the second audit asks something else than the first, in the order of the second."""
    texts = {question.id: question.full_text for question in before}
    return [question.id for question in after if texts.get(question.id, question.full_text) != question.full_text]


def _shared(before: dict[str, Question], after: dict[str, Question]) -> list[Question]:
    """The questions that both audits asked, in the order of the second."""
    both = [question for name, question in after.items() if name in before]
    if not both:
        raise InputError("the two audits share no question", fix="give two audits of the same questions")
    if other := reworded_questions(before.values(), both):
        raise InputError(
            f"these questions have the same id but different text: {some_of(other, _NAMED)}",
            fix="compare audits that asked the same questions, word for word",
        )
    return both
