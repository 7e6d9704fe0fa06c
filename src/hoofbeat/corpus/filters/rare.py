"""Rarity by citations, as OGCaReBench defines it: recent, and hardly cited by anything but case reports.

A report is dropped when it was published in or before 2022, when more than three articles cite it, or when more than
one article that is no case report cites it (the thresholds are parameters). Unknown is not the same as not rare: a
report without a year or without citation data is kept and marked so (facet `rarity`), and so is one that citing
articles of unknown type could have pushed over the limit. Benchmarks age: `refilter` asks the same questions of newer
citations.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.citations import CitationCount, Citations, load_citations
from hoofbeat.corpus.filter import Clause, CorpusFilter, Documents, FilterStep, FilterVerdict, PreparedFilter
from hoofbeat.facets import year_of
from hoofbeat.progress import Progress
from hoofbeat.records import Document, Facets


class RarityLimits(Struct, frozen=True, kw_only=True):
    """Published after `year`, cited by at most `total` articles and by at most `other` that are not case reports."""

    year: int = 2022
    total: int = 3
    other: int = 1


def rarity(document: Document, count: CitationCount | None, limits: RarityLimits) -> FilterVerdict:
    """Whether a document is rare, given how often it is cited (None: no data)."""
    year = year_of(document)
    if year is not None and year <= limits.year:
        return FilterVerdict(f"published in or before {limits.year}", f"published in {year}")
    if count is not None and count.total > limits.total:
        return FilterVerdict(f"cited by more than {limits.total} articles", _listed(count))
    if count is not None and count.not_case_reports > limits.other:
        reason = f"cited by more than {limits.other} {'article that is' if limits.other == 1 else 'articles that are'}"
        return FilterVerdict(f"{reason} no case report{'' if limits.other == 1 else 's'}", _listed(count))
    sure = year is not None and count is not None and count.not_case_reports + count.unknown_type <= limits.other
    facets: Facets = {"rarity": "rare" if sure else "unknown", "cited_by": "unknown"}
    if count is not None:
        facets["cited_by"] = str(count.total)
        facets["cited_by_other"] = str(count.not_case_reports)
    return FilterVerdict(facets=facets)


def rare(citations: Path, limits: RarityLimits = RarityLimits(), line: str = "") -> FilterStep:  # noqa: B008 - frozen
    """The filter, over a citation file or a folder of them."""

    def prepare(_documents: Documents, _progress: Progress) -> PreparedFilter:
        found: Citations = load_citations(citations)
        return PreparedFilter(lambda document: rarity(document, found.of(document), limits))

    shown = f"rare({citations.name}, year>{limits.year}, total<={limits.total}, other<={limits.other})"
    files = (citations,) if citations.is_file() else tuple(sorted(p for p in citations.glob("*") if p.is_file()))
    return FilterStep(
        name="rare",
        line=line or shown,
        prepare=prepare,
        settings={"year": limits.year, "total": limits.total, "other": limits.other},
        files=files or (citations,),
        remark=_remark,
    )


class _Rare(CorpusFilter):
    name = "rare"
    summary = "recent, hardly cited reports"
    example = "rare(citations.csv, year>2022, total<=3, other<=1)"
    negatable = False

    def build(self, clause: Clause) -> FilterStep:
        """`rare(FILE, year>2022, total<=3, other<=1)`; each limit may be left out."""
        if clause.operator or not clause.arguments or clause.arguments[0].name:
            first = clause.arguments[0] if clause.arguments else None
            column = (first.name_at or first.at) if first else clause.at + len(clause.name)
            clause.fail(column, "rare needs a citation file first", f"write {self.example}")
        limits = {"year": 2022, "total": 3, "other": 1}
        for argument in clause.arguments[1:]:
            if argument.name not in limits:
                word = argument.name or argument.text
                clause.unknown(argument.name_at or argument.at, f"rare has no limit {word!r}", word, limits)
            number = clause.whole(argument)
            strict, loose = (">", ">=") if argument.name == "year" else ("<", "<=")
            if argument.operator not in {strict, loose}:
                clause.fail(argument.name_at, f"{argument.name} takes {strict} or {loose}", f"write {self.example}")
            if argument.name == "year":
                number -= argument.operator == ">="
            else:
                number -= argument.operator == "<"
            if number < 0:
                clause.fail(argument.at, f"{argument.name} can't be below 0", f"write {self.example}")
            limits[argument.name] = number
        return rare(Path(clause.arguments[0].text), RarityLimits(**limits))


FILTER = _Rare()


def _remark(kept: Iterable[Document]) -> str:
    marks = [document.facets.get("rarity") for document in kept]
    return f"rarity unknown (kept, with a mark): {marks.count('unknown')} of {len(marks)}"


def _listed(count: CitationCount) -> str:
    return (
        f"cited by {count.total}: {count.case_reports} case reports, {count.not_case_reports} others, "
        f"{count.unknown_type} of unknown type"
    )
