"""`hoofbeat review` as users run it: a study made, labelled, exported, read, applied; and served."""

from __future__ import annotations

import json
import re
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import hoofbeat as hb
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli import cli
from hoofbeat.cli.review import ReviewCommand
from hoofbeat.errors import HoofbeatError
from hoofbeat.recipes.cases.two_level_review import LEVEL_1, LEVEL_2
from hoofbeat.recipes.recipe import find_recipe
from hoofbeat.review.assignments import AssignmentPlan, assign_items, plan_of
from hoofbeat.review.review_records import Person, ReviewItem
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import open_artefact
from tests.audit.packet_audits import LABELS, RATED, an_audit, in_turn
from tests.cli.recorded import EIGHT, record, teaching_cases
from tests.cli.support import hoofbeat, json_of, start
from tests.review.labelled import label

Answer = Callable[[Person, ReviewItem], dict[str, Any]]


@pytest.fixture
def bench(folders: Path) -> Path:
    return folders / "bench"


def make(folder: Path, *words: str) -> str:
    """A study; its id."""
    done = json_of(hoofbeat("review", *words, "--no-serve", "--json", folder=folder))
    assert done["made"]
    return str(done["study"])


def work(folder: Path, study: str, answer: Answer, *, people: int = 2) -> None:
    """Let invented people label everything."""
    with ReviewStore.open(str(folder / "review.db")) as store:
        found = store.study(study)
        assert found is not None
        known = {person.name: person for person in store.people()}
        names = [f"Invented {number}" for number in range(people)]
        invited = [known.get(name) or store.invite(name, "reviewer", by="test")[0] for name in names]
        assign_items(store, found, invited, AssignmentPlan(per_item=0), by="test")
        for person in invited:
            for item in store.items(study):
                label(store, found, item, person, answer(person, item))


def test_the_verb_lists_what_stands_under_it() -> None:
    told = CliRunner().invoke(cli, ["review", "--help"]).output
    for name, what in ReviewCommand.under.names.items():
        assert f"review {name}" in told
        assert what in told
        assert (
            "Usage: hoofbeat review" in CliRunner().invoke(cli, ["review", name, "--help"], prog_name="hoofbeat").output
        )


def test_pairs_of_an_audit_there_and_back(tmp_path: Path) -> None:
    counts = {"Absent": 200, "Consistent": 80, "Complementary": 60, "Divergent": 40, "Contradictory": 12}
    an_audit(tmp_path / "audit", [*in_turn(**counts), ""])
    study = make(tmp_path, "audit", "--sample", "50", "--per-item", "2", "--seed", "3")
    wrong: set[str] = set()

    def says(person: Person, item: ReviewItem) -> dict[str, Any]:
        given = item.stratum
        if person.name == "Invented 1" and item.stratum == "Consistent":
            given = "Complementary"
            wrong.add(item.id)
        return {"label": given, **({"significance": "high"} if given in RATED else {})}

    work(tmp_path, study, says)
    told = json_of(hoofbeat("review", "status", "--json", folder=tmp_path))["studies"][0]
    assert told["to be settled"] == len(wrong) == 10
    field = told["agreement"][0]
    assert (field["items"], field["agree"]) == (50, 40)
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        found = store.study(study)
        assert found is not None
        assert plan_of(found) == AssignmentPlan(per_item=2, seed=3)
        judge, _ = store.invite("Invented adjudicator", "adjudicator", by="test")
        for number, item in enumerate(sorted(wrong)):
            store.decide(study, item, judge.id, values={"label": "Consistent"}, request=f"d-{number}")
    done = json_of(hoofbeat("review", "export", study, "-o", "labels.csv", "--json", folder=tmp_path))
    assert (done["format"], done["rows"], done["settled"], done["people"]) == ("pairs", 100, 10, 2)
    words = ("audit", "validate", "audit", "--labels", "labels.csv", "--json")
    alone = json_of(hoofbeat(*words, "-o", "v1", folder=tmp_path))
    assert alone["counts"]["reasons"] == {"no reference": 10}
    settled = json_of(hoofbeat(*words, "--adjudicated", "labels.adjudicated.csv", "-o", "v2", folder=tmp_path))
    assert settled["metrics"]["agreement"] == 1.0, "all that people say in the end is what the judge said"
    assert settled["metrics"]["annotators_kappa"] == pytest.approx(alone["metrics"]["annotators_kappa"])
    assert settled["counts"]["kept"] == 50
    assert set(LABELS) == set(counts)


