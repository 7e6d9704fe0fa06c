"""Labels out: what is written is read by the very readers that take labels, and figures come out as planted."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit
from hoofbeat.audit.validation.people_validation import human_labels
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.judging.humans import design_of, human_judgments
from hoofbeat.judging.humans import read_labels as read_sheet
from hoofbeat.judging.judgments_folder import AnswerFolder
from hoofbeat.recipes.review_tasks import known_labels, read_labels
from hoofbeat.reports.sections.errors_section import (
    PHYSICIAN,
    SETTLED,
    errors_chapter,
    known_answers,
    read_error_labels,
)
from hoofbeat.reports.tables import Table
from hoofbeat.review.assignments import AssignmentPlan, assign_items
from hoofbeat.review.forms import load_form
from hoofbeat.review.label_export import (
    ADJUDICATED,
    KEPT_AS,
    as_csv,
    export_labels,
    join_exports,
    origin_of,
    write_export,
)
from hoofbeat.review.review_records import Person, ReviewItem
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import open_artefact
from tests.review.labelled import Team, rated, team_of
from tests.review.review_studies import ANSWERS, study_of

CRITERIA_FORMS = (
    "likert", "leak", "distractors", "three-criteria", "three-criteria-expert", "two-level-1", "two-level-2",
    "question", "duplicate",
)  # fmt: skip
NOTES = {"three-criteria": "A step is missing.", "two-level-1": "B is A.", "two-level-2": "The dose."}
SHEETS = ("equivalence", "failure-mode", "error-type")


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with ReviewStore.open(str(tmp_path / "review.db")) as opened:
        yield opened


def fill(team: Team, form: str) -> None:
    rated(team, lambda *_: ANSWERS[form])


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("form", CRITERIA_FORMS)
def test_recipes_read_their_labels(store: ReviewStore, folders: Path, tmp_path: Path, form: str, suffix: str) -> None:
    team = team_of(store, folders, form)
    fill(team, form)
    path = tmp_path / f"labels{suffix}"
    write_export(export_labels(store, team.study), path)
    write_export(export_labels(store, team.study), path)  # an earlier export is replaced
    mine = path.with_name("mine.jsonl")
    mine.write_text("made by hand", "utf-8")
    with pytest.raises(OutputError, match="not an earlier export of labels"):
        write_export(export_labels(store, team.study), mine)
    assert mine.read_text("utf-8") == "made by hand"
    asked = [field.name for field in load_form(form).fields if field.criterion]
    labels = known_labels(str(path), [*asked, "drop option", "add to stem"])
    wanted = {
        (str(item.key["item"]), name, ANSWERS[form][name], person.name)
        for item in team.items
        for person in team.reviewers()
        for name in asked
        if not item.criteria or name in item.criteria
    }
    found = {(label.item, label.criterion, label.value, label.reviewer) for label in labels}
    assert found == wanted
    notes = {label.note for label in labels if label.value in ("flag", "finding")}
    assert notes == ({NOTES[form]} if form in NOTES else set())
    origin = origin_of(path)
    assert origin is not None
    assert (origin.study, origin.source_sha256) == (team.study.id, team.study.source_sha256)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
@pytest.mark.parametrize("form", SHEETS)
def test_the_judge_reads_its_labels(store: ReviewStore, folders: Path, tmp_path: Path, form: str, suffix: str) -> None:
    team = team_of(store, folders, form, sample=10)
    fill(team, form)
    path = tmp_path / f"labels{suffix}"
    written = write_export(export_labels(store, team.study), path)
    labels, empty = read_sheet(path)
    assert empty == 0
    found = design_of(path, (label.item for label in labels))
    assert found is not None
    assert found[0] == tmp_path / "labels.design.json"
    assert found[0] in written
    assert (found[1].seed, found[1].drawn, found[1].sheet) == (0, len(team.items), path.name)
    source = folders / {"equivalence": "run"}.get(form, "judged-2")
    judgments = human_judgments(AnswerFolder.open(source), {path: labels}, form)
    assert len(judgments) == 2 * len(team.items)
    assert {each.label for each in judgments} == {ANSWERS[form]["label"]}
    assert {each.judge for each in judgments} == {f"human:{person.name}" for person in team.reviewers()}
    assert {each.secondary for each in judgments} == {ANSWERS[form].get("second label", "")}
    answers = {(item.key["question"], item.key["model"], item.key["condition"]) for item in team.items}
    assert {(each.question, each.model, each.condition) for each in judgments} == answers


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_the_report_reads_what_physicians_say_of_errors(
    store: ReviewStore, folders: Path, tmp_path: Path, suffix: str
) -> None:
    team = team_of(store, folders, "error-analysis", sample=6)
    why = "=1+1 drew the eye,\nand the rest was overlooked."  # a spreadsheet would run it

    def said(person: Person, item: ReviewItem, _rng: random.Random) -> dict[str, str]:
        first = person == team.reviewers()[0]
        return {"why": why, KEPT_AS[PHYSICIAN]: "yes" if first else "no", "error": "omission"}

    rated(team, said)
    adjudicator = next(person for person in team.people if person.role == "adjudicator")
    values = {"why": "Both.", KEPT_AS[PHYSICIAN]: "yes"}
    store.decide(team.study.id, team.items[0].id, adjudicator.id, values=values, note="Read again.", request="d1")
    path = tmp_path / f"errors{suffix}"
    written = write_export(export_labels(store, team.study), path)
    assert PHYSICIAN in path.read_text("utf-8")
    named = [f"errors{suffix}", f"errors.adjudicated{suffix}", "errors.design.json", "errors.study.json"]
    assert [each.name for each in written] == named
    judged = open_artefact(folders / "judged")
    labels = read_error_labels(written[:2], known_answers([judged]))
    assert {label.why for label in labels} == {why, "Both."}
    assert {label.annotator for label in labels} == {*(each.name for each in team.reviewers()), SETTLED}
    assert {(*label.answer,) for label in labels} == {
        tuple(item.key[name] for name in ("question", "model", "condition", "sample")) for item in team.items
    }
    part = errors_chapter(written[:2], [judged])
    assert part is not None
    (physicians,) = (block for block in part.blocks if getattr(block, "name", "") == "errors-physicians")
    assert isinstance(physicians, Table)
    assert (sum(row[3] for row in physicians.rows), sum(row[4] for row in physicians.rows)) == (5, 1)  # type: ignore[misc]


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_audit_validate_reads_its_labels(store: ReviewStore, folders: Path, tmp_path: Path, suffix: str) -> None:
    team = team_of(store, folders, "pair", sample=20)

    def judged(_person: Person, item: ReviewItem, _rng: random.Random) -> dict[str, str]:
        rated_too = {"significance": "low"} if item.stratum in ("Divergent", "Contradictory") else {}
        return {"label": item.stratum, **rated_too}

    rated(team, judged)
    other = next(item for item in team.items if item.stratum == "Consistent")
    adjudicator = next(person for person in team.people if person.role == "adjudicator")
    store.decide(
        team.study.id, other.id, adjudicator.id, values={"label": "Complementary"}, note="More is said.", request="d1"
    )
    path = tmp_path / f"labels{suffix}"
    written = write_export(export_labels(store, team.study), path)
    assert [each.name for each in written] == [path.name, f"labels.adjudicated{suffix}", "labels.study.json"]
    read = human_labels(Audit.open(folders / "audit"), [path], adjudicated=written[1])
    assert set(read.annotators) == {person.name for person in team.reviewers()}
    assert len(read.pairs) == len(team.items)
    for pair in read.pairs:
        given = read.labels[pair.key]
        assert {each.label for each in given.values()} == {pair.label}
        assert len(given) == 2
    [(key, settled)] = read.adjudicated.items()
    assert read.codes[key] == other.known_code
    assert (settled.label, settled.note) == ("Complementary", "More is said.")
    assert read.notes == ()


def test_labels_of_a_study_made_before_codes_were_of_one_study_are_read(
    store: ReviewStore, folders: Path, tmp_path: Path
) -> None:
    """Such a store has the code that readers know as the item's id, and nothing more in its key."""
    study, items = study_of(folders, "pair", sample=6)
    earlier = [
        replace(item, id=item.known_code, key={name: item.key[name] for name in ("question", "a", "b")})
        for item in items
    ]
    store.create_study(study, earlier)
    person, _ = store.invite("Dr A", "reviewer", by="test")
    assign_items(store, study, [person], AssignmentPlan(per_item=1), by="test")
    for item in earlier:
        values = {"label": "Consistent"}
        store.save(study.id, item.id, person.id, values=values, state="done", seconds=1, base=0, request=item.id)
    path = tmp_path / "labels.jsonl"
    write_export(export_labels(store, study), path)
    read = human_labels(Audit.open(folders / "audit"), [path])
    assert {pair.key for pair in read.pairs} == {(i.key["question"], i.key["a"], i.key["b"]) for i in items}


