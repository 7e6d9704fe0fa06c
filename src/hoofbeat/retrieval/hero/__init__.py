"""HERO-QA's retrieval: the evidence of one source at a time, found layer by layer, with a trace of every layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.retrieval.hero.hero_engine import Hero
    from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence, HeroTrace, SourceEvidence, explain
    from hoofbeat.retrieval.hero.hero_signals import HeroRanking, HeroSettings

__all__ = ["Hero", "HeroEvidence", "HeroRanking", "HeroSettings", "HeroTrace", "SourceEvidence", "explain"]

__getattr__ = lazy_names(
    __name__,
    {
        "hero_engine": "Hero",
        "hero_evidence": "HeroEvidence HeroTrace SourceEvidence explain",
        "hero_signals": "HeroRanking HeroSettings",
    },
)
