"""The synthesis table in a report and on an audit's page: who says what, one printed page per topic.

It comes before all rates, because a reader wants to know first who differs on what. A sign and a word stand beside each
colour. The size of the type in print is chosen so that a table of ten questions and eight institutions fits the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.answer_lines import NONE_GIVEN
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.audit.synthesis.audit_export import cell_text
from hoofbeat.audit.synthesis.synthesis_table import (
    ADDS,
    AGREES,
    ALONE,
    ANSWERS,
    COLUMNS,
    DIFFERS,
    HEADER,
    OPPOSES,
    ROWS,
    UNKNOWN,
    SourceStatement,
    SynthesisCell,
    SynthesisRow,
    SynthesisTable,
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

_SIGNS = {AGREES: "=", ADDS: "+", DIFFERS: "≠", OPPOSES: "✗", ALONE: "○", UNKNOWN: "?"}
_WORDS = {
    AGREES: "agrees with most",
    ADDS: "agrees and adds something",
    DIFFERS: "differs",
    OPPOSES: "says the opposite",
    ALONE: "only one speaks",
    UNKNOWN: "could not be compared",
}
_QUOTE, _NAME, _STRENGTH = 240, 60, 38
_FEW = 5
_POINTS = (10.0, 9.0, 8.2, 7.4, 6.7, 6.1, 5.5)
_WIDTH, _HEIGHT = 279.0, 174.0
"""Room for the table on a landscape page of A4, in millimetres: its width, and its height below title and key."""

_ASKED, _LETTER, _LEADING, _SMALL, _PADDING, _MM = 0.16, 0.5, 1.2, 0.86, 1.5, 0.3528
"""The question's share of the width; a letter's width and a line's height by the size of type; small print by the text;
a row's padding; a point."""

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
    numbers = _Numbers()
    pages = [page for table in tables for page in _pages(table, audit.names)]
    for place, page in enumerate(pages, start=1):
        blocks.append(_view(page, f"{prefix}-synthesis-{place}", audit.names, href, numbers, own_notes=own_notes))
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
    told = [
        "Questions down, institutions across. A statement leads to the passage that it rests on. “Older than "
        "2016” means that a document of 2016 differs from it."
    ]
    if any(table.part for table in tables):
        told.append(f"A page has at most {ROWS} questions and {COLUMNS} institutions; longer tables go on on the next.")
    if made:
        told.append(
            f"{count_of(made, 'statement is', 'statements are')} the first sentence of the answer, because the answer "
            "has no line for the table."
        )
    if left:
        where = f"in {file}" if file else "in the list of questions"
        told.append(f"{count_of(left, 'question')} with less disagreement are only {where}.")
    return " ".join(told)


