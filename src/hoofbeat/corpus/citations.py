"""Who cites whom: citation files made into one small table, and counts for each cited article.

The rarity filter of OGCaReBench needs, for each report, how many articles cite it and how many of those are no case
reports. Counts come from files the user supplies or `hoofbeat corpus fetch citations` brings, so they are read with
suspicion: ids are brought to one form, repeated links are counted once, an article that cites itself is not counted,
and what is contradictory or unreadable is listed. An article that was looked up and that nothing cites has a count of
zero; one that no file speaks of has none (`None`): unknown is not rare.

Shapes of rows that are read (by their column or key names, lower-cased, spaces and hyphens as underscores):

- links: `citing`, `cited` and whether the citing article is a case report (CSV, TSV, JSONL); also the NIH Open Citation
  Collection (`citing`, `referenced`) and OpenCitations (`citing`, `cited`);
- Europe PMC's `/{source}/{id}/citations` answer (web service 6.9, JSON): `request` and `citationList.citation[]`;
- iCite (API as documented in 2026, JSON or CSV): `pmid` and `cited_by`, a list or numbers separated by spaces;
- NCBI elink (`linkname=pubmed_pubmed_citedin`, `retmode=json`): `linksets[].linksetdbs[].links`.

A row that can't be read is a `CitationProblem` with its file and number; it never stops an import.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.records import Document
from hoofbeat.store.tables import UNREADABLE

if TYPE_CHECKING:
    pass


CITING = ("citing", "citing_id", "citing_pmid", "citing_pmcid", "citing_doi", "source_id", "from")
CITED = ("cited", "cited_id", "cited_pmid", "cited_pmcid", "cited_doi", "referenced", "target_id", "to")
CASE_REPORT = ("case_report", "is_case_report", "citing_is_case_report", "citing_case_report")
TYPE = ("citing_type", "type", "citationtype", "pubtype", "publication_type", "article_type")
SELF = ("self", "self_citation", "is_self_citation", "author_sc")
MAX_LINE_BYTES = 16_000_000
_DOI = re.compile(r"10\.\d{4,9}/\S+")
_PMC = re.compile(r"(?:pmc)[\s:]?\s*(\d{1,10})(?:\.\d+)?", re.IGNORECASE)
_PMID = re.compile(r"(?:(?:pmid|med|pubmed)[\s:]\s*|https?://pubmed\.ncbi\.nlm\.nih\.gov/)(\d{1,9})/?", re.IGNORECASE)
_PREFIX = re.compile(r"^(?:https?://(?:dx\.)?doi\.org/|doi:\s*|urn:doi:)", re.IGNORECASE)
_PMC_ADDRESS = re.compile(r"^https?://\S*/articles/(PMC\d+)(?:\.\d+)?/?$", re.IGNORECASE)
_CASE_REPORT = re.compile(r"\bcase[\s-]reports?\b", re.IGNORECASE)
_NOTHING = {"", "na", "n/a", "none", "null", "nan", "-", "unknown"}
_YES = {"yes", "y", "true", "t", "1", "case report", "case-report", "case reports"}
_NO = {"no", "n", "false", "f", "0"}


class CitationLink(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`citing` cites `cited`; an empty `citing` says that `cited` was looked up and nothing cites it.

    `case_report` is whether the citing article is one (None where the file does not say), `self_citation` whether the
    file says that the two share an author.
    """

    cited: str
    citing: str
    case_report: bool | None = None
    self_citation: bool = False


class CitationProblem(Struct, frozen=True, kw_only=True):
    """A row that was not used, or that contradicts another: its file, its number (from 1), and why."""

    source: str
    row: int
    reason: str


