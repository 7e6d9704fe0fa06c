"""Open-access articles: from PubMed Central's cloud service or FTP packages, and from Europe PMC's search.

NLM ended the packages in August 2026 (moved below `deprecated/` in April): the cloud service is the way now, article
by article, XML and images beside each other. Packages are still read from mirrors and older copies. Formats, as
documented and as served in 2026:

- `oa_file_list.csv` (FTP service): File, Article Citation, Accession ID, Last Updated (YYYY-MM-DD HH:MM:SS), PMID,
  License, Retracted (missing in lists before 2022); `oa_file_list.txt`: a date line, then path, citation, PMC id,
  `PMID:…`, licence, separated by tabs.
- `PMC-ids.csv(.gz)`: Journal Title, ISSN, eISSN, Year, Volume, Issue, Page, DOI, PMCID, PMID, Manuscript Id, Release
  Date.
- OA web service (`oa.fcgi?id=PMC…`): `<OA><records><record id license retracted><link format updated href/>` or
  `<error code>`.
- PMC Cloud Service (bucket `pmc-oa-opendata`, layout of 2026: a prefix per article version, `PMC123.1/`, with XML,
  text, PDF, JSON metadata and media), listed by S3's ListObjectsV2.
- Europe PMC's Articles RESTful API, version 6.9: `/search` with `cursorMark` paging and `resultType=core`, and
  `/{PMCID}/fullTextXML`. The last page has no `nextCursorMark`, or the one that was asked for.
"""

from __future__ import annotations

import asyncio
import csv
import gzip
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote

import msgspec
from lxml import etree
from msgspec import Struct, field

from hoofbeat.corpus.citations import column_name, normalise_id
from hoofbeat.corpus.fetch.client import ArticleSelection, Client, Connection, FetchError, NotAvailableError
from hoofbeat.corpus.fetch.fetch_folder import (
    FetchedFile,
    FetchFolder,
    FetchOutcome,
    FetchResult,
    PlannedArticle,
    bring,
    fetch_all,
    open_folder,
    planning_errors,
)
from hoofbeat.corpus.figures import IMAGE_SUFFIXES
from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.files import read_bytes
from hoofbeat.text import safe_id, whole_number

_YEAR = re.compile(r"^(?P<venue>.{1,300}?)[.,;]?\s+(?P<year>(?:1[89]|20)\d\d)\b")
_SMALL = {"a", "an", "and", "for", "in", "of", "on", "the", "to", "&"}
_PATH = re.compile(r"(?:[\w.+~-]+/)*[\w.+~-]+")
_NOT_THERE = {"idDoesNotExist", "idIsNotOpenAccess", "cannotDisseminateFormat"}


def select_rows(lines: Iterable[str], selection: ArticleSelection) -> Iterator[PlannedArticle]:
    """The articles of a file list or of PMC-ids.csv that the selection names, in the list's order."""
    rows = iter(lines)
    head = next(rows, "").lstrip("\ufeff")
    if "\t" not in head and "," not in head:
        found = (_text_row(line) for line in rows)
    else:
        names = [column_name(name) for name in next(csv.reader([head]))]
        if "accession_id" not in names and "pmcid" not in names:
            raise FetchError(f"not a list of PMC's articles: its columns are {', '.join(names)[:200]}")
        found = (_row(dict(zip(names, cells, strict=False))) for cells in csv.reader(rows))
    taken = 0
    wanted = {normalise_id(id) for id in selection.ids}
    for row in found:
        if row is None or not _chosen(row, selection, wanted):
            continue
        yield row.planned
        taken += 1
        if selection.limit is not None and taken >= selection.limit:
            return


class _Row(Struct, frozen=True, kw_only=True):
    planned: PlannedArticle
    venue: str = ""
    year: int | None = None
    licensed: bool = True


def _row(cells: dict[str, str]) -> _Row | None:
    id = normalise_id(cells.get("accession_id") or cells.get("pmcid") or "")
    if not id.startswith("PMC"):
        return None
    if "file" not in cells:
        known = whole_number(cells.get("year", "").strip())
        return _Row(planned=PlannedArticle(id=id), venue=cells.get("journal_title", ""), year=known, licensed=False)
    match = _YEAR.match(cells.get("article_citation", ""))
    planned = PlannedArticle(
        id=id,
        path=cells["file"].strip(),
        licence=cells.get("license", "").strip(),
        updated=next((value.strip() for name, value in cells.items() if name.startswith("last_updated")), ""),
        retracted=cells.get("retracted", "").strip().lower() == "yes",
    )
    return _Row(planned=planned, venue=match["venue"] if match else "", year=int(match["year"]) if match else None)


