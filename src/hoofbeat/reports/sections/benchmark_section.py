"""A benchmark in a report: the funnel from candidates to questions, with reasons, and examples to judge it by.

One that a recipe built tells each of its steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice

import msgspec
from msgspec import Struct, field

from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.corpus.stats import quantiles
from hoofbeat.facets import FacetTally
from hoofbeat.records import Failure, Question
from hoofbeat.reports.charts import Bar, FunnelBar, funnel_bars, interval_bars
from hoofbeat.reports.item_views import failure_text, question_view
from hoofbeat.reports.model import Block, Card, Details, Entry, Heading, Lead, Notice, Text, Viewer
from hoofbeat.reports.section import (
    Chapter,
    ReportSection,
    chapter_per_artefact,
    counted,
    facet_blocks,
    figure,
    reasons_text,
)
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, money_words
from hoofbeat.store import Artefact, Counts
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

FUNNEL_TITLE = "From candidates to questions"
_LISTED = 200
_DETAILS = 240
_CAPTION = (
    "What each step of the recipe kept, and what it rejected or lost to a failed call, on one scale. "
    "A candidate counts at the first step that rejects it."
)


class BuildStage(Struct, frozen=True):
    """One step of the funnel, as the manifest keeps it."""

    step: str
    came: int = field(name="in")
    kept: int
    rejected: int
    failed: int = 0
    reasons: dict[str, int] = {}
    failures: dict[str, int] = {}


class _Similarity(Struct, frozen=True):
    histogram: dict[str, list[float]]
    quartiles: dict[str, dict[str, float]]
    descriptions: int = 0


class _Rejected(Struct, frozen=True):
    id: str
    step: str
    reason: str
    details: str = ""


class _Failed(Struct, frozen=True):
    id: str
    step: str
    failure: Failure


def stages_of(artefact: Artefact) -> list[BuildStage]:
    """The funnel of a benchmark made by a recipe; none for one that was not."""
    try:
        return msgspec.convert(artefact.manifest.metrics.get("funnel", []), list[BuildStage])
    except msgspec.ValidationError:
        return []


def build_cards(artefact: Artefact) -> tuple[Card, ...]:
    """Key figures: what waits for review, and what building cost."""
    cards = []
    if waiting := _counts(artefact, "review"):
        detail = ", ".join(f"{count:,} {kind}" for kind, count in waiting.items())
        cards.append(Card(label="Review tasks waiting", value=f"{sum(waiting.values()):,}", detail=detail))
    cost = artefact.manifest.cost
    if cost.calls:
        detail = f"{cost.tokens_in:,} tokens in, {cost.tokens_out:,} out"
        detail += f", {money_words(cost.money)}" if cost.money else ""
        cards.append(Card(label="Model calls to build the benchmark", value=f"{cost.calls:,}", detail=detail))
    return tuple(cards)


def build_blocks(artefact: Artefact, prefix: str) -> list[Block]:
    """Everything a manifest says of how its benchmark was built."""
    stages = stages_of(artefact)
    if not stages:
        return []
    draw = partial(funnel_bars, [FunnelBar(each.step, each.came, each.kept) for each in stages], title=FUNNEL_TITLE)
    blocks: list[Block] = [
        Heading("How it was built", f"{prefix}-built", 3),
        figure(f"{prefix}-steps", _CAPTION, draw),
        _table(stages, prefix),
    ]
    counts = artefact.manifest.counts
    if counts.rejected:
        blocks.append(Details(count_of(counts.rejected, "rejected candidate"), (_rejected(artefact, prefix),)))
    if counts.failed:
        blocks.append(Details(count_of(counts.failed, "failed candidate"), (_failed(artefact, prefix),)))
    blocks += _editions(artefact)
    blocks += _lengths(artefact, prefix)
    blocks += _similarity(artefact, prefix)
    blocks += _asked_again(artefact)
    blocks += _trials(artefact, prefix)
    blocks += _review(artefact, prefix)
    return blocks


def _table(stages: Sequence[BuildStage], prefix: str) -> Table:
    rows = tuple(
        (s.step, s.came, s.kept, s.rejected, s.failed, reasons_text({**s.reasons, **s.failures})) for s in stages
    )
    heads = ("in", "kept", "rejected", "failed")
    return Table(
        name=f"{prefix}-steps",
        caption=FUNNEL_TITLE,
        n=stages[0].came,
        unit="candidates",
        columns=(Column("step"), *(Column(head, "count") for head in heads), Column("reasons")),
        rows=rows,
    )


def _rejected(artefact: Artefact, prefix: str) -> Table:
    found = read_jsonl(artefact.file("rejected.jsonl"), _Rejected) if artefact.has("rejected.jsonl") else iter(())
    rows = ((each.id, each.step, each.reason, cut(each.details, _DETAILS)) for each in found)
    total = artefact.manifest.counts.rejected
    return _lost(prefix, "rejected", "Rejected candidates", total, "candidate | step | reason | details", rows)


def _failed(artefact: Artefact, prefix: str) -> Table:
    found = read_jsonl(artefact.file("failed.jsonl"), _Failed) if artefact.has("failed.jsonl") else iter(())
    rows = ((each.id, each.step, cut(failure_text(each.failure), _DETAILS)) for each in found)
    total = artefact.manifest.counts.failed
    return _lost(prefix, "failed", "Candidates lost to a failed call", total, "candidate | step | why", rows)


def _lost(prefix: str, what: str, caption: str, total: int, columns: str, rows: Iterator[tuple[Cell, ...]]) -> Table:
    return Table(
        name=f"{prefix}-{what}-list",
        caption=caption,
        n=total,
        unit="candidates",
        columns=columns_of(columns),
        rows=tuple(islice(rows, _LISTED)),
        note=f"The first {_LISTED} of {total:,}; all are in {what}.jsonl." if total > _LISTED else "",
    )


def _editions(artefact: Artefact) -> list[Block]:
    editions = artefact.manifest.metrics.get("editions")
    if not isinstance(editions, dict) or not editions:
        return []
    listed = "; ".join(f"{name} ({about})" for name, about in editions.items())
    return [Text(f"Other editions: {listed}. Choose one with --edition.")]


def _lengths(artefact: Artefact, prefix: str) -> list[Block]:
    tokens = artefact.manifest.metrics.get("tokens")
    rows = [(name, row) for name, row in tokens.items() if isinstance(row, dict)] if isinstance(tokens, dict) else []
    if not rows or not isinstance(tokens, dict):
        return []
    heads = {"count": "n", "minimum": "min", "median": "median", "mean": "mean", "p75": "75th", "p95": "95th"}
    heads["maximum"] = "max"
    unit = "words" if tokens.get("tokenizer") == "none" else f"tokens of {tokens.get('tokenizer')}"
    table = Table(
        name=f"{prefix}-lengths",
        caption=f"Lengths in {unit}",
        n=int(rows[0][1].get("count", 0)),
        unit="questions",
        columns=(Column("of"), *(Column(head, "amount") for head in heads.values())),
        rows=tuple((name, *(row.get(key) for key in heads)) for name, row in rows),
    )
    return [table]


def _similarity(artefact: Artefact, prefix: str) -> list[Block]:
    """How alike diagnoses and their distractors are: a histogram of cosines, and quartiles by rank."""
    try:
        found = msgspec.convert(artefact.manifest.metrics.get("similarity"), _Similarity | None)
    except msgspec.ValidationError:
        return []
    if found is None or not found.histogram.get("distractors"):
        return []
    edges, counts = found.histogram["edges"], found.histogram["distractors"]
    seen = [place for place, count in enumerate(counts) if count]
    bars = [
        Bar(label=f"{edges[place]:.2f} to {edges[place + 1]:.2f}", value=counts[place])
        for place in range(seen[0], seen[-1] + 1)
    ]
    title = "Cosine between a diagnosis and its distractors"
    heads = ("min", "q1", "median", "q3", "max")
    table = Table(
        name=f"{prefix}-similarity",
        caption="Cosine of a diagnosis and the descriptions nearest to it, by rank",
        n=int(sum(counts)),
        unit="distractors",
        columns=(Column("rank"), *(Column(head, "number") for head in heads)),
        rows=tuple((rank, *(row.get(head) for head in heads)) for rank, row in found.quartiles.items()),
    )
    draw = partial(interval_bars, bars, title=title, form="count")
    return [figure(f"{prefix}-similarity", f"{title}. {found.descriptions:,} descriptions were compared.", draw), table]


def _asked_again(artefact: Artefact) -> list[Block]:
    """How often a rule objected to a reply and the model was asked once more."""
    found = artefact.manifest.metrics.get("asked again")
    if not isinstance(found, dict):
        return []
    told = "; ".join(f"{step}: {each['items']}, {each['kept']} kept" for step, each in found.items())
    return [Text(f"Where a rule objected to a reply, the model was asked again with the objection. {told}.")]


def _trial_words(artefact: Artefact) -> list[str]:
    """What a solver that tried the kept questions found, in sentences."""
    found = artefact.manifest.metrics.get("trials")
    if not isinstance(found, dict) or not found.get("questions"):
        return []
    words = [
        f"{found['without doubt']} of {count_of(found['questions'], 'question')} passed every trial without doubt."
    ]
    if isinstance(answered := found.get("answered"), dict):
        words.append(f"A solver that saw what an examinee sees was right in {answered['right']} of {answered['of']}.")
    if isinstance(guessed := found.get("guessed from the options"), dict):
        expected = guessed["expected by chance"]
        words.append(f"From the options alone it guessed {guessed['right']} of {guessed['of']} ({expected} by chance).")
    if isinstance(blind := found.get("guessed from the question"), dict):
        words.append(f"From the question alone, without the case, it guessed {blind['right']} of {blind['of']}.")
    if isinstance(graded := found.get("other answers graded"), dict):
        words.append(f"Key and note leave {graded['left open']} of {graded['of']} answers of examinees open.")
    return words


def _trials(artefact: Artefact, prefix: str) -> list[Block]:
    """What the trials of the questions that were kept found."""
    words, found = _trial_words(artefact), artefact.manifest.metrics.get("trials")
    if not words or not isinstance(found, dict):
        return []
    blocks: list[Block] = [Heading("Trials", f"{prefix}-trials", 3), Text(" ".join(words))]
    doubts = found.get("doubts")
    if isinstance(doubts, dict) and doubts:
        rows = [(doubt, count) for doubt, count in doubts.items() if isinstance(count, int)]
        caption = "Doubts from the trials"
        blocks.append(counted(f"{prefix}-doubts", caption, "doubt", rows, found["questions"], "questions"))
    return blocks


def _review(artefact: Artefact, prefix: str) -> list[Block]:
    waiting = _counts(artefact, "review")
    if not waiting:
        return []
    total = sum(waiting.values())
    return [counted(f"{prefix}-review", "Tasks waiting for reviewers", "task", list(waiting.items()), total, "tasks")]


def _counts(artefact: Artefact, name: str) -> dict[str, int]:
    found = artefact.manifest.metrics.get(name)
    if not isinstance(found, dict):
        return {}
    return {str(key): value for key, value in found.items() if isinstance(value, int)}


_EXAMPLES = 5


def benchmark_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one benchmark."""
    questions = Benchmark(artefact).questions
    corpus = corpus_beside(artefact)
    counts = artefact.manifest.counts
    with_gold = sum(bool(question.answer) for question in questions)
    choice = sum(bool(question.options) for question in questions)
    words = (
        f"{count_of(len(questions), 'question')}: {with_gold:,} with a gold answer, {choice:,} multiple choice, "
        f"{sum(bool(question.evidence) for question in questions):,} with evidence in their source."
    )
    blocks: list[Block] = [Text(words)]
    if not questions:
        blocks.append(Notice("This benchmark has no questions."))
    blocks += _per_question(questions, prefix)
    blocks += build_blocks(artefact, prefix) or funnel_blocks(counts, prefix)
    blocks += facet_blocks(FacetTally(question.facets for question in questions), f"{prefix}-questions", "questions")
    if questions:
        entries = tuple(
            Entry(
                id=f"{prefix}-example-{number}",
                name=question.id,
                title=cut(question.text, 160),
                blocks=(question_view(question, corpus=corpus, facets=False),),
            )
            for number, question in enumerate(questions[:_EXAMPLES], start=1)
        )
        blocks += [
            Heading("Examples", f"{prefix}-examples", 3),
            Text(f"The first {len(entries)} of {count_of(len(questions), 'question')}."),
            Viewer(id=f"{prefix}-viewer", noun="examples", entries=entries),
        ]
    candidates = counts.kept + counts.rejected + counts.failed
    detail = f"of {count_of(candidates, 'candidate')}" if candidates > len(questions) else ""
    card = Card(label="Questions in the benchmark", value=f"{len(questions):,}", detail=detail)
    title = artefact.manifest.title or artefact.path.name
    return Chapter(
        title=f"Benchmark: {title}",
        id=prefix,
        blocks=tuple(blocks),
        subject=title,
        cards=(card, *build_cards(artefact)),
        leads=(Lead(f"{title} has {words}", f"#{prefix}", "See the questions"), *_build_leads(artefact)),
        background=True,
    )


