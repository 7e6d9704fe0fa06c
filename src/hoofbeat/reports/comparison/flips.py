"""The questions that flipped between two systems: right in one, wrong in the other, or without a score in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.flips import CHANGES, change, flips, standing, tone_of_change
from hoofbeat.records import Answer, Judgment, Question, Span
from hoofbeat.reports.answers_viewer import answer_key
from hoofbeat.reports.comparison.answers import AnswersComparison, FolderSystem, Pair
from hoofbeat.reports.item_views import answer_view, question_view
from hoofbeat.reports.model import Block, Entry, Text, Viewer
from hoofbeat.reports.packed_viewers import viewer_of
from hoofbeat.text import cut


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


class FlippedQuestion(Struct, frozen=True, kw_only=True):
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


def flips_of(compared: AnswersComparison, pair: Pair) -> Counter[str]:
    """How often each change happened between two systems, over the questions planned for both."""
    return flips(compared.results[pair.first], compared.results[pair.second])


def each_flipped(compared: AnswersComparison) -> Iterator[FlippedQuestion]:
    """Every flip, question by question; answers and judgments are read when it is their turn."""
    for question, found in _by_question(compared):
        read = _Read(compared, question)
        for pair, how in found:
            yield FlippedQuestion(
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


def flips_viewer(compared: AnswersComparison, prefix: str) -> Viewer:
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


def _entries(compared: AnswersComparison, prefix: str) -> Iterator[Entry]:
    numbers = {pair: number for number, pair in enumerate(compared.pairs)}
    for count, (question, found) in enumerate(_by_question(compared), start=1):
        read = _Read(compared, question)
        outcomes: list[tuple[str, ...]] = [() for _ in numbers]
        for pair, how in found:
            outcomes[numbers[pair]] = (how,)
        places = list(dict.fromkeys(place for pair, _ in found for place in (pair.first, pair.second)))
        said = [answer for place in places for answer in read.answers(place)]
        blocks: list[Block] = [question_view(question, said)]
        if len(compared.pairs) > 1:
            listed = "\n".join(f"{compared.title(pair)}: {how}" for pair, how in found)
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
                    places=tuple(numbers[pair] for pair, _ in found if place in (pair.first, pair.second)),
                    folded=len(said) > 4,
                )
                for answer in read.answers(place)
            ]
        tally = Counter(how for _, how in found)
        yield Entry(
            id=f"{prefix}-q{count}",
            name=question.id,
            title=cut(question.text, 160),
            marks=tuple(
                (f"{how} {times:,}" if times > 1 else how, tone_of_change(how)) for how, times in tally.items()
            ),
            outcomes=tuple(outcomes),
            blocks=tuple(blocks),
        )


def _by_question(compared: AnswersComparison) -> Iterator[tuple[Question, list[tuple[Pair, str]]]]:
    """The questions that flipped in some pair, in the order they were asked, with how they did."""
    for question in compared.questions.values():
        found = []
        for pair in compared.pairs:
            before = compared.results[pair.first].get(question.id)
            after = compared.results[pair.second].get(question.id)
            if before and after and (how := change(before, after)):
                found.append((pair, how))
        if found:
            yield question, found


class _Read:
    """Answers and judgments of one question, read once for all pairs."""

    def __init__(self, compared: AnswersComparison, question: Question) -> None:
        self._compared = compared
        self._question = question
        self._answers: dict[int, list[Answer]] = {}
        self._judgments: dict[int, list[Judgment]] = {}

    def answers(self, place: FolderSystem) -> list[Answer]:
        if place.folder not in self._answers:
            self._answers[place.folder] = self._compared.sides[place.folder].answers.of(self._question.id)
        return [each for each in self._answers[place.folder] if (each.model, each.condition) == place.system]

    def judgments(self, place: FolderSystem) -> list[Judgment]:
        if place.folder not in self._judgments:
            self._judgments[place.folder] = self._compared.sides[place.folder].judgments.of(self._question.id)
        return [each for each in self._judgments[place.folder] if (each.model, each.condition) == place.system]

    def side(self, place: FolderSystem) -> FlippedSide:
        answers = self.answers(place)
        return FlippedSide(
            folder=self._compared.sides[place.folder].name,
            model=place.model,
            condition=place.condition,
            standing=standing(self._compared.results[place][self._question.id]),
            shown=tuple(dict.fromkeys(passage.id for answer in answers for passage in answer.evidence)),
            answers=tuple(replace(answer, evidence=()) for answer in answers),
            judgments=tuple(self.judgments(place)),
        )
