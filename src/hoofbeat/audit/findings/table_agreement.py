"""Two labellings of the same pairs: economy against full judging, one judge against another, an order and its swap.

Pairs of one question are not independent of each other, so intervals that resample take whole questions; Wilson's
interval, which takes every pair for itself, stands beside them because it is what a share is usually given with.

A trial compares a judge with pairs whose relation is known: what it got right, beside what guessing would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import polars
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.findings.label_scores import LabelScore, f1_scores, label_replicates, label_table
from hoofbeat.audit.findings.pair_arrays import AuditPairs, Frame, lazy, pairs_of
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.audit.sample_records import TrialInjection, TrialPair, TrialVerdict
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.agreement import Agreement, agreement, chance_corrected
from hoofbeat.findings.injection_figures import InjectedVerdict, InjectionFigures, injection_figures
from hoofbeat.findings.intervals import (
    CLUSTERED,
    SAMPLES,
    Interval,
    bootstrap_mean,
    cluster_labels,
    clustered_wilson,
    mean_interval,
    resampled_sums,
    share_interval,
    wilson,
)


class JoinedPairs(Struct, frozen=True, kw_only=True):
    """Two tables with codes of the same names. `rows` are the places of the shared pairs in the first and the second.

    Shared pairs come in the order of question and sources.
    """

    before: AuditPairs
    after: AuditPairs
    rows: tuple[NDArray[np.int64], NDArray[np.int64]]

    @property
    def labels(self) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """The labels of the shared pairs in both tables."""
        return self.before.label[self.rows[0]], self.after.label[self.rows[1]]

    @property
    def question(self) -> NDArray[np.int32]:
        """The questions of the shared pairs."""
        return self.before.question[self.rows[0]]


def join(before: Frame | AuditPairs, after: Frame | AuditPairs, domain: RelationLabels = FIVE_RELATIONS) -> JoinedPairs:
    """Lay two tables over each other; a pair that stands twice in one of them is refused."""
    first, second = pairs_of(before, domain), pairs_of(after, domain)
    if first.domain != second.domain:
        raise UsageError("the two tables have different labels", fix="give two tables of one domain")
    questions = sorted({*first.questions, *second.questions})
    sources = sorted({*first.sources, *second.sources})
    first, second = _recoded(first, questions, sources), _recoded(second, questions, sources)
    for each in (first, second):
        each.check_once()
    _, one, two = np.intersect1d(first.keys, second.keys, assume_unique=True, return_indices=True)
    return JoinedPairs(before=first, after=second, rows=(one, two))


def _recoded(pairs: AuditPairs, questions: Sequence[str], sources: Sequence[str]) -> AuditPairs:
    """The same pairs with codes of these names, which must contain all of theirs, sorted."""
    asked, told = (
        np.searchsorted(np.array(all_names, object), np.array(names, object)).astype(np.int32)
        for all_names, names in ((questions, pairs.questions), (sources, pairs.sources))
    )
    return replace(
        pairs,
        questions=tuple(questions),
        sources=tuple(sources),
        question=asked[pairs.question],
        a=told[pairs.a],
        b=told[pairs.b],
    )


class TableAgreement(Struct, frozen=True, kw_only=True):
    """How far two tables agree on the `n` pairs that both label and that are not absent in both.

    `agree` of them have the same label: `share`, with Wilson's interval and one from resampling questions. `same_side`
    have labels on the same side of the line between what diverges and what does not. `kappa` is Cohen's κ with an
    interval from resampling questions; None where it has no value. `confusion[i][j]` counts pairs of label i in the
    first table and j in the second. `absent_in_both`, `unlabelled` (in one or both) and `only_one` are left out.
    `by_basis` gives (agreeing, pairs) by how the first table came to its label.
    """

    n: int
    agree: int
    share: float | None
    interval: Interval
    cluster_interval: Interval | None
    same_side: int
    kappa: float | None
    kappa_interval: Interval | None
    labels: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    absent_in_both: int
    unlabelled: int
    only_one: int
    by_basis: dict[str, tuple[int, int]]


class LabelFlips(Struct, frozen=True, kw_only=True):
    """The probed pairs that had one label at first: how many, how many flipped, and to which labels."""

    label: str
    n: int
    flips: int
    rate: float | None
    interval: Interval
    to: dict[str, int]


class FlipRate(Struct, frozen=True, kw_only=True):
    """How often a judge says something else when the two answers are swapped.

    `flips` of `n` pairs that have both labels; `crossing` of them cross the line between what diverges and what does
    not, which alone moves R_div. `unscored` pairs lack a label.
    """

    n: int
    flips: int
    rate: float | None
    interval: Interval
    crossing: int
    crossing_rate: float | None
    crossing_interval: Interval
    unscored: int
    by_label: tuple[LabelFlips, ...]


def agreement_of_tables(
    first: Frame,
    second: Frame,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> TableAgreement:
    """Agreement of two tables on the same pairs, for example of an audit in economy mode (first) with a full one."""
    joined = join(first, second, domain)
    basis = _basis(first, joined)
    return joined_agreement(joined, basis, samples=samples, seed=seed)


def joined_agreement(
    joined: JoinedPairs,
    basis: polars.Series | None = None,
    *,
    samples: int = SAMPLES,
    seed: int = 0,
) -> TableAgreement:
    """The same of tables already joined; `basis` is that of the first table's shared pairs, if it is wanted."""
    pairs: AuditPairs = joined.before
    order = pairs.domain.order
    first, second = joined.labels
    labelled = (first >= 0) & (second >= 0)
    silent = (first == pairs.absent) & (second == pairs.absent)
    used = labelled & ~silent
    one, two = first[used].astype(np.int64), second[used].astype(np.int64)
    size = len(order)
    cells = (joined.question[used].astype(np.int64) * size + one) * size + two
    tables = np.bincount(cells, minlength=len(pairs.questions) * size * size).reshape(-1, size * size)
    tables = tables[tables.any(axis=1)]
    confusion = tables.sum(axis=0).reshape(size, size)
    n, agree = int(confusion.sum()), int(np.trace(confusion))
    drawn = resampled_sums(tables.astype(np.float64), samples=samples, seed=seed) if n else np.zeros((0, size * size))
    drawn = drawn.reshape(-1, size, size)
    kappa = _kappas(confusion[None].astype(np.float64))[0] if n else np.nan
    kappas = _kappas(drawn)
    sided = np.isin(np.arange(size), [order.index(label) for label in pairs.domain.diverging])
    shares = np.trace(drawn, axis1=1, axis2=2) / drawn.sum(axis=(1, 2))
    hits = tables[:, :: size + 1].sum(axis=1).astype(np.float64), tables.sum(axis=1).astype(np.float64)
    chance = 1 - float(confusion.sum(axis=0) @ confusion.sum(axis=1)) / n**2 if n else np.nan
    return TableAgreement(
        n=n,
        agree=agree,
        share=agree / n if n else None,
        interval=clustered_wilson(*hits) if n else wilson(0, 0),
        cluster_interval=mean_interval(*hits, shares, CLUSTERED) if n else None,
        same_side=int((sided[one] == sided[two]).sum()),
        kappa=None if np.isnan(kappa) else float(kappa),
        kappa_interval=None
        if np.isnan(kappa)
        else chance_corrected(float(kappa), kappas, agree / n, clustered_wilson(*hits), chance, CLUSTERED),
        labels=order,
        confusion=tuple(tuple(line) for line in confusion.tolist()),
        absent_in_both=int(silent.sum()),
        unlabelled=int((~labelled).sum()),
        only_one=len(pairs.label) + len(joined.after.label) - 2 * len(first),
        by_basis={} if basis is None else _by_basis(basis, used, one == two),
    )


