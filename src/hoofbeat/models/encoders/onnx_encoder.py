"""Transformer encoders as ONNX files, run without torch; the embedded one is all-MiniLM-L6-v2.

One text goes through the model at a time, several texts side by side on one thread each, which also split it into
tokens: nothing is padded, so a text's vector can't depend on its neighbours or on the number of threads. Other ways
were measured on two cores (abstracts of 240 tokens, MiniLM): batches of equal length took 0.93 to 1.04 of the CPU time,
two threads inside one text 1.2 to 1.4.

MiniLM has two kinds of products. `int8` multiplies the file's 8-bit weights as they are (`integer_products`), `float32`
unpacks them first, as the packaged file itself does. Their vectors differ, and so do the identities.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from hoofbeat.engine import current_engine
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import weight_files
from hoofbeat.models.embedded import default_threads
from hoofbeat.models.encoders.encoder_base import EncoderBase, TokenStates, Vectors, compared_vector
from hoofbeat.models.encoders.gpu import (
    CPU,
    CUDA,
    DEVICE,
    batches,
    card_tokens,
    encoding_device,
    halved,
    has_cuda,
    on_processors,
)
from hoofbeat.models.encoders.integer_products import exact_products, integer_graph
from hoofbeat.models.encoders.onnx_file import with_product
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.files import read_bytes
from hoofbeat.text import encodable

Pooling = Literal["mean", "cls", "max", "lasttoken"]

_Result = TypeVar("_Result")
_BLOCK = 1024
_CARD_BLOCK = 1 << 14
_SHARES, _VECTOR = "hoofbeat_shares", "hoofbeat_vector"
_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


class TokenizerFile:
    """A tokenizer file: token ids cut at the model's window, and where the tokens of a whole text are."""

    def __init__(self, path: Path, max_tokens: int, *, marks: bool = True) -> None:
        from tokenizers import Tokenizer  # noqa: PLC0415 (a quarter of a second)

        try:
            self.cut, self._whole = (Tokenizer.from_file(str(path)) for _ in range(2))
        except Exception as err:  # the binding raises plain Exception
            raise InputError(f"the tokenizer can't be read: {err}", where=str(path), fix="check the file") from err
        self.cut.no_padding()
        self.cut.enable_truncation(max_tokens)
        self._whole.no_padding()
        self._whole.no_truncation()
        self.window = max_tokens - (self.cut.num_special_tokens_to_add(False) if marks else 0)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text starts and ends, in characters; nothing is cut off."""
        offsets: list[tuple[int, int]] = self._whole.encode(encodable(text), add_special_tokens=False).offsets
        return offsets


class TokenisedEncoder(EncoderBase):
    """What encoders with their own tokenizer share."""

    portable = True
    _tokens: TokenizerFile
    _load: Callable[[], Any]

    def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
        """Pickled as what loads it: weights are found anew on each machine."""
        return self._load, ()

    @property
    def window(self) -> int:
        """How many tokens of a text are read, the model's own marks not counted."""
        return self._tokens.window

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text starts and ends, in characters; nothing is cut off."""
        return self._tokens.spans(text)


class OnnxEncoder(TokenisedEncoder):
    """A transformer encoder: the states of a text's tokens, pooled to one vector.

    With `similarity="dot"` a vector keeps its length. `pools` says whether the model itself gives one vector. `spaced`
    puts a space before texts whose token states are asked for, as the reference implementation of BERTScore does for
    RoBERTa: its first word is then the token it would be inside a text. `integers` is a graph with 8-bit products that
    is run in place of the file's own; processors run it, never a GPU.
    """

    def __init__(
        self,
        *,
        name: str,
        model: Path,
        tokenizer: Path,
        digest: str,
        max_tokens: int,
        pooling: Pooling = "mean",
        similarity: str = "cosine",
        lower: bool = False,
        spaced: bool = False,
        threads: int | None = None,
        integers: bytes | None = None,
    ) -> None:
        from onnxruntime import __version__ as version  # noqa: PLC0415 (takes a second to import)

        self.name = name
        self.threads = threads or default_threads()
        self._load = partial(
            OnnxEncoder,
            name=name,
            model=model,
            tokenizer=tokenizer,
            digest=digest,
            max_tokens=max_tokens,
            pooling=pooling,
            similarity=similarity,
            lower=lower,
            spaced=spaced,
        )
        self._tokens = TokenizerFile(tokenizer, max_tokens)
        self._pooling = pooling
        self._similarity = similarity
        self._lower = lower
        self._spaced = spaced
        self._model = model
        self._integers = integers
        device = encoding_device()
        if integers is not None and device.name == "cuda":
            device = on_processors("GPUs have no 8-bit products here; leave out products=int8")
        self._session: Any = self._load_graph(integers or str(model))
        self._on_card = CUDA in self._session.get_providers()
        if device.name == "cuda" and current_engine().name == "local" and not self._on_card:
            device = on_processors("the GPU does not answer")
        self.device, self.assumption = device
        self._layers: tuple[Any, tuple[str, ...]] | None = None
        self._inputs = _known_inputs(self._session, model)
        self._output, self.pools = _output(self._session, model)
        self.dimension = len(self._vector("dimension"))
        lowered = (";lower" if lower else "") + (";similarity=dot" if similarity == "dot" else "")
        runtime = f"onnxruntime={version}"
        kind = ";products=int8" if integers is not None else ";cuda" if self.device == "cuda" else ""
        self.identity = f"{name}@{digest[:12]};max={max_tokens};pooling={pooling}{lowered};{runtime}{kind}"

    def _load_graph(self, model: str | bytes) -> Any:
        return _load_session(model, self._model, integers=self._integers is not None)

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        """One row per text, in their order: float32, of unit length unless lengths count."""
        vectors = np.zeros((len(texts), self.dimension), np.float32)
        if self._on_card:
            self._encode_batches(texts, vectors, progress)
            return vectors
        for row, vector in enumerate(self._map(self._vector, texts, progress)):
            vectors[row] = vector
        return vectors

    def _encode_batches(self, texts: Sequence[str], vectors: Vectors, progress: Progress) -> None:
        """Many texts at once, as a GPU wants it: filled up to the longest, which changes last bits only.

        While the GPU works on one block of texts, processors split the next into tokens.
        """

        def tokens(start: int) -> list[list[int]]:
            block = [encodable(text.lower() if self._lower else text) for text in texts[start : start + _CARD_BLOCK]]
            return [encoding.ids for encoding in self._tokens.cut.encode_batch(block)]

        starts = range(0, len(texts), _CARD_BLOCK)
        most = card_tokens(self.dimension, self.window)
        with progress.task("encoding", len(texts)) as task, ThreadPoolExecutor(1) as ahead:
            following = deque(ahead.submit(tokens, start) for start in starts[:1])
            for start in starts:
                ids = following.popleft().result()
                following.extend(ahead.submit(tokens, each) for each in starts if each == start + _CARD_BLOCK)
                full = [number for number, each in enumerate(ids) if each]
                for places in batches([len(ids[number]) for number in full], most):
                    batch = [full[place] for place in places]
                    found = halved(self._batch_vectors, [ids[number] for number in batch])
                    vectors[[start + number for number in batch]] = found
                    task.advance(len(batch))
                task.advance(len(ids) - len(full))

    def _batch_vectors(self, batch: list[list[int]]) -> list[Vectors]:
        """The vectors of several texts that were split into tokens."""
        lengths = list(map(len, batch))
        ids = np.zeros((len(batch), max(lengths)), np.int64)
        mask = np.zeros_like(ids)
        for row, (found, length) in enumerate(zip(batch, lengths, strict=True)):
            ids[row, :length] = found
            mask[row, :length] = 1
        if self._pooled is not None:
            rows: Iterable[Vectors] = self._states(self._pooled, _VECTOR, ids, mask, _shares(mask, self._pooling))[:, 0]
        else:
            states = self._states(self._session, self._output, ids, mask)
            rows = (state if self.pools else state[:length] for state, length in zip(states, lengths, strict=True))
        return [compared_vector(_pool(row, self._pooling), self.name, self._similarity) for row in rows]

    @cached_property
    def _pooled(self) -> Any:
        """The model that pools by itself, so that a GPU hands back one vector per text; None where it can't."""
        kind = next(each.type for each in self._session.get_outputs() if each.name == self._output)
        if self.pools or self._pooling == "max" or kind != "tensor(float)":
            return None
        return self._load_graph(with_product(read_bytes(self._model), _SHARES, self._output, _VECTOR))

    def layer_count(self) -> int:
        """How many layers the model has; an `InputError` where its graph does not show them."""
        return len(self._inner()[1])

    def token_states(
        self, texts: Sequence[str], progress: Progress = SILENT, *, layer: int | None = None
    ) -> list[TokenStates]:
        """The state of every token of each text after a layer (counted from 1), else after the last."""
        if layer is not None and not 1 <= layer <= self.layer_count():
            raise InputError(f"{self.name} has layers 1 to {self.layer_count()}, not {layer}")
        return self._map(lambda text: self._text_states(text, layer), texts, progress)

    def _map(self, work: Callable[[str], _Result], texts: Sequence[str], progress: Progress) -> list[_Result]:
        done: list[_Result] = []
        with progress.task("encoding texts", len(texts)) as task, ThreadPoolExecutor(self.threads) as pool:
            for start in range(0, len(texts), _BLOCK):
                for result in pool.map(work, texts[start : start + _BLOCK]):
                    done.append(result)
                    task.advance()
        return done

    def _inner(self) -> tuple[Any, tuple[str, ...]]:
        """The model with all its layers given out, and their names; checked against the model itself, once."""
        from hoofbeat.models.encoders.onnx_layers import with_layers  # noqa: PLC0415 (inner layers are rarely asked for)

        if self._layers is None:
            data = self._integers or read_bytes(self._model)
            graph = with_layers(data, self._model, [each.name for each in self._session.get_outputs()])
            self._layers = self._load_graph(graph.model), graph.tensors
            last, states = (self._run("dimension", layer)[1] for layer in (len(graph.tensors), None))
            if last.shape != states.shape or not np.allclose(last, states, atol=1e-4):
                self._layers = None
                raise InputError(
                    "the last layer found in the model's graph differs from the model's output",
                    where=str(self._model),
                    fix="export it with output_hidden_states, or use its last layer: --layer last",
                )
        return self._layers

    def _run(self, text: str, layer: int | None = None) -> tuple[Any, NDArray[np.float32]]:
        encoding = self._tokens.cut.encode(encodable(text.lower() if self._lower else text))
        ids = np.asarray([encoding.ids], np.int64)
        if not ids.size:
            return encoding, np.zeros((0, 0), np.float32)
        session, output = self._session, self._output
        if layer is not None:
            session, names = self._inner()
            output = names[layer - 1]
        return encoding, self._states(session, output, ids, np.ones_like(ids))[0]

    def _states(
        self,
        session: Any,
        output: str,
        ids: NDArray[np.int64],
        mask: NDArray[np.int64],
        shares: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]:
        filled = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
            "position_ids": np.tile(np.arange(ids.shape[1]), (len(ids), 1)),
        }
        asked: dict[str, Any] = {name: filled[name].astype(kind, copy=False) for name, kind in self._inputs.items()}
        if shares is not None:
            asked[_SHARES] = shares
        states: NDArray[np.float32] = session.run([output], asked)[0]
        return states

    def _vector(self, text: str) -> Vectors:
        _, states = self._run(text)
        if not states.size:
            return np.zeros(self.dimension, np.float32)
        return compared_vector(_pool(states, self._pooling), self.name, self._similarity)

    def _text_states(self, text: str, layer: int | None) -> TokenStates:
        encoding, states = self._run(f"{' ' if self._spaced else ''}{text.strip()}", layer)
        if states.ndim != 2:
            raise InputError(
                f"the model of {self.name} has no token states among its outputs", fix="use another ONNX export"
            )
        return TokenStates(tuple(encoding.tokens), states, tuple(map(bool, encoding.special_tokens_mask)))


