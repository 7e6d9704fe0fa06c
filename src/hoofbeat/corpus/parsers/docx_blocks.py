"""The blocks of a Word document, in reading order: headings, paragraphs, list items, tables, pictures, captions.

What a reader of the printed document does not see is left out and counted: tracked deletions, comments, hidden text,
tables of contents, placeholders of empty form fields. Headers and footers are other parts of the file and are not read.
Text boxes and SmartArt follow the paragraph that they are anchored to. A cell that reaches over several columns or rows
leaves the others empty, as in the other readers. A table that holds headings or tables, or one cell only, is layout:
its content is read as if it were not in a table.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from lxml import etree
from msgspec import Struct, field

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.docx_styles import (
    BULLET,
    MAX_LEVEL,
    Numbering,
    StyleLook,
    Styles,
    outline_level,
    switched,
    value,
    whole_number,
)
from hoofbeat.corpus.parsers.office_package import (
    NAMES,
    OfficeImages,
    OfficePackage,
    alternative_text,
    chart_title,
    chosen_content,
    diagram_lines,
    qualified,
    symbol_text,
)
from hoofbeat.text import raised, squeeze

MAX_SPAN = 100
MAX_CELLS = 100_000
EMU_PER_POINT = 12_700
MIN_POINTS = 30
MIN_UNCAPTIONED = 72

Kind = Literal["title", "heading", "paragraph", "item", "table", "figure", "caption", "contents"]

_TYPED_BULLET = re.compile(r"[•◦▪●○■‣∙·➢❖]\s*(?=\S)|[–-]\s+(?=\S)")
_TEXTLESS = frozenset(
    map(qualified, ("w:pPr", "w:rPr", "w:sdtPr", "w:sdtEndPr", "w:rt", "w:tblPr", "w:commentReference", "w:instrText"))
)
_DELETED = frozenset(map(qualified, ("w:del", "w:moveFrom")))
_TINY = 2  # half points
_SHADES = ("w:shd", "w:highlight")
_MAY_BE_SHADED = frozenset(map(qualified, ("w:tbl", "w:txbxContent")))
_W_R, _W_T, _W_P, _W_TBL, _W_SDT = map(qualified, ("w:r", "w:t", "w:p", "w:tbl", "w:sdt"))
_PLAIN = {
    qualified("w:tab"): " ",
    qualified("w:br"): " ",
    qualified("w:cr"): " ",
    qualified("w:ptab"): " ",
    qualified("w:noBreakHyphen"): "-",
}
_FALSE = frozenset({None, "", "0", "false"})
_DRAWINGS = frozenset(map(qualified, ("w:drawing", "w:pict", "w:object")))
_CONTENTS = ("TOC", "INDEX")
_MATH = {qualified("m:f"), qualified("m:rad"), qualified("m:sSup"), qualified("m:sSub")}


class WordBlock(Struct, kw_only=True):
    """One block. `level` is a heading's level or a list item's depth, `mark` the item's mark, `look` its print."""

    kind: Kind
    text: str = ""
    level: int = 0
    mark: str = ""
    rows: list[tuple[str, ...]] = field(default_factory=list)
    file: str = ""
    points: float = 0.0
    bold: bool = False
    size: int = 0


class _Field(Struct):
    """A field under way: its instruction, and whether its result has begun."""

    code: str = ""
    is_result: bool = False


class _Line(Struct):
    """A paragraph being read: its text, what is anchored in it, and how it is printed."""

    pieces: list[str] = field(default_factory=list)
    after: list[WordBlock] = field(default_factory=list)
    bold: int = 0
    length: int = 0
    sizes: Counter[int] = field(default_factory=Counter)


