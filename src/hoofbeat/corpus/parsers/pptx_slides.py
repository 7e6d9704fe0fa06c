"""PowerPoint: teaching slides and short protocols. One section per slide, under the slide's title.

Shapes are read in the order that the file has, which is the order in which PowerPoint reads a slide aloud; the title
comes first. Whether a line is a list's item is said by the line, its shape, or the layout and master that the shape
comes from. Speaker notes follow the slide and are marked as notes. Hidden slides are left out, and a notice names them.
A section's page is the slide's number. Pictures that are on three slides or more are logos and left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
from lxml import etree
from msgspec import Struct, field

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.docx_blocks import math_text
from hoofbeat.corpus.parsers.docx_styles import BULLET, whole_number
from hoofbeat.corpus.parsers.office_package import (
    NAMES,
    OfficeImages,
    OfficePackage,
    alternative_text,
    chart_title,
    chosen_content,
    core_facets,
    diagram_lines,
    main_language,
    marked_by,
    package_notices,
    qualified,
    symbol_text,
)
from hoofbeat.corpus.parsers.prose import FrontMatter, TextBuilder, assemble, side_file
from hoofbeat.corpus.parsers.titles import stated_or_shown
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.records import Document, Facets
from hoofbeat.text import raised, safe_id, some_of, squeeze

MIN_EMU = 30 * 12_700
MAX_ON_SLIDES = 2
MAX_DEPTH = 8
MAX_SLIDES = 5_000
NOTES = "Speaker notes: "
_PAGE_PARTS = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})
_TITLES = frozenset({"title", "ctrTitle"})
_PLAIN_PLACES = frozenset({"subTitle", "title", "ctrTitle"})
_FORMS = {
    "alphaLc": "lowerLetter",
    "alphaUc": "upperLetter",
    "romanLc": "lowerRoman",
    "romanUc": "upperRoman",
    "arabic": "decimal",
}
_BULLETS = tuple(map(qualified, ("a:buNone", "a:buChar", "a:buAutoNum", "a:buBlip")))


class _Place(Struct, frozen=True):
    """Which place of the layout a shape fills: its kind and number; `is_place` is False for a free shape."""

    kind: str = ""
    number: str = ""
    is_place: bool = False


class _Line(Struct):
    """A line of a shape: its text, depth, and mark where it is a list's item."""

    text: str
    depth: int
    mark: str


class _Layout(Struct):
    """The styles of lists that a layout or master has: of its places by number and by kind, and of all text."""

    by_number: dict[str, list[etree._Element]] = field(default_factory=dict)
    by_kind: dict[str, list[etree._Element]] = field(default_factory=dict)
    titles: list[etree._Element] = field(default_factory=list)
    bodies: list[etree._Element] = field(default_factory=list)


class _Slide(Struct, kw_only=True):
    """A slide: its number, its part, its root, and the lists of styles that its shapes inherit from."""

    number: int
    part: str
    root: etree._Element
    layout: _Layout
    master: _Layout


def read_pptx(
    data: bytes, path: Path, images: list[tuple[str, bytes]] | None = None, unseen: HiddenTexts | None = None
) -> Document:
    """The one document of a presentation; what its side file says about it counts first (`side_file`).

    Figures name image files that are put into `images` (name, data). `unseen` takes what an audience does not see.
    """
    about = side_file(path)
    package = OfficePackage(data, "PowerPoint presentation")
    part, root = package.main_part("p:presentation")
    pictures = OfficeImages(package, safe_id(path.stem))
    deck = _Deck(package, pictures, unseen or HiddenTexts())
    hidden = deck.read(part, root)
    if not deck.builder.text:
        raise InputError(
            "this presentation has no text" + (" on slides that are not hidden" if hidden else ""),
            fix="leave it out, or recognise the text of its pictures (OCR)",
        )
    if images is not None:
        images += pictures.taken
    return assemble(_about(about, package, deck, hidden, pictures), deck.builder, path.stem)


def _about(
    about: FrontMatter, package: OfficePackage, deck: _Deck, hidden: list[int], pictures: OfficeImages
) -> FrontMatter:
    stated, facets = core_facets(package)
    if "language" not in facets and (language := main_language(deck.languages)):
        facets["language"] = language
    notices = []
    if hidden:
        numbers = some_of([str(number) for number in hidden], 20)
        notices.append(f"left out: hidden slide{'s' if len(hidden) > 1 else ''} {numbers}")
    if deck.commented:
        notices.append(f"left out: comments on {deck.commented} slide{'s' if deck.commented > 1 else ''}")
    merged: Facets = {**facets, **about.facets}
    return msgspec.structs.replace(
        about,
        title=about.title or stated_or_shown(stated, deck.first_title, deck.builder.text),
        facets=merged,
        notices=(*about.notices, *notices, *package_notices(package, pictures, deck.builder.text)),
    )


