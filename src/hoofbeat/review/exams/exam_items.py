"""An exam from a benchmark: every question that can be asked becomes an item that tells nothing of its answer."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from hoofbeat.answering.protocols import FREE, option_trouble
from hoofbeat.answering.question_images import check_images
from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.records import Question
from hoofbeat.review.exams.exam_assignment import FORM, ExamRules
from hoofbeat.review.review_records import ItemMaterial, ReviewItem, Study
from hoofbeat.store.atomic_files import slug
from hoofbeat.store.tables import content_sha256


def exam_study(
    benchmark: Path,
    *,
    per_person: int = 0,
    inside: float = 0.5,
    minutes: float = 0.0,
    stages: Sequence[int] = (),
    seed: int = 0,
    title: str = "",
    edition: str = "",
    facet: str = "specialty",
    literature: bool = True,
) -> tuple[Study, list[ReviewItem]]:
    """An exam on a benchmark, and its items: multiple choice where a question has options, else free text.

    A question whose options can't be told apart is left out, and counted in the settings; one without an answer can't
    be scored and is left out as well.
    """
    bench = Benchmark.open(benchmark, edition)
    check_images(bench.artefact, bench.questions)
    asked = [question for question in bench.questions if question.answer and not _trouble(question)]
    if not asked:
        raise InputError(
            "no question of this benchmark can be asked in an exam",
            where=str(benchmark),
            fix="name a benchmark whose questions have answers",
        )
    if per_person > len(asked):
        raise UsageError(
            f"{per_person} questions a person are more than the {len(asked)} there are", fix=f"give {len(asked)} or 0"
        )
    rules = ExamRules(
        per_person=per_person,
        inside=inside,
        minutes=minutes,
        stages=tuple(stages),
        literature=literature,
        images=any(question.images for question in asked),
        facet=facet,
        seed=seed,
    )
    reference = bench.artefact.reference()
    identity = content_sha256([reference.sha256, edition, rules.recorded(), title])
    study = Study(
        id=f"{slug(bench.artefact.path.name)[:40]}-{FORM}-{identity[:6]}",
        title=title or f"Exam ({bench.artefact.manifest.title or bench.artefact.path.name})",
        form=FORM,
        source=bench.artefact.path.name,
        source_sha256=reference.sha256,
        settings={
            "of": bench.artefact.manifest.kind,
            "seed": seed,
            "edition": edition,
            "left_out": len(bench.questions) - len(asked),
            FORM: rules.recorded(),
        },
    )
    return study, [_item(study, place, question, rules) for place, question in enumerate(asked)]


def _trouble(question: Question) -> bool:
    return bool(question.options) and (
        option_trouble(question, "letter") is not None or question.answer not in question.options
    )


def _item(study: Study, place: int, question: Question, rules: ExamRules) -> ReviewItem:
    """A question under a code; all of it stands in the key, which no page shows."""
    shown = [ItemMaterial(title="Case", text=question.context, kind="case")] if question.context else []
    shown.append(ItemMaterial(title="Question", text=question.text, kind="question"))
    if question.options:
        shown.append(ItemMaterial(title="Options", kind="options", lines=question.options))
    groups = facet_values(question.facets, rules.facet)
    first = next(iter(groups), "")
    return ReviewItem(
        id=hashlib.blake2b(f"{study.id}\0{question.id}".encode(), digest_size=6).hexdigest(),
        study=study.id,
        place=place,
        shown=tuple(shown),
        key={"question": msgspec.to_builtins(question), "images": list(question.images), "groups": groups},
        stratum=first,
        group=first,
    )


def question_of(item: ReviewItem) -> Question:
    """The benchmark's question behind an item."""
    return msgspec.convert(item.key["question"], Question)


def protocol_of(question: Question) -> str:
    """How its answer is taken: by letter, or in free text."""
    return "letter" if question.options else FREE
