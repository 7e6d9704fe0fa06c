"""Tables whose rows and cells link to pages: a report's tables, and matrices of sources.

Colour is never the only sign: every cell has its figure or the beginning of its label, and a tooltip with the rest.
The tables are trees of our own elements; all foreign text in them is escaped node by node.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from markupsafe import Markup
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.findings.source_profiles import PairRates
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import abbreviations
from hoofbeat.reports.charts.svg import ticks
from hoofbeat.reports.model import Block, Columns, Details, Heading
from hoofbeat.reports.nodes import Element, Node, element, markup
from hoofbeat.reports.page import blocks_html
from hoofbeat.reports.tables import Table, written

Href = Callable[[str], str]


def linked_html(blocks: Sequence[Block], href: Href | None = None) -> Markup:
    """Blocks as HTML. Tables whose rows lead somewhere in a report lead to where `href` says of their first cell.

    Without `href`, or where it is empty, a row leads nowhere: an anchor of a report's page is none of this site's.
    """
    return blocks_html([_linked(block, href) for block in raise_headings(blocks)])


def raise_headings(blocks: Sequence[Block]) -> list[Block]:
    """Blocks whose headings are right below a page's own."""
    return [replace(block, level=2) if isinstance(block, Heading) else block for block in blocks]


def _linked(block: Block, href: Href | None) -> Block:
    if isinstance(block, Table):
        links = tuple(href(str(row[0])) for row in block.rows) if href and block.links else ()
        return replace(block, links=links)
    if isinstance(block, Columns | Details):
        return replace(block, blocks=tuple(_linked(each, href) for each in block.blocks))
    return block


TRIANGLE = 40
"""Above so many sources each pair stands once, below the diagonal."""

SHADES = 7
_FEW = 5


def rate_matrix(rates: PairRates, order: Sequence[str], link: Callable[[str, str], str]) -> Markup:
    """How often every two sources diverge where both speak; `order` are the sources down and across."""
    places = {name: place for place, name in enumerate(rates.sources)}
    shares = [
        share
        for x in range(len(rates.sources))
        for y in range(x + 1, len(rates.sources))
        if (share := rates.share(x, y)) is not None
    ]
    high = ticks(0.0, max(shares, default=0.0), 4)[-1] if any(shares) else 1.0

    def cell(a: str, b: str) -> Element:
        x, y = places[a], places[b]
        n, count, share = rates.judged[x][y], rates.diverging[x][y], rates.share(x, y)
        if share is None:
            return element("span.cell.blank", "–", title=f"{a} and {b}: no pair was judged")
        shade = min(SHADES - 1, math.floor(share / high * SHADES))
        few = ".few" if n < _FEW else ""
        said = f"{a} and {b}: {count:,} of {n:,} judged pairs diverge"
        return element(f"a.cell.d{shade}{few}", f"{100 * share:.0f}", href=link(a, b), title=said)

    key = element("p.key", "Share of judged pairs that diverge, in per cent: ", *_shades(high))
    table = _table(order, cell, "How often every two sources diverge, in per cent of judged pairs", half=TRIANGLE)
    return _markup(key, table)


def _shades(high: float) -> list[Node]:
    made: list[Node] = []
    for shade in range(SHADES):
        low, up = high * shade / SHADES, high * (shade + 1) / SHADES
        made += [element(f"span.cell.d{shade}", f"{100 * low:.0f}–{100 * up:.0f}"), " "]
    return [*made, element("span.cell.blank", "–"), " no judged pair ", element("span.cell.few", "n"), " fewer than 5"]


def label_matrix(
    names: Sequence[str],
    labels: Sequence[str],
    cells: NDArray[np.int8],
    link: Callable[[int, int], str],
) -> Markup:
    """The labels of every two sources on one question; a cell leads to its pair."""
    short = abbreviations(labels)
    places = {name: place for place, name in enumerate(names)}

    def cell(a: str, b: str) -> Element:
        x, y = places[a], places[b]
        code = int(cells[x, y])
        if code == -2:
            return element("span.cell.blank", "", title=f"{a} and {b}: not compared")
        if code == -1:
            return element("a.cell.blank", "?", href=link(x, y), title=f"{a} and {b}: no label")
        tone = f"tone{tone_of(code, len(labels))}"
        said = f"{a} and {b}: {labels[code]}"
        return element(f"a.cell.{tone}", short[labels[code]], href=link(x, y), title=said)

    return _markup(_table(names, cell, "How every two sources relate on this question", half=TRIANGLE))


def label_key(labels: Sequence[str], counts: Mapping[str, int] | None = None) -> Markup:
    """What the colours and the short words mean, with how many pairs have each label where that is known."""
    short = abbreviations(labels)
    made: list[Node] = []
    for place, label in enumerate(labels):
        number = f" {written(counts.get(label, 0), 'count')}" if counts is not None else ""
        made += [element(f"span.cell.tone{tone_of(place, len(labels))}", short[label]), f" {label}{number}  "]
    return _markup(element("p.key", *made, element("span.cell.blank", "?"), " no label"))


def _table(names: Sequence[str], cell: Callable[[str, str], Element], title: str, *, half: int) -> Element:
    """The names down, their numbers across; a large table has its lower half only."""
    triangle = len(names) > half
    heads = [element("th", str(place + 1), scope="col", title=name) for place, name in enumerate(names)]
    rows = [element("tr", element("td.corner"), *heads)]
    for row, name in enumerate(names):
        number = element("span.no", str(row + 1))
        line: list[Node] = [element("th", number, " ", name, scope="row", dir="auto", title=name)]
        for column, other in enumerate(names[: row + 1] if triangle else names):
            line.append(element("td.self") if row == column else element("td", cell(name, other)))
        rows.append(element("tr", *line))
    many = ".many" if triangle else ""
    table = element("table", *rows, aria_label=title)
    return element(f"div.matrix{many}", table, role="region", aria_label=title, tabindex="0")


def _markup(*nodes: Node) -> Markup:
    return Markup("".join(markup(node) for node in nodes))  # noqa: S704 - escaped node by node
