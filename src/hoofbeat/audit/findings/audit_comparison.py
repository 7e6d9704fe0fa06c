"""Two audits set against each other as a whole: everything `hoofbeat audit compare` says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from hoofbeat.audit.findings.audit_changes import (
    CoverageChange,
    LabelShift,
    coverage_changes,
    label_shift,
    split_between,
    split_by,
)
from hoofbeat.audit.findings.pair_arrays import Frame, pairs_of
from hoofbeat.audit.findings.prevalence_intensity import PrevalenceIntensity
from hoofbeat.audit.findings.relation_counts import label_counts
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels, Relations
from hoofbeat.audit.findings.table_agreement import TableAgreement, joined_agreement
from hoofbeat.audit.findings.table_join import JoinedPairs, join
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import SAMPLES
from hoofbeat.records import Answer, Question
from hoofbeat.text import some_of

_NAMED = 3


class AuditSide(Struct, frozen=True, kw_only=True):
    """One of the two audits: its table of pairs, its questions, the names of its sources, and its answers."""

    table: Frame
    questions: Sequence[Question]
    sources: Sequence[str]
    answers: Iterable[Answer]


class AuditsComparison(Struct, frozen=True, kw_only=True):
    """What changed from one audit to the next; pairs of figures are before and after.

    `relations` are each audit's own rates, `split` what prevalence and intensity make of their change, `groups` the
    same by facet and value. `shift` says how labels moved, `agreement` how far they stayed, `coverage` what each source
    covers. `sources_only` and `questions_only` name what only one of the two has.
    """

    questions: int
    sources: int
    relations: tuple[Relations, Relations]
    split: PrevalenceIntensity
    groups: dict[str, dict[str, PrevalenceIntensity]]
    shift: LabelShift
    agreement: TableAgreement
    coverage: tuple[CoverageChange, ...]
    sources_only: tuple[tuple[str, ...], tuple[str, ...]]
    questions_only: tuple[tuple[str, ...], tuple[str, ...]]


def compare_audits(
    before: AuditSide,
    after: AuditSide,
    domain: RelationLabels = FIVE_RELATIONS,
    *,
    facets: Sequence[str] = (),
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[AuditsComparison, JoinedPairs]:
    """Compare two audits of the same questions, and lay their tables over each other.

    A question of the same name with another text is refused, as are audits that share no question.
    """
    asked = [{question.id: question for question in side.questions} for side in (before, after)]
    shared = _shared(asked[0], asked[1])
    tables = pairs_of(before.table, domain), pairs_of(after.table, domain)
    joined = join(tables[0], tables[1], domain)
    names = [set(side.sources) for side in (before, after)]
    compared = AuditsComparison(
        questions=len(shared),
        sources=len(names[0] & names[1]),
        relations=(label_counts(tables[0], asked[0], domain), label_counts(tables[1], asked[1], domain)),
        split=split_between(joined, samples=samples, level=level, seed=seed),
        groups={facet: split_by(joined, shared, facet, samples=samples, level=level, seed=seed) for facet in facets},
        shift=label_shift(joined),
        agreement=joined_agreement(joined, samples=samples, level=level, seed=seed),
        coverage=tuple(coverage_changes(before.answers, after.answers, samples=samples, level=level, seed=seed)),
        sources_only=(tuple(sorted(names[0] - names[1])), tuple(sorted(names[1] - names[0]))),
        questions_only=(
            tuple(sorted(asked[0].keys() - asked[1].keys())),
            tuple(sorted(asked[1].keys() - asked[0].keys())),
        ),
    )
    return compared, joined


def reworded_questions(before: Iterable[Question], after: Iterable[Question]) -> list[str]:
    """The names under which the second audit asks something else than the first, in the order of the second."""
    texts = {question.id: question.full_text for question in before}
    return [question.id for question in after if texts.get(question.id, question.full_text) != question.full_text]


def _shared(before: dict[str, Question], after: dict[str, Question]) -> list[Question]:
    """The questions that both audits asked, in the order of the second."""
    both = [question for name, question in after.items() if name in before]
    if not both:
        raise InputError("the two audits share no question", fix="give two audits of the same questions")
    if other := reworded_questions(before.values(), both):
        raise InputError(
            f"these are different questions under the same names: {some_of(other, _NAMED)}",
            fix="compare audits that asked the same questions, word for word",
        )
    return both
