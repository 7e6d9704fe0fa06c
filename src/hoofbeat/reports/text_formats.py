"""A report as text: Markdown for a repository, a review or a terminal, and its tables for LaTeX.

Charts are beside the Markdown as SVG files. For LaTeX every table is a booktabs table in a separate file, and a
fragment puts them in order. Names of models, options and facets are other people's text. Whatever LaTeX would act on is
written so that it prints, and a character that no plain installation can set is written by its number, so that no table
stops a paper.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from hoofbeat.reports.charts.heatmaps import abbreviations
from hoofbeat.reports.model import (
    AnswerView,
    Block,
    Chart,
    Columns,
    Details,
    Entry,
    GridView,
    Heading,
    Notice,
    PairView,
    QuestionView,
    Report,
    SynthesisView,
    Text,
    Viewer,
)
from hoofbeat.reports.tables import Cell, Column, Table, written
from hoofbeat.reports.viewers import WIDEST, grid_label, grid_place
from hoofbeat.store.files import slug
from hoofbeat.text import clean, one_line, plain_markdown


def to_markdown(report: Report, charts: Mapping[str, str] | None = None) -> str:
    """The report as Markdown; `charts` maps a chart's name to the file it is kept in."""
    parts = [f"# {_line(report.title)}"]
    if report.subtitle:
        parts.append(_line(report.subtitle))
    parts.append(f"**{_line(report.notice)}**")
    parts.extend(f"> {_line(warning)}" for warning in report.warnings)
    parts.extend(_line(lead.text) for lead in report.leads)
    parts.extend(f"> {_line(note)}" for note in report.notes)
    parts.extend(_blocks(report.opening, charts or {}))
    if report.cards:
        parts.append(
            "\n".join(f"- {_line(c.label)}: **{_line(c.value)}** {_line(c.detail)}".rstrip() for c in report.cards)
        )
    if report.models:
        models = "; ".join(f"{_line(role)}: {_line(name)}" for role, name in report.models)
        parts.append(f"Models used: {models}.")
    parts.extend(_blocks((*report.blocks, *report.origin), charts or {}))
    return "\n\n".join(part for part in parts if part) + "\n"


def _blocks(blocks: Sequence[Block], charts: Mapping[str, str]) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, charts)


def _block(block: Block, charts: Mapping[str, str]) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * block.level} {_line(block.text)}"
        case Text():
            yield f"*{_line(block.label)}:* {_prose(block.text)}" if block.label else _prose(block.text)
        case Notice():
            yield f"> {_line(block.text)}"
        case Table():
            yield from _table(block)
        case SynthesisView():
            yield from _table(block.table)
            yield "\n".join(
                f"{note.number}. {_line(note.who)}: “{_line(note.quote)}” ({_line(note.where)})" for note in block.notes
            )
        case Chart():
            if block.name in charts:
                yield f"![{_line(block.caption or block.name)}]({charts[block.name]})"
        case Columns():
            yield from _blocks(block.blocks, charts)
        case Details():
            if not (len(block.blocks) == 1 and isinstance(block.blocks[0], Table)):
                yield f"**{_line(block.summary)}**"
            yield from _blocks(block.blocks, charts)
        case _:
            yield from _view(block, charts)


def _view(block: QuestionView | AnswerView | PairView | GridView | Viewer, charts: Mapping[str, str]) -> Iterator[str]:
    match block:
        case QuestionView():
            yield from _question(block)
        case AnswerView():
            yield from _answer(block)
        case PairView():
            facts = "".join(f", {_line(fact)}" for fact in block.facts)
            reasoning = f": {_line(block.reasoning)}" if block.reasoning else ""
            yield f"- {_line(block.a.name)} and {_line(block.b.name)}: **{_line(block.label)}**{facts}{reasoning}"
            for side in (block.a, block.b):
                cited = "".join(f" ({_line(passage.source)})" for passage in side.cited)
                yield f"  - {_line(side.name)}: {_line(side.text)}{cited}"
        case GridView():
            yield from _grid(block)
        case Viewer():
            for entry in block.entries:
                yield from _entry(entry, charts)
            more = block.total - len(block.entries)
            if more:
                yield f"> {more:,} more {block.noun} are in `report.html` and in the artefact's tables."
            if block.left_out:
                yield f"> {block.left_out:,} more {block.noun} are not shown here; all are in the artefact's tables."


def _entry(entry: Entry, charts: Mapping[str, str]) -> Iterator[str]:
    marks = "; ".join(_line(text) for text, _ in entry.marks)
    yield f"**{_line(entry.name)}** {_line(entry.title)}" + (f" ({marks})" if marks else "")
    yield from _blocks(entry.blocks, charts)


