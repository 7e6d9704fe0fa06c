"""LaTeX tables: whatever text goes in, what comes out is balanced, escaped and of as many cells as columns."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.reports.tables import Column, Table
from hoofbeat.reports.text_formats import escape, to_latex
from hoofbeat.store import Artefact
from tests.reports.examples import HOSTILE

COMMANDS = re.compile(r"\\([a-zA-Z]+|[^a-zA-Z])")
ALLOWED = set("\\{}$&%#_`'\"^~=.") | {
    *("textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar", "textquotedbl"),
    *("textasciigrave", "textquotesingle", "textendash", "textemdash", "textperiodcentered", "textbullet", "ldots"),
    *("textquoteright", "textdegree", "textsuperscript", "texteuro", "pounds", "S", "texttt", "textbf", "emph"),
    *("ss", "ae", "AE", "oe", "OE", "o", "O", "l", "L", "i", "u", "r", "H", "v", "c", "k"),
    *("pm", "times", "leq", "geq", "neq", "approx", "rightarrow", "infty", "mu", "langle", "rangle", "surd"),
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "nu", "xi"),
    *("pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi", "omega"),
}
STRUCTURE = {
    *("begin", "end", "centering", "small", "caption", "label", "toprule", "midrule", "bottomrule", "endhead"),
    *("endfoot", "linewidth", "multicolumn", "input", "section", "subsection", "subsubsection", "usepackage"),
}


def checked(text: str, allowed: set[str]) -> None:
    """A small reader of LaTeX: only known commands, balanced braces and mathematics, nothing active left bare."""
    assert text.isascii(), [letter for letter in text if not letter.isascii()]
    assert set(COMMANDS.findall(text)) <= allowed, set(COMMANDS.findall(text)) - allowed
    bare = COMMANDS.sub("", text)
    depth = 0
    for letter in bare:
        depth += (letter == "{") - (letter == "}")
        assert depth >= 0
    assert depth == 0
    assert bare.count("$") % 2 == 0
    assert not set(bare) & set("#^_%")


@given(st.text())
def test_any_text_is_escaped(text: str) -> None:
    found = escape(text)
    checked(found, ALLOWED)
    assert "&" not in COMMANDS.sub("", found)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("50% & more", r"50\% \& more"),
        (r"\input{x}", r"\textbackslash{}input\{x\}"),
        ("a_b^c~d#e$f", r"a\_b\textasciicircum{}c\textasciitilde{}d\#e\$f"),
        ("naïve Łódź", r"na\"{i}ve {\L}\'{o}d\'{z}"),
        ("κ = −0.5 ± 1", r"$\kappa$ = $-$0.5 $\pm$ 1"),
        ("日", r"\texttt{U+65E5}"),
        ("x--y", "x-{}-y"),
        ("\u202eabc", r"$\langle$U+202E$\rangle$abc"),
    ],
)
def test_known_texts(text: str, expected: str) -> None:
    assert escape(text) == expected


def table(rows: int, text: str = "x") -> Table:
    return Table(
        name=text,
        caption=text,
        n=rows,
        unit="questions",
        columns=(Column(text), Column("accuracy", "share"), Column("range", "points")),
        rows=tuple((f"[{text}]", (0.5, 0.4, 0.6), (-0.1, 0.2)) for _ in range(rows)),
        note=text,
    )


@pytest.mark.parametrize("rows", [0, 1, 60])
@pytest.mark.parametrize("text", ["plain", HOSTILE, r"\end{tabular} 100% & _"])
def test_a_table_has_its_rules_and_cells(rows: int, text: str) -> None:
    found = to_latex(table(rows, text))
    checked(found, ALLOWED | STRUCTURE)
    kind = "longtable" if rows > 40 else "tabular"
    assert found.count(f"\\begin{{{kind}}}") == found.count(f"\\end{{{kind}}}") == 1
    for rule in (r"\toprule", r"\midrule", r"\bottomrule"):
        assert found.count(rule) == 1
    lines = [line for line in found.splitlines() if line.endswith(r" \\") and "\\caption" not in line]
    assert len(lines) == max(rows, 1) + 1
    if rows:
        assert {len(re.findall(r"(?<!\\)&", line)) for line in lines} == {2}


def test_figures_are_written_as_on_the_page() -> None:
    assert r"50.0\% (40.0\textendash{}60.0\%) & $-$10.0 to +20.0 \\" in to_latex(table(1))


def test_every_table_of_a_report_and_the_fragment(report: Artefact, tmp_path: Path) -> None:
    tables = [name for name in report.manifest.files if name.startswith("tables/") and name.endswith(".tex")]
    assert {Path(name).stem for name in tables} == {
        Path(name).stem for name in report.manifest.files if name.startswith("tables/") and name.endswith(".csv")
    }
    for name in tables:
        checked(report.file(name).read_text("utf-8"), ALLOWED | STRUCTURE)
    fragment = report.file("report.tex").read_text("utf-8")
    body = "\n".join(line for line in fragment.splitlines() if not line.startswith("%"))
    checked(body, ALLOWED | STRUCTURE | {"*"})
    inputs = re.findall(r"\\input\{(.+?)\}", body)
    assert len(inputs) == len(set(inputs))
    assert set(inputs) <= set(tables)
    assert len(inputs) > 20
