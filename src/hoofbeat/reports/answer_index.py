"""Answers found without holding them: what became of each and where its line begins, a few bytes an answer.

The texts of a hundred thousand answers stay in their table; of them, only those of the page that is looked at are
read. What is right or wrong comes from the report's own reading of the folder, so that the two never differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.facets import FacetTally, facet_values
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.records import Answer, Failure, Judgment, Question
from hoofbeat.reports.lookup import System
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet
from hoofbeat.store import Artefact
from hoofbeat.store.tables import each_line, lines_at
from hoofbeat.text import cut, same_name

STATES = ("right", "wrong", "unscored", "answered")
"""What became of an answer; `answered` where nobody has judged it."""

DOUBTS = ("warnings", "failures")
"""What else can be asked of an answer."""

_TITLE = 200
_FACETS = 4
_COLUMNS: dict[str, type[polars.DataType]] = {
    "question": polars.UInt32, "system": polars.UInt16, "sample": polars.UInt16, "state": polars.UInt8,
    "why": polars.UInt16, "warned": polars.Boolean, "failed": polars.Boolean, "offset": polars.UInt64,
}  # fmt: skip


class AnswerFilter(Struct, frozen=True, kw_only=True):
    """Which answers to find; what is empty is not asked for."""

    model: str = ""
    condition: str = ""
    state: str = ""
    doubt: str = ""
    question: str = ""
    facets: tuple[tuple[str, str], ...] = ()

    @property
    def everything(self) -> bool:
        """Whether nothing is asked for."""
        return self == AnswerFilter()


class QuestionRow(Struct, frozen=True):
    """A question in a list: its number (from 1), its name, and the beginning of its text."""

    number: int
    id: str
    title: str


class AnswerRow(Struct, frozen=True, kw_only=True):
    """What is known of an answer without reading it; `question` is its question's place (from 0)."""

    question: int
    system: System
    sample: int
    state: str
    why: str
    warned: bool
    offset: int


class _Line(Struct):
    question: str
    model: str
    condition: str
    sample: int = 0
    warnings: tuple[str, ...] = ()
    failure: Failure | None = None


class _Judged(Struct):
    question: str


class _Asked(Struct):
    id: str
    text: str
    facets: dict[str, str | list[str]] = {}


