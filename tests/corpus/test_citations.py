"""Citation files: ids brought to one form, shapes read, links merged and counted, trouble listed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hoofbeat.corpus.citations import (
    CitationCount,
    Citations,
    document_ids,
    load_citations,
    normalise_id,
)
from hoofbeat.errors import InputError
from hoofbeat.records import Document


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def count(total: int, not_case_reports: int, unknown_type: int, self_citations: int = 0) -> CitationCount:
    return CitationCount(
        total=total, not_case_reports=not_case_reports, unknown_type=unknown_type, self_citations=self_citations
    )


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("PMC123", "PMC123"),
        (" pmc00123.2 ", "PMC123"),
        ("PMC:123", "PMC123"),
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC123/", "PMC123"),
        ("https://www.ncbi.nlm.nih.gov/pmc/articles/pmc123.1", "PMC123"),
        ("123", "PMID:123"),
        ("PMID: 0123", "PMID:123"),
        ("med:123", "PMID:123"),
        ("https://pubmed.ncbi.nlm.nih.gov/123/", "PMID:123"),
        ("10.1186/S13256-024-1", "doi:10.1186/s13256-024-1"),
        ("https://doi.org/10.1186/ABC.", "doi:10.1186/abc"),
        ("doi: 10.1186/abc", "doi:10.1186/abc"),
        ("hbt-case-01", "hbt-case-01"),
        ("PPR:PPR12", "PPR:PPR12"),
        ("", ""),
        ("n/a", ""),
        ("0", ""),
        ("two words", ""),
        ("١٢", ""),
    ],
)
def test_ids_have_one_form(text: str, normal: str) -> None:
    assert normalise_id(text) == normal
    assert normalise_id(normal) == normal


def test_links_are_merged_and_counted_by_type(tmp_path: Path) -> None:
    table = written(
        tmp_path,
        "links.csv",
        "Citing ID,Cited ID,Is case report\n"
        "PMC10,PMC1,yes\n"
        "pmc10,PMC1.2,\n"  # the same link again, saying less
        "11,PMC1,no\n"
        "12,PMC1,\n"
        "12,PMC2,0\n"  # what 12 is, is known from here
        "PMC1,PMC1,yes\n"
        "13,PMC2,true\n"
        "13,PMC3,false\n",
    )
    citations = load_citations(table)
    assert citations.counts(["PMC1"]) == count(3, 2, 0)
    assert citations.counts({"PMC2"}) == count(2, 1, 1)
    assert citations.counts(["PMC3"]) == count(1, 0, 1)
    assert citations.counts(["PMC4"]) is None
    assert citations.counts([]) is None
    assert len(citations) == 6
    assert [(each.row, each.reason.partition(":")[0]) for each in citations.problems] == [
        (6, "PMC1 cites itself"),
        (8, "conflict"),
    ]


def test_a_document_is_found_by_any_of_its_ids(tmp_path: Path) -> None:
    table = written(tmp_path, "links.tsv", "citing\tcited\n7\t10.1234/abc\n8\t55\n7\t55\n")
    document = Document(id="PMC9", title="t", text="x", facets={"pmid": "55", "doi": "10.1234/ABC"})
    assert document_ids(document) == ("PMC9", "PMID:55", "doi:10.1234/abc")
    citations = load_citations(table)
    assert citations.of(document) == count(2, 0, 2)
    assert citations.of("55") == count(2, 0, 2)
    assert citations.counts("10.1234/abc") == count(1, 0, 1)


def test_self_citations_are_counted_and_flagged(tmp_path: Path) -> None:
    table = written(tmp_path, "links.csv", "citing,cited,case_report,self_citation\n1,PMC1,yes,yes\n2,PMC1,no,no\n")
    assert load_citations(table).counts(["PMC1"]) == count(2, 1, 0, self_citations=1)


def test_rows_that_cannot_be_read_are_listed_with_their_number(tmp_path: Path) -> None:
    table = written(
        tmp_path, "links.csv", "citing,cited,case_report\n1,PMC1,yes\n,PMC1,no\n2,PMC1\n3,PMC1,maybe\n\n4,a b,\n"
    )
    citations = load_citations(table)
    assert citations.counts(["PMC1"]) == count(1, 0, 0)
    assert [(each.source, each.row) for each in citations.problems] == [
        ("links.csv", 2),
        ("links.csv", 3),
        ("links.csv", 4),
        ("links.csv", 6),
    ]
    assert "maybe" in citations.problems[2].reason


def test_jsonl_says_also_that_nothing_cites_an_article(tmp_path: Path) -> None:
    lines = [
        {"citing": "PMID:1", "cited": "PMC1", "case_report": True},
        {"citing": 2, "cited": "PMC1", "citing_type": ["Journal Article", "Review"]},
        {"citing": 3, "cited": "PMC1", "case_report": None},
        {"citing": None, "cited": "PMC2"},
        {"cited": "PMC3"},
        ["not", "an object"],
    ]
    text = "\n".join(map(json.dumps, lines)) + "\n{broken\n"
    path = tmp_path / "links.jsonl.gz"
    path.write_bytes(gzip.compress(text.encode()))
    citations = load_citations(path)
    assert citations.counts(["PMC1"]) == count(3, 1, 1)
    assert citations.counts(["PMC2"]) == count(0, 0, 0)
    assert citations.counts(["PMC3"]) is None
    assert [each.row for each in citations.problems] == [5, 6, 7]


def test_europe_pmc_icite_and_elink_answers_are_read(tmp_path: Path) -> None:
    europe = {
        "version": "6.9",
        "hitCount": 3,
        "request": {"id": "PMC1", "source": "PMC"},
        "citationList": {
            "citation": [
                {"id": "1", "source": "MED", "citationType": "case reports; journal article"},
                {"id": "PPR9", "source": "PPR", "citationType": "preprint"},
                {"id": "2", "source": "MED", "citationType": "journal article", "title": "Odd thing: a case report"},
                {"source": "MED"},
            ]
        },
    }
    written(tmp_path, "a.json", json.dumps(europe))
    written(tmp_path, "b.json", json.dumps({"data": [{"pmid": 5, "cited_by": [6, 7]}, {"pmid": 8, "cited_by": []}]}))
    written(tmp_path, "c.csv", 'pmid,title,cited_by\n20,"A, B",21 22 23\n24,C,\nx,D,1\n')
    elink = {
        "linksets": [
            {"dbfrom": "pubmed", "ids": ["30"], "linksetdbs": [{"linkname": "pubmed_pubmed_citedin", "links": ["31"]}]},
            {"dbfrom": "pubmed", "ids": ["32"]},
            {"dbfrom": "pubmed", "ids": ["33", "34"]},
        ]
    }
    written(tmp_path, "d.json", json.dumps(elink))
    citations = load_citations(tmp_path)
    assert citations.counts(["PMC1"]) == count(3, 1, 0)
    assert citations.counts(["5"]) == count(2, 0, 2)
    assert citations.counts(["8"]) == citations.counts(["24"]) == citations.counts(["32"]) == count(0, 0, 0)
    assert citations.counts(["20"]) == count(3, 0, 3)
    assert citations.counts(["30"]) == count(1, 0, 1)
    assert citations.counts(["33"]) is None
    assert [(each.source, each.row) for each in citations.problems] == [("a.json", 1), ("c.csv", 3), ("d.json", 1)]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b"title,year\nx,1\n"),
        ("a.csv", b""),
        ("a.json", b"[{]"),
        ("a.csv", b"\xff\xfe\x00citing"),
        ("a.csv.gz", gzip.compress(b"citing,cited\n1,2\n" * 1000, mtime=0)[:-30]),
    ],
)
def test_what_is_no_citation_file_is_an_error_that_says_so(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError) as caught:
        load_citations(tmp_path / name)
    assert caught.value.where
    assert caught.value.fix


def test_missing_and_empty_places_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        load_citations(tmp_path / "nowhere.csv")
    with pytest.raises(InputError, match="no citation file"):
        load_citations(tmp_path)


def test_counting_stays_quick_with_many_links(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    with path.open("w") as stream:
        stream.write("citing,cited,case_report\n")
        stream.writelines(f"{900_000 + n},PMC{1 + n // 20},{'yes' if n % 2 else 'no'}\n" for n in range(40_000))
    citations = load_citations(path)
    assert all(citations.counts([f"PMC{n}"]) == count(20, 10, 0) for n in range(1, 2001))
    assert isinstance(citations, Citations)
