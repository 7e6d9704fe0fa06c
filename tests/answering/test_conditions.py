"""Conditions as one string: every form, and what is said of what is none."""

from __future__ import annotations

import pytest

from hoofbeat.answering import Condition, parse_condition
from hoofbeat.errors import UsageError


@pytest.mark.parametrize("name", ["closed", "oracle"])
def test_words_without_a_retriever(name: str) -> None:
    assert parse_condition(f"  {name} ") == Condition(name=name)


@pytest.mark.parametrize(
    ("text", "line", "top"),
    [
        ("bm25 @3", "bm25", 3),
        ("bm25@1", "bm25", 1),
        ("  bm25 + dense   @  100 ", "bm25 + dense", 100),
        ("bm25(k1=1.2, b=0.75) @05", "bm25(k1=1.2, b=0.75)", 5),
        ("0.7*bm25 + 0.3*dense @2", "0.7*bm25 + 0.3*dense", 2),
    ],
)
def test_a_retriever_line_with_a_number(text: str, line: str, top: int) -> None:
    assert parse_condition(text) == Condition(name=f"{line} @{top}", line=line, top=top)


def test_a_condition_reads_as_it_writes_itself() -> None:
    parsed = parse_condition("bm25 + dense@03")
    assert parse_condition(parsed.name) == parsed


def test_only_closed_needs_no_documents() -> None:
    needs = {text: parse_condition(text).needs_corpus for text in ("closed", "oracle", "bm25 @3")}
    assert needs == {"closed": False, "oracle": True, "bm25 @3": True}


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "open", "Closed", "bm25", "@3", "bm25 @", "bm25 @three", "bm25 @3 or so"),
        *("bm25 @0", "bm25 @101", "bm25 @-1", "bm25 @2.5", "bm25 @" + "9" * 5000),
    ],
)
def test_what_is_no_condition_is_named_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_condition(text)
    assert repr(text) in caught.value.what
    assert "closed, oracle" in (caught.value.fix or "")
