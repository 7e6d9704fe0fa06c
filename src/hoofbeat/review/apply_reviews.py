"""What reviewers decided, carried out on a benchmark: a new one beside the old, with everything that differs listed.

The old benchmark stays as it is. The new one names it by its hash, counts its version up, and holds `diff.jsonl` and
`diff.md` (what went and why, what changed from what to what), and `labels.jsonl`, the labels that were applied.

Some decisions are data and are carried out on a question: an option is dropped, words of the source come into the stem,
another answer is accepted. A document that supports the answer beside the question's own source gets a grade, so that
retrieval is measured against every report that supports it; people say so, or a judge of relevance did.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.benchmarks.benchmark import KIND, edition_file
from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging import JudgmentFolder
from hoofbeat.judging.aspects.relevance import RELEVANCE
from hoofbeat.recipes.benchmark_output import FUNNEL_HEADER
from hoofbeat.recipes.cases.answer_options import plain_option
from hoofbeat.recipes.cases.stems import joined, spans_of, with_stem, wordings_of
from hoofbeat.recipes.cases.two_level_review import ADD, DROP, LEVEL_1, LEVEL_2, PASSES
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.messages.question_duplicates import CRITERION as SAME
from hoofbeat.recipes.papers.cupcase import CRITERIA as LEAKS
from hoofbeat.recipes.papers.ogcare import CRITERIA as RATINGS
from hoofbeat.recipes.papers.r2med import CRITERIA as FLAGS
from hoofbeat.recipes.papers.sourceqa import CRITERIA as QUESTIONS
from hoofbeat.recipes.recipe_items import RecipeFunnelStep, RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import (
    ACCEPT,
    SUPPORTS,
    ReviewLabel,
    ReviewTask,
    accepted_answers,
    read_labels,
    read_rating,
    says_yes,
)
from hoofbeat.records import AcceptedAnswer, Document, Question, Span, Step
from hoofbeat.review.label_export import Origin, export_labels, join_exports, origin_of, unchanged_origin
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import copy_inside, write_bytes
from hoofbeat.store.tables import canonical_json, plain_cell, read_jsonl, read_tsv, write_jsonl, write_tsv
from hoofbeat.text import caseless

Labels = Mapping[str, Sequence[ReviewLabel]]
_SETTLES = {"options overlap": DROP, "options appropriate": DROP, "missing information": ADD}
_ANNOTATOR, _EXPERT = frozenset({"ok", "flag"}), frozenset({"keep", "exclude"})
_FORGIVEN = ("reasoning",)
_KNOWN = frozenset({*RATINGS, *LEAKS, *QUESTIONS, *FLAGS, *LEVEL_1, *LEVEL_2, DROP, ADD, ACCEPT, SUPPORTS, SAME})
_SEVERAL = (*LEVEL_1, *LEVEL_2, DROP, ADD, ACCEPT, SUPPORTS, SAME)
"""Criteria of which one reviewer may have several labels of an item: of findings the last counts, all of the others."""

# Manifests of benchmarks made before the rename: without this, their rules would silently become the defaults.
_OLDER_SETTINGS = {"least_rating": "min_rating", "least_options": "min_options"}


class VerdictRules(Struct, frozen=True, kw_only=True):
    """The bounds that labels are held against; those of the recipe that made the benchmark, where it has them."""

    min_rating: float = 4.0
    review_rule: Literal["mean", "each"] = "mean"
    min_options: int = 2
    quote_match: float = 0.9


class ReviewVerdict(Struct, frozen=True, kw_only=True):
    """What becomes of a question: `reason` says why it goes; `drop`, `add` and `accept` are what is changed where it
    stays.

    `waits` are criteria on which a word is still missing: an expert's on what was flagged.
    """

    reason: str = ""
    details: str = ""
    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
    accept: tuple[AcceptedAnswer, ...] = ()
    waits: tuple[str, ...] = ()


def rules_of(settings: Mapping[str, Any]) -> VerdictRules:
    """The rules for a benchmark by the settings it was made with."""
    named = {_OLDER_SETTINGS.get(name, name): value for name, value in settings.items()}
    known = {name: named[name] for name in VerdictRules.__struct_fields__ if name in named}
    return VerdictRules(**known)


def by_item(labels: Iterable[ReviewLabel], where: str = "") -> dict[str, dict[str, list[ReviewLabel]]]:
    """The labels of each item by criterion. One whose criterion means nothing for a benchmark is refused."""
    found: dict[str, dict[str, list[ReviewLabel]]] = {}
    for label in labels:
        if label.criterion not in _KNOWN:
            raise InputError(
                f"the criterion {label.criterion!r} of a label for {label.item} is not a criterion for benchmarks",
                where=where or None,
                fix="apply labels of a review of a benchmark",
            )
        found.setdefault(label.item, defaultdict(list))[label.criterion].append(label)
    return found


def review_verdict(labels: Labels, rules: VerdictRules, where: str = "", study: str = "") -> ReviewVerdict:
    """What the labels of one question come to; the first reason that is found is told."""
    for judge in (_rated, _leaking, _refused, _excluded, _found):
        reason, details = judge(labels, rules, where)
        if reason:
            return ReviewVerdict(reason=reason, details=details)
    flagged = [each for each in FLAGS if _values(labels, each) >= {"flag"} and not _values(labels, each) & _EXPERT]
    return ReviewVerdict(
        drop=tuple(dict.fromkeys(label.value for label in labels.get(DROP, ()))),
        add=tuple(dict.fromkeys(label.value for label in labels.get(ADD, ()))),
        accept=accepted_answers(labels.get(ACCEPT, ()), study),
        waits=tuple(flagged),
    )


Judge = Callable[[Labels, VerdictRules, str], tuple[str, str]]
_NOTHING = ("", "")


def _rated(labels: Labels, rules: VerdictRules, where: str) -> tuple[str, str]:
    for criterion in RATINGS:
        ratings = [read_rating(label, where) for label in labels.get(criterion, ())]
        if not ratings:
            continue
        low = min(ratings) if rules.review_rule == "each" else sum(ratings) / len(ratings)
        if low < rules.min_rating:
            given = ", ".join(f"{rating:g}" for rating in ratings)
            return f"rated below {rules.min_rating:g} on {criterion}", f"ratings {given}"
    return _NOTHING


def _leaking(labels: Labels, _rules: VerdictRules, where: str) -> tuple[str, str]:
    for criterion in LEAKS:
        against = [label for label in labels.get(criterion, ()) if not says_yes(label, where)]
        if against:
            return f"a reviewer says no: {criterion}", _notes(against)
    return _NOTHING


def _refused(labels: Labels, _rules: VerdictRules, where: str) -> tuple[str, str]:
    for criterion in QUESTIONS:
        against = [not says_yes(label, where) for label in labels.get(criterion, ())]
        if sum(against) * 2 > len(against):
            return f"reviewers: not {criterion}", f"{sum(against)} of {len(against)}"
    return _NOTHING


def _excluded(labels: Labels, _rules: VerdictRules, where: str) -> tuple[str, str]:
    for criterion in FLAGS:
        strange = sorted(_values(labels, criterion) - _ANNOTATOR - _EXPERT)
        if strange:
            raise InputError(
                f"the label {strange[0]!r} by {criterion!r} is not known",
                where=where or None,
                fix="an annotator says ok or flag, an expert keep or exclude",
            )
    out = [each for each in FLAGS if "exclude" in _values(labels, each)]
    if any(each not in _FORGIVEN for each in out):
        said = [label for each in out for label in labels[each] if label.value.strip().lower() == "exclude"]
        return "an expert excluded it in review", "; ".join(filter(None, (", ".join(out), _notes(said))))
    return _NOTHING


def _found(labels: Labels, _rules: VerdictRules, _where: str) -> tuple[str, str]:
    for criterion in (*LEVEL_1, *LEVEL_2):
        last = {label.reviewer: label for label in labels.get(criterion, ())}
        findings = [label for label in last.values() if label.value.strip().casefold() not in PASSES]
        if findings and not labels.get(_SETTLES.get(criterion, "")):
            return f"a reviewer's finding: {criterion}", _notes(findings)
    return _NOTHING


def _values(labels: Labels, criterion: str) -> set[str]:
    return {label.value.strip().lower() for label in labels.get(criterion, ())}


def _notes(labels: Iterable[ReviewLabel]) -> str:
    return "; ".join(dict.fromkeys(label.note or label.value for label in labels))


_JOINT = "\n\n"


class QuestionRevision(Struct, frozen=True, kw_only=True):
    """A question as it is after its revisions, and as it was; `reason` says why it can't stay where that is so."""

    before: Question
    question: Question
    item: RecipeItem | None = None
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    reason: str = ""
    details: str = ""


