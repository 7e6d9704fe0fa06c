"""Who cites these articles: asked of Europe PMC, of iCite, or of Entrez's elink, and kept in one file.

Europe PMC (`/{source}/{id}/citations`, version 6.9) names each citing article with its publication type. iCite
(`/pubs?pmids=`, 2026, at most 200 ids a request) and elink (`pubmed_pubmed_citedin`, JSON, one `id` parameter an
article) give numbers only; their types come from Entrez's esummary (`pubtype`). PMC ids and DOIs become PubMed ids by
NLM's id converter (`idconv/api/v1`, one kind of id a request, at most 200).

`citations.jsonl` has a line for each citing article, in the order asked; an article that nothing cites has one with
`"citing": null`. `citations.load_citations` reads it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from hoofbeat.corpus.citations import document_ids, europe_pmc_id, is_case_report_type, normalise_id
from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.fetch.client import Client, Connection, FetchError, NotAvailableError
from hoofbeat.corpus.fetch.fetch_folder import (
    FetchFolder,
    FetchOutcome,
    FetchResult,
    PlannedArticle,
    fetch_all,
    open_folder,
    planning_errors,
)
from hoofbeat.errors import InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.tables import write_jsonl

CITATIONS = "citations.jsonl"
PAGE = 1000
BATCH = 200
MAX_PAGES = 200

UNKNOWN = "no PubMed id is known for it"
CITED_IN = "pubmed_pubmed_citedin"

CitationSource = Literal["europe-pmc", "icite", "elink"]


def fetch_citations(
    ids: Sequence[str],
    target: Path,
    connection: Connection,
    *,
    source: CitationSource = "europe-pmc",
    refresh: bool = False,
    progress: Progress = SILENT,
) -> FetchResult:
    """Look up who cites these articles (PMC or PubMed ids, DOIs) and write `citations.jsonl` into `target`.

    Repeat the call to go on after an interruption; `refresh` asks about all of them again, because citations grow.
    """
    named = {id: normalise_id(id) for id in ids}
    wrong = [id for id, normal in named.items() if not normal.startswith(("PMC", "PMID:", "doi:"))]
    if wrong or not named:
        said = f"not ids of articles: {', '.join(map(repr, wrong[:5]))}" if wrong else "no article was named"
        raise UsageError(said, fix="write PMC1234567, PMID:1234567 or doi:10.…; a bare number is a PubMed id")
    wanted = tuple(dict.fromkeys(named.values()))
    with open_folder(target, f"citations {source}", {"ids": list(wanted)}, refresh=refresh) as folder:
        if refresh:
            folder.forget_all()
        return asyncio.run(_fetch(folder, wanted, connection, source, progress))


def citation_ids(corpus: Corpus) -> tuple[str, ...]:
    """For each document the id citations are asked by: its PMC or PubMed id, else its DOI; others have none."""
    found = []
    for document in corpus:
        ids = document_ids(document)
        usable = (id for kind in ("PMID:", "PMC", "doi:") for id in ids if id.startswith(kind))
        found += [id for id in (next(usable, ""),) if id]
    if not found:
        raise InputError(
            "no document has a PMC id, PubMed id or DOI", where=str(corpus.path), fix="name ids with --ids"
        )
    return tuple(found)


async def _fetch(
    folder: FetchFolder, ids: tuple[str, ...], connection: Connection, source: CitationSource, progress: Progress
) -> FetchResult:
    async with Client(connection) as client:
        if not folder.planned:
            with planning_errors(folder, "the ids could not be converted", "the service's status"):
                await _plan(folder, client, ids, source, progress)
        title = "Look up citations"
        if source == "europe-pmc":
            result = await fetch_all(folder, client, _EuropePmc(client).fetch, progress=progress, title=title)
        else:
            fetch = _Entrez(client, source).fetch
            result = await fetch_all(folder, client, fetch, progress=progress, title=title, batch=BATCH)
    write_jsonl(folder.path / CITATIONS, (row for each in folder.answers() for row in each.answer or []))
    return result


async def _plan(
    folder: FetchFolder, client: Client, ids: tuple[str, ...], source: CitationSource, progress: Progress
) -> None:
    """Each article with the id the source knows it by, as `path`."""
    direct = ("PMC", "PMID:") if source == "europe-pmc" else ("PMID:",)
    foreign = [id for id in ids if not id.startswith(direct)]
    with progress.task("Convert ids", len(foreign)) as task:
        known = await convert_ids(client, foreign) if foreign else {}
        task.advance(len(foreign))
    planned = [PlannedArticle(id=id, path=id if id.startswith(direct) else known.get(id, "")) for id in ids]
    folder.add_page(planned, last=True)


async def convert_ids(client: Client, ids: Collection[str]) -> dict[str, str]:
    """Normalised PMC ids and DOIs to PubMed ids (`PMID:…`), as far as NLM's converter knows them."""
    found: dict[str, str] = {}
    for prefix, kind in (("PMC", "pmcid"), ("doi:", "doi")):
        for batch in _batches([id for id in ids if id.startswith(prefix)]):
            asked = {"ids": ",".join(id.removeprefix("doi:") for id in batch), "idtype": kind, "format": "json"}
            answer = await client.get(client.connection.services.id_converter, {**asked, **client.connection.ncbi()})
            for record in _rows(_decoded(answer).get("records")):
                pmid = normalise_id(str(record.get("pmid") or ""))
                for name in ("pmcid", "doi", "requested-id"):
                    id = normalise_id(str(record.get(name) or ""))
                    if pmid and id in batch:
                        found[id] = pmid
    return found


