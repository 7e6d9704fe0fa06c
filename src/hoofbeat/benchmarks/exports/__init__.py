"""Benchmarks out again, in the formats that others read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from hoofbeat.benchmarks.benchmark import Benchmark
from hoofbeat.benchmarks.exports.bundle import Bundle
from hoofbeat.benchmarks.exports.harnesses import write_inspect, write_lm_eval
from hoofbeat.benchmarks.exports.papers import write_clinbench, write_cupcase, write_ogcare, write_sourceqa
from hoofbeat.benchmarks.exports.public import (
    write_as_beir,
    write_as_r2med,
    write_croissant,
    write_datasheet,
    write_hub,
    write_own,
)
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact

__all__ = ["FORMATS", "Format", "export_benchmark"]

KIND = "export"


class Format(Struct, frozen=True):
    """One export format: what it is, how it is written, and whether it takes the documents along."""

    about: str
    write: Callable[[Bundle, Path], int]
    needs_corpus: bool = False


FORMATS: dict[str, Format] = {
    "jsonl": Format("Hoofbeat's own questions and judgments", write_own),
    "beir": Format("BEIR: corpus, queries, qrels", write_as_beir, needs_corpus=True),
    "r2med": Format("R2MED: query, corpus, qrels", write_as_r2med, needs_corpus=True),
    "ogcare": Format("OGCaReBench: CSV and JSON", write_ogcare),
    "cupcase": Format("CUPCase: CSV", write_cupcase),
    "clinbench": Format("ClinBench: JSON, text and images", write_clinbench),
    "sourceqa": Format("TransplantQA: the questions as JSON", write_sourceqa),
    "lm-eval": Format("a task folder for lm-evaluation-harness", write_lm_eval),
    "inspect": Format("a task file for Inspect", write_inspect),
    "huggingface": Format("Parquet, a card, a datasheet, Croissant", write_hub),
    "croissant": Format("Croissant 1.1 metadata over JSON lines, and a datasheet", write_croissant),
    "datasheet": Format("the datasheet alone", write_datasheet),
}
"""The export formats by name."""


def export_benchmark(
    bench: Benchmark, target: Path, form: str, *, corpus: Corpus | None = None, command: Sequence[str] = ()
) -> Artefact:
    """Write a benchmark in one of `FORMATS`, into a folder of its own."""
    if form not in FORMATS:
        raise UsageError(f"there is no export format {form!r}", fix=f"use one of: {', '.join(FORMATS)}")
    if not bench.questions:
        raise InputError("this benchmark holds no questions", where=str(bench.artefact.path), fix="build it again")
    bundle = Bundle(bench, corpus)
    with create(target, replace_kind=KIND) as draft:
        count = FORMATS[form].write(bundle, draft.path)
        inputs = [bench.artefact.reference(), *([corpus.artefact.reference()] if corpus else [])]
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{form} export",
                command=list(command),
                inputs=inputs,
                settings={"format": form, **({"edition": bench.edition} if bench.edition else {})},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target, KIND)
