"""How far an audit's judge can be trusted, by people's labels of a sample of its pairs.

People are set against each other first: no judge can be held to more than they agree on. The reference is what was
settled between them where it was, else the label that more than half of them gave; with two annotators that is the one
both gave. A pair on which they are split has no reference, and is counted beside every figure that leaves it out.

A stratified sample says something of all pairs: agreement, κ and F1 of the population, and rates corrected by people.
The judge's labels are the strata, and each label gives a fixed number of pairs, whatever its share. A labelled pair
represents all pairs of its stratum divided by those labelled there (inverse probability).

Within a stratum the judge says one thing, so the prediction-powered mean is that of people's labels there, and over
strata R = Σ N_h ȳ_h / Σ N_h x̄_h with y whether people say the rate's label and x whether they say that it counts. The
variance is that of the linearised ratio with the share drawn taken into account,
Σ N_h² (1 − n_h/N_h) s²_h / n_h over (Σ N_h x̄_h)², with s² of d = y − R x. Where everything in a stratum says the same,
one pair of each other kind is added to s²: forty of forty does not prove all of a million.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.findings.label_scores import Borders, F1Scores, borders, f1_scores, label_replicates, label_table
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.silence_finds import SilenceFinds
from hoofbeat.findings.agreement import (
    Agreement,
    Annotators,
    Kappa,
    Weights,
    agreement,
    agreement_with_intervals,
    chance_corrected,
    weighted_kappa,
)
from hoofbeat.findings.intervals import LEVEL, SAMPLES, Interval, cluster_labels, few_of
from hoofbeat.findings.outcomes import SENSITIVITY_THRESHOLD

Kind = Callable[[str], bool]
Strata = Mapping[str, tuple[int, Sequence[tuple[float, float]]]]
"""By stratum: how many pairs it has in all, and (y, x) of each that is labelled."""


class StratumAgreement(Struct, frozen=True, kw_only=True):
    """One label of the judge: `pairs` in the audit, `labelled` in the sample with a reference, `right` of those.

    `weight` is how many pairs each labelled one represents; None where none is labelled.
    """

    label: str
    pairs: int
    labelled: int
    right: int
    weight: float | None


class Population(Struct, frozen=True, kw_only=True):
    """Estimates for all `pairs` with a label in the audit.

    Everything but `strata` is None where a label has pairs and none of them is labelled, or one of several, which tells
    nothing of how they vary; `why` says so. The interval of
    the agreement is of the linearised estimate, those of κ and F1 are from resampling within strata, in which strata
    that are labelled whole stay as they are.
    """

    pairs: int
    strata: tuple[StratumAgreement, ...]
    agreement: float | None = None
    agreement_interval: Interval | None = None
    kappa: float | None = None
    kappa_interval: Interval | None = None
    f1: F1Scores | None = None
    why: str = ""


class CorrectedRate(Struct, frozen=True, kw_only=True):
    """A rate of the audit as the judge has it, and corrected by people's labels of the sample.

    `scope` is `all`, where people also say which pairs are absent, or `answered`, where absent is what the audit found
    absent. `estimate` is None where the sample does not allow it or its interval, and `why` says why.

    `labelled` pairs have a reference. People are split on `without` more, and the estimate leaves those out;
    `sensitivity` is the estimate with the rate's label on none of them and on all of them.
    """

    name: str
    scope: str
    judge: float | None
    estimate: float | None
    interval: Interval | None
    labelled: int
    why: str = ""
    without: int = 0
    sensitivity: tuple[float, float] | None = None


def population(
    pairs: Iterable[tuple[str, str]],
    counts: Mapping[str, int],
    labels: Sequence[str],
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> Population:
    """Estimates from (judge's label, reference label) of a sample; `counts` are all pairs by the judge's label."""
    rows = list(pairs)
    table = label_table(rows, labels)[:, : len(labels)]
    drawn = table.sum(axis=0)
    sizes = np.array([counts.get(label, 0) for label in labels], np.float64)
    strata = tuple(
        StratumAgreement(
            label=label,
            pairs=int(sizes[place]),
            labelled=int(drawn[place]),
            right=int(table[place, place]),
            weight=float(sizes[place] / drawn[place]) if drawn[place] else None,
        )
        for place, label in enumerate(labels)
    )
    found = Population(pairs=int(sizes.sum()), strata=strata)
    why = _missing({row.label: (row.pairs, row.labelled) for row in strata})
    if why or not sizes.sum():
        return replace(found, why=why or "no pair of the audit has a label")
    by_stratum = {
        label: (counts.get(label, 0), [(float(g == r), 1.0) for g, r in rows if g == label]) for label in labels
    }
    agreed = stratified_rate(by_stratum)
    weights = sizes / np.where(drawn > 0, drawn, 1)
    again = _resampled(table, sizes, samples, seed) * weights
    weighted = table * weights
    values = _kappas(again)
    kappa = float(_kappas(weighted[None])[0])
    none = np.zeros((len(labels), 1))
    padded = np.concatenate([again, np.zeros((samples, len(labels), 1))], axis=2)
    return replace(
        found,
        agreement=agreed[0],
        agreement_interval=agreed[1],
        kappa=None if math.isnan(kappa) else kappa,
        kappa_interval=None if math.isnan(kappa) else _kappa_interval(kappa, values, weighted, agreed),
        f1=f1_scores(np.concatenate([weighted, none], axis=1), labels, replicates=padded, units=len(rows)),
    )


def _kappa_interval(
    kappa: float,
    replicates: NDArray[np.float64],
    table: NDArray[np.float64],
    agreed: tuple[float | None, Interval | None],
) -> Interval | None:
    """κ's interval from resampling within strata, or where that shows no spread, the one the agreement's implies."""
    share, interval = agreed
    if share is None or interval is None:
        return None
    chance = 1 - float(table.sum(axis=0) @ table.sum(axis=1)) / float(table.sum()) ** 2
    return chance_corrected(kappa, replicates, share, interval, chance, "bootstrap within strata")


def corrected_rates(
    pairs: Iterable[tuple[str, str]],
    counts: Mapping[str, int],
    domain: RelationLabels,
    *,
    without: Mapping[str, int] | None = None,
) -> tuple[CorrectedRate, ...]:
    """R_abs, R_div and R_con corrected by (judge's label, reference label) of the sample.

    `without` counts by the judge's label the sampled pairs that have no reference.
    """
    rows, split = list(pairs), without or {}
    answered = tuple(label for label in domain.order if label != domain.absent)
    everything = sum(counts.values())
    judged = sum(counts.get(label, 0) for label in answered)
    diverging = sum(counts.get(label, 0) for label in domain.diverging)

    def rate(name: str, scope: str, by_judge: tuple[int, int], kinds: tuple[Kind, Kind]) -> CorrectedRate:
        strata = domain.order if scope == "all" else answered
        mine = {
            label: (counts.get(label, 0), [(float(kinds[0](r)), float(kinds[1](r))) for g, r in rows if g == label])
            for label in strata
        }
        why = _missing({label: (size, len(given)) for label, (size, given) in mine.items()})
        found = (None, None) if why else stratified_rate(mine)
        if not why and found[0] is None:
            why = "the annotators found no pair in which both sources answer"
        return CorrectedRate(
            name=name,
            scope=scope,
            judge=by_judge[0] / by_judge[1] if by_judge[1] else None,
            estimate=found[0],
            interval=found[1],
            labelled=sum(len(given) for _, given in mine.values()),
            why=why,
            without=sum(split.get(label, 0) for label in strata),
            sensitivity=_sensitivity(mine, split),
        )

    def diverges(label: str) -> bool:
        return label in domain.diverging

    def agrees(label: str) -> bool:
        return label == domain.consistent

    def present(label: str) -> bool:
        return label != domain.absent

    return (
        rate(
            "R_abs", "all", (counts.get(domain.absent, 0), everything), (lambda r: r == domain.absent, lambda _: True)
        ),
        rate("R_div", "all", (diverging, judged), (diverges, present)),
        rate("R_con", "all", (counts.get(domain.consistent, 0), judged), (agrees, present)),
        rate("R_div", "answered", (diverging, judged), (diverges, present)),
        rate("R_con", "answered", (counts.get(domain.consistent, 0), judged), (agrees, present)),
    )


def stratified_rate(strata: Strata) -> tuple[float | None, Interval | None]:
    """The ratio of the totals of y and x over strata, with its interval; y is at most x, and both are 0 or 1.

    Every stratum that has pairs must have labelled ones. The interval is None where a stratum of several pairs has only
    one labelled, and where all pairs are labelled, so that nothing is estimated.
    """
    used = {name: (size, np.array(given, np.float64)) for name, (size, given) in strata.items() if size}
    total_y = math.fsum(size * float(given[:, 0].mean()) for size, given in used.values())
    total_x = math.fsum(size * float(given[:, 1].mean()) for size, given in used.values())
    if not total_x:
        return None, None
    ratio = total_y / total_x
    kinds = sorted({(y, x) for _, given in used.values() for y, x in given.tolist()} | {(0.0, 1.0), (1.0, 1.0)})
    squared = 0.0
    for size, given in used.values():
        if len(given) >= size:
            continue
        if len(given) < 2:
            return ratio, None
        moved = given[:, 0] - ratio * given[:, 1]
        if np.ptp(moved) < 1e-12:
            same = tuple(given[0].tolist())
            moved = np.append(moved, [y - ratio * x for y, x in kinds if (y, x) != same])
        squared += size**2 * (1 - len(given) / size) * float(moved.var(ddof=1)) / len(given)
    if not squared:
        return ratio, None
    half = NormalDist().inv_cdf(0.5 + LEVEL / 2) * math.sqrt(squared) / total_x
    return ratio, Interval(
        low=max(0.0, ratio - half),
        high=min(1.0, ratio + half),
        level=LEVEL,
        method="linearised over strata",
        few=few_of(sum(len(given) for _, given in used.values())),
    )


def _kappas(tables: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of weighted counts; not a number where chance agreement is complete."""
    totals = tables.sum(axis=(1, 2))
    seen = np.trace(tables, axis1=1, axis2=2) / totals
    chance = (tables.sum(axis=1) * tables.sum(axis=2)).sum(axis=1) / totals**2
    return np.where(chance < 1 - 1e-12, (seen - chance) / np.where(chance < 1 - 1e-12, 1 - chance, 1), np.nan)


def _resampled(table: NDArray[np.float64], sizes: NDArray[np.float64], samples: int, seed: int) -> NDArray[np.float64]:
    """Samples drawn again within every column (a stratum); one that is labelled whole stays as it is."""
    rng = np.random.default_rng(seed)
    again = np.repeat(table[None], samples, axis=0)
    for place in range(table.shape[1]):
        drawn = int(table[:, place].sum())
        if 0 < drawn < sizes[place]:
            again[:, :, place] = rng.multinomial(drawn, table[:, place] / drawn, size=samples)
    return again


def _sensitivity(strata: Strata, split: Mapping[str, int]) -> tuple[float, float] | None:
    """The ratio with y of none and with y of all pairs that have no reference, x of all of them.

    No other x makes it lower or higher. None where there are no such pairs, or some stratum has no pair at all.
    """
    if not any(split.get(name, 0) for name in strata):
        return None
    bounds = []
    for y in (0.0, 1.0):
        filled = {name: (size, [*given, *[(y, 1.0)] * split.get(name, 0)]) for name, (size, given) in strata.items()}
        if any(size and not given for size, given in filled.values()):
            return None
        bounds.append(stratified_rate(filled)[0])
    low, high = bounds
    return None if low is None or high is None else (low, high)


def _missing(strata: Mapping[str, tuple[int, int]]) -> str:
    """Which strata allow no estimate, or none with an interval."""
    none = [label for label, (pairs, labelled) in strata.items() if pairs and not labelled]
    if none:
        return f"annotators labelled none of the pairs that the judge calls {' or '.join(none)}"
    one = [label for label, (pairs, labelled) in strata.items() if pairs > 1 and labelled == 1]
    return f"annotators labelled only one of the pairs that the judge calls {' or '.join(one)}" if one else ""


Rated = tuple[str, tuple[str | None, str]]
"""A pair's question, and its label with the reference label."""

ReferenceOrigin = Literal["adjudicated", "unanimous", "majority", "single", "split", "none"]


class RatedPair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair of the sample: what the judge said, and what each annotator and the adjudication said."""

    item: str
    question: str
    a: str
    b: str
    judge: str
    judge_significance: str | None = None
    basis: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    significances: dict[str, str] = field(default_factory=dict)
    adjudicated: str = ""
    adjudicated_significance: str | None = None


class Reference(Struct, frozen=True, kw_only=True):
    """What people say of a pair together, and how it came about; `label` is None where they are split or silent."""

    label: str | None
    significance: str | None
    how: ReferenceOrigin


class JudgeScores(Struct, frozen=True, kw_only=True):
    """A judge against a reference: agreement with κ and confusion, κ weighted by distance, F1, and where errors lie.

    `sensitivity` is the agreement with every pair that has no reference wrong and right, where those exceed 1%.
    """

    agreement: Agreement
    linear: Kappa
    quadratic: Kappa
    f1: F1Scores
    borders: Borders
    sensitivity: tuple[float, float] | None = None


class SignificanceScores(Struct, frozen=True, kw_only=True):
    """Significance: people among each other (None for one), and the judge against each and against their majority.

    Only pairs count that both sides rate.
    """

    annotators: Annotators | None
    by_annotator: dict[str, Agreement]
    agreement: Agreement
    linear: Kappa
    quadratic: Kappa


class Validation(Struct, frozen=True, kw_only=True):
    """Everything a validation says.

    `pairs` were labelled by anybody; `references` counts how their references came about. `people` is None with one
    annotator. `by_annotator` is the judge against each of them, `judge` against the reference, `agreed` against what
    people agreed on without adjudication (None where nothing was adjudicated), `by_basis` against the reference by how
    the label came about. `population` and `corrected` speak of all pairs of the audit, of which `unlabelled` have no
    label. `silence` is what people found in silences, where they looked.
    """

    pairs: int
    annotators: tuple[str, ...]
    references: dict[str, int]
    people: Annotators | None
    by_annotator: dict[str, Agreement]
    judge: JudgeScores
    agreed: Agreement | None
    by_basis: dict[str, Agreement]
    significance: SignificanceScores | None
    population: Population
    corrected: tuple[CorrectedRate, ...]
    unlabelled: int
    seed: int
    silence: SilenceFinds | None = None


def reference(rated: RatedPair) -> Reference:
    """What people say of a pair together."""
    label, how = _settled(rated.adjudicated, list(rated.labels.values()))
    level = rated.adjudicated_significance
    if level is None:
        alike = [who for who, said in rated.labels.items() if said == label and who in rated.significances]
        level = _settled("", [rated.significances[who] for who in alike])[0]
    return Reference(label=label, significance=level if label is not None else None, how=how)


def _settled(adjudicated: str, given: Sequence[str]) -> tuple[str | None, ReferenceOrigin]:
    if adjudicated:
        return adjudicated, "adjudicated"
    if not given:
        return None, "none"
    (label, votes), *_ = Counter(given).most_common()
    if votes == len(given):
        return label, "single" if len(given) == 1 else "unanimous"
    return (label, "majority") if votes * 2 > len(given) else (None, "split")


def judge_scores(
    pairs: Sequence[tuple[str | None, str]],
    domain: RelationLabels,
    *,
    questions: Sequence[str] | None = None,
    without: int = 0,
    seed: int = 0,
) -> JudgeScores:
    """A labelling against a reference, (label or None, reference) each; `without` pairs have no reference.

    `questions` names each pair's: pairs of a question are resampled together.
    """
    counts = label_table(pairs, domain.order)
    together = cluster_labels(questions, None) if questions else None
    again = label_replicates(pairs, domain.order, together, seed=seed) if together else None
    found = agreement(pairs, domain.order, clusters=together, seed=seed)
    right, n = sum(given == known for given, known in pairs), len(pairs) + without
    spread = (right / n, (right + without) / n) if n and without > SENSITIVITY_THRESHOLD * n else None
    return JudgeScores(
        agreement=found,
        linear=weighted_kappa(pairs, domain.order, "linear", clusters=together, seed=seed),
        quadratic=weighted_kappa(pairs, domain.order, "quadratic", clusters=together, seed=seed),
        f1=f1_scores(counts, domain.order, replicates=again, units=len(set(together)) if together else None, seed=seed),
        borders=borders(counts, domain.order, domain.diverging),
        sensitivity=spread,
    )


def validation(
    sample: Sequence[RatedPair],
    counts: Mapping[str, int],
    domain: RelationLabels,
    levels: Sequence[str] = (),
    *,
    unlabelled: int = 0,
    seed: int = 0,
) -> Validation:
    """All figures of a labelled sample; `counts` are all pairs of the audit by the judge's label."""
    rows = sorted(
        (row for row in sample if row.labels or row.adjudicated), key=lambda row: (row.question, row.a, row.b)
    )
    known = [(row, reference(row)) for row in rows]
    pairs = [(row.judge, said.label) for row, said in known if said.label is not None]
    asked = [row.question for row, said in known if said.label is not None]
    split = Counter(row.judge for row, said in known if said.label is None)
    ratings = _ratings(rows)
    settled = any(row.adjudicated for row in rows)
    agreed = [
        (row.question, (row.judge, label))
        for row in rows
        if (label := _settled("", list(row.labels.values()))[0]) is not None
    ]
    questions = {row.item: row.question for row in rows}
    return Validation(
        pairs=len(rows),
        annotators=tuple(sorted(ratings)),
        references=dict(sorted(Counter(said.how for _, said in known).items())),
        people=agreement_with_intervals(ratings, domain.order, ordered=True, clusters=questions, seed=seed)
        if len(ratings) > 1
        else None,
        by_annotator={
            name: _agreement(
                [(row.question, (row.judge, row.labels[name])) for row in rows if name in row.labels],
                domain.order,
                seed,
            )
            for name in sorted(ratings)
        },
        judge=judge_scores(pairs, domain, questions=asked, without=len(rows) - len(pairs), seed=seed),
        agreed=_agreement(agreed, domain.order, seed) if settled else None,
        by_basis=_by_basis(known, domain, seed),
        significance=_significance(known, levels, seed),
        population=population(pairs, counts, domain.order, seed=seed),
        corrected=corrected_rates(pairs, counts, domain, without=split),
        unlabelled=unlabelled,
        seed=seed,
    )


def _agreement(rows: Sequence[Rated], labels: Sequence[str], seed: int) -> Agreement:
    """Agreement over (question, (label, reference label)); pairs of a question are resampled together."""
    return agreement([pair for _, pair in rows], labels, clusters=cluster_labels([q for q, _ in rows], None), seed=seed)


def _weighted(rows: Sequence[Rated], labels: Sequence[str], weights: Weights, seed: int) -> Kappa:
    together = cluster_labels([question for question, _ in rows], None)
    return weighted_kappa([pair for _, pair in rows], labels, weights, clusters=together, seed=seed)


def _ratings(rows: Sequence[RatedPair]) -> dict[str, dict[str, str]]:
    ratings: dict[str, dict[str, str]] = {}
    for row in rows:
        for name, label in row.labels.items():
            ratings.setdefault(name, {})[row.item] = label
    return ratings


def _by_basis(known: Sequence[tuple[RatedPair, Reference]], domain: RelationLabels, seed: int) -> dict[str, Agreement]:
    groups: dict[str, list[Rated]] = {}
    for row, said in known:
        if said.label is not None:
            groups.setdefault(row.basis or "judged", []).append((row.question, (row.judge, said.label)))
    return {name: _agreement(groups[name], domain.order, seed) for name in sorted(groups)}


def _significance(
    known: Sequence[tuple[RatedPair, Reference]], levels: Sequence[str], seed: int
) -> SignificanceScores | None:
    """Over pairs that people and judge both give a significance; None where people rated nothing."""
    ratings: dict[str, dict[str, str]] = {}
    for row, _ in known:
        for name, level in row.significances.items():
            ratings.setdefault(name, {})[row.item] = level
    if not ratings or not levels:
        return None
    both: list[Rated] = [
        (row.question, (row.judge_significance, said.significance))
        for row, said in known
        if row.judge_significance is not None and said.significance is not None
    ]
    questions = {row.item: row.question for row, _ in known}
    people = (
        agreement_with_intervals(ratings, levels, ordered=True, clusters=questions, seed=seed)
        if len(ratings) > 1
        else None
    )
    rated: dict[str, list[Rated]] = {
        name: [
            (row.question, (row.judge_significance, row.significances[name]))
            for row, _ in known
            if row.judge_significance is not None and name in row.significances
        ]
        for name in sorted(ratings)
    }
    return SignificanceScores(
        annotators=people,
        by_annotator={name: _agreement(given, levels, seed) for name, given in rated.items()},
        agreement=_agreement(both, levels, seed),
        linear=_weighted(both, levels, "linear", seed),
        quadratic=_weighted(both, levels, "quadratic", seed),
    )
