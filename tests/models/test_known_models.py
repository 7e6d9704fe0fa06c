"""Windows, output limits and prices: by name, by the configuration, by the endpoint, or assumed and said to be."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models import Config, Model, ModelSettings, load_config, load_model
from hoofbeat.models.known_models import bare_name, load_known_models
from hoofbeat.models.model import model_facts
from hoofbeat.models.model_loading import open_session
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.window import ASSUMED_WINDOW, ContextWindow
from tests.models.support import ask, ledger_in


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@contextmanager
def a_server(answers: Mapping[str, object]) -> Iterator[str]:
    """A server that answers GET requests of these paths; its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path)
            self.send_response(200 if found is not None else 404)
            self.end_headers()
            self.wfile.write(json.dumps(found).encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def a_model(spec: str, ledger: Ledger, told: list[str] | None = None, **settings: object) -> Model:
    config = Config(models={spec: ModelSettings(**settings)})  # type: ignore[arg-type]
    return load_model(spec, ledger=ledger, config=config, tell=told.append if told is not None else None)


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("openai:gpt-4o-2024-08-06", 128_000),
        ("gpt-5.1", 400_000),
        ("claude-sonnet-4-5-20250929", 200_000),
        ("gemini-2.5-flash", 1_048_576),
        ("http://host/v1#meta-llama/Llama-3.3-70B-Instruct", 131_072),
        ("http://host/v1#meta-llama/Meta-Llama-3-8B", 8192),
        ("Qwen/Qwen2.5-7B-Instruct", 32_768),
        ("deepseek-chat", 128_000),
        ("mistralai/Mistral-7B-Instruct-v0.3", 32_768),
        ("google/gemma-2-9b-it", 8192),
        ("google/medgemma-27b-text-it", 131_072),
    ],
)
def test_common_models_are_known_by_their_names(name: str, context: int) -> None:
    known = load_known_models().find(bare_name(name))
    assert known is not None
    assert known.context == context


@pytest.mark.parametrize("name", ["gpt-5.9", "gpt-4o-audio-preview", "my-finetune", "qwen3.5-9b"])
def test_a_name_that_is_merely_like_one_is_not_known(name: str) -> None:
    assert load_known_models().find(name) is None


def test_a_provider_s_model_has_its_window_limit_and_list_price(ledger: Ledger) -> None:
    model = a_model("openai:gpt-4o", ledger)
    assert (model.window, model.context) == (ContextWindow(tokens=128_000, source="known"), 128_000)
    assert model.limit(ask("Why?", max_tokens=100_000)) == 16_384
    assert model.price is not None
    assert (model.price.tokens_in, model.price.tokens_out) == (2.5, 10.0)
    assert model_facts({"answer": model}) == {
        "windows": {"answer": {"tokens": 128_000, "source": "known"}},
        "prices": {"answer": model.price.source},
    }
    assert "USD" in model.price.source
    gateway = a_model("http://gateway.example/v1#gpt-4o", ledger)
    assert (gateway.window.tokens, gateway.price) == (128_000, None)  # another endpoint has other prices
    batch = a_model("batch:folder#gpt-4o", ledger)
    assert batch.price is not None
    assert batch.price.tokens_in == 1.25


def test_facts_entered_from_memory_are_said_to_be_unchecked(ledger: Ledger) -> None:
    told: list[str] = []
    address = "https://generativelanguage.googleapis.com/v1beta/openai#gemini-2.5-flash"
    gemini = a_model(address, ledger, told)
    assert gemini.window == ContextWindow(tokens=1_048_576, source="unchecked")
    assert gemini.price is not None
    assert gemini.price.source.endswith("unchecked")
    assert "unchecked" in str(gemini.window)
    assert len(told) == 1
    assert "context window and price were entered from memory" in told[0]
    assert "set context, price_in and price_out in hoofbeat.toml" in told[0]
    told.clear()
    configured = a_model(address, ledger, told, context=9000, price_in=1.0, price_out=1.0)
    assert configured.window.source == "configured"
    a_model("openai:gpt-4o", ledger, told)
    a_model("http://host/v1#meta-llama/Llama-3.3-70B-Instruct", ledger, told)  # its server is asked
    assert told == []