def _pages(table: SynthesisTable, names: SourceNames) -> Iterator[SynthesisTable]:
    """The table, or where its texts are too long for one page, as few parts as fit, of about as many questions each."""
    for pages in range(1, len(table.rows) + 1):
        count = -(-len(table.rows) // pages)
        parts = [replace(table, rows=table.rows[first : first + count]) for first in range(0, len(table.rows), count)]
        views = [_view(each, "", names, lambda *_: "", _Numbers(), own_notes=True) for each in parts]
        if all(view.size < len(_POINTS) for view in views):
            break
    for place, part in enumerate(parts, start=1):
        told = [table.part, f"page {place} of {len(parts)}" if len(parts) > 1 else ""]
        yield replace(part, part=", ".join(filter(None, told)))


class _Numbers(Struct):
    """Footnotes counted over all tables of a report."""

    last: int = 0

    def next(self) -> int:
        self.last += 1
        return self.last


def _view(
    table: SynthesisTable, id: str, names: SourceNames, href: Href, numbers: _Numbers, *, own_notes: bool
) -> SynthesisView:
    notes: list[FootnoteView] = []
    dated = any(name.year for name in names)

    def statement(row: SynthesisRow, each: SourceStatement, *, split: bool) -> StatementView:
        number, where = numbers.next() if own_notes else 0, href(row.question, each.source)
        notes.append(
            FootnoteView(
                number=number,
                who=each.name,
                quote=cut(each.quotes[0], _QUOTE) if each.quotes else "",
                where="; ".join(filter(None, (*each.cited, _graded(each)))),
                link=where,
            )
        )
        link = f"#{id}-n{number}" if own_notes else where
        return _statement(each, number, link, split=split, dated=dated, narrow=len(table.institutions) > _FEW)

    rows = tuple(
        SynthesisRowView(
            name=row.question,
            text=row.text,
            verdict=row.verdict,
            contested=row.contested,
            cells=tuple(
                (cell.state, tuple(statement(row, each, split=_split(row)) for each in cell.shown))
                for cell in row.cells
            ),
            link=href(row.question, ""),
        )
        for row in table.rows
    )
    title = table.topic or "all questions"
    columns = tuple((cut(name, _NAME), _documents(name, names)) for name in table.institutions)
    step = _step(rows, columns)
    return SynthesisView(
        id=id,
        title=title,
        part=table.part,
        columns=columns,
        rows=rows,
        notes=tuple(notes) if own_notes else (),
        key=tuple(_key(rows)),
        size=len(_POINTS) if step is None else step,
        table=_plain(id, title, table, columns, rows),
    )


def _split(row: SynthesisRow) -> bool:
    """Whether no position on a question has a majority."""
    said = [each for cell in row.cells for each in cell.statements if each.state == ANSWERS and each.position]
    return row.contested and all(each.mark in (DIFFERS, OPPOSES, UNKNOWN) for each in said)


def _statement(
    each: SourceStatement, number: int, link: str, *, split: bool, dated: bool, narrow: bool = False
) -> StatementView:
    tag = ""
    if each.mark in (DIFFERS, OPPOSES):
        alone = "opposite" if each.mark == OPPOSES else "differs"
        tag = f"position {chr(ord('A') + (each.position - 1) % 26)}" if split else alone
    graded = cut(_graded(each), _STRENGTH) if narrow else _graded(each)
    flags = [f"older than {each.older_than.partition(' ')[0]}"] if each.older_than else []
    flags += ["see its warning"] if each.warnings else []
    return StatementView(
        line=each.line,
        tone=each.mark or UNKNOWN,
        sign=_SIGNS.get(each.mark, "?"),
        tag=tag,
        facts=tuple(filter(None, (graded, each.version, each.year or "no date" * dated))),
        flags=tuple(flags),
        note=number,
        link=link,
    )


def _graded(each: SourceStatement) -> str:
    """The strength of the recommendation, in the source's words."""
    return "not graded" if each.strength == NONE_GIVEN else each.strength


def _documents(institution: str, names: SourceNames) -> str:
    """The small print below an institution: its document, or how many there are."""
    mine = [name for name in names if names.institution(name.id) == institution]
    if len(mine) != 1:
        return count_of(len(mine), "document")
    told = [each for each in (mine[0].title, mine[0].dated) if each and each != institution]
    return ", ".join(told)


def _key(rows: Sequence[SynthesisRowView]) -> Iterator[tuple[str, str, str]]:
    """What the signs mean, of those that the table has."""
    tones = {each.tone for row in rows for _, statements in row.cells for each in statements}
    states = {state for row in rows for state, statements in row.cells if not statements}
    yield from ((tone, sign, _WORDS[tone]) for tone, sign in _SIGNS.items() if tone in tones)
    if "silent" in states:
        yield "silent", "–", "silent: the document says nothing on it"


def _step(rows: Sequence[SynthesisRowView], columns: Sequence[tuple[str, str]]) -> int | None:
    """The largest step of type at which the table fits the page, by counting lines; None where none does."""
    asked, width = _ASKED * _WIDTH - 2.4, (1 - _ASKED) * _WIDTH / len(columns) - 3.4
    for step, points in enumerate(_POINTS):
        letter, line = _LETTER * points * _MM, _LEADING * points * _MM
        heights = [line * max(_lines(column[:1], column[1:], width / letter) for column in columns)]
        for row in rows:
            question = _lines([row.text], [row.verdict], asked / letter)
            cells = [
                sum(
                    _lines(
                        [f"{each.sign} {each.tag}   {each.line}000"],
                        [" · ".join(each.facts), *each.flags],
                        width / letter,
                    )
                    for each in statements
                )
                for _, statements in row.cells
            ]
            heights.append(line * max(question, *cells))
        if sum(heights) + _PADDING * len(heights) <= _HEIGHT:
            return step
    return None


def _lines(texts: Sequence[str], small: Sequence[str], letters: float) -> float:
    """How many lines texts take, and others below them in smaller type; words do not fill lines to the end."""
    full = sum(math.ceil(len(text) / (letters - _RAGGED)) for text in texts if text)
    return full + _SMALL * sum(math.ceil(len(text) / (letters / _SMALL - _RAGGED)) for text in small if text)


def _plain(
    id: str,
    title: str,
    table: SynthesisTable,
    columns: Sequence[tuple[str, str]],
    rows: Sequence[SynthesisRowView],
) -> Table:
    """The table in plain text."""
    return Table(
        name=id,
        caption=f"Who says what: {title}{f' ({table.part})' if table.part else ''}",
        n=len(rows),
        unit="questions",
        columns=(Column("question"), *(Column(name) for name, _ in columns), Column("in short")),
        rows=tuple(
            (row.text, *(_words(state, statements) for state, statements in row.cells), row.verdict) for row in rows
        ),
        note="; ".join(f"{sign} {words}" for _, sign, words in _key(rows)),
    )


def _words(state: str, statements: Sequence[StatementView]) -> str:
    if not statements:
        return state
    return " / ".join(
        f"{each.sign} {each.line} ({', '.join((*each.facts, *each.flags))}){f' [{each.note}]' * bool(each.note)}"
        for each in statements
    )


def cell_lines(cell: SynthesisCell) -> list[str]:
    """A cell on a terminal: a line for each position that the institution takes, or its state."""
    lines = []
    for each in cell.shown:
        view = _statement(each, 0, "", split=False, dated=True)
        told = "; ".join((*view.facts, *view.flags))
        lines.append(f"{view.sign} {cell.institution}: {view.line} ({told})")
    return lines or [f"– {cell.institution}: {cell.state}"]


def signs_in_words() -> str:
    """What the signs before statements mean."""
    return ", ".join(f"{sign} {_WORDS[mark]}" for mark, sign in _SIGNS.items())
