"""The loop every fetch shares: check what is there, then a few workers over the rest, one outcome an article.

A failed article never stops the others. Many failing in a row with the network's own troubles mean that the service
is down or has blocked us: then the run stops and says so, and the same command goes on later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.fetch.checks import damage, file_md5
from hoofbeat.corpus.fetch.client import Client, Failed, Gone, discard
from hoofbeat.corpus.fetch.folder import FetchedFile, FetchFolder, FetchResult, Outcome, Planned
from hoofbeat.errors import InputError
from hoofbeat.progress import Progress, Task
from hoofbeat.store.files import file_sha256

__all__ = ["bring", "fetch_all", "unfinished"]

IN_A_ROW = 12
DAMAGED_TRIES = 3

Fetch = Callable[[Sequence[Planned]], Awaitable[Sequence[Outcome]]]


def unfinished(folder: FetchFolder, progress: Progress) -> list[Planned]:
    """The articles of the plan that still have to be fetched: not begun, in parts, or damaged since."""
    plan = folder.plan()
    known = [(each, folder.outcome(each.id)) for each in plan]
    with progress.task("Check what is there", sum(outcome is not None for _, outcome in known)) as task:
        left = []
        for each, outcome in known:
            if outcome is None or not folder.check(outcome):
                left.append(each)
            if outcome is not None:
                task.advance()
    return left


async def fetch_all(
    folder: FetchFolder, client: Client, fetch: Fetch, *, progress: Progress, title: str, batch: int = 1
) -> FetchResult:
    """Fetch every article that is still to be had, `batch` at a time, and write the folder's lists."""
    left = unfinished(folder, progress)
    batches = [left[start : start + batch] for start in range(0, len(left), batch)]
    with progress.task(title, len(left)) as task:
        run = _Run(folder, client, fetch, iter(batches), task)
        workers = [asyncio.create_task(run.work()) for _ in range(min(client.connection.connections, len(batches)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            counts = folder.finish()
    return FetchResult(path=folder.path, counts=counts, new=folder.new, requests=client.requests, bytes=client.bytes)


class _Run:
    def __init__(
        self, folder: FetchFolder, client: Client, fetch: Fetch, left: Iterator[Sequence[Planned]], task: Task
    ) -> None:
        self.folder, self.client, self.fetch, self.left, self.task = folder, client, fetch, left, task
        self.in_a_row = 0

    async def work(self) -> None:
        for articles in self.left:
            for outcome in await self._outcomes(articles):
                self.folder.keep(outcome)
            self.task.advance(len(articles))
            if self.client.troubles:
                self.task.note(f"{self.client.bytes / 1e6:.1f} MB, {self.client.troubles} troubles on the way")

    async def _outcomes(self, articles: Sequence[Planned]) -> Sequence[Outcome]:
        try:
            outcomes = await self.fetch(articles)
        except Gone as err:
            outcomes = [Outcome(id=each.id, outcome="gone", reason=f"not there: {err}") for each in articles]
        except Failed as err:
            self.in_a_row = self.in_a_row + 1 if err.passing else 0
            if self.in_a_row >= IN_A_ROW:
                raise InputError(
                    f"{IN_A_ROW} requests in a row came to nothing: {err.reason}",
                    where=str(self.folder.path),
                    fix="check the network and the service's status; the same command later goes on where it was",
                ) from err
            return [Outcome(id=each.id, outcome="failed", reason=err.reason) for each in articles]
        self.in_a_row = 0
        return outcomes


async def bring(
    folder: FetchFolder, client: Client, planned: Planned, *, url: str, path: str, file: str, md5: str = ""
) -> FetchedFile:
    """Download one file of an article into its part and check it; a damaged one is fetched again, from its start.

    `path` is what is recorded as its place at the service, `file` its name below `articles/`.
    """
    name = file.rpartition("/")[2]
    part = folder.part(planned.id, name)
    trouble = ""
    for _ in range(DAMAGED_TRIES):
        arrived = await client.download(url, part)
        trouble = await asyncio.to_thread(_wrong, part, name, md5)
        if not trouble:
            digest = await asyncio.to_thread(file_sha256, part)
            return FetchedFile(
                id=planned.id,
                file=file,
                url=path,
                size=arrived.size,
                sha256=digest,
                licence=planned.licence,
                updated=planned.updated or arrived.updated,
                retracted=planned.retracted,
            )
        discard(part)
        client.troubles += 1
    raise Failed(f"damaged every time: {trouble}")


def _wrong(part: Path, name: str, md5: str) -> str:
    if md5 and file_md5(part) != md5:
        return "its MD5 is not the one the service states"
    return damage(part, name)