def flip_rates(
    probes: Iterable[tuple[str | None, str | None]],
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    questions: Sequence[str] | None = None,
) -> FlipRate:
    """Flips over (label of A and B, label of B and A), None where a call gave no label.

    `questions` names each pair's: pairs of a question share answers, and their intervals keep them together.
    """
    scored: list[tuple[str, str]] = []
    clusters: list[str] = []
    unscored = 0
    for place, (before, after) in enumerate(probes):
        for label in (before, after):
            if label and label not in domain.order:
                raise InputError(f"unknown label {label!r}", fix=f"the labels are {', '.join(domain.order)}")
        if before and after:
            scored.append((before, after))
            clusters.append(questions[place] if questions else str(place))
        else:
            unscored += 1
    n = len(scored)
    flipped = [before != after for before, after in scored]
    crossed = [(before in domain.diverging) != (after in domain.diverging) for before, after in scored]
    flips, crossing = sum(flipped), sum(crossed)
    return FlipRate(
        n=n,
        flips=flips,
        rate=flips / n if n else None,
        interval=share_interval(flipped, clusters),
        crossing=crossing,
        crossing_rate=crossing / n if n else None,
        crossing_interval=share_interval(crossed, clusters),
        unscored=unscored,
        by_label=tuple(
            _flips(
                label,
                [(q, after) for q, (before, after) in zip(clusters, scored, strict=True) if before == label],
                domain,
            )
            for label in domain.order
            if any(before == label for before, _ in scored)
        ),
    )