def revise_question(
    question: Question,
    item: RecipeItem | None,
    found: ReviewVerdict,
    rules: VerdictRules,
    source: Callable[[str], Document | None],
) -> QuestionRevision:
    """The question with its revisions. One that can't be carried out is a reason for it to go, as when it is built."""
    made = QuestionRevision(before=question, question=question, item=item)
    for value in found.drop:
        made = made if made.reason else _without(made, value, rules)
    for words in found.add:
        made = made if made.reason else _with(made, words, rules, source)
    if made.reason:
        return made
    made = _accepting(made, found.accept)
    told = [
        *(f"dropped {option!r}" for option in made.dropped),
        *(f"added {words!r}" for words in made.added),
        *(f"accepted {each.text!r}" for each in found.accept),
    ]
    step = Step(name="review", note="; ".join(told))
    return replace(
        made,
        question=replace(made.question, lineage=(*made.question.lineage, step)),
        item=made.item.done(step) if made.item else None,
        details="; ".join(told),
    )


def _accepting(made: QuestionRevision, answers: Sequence[AcceptedAnswer]) -> QuestionRevision:
    """The question with further right answers; what is right already stays as it is."""
    known = {caseless(text) for text in made.question.right_answers}
    new = tuple(each for each in answers if caseless(each.text) not in known)
    accepted = (*made.question.accepted, *new)
    item = made.item.put(accepted=msgspec.to_builtins(accepted)) if made.item and new else made.item
    return replace(made, question=replace(made.question, accepted=accepted), item=item)


