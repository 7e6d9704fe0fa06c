"""What the arguments of a verb of the Python face may be, checked before the verb does anything.

The command line refuses a wrong value when it reads the options. Python has no such step: here each value is compared
with the annotation of its argument, with the limits of the command's option of that name, and with the same lists of
choices. A message names the argument, the value, and what is allowed.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from numbers import Integral, Real
from typing import Any, NamedTuple

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.store.artefact import ArtefactFolder


class Limits(NamedTuple):
    """The least and the greatest value of a number; with `open` both are excluded."""

    low: float = -math.inf
    high: float = math.inf
    open: bool = False

    def allow(self, value: float) -> bool:
        """Whether a value is inside."""
        return self.low < value < self.high if self.open else self.low <= value <= self.high

    def __str__(self) -> str:
        if self.open:
            return f"between {self.low:g} and {self.high:g}"
        if math.isinf(self.high):
            return "" if math.isinf(self.low) else f"of {self.low:g} or more"
        return f"from {self.low:g} to {self.high:g}"


LIMITS = {
    "limit": Limits(1),
    "samples": Limits(1, 64),
    "temperature": Limits(0, 2),
    "seed": Limits(0),
    "option_seed": Limits(0),
    "reasoning": Limits(0),
    "workers": Limits(1, 256),
    "top": Limits(1, 10_000),
    "probe_size": Limits(1),
    "probe_order": Limits(0),
    "passages": Limits(1, 50),
    "whole_up_to": Limits(0),
    "max_tokens": Limits(1),
    "economy": Limits(0, 1, open=True),
    "economy_check": Limits(1),
    "threshold": Limits(0.05, 1),
    "characters": Limits(100, 5000),
    "share": Limits(0.1, 0.9),
    "draws": Limits(1),
    "size": Limits(1),
    "k": Limits(1, 20),
    "count_from": Limits(0, 1),
}
"""The limits of numbers, by argument: those of the command's options, which a test compares."""

ANY_SEED = ("audit_sources", "audit_answers", "import_benchmark")
"""The verbs whose seed may be negative, as in the command."""

_CHOICES = {
    "answer.protocols": ("hoofbeat.answering.conditions", "PROTOCOLS"),
    "answer.instruction": ("hoofbeat.answering.conditions", "INSTRUCTIONS"),
    "judge.probes": ("hoofbeat.judging.probes", "PROBES"),
    "judge.aspect": ("hoofbeat.judging.catalogue", "human_aspects"),
    "check.left_out": ("hoofbeat.recipes.benchmark_check", "PARTS"),
    "check_leakage.left_out": ("hoofbeat.leakage.leakage_check", "PARTS"),
}
"""Where the choices of an argument are listed, for verb and argument: what the command offers as well."""

_MODELS = ("model", "second", "second_model", "committee", "judge", "economy_model")
_LINES = ("lines", "line", "retrievers")
_MODEL_FIX = (
    'name a model as text: "openai:NAME", or "http://HOST:PORT/v1#NAME". To use a Python function, serve it at '
    "such an address in the form of OpenAI's API, or write its answers to a file and read them with "
    "hb.import_predictions"
)
_LINE_FIX = (
    'write a retriever line as text: "bm25 + dense". To use your stage, put it into a file, load the file with '
    'hb.load_plugin("my_stage.py"), and write the name of the stage in the line'
)
_PROGRESS_FIX = "leave it out for bars, or use progress=hb.SILENT for none"
_SHOWN = 60


