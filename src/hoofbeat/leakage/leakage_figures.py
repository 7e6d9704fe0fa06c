"""What the probes of a leakage check add up to, with intervals, against controls; signs, never proof.

Perplexity is exp of the mean over questions of a text's loss a token (a geometric mean, so that one text that a model
finds absurd does not make the figure), and its ratio to the control's is paired by question. Overlaps are means over
questions; the difference to another question's text is paired, too. All intervals resample whole sources.

The records of each question and model are here as well; reading them needs no model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Literal, TypeVar

from msgspec import Struct

from hoofbeat.findings.accuracy import Accuracy, SystemDifference, accuracies, differences
from hoofbeat.findings.intervals import Interval, bootstrap_mean, cluster_labels, paired_difference, wilson
from hoofbeat.findings.outcomes import Outcome
from hoofbeat.leakage.training_cutoffs import DateAccuracy, DateCounts
from hoofbeat.records import Failure

OverlapProbe = Literal["continuation", "rationale"]
PROBES: tuple[OverlapProbe, ...] = ("continuation", "rationale")
MeasuredText = Literal["question", "reference", "explanation"]


class LikelihoodRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How likely a model finds one text: the log-probability of its tokens, and the mean of the least likely fifth.

    `zlib` is the text's compressed size in bytes, against which a log-probability can be held.
    """

    question: str
    model: str
    text: MeasuredText
    control: str = ""
    tokens: int = 0
    total: float = 0.0
    lowest: float = 0.0
    zlib: int = 0
    failure: Failure | None = None

    @property
    def loss(self) -> float:
        """The mean loss a token."""
        return -self.total / self.tokens

    @property
    def perplexity(self) -> float:
        """exp of the mean loss a token."""
        return math.exp(min(self.loss, 700.0))


class ContinuationOverlap(Struct, frozen=True, kw_only=True):
    """How much of a true text stands in a generated one: ROUGE-L, edit similarity, longest run of words."""

    rouge_p: float
    rouge_r: float
    rouge_f: float
    edit: float
    run: int


class OverlapRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A generated text against its reference, and against another question's as the control (`partner`).

    `shared` is the longest run of words both have. `against` says what the reference is: rest, evidence, discussion or
    answer.
    """

    question: str
    model: str
    probe: OverlapProbe
    against: str = ""
    text: str = ""
    reference: str = ""
    own: ContinuationOverlap | None = None
    control: ContinuationOverlap | None = None
    partner: str = ""
    shared: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


class CanaryProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a model completed a canary: how many of its hidden digits came, of how many."""

    model: str
    name: str
    first: str
    matched: int = 0
    hidden: int = 0
    text: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


RUN_WORDS = 13
ROUGE_RECALL = 0.75
"""A text counts as reproduced from this number of words in a row, or this share of it in order."""

ALL = "all questions"
SAMPLES = 1000
_MAX_LOSS = 700.0  # beyond it a perplexity is no number any more
R = TypeVar("R", LikelihoodRow, OverlapRow)
CAVEATS = {
    "likelihood": (
        "Compare perplexity with its control. Alone it shows little: common wording is likely to any model, seen or "
        "not. Do not compare models with different tokenizers. Texts are scored as plain text, without the chat "
        "format. A text more likely than its control is consistent with exposure, but also with fluent wording."
    ),
    "no likelihood": (
        "The provider returns no log-probabilities for a text, so this model has no perplexity. This is missing "
        "evidence, not evidence that nothing leaked."
    ),
    "overlap": (
        "A continuation shares words with the true text because both describe the same case. The control, another "
        "question's text, shows how many words any text of the field shares. Only long word-for-word matches are hard "
        "to explain otherwise. A model that refuses, or was told not to recite, may still have seen the text."
    ),
    "dates": (
        "Questions from before and after a cutoff are different questions: a drop is consistent with leakage and with "
        "other differences between them. A cutoff marked as released is only the latest possible date. A source "
        "may have been public earlier in another form."
    ),
    "gap": (
        "High accuracy without the source, or a small gap to the accuracy with it, is consistent with leakage, but "
        "also with general knowledge of the field."
    ),
    "near": (
        "A near-duplicate shows that the same words are public elsewhere. It does not show that a model has seen them."
    ),
    "canary": (
        "A completed canary is strong evidence that files with it were in the training data. A canary that is not "
        "completed shows nothing: it may have been filtered out or forgotten. This benchmark's own canary is in no "
        "file until someone writes it there, so it also checks that a model can't pass the probe by chance."
    ),
}
Groups = Mapping[str, Mapping[str, str]]
"""Ways to group questions: a name (specialty, published, cutoff) to each question's group."""


