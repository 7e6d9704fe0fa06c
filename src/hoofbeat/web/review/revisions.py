"""Revisions that are data, carried out on a question: an option is dropped, words of the source come into the stem."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.benchmarks.evidence import find_quote
from hoofbeat.errors import InputError
from hoofbeat.recipes.cases.options import plain_option
from hoofbeat.recipes.cases.stems import Spans, spans_of, stem_text
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.items import Item
from hoofbeat.records import Document, Question, Span, Step
from hoofbeat.web.review.verdicts import Rules, Verdict

__all__ = ["Revised", "revised"]

_JOINT = "\n\n"


class Revised(Struct, frozen=True, kw_only=True):
    """A question as it is after its revisions, and as it was; `reason` says why it can't stay where that is so."""

    before: Question
    question: Question
    item: Item | None = None
    dropped: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    reason: str = ""
    details: str = ""


def revised(
    question: Question,
    item: Item | None,
    found: Verdict,
    rules: Rules,
    source: Callable[[str], Document | None],
) -> Revised:
    """The question with its revisions. One that can't be carried out is a reason for it to go, as when it is built."""
    made = Revised(before=question, question=question, item=item)
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


def _without(made: Revised, value: str, rules: Rules) -> Revised:
    wanted = plain_option(value).casefold()
    question = made.question
    text = next((option for option in question.options if option.casefold() == wanted), None)
    if text is None or text == question.answer:
        if any(option.casefold() == wanted for option in made.dropped):
            return made
        return replace(made, reason="a revision drops what is not a wrong option", details=value)
    options = tuple(option for option in question.options if option != text)
    if len(options) < rules.least_options:
        details = f"{len(options)} of {rules.least_options}: {'; '.join(options)}"
        return replace(made, reason="too few options are left after revision", details=details)
    item = made.item
    if item is not None and isinstance(item.get("options"), list):
        item = item.put(options=[each for each in item["options"] if not _is_option(each, text)])
    return replace(made, question=replace(question, options=options), item=item, dropped=(*made.dropped, text))


def _is_option(entry: object, text: str) -> bool:
    return (entry.get("text") if isinstance(entry, dict) else entry) == text


def _with(made: Revised, words: str, rules: Rules, source: Callable[[str], Document | None]) -> Revised:
    question = made.question
    document = source(question.documents[0]) if question.documents else None
    if document is None:
        raise InputError(
            f"a revision adds words of the source to {question.id}, and the source is not at hand",
            fix="put the corpus beside the benchmark, or name it with --corpus",
        )
    found = find_quote(document, words, least=rules.quote_match)
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
