"""Judges with a known skill, behind a real server: what each says follows from the pair it is shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable

from aiohttp import web

from hoofbeat.audit.pair_judge import fenced_text
from hoofbeat.audit.sample_records import TrialPair
from hoofbeat.audit.validation.judge_trial import trial_pairs
from hoofbeat.prompts import load_pack
from tests.answering.support import asked_for, wire_text
from tests.models.fault_server import FaultServer

Say = Callable[[str], str]
"""From all that a call says to the label, or to any other text."""


class Judge(FaultServer):
    """A server that answers every comparison with a label, or with a text that is none; other calls as ever."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self.say = say

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if "classification" not in asked_for(body):
            return await super()._chat(request)
        said = self.say(wire_text(body))
        record = {"reasoning": "Invented.", "classification": said, "topic": "weeks", "significance": "none"}
        text = json.dumps(record) if " " not in said else said
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        return await self._play(request, body, text, {"model": body["model"], "choices": [choice]})


def perfect(pack: str) -> Say:
    """Knows every planted relation of a pack's example."""
    known = trial_pairs(load_pack(pack), limit=10_000, seed=0)

    def fits(pair: TrialPair, text: str) -> bool:
        return all(f"\n{fenced_text(each)}\n" in text for each in (pair.text, pair.answer_a, pair.answer_b))

    return lambda text: next(pair.planted for pair in known if fits(pair, text))


def constant(label: str) -> Say:
    """Says the same of all pairs."""
    return lambda _: label


def random(seed: int) -> Say:
    """Draws a label for each call, the same one again for the same call."""
    labels = [label.name for label in load_pack("transplant").judged]

    def say(text: str) -> str:
        return labels[hashlib.sha256(f"{seed} {text}".encode()).digest()[0] % len(labels)]

    return say


def first_is_stricter(text: str) -> str:
    """Goes by whichever answer stands first: the label hangs on the order."""
    first = text.split('name="answer of source A"')[1].split("</material>", maxsplit=1)[0]
    return "Divergent" if hashlib.sha256(first.encode()).digest()[0] % 2 else "Consistent"


def failing(_: str) -> str:
    """Never writes what was asked for."""
    return "I would rather talk about the weather."
