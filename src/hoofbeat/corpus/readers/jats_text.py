"""The text of a JATS article: abstracts and body walked in reading order, each paragraph once.

A paragraph may hold figures, tables, lists and quotations; the text around them becomes paragraphs of its own and they
stand between, where the author put them. Floats collected at the end of the article stand after the paragraph that
first cites them. Exponents stay exponents (10⁹, not 109).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from hoofbeat.corpus.readers.building import TextBuilder, joined_label, role_of, squeeze

__all__ = ["ArticleText", "child_text", "href", "inline_text"]

WIDEST_SPAN = 50

_NONE: frozenset[str] = frozenset()
_LISTS = frozenset({"list", "def-list"})
_TABLES = frozenset({"table-wrap", "table", "array"})
_FLOATS = _TABLES | {"fig", "fig-group", "table-wrap-group", "graphic", "media", "supplementary-material"}
_TEXT_BLOCKS = frozenset(
    {
        "p",
        "sec",
        "disp-quote",
        "boxed-text",
        "statement",
        "speech",
        "verse-group",
        "verse-line",
        "preformat",
        "code",
        "disp-formula-group",
        "chem-struct-wrap",
        "block-alternatives",
        "question",
        "answer",
        "explanation",
    }
)
_BLOCKS = _LISTS | _FLOATS | _TEXT_BLOCKS
_NAMING = frozenset({"label", "title", "caption"})
_ASIDE = _NAMING | {"permissions", "sec-meta", "ref-list", "fn-group"}
_UNSPOKEN = frozenset(
    {"alt-text", "long-desc", "object-id", "inline-graphic", "graphic", "inline-media", "annotation", "annotation-xml"}
)
_SPACED = frozenset(
    {
        "break",
        "hr",
        "disp-formula",
        "label",
        "p",
        "td",
        "th",
        "entry",
        "term",
        "def",
        "def-item",
        "list-item",
        "title",
        "fn",
        "x",
        "tr",
        "row",
    }
)
_FORMULAS = frozenset({"disp-formula", "inline-formula", "chem-struct"})
_SUPERSCRIPT = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_EXPONENT = re.compile(r"[+\-−–]?\d{1,3}")
_TEX = re.compile(r"\\begin\{document\}(.*?)\\end\{document\}", re.DOTALL)
_ROLE_TYPES = {"cases": "case", "case-report": "case", "intro": "introduction"}


def inline_text(element: etree._Element | None) -> str:
    """All text inside an element, whitespace normalised."""
    return "" if element is None else squeeze("".join(map(str, _flow(element, _NONE))))


def child_text(element: etree._Element, name: str) -> str:
    """The text of the first child of that name."""
    return inline_text(element.find(name))


def href(element: etree._Element) -> str:
    """The element's link, as written."""
    return next((str(value) for name, value in element.attrib.items() if str(name).endswith("href")), "")


def _flow(
    element: etree._Element, blocks: frozenset[str], aside: frozenset[str] = _NONE
) -> Iterator[str | etree._Element]:
    """An element's text run by run, with the outermost `blocks` in it at their place; children `aside` are left out."""
    yield element.text or ""
    for child in element:
        if child.tag in blocks:
            yield child
        elif child.tag == "tex-math":
            yield _tex(child)
        elif child.tag == "sup" and _is_exponent(element, child):
            yield (child.text or "").strip().translate(_SUPERSCRIPT)
        elif child.tag not in _UNSPOKEN and child.tag not in aside:
            space = " " if child.tag in _SPACED else ""
            yield space
            yield from _flow(child, _NONE if child.tag in _FORMULAS else blocks)
            yield space
        yield child.tail or ""


def _tex(node: etree._Element) -> str:
    """A formula's TeX without its preamble, unless the formula is there as MathML too."""
    parent = node.getparent()
    if parent is not None and parent.find(".//math") is not None:
        return ""
    text = node.text or ""
    found = _TEX.search(text)
    return found.group(1).strip(" $\n") if found else text


