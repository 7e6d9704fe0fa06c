"""BERTScore: by hand on token states that are known, against a direct computation, and with the real encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import UsageError
from hoofbeat.judging.scorers.bertscore import BertScorer, match_tokens, score_bertscore, token_weights
from hoofbeat.models.encoder import MiniLM, TokenStates
from hoofbeat.progress import SILENT, Progress
from tests.helpers import needs_weights
from tests.judging.folders import QUESTIONS, said
from tests.retrieval.support import HashedWords

STATES = {"east": (1.0, 0.0), "north": (0.0, 2.0), "between": (3.0, 3.0)}


class Compass:
    """Three words, each a direction in the plane."""

    identity = "compass"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def token_states(self, texts: Sequence[str], progress: Progress = SILENT) -> list[TokenStates]:
        self.encoded += texts
        found = []
        for text in texts:
            tokens = tuple(word for word in text.split() if word in STATES)
            found.append(TokenStates(tokens, np.array([STATES[word] for word in tokens], np.float32).reshape(-1, 2)))
        return found


def test_by_hand() -> None:
    (score,) = BertScorer(Compass()).scores([("east between", "north east")])
    # east finds east (1), between finds either (cos 45°); north finds between (cos 45°), east finds east (1)
    half = (1 + math.sqrt(0.5)) / 2
    assert (score.precision, score.recall, score.f1) == pytest.approx((half, half, half))
    (one_sided,) = BertScorer(Compass()).scores([("east", "north east")])
    assert (one_sided.precision, one_sided.recall) == pytest.approx((1.0, 0.5))
    assert one_sided.f1 == pytest.approx(2 * 0.5 / 1.5)


def test_rare_tokens_weigh_more_when_asked() -> None:
    weights = token_weights([("east", "north"), ("east",), ("between", "east")])
    assert weights == pytest.approx({"": math.log(4), "east": 0.0, "north": math.log(2), "between": math.log(2)})
    scorer = BertScorer(Compass(), references=["east north", "east", "between east"])
    (score,) = scorer.scores([("east", "north east")])
    assert score.recall == pytest.approx(0.0)  # only north counts in the reference, and east does not find it
    assert score.precision == pytest.approx(1.0)  # nothing has weight in the answer: all count alike
    assert "idf" in scorer.name
    assert "no idf" not in scorer.name


def test_nothing_to_match_is_zero() -> None:
    (score,) = BertScorer(Compass()).scores([("unknown", "east")])
    assert (score.precision, score.recall, score.f1) == (0.0, 0.0, 0.0)


def test_a_gold_answer_is_encoded_once_for_many_answers() -> None:
    compass = Compass()
    BertScorer(compass).scores([("east", "north"), ("between", "north"), ("east", "north")])
    assert sorted(compass.encoded) == ["between", "east", "north"]


states = st.lists(
    st.tuples(*[st.floats(-3, 3, width=32)] * 3).filter(lambda row: np.linalg.norm(row) > 0.1), min_size=1, max_size=8
)


@given(states, states)
def test_any_states(one: list[tuple[float, ...]], two: list[tuple[float, ...]]) -> None:
    a, b = (TokenStates(tuple("t" * len(rows)), np.array(rows, np.float32)) for rows in (one, two))
    same = match_tokens(a, a)
    assert (same.precision, same.recall, same.f1) == pytest.approx((1.0, 1.0, 1.0), abs=1e-6)
    there, back = match_tokens(a, b), match_tokens(b, a)
    assert (there.precision, there.recall) == pytest.approx((back.recall, back.precision))
    cosine = np.array(
        [[float(np.dot(x, y)) / float(np.linalg.norm(x) * np.linalg.norm(y)) for y in b.states] for x in a.states]
    )
    expected = (sum(max(row) for row in cosine) / len(cosine), sum(max(row) for row in cosine.T) / len(cosine.T))
    assert (there.precision, there.recall) == pytest.approx(expected, abs=1e-5)


def test_the_embedded_encoder_scores_and_is_named() -> None:
    needs_weights("minilm")
    encoder = MiniLM(threads=1)
    scorer = BertScorer(encoder)
    gold, same, near, far = (
        "Plasma exchange before surgery.",
        "Plasma exchange before surgery.",
        ("Perform plasmapheresis, then operate."),
        "The weather was fine in spring.",
    )
    scores = scorer.scores([(text, gold) for text in (same, near, far)])
    assert scores[0].f1 == pytest.approx(1.0, abs=1e-6)
    assert scores[0].f1 > scores[1].f1 > scores[2].f1
    a, b = encoder.token_states([near, gold])
    unit_a, unit_b = (each.states / np.linalg.norm(each.states, axis=1, keepdims=True) for each in (a, b))
    similar = unit_a @ unit_b.T
    assert scores[1].precision == pytest.approx(float(similar.max(1).mean()), abs=1e-6)
    assert scores[1].recall == pytest.approx(float(similar.max(0).mean()), abs=1e-6)
    assert scorer.name.startswith("bertscore: minilm@")
    assert "last layer; no idf; no rescaling" in scorer.name


def test_an_encoder_without_token_states_is_refused() -> None:
    with pytest.raises(UsageError, match="does not give the states of tokens"):
        BertScorer(HashedWords())


def test_three_judgments_an_answer() -> None:
    questions = {each.id: each for each in QUESTIONS}
    made = score_bertscore(BertScorer(Compass()), questions, [said("east"), said("Yes.", question="open")])
    assert [each.aspect for each in made] == ["bertscore", "bertscore-p", "bertscore-r"] * 2
    assert [each.score for each in made] == [0.0, 0.0, 0.0, None, None, None]
    assert all(each.failure is None for each in made[:3])
    assert all(each.failure is not None and each.failure.kind == "input" for each in made[3:])
    assert "compass" in made[0].judge
