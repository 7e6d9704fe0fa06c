"""Pairs of query and text to scores: a cross-encoder that the user supplies as a folder.

The folder is what sentence-transformers or `optimum-cli export onnx` writes: `config.json`, `tokenizer.json`, and the
model as ONNX, beside them or in `onnx/`. Nothing in it is run as code. One pair goes through the model at a time,
several side by side on one thread each: nothing is padded, so a pair's score can't depend on its neighbours or on the
number of threads. A pair longer than the model's window is cut to it, always off the longer of the two; `parts` gives a
long text in parts that are not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hoofbeat.errors import InputError
from hoofbeat.models.embedded import default_threads
from hoofbeat.progress import SILENT, Progress
from hoofbeat.store.files import file_sha256

_DEFAULT_WINDOW = 512
_MIN_WINDOW = 8
_BLOCK = 1024
_PLACES = ("model.onnx", "onnx/model.onnx")
_TORCH = ("*.safetensors", "pytorch_model*.bin")
_TYPES: dict[str, type[np.generic]] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_OFFSET_POSITIONS = ("roberta", "camembert", "longformer", "mpnet")  # their first positions are not for tokens
_RELEVANT = ("relevant", "yes", "true", "positive", "label_1", "1")
_EXPORT = "export it: optimum-cli export onnx --model {folder} --task text-classification OUTPUT_FOLDER"


class _Config(msgspec.Struct):
    """What is read of `config.json`."""

    model_type: str | None = None
    max_position_embeddings: int | None = None
    pad_token_id: int | None = None
    id2label: dict[str, object] | None = None


class _TokenizerConfig(msgspec.Struct):
    """What is read of `tokenizer_config.json`; "no limit" is written there as a number of thirty digits."""

    model_max_length: float | None = None


class _Scored(NamedTuple):
    score: float
    cut: bool


class TextParts(NamedTuple):
    """A text in parts that can be read beside a query, its tokens, and how many of them are behind the window."""

    parts: tuple[str, ...]
    tokens: int
    behind: int


class CrossEncoder:
    """A cross-encoder from a folder.

    A model of one label scores by its logit, one of two by how far the logit of the relevant label is above the other;
    `id2label` says which that is (the second, where the names don't tell). `window` is how many tokens of a pair it
    reads, `cut` how many pairs so far were longer.
    """

    def __init__(self, folder: Path | str, *, threads: int | None = None) -> None:
        self.folder = Path(folder).expanduser()
        self.threads = threads or default_threads()
        self.cut = 0
        model = _find_model(self.folder)
        config = _read(self.folder / "config.json", _Config, required=True)
        limits = _read(self.folder / "tokenizer_config.json", _TokenizerConfig)
        self._tokenizer, self._whole = (_load_tokenizer(self.folder) for _ in range(2))
        self.window = _window(config, limits, self._tokenizer, self.folder)
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self.window, strategy="longest_first")
        self._whole.no_padding()
        self._whole.no_truncation()
        self._relevant = _relevant_label(config)
        self._session, runtime = _load_session(model)
        self._inputs = _inputs(self._session, model)
        outputs = [output.name for output in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]
        self._where = str(model)
        digest = _digest(self.folder, model)
        self.identity = f"cross-encoder:{self.name}@{digest[:12]};max={self.window};onnxruntime={runtime}"
        self._run("query", "text")  # what the folder's model can't do is said now, not in the middle of a run

    @property
    def name(self) -> str:
        """The folder's own name, without the path to it."""
        return self.folder.resolve().name

    def score(self, pairs: Sequence[tuple[str, str]], progress: Progress = SILENT) -> list[float]:
        """The score of each (query, text), in their order; higher is more relevant. It may be no number (NaN)."""
        scores: list[float] = []
        with progress.task(f"reranking: {self.name}", len(pairs)) as task, ThreadPoolExecutor(self.threads) as pool:
            for start in range(0, len(pairs), _BLOCK):
                for scored in pool.map(lambda pair: self._run(*pair), pairs[start : start + _BLOCK]):
                    scores.append(scored.score)
                    self.cut += scored.cut
                    task.advance()
        return scores

    def parts(self, query: str, text: str) -> TextParts:
        """A text in parts that fit the window beside the query, a quarter shared between neighbours.

        A query that takes more than half of the window leaves too little: then the pair is cut.
        """
        text = _encodable(text)
        spans = self._whole.encode(text, add_special_tokens=False).offsets
        taken = len(self._whole.encode(_encodable(query), add_special_tokens=False).ids)
        room = self.window - taken - self._whole.num_special_tokens_to_add(True)
        behind = max(0, len(spans) - max(room, 0))
        if not behind or 2 * room < self.window:
            return TextParts((text,), len(spans), behind)
        shared = room // 4
        starts = range(0, len(spans) - shared, room - shared)
        found = tuple(text[spans[at][0] : spans[min(at + room, len(spans)) - 1][1]] for at in starts)
        return TextParts(found, len(spans), behind)

    def _run(self, query: str, text: str) -> _Scored:
        encoding = self._tokenizer.encode(_encodable(query), _encodable(text))
        values = {
            "input_ids": encoding.ids,
            "attention_mask": encoding.attention_mask,
            "token_type_ids": encoding.type_ids,
        }
        feed = {name: np.asarray([values[name]], kind) for name, kind in self._inputs.items()}
        try:
            output: NDArray[Any] = np.asarray(self._session.run([self._output], feed)[0])
        except Exception as err:  # the runtime's errors have no class in common
            raise InputError(
                f"the cross-encoder can't read a pair of {len(encoding.ids)} tokens: {_first_line(err)}",
                where=self._where,
                fix="export it with free lengths; if it can't read long pairs, set model_max_length in "
                "tokenizer_config.json",
            ) from err
        return _Scored(self._read_output(output), bool(encoding.overflowing))

    def _read_output(self, output: NDArray[Any]) -> float:
        if output.ndim > 2 or output.size not in (1, 2) or output.dtype.kind != "f":
            shape = " x ".join(map(str, output.shape)) or "nothing"
            raise InputError(
                f"the model's output {self._output!r} is {shape} {output.dtype}: a reranker gives one or two logits",
                where=self._where,
                fix=_EXPORT.format(folder="MODEL") + " (a plain encoder is not a cross-encoder)",
            )
        logits = output.astype(np.float64).reshape(-1)
        return float(logits[0] if output.size == 1 else logits[self._relevant] - logits[1 - self._relevant])


def _find_model(folder: Path) -> Path:
    if not folder.is_dir():
        what = "this is a file, but a cross-encoder is a folder" if folder.exists() else "there is no such folder"
        raise InputError(what, where=str(folder), fix="give the folder that holds config.json and model.onnx")
    for place in _PLACES:
        if (folder / place).is_file():
            return folder / place
    others = sorted([*folder.glob("*.onnx"), *folder.glob("onnx/*.onnx")])
    if len(others) == 1:
        return others[0]
    if others:
        names = ", ".join(other.relative_to(folder).as_posix() for other in others)
        raise InputError(
            f"the folder holds several models: {names}", where=str(folder), fix="name the one to use model.onnx"
        )
    weights = any(any(folder.glob(pattern)) for pattern in _TORCH)
    raise InputError(
        "the folder holds torch weights, but no ONNX model" if weights else "the folder has no ONNX model",
        where=str(folder),
        fix=_EXPORT.format(folder=folder if weights else "MODEL"),
    )


def _read(path: Path, kind: type[Any], *, required: bool = False) -> Any:
    """A JSON file of the folder; where it is absent and need not be there, the defaults."""
    if not path.is_file():
        if required:
            raise InputError(
                f"the cross-encoder's folder has no {path.name}",
                where=str(path.parent),
                fix="copy it from the folder the model was exported from",
            )
        return kind()
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise InputError(f"{path.name} can't be read: {err}", where=str(path), fix="export the model again") from err


def _load_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer  # noqa: PLC0415

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise InputError(
            "the cross-encoder's folder has no tokenizer.json",
            where=str(folder),
            fix="save its tokenizer as a fast one: AutoTokenizer.from_pretrained(MODEL).save_pretrained(FOLDER)",
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as err:  # the library raises the plain class
        raise InputError(
            f"tokenizer.json can't be read: {_first_line(err)}", where=str(path), fix="export the model again"
        ) from err
    if tokenizer.num_special_tokens_to_add(True) <= tokenizer.num_special_tokens_to_add(False):
        raise InputError(
            "the tokenizer puts nothing between a query and a text, so the model could not distinguish them",
            where=str(path),
            fix="use a cross-encoder whose tokenizer.json has a post-processor for pairs (BERT's and RoBERTa's have)",
        )
    return tokenizer


def _load_session(model: Path) -> tuple[Any, str]:
    import onnxruntime  # noqa: PLC0415 (takes a second to import)

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    except Exception as err:  # the runtime's errors have no class in common
        raise InputError(
            f"the ONNX model can't be loaded: {_first_line(err)}", where=str(model), fix="export the model again"
        ) from err
    return session, str(onnxruntime.__version__)


def _inputs(session: Any, model: Path) -> dict[str, type[np.generic]]:
    known = ("input_ids", "attention_mask", "token_type_ids")
    inputs = {each.name: each.type for each in session.get_inputs()}
    unknown = [f"{name} of {kind}" for name, kind in inputs.items() if name not in known or kind not in _TYPES]
    if unknown or "input_ids" not in inputs:
        given = ", ".join(unknown) if unknown else f"{', '.join(inputs) or 'nothing'}, and no input_ids"
        raise InputError(
            f"the model asks for {given}: a cross-encoder takes input_ids, attention_mask and token_type_ids",
            where=str(model),
            fix=_EXPORT.format(folder="MODEL"),
        )
    return {name: _TYPES[kind] for name, kind in inputs.items()}


def _window(config: _Config, limits: _TokenizerConfig, tokenizer: Any, folder: Path) -> int:
    """How many tokens of a pair the model reads: the least of what its files say, else 512."""
    stated: list[float] = []
    if config.max_position_embeddings is not None and config.max_position_embeddings > 0:
        unused = (config.pad_token_id or 0) + 1 if _offset_positions(config) else 0
        stated.append(config.max_position_embeddings - unused)
    if limits.model_max_length is not None:
        stated.append(limits.model_max_length)
    if not stated and tokenizer.truncation:
        stated.append(tokenizer.truncation["max_length"])
    window = int(min(min(stated, default=_DEFAULT_WINDOW), 1 << 20))
    if window < _MIN_WINDOW:
        raise InputError(
            f"the cross-encoder's files say that it reads {window} tokens of a pair, which is too few",
            where=str(folder),
            fix="correct model_max_length in tokenizer_config.json or max_position_embeddings in config.json",
        )
    return window


def _offset_positions(config: _Config) -> bool:
    return any(name in (config.model_type or "").lower() for name in _OFFSET_POSITIONS)


def _relevant_label(config: _Config) -> int:
    labels = config.id2label or {}
    named = [place for place, name in labels.items() if str(name).strip().lower() in _RELEVANT]
    return 0 if named == ["0"] else 1


def _digest(folder: Path, model: Path) -> str:
    """One hash of every file that can change a score; weights may lie in files beside the model, named after it."""
    files = [folder / name for name in ("config.json", "tokenizer.json", "tokenizer_config.json")]
    files += sorted(model.parent.glob(f"{model.name}*")) + sorted(model.parent.glob("*.data"))
    used = {path.relative_to(folder).as_posix(): file_sha256(path) for path in files if path.is_file()}
    return hashlib.sha256("\n".join(f"{name} {digest}" for name, digest in sorted(used.items())).encode()).hexdigest()


def _encodable(text: str) -> str:
    """The text without lone surrogates, which no tokenizer takes."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