def _without(made: QuestionRevision, value: str, rules: VerdictRules) -> QuestionRevision:
    wanted = plain_option(value).casefold()
    question = made.question
    text = next((option for option in question.options if option.casefold() == wanted), None)
    if text is None or text == question.answer:
        if any(option.casefold() == wanted for option in made.dropped):
            return made
        return replace(made, reason="a revision drops what is not a wrong option", details=value)
    options = tuple(option for option in question.options if option != text)
    if len(options) < rules.min_options:
        details = f"{len(options)} of {rules.min_options}: {'; '.join(options)}"
        return replace(made, reason="too few options are left after revision", details=details)
    item = made.item
    if item is not None and isinstance(item.get("options"), list):
        item = item.put(options=[each for each in item["options"] if not _is_option(each, text)])
    return replace(made, question=replace(question, options=options), item=item, dropped=(*made.dropped, text))


def _is_option(entry: object, text: str) -> bool:
    return (entry.get("text") if isinstance(entry, dict) else entry) == text


def _with(
    made: QuestionRevision, words: str, rules: VerdictRules, source: Callable[[str], Document | None]
) -> QuestionRevision:
    question = made.question
    document = source(question.documents[0]) if question.documents else None
    if document is None:
        raise InputError(
            f"a revision adds words of the source to {question.id}, and the source is missing",
            fix="put the corpus beside the benchmark, or name it with --corpus",
        )
    found = find_quote(document, words, min_score=rules.quote_match)
    if found is None:
        return replace(made, reason="a revision adds words that are not in the source", details=words)
    places = tuple((span.start, span.end) for span in found.spans)
    new = _JOINT.join(document.text[start:end] for start, end in places)
    item, context = made.item, question.context
    if item is not None and item.get("stem_spans"):
        item = with_stem(item, document, joined((*spans_of(item), *places), wordings_of(item)))
        context = str(item["stem"])
    else:
        context = _JOINT.join(filter(None, (context, new)))
    synonyms = tuple(map(str, (item.get("synonyms") if item else None) or ()))
    leaks = find_leaks(new, question.answer, synonyms=synonyms, source=document)
    if leaks:
        return replace(made, reason="the stem gives the answer away after revision", details=leaks[0].text)
    proof = [Span(document=document.id, start=start, end=end, quote=document.text[start:end]) for start, end in places]
    evidence = tuple(dict.fromkeys((*question.evidence, *proof)))
    return replace(
        made, question=replace(question, context=context, evidence=evidence), item=item, added=(*made.added, words)
    )


