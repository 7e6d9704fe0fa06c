"""Whether systems know what they know: calibration of confidence, and what they leave unanswered.

Three things count as confidence, and are never mixed: what a file of predictions states, the probability of the chosen
option among the options where likelihoods were measured (a softmax of the protocol's scores), and how many of several
samples agree. Expected calibration error: confidences are put into `BINS` bins of equal width, and the gaps between
mean confidence and share right are averaged, weighted by the answers in each bin (Guo et al., ICML 2017). It depends on
the bins, and few answers make it too large.

Refused and unreadable answers stay apart from wrong ones: a system may gain by not answering, so both figures are
given: the share right of what was answered, and of everything that was planned.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.findings.intervals import Interval, wilson
from hoofbeat.findings.outcomes import Outcome, SystemKey, by_system, per_question
from hoofbeat.records import Answer

BINS = 10
STATED, LIKELIHOOD, AGREEMENT = "stated", "likelihood of the option", "agreement of samples"

_SCALE = {"likelihood": "", "likelihood/token": "tokens", "likelihood/byte": "bytes"}


class CalibrationBin(Struct, frozen=True, kw_only=True):
    """Confidences from `low` to `high` (the last bin includes 1): how many, their mean, and the share right."""

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


class AnswerCalibration(Struct, frozen=True, kw_only=True):
    """How well one kind of confidence of one system fits its `n` scored answers.

    `error` is the expected calibration error over the bins, `brier` the mean squared gap. `auc` is how likely a right
    answer has more confidence than a wrong one (0.5: no information; None where all are right or all wrong). `surest`
    is the share right among the surest half.
    """

    model: str
    condition: str
    kind: str
    n: int
    confidence: float
    accuracy: float
    error: float
    brier: float
    auc: float | None
    surest: float
    bins: tuple[CalibrationBin, ...]


class Abstention(Struct, frozen=True, kw_only=True):
    """What one system left unanswered: refusals, output without one readable choice, and other failures.

    `answered` is the share right of the answers that were scored, `low` and `high` those of all planned answers with
    unscored ones as wrong and as right.
    """

    model: str
    condition: str
    planned: int
    scored: int
    refused: int
    unreadable: int
    failed: int
    answered: float | None
    answered_interval: Interval | None
    low: float
    high: float


def calibrations(answers: Iterable[Answer], results: Iterable[Outcome]) -> list[AnswerCalibration]:
    """The calibration of every system and kind of confidence that its answers have."""
    right = {
        (row.question, row.model, row.condition, row.sample): row.correct for row in results if row.correct is not None
    }
    pairs: dict[tuple[str, str, str], list[tuple[float, bool]]] = {}
    samples: dict[SystemKey, dict[str, list[tuple[str, bool]]]] = {}
    for answer in answers:
        correct = right.get((answer.question, answer.model, answer.condition, answer.sample))
        if correct is None:
            continue
        for kind, value in _confidences(answer).items():
            pairs.setdefault((answer.model, answer.condition, kind), []).append((value, correct))
        if answer.choice is not None:
            mine = samples.setdefault((answer.model, answer.condition), {})
            mine.setdefault(answer.question, []).append((answer.choice, correct))
    for (model, condition), by_question in samples.items():
        agreed = [_agreement(rows) for rows in by_question.values() if len(rows) > 1]
        if agreed:
            pairs[model, condition, AGREEMENT] = agreed
    return [
        calibration([value for value, _ in rows], [correct for _, correct in rows], system=key)
        for key, rows in pairs.items()
    ]


def _confidences(answer: Answer) -> dict[str, float]:
    """The confidences that one answer has by itself."""
    found = {} if answer.confidence is None else {STATED: answer.confidence}
    if answer.likelihoods and answer.choice is not None and answer.protocol in _SCALE:
        unit = _SCALE[answer.protocol]
        scores = np.array([each.total / max(1, getattr(each, unit) if unit else 1) for each in answer.likelihoods])
        shares = np.exp(scores - scores.max())
        chosen = [each.option for each in answer.likelihoods].index(answer.choice)
        found[LIKELIHOOD] = float(shares[chosen] / shares.sum())
    return found


def _agreement(rows: Sequence[tuple[str, bool]]) -> tuple[float, bool]:
    """How many samples chose what most chose, and whether that is right; of a tie, the one chosen first."""
    (choice, times), *_ = Counter(choice for choice, _ in rows).most_common(1)
    return times / len(rows), next(correct for each, correct in rows if each == choice)


def calibration(
    confidences: Sequence[float],
    correct: Sequence[bool],
    *,
    system: tuple[str, str, str] = ("", "", ""),
    bins: int = BINS,
) -> AnswerCalibration:
    """Calibration of confidences from 0 to 1 against right and wrong answers."""
    values, hits = np.asarray(confidences, np.float64), np.asarray(correct, np.float64)
    places = np.minimum((values * bins).astype(np.int64), bins - 1)
    rows = []
    for place in range(bins):
        inside = places == place
        n = int(inside.sum())
        rows.append(
            CalibrationBin(
                low=place / bins,
                high=(place + 1) / bins,
                n=n,
                confidence=float(values[inside].mean()) if n else None,
                accuracy=float(hits[inside].mean()) if n else None,
            )
        )
    gaps = [row.n * abs((row.accuracy or 0.0) - (row.confidence or 0.0)) for row in rows]
    half = np.argsort(-values, kind="stable")[: max(1, len(values) // 2)]
    return AnswerCalibration(
        model=system[0],
        condition=system[1],
        kind=system[2],
        n=len(values),
        confidence=float(values.mean()),
        accuracy=float(hits.mean()),
        error=sum(gaps) / len(values),
        brier=float(((values - hits) ** 2).mean()),
        auc=_auc(values, hits),
        surest=float(hits[half].mean()),
        bins=tuple(rows),
    )


def _auc(values: NDArray[np.float64], hits: NDArray[np.float64]) -> float | None:
    """The area under the curve by ranks; equal confidences share the mean of their ranks."""
    right = int(hits.sum())
    wrong = len(hits) - right
    if not right or not wrong:
        return None
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return float((ranks[hits == 1].sum() - right * (right + 1) / 2) / (right * wrong))


def abstentions(results: Iterable[Outcome]) -> list[Abstention]:
    """What every system left unanswered, in the order of the outcomes."""
    found = []
    for (model, condition), rows in by_system(results).items():
        kinds = Counter(_kind(row.unscored) for row in rows if row.correct is None)
        scored = [row.correct for row in rows if row.correct is not None]
        shares = per_question(rows)
        found.append(
            Abstention(
                model=model,
                condition=condition,
                planned=len(rows),
                scored=len(scored),
                refused=kinds["refused"],
                unreadable=kinds["unreadable"],
                failed=kinds["failed"],
                answered=sum(map(bool, scored)) / len(scored) if scored else None,
                answered_interval=_interval(rows, scored),
                low=float(shares.low.mean()),
                high=float(shares.high.mean()),
            )
        )
    return found


def _interval(rows: Sequence[Outcome], scored: Sequence[bool | None]) -> Interval | None:
    """Wilson's interval where every question was answered once: samples of one question are not independent."""
    single = len({row.question for row in rows}) == len(rows)
    return wilson(sum(map(bool, scored)), len(scored)) if single and scored else None


def _kind(reason: str) -> str:
    stage, _, kind = reason.partition(":")
    if kind == "refusal":
        return "refused"
    return "unreadable" if stage == "choice" or kind in ("unreadable", "schema", "garbled", "truncated") else "failed"
