"""Folders whose tables were damaged, and are read all the same (`--trust-changed`): every error is readable.

Each table of the teaching folders is damaged in many ways; commands that read it run in this process. None may end with
an error that nobody foresaw (exit 70).
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars
import pytest

from hoofbeat import cli

SEED = 20
ROUNDS = 12
TABLES = (
    "audit/comparisons.parquet",
    "audit/questions.jsonl",
    "audit/sources.jsonl",
    "audit/answers.jsonl",
    "audit/pack.json",
    "bench/questions.jsonl",
    "bench/items.jsonl",
    "bench/review.jsonl",
    "bench/qrels.tsv",
    "bench/funnel.tsv",
    "bench/failed.jsonl",
    "cases/documents.jsonl",
    "judged/judgments.jsonl",
    "run/answers.jsonl",
    "ranked/queries.tsv",
    "ranked/hits.jsonl",
)
CELLS = (b"", b"-1", b"99999999999999999999", b"nan", b"inf", b"x", b"1e400", b"\xc3\xa9\x00", b'"', b"0.5")
LINES = (b"", b"{}", b"[]", b"\x00", b"\xff\xfe", b"1", b'"a"', b"\t\t\t\t\t\t", b"NaN", b"null")
VALUES: tuple[Any, ...] = (None, -1, 10**30, "", [], {}, "x", [None], 1.5, True, {"a": 1}, "\ufffe")


def commands(folder: Path, others: Path, out: Path) -> list[list[str]]:
    """Commands that read a folder and call no model."""
    path, to = str(folder), ["-o", str(out)]
    store = ["--db", str(out.parent / "review.db"), "--no-serve"]
    found = [["show", path], ["report", path, *to]]
    match folder.name:
        case "audit":
            second = str(others / "audit-2")
            found += [["audit", "table", path], ["audit", "cases", path], ["audit", "export", path, *to]]
            found += [["audit", "compare", path, second, *to]]
            found += [["audit", "gate", second, path, "--fail-if", "newly_silent > 99", *to]]
            found += [["review", path, *store]]
        case "bench":
            corpus = str(others / "cases")
            found += [["export", path, "--as", kind, "--corpus", corpus, *to] for kind in ("beir", "ogcare", "jsonl")]
            found += [["review", path, "--exam", *store], ["review", path, "--form", "likert", *store]]
            found += [["show", path, "q-hbt-case-01"]]
        case "cases":
            found += [["corpus", "stats", path, *to], ["corpus", "export", path, *to], ["show", path, "hbt-case-01"]]
        case "ranked":
            found += [["compare", path, str(others / "ranked-2"), *to]]
        case _:
            found += [["judge", path, "--by", "exact", *to], ["review", path, *store]]
            found += [["compare", path, str(others / ("run" if folder.name == "judged" else "judged")), *to]]
    return found


def damaged_text(data: bytes, rng: random.Random) -> bytes:
    """A table of lines with one thing wrong."""
    lines = data.split(b"\n")
    at = rng.randrange(max(1, len(lines) - 1))
    match rng.randrange(8):
        case 0:
            return data[: rng.randrange(len(data))]
        case 1:
            del lines[at]
        case 2:
            lines.insert(at, lines[at])
        case 3:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        case 4:
            changed = bytearray(data)
            changed[rng.randrange(len(changed))] = rng.randrange(256)
            return bytes(changed)
        case 5:
            lines[at] = rng.choice(LINES)
        case _:
            lines[at] = _damaged_line(lines[at], rng)
    return b"\n".join(lines)


def _damaged_line(line: bytes, rng: random.Random) -> bytes:
    cells = line.split(b"\t")
    if len(cells) > 1:
        cells[rng.randrange(len(cells))] = rng.choice(CELLS)
        return b"\t".join(cells)
    try:
        value: Any = json.loads(line)
    except ValueError:
        return b"{"
    inner = value
    while isinstance(inner, dict | list) and inner:
        key: Any = rng.choice(list(inner)) if isinstance(inner, dict) else rng.randrange(len(inner))
        if not isinstance(inner[key], dict | list) or rng.random() < 0.4:
            inner[key] = rng.choice(VALUES)
            break
        inner = inner[key]
    return json.dumps(value).encode()


def damage_parquet(path: Path, rng: random.Random) -> None:
    """A Parquet table with one thing wrong: its bytes, its columns, or its values."""
    frame, data = polars.read_parquet(path), bytearray(path.read_bytes())
    name = rng.choice(frame.columns)
    match rng.randrange(5):
        case 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
            return
        case 1:
            path.write_bytes(data[: rng.randrange(len(data))])
            return
        case 2:
            frame = frame.drop(name)
        case 3:
            frame = frame.with_columns(polars.Series(name, [rng.choice((None, -1, "x", 1.5, True, [1]))] * len(frame)))
        case _:
            frame = rng.choice((frame.head(0), polars.concat([frame, frame]), frame.rename({name: "other"})))
    frame.write_parquet(path)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[list[str]], int]:
    """Runs a command in this process; its exit code."""
    monkeypatch.setenv("HOOFBEAT_TRUST_CHANGED", "1")
    monkeypatch.setenv("HOOFBEAT_LEDGER", str(tmp_path / "ledger.sqlite"))

    def code_of(words: list[str]) -> int:
        with pytest.raises(SystemExit) as ended:
            cli.main(words)
        return int(ended.value.code or 0)

    return code_of


@pytest.mark.parametrize("kind", sorted({table.partition("/")[0] for table in TABLES}))
def test_the_commands_read_folders_that_are_whole(
    kind: str, folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    for words in commands(folders / kind, folders, tmp_path / "out"):
        code = run(words)
        assert code == 0, (words, capsys.readouterr().err)
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


@pytest.mark.parametrize("table", TABLES)
def test_a_damaged_table_is_a_readable_error(
    table: str, folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(f"{SEED} {table}")
    kind, _, name = table.partition("/")
    for number in range(ROUNDS):
        folder, out = tmp_path / str(number) / kind, tmp_path / str(number) / "out"
        shutil.copytree(folders / kind, folder)
        file = folder / name
        if file.suffix == ".parquet":
            damage_parquet(file, rng)
        else:
            file.write_bytes(damaged_text(file.read_bytes(), rng))
        for words in rng.sample(commands(folder, folders, out), 2):
            code = run(words)
            told = capsys.readouterr()
            assert code != 70, (words, told.err)
            assert "Traceback" not in told.err
            shutil.rmtree(out, ignore_errors=True)
        shutil.rmtree(tmp_path / str(number))


@pytest.mark.parametrize("how", ["dropped", "lists", "numbers", "nothing", "unknown", "bytes"])
def test_a_table_of_pairs_with_a_wrong_column_is_a_readable_error(
    how: str, folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(folders / "audit", folder)
    file = folder / "comparisons.parquet"
    whole, data = polars.read_parquet(file), file.read_bytes()
    value = {"lists": [1], "numbers": 7, "unknown": "no such thing"}.get(how)
    for name in ("question", "a", "label", "significance", "topic", "judge"):
        if how == "bytes":
            file.write_bytes(data[:500] + bytes(each ^ 0x55 for each in data[500:3000]) + data[3000:])
        elif how == "dropped":
            whole.drop(name).write_parquet(file)
        else:
            whole.with_columns(polars.Series(name, [value] * len(whole))).write_parquet(file)
        for words in (["audit", "cases"], ["audit", "table"], ["show"]):
            code = run([*words, str(folder)])
            told = capsys.readouterr()
            assert code != 70, (words, name, told.err)
            assert code == 0 or "do: " in told.err


def panicking(data: bytes, path: Path, *, when: str) -> bytes:
    """The table with one bit changed over which Polars panics: at once (schema), or when its values are read."""
    for seed in range(2_000):
        rng = random.Random(seed)
        changed = bytearray(data)
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        place = "schema"
        try:
            frame = polars.scan_parquet(path)
            frame.collect_schema()
            place = "values"
            frame.collect()
        except polars.exceptions.PolarsError:
            continue
        except polars.exceptions.PanicException:
            if place == when:
                return bytes(changed)
    pytest.skip("this version of Polars panics over none of the changed tables")


@pytest.mark.parametrize("when", ["schema", "values"])
def test_a_table_over_which_polars_panics_is_a_readable_error(
    when: str, folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "audit"
    shutil.copytree(folders / "audit", folder)
    file = folder / "comparisons.parquet"
    file.write_bytes(panicking(file.read_bytes(), tmp_path / "tried.parquet", when=when))
    assert run(["audit", "export", str(folder), "-o", str(tmp_path / "out")]) == 1
    told = capsys.readouterr().err
    assert "it is damaged" in told
    assert "do: " in told


def test_a_measure_that_is_no_number_is_a_readable_error(
    folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ranked"
    shutil.copytree(folders / "ranked", folder)
    lines = (folder / "queries.tsv").read_text().splitlines()
    (folder / "queries.tsv").write_text("\n".join([*lines[:-1], lines[-1] + "p"]) + "\n")
    assert run(["report", str(folder), "-o", str(tmp_path / "out")]) == 1
    assert "has no number in the column value" in capsys.readouterr().err


@pytest.mark.parametrize("lost", ["query", "measure", "value"])
def test_a_table_without_a_column_is_a_readable_error(
    lost: str, folders: Path, tmp_path: Path, run: Callable[[list[str]], int], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ranked"
    shutil.copytree(folders / "ranked", folder)
    table = (folder / "queries.tsv").read_text()
    (folder / "queries.tsv").write_text(table.replace(lost, "other", 1))
    assert run(["report", str(folder), "-o", str(tmp_path / "out")]) == 1
    assert f"no column {lost}" in capsys.readouterr().err
