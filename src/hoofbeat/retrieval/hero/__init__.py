"""HERO-QA's retrieval: the evidence of one source at a time, found layer by layer, with a trace of every layer."""

from __future__ import annotations

from hoofbeat.retrieval.hero.hero_engine import Hero
from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence, HeroTrace, explain
from hoofbeat.retrieval.hero.hero_settings import HeroSettings
from hoofbeat.retrieval.hero.hero_signals import HeroRanking

__all__ = ["Hero", "HeroEvidence", "HeroRanking", "HeroSettings", "HeroTrace", "explain"]
