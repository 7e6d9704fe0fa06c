"""A model as it stands in a grid: `SPEC`, or `SPEC[temperature=0.6,samples=3,seed=7,max_tokens=800]`.

The whole of what is written names the system in every table, so that one model at two temperatures is two systems.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError

_WRITTEN = re.compile(r"(?P<spec>.+?)\[(?P<options>[^\[\]]*=[^\[\]]*)\]", re.DOTALL)
MAX_SAMPLES = 1024


class SamplingSettings(Struct, frozen=True, kw_only=True):
    """How answers are drawn. Sample number n is drawn with the seed plus n; at temperature 0 all would be the same.

    `max_tokens` is the most an answer may be long; None leaves it to the prompt.
    """

    temperature: float = 0.0
    seed: int = 0
    max_tokens: int | None = None


GREEDY = SamplingSettings()


class Answerer(Struct, frozen=True, kw_only=True):
    """A model with how it is asked: `written` is its name in every table, `spec` what is loaded."""

    written: str
    spec: str
    samples: int = 1
    sampling: SamplingSettings = GREEDY


def parse_answerer(text: str, *, samples: int = 1, sampling: SamplingSettings = GREEDY) -> Answerer:
    """Read a model with its options; what it does not say is as given."""
    words = text.strip()
    match = _WRITTEN.fullmatch(words)
    if not match:
        return _checked(Answerer(written=words, spec=words, samples=samples, sampling=sampling))
    given: dict[str, int | float] = {}
    for part in match["options"].split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if name not in _OPTIONS or not equals:
            raise UsageError(
                f"{text!r} has no option {part.strip()!r}",
                fix=f"use {', '.join(_OPTIONS)}, for example: embedded[temperature=0.6,samples=3]",
            )
        if name in given:
            raise UsageError(f"{text!r} gives {name} twice", fix="remove one")
        given[name] = _value(text, name, value)
    spec = match["spec"].strip()
    listed = ",".join(f"{name}={given[name]}" for name in _OPTIONS if name in given)
    count = int(given.pop("samples", samples))
    return _checked(
        Answerer(
            written=f"{spec}[{listed}]",
            spec=spec,
            samples=count,
            sampling=msgspec.convert({**msgspec.structs.asdict(sampling), **given}, SamplingSettings),
        )
    )


def _checked(answerer: Answerer) -> Answerer:
    if answerer.samples > 1 and not answerer.sampling.temperature:
        raise UsageError(
            f"{answerer.samples} samples at temperature 0 would all be the same",
            where=answerer.written,
            fix="set --temperature 0.6, or ask for one sample",
        )
    return answerer


def _whole(low: int, high: int) -> Callable[[str], int | None]:
    def read(value: str) -> int | None:
        good = value.isascii() and value.isdigit() and len(value) <= 12 and low <= int(value) <= high
        return int(value) if good else None

    return read


def _temperature(value: str) -> float | None:
    good = re.fullmatch(r"\d(?:\.\d{0,6})?|\.\d{1,6}", value, re.ASCII) and float(value) <= 2
    return float(value) if good else None


_OPTIONS: dict[str, tuple[Callable[[str], int | float | None], str]] = {
    "temperature": (_temperature, "a number from 0 to 2"),
    "samples": (_whole(1, MAX_SAMPLES), f"a whole number from 1 to {MAX_SAMPLES}"),
    "seed": (_whole(0, 2**31 - 1), "a whole number, 0 or more"),
    "max_tokens": (_whole(1, 1_000_000), "a whole number, 1 or more"),
}


def _value(text: str, name: str, value: str) -> int | float:
    read, allowed = _OPTIONS[name]
    found = read(value)
    if found is None:
        raise UsageError(f"{text!r}: {name} can't be {value!r}", fix=f"give {name} as {allowed}")
    return found
