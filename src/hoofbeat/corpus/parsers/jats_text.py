"""The text of a JATS article: abstracts, body and back matter walked in reading order, each paragraph once.

A paragraph may hold figures, tables, lists and quotations; the text around them becomes separate paragraphs and they
stand between, where the author put them. Floats collected at the end of the article stand after the paragraph that
first cites them. References are the one part of the back matter that is left out.

An import spends most of its time on text inside elements, so they are collected into one list instead of being passed
up through generators, and an element without children is read at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lxml import etree

from hoofbeat.corpus.parsers.prose import TextBuilder, joined_label
from hoofbeat.corpus.roles import role_of
from hoofbeat.text import raised, squeeze, whole_number

MAX_SPAN = 50

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
_SPECIAL = _UNSPOKEN | _SPACED | _FORMULAS | {"math", "tex-math", "sup"}
_MATH_WORDS = frozenset({"mi", "mn", "mo"})
_SUPERSCRIPT = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_EXPONENT = re.compile(r"[+\-−–]?\d{1,3}")
_TEX_BEGINS, _TEX_ENDS = r"\begin{document}", r"\end{document}"


def inline_text(element: etree._Element | None) -> str:
    """All text inside an element, whitespace normalised."""
    if element is None:
        return ""
    if not len(element):
        return squeeze(element.text or "")
    pieces: list[Any] = []  # without blocks, all of them are text
    collect(element, pieces)
    return squeeze("".join(pieces))


def child_text(element: etree._Element, name: str) -> str:
    """The text of the first child of that name."""
    return inline_text(next(element.iterchildren(name), None))


def grandchild(element: etree._Element, parent: str, name: str) -> etree._Element | None:
    """The first element of that name in children named `parent`: what `find` gives, at a fraction of its time."""
    return next((found for each in element.iterchildren(parent) for found in each.iterchildren(name)), None)


def href(element: etree._Element) -> str:
    """The element's link, as written."""
    return next((str(value) for name, value in element.attrib.items() if str(name).endswith("href")), "")


def collect(
    element: etree._Element, pieces: list[Piece], blocks: frozenset[str] = NONE, aside: frozenset[str] = NONE
) -> None:
    """Put an element's text into `pieces`, the outermost `blocks` at their place; children `aside` are left out."""
    if text := element.text:  # lxml decodes it anew each time it is asked for
        pieces.append(text)
    unlike = _SPECIAL_OR_BLOCK if blocks else _SPECIAL
    for child in element:
        tag = child.tag
        if tag not in unlike:  # most children: citations, emphasis
            if tag in aside:
                pass
            elif len(child):
                collect(child, pieces, blocks)
            elif text := child.text:
                pieces.append(text)
        elif tag in blocks:
            pieces.append(child)
        elif tag not in aside:
            _collect_special(element, child, pieces, blocks)
        if tail := child.tail:
            pieces.append(tail)


def _collect_special(
    element: etree._Element, child: etree._Element, pieces: list[Piece], blocks: frozenset[str]
) -> None:
    """The text of a child that is not written as it is: formulas, exponents, what has spaces around it."""
    tag = child.tag
    if tag == "sup" and not len(child):
        pieces.append(raised(_before(element, child), child.text or ""))
    elif tag == "math":
        pieces.append(_math(child))
    elif tag == "tex-math":
        pieces.append(_tex(child))
    elif tag not in _UNSPOKEN:
        space = tag in _SPACED
        if space:
            pieces.append(" ")
        collect(child, pieces, NONE if tag in _FORMULAS else blocks)
        if space:
            pieces.append(" ")


def _tex(node: etree._Element) -> str:
    """A formula's TeX without its preamble, unless the formula is there as MathML too."""
    parent = node.getparent()
    if parent is not None and parent.find(".//math") is not None:
        return ""
    text = node.text or ""
    _, _, rest = text.partition(_TEX_BEGINS)
    inner, ends, _ = rest.partition(_TEX_ENDS)
    return inner.strip(" $\n") if ends else text


def _math(node: etree._Element) -> str:
    """MathML as a line of text: fractions with a stroke, powers as powers; what it has no form for stands as it is."""
    tag = node.tag
    if tag in _MATH_WORDS and not len(node):
        return (node.text or "").strip()
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


def _before(parent: etree._Element, node: etree._Element) -> str:
    before = node.getprevious()
    return (parent.text if before is None else before.tail) or ""


_CELLS = frozenset({"td", "th", "entry"})


def _span(cell: etree._Element, name: str) -> int:
    return max(1, min(whole_number(cell.get(name) or "") or 1, MAX_SPAN))