def _text_row(line: str) -> _Row | None:
    cells = line.rstrip("\r\n").split("\t")
    if len(cells) < 3:
        return None
    names = ("file", "article_citation", "accession_id", "pmid", "license")
    return _row(dict(zip(names, cells, strict=False)))


def _chosen(row: _Row, selection: ArticleSelection, wanted: set[str]) -> bool:
    if wanted and row.planned.id not in wanted:
        return False
    if selection.years and (row.year is None or not selection.years[0] <= row.year <= selection.years[1]):
        return False
    if selection.venues and not _any_venue(row.venue, selection.venues):
        return False
    return not (selection.licences and row.licensed) or same_licence(row.planned.licence, selection.licences)


@cache
def _any_venue(venue: str, venues: tuple[str, ...]) -> bool:
    return any(same_venue(venue, each) for each in venues)


def same_venue(one: str, other: str) -> bool:
    """Whether two names are the same journal's: equal, or one the other's abbreviation word by word.

    `J Med Case Rep` is `Journal of Medical Case Reports`: without small words the same number of words, each pair with
    the same first letter and the letters of one in order within the other.
    """
    left, right = _words(one), _words(other)
    return bool(left) and len(left) == len(right) and all(map(_abbreviates, left, right))


def _words(name: str) -> list[str]:
    plain = re.sub(r"\([^)]*\)", " ", name.lower())
    return [word for word in re.findall(r"[^\W_]+|&", plain) if word not in _SMALL]


def _abbreviates(one: str, other: str) -> bool:
    short, long = sorted((one, other), key=len)
    letters = iter(long)
    return short[0] == long[0] and all(letter in letters for letter in short)


def same_licence(licence: str, licences: tuple[str, ...]) -> bool:
    """Whether a licence is one of those, however spelt (`CC BY-NC`, `cc-by-nc`, `CC BY-NC 4.0`)."""
    return _licence(licence) in {_licence(each) for each in licences}


def _licence(text: str) -> str:
    plain = re.sub(r"\s+\d+(\.\d+)*$", "", text.strip().lower())
    return re.sub(r"[\s_-]+", "-", plain)


def oa_link(answer: bytes, id: str) -> PlannedArticle:
    """Where the package of an article lies, from the OA web service's answer.

    Raises `NotAvailableError` or `FetchError`.
    """
    root = parse_answer(answer)
    error = root.find(".//error")
    if error is not None:
        code = error.get("code") or "error"
        said = f"the OA service says {code}"
        raise NotAvailableError(said) if code in _NOT_THERE else FetchError(said, passing=True)
    record = next((each for each in root.iter("record") if normalise_id(each.get("id") or "") == id), None)
    link = None if record is None else record.find("link[@format='tgz']")
    if record is None or link is None:
        raise NotAvailableError("the OA service has no package for it")
    match = re.search(r"/(oa_package/.+)$", link.get("href") or "")
    if match is None:
        raise FetchError("the OA service's link does not lead to a package")
    return PlannedArticle(
        id=id,
        path=safe_path(match.group(1)),
        licence=record.get("license") or "",
        updated=link.get("updated") or "",
        retracted=record.get("retracted") == "yes",
    )


def safe_path(path: str) -> str:
    """A path at a service, refused where it could lead elsewhere."""
    if not _PATH.fullmatch(path) or ".." in path.split("/"):
        raise FetchError("the service's list names a path that can't be used")
    return path


class CloudObject(Struct, frozen=True, kw_only=True):
    """One object of the bucket."""

    key: str
    size: int
    updated: str


class CloudArticle(Struct, frozen=True, kw_only=True):
    """The newest version of an article in the bucket: its prefix (`PMC123.2`) and objects."""

    version: str
    objects: tuple[CloudObject, ...]

    def find(self, suffix: str) -> CloudObject | None:
        """The article's own file of this kind: `PMC123.2/PMC123.2.xml`."""
        return next((each for each in self.objects if each.key == f"{self.version}/{self.version}{suffix}"), None)