def _table(table: Table) -> Iterator[str]:
    yield f"**{_line(table.caption)}** (n = {_line(table.counted)})"
    lines = ["| " + " | ".join(_line(column.title) for column in table.columns) + " |"]
    lines.append("| " + " | ".join("---:" if column.form != "text" else "---" for column in table.columns) + " |")
    for row in table.rows:
        cells = (_line(written(value, column.form)) for value, column in zip(row, table.columns, strict=True))
        lines.append("| " + " | ".join(cells) + " |")
    yield "\n".join(lines)
    if table.note:
        yield _line(table.note)


def _grid(view: GridView) -> Iterator[str]:
    if len(view.names) > WIDEST:
        yield f"> A grid of {len(view.names)} sources: see `report.html`."
        return
    short = abbreviations(view.labels)
    lines = ["| source | " + " | ".join(str(place + 1) for place in range(len(view.names))) + " |"]
    lines.append("| --- |" + " --- |" * len(view.names))
    for row, name in enumerate(view.names):
        labels = (
            "" if row == column else grid_label(view, grid_place(row, column, len(view.names)))
            for column in range(len(view.names))
        )
        cells = (_line(short.get(label, "")) for label in labels)
        lines.append(f"| {row + 1} {_line(name)} | " + " | ".join(cells) + " |")
    yield "\n".join(lines)


def _question(view: QuestionView) -> Iterator[str]:
    if view.context:
        yield f"*Case:* {_prose(view.context)}"
    yield f"*Question:* {_prose(view.text)}"
    if view.options:
        marks = ((option, " (gold)" if option == view.gold else "") for option in view.options)
        yield "\n".join(f"- {_line(option)}{mark}" for option, mark in marks)
    if view.gold and view.gold not in view.options:
        yield f"*Gold answer:* {_prose(view.gold)}"
    for piece in view.evidence:
        yield f"> {_line(piece.text)} ({_line(piece.source)})"


def _answer(view: AnswerView) -> Iterator[str]:
    body = _prose(view.text) if view.text else _line(view.failure)
    chosen = next((option.text for option in view.options if option.chosen), "")
    read = f" *Chosen:* {_line(chosen)}." if chosen else ""
    judged = "".join(
        f" *{_line(judgment.aspect)}, {_line(judgment.judge)}:* {_line(judgment.label)}"
        + (f". {_line(judgment.reasoning)}" if judgment.reasoning else "")
        for judgment in view.judgments
    )
    yield f"- **{_line(view.system)}** ({_line(view.verdict_text)}): {body}{read}{judged}"


def _line(text: str) -> str:
    return plain_markdown(one_line(text))


def _prose(text: str) -> str:
    """A paragraph; its own line breaks are kept as breaks."""
    lines = [" ".join(line.split()) for line in clean(text).splitlines()]
    return "  \n".join(plain_markdown(line) for line in lines if line)


_LONG_TABLE = 40
"""A table of more rows runs over pages."""

_WIDE_CELL = 36
"""Longer text than this stands in a column of fixed width, where it wraps."""

_SPECIAL_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "`": r"\textasciigrave{}",
    "'": r"\textquotesingle{}",
    "[": "{[}",
    "]": "{]}",
    "\u00a0": "~",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "≤": r"$\leq$",
    "≥": r"$\geq$",
    "≠": r"$\neq$",
    "≈": r"$\approx$",
    "→": r"$\rightarrow$",
    "∞": r"$\infty$",
    "·": r"\textperiodcentered{}",
    "•": r"\textbullet{}",
    "…": r"\ldots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": r"\textquoteright{}",
    "°": r"\textdegree{}",
    "µ": r"$\mu$",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "§": r"\S{}",
    "€": r"\texteuro{}",
    "£": r"\pounds{}",
    "⟨": r"$\langle$",
    "⟩": r"$\rangle$",
    "✓": r"$\surd$",
    "ß": r"{\ss}",
    "æ": r"{\ae}",
    "Æ": r"{\AE}",
    "œ": r"{\oe}",
    "Œ": r"{\OE}",
    "ø": r"{\o}",
    "Ø": r"{\O}",
    "ł": r"{\l}",
    "Ł": r"{\L}",
    "ı": r"{\i}",
}
_ACCENTS = {
    "\u0300": "`",
    "\u0301": "'",
    "\u0302": "^",
    "\u0303": "~",
    "\u0304": "=",
    "\u0306": "u",
    "\u0307": ".",
    "\u0308": '"',
    "\u030a": "r",
    "\u030b": "H",
    "\u030c": "v",
    "\u0327": "c",
    "\u0328": "k",
}
_GREEK = {
    letter: unicodedata.name(letter).rpartition(" ")[2].lower()
    for letter in "αβγδεζηθικλμνξπρστυφχψω"
} | {"λ": "lambda"}  # fmt: skip
_HEAD = """% Tables of a report, made with Hoofbeat {version}. Research software. Not for clinical use.
% Put \\usepackage{{booktabs,longtable,textcomp}} and \\usepackage[T1]{{fontenc}} before \\begin{{document}}, then
% \\input this file from its own folder, or single tables of it.
"""


