"""The ledger: every model call, keyed by the content of its request, written before its result is used.

It is the only durable mutable state beside the review store: a SQLite file, or for teams and clusters a PostgreSQL
database (`ledger_places`). Here is what both share: the entries, and the claims on calls in flight.

A process claims a key before it makes the call. Another process that needs the same call waits for the answer instead
of paying for it again. A claim ends with its process, however that ends, because the system or the server holds it.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, Self

import msgspec

COLUMNS = "key,model,operation,prompt,request,reply,tokens_in,tokens_out,seconds,made"
_COMPRESS_OVER = 1000
_MAX_UNPACKED = 200_000_000  # bytes: no call that was kept is as large
_PAGE = 500
_FIRST_PAUSE = 0.01
_LONGEST_PAUSE = 0.25


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it is kept: who was asked what (canonical JSON) and what came back."""

    key: str
    model: str
    operation: str
    prompt: str = ""
    request: msgspec.Raw
    reply: msgspec.Raw
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    made: int = 0


class LedgerStats(msgspec.Struct, frozen=True, kw_only=True):
    """What a ledger holds, by model and operation."""

    calls: int
    bytes: int
    by_model: list[dict[str, str | int | float]]
    troubles: dict[str, dict[str, int]]


class LedgerRow(NamedTuple):
    """A call as the database holds it; long requests and replies are compressed."""

    key: bytes
    model: str
    operation: str
    prompt: str
    request: bytes
    reply: bytes
    tokens_in: int
    tokens_out: int
    seconds: float
    made: int

    @classmethod
    def of(cls, entry: LedgerEntry) -> LedgerRow:
        """The row that holds an entry."""
        return cls(
            bytes.fromhex(entry.key),
            entry.model,
            entry.operation,
            entry.prompt,
            _pack(bytes(entry.request)),
            _pack(bytes(entry.reply)),
            entry.tokens_in,
            entry.tokens_out,
            entry.seconds,
            entry.made,
        )

    def entry(self) -> LedgerEntry:
        """The entry that the row holds."""
        return LedgerEntry(
            key=self.key.hex(),
            model=self.model,
            operation=self.operation,
            prompt=self.prompt,
            request=msgspec.Raw(unpack(self.request)),
            reply=msgspec.Raw(unpack(self.reply)),
            tokens_in=self.tokens_in,
            tokens_out=self.tokens_out,
            seconds=self.seconds,
            made=self.made,
        )


def _pack(data: bytes) -> bytes:
    """Compressed where that is worth the time; JSON never begins with the `x` that zlib's output begins with."""
    return zlib.compress(data, 1) if len(data) > _COMPRESS_OVER else data


def unpack(data: bytes) -> bytes:
    """The original JSON of what a database holds; empty, and not JSON, where it is damaged."""
    if not isinstance(data, bytes):  # SQLite keeps values of any type in any column
        return b""
    if data[:1] != b"x":
        return data
    inflating = zlib.decompressobj()
    try:
        found = inflating.decompress(data, _MAX_UNPACKED)
    except zlib.error:
        return b""
    return found if inflating.eof else b""


def conditions(values: Mapping[str, object]) -> tuple[str, list[object]]:
    """A WHERE clause of those conditions that have a value, and the values."""
    given = {clause: value for clause, value in values.items() if value is not None}
    return (" WHERE " + " AND ".join(given) if given else ""), list(given.values())


class _RequestHeader(msgspec.Struct):
    """What a request says of itself."""

    model: str
    operation: str


def row_damage(row: LedgerRow) -> str:
    """Why a row can't be what Hoofbeat kept under its key; empty where it can.

    A key is the hash of its request, which names the model and the operation. A reply is not part of the key: whoever
    can write to the ledger can change it, so a ledger from others is trusted as far as they are.
    """
    request = unpack(row.request)
    if not isinstance(row.key, bytes) or hashlib.sha256(request).digest() != row.key:
        return "its request is not the one that its key was made from"
    try:
        header = msgspec.json.decode(request, type=_RequestHeader)
        msgspec.json.decode(unpack(row.reply))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "its reply can't be read"
    if (header.model, header.operation) != (row.model, row.operation):
        return "its request names another model or operation"
    return ""


class EarlierReplies(msgspec.Struct, frozen=True, kw_only=True):
    """Replies that were in the ledger before this command: how many, and when the first and the last were made."""

    count: int = 0
    first: int = 0
    last: int = 0


class Claims(NamedTuple):
    """The result of claiming keys: those that are ours to call, and replies that are already there."""

    ours: set[str]
    replies: dict[str, bytes]