def _is_exponent(parent: etree._Element, node: etree._Element) -> bool:
    before = node.getprevious()
    text = (parent.text if before is None else before.tail) or ""
    return text[-1:].isdigit() and len(node) == 0 and bool(_EXPONENT.fullmatch((node.text or "").strip()))


def _span(cell: etree._Element, name: str) -> int:
    value = str(cell.get(name) or "1")
    return max(1, min(int(value), WIDEST_SPAN)) if value.isdecimal() else 1


def _rows(table: etree._Element) -> Iterator[tuple[str, ...]]:
    """The cells of a table row by row; a cell that spans several leaves the others empty, so columns stay columns."""
    below: dict[int, int] = {}
    for row in table.iter("tr", "row"):
        if next(row.iterancestors("table", "array"), table) is not table:
            continue
        cells: list[str] = []
        for cell in row.iterchildren("td", "th", "entry"):
            while below.get(len(cells), 0):
                below[len(cells)] -= 1
                cells.append("")
            rest = _span(cell, "rowspan") - 1
            width = _span(cell, "colspan")
            for column in range(len(cells), len(cells) + width):
                below[column] = rest
            cells.extend([inline_text(cell), *[""] * (width - 1)])
        while below.get(len(cells), 0):
            below[len(cells)] -= 1
            cells.append("")
        if any(cells):
            yield tuple(cells)


