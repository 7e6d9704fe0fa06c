"""An audit's pairs found without reading them: a dozen bytes a pair, and where each answer's line begins.

Filters over millions of pairs are a few passes over small numbers. The judge's words stay in the table; they are read
for the pairs of the page that is looked at, one row group at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.audit_folder import EconomyProbe, OrderProbe
from hoofbeat.audit.findings.divergence_themes import plain_topic
from hoofbeat.audit.findings.pair_arrays import AuditPairs
from hoofbeat.audit.pair_table import each_row
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.records import Answer, Comparison, Failure, Question
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts
from hoofbeat.store.tables import each_line, lines_at
from hoofbeat.text import one_line, same_name

NO_LABEL = "no label"
SILENT, SPOKEN, FAILED, UNASKED = range(4)
"""What a source did with a question."""

_FACETS = 3
Rows = NDArray[np.int64]
RowMask = NDArray[np.bool_]


class PairFilter(Struct, frozen=True, kw_only=True):
    """Which pairs to find; what is empty (or nought) is not asked for. Sources are numbers from 1, in no order.

    `topics` are places (from 0) of wordings, any of which will do; None asks for none.
    """

    question: int = 0
    a: int = 0
    b: int = 0
    label: str = ""
    level: str = ""
    topics: tuple[int, ...] | None = None
    facets: tuple[tuple[str, str], ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is asked for."""
        return self == PairFilter()


class AuditPairRow(Struct, frozen=True, kw_only=True):
    """A pair in a list: its row in the table, its numbers (from 1), and what the index knows of it."""

    row: int
    question: int
    a: int
    b: int
    label: str
    level: str
    topic: str


class _Columns(Struct, frozen=True, kw_only=True):
    """Every pair, in the order of the table; codes count from 0, −1 is nothing. `score` says how serious it is."""

    question: NDArray[np.int32]
    a: NDArray[np.int16]
    b: NDArray[np.int16]
    label: NDArray[np.int8]
    level: NDArray[np.int8]
    topic: NDArray[np.int32]
    score: NDArray[np.uint8]
    exchanged: NDArray[np.bool_]


