"""The stage `rerank` of a line: which reranker it names, and reranking by a real tiny cross-encoder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Failure
from hoofbeat.retrieval.stages.rerank import CrossEncoderReranker, ListwiseReranker, YesNoReranker
from tests.models.cross_encoders import make_folder
from tests.retrieval.stages.rerank_support import Bench, query, stage


def test_a_cross_encoder_scores_every_text(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", broken="rash")
    made = stage(f"rerank[with={folder},read=document]@10")
    reranker = made.method
    assert isinstance(reranker, CrossEncoderReranker)
    assert not made.models()
    earlier = Failure(kind="refusal", message="no")
    queries = [query("fever"), query("cough"), query("fever"), query("fever", earlier)]
    texts = [["cough", "fever", ""], ["fever", "rash"], [], ["rash"]]
    results = reranker.rerank(queries, texts, Bench(None))
    assert results[0] == pytest.approx([21, 11, 1])
    assert isinstance(results[1], Failure)
    assert results[1].kind == "unreadable"
    assert results[2:] == [[], earlier]
    assert reranker.notes == []
    planted = "fever " * 20 + "cough " * 4 + "fever " * 6
    (whole,) = reranker.rerank([query("fever")], [[planted]], Bench(None))
    assert whole == pytest.approx([1 + 10 * (8 + 8)])  # the best part has all four, of twelve words beside the query
    assert reranker.notes == [
        "1 of 6 texts are longer than the 16 tokens that tiny reads with the query (52.9% of the text is behind them): "
        "they were read in parts; the best part counts"
    ]
    cut = stage(f"rerank[with={folder},truncate=yes]").method
    assert cut.rerank([query("fever")], [[planted]], Bench(None)) == [pytest.approx([1 + 10 * 12])]
    assert cut.notes == [
        "1 of 1 texts are longer than the 16 tokens that tiny reads with the query: 1 pairs were cut, and up to 60.0% "
        "of the text was not read"
    ]
    assert reranker.identity.startswith("cross-encoder:tiny@")


def test_lines_name_rerankers() -> None:
    yesno = stage("rerank@100").method
    assert isinstance(yesno, YesNoReranker)
    assert (yesno.model, yesno.chars) == ("", 2000)
    other = stage("rerank[with=yesno,model=embedded:qwen2.5-coder-1.5b,chars=500]@20").method
    assert isinstance(other, YesNoReranker)
    assert (other.model, other.chars) == ("embedded:qwen2.5-coder-1.5b", 500)
    listwise = stage("rerank[with=listwise,window=30,stride=15]").method
    assert isinstance(listwise, ListwiseReranker)
    assert (listwise.window, listwise.stride) == (30, 15)
    assert str(stage("rerank[ stride=10 , with = listwise ]@100")) == "rerank[with=listwise]@100"
    assert all(stage(line).models() for line in ("rerank@5", "rerank[with=listwise]"))
    for line in ("rerank", "rerank[with=listwise]"):
        assert stage(line).prompts()
        assert all(re.fullmatch(r"rerank-\w+", name) for name in stage(line).prompts())


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("rerank[with=listwize]", "there is no reranker 'listwize'"),
        ("rerank[with=YesNo]", "there is no reranker 'YesNo'"),
        ("rerank[with=minilm]", "there is no reranker 'minilm'"),
        ("rerank[window=10]", "window can't be used with yesno"),
        ("rerank[with=listwise,truncate=yes]", "truncate can't be used with listwise"),
        ("rerank[with=./here,model=x,chars=300]", "model and chars can't be used with a cross-encoder"),
        ("rerank[with=listwise,window=5,stride=6]", "a stride of 6 over a window of 5 would leave texts unread"),
    ],
)
def test_a_wrong_stage_is_a_usage_error(line: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        stage(line).prepare()
    assert caught.value.what == what
    assert caught.value.where == f"retriever line, {stage(line)}"
    assert caught.value.fix


def test_a_slip_is_guessed_and_a_path_is_looked_for() -> None:
    with pytest.raises(UsageError) as caught:
        stage("rerank[with=listwize]").prepare()
    assert "did you mean listwise?" in str(caught.value.fix)
    with pytest.raises(InputError, match="there is no such folder"):
        stage("rerank[with=no/such/folder]").prepare()
