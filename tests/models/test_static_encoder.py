"""Static encoders: the embedded one, and the file format they are read from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.models import weight_files
from hoofbeat.models.encoder import load_encoder
from hoofbeat.models.encoders.static_encoder import StaticEncoder, read_safetensors
from tests.helpers import needs_weights

WORDS = {"[UNK]": 0, "fever": 1, "rash": 2, "cough": 3}


def write_safetensors(path: Path, tensors: dict[str, NDArray[np.generic]]) -> Path:
    kinds = {"float32": "F32", "float16": "F16", "float64": "F64", "int64": "I64", "int32": "I32"}
    header: dict[str, object] = {"__metadata__": {"format": "np"}}
    data = b""
    for name, tensor in tensors.items():
        raw = tensor.tobytes()
        header[name] = {
            "dtype": kinds[str(tensor.dtype)],
            "shape": list(tensor.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def write_tokenizer(path: Path) -> Path:
    from tokenizers import Tokenizer  # noqa: PLC0415
    from tokenizers.models import WordLevel  # noqa: PLC0415
    from tokenizers.pre_tokenizers import Whitespace  # noqa: PLC0415

    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(path))
    return path


def small(folder: Path, **tensors: NDArray[np.generic]) -> StaticEncoder:
    model = write_safetensors(folder / "model.safetensors", tensors)
    return StaticEncoder(
        name="small", model=model, tokenizer=write_tokenizer(folder / "tokenizer.json"), digest="0" * 64, max_tokens=4
    )


VECTORS = np.array([[9, 9], [3, 0], [0, 4], [1, 1]], np.float32)


def test_a_text_is_the_mean_of_its_known_tokens(tmp_path: Path) -> None:
    encoder = small(tmp_path, embeddings=VECTORS)
    rows = encoder.encode(["fever rash", "fever unheard", "unheard", "", "fever fever fever fever rash"])
    np.testing.assert_allclose(rows[0], np.array([1.5, 2]) / 2.5, atol=1e-7)
    np.testing.assert_allclose(rows[1], [1, 0], atol=1e-7)
    assert not rows[2:4].any(), "nothing known is similar to nothing"
    np.testing.assert_allclose(rows[4], [1, 0], atol=1e-7)  # the fifth token is beyond the window
    assert encoder.window == 4
    assert encoder.token_spans("fever, rash") == [(0, 5), (5, 6), (7, 11)]


def test_stored_weights_and_rows_are_used(tmp_path: Path) -> None:
    encoder = small(
        tmp_path,
        embeddings=np.array([[2, 0], [0, 2]], np.float16),
        mapping=np.array([0, 0, 1, 1]),
        weights=np.array([0, 3, 4, 1], np.float64),
    )
    np.testing.assert_allclose(encoder.encode(["fever rash"])[0], [0.6, 0.8], atol=1e-7)


def test_a_vocabulary_without_vectors_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 4 tokens"):
        small(tmp_path, embeddings=VECTORS[:3])
    with pytest.raises(InputError, match="has 4 tokens"):
        small(tmp_path, embeddings=VECTORS[:2], mapping=np.array([0, 1, 2, 0]))
    with pytest.raises(InputError, match="has no token vectors"):
        small(tmp_path, something=VECTORS)


def test_safetensors_of_every_kind_come_back(tmp_path: Path) -> None:
    tensors: dict[str, NDArray[np.generic]] = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.array([1.5, -2], np.float16),
        "c": np.array(7, np.int64),
    }
    found = read_safetensors(write_safetensors(tmp_path / "t.safetensors", tensors))
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor)
        assert found[name].dtype == tensor.dtype


def hostile(header: object, data: bytes = b"\0" * 8) -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff" * 8,
        (1 << 40).to_bytes(8, "little") + b"{}",
        hostile({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 80]}}),
        hostile({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}),
        hostile({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}),
        hostile({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}),
        hostile({"a": {"dtype": "Q4", "shape": [2], "data_offsets": [0, 8]}}),
        hostile(["a"]),
        (8).to_bytes(8, "little") + b"[[[[[[[[",
    ],
)
def test_a_damaged_file_is_an_input_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.safetensors"
    path.write_bytes(data)
    with pytest.raises(InputError, match="safetensors"):
        read_safetensors(path)


def test_potion_follows_the_format_and_understands_a_little() -> None:
    needs_weights("potion")
    encoder = load_encoder("potion")
    assert (encoder.name, encoder.dimension, encoder.window) == ("potion", 256, 512)
    assert encoder.identity == "potion@f65d0f325faa;max=512;pooling=static"
    texts = ["The patient had a heart attack.", "He suffered a myocardial infarction.", "Share prices fell on Monday."]
    rows = encoder.encode(texts)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.2
    np.testing.assert_array_equal(encoder.encode(texts[:1])[0], rows[0])
    from tokenizers import Tokenizer  # noqa: PLC0415

    files = weight_files.find_weight("potion")
    ids = Tokenizer.from_file(str(files["tokenizer.json"])).encode(texts[1], add_special_tokens=False).ids
    mean = read_safetensors(files["model.safetensors"])["embeddings"][ids].mean(axis=0)
    np.testing.assert_allclose(rows[1], mean / np.linalg.norm(mean), atol=1e-6)
