"""Fetching full texts and citations from Europe PMC, iCite and Entrez, against a real server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hoofbeat.corpus import import_corpus
from hoofbeat.corpus.citations import CitationCount, load_citations
from hoofbeat.corpus.fetch.articles import europe_pmc_query, fetch_europe_pmc
from hoofbeat.corpus.fetch.cited_by import fetch_citations
from hoofbeat.corpus.fetch.client import ArticleSelection, Connection
from hoofbeat.errors import InputError, UsageError
from hoofbeat.teaching import cases_folder
from tests.corpus.fetch_support import folder_contents
from tests.corpus.pmc_server import PmcServer

IDS = tuple(f"PMC80{number}" for number in range(1, 8))


@pytest.fixture
def server() -> Iterator[PmcServer]:
    """A server with seven teaching cases, found by any search, three a page."""
    with PmcServer() as running:
        for place, (id, path) in enumerate(zip(IDS, sorted(cases_folder().glob("*.xml")), strict=False)):
            running.add_article(id, {"a.xml": path.read_bytes()})
            licence = "cc by" if place % 2 == 0 else "cc by-nc"
            types = ["Case Reports", "Retracted Publication"] if place == 2 else ["Case Reports"]
            running.search.append({"pmcid": id, "license": licence, "pubTypeList": {"pubType": types}})
        running.search.insert(1, {"id": "1", "source": "MED", "title": "an abstract without full text"})
        running.search_page = 3
        yield running


def connection(server: PmcServer) -> Connection:
    return Connection.chosen(email="a@b.org", rate=100, services=server.services(), environment={})


def rows(path: Path) -> list[dict[str, Any]]:
    return [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]


def test_a_query_is_paged_by_cursor_and_brings_xml_that_imports(server: PmcServer, tmp_path: Path) -> None:
    server.faults["/epmc/search"] = ["503"]
    result = fetch_europe_pmc(ArticleSelection(query="fever"), tmp_path / "out", connection(server))
    assert (result.counts.kept, result.counts.failed) == (7, 0)
    answered = [each.query["cursorMark"] for each in server.asked("/epmc/search")]
    assert answered == ["*", "*", "3", "6"]
    listed = rows(tmp_path / "out" / "fetched.jsonl")
    assert [row["file"] for row in listed] == [f"{id}.xml" for id in IDS]
    assert [row["licence"] for row in listed][:2] == ["CC BY", "CC BY-NC"]
    assert [row["id"] for row in listed if row.get("retracted")] == [IDS[2]]
    assert import_corpus([tmp_path / "out" / "articles"], tmp_path / "corpus").manifest.counts.kept == 7


def test_licence_and_limit_choose_and_stop_the_paging(server: PmcServer, tmp_path: Path) -> None:
    selection = ArticleSelection(query="fever", licences=("CC BY",), limit=2)
    fetch_europe_pmc(selection, tmp_path / "out", connection(server))
    assert [row["id"] for row in rows(tmp_path / "out" / "fetched.jsonl")] == [IDS[0], IDS[2]]
    assert len(server.asked("/epmc/search")) == 2


def test_venues_and_years_become_the_query() -> None:
    chosen = ArticleSelection(query="rare OR odd", venues=("J Med Case Rep", 'A "B"'), years=(2023, 2026))
    assert europe_pmc_query(chosen) == (
        '(rare OR odd) AND (JOURNAL:"J Med Case Rep" OR JOURNAL:"A  B ") AND (PUB_YEAR:[2023 TO 2026])'
        " AND (OPEN_ACCESS:y) AND (IN_EPMC:y)"
    )


def test_a_search_goes_on_at_its_cursor_after_a_failure(server: PmcServer, tmp_path: Path) -> None:
    server.faults["/epmc/search"] = ["", "403"]
    selection = ArticleSelection(query="fever")
    with pytest.raises(InputError, match="the search failed: HTTP 403"):
        fetch_europe_pmc(selection, tmp_path / "out", connection(server))
    server.seen.clear()
    fetch_europe_pmc(selection, tmp_path / "out", connection(server))
    assert [each.query["cursorMark"] for each in server.asked("/epmc/search")] == ["3", "6"]
    fetch_europe_pmc(selection, tmp_path / "fresh", connection(server))
    assert folder_contents(tmp_path / "out") == folder_contents(tmp_path / "fresh")


def test_half_an_article_and_web_pages_are_not_kept(server: PmcServer, tmp_path: Path) -> None:
    server.files[f"/epmc/{IDS[0]}/fullTextXML"] = b"<html><body>Maintenance</body></html>"
    server.files[f"/epmc/{IDS[1]}/fullTextXML"] = server.files[f"/epmc/{IDS[1]}/fullTextXML"][:-40]
    del server.files[f"/epmc/{IDS[2]}/fullTextXML"]
    result = fetch_europe_pmc(ArticleSelection(ids=IDS[:4]), tmp_path / "out", connection(server))
    assert (result.counts.kept, result.counts.rejected) == (1, 1)
    assert result.counts.failures == {
        "damaged on every try: a web page, not an article": 1,
        "damaged on every try: the XML breaks off before its end": 1,
    }


def citing(id: int, types: str = "journal article", title: str = "On something") -> dict[str, Any]:
    return {"id": str(id), "source": "MED", "citationType": types, "title": title, "pubYear": 2025}


@pytest.fixture
def cited(server: PmcServer) -> PmcServer:
    """Three articles: cited by a case report, a review and one of unknown type; by nothing; by a crowd."""
    server.citations = {
        "11": [citing(101, "case reports; journal article"), citing(102, "review; journal article"), citing(103, "")],
        "12": [],
        "13": [citing(200 + number) for number in range(1500)],
    }
    server.types = {"101": ["Journal Article", "Case Reports"], "102": ["Review"]}
    server.pmids = {"PMC11": "11", "10.1234/b": "12"}
    return server


def test_europe_pmc_citations_are_counted_by_type(cited: PmcServer, tmp_path: Path) -> None:
    cited.faults["/epmc/MED/11/citations"] = ["503", "429:0.1"]
    result = fetch_citations(
        ["11", "PMID:12", "13", "PMID:99", "doi:10.1234/B"], tmp_path / "out", connection(cited), source="europe-pmc"
    )
    assert (result.counts.kept, result.counts.rejected) == (4, 1)
    assert [each.query["page"] for each in cited.asked("/epmc/MED/13/citations")] == ["1", "2"]
    citations = load_citations(tmp_path / "out" / "citations.jsonl")
    assert citations.problems == ()
    assert citations.counts(["11"]) == CitationCount(total=3, not_case_reports=1, unknown_type=1)
    assert citations.counts(["PMID:12"]) == CitationCount(total=0, not_case_reports=0, unknown_type=0)
    assert citations.counts(["10.1234/b"]) == CitationCount(total=0, not_case_reports=0, unknown_type=0)
    assert citations.counts(["13"]) == CitationCount(total=1500, not_case_reports=1500, unknown_type=0)
    assert citations.counts(["99"]) is None
    from_folder = load_citations(tmp_path / "out")
    assert from_folder.links == citations.links
    assert from_folder.problems == ()


@pytest.mark.parametrize("source", ["icite", "elink"])
def test_icite_and_elink_are_asked_in_batches_and_typed_by_entrez(
    cited: PmcServer, tmp_path: Path, source: Any
) -> None:
    result = fetch_citations(["PMC11", "12", "13", "PMC5"], tmp_path / "out", connection(cited), source=source)
    assert (result.counts.kept, result.counts.rejected) == (3, 1)
    citations = load_citations(tmp_path / "out")
    assert citations.counts(["PMC11"]) == CitationCount(total=3, not_case_reports=1, unknown_type=1)
    assert citations.counts(["12"]) == CitationCount(total=0, not_case_reports=0, unknown_type=0)
    assert citations.counts(["13"]) == CitationCount(total=1500, not_case_reports=0, unknown_type=1500)
    path = "/icite/pubs" if source == "icite" else "/eutils/elink.fcgi"
    assert len(cited.asked(path)) == 1
    assert len(cited.asked("/eutils/esummary.fcgi")) == 8
    assert cited.asked("/idconv/")[0].query["idtype"] == "pmcid"


def test_citations_grow_old_and_are_asked_again_on_demand(cited: PmcServer, tmp_path: Path) -> None:
    fetch_citations(["12"], tmp_path / "out", connection(cited))
    cited.citations["12"] = [citing(300)]
    fetch_citations(["12"], tmp_path / "out", connection(cited))
    assert load_citations(tmp_path / "out").counts(["12"]) == CitationCount(total=0, not_case_reports=0, unknown_type=0)
    fetch_citations(["12"], tmp_path / "out", connection(cited), refresh=True)
    assert load_citations(tmp_path / "out").counts(["12"]) == CitationCount(total=1, not_case_reports=1, unknown_type=0)


def test_what_is_no_article_is_told_at_once(server: PmcServer, tmp_path: Path) -> None:
    for ids in ([], ["not an id"], ["hbt-case-01"]):
        with pytest.raises(UsageError):
            fetch_citations(ids, tmp_path / "out", connection(server))
    assert server.seen == []
