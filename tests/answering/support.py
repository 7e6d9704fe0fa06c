"""What the tests of answering and judging share: documents, and an endpoint that says what a test wants said."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from aiohttp import web

from hoofbeat.answering import PlannedAnswer
from hoofbeat.audit.answers_by_source import PassageSearch
from hoofbeat.records import Document, Facets, Passage, Question, Section
from hoofbeat.retrieval import IndexSet, Retriever, chunk
from tests.models.fault_server import FaultServer, Seen
from tests.retrieval.support import HashedWords

_FENCED = re.compile(r'<material name="[^"<>\n]*">\n.*?\n</material>', re.DOTALL)


class Says(NamedTuple):
    """What the endpoint says to a call that asks for this field (`""`: for plain text) and contains these words."""

    asks: str
    words: str
    reply: str | dict[str, Any]
    finish: str = "stop"


class ScriptedServer(FaultServer):
    """The fault server, with replies of the test's own; what no line fits is answered as ever. Faults work, too."""

    def __init__(self, *script: Says, delay: float = 0.0) -> None:
        super().__init__(delay=delay)
        self.script = list(script)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        for line in self.script:
            if line.words in wire_text(body) and (line.asks in asked_for(body) if line.asks else not asked_for(body)):
                text = line.reply if isinstance(line.reply, str) else json.dumps(line.reply)
                choice = {"finish_reason": line.finish, "message": {"role": "assistant", "content": text}}
                user = next(message["content"] for message in body["messages"] if message["role"] == "user")
                return await self._play(request, body, user, {"model": body["model"], "choices": [choice]})
        return await super()._chat(request)

    def calls(self, asks: str) -> list[Seen]:
        """The calls received that asked for this field."""
        return [seen for seen in self.seen if asks in asked_for(seen.body)]


def asked_for(body: dict[str, Any]) -> dict[str, Any]:
    """The fields of the object a call asks for; none where it asks for plain text."""
    found: dict[str, Any] = (
        body.get("response_format", {}).get("json_schema", {}).get("schema", {}).get("properties", {})
    )
    return found


def wire_text(body: dict[str, Any]) -> str:
    """All that a call said, message by message."""
    return "\n".join(message["content"] for message in body["messages"])


def check_fenced(body: dict[str, Any], words: str, *, fences: int) -> None:
    """These words arrived, inside the fences only; there are so many, and nothing in them speaks the chat format."""
    text = wire_text(body)
    assert words in text
    outside, found = _FENCED.subn("", text)
    assert found == fences
    assert words not in outside
    assert "material name" not in outside
    assert "</material" not in outside
    assert not re.search(r"<\||\|>|\[/?INST\]|</?s>|<start_of_turn>|</?think>", text)


def a_document(id: str, *sections: tuple[str, str], facets: Facets | None = None) -> Document:
    """A document of these headings and texts."""
    text, laid = "", []
    for heading, words in sections:
        start, body = len(text), len(text) + len(heading) + 1
        text += f"{heading}\n{words}\n\n"
        laid.append(Section(heading=heading, level=1, start=start, body=body, end=body + len(words)))
    return Document(id=id, title=f"Handbook {id}", text=text.rstrip("\n"), sections=tuple(laid), facets=facets or {})


def passages_under(*headings: str) -> tuple[Passage, ...]:
    """A passage under each heading."""
    return tuple(
        Passage(id=f"d#{number}", document="d", text=f"Invented text {number}.", heading=heading)
        for number, heading in enumerate(headings)
    )


def a_plan(*headings: str, question: str = "May I have a bath?", source: str = "d") -> PlannedAnswer:
    """One question to one source of which these headings are shown."""
    asked = Question(id="q", text=question)
    return PlannedAnswer(question=asked, condition=source, passages=passages_under(*headings))


def search_in(documents: Sequence[Document], count: int = 3) -> PassageSearch:
    """A real search inside each of these documents."""
    pieces = [piece for document in documents for piece in chunk(document, size_words=40, overlap_words=0)]
    indexes = IndexSet.of_passages(pieces, encoder=lambda _: HashedWords())
    retriever = Retriever(indexes, "bm25")

    def search(asked: Sequence[Question], source: str) -> list[list[Passage]]:
        found = retriever.search_passages([(q.id, q.full_text) for q in asked], count, [source])
        return [[indexes.passage(hit.passage) for hit in hits] for hits in found]

    return search


def no_search(asked: Sequence[Question], source: str) -> list[list[Passage]]:
    """For plans that must not need one."""
    raise AssertionError(f"{source} was searched for {[question.id for question in asked]}")