class AuditIndex:
    """The pairs and answers of an audit. Questions, sources and wordings go by their places, from 0."""

    def __init__(
        self,
        facts: AuditFacts,
        columns: _Columns,
        topics: Sequence[tuple[str, int]],
        offsets: Rows,
        states: NDArray[np.int8],
    ) -> None:
        self._audit: Audit = facts.audit
        self.domain, self.levels = facts.domain, facts.levels
        self.questions: list[Question] = facts.audit.questions
        self.sources: list[AuditSource] = facts.audit.sources
        self.names: SourceNames = facts.names
        self.topics = list(topics)
        self.facets = [
            (name, facts.title(name), sorted({v for q in self.questions for v in facet_values(q.facets, name)}))
            for name in facts.facets[:_FACETS]
        ]
        self.count = len(columns.label)
        self.states = states
        self._columns, self._offsets = columns, offsets
        self._diverging = np.isin(np.arange(-1, len(self.domain.order)), self._codes(self.domain.diverging))
        size = len(self.questions), len(self.domain.order) + 1
        cells = columns.question.astype(np.int64) * size[1] + columns.label + 1
        self.labels: Rows = np.bincount(cells, minlength=size[0] * size[1]).reshape(size)
        silent = self.labels[:, 1 + self.domain.order.index(self.domain.absent)]
        self._judged: list[int] = (self.labels[:, 1:].sum(axis=1) - silent).tolist()
        self._apart: list[int] = (
            self.labels[:, [1 + code for code in self._codes(self.domain.diverging)]].sum(1).tolist()
        )
        self._order = {(each.question, each.a, each.b): each for each in self._audit.order_probes}
        self._economy = {(each.question, each.a, each.b): each for each in self._audit.economy_probes}

    def _codes(self, labels: Sequence[str]) -> list[int]:
        return [self.domain.order.index(label) for label in labels]

    def judged(self, question: int) -> int:
        """How many pairs of a question have a label other than absent."""
        return self._judged[question]

    def diverging(self, question: int) -> int:
        """How many pairs of a question diverge."""
        return self._apart[question]

    def mask(self, wanted: PairFilter) -> RowMask:
        """Which pairs are wanted."""
        rows = self._columns
        kept = np.ones(self.count, bool)
        for source in (wanted.a, wanted.b):
            if source:
                kept &= (rows.a == source - 1) | (rows.b == source - 1)
        if wanted.question:
            kept &= rows.question == wanted.question - 1
        if wanted.label:
            known = {name: code for code, name in enumerate(self.domain.order)} | {NO_LABEL: -1}
            kept &= rows.label == known.get(wanted.label, len(known))
        if wanted.level:
            kept &= rows.level == (self.levels.index(wanted.level) if wanted.level in self.levels else len(self.levels))
        if wanted.topics is not None:
            kept &= np.isin(rows.topic, wanted.topics)
        if wanted.facets:
            kept &= self._asked(wanted.facets)[rows.question]
        return kept

    def _asked(self, facets: Sequence[tuple[str, str]]) -> RowMask:
        kept = np.ones(len(self.questions), bool)
        for name, value in facets:
            facet, values = next(((each, known) for each, _, known in self.facets if same_name(each, name)), ("", []))
            wanted = {each for each in values if same_name(each, value)}
            there = [not wanted.isdisjoint(facet_values(question.facets, facet)) for question in self.questions]
            kept &= np.array(there, bool)
        return kept

    def found(self, wanted: PairFilter) -> tuple[Rows, Rows]:
        """Of the pairs that are wanted, how many each question has, and how many of these diverge."""
        if wanted.everything:
            return self.labels.sum(axis=1), np.array(self._apart, np.int64)
        kept, size = self.mask(wanted), len(self.questions)
        question = self._columns.question[kept]
        apart = question[self._diverging[self._columns.label[kept] + 1]]
        return np.bincount(question, minlength=size), np.bincount(apart, minlength=size)

    def serious(self, wanted: PairFilter, start: int, count: int) -> tuple[list[AuditPairRow], int]:
        """Some of the pairs that are wanted, the most serious first, and how many there are in all."""
        score = self._columns.score if wanted.everything else np.where(self.mask(wanted), self._columns.score, 0)
        sizes = np.bincount(score, minlength=256)
        total = int(sizes[1:].sum())
        chosen: list[int] = []
        for value in range(255, 0, -1):
            if start >= sizes[value]:
                start -= int(sizes[value])
                continue
            rows = np.flatnonzero(score == value)[start : start + count - len(chosen)]
            chosen += rows.tolist()
            start = 0
            if len(chosen) >= count:
                break
        return [self.pair_row(row) for row in chosen], total

    def neighbours(self, wanted: PairFilter, row: int) -> tuple[int | None, int | None]:
        """The rows before and after one in the list of those that are wanted, the most serious first."""
        score = self._columns.score if wanted.everything else np.where(self.mask(wanted), self._columns.score, 0)
        mine = int(self._columns.score[row])
        same = np.flatnonzero(score == mine)
        place = int(np.searchsorted(same, row))
        before = int(same[place - 1]) if place else None
        beyond = place + (place < len(same) and same[place] == row)
        after = int(same[beyond]) if beyond < len(same) else None
        sizes = np.bincount(score, minlength=256)
        if before is None and (higher := np.flatnonzero(sizes[mine + 1 :])).size:
            before = int(np.flatnonzero(score == mine + 1 + int(higher[0]))[-1])
        if after is None and (lower := np.flatnonzero(sizes[1:mine])).size:
            after = int(np.flatnonzero(score == 1 + int(lower[-1]))[0])
        return before, after

    def pair_row(self, row: int) -> AuditPairRow:
        """A pair as a list shows it: its sources in the order in which the judge saw them."""
        rows = self._columns
        first, second = (rows.b, rows.a) if rows.exchanged[row] else (rows.a, rows.b)
        topic = int(rows.topic[row])
        return AuditPairRow(
            row=row,
            question=int(rows.question[row]) + 1,
            a=int(first[row]) + 1,
            b=int(second[row]) + 1,
            label=(*self.domain.order, NO_LABEL)[rows.label[row]],
            level=("", *self.levels)[rows.level[row] + 1],
            topic=self.topics[topic][0] if topic >= 0 else "",
        )

    def row_of(self, question: int, a: int, b: int) -> int | None:
        """The row of two sources on a question; places from 0, in any order."""
        rows = self._columns
        mine = np.flatnonzero(rows.question == question)
        here = ((rows.a[mine] == a) & (rows.b[mine] == b)) | ((rows.a[mine] == b) & (rows.b[mine] == a))
        found = mine[here]
        return int(found[0]) if len(found) else None

    def matrix(self, question: int) -> tuple[list[int], NDArray[np.int8]]:
        """The sources that were asked a question, and the labels of every two; −1 is no label, −2 no pair."""
        rows = self._columns
        mine = np.flatnonzero(rows.question == question)
        present = np.unique(np.concatenate([rows.a[mine], rows.b[mine]]))
        cells = np.full((len(present), len(present)), -2, np.int8)
        first, second = np.searchsorted(present, rows.a[mine]), np.searchsorted(present, rows.b[mine])
        cells[first, second] = cells[second, first] = rows.label[mine]
        return present.tolist(), cells

    def comparison(self, row: int) -> Comparison:
        """A pair in full, read from the table."""
        return next(iter(each_row(self._audit.frame().slice(row, 1).collect())))

    def probes(self, pair: Comparison) -> tuple[OrderProbe | None, EconomyProbe | None]:
        """What came of judging the pair again: with its answers exchanged, and to check a carried label."""
        key = pair.question, pair.a, pair.b
        return self._order.get(key), self._economy.get(key)

    def answers(self, question: int, sources: Sequence[int]) -> list[Answer | None]:
        """What sources said to a question, read from the table; None where a source was not asked."""
        offsets: list[int] = self._offsets[question, list(sources)].tolist()
        asked = (offset for offset in offsets if offset >= 0)
        found = iter(lines_at(self._audit.artefact.file("answers.jsonl"), asked, Answer))
        return [next(found) if offset >= 0 else None for offset in offsets]


