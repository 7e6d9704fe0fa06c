"""The states of an inner layer of an ONNX encoder, which an export usually does not give out.

BERTScore compares the states of a layer in the middle: the reference implementation takes layer 17 of 24 of
roberta-large. The layer's tensor is found in the graph and added to its outputs; the weights stay as they are. Only the
few fields of the ONNX file that this needs are read, so that no further package is needed.

Layers are found by the outputs `hidden_states.N` of exports that have them, by scopes named `layer.N` (the usual
names of exports), or by the normalisations at the end of each half layer. What was found is checked: the last layer's
states must be the states that the model gives out.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from hoofbeat.errors import InputError
from hoofbeat.models.encoders.onnx_file import (
    GRAPH_OUTPUT,
    VALUE_NAME,
    Field,
    graph_field,
    message,
    nodes,
    with_fields,
)

_NAMED = re.compile(r"hidden_states\.(\d+)")
_SCOPE = re.compile(r"(?:^|[/.])layers?[./](\d+)/.*norm[^/]*/", re.IGNORECASE)
_HELPER = re.compile(r"quantized|scale|zero_point", re.IGNORECASE)


class LayerGraph(NamedTuple):
    """A model that gives out more of its layers; `tensors` are their names, layer 1 first."""

    model: bytes
    tensors: tuple[str, ...]


def with_layers(data: bytes, path: Path, outputs: list[str]) -> LayerGraph:
    """The model with every layer's states among its outputs; `outputs` are those it has."""
    named = {int(match[1]): name for name in outputs if (match := _NAMED.fullmatch(name))}
    if named:
        return LayerGraph(data, tuple(named[layer] for layer in sorted(named) if layer))
    view = memoryview(data)
    graph = graph_field(view)
    tensors = _layer_tensors(view, graph)
    if not tensors:
        raise InputError(
            "Hoofbeat can't find the layers in the model's graph",
            where=str(path),
            fix="export it with output_hidden_states, so that it has outputs named hidden_states.N, or use its last "
            "layer: --layer last",
        )
    added = b"".join(message(GRAPH_OUTPUT, message(VALUE_NAME, name.encode())) for name in tensors
                     if name not in outputs)  # fmt: skip
    return LayerGraph(with_fields(data, added), tensors)


def _layer_tensors(view: memoryview, graph: Field) -> tuple[str, ...]:
    """The tensors with the states after each layer, in order; nothing where they can't be told."""
    by_scope: dict[int, str] = {}
    normalised: list[str] = []
    for kind, _, outputs in nodes(view, graph):
        if outputs and (match := _SCOPE.search(outputs[0])) and not _HELPER.search(outputs[0]):
            by_scope[int(match[1])] = outputs[0]
        if outputs and kind == "LayerNormalization":
            normalised.append(outputs[0])
    if by_scope and sorted(by_scope) == list(range(len(by_scope))):
        return tuple(by_scope[layer] for layer in range(len(by_scope)))
    # One normalisation after the embeddings, then two in each layer: after attention and after the feed-forward part.
    return tuple(normalised[2::2]) if len(normalised) % 2 and len(normalised) > 2 else ()