class Edit(Struct, frozen=True, kw_only=True):
    """One thing of a question that is not as before."""

    field: str
    before: str | list[str]
    after: str | list[str]


class QuestionDifference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one question: dropped for a reason, or changed."""

    item: str
    what: Literal["dropped", "changed"]
    reason: str = ""
    details: str = ""
    edits: tuple[Edit, ...] = ()


def diff_markdown(
    differences: Sequence[QuestionDifference],
    *,
    name: str,
    version: int,
    kept: int,
    unlabelled: int,
    waits: Mapping[str, Sequence[str]],
) -> str:
    """What differs, to be read: what went and why, what changed from what to what."""
    dropped = [each for each in differences if each.what == "dropped"]
    changed = [each for each in differences if each.what == "changed"]
    lines = [
        f"# {_line(name)}: what reviewers' decisions changed",
        "",
        f"Version {version}. {kept} questions kept, {len(dropped)} dropped, {len(changed)} changed. "
        f"Nobody reviewed {unlabelled}.",
        "",
    ]
    if dropped:
        lines += ["## Dropped", "", "| question | why | what reviewers said |", "|---|---|---|"]
        lines += [f"| {_cell(each.item)} | {_cell(each.reason)} | {_cell(each.details)} |" for each in dropped]
        lines.append("")
    if changed:
        lines += ["## Changed", ""]
        for each in changed:
            lines += [f"### {_line(each.item)}", ""]
            for edit in each.edits:
                lines += [
                    f"{edit.field}, before:",
                    "",
                    *_quoted(edit.before),
                    "",
                    "after:",
                    "",
                    *_quoted(edit.after),
                    "",
                ]
    if waits:
        lines += ["## Waiting for an expert", ""]
        lines += [f"- {_line(id)}: {', '.join(fields)}" for id, fields in waits.items()]
        lines.append("")
    lines += ["Research software. Not for clinical use.", ""]
    return "\n".join(lines)


def _quoted(value: str | list[str]) -> list[str]:
    if isinstance(value, list):
        return [f"> - {_line(row)}" for row in value]
    return [f"> {_escaped(row)}".rstrip() for row in value.splitlines()]


def _line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _cell(text: str) -> str:
    return _line(plain_cell(text)).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text that Markdown shows unchanged: without tags, links or emphasis."""
    for mark in ("\\", "<", ">", "[", "]", "*", "_", "`", "#"):
        text = text.replace(mark, f"\\{mark}")
    return text


Source = Callable[[str], Document | None]
STEP = "reviewers' decisions"
_REWRITTEN = ("qrels.tsv", "items.jsonl", "rejected.jsonl", "review.jsonl", "funnel.tsv")


