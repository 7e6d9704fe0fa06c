"""Decisions carried out on a benchmark: what goes goes for its reason, what changes is told, and the old one stays."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.errors import InputError
from hoofbeat.recipes.recipe_items import RejectedItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask
from hoofbeat.records import AcceptedAnswer, Answer, Judgment, Passage
from hoofbeat.review.apply_reviews import (
    STEP,
    Edit,
    QuestionDifference,
    ReviewOutcome,
    VerdictRules,
    apply_labels,
    by_item,
    describe_differences,
    diff_markdown,
    labels_to_apply,
    review_verdict,
    rules_of,
    version_of,
    write_applied,
)
from hoofbeat.review.label_export import Origin, export_labels, origin_path, write_export
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.artefact import TRUST_CHANGED
from hoofbeat.store.tables import read_jsonl, read_tsv, write_csv, write_jsonl
from tests.review.labelled import team_of

CASE = "m-hbt-case-01"


def said(item: str, criterion: str, value: str, reviewer: str = "R1", note: str = "") -> ReviewLabel:
    return ReviewLabel(item=item, criterion=criterion, value=value, reviewer=reviewer, note=note)


@pytest.fixture
def bench(folders: Path) -> Artefact:
    return open_artefact(folders / "bench")


@pytest.fixture
def sentence(folders: Path) -> str:
    """A sentence of the case's source that its stem does not have and that does not name the diagnosis."""
    document = Corpus.open(folders / "cases").get("hbt-case-01")
    context = next(q.context for q in Benchmark.open(folders / "bench").questions if q.id == CASE)
    parts = [part + "." for line in document.text.splitlines() for part in line.split(". ")[1:-1] if len(part) > 60]
    fit = [part for part in parts if part not in context and "thrombo" not in part.lower() and "TTP" not in part]
    return fit[0]


def reasons(applied: ReviewOutcome) -> dict[str, str]:
    return {each.item: each.reason for each in applied.dropped}


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ([("medical alignment", "4"), ("medical alignment", "3")], "rated below 4 on medical alignment"),
        ([("medical alignment", "4"), ("medical alignment", "4"), ("need for expertise", "5")], ""),
        ([("medical alignment", "3"), ("medical alignment", "5")], ""),
        ([("diagnosis is not mentioned", "yes"), ("diagnosis is not mentioned", "no")],
         "a reviewer says no: diagnosis is not mentioned"),
        ([("no distractor is the diagnosis", "yes")], ""),
        ([("query", "flag"), ("query", "exclude")], "an expert excluded it in review"),
        ([("query", "flag"), ("query", "keep")], ""),
        ([("reasoning", "flag"), ("reasoning", "exclude")], ""),
        ([("relevant", "no"), ("relevant", "no"), ("relevant", "yes")], "reviewers: not relevant"),
        ([("relevant", "no"), ("relevant", "yes")], ""),
        ([("clarity", "finding")], "a reviewer's finding: clarity"),
        ([("clarity", "pass"), ("missing information", "pass")], ""),
        ([("options overlap", "finding"), ("drop option", "A")], ""),
        ([("missing information", "finding"), ("drop option", "A")], "a reviewer's finding: missing information"),
        ([("same", "no")], ""),
    ],
)  # fmt: skip
def test_the_rules_are_those_of_the_recipes(labels: list[tuple[str, str]], reason: str) -> None:
    rows = [said("i", criterion, value, f"R{n}") for n, (criterion, value) in enumerate(labels)]
    assert review_verdict(by_item(rows)["i"], VerdictRules()).reason == reason


def test_the_last_word_of_a_reviewer_counts_for_findings() -> None:
    rows = [said("i", "clarity", "finding"), said("i", "clarity", "pass")]
    assert review_verdict(by_item(rows)["i"], VerdictRules()).reason == ""
    other = [*rows, said("i", "clarity", "finding", "R2", note="Which side?")]
    assert review_verdict(by_item(other)["i"], VerdictRules()).details == "Which side?"


def test_bounds_come_from_the_recipe_that_made_the_benchmark() -> None:
    made = {"recipe": "ogcare", "min_rating": 3.5, "review_rule": "each"}
    assert rules_of(made) == VerdictRules(min_rating=3.5, review_rule="each")
    assert rules_of({"recipe": "clinbench", "min_options": 6}).min_options == 6
    older = {"recipe": "clinbench", "least_rating": 3.5, "least_options": 6}
    assert rules_of(older) == VerdictRules(min_rating=3.5, min_options=6), "benchmarks made before the rename"
    rows = [said("i", "medical alignment", "3"), said("i", "medical alignment", "5", "R2")]
    assert review_verdict(by_item(rows)["i"], rules_of(made)).reason == "rated below 3.5 on medical alignment"


