"""How a judge did on pairs whose relation is known: what it got right, beside what guessing would."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.audit.findings.label_scores import LabelScore, f1_scores, label_table
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.table_agreement import FlipRate, flip_rates
from hoofbeat.audit.sample_records import TrialPair
from hoofbeat.errors import UsageError
from hoofbeat.findings.agreement import Agreement, agreement
from hoofbeat.findings.intervals import Interval, bootstrap_mean

SIDES = ("not diverging", "diverging")
"""The labels of the two-way question."""


class Trial(Struct, frozen=True, kw_only=True):
    """A judge beside planted labels, in the order in which an audit shows the two answers.

    `labels` and `two_way` (does the pair diverge or not) are against what was planted; a pair without a label is not
    right. Pairs of one question share answers: `by_question` is the interval of accuracy with whole questions drawn
    again. `exchanged` of the pairs are right with the answers exchanged, `both` in either order. `chance` is what
    guessing evenly among the labels gives, `commonest_share` what always saying the `commonest` planted label gives;
    `two_way_share` is that of the two-way question. `better` says whether both intervals of accuracy lie above the
    larger of the two.
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
        """One sentence: better than chance or not."""
        return (
            f"This judge is {'' if self.better else 'not '}clearly better than chance: right on {self.right} of "
            f"{self.n} pairs whose relation is known ({self.span[0]:.2f} to {self.span[1]:.2f} at 95%), where guessing "
            f"gives {self.chance:.2f} and always saying {self.commonest} {self.commonest_share:.2f}."
        )


def trial_figures(pairs: Sequence[TrialPair], domain: RelationLabels, *, seed: int = 0) -> Trial:
    """The figures of pairs that were put to a judge; `seed` is for what is resampled."""
    if not pairs:
        raise UsageError("a trial needs pairs", fix="draw at least one: --limit")
    labels = [label for label in domain.order if label != domain.absent]
    first = [(pair.said.label or None if pair.said else None, pair.planted) for pair in pairs]
    other = [(pair.exchanged.label or None if pair.exchanged else None, pair.planted) for pair in pairs]
    hits = [given == planted for given, planted in first]
    sides = [(_side(given, domain), _side(planted, domain)) for given, planted in first]
    counts = Counter(planted for _, planted in first)
    commonest = max(labels, key=lambda label: counts[label])
    diverging = sum(counts[label] for label in domain.diverging)
    found = agreement(first, labels, seed=seed)
    by_question = bootstrap_mean([float(hit) for hit in hits], clusters=[pair.question for pair in pairs], seed=seed)
    chance, share = 1 / len(labels), counts[commonest] / len(pairs)
    return Trial(
        right=sum(hits),
        agreement=found,
        by_question=by_question,
        labels=f1_scores(label_table(first, labels), labels, seed=seed).labels,
        two_way=agreement([(given, planted or "") for given, planted in sides], SIDES, seed=seed),
        two_way_right=sum(given == planted for given, planted in sides),
        exchanged=sum(given == planted for given, planted in other),
        both=sum(hit and given == planted for hit, (given, planted) in zip(hits, other, strict=True)),
        flips=flip_rates([(one, two) for (one, _), (two, _) in zip(first, other, strict=True)], domain),
        chance=chance,
        commonest=commonest,
        commonest_share=share,
        two_way_share=max(diverging, len(pairs) - diverging) / len(pairs),
        better=min(found.accuracy_interval.low, by_question.low) > max(chance, share),
    )


def _side(label: str | None, domain: RelationLabels) -> str | None:
    return None if label is None else SIDES[label in domain.diverging]
