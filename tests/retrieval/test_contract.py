"""One contract for every retriever: what any line does with ordinary, degenerate and hostile input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Model
from hoofbeat.records import Document, Hit, Section
from hoofbeat.registry import registry
from hoofbeat.retrieval.index.kept_parts import PartPlace
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.line import Stage, cost_bound, parse
from hoofbeat.retrieval.retriever import Retriever
from tests.models.cross_encoders import make_folder
from tests.models.fault_server import FaultServer, instance_of
from tests.models.support import a_model, ledger_in
from tests.retrieval.support import HashedWords

LINES = [
    "bm25",
    "bm25[k1=1.2,b=0.75]",
    "bm25[query=weighted]",
    "bm25[chunk=whole]",
    "bm25[chunk=sentences:20,pool=sum]",
    "bm25[chunk=words:5/2,qchunk=words:4/1]",
    "bm25[chunk=sections,pool=first]",
    "dense",
    "dense[chunk=tokens:6/2,qchunk=tokens:6/2]",
    "dense[chunk=truncate:12,qchunk=truncate:12]",
    "dense[store=float16]",
    "dense[store=int8]",
    "dense[search=ivf]",
    "dense[search=hnsw]",
    "dense[instruct=scifact]",
    "bm25 + dense",
    "bm25 +[k=10,depth=50] 2*dense",
    "(bm25 + dense) + 0.5*bm25[chunk=whole]",
    "hero",
    "hero[route=0,titles=0]",
    "hyde > bm25",
    "hyde[n=2] > bm25 + dense",
    "query2doc > dense",
    "lamer > bm25",
    "reason > bm25 + dense",
    "(hyde > dense) + bm25",
    "search-o1",
    "search-r1 > bm25 + dense",
    "bm25 > rerank@3",
    "bm25 + dense > rerank[with=CROSS]@1",
    "bm25 + dense > rerank[with=listwise]@4",
    "hyde > bm25 + dense > rerank@2",
]
TEXTS = [
    "Renal transplant rejection is treated with steroids.",
    "The tacrolimus dose after a kidney transplant follows its level.",
    "Fever and cough in children.",
    "Zebra stripes of the skin.",
    "心不全の治療について。",
    "Kidney stones cause pain in the flank; kidney colic comes in waves.",
]


_QUESTION = re.compile(r'<material name="[^"]*question[^"]*">\n(.*?)\n</material>', re.DOTALL)


class EchoServer(FaultServer):
    """An endpoint that answers with what it was asked: written documents are the question, agents answer at once."""

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        said = "\n".join(message["content"] for message in body["messages"] if message["role"] == "user")
        asked = _QUESTION.findall(said)[-1]
        choice: dict[str, Any] = {"finish_reason": "stop", "message": {"role": "assistant", "content": asked}}
        schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
        if schema:
            value = instance_of(schema, "0")
            if isinstance(value.get("order"), list):
                value["order"] = list(range(1, len(re.findall("<material name=.passage", said)) + 1))
            for name, kind in schema.get("properties", {}).items():
                if kind.get("type") == "string" and "enum" not in kind:
                    value[name] = asked
                if "answer" in kind.get("enum", ()):
                    value[name] = "answer"
            choice["message"]["content"] = json.dumps(value)
        if body.get("logprobs"):
            top = [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2.5}]
            choice["message"]["content"] = "Yes"
            choice["logprobs"] = {"content": [{"token": "Yes", "logprob": -0.1, "top_logprobs": top}]}
        return await self._play(request, body, asked, {"model": body["model"], "choices": [choice]})


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Model]]:
    with EchoServer() as server, ledger_in(tmp_path_factory.mktemp("ledger")) as ledger:
        made = a_model(server.spec(), ledger)
        yield lambda _: made


@pytest.fixture(scope="module")
def cross_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("cross") / "tiny")


@pytest.fixture(params=LINES)
def line(request: pytest.FixtureRequest, cross_encoder: Path) -> str:
    """A line; CROSS stands for the folder of a tiny cross-encoder, which knows nothing of these texts."""
    if "hnsw" in request.param:
        pytest.importorskip("faiss")
    return str(request.param).replace("CROSS", str(cross_encoder))


def documents_of(*texts: str) -> list[Document]:
    return [
        Document(
            id=f"d{number}",
            title="",
            text=text,
            sections=(Section(heading="Findings", level=1, start=0, body=0, end=len(text)),) if text else (),
        )
        for number, text in enumerate(texts)
    ]


Over = Callable[..., Retriever]


@pytest.fixture
def over(line: str, model: Callable[[str], Model]) -> Over:
    def make(*texts: str) -> Retriever:
        indexes = IndexSet(documents_of(*texts), encoder=lambda _: HashedWords())
        return Retriever(indexes, line, model=model)

    return make


def found(hits: list[Hit]) -> list[str]:
    return [hit.document for hit in hits]


def test_finds_and_explains(over: Over, line: str) -> None:
    retriever = over(*TEXTS)
    searched = retriever.run([("q1", "tacrolimus dose for a kidney transplant")], 3)
    (hits,) = searched.hits
    assert not searched.failures
    assert found(hits)[0] == "d1"
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(hit.question == "q1" and hit.via for hit in hits)
    assert retriever.indexes.passage(hits[0].passage).document == "d1"
    assert retriever.describe()["line"] == str(parse(line))


def test_queries_without_words_find_nothing_and_ask_nothing(over: Over) -> None:
    hits = over(*TEXTS).search([("a", ""), ("b", " \n"), ("c", "zebra stripes")], 2)
    assert [found(each)[:1] for each in hits] == [[], [], ["d3"]]


def test_a_query_of_signs_only_breaks_nothing(over: Over) -> None:
    (hits,) = over(*TEXTS).search([("q", "?! --- *** \u200b")], 3)
    assert len(hits) <= 3


def test_an_empty_corpus(over: Over) -> None:
    assert over().search([("q", "zebra")], 5) == [[]]
    assert over().search_passages([("q", "zebra")], 5) == [[]]


def test_no_queries(over: Over) -> None:
    assert over(*TEXTS).search([], 5) == []


def test_one_document(over: Over) -> None:
    (hits,) = over("Zebra stripes.").search([("q", "zebra stripes")], 5)
    assert found(hits) == ["d0"]


def test_documents_without_text_are_in_nobodys_way(over: Over) -> None:
    (hits,) = over("", "Zebra stripes.", " \n ").search([("q", "zebra stripes")], 1)
    assert found(hits) == ["d1"]


def test_other_scripts(over: Over) -> None:
    (hits,) = over(*TEXTS).search([("q", "心不全の治療について。")], 1)
    assert found(hits) == ["d4"]


def test_a_query_of_twenty_thousand_words(over: Over) -> None:
    searched = over(*TEXTS).run([("q", "zebra stripes " * 10_000)], 1)
    if searched.failures:  # a model may say that this does not fit it; then nothing is scored
        assert searched.failures["q"].kind in {"context-overflow", "input"}
        assert searched.hits == [[]]
    else:
        assert found(searched.hits[0]) == ["d3"]


def test_some_documents_only(over: Over) -> None:
    retriever = over(*TEXTS)
    (hits,) = retriever.search([("q", "kidney pain in the flank")], 9, documents=["d5"])
    assert found(hits) == ["d5"]
    assert retriever.search([("q", "kidney")], 9, documents=[]) == [[]]
    with pytest.raises(UsageError, match="nowhere"):
        retriever.search([("q", "kidney")], 9, documents=["nowhere"])


def test_two_documents_with_one_id_are_refused(line: str, model: Callable[[str], Model]) -> None:
    twins = [*documents_of("one", "two"), *documents_of("three")]
    with pytest.raises(InputError, match="'d0'"):
        Retriever(IndexSet(twins, encoder=lambda _: HashedWords()), line, model=model).search([("q", "one")], 1)


def test_equal_documents_keep_their_order(over: Over) -> None:
    (hits,) = over(*["Same words here."] * 9).search([("q", "same words here")], 4)
    assert found(hits) == ["d0", "d1", "d2", "d3"]


def test_impossible_numbers_of_results(over: Over) -> None:
    with pytest.raises(UsageError, match="0 results"):
        over(*TEXTS).search([("q", "zebra")], 0)


def test_the_same_again(over: Over) -> None:
    queries = [("a", "kidney transplant fever"), ("b", "stripes")]
    assert over(*TEXTS).run(queries, 5) == over(*TEXTS).run(queries, 5)


def test_a_corpus_that_has_changed_since_it_was_indexed(
    line: str, model: Callable[[str], Model], tmp_path: Path
) -> None:
    def search(*texts: str, content: str) -> list[Hit]:
        indexes = IndexSet(
            documents_of(*texts), encoder=lambda _: HashedWords(), place=PartPlace(tmp_path), content=content
        )
        return Retriever(indexes, line, model=model).search([("q", "zebra stripes of the skin")], 2)[0]

    first = search(*TEXTS, content="one")
    assert found(first)[0] == "d3"
    assert search(*TEXTS, content="one") == first
    assert found(search("Zebra stripes of the skin.", *TEXTS[1:3], content="two"))[0] == "d0"


def test_a_model_is_asked_for_only_where_one_is_needed(line: str) -> None:
    retriever = Retriever(IndexSet(documents_of(*TEXTS), encoder=lambda _: HashedWords()), line)
    if cost_bound(retriever.tree).calls:
        with pytest.raises(UsageError, match="needs a language model"):
            retriever.search([("q", "zebra")], 1)
    else:
        assert retriever.search([("q", "zebra stripes")], 1)[0]


PAGE = Path(__file__).resolve().parents[2] / "docs" / "retrieval.md"


def documented_lines() -> list[str]:
    blocks = re.findall(r"^```lines\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def test_the_page_documents_every_stage() -> None:
    text = "\n".join(documented_lines())
    assert [name for name in registry.names(Stage) if name not in text] == []


@pytest.mark.parametrize("documented", documented_lines())
def test_every_documented_line_runs(documented: str, model: Callable[[str], Model]) -> None:
    indexes = IndexSet(documents_of(*TEXTS), encoder=lambda _: HashedWords())
    searched = Retriever(indexes, documented, model=model).run([("q", "tacrolimus dose for a kidney transplant")], 2)
    assert not searched.failures
    assert found(searched.hits[0])[0] == "d1"


def test_approximate_search_says_what_it_misses() -> None:
    texts = [f"word{number} and word{number + 1} in a text" for number in range(60)]
    indexes = IndexSet(documents_of(*texts), encoder=lambda _: HashedWords())
    retriever = Retriever(indexes, "dense[search=ivf:6/2]")
    retriever.search([("a", "word3 and word4"), ("b", "word40 in a text")], 5)
    ((name, recall),) = IndexSet.recalls(retriever.describe()).items()
    assert "2 queries" in name
    assert 0.0 < recall <= 1.0
