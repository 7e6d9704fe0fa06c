"""Fetching from PMC against a real server that breaks off, refuses, redirects and lies."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest
from yarl import URL

from hoofbeat.corpus import import_corpus
from hoofbeat.corpus.fetch.articles import cloud_article, fetch_pmc, oa_link, same_licence, same_venue, select_rows
from hoofbeat.corpus.fetch.client import ArticleSelection, Connection, FetchError, NotAvailableError, redirect_target
from hoofbeat.corpus.fetch.fetch_folder import damage
from hoofbeat.errors import InputError, OutputError, UsageError
from hoofbeat.teaching import cases_folder
from tests.corpus.fetch_support import IDS, assert_complete, fetch, folder_contents, package_path, rows, teaching_server
from tests.corpus.pmc_server import PmcServer, package
from tests.helpers import shared_data


@pytest.fixture
def server() -> Iterator[PmcServer]:
    with teaching_server() as running:
        yield running


def test_packages_are_found_by_the_oa_service_and_recorded(server: PmcServer, tmp_path: Path) -> None:
    result = fetch(server, tmp_path / "out")
    assert (result.counts.kept, result.counts.rejected, result.counts.failed, result.new) == (4, 0, 0, 4)
    assert_complete(server, tmp_path / "out", *IDS)
    assert import_corpus([tmp_path / "out" / "articles"], tmp_path / "corpus").manifest.counts.kept == 4
    first = rows(tmp_path / "out" / "fetched.jsonl")[0]
    assert first["licence"] == "CC BY"
    assert first["updated"] == "2026-03-04 05:06:07"
    asked = server.asked("/oa.fcgi")[0]
    assert asked.query["tool"] == "hoofbeat"
    assert asked.query["email"] == "tester@example.org"
    assert "tester@example.org" in asked.agent
    assert asked.agent.startswith("hoofbeat/")


def test_a_second_run_asks_for_nothing(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out")
    before, asked = folder_contents(tmp_path / "out"), len(server.seen)
    result = fetch(server, tmp_path / "out")
    assert len(server.seen) == asked
    assert result.counts.kept == 4
    assert result.new == 0
    assert folder_contents(tmp_path / "out") == before


def test_the_folder_does_not_tell_in_which_order_files_came(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["slow:0.01"]
    fetch(server, tmp_path / "one")
    fetch(server, tmp_path / "two", settings={"connections": 1})
    assert folder_contents(tmp_path / "one") == folder_contents(tmp_path / "two")


def test_a_dropped_connection_goes_on_by_range_and_asks_each_byte_once(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["drop:50000", "drop:30000"]
    fetch(server, tmp_path / "out")
    assert_complete(server, tmp_path / "out", *IDS)
    asked = server.asked(package_path(IDS[0]))
    assert [each.range for each in asked] == ["", "bytes=50000-", "bytes=80000-"]
    assert sum(sum(each.sent) for each in asked) == len(server.files[package_path(IDS[0])])


def test_a_server_without_ranges_sends_the_whole_again(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["drop:50000", "no-range"]
    fetch(server, tmp_path / "out", IDS[0])
    assert_complete(server, tmp_path / "out", IDS[0])


def test_packages_of_another_licence_are_left_out(server: PmcServer, tmp_path: Path) -> None:
    server.licences[IDS[1]] = "CC BY-NC-ND"
    result = fetch(server, tmp_path / "out", selection=ArticleSelection(ids=IDS[:2], licences=("CC BY",)))
    assert result.counts.reasons == {"licence CC BY-NC-ND: not one of CC BY": 1}
    assert_complete(server, tmp_path / "out", IDS[0])


def test_another_version_between_tries_begins_anew(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["drop:50000", "new-etag"]
    fetch(server, tmp_path / "out", IDS[0])
    assert_complete(server, tmp_path / "out", IDS[0])
    second = server.asked(package_path(IDS[0]))[1]
    assert second.range == "bytes=50000-"
    assert sum(second.sent) == len(server.files[package_path(IDS[0])])


@pytest.mark.parametrize("fault", ["503", "500", "429:0.2", "long:100", "short:100", "corrupt", "slow:0.001"])
def test_passing_troubles_are_overcome(server: PmcServer, tmp_path: Path, fault: str) -> None:
    server.faults[package_path(IDS[1])] = [fault]
    result = fetch(server, tmp_path / "out")
    assert result.counts.failed == 0
    assert_complete(server, tmp_path / "out", *IDS)


def test_retry_after_holds_back_every_request(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[0])] = ["429:1"]
    fetch(server, tmp_path / "out", settings={"connections": 3, "rate": 6.0})
    refused = server.asked(package_path(IDS[0]))[0].at
    # Requests that were under way already may still come in; none may start within the second that was asked for.
    quiet = [each for each in server.seen if refused + 0.2 < each.at < refused + 0.9]
    assert quiet == []
    assert [each for each in server.seen if each.at > refused + 0.9]
    assert len(server.asked(package_path(IDS[0]))) == 2
    assert_complete(server, tmp_path / "out", *IDS)


def test_what_is_gone_or_broken_is_listed_and_stops_nothing(server: PmcServer, tmp_path: Path) -> None:
    server.faults[package_path(IDS[1])] = ["404"]
    server.faults[package_path(IDS[2])] = ["corrupt"] * 3
    server.faults[package_path(IDS[3])] = ["403"]
    result = fetch(server, tmp_path / "out", *IDS, "PMC1")
    assert (result.counts.kept, result.counts.rejected, result.counts.failed) == (1, 2, 2)
    listed = {row["id"]: (row["outcome"], row["reason"]) for row in rows(tmp_path / "out" / "not_fetched.jsonl")}
    assert listed[IDS[1]][0] == "gone"
    assert listed["PMC1"] == ("gone", "not found: the OA service says idIsNotOpenAccess")
    assert listed[IDS[2]][1].startswith("damaged on every try: not a whole .tar.gz")
    assert "403" in listed[IDS[3]][1]
    again = fetch(server, tmp_path / "out", *IDS, "PMC1")
    assert (again.counts.kept, again.counts.rejected, again.counts.failed, again.new) == (3, 2, 0, 2)


def test_a_file_damaged_or_lost_on_disk_is_fetched_again(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out")
    before = folder_contents(tmp_path / "out")
    spoilt = tmp_path / "out" / "articles" / f"{IDS[0]}.tar.gz"
    spoilt.write_bytes(b"x" * spoilt.stat().st_size)
    (tmp_path / "out" / "articles" / f"{IDS[1]}.tar.gz").unlink()
    result = fetch(server, tmp_path / "out")
    assert result.new == 2
    assert folder_contents(tmp_path / "out") == before


def test_redirects_stay_on_the_host_unless_it_is_allowed(server: PmcServer, tmp_path: Path) -> None:
    foreign = server.url.replace("127.0.0.1", "localhost")
    moved = [f"redirect:{server.url}{package_path(IDS[0])}", f"redirect:{foreign}{package_path(IDS[1])}"]
    for id, where in zip(IDS, moved, strict=False):
        server.faults[package_path(id)] = [where]
    result = fetch(server, tmp_path / "out", *IDS[:2])
    assert (result.counts.kept, result.counts.failed) == (1, 1)
    assert result.counts.failures == {"refused: a redirect to another host (localhost)": 1}
    server.faults[package_path(IDS[1])] = [moved[1]]
    allowed = fetch(server, tmp_path / "out", *IDS[:2], settings={"allowed_hosts": ("localhost",)})
    assert allowed.counts.kept == 2


@pytest.mark.parametrize(
    ("url", "location", "reason"),
    [
        ("https://a.example/x", "http://a.example/x", "from https to http"),
        ("https://a.example/x", "https://b.example/x", "another host"),
        ("https://a.example/x", "https://a.example:8443/x", ""),
        ("http://a.example/x", "http://a.example:22/x", "another host"),
        ("https://a.example/x", "file:///etc/passwd", "can't be used"),
        ("https://a.example/x", "https://me@a.example/x", "can't be used"),
        ("https://a.example/x", "", "can't be used"),
        ("https://a.example/x", "/y", ""),
        ("http://a.example/x", "https://a.example/x", ""),
    ],
)
def test_where_a_redirect_may_lead(url: str, location: str, reason: str) -> None:
    if not reason:
        assert redirect_target(URL(url), location, ()).host == "a.example"
        return
    with pytest.raises(FetchError, match=reason):
        redirect_target(URL(url), location, ())


def test_the_number_of_connections_is_kept(server: PmcServer, tmp_path: Path) -> None:
    server.faults.update({package_path(id): ["slow:0.002"] for id in IDS})
    fetch(server, tmp_path / "out", settings={"connections": 2})
    assert server.most_at_once == 2


def test_the_rate_is_kept(server: PmcServer, tmp_path: Path) -> None:
    fetch(server, tmp_path / "out", settings={"rate": 10.0, "connections": 2})
    times = sorted(each.at for each in server.seen)
    assert len(times) == 8
    # Ten a second: eight requests take at least 0.7 s from the first to the last; the margin is for coarse clocks.
    assert times[-1] - times[0] > 0.6


def test_size_limits_and_wild_paths_are_refused(server: PmcServer, tmp_path: Path) -> None:
    result = fetch(server, tmp_path / "small", IDS[0], settings={"largest_file": 1000})
    assert result.counts.failures == {"the file is larger than 1000 bytes": 1}
    listing = tmp_path / "list.csv"
    listing.write_text(
        "File,Article Citation,Accession ID,Last Updated (YYYY-MM-DD HH:MM:SS),PMID,License,Retracted\n"
        f"../../etc/passwd,J Med Case Rep. 2024,{IDS[0]},2026-01-01 00:00:00,1,CC BY,no\n"
    )
    wild = fetch(server, tmp_path / "wild", selection=ArticleSelection(years=(2024, 2024)), file_list=listing)
    assert wild.counts.failures == {"the service's list names a path that can't be used": 1}
    assert not (tmp_path / "wild" / "articles").exists()


def test_the_file_list_selects_by_venue_year_and_licence(server: PmcServer, tmp_path: Path) -> None:
    lines = [
        ("J Med Case Rep. 2024 Jan 2; 18:1", IDS[0], "CC BY", "no"),
        ("J Med Case Rep. 2019 Jan 2; 13:1", IDS[1], "CC BY", "no"),
        ("Lancet. 2024 Jan 2; 1(1):1", IDS[2], "CC BY", "no"),
        ("J Med Case Rep. 2024 Jan 3; 18:2", IDS[3], "CC BY-NC", "yes"),
    ]
    text = "File,Article Citation,Accession ID,Last Updated (YYYY-MM-DD HH:MM:SS),PMID,License,Retracted\n"
    text += "".join(
        f'{package_path(id).removeprefix("/files/")},"{citation}",{id},2026-01-01 00:00:00,1,{licence},{retracted}\n'
        for citation, id, licence, retracted in lines
    )
    server.files["/files/oa_file_list.csv"] = text.encode()
    server.faults["/files/oa_file_list.csv"] = ["drop:100"]
    chosen = ArticleSelection(venues=("Journal of Medical Case Reports",), years=(2023, 2026), licences=("cc-by",))
    result = fetch(server, tmp_path / "one", selection=chosen)
    assert [row["id"] for row in rows(tmp_path / "one" / "fetched.jsonl")] == [IDS[0]]
    assert result.counts.kept == 1
    assert server.asked("/oa.fcgi") == []
    assert [each.range for each in server.asked("/files/oa_file_list.csv")] == ["", "bytes=100-"]
    both = ArticleSelection(venues=("J Med Case Rep",), years=(2024, 2024), limit=5)
    fetch(server, tmp_path / "two", selection=both)
    listed = rows(tmp_path / "two" / "fetched.jsonl")
    assert [(row["id"], row.get("retracted", False)) for row in listed] == [(IDS[0], False), (IDS[3], True)]


def test_the_cloud_gives_xml_and_images_of_the_newest_version(server: PmcServer, tmp_path: Path) -> None:
    case = cases_folder() / "hbt-case-05.xml"
    images = {path.name: path.read_bytes() for path in sorted(case.parent.glob("figures/hbt-case-05-*.png"))}
    server.add_article("PMC77", {"old.xml": b"<article></article>"}, version=1)
    server.add_article("PMC77", {"new.xml": case.read_bytes(), **images}, version=2)
    server.add_article("PMC771", {"other.xml": b"<article></article>"}, licence="CC BY-NC")
    server.faults["/cloud/PMC77.2/PMC77.2.xml"] = ["drop:1000", "corrupt"]
    selection = ArticleSelection(ids=("PMC77", "771", "PMC3"), licences=("CC BY",))
    result = fetch(server, tmp_path / "out", selection=selection, via="cloud")
    assert (result.counts.kept, result.counts.rejected) == (1, 2)
    assert set(result.counts.reasons) == {
        "licence CC BY-NC: not one of CC BY",
        "not found: not in PMC's open-access cloud",
    }
    folder = tmp_path / "out" / "articles" / "PMC77.2"
    assert {path.name for path in folder.iterdir()} == {"PMC77.2.xml", *images}
    assert (folder / "PMC77.2.xml").read_bytes() == case.read_bytes()
    assert {row["licence"] for row in rows(tmp_path / "out" / "fetched.jsonl")} == {"CC BY"}
    corpus = import_corpus([tmp_path / "out" / "articles"], tmp_path / "corpus")
    assert corpus.manifest.counts.kept == 1
    assert corpus.manifest.metrics["images"] == len(images)


def test_names_from_the_listing_stay_in_the_folder(server: PmcServer, tmp_path: Path) -> None:
    server.add_article("PMC78", {"a.xml": b"<article></article>"})
    server.files["/cloud/PMC78.1/../../../evil.png"] = b"up"
    server.files["/cloud/PMC78.1/sub/evil.png"] = b"deeper"
    server.files["/cloud/PMC78.1/.hidden name.PNG"] = b"odd"
    fetch(server, tmp_path / "out", "PMC78", via="cloud")
    placed = (tmp_path / "out" / "articles").rglob("*.*")
    found = {path.relative_to(tmp_path).as_posix() for path in placed if path.is_file()}
    assert found == {"out/articles/PMC78.1/PMC78.1.xml", "out/articles/PMC78.1/hidden_name.PNG"}


def test_the_cloud_selects_by_pmc_ids_list_and_by_query(server: PmcServer, tmp_path: Path) -> None:
    head = "Journal Title,ISSN,eISSN,Year,Volume,Issue,Page,DOI,PMCID,PMID,Manuscript Id,Release Date\n"
    text = (
        head + f"J Med Case Rep,1,2,2024,1,1,1,10.1/a,{IDS[0]},1,,live\nLancet,1,2,2024,1,1,1,10.1/b,{IDS[1]},2,,live\n"
    )
    server.files["/files/PMC-ids.csv.gz"] = gzip.compress(text.encode(), mtime=0)
    chosen = ArticleSelection(venues=("Journal of Medical Case Reports",), years=(2024, 2024))
    fetch(server, tmp_path / "venue", selection=chosen, via="cloud")
    assert {row["id"] for row in rows(tmp_path / "venue" / "fetched.jsonl")} == {IDS[0]}
    server.search, server.search_page = [{"pmcid": id} for id in IDS], 2
    fetch(server, tmp_path / "query", selection=ArticleSelection(query="fever", limit=3), via="cloud", images=False)
    files = [row["file"] for row in rows(tmp_path / "query" / "fetched.jsonl")]
    assert files == [f"{id}.1/{id}.1.xml" for id in IDS[:3]]
    asked = server.asked("/eutils/esearch.fcgi")
    assert [each.query["retstart"] for each in asked] == ["0", "2"]
    assert asked[0].query["term"] == "(fever) AND open access[filter]"


def test_real_articles_arrive_byte_for_byte(server: PmcServer, tmp_path: Path) -> None:
    real = [path for path in sorted(shared_data("jats").glob("PMC*.xml")) if "_" not in path.stem][:5]
    for path in real:
        server.add_article(path.stem, {path.name: path.read_bytes()})
        server.faults[f"/cloud/{path.stem}.1/{path.stem}.1.xml"] = ["drop:5000"]
    result = fetch(server, tmp_path / "out", *(path.stem for path in real), via="cloud")
    assert result.counts.kept == 5
    for path in real:
        fetched = tmp_path / "out" / "articles" / f"{path.stem}.1" / f"{path.stem}.1.xml"
        assert fetched.read_bytes() == path.read_bytes()


def test_a_service_that_is_down_stops_the_run_with_a_reason(server: PmcServer, tmp_path: Path) -> None:
    server.faults["/oa.fcgi"] = ["503"] * 100
    many = tuple(f"PMC{number}" for number in range(1, 40))
    with pytest.raises(InputError, match="in a row failed"):
        fetch(server, tmp_path / "out", *many, settings={"attempts": 1})
    assert len(server.seen) < 20


def test_wrong_use_is_told_before_anything_is_sent(server: PmcServer, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no email address"):
        Connection.chosen(environment={})
    with pytest.raises(UsageError, match="not an email address"):
        Connection.chosen(email="me", environment={})
    with pytest.raises(UsageError, match="not PMC ids"):
        fetch(server, tmp_path / "out", "../x")
    with pytest.raises(UsageError, match="nothing says"):
        fetch(server, tmp_path / "out", selection=ArticleSelection())
    with pytest.raises(UsageError, match="no service nowhere"):
        Connection.chosen(email="a@b.org", services={"nowhere": "http://x"}, environment={})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("precious")
    with pytest.raises(OutputError, match="not a folder of an earlier fetch"):
        fetch(server, tmp_path / "mine")
    fetch(server, tmp_path / "packages", IDS[0])
    with pytest.raises(UsageError, match="this folder holds a fetch"):
        fetch(server, tmp_path / "packages", IDS[0], via="cloud")
    assert {each.path for each in server.seen} == {"/oa.fcgi", package_path(IDS[0])}


def test_the_key_quickens_the_pace_and_is_written_nowhere(server: PmcServer, tmp_path: Path) -> None:
    environment = {"NCBI_API_KEY": "sesame", "HOOFBEAT_EMAIL": "a@b.org"}
    assert Connection.chosen(environment={"HOOFBEAT_EMAIL": "a@b.org"}).rate == 3
    chosen = Connection.chosen(environment=environment, services=server.services())
    assert chosen.rate == 10
    fetch_pmc(ArticleSelection(ids=(IDS[0],)), tmp_path / "out", chosen, via="packages")
    assert server.asked("/oa.fcgi")[0].query["api_key"] == "sesame"
    assert "api_key" not in server.asked(package_path(IDS[0]))[0].query
    assert not any(b"sesame" in data for data in folder_contents(tmp_path / "out").values())


EVERYTHING = ArticleSelection(years=(1800, 2100))


def test_the_text_list_and_older_csv_are_read() -> None:
    citation = "Breast Cancer Res. 2001 Nov 2; 3(1):55-60"
    cells = ("oa_package/08/e0/PMC13900.tar.gz", citation, "PMC13900", "PMID:11250746", "NO-CC CODE")
    text = ["2019-01-02 03:04:05\n", "\t".join(cells) + "\n", "broken line\n"]
    (row,) = select_rows(text, EVERYTHING)
    assert (row.id, row.path, row.licence) == ("PMC13900", "oa_package/08/e0/PMC13900.tar.gz", "NO-CC CODE")
    older = [
        "File,Article Citation,Accession ID,Last Updated (YYYY-MM-DD HH:MM:SS),PMID,License\n",
        'oa_package/08/e0/PMC1.tar.gz,"Odd, J. 1999; 1",PMC1,2019-11-12 00:07:57,1,CC BY\n',
    ]
    (row,) = select_rows(older, EVERYTHING)
    assert (row.updated, row.retracted) == ("2019-11-12 00:07:57", False)


def test_a_list_of_something_else_is_refused() -> None:
    with pytest.raises(FetchError, match="its columns are name, age"):
        list(select_rows(["name,age\n", "x,1\n"], EVERYTHING))
    assert list(select_rows([], EVERYTHING)) == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("J Med Case Rep", "Journal of Medical Case Reports", True),
        ("Case Rep Oncol", "Case Reports in Oncology", True),
        ("BMJ Case Rep.", "BMJ Case Reports", True),
        ("Proc Natl Acad Sci U S A", "PNAS", False),
        ("Case Rep Oncol", "Case Reports in Oncological Medicine", False),
        ("Case Rep Med", "Case Reports in Dentistry", False),
        ("Lancet", "The Lancet", True),
        ("Cureus", "cureus", True),
        ("Medicine (Baltimore)", "Medicine", True),
        ("", "", False),
    ],
)
def test_venues_match_their_abbreviations(one: str, other: str, same: bool) -> None:
    assert same_venue(one, other) is same
    assert same_venue(other, one) is same


def test_licences_match_however_spelt() -> None:
    assert same_licence("CC BY-NC", ("cc-by-nc",))
    assert same_licence("CC BY 4.0", ("CC BY",))
    assert not same_licence("CC BY-NC", ("CC BY",))
    assert not same_licence("", ("CC BY",))


def test_answers_that_are_wrong_are_told_apart() -> None:
    with pytest.raises(NotAvailableError, match="idDoesNotExist"):
        oa_link(b'<OA><error code="idDoesNotExist">no</error></OA>', "PMC1")
    with pytest.raises(FetchError, match="not XML"):
        oa_link(b"<OA><error", "PMC1")
    other = b'<OA><records><record id="PMC2"><link format="tgz" href="ftp://h/pub/pmc/oa_package/x.tar.gz"/></record></records></OA>'
    with pytest.raises(NotAvailableError, match="no package"):
        oa_link(other, "PMC1")
    wild = other.replace(b"PMC2", b"PMC1").replace(b"oa_package/", b"oa_package/../../")
    with pytest.raises(FetchError, match="can't be used"):
        oa_link(wild, "PMC1")
    entity = b'<!DOCTYPE OA [<!ENTITY x SYSTEM "file:///etc/passwd">]><OA><error code="idDoesNotExist">&x;</error></OA>'
    with pytest.raises(NotAvailableError):
        oa_link(entity, "PMC1")


def test_the_newest_version_is_by_number_not_by_letter() -> None:
    keys = ("PMC1.9/PMC1.9.xml", "PMC1.10/PMC1.10.xml", "PMC1.10/a.jpg", "PMC11.12/PMC11.12.xml")
    contents = "".join(f"<Contents><Key>{key}</Key><Size>1</Size></Contents>" for key in keys)
    article = cloud_article([f"<ListBucketResult>{contents}</ListBucketResult>".encode()], "PMC1")
    assert article.version == "PMC1.10"
    assert {each.key for each in article.objects} == {"PMC1.10/PMC1.10.xml", "PMC1.10/a.jpg"}


def test_damage_is_seen_wherever_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "file"
    whole = package("PMC1", {"a.nxml": b"<article>" + b"words " * 5000 + b"</article>", "b.jpg": bytes(5000)})
    path.write_bytes(whole)
    assert damage(path, "PMC1.tar.gz") == ""
    spoilt = bytearray(whole)
    spoilt[len(whole) // 2] ^= 0xFF
    for data in (whole[:-1], whole[: len(whole) // 2], bytes(spoilt), b"\x1f\x8b", b"<html></html>", b""):
        path.write_bytes(data)
        assert damage(path, "PMC1.tar.gz"), data[:20]
    prologue = b'<?xml version="1.0"?><!DOCTYPE article PUBLIC "-//NLM//DTD" "a.dtd" [<!ENTITY x "y">]><!-- <b> -->\n'
    path.write_bytes(prologue + b"<article a='1'><p/></article>\n<!-- end -->\n")
    assert damage(path, "a.xml") == ""
    many = [
        part * (200_000 // len(part)) for part in (b"<?", b"<!--", b"<!DOCTYPE ", b"<!DOCTYPE [", b"<!DOCTYPE [x]>")
    ]
    endless = [
        b"<!DOCTYPE " + b"[]" * 50_000,
        b"<article/></article>" + b"<!--a-->" * 400 + b"x",
        *many,
    ]  # took for ever
    for data in (prologue + b"<article><p/>", b"plain text", b"<html><body/></html>", *endless):
        path.write_bytes(data)
        assert damage(path, "a.xml"), data[:40]
