"""How figures and foreign text are written: one format a kind of figure, and no character that could mislead.

Documents, answers and judgments are other people's text. `clean` makes what would act on the reader unseen (controls,
bidirectional overrides, invisible tag characters) visible; escaping for HTML, SVG and Markdown is each writer's own.
"""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["DASH", "Form", "clean", "count_of", "cut", "model_name", "one_line", "short_hash", "written"]

Form = Literal["text", "count", "amount", "share", "hundredths", "points", "number", "p"]
"""How a value is written: as it is, or as a count, a count that may have a decimal, a percentage of one decimal or of
two, percentage points, a plain number, a p value."""

DASH = "–"

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional controls
    "\u00ad\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb"  # invisible
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e007f]"  # not characters; tags
)
_BREAKS = re.compile("\r\n?|\u2028|\u2029|\u0085")


def clean(text: str) -> str:
    """The text with line breaks made one kind and every hidden character shown by its number."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", _BREAKS.sub("\n", text))


def one_line(text: str) -> str:
    """Cleaned, with every run of spaces and line breaks as one space."""
    return " ".join(clean(text).split())


def cut(text: str, length: int) -> str:
    """One line of at most `length` characters, with an ellipsis where some are missing."""
    line = one_line(text)
    if len(line) <= length:
        return line
    space = line.rfind(" ", max(0, length - 16), length)
    return line[: space if space > 0 else length - 1].rstrip() + "…"


def model_name(identity: str) -> str:
    """A model's identity without how it is run (context, threads, runtime), which the last chapter tells in full."""
    return identity.partition(";")[0]


def short_hash(sha256: str) -> str:
    """The first twelve digits of a hash, enough to compare by eye."""
    return sha256[:12]


def count_of(number: int, noun: str, plural: str = "") -> str:
    """`1 answer`, `1,204 answers`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def written(value: object, form: Form = "text") -> str:
    """A table's or chart's figure: a pair of numbers is a range, three a value with its interval, None a dash."""
    if value is None:
        return DASH
    if isinstance(value, tuple):
        *figure, low, high = value
        return f"{_number(figure[0], form)} ({_range(low, high, form)})" if figure else _range(low, high, form)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return _number(value, form)


def _number(value: float, form: Form) -> str:
    match form:
        case "count":
            return f"{value:,.0f}"
        case "amount":
            return f"{value:,.1f}".removesuffix(".0")
        case "share":
            return f"{100 * value:.1f}%"
        case "hundredths":
            return f"{100 * value:.2f}%"
        case "points":
            return _signed(f"{100 * value:+.1f}")
        case "p":
            return "< 0.001" if value < 0.001 else f"{value:.3f}"
        case "number":
            return _signed(f"{value:.3f}")
        case "text":
            return f"{value:,}"


def _signed(digits: str) -> str:
    """With a true minus sign, and no sign at zero."""
    if not digits.strip("+-0."):
        return digits.lstrip("+-")
    return digits.replace("-", "−")


def _range(low: float, high: float, form: Form) -> str:
    first, last = _number(low, form), _number(high, form)
    if form in {"share", "hundredths"}:
        return f"{first.removesuffix('%')}–{last}"
    return f"{first} to {last}" if form == "points" or low < 0 else f"{first}–{last}"
