"""A second, independent implementation of the Llama architecture, in plain numpy, to check log-likelihoods against.

It reads a GGUF file, turns every tensor into 32-bit floats and computes in 64 bits, so that what it says is right to
more digits than any runtime. Written from the architecture's description: RMS norm, rotary positions on neighbouring
pairs (the order in which GGUF keeps query and key rows), grouped key-value heads, SwiGLU, tied embeddings.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from numpy.typing import NDArray

from tests.models.gguf_files import Reader

Floats = NDArray[np.floating[Any]]


class Weights:
    """A GGUF file, read once: its fields, and every tensor as 32-bit floats.

    That takes longer than a pass where the tensors are quantised: read the copy that `f32_copy` made of them.
    """

    def __init__(self, path: Path) -> None:
        reader = Reader(path)
        self.fields = reader.fields
        self.tensors: dict[str, NDArray[np.float32]] = {
            tensor.name: gguf.dequantize(tensor.data, tensor.tensor_type).astype(np.float32, copy=False)
            for tensor in reader.tensors
        }


class Llama:
    """The model's forward pass, in 64 bits; in 32, and half the time, where a thousandth does not matter."""

    def __init__(self, weights: Weights, kind: type[np.floating[Any]] = np.float64) -> None:
        self._fields = weights.fields
        self._tensors: dict[str, Floats] = {
            name: values.astype(kind, copy=False) for name, values in weights.tensors.items()
        }
        self.blocks = int(self._field("block_count"))
        self.heads = int(self._field("attention.head_count"))
        self.key_value_heads = int(self._field("attention.head_count_kv"))
        self.epsilon = float(self._field("attention.layer_norm_rms_epsilon"))
        self.base = float(self._field("rope.freq_base"))

    def logits(self, tokens: Sequence[int], start: int = 0) -> Floats:
        """Row i: the logit of every token to come after tokens[: start + i + 1]."""
        states = self._tensors["token_embd.weight"][list(tokens)]
        for block in range(self.blocks):
            states = states + self._attention(block, self._normed(states, f"blk.{block}.attn_norm.weight"))
            states = states + self._feed_forward(block, self._normed(states, f"blk.{block}.ffn_norm.weight"))
        states = self._normed(states[start:], "output_norm.weight")
        output = self._tensors.get("output.weight", self._tensors["token_embd.weight"])
        result: Floats = states @ output.T
        return result

    def loglikelihood(
        self, context: Sequence[int], continuation: Sequence[int], *, sum_in_32_bits: bool = False
    ) -> float:
        """The log-probability of `continuation` after `context`.

        With `sum_in_32_bits` the softmax's denominator is a running sum in 32 bits in the order of the vocabulary,
        which loses what is too small beside it.
        """
        rows = self.logits([*context, *continuation[:-1]], start=len(context) - 1)
        rows -= rows.max(axis=1, keepdims=True)
        if sum_in_32_bits:
            sums = np.add.accumulate(np.exp(rows.astype(np.float32)), axis=1, dtype=np.float32)[:, -1]
        else:
            sums = np.exp(rows).sum(axis=1)
        return float((rows[np.arange(len(continuation)), list(continuation)] - np.log(sums)).sum())

    def _field(self, name: str) -> Any:
        return self._fields[f"llama.{name}"].contents()

    def _normed(self, states: Floats, weight: str) -> Floats:
        scale = np.sqrt((states**2).mean(axis=-1, keepdims=True) + self.epsilon)
        result: Floats = states / scale * self._tensors[weight]
        return result

    def _project(self, states: Floats, block: int, name: str) -> Floats:
        result: Floats = states @ self._tensors[f"blk.{block}.{name}.weight"].T
        return result

    def _attention(self, block: int, states: Floats) -> Floats:
        length, width = states.shape
        size = width // self.heads
        query = self._rotated(self._project(states, block, "attn_q").reshape(length, self.heads, size))
        key = self._rotated(self._project(states, block, "attn_k").reshape(length, self.key_value_heads, size))
        value = self._project(states, block, "attn_v").reshape(length, self.key_value_heads, size)
        group = self.heads // self.key_value_heads
        key, value = key.repeat(group, axis=1), value.repeat(group, axis=1)
        scores = np.einsum("qhd,khd->hqk", query, key) / size**0.5
        scores = np.where(np.tril(np.ones((length, length), bool)), scores, -np.inf)
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", scores, value).reshape(length, width)
        return self._project(mixed, block, "attn_output")

    def _rotated(self, states: Floats) -> Floats:
        length, _, size = states.shape
        frequencies = self.base ** (-np.arange(0, size, 2) / size)
        angles = np.arange(length)[:, None, None] * frequencies
        even, odd = states[..., 0::2], states[..., 1::2]
        turned = np.empty_like(states)
        turned[..., 0::2] = even * np.cos(angles) - odd * np.sin(angles)
        turned[..., 1::2] = even * np.sin(angles) + odd * np.cos(angles)
        return turned

    def _feed_forward(self, block: int, states: Floats) -> Floats:
        gate = self._project(states, block, "ffn_gate")
        up = self._project(states, block, "ffn_up")
        return self._project(gate / (1 + np.exp(-gate)) * up, block, "ffn_down")
