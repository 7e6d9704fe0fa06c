"""A model as it is written in a grid."""

from __future__ import annotations

import pytest

from hoofbeat.answering import Answerer, SamplingSettings, parse_answerer
from hoofbeat.errors import UsageError

WARM = SamplingSettings(temperature=0.5, seed=9)


@pytest.mark.parametrize(
    "spec", ["embedded", "http://[::1]:8000/v1#name", "openai:some-model[1m]", "replay:a file[x].jsonl", "x[]"]
)
def test_a_spec_alone_is_asked_as_the_command_says(spec: str) -> None:
    assert parse_answerer(f" {spec} ", samples=2, sampling=WARM) == Answerer(
        written=spec, spec=spec, samples=2, sampling=WARM
    )


def test_options_are_the_systems_own_and_written_in_one_order() -> None:
    found = parse_answerer("embedded[ samples=3, temperature=0.60 ,seed=123456789]")
    assert found.written == "embedded[temperature=0.6,samples=3,seed=123456789]"
    assert found == parse_answerer(found.written)
    assert (found.spec, found.samples) == ("embedded", 3)
    assert found.sampling == SamplingSettings(temperature=0.6, seed=123456789)


def test_what_options_do_not_say_is_as_the_command_says() -> None:
    found = parse_answerer("http://[::1]:8000/v1#name[max_tokens=900]", samples=4, sampling=WARM)
    assert (found.spec, found.samples) == ("http://[::1]:8000/v1#name", 4)
    assert found.sampling == SamplingSettings(temperature=0.5, seed=9, max_tokens=900)


@pytest.mark.parametrize(
    "options",
    [
        "temperature=",
        "temperature=2.1",
        "temperature=nan",
        "temperature=-1",
        "temperature=1e9",
        "samples=0",
        "samples=2.0,temperature=1",
        "samples=٣",
        "seed=-1",
        "seed=99999999999999999999",
        "max_tokens=0",
        "top_p=1",
        "temperature=1,temperature=1",
        "temperature=1,",
        "=",
    ],
)
def test_wrong_options_are_said(options: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_answerer(f"embedded[{options}]")
    assert caught.value.fix


def test_samples_that_would_all_be_the_same_are_refused() -> None:
    for text, samples in (("embedded[samples=2]", 1), ("embedded", 2), ("embedded[temperature=0]", 3)):
        with pytest.raises(UsageError, match="would all be the same"):
            parse_answerer(text, samples=samples)
    assert parse_answerer("embedded[samples=1]", samples=5).samples == 1
