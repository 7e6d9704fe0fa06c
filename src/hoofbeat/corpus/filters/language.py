"""Language: what the document says of itself, else what its most frequent little words tell.

The detector counts stop words of a dozen languages and the scripts of some more. It is small, has nothing to learn
and always says the same; a text that is too short or too mixed for it is `unknown`.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from functools import cache, lru_cache
from importlib import resources

from msgspec import Struct

from hoofbeat.corpus.filter import KEPT, Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

READ = 20_000
MIN_WORDS = 8
MIN_STOP_WORDS = 3
MIN_SHARE = 0.12
MIN_LEAD = 1.15

_WORD = re.compile(r"[^\W\d_]+")


class _Table(Struct, frozen=True):
    names: dict[str, str]
    words: dict[str, tuple[str, ...]]
    scripts: tuple[tuple[str, re.Pattern[str]], ...]


@cache
def _table() -> _Table:
    raw = resources.files("hoofbeat.corpus").joinpath("data/languages.toml").read_text(encoding="utf-8")
    data = tomllib.loads(raw)
    words: dict[str, list[str]] = {}
    for code, listed in data["words"].items():
        for word in listed.split():
            words.setdefault(word, []).append(code)
    names = {name: code for code, listed in data["names"].items() for name in (code, *listed.split())}
    scripts = tuple((code, re.compile(f"[{letters}]")) for code, letters in data["scripts"].items())
    return _Table(names, {word: tuple(codes) for word, codes in words.items()}, scripts)


def language_of(document: Document) -> str:
    """The language a document is in: two letters, or `unknown`."""
    for value in facet_values(document.facets, "language", "lang"):
        plain = re.split(r"[-_,;\s]", value.strip().lower())[0]
        if plain:
            return _table().names.get(plain, plain)
    return detect_language(document.text)


def detect_language(text: str) -> str:
    """The language of a text by its script and stop words."""
    return _detect(text[:READ])


@lru_cache(maxsize=256)
def _detect(part: str) -> str:
    letters = _WORD.findall(part.lower())
    size = sum(map(len, letters))
    if not size:
        return "unknown"
    table = _table()
    for code, script in table.scripts:
        if len(script.findall(part)) > size / (8 if code in {"ja", "ko"} else 2):
            return code
    if len(letters) < MIN_WORDS:
        return "unknown"
    found = count_stop_words(part)
    ranked = sorted(found.items(), key=lambda item: (-item[1], item[0]))
    fewest = MIN_STOP_WORDS if part.isascii() else 1  # plain letters are shared by many languages
    if not ranked or ranked[0][1] < max(fewest, MIN_SHARE * len(letters)):
        return "unknown"
    if len(ranked) > 1 and ranked[0][1] < MIN_LEAD * ranked[1][1]:
        return "unknown"
    return ranked[0][0]


def count_stop_words(text: str) -> Counter[str]:
    """How many stop words of each language a text has; a word that languages share counts for each."""
    found: Counter[str] = Counter()
    for word, count in Counter(_WORD.findall(text.lower())).items():
        for code in _table().words.get(word, ()):
            found[code] += count
    return found


class _Language(CorpusFilter):
    name = "language"
    summary = "languages, as stated or as detected"
    example = "language=en"

    def build(self, clause: Clause) -> FilterStep:
        """The document must be in one of the languages."""
        clause.no_arguments(self.example)
        names = _table().names
        wanted = []
        for value in clause.compared(("=",), self.example):
            if value.text.lower() not in {*names, "unknown"}:
                clause.unknown(value.at, f"unknown language {value.text!r}", value.text, sorted({*names.values()}))
            wanted.append(names.get(value.text.lower(), "unknown"))

        def judge(document: Document) -> FilterVerdict:
            found = language_of(document)
            return KEPT if found in wanted else FilterVerdict(f"language {found}")

        return per_document("language", f"language={','.join(wanted)}", judge, {"languages": wanted})


FILTER = _Language()
