"""A report as one HTML file that needs nothing else: no server, no network, no font, no library.

Everything foreign is escaped by the templates and cleaned of hidden characters on the way in. The page's policy allows
its one style and its one script by their hashes; whatever else a text might smuggle in does not run. Long viewers lie
in the page as compressed data, which no browser runs; the script builds their text nodes when they are opened.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from hoofbeat.reports.charts import chart_css
from hoofbeat.reports.model import Block, Entry, Report, Viewer, viewers_in
from hoofbeat.reports.nodes import markup
from hoofbeat.reports.tables import Cell, Column, Table, written
from hoofbeat.reports.viewers import block_nodes, codes_of, places_of
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
    if isinstance(value, tuple) and len(value) == 3:
        return [written(value[0], column.form), written(value[1:], column.form)]
    return [written(value, column.form)]


def _numeric(column: Column) -> bool:
    return column.form != "text"


def _leads_on(table: Table) -> bool:
    """Whether rows lead to other pages of a site: their links are then made larger, for fingers."""
    return any(link.startswith("/") for link in table.links)


def _href(link: str) -> str:
    """Links lead within the page, or to another page of the site that shows the blocks; nowhere else."""
    return link if link.startswith("#") or (link[:1] == "/" and link[1:2] not in ("/", "\\")) else ""