class LeakageEstimate(Struct, frozen=True, kw_only=True):
    """A figure over n questions with its 95% interval; without a value where nothing was measured."""

    n: int
    value: float | None = None
    low: float | None = None
    high: float | None = None


class LikelihoodSummary(Struct, frozen=True, kw_only=True):
    """Likelihoods of one kind of text for one model and one group of questions.

    `ratio` is control perplexity over own, paired: above 1 the control is the less likely. `lowest` is the mean Min-K%
    score, `lowest_gain` its paired difference to the control's; `per_zlib` the loss in bits a compressed bit.
    """

    model: str
    text: str
    by: str
    group: str
    planned: int
    unscored: dict[str, int]
    tokens: int
    perplexity: LeakageEstimate
    lowest: LeakageEstimate
    per_zlib: LeakageEstimate
    control: str
    control_perplexity: LeakageEstimate
    ratio: LeakageEstimate
    lowest_gain: LeakageEstimate


class OverlapSummary(Struct, frozen=True, kw_only=True):
    """Overlaps of one probe for one model and one group of questions, the control's, and the paired differences.

    `reproduced` counts texts given back word for word (see `reproduced`), with Wilson's interval in `share`.
    """

    model: str
    probe: str
    by: str
    group: str
    planned: int
    unscored: dict[str, int]
    rouge: LeakageEstimate
    rouge_control: LeakageEstimate
    rouge_gain: LeakageEstimate
    edit: LeakageEstimate
    edit_control: LeakageEstimate
    edit_gain: LeakageEstimate
    run_median: float | None
    run_longest: int
    reproduced: int
    share: LeakageEstimate


class BookGap(Struct, frozen=True, kw_only=True):
    """Accuracy without and with the source, for one model and protocol, and what became of each question.

    The counts are of answers that both conditions have, by question and sample: right both ways, right one way and
    wrong the other, wrong both ways, and `unscored` in at least one of the two, where nothing can be said.
    """

    model: str
    protocol: str
    closed: Accuracy
    oracle: Accuracy
    gap: SystemDifference
    pairs: int
    both: int
    closed_only: int
    oracle_only: int
    neither: int
    unscored: int = 0


class LeakageSummary(Struct, frozen=True, kw_only=True):
    """Everything a leakage check found, as it is written down, printed and reported."""

    questions: int
    models: dict[str, str]
    likelihoods: list[LikelihoodSummary]
    overlaps: list[OverlapSummary]
    dates: list[DateCounts]
    date_accuracies: list[DateAccuracy]
    gaps: list[BookGap]
    canaries: list[CanaryProbe]
    near: dict[str, int]
    near_threshold: float
    near_too_short: int
    own_source: LeakageEstimate
    canaries_found: int
    documents: int
    outcomes: int = 0


def reproduced(row: OverlapRow) -> bool:
    """Whether a model gave a text back: thirteen words in a row, or three quarters of it in order."""
    return row.own is not None and (
        row.own.run >= RUN_WORDS or (row.probe == "continuation" and row.own.rouge_r >= ROUGE_RECALL)
    )


def likelihood_summaries(
    rows: Sequence[LikelihoodRow], groups: Groups, clusters: Mapping[str, str], *, seed: int = 0
) -> list[LikelihoodSummary]:
    """Likelihoods by model, kind of text and group; a group is told where it holds two questions or more."""
    table = []
    for (model, text), mine in _by(rows, lambda row: (row.model, row.text)).items():
        for by, group, chosen in _grouped(mine, groups):
            own = {row.question: row for row in chosen if not row.control}
            control = {row.question: row for row in chosen if row.control}
            table.append(_likelihood((model, text, by, group), own, control, clusters, seed))
    return table


