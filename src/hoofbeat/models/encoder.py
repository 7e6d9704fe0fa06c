"""Texts to vectors: the one seam to sentence encoders, each named by one string.

minilm                      all-MiniLM-L6-v2, embedded
potion                      potion-base-8M, embedded: static vectors, very fast and weaker
FOLDER                      a folder in the sentence-transformers layout with an ONNX model
http://host:port/v1#NAME    an embeddings endpoint; openai:NAME; model:ALIAS for one named in hoofbeat.toml

`;pooling=cls` and `;similarity=dot` after a name say what a folder's own files don't, `;products=float32` and
`;window=512` belong to minilm (`EncoderSpec`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hoofbeat.errors import ModelError, UsageError
from hoofbeat.models.encoders.encoder_base import (
    DEFAULT_ENCODER,
    NO_INSTRUCTIONS,
    Encoder,
    EncoderBase,
    EncoderSpec,
    Instructions,
    TokenStates,
    Vectors,
    compared_vector,
)
from hoofbeat.models.encoders.folder_encoder import folder_encoder
from hoofbeat.models.encoders.onnx_encoder import MiniLM
from hoofbeat.models.encoders.static_encoder import Potion
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Failure
from hoofbeat.text import encodable

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

_BATCH = 32
_BLOCK = 64 * _BATCH


class EndpointEncoder(EncoderBase):
    """Vectors from a model's `/embeddings`, brought to unit length unless their lengths count (`similarity="dot"`)."""

    def __init__(self, model: Model, similarity: str = "cosine") -> None:
        self._model = model
        self._similarity = similarity
        self.name = model.spec
        self.identity = f"{model.identity};embeddings" + (";similarity=dot" if similarity == "dot" else "")

    @cached_property
    def dimension(self) -> int:
        """The length of a vector; the endpoint is asked for one, which the ledger keeps."""
        return int(self._embed(["dimension"], SILENT).shape[1])

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order; a text that could not be embedded is a `ModelError`, never a wrong row."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        with progress.task("encoding texts", len(texts)) as task:
            for start in range(0, len(texts), _BLOCK):
                block = texts[start : start + _BLOCK]
                found = self._embed(block, SILENT)
                if found.shape[1] != self.dimension:
                    raise ModelError(
                        f"{self.name} gave vectors of {found.shape[1]} numbers after vectors of {self.dimension}",
                        fix="the endpoint's model changed; start again with another ledger",
                    )
                vectors[start : start + len(block)] = found
                task.advance(len(block))
        return vectors

    def _embed(self, texts: Sequence[str], progress: Progress) -> Vectors:
        sent = [encodable(text) if text.strip() else " " for text in texts]  # endpoints refuse an empty text
        batches = [sent[start : start + _BATCH] for start in range(0, len(sent), _BATCH)]
        rows: list[Vectors] = []
        for batch, result in zip(
            batches, self._model.run(batches, self._model.embed, title="encoding", progress=progress), strict=True
        ):
            if isinstance(result, Failure):
                raise ModelError(
                    f"{self.name} could not embed {len(batch)} texts ({result.kind}: {result.message})",
                    fix="check that it is an embeddings model and that texts fit its window (use smaller chunks); "
                    "finished vectors are kept",
                )
            if result.ndim != 2 or not result.shape[1]:
                raise ModelError(f"{self.name} gave empty vectors", fix="check that it is an embeddings model")
            rows += [compared_vector(row.astype(np.float64), self.name, self._similarity) for row in result]
        if len({len(row) for row in rows}) > 1:
            raise ModelError(f"{self.name} gave vectors of different lengths", fix="check the endpoint")
        return np.array(rows, np.float32)


_EMBEDDED = ("minilm", "potion")
_ENDPOINTS = ("http://", "https://", "openai:")
_ALIAS = "model:"


def load_encoder(spec: str = DEFAULT_ENCODER, *, model: Callable[[str], Model] | None = None) -> Encoder:
    """The encoder of that name; `model` gives the model behind an endpoint."""
    said = EncoderSpec.parse(spec)
    name = said.name
    endpoint = name.startswith((*_ENDPOINTS, _ALIAS))
    if (name in _EMBEDDED and (said.pooling or said.similarity)) or (endpoint and said.pooling):
        raise UsageError(f"the encoder {name} pools by itself", fix="leave out its pooling and similarity")
    if name != MiniLM.name and (said.products or said.window):
        raise UsageError("only the encoder minilm has products and window", fix="leave them out, or use minilm")
    if name == MiniLM.name:
        return MiniLM(products=said.products, **({"window": int(said.window)} if said.window else {}))
    if name in _EMBEDDED:
        return Potion()
    if endpoint:
        if model is None:
            raise UsageError(
                f"the encoder {name} is an endpoint, which can't be used here",
                fix=f"choose one of: {', '.join(_EMBEDDED)}, or a folder",
            )
        return EndpointEncoder(model(name.removeprefix(_ALIAS)), said.similarity)
    folder = Path(name).expanduser()
    if name and folder.is_dir():
        return folder_encoder(folder.resolve(), said)
    raise UsageError(
        f"there is no encoder '{name}'",
        fix=f"choose one of: {', '.join(_EMBEDDED)}, a folder with an ONNX model and its tokenizer.json, "
        "an embeddings endpoint (http://host:port/v1#NAME, openai:NAME), or model:ALIAS",
    )
