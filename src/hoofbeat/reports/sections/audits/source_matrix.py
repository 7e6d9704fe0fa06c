"""Sources of an audit against each other: matrix, strips of questions, odd ones, coverage, files beside the page."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars
from numpy.typing import NDArray

from hoofbeat.audit.findings.pair_arrays import AuditPairs, each_matrix
from hoofbeat.audit.findings.source_profiles import (
    OutlierSource,
    PairRates,
    SourceRow,
    coverage_heat,
    outlier_sources,
    pair_rates,
    source_rows,
)
from hoofbeat.audit.synthesis.audit_export import PAIR_WORDS, PairWords
from hoofbeat.findings.intervals import Interval, wilson
from hoofbeat.records import Answer
from hoofbeat.reports.charts import (
    WIDE,
    Shade,
    Strip,
    interval_bar,
    interval_bars,
    label_strips,
    pair_matrix,
    shade_rows,
)
from hoofbeat.reports.model import Block, Chart, Details, Heading, Notice, Text
from hoofbeat.reports.section import figure
from hoofbeat.reports.sections.audits.audit_facts import AnswerKey, AuditFacts, question_texts
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, csv_text, triple
from hoofbeat.store.files import slug
from hoofbeat.text import clean, cut

LISTED = 50_000
"""How many diverging pairs the file of pairs holds at most."""

CELLS = 2_000_000
"""Question grids of more cells than this in all are not written beside a report; `audit export` writes them."""


def has_grids(facts: AuditFacts) -> bool:
    """Whether each question's own grid is written beside the report."""
    return 2 * facts.found.pairs <= CELLS


def matrix_files(
    facts: AuditFacts, strips: Mapping[str, Sequence[str]], order: Sequence[str], prefix: str
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; in a cell without figure or label stands nothing."""
    rates, short = pair_rates(facts.pairs, facts.domain), facts.names.short
    squares = (
        ("judged", rates.judged),
        ("diverging", rates.diverging),
        ("strongest", rates.contradictory),
        ("share", [[rates.share(x, y) for y in range(len(rates.sources))] for x in range(len(rates.sources))]),
    )
    for name, square in squares:
        rows = ([source, short(source), *line] for source, line in zip(rates.sources, square, strict=True))
        head = ["source", "name", *map(short, rates.sources)]
        yield f"matrices/{prefix}/sources-{name}.csv", csv_text(head, rows).encode()
    texts = question_texts(facts.audit.questions)
    lines = ([question, texts.get(question, ""), *labels] for question, labels in strips.items())
    yield (
        f"matrices/{prefix}/questions-by-sources.csv",
        csv_text(["question", "text", *map(short, order)], lines).encode(),
    )
    if not has_grids(facts):
        return
    for number, matrix in enumerate(each_matrix(facts.pairs, facts.domain), start=1):
        rows = ([short(source), *line] for source, line in zip(matrix.sources, matrix.labels, strict=True))
        name = f"matrices/{prefix}/questions/{number:05}-{slug(matrix.question)}.csv"
        yield name, csv_text([matrix.question, *map(short, matrix.sources)], rows).encode()


def listed_pairs(facts: AuditFacts) -> int:
    """How many pairs the file of diverging pairs holds."""
    return min(LISTED, facts.found.r_div.count)


def pairs_file(facts: AuditFacts, prefix: str, most: int = LISTED) -> tuple[str, bytes]:
    """The diverging pairs by significance, label, question and sources, with answers, quotes and the judge's words."""
    names = ("question", "a", "b", "label", "significance", "topic", "basis", "reasoning")
    levels = {level: place for place, level in enumerate(facts.levels, start=1)}
    labels = {label: place for place, label in enumerate(facts.domain.order)}
    text = {name: polars.col(name).cast(polars.String) for name in names}
    level = text["significance"].replace_strict(levels, default=0, return_dtype=polars.Int32)
    label = text["label"].replace_strict(labels, default=0, return_dtype=polars.Int32)
    numbered = facts.frame.with_row_index("row")
    chosen = (
        numbered.filter(text["label"].is_in(list(facts.domain.diverging)) & polars.col("failure").is_null())
        .select("row", text["question"], text["a"], text["b"], level.alias("level"), label.alias("place"))
        .sort("level", "place", "question", "a", "b", descending=[True, True, False, False, False])
        .head(most)
        .collect()
    )
    order = {row: place for place, row in enumerate(chosen["row"].to_list())}
    rows = numbered.filter(polars.col("row").is_in(list(order))).select("row", *text.values()).collect().rows()
    rows.sort(key=lambda row: order[row[0]])
    words = PairWords(facts.audit, {row[1] for row in rows})
    cells = (
        [
            *row[1:6],
            words.topic(row[6] or "", row[-1] or "", row[2], row[3]),
            row[7],
            words.reasoning(row[-1] or "", row[2], row[3]),
            *words.cells(row[1], row[2], row[3]),
        ]
        for row in rows
    )
    return f"pairs/{prefix}-diverging.csv", csv_text((*names, *PAIR_WORDS), cells).encode()


_LISTED = 20
_BARS = 20
_FEW = 5
_PHONE = 8
"""A matrix of more sources is drawn once, and scrolled on a phone."""


def ordered_sources(facts: AuditFacts) -> tuple[list[OutlierSource], list[str]]:
    """How far each source is from the others, and all sources, the most certain differences first.

    That is by the low end of the share's interval: two pairs that both differ are little evidence.
    """
    odd = outlier_sources(facts.pairs, facts.domain)
    low = {row.source: wilson(row.diverging, row.judged).low if row.judged else -1.0 for row in odd}
    ranked = sorted(low, key=lambda name: (-low[name], name))
    return odd, [*ranked, *(name for name in facts.pairs.sources if name not in set(ranked))]


def pairs_link(prefix: str, *sources: str) -> str:
    """The anchor that shows the pairs of one source, or of two with each other, by their short names."""
    names = zip(("source", "and source"), sources, strict=False)
    return f"#{prefix}-pairs?{'&'.join(f'{_coded(name)}={_coded(source)}' for name, source in names)}"


def _coded(text: str) -> str:
    """Text for an address: whatever is no plain letter, digit or hyphen as the numbers of its bytes."""
    return re.sub(
        r"[^A-Za-z0-9-]",
        lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode("utf-8", "replace")),
        clean(text),
    )


