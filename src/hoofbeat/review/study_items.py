"""A study and its items from an artefact: what people are asked about, under codes that tell them nothing.

From a benchmark come the tasks its recipe left (`review.jsonl`), from an audit or its packets pairs of answers, from a
run or a folder of judgments answers. Codes are those of the packets and `judging.humans`, so that labels that are
given here are read like labels from a sheet. Everything drawn is drawn by the seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from hoofbeat.audit import Audit
from hoofbeat.audit.sample_records import SampledPair
from hoofbeat.audit.validation.packet_text import pair_code
from hoofbeat.audit.validation.packets import (
    PacketRow,
    PacketRules,
    Packets,
    PairStratum,
    blinded_texts,
    draw_pairs,
    label_counts,
)
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_value
from hoofbeat.judging.blinded_sheet import draw_answers, judge_labels
from hoofbeat.judging.criteria import Key, answer_key, answer_text
from hoofbeat.judging.designs import make_design
from hoofbeat.judging.judgments_folder import AnswerFolder
from hoofbeat.prompts import Pack
from hoofbeat.records import Answer, Question
from hoofbeat.review.assignments import stratified_sample
from hoofbeat.review.forms import Form, form_names, load_form
from hoofbeat.review.review_records import ItemMaterial, ReviewItem, Study
from hoofbeat.review.task_items import benchmark_items, group_of, waiting_forms
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.atomic_files import read_bytes
from hoofbeat.store.tables import canonical_json, read_jsonl

ANSWER_FORMS = ("equivalence", "failure-mode", "error-type", "error-analysis")
"""What people can be asked of an answer."""

_DEFAULT = 100
_FREE = ("equivalence",)


def answer_items(
    artefact: Artefact, form: str, sample: int | None, seed: int
) -> tuple[dict[str, Any], list[ReviewItem]]:
    """Answers of every system in proportion, in the order of their codes; the study's settings keep the design.

    The same seed and number draw the same answers as a sheet would. What explains wrong answers is asked of those that
    a judge has explained, and the analysis of errors of all that were judged wrong.
    """
    folder = AnswerFolder(artefact)
    said = _judged(folder, form)
    if form not in _FREE and not said:
        wrong = form == "error-analysis"
        raise UsageError(
            "no answer here was judged wrong" if wrong else f"nobody has judged {form} here yet",
            where=str(artefact.path),
            fix="judge the run first: hoofbeat judge FOLDER" + ("" if wrong else f" --by {form}"),
        )
    count = sample or _DEFAULT
    drawn = draw_answers(folder, form, said, count, seed, everything=form in _FREE)
    items = [
        _item(code, answer, stratum, folder.questions[answer.question], form) for code, answer, stratum in drawn.answers
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
    if form == "error-analysis":
        return {key: "wrong" for key, right in folder.verdicts().items() if right is False}
    return judge_labels(folder, form)


def _item(code: str, answer: Answer, stratum: tuple[str, ...], question: Question, form: str) -> ReviewItem:
    shown = [
        *([ItemMaterial(title="Case", text=question.context, kind="case")] if question.context else []),
        ItemMaterial(title="Question", text=question.text, kind="question"),
    ]
    if form in ("error-type", "error-analysis") and question.options:
        shown.append(ItemMaterial(title="Options", kind="options", lines=answer.options or question.options))
    shown += [
        ItemMaterial(title="Reference answer", text=question.answer, kind="gold"),
        ItemMaterial(title="Answer", text=answer_text(answer), kind="answer"),
    ]
    if form == "error-type":
        written = answer.text if answer.protocol and answer.text.strip() != answer_text(answer) else ""
        reasoning = "\n\n".join(part.strip() for part in (answer.reasoning, written) if part.strip())
        shown += [ItemMaterial(title="How it came to its answer", text=reasoning, kind="note")] if reasoning else []
    if form == "failure-mode":
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
    asked, answers = blinded_texts(audit, pairs)
    items = [
        _item_pair_items(
            pair_code(*pair.key),
            pair,
            asked[pair.question],
            (answers[pair.question, side] for side in (pair.a, pair.b)),
            _group(questions[pair.question], audit.pack),
        )
        for pair in pairs
    ]
    drawn = {name: sum(pair.label == name for pair in pairs) for name in counts}
    strata = [PairStratum(label=name, pairs=count, drawn=drawn[name]) for name, count in counts.items()]
    settings = {**pack_settings(audit.pack), "design": msgspec.to_builtins(strata), "unlabelled": unlabelled}
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
    first = packets.design.annotators[0]
    texts = {row.item: row for row in read_jsonl(artefact.file(f"{first}/{first}.jsonl"), PacketRow)}
    rules = msgspec.json.decode(read_bytes(artefact.file(f"{first}/rules.json")), type=PacketRules)
    items = []
    for row in packets.key:
        text = texts[row.item]
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
    return {"pair": 0} if artefact.manifest.kind in ("audit", "packets") else dict.fromkeys(ANSWER_FORMS, 0)


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
        raise UsageError(f"nothing waits for {chosen} here", where=str(path), fix="name another form or folder")
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
        settings={**drawn_as, **settings},
    )
    return study, [msgspec.structs.replace(item, study=id, place=place) for place, item in enumerate(items)]


def _chosen_form(path: Path, form: str | None) -> str:
    waiting = forms_in(path)
    if form is None:
        if len(waiting) == 1 or (waiting and "equivalence" in waiting):
            return next(iter(waiting))
        told = ", ".join(f"{name} ({count})" for name, count in waiting.items())
        raise UsageError(
            "several kinds of review wait here" if waiting else "nothing waits for review here",
            where=str(path),
            fix=f"name one with --form: {told}" if waiting else "name another folder",
        )
    if form not in form_names():
        raise UsageError(f"there is no form {form!r}", fix=f"use one of: {', '.join(form_names())}")
    if form not in waiting:
        raise UsageError(
            f"nothing waits for {form} here", where=str(path), fix=f"there is: {', '.join(waiting) or 'nothing'}"
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
