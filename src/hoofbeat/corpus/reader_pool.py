"""The reading processes of an import: files go out as processes become free, answers come back in the files' order.

Each process has a few files to go on with. At most a few answers wait for their turn, so memory does not grow with the
number of files. A process that dies, or that gives no sign of life for too long, takes only the file it was reading
with it; another one is started in its place and reads the rest.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Self

import msgspec

from hoofbeat.corpus.reader_worker import Heartbeat, ReadJob, ReadResult, UnreadableDocument, receive, send

__all__ = ["PATIENCE", "ReaderPool", "available_cores"]

PATIENCE = 120.0
AHEAD = 8
DEPTH = 3

_decode = msgspec.msgpack.Decoder(ReadResult | Heartbeat).decode
_SERVE = "import sys; sys.path[:] = {path!r}; from hoofbeat.corpus.reader_worker import serve; serve()"


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
