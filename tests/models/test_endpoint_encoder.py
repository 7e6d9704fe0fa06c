"""An encoder behind a real endpoint on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from hoofbeat.errors import ModelError, UsageError
from hoofbeat.models import Model
from hoofbeat.models.encoder import load_encoder
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.rankings.rankings_folder import asked_models
from hoofbeat.retrieval.retriever import Retriever
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in
from tests.retrieval.support import passages

TEXTS = [f"text number {number}" for number in range(100)]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def spec_of(server: FaultServer) -> str:
    return f"{server.url}#embedder"


def test_rows_have_unit_length_and_the_texts_order(server: FaultServer, tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    encoder = load_encoder(spec_of(server), model=lambda spec: a_model(spec, ledger))
    rows = encoder.encode([*TEXTS, TEXTS[7]])
    assert rows.shape == (101, encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(rows[7], rows[100])
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1])[::-1], rows[:100])
    assert len({row.tobytes() for row in rows}) == 100
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert encoder.identity == f"{spec_of(server)};embeddings"


def test_a_second_run_asks_nothing(server: FaultServer, tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    models: list[Model] = []

    def loader(spec: str) -> Model:
        models.append(a_model(spec, ledger))
        return models[-1]

    first = load_encoder(spec_of(server), model=loader).encode(TEXTS)
    np.testing.assert_array_equal(load_encoder(spec_of(server), model=loader).encode(TEXTS), first)
    assert models[0].made == 5, "the dimension and four batches"
    assert models[1].made == 0


def test_an_alias_is_named_by_model(server: FaultServer, tmp_path: Path) -> None:
    asked: list[str] = []

    def loader(alias: str) -> Model:
        asked.append(alias)
        return a_model(spec_of(server), ledger_in(tmp_path))

    assert load_encoder("model:clinic", model=loader).dimension > 0
    assert asked == ["clinic"]


def test_an_endpoint_without_embeddings_is_a_model_error(tmp_path: Path) -> None:
    replies = tmp_path / "replies.jsonl"
    replies.write_text("", encoding="utf-8")
    ledger = ledger_in(tmp_path)
    encoder = load_encoder("model:recorded", model=lambda _: a_model(f"replay:{replies}", ledger))
    with pytest.raises(ModelError, match="could not embed 1 texts"):
        encoder.encode(["fever"])


def test_an_endpoint_shows_no_tokens_and_needs_a_ledger(server: FaultServer, tmp_path: Path) -> None:
    encoder = load_encoder(spec_of(server), model=lambda spec: a_model(spec, ledger_in(tmp_path)))
    assert encoder.window == 0
    with pytest.raises(UsageError, match="does not report tokens"):
        encoder.token_spans("fever")
    for spec in (spec_of(server), "openai:embedder"):
        with pytest.raises(UsageError, match="can't be used here"):
            load_encoder(spec)


def test_two_endpoints_are_two_towers(server: FaultServer, tmp_path: Path) -> None:
    ledger = ledger_in(tmp_path)
    articles, queries = (f"{server.url}#{name}" for name in ("articles", "queries"))
    used = UsedModels(lambda spec: a_model(spec, ledger))
    indexes = IndexSet.of_passages(passages("fever", "cough"), encoder=lambda spec: load_encoder(spec, model=used))
    retriever = Retriever(indexes, f"dense[encoder={articles},queries={queries},similarity=dot]")
    [hits] = retriever.search([("q", "fever")], 2)
    assert len(hits) == 2
    asked: dict[str, set[str]] = {seen.body["model"]: set() for seen in server.seen}
    for seen in server.seen:
        asked[seen.body["model"]] |= set(seen.body["input"]) - {"dimension"}
    assert asked == {"articles": {"fever", "cough"}, "queries": {"fever"}}
    assert set(asked_models(retriever, None, used)) == {f"encoder {articles}", f"encoder {queries}"}
    with pytest.raises(UsageError, match="pools by itself"):
        load_encoder(f"{articles};pooling=cls", model=used)
