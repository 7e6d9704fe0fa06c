"""Configuration and specs: what is right is taken, what is wrong is said, secrets are refused and not repeated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import HoofbeatError, ModelError, UsageError
from hoofbeat.models import Config, ModelSettings, Price, load_config, load_model
from hoofbeat.store.call_ledger import Ledger
from tests.models.support import a_model, chats, ledger_in


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def config(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "hoofbeat.toml"
    path.write_text(text)
    return load_config(path)


GOOD = """
[models.judge]
spec = "http://gateway:8000/v1#big"
price_in = 2.5
price_out = 10
context = 128000
requests_per_minute = 500
tokens_per_minute = 90000
max_in_flight = 4
attempts = 3
timeout = 20
key = "GATEWAY_KEY"
extra = { top_k = 20, max_completion_tokens = 90 }

[models."http://gateway:8000/v1#small"]
price_in = 0.1
"""


def test_an_alias_and_a_price_by_spec(tmp_path: Path, ledger: Ledger) -> None:
    read = config(tmp_path, GOOD)
    judge = load_model("judge", ledger=ledger, config=read)
    assert judge.spec == "judge"
    assert judge.identity.startswith("http://gateway:8000/v1#big;extra=")
    assert (judge.price, judge.context, judge.attempts) == (Price(tokens_in=2.5, tokens_out=10), 120000, 3)
    assert judge.pacer.max_in_flight == 4
    small = load_model("http://gateway:8000/v1#small", ledger=ledger, config=read)
    assert small.price == Price(tokens_in=0.1, tokens_out=0.0)
    assert load_model("http://gateway:8000/v1#other", ledger=ledger, config=read).price is None


def test_an_alias_may_name_a_spec_that_has_a_table_of_its_own(tmp_path: Path, ledger: Ledger) -> None:
    text = GOOD + '[models.quick]\nspec = "http://gateway:8000/v1#small"\n'
    assert load_model("quick", ledger=ledger, config=config(tmp_path, text)).identity == "http://gateway:8000/v1#small"


def test_an_alias_of_an_alias_is_refused(tmp_path: Path, ledger: Ledger) -> None:
    read = config(tmp_path, GOOD + '[models.other]\nspec = "judge"\n')
    with pytest.raises(UsageError, match="another alias"):
        load_model("other", ledger=ledger, config=read)


@pytest.mark.parametrize(
    "line",
    [
        'api_key = "sk-hush"',
        'API-Key = "sk-hush"',
        'token = "sk-hush"',
        'password = "sk-hush"',
        'client_secret = "sk-hush"',
        'key = "sk-hush"',
        'extra = { api_key = "sk-hush" }',
        'extra = { headers = { Authorization = "sk-hush" } }',
    ],
)
def test_secrets_are_refused_and_not_repeated(tmp_path: Path, line: str) -> None:
    with pytest.raises(UsageError, match="environment") as caught:
        config(tmp_path, f"[models.judge]\n{line}\n")
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[models.judge]\nprize_in = 1\n",
        "[model.judge]\nspec = 'x'\n",
        "[models.judge]\nprice_in = 'cheap'\n",
        "[models.judge]\nprice_in = -1\n",
        "[models.judge]\nattempts = 0\n",
        "[models.judge]\ntimeout = 0\n",
        "[models.judge]\nmost_in_flight = 0\n",
        "[models.judge]\nrequests_per_minute = -5\n",
        "models = 3\n",
        "[models]\njudge = 3\n",
        "this is no toml",
    ],
)
def test_wrong_configuration_names_its_file(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        config(tmp_path, text)
    assert "hoofbeat.toml" in str(caught.value)


def test_a_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / "hoofbeat.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError):
        load_config(tmp_path / "hoofbeat.toml")


def test_where_the_configuration_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOOFBEAT_CONFIG", raising=False)
    assert load_config() == Config()
    Path("hoofbeat.toml").write_text("[models.here]\nspec = 'replay:x'\n")
    assert set(load_config().models) == {"here"}
    Path("other.toml").write_text("[models.there]\nspec = 'replay:x'\n")
    monkeypatch.setenv("HOOFBEAT_CONFIG", "other.toml")
    assert set(load_config().models) == {"there"}
    assert set(load_config(Path("hoofbeat.toml")).models) == {"here"}
    monkeypatch.setenv("HOOFBEAT_CONFIG", "gone.toml")
    with pytest.raises(UsageError, match="no such configuration"):
        load_config()


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gpt-4o", "there is no model"),
        ("opnai:gpt-4o", "did you mean openai"),
        ("openai", "lacks its name"),
        ("openai:", "lacks its name"),
        ("batch:folder", "lacks its name"),
        ("batch:folder#", "lacks its name"),
        ("replay:", "lacks its name"),
        ("http://host:8000/v1", "lacks its model name"),
        ("http://#name", "host"),
        ("http://[::1/v1#name", "host"),
        ("http://host:port/v1#name", "host"),
        ("http://user:hush@host/v1#name", "must not hold"),
        ("http://host/v1?key=hush#name", "must not hold"),
        ("", "there is no model"),
    ],
)
def test_wrong_specs_say_what_is_wrong(ledger: Ledger, spec: str, words: str) -> None:
    with pytest.raises(HoofbeatError, match=words) as caught:
        load_model(spec, ledger=ledger)
    assert caught.value.fix
    assert "hush" not in str(caught.value)


def test_a_close_alias_is_suggested(ledger: Ledger) -> None:
    with pytest.raises(ModelError, match="did you mean judge"):
        load_model("jugde", ledger=ledger, config=Config(models={"judge": ModelSettings(spec="replay:x")}))


@pytest.mark.parametrize(
    ("spec", "settings", "variable"),
    [("openai:gpt-x", {}, "OPENAI_API_KEY"), ("http://127.0.0.1:1/v1#m", {"key": "WARD_KEY"}, "WARD_KEY")],
)
def test_a_missing_key_is_said_before_anything_is_sent(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, spec: str, settings: dict[str, Any], variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ModelError, match="no key") as caught:
        chats(a_model(spec, ledger, **settings), ["hello"])
    assert variable in str(caught.value)
