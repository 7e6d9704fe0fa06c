"""`hoofbeat audit trial` as users run it, and what an audit and its report say of a judge that was or was not tried."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hoofbeat.store import open_artefact
from tests.audit.trial_judges import Judge, constant, failing, perfect
from tests.cli.support import hoofbeat, json_of

GIVEN = "".join(
    json.dumps({"question": f"Question {question}?", "source": source, "answer": f"{source}: wait {question} weeks"})
    + "\n"
    for question in (3, 4)
    for source in ("north", "south", "west")
)


@pytest.fixture
def answers(tmp_path: Path) -> list[str]:
    (tmp_path / "given.jsonl").write_text(GIVEN, encoding="utf-8")
    return ["audit", "--answers", "given.jsonl"]


def test_a_perfect_judge_is_tried_and_the_audit_and_its_report_tell(tmp_path: Path, answers: list[str]) -> None:
    with Judge(perfect("transplant")) as server:
        words = ["audit", "trial", "--judge", server.spec(), "--limit", "16", "--seed", "2", "-o", "tried"]
        estimate = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))["estimate"]
        assert (estimate["calls"], server.seen) == (32, [])
        done = hoofbeat(*words, folder=tmp_path)
        assert len(server.seen) == 32
        assert "16 of 16" in done.stderr
        assert "This judge is clearly better than chance" in done.stderr
        assert "clinical" not in done.stderr
        first = (tmp_path / "tried" / "manifest.json").read_bytes()
        again = json_of(hoofbeat(*words, "--json", folder=tmp_path))
        assert len(server.seen) == 32  # all from the ledger
        assert (tmp_path / "tried" / "manifest.json").read_bytes() == first
        server.say = constant("Divergent")
        shards = [("--shard", f"{number}/2", "-o", f"s{number}", "--trial", "tried") for number in (1, 2)]
        for shard in shards:
            told = hoofbeat(*answers, "--model", server.spec(), *shard, folder=tmp_path)
            assert "not tried" not in told.stderr
        beside = hoofbeat(*answers, "--model", server.spec(), "-o", "untold", folder=tmp_path)
    assert "This judge is clearly better than chance" in hoofbeat("show", "tried", folder=tmp_path).stdout
    manifest = open_artefact(tmp_path / "tried", "trial").manifest
    assert (manifest.seeds, manifest.settings["limit"]) == ({"draw": 2, "bootstrap": 2}, 16)
    assert manifest.models["judge"].endswith("#stub")
    assert set(manifest.prompts) == {"compare"}
    assert manifest.metrics["right"] == again["metrics"]["right"] == 16
    assert manifest.cost.calls == 32
    assert again["verdict"].startswith("This judge is clearly")
    row = json.loads((tmp_path / "tried" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert {"question", "text", "answer_a", "answer_b", "planted", "said", "exchanged"} <= set(row)
    assert "tried is a trial of this judge; to keep it with the audit add --trial tried" in beside.stderr
    hoofbeat("audit", "merge", "s1", "s2", "-o", "audit", folder=tmp_path)
    kept = open_artefact(tmp_path / "audit", "audit").manifest
    assert kept.metrics["trial"] == manifest.metrics
    assert [each.kind for each in kept.inputs].count("trial") == 1
    hoofbeat("report", "audit", "-o", "report", "--format", "markdown", folder=tmp_path)
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "This judge is clearly better than chance: right on 16 of 16 pairs" in page
    assert "The judge on pairs whose relation is known" in page
    assert "was not tried" not in page


def test_an_audit_without_a_trial_says_so_and_so_does_its_report(tmp_path: Path, answers: list[str]) -> None:
    with Judge(constant("Divergent")) as server:
        done = hoofbeat(*answers, "--model", server.spec(), "-o", "audit", folder=tmp_path)
    told = done.stderr.replace("\n", " ")
    assert f"not tested on pairs of known relation; to test it: hoofbeat audit trial --judge {server.spec()!r}" in told
    assert "trial" not in open_artefact(tmp_path / "audit", "audit").manifest.metrics
    hoofbeat("report", "audit", "-o", "report", "--format", "markdown", folder=tmp_path)
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "The judge was not tested on pairs with a known relation" in page


def test_a_trial_of_another_judge_or_pack_is_refused(tmp_path: Path, answers: list[str]) -> None:
    with Judge(constant("Divergent")) as server:
        hoofbeat("audit", "trial", "--judge", server.spec("one"), "--limit", "4", folder=tmp_path)
        for more in (["--model", server.spec("two")], ["--model", server.spec("one"), "--pack", "legal"]):
            done = hoofbeat(*answers, *more, "--trial", "trial", "-o", "audit", folder=tmp_path, code=1)
            assert "this trial used another judge, pack or prompt" in done.stderr
        hoofbeat(*answers, "--model", server.spec("one"), "--trial", "trial", "-o", "audit", folder=tmp_path)


def test_other_packs_have_trials_of_their_own(tmp_path: Path) -> None:
    with Judge(perfect("guidelines")) as server:
        done = hoofbeat("audit", "trial", "--judge", server.spec(), "--pack", "guidelines", "--json", folder=tmp_path)
    metrics = json_of(done)["metrics"]
    assert metrics["right"] == metrics["agreement"]["n"] >= 8
    assert metrics["better"]


def test_a_judge_that_fails_leaves_its_failures_and_ends_with_one(tmp_path: Path) -> None:
    with Judge(failing) as server:
        done = hoofbeat("audit", "trial", "--judge", server.spec(), "--limit", "4", folder=tmp_path, code=1)
    assert "not clearly better than chance: right on 0 of 4" in done.stderr
    assert "Nothing was kept" in done.stderr
    counts = open_artefact(tmp_path / "trial", "trial").manifest.counts
    assert (counts.kept, counts.failed, counts.failures) == (0, 4, {"unreadable": 4})


def test_a_recorded_judge_and_a_batch_are_tried_alike(tmp_path: Path) -> None:
    record = {"reasoning": "r", "classification": "Consistent", "topic": "t", "significance": "none"}
    reply = {"contains": "", "text": json.dumps(record)}
    (tmp_path / "calls.jsonl").write_text(json.dumps(reply) + "\n", encoding="utf-8")
    words = ["audit", "trial", "--limit", "8"]
    done = json_of(hoofbeat(*words, "--judge", "replay:calls.jsonl", "--json", folder=tmp_path))
    assert (done["metrics"]["right"], done["metrics"]["agreement"]["n"]) == (2, 8)
    batch = [*words, "--judge", "batch:waiting#m", "-o", "batched"]
    assert "16 requests were written" in hoofbeat(*batch, folder=tmp_path, code=4).stdout
    lines = (tmp_path / "waiting" / "requests-001.jsonl").read_text(encoding="utf-8").splitlines()
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(record)}}
    answered = [
        json.dumps(
            {
                "custom_id": json.loads(line)["custom_id"],
                "response": {"status_code": 200, "body": {"choices": [choice]}},
            }
        )
        for line in lines
    ]
    (tmp_path / "waiting" / "answers.jsonl").write_text("\n".join(answered) + "\n", encoding="utf-8")
    assert json_of(hoofbeat(*batch, "--json", folder=tmp_path))["metrics"]["right"] == 2


def test_hard_pairs_are_told_by_kind(tmp_path: Path) -> None:
    with Judge(constant("Divergent")) as server:
        words = ["audit", "trial", "--hard", "--judge", server.spec(), "--limit", "12", "-o", "hard"]
        told = hoofbeat(*words, folder=tmp_path).stderr
    assert "By kind" in told
    assert "list order" in told
    manifest = open_artefact(tmp_path / "hard", "trial").manifest
    assert manifest.settings["hard"] is True
    assert str(manifest.settings["pack"]).startswith("clinicians@")
    assert manifest.metrics["right"] == 5  # care differs in half of the pairs, but for one with a silent side
