"""Labels that people gave, put together: what most of them say of an answer, and where they contradict each other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hoofbeat.findings.scoring import HUMAN, AnswerKey
from hoofbeat.records import Failure, Judgment

__all__ = ["people_majority"]


def people_majority(judgments: Iterable[Judgment], aspect: str = "equivalence") -> list[Judgment]:
    """One judgment of each answer that people labelled, by the label of more than half of them.

    Its judge is `labels by NAME, NAME`: all who labelled that answer. Where no label has more than half of theirs the
    answer is contested: the judgment is a failure (`no-majority`), and the answer unscored.
    """
    given: dict[AnswerKey, dict[str, str]] = {}
    for each in judgments:
        if each.aspect == aspect and each.judge.startswith(HUMAN) and each.label and not each.failure:
            key = (each.question, each.model, each.condition, each.sample)
            given.setdefault(key, {})[each.judge.removeprefix(HUMAN)] = each.label
    found = []
    for (question, model, condition, sample), labels in given.items():
        label, count = Counter(labels.values()).most_common(1)[0]
        contested = 2 * count <= len(labels)
        failure = Failure(kind="no-majority", message="the people who labelled this do not agree", attempts=0)
        found.append(
            Judgment(
                question=question,
                model=model,
                condition=condition,
                sample=sample,
                judge=f"labels by {', '.join(sorted(labels))}",
                aspect=aspect,
                label="" if contested else label,
                failure=failure if contested else None,
            )
        )
    return found
