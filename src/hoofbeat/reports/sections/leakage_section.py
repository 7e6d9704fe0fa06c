"""A leakage check in a report: each sign with its control, interval and n, and what it can't tell in words.

The signs: continued questions and likelihoods, near duplicates and canaries in other texts, accuracy before and after a
model's cutoff, and the gap between the closed and the open book.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hoofbeat.leakage.canaries import FoundCanary
from hoofbeat.leakage.leakage_figures import (
    CAVEATS,
    RUN_WORDS,
    BookGap,
    LeakageEstimate,
    LeakageSummary,
    LikelihoodSummary,
    OverlapRow,
    OverlapSummary,
    reproduced,
    share_of,
)
from hoofbeat.leakage.near_duplicates import NearDuplicate
from hoofbeat.leakage.training_cutoffs import POSITIONS
from hoofbeat.reports.charts import Bar, grouped_bars, interval_bar, interval_dots, stacked_bars
from hoofbeat.reports.interval_words import interval_note, method_words
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import (
    Chapter,
    ReportSection,
    chapter_per_artefact,
    figure,
    reasons_text,
    share_in_words,
    spread,
)
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, estimate_cell, triple, written
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

_PAIRS = 200
_WORDS = 160
_WHERE = {"document": "document that is not its source", "question": "another question"}


_SPREAD = (
    "95% intervals: bootstrap over sources (1,000 samples, seed 0), or a score interval where few questions differ or "
    "nearly all go the same way."
)


def value_cell(found: LeakageEstimate) -> Cell:
    """A figure with its interval as a table's cell."""
    return estimate_cell(found.value, found.low, found.high, found.n)


def near_blocks(summary: LeakageSummary, pairs: Sequence[NearDuplicate], prefix: str) -> list[Block]:
    """Where questions stand besides their own source."""
    told = "; ".join(f"{_WHERE.get(where, where)}: {count:,}" for where, count in summary.near.items())
    words = f"At least {summary.near_threshold:g} of a question's five-word sequences are in … {told}."
    if not summary.documents:
        words += " There was no corpus, so no documents were searched."
    elif summary.own_source.value is not None:
        own = written(value_cell(summary.own_source), "share")
        words += f" Their own sources contain {own} of them on average, as expected."
    if summary.near_too_short:
        words += f" {count_of(summary.near_too_short, 'question')} too short to be searched for."
    blocks: list[Block] = [Heading("Near-duplicates", f"{prefix}-near", 3), Text(words)]
    if pairs:
        columns = columns_of(
            "question | found in | which | share:share | words in a row:count | the words | characters | position there"
        )
        rows: list[tuple[Cell, ...]] = [
            (
                pair.question,
                _WHERE.get(pair.where, pair.where),
                pair.other,
                pair.score,
                pair.run,
                cut(pair.question_text, _WORDS),
                f"{pair.question_span[0]:,}–{pair.question_span[1]:,}",
                f"{pair.other_span[0]:,}–{pair.other_span[1]:,}",
            )
            for pair in pairs[:_PAIRS]
        ]
        blocks.append(
            Table(
                name=f"{prefix}-near",
                caption="Questions found elsewhere, closest first",
                n=len(pairs),
                unit="pairs",
                columns=columns,
                rows=tuple(rows),
                note=f"The first {_PAIRS:,}; near.jsonl holds all." if len(pairs) > _PAIRS else "",
            )
        )
    return [*blocks, Text(CAVEATS["near"])]


def canary_blocks(summary: LeakageSummary, found: Sequence[FoundCanary], prefix: str) -> list[Block]:
    """Canaries that were found, and whether models completed them."""
    blocks: list[Block] = [Heading("Canary strings", f"{prefix}-canaries", 3)]
    if found:
        rows: list[tuple[Cell, ...]] = [(each.place, each.name or "not known", each.guid) for each in found]
        blocks.append(
            Table(
                name=f"{prefix}-canaries-found",
                caption="Canaries in the corpus and in the benchmark's files",
                n=len(found),
                unit="canaries",
                columns=columns_of("where | whose | GUID"),
                rows=tuple(rows),
            )
        )
    else:
        blocks.append(Text("There is none in the corpus or in the benchmark's files."))
    if summary.canaries:
        columns = columns_of("model | canary of | hidden digits:count | reproduced:count")
        blocks += [
            Table(
                name=f"{prefix}-canaries",
                caption="Canaries that models were asked to complete",
                n=len(summary.canaries),
                unit="probes",
                columns=(*columns, Column("unscored")),
                rows=tuple(
                    (
                        row.model,
                        row.name,
                        row.hidden,
                        None if row.failure else row.matched,
                        row.failure.kind if row.failure else "",
                    )
                    for row in summary.canaries
                ),
            ),
            Text(CAVEATS["canary"]),
        ]
    return blocks


