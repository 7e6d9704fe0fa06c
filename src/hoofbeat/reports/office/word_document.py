"""A report as a Word document, for committees: the findings, who says what, every table, and the pairs to be read.

Pages are across, as tables are wide. Charts and how everything was made are left to the page. Of a long table and of a
long list Word has the first rows, and says so.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hoofbeat.reports.model import (
    AnswerView,
    Block,
    Columns,
    Details,
    Entry,
    Heading,
    Notice,
    PairView,
    QuestionView,
    Report,
    SideView,
    SynthesisView,
    Text,
    Viewer,
)
from hoofbeat.reports.office.office_packages import WRITTEN
from hoofbeat.reports.tables import Table, written
from hoofbeat.text import clean, one_line

if TYPE_CHECKING:
    from docx.document import Document
    from docx.table import _Cell

_ROWS = 200
_ENTRIES = 20
_FIXED = (1980, 1, 1, 0, 0, 0)  # the earliest date that a zip archive can hold


def to_docx(report: Report) -> bytes:
    """The document."""
    import docx

    document = docx.Document()
    facts = document.core_properties
    facts.title, facts.author, facts.last_modified_by = one_line(report.title), f"Hoofbeat {report.version}", "Hoofbeat"
    facts.comments = report.notice
    facts.created = facts.modified = WRITTEN.replace(tzinfo=None)
    writer = _Writer(document)
    document.add_heading(one_line(report.title), 0)
    if report.subtitle:
        writer.paragraph(report.subtitle)
    writer.paragraph(report.notice, bold=True)
    for warning in report.warnings:
        writer.paragraph(warning, style="Intense Quote")
    if report.leads:
        document.add_heading("What was found", 1)
        for lead in report.leads:
            writer.paragraph(lead.text, style="List Bullet")
    for note in report.notes:
        writer.paragraph(note, style="Intense Quote")
    writer.blocks((*report.opening, *report.blocks))
    if report.origin:
        writer.paragraph("How this was made (commands, models, hashes, cost) is in report.html and manifest.json.")
    stream = io.BytesIO()
    document.save(stream)
    return _dated(stream.getvalue())


def _dated(archive: bytes) -> bytes:
    """The same archive with one fixed date for all its parts."""
    stream = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(archive)) as made, zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as kept:
        for name in made.namelist():
            info = zipfile.ZipInfo(name, _FIXED)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, 0o600 << 16
            kept.writestr(info, made.read(name))
    return stream.getvalue()


class _Writer:
    """Writes blocks into a document, one after the other."""

    def __init__(self, document: Document) -> None:
        from docx.enum.section import WD_ORIENT
        from docx.shared import Mm

        self._document = document
        section = document.sections[0]
        section.orientation = WD_ORIENT.LANDSCAPE
        section.page_width, section.page_height = Mm(297), Mm(210)
        section.left_margin = section.right_margin = Mm(18)
        section.top_margin = section.bottom_margin = Mm(16)

    def paragraph(self, text: str, *, style: str = "", bold: bool = False, size: float = 0) -> None:
        """A paragraph of one line of text."""
        from docx.shared import Pt

        run = self._document.add_paragraph(style=style or None).add_run(_plain(text))
        run.bold = bold or None
        if size:
            run.font.size = Pt(size)

    def blocks(self, blocks: Sequence[Block]) -> None:
        """Blocks in order; charts and grids have no part in a document of text and tables."""
        for block in blocks:
            match block:
                case Heading():
                    self._document.add_heading(_plain(block.text), block.level - 1)
                case Text():
                    self.paragraph(f"{block.label}: {block.text}" if block.label else block.text)
                case Notice():
                    self.paragraph(block.text, style="Intense Quote")
                case Table():
                    self._table(block)
                case SynthesisView():
                    self._synthesis(block)
                case Columns() | Details():
                    self.blocks(block.blocks)
                case Viewer():
                    self._viewer(block)
                case QuestionView() | AnswerView() | PairView():
                    self._view(block)
                case _:
                    pass

    def _table(self, table: Table) -> None:
        self.paragraph(f"{table.caption} (n = {table.counted})", bold=True)
        self._document.paragraphs[-1].paragraph_format.keep_with_next = True
        made = self._document.add_table(rows=1, cols=len(table.columns), style="Table Grid")
        size = 8.5 if len(table.columns) <= 8 else 7.0
        for cell, column in zip(made.rows[0].cells, table.columns, strict=True):
            _fill(cell, column.title, size, bold=True)
        _mark(made.rows[0], "w:tblHeader")  # again on every page
        for row in table.rows[:_ROWS]:
            line = made.add_row()
            _mark(line, "w:cantSplit")  # not half a row on a page
            for cell, value, column in zip(line.cells, row, table.columns, strict=True):
                _fill(cell, written(value, column.form), size, right=column.form != "text")
        if len(table.rows) > _ROWS:
            self.paragraph(f"The first {_ROWS} of {len(table.rows):,} rows; the workbook and the CSV file have all.")
        self.paragraph(table.note, size=8)

    def _synthesis(self, view: SynthesisView) -> None:
        """Who says what, and the passages behind each statement."""
        self._table(view.table)
        if view.notes:
            self.paragraph(view.notes_title, bold=True)
        for note in view.notes:
            quote = f"“{note.quote}”" if note.quote else "no quote was found in the source"
            check = f" To be checked: {note.check}" if note.check else ""
            newer = f" Newer: {note.newer} says otherwise." if note.newer else ""
            where = f" ({note.where})" if note.where else ""
            self.paragraph(f"{note.number}. {note.who}: {quote}{where}{check}{newer}", size=8)

    def _viewer(self, viewer: Viewer) -> None:
        for entry in viewer.entries[:_ENTRIES]:
            self._entry(entry)
        more = viewer.total + viewer.left_out - min(_ENTRIES, len(viewer.entries))
        if more > 0:
            self.paragraph(f"{more:,} more {viewer.noun} are on the page report.html and in the folder's tables.")

    def _entry(self, entry: Entry) -> None:
        marks = "; ".join(text for text, _ in entry.marks)
        self._document.add_heading(_plain(f"{entry.title} ({entry.name})"), 4)
        if marks:
            self.paragraph(marks, size=9)
        self.blocks([block for block in entry.blocks if isinstance(block, Text | Notice | AnswerView | PairView)])

    def _view(self, view: QuestionView | AnswerView | PairView) -> None:
        match view:
            case QuestionView():
                self.paragraph(f"Question: {view.text}")
                if view.gold:
                    self.paragraph(f"Gold answer: {view.gold}")
            case AnswerView():
                self.paragraph(f"{view.system} ({view.verdict_text}): {view.text or view.failure}")
            case PairView():
                facts = "".join(f", {fact}" for fact in view.facts)
                self.paragraph(f"{view.label}{facts}. {view.reasoning}".rstrip())
                for side in (view.a, view.b):
                    self._side(side)

    def _side(self, side: SideView) -> None:
        self.paragraph(f"{side.name}: {side.text}")
        for passage in side.cited:
            self.paragraph(f"“{passage.text}” ({passage.source})", style="Quote", size=9)
        for warning in side.warnings:
            self.paragraph(f"Note: {warning}", size=9)


def _fill(cell: _Cell, text: str, size: float, *, bold: bool = False, right: bool = False) -> None:
    from docx.enum.text import WD_ALIGN_PARAGRAPH
    from docx.shared import Pt

    paragraph = cell.paragraphs[0]
    run = paragraph.add_run(_plain(text))
    run.bold, run.font.size = bold or None, Pt(size)
    paragraph.paragraph_format.space_after = Pt(0)
    if right:
        paragraph.alignment = WD_ALIGN_PARAGRAPH.RIGHT


def _mark(row: Any, name: str) -> None:
    """Set a property of a row that the library has no word for."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    mark = OxmlElement(name)
    mark.set(qn("w:val"), "true")
    row._tr.get_or_add_trPr().append(mark)


def _plain(text: str) -> str:
    """The text with hidden characters shown by their numbers, which XML could not hold, and its lines joined."""
    return " ".join(clean(text).split())
