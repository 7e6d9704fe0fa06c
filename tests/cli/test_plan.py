"""`hoofbeat plan`: its JSON, its table, its corpus, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.corpus import import_corpus
from tests.cli.support import hoofbeat, json_of

MODEL = ("--model", "http://127.0.0.1:9/v1#m")


def test_json_and_table_say_the_same(tmp_path: Path) -> None:
    words = ("plan", "--articles", "6000000", "--questions", "10000", "--sources", "500", "--positions", "6", *MODEL)
    found = json_of(hoofbeat(*words, "--seconds", "4", "--json", folder=tmp_path))
    assert found["nodes"] == [1, 8, 64]
    assert {"import", "near-duplicates", "encoding", "audit: pairs"} <= {stage["name"] for stage in found["stages"]}
    assert found["hours"]["64"] < found["hours"]["8"] < found["hours"]["1"]
    assert found["calls"] == sum(stage["amount"] for stage in found["stages"] if stage["unit"] == "calls")
    shown = hoofbeat(*words, "--seconds", "4", folder=tmp_path).stderr
    assert f"{found['calls']:,} calls" in shown
    assert "price unknown" in shown
    assert all(each in shown for each in found["assumptions"])


def test_prices_limits_and_servers_come_from_the_configuration(tmp_path: Path) -> None:
    (tmp_path / "hoofbeat.toml").write_text(
        '[models.judge]\nname = "m"\nendpoints = ["http://127.0.0.1:9/v1", "http://127.0.0.1:8/v1"]\n'
        "price_in = 1.0\nprice_out = 2.0\nmax_in_flight = 1000\nreasoning = 0\n"
    )
    words = ("plan", "--questions", "100", "--model", "judge", "--seconds", "2", "--json")
    found = json_of(hoofbeat(*words, folder=tmp_path))
    assert found["money"] == pytest.approx((found["tokens_in"] + 2 * found["tokens_out"]) / 1e6)
    assert any("at most 1000 together" in each for each in found["assumptions"])
    fixed = json_of(hoofbeat(*words, "--servers", "2", folder=tmp_path))
    assert fixed["hours"]["8"] == fixed["hours"]["64"] > found["hours"]["64"]


def test_a_model_that_is_not_on_the_nodes_is_one_on_any_number_of_them(tmp_path: Path) -> None:
    for model in ("embedded", "openai:gpt-4o"):
        found = json_of(hoofbeat("plan", "--questions", "9999", "--model", model, "--json", folder=tmp_path))
        assert found["hours"]["1"] == found["hours"]["64"]
        assert any(each.startswith("one model server with") for each in found["assumptions"])


def test_a_corpus_is_measured_and_a_probe_scales(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"d{number}.md").write_text(f"# Case {number}\n\n" + f"finding {number} of a patient. " * 100)
    import_corpus(sorted(tmp_path.glob("*.md")), tmp_path / "corpus")
    found = json_of(hoofbeat("plan", "--corpus", "corpus", "--with", "bm25", "--probe", "--json", folder=tmp_path))
    assert [stage["amount"] for stage in found["stages"]][:3] == [3, 3, 3]
    assert any("(probed)" in each for each in found["assumptions"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "there is nothing to plan"),
        (("--articles", "5", "--corpus", "x"), "can't be used together"),
        (("--articles", "5", "--nodes", "1,many"), "not a list of cluster sizes"),
        (("--articles", "0"), "--articles"),
        (("--articles", "5", "--with", "bm26"), "bm26"),
        (("--articles", "1" + 30 * "0"), "a number is above"),
        (("--articles", "5", "--nodes", "1,1000000"), "not a list of cluster sizes"),
        (("--corpus", "x", "--characters", "9"), "--characters and --corpus can't be used together"),
        (("--articles", "5", "--characters", "9", "--passages", "46"), "46 passages can't be cut from 45 characters"),
        (("--questions", "5", "--sources", "1"), "one is too few"),
        (("--articles", "5", "--sources", "4"), "give --questions"),
        (("--questions", "5", "--positions", "2"), "0 sources can't have 2 positions"),
        (("--questions", "5", "--sources", "3", "--positions", "4"), "3 sources can't have 4 positions"),
        (("--questions", "5", "--seconds", "nan"), "--seconds is not a number"),
        (("--questions", "5", "--seconds", "inf"), "--seconds is not a number"),
        (("--questions", "5", "--seconds", "0"), "--seconds"),
        (("--corpus", "nowhere"), "nowhere"),
    ],
)
def test_wrong_input_is_said(words: tuple[str, ...], told: str, tmp_path: Path) -> None:
    code = 1 if "nowhere" in words else 2
    assert told in hoofbeat("plan", *words, folder=tmp_path, code=code).stderr
