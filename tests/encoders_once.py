"""A process of the tests loads each encoder file once: loading took more time than most of what was encoded.

What is kept does not change by use: the graph with 8-bit products, the session that runs it on one thread, and the
tokenizer. A file that was written anew is read anew. Forks of commands find what their parent has loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pytest

from hoofbeat.errors import HoofbeatError
from hoofbeat.models.encoders import integer_products, onnx_encoder
from hoofbeat.models.encoders.onnx_encoder import MiniLM

_Result = TypeVar("_Result")


def load_once(patch: pytest.MonkeyPatch) -> None:
    """From now on every encoder of this process shares what was loaded from the same file."""
    read, start, tokens = integer_products.integer_graph, onnx_encoder._load_session, onnx_encoder.TokenizerFile

    def graph(path: Path) -> bytes:
        return _once(graphs, _state(path), lambda: read(path))

    def session(model: str | bytes, path: Path, *, integers: bool) -> Any:
        if not (integers and isinstance(model, bytes)):
            return start(model, path, integers=integers)
        return _once(sessions, (model, _state(path)), lambda: start(model, path, integers=integers))

    def tokenizer(path: Path, max_tokens: int, *, marks: bool = True) -> onnx_encoder.TokenizerFile:
        key = (_state(path), max_tokens, marks)
        return _once(tokenizers, key, lambda: tokens(path, max_tokens, marks=marks))

    graphs: dict[object, bytes] = {}
    sessions: dict[object, Any] = {}
    tokenizers: dict[object, onnx_encoder.TokenizerFile] = {}
    patch.setattr(onnx_encoder, "integer_graph", graph)
    patch.setattr(onnx_encoder, "_load_session", session)
    patch.setattr(onnx_encoder, "TokenizerFile", tokenizer)


def load_now(patch: pytest.MonkeyPatch) -> None:
    """Load the default encoder, where its weights are, so that forks have it."""
    load_once(patch)
    with suppress(HoofbeatError):
        MiniLM()


def _state(path: Path) -> object:
    """What tells this file from any other, and from itself once it is written again."""
    try:
        found = path.stat()
    except OSError:
        return path, object()
    return path, found.st_ino, found.st_size, found.st_mtime_ns


def _once(kept: dict[object, _Result], key: object, make: Callable[[], _Result]) -> _Result:
    if key not in kept:
        kept[key] = make()
    return kept[key]