def table_rows(table: etree._Element) -> Iterator[tuple[str, ...]]:
    """The cells of a table row by row; a cell that spans several leaves the others empty, so columns stay columns."""
    below: dict[int, int] = {}
    nested = any(inner is not table for inner in table.iter("table", "array"))
    for row in table.iter("tr", "row"):
        if nested and next(row.iterancestors("table", "array"), table) is not table:
            continue
        cells: list[str] = []
        for cell in row:
            if cell.tag not in _CELLS:
                continue
            if below:
                _carried(cells, below)
            place = len(cells)
            cells.append(inline_text(cell) if len(cell) else squeeze(cell.text or ""))
            if cell.get("rowspan", "1") != "1" or cell.get("colspan", "1") != "1":
                rest, width = _span(cell, "rowspan") - 1, _span(cell, "colspan")
                if rest:
                    below.update(dict.fromkeys(range(place, place + width), rest))
                cells.extend([""] * (width - 1))
        if below:
            _carried(cells, below)
        if any(cells):
            yield tuple(cells)


def _carried(cells: list[str], below: dict[int, int]) -> None:
    """Leave the cells empty that a cell of a row above reaches into."""
    while below.get(len(cells), 0):
        below[len(cells)] -= 1
        cells.append("")


LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

_LISTS = frozenset({"list", "def-list"})
_TABLES = frozenset({"table-wrap", "table", "array"})
_SUPPLEMENTS = frozenset({"media", "supplementary-material"})
_FLOATS = _TABLES | _SUPPLEMENTS | {"fig", "fig-group", "table-wrap-group", "graphic"}
_TEXT_BLOCKS = frozenset(
    {"p", "sec", "disp-quote", "boxed-text", "statement", "speech", "verse-group", "verse-line", "preformat", "code"}
    | {"disp-formula-group", "chem-struct-wrap", "block-alternatives", "question", "answer", "explanation"}
    | {"fn-group", "app", "app-group", "glossary", "notes", "ack", "bio"}
)
_BLOCKS = _LISTS | _FLOATS | _TEXT_BLOCKS
_SPECIAL_OR_BLOCK = _SPECIAL | _BLOCKS
_NAMING = frozenset({"label", "title", "caption"})
_ASIDE = _NAMING | {"permissions", "sec-meta", "ref-list"}
_ROLE_TYPES = {"cases": "case", "case-report": "case", "intro": "introduction"}
_BACK_HEADINGS = {
    "ack": "Acknowledgements",
    "app": "Appendix",
    "bio": "Biography",
    "fn-group": "Footnotes",
    "glossary": "Glossary",
    "notes": "Notes",
}
_CONFLICTS = frozenset({"conflict", "coi-statement", "financial-disclosure"})