def test_a_new_version_is_written_and_the_old_one_stays(bench: Artefact, tmp_path: Path) -> None:
    labels = [
        said("q-hbt-case-01", "medical alignment", "2", note="Wrong dose."),
        said("q-hbt-case-01", "need for expertise", "5"),
        said("q-hbt-case-02", "medical alignment", "5"),
        said("q-hbt-case-02", "need for expertise", "5"),
        said("q-hbt-case-07", "query", "flag", note="Two questions."),
        said("elsewhere", "query", "ok"),
    ]
    before = bench.reference().sha256
    applied = apply_labels(bench, labels)
    assert reasons(applied) == {"q-hbt-case-01": "rated below 4 on medical alignment"}
    assert applied.waits == {"q-hbt-case-07": ("query",)}
    assert (applied.labelled, applied.elsewhere) == (3, 1)
    origin = Origin(study="s", form="f", source="bench", source_sha256=before, format="criteria", labels=3, people=1)
    made = write_applied(bench, applied, labels, tmp_path / "bench-2", command=["hoofbeat"], origin=origin)
    assert made.verify() == []
    assert bench.reference().sha256 == before
    assert bench.verify() == []
    old, new = Benchmark(bench), Benchmark(made)
    assert [q.id for q in new.questions] == [q.id for q in old.questions if q.id != "q-hbt-case-01"]
    assert new.qrels() == {id: grades for id, grades in old.qrels().items() if id != "q-hbt-case-01"}
    for name in old.editions():
        assert "q-hbt-case-01" not in {q.id for q in Benchmark(made, name).questions}
    manifest = made.manifest
    assert version_of(bench.manifest) == 1
    assert (version_of(manifest), manifest.settings["version"]) == (2, 2)
    assert manifest.inputs[0] == bench.reference()
    assert {ref.kind for ref in manifest.inputs} == {"benchmark", "labels", "corpus"}
    assert manifest.counts.kept == len(old.questions) - 1
    assert manifest.counts.reasons["rated below 4 on medical alignment"] == 1
    [row] = read_jsonl(made.file("diff.jsonl"), QuestionDifference)
    assert (row.item, row.what, row.details) == ("q-hbt-case-01", "dropped", "ratings 2")
    waiting = list(read_jsonl(made.file("review.jsonl"), ReviewTask))
    assert {task.item for task in waiting if task.kind == "likert"} == {f"q-hbt-case-0{n}" for n in range(3, 7)}
    assert {task.criteria for task in waiting if task.item == "q-hbt-case-07"} == {("reasoning", "support")}
    gone = list(read_jsonl(made.file("rejected.jsonl"), RejectedItem))[-1]
    assert (gone.id, gone.step) == ("q-hbt-case-01", STEP)
    last = list(read_tsv(made.file("funnel.tsv")))[-1]
    assert (last["step"], int(last["in"]) - int(last["kept"])) == (STEP, 1)
    assert "| q-hbt-case-01 | rated below 4 on medical alignment | ratings 2 |" in made.file("diff.md").read_text(
        encoding="utf-8"
    )


def test_a_second_review_makes_a_third_version(bench: Artefact, tmp_path: Path) -> None:
    first = [said("q-hbt-case-01", "medical alignment", "1")]
    made = write_applied(bench, apply_labels(bench, first), first, tmp_path / "b2")
    second = [said("q-hbt-case-02", "medical alignment", "1")]
    again = write_applied(made, apply_labels(made, second), second, tmp_path / "b3")
    assert version_of(again.manifest) == 3
    assert again.manifest.inputs[0].sha256 == made.reference().sha256
    assert {row.item for row in read_jsonl(again.file("diff.jsonl"), QuestionDifference)} == {"q-hbt-case-02"}
    with pytest.raises(InputError, match="none of these labels"):
        apply_labels(again, first)
    same = write_applied(bench, apply_labels(bench, first), first, tmp_path / "b2-again")
    assert same.manifest.files == made.manifest.files


