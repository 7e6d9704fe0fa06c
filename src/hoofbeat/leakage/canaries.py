"""Canary strings: random marks in benchmark files, by which one can tell later whether such files were trained on.

A canary is a GUID after the word canary. Found in a corpus, it says that a benchmark's file lies among the documents.
Completed by a model from its first half, it says that files with it were among the model's training data: sixteen
hexadecimal digits are not guessed. A model that does not complete it has not shown the opposite.
"""

from __future__ import annotations

import re
import tomllib
import uuid
from functools import cache
from importlib import resources
from pathlib import Path

from msgspec import Struct, convert

_NAMESPACE = uuid.UUID(bytes=b"hoofbeat canary\x00", version=5)
_GUID = r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_FOUND = re.compile(rf"canary\W{{0,4}}(?:(?:guid|uuid|string|id)\W{{0,4}}){{0,2}}({_GUID})", re.IGNORECASE)
_HEXADECIMAL = re.compile(r"(?<![0-9a-z])[0-9a-f][0-9a-f-]{2,}(?![0-9a-z])", re.IGNORECASE)
_HALF = 19  # 8-4-4- and what follows: 16 digits on either side


class Canary(Struct, frozen=True, kw_only=True):
    """A canary in two halves: a model is shown the first and should not know the rest. `name` says whose it is."""

    name: str
    first: str
    rest: str

    @property
    def guid(self) -> str:
        """The whole."""
        return self.first + self.rest


class FoundCanary(Struct, frozen=True, kw_only=True):
    """A canary that stands in a document or file: where, whose it is (empty: nobody's we know), and the words of it."""

    place: str
    guid: str
    name: str = ""
    text: str = ""


class _Listed(Struct, frozen=True):
    canaries: list[Canary]


@cache
def known_canaries() -> tuple[Canary, ...]:
    """The canaries of public benchmarks that Hoofbeat knows."""
    text = (resources.files("hoofbeat.leakage") / "data" / "canaries.toml").read_text(encoding="utf-8")
    return tuple(convert(tomllib.loads(text), _Listed).canaries)


def split_canary(name: str, guid: str) -> Canary:
    """A GUID in its two halves."""
    return Canary(name=name, first=guid[:_HALF], rest=guid[_HALF:])


def make_canary(content: str, name: str = "") -> Canary:
    """The canary of some content, named by its hash: always the same for the same, and nobody else's."""
    return split_canary(name or "this benchmark", str(uuid.uuid5(_NAMESPACE, content)))


def canary_line(canary: Canary) -> str:
    """The sentence to write into a file that is given away."""
    return f"This is benchmark data; keep it out of training corpora. canary GUID {canary.guid}"


def canaries_in_text(text: str, place: str) -> list[FoundCanary]:
    """Every canary in a text, each once."""
    names = {canary.guid: canary.name for canary in known_canaries()}
    found: dict[str, FoundCanary] = {}
    for match in _FOUND.finditer(text):
        guid = match[1].lower()
        around = text[max(0, match.start() - 60) : match.end()]
        found.setdefault(
            guid, FoundCanary(place=place, guid=guid, name=names.get(guid, ""), text=" ".join(around.split()))
        )
    return list(found.values())


def canaries_in_file(path: Path, name: str) -> list[FoundCanary]:
    """Every canary in a text file, each once; `name` is how the file is called in the result."""
    found: dict[str, FoundCanary] = {}
    with path.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            for each in canaries_in_text(line, name):
                found.setdefault(each.guid, each)
    return list(found.values())


def matched_digits(canary: Canary, reply: str) -> int:
    """How many hexadecimal digits of the rest a reply gives, from its beginning without a fault."""
    first, rest = canary.first.replace("-", "").lower(), canary.rest.replace("-", "").lower()
    best = 0
    for match in _HEXADECIMAL.finditer(reply):
        digits = match[0].replace("-", "").lower().removeprefix(first)
        same = next((place for place, pair in enumerate(zip(digits, rest, strict=False)) if pair[0] != pair[1]), None)
        best = max(best, min(len(digits), len(rest)) if same is None else same)
    return best
