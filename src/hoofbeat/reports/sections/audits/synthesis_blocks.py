"""The synthesis table in a report and on an audit's page: who says what, one printed page per topic.

It comes before all rates, because a reader wants to know first who differs on what. A sign and a word stand beside each
colour. The size of the type in print is chosen so that a table of ten questions and eight institutions fits the page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

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
_QUOTE, _NAME = 240, 44
_POINTS = (10.0, 9.0, 8.2, 7.4, 6.7, 6.1, 5.5)
_WIDTH, _HEIGHT = 279.0, 160.0
"""Room for the table on a landscape page of A4, in millimetres: its width, and its height below title and key."""

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
    for place, table in enumerate(tables, start=1):
        blocks.append(_view(table, f"{prefix}-synthesis-{place}", audit.names, href, numbers, own_notes=own_notes))
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
    told = ["Questions down, institutions across. A statement leads to the passage that it rests on."]
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
                where="; ".join(each.cited),
                link=where,
            )
        )
        link = f"#{id}-n{number}" if own_notes else where
        return _statement(each, number, link, split=split, dated=dated)

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
    return SynthesisView(
        id=id,
        title=title,
        part=table.part,
        columns=columns,
        rows=rows,
        notes=tuple(notes) if own_notes else (),
        key=tuple(_key(rows)),
        size=_size(rows, columns),
        table=_plain(id, title, table, columns, rows),
    )


def _split(row: SynthesisRow) -> bool:
    """Whether no position on a question has a majority."""
    said = [each for cell in row.cells for each in cell.statements if each.state == ANSWERS and each.position]
    return row.contested and all(each.mark in (DIFFERS, OPPOSES, UNKNOWN) for each in said)


def _statement(each: SourceStatement, number: int, link: str, *, split: bool, dated: bool) -> StatementView:
    tag = ""
    if each.mark in (DIFFERS, OPPOSES):
        alone = "opposite" if each.mark == OPPOSES else "differs"
        tag = f"position {chr(ord('A') + (each.position - 1) % 26)}" if split else alone
    graded = "not graded" if each.strength == NONE_GIVEN else each.strength
    flags = [f"older than {each.older_than}"] if each.older_than else []
    flags += ["see the warning at the answer"] if each.warnings else []
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


def _size(rows: Sequence[SynthesisRowView], columns: Sequence[tuple[str, str]]) -> int:
    """The largest step of type at which the table should fit the page; the smallest where none does."""
    width = _WIDTH / (len(columns) + 1) - 2.5
    for step, points in enumerate(_POINTS):
        letter, line = 0.5 * points * 0.3528, 1.22 * points * 0.3528
        per_line = max(1.0, width / letter)
        heights = [
            line * max(_lines(row, per_line), *(_cell_lines(statements, per_line) for _, statements in row.cells)) + 2.6
            for row in rows
        ]
        head = line * max(sum(math.ceil(len(part) / per_line) for part in column) for column in columns) + 2.6
        if sum(heights) + head <= _HEIGHT:
            return step
    return len(_POINTS) - 1


def _lines(row: SynthesisRowView, per_line: float) -> int:
    return math.ceil(len(row.text) / per_line) + math.ceil(len(row.verdict) / per_line)


def _cell_lines(statements: Sequence[StatementView], per_line: float) -> int:
    return sum(
        math.ceil((len(each.line) + len(each.tag) + 6) / per_line)
        + math.ceil(len(" · ".join(each.facts)) * 0.9 / per_line)
        + sum(math.ceil(len(flag) / per_line) for flag in each.flags)
        for each in statements
    )


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
