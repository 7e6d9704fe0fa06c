"""From finding to decision: every disagreement of an audit is a case that a team decides on and meets again.

A case is a question and two sources that disagree on it. What a team decides (who looks after it, what is done) names
the words it was decided on. The next audit finds the same case by its question and sources; where an answer, a quote or
the label is another than it was, a closed case is open again, and it is said what changed. Decisions are kept by the
review store, or in a file that was exported from it; an audit's folder never holds any.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from pathlib import Path
from time import time

import msgspec
from msgspec import Struct, field

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.case_records import (
    CLOSED,
    STATES,
    CaseDecision,
    CaseState,
    DisagreementCase,
    SideWords,
    WorklistRow,
)
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.pair_plan import same_answer_form
from hoofbeat.audit.source_citations import FOUND
from hoofbeat.audit.source_citations import STAGE as CITATIONS
from hoofbeat.audit.source_names import AuditSource, SourceNames, judged_order
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.records import Answer, Question
from hoofbeat.store.files import read_bytes
from hoofbeat.store.sheets import refuse_lines
from hoofbeat.store.tables import UNREADABLE, write_csv
from hoofbeat.text import for_quote_matching, some_of

_NAMED = 8


def case_id(question: Question, a: str, b: str) -> str:
    """What a case is called in every audit that asks this question of these sources."""
    return _case_id(question.id, question.full_text, a, b)


def _case_id(question: str, text: str, a: str, b: str) -> str:
    content = "\0".join((question, text, *sorted((a, b))))
    return hashlib.sha256(content.encode("utf-8", "replace")).hexdigest()[:16]


def words_of(answer: Answer | None, source: str) -> SideWords:
    """What a source said, as far as a decision rests on it."""
    if answer is None or answer.absent or answer.failure is not None:
        return SideWords(source=source)
    quoted = [step for step in answer.trace if step.stage == CITATIONS and step.text and "quot" in step.what]
    return SideWords(
        source=source,
        answer=answer.text,
        quotes=tuple(step.text for step in quoted if step.what in FOUND),
        not_found=tuple(step.text for step in quoted if step.what not in FOUND),
    )


def read_cases(audit: Audit) -> list[DisagreementCase]:
    """Every disagreement of an audit, the most serious first."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    domain = RelationLabels.of(audit.pack.labels)
    columns = ("question", "a", "b", "label", "significance", "topic", "reasoning")
    rows = (
        audit.frame(columns)
        .filter(polars.col("label").cast(polars.String).is_in(list(domain.diverging)))
        .with_columns(polars.col(name).cast(polars.String) for name in columns)
        .collect()
        .to_dicts()
    )
    wanted = {(row["question"], row[side]) for row in rows for side in ("a", "b")}
    words = {
        (answer.question, answer.source): words_of(answer, answer.source)
        for answer in audit.each_answer()
        if (answer.question, answer.source) in wanted
    }
    asked = {question.id: question for question in audit.questions}
    found = []
    for row in rows:
        question = asked[row["question"]]
        order = judged_order(row["reasoning"] or "", row["a"], row["b"])  # what they differ in is told in this order
        sides = [words.get((question.id, side)) or SideWords(source=side) for side in order]
        found.append(
            DisagreementCase(
                id=case_id(question, row["a"], row["b"]),
                question=question.id,
                text=question.full_text,
                a=sides[0],
                b=sides[1],
                label=row["label"],
                significance=row["significance"] or "",
                about=row["topic"] or "",
                topic=_topic(question),
                reasoning=row["reasoning"] or "",
            )
        )
    levels, labels = list(audit.pack.significance_levels), domain.order
    return sorted(found, key=lambda case: seriousness(case, levels, labels))


def seriousness(case: DisagreementCase, levels: Sequence[str], labels: Sequence[str]) -> tuple[int, int, str, str, str]:
    """What cases are sorted by: significance, then label, the most serious first, then question and sources."""
    level = levels.index(case.significance) if case.significance in levels else -1
    return -level, -labels.index(case.label) if case.label in labels else 1, case.question, *case.sources


