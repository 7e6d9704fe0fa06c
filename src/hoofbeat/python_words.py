"""Errors and warnings in the words of whoever called: from Python, options of the command are arguments.

The packages below raise the same error for both faces and name options (`--corpus`). A verb of the Python face has its
messages put into its own names (`corpus`) here, so that nobody looks for an option in a notebook. A command that a
message tells to run stays as it is.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache

from hoofbeat.errors import HoofbeatError

_OPTION = re.compile(
    r"(?<![\w-])--([a-z][a-z-]*)"
    r"(?: (\d[\d.]*\b|[A-Z]{2,}(?=[,;.) ]|$)|(?!out\b)[a-z][\w-]*(?=[,;.)]|$)))?"  # a number, a word for one, a name
)
_OUTPUT = re.compile(r"\b(with|its own) -o(?![\w-])")
_SAME = re.compile(r"\b([Tt])he same command\b")
_COMMAND = re.compile(r"(?:^|[\s(`])(?:hoofbeat|pip|ray|optimum-cli) (?:(?!\. |[;()]).)*$", re.DOTALL)
_OTHERWISE = {
    "with": ("lines", "line"),
    "retriever": ("retrievers", "line"),
    "question": ("question_ids",),
    "query": ("queries",),
    "study": ("studies",),
    "as": ("form",),
}
"""Options that arguments have other names for, beside those that are only in the plural there."""

_ELSEWHERE = {
    "plugin": "hb.load_plugin",
    "index": "hb.keeping_indexes",
    "on": "hb.running_on",
    "trust-changed": "HOOFBEAT_TRUST_CHANGED=1",  # in the environment: files are also read after the verb
}
_FIELDS = ("answer", "confidence", "dataset", "id", "options", "predicted", "sample", "text", "tokens")
_FIELDS_OTHERWISE = {"model-field": "model", "condition-field": "condition"}


def python_words(text: str, function: Callable[..., object]) -> str:
    """A message with the options that are arguments of this verb named as arguments."""

    def named(found: re.Match[str]) -> str:
        option, value = found[1], found[2] or ""
        name = "" if _COMMAND.search(text[: found.start()]) else _argument(option, function)
        if not name:
            return found[0]
        if not value or "." in name:
            return f"`{name}`" + (f" {value}" if value else "")
        return f"`{name}={value if value[0].isdigit() or value.isupper() else repr(value)}`"

    return _SAME.sub(r"\1he same call", _OUTPUT.sub(r"\1 `output`", _OPTION.sub(named, text)))


def _argument(option: str, function: Callable[..., object]) -> str:
    """What an option is called in Python; empty where this verb has no such argument."""
    names, takes_any = _arguments(function)
    word = option.replace("-", "_")
    for name in (word, f"{word}s", *_OTHERWISE.get(option, ())):
        if name in names:
            return name
    if option in _ELSEWHERE:
        return _ELSEWHERE[option]
    if "fields" in names and "benchmark" in names and option in (*_FIELDS, *_FIELDS_OTHERWISE):
        return f'fields["{_FIELDS_OTHERWISE.get(option, option)}"]'
    return word if takes_any else ""


@cache
def _arguments(function: Callable[..., object]) -> tuple[frozenset[str], bool]:
    """The names of a verb's arguments, and whether it takes others as well."""
    found = inspect.signature(function).parameters.values()
    return frozenset(each.name for each in found), any(each.kind is each.VAR_KEYWORD for each in found)


def reword(err: HoofbeatError, function: Callable[..., object]) -> None:
    """Put an error that a verb raises into the verb's own names."""
    err.what = python_words(err.what, function)
    err.args = (err.what, *err.args[1:])
    if err.fix:
        err.fix = python_words(err.fix, function)