class MiniLM(OnnxEncoder):
    """all-MiniLM-L6-v2: the mean of the last token states; a text is read up to 256 tokens with the two marks.

    `window` reads more, up to the model's 512 positions. Where `products` are not named they are `int8` if this
    processor computes them exactly, else `float32`; a GPU always computes `float32`.
    """

    name = "minilm"
    dimension = 384

    def __init__(self, threads: int | None = None, *, products: str = "", window: int = 256) -> None:
        if not 8 <= window <= 512:
            raise UsageError(f"minilm can't read {window} tokens", fix="give a window from 8 to 512")
        if products == "int8" and not exact_products():
            raise UsageError(
                "this processor can't compute exact 8-bit products", fix="leave out products=int8, or use float32"
            )
        wanted = products or ("int8" if exact_products() else "float32")
        self.products = "float32" if not products and encoding_device().name == "cuda" else wanted
        self._prepare(threads, window)
        if self.products != wanted and self.device == "cpu":  # the GPU does not answer
            reason, self.products = self.assumption, wanted
            self._prepare(threads, window)
            self.assumption = reason
        self._load = partial(MiniLM, products=self.products, window=window)

    def _prepare(self, threads: int | None, window: int) -> None:
        files = weight_files.find_weight(self.name)
        pinned = {file.name: file.sha256 for file in weight_files.load_weights_table().weights[self.name].files}
        super().__init__(
            name=self.name,
            model=files["model.onnx"],
            tokenizer=files["tokenizer.json"],
            digest=pinned["model.onnx"],
            max_tokens=window,
            threads=threads,
            integers=integer_graph(files["model.onnx"]) if self.products == "int8" else None,
        )


