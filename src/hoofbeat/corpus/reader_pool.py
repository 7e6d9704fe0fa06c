"""The reading processes of an import: files go out as processes become free, answers come back in the files' order.

Reading runs apart from the import, so that a file on which a parser crashes, hangs or eats the memory costs that file
and nothing else. The two sides speak in frames (length, MessagePack) over the process's standard streams. What a file
yields goes back in one frame, or through a file in the task's folder when it is large.

Each process has a few files to go on with. At most a few answers wait for their turn, so memory does not grow with the
number of files. A process that dies, or that gives no sign of life for too long, takes only the file it was reading
with it; another one is started in its place and reads the rest.
"""

from __future__ import annotations

import hashlib
import os
import queue
import shutil
import signal
import struct
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO, Self

import msgspec
from msgspec import Struct

from hoofbeat.corpus.image_store import ImageStore
from hoofbeat.corpus.reader import DocumentWithImages, check_file, read_entries
from hoofbeat.errors import InputError
from hoofbeat.store.atomic_files import file_sha256

MAX_FRAME = 4_000_000
MAX_MEMORY = 6 << 30
BEAT_EVERY = 0.5

_LENGTH = struct.Struct("<Q")


class ReadJob(Struct, frozen=True, array_like=True):
    """One file to read: its path, the folder for its images, the mapping for tables, facets for its documents."""

    number: int
    path: str
    folder: str
    mapping: str
    facets: dict[str, str]


class ImportedDocument(Struct, frozen=True, array_like=True, tag=True):
    """A document as a line of the table, with what decides whether it is new: id and hash of its text."""

    id: str
    digest: bytes
    line: bytes
    empty: bool = False
    images: int = 0
    images_missing: int = 0


class UnreadableDocument(Struct, frozen=True, array_like=True, tag=True):
    """A document, or a whole file (no member), that can't be read."""

    member: str
    reason: str
    group: str


Item = ImportedDocument | UnreadableDocument


class Heartbeat(Struct, frozen=True, array_like=True, tag=True):
    """A sign of life from a long file: so many documents so far."""

    documents: int


class ReadResult(Struct, frozen=True, array_like=True, tag=True):
    """A file is read: its hash (empty when it could not be opened) and its items, inline or in a spill file."""

    number: int
    digest: bytes
    items: list[Item]
    spill: str = ""


_encoder = msgspec.msgpack.Encoder()


def send(stream: IO[bytes], message: Struct) -> None:
    """Write one frame."""
    data = _encoder.encode(message)
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """Read one frame, or None where the other side has gone."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    data = stream.read(_LENGTH.unpack(head)[0])
    return data if len(data) == _LENGTH.unpack(head)[0] else None


def serve() -> None:
    """Answer jobs on standard input until it closes."""
    with suppress(ValueError, OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    _limit_memory()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not land among the answers
    decoder = msgspec.msgpack.Decoder(ReadJob)
    while (data := receive(sys.stdin.buffer)) is not None:
        job = decoder.decode(data)
        with suppress(BrokenPipeError):
            send(answers, process(job, lambda count: send(answers, Heartbeat(count))))


def process(job: ReadJob, beat: Callable[[int], None] | None = None) -> ReadResult:
    """Read one file."""
    folder = Path(job.folder)
    spill = _Spill(folder / "items")
    digest = b""
    beats = time.monotonic()
    count = 0
    try:
        check_file(Path(job.path), mapping=job.mapping)
        found = file_sha256(Path(job.path))
        digest = bytes.fromhex(found)
        for item in _items(job, folder, found):
            spill.add(item)
            count += 1
            if beat is not None and time.monotonic() - beats > BEAT_EVERY:
                beats = time.monotonic()
                beat(count)
    except InputError as err:
        spill.add(UnreadableDocument("", err.what, err.what.partition(":")[0]))
    except MemoryError:
        spill.add(
            UnreadableDocument(
                "", "file refused as hostile: reading it needs too much memory", "file refused as hostile"
            )
        )
    except RecursionError:
        spill.add(UnreadableDocument("", "file refused as hostile: nested too deep", "file refused as hostile"))
    except Exception as err:  # one file's trouble, even if it is ours, is never the import's
        spill.add(
            UnreadableDocument(
                "", f"the reader broke down on it: {type(err).__name__}: {err}", "the reader broke down on it"
            )
        )
    if folder.exists():
        shutil.rmtree(folder / "scratch", ignore_errors=True)
    return spill.done(job.number, digest)


def _items(job: ReadJob, folder: Path, digest: str) -> Iterator[Item]:
    seen: set[str] = set()
    for entry in read_entries(Path(job.path), folder / "scratch", mapping=job.mapping, digest=digest):
        if isinstance(entry, DocumentWithImages):
            yield _taken(entry, job, folder, seen)
        else:
            yield UnreadableDocument(entry.member, entry.reason, entry.group)


def _taken(entry: DocumentWithImages, job: ReadJob, folder: Path, seen: set[str]) -> ImportedDocument:
    document = entry.document
    if job.facets:
        document = msgspec.structs.replace(document, facets={**document.facets, **job.facets})
    images = ImageStore(folder)
    if document.text and document.id not in seen:
        document = images.keep(document, entry.images)
    seen.add(document.id)
    return ImportedDocument(
        document.id,
        hashlib.sha256(document.text.encode()).digest(),
        msgspec.json.encode(document),
        not document.text,
        images.copied,
        images.missing,
    )


class _Spill:
    """Items on their way back: in memory while they are few, in a file when they grow large."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._items: list[Item] = []
        self._held = 0
        self._stream: IO[bytes] | None = None

    def add(self, item: Item) -> None:
        """Take one more."""
        self._items.append(item)
        self._held += len(item.line) if isinstance(item, ImportedDocument) else 100
        if self._held > MAX_FRAME:
            self._write()

    def _write(self) -> None:
        if self._stream is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._stream = self._path.open("wb")
        for item in self._items:
            send(self._stream, item)
        self._items, self._held = [], 0

    def done(self, number: int, digest: bytes) -> ReadResult:
        """The answer."""
        if self._stream is None:
            return ReadResult(number, digest, self._items)
        self._write()
        self._stream.close()
        return ReadResult(number, digest, [], str(self._path))


