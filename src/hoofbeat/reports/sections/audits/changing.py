"""The change between two audits for the first screen: its figures, and in a sentence whether it is only visible now."""

from __future__ import annotations

from hoofbeat.audit.findings.prevalence_intensity import PrevalenceIntensity
from hoofbeat.findings.intervals import Interval
from hoofbeat.reports.model import Card
from hoofbeat.reports.words import count_of, written

__all__ = ["change_cards", "change_in_words"]


def change_cards(found: PrevalenceIntensity, about: str = "") -> tuple[Card, ...]:
    """Silence, disagreement of the same pairs and questions, what became visible; `about` begins each detail."""
    pairs, questions = count_of(found.pairs_in_both, "pair"), count_of(found.questions, "question")
    shown = (
        ("Pairs with a silent source (R_abs)", found.r_abs, questions),
        ("Pairs that disagree, of those judged in both (intensity)", found.intensity, pairs),
        ("Questions with any disagreement (pct_any_div)", found.any_div, questions),
        ("The same at fixed coverage (prevalence)", found.prevalence, questions),
    )
    cards = [
        Card(
            label=what,
            value=f"{written(change.before, 'share')} → {written(change.after, 'share')}",
            detail=f"{about}{_told(change.change, change.interval)}, n\u00a0=\u00a0{of}",
        )
        for what, change, of in shown
    ]
    visible = Card(
        label="Questions whose disagreement only one audit could see (by coverage)",
        value=f"{written(found.by_coverage, 'points')} points",
        detail=f"{about}{_told(found.by_coverage, found.by_coverage_interval)}, n\u00a0=\u00a0{questions}",
    )
    return (*cards, visible)


def change_in_words(found: PrevalenceIntensity) -> str:
    """Whether pairs that both audits judged disagree more, and how much comes from pairs that only one could judge."""
    stronger = found.intensity
    if stronger.change is None:
        return "No pair was judged in both audits, so whether disagreement became stronger can't be told."
    span = stronger.interval
    clear = "clearly more often" if span and span.low > 0 else "clearly less often" if span and span.high < 0 else ""
    same = f"disagree {clear}" if clear else "show no clear change"
    return (
        f"Pairs judged in both audits {same}: {_told(stronger.change, span)}. Questions with any disagreement changed "
        f"by {written(found.any_div.change, 'points')} points, of which {written(found.prevalence.change, 'points')} "
        f"come from those pairs and {written(found.by_coverage, 'points')} from pairs that only one audit judged."
    )


def _told(change: float | None, span: Interval | None) -> str:
    """A change in words, with its interval where it has one."""
    interval = f" (95% interval {written((span.low, span.high), 'points')})" if span else ""
    return f"{written(change, 'points')} points{interval}" if change is not None else "no change can be told"
