"""What every chart is drawn with: escaped text, rounded numbers, and colours named by class.

A chart's colours come from custom properties of the page around it, so one drawing serves light and dark; `standalone`
gives a chart its own copy of them, for a separate file. The same data give the same bytes.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources

from hoofbeat.text import one_line

WIDE, NARROW = 760, 350
"""The two widths charts are drawn for: a page, and a phone."""

SERIES = 6
"""How many series have a colour of their own."""

TONES = 5
"""How many ordered labels have a colour of their own; the first is the neutral one."""

TEXT, SMALL = 13.0, 12.0
_WIDE_LETTERS, _THIN_LETTERS = frozenset("MWmw@%—…"), frozenset(" .,:;'|!ijlIft()[]-")
_HEIGHT = re.compile(r'<svg [^>]* height="([0-9.]+)"')
_MARGIN = 24.0


def num(value: float) -> str:
    """A coordinate with at most one decimal."""
    rounded = round(value, 1) + 0.0
    return str(int(rounded)) if rounded.is_integer() else f"{rounded:.1f}"


def text_width(text: str, size: float = TEXT) -> float:
    """About how wide the text is; browsers differ, so it is measured with something to spare."""
    units = 0.0
    for letter in text:
        if unicodedata.east_asian_width(letter) in "WF":
            units += 1.05
        elif letter in _WIDE_LETTERS:
            units += 0.98
        elif letter in _THIN_LETTERS:
            units += 0.38
        else:
            units += 0.74 if letter.isupper() else 0.635
    return units * size


def wrap(text: str, width: float, size: float = TEXT, lines: int = 2) -> list[str]:
    """The text in at most this number of lines of this width, broken at spaces if possible; the rest is an ellipsis."""
    rest = one_line(text)
    found: list[str] = []
    while rest and len(found) < lines:
        fits = _fitting(rest, width, size)
        if fits == len(rest):
            found.append(rest)
            return found
        if len(found) == lines - 1:
            found.append(rest[: max(1, _fitting(rest, width - text_width("…", size), size))].rstrip() + "…")
            return found
        space = rest.rfind(" ", 1, fits + 1)
        end = space if space > fits // 3 else max(1, fits)
        found.append(rest[:end].rstrip())
        rest = rest[end:].lstrip()
    return found or [""]


def _fitting(text: str, width: float, size: float) -> int:
    taken = 0.0
    for place, letter in enumerate(text):
        taken += text_width(letter, size)
        if taken > width:
            return place
    return len(text)


def ticks(low: float, high: float, about: int = 5, *, whole: bool = False) -> list[float]:
    """Round numbers that span low to high, at least two; whole ones if asked.

    What differs only by rounding is taken as one number.
    """
    if not high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        high = low + 1
    raw = max((high - low) / max(1, about), 1.0 if whole else 0.0)
    power = 10.0 ** math.floor(math.log10(raw))
    factors = (1, 2, 5, 10) if whole else (1, 2, 2.5, 5, 10)
    step = next(factor * power for factor in factors if factor * power >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(place * step, 10) + 0.0 for place in range(first, max(last, first + 1) + 1)]


class SvgDrawing:
    """An SVG being drawn; coordinates are pixels of its own width."""

    def __init__(self, width: float) -> None:
        self.width = width
        self._parts: list[str] = []

    def rect(
        self, x: float, y: float, width: float, height: float, tone: str, *, tip: str = "", round_: float = 0
    ) -> None:
        """A filled rectangle with an optional tooltip."""
        corner = f' rx="{num(round_)}"' if round_ else ""
        size = f'width="{num(max(0, width))}" height="{num(height)}"'
        body = f'<rect class="{tone}" x="{num(x)}" y="{num(y)}" {size}{corner}'
        self._parts.append(f"{body}>{_tip(tip)}</rect>" if tip else f"{body}/>")

    def line(self, x1: float, y1: float, x2: float, y2: float, tone: str) -> None:
        """A straight line."""
        self._parts.append(f'<line class="{tone}" x1="{num(x1)}" y1="{num(y1)}" x2="{num(x2)}" y2="{num(y2)}"/>')

    def path(self, points: Sequence[tuple[float, float]], tone: str, *, closed: bool = False) -> None:
        """A line through points, or the area they enclose."""
        if points:
            steps = " ".join(f"{num(x)},{num(y)}" for x, y in points)
            self._parts.append(f'<{"polygon" if closed else "polyline"} class="{tone}" points="{steps}"/>')

    def dot(self, x: float, y: float, radius: float, tone: str, *, tip: str = "") -> None:
        """A filled circle with an optional tooltip."""
        body = f'<circle class="{tone}" cx="{num(x)}" cy="{num(y)}" r="{num(radius)}"'
        self._parts.append(f"{body}>{_tip(tip)}</circle>" if tip else f"{body}/>")

    def text(
        self, x: float, y: float, words: str, tone: str = "t", *, anchor: str = "", tip: str = "", turn: float = 0
    ) -> None:
        """A line of text on its base line; `turn` tilts it by that many degrees around its place."""
        place = f' text-anchor="{anchor}"' if anchor else ""
        place += f' transform="rotate({num(turn)} {num(x)} {num(y)})"' if turn else ""
        shown = escape(one_line(words))
        self._parts.append(f'<text class="{tone}" x="{num(x)}" y="{num(y)}"{place}>{shown}{_tip(tip)}</text>')

    def picture(self, x: float, y: float, svg: str) -> float:
        """Another drawing in this one, with its upper left corner there; returns where it ends."""
        found = _HEIGHT.match(svg)
        if found is None:
            raise ValueError("not a drawing that states its height")
        self._parts.append(svg.replace("<svg ", f'<svg x="{num(x)}" y="{num(y)}" ', 1))
        return y + float(found[1])

    def open_link(self, href: str, label: str, *, reached: bool = True) -> None:
        """What is drawn until `close_link` leads to an anchor of the page; by keyboard, too, if it is `reached`."""
        if not href.startswith("#"):
            raise ValueError(f"a chart links within its page only, not to {href!r}")
        named = f'aria-label="{escape(one_line(label))}"' if reached else 'tabindex="-1"'
        self._parts.append(f'<a href="{escape(href)}" {named}>')

    def close_link(self) -> None:
        """End of the link."""
        self._parts.append("</a>")

    def svg(self, height: float, *, title: str, description: str = "", group: bool = False) -> str:
        """The whole picture. One with links or pictures in it is a group to assistive software, else an image."""
        role, name = "group" if group else "img", escape(one_line(title))
        size = f'viewBox="0 0 {num(self.width)} {num(height)}" width="{num(self.width)}" height="{num(height)}"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="hb" role="{role}" aria-label="{name}" {size}>'
        about = f"<desc>{escape(one_line(description))}</desc>" if description else ""
        return f"{head}<title>{name}</title>{about}{''.join(self._parts)}</svg>"


def _tip(text: str) -> str:
    return f"<title>{escape(one_line(text))}</title>" if text else ""


@cache
def chart_css() -> str:
    """The style of charts: colours as custom properties, for light and dark."""
    return (resources.files("hoofbeat.reports") / "templates" / "charts.css").read_text("utf-8")


def sheet(charts: Sequence[tuple[str, str]], *, title: str, width: int = WIDE) -> str:
    """Charts (heading, drawing) below each other with a margin around them: one drawing, for a separate file."""
    drawing = SvgDrawing(width + 2 * _MARGIN)
    y = _MARGIN
    for number, line in enumerate(wrap(title, width / 1.3)):
        y += 16 + 6 * (number > 0)
        drawing.text(_MARGIN, y, line, "t h")
    for heading, chart in charts:
        y += 34
        if heading:
            drawing.text(_MARGIN, y, wrap(heading, width / 1.1, lines=1)[0], "t b")
            y += 14
        y = drawing.picture(_MARGIN, y, chart)
    return drawing.svg(y + _MARGIN, title=title, group=True)


def standalone(svg: str) -> str:
    """A chart with its style inside, to be kept as a file."""
    head, _, rest = svg.partition(">")
    return f"{head}><style>{escape(_own_css(), quote=False)}</style>{rest}\n"


@cache
def _own_css() -> str:
    """The style of a separate file: with its ground, and without custom properties, which many programs don't know.

    What knows no media queries either (most converters) shows the light colours.
    """
    css = chart_css()
    start = css.index("svg.hb { font-family")
    rules = f"{css[start:]}svg.hb {{ background: var(--paper); }}\n"
    light, dark, paper = (dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", part)) for part in css[:start].split("@media"))
    coloured = "".join(line for line in rules.splitlines(keepends=True) if "var(" in line)
    return (
        _resolved(rules, light)
        + f"@media (prefers-color-scheme: dark) {{\n{_resolved(coloured, {**light, **dark})}}}\n"
        + f"@media print {{\n{_resolved(coloured, {**light, **paper})}}}\n"
    )


def _resolved(css: str, palette: Mapping[str, str]) -> str:
    return re.sub(r"var\(--(\w+)\)", lambda match: palette[match[1]], css)
