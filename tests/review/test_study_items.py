"""Studies and items from artefacts: the codes of the readers, blinded, drawn by the seed, with evidence marked."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from hoofbeat.audit import Audit
from hoofbeat.audit.validation.packets import pair_code, write_packets
from hoofbeat.audit.validation.people_validation import human_labels
from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import UsageError
from hoofbeat.judging.humans import SheetDesign, design_path, human_judgments, write_sheet
from hoofbeat.judging.humans import read_labels as read_sheet
from hoofbeat.judging.judgments_folder import AnswerFolder
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.records import Question
from hoofbeat.review.exam_items import exam_study, question_of
from hoofbeat.review.forms import form_for, options_of, parts_for, sides_exchanged, split_marked, visible_material
from hoofbeat.review.review_records import KNOWN_CODE, ItemMaterial, ReviewItem, Study, item_code
from hoofbeat.review.study_items import answer_forms, even_share, forms_in, study_from
from hoofbeat.store import Manifest, create
from hoofbeat.store.tables import read_jsonl, write_jsonl
from tests.review.review_studies import FORMS, study_of, task_folders
from tests.web.folders import MODELS


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_a_study(folders: Path, form: str) -> None:
    study, items = study_of(folders, form)
    assert study.form == form
    assert items
    assert [item.place for item in items] == list(range(len(items)))
    assert len({item.id for item in items}) == len(items)
    for item in items:
        assert item.study == study.id
        assert re.fullmatch(r"[A-Za-z0-9-]+", item.id)
        assert item.shown
        assert item.key
        assert form_for(study, item).name == form
    again, same = study_of(folders, form)
    assert msgspec.json.encode((again, same)) == msgspec.json.encode((study, items))


def guessed_codes(form: str, items: Sequence[ReviewItem]) -> set[str]:
    """What somebody can compute who guesses the ids, the study's id and how codes are made, but has no folder."""
    found = set()
    for item in items:
        parts = [value for name, value in item.key.items() if name != KNOWN_CODE]
        found.add(item_code(form, *parts[:2]))
        found.add(item_code("revision", parts[0]))
        if form == "pair":
            found.add(pair_code(b"", *parts))
        elif form in answer_forms():
            question, model, condition, sample = parts
            found.add(blind_code((question, model, condition, sample), form, b""))
        if form in {"pair", *answer_forms()}:
            found.add(item_code("in study", item.study, item.known_code))
        elif form == "exam":
            name = question_of(item).id
            found.add(hashlib.blake2b(f"{item.study}\0{name}".encode(), digest_size=6).hexdigest())
            found.add(item_code("exam", item.study, name))
    return found


@pytest.mark.parametrize("form", [*FORMS, "exam"])
def test_codes_can_t_be_computed_by_who_guesses_the_ids(folders: Path, form: str) -> None:
    study, items = exam_study(folders / "bench", seed=1) if form == "exam" else study_of(folders, form)
    assert not guessed_codes(form, items) & {item.id for item in items}
    shown = msgspec.json.encode([(item.id, item.study, item.shown) for item in items]).decode()
    assert study.source_sha256 not in shown


def test_another_seed_or_sample_is_another_study(folders: Path) -> None:
    made = [study_of(folders, "likert", sample=3, seed=seed) for seed in (0, 0, 1)]
    assert made[0] == made[1]
    assert made[2][0].id != made[0][0].id
    assert len(made[0][1]) == 3
    assert made[0][0].settings["seed"] == 0


def test_a_sample_is_drawn_by_the_strata(tmp_path: Path) -> None:
    questions = [
        Question(id=f"q{n}", text="?", facets={"rare": "yes" if n < 8 else "no", "discipline": ["skin", "eye"][n % 2]})
        for n in range(12)
    ]
    tasks = [
        ReviewTask(item=each.id, kind="leak", criteria=("diagnosis is right",), why="drawn", question="A case.")
        for each in questions
    ]
    _benchmark(tmp_path / "bench", tasks, questions)
    _, items = study_from(tmp_path / "bench", strata="rare", sample=6)
    assert Counter(item.stratum for item in items) == {"yes": 4, "no": 2}
    _, items = study_from(tmp_path / "bench", sample=6)
    assert Counter(item.stratum for item in items) == {"skin": 3, "eye": 3}
    assert [item.group for item in items] == [item.stratum for item in items]


def test_evidence_is_marked_in_the_source(folders: Path) -> None:
    questions = {question.id: question for question in Benchmark.open(folders / "bench").questions}
    study, items = study_of(folders, "likert")
    marked = 0
    for item in items:
        source = next(shown for shown in item.shown if shown.kind == "source")
        evidence = questions[item.key["item"]].evidence
        assert {source.text[start:end] for start, end in source.marks} == {span.quote for span in evidence}
        marked += len(source.marks)
        part = parts_for(study, item, "p")[-1]
        assert part.folded
        assert "".join(text for text, _ in part.pieces) == source.text
    assert marked


