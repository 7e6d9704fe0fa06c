"""Copies of the embedded model's file that tests read and serve: with few of its blocks, and with 32-bit floats.

Most of a model's time goes into its blocks. The short copy has the same tokens, chat format and server, and answers ten
times as fast: it is for tests in which a real model is asked and what it writes does not matter. All blocks compute
alike, so a forward pass that agrees on two of them is the model's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.models import weight_files
from tests.helpers import made_once, needs_weights

_NAME = "smollm2-135m"
_BLOCKS = 2


class Reader(gguf.GGUFReader):
    """The reader of the format's own package, over a plain array: slices of a mapped one take three times as long."""

    def _get(self, *given: Any, **named: Any) -> NDArray[Any]:
        self.data = np.asarray(self.data)  # type: ignore[assignment]
        return super()._get(*given, **named)


def f32_copy(factory: pytest.TempPathFactory) -> Path:
    """The short copy with every tensor as 32-bit floats, so that a runtime has no quantised kernels to use."""
    return _copied(factory, "smollm2-short-f32.gguf", _add_floats)


def short_copy(factory: pytest.TempPathFactory) -> Path:
    """The model with its first two blocks only; the test is skipped where the weights are absent."""
    return _copied(factory, "smollm2-short.gguf", _add_first_blocks)


def _copied(
    factory: pytest.TempPathFactory, name: str, add: Callable[[gguf.GGUFWriter, Reader, dict[str, Any]], None]
) -> Path:
    """A copy that is written once in a run of the tests."""
    needs_weights(_NAME)
    source = weight_files.weight_path(_NAME)

    def write(target: Path) -> None:
        reader = Reader(source)
        writer = gguf.GGUFWriter(target, str(reader.fields["general.architecture"].contents()))
        changed: dict[str, Any] = {}
        add(writer, reader, changed)
        for key, field in reader.fields.items():
            if not key.startswith("GGUF.") and key not in ("general.architecture", "general.file_type"):
                inner = field.types[-1] if len(field.types) > 1 else None
                writer.add_key_value(key, changed.get(key, field.contents()), field.types[0], inner)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()

    return made_once(factory, name, write)


def _add_floats(writer: gguf.GGUFWriter, reader: Reader, changed: dict[str, Any]) -> None:
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in _first_blocks(reader, changed):
        values = gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
        writer.add_tensor(tensor.name, np.ascontiguousarray(values))


def _add_first_blocks(writer: gguf.GGUFWriter, reader: Reader, changed: dict[str, Any]) -> None:
    for tensor in _first_blocks(reader, changed):
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)


def _first_blocks(reader: Reader, changed: dict[str, Any]) -> Iterator[gguf.ReaderTensor]:
    """The tensors that a model of few blocks keeps; its header says how many blocks there are."""
    changed["llama.block_count"] = _BLOCKS
    for tensor in reader.tensors:
        kind, _, rest = tensor.name.partition(".")
        if kind != "blk" or int(rest.partition(".")[0]) < _BLOCKS:
            yield tensor
