"""Texts to vectors: the one seam to sentence encoders, each named by one string.

minilm                      all-MiniLM-L6-v2, embedded
potion                      potion-base-8M, embedded: static vectors, very fast and weaker
FOLDER                      a folder in the sentence-transformers layout with an ONNX model
http://host:port/v1#NAME    an embeddings endpoint; openai:NAME; model:ALIAS for one named in hoofbeat.toml
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from hoofbeat.errors import UsageError
from hoofbeat.models.encoders.encoder_base import (
    DEFAULT_ENCODER,
    NO_INSTRUCTIONS,
    Encoder,
    EncoderBase,
    Instructions,
    TokenStates,
    Vectors,
)
from hoofbeat.models.encoders.endpoint_encoder import EndpointEncoder
from hoofbeat.models.encoders.folder_encoder import folder_encoder
from hoofbeat.models.encoders.onnx_encoder import MiniLM
from hoofbeat.models.encoders.static_encoder import Potion

if TYPE_CHECKING:
    from hoofbeat.models.model import Model

__all__ = [
    "DEFAULT_ENCODER",
    "NO_INSTRUCTIONS",
    "Encoder",
    "EncoderBase",
    "Instructions",
    "MiniLM",
    "Potion",
    "TokenStates",
    "Vectors",
    "load_encoder",
]

_EMBEDDED: dict[str, Callable[[], Encoder]] = {"minilm": MiniLM, "potion": Potion}
_ENDPOINTS = ("http://", "https://", "openai:")
_ALIAS = "model:"


def load_encoder(spec: str = DEFAULT_ENCODER, *, model: Callable[[str], Model] | None = None) -> Encoder:
    """The encoder of that name; `model` gives the model behind an endpoint."""
    if spec in _EMBEDDED:
        return _EMBEDDED[spec]()
    if spec.startswith((*_ENDPOINTS, _ALIAS)):
        if model is None:
            raise UsageError(
                f"the encoder {spec} is an endpoint, and endpoints can't be used here",
                fix=f"choose one of: {', '.join(_EMBEDDED)}, or a folder",
            )
        return EndpointEncoder(model(spec.removeprefix(_ALIAS)))
    folder = Path(spec).expanduser()
    if spec and folder.is_dir():
        return folder_encoder(folder.resolve())
    raise UsageError(
        f"there is no encoder '{spec}'",
        fix=f"choose one of: {', '.join(_EMBEDDED)}, a folder with an ONNX model and its tokenizer.json, "
        "an embeddings endpoint (http://host:port/v1#NAME, openai:NAME), or model:ALIAS",
    )