def listing_goes_on(answer: bytes) -> str:
    """The token for the next page of S3's listing; empty on the last one."""
    root = parse_answer(answer)
    return (root.findtext("NextContinuationToken") or "") if root.findtext("IsTruncated") == "true" else ""


def cloud_article(pages: Sequence[bytes], id: str) -> CloudArticle:
    """The newest version from S3's listing with the prefix `PMC123.`; `NotAvailableError` where there is none."""
    versions: dict[int, list[CloudObject]] = {}
    for entry in (entry for page in pages for entry in parse_answer(page).iter("Contents")):
        key = entry.findtext("Key") or ""
        match = re.fullmatch(rf"{re.escape(id)}\.(\d+)/[^/]+", key)
        if match:
            size = entry.findtext("Size") or "0"
            found = CloudObject(key=key, size=int(size), updated=entry.findtext("LastModified") or "")
            versions.setdefault(int(match.group(1)), []).append(found)
    if not versions:
        raise NotAvailableError("not in PMC's open-access cloud")
    newest = max(versions)
    return CloudArticle(version=f"{id}.{newest}", objects=tuple(sorted(versions[newest], key=lambda each: each.key)))


class _Metadata(Struct):
    pmcid: str = ""
    license_code: str | None = None
    is_retracted: bool | None = False
    xml_url: str | None = None


def cloud_metadata(data: bytes, planned: PlannedArticle) -> tuple[PlannedArticle, str]:
    """An article version's metadata: the plan with licence and retraction, and the MD5 of its XML where stated."""
    try:
        found = msgspec.json.decode(data, type=_Metadata)
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise FetchError(f"its metadata can't be read: {err}") from err
    match = re.search(r"[?&]md5=([0-9a-f]{32})$", found.xml_url or "")
    known = msgspec.structs.replace(
        planned, licence=found.license_code or planned.licence, retracted=bool(found.is_retracted)
    )
    return known, match.group(1) if match else ""


def parse_answer(data: bytes) -> etree._Element:
    """A service's XML answer, names without namespaces; nothing of it is resolved or loaded."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as err:
        raise FetchError(f"the service's answer is not XML: {err}", passing=True) from err
    for element in root.iter(etree.Element):
        element.tag = etree.QName(element).localname
    return root


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
    `via="cloud"` licences are known only once an article is looked up: articles rejected then count against the limit.
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
        with planning_errors(
            folder, "the list of articles could not be fetched", "the address and the service's status"
        ):
            await _plan(folder, client, selection, via, file_list, progress)
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
            raise UsageError("venues and years can't be combined with a PMC query", fix="write them into the query")
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
    said = f"licence {planned.licence or 'unknown'}: not one of {', '.join(licences)}"
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
            raise FetchError(f"a listed file is missing: {err}") from err


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


PAGE = 100


class _Article(Struct):
    pmcid: str | None = None
    license: str | None = None
    dateOfRevision: str | None = None  # noqa: N815 - the service's word
    pubTypeList: Any = None  # noqa: N815


class _Results(Struct):
    result: list[_Article] = field(default_factory=list)


class _Page(Struct):
    resultList: _Results = field(default_factory=_Results)  # noqa: N815
    nextCursorMark: str | None = None  # noqa: N815


def fetch_europe_pmc(
    selection: ArticleSelection,
    target: Path,
    connection: Connection,
    *,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> FetchResult:
    """Fetch full texts as XML into the folder `target`; repeat the call to go on after an interruption.

    Venues and years become part of the query; the search states licences, so the limit counts only articles that fit.
    """
    selection.check()
    if selection.ids and selection.licences:
        raise UsageError("Europe PMC states licences only in its search", fix="use a query, or fetch the ids from pmc")
    wanted = msgspec.structs.replace(selection, ids=pmc_ids(selection.ids))
    with open_folder(target, "europe-pmc", wanted.record(), refresh=refresh) as folder:
        return asyncio.run(_fetch_europe_pmc(folder, wanted, connection, progress))


def europe_pmc_query(selection: ArticleSelection) -> str:
    """The query for a selection, in Europe PMC's syntax: open-access articles with full text there."""
    parts = [f"({selection.query.strip()})"] if selection.query.strip() else []
    if selection.venues:
        quoted = (venue.replace('"', " ") for venue in selection.venues)
        parts.append("(" + " OR ".join(f'JOURNAL:"{venue}"' for venue in quoted) + ")")
    if selection.years:
        parts.append(f"(PUB_YEAR:[{selection.years[0]} TO {selection.years[1]}])")
    return " AND ".join([*parts, "(OPEN_ACCESS:y)", "(IN_EPMC:y)"])


