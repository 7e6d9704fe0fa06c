"""Benchmarks: artefacts of questions that point into their sources. Recipes make them; every later stage reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.benchmarks.benchmark import Benchmark, corpus_beside, write_benchmark
    from hoofbeat.benchmarks.text_overlap import QuoteMatch, find_quote, locate

__all__ = ["Benchmark", "QuoteMatch", "corpus_beside", "find_quote", "locate", "write_benchmark"]

__getattr__ = lazy_names(
    __name__,
    {
        "benchmark": "Benchmark corpus_beside write_benchmark",
        "text_overlap": "QuoteMatch find_quote locate",
    },
)
