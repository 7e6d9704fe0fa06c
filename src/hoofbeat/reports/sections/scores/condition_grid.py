"""Models against conditions: the main table, what each condition adds to the closed book, and tests of pairs.

Also scores by the form of a question: its number of options, and its editions with and without images.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import permutations

from msgspec.structs import replace

from hoofbeat.facets import facet_names
from hoofbeat.findings.accuracy import Accuracy, SystemDifference, comparable_pairs, differences, scored_systems
from hoofbeat.findings.intervals import FEW, TANGO
from hoofbeat.findings.option_decisions import OptionDecisions, option_decisions
from hoofbeat.findings.outcomes import Outcome, SystemKey
from hoofbeat.reports.charts import Shade, heatmap, interval_bar, interval_bars
from hoofbeat.reports.interval_words import interval_note, method_words, questions_in
from hoofbeat.reports.model import Block, Heading, Notice, Text
from hoofbeat.reports.section import OwnFigure, figure
from hoofbeat.reports.sections.scores.accuracy_table import (
    SENSITIVITY_NOTE,
    UNSCORED,
    ScoreBlocks,
    accuracy_intervals,
    folded,
    missing,
)
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, base_condition, is_closed
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, triple, written

_BARS = 24
_PAIRED = "Paired by question. {intervals} p by {tests}; Holm's correction over the table."
_SCORE = (
    f"Tango's score interval is used where fewer than {FEW} questions separate two systems, or all of these favour "
    f"the same one. Resampling would show too little spread."
)
_CLUSTERS = (
    "McNemar's test treats questions as independent, but questions from one document are not. p by clusters is from "
    "a paired randomisation test that keeps the questions of a document together."
)
Deltas = dict[SystemKey, SystemDifference]


def grid_section(group: OutcomeSet, table: Sequence[Accuracy]) -> ScoreBlocks:
    """For each protocol the table of models by conditions with its heatmap; every condition against the closed book."""
    found = {(row.model, row.condition): row for row in table}
    versus, deltas = _deltas(group)
    by_system = {row.a: row for row in deltas} if versus == "the closed book" else {}
    blocks: list[Block] = []
    split = group.protocols()
    for number, part in enumerate(split, start=1):
        conditions = list(dict.fromkeys(condition for _, condition in _closed_first(part)))
        models = list(dict.fromkeys(model for model, _ in part.order))
        if len(models) < 2 or len(conditions) < 2:
            continue
        protocol = part.tallies[part.order[0]].protocol or "free text"
        name = f"{group.prefix}-grid" + (f"-{number}" if number > 1 else "")
        title = "Models and conditions" if len(split) == 1 else f"Models and conditions, {protocol}"
        blocks.append(Heading(title, name, 3))
        blocks.append(_heat(name, models, conditions, found, by_system))
        blocks.append(_grid(part, (name, title), models, conditions, found))
    if deltas:
        blocks += _delta_blocks(group, versus, deltas)
    return ScoreBlocks(blocks=tuple(blocks))


def pairs_section(group: OutcomeSet) -> ScoreBlocks:
    """Models against each other under the same condition."""
    pairs = comparable_pairs(group.outcomes, "condition")
    if not pairs:
        return ScoreBlocks()
    rank = {row: place for place, row in enumerate(group.order)}
    pairs.sort(key=lambda pair: (pair[0][1] != group.order[0][1], pair[0][1], rank[pair[0]], rank[pair[1]]))
    found = differences(group.outcomes, pairs, clusters=group.clusters)
    title = "Models against each other under the same condition"
    table = difference_table(found, f"{group.prefix}-models", title, group.care, unit=_unit(group))
    sure = sum(row.p_holm < 0.05 for row in found)
    words = f"Under the same condition, {sure} of {count_of(len(found), 'difference')} have a corrected p below 0.05"
    heading = Heading("Models against each other", f"{group.prefix}-models", 3)
    return ScoreBlocks(blocks=(heading, Text(f"{words}."), folded(table)))


def _closed_first(group: OutcomeSet) -> list[SystemKey]:
    return sorted(group.order, key=lambda system: not is_closed(system[1], group.tallies[system].protocol))


def _deltas(group: OutcomeSet) -> tuple[str, list[SystemDifference]]:
    """Every condition against the closed book of the same model and protocol, or every two where there is none."""
    closed = {
        (model, group.tallies[model, condition].protocol): (model, condition)
        for model, condition in group.order
        if is_closed(condition, group.tallies[model, condition].protocol)
    }
    known = {frozenset(pair) for pair in comparable_pairs(group.outcomes, "model")}
    pairs = [
        (system, base)
        for system in group.order
        if (base := closed.get((system[0], group.tallies[system].protocol))) and frozenset((system, base)) in known
    ]
    versus = "the closed book"
    if not pairs:
        versus = "each other"
        rank = {row: place for place, row in enumerate(group.order)}
        alike = [pair for pair in known if len({group.tallies[system].protocol for system in pair}) == 1]
        ordered = [sorted(pair, key=lambda row: -rank[row]) for pair in alike]
        pairs = sorted(((a, b) for a, b in ordered), key=lambda pair: (rank[pair[1]], rank[pair[0]]))
    return versus, differences(group.outcomes, pairs, clusters=group.clusters) if pairs else []


def _heat(
    name: str, models: Sequence[str], conditions: Sequence[str], found: dict[SystemKey, Accuracy], deltas: Deltas
) -> Block:
    cells = []
    for model in models:
        line = []
        for condition in conditions:
            row, delta = found.get((model, condition)), deltas.get((model, condition))
            if row is None:
                line.append(Shade(value=None, tip="not asked"))
                continue
            gain = written(delta.paired.difference, "points") if delta else ""
            tip = f"{written(triple(row.accuracy, row.bootstrap), 'share')} (95%, {row.bootstrap.by})"
            tip += f", n = {row.questions:,} questions"
            tip += f", {missing(row.unscored):,} of {row.planned:,} unscored" if row.unscored else ""
            tip += f", {gain} points over the closed book" if gain else ""
            line.append(Shade(value=row.accuracy, note=gain, tip=tip))
        cells.append(line)
    below = " Below it, the difference to the closed book of the same model in points." if deltas else ""
    return figure(
        name,
        f"Share right of all planned answers.{below} Unscored answers are in the table.",
        partial(heatmap, models, conditions, cells, title="Accuracy by model and condition", key="share right"),
    )


def _grid(
    group: OutcomeSet,
    names: tuple[str, str],
    models: Sequence[str],
    conditions: Sequence[str],
    found: dict[SystemKey, Accuracy],
) -> Table:
    columns = [Column("model")]
    for condition in conditions:
        columns += [Column(condition, "share"), Column(f"{condition}, unscored", "count")]
    rows: list[tuple[Cell, ...]] = []
    shown = [found[model, condition] for model in models for condition in conditions if (model, condition) in found]
    for model in models:
        cells: list[Cell] = [model]
        for condition in conditions:
            row = found.get((model, condition))
            cells += [triple(row.accuracy, row.bootstrap), missing(row.unscored)] if row else [None, None]
        rows.append(tuple(cells))
    return Table(
        name=names[0],
        caption=f"{names[1]}: accuracy",
        n=len(group.questions),
        unit=_unit(group),
        columns=tuple(columns),
        rows=tuple(rows),
        note=f"95% intervals: {accuracy_intervals(shown)}. Unscored answers stay in the denominator.",
    )


def _unit(group: OutcomeSet) -> str:
    return questions_in(group.questions, group.clusters)


def _delta_blocks(group: OutcomeSet, versus: str, found: Sequence[SystemDifference]) -> list[Block]:
    title = f"Differences to {versus}" if versus == "the closed book" else "Differences between conditions"
    drawn = found[:_BARS]
    bars = [
        interval_bar(
            group.name(row.a) if versus == "the closed book" else f"{group.name(row.a)} over {row.b[1]}",
            row.paired.difference,
            row.paired.interval,
        )
        for row in drawn
    ]
    reach = max([0.1, *(abs(end) for bar in bars for end in (bar.low or 0.0, bar.high or 0.0))])
    draw = partial(interval_bars, bars, title=title, form="points", limits=(-reach, reach))
    methods = method_words((group.name(row.a), row.paired.interval) for row in drawn)
    caption = f"Difference in accuracy in percentage points, with 95% intervals ({methods})."
    if any(row.paired.interval.method == TANGO for row in drawn):
        caption += f" {_SCORE}"
    caption += f" The first {_BARS} of {len(found)}." if len(found) > len(drawn) else ""
    table = difference_table(found, f"{group.prefix}-differences", title, group.care, unit=_unit(group))
    caption += f" {group.care}" if group.care else ""
    return [
        Heading(title, f"{group.prefix}-differences", 3),
        figure(f"{group.prefix}-differences", caption, draw),
        folded(table),
    ]


def difference_table(
    found: Sequence[SystemDifference], name: str, caption: str, care: str = "", *, unit: str = "questions"
) -> Table:
    """Paired differences with their tests; `care` is what makes them doubtful, and stands first in the note."""
    several = any(row.a[0] != row.b[0] for row in found)
    clustered = any(row.p_cluster is not None for row in found)
    scored = any(row.paired.interval.method == TANGO for row in found)
    columns = (
        *columns_of("model | condition | against | this − against, points:points | Holm p:p | p:p"),
        *(columns_of("Holm p by clusters:p | p by clusters:p") if clustered else ()),
        *columns_of(
            "interval by | accuracy:share | against, accuracy:share | unscored:count | "
            "sensitivity:points | only this right:count | only that right:count | questions:count"
        ),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            row.a[0],
            row.a[1],
            row.b[0] if several else row.b[1],
            triple(row.paired.difference, row.paired.interval),
            row.p_holm,
            row.p,
            *((row.p_cluster_holm, row.p_cluster) if clustered else ()),
            row.paired.interval.by,
            row.accuracy_a,
            row.accuracy_b,
            row.unscored,
            row.sensitivity,
            row.only_a,
            row.only_b,
            row.paired.n,
        )
        for row in found
    )
    tests = " or ".join(dict.fromkeys(row.test for row in found))
    return Table(
        name=name,
        caption=caption,
        n=max(row.paired.n for row in found),
        unit=unit,
        columns=columns,
        rows=rows,
        note=" ".join(
            part
            for part in (
                care,
                _PAIRED.format(tests=tests, intervals=interval_note(row.paired.interval for row in found)),
                _SCORE if scored else "",
                _CLUSTERS if clustered else "",
                SENSITIVITY_NOTE,
            )
            if part
        ),
    )


def options_section(group: OutcomeSet) -> ScoreBlocks:
    """One row a system that chose options; nothing where all answers are free text."""
    if not any(tally.protocol for tally in group.tallies.values()):
        return ScoreBlocks()
    facet = next(iter(facet_names(group.facets.values())), "")
    kept = (answer for answer in group.each_answer() if (answer.model, answer.condition) in group.order)
    found = option_decisions(group.questions.values(), kept, facet or None, clusters=group.clusters)
    if not found:
        return ScoreBlocks()
    rank = {system: place for place, system in enumerate(group.order)}
    found.sort(key=lambda row: rank[row.model, row.condition])
    columns = [
        *columns_of("model | condition | answers:count"),
        UNSCORED,
        *(Column(name, "count") for name in ("TP", "FN", "TN", "FP")),
        *columns_of("sensitivity:share | specificity:share | range of sensitivity:share | range of specificity:share"),
    ]
    if facet:
        columns += [
            Column(f"sensitivity, macro by {facet}", "share"),
            Column(f"specificity, macro by {facet}", "share"),
        ]
    undecided = sum(row.undecided for row in found)
    table = Table(
        name=f"{group.prefix}-options",
        caption="Sensitivity and specificity over option decisions",
        n=len(group.questions),
        unit="questions",
        columns=tuple(columns),
        rows=tuple(_row(row, facet) for row in found),
        note="TP: the right option selected; FN: not selected; TN: a wrong option not selected; FP: selected. "
        f"{_rates(found)} An unscored answer selects nothing. Where they exceed 1%, the range "
        "is the figure if each selected a wrong option and if each selected the right one."
        + (f" Questions without options are left out: {undecided:,} answers." if undecided else ""),
    )
    ours = tuple(
        OwnFigure(
            measure=name,
            model=row.model,
            condition=row.condition,
            value=triple(rate.value, rate.interval),
            n=row.questions,
            unscored=row.unscored,
        )
        for row in found
        for name, rate in (("sensitivity", row.sensitivity), ("specificity", row.specificity))
    )
    heading = Heading("Sensitivity and specificity", f"{group.prefix}-options", 3)
    return ScoreBlocks(blocks=(heading, folded(table)), ours=ours)


def _rates(found: Sequence[OptionDecisions]) -> str:
    """By which method the intervals of the rates are."""
    named = (
        (f"{name} of {row.model} · {row.condition}", rate.interval)
        for row in found
        for name, rate in (("sensitivity", row.sensitivity), ("specificity", row.specificity))
    )
    return f"95% intervals: {method_words(named)}."


def _row(row: OptionDecisions, facet: str) -> tuple[Cell, ...]:
    cells: list[Cell] = [row.model, row.condition, row.answers, row.unscored, row.tp, row.fn, row.tn, row.fp]
    cells += [triple(rate.value, rate.interval) for rate in (row.sensitivity, row.specificity)]
    cells += [rate.sensitivity_range for rate in (row.sensitivity, row.specificity)]
    if facet:
        for macro in (row.macro_sensitivity, row.macro_specificity):
            cells.append(triple(macro.value, macro.interval) if macro else None)
    return tuple(cells)


_IMAGES = "images"


def images_section(group: OutcomeSet) -> ScoreBlocks:
    """Answers with the images against the closed book on the text, where both were run."""
    pairs: list[tuple[SystemKey, SystemKey]] = []
    for model, condition in group.order:
        protocol = group.tallies[model, condition].protocol
        if base_condition(condition, protocol) == _IMAGES:
            pairs += [
                ((model, condition), other)
                for other in group.order
                if other[0] == model
                and group.tallies[other].protocol == protocol
                and is_closed(other[1], group.tallies[other].protocol)
            ]
    return ScoreBlocks(blocks=tuple(_blocks(group, group.outcomes, pairs, "", group.care)))


def editions_blocks(groups: Sequence[OutcomeSet]) -> dict[str, list[Block]]:
    """Two editions of the same questions, one of them with images: chapter (by its prefix) to what it shows of that."""
    found: dict[str, list[Block]] = {}
    for text, pictured in permutations(groups, 2):
        shared = text.questions.keys() & pictured.questions.keys()
        if (
            not shared
            or not any(pictured.questions[name].images for name in shared)
            or any(text.questions[name].images for name in shared)
        ):
            continue
        rows = [row for row in text.outcomes if row.question in shared]
        rows += [
            replace(row, condition=_pictured(row.condition)) for row in pictured.outcomes if row.question in shared
        ]
        pairs = [
            ((model, _pictured(condition)), (model, plain))
            for model, condition in _images_first(pictured)
            if (plain := _text_for(text, (model, condition), pictured.tallies[model, condition].protocol))
        ]
        known = {frozenset(pair) for pair in comparable_pairs(rows, "model", unscored=True)}
        kept = [pair for pair in pairs if frozenset(pair) in known]
        both = replace(pictured, asked=[*text.asked, *pictured.asked])
        words = (
            f"The edition with images against the one without, over the {len(shared):,} questions of both. Images "
            f"are shown only under the condition “{_IMAGES}” ; the other conditions of that edition show its text "
            f"without the images."
        )
        found.setdefault(pictured.prefix, []).extend(_blocks(pictured, rows, kept, words, both.care))
    return found


def _pictured(condition: str) -> str:
    """What a condition is called in the edition with images."""
    shown = condition.partition(",")[0] == _IMAGES
    return f"{condition} (image edition)" if shown else f"{condition} (image edition, text only)"


def _images_first(group: OutcomeSet) -> list[SystemKey]:
    return sorted(group.order, key=lambda system: base_condition(system[1], group.tallies[system].protocol) != _IMAGES)


def _text_for(text: OutcomeSet, system: SystemKey, protocol: str) -> str:
    """The condition of the text edition that this one is set against: the closed book for images, else the same."""
    base = base_condition(system[1], protocol)
    mine = [condition for model, condition in text.order if model == system[0]]
    if base == _IMAGES:
        return next(
            (each for each in mine if text.tallies[system[0], each].protocol == protocol and is_closed(each, protocol)),
            "",
        )
    return system[1] if system[1] in mine else ""


def _blocks(
    group: OutcomeSet, outcomes: Sequence[Outcome], pairs: Sequence[tuple[SystemKey, SystemKey]], words: str, care: str
) -> list[Block]:
    if not pairs:
        return []
    name = f"{group.prefix}-images" if not words else f"{group.prefix}-editions"
    blocks: list[Block] = [Heading("Text against images", name, 3), *([Text(words)] if words else [])]
    scored = scored_systems(outcomes)
    lost = dict.fromkeys(" · ".join(system) for pair in pairs for system in pair if system not in scored)
    if lost:
        blocks.append(Notice(f"Without a difference, because no answer could be scored: {'; '.join(lost)}."))
    if both := [pair for pair in pairs if scored.issuperset(pair)]:
        found = differences(outcomes, both, clusters=group.clusters)
        blocks.append(difference_table(found, name, "Images against text", care))
    return blocks