def _likelihood(
    names: tuple[str, str, str, str],
    own: Mapping[str, LikelihoodRow],
    control: Mapping[str, LikelihoodRow],
    clusters: Mapping[str, str],
    seed: int,
) -> LikelihoodSummary:
    model, text, by, group = names
    scored = {question: row for question, row in own.items() if row.failure is None}
    checked = {question: row for question, row in control.items() if row.failure is None}
    paired = [question for question in scored if question in checked]
    loss = {question: row.loss for question, row in scored.items()}
    other = {question: row.loss for question, row in checked.items()}
    least = {question: row.lowest for question, row in scored.items()}
    least_other = {question: row.lowest for question, row in checked.items()}
    return LikelihoodSummary(
        model=model,
        text=text,
        by=by,
        group=group,
        planned=len(own),
        unscored=dict(sorted(Counter(row.failure.kind for row in own.values() if row.failure).items())),
        tokens=sum(row.tokens for row in scored.values()),
        perplexity=_exp(mean_figure(loss, clusters, seed, _UNBOUNDED)),
        lowest=mean_figure(least, clusters, seed, _UNBOUNDED),
        per_zlib=mean_figure(
            {q: -row.total / math.log(2) / (8 * row.zlib) for q, row in scored.items()}, clusters, seed
        ),
        control=next((row.control for row in checked.values()), ""),
        control_perplexity=_exp(
            mean_figure({question: other[question] for question in paired}, clusters, seed, _UNBOUNDED)
        ),
        ratio=_exp(_gain((other, loss), paired, clusters, seed, _UNBOUNDED)),
        lowest_gain=_gain((least, least_other), paired, clusters, seed, _UNBOUNDED),
    )


def overlap_summaries(
    rows: Sequence[OverlapRow], groups: Groups, clusters: Mapping[str, str], *, seed: int = 0
) -> list[OverlapSummary]:
    """Overlaps by model, probe and group; a group is told where it holds two questions or more."""
    table = []
    for (model, probe), mine in _by(rows, lambda row: (row.model, row.probe)).items():
        for by, group, chosen in _grouped(mine, groups):
            scored = [row for row in chosen if row.own is not None]
            rouge = {row.question: row.own.rouge_f for row in scored if row.own}
            edit = {row.question: row.own.edit for row in scored if row.own}
            rouge_other = {row.question: row.control.rouge_f for row in scored if row.control}
            edit_other = {row.question: row.control.edit for row in scored if row.control}
            paired = list(rouge_other)
            runs = [row.own.run for row in scored if row.own]
            again = sum(map(reproduced, scored))
            table.append(
                OverlapSummary(
                    model=model,
                    probe=probe,
                    by=by,
                    group=group,
                    planned=len(chosen),
                    unscored=dict(sorted(Counter(row.failure.kind for row in chosen if row.failure).items())),
                    rouge=mean_figure(rouge, clusters, seed),
                    rouge_control=mean_figure(rouge_other, clusters, seed),
                    rouge_gain=_gain((rouge, rouge_other), paired, clusters, seed),
                    edit=mean_figure(edit, clusters, seed),
                    edit_control=mean_figure(edit_other, clusters, seed),
                    edit_gain=_gain((edit, edit_other), paired, clusters, seed),
                    run_median=float(median(runs)) if runs else None,
                    run_longest=max(runs, default=0),
                    reproduced=again,
                    share=share_of(again, len(scored)),
                )
            )
    return table


def book_gaps(
    results: Sequence[Outcome], clusters: Mapping[str, str], *, samples: int = SAMPLES, seed: int = 0
) -> list[BookGap]:
    """Closed book against oracle, for each model and protocol that has answers under both."""
    systems = {(row.model, row.condition) for row in results}
    pairs = []
    for model, condition in sorted(systems):
        name, comma, protocol = condition.partition(", ")
        if name == "closed" and (model, f"oracle{comma}{protocol}") in systems:
            pairs.append(((model, f"oracle{comma}{protocol}"), (model, condition)))
    if not pairs:
        return []
    table = {
        (row.model, row.condition): row for row in accuracies(results, clusters=clusters, samples=samples, seed=seed)
    }
    gaps = differences(results, pairs, clusters=clusters, samples=samples, seed=seed)
    return [_gap(oracle, closed, table, gap, results) for (oracle, closed), gap in zip(pairs, gaps, strict=True)]


