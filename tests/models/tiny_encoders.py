"""Tiny real encoders for tests: ONNX transformers in outline, whose states can be worked out by hand.

The state of a token is its word's row of a table; every layer multiplies states by a matrix, and is named in the graph
as exports of BERT name theirs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

MARKS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
Rows = Mapping[str, Sequence[float]]


def make_encoder(
    folder: Path, rows: Rows, *, layers: Sequence[Sequence[Sequence[float]]] = (), config: Mapping[str, object] = {}
) -> Path:
    """An encoder's folder as `optimum-cli` exports it: nothing in it says how states are pooled."""
    folder.mkdir(parents=True, exist_ok=True)
    words = list(dict.fromkeys((*MARKS, *rows)))
    width = len(next(iter(rows.values())))
    table = np.array([rows.get(word, (0.0,) * width) for word in words], np.float32)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", "max_position_embeddings": 32, **config}))
    _tokenizer({word: number for number, word in enumerate(words)}).save(str(folder / "tokenizer.json"))
    onnx.save(_model(table, [np.array(layer, np.float32) for layer in layers]), str(folder / "model.onnx"))
    return folder


def _tokenizer(words: dict[str, int]) -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(mark, words[mark]) for mark in ("[CLS]", "[SEP]")]
    )
    return tokenizer


def _model(table: NDArray[np.float32], layers: Sequence[NDArray[np.float32]]) -> onnx.ModelProto:
    constants = {"table": table, **{f"weight.{number}": layer for number, layer in enumerate(layers)}}
    now = "/embeddings/LayerNorm/Add_1_output_0"
    nodes = [helper.make_node("Gather", ["table", "input_ids"], [now])]
    for number in range(len(layers)):
        after = f"/encoder/layer.{number}/output/LayerNorm/Add_1_output_0"
        nodes.append(helper.make_node("MatMul", [now, f"weight.{number}"], [after]))
        now = after
    nodes.append(helper.make_node("Identity", [now], ["last_hidden_state"]))
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", "length"])],
        [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", table.shape[1]])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