class AnswersIndex:
    """The answers of a run or a folder of judgments.

    `systems` are in the order they were run. `facets` are those that questions can be found by, with their values.
    """

    def __init__(
        self,
        artefact: Artefact,
        systems: Sequence[System],
        questions: polars.DataFrame,
        facets: Sequence[tuple[str, tuple[str, ...]]],
        answers: polars.DataFrame,
        reasons: Sequence[str],
        judgments: polars.DataFrame,
    ) -> None:
        self._artefact = artefact
        self.systems = tuple(systems)
        self.facets = tuple(facets)
        self.total = answers.height
        self.count = questions.height
        self._questions = questions
        self._answers = answers
        self._reasons = tuple(reasons)
        self._judgments = judgments
        self._numbers: dict[str, int] = dict(zip(questions["id"].to_list(), range(questions.height), strict=True))

    @property
    def models(self) -> list[str]:
        """The models that answered."""
        return list(dict.fromkeys(model for model, _ in self.systems))

    @property
    def conditions(self) -> list[str]:
        """The conditions they answered under."""
        return list(dict.fromkeys(condition for _, condition in self.systems))

    @property
    def states(self) -> list[str]:
        """What answers of this folder can be."""
        there = set(self._answers["state"].unique().to_list())
        return [state for place, state in enumerate(STATES) if place in there]

    def tally(self, wanted: AnswerFilter | None = None) -> dict[str, int]:
        """How many answers there are of each state."""
        rows = self._answers if wanted is None else self._matching(wanted)
        counts = dict(rows.group_by("state").len().iter_rows())
        return {state: counts[place] for place, state in enumerate(STATES) if place in counts}

    def place(self, question: str) -> int | None:
        """The place (from 0) of the question with this id."""
        return self._numbers.get(question)

    def places(self, wanted: AnswerFilter) -> list[int]:
        """The places of the questions that have an answer like that, in the order they were asked."""
        if wanted.everything:
            return list(range(self.count))
        if wanted == AnswerFilter(facets=wanted.facets):
            return self._with_facets(wanted.facets)
        return self._matching(wanted)["question"].unique().sort().to_list()

    def listed(self, places: Sequence[int]) -> list[QuestionRow]:
        """Questions for a list."""
        rows = self._questions.select("id", "title")[list(places)].rows() if places else []
        return [QuestionRow(place + 1, *row) for place, row in zip(places, rows, strict=True)]

    def found(self, wanted: AnswerFilter, start: int = 0, count: int | None = None) -> list[AnswerRow]:
        """Some of the answers that are wanted, in the order of the table."""
        return list(self._rows(self._matching(wanted).slice(start, count)))

    def matching(self, wanted: AnswerFilter) -> int:
        """How many answers are wanted."""
        return self._matching(wanted).height

    def of_questions(self, places: Sequence[int]) -> dict[int, list[AnswerRow]]:
        """The answers to each of these questions, in the order of the table."""
        mine: dict[int, list[AnswerRow]] = {place: [] for place in places}
        wanted = polars.Series(list(places), dtype=polars.UInt32)
        for row in self._rows(self._answers.filter(polars.col("question").is_in(wanted.implode()))):
            mine[row.question].append(row)
        return mine

    def question(self, place: int) -> Question:
        """A question, read from its table."""
        return self.questions([place])[0]

    def questions(self, places: Sequence[int]) -> list[Question]:
        """Some questions, read from their table."""
        offsets = self._questions["offset"][list(places)].to_list() if places else []
        return lines_at(self._artefact.file("questions.jsonl"), offsets, Question)

    def answers(self, rows: Sequence[AnswerRow]) -> list[Answer]:
        """Answers, read from their table."""
        return lines_at(self._artefact.file("answers.jsonl"), [row.offset for row in rows], Answer)

    def judgments(self, place: int) -> list[Judgment]:
        """All judgments of the answers to a question, read from their table."""
        if not self._judgments.height:
            return []
        offsets = self._judgments.filter(polars.col("question") == place)["offset"].to_list()
        return lines_at(self._artefact.file("judgments.jsonl"), offsets, Judgment)

    @staticmethod
    def outcome(question: str, row: AnswerRow) -> Outcome | None:
        """What became of an answer as findings say it; None where nobody has judged it."""
        if row.state == "answered":
            return None
        return Outcome(
            question=question,
            model=row.system[0],
            condition=row.system[1],
            sample=row.sample,
            correct=None if row.state == "unscored" else row.state == "right",
            unscored=row.why,
        )

    def _rows(self, frame: polars.DataFrame) -> Iterator[AnswerRow]:
        for question, system, sample, state, why, warned, _, offset in frame.iter_rows():
            yield AnswerRow(
                question=question,
                system=self.systems[system],
                sample=sample,
                state=STATES[state],
                why=self._reasons[why],
                warned=warned,
                offset=offset,
            )

    def _matching(self, wanted: AnswerFilter) -> polars.DataFrame:
        rows = self._answers.lazy()
        systems = [
            place
            for place, (model, condition) in enumerate(self.systems)
            if (not wanted.model or same_name(model, wanted.model))
            and (not wanted.condition or same_name(condition, wanted.condition))
        ]
        if len(systems) < len(self.systems):
            rows = rows.filter(polars.col("system").is_in(polars.Series(systems, dtype=polars.UInt16).implode()))
        if wanted.state:
            place = STATES.index(wanted.state) if wanted.state in STATES else len(STATES)
            rows = rows.filter(polars.col("state") == place)
        if wanted.doubt:
            rows = rows.filter(polars.col({"warnings": "warned"}.get(wanted.doubt, "failed")))
        if wanted.question:
            number = self.place(wanted.question)
            rows = rows.filter(polars.col("question") == number if number is not None else polars.lit(False))
        if wanted.facets:
            places = polars.Series(self._with_facets(wanted.facets), dtype=polars.UInt32)
            rows = rows.filter(polars.col("question").is_in(places.implode()))
        return rows.collect()

    def _with_facets(self, facets: Sequence[tuple[str, str]]) -> list[int]:
        chosen = self._questions.lazy().with_row_index("place")
        for name, value in facets:
            there = polars.lit(False)
            for place, (facet, values) in enumerate(self.facets):
                for known in values if same_name(facet, name) else ():
                    if same_name(known, value):
                        there |= polars.col(f"facet {place}").list.contains(known)
            chosen = chosen.filter(there)
        return chosen.select("place").collect()["place"].to_list()


