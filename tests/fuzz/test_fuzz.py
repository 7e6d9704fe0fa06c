"""Inputs that once broke a reader, read again; a few new ones for every target; and that the fuzzer finds what it must.

`make fuzz` looks for more.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from functools import partial
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from tests.fuzz import fuzzing
from tests.fuzz.fuzzing import CASES, fuzz, minimised, run
from tests.fuzz.mutating import MAX_BYTES, mutate
from tests.fuzz.targets import Read, Target, targets

QUICK = [target for target in targets() if not target.slow]
KEPT = sorted(path for path in CASES.iterdir() if "--" in path.name)


@pytest.mark.parametrize("case", KEPT, ids=lambda path: path.name)
def test_what_broke_a_reader_breaks_it_no_more(case: Path) -> None:
    target = next(each for each in targets() if each.name == case.name.partition("--")[0])
    outcome = run(target, case.read_bytes())
    assert not outcome.error, outcome.error


@pytest.mark.parametrize("target", QUICK, ids=lambda target: target.name)
def test_mutated_inputs_bring_readable_errors_only(
    target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzzing, "FOUND", tmp_path)
    inputs = list(fuzz(target, 20, number=15, traced=0))
    assert len(inputs) == 15
    assert not list(tmp_path.iterdir()), [path.read_text() for path in tmp_path.glob("*.error")]


def _target(read: Read) -> Target:
    return Target("toy", lambda: [b"seed"], read)


def test_a_wrong_error_is_found_made_small_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(data: bytes, folder: Path) -> None:
        if b"\n" in data:
            raise KeyError("a line")

    monkeypatch.setattr(fuzzing, "FOUND", tmp_path)
    assert len(list(fuzz(_target(read), 0, number=200))) == 200
    found = [path for path in tmp_path.iterdir() if path.suffix != ".error"]
    assert [path.read_bytes() for path in found] == [b"\n"]
    assert "KeyError: 'a line'" in found[0].with_name(f"{found[0].name}.error").read_text()


def test_errors_on_purpose_are_right_and_slow_ones_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(data: bytes, folder: Path) -> None:
        raise InputError("line 7 can't be read")

    def spin(data: bytes, folder: Path) -> None:
        while time.process_time() < until:
            pass

    assert run(_target(refuse), b"x") == fuzzing.Outcome("InputError line  cant be read")
    monkeypatch.setattr(fuzzing, "MAX_SECONDS", 0.2)
    until = time.process_time() + 20
    assert run(_target(spin), b"x").what == "too slow"


def test_a_process_that_crashes_is_found_and_the_rest_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    crashes = Target("toy", lambda: [b"seed"], partial(_crash, tmp_path / "crashed"))
    monkeypatch.setattr(fuzzing, "FOUND", tmp_path / "found")
    row = fuzzing._in_process(crashes, 0, seconds=60, number=30)
    assert (row.inputs, row.lost) == (30, 1)
    assert len(list((tmp_path / "found").glob("*.error"))) == 1
    assert "toy: crash" in capsys.readouterr().out


def _crash(marker: Path, data: bytes, folder: Path) -> None:
    if b"seed" not in data and not marker.exists():
        marker.touch()
        os._exit(11)


def test_an_input_that_reaches_a_new_line_is_mutated_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcome is the same for all of them; only the lines that they reach tell them apart."""
    monkeypatch.setattr(fuzzing.Lines, "ROOT", __file__)
    monkeypatch.setattr(fuzzing, "mutate", lambda data, rng, _: data + rng.choice((b"a", b"b", b"c", b"d")))
    begun_with_nothing = Target("toy", lambda: [b""], _three_letters)
    assert b"abc" not in set(fuzz(begun_with_nothing, 0, number=200, traced=0))
    assert b"abc" in set(fuzz(begun_with_nothing, 0, number=200))


def _three_letters(data: bytes, folder: Path) -> None:
    if data[:1] == b"a":
        if data[1:2] == b"b":
            return
        return


def test_a_large_input_does_not_hide_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(data: bytes, folder: Path) -> None:
        bytearray(60_000_000)[:] = bytes(60_000_000)

    monkeypatch.setattr(fuzzing, "MAX_MEGABYTES", 80)
    with fuzzing.Reading(_target(fill)) as reading:
        assert [reading.run(b"x").what for _ in range(2)] == ["too large", "too large"]


def test_quick_targets_get_more_time_after_the_first_round() -> None:
    quick, slow = Target("quick", lambda: [b""], _three_letters), Target("slow", lambda: [b""], _three_letters)
    rows = [fuzzing.Row("quick", 900, 1.0, 0), fuzzing.Row("slow", 100, 1.0, 0)]
    assert (fuzzing._share(quick, []), fuzzing._share(quick._replace(slow=True), rows)) == (1.0, 0.25)
    assert fuzzing._share(quick, rows) == pytest.approx(1.8)
    assert fuzzing._share(slow, rows) == 0.25
    assert "| all | 1,000 | 2 | 0 |" in fuzzing.table(rows)


def test_minimising_keeps_what_matters() -> None:
    assert minimised(b"abcXdefghYijk", lambda data: b"X" in data and b"Y" in data) == b"XY"


def test_mutations_are_repeatable_bounded_and_many() -> None:
    seeds = [b'{"a": [1, 2]}\n{"b": "c"}\n{"d": 3}\n', b"a\tb\n1\t2\n", b""]
    made = [mutate(seeds[number % 3], random.Random(number), seeds) for number in range(300)]
    assert made == [mutate(seeds[number % 3], random.Random(number), seeds) for number in range(300)]
    assert len(set(made)) > 200
    assert all(len(each) <= MAX_BYTES for each in made)


def test_every_reader_and_import_format_is_a_target() -> None:
    names = {target.name for target in targets()}
    assert len(names) == len(targets())
    wanted = ("reader-jats", "reader-pdf", "reader-word", "questions-parquet", "endpoint-batch", "output-audit")
    more = ("config", "ledger", "manifest", "folder-audit-")
    assert all(any(name.startswith(each) for name in names) for each in (*wanted, *more))
    assert all(target.seeds() for target in itertools.islice(QUICK, 40))