class ReviewOutcome(Struct, frozen=True, kw_only=True):
    """What the labels come to on a benchmark.

    `questions` are those that stay, by edition ("" is the main one); `waits` say on which an expert's word is missing,
    `unlabelled` how many nobody looked at, and `elsewhere` how many labels are for items that are not here. `supports`
    are documents that support the answer of a question and had no grade.
    """

    questions: dict[str, list[Question]]
    differences: tuple[QuestionDifference, ...]
    items: dict[str, RecipeItem]
    waits: dict[str, tuple[str, ...]]
    labelled: int
    unlabelled: int
    elsewhere: int
    rules: VerdictRules
    supports: dict[str, tuple[str, ...]] = {}

    @property
    def dropped(self) -> list[QuestionDifference]:
        """What goes."""
        return [each for each in self.differences if each.what == "dropped"]

    @property
    def changed(self) -> list[QuestionDifference]:
        """What is changed."""
        return [each for each in self.differences if each.what == "changed"]

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        found = []
        if self.waits:
            found.append(f"{len(self.waits)} flagged questions wait for an expert and are kept for now")
        if self.elsewhere:
            found.append(f"{self.elsewhere} labels are for items that are not questions of this benchmark")
        return found


NO_ORIGIN = "the labels do not say which version they belong to; only their items were checked"


def supporting_labels(folder: JudgmentFolder) -> list[ReviewLabel]:
    """The documents whose passages a judge found relevant (`judge --by relevance`), as labels by that judge."""
    documents = {
        (answer.question, passage.id): passage.document
        for answer in folder.each_answer()
        for passage in answer.evidence
    }
    best: dict[tuple[str, str, str], float] = {}
    for each in folder.each_judgment():
        document = documents.get((each.question, each.passage))
        if each.aspect == RELEVANCE.name and each.label == RELEVANCE.labels[0] and document and not each.failure:
            key = each.question, document, each.judge
            best[key] = max(best.get(key, 0.0), each.score or 0.0)
    return [
        ReviewLabel(item=item, criterion=SUPPORTS, value=document, reviewer=judge, note=f"relevance {grade:g} of 10")
        for (item, document, judge), grade in best.items()
    ]


def labels_to_apply(
    artefact: Artefact,
    *,
    database: str,
    studies: Sequence[str] = (),
    file: Path | None = None,
    judged: Sequence[Path] = (),
) -> tuple[list[ReviewLabel], Origin | None]:
    """The labels of studies, or of a file, and where they come from; those of another version are refused.

    `judged` are folders of judgments, whose judges of relevance found documents that support an answer.
    """
    found = [label for path in judged for label in supporting_labels(JudgmentFolder.open(path))]
    if judged and not studies and file is None:
        return found, None
    if bool(studies) == (file is not None):
        raise UsageError(
            "no labels to apply",
            fix="name a study (--study), a file of labels (--labels) or judgments of relevance (--judged)",
        )
    labels, origin = _labels_of_people(artefact, database, studies, file)
    return [*labels, *found], origin


def _labels_of_people(
    artefact: Artefact, database: str, studies: Sequence[str], file: Path | None
) -> tuple[list[ReviewLabel], Origin | None]:
    if file is not None:
        if (origin := origin_of(file)) is not None:
            _check_origin(artefact, origin)
        labels = read_labels(file, several=_SEVERAL)
        return labels, origin and unchanged_origin(file, origin, labels)
    with ReviewStore.open(database) as store:
        export = join_exports([export_labels(store, store.find_study(name)) for name in studies])
    _check_origin(artefact, export.origin)
    return [msgspec.convert(row, ReviewLabel) for row in export.rows], export.origin


def _check_origin(artefact: Artefact, origin: Origin) -> None:
    if origin.format != "criteria":
        raise UsageError(
            f"labels of the form {origin.form} are not about questions of a benchmark",
            fix="export them, and give them to hoofbeat judge or hoofbeat audit validate",
        )
    if origin.source_sha256 != artefact.reference().sha256:
        raise UsageError(
            f"these labels are of another version of the benchmark ({origin.source}, {origin.source_sha256[:12]}; this "
            f"one is {artefact.reference().sha256[:12]})",
            where=str(artefact.path),
            fix="apply them to the version that was reviewed, or build again with --reviews",
        )


def _recorded(origin: Origin) -> dict[str, object]:
    return {"study": origin.study, "form": origin.form, "people": origin.people, "labels": origin.labels}


