"""Revisions that are data, carried out on a question: an option is dropped, words of the source come into the stem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks.quote_search import find_quote
from hoofbeat.errors import InputError
from hoofbeat.recipes.cases.answer_options import plain_option
from hoofbeat.recipes.cases.stems import Spans, spans_of, stem_text
from hoofbeat.recipes.cases.two_level_review import ADD, DROP, LEVEL_1, LEVEL_2, PASSES
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.messages.question_duplicates import CRITERION as SAME
from hoofbeat.recipes.papers.cupcase import CRITERIA as LEAKS
from hoofbeat.recipes.papers.ogcare import CRITERIA as RATINGS
from hoofbeat.recipes.papers.r2med import CRITERIA as FLAGS
from hoofbeat.recipes.papers.sourceqa import CRITERIA as QUESTIONS
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, read_rating, says_yes
from hoofbeat.records import Document, Question, Span, Step

Labels = Mapping[str, Sequence[ReviewLabel]]
_SETTLES = {"options overlap": DROP, "options appropriate": DROP, "missing information": ADD}
_ANNOTATOR, _EXPERT = frozenset({"ok", "flag"}), frozenset({"keep", "exclude"})
_FORGIVEN = ("reasoning",)
_KNOWN = frozenset({*RATINGS, *LEAKS, *QUESTIONS, *FLAGS, *LEVEL_1, *LEVEL_2, DROP, ADD, SAME})


_OLDER_SETTINGS = {"least_rating": "min_rating", "least_options": "min_options"}
# Manifests of benchmarks made before the rename: without this, their rules would silently become the defaults.


class VerdictRules(Struct, frozen=True, kw_only=True):
    """The bounds that labels are held against; those of the recipe that made the benchmark, where it has them."""

    min_rating: float = 4.0
    review_rule: Literal["mean", "each"] = "mean"
    min_options: int = 2
    quote_match: float = 0.9


class ReviewVerdict(Struct, frozen=True, kw_only=True):
    """What becomes of a question: `reason` says why it goes; `drop` and `add` are what is changed where it stays.

    `waits` are criteria on which a word is still missing: an expert's on what was flagged.
    """

    reason: str = ""
    details: str = ""
    drop: tuple[str, ...] = ()
    add: tuple[str, ...] = ()
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
                f"the criterion {label.criterion!r} of a label for {label.item} says nothing about a benchmark",
                where=where or None,
                fix="apply labels of a review of a benchmark",
            )
        found.setdefault(label.item, defaultdict(list))[label.criterion].append(label)
    return found


def review_verdict(labels: Labels, rules: VerdictRules, where: str = "") -> ReviewVerdict:
    """What the labels of one question come to; the first reason that is found is told."""
    for judge in (_rated, _leaking, _refused, _excluded, _found):
        reason, details = judge(labels, rules, where)
        if reason:
            return ReviewVerdict(reason=reason, details=details)
    flagged = [each for each in FLAGS if _values(labels, each) >= {"flag"} and not _values(labels, each) & _EXPERT]
    return ReviewVerdict(
        drop=tuple(dict.fromkeys(label.value for label in labels.get(DROP, ()))),
        add=tuple(dict.fromkeys(label.value for label in labels.get(ADD, ()))),
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
                f"the label {strange[0]!r} by {criterion!r} means nothing here",
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
    told = [*(f"dropped {option!r}" for option in made.dropped), *(f"added {words!r}" for words in made.added)]
    step = Step(name="review", note="; ".join(told))
    return replace(
        made,
        question=replace(made.question, lineage=(*made.question.lineage, step)),
        item=made.item.done(step) if made.item else None,
        details="; ".join(told),
    )


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
            f"a revision adds words of the source to {question.id}, and the source is not at hand",
            fix="put the corpus beside the benchmark, or name it with --corpus",
        )
    found = find_quote(document, words, min_score=rules.quote_match)
    if found is None:
        return replace(made, reason="a revision adds words that are not in the source", details=words)
    places = tuple((span.start, span.end) for span in found.spans)
    new = _JOINT.join(document.text[start:end] for start, end in places)
    item, context = made.item, question.context
    if item is not None and item.get("stem_spans"):
        spans = _joined((*spans_of(item), *places))
        context = stem_text(document, spans)
        item = item.put(stem=context, stem_spans=[list(span) for span in spans])
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


def _joined(spans: Sequence[tuple[int, int]]) -> Spans:
    ordered = sorted(spans)
    joined = [ordered[0]]
    for start, end in ordered[1:]:
        if start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return tuple(joined)
