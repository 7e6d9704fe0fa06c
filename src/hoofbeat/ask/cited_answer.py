"""The model's answer to a case, only from the passages that are shown beside it, with its citations checked.

A check asks whether the cited passage was shown, shares a word with the sentence, and contains the quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from hoofbeat.answering.answer_calls import fit
from hoofbeat.ask.ask_records import AnswerPart, AskRequest, CitedAnswer, Doubt, SimilarReport
from hoofbeat.ask.similar_reports import ASKED
from hoofbeat.audit.source_citations import NO_SECTION, check_citations
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Passage, Question
from hoofbeat.retrieval import ENGLISH
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.window import nothing_fits

NOT_SHOWN = "no passage of this number was shown"
NO_WORD = "the passage has no word in common with this sentence"
UNCITED = "it cites no passage"
_RANGE = r"\d{1,4}(?:\s*[-–]\s*\d{1,4})?"
_CITING = re.compile(
    rf"[\[(]\s*(?:passages?|p\.)?\s*({_RANGE}(?:\s*(?:,|;|and|&)\s*(?:passages?\s*)?{_RANGE})*)\s*[\])]", re.I
)
_BRACKETS = re.compile(r"\[|\(\s*(?:passage|p\.)", re.I)
_ONE = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_MAX_WIDTH = 20
_QUOTES = {
    "quote not found": "a quote that is not in what was shown",
    "quote too short": "a quote too short to tell where it stands",
    "section not shown": "a section that was not shown",
}


def check_parts(text: str, shown: Mapping[int, Passage]) -> tuple[AnswerPart, ...]:
    """An answer as parts: its words, and each citation with what is wrong with it.

    Citations are numbers in square brackets, alone or listed or as a range, or `(passage 2)` in round ones.
    """
    sentences = sentence_spans(text)
    parts: list[AnswerPart] = []
    at = 0
    for match in _CITING.finditer(text):
        if not _BRACKETS.match(match.group()):
            continue
        parts += [AnswerPart(text=text[at : match.start()])] if match.start() > at else []
        at = match.end()
        words = _sentence(text, sentences, match.start())
        parts += [
            AnswerPart(text=f"[{number}]", cites=number, doubt=_doubt(number, words, shown))
            for number in _each(match[1])
        ]
    return (*parts, AnswerPart(text=text[at:])) if at < len(text) else tuple(parts)


def _each(listed: str) -> list[int]:
    """The numbers of a list of numbers and ranges; of a range that can't be meant only its ends."""
    found: list[int] = []
    for match in _ONE.finditer(listed):
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1) if 0 <= last - first <= _MAX_WIDTH else [first, last]
    return list(dict.fromkeys(found))


def _sentence(text: str, sentences: Sequence[tuple[int, int]], at: int) -> str:
    """What a citation belongs to: the sentence it stands in; where it begins one, the sentence before it as well."""
    before = [span for span in sentences if span[0] <= at]
    words = text[slice(*before[-1])] if before else text
    if len(before) > 1 and not ENGLISH.terms(_CITING.sub(" ", text[before[-1][0] : at])):
        words = f"{text[slice(*before[-2])]} {words}"
    return _CITING.sub(" ", words)


def _doubt(number: int, words: str, shown: Mapping[int, Passage]) -> str:
    passage = shown.get(number)
    if passage is None:
        return NOT_SHOWN
    terms = set(ENGLISH.terms(f"{passage.heading} {passage.text}"))
    return NO_WORD if terms.isdisjoint(ENGLISH.terms(words)) else ""


def check_answer(text: str, parts: Sequence[AnswerPart], shown: Sequence[Passage]) -> tuple[Doubt, ...]:
    """All that does not stand up in an answer: citations without support, quotes that are not there, none at all."""
    doubts = [Doubt(what=part.doubt, text=part.text) for part in parts if part.doubt]
    if not any(part.cites for part in parts):
        doubts.append(Doubt(what=UNCITED))
    checked = check_citations(NO_SECTION, "", text, shown)
    doubts += [Doubt(what=_QUOTES[step.what], text=step.text) for step in checked.steps if step.what in _QUOTES]
    return tuple(dict.fromkeys(doubts))


PROMPT = "ask-case"
TOO_LONG = "the case is too long for this model to read together with a report; shorten it and ask again"


def answer_case(
    ask: AskRequest, reports: Sequence[SimilarReport], model: Model, *, progress: Progress = SILENT
) -> CitedAnswer:
    """Ask the model, and check what it cites; a call that fails leaves an answer with its failure."""
    numbered = {
        each.number: replace(each.passage, heading=f"{report.title}: {each.passage.heading}".rstrip(": "))
        for report in reports
        for each in report.passages
    }
    question = Question(id=ASKED, text=ask.text)
    passages = list(numbered.values())
    kept, dropped = fit(passages, question.full_text, model.context, load_prompt(PROMPT).max_tokens)
    blank = Answer(
        question=question.id,
        model=model.spec,
        condition=f"{ask.line} @{len(passages)}",
        evidence=tuple(kept),
        dropped=tuple(dropped),
    )
    if nothing_fits(passages, kept, model.context) is not None:
        failure = Failure(kind="context-overflow", message=TOO_LONG, attempts=0)
        answer = replace(blank, failure=failure)
    else:
        answer = _answered(blank, ask.text, kept, model, progress)
    shown = dict(list(numbered.items())[: len(kept)])
    if answer.failure is not None:
        return CitedAnswer(answer=answer, shown=tuple(shown))
    parts = check_parts(answer.text, shown)
    return CitedAnswer(
        answer=answer,
        parts=parts,
        shown=tuple(shown),
        checks=check_citations(NO_SECTION, "", answer.text, kept).steps,
        doubts=check_answer(answer.text, parts, kept),
    )


def _answered(blank: Answer, case: str, passages: Sequence[Passage], model: Model, progress: Progress) -> Answer:
    """The model's statements as one text, each with the numbers of its passages behind it."""
    request = load_prompt(PROMPT).request({"case": case, "passages": passages})

    async def work(_: None) -> Answer:
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return replace(blank, failure=outcome)
        text = " ".join(filter(None, map(_statement, outcome.value["statements"])))
        used = outcome.reply.usage
        if not text:
            return replace(blank, failure=Failure(kind="unreadable", message="the model stated nothing", attempts=1))
        return replace(blank, text=text, calls=outcome.calls, usage=used)

    return model.run([None], work, title="answering", progress=progress)[0]


def _statement(said: Mapping[str, Any]) -> str:
    """One statement with its numbers before its full stop, but for those that its own words have already."""
    text = str(said["text"]).strip()
    there = {part.cites for part in check_parts(text, {})}
    numbers = [number for number in dict.fromkeys(said["passages"]) if number > 0 and number not in there]
    cited = "".join(f"[{number}]" for number in numbers)
    if not text or not cited:
        return text
    stop = text[-1] if text[-1] in ".!?" else "."
    return f"{text.removesuffix(stop)} {cited}{stop}"
