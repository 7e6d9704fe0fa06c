"""What a hoofbeat.toml in the current folder may not do without the user's word, and how the word is given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.cli import _load_plugins, _run
from hoofbeat.cli.session import _configured
from hoofbeat.errors import TrustNeeded, UsageError
from hoofbeat.models import load_config, load_model
from hoofbeat.models.fleet import FleetBackend
from hoofbeat.models.model import model_facts
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.trust import VARIABLE, FolderConfig, is_loopback, is_this_machine, user_folder

GATEWAY = '[models.judge]\nspec = "https://gateway.example/v1#m"\n'


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "user"))
    for name in ("HOOFBEAT_CONFIG", "HOOFBEAT_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(VARIABLE, "")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-cloud-1234")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(tmp_path / "ledger.db") as opened:
        yield opened


def write(text: str) -> None:
    Path("hoofbeat.toml").write_text(text)


@pytest.mark.parametrize("name", ["embedded", "embedded:qwen", "openai:gpt-4o", "http://a/v1#m", "replay:x"])
@pytest.mark.parametrize("other", ['spec = "http://127.0.0.1:1/v1#m"', 'name = "m"\nendpoints = ["http://a/v1"]'])
def test_a_built_in_name_keeps_its_meaning(name: str, other: str) -> None:
    write(f'[models."{name}"]\n{other}\n')
    with pytest.raises(UsageError, match="built-in name"):
        load_config()


def test_prices_and_limits_of_a_built_in_name_may_be_given() -> None:
    write('[models."openai:gpt-4o"]\nprice_in = 1.0\n[models.embedded]\ncontext = 2048\n')
    assert load_config().models["embedded"].context == 2048


@pytest.mark.parametrize("extra", ['model = "dearer"', "n = 100", "messages = []", "stream = true"])
def test_extra_can_not_ask_another_model_or_more_often(extra: str) -> None:
    write(f'[models."openai:gpt-4o"]\nextra = {{{extra}, top_k = 3}}\n')
    with pytest.raises(UsageError, match="because Hoofbeat sets it for every call"):
        load_config()


def test_a_found_file_s_low_price_needs_the_users_word_and_its_extra_is_told(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-invented-1234")
    write('[models."openai:gpt-4o"]\nprice_in = 0.0\nprice_out = 0.0\n')
    with pytest.raises(TrustNeeded, match="count less than the list price for openai:gpt-4o"):
        load_model("openai:gpt-4o", ledger=ledger, config=load_config())
    write('[models."openai:gpt-4o"]\nprice_in = 900.0\nprice_out = 900.0\nextra = {store = true}\n')
    told: list[str] = []
    load_model("openai:gpt-4o", ledger=ledger, config=load_config(), tell=told.append)
    assert "openai:gpt-4o: every request has store = true (as hoofbeat.toml in this folder says)" in told


@pytest.mark.parametrize("identity", ["embedded", "embedded:smollm2-135m@abc", "replay:x"])
def test_no_endpoint_goes_under_the_name_of_a_local_model(identity: str) -> None:
    write(f'{GATEWAY}identity = "{identity}"\n')
    with pytest.raises(UsageError, match="reserved for models on this machine"):
        load_config()


FLEET = '[models.judge]\nname = "m"\nendpoints = ["http://node1:8000/v1", "http://node2:8000/v1"]\n'
BATCH = '[models.judge]\nspec = "batch:posted#m"\n'


@pytest.mark.parametrize(
    ("table", "identity"),
    [
        (GATEWAY, "openai:gpt-4o"),
        (GATEWAY, " OpenAI:gpt-4o"),
        (GATEWAY, "batch#m"),
        (GATEWAY, "fleet#m"),
        (FLEET, "openai:gpt-4o"),
        (FLEET, "fleet#other"),
        (BATCH, "openai:gpt-4o"),
        (BATCH, "batch#other"),
        ('[models.judge]\nspec = "openai:gpt-4o-mini"\n', "openai:gpt-4o"),
        ('[models."openai:gpt-4o-mini"]\nprice_in = 1.0\n', "openai:gpt-4o"),
    ],
)
def test_nobody_answers_in_the_name_of_a_provider(table: str, identity: str) -> None:
    write(f'{table}identity = "{identity}"\n')
    for named in (None, Path("hoofbeat.toml")):
        with pytest.raises(UsageError, match="the name of another model") as caught:
            load_config(named)
        assert "identity" in (caught.value.fix or "")


@pytest.mark.parametrize(("table", "identity"), [(GATEWAY, "http://old:8000/v1#m"), (FLEET, "http://node3:8000/v1#m")])
def test_the_name_of_another_endpoint_is_taken_only_with_the_users_word(table: str, identity: str) -> None:
    write(f'{table}identity = "{identity}"\n')
    with pytest.raises(TrustNeeded, match=r"in the name of http://"):
        load_config()
    assert load_config(Path("hoofbeat.toml")).models["judge"].identity == identity


@pytest.mark.parametrize(
    ("table", "identity"),
    [
        (GATEWAY, "https://gateway.example/v1#m"),
        (GATEWAY, "gpt-4o-2024-11-20"),
        (FLEET, "fleet#m"),
        (FLEET, "http://node2:8000/v1#m"),
        (BATCH, "batch#m"),
    ],
)
def test_an_identity_that_is_ones_own_or_free_needs_no_word(table: str, identity: str) -> None:
    write(f'{table}identity = "{identity}"\n')
    assert load_config().models["judge"].identity == identity


@pytest.mark.parametrize(
    "text",
    [
        f'{GATEWAY}key = "AWS_SECRET_ACCESS_KEY"\n',
        '[models.judge]\nspec = "http://127.0.0.1:9/v1#m"\nkey = "AWS_SECRET_ACCESS_KEY"\n',
        '[models.judge]\nspec = "openai:gpt-4o"\nkey = "AWS_SECRET_ACCESS_KEY"\n',
        '[models.judge]\nname = "m"\nendpoints = ["http://127.0.0.1:9/v1"]\nkey = "AWS_SECRET_ACCESS_KEY"\n',
    ],
)
def test_a_variable_that_nobody_allowed_is_not_sent(ledger: Ledger, text: str) -> None:
    write(text)
    with pytest.raises(TrustNeeded, match="AWS_SECRET_ACCESS_KEY") as caught:
        load_model("judge", ledger=ledger, config=load_config())
    assert "the-cloud-1234" not in str(caught.value)
    load_model("judge", ledger=ledger, config=load_config(Path("hoofbeat.toml")))  # named: the user's choice


def test_the_usual_key_goes_to_no_address_of_the_file_unasked(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    write(GATEWAY)
    load_model("judge", ledger=ledger, config=load_config())  # there is no key to send
    monkeypatch.setenv("HOOFBEAT_API_KEY", "usual-key-1234")
    with pytest.raises(TrustNeeded, match=r"HOOFBEAT_API_KEY to https://gateway\.example/v1"):
        load_model("judge", ledger=ledger, config=load_config())
    load_model("https://gateway.example/v1#m", ledger=ledger, config=load_config())  # typed by the user
    write(GATEWAY.replace("https://gateway.example", "http://127.0.0.1:9"))
    load_model("judge", ledger=ledger, config=load_config())  # on this machine


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.10", "::1"])
def test_this_machine(host: str) -> None:
    assert is_this_machine(host)
    assert is_loopback(f"http://{f'[{host}]' if ':' in host else host}:8000/v1")


@pytest.mark.parametrize(
    "host",
    ["127.attacker.example", "127.0.0.1.attacker.example", "localhost.attacker.example", "127.", "", "0.0.0.0", "::2"],
)
def test_a_name_that_begins_like_this_machine_is_another(
    host: str, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not is_this_machine(host)
    if not host[-1:].isalpha():
        return
    monkeypatch.setenv("HOOFBEAT_API_KEY", "usual-key-1234")
    write(GATEWAY.replace("https://gateway.example", f"http://{host}:9"))
    with pytest.raises(TrustNeeded, match="HOOFBEAT_API_KEY"):
        load_model("judge", ledger=ledger, config=load_config())


def test_the_users_own_file_allows_a_variable_for_its_hosts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "ward-key-1234")
    user_folder().mkdir(parents=True)
    (user_folder() / "allowed.toml").write_text('[keys]\nGATEWAY_KEY = ["gateway.example"]\n')
    write(f'{GATEWAY}key = "GATEWAY_KEY"\n')
    load_model("judge", ledger=ledger, config=load_config())
    write(f'{GATEWAY.replace("gateway.example", "gateway.example.evil.example")}key = "GATEWAY_KEY"\n')
    with pytest.raises(TrustNeeded, match="GATEWAY_KEY"):
        load_model("judge", ledger=ledger, config=load_config())
    (user_folder() / "allowed.toml").write_text("[keys\n")
    with pytest.raises(UsageError, match="allowed keys"):
        load_model("judge", ledger=ledger, config=load_config())


def test_a_confirmation_holds_for_this_folder_and_this_content(place: Path, ledger: Ledger) -> None:
    text = f'{GATEWAY}key = "AWS_SECRET_ACCESS_KEY"\n'
    write(text)
    FolderConfig.of(Path("hoofbeat.toml")).remember()
    load_model("judge", ledger=ledger, config=load_config())
    assert json.loads((user_folder() / "trusted.json").read_text()).keys() == {str(place)}
    assert (user_folder() / "trusted.json").stat().st_mode & 0o777 == 0o600
    write(text.replace("gateway.example", "elsewhere.example"))
    with pytest.raises(TrustNeeded):
        load_model("judge", ledger=ledger, config=load_config())


def test_a_confirmation_holds_for_the_endpoints_that_were_there(ledger: Ledger, place: Path) -> None:
    write('[models.fleet]\nname = "m"\nendpoints_file = "nodes.txt"\nkey = "AWS_SECRET_ACCESS_KEY"\n')
    nodes = place / "nodes.txt"
    nodes.write_text("http://127.0.0.1:9/v1\n")
    FolderConfig.of(Path("hoofbeat.toml")).remember()
    fleet = load_model("fleet", ledger=ledger, config=load_config()).backend
    assert isinstance(fleet, FleetBackend)
    told: list[str] = []
    fleet._tell = told.append
    nodes.write_text("http://127.0.0.1:9/v1\nhttp://elsewhere.example/v1\n")
    asyncio.run(fleet._reread())  # as during a run
    assert [each.url for each in fleet.figures] == ["http://127.0.0.1:9/v1"]
    assert "elsewhere.example" in told[0]
    with pytest.raises(TrustNeeded, match="AWS_SECRET_ACCESS_KEY"):
        load_model("fleet", ledger=ledger, config=load_config())
    nodes.unlink()
    assert not FolderConfig.of(Path("hoofbeat.toml")).is_trusted


def test_what_a_linked_file_names_is_part_of_what_is_trusted(place: Path) -> None:
    """Plugins are loaded from the current folder, lists are read beside the file itself."""
    elsewhere = place.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "shared.toml").write_text('plugins = ["mine.py"]\nknown_models = "models.toml"\n')
    Path("hoofbeat.toml").symlink_to(elsewhere / "shared.toml")
    Path("mine.py").write_text("1")
    for changed in (Path("mine.py"), elsewhere / "models.toml"):
        FolderConfig.of(Path("hoofbeat.toml")).remember()
        assert FolderConfig.of(Path("hoofbeat.toml")).is_trusted
        assert FolderConfig.of(place / "hoofbeat.toml").is_trusted
        changed.write_text("2")
        assert not FolderConfig.of(Path("hoofbeat.toml")).is_trusted


def test_where_nobody_answers_a_variable_says_yes(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    write(f'{GATEWAY}key = "AWS_SECRET_ACCESS_KEY"\n')
    monkeypatch.setenv(VARIABLE, "1")
    load_model("judge", ledger=ledger, config=load_config())


def test_an_address_of_the_file_is_announced(ledger: Ledger) -> None:
    write(GATEWAY)
    told: list[str] = []
    load_model("judge", ledger=ledger, config=load_config(), tell=told.append)
    assert told == ["judge: calls go to https://gateway.example/v1 (as hoofbeat.toml in this folder says)"]
    told.clear()
    FolderConfig.of(Path("hoofbeat.toml")).remember()
    load_model("judge", ledger=ledger, config=load_config(), tell=told.append)
    assert told == []


def test_the_manifest_says_where_calls_go_if_the_identity_does_not(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-12345678")
    write(
        f'{GATEWAY}identity = "gpt-4o-2024-11-20"\n[models.plain]\nspec = "http://127.0.0.1:9/v1#m"\n'
        '[models.fleet]\nname = "m"\nendpoints = ["http://a.example/v1", "http://127.0.0.1:8/v1"]\n'
        '[models.here]\nspec = "http://127.0.0.1:9/v1#m"\nidentity = "mine"\n'
    )
    config = load_config()
    names = ("judge", "plain", "fleet", "here", "openai:gpt-4o")
    models = {name: load_model(name, ledger=ledger, config=config) for name in names}
    addresses = {"judge": "https://gateway.example/v1", "fleet": "http://a.example/v1"}
    assert model_facts(models)["addresses"] == addresses


@pytest.mark.parametrize(
    "text",
    ["db.example/x", "me@10.0.0.7/x", "localhost#@db.example/x", "localhost/x?host=db.example", "127.db.example/x"],
)
def test_calls_are_kept_in_no_database_elsewhere_unasked(text: str) -> None:
    write(f'ledger = "postgresql://{text}"')
    with pytest.raises(TrustNeeded, match="database"):
        load_config()
    for near in ("localhost/x", "me@127.0.0.1/x", "/x?host=/tmp/socket"):
        write(f'ledger = "postgresql://{near}"')
        load_config()


@pytest.mark.parametrize("path", ["../calls.sqlite", "/tmp/calls.sqlite", "link/calls.sqlite"])
def test_calls_are_kept_in_no_file_elsewhere_unasked(path: str, place: Path) -> None:
    (place / "link").symlink_to(place.parent)
    write(f'ledger = "{path}"')
    with pytest.raises(TrustNeeded, match="keep all calls in"):
        load_config()
    assert load_config(Path("hoofbeat.toml")).ledger
    for near in (".hoofbeat/calls.sqlite", str(place / "calls.sqlite")):
        write(f'ledger = "{near}"')
        assert load_config().ledger == str(place / near)


def test_requests_are_written_to_no_folder_elsewhere_unasked(ledger: Ledger, tmp_path: Path) -> None:
    write('[models.judge]\nspec = "batch:../posted#m"\n')
    with pytest.raises(TrustNeeded, match=r"write requests into \.\./posted"):
        load_model("judge", ledger=ledger, config=load_config())
    load_model("batch:../posted#m", ledger=ledger, config=load_config())  # typed by the user
    load_model("judge", ledger=ledger, config=load_config(Path("hoofbeat.toml")))
    write(BATCH)
    load_model("judge", ledger=ledger, config=load_config())
    assert not (tmp_path / "posted").exists()


def test_work_goes_to_no_other_cluster_unasked() -> None:
    write('on = "ray://cluster.example:10001"')
    with pytest.raises(TrustNeeded, match=r"cluster\.example"):
        _configured(None, "on", "")
    assert _configured(Path("hoofbeat.toml"), "on", "") == "ray://cluster.example:10001"
    for text in ("ray", "local", "ray://127.0.0.1:10001"):
        write(f'on = "{text}"')
        assert _configured(None, "on", "") == text


@pytest.mark.parametrize(
    "index",
    ["s3://bucket/x", "s3://localhost/x", "s3://127.0.0.1/x", "file:///tmp/x", "/tmp/x", "../x", "~/x", "link/x"],
)
def test_indexes_are_kept_nowhere_else_unasked(index: str, place: Path) -> None:
    """A bucket may be called localhost; texts of documents are in an index."""
    (place / "link").symlink_to(place.parent)
    write(f'index = "{index}"')
    with pytest.raises(TrustNeeded, match="keep indexes"):
        _configured(None, "index", "")
    assert _configured(Path("hoofbeat.toml"), "index", "") == index
    for near in ("indexes", "./a/b", str(place / "indexes")):
        write(f'index = "{near}"')
        assert _configured(None, "index", "") == near


def test_a_plugin_of_the_file_runs_only_with_the_users_word(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[Path] = []

    def load(path: Path) -> type[_Plugin]:
        loaded.append(path)
        return _Plugin

    monkeypatch.setattr("hoofbeat.cli.registry.load_file", load)
    Path("mine.py").write_text("1")
    write('plugins = ["mine.py"]')
    with pytest.raises(TrustNeeded, match=r"run mine\.py as plugins"):
        _load_plugins(["report"])
    assert _run(["report"], False) == 2  # no terminal: nobody is asked
    assert _load_plugins(["--plugin", "mine.py", "--config", "hoofbeat.toml"]) == ["--config", "hoofbeat.toml"]
    FolderConfig.of(Path("hoofbeat.toml")).remember()
    loaded.clear()
    _load_plugins(["report"])
    assert loaded
    Path("mine.py").write_text("2")
    with pytest.raises(TrustNeeded):
        _load_plugins(["report"])
    assert _load_plugins(["report", "--yes", "x"]) == ["report", "x"]


class _Plugin:
    name = "mine"
    extensions = ("x",)


def test_without_a_home_nothing_is_remembered(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setattr(Path, "home", homeless)
    write(f'{GATEWAY}key = "AWS_SECRET_ACCESS_KEY"\n')
    with pytest.raises(TrustNeeded):
        load_model("judge", ledger=ledger, config=load_config())
    monkeypatch.setenv(VARIABLE, "1")
    load_model("judge", ledger=ledger, config=load_config())
