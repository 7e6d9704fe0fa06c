"""BERTScore: by hand, against the reference implementation's rules computed apart, and with the real encoder."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.scorers.bertscore import (
    BertScoreBaseline,
    BertScorer,
    match_tokens,
    reference_layers,
    score_bertscore,
    token_weights,
)
from hoofbeat.models.encoder import MiniLM, TokenStates, load_encoder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import AcceptedAnswer
from tests.helpers import needs_weights
from tests.judging.folders import QUESTIONS, said
from tests.models.tiny_encoders import make_encoder
from tests.retrieval.support import HashedWords

STATES = {"east": (1.0, 0.0), "north": (0.0, 2.0), "between": (3.0, 3.0)}


class Compass:
    """Three words, each a direction in the plane."""

    name = identity = "compass"

    def __init__(self) -> None:
        self.encoded: list[str] = []

    def layer_count(self) -> int:
        return 1

    def token_states(
        self, texts: Sequence[str], progress: Progress = SILENT, *, layer: int | None = None
    ) -> list[TokenStates]:
        self.encoded += texts
        found = []
        for text in texts:
            tokens = tuple(word for word in text.split() if word in STATES)
            states = np.array([STATES[word] for word in tokens], np.float32).reshape(-1, 2)
            found.append(TokenStates(tokens, states, (False,) * len(tokens)))
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
    a, b = (
        TokenStates(tuple("t" * len(rows)), np.array(rows, np.float32), (False,) * len(rows)) for rows in (one, two)
    )
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
    similar = unit_a @ unit_b.T  # [CLS] and [SEP] at the ends count as what is found, not as what looks
    assert scores[1].precision == pytest.approx(float(similar.max(1)[1:-1].mean()), abs=1e-6)
    assert scores[1].recall == pytest.approx(float(similar.max(0)[1:-1].mean()), abs=1e-6)
    assert scorer.name.startswith("bertscore: minilm@")
    assert "layer last; no idf; not rescaled" in scorer.name


def test_an_encoder_without_token_states_is_refused() -> None:
    with pytest.raises(UsageError, match="does not output token states"):
        BertScorer(HashedWords())


def test_three_judgments_an_answer() -> None:
    questions = {each.id: each for each in QUESTIONS}
    both = {"bath": replace(questions["bath"], answer="north", accepted=(AcceptedAnswer(text="east"),))}
    best, *_ = score_bertscore(BertScorer(Compass()), both, [said("east")])
    assert best.score == pytest.approx(1.0), "the best of all accepted answers counts"
    made = score_bertscore(BertScorer(Compass()), questions, [said("east"), said("Yes.", question="open")])
    assert [each.aspect for each in made] == ["bertscore", "bertscore-p", "bertscore-r"] * 2
    assert [each.score for each in made] == [0.0, 0.0, 0.0, None, None, None]
    assert all(each.failure is None for each in made[:3])
    assert all(each.failure is not None and each.failure.kind == "input" for each in made[3:])
    assert "compass" in made[0].judge


RNG = np.random.default_rng(7)
WORDS = ("plasma", "exchange", "before", "surgery", "rest", "steroids", "then")
ROWS = {word: RNG.normal(size=4).tolist() for word in ("[CLS]", "[SEP]", "[UNK]", *WORDS)}
LAYERS = [RNG.normal(size=(4, 4)).tolist() for _ in range(3)]
PAIRS = [
    ("plasma exchange", "plasma exchange before surgery"),
    ("rest", "steroids then surgery"),
    ("  steroids then plasma exchange then rest ", "steroids"),
]


def reference_scores(layer: int, pairs: Sequence[tuple[str, str]], *, idf: bool) -> list[tuple[float, float, float]]:
    """What `bert_score` computes, from its published rules and the table of states: nothing of the package is used."""
    golds = [["[CLS]", *gold.split(), "[SEP]"] for _, gold in pairs]
    held = Counter(word for gold in golds for word in set(gold))
    weigh = {word: math.log((len(golds) + 1) / (held[word] + 1)) for word in ROWS}
    plain = {word: 0.0 if word in {"[CLS]", "[SEP]"} else 1.0 for word in ROWS}
    found = []
    for text, gold in pairs:
        words = ["[CLS]", *text.split(), "[SEP]"], ["[CLS]", *gold.split(), "[SEP]"]
        units = []
        for part in words:
            states = np.array([ROWS[word] for word in part])
            for weights in LAYERS[:layer]:
                states = states @ np.array(weights)
            units.append(states / np.linalg.norm(states, axis=1, keepdims=True))
        similar = units[0] @ units[1].T
        of = weigh if idf else plain
        left, right = (np.array([of[word] for word in part]) for part in words)
        p = float((similar.max(axis=1) * left / left.sum()).sum())
        r = float((similar.max(axis=0) * right / right.sum()).sum())
        found.append((p, r, 2 * p * r / (p + r)))
    return found


@pytest.fixture
def layered(tmp_path: Path) -> str:
    return str(make_encoder(tmp_path / "layered", ROWS, layers=LAYERS))


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("layer", ["1", "2", "3", "last"])
def test_as_the_reference_implementation(layered: str, layer: str, idf: bool) -> None:
    scorer = BertScorer(load_encoder(layered), [gold for _, gold in PAIRS] if idf else None, layer=layer)
    expected = reference_scores(3 if layer == "last" else int(layer), PAIRS, idf=idf)
    for score, triple in zip(scorer.scores(PAIRS), expected, strict=True):
        assert (score.precision, score.recall, score.f1) == pytest.approx(triple, abs=1e-5)
    assert f"; layer {layer}; {'idf of the gold answers' if idf else 'no idf'}; not rescaled" in scorer.name


def test_rescaling_by_a_baseline(layered: str, tmp_path: Path) -> None:
    path = tmp_path / "layered.tsv"
    path.write_text("LAYER,P,R,F\n0,0.1,0.1,0.1\n1,0.2,0.2,0.2\n2,0.3,0.4,0.35\n3,0.5,0.5,0.5\n")
    baseline = BertScoreBaseline.read(path)
    for layer, base in (("2", (0.3, 0.4, 0.35)), ("last", (0.5, 0.5, 0.5))):
        scorer = BertScorer(load_encoder(layered), layer=layer, baseline=baseline)
        plain = reference_scores(3 if layer == "last" else 2, PAIRS, idf=False)
        for score, triple in zip(scorer.scores(PAIRS), plain, strict=True):
            expected = [(value - b) / (1 - b) for value, b in zip(triple, base, strict=True)]
            assert [score.precision, score.recall, score.f1] == pytest.approx(expected, abs=1e-5)
        assert "rescaled by layered.tsv@" in scorer.name
    path.write_text("layer\tp\n")
    with pytest.raises(InputError, match="baseline can't be read"):
        BertScoreBaseline.read(path)
    with pytest.raises(InputError, match="has no layer 2"):
        BertScorer(load_encoder(layered), layer="2", baseline=BertScoreBaseline("short", {}))


def test_the_layer_is_the_reference_implementations_choice(tmp_path: Path) -> None:
    assert reference_layers()["roberta-large"] == 17
    known = make_encoder(tmp_path / "distilbert-base-uncased-distilled-squad", ROWS, layers=[*LAYERS, *LAYERS])
    assert "; layer 4; " in BertScorer(load_encoder(str(known))).name
    other = make_encoder(tmp_path / "mine", ROWS, layers=LAYERS)
    assert "; layer last; " in BertScorer(load_encoder(str(other))).name
    with pytest.raises(UsageError, match="no layer '4'"):
        BertScorer(load_encoder(str(other)), layer="4")
    flat = make_encoder(tmp_path / "flat", ROWS)
    with pytest.raises(InputError, match="can't find the layers"):
        BertScorer(load_encoder(str(flat)), layer="1")


def test_layers_of_the_embedded_encoder() -> None:
    needs_weights("minilm")
    encoder = MiniLM(threads=1)
    assert encoder.layer_count() == 6
    text = ["Plasma exchange before surgery."]
    last, sixth, third = (encoder.token_states(text, layer=layer)[0].states for layer in (None, 6, 3))
    np.testing.assert_allclose(sixth, last, atol=1e-5)
    assert not np.allclose(third, last, atol=0.1)
