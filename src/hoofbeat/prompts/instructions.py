"""Instructions aimed at a model inside documents, questions and answers.

Texts enter prompts as fenced material, and prompts say that material is never an instruction. Models obey some of it
all the same, so a label may be the document's doing. These rules find such sentences where material enters a request
(`Prompt.request`). Nothing is changed: requests carry what was found, the model counts it (`Model.flagged`), manifests
and reports show it, and `--quarantine` makes no such call.

Rules find what is written plainly. A sentence that leads a model without addressing it passes: a model that looks at
each text (`instruction_check`) finds more, and what a model does with the rest has to be measured.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import resources
from typing import NamedTuple

import msgspec
from msgspec import Struct

_NAMES = (
    "llm",
    "language model",
    "chatbot",
    "chat bot",
    "gpt",
    "assistant",
    "reviewer",
    "grader",
    "evaluator",
    "judge",
)
_SHORT_NAME = re.compile(r"\bais?\b")
_ENCODED = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{40,4000}={0,2}(?![A-Za-z0-9+/=])")
_MATERIAL = re.compile(r'<material name="[^"\n]*">\n(.*?)\n</material>', re.DOTALL)
_AROUND = 60
_EXCERPT = 200


class FoundInstruction(NamedTuple):
    """A place in a text that tells a model what to do: which rule found it, where, and the words around it."""

    rule: str
    start: int
    end: int
    excerpt: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.excerpt}"


def instructions_in(text: str) -> tuple[FoundInstruction, ...]:
    """The places of a text that tell a model what to do, in order; one for each rule and place."""
    lower = _lower(text)
    found = [
        FoundInstruction(name, match.start(), match.end(), _around(text, match.start(), match.end()))
        for name, match in _matches(lower)
    ]
    found += [
        FoundInstruction("hides it in an encoding", match.start(), match.end(), _around(hidden, 0, len(hidden)))
        for match in _ENCODED.finditer(text)
        if (hidden := _decoded(match[0])) and any(True for _ in _matches(_lower(hidden)))
    ]
    return tuple(sorted(found, key=lambda each: (each.start, each.rule)))


def _matches(lower: str) -> Iterator[tuple[str, re.Match[str]]]:
    """What the rules find. Looking for the words that a rule needs takes a hundredth of its time."""
    named = any(name in lower for name in _NAMES) or bool(_SHORT_NAME.search(lower))
    for rule in _rules():
        is_searched = not (rule.needed or rule.names_model) or any(word in lower for word in rule.needed)
        if is_searched or (named and rule.names_model):
            for match in rule.pattern.finditer(lower):
                yield rule.name, match


class _RuleText(Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    patterns: list[str]
    needed: list[str] = []
    names_model: bool = False


class _RuleFile(Struct, frozen=True, forbid_unknown_fields=True):
    words: dict[str, str]
    rules: list[_RuleText]


class _Rule(NamedTuple):
    name: str
    needed: tuple[str, ...]
    names_model: bool
    pattern: re.Pattern[str]


@cache
def _rules() -> tuple[_Rule, ...]:
    """The rules of `instructions.toml`."""
    file = msgspec.toml.decode((resources.files("hoofbeat.prompts") / "instructions.toml").read_bytes(), type=_RuleFile)
    rules = []
    for each in file.rules:
        pattern = "|".join(each.patterns)
        for word, meaning in file.words.items():
            pattern = pattern.replace(word, meaning)
        rules.append(_Rule(each.name, tuple(each.needed), each.names_model, re.compile(pattern)))
    return tuple(rules)


def _lower(text: str) -> str:
    """The text in lower case, each character in its place: some have a longer lower case."""
    lower = text.lower()
    return lower if len(lower) == len(text) else "".join(each.lower() if each.isascii() else each for each in text)


def material_instructions(filled: str) -> tuple[str, ...]:
    """What the material of a filled prompt tells a model to do, as `rule: words`. Material can't imitate its fence."""
    return tuple(dict.fromkeys(each for block in materials(filled) for each in text_instructions(block)))


def materials(filled: str) -> Iterator[str]:
    """The texts between the fences of a filled prompt."""
    return (match[1] for match in _MATERIAL.finditer(filled))


@lru_cache(maxsize=2048)
def text_instructions(text: str) -> tuple[str, ...]:
    """The same of one text as it is between its fences."""
    return tuple(map(str, instructions_in(text)))


def _around(text: str, start: int, end: int) -> str:
    """The words of a place with some around it, as one line."""
    begin, stop = max(0, start - _AROUND), min(len(text), end + _AROUND)
    words = " ".join(text[begin:stop].split())
    return words[:_EXCERPT]


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""
