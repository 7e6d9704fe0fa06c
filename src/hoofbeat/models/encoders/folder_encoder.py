"""An encoder of the user's own: a folder in the sentence-transformers layout, with the model as ONNX.

What is read: `modules.json` (which steps the model has), `1_Pooling/config.json` (how token states become one vector),
`sentence_bert_config.json` (how many tokens are read), `config_sentence_transformers.json` (prompts, similarity),
`tokenizer.json`, and `onnx/model.onnx` or `model.onnx`. A folder of model2vec (`model.safetensors` with token vectors)
works too. Steps that would change the vectors and are not known here are an error, never ignored. What the files say
can't be overridden by the line; what they don't say (MedCPT's say nothing about pooling) the line may say.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, TypeVar, cast

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.models.encoders.encoder_base import Encoder, EncoderSpec, Instructions
from hoofbeat.models.encoders.onnx_encoder import OnnxEncoder, Pooling
from hoofbeat.models.encoders.static_encoder import StaticEncoder
from hoofbeat.store.files import file_sha256, read_bytes

_Config = TypeVar("_Config")
_MAX_LENGTH = 512
_POOLINGS: dict[str, Pooling] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
}
_SHIFTED = ("roberta", "xlm-roberta", "camembert", "mpnet")  # their positions are counted from behind the padding's id
_SPACED = ("roberta", "gpt2")
_NOTHING_SAID = EncoderSpec("")
_STEPS = ("Transformer", "Pooling", "Normalize", "StaticEmbedding")


class _Module(Struct):
    type: str
    path: str = ""


class _Sentences(Struct):
    max_seq_length: int | None = None
    do_lower_case: bool = False


class _Prompts(Struct):
    prompts: dict[str, str | None] = {}
    similarity_fn_name: str | None = None


class _Model(Struct):
    model_type: str | None = None
    max_position_embeddings: int | None = None
    pad_token_id: int | None = None
    max_length: int | None = None


class _Limits(Struct):
    model_max_length: float | None = None


def folder_encoder(folder: Path, said: EncoderSpec = _NOTHING_SAID, *, threads: int | None = None) -> Encoder:
    """The encoder in a folder; what it lacks, or has and is not known here, is an `InputError`.

    `said` is what a line says of pooling and similarity.
    """
    modules = _read(folder / "modules.json", list[_Module]) or []
    for module in modules:
        if module.type.rpartition(".")[2] not in _STEPS:
            raise InputError(
                f"Hoofbeat does not know a step of this model: {module.type}",
                where=str(folder / "modules.json"),
                fix=f"use a model made of {', '.join(_STEPS)} only, or serve it as an embeddings endpoint",
            )
    root = _step(folder, modules, "Transformer") or folder
    tokenizer = _first(folder, [root / "tokenizer.json", folder / "tokenizer.json"], "tokenizer.json")
    prompts = _prompts(folder)
    encoder: OnnxEncoder | StaticEncoder
    similarity = _agreed("similarity", _similarity(folder, modules), said.similarity, folder)
    if _is_static(folder, modules):
        if said.pooling or similarity == "dot":
            raise InputError("static vectors have one pooling (mean) and one similarity (cosine)",
                             where=str(folder))  # fmt: skip
        model = _first(folder, [folder / "model.safetensors"], "model.safetensors")
        max_tokens = (_read(folder / "config.json", _Model) or _Model()).max_length or _MAX_LENGTH
        digest = _digest([model, tokenizer])
        encoder = StaticEncoder(
            name=folder.name, model=model, tokenizer=tokenizer, digest=digest, max_tokens=_positive(max_tokens, folder)
        )
    else:
        model = _onnx_file(folder, root)
        sentences = _read(root / "sentence_bert_config.json", _Sentences) or _Sentences()
        own = _pooling((_step(folder, modules, "Pooling") or folder / "1_Pooling") / "config.json")
        encoder = OnnxEncoder(
            name=folder.name,
            model=model,
            tokenizer=tokenizer,
            digest=_digest([model, *sorted(model.parent.glob(f"{model.name}[_.]data")), tokenizer]),
            max_tokens=_positive(sentences.max_seq_length or _max_length(root), folder),
            pooling=cast("Pooling", _agreed("pooling", own, said.pooling, folder) or "mean"),
            similarity=similarity,
            lower=sentences.do_lower_case,
            spaced=(_read(root / "config.json", _Model) or _Model()).model_type in _SPACED,
            threads=threads,
        )
        if not (own or said.pooling or encoder.pools):
            assumed = (
                f"{folder.name} does not say how the states of its tokens become one vector; their mean is taken, as "
                "sentence-transformers does (pooling=cls for models such as MedCPT)"
            )
            encoder.assumption = "; ".join(filter(None, (encoder.assumption, assumed)))
    encoder.prompts = prompts
    return encoder


def _agreed(what: str, own: str, said: str, folder: Path) -> str:
    """What the folder's files say, else what the line says; where both do, they must say the same."""
    if own and said and own != said:
        raise InputError(
            f"the encoder's files say {what}={own}, but the line says {what}={said}",
            where=str(folder),
            fix=f"remove {what} from the line, or correct the files",
        )
    return own or said


