"""Small invented corpora that were filtered and counted, made with the stages' own functions."""

from __future__ import annotations

from pathlib import Path

from hoofbeat import teaching
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.filter import parse_filters
from hoofbeat.corpus.funnel import filter_corpus
from hoofbeat.corpus.stats import CorpusStats, compute_stats, write_stats
from hoofbeat.records import Document
from hoofbeat.store import Artefact
from tests.reports import examples

LINE = "type=case-report; year>=2020; unique(minhash, 0.3); not retracted"


def documents() -> list[Document]:
    """Twenty-four cases of six years and three venues; one is a copy, one retracted, one a letter."""
    made = []
    for number, case in enumerate(teaching.cases()):
        made.append(
            Document(
                id=case.id,
                title=case.title,
                text=f"{case.title}\n\n{case.diagnosis}. {case.significance}",
                facets={"year": str(2019 + number % 6), "journal": f"Journal {'ABC'[number % 3]}"},
                kind="letter" if number == 3 else "case-report",
                licence="CC BY 4.0" if number % 4 else "",
                notices=("retraction",) if number == 5 else (),
            )
        )
    copy = made[1]
    return [*made, Document(id="z-copy", title=copy.title, text=copy.text, facets=copy.facets, kind=copy.kind)]


def filtered(target: Path, line: str = LINE, found: list[Document] | None = None) -> Artefact:
    """A corpus filtered by a line."""
    origin = examples.corpus(target.with_name(f"{target.name}-origin"), documents() if found is None else found)
    command = ["hoofbeat", "corpus", "filter", "cases", "--keep", line]
    return filter_corpus(Corpus.open(origin.path), parse_filters(line), target, command=command)


def counted(schemes: tuple[str, ...] = ("ogcare", "body-systems")) -> CorpusStats:
    """The statistics of the invented documents."""
    return compute_stats(documents(), schemes=schemes)


def stats(target: Path, what: CorpusStats | None = None) -> Artefact:
    """An artefact of statistics."""
    origin = examples.corpus(target.with_name(f"{target.name}-corpus"), documents())
    return write_stats(target, what or counted(), Corpus.open(origin.path), command=["hoofbeat", "corpus", "stats"])


def made(folder: Path) -> list[Path]:
    """One of each, for the report that all tests look at."""
    return [filtered(folder / "filtered").path, stats(folder / "stats").path]