def matrix_blocks(facts: AuditFacts, order: Sequence[str], prefix: str) -> list[Block]:
    """Every two sources: how often they differ where both speak, and how often one of them is silent."""
    if len(order) < 2:
        return []
    rates = pair_rates(facts.pairs, facts.domain)
    places = {name: place for place, name in enumerate(rates.sources)}
    asked, silent = _squares(facts.pairs)
    differ, hush, links = {}, {}, {}
    for row, a in enumerate(order):
        for column in range(row):
            b = order[column]
            x, y = places[a], places[b]
            n, count = rates.judged[x][y], rates.diverging[x][y]
            tip = f"{count:,} of {n:,} judged pairs diverge" if n else "no pair was judged"
            differ[column, row] = Shade(value=rates.share(x, y), tip=tip, few=0 < n < _FEW)
            both = int(asked[x, y])
            share = float(silent[x, y]) / both if both else None
            hush[column, row] = Shade(value=share, tip=f"one silent in {int(silent[x, y]):,} of {both:,} pairs")
            links[column, row] = pairs_link(prefix, *map(facts.names.short, sorted((a, b))))
    heading = Heading("Who differs from whom", f"{prefix}-matrix", 3)
    half = " Each pair is shown once, below the diagonal." if len(order) > 40 else ""
    reading = (
        "Sources whose differences are most certain come first. Each column has the number of its source. Click a cell "
        f"to read the pairs of its two sources; a cell without a figure has no judged pair.{half}"
    )
    names = [facts.names.short(source) for source in order]
    charts = [
        _matrix(f"{prefix}-differ", "Share of the judged pairs of two sources that diverge", names, differ, "d", links),
        _matrix(
            f"{prefix}-silent", "Share of the pairs of two sources in which one is silent", names, hush, "q", links
        ),
    ]
    table = _worst(facts, rates, prefix)
    return [heading, Text(reading), charts[0], Details(table.caption, (table,)), charts[1]]