class ArticleText:
    """Walks one article into its `builder`."""

    def __init__(self, article: etree._Element) -> None:
        self.builder = TextBuilder()
        self._level = 1
        self._role = ""
        self._boxed = False
        self._left_subsection = False
        self._waiting: dict[str, etree._Element] = {}
        for group in article.iterchildren("floats-group", "floats-wrap"):
            for node in group:
                key = str(node.get("id") or "")
                self._waiting[key if key and key not in self._waiting else f" {len(self._waiting)}"] = node
        for abstract in article.iterfind("./front/article-meta/abstract"):
            kind = str(abstract.get("abstract-type") or "").replace("-", " ")
            heading = child_text(abstract, "title") or (f"{kind} abstract".capitalize() if kind else "Abstract")
            self._begin(heading, 1, "abstract")
            self._contents(abstract)
        for body in article.iterchildren("body"):
            self._begin("", 1, "")
            self._contents(body)
        self._begin("", 1, "")
        for key in list(self._waiting):
            if key in self._waiting:
                self._block(self._waiting.pop(key))

    def _begin(self, heading: str, level: int, role: str) -> None:
        self._level, self._role, self._left_subsection = level, role, False
        self.builder.heading(heading, level, role=role)

    def _ready(self) -> TextBuilder:
        """The builder, in a section where the next block belongs: text after a subsection is its parent's again."""
        if self._left_subsection:
            self._begin("", self._level, self._role)
        return self.builder

    def _paragraph(self, text: str) -> None:
        if text:
            self._ready().paragraph(text)

    def _contents(self, element: etree._Element) -> None:
        """The blocks of an element, and the runs of text between them, in order."""
        aside = _NONE if element.tag == "p" else _ASIDE
        run: list[str] = []
        for piece in _flow(element, _BLOCKS, aside):
            if isinstance(piece, str):
                run.append(piece)
                continue
            self._paragraph(squeeze("".join(run)))
            run.clear()
            self._block(piece)
        self._paragraph(squeeze("".join(run)))

    def _block(self, node: etree._Element) -> None:
        if node.tag == "sec":
            self._section(node)
        elif node.tag in _LISTS:
            floats: list[etree._Element] = []
            self._paragraph("\n".join(self._list_lines(node, floats)))
            for each in floats:
                self._block(each)
        elif node.tag == "fig":
            self._figure(node)
        elif node.tag == "graphic":
            self._ready().figure(files=[href(node)])
        elif node.tag in _TABLES:
            self._table(node)
        elif node.tag == "boxed-text":
            outer, self._boxed = self._boxed, True
            self._named(node)
            self._boxed = outer
        else:
            self._named(node)
        if node.tag in _LISTS or node.tag == "p":
            self._cited(node)

    def _section(self, section: etree._Element) -> None:
        heading = f"{child_text(section, 'label')} {child_text(section, 'title')}".strip()
        if self._boxed:
            self._paragraph(heading)
            self._contents(section)
            return
        level, role = self._level, self._role
        kind = str(section.get("sec-type") or "").split("|")[-1]
        inner = 1 + sum(1 for parent in section.iterancestors("sec", "abstract"))
        own = role_of(_ROLE_TYPES.get(kind, kind))
        self._begin(heading, inner, role if role == "abstract" else own or role_of(heading, role))
        self._contents(section)
        self._level, self._role, self._left_subsection = level, role, True

    def _named(self, node: etree._Element) -> None:
        """A block's label, title and caption as a paragraph, then what it holds."""
        if node.tag != "p":
            title = " ".join(filter(None, (child_text(node, "title"), child_text(node, "caption"))))
            self._paragraph(joined_label(child_text(node, "label"), title))
        self._contents(node)

    def _figure(self, node: etree._Element) -> None:
        caption = " ".join(filter(None, (inline_text(part) for part in node.iterchildren("caption", "p"))))
        files = dict.fromkeys(href(graphic) for graphic in node.iter("graphic") if href(graphic))
        name = str(node.get("id") or "")
        self._ready().figure(id=name, label=child_text(node, "label"), caption=caption, files=files)

    def _table(self, node: etree._Element) -> None:
        tables = [node] if node.tag != "table-wrap" else [t for t in node.iter("table", "array") if _outermost(t)]
        notes = [inline_text(note) for foot in node.iterchildren("table-wrap-foot") for note in foot]
        self._ready().table(
            (row for table in tables for row in _rows(table)),
            id=str(node.get("id") or ""),
            label=child_text(node, "label"),
            caption=child_text(node, "caption"),
            notes=notes,
        )
        if node.tag == "table-wrap":
            for other in node.iterchildren("p", "list", "def-list", "disp-quote", "boxed-text"):
                self._block(other)

    def _cited(self, node: etree._Element) -> None:
        for reference in node.iter("xref"):
            for key in str(reference.get("rid") or "").split():
                if key in self._waiting:
                    self._block(self._waiting.pop(key))

    def _list_lines(self, node: etree._Element, floats: list[etree._Element]) -> Iterator[str]:
        """A list as lines, nested lists indented; figures and tables in it are put into `floats`."""
        ordered = str(node.get("list-type") or "") == "order"
        if title := child_text(node, "title"):
            yield title
        for number, item in enumerate(node.iterchildren("list-item", "def-item"), start=1):
            mark = child_text(item, "label") or (f"{number}." if ordered else "-")
            if item.tag == "def-item":
                term = "; ".join(map(inline_text, item.iterchildren("term")))
                text = " ".join(map(inline_text, item.iterchildren("def")))
                yield f"{mark} {term}: {text}"
                continue
            for place, line in enumerate(self._item_lines(item, floats)):
                yield f"{mark} {line}" if place == 0 else f"  {line}"

    def _item_lines(self, item: etree._Element, floats: list[etree._Element]) -> Iterator[str]:
        run: list[str] = []
        for piece in _flow(item, _BLOCKS, _ASIDE):
            if isinstance(piece, str):
                run.append(piece)
                continue
            if text := squeeze("".join(run)):
                yield text
            run.clear()
            if piece.tag in _LISTS:
                yield from self._list_lines(piece, floats)
            elif piece.tag in _FLOATS:
                floats.append(piece)
            else:
                yield from self._item_lines(piece, floats)
        if text := squeeze("".join(run)):
            yield text


def _outermost(table: etree._Element) -> bool:
    return next(table.iterancestors("table", "array"), None) is None
