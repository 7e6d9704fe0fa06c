"""The questions that flipped between two systems: right in one, wrong in the other, or without a score in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings import Outcome
from hoofbeat.records import Answer, Judgment, Question, Span
from hoofbeat.reports.comparisons import AnswersCompared, Pair, Place
from hoofbeat.reports.model import Block, Entry, Text, Viewer
from hoofbeat.reports.packing import viewer_of
from hoofbeat.reports.sections.answers import answer_key, answer_view, asked_view
from hoofbeat.reports.words import cut

__all__ = ["CHANGES", "Flipped", "FlippedSide", "change", "each_flipped", "flips_of", "flips_viewer"]

CHANGES = (
    "right → wrong",
    "wrong → right",
    "right → unscored",
    "wrong → unscored",
    "unscored → right",
    "unscored → wrong",
    "fewer samples right",
    "more samples right",
    "samples → unscored",
    "unscored → samples",
)
"""How a question can flip from the first system to the second; the last four where there are several samples."""


class FlippedSide(Struct, frozen=True, kw_only=True):
    """One side of a flip: the system, how it stands, its answers and all judgments of them.

    Of the passages that were shown, only the ids are here; their text is in the folder.
    """

    folder: str
    model: str
    condition: str
    standing: str
    shown: tuple[str, ...]
    answers: tuple[Answer, ...]
    judgments: tuple[Judgment, ...]


class Flipped(Struct, frozen=True, kw_only=True):
    """A question that flipped, with everything needed to see why: one line of `flipped.jsonl`."""

    question: str
    change: str
    context: str
    text: str
    options: tuple[str, ...]
    gold: str
    evidence: tuple[Span, ...]
    first: FlippedSide
    second: FlippedSide


def change(before: Sequence[Outcome], after: Sequence[Outcome]) -> str:
    """How a question flipped, as one of `CHANGES`; empty where it did not."""
    if len(before) == len(after) == 1:
        states = _state(before[0]), _state(after[0])
        return "" if states[0] == states[1] else f"{states[0]} → {states[1]}"
    lost = [all(row.correct is None for row in rows) for rows in (before, after)]
    if lost[0] != lost[1]:
        return "samples → unscored" if lost[1] else "unscored → samples"
    shares = [sum(row.correct is True for row in rows) / len(rows) for rows in (before, after)]
    if shares[0] == shares[1]:
        return ""
    return "more samples right" if shares[1] > shares[0] else "fewer samples right"


def flips_of(compared: AnswersCompared, pair: Pair) -> Counter[str]:
    """How often each change happened between two systems, over the questions planned for both."""
    first, second = compared.results[pair.first], compared.results[pair.second]
    found = Counter(change(rows, second[question]) for question, rows in first.items() if question in second)
    return Counter({name: found[name] for name in CHANGES if found[name]})


def each_flipped(compared: AnswersCompared) -> Iterator[Flipped]:
    """Every flip, question by question; answers and judgments are read when it is their turn."""
    for question, flips in _by_question(compared):
        read = _Read(compared, question)
        for pair, how in flips:
            yield Flipped(
                question=question.id,
                change=how,
                context=question.context,
                text=question.text,
                options=question.options,
                gold=question.answer,
                evidence=question.evidence,
                first=read.side(pair.first),
                second=read.side(pair.second),
            )


def flips_viewer(compared: AnswersCompared, prefix: str) -> Viewer:
    """The flipped questions with both answers and their judgments; it can be filtered by pair and change."""
    seen = {name for pair in compared.pairs for name in flips_of(compared, pair)}
    return viewer_of(
        _entries(compared, prefix),
        id=f"{prefix}-viewer",
        noun="questions that flipped",
        states=[name for name in CHANGES if name in seen],
        systems=[compared.title(pair) for pair in compared.pairs],
        system_noun="pair",
    )


def _entries(compared: AnswersCompared, prefix: str) -> Iterator[Entry]:
    numbers = {pair: number for number, pair in enumerate(compared.pairs)}
    for count, (question, flips) in enumerate(_by_question(compared), start=1):
        read = _Read(compared, question)
        outcomes: list[tuple[str, ...]] = [() for _ in numbers]
        for pair, how in flips:
            outcomes[numbers[pair]] = (how,)
        places = list(dict.fromkeys(place for pair, _ in flips for place in (pair.first, pair.second)))
        said = [answer for place in places for answer in read.answers(place)]
        blocks: list[Block] = [asked_view(question, said)]
        if len(compared.pairs) > 1:
            listed = "\n".join(f"{compared.title(pair)}: {how}" for pair, how in flips)
            blocks.append(Text(listed, label="What changed"))
        for place in places:
            rows = {answer_key(row): row for row in compared.results[place][question.id]}
            blocks += [
                answer_view(
                    question,
                    answer,
                    compared.name(place),
                    rows.get(answer_key(answer)),
                    [each for each in read.judgments(place) if answer_key(each) == answer_key(answer)],
                    places=tuple(numbers[pair] for pair, _ in flips if place in (pair.first, pair.second)),
                    folded=len(said) > 4,
                )
                for answer in read.answers(place)
            ]
        tally = Counter(how for _, how in flips)
        yield Entry(
            id=f"{prefix}-q{count}",
            name=question.id,
            title=cut(question.text, 160),
            marks=tuple((f"{how} {times:,}" if times > 1 else how, _tone(how)) for how, times in tally.items()),
            outcomes=tuple(outcomes),
            blocks=tuple(blocks),
        )


def _by_question(compared: AnswersCompared) -> Iterator[tuple[Question, list[tuple[Pair, str]]]]:
    """The questions that flipped in some pair, in the order they were asked, with how they did."""
    for question in compared.questions.values():
        flips = []
        for pair in compared.pairs:
            before = compared.results[pair.first].get(question.id)
            after = compared.results[pair.second].get(question.id)
            if before and after and (how := change(before, after)):
                flips.append((pair, how))
        if flips:
            yield question, flips


class _Read:
    """Answers and judgments of one question, read once for all pairs."""

    def __init__(self, compared: AnswersCompared, question: Question) -> None:
        self._compared = compared
        self._question = question
        self._answers: dict[int, list[Answer]] = {}
        self._judgments: dict[int, list[Judgment]] = {}

    def answers(self, place: Place) -> list[Answer]:
        if place.folder not in self._answers:
            self._answers[place.folder] = self._compared.sides[place.folder].answers.of(self._question.id)
        return [each for each in self._answers[place.folder] if (each.model, each.condition) == place.system]

    def judgments(self, place: Place) -> list[Judgment]:
        if place.folder not in self._judgments:
            self._judgments[place.folder] = self._compared.sides[place.folder].judgments.of(self._question.id)
        return [each for each in self._judgments[place.folder] if (each.model, each.condition) == place.system]

    def side(self, place: Place) -> FlippedSide:
        answers = self.answers(place)
        return FlippedSide(
            folder=self._compared.sides[place.folder].name,
            model=place.model,
            condition=place.condition,
            standing=_standing(self._compared.results[place][self._question.id]),
            shown=tuple(dict.fromkeys(passage.id for answer in answers for passage in answer.evidence)),
            answers=tuple(replace(answer, evidence=()) for answer in answers),
            judgments=tuple(self.judgments(place)),
        )


def _standing(rows: Sequence[Outcome]) -> str:
    if len(rows) == 1:
        return _state(rows[0]) + (f" ({rows[0].unscored})" if rows[0].unscored else "")
    right, lost = sum(row.correct is True for row in rows), sum(row.correct is None for row in rows)
    return f"{right} of {len(rows)} right" + (f", {lost} unscored" if lost else "")


def _state(row: Outcome) -> str:
    return "unscored" if row.correct is None else "right" if row.correct else "wrong"


def _tone(how: str) -> str:
    if how.endswith("→ right") or how.startswith("more"):
        return "right"
    return "wrong" if how.endswith("→ wrong") or how.startswith("fewer") else "unscored"
