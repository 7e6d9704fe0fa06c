"""The loop every fetch shares: check what is there, then a few workers over the rest, one outcome per article.

A failed article never stops the others. Many failing in a row with the network's own troubles mean that the service
is down or has blocked us: then the run stops and says so, and the same command goes on later.

Whether a file arrived whole is told from the file itself, since a stated length can be wrong and a proxy can answer in
a server's place: packages are read to their checksum at the end, XML must end with the tag it began with.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.fetch.client import Client, FetchError, NotAvailableError, discard
from hoofbeat.corpus.fetch.fetch_folder import FetchedFile, FetchFolder, FetchOutcome, FetchResult, PlannedArticle
from hoofbeat.errors import InputError
from hoofbeat.progress import Progress, Task
from hoofbeat.store.atomic_files import file_sha256

IN_A_ROW = 12
DAMAGED_TRIES = 3

Fetch = Callable[[Sequence[PlannedArticle]], Awaitable[Sequence[FetchOutcome]]]


def unfinished(folder: FetchFolder, progress: Progress) -> list[PlannedArticle]:
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
        self, folder: FetchFolder, client: Client, fetch: Fetch, left: Iterator[Sequence[PlannedArticle]], task: Task
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

    async def _outcomes(self, articles: Sequence[PlannedArticle]) -> Sequence[FetchOutcome]:
        try:
            outcomes = await self.fetch(articles)
        except NotAvailableError as err:
            outcomes = [FetchOutcome(id=each.id, outcome="gone", reason=f"not there: {err}") for each in articles]
        except FetchError as err:
            self.in_a_row = self.in_a_row + 1 if err.passing else 0
            if self.in_a_row >= IN_A_ROW:
                raise InputError(
                    f"{IN_A_ROW} requests in a row came to nothing: {err.reason}",
                    where=str(self.folder.path),
                    fix="check the network and the service's status; the same command later goes on where it was",
                ) from err
            return [FetchOutcome(id=each.id, outcome="failed", reason=err.reason) for each in articles]
        self.in_a_row = 0
        return outcomes


async def bring(
    folder: FetchFolder, client: Client, planned: PlannedArticle, *, url: str, path: str, file: str, md5: str = ""
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
    raise FetchError(f"damaged every time: {trouble}")


def _wrong(part: Path, name: str, md5: str) -> str:
    if md5 and file_md5(part) != md5:
        return "its MD5 is not the one the service states"
    return damage(part, name)


MAX_UNPACKED = 20 * 1024**3
MAX_MEMBERS = 20_000

_ROOT = re.compile(rb"<(?![?!])([A-Za-z_][\w:.-]*)")
_PROLOGUE = re.compile(rb"<\?.*?\?>|<!--.*?-->|<!DOCTYPE(?:[^\[>]|\[.*?\])*>", re.DOTALL)
_BLOCK = 1 << 20


def damage(path: Path, name: str) -> str:
    """What is wrong with a file that is to be called `name`; empty when nothing is."""
    low = name.lower()
    if path.stat().st_size == 0:
        return "the file is empty"
    if low.endswith((".tar.gz", ".tgz")):
        return _package_damage(path)
    if low.endswith(".gz"):
        return _gzip_damage(path)
    if low.endswith((".xml", ".nxml")):
        return _xml_damage(path)
    return ""


def file_md5(path: Path) -> str:
    """The MD5 of a file, which some services give as its checksum; never used against an adversary."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _package_damage(path: Path) -> str:
    """Read the whole archive: gzip's own checksum comes at its end, and every member's header must make sense."""
    seen = 0
    try:
        with tarfile.open(path, "r|gz") as archive:
            for _ in archive:
                seen += 1
                if seen > MAX_MEMBERS:
                    return f"refused: more than {MAX_MEMBERS} files in the package"
    except (tarfile.TarError, OSError, EOFError, zlib.error) as err:
        return f"not a whole .tar.gz: {err}"
    if not seen:
        return "not a whole .tar.gz: no file in it"
    return _gzip_damage(path)


def _gzip_damage(path: Path) -> str:
    size = 0
    try:
        with gzip.open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                size += len(block)
                if size > MAX_UNPACKED:
                    return f"refused: unpacks to more than {MAX_UNPACKED} bytes"
    except (OSError, EOFError, zlib.error) as err:
        return f"not a whole gzip file: {err}"
    return ""


def _xml_damage(path: Path) -> str:
    with path.open("rb") as stream:
        head = stream.read(256 * 1024)
        stream.seek(max(0, path.stat().st_size - 4096))
        tail = stream.read().rstrip()
    root = _ROOT.search(_PROLOGUE.sub(b"", head))
    if root is None:
        return "not an XML file"
    if root.group(1).lower() == b"html":
        return "a web page, not an article"
    closing = re.compile(rb"</" + re.escape(root.group(1)) + rb"\s*>(?:\s*<!--.*?-->)*$", re.DOTALL)
    return "" if closing.search(tail) else "the XML breaks off before its end"
