"""BERTScore: how well the tokens of two texts find each other by their states (Zhang and others 2020).

Every token of one text is matched with the token of the other whose state is nearest by cosine; precision is the mean
over the answer's tokens, recall that over the reference's, F1 their harmonic mean. As in the reference implementation
(`bert_score`):

- The encoder's own marks ([CLS], [SEP]) weigh nothing, but a token may find its nearest state in one of them.
- The states are those of one layer: the one that the reference implementation takes for that encoder
  (`bertscore_layers.toml`), the last for others, or the layer that is named.
- With a baseline, P, R and F1 each become (x - b) / (1 - b), where b is the value of unrelated texts at that layer.

It pads texts to the longest of a batch, and padding can lift a negative similarity to 0; nothing is padded here.
Values of different encoders, layers or baselines can't be compared: the judge's name carries all three.
"""

from __future__ import annotations

import csv
import math
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.criteria import answer_text, empty_judgment, no_answer_failure
from hoofbeat.judging.scorers import ScoreAnswers, Scorer, ScoringContext
from hoofbeat.models import Encoder
from hoofbeat.models.encoder import TokenStates
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Judgment, Question
from hoofbeat.store.files import file_sha256

LAST = "last"
AUTO = "auto"
_BLOCK = 128


@runtime_checkable
class TokenEncoder(Protocol):
    """An encoder that gives the state of every token after any of its layers."""

    @property
    def name(self) -> str:
        """The name of the model, by which the reference implementation chooses a layer."""
        ...

    def layer_count(self) -> int:
        """How many layers it has."""
        ...

    @property
    def identity(self) -> str:
        """Everything that can change the states."""
        ...

    def token_states(
        self, texts: Sequence[str], progress: Progress = SILENT, *, layer: int | None = None
    ) -> list[TokenStates]:
        """The tokens of each text, and the state of each after a layer; else after the last."""
        ...


class BertScore(Struct, frozen=True, kw_only=True):
    """Precision, recall and F1 of one text against its reference."""

    precision: float
    recall: float
    f1: float


class BertScoreBaseline(NamedTuple):
    """What unrelated texts score at each layer, by the reference implementation's files (LAYER, P, R, F)."""

    name: str
    values: dict[int, BertScore]

    @classmethod
    def read(cls, path: Path) -> BertScoreBaseline:
        """Read `rescale_baseline/en/MODEL.tsv` of `bert_score`, which despite its name is separated by commas."""
        try:
            with path.open(encoding="utf-8", newline="") as stream:
                values = {
                    int(row["LAYER"]): BertScore(precision=float(row["P"]), recall=float(row["R"]), f1=float(row["F"]))
                    for row in csv.DictReader(stream)
                }
            if not values:
                raise ValueError("it has no layers")
        except (OSError, KeyError, TypeError, ValueError) as err:
            raise InputError(
                f"the baseline can't be read: {err}", where=str(path), fix="give a file with the columns LAYER,P,R,F"
            ) from err
        return cls(f"{path.name}@{file_sha256(path)[:8]}", values)

    def at(self, layer: int) -> BertScore:
        """The values at a layer."""
        if layer not in self.values:
            raise InputError(f"the baseline {self.name} has no layer {layer}", fix="give the file of this encoder")
        return self.values[layer]


def rescaled(score: BertScore, baseline: BertScore) -> BertScore:
    """A score with the baseline at 0 and 1 at 1; it may be negative."""
    pairs = zip(
        (score.precision, score.recall, score.f1), (baseline.precision, baseline.recall, baseline.f1), strict=True
    )
    precision, recall, f1 = ((value - base) / (1 - base) for value, base in pairs)
    return BertScore(precision=precision, recall=recall, f1=f1)


@cache
def reference_layers() -> dict[str, int]:
    """The layer that the reference implementation takes for each model, by the last part of the model's name."""
    text = resources.files("hoofbeat.judging.scorers").joinpath("bertscore_layers.toml").read_text(encoding="utf-8")
    return {name.lower(): int(layer) for name, layer in tomllib.loads(text)["layers"].items()}


def match_tokens(text: TokenStates, reference: TokenStates, weights: Mapping[str, float] | None = None) -> BertScore:
    """The score of two texts whose token states are known; `weights` gives each token's (none: all count alike).

    A token without a weight counts as the rarest: the weight of one that no reference holds.
    """
    if all(text.marks) or all(reference.marks):
        return BertScore(precision=0.0, recall=0.0, f1=0.0)
    similar = np.clip(_unit(text.states) @ _unit(reference.states).T, -1.0, 1.0)
    precision = float(np.average(similar.max(axis=1), weights=_weights(text, weights)))
    recall = float(np.average(similar.max(axis=0), weights=_weights(reference, weights)))
    total = precision + recall
    return BertScore(precision=precision, recall=recall, f1=2 * precision * recall / total if total > 0 else 0.0)


def _unit(states: NDArray[np.float32]) -> NDArray[np.float64]:
    wide = states.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    unit: NDArray[np.float64] = wide / np.where(lengths > 0, lengths, 1.0)
    return unit