async def _fetch_europe_pmc(
    folder: FetchFolder, selection: ArticleSelection, connection: Connection, progress: Progress
) -> FetchResult:
    async with Client(connection) as client:
        with planning_errors(folder, "the search failed", "the query and the service's status"):
            await _plan_europe_pmc(folder, client, selection, progress)

        async def one(articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
            (planned,) = articles
            path = f"{planned.id}/fullTextXML"
            url = f"{connection.services.europe_pmc}/{path}?email={connection.email}"
            file = await bring(folder, client, planned, url=url, path=path, file=f"{planned.id}.xml")
            return [FetchOutcome(id=planned.id, outcome="kept", files=(file,))]

        return await fetch_all(folder, client, one, progress=progress, title="Fetch articles")


async def _plan_europe_pmc(
    folder: FetchFolder, client: Client, selection: ArticleSelection, progress: Progress
) -> None:
    if selection.ids and not folder.planned:
        folder.add_page([PlannedArticle(id=id) for id in selection.ids[: selection.limit]], last=True)
    url = f"{client.connection.services.europe_pmc}/search"
    asked = {"query": europe_pmc_query(selection), "format": "json", "resultType": "core", "pageSize": str(PAGE)}
    with progress.task("Search Europe PMC", selection.limit) as task:
        while not folder.planned:
            cursor = folder.cursor or "*"
            answer = await client.get(url, {**asked, "cursorMark": cursor, "email": client.connection.email})
            try:
                page = msgspec.json.decode(answer, type=_Page)
            except (msgspec.DecodeError, UnicodeDecodeError) as err:
                raise FetchError(f"the search's answer can't be read: {err}") from err
            known = {each.id for each in folder.plan()}
            found = [each for each in _articles(page, selection) if each.id not in known]
            room = len(found) if selection.limit is None else selection.limit - len(known)
            further = page.nextCursorMark or cursor
            at_end = not page.resultList.result or further == cursor
            full = selection.limit is not None and room <= len(found)
            folder.add_page(found[:room], cursor=further, last=at_end or full)
            task.advance(len(found[:room]))


def _articles(page: _Page, selection: ArticleSelection) -> list[PlannedArticle]:
    found = []
    for each in page.resultList.result:
        id, licence = normalise_id(each.pmcid or ""), each.license or ""
        if not id.startswith("PMC") or (selection.licences and not same_licence(licence, selection.licences)):
            continue
        retracted = "retracted publication" in str(each.pubTypeList or "").lower()
        updated = each.dateOfRevision or ""
        found.append(PlannedArticle(id=id, licence=licence.upper(), updated=updated, retracted=retracted))
    return list({each.id: each for each in found}.values())


SOURCES = ("pmc", "pmc-packages", "europe-pmc")
"""Where articles are fetched from: PMC's cloud service, its packages, Europe PMC."""


def fetch_articles(
    source: str,
    selection: ArticleSelection,
    target: Path,
    connection: Connection,
    *,
    images: bool = True,
    file_list: Path | None = None,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> FetchResult:
    """Fetch the articles of a selection from one of `SOURCES`; repeat the call to go on after an interruption."""
    if source == "europe-pmc":
        return fetch_europe_pmc(selection, target, connection, refresh=refresh, progress=progress)
    via: Via = "packages" if source == "pmc-packages" else "cloud"
    return fetch_pmc(
        selection, target, connection, via=via, images=images, file_list=file_list, refresh=refresh, progress=progress
    )


def read_names(path: Path) -> tuple[str, ...]:
    """The names in a file, one per line, without empty lines and those that begin with `#`."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as err:
        raise InputError(f"not a text file: {err}", where=str(path), fix="write one name per line, in UTF-8") from err
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