def _load_session(model: str | bytes, path: Path, *, integers: bool) -> Any:
    """A session on one thread; weights beside the model are found there also where the model comes as bytes.

    A graph of 8-bit products runs on processors as it is written, without fusions.
    """
    import onnxruntime  # noqa: PLC0415 (takes a second to import)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if integers:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    if isinstance(model, bytes):
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    try:
        on_card = not integers and os.environ.get(DEVICE) == "cuda" and has_cuda(0)
        return onnxruntime.InferenceSession(model, options, providers=[*([CUDA] if on_card else []), CPU])
    except Exception as err:  # the runtime's own exceptions share no base
        raise InputError(f"the model can't be loaded: {err}", where=str(path), fix="check the ONNX file") from err


def _known_inputs(session: Any, path: Path) -> dict[str, type[np.signedinteger[Any]]]:
    """The model's inputs and their types: some exports take 32-bit numbers."""
    names = {each.name: np.int32 if each.type == "tensor(int32)" else np.int64 for each in session.get_inputs()}
    if strange := [name for name in names if name not in _INPUTS]:
        raise InputError(
            f"the model needs inputs that encoders don't have: {', '.join(strange[:4])}",
            where=str(path),
            fix="export the model for feature extraction, without a cache of past keys",
        )
    return dict(names)