def corpus_source(path: Path | None) -> Source | None:
    """The documents of a corpus by id."""
    if path is None:
        return None
    corpus = Corpus.open(path)
    return lambda id: corpus.get(id) if id in corpus else None


def apply_labels(
    artefact: Artefact,
    labels: Sequence[ReviewLabel],
    *,
    where: str = "",
    source: Source | None = None,
    study: str = "",
) -> ReviewOutcome:
    """What labels come to; nothing is written. `source` gives documents, where the corpus does not lie beside.

    `study` is where the labels come from; accepted answers keep it.
    """
    main = Benchmark(artefact)
    here = {question.id for question in main.questions}
    said = by_item(labels, where)
    if not said.keys() & here:
        raise InputError(
            "none of these labels is for a question of this benchmark",
            where=where or None,
            fix="name the labels of this benchmark",
        )
    rules = rules_of(artefact.manifest.settings)
    items = _items(artefact)
    source = source or _beside_source(artefact)
    differences: list[QuestionDifference] = []
    changes: dict[str, QuestionRevision] = {}
    waits: dict[str, tuple[str, ...]] = {}
    supports: dict[str, tuple[str, ...]] = {}
    graded = main.qrels()
    for question in main.questions:
        found = review_verdict(said.get(question.id, {}), rules, where, study)
        if found.reason:
            differences.append(_gone(question.id, found.reason, found.details))
            continue
        if found.waits:
            waits[question.id] = found.waits
        made = QuestionRevision(before=question, question=question)
        if found.drop or found.add or found.accept:
            made = revise_question(question, items.get(question.id), found, rules, source)
        if made.reason:
            differences.append(_gone(question.id, made.reason, made.details))
            continue
        edits = _edits(question, made.question)
        if edits:
            changes[question.id] = made
        known = [name for name, grade in graded.get(question.id, {}).items() if grade > 0]
        if more := _new_supports(said.get(question.id, {}).get(SUPPORTS, ()), known):
            supports[question.id] = more
            edits = (*edits, Edit(field="supporting documents", before=known, after=[*known, *more]))
        if edits:
            differences.append(QuestionDifference(item=question.id, what="changed", details=made.details, edits=edits))
    gone = {each.item for each in differences if each.what == "dropped"}
    editions = {name: Benchmark(artefact, name).questions for name in main.editions()}
    return ReviewOutcome(
        questions={
            "": [_main(question, changes) for question in main.questions if question.id not in gone],
            **{
                name: [_beside(each, changes.get(each.id)) for each in questions if each.id not in gone]
                for name, questions in editions.items()
            },
        },
        differences=tuple(differences),
        items={id: made.item for id, made in changes.items() if made.item is not None},
        waits=waits,
        labelled=len(said.keys() & here),
        unlabelled=len(here - said.keys()),
        elsewhere=sum(len(rows) for id, by in said.items() if id not in here for rows in by.values()),
        rules=rules,
        supports=supports,
    )


def _new_supports(labels: Sequence[ReviewLabel], known: Collection[str]) -> tuple[str, ...]:
    """The documents that reviewers named as evidence and the benchmark does not know."""
    named = dict.fromkeys(label.value.strip() for label in labels)
    return tuple(name for name in named if name and name not in known)


def _beside_source(artefact: Artefact) -> Source:
    """The documents of the corpus that lies beside the benchmark."""
    corpus = corpus_beside(artefact)
    return lambda id: corpus.get(id) if corpus is not None and id in corpus else None


def _items(artefact: Artefact) -> dict[str, RecipeItem]:
    if not artefact.has("items.jsonl"):
        return {}
    return {item.id: item for item in read_jsonl(artefact.file("items.jsonl"), RecipeItem)}


def _gone(item: str, reason: str, details: str) -> QuestionDifference:
    return QuestionDifference(item=item, what="dropped", reason=reason, details=details)


def _edits(before: Question, after: Question) -> tuple[Edit, ...]:
    pairs: list[tuple[str, Any, Any]] = [
        ("context", before.context, after.context),
        ("options", list(before.options), list(after.options)),
        ("accepted", [each.text for each in before.accepted], [each.text for each in after.accepted]),
    ]
    return tuple(Edit(field=name, before=old, after=new) for name, old, new in pairs if old != new)