def test_an_export_says_how_many_drafts_it_leaves_out(tmp_path: Path) -> None:
    an_audit(tmp_path / "audit", [*in_turn(Consistent=4), ""])
    study = make(tmp_path, "audit", "--sample", "3", "--seed", "3")
    work(tmp_path, study, lambda person, item: {"label": "Consistent"}, people=1)
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        (person,) = (each for each in store.people() if each.name == "Invented 0")
        for item in store.items(study)[1:]:  # touched again after they were done
            found = store.label(study, item.id, person.id)
            assert found is not None
            again = {"values": {"label": "Absent"}, "state": "draft", "seconds": 1, "base": found.version}
            store.save(study, item.id, person.id, request=f"again-{item.id}", **again)  # type: ignore[arg-type]
    told = hoofbeat("review", "export", study, "-o", "labels.csv", folder=tmp_path)
    assert "Exported 1 label of 1 person → labels.csv" in told.stdout
    assert "left out: 2 drafts, not saved as done" in told.stdout + told.stderr
    done = json_of(hoofbeat("review", "export", study, "-o", "other.csv", "--json", folder=tmp_path))
    assert (done["rows"], done["drafts left out"]) == (1, 2)


def test_a_recipe_reads_what_was_exported(tmp_path: Path) -> None:
    """The two-level check of clinbench: findings keep an item out, a revision lets it in, and the tally follows."""
    given = {"select": "", "stem_words": "60"}
    record(tmp_path, teaching_cases(tmp_path, *EIGHT), (find_recipe("clinbench"), given))
    (tmp_path / "hoofbeat.toml").write_text('[models.mine]\nspec = "replay:calls.jsonl"\n', encoding="utf-8")
    build = (
        "build",
        "clinbench",
        "cases",
        "--model",
        "mine",
        "--select",
        "",
        "--stem-words",
        "60",
        "--physicians",
        "0.2",
    )
    hoofbeat(*build, "-o", "bench", folder=tmp_path)
    before = Benchmark.open(tmp_path / "bench")
    target, other = before.questions[0], before.questions[1]
    wrong = next(option for option in target.options if option != target.answer)

    def first(_person: Person, item: ReviewItem) -> dict[str, Any]:
        values: dict[str, Any] = dict.fromkeys(LEVEL_1, "pass")
        if item.key["item"] == target.id:
            values |= {"options overlap": "finding", "what overlaps": "Two are one.", "drop option": [wrong]}
        if item.key["item"] == other.id:
            values |= {"missing information": "finding", "what is missing": "The age."}
        return values

    studies = [make(tmp_path, "bench", "--form", form) for form in ("two-level-1", "two-level-2")]
    work(tmp_path, studies[0], first, people=1)
    work(tmp_path, studies[1], lambda *_: dict.fromkeys(LEVEL_2, "pass"), people=1)
    hoofbeat("review", "export", *studies, "-o", "labels.jsonl", folder=tmp_path)
    hoofbeat(*build, "--reviews", "labels.jsonl", "-o", "built", folder=tmp_path)
    after = Benchmark.open(tmp_path / "built")
    ids = {question.id for question in before.questions}
    assert {question.id for question in after.questions} == ids - {other.id}
    revised = next(question for question in after.questions if question.id == target.id)
    assert wrong not in revised.options
    tally: Any = after.artefact.manifest.metrics["two-level check"]
    assert tally["level 1"] == {"findings": 1, "passed": len(ids) - 1}
    assert tally["verdict"] in ("passed", "not passed")
    applied = ("review", "apply", "bench", "--labels", "labels.jsonl", "-o", "applied")
    hoofbeat(*applied, folder=tmp_path)
    new = {question.id: question for question in Benchmark.open(tmp_path / "applied").questions}
    assert set(new) == ids - {other.id}, "applied, the same labels come to the same questions as built anew"
    assert set(new[target.id].options) == set(revised.options)


