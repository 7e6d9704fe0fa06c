"""What sources disagree about: the judge's own words for it, counted, and put into themes where that was done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.audit.findings import Theme, divergence_topics
from hoofbeat.reports.charts import CountBar, count_bars
from hoofbeat.reports.model import Block, Details, Heading, Notice, Text
from hoofbeat.reports.section import Chapter
from hoofbeat.reports.section_blocks import counted, figure
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, model_name
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

KIND = "themes"
"""The kind of folder that `hoofbeat audit themes` writes."""

_BARS = 15
_LISTED = 200
_PHRASES = 4

Pair = tuple[str, str, str]


class _Row(Struct, frozen=True, kw_only=True):
    """A line of the folder's table."""

    place: int
    weight: float
    theme: Theme


class Themes(Struct, frozen=True, kw_only=True):
    """The themes of an audit as they were found, largest first, with what their pairs weigh."""

    rows: tuple[tuple[Theme, float], ...]
    encoder: str

    @property
    def of_phrase(self) -> dict[str, str]:
        """The theme that each of the judge's wordings is in."""
        return {phrase: theme.name for theme, _ in self.rows for phrase, _ in theme.phrases}


def read_themes(artefact: Artefact) -> Themes:
    """The themes in a folder."""
    rows = read_jsonl(artefact.file("themes.jsonl"), _Row)
    encoder = artefact.manifest.models.get("encoder", "an unnamed encoder")
    return Themes(rows=tuple((row.theme, row.weight) for row in rows), encoder=encoder)


def themes_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on themes whose audit is not in the report."""
    found = read_themes(artefact)
    notice = Notice(
        "The audit that these themes are of is not in this report; name its folder, too, to read its pairs."
    )
    blocks = (notice, *_charted(found, {}, prefix))
    return Chapter(title=f"Themes: {artefact.path.name}", id=prefix, blocks=blocks)


def theme_blocks(facts: AuditFacts, found: Themes | None, anchors: Mapping[Pair, str], prefix: str) -> list[Block]:
    """The themes of divergence, or where they were not made, the topics of the diverging pairs."""
    topics = divergence_topics(facts.frame, facts.domain)
    if not topics.phrases:
        return []
    heading = Heading("What they disagree about", f"{prefix}-topics", 3)
    counts = list(zip(topics.phrases, topics.counts, strict=True))
    note = f"The first {_LISTED:,} of {count_of(len(counts), 'wording')}." if len(counts) > _LISTED else ""
    total = sum(topics.counts) + topics.without
    table = counted(
        f"{prefix}-topics", "Topics of divergence", "topic", counts[:_LISTED], total, "diverging pairs", note
    )
    wordings = Details(f"{table.caption} in the judge's words ({count_of(len(counts), 'wording')})", (table,))
    if found is not None and found.rows:
        return [heading, *_charted(found, anchors, prefix), wordings]
    chart = figure(
        f"{prefix}-topics",
        "Diverging pairs by what they differ in, in the judge's words (case and closing marks apart).",
        lambda width: count_bars(
            _tallies(counts, topics.without), total=total, title="What sources disagree about", width=width
        ),
    )
    hint = Text(
        "The command hoofbeat audit themes groups these wordings; name its folder beside the audit's to see them."
    )
    return [heading, chart, hint, wordings]


def _tallies(counts: Sequence[tuple[str, int]], without: int = 0, noun: str = "other wordings") -> list[CountBar]:
    tallies = [CountBar(cut(name, 80), count) for name, count in counts[:_BARS]]
    rest = counts[_BARS:]
    if rest:
        tallies.append(CountBar(f"{len(rest):,} {noun}", sum(count for _, count in rest), rest=True))
    if without:
        tallies.append(CountBar("no topic given", without, quiet=True))
    return tallies


def _charted(found: Themes, anchors: Mapping[Pair, str], prefix: str) -> list[Block]:
    counts = [(theme.name, theme.count) for theme, _ in found.rows]
    total = sum(count for _, count in counts)
    chart = figure(
        f"{prefix}-themes",
        f"Diverging pairs by theme. The judge's wordings were grouped by their vectors ({model_name(found.encoder)}). "
        "A theme goes by its most central wording unless a model named it.",
        lambda width: count_bars(
            _tallies(counts, noun="other themes"), total=total, title="Themes of divergence", width=width
        ),
    )
    levels = list(dict.fromkeys(level for theme, _ in found.rows for level in reversed(theme.levels)))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            theme.name,
            theme.count,
            *(theme.levels.get(level, 0) for level in levels),
            weight,
            theme.questions,
            theme.sources,
            "; ".join(cut(phrase, 50) for phrase, _ in theme.phrases[:_PHRASES]),
            _example(theme),
        )
        for theme, weight in found.rows[:_LISTED]
    )
    table = Table(
        name=f"{prefix}-themes",
        caption="Themes of divergence",
        n=total,
        unit="diverging pairs with a topic",
        columns=(
            Column("theme"),
            *(Column(name, "count") for name in ("pairs", *levels)),
            Column("weight", "amount"),
            Column("questions", "count"),
            Column("sources", "count"),
            Column("wordings"),
            Column("most serious pair"),
        ),
        rows=rows,
        links=tuple(_link(theme, anchors) for theme, _ in found.rows[:_LISTED]),
        note="Weight counts a pair by its significance."
        + (f" The first {_LISTED:,} of {len(found.rows):,} themes." if len(found.rows) > _LISTED else ""),
    )
    return [chart, table]


def _example(theme: Theme) -> str:
    first = next(iter(theme.examples), None)
    return f"{first.question}: {first.a} and {first.b}, {first.label}" if first else ""


def _link(theme: Theme, anchors: Mapping[Pair, str]) -> str:
    first = next(iter(theme.examples), None)
    return anchors.get((first.question, first.a, first.b), "") if first else ""
