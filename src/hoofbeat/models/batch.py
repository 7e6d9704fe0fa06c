"""The batch backend: requests as provider batch files, answers taken when they are there.

A batch folder is how work crosses an air gap, and costs half at the providers. Round by round:

1. Requests that neither ledger nor folder can answer are written to `requests-001.jsonl` in a provider's format
   (`batch_formats`), and the command stops with exit code 4.
2. The user has the file answered and puts the provider's output file, under any other name ending in `.jsonl`, into
   the folder.
3. The same command takes the answers in and goes on. Requests of a file that was answered in part, or whose answer is
   an error worth another try, are asked again in the next file; requests of a file with no answer yet are waited for.
   A line that can't be read costs that line only.

All requests of one command are one round, and one file where they fit: a step's file is written again with the
requests of the next step that does not need its answers.

A request's id is the beginning of its key with the number of its file, so that an answer tells which asking of the
request it answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import BatchPending, InputError
from hoofbeat.models.batch_formats import BatchFormat, asked_words, read_answer, request_id, request_line, unsupported
from hoofbeat.models.requests import ChatRequest, Likelihood, Reply, ReplyPending, Trouble
from hoofbeat.models.wire import PLAIN, Dialect
from hoofbeat.store.files import output_errors
from hoofbeat.store.tables import write_jsonl

_MAX_REQUESTS_PER_FILE = 50_000
_MAX_BYTES_PER_FILE = 180_000_000
KEY_LENGTH = 40  # with the file's number, within the 64 characters that providers allow (63 for a label of Vertex)
_REQUESTS = re.compile(r"requests-(\d+)\.jsonl")
_ID = re.compile(rf"([0-9a-f]{{{KEY_LENGTH}}})-(\d+)")
_NAMED_LINES = 3
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class BatchBackend:
    """Requests to and answers from one folder."""

    lacks = frozenset({"likelihoods"})

    def __init__(
        self,
        folder: Path,
        name: str,
        *,
        format: BatchFormat = "openai",
        identity: str = "",
        dialect: Dialect = PLAIN,
    ) -> None:
        self.identity = dialect.identity(identity or f"batch#{name}")
        self.max_in_flight = 1024
        self.folder = folder
        self.name = name
        self._format: BatchFormat = format
        self._dialect = dialect
        self._answers: dict[str, Reply | Trouble] = {}
        self._waiting: dict[str, int] = {}
        self._outbox: dict[str, ChatRequest] = {}
        self._waited_for: set[str] = set()
        self._notes: list[str] = []
        self._last_number = 0
        self._round: dict[str, ChatRequest] = {}  # what this command has written, from the file of this number on
        self._first = 0

    async def open(self) -> None:
        """Read the folder: which requests were written, and which answers are there."""
        self._answers, self._waiting, self._outbox, self._waited_for, self._notes = {}, {}, {}, set(), []
        with output_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        asked: dict[int, dict[str, bytes]] = {}
        answered: set[int] = set()
        paths = sorted(self.folder.glob("*.jsonl"), key=lambda path: (not _REQUESTS.fullmatch(path.name), path.name))
        for path in paths:  # requests first: answers are compared with them
            name = _REQUESTS.fullmatch(path.name)
            if name:
                asked[int(name.group(1))] = dict(_asked(path))
            elif path.is_file():
                answered |= self._take(path, asked)
        self._last_number = max([0, *asked, *answered])
        if self._first not in asked or any(number >= self._first for number in answered):
            self._round, self._first = {}, 0
        for number, keys in sorted(asked.items()):
            if number not in answered:
                self._waiting |= dict.fromkeys(keys, number)

    def _take(self, path: Path, asked: Mapping[int, Mapping[str, bytes]]) -> set[int]:
        """Take a file's answers in; returns the numbers of the request files they answer."""
        numbers: set[int] = set()
        broken: list[str] = []
        taken: dict[str, Reply | Trouble] = {}
        lines = 0
        for place, line in _lines(path):
            lines += 1
            try:
                id, outcome = read_answer(line)
                key, number = _split(id)
                if number in asked and key not in asked[number]:
                    raise ValueError(f"{id[:60]!r} is not the id of a request in requests-{number:03d}.jsonl")
                if number in asked and asked_words(line) not in (b"", asked[number][key]):
                    raise ValueError("it answers another request than ours with this id")
                if isinstance(before := taken.get(id), Reply) and isinstance(outcome, Reply) and before != outcome:
                    raise ValueError(f"a second, different answer to {id}; the first counts")
            except ValueError as err:
                broken.append(f"line {place} ({_short(err)})")
                continue
            taken[id] = outcome
            numbers.add(number)
            if not isinstance(outcome, Trouble) or not isinstance(self._answers.get(key), Reply):
                self._answers[key] = outcome
        if broken:
            named = ", ".join(broken[:_NAMED_LINES])
            more = f" and {len(broken) - _NAMED_LINES} more" if len(broken) > _NAMED_LINES else ""
            self._notes.append(f"{path.name}: {len(broken)} of {lines} lines can't be used: {named}{more}")
        return numbers

    @property
    def notes(self) -> tuple[str, ...]:
        """Which lines of answers files can't be used."""
        return tuple(self._notes)

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """The answer from the folder; without one, the request is set down for the next file."""
        short = key[:KEY_LENGTH]
        outcome = self._answers.get(short) or unsupported(request, self._format)
        if isinstance(outcome, Reply) or (isinstance(outcome, Trouble) and not outcome.retryable and not outcome.fatal):
            return outcome
        if short in self._waiting:
            self._waited_for.add(short)
        else:
            self._outbox[short] = request
        raise ReplyPending

    async def close(self) -> None:
        """Write the requests that wait, and stop the command if there are any."""
        new, self._outbox = self._outbox, {}
        if not new and not self._waited_for:
            return
        earlier = self._waited_for - set(self._round) if new else self._waited_for
        numbers = sorted({self._waiting[key] for key in self._waited_for})
        if new:
            self._round |= new
            self._first = self._first or self._last_number + 1
            numbers = []
            for number, part in enumerate(self._parts(self._round), start=self._first):
                lines = (self._line(key, number, self._round[key]) for key in part)
                write_jsonl(self.folder / f"requests-{number:03d}.jsonl", lines, private=True)
                numbers.append(number)
            self._last_number = numbers[-1]
        raise BatchPending(
            folder=str(self.folder),
            files=[f"requests-{number:03d}.jsonl" for number in numbers],
            written=len(new),
            waiting=len(earlier),
            round=numbers[0],
            notes=self._notes,
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

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:  # noqa: ARG002
        """Batch folders hold chat requests only."""
        return Trouble(kind="unsupported", message="a batch folder can't give relevance scores")

    def _line(self, key: str, number: int, request: ChatRequest) -> dict[str, object]:
        return request_line(f"{key}-{number:03d}", self.name, request, self._format, self._dialect)

    def _parts(self, entries: dict[str, ChatRequest]) -> Iterator[list[str]]:
        """The keys of the requests in the order of the keys, cut where a file would be too long or too large."""
        part: list[str] = []
        size = 0
        for key in sorted(entries):
            length = len(msgspec.json.encode(self._line(key, 0, entries[key]))) + 100
            if part and (len(part) == _MAX_REQUESTS_PER_FILE or size + length > _MAX_BYTES_PER_FILE):
                yield part
                part, size = [], 0
            part.append(key)
            size += length
        if part:
            yield part


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that hold something, with their numbers."""
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                content = line.removeprefix(_BYTE_ORDER_MARK).strip()
                if content:
                    yield number, content
    except OSError as err:
        raise InputError(f"the file can't be read: {err.strerror or err}", where=str(path), fix="check it") from err


def _asked(path: Path) -> Iterator[tuple[str, bytes]]:
    """The keys that a requests file of ours asks for, each with a hash of its words where answers repeat them."""
    for number, line in _lines(path):
        try:
            yield _split(request_id(line))[0], asked_words(line)
        except ValueError as err:
            raise InputError(
                f"line {number} of this requests file can't be read: {_short(err)}",
                where=str(path),
                fix="restore the file, or remove it: Hoofbeat then writes its requests again",
            ) from err


def _split(id: str) -> tuple[str, int]:
    """Key and file number of a request's id."""
    match = _ID.fullmatch(id)
    if not match:
        raise ValueError(f"{id[:60]!r} is not the id of a request in this folder")
    return match.group(1), int(match.group(2))


def _short(err: Exception) -> str:
    return str(err)[:120]
