"""`hoofbeat serve` and the invitations of `hoofbeat review`, as real commands."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.server import RunningServer, print_ready
from tests.cli.support import hoofbeat, json_of, start
from tests.web.visitors import Visitor


@pytest.fixture(scope="module")
def shown(folders: Path) -> Path:
    return folders


@contextmanager
def running(*words: str, folder: Path) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The command with what it printed when it was ready."""
    process = start([*words, "--json"], folder)
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=120)


def test_it_shows_folders_until_ctrl_c(shown: Path, tmp_path: Path) -> None:
    with running("serve", str(shown), "--port", "0", folder=tmp_path) as (process, told):
        assert told["address"].startswith("http://127.0.0.1:")
        assert (told["browse"], told["public"], told["warning"]) == ("", False, "")
        seen = Visitor(told["address"]).get("/")
        assert seen.status == 200
        assert "bench" in seen.text
        assert "server" not in seen.headers
        port = told["address"].rpartition(":")[2]
        busy = hoofbeat("serve", str(shown), "--port", port, folder=tmp_path, code=2)
        assert "is in use" in busy.stderr
        assert "--port 0" in busy.stderr
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
        assert (process.returncode, out, err) == (0, "", "")
    assert list(tmp_path.iterdir()) == []  # only looking leaves nothing behind


def test_where_others_can_reach_it_a_secret_opens_it(shown: Path, tmp_path: Path) -> None:
    with running("serve", str(shown / "bench"), "--host", "0.0.0.0", "--port", "0", folder=tmp_path) as (_, told):
        assert told["public"]
        assert "does not encrypt" in told["warning"]
        address = f"http://127.0.0.1:{told['address'].rpartition(':')[2]}"
        visitor = Visitor(address)
        assert visitor.get("/").status == 401
        assert visitor.get("/enter/" + told["browse"].rpartition("/")[2]).status == 303
        assert visitor.get("/").status == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "no-such-host.invalid"], "there is no address"),
        (["--host", "192.0.2.1"], "not an address of this machine"),
        (["--url", "review.example.org"], "is not the address of a server"),
        (["--model", "no-such-model"], "no-such-model"),
        (["--line", "bm25 + nothing-such"], "nothing-such"),
        (["--budget", "much"], "a budget is"),
    ],
)
def test_what_can_not_be_served_is_said(shown: Path, tmp_path: Path, words: list[str], said: str) -> None:
    code = 1 if "--model" in words else 2
    told = hoofbeat("serve", str(shown / "bench"), "--port", "0", *words, folder=tmp_path, code=code)
    assert said in told.stderr


def test_a_folder_with_nothing_to_show_is_said(tmp_path: Path) -> None:
    assert "has no Hoofbeat results" in hoofbeat("serve", str(tmp_path), folder=tmp_path, code=1).stderr
    assert "no such folder" in hoofbeat("serve", "none", folder=tmp_path, code=1).stderr


def test_the_first_admin_comes_in_by_the_link_of_the_first_start(tmp_path: Path) -> None:
    words = ("review", "--db", str(tmp_path / "review.db"), "--port")
    with running(*words, "0", folder=tmp_path) as (_, told):
        visitor = Visitor(told["address"])
        assert visitor.join(told["come_in"].rpartition("/")[2]).headers["location"] == "/team"
        assert visitor.get("/team/people").status == 200
    with running(*words, "0", folder=tmp_path) as (_, told):
        assert (told["come_in"], told["admins"]) == ("", ["Admin"])
    assert [event.what for event in store_trail(tmp_path)] == ["invited", "signed in"]


def store_trail(folder: Path) -> list[Any]:
    with ReviewStore.open(str(folder / "review.db")) as store:
        return list(store.trail())


def test_admins_of_a_file_that_was_there_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A file of reviews that came with a folder could let its sender in as admin."""
    told = RunningServer(address="http://127.0.0.1:8350", reviews=True, admins=("Ada", "Eve\x1b[2J"))
    print_ready(told)
    said = capsys.readouterr().out
    assert "Ada, Eve" in said
    assert "\x1b" not in said
    assert "hoofbeat review revoke NAME" in said


def test_people_are_invited_and_revoked_from_the_command_line(tmp_path: Path) -> None:
    words = ("--db", "review.db", "--json")
    first = json_of(hoofbeat("review", "invite", "Ada Example", *words, "--group", "cardiology", folder=tmp_path))
    assert first["link"].startswith("http://127.0.0.1:8350/join/")
    assert first["person"]["groups"] == ["cardiology"]
    url = ("--url", "https://review.example.org/")
    again = json_of(hoofbeat("review", "invite", "ada example", "--again", *words, *url, folder=tmp_path))
    assert again["link"].startswith("https://review.example.org/join/")
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        assert store.invited(first["link"].rpartition("/")[2]) is None
        assert store.invited(again["link"].rpartition("/")[2]) is not None
    said = hoofbeat("review", "revoke", first["person"]["id"], "--db", "review.db", folder=tmp_path)
    assert "no longer has access" in said.stdout
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        assert [person.active for person in store.people()] == [False]
    said = hoofbeat("review", "revoke", "Nobody", "--db", "review.db", folder=tmp_path, code=2)
    assert "nobody called" in said.stderr


def test_a_password_is_in_no_message_of_the_command(tmp_path: Path) -> None:
    url = "postgresql://ada:hush-hush@127.0.0.1:9/reviews"
    for words in (("--db", url), ()):
        said = hoofbeat("review", "revoke", "Ada", *words, "--json", folder=tmp_path, code=1,
                        extra={} if words else {"HOOFBEAT_REVIEW_DB": url, "PGPASSWORD": "hush-hush"})  # fmt: skip
        assert "can't be reached" in said.stderr
        assert "hush" not in said.stdout + said.stderr
    assert list(tmp_path.iterdir()) == []
