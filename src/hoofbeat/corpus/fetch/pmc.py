"""PubMed Central's open-access articles, from its cloud service or, while they last, as packages of its FTP service.

NLM ended the packages in August 2026 (moved below `deprecated/` in April): the cloud service is the way now, article
by article, XML and images beside each other. Packages are still read from mirrors and older copies. Both are written
against the formats named in `lists`.
"""

from __future__ import annotations

import asyncio
import gzip
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import quote

import msgspec

from hoofbeat.corpus.fetch.article_lists import (
    CloudArticle,
    cloud_article,
    cloud_metadata,
    listing_goes_on,
    oa_link,
    safe_path,
    same_licence,
    select_rows,
)
from hoofbeat.corpus.fetch.client import Client, FetchError, NotAvailableError
from hoofbeat.corpus.fetch.downloads import bring, fetch_all
from hoofbeat.corpus.fetch.fetch_folder import (
    FetchedFile,
    FetchFolder,
    FetchOutcome,
    FetchResult,
    PlannedArticle,
    open_folder,
)
from hoofbeat.corpus.fetch.services import ArticleSelection, Connection
from hoofbeat.corpus.image_store import IMAGE_SUFFIXES
from hoofbeat.corpus.parsers.citation_rows import normalise_id
from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.text import safe_id

Via = Literal["cloud", "packages"]
SEARCH_PAGE = 1000
MAX_LISTINGS = 20


