"""The embedded encoder in a retriever line, on real questions."""

from __future__ import annotations

import pytest

from hoofbeat.corpus.qrels import read_qrels
from hoofbeat.errors import WeightsError
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.models.encoder import load_encoder
from hoofbeat.retrieval.index.chunking import whole
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.helpers import shared_data
from tests.retrieval.support import beir_documents, beir_queries

QUESTIONS = 5


@pytest.mark.slow
def test_dense_search_understands_consumer_questions() -> None:
    folder = shared_data("retrieval/liveqa-med")
    try:
        encoder = load_encoder("minilm")
    except WeightsError as err:
        pytest.skip(f"needs the weights of minilm: {err.what}")
    queries = beir_queries(folder)[:QUESTIONS]
    every = read_qrels(folder / "qrels" / "test.tsv")
    qrels = {question: every[question] for question, _ in queries}
    pool = {document for judged in qrels.values() for document in judged}
    passages = [passage for document in beir_documents(folder) if document.id in pool for passage in whole(document)]
    indexes = IndexSet.of_passages(passages, encoder=lambda _: encoder)
    found = {
        line: evaluate(
            (hit for hits in Retriever(indexes, line).search(queries, 100) for hit in hits), qrels, ["nDCG@10"]
        ).means["nDCG@10"]
        for line in ("bm25", "dense", "bm25 + dense")
    }
    assert found["dense"] == pytest.approx(0.837, abs=0.03)
    assert found["dense"] > found["bm25"] + 0.05, found
    assert found["bm25 + dense"] > found["bm25"], found
