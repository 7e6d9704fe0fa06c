"""The distinct texts among the answers to one question, and how alike every two of them are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.audit.economy.answer_facts import AnswerFacts, facts_of
from hoofbeat.audit.pair_plan import same_answer_form
from hoofbeat.records import Answer

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors of unit length, a row each."""


class DistinctAnswers(Struct, frozen=True, kw_only=True):
    """The distinct texts of a question's answers: who says each (sorted), its facts, and the voice of each source.

    Texts are the same by `pairs.same_answer_form` and the least of them is shown to a judge, as in full judging. Silent
    sources have no voice.
    """

    members: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    facts: tuple[AnswerFacts, ...]
    of: dict[str, int]


def voices_of(answers: Sequence[Answer]) -> DistinctAnswers:
    """The voices of the answers that say something, in the order of their first sources."""
    spoken = [item for item in answers if not item.absent and item.failure is None]
    by_text: dict[str, list[Answer]] = {}
    for answer in sorted(spoken, key=lambda item: item.source):
        by_text.setdefault(same_answer_form(answer.text), []).append(answer)
    groups = list(by_text.values())
    texts = tuple(min(item.text for item in group) for group in groups)
    return DistinctAnswers(
        members=tuple(tuple(item.source for item in group) for group in groups),
        texts=texts,
        facts=tuple(map(facts_of, texts)),
        of={item.source: number for number, group in enumerate(groups) for item in group},
    )


def likeness_of(voices: DistinctAnswers, encode: Encode | None) -> NDArray[np.float64]:
    """How alike every two voices are, from 0 to 1, rounded so that a machine's last bits decide nothing."""
    count = len(voices.texts)
    likeness: NDArray[np.float64] = np.zeros((count, count))
    if encode is not None and count:
        vectors = np.asarray(encode(voices.texts), np.float64)
        likeness[:] = np.round(np.clip(vectors @ vectors.T, 0, 1), 4)
        return likeness
    sets = [set(facts.words) for facts in voices.facts]
    for v, w in combinations(range(count), 2):
        size = (len(sets[v]) * len(sets[w])) ** 0.5
        likeness[v, w] = likeness[w, v] = round(len(sets[v] & sets[w]) / size, 4) if size else 0.0
    return likeness