class CallLedger(ABC):
    """An open ledger. Use it as a context manager, or call `close`."""

    place: str
    """Where it is, as users may read it: without a password."""

    def __init__(self) -> None:
        self._claimed: set[str] = set()
        self._opened = int(time.time())
        self.earlier = EarlierReplies()
        """Which replies of earlier commands this one was given; a key that is asked for twice counts twice."""

    def _given(self, reply: bytes, made: int) -> bytes:
        """A reply that is given out, counted where it is from before."""
        if isinstance(made, int) and made < self._opened:
            known = self.earlier
            made = max(0, made)  # a file may say anything
            first = min(known.first, made) if known.count else made
            self.earlier = EarlierReplies(count=known.count + 1, first=first, last=max(known.last, made))
        return unpack(reply)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Write what is pending and close the ledger."""

    @abstractmethod
    def get(self, key: str) -> bytes | None:
        """The reply kept for this key, as JSON bytes, or None."""

    @abstractmethod
    async def look_up(self, key: str) -> bytes | None:
        """The same inside an event loop, which goes on with other calls meanwhile."""

    @abstractmethod
    def known(self, keys: Sequence[str]) -> set[str]:
        """Which of these keys are in the ledger."""

    @abstractmethod
    def put(self, entry: LedgerEntry) -> asyncio.Future[bytes | None]:
        """Keep a call; await the result before using the reply. Calls that come together are committed together.

        Where another process has kept the same call first, the result is its reply: that one counts.
        """

    @abstractmethod
    def trouble(self, model: str, kind: str) -> None:
        """Count an attempt that brought no reply (rate limit, error, cut connection); written with the next calls."""

    @abstractmethod
    def flush(self) -> None:
        """Write what is pending now."""

    @abstractmethod
    def sync(self) -> None:
        """Write what is pending and have the disk hold it: results outlast a power failure."""

    @abstractmethod
    def prune(self, *, model: str | None = None, before: int | None = None) -> int:
        """Remove calls of one model and/or made before a Unix time; returns how many, and gives the space back."""

    @abstractmethod
    def stats(self) -> LedgerStats:
        """Counts, tokens, seconds and size, by model and operation."""

    def count_by_prompt(self, model: str) -> dict[str, int]:
        """How many calls of a model there are, by the name of their prompt, whatever its version."""
        found: dict[str, int] = {}
        for prompt, count in self._prompts(model):
            name = prompt.partition("@")[0]
            found[name] = found.get(name, 0) + count
        return found

    @abstractmethod
    def remove(self, key: str) -> None:
        """Remove one call, whose reply can't be read."""

    @abstractmethod
    def _prompts(self, model: str) -> list[tuple[str, int]]:
        """The prompts of a model's calls, with how many calls each has."""

    @abstractmethod
    def rows_of(self, keys: Collection[bytes]) -> list[LedgerRow]:
        """The rows of those keys that are there, in the order of their keys."""

    @abstractmethod
    def _page(self, after: bytes, count: int, *, model: str | None, operation: str | None) -> list[LedgerRow]:
        """The next rows in the order of their keys."""

    @abstractmethod
    def add_rows(self, rows: Iterable[LedgerRow]) -> int:
        """Add rows, all or none; returns how many were new."""

    def add_all(self, entries: Iterable[LedgerEntry]) -> int:
        """Take in calls kept elsewhere (an export), all or none; returns how many were new."""
        return self.add_rows(map(LedgerRow.of, entries))

    def pages(self, *, model: str | None = None, operation: str | None = None) -> Iterator[list[LedgerRow]]:
        """All rows, or those of one model or operation, in the order of their keys; some hundred at a time."""
        after = b""
        while page := self._page(after, _PAGE, model=model, operation=operation):
            yield page
            after = page[-1].key

    def entries(self, *, model: str | None = None, operation: str | None = None) -> Iterator[LedgerEntry]:
        """All calls, or those of one model or operation, in the order of their keys; damaged ones are left out."""
        for page in self.pages(model=model, operation=operation):
            yield from (row.entry() for row in page if unpack(row.request) and unpack(row.reply))

    # Claims on calls in flight

    async def claim(self, key: str) -> bytes | None:
        """Wait until the call is ours to make (None), or another has made it: then its reply.

        Whoever gets None makes the call, keeps it, and then calls `release`.
        """
        pause = _FIRST_PAUSE
        while True:
            ours, replies = await self.try_claims([key])
            if ours or replies:
                return replies.get(key)
            await asyncio.sleep(pause)
            pause = min(_LONGEST_PAUSE, 1.5 * pause)

    async def try_claims(self, keys: Collection[str]) -> Claims:
        """Claim those keys that nobody else has claimed, without waiting for others.

        A key that was claimed is looked up once more: whoever had it before may have kept the reply meanwhile.
        """
        free = [key for key in keys if key not in self._claimed]
        self._claimed.update(free)
        ours: set[str] = set()
        try:
            ours = await self._lock(free)
            replies = await self._replies(keys)
        except BaseException:
            for key in ours:
                self._unlock(key)
            ours = set()
            raise
        finally:
            self._claimed.difference_update(set(free) - ours)
        for key in ours & replies.keys():
            self.release(key)
        return Claims(ours - replies.keys(), replies)

    def release(self, key: str) -> None:
        """End a claim: the call is kept, or it failed and another may try."""
        self._claimed.discard(key)
        self._unlock(key)

    @abstractmethod
    async def _lock(self, keys: Collection[str]) -> set[str]:
        """Lock those of the keys that no other process has locked. A task that is cancelled here has locked none."""

    @abstractmethod
    def _unlock(self, key: str) -> None:
        """Give a lock back."""

    @abstractmethod
    async def _replies(self, keys: Collection[str]) -> dict[str, bytes]:
        """The replies that are there now."""
