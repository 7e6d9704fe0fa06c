"""`hoofbeat audit themes`: topics of an audit to themes with names, counts and examples."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import msgspec
import pytest

from hoofbeat.store import open_artefact
from tests.answering.support import Says, ScriptedServer
from tests.cli.audit_folders import invented_pairs, write_audit
from tests.cli.support import hoofbeat, json_of
from tests.helpers import needs_weights

TOPICS = {
    "q1": "when baths are allowed",
    "q2": "Time until bathing",
    "q3": "fever threshold",
    "q4": "temperature at which to call",
    "q5": "=cmd('eating grapefruit')",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An audit whose five questions have topics of three themes; one diverging pair has none."""
    needs_weights("potion")
    rows = invented_pairs({"q1": "ddd", "q2": "dcx", "q3": "ddc", "q4": "d--", "q5": "dc-", "q6": "dcc"})
    rows = [
        msgspec.structs.replace(
            row,
            topic=TOPICS.get(row.question) if row.topic else None,
            significance={"q1": "high", "q3": "low"}.get(row.question, "medium") if row.topic else None,
        )
        for row in rows
    ]
    write_audit(tmp_path / "audit", rows)
    return tmp_path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def test_themes_by_rule(folder: Path) -> None:
    words = ("audit", "themes", "audit", "--encoder", "potion", "--threshold", "0.2", "-o", "out")
    told = json_of(hoofbeat(*words, "--json", folder=folder))
    bath, fever, fruit = told["themes"]
    assert (bath["count"], bath["questions"], bath["sources"], bath["different"]) == (5, 2, 3, 2)
    assert bath["levels"] == {"low": 0, "medium": 2, "high": 3}
    assert bath["labels"] == {"Divergent": 4, "Contradictory": 1}
    assert bath["name"] in {"when baths are allowed", "time until bathing"}
    assert (fever["count"], fever["questions"], fruit["count"]) == (3, 2, 1)
    assert bath["examples"][0]["significance"] == "high"
    rows = rows_of(folder / "out" / "themes.tsv")
    assert [(row["pairs"], row["weight"], row["questions"]) for row in rows] == [
        ("5", "13.0", "2"), ("3", "4.0", "2"), ("1", "2.0", "1"),
    ]  # fmt: skip
    phrases = {row["phrase"]: row["place"] for row in rows_of(folder / "out" / "phrases.tsv")}
    assert len(phrases) == 5
    assert phrases["fever threshold"] == phrases["temperature at which to call"] == "2"
    assert "when baths are allowed" in (folder / "out" / "themes.svg").read_text(encoding="utf-8")
    artefact = open_artefact(folder / "out", "themes")
    assert artefact.verify() == []
    assert artefact.manifest.metrics == {"phrases": 5, "pairs": 9, "without a topic": 1}
    assert set(artefact.manifest.models) == {"encoder"}
    shown = hoofbeat("show", "out", folder=folder).stdout
    assert all(row["theme"] in shown for row in rows), shown
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    assert "(replaced the earlier folder)" in hoofbeat(*words, folder=folder).stdout
    assert before == {path.name: path.read_bytes() for path in (folder / "out").iterdir()}


def named(name: str, *members: int) -> dict[str, object]:
    return {"themes": [{"members": list(members), "shared": "x", "name": name}]}


def test_themes_named_by_a_model(folder: Path) -> None:
    script = [
        Says("themes", "fever threshold", named("Fever and when to call", 1, 2)),
        Says("themes", "time until bathing", "no JSON at all"),
    ]
    words = ("audit", "themes", "audit", "--encoder", "potion", "--threshold", "0.2", "--named", "2", "--json")
    with ScriptedServer(*script) as server:
        estimate = json_of(hoofbeat(*words, "--model", server.spec(), "--estimate", folder=folder))
        assert (estimate["estimate"]["calls"], server.seen) == (2, [])
        assert not (folder / "themes").exists()
        told = json_of(hoofbeat(*words, "--model", server.spec(), folder=folder))
    assert [theme["name"] == theme["rule_name"] for theme in told["themes"]] == [True, False, True]
    assert told["themes"][1]["name"] == "Fever and when to call"
    assert told["counts"]["failed"] == 1
    lines = [json.loads(line) for line in (folder / "themes" / "themes.jsonl").read_text().splitlines()]
    assert [line["naming"].get("failure", {}).get("kind") for line in lines] == ["unreadable", None, None]
    manifest = open_artefact(folder / "themes", "themes").manifest
    assert (set(manifest.prompts), "names" in manifest.models) == ({"theme-name"}, True)


def test_themes_by_number_and_weights(folder: Path) -> None:
    words = ("audit", "themes", "audit", "--encoder", "potion")
    done = hoofbeat(*words, "--themes", "1", "--weights", "low=0,medium=1,high=10", folder=folder)
    assert "Found 1 theme → themes" in done.stdout
    (row,) = rows_of(folder / "themes" / "themes.tsv")
    assert (row["pairs"], row["weight"], row["phrases"]) == ("9", "34.0", "5")
    for wrong, said in (
        (("--themes", "2", "--threshold", "0.5"), "can't be used together"),
        (("--weights", "low=1"), "each level of significance needs one weight"),
        (("--weights", "low=1,medium=x,high=3"), "'medium=x' is not a weight"),
        (("--label", "Odd"), "there is no label 'Odd'"),
    ):
        assert said in hoofbeat(*words, *wrong, folder=folder, code=2).stderr
    assert "has a topic" in hoofbeat(*words, "--label", "Consistent", folder=folder, code=1).stderr