class WordReader:
    """Reads parts of one document; numbers, notes and counts go on over all of them."""

    def __init__(self, package: OfficePackage, part: str, images: OfficeImages, hidden: HiddenTexts) -> None:
        self._package = package
        self._part = part
        self._images = images
        self._hidden = hidden
        self._styles = Styles(package.linked_xml(part, "styles"))
        self._numbering = Numbering(package.linked_xml(part, "numbering"))
        self._fields: list[_Field] = []
        self._joined = ""
        self.left_out: Counter[str] = Counter()
        self.languages: Counter[str] = Counter()
        self.notes: dict[tuple[str, str], int] = {}

    def blocks(self, node: etree._Element) -> Iterator[WordBlock]:
        """The blocks of a body, a cell, a text box or a content control."""
        for child in node.iterchildren(etree.Element):
            if child.tag == _W_P:
                yield from self._paragraph(child)
            elif child.tag == _W_TBL:
                yield from self._table(child)
            elif child.tag in _DELETED:
                self.left_out["tracked deletion"] += 1
            elif child.tag == qualified("mc:AlternateContent"):
                if (chosen := chosen_content(child)) is not None:
                    yield from self.blocks(chosen)
            elif child.tag == _W_SDT:
                yield from self._control(child)
            elif child.tag == qualified("w:altChunk"):
                self.left_out["embedded document"] += 1
            elif child.tag not in _TEXTLESS:
                yield from self.blocks(child)
        if self._joined:
            text, self._joined = squeeze(self._joined), ""
            yield WordBlock(kind="paragraph", text=text)

    def _control(self, node: etree._Element) -> Iterator[WordBlock]:
        """What is in a content control, unless it is a table of contents or only says what to type."""
        gallery = value(node, "w:sdtPr/w:docPartObj/w:docPartGallery")
        if gallery in {"Table of Contents", "Table of Figures"}:
            self.left_out["table of contents"] += 1
            return
        content = node.find("w:sdtContent", NAMES)
        if content is not None and switched(node, "w:sdtPr/w:showingPlcHdr") is not True:
            yield from self.blocks(content)

    def _paragraph(self, node: etree._Element) -> Iterator[WordBlock]:
        properties = node.find("w:pPr", NAMES)
        look = self._styles.look(value(properties, "w:pStyle") or self._styles.default)
        level = look.level
        if outline := value(properties, "w:outlineLvl"):
            level = outline_level(outline)
        if level:
            self._fields.clear()  # a heading is in no field: one that never ended must not swallow the document
        line = _Line()
        in_contents = self._in_contents()
        self._inline(node, line, look)
        in_contents = in_contents or self._in_contents()
        self._fields = [each for each in self._fields if each.is_result]
        text = "" if look.is_contents else squeeze("".join(line.pieces))
        if look.is_contents or in_contents:
            self.left_out["table of contents"] = 1
            yield WordBlock(kind="contents")
        if properties is not None and _mark_is_deleted(properties):
            self._joined += text + " "  # its end was deleted: the next paragraph goes on
        elif text:
            text, self._joined = squeeze(self._joined + text), ""
            yield self._block(text, line, properties, look, level)
        yield from line.after

    def _block(
        self, text: str, line: _Line, properties: etree._Element | None, look: StyleLook, level: int
    ) -> WordBlock:
        bold = line.length > 0 and line.bold == line.length
        size = line.sizes.most_common(1)[0][0] if line.sizes else 0
        num, depth = look.num, look.depth or 0
        if properties is not None and properties.find("w:numPr", NAMES) is not None:
            num = value(properties, "w:numPr/w:numId") or num
            depth = whole_number(value(properties, "w:numPr/w:ilvl"), look.depth or 0)
        mark = self._numbering.next_mark(num, depth) if num and num != "0" else None
        if look.is_title:
            return WordBlock(kind="title", text=text, bold=bold, size=size)
        if level:
            number = mark if mark and mark != BULLET else ""
            return WordBlock(kind="heading", text=f"{number} {text}".strip(), level=min(level, MAX_LEVEL), size=size)
        if look.is_caption:
            return WordBlock(kind="caption", text=text)
        if mark:
            return WordBlock(kind="item", text=text, level=max(depth, look.list_step), mark=mark)
        if bullet := _TYPED_BULLET.match(text):
            return WordBlock(kind="item", text=text[bullet.end() :], mark=BULLET)
        return WordBlock(kind="paragraph", text=text, bold=bold, size=size)

    def _in_contents(self) -> bool:
        return any(each.code.split(" ", 1)[0].upper() in _CONTENTS for each in self._fields if each.code)

    def _inline(self, node: etree._Element, line: _Line, look: StyleLook) -> None:
        """The text of what is inside a paragraph, and the blocks that are anchored there."""
        for child in node.iterchildren(etree.Element):
            tag = child.tag
            if tag == _W_R:
                self._run(child, line, look)
            elif tag in _DELETED:
                self.left_out["tracked deletion"] += 1
            elif tag == _W_SDT:
                content = child.find("w:sdtContent", NAMES)
                if content is not None and switched(child, "w:sdtPr/w:showingPlcHdr") is not True:
                    self._inline(content, line, look)
            elif tag == qualified("mc:AlternateContent"):
                if (chosen := chosen_content(child)) is not None:
                    self._inline(chosen, line, look)
            elif tag == qualified("m:oMath"):
                self._add(math_text(child), line)
            elif tag not in _TEXTLESS:
                self._inline(child, line, look)

    def _run(self, node: etree._Element, line: _Line, look: StyleLook) -> None:
        properties = node.find("w:rPr", NAMES)
        style = self._styles.look(value(properties, "w:rStyle")) if properties is not None else StyleLook()
        vanish = switched(properties, "w:vanish")
        vanished = vanish if vanish is not None else style.hidden or look.hidden
        if why := "hidden by its format" if vanished else _unseen(node, properties):
            text = "".join(text.text or "" for text in node.iter(_W_T))
            if self._hidden.leaves_out("", why, text):
                self.left_out["hidden text"] += bool(text.strip())
                return
        before = len(line.pieces)
        self._run_content(node, line, look)
        added = "".join(line.pieces[before:])
        if not added:
            return
        fonts = properties.find("w:rFonts", NAMES) if properties is not None else None
        font = fonts.get(qualified("w:ascii"), "") if fonts is not None else ""
        shown = symbol_text(added, font)
        if value(properties, "w:vertAlign") == "superscript":
            shown = raised("".join(line.pieces[max(0, before - 3) : before]), shown)
        line.pieces[before:] = [shown]
        if count := len(shown.strip()):
            line.length += count
            bold = switched(properties, "w:b")
            line.bold += count if (bold if bold is not None else style.bold or look.bold) else 0
            line.sizes[whole_number(value(properties, "w:sz"), style.size or look.size)] += count
            language = value(properties, "w:lang") or look.language or self._styles.language
            self.languages[language] += count

    def _run_content(self, node: etree._Element, line: _Line, look: StyleLook) -> None:
        for child in node.iterchildren(etree.Element):
            tag = child.tag
            if tag == _W_T:
                self._add(child.text or "", line)
            elif tag in _PLAIN:
                self._add(_PLAIN[str(tag)], line)
            elif tag in _DRAWINGS:
                line.after += self._drawing(child)
            elif tag == qualified("mc:AlternateContent"):
                if (chosen := chosen_content(child)) is not None:
                    self._run_content(chosen, line, look)
            elif tag == qualified("w:ruby"):
                for base in child.iterfind("w:rubyBase", NAMES):
                    self._inline(base, line, look)
            else:
                self._mark(child, line)

    def _mark(self, node: etree._Element, line: _Line) -> None:
        """What stands in a run for something else: signs, marks of notes, the borders of fields."""
        if node.tag == qualified("w:sym"):
            code = whole_hex(node.get(qualified("w:char")))
            self._add(symbol_text(code, node.get(qualified("w:font")) or ""), line)
        elif node.tag == qualified("w:fldChar"):
            self._field(node.get(qualified("w:fldCharType")) or "")
        elif node.tag == qualified("w:instrText"):
            if self._fields and not self._fields[-1].is_result:
                self._fields[-1].code = (self._fields[-1].code + (node.text or "")).lstrip()[:100]
        elif node.tag in {qualified("w:footnoteReference"), qualified("w:endnoteReference")}:
            key = etree.QName(node).localname, node.get(qualified("w:id")) or ""
            self._add(f"[{self.notes.setdefault(key, len(self.notes) + 1)}]", line)
        elif node.tag == qualified("w:commentReference"):
            self.left_out["comment"] += 1

    def _add(self, text: str, line: _Line) -> None:
        """Take text, unless it is a field's instruction or in a table of contents."""
        if all(each.is_result for each in self._fields) and not self._in_contents():
            line.pieces.append(text)

    def _field(self, kind: str) -> None:
        if kind == "begin":
            self._fields.append(_Field())
        elif kind == "separate" and self._fields:
            self._fields[-1].is_result = True
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _drawing(self, node: etree._Element) -> list[WordBlock]:
        """The pictures, text boxes and diagrams of a drawing."""
        found: list[WordBlock] = []
        parts = list(_drawn(node))
        about = _first(parts, "wp:docPr")
        decorative = _first(parts, "adec:decorative")
        if decorative is not None and decorative.get("val") not in _FALSE:
            return found
        if about is not None and about.get("hidden") not in _FALSE:
            return found
        words = alternative_text(about) or alternative_text(_first(parts, "v:shape"))
        extent = _first(parts, "wp:extent")
        points = 0.0
        if extent is not None:
            points = min(whole_number(extent.get(side), 0) for side in ("cx", "cy")) / EMU_PER_POINT
        links = self._package.links(self._part)
        for part in parts:
            if part.tag in {qualified("a:blip"), qualified("v:imagedata")}:
                id = part.get(qualified("r:embed")) or part.get(qualified("r:id"))
                if not points or points >= MIN_POINTS:
                    file = self._images.name(links.get(id) if id else None)
                    found.append(WordBlock(kind="figure", text=words, file=file, points=points))
                    words = ""
            elif part.tag == qualified("c:chart"):
                link = links.get(part.get(qualified("r:id")) or "")
                title = chart_title(self._package, link.part) if link is not None else ""
                found.append(WordBlock(kind="figure", text=words or title))
                words = ""
            elif part.tag == qualified("dgm:relIds"):
                link = links.get(part.get(qualified("r:dm")) or "")
                lines = diagram_lines(self._package, link.part) if link is not None else []
                found += [WordBlock(kind="item", text=text, mark=BULLET) for text in lines]
            elif part.tag == qualified("w:txbxContent"):
                fields, self._fields = self._fields, []
                found += list(self.blocks(part))
                self._fields = fields
        return found

    def _table(self, node: etree._Element) -> Iterator[WordBlock]:
        cells = sum(1 for _ in node.iter(qualified("w:tc")))
        rows = list(self._rows(node))
        nested = node.find(".//w:tbl", NAMES) is not None
        if nested or cells > MAX_CELLS or sum(map(len, rows)) <= 1 or self._has_headings(rows):
            for row in rows:
                for cell, _, _ in row:
                    yield from self.blocks(cell)
            return
        table = WordBlock(kind="table", text=squeeze(value(node, "w:tblPr/w:tblCaption"))[:1000])
        after: list[WordBlock] = []
        for row in rows:
            texts: list[str] = []
            for cell, width, goes_on in row:
                found = list(self.blocks(cell))
                after += [block for block in found if block.kind == "figure"]
                texts += ["" if goes_on else cell_text(found), *([""] * (width - 1))]
            if any(texts):
                table.rows.append(tuple(texts))
        if table.rows:
            yield table
        yield from after

    def _rows(self, node: etree._Element) -> Iterator[list[tuple[etree._Element, int, bool]]]:
        """The cells of each row with their width and whether they go on from the row above."""
        for row in _through(node, "w:tr"):
            if row.find("w:trPr/w:del", NAMES) is not None:
                self.left_out["tracked deletion"] += 1
                continue
            cells = []
            for cell in _through(row, "w:tc"):
                properties = cell.find("w:tcPr", NAMES)
                if properties is not None and properties.find("w:cellDel", NAMES) is not None:
                    continue
                width = whole_number(value(properties, "w:gridSpan"), 1)
                merged = properties.find("w:vMerge", NAMES) if properties is not None else None
                goes_on = merged is not None and merged.get(qualified("w:val"), "continue") == "continue"
                cells.append((cell, max(1, min(width, MAX_SPAN)), goes_on))
            yield cells

    def _has_headings(self, rows: list[list[tuple[etree._Element, int, bool]]]) -> bool:
        styles = {
            value(paragraph, "w:pPr/w:pStyle")
            for row in rows
            for cell, _, _ in row
            for paragraph in cell.iterchildren(_W_P)
        }
        return any(self._styles.look(style).level for style in styles if style)


