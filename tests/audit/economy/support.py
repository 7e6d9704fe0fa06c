"""Planted positions: answers whose position is known, a model that sorts them (rightly or not), and a judge."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from aiohttp import web

from hoofbeat.audit.economy.positions import Position, SortedAnswers
from hoofbeat.audit.pair_plan import Claim, PairVerdict
from hoofbeat.records import Question
from tests.answering.support import ScriptedServer, asked_for

_POSITION = re.compile(r"position (\w+)")
_ANSWER = re.compile(r'<material name="answer (\d+)">\n(.*?)\n</material>', re.DOTALL)
_SIDES = re.compile(r'<material name="answer of source [AB]">\n(.*?)\n</material>', re.DOTALL)
_KNOWN = re.compile(r"^(\d+)\. (\w+)$", re.MULTILINE)


def said(position: str, source: str) -> str:
    """An answer that holds this position, in words of its own."""
    return f"As {source} says it, position {position} is right."


def position_of(text: str) -> str:
    found = _POSITION.search(text)
    assert found is not None
    return found.group(1)


def planted(positions: str) -> list[Claim]:
    """Claims of s000, s001, … that hold these positions, a letter each; a dot is a silent source."""
    return [
        Claim(f"s{number:03}", absent=True) if letter == "." else Claim(f"s{number:03}", said(letter, f"s{number:03}"))
        for number, letter in enumerate(positions)
    ]


def relation(one: str, two: str) -> str:
    """The label of two positions: the same agree, `i` finds the evidence insufficient."""
    if one == two:
        return "Consistent"
    return "Insufficient" if "i" in (one, two) else "Divergent"


class PlantedServer(ScriptedServer):
    """Sorts answers and judges pairs by their planted positions; `sorts_as` says what it takes a position for."""

    def __init__(self, sorts_as: Callable[[str], str] = str) -> None:
        super().__init__()
        self.sorts_as = sorts_as

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        user = next(message["content"] for message in body["messages"] if message["role"] == "user")
        fields = asked_for(body)
        reply: dict[str, Any]
        if "positions" in fields:
            reply = {"positions": self._sorted(user)}
        elif "classification" in fields:
            label = relation(*map(position_of, _SIDES.findall(user)))
            level = "none" if label == "Consistent" else "low"
            reply = {"classification": label, "reasoning": "So.", "topic": "position", "significance": level}
        else:
            return await super()._chat(request)
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(reply)}}
        return await self._play(request, body, user, {"model": body["model"], "choices": [choice]})

    def _sorted(self, user: str) -> list[dict[str, Any]]:
        known = {line: int(number) for number, line in _KNOWN.findall(user)}
        groups: dict[str, list[int]] = {}
        for number, text in _ANSWER.findall(user):
            groups.setdefault(self.sorts_as(position_of(text)), []).append(int(number))
        return [{"known": known.get(name, 0), "members": each, "line": name} for name, each in groups.items()]


class InMemory:
    """Sorting and judging without a server, for audits of many pairs; `judged` counts the pairs."""

    def __init__(self, sorts_as: Callable[[str], str] = str) -> None:
        self.sorts_as = sorts_as
        self.judged = 0

    def sort(self, asked: Sequence[tuple[Question, Sequence[str]]]) -> list[SortedAnswers]:
        found = []
        for _, texts in asked:
            groups: dict[str, list[int]] = {}
            for place, text in enumerate(texts):
                groups.setdefault(self.sorts_as(position_of(text)), []).append(place)
            found.append(SortedAnswers(tuple(Position(tuple(each), name) for name, each in groups.items()), 1))
        return found

    def judge(self, items: Sequence[tuple[Question, str, str]], title: str) -> list[PairVerdict]:
        assert title
        self.judged += len(items)
        return [PairVerdict(label=relation(position_of(a), position_of(b)), reasoning="So.") for _, a, b in items]