def checked_arguments(
    function: Callable[..., object], args: Sequence[object], kwargs: Mapping[str, object]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as the verb takes them; a `UsageError` says which one is wrong, and what is allowed."""
    signature = _signature(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:  # the call itself says it in Python's own words
        return tuple(args), dict(kwargs)
    for name, value in bound.arguments.items():
        parameter = signature.parameters[name]
        if parameter.kind is not parameter.VAR_KEYWORD:
            bound.arguments[name] = _checked(function.__name__, parameter, value)
    return bound.args, bound.kwargs


@cache
def _signature(function: Callable[..., object]) -> inspect.Signature:
    return inspect.signature(function)


def _checked(verb: str, parameter: inspect.Parameter, value: Any) -> Any:
    """One value, as the annotation of its argument says."""
    name, kinds = parameter.name, str(parameter.annotation).split(" | ")
    if value is None:
        if "None" in kinds:
            return None
        if parameter.default in ("", ()):
            return parameter.default
    if name == "budget":  # whoever reads it says what is wrong with it
        return value
    for kind, check in _CHECKS.items():
        if kind in kinds:
            value = check(name, value)
            break
    if name in LIMITS and isinstance(value, int | float) and not (name == "seed" and verb in ANY_SEED):
        limits = LIMITS[name]
        if not limits.allow(value):
            raise _wrong(name, value, f"{'a whole number' if 'int' in kinds else 'a number'} {limits}")
    if where := _CHOICES.get(f"{verb}.{name}"):
        _check_choices(name, value, where)
    return value


def _check_choices(name: str, value: str | tuple[str, ...], where: tuple[str, str]) -> None:
    found = getattr(import_module(where[0]), where[1])
    known: Collection[str] = found() if callable(found) else found
    for each in (value,) if isinstance(value, str) else value:
        if each not in known:
            fix = f"{did_you_mean(each, known)}use one of: {', '.join(known)}"
            raise UsageError(f"{name}={each!r} is not known", fix=fix)


def _whole(name: str, value: object) -> int:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise _wrong(name, value, _number_of(name, "a whole number"))


def _number(name: str, value: object) -> float:
    if isinstance(value, Real) and not isinstance(value, bool):
        return float(value)
    raise _wrong(name, value, _number_of(name, "a number"))


def _number_of(name: str, what: str) -> str:
    return f"{what} {LIMITS.get(name, '')}".rstrip()


def _yes_or_no(name: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _wrong(name, value, "True or False")


def _text(name: str, value: object) -> str:
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, str):
        return str(value)
    raise _wrong(name, value, "text", _fix_of(name, value))


def _texts(name: str, value: object) -> str | tuple[str, ...]:
    if isinstance(value, str | os.PathLike):
        return _text(name, value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes) and not _is_frame(value):
        several = tuple(value)
        if all(isinstance(each, str | os.PathLike) for each in several):
            return tuple(_text(name, each) for each in several)
    raise _wrong(name, value, "text, or a list of texts", _fix_of(name, value))


def _place(name: str, value: object) -> object:
    """A path, or the object of a folder. An object is refused if a later call has replaced its folder."""
    if isinstance(value, ArtefactFolder):
        if name != "output":
            value.artefact.refuse_replaced()
        return value
    if isinstance(value, str | os.PathLike):
        return value
    if isinstance(value, list | tuple):
        fix = "give one of them" if value else "give a path, or the object that another function returned"
        raise UsageError(f"{name} is one file or folder, not a list of {len(value)}", fix=fix)
    raise _wrong(name, value, "a path, or the object that another function returned", _fix_of(name, value))


def _places(name: str, value: object) -> object:
    if isinstance(value, str | os.PathLike | ArtefactFolder):
        return _place(name, value)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes) and not _is_frame(value):
        return tuple(_place(name, each) for each in value)
    raise _wrong(name, value, "a path or folder, or a list of them", _fix_of(name, value))


def _mapping(name: str, value: object) -> Mapping[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and isinstance(each, str | int) and not isinstance(each, bool)
        for key, each in value.items()
    ):
        return {key: str(each) for key, each in value.items()}
    example = '{"set": "teaching"}' if name == "facets" else '{"id": "pmid"}'
    raise _wrong(name, value, f"a dictionary of texts, such as {example}")


def _mapping_text(name: str, value: object) -> str:
    """The line that a mapping of fields is in the command; several fields for one name are joined by `+`."""
    if not isinstance(value, Mapping):
        return _text(name, value)
    words = []
    for key, fields in value.items():
        several = fields if isinstance(fields, list | tuple) else [fields]
        if not all(isinstance(each, str) for each in (key, *several)):
            raise _wrong(name, value, 'a dictionary of texts, such as {"id": "pmid"}')
        if "," in "".join((key, *several)):
            raise UsageError(f"{name} can't name a field with a comma: {fields!r}", fix="give the field another name")
        words.append(f"{key}={'+'.join(several)}")
    return ",".join(words)


def _progress(name: str, value: object) -> object:
    if hasattr(value, "task"):
        return value
    raise _wrong(name, value, "an object with a method `task`", _PROGRESS_FIX)


_CHECKS: dict[str, Callable[[str, Any], object]] = {
    "Progress": _progress,
    "FieldNames": _mapping_text,
    "Mapping[str, str]": _mapping,
    "Names": _texts,
    "Paths": _places,
    "PathLike": _place,
    "int": _whole,
    "float": _number,
    "bool": _yes_or_no,
    "str": _text,
}
"""What checks a value of each annotation; the first that an annotation contains decides."""


def _is_frame(value: object) -> bool:
    """Whether a value is a table in memory: a data frame of polars, pandas or the like."""
    return hasattr(value, "columns") and (hasattr(value, "write_csv") or hasattr(value, "to_csv"))


def _fix_of(name: str, value: object) -> str:
    """What to do instead of giving something that only Python has."""
    if _is_frame(value):
        write = 'df.write_csv("FILE.csv")' if hasattr(value, "write_csv") else 'df.to_csv("FILE.csv", index=False)'
        return f'write the table to a file, {write}, and give "FILE.csv": results name the file they were made from'
    if name in _MODELS:
        return _MODEL_FIX
    return _LINE_FIX if name in _LINES else ""


def _wrong(name: str, value: object, needed: str, fix: str = "") -> UsageError:
    told = f"a {type(value).__name__}" if _is_frame(value) or callable(value) else repr(value)
    told = told if len(told) <= _SHOWN else f"{told[:_SHOWN]}…"
    return UsageError(f"{name} can't be {told}", fix=fix or f"give {needed}")
