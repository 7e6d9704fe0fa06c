"""This machine: parts in processes or threads, as many as there are cores.

Processes start when there is work for more than a moment: until then parts are worked on here, which for small work is
quicker than starting a process. Each process has a few parts waiting, and at most a few results wait for their turn, so
memory does not grow with the number of parts. A part whose process dies is given to another process, once where the
part is guarded (the part may be what killed it), a few times elsewhere.
"""

from __future__ import annotations

import math
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from hoofbeat.engine.engine import Part, PartGuard, Result, available_cores
from hoofbeat.engine.worker import Beat, Done, Raised, receive, send_bytes
from hoofbeat.errors import ClusterError

AHEAD = 8
DEPTH = 3
_DEATHS = 3
_WARM_UP = 1.0
_SERVE = "import sys; sys.path[:] = {path!r}; from hoofbeat.engine.worker import serve; serve(guarded={guarded})"


class LocalEngine:
    """The engine of this machine."""

    name = "local"

    def map(
        self,
        work: Callable[[Part], Result],
        parts: Iterable[Part],
        *,
        threads: bool = False,
        workers: int | None = None,
        guard: PartGuard | None = None,
        on_beat: Callable[[int], None] | None = None,
        sees: Sequence[Path] = (),  # noqa: ARG002 - all is here
        home: Callable[[Part], int] | None = None,
        gpu: bool = False,  # noqa: ARG002 - GPUs of this machine are there for all
    ) -> Iterator[Result]:
        """The result of `work` for each part, in the order of the parts (`Engine.map`)."""
        if home is not None:
            yield from map(work, parts)
            return
        count = workers or available_cores()
        if threads and count > 1:
            yield from _in_threads(work, parts, count)
            return
        rest = iter(parts)
        if guard is None:
            enough = _WARM_UP if count > 1 and _can_leave(work) else math.inf
            for part in rest:
                began = time.monotonic()
                result = work(part)
                enough -= time.monotonic() - began
                yield result
                if enough < 0:
                    break
            else:
                return
        with ProcessPool(work, count, guard) as pool:
            yield from pool.map(rest, on_beat)

    def gpus(self) -> int:
        """None are handed out (`Engine.gpus`)."""
        return 0

    def close(self) -> None:
        """Nothing is held between two calls."""


def _in_threads(work: Callable[[Part], Result], parts: Iterable[Part], count: int) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(max(1, count)) as pool:
        try:
            for part in parts:
                waiting.append(pool.submit(work, part))
                if len(waiting) > count:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)


def _can_leave(work: object) -> bool:
    """Whether work can be sent to another process; a function inside another, say, stays here."""
    try:
        pickle.dumps(work)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True


class _Job(NamedTuple):
    """A part, its number, and how often a process died on it."""

    number: int
    part: Any
    deaths: int = 0