class _Deck:
    """Reads the slides of a presentation into one text."""

    def __init__(self, package: OfficePackage, images: OfficeImages, unseen: HiddenTexts) -> None:
        self.builder = TextBuilder()
        self._unseen = unseen
        self.languages: Counter[str] = Counter()
        self.first_title = ""
        self.commented = 0
        self._package = package
        self._images = images
        self._layouts: dict[str, _Layout] = {}
        self._repeated: set[str] = set()
        self._items: list[str] = []

    def read(self, part: str, root: etree._Element) -> list[int]:
        """Take every slide that is shown; the numbers of the others."""
        links = self._package.links(part)
        hidden: list[int] = []
        slides: list[tuple[int, str]] = []
        uses: Counter[str] = Counter()
        for number, node in enumerate(root.iterfind("p:sldIdLst/p:sldId", NAMES), start=1):
            if number > MAX_SLIDES:
                raise HostileInputError(
                    f"presentation refused as hostile: more than {MAX_SLIDES:,} slides", fix="leave it out"
                )
            link = links.get(node.get(qualified("r:id")) or "")
            if link is None or not link.part:
                raise InputError(f"the presentation is broken: slide {number} is missing", fix="repair the file")
            content = self._package.xml(link.part)
            if content.get("show") in {"0", "false"}:
                words = " ".join(text.text or "" for text in content.iter(qualified("a:t")))
                if self._unseen.leaves_out(f"slide {number}", "hidden slide", words):
                    hidden.append(number)
                    continue
            slides.append((number, link.part))
            uses.update(
                {
                    self._package.links(link.part)[id].part
                    for blip in content.iter(qualified("a:blip"))
                    if (id := blip.get(qualified("r:embed")) or "") in self._package.links(link.part)
                }
            )
        self._repeated = {name for name, count in uses.items() if name and count > MAX_ON_SLIDES}
        for number, name in slides:
            self._slide(number, name)
        return hidden

    def _slide(self, number: int, part: str) -> None:
        slide = _Slide(number=number, part=part, root=self._package.xml(part), layout=_Layout(), master=_Layout())
        if layout := self._package.linked(part, "slideLayout"):
            slide.layout = self._inherited(layout)
            if master := self._package.linked(layout, "slideMaster"):
                slide.master = self._inherited(master)
        shapes = list(_shapes(slide.root.find("p:cSld/p:spTree", NAMES), self._unseen, f"slide {slide.number}"))
        titles = [shape for shape in shapes if _place(shape).kind in _TITLES and shape.tag == qualified("p:sp")]
        title = squeeze(" ".join(line.text for shape in titles[:1] for line in self._lines(shape, slide)))
        self.first_title = self.first_title or title
        if title:
            self.builder.nested_heading(title, 1, page=number)
        else:
            self.builder.heading("", 1, page=number)
        for shape in shapes:
            if not titles or shape is not titles[0]:
                self._shape(shape, slide)
        self._flush(number)
        self._notes(slide)
        self.commented += any(link.kind.startswith("comment") for link in self._package.links(part).values())

    def _inherited(self, part: str) -> _Layout:
        if part not in self._layouts:
            self._layouts[part] = _layout(self._package.xml(part))
        return self._layouts[part]

    def _shape(self, shape: etree._Element, slide: _Slide) -> None:
        if shape.tag == qualified("p:sp"):
            if _place(shape).kind not in _PAGE_PARTS:
                for line in self._lines(shape, slide):
                    self._take(line, slide.number)
        elif shape.tag == qualified("p:pic"):
            self._picture(shape, slide)
        elif (table := shape.find(".//a:tbl", NAMES)) is not None:
            self._table(table, shape, slide)
        else:
            self._frame(shape, slide)

    def _take(self, line: _Line, number: int) -> None:
        if line.mark:
            self._items.append(f"{'  ' * min(line.depth, MAX_DEPTH)}{line.mark} {line.text}")
        else:
            self._flush(number)
            self.builder.paragraph(line.text, page=number)

    def _flush(self, number: int) -> None:
        if self._items:
            self.builder.paragraph("\n".join(self._items).strip(), page=number)
            self._items.clear()

    def _lines(self, shape: etree._Element, slide: _Slide) -> Iterator[_Line]:
        """The lines of a shape; numbered ones count on while nothing comes between them."""
        body = shape.find("p:txBody", NAMES)
        place = _place(shape)
        if body is None:
            return
        alone = place.is_place and _is_alone(body)
        styles = [] if alone else [*_list_styles(body, place, slide)]
        is_item = place.is_place and place.kind not in _PLAIN_PLACES and not alone
        counts: dict[int, int] = {}
        for paragraph in body.iterfind("a:p", NAMES):
            text = self._text(paragraph)
            if not text:
                continue
            properties = paragraph.find("a:pPr", NAMES)
            depth = max(0, min(whole_number(properties.get("lvl") if properties is not None else None, 0), MAX_DEPTH))
            bullet = _bullet(properties, styles, depth)
            mark = BULLET if bullet is None and is_item else ""
            counts = {level: count for level, count in counts.items() if level <= depth}
            if bullet is not None and bullet.tag == qualified("a:buAutoNum"):
                start = whole_number(bullet.get("startAt"), 1)
                counts[depth] = counts.get(depth, start - 1) + 1
                mark = _number(counts[depth], bullet.get("type") or "")
            else:
                counts.pop(depth, None)
                if bullet is not None and bullet.tag != qualified("a:buNone"):
                    mark = BULLET
            yield _Line(text, depth, mark)

    def _text(self, paragraph: etree._Element) -> str:
        pieces: list[str] = []
        for node in paragraph.iterchildren(etree.Element):
            if node.tag == qualified("a:br"):
                pieces.append(" ")
            if node.tag == qualified("a:fld") and (node.get("type") or "").startswith(("slidenum", "datetime")):
                continue
            pieces += map(math_text, node.iter(qualified("m:oMath")))
            properties = node.find("a:rPr", NAMES)
            for each in node.iterfind("a:t", NAMES):
                font = properties.find("a:latin", NAMES) if properties is not None else None
                text = symbol_text(each.text or "", font.get("typeface") or "" if font is not None else "")
                if properties is not None and whole_number(properties.get("baseline"), 0) > 0:
                    text = raised("".join(pieces[-3:]), text)
                pieces.append(text)
                language = (properties.get("lang") or "") if properties is not None else ""
                self.languages[language] += len(text.strip())
        return squeeze("".join(pieces))

    def _table(self, table: etree._Element, frame: etree._Element, slide: _Slide) -> None:
        rows = []
        for row in table.iterfind("a:tr", NAMES):
            cells = tuple(
                squeeze(" ".join(self._text(line) for line in cell.iterfind("a:txBody/a:p", NAMES)))
                for cell in row.iterfind("a:tc", NAMES)
            )
            if any(cells):
                rows.append(cells)
        self._flush(slide.number)
        if rows:
            self.builder.table(rows, caption=alternative_text(_about_shape(frame)), page=slide.number)

    def _picture(self, shape: etree._Element, slide: _Slide) -> None:
        blip = shape.find(".//a:blip", NAMES)
        id = blip.get(qualified("r:embed")) if blip is not None else None
        link = self._package.links(slide.part).get(id) if id else None
        size = shape.find("p:spPr/a:xfrm/a:ext", NAMES)
        small = size is not None and min(whole_number(size.get(side), 0) for side in ("cx", "cy")) < MIN_EMU
        if small or (link is not None and link.part in self._repeated):
            return
        self._flush(slide.number)
        file = self._images.name(link)
        caption = alternative_text(_about_shape(shape))
        self.builder.figure(caption=caption, files=[file] if file else [], page=slide.number)

    def _frame(self, frame: etree._Element, slide: _Slide) -> None:
        """A chart or a diagram: its title or description, and the texts of a diagram."""
        links = self._package.links(slide.part)
        for chart in frame.iter(qualified("c:chart")):
            link = links.get(chart.get(qualified("r:id")) or "")
            caption = alternative_text(_about_shape(frame))
            self._flush(slide.number)
            self.builder.figure(
                caption=caption or (chart_title(self._package, link.part) if link is not None else ""),
                page=slide.number,
            )
        for diagram in frame.iter(qualified("dgm:relIds")):
            link = links.get(diagram.get(qualified("r:dm")) or "")
            for text in diagram_lines(self._package, link.part) if link is not None else []:
                self._take(_Line(text, 0, BULLET), slide.number)

    def _notes(self, slide: _Slide) -> None:
        root = self._package.linked_xml(slide.part, "notesSlide")
        if root is None:
            return
        texts = [
            text
            for shape in _shapes(root.find("p:cSld/p:spTree", NAMES))
            if shape.tag == qualified("p:sp") and _place(shape).kind not in _PAGE_PARTS
            for paragraph in shape.iterfind("p:txBody/a:p", NAMES)
            if (text := self._text(paragraph))
        ]
        if texts:
            self.builder.paragraph(NOTES + "\n".join(texts), page=slide.number)


