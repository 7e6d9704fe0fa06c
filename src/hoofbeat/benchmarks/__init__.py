"""Benchmarks: artefacts of questions that point into their sources. Recipes make them; every later stage reads them."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark import Benchmark, write_benchmark
from hoofbeat.benchmarks.evidence import locate

__all__ = ["Benchmark", "locate", "write_benchmark"]