def index_audit(facts: AuditFacts) -> AuditIndex:
    """Index an audit whose pairs were read."""
    topic, topics = _topics(facts.frame, len(facts.pairs.label))
    level = _levels(facts)
    questions = _moved(facts.pairs.questions, [question.id for question in facts.audit.questions], "question")
    sources = _moved(facts.pairs.sources, [source.id for source in facts.audit.sources], "source")
    columns = _Columns(
        question=questions[facts.pairs.question].astype(np.int32),
        a=sources[facts.pairs.a].astype(np.int16),
        b=sources[facts.pairs.b].astype(np.int16),
        label=facts.pairs.label,
        level=level,
        topic=topic,
        score=_scores(facts.pairs, level),
        exchanged=_exchanged(facts.frame),
    )
    return AuditIndex(facts, columns, topics, *_answers(facts.audit))


def _exchanged(frame: polars.LazyFrame) -> NDArray[np.bool_]:
    """Of each pair whether the judge saw its second source first, which the reasoning says at its beginning."""
    reasoning, a, b = (polars.col(name).cast(polars.String) for name in ("reasoning", "a", "b"))
    begins = reasoning.str.starts_with(polars.format("(A is {}, B is {}.) ", b, a)).fill_null(value=False)
    found: NDArray[np.bool_] = frame.select(begins.alias("exchanged")).collect().to_series().to_numpy()
    return found


