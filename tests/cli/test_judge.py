"""`hoofbeat judge` as a user runs it: judges over a real socket, people's labels there and back, kills, and size."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.judging import JudgmentFolder
from hoofbeat.records import Answer
from tests.cli.support import RunningCommand, environment, hoofbeat, json_of
from tests.cli.test_kill import folder_bytes, kill_until
from tests.judging.folders import a_run, chose, said
from tests.models.fault_server import FaultServer


def texts(count: int) -> list[Answer]:
    return [said(f"Advice {n}.", condition="oracle" if n % 2 else "closed", sample=n) for n in range(count)]


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def test_a_mixed_run_without_more_words(tmp_path: Path, server: FaultServer) -> None:
    a_run(tmp_path / "run", [*texts(12), chose("Rituximab"), chose("Aspirin", sample=1)])
    done = json_of(hoofbeat("judge", "run", "--model", server.spec(), "--json", folder=tmp_path))
    assert done["artefact"] == "judged"
    labels = done["metrics"]["labels"]
    assert labels["choice"] == {"correct": 1, "incorrect": 1}
    assert sum(labels["equivalence"].values()) == 12
    assert len(server.seen) == 12
    told = hoofbeat("judge", "run", "--model", server.spec(), folder=tmp_path)
    assert "0 new calls, 12 from the ledger" in told.stderr
    assert "next: hoofbeat report judged" in told.stderr


def test_scorers_load_no_model(tmp_path: Path) -> None:
    a_run(tmp_path / "run", [*texts(3), chose("Rituximab")])
    words = ["judge", "run", "--by", "exact", "--by", "rouge-l", "--by", "edit", "--by", "fuzzy", "--by", "choice"]
    done = json_of(hoofbeat(*words, "--model", "no such model", "--json", folder=tmp_path))
    assert done["cost"]["calls"] == 0
    judged = JudgmentFolder.open(tmp_path / "judged")
    assert Counter(each.aspect for each in judged.judgments) == {
        "exact": 4, "fuzzy": 4, "rouge-l": 4, "edit": 4, "choice": 1
    }  # fmt: skip
    assert "judge" not in judged.artefact.manifest.models
    assert judged.artefact.manifest.title == "scored without a model"


def test_modes_follow_the_verdicts_and_the_user_is_told(tmp_path: Path, server: FaultServer) -> None:
    a_run(tmp_path / "run", texts(20), models={"answer": server.spec()})
    judge = ["--model", server.spec()]
    first = hoofbeat("judge", "run", *judge, folder=tmp_path)
    assert "also wrote answers here" in first.stderr
    told = hoofbeat("judge", "judged", "--by", "failure-mode", *judge, "-o", "modes", folder=tmp_path)
    assert "only for wrong answers under oracle" in told.stderr
    judged = JudgmentFolder.open(tmp_path / "modes")
    wrong = {each.sample for each in judged.judgments if each.aspect == "equivalence" and each.label == "mismatch"}
    modes = [each for each in judged.judgments if each.aspect == "failure-mode"]
    assert {each.sample for each in modes} == {sample for sample in wrong if sample % 2}
    assert modes
    assert all(each.secondary != each.label for each in modes)
    again = hoofbeat("judge", "modes", "--by", "failure-mode", *judge, folder=tmp_path, code=2)
    assert "already have judgments of failure-mode" in again.stderr
    early = hoofbeat("judge", "run", "--by", "error-type", *judge, folder=tmp_path, code=2)
    assert "not known yet which are wrong" in early.stderr


def test_three_judges_and_their_probes(tmp_path: Path, server: FaultServer) -> None:
    a_run(tmp_path / "run", texts(10))
    judges = [word for name in "abc" for word in ("--model", server.spec(name))]
    words = ["judge", "run", *judges, "--probe", "order", "--probe", "length", "--probe-size", "4", "--seed", "3"]
    estimated = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))
    assert estimated["estimate"]["calls"] == 3 * (10 + 8)
    assert server.seen == []
    done = json_of(hoofbeat(*words, "--json", folder=tmp_path))
    assert done["cost"]["calls"] == len(server.seen) == 54
    rows = done["metrics"]["probes"]
    assert [(row["probe"], row["n"]) for row in rows] == [("order", 4), ("length", 4)] * 3
    assert all(0 <= row["flip_rate_low"] <= row["flip_rate"] <= row["flip_rate_high"] <= 1 for row in rows)
    judged = JudgmentFolder.open(tmp_path / "judged")
    assert {each.judge for each in judged.judgments} == {"majority of 3"}
    assert len(list(judged.each_probe())) == 24
    assert judged.artefact.manifest.seeds == {"probes": 3}
    assert set(judged.artefact.manifest.costs) == {server.spec(name) for name in "abc"}
    told = hoofbeat(*words, folder=tmp_path)
    assert "order: " in told.stderr
    assert "of the longer half" in told.stderr
    twice = hoofbeat("judge", "run", *judges, "--model", server.spec("a"), folder=tmp_path, code=2)
    assert "are the same model" in twice.stderr
    warm = hoofbeat("judge", "run", "--model", "embedded[temperature=0.6]", folder=tmp_path, code=2)
    assert "a judge takes no options" in warm.stderr


def test_people_label_a_sheet_and_come_back(tmp_path: Path, server: FaultServer) -> None:
    a_run(tmp_path / "run", texts(30))
    hoofbeat("judge", "run", "--model", server.spec(), folder=tmp_path)
    words = ["judge", "judged", "--sample-for-humans", "10", "--by", "equivalence", "--seed", "5", "-o", "labels.csv"]
    drawn = json_of(hoofbeat(*words, "--json", folder=tmp_path))
    assert drawn["rows"] == sum(row["drawn"] for row in drawn["strata"]) == 10
    refused = hoofbeat(*words, folder=tmp_path, code=1)
    assert "may hold labels" in refused.stderr
    assert drawn["design"] == "labels.design.json"
    assert {row["condition"]: row["weight"] for row in drawn["strata"]} == {"closed": 3.0, "oracle": 3.0}
    assert "2 of 2 systems get fewer than 10 answers" in drawn["warnings"][0]
    assert "a sheet of 20 has 10 of each" in drawn["warnings"][0]
    path = tmp_path / "labels.csv"
    with path.open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    for number, row in enumerate(rows[:8]):
        row |= {"label": "mismatch" if number % 2 else "equivalent", "annotator": "Dr A"}
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    told = hoofbeat("judge", "judged", "--human", "labels.csv", "-o", "checked", folder=tmp_path)
    assert "2 lines of labels.csv have no label yet" in told.stderr
    assert "8 labels of equivalence by human:Dr A" in told.stderr
    checked = JudgmentFolder.open(tmp_path / "checked")
    human = {each.sample: each.label for each in checked.judgments if each.judge == "human:Dr A"}
    assert len(human) == 8
    shown = {row["answer"]: row["label"] for row in rows[:8]}
    assert {f"Advice {sample}.": label for sample, label in human.items()} == shown
    assert len(checked.judgments) == 38
    manifest = checked.artefact.manifest
    assert [(ref.name, ref.kind) for ref in manifest.inputs[1:]] == [
        ("labels.csv", "labels"),
        ("labels.design.json", "design"),
    ]
    assert manifest.seeds == {"sheet: labels.csv": 5}
    assert manifest.settings["sheets"]["labels.csv"]["drawn"] == 10  # type: ignore[index]
    path.rename(tmp_path / "elsewhere.csv")
    (tmp_path / "labels.design.json").unlink()
    told = hoofbeat("judge", "judged", "--human", "elsewhere.csv", "-o", "undesigned", folder=tmp_path)
    assert "elsewhere.csv has no design file beside it" in told.stderr
    path.write_text("question,model,condition,label,annotator\nbath,m,closed,right,A\n")
    wrong = hoofbeat("judge", "judged", "--human", "labels.csv", "-o", "no", folder=tmp_path, code=1)
    assert "line 2: 'right' is not a label of equivalence" in wrong.stderr
    assert not (tmp_path / "no").exists()


def kill_sometimes(command: list[str], folder: Path, server: FaultServer, kills: int) -> None:
    """Kill the command so many times once it has called, then let it end."""
    for number in range(kills):
        before = len(server.seen)
        process = RunningCommand(command, folder)
        while len(server.seen) <= before + 20 * number and not process.ended():
            time.sleep(0.005)
        process.kill()
    hoofbeat(*command, folder=folder)


@pytest.mark.slow
@pytest.mark.parametrize("judges", ["a", "abc"])
def test_judging_killed_again_and_again_ends_with_the_same_bytes(tmp_path: Path, judges: str) -> None:
    with FaultServer(delay=0.1) as server:
        command = ["judge", "run", "--by", "equivalence", "--by", "failure-mode", "--probe", "length", "-o", "out"]
        command += [word for name in judges for word in ("--model", server.spec(name))]
        for name in ("killed", "quiet"):
            a_run(tmp_path / name / "run", texts(150))
        if len(judges) == 1:
            kill_until(command, tmp_path / "killed", server, kills=6)
        else:
            kill_sometimes(command, tmp_path / "killed", server, kills=4)
        hoofbeat(*command, folder=tmp_path / "quiet")
        assert folder_bytes(tmp_path / "killed" / "out") == folder_bytes(tmp_path / "quiet" / "out")
        assert not [path for path in (tmp_path / "killed").iterdir() if path.name.endswith((".draft", ".old"))]


def test_a_run_larger_than_its_memory(tmp_path: Path) -> None:
    """190 MB of answers are judged in far less memory."""
    long = "Invented words of a very long answer. " * 420
    a_run(tmp_path / "run", (Answer(question="drug", model="m", condition="closed, letter", protocol="letter", sample=n,
                                    text=f"{n} {long}", options=("Rituximab", "Aspirin"), choice="Aspirin")
                             for n in range(12_000)))  # fmt: skip
    size = (tmp_path / "run" / "answers.jsonl").stat().st_size
    assert size > 185e6
    limit = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, '-m', 'hoofbeat', 'judge', 'run', '--by', 'choice'])\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)\n"
        "sys.exit(done.returncode)"
    )
    done = subprocess.run(
        [sys.executable, "-c", limit], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=True
    )
    assert int(done.stdout.split()[-1]) < 0.9 * size
    assert JudgmentFolder.open(tmp_path / "judged").artefact.manifest.counts.kept == 12_000


def test_a_folder_that_nobody_named_is_not_replaced_by_judgments_of_another_run(tmp_path: Path) -> None:
    """`hoofbeat judge mine` replaced `judged`, which was made from `run`."""
    for name in ("run", "mine"):
        a_run(tmp_path / name, texts(2))
    hoofbeat("judge", "run", "--by", "exact", folder=tmp_path)
    before = folder_bytes(tmp_path / "judged")
    told = hoofbeat("judge", "mine", "--by", "exact", folder=tmp_path, code=1).stderr
    assert "Not overwritten: it was made from run" in told
    assert "-o judged" in told
    assert folder_bytes(tmp_path / "judged") == before
    hoofbeat("judge", "run", "--by", "exact", folder=tmp_path)
    hoofbeat("judge", "mine", "--by", "exact", "-o", "judged", folder=tmp_path)
    assert folder_bytes(tmp_path / "judged") != before
