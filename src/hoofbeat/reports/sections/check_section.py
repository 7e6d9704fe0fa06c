"""A check of a benchmark in a report: the doubts and how many questions have them, tests against chance, the list."""

from __future__ import annotations

from string import ascii_uppercase

from hoofbeat.findings.benchmark_checks import CheckSummary
from hoofbeat.reports.model import Block, Card, Heading, Lead, Text
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact, counted, share_in_words
from hoofbeat.reports.tables import Cell, Column, Table, count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv
from hoofbeat.text import cut

_LISTED = 200
_WHY = 300
_CAVEAT = (
    "Rules only see words, and models err: a doubt is a reason to check a question, not a verdict. A question "
    "without doubt may still be wrong."
)


def check_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one check."""
    summary = artefact.record("summary.json", CheckSummary, what="the summary of the check")
    checked = next((ref.name for ref in artefact.manifest.inputs if ref.kind == "benchmark"), artefact.path.name)
    words = (
        f"{count_of(summary.questions, 'question')} of {checked}, {summary.with_options:,} with options; parts: "
        f"{', '.join(summary.parts)}. {_CAVEAT}"
    )
    blocks: list[Block] = [Text(words)]
    if summary.without_answer:
        blocks.append(Text(f"{count_of(summary.without_answer, 'question')} without an answer could not be tested."))
    if summary.doubts:
        rows = list(summary.doubts.items())
        blocks.append(counted(f"{prefix}-doubts", "What is doubtful", "doubt", rows, summary.questions, "questions"))
    blocks += _tests(summary, prefix)
    blocks += _listed(artefact, prefix)
    card = Card(
        label="Questions without doubt",
        value=f"{summary.without_doubt:,}",
        detail=f"of {count_of(summary.questions, 'question')}",
    )
    return Chapter(
        title=f"Check: {checked}",
        id=prefix,
        blocks=tuple(blocks),
        cards=(card,),
        leads=_leads(summary, checked, prefix),
    )


def _leads(summary: CheckSummary, checked: str, prefix: str) -> tuple[Lead, ...]:
    """How many questions have no doubt, what the most frequent doubt is, and what a doubt means."""
    n = share_in_words(summary.without_doubt, summary.questions, noun="question")
    leads = [Lead(f"{checked}: no doubt about {n}.", f"#{prefix}", "See the doubts")]
    if summary.doubts:
        doubt, count = max(summary.doubts.items(), key=lambda each: (each[1], each[0]))
        leads.append(Lead(f"The most frequent doubt is “{doubt}” ({count_of(count, 'question')})."))
    return (*leads, Lead(_CAVEAT))


def _tests(summary: CheckSummary, prefix: str) -> list[Block]:
    """What holds of the right option more often than chance lets it."""
    rows: list[tuple[Cell, ...]] = [
        (what, test.observed, test.n, test.expected, test.p)
        for what, test in (
            ("the right option alone is the longest", summary.longest),
            ("the guess from the options alone is right", summary.guess),
        )
        if test is not None
    ]
    blocks: list[Block] = []
    if rows:
        columns = (
            Column("of the right option"), Column("observed", "count"), Column("questions", "count"),
            Column("expected by chance", "amount"), Column("p", "number"),
        )  # fmt: skip
        blocks.append(
            Table(
                name=f"{prefix}-chance",
                caption="Does the style of an option reveal the answer?",
                n=summary.with_options,
                unit="questions",
                columns=columns,
                rows=tuple(rows),
                note="One-sided and exact: the probability of this count or more if all options are equally likely.",
            )
        )
    if summary.place is not None:
        places = zip(ascii_uppercase, summary.place.counts, summary.place.expected, strict=False)
        blocks.append(
            Table(
                name=f"{prefix}-place",
                caption="Position of the right option",
                n=summary.place.n,
                unit="questions",
                columns=(Column("place"), Column("questions", "count"), Column("expected", "amount")),
                rows=tuple(places),
                note=f"p = {summary.place.p:.3g} if positions are random (Pearson's statistic, 20,000 draws).",
            )
        )
    return [Heading("Style and position", f"{prefix}-style", 3), *blocks] if blocks else []


def _listed(artefact: Artefact, prefix: str) -> list[Block]:
    """The findings in the order of the folder's table."""
    rows: list[tuple[Cell, ...]] = [
        (row["question"], row["doubt"], cut(row["why"], _WHY)) for row in read_tsv(artefact.file("doubts.tsv"))
    ]
    if not rows:
        return []
    table = Table(
        name=f"{prefix}-findings",
        caption="Doubts, the most serious first",
        n=len(rows),
        unit="findings",
        columns=(Column("question"), Column("doubt"), Column("why")),
        rows=tuple(rows[:_LISTED]),
        note=f"The first {_LISTED}; doubts.tsv holds all." if len(rows) > _LISTED else "",
    )
    return [Heading("Doubtful questions", f"{prefix}-doubtful", 3), table]


SECTION = ReportSection(
    name="check",
    summary="what is doubtful about a benchmark's questions, with the tests against chance",
    order=35,
    kinds=("check",),
    build=chapter_per_artefact("check", check_chapter),
)
