"""ONNX files, read and written without the package `onnx`.

An ONNX file is a protocol buffer. Hoofbeat needs few of its fields: the tensors and nodes of a file that it knows, and
a way to write its own graph. That is less code than the package is to install.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

MODEL_GRAPH = 7
GRAPH_NODE = 1
_GRAPH_INPUT = 11
GRAPH_OUTPUT = 12
VALUE_NAME = 1
MICROSOFT = "com.microsoft"
"""The domain of ONNX Runtime's own operators."""

_GRAPH_TENSOR = 5
_NODE_INPUT, _NODE_OUTPUT, _NODE_TYPE = 1, 2, 4
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_NAME, _TENSOR_DATA = 1, 2, 8, 9
_IR_VERSION, _OPSET = 10, 20
_FLOAT, _INT, _INTS = 1, 2, 7
_TYPES: dict[int, str] = {1: "<f4", 2: "|u1", 3: "|i1", 6: "<i4", 7: "<i8"}
_NUMBERS = {np.dtype(kind): number for number, kind in _TYPES.items()}


class Field(NamedTuple):
    """A field of a protocol buffer: its number, where it begins with its tag, and where its value lies."""

    number: int
    begin: int
    start: int
    end: int


class Node(NamedTuple):
    """A step of a graph: what it does, and the names of its inputs and outputs."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def fields(view: memoryview, start: int, end: int) -> Iterator[Field]:
    """The fields of a message."""
    while start < end:
        begin = start
        tag, start = varint(view, start)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, stop = varint(view, start)
        elif wire == 2:
            length, start = varint(view, start)
            stop = start + length
        else:
            stop = start + (8 if wire == 1 else 4)
        yield Field(number, begin, start, stop)
        start = stop


def varint(view: memoryview, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        byte = view[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def message(number: int, data: bytes) -> bytes:
    """A field that holds bytes, a text or another message."""
    return _varint_bytes(number << 3 | 2) + _varint_bytes(len(data)) + data


def graph_field(view: memoryview) -> Field:
    """Where a model's graph lies."""
    return next(field for field in fields(view, 0, len(view)) if field.number == MODEL_GRAPH)


def nodes(view: memoryview, graph: Field) -> Iterator[Node]:
    """The steps of a graph, in order."""
    for node in fields(view, graph.start, graph.end):
        if node.number == GRAPH_NODE:
            found: dict[int, list[str]] = {_NODE_INPUT: [], _NODE_OUTPUT: [], _NODE_TYPE: []}
            for field in fields(view, node.start, node.end):
                if field.number in found:
                    found[field.number].append(bytes(view[field.start : field.end]).decode())
            yield Node("".join(found[_NODE_TYPE]), tuple(found[_NODE_INPUT]), tuple(found[_NODE_OUTPUT]))


def tensors(view: memoryview, graph: Field) -> dict[str, NDArray[Any]]:
    """The tensors of a graph that are kept as plain bytes, by name; others are left out."""
    found: dict[str, NDArray[Any]] = {}
    for tensor in fields(view, graph.start, graph.end):
        if tensor.number != _GRAPH_TENSOR:
            continue
        name, kind, shape, data = "", 0, [], None
        for field in fields(view, tensor.start, tensor.end):
            if field.number == _TENSOR_NAME:
                name = bytes(view[field.start : field.end]).decode()
            elif field.number == _TENSOR_TYPE:
                kind = varint(view, field.start)[0]
            elif field.number == _TENSOR_DATA:
                data = view[field.start : field.end]
            elif field.number == _TENSOR_DIMS:
                shape += _numbers(view, field)
        if data is not None and kind in _TYPES:
            found[name] = np.frombuffer(data, _TYPES[kind]).reshape(shape)
    return found


def with_fields(data: bytes, added: bytes) -> bytes:
    """A model's file with further fields in its graph."""
    view = memoryview(data)
    graph = graph_field(view)
    changed = message(MODEL_GRAPH, bytes(view[graph.start : graph.end]) + added)
    return bytes(view[: graph.begin]) + changed + bytes(view[graph.end :])


