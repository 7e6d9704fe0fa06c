from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.registry import registry
from hoofbeat.retrieval.line import Fusion, FusionPart, Node, Pipeline, Stage, parse, stages


@pytest.mark.parametrize(
    ("line", "canonical"),
    [
        ("bm25", "bm25"),
        ("  BM25\t", "bm25"),
        ("bm25[ k1 = 0.9 , b=0.40 ]", "bm25"),
        ("bm25[b=1,k1=1.20]", "bm25[k1=1.2,b=1]"),
        ("dense[encoder=minilm]", "dense"),
        ("dense[encoder=my models/x-1]", "dense[encoder=my models/x-1]"),
        ("bm25+2.0*dense", "bm25 + 2*dense"),
        ("((bm25))", "bm25"),
        ("(bm25 + dense) + .5*bm25", "(bm25 + dense) + 0.5*bm25"),
        ("2*(bm25 + dense)+1*dense", "2*(bm25 + dense) + dense"),
        ("bm25 + dense > rerank@100", "bm25 + dense > rerank@100"),
        ("hyde>bm25>rerank>rerank@5", "hyde > bm25 > rerank > rerank@5"),
        ("(hyde > bm25) + dense", "(hyde > bm25) + dense"),
        ("bm25 +[k=60] dense", "bm25 + dense"),
        ("bm25+[ depth=50, k=10 ]dense +[k=10,depth=50] bm25", "bm25 +[k=10,depth=50] dense +[k=10,depth=50] bm25"),
        ("search-o1", "search-o1 > bm25"),
        ("(search-o1) + dense", "(search-o1 > bm25) + dense"),
    ],
)
def test_canonical_form(line: str, canonical: str) -> None:
    assert str(parse(line)) == canonical


def test_tree() -> None:
    tree = parse("bm25[k1=1.2] + 2*dense")
    assert isinstance(tree, Fusion)
    assert [part.weight for part in tree.parts] == [1, 2]
    first, second = stages(tree)
    assert (first.number("k1"), first.number("b"), second.word("encoder")) == (1.2, 0.4, "minilm")


@pytest.mark.parametrize(
    ("line", "column", "what", "fix"),
    [
        ("", 1, "empty", "bm25"),
        ("bm52 + dense", 1, "bm52", "did you mean bm25? known stages: bm25, dense"),
        ("bm25 + colbert", 8, "colbert", "known stages: bm25, dense"),
        ("bm25 > dense", 8, "can't follow", "fuse them with +"),
        ("bm25 +", 7, "end of the line", "bm25, dense"),
        ("bm25 dense", 6, "'d'", "+ or >"),
        ("(bm25 + dense", 14, "closing )", "close"),
        ("bm25)", 5, "')'", "+ or >"),
        ("bm25[k2=1]", 6, "k2", "did you mean k1? known options: k1, b"),
        ("bm25[k1=x]", 9, "'x'", "from 0 up"),
        ("bm25[b=2]", 8, "'2'", "from 0 to 1"),
        ("bm25[k1=nan]", 9, "'nan'", "number"),
        ("bm25[k1=1,k1=2]", 11, "twice", "remove"),
        ("bm25[k1=]", 9, "no value", "k1=0.9"),
        ("bm25[k1]", 8, "=", "bm25[k1=0.9,b=0.4,"),
        ("bm25[k1=1", 10, "closing ]", "close"),
        ("bm25[]", 6, "option", "k1"),
        ("bm25@10", 5, "no depth", "remove"),
        ("2*bm25", 1, "only a fusion can have weights", "remove"),
        ("0*bm25 + dense", 1, "not a weight", "positive"),
        ("1e999*bm25 + dense", 1, "not a weight", "positive"),
        ("2 bm25 + dense", 3, "follow the weight", "2*stage"),
        ("bm25\n+ bm26", 8, "bm26", "bm25"),
        ("(" * 1000 + "bm25", 31, "nested", "simplify"),
    ],
)
def test_errors_point_at_the_column(line: str, column: int, what: str, fix: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert what in caught.value.what
    assert fix in str(caught.value.fix)
    place, shown, caret = str(caught.value.where).split("\n")
    assert place == f"retriever line, column {column}"
    assert shown == "    " + line.replace("\n", " ")
    assert caret.index("^") - 4 == column - 1


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("hyde", 1),
        ("rerank", 1),
        ("rerank > bm25", 1),
        ("bm25 > hyde", 8),
        ("bm25 > rerank > bm25", 17),
        ("hyde > hyde", 8),
        ("bm25 + hyde", 8),
        ("hyde > rerank", 8),
        ("bm25 > rerank@0", 15),
        ("bm25 > bm25 + dense", 8),
    ],
)
def test_stages_that_cannot_stand_there(line: str, column: int) -> None:
    with pytest.raises(UsageError) as caught:
        parse(line)
    assert f"column {column}\n" in str(caught.value.where)