def normalise_id(text: str) -> str:
    """The one form of an article's id: `PMC123`, `PMID:123`, `doi:10.1/x` (lower case), or the text itself, trimmed.

    A bare number is a PubMed id, a version suffix of a PMC id is dropped, addresses of doi.org, PubMed and PMC are
    taken apart. A text with white space, or one that says that there is no id (`n/a`), gives the empty string.
    """
    plain = text.strip()
    if plain.lower() in _NOTHING or len(plain) > 300:
        return ""
    if plain.isdecimal():
        return f"PMID:{int(plain)}" if plain.isascii() and int(plain) else ""
    address = _PMC_ADDRESS.match(plain)
    match = _PMC.fullmatch(address.group(1) if address else plain)
    if match:
        return f"PMC{int(match.group(1))}"
    match = _PMID.fullmatch(plain)
    if match:
        return f"PMID:{int(match.group(1))}"
    bare = _PREFIX.sub("", plain)
    if _DOI.fullmatch(bare):
        return f"doi:{bare.lower().rstrip('.')}"
    return "" if re.search(r"\s", plain) else plain


def is_case_report_type(types: str, title: str = "") -> bool | None:
    """Whether an article of these publication types is a case report; None where no type is given and no title tells.

    PubMed's type is `Case Reports`, JATS's `case-report`. Articles not yet indexed are plain `journal article`: a title
    that says "case report" decides for them.
    """
    if _CASE_REPORT.search(types) or _CASE_REPORT.search(title):
        return True
    return False if types.strip() else None


def read_rows(path: Path, name: str = "") -> Iterator[tuple[int, CitationLink | CitationProblem]]:
    """Every link of a citation file with its row's number, and a problem for each row that can't be read."""
    source = name or path.name
    suffixes = [suffix.lower() for suffix in path.suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as stream:
            if kind in {".jsonl", ".ndjson"}:
                yield from _json_lines(stream, source)
            elif kind == ".json":
                yield from _json_value(stream.read(), source)
            else:
                yield from _table(stream, source, tabs=kind in {".tsv", ".tab"})
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as err:
        raise InputError(
            f"can't read the citation file: {err}",
            where=str(path),
            fix="check the path; a citation file is CSV, TSV, JSON or JSONL in UTF-8, plain or gzipped",
        ) from err


def _table(stream: Any, source: str, *, tabs: bool) -> Iterator[tuple[int, CitationLink | CitationProblem]]:
    text = io.TextIOWrapper(stream, encoding="utf-8-sig", newline="")
    head = text.readline()
    delimiter = "\t" if tabs or ("\t" in head and "," not in head) else ";" if ";" in head and "," not in head else ","
    names = [column_name(name) for name in next(csv.reader([head], delimiter=delimiter), [])]
    if not ({*CITING} & {*names} and {*CITED} & {*names}) and not {"pmid", "cited_by"} <= {*names}:
        raise InputError(
            f"no citation columns in the header: {', '.join(names)[:200] or 'the file is empty'}",
            where=source,
            fix="name the columns citing, cited and case_report (or use an iCite table with pmid and cited_by)",
        )
    number = 0
    rows = csv.reader(text, delimiter=delimiter)
    while True:
        number += 1
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as err:
            yield number, CitationProblem(source=source, row=number, reason=f"not a readable row: {err}")
            continue
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) != len(names):
            reason = f"{len(cells)} cells, but the header has {len(names)}"
            yield number, CitationProblem(source=source, row=number, reason=reason)
            continue
        for found in _row(dict(zip(names, cells, strict=True)), source, number):
            yield number, found


def _json_lines(stream: Any, source: str) -> Iterator[tuple[int, CitationLink | CitationProblem]]:
    for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES), b""), start=1):
        if line.isspace():
            continue
        for found in _json(line, source, number):
            yield number, found


def _json_value(data: bytes, source: str) -> Iterator[tuple[int, CitationLink | CitationProblem]]:
    """A JSON file: one answer of a service, or a list of rows."""
    if data.lstrip()[:1] == b"[":
        try:
            rows = msgspec.json.decode(data, type=list[msgspec.Raw])
        except UNREADABLE as err:
            raise InputError(f"not readable as JSON: {err}", where=source, fix="get the file again") from err
        for number, row in enumerate(rows, start=1):
            for found in _json(bytes(row), source, number):
                yield number, found
        return
    for found in _json(data, source, 1):
        yield 1, found