_TONES = {"before": 1, "after": 2, "same year": 3, "undated": 0}


def date_blocks(summary: LeakageSummary, prefix: str) -> list[Block]:
    """When sources came out against each model's cutoff, and accuracy before and after it."""
    if not summary.dates:
        return []
    blocks: list[Block] = [Heading("Publication against training cutoff", f"{prefix}-dates", 3)]
    known = [row for row in summary.dates if row.cutoff]
    if known:
        parts = [(f"{row.model} ({row.cutoff.until})", row.positions) for row in known if row.cutoff]
        draw = partial(stacked_bars, parts, POSITIONS, title="Sources before and after the cutoff", tones=_TONES)
        caption = "Questions by the publication date of their source and the cutoff."
        blocks.append(figure(f"{prefix}-dates", caption, draw))
    columns = (
        *columns_of("model | cutoff | how known | source of it"),
        *(Column(name, "count") for name in POSITIONS),
    )
    rows: list[tuple[Cell, ...]] = []
    for row in summary.dates:
        if row.cutoff is None:
            rows.append((row.model, "not known", None, "give it with --cutoff", None, None, None, None))
            continue
        counts = tuple(row.positions.get(name, 0) for name in POSITIONS)
        rows.append((row.model, row.cutoff.until, row.cutoff.kind, row.cutoff.source, *counts))
    blocks.append(
        Table(
            name=f"{prefix}-dates",
            caption="Publication of the questions' sources against each model's cutoff",
            n=summary.questions,
            unit="questions",
            columns=columns,
            rows=tuple(rows),
            note="Same year: the source's month is unknown, so it may be before or after.",
        )
    )
    blocks += _date_accuracies(summary, prefix)
    return [*blocks, Text(CAVEATS["dates"])]


def _date_accuracies(summary: LeakageSummary, prefix: str) -> list[Block]:
    if not summary.date_accuracies:
        return []
    columns = columns_of(
        "model | condition | n before:count | before:share | n after:count | after:share | "
        "before − after:points | unscored:count"
    )
    rows: list[tuple[Cell, ...]] = [
        (
            row.model,
            row.condition,
            row.before_n,
            triple(row.before, row.before_interval),
            row.after_n,
            triple(row.after, row.after_interval),
            triple(row.difference, row.interval),
            row.unscored,
        )
        for row in summary.date_accuracies
    ]
    return [
        Table(
            name=f"{prefix}-date-accuracy",
            caption="Accuracy on questions from before and from after the cutoff",
            n=summary.outcomes,
            unit="answers",
            columns=columns,
            rows=tuple(rows),
            note="Shares with Wilson's interval; the difference is between two sets of questions, by "
            f"{method_words((row.model, row.interval) for row in summary.date_accuracies)}. Unscored "
            "answers count as wrong.",
        )
    ]


def gap_blocks(gaps: Sequence[BookGap], prefix: str) -> list[Block]:
    """Accuracy without and with the source, and what became of each question."""
    if not gaps:
        return []
    names = [f"{row.model}, {row.protocol}" for row in gaps]
    series = {
        what: [
            interval_bar(name, each.accuracy, each.bootstrap)
            for name, row in zip(names, gaps, strict=True)
            for each in [row.closed if what == "closed book" else row.oracle]
        ]
        for what in ("closed book", "with the source")
    }
    draw = partial(grouped_bars, names, series, title="Accuracy without and with the source", limits=(0, 1))
    return [
        Heading("Closed book against reading the source", f"{prefix}-gap", 3),
        figure(f"{prefix}-gap", "Accuracy closed book and with the question's source, 95% intervals.", draw),
        *_gap_tables(gaps, prefix),
        Text(CAVEATS["gap"]),
    ]


