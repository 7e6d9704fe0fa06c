"""HERO-QA's retrieval: the evidence of one source at a time, found layer by layer, with a trace of every layer."""

from __future__ import annotations

from hoofbeat.retrieval.hero.engine import Hero
from hoofbeat.retrieval.hero.evidence import HeroEvidence, explain
from hoofbeat.retrieval.hero.settings import HeroSettings
from hoofbeat.retrieval.hero.signals import HeroRanking
from hoofbeat.retrieval.hero.trace import HeroTrace

__all__ = ["Hero", "HeroEvidence", "HeroRanking", "HeroSettings", "HeroTrace", "explain"]
