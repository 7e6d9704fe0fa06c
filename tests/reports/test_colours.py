"""Everything written can be read: contrast of at least 4.5 to 1, in light and dark and on paper."""

from __future__ import annotations

import re
from importlib import resources

import pytest

TEMPLATES = resources.files("hoofbeat.reports") / "templates"


def _palettes() -> dict[str, dict[str, str]]:
    """The custom properties of each scheme; dark and print change what they name."""
    found: dict[str, dict[str, str]] = {"light": {}, "dark": {}, "print": {}}
    for name in ("charts.css", "page.css"):
        css = (TEMPLATES / name).read_text("utf-8")
        for scheme, opening in (("light", "^"), ("dark", r"scheme: dark\)"), ("print", "@media print")):
            block = re.search(rf"{opening}[^{{]*\{{\s*(?::root[^{{]*\{{)?([^}}]*)\}}", css)
            if block:
                found[scheme].update(re.findall(r"--(\w+): (#[0-9a-f]{6})", block[1]))
    return {scheme: {**found["light"], **colours} for scheme, colours in found.items()}


PAIRS = [
    *((f"i{n}", f"l{n}") for n in range(5)),
    *(("ink", f"q{n}") for n in range(5)),
    *(("ink", f"d{n}") for n in range(5)),
    ("paper", "d5"),
    ("paper", "d6"),
    ("paper", "q5"),
    ("paper", "q6"),
    *((ink, "paper") for ink in ("ink", "soft", "link", "good", "bad")),
    ("ink", "panel"),
    ("soft", "panel"),
    ("ink", "warm"),
    ("ink", "bar"),
]


def _light(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("ink", "ground"), PAIRS)
def test_contrast(scheme: str, ink: str, ground: str) -> None:
    palette = _palettes()[scheme]
    lighter, darker = sorted((_light(palette[ink]), _light(palette[ground])), reverse=True)
    assert (lighter + 0.05) / (darker + 0.05) >= 4.5


def test_schemes_differ() -> None:
    palettes = _palettes()
    assert palettes["dark"]["paper"] != palettes["light"]["paper"] == palettes["print"]["paper"]
