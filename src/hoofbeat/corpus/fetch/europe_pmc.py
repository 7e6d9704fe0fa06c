"""Europe PMC: its search, page by page, and the full text of open-access articles as JATS XML.

Written against the Articles RESTful API, version 6.9 (`/search` with `cursorMark` paging and `resultType=core`,
`/{PMCID}/fullTextXML`), JSON answers. The last page has no `nextCursorMark`, or the one that was asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.fetch.article_lists import same_licence
from hoofbeat.corpus.fetch.client import Client, FetchError, NotAvailableError
from hoofbeat.corpus.fetch.downloads import bring, fetch_all
from hoofbeat.corpus.fetch.fetch_folder import FetchFolder, FetchOutcome, FetchResult, PlannedArticle, open_folder
from hoofbeat.corpus.fetch.pmc import pmc_ids
from hoofbeat.corpus.fetch.services import ArticleSelection, Connection
from hoofbeat.corpus.parsers.citation_rows import normalise_id
from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress

PAGE = 100


class _Article(Struct):
    pmcid: str | None = None
    license: str | None = None
    dateOfRevision: str | None = None  # noqa: N815 - the service's word
    pubTypeList: Any = None  # noqa: N815


class _Results(Struct):
    result: list[_Article] = field(default_factory=list)


class _Page(Struct):
    resultList: _Results = field(default_factory=_Results)  # noqa: N815
    nextCursorMark: str | None = None  # noqa: N815


def fetch_europe_pmc(
    selection: ArticleSelection,
    target: Path,
    connection: Connection,
    *,
    refresh: bool = False,
    progress: Progress = SILENT,
) -> FetchResult:
    """Fetch full texts as XML into the folder `target`; repeat the call to go on after an interruption.

    Venues and years become part of the query; licences are told by the search, so the limit counts only what fits.
    """
    selection.check()
    if selection.ids and selection.licences:
        raise UsageError("Europe PMC tells licences in its search only", fix="use a query, or fetch the ids from pmc")
    wanted = msgspec.structs.replace(selection, ids=pmc_ids(selection.ids))
    with open_folder(target, "europe-pmc", wanted.record(), refresh=refresh) as folder:
        return asyncio.run(_fetch(folder, wanted, connection, progress))


def europe_pmc_query(selection: ArticleSelection) -> str:
    """The query for a selection, in Europe PMC's syntax: open-access articles with full text there."""
    parts = [f"({selection.query.strip()})"] if selection.query.strip() else []
    if selection.venues:
        quoted = (venue.replace('"', " ") for venue in selection.venues)
        parts.append("(" + " OR ".join(f'JOURNAL:"{venue}"' for venue in quoted) + ")")
    if selection.years:
        parts.append(f"(PUB_YEAR:[{selection.years[0]} TO {selection.years[1]}])")
    return " AND ".join([*parts, "(OPEN_ACCESS:y)", "(IN_EPMC:y)"])


async def _fetch(
    folder: FetchFolder, selection: ArticleSelection, connection: Connection, progress: Progress
) -> FetchResult:
    async with Client(connection) as client:
        try:
            await _plan(folder, client, selection, progress)
        except (FetchError, NotAvailableError) as err:
            raise InputError(
                f"the search could not be made: {err}",
                where=str(folder.path),
                fix="check the query and the service's status; the same command goes on where it was",
            ) from err

        async def one(articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
            (planned,) = articles
            path = f"{planned.id}/fullTextXML"
            url = f"{connection.services.europe_pmc}/{path}?email={connection.email}"
            file = await bring(folder, client, planned, url=url, path=path, file=f"{planned.id}.xml")
            return [FetchOutcome(id=planned.id, outcome="kept", files=(file,))]

        return await fetch_all(folder, client, one, progress=progress, title="Fetch articles")


async def _plan(folder: FetchFolder, client: Client, selection: ArticleSelection, progress: Progress) -> None:
    if selection.ids and not folder.planned:
        folder.add_page([PlannedArticle(id=id) for id in selection.ids[: selection.limit]], last=True)
    url = f"{client.connection.services.europe_pmc}/search"
    asked = {"query": europe_pmc_query(selection), "format": "json", "resultType": "core", "pageSize": str(PAGE)}
    with progress.task("Search Europe PMC", selection.limit) as task:
        while not folder.planned:
            cursor = folder.cursor or "*"
            answer = await client.get(url, {**asked, "cursorMark": cursor, "email": client.connection.email})
            try:
                page = msgspec.json.decode(answer, type=_Page)
            except (msgspec.DecodeError, UnicodeDecodeError) as err:
                raise FetchError(f"the search's answer can't be read: {err}") from err
            known = {each.id for each in folder.plan()}
            found = [each for each in _articles(page, selection) if each.id not in known]
            room = len(found) if selection.limit is None else selection.limit - len(known)
            further = page.nextCursorMark or cursor
            at_end = not page.resultList.result or further == cursor
            full = selection.limit is not None and room <= len(found)
            folder.add_page(found[:room], cursor=further, last=at_end or full)
            task.advance(len(found[:room]))


def _articles(page: _Page, selection: ArticleSelection) -> list[PlannedArticle]:
    found = []
    for each in page.resultList.result:
        id, licence = normalise_id(each.pmcid or ""), each.license or ""
        if not id.startswith("PMC") or (selection.licences and not same_licence(licence, selection.licences)):
            continue
        retracted = "retracted publication" in str(each.pubTypeList or "").lower()
        updated = each.dateOfRevision or ""
        found.append(PlannedArticle(id=id, licence=licence.upper(), updated=updated, retracted=retracted))
    return list({each.id: each for each in found}.values())
