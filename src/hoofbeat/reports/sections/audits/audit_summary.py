"""What an audit says on the first screen: how many, how silent, how often sources disagree, and how far to trust it."""

from __future__ import annotations

import polars

from hoofbeat.reports.model import Card
from hoofbeat.reports.sections.audits.audit_facts import AuditAnswers, AuditFacts
from hoofbeat.reports.sections.audits.audit_rates import RateIntervals, Span
from hoofbeat.reports.sections.audits.judge_trust import judged_by_answerer, mode_card
from hoofbeat.reports.words import count_of, model_name, written

SILENT = "Pairs with a silent source (R_abs)"
DISAGREEING = "Pairs that disagree where both speak (R_div)"
CONTESTED = "Questions with any disagreement"
"""What the three figures are called that every audit has."""


def summary(facts: AuditFacts, said: AuditAnswers) -> str:
    """The audit in a sentence of counts."""
    found = facts.found
    judge = model_name(facts.audit.artefact.manifest.models.get("judge", "an unnamed judge"))
    return (
        f"{count_of(len(facts.audit.sources), 'source')}, {count_of(len(facts.audit.questions), 'question')}, "
        f"{count_of(len(said.slim), 'answer')}, {count_of(found.pairs, 'pair')} of answers: {found.judged:,} with a "
        f"label ({facts.audit.mode} mode, by {judge}), {found.r_abs.count:,} absent because a source is silent, "
        f"{sum(found.failed.values()):,} without a label."
    )


def cards(facts: AuditFacts, said: AuditAnswers, spans: RateIntervals) -> tuple[Card, ...]:
    """The key figures."""
    found = facts.found
    failed = sum(found.failed.values())
    beside = f"; {failed:,} without a label" if failed else "; no pair without a label"

    def detail(span: Span, of: str, spread: tuple[float, float] | None) -> str:
        interval = f"95% interval {written(span, 'share')}, " if span else ""
        could = f" ({written(spread, 'share')} with them)" if spread else ""
        return f"{interval}{of}{beside}{could}"

    made = [
        Card(
            label="Sources asked",
            value=f"{len(facts.audit.sources):,}",
            detail=f"{count_of(len(facts.audit.questions), 'question')}, {count_of(len(said.slim), 'answer')}, "
            f"{count_of(found.pairs, 'pair')}",
        ),
        Card(
            label=SILENT,
            value=written(found.r_abs.value, "share"),
            detail=detail(spans.r_abs, f"n\u00a0=\u00a0{found.pairs:,} pairs", found.r_abs.sensitivity),
        ),
        Card(
            label=DISAGREEING,
            value=written(found.r_div.value, "share"),
            detail=detail(spans.r_div, f"n\u00a0=\u00a0{found.judged:,} judged pairs", found.r_div.sensitivity),
        ),
        Card(
            label=CONTESTED,
            value=written(found.any_div.value, "share"),
            detail=detail(
                spans.any_div,
                f"{found.any_div.count:,} of {found.any_div.of:,} questions",
                found.any_div.sensitivity,
            ),
        ),
    ]
    if found.r_div.count:
        top = facts.levels[-1]
        questions, pairs = _grave(facts, top)
        made.append(
            Card(
                label=f"Questions with a disagreement of {top} significance",
                value=f"{questions:,}",
                detail=f"of {found.any_div.count:,} with any; {count_of(pairs, 'pair')} of {found.r_div.count:,}",
            )
        )
    return (*made, mode_card(facts))


def _grave(facts: AuditFacts, level: str) -> tuple[int, int]:
    """On how many questions sources disagree with this significance, and in how many pairs."""
    text = {name: polars.col(name).cast(polars.String) for name in ("label", "significance")}
    chosen = text["label"].is_in(list(facts.domain.diverging)) & (text["significance"] == level)
    found = facts.frame.filter(chosen & polars.col("failure").is_null())
    counted = found.select(polars.col("question").n_unique(), polars.len()).collect().row(0)
    return int(counted[0]), int(counted[1])


def _uncompared(facts: AuditFacts) -> int:
    """How many questions have no pair at all."""
    compared = set(facts.pairs.questions)
    return sum(question.id not in compared for question in facts.audit.questions)


def notes(facts: AuditFacts) -> tuple[str, ...]:
    """What a reader must know before the figures: questions without a pair, and a judge that judges itself."""
    told = []
    alone = _uncompared(facts)
    if alone:
        told.append(
            f"{count_of(alone, 'question')} of {len(facts.audit.questions):,} went to fewer than two sources: nothing "
            "could be compared, and no disagreement found, on them. They count among the questions."
        )
    if judged_by_answerer(facts):
        told.append(
            "The judge is the model that wrote the answers: it may find its own wordings alike and miss its own errors."
        )
    return tuple(told)