def _gap_tables(gaps: Sequence[BookGap], prefix: str) -> list[Block]:
    rows: list[tuple[Cell, ...]] = []
    became: list[tuple[Cell, ...]] = []
    for row in gaps:
        paired = row.gap.paired
        rows.append(
            (
                row.model,
                row.protocol,
                row.pairs,
                triple(row.closed.accuracy, row.closed.bootstrap),
                triple(row.oracle.accuracy, row.oracle.bootstrap),
                triple(paired.difference, paired.interval),
                row.gap.p,
                row.gap.unscored,
            )
        )
        counts = (row.both, row.closed_only, row.oracle_only, row.neither, row.unscored)
        became.append((row.model, row.protocol, row.pairs, *(value_cell(share_of(n, row.pairs)) for n in counts)))
    who = columns_of("model | protocol | answers:count")
    n = max(row.pairs for row in gaps)
    return [
        Table(
            name=f"{prefix}-gap",
            caption="Accuracy closed book and with the source, paired by question",
            n=n,
            unit="answers",
            columns=(
                *who,
                *columns_of("closed book:share | with source:share | gap:points | p (McNemar):p | unscored:count"),
            ),
            rows=tuple(rows),
            note=f"Gap: with source minus closed book. {interval_note(row.gap.paired.interval for row in gaps)}",
        ),
        Table(
            name=f"{prefix}-gap-became",
            caption="Result of each question both ways",
            n=n,
            unit="answers",
            columns=(
                *who,
                *columns_of(
                    "right both ways:share | right closed book only:share | right with source only:share | "
                    "wrong both ways:share | unscored in either:share"
                ),
            ),
            rows=tuple(became),
            note="Shares with Wilson's interval. A question with an unscored answer counts only in the last column.",
        ),
    ]


_SHOWN = 12
_NAMES = {"question": "question's second half", "reference": "gold answer", "explanation": "reference explanation"}


_SIGNS = (
    "These are signs: a strong one is consistent with leakage, none proves it, and their absence proves nothing either."
)