def _build_leads(artefact: Artefact) -> list[Lead]:
    """How many candidates were kept and why most others were not, what the trials found, and what it cost."""
    counts, leads = artefact.manifest.counts, []
    lost = counts.rejected + counts.failed
    if lost:
        words = f"{counts.kept:,} of {count_of(counts.kept + lost, 'candidate')} were kept"
        reasons = {**counts.reasons, **counts.failures}
        if reasons:
            reason, times = max(reasons.items(), key=lambda each: (each[1], each[0]))
            words += f"; the most frequent reason against one is “{cut(reason, 80)}” ({times:,} of {lost:,})"
        leads.append(Lead(f"{words}."))
    leads += [Lead(words) for words in _trial_words(artefact)[:1]]
    cost = artefact.manifest.cost
    if cost.calls:
        money = f" and cost {money_words(cost.money)}" if cost.money else ""
        leads.append(Lead(f"Building it took {count_of(cost.calls, 'model call')}{money}."))
    return leads


def _per_question(questions: Sequence[Question], prefix: str) -> list[Block]:
    """How many options and images a question has, of those that have any."""
    counts = {
        "options": [len(each.options) for each in questions if each.options],
        "images": [len(each.images) for each in questions if each.images],
    }
    rows = tuple(
        (name, found.count, found.minimum, found.median, found.mean, found.maximum)
        for name, values in counts.items()
        if (found := quantiles(values))
    )
    if not rows:
        return []
    return [
        Table(
            name=f"{prefix}-per-question",
            caption="Options and images per question",
            n=len(questions),
            unit="questions",
            columns=columns_of(
                "of | questions with some:count | minimum:count | median:amount | mean:amount | maximum:count"
            ),
            rows=rows,
        )
    ]


