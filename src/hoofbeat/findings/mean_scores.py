"""The mean of a score: what scorers that measure instead of labelling (BERTScore, ROUGE-L, ...) add up to."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping

import numpy as np
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.findings.clusters import cluster_of
from hoofbeat.findings.intervals import SAMPLES, Interval, cluster_sums, percentiles, resampled_sums
from hoofbeat.findings.outcomes import AnswerKey, SystemKey, is_by, sensitivity_range
from hoofbeat.findings.repeated_answers import BootstrapSD, bootstrap_sd
from hoofbeat.records import Answer, Judgment

Scores = dict[SystemKey, dict[AnswerKey, float | str]]
"""The score of each answer of each system, or in words why it has none."""


class ScoreMean(Struct, frozen=True, kw_only=True):
    """The mean score of one system over its `n` planned answers.

    An answer without a score stays in the denominator and counts 0, the score of an answer that shares nothing with
    the reference; `unscored` counts such answers by reason, `mean_scored` is the mean of the others alone (None where
    there are none), and `sensitivity` is (all unscored 0, all unscored the maximum) where they exceed 1%.
    `bootstrap_sd` is the mean ± standard deviation over a few bootstrap samples. `judge` names the scorer.
    """

    model: str
    condition: str
    aspect: str
    judge: str
    n: int
    unscored: dict[str, int]
    mean: float
    interval: Interval
    mean_scored: float | None
    bootstrap_sd: BootstrapSD
    sensitivity: tuple[float, float] | None


def score_means(
    judgments: Iterable[Judgment],
    aspect: str,
    *,
    answers: Iterable[Answer] = (),
    judge: str | None = None,
    max_score: float = 1.0,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
    draws: int = 8,
    size: int = 500,
) -> list[ScoreMean]:
    """The mean score of one aspect for each system, sorted by name.

    `answers` adds the planned answers that have no such judgment, as unscored. `max_score` is the best score.
    `draws` and `size` are those of `bootstrap_sd`.
    """
    found, judges = scores_by_system(judgments, aspect, answers=answers, judge=judge)
    table = []
    for (model, condition), rows in sorted(found.items()):
        order = sorted(rows)
        values = np.array([_number(rows[key]) for key in order])
        labels = [cluster_of(key[0], clusters) for key in order]
        scored = [value for value in rows.values() if not isinstance(value, str)]
        missing = len(rows) - len(scored)
        columns = cluster_sums(np.stack([values, np.ones(len(values))], axis=1), labels)
        drawn = resampled_sums(columns, samples=samples, seed=seed)
        total = math.fsum(scored)
        table.append(
            ScoreMean(
                model=model,
                condition=condition,
                aspect=aspect,
                judge=judges.get((model, condition), ""),
                n=len(rows),
                unscored=dict(sorted(Counter(value for value in rows.values() if isinstance(value, str)).items())),
                mean=total / len(rows),
                interval=percentiles(drawn[:, 0] / drawn[:, 1], level, "cluster bootstrap"),
                mean_scored=total / len(scored) if scored else None,
                bootstrap_sd=bootstrap_sd(values, draws=draws, size=size, seed=seed),
                sensitivity=sensitivity_range(
                    total / len(rows), (total + missing * max_score) / len(rows), missing / len(rows)
                ),
            )
        )
    return table


def scores_by_system(
    judgments: Iterable[Judgment], aspect: str, *, answers: Iterable[Answer] = (), judge: str | None = None
) -> tuple[Scores, dict[SystemKey, str]]:
    """The scores of one aspect for each system's answers, and the scorer of each system."""
    found: Scores = {}
    judges: dict[SystemKey, str] = {}
    for judgment in judgments:
        if judgment.aspect != aspect or not is_by(judgment, judge):
            continue
        system = (judgment.model, judgment.condition)
        key = (judgment.question, *system, judgment.sample)
        if key in (mine := found.setdefault(system, {})):
            raise InputError(
                f"two scores of {aspect} for the answer of {key[1]} to {key[0]!r} ({key[2]})",
                fix="name one scorer, or remove the repeated score",
            )
        mine[key] = _score(judgment)
        judges.setdefault(system, judgment.judge)
    for answer in answers:
        system = (answer.model, answer.condition)
        reason = f"answer:{answer.failure.kind}" if answer.failure else "unjudged"
        found.setdefault(system, {}).setdefault((answer.question, *system, answer.sample), reason)
    return found, judges


def _score(judgment: Judgment) -> float | str:
    if judgment.failure:
        return f"judgment:{judgment.failure.kind}"
    if judgment.score is None or not math.isfinite(judgment.score):
        raise InputError(
            f"the {judgment.aspect} of the answer of {judgment.model} to {judgment.question!r} is not a number",
            fix="score it again, or record a failure",
        )
    return float(judgment.score)


def _number(value: float | str) -> float:
    return 0.0 if isinstance(value, str) else value
