"""`hoofbeat compare` of answers, as a user runs it."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hoofbeat.store import open_artefact
from tests.cli.support import hoofbeat, json_of
from tests.reports import examples
from tests.reports.answer_runs import chosen, judged_run, run_of

BEFORE = "rrrrrrrrrrwwwwwwwwwwrrrrrrrrrruuuuffwwww"
AFTER = "rrrrrrrrrrrrrrrrrrwwrrrrrrrrrrrrrrrrrrww"


def test_before_and_after(tmp_path: Path) -> None:
    run_of(tmp_path / "before", chosen(BEFORE))
    run_of(tmp_path / "after", chosen(AFTER))
    done = hoofbeat("compare", "before", "after", "--json", "--page", "page.html", "-o", "out", folder=tmp_path)
    found = json_of(done)
    assert found["kind"] == "comparison"
    [(title, row)] = found["metrics"]["pairs"].items()
    assert title == "closed, letter: after against before"
    assert row["difference"] == (AFTER.count("r") - BEFORE.count("r")) / 40
    assert row["flips"]["wrong → right"] == 10
    assert row["unscored"] == 6
    assert row["test"] == "McNemar, exact"
    assert found["metrics"]["flipped"] == sum(row["flips"].values())
    made = open_artefact(tmp_path / "out", "comparison")
    assert made.verify() == []
    assert made.manifest.seeds == {"bootstrap and randomisation": 0}
    for name in ("pairs.tsv", "systems.tsv", "flips.tsv", "flipped.jsonl", "report.html", "report.md"):
        assert made.has(name)
    assert (tmp_path / "page.html").read_bytes() == made.file("report.html").read_bytes()


def test_heading_and_value_of_a_difference_agree(tmp_path: Path) -> None:
    run_of(tmp_path / "before", chosen(BEFORE))
    run_of(tmp_path / "after", chosen(AFTER))
    told = hoofbeat("compare", "before", "after", "-o", "out", folder=tmp_path).stderr
    share = (AFTER.count("r") - BEFORE.count("r")) / 40
    assert "second − first, points" in told
    assert f"+{100 * share:.1f}" in told
    for name in ("pairs.tsv", "tables/pairs.csv"):
        with (tmp_path / "out" / name).open(encoding="utf-8", newline="") as lines:
            [row] = csv.DictReader(lines, delimiter="\t" if name.endswith("tsv") else ",")
        assert float(row["second − first, fraction"]) == pytest.approx(share)
        assert float(row["second − first, fraction"]) == pytest.approx(
            float(row["accuracy, second"]) - float(row["accuracy, first"])
        )
        assert not [title for title in row if "points" in title]


def test_what_is_not_the_same_measurement_is_said_at_the_terminal(tmp_path: Path) -> None:
    run_of(tmp_path / "a", chosen(BEFORE))
    run_of(tmp_path / "b", chosen(AFTER, protocol="likelihood/token"))
    told = hoofbeat("compare", "a", "b", "-o", "out", folder=tmp_path).stderr
    assert "[!] NOT MEASURED IN THE SAME WAY in 1 of 1 pair: likelihood/token against letter" in told


def test_mistakes_are_said_readably(tmp_path: Path) -> None:
    run_of(tmp_path / "run", chosen(BEFORE))
    judged_run(tmp_path / "judged", AFTER)
    examples.rankings(tmp_path / "ranked", "bm25", 0.5)
    mixed = hoofbeat("compare", "run", "ranked", folder=tmp_path, code=2)
    assert "rankings and answers can't be compared" in mixed.stderr
    assert "ranked (rankings)" in mixed.stderr
    alone = hoofbeat("compare", "run", "--system", "a", "--system", "b", folder=tmp_path, code=2).stderr
    assert "needs two folders" in alone
    assert "hoofbeat report FOLDER compares the systems inside one folder" in alone
    wrong = hoofbeat("compare", "run", "judged", "--condition", "closed", folder=tmp_path, code=2)
    assert "choose with --system" in wrong.stderr
    unknown = hoofbeat("compare", "run", "judged", "--baseline", "nobody", folder=tmp_path, code=2)
    assert "m · closed, letter" in unknown.stderr
    corpus = hoofbeat("compare", "run", str(examples.corpus(tmp_path / "corpus").path), folder=tmp_path, code=1)
    assert "but rankings or judgments or run is needed here" in corpus.stderr
    assert not (tmp_path / "comparison").exists()
    taken = hoofbeat("compare", "run", "judged", "-o", "ranked", folder=tmp_path, code=1)
    assert "already holds other results (rankings)" in taken.stderr


def test_what_nobody_scored_has_no_difference(tmp_path: Path) -> None:
    run_of(tmp_path / "before", chosen(BEFORE))
    run_of(tmp_path / "lost", chosen("u" * 38 + "ff"))
    told = hoofbeat("compare", "before", "lost", "-o", "out", folder=tmp_path, code=2).stderr
    assert "one of the two systems has no answer with a score, so there is no difference to give" in told
    assert "at: lost" in told
    assert "p <" not in told
    assert not (tmp_path / "out").exists()


def test_one_system_that_nobody_scored_is_left_out_with_a_sentence(tmp_path: Path) -> None:
    run_of(tmp_path / "before", [*chosen(BEFORE), *chosen(BEFORE, condition="options")])
    run_of(tmp_path / "after", [*chosen(AFTER), *chosen("u" * 40, condition="options")])
    done = hoofbeat("compare", "before", "after", "-o", "out", folder=tmp_path)
    sentence = "No answer of after: options, letter could be scored, so no difference is given for it."
    assert f"[!] {sentence}" in done.stderr
    made = open_artefact(tmp_path / "out", "comparison")
    assert list(made.manifest.metrics["pairs"]) == ["closed, letter: after against before"]  # type: ignore[call-overload]
    assert sentence in made.file("report.md").read_text(encoding="utf-8")