def with_product(data: bytes, weights: str, states: str, product: str) -> bytes:
    """A model that also gives out `weights` (a new input: texts x 1 x tokens) times `states`: texts x 1 x width."""
    node = _text(_NODE_INPUT, weights) + _text(_NODE_INPUT, states) + _text(_NODE_OUTPUT, product)
    wide = np.dtype("<f4")
    return with_fields(
        data,
        message(GRAPH_NODE, node + _text(_NODE_TYPE, "MatMul"))
        + message(_GRAPH_INPUT, _value(weights, wide, ("texts", 1, "tokens")))
        + message(GRAPH_OUTPUT, _value(product, wide, ("texts", 1, "width"))),
    )


class GraphWriter:
    """A graph that is written step by step; `model` gives the bytes of the file."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[str, bytes] = {}

    def tensor(self, name: str, values: NDArray[Any] | np.number[Any]) -> str:
        """Keep numbers under a name, which it gives back."""
        array = np.ascontiguousarray(values)
        dims = b"".join(_number(_TENSOR_DIMS, size) for size in np.shape(values))
        kind = _number(_TENSOR_TYPE, _NUMBERS[array.dtype])
        self._tensors[name] = dims + kind + _text(_TENSOR_NAME, name) + message(_TENSOR_DATA, array.tobytes())
        return name

    def step(self, kind: str, inputs: Sequence[str], *outputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a step; it gives back the name of its first output. An input that is left out is an empty name."""
        data = b"".join(_text(_NODE_INPUT, name) for name in inputs)
        data += b"".join(_text(_NODE_OUTPUT, name) for name in outputs) + _text(_NODE_TYPE, kind)
        data += b"".join(message(5, _attribute(name, value)) for name, value in attributes.items())
        self._nodes.append(data + (_text(7, domain) if domain else b""))
        return outputs[0]

    def model(self, inputs: dict[str, Sequence[int | str]], outputs: dict[str, Sequence[int | str]]) -> bytes:
        """The file, whose inputs are 64-bit integers and outputs 32-bit floats of these shapes."""
        graph = b"".join(message(GRAPH_NODE, node) for node in self._nodes) + _text(2, "graph")
        graph += b"".join(message(_GRAPH_TENSOR, tensor) for tensor in self._tensors.values())
        graph += b"".join(message(_GRAPH_INPUT, _value(name, np.dtype("<i8"), shape)) for name, shape in inputs.items())
        graph += b"".join(
            message(GRAPH_OUTPUT, _value(name, np.dtype("<f4"), shape)) for name, shape in outputs.items()
        )
        opsets = b"".join(
            message(8, _text(1, domain) + _number(2, version)) for domain, version in (("", _OPSET), (MICROSOFT, 1))
        )
        return _number(1, _IR_VERSION) + message(MODEL_GRAPH, graph) + opsets


def _numbers(view: memoryview, field: Field) -> list[int]:
    """The numbers of a repeated field: one of them, or several packed together."""
    if view[field.begin] & 7 == 0:
        return [varint(view, field.start)[0]]
    found, at = [], field.start
    while at < field.end:
        value, at = varint(view, at)
        found.append(value)
    return found


def _varint_bytes(value: int) -> bytes:
    value &= (1 << 64) - 1  # a negative number is written as its complement
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*data, value])


def _number(number: int, value: int) -> bytes:
    return _varint_bytes(number << 3) + _varint_bytes(value)


def _text(number: int, value: str) -> bytes:
    return message(number, value.encode())


def _attribute(name: str, value: float | Sequence[int]) -> bytes:
    head = _text(1, name)
    if isinstance(value, float):
        return head + _varint_bytes(2 << 3 | 5) + struct.pack("<f", value) + _number(20, _FLOAT)
    if isinstance(value, int):
        return head + _number(3, value) + _number(20, _INT)
    return head + b"".join(_number(8, each) for each in value) + _number(20, _INTS)


def _value(name: str, kind: np.dtype[Any], shape: Sequence[int | str]) -> bytes:
    dims = b"".join(message(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + message(2, message(1, _number(1, _NUMBERS[kind]) + message(2, dims)))
