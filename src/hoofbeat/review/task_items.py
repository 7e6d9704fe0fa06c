"""Items from the tasks that a recipe left in its benchmark: the question, what belongs to it, and its source."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from hoofbeat.benchmarks import corpus_beside, find_quote
from hoofbeat.corpus import Corpus
from hoofbeat.facets import facet_value
from hoofbeat.recipes.recipe_items import RejectedItem
from hoofbeat.recipes.review_tasks import FLAGGED, ReviewTask
from hoofbeat.records import Document, Facets, Question
from hoofbeat.review.review_records import ItemMaterial, ReviewItem
from hoofbeat.store import Artefact
from hoofbeat.store.tables import canonical_json, read_jsonl, read_tsv

GROUP_FACETS = ("specialty", "discipline", "body_system", "organ", "group")
"""The facets that say to whose field a question belongs, the first that is there."""

_TITLES = {
    "answer": ("Reference answer", "gold"),
    "diagnosis": ("Diagnosis", "gold"),
    "quote": ("The sentence that states it", "quote"),
    "original": ("The case before it was changed", "note"),
    "reasoning": ("Reasoning", "case"),
    "stem": ("Stem", "case"),
    "image stem": ("Stem of the image version", "case"),
    "removed": ("Sentences taken out for the image version", "note"),
    "message": ("The message it was made from", "case"),
    "group": ("Group", "note"),
    "kept": ("The question that stays", "question"),
}
_QUESTION_TITLES = {
    "leak": "Case",
    "distractors": "Diagnosis",
    "three-criteria": "Query",
    "duplicate": "The question that was dropped",
}
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_REVISIONS = "revisions.tsv"
_OPEN = "to be revised"


class _Beside(Struct, frozen=True, kw_only=True):
    """What stands beside the tasks: the questions by id, and the corpus where it lies beside the benchmark."""

    questions: dict[str, Question]
    corpus: Corpus | None

    def document(self, id: str) -> Document | None:
        """The document, where it is at hand."""
        return self.corpus.get(id) if self.corpus is not None and id in self.corpus else None


def item_code(*parts: object) -> str:
    """A code that tells nothing about what it stands for, and is safe in an address."""
    return hashlib.blake2b(canonical_json(["item", *parts]), digest_size=6).hexdigest()


def form_of_task(task: ReviewTask) -> str:
    """The form that a task is for."""
    if task.kind == "two-level":
        return "two-level-2" if task.step == "level-2" else "two-level-1"
    return "three-criteria-expert" if task.kind == "three-criteria" and task.why == FLAGGED else task.kind


def waiting_forms(artefact: Artefact) -> dict[str, int]:
    """The forms for which tasks wait, with how many."""
    counts = Counter(form_of_task(task) for task in _tasks(artefact))
    if revisions := len(_open_revisions(artefact)):
        counts["revision"] = revisions
    return dict(counts)


def _tasks(artefact: Artefact) -> Iterator[ReviewTask]:
    return read_jsonl(artefact.file("review.jsonl"), ReviewTask) if artefact.has("review.jsonl") else iter(())


def benchmark_items(artefact: Artefact, form: str, strata: str | None) -> list[ReviewItem]:
    """The tasks of a form as items; tasks of one item at one step that ask for different criteria become one."""
    beside = _Beside(
        questions={each.id: each for each in read_jsonl(artefact.file("questions.jsonl"), Question)},
        corpus=corpus_beside(artefact),
    )
    if form == "revision":
        return _revision_items(artefact, beside, strata)
    merged: dict[tuple[str, str], ReviewTask] = {}
    for task in _tasks(artefact):
        if form_of_task(task) == form:
            earlier = merged.get((task.item, task.step))
            merged[task.item, task.step] = _joined(earlier, task) if earlier else task
    return [_item(task, form, beside, strata) for task in merged.values()]


def _joined(first: ReviewTask, second: ReviewTask) -> ReviewTask:
    criteria = dict.fromkeys((*first.criteria, *second.criteria))
    return ReviewTask(
        item=first.item,
        kind=first.kind,
        criteria=tuple(criteria),
        why=f"{first.why}; {second.why}",
        step=first.step,
        question=first.question,
        shown=first.shown,
        documents=first.documents,
    )


def _item(task: ReviewTask, form: str, beside: _Beside, strata: str | None) -> ReviewItem:
    question = beside.questions.get(task.item)
    facets = question.facets if question else {}
    documents = task.documents or (question.documents if question else ())
    shown = [*_about(task, question), *_images(question, form), *_sources(task, documents, question, beside)]
    group = group_of(facets) or task.shown.get("group", "")
    return ReviewItem(
        id=item_code(form, task.item, task.step),
        study="",
        place=0,
        shown=tuple(shown),
        criteria=task.criteria,
        key={
            "item": task.item,
            "step": task.step,
            "why": task.why,
            "images": list(question.images if question else ()),
        },
        stratum=facet_value(facets, strata) if strata else group or task.step,
        group=group,
    )


def group_of(facets: Facets) -> str:
    """To whose field something belongs."""
    return next((value for name in GROUP_FACETS if (value := facet_value(facets, name))), "")


def _about(task: ReviewTask, question: Question | None) -> list[ItemMaterial]:
    """What the task itself shows, in reading order: the case, the question, options, the answer, what else there is."""
    if task.kind == "two-level":
        first = [ItemMaterial(title="Stem", text=task.shown.get("stem", ""), kind="case")]
        if task.question:
            first.append(ItemMaterial(title="Question", text=task.question, kind="question"))
    elif question is not None and question.context and task.question == question.full_text:
        first = [
            ItemMaterial(title="Case", text=question.context, kind="case"),
            ItemMaterial(title="Question", text=question.text, kind="question"),
        ]
    else:
        kind = {"leak": "case", "distractors": "gold"}.get(task.kind, "question")
        first = [ItemMaterial(title=_QUESTION_TITLES.get(task.kind, "Question"), text=task.question, kind=kind)]
    options = task.shown["options"].splitlines() if "options" in task.shown else _lettered(task.shown)
    if options:
        title = "Options that are to be wrong" if task.kind == "distractors" else "Options"
        first.append(ItemMaterial(title=title, kind="options", lines=tuple(options)))
    told = {shown.text for shown in first}
    for name, text in task.shown.items():
        if name in ("options", "stem", "positives") or name in _LETTERS or not text or text in told:
            continue
        title, kind = _TITLES.get(name, (name.capitalize(), "note"))
        first.append(ItemMaterial(title=title, text=text, kind=kind))
    return first


def _lettered(shown: Mapping[str, str]) -> list[str]:
    return [text for name, text in shown.items() if name in _LETTERS]


def _images(question: Question | None, form: str) -> list[ItemMaterial]:
    if question is None or not form.startswith(("two-level", "leak", "likert")):
        return []
    return [
        ItemMaterial(title=f"Image {number}", kind="image", text=f"Image {number} of the case")
        for number, _ in enumerate(question.images, start=1)
    ]


def _sources(
    task: ReviewTask, documents: Sequence[str], question: Question | None, beside: _Beside
) -> Iterator[ItemMaterial]:
    """The documents behind an item, with what is known to support it marked."""
    named = [name.strip() for name in task.shown.get("positives", "").split(",") if name.strip()] or list(documents)
    for id in dict.fromkeys(named):
        document = beside.document(id)
        if document is None:
            continue
        marks = [
            (span.start, span.end) for span in (question.evidence if question else ()) if span.document == document.id
        ]
        found = find_quote(document, task.shown["quote"]) if task.shown.get("quote") else None
        marks += [(span.start, span.end) for span in found.spans] if found else []
        yield ItemMaterial(
            title=document.title or "Source", text=document.text, kind="source", marks=tuple(sorted(marks))
        )


# Revisions: what reviewers of a two-level check found, and what is still to be done about it


def _open_revisions(artefact: Artefact) -> dict[str, list[tuple[str, str, str]]]:
    """The open findings of each item: criterion, finding, what must change."""
    found: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
    if artefact.has(_REVISIONS):
        for row in read_tsv(artefact.file(_REVISIONS)):
            if row["state"] == _OPEN:
                found[row["item"]].append((row["criterion"], row["finding"], row["what must change"]))
    return dict(found)


def _revision_items(artefact: Artefact, beside: _Beside, strata: str | None) -> list[ReviewItem]:
    waiting = _open_revisions(artefact)
    turned_away = {
        each.id: each for each in read_jsonl(artefact.file("rejected.jsonl"), RejectedItem) if each.id in waiting
    }
    items = []
    for id, findings in waiting.items():
        rejected = turned_away.get(id)
        if rejected is None:
            continue
        values: Mapping[str, Any] = rejected.values
        facets: Facets = values.get("facets", {})
        lines = tuple(f"{criterion}: {change or finding}" for criterion, finding, change in findings)
        options = tuple(str(each["text"]) for each in values.get("options", ()))
        shown = [
            ItemMaterial(title="What reviewers found", kind="note", lines=lines),
            ItemMaterial(title="Stem", text=str(values.get("stem", "")), kind="case"),
            ItemMaterial(title="Options", kind="options", lines=options),
            ItemMaterial(title="Reference answer", text=str(values.get("diagnosis", "")), kind="gold"),
        ]
        shown += [
            ItemMaterial(title=document.title or "Source", text=document.text, kind="source")
            for name in rejected.documents
            if (document := beside.document(name)) is not None
        ]
        items.append(
            ReviewItem(
                id=item_code("revision", id),
                study="",
                place=0,
                shown=tuple(shown),
                key={"item": id, "step": "revision", "findings": [criterion for criterion, _, _ in findings]},
                stratum=facet_value(facets, strata) if strata else group_of(facets),
                group=group_of(facets),
            )
        )
    return items
