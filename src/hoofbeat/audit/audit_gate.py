"""The gate: may a change of sources, questions or models pass? Figures of two audits, and conditions that fail it.

A condition compares a figure with a number: `new_disagreements > 0`, `share_disagree >= 20%`; several are joined by
`and`, and each `--fail-if` fails the gate by itself. A figure that has no value (no pair was judged) can't be shown to
be in order, so its condition fails and says so. For the same reason pairs that were judged before and are not now,
pairs whose call failed, and another judge fail every gate that does not name a number of them (`DEFAULTS`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.audit.answer_changes import (
    SILENT,
    WordChanges,
    count_changes,
    labels_before_and_after,
    word_changes,
)
from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.case_records import CaseDecision, DisagreementCase, WorklistRow
from hoofbeat.audit.disagreement_cases import read_cases, worklist
from hoofbeat.audit.findings.audit_changes import (
    AuditsComparison,
    AuditSide,
    changed_pairs,
    compare_audits,
    reworded_questions,
)
from hoofbeat.audit.findings.pair_arrays import pairs_of
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.source_profiles import slim_answers
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_names
from hoofbeat.progress import SILENT as NO_PROGRESS
from hoofbeat.progress import Progress
from hoofbeat.prompts import Pack
from hoofbeat.text import some_of

if TYPE_CHECKING:
    import polars

_DECISIONS, _REFERENCE = "--decisions", "--reference"
FIGURES: dict[str, tuple[str, str]] = {
    "disagreements": ("pairs of sources that disagree after the change", ""),
    "new_disagreements": ("pairs that disagree and did not before", ""),
    "resolved_disagreements": ("pairs that disagreed before, are judged now and do not disagree", ""),
    "serious_disagreements": ("pairs that disagree with the highest significance", ""),
    "new_serious_disagreements": ("pairs that disagree with the highest significance and did not disagree before", ""),
    "share_disagree": ("share of judged pairs that disagree", ""),
    "share_disagree_change": ("change of this share (after minus before)", ""),
    "changed_answers": ("answers whose wording changed", ""),
    "changed_quotes": ("answers whose quote changed", ""),
    "newly_silent": ("sources that answered a question before and are silent now", ""),
    "changed_labels": ("pairs in both audits whose label changed", ""),
    "changed_texts": ("sources whose text changed", ""),
    "failed_pairs": ("pairs without a label, because a call failed", ""),
    "lost_pairs": ("pairs judged before that are not now: a source or question is gone, or a call failed", ""),
    "changed_judges": ("number of judges that only one of the two audits used; --economy in only one adds 1", ""),
    "undecided": ("disagreements that nobody has decided on", _DECISIONS),
    "reopened": ("closed cases whose answer, quote or label has changed", _DECISIONS),
    "escalated": ("disagreements that are escalated", _DECISIONS),
    "closed": ("disagreements that are accepted or decided for one source", _DECISIONS),
    "against_reference": ("disagreements with the reference", _REFERENCE),
    "new_against_reference": ("pairs that disagree with the reference and did not disagree before", _REFERENCE),
}
"""What a condition can name: the figure in words, and the option it needs."""

DEFAULTS = ("lost_pairs > 0", "failed_pairs > 0", "changed_judges > 0")
"""What fails a gate unless another condition names the figure: nobody knows whether these pairs disagree, and another
judge gives other labels to the same answers."""

_KEYS = ("question", "a", "b")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_TERM = re.compile(
    r"\s*(?P<name>[a-z_]+)\s*(?P<sign>>=|<=|==|!=|>|<)\s*(?P<number>[+-]?\d+(?:\.\d+)?)\s*(?P<percent>%?)\s*"
)
_EXAMPLE = 'write it like "new_disagreements > 0" or "share_disagree > 20% and undecided > 0"'


class GateComparison(Struct, frozen=True):
    """One comparison of a condition."""

    name: str
    sign: str
    number: float

    def holds(self, figures: Mapping[str, float | None]) -> bool | None:
        """Whether it holds; None where the figure has no value."""
        value = figures[self.name]
        return None if value is None else _OPERATORS[self.sign](value, self.number)


class GateCondition(Struct, frozen=True, kw_only=True):
    """A condition that fails the gate: all its terms hold."""

    text: str
    terms: tuple[GateComparison, ...]


class ConditionResult(Struct, frozen=True, kw_only=True):
    """What became of a condition: whether the gate fails by it, the figures it looked at, and why if one is missing."""

    condition: str
    failed: bool
    figures: dict[str, float | None]
    why: str = ""


class GateFindings(Struct, frozen=True, kw_only=True):
    """Two audits as the gate sees them: figures, the worklist after the change, what is new, and the words."""

    figures: dict[str, float | None]
    rows: tuple[WorklistRow, ...]
    new: frozenset[str]
    resolved: tuple[DisagreementCase, ...]
    words: WordChanges


def parse_condition(text: str) -> GateCondition:
    """Read a condition; what is wrong with it is said."""
    terms = []
    for part in re.split(r"\band\b", text):
        match = _TERM.fullmatch(part)
        if match is None:
            raise UsageError(f"the condition {text!r} can't be read at {part.strip()!r}", fix=_EXAMPLE)
        if match["name"] not in FIGURES:
            close = get_close_matches(match["name"], FIGURES, n=3, cutoff=0.5)
            known = f"did you mean {' or '.join(close)}?" if close else f"use one of: {', '.join(FIGURES)}"
            raise UsageError(f"there is no figure {match['name']!r} in the condition {text!r}", fix=known)
        terms.append(GateComparison(match["name"], match["sign"], _number(match, text)))
    for name in dict.fromkeys(term.name for term in terms):
        _refuse_impossible(name, [term for term in terms if term.name == name], text)
    return GateCondition(text=" ".join(text.split()), terms=tuple(terms))


def _number(match: re.Match[str], text: str) -> float:
    """The number of a comparison. A number that its figure can never have is refused."""
    name, written, percent = match["name"], match["number"], match["percent"]
    number = float(written) / (100 if percent else 1)
    if percent and not name.startswith("share"):
        raise UsageError(f"{name} in {text!r} is a count, not a percentage", fix=f"leave out the % after {written}")
    if name.startswith("share") and not _least(name) <= number <= 1:
        is_percentage = not percent and abs(number) <= 100
        raise UsageError(
            f"{name} in {text!r} can't be {written}{percent}: it is {_range(name)}",
            fix=f'write "{name} {match["sign"]} {written}%"' if is_percentage else "write a number from that range",
        )
    return number


def _refuse_impossible(name: str, terms: Sequence[GateComparison], text: str) -> None:
    """Refuse a condition that no value of a figure meets: it could never fail the gate, and would end a default."""
    numbers = [term.number for term in terms]
    if name.startswith("share"):
        ends = sorted({_least(name), *numbers, 1.0})
        values = [*ends, *((low + high) / 2 for low, high in pairwise(ends))]
    else:
        values = [0.0, *(each for number in numbers for each in (number // 1, number // 1 + 1, number // 1 * 2))]
    if not any(value >= _least(name) and all(term.holds({name: value}) for term in terms) for value in values):
        raise UsageError(
            f"the condition {text!r} can never hold, so the gate could not fail by it: {name} is {_range(name)}",
            fix=f'write, for example, "{name} > {"20%" if name.startswith("share") else 0}"',
        )


def _least(name: str) -> float:
    return -1.0 if name == "share_disagree_change" else 0.0


def _range(name: str) -> str:
    """What values a figure can have, in words."""
    if name.startswith("share"):
        return f"a number from {_least(name):.0f} to 1, or from {_least(name):.0%} to 100%"
    return "a whole number, 0 or more"


def with_defaults(conditions: Sequence[GateCondition]) -> list[GateCondition]:
    """The conditions, and those that every gate has whose figure none of them names."""
    named = {term.name for condition in conditions for term in condition.terms}
    usual = [parse_condition(text) for text in DEFAULTS]
    return [*conditions, *(each for each in usual if each.terms[0].name not in named)]


def check_conditions(conditions: Sequence[GateCondition], *, decisions: bool, reference: bool) -> None:
    """Refuse a condition whose figure needs an option that is not given."""
    given = {_DECISIONS: decisions, _REFERENCE: reference, "": True}
    for condition in conditions:
        for term in condition.terms:
            option = FIGURES[term.name][1]
            if not given[option]:
                raise UsageError(f"{term.name} in {condition.text!r} needs {option}", fix=f"add {option}")


def judge_condition(condition: GateCondition, figures: Mapping[str, float | None]) -> ConditionResult:
    """Whether the gate fails by a condition."""
    mine = {term.name: figures[term.name] for term in condition.terms}
    held = [term.holds(figures) for term in condition.terms]
    missing = [term.name for term, each in zip(condition.terms, held, strict=True) if each is None]
    failed = False not in held
    why = f"{some_of(missing, 3)} has no value: no pair was judged" if missing and failed else ""
    return ConditionResult(condition=condition.text, failed=failed, figures=mine, why=why)


def gate_findings(
    before: Audit,
    after: Audit,
    *,
    decisions: Mapping[str, CaseDecision] | None = None,
    reference: Collection[str] = (),
) -> GateFindings:
    """All figures of two audits; those that need decisions or a reference are nought without."""
    domain = RelationLabels.of(same_domain(before, after).labels)
    if other := reworded_questions(before.questions, after.questions):
        raise InputError(
            f"these questions have the same id but different text: {some_of(other, 3)}",
            fix="compare audits that asked the same questions, word for word",
        )
    old, now = read_cases(before), read_cases(after)
    were, are = {case.id for case in old}, {case.id for case in now}
    rows = worklist(after, now, decisions or {}, reference=reference)
    words = word_changes(before, after)
    gone = [case for case in old if case.id not in are]
    judged = _still_judged(gone, after)
    resolved = [case for case in gone if (case.question, *case.sources) in judged]
    new = frozenset(are - were)
    top = after.pack.significance_levels[-1] if after.pack.significance_levels else ""
    serious = {case.id for case in now if top and case.significance == top}
    against = {row.case.id for row in rows if row.against_reference and row.state != "gone"}
    shares, failed = zip(*(_share(audit, domain) for audit in (before, after)), strict=True)
    states = [row.state for row in rows]
    changed = count_changes(words.answers)
    figures: dict[str, float | None] = {
        "disagreements": len(now),
        "new_disagreements": len(new),
        "resolved_disagreements": len(resolved),
        "serious_disagreements": len(serious),
        "new_serious_disagreements": len(serious & new),
        "share_disagree": shares[1],
        "share_disagree_change": None if None in shares else shares[1] - shares[0],
        "changed_answers": changed["answer"],
        "changed_quotes": changed["quote"],
        "newly_silent": changed[SILENT],
        "changed_labels": _changed_labels(before, after),
        "changed_texts": len(words.texts),
        "failed_pairs": failed[1],
        "lost_pairs": _lost_pairs(before, after),
        "changed_judges": len({*before.judges} ^ {*after.judges}) + (before.mode != after.mode),
        "undecided": states.count("new"),
        "reopened": states.count("reopened"),
        "escalated": states.count("escalated"),
        "closed": states.count("closed"),
        "against_reference": len(against),
        "new_against_reference": len(against & new),
    }
    return GateFindings(figures=figures, rows=tuple(rows), new=new, resolved=tuple(resolved), words=words)


def _share(audit: Audit, domain: RelationLabels) -> tuple[float | None, int]:
    """The share of judged pairs that disagree, and how many have no label."""
    pairs = pairs_of(audit.frame(), domain)
    judged = int(pairs.judged.sum())
    return (int(pairs.diverging.sum()) / judged if judged else None), int((pairs.label < 0).sum())


def _labelled(audit: Audit) -> polars.LazyFrame:
    """The pairs that have a label, by question and sources."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    frame = audit.frame((*_KEYS, "label")).filter(polars.col("label").is_not_null())
    return frame.select(polars.col(name).cast(polars.String) for name in _KEYS)


