"""A report's tables with links of this site: the same figures and captions, rows that lead on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup
from msgspec.structs import replace

from hoofbeat.reports.model import Block, Cell, Column, Columns, Details, Heading, Table
from hoofbeat.reports.nodes import Element, Node, element, markup
from hoofbeat.reports.page import blocks_html
from hoofbeat.reports.words import written

__all__ = ["linked_html", "raised"]

Href = Callable[[str], str]


def linked_html(blocks: Sequence[Block], href: Href | None = None) -> Markup:
    """Blocks as HTML. Tables whose rows lead somewhere in a report lead to where `href` says of their first cell.

    Without `href`, or where it is empty, a row leads nowhere: an anchor of a report's page is none of this site's.
    """
    made = Markup("")
    for block in raised(blocks):
        if isinstance(block, Table) and block.links and href:
            made += Markup("".join(markup(node) for node in _table(block, href)))  # noqa: S704 - escaped node by node
        elif (
            isinstance(block, Details) and href and any(isinstance(each, Table) and each.links for each in block.blocks)
        ):
            inside = linked_html(block.blocks, href)
            made += Markup('<details class="more"><summary>{}</summary><div class="inside">{}</div></details>').format(
                block.summary, inside
            )
        else:
            made += blocks_html([_unlinked(block)])
    return made


def raised(blocks: Sequence[Block]) -> list[Block]:
    """Blocks whose headings stand right below a page's own."""
    return [replace(block, level=2) if isinstance(block, Heading) else block for block in blocks]


def _unlinked(block: Block) -> Block:
    if isinstance(block, Table):
        return replace(block, links=())
    if isinstance(block, Columns | Details):
        return replace(block, blocks=tuple(_unlinked(each) for each in block.blocks))
    return block


def _table(block: Table, href: Href) -> list[Node]:
    heads = [element(_head("th", column), column.title, scope="col") for column in block.columns]
    rows = []
    for row in block.rows:
        link = href(str(row[0]))
        cells: list[Node] = []
        for place, (value, column) in enumerate(zip(row, block.columns, strict=True)):
            inside = _cell(value, column)
            if place == 0:
                words = element("a", *inside, href=link) if link else None
                cells.append(element("th", *([words] if words else inside), scope="row", dir="auto"))
            else:
                cells.append(element(_head("td", column), *inside, dir="auto"))
        rows.append(element("tr", *cells))
    table = element("table.linked", element("thead", element("tr", *heads)), element("tbody", *rows))
    n = element("span.n", f"n\u00a0=\u00a0{block.n:,} {block.unit}")
    made: list[Node] = [
        element("p.caption", block.caption, " ", n),
        element("div.table", table, role="region", aria_label=block.caption, tabindex="0"),
    ]
    return [*made, element("p.table-note", block.note)] if block.note else made


def _head(tag: str, column: Column) -> str:
    return tag if column.form == "text" else f"{tag}.num"


def _cell(value: Cell, column: Column) -> list[Node]:
    """A cell's lines: an interval stands below its value."""
    if isinstance(value, tuple) and len(value) == 3:
        small: Element = element("small", written(value[1:], column.form))
        return [written(value[0], column.form), small]
    return [written(value, column.form)]
