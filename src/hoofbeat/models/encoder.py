"""Texts to vectors: the one seam to sentence encoders.

The embedded encoder is all-MiniLM-L6-v2 as an ONNX file with 8-bit weights, run without torch. One text goes through
the model at a time, several texts side by side on one thread each: nothing is padded, so a text's vector can't depend
on its neighbours or on the number of threads, and for passages this is also the fastest way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.models import weights
from hoofbeat.models.embedded import default_threads
from hoofbeat.progress import SILENT, Progress

__all__ = ["Encoder", "MiniLM", "TokenStates", "Vectors", "load_encoder"]

Vectors = NDArray[np.float32]
_Result = TypeVar("_Result")

_LONGEST = 256
_BLOCK = 1024


class Encoder(Protocol):
    """Turns texts into vectors of unit length whose dot product is their similarity."""

    @property
    def name(self) -> str:
        """The name it is asked for by."""
        ...

    @property
    def identity(self) -> str:
        """Everything that can change its vectors."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length."""
        ...


class TokenStates(NamedTuple):
    """The tokens of a text, without the model's own marks, and the state of each (one row per token)."""

    tokens: tuple[str, ...]
    states: Vectors


class MiniLM:
    """all-MiniLM-L6-v2: the mean of the last token states; a text is read up to 256 tokens."""

    name = "minilm"
    dimension = 384

    def __init__(self, threads: int | None = None) -> None:
        import onnxruntime  # noqa: PLC0415 (takes a second to import)
        from tokenizers import Tokenizer  # noqa: PLC0415

        files = weights.find(self.name)
        self.threads = threads or default_threads()
        self._tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(_LONGEST)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session: Any = onnxruntime.InferenceSession(
            str(files["model.onnx"]), options, providers=["CPUExecutionProvider"]
        )
        digest = next(file.sha256 for file in weights.table().weights[self.name].files if file.name == "model.onnx")
        runtime = f"onnxruntime={onnxruntime.__version__}"
        self.identity = f"{self.name}@{digest[:12]};max={_LONGEST};threads={self.threads};{runtime}"

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        for row, vector in enumerate(self._map(self._vector, texts, progress)):
            vectors[row] = vector
        return vectors

    def token_states(self, texts: Sequence[str], progress: Progress = SILENT) -> list[TokenStates]:
        """The last state of every token of each text, for measures that compare token by token."""
        return self._map(self._tokens, texts, progress)

    def _map(self, work: Callable[[str], _Result], texts: Sequence[str], progress: Progress) -> list[_Result]:
        done: list[_Result] = []
        with progress.task("encoding", len(texts)) as task, ThreadPoolExecutor(self.threads) as pool:
            for start in range(0, len(texts), _BLOCK):
                for result in pool.map(work, texts[start : start + _BLOCK]):
                    done.append(result)
                    task.advance()
        return done

    def _states(self, text: str) -> tuple[list[str], Vectors]:
        encoding = self._tokenizer.encode(text)
        ids = np.asarray([encoding.ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return encoding.tokens, self._session.run(None, feed)[0][0]

    def _vector(self, text: str) -> Vectors:
        _, states = self._states(text)
        mean = states.mean(axis=0, dtype=np.float64)
        vector: Vectors = (mean / np.linalg.norm(mean)).astype(np.float32)
        return vector

    def _tokens(self, text: str) -> TokenStates:
        tokens, states = self._states(text)
        return TokenStates(tuple(tokens[1:-1]), states[1:-1])


def load_encoder(spec: str = "minilm") -> Encoder:
    """The encoder of that name."""
    if spec != MiniLM.name:
        raise UsageError(f"there is no encoder '{spec}'", fix=f"choose one of: {MiniLM.name}")
    return MiniLM()