def _weights(text: TokenStates, weights: Mapping[str, float] | None) -> NDArray[np.float64]:
    """Marks weigh nothing; where no token weighs anything, all others count alike."""
    others = ~np.array(text.marks, bool)
    if weights is None:
        return others.astype(np.float64)
    values = np.array([weights.get(token, weights.get("", 1.0)) for token in text.tokens], np.float64) * others
    return values if values.sum() > 0 else others.astype(np.float64)


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
    """BERTScore with one encoder; with `references`, tokens are weighted by how rare they are among them.

    `layer` is a number from 1, `last`, or `auto`: the reference implementation's choice for the encoder where it made
    one, else the last.
    """

    def __init__(
        self,
        encoder: Encoder | TokenEncoder,
        references: Iterable[str] | None = None,
        *,
        layer: str = AUTO,
        baseline: BertScoreBaseline | None = None,
    ) -> None:
        if not isinstance(encoder, TokenEncoder):
            raise UsageError(
                f"the encoder {encoder.name} does not output token states, which BERTScore compares",
                fix="use --encoder minilm, or a folder with an ONNX model that outputs token states",
            )
        self._encoder = encoder
        self._layer = _layer(encoder, layer)
        self._baseline = baseline
        self._base = baseline.at(self._layer or encoder.layer_count()) if baseline else None
        self._weights: dict[str, float] | None = None
        if references is not None:
            texts = list(references)
            self._weights = token_weights(
                states.tokens
                for start in range(0, len(texts), _BLOCK)
                for states in self._states(texts[start : start + _BLOCK])
            )

    @property
    def name(self) -> str:
        """What the scores depend on, in words: encoder, layer, weights, rescaling."""
        layer = f"layer {self._layer}" if self._layer else "layer last"
        weights = "idf of the gold answers" if self._weights is not None else "no idf"
        scale = f"rescaled by {self._baseline.name}" if self._baseline else "not rescaled"
        return f"bertscore: {self._encoder.identity}; {layer}; {weights}; {scale}"

    def _states(self, texts: Sequence[str]) -> list[TokenStates]:
        return self._encoder.token_states(texts, layer=self._layer)

    def scores(self, pairs: Sequence[tuple[str, str]]) -> list[BertScore]:
        """The score of each (text, reference); a text that stands several times is encoded once a block."""
        found: list[BertScore] = []
        for start in range(0, len(pairs), _BLOCK):
            block = pairs[start : start + _BLOCK]
            texts = list(dict.fromkeys(text for pair in block for text in pair))
            states = dict(zip(texts, self._states(texts), strict=True))
            scores = [match_tokens(states[text], states[reference], self._weights) for text, reference in block]
            found += [rescaled(score, self._base) for score in scores] if self._base else scores
        return found


def _layer(encoder: TokenEncoder, wanted: str) -> int | None:
    """The layer's number; none for the last, which every encoder gives out."""
    if wanted == AUTO:
        return reference_layers().get(encoder.name.lower())
    if wanted == LAST:
        return None
    count = encoder.layer_count()
    if not wanted.isdecimal() or not 1 <= int(wanted) <= count:
        raise UsageError(f"{encoder.name} has no layer {wanted!r}", fix=f"give a number from 1 to {count}, or {LAST}")
    return int(wanted)


def score_bertscore(scorer: BertScorer, questions: Mapping[str, Question], answers: Sequence[Answer]) -> list[Judgment]:
    """BERTScore of each answer, as three aspects: `bertscore` (F1), `bertscore-p` and `bertscore-r`."""
    pairs: list[tuple[str, str]] = []
    places: list[int] = []
    failures: dict[int, Failure] = {}
    for place, answer in enumerate(answers):
        question = questions.get(answer.question)
        if (failure := no_answer_failure(question, answer)) is not None:
            failures[place] = failure
        elif question is not None:
            pairs += [(answer_text(answer), right) for right in question.right_answers]
            places += [place] * (len(pairs) - len(places))
    scores: dict[int, BertScore] = {}
    for place, score in zip(places, scorer.scores(pairs), strict=True):
        scores[place] = max(scores.get(place, score), score, key=lambda each: each.f1)
    name = BERTSCORE.name
    judgments = []
    for place, answer in enumerate(answers):
        best = scores.get(place)
        values = (None, None, None) if best is None else (best.f1, best.precision, best.recall)
        judgments += [
            replace(empty_judgment(answer, aspect, scorer.name), score=value, failure=failures.get(place))
            for aspect, value in zip((name, f"{name}-p", f"{name}-r"), values, strict=True)
        ]
    return judgments


class _BertScore(Scorer, frozen=True, kw_only=True):
    def prepare(self, context: ScoringContext) -> ScoreAnswers:
        """Scores with the encoder, with the gold answers as references where words are weighted."""
        golds = [right for each in context.questions.values() for right in each.right_answers if right.strip()]
        baseline = BertScoreBaseline.read(context.baseline) if context.baseline else None
        scorer = BertScorer(context.encoder(), golds if context.idf else None, layer=context.layer, baseline=baseline)
        return lambda answers: score_bertscore(scorer, context.questions, answers)

    def settings(self, context: ScoringContext) -> dict[str, object]:
        """Whether tokens were weighted; encoder, layer and baseline are in the judge's name."""
        return {"idf": context.idf}


BERTSCORE = _BertScore(
    name="bertscore",
    summary="how similar the tokens of the two texts are in meaning (BERTScore)",
    method="bertscore",
    order=60,
    uses_encoder=True,
    by_part=True,
)
