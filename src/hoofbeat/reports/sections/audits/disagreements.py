"""What sources disagree about: the most serious pairs, the judge's words for it counted, and themes where made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.case_records import CaseDecision, newest
from hoofbeat.audit.disagreement_cases import count_states, read_cases, worklist
from hoofbeat.audit.findings.divergence_themes import Theme, TopicPhrases, divergence_topics
from hoofbeat.audit.findings.serious_divergence import (
    BY_QUESTION,
    BY_SOURCE,
    SeriousPair,
    SeverityRanking,
    serious_pairs,
    severity_ranking,
)
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.reports.charts import CountBar, count_bars
from hoofbeat.reports.model import Block, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, counted, figure
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts, question_texts
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, model_name, triple, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut, one_line

SERIOUS = 20
"""How many questions the table of the most serious pairs has."""

_ROWS = 20
Pair = tuple[str, str, str]


def most_serious(facts: AuditFacts) -> list[SeriousPair]:
    """The most serious pair of each of the most serious questions."""
    return serious_pairs(facts.frame, facts.domain, facts.levels, SERIOUS)


def lead_of(facts: AuditFacts, serious: list[SeriousPair], anchors: Mapping[Pair, str]) -> Lead | None:
    """The most serious disagreement in one sentence."""
    if not serious:
        return None
    worst = serious[0]
    text = cut(question_texts(facts.audit.questions).get(worst.question, worst.question), 140)
    level = f"{worst.significance} significance, " if worst.significance else ""
    named = {label.lower() for label in facts.domain.order}  # a small model repeats the label instead of the topic
    topic = f" It is about {cut(worst.topic, 80)}." if worst.topic and worst.topic.lower() not in named else ""
    both = facts.names.both(*worst.order)
    others = (
        f", as {'is' if worst.alike == 2 else 'are'} {count_of(worst.alike - 1, 'more pair')}"
        if worst.alike > 1
        else ""
    )
    return Lead(
        f"The most serious disagreement ({level}{worst.question}) is on “{text}”: {both} are "
        f"{worst.label.lower()}{others}.{topic}",
        anchors.get((worst.question, worst.a, worst.b), ""),
        "Read both sides",
    )


def serious_blocks(
    facts: AuditFacts, serious: list[SeriousPair], anchors: Mapping[Pair, str], prefix: str
) -> list[Block]:
    """The table of the most serious pairs, each leading to its pair."""
    heading = Heading("Most serious pairs", f"{prefix}-serious", 3)
    if not serious:
        return [heading, Text("No judged pair disagrees.")]
    texts = question_texts(facts.audit.questions)
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            pair.question,
            cut(texts.get(pair.question, ""), 80),
            facts.names.both(*pair.order),
            pair.label,
            pair.significance or "not given",
            cut(pair.topic, 80),
            pair.alike,
        )
        for pair in serious
    )
    names = ("question", "text", "sources", "label", "significance", "topic")
    diverging = facts.found.any_div.count
    table = Table(
        name=f"{prefix}-serious",
        caption="The most serious pair of each question",
        n=facts.found.r_div.count,
        unit="diverging pairs",
        columns=(*(Column(name) for name in names), Column("pairs of this kind", "count")),
        rows=rows,
        links=tuple(anchors.get((pair.question, pair.a, pair.b), "") for pair in serious),
        note=f"By significance, then label; the first {len(rows)} of {diverging:,} questions."
        if diverging > len(rows)
        else "By significance, then label.",
        open=True,
    )
    return [heading, table]


def ranking_blocks(facts: AuditFacts, prefix: str) -> list[Block]:
    """Rankings by diverging pairs and by their weight: of groups, topics, questions and sources."""
    if not facts.found.r_div.count:
        return []
    kinds = [(facet, facts.title(facet)) for facet in facts.facets[:2]]
    kinds += [(BY_QUESTION, "question"), (BY_SOURCE, "source")]
    weights = ", ".join(f"{level} {weight:g}" for level, weight in facts.weights.items())
    blocks: list[Block] = [
        Heading("When serious pairs count for more", f"{prefix}-severity", 3),
        Text(
            f"One ranking counts every diverging pair once, the other by its significance ({weights}). "
            "Spearman's ρ compares them: near 1, significance does not change the order."
        ),
    ]
    found = [
        (
            by,
            title,
            severity_ranking(facts.frame, facts.audit.questions, by, facts.domain, facts.weights, pairs=facts.pairs),
        )
        for by, title in kinds
    ]
    blocks.append(_spearmans(facts, found, prefix))
    for by, title, ranking in found:
        table = _ranking(facts, ranking, by, title, prefix)
        blocks.append(Details(table.caption, (table,)))
    return blocks


def _spearmans(facts: AuditFacts, found: list[tuple[str, str, SeverityRanking]], prefix: str) -> Table:
    def row(by: str, title: str, ranking: SeverityRanking) -> tuple[Cell, ...]:
        pairs = (ranking.spearman, ranking.interval), (ranking.rate_spearman, ranking.rate_interval)
        first = ranking.rows[0].name if ranking.rows else ""
        heaviest = facts.names.short(first) if by == BY_SOURCE and first else first
        return title, len(ranking.rows), *(triple(*pair) for pair in pairs), cut(heaviest, 60)

    return Table(
        name=f"{prefix}-spearman",
        caption="Unweighted against severity-weighted ranking",
        n=len(found),
        unit="rankings",
        columns=columns_of("ranking of | ranked:count | ρ of counts:number | ρ of rates:number | heaviest"),
        rows=tuple(row(*each) for each in found),
        note="95% intervals are from resampling the ranked items, where there are at least five. Counts agree almost "
        "by themselves, because items with many pairs rank high in both; rates are per judged pair. Only items "
        "with a diverging pair are ranked.",
    )


def _ranking(facts: AuditFacts, ranking: SeverityRanking, by: str, title: str, prefix: str) -> Table:
    texts = question_texts(facts.audit.questions) if by == BY_QUESTION else {}
    shown = ranking.rows if by not in (BY_QUESTION, BY_SOURCE) else ranking.rows[:_ROWS]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            facts.names.short(row.name) if by == BY_SOURCE else row.name,
            *((cut(texts.get(row.name, ""), 70),) if texts else ()),
            row.diverging,
            *(row.levels.get(level, 0) for level in reversed(facts.levels)),
            row.unrated,
            row.weighted,
            f"{written(row.rank, 'amount')} → {written(row.weighted_rank, 'amount')}",
        )
        for row in shown
    )
    counts = ["diverging", *reversed(facts.levels), "not rated"]
    return Table(
        name=f"{prefix}-severity-{by.removeprefix('@')}",
        caption=f"Severity by {title}",
        n=len(ranking.rows),
        unit=f"{title if title.endswith('s') else f'{title}s'} with a diverging pair",
        columns=(
            Column(title),
            *((Column("text"),) if texts else ()),
            *(Column(name, "count") for name in counts),
            *columns_of("weight:amount | place, unweighted → weighted"),
        ),
        rows=rows,
        note=f"The first {len(rows)} of {len(ranking.rows):,}." if len(rows) < len(ranking.rows) else "",
    )


KIND = "themes"
"""The kind of folder that `hoofbeat audit themes` writes."""

_BARS = 15
_LISTED = 200
_PHRASES = 4


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
    notice = Notice("The audit of these themes is not in this report. Add its folder to read its pairs.")
    blocks = (notice, *_charted(found, {}, prefix, SourceNames(())))
    return Chapter(title=f"Themes: {artefact.path.name}", id=prefix, blocks=blocks)


def theme_blocks(facts: AuditFacts, found: Themes | None, anchors: Mapping[Pair, str], prefix: str) -> list[Block]:
    """The themes of divergence, or where they were not made, the topics of the diverging pairs."""
    topics = divergence_topics(facts.frame, facts.domain)
    if not topics.phrases:
        return []
    heading = Heading("What they disagree about", f"{prefix}-topics", 3)
    counts = list(zip(_spelled(topics), topics.counts, strict=True))
    note = f"The first {_LISTED:,} of {count_of(len(counts), 'wording')}." if len(counts) > _LISTED else ""
    total = sum(topics.counts) + topics.without
    table = counted(
        f"{prefix}-topics", "Topics of divergence", "topic", counts[:_LISTED], total, "diverging pairs", note
    )
    wordings = Details(f"{table.caption} in the judge's words ({count_of(len(counts), 'wording')})", (table,))
    if found is not None and found.rows:
        return [heading, *_charted(found, anchors, prefix, facts.names), wordings]
    chart = figure(
        f"{prefix}-topics",
        "Diverging pairs by what they differ in, in the judge's words.",
        lambda width: count_bars(
            _tallies(counts, topics.without), total=total, title="What sources disagree about", width=width
        ),
    )
    hint = Text("To group these wordings, run hoofbeat audit themes and add its folder to the report.")
    return [heading, chart, hint, wordings]


def _spelled(topics: TopicPhrases) -> list[str]:
    """Each phrase as the judge spelt it most often: phrases are counted without capitals and closing marks."""
    counted = topics.rows.group_by("phrase", "topic").len().sort("len", "topic", descending=[True, False])
    spelt = {row["phrase"]: row["topic"] for row in reversed(counted.to_dicts())}
    return [cut(one_line(spelt[place]), 160) for place in range(len(topics.phrases))]


def _tallies(counts: Sequence[tuple[str, int]], without: int = 0, noun: str = "other wordings") -> list[CountBar]:
    tallies = [CountBar(cut(name, 80), count) for name, count in counts[:_BARS]]
    rest = counts[_BARS:]
    if rest:
        tallies.append(CountBar(f"{len(rest):,} {noun}", sum(count for _, count in rest), rest=True))
    if without:
        tallies.append(CountBar("no topic given", without, quiet=True))
    return tallies


def _charted(found: Themes, anchors: Mapping[Pair, str], prefix: str, names: SourceNames) -> list[Block]:
    counts = [(theme.name, theme.count) for theme, _ in found.rows]
    total = sum(count for _, count in counts)
    chart = figure(
        f"{prefix}-themes",
        f"Diverging pairs by theme. The judge's wordings were grouped by their vectors ({model_name(found.encoder)}). "
        "A theme is named after its most central wording, unless a model named it.",
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
            _example(theme, names),
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
            *columns_of("weight:amount | questions:count | sources:count | wordings | most serious pair"),
        ),
        rows=rows,
        links=tuple(_link(theme, anchors) for theme, _ in found.rows[:_LISTED]),
        note="Weight is the number of pairs, each counted by its significance."
        + (f" The first {_LISTED:,} of {len(found.rows):,} themes." if len(found.rows) > _LISTED else ""),
    )
    return [chart, table]


def _example(theme: Theme, names: SourceNames) -> str:
    first = next(iter(theme.examples), None)
    return f"{first.question}: {names.both(first.a, first.b)}, {first.label}" if first else ""


def _link(theme: Theme, anchors: Mapping[Pair, str]) -> str:
    first = next(iter(theme.examples), None)
    return anchors.get((first.question, first.a, first.b), "") if first else ""


def decision_blocks(
    audit: Audit, decisions: Sequence[CaseDecision] | None, links: Mapping[str, str], prefix: str
) -> list[Block]:
    """What the team decided on disagreements: owner, status, local position, note and signature.

    `links` lead to the questions. Nothing where no decisions are given.
    """
    if decisions is None:
        return []
    rows = worklist(audit, read_cases(audit), newest(decisions))
    decided = [(row, row.decision) for row in rows if row.decision is not None]
    states = ", ".join(f"{count:,} {state}" for state, count in count_states(rows).items() if count)
    heading = Heading("What was decided", f"{prefix}-decisions", 3)
    told = Text(f"{count_of(len(rows), 'case')}: {states}." if rows else "No sources disagree, so there are no cases.")
    if not decided:
        return [heading, told]
    table = Table(
        name=f"{prefix}-decisions",
        caption="Decisions on disagreements",
        n=len(decided),
        unit="decided cases",
        columns=columns_of(
            "question | sources | label | state | status | owner | local position | note | signed | changed since"
        ),
        rows=tuple(
            (
                cut(row.case.text, 140),
                audit.names.both(*row.case.sources),
                row.case.label,
                row.state,
                decision.status_words(audit.names.short),
                decision.owner,
                decision.position,
                decision.note,
                f"{decision.name}, {decision.date}",
                "; ".join(row.changes),
            )
            for row, decision in decided
        ),
        links=tuple(links.get(row.case.question, "") for row, _ in decided),
        note="The newest version of each decision. A closed case is reopened if an answer, a quote or the label "
        "changed after it was signed. A case is gone if the sources no longer disagree.",
    )
    return [heading, told, table]
