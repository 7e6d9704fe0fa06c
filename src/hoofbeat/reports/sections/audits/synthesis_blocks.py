"""The synthesis table in a report and on an audit's page: who says what, one printed page per topic.

It comes before all rates, because a reader wants to know first who differs on what. A sign and a word stand beside each
colour. The size of the type in print is chosen so that a table fits the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.answer_lines import NONE_GIVEN
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.audit.synthesis.audit_export import cell_text
from hoofbeat.audit.synthesis.synthesis_table import (
    ADDS,
    AGREES,
    ALONE,
    COLUMNS,
    DIFFERS,
    HEADER,
    OPPOSES,
    ROWS,
    SILENT,
    UNGROUNDED,
    UNKNOWN,
    SourceStatement,
    SynthesisCell,
    SynthesisRow,
    SynthesisTable,
    listed,
    synthesis_records,
    synthesis_tables,
)
from hoofbeat.reports.model import (
    Block,
    FootnoteView,
    Heading,
    StatementView,
    SynthesisRowView,
    SynthesisView,
    Text,
)
from hoofbeat.reports.tables import Column, Table, count_of, csv_text
from hoofbeat.text import cut

PAGES = 12
"""How many printed pages of tables a report has at most; the file beside it has every question."""

_SIGNS = {AGREES: "=", ADDS: "+", DIFFERS: "≠", OPPOSES: "⇄", ALONE: "○", UNGROUNDED: "!", UNKNOWN: "?"}
_WORDS = {
    AGREES: "agrees with all or most others",
    ADDS: "agree, with different details",
    DIFFERS: "DIFFERS from others that answer",
    OPPOSES: "OPPOSITE to the one named",
    ALONE: "the only one that answers",
    UNGROUNDED: "not grounded: its quote was not found in the source, so its agreement does not count",
    UNKNOWN: "could not be compared",
}
_SILENT_WORDS = "silent: no answer found in what was read of the document"
_CHECK = "check in the source"
_UNGRADED = "no grade given"
_NO_DATE = "no date given"
_QUOTE, _NAME, _STRENGTH = 240, 60, 38
_FEW = 5
_POINTS = (10.0, 9.0, 8.2, 7.4, 6.7, 6.1, 5.5)
_WIDTH, _HEIGHT = 279.0, 181.0
"""Room on a landscape page of A4, in millimetres: its width, and its height below the titles and the key."""

_FOOT, _KEY = 3.8, 6.5
"""A line of the words below the table, and one of the key beyond its first, in millimetres; they have 200 and about 140
letters, each word of the key with four for its borders."""

_ASKED, _LETTER, _LEADING, _SMALL, _PADDING, _MM = 0.16, 0.5, 1.2, 0.86, 1.5, 0.3528
"""The question's share of the width; a letter's width and a line's height by the size of type; small print by the text;
a row's padding; a point."""

_BORDERS = 0.8
"""The borders of cells that differ, in millimetres."""

_RAGGED = 2.0
"""Letters that a line leaves empty at its end, where the next word does not fit."""

Href = Callable[[str, str], str]
"""Where the answer of a source to a question is shown."""


