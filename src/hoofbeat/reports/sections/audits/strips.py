"""Every question and every source in one picture: where a source is silent, and where it stands against the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hoofbeat.audit.findings import Pairs
from hoofbeat.reports.charts import Strip, label_strips
from hoofbeat.reports.model import Block, Heading, Text
from hoofbeat.reports.sections.audits.facts import AnswerKey, Facts
from hoofbeat.reports.sections.audits.files import has_grids
from hoofbeat.reports.sections.common import figure
from hoofbeat.text import cut

__all__ = ["strip_blocks", "strip_labels", "usual_labels"]

ROWS = 60
"""How many questions the picture shows, those with the most diverging pairs first."""

NO_LABEL = "?"


def usual_labels(pairs: Pairs) -> NDArray[np.int64]:
    """The label that each source has most often with the others on each question (questions × sources); −1 is none.

    Of labels that are equally frequent it is the strongest. One source that contradicts thirty others gives each of
    them one contradiction: the strongest label alone would show thirty-one of a kind, the usual one shows who differs.
    """
    size, labels = len(pairs.sources), len(pairs.domain.order)
    chosen = pairs.judged
    cells = pairs.question[chosen].astype(np.int64) * size
    places = np.concatenate([(cells + side[chosen]) * labels + pairs.label[chosen] for side in (pairs.a, pairs.b)])
    counts = np.bincount(places, minlength=len(pairs.questions) * size * labels)
    table = counts.reshape(len(pairs.questions), size, labels)
    usual = labels - 1 - table[:, :, ::-1].argmax(axis=2)
    return np.where(table.any(axis=2), usual, -1)


def strip_labels(facts: Facts, states: Mapping[AnswerKey, str], order: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Of each question how each source stands: its usual label, silent, without a label (`?`), or not asked."""
    usual = usual_labels(facts.pairs)
    places = [facts.pairs.sources.index(source) for source in order]
    names = (*facts.domain.order, "")
    found = {}
    for number, question in enumerate(facts.pairs.questions):
        line = []
        for source, code in zip(order, usual[number, places].tolist(), strict=True):
            state = states.get((question, source), "")
            silent = facts.domain.absent if state == "absent" else NO_LABEL if state else ""
            line.append(names[code] if code >= 0 else silent)
        found[question] = tuple(line)
    return found


def strip_blocks(
    facts: Facts, labels: Mapping[str, tuple[str, ...]], order: Sequence[str], links: Mapping[str, str], prefix: str
) -> list[Block]:
    """The questions with most divergence as rows, the sources as columns, in the order of the matrices."""
    diverging = facts.pairs.by_question(facts.pairs.diverging)
    judged = facts.pairs.by_question(facts.pairs.judged)
    ranked = sorted(
        (place for place in range(len(facts.pairs.questions)) if judged[place]),
        key=lambda place: (-diverging[place], -diverging[place] / judged[place], facts.pairs.questions[place]),
    )
    if not ranked:
        return []
    texts = {question.id: question.text for question in facts.audit.questions}
    rows = [
        Strip(
            name=f"{name}  {cut(texts.get(name, ''), 60)}",
            cells=labels[name],
            link=links.get(name, ""),
            tip=f"{name}: {cut(texts.get(name, ''), 160)}",
        )
        for name in (facts.pairs.questions[place] for place in ranked[:ROWS])
    ]
    shown = f"The {len(rows)} of {len(ranked):,} questions" if len(ranked) > len(rows) else "Questions"
    chart = figure(
        f"{prefix}-strip",
        f"{shown} with most diverging pairs first; sources from left to right as in the matrices above. A cell is the "
        "label that a source has most often with the others on that question, the stronger one of two that are equally "
        "frequent; an outline: it answers, but no pair of it has a label; empty: it was not asked.",
        lambda width: label_strips(rows, order, facts.domain.order, title="Questions by sources", width=width),
    )
    grids = ", and each as a grid of its own" if has_grids(facts) else "; audit export writes the grid of each"
    note = f"All questions are in the folder matrices, as a table of questions by sources{grids}."
    return [Heading("Question by source", f"{prefix}-strip", 3), chart, Text(note)]