def test_a_decision_takes_the_place_of_what_reviewers_said(store: ReviewStore, folders: Path, tmp_path: Path) -> None:
    team = team_of(store, folders, "leak")
    anna, bert = team.reviewers()
    first, second = team.items[:2]
    yes = dict.fromkeys(ANSWERS["leak"], "yes")
    team.say(anna, first, yes)
    team.say(bert, first, {**yes, "diagnosis is not mentioned": "no", "note": "Named in line 3."})
    team.say(anna, second, yes)
    settling = next(person for person in team.people if person.role == "adjudicator")
    store.decide(
        team.study.id, first.id, settling.id, values={"diagnosis is not mentioned": "yes"}, note="No.", request="d1"
    )
    rows = export_labels(store, team.study).rows
    about = [
        row for row in rows if row["item"] == first.key["item"] and row["criterion"] == "diagnosis is not mentioned"
    ]
    assert about == [
        {
            "item": first.key["item"],
            "criterion": "diagnosis is not mentioned",
            "value": "yes",
            "reviewer": ADJUDICATED,
            "note": "No.",
        }
    ]
    assert sum(row["item"] == first.key["item"] for row in rows) == 5, "the other criteria stay everybody's own"
    own = export_labels(store, team.study, each=True).rows
    assert sum(row["value"] == "no" for row in own) == 1
    assert {row["reviewer"] for row in own} == {anna.name, bert.name}