def _output(session: Any, path: Path) -> tuple[str, bool]:
    """The output with a state per token; else one that is a vector already, and that it is one."""
    for rank in (3, 2):
        for each in session.get_outputs():
            if len(each.shape or ()) == rank:
                return str(each.name), rank == 2
    raise InputError("the model outputs neither token states nor a vector", where=str(path), fix="use another export")


def _shares(mask: NDArray[np.int64], pooling: Pooling) -> NDArray[np.float32]:
    """How much of each token's state goes into the vector of its text: texts x 1 x tokens."""
    lengths = mask.sum(axis=1)
    shares = np.zeros((len(mask), 1, mask.shape[1]), np.float32)
    if pooling == "mean":
        shares[:, 0] = mask / lengths[:, None]
    else:
        shares[np.arange(len(mask)), 0, 0 if pooling == "cls" else lengths - 1] = 1
    return shares


def _pool(states: NDArray[np.float32], pooling: Pooling) -> NDArray[np.float64]:
    wide = states.astype(np.float64)
    if wide.ndim == 1:  # the model pools by itself
        return wide
    by_pooling: dict[Pooling, Callable[[], NDArray[np.float64]]] = {
        "mean": lambda: wide.mean(axis=0),
        "cls": lambda: wide[0],
        "max": lambda: wide.max(axis=0),
        "lasttoken": lambda: wide[-1],
    }
    return by_pooling[pooling]()
