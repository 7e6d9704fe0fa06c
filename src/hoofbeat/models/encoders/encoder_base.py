"""What every sentence encoder is, and how instructions are put in front of what it reads."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.engine import current_engine
from hoofbeat.errors import ClusterError, ModelError, UsageError
from hoofbeat.progress import SILENT, Progress

DEFAULT_ENCODER = "minilm"
"""The encoder where none is named."""

Vectors = NDArray[np.float32]


class Instructions(Struct, frozen=True):
    """What is put in front of queries and of documents before they are encoded, its own space or line end included."""

    query: str = ""
    document: str = ""


NO_INSTRUCTIONS = Instructions()

SPEC_OPTIONS = {"pooling": ("mean", "cls", "max", "lasttoken"), "similarity": ("cosine", "dot")}
"""How token states become one vector, and whether vectors are compared by their angle alone or with their lengths."""

PRODUCTS = ("int8", "float32")
"""How numbers are multiplied inside the embedded encoder."""

_SPEC_OPTION = re.compile(r";(pooling|similarity|products|window)=([^;]*)")


class EncoderSpec(NamedTuple):
    """An encoder's name, and what the line says of its vectors where the encoder's own files don't.

    Written `NAME;pooling=cls;similarity=dot`. MedCPT's folders, for example, don't say that the state of the first
    token is the vector and that vectors are compared with their lengths (inner product).

    The embedded `minilm` takes two others: `minilm;products=float32` for products of 32-bit numbers, as earlier
    versions had them, and `minilm;window=512` to read more tokens of each text.
    """

    name: str
    pooling: str = ""
    similarity: str = ""
    products: str = ""
    window: str = ""

    @classmethod
    def parse(cls, text: str) -> EncoderSpec:
        """Read a name with its options."""
        options = dict(_SPEC_OPTION.findall(text))
        choices = {**SPEC_OPTIONS, "products": PRODUCTS}
        for option, value in options.items():
            if option == "window" and not (value.isascii() and value.isdigit()):
                raise UsageError(f"an encoder's window can't be {value!r}", fix="give a number of tokens")
            if option in choices and value not in choices[option]:
                raise UsageError(
                    f"an encoder's {option} can't be {value!r}", fix=f"use one of: {', '.join(choices[option])}"
                )
        return cls(_SPEC_OPTION.sub("", text), **options)

    def __str__(self) -> str:
        said = self._asdict()
        del said["name"]
        return self.name + "".join(f";{option}={value}" for option, value in said.items() if value)


class TokenStates(NamedTuple):
    """The tokens of a text, the state of each (one row per token), and which are the model's own marks ([CLS], …)."""

    tokens: tuple[str, ...]
    states: Vectors
    marks: tuple[bool, ...]


class Encoder(Protocol):
    """Turns texts into vectors whose dot product is their similarity.

    Vectors have unit length unless the encoder compares them with their lengths (`similarity=dot`).
    """

    @property
    def name(self) -> str:
        """The name it is asked for by."""
        ...

    @property
    def identity(self) -> str:
        """Everything that can change its vectors, and nothing else."""
        ...

    @property
    def dimension(self) -> int:
        """The length of a vector."""
        ...

    @property
    def prompts(self) -> Instructions:
        """The prompts it was trained with, if any."""
        ...

    @property
    def window(self) -> int:
        """How many tokens of a text are read, the model's own marks not counted; 0 where that is not known."""
        ...

    @property
    def assumption(self) -> str:
        """What was assumed of it because its files don't say; empty where nothing was."""
        ...

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length.

        A text in which the encoder finds nothing at all is the zero vector: similar to nothing.
        """
        ...

    def encode_queries(
        self, texts: Sequence[str], instructions: Instructions = NO_INSTRUCTIONS, progress: Progress = SILENT
    ) -> Vectors:
        """The vectors of queries; an instruction takes the place of the encoder's own query prompt."""
        ...

    def encode_documents(
        self, texts: Sequence[str], instructions: Instructions = NO_INSTRUCTIONS, progress: Progress = SILENT
    ) -> Vectors:
        """The vectors of documents; an instruction takes the place of the encoder's own document prompt."""
        ...

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text starts and ends, in characters, the model's own marks left out; nothing is cut."""
        ...


