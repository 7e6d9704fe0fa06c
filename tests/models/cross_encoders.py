"""Tiny real cross-encoders for tests: an ONNX model whose scores can be worked out by hand, and its tokenizer.

Every word has a value. A pair's score is the sum of its words' values, those of the text counted tenfold.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, pre_tokenizers, processors

__all__ = ["VALUES", "WORDS", "make_folder", "value_of"]

VALUES = {"[PAD]": 100.0, "[UNK]": -1.0, "[CLS]": 0.0, "[SEP]": 0.0, "fever": 1.0, "cough": 2.0, "rash": -3.5}
WORDS = {word: number for number, word in enumerate(VALUES)}


def value_of(query: str, text: str, window: int) -> float:
    """The score of a pair by hand, cut to the window off the longer side."""
    one, two = (_words(part) for part in (query, text))
    while len(one) + len(two) > window - 3:
        (one if len(one) > len(two) else two).pop()
    return sum(one) + 10 * sum(two)


def _words(text: str) -> list[float]:
    words = pre_tokenizers.Whitespace().pre_tokenize_str(text.encode("utf-8", "ignore").decode())
    return [VALUES.get(word, VALUES["[UNK]"]) for word, _ in words]


def make_folder(
    folder: Path,
    *,
    labels: Sequence[str] = ("LABEL_0",),
    window: int = 16,
    inputs: Sequence[str] = ("input_ids", "attention_mask", "token_type_ids"),
    kind: int = TensorProto.INT64,
    length: int | None = None,
    broken: str = "",
) -> Path:
    """A cross-encoder's folder. Pairs with the word `broken` score NaN; `length` is the only one it takes, if given."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "bert", "id2label": {str(number): label for number, label in enumerate(labels)}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": window}))
    _tokenizer().save(str(folder / "tokenizer.json"))
    values = {**VALUES, **({broken: float("nan")} if broken else {})}
    onnx.save(_model(list(values.values()), len(labels), inputs, kind, length), str(folder / "model.onnx"))
    return folder


def _tokenizer() -> Tokenizer:
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(mark, WORDS[mark]) for mark in ("[CLS]", "[SEP]")],
    )
    return tokenizer


def _model(
    values: Sequence[float], labels: int, inputs: Sequence[str], kind: int, length: int | None
) -> onnx.ModelProto:
    """Look each token's value up, count the text's tenfold, add up, and spread over the labels as -1, 1, 3, … times."""
    spread = [[1.0]] if labels == 1 else [[2.0 * label - 1 for label in range(labels)]]
    constants = {"values": values, "nine": [9.0], "one": [1.0], "spread": spread}
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["places"], to=TensorProto.INT64),
        helper.make_node("Gather", ["values", "places"], ["looked_up"]),
    ]
    summed = "looked_up"
    if "token_type_ids" in inputs:
        nodes += [
            helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
            helper.make_node("Mul", ["types", "nine"], ["more"]),
            helper.make_node("Add", ["more", "one"], ["weights"]),
            helper.make_node("Mul", ["looked_up", "weights"], ["weighted"]),
        ]
        summed = "weighted"
    nodes += [
        helper.make_node("ReduceSum", [summed], ["total"], keepdims=1),
        helper.make_node("MatMul", ["total", "spread"], ["logits"]),
    ]
    graph = helper.make_graph(
        nodes,
        "values",
        [helper.make_tensor_value_info(name, kind, ["batch", length or "tokens"]) for name in inputs],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array(given, np.float32), name) for name, given in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