def test_judge_takes_in_what_was_exported(tmp_path: Path, folders: Path) -> None:
    study = make(tmp_path, str(folders / "judged"), "--form", "equivalence", "--sample", "12")
    work(tmp_path, study, lambda person, _: {"label": "equivalent" if person.name.endswith("0") else "mismatch"})
    hoofbeat("review", "export", study, "-o", "labels.jsonl", folder=tmp_path)
    words = ("judge", str(folders / "judged"), "--human", "labels.jsonl", "-o", "with-people", "--json")
    done = json_of(hoofbeat(*words, folder=tmp_path))
    assert done["kind"] == "judgments"
    lines = (tmp_path / "with-people" / "judgments.jsonl").read_text(encoding="utf-8").splitlines()
    mine = [json.loads(line) for line in lines if '"human:Invented' in line]
    assert len(mine) == 24
    assert {(each["judge"], each["label"]) for each in mine} == {
        ("human:Invented 0", "equivalent"),
        ("human:Invented 1", "mismatch"),
    }


def test_decisions_make_a_new_version(bench: Path, tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "review.db"))
    study = make(tmp_path, str(bench), "--form", "likert", *db)
    bad: list[str] = []

    def rates(_person: Person, item: ReviewItem) -> dict[str, Any]:
        low = item.place == 1
        if low and item.key["item"] not in bad:
            bad.append(str(item.key["item"]))
        return {"medical alignment": "2" if low else "5", "need for expertise": "4"}

    work(tmp_path, study, rates)
    words = ("review", "apply", str(bench), *db, "--study", study)
    dry = hoofbeat(*words, "--dry-run", folder=tmp_path)
    assert f"| {bad[0]} | rated below 4 on medical alignment | ratings 2, 2 |" in dry.stdout
    assert not (tmp_path / "new").exists()
    done = json_of(hoofbeat(*words, "-o", "new", "--json", folder=tmp_path))
    assert (done["version"], done["dropped"], done["changed"]) == (2, 1, 0)
    made = open_artefact(tmp_path / "new", "benchmark")
    assert made.verify() == []
    assert made.manifest.inputs[0] == open_artefact(bench).reference()
    applied: Any = made.manifest.settings["applied"]
    assert (applied["study"], applied["people"]) == (study, 2)
    assert "--db" not in made.manifest.command, "the address of a database may hold a password"
    assert "review.db" not in (tmp_path / "new" / "manifest.json").read_text(encoding="utf-8")
    new, newer, labels = (str(tmp_path / name) for name in ("new", "newer", "labels.csv"))
    assert "another version of the benchmark" in refused("apply", new, *db, "--study", study, "-o", newer)
    hoofbeat("review", "export", study, *db, "-o", labels, folder=tmp_path)
    assert "another version of the benchmark" in refused("apply", new, "--labels", labels, "-o", newer)
    assert "Not overwritten" in refused("apply", str(bench), "--labels", labels, "-o", str(bench))
    again = hb.create_study(bench, database=db[1], form="likert")
    assert (again.study.id, again.made, again.same_plan) == (study, False, True)
    written = hb.export_labels(study, tmp_path / "again.csv", database=db[1])
    assert [path.name for path in written] == ["again.csv", "again.study.json"]
    assert written[0].read_bytes() == (tmp_path / "labels.csv").read_bytes()
    by_python = hb.apply_reviews(bench, tmp_path / "by-python", studies=study, database=db[1])
    assert "review.db" not in by_python.manifest.command[0]
    assert by_python.manifest.files == made.manifest.files


def refused(*words: str) -> str:
    """What is said of a command that is refused, in this process."""
    with pytest.raises(HoofbeatError) as told:
        cli.main(args=["review", *words], prog_name="hoofbeat", standalone_mode=False)
    return told.value.what


def test_what_is_wrong_is_said(bench: Path, tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "review.db"))
    assert "several kinds of review wait here" in refused(str(bench), *db, "--no-serve")
    assert "there is no study 'x'" in refused("export", "x", *db)
    assert "there is nothing to do" in refused(*db, "--no-serve")
    assert "no labels to apply" in refused("apply", str(bench), *db, "-o", "new")
    assert "no folder for the new benchmark" in refused("apply", str(bench), *db, "--study", "x")
    study = make(tmp_path, str(bench), "--form", "leak")
    assert "nobody has finished a label yet" in refused("export", study, *db, "-o", str(tmp_path / "labels.csv"))
    assert "must end in" in refused("export", study, *db, "-o", str(tmp_path / "labels.txt"))
    assert "are for exams" in refused(str(bench), *db, "--form", "leak", "--minutes", "5", "--no-serve")
    assert "is not a list of stages" in refused(str(bench), *db, "--exam", "--stages", "a,b", "--no-serve")
    again = hoofbeat("review", str(bench), "--form", "leak", "--per-item", "3", "--no-serve", folder=tmp_path)
    assert "exists already and keeps its plan" in again.stderr
    assert "The study exists already" in again.stdout


