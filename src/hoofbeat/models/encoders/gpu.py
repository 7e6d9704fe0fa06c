"""Encoders on GPUs, where `HOOFBEAT_DEVICE=cuda` asks for them: whether there is one, and batches that fit it.

Only where it is asked for, because vectors of a GPU differ in their last bits from those of a processor. Such vectors
have an identity of their own, so they are never mixed with others. Where no GPU can be used, processors encode, and
the encoder says so.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

from hoofbeat.engine import current_engine
from hoofbeat.errors import UsageError

DEVICE = "HOOFBEAT_DEVICE"
CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"

_USUAL_CARD = 4 << 30
_FEWEST_TOKENS, _MOST_TOKENS = 1 << 11, 1 << 18
_WIDTHS = 40  # numbers per token and unit of the vector's width that a transformer holds at once: four layers' worth
_HEADS = 16

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


class EncodingDevice(NamedTuple):
    """What computes vectors, `cpu` or `cuda`, and what is told where that is not what was asked for."""

    name: str = "cpu"
    note: str = ""


def encoding_device() -> EncodingDevice:
    """What `HOOFBEAT_DEVICE` asks for, as far as this machine or the cluster of this command has it."""
    wanted = os.environ.get(DEVICE) or "cpu"
    if wanted not in {"cpu", "cuda"}:
        raise UsageError(f"{DEVICE} can't be {wanted!r}", fix="set it to cpu or cuda, or unset it")
    if wanted == "cpu":
        return EncodingDevice()
    engine = current_engine()
    if engine.name == "local":
        return EncodingDevice("cuda") if has_cuda(0) else on_processors("onnxruntime here has no CUDA provider")
    if not engine.gpus():
        return on_processors("the cluster has no GPU")
    if not all(engine.map(has_cuda, [0], gpu=True)):
        return on_processors("onnxruntime on the cluster's GPU machine has no CUDA provider")
    return EncodingDevice("cuda")


def on_processors(reason: str) -> EncodingDevice:
    """Processors in place of a GPU, and why."""
    return EncodingDevice(note=f"encoded on processors, although {DEVICE}=cuda: {reason}")


def has_cuda(_: object) -> bool:
    """Whether onnxruntime on this machine was built for GPUs of NVIDIA; work of a part, so it takes one."""
    if importlib.util.find_spec("onnxruntime") is None:
        return False
    import onnxruntime  # noqa: PLC0415 (takes a second to import)

    return CUDA in onnxruntime.get_available_providers()


def card_tokens(dimension: int, window: int) -> int:
    """How many tokens go through a model of this width at once: half of what the card has free."""
    per_token = 4 * (dimension * _WIDTHS + 2 * _HEADS * window)
    return min(max(_free_bytes() // 2 // per_token, _FEWEST_TOKENS), _MOST_TOKENS)


def _free_bytes() -> int:
    """Free memory of this process's card, by nvidia-smi; a small card where that is not there."""
    tool = shutil.which("nvidia-smi")
    with suppress(OSError, ValueError, subprocess.SubprocessError):
        if tool:
            card = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
            command = [tool, "-i", card, "--query-gpu=memory.free", "--format=csv,noheader,nounits"]
            found = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)  # noqa: S603
            return int(found.stdout.split()[0]) << 20
    return _USUAL_CARD


def batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """The numbers of texts, similar lengths together: at most this number of tokens, filled up to the longest.

    The longest come first, so a card that is too small fails at once.
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda each: -lengths[each]):
        if batch and lengths[batch[0]] * (len(batch) + 1) > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch


def halved(run: Callable[[list[_Item]], list[_Result]], batch: list[_Item]) -> list[_Result]:
    """The results of a batch, in halves where the card has no room for all of it."""
    try:
        return run(batch)
    except Exception:  # the runtime's own exceptions share no base
        if len(batch) == 1:
            raise
    middle = len(batch) // 2
    return halved(run, batch[:middle]) + halved(run, batch[middle:])