def _main(question: Question, changes: Mapping[str, QuestionRevision]) -> Question:
    made = changes.get(question.id)
    return made.question if made else question


def _beside(question: Question, made: QuestionRevision | None) -> Question:
    """A question of another edition with the same changes."""
    if made is None:
        return question
    context = question.context
    if context == made.before.context:
        context = made.question.context
    elif context and made.added:
        context = "\n\n".join((context, *made.added))
    options = tuple(option for option in question.options if option not in made.dropped)
    return replace(
        question, context=context, options=options, accepted=made.question.accepted, lineage=made.question.lineage
    )


def write_applied(
    artefact: Artefact,
    applied: ReviewOutcome,
    labels: Sequence[ReviewLabel],
    target: Path,
    *,
    command: Sequence[str] = (),
    origin: Origin | None = None,
) -> Artefact:
    """The new benchmark. Tables that tell how the old one was made are carried over; what is listed by item follows."""
    old = artefact.manifest
    version = version_of(old) + 1
    with create(target, replace_kind=KIND) as draft:
        _carry_over(artefact, applied, draft.path)
        _write_questions(artefact, applied, draft.path)
        _write_account(artefact, applied, labels, draft.path)
        write_jsonl(draft.path / "labels.jsonl", labels)
        write_jsonl(draft.path / "diff.jsonl", applied.differences)
        write_bytes(draft.path / "diff.md", describe_differences(artefact, applied).encode())
        used = InputRef(name="labels.jsonl", sha256=_sha256(labels), kind="labels")
        kept = applied.questions[""]
        reasons = Counter(old.counts.reasons) + Counter(each.reason for each in applied.dropped)
        draft.finish(
            Manifest(
                kind=KIND,
                title=old.title,
                command=list(command),
                inputs=[artefact.reference(), used, *old.inputs],
                settings={
                    **old.settings,
                    "version": version,
                    "applied": {
                        "from": artefact.path.name,
                        **(_recorded(origin) if origin else {}),
                        "rules": msgspec.to_builtins(applied.rules),
                    },
                },
                seeds=old.seeds,
                models=old.models,
                prompts=old.prompts,
                counts=Counts(
                    kept=len(kept),
                    rejected=old.counts.rejected + len(applied.dropped),
                    failed=old.counts.failed,
                    reasons=dict(sorted(reasons.items())),
                    failures=old.counts.failures,
                ),
                cost=old.cost,
                costs=old.costs,
                metrics=_metrics(artefact, applied),
            )
        )
    return open_artefact(target, KIND)


def version_of(manifest: Manifest) -> int:
    """Which version of a benchmark this is; the first has no number."""
    version = manifest.settings.get("version", 1)
    return version if isinstance(version, int) else 1


def _sha256(labels: Sequence[ReviewLabel]) -> str:
    return hashlib.sha256(b"".join(canonical_json(label) + b"\n" for label in labels)).hexdigest()


def _carry_over(artefact: Artefact, applied: ReviewOutcome, folder: Path) -> None:
    """Everything that is not written anew; of images, those that a question still names."""
    named = {image for questions in applied.questions.values() for each in questions for image in each.images}
    own = {edition_file(name) for name in applied.questions} | {*_REWRITTEN, "labels.jsonl", "diff.jsonl", "diff.md"}
    for name in artefact.manifest.files:
        if name in own or (name.startswith("images/") and name not in named):
            continue
        copy_inside(artefact.file(name), name, folder)


def _write_questions(artefact: Artefact, applied: ReviewOutcome, folder: Path) -> None:
    for name, questions in applied.questions.items():
        write_jsonl(folder / edition_file(name), questions)
    here = {question.id for question in applied.questions[""]}
    grades = {id: dict(rows) for id, rows in Benchmark(artefact).qrels().items() if id in here}
    for id, documents in applied.supports.items():
        grades.setdefault(id, {}).update(dict.fromkeys(documents, 1))
    if grades:
        write_qrels(folder / "qrels.tsv", grades, "beir")


