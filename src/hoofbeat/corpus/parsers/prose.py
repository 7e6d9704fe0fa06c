"""One text with structure laid over it, and plain text read into it.

Every reader builds its document with `TextBuilder`, so offsets mean the same everywhere. Blocks (headings, paragraphs,
figures, tables) are separated by one blank line. A section's `start` is its heading's first character, `body` the first
character of its own text, `end` the end of that text; a section without text has `body == end` at the end of its
heading.

Plain text has its structure inline: headings on lines of their own, captions, tables with tabs. Published case reports
come this way out of text-mining corpora: a heading is alone in its block or on the first line of it, captions are where
the figure was, and tabs separate table cells. Handbooks in plain text have the headings only. What can't be told apart
for sure remains a paragraph: no word is lost either way, except the stray `pmc` that such corpora put before the first
word, and figure labels that are repeated without a caption.

Front matter is what a document says about itself beside its text, or a side file says for formats that have none:
`key: value` lines between two `---` lines. `id`, `title`, `kind`, `licence` and `notice` go to the record, every other
key is a facet; a value written `[a, b]` is a list.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.corpus.parsers.titles import best_title
from hoofbeat.corpus.roles import Role, role_of
from hoofbeat.errors import InputError
from hoofbeat.records import Document, DocumentTable, Facets, Figure, Section
from hoofbeat.text import safe_id, squeeze

BLANK_LINE = "\n\n"


def joined_label(label: str, text: str) -> str:
    """Label and caption as one sentence pair: `Figure 1. A caption`."""
    if not label or not text:
        return label or text
    return f"{label} {text}" if label[-1] in ".:)]" else f"{label}. {text}"


class TextBuilder:
    """Takes a document's blocks in reading order and records where each is."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.tables: list[DocumentTable] = []
        self._blocks: list[str] = []
        self._length = 0
        self._done: list[Section] = []
        self._open: Section | None = None
        self._start = self._body = self._end = 0
        self._above: list[tuple[int, str]] = []

    def heading(self, text: str, level: int, *, role: str = "", page: int | None = None) -> None:
        """Begin a section. An empty heading begins one whose text has none."""
        self._close()
        if text:
            start, end = self._append(text)
        else:
            start = end = self._next()
        self._open = Section(heading=text, level=level, start=start, body=end, end=end, role=role, page=page)
        self._start, self._body, self._end = start, end, end

    def nested_heading(self, text: str, level: int, *, page: int | None = None) -> None:
        """Begin a section with the role that its heading tells, or else that of the section it is part of."""
        while self._above and self._above[-1][0] >= level:
            self._above.pop()
        role = role_of(text, self._above[-1][1] if self._above else "")
        self._above.append((level, role))
        self.heading(text, level, role=role, page=page)

    def paragraph(self, text: str, *, page: int | None = None) -> tuple[int, int]:
        """Add a block to the open section (or to one without a heading) and return where it is."""
        if not text:
            return self._length, self._length
        if self._open is None:
            self.heading("", 1, page=page)
        section = self._open
        assert section is not None
        start, end = self._append(text)
        if self._body == self._end and (not section.heading or self._body < start):
            self._body = start
            self._start = self._start if section.heading else start
        self._end = end
        return start, end

    def figure(
        self, *, id: str = "", label: str = "", caption: str = "", files: Iterable[str] = (), page: int | None = None
    ) -> None:
        """Add a figure; its label and caption are in the text at this place."""
        start, end = self.paragraph(joined_label(label, caption), page=page)
        name = id or f"figure-{len(self.figures) + 1}"
        self.figures.append(
            Figure(id=name, label=label, caption=caption, files=tuple(files), start=start, end=end, page=page)
        )

    def table(
        self,
        rows: Iterable[tuple[str, ...]],
        *,
        id: str = "",
        label: str = "",
        caption: str = "",
        notes: Iterable[str] = (),
        page: int | None = None,
    ) -> None:
        """Add a table; its label, caption, rows and notes are in the text at this place, one line each."""
        cells = tuple(rows)
        lines = [joined_label(label, caption), *(" | ".join(row).strip() for row in cells), *notes]
        start, end = self.paragraph("\n".join(line for line in lines if line.strip(" |")), page=page)
        name = id or f"table-{len(self.tables) + 1}"
        self.tables.append(
            DocumentTable(id=name, label=label, caption=caption, rows=cells, start=start, end=end, page=page)
        )

    @property
    def text(self) -> str:
        """The text so far."""
        return BLANK_LINE.join(self._blocks)

    def sections(self) -> tuple[Section, ...]:
        """The finished sections, in reading order."""
        self._close()
        return tuple(self._done)

    def _next(self) -> int:
        return self._length + len(BLANK_LINE) if self._blocks else 0

    def _append(self, text: str) -> tuple[int, int]:
        start = self._next()
        self._blocks.append(text)
        self._length = start + len(text)
        return start, self._length

    def _close(self) -> None:
        section = self._open
        self._open = None
        if section is not None and (section.heading or self._end > self._start):
            self._done.append(msgspec.structs.replace(section, start=self._start, body=self._body, end=self._end))


