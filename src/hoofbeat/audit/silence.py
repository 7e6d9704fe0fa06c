"""Silence with proof: what was searched, which passages came nearest, and which answer the absence check turned down.

A silence can be a miss of the search or of the model. What is kept here with a silent answer lets a reviewer say "it
does say so" without opening the source. A passage's score is the share of the question's words that it has, each word
counted by how rare it is in what was shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

from msgspec import Struct

from hoofbeat.records import Answer, Passage, TraceStep
from hoofbeat.retrieval import ENGLISH
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.text import cut

STAGE = "silence"
NEAREST, SEARCHED, TURNED_DOWN = "nearest", "searched", "turned down"
_MOST = 3
_WINDOW, _STEP = 3, 2  # sentences
_SHOWN = 500
_ROUTE = "route: "
SHOWN_WHOLE = ("whole", "fallback")
"""The routes by which all of a source is shown."""

_ASKING = (
    "may can could should would must will shall do does did is are was were have has had when how what which who whom "
    "why where i me my you your we our us he she they them it its there any some if get go long often much many"
)


class NearPassage(Struct, frozen=True, kw_only=True):
    """A part of a passage that has words of the question, and how many of them, from 0 to 1."""

    passage: str
    heading: str
    score: float
    text: str


def nearest_passages(question: str, passages: Sequence[Passage], most: int = _MOST) -> list[NearPassage]:
    """The parts of the passages (three sentences each) that have most of a question's words, one per passage."""
    wanted = set(ENGLISH.terms(question)) - _asking()
    parts = [
        (passage, text, wanted & set(ENGLISH.terms(text))) for passage in passages for text in _parts(passage.text)
    ]
    if not wanted or not parts:
        return []
    often = Counter(term for _, _, found in parts for term in found)
    rarity = {term: math.log(1 + len(parts) / (1 + often[term])) for term in wanted}
    total = sum(rarity.values())
    best: dict[str, NearPassage] = {}
    for passage, text, found in parts:
        score = round(sum(rarity[term] for term in found) / total, 2) if total else 0.0
        if found and score > (best[passage.id].score if passage.id in best else 0.0):
            heading = passage.heading
            best[passage.id] = NearPassage(passage=passage.id, heading=heading, score=score, text=cut(text, _SHOWN))
    return sorted(best.values(), key=lambda each: -each.score)[:most]


@cache
def _asking() -> frozenset[str]:
    """The words that make a sentence a question: they tell nothing of what it is about."""
    return frozenset(ENGLISH.terms(_ASKING))


def _parts(text: str) -> list[str]:
    spans = sentence_spans(text)
    return [
        text[spans[at][0] : spans[min(at + _WINDOW, len(spans)) - 1][1]]
        for at in range(0, max(1, len(spans) - _WINDOW + _STEP), _STEP)
        if at < len(spans)
    ]


def silence_steps(
    question: str, passages: Sequence[Passage], trace: Sequence[TraceStep], turned_down: str = ""
) -> tuple[TraceStep, ...]:
    """What a silent answer is kept with: what was searched, the nearest passages, an answer that was turned down."""
    first = next((step for step in trace if step.what.startswith(_ROUTE)), TraceStep(stage="", what=_ROUTE))
    name = first.text if first.stage == "line" else first.stage
    size = sum(len(passage.text) for passage in passages)
    shown = f"{len(passages):,} passage{'s' * (len(passages) != 1)}, {size:,} characters"
    if first.what.removeprefix(_ROUTE) in SHOWN_WHOLE:
        how = f"the model saw the whole source: {shown}"
    else:
        how = f"the source was searched{' by ' * bool(name)}{name}; the model saw {shown}"
    steps = [TraceStep(stage=STAGE, what=SEARCHED, text=how)]
    for each in nearest_passages(question, passages):
        text = f"{each.score:.2f} · {each.heading}: {each.text}"
        steps.append(TraceStep(stage=STAGE, what=NEAREST, text=text, found=(each.passage,)))
    if turned_down:
        steps.append(TraceStep(stage=STAGE, what=TURNED_DOWN, text=turned_down))
    return tuple(steps)


def silence_proof(answer: Answer) -> list[str]:
    """The proof of a silence in lines for a reader, empty for an answer that says something."""
    words = {SEARCHED: "Searched", NEAREST: "Nearest passage, score", TURNED_DOWN: "Answer that the check rejected"}
    return [f"{words[step.what]}: {step.text}" for step in answer.trace if step.stage == STAGE and answer.absent]


def was_searched(answer: Answer) -> bool:
    """Whether only parts of the source were shown, found by a search: then what is missing may be a miss."""
    route = next((step.what.removeprefix(_ROUTE) for step in answer.trace if step.what.startswith(_ROUTE)), "")
    return bool(answer.evidence) and route not in (*SHOWN_WHOLE, "")