def _flips(label: str, rows: list[tuple[str, str]], domain: RelationLabels) -> LabelFlips:
    after = [other for _, other in rows]
    changed = [other for other in after if other != label]
    return LabelFlips(
        label=label,
        n=len(after),
        flips=len(changed),
        rate=len(changed) / len(after),
        interval=share_interval([other != label for other in after], [question for question, _ in rows]),
        to={other: changed.count(other) for other in domain.order if other in changed},
    )


def _basis(table: Frame, joined: JoinedPairs) -> polars.Series | None:
    rows = lazy(table)
    if "basis" not in rows.collect_schema().names():
        return None
    return (
        rows.select(polars.col("basis").cast(polars.String).fill_null("").gather(joined.rows[0])).collect().to_series()
    )


def _by_basis(basis: polars.Series, used: NDArray[np.bool_], same: NDArray[np.bool_]) -> dict[str, tuple[int, int]]:
    table = polars.DataFrame({"basis": basis.filter(polars.Series(used)), "same": same})
    counted = table.group_by("basis").agg(polars.col("same").sum(), polars.len()).sort("basis")
    return {name: (int(agree), int(n)) for name, agree, n in counted.iter_rows()}


def _kappas(confusions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cohen's κ of each of a stack of confusion matrices; not a number where chance leaves no disagreement."""
    totals = confusions.sum(axis=(1, 2))
    seen = np.trace(confusions, axis1=1, axis2=2) / totals
    chance = (confusions.sum(axis=1) * confusions.sum(axis=2)).sum(axis=1) / totals**2
    return np.where(chance < 1, (seen - chance) / np.where(chance < 1, 1 - chance, 1), np.nan)


SIDES = ("not diverging", "diverging")
"""The labels of the two-way question."""


SAME_CARE, CARE_DIFFERS, SILENT_SIDE = "same care", "care differs", "silent"
CARE = RelationLabels(
    order=(SILENT_SIDE, SAME_CARE, CARE_DIFFERS),
    absent=SILENT_SIDE,
    consistent=SAME_CARE,
    diverging=(CARE_DIFFERS,),
)
"""What hard pairs are scored by, whatever a pack calls its labels: whether care differs, or a side is silent."""


class KindScore(Struct, frozen=True, kw_only=True):
    """A judge on the hard pairs of one kind: how many are right, and right in both orders.

    `missed` are pairs in which care differs or a side is silent and the judge finds the same care; `invented` are pairs
    of the same care in which it finds anything else.
    """

    kind: str
    n: int
    right: int
    interval: Interval
    both: int
    missed: int
    invented: int


class Trial(Struct, frozen=True, kw_only=True):
    """A judge beside planted labels, in the order in which an audit shows the two answers.

    `labels` and `two_way` (does the pair diverge or not) are against what was planted; a pair without a label is not
    right. Pairs of one question share answers: `by_question` is the interval of accuracy with whole questions drawn
    again. `exchanged` of the pairs are right with the answers exchanged, `both` in either order. `chance` is what
    guessing evenly among the labels gives, `commonest_share` what always saying the `commonest` planted label gives;
    `two_way_share` is that of the two-way question. `better` says whether both intervals of accuracy lie above the
    larger of the two. `kinds` are the scores of hard pairs by kind; there, labels are `CARE`. `injections` say how
    often instructions inside an answer change the label of each judge, where that was tried.
    """

    right: int
    agreement: Agreement
    by_question: Interval
    labels: tuple[LabelScore, ...]
    two_way: Agreement
    two_way_right: int
    exchanged: int
    both: int
    flips: FlipRate
    chance: float
    commonest: str
    commonest_share: float
    two_way_share: float
    better: bool
    kinds: tuple[KindScore, ...] = ()
    injections: tuple[InjectionFigures, ...] = ()

    @property
    def n(self) -> int:
        """How many pairs were put to the judge."""
        return self.agreement.n

    @property
    def span(self) -> tuple[float, float]:
        """The accuracy at 95%: as far as Wilson's interval and the one by questions reach."""
        wilson = self.agreement.accuracy_interval
        return min(wilson.low, self.by_question.low), max(wilson.high, self.by_question.high)

    @property
    def verdict(self) -> str:
        """Better than chance or not, in words."""
        return (
            f"This judge is {'' if self.better else 'not '}clearly better than chance: right on {self.right} of "
            f"{self.n} pairs whose relation is known (95% interval {self.span[0]:.2f} to {self.span[1]:.2f}). Guessing "
            f"would give {self.chance:.2f}, always answering {self.commonest} {self.commonest_share:.2f}."
        )


def trial_figures(pairs: Sequence[TrialPair], domain: RelationLabels, *, seed: int = 0) -> Trial:
    """The figures of pairs that were put to a judge; `seed` is for what is resampled."""
    if not pairs:
        raise UsageError("a trial needs pairs", fix="draw at least one: --limit")
    if any(pair.kind for pair in pairs):
        cared = [_by_care(pair, domain) for pair in pairs]
        plain = trial_figures([replace(pair, kind="") for pair in cared], CARE, seed=seed)
        return replace(plain, kinds=_kind_scores(cared))
    first = [(pair.said.label or None if pair.said else None, pair.planted) for pair in pairs]
    other = [(pair.exchanged.label or None if pair.exchanged else None, pair.planted) for pair in pairs]
    found_absent = any(domain.absent in labels for labels in first)
    labels = [label for label in domain.order if label != domain.absent or found_absent]
    hits = [given == planted for given, planted in first]
    sides = [(_side(given, domain), _side(planted, domain)) for given, planted in first]
    counts = Counter(planted for _, planted in first)
    commonest = max(labels, key=lambda label: counts[label])
    diverging = sum(counts[label] for label in domain.diverging)
    asked = [pair.question for pair in pairs]
    together = cluster_labels(asked, None)
    found = agreement(first, labels, clusters=together, seed=seed)
    by_question = bootstrap_mean([float(hit) for hit in hits], clusters=asked, seed=seed)
    again = label_replicates(first, labels, together, seed=seed) if together else None
    chance, share = 1 / len(domain.order), counts[commonest] / len(pairs)
    return Trial(
        right=sum(hits),
        agreement=found,
        by_question=by_question,
        labels=f1_scores(label_table(first, labels), labels, replicates=again, units=len(set(asked)), seed=seed).labels,
        two_way=agreement([(given, planted or "") for given, planted in sides], SIDES, clusters=together, seed=seed),
        two_way_right=sum(given == planted for given, planted in sides),
        exchanged=sum(given == planted for given, planted in other),
        both=sum(hit and given == planted for hit, (given, planted) in zip(hits, other, strict=True)),
        flips=flip_rates(
            [(one, two) for (one, _), (two, _) in zip(first, other, strict=True)], domain, questions=asked
        ),
        chance=chance,
        commonest=commonest,
        commonest_share=share,
        two_way_share=max(diverging, len(pairs) - diverging) / len(pairs),
        better=min(found.accuracy_interval.low, by_question.low) > max(chance, share),
    )


def trial_injections(tried: Sequence[TrialInjection]) -> tuple[InjectionFigures, ...]:
    """What instructions inside an answer changed, by judge."""
    return injection_figures(
        [
            InjectedVerdict(
                judge=each.judge,
                kind=each.kind,
                question=each.question,
                item="\x1f".join((each.question, each.a, each.b)),
                before=each.before,
                after=each.after,
                target=each.target,
                flagged=each.flagged,
                check_before=each.check_before,
                check_after=each.check_after,
            )
            for each in tried
        ]
    )


def _by_care(pair: TrialPair, domain: RelationLabels) -> TrialPair:
    """A hard pair with the judge's labels as what they say of care."""

    def cared(said: TrialVerdict | None) -> TrialVerdict | None:
        if said is None or not said.label:
            return said
        differs = CARE_DIFFERS if said.label in domain.diverging else SAME_CARE
        return replace(said, label=SILENT_SIDE if said.label == domain.absent else differs)

    return replace(pair, said=cared(pair.said), exchanged=cared(pair.exchanged))


def _kind_scores(pairs: Sequence[TrialPair]) -> tuple[KindScore, ...]:
    found = []
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        rows = [
            (pair.planted, *(each.label if each else "" for each in (pair.said, pair.exchanged)))
            for pair in pairs
            if pair.kind == kind
        ]
        hits = [said == planted for planted, said, _ in rows]
        found.append(
            KindScore(
                kind=kind,
                n=len(rows),
                right=sum(hits),
                interval=share_interval(hits, None),
                both=sum(planted == said == other for planted, said, other in rows),
                missed=sum(planted != SAME_CARE == said for planted, said, _ in rows),
                invented=sum(planted == SAME_CARE and said not in ("", SAME_CARE) for planted, said, _ in rows),
            )
        )
    return tuple(found)


def _side(label: str | None, domain: RelationLabels) -> str | None:
    return None if label is None else SIDES[label in domain.diverging]
