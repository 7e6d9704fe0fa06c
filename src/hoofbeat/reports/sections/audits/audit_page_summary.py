"""An audit in plain sentences, for one page: for a committee that decides what to do about disagreements."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.audit.audit_doubts import doubt_words
from hoofbeat.audit.case_records import CaseDecision, WorklistRow, newest
from hoofbeat.audit.disagreement_cases import count_states, read_cases, worklist
from hoofbeat.audit.findings.serious_divergence import SeriousPair
from hoofbeat.findings.caveats import cut_warnings
from hoofbeat.reports.model import PlainSummary
from hoofbeat.reports.sections.audits.audit_facts import AuditFacts, question_texts
from hoofbeat.reports.sections.audits.audit_summary import RateIntervals
from hoofbeat.reports.sections.audits.judge_trust import judged_by_answerer
from hoofbeat.reports.tables import MIN_OBSERVATIONS, count_of, judge_name
from hoofbeat.text import cut, some_of

_INVENTED = "(invented)"
"""How the teaching material marks its institutions; short names leave it out."""

_NAMED = 6
_SERIOUS = 3
_ALL_DECIDED = ("Nothing has to be decided now. Repeat the audit when a source changes.",)


def audit_page_summary(
    facts: AuditFacts,
    spans: RateIntervals,
    serious: Sequence[SeriousPair],
    subject: str,
    doubts: tuple[str, ...] = (),
    decisions: Sequence[CaseDecision] | None = None,
) -> PlainSummary | None:
    """The page; None where nothing could be compared.

    `doubts` are why the audit can't tell that its sources agree; `decisions` are what a team decided on disagreements.
    """
    if not facts.found.pairs:
        return None
    rows = [] if decisions is None else worklist(facts.audit, read_cases(facts.audit), newest(decisions))
    settled = {(row.case.question, frozenset(row.case.sources)) for row in rows if row.state == "closed"}
    undecided = [pair.question for pair in serious if (pair.question, frozenset(pair.order)) not in settled]
    waiting = [row.case.question for row in rows if row.state not in ("closed", "gone")]
    return PlainSummary(
        title=f"Do the sources agree? {subject}",
        subtitle=f"Folder: {facts.audit.artefact.path.name}.",
        warning=" ".join(filter(None, (doubt_words(doubts), *cut_warnings([facts.audit.artefact])))),
        asked=_asked(facts),
        found=_found(facts, serious),
        sure=_sure(facts, spans),
        decided=_decided(facts, rows),
        todo=_ALL_DECIDED if settled and not (undecided or waiting) else _todo([*undecided, *waiting], doubts),
        limits=(
            "It does not say which source is right.",
            "A source counts as silent where no answer was found in what was read of it. It may still hold one.",
            "It is not advice on the care of any patient.",
        ),
    )


def _asked(facts: AuditFacts) -> tuple[str, ...]:
    names = [facts.names.short(source.id) for source in facts.audit.sources]
    invented = any(_INVENTED in facts.names.full(source.id) for source in facts.audit.sources)
    return (
        *(("The institutions and their documents are invented, to show what an audit finds.",) if invented else ()),
        f"{count_of(len(facts.audit.questions), 'question')} went to each of {count_of(len(names), 'source')}: "
        f"{some_of(names, _NAMED)}.",
        "A language model answered from each source alone. Then a language model compared the answers of every two "
        f"sources ({judge_name(facts.audit.artefact.manifest.models)}).",
    )


def _found(facts: AuditFacts, serious: Sequence[SeriousPair]) -> tuple[str, ...]:
    found, texts = facts.found, question_texts(facts.audit.questions)
    told = [
        f"Sources disagree on {found.any_div.count:,} of {count_of(found.any_div.of, 'question')}, in "
        f"{found.r_div.count:,} of the {count_of(found.judged, 'pair')} of answers that could be compared.",
        f"In {found.r_abs.count:,} of {count_of(found.pairs, 'pair')} a source does not address the question.",
    ]
    for pair in serious[:_SERIOUS]:
        level = f", {pair.significance} significance" if pair.significance else ""
        told.append(
            f"“{cut(texts.get(pair.question, pair.question), 130)}”: {facts.names.both(*pair.order)} "
            f"({pair.label.lower()}{level}; {pair.question})."
        )
    return tuple(told)


def _sure(facts: AuditFacts, spans: RateIntervals) -> tuple[str, ...]:
    found, told = facts.found, []
    if spans.r_div and len(facts.audit.questions) >= MIN_OBSERVATIONS:
        low, high = (round(100 * each) for each in spans.r_div)
        told.append(
            f"On questions like these, {low}% to {high}% of pairs probably disagree (95% interval from "
            f"{count_of(len(facts.audit.questions), 'question')})."
        )
    else:
        told.append(
            f"{count_of(len(facts.audit.questions), 'question')} are too few to say how often sources disagree."
        )
    if failed := sum(found.failed.values()):
        told.append(f"{count_of(failed, 'comparison')} failed and count in no figure.")
    told.append("The comparison was made by a language model, and language models err.")
    if judged_by_answerer(facts):
        told.append("The same model wrote the answers: it may miss its own errors.")
    return tuple(told)


def _decided(facts: AuditFacts, rows: Sequence[WorklistRow]) -> tuple[str, ...]:
    """How many disagreements are decided, and what was decided on the most serious of them."""
    if not rows:
        return ()
    counts = count_states(rows)
    present = len(rows) - counts["gone"]
    told = [f"{counts['closed']:,} of {count_of(present, 'disagreement')} between two sources are decided and closed."]
    waiting = {name: counts[name] for name in ("escalated", "reopened") if counts[name]}
    told += [f"{count:,} {'is' if count == 1 else 'are'} {name}." for name, count in waiting.items()]
    signed = [(row.case, row.decision) for row in rows if row.decision is not None and row.state != "gone"]
    for case, decision in signed[:_SERIOUS]:
        parts = [decision.status_words(facts.names.short), decision.position.rstrip(". ")]
        words = "; ".join(filter(None, (*parts, f"owner: {decision.owner}" if decision.owner else "")))
        told.append(
            f"“{cut(case.text, 100)}” ({facts.names.both(*case.sources)}): {words}. Signed by {decision.name}, "
            f"{decision.date[:10]}."
        )
    return tuple(told)


def _todo(questions: Sequence[str], doubts: tuple[str, ...]) -> tuple[str, ...]:
    if doubts and not questions:
        return (
            "Take no decision from this audit: that it lists no disagreement does not mean that the sources agree.",
            "Repeat it with a stronger model, or with more sources and questions. Check the quotations in the sources.",
        )
    if not questions:
        return ("Nothing has to be decided. Repeat the audit when a source changes.",)
    asked = some_of(list(dict.fromkeys(questions)), _SERIOUS)
    if doubts:
        return (
            "Take no decision from this audit alone: first read what each source itself says.",
            f"Begin with these questions: {asked}.",
            "Repeat the audit with a stronger model.",
        )
    return (
        f"Take the most serious questions first: {asked}. The report shows both answers and the passages behind them.",
        "Check each quotation in the source itself before anything is changed.",
        "Decide for each disagreement which position holds locally, who owns it and when it is checked again.",
    )
