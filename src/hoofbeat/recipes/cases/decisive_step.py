"""The decisive step of a case, by rule: whether it is an action at all, where the case tells it, what came before it.

A model names the step. Rules object where findings or remarks about the report are named as a step, where the report
says that it failed, or where what is told after the step is said to have come before it. The model is told what a rule
objects to; where it insists, its word counts and the objection goes to the verifying call.
The patterns are data (`decisive.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise, takewhile
from typing import NamedTuple

from hoofbeat.corpus.roles import case_spans
from hoofbeat.corpus.terms import term_form
from hoofbeat.recipes.cases.distraction import held_words, telling_words
from hoofbeat.recipes.cases.residue import without_call_outs
from hoofbeat.recipes.guards.leaks import Leak, find_leaks
from hoofbeat.recipes.recipe_items import ItemRejection
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Span

_YES_NO = re.compile(
    r"(?:should|shall|must|can|could|may|would|will|is|are|was|were|does|do|did|has|have|had)\b", re.IGNORECASE
)
_APART = 3  # words that may stand between two words of a step: "drainage through the skin of the abscess"
_MIN_SHARE = 0.5  # of a step's telling words, for a sentence that no model pointed at
_WHOLE = frozenset({"name", "order", "synonym", "abbreviation"})  # kinds of leak that name all of a step
_LOOK_BACK = 2  # sentences before the one that tells a step, in which it may already be under way
_PLANNED = re.compile(
    r"\b(?:planned|scheduled|(?:wait)?listed for|referred for|decided|decision|agreed|considered|recommended|proposed|"
    r"suggested|intended|offered|discuss(?:ed|ion|ions)|consent(?:ed)?|counsel(?:l?ed|l?ing)|desired?|protocol|"
    r"(?:will|would|should) be)\b",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"(?<!be )\b(?:performed|done|started|begun|began|initiated|given|administered|placed|inserted|implanted|deployed|"
    r"received|converted|underwent|stopped|withheld|carried out)\b",
    re.IGNORECASE,
)
_LEGEND = re.compile(r"\s*(?:\([A-Za-z]\)|(?:fig(?:ure)?|table|photo)\b)", re.IGNORECASE)
_BEFORE = re.compile(r"\b(?:before|prior to|preceding)\b", re.IGNORECASE)
_OF_BEFORE = re.compile(
    r"\bpre-?(?:operative|procedural|interventional)(?:ly)?\b|\bon (?:admission|arrival)\b"
    r"|\bat (?:admission|presentation)\b",
    re.IGNORECASE,
)
_OPERATION = re.compile(r"\b(?:operation|surgery|procedure|intervention)\b", re.IGNORECASE)
_NAMED_WITHIN = 4  # words after "before" that say before what
_MIN_LEAD = 6  # words before a step within its sentence: fewer are "on day 3" or "under anaesthesia"


class _Refused(NamedTuple):
    """What a step may not be: patterns that are looked for in it up to where it `ends`."""

    reason: str
    patterns: tuple[re.Pattern[str], ...]
    ends: re.Pattern[str]


@cache
def _rules() -> tuple[list[_Refused], dict[str, re.Pattern[str]]]:
    """What a step may not be, and how a text says that one failed."""
    data = word_data("decisive")
    flags = re.IGNORECASE
    refused = [
        _Refused(
            rule["reason"],
            tuple(re.compile(each, flags) for each in rule["patterns"]),
            re.compile(rule.get("ends", "$"), flags),
        )
        for rule in data["refused"]
    ]
    return refused, {place: re.compile(each, flags) for place, each in data["failed"].items()}


def asks_yes_no(question: str) -> bool:
    """Whether a question is answered by yes or no, and so names what should have been found."""
    return bool(_YES_NO.match(question))


def no_action(step: str) -> ItemRejection | None:
    """Whether a step names nothing, or a finding or a remark about the report, and nothing that anybody did."""
    if not telling_words(step):
        return ItemRejection(reason="the decisive step names nothing", details=step)
    for rule in _rules()[0]:
        named = rule.ends.split(step, maxsplit=1)[0].strip(" ,;")
        if any(pattern.search(named) for pattern in rule.patterns):
            return ItemRejection(reason=rule.reason, details=step)
    return None


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


def told_at(
    step: str, done: Sequence[Span], spans: Sequence[Span], document: Document
) -> tuple[list[Span], ItemRejection | None]:
    """The sentences of the case that tell the step, and what speaks against them, if anything.

    They are those pointed at, if one of them names anything of the step; or else the sentence of the case that names
    most of it: a model that names the step rightly may miss its sentence by one, or point at where the discussion
    repeats it. Of sentences that name as much, one next to what was pointed at comes first, then the earliest.
    """
    parts = case_spans(document) or ((0, len(document.text)),)
    case = [span for span in spans if any(start <= span.start < end for start, end in parts)]
    chosen = [span for span in case if span in done]
    told = chosen if any(_tells(span.quote, step, document) for span in chosen) else []
    doubt = None
    if not told:
        near = [one if other in done else other for one, other in pairwise(case) if (one in done) != (other in done)]
        wanted = telling_words(step)
        best = max((*near, *case), key=lambda span: len(wanted & telling_words(span.quote)), default=done[0])
        found = len(wanted & telling_words(best.quote)) >= _MIN_SHARE * len(wanted)
        told = [best] if found else chosen or list(done)
        if chosen or not found:
            quoted = " ".join(" ".join(span.quote.split()) for span in done)
            details = f"{quoted} ({step})"
            doubt = ItemRejection(reason="the quote does not tell the decisive step", details=details, span=done[0])
    following = {one: other.quote for one, other in pairwise(spans)}
    if not doubt and all(failed_there(span.quote, step, following.get(span, "")) for span in told):
        doubt = ItemRejection(reason="the step is told as one that failed", details=step, span=told[0])
    return told, doubt


def may_begin_at(step: str, step_at: Sequence[Sequence[int]], spans: Sequence[Span], document: Document) -> int:
    """Where the step may already begin: with a sentence that names it, shortly before those that tell it.

    "An ultrasound was arranged. A shadow was seen. The ultrasound showed ...": if the step begins with the first of
    these, what follows was not known before it. That is for the model to settle.
    """
    first = next((place for place, span in enumerate(spans) if span.start >= step_at[0][0]), len(spans))
    lead = spans[max(0, first - _LOOK_BACK) : first]
    return next((span.start for span in lead if names_step(span.quote, step, document)), step_at[0][0])


def begins_at(step_at: Sequence[Sequence[int]], text: str) -> int:
    """Where the step begins: at the first of its sentences that tells it as done.

    A plan is announced early ("a sequential transplant was planned"), and what is told between it and its doing was
    known before the step. Where all the report tells is the decision, the step begins there.
    """
    sentences = ((start, text[start:end]) for start, end in step_at)
    done = (start for start, sentence in sentences if _DONE.search(sentence) or not _PLANNED.search(sentence))
    return next(done, step_at[0][0])


def _tells(sentence: str, step: str, document: Document) -> bool:
    """Whether a sentence has a telling word of a step, inflected or not, or a short form of it."""
    return bool(held_words(sentence, step)) or bool(step_leaks(sentence, step, document))


def names_step(sentence: str, step: str, document: Document) -> bool:
    """Whether a sentence has the word of a step's action and more than half of its telling words, or its whole name.

    "A central line was placed" does not name an ultrasonography of the central vein and line, nor does a word that the
    step shares with a finding on the way to it ("echocardiography", "bronchoscopy").
    """
    held, words = held_words(sentence, step), telling_words(step)
    action = next((form for word in re.findall(r"[^\W_]+", step) if (form := term_form(word)) in words), "")
    enough = action in held and len(held) > _MIN_SHARE * len(words)
    leaks = step_leaks(sentence, step, document)
    return enough or any(leak.kind in _WHOLE and is_whole_name(leak, step) for leak in leaks)


def step_leaks(text: str, step: str, document: Document) -> list[Leak]:
    """Mentions of a step in a text, without those that are general words alone.

    The leak guard reads diagnoses: of "resection of the bowel, then mesh repair" it takes "then" for a name.
    """
    return [leak for leak in find_leaks(text, step, source=document) if telling_words(leak.text)]


def is_whole_name(leak: Leak, step: str) -> bool:
    """Whether a name that was found is that of the step, and not of a part of it.

    The leak guard reads diagnoses: of "ultrasonography of the central vein and line" it takes "line" for a second name.
    """
    part = telling_words(leak.form)
    return leak.kind not in ("name", "order") or len(part) >= _MIN_SHARE * len(telling_words(step))


def lies(
    span: Span,
    said: str,
    step: str,
    step_at: Sequence[Sequence[int]],
    *,
    begins: int,
    case: Sequence[tuple[int, int]],
) -> tuple[str, bool]:
    """How a sentence lies to the step (`before`, `decisive` or `after`), and whether that is doubtful.

    A sentence that tells the step is decisive. Of the others a model says when they were; a rule doubts `before` where
    the `case` tells the sentence after the step `begins`, unless it is a legend or says itself that it was before.
    Of 34 sentences told after the step in real reports, a careful model gave way on 22. Sentences that only share words
    with the step, or lie shortly before it, are not doubted: of four such, it gave way on one.
    """
    if any(span.start < end and start < span.end for start, end in step_at):
        return "decisive", False
    later = span.start > begins and any(start <= span.start < end for start, end in case)
    return said, said == "before" and later and not (_LEGEND.match(span.quote) or says_before(span.quote, step))


def says_before(sentence: str, step: str) -> bool:
    """Whether a sentence says itself that it tells of the time before the step ("before the transplant")."""
    after = (sentence[found.end() :].split()[:_NAMED_WITHIN] for found in _BEFORE.finditer(sentence))
    named = (" ".join(words) for words in after)
    return bool(_OF_BEFORE.search(sentence)) or any(_OPERATION.search(each) or held_words(each, step) for each in named)


def fact_before(span: Span, when: str, step: str) -> str:
    """What a sentence that lies there tells of the time before the step, without pointers to figures and references.

    Of one that tells the step it is what leads up to it; empty where that is too little, and for what came after.
    """
    text = without_call_outs(" ".join(span.quote.split()))
    if when != "decisive":
        return text if when == "before" else ""
    clauses = re.split(r"(?<=[,;])\s", text)
    lead = " ".join(takewhile(lambda clause: not telling_words(step) & telling_words(clause), clauses))
    return f"{lead.rstrip(',; ')}." if len(lead.split()) >= _MIN_LEAD and lead != text else ""
