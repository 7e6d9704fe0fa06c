"""The embedded sentence encoder."""

from __future__ import annotations

import numpy as np
import pytest

from hoofbeat.errors import UsageError, WeightsError
from hoofbeat.models.encoder import Encoder, Instructions, MiniLM, load_encoder

TEXTS = [
    "The patient had a heart attack.",
    "He suffered a myocardial infarction.",
    "Share prices fell on Monday.",
    "Tacrolimus must be taken at the same time every day.",
    "Take your tacrolimus at the same hour each day, and do not skip a dose. " * 12,
    "",
    "Ödem, Übelkeit — 37,9 °C",
]


@pytest.fixture(scope="module")
def encoder() -> MiniLM:
    try:
        return MiniLM(threads=2)
    except WeightsError as err:
        pytest.skip(f"needs the encoder's weights: {err.fix}")


def test_rows_have_unit_length_and_the_texts_order(encoder: MiniLM) -> None:
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(encoder.encode(TEXTS[::-1])[::-1], vectors)


def test_a_paraphrase_is_nearer_than_something_else(encoder: MiniLM) -> None:
    vectors = encoder.encode(TEXTS)
    similar = vectors @ vectors.T
    assert similar[0, 1] > similar[0, 2] + 0.3
    assert similar[3, 4] > similar[3, 2] + 0.3


def test_a_vector_depends_neither_on_its_neighbours_nor_on_threads(encoder: MiniLM) -> None:
    together = encoder.encode(TEXTS)
    alone = np.vstack([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(alone, together)
    np.testing.assert_array_equal(MiniLM(threads=1).encode(TEXTS), together)


def test_no_texts_give_no_rows(encoder: MiniLM) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)


def test_a_text_is_read_up_to_256_tokens(encoder: MiniLM) -> None:
    long = "fever " * 254
    same, other = encoder.encode([long, long + "and a rash"])
    np.testing.assert_array_equal(same, other)
    shorter, longer = encoder.encode(["fever " * 100, "fever " * 100 + "and a rash"])
    assert not np.array_equal(shorter, longer)


def test_token_states_belong_to_the_tokens(encoder: MiniLM) -> None:
    fever, empty, pair = encoder.token_states(["fever", "", "the patient"])
    assert fever.tokens == ("[CLS]", "fever", "[SEP]")
    assert fever.states.shape == (3, encoder.dimension)
    assert empty.tokens == ("[CLS]", "[SEP]")
    assert pair.tokens == ("[CLS]", "the", "patient", "[SEP]")


def test_identity_names_weights_and_settings(encoder: MiniLM) -> None:
    assert encoder.identity.startswith("minilm@8199be6f699a;max=256;pooling=mean;onnxruntime=")
    assert MiniLM(threads=1).identity == encoder.identity, "vectors don't depend on threads, so neither may this"


def test_load_encoder_by_name(encoder: MiniLM) -> None:
    loaded: Encoder = load_encoder()
    assert loaded.name == encoder.name


def test_an_unknown_encoder_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no encoder 'bert'") as caught:
        load_encoder("bert")
    assert caught.value.fix is not None
    assert caught.value.fix.startswith("choose one of: minilm, potion, a folder")
    with pytest.raises(UsageError, match="no encoder ''"):
        load_encoder("")


def test_the_window_counts_what_is_read_without_the_marks(encoder: MiniLM) -> None:
    assert encoder.window == 254
    text = "fever " * 300
    spans = encoder.token_spans(text)
    assert len(spans) == 300, "nothing is cut off"
    inside = text[: spans[encoder.window - 1][1]]
    np.testing.assert_array_equal(encoder.encode([inside])[0], encoder.encode([text])[0])


def test_token_spans_are_characters_of_the_text(encoder: MiniLM) -> None:
    text = "Ödem 💊 and tacrolimus"
    spans = encoder.token_spans(text)
    assert [text[start:end] for start, end in spans][-4:] == ["ta", "cr", "oli", "mus"]
    assert text[spans[-5][0] : spans[-5][1]] == "and"
    assert encoder.token_spans("") == []


def test_half_a_surrogate_pair_is_read_as_a_question_mark(encoder: MiniLM) -> None:
    np.testing.assert_array_equal(encoder.encode(["fever \ud800"])[0], encoder.encode(["fever ?"])[0])


def test_instructions_stand_before_the_text(encoder: MiniLM) -> None:
    told = Instructions(query="Find: ", document="Read: ")
    np.testing.assert_array_equal(
        encoder.encode_queries(TEXTS[:2], told), encoder.encode(["Find: " + t for t in TEXTS[:2]])
    )
    np.testing.assert_array_equal(encoder.encode_documents(TEXTS[:1], told), encoder.encode(["Read: " + TEXTS[0]]))
    np.testing.assert_array_equal(encoder.encode_queries(TEXTS[:1]), encoder.encode(TEXTS[:1]))
