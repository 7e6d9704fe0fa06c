"""Fetching: open-access articles and their citations from PMC, Europe PMC and NLM's services, into a folder.

Each function takes a selection, a target folder and a `Connection`, and can be interrupted at any moment: the same
call goes on where it was and leaves the same folder. `corpus import FOLDER/articles` reads what was fetched.
"""

from __future__ import annotations

from hoofbeat.corpus.fetch.citing import fetch_citations
from hoofbeat.corpus.fetch.europe_pmc import fetch_europe_pmc
from hoofbeat.corpus.fetch.folder import ARTICLES, FetchedFile, FetchResult
from hoofbeat.corpus.fetch.pmc import fetch_pmc
from hoofbeat.corpus.fetch.services import Connection, Selection, Services

__all__ = [
    "ARTICLES",
    "Connection",
    "FetchResult",
    "FetchedFile",
    "Selection",
    "Services",
    "fetch_citations",
    "fetch_europe_pmc",
    "fetch_pmc",
]
