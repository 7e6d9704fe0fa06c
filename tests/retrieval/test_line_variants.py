from __future__ import annotations

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.line import Variant, variants


def test_a_line_without_braces_is_itself() -> None:
    assert variants("bm25 + dense") == [Variant("bm25 + dense", {})]


def test_every_combination_in_order() -> None:
    assert variants("bm25[k1={0.9|1.2},b={0.4|0.75}]") == [
        Variant("bm25[k1=0.9,b=0.4]", {"k1": "0.9", "b": "0.4"}),
        Variant("bm25[k1=0.9,b=0.75]", {"k1": "0.9", "b": "0.75"}),
        Variant("bm25[k1=1.2,b=0.4]", {"k1": "1.2", "b": "0.4"}),
        Variant("bm25[k1=1.2,b=0.75]", {"k1": "1.2", "b": "0.75"}),
    ]


def test_a_part_may_be_left_out_and_names_differ() -> None:
    assert variants("bm25 {|> rerank@100}") == [
        Variant("bm25", {"choice 1": "without"}),
        Variant("bm25 > rerank@100", {"choice 1": "> rerank@100"}),
    ]
    assert list(variants("bm25[k1={1|2}] + bm25[k1={3|4}]")[0].settings) == ["k1", "k1 (2)"]


@pytest.mark.parametrize("text", ["bm25[k1={0.9]", "bm25}", "bm25[k1={0.9}]", "{a|{b|c}}", "bm25[k1={}]"])
def test_braces_that_say_nothing(text: str) -> None:
    with pytest.raises(UsageError, match="brace"):
        variants(text)


def test_too_many_lines_are_refused() -> None:
    with pytest.raises(UsageError, match="the braces give 1024 lines"):
        variants("{a|b}" * 10)
