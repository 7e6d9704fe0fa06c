"""One text with structure laid over it: every reader builds its document here, so offsets mean the same everywhere.

Blocks (headings, paragraphs, figures, tables) are separated by one blank line. A section's `start` is its heading's
first character, `body` the first character of its own text, `end` the end of that text; a section without text of its
own has `body == end` at the end of its heading.
"""

from __future__ import annotations

from collections.abc import Iterable

from hoofbeat.corpus.roles import role_of
from hoofbeat.records import DocumentTable, Figure, Section

__all__ = ["TextBuilder", "joined_label", "role_of"]

BLANK_LINE = "\n\n"


def joined_label(label: str, text: str) -> str:
    """Label and caption as one sentence pair: `Figure 1. A caption`."""
    if not label or not text:
        return label or text
    return f"{label} {text}" if label[-1] in ".:)]" else f"{label}. {text}"


class TextBuilder:
    """Takes a document's blocks in reading order and keeps count of where each stands."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self.tables: list[DocumentTable] = []
        self._blocks: list[str] = []
        self._length = 0
        self._done: list[Section] = []
        self._open: Section | None = None

    def heading(self, text: str, level: int, *, role: str = "", page: int | None = None) -> None:
        """Begin a section. An empty heading begins one whose text has none."""
        self._close()
        if text:
            start, end = self._append(text)
        else:
            start = end = self._next()
        self._open = Section(heading=text, level=level, start=start, body=end, end=end, role=role, page=page)

    def paragraph(self, text: str, *, page: int | None = None) -> tuple[int, int]:
        """Add a block to the open section (or to one without a heading) and say where it stands."""
        if not text:
            return self._length, self._length
        if self._open is None:
            self.heading("", 1, page=page)
        section = self._open
        assert section is not None
        start, end = self._append(text)
        first = section.body == section.end and (section.heading == "" or section.body < start)
        body = start if first else section.body
        begin = start if first and not section.heading else section.start
        self._open = Section(
            heading=section.heading,
            level=section.level,
            start=begin,
            body=body,
            end=end,
            role=section.role,
            page=section.page,
        )
        return start, end

    def figure(
        self, *, id: str = "", label: str = "", caption: str = "", files: Iterable[str] = (), page: int | None = None
    ) -> None:
        """Add a figure; its label and caption stand in the text at this place."""
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
        """Add a table; its label, caption, rows and notes stand in the text at this place, a line each."""
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
        if section is not None and (section.heading or section.end > section.start):
            self._done.append(section)