class _Worker:
    """One process, the thread that listens to it and the thread that writes to it."""

    def __init__(self, work: bytes, guarded: bool, answers: queue.SimpleQueue[tuple[_Worker, bytes | None]]) -> None:
        command = [sys.executable, "-P", "-c", _SERVE.format(path=sys.path, guarded=guarded)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603
        self.jobs: deque[_Job] = deque()
        self.heard = time.monotonic()
        self._answers = answers
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._outbox.put(work)
        for target in (self._listen, self._write):
            threading.Thread(target=target, daemon=True).start()

    def give(self, job: _Job) -> None:
        """Hand over one more part; it works on them in the order given."""
        if not self.jobs:
            self.heard = time.monotonic()
        self.jobs.append(job)
        self._outbox.put(pickle.dumps(job.part, pickle.HIGHEST_PROTOCOL))

    def stop(self) -> None:
        """End the process now."""
        self._outbox.put(None)
        self.process.kill()
        self.process.wait()

    def _write(self) -> None:
        assert self.process.stdin is not None
        with suppress(OSError, ValueError):  # a dead process is heard of through its closed stream
            while (data := self._outbox.get()) is not None:
                send_bytes(self.process.stdin, data)
        with suppress(OSError):
            self.process.stdin.close()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        data: bytes | None = b""
        while data is not None:
            try:
                data = receive(self.process.stdout)
            except (OSError, ValueError):
                data = None
            self._answers.put((self, data))
        self.process.stdout.close()


class ProcessPool:
    """At most `workers` processes for one piece of work; use as a context manager, which ends them in any case."""

    def __init__(self, work: Callable[[Any], Any], workers: int, guard: PartGuard | None) -> None:
        self._work = pickle.dumps(work, pickle.HIGHEST_PROTOCOL)
        self._most = max(1, workers)
        self._guard = guard
        self._answers: queue.SimpleQueue[tuple[_Worker, bytes | None]] = queue.SimpleQueue()
        self._workers: list[_Worker] = []
        self._again: deque[_Job] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()
        self._workers = []

    def map(self, parts: Iterable[Any], on_beat: Callable[[int], None] | None = None) -> Iterator[Any]:
        """The results of all parts, in their order."""
        waiting = (_Job(number, part) for number, part in enumerate(parts))
        order: deque[int] = deque()
        ready: dict[int, Any] = {}
        while True:
            while (self._again or len(order) < self._most * AHEAD) and (worker := self._free()) is not None:
                job = self._again.popleft() if self._again else next(waiting, None)
                if job is None:
                    break
                if not job.deaths and job.number not in order:
                    order.append(job.number)
                worker.give(job)
            if not order:
                return
            if order[0] in ready:
                yield ready.pop(order.popleft())
                continue
            ready.update(self._heard(on_beat))

    def _free(self) -> _Worker | None:
        """The process with least to do, if it can take more; a further one is started when those there are all busy."""
        least = min(self._workers, key=lambda worker: len(worker.jobs), default=None)
        if least is not None and not least.jobs:
            return least
        if len(self._workers) < self._most:
            self._workers.append(_Worker(self._work, self._guard is not None, self._answers))
            return self._workers[-1]
        return least if least is not None and len(least.jobs) < DEPTH else None

    def _heard(self, on_beat: Callable[[int], None] | None) -> Iterator[tuple[int, Any]]:
        """Wait for the next answer; parts whose process died or hangs are answered for it."""
        patience = self._guard.patience if self._guard else 4.0
        try:
            worker, data = self._answers.get(timeout=min(1.0, patience / 4))
        except queue.Empty:
            yield from self._impatient()
            return
        if worker not in self._workers:
            return
        if data is None:
            worker.process.wait()
            yield from self._lost(worker, _ending(worker.process.returncode))
            return
        answer: Beat | Done | Raised = pickle.loads(data)  # noqa: S301 - from a process of ours
        worker.heard = time.monotonic()
        if isinstance(answer, Raised):
            raise answer.error
        if isinstance(answer, Done):
            yield worker.jobs.popleft().number, answer.result
        elif on_beat is not None:
            on_beat(answer.items)

    def _impatient(self) -> Iterator[tuple[int, Any]]:
        now = time.monotonic()
        for worker in list(self._workers) if self._guard else ():
            assert self._guard is not None
            if worker.jobs and now - worker.heard > self._guard.patience:
                reason = f"reading it took too long: no document in {self._guard.patience:g} s"
                job = self._removed(worker)
                yield job.number, self._guard.instead(job.part, reason)

    def _lost(self, worker: _Worker, ending: str) -> Iterator[tuple[int, Any]]:
        """A process died: its part is tried again, until it is plain that the part is what kills."""
        if not worker.jobs:
            self._workers.remove(worker)
            worker.stop()
            return
        job = self._removed(worker)
        job = job._replace(deaths=job.deaths + 1)
        if job.deaths < (2 if self._guard else _DEATHS):
            self._again.appendleft(job)
        elif self._guard:
            yield job.number, self._guard.instead(job.part, f"the reader crashed on it ({ending})")
        else:
            raise ClusterError(
                f"{job.deaths} processes died on the same part of the work ({ending})",
                fix="check that the machine has enough memory, then run the same command again",
            )

    def _removed(self, worker: _Worker) -> _Job:
        """End a process; the part that it worked on, while the others wait for another process."""
        self._workers.remove(worker)
        worker.stop()
        job = worker.jobs.popleft()
        self._again.extend(worker.jobs)
        return job


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
