"""A model that looks for instructions aimed at a model, beside the rules (`instructions`), which find plain wordings.

Each text that a request shows as material is looked at once, in pieces, before the request is made. What is found
counts like what the rules find. A text that rules have flagged already is not asked about, nor is one of a word or two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from hoofbeat.models import ChatRequest, Model
from hoofbeat.prompts.instructions import materials, text_instructions
from hoofbeat.prompts.library import load_prompt
from hoofbeat.records import Failure

_SHORTEST = 12
_LONGEST = 6_000
_OVERLAP = 300
_EXCERPT = 200


class InstructionCheck:
    """Looks at what requests show a model; `model` is the one that looks."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._found: dict[str, str] = {}
        self._turns = asyncio.Semaphore(model.backend.max_in_flight)

    @property
    def texts(self) -> int:
        """How many pieces of text were looked at."""
        return len(self._found)

    def by(self, model: Model) -> InstructionCheck:
        """A check by another model, such as one that only repeats its ledger."""
        return InstructionCheck(model)

    async def open(self) -> None:
        """Get ready inside the running event loop."""
        self._turns = asyncio.Semaphore(self.model.backend.max_in_flight)
        await self.model.backend.open()
        self.model.pacer.begin()

    async def found_in(self, request: ChatRequest) -> tuple[str, ...] | Failure:
        """What the request's material tells a model to do, as `model: words`; a failure where that can't be told."""
        found: dict[str, None] = {}
        for piece in dict.fromkeys(_pieces(request)):
            if piece not in self._found:
                said = await self._ask(piece)
                if isinstance(said, Failure):
                    return said
                self._found[piece] = said
            if self._found[piece]:
                found[self._found[piece]] = None
        return tuple(found)

    def requests_for(self, requests: Sequence[ChatRequest]) -> list[ChatRequest]:
        """What would be asked about these requests, each piece of text once."""
        return [_request(piece) for piece in dict.fromkeys(piece for each in requests for piece in _pieces(each))]

    async def _ask(self, piece: str) -> str | Failure:
        async with self._turns:
            told = await self.model.chat_json(_request(piece))
        if isinstance(told, Failure):
            return told
        if not told.value["for_a_model"]:
            return ""
        plain, words = " ".join(piece.split()), " ".join(str(told.value["words"]).split())
        at = plain.lower().find(words.lower()) if words else -1  # words that are not there are the checker's own
        excerpt = plain[at : at + len(words)] if at >= 0 else f"{plain[:60]} …"
        return f"{self.model.spec} says so: {excerpt[:_EXCERPT]}"


def _request(piece: str) -> ChatRequest:
    return load_prompt("instruction-check").request({"text": piece})


def _pieces(request: ChatRequest) -> Iterator[str]:
    """The texts between a request's fences that no rule has flagged; long ones in pieces that overlap."""
    for message in request.messages:
        for text in materials(message.content):
            if len(text) < _SHORTEST or text_instructions(text):
                continue
            for start in range(0, max(1, len(text) - _OVERLAP), _LONGEST - _OVERLAP):
                yield text[start : start + _LONGEST]
