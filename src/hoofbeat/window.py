"""Fitting text into a model's window: how much room a call has, and what is left out where a text is too long.

Text is measured in UTF-8 bytes, not with a model's tokenizer: endpoints do not give theirs, and the same text must be
shown to every model with the same window. Bytes measure ideographs fairly (three bytes each), characters do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from msgspec import Struct

from hoofbeat.records import Failure, Passage

BYTES_PER_TOKEN = 3
"""The fewest bytes per token to reckon with, for what must fit or must not cost more than was said.

Measured on the teaching texts with the tokenizers of MiniLM (WordPiece, 30,522 entries) and SmolLM2 (BPE, 49,152): 4.2
on average, 3.6 for the densest document, 3.0 for JSON, and 2.7 for the densest thousand characters (a table). Older
vocabularies of 32,000 entries give some 15% less than these two. A text that overflows the window is a failed call,
one that leaves room unused costs little, so the low figure is the right one."""

TYPICAL_BYTES_PER_TOKEN = 4
"""The measured average, rounded down: what a call used where its endpoint does not count. Nothing is fitted by it."""

DEFAULT_WINDOW = 8192
"""Tokens, where neither the configuration nor what is known of the model nor the endpoint says."""

WindowSource = Literal["configured", "known", "unchecked", "endpoint", "assumed"]
_SOURCES: dict[WindowSource, str] = {
    "configured": "as configured",
    "known": "known for this model",
    "unchecked": "entered from memory, unchecked",
    "endpoint": "stated by the endpoint",
    "assumed": "assumed",
}


class ContextWindow(Struct, frozen=True, kw_only=True):
    """How many tokens a model reads and writes in one call, and how that is known."""

    tokens: int
    source: WindowSource

    def __str__(self) -> str:
        return f"{self.tokens:,} tokens, {_SOURCES[self.source]}"


def windows_of(settings: Mapping[str, object]) -> dict[str, ContextWindow]:
    """The windows that the settings of a manifest record, by the roles of the models."""
    return msgspec.convert(settings.get("windows", {}), dict[str, ContextWindow])


LIMITED_BY_WINDOW = "limited by window"
"""The metric of an audit that counts answers for which a window decided what was shown."""

ASSUMED_WINDOW = ContextWindow(tokens=DEFAULT_WINDOW, source="assumed")
"""The window of a model of which nothing is known."""

CUT = " (cut)"
"""Stands behind the id of a passage of which only the beginning is shown."""

OTHER_MODELS = "other_models"
"""The setting of a manifest: which other models than those asked for the replies say they are from."""

OUTPUT_CUT = "the output limit cut the answer off"
"""The warning of an answer that is not whole."""

_FENCE = 60  # bytes around a passage in a prompt, beside its heading
_HEADING = 120  # no more of a heading is shown
_LEAST_CUT = 200  # a beginning shorter than this is not worth showing
_WIDE_FENCE = 200  # bytes around a passage in the prompts that show beginnings


def size(text: str) -> int:
    """How many bytes a text takes."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def tokens_at_most(text: str) -> float:
    """An upper estimate of the tokens in a text."""
    return size(text) / BYTES_PER_TOKEN


def room_for(window: int | None, *, prompt: int, output: int, beside: Iterable[str] = ()) -> int:
    """How many bytes of material a call has room for; negative where not even the rest fits.

    `prompt` and `output` are the tokens of the prompt and of the longest reply, `beside` the texts shown as well.
    """
    return ((window or DEFAULT_WINDOW) - output - prompt) * BYTES_PER_TOKEN - sum(map(size, beside))


def beginning(text: str, room: int) -> str:
    """As much of a text's beginning as the room holds."""
    part = text[: max(0, room)]
    if part.isascii():
        return part
    data = part.encode("utf-8", "surrogatepass")
    end = min(room, len(data))
    while end < len(data) and data[end] & 0xC0 == 0x80:  # inside a character
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def ending(text: str, room: int) -> str:
    """As much of a text's end as the room holds."""
    part = text[max(0, len(text) - max(0, room)) :]
    if part.isascii():
        return part
    data = part.encode("utf-8", "surrogatepass")
    start = max(0, len(data) - room)
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")


def shown_size(passage: Passage) -> int:
    """How many bytes a passage takes in a prompt, with its heading and its fence."""
    return size(passage.text) + _around(passage)


def _around(passage: Passage) -> int:
    return _FENCE + size(passage.heading[:_HEADING])


def fit_passages(passages: Sequence[Passage], room: int) -> tuple[tuple[Passage, ...], tuple[str, ...]]:
    """The leading passages that fit whole, and the ids of the others.

    Where not even the first fits, its beginning is shown, and its id is recorded as cut.
    """
    kept: list[Passage] = []
    dropped: list[str] = []
    for passage in passages:
        needed = shown_size(passage)
        if needed <= room and not dropped:
            kept.append(passage)
            room -= needed
        elif not kept and not dropped and room > max(_LEAST_CUT, _around(passage)):
            text = beginning(passage.text, room - _around(passage))
            kept.append(msgspec.structs.replace(passage, text=text, end=passage.start + len(text)))
            dropped.append(passage.id + CUT)
        else:
            dropped.append(passage.id)
    return tuple(kept), tuple(dropped)


def nothing_fits(found: Sequence[Passage], kept: Sequence[Passage], window: int | None) -> Failure | None:
    """The failure where no passage of a planned answer fits: without passages it is another condition."""
    if not found or kept:
        return None
    why = f"no passage fits the model's window of {window or DEFAULT_WINDOW} tokens"
    return Failure(kind="context-overflow", message=why, attempts=0)


def fit_beginnings(passages: Iterable[Passage], reads: int, room: int) -> list[Passage]:
    """The beginnings of the leading passages that fit, each at most `reads` characters; of the first at least some."""
    kept: list[Passage] = []
    for passage in passages:
        text = passage.text[:reads]
        if not kept:
            text = beginning(text, max(room - _WIDE_FENCE, _LEAST_CUT))
        room -= size(text) + _WIDE_FENCE
        if room < 0 and kept:
            break
        kept.append(msgspec.structs.replace(passage, text=text, end=min(passage.end, passage.start + len(text))))
    return kept
