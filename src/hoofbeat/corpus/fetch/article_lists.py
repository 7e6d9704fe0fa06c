"""PMC's lists and answers, read: which articles there are and where their files lie. Pure functions over text.

Formats, as documented and as served in 2026:

- `oa_file_list.csv` (FTP service): File, Article Citation, Accession ID, Last Updated (YYYY-MM-DD HH:MM:SS), PMID,
  License, Retracted (missing in lists before 2022); `oa_file_list.txt`: a date line, then path, citation, PMC id,
  `PMID:…`, licence, separated by tabs. NLM moved both below `deprecated/` in April 2026.
- `PMC-ids.csv(.gz)`: Journal Title, ISSN, eISSN, Year, Volume, Issue, Page, DOI, PMCID, PMID, Manuscript Id, Release
  Date.
- OA web service (`oa.fcgi?id=PMC…`): `<OA><records><record id license retracted><link format updated href/>` or
  `<error code>`.
- PMC Cloud Service (bucket `pmc-oa-opendata`, layout of 2026: a prefix an article version, `PMC123.1/`, with XML, text,
  PDF, JSON metadata and media), listed by S3's ListObjectsV2.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import msgspec
from lxml import etree
from msgspec import Struct

from hoofbeat.corpus.fetch.client import FetchError, NotAvailableError
from hoofbeat.corpus.fetch.fetch_folder import PlannedArticle
from hoofbeat.corpus.fetch.services import ArticleSelection
from hoofbeat.corpus.parsers.citation_rows import normalise_id

_YEAR = re.compile(r"^(?P<venue>.+?)[.,;]?\s+(?P<year>(?:1[89]|20)\d\d)\b")
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
        names = [_column(name) for name in next(csv.reader([head]))]
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
        year = cells.get("year", "").strip()
        known = int(year) if year.isdecimal() else None
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
        raise FetchError("the OA service's link leads to no package")
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
        raise FetchError(f"the service's answer is no XML: {err}", passing=True) from err
    for element in root.iter(etree.Element):
        element.tag = etree.QName(element).localname
    return root


def _column(name: str) -> str:
    return re.sub(r"[\s-]+", "_", name.strip().lower())
