"""The log-likelihood of a continuation, checked against an independent forward pass in numpy."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import WeightsError
from hoofbeat.models import Likelihood, Model, embedded, weight_files
from hoofbeat.models.http_backend import HttpBackend
from hoofbeat.store import Ledger
from tests.models.gguf_files import f32_copy
from tests.models.llama_numpy import Llama, Weights

pytestmark = pytest.mark.slow

CASES = [
    ("The capital of France is", " Paris"),
    ("Question: Which drug treats anaphylaxis first?\nAnswer:", " intramuscular adrenaline"),
    ("Der Patient klagt über", " Übelkeit und Müdigkeit"),
    ("Dose: 0.5 µg/kg — repeat", " after 4–6 h if needed\n"),
]


def post(url: str, key: str, body: dict[str, Any]) -> Any:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    with urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)) as response:
        return json.load(response)


def tokens(url: str, key: str, text: str) -> list[int]:
    found: list[int] = post(f"{url}/tokenize", key, {"content": text})["tokens"]
    return found


def loglikelihood(
    server: embedded.EmbeddedServer, folder: Path, context: str, continuation: str, *, exact: bool
) -> float:
    """Score with the real client."""
    os.environ["HOOFBEAT_TEST_KEY"] = server.api_key
    backend = HttpBackend(
        url=server.base_url, name=server.name, identity="checked", key_variable="HOOFBEAT_TEST_KEY", max_in_flight=1
    )
    with Ledger(folder / "ledger.sqlite") as ledger:
        model = Model(spec="checked", backend=backend, ledger=ledger)
        [result] = model.run([0], lambda _: model.loglikelihood(context, continuation, exact=exact))
    assert isinstance(result, Likelihood), result
    return result.total


@pytest.fixture(scope="module")
def gguf_path() -> Path:
    try:
        return weight_files.weight_path("smollm2-135m")
    except WeightsError as err:
        pytest.skip(f"needs the tiny model's weights: {err.fix}")


@pytest.fixture(scope="module")
def exact_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return f32_copy(tmp_path_factory)


@pytest.fixture(scope="module")
def exact_server(exact_path: Path) -> Iterator[embedded.EmbeddedServer]:
    with embedded.start_embedded(str(exact_path), context=512, threads=1, exact=True) as server:
        yield server


def test_the_client_agrees_with_numpy(exact_server: embedded.EmbeddedServer, exact_path: Path, tmp_path: Path) -> None:
    """To 1e-3 when exact; llama.cpp's own 32-bit sum loses the tail otherwise, about 1.3e-4 a token and no more.

    All cases are one test: what is read and written before the first takes longer than most of them.
    """
    url, key = exact_server.native_url, exact_server.api_key
    reference = Llama(Weights(exact_path))
    for context, continuation in CASES:
        whole, begin = tokens(url, key, context + continuation), len(tokens(url, key, context))
        expected = reference.loglikelihood(whole[:begin], whole[begin:])
        exact = loglikelihood(exact_server, tmp_path, context, continuation, exact=True)
        assert exact == pytest.approx(expected, abs=1e-3), continuation
        quick = loglikelihood(exact_server, tmp_path, context, continuation, exact=False)
        assert quick == pytest.approx(expected, abs=2.5e-4 * (len(whole) - begin)), continuation


def test_quantised_model_gives_the_known_value(gguf_path: Path, tmp_path: Path) -> None:
    with embedded.start_embedded("smollm2-135m", context=512, threads=1) as server:
        value = loglikelihood(server, tmp_path, "The capital of France is", " Paris", exact=False)
    assert value == pytest.approx(-0.26, abs=0.02)


def test_quantised_model_prefers_the_right_diagnosis(gguf_path: Path, tmp_path: Path) -> None:
    context = "A 54-year-old man has fever and a new heart murmur. The most likely diagnosis is"
    with embedded.start_embedded("smollm2-135m", context=512, threads=1) as server:
        right = loglikelihood(server, tmp_path, context, " infective endocarditis", exact=False)
        wrong = loglikelihood(server, tmp_path, context, " a sprained ankle", exact=False)
    assert right > wrong + 5
