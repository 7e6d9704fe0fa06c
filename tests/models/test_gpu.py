"""Encoding on GPUs, as far as it can be tried without one: the choice, what is told, and batches."""

from __future__ import annotations

import random

import numpy as np
import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders import gpu, onnx_encoder
from hoofbeat.models.encoders.onnx_encoder import MiniLM, Pooling
from tests.helpers import needs_weights

TEXTS = ["rash", "", "a stone in the left kidney", "fever and cough " * 200, "pain in the back after a fall"]


def test_batches_have_every_text_once_and_keep_within_their_tokens() -> None:
    draw = random.Random(18)
    for _ in range(200):
        lengths = [draw.randint(1, 60) for _ in range(draw.randint(0, 40))]
        found = list(gpu.batches(lengths, 100))
        assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
        for batch in found:
            assert len(batch) == 1 or max(lengths[number] for number in batch) * len(batch) <= 100


def test_a_batch_that_does_not_fit_the_card_is_halved() -> None:
    tried = []

    def run(batch: list[int]) -> list[int]:
        tried.append(len(batch))
        if len(batch) > 3 or batch == [99]:
            raise RuntimeError("no memory left")
        return [number * number for number in batch]

    assert gpu.halved(run, list(range(10))) == [number * number for number in range(10)]
    assert tried[:2] == [10, 5]
    with pytest.raises(RuntimeError):
        gpu.halved(run, [99])


def test_more_memory_takes_more_tokens_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for size in (0, 8 << 30, 80 << 30, 1 << 50):
        monkeypatch.setattr(gpu, "_free_bytes", lambda size=size: size)
        found.append(gpu.card_tokens(1024, 512))
    assert found == sorted(found)
    assert len(set(found)) == 4
    assert (found[0], found[-1]) == (1 << 11, 1 << 18)


def test_without_a_gpu_processors_encode_and_the_encoder_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    needs_weights("minilm")
    plain = MiniLM(1)
    monkeypatch.setenv("HOOFBEAT_DEVICE", "cuda")
    fallen = MiniLM(1)
    assert fallen.assumption == (
        "encoded on processors, although HOOFBEAT_DEVICE=cuda: onnxruntime here has no CUDA provider"
    )
    assert fallen.identity == plain.identity
    monkeypatch.setattr(gpu, "has_cuda", lambda _: True)
    monkeypatch.setattr(onnx_encoder, "has_cuda", lambda _: True)
    with pytest.warns(UserWarning, match="CUDAExecutionProvider"):
        silent = MiniLM(1)
    assert (silent.device, silent.identity) == ("cpu", plain.identity)
    assert "the GPU does not answer" in silent.assumption
    monkeypatch.setenv("HOOFBEAT_DEVICE", "gpu")
    with pytest.raises(UsageError, match="HOOFBEAT_DEVICE can't be 'gpu'"):
        MiniLM(1)


@pytest.mark.parametrize("pooling", ["mean", "cls", "lasttoken", "max"])
def test_vectors_of_batches_are_those_of_single_texts_but_for_last_bits(
    pooling: Pooling, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_weights("minilm")
    encoder = MiniLM(1, products="float32")  # a GPU has no other kind
    encoder._pooling = pooling
    one_by_one = encoder.encode(TEXTS)
    encoder._on_card = True
    assert (encoder._pooled is None) == (pooling == "max")
    for tokens, block in ((1, 2), (300, 1 << 14), (1 << 18, 3)):
        monkeypatch.setattr(onnx_encoder, "card_tokens", lambda *_, tokens=tokens: tokens)
        monkeypatch.setattr(onnx_encoder, "_CARD_BLOCK", block)
        assert np.allclose(encoder.encode(TEXTS), one_by_one, atol=2e-6)
