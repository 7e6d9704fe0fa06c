"""The folder a fetch fills, and how it goes on where it was.

    articles/            what was fetched, under names Hoofbeat chose: this is what `corpus import` reads
    fetched.jsonl        every file: article, name, address path, licence, size, SHA-256, when it was last updated
    not_fetched.jsonl    what the service does not have, what the selection left out, what failed, each with the reason
    .fetch/              state: the selection, the plan page by page, the journal, and parts (`.part`) of files

The plan and the journal are only appended to, a line a step, and a line torn by a kill is dropped. A file is journalled
with its hash before it is renamed into place, so after a kill at any moment each article is whole, in parts, or not
begun; all three go on. When a run ends, journal and lists are written in the plan's order: the folder comes out the
same bytes whether the run was interrupted or not. It holds no clock time and no machine's path.

Every fetch runs the same loop: check what is there, then a few workers over the rest, one outcome per article. A failed
article never stops the others. Many network failures in a row mean that the service is down or has blocked us: then the
run stops and says so, and the same command goes on later. Whether a file arrived whole is told from the file itself,
since a stated length can be wrong and a proxy can answer in a server's place: packages are read to their checksum at
the end, XML must end with the tag it began with.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import os
import re
import shutil
import tarfile
import zlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.corpus.fetch.client import Client, FetchError, NotAvailableError, discard
from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.progress import Progress, Task
from hoofbeat.store import Counts
from hoofbeat.store.files import file_sha256, inside, output_errors, sync_folder, write_bytes
from hoofbeat.store.tables import UNREADABLE, canonical_json, write_jsonl

try:
    import fcntl
except ImportError:  # Windows: no lock, one fetch at a time is the user's care
    fcntl = None  # type: ignore[assignment]
ARTICLES = "articles"
FETCHED = "fetched.jsonl"
NOT_FETCHED = "not_fetched.jsonl"
STATE = ".fetch"
_TORN = re.compile(r"^\..+\.\d+\.part$")
T = TypeVar("T")


class PlannedArticle(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An article to fetch and what the list it came from says of it; `path` is its file's place at the service."""

    id: str
    path: str = ""
    licence: str = ""
    updated: str = ""
    retracted: bool = False


