"""The kinds of folders in words, and where each is shown: a kind with pages of its own there, any other on one page."""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.web.library import Folder

__all__ = ["KINDS", "MAIN", "Kind", "about_folder", "kind_words", "page_of_folder"]


class Kind(Struct, frozen=True):
    """A kind of folder: what one is called, what is in it, what its items are, and where its own pages are."""

    name: str
    about: str
    unit: str = "item"
    pages: str = ""


KINDS: dict[str, Kind] = {
    "corpus": Kind("Corpus", "Documents to search and read.", "document", "/corpora/"),
    "benchmark": Kind("Benchmark", "Questions beside the sources they were made from.", "question", "/benchmarks/"),
    "judgments": Kind("Judged answers", "Leaderboards, and every answer with its judgment.", "judgment", "/runs/"),
    "run": Kind("Answers", "What models answered.", "answer", "/runs/"),
    "audit": Kind("Audit", "Where sources agree, differ and are silent.", "pair", "/audits/"),
    "report": Kind("Report", "Pages to give away.", "folder", "/reports/"),
    "rankings": Kind("Ranking", "What a retriever found for each question, and how well.", "question", "/rankings/"),
    "comparison": Kind("Comparison", "Rankings or answers to the same questions set against each other."),
    "leakage": Kind("Leakage check", "Signs that models have seen a benchmark before.", "question"),
    "stats": Kind("Figures of a corpus", "What a corpus holds, by specialty, year, venue and length.", "document"),
    "labels": Kind("Specialties of documents", "A specialty for each document of a corpus.", "document"),
    "evidence": Kind("Evidence by source", "What each source has to say to each question.", "search"),
    "themes": Kind("Themes of an audit", "What sources disagree about, grouped."),
    "trial": Kind("Trial of a judge", "Pairs of known relation put to a judge before an audit.", "pair"),
    "validation": Kind("Check of an audit's judge", "How far the judge agrees with people.", "pair"),
    "ablation": Kind(
        "Judging tried two ways", "Pairs judged in one structured call, and with the label alone.", "pair"
    ),
    "packets": Kind("Packets for annotators", "Pairs of an audit, blinded, for people to label.", "pair"),
    "audit-comparison": Kind("Two audits compared", "The same questions before and after a change.", "pair"),
    "audit-export": Kind("Audit for others", "An audit's matrices and records as files.", "pair"),
    "export": Kind("Export", "Files in the formats that others read."),
    "index": Kind("Search index", "What retrievers built over a corpus, kept to be quick."),
}
"""Every kind of folder that Hoofbeat makes."""

MAIN = tuple(name for name, kind in KINDS.items() if kind.pages)
"""The kinds with pages of their own, in the order of the flow."""


def kind_words(kind: str) -> Kind:
    """A kind in words; one that is not known goes by its name."""
    return KINDS.get(kind, Kind(kind.capitalize() or "Folder", "A folder of a kind that these pages do not know."))


def page_of_folder(folder: Folder) -> str:
    """Where a folder is shown."""
    return f"{kind_words(folder.kind).pages or '/folders/'}{folder.slug}"


def about_folder(folder: Folder) -> str:
    """Where it is told how a folder was made."""
    return f"/folders/{folder.slug}"
