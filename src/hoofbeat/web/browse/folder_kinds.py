"""The kinds of folders in words, and where each is shown: a kind with pages of its own there, any other on one page."""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.store.folder_library import Folder


class FolderKind(Struct, frozen=True):
    """A kind of folder: what one is called, what is in it, what its items are, and where its own pages are."""

    name: str
    about: str
    unit: str = "item"
    pages: str = ""


KINDS: dict[str, FolderKind] = {
    "corpus": FolderKind("Corpus", "Documents to search and read.", "document", "/corpora/"),
    "benchmark": FolderKind(
        "Benchmark", "Questions beside the sources they were made from.", "question", "/benchmarks/"
    ),
    "judgments": FolderKind(
        "Judged answers", "Leaderboards, and every answer with its judgment.", "judgment", "/runs/"
    ),
    "run": FolderKind("Answers", "What models answered.", "answer", "/runs/"),
    "audit": FolderKind("Audit", "Where sources agree, differ and are silent.", "pair", "/audits/"),
    "report": FolderKind("Report", "Pages to give away.", "folder", "/reports/"),
    "rankings": FolderKind(
        "Ranking", "What a retriever found for each question, and how well.", "question", "/rankings/"
    ),
    "comparison": FolderKind("Comparison", "Rankings or answers to the same questions set against each other."),
    "leakage": FolderKind("Leakage check", "Signs that models have seen a benchmark before.", "question"),
    "stats": FolderKind(
        "Figures of a corpus", "What a corpus holds, by specialty, year, venue and length.", "document"
    ),
    "labels": FolderKind("Specialties of documents", "A specialty for each document of a corpus.", "document"),
    "evidence": FolderKind("Evidence by source", "What each source has to say to each question.", "search"),
    "themes": FolderKind("Themes of an audit", "What sources disagree about, grouped."),
    "trial": FolderKind("Trial of a judge", "Pairs of known relation put to a judge before an audit.", "pair"),
    "validation": FolderKind("Check of an audit's judge", "How far the judge agrees with people.", "pair"),
    "ablation": FolderKind(
        "Judging tried two ways", "Pairs judged in one structured call, and with the label alone.", "pair"
    ),
    "packets": FolderKind("Packets for annotators", "Pairs of an audit, blinded, for people to label.", "pair"),
    "audit-comparison": FolderKind("Two audits compared", "The same questions before and after a change.", "pair"),
    "audit-export": FolderKind("Audit for others", "An audit's matrices and records as files.", "pair"),
    "export": FolderKind("Export", "Files in the formats that others read."),
    "index": FolderKind("Search index", "What retrievers built over a corpus, kept to be quick."),
}
"""Every kind of folder that Hoofbeat makes."""

MAIN = tuple(name for name, kind in KINDS.items() if kind.pages)
"""The kinds with pages of their own, in the order of the flow."""


def kind_words(kind: str) -> FolderKind:
    """A kind in words; one that is not known goes by its name."""
    return KINDS.get(
        kind, FolderKind(kind.capitalize() or "Folder", "A folder of a kind that these pages do not know.")
    )


def page_of_folder(folder: Folder) -> str:
    """Where a folder is shown."""
    return f"{kind_words(folder.kind).pages or '/folders/'}{folder.slug}"


def about_folder(folder: Folder) -> str:
    """Where it is told how a folder was made."""
    return f"/folders/{folder.slug}"
