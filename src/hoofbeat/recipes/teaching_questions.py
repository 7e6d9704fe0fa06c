"""The teaching benchmark: the questions planted in the teaching set, tied to an imported corpus of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat import teaching
from hoofbeat.benchmarks.benchmark import Benchmark, write_benchmark
from hoofbeat.benchmarks.text_overlap import locate
from hoofbeat.corpus import Corpus
from hoofbeat.records import Question, Step
from hoofbeat.store import Artefact, Counts, InputRef
from hoofbeat.store.artefact import file_reference

SEARCH = "search"
"""The edition whose questions are short searches in other words: whole cases are found by any retriever."""

_LINEAGE = (Step(name="teaching set", note="invented question, written with its case"),)


def build_teaching(corpus: Corpus, target: Path, *, command: Sequence[str] = ()) -> Artefact:
    """Questions of the teaching cases that the corpus holds; each rejection says why."""
    held = set(corpus.ids())
    questions: list[Question] = []
    reasons: Counter[str] = Counter()
    for case in teaching.cases():
        if case.id not in held:
            reasons["the corpus does not hold the case"] += 1
        elif case.trap in ("promotional", "retracted", "near-duplicate", "standard-procedure"):
            reasons[f"trap: {case.trap}"] += 1
        elif case.question is None:
            reasons["the case has no question"] += 1
        else:
            document = corpus.get(case.id)
            spans = [locate(document, quote) for quote in case.question.evidence]
            if None in spans or not spans:
                reasons["the evidence is not found in the source"] += 1
                continue
            questions.append(
                Question(
                    id=f"q-{case.id}",
                    text=case.question.text,
                    context=case.question.context,
                    answer=case.question.answer,
                    documents=(case.id,),
                    evidence=tuple(span for span in spans if span is not None),
                    facets={"specialty": case.specialty, "rare": "yes" if case.rare else "no"},
                    lineage=_LINEAGE,
                )
            )
    searches = teaching.case_searches()
    short = [replace(each, text=searches[each.documents[0]], context="") for each in questions]
    rejected = sum(reasons.values())
    return write_benchmark(
        target,
        questions,
        title="teaching cases (invented)",
        inputs=[corpus.artefact.reference()],
        counts=Counts(kept=len(questions), rejected=rejected, reasons=dict(sorted(reasons.items()))),
        command=command,
        settings={"recipe": "teaching"},
        editions={SEARCH: short} if short else {},
    )


def teaching_patient_questions() -> list[Question]:
    """The 24 patient questions as records; `group` says which sources are asked."""
    return [
        Question(id=item.id, text=item.text, facets={"group": item.group, "topics": list(item.topics)})
        for item in teaching.patient_questions()
    ]


def named_questions(name: str) -> tuple[list[Question], list[InputRef]]:
    """The questions of an audit, and what they are from: a benchmark folder, `teaching`, or `teaching:PACK`.

    A file is a list of questions in any format that `benchmark import` knows.
    """
    if name == "teaching":
        return teaching_patient_questions(), []
    if name.startswith("teaching:"):
        return teaching.example(name.removeprefix("teaching:")).asked(), []
    if Path(name).is_file():
        from hoofbeat.benchmarks.benchmark_import import read_questions  # noqa: PLC0415 - only for lists in a file

        return read_questions(Path(name)), [file_reference(Path(name))]
    bench = Benchmark.open(Path(name))
    return bench.questions, [bench.artefact.reference()]
