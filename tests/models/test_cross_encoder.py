"""Cross-encoders from a folder: scores worked out by hand, cut pairs, and folders that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hoofbeat.errors import InputError
from hoofbeat.models import weight_files
from hoofbeat.models.encoders.cross_encoder import CrossEncoder
from tests.helpers import needs_weights
from tests.models.cross_encoders import WORDS, make_folder, value_of

PAIRS = [
    ("fever", "fever cough"),
    ("fever cough", "rash"),
    ("fever", ""),
    ("", "rash rash rash"),
    ("Ödem \ud800", "cough \x00 何"),
    ("cough", "fever " * 40 + "rash"),
]


def test_one_logit_is_the_score(tmp_path: Path) -> None:
    encoder = CrossEncoder(make_folder(tmp_path))
    scores = encoder.score(PAIRS)
    assert scores == pytest.approx([value_of(query, text, window=16) for query, text in PAIRS])
    assert scores[0] == pytest.approx(1 + 10 * (1 + 2))  # fever is 1 in the query; fever 1 and cough 2 count tenfold
    assert len(set(scores)) == len(scores)


def test_two_logits_score_by_their_difference(tmp_path: Path) -> None:
    second = CrossEncoder(make_folder(tmp_path / "second", labels=("LABEL_0", "LABEL_1")))
    first = CrossEncoder(make_folder(tmp_path / "first", labels=("Relevant", "other")))
    unnamed = CrossEncoder(make_folder(tmp_path / "unnamed", labels=("good", "bad")))
    expected = 2 * value_of("fever", "cough", window=16)  # the logits are minus the value and the value
    assert second.score([("fever", "cough")]) == pytest.approx([expected])
    assert first.score([("fever", "cough")]) == pytest.approx([-expected])
    assert unnamed.score([("fever", "cough")]) == pytest.approx([expected])


def test_a_score_depends_neither_on_neighbours_nor_on_threads(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    encoder = CrossEncoder(folder, threads=2)
    together = encoder.score(PAIRS)
    assert [encoder.score([pair])[0] for pair in PAIRS] == together
    assert encoder.score(PAIRS[::-1])[::-1] == together
    assert CrossEncoder(folder, threads=1).score(PAIRS) == together
    assert encoder.score([]) == []


def test_a_long_pair_is_cut_off_the_longer_side_and_counted(tmp_path: Path) -> None:
    encoder = CrossEncoder(make_folder(tmp_path, window=10))
    assert encoder.window == 10
    (long_text,) = encoder.score([("fever", "cough " * 6 + "rash")])  # 3 marks and 1 word leave room for 6
    assert long_text == pytest.approx(1 + 10 * 6 * 2)
    (long_query,) = encoder.score([("cough " * 6 + "rash", "fever")])
    assert long_query == pytest.approx(6 * 2 + 10 * 1)
    assert encoder.cut == 2
    encoder.score([("fever", "cough " * 6)])
    assert encoder.cut == 2


@pytest.mark.parametrize(
    ("config", "tokenizer_config", "window"),
    [
        ({"max_position_embeddings": 64}, {"model_max_length": 32}, 32),
        ({"max_position_embeddings": 64}, {"model_max_length": 1000000000000000019884624838656}, 64),
        ({"max_position_embeddings": 514, "model_type": "xlm-roberta", "pad_token_id": 1}, {}, 512),
        ({"max_position_embeddings": 512, "model_type": "deberta-v2", "pad_token_id": 0}, None, 512),
        ({"max_position_embeddings": -1, "model_type": None, "id2label": None}, {"model_max_length": None}, 512),
        ({}, None, 512),
    ],
)
def test_the_window_is_what_the_files_say(
    tmp_path: Path, config: dict[str, Any], tokenizer_config: dict[str, Any] | None, window: int
) -> None:
    folder = make_folder(tmp_path)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").unlink()
    if tokenizer_config is not None:
        (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    assert CrossEncoder(folder).window == window


def test_the_tokenizers_own_limit_counts_where_nothing_else_is_said(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    (folder / "tokenizer_config.json").unlink()
    (folder / "config.json").write_text("{}")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(24)
    tokenizer.enable_padding(length=24)
    tokenizer.save(str(folder / "tokenizer.json"))
    encoder = CrossEncoder(folder)
    assert encoder.window == 24
    assert encoder.score([("fever", "cough")]) == pytest.approx([21])


def test_the_model_may_lie_in_a_folder_of_its_own_and_have_another_name(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    expected = CrossEncoder(folder).score(PAIRS)
    (folder / "onnx").mkdir()
    (folder / "model.onnx").rename(folder / "onnx" / "model.onnx")
    assert CrossEncoder(folder).score(PAIRS) == expected
    (folder / "onnx" / "model.onnx").rename(folder / "onnx" / "model_quantized.onnx")
    assert CrossEncoder(str(folder)).score(PAIRS) == expected
    (folder / "onnx" / "model_O2.onnx").write_bytes((folder / "onnx" / "model_quantized.onnx").read_bytes())
    with pytest.raises(InputError, match=r"several models: onnx/model_O2.onnx, onnx/model_quantized.onnx"):
        CrossEncoder(folder)


def test_a_model_may_do_without_token_types_and_count_in_32_bits(tmp_path: Path) -> None:
    folder = make_folder(tmp_path, inputs=("input_ids",), kind=TensorProto.INT32)
    assert CrossEncoder(folder).score([("fever", "cough")]) == pytest.approx([1 + 2])


def test_identity_follows_every_file_and_no_path(tmp_path: Path) -> None:
    one = CrossEncoder(make_folder(tmp_path / "a" / "tiny"))
    same = CrossEncoder(make_folder(tmp_path / "b" / "tiny"))
    assert one.identity == same.identity
    assert one.identity.startswith("cross-encoder:tiny@")
    assert ";max=16;onnxruntime=" in one.identity
    assert str(tmp_path) not in one.identity
    seen = {one.identity}
    for number, name in enumerate(("config.json", "tokenizer.json", "model.onnx_data")):
        folder = make_folder(tmp_path / str(number) / "tiny")
        path = folder / name
        path.write_bytes((path.read_bytes() if path.exists() else b"") + b"\n")
        seen.add(CrossEncoder(folder).identity)
    assert len(seen) == 4


def test_what_is_no_folder_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such folder") as caught:
        CrossEncoder(tmp_path / "nowhere")
    assert caught.value.where == str(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this is a file, but a cross-encoder is a folder"):
        CrossEncoder(tmp_path / "file")


def test_a_folder_without_onnx_says_how_to_export(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no ONNX model") as caught:
        CrossEncoder(tmp_path)
    assert "optimum-cli export onnx --model MODEL --task text-classification" in str(caught.value.fix)
    (tmp_path / "model.safetensors").write_bytes(b"")
    with pytest.raises(InputError, match="torch weights, but no ONNX model") as caught:
        CrossEncoder(tmp_path)
    assert f"--model {tmp_path} --task" in str(caught.value.fix)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", None, "has no config.json"),
        ("config.json", b"\xff{", "config.json can't be read"),
        ("config.json", b'{"max_position_embeddings": "many"}', "config.json can't be read"),
        ("config.json", b'{"max_position_embeddings": 3}', "reads 3 tokens of a pair"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json can't be read"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer.json", b"{}", "tokenizer.json can't be read"),
        ("model.onnx", b"no model", "the ONNX model can't be loaded"),
    ],
)
def test_a_missing_or_damaged_file_is_said(tmp_path: Path, name: str, content: bytes | None, message: str) -> None:
    folder = make_folder(tmp_path)
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        CrossEncoder(folder)
    assert caught.value.fix
    assert "\n" not in caught.value.what


def test_a_tokenizer_without_a_mark_between_query_and_text_is_refused(tmp_path: Path) -> None:
    folder = make_folder(tmp_path)
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(InputError, match="puts nothing between a query and a text"):
        CrossEncoder(folder)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", pair="[CLS] $A $B:1", special_tokens=[("[CLS]", WORDS["[CLS]"])]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    with pytest.raises(InputError, match="puts nothing between a query and a text"):
        CrossEncoder(folder)


def test_a_model_of_other_outputs_or_inputs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'logits' is 1 x 3 float32: a reranker gives one or two logits"):
        CrossEncoder(make_folder(tmp_path / "three", labels=("a", "b", "c")))
    with pytest.raises(InputError, match="asks for pixels of tensor"):
        CrossEncoder(make_folder(tmp_path / "pixels", inputs=("input_ids", "pixels")))
    with pytest.raises(InputError, match=r"asks for input_ids of tensor\(float\)"):
        CrossEncoder(make_folder(tmp_path / "float", inputs=("input_ids",), kind=TensorProto.FLOAT))
    with pytest.raises(InputError, match="can't read a pair of 5 tokens"):
        CrossEncoder(make_folder(tmp_path / "fixed", length=4))


def test_a_bare_encoder_is_refused(tmp_path: Path) -> None:
    needs_weights("minilm")
    folder = minilm_folder(tmp_path)
    (folder / "model.onnx").symlink_to(weight_files.find_weight("minilm")["model.onnx"])
    with pytest.raises(InputError, match=r"'last_hidden_state' is 1 x 5 x 384 float32"):
        CrossEncoder(folder)


def test_a_real_transformer_with_a_head_reads_the_pair_as_bert_does(tmp_path: Path) -> None:
    """MiniLM with a random classification head, against the same arithmetic on its token states."""
    import onnxruntime  # noqa: PLC0415

    needs_weights("minilm")
    folder = minilm_folder(tmp_path)
    head = np.random.default_rng(3).normal(size=(384, 1)).astype(np.float32)
    files = weight_files.find_weight("minilm")
    with_head(onnx.load(str(files["model.onnx"])), head, folder / "model.onnx")
    query, text = "What treats a fever?", "Paracetamol lowers a fever."
    (score,) = CrossEncoder(folder).score([(query, text)])
    tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
    tokenizer.no_padding()
    first, second = (tokenizer.encode(part, add_special_tokens=False).ids for part in (query, text))
    cls, sep = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    ids = np.array([[cls, *first, sep, *second, sep]], np.int64)
    types = np.array([[0] * (len(first) + 2) + [1] * (len(second) + 1)], np.int64)
    session = onnxruntime.InferenceSession(str(files["model.onnx"]), providers=["CPUExecutionProvider"])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": types}
    states = session.run(None, feed)[0]
    assert score == pytest.approx(float(states[0, 0] @ head[:, 0]), rel=1e-4)


def minilm_folder(folder: Path) -> Path:
    (folder / "tokenizer.json").write_bytes(weight_files.find_weight("minilm")["tokenizer.json"].read_bytes())
    (folder / "config.json").write_text('{"max_position_embeddings": 512, "model_type": "bert"}')
    return folder


def with_head(model: onnx.ModelProto, head: np.ndarray[Any, np.dtype[np.float32]], path: Path) -> None:
    """Put a linear layer over the state of the first token."""
    graph = model.graph
    graph.initializer.append(numpy_helper.from_array(np.array(0, np.int64), "first"))
    graph.initializer.append(numpy_helper.from_array(head, "head"))
    graph.node.append(helper.make_node("Gather", [graph.output[0].name, "first"], ["pooled"], axis=1))
    graph.node.append(helper.make_node("MatMul", ["pooled", "head"], ["logits"]))
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, None))
    onnx.save(model, str(path))
