"""How figures and names are written in a report: one format for each kind of figure."""

from __future__ import annotations

from typing import Literal

Form = Literal["text", "count", "amount", "share", "hundredths", "points", "number", "p"]
"""How a value is written: as it is, or as a count, a count that may have a decimal, a percentage of one decimal or of
two, percentage points, a plain number, a p value."""

DASH = "–"


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
