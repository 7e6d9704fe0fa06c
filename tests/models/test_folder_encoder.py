"""A folder in the sentence-transformers layout, made from the embedded encoder's real files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from hoofbeat.errors import InputError
from hoofbeat.models import weight_files
from hoofbeat.models.encoder import Encoder, Instructions, MiniLM, load_encoder
from tests.helpers import needs_weights
from tests.models.test_static_encoder import VECTORS, write_safetensors, write_tokenizer

TEXTS = ["The patient had a heart attack.", "fever " * 40, "", "Übelkeit — 37,9 °C"]
STEPS = ("", "sentence_transformers.models.Transformer"), ("1_Pooling", "sentence_transformers.models.Pooling")
NORMALIZE = ("2_Normalize", "sentence_transformers.models.Normalize")


@pytest.fixture(scope="module")
def minilm() -> MiniLM:
    needs_weights("minilm")
    return MiniLM(products="float32")


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")


def a_folder(
    folder: Path,
    *,
    pooling: str = "mean_tokens",
    longest: int = 256,
    onnx: str = "onnx/model.onnx",
    steps: tuple[tuple[str, str], ...] = (*STEPS, NORMALIZE),
) -> Path:
    needs_weights("minilm")
    files = weight_files.find_weight("minilm")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / onnx).parent.mkdir(exist_ok=True)
    shutil.copyfile(files["model.onnx"], folder / onnx)
    shutil.copyfile(files["tokenizer.json"], folder / "tokenizer.json")
    write(folder / "modules.json", [{"idx": at, "path": path, "type": kind} for at, (path, kind) in enumerate(steps)])
    write(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": 384, f"pooling_mode_{pooling}": True})
    write(folder / "sentence_bert_config.json", {"max_seq_length": longest, "do_lower_case": False})
    return folder


def test_the_same_model_gives_the_same_vectors(tmp_path: Path, minilm: MiniLM) -> None:
    loaded: Encoder = load_encoder(str(a_folder(tmp_path / "mine")))
    np.testing.assert_array_equal(loaded.encode(TEXTS), minilm.encode(TEXTS))
    assert (loaded.name, loaded.dimension, loaded.window) == ("mine", 384, 254)
    assert loaded.token_spans(TEXTS[3]) == minilm.token_spans(TEXTS[3])
    assert loaded.identity.startswith("mine@")
    assert ";max=256;pooling=mean;onnxruntime=" in loaded.identity


@pytest.mark.parametrize("pooling", ["cls_token", "max_tokens", "lasttoken"])
def test_pooling_is_what_the_folder_says(tmp_path: Path, minilm: MiniLM, pooling: str) -> None:
    loaded = load_encoder(str(a_folder(tmp_path / "mine", pooling=pooling, onnx="model.onnx")))
    session, tokenizer = minilm._session, minilm._tokens.cut
    for text, vector in zip(TEXTS, loaded.encode(TEXTS), strict=True):
        ids = np.array([tokenizer.encode(text).ids])
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        states = session.run(None, feed)[0][0]
        pooled = {"cls_token": states[0], "max_tokens": states.max(axis=0), "lasttoken": states[-1]}[pooling]
        np.testing.assert_allclose(vector, pooled / np.linalg.norm(pooled), atol=1e-6)
    assert not np.allclose(loaded.encode(TEXTS[:1]), minilm.encode(TEXTS[:1]), atol=0.05)


def test_prompts_length_and_lower_case_come_from_the_folder(tmp_path: Path, minilm: MiniLM) -> None:
    folder = a_folder(tmp_path / "mine")
    write(folder / "config_sentence_transformers.json", {"prompts": {"query": "query: ", "passage": "passage: "}})
    write(folder / "sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": True})
    loaded = load_encoder(str(folder))
    assert loaded.prompts == Instructions(query="query: ", document="passage: ")
    assert loaded.window == 14
    np.testing.assert_array_equal(loaded.encode_queries(["Fever"])[0], minilm.encode(["query: fever"])[0])
    np.testing.assert_array_equal(loaded.encode_documents(["Fever"])[0], minilm.encode(["passage: fever"])[0])
    told = loaded.encode_queries(["Fever"], Instructions(query="Instruct: "))
    np.testing.assert_array_equal(told[0], minilm.encode(["instruct: fever"])[0])
    np.testing.assert_array_equal(loaded.encode(["fever " * 20])[0], loaded.encode(["fever " * 14])[0])


def test_identity_changes_with_what_changes_vectors(tmp_path: Path) -> None:
    seen = {
        load_encoder(str(a_folder(tmp_path / "a" / "mine"))).identity,
        load_encoder(str(a_folder(tmp_path / "b" / "mine", longest=128))).identity,
        load_encoder(str(a_folder(tmp_path / "c" / "mine", pooling="cls_token"))).identity,
    }
    assert len(seen) == 3


def test_a_folder_of_token_vectors(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "model.safetensors", {"embedding.weight": VECTORS})
    write_tokenizer(tmp_path / "tokenizer.json")
    write(tmp_path / "modules.json", [{"path": ".", "type": "sentence_transformers.models.StaticEmbedding"}])
    np.testing.assert_allclose(load_encoder(str(tmp_path)).encode(["fever"]), [[1, 0]], atol=1e-7)


def spoil_step(folder: Path) -> None:
    write(folder / "modules.json", [{"path": "3_Dense", "type": "sentence_transformers.models.Dense"}])


def spoil_pooling(folder: Path) -> None:
    write(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True})


def spoil_model(folder: Path) -> None:
    (folder / "onnx" / "model.onnx").write_bytes(b"not a model")


def spoil_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")


def remove_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()


def remove_model(folder: Path) -> None:
    (folder / "onnx" / "model.onnx").unlink()


def spoil_config(folder: Path) -> None:
    (folder / "modules.json").write_text("[[[", encoding="utf-8")


def leave_the_folder(folder: Path) -> None:
    write(folder / "modules.json", [{"path": "../..", "type": "sentence_transformers.models.Transformer"}])


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (spoil_step, "does not know a step of this model: .*Dense"),
        (spoil_pooling, "does not support the model's pooling"),
        (spoil_model, "model can't be loaded"),
        (spoil_tokenizer, "tokenizer can't be read"),
        (remove_tokenizer, "tokenizer.json is missing"),
        (remove_model, "no ONNX model"),
        (spoil_config, "can't be read"),
        (leave_the_folder, "outside its folder"),
    ],
)
def test_what_is_wrong_with_a_folder_is_said(tmp_path: Path, spoil: object, words: str) -> None:
    folder = a_folder(tmp_path / "mine")
    assert callable(spoil)
    spoil(folder)
    with pytest.raises(InputError, match=words) as caught:
        load_encoder(str(folder))
    assert caught.value.where


def test_an_empty_folder_is_no_encoder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not an encoder"):
        load_encoder(str(tmp_path))
