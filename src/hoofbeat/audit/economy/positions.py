"""Positions: the answers to one question sorted into groups that agree, by one call for some twenty answers.

Pairs grow with the square of the sources, answers do not. A model that reads all answers to a question at once can say
which of them agree; a judge then compares the groups instead of all pairs. More answers than one call can read are
sorted in rounds: each call is shown the positions known so far, one line each, and puts its answers there or opens new
ones. Sources are masked by numbers, in an order that the seed decides.

A position only decides which pairs are judged, so what a model does wrong here costs calls before it costs labels: an
answer that it forgets, names twice or can't sort holds a position by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct

from hoofbeat.models import ChatRequest, Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Failure, Question
from hoofbeat.text import cut, one_line
from hoofbeat.window import room_for, size, tokens_at_most

PROMPT = "positions"
ANSWERS_IN_A_CALL = 20
"""More answers than this are sorted in rounds: a model that reads many at once begins to forget some."""

MIN_ANSWERS = 4
"""Three answers have three pairs: sorting them costs a call and could save one."""

_MAX_LINE = 200
_FENCE = 48
"""What the tags around an answer take."""


class Position(Struct, frozen=True):
    """Answers that agree, by their places, the plainest first; and what they say in one line."""

    members: tuple[int, ...]
    line: str = ""


class SortedAnswers(Struct, frozen=True):
    """The positions of one question's answers; `calls` and `failed` count the calls made, and those without a use."""

    positions: tuple[Position, ...]
    calls: int = 0
    failed: int = 0


def sorting_calls(answers: int) -> int:
    """How many calls sort this number of answers, where the window has room."""
    return -(-answers // ANSWERS_IN_A_CALL) if answers >= MIN_ANSWERS else 0


def positions_request(question: Question, texts: Sequence[str], known: Sequence[str], pack: Pack) -> ChatRequest:
    """The call that sorts these answers into the positions that are known by their lines, or into new ones."""
    return pack.prompt(PROMPT).request(
        {
            "question": question.full_text,
            "reader": pack.reader,
            "agreeing": [label for label in pack.judged if not label.diverges],
            "diverging": [label for label in pack.judged if label.diverges],
            "absent": pack.absent,
            "decision": pack.decision.strip(),
            "positions": "\n".join(f"{number}. {line}" for number, line in enumerate(known, 1)) or "(none)",
            "answers": list(texts),
        }
    )


def sort_answers(
    model: Model, asked: Sequence[tuple[Question, Sequence[str]]], pack: Pack, *, progress: Progress = SILENT
) -> list[SortedAnswers]:
    """The positions of each question's answers, several questions at once; answers are known by their places."""

    async def work(item: tuple[Question, Sequence[str]]) -> SortedAnswers:
        question, texts = item
        found = _Positions()
        for places in _rounds(question, texts, found, model, pack):
            shown = [texts[place] for place in places]
            outcome = await model.chat_json(positions_request(question, shown, found.lines, pack))
            found.add(places, None if isinstance(outcome, Failure) else outcome.value["positions"])
        return found.result()

    return model.run(asked, work, title="sorting answers", progress=progress)


class _Positions:
    """Positions as they grow, round by round. Answers that were not sorted are kept apart and are no known position."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._members: list[list[int]] = []
        self._alone: list[int] = []
        self._calls = 0
        self._failed = 0

    def add(self, places: Sequence[int], said: object) -> None:
        """Take in what a call said of the answers at these places; None where it failed."""
        self._calls += 1
        if not isinstance(said, list):
            self._failed += 1
            self._alone += places
            return
        named = Counter(number for each in said for number in each["members"])
        sorted_here = {number for number, count in named.items() if count == 1 and number <= len(places)}
        before = len(self.lines)
        for each in said:
            members = [places[number - 1] for number in each["members"] if number in sorted_here]
            if not members:
                continue
            if 1 <= each["known"] <= before:
                self._members[each["known"] - 1] += members
            else:
                self._members.append(members)
                self.lines.append(cut(one_line(each["line"]), _MAX_LINE))
        self._alone += [place for number, place in enumerate(places, 1) if number not in sorted_here]

    def result(self) -> SortedAnswers:
        """All positions, those of answers that were not sorted last."""
        found = [Position(tuple(each), line) for each, line in zip(self._members, self.lines, strict=True)]
        return SortedAnswers((*found, *(Position((place,)) for place in self._alone)), self._calls, self._failed)


def _rounds(
    question: Question, texts: Sequence[str], found: _Positions, model: Model, pack: Pack
) -> Iterator[list[int]]:
    """The places of the answers of each call: as many as it can read, and at least one."""
    empty = positions_request(Question(id="", text=""), (), (), pack)
    prompt = int(sum(tokens_at_most(message.content) for message in empty.messages))
    left = list(range(len(texts)))
    while left:
        room = room_for(
            model.context, prompt=prompt, output=empty.max_tokens, beside=(question.full_text, *found.lines)
        )
        chosen: list[int] = []
        while left and len(chosen) < ANSWERS_IN_A_CALL:
            room -= size(texts[left[0]]) + _FENCE
            if chosen and room < 0:
                break
            chosen.append(left.pop(0))
        yield chosen