def read_synthesis(audit: Audit) -> tuple[list[SynthesisTable], int]:
    """The tables that a page shows, and how many questions are left out of them."""
    institutions = len({audit.names.institution(name.id) for name in audit.names})
    wide = -(-max(1, institutions) // COLUMNS)
    tables, left = synthesis_tables(audit, max(ROWS, PAGES * ROWS // wide))
    return tables, left


def synthesis_blocks(audit: Audit, prefix: str, href: Href, *, own_notes: bool = True) -> list[Block]:
    """The tables of an audit, a page each. With `own_notes` a statement leads to its footnote, else to `href`."""
    tables, left = read_synthesis(audit)
    if not tables:
        return []
    blocks: list[Block] = [
        Heading("Who says what", f"{prefix}-synthesis"),
        Text(_told(tables, left, f"synthesis/{prefix}.csv" if own_notes else "")),
    ]
    notes = _Footnotes(id=f"{prefix}-synthesis", own=own_notes)
    pages = [page for table in tables for page in _pages(table, audit.names)]
    for place, page in enumerate(pages, start=1):
        blocks.append(_view(page, f"{prefix}-synthesis-{place}", audit.names, href, notes))
    return blocks


def synthesis_file(audit: Audit, prefix: str) -> tuple[str, bytes]:
    """Every question and document as CSV: answers, quotes, sections, labels."""
    tables, _ = synthesis_tables(audit)
    rows = (list(map(cell_text, record.values())) for record in synthesis_records(tables))
    return f"synthesis/{prefix}.csv", csv_text(HEADER, rows).encode()


def _told(tables: Sequence[SynthesisTable], left: int, file: str) -> str:
    made = sum(
        each.first_sentence for table in tables for row in table.rows for cell in row.cells for each in cell.statements
    )
    told = ["What each institution says on each question. Each statement links to its passage."]
    if any(table.part for table in tables):
        told.append(
            f"A page has at most {ROWS} questions and {COLUMNS} institutions; longer tables continue on the next."
        )
    if made:
        told.append(
            f"{count_of(made, 'statement is', 'statements are')} the first sentence of the answer, because the answer "
            "has no line for the table."
        )
    if left:
        where = f"in {file}" if file else "in the list of questions"
        told.append(f"{count_of(left, 'question')} with less disagreement are listed only {where}.")
    return " ".join(told)


def _pages(table: SynthesisTable, names: SourceNames) -> Iterator[SynthesisTable]:
    """The table, or where its texts are too long for one page, as few parts as fit, of about as many questions each."""
    parts = [table]
    for pages in range(1, len(table.rows) + 1):
        count = -(-len(table.rows) // pages)
        parts = [replace(table, rows=table.rows[first : first + count]) for first in range(0, len(table.rows), count)]
        views = [_view(each, "", names, lambda *_: "", _Footnotes(id="", own=True)) for each in parts]
        if all(view.size < len(_POINTS) for view in views):
            break
    first = table.first_row
    for part in parts:
        last = part is parts[-1]
        yield replace(part, first_row=first, unanswered=table.unanswered if last else ())
        first += len(part.rows)


class _Footnotes(Struct):
    """Footnotes, counted over all tables of a report; those of a topic come after the last of its tables.

    Without `own` notes, only what is to be checked has one.
    """

    id: str
    own: bool
    last: int = 0
    kept: list[FootnoteView] = field(default_factory=list)

    def add(self, each: SourceStatement, link: str) -> int:
        """The number of a statement's footnote, 0 where it has none."""
        if not self.own and not each.warnings:
            return 0
        self.last += 1
        self.kept.append(
            FootnoteView(
                number=self.last,
                who=each.name,
                quote=cut(each.quotes[0], _QUOTE) if each.quotes else "",
                where="; ".join(filter(None, (*each.cited, graded(each)))),
                check="; ".join(each.warnings),
                newer=each.newer_differs,
                link=link,
            )
        )
        return self.last

    def take(self) -> tuple[FootnoteView, ...]:
        """Those that were added since the last time."""
        kept, self.kept = tuple(self.kept), []
        return kept


def _view(table: SynthesisTable, id: str, names: SourceNames, href: Href, notes: _Footnotes) -> SynthesisView:
    columns, several = _columns(table, names)
    said = [each for row in table.rows for cell in row.cells for each in cell.shown]
    ungraded = bool(said) and all(graded(each) == _UNGRADED for each in said)

    def statement(row: SynthesisRow, each: SourceStatement, *, dated: bool) -> StatementView:
        where = href(row.question, each.source)
        number = notes.add(each, where)
        link = f"#{notes.id}-n{number}" if notes.own else where
        return _statement(
            each, number, link, dated=dated, graded_some=not ungraded, narrow=len(table.institutions) > _FEW
        )

    rows = tuple(
        SynthesisRowView(
            name=row.question,
            text=row.text,
            verdict=row.verdict,
            contested=row.contested,
            cells=tuple(
                (cell.state, tuple(statement(row, each, dated=cell.institution in several) for each in cell.shown))
                for cell in row.cells
            ),
            link=href(row.question, ""),
        )
        for row in table.rows
    )
    title = table.topic or "all questions"
    unanswered = tuple((row.text, href(row.question, "")) for row in table.unanswered)
    foot = _foot(rows, numbered=notes.own, ungraded=ungraded)
    step = _step(rows, columns, [foot, " ".join(text for text, _ in unanswered)])
    part = table.part if table.is_last else f"{table.part}, continued on the next page"
    return SynthesisView(
        id=id,
        title=title,
        part=part,
        columns=columns,
        rows=rows,
        notes=notes.take() if table.is_last else (),
        notes_id=notes.id,
        notes_title="Passages behind this table" if notes.own else "Quotations to be checked",
        key=tuple(_key(rows)),
        foot=foot,
        unanswered=unanswered,
        size=len(_POINTS) if step is None else step,
        table=_plain(id, title, part, columns, rows, unanswered),
    )


def _foot(rows: Sequence[SynthesisRowView], *, numbered: bool, ungraded: bool) -> str:
    """How to read the table, of what occurs in it."""
    said = [each for row in rows for _, statements in row.cells for each in statements]
    told = ["Each row is a question, each column an institution; a cell is what its document says."]
    if ungraded:
        told.append("No document grades these recommendations.")
    elif any(each.facts for each in said):
        told.append("Grades are in each document's own words.")
    if any(" with " in each.tag for each in said):
        told.append("“DIFFERS with” names who shares the view.")
    if any(flag.startswith("newer: ") for each in said for flag in each.flags):
        told.append("“Newer”: the latest document that contradicts the cell; no equally new document agrees with it.")
    if any(each.check for each in said):
        told.append(f"“{_CHECK.capitalize()}”: the note with this number says what the check objects to.")
    if numbered and said:
        told.append("Small numbers link to the passages after the table.")
    return " ".join(told)


def _statement(
    each: SourceStatement, number: int, link: str, *, dated: bool, graded_some: bool = True, narrow: bool = False
) -> StatementView:
    tag = ""
    if each.mark == OPPOSES:
        tag = f"OPPOSITE to {listed(each.opposite_to)}" if each.opposite_to else "OPPOSITE"
    elif each.mark == DIFFERS:
        tag = f"DIFFERS with {listed(each.shared_with)}" if each.shared_with else "DIFFERS"
    if not each.grounded:
        tag = ", ".join(filter(None, (tag, "NOT GROUNDED")))
    grade = graded(each) if graded_some else ""
    if narrow:
        grade = cut(grade, _STRENGTH)
    newer = each.newer_differs.rpartition(" ")[2] if narrow else each.newer_differs
    flags = [f"newer: {newer} says otherwise"] if newer else []
    return StatementView(
        line=each.line,
        tone=each.mark or UNKNOWN,
        sign=_SIGNS.get(each.mark, "?"),
        tag=tag,
        facts=tuple(filter(None, (grade, each.version, (each.year or _NO_DATE) if dated else ""))),
        flags=tuple(flags),
        check=_CHECK if each.warnings else "",
        note=number,
        link=link,
    )


def graded(each: SourceStatement) -> str:
    """The strength of the recommendation, in the source's words; of several parts, each grade once."""
    parts = each.strength.split(" / ")
    grades = [part for part in dict.fromkeys(parts) if part != NONE_GIVEN]
    if not grades:
        return _UNGRADED
    return " / ".join(grades) + ("; other parts not graded" if NONE_GIVEN in parts else "")


def _columns(table: SynthesisTable, names: SourceNames) -> tuple[tuple[tuple[str, str], ...], set[str]]:
    """Each institution with its document and date in small print; and those whose cells show the year.

    The date of an institution's only document is in the head, for it is the same in every cell.
    """
    asked = {each.source for row in table.rows for cell in row.cells for each in cell.statements}
    found, several = [], set()
    for institution in table.institutions:
        mine = [name for name in names if name.id in asked and names.institution(name.id) == institution]
        if len(mine) == 1:
            told = [mine[0].title, mine[0].dated or _NO_DATE]
        else:
            told = [count_of(len(mine), "document"), *([] if any(name.year for name in mine) else [_NO_DATE])]
            several |= {institution} if any(name.year for name in mine) else set()
        found.append((cut(institution, _NAME), ", ".join(each for each in told if each and each != institution)))
    return tuple(found), several


def _meanings(institutions: int) -> dict[str, str]:
    """What marks mean; two institutions have no majority."""
    return _WORDS if institutions > 2 else {**_WORDS, AGREES: "agrees"}


def _key(rows: Sequence[SynthesisRowView]) -> Iterator[tuple[str, str, str]]:
    """What the signs mean, of those that the table has."""
    tones = {each.tone for row in rows for _, statements in row.cells for each in statements}
    states = {state for row in rows for state, statements in row.cells if not statements}
    words = _meanings(max((len(row.cells) for row in rows), default=0))
    yield from ((tone, sign, words[tone]) for tone, sign in _SIGNS.items() if tone in tones)
    if "silent" in states:
        yield "silent", "–", _SILENT_WORDS


def _step(rows: Sequence[SynthesisRowView], columns: Sequence[tuple[str, str]], below: Sequence[str]) -> int | None:
    """The largest step of type at which the table fits the page, by counting lines; None where none does."""
    asked, width = _ASKED * _WIDTH - 2.4, (1 - _ASKED) * _WIDTH / len(columns) - 3.4
    key = math.ceil(sum(len(words) + 4 for _, _, words in _key(rows)) / 140)
    room = _HEIGHT - _FOOT * sum(math.ceil(len(text) / 200) for text in below) - _KEY * (key - 1)
    for step, points in enumerate(_POINTS):
        letter, line = _LETTER * points * _MM, _LEADING * points * _MM
        heights = [line * max(_lines(column[:1], column[1:], width / letter) for column in columns)]
        for row in rows:
            question = _lines([row.text], [row.verdict], asked / letter)
            cells = [
                sum(
                    _lines(
                        [f"{each.sign} {each.tag}{'   ' * bool(each.tag)}{each.line}00"],
                        [" · ".join(each.facts), *each.flags, each.check],
                        width / letter,
                    )
                    for each in statements
                )
                for _, statements in row.cells
            ]
            heights.append(line * max(question, *cells) + _BORDERS * row.contested)
        if sum(heights) + _PADDING * len(heights) <= room:
            return step
    return None


def _lines(texts: Sequence[str], small: Sequence[str], letters: float) -> float:
    """How many lines texts take, and others below them in smaller type; words do not fill lines to the end."""
    full = sum(math.ceil(len(text) / (letters - _RAGGED)) for text in texts if text)
    return full + _SMALL * sum(math.ceil(len(text) / (letters / _SMALL - _RAGGED)) for text in small if text)


def _plain(
    id: str,
    title: str,
    part: str,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[SynthesisRowView],
    unanswered: Sequence[tuple[str, str]],
) -> Table:
    """The table in plain text."""
    silent = f"No document answers: {' '.join(text for text, _ in unanswered)}" if unanswered else ""
    return Table(
        name=id,
        caption=f"Who says what: {title}{f' ({part})' if part else ''}",
        n=len(rows),
        unit="questions",
        columns=(
            Column("question"),
            *(Column(f"{name} ({small})" if small else name) for name, small in columns),
            Column("in short"),
        ),
        rows=tuple(
            (row.text, *(_words(state, statements) for state, statements in row.cells), row.verdict) for row in rows
        ),
        note=". ".join(filter(None, ("; ".join(f"{sign} {words}" for _, sign, words in _key(rows)), silent))),
    )


def _words(state: str, statements: Sequence[StatementView]) -> str:
    if not statements:
        return state
    return " / ".join(
        f"{each.sign} {each.line}{_aside(each)}{f' [{each.note}]' * bool(each.note)}" for each in statements
    )


def _aside(view: StatementView) -> str:
    told = "; ".join(filter(None, (view.tag, *view.facts, *view.flags, view.check)))
    return f" ({told})" if told else ""


def cell_lines(cell: SynthesisCell) -> list[str]:
    """A cell on a terminal: a line for each position that the institution takes, or its state."""
    views = [_statement(each, 0, "", dated=bool(each.year)) for each in cell.shown]
    lines = [f"{view.sign} {cell.institution}: {view.line}{_aside(view)}" for view in views]
    return lines or [f"– {cell.institution}: {cell.state}"]


def signs_in_words(tables: Sequence[SynthesisTable]) -> str:
    """What the signs before statements mean, of those that the tables have."""
    cells = [cell for table in tables for row in table.rows for cell in row.cells]
    marks = {each.mark or UNKNOWN for cell in cells for each in cell.shown}
    words = _meanings(max((table.all_columns for table in tables), default=0))
    told = [f"{sign} {words[mark]}" for mark, sign in _SIGNS.items() if mark in marks]
    return "; ".join([*told, *([f"– {_SILENT_WORDS}"] if any(cell.state == SILENT for cell in cells) else [])])
