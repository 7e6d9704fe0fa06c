"""Every table of a report for LaTeX: booktabs tables in files of their own, and a fragment that puts them in order.

Names of models, options and facets are other people's text. Whatever LaTeX would act on is written so that it prints,
and a character that no plain installation can set is written by its number, so that no table stops a paper.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from hoofbeat.reports.model import Block, Columns, Details, Heading, Notice, Report, Text
from hoofbeat.reports.tables import Cell, Column, Table, written
from hoofbeat.store.files import slug
from hoofbeat.text import clean, one_line

_LONG_TABLE = 40
"""A table of more rows runs over pages."""

_WIDE_CELL = 36
"""Longer text than this stands in a column of fixed width, where it wraps."""

_SPECIAL = {
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
    if letter in _SPECIAL:
        return _SPECIAL[letter]
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
    caption = f"{escape(table.caption)} (n = {table.n:,} {escape(table.unit)})"
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
    if report.notes:
        lines += [f"\\emph{{{escape(note)}}}" for note in report.notes]
    lines += _fragment(report.blocks, files)
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
