"""Word documents: what hospitals write their handbooks and protocols in.

`docx_blocks` reads the blocks; here they become one document. Headings come from styles and outline levels; where a
document has none at all, short lines in bold print are taken for headings, and a notice says so. Captions go to the
table or picture beside them, footnotes to sections at the end. What was left out is said in a notice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.docx_blocks import MIN_UNCAPTIONED, WordBlock, WordReader
from hoofbeat.corpus.parsers.docx_styles import MAX_LEVEL
from hoofbeat.corpus.parsers.office_package import (
    NAMES,
    OfficeImages,
    OfficePackage,
    core_facets,
    main_language,
    package_notices,
    qualified,
)
from hoofbeat.corpus.parsers.prose import FrontMatter, TextBuilder, assemble, may_be_heading, side_file
from hoofbeat.corpus.parsers.titles import stated_or_shown
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Facets
from hoofbeat.text import safe_id, squeeze

MAX_CAPTION = 600
MIN_BOLD_HEADINGS = 2
_LABEL = re.compile(
    r"(?P<label>(?P<word>[^\W\d_]{2,20})\.?\s?\d{1,3}(?:[.-]\d{1,3})*[a-zA-Z]?)\s*(?:[.:|)–—-]+\s*|\s+)(?=\S)"
)
_TABLE_WORD = re.compile(r"tab|tbl|taul|таб|표|表", re.IGNORECASE)
_FIGURE_WORD = re.compile(
    r"fig|abb|bild|illu|image|imag|obr|rys|slik|kuva|рис|图|図|圖|그림|grafi|diagr|chart", re.IGNORECASE
)
_NOTES = {
    "footnoteReference": ("footnotes", "w:footnote", "Footnotes"),
    "endnoteReference": ("endnotes", "w:endnote", "Endnotes"),
}


def read_docx(
    data: bytes, path: Path, images: list[tuple[str, bytes]] | None = None, hidden: HiddenTexts | None = None
) -> Document:
    """The one document of a Word file; what its side file says about it counts first (`side_file`).

    Figures name image files that are put into `images` (name, data). `hidden` takes what a reader can't see.
    """
    about = side_file(path)
    package = OfficePackage(data, "Word document")
    part, root = package.main_part("w:document")
    pictures = OfficeImages(package, safe_id(path.stem))
    reader = WordReader(package, part, pictures, hidden or HiddenTexts())
    body = root.find("w:body", NAMES)
    blocks = _with_one_title(reader.blocks(body)) if body is not None else []
    notes = list(_notes(package, part, reader))
    if not any(block.text or block.rows for block in blocks):
        raise InputError(
            "this Word document has no text", fix="leave it out, or recognise the text of its pictures (OCR)"
        )
    by_print = _mark_printed_headings(blocks)
    builder = _Composer(blocks).build()
    for heading, lines in notes:
        builder.nested_heading(heading, 1)
        for line in lines:
            builder.paragraph(line)
    if images is not None:
        images += pictures.taken
    notices = (*_notices(reader.left_out, by_print), *package_notices(package, pictures, builder.text))
    return assemble(_about(about, package, blocks, reader, notices), builder, path.stem)


def _with_one_title(blocks: Iterator[WordBlock]) -> list[WordBlock]:
    """All blocks; a title on several lines is one."""
    found: list[WordBlock] = []
    for block in blocks:
        if block.kind == "title" and found and found[-1].kind == "title":
            found[-1].text += f" {block.text}"
        else:
            found.append(block)
    return found


def _about(
    about: FrontMatter,
    package: OfficePackage,
    blocks: list[WordBlock],
    reader: WordReader,
    notices: tuple[str, ...],
) -> FrontMatter:
    stated, facets = core_facets(package)
    if "language" not in facets and (language := main_language(reader.languages)):
        facets["language"] = language
    merged: Facets = {**facets, **about.facets}
    return msgspec.structs.replace(
        about,
        title=about.title or _title(stated, blocks),
        facets=merged,
        notices=(*about.notices, *notices),
    )


def _title(stated: str, blocks: list[WordBlock]) -> str:
    shown = next((block.text for block in blocks if block.kind == "title"), "")
    text = " ".join(block.text for block in blocks)
    return stated_or_shown(stated, shown, text) or _prominent(blocks)


def _prominent(blocks: list[WordBlock]) -> str:
    """The line in the largest print before the first heading, where it is larger than the rest of the text."""
    sizes = Counter[int]()
    for block in blocks:
        if block.kind == "paragraph":
            sizes[block.size] += len(block.text)
    body = sizes.most_common(1)[0][0] if sizes else 0
    first = next((place for place, block in enumerate(blocks) if block.kind in {"heading", "table"}), len(blocks))
    lines = [block for block in blocks[: min(first, 10)] if block.kind == "paragraph" and block.size > body]
    largest = max(lines, key=lambda block: block.size, default=None)
    return largest.text if largest is not None and may_be_heading(largest.text) else ""


def _notices(left_out: Counter[str], by_print: bool) -> Iterator[str]:
    counted = [
        f"{count} {what}{'s' if count > 1 else ''}"
        for what in ("tracked deletion", "comment", "embedded document")
        if (count := left_out[what])
    ]
    if count := left_out["hidden text"]:
        counted.append(f"hidden text in {count} place{'s' if count > 1 else ''}")
    if left_out["table of contents"]:
        counted.append("the table of contents")
    if counted:
        yield f"left out: {', '.join(counted)}"
    if by_print:
        yield "no heading styles: short lines in bold print were taken for headings"


def _mark_printed_headings(blocks: list[WordBlock]) -> bool:
    """Where no style says so, make headings of short bold lines before text; larger print is a higher level."""
    if any(block.kind == "heading" for block in blocks):
        return False
    found = [
        block
        for block, following in pairwise(blocks)
        if block.kind == "paragraph" and block.bold and may_be_heading(block.text) and following.kind != "figure"
    ]
    plain = sum(1 for block in blocks if block.kind in {"paragraph", "item"}) - len(found)
    if len(found) < MIN_BOLD_HEADINGS or plain < len(found):
        return False
    sizes = sorted({block.size for block in found}, reverse=True)
    for block in found:
        block.kind, block.level = "heading", min(sizes.index(block.size) + 1, MAX_LEVEL)
    return True


def _notes(package: OfficePackage, part: str, reader: WordReader) -> Iterator[tuple[str, list[str]]]:
    """Footnotes and endnotes with the numbers that their marks have in the text."""
    for reference, (kind, tag, heading) in _NOTES.items():
        wanted = [(id, number) for (name, id), number in list(reader.notes.items()) if name == reference]
        root = package.linked_xml(part, kind) if wanted else None
        if root is None:
            continue
        notes = {node.get(qualified("w:id")): node for node in root.iterfind(tag, NAMES)}
        lines = []
        for id, number in wanted:
            found = reader.blocks(notes[id]) if id in notes else iter(())
            if words := squeeze(" ".join(block.text for block in found if block.kind != "figure")):
                lines.append(f"[{number}] {words}")
        if lines:
            yield heading, lines


class _Composer:
    """Puts blocks into a text: list items together, captions with what they belong to."""

    def __init__(self, blocks: list[WordBlock]) -> None:
        self.builder = TextBuilder()
        self._blocks = [
            block
            for place, block in enumerate(blocks)
            if not (block.kind == "heading" and blocks[place + 1 : place + 2] and blocks[place + 1].kind == "contents")
            and block.kind != "contents"
        ]
        self._captions = self._caption_places()
        self._shift = 1 if any(block.kind == "title" for block in self._blocks) else 0
        self._items: list[str] = []

    def build(self) -> TextBuilder:
        """Take every block."""
        used = set(self._captions.values())
        for place, block in enumerate(self._blocks):
            if block.kind == "item":
                self._items.append(f"{'  ' * min(block.level, 8)}{block.mark} {block.text}")
                continue
            self._flush()
            if place in used:
                continue
            if block.kind == "title":
                self.builder.nested_heading(block.text, 1)
            elif block.kind == "heading":
                self.builder.nested_heading(block.text, min(block.level + self._shift, MAX_LEVEL))
            elif block.kind == "table":
                label, caption = self._caption(place, block)
                self.builder.table(block.rows, label=label, caption=caption)
            elif block.kind == "figure":
                self._figure(place, block)
            elif block.kind == "caption" and _FIGURE_WORD.match(block.text):
                label, caption = labelled(block.text)
                self.builder.figure(label=label, caption=caption)
            else:
                self.builder.paragraph(block.text)
        self._flush()
        return self.builder

    def _figure(self, place: int, block: WordBlock) -> None:
        label, caption = self._caption(place, block)
        if caption or label or not block.points or block.points >= MIN_UNCAPTIONED:
            self.builder.figure(label=label, caption=caption, files=[block.file] if block.file else [])

    def _caption(self, place: int, block: WordBlock) -> tuple[str, str]:
        if place in self._captions:
            return labelled(self._blocks[self._captions[place]].text)
        return labelled(block.text)

    def _caption_places(self) -> dict[int, int]:
        """The caption of each table and figure, by their places among the blocks."""
        found: dict[int, int] = {}
        for place, block in enumerate(self._blocks):
            match = _LABEL.match(block.text)
            word = match["word"] if match else ""
            table, figure = bool(_TABLE_WORD.match(word)), bool(_FIGURE_WORD.match(word))
            if block.kind != "caption" and not (
                block.kind == "paragraph" and (table or figure) and len(block.text) <= MAX_CAPTION
            ):
                continue
            before, after = (place - 1, "figure"), (place + 1, "table")
            wanted = [after, (place - 1, "table")] if table else [before, (place + 1, "figure")] if figure else []
            for other, kind in wanted or [before, after, (place + 1, "figure"), (place - 1, "table")]:
                inside = 0 <= other < len(self._blocks)
                if inside and self._blocks[other].kind == kind and other not in found:
                    found[other] = place
                    break
        return found

    def _flush(self) -> None:
        if self._items:
            self.builder.paragraph("\n".join(self._items).strip())
            self._items.clear()


def labelled(text: str) -> tuple[str, str]:
    """A caption's label (`Table 2`) and its words."""
    match = _LABEL.match(text)
    if match is None or not (_TABLE_WORD.match(match["word"]) or _FIGURE_WORD.match(match["word"])):
        return "", text
    return match["label"], text[match.end() :]