def _matrix(
    name: str,
    title: str,
    order: Sequence[str],
    cells: dict[tuple[int, int], Shade],
    tone: str,
    links: dict[tuple[int, int], str],
) -> Chart:
    def draw(width: int) -> str:
        return pair_matrix(order, cells, title=title, key="of pairs", tone=tone, links=links, width=width)

    narrow = draw(350) if len(order) <= _PHONE else ""
    return Chart(name=name, caption=f"{title}.", wide=draw(WIDE), narrow=narrow, far=not narrow)


def _squares(pairs: AuditPairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of every two sources: on how many questions both were asked, and on how many of these one is silent."""
    size = len(pairs.sources)
    found = []
    for chosen in (np.ones(len(pairs.question), bool), pairs.has([pairs.domain.absent])):
        places = pairs.a[chosen].astype(np.int64) * size + pairs.b[chosen]
        half = np.bincount(places, minlength=size * size).reshape(size, size)
        found.append(half + half.T)
    return found[0], found[1]


def _worst(facts: AuditFacts, rates: PairRates, prefix: str) -> Table:
    rows: list[tuple[str, str, int, int, int, Interval]] = []
    for x, a in enumerate(rates.sources):
        for y in range(x + 1, len(rates.sources)):
            n, count = rates.judged[x][y], rates.diverging[x][y]
            if n:
                hard = rates.contradictory[x][y]
                rows.append((a, rates.sources[y], n, count, hard, wilson(count, n)))
    rows.sort(key=lambda row: (-row[5].low, row[0], row[1]))
    told: tuple[tuple[Cell, ...], ...] = tuple(
        (facts.names.both(a, b), n, count, hard, triple(count / n, span))
        for a, b, n, count, hard, span in rows[:_LISTED]
    )
    return Table(
        name=f"{prefix}-source-pairs",
        caption="Most certain differences between two sources",
        n=len(rows),
        unit="pairs of sources",
        columns=columns_of("sources | judged:count | diverge:count | strongest label:count | share:share"),
        rows=told,
        links=tuple(pairs_link(prefix, *map(facts.names.short, row[:2])) for row in rows[:_LISTED]),
        note=f"By the low end of the 95% Wilson interval; the first {len(told):,} of {len(rows):,}; all are in the "
        "folder matrices.",
    )


def odd_blocks(facts: AuditFacts, odd: Sequence[OutlierSource], prefix: str) -> list[Block]:
    """Which source stands apart: its share of diverging pairs against what the others do on the same questions."""
    heading = Heading("Sources that differ more often than the others", f"{prefix}-odd", 3)
    if not odd:
        return [heading, Text("No pair was judged, so no source can differ from the others.")]
    bars = [interval_bar(facts.names.short(row.source), row.excess, row.excess_interval) for row in odd[:_BARS]]
    first = f" The first {_BARS} of {len(odd):,} sources." if len(odd) > _BARS else ""
    chart = figure(
        f"{prefix}-odd",
        "How much more often (in percentage points) a source diverges than the others do among themselves on the same "
        f"questions, with 95% intervals from resampling questions.{first}",
        lambda width: interval_bars(bars, title="Excess divergence of each source", form="points", width=width),
    )
    table = Table(
        name=f"{prefix}-odd",
        caption="How much more often each source differs",
        n=len(odd),
        unit="sources",
        columns=columns_of(
            "source | questions:count | judged pairs:count | diverging:count | share:share | "
            "expected:share | excess, points:points | ratio:number"
        ),
        rows=tuple(_odd(facts, row) for row in odd),
        links=tuple(pairs_link(prefix, facts.names.short(row.source)) for row in odd),
        note="Expected is the share if the source differed from the others as often as they differ from each other "
        "on the same questions. Ratio is observed over expected. Sorted by the low end of the excess's interval. "
        "Intervals are not corrected for the number of sources: of a hundred equal sources, about five would lie "
        "outside.",
    )
    return [heading, chart, table if len(odd) <= _BARS else Details(f"{table.caption} ({len(odd):,})", (table,))]


def _odd(facts: AuditFacts, row: OutlierSource) -> tuple[Cell, ...]:
    excess, ratio = triple(row.excess, row.excess_interval), triple(row.ratio, row.interval)
    counts = row.questions, row.judged, row.diverging
    return facts.names.short(row.source), *counts, row.share, row.expected, excess, ratio


def coverage_blocks(facts: AuditFacts, answers: Sequence[Answer], prefix: str) -> list[Block]:
    """What each source covers: by group as a heatmap, and with counts and intervals as a table."""
    rows = [row for row in source_rows(facts.pairs, answers, facts.domain) if row.planned]
    if not rows:
        return [Notice("No source was asked a question.")]
    blocks: list[Block] = [Heading("Coverage", f"{prefix}-coverage", 3)]
    for place, facet in enumerate(facts.facets[:2]):
        inside = _heat(facts, answers, facet, prefix)
        blocks += inside if not place else [Details(f"Coverage by {facts.title(facet)}", tuple(inside))]
    if len(rows) <= _BARS:
        bars = [interval_bar(facts.names.short(row.source), row.coverage, row.coverage_interval) for row in rows]
        blocks.append(
            figure(
                f"{prefix}-coverage",
                "Share of the questions put to a source that it addresses, with 95% Wilson intervals.",
                lambda width: interval_bars(bars, title="Coverage of each source", limits=(0, 1), width=width),
            )
        )
    table = _covered(facts, rows, prefix)
    return [*blocks, table if len(rows) <= _BARS else Details(f"{table.caption} ({len(rows):,})", (table,))]


def _heat(facts: AuditFacts, answers: Sequence[Answer], facet: str, prefix: str) -> list[Block]:
    heat = coverage_heat(answers, facts.audit.questions, facet)
    title, names = facts.title(facet), [facts.names.short(source) for source in heat.sources]
    cells = [
        [
            Shade(value=value, tip=f"{answered:,} of {planned:,} questions addressed" if planned else "not asked")
            for value, planned, answered in zip(*line, strict=True)
        ]
        for line in zip(heat.cells, heat.planned, heat.answered, strict=True)
    ]
    chart = figure(
        f"{prefix}-coverage-{facet}",
        f"Share of the questions put to a source that it addresses, by {title}; a dash means not asked.",
        lambda width: shade_rows(names, heat.groups, cells, title=f"Coverage by {title}", key="addressed", width=width),
    )
    table = Table(
        name=f"{prefix}-coverage-{facet}",
        caption=f"Coverage by {title}",
        n=len(answers),
        unit="questions put to sources",
        columns=(Column("source"), *(Column(group, "share") for group in heat.groups)),
        rows=tuple((source, *line) for source, line in zip(names, heat.cells, strict=True)),
    )
    return [chart, Details(f"{table.caption} as a table", (table,))]


def _covered(facts: AuditFacts, rows: Sequence[SourceRow], prefix: str) -> Table:
    failed = any(row.unscored for row in rows)

    def cells(row: SourceRow) -> tuple[Cell, ...]:
        high = (row.answered + row.unscored) / row.planned
        spread: tuple[Cell, ...] = ((row.coverage or 0.0, high) if row.unscored else None,) if failed else ()
        counts = row.planned, row.answered, row.absent, row.unscored
        name = facts.names[row.source]
        told = name.short, name.title, name.dated, row.source
        return *told, *counts, row.coverage, *spread, row.r_div, row.judged

    return Table(
        name=f"{prefix}-coverage",
        caption="Coverage of each source",
        n=sum(row.planned for row in rows),
        unit="questions put to sources",
        columns=(
            *columns_of("source | title | date | id"),
            *(Column(name, "count") for name in ("asked", "addressed", "silent", "failed")),
            Column("coverage", "share"),
            *((Column("range with failures", "share"),) if failed else ()),
            *columns_of("R_div:share | judged pairs:count"),
        ),
        rows=tuple(map(cells, rows)),
        links=tuple(pairs_link(prefix, facts.names.short(row.source)) for row in rows),
        note="The range shows how failed answers could change the coverage." if failed else "",
    )


ROWS = 60
"""How many questions the picture shows, those with the most diverging pairs first."""

NO_LABEL = "?"


def usual_labels(pairs: AuditPairs) -> NDArray[np.int64]:
    """The label that each source has most often with the others on each question (questions × sources); −1 is none.

    Of labels that are equally frequent it is the strongest. One source that contradicts thirty others gives each of
    them one contradiction: the strongest label alone would show thirty-one of a kind, the usual one shows who differs.
    """
    size, labels = len(pairs.sources), len(pairs.domain.order)
    chosen = pairs.judged
    cells = pairs.question[chosen].astype(np.int64) * size
    places = np.concatenate([(cells + side[chosen]) * labels + pairs.label[chosen] for side in (pairs.a, pairs.b)])
    counts = np.bincount(places, minlength=len(pairs.questions) * size * labels)
    table = counts.reshape(len(pairs.questions), size, labels)
    usual = labels - 1 - table[:, :, ::-1].argmax(axis=2)
    return np.where(table.any(axis=2), usual, -1)


def strip_labels(
    facts: AuditFacts, states: Mapping[AnswerKey, str], order: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Of each question how each source stands: its usual label, silent, without a label (`?`), or not asked."""
    usual = usual_labels(facts.pairs)
    places = [facts.pairs.sources.index(source) for source in order]
    names = (*facts.domain.order, "")
    found = {}
    for number, question in enumerate(facts.pairs.questions):
        line = []
        for source, code in zip(order, usual[number, places].tolist(), strict=True):
            state = states.get((question, source), "")
            silent = facts.domain.absent if state == "absent" else NO_LABEL if state else ""
            line.append(names[code] if code >= 0 else silent)
        found[question] = tuple(line)
    return found


def strip_blocks(
    facts: AuditFacts,
    labels: Mapping[str, tuple[str, ...]],
    order: Sequence[str],
    links: Mapping[str, str],
    prefix: str,
) -> list[Block]:
    """The questions with most divergence as rows, the sources as columns, in the order of the matrices."""
    diverging = facts.pairs.by_question(facts.pairs.diverging)
    judged = facts.pairs.by_question(facts.pairs.judged)
    ranked = sorted(
        (place for place in range(len(facts.pairs.questions)) if judged[place]),
        key=lambda place: (-diverging[place], -diverging[place] / judged[place], facts.pairs.questions[place]),
    )
    if not ranked:
        return []
    texts = {question.id: question.text for question in facts.audit.questions}
    rows = [
        Strip(
            name=f"{name}  {cut(texts.get(name, ''), 60)}",
            cells=labels[name],
            link=links.get(name, ""),
            tip=f"{name}: {cut(texts.get(name, ''), 160)}",
        )
        for name in (facts.pairs.questions[place] for place in ranked[:ROWS])
    ]
    names = [facts.names.short(source) for source in order]
    shown = f"The {len(rows)} of {len(ranked):,} questions" if len(ranked) > len(rows) else "Questions"
    chart = figure(
        f"{prefix}-strip",
        f"{shown} with most diverging pairs first, sources in the order of the matrices above. A cell shows the "
        f"label that a source has most often with the others on that question (the stronger of two equally frequent "
        f"ones). An outlined cell: it answers, but none of its pairs has a label. An empty cell: it was not asked.",
        lambda width: label_strips(rows, names, facts.domain.order, title="Questions by sources", width=width),
    )
    grids = ", and one grid per question" if has_grids(facts) else "; audit export writes the grid of each"
    note = f"All questions are in the folder matrices, as a table of questions by sources{grids}."
    return [Heading("Question by source", f"{prefix}-strip", 3), chart, Text(note)]
