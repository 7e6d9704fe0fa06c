"""Benchmarks: artefacts of questions that point into their sources. Recipes make them; every later stage reads them."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark import Benchmark, corpus_beside, write_benchmark
from hoofbeat.benchmarks.evidence import Found, find_quote, locate

__all__ = ["Benchmark", "Found", "corpus_beside", "find_quote", "locate", "write_benchmark"]