def test_an_expert_speaks_beside_the_flag(store: ReviewStore, folders: Path, tmp_path: Path) -> None:
    team = team_of(store, folders, "three-criteria", roles=("reviewer", "adjudicator"))
    fill(team, "three-criteria")
    expert = team.people[1]
    item = team.items[0]
    store.decide(team.study.id, item.id, expert.id, values={"reasoning": "keep"}, note="It follows.", request="d1")
    path = tmp_path / "labels.jsonl"
    write_export(export_labels(store, team.study), path)
    mine = [label for label in read_labels(path) if label.item == item.key["item"] and label.criterion == "reasoning"]
    assert [(label.value, label.reviewer) for label in mine] == [("flag", team.people[0].name), ("keep", ADJUDICATED)]


def test_people_of_one_name_are_told_apart_and_can_be_blinded(store: ReviewStore, folders: Path) -> None:
    team = team_of(store, folders, "leak", roles=())
    twins = [store.invite("Sam Invented", "reviewer", by="test")[0] for _ in range(2)]
    team.people = twins
    assign_items(store, team.study, twins, AssignmentPlan(per_item=0), by="test")
    fill(team, "leak")
    names = {row["reviewer"] for row in export_labels(store, team.study).rows}
    assert names == {f"Sam Invented ({person.id})" for person in twins}
    blind = {row["reviewer"] for row in export_labels(store, team.study, blind=True).rows}
    assert blind == {"Reviewer 1", "Reviewer 2"}


def test_hostile_words_stay_words(store: ReviewStore, folders: Path, tmp_path: Path) -> None:
    team = team_of(store, folders, "leak", roles=("reviewer",))
    evil = '=HYPERLINK("http://x.invalid","y")\nsecond line, with "quotes"'
    yes = dict.fromkeys(ANSWERS["leak"], "yes")
    team.say(team.people[0], team.items[0], {**yes, "note": evil})
    export = export_labels(store, team.study)
    for suffix in (".jsonl", ".csv"):
        write_export(export, tmp_path / f"labels{suffix}")
        assert {label.note for label in read_labels(tmp_path / f"labels{suffix}")} == {evil}
    for text in ((tmp_path / "labels.csv").read_text(encoding="utf-8"), as_csv(export)):
        assert "'=HYPERLINK" in text
        assert "\n=HYPERLINK" not in text
        assert ",=HYPERLINK" not in text


def test_a_value_that_looks_like_a_formula_comes_back_as_it_was(
    tmp_path: Path, store: ReviewStore, folders: Path
) -> None:
    team = team_of(store, folders, "leak", roles=("reviewer",))
    fill(team, "leak")
    export = export_labels(store, team.study)
    changed = [{**row, "value": "-1 antitrypsin deficiency"} for row in export.rows]
    hostile = msgspec.structs.replace(export, rows=changed)
    for suffix in (".jsonl", ".csv"):
        write_export(hostile, tmp_path / f"labels{suffix}")
        assert {label.value for label in read_labels(tmp_path / f"labels{suffix}")} == {"-1 antitrypsin deficiency"}
    assert ",'-1 antitrypsin" in (tmp_path / "labels.csv").read_text(encoding="utf-8")
    with pytest.raises(UsageError):
        write_export(export, tmp_path / "labels.txt")


def test_studies_of_one_benchmark_go_into_one_file(store: ReviewStore, folders: Path, tmp_path: Path) -> None:
    first = team_of(store, folders, "two-level-1", roles=("reviewer",))
    second = team_of(store, folders, "two-level-2", roles=("reviewer",))
    fill(first, "two-level-1")
    fill(second, "two-level-2")
    both = join_exports([export_labels(store, team.study) for team in (first, second)])
    write_export(both, tmp_path / "labels.jsonl")
    assert {label.criterion for label in read_labels(tmp_path / "labels.jsonl")} >= {"options overlap", "clarity"}
    beside = json.loads((tmp_path / "labels.study.json").read_text(encoding="utf-8"))
    assert beside["people"] == 2
    assert beside["form"] == "two-level-1 + two-level-2"
    other = team_of(store, folders, "pair", roles=("reviewer",), sample=5)
    with pytest.raises(UsageError, match="not about the same folder"):
        join_exports([export_labels(store, first.study), export_labels(store, other.study)])