def fetch_pmc(
    selection: ArticleSelection,
    target: Path,
    connection: Connection,
    *,
    via: Via = "cloud",
    images: bool = True,
    file_list: Path | None = None,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> FetchResult:
    """Fetch open-access articles into the folder `target`; repeat the call to go on after an interruption.

    A selection by venues and years reads `file_list` (a copy of `oa_file_list.csv` or `.txt`, or of `PMC-ids.csv`,
    plain or gzipped), or gets the list from the service. A query is Entrez's, against PMC's open-access articles. With
    `via="cloud"` licences are known only once an article is looked up: those left out count against the limit.
    """
    selection.check()
    chosen = pmc_ids(selection.ids)
    wanted = msgspec.structs.replace(selection, ids=chosen)
    settings = {**wanted.record(), "via": via, "images": images, "list": file_list.name if file_list else ""}
    with open_folder(target, f"pmc {via}", settings, refresh=refresh) as folder:
        return asyncio.run(_fetch(folder, wanted, connection, via, images, file_list, progress))


def pmc_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    """PMC ids in their one form, each once; anything else is a `UsageError`."""
    found = {id: normalise_id(id if id.strip().upper().startswith("PMC") else f"PMC{id.strip()}") for id in ids}
    wrong = [id for id, normal in found.items() if not normal.startswith("PMC") or not normal[3:].isdecimal()]
    if wrong:
        raise UsageError(
            f"not PMC ids: {', '.join(map(repr, wrong[:5]))}", fix="a PMC id is written PMC1234567, or only its number"
        )
    return tuple(dict.fromkeys(found.values()))


async def _fetch(
    folder: FetchFolder,
    selection: ArticleSelection,
    connection: Connection,
    via: Via,
    images: bool,
    file_list: Path | None,
    progress: Progress,
) -> FetchResult:
    async with Client(connection) as client:
        try:
            await _plan(folder, client, selection, via, file_list, progress)
        except (FetchError, NotAvailableError) as err:
            raise InputError(
                f"the list of articles could not be had: {err}",
                where=str(folder.path),
                fix="check the address and the service's status; the same command goes on where it was",
            ) from err
        source = (
            _Packages(folder, client, selection) if via == "packages" else _Cloud(folder, client, selection, images)
        )
        return await fetch_all(folder, client, source.fetch, progress=progress, title="Fetch articles")


async def _plan(
    folder: FetchFolder,
    client: Client,
    selection: ArticleSelection,
    via: Via,
    file_list: Path | None,
    progress: Progress,
) -> None:
    if folder.planned:
        return
    if selection.query:
        if selection.venues or selection.years:
            raise UsageError("a PMC query says venues and years itself", fix="write them into the query")
        await _search(folder, client, selection, progress)
        return
    if selection.ids and file_list is None:
        folder.add_page([PlannedArticle(id=id) for id in selection.ids[: selection.limit]], last=True)
        return
    local = file_list or await _service_list(folder, client, via, progress)
    with progress.task("Read the list of articles", None) as task, _lines(local) as lines:
        page: list[PlannedArticle] = []
        for planned in select_rows(lines, selection):
            page.append(planned)
            task.advance()
        folder.add_page(page, last=True)


async def _service_list(folder: FetchFolder, client: Client, via: Via, progress: Progress) -> Path:
    services = client.connection.services
    url = services.pmc_ids if via == "cloud" else f"{services.pmc_files}/oa_file_list.csv"
    part = folder.state / "list" / PurePosixPath(url).name
    with progress.task("Get the list of articles", None):
        await client.download(url, part)
    return part


@contextmanager
def _lines(path: Path) -> Iterator[io.TextIOWrapper]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with (
            gzip.open(path, "rb") if packed else path.open("rb") as stream,
            io.TextIOWrapper(stream, encoding="utf-8", errors="replace", newline="") as text,
        ):
            yield text
    except (OSError, EOFError) as err:
        raise InputError(
            f"can't read the list of articles: {err}", where=str(path), fix="check the file, or leave --file-list out"
        ) from err


async def _search(folder: FetchFolder, client: Client, selection: ArticleSelection, progress: Progress) -> None:
    """Entrez's esearch (db=pmc, JSON), page by page; where it is stands in the plan."""
    url = f"{client.connection.services.eutils}/esearch.fcgi"
    term = f"({selection.query}) AND open access[filter]"
    with progress.task("Search PMC", None) as task:
        while not folder.planned:
            start = int(folder.cursor or 0)
            asked = {"db": "pmc", "term": term, "retmode": "json", "sort": "pub_date", **client.connection.ncbi()}
            answer = await client.get(url, {**asked, "retstart": str(start), "retmax": str(SEARCH_PAGE)})
            count, ids = _search_answer(answer)
            room = len(ids) if selection.limit is None else max(0, selection.limit - start)
            page = [PlannedArticle(id=f"PMC{id}") for id in ids[:room]]
            last = not ids or start + len(ids) >= count or len(page) < len(ids) or start + len(page) == selection.limit
            folder.add_page(page, cursor=str(start + len(ids)), last=last)
            task.advance(len(page))


def _search_answer(answer: bytes) -> tuple[int, list[str]]:
    try:
        result = msgspec.json.decode(answer)["esearchresult"]
        ids = [str(id) for id in result["idlist"]]
        return int(result["count"]), [id for id in ids if id.isdecimal()]
    except (msgspec.DecodeError, KeyError, TypeError, ValueError) as err:
        raise FetchError("the search's answer can't be read (is the query well-formed?)") from err


def _unlicensed(planned: PlannedArticle, licences: tuple[str, ...]) -> FetchOutcome | None:
    """Why an article is left out for its licence, if it is."""
    if not licences or same_licence(planned.licence, licences):
        return None
    said = f"licence {planned.licence or 'unknown'}: not among {', '.join(licences)}"
    return FetchOutcome(id=planned.id, outcome="rejected", reason=said)


class _Packages:
    """One `.tar.gz` an article, found by the file list or by the OA web service."""

    def __init__(self, folder: FetchFolder, client: Client, selection: ArticleSelection) -> None:
        self.folder, self.client, self.selection = folder, client, selection

    async def fetch(self, articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
        (planned,) = articles
        services = self.client.connection.services
        if not planned.path:
            answer = await self.client.get(services.pmc_oa, {"id": planned.id, **self.client.connection.ncbi()})
            planned = oa_link(answer, planned.id)
        if refusal := _unlicensed(planned, self.selection.licences):
            return [refusal]
        path = safe_path(planned.path)
        url, file = f"{services.pmc_files}/{path}", f"{planned.id}.tar.gz"
        fetched = await bring(self.folder, self.client, planned, url=url, path=path, file=file)
        return [FetchOutcome(id=planned.id, outcome="kept", files=(fetched,))]


class _Cloud:
    """XML and images of an article's newest version, from the bucket."""

    def __init__(self, folder: FetchFolder, client: Client, selection: ArticleSelection, images: bool) -> None:
        self.folder, self.client, self.selection, self.images = folder, client, selection, images

    async def fetch(self, articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
        (planned,) = articles
        base = self.client.connection.services.pmc_cloud
        article = cloud_article(await self._listing(base, planned.id), planned.id)
        metadata = article.find(".json")
        key = metadata.key if metadata else f"metadata/{article.version}.json"
        known, md5 = cloud_metadata(await self.client.get(f"{base}/{key}"), planned)
        if refusal := _unlicensed(known, self.selection.licences):
            return [refusal]
        if article.find(".xml") is None:
            raise NotAvailableError("no XML among its files")
        files = [
            await self._file(msgspec.structs.replace(known, updated=updated), base, key, file, md5)
            for key, file, updated, md5 in _wanted(article, md5, images=self.images)
        ]
        return [FetchOutcome(id=planned.id, outcome="kept", files=tuple(files))]

    async def _listing(self, base: str, id: str) -> list[bytes]:
        asked = {"list-type": "2", "prefix": f"{id}."}
        pages = [await self.client.get(f"{base}/", asked)]
        while (token := listing_goes_on(pages[-1])) and len(pages) < MAX_LISTINGS:
            pages.append(await self.client.get(f"{base}/", {**asked, "continuation-token": token}))
        return pages

    async def _file(self, planned: PlannedArticle, base: str, key: str, file: str, md5: str) -> FetchedFile:
        url = f"{base}/{quote(key)}"
        try:
            return await bring(self.folder, self.client, planned, url=url, path=key, file=file, md5=md5)
        except NotAvailableError as err:
            raise FetchError(f"a file of its listing is not there: {err}") from err


def _wanted(article: CloudArticle, md5: str, *, images: bool) -> Iterator[tuple[str, str, str, str]]:
    """Key, file name, last update and MD5 of the XML and of each image, under names that are safe on any disk."""
    names: set[str] = set()
    for each in article.objects:
        name = PurePosixPath(each.key).name
        is_xml = each.key == f"{article.version}/{article.version}.xml"
        if not is_xml and not (images and PurePosixPath(name).suffix.lower() in IMAGE_SUFFIXES):
            continue
        safe = safe_id(name)
        if safe.lower() not in names:
            names.add(safe.lower())
            yield each.key, f"{article.version}/{safe}", each.updated, md5 if is_xml else ""
