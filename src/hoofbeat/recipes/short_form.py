"""A benchmark with fewer questions that ranks systems alike, tested on systems or questions that did not choose it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import COLLECTION, KIND, edition_file
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.errors import UsageError
from hoofbeat.findings.answer_check import examinee_scores
from hoofbeat.findings.benchmark_size import (
    MIN_RANKED,
    ShortForm,
    complete_matrix,
    enough_to_rank,
    form_of,
    short_forms,
)
from hoofbeat.recipes.answered_folders import read_answered
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import copy_inside
from hoofbeat.store.tables import write_jsonl

TAU = 0.9
"""How alike systems are to be ranked, where no number of questions is given."""


class ShortenedBenchmark(Struct, frozen=True, kw_only=True):
    """A short benchmark, how many systems chose it, and how each size did where it was tested (none with few)."""

    artefact: Artefact
    systems: int
    tested: tuple[ShortForm, ...]


def shorten_benchmark(
    bench: Benchmark,
    answered: Sequence[Path],
    target: Path,
    *,
    questions: int | None = None,
    seed: int = 0,
    command: Sequence[str] = (),
) -> ShortenedBenchmark:
    """Write a benchmark with some of the questions of another, chosen by the answers of several systems.

    Without a number, the smallest size that ranks alike (τ of `TAU` or more, as every larger one) is taken.
    """
    read = read_answered(answered, bench.questions)
    matrix = complete_matrix(examinee_scores(read.outcomes))
    n = len(matrix.questions)
    sizes = sorted({round(share * n / 10) for share in range(1, 10)} | ({questions} if questions else set()))
    tested = short_forms(matrix, sizes, seed=seed)
    if questions is None:
        found = enough_to_rank(tested, TAU)
        if found is None:
            few = len(matrix.systems) < MIN_RANKED
            raise UsageError(
                f"{len(matrix.systems)} systems are too few to test short forms"
                if few
                else f"no shorter benchmark ranks the systems as all questions do (Kendall's τ of {TAU} or more)",
                fix="say how many questions to keep: --questions N",
            )
        questions = found.questions
    kept = {matrix.questions[place] for place in form_of(matrix, questions, seed)}
    artefact = _written(bench, kept, target, tested, seed, [*command], read.inputs)
    return ShortenedBenchmark(artefact=artefact, systems=len(matrix.systems), tested=tuple(tested))


def _written(
    bench: Benchmark,
    kept: set[str],
    target: Path,
    tested: Sequence[ShortForm],
    seed: int,
    command: list[str],
    inputs: Sequence[InputRef],
) -> Artefact:
    artefact = bench.artefact
    with create(target, replace_kind=KIND) as draft:
        for name in ("", *bench.editions()):
            questions = [each for each in Benchmark(artefact, name).questions if each.id in kept]
            write_jsonl(draft.path / edition_file(name), questions)
            _copy(artefact, {image for each in questions for image in each.images}, draft.path)
        grades = {question: grades for question, grades in Benchmark(artefact).qrels().items() if question in kept}
        if grades:
            write_qrels(draft.path / "qrels.tsv", grades, "beir")
        _copy(artefact, {COLLECTION} if artefact.has(COLLECTION) else set(), draft.path)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(kept)} questions of {artefact.manifest.title}",
                command=command,
                inputs=[
                    artefact.reference(),
                    *(ref for ref in artefact.manifest.inputs if ref.kind == "corpus"),
                    *inputs,
                ],
                seeds={"short form": seed},
                settings={"questions": len(kept), **({"edition": bench.edition} if bench.edition else {})},
                counts=Counts(kept=len(kept)),
                metrics={"short forms": [msgspec.to_builtins(each) for each in tested]},
            )
        )
    return open_artefact(target, KIND)


def _copy(artefact: Artefact, names: set[str], folder: Path) -> None:
    for name in sorted(names):
        copy_inside(artefact.file(name), name, folder)