def _json(data: bytes, source: str, number: int) -> Iterator[CitationLink | CitationProblem]:
    try:
        value = msgspec.json.decode(data)
    except UNREADABLE as err:
        yield CitationProblem(source=source, row=number, reason=f"not readable as JSON: {err}")
        return
    if not isinstance(value, dict):
        yield CitationProblem(source=source, row=number, reason="a row is a JSON object with citing and cited")
    elif "citationList" in value:
        yield from _europe_pmc(value, source, number)
    elif "linksets" in value:
        yield from _elink(value, source, number)
    elif isinstance(value.get("data"), list):
        for each in value["data"]:
            row = each if isinstance(each, dict) else {}
            yield from _row({column_name(str(name)): cell for name, cell in row.items()}, source, number)
    else:
        yield from _row({column_name(str(name)): cell for name, cell in value.items()}, source, number)


def _row(row: Mapping[str, Any], source: str, number: int) -> Iterator[CitationLink | CitationProblem]:
    if "cited_by" in row and "pmid" in row:
        yield from _icite(row, source, number)
        return
    missing = [names[0] for names in (CITING, CITED) if _first(row, names) is None]
    if missing:
        yield CitationProblem(source=source, row=number, reason=f"no {' and no '.join(missing)} id")
        return
    raw_citing, raw_cited = _first(row, CITING), _first(row, CITED)
    cited = normalise_id(str(raw_cited))
    if raw_citing == _LOOKED_UP and cited:
        yield CitationLink(cited=cited, citing="")
        return
    citing = normalise_id(str(raw_citing))
    sides = (("citing", raw_citing, citing), ("cited", raw_cited, cited))
    unreadable = [f"{word} id {value!r}" for word, value, id in sides if not id]
    case_report, wrong = _case_report(row)
    unreadable += [wrong] if wrong else []
    if unreadable:
        yield CitationProblem(source=source, row=number, reason=f"not readable: {', '.join(unreadable)}")
        return
    own = str(_first(row, SELF) or "").strip().lower() in _YES
    yield CitationLink(cited=cited, citing=citing, case_report=case_report, self_citation=own)


