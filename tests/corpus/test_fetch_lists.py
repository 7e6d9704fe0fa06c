"""PMC's lists read: rows, venues and licences, in the shapes PMC has served."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus.fetch.articles import cloud_article, oa_link, same_licence, same_venue, select_rows
from hoofbeat.corpus.fetch.client import ArticleSelection, FetchError, NotAvailableError
from hoofbeat.corpus.fetch.fetch_folder import damage
from tests.corpus.pmc_server import package

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
    with pytest.raises(FetchError, match="no XML"):
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
    for data in (prologue + b"<article><p/>", b"plain text", b"<html><body/></html>"):
        path.write_bytes(data)
        assert damage(path, "a.xml"), data
