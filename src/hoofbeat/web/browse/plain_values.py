"""Values of manifests and records in words: nobody should have to read JSON on a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hoofbeat.text import some_of

_MAX_COUNT = 60
_FEW = 8


def value_in_words(value: object, longest: int = 300) -> str:
    """A value as a person would write it; one with more than `longest` characters is cut."""
    match value:
        case None | bool():
            words = {None: "–", True: "yes", False: "no"}[value]
        case int():
            words = f"{value:,}"
        case float():
            words = f"{value:,.4g}"
        case Mapping():
            words = ", ".join(f"{name}: {value_in_words(each)}" for name, each in list(value.items())[:_MAX_COUNT])
        case list() | tuple():
            words = some_of([value_in_words(each) for each in value], _FEW, "; ")
        case _:
            words = str(value)
    return words if len(words) <= longest else f"{words[:longest]}… ({len(words):,} characters in total)"


def flat_values(values: Mapping[str, object], before: Sequence[str] = ()) -> Iterator[tuple[str, str]]:
    """Nested values one by one, each named by the way to it."""
    for name, value in list(values.items())[:_MAX_COUNT]:
        way = (*before, str(name))
        if isinstance(value, Mapping):
            yield from list(flat_values(value, way))[:_MAX_COUNT]
        else:
            yield " · ".join(way), value_in_words(value)