def index_answers(artefact: Artefact, group: OutcomeSet) -> AnswersIndex:
    """Read a folder's tables once, beside what the report's own reading made of it."""
    questions, facets = _questions(artefact.file("questions.jsonl"))
    numbers: dict[str, int] = dict(zip(questions["id"].to_list(), range(questions.height), strict=True))
    systems = list(group.tallies)
    answers, reasons = _answers(artefact.file("answers.jsonl"), group, numbers)
    places, offsets = [], []
    if artefact.has("judgments.jsonl"):
        for offset, line in each_line(artefact.file("judgments.jsonl"), _Judged):
            if line.question in numbers:
                places.append(numbers[line.question])
                offsets.append(offset)
    judgments = polars.DataFrame(
        {"question": places, "offset": offsets}, schema={"question": polars.UInt32, "offset": polars.UInt64}
    )
    return AnswersIndex(artefact, systems, questions, facets, answers, reasons, judgments)


def _answers(path: Path, group: OutcomeSet, numbers: Mapping[str, int]) -> tuple[polars.DataFrame, list[str]]:
    outcomes = {(row.question, row.model, row.condition, row.sample): row for row in group.outcomes}
    systems = {system: place for place, system in enumerate(group.tallies)}
    codes = {state: place for place, state in enumerate(STATES)}
    reasons: dict[str, int] = {"": 0}
    columns: dict[str, list[int | bool]] = {name: [] for name in _COLUMNS}
    for offset, line in each_line(path, _Line):
        place = numbers.get(line.question)
        if place is None:
            raise InputError(
                f"an answer belongs to a question that is missing: {line.question!r}",
                where=str(path),
                fix="restore the folder, or make it again",
            )
        outcome = outcomes.get((line.question, line.model, line.condition, line.sample))
        failed = line.failure is not None
        if outcome is None:
            state, why = ("unscored", f"answer:{line.failure.kind}") if line.failure else ("answered", "")
        else:
            state = "unscored" if outcome.correct is None else "right" if outcome.correct else "wrong"
            why = outcome.unscored
        columns["question"].append(place)
        columns["system"].append(systems[line.model, line.condition])
        columns["sample"].append(line.sample)
        columns["state"].append(codes[state])
        columns["why"].append(reasons.setdefault(why, len(reasons)))
        columns["warned"].append(bool(line.warnings))
        columns["failed"].append(failed or state == "unscored")
        columns["offset"].append(offset)
    return polars.DataFrame(columns, schema=_COLUMNS), list(reasons)


def _questions(path: Path) -> tuple[polars.DataFrame, list[tuple[str, tuple[str, ...]]]]:
    """The questions for lists, and the facets to find them by."""
    tally = FacetTally()
    ids, titles, offsets, facets = [], [], [], []
    for offset, line in each_line(path, _Asked):
        ids.append(line.id)
        titles.append(cut(line.text, _TITLE))
        offsets.append(offset)
        facets.append(line.facets)
        tally.add(line.facets)
    known = [(name, tuple(sorted(value for value, _ in counts))) for name, counts in tally.counts().items()][:_FACETS]
    frame = polars.DataFrame(
        {"id": ids, "title": titles, "offset": offsets},
        schema={"id": polars.String, "title": polars.String, "offset": polars.UInt64},
    ).with_columns(
        polars.Series(f"facet {place}", [facet_values(each, name) for each in facets], polars.List(polars.String))
        for place, (name, _) in enumerate(known)
    )
    return frame, known