def test_revisions_that_are_data_are_carried_out(bench: Artefact, tmp_path: Path, sentence: str) -> None:
    old = next(q for q in Benchmark(bench).questions if q.id == CASE)
    wrong = next(option for option in old.options if option != old.answer)
    labels = [
        said(CASE, "options overlap", "finding", note="Two are one."),
        said(CASE, "drop option", wrong),
        said(CASE, "missing information", "finding"),
        said(CASE, "add to stem", sentence),
    ]
    applied = apply_labels(bench, labels)
    assert applied.dropped == []
    [change] = applied.changed
    assert {edit.field for edit in change.edits} == {"options", "context"}
    made = write_applied(bench, applied, labels, tmp_path / "new")
    new = next(q for q in Benchmark(made).questions if q.id == CASE)
    assert new.options == tuple(option for option in old.options if option != wrong)
    assert new.answer in new.options
    assert new.context == f"{old.context}\n\n{sentence}"
    assert new.evidence[-1].quote == sentence
    assert new.lineage[-1].name == "review"
    read = made.file("diff.md").read_text(encoding="utf-8")
    assert "options, before:" in read
    assert sentence[:40] in read


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda q, _: said(CASE, "drop option", q.answer), "a revision drops what is not a wrong option"),
        (lambda q, _: said(CASE, "drop option", "Something else"), "a revision drops what is not a wrong option"),
        (lambda q, _: said(CASE, "add to stem", "He flew to the moon in spring."), "not in the source"),
        (lambda q, d: said(CASE, "add to stem", _naming(d.text, q.answer)), "gives the answer away"),
    ],
)
def test_a_revision_that_cant_be_carried_out_takes_the_question_out(
    bench: Artefact, folders: Path, make: Callable[..., ReviewLabel], reason: str
) -> None:
    question = next(q for q in Benchmark(bench).questions if q.id == CASE)
    applied = apply_labels(bench, [make(question, Corpus.open(folders / "cases").get("hbt-case-01"))])
    assert reason in reasons(applied)[CASE]


def _naming(text: str, answer: str) -> str:
    words = answer.split()[-2]
    return next(part for part in text.replace("\n", " ").split(". ") if words.lower() in part.lower()) + "."


def test_too_few_options_take_the_question_out(bench: Artefact) -> None:
    question = next(q for q in Benchmark(bench).questions if q.id == CASE)
    labels = [said(CASE, "drop option", option) for option in question.options if option != question.answer]
    assert reasons(apply_labels(bench, labels)) == {CASE: "too few options are left after revision"}


def test_words_are_added_only_with_the_source_at_hand(bench: Artefact, sentence: str) -> None:
    with pytest.raises(InputError, match="the source is missing"):
        apply_labels(bench, [said(CASE, "add to stem", sentence)], source=lambda _: None)


def test_labels_about_something_else_are_refused(bench: Artefact) -> None:
    with pytest.raises(InputError, match="is not a criterion for benchmarks"):
        apply_labels(bench, [said(CASE, "label", "Divergent")])
    with pytest.raises(InputError, match="is not known"):
        apply_labels(bench, [said("q-hbt-case-07", "query", "maybe")])
    with pytest.raises(InputError, match="not a rating"):
        apply_labels(bench, [said("q-hbt-case-01", "medical alignment", "good")])


@pytest.fixture
def exported(folders: Path, tmp_path: Path) -> Path:
    """The one label of a study, as it was exported."""
    path = tmp_path / "labels.jsonl"
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        team = team_of(store, folders, "likert")
        team.say(team.people[0], team.items[0], dict.fromkeys(("medical alignment", "need for expertise"), "5"))
        write_export(export_labels(store, team.study), path)
    return path


def without_hash(path: Path) -> None:
    """As exports were before they had the hash of the labels."""
    origin = json.loads(origin_path(path).read_text("utf-8"))
    del origin["labels_sha256"]
    origin_path(path).write_text(json.dumps(origin), "utf-8")


@pytest.mark.parametrize(
    ("old", "why"),
    [
        (False, "have changed since likert-.* was exported"),
        (True, "counts 1 label by 1 person, but the file has at least 3 labels by 2 people"),
    ],
)
def test_labels_that_changed_after_the_export_are_not_the_study_s(
    bench: Artefact, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: bool, why: str
) -> None:
    if old:
        without_hash(exported)
    before, origin = labels_to_apply(bench, database="", file=exported)
    assert origin is not None
    forged = [said(f"q-hbt-case-0{n}", "medical alignment", "1", "Dr Forged") for n in (1, 2)]
    write_jsonl(exported, [*before, *forged])
    with pytest.raises(InputError, match=why) as refused:
        labels_to_apply(bench, database="", file=exported)
    assert "--trust-changed" in str(refused.value.fix)
    monkeypatch.setenv(TRUST_CHANGED, "1")
    labels, trusted = labels_to_apply(bench, database="", file=exported)
    made = write_applied(bench, apply_labels(bench, labels), labels, tmp_path / "b2", origin=trusted)
    recorded = made.manifest.settings["applied"]
    assert isinstance(recorded, dict)
    assert recorded["study"] == f"{origin.study} (labels.jsonl changed after the export)"
    assert (recorded["people"], recorded["labels"]) == (2, 3)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_nobody_votes_twice(bench: Artefact, tmp_path: Path, suffix: str) -> None:
    rating = ("q-hbt-case-01", "medical alignment")
    rows = [said(*rating, "1", "Dr A"), *[said(*rating, "5", "Dr B")] * 3]
    rows += [said(CASE, "drop option", each, "Dr B") for each in ("A", "B")]
    path = tmp_path / f"labels{suffix}"
    if suffix == ".jsonl":
        write_jsonl(path, rows)
    else:
        fields = ("item", "criterion", "value", "reviewer")
        write_csv(path, fields, [[getattr(row, field) for field in fields] for row in rows])
    with pytest.raises(InputError, match="Dr B has already labelled q-hbt-case-01") as refused:
        labels_to_apply(bench, database="", file=path)
    first = 2 + (suffix == ".csv")
    told = re.findall(r"line (\d+): .* \(line (\d+)\)", refused.value.what)
    assert told == [(str(first + more), str(first)) for more in (1, 2)], "revisions are no votes"


