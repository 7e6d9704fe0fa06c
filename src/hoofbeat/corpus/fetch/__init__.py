"""Fetching: open-access articles and their citations from PMC, Europe PMC and NLM's services, into a folder.

Each function takes a selection, a target folder and a `Connection`, and can be interrupted at any moment: the same
call goes on where it was and leaves the same folder. `corpus import FOLDER/articles` reads what was fetched.
"""

from __future__ import annotations

from pathlib import Path

from hoofbeat.corpus.fetch.articles import Via, fetch_europe_pmc, fetch_pmc
from hoofbeat.corpus.fetch.cited_by import CITATIONS, CitationSource, citation_ids, fetch_citations
from hoofbeat.corpus.fetch.client import ArticleSelection, Connection, Services
from hoofbeat.corpus.fetch.fetch_folder import ARTICLES, FetchedFile, FetchResult
from hoofbeat.errors import InputError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.files import read_bytes

__all__ = [
    "ARTICLES",
    "CITATIONS",
    "SOURCES",
    "ArticleSelection",
    "CitationSource",
    "Connection",
    "FetchResult",
    "FetchedFile",
    "Services",
    "citation_ids",
    "fetch_articles",
    "fetch_citations",
    "fetch_europe_pmc",
    "fetch_pmc",
    "read_names",
]

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
        selection,
        target,
        connection,
        via=via,
        images=images,
        file_list=file_list,
        refresh=refresh,
        progress=progress,
    )


def read_names(path: Path) -> tuple[str, ...]:
    """The names in a file, one per line, without empty lines and those that begin with `#`."""
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as err:
        raise InputError(f"not a text file: {err}", where=str(path), fix="write one name a line, in UTF-8") from err
    return tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
