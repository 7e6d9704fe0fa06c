"""The batch backend: requests as provider batch files, answers taken when they are there.

A batch folder is how work crosses an air gap, and costs half at the providers. Round by round:

1. Requests that neither ledger nor folder can answer are written to `requests-001.jsonl` (one JSON object a line:
   custom_id, method, url, body), and the command stops with exit code 4.
2. The user has the file answered and puts the provider's output file, under any other name ending in `.jsonl`, into
   the folder.
3. The same command takes the answers in and goes on. Requests of a file that was answered in part, or whose answer is
   an error worth another try, are asked again in the next file; requests of a file with no answer yet are waited for.

A request's custom_id is the beginning of its key with the number of its file, so that an answer tells which asking of
the request it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import BatchPending
from hoofbeat.models.requests import ChatRequest, Likelihood, Reply, ReplyPending, Trouble
from hoofbeat.models.wire import PLAIN, Dialect, chat_body, classify, read_chat
from hoofbeat.store.files import output_errors
from hoofbeat.store.tables import read_jsonl, write_jsonl

_MAX_REQUESTS_PER_FILE = 50_000
_MAX_BYTES_PER_FILE = 180_000_000
_KEY_LENGTH = 40  # with the file's number, within the 64 characters that providers allow
_REQUESTS = re.compile(r"requests-(\d+)\.jsonl")
_ID = re.compile(rf"([0-9a-f]{{{_KEY_LENGTH}}})-(\d+)")


class _Request(msgspec.Struct):
    custom_id: str


class _Response(msgspec.Struct):
    status_code: int
    body: msgspec.Raw = msgspec.Raw(b"null")


class _Answer(msgspec.Struct):
    custom_id: str
    response: _Response | None = None
    error: object = None


class BatchBackend:
    """Requests to and answers from one folder."""

    def __init__(self, folder: Path, name: str, *, identity: str = "", dialect: Dialect = PLAIN) -> None:
        self.identity = dialect.identity(identity or f"batch#{name}")
        self.max_in_flight = 1024
        self._folder = folder
        self._name = name
        self._dialect = dialect
        self._answers: dict[str, Reply | Trouble] = {}
        self._waiting: set[str] = set()
        self._outbox: dict[str, dict[str, object]] = {}
        self._still_waiting = 0
        self._last_number = 0

    async def open(self) -> None:
        """Read the folder: which requests were written, which answers have come."""
        self._answers, self._waiting, self._outbox, self._still_waiting = {}, set(), {}, 0
        with output_errors(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True)
        asked: dict[int, set[str]] = {}
        answered: set[int] = set()
        for path in sorted(self._folder.glob("*.jsonl")):
            name = _REQUESTS.fullmatch(path.name)
            if name:
                asked[int(name.group(1))] = {_split(line.custom_id)[0] for line in read_jsonl(path, _Request)}
            else:
                answered |= self._take(path)
        self._last_number = max([0, *asked, *answered])
        for number, keys in asked.items():
            if number not in answered:
                self._waiting |= keys

    def _take(self, path: Path) -> set[int]:
        """Take a file's answers in; returns the numbers of the request files they answer."""
        numbers = set()
        for line in read_jsonl(path, _Answer):
            key, number = _split(line.custom_id)
            numbers.add(number)
            outcome: Reply | Trouble
            if line.response is None:
                outcome = Trouble(kind="server-error", message=f"batch error: {line.error}", retryable=True)
            elif line.response.status_code == 200:
                outcome = read_chat(bytes(line.response.body))
            else:
                outcome = classify(line.response.status_code, {}, bytes(line.response.body))
            if not isinstance(outcome, Trouble) or not isinstance(self._answers.get(key), Reply):
                self._answers[key] = outcome
        return numbers

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """The answer from the folder; without one, the request is set down for the next file."""
        short = key[:_KEY_LENGTH]
        outcome = self._answers.get(short)
        if isinstance(outcome, Reply) or (isinstance(outcome, Trouble) and not outcome.retryable and not outcome.fatal):
            return outcome
        if short in self._waiting:
            self._still_waiting += 1
        else:
            self._outbox[short] = chat_body(self._name, request, self._dialect)
        raise ReplyPending

    async def close(self) -> None:
        """Write the requests that wait, and stop the command if there are any."""
        written = []
        entries = self._outbox
        self._outbox = {}
        for part in _parts(entries):
            self._last_number += 1
            path = self._folder / f"requests-{self._last_number:03d}.jsonl"
            write_jsonl(path, (_line(key, self._last_number, entries[key]) for key in part))
            written.append(path.name)
        waiting = f"; {self._still_waiting} earlier requests still wait" if self._still_waiting else ""
        if written:
            raise BatchPending(
                f"{len(entries)} requests were written to {', '.join(written)}{waiting}",
                where=str(self._folder),
                fix="have them answered, put the answers file (any other name ending in .jsonl) into the folder, "
                "and run the same command again",
            )
        if self._still_waiting:
            raise BatchPending(
                f"{self._still_waiting} requests still wait for their answers",
                where=str(self._folder),
                fix="put the answers file (any other name ending in .jsonl) into the folder and run the command again; "
                "to ask anew, remove the requests file",
            )

    async def abandon(self) -> None:
        """Forget the requests that were set down: the next run sets them down again."""
        self._outbox = {}

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:  # noqa: ARG002
        """Batch endpoints don't score continuations."""
        return Trouble(kind="unsupported", message="a batch folder can't give log-likelihoods")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:  # noqa: ARG002
        """Batch folders hold chat requests only."""
        return Trouble(kind="unsupported", message="a batch folder can't give embeddings")


def _split(custom_id: str) -> tuple[str, int]:
    """Key and file number of a custom_id; one that Hoofbeat did not write stands for no request."""
    match = _ID.fullmatch(custom_id)
    return (match.group(1), int(match.group(2))) if match else ("", 0)


def _line(key: str, number: int, body: dict[str, object]) -> dict[str, object]:
    return {"custom_id": f"{key}-{number:03d}", "method": "POST", "url": "/v1/chat/completions", "body": body}


def _parts(bodies: dict[str, dict[str, object]]) -> Iterator[list[str]]:
    """The keys of the requests in the order of the keys, cut where a file would be too long or too large."""
    part: list[str] = []
    size = 0
    for key in sorted(bodies):
        length = len(msgspec.json.encode(bodies[key])) + 200
        if part and (len(part) == _MAX_REQUESTS_PER_FILE or size + length > _MAX_BYTES_PER_FILE):
            yield part
            part, size = [], 0
        part.append(key)
        size += length
    if part:
        yield part