def test_the_configuration_comes_first(ledger: Ledger) -> None:
    model = a_model("openai:gpt-4o", ledger, context=9000, price_in=1.0, price_out=3.0)
    assert model.window == ContextWindow(tokens=9000, source="configured")
    assert model.price is not None
    assert (model.price.tokens_in, model.price.source) == (1.0, "")
    other = load_model("openai:gpt-4o", ledger=ledger, config=Config(currency="EUR"))
    assert other.price is None


def test_the_facts_can_be_replaced(tmp_path: Path, ledger: Ledger) -> None:
    (tmp_path / "mine.toml").write_text(
        'currency = "EUR"\n[providers.us]\nas_of = "2026-01-01"\nhosts = ["llm.hospital"]\n'
        '[[models]]\nmatch = "^house-"\nprovider = "us"\ncontext = 5000\nprice_in = 1\nprice_out = 2\n'
    )
    (tmp_path / "hoofbeat.toml").write_text('known_models = "mine.toml"\ncurrency = "EUR"\n')
    config = load_config(tmp_path / "hoofbeat.toml")
    model = load_model("http://llm.hospital/v1#house-1", ledger=ledger, config=config)
    assert model.window == ContextWindow(tokens=5000, source="known")
    assert model.price is not None
    assert model.price.source == "list price of 2026-01-01, EUR"
    assert load_model("http://llm.hospital/v1#gpt-4o", ledger=ledger, config=config).max_window is None
    (tmp_path / "mine.toml").write_text("currency = 3")
    load_known_models.cache_clear()
    with pytest.raises(UsageError, match="file of known models can't be read"):
        load_model("http://llm.hospital/v1#house-1", ledger=ledger, config=config)


@pytest.mark.parametrize(
    "answers",
    [
        {"/v1/models": {"data": [{"id": "other", "max_model_len": 9}, {"id": "mine", "max_model_len": 40_000}]}},
        {"/v1/models": {"data": [{"id": "a.gguf"}]}, "/props": {"default_generation_settings": {"n_ctx": 40_000}}},
    ],
)
def test_an_endpoint_that_tells_is_asked_once(answers: dict[str, object], ledger: Ledger) -> None:
    told: list[str] = []
    with a_server(answers) as address:
        model = a_model(f"{address}/v1#mine", ledger, told)
        assert model.window == ContextWindow(tokens=40_000, source="endpoint")
        assert model.context == 32_000  # without the allowance for reasoning
    again = a_model(f"{address}/v1#mine", ledger, told)  # the server is gone, and the ledger knows
    assert again.window == model.window
    assert told == []
    assert model_facts({"a": model, "b": again}) == {"windows": {"a": {"tokens": 40_000, "source": "endpoint"}}}


def test_a_server_of_open_weights_is_asked_before_their_card(ledger: Ledger) -> None:
    with a_server({"/v1/models": {"data": [{"id": "llama-3.1-8b", "max_model_len": 16_000}]}}) as address:
        assert a_model(f"{address}/v1#llama-3.1-8b", ledger).window == ContextWindow(tokens=16_000, source="endpoint")
    told: list[str] = []
    with a_server({}) as address:
        assert a_model(f"{address}/v1#llama-3.1-8b", ledger, told).window == ASSUMED_WINDOW
        assert a_model(f"{address}/v1#llama-2-7b", ledger, told).window.tokens == 4096
    assert len(told) == 1
    assert "its weights can read 131,072" in told[0]


def test_an_assumed_window_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    with open_session(ledger_path=tmp_path / "ledger.db", tell=said.append) as session:
        for _ in range(2):
            model = session.model("http://127.0.0.1:9/v1#unheard-of")  # nothing listens there: an estimate offline
            assert model.context is None
            assert model.window == ASSUMED_WINDOW
    assert len(said) == 1
    assert "assumes 8,192" in said[0]
    assert "set context in hoofbeat.toml" in said[0]