def _write_account(artefact: Artefact, applied: ReviewOutcome, labels: Iterable[ReviewLabel], folder: Path) -> None:
    """The tables by item: those that stay, those that went, who still waits, and one more line of the funnel."""
    gone = {each.item: each for each in applied.dropped}
    items = _items(artefact)
    if artefact.has("items.jsonl"):
        kept = (applied.items.get(id, item) for id, item in items.items() if id not in gone)
        write_jsonl(folder / "items.jsonl", kept)
    rejected = list(read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)) if artefact.has("rejected.jsonl") else []
    for id, each in gone.items():
        item = items.get(id)
        rejected.append(
            RejectedItem(
                id=id,
                step=STEP,
                reason=each.reason,
                details=each.details,
                documents=item.documents if item else (),
                values=item.values if item else {},
            )
        )
    if rejected:
        write_jsonl(folder / "rejected.jsonl", rejected)
    if artefact.has("review.jsonl"):
        said = {(label.item, label.criterion) for label in labels}
        write_jsonl(folder / "review.jsonl", _left(artefact, said, gone))
    if artefact.has("funnel.tsv"):
        rows = [tuple(row[name] for name in FUNNEL_HEADER) for row in read_tsv(artefact.file("funnel.tsv"))]
        write_tsv(folder / "funnel.tsv", FUNNEL_HEADER, [*rows, _funnel_row(applied)])


def _left(artefact: Artefact, said: set[tuple[str, str]], gone: Mapping[str, QuestionDifference]) -> list[ReviewTask]:
    """The tasks that still wait: of questions that stay, by criteria without a label."""
    left = []
    for task in read_jsonl(artefact.file("review.jsonl"), ReviewTask):
        criteria = tuple(each for each in task.criteria if (task.item, each) not in said)
        if criteria and task.item not in gone:
            left.append(replace(task, criteria=criteria))
    return left


def _stage(applied: ReviewOutcome) -> RecipeFunnelStep:
    kept, gone = len(applied.questions[""]), applied.dropped
    return RecipeFunnelStep(
        step=STEP, came=kept + len(gone), kept=kept, reasons=dict(Counter(each.reason for each in gone))
    )


def _funnel_row(applied: ReviewOutcome) -> tuple[object, ...]:
    stage = _stage(applied)
    reasons = "; ".join(
        f"{count} {reason}" for reason, count in sorted(stage.reasons.items(), key=lambda p: (-p[1], p[0]))
    )
    return (stage.step, stage.came, stage.kept, stage.rejected, 0, reasons, "")


def _metrics(artefact: Artefact, applied: ReviewOutcome) -> dict[str, object]:
    """The old figures that still hold, with the funnel's new line; lengths and facets are those of other questions."""
    stage = _stage(applied)
    metrics = {
        name: value for name, value in artefact.manifest.metrics.items() if name not in ("tokens", "facets", "review")
    }
    funnel = metrics.get("funnel")
    if isinstance(funnel, list):
        row = {
            "step": stage.step, "in": stage.came, "kept": stage.kept, "rejected": stage.rejected, "failed": 0,
            "reasons": stage.reasons, "failures": {},
        }  # fmt: skip
        metrics["funnel"] = [*funnel, row]
    metrics["applied"] = {
        "labelled": applied.labelled,
        "unlabelled": applied.unlabelled,
        "dropped": len(applied.dropped),
        "changed": len(applied.changed),
        "waiting for an expert": len(applied.waits),
        "labels for items not here": applied.elsewhere,
    }
    return metrics


def describe_differences(artefact: Artefact, applied: ReviewOutcome) -> str:
    """What differs, to be read."""
    return diff_markdown(
        applied.differences,
        name=artefact.path.name,
        version=version_of(artefact.manifest) + 1,
        kept=len(applied.questions[""]),
        unlabelled=applied.unlabelled,
        waits=applied.waits,
    )