def leakage_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one leakage check."""
    summary = artefact.record("summary.json", LeakageSummary, what="the summary of the leakage check")
    overlaps = list(read_jsonl(artefact.file("overlaps.jsonl"), OverlapRow))
    near = list(read_jsonl(artefact.file("near.jsonl"), NearDuplicate))
    found = list(read_jsonl(artefact.file("canaries.jsonl"), FoundCanary))
    checked = next((ref.name for ref in artefact.manifest.inputs if ref.kind == "benchmark"), artefact.path.name)
    models = ", ".join(summary.models) or "no model"
    blocks: list[Block] = [
        Text(f"{count_of(summary.questions, 'question')} of {checked}; probed: {models}. Intervals are 95%."),
        Notice(_SIGNS),
    ]
    blocks += _overlaps(summary.overlaps, overlaps, prefix)
    blocks += _likelihoods(summary.likelihoods, prefix)
    blocks += date_blocks(summary, prefix)
    blocks += gap_blocks(summary.gaps, prefix)
    blocks += near_blocks(summary, near, prefix)
    blocks += canary_blocks(summary, found, prefix)
    leads = _leads(summary, checked, prefix)
    title = f"Leakage: {checked}"
    return Chapter(title=title, id=prefix, blocks=tuple(blocks), subject=title, cards=_cards(summary), leads=leads)


def _leads(summary: LeakageSummary, checked: str, prefix: str) -> tuple[Lead, ...]:
    """What each kind of check found, and that none of it is proof."""
    models = ", ".join(summary.models) or "no model"
    words = f"{count_of(summary.questions, 'question')} of {checked} were checked for leakage; probed: {models}."
    leads = [Lead(words, f"#{prefix}", "See the signs")]
    if most := _most_reproduced(summary):
        n, value = most.share.n, most.share.value or 0.0
        share = share_in_words(round(value * n), n, (most.share.low or 0.0, most.share.high or 0.0), "question")
        leads.append(Lead(f"{most.model} reproduces the second half of {share} word for word."))
    found = count_of(summary.canaries_found, "canary string", "canary strings")
    near = count_of(sum(summary.near.values()), "near copy", "near copies")
    leads.append(Lead(f"Other questions and documents hold {near} of these questions, and the files {found}."))
    return (*leads, Lead(_SIGNS))


def _bar(label: str, found: LeakageEstimate) -> Bar:
    return Bar(label=label, value=found.value, low=found.low, high=found.high)


def _most_reproduced(summary: LeakageSummary) -> OverlapSummary | None:
    """The model that gives back most questions."""
    whole = [row for row in summary.overlaps if not row.by and row.probe == "continuation" and row.share.n]
    return max(whole, key=lambda row: (row.share.value or 0.0, row.model), default=None)


def _cards(summary: LeakageSummary) -> tuple[Card, ...]:
    most = _most_reproduced(summary)
    if most is None:
        return ()
    interval = (most.share.low or 0.0, most.share.high or 0.0)
    return (
        Card(
            label=f"Questions reproduced word for word by {most.model}",
            value=written(most.share.value, "share"),
            detail=spread(interval, "share", count_of(most.share.n, "question")),
        ),
    )


def _overlaps(summaries: Sequence[OverlapSummary], rows: Sequence[OverlapRow], prefix: str) -> list[Block]:
    whole = [row for row in summaries if not row.by]
    if not whole:
        return []
    blocks: list[Block] = [
        Heading("What models reproduce", f"{prefix}-overlap", 3),
        Text(
            "Continuation: the model continues the first part of a question; the true rest is the reference. "
            "Rationale: it answers and explains; the reference is the explanation in the source. "
            f"Reproduced means {RUN_WORDS} words in a row or more, or three quarters of the rest in order."
        ),
    ]
    drawn = [row for row in whole if row.rouge.n]
    if drawn:
        series = {
            "against its own reference": [_bar(_label(row), row.rouge) for row in drawn],
            "against another question's": [_bar(_label(row), row.rouge_control) for row in drawn],
        }
        draw = partial(grouped_bars, [_label(row) for row in drawn], series, title="ROUGE-L", form="number")
        blocks.append(
            figure(
                f"{prefix}-rouge",
                "ROUGE-L (F) of generated texts, own reference and control.",
                partial(draw, limits=(0, 1)),
            )
        )
    blocks += _overlap_tables(whole, f"{prefix}-overlap", "Generated texts against their references")
    blocks += _unscored([(row.model, row.probe, row.planned, row.unscored) for row in whole])
    blocks.append(Text(CAVEATS["overlap"]))
    if groups := [row for row in summaries if row.by]:
        caption = "Generated texts by group of questions"
        tables = _overlap_tables(groups, f"{prefix}-overlap-groups", caption)
        blocks.append(Details(f"{caption} ({len(groups)})", tuple(tables)))
    return blocks + _examples(rows)


def _label(row: OverlapSummary) -> str:
    return f"{row.model}, {row.probe}"


def _overlap_tables(rows: Sequence[OverlapSummary], name: str, caption: str) -> list[Block]:
    """Two tables that fit a page: by words in order, and by characters."""
    n = max((row.planned for row in rows), default=0)
    who = _who(rows, "probe")
    first: list[tuple[Cell, ...]] = []
    second: list[tuple[Cell, ...]] = []
    for row in rows:
        names = _names(row.model, row.probe, row.by, row.group, grouped=len(who) > 2)
        rouge = [value_cell(each) for each in (row.rouge, row.rouge_control, row.rouge_gain)]
        edit = [value_cell(each) for each in (row.edit, row.edit_control, row.edit_gain)]
        first.append((*names, row.rouge.n, *rouge, row.run_longest, value_cell(row.share)))
        second.append((*names, row.edit.n, *edit, row.run_median))
    measured = columns_of("control:number | gain:number")
    runs = columns_of("longest run:count | reproduced:share")
    note = (
        "Control: the same generated text against another question's reference. Gains are paired by question. "
        f"{_SPREAD} Runs are words in a row; reproduced has Wilson's interval."
    )
    return [
        Table(
            name=name,
            caption=f"{caption}: ROUGE-L",
            n=n,
            unit="questions",
            columns=(*who, *columns_of("n:count | ROUGE-L:number"), *measured, *runs),
            rows=tuple(first),
            note=note,
        ),
        Table(
            name=f"{name}-edit",
            caption=f"{caption}: edit similarity",
            n=n,
            unit="questions",
            columns=(
                *who,
                *columns_of("n:count | edit similarity:number"),
                *measured,
                Column("median run", "amount"),
            ),
            rows=tuple(second),
        ),
    ]


def _who(rows: Sequence[OverlapSummary] | Sequence[LikelihoodSummary], what: str) -> tuple[Column, ...]:
    grouped = (Column("questions"),) if any(row.by for row in rows) else ()
    return Column("model"), Column(what), *grouped


def _names(model: str, what: str, by: str, group: str, *, grouped: bool) -> tuple[Cell, ...]:
    return (model, what, f"{by}: {group}") if grouped else (model, what)


def _unscored(rows: Sequence[tuple[str, str, int, dict[str, int]]]) -> list[Block]:
    told = [
        f"{model}, {what}: {sum(reasons.values())} of {planned} unscored ({reasons_text(reasons)})"
        for model, what, planned, reasons in rows
        if reasons
    ]
    return [Notice("; ".join(told) + ".")] if told else []


def _examples(rows: Sequence[OverlapRow]) -> list[Block]:
    """The texts with the longest runs, so that a reader can judge what the figures rest on."""
    scored = [row for row in rows if row.own is not None and row.own.run > 0]
    longest = sorted(scored, key=lambda row: (-(row.own.run if row.own else 0), row.question, row.model, row.probe))
    inner: list[Block] = []
    for row in longest[:_SHOWN]:
        assert row.own is not None
        again = " (reproduced)" if reproduced(row) else ""
        head = f"{row.question}, {row.model}, {row.probe}: {count_of(row.own.run, 'word')} in a row{again}"
        inner += [Text(f"“{cut(row.shared, 400)}”", head), Text(cut(row.text, 500), "generated")]
        inner.append(Text(cut(row.reference, 500), "reference"))
    return [Details(f"The longest reproduced runs of words ({len(longest[:_SHOWN])})", tuple(inner))] if inner else []


def _likelihoods(summaries: Sequence[LikelihoodSummary], prefix: str) -> list[Block]:
    whole = [row for row in summaries if not row.by]
    if not whole:
        return []
    blocks: list[Block] = [
        Heading("How likely the texts are to models", f"{prefix}-likelihood", 3),
        Text(
            "Perplexity of the question's second half after its first, and of gold answer and reference explanation "
            "after the question. The ratio is the control's perplexity over the text's own: 1 means that the text is "
            "not more likely than its control. Min-K% is the mean log-probability of the least likely fifth of "
            "the tokens; its gain is positive where the text is more likely than its control."
        ),
    ]
    none = sorted({row.model for row in whole if "unsupported" in row.unscored})
    if none:
        blocks.append(Notice(f"{', '.join(none)}: {CAVEATS['no likelihood']}"))
    drawn = [row for row in whole if row.ratio.n]
    if drawn:
        names = [f"{row.model}, {_NAMES[row.text]}" for row in drawn]
        panels = {
            "control's perplexity over own": [_bar(name, row.ratio) for name, row in zip(names, drawn, strict=True)],
            "Min-K% gain over control": [_bar(name, row.lowest_gain) for name, row in zip(names, drawn, strict=True)],
        }
        caption = "Each text against its control, paired by question, with 95% intervals."
        blocks.append(
            figure(
                f"{prefix}-ratio", caption, partial(interval_dots, names, panels, title="Likelihood against controls")
            )
        )
    blocks += _likelihood_tables(whole, f"{prefix}-likelihood", "The texts and their controls")
    scored = [row for row in whole if row.model not in none]
    blocks += _unscored([(row.model, _NAMES[row.text], row.planned, row.unscored) for row in scored])
    if drawn:
        blocks.append(Text(CAVEATS["likelihood"]))
    if groups := [row for row in summaries if row.by and row.perplexity.n]:
        caption = "The texts by group of questions"
        tables = _likelihood_tables(groups, f"{prefix}-likelihood-groups", caption)
        blocks.append(Details(f"{caption} ({len(groups)})", tuple(tables)))
    return blocks


def _likelihood_tables(rows: Sequence[LikelihoodSummary], name: str, caption: str) -> list[Block]:
    """Two tables that fit a page: perplexities, and the other two ways to read the same log-probabilities."""
    n = max((row.planned for row in rows), default=0)
    who = _who(rows, "text")
    first: list[tuple[Cell, ...]] = []
    second: list[tuple[Cell, ...]] = []
    for row in rows:
        names = _names(row.model, _NAMES[row.text], row.by, row.group, grouped=len(who) > 2)
        control = (row.control or None, value_cell(row.control_perplexity), value_cell(row.ratio))
        first.append((*names, row.perplexity.n, row.tokens, value_cell(row.perplexity), *control))
        rest = (value_cell(row.lowest), value_cell(row.lowest_gain), value_cell(row.per_zlib))
        second.append((*names, row.perplexity.n, *rest))
    return [
        Table(
            name=name,
            caption=f"{caption}: perplexity",
            n=n,
            unit="questions",
            columns=(
                *who,
                *columns_of(
                    "n:count | tokens:count | perplexity:number | control | its perplexity:number | ratio:number"
                ),
            ),
            rows=tuple(first),
            note="Geometric mean over questions of each text's perplexity per token. "
            f"{_SPREAD} A dash: the provider gave no log-probabilities, or there is no control.",
        ),
        Table(
            name=f"{name}-tokens",
            caption=f"{caption}: least likely tokens, and loss against compression",
            n=n,
            unit="questions",
            columns=(
                *who,
                *columns_of("n:count | Min-K%:number | gain:number | bits per zlib bit:number"),
            ),
            rows=tuple(second),
        ),
    ]


SECTION = ReportSection(
    name="leakage",
    summary="signs that models have seen the questions, each with its control",
    order=90,
    kinds=("leakage",),
    build=chapter_per_artefact("leakage", leakage_chapter),
)
