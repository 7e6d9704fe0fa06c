"""Static encoders (model2vec): a vector per token, and a text is the mean of its tokens' vectors.

Hundreds of times faster than a transformer and much weaker: for quick tests and first passes. The embedded one is
potion-base-8M. Tokens the tokenizer does not know are left out; stored weights multiply their tokens' vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.models import weight_files
from hoofbeat.models.encoders.encoder_base import Vectors, unit_vector
from hoofbeat.models.encoders.onnx_encoder import TokenisedEncoder, TokenizerFile
from hoofbeat.progress import SILENT, Progress
from hoofbeat.text import encodable

_BLOCK = 1024
_MAX_HEADER = 100_000_000
_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1"}
_MATRICES = ("embeddings", "embedding.weight")


class _Tensor(msgspec.Struct):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


class StaticEncoder(TokenisedEncoder):
    """Token vectors from a safetensors file, averaged."""

    def __init__(self, *, name: str, model: Path, tokenizer: Path, digest: str, max_tokens: int = 512) -> None:
        tensors = read_safetensors(model)
        matrix = next((tensors[each] for each in _MATRICES if each in tensors), None)
        if matrix is None or matrix.ndim != 2 or not matrix.size:
            raise InputError("the file has no token vectors", where=str(model), fix="give a model2vec model")
        self.name = name
        self.dimension = int(matrix.shape[1])
        self.identity = f"{name}@{digest[:12]};max={max_tokens};pooling=static"
        self._tokens = TokenizerFile(tokenizer, max_tokens, marks=False)
        self._matrix = matrix.astype(np.float32)
        self._rows = tensors.get("mapping")
        self._weights = tensors.get("weights")
        unknown = getattr(self._tokens.cut.model, "unk_token", None)
        self._unknown = self._tokens.cut.token_to_id(unknown) if unknown else None
        self._check(model)
        self._load = partial(
            StaticEncoder, name=name, model=model, tokenizer=tokenizer, digest=digest, max_tokens=max_tokens
        )

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length; zero for a text without known tokens."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        with progress.task("encoding texts", len(texts)) as task:
            for start in range(0, len(texts), _BLOCK):
                block = [encodable(text) for text in texts[start : start + _BLOCK]]
                encodings = self._tokens.cut.encode_batch_fast(block, add_special_tokens=False)
                for row, encoding in enumerate(encodings, start):
                    vectors[row] = self._vector(encoding)
                task.advance(len(block))
        return vectors

    def _vector(self, encoding: Any) -> Vectors:
        ids = np.array([token for token in encoding.ids if token != self._unknown], np.int64)
        if not len(ids):
            return np.zeros(self.dimension, np.float32)
        found = self._matrix[ids if self._rows is None else self._rows[ids]].astype(np.float64)
        if self._weights is not None:
            found *= self._weights[ids][:, None]
        return unit_vector(found.mean(axis=0), self.name)

    def _check(self, path: Path) -> None:
        """Every token id must have its vector, its row and its weight."""
        tokens = self._tokens.cut.get_vocab_size()
        rows = len(self._matrix) if self._rows is None else len(self._rows)
        outside = self._rows is not None and bool(((self._rows < 0) | (self._rows >= len(self._matrix))).any())
        if rows < tokens or outside or (self._weights is not None and len(self._weights) < tokens):
            raise InputError(
                f"the tokenizer has {tokens} tokens, but the file lacks a vector for some",
                where=str(path),
                fix="use the tokenizer that belongs to the model",
            )


class Potion(StaticEncoder):
    """potion-base-8M: 256 dimensions, a text is read up to 512 tokens."""

    def __init__(self) -> None:
        files = weight_files.find_weight("potion")
        pinned = {file.name: file.sha256 for file in weight_files.load_weights_table().weights["potion"].files}
        super().__init__(
            name="potion",
            model=files["model.safetensors"],
            tokenizer=files["tokenizer.json"],
            digest=pinned["model.safetensors"],
        )
        self._load = Potion


def read_safetensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file: a length, a JSON header of that length, then the numbers."""
    try:
        data = path.read_bytes()
        length = int.from_bytes(data[:8], "little")
        if not 2 <= length <= min(_MAX_HEADER, len(data) - 8):
            raise ValueError("the header's length is wrong")
        header = msgspec.json.decode(data[8 : 8 + length], type=dict[str, msgspec.Raw])
        header.pop("__metadata__", None)
        tensors = {name: msgspec.json.decode(raw, type=_Tensor) for name, raw in header.items()}
        return {name: _tensor(memoryview(data)[8 + length :], tensor) for name, tensor in tensors.items()}
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as err:
        raise InputError(
            f"the file can't be read as safetensors: {err}", where=str(path), fix="check that the file is complete"
        ) from err


def _tensor(data: memoryview, tensor: _Tensor) -> NDArray[Any]:
    if tensor.dtype not in _TYPES:
        raise ValueError(f"numbers of type {tensor.dtype} can't be read")
    kind = np.dtype(_TYPES[tensor.dtype])
    start, end = tensor.data_offsets
    if min(tensor.shape, default=0) < 0 or not 0 <= start <= end <= len(data):
        raise ValueError("a tensor is outside the file")
    if end - start != math.prod(tensor.shape) * kind.itemsize:
        raise ValueError("a tensor's size and shape don't fit")
    return np.frombuffer(data[start:end], kind).reshape(tensor.shape)
