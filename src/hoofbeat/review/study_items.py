"""A study and its items from an artefact: what people are asked about, under codes that tell them nothing.

From a benchmark come the tasks its recipe left (`review.jsonl`) or, where it was imported, its questions; from an audit
or its packets pairs of answers, from a run or a folder of judgments answers. Each study has codes of its own for what
is blinded; exports have those of the packets and `judging.humans`, so that labels that are given here are read like
labels from a sheet. Everything drawn is drawn by the seed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.sample_records import SampledPair
from hoofbeat.audit.validation.packets import (
    PacketRow,
    PacketRules,
    Packets,
    PairStratum,
    blinded_texts,
    draw_pairs,
    label_counts,
    pair_code,
)
from hoofbeat.benchmarks import corpus_beside, find_quote
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_value
from hoofbeat.judging.blinded_sheet import blinding_secret, draw_answers, judge_labels
from hoofbeat.judging.catalogue import human_aspects
from hoofbeat.judging.criteria import Key, answer_key, answer_text
from hoofbeat.judging.humans import make_design
from hoofbeat.judging.judgments_folder import AnswerFolder
from hoofbeat.prompts import Pack
from hoofbeat.recipes.recipe_items import RejectedItem
from hoofbeat.recipes.review_tasks import FLAGGED, ReviewTask
from hoofbeat.records import Answer, Document, Facets, Question
from hoofbeat.review.assignments import stratified_sample
from hoofbeat.review.forms import Form, form_names, load_form
from hoofbeat.review.review_records import KNOWN_CODE, ItemMaterial, ReviewItem, Study, item_code
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.files import read_bytes
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
    "reworded": ("Sentences that were reworded", "note"),
    "edits": ("Edits of the final review", "note"),
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
    """What stands beside the tasks: the questions by id, the corpus where it lies beside the benchmark, and the secret
    of its items' codes.
    """

    questions: dict[str, Question]
    corpus: Corpus | None
    secret: str

    def document(self, id: str) -> Document | None:
        """The document, where it is at hand."""
        return self.corpus.get(id) if self.corpus is not None and id in self.corpus else None


def form_of_task(task: ReviewTask) -> str:
    """The form that a task is for."""
    if task.kind == "two-level":
        return "two-level-2" if task.step == "level-2" else "two-level-1"
    return "three-criteria-expert" if task.kind == "three-criteria" and task.why.startswith(FLAGGED) else task.kind


def waiting_forms(artefact: Artefact) -> dict[str, int]:
    """The forms for which tasks wait, with how many."""
    counts = Counter(form_of_task(task) for task in _tasks(artefact))
    if revisions := len(_open_revisions(artefact)):
        counts["revision"] = revisions
    return dict(counts)


def _tasks(artefact: Artefact) -> Iterator[ReviewTask]:
    if artefact.has("review.jsonl"):
        return read_jsonl(artefact.file("review.jsonl"), ReviewTask)
    return iter(()) if "recipe" in artefact.manifest.settings else _imported_tasks(artefact)


def _imported_tasks(artefact: Artefact) -> Iterator[ReviewTask]:
    """What can be asked of questions that no recipe made: a rating of each with an answer, a reading of its options."""
    why = "every question that was imported"
    for question in read_jsonl(artefact.file("questions.jsonl"), Question):
        if not question.answer:
            continue
        shown = {"options": "\n".join(question.options), "answer": question.answer} if question.options else {}
        yield ReviewTask(
            item=question.id,
            kind="likert",
            criteria=_criteria("likert"),
            why=why,
            step="review",
            question=question.full_text,
            shown=shown or {"answer": question.answer},
            documents=question.documents,
        )
        if question.options:
            yield ReviewTask(
                item=question.id,
                kind="two-level",
                criteria=_criteria("two-level-1"),
                why=why,
                step="level-1",
                question=question.text if question.context else "",
                shown={"stem": question.context or question.text, **shown},
                documents=question.documents,
            )


def _criteria(form: str) -> tuple[str, ...]:
    return tuple(field.name for field in load_form(form).fields if field.criterion)


def benchmark_items(artefact: Artefact, form: str, strata: str | None) -> list[ReviewItem]:
    """The tasks of a form as items; tasks of one item at one step that ask for different criteria become one."""
    beside = _Beside(
        questions={each.id: each for each in read_jsonl(artefact.file("questions.jsonl"), Question)},
        corpus=corpus_beside(artefact),
        secret=artefact.reference().sha256,
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
        id=item_code(form, task.item, task.step, secret=beside.secret),
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
        title = "Options that must be wrong" if task.kind == "distractors" else "Options"
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
                id=item_code("revision", id, secret=beside.secret),
                study="",
                place=0,
                shown=tuple(shown),
                key={"item": id, "step": "revision", "findings": [criterion for criterion, _, _ in findings]},
                stratum=facet_value(facets, strata) if strata else group_of(facets),
                group=group_of(facets),
            )
        )
    return items


_ERRORS = "error-analysis"
_DEFAULT = 100


def answer_forms() -> list[str]:
    """What people can be asked of an answer: the aspects that have a form, and the analysis of errors."""
    return [*(name for name in human_aspects() if name in form_names()), _ERRORS]


def answer_items(
    artefact: Artefact, form: str, sample: int | None, seed: int
) -> tuple[dict[str, Any], list[ReviewItem]]:
    """Answers of every system in proportion, in the order of their codes; the study's settings keep the design.

    The same seed and number draw the same answers as a sheet would. What explains wrong answers is asked of those that
    a judge has explained, and the analysis of errors of all that were judged wrong.
    """
    folder = AnswerFolder(artefact)
    said = _judged(folder, form)
    everything = form != _ERRORS and not human_aspects()[form].explains
    if not everything and not said:
        wrong = form == _ERRORS
        raise UsageError(
            "no answer here was judged wrong" if wrong else f"nobody has judged {form} here yet",
            where=str(artefact.path),
            fix="judge the run first: hoofbeat judge FOLDER" + ("" if wrong else f" --by {form}"),
        )
    count = sample or _DEFAULT
    drawn = draw_answers(folder, form, said, count, seed, everything=everything)
    items = [
        _answer_item(code, answer, stratum, folder.questions[answer.question], form)
        for code, answer, stratum in drawn.answers
    ]
    design = make_design(
        drawn.sizes,
        drawn.given,
        [item.id for item in items],
        sheet="",
        aspect=form,
        seed=seed,
        asked=count,
        source=artefact.reference(),
    )
    return {"aspect": form, "design": msgspec.to_builtins(design)}, items


def _judged(folder: AnswerFolder, form: str) -> dict[Key, str]:
    """What judges other than people said, by answer; for the analysis of errors, the answers that are wrong."""
    if form == _ERRORS:
        return {key: "wrong" for key, right in folder.verdicts().items() if right is False}
    return judge_labels(folder, form)


def _answer_item(code: str, answer: Answer, stratum: tuple[str, ...], question: Question, form: str) -> ReviewItem:
    shown = [
        *([ItemMaterial(title="Case", text=question.context, kind="case")] if question.context else []),
        ItemMaterial(title="Question", text=question.text, kind="question"),
    ]
    shows = load_form(form).shows
    if "options" in shows and question.options:
        shown.append(ItemMaterial(title="Options", kind="options", lines=answer.options or question.options))
    shown += [
        ItemMaterial(title="Reference answer", text=question.answer, kind="gold"),
        *(
            ItemMaterial(title="Accepted as well", text="\n".join(filter(None, (each.text, each.note))), kind="gold")
            for each in question.accepted
        ),
        ItemMaterial(title="Answer", text=answer_text(answer), kind="answer"),
    ]
    if "reasoning" in shows:
        written = answer.text if answer.protocol and answer.text.strip() != answer_text(answer) else ""
        reasoning = "\n\n".join(part.strip() for part in (answer.reasoning, written) if part.strip())
        shown += [ItemMaterial(title="How it came to its answer", text=reasoning, kind="note")] if reasoning else []
    if "sources" in shows:
        for number, passage in enumerate(answer.evidence, start=1):
            marks = tuple(
                (max(0, span.start - passage.start), min(len(passage.text), span.end - passage.start))
                for span in question.evidence
                if span.document == passage.document and passage.start <= span.start < passage.start + len(passage.text)
            )
            shown.append(
                ItemMaterial(title=f"Source it had, part {number}", text=passage.text, kind="source", marks=marks)
            )
    identity = answer_key(answer)
    return ReviewItem(
        id=code,
        study="",
        place=0,
        shown=tuple(shown),
        key=dict(zip(("question", "model", "condition", "sample"), identity, strict=True)),
        stratum=" · ".join(stratum),
        group=group_of(question.facets),
    )


_PER_LABEL = 40


def audit_items(artefact: Artefact, sample: int | None, seed: int) -> tuple[dict[str, Any], list[ReviewItem]]:
    """Pairs of an audit, as many of every label as there are or as are asked for, in the order of their codes.

    Rare labels are thereby drawn more often than they occur; the settings keep how many pairs each label has.
    """
    audit = Audit(artefact)
    counts, unlabelled = label_counts(audit)
    wanted = even_share(counts, sample) if sample else dict.fromkeys(counts, _PER_LABEL)
    pairs, _ = draw_pairs(audit, {name: count for name, count in wanted.items() if count}, seed=seed)
    questions = {question.id: question for question in audit.questions}
    texts = blinded_texts(audit, pairs)
    secret = blinding_secret(artefact)
    items = [
        _item_pair_items(
            pair_code(secret, *pair.key),
            pair,
            texts.questions[pair.question],
            (texts.answers[pair.question, side] for side in (pair.a, pair.b)),
            _group(questions[pair.question], audit.pack),
        )
        for pair in pairs
    ]
    drawn = {name: sum(pair.label == name for pair in pairs) for name in counts}
    strata = [PairStratum(label=name, pairs=count, drawn=drawn[name]) for name, count in counts.items()]
    settings = {**pack_settings(audit.pack), "design": msgspec.to_builtins(strata), "unlabelled": unlabelled}
    settings["names_replaced"] = [list(row) for row in texts.replaced]
    return settings, sorted(items, key=lambda item: item.id)


def even_share(counts: Mapping[str, int], total: int) -> dict[str, int]:
    """`total` divided evenly among labels; what a rare label can't give is divided among the others."""
    given = dict.fromkeys(counts, 0)
    while total > 0 and (open_ := [name for name in counts if given[name] < counts[name]]):
        each = max(1, total // len(open_))
        for name in open_:
            more = min(each, counts[name] - given[name], total)
            given[name] += more
            total -= more
    return given


def packet_items(artefact: Artefact) -> tuple[dict[str, Any], list[ReviewItem]]:
    """The pairs of a folder of packets, with the rules that lie beside them."""
    packets = Packets(artefact)
    where = str(artefact.path)
    if not packets.design.annotators:
        raise InputError("the packets name no annotator", where=where, fix="make the packets again")
    first = packets.design.annotators[0]
    texts = {row.item: row for row in read_jsonl(artefact.file(f"{first}/{first}.jsonl"), PacketRow)}
    rules = msgspec.json.decode(read_bytes(artefact.file(f"{first}/rules.json")), type=PacketRules)
    items = []
    for row in packets.key:
        text = texts.get(row.item)
        if text is None:
            raise InputError(f"the packets have no text for {row.item!r}", where=where, fix="make the packets again")
        sides = (text.answer_a, text.answer_b)
        items.append(
            _item_pair_items(row.item, row.pair, text.question, reversed(sides) if row.swapped[first] else sides, "")
        )
    settings = {
        "pack": packets.design.pack,
        "labels": msgspec.to_builtins(list(rules.labels)),
        "significance_levels": list(rules.significance_levels),
        "significance_meaning": rules.significance_meaning,
        "reader": rules.reader,
        "source_word": rules.source_word,
        "design": msgspec.to_builtins(list(packets.design.strata)),
        "unlabelled": packets.design.unlabelled,
        "names_replaced": packets.names_replaced,
    }
    return settings, sorted(items, key=lambda item: item.id)


def _item_pair_items(code: str, pair: SampledPair, question: str, sides: Iterable[str], group: str) -> ReviewItem:
    first, second = sides
    return ReviewItem(
        id=code,
        study="",
        place=0,
        shown=(
            ItemMaterial(title="Question", text=question, kind="question"),
            ItemMaterial(title="Answer A", text=first, kind="answer"),
            ItemMaterial(title="Answer B", text=second, kind="answer"),
        ),
        key={"question": pair.question, "a": pair.a, "b": pair.b},
        stratum=pair.label,
        group=group,
    )


def _group(question: Question, pack: Pack) -> str:
    return facet_value(question.facets, pack.group_facet) or group_of(question.facets)


def pack_settings(pack: Pack) -> dict[str, Any]:
    """What the pair form needs of a domain pack, as a study's settings keep it."""
    return {
        "pack": f"{pack.name}@{pack.fingerprint}",
        "labels": [
            {
                "name": label.name,
                "definition": " ".join(label.definition.split()),
                "significance": label.significance,
            }
            for label in pack.labels
        ],
        "significance_levels": list(pack.significance_levels),
        "significance_meaning": " ".join(pack.significance_meaning.split()),
        "reader": pack.reader,
        "source_word": pack.source_word,
    }


KINDS = ("benchmark", "audit", "packets", "run", "judgments")
"""The artefacts that people can be asked about."""


def forms_in(path: Path) -> dict[str, int]:
    """The forms for which something waits in an artefact, and how much; 0 where that is not known before the draw."""
    artefact = open_artefact(path, KINDS)
    if artefact.manifest.kind == "benchmark":
        return waiting_forms(artefact)
    return {"pair": 0} if artefact.manifest.kind in ("audit", "packets") else dict.fromkeys(answer_forms(), 0)


def study_from(
    path: Path,
    *,
    form: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    strata: str | None = None,
    title: str = "",
) -> tuple[Study, list[ReviewItem]]:
    """A study about an artefact, and its items in order.

    Without a `form`, the one that waits there; where several do, one must be named. `sample` draws that many items:
    of tasks by the strata's shares, of pairs the same number of every label, of answers as `judge` draws its sheet.
    `strata` names the facet of questions that tasks are drawn by; without it, their specialty.
    """
    artefact = open_artefact(path, KINDS)
    if sample is not None and sample < 1:
        raise UsageError(f"{sample} items can't be drawn", fix="give a sample of 1 or more")
    chosen = _chosen_form(path, form)
    settings, items = _items(artefact, chosen, sample, seed, strata)
    if not items:
        raise UsageError(
            f"there is nothing to review with the form {chosen} here",
            where=str(path),
            fix="name another form or folder",
        )
    reference = artefact.reference()
    drawn_as: dict[str, Any] = {"seed": seed, "sample": sample, "strata": strata, "of": artefact.manifest.kind}
    identity = canonical_json([reference.sha256, chosen, drawn_as])
    asks = load_form(chosen, settings)
    id = f"{chosen}-{hashlib.sha256(identity).hexdigest()[:8]}"
    study = Study(
        id=id,
        title=title or _title(asks, artefact),
        form=chosen,
        source=artefact.path.name,
        source_sha256=reference.sha256,
        made_from=tuple(ref.sha256 for ref in artefact.manifest.inputs),
        settings={**drawn_as, **settings},
    )
    if asks.blinded:
        items = _under_own_codes(items, id, reference.sha256)
    return study, [msgspec.structs.replace(item, study=id, place=place) for place, item in enumerate(items)]


def _under_own_codes(items: Iterable[ReviewItem], study: str, secret: str) -> list[ReviewItem]:
    """The items under codes of this study, in their order: whoever reviews in two studies can't join them.

    The code that every reader of labels knows stays in the item's key, which no page shows; exports have that one.
    """
    coded = (
        msgspec.structs.replace(
            item, id=item_code("in study", study, item.id, secret=secret), key={**item.key, KNOWN_CODE: item.id}
        )
        for item in items
    )
    return sorted(coded, key=lambda item: item.id)


_INSTEAD = (
    "name another folder: an imported benchmark, a run, judgments or an audit. Of any benchmark, --exam makes an exam"
)


def _chosen_form(path: Path, form: str | None) -> str:
    waiting = forms_in(path)
    if form is None:
        if len(waiting) == 1 or waiting.keys() & human_aspects().keys():
            return next(iter(waiting))
        if not waiting:
            raise UsageError("there is nothing to review here", where=str(path), fix=_INSTEAD)
        told = ", ".join(f"{name} ({count})" for name, count in waiting.items())
        raise UsageError("several kinds of review wait here", where=str(path), fix=f"name one with --form: {told}")
    if form not in form_names():
        raise UsageError(f"there is no form {form!r}", fix=f"use one of: {', '.join(form_names())}")
    if form not in waiting:
        raise UsageError(
            f"there is nothing to review with the form {form} here: it needs {load_form(form).needs}",
            where=str(path),
            fix=f"use another folder, or one of the forms for this one: {', '.join(waiting)}" if waiting else _INSTEAD,
        )
    return form


def _items(
    artefact: Artefact, form: str, sample: int | None, seed: int, strata: str | None
) -> tuple[dict[str, Any], list[ReviewItem]]:
    """What the form needs in the study's settings, and the items drawn."""
    kind = artefact.manifest.kind
    if kind == "audit":
        return audit_items(artefact, sample, seed)
    if kind == "packets":
        settings, items = packet_items(artefact)
        return settings, stratified_sample(items, sample, seed) if sample else items
    if kind in ("run", "judgments"):
        return answer_items(artefact, form, sample, seed)
    items = benchmark_items(artefact, form, strata)
    return {}, stratified_sample(items, sample, seed) if sample else items


def _title(form: Form, artefact: Artefact) -> str:
    """What is asked, and of what, unless that could tell whose answers they are."""
    if form.blinded:
        return form.title
    return f"{form.title}{'' if form.title.endswith('?') else ':'} {artefact.manifest.title or artefact.path.name}"