def test_marks_that_overlap_or_reach_outside_are_cut() -> None:
    assert split_marked("abcdef", [(4, 99), (1, 3), (2, 4), (3, 3)]) == (
        ("a", False), ("bc", True), ("d", True), ("ef", True),
    )  # fmt: skip
    assert split_marked("", [(0, 3)]) == ()


def test_several_kinds_need_a_name(folders: Path) -> None:
    waiting = forms_in(folders / "bench")
    assert set(waiting) == {"likert", "three-criteria", "leak", "distractors", "two-level-1", "two-level-2"}
    with pytest.raises(UsageError, match="several kinds") as err:
        study_from(folders / "bench")
    assert "two-level-1 (6)" in str(err.value)
    with pytest.raises(UsageError, match="nothing to review with the form duplicate"):
        study_from(folders / "bench", form="duplicate")
    with pytest.raises(UsageError, match="no form 'x'"):
        study_from(folders / "bench", form="x")
    with pytest.raises(UsageError, match="0 items"):
        study_from(folders / "bench", form="likert", sample=0)
    with pytest.raises(UsageError, match="nobody has judged failure-mode"):
        study_from(folders / "run", form="failure-mode")


def test_an_item_that_waits_at_two_steps_is_two_items(folders: Path, tmp_path: Path) -> None:
    tasks = [
        ReviewTask(item="a/b ?", kind="leak", criteria=("diagnosis is right",), why="drawn", step=step, question=step)
        for step in ("first pass", "second pass")
    ]
    tasks.append(msgspec.structs.replace(tasks[0], criteria=("nothing after the diagnosis",), why="doubt"))
    target = tmp_path / "bench"
    _benchmark(target, tasks)
    _, items = study_from(target)
    assert [item.key["step"] for item in items] == ["first pass", "second pass"]
    assert items[0].criteria == ("diagnosis is right", "nothing after the diagnosis")
    assert items[0].id != items[1].id


def _benchmark(target: Path, tasks: list[ReviewTask], questions: Sequence[Question] = ()) -> None:
    with create(target, replace_kind="benchmark") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "review.jsonl", tasks)
        draft.finish(Manifest(kind="benchmark", title="Invented"))


def test_open_revisions_come_with_what_was_found(folders: Path) -> None:
    _, items = study_of(folders, "revision")
    assert len(items) == 3  # what is revised already is not there
    first = items[0]
    assert first.shown[0].title == "What reviewers found"
    assert [line.partition(":")[0] for line in first.shown[0].lines] == ["options overlap", "clarity"]
    assert len(options_of(first)) > 2
    assert any(shown.kind == "source" for shown in first.shown)


# Answers


@pytest.mark.parametrize("form", ["equivalence", "failure-mode", "error-type"])
def test_answers_are_those_of_the_sheet_and_go_back_to_the_judge(folders: Path, form: str, tmp_path: Path) -> None:
    source = task_folders(folders) / ("run" if form == "equivalence" else "judged-2")
    folder = AnswerFolder.open(source)
    sheet = tmp_path / "sheet.csv"
    drawn = write_sheet(folder, form, 12, sheet, seed=3)
    study, items = study_from(source, form=form, sample=12, seed=3)
    assert sorted(item.known_code for item in items) == sorted(drawn.items)
    kept = msgspec.convert(study.settings["design"], SheetDesign)
    assert msgspec.structs.replace(kept, sheet=sheet.name) == drawn
    assert design_path(sheet).is_file()
    path = tmp_path / "labels.jsonl"
    label = "mismatch" if form == "equivalence" else "other" if form == "failure-mode" else "context"
    write_jsonl(path, [{"item": item.known_code, "label": label, "annotator": "Dr A"} for item in items])
    made = human_judgments(folder, {path: read_sheet(path)[0]}, form)
    assert {(each.question, each.model, each.condition, each.sample) for each in made} == {
        tuple(item.key[name] for name in ("question", "model", "condition", "sample")) for item in items
    }


@pytest.mark.parametrize("form", ["equivalence", "pair"])
def test_who_reviews_in_two_studies_can_t_join_blinded_items(folders: Path, form: str) -> None:
    (_, first), (_, second) = (study_of(folders, form, sample=60, seed=seed) for seed in (1, 2))
    orders = [[item.known_code for item in items] for items in (first, second)]
    both = set(orders[0]) & set(orders[1])
    assert len(both) > 3, "the same items are in both studies"
    assert not {item.id for item in first} & {item.id for item in second}
    in_order = [[code for code in order if code in both] for order in orders]
    assert in_order[0] != in_order[1], "their order tells nothing either"
    shown = msgspec.json.encode([(item.id, item.shown) for item in (*first, *second)]).decode()
    assert not [code for code in both if code in shown]


