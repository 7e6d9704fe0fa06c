"""HERO-QA's retrieval: the evidence of one source at a time, found layer by layer, with a trace of every layer."""

from __future__ import annotations

from hoofbeat.retrieval.hero.engine import Hero
from hoofbeat.retrieval.hero.evidence import Evidence, explain
from hoofbeat.retrieval.hero.settings import SPEC, HeroSettings
from hoofbeat.retrieval.hero.signals import HeroRanked
from hoofbeat.retrieval.hero.trace import HeroTrace

__all__ = ["SPEC", "Evidence", "Hero", "HeroRanked", "HeroSettings", "HeroTrace", "explain"]