_LOOKED_UP = "∅"


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The first of these columns that the row has; a JSON `"citing": null` says that nothing cites the article."""
    for name in names:
        if name in row:
            return _LOOKED_UP if row[name] is None and name in CITING else row[name]
    return None


def _case_report(row: Mapping[str, Any]) -> tuple[bool | None, str]:
    said = _first(row, CASE_REPORT)
    text = "" if said is None else str(said).strip().lower()
    if text in _YES:
        return True, ""
    if text in _NO:
        return False, ""
    if text not in _NOTHING:
        return None, f"case_report {said!r} (yes, no or empty)"
    types = _first(row, TYPE)
    listed = "; ".join(map(str, types)) if isinstance(types, list) else str(types or "")
    return is_case_report_type(listed, str(row.get("citing_title") or "")), ""


def _europe_pmc(value: Mapping[str, Any], source: str, number: int) -> Iterator[CitationLink | CitationProblem]:
    request = value.get("request") or {}
    cited = europe_pmc_id(request) if isinstance(request, dict) else ""
    if not cited:
        yield CitationProblem(
            source=source, row=number, reason="a Europe PMC answer that does not name the cited article"
        )
        return
    if not value.get("hitCount"):
        yield CitationLink(cited=cited, citing="")
    listed = (value.get("citationList") or {}).get("citation") or []
    for each in listed:
        citing = europe_pmc_id(each) if isinstance(each, dict) else ""
        if not citing:
            yield CitationProblem(source=source, row=number, reason=f"not readable: a citation of {cited} without id")
            continue
        kind = is_case_report_type(str(each.get("citationType") or ""), str(each.get("title") or ""))
        yield CitationLink(cited=cited, citing=citing, case_report=kind)


def europe_pmc_id(record: Mapping[str, Any]) -> str:
    """A Europe PMC record's id: `MED` ids are PubMed's, `PMC` ids PMC's, others (preprints) keep the source's name."""
    id, source = str(record.get("id") or "").strip(), str(record.get("source") or "").strip().upper()
    if not id or not source:
        return ""
    if source in {"MED", "PMC"}:
        return normalise_id(id if source == "MED" or id.upper().startswith("PMC") else f"PMC{id}")
    return normalise_id(f"{source}:{id}")


def _icite(row: Mapping[str, Any], source: str, number: int) -> Iterator[CitationLink | CitationProblem]:
    cited = normalise_id(str(row["pmid"]))
    if not cited.startswith("PMID:"):
        yield CitationProblem(source=source, row=number, reason=f"not readable: pmid {row['pmid']!r}")
        return
    listed = row["cited_by"]
    pieces = listed if isinstance(listed, list) else re.split(r"[\s,;]+", str(listed or "").strip("[]"))
    texts = [str(piece) for piece in pieces if str(piece).strip()]
    if not texts:
        yield CitationLink(cited=cited, citing="")
    for text in texts:
        citing = normalise_id(text)
        if citing:
            yield CitationLink(cited=cited, citing=citing)
        else:
            yield CitationProblem(source=source, row=number, reason=f"not readable: cited_by {text!r}")


def _elink(value: Mapping[str, Any], source: str, number: int) -> Iterator[CitationLink | CitationProblem]:
    for linkset in value["linksets"] if isinstance(value["linksets"], list) else []:
        ids = linkset.get("ids") if isinstance(linkset, dict) else None
        if not isinstance(ids, list) or len(ids) != 1:
            reason = "an elink answer for several ids at once: ask with one id= for each article"
            yield CitationProblem(source=source, row=number, reason=reason)
            continue
        prefix = "PMC" if linkset.get("dbfrom") == "pmc" else ""
        cited = normalise_id(f"{prefix}{ids[0]}")
        citing = [
            normalise_id(f"{'PMC' if base.get('dbto') == 'pmc' else ''}{link}")
            for base in linkset.get("linksetdbs") or []
            if str(base.get("linkname", "")).endswith("_citedin")
            for link in base.get("links") or []
        ]
        for each in citing or [""]:
            yield CitationLink(cited=cited, citing=each)


def column_name(name: str) -> str:
    """A column's name as rows are read by it: lower case, spaces and hyphens as underscores."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json")
_BESIDE = {"fetched.jsonl", "not_fetched.jsonl", "manifest.json"}


class CitationCount(Struct, frozen=True, kw_only=True):
    """How often an article is cited.

    `total` counts citing articles once each; `not_case_reports` those known not to be case reports;
    `unknown_type` those of unknown type, or on which files disagree; `self_citations` those marked so (part of total).
    """

    total: int
    not_case_reports: int
    unknown_type: int
    self_citations: int = 0

    @property
    def case_reports(self) -> int:
        """How many citing articles are known to be case reports."""
        return self.total - self.not_case_reports - self.unknown_type


class Citations:
    """All links, sorted by cited and citing article, with what could not be used."""

    def __init__(self, links: Iterable[CitationLink], problems: Iterable[CitationProblem] = ()) -> None:
        self.links = tuple(sorted(links, key=lambda link: (link.cited, link.citing)))
        self.problems = tuple(problems)
        self._cited = [link.cited for link in self.links]

    def counts(self, ids: Collection[str]) -> CitationCount | None:
        """The count for an article that goes by these ids (PMC, PubMed, DOI, in any form); None without any data."""
        names = [ids] if isinstance(ids, str) else ids
        found: dict[str, CitationLink] = {}
        known = False
        for id in sorted({normalise_id(each) for each in names} - {""}):
            first, last = bisect_left(self._cited, id), bisect_right(self._cited, id)
            known = known or last > first
            for link in self.links[first:last]:
                if link.citing and (link.citing not in found or found[link.citing].case_report is None):
                    found[link.citing] = link
        return _counted(found.values()) if known else None

    def of(self, document: Document | str) -> CitationCount | None:
        """The count for a document, by all ids it carries, or for one id."""
        return self.counts([document] if isinstance(document, str) else document_ids(document))

    def __len__(self) -> int:
        return sum(bool(link.citing) for link in self.links)


