"""Text inside JATS elements: runs of characters, formulas once, exponents as exponents, and the cells of tables.

This is where an import spends its time, so elements are collected into one list instead of being passed up through
generators, and an element without children is read at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from hoofbeat.corpus.readers.building import squeeze

__all__ = ["child_text", "collect", "href", "inline_text", "table_rows"]

WIDEST_SPAN = 50

Piece = str | etree._Element

NONE: frozenset[str] = frozenset()
_UNSPOKEN = frozenset(
    {"alt-text", "long-desc", "object-id", "inline-graphic", "graphic", "inline-media", "annotation", "annotation-xml"}
)
_SPACED = frozenset(
    {"break", "hr", "disp-formula", "label", "p", "td", "th", "entry", "term", "def", "def-item", "list-item", "title"}
    | {"fn", "x", "tr", "row"}
)
_FORMULAS = frozenset({"disp-formula", "inline-formula", "chem-struct"})
_SUPERSCRIPT = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_EXPONENT = re.compile(r"[+\-−–]?\d{1,3}")
_TEX = re.compile(r"\\begin\{document\}(.*?)\\end\{document\}", re.DOTALL)


def inline_text(element: etree._Element | None) -> str:
    """All text inside an element, whitespace normalised."""
    if element is None:
        return ""
    if not len(element):
        return squeeze(element.text or "")
    pieces: list[Piece] = []
    collect(element, pieces)
    return squeeze("".join(map(str, pieces)))


def child_text(element: etree._Element, name: str) -> str:
    """The text of the first child of that name."""
    return inline_text(element.find(name) if "/" in name else next(element.iterchildren(name), None))


def href(element: etree._Element) -> str:
    """The element's link, as written."""
    return next((str(value) for name, value in element.attrib.items() if str(name).endswith("href")), "")


def collect(
    element: etree._Element, pieces: list[Piece], blocks: frozenset[str] = NONE, aside: frozenset[str] = NONE
) -> None:
    """Put an element's text into `pieces`, the outermost `blocks` at their place; children `aside` are left out."""
    if element.text:
        pieces.append(element.text)
    for child in element:
        tag = child.tag
        if tag in blocks:
            pieces.append(child)
        elif tag == "math":
            pieces.append(_math(child))
        elif tag == "tex-math":
            pieces.append(_tex(child))
        elif tag == "sup" and _is_exponent(element, child):
            pieces.append((child.text or "").strip().translate(_SUPERSCRIPT))
        elif tag not in _UNSPOKEN and tag not in aside:
            space = tag in _SPACED
            if space:
                pieces.append(" ")
            if len(child):
                collect(child, pieces, NONE if tag in _FORMULAS else blocks)
            elif child.text:
                pieces.append(child.text)
            if space:
                pieces.append(" ")
        if child.tail:
            pieces.append(child.tail)


def _tex(node: etree._Element) -> str:
    """A formula's TeX without its preamble, unless the formula is there as MathML too."""
    parent = node.getparent()
    if parent is not None and parent.find(".//math") is not None:
        return ""
    text = node.text or ""
    found = _TEX.search(text)
    return found.group(1).strip(" $\n") if found else text


def _math(node: etree._Element) -> str:
    """MathML as a line of text: fractions with a stroke, powers as powers; what it has no form for stands as it is."""
    tag = node.tag
    if tag in _UNSPOKEN:
        return ""
    parts = [_math(child) + (child.tail or "").strip() for child in node]
    if tag == "msup" and len(parts) == 2:
        base, power = parts
        return base + (power.translate(_SUPERSCRIPT) if _EXPONENT.fullmatch(power) else f"^{_grouped(power)}")
    if tag == "mfrac" and len(parts) == 2:
        return f"{_grouped(parts[0])}/{_grouped(parts[1])}"
    if tag == "msqrt":
        return f"√{_grouped(''.join(parts))}"
    if tag in {"mtr", "mlabeledtr"}:
        return " ".join(parts) + " "
    text = node.text or ""
    return text + "".join(parts) if tag in {"mtext", "mspace", "ms"} else text.strip() + "".join(parts)


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _is_exponent(parent: etree._Element, node: etree._Element) -> bool:
    before = node.getprevious()
    text = (parent.text if before is None else before.tail) or ""
    return text[-1:].isdigit() and len(node) == 0 and bool(_EXPONENT.fullmatch((node.text or "").strip()))


def _span(cell: etree._Element, name: str) -> int:
    value = cell.get(name)
    if value is None or value == "1":
        return 1
    return max(1, min(int(value), WIDEST_SPAN)) if value.isdecimal() else 1


def table_rows(table: etree._Element) -> Iterator[tuple[str, ...]]:
    """The cells of a table row by row; a cell that spans several leaves the others empty, so columns stay columns."""
    below: dict[int, int] = {}
    nested = any(inner is not table for inner in table.iter("table", "array"))
    for row in table.iter("tr", "row"):
        if nested and next(row.iterancestors("table", "array"), table) is not table:
            continue
        cells: list[str] = []
        for cell in row.iterchildren("td", "th", "entry"):
            if below:
                _carried(cells, below)
            rest, width = _span(cell, "rowspan") - 1, _span(cell, "colspan")
            if rest:
                below.update(dict.fromkeys(range(len(cells), len(cells) + width), rest))
            cells.append(inline_text(cell))
            if width > 1:
                cells.extend([""] * (width - 1))
        _carried(cells, below)
        if any(cells):
            yield tuple(cells)


def _carried(cells: list[str], below: dict[int, int]) -> None:
    """Leave the cells empty that a cell of a row above reaches into."""
    while below.get(len(cells), 0):
        below[len(cells)] -= 1
        cells.append("")
