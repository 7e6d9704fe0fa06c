"""How far an audit's judge can be trusted, by people's labels of a sample of its pairs.

People are set against each other first: no judge can be held to more than they agree on. The reference is what was
settled between them where it was, else the label that more than half of them gave; with two annotators that is the one
both gave. A pair on which they are split has no reference, and is counted beside every figure that leaves it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct, field

from hoofbeat.audit.findings.label_scores import Borders, F1Scores, borders, f1_scores, label_table
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.validation_population import CorrectedRate, Population, corrected_rates, population
from hoofbeat.findings.agreement import (
    Agreement,
    Annotators,
    Kappa,
    agreement,
    agreement_with_intervals,
    weighted_kappa,
)
from hoofbeat.findings.outcomes import SENSITIVITY_THRESHOLD

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
    label.
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
    pairs: Sequence[tuple[str | None, str]], domain: RelationLabels, *, without: int = 0, seed: int = 0
) -> JudgeScores:
    """A labelling against a reference, (label or None, reference) each; `without` pairs have no reference."""
    counts = label_table(pairs, domain.order)
    found = agreement(pairs, domain.order, seed=seed)
    right, n = sum(given == known for given, known in pairs), len(pairs) + without
    spread = (right / n, (right + without) / n) if n and without > SENSITIVITY_THRESHOLD * n else None
    return JudgeScores(
        agreement=found,
        linear=weighted_kappa(pairs, domain.order, "linear", seed=seed),
        quadratic=weighted_kappa(pairs, domain.order, "quadratic", seed=seed),
        f1=f1_scores(counts, domain.order, seed=seed),
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
    split = Counter(row.judge for row, said in known if said.label is None)
    ratings = _ratings(rows)
    settled = any(row.adjudicated for row in rows)
    agreed = [(row.judge, label) for row in rows if (label := _settled("", list(row.labels.values()))[0]) is not None]
    return Validation(
        pairs=len(rows),
        annotators=tuple(sorted(ratings)),
        references=dict(sorted(Counter(said.how for _, said in known).items())),
        people=agreement_with_intervals(ratings, domain.order, ordered=True, seed=seed) if len(ratings) > 1 else None,
        by_annotator={
            name: agreement(
                [(row.judge, row.labels[name]) for row in rows if name in row.labels], domain.order, seed=seed
            )
            for name in sorted(ratings)
        },
        judge=judge_scores(pairs, domain, without=len(rows) - len(pairs), seed=seed),
        agreed=agreement(agreed, domain.order, seed=seed) if settled else None,
        by_basis=_by_basis(known, domain, seed),
        significance=_significance(known, levels, seed),
        population=population(pairs, counts, domain.order, seed=seed),
        corrected=corrected_rates(pairs, counts, domain, without=split),
        unlabelled=unlabelled,
        seed=seed,
    )


def _ratings(rows: Sequence[RatedPair]) -> dict[str, dict[str, str]]:
    ratings: dict[str, dict[str, str]] = {}
    for row in rows:
        for name, label in row.labels.items():
            ratings.setdefault(name, {})[row.item] = label
    return ratings


def _by_basis(known: Sequence[tuple[RatedPair, Reference]], domain: RelationLabels, seed: int) -> dict[str, Agreement]:
    groups: dict[str, list[tuple[str | None, str]]] = {}
    for row, said in known:
        if said.label is not None:
            groups.setdefault(row.basis or "judged", []).append((row.judge, said.label))
    return {name: agreement(groups[name], domain.order, seed=seed) for name in sorted(groups)}


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
    both: list[tuple[str | None, str]] = [
        (row.judge_significance, said.significance)
        for row, said in known
        if row.judge_significance is not None and said.significance is not None
    ]
    people = agreement_with_intervals(ratings, levels, ordered=True, seed=seed) if len(ratings) > 1 else None
    rated = {
        name: [
            (row.judge_significance, row.significances[name])
            for row, _ in known
            if row.judge_significance is not None and name in row.significances
        ]
        for name in sorted(ratings)
    }
    return SignificanceScores(
        annotators=people,
        by_annotator={name: agreement(given, levels, seed=seed) for name, given in rated.items()},
        agreement=agreement(both, levels, seed=seed),
        linear=weighted_kappa(both, levels, "linear", seed=seed),
        quadratic=weighted_kappa(both, levels, "quadratic", seed=seed),
    )