def funnel_blocks(counts: Counts, prefix: str) -> list[Block]:
    """What became of every candidate. Nothing is drawn where all came through."""
    total = counts.kept + counts.rejected + counts.failed
    if not total or total == counts.kept:
        return []
    rows: list[tuple[str, str, int, float]] = [("kept", "", counts.kept, counts.kept / total)]
    for fate, reasons, of_fate in (
        ("rejected", counts.reasons, counts.rejected),
        ("failed", counts.failures, counts.failed),
    ):
        ordered = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
        rest = of_fate - sum(reasons.values())
        rows += [
            (fate, reason, count, count / total) for reason, count in [*ordered, ("no reason noted", rest)] if count > 0
        ]
    bars = [Bar(label="candidates", value=total)]
    bars += [Bar(label=f"{fate}: {reason}" if reason else fate, value=count) for fate, reason, count, _ in rows]
    table = Table(
        name=f"{prefix}-funnel",
        caption="From candidates to questions",
        n=total,
        unit="candidates",
        columns=columns_of("fate | reason | count:count | share:share"),
        rows=tuple(rows),
    )
    caption = "Each candidate counts once. A failure is a call without a result; a rejection is a decision."
    chart = figure(
        f"{prefix}-funnel",
        caption,
        lambda width: interval_bars(bars, title="From candidates to questions", form="count", width=width),
    )
    return [chart, table]


SECTION = ReportSection(
    name="benchmark",
    summary="from candidates to questions: what was kept or rejected and why, with examples",
    order=210,
    kinds=("benchmark",),
    build=chapter_per_artefact("benchmark", benchmark_chapter),
)
