"""Who cites whom: citation files made into one small table, and counts for each cited article.

The rarity filter of OGCaReBench needs, for each report, how many articles cite it and how many of those are no case
reports. Counts come from files the user supplies or `hoofbeat corpus fetch citations` brings, so they are read with
suspicion: ids are brought to one form, repeated links are counted once, an article that cites itself is not counted,
and what is contradictory or unreadable is listed. An article that was looked up and that nothing cites has a count of
zero; one that no file speaks of has none (`None`): unknown is not rare.
"""

from __future__ import annotations

import csv
import gzip
import io
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.corpus.parsers.citation_rows import CitationLink, CitationProblem, normalise_id, read_rows
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values
from hoofbeat.records import Document
from hoofbeat.store.tables import read_parquet, write_jsonl, write_parquet

if TYPE_CHECKING:
    import polars

__all__ = [
    "CitationCount",
    "CitationLink",
    "CitationProblem",
    "Citations",
    "document_ids",
    "import_citations",
    "load_citations",
    "normalise_id",
    "read_citations",
    "read_id_map",
]

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
TABLE = "citations.parquet"
PROBLEMS = "citation_problems.jsonl"

_BESIDE = {PROBLEMS, "fetched.jsonl", "not_fetched.jsonl", "manifest.json"}
_COLUMNS = ("cited", "citing", "case_report", "self_citation")


class CitationCount(Struct, frozen=True, kw_only=True):
    """How often an article is cited.

    `total` counts citing articles once each; `not_case_reports` those known to be no case reports; `unknown_type` those
    nobody says what they are, or where files contradict each other; `self_citations` those marked so (part of total).
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

    def cited(self) -> tuple[str, ...]:
        """The articles there is data on, sorted, each once."""
        return tuple(dict.fromkeys(self._cited))

    def __len__(self) -> int:
        return sum(bool(link.citing) for link in self.links)

    def table(self) -> polars.DataFrame:
        """The links as a table: cited, citing, case_report, self_citation."""
        import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

        schema: dict[str, type[polars.DataType]] = {
            "cited": polars.String,
            "citing": polars.String,
            "case_report": polars.Boolean,
            "self_citation": polars.Boolean,
        }
        columns = {name: [getattr(link, name) for link in self.links] for name in _COLUMNS}
        return polars.DataFrame(columns, schema=schema)


def document_ids(document: Document) -> tuple[str, ...]:
    """Every id a document goes by: its own, and those among its facets."""
    named = (document.id, *facet_values(document.facets, "pmcid", "pmc", "pmid", "doi"))
    return tuple(dict.fromkeys(filter(None, map(normalise_id, named))))


def load_citations(path: Path) -> Citations:
    """Read a citation file, a compact table, or a folder of them; see `citation_rows` for the shapes."""
    return read_citations([path])


def read_citations(paths: Sequence[Path], *, id_map: Mapping[str, str] | None = None) -> Citations:
    """Read citation files and folders as one set of links.

    `id_map` gives the id an article is to go by (see `read_id_map`); without it, an article named by its PubMed id in
    one file and by its PMC id in another is two. Raises `InputError` where a file is no citation file at all.
    """
    merge = _Merge(id_map or {})
    for path, name in _files(paths):
        if path.suffix.lower() == ".parquet":
            merge.add_table(path, name)
            continue
        for row, found in read_rows(path, name):
            if isinstance(found, CitationProblem):
                merge.problems.append(found)
            else:
                merge.add(found, name, row)
    return merge.finish()


def import_citations(paths: Sequence[Path], target: Path, *, id_map: Mapping[str, str] | None = None) -> Citations:
    """Read citation files; write the compact table (`citations.parquet`) and the problems into the folder `target`."""
    citations = read_citations(paths, id_map=id_map)
    write_parquet(target / TABLE, citations.table())
    write_jsonl(target / PROBLEMS, citations.problems)
    return citations


def read_id_map(path: Path, wanted: Collection[str] | None = None) -> dict[str, str]:
    """From PMC's `PMC-ids.csv(.gz)` (columns PMCID, PMID, DOI): each id of an article to the one it should go by.

    That is its PMC id, else its PubMed id. The full list has over ten million lines: `wanted` keeps only articles that
    go by one of these (normalised) ids.
    """
    names: dict[str, str] = {}
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path, "rb") if packed else path.open("rb") as stream:
            rows = csv.DictReader(io.TextIOWrapper(stream, encoding="utf-8-sig", newline=""))
            for row in rows:
                plain = {str(name).strip().lower(): str(value or "") for name, value in row.items()}
                ids = [normalise_id(plain.get(name, "")) for name in ("pmcid", "pmid", "doi")]
                present = [id for id in ids if id]
                if len(present) > 1 and (wanted is None or not {*wanted}.isdisjoint(present)):
                    names.update(dict.fromkeys(present[1:], present[0]))
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as err:
        raise InputError(
            f"can't read the list of ids: {err}", where=str(path), fix="name PMC's PMC-ids.csv or PMC-ids.csv.gz"
        ) from err
    return names


class _Merge:
    """Links from several files becoming one set: each pair once, each citing article of one type."""

    def __init__(self, id_map: Mapping[str, str]) -> None:
        self.problems: list[CitationProblem] = []
        self._id_map = id_map
        self._pairs: dict[tuple[str, str], bool] = {}
        self._types: dict[str, bool] = {}
        self._disputed: set[str] = set()

    def add(self, link: CitationLink, source: str, row: int) -> None:
        """Take a link in; a repeated one only adds what the earlier ones did not say."""
        cited = self._id_map.get(link.cited, link.cited)
        citing = self._id_map.get(link.citing, link.citing)
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
            reason = f"conflict: {citing} is a case report in one row and none in another; counted as unknown"
            self.problems.append(CitationProblem(source=source, row=row, reason=reason))

    def add_table(self, path: Path, source: str) -> None:
        """Take in a compact table."""
        frame = read_parquet(path)
        if not {*_COLUMNS} <= {*frame.columns}:
            raise InputError(
                f"no citation table: it has the columns {', '.join(frame.columns)[:200]}",
                where=str(path),
                fix=f"name a table with {', '.join(_COLUMNS)}, as `import_citations` writes it",
            )
        for number, row in enumerate(frame.select(_COLUMNS).iter_rows(), start=1):
            cited, citing, case_report, own = row
            link = CitationLink(cited=cited, citing=citing, case_report=case_report, self_citation=bool(own))
            self.add(link, source, number)

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
        table = path / TABLE
        inside = [table] if table.is_file() else sorted(each for each in path.iterdir() if _is_citation_file(each))
        if not inside:
            raise InputError("no citation file in this folder", where=str(path), fix=f"put {', '.join(SUFFIXES)} there")
        found += [(each, each.name) for each in inside]
    return found


def _is_citation_file(path: Path) -> bool:
    plain = path.name.removesuffix(".gz")
    beside = path.name.startswith(".") or path.name in _BESIDE
    return path.is_file() and not beside and plain.lower().endswith(SUFFIXES)
