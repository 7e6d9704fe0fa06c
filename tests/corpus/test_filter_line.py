"""The filter line: what can be written, and how it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus.filter import CorpusFilter, parse_filters
from hoofbeat.errors import UsageError
from hoofbeat.registry import registry
from tests.corpus.filter_documents import document, parse_filter, split


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("year >= 2023", "year>=2023"),
        ("venue", "venue"),
        ("venue( medical )", "venue(medical)"),
        ('venue="Case Reports, Invented",BMJ Case Rep', 'venue="Case Reports, Invented",BMJ Case Rep'),
        ("licence=cc-by , CC0", "licence=CC BY,CC0"),
        ("licence=https://creativecommons.org/licenses/by-nc/4.0/", "licence=CC BY-NC"),
        ("roles=Case,discussion", "roles=case,discussion"),
        ("images", "images"),
        ("images(tests,case)", "images(tests, case)"),
        ("rare(some/citations.csv)", "rare(citations.csv, year>2022, total<=3, other<=1)"),
        ("rare(c.csv, year>=2020, total<6, other<=0)", "rare(c.csv, year>2019, total<=5, other<=0)"),
        ("unique", "unique(minhash, 0.15)"),
        ("unique(minhash, 0.8)", "unique(minhash, 0.8)"),
        ("unique(minhash, 0.8, seed=7, width=3)", "unique(minhash, 0.8, width=3, seed=7)"),
        ("unique(embedding)", "unique(embedding, 0.95)"),
        ("not promotional", "not promotional"),
        ("not promotional(4.5)", "not promotional(4.5)"),
        ("not  retracted", "not retracted"),
        ("language=English,de", "language=en,de"),
        ("keywords~diagnos", "keywords~diagnos"),
        ('title~"case report",rare', "title~case report,rare"),
        ("type=Case Report", "type=Case Report"),
        ("words<=5000", "words<=5000"),
        ("diagnosis(biopsy)", "diagnosis(biopsy)"),
        ("facet.organ=kidney,liver", "facet.organ=kidney,liver"),
    ],
)
def test_lines_and_their_canonical_form(line: str, canonical: str) -> None:
    step = parse_filter(line)
    assert str(step) == canonical
    assert parse_filter(canonical.replace("rare(citations.csv", "rare(some/citations.csv")).line == canonical


def test_several_steps_in_one_line() -> None:
    assert [str(step) for step in parse_filters("year>=2023; not retracted ;unique;")] == [
        "year>=2023",
        "not retracted",
        "unique(minhash, 0.15)",
    ]


@pytest.mark.parametrize("known", registry.all(CorpusFilter), ids=lambda known: known.name)
def test_the_example_of_every_filter_can_be_read(known: CorpusFilter) -> None:
    step = parse_filter(known.example)
    assert known.accepts(step.name)
    assert step.two_pass == (known.name == "unique")


@pytest.mark.parametrize(
    ("line", "column", "what", "fix"),
    [
        ("", 1, "empty", "venue"),
        ("yaer>=2023", 1, "unknown filter 'yaer'", "did you mean year?"),
        ("year", 5, "needs", "year>=2023"),
        ("year~2023", 5, "needs", "year>=2023"),
        ("year>=two", 7, "'two' is not a number", "number"),
        ("year>=2023.5", 7, "not a whole number", "whole"),
        ("year>=2023,2024", 12, "one number", "second step"),
        ("year>=", 7, "a value is expected", "give one"),
        ("not", 4, "a filter is expected here, not the end", "known"),
        ("not unique", 5, "unique can't be negated with not", "rejected.jsonl"),
        ("not rare(c.csv)", 5, "can't be negated with not", "rejected.jsonl"),
        ("rare", 5, "citation file first", "rare(citations.csv"),
        ("rare(year>2022)", 6, "citation file first", "rare(citations.csv"),
        ("rare(c.csv, yaer>2022)", 13, "no limit 'yaer'", "did you mean year?"),
        ("rare(c.csv, total>3)", 13, "total takes", "total<=3"),
        ("rare(c.csv, total<0)", 19, "below 0", "total<=3"),
        ("rare(c.csv", 11, "closing )", "close"),
        ("unique(minhsh)", 8, "unknown method", "did you mean minhash?"),
        ("unique(minhash, 2)", 17, "not a number from 0.01 to 1", "number"),
        ("unique(minhash, 0.5, 3)", 22, "a method and a threshold", "unique(minhash"),
        ("unique(embedding, 0.9, seed=3)", 24, "no option 'seed'", "encoder="),
        ("unique=3", 7, "can't be compared with a value", "unique(minhash"),
        ("licence=CC BX", 9, "unknown licence", "did you mean cc by"),
        ("language=klingon", 10, "unknown language", "known"),
        ("roles=cases", 7, "unknown section role", "did you mean case?"),
        ("images=3", 7, "can't be compared with a value", "images("),
        ("retracted(x)", 11, "takes no arguments", "not retracted"),
        ("promotional(3, 4)", 16, "one number", "not promotional"),
        ("venue(list.csv)", 7, ".tsv", "venue"),
        ("year>=2023 retracted", 7, "'2023 retracted' is not a number", "number"),
        ("images) x", 7, "')' is not expected", "separate steps with ;"),
        ('title~"rare', 7, "not closed", "…"),
        ("diagnosis=x", 10, "can't be compared with a value", "diagnosis"),
        ("promotional=x", 12, "one number", "promotional"),
        ("words", 6, "needs", "words>=300"),
    ],
)
def test_errors_point_at_the_column(line: str, column: int, what: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_filters(line)
    error = caught.value
    assert what in error.what
    assert fix.lower() in str(error.fix).lower()
    where = str(error.where).splitlines()
    assert where[0] == f"filter line, column {column}"
    assert where[2].index("^") == column - 1 + 4


def test_not_turns_a_filter_round() -> None:
    documents = [document("a", facets={"year": "2020"}), document("b", facets={"year": "2024"}), document("c")]
    kept, rejected = split(documents, parse_filter("not year>=2023"))
    assert [each.id for each in kept] == ["a", "c"]
    assert [(each.id, each.step, each.reason) for each in rejected] == [("b", "not year>=2023", "year>=2023")]


def test_no_machine_path_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_text("venue\nBMJ Case Rep\n")
    assert str(parse_filter(f"venue({tmp_path / 'mine.tsv'})")) == "venue(mine.tsv)"
    assert str(tmp_path) not in str(parse_filter(f"rare({tmp_path / 'c.csv'})"))