def escape(text: str) -> str:
    """One line of plain text as LaTeX that prints it."""
    return "".join(_letter(letter) for letter in one_line(text)).replace("--", "-{}-").replace("--", "-{}-")


def _letter(letter: str) -> str:
    if letter in _SPECIAL_LATEX:
        return _SPECIAL_LATEX[letter]
    if letter.isascii():
        return letter
    if letter in _GREEK:
        return f"$\\{_GREEK[letter]}$"
    base, *marks = list(unicodedata.normalize("NFD", letter))
    if len(marks) == 1 and marks[0] in _ACCENTS and base.isascii() and base.isalpha():
        return f"\\{_ACCENTS[marks[0]]}{{{base}}}"
    return f"\\texttt{{U+{ord(letter):04X}}}"


def to_latex(table: Table, label: str = "") -> str:
    """The table as a float of booktabs rules, or, when it is long, as one that runs over pages."""
    long = len(table.rows) > _LONG_TABLE
    form = "".join(_alignment(place, table) for place in range(len(table.columns)))
    heads = " & ".join(_head(column) for column in table.columns) + r" \\"
    caption = f"{escape(table.caption)} (n = {escape(table.counted)})"
    caption += f". {escape(table.note)}" if table.note else ""
    named = f"\\caption{{{caption}}}\\label{{tab:{slug(label or table.name)}}}"
    body = [" & ".join(_cells(row, table.columns)) + r" \\" for row in table.rows]
    body = body or [f"\\multicolumn{{{len(table.columns)}}}{{l}}{{nothing to show}} \\\\"]
    if long:
        lines = [f"\\begin{{longtable}}{{{form}}}", f"{named} \\\\", r"\toprule", heads, r"\midrule", r"\endhead"]
        lines += [r"\bottomrule", r"\endfoot", *body, r"\end{longtable}"]
    else:
        lines = [r"\begin{table}[tbp]", r"\centering\small", named, f"\\begin{{tabular}}{{{form}}}", r"\toprule"]
        lines += [heads, r"\midrule", *body, r"\bottomrule", r"\end{tabular}", r"\end{table}"]
    return "\n".join(lines) + "\n"


def report_fragment(report: Report, files: Mapping[Table, str]) -> str:
    """The report's headings and words with its tables put in from their files; viewers and charts are left out."""
    lines = [_HEAD.format(version=report.version), f"\\section*{{{escape(report.title)}}}", escape(report.notice)]
    lines += [f"\\emph{{{escape(note)}}}" for note in (*report.warnings, *report.notes)]
    lines += _fragment(report.all_blocks, files)
    return "\n\n".join(lines) + "\n"


def _fragment(blocks: Sequence[Block], files: Mapping[Table, str]) -> Iterator[str]:
    for block in blocks:
        match block:
            case Heading():
                yield f"\\{'sub' * (block.level - 1)}section*{{{escape(block.text)}}}"
            case Text():
                label = f"\\textbf{{{escape(block.label)}}} " if block.label else ""
                yield label + " ".join(escape(line) for line in clean(block.text).splitlines())
            case Notice():
                yield f"\\emph{{{escape(block.text)}}}"
            case Table():
                if block in files:
                    yield f"\\input{{{files[block]}}}"
            case SynthesisView():
                yield from _fragment([block.table], files)
            case Columns() | Details():
                yield from _fragment(block.blocks, files)
            case _:
                pass


def _alignment(place: int, table: Table) -> str:
    if table.columns[place].form != "text":
        return "r"
    longest = max((len(str(row[place])) for row in table.rows if row[place] is not None), default=0)
    return "p{0.28\\linewidth}" if longest > _WIDE_CELL else "l"


def _head(column: Column) -> str:
    return escape(column.title)


def _cells(row: Sequence[Cell], columns: Sequence[Column]) -> Iterator[str]:
    for value, column in zip(row, columns, strict=True):
        yield escape(written(value, column.form))
