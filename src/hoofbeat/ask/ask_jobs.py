"""Asks at work in the background: a few at a time, found again by an id that nobody can guess, stopped on request."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hoofbeat.ask.ask_records import AskRequest, AskResult
from hoofbeat.errors import HoofbeatError
from hoofbeat.models import ChatRequest, Likelihood, Model, Reply
from hoofbeat.models.requests import Backend, Trouble
from hoofbeat.progress import Task

JobState = Literal["waiting", "working", "done", "failed", "stopped"]


class ServerBusyError(HoofbeatError):
    """More is asked than the server takes at a time."""


class AskCancelledError(HoofbeatError):
    """Whoever asked does not want it any more."""


class AskJob:
    """One ask on its way. `version` goes up whenever there is more to show."""

    def __init__(self, ask: AskRequest, corpora: Sequence[str]) -> None:
        self.id = secrets.token_urlsafe(24)
        self.ask = ask
        self.corpora = tuple(corpora)
        self.state: JobState = "waiting"
        self.step = "other cases come first"
        self.done = 0
        self.total: int | None = None
        self.version = 0
        self.found: AskResult | None = None
        self.what = ""
        self.fix = ""
        self.made = time.monotonic()
        self.stopping = threading.Event()

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""
        return self.state in ("done", "failed", "stopped")

    def tell(self, found: AskResult) -> None:
        """Show what is there so far; ends the work where it was stopped."""
        self.check()
        self.found = found
        self.version += 1

    def check(self) -> None:
        """Raise where the ask was stopped."""
        if self.stopping.is_set():
            raise AskCancelledError("this was stopped")

    def end(self, state: JobState, what: str = "", fix: str = "") -> None:
        """Say how it ended; what was stopped stays stopped."""
        if self.state != "stopped":
            self.state, self.what, self.fix = state, what, fix
            self.version += 1

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Task]:
        """A step of the work, as progress is told."""
        self.check()
        self.step, self.done, self.total = title, 0, total
        yield self

    def advance(self, steps: int = 1) -> None:
        """So many more are done."""
        self.done += steps

    def note(self, text: str) -> None:
        """Remarks are not shown."""


class AskQueue:
    """All asks of a server: `max_running` at work, `waiting` more in line; the latest `kept` are shown for an hour."""

    def __init__(self, *, max_running: int = 2, waiting: int = 8, kept: int = 100, seconds: float = 3600.0) -> None:
        self.max_running, self.waiting, self.kept, self.seconds = max_running, waiting, kept, seconds
        self._jobs: OrderedDict[str, AskJob] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(max_running)

    def start(self, job: AskJob, work: Callable[[AskJob], None]) -> AskJob:
        """Begin a job in a separate thread, or refuse it where too many are under way."""
        with self._lock:
            self._forget()
            busy = sum(not each.over for each in self._jobs.values())
            if busy >= self.max_running + self.waiting:
                raise ServerBusyError(
                    f"this server is busy with {busy} other cases",
                    fix="wait a minute and ask again; your text is still in the form",
                )
            self._jobs[job.id] = job
        threading.Thread(target=self._run, args=(job, work), daemon=True, name="ask").start()
        return job

    def get(self, name: str) -> AskJob | None:
        """The job of this id, where it is still kept."""
        with self._lock:
            self._forget()
            return self._jobs.get(name)

    def stop(self, name: str) -> AskJob | None:
        """Stop a job: no call is begun any more; one that is under way ends, and its answer stays in the ledger."""
        job = self.get(name)
        if job is not None and not job.over:
            job.stopping.set()
            job.end("stopped", "You stopped this.")
        return job

    def _run(self, job: AskJob, work: Callable[[AskJob], None]) -> None:
        with self._turns:
            if job.over:
                return
            job.state = "working"
            try:
                work(job)
                job.end("done")
            except AskCancelledError:
                job.end("stopped", "You stopped this.")
            except HoofbeatError as err:
                job.end("failed", err.what, err.fix or "")
            except Exception as err:  # the text of an error may hold the case, so its kind has to do
                job.end("failed", f"an unexpected error ({type(err).__name__})", "please report it")

    def _forget(self) -> None:
        now = time.monotonic()
        for name, job in list(self._jobs.items()):
            if job.over and (now - job.made > self.seconds or len(self._jobs) > self.kept):
                del self._jobs[name]


def cancellable_model(model: Model, check: Callable[[], None]) -> Model:
    """The model, with `check` before each of its calls: what it raises ends the work once calls in flight are back."""
    model.backend = _Checking(model.backend, check)
    return model


class _Checking:
    """A backend that looks before each call whether it is still wanted; all else (keys to redact) is the backend's."""

    def __init__(self, backend: Backend, check: Callable[[], None]) -> None:
        self._backend = backend
        self._check = check
        self.identity = backend.identity
        self.max_in_flight = backend.max_in_flight

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def open(self) -> None:
        await self._backend.open()

    async def close(self) -> None:
        await self._backend.close()

    async def abandon(self) -> None:
        await self._backend.abandon()

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        self._check()
        return await self._backend.chat(request, key)

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        self._check()
        return await self._backend.loglikelihood(context, continuation, exact=exact)

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        self._check()
        return await self._backend.embed(texts)

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        self._check()
        return await self._backend.relevance(query, texts)
