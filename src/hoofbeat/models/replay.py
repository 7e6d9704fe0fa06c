"""The replay backend: answers from a file, for tests and for showing a run again without its model.

Each line is either an entry of `hoofbeat ledger export`, matched by what was asked, whichever model was, or a rule
`{"contains": "...", "text": "..."}`, whose text is given to every request that contains those words; the first rule
that fits is taken. `finish` may be given too.

The first line may say who wrote the replies and when: `{"recorded": {"by": "...", "on": "2026-11-17"}}`. The model's
identity then says so wherever it is shown, and each other line is a ledger entry without its request, matched by its
key: small enough to be packaged. `replay:teaching` is the recording of the demo.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.models.requests import ChatRequest, Finish, Likelihood, Reply, Trouble, likelihood_content
from hoofbeat.records import Usage
from hoofbeat.store.files import file_sha256
from hoofbeat.store.tables import UNREADABLE, canonical_json, read_jsonl

T = TypeVar("T")

RECORDED_BY = "recorded: written by "
"""How the identity of every recorded model begins."""

_REPLIES: dict[str, Any] = {"chat": Reply, "loglikelihood": Likelihood, "embed": list[float], "rerank": float}


class _Asked(msgspec.Struct):
    operation: str
    request: msgspec.Raw


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Who wrote the replies of a replay file, when and how, and how many tokens the writer read at most."""

    by: str
    on: str
    how: str = ""
    context: int | None = None

    @property
    def identity(self) -> str:
        """The name of the model wherever it is shown."""
        return f"{RECORDED_BY}{self.by} on {self.on}"


class _Line(msgspec.Struct):
    recorded: Recording | None = None
    key: str = ""
    request: _Asked | None = None
    reply: msgspec.Raw = msgspec.Raw()
    contains: str | None = None
    text: str = ""
    finish: Finish = "stop"


class ReplayBackend:
    """Answers recorded in one JSONL file."""

    def __init__(self, path: Path) -> None:
        self.identity = f"replay:{file_sha256(path)[:12]}"
        self.max_in_flight = 16
        self.context: int | None = None
        self._kept: dict[tuple[str, bytes], object] = {}
        self._recorded: dict[str, Reply] = {}
        self._rules: list[tuple[str, Reply]] = []
        for number, line in enumerate(read_jsonl(path, _Line), start=1):
            if line.recorded is not None and number == 1:
                self.identity, self.context = line.recorded.identity, line.recorded.context
            elif line.request is not None and line.request.operation in _REPLIES and bytes(line.reply):
                operation = line.request.operation
                reply = _reply(line, operation, number, path)
                content = canonical_json(msgspec.json.decode(line.request.request))
                self._kept.setdefault((operation, _hash(content)), reply)
            elif line.key and bytes(line.reply):
                self._recorded[line.key] = _reply(line, "chat", number, path)
            elif line.contains is not None:
                usage = Usage(tokens_out=len(line.text.split()))
                self._rules.append((line.contains, Reply(text=line.text, finish=line.finish, usage=usage)))
            else:
                raise InputError(
                    f"record {number} is neither a ledger entry nor a rule",
                    where=str(path),
                    fix='give {"contains": "...", "text": "..."} or a line of hoofbeat ledger export',
                )

    def _find(self, operation: str, content: object, kind: type[T]) -> T | None:
        kept = self._kept.get((operation, _hash(canonical_json(content))))
        return kept if isinstance(kept, kind) else None

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""

    async def abandon(self) -> None:
        """There is nothing to release."""

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """The recorded reply."""
        kept = self._recorded.get(key) or self._find("chat", request.content(), Reply)
        if kept is not None:
            return kept
        whole = "\n".join(message.content for message in request.messages)
        for words, reply in self._rules:
            if words in whole:
                return reply
        return Trouble(kind="bad-request", message="the replay file has no answer to this request")

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """The recorded log-likelihood."""
        kept = self._find("loglikelihood", likelihood_content(context, continuation, exact=exact), Likelihood)
        return kept or Trouble(kind="unsupported", message="the replay file has no such log-likelihood")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """The recorded embeddings."""
        rows = [self._find("embed", text, list) for text in texts]
        if any(row is None for row in rows):
            return Trouble(kind="unsupported", message="the replay file lacks embeddings of these texts")
        return np.array(rows, dtype=np.float32)

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        """The recorded scores."""
        scores = [self._find("rerank", [query, text], float) for text in texts]
        if any(score is None for score in scores):
            return Trouble(kind="unsupported", message="the replay file lacks relevance scores of these texts")
        return [score for score in scores if score is not None]


def recording_of(path: Path) -> Recording | None:
    """Who wrote the replies of a file, where its first line says so."""
    first = next(iter(read_jsonl(path, _Line)), None) if path.is_file() else None
    return first.recorded if first is not None else None


def recorded_in_words(models: Iterable[str]) -> str:
    """Which of these models' replies were recorded earlier and only replayed: by whom and when; empty for none."""
    names = sorted({name.removeprefix(RECORDED_BY) for name in models if name.startswith(RECORDED_BY)})
    return " ".join(f"Recorded replies, replayed here: written by {name}." for name in names)


def _reply(line: _Line, operation: str, number: int, path: Path) -> Any:
    try:
        return msgspec.json.decode(line.reply, type=_REPLIES[operation])
    except UNREADABLE as err:
        raise InputError(
            f"record {number} has no {operation} reply: {err}", where=str(path), fix="export it again"
        ) from err


def _hash(content: bytes) -> bytes:
    return hashlib.sha256(content).digest()
