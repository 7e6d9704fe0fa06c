"""BERTScore: how well the tokens of two texts find each other by their states, with the encoder at hand.

Every token of one text is matched with the token of the other whose state is nearest by cosine; precision is the mean
over the answer's tokens, recall that over the reference's, F1 their harmonic mean. The encoder's own marks take no
part. The states are those of the encoder's last layer; scores are not rescaled, so that texts on other matters
still score above 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import UsageError
from hoofbeat.judging.criteria import answer_text, empty_judgment, no_answer_failure
from hoofbeat.judging.scorers import ScoreAnswers, Scorer, ScoringContext
from hoofbeat.models import Encoder
from hoofbeat.models.encoder import TokenStates
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Judgment, Question

_BLOCK = 128


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that gives the state of every token."""

    @property
    def identity(self) -> str:
        """Everything that can change the states."""
        ...

    def token_states(self, texts: Sequence[str], progress: Progress = SILENT) -> list[TokenStates]:
        """The tokens of each text, without marks, and the last state of each."""
        ...


class BertScore(Struct, frozen=True, kw_only=True):
    """Precision, recall and F1 of one text against its reference."""

    precision: float
    recall: float
    f1: float


def match_tokens(text: TokenStates, reference: TokenStates, weights: Mapping[str, float] | None = None) -> BertScore:
    """The score of two texts whose token states are known; `weights` gives each token's (none: all count alike).

    A token without a weight counts as the rarest: the weight of one that stands in no reference.
    """
    if not text.tokens or not reference.tokens:
        return BertScore(precision=0.0, recall=0.0, f1=0.0)
    similar = np.clip(_unit(text.states) @ _unit(reference.states).T, -1.0, 1.0)
    precision = float(np.average(similar.max(axis=1), weights=_weights(text.tokens, weights)))
    recall = float(np.average(similar.max(axis=0), weights=_weights(reference.tokens, weights)))
    total = precision + recall
    return BertScore(precision=precision, recall=recall, f1=2 * precision * recall / total if total > 0 else 0.0)


def _unit(states: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = states.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return unit


def _weights(tokens: Sequence[str], weights: Mapping[str, float] | None) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    values = np.array([weights.get(token, weights.get("", 1.0)) for token in tokens], np.float64)
    return values if values.sum() > 0 else None


def token_weights(references: Iterable[Sequence[str]]) -> dict[str, float]:
    """Inverse document frequencies over the references: log((N + 1) / (n + 1)) for a token that n of N hold.

    The weight of a token that none holds stands under the empty string.
    """
    counts: Counter[str] = Counter()
    total = 0
    for tokens in references:
        counts.update(set(tokens))
        total += 1
    return {"": math.log(total + 1), **{token: math.log((total + 1) / (n + 1)) for token, n in counts.items()}}


class BertScorer:
    """BERTScore with one encoder; with `references`, tokens are weighted by how rare they are among them."""

    def __init__(self, encoder: Encoder | TokenEncoder, references: Iterable[str] | None = None) -> None:
        if not isinstance(encoder, TokenEncoder):
            raise UsageError(
                f"the encoder {encoder.name} does not give the states of tokens, which BERTScore compares",
                fix="use --encoder minilm, or a folder with an ONNX model that outputs token states",
            )
        self._encoder = encoder
        self._weights: dict[str, float] | None = None
        if references is not None:
            texts = list(dict.fromkeys(references))
            self._weights = token_weights(
                states.tokens
                for start in range(0, len(texts), _BLOCK)
                for states in encoder.token_states(texts[start : start + _BLOCK])
            )

    @property
    def name(self) -> str:
        """What the scores depend on, in words: encoder, layer, weights, rescaling."""
        weights = "idf of the gold answers" if self._weights is not None else "no idf"
        return f"bertscore: {self._encoder.identity}; last layer; {weights}; no rescaling"

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[BertScore]:
        """The score of each (text, reference); a text that stands several times is encoded once a block."""
        found: list[BertScore] = []
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            texts = list(dict.fromkeys(text for pair in block for text in pair))
            states = dict(zip(texts, self._encoder.token_states(texts), strict=True))
            found += [match_tokens(states[text], states[reference], self._weights) for text, reference in block]
        return found


def score_bertscore(scorer: BertScorer, questions: Mapping[str, Question], answers: Sequence[Answer]) -> list[Judgment]:
    """BERTScore of each answer, as three aspects: `bertscore` (F1), `bertscore-p` and `bertscore-r`."""
    pairs: dict[int, tuple[str, str]] = {}
    failures: dict[int, Failure] = {}
    for place, answer in enumerate(answers):
        question = questions.get(answer.question)
        if (failure := no_answer_failure(question, answer)) is not None:
            failures[place] = failure
        elif question is not None:
            pairs[place] = (answer_text(answer), question.answer)
    scores = dict(zip(pairs, scorer.scores(list(pairs.values())), strict=True))
    name = BERTSCORE.name
    judgments = []
    for place, answer in enumerate(answers):
        score = scores.get(place)
        values = (None, None, None) if score is None else (score.f1, score.precision, score.recall)
        judgments += [
            replace(empty_judgment(answer, aspect, scorer.name), score=value, failure=failures.get(place))
            for aspect, value in zip((name, f"{name}-p", f"{name}-r"), values, strict=True)
        ]
    return judgments


class _BertScore(Scorer, frozen=True, kw_only=True):
    def prepare(self, context: ScoringContext) -> ScoreAnswers:
        """Scores with the encoder, with the gold answers as references where words are weighted."""
        golds = [each.answer for each in context.questions.values() if each.answer.strip()]
        scorer = BertScorer(context.encoder(), golds if context.idf else None)
        return lambda answers: score_bertscore(scorer, context.questions, answers)

    def settings(self, context: ScoringContext) -> dict[str, object]:
        """Whether tokens were weighted."""
        return {"idf": context.idf}


BERTSCORE = _BertScore(
    name="bertscore",
    summary="how well the tokens of the texts match by their states",
    method="bertscore",
    order=60,
    uses_encoder=True,
    by_part=True,
)