class EncoderBase(ABC):
    """What encoders share. One that shows its tokens has its own `window` and `token_spans`."""

    name: str
    prompts: Instructions = NO_INSTRUCTIONS
    assumption: str = ""
    device: str = "cpu"
    """What computes its vectors, `cpu` or `cuda`."""
    portable: bool = False
    """Whether another machine can load the same encoder: it is pickled as what loads it, without its weights."""

    @property
    def window(self) -> int:
        """How many tokens of a text are read; 0 where that is not known."""
        return 0

    @abstractmethod
    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length."""

    def encode_queries(
        self, texts: Sequence[str], instructions: Instructions = NO_INSTRUCTIONS, progress: Progress = SILENT
    ) -> Vectors:
        """The vectors of queries; an instruction takes the place of the encoder's own query prompt."""
        return self._after(instructions.query or self.prompts.query, texts, progress)

    def encode_documents(
        self, texts: Sequence[str], instructions: Instructions = NO_INSTRUCTIONS, progress: Progress = SILENT
    ) -> Vectors:
        """The vectors of documents; an instruction takes the place of the encoder's own document prompt."""
        return self._after(instructions.document or self.prompts.document, texts, progress)

    def token_spans(self, text: str) -> list[tuple[int, int]]:  # noqa: ARG002 - an encoder that can't has no use for it
        """Where each token of a text starts and ends, in characters; an encoder that can't say it raises."""
        raise UsageError(
            f"the encoder {self.name} does not report tokens, so texts can't be cut by tokens",
            fix="cut by words instead, for example chunk=words:160/32",
        )

    def _after(self, prefix: str, texts: Sequence[str], progress: Progress) -> Vectors:
        return self.encode([prefix + text for text in texts] if prefix else texts, progress)


class EncodeTexts:
    """The work of a worker that encodes: it loads the encoder, which must be the one that the command has."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._identity = encoder.identity

    def __call__(self, texts: Sequence[str]) -> Vectors:
        """The vectors of some texts."""
        if self._encoder.identity != self._identity:
            raise ClusterError(
                f"a worker has a different encoder: {self._encoder.identity} instead of {self._identity}",
                fix="install the same versions of hoofbeat and onnxruntime, and the same weights, on all machines",
            )
        return self._encoder.encode(texts)


def encoded_blocks(encoder: Encoder, blocks: Iterable[Sequence[str]]) -> Iterator[Vectors]:
    """The vectors of blocks of texts, in order: by this encoder here, or by the same one on the machines of a cluster.

    Here the encoder has the cores to itself. An endpoint is called from here in any case: the machine behind it does
    the work, and the ledger stays in one place.
    """
    if isinstance(encoder, EncoderBase) and encoder.portable:
        on_gpu = encoder.device == "cuda"
        return current_engine().map(EncodeTexts(encoder), blocks, threads=True, workers=1, gpu=on_gpu)
    return map(encoder.encode, blocks)


def unit_vector(vector: NDArray[np.float64], name: str) -> Vectors:
    """A vector of length one in its direction; zero stays zero. Values that are not numbers are an error."""
    length = _length(vector, name)
    return (vector / (length or 1.0)).astype(np.float32)


def compared_vector(vector: NDArray[np.float64], name: str, similarity: str) -> Vectors:
    """A vector as it is compared: of unit length for `cosine`, as it is for `dot`."""
    if similarity != "dot":
        return unit_vector(vector, name)
    _length(vector, name)
    return vector.astype(np.float32)


def _length(vector: NDArray[np.float64], name: str) -> float:
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length):
        raise ModelError(f"the encoder {name} gave a vector that is not finite", fix="use other weights")
    return length
