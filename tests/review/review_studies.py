"""A study of every form, made from the folders of the tests; what those lack is written by hand beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from hoofbeat.corpus import Corpus
from hoofbeat.judging.aspects.error_type import ERROR_TYPE
from hoofbeat.judging.aspects.failure_mode import FAILURE_MODE
from hoofbeat.recipes.papers.r2med import CRITERIA as THREE_CRITERIA
from hoofbeat.recipes.papers.sourceqa import CRITERIA as QUESTION_CRITERIA
from hoofbeat.recipes.recipe_items import RejectedItem
from hoofbeat.recipes.review_tasks import FLAGGED, ReviewTask
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.review.review_records import Assignment, Person, PersonRole, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.review.study_items import study_from
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl, write_tsv

__all__ = ["ANSWERS", "FORMS", "assigned", "further_benchmark", "further_judgments", "study_of", "task_folders"]

FORMS = (
    "likert",
    "leak",
    "distractors",
    "three-criteria",
    "three-criteria-expert",
    "two-level-1",
    "two-level-2",
    "revision",
    "pair",
    "equivalence",
    "failure-mode",
    "error-type",
    "error-analysis",
    "question",
    "duplicate",
)
"""Every form but the exam's."""

_FOLDERS = {
    "three-criteria-expert": "bench-2",
    "revision": "bench-2",
    "question": "bench-2",
    "duplicate": "bench-2",
    "pair": "audit",
    "equivalence": "run",
    "failure-mode": "judged-2",
    "error-type": "judged-2",
    "error-analysis": "judged",
}

ANSWERS: dict[str, dict[str, Any]] = {
    "likert": {"medical alignment": "4", "need for expertise": "5"},
    "leak": {"diagnosis is right": "yes", "diagnosis is not mentioned": "no", "nothing after the diagnosis": "yes"},
    "distractors": {"no distractor is the diagnosis": "yes"},
    "three-criteria": {"query": "ok", "reasoning": "flag", "flagged reasoning": "A step is missing.", "support": "ok"},
    "three-criteria-expert": {"query": "keep", "reasoning": "exclude", "support": "keep"},
    "two-level-1": {"missing information": "pass", "options overlap": "finding", "what overlaps": "B is A."},
    "two-level-2": {
        "clarity": "pass",
        "clinical rationality": "pass",
        "factual accuracy": "finding",
        "what is not right": "The dose.",
        "options appropriate": "pass",
    },
    "revision": {"revision": "leave", "note": "Neither would help."},
    "pair": {"label": "Divergent", "significance": "high"},
    "equivalence": {"label": "mismatch"},
    "failure-mode": {"label": "qualifier", "second label": "stage"},
    "error-type": {"label": "priority"},
    "error-analysis": {"why": "The first finding drew all attention.", "physician would err too": "no"},
    "question": {"relevant": "yes", "anonymous": "no", "stands alone": "yes"},
    "duplicate": {"same": "no"},
}
"""A complete answer for each form."""


def task_folders(folders: Path) -> Path:
    """The folders with what they lack for some forms beside them."""
    if not (folders / "bench-2").exists():
        further_benchmark(folders)
        further_judgments(folders)
    return folders


def study_of(folders: Path, form: str, **how: Any) -> tuple[Study, list[ReviewItem]]:
    """The study of a form."""
    return study_from(task_folders(folders) / _FOLDERS.get(form, "bench"), form=form, **how)


def assigned(
    store: ReviewStore, study: Study, items: list[ReviewItem], *, people: int = 1, role: PersonRole = "reviewer"
) -> list[tuple[Person, str]]:
    """The study on a review store, with invented people who are to look at every item; each with their token."""
    store.create_study(study, items, by="test")
    invited = [store.invite(f"Invented reviewer {number}", role, by="test") for number in range(1, people + 1)]
    rows = [
        Assignment(study=study.id, item=item.id, person=person.id, place=item.place)
        for person, _ in invited
        for item in items
    ]
    store.assign(study.id, rows, by="test")
    return invited