def _shapes(
    tree: etree._Element | None, unseen: HiddenTexts | None = None, place: str = ""
) -> Iterator[etree._Element]:
    """Shapes, pictures and frames in their order, also those in groups; hidden ones are left out and listed."""
    for child in tree.iterchildren(etree.Element) if tree is not None else ():
        about = _about_shape(child)
        if about is not None and about.get("hidden") in {"1", "true"}:
            words = " ".join(text.text or "" for text in child.iter(qualified("a:t")))
            if unseen is None or unseen.leaves_out(place, "hidden shape", words):
                continue
        if child.tag == qualified("p:grpSp"):
            yield from _shapes(child, unseen, place)
        elif child.tag == qualified("mc:AlternateContent"):
            yield from _shapes(chosen_content(child), unseen, place)
        elif child.tag in {qualified("p:sp"), qualified("p:pic"), qualified("p:graphicFrame")}:
            yield child


def _about_shape(shape: etree._Element) -> etree._Element | None:
    """The name and description of a shape, which have another parent for each kind."""
    return next(
        (found for each in shape.iterchildren(etree.Element) if (found := each.find("p:cNvPr", NAMES)) is not None),
        None,
    )


def _place(shape: etree._Element) -> _Place:
    found = shape.find("p:nvSpPr/p:nvPr/p:ph", NAMES)
    return _Place() if found is None else _Place(found.get("type") or "", found.get("idx") or "", is_place=True)