def document_ids(document: Document) -> tuple[str, ...]:
    """Every id a document goes by: its own, and those among its facets."""
    named = (document.id, *facet_values(document.facets, "pmcid", "pmc", "pmid", "doi"))
    return tuple(dict.fromkeys(filter(None, map(normalise_id, named))))


def load_citations(path: Path) -> Citations:
    """Read a citation file, or a folder of them."""
    return read_citations([path])


def read_citations(paths: Sequence[Path]) -> Citations:
    """Read citation files and folders as one set of links.

    An article named by its PubMed id in one file and by its PMC id in another is two. Raises `InputError` where a file
    is not a citation file at all.
    """
    merge = _Merge()
    for path, name in _files(paths):
        for row, found in read_rows(path, name):
            if isinstance(found, CitationProblem):
                merge.problems.append(found)
            else:
                merge.add(found, name, row)
    return merge.finish()


class _Merge:
    """Links from several files becoming one set: each pair once, each citing article of one type."""

    def __init__(self) -> None:
        self.problems: list[CitationProblem] = []
        self._pairs: dict[tuple[str, str], bool] = {}
        self._types: dict[str, bool] = {}
        self._disputed: set[str] = set()

    def add(self, link: CitationLink, source: str, row: int) -> None:
        """Add a link; a repeated one only adds what the earlier ones did not say."""
        cited, citing = link.cited, link.citing
        if citing == cited:
            self.problems.append(CitationProblem(source=source, row=row, reason=f"{cited} cites itself: not counted"))
            self._pairs.setdefault((cited, ""), False)
            return
        self._pairs[cited, citing] = self._pairs.get((cited, citing), False) or link.self_citation
        if link.case_report is None or not citing:
            return
        known = self._types.setdefault(citing, link.case_report)
        if known != link.case_report and citing not in self._disputed:
            self._disputed.add(citing)
            reason = f"conflict: {citing} is a case report in one row but not in another; counted as unknown"
            self.problems.append(CitationProblem(source=source, row=row, reason=reason))

    def finish(self) -> Citations:
        """All links, each with the type its citing article has."""
        links = [
            CitationLink(
                cited=cited,
                citing=citing,
                case_report=None if citing in self._disputed else self._types.get(citing),
                self_citation=own,
            )
            for (cited, citing), own in self._pairs.items()
        ]
        return Citations(links, self.problems)


def _counted(links: Iterable[CitationLink]) -> CitationCount:
    listed = list(links)
    return CitationCount(
        total=len(listed),
        not_case_reports=sum(link.case_report is False for link in listed),
        unknown_type=sum(link.case_report is None for link in listed),
        self_citations=sum(link.self_citation for link in listed),
    )


def _files(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """The files named, and in folders those that are citation files, with the names they are listed under."""
    found: list[tuple[Path, str]] = []
    for path in paths:
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), fix="check the path")
        if path.is_file():
            found.append((path, path.name))
            continue
        inside = sorted(each for each in path.iterdir() if _is_citation_file(each))
        if not inside:
            raise InputError("no citation file in this folder", where=str(path), fix=f"put {', '.join(SUFFIXES)} there")
        found += [(each, each.name) for each in inside]
    return found


def _is_citation_file(path: Path) -> bool:
    plain = path.name.removesuffix(".gz")
    beside = path.name.startswith(".") or path.name in _BESIDE
    return path.is_file() and not beside and plain.lower().endswith(SUFFIXES)
