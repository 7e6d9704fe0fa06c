"""The words by which outputs choose, deny and take back an option: `data/wording.toml`, ready to be looked for."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from msgspec import Struct, convert, field

_NAME = re.compile(r"<([a-z_]+)>")
_NEEDS = re.compile(r"\{([^{}]+)\}")


class _List(Struct, frozen=True):
    """One list of the file, with the fragments that only it uses."""

    words: list[str]
    weight: int = 0
    until: str = ""
    gap: str = ""
    may: str = ""
    much: str = ""
    bad: str = ""
    rest: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    fragments: dict[str, str]
    before: list[_List]
    after: list[_List]
    lead: _List
    verdict_yes: _List
    verdict_no: _List
    denied_before: _List
    denied_after: _List
    hypothetical: _List
    revised: _List
    framed: _List
    passing: _List
    none_fits: _List
    next_question: _List
    unfinished: _List
    reported: _List
    decoy: _List
    conditional: _List
    withdrawn: _List
    weighed: _List
    unsure: _List


class Cues(Struct, frozen=True):
    """The entries of a list one by one, each with what must stand in a text for it to be worth looking for."""

    weight: int
    entries: tuple[tuple[tuple[str, ...], re.Pattern[str]], ...]

    def find(self, text: str, lowered: str) -> Iterator[re.Match[str]]:
        """Every match, as one pattern of all entries would find them: the first from the left, none in another."""
        position, waiting = 0, []
        for needs, pattern in self.entries:
            if not needs or any(map(lowered.__contains__, needs)):
                waiting.append((pattern, pattern.search(text)))
        while True:
            waiting = [
                (pattern, match if match.start() >= position else pattern.search(text, position))
                for pattern, match in waiting
                if match
            ]
            match = min((match for _, match in waiting if match), key=lambda match: match.start(), default=None)
            if match is None:
                return
            yield match
            position = max(match.end(), match.start() + 1)


class Wording(Struct, frozen=True, kw_only=True):
    """Every list of the file as one pattern; what stands before and after an option comes with its weight."""

    before: tuple[Cues, ...]
    after: tuple[tuple[int, re.Pattern[str]], ...]
    lead: re.Pattern[str]
    verdict_yes: re.Pattern[str]
    verdict_no: re.Pattern[str]
    denied_before: re.Pattern[str]
    denied_after: re.Pattern[str]
    hypothetical: re.Pattern[str]
    revised: re.Pattern[str]
    framed: re.Pattern[str]
    passing: re.Pattern[str]
    none_fits: re.Pattern[str]
    next_question: re.Pattern[str]
    unfinished: re.Pattern[str]
    reported: re.Pattern[str]
    decoy: re.Pattern[str]
    conditional: re.Pattern[str]
    withdrawn: re.Pattern[str]
    weighed: re.Pattern[str]
    unsure: re.Pattern[str]
    source: str = field(default="data/wording.toml")


@cache
def load_wording() -> Wording:
    """The wording, read once."""
    raw = (files("hoofbeat.answering.choices") / "data" / "wording.toml").read_text(encoding="utf-8")
    file = convert(tomllib.loads(raw), _File)

    def filled(entry: _List, words: str) -> str:
        own = {name: getattr(entry, name) for name in ("until", "gap", "may", "much", "bad", "rest")}
        return _filled(words, {**file.fragments, **own})

    def cues(entry: _List) -> Cues:
        entries = []
        for words in entry.words:
            needs = _NEEDS.match(words)
            wanted = words[needs.end() :] if needs else words
            found = re.compile(filled(entry, wanted), re.IGNORECASE)
            entries.append((tuple(needs[1].split("|")) if needs else (), found))
        return Cues(entry.weight, tuple(entries))

    def pattern(entry: _List, *, repeated: bool = False) -> re.Pattern[str]:
        joined = "|".join(f"(?:{filled(entry, words)})" for words in entry.words)
        return re.compile(f"(?:{joined}){{0,20}}" if repeated else joined, re.IGNORECASE)

    return Wording(
        before=tuple(map(cues, file.before)),
        after=tuple((entry.weight, pattern(entry)) for entry in file.after),
        lead=pattern(file.lead, repeated=True),
        verdict_yes=pattern(file.verdict_yes),
        verdict_no=pattern(file.verdict_no),
        denied_before=pattern(file.denied_before),
        denied_after=pattern(file.denied_after),
        hypothetical=pattern(file.hypothetical),
        revised=pattern(file.revised),
        framed=pattern(file.framed),
        passing=pattern(file.passing),
        none_fits=pattern(file.none_fits),
        next_question=pattern(file.next_question),
        unfinished=pattern(file.unfinished),
        reported=pattern(file.reported),
        decoy=pattern(file.decoy),
        conditional=pattern(file.conditional),
        withdrawn=pattern(file.withdrawn),
        weighed=pattern(file.weighed),
        unsure=pattern(file.unsure),
    )


def _filled(words: str, fragments: dict[str, str]) -> str:
    """An entry with its fragments in place; fragments may name fragments."""
    while _NAME.search(words):
        words = _NAME.sub(lambda match: fragments[match.group(1)], words)
    return words