class ArticleText:
    """Walks one article into its `builder`; `supplements` lists its supplementary files: label, caption, address."""

    def __init__(self, article: etree._Element, meta: etree._Element) -> None:
        self.builder = TextBuilder()
        self.supplements: list[str] = []
        self._level = 1
        self._role = ""
        self._boxed = False
        self._left_subsection = False
        self._group_label = ""
        self._waiting: dict[str, etree._Element] = {}
        for group in article.iterchildren("floats-group", "floats-wrap"):
            for node in group:
                key = str(node.get("id") or "")
                self._waiting[key if key and key not in self._waiting else f" {len(self._waiting)}"] = node
        for abstract in meta.iterchildren("abstract", "trans-abstract"):
            self._abstract(abstract)
        for body in article.iterchildren("body"):
            self._begin("", 1, "")
            self._contents(body)
        self._begin("", 1, "")
        for key in list(self._waiting):
            if key in self._waiting:
                self._block(self._waiting.pop(key))
        self._back(article, meta)

    def _abstract(self, abstract: etree._Element) -> None:
        kind = str(abstract.get("abstract-type") or "").replace("-", " ")
        heading = child_text(abstract, "title") or (f"{kind} abstract".capitalize() if kind else "Abstract")
        language = str(abstract.get(LANGUAGE) or "") if abstract.tag == "trans-abstract" else ""
        self._begin(f"{heading} ({language})" if language else heading, 1, "abstract")
        self._contents(abstract)

    def _back(self, article: etree._Element, meta: etree._Element) -> None:
        conflicts = [
            note for note in meta.iterfind("./author-notes/fn") if str(note.get("fn-type") or "").lower() in _CONFLICTS
        ]
        if conflicts:
            self._begin("Conflict of interest", 1, "back")
            for note in conflicts:
                self._contents(note)
        for back in article.iterchildren("back"):
            for part in back:
                if part.tag == "app-group":
                    for appendix in part.iterchildren("app"):
                        self._back_part(appendix)
                elif part.tag != "ref-list":
                    self._back_part(part)

    def _back_part(self, part: etree._Element) -> None:
        heading = f"{child_text(part, 'label')} {child_text(part, 'title')}".strip()
        self._begin(heading or _BACK_HEADINGS.get(str(part.tag), ""), 1, "back")
        if part.tag in _BLOCKS and part.tag not in _BACK_HEADINGS and part.tag != "sec":
            self._block(part)
        elif part.tag == "fn-group":
            self._notes(part)
        else:
            self._contents(part)

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
        pieces: list[Piece] = []
        collect(element, pieces, _BLOCKS, NONE if element.tag == "p" else _ASIDE)
        run: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                run.append(piece)
                continue
            if run:
                self._paragraph(squeeze("".join(run)))
                run = []
            self._block(piece)
        if run:
            self._paragraph(squeeze("".join(run)))

    def _block(self, node: etree._Element) -> None:
        tag = node.tag
        if tag == "p":
            self._contents(node)
            if self._waiting:
                self._cited(node)
        elif tag == "sec":
            self._section(node)
        elif tag in _LISTS:
            floats: list[etree._Element] = []
            self._paragraph("\n".join(self._list_lines(node, floats)))
            for each in floats:
                self._block(each)
            self._cited(node)
        elif tag == "fig":
            self._figure(node)
        elif tag == "graphic":
            self._ready().figure(files=[href(node)])
        elif tag in _TABLES:
            self._table(node)
        elif tag == "fn-group":
            self._notes(node)
        else:
            self._wrapped(node)

    def _wrapped(self, node: etree._Element) -> None:
        """A block that wraps others: a box, a group of figures, a supplement, ..."""
        boxed, group = self._boxed, self._group_label
        if node.tag == "boxed-text":
            self._boxed = True
        elif node.tag == "fig-group":
            self._group_label = child_text(node, "label")
        elif node.tag in _SUPPLEMENTS:
            self._supplement(node)
        self._named(node)
        self._boxed, self._group_label = boxed, group

    def _supplement(self, node: etree._Element) -> None:
        if next(node.iterancestors("supplementary-material"), None) is not None:
            return
        links = [href(each) for each in node.iter(*_SUPPLEMENTS, "inline-supplementary-material", "ext-link", "uri")]
        link = next(filter(None, links), "")
        self.supplements.append(" | ".join((child_text(node, "label"), child_text(node, "caption"), link)))

    def _section(self, section: etree._Element) -> None:
        heading = f"{child_text(section, 'label')} {child_text(section, 'title')}".strip()
        if self._boxed:
            self._paragraph(heading)
            self._contents(section)
            return
        level, role = self._level, self._role
        kind = str(section.get("sec-type") or "").split("|")[-1]
        inner = 1 + sum(1 for parent in section.iterancestors("sec", "abstract", "trans-abstract", "app", "notes"))
        own = role_of(heading if role_of(heading) else _ROLE_TYPES.get(kind, kind), role)
        self._begin(heading, inner, own)
        self._contents(section)
        self._level, self._role, self._left_subsection = level, role, True

    def _named(self, node: etree._Element) -> None:
        """A block's label, title and caption as a paragraph, then what it holds."""
        title = " ".join(filter(None, (child_text(node, "title"), child_text(node, "caption"))))
        self._paragraph(joined_label(child_text(node, "label"), title))
        self._contents(node)

    def _notes(self, group: etree._Element) -> None:
        """Footnotes, one paragraph each with its mark."""
        title = child_text(group, "title")
        if title and next(group.iterancestors(), group).tag != "back":
            self._paragraph(title)
        for note in group.iterchildren("fn", "p", "sec"):
            if note.tag == "fn":
                marks = child_text(note, "label")
                words = [inline_text(part) for part in note if part.tag != "label"]
                self._paragraph(" ".join(filter(None, (marks, *words))))
            else:
                self._block(note)

    def _figure(self, node: etree._Element) -> None:
        caption = " ".join(filter(None, (inline_text(part) for part in node.iterchildren("caption", "p"))))
        files = dict.fromkeys(filter(None, map(href, node.iter("graphic", "inline-graphic", "media"))))
        label = child_text(node, "label") or self._group_label
        self._ready().figure(id=str(node.get("id") or ""), label=label, caption=caption, files=files)

    def _table(self, node: etree._Element) -> None:
        tables = [node] if node.tag != "table-wrap" else [t for t in node.iter("table", "array") if _outermost(t)]
        notes = [inline_text(note) for foot in node.iterchildren("table-wrap-foot") for note in foot]
        self._ready().table(
            (row for table in tables for row in table_rows(table)),
            id=str(node.get("id") or ""),
            label=child_text(node, "label"),
            caption=child_text(node, "caption"),
            notes=notes,
        )
        if node.tag == "table-wrap":
            for other in node.iterchildren("p", "list", "def-list", "disp-quote", "boxed-text"):
                self._block(other)

    def _cited(self, node: etree._Element) -> None:
        for reference in node.iter("xref") if self._waiting else ():
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
        pieces: list[Piece] = []
        collect(item, pieces, _BLOCKS, _ASIDE)
        run: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                run.append(piece)
                continue
            if text := squeeze("".join(run)):
                yield text
            run = []
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