def _topic(question: Question) -> str:
    for facet in ("topic", "group"):
        if values := [value for value in facet_values(question.facets, facet) if value]:
            return ", ".join(values)
    return ""


def same_sides(before: DisagreementCase, now: DisagreementCase) -> tuple[tuple[SideWords, SideWords], ...]:
    """The sides of a case then and now, source by source: a judge may see them in another order the next time."""
    turned = before.a.source == now.b.source or before.b.source == now.a.source
    return ((before.b, now.a), (before.a, now.b)) if turned else ((before.a, now.a), (before.b, now.b))


def what_changed(before: DisagreementCase, now: DisagreementCase, name: Callable[[str], str] = str) -> tuple[str, ...]:
    """What is another than it was when a case was decided, in words; white space and typography do not count."""
    told = []
    for old, new in same_sides(before, now):
        other = same_answer_form(old.answer) != same_answer_form(new.answer), not same_quotes(old, new)
        parts = [what for what, differs in zip(("the answer", "the quote"), other, strict=True) if differs]
        if parts:
            told.append(f"{' and '.join(parts)} of {name(new.source)} changed")
    if before.label != now.label:
        told.append(f"the label changed from {before.label} to {now.label}")
    return tuple(told)


def same_quotes(old: SideWords, new: SideWords) -> bool:
    """Whether a source is quoted in the same words; typography does not count."""
    ours, theirs = (
        [[for_quote_matching(each).text for each in words] for words in (side.quotes, side.not_found)]
        for side in (old, new)
    )
    return ours == theirs


def worklist(
    audit: Audit,
    cases: Sequence[DisagreementCase],
    decisions: Mapping[str, CaseDecision],
    *,
    reference: Collection[str] = (),
) -> list[WorklistRow]:
    """The cases of an audit with the newest decision on each: open work first, the most serious first.

    With a `reference` (the team's own protocol), cases in which it is contradicted come before all others. Decided
    cases on which the audit's sources disagree no more come last.
    """
    rows = []
    for case in cases:
        decision = decisions.get(case.id)
        changes = what_changed(decision.seen, case, audit.names.short) if decision else ()
        rows.append(
            WorklistRow(
                case=case,
                state=_state(decision, changes),
                decision=decision,
                changes=changes if decision and decision.status in CLOSED else (),
                against_reference=is_against(case, reference),
            )
        )
    there = {case.id for case in cases}
    asked = {question.id: question for question in audit.questions}
    sources = {source.id for source in audit.sources}
    for name, decision in decisions.items():
        seen = decision.seen
        question = asked.get(seen.question)
        here = question is not None and sources.issuperset(seen.sources) and case_id(question, *seen.sources) == name
        if here and name not in there:
            rows.append(WorklistRow(case=seen, state="gone", decision=decision))
    return sorted(rows, key=lambda row: (row.state == "gone", row.state == "closed", not row.against_reference))


def lost_note(audit: Audit, decisions: Mapping[str, CaseDecision], before: Audit | None = None) -> str:
    """Which decided cases can't be found again because this audit has no source of that id; empty where all can be.

    The earlier audit, where it is known, tells which source is probably the same under another id.
    """
    asked = {question.id for question in audit.questions}
    there = {source.id for source in audit.sources}
    lost = [
        each for each in decisions.values() if each.seen.question in asked and not there.issuperset(each.seen.sources)
    ]
    if not lost:
        return ""
    missing = sorted({source for each in lost for source in each.seen.sources} - there)
    now = renamed_sources(before, audit) if before is not None else {}
    told = [f"{old} (now probably {now[old]})" if old in now else old for old in missing]
    count = f"{len(lost):,} decided {'case was' if len(lost) == 1 else 'cases were'}"
    return (
        f"warning: {count} not found again, because the audit has no source with the id {some_of(told, _NAMED)}. Cases "
        "follow a document's id: import a new edition under the id of the old one"
    )


