"""The decisive step of a case, by rule: whether it is an action at all, where the case tells it, what came before it.

A model names the step. What can be said without another call is said here: findings and remarks about the report are no
steps, one that failed is not what a report is published for, and a sentence that tells the step does not lie before it.
The patterns are data (`decisive.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, takewhile

from hoofbeat.corpus.roles import case_spans
from hoofbeat.corpus.vocabularies.terms import term_form
from hoofbeat.recipes.cases.distraction import giving_away, telling_words
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.recipe_items import ItemRejection
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Span
from hoofbeat.retrieval.index.chunking import sentence_spans

_POINTER = re.compile(
    r"\s*[\[(]\s*(?:(?:see )?(?:fig|table|supplement)[^\])]*|\d+(?:\s*[,–-]\s*\d+)*)\s*[\])]", re.IGNORECASE
)
_YES_NO = re.compile(
    r"(?:should|shall|must|can|could|may|would|will|is|are|was|were|does|do|did|has|have|had)\b", re.IGNORECASE
)
_APART = 3  # words that may stand between two words of a step: "drainage through the skin of the abscess"
_STEM = 6  # letters by which inflected words are one: ultrasound and ultrasonic, resected and resection
_MIN_SHARE = 0.5  # of a step's telling words, for a sentence that no model pointed at
_LOOK_BACK = 2  # sentences before the one that tells a step, in which it may already be under way
_MIN_LEAD = 6  # words before a step within its sentence: fewer are "on day 3" or "under anaesthesia"


@cache
def _rules() -> tuple[list[tuple[str, re.Pattern[str]]], dict[str, re.Pattern[str]]]:
    """What a step may not be, by reason, and how a text says that one failed."""
    data = word_data("decisive")
    flags = re.IGNORECASE
    refused = [(rule["reason"], re.compile(each, flags)) for rule in data["refused"] for each in rule["patterns"]]
    return refused, {place: re.compile(each, flags) for place, each in data["failed"].items()}


def first_asked(text: str) -> str:
    """The first sentence of a text that asks something: what a model adds to it mostly proposes an answer."""
    sentences = (text[start:end].strip() for start, end in sentence_spans(text))
    return next((sentence for sentence in sentences if sentence.endswith("?")), text)


def asks_yes_no(question: str) -> bool:
    """Whether a question is answered by yes or no, and so names what should have been found."""
    return bool(_YES_NO.match(question))


def no_action(step: str) -> ItemRejection | None:
    """Whether a step names nothing, or a finding or a remark about the report, and nothing that anybody did."""
    if not telling_words(step):
        return ItemRejection(reason="the decisive step names nothing", details=step)
    told = (ItemRejection(reason=reason, details=step) for reason, pattern in _rules()[0] if pattern.search(step))
    return next(told, None)


def failed_there(sentence: str, step: str, following: str = "") -> bool:
    """Whether a sentence, or the one following it, says that a step failed wherever it names the step."""
    wanted, rules = telling_words(step), _rules()[1]
    runs: list[list[re.Match[str]]] = []
    for word in re.finditer(r"[^\W_]+", sentence):
        if term_form(word.group()) in wanted:
            if runs and sentence[runs[-1][-1].end() : word.start()].count(" ") <= _APART:
                runs[-1].append(word)
            else:
                runs.append([word])
    named = [run for run in runs if len({term_form(word.group()) for word in run}) > len(wanted) / 2]
    return any(named) and (
        bool(rules["next"].search(following.strip()))
        or all(
            rules["after"].search(sentence[run[-1].end() :]) or rules["before"].search(sentence[: run[0].start()])
            for run in named
        )
    )


def told_at(step: str, done: Sequence[Span], spans: Sequence[Span], document: Document) -> list[Span] | ItemRejection:
    """The sentences of the case that tell the step: those pointed at, or else the one that names most of it.

    A model that names the step rightly may miss its sentence by one, or point at where the discussion repeats it. Of
    sentences that name as much of it, one next to what was pointed at comes first, then the earliest.
    """
    parts = case_spans(document) or ((0, len(document.text)),)
    case = [span for span in spans if any(start <= span.start < end for start, end in parts)]
    near = [one if other in done else other for one, other in pairwise(case) if (one in done) != (other in done)]
    wanted = telling_words(step)
    best = max((*near, *case), key=lambda span: len(wanted & telling_words(span.quote)), default=done[0])
    told = [span for span in case if span in done and _tells(span.quote, step, document)]
    if not told and len(wanted & telling_words(best.quote)) >= _MIN_SHARE * len(wanted):
        told = [best]
    if not told:
        quoted = " ".join(" ".join(span.quote.split()) for span in done)
        return ItemRejection(
            reason="the quote does not tell the decisive step", details=f"{quoted} ({step})", span=done[0]
        )
    following = {one: other.quote for one, other in pairwise(spans)}
    if all(failed_there(span.quote, step, following.get(span, "")) for span in told):
        return ItemRejection(reason="the step is told as one that failed", details=step, span=told[0])
    return told


def begun_at(step: str, told: Sequence[Span], spans: Sequence[Span], document: Document) -> list[list[int]]:
    """Where the step stands, as start and end: the sentences that tell it, and any shortly before that speaks of it.

    "An ultrasound was arranged. A shadow was seen. The ultrasound showed ...": the step begins with the first of these.
    """
    first = spans.index(told[0])
    lead = [span for span in spans[max(0, first - _LOOK_BACK) : first] if _tells(span.quote, step, document)]
    return [[span.start, span.end] for span in (*lead, *told)]


def _tells(sentence: str, step: str, document: Document) -> bool:
    """Whether a sentence has a telling word of a step, inflected or not, or a short form of it."""
    wanted, held = telling_words(step), telling_words(sentence)
    alike = any(one[:_STEM] == other[:_STEM] for one in wanted for other in held if min(len(one), len(other)) >= _STEM)
    return bool(wanted & held) or alike or bool(find_leaks(sentence, step, source=document))


def lies(span: Span, said: str, step: str, step_at: Sequence[Sequence[int]], *, share: float) -> str:
    """How a sentence lies to the step: `before`, `decisive` or `after`. `said` is what a model makes of it.

    What tells the step is decisive, and nothing told after the step came before it, whatever a model says: what should
    have come before would else give away how it ended.
    """
    if any(span.start < end and start < span.end for start, end in step_at) or giving_away(
        span.quote, step, share=share
    ):
        return "decisive"
    return "after" if span.start > step_at[0][0] else said


def fact_before(span: Span, when: str, step: str) -> str:
    """What a sentence that lies there tells of the time before the step, without pointers to figures and references.

    Of one that tells the step it is what leads up to it; empty where that is too little, and for what came after.
    """
    text = _POINTER.sub("", " ".join(span.quote.split()))
    if when != "decisive":
        return text if when == "before" else ""
    clauses = re.split(r"(?<=[,;])\s", text)
    lead = " ".join(takewhile(lambda clause: not telling_words(step) & telling_words(clause), clauses))
    return f"{lead.rstrip(',; ')}." if len(lead.split()) >= _MIN_LEAD and lead != text else ""
