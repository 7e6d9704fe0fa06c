"""MiniLM with 8-bit products: beside the same weights in 32 bits, and what the file says."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import weight_files
from hoofbeat.models.encoder import MiniLM, load_encoder
from hoofbeat.models.encoders import onnx_encoder
from hoofbeat.models.encoders.integer_products import exact_products, integer_graph
from hoofbeat.models.encoders.onnx_file import GraphWriter, graph_field, nodes, tensors
from hoofbeat.store.files import read_bytes
from tests.helpers import needs_weights

TEXTS = [
    "The patient had a heart attack.",
    "He suffered a myocardial infarction.",
    "Tacrolimus must be taken at the same time every day. " * 12,
    "",
    "Ödem, Übelkeit — 37,9 °C",
]


@pytest.fixture(scope="module")
def eight() -> MiniLM:
    needs_weights("minilm")
    if not exact_products():
        pytest.skip("this processor has no exact 8-bit products")
    return MiniLM(1)


def test_vectors_are_close_to_those_of_32_bits_and_have_their_own_identity(eight: MiniLM) -> None:
    wide = MiniLM(1, products="float32")
    cosines = (eight.encode(TEXTS) * wide.encode(TEXTS)).sum(axis=1)
    assert cosines[[bool(text) for text in TEXTS]].min() > 0.99
    assert cosines.min() > 0.98, "an empty text is two marks, with nothing to average over"
    assert cosines.max() < 0.99999, "the products are not the same"
    assert eight.identity == f"{wide.identity};products=int8"
    assert load_encoder("minilm").identity == eight.identity
    assert load_encoder("minilm;products=float32").identity == wide.identity


def test_token_states_are_near_those_of_32_bits_after_every_layer(eight: MiniLM) -> None:
    wide = MiniLM(1, products="float32")
    assert eight.layer_count() == wide.layer_count() == 6
    for layer in (1, 3, 6):
        (ours,), (theirs,) = (each.token_states(TEXTS[:1], layer=layer) for each in (eight, wide))
        assert ours.tokens == theirs.tokens
        lengths = np.linalg.norm(ours.states, axis=1) * np.linalg.norm(theirs.states, axis=1)
        assert ((ours.states * theirs.states).sum(axis=1) / lengths).min() > 0.97


def test_the_graph_is_valid_and_holds_the_files_own_weights(eight: MiniLM) -> None:
    path = weight_files.find_weight("minilm")["model.onnx"]
    ours, theirs = onnx.load_from_string(integer_graph(path)), onnx.load(path)
    assert [each.name for each in ours.graph.input] == ["input_ids"]
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in ours.graph.node) == 24
    kept = {each.name: numpy_helper.to_array(each) for each in ours.graph.initializer}
    source = {each.name: numpy_helper.to_array(each) for each in theirs.graph.initializer}
    np.testing.assert_array_equal(kept["words"], source["inner.embeddings.word_embeddings.weight_q"])
    np.testing.assert_array_equal(kept["encoder.layer.0.self.weights"][:, :384], source["val_49_q"])
    np.testing.assert_array_equal(kept["encoder.layer.5.narrow.weights"], source["val_473_q"])


def test_files_are_read_as_the_package_onnx_reads_them() -> None:
    needs_weights("minilm")
    data = read_bytes(weight_files.find_weight("minilm")["model.onnx"])
    view, model = memoryview(data), onnx.load_from_string(data)
    graph = graph_field(view)
    found = tensors(view, graph)
    for each in model.graph.initializer:
        if each.HasField("raw_data") and each.name in found:
            np.testing.assert_array_equal(found[each.name], numpy_helper.to_array(each))
    assert len(found) > 100
    assert [node.kind for node in nodes(view, graph)] == [node.op_type for node in model.graph.node]


def test_a_written_graph_passes_the_packages_check() -> None:
    graph = GraphWriter()
    graph.tensor("table", np.arange(6, dtype=np.float32).reshape(3, 2))
    graph.step("Gather", ["table", "ids"], "rows", axis=0)
    graph.step("LeakyRelu", ["rows"], "leaky", alpha=0.5)
    graph.step("Transpose", ["leaky"], "turned", perm=[1, 0])
    model = onnx.load_from_string(graph.model({"ids": ["n"]}, {"turned": [2, "n"]}))
    onnx.checker.check_model(model, full_check=True)
    assert model.graph.node[1].attribute[0].f == 0.5
    assert list(model.graph.node[2].attribute[0].ints) == [1, 0]


def test_another_file_is_refused(tmp_path: Path) -> None:
    graph = GraphWriter()
    graph.step("Neg", ["ids"], "out")
    path = tmp_path / "other.onnx"
    path.write_bytes(graph.model({"ids": ["n"]}, {"out": ["n"]}))
    with pytest.raises(InputError, match="not the packaged all-MiniLM-L6-v2"):
        integer_graph(path)


def test_without_exact_products_32_bits_are_used(monkeypatch: pytest.MonkeyPatch, eight: MiniLM) -> None:
    monkeypatch.setattr(onnx_encoder, "exact_products", lambda: False)
    fallen = MiniLM(1)
    assert fallen.products == "float32"
    assert "int8" not in fallen.identity
    with pytest.raises(UsageError, match="can't compute exact 8-bit products"):
        MiniLM(1, products="int8")


def test_a_wider_window_reads_more_and_travels_with_the_encoder(eight: MiniLM) -> None:
    wide = load_encoder("minilm;window=512;products=int8")
    assert wide.window == 510
    long = "fever " * 400
    same, other = (eight.encode([text])[0] for text in (long, long + "and a rash"))
    np.testing.assert_array_equal(same, other)
    assert not np.array_equal(*wide.encode([long, long + "and a rash"]))
    again = pickle.loads(pickle.dumps(wide))
    assert again.identity == wide.identity
    np.testing.assert_array_equal(again.encode([long]), wide.encode([long]))


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("minilm;window=513", "can't read 513 tokens"),
        ("minilm;window=half", "window can't be 'half'"),
        ("minilm;products=int4", "products can't be 'int4'"),
        ("potion;products=int8", "only the encoder minilm"),
        ("minilm;pooling=cls", "pools by itself"),
    ],
)
def test_what_an_encoder_does_not_have_is_refused(spec: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        load_encoder(spec)