BM25, DENSE, RERANK = (registry.get(Stage, name) for name in ("bm25", "dense", "rerank"))
POSITIVE = st.floats(min_value=1e-9, max_value=1e20)
LEAVES: st.SearchStrategy[Node] = st.one_of(
    st.builds(lambda k1, b: BM25.with_options({"k1": k1, "b": b}), st.floats(0, 1e20), st.floats(0, 1)),
    st.builds(
        lambda name: DENSE.with_options({"encoder": name}), st.from_regex(r"[\w./:#-]+( [\w.]+)?", fullmatch=True)
    ),
)
RERANKERS = st.builds(lambda depth: RERANK.with_options({}, depth), st.none() | st.integers(1, 999_999_999))


def _grow(nodes: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    parts = st.lists(st.builds(FusionPart, nodes, POSITIVE), min_size=2, max_size=4)
    sizes = st.integers(1, 999_999)
    by_ranks = st.builds(lambda parts, k, depth: Fusion(tuple(parts), k, depth), parts, sizes, sizes)
    by_scores = st.builds(lambda parts, depth: Fusion(tuple(parts), 60, depth, "scores"), parts, sizes)
    fusions = by_ranks | by_scores
    pipelines = st.builds(lambda node, reranker: Pipeline((node, reranker)), nodes, RERANKERS)
    return fusions | pipelines


@given(st.recursive(LEAVES, _grow, max_leaves=8))
def test_text_and_tree_say_the_same(tree: Node) -> None:
    assert parse(str(tree)) == tree


@pytest.mark.parametrize(
    ("line", "what", "column"),
    [
        ("bm25 +[k=10] dense + bm25", "the + signs of one fusion have different options", 22),
        ("bm25 +[k=0] dense", "k can't be '0'", 10),
        ("bm25 +[by=votes] dense", "by can't be 'votes'", 11),
        ("bm25 +[by=scores,k=20] dense", "k is for fusion by ranks", 1),
        ("bm25 +[k=60.5] dense", "give a whole number from 1 to 1000000", 10),
        ("hero[top=2.5]", "top can't be '2.5'", 10),
        ("hyde[n=1.5] > bm25", "n can't be '1.5'", 8),
        ("search-o1[turns=0.5]", "turns can't be '0.5'", 17),
        ("bm25 > rerank[window=2.5]", "window can't be '2.5'", 22),
        ("bm25 > rerank[read=title]", "read can't be 'title'", 20),
        ("bm25 + -1*dense", "-1 is not a weight", 8),
        ("dense[search=ivf:4/5]", "can't search 5 of 4 lists", 14),
        ("dense[search=hnsw:0]", "an effort of 0 finds nothing", 14),
        ("hyde", "put it before one: hyde > bm25", 1),
        ("bm25[chunk=bites:3]", "'bites:3' is not a way to cut texts", 12),
        ("bm25[chunk=words:10/10]", "can't cut into pieces of 10 words that overlap by 10", 12),
        ("bm25[pool=mean]", "there is no pooling 'mean'", 11),
        ("bm25[query=long]", "query can't be 'long'", 12),
        ("dense[store=float8]", "vectors can't be stored as 'float8'", 13),
    ],
)
def test_values_are_refused_where_they_stand(line: str, what: str, column: int) -> None:
    with pytest.raises(UsageError, match=re.escape(what)) as caught:
        parse(line)
    assert f"column {column}\n" in str(caught.value.where)


def test_every_stage_says_what_it_is_for() -> None:
    for stage in registry.all(Stage):
        assert stage.summary
        assert all(option.help for option in stage.options), stage
        line = {"ranker": "{}", "query writer": "{} > bm25", "reranker": "bm25 > {}"}[stage.role].format(stage.name)
        assert str(parse(line)) == line
