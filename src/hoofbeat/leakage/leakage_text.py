"""The texts a leakage check measures: a question cut in two, its reference texts, and controls to read them against.

A number alone says little: a model finds fluent prose likely whether it has seen it or not, and two texts on one
disease share words. So every measure is taken again on a control that nobody can have memorised as this item's text:

- the rest of a question with its sentences in another order, or the question's other edition where there is one;
- a reference text after another question, and a generated text against another question's reference.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.benchmarks.text_overlap import overlap_words, rouge_l
from hoofbeat.records import Document, Question
from hoofbeat.retrieval.index.chunking import sentence_spans

MIN_WORDS = 8
"""A rest shorter than this says nothing, whether it comes back or not."""

_OF_THE_STEM = 0.8
_REPEATED = 6


class LeakageItem(Struct, frozen=True, kw_only=True):
    """One question as it is probed. Empty texts are not to be had; `explanation_from` says where that one is from.

    `partner` is the question whose texts serve as the control; `edition_first` and `edition_rest` are the other
    edition's halves, where the benchmark has one that reads differently.
    """

    question: Question
    first: str = ""
    rest: str = ""
    shuffled: str = ""
    edition_first: str = ""
    edition_rest: str = ""
    reference: str = ""
    explanation: str = ""
    explanation_from: str = ""
    partner: str = ""


def stem_of(question: Question) -> str:
    """The text that is the question's own: its case, or where it has none the question itself."""
    return (question.context or question.text).strip()


def halves(text: str, *, share: float, characters: int) -> tuple[str, str]:
    """A text cut between two sentences near `share` of it, the rest at most `characters` long; empty where too short.

    A text of one sentence is cut between words.
    """
    wanted = len(text) * share
    starts = [start for start, _ in sentence_spans(text)][1:] or _word_starts(text)
    if not starts:
        return "", ""
    cut = min(starts, key=lambda start: (abs(start - wanted), start))
    first, rest = text[:cut].rstrip(), truncate_text(text[cut:], characters)
    if len(overlap_words(rest)) < MIN_WORDS or len(overlap_words(first)) < MIN_WORDS:
        return "", ""
    return first, rest


def truncate_text(text: str, characters: int) -> str:
    """At most a number of characters of a text: whole sentences where two or more fit, else whole words."""
    text = text.strip()
    if len(text) <= characters:
        return text
    ends = [end for _, end in sentence_spans(text) if end <= characters]
    if len(ends) > 1:
        return text[: ends[-1]]
    return text[:characters].rsplit(None, 1)[0]


def first_words(text: str, count: int) -> str:
    """The beginning of a text up to its `count`th word, as words are counted for overlaps."""
    return " ".join(overlap_words(text)[:count])


def strip_repeated_beginning(text: str, beginning: str) -> str:
    """What a continuation adds, where it first repeats the end of what it was shown; else the text as it is."""
    mark = overlap_words(beginning)[-_REPEATED:]
    words = overlap_words(text)
    for place in range(len(words) - len(mark), -1, -1):
        if words[place : place + len(mark)] == mark:
            return " ".join(words[place + len(mark) :])
    return text


def shuffled(text: str, seed: int) -> str:
    """The text's sentences in another order, the same for the same text and seed; empty where there is only one."""
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    if len(set(sentences)) < 2:
        return ""
    random_order = random.Random(_number(text, seed))  # noqa: S311 - a seeded shuffle
    order = sentences[:]
    while order == sentences:
        random_order.shuffle(order)
    return " ".join(order)


def explanation_of(question: Question, documents: Mapping[str, Document], characters: int) -> tuple[str, str]:
    """The reference explanation, and where it is from: evidence for the answer, else the source's discussion.

    Evidence that only repeats the case (recipes prove stems, too) explains nothing and is left out.
    """
    stem = stem_of(question)
    quotes = [span.quote.strip() for span in question.evidence]
    proof = [quote for quote in dict.fromkeys(quotes) if rouge_l(quote, stem).precision < _OF_THE_STEM]
    if proof:
        return truncate_text("\n".join(proof), characters), "evidence"
    for name in question.documents:
        document = documents.get(name)
        for section in document.sections if document else ():
            if document and section.role == "discussion" and (text := document.section_text(section).strip()):
                return truncate_text(text, characters), "discussion"
    return "", ""


def plan_leakage(
    questions: Sequence[Question],
    *,
    editions: Mapping[str, Question] | None = None,
    documents: Mapping[str, Document] | None = None,
    share: float = 0.5,
    characters: int = 600,
    seed: int = 0,
) -> list[LeakageItem]:
    """Every question with its texts and its partner. `editions` are the same questions as another edition has them."""
    partners = _partners(questions, seed)
    items = []
    for question in questions:
        stem = stem_of(question)
        first, rest = halves(stem, share=share, characters=characters)
        other = (editions or {}).get(question.id)
        reads = stem_of(other) if other else ""
        other_first, other_rest = (
            halves(reads, share=share, characters=characters) if reads and reads != stem else ("", "")
        )
        explanation, origin = explanation_of(question, documents or {}, characters)
        items.append(
            LeakageItem(
                question=question,
                first=first,
                rest=rest,
                shuffled=shuffled(rest, seed) if rest else "",
                edition_first=other_first,
                edition_rest=other_rest,
                reference=question.answer.strip(),
                explanation=explanation,
                explanation_from=origin,
                partner=partners.get(question.id, ""),
            )
        )
    return items


def _partners(questions: Sequence[Question], seed: int) -> dict[str, str]:
    """Each question's partner: the next in a seeded order that has other sources and another answer."""
    order = sorted(questions, key=lambda question: (_number(question.id, seed), question.id))
    partners: dict[str, str] = {}
    for place, question in enumerate(order):
        for other in order[place + 1 :] + order[:place]:
            apart = not set(other.documents) & set(question.documents)
            if apart and other.answer != question.answer and stem_of(other) != stem_of(question):
                partners[question.id] = other.id
                break
    return partners


def _word_starts(text: str) -> list[int]:
    return [place + 1 for place, letter in enumerate(text) if letter.isspace() and not text[place + 1 :][:1].isspace()]


def _number(text: str, seed: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\n{text}".encode()).digest()[:8], "big")