@pytest.mark.parametrize("form", ["equivalence", "failure-mode", "error-type", "error-analysis", "pair"])
def test_blinded_items_tell_nothing_about_who_answered(folders: Path, form: str) -> None:
    study, items = study_of(folders, form)
    secrets = [*MODELS, "bm25", "alpha-1", "beta-2", "judge-1"]
    if form == "pair":
        audit = Audit.open(folders / "audit")
        secrets += [source.title for source in audit.sources] + [source.id for source in audit.sources]
        secrets.append("Teaching")
    told = msgspec.json.encode([(item.id, item.shown) for item in items]).decode() + study.title + study.id
    assert not [secret for secret in secrets if secret in told]


def test_only_wrong_answers_are_analysed(folders: Path) -> None:
    _, items = study_of(folders, "error-analysis")
    verdicts = AnswerFolder.open(folders / "judged").verdicts()
    for item in items:
        key = item.key
        assert verdicts[key["question"], key["model"], key["condition"], key["sample"]] is False


# Pairs


def test_pairs_go_back_to_the_audit(folders: Path, tmp_path: Path) -> None:
    audit = Audit.open(folders / "audit")
    study, items = study_of(folders, "pair", sample=20)
    counts = Counter(item.stratum for item in items)
    assert len(items) == 20
    assert len(counts) == len(audit.pack.labels)
    assert max(counts.values()) - min(counts.values()) <= 1
    assert {each["label"]: each["drawn"] for each in study.settings["design"]} == counts
    path = tmp_path / "labels.jsonl"
    write_jsonl(path, [{"item": item.known_code, "label": "Consistent", "annotator": "Dr A"} for item in items])
    labels = human_labels(audit, [path])
    assert {pair.key for pair in labels.pairs} == {(i.key["question"], i.key["a"], i.key["b"]) for i in items}


def test_packets_give_the_same_pairs_and_texts_as_their_audit(folders: Path, tmp_path: Path) -> None:
    audit = Audit.open(folders / "audit")
    write_packets(audit, tmp_path / "packets", per_label=4, seed=2)
    study, items = study_from(tmp_path / "packets")
    whole, every = study_from(folders / "audit", sample=10_000)
    of_audit = {item.known_code: item for item in every}
    assert len(items) > 10
    for item in items:
        assert item.shown == of_audit[item.known_code].shown
        assert item.key == of_audit[item.known_code].key
    assert study.settings["labels"] == whole.settings["labels"]
    assert len(study.settings["names_replaced"]) == len(
        (tmp_path / "packets/key/names_replaced.tsv").read_text(encoding="utf-8").splitlines()[1:]
    )
    assert sum(times for _, _, times in whole.settings["names_replaced"]) == sum(
        shown.text.count("[source]") for item in every for shown in item.shown[1:]
    )
    assert {row.item for row in read_jsonl(tmp_path / "packets/key/key.jsonl", _Key)} == {
        item.known_code for item in items
    }


class _Key(msgspec.Struct):
    item: str


def test_a_number_is_divided_evenly_and_what_is_rare_gives_all() -> None:
    assert even_share({"a": 100, "b": 2, "c": 100}, 20) == {"a": 9, "b": 2, "c": 9}
    assert even_share({"a": 1, "b": 1}, 20) == {"a": 1, "b": 1}
    assert even_share({"a": 5, "b": 5}, 1) == {"a": 1, "b": 0}


def test_sides_are_exchanged_for_some_people_by_the_seed(folders: Path) -> None:
    study, items = study_of(folders, "pair", sample=40)
    seen = {person: [sides_exchanged(study, item, person) for item in items] for person in ("p1", "p2")}
    assert seen["p1"] != seen["p2"]
    for sides in seen.values():
        assert 8 < sum(sides) < 32
    assert seen["p1"] == [sides_exchanged(study, item, "p1") for item in items]
    item = items[seen["p1"].index(True)]
    texts = [shown.text for shown in item.shown if shown.kind == "answer"]
    told = [(shown.title, shown.text) for shown in visible_material(study, item, "p1") if shown.kind == "answer"]
    assert told == [("Answer A", texts[1]), ("Answer B", texts[0])]


def test_one_answer_is_not_exchanged() -> None:
    study = Study(id="s", title="", form="equivalence", source="", source_sha256="")
    item = ReviewItem(id="i", study="s", place=0, shown=(ItemMaterial(title="Answer", text="x", kind="answer"),))
    assert not any(sides_exchanged(study, item, f"p{number}") for number in range(20))