def _still_judged(cases: Sequence[DisagreementCase], after: Audit) -> set[tuple[str, ...]]:
    """Which of these cases' pairs have a label in the audit after the change."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    keys = [(case.question, *case.sources) for case in cases]
    wanted = polars.DataFrame(keys, schema=dict.fromkeys(_KEYS, polars.String), orient="row")
    return set(wanted.lazy().join(_labelled(after), on=_KEYS, how="semi").collect().iter_rows())


def _lost_pairs(before: Audit, after: Audit) -> int:
    """How many pairs had a label before and have none now."""
    return _labelled(before).join(_labelled(after), on=_KEYS, how="anti").collect().height


def _changed_labels(before: Audit, after: Audit) -> int:
    table = labels_before_and_after(before, after)
    return int((~table["label"].eq_missing(table["label_after"])).sum())


# Two audits of the same questions, from their folders to the figures

_MAX_FACETS = 4


def compare_folders(
    first: Audit, second: Audit, *, facets: Sequence[str], seed: int = 0, progress: Progress = NO_PROGRESS
) -> tuple[AuditsComparison, polars.DataFrame]:
    """The comparison, and the pairs that have another label now; audits with different labels are refused."""
    domain = RelationLabels.of(same_domain(first, second).labels)
    with progress.task("comparing audits", 3) as task:
        sides = []
        for audit in (first, second):
            sides.append(_side(audit))
            task.advance()
        compared, joined = compare_audits(sides[0], sides[1], domain, facets=facets, seed=seed)
        changed = changed_pairs(joined, sides[0].table, sides[1].table)
        task.advance()
    return compared, changed


def comparison_facets(wanted: Sequence[str], audit: Audit) -> list[str]:
    """The facets to split the changes by: those wanted, else those that make few groups."""
    if not wanted:
        return facet_names(question.facets for question in audit.questions)[:_MAX_FACETS]
    known = {name for question in audit.questions for name in question.facets}
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(
            f"no question has the facet {unknown[0]!r}", fix=f"facets are: {', '.join(sorted(known)) or 'none'}"
        )
    return list(dict.fromkeys(wanted))


def same_domain(first: Audit, second: Audit) -> Pack:
    """The pack of both; audits of different domains are refused."""
    if first.pack.name != second.pack.name or first.pack.labels != second.pack.labels:
        raise UsageError(
            f"the audits use different domain packs: {first.pack.name} and {second.pack.name}",
            where=f"{first.artefact.path}, {second.artefact.path}",
            fix="compare audits that were judged with the same labels",
        )
    return second.pack


def _side(audit: Audit) -> AuditSide:
    return AuditSide(
        table=audit.frame(),
        questions=audit.questions,
        sources=[source.id for source in audit.sources],
        answers=slim_answers(audit.each_answer()),
    )