def further_benchmark(folders: Path) -> None:
    """A benchmark with what waits for an expert, for revision, and from harvested questions."""
    corpus = Corpus.open(folders / "cases")
    bench = open_artefact(folders / "bench")
    questions = list(read_jsonl(bench.file("questions.jsonl"), Question))
    openly = [question for question in questions if not question.options][:3]
    choice = [question for question in questions if question.options][:3]
    flagged = [
        ReviewTask(
            item=each.id, kind="three-criteria", criteria=THREE_CRITERIA, why=FLAGGED, step="review",
            question=each.full_text, documents=each.documents,
            shown={"answer": each.answer, "reasoning": "Invented.", "positives": ", ".join(each.documents)},
        )
        for each in openly
    ]  # fmt: skip
    asked = [
        ReviewTask(
            item=f"h-{number}", kind="question", criteria=QUESTION_CRITERIA, why="drawn", question=text,
            shown={"message": f"Hi all, I am an invented person. {text} Thanks!", "group": "kidney"},
        )
        for number, text in enumerate(
            ("May I eat grapefruit after a transplant?", "When can I drive again?", "Is a sauna allowed?")
        )
    ]  # fmt: skip
    twins = [
        ReviewTask(
            item=f"d-{number}", kind="duplicate", criteria=("same",), why="cosine 0.91", step="near",
            question=text, shown={"kept": "When can I drive again?"},
        )
        for number, text in enumerate(("When may I drive a car?", "How long must I not drive?", "May I drive?"))
    ]  # fmt: skip
    rejected = [
        RejectedItem(
            id=each.id, step="review", reason="waits for its revision", documents=each.documents,
            values={
                "stem": each.context, "diagnosis": each.answer, "options": [{"text": text} for text in each.options]
            },
        )
        for each in choice
    ]  # fmt: skip
    header = ("item", "level", "criterion", "reviewer", "finding", "what must change", "state")
    rows = [
        (each.id, 1, "options overlap", "R1", "finding", f"{each.options[-1]} could be right too.", "to be revised")
        for each in choice
    ]
    rows.append((choice[0].id, 2, "clarity", "R2", "finding", "How long was the fever?", "to be revised"))
    rows.append(("gone", 1, "options overlap", "R1", "finding", "", "revised"))
    with create(folders / "bench-2", replace_kind="benchmark") as draft:
        write_jsonl(draft.path / "questions.jsonl", openly)
        write_jsonl(draft.path / "review.jsonl", [*flagged, *asked, *twins])
        write_jsonl(draft.path / "rejected.jsonl", rejected)
        write_tsv(draft.path / "revisions.tsv", header, rows)
        draft.finish(
            Manifest(
                kind="benchmark",
                title="Further tasks (invented)",
                inputs=[corpus.artefact.reference()],
                counts=Counts(kept=len(openly)),
            )
        )


def further_judgments(folders: Path) -> None:
    """The judgments with failure modes and error types of the answers that are wrong."""
    judged = open_artefact(folders / "judged")
    answers = list(read_jsonl(judged.file("answers.jsonl"), Answer))
    judgments = list(read_jsonl(judged.file("judgments.jsonl"), Judgment))
    wrong = [each for each in judgments if each.label in ("mismatch", "wrong")]
    explained = [
        replace(each, aspect=aspect, judge="openai:invented-judge", label=labels[place % len(labels)], reasoning="")
        for aspect, labels in (("failure-mode", FAILURE_MODE.labels), ("error-type", ERROR_TYPE.labels))
        for place, each in enumerate(wrong)
    ]
    with create(folders / "judged-2", replace_kind="judgments") as draft:
        for name in ("questions.jsonl",):
            (draft.path / name).write_bytes(judged.file(name).read_bytes())
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "judgments.jsonl", [*judgments, *explained])
        draft.finish(msgspec.structs.replace(judged.manifest, files={}))