def _mark_is_deleted(properties: etree._Element) -> bool:
    mark = properties.find("w:rPr", NAMES)
    return mark is not None and any(mark.find(name, NAMES) is not None for name in ("w:del", "w:moveFrom"))


def _drawn(node: etree._Element) -> Iterator[etree._Element]:
    """The elements of a drawing, one edition of each; what is in a text box belongs to the box."""
    for child in node.iterchildren(etree.Element):
        if child.tag == qualified("mc:AlternateContent"):
            if (chosen := chosen_content(child)) is not None:
                yield from _drawn(chosen)
            continue
        yield child
        if child.tag != qualified("w:txbxContent"):
            yield from _drawn(child)


def _first(nodes: list[etree._Element], name: str) -> etree._Element | None:
    return next((node for node in nodes if node.tag == qualified(name)), None)


def _through(node: etree._Element, name: str) -> Iterator[etree._Element]:
    """Rows or cells of a table, also those in content controls and custom markup."""
    wanted = qualified(name)
    for child in node.iterchildren(etree.Element):
        if child.tag == wanted:
            yield child
        elif child.tag in {_W_SDT, *map(qualified, ("w:sdtContent", "w:customXml", "w:ins", "w:moveTo"))}:
            yield from _through(child, name)


def cell_text(blocks: list[WordBlock]) -> str:
    """The text of a table's cell on one line. A hyphen before a dose would read as minus, so items get a dot."""
    texts = []
    for block in blocks:
        if block.kind == "item":
            texts.append(f"{'•' if block.mark == BULLET else block.mark} {block.text}")
        elif block.kind == "table":
            texts += [", ".join(filter(None, row)) for row in block.rows]
        elif block.kind != "figure":
            texts.append(block.text)
    return squeeze(" ".join(texts))


