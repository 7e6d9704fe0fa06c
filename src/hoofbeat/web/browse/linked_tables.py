"""A report's tables with links of this site: the same figures and captions, rows that lead on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup
from msgspec.structs import replace

from hoofbeat.reports.model import Block, Columns, Details, Heading
from hoofbeat.reports.page import blocks_html
from hoofbeat.reports.tables import Table

__all__ = ["linked_html", "raise_headings"]

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
