"""MiniLM with products of 8-bit integers, from the same pinned file.

The packaged file holds 8-bit weights, but its graph unpacks them to 32 bits before it multiplies. The graph that is
written here multiplies the 8-bit numbers themselves, as processors with dot products of bytes do best (VNNI, AMX, ARM),
and has fewer steps around the products. Measured on one core with 190 tokens per text: 21 ms of CPU time where the
packaged graph takes 56 (bench/encode.py). The weights are the same numbers; the difference is in the activations:

- The state of every token is rounded to 8 bits by a scale of that token. One scale for the whole text, as dynamic
  quantisation usually has it, is 9% quicker and loses twice as much (cosine to full precision 0.9948 on average
  instead of 0.9978), and would make a token's state depend on all others.
- The feed-forward part's inner values are at least -0.17 (the minimum of GELU). They are shifted to be positive, so
  that all 256 steps are used; the shift is taken off again with the bias.
- Sums and normalisations are separate steps: ONNX Runtime's fused one takes six times as long here.

Sums of 8-bit products are exact in 32 bits, so they are the same on all processors, with one exception: processors
with AVX2 or AVX-512 but without VNNI add pairs of products in 16 bits, which can overflow. `exact_products` tries it.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.models.encoders.onnx_file import MICROSOFT, GraphWriter, graph_field, nodes, tensors
from hoofbeat.store.files import read_bytes

_HEADS = 12
_EPSILON = 1e-12
_GELU_SHIFT = 0.17  # a little more than the minimum of GELU, -0.16997
_LAYER_BIAS = re.compile(r"encoder\.layer\.(\d+)\.(.+)\.bias")
_WORDS, _POSITIONS, _TYPES = (f"embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
_SELF = tuple(f"attention.self.{name}" for name in ("query", "key", "value"))


class _Linear(NamedTuple):
    """8-bit weights, the scale of each of their columns, and the bias."""

    weights: NDArray[np.int8]
    scales: NDArray[np.float32]
    bias: NDArray[np.float32]


class _Weights(NamedTuple):
    """What the packaged file holds: named tensors, and the products of each layer by the name of their bias."""

    tensors: dict[str, NDArray[Any]]
    layers: list[dict[str, _Linear]]

    def unpacked(self, name: str) -> NDArray[np.float32]:
        """A table of 8-bit numbers with a scale per row, as 32-bit numbers."""
        table: NDArray[np.float32] = self.tensors[f"{name}_q"].astype(np.float32) * self.tensors[f"{name}_scale"]
        return table


@cache
def exact_products() -> bool:
    """Whether ONNX Runtime multiplies 8-bit integers on this processor without overflow."""
    import onnxruntime  # noqa: PLC0415 (takes a second to import)

    rows, inner, columns = 4, 128, 64
    graph = GraphWriter()
    graph.tensor("weights", np.full((inner, columns), 127, np.int8))
    graph.step("Cast", ["values"], "bytes", to=2)
    graph.step("MatMulInteger", ["bytes", "weights"], "product")
    graph.step("Cast", ["product"], "result", to=1)
    model = graph.model({"values": [rows, inner]}, {"result": [rows, columns]})
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    found = session.run(None, {"values": np.full((rows, inner), 255, np.int64)})[0]
    return bool((found == 255 * 127 * inner).all())


def integer_graph(path: Path) -> bytes:
    """An ONNX model with 8-bit products, from the packaged file of all-MiniLM-L6-v2."""
    weights = _read(path)
    graph = GraphWriter()
    states = _embeddings(graph, weights)
    last = len(weights.layers) - 1
    for number, layer in enumerate(weights.layers):
        output = "last_hidden_state" if number == last else f"states.{number + 1}"
        states = _layer(graph, weights, number, layer, states, output)
    width = len(weights.tensors["embeddings.LayerNorm.weight"])
    return graph.model({"input_ids": ["batch", "tokens"]}, {"last_hidden_state": ["batch", "tokens", width]})


def _read(path: Path) -> _Weights:
    view = memoryview(read_bytes(path))
    graph = graph_field(view)
    found = {name.removeprefix("inner."): values for name, values in tensors(view, graph).items()}
    producers = {output: node for node in nodes(view, graph) for output in node.outputs}
    layers: dict[int, dict[str, _Linear]] = {}
    for node in producers.values():
        bias = next((name.removeprefix("inner.") for name in node.inputs if _LAYER_BIAS.search(name)), "")
        product = producers.get(node.inputs[0])
        if node.kind == "Add" and bias and product is not None and product.kind == "MatMul":
            place = _LAYER_BIAS.search(bias)
            assert place is not None
            packed = producers[product.inputs[1]]
            linear = _Linear(
                found[producers[packed.inputs[0]].inputs[0]], found[packed.inputs[1]].reshape(-1), found[bias]
            )
            layers.setdefault(int(place[1]), {})[place[2]] = linear
    if not layers or any(len(layer) != 6 for layer in layers.values()) or f"{_WORDS}_q" not in found:
        raise InputError(
            "the file is not the packaged all-MiniLM-L6-v2", where=str(path), fix="hoofbeat weights pull minilm"
        )
    return _Weights(found, [layers[number] for number in sorted(layers)])


def _embeddings(graph: GraphWriter, weights: _Weights) -> str:
    """Words and positions, summed and normalised; all tokens are of the first type."""
    graph.tensor("words", weights.tensors[f"{_WORDS}_q"])
    graph.tensor("word_scales", weights.tensors[f"{_WORDS}_scale"])
    graph.tensor("positions", weights.unpacked(_POSITIONS) + weights.tensors[_TYPES][0])
    graph.tensor("first", np.array([0], np.int64))
    graph.tensor("last_axis", np.array([-1], np.int64))
    graph.tensor("one", np.float32(1))
    graph.tensor("smallest", np.float32(1e-30))
    graph.tensor("gelu_shift", np.float32(_GELU_SHIFT))
    for name, step, zero in (("signed", 127, 128), ("positive", 255, 0)):
        graph.tensor(f"{name}_step", np.float32(1 / step))
        graph.tensor(f"{name}_zero", np.uint8(zero))
    graph.step("Gather", ["words", "input_ids"], "word_bytes")
    graph.step("Cast", ["word_bytes"], "word_numbers", to=1)
    graph.step("Gather", ["word_scales", "input_ids"], "word_scale")
    graph.step("Mul", ["word_numbers", "word_scale"], "word_states")
    graph.step("Shape", ["input_ids"], "length", start=1, end=2)
    graph.step("Slice", ["positions", "first", "length", "first"], "places")
    graph.step("Add", ["word_states", "places"], "embedded")
    return _normalised(graph, weights, "embeddings", "embedded", "states.0")


def _layer(
    graph: GraphWriter, weights: _Weights, number: int, layer: dict[str, _Linear], states: str, output: str
) -> str:
    """Attention and the feed-forward part, each with what it changes added to its input and normalised."""
    at = f"encoder.layer.{number}"
    parts = [layer[name] for name in _SELF]
    together = _Linear(*(np.concatenate(values, axis=-1) for values in zip(*parts, strict=True)))
    _linear(graph, f"{at}.self", together, states)
    graph.step("Split", [f"{at}.self"], f"{at}.query", f"{at}.key", f"{at}.value", axis=-1, num_outputs=3)
    heads = [f"{at}.query", f"{at}.key", f"{at}.value"]
    attended = graph.step("MultiHeadAttention", heads, f"{at}.attended", domain=MICROSOFT, num_heads=_HEADS)
    _linear(graph, f"{at}.mixed", layer["attention.output.dense"], attended)
    graph.step("Add", [f"{at}.mixed", states], f"{at}.added")
    middle = _normalised(graph, weights, f"{at}.attention.output", f"{at}.added", f"{at}.middle")
    _linear(graph, f"{at}.wide", layer["intermediate.dense"], middle)
    graph.step("Gelu", [f"{at}.wide"], f"{at}.gelu", domain=MICROSOFT)
    _linear(graph, f"{at}.narrow", layer["output.dense"], f"{at}.gelu", shift=_GELU_SHIFT)
    graph.step("Add", [f"{at}.narrow", middle], f"{at}.summed")
    return _normalised(graph, weights, f"{at}.output", f"{at}.summed", output)


def _normalised(graph: GraphWriter, weights: _Weights, name: str, states: str, output: str) -> str:
    gain, bias = (graph.tensor(f"{name}.{part}", weights.tensors[f"{name}.LayerNorm.{part}"]) for part in
                  ("weight", "bias"))  # fmt: skip
    return graph.step("LayerNormalization", [states, gain, bias], output, axis=-1, epsilon=_EPSILON)


def _linear(graph: GraphWriter, name: str, linear: _Linear, states: str, shift: float = 0.0) -> None:
    """A product with 8-bit weights and the bias; `shift` makes all states positive before they are rounded."""
    bias, kind, steps = linear.bias, "signed", 127
    sized = f"{name}.sized"
    if shift:
        columns = linear.weights.sum(axis=0, dtype=np.int64) * linear.scales.astype(np.float64)
        bias, kind, steps = (bias - shift * columns).astype(np.float32), "positive", 255
        states = graph.step("Add", [states, "gelu_shift"], sized)
    else:
        graph.step("Abs", [states], sized)
    graph.step("ReduceMax", [sized, "last_axis"], f"{name}.largest")
    graph.step("Max", [f"{name}.largest", "smallest"], f"{name}.scale")
    graph.step("Div", [states, f"{name}.scale"], f"{name}.unit")
    graph.step("QuantizeLinear", [f"{name}.unit", f"{kind}_step", f"{kind}_zero"], f"{name}.bytes")
    graph.tensor(f"{name}.weights", linear.weights)
    graph.tensor(f"{name}.scales", linear.scales / np.float32(steps))
    graph.tensor(f"{name}.bias", bias)
    inputs = [f"{name}.bytes", f"{name}.weights", "one", f"{name}.scales", f"{kind}_zero"]
    graph.step("MatMulIntegerToFloat", inputs, f"{name}.product", domain=MICROSOFT)
    graph.step("Mul", [f"{name}.product", f"{name}.scale"], f"{name}.scaled")
    graph.step("Add", [f"{name}.scaled", f"{name}.bias"], name)