def whole_hex(text: str | None) -> str:
    """The character of a code in hexadecimal; nothing where it is none."""
    return chr(int(text, 16)) if text and re.fullmatch(r"[0-9A-Fa-f]{1,4}", text) and int(text, 16) >= 32 else ""


def math_text(node: etree._Element) -> str:
    """A formula on one line: fractions with a stroke, powers raised."""
    tag = node.tag
    if tag == qualified("m:t"):
        return node.text or ""
    if tag not in _MATH:
        return "".join(map(math_text, node.iterchildren(etree.Element)))
    parts = {etree.QName(child).localname: math_text(child) for child in node.iterchildren(etree.Element)}
    if tag == qualified("m:f"):
        return f"{_grouped(parts.get('num', ''))}/{_grouped(parts.get('den', ''))}"
    if tag == qualified("m:rad"):
        return f"√{_grouped(parts.get('e', ''))}"
    if tag == qualified("m:sSub"):
        return parts.get("e", "") + parts.get("sub", "")
    base, power = parts.get("e", ""), parts.get("sup", "")
    shown = raised(base, power)
    return base + (shown if shown != power else f"^{_grouped(power)}")


def _grouped(text: str) -> str:
    return text if len(text) <= 1 or text.isalnum() else f"({text})"


def _unseen(node: etree._Element, properties: etree._Element | None) -> str:
    """Why nobody sees a run that is not marked as hidden: white on an unshaded page, or smaller than print can be.

    White letters in a table or a text box are usual: the shading behind them may come from a style.
    """
    size = value(properties, "w:sz")
    if size.isdigit() and int(size) <= _TINY:
        return "tiny font"
    if value(properties, "w:color").upper() != "FFFFFF" or (properties is not None and _shaded(properties)):
        return ""
    for parent in node.iterancestors():
        if parent.tag in _MAY_BE_SHADED or (parent.tag == _W_P and _shaded(parent.find("w:pPr", NAMES))):
            return ""
    return "white on white"


def _shaded(properties: etree._Element | None) -> bool:
    return properties is not None and any(properties.find(each, NAMES) is not None for each in _SHADES)
