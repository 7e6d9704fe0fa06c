"""Filters: which documents of a corpus a benchmark is made from, each returning what it kept and what not, and why.

A selection is written as a line, `year>=2023; not retracted; unique(minhash, 0.15)`: `parse_filters` reads it,
`hoofbeat.corpus.funnel` applies it. `KNOWN` lists the filters.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from hoofbeat.corpus.filters.base import Documents, Filter, Judge, Ready, Rejected, Verdict, sift, split
from hoofbeat.corpus.filters.diagnosis import build_diagnosis
from hoofbeat.corpus.filters.facets import build_facet, build_words
from hoofbeat.corpus.filters.images import build_images
from hoofbeat.corpus.filters.kind import build_type
from hoofbeat.corpus.filters.language import build_language
from hoofbeat.corpus.filters.licence import build_licence
from hoofbeat.corpus.filters.line import Clause, read_line
from hoofbeat.corpus.filters.numbers import build_number
from hoofbeat.corpus.filters.promotional import build_promotional
from hoofbeat.corpus.filters.rarity import build_rare
from hoofbeat.corpus.filters.retraction import build_retracted
from hoofbeat.corpus.filters.sections import build_roles
from hoofbeat.corpus.filters.unique import build_unique
from hoofbeat.corpus.filters.venue import build_venue
from hoofbeat.progress import Progress
from hoofbeat.records import Document

__all__ = ["FACET", "KNOWN", "Filter", "Known", "Rejected", "Verdict", "parse_filter", "parse_filters", "sift", "split"]


class Known(Struct, frozen=True):
    """A filter that can be named in a line: an example, what it keeps, and whether `not` makes sense before it."""

    example: str
    keeps: str
    build: Callable[[Clause], Filter]
    negatable: bool = True


KNOWN: dict[str, Known] = {
    "venue": Known("venue(medical)", "journals of the case-report list of OGCaReBench, or of your own", build_venue),
    "type": Known("type=case-report", "these article types", build_type),
    "keywords": Known("keywords~diagnos", "keywords and subjects with a word that begins so", build_words),
    "title": Known("title~rare,unusual", "titles with a word that begins so", build_words),
    "text": Known("text~autopsy", "texts with a word that begins so", build_words),
    "diagnosis": Known("diagnosis", "reports tagged as being about a diagnosis", build_diagnosis),
    "year": Known("year>=2023", "years of publication", build_number),
    "words": Known("words>=300", "lengths in words", build_number),
    "characters": Known("characters<=200000", "lengths in characters", build_number),
    "licence": Known("licence=CC BY,CC0", "families of licences", build_licence),
    "language": Known("language=en", "languages, as stated or as detected", build_language),
    "roles": Known("roles=case,discussion", "documents with a section of each role", build_roles),
    "images": Known("images(patient, tests)", "documents with images, in sections of these roles", build_images),
    "retracted": Known("not retracted", "retracted or doubted reports: use it with not", build_retracted),
    "promotional": Known("not promotional", "reports that advertise: use it with not", build_promotional),
    "rare": Known(
        "rare(citations.csv, year>2022, total<=3, other<=1)", "recent, hardly cited reports", build_rare, False
    ),
    "unique": Known("unique(minhash, 0.15)", "one of each set of near-duplicates", build_unique, False),
}
"""The filters by name; `facet.NAME=value` is one more for each facet."""

FACET = Known("facet.organ=kidney", "values of a facet", build_facet)
"""What `facet.NAME=value` is."""


def parse_filters(line: str) -> list[Filter]:
    """The steps of a filter line, in their order; what is wrong with it is a `UsageError` that points at the column."""
    return [_built(clause) for clause in read_line(line, KNOWN)]


def parse_filter(line: str) -> Filter:
    """A filter line of one step."""
    clauses = read_line(line, KNOWN)
    if len(clauses) > 1:
        clauses[1].fail(clauses[1].at, "one step is expected here", "give one step at a time")
    return _built(clauses[0])


def _built(clause: Clause) -> Filter:
    known = KNOWN.get(clause.name, FACET)
    if clause.negated and not known.negatable:
        clause.fail(clause.at, f"not can't stand before {clause.name}", "what it drops is listed in rejected.jsonl")
    built = known.build(clause)
    return _negated(built) if clause.negated else built


def _negated(inner: Filter) -> Filter:
    """Keeps what the filter rejects, and the other way round."""

    def prepare(documents: Documents, progress: Progress) -> Ready:
        ready = inner.prepare(documents, progress)
        return Ready(_opposite(ready.judge, inner.line), ready.tables, ready.models)

    return msgspec.structs.replace(inner, line=f"not {inner.line}", prepare=prepare)


def _opposite(judge: Judge, line: str) -> Judge:
    def opposite(document: Document) -> Verdict:
        verdict = judge(document)
        return Verdict(line, verdict.details) if verdict.kept else Verdict()

    return opposite
