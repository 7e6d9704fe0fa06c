"""Dense retrieval with two towers: an encoder of documents and another of queries, as MedCPT has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models.encoder import Encoder, load_encoder
from hoofbeat.models.encoders.encoder_base import EncoderSpec
from hoofbeat.records import Document
from hoofbeat.retrieval.index.kept_parts import PartPlace
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.models.tiny_encoders import make_encoder

ARTICLES = {"heart": (3.0, 0.0), "kidney": (0.0, 1.0), "and": (2.0, 4.0)}
QUERIES = {"cardiac": (1.0, 0.2), "renal": (0.2, 1.0)}  # words that the encoder of articles does not know
DOCUMENTS = [
    Document(id="a", title="", text="heart"),
    Document(id="b", title="", text="kidney"),
    Document(id="c", title="", text="heart and"),
]


@pytest.fixture
def towers(tmp_path: Path) -> tuple[str, str]:
    articles = make_encoder(tmp_path / "articles", ARTICLES)
    return str(articles), str(make_encoder(tmp_path / "queries", QUERIES))


def over(line: str, **options: Path | str) -> Retriever:
    return Retriever(IndexSet(DOCUMENTS, encoder=load_encoder, **options), line)  # type: ignore[arg-type]


def test_queries_and_documents_have_their_own_encoders(towers: tuple[str, str]) -> None:
    one, two = towers
    retriever = over(f"dense[encoder={one},queries={two},pooling=max,chunk=whole]")
    alone = over(f"dense[encoder={one},pooling=max,chunk=whole]")
    found = retriever.search([("r", "renal"), ("c", "cardiac")], 3)
    assert [hits[0].document for hits in found] == ["b", "a"]
    assert {hit.score for hits in alone.search([("r", "renal")], 3) for hit in hits} == {0.0}
    described = retriever.describe()
    (encoder,) = described["query encoders"].items()  # type: ignore[attr-defined]
    assert encoder[0] == f"{two};pooling=max"
    assert encoder[1].startswith("queries@")
    assert "query encoders" not in alone.describe()
    assert retriever.encoders == {f"{one};pooling=max", f"{two};pooling=max"}


def test_lengths_count_with_the_inner_product(towers: tuple[str, str]) -> None:
    one, two = towers

    def scores(similarity: str) -> dict[str, float]:
        line = f"dense[encoder={one},queries={two},pooling=mean,similarity={similarity},chunk=whole]"
        [hits] = over(line).search([("q", "renal")], 3)
        return {hit.document: hit.score for hit in hits}

    # means of [CLS] word [SEP]: the marks are zero
    query, rows = np.array([0.2, 1.0]) / 3, {"a": (1.0, 0.0), "b": (0.0, 1 / 3), "c": (1.25, 1.0)}
    assert scores("dot") == pytest.approx({name: float(np.dot(query, row)) for name, row in rows.items()}, rel=1e-5)
    unit = {name: float(np.dot(query, row) / np.linalg.norm(query) / np.linalg.norm(row)) for name, row in rows.items()}
    assert scores("cosine") == pytest.approx(unit, rel=1e-5)
    assert max(scores("dot").items(), key=lambda each: each[1])[0] == "c"
    assert max(scores("cosine").items(), key=lambda each: each[1])[0] == "b"


def test_the_index_depends_on_the_article_encoder_alone(towers: tuple[str, str], tmp_path: Path) -> None:
    one, two = towers
    encoded: list[str] = []

    def load(spec: str) -> Encoder:
        encoder = load_encoder(spec)
        plain = encoder.encode
        encoder.encode = lambda texts, *rest: encoded.extend(texts) or plain(texts, *rest)  # type: ignore[method-assign, func-returns-value]
        return encoder

    for queries in ("", f",queries={two}"):
        indexes = IndexSet(DOCUMENTS, encoder=load, place=PartPlace(tmp_path / "kept"), content="three documents")
        Retriever(indexes, f"dense[encoder={one}{queries},pooling=cls,chunk=whole]").search([("q", "renal")], 3)
    assert encoded == ["heart", "kidney", "heart and", "renal", "renal"]


def test_a_folder_that_does_not_say_its_pooling_is_pointed_out(towers: tuple[str, str]) -> None:
    one, two = towers
    retriever = over(f"dense[encoder={one},queries={two}]")
    retriever.search([("q", "renal")], 1)
    notes = " ".join(retriever.notes)
    assert "articles does not say how the states" in notes
    assert "queries does not say how the states" in notes
    told = over(f"dense[encoder={one},queries={two},pooling=cls]")
    told.search([("q", "renal")], 1)
    assert not told.notes


def test_what_the_files_say_is_not_overridden(towers: tuple[str, str]) -> None:
    one, _ = towers
    pooling = Path(one) / "1_Pooling"
    pooling.mkdir()
    (pooling / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert "pooling=cls" in load_encoder(one).identity
    assert load_encoder(f"{one};pooling=cls").identity == load_encoder(one).identity
    with pytest.raises(InputError, match="files say pooling=cls, but the line says pooling=mean"):
        load_encoder(f"{one};pooling=mean")


def test_a_model_that_compares_by_dot_product_keeps_lengths(towers: tuple[str, str]) -> None:
    one, _ = towers
    settings = Path(one) / "config_sentence_transformers.json"
    settings.write_text('{"similarity_fn_name": "dot"}')
    [row] = load_encoder(f"{one};pooling=mean").encode(["heart"])
    assert row == pytest.approx([1.0, 0.0])
    settings.write_text('{"similarity_fn_name": "manhattan"}')
    with pytest.raises(InputError, match="manhattan"):
        load_encoder(one)


def test_towers_that_do_not_fit_are_refused(towers: tuple[str, str], tmp_path: Path) -> None:
    other = make_encoder(tmp_path / "wide", {"renal": (1.0, 0.0, 0.0)})
    with pytest.raises(UsageError, match="query vectors have 3 numbers, but document vectors 2"):
        over(f"dense[encoder={towers[0]},queries={other}]").search([("q", "renal")], 1)
    with pytest.raises(UsageError, match="pools by itself"):
        load_encoder("minilm;pooling=cls")
    with pytest.raises(UsageError, match="can't be 'median'"):
        EncoderSpec.parse("folder;pooling=median")


def test_queries_are_cut_by_their_own_encoders_tokens(towers: tuple[str, str]) -> None:
    one, two = towers
    asked: list[str] = []

    def load(spec: str) -> Encoder:
        asked.append(spec)
        return load_encoder(spec)

    line = f"dense[encoder={one},queries={two},pooling=cls,qchunk=tokens:2/1,chunk=tokens:2/1]"
    [hits] = Retriever(IndexSet(DOCUMENTS, encoder=load), line).search([("q", "renal cardiac renal")], 2)
    assert len(hits) == 2
    assert set(asked) == {f"{one};pooling=cls", f"{two};pooling=cls"}
