"""This machine's engine: the order of the parts, bounded memory, and processes that die."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.cli import main
from hoofbeat.cli.session import command_words
from hoofbeat.engine import current_engine, local_engine, ray_engine, running_on
from hoofbeat.engine.local_engine import LocalEngine
from hoofbeat.engine.ray_engine import RayEngine
from hoofbeat.errors import ClusterError, InputError, UsageError
from hoofbeat.models import load_config
from tests.engine.works import KillsOnce, broken, refuse, slow_square, square


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes start after the first part."""
    monkeypatch.setattr(local_engine, "_WARM_UP", 0.0)


def numbers(count: int, seen: list[int]) -> Iterator[int]:
    for number in range(count):
        seen.append(number)
        yield number


@pytest.mark.usefixtures("at_once")
def test_results_come_in_the_order_of_the_parts_and_few_parts_are_taken_ahead() -> None:
    seen: list[int] = []
    results = LocalEngine().map(square, numbers(300, seen), workers=2)
    assert [next(results) for _ in range(3)] == [0, 1, 4]
    assert len(seen) <= 3 + 2 * local_engine.AHEAD
    assert list(results) == [number * number for number in range(3, 300)]


def test_threads_and_work_that_cant_be_pickled_stay_in_this_process() -> None:
    known: list[int] = []

    def remember(number: int) -> int:
        known.append(number)
        return -number

    for threads in (True, False):
        assert list(LocalEngine().map(remember, range(9), threads=threads, workers=2)) == [-n for n in range(9)]
    assert sorted(known) == sorted([*range(9), *range(9)])


@pytest.mark.usefixtures("at_once")
def test_a_process_that_is_killed_costs_nothing(tmp_path: Path) -> None:
    work = KillsOnce(tmp_path / "mark", 5)
    assert list(LocalEngine().map(work, range(12), workers=2)) == [number * number for number in range(12)]
    assert (tmp_path / "mark").exists()


@pytest.mark.usefixtures("at_once")
def test_a_part_that_kills_every_process_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"3 processes died on the same part of the work \(signal 9\)"):
        list(LocalEngine().map(KillsOnce(tmp_path / "mark", 5, always=True), range(12), workers=2))


@pytest.mark.usefixtures("at_once")
def test_errors_of_a_part_are_those_of_the_command() -> None:
    with pytest.raises(InputError, match="three is no good") as caught:
        list(LocalEngine().map(refuse, range(9), workers=2))
    assert (caught.value.where, caught.value.fix) == ("part 3", "leave it out")
    with pytest.raises(ZeroDivisionError):
        list(LocalEngine().map(broken, range(9), workers=2))


@pytest.mark.usefixtures("at_once")
def test_results_that_nobody_wants_end_the_processes() -> None:
    results = LocalEngine().map(slow_square, range(1000), workers=2)
    assert next(results) == 0
    results.close()  # type: ignore[attr-defined]


def test_the_choice_holds_inside_and_ends_outside() -> None:
    with running_on("ray") as engine:
        assert current_engine() is engine
        assert engine.name == "ray"
    assert current_engine().name == "local"
    with pytest.raises(UsageError, match="work can't run on 'sky'"), running_on("sky"):
        pass


def test_without_the_extra_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(ClusterError) as caught:
        list(RayEngine().map(square, [1]))
    assert "pip install 'hoofbeat[ray]'" in str(caught.value)


def test_a_cluster_out_of_reach_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    with pytest.raises(ClusterError, match="no Ray cluster answers there") as caught:
        list(RayEngine("ray://127.0.0.1:9").map(square, [1]))
    assert caught.value.where == "ray://127.0.0.1:9"
    monkeypatch.setenv("RAY_ADDRESS", "no-such-host.invalid:6379")
    with pytest.raises(ClusterError, match="no Ray cluster answers there"):
        list(RayEngine().map(square, [1]))


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.0 400 Bad request\r\n\r\n", None])
def test_what_answers_but_is_not_ray_is_told(answer: bytes | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray")
    monkeypatch.setattr(ray_engine, "_ANSWER", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            line = other.accept()[0]
            if answer is None:  # it says nothing, and keeps the line
                told.wait(10)
            line.sendall(answer or b"")
            line.close()

        told = threading.Event()
        answering = threading.Thread(target=greet)
        answering.start()
        where = f"ray://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(ClusterError, match="what answers there is not a Ray cluster") as caught:
            list(RayEngine(where).map(square, [1]))
        assert caught.value.where == where
        told.set()
        answering.join()


def test_the_configuration_may_name_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hoofbeat.toml").write_text('on = "sky"')
    for words, told in ((["--title", "x"], "work can't run on 'sky'"), (["--on", "moon"], "work can't run on 'moon'")):
        with pytest.raises(SystemExit) as ended:
            main(["corpus", "import", "nothing", *words])
        assert ended.value.code == 2
        assert told in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["corpus", "import", "nothing", "--on", "local"])
    assert "there is no such file or folder" in capsys.readouterr().err
    assert load_config().on == "sky"


def test_where_a_command_ran_is_not_in_its_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["--on", "ray"], ["--on=ray"], ["--json"], []):
        monkeypatch.setattr("sys.argv", ["hoofbeat", "corpus", "import", "in", *words, "-o", "c"])
        assert command_words() == ["hoofbeat", "corpus", "import", "in", "-o", "c"]


@pytest.mark.parametrize("joint", [["--decisions", "{}"], ["--decisions={}"]])
def test_a_database_s_password_is_not_in_a_manifest(monkeypatch: pytest.MonkeyPatch, joint: list[str]) -> None:
    address = "postgresql://ada:pa@ss:w/ord@db.example:5432/reviews"
    words = [word.format(address) for word in joint]
    monkeypatch.setattr("sys.argv", ["hoofbeat", "audit", "gate", "a", "b", *words])
    told = [word.format("postgresql://ada:***@db.example:5432/reviews") for word in joint]
    assert command_words() == ["hoofbeat", "audit", "gate", "a", "b", *told]
    endpoint = ["--model", "http://127.0.0.1:8000/v1#name@revision"]  # no password: the name of a model may have an @
    monkeypatch.setattr("sys.argv", ["hoofbeat", "answer", "bench", *endpoint])
    assert command_words() == ["hoofbeat", "answer", "bench", *endpoint]