def test_a_name_is_invited_once(tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "review.db"))
    hoofbeat("review", "invite", "Dr. A Invented", *db, folder=tmp_path)
    told = hoofbeat("review", "invite", "dr. a  invented", *db, folder=tmp_path, code=2).stderr
    assert "'Dr. A Invented' was invited before (reviewer, p-" in told
    assert "hoofbeat review invite 'Dr. A Invented' --again" in told
    assert "(reviewer" in hoofbeat("review", "invite", "Dr. A Invented", "--again", *db, folder=tmp_path).stdout


def test_assigning_needs_reviewers(bench: Path, tmp_path: Path) -> None:
    words = (str(bench), "--form", "likert", "--db", str(tmp_path / "review.db"), "--no-serve")
    told = hoofbeat("review", *words, "--per-item", "0", "--assign", folder=tmp_path, code=2).stderr
    assert "no reviewer is invited yet" in told
    assert "hoofbeat review invite NAME" in told
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        assert store.studies() == []
    hoofbeat("review", "invite", "Dr. A Invented", folder=tmp_path)
    made = hoofbeat("review", *words, "--per-item", "2", "--assign", folder=tmp_path)
    assert "6 of 6 items got fewer reviewers than" in made.stderr
    assert "nothing to overlap" in refused(*words, "--per-item", "0", "--overlap", "0.5")


def test_a_form_says_what_it_needs(tmp_path: Path, folders: Path) -> None:
    told = hoofbeat("review", str(folders / "run"), "--form", "likert", "--no-serve", folder=tmp_path, code=2).stderr
    assert "it needs a benchmark by the recipe ogcare, or imported questions with answers" in told
    assert "equivalence" in told


def test_an_exam_is_a_study_too(bench: Path, tmp_path: Path) -> None:
    words = ("--exam", "--minutes", "10", "--stages", "20,60,100", "--questions", "4", "--title", "Invented exam")
    study = make(tmp_path, str(bench), *words)
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        found = store.study(study)
        assert found is not None
        assert (found.form, found.title) == ("exam", "Invented exam")
        rules = found.settings["exam"]
        assert (rules["minutes"], tuple(rules["stages"]), rules["per_person"]) == (10.0, (20, 60, 100), 4)
    hoofbeat("review", "invite", "Invented sitter", folder=tmp_path)
    again = json_of(hoofbeat("review", str(bench), *words, "--assign", "--no-serve", "--json", folder=tmp_path))
    assert (again["made"], again["assigned"]) == (False, 4)
    told = hoofbeat("review", "export", study, "-o", "labels.csv", folder=tmp_path, code=2).stderr
    assert "is exported as a run" in told


def test_a_link_that_could_not_be_shown_is_no_link(bench: Path, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        db = ("--db", str(tmp_path / "review.db"))
        assert f"port {port} is in use" in refused(str(bench), "--form", "likert", *db, "--port", port)
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        assert not any(person.active for person in store.people()), "so the next start makes another"


def test_it_is_served_and_the_admins_link_is_shown_once(bench: Path, tmp_path: Path) -> None:
    words = ["review", str(bench), "--form", "likert", "--port", "0", "--json"]
    for first in (True, False):
        process = start(words, tmp_path)
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["made"] is first
            assert told["items"] == 6
            assert bool(told["come_in"]) is first
            with urllib.request.urlopen(told["come_in"] or f"{told['address']}/", timeout=120) as answer:
                page = answer.read().decode()
            assert "Hoofbeat" in page
            if first:
                assert re.fullmatch(r"http://127\.0\.0\.1:\d+/join/[\w-]{40,}", told["come_in"])
                assert "Sign in" in page
        finally:
            process.terminate()
            process.communicate(timeout=120)


@pytest.mark.parametrize(("words", "told"), [(["bench", "--form", "nosuch"], "nosuch"), (["cases"], "corpus")])
def test_what_can_t_be_reviewed_leaves_no_database(folders: Path, tmp_path: Path, words: list[str], told: str) -> None:
    database = tmp_path / "review.db"
    done = CliRunner().invoke(cli, ["review", str(folders / words[0]), *words[1:], "--db", str(database), "--no-serve"])
    assert isinstance(done.exception, HoofbeatError)
    assert told in str(done.exception)
    assert not database.exists()