def test_the_diff_shows_hostile_text_as_it_stands(bench: Artefact) -> None:
    evil = "<script>alert(1)</script> | [x](http://x.invalid)\n# heading"
    rows = [
        QuestionDifference(item="a|b", what="dropped", reason="r", details=evil),
        QuestionDifference(item="c", what="changed", edits=(Edit(field="options", before=[evil], after=[]),)),
    ]
    text = diff_markdown(rows, name="b", version=2, kept=1, unlabelled=0, waits={"*d*": ("query",)})
    assert "<script>" not in text
    assert not re.search(r"(?<!\\)\]\(http", text)
    assert "\n# heading" not in text
    table = [line for line in text.splitlines() if line.startswith("| a")]
    assert len(table) == 1
    assert table[0].replace("\\|", "").count("|") == 4
    assert "2 questions" not in describe_differences(
        bench, apply_labels(bench, [said("q-hbt-case-02", "medical alignment", "5")])
    )


def test_an_accepted_answer_is_kept_with_who_accepted_it(bench: Artefact, tmp_path: Path) -> None:
    id = "q-hbt-case-02"
    labels = [
        said(id, "accept answer", "Watch and wait", "R2", note="guideline of 2024"),
        said(id, "accept answer", "Watch and wait", "R1"),
        said(id, "medical alignment", "5"),
    ]
    applied = apply_labels(bench, labels, study="round 1")
    made = write_applied(bench, applied, labels, tmp_path / "b2")
    new = next(question for question in Benchmark(made).questions if question.id == id)
    wanted = AcceptedAnswer(text="Watch and wait", by=("R1", "R2"), study="round 1", note="guideline of 2024")
    assert new.accepted == (wanted,)
    assert new.lineage[-1].note == "accepted 'Watch and wait'"
    for name in Benchmark(made).editions():
        others = {question.id: question for question in Benchmark(made, name).questions}
        assert id not in others or others[id].accepted == (wanted,)
    [change] = applied.changed
    assert change.edits[0].after == ["Watch and wait"]
    again = apply_labels(made, [said(id, "accept answer", "watch and wait")])
    assert again.changed == [], "what is accepted already stays as it is"


def test_documents_that_support_an_answer_are_graded(bench: Artefact, tmp_path: Path) -> None:
    question = Benchmark(bench).questions[0]
    shown = (Passage(id="other#2", document="other", text="x"), Passage(id="far#0", document="far", text="y"))
    given = Answer(question=question.id, model="m", condition="bm25 @2", text="z", evidence=shown)
    grade = partial(Judgment, question=question.id, model="m", condition="bm25 @2", judge="j", aspect="relevance")
    judgments = [
        grade(passage="other#2", label="relevant", score=9.0),
        grade(passage="far#0", label="partly", score=6.0),
    ]
    with create(tmp_path / "judged") as draft:
        write_jsonl(draft.path / "questions.jsonl", [question])
        write_jsonl(draft.path / "answers.jsonl", [given])
        write_jsonl(draft.path / "judgments.jsonl", judgments)
        draft.finish(Manifest(kind="judgments"))
    labels, origin = labels_to_apply(bench, database="", judged=[tmp_path / "judged"])
    assert origin is None
    assert labels == [said(question.id, "supporting document", "other", "j", "relevance 9 of 10")]
    labels.append(said(question.id, "supporting document", question.documents[0]))
    made = write_applied(bench, apply_labels(bench, labels), labels, tmp_path / "b2")
    before, after = Benchmark(bench).qrels(), Benchmark(made).qrels()
    assert after == {**before, question.id: {**before[question.id], "other": 1}}
    [change] = list(read_jsonl(made.file("diff.jsonl"), QuestionDifference))
    assert change.edits[0].field == "supporting documents"
