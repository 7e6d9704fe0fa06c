"""People's labels: a blinded sheet goes out, labels come back to their answers, what is wrong is told by line."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging import (
    AnswerFolder,
    JudgmentFolder,
    LabelFile,
    SheetDesign,
    design_of,
    human_judgments,
    read_labels,
    write_sheet,
)
from hoofbeat.judging.blinded_sheet import UNKEYED
from hoofbeat.judging.criteria import answer_key
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.records import Answer, Failure, Judgment, Question
from hoofbeat.store import Ledger
from tests.judging.folders import a_judge, a_run, by_words, judged_by, said
from tests.models.support import ledger_in

ANSWERS = [
    said(f"{'right' if n % 4 else 'wrong'}: advice {n}", model=model, sample=n)
    for model in ("small", "large")
    for n in range(40)
]
FAILED = Answer(
    question="bath", model="small", condition="closed", sample=99, failure=Failure(kind="timeout", message="late")
)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


@pytest.fixture
def judged(tmp_path: Path, ledger: Ledger) -> AnswerFolder:
    judge, _ = a_judge(ledger, by_words(right="equivalent", wrong="mismatch"))
    judged_by(
        a_run(tmp_path / "run", [*ANSWERS, FAILED]), tmp_path / "judged", aspects=("equivalence",), judges=(judge,)
    )
    return AnswerFolder.open(tmp_path / "judged")


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def fill(path: Path, label: str = "equivalent", annotator: str = "Dr A") -> None:
    """What an annotator does to a sheet."""
    rows = rows_of(path)
    for row in rows:
        row |= {"label": label, "annotator": annotator}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_is_drawn_in_proportion_and_tells_nothing(tmp_path: Path, judged: AnswerFolder) -> None:
    sheet = write_sheet(judged, "equivalence", 16, tmp_path / "labels.csv", seed=4)
    assert (sheet.drawn, sheet.answers, sheet.inclusion) == (16, 80, 0.2)
    assert {(each.model, each.condition, each.judged): (each.answers, each.drawn) for each in sheet.strata} == {
        ("large", "closed", "equivalent"): (30, 6),
        ("large", "closed", "mismatch"): (10, 2),
        ("small", "closed", "equivalent"): (30, 6),
        ("small", "closed", "mismatch"): (10, 2),
    }
    assert {(each.inclusion, each.weight) for each in sheet.strata} == {(0.2, 5.0)}
    assert sheet.thin == [("large", "closed"), ("small", "closed")]
    rows = rows_of(tmp_path / "labels.csv")
    assert [row["item"] for row in rows] == sorted(row["item"] for row in rows)
    assert set(rows[0]) >= {"item", "question", "gold answer", "answer", "label", "annotator"}
    text = (tmp_path / "labels.csv").read_text()
    assert not any(word in text for word in ("small", "large", "closed", "seen by"))
    assert all(row["label"] == row["annotator"] == "" for row in rows)
    assert {row["labels to choose"] for row in rows} == {"equivalent | mismatch"}


def test_the_same_seed_draws_the_same(tmp_path: Path, judged: AnswerFolder) -> None:
    for name, seed in (("a", 4), ("b", 4), ("c", 5)):
        write_sheet(judged, "equivalence", 16, tmp_path / f"{name}.csv", seed=seed)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_how_a_sheet_was_drawn_lies_beside_it(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "labels.csv"
    made = write_sheet(judged, "equivalence", 15, path, seed=4)
    text = (tmp_path / "labels.design.json").read_bytes()
    assert msgspec.json.decode(text, type=SheetDesign) == made
    assert (made.seed, made.aspect, made.asked, made.sheet) == (4, "equivalence", 15, "labels.csv")
    assert made.source == judged.artefact.reference()
    codes = [row["item"] for row in rows_of(path)]
    assert list(made.items) == codes
    assert design_of(path, codes[:3]) == (tmp_path / "labels.design.json", made)
    renamed = tmp_path / "dr-a.csv"
    renamed.write_bytes(path.read_bytes())
    found = design_of(renamed, codes)
    assert found is not None
    assert found[1] == made
    assert design_of(path, [*codes, "0" * 12]) is None
    assert design_of(path, [""]) is None
    (tmp_path / "other.design.json").write_text("{}")
    assert design_of(renamed, ["0" * 12]) is None
    (tmp_path / "labels.design.json").write_text("{}")
    with pytest.raises(InputError, match="the design of the sheet can't be read"):
        design_of(path, codes)


def test_seed_and_design_come_in_with_the_labels(tmp_path: Path, judged: AnswerFolder) -> None:
    design = write_sheet(judged, "equivalence", 16, tmp_path / "labels.csv", seed=4)
    fill(tmp_path / "labels.csv")
    labels = read_labels(tmp_path / "labels.csv")[0]
    made = tuple(human_judgments(judged, {tmp_path / "labels.csv": labels}, "equivalence"))
    file = LabelFile(file="labels.csv", aspect="equivalence", labels=16, design=design)
    manifest = judged_by(judged, tmp_path / "checked", humans=made, files=(file,)).artefact.manifest
    assert manifest.seeds == {"sheet: labels.csv": 4}
    assert manifest.settings["label_files"] == [
        {"file": "labels.csv", "aspect": "equivalence", "labels": 16, "sheet": "labels.csv"}
    ]
    told = manifest.settings["sheets"]["labels.csv"]  # type: ignore[index]
    assert (told["seed"], told["drawn"], told["source"]["sha256"]) == (4, 16, judged.artefact.reference().sha256)
    assert len(told["strata"]) == 4
    again = AnswerFolder.open(tmp_path / "checked")
    bare = LabelFile(file="more.csv", aspect="equivalence", labels=1)
    later = judged_by(again, tmp_path / "later", files=(bare,)).artefact.manifest
    assert later.seeds == manifest.seeds
    assert later.settings["sheets"] == manifest.settings["sheets"]
    assert [each["sheet"] for each in later.settings["label_files"]] == ["labels.csv", None]  # type: ignore[attr-defined]


def test_there_and_back(tmp_path: Path, judged: AnswerFolder) -> None:
    """The labels of a filled sheet land on the answers they were written beside."""
    path = tmp_path / "labels.csv"
    write_sheet(judged, "equivalence", 16, path)
    fill(path)
    labels, empty = read_labels(path)
    made = human_judgments(judged, {path: labels}, "equivalence")
    assert (len(made), empty) == (16, 0)
    assert {each.judge for each in made} == {"human:Dr A"}
    shown = Counter(row["answer"] for row in rows_of(path))
    texts = {(each.model, each.sample): each.text for each in ANSWERS}
    assert Counter(texts[each.model, each.sample] for each in made) == shown
    done = judged_by(judged, tmp_path / "with-people", humans=tuple(made))
    assert [each for each in done.judgments if each.judge.startswith("human:")] == made
    assert sum(not each.judge.startswith("human:") for each in done.judgments) == len(ANSWERS) + 1
    assert done.artefact.manifest.settings["annotators"] == ["Dr A"]
    assert done.artefact.manifest.metrics["labels"]["equivalence by people"] == {"equivalent": 16}  # type: ignore[index]


def test_labels_under_codes_of_before_are_still_found(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "old.csv"
    keys = [answer_key(each) for each in ANSWERS[:8]]
    lines = [f"{blind_code(key, 'equivalence', UNKEYED)},equivalent,Dr A" for key in keys]
    path.write_text("\n".join(["item,label,annotator", *lines]))
    made = human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")
    assert {answer_key(each) for each in made} == set(keys)


def test_the_sheet_of_a_run_is_read_for_its_judgments(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "labels.csv"
    write_sheet(AnswerFolder.open(tmp_path / "run"), "equivalence", 16, path)
    fill(path)
    assert len(human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")) == 16


def test_several_annotators_and_files(tmp_path: Path, judged: AnswerFolder) -> None:
    files = {}
    for name in ("Dr A", "Dr B"):
        path = tmp_path / f"{name}.csv"
        write_sheet(judged, "equivalence", 8, path)
        fill(path, "mismatch", name)
        files[path] = read_labels(path)[0]
    made = human_judgments(judged, files, "equivalence")
    assert [each.judge for each in made] == ["human:Dr A", "human:Dr B"] * 8
    judged_by(judged, tmp_path / "both", humans=tuple(made))
    again = AnswerFolder.open(tmp_path / "both")
    with pytest.raises(InputError, match="Dr A has already labelled this answer in the folder"):
        human_judgments(again, {tmp_path / "Dr A.csv": files[tmp_path / "Dr A.csv"]}, "equivalence")


def test_labels_may_name_their_answers(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "named.jsonl"
    lines = [
        {
            "question": "bath",
            "model": "small",
            "condition": "closed",
            "sample": 3,
            "label": "Mismatch",
            "annotator": "x",
        },
        {
            "question": "bath",
            "model": "large",
            "condition": "closed",
            "label": "equivalent",
            "annotator": "x",
            "note": "ok",
        },
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")
    assert [(each.model, each.sample, each.label, each.reasoning) for each in made] == [
        ("small", 3, "mismatch", ""),
        ("large", 0, "equivalent", "ok"),
    ]


HEADER = "question,model,condition,sample,label,annotator\n"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("bath,small,closed,7,equivalent,A\nbath,tiny,closed,0,equivalent,A\n", "line 3: there is no answer by tiny"),
        ("bath,small,closed,7,maybe,A\n", "line 2: 'maybe' is not a label of equivalence"),
        (
            "bath,small,closed,7,mismatch,A\nbath,small,closed,7,mismatch,A\n",
            r"line 3: A has already labelled .* \(line 2 of",
        ),
        ("bath,small,closed,7,mismatch,\n", "line 2: the column `annotator` is empty"),
        ("bath,small,closed,x,mismatch,A\n", "line 2: the sample 'x' is not a number"),
        ("bath,,closed,7,mismatch,A\n", "line 2: it is not clear which answer"),
        ("bath,small,closed,7,,A\n", "this file has no labels"),
        ('bath,small,closed,7,"mis', "the file is not valid CSV"),
    ],
)
def test_what_can_t_be_used_is_told_by_its_line(tmp_path: Path, judged: AnswerFolder, lines: str, words: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(HEADER + lines)
    with pytest.raises(InputError, match=words):
        human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")


def test_lines_are_counted_over_cells_of_several_lines(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        'question,model,condition,label,annotator,note\nbath,small,closed,equivalent,A,"two\nlines"\nbath,no,closed,equivalent,A,\n'
    )
    with pytest.raises(InputError, match="line 4: there is no answer by no"):
        human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")


def test_many_problems_are_told_at_once(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(HEADER + "".join(f"bath,small,closed,{n},perhaps,A\n" for n in range(30)))
    with pytest.raises(InputError, match=r"30 lines can't be used(.|\n)*line 11(.|\n)*and 20 more"):
        human_judgments(judged, {path: read_labels(path)[0]}, "equivalence")


def test_a_file_without_its_column_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="no column `label`"):
        read_labels(tmp_path / "x.csv")
    (tmp_path / "x.jsonl").write_text('{"label": "equivalent"}\nnot json\n')
    with pytest.raises(InputError, match="line 2 can't be read"):
        read_labels(tmp_path / "x.jsonl", annotator="A")
    (tmp_path / "y.csv").write_bytes(b"label\n\xff\n")
    with pytest.raises(InputError, match="not UTF-8"):
        read_labels(tmp_path / "y.csv")


def test_a_spreadsheet_s_semicolons_and_mark_are_read(tmp_path: Path, judged: AnswerFolder) -> None:
    path = tmp_path / "labels.csv"
    path.write_bytes(b"\xef\xbb\xbfquestion;model;condition;label\r\nbath;small;closed;mismatch\r\n")
    (made,) = human_judgments(judged, {path: read_labels(path, annotator="Dr C")[0]}, "equivalence")
    assert (made.judge, made.sample, made.label) == ("human:Dr C", 0, "mismatch")


def test_no_cell_is_run_by_a_spreadsheet(tmp_path: Path) -> None:
    """What looks like a formula is guarded in the sheet, and comes back as it was."""
    bad = "=HYPERLINK(1)"
    question = Question(id=bad, text="+1?", answer="@x")
    folder = a_run(tmp_path / "run", [said("-2+3", question=bad, model=bad)], questions=[question])
    write_sheet(folder, "equivalence", 5, tmp_path / "labels.csv")
    (row,) = rows_of(tmp_path / "labels.csv")
    assert (row["question"], row["gold answer"], row["answer"]) == ("'+1?", "'@x", "'-2+3")
    path = tmp_path / "named.csv"
    path.write_text(f"question,model,condition,label,annotator\n'{bad},'{bad},closed,mismatch,'=A\n")
    (made,) = human_judgments(folder, {path: read_labels(path)[0]}, "equivalence")
    assert (made.question, made.model, made.judge) == (bad, bad, "human:=A")


def test_modes_by_people(tmp_path: Path, ledger: Ledger) -> None:
    answers = [said(f"wrong {n}", condition="oracle", sample=n) for n in range(6)]
    judge, _ = a_judge(ledger, by_words(wrong="mismatch"))
    run = a_run(tmp_path / "run", [*answers, said("wrong too")])
    with pytest.raises(UsageError, match="no answer here has a judgment of failure-mode"):
        write_sheet(run, "failure-mode", 4, tmp_path / "x.csv")
    judged_by(run, tmp_path / "judged", aspects=("equivalence", "failure-mode"), judges=(judge,))
    folder = AnswerFolder.open(tmp_path / "judged")
    path = tmp_path / "labels.csv"
    assert write_sheet(folder, "failure-mode", 4, path).drawn == 4
    rows = rows_of(path)
    assert "grounding | objective" in rows[0]["labels to choose"]
    for row, second in zip(rows, ("qualifier", "", "stage", ""), strict=True):
        row |= {"label": "stage", "second label": second, "annotator": "A"}
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    made = human_judgments(folder, {path: read_labels(path)[0]}, "failure-mode")
    assert sorted(each.secondary for each in made) == ["", "", "", "qualifier"]
    with pytest.raises(InputError, match="there is no answer with the code"):
        human_judgments(folder, {path: read_labels(path)[0]}, "error-type")  # a sheet of another aspect


def test_people_are_not_asked_for_scores(tmp_path: Path, judged: AnswerFolder) -> None:
    with pytest.raises(UsageError, match="'rouge-l' can't be labelled by people"):
        write_sheet(judged, "rouge-l", 4, tmp_path / "x.csv")


def test_a_folder_of_labels_alone(tmp_path: Path) -> None:
    """Labels of a run that no judge has seen."""
    run = a_run(tmp_path / "run", ANSWERS[:2])
    label = Judgment(question="bath", model="small", condition="closed", sample=0, judge="human:A", label="equivalent")
    judged_by(run, tmp_path / "judged", humans=(label,))
    opened = JudgmentFolder.open(tmp_path / "judged")
    assert opened.judgments == [label]
    assert opened.artefact.manifest.settings["aspect"] == "equivalence"
    assert opened.artefact.manifest.title == "labelled by A"
