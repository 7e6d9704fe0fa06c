"""Two ways to judge the same pairs against each other: in one structured call, or the label alone and the rest later.

How often they agree, which labels become which, whether significance survives, what each costs, which agrees better
with people, and how often the order of the two answers changes a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_figures import JudgeScores, judge_scores, stratified_rate
from hoofbeat.audit.sample_records import PROTOCOLS, PairJudgedTwice, PairLabel
from hoofbeat.findings.agreement import Agreement, Kappa, agreement, weighted_kappa
from hoofbeat.findings.intervals import (
    Difference,
    Interval,
    cluster_labels,
    mcnemar_exact,
    paired_difference,
    share_interval,
)
from hoofbeat.store import Cost
from hoofbeat.text import fuzzy_match

EstimateWithInterval = tuple[float | None, Interval | None]


class ProtocolShift(Struct, frozen=True, kw_only=True):
    """One label by the structured call: `n` pairs have it, `became` counts what the label alone calls them."""

    label: str
    n: int
    kept: int
    kept_share: float | None
    became: dict[str, int]


class TopicAgreement(Struct, frozen=True, kw_only=True):
    """Topics of the `n` pairs to which both ways give the same label and a topic.

    `same` are alike but for case, order and punctuation of words; `similarity` is the mean token-sort ratio, 0 to 1.
    """

    n: int
    same: int
    similarity: float | None


class ProtocolsAgainstPeople(Struct, frozen=True, kw_only=True):
    """Both ways against people on the same `n` pairs; a pair that got no label counts as not right.

    `difference` is structured less label-only in agreement, resampled by question; `p` is McNemar's exact one, from the
    pairs that only one way gets right.
    """

    n: int
    structured: JudgeScores
    label_only: JudgeScores
    difference: Difference
    only_structured: int
    only_label_only: int
    p: float


class ProtocolFlips(Struct, frozen=True, kw_only=True):
    """How often a label changes when the two answers are exchanged: `flips` of `n` pairs that got both labels.

    `estimate` is the rate over all pairs that a judge looked at, of which the sample is a stratified one. `by_label`
    has (pairs, flips) by the label in the usual order, `moves` how often which label became which.
    """

    protocol: str
    n: int
    flips: int
    rate: float | None
    interval: Interval
    unscored: int
    estimate: float | None
    estimate_interval: Interval | None
    by_label: dict[str, tuple[int, int]]
    moves: dict[str, int]


class ProtocolAgreement(Struct, frozen=True, kw_only=True):
    """Everything the comparison says.

    `agreement` has the structured call's label as its reference; `estimate` is the agreement over all pairs that a
    judge looked at. `with_audit` sets the structured labels of now against those of the audit. `levels` counts the
    levels of significance that each way gives, `significance` sets them against each other where both give one.
    """

    pairs: int
    unscored: dict[str, int]
    agreement: Agreement
    linear: Kappa
    quadratic: Kappa
    estimate: float | None
    estimate_interval: Interval | None
    shifts: tuple[ProtocolShift, ...]
    with_audit: Agreement
    levels: dict[str, dict[str, int]]
    significance: Agreement
    significance_linear: Kappa
    without_details: int
    topics: TopicAgreement
    people: ProtocolsAgainstPeople | None
    flips: tuple[ProtocolFlips, ...]
    costs: dict[str, Cost]
    seed: int


def compare_protocols(
    rows: Sequence[PairJudgedTwice],
    counts: Mapping[str, int],
    domain: RelationLabels,
    levels: Sequence[str],
    costs: Mapping[str, Cost],
    *,
    seed: int = 0,
) -> ProtocolAgreement:
    """All figures of pairs judged both ways; `counts` are all pairs of the audit a judge looked at, by its label."""
    judged = [row for row in rows if _label(row.structured) and _label(row.label_only)]
    both = [(row.label_only.label, row.structured.label) for row in judged]
    together = _questions(judged)
    found = agreement(both, domain.order, clusters=together, seed=seed)
    rated = [row for row in rows if row.label_only.significance and row.structured.significance]
    levelled = [(row.label_only.significance, row.structured.significance or "") for row in rated]
    agreed = _over_all(rows, counts, lambda row: _same(row.structured, row.label_only))
    return ProtocolAgreement(
        pairs=len(rows),
        unscored={
            "structured": sum(not _label(row.structured) for row in rows),
            "label-only": sum(not _label(row.label_only) for row in rows),
        },
        agreement=found,
        linear=weighted_kappa(both, domain.order, "linear", clusters=together, seed=seed),
        quadratic=weighted_kappa(both, domain.order, "quadratic", clusters=together, seed=seed),
        estimate=agreed[0],
        estimate_interval=agreed[1],
        shifts=_shifts(found),
        with_audit=agreement(
            [(_label(row.structured), row.pair.label) for row in rows],
            domain.order,
            clusters=_questions(rows),
            seed=seed,
        ),
        levels={
            name: {level: sum(said.significance == level for said in given) for level in levels}
            for name, given in (
                ("structured", [row.structured for row in rows]),
                ("label-only", [row.label_only for row in rows]),
            )
        },
        significance=agreement(levelled, levels, clusters=_questions(rated), seed=seed),
        significance_linear=weighted_kappa(levelled, levels, "linear", clusters=_questions(rated), seed=seed),
        without_details=sum(row.label_only.details is not None for row in rows),
        topics=_topics(rows),
        people=_people(rows, domain, seed),
        flips=tuple(flips for name in PROTOCOLS if (flips := _flips(name, rows, counts, domain)) is not None),
        costs=dict(costs),
        seed=seed,
    )


def _questions(rows: Sequence[PairJudgedTwice]) -> list[str] | None:
    """What the pairs are resampled with: their questions, where some share one."""
    return cluster_labels([row.pair.question for row in rows], None)


def _label(said: PairLabel) -> str | None:
    return None if said.failure else said.label or None


def _same(one: PairLabel, other: PairLabel) -> float | None:
    if _label(one) is None or _label(other) is None:
        return None
    return float(one.label == other.label)


def _shifts(found: Agreement) -> tuple[ProtocolShift, ...]:
    return tuple(
        ProtocolShift(
            label=label,
            n=sum(line),
            kept=line[place],
            kept_share=line[place] / sum(line) if sum(line) else None,
            became={found.labels[other]: count for other, count in enumerate(line) if count and other != place},
        )
        for place, (label, line) in enumerate(zip(found.labels, found.confusion, strict=True))
        if sum(line)
    )


def _topics(rows: Sequence[PairJudgedTwice]) -> TopicAgreement:
    pairs = [
        (row.structured.topic, row.label_only.topic)
        for row in rows
        if _same(row.structured, row.label_only) and row.structured.topic and row.label_only.topic
    ]
    alike = [fuzzy_match(one or "", other or "") for one, other in pairs]
    return TopicAgreement(
        n=len(alike),
        same=sum(value > 1 - 1e-9 for value in alike),
        similarity=sum(alike) / len(alike) if alike else None,
    )


def _people(rows: Sequence[PairJudgedTwice], domain: RelationLabels, seed: int) -> ProtocolsAgainstPeople | None:
    known = [row for row in rows if row.reference]
    if not known:
        return None
    asked = [row.pair.question for row in known]
    ways = {
        "structured": [(_label(row.structured), row.reference) for row in known],
        "label-only": [(_label(row.label_only), row.reference) for row in known],
    }
    right = {name: [float(given == truth) for given, truth in pairs] for name, pairs in ways.items()}
    beside = list(zip(right["structured"], right["label-only"], strict=True))
    only = (sum(a > b for a, b in beside), sum(b > a for a, b in beside))
    return ProtocolsAgainstPeople(
        n=len(known),
        structured=judge_scores(ways["structured"], domain, questions=asked, seed=seed),
        label_only=judge_scores(ways["label-only"], domain, questions=asked, seed=seed),
        difference=paired_difference(right["structured"], right["label-only"], clusters=asked, seed=seed),
        only_structured=only[0],
        only_label_only=only[1],
        p=mcnemar_exact(*only),
    )


def _flips(
    name: str, rows: Sequence[PairJudgedTwice], counts: Mapping[str, int], domain: RelationLabels
) -> ProtocolFlips | None:
    def sides(row: PairJudgedTwice) -> tuple[PairLabel, PairLabel | None]:
        if name == "structured":
            return row.structured, row.structured_exchanged
        return row.label_only, row.label_only_exchanged

    probed = [(row, usual, other) for row in rows for usual, other in [sides(row)] if other is not None]
    if not probed:
        return None
    changed = {
        row.pair.key: None if (same := _same(usual, other)) is None else 1 - same for row, usual, other in probed
    }
    kept = [each for each in probed if changed[each[0].pair.key] is not None]
    scored = [(usual.label, other.label) for _, usual, other in kept]
    flips = sum(before != after for before, after in scored)
    over_all = _over_all([row for row, _, _ in probed], counts, lambda row: changed[row.pair.key])
    moves = Counter(f"{before} → {after}" for before, after in scored if before != after)
    return ProtocolFlips(
        protocol=name,
        n=len(scored),
        flips=flips,
        rate=flips / len(scored) if scored else None,
        interval=share_interval([one != two for one, two in scored], [row.pair.question for row, _, _ in kept]),
        unscored=len(probed) - len(scored),
        estimate=over_all[0],
        estimate_interval=over_all[1],
        by_label={
            label: (sum(b == label for b, _ in scored), sum(b == label != a for b, a in scored))
            for label in domain.order
            if any(before == label for before, _ in scored)
        },
        moves=dict(sorted(moves.items(), key=lambda each: (-each[1], each[0]))),
    )


def _over_all(
    rows: Sequence[PairJudgedTwice], counts: Mapping[str, int], value: Callable[[PairJudgedTwice], float | None]
) -> EstimateWithInterval:
    """A share of the sample as one of all pairs that a judge looked at; none where a label is not in the sample."""
    strata: dict[str, tuple[int, list[tuple[float, float]]]] = {
        name: (size, []) for name, size in counts.items() if size
    }
    for row in rows:
        share = value(row)
        if share is not None and row.pair.label in strata:
            strata[row.pair.label][1].append((share, 1.0))
    if not strata or any(not given for _, given in strata.values()):
        return None, None
    return stratified_rate(strata)