def _is_alone(body: etree._Element) -> bool:
    """Whether a text is one paragraph: a sentence in a place for lists is not a list."""
    return sum(1 for each in body.iterfind("a:p", NAMES) if any(map(str.strip, _texts(each)))) == 1


def _texts(node: etree._Element) -> Iterator[str]:
    return (text.text or "" for text in node.iter(qualified("a:t")))


def _list_styles(body: etree._Element, place: _Place, slide: _Slide) -> Iterator[etree._Element]:
    """Where bullets are defined, the nearest first: the shape, its place in the layout and the master."""
    own = body.find("a:lstStyle", NAMES)
    if own is not None:
        yield own
    if not place.is_place:
        return
    yield from slide.layout.by_number.get(place.number, ())
    yield from slide.master.by_kind.get(place.kind or "body", ())
    yield from slide.master.titles if place.kind in _TITLES else slide.master.bodies


def _layout(root: etree._Element) -> _Layout:
    found = _Layout(
        titles=root.findall("p:txStyles/p:titleStyle", NAMES), bodies=root.findall("p:txStyles/p:bodyStyle", NAMES)
    )
    for shape in _shapes(root.find("p:cSld/p:spTree", NAMES)):
        place, style = _place(shape), shape.find("p:txBody/a:lstStyle", NAMES)
        if place.is_place and style is not None:
            found.by_number.setdefault(place.number, []).append(style)
            found.by_kind.setdefault(place.kind, []).append(style)
    return found


def _bullet(properties: etree._Element | None, styles: list[etree._Element], depth: int) -> etree._Element | None:
    """What says whether a line has a bullet: the line itself, else the nearest style for its depth."""
    inherited = (style.find(f"a:lvl{depth + 1}pPr", NAMES) for style in styles)
    for node in (properties, *inherited):
        found = next((each for each in node if each.tag in _BULLETS), None) if node is not None else None
        if found is not None:
            return found
    return None


def _number(count: int, form: str) -> str:
    """A number as PowerPoint names its forms: `arabicPeriod` is `1.`, `alphaLcParenBoth` is `(a)`."""
    kind = next((kind for start, kind in _FORMS.items() if form.startswith(start)), "decimal")
    text = marked_by(count, kind)
    if form.endswith("ParenBoth"):
        return f"({text})"
    return text + (")" if form.endswith("ParenR") else ".")
