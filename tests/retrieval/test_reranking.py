"""The stage `rerank` of a line: which reranker it names, and reranking by a real tiny cross-encoder."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Failure
from hoofbeat.retrieval.reranking import ByCrossEncoder, asks_a_model, make_reranker
from hoofbeat.retrieval.reranking_llm import Listwise, YesNo
from tests.models.cross_encoders import make_folder
from tests.retrieval.reranking_support import Bench, query, stage


def test_a_cross_encoder_scores_every_text(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "tiny", broken="rash")
    made = stage(f"rerank[with={folder},read=document]@10")
    reranker = make_reranker(made)
    assert isinstance(reranker, ByCrossEncoder)
    assert not asks_a_model(made)
    earlier = Failure(kind="refusal", message="no")
    queries = [query("fever"), query("cough"), query("fever"), query("fever", earlier)]
    texts = [["cough", "fever", ""], ["fever", "rash"], [], ["rash"]]
    results = reranker.rerank(queries, texts, Bench(None))
    assert results[0] == pytest.approx([21, 11, 1])
    assert isinstance(results[1], Failure)
    assert results[1].kind == "unreadable"
    assert results[2:] == [[], earlier]
    assert reranker.notes == []
    reranker.rerank([query("fever")], [["cough " * 30]], Bench(None))
    assert reranker.notes == ["1 of 6 pairs were cut at the 16 tokens that tiny reads"]
    assert reranker.identity.startswith("cross-encoder:tiny@")


def test_lines_name_rerankers() -> None:
    yesno = make_reranker(stage("rerank@100"))
    assert isinstance(yesno, YesNo)
    assert (yesno.model, yesno.chars) == ("", 2000)
    other = make_reranker(stage("rerank[with=yesno,model=embedded:qwen2.5-coder-1.5b,chars=500]@20"))
    assert isinstance(other, YesNo)
    assert (other.model, other.chars) == ("embedded:qwen2.5-coder-1.5b", 500)
    listwise = make_reranker(stage("rerank[with=listwise,window=30,stride=15]"))
    assert isinstance(listwise, Listwise)
    assert (listwise.window, listwise.stride) == (30, 15)
    assert str(stage("rerank[ stride=10 , with = listwise ]@100")) == "rerank[with=listwise]@100"
    assert all(asks_a_model(stage(line)) for line in ("rerank@5", "rerank[with=listwise]"))
    for made in (yesno, listwise):
        assert made.prompts
        assert all(re.fullmatch(r"rerank-\w+", name) for name in made.prompts)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("rerank[with=listwize]", "there is no reranker 'listwize'"),
        ("rerank[with=YesNo]", "there is no reranker 'YesNo'"),
        ("rerank[with=minilm]", "there is no reranker 'minilm'"),
        ("rerank[window=10]", "window can't be used with yesno"),
        ("rerank[with=./here,model=x,chars=300]", "model and chars can't be used with a cross-encoder"),
        ("rerank[with=listwise,window=5,stride=6]", "a stride of 6 over a window of 5 would leave texts unread"),
    ],
)
def test_a_wrong_stage_is_a_usage_error(line: str, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        make_reranker(stage(line))
    assert caught.value.what == what
    assert caught.value.where == f"retriever line, {stage(line)}"
    assert caught.value.fix


def test_a_slip_is_guessed_and_a_path_is_looked_for() -> None:
    with pytest.raises(UsageError) as caught:
        make_reranker(stage("rerank[with=listwize]"))
    assert "did you mean listwise?" in str(caught.value.fix)
    with pytest.raises(InputError, match="there is no such folder"):
        make_reranker(stage("rerank[with=no/such/folder]"))