class FetchedFile(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One fetched file. `url` is the path at the service, without host and query."""

    id: str
    file: str
    url: str
    size: int
    sha256: str
    licence: str = ""
    updated: str = ""
    retracted: bool = False


class FetchOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of an article: kept with its files (or a service's answer), gone, left out, or failed."""

    id: str
    outcome: Literal["kept", "gone", "rejected", "failed"]
    reason: str = ""
    files: tuple[FetchedFile, ...] = ()
    answer: Any = None


class FetchResult(Struct, frozen=True, kw_only=True):
    """What a fetch brought: the folder, the counts (gone articles count as rejected), and this run's traffic."""

    path: Path
    counts: Counts
    new: int = 0
    requests: int = 0
    bytes: int = 0


class _Not(Struct, frozen=True, kw_only=True):
    id: str
    outcome: str
    reason: str


class _Page(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A page of the plan: its articles, where the next one begins, and whether this was the last."""

    articles: tuple[PlannedArticle, ...] = ()
    cursor: str = ""
    last: bool = False


class _State(Struct, frozen=True, kw_only=True):
    kind: str
    selection: dict[str, Any]


class FetchFolder:
    """An open fetch folder; see `open_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.state = path / STATE
        self.new = 0
        self._plan = self.state / "plan.jsonl"
        self._journal = self.state / "journal.jsonl"
        self._pages = list(_lines(self._plan, _Page))
        self._outcomes = {each.id: each for each in _lines(self._journal, FetchOutcome)}
        self._failed: dict[str, FetchOutcome] = {}

    @property
    def planned(self) -> bool:
        """Whether the plan is complete."""
        return bool(self._pages) and self._pages[-1].last

    @property
    def cursor(self) -> str:
        """Where the plan's next page begins."""
        return self._pages[-1].cursor if self._pages else ""

    def plan(self) -> list[PlannedArticle]:
        """The articles to fetch, each once, in order."""
        return list({each.id: each for page in self._pages for each in page.articles}.values())

    def add_page(self, articles: Iterable[PlannedArticle], *, cursor: str = "", last: bool = False) -> None:
        """Add a page to the plan, durably."""
        page = _Page(articles=tuple(articles), cursor=cursor, last=last)
        _append(self._plan, page)
        self._pages.append(page)

    def outcome(self, id: str) -> FetchOutcome | None:
        """What became of an article in this or an earlier run; failures of earlier runs are forgotten."""
        return self._outcomes.get(id)

    def part(self, article: str, name: str) -> Path:
        """Where a file is gathered."""
        return inside(self.state / "parts", f"{article}/{name}.part")

    def keep(self, outcome: FetchOutcome) -> None:
        """Journal an outcome durably, then put its files in place. A failure is only remembered for the list."""
        if outcome.outcome == "failed":
            self._failed[outcome.id] = outcome
            return
        _append(self._journal, outcome)
        self._outcomes[outcome.id] = outcome
        self._place(outcome)
        self.new += outcome.outcome == "kept"

    def check(self, outcome: FetchOutcome) -> bool:
        """Whether the files of a journalled article are there and unharmed; those still in parts are put in place."""
        self._place(outcome)
        for file in outcome.files:
            path = inside(self.path / ARTICLES, file.file)
            if not path.is_file() or path.stat().st_size != file.size or file_sha256(path) != file.sha256:
                self.forget(outcome.id)
                return False
        return True

    def forget(self, id: str) -> None:
        """Fetch an article again."""
        outcome = self._outcomes.pop(id, None)
        for file in outcome.files if outcome else ():
            inside(self.path / ARTICLES, file.file).unlink(missing_ok=True)

    def ask_again(self) -> None:
        """Forget what was gone or left out: another selection, or a later day, may bring it."""
        write_jsonl(self._journal, (each for each in self._outcomes.values() if each.outcome == "kept"))

    def forget_all(self) -> None:
        """Begin anew with what is asked of the service; files stay."""
        self._outcomes.clear()
        write_jsonl(self._journal, ())

    def _place(self, outcome: FetchOutcome) -> None:
        """Put an article's files in place; whatever else was gathered of it (another version's) is thrown away."""
        for file in outcome.files:
            target = inside(self.path / ARTICLES, file.file)
            part = self.part(outcome.id, target.name)
            with output_errors(target):
                if part.is_file() and not target.exists() and part.stat().st_size == file.size:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    part.replace(target)
                    sync_folder(target.parent)
        shutil.rmtree(inside(self.state / "parts", outcome.id), ignore_errors=True)

    def finish(self) -> Counts:
        """Write the lists and the journal in the plan's order and count."""
        order = {each.id: place for place, each in enumerate(self.plan())}
        known = sorted(self._outcomes.values(), key=lambda each: (order.get(each.id, len(order)), each.id))
        write_jsonl(self._journal, known)
        write_jsonl(self.path / FETCHED, (file for each in known for file in each.files))
        chosen = [each for id in order if (each := self._outcomes.get(id) or self._failed.get(id)) is not None]
        missing = [_Not(id=each.id, outcome=each.outcome, reason=each.reason) for each in chosen if each.reason]
        write_jsonl(self.path / NOT_FETCHED, missing)
        shutil.rmtree(self.state / "list", ignore_errors=True)
        with suppress(OSError):
            (self.state / "parts").rmdir()
        tally = Counter(each.outcome for each in chosen)
        left_out = Counter(each.reason for each in chosen if each.outcome in {"gone", "rejected"})
        failed = Counter(each.reason for each in chosen if each.outcome == "failed")
        return Counts(
            kept=tally["kept"],
            rejected=tally["gone"] + tally["rejected"],
            failed=tally["failed"],
            reasons=dict(sorted(left_out.items())),
            failures=dict(sorted(failed.items())),
        )

    def answers(self) -> list[FetchOutcome]:
        """The kept outcomes in the plan's order."""
        found = (self._outcomes.get(each.id) for each in self.plan())
        return [each for each in found if each is not None and each.outcome == "kept"]


@contextmanager
def open_folder(
    target: Path, kind: str, selection: dict[str, object], *, refresh: bool = False
) -> Iterator[FetchFolder]:
    """Open or begin a fetch folder for this command, for one process at a time.

    The same selection goes on where it was; another one of the same kind makes a new plan and keeps what is there;
    `refresh` asks the service for the list again, and for what it said it does not have.
    """
    state = target / STATE
    with output_errors(target):
        if target.exists() and not state.is_dir() and (not target.is_dir() or any(target.iterdir())):
            raise OutputError(
                "not overwritten: not a folder of an earlier fetch",
                where=str(target),
                fix="choose another folder with -o",
            )
        state.mkdir(parents=True, exist_ok=True)
    with _locked(state / "lock", target):
        _clear_torn(target)
        plain = msgspec.json.decode(canonical_json(selection))
        found = _state(state / "state.json")
        if found is not None and found.kind != kind:
            raise UsageError(
                f"this folder holds a fetch from {found.kind}, and this fetch is from {kind}",
                where=str(target),
                fix="choose another folder with -o",
            )
        if found is None or found.selection != plain or refresh:
            (state / "plan.jsonl").unlink(missing_ok=True)
            write_bytes(state / "state.json", canonical_json(_State(kind=kind, selection=plain)) + b"\n")
            FetchFolder(target).ask_again()
        yield FetchFolder(target)


def _clear_torn(target: Path) -> None:
    """Remove what a killed process was writing beside its place; nobody else writes here while the lock is held."""
    for path in (*target.glob(".*.part"), *(target / STATE).rglob(".*.part")):
        if _TORN.search(path.name):
            path.unlink(missing_ok=True)


def _state(path: Path) -> _State | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_State)
    except (OSError, *UNREADABLE):
        return None


@contextmanager
def _locked(path: Path, target: Path) -> Iterator[None]:
    with output_errors(path), path.open("ab") as stream:
        if fcntl is not None:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as err:
                raise OutputError(
                    "another fetch is using this folder", where=str(target), fix="wait for it, or end it"
                ) from err
        yield


def _append(path: Path, record: Struct) -> None:
    with output_errors(path), path.open("ab") as stream:
        stream.write(msgspec.json.encode(record) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def _lines(path: Path, kind: type[T]) -> Sequence[T]:
    """The whole lines of a journal; what a kill left torn at the end is cut off."""
    try:
        data = path.read_bytes()
    except OSError:
        return []
    good, records = 0, []
    for line in data.splitlines(keepends=True):
        try:
            records.append(msgspec.json.decode(line, type=kind))
        except (msgspec.DecodeError, UnicodeDecodeError):
            break
        if not line.endswith(b"\n"):
            records.pop()
            break
        good += len(line)
    if good < len(data):
        with output_errors(path), path.open("r+b") as stream:
            stream.truncate(good)
    return records


@contextmanager
def planning_errors(folder: FetchFolder, what: str, look_at: str) -> Iterator[None]:
    """A service's failure while the plan is made, as an `InputError`."""
    try:
        yield
    except (FetchError, NotAvailableError) as err:
        fix = f"check {look_at}; the same command continues where it stopped"
        raise InputError(f"{what}: {err}", where=str(folder.path), fix=fix) from err


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
    """Fetch every article that is still missing, `batch` at a time, and write the folder's lists."""
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
                self.task.note(f"{self.client.bytes / 1e6:.1f} MB, {self.client.troubles} failed requests")

    async def _outcomes(self, articles: Sequence[PlannedArticle]) -> Sequence[FetchOutcome]:
        try:
            outcomes = await self.fetch(articles)
        except NotAvailableError as err:
            outcomes = [FetchOutcome(id=each.id, outcome="gone", reason=f"not found: {err}") for each in articles]
        except FetchError as err:
            self.in_a_row = self.in_a_row + 1 if err.passing else 0
            if self.in_a_row >= IN_A_ROW:
                raise InputError(
                    f"{IN_A_ROW} requests in a row failed: {err.reason}",
                    where=str(self.folder.path),
                    fix="check the network and the service's status; the same command continues where it stopped",
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
    raise FetchError(f"damaged on every try: {trouble}")


def _wrong(part: Path, name: str, md5: str) -> str:
    if md5 and file_md5(part) != md5:
        return "its MD5 differs from the one the service states"
    return damage(part, name)


MAX_UNPACKED = 20 * 1024**3
MAX_MEMBERS = 20_000
_ROOT = re.compile(rb"<(?![?!])([A-Za-z_][\w:.-]*)")
_PROLOGUE = re.compile(  # no part can end in two ways, and what never ends goes to the end: else it takes for ever
    rb"<\?.*?(?:\?>|\Z)|<!--.*?(?:-->|\Z)|<!DOCTYPE(?:[^\[<>]|\[[^\]]*+(?:\]|\Z))*+(?:>|\Z)", re.DOTALL
)
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
    closing = re.compile(rb"</" + re.escape(root.group(1)) + rb"\s*+>(?:\s*+<!--(?:[^-]|-(?!->))*+-->)*+$", re.DOTALL)
    return "" if closing.search(tail) else "the XML breaks off before its end"