def _similarity(folder: Path, modules: list[_Module]) -> str:
    """How the model's vectors are compared: by their angle where a step brings them to unit length."""
    config = _read(folder / "config_sentence_transformers.json", _Prompts) or _Prompts()
    if any(module.type.endswith(".Normalize") for module in modules):
        return "cosine"
    if config.similarity_fn_name in {"euclidean", "manhattan"}:
        raise InputError(
            f"the model compares vectors by {config.similarity_fn_name} distance, which Hoofbeat can't use",
            where=str(folder / "config_sentence_transformers.json"),
            fix="use a model that compares by cosine or by dot product",
        )
    return {"dot": "dot", "dot_product": "dot", "cosine": "cosine"}.get(config.similarity_fn_name or "", "")


def _read(path: Path, kind: type[_Config]) -> _Config | None:
    if not path.is_file():
        return None
    try:
        return msgspec.json.decode(read_bytes(path), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as err:
        raise InputError(f"the file can't be read: {err}", where=str(path), fix="correct the file") from err


def _step(folder: Path, modules: list[_Module], step: str) -> Path | None:
    found = next((module for module in modules if module.type.endswith(f".{step}")), None)
    if found is None:
        return None
    path = folder / found.path
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputError("a step of the model is outside its folder", where=str(folder / "modules.json"))
    return path


def _first(folder: Path, places: list[Path], what: str) -> Path:
    for path in places:
        if path.is_file():
            return path
    raise InputError(
        f"the folder is not an encoder: {what} is missing",
        where=str(folder),
        fix="give a folder in the sentence-transformers layout with an ONNX model and tokenizer.json",
    )


def _onnx_file(folder: Path, root: Path) -> Path:
    places = [base / name for base in dict.fromkeys((folder, root)) for name in ("onnx/model.onnx", "model.onnx")]
    for path in places:
        if path.is_file():
            return path
    others = sorted([*folder.glob("onnx/*.onnx"), *folder.glob("*.onnx")])
    if len(others) == 1:
        return others[0]
    if others:
        names = ", ".join(str(path.relative_to(folder)) for path in others)
        raise InputError(
            f"the folder has several models ({names}), and none is called model.onnx",
            where=str(folder),
            fix="rename the one to use, or link it, to onnx/model.onnx",
        )
    raise InputError(
        "the folder has no ONNX model",
        where=str(folder),
        fix=f"export it: optimum-cli export onnx --task feature-extraction --model {folder} {folder / 'onnx'}",
    )


def _is_static(folder: Path, modules: list[_Module]) -> bool:
    config = _read(folder / "config.json", _Model) or _Model()
    return config.model_type == "model2vec" or any(module.type.endswith(".StaticEmbedding") for module in modules)


def _pooling(path: Path) -> str:
    """The one pooling that is switched on; empty without a file."""
    config: dict[str, Any] = _read(path, dict[str, Any]) or {}
    chosen = [name for name, value in config.items() if name.startswith("pooling_mode_") and value is True]
    if config.get("include_prompt", True) is False:
        raise InputError("Hoofbeat does not support pooling without the prompt", where=str(path))
    if isinstance(word := config.get("pooling_mode"), str):
        chosen = [name for name, pooling in _POOLINGS.items() if pooling == word] or [word]
    if not chosen and config:
        chosen = ["none"]
    if len(chosen) > 1 or any(name not in _POOLINGS for name in chosen):
        raise InputError(
            f"Hoofbeat does not support the model's pooling: {' and '.join(chosen)}",
            where=str(path),
            fix=f"use a model with one of: {', '.join(_POOLINGS)}",
        )
    return _POOLINGS[chosen[0]] if chosen else ""


def _max_length(root: Path) -> int:
    limits = _read(root / "tokenizer_config.json", _Limits) or _Limits()
    config = _read(root / "config.json", _Model) or _Model()
    positions = config.max_position_embeddings
    if positions is not None and config.model_type in _SHIFTED:
        positions -= (config.pad_token_id if config.pad_token_id is not None else 1) + 1
    stated = [limits.model_max_length, positions]
    # tokenizers without a limit of their own say 1e30
    return int(min([value for value in stated if value is not None and 0 < value < 1e6] or [_MAX_LENGTH]))


def _positive(max_tokens: int, folder: Path) -> int:
    if max_tokens < 8:
        raise InputError(
            f"the model reads only {max_tokens} tokens", where=str(folder), fix="correct its configuration"
        )
    return min(max_tokens, 1 << 20)


def _prompts(folder: Path) -> Instructions:
    prompts = (_read(folder / "config_sentence_transformers.json", _Prompts) or _Prompts()).prompts
    document = prompts.get("document") or prompts.get("passage") or ""
    return Instructions(query=prompts.get("query") or "", document=document)


def _digest(files: list[Path]) -> str:
    return hashlib.sha256("".join(file_sha256(path) for path in files).encode()).hexdigest()