MAX_HEADING = 80
WRAPPED_WIDTH = 100
MIN_BODY = 60
MAX_HEADING_RUN = 3
_STRAY = re.compile(r"pmc(?=[A-Z0-9])")
_BLANK = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")
_FIGURE = re.compile(
    r"(?P<label>(?i:(?:supplementary |supplemental )?fig(?:ure|\.)?)\s{0,3}S?\d{1,3}[A-Za-z]?)"
    r"(?:\s*$|\s*[.:|)–—]\s*(?=\S)|\s+(?=[^a-z]|[a-z][.)]))"
)
_REPEATED = re.compile(r"Fig(?:ure|\.)?\s{0,3}\d{1,3}[A-Za-z]?(?=Fig(?:ure|\.)?\s{0,3}\d)")
_TABLE = re.compile(r"((?i:table)\s{0,3}(?:S?\d{1,3}[A-Za-z]?|[IVX]{1,4})(?![A-Za-z]))\s*[.:|–—]?\s*")
_NUMBERED = re.compile(r"(\d{1,2}(?:\.\d{1,2}){0,3})[.)]?\s+(?=[^\W\d_])")
_ADDRESS = re.compile(r"https?://|www\.|@|\borcid\b|\bdoi\b|=", re.IGNORECASE)
_LABELLED = re.compile(r":\s*\S")
_MAIN = frozenset({
    Role.ABSTRACT, Role.INTRODUCTION, Role.CASE, Role.METHODS, Role.RESULTS, Role.DISCUSSION, Role.CONCLUSION, Role.BACK
})  # fmt: skip
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$")
_OPENING, _CLOSING = "([{", ")]}"


class _Unit(Struct, frozen=True):
    """A line (or a wrapped paragraph), or a table's rows, and how it stands in its block."""

    text: str
    rows: tuple[tuple[str, ...], ...] = ()
    alone: bool = False
    first: bool = False
    is_list: bool = False


def lay_out(text: str, builder: TextBuilder) -> None:
    """Put a text with inline headings, captions and tables into a builder."""
    units = list(_units(_STRAY.sub("", text.strip("\n"), count=1) if _STRAY.match(text) else text.strip("\n")))
    headings = _headings(units)
    levels = _Levels()
    last_label = ""
    place = 0
    while place < len(units):
        unit = units[place]
        following = units[place + 1] if place + 1 < len(units) else None
        place += 1
        if unit.rows:
            builder.table(unit.rows)
        elif place - 1 in headings:
            heading = squeeze(unit.text)
            level, role = levels.of(heading)
            builder.heading(heading, level, role=role)
        elif figure := _FIGURE.match(unit.text):
            label, caption = squeeze(figure.group("label")), squeeze(unit.text[figure.end() :])
            if caption or label != last_label:
                builder.figure(label=label, caption=caption)
            last_label = label
        elif following and following.rows and (table := _TABLE.match(unit.text)):
            builder.table(following.rows, label=squeeze(table.group(1)), caption=squeeze(unit.text[table.end() :]))
            place += 1
        else:
            builder.paragraph(unit.text if unit.is_list else squeeze(unit.text))


def is_item(line: str) -> bool:
    """Whether a line begins a list's item."""
    return bool(_ITEM.match(line))


def list_items(lines: list[str], clean: Callable[[str], str]) -> Iterator[str]:
    """List lines, cleaned, with `- ` or their number; a line that begins no item belongs to the one before."""
    indents: list[int] = []
    item = ""
    for line in lines:
        match = _ITEM.match(line)
        if match is None:
            item = f"{item} {line.strip()}".strip()
            continue
        if item:
            yield _finished(item, clean)
        width = len(match.group(1))
        while indents and indents[-1] >= width:
            indents.pop()
        indents.append(width)
        mark = "-" if match.group(2) in "-*+" else match.group(2)
        item = "\0" * (len(indents) - 1) + f"{mark} {match.group(3).strip()}"
    if item:
        yield _finished(item, clean)


def _finished(item: str, clean: Callable[[str], str]) -> str:
    depth = len(item) - len(item.lstrip("\0"))
    text = item[depth:]
    mark, space, rest = text.partition(" ")
    if not _ITEM.match(text):
        return clean(text)
    return "  " * depth + mark + space + clean(rest)


