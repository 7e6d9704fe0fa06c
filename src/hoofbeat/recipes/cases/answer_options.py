"""The options of a multiple-choice question: mutually exclusive, the right one among them, in a seeded order.

Proposals come from several places (the source's own differential diagnosis, a model, neighbours in ICD-10-CM). They are
merged in the order of their origins; what means the same as an option already taken is dropped, and said why.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.recipes.guards.diagnosis_names import begins_with_genus, same, same_as_answer

__all__ = [
    "CORRECT",
    "AnswerOption",
    "DroppedOption",
    "MergedOptions",
    "merge_options",
    "plain_option",
    "same",
    "shuffled",
    "unfit",
]

CORRECT = "correct"

_LABEL = re.compile(r"^(?:[-*•·]|\(?[A-Za-z][).:]|\(?\d{1,2}[).:])\s+")
_NOTHING = re.compile(
    r"^(?:(?:none|all|any|both|neither) of (?:the|these)\b.*|none|n/?a|unknown|other|others|not applicable|no diagnosis"
    r"|undetermined|unclear)$",
    re.IGNORECASE,
)
_MAX_WORDS = 25
_MARKS = ' *_`"“”'


class AnswerOption(NamedTuple):
    """One option and where it came from; the right one comes from `CORRECT`."""

    text: str
    origin: str


class DroppedOption(NamedTuple):
    """A proposal that did not become an option, and why not."""

    text: str
    origin: str
    why: str


class MergedOptions(Struct, frozen=True, kw_only=True):
    """Options that exclude each other, the right one first, and what was left out."""

    options: tuple[AnswerOption, ...]
    dropped: tuple[DroppedOption, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """The options' texts, the right one first."""
        return tuple(option.text for option in self.options)


def merge_options(
    correct: str,
    proposals: Sequence[tuple[str, Sequence[str]]],
    *,
    maximum: int,
    synonyms: Sequence[str] = (),
    vocabularies: Sequence[Vocabulary] = (),
) -> MergedOptions:
    """At most `maximum` options, the right one counted; `proposals` are (origin, texts), the better origins first.

    `synonyms` are other names of the right one, and more specific ones that a report has.
    """
    options = [AnswerOption(plain_option(correct), CORRECT)]
    dropped: list[DroppedOption] = []
    for origin, texts in proposals:
        for text in texts:
            option = plain_option(text)
            why = unfit(option) or _like_another(option, options, synonyms, vocabularies)
            if not why and len(options) >= maximum:
                why = "enough options without it"
            if why:
                dropped.append(DroppedOption(option or text, origin, why))
            else:
                options.append(AnswerOption(option, origin))
    return MergedOptions(options=tuple(options), dropped=tuple(dropped))


def plain_option(text: str) -> str:
    """An option as one line without its letter or number, quotation marks and full stop.

    A capital letter that shortens an organism's genus ("M. canis sepsis") is no option's letter.
    """
    line = " ".join(text.split())
    while (cut := _without_label(line.strip(_MARKS)).rstrip(".;:")) != line:
        line = cut
    return line


def _without_label(line: str) -> str:
    return line if begins_with_genus(line) else _LABEL.sub("", line)


def shuffled(options: Sequence[str], rng: random.Random) -> tuple[str, ...]:
    """The options in a random order that depends on the generator alone, not on the order they are given in."""
    ordered = sorted(options)
    rng.shuffle(ordered)
    return tuple(ordered)


def unfit(option: str) -> str:
    """Why a text can't be an option whatever the question: empty, no condition, a sentence; nothing when it can."""
    if not any(c.isalpha() for c in option):
        return "empty"
    if _NOTHING.match(option):
        return "names no condition"
    return "far too long for an option" if len(option.split()) > _MAX_WORDS else ""


def _like_another(
    option: str, options: Sequence[AnswerOption], synonyms: Sequence[str], vocabularies: Sequence[Vocabulary]
) -> str:
    for taken in options:
        names = synonyms if taken.origin == CORRECT else ()
        if why := same_as_answer(option, taken.text, names, vocabularies):
            what = "the right answer" if taken.origin == CORRECT else taken.text
            return f"means the same as {what}: {why}"
    return ""