def _gap(
    oracle: tuple[str, str],
    closed: tuple[str, str],
    table: Mapping[tuple[str, str], Accuracy],
    gap: SystemDifference,
    results: Sequence[Outcome],
) -> BookGap:
    right = [
        {(row.question, row.sample): row.correct for row in results if (row.model, row.condition) == system}
        for system in (closed, oracle)
    ]
    counts = Counter((right[0][key], right[1][key]) for key in right[0] if key in right[1])
    return BookGap(
        model=closed[0],
        protocol=closed[1].partition(", ")[2] or "free text",
        closed=table[closed],
        oracle=table[oracle],
        gap=gap,
        pairs=counts.total(),
        both=counts[True, True],
        closed_only=counts[True, False],
        oracle_only=counts[False, True],
        neither=counts[False, False],
        unscored=sum(times for sides, times in counts.items() if None in sides),
    )


def _by(rows: Iterable[R], key: Callable[[R], tuple[str, str]]) -> dict[tuple[str, str], list[R]]:
    found: dict[tuple[str, str], list[R]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def _grouped(rows: Sequence[R], groups: Groups) -> list[tuple[str, str, list[R]]]:
    """All rows, then each group of each grouping that tells questions apart, where it holds two or more."""
    found: list[tuple[str, str, list[R]]] = [("", ALL, list(rows))]
    for by, of in groups.items():
        named = sorted({of[row.question] for row in rows if of.get(row.question)})
        if len(named) < 2:
            continue
        for group in named:
            chosen = [row for row in rows if of.get(row.question) == group]
            if len({row.question for row in chosen}) > 1:
                found.append((by, group, chosen))
    return found


_UNBOUNDED = (-math.inf, math.inf)


def mean_figure(
    values: Mapping[str, float], clusters: Mapping[str, str], seed: int, bounds: tuple[float, float] | None = None
) -> LeakageEstimate:
    """The mean over questions with its bootstrap interval; whole clusters are resampled."""
    if not values:
        return LeakageEstimate(n=0)
    labels = cluster_labels(list(values), clusters)
    interval = bootstrap_mean(list(values.values()), clusters=labels, bounds=bounds, samples=SAMPLES, seed=seed)
    return _estimate(len(values), sum(values.values()) / len(values), interval)


def _gain(
    values: tuple[Mapping[str, float], Mapping[str, float]],
    paired: Sequence[str],
    clusters: Mapping[str, str],
    seed: int,
    bounds: tuple[float, float] | None = None,
) -> LeakageEstimate:
    """The mean of the first values less the second, over the questions that have both."""
    a, b = values
    if not paired:
        return LeakageEstimate(n=0)
    labels = cluster_labels(paired, clusters)
    found = paired_difference([a[q] for q in paired], [b[q] for q in paired], clusters=labels, bounds=bounds, seed=seed)
    return _estimate(found.n, found.difference, found.interval)


def _estimate(n: int, value: float, interval: Interval) -> LeakageEstimate:
    """A figure with its interval, if so few values allow one."""
    low, high = (interval.low, interval.high) if interval.known else (None, None)
    return LeakageEstimate(n=n, value=value, low=low, high=high)


def _exp(figure: LeakageEstimate) -> LeakageEstimate:
    """A figure of losses as one of perplexities."""

    def power(value: float | None) -> float | None:
        return None if value is None else math.exp(min(value, _MAX_LOSS))

    return LeakageEstimate(n=figure.n, value=power(figure.value), low=power(figure.low), high=power(figure.high))


def share_of(count: int, n: int) -> LeakageEstimate:
    """A share with Wilson's interval."""
    if not n:
        return LeakageEstimate(n=0)
    interval = wilson(count, n)
    return LeakageEstimate(n=n, value=count / n, low=interval.low, high=interval.high)