def renamed_sources(before: Audit, after: Audit) -> dict[str, str]:
    """Sources of the earlier audit only, with the one new source of the same text, or of the same institution."""
    old = [each for each in before.sources if each.id not in {source.id for source in after.sources}]
    new = [each for each in after.sources if each.id not in {source.id for source in before.sources}]
    found = {}
    for each in old:
        same = [other.id for other in new if each.text_sha256 and other.text_sha256 == each.text_sha256]
        mine = before.names[each.id].institution
        near = [other.id for other in new if mine and after.names[other.id].institution == mine]
        match = same or near
        if len(match) == 1:
            found[each.id] = match[0]
    return found


def _state(decision: CaseDecision | None, changes: Sequence[str]) -> CaseState:
    if decision is None:
        return "new"
    if decision.status in CLOSED:
        return "reopened" if changes else "closed"
    return "escalated" if decision.status == "escalated" else "open"


def count_states(rows: Iterable[WorklistRow]) -> dict[CaseState, int]:
    """How many cases are in each state."""
    counts: dict[CaseState, int] = dict.fromkeys(STATES, 0)
    for row in rows:
        counts[row.state] += 1
    return counts


def is_against(case: DisagreementCase, reference: Collection[str]) -> bool:
    """Whether one side of the case is the reference and the other is not."""
    return (case.a.source in reference) != (case.b.source in reference)


class Opponent(Struct, frozen=True, kw_only=True):
    """How often one source disagrees with the reference: by the strongest label, by significance, and in all."""

    source: str
    strongest: int
    serious: int
    cases: int


def opponents(cases: Iterable[DisagreementCase], reference: Collection[str], audit: Audit) -> list[Opponent]:
    """Who disagrees with the reference: most often by the strongest label first, then seriously, then at all."""
    label = RelationLabels.of(audit.pack.labels).order[-1]
    level = audit.pack.significance_levels[-1] if audit.pack.significance_levels else ""
    found: dict[str, list[int]] = {}
    for case in cases:
        if is_against(case, reference):
            other = next(name for name in case.sources if name not in reference)
            counts = found.setdefault(other, [0, 0, 0])
            counts[0] += case.label == label
            counts[1] += bool(level) and case.significance == level
            counts[2] += 1
    ranked = sorted(found.items(), key=lambda each: ([-count for count in each[1]], each[0]))
    return [Opponent(source=name, strongest=n[0], serious=n[1], cases=n[2]) for name, n in ranked]


def find_reference(audit: Audit, wanted: str) -> frozenset[str]:
    """The sources that are the reference, by id, title or the value of a facet such as the institution; none for ""."""
    if not wanted:
        return frozenset()
    name = wanted.strip().casefold()
    shown = frozenset(each.id for each in audit.names if name in (each.short.casefold(), each.full.casefold()))
    if shown and len(shown) < len(audit.sources):
        return shown
    for names_of in (_names, _facets):
        found = frozenset(source.id for source in audit.sources if name in map(str.casefold, names_of(source)))
        if found and len(found) < len(audit.sources):
            return found
    raise UsageError(
        f"the reference {wanted!r} is not a source of this audit",
        fix=f"name one of: {some_of([each.short for each in audit.names], _NAMED)}",
    )


def _names(source: AuditSource) -> list[str]:
    return [source.id, source.title]


def _facets(source: AuditSource) -> list[str]:
    return [value for facet in source.facets for value in facet_values(source.facets, facet)]


# Files

FORMAT = "hoofbeat-decisions/1"
_CLOCKS_DIFFER = 86_400.0  # seconds


class DecisionsFile(Struct, kw_only=True):
    """Cases as they are exported: every version of every decision, and the worklist as it was then."""

    format: str
    decisions: list[CaseDecision]
    cases: list[WorklistRow] = field(default_factory=list)