def _moved(names: Sequence[str], known: Sequence[str], what: str) -> Rows:
    places = {name: place for place, name in enumerate(known)}
    lost = next((name for name in names if name not in places), None)
    if lost is not None:
        raise InputError(f"the {what} {lost!r} of a pair is missing", fix="restore the folder, or make it again")
    return np.array([places[name] for name in names], np.int64)


def _scores(pairs: AuditPairs, level: NDArray[np.int8]) -> NDArray[np.uint8]:
    """How serious pairs are: silent ones 1, failed ones 2, then labels in order, diverging ones by level and label."""
    size = len(pairs.domain.order) + 1
    score = np.where(pairs.label < 0, 2, 3 + pairs.label.astype(np.int64))
    score[pairs.label == pairs.absent] = 1
    apart = pairs.diverging
    score[apart] = size * (level[apart].astype(np.int64) + 2) + 3 + pairs.label[apart]
    return np.clip(score, 0, 255).astype(np.uint8)


def _levels(facts: AuditFacts) -> NDArray[np.int8]:
    series = facts.frame.select("significance").collect().to_series()
    codes = {name: place for place, name in enumerate(facts.levels)}
    if isinstance(series.dtype, polars.Enum):
        names = series.dtype.categories.to_list()
        physical = series.to_physical().cast(polars.Int32).fill_null(-1).to_numpy()
        moved: NDArray[np.int8] = np.array([*(codes.get(name, -1) for name in names), -1], np.int8)[physical]
        return moved
    return np.array([codes.get(name, -1) for name in series.cast(polars.String).to_list()], np.int8)


def _topics(frame: polars.LazyFrame, count: int) -> tuple[NDArray[np.int32], list[tuple[str, int]]]:
    """The wording of each pair as a code, and the wordings with how many pairs have each, most frequent first.

    Wordings are counted without capitals and closing marks, and shown as the judge spelt each most often.
    """
    topic = polars.col("topic").cast(polars.String)
    rows = frame.select(topic).with_row_index("row").filter(topic.is_not_null()).collect()
    plain = {spelling: plain_topic(spelling) for spelling in rows["topic"].unique().to_list()}
    words = rows.with_columns(topic.replace_strict(plain, return_dtype=polars.String), spelt=topic).filter(topic != "")
    by_use = words.group_by("topic", "spelt").len().sort("len", "spelt", descending=[False, True])
    spelt = dict(by_use.select("topic", "spelt").iter_rows())
    counts = words.group_by("topic").len().sort("len", "topic", descending=[True, False]).rows()
    codes = {phrase: place for place, (phrase, _) in enumerate(counts)}
    found = np.full(count, -1, np.int32)
    found[words["row"].to_numpy()] = words["topic"].replace_strict(codes, return_dtype=polars.Int32).to_numpy()
    return found, [(one_line(spelt[phrase]), number) for phrase, number in counts]


class _Line(Struct):
    question: str
    source: str = ""
    absent: bool | None = None
    failure: Failure | None = None


def _answers(audit: Audit) -> tuple[Rows, NDArray[np.int8]]:
    """Where the line of each answer begins, and what the source did; questions by sources."""
    questions = {question.id: place for place, question in enumerate(audit.questions)}
    sources = {source.id: place for place, source in enumerate(audit.sources)}
    offsets = np.full((len(questions), len(sources)), -1, np.int64)
    states = np.full((len(questions), len(sources)), UNASKED, np.int8)
    for offset, line in each_line(audit.artefact.file("answers.jsonl"), _Line):
        cell = questions.get(line.question), sources.get(line.source)
        if cell[0] is not None and cell[1] is not None:
            offsets[cell] = offset
            failed = line.failure is not None or line.absent is None
            states[cell] = FAILED if failed else SILENT if line.absent else SPOKEN
    return offsets, states