class _EuropePmc:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def fetch(self, articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
        """Who cites an article, by all pages of the service's answer."""
        (planned,) = articles
        if not planned.path:
            raise NotAvailableError(UNKNOWN)
        source = "PMC" if planned.path.startswith("PMC") else "MED"
        id = planned.path.removeprefix("PMID:")
        url = f"{self.client.connection.services.europe_pmc}/{source}/{id}/citations"
        asked = {"format": "json", "pageSize": str(PAGE), "email": self.client.connection.email}
        citing: list[dict[str, Any]] = []
        for page in range(1, MAX_PAGES + 1):
            answer = _decoded(await self.client.get(url, {**asked, "page": str(page)}))
            listed = (answer.get("citationList") or {}).get("citation") or []
            citing += [each for each in listed if isinstance(each, dict)]
            if not listed or page * PAGE >= int(answer.get("hitCount") or 0):
                break
        return [_kept(planned, [_europe_pmc_row(planned.id, each) for each in citing])]


def _europe_pmc_row(cited: str, citation: dict[str, Any]) -> dict[str, Any]:
    types = str(citation.get("citationType") or "")
    return {
        "cited": cited,
        "citing": europe_pmc_id(citation),
        "case_report": is_case_report_type(types, str(citation.get("title") or "")),
        "citing_type": types,
    }


class _Entrez:
    """iCite or elink for who cites, esummary for the citing articles' types; many articles a request."""

    def __init__(self, client: Client, source: CitationSource) -> None:
        self.client = client
        self._ask = self._icite if source == "icite" else self._elink
        self._types: dict[str, str] = {}

    async def fetch(self, articles: Sequence[PlannedArticle]) -> list[FetchOutcome]:
        """Who cites each of these articles."""
        pmids = {each.id: each.path.removeprefix("PMID:") for each in articles}
        found = await self._ask([pmid for pmid in pmids.values() if pmid])
        await self._learn_types({id for citing in found.values() for id in citing} - {*self._types})
        outcomes = []
        for each in articles:
            pmid = pmids[each.id]
            if pmid not in found:
                reason = "not found: the service does not know it" if pmid else f"not found: {UNKNOWN}"
                outcomes.append(FetchOutcome(id=each.id, outcome="gone", reason=reason))
                continue
            outcomes.append(_kept(each, [self._row(each.id, citing) for citing in found[pmid]]))
        return outcomes

    def _row(self, cited: str, citing: str) -> dict[str, Any]:
        types = self._types.get(citing, "")
        said = is_case_report_type(types)
        return {"cited": cited, "citing": f"PMID:{citing}", "case_report": said, "citing_type": types}

    async def _icite(self, pmids: Sequence[str]) -> dict[str, list[str]]:
        asked = {"pmids": ",".join(pmids), "fl": "pmid,cited_by"}
        answer = _decoded(await self.client.get(f"{self.client.connection.services.icite}/pubs", asked))
        found = {}
        for row in _rows(answer.get("data")):
            listed = row.get("cited_by") or []
            pieces = listed if isinstance(listed, list) else str(listed).split()
            found[str(row.get("pmid"))] = [str(piece) for piece in pieces if str(piece).isdecimal()]
        return found

    async def _elink(self, pmids: Sequence[str]) -> dict[str, list[str]]:
        named = {"dbfrom": "pubmed", "db": "pubmed", "linkname": CITED_IN, "retmode": "json"}
        asked = [*named.items(), *self.client.connection.ncbi().items(), *(("id", pmid) for pmid in pmids)]
        answer = _decoded(await self.client.get(f"{self.client.connection.services.eutils}/elink.fcgi", asked))
        found = {}
        for linkset in _rows(answer.get("linksets")):
            bases = [base for base in _rows(linkset.get("linksetdbs")) if base.get("linkname") == CITED_IN]
            links = [str(link) for base in bases for link in base.get("links") or []]
            found.update({str(id): links for id in (linkset.get("ids") or [])[:1]})
        return found

    async def _learn_types(self, pmids: Collection[str]) -> None:
        for batch in _batches(sorted(pmids)):
            asked = {"db": "pubmed", "id": ",".join(batch), "retmode": "json", **self.client.connection.ncbi()}
            answer = _decoded(await self.client.get(f"{self.client.connection.services.eutils}/esummary.fcgi", asked))
            result = answer.get("result") or {}
            for pmid in batch:
                types = (result.get(pmid) or {}).get("pubtype") or []
                self._types[pmid] = "; ".join(map(str, types))


def _kept(planned: PlannedArticle, rows: list[dict[str, Any]]) -> FetchOutcome:
    """An article with its citations; one that nothing cites has a row that says so."""
    return FetchOutcome(id=planned.id, outcome="kept", answer=rows or [{"cited": planned.id, "citing": None}])


def _decoded(answer: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise FetchError(f"the service's answer can't be read: {err}", passing=True) from err
    if not isinstance(value, dict):
        raise FetchError("the service's answer is not a JSON object", passing=True)
    return value


def _rows(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]