def read_decisions(path: Path) -> list[CaseDecision]:
    """Every version of the decisions in a file that was exported as JSON; what nobody can have signed is refused."""
    try:
        found = msgspec.json.decode(read_bytes(path), type=DecisionsFile)
    except UNREADABLE as err:
        raise InputError(
            f"this is not a decisions file: {err}",
            where=str(path),
            fix="export it: hoofbeat audit cases -o FILE.json",
        ) from err
    if found.format != FORMAT:
        raise InputError(
            f"the decisions file has the format {found.format!r}", where=str(path), fix=f"this version reads {FORMAT}"
        )
    problems: list[str] = []
    earlier: set[tuple[str, int]] = set()
    for number, each in enumerate(found.decisions, start=1):
        if problem := _what_is_wrong(each, earlier):
            problems.append(f"decision {number} (case {each.case}, version {each.version}): {problem}")
        earlier.add((each.case, each.version))
    fix = "correct them, or export them again: hoofbeat audit cases -o FILE.json; nothing was written"
    refuse_lines(problems, path, fix, kind="decision")
    return found.decisions


def _what_is_wrong(decision: CaseDecision, earlier: Container[tuple[str, int]]) -> str:
    """Why nobody can have signed this; nothing where somebody can."""
    seen = decision.seen
    a, b = seen.sources
    if not decision.case == seen.id == _case_id(seen.question, seen.text, a, b):
        return "`seen` is not this case: its question or sources are others"
    if decision.version < 1:
        return "versions count from 1"
    if (decision.case, decision.version) in earlier:
        return "another decision has this version"
    if not decision.name.strip():
        return "`name` is empty, so nobody has signed it"
    if not 0 <= decision.at <= time() + _CLOCKS_DIFFER:
        return f"`at` is {decision.at:g}, which is in the future or before 1970"
    if decision.follow not in (seen.sources if decision.status == "follow" else ("",)):
        wanted = f"{a!r} or {b!r}" if decision.status == "follow" else f"empty for the status {decision.status}"
        return f"`follow` is {decision.follow!r}; it must be {wanted}"
    return ""


def decisions_json(decisions: Iterable[CaseDecision], rows: Sequence[WorklistRow] = ()) -> bytes:
    """Decisions as `read_decisions` reads them, with the worklist for other software."""
    versions = sorted(decisions, key=lambda each: (each.seen.question, each.case, each.version))
    content = DecisionsFile(format=FORMAT, decisions=versions, cases=list(rows))
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


COLUMNS = (
    "case", "state", "status", "follow", "owner", "local position", "note", "signed by", "signed at", "version",
    "changed since", "question", "question text", "topic", "source a", "source a id", "answer a", "quotes a",
    "quotes not found a", "source b", "source b id", "answer b", "quotes b", "quotes not found b", "label",
    "significance", "they differ in",
)  # fmt: skip


def worklist_cells(row: WorklistRow, names: SourceNames) -> list[str]:
    """A row of the worklist for a spreadsheet, under `COLUMNS`."""
    case, decision = row.case, row.decision
    signed = [""] * 8
    if decision is not None:
        signed = [
            decision.status, names.full(decision.follow) if decision.follow else "", decision.owner, decision.position,
            decision.note, decision.name, decision.date, str(decision.version),
        ]  # fmt: skip
    sides = [cell for side in (case.a, case.b) for cell in _cells(side, names)]
    return [
        case.id, row.state, *signed, "; ".join(row.changes), case.question, case.text, case.topic, *sides, case.label,
        case.significance, case.about,
    ]  # fmt: skip


def _cells(side: SideWords, names: SourceNames) -> tuple[str, ...]:
    quotes = ("\n".join(words) for words in (side.quotes, side.not_found))
    return names.full(side.source), side.source, side.answer, *quotes


def write_worklist(path: Path, rows: Iterable[WorklistRow], names: SourceNames) -> int:
    """The worklist as CSV that no spreadsheet runs; returns how many rows it has."""
    return write_csv(path, COLUMNS, (worklist_cells(row, names) for row in rows))
