"""The same report as Markdown: for a repository, a review, a terminal. Charts stand beside it as SVG files."""

from __future__ import annotations

import re
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
    Text,
    Viewer,
)
from hoofbeat.reports.tables import Table, written
from hoofbeat.reports.viewers import WIDEST, grid_label, grid_place
from hoofbeat.text import clean, one_line

_SPECIAL = re.compile(r"([\\`*\[\]|~$])|(?<![^\W_])(_)|(_)(?![^\W_])")
_LINE_START = re.compile(r"^([#+=-])|^(\d+)([.)])(?=\s)")


def to_markdown(report: Report, charts: Mapping[str, str] | None = None) -> str:
    """The report as Markdown; `charts` maps a chart's name to the file it is kept in."""
    parts = [f"# {_line(report.title)}"]
    if report.subtitle:
        parts.append(_line(report.subtitle))
    parts.append(f"**{_line(report.notice)}**")
    if report.cards:
        parts.append(
            "\n".join(f"- {_line(c.label)}: **{_line(c.value)}** {_line(c.detail)}".rstrip() for c in report.cards)
        )
    if report.models:
        models = "; ".join(f"{_line(role)}: {_line(name)}" for role, name in report.models)
        parts.append(f"Models used: {models}.")
    parts.extend(_line(lead.text) for lead in report.leads)
    parts.extend(f"> {_line(note)}" for note in report.notes)
    parts.extend(_blocks(report.blocks, charts or {}))
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
                yield f"> {more:,} more {block.noun} stand in `report.html`, and in the artefact's own tables."
            if block.left_out:
                yield f"> {block.left_out:,} more {block.noun} are not shown here; all are in the artefact's tables."


def _entry(entry: Entry, charts: Mapping[str, str]) -> Iterator[str]:
    marks = "; ".join(_line(text) for text, _ in entry.marks)
    yield f"**{_line(entry.name)}** {_line(entry.title)}" + (f" ({marks})" if marks else "")
    yield from _blocks(entry.blocks, charts)


def _table(table: Table) -> Iterator[str]:
    yield f"**{_line(table.caption)}** (n = {table.n:,} {_line(table.unit)})"
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
    return _escape(one_line(text))


def _prose(text: str) -> str:
    """A paragraph; its own line breaks are kept as breaks."""
    lines = [" ".join(line.split()) for line in clean(text).splitlines()]
    return "  \n".join(_escape(line) for line in lines if line)


def _escape(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    marked = _SPECIAL.sub(lambda match: "\\" + match[0], plain)
    return _LINE_START.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}", marked)
