"""A report as one HTML file that needs nothing else: no server, no network, no font, no library.

Everything foreign is escaped by the templates and cleaned of hidden characters on the way in. The page's policy allows
its one style and its one script by their hashes; whatever else a text might smuggle in does not run. Long viewers lie
in the page as compressed data, which no browser runs; the script builds their text nodes when they are opened.

The site's pages show the same blocks, with tables whose rows and cells link to pages, and matrices of sources. Colour
is never the only sign: every cell has its figure or the beginning of its label, and a tooltip with the rest.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.findings.source_profiles import PairRates
from hoofbeat.reports.charts import chart_css
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import abbreviations
from hoofbeat.reports.charts.svg import ticks
from hoofbeat.reports.model import Block, Columns, Details, Entry, Heading, Report, Viewer, viewers_in
from hoofbeat.reports.tables import Cell, Column, Table, written, written_interval
from hoofbeat.reports.viewers import Element, Node, block_nodes, codes_of, element, markup, places_of
from hoofbeat.store.files import atomic_write, slug
from hoofbeat.text import clean

_TEMPLATES = resources.files("hoofbeat.reports") / "templates"


def to_html(report: Report) -> str:
    """The whole page."""
    return "".join(_pieces(report))


def write_html(report: Report, path: Path) -> None:
    """Write the page to a file, piece by piece, so that a page of many megabytes is never held as one text."""
    with atomic_write(path) as stream:
        for piece in _pieces(report):
            stream.write(piece.encode())


def _pieces(report: Report) -> Iterator[str]:
    """The page up to its data, the data of each long viewer, and the script that reads it."""
    style, script = page_style(), _asset("grid.js") + _asset("viewer.js")
    yield (
        _environment()
        .get_template("report.html.j2")
        .render(
            report=report,
            policy=content_policy(style, script),
            style=Markup(style),  # noqa: S704 - our own file
        )
    )
    for viewer in viewers_in(report.blocks):
        if viewer.packed:
            for piece in (viewer.packed.heads, *viewer.packed.bodies):
                data = base64.b64encode(piece).decode()
                yield f'<script type="application/octet-stream" data-for="{escape(viewer.id)}">{data}</script>\n'
    yield f"<script>{script}</script>\n</body>\n</html>\n"


def content_policy(style: str, script: str) -> str:
    """The page's Content-Security-Policy: this style, this script, and nothing from anywhere else."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


@cache
def _asset(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def page_style() -> str:
    """The style of a report, which other pages may use to look the same."""
    return f"{chart_css()}{_asset('page.css')}"


def blocks_html(blocks: Sequence[Block]) -> Markup:
    """Some blocks as they stand in a report, for another page; long viewers need the report's own script."""
    show = _environment().get_template("blocks.html.j2").module.show  # type: ignore[attr-defined]
    return Markup("").join(show(block) for block in blocks)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("hoofbeat.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters.update(
        drawing=_drawing, cell=_cell, numeric=_numeric, slug=slug, href=_href, leads_on=_leads_on
    )
    environment.filters.update(drawn=_drawn, codes=_codes, places=_places)
    return environment


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _drawing(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - charts escape their text


def _drawn(block: Block) -> Markup:
    return Markup("".join(markup(node) for node in block_nodes(block)))  # noqa: S704 - escaped node by node


def _codes(entry: Entry, viewer: Viewer) -> str:
    """An item's states under each system, as the script reads them."""
    return " ".join(map(str, codes_of(viewer, entry)))


def _places(entry: Entry, viewer: Viewer) -> str:
    """An item's values of each facet, as the script reads them."""
    return ";".join(" ".join(map(str, mine)) for mine in places_of(viewer, entry))


def _cell(value: Cell, column: Column) -> list[str]:
    """A cell's lines: an interval stands below its value."""
    if isinstance(value, tuple) and len(value) > 2:
        return [written(value[0], column.form), written_interval(value[1:], column.form)]
    return [written(value, column.form)]


def _numeric(column: Column) -> bool:
    return column.form != "text"


def _leads_on(table: Table) -> bool:
    """Whether rows lead to other pages of a site: their links are then made larger, for fingers."""
    return any(link.startswith("/") for link in table.links)


def _href(link: str) -> str:
    """Links lead within the page, or to another page of the site that shows the blocks; nowhere else."""
    return link if link.startswith("#") or (link[:1] == "/" and link[1:2] not in ("/", "\\")) else ""


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
"""Above this number of sources each pair appears once, below the diagonal."""

SHADES = 7
_FEW = 5


def rate_matrix(
    rates: PairRates, order: Sequence[str], link: Callable[[str, str], str], name: Callable[[str], str] = str
) -> Markup:
    """How often every two sources diverge where both speak; `order` are the sources down and across, by `name`."""
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
            return element("span.cell.blank", "–", title=f"{name(a)} and {name(b)}: no pair was judged")
        shade = min(SHADES - 1, math.floor(share / high * SHADES))
        few = ".few" if n < _FEW else ""
        said = f"{name(a)} and {name(b)}: {count:,} of {n:,} judged pairs diverge"
        return element(f"a.cell.d{shade}{few}", f"{100 * share:.0f}", href=link(a, b), title=said)

    key = element("p.key", "Share of judged pairs that diverge, in per cent: ", *_shades(high))
    table = _table(order, cell, "How often every two sources diverge, in per cent of judged pairs", name)
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

    return _markup(_table(names, cell, "How every two sources relate on this question", str))


def label_key(labels: Sequence[str], counts: Mapping[str, int] | None = None) -> Markup:
    """What the colours and the short words mean, with how many pairs have each label where that is known."""
    short = abbreviations(labels)
    made: list[Node] = []
    for place, label in enumerate(labels):
        number = f" {written(counts.get(label, 0), 'count')}" if counts is not None else ""
        made += [element(f"span.cell.tone{tone_of(place, len(labels))}", short[label]), f" {label}{number}  "]
    return _markup(element("p.key", *made, element("span.cell.blank", "?"), " no label"))


def _table(
    names: Sequence[str], cell: Callable[[str, str], Element], title: str, shown: Callable[[str], str]
) -> Element:
    """The names down, their numbers across; a large table has its lower half only."""
    triangle = len(names) > TRIANGLE
    heads = [element("th", str(place + 1), scope="col", title=shown(name)) for place, name in enumerate(names)]
    rows = [element("tr", element("td.corner"), *heads)]
    for row, name in enumerate(names):
        number = element("span.no", str(row + 1))
        line: list[Node] = [element("th", number, " ", shown(name), scope="row", dir="auto", title=shown(name))]
        for column, other in enumerate(names[: row + 1] if triangle else names):
            line.append(element("td.self") if row == column else element("td", cell(name, other)))
        rows.append(element("tr", *line))
    many = ".many" if triangle else ""
    table = element("table", *rows, aria_label=title)
    return element(f"div.matrix{many}", table, role="region", aria_label=title, tabindex="0")


def _markup(*nodes: Node) -> Markup:
    return Markup("".join(markup(node) for node in nodes))  # noqa: S704 - escaped node by node