def _limit_memory() -> None:
    """Ask the system to stop this process, not the machine, when a file makes it grow without end."""
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every system

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY, hard))


PATIENCE = 120.0
AHEAD = 8
DEPTH = 3

_decode = msgspec.msgpack.Decoder(ReadResult | Heartbeat).decode
_SERVE = "import sys; sys.path[:] = {path!r}; from hoofbeat.corpus.reader_pool import serve; serve()"


def available_cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


class _Worker:
    """One process and the thread that listens to it."""

    def __init__(self, answers: queue.Queue[tuple[_Worker, bytes | None]]) -> None:
        command = [sys.executable, "-P", "-c", _SERVE.format(path=sys.path)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self.jobs: deque[ReadJob] = deque()
        self.heard = time.monotonic()
        self._answers = answers
        threading.Thread(target=self._listen, daemon=True).start()

    def give(self, job: ReadJob) -> None:
        """Hand over one more file; it reads them in the order given."""
        assert self.process.stdin is not None
        if not self.jobs:
            self.heard = time.monotonic()
        self.jobs.append(job)
        with suppress(BrokenPipeError):  # a dead process is heard of through its closed stream
            send(self.process.stdin, job)

    def stop(self) -> None:
        """End the process now."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    def _listen(self) -> None:
        assert self.process.stdout is not None
        data: bytes | None = b""
        while data is not None:
            try:
                data = receive(self.process.stdout)
            except (OSError, ValueError):
                data = None
            self._answers.put((self, data))


class ReaderPool:
    """So many reading processes; use as a context manager, which ends them however the block is left."""

    def __init__(self, workers: int, *, patience: float = PATIENCE) -> None:
        self._most = max(1, workers)
        self._patience = patience
        self._answers: queue.Queue[tuple[_Worker, bytes | None]] = queue.Queue()
        self._workers: list[_Worker] = []
        self._again: deque[ReadJob] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def read(self, jobs: Iterable[ReadJob], on_beat: Callable[[int], None] | None = None) -> Iterator[ReadResult]:
        """The answers to all jobs, in their order."""
        waiting = iter(jobs)
        order: deque[int] = deque()
        ready: dict[int, ReadResult] = {}
        while True:
            while (self._again or len(order) < self._most * AHEAD) and (worker := self._free()) is not None:
                job = self._again.popleft() if self._again else next(waiting, None)
                if job is None:
                    break
                if job.number not in order:
                    order.append(job.number)
                worker.give(job)
            if not order:
                return
            if order[0] in ready:
                yield ready.pop(order.popleft())
                continue
            for done in self._heard(on_beat):
                ready[done.number] = done

    def _free(self) -> _Worker | None:
        """The process with least to do, if it can take more; a further one is started when those there are all busy."""
        least = min(self._workers, key=lambda worker: len(worker.jobs), default=None)
        if least is not None and not least.jobs:
            return least
        if len(self._workers) < self._most:
            self._workers.append(_Worker(self._answers))
            return self._workers[-1]
        return least if least is not None and len(least.jobs) < DEPTH else None

    def _heard(self, on_beat: Callable[[int], None] | None) -> Iterator[ReadResult]:
        """Wait for the next answer; files whose process died or hangs are answered for it."""
        try:
            worker, data = self._answers.get(timeout=min(1.0, self._patience / 4))
        except queue.Empty:
            yield from self._impatient()
            return
        if worker not in self._workers:
            return
        if data is None:
            worker.process.wait()
            yield from self._lost(worker, f"the reader broke down on it ({_ending(worker.process.returncode)})")
            return
        answer = _decode(data)
        worker.heard = time.monotonic()
        if isinstance(answer, Heartbeat):
            if on_beat is not None:
                on_beat(answer.documents)
        else:
            worker.jobs.popleft()
            yield answer

    def _impatient(self) -> Iterator[ReadResult]:
        now = time.monotonic()
        for worker in list(self._workers):
            if worker.jobs and now - worker.heard > self._patience:
                yield from self._lost(worker, f"reading it took too long: no document in {self._patience:g} s")

    def _lost(self, worker: _Worker, reason: str) -> Iterator[ReadResult]:
        self._workers.remove(worker)
        worker.stop()
        if worker.jobs:
            group = reason.partition(" (")[0].partition(":")[0]
            yield ReadResult(worker.jobs.popleft().number, b"", [UnreadableDocument("", reason, group)])
            self._again.extend(worker.jobs)


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