def lay_out_prose(text: str, builder: TextBuilder) -> None:
    """Put a section's text into a builder: paragraphs and lists, no headings.

    Lines broken inside brackets or before a closing mark belong together (text taken from web pages breaks there).
    """
    for block in _BLANK.split(text.strip("\n")):
        paragraph = ""
        for line in filter(None, map(squeeze, block.split("\n"))):
            if paragraph and (_is_open(paragraph) or line[0] in ",.;:)]}"):
                gap = "" if paragraph[-1] in _OPENING or line[0] in ",.;:)]}" else " "
                paragraph += gap + line
                continue
            builder.paragraph(paragraph)
            paragraph = line
        builder.paragraph(paragraph)


def _is_open(text: str) -> bool:
    """Whether the end of a text stands inside a bracket that was opened not long ago."""
    tail = text[-200:]
    return sum(tail.count(mark) for mark in _OPENING) > sum(tail.count(mark) for mark in _CLOSING)


def _units(text: str) -> Iterator[_Unit]:
    widths = sorted(len(line) for line in text.split("\n") if line.strip())
    wrapped = not widths or widths[len(widths) * 95 // 100] <= WRAPPED_WIDTH
    for block in _BLANK.split(text):
        lines = [_REPEATED.sub("", line) for line in block.split("\n") if line.strip()]
        tabbed = [place for place, line in enumerate(lines) if "\t" in line.strip(" ")]
        if tabbed:
            yield from _lines(lines[: tabbed[0]], wrapped)
            rows = (tuple(map(squeeze, line.strip(" ").split("\t"))) for line in lines[tabbed[0] : tabbed[-1] + 1])
            kept = tuple(_trimmed(row) for row in rows if any(row))
            if kept:
                yield _Unit("", rows=kept)
            lines = lines[tabbed[-1] + 1 :]
        yield from _lines(lines, wrapped)


def _trimmed(row: tuple[str, ...]) -> tuple[str, ...]:
    """A row without the empty cells at its end (corpora end every row with a tab)."""
    end = len(row)
    while end > 1 and not row[end - 1]:
        end -= 1
    return row[:end]


def _lines(lines: Sequence[str], wrapped: bool) -> Iterator[_Unit]:
    if len(lines) == 1:
        yield _Unit(lines[0], alone=True, first=True, is_list=is_item(lines[0]))
    elif any(map(is_item, lines)):
        yield _Unit("\n".join(filter(None, list_items(list(lines), squeeze))), is_list=True)
    elif wrapped:
        if lines and _is_known_heading(lines[0]):
            yield _Unit(lines[0], first=True)
            lines = lines[1:]
        yield from [_Unit(" ".join(lines))] if lines else []
    else:
        yield from (_Unit(line, first=number == 0) for number, line in enumerate(lines))


def _is_known_heading(line: str) -> bool:
    """Whether the first line of a wrapped block is a heading for sure: nothing else than a part's well-known name."""
    unit = _Unit(line)
    return len(line) < MIN_BODY and _could_be_heading(unit) and bool(role_of(squeeze(line)))


def _headings(units: Sequence[_Unit]) -> set[int]:
    """Which units are headings: short lines that something follows, alone in their block or before a long line."""
    found: set[int] = set()
    run: list[int] = []
    for place, unit in enumerate(units[:-1]):
        following = units[place + 1]
        known = _could_be_heading(unit) and bool(role_of(squeeze(unit.text)))
        above = unit.alone or following.rows or len(following.text) >= MIN_BODY
        after_heading = unit.first or place - 1 in found
        if _could_be_heading(unit) and after_heading and (known or above) and not _is_caption(unit, following):
            found.add(place)
            run = run if known else [*run, place]
        else:
            found -= set(run) if len(run) > MAX_HEADING_RUN else set()
            run = []
    return found - (set(run) if len(run) > MAX_HEADING_RUN else set())


def _is_caption(unit: _Unit, following: _Unit) -> bool:
    return bool(_FIGURE.match(unit.text)) or bool(following.rows and _TABLE.match(unit.text))


def may_be_heading(block: str) -> bool:
    """Whether a block of one line is written as a heading is: short, a capital or a number first, no full stop."""
    return "\n" not in block and _could_be_heading(_Unit(block, is_list=is_item(block)))


def _could_be_heading(unit: _Unit) -> bool:
    text = unit.text.strip()
    if unit.rows or len(text) > MAX_HEADING or text[-1] in ".,;!…" or _ADDRESS.search(text) or _TABLE.match(text):
        return False
    begins = bool(_NUMBERED.match(text)) or (text[0].isalpha() and not text[0].islower() and not unit.is_list)
    return begins and (not _LABELLED.search(text) or role_of(squeeze(text)) not in {"", Role.BACK})


class _Levels:
    """Levels of headings that only their words and numbers tell: main parts are 1, what stands under them 2 or more."""

    def __init__(self) -> None:
        self._parent = ""
        self._seen_main = False
        self._main_caps = False

    def of(self, heading: str) -> tuple[int, str]:
        """The level and the role of the next heading."""
        own = role_of(heading)
        numbered = _NUMBERED.match(heading)
        main = own in _MAIN
        if numbered:
            level = numbered.group(1).count(".") + 1
        elif main or not self._seen_main or (self._main_caps and heading.isupper()):
            level = 1
        else:
            level = 2
        role = own if level == 1 else role_of(heading, self._parent)
        if level == 1:
            self._parent = role
            if main:
                self._seen_main, self._main_caps = True, heading.isupper()
        return level, role


MAX_SIDE_FILE = 1_000_000


class FrontMatter(Struct, frozen=True, kw_only=True):
    """A document's statements about itself; empty where it makes none."""

    id: str = ""
    title: str = ""
    kind: str = ""
    licence: str = ""
    notices: tuple[str, ...] = ()
    facets: Facets = field(default_factory=dict)


def split_front_matter(text: str) -> tuple[FrontMatter, str]:
    """Front matter and the rest; text that has none is returned whole."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return FrontMatter(), text
    end = next((place for place, line in enumerate(lines[1:], start=1) if line.strip() in {"---", "..."}), None)
    if end is None:
        return FrontMatter(), text
    pairs = [
        (key.strip(), value.strip()) for key, colon, value in (line.partition(":") for line in lines[1:end]) if colon
    ]
    return about_from(
        (key, front_matter_value(value)) for key, value in pairs if key and not key.startswith("#")
    ), "\n".join(lines[end + 1 :])


def about_from(pairs: Iterable[tuple[str, str | list[str]]]) -> FrontMatter:
    """Statements from key and value pairs."""
    record: dict[str, str] = {}
    notices: list[str] = []
    facets: Facets = {}
    for key, value in pairs:
        words = value if isinstance(value, list) else [value]
        name = {"license": "licence", "notices": "notice"}.get(key.lower(), key)
        if name == "notice":
            notices += [word for word in words if word]
        elif name in {"id", "title", "kind", "licence"}:
            record[name] = squeeze(", ".join(words))
        elif value:
            facets[key] = value
    if record.get("id"):
        record["id"] = safe_id(record["id"])
    return FrontMatter(notices=tuple(notices), facets=facets, **record)


def side_file(path: Path) -> FrontMatter:
    """What a Markdown source of the same name (beside the file or one folder up) or `<stem>.json` says about a file."""
    for source in (path.with_suffix(".md"), path.parent.parent / f"{path.stem}.md"):
        if _readable(source):
            about, _ = split_front_matter(source.read_text(encoding="utf-8-sig", errors="replace"))
            if about != FrontMatter():
                return about
    source = path.with_suffix(".json")
    if not _readable(source):
        return FrontMatter()
    try:
        found = msgspec.json.decode(source.read_bytes(), type=dict[str, str | int | float | list[str]])
    except (msgspec.DecodeError, UnicodeDecodeError) as err:
        raise InputError(
            f"the metadata file beside it can't be read: {source.name}: {err}",
            fix="make it one JSON object of texts, or remove it",
        ) from err
    return about_from(_plain(found).items())


def _plain(found: Mapping[str, str | int | float | list[str]]) -> dict[str, str | list[str]]:
    return {key: value if isinstance(value, list) else str(value) for key, value in found.items()}


def _readable(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and path.stat().st_size <= MAX_SIDE_FILE


def front_matter_value(text: str) -> str | list[str]:
    """A value as it is written: `[a, b]` is a list, quotes around it are not part of it."""
    if text.startswith("[") and text.endswith("]"):
        return [item for part in text[1:-1].split(",") if (item := _unquoted(part.strip()))]
    return _unquoted(text)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'" else text


def assemble(about: FrontMatter, builder: TextBuilder, stem: str) -> Document:
    """A document from what was said about it and its text; where no title is stated, the text gives one (`titles`)."""
    sections = builder.sections()
    return Document(
        id=about.id or safe_id(stem),
        title=about.title or best_title((), sections, first_line(builder.text), stem),
        text=builder.text,
        kind=about.kind,
        sections=sections,
        figures=tuple(builder.figures),
        tables=tuple(builder.tables),
        facets=about.facets,
        licence=about.licence,
        notices=about.notices,
    )


def first_line(text: str) -> str:
    """The first block of a text where it is written like a heading; else nothing."""
    block = text.partition(BLANK_LINE)[0]
    return block if block and may_be_heading(block) else ""
