"""Published questions come in, in the layouts of `../shared/reference/formats.md` with invented contents."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars
import pytest

import hoofbeat as hb
from hoofbeat.benchmarks import Benchmark, corpus_beside, write_benchmark
from hoofbeat.benchmarks.benchmark_import import (
    RejectedRow,
    import_benchmark,
    import_notes,
    lettered_lines,
    options_of,
    right_option,
)
from hoofbeat.benchmarks.export import export_benchmark
from hoofbeat.errors import InputError, UsageError
from hoofbeat.recipes import named_questions
from hoofbeat.records import AcceptedAnswer, Question, Step
from hoofbeat.review.study_items import forms_in
from hoofbeat.store import Counts
from hoofbeat.store.tables import read_jsonl
from tests.benchmarks.test_exports import _IMAGE, bench, corpus  # noqa: F401 - fixtures
from tests.cli.support import hoofbeat

CASE = "An invented patient had a fever for {n} days."
CUPCASE = [
    {
        "clean_case_presentation": CASE.format(n=n),
        "correct_diagnosis": "C. difficile colitis",
        "distractor1": "Crohn's disease",
        "distractor2": "Ischemic colitis",
        "distractor3": "Amebic colitis",
    }
    for n in range(4)
]


def imported(source: Path, tmp_path: Path, **how: Any) -> Benchmark:
    return Benchmark(import_benchmark(source, tmp_path / "made", **how))


def write_json_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_table(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def reasons(made: Benchmark) -> list[str]:
    return [row.reason for row in read_jsonl(made.artefact.file("rejected.jsonl"), RejectedRow)]


@pytest.mark.parametrize("layout", ["parquet", "saved", "stream"])
def test_cupcase_as_released(tmp_path: Path, layout: str) -> None:
    frame = polars.DataFrame(CUPCASE)
    folder = tmp_path / "cupcase"
    (folder / "data").mkdir(parents=True)
    (folder / "test").mkdir()
    if layout == "parquet":
        frame.write_parquet(folder / "data" / "test-00000-of-00001.parquet")
    elif layout == "saved":
        (folder / "dataset_dict.json").write_text('{"splits": ["test"]}')
        (folder / "test" / "state.json").write_text("{}")
        (folder / "test" / "dataset_info.json").write_text("{}")
        frame.write_ipc_stream(folder / "test" / "data-00000-of-00001.arrow")
    else:
        frame.write_ipc(folder / "test.arrow")
    made = imported(folder, tmp_path)
    assert len(made.questions) == 4
    first = made.questions[0]
    assert first.answer == "C. difficile colitis"
    assert sorted(first.options) == ["Amebic colitis", "C. difficile colitis", "Crohn's disease", "Ischemic colitis"]
    assert first.context == CASE.format(n=0)
    assert {question.options.index(question.answer) for question in made.questions} != {0}, "options are shuffled"
    again = Benchmark(import_benchmark(folder, tmp_path / "again"))
    assert again.questions == made.questions
    other = Benchmark(import_benchmark(folder, tmp_path / "other", seed=5))
    assert [q.options for q in other.questions] != [q.options for q in made.questions]
    assert made.editions() == ["free"]


def test_splits_in_the_cache_of_datasets_are_told_apart(tmp_path: Path) -> None:
    folder = tmp_path / "cupcase" / "0.0.0"
    folder.mkdir(parents=True)
    for name, rows in (("cupcase-train", CUPCASE[:3]), ("cupcase-test", CUPCASE[3:])):
        polars.DataFrame(rows).write_ipc_stream(folder / f"{name}.arrow")
    assert [question.context for question in imported(folder, tmp_path).questions] == [CASE.format(n=3)]
    assert len(imported(folder, tmp_path, split="train").questions) == 3


def test_cupcase_csv_of_forks_with_rows_that_lack_distractors(tmp_path: Path) -> None:
    names = {"clean_case_presentation": "clean text", "correct_diagnosis": "final diagnosis"}
    rows = [{"id": n, **{names.get(key, key): value for key, value in row.items()}} for n, row in enumerate(CUPCASE)]
    rows[2] |= {"distractor1": "", "distractor2": "", "distractor3": ""}
    made = imported(write_table(tmp_path / "cases.csv", rows), tmp_path)
    assert [question.id for question in made.questions] == ["0", "1", "3"]
    assert reasons(made) == ["no distractors: kept only in the edition free"]
    assert [question.id for question in Benchmark(made.artefact, "free").questions] == ["0", "1", "2", "3"]


def test_cupcase_ablation_csv(tmp_path: Path) -> None:
    row = {"case presentation": "A case.", "final diagnosis": "Gout", "distractor2": "a", "distractor3": "b"}
    made = imported(write_table(tmp_path / "ablation_study_tokens.csv", [{**row, "distractor4": "c"}]), tmp_path)
    assert sorted(made.questions[0].options) == ["Gout", "a", "b", "c"]
    assert made.questions[0].id == "ablation_study_tokens-00001"


def test_ogcare_json_and_csv(tmp_path: Path) -> None:
    row = {
        "Title": "A rare fever",
        "pmc_id": "PMC1",
        "Classification": "Cardiology",
        "Original Question": "A man had fever.\n\nWhat is the next step?",
        "Question": "A man had fever, and a dog.\n\nWhat is the next step?",
        "Answer": "Echocardiography",
    }
    file = tmp_path / "ogcarebench.json"
    file.write_text(json.dumps([row]))
    made = imported(file, tmp_path)
    assert made.questions == [
        Question(
            id="PMC1",
            text="What is the next step?",
            context="A man had fever, and a dog.",
            answer="Echocardiography",
            documents=("PMC1",),
            facets={"specialty": "Cardiology", "title": "A rare fever"},
        )
    ]
    assert Benchmark(made.artefact, "original").questions[0].context == "A man had fever."
    table = imported(write_table(tmp_path / "ogcarebench.csv", [row]), tmp_path)
    assert table.questions == made.questions


def test_clinbench_with_images(tmp_path: Path) -> None:
    folder = tmp_path / "clinbench"
    (folder / "images").mkdir(parents=True)
    (folder / "images" / "a.png").write_bytes(_IMAGE)
    row = {"id": "c1", "question_stem": "A woman.", "options": "A. Gout\nB. M. canis sepsis\nC. Flu", "answer": "B"}
    (folder / "clinbench-text.json").write_text(json.dumps([row]))
    (folder / "clinbench-mm.json").write_text(
        json.dumps([{**row, "image": "images/a.png"}, {**row, "id": "c2", "image": "../../x.png"}])
    )
    made = imported(folder, tmp_path)
    assert made.questions[0].answer == "M. canis sepsis"
    [shown] = Benchmark(made.artefact, "image").questions
    assert shown.images == ("images/a.png",)
    assert made.artefact.file("images/a.png").read_bytes() == _IMAGE
    assert reasons(made) == ["an image is outside the imported folder"]


@pytest.mark.parametrize("mapping", ["", "id=id,text=question_stem,options=options,answer=answer,images=image"])
def test_images_inside_parquet_are_written_out(tmp_path: Path, mapping: str) -> None:
    row = {"question_stem": "A woman.", "options": ["Gout", "Flu"], "answer": "B"}
    rows = [
        {"id": "c1", **row, "image": {"bytes": _IMAGE, "path": "scan.PNG"}},
        {"id": "c2", **row, "image": {"bytes": _IMAGE, "path": "../../x.sh"}},
        {"id": "c3", **row, "image": {"bytes": None, "path": "../../x.png"}},
    ]
    folder = tmp_path / "set" / "data"
    folder.mkdir(parents=True)
    polars.DataFrame(rows).write_parquet(folder / "test-00000-of-00001.parquet")
    made = imported(tmp_path / "set", tmp_path, mapping=mapping)
    [name] = {image for question in made.questions for image in question.images}
    assert name.startswith("images/")
    assert name.endswith(".png")
    assert made.artefact.file(name).read_bytes() == _IMAGE
    assert [question.id for question in made.questions] == ["c1", "c2"]
    assert reasons(made) == ["an image is outside the imported folder"]


@pytest.mark.parametrize("judgments", ["qrels.jsonl", "qrels.txt"])
def test_r2med_folder_brings_its_documents(tmp_path: Path, judgments: str) -> None:
    folder = tmp_path / "set"
    query = {"id": "q1", "text": "A case.", "answer": "Gout", "doc_id": ["d1"], "body_system": "Joints"}
    write_json_lines(folder / "query.jsonl", [query])
    write_json_lines(folder / "corpus.jsonl", [{"id": "d1", "text": "About gout."}, {"id": "d2", "text": "About flu."}])
    if judgments == "qrels.jsonl":
        write_json_lines(folder / judgments, [{"q_id": "q1", "p_id": "d1", "score": 1}])
    else:
        (folder / judgments).write_text("q1 0 d1 1\n")
    made = imported(folder, tmp_path)
    assert made.questions[0].facets == {"body_system": "Joints"}
    assert made.qrels() == {"q1": {"d1": 1}}
    [ranked] = hb.retrieve(tmp_path / "made", "bm25", tmp_path / "ranked", progress=hb.SILENT)
    assert ranked.manifest.metrics


def test_beir_folder(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    write_json_lines(folder / "queries.jsonl", [{"_id": "q1", "text": "gout?"}])
    write_json_lines(folder / "corpus.jsonl", [{"_id": "d1", "title": "Gout", "text": "About gout."}])
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    made = imported(folder, tmp_path)
    assert [(q.id, q.text, q.documents) for q in made.questions] == [("q1", "gout?", ("d1",))]
    assert (tmp_path / "made-corpus" / "manifest.json").is_file()
    assert [each.name for each in made.artefact.manifest.inputs] == ["queries.jsonl", "test.tsv", "made-corpus"]


LETTERS = {"A": "Gout", "B": "Flu", "C": "Measles", "D": "Mumps"}


def test_medqa_and_medagentsbench(tmp_path: Path) -> None:
    medqa = {"question": "Which?", "answer": "Flu", "options": LETTERS, "meta_info": "step1", "answer_idx": "B"}
    made = imported(write_json_lines(tmp_path / "medqa.jsonl", [medqa]), tmp_path)
    assert made.questions == [
        Question(
            id="medqa-00001",
            text="Which?",
            answer="Flu",
            options=tuple(LETTERS.values()),
            facets={"meta_info": "step1"},
        )
    ]
    listed = [{"question": "Which?", "options": LETTERS, "answer_idx": "D", "realidx": "7"}]
    (tmp_path / "hard.json").write_text(json.dumps(listed))
    made = imported(tmp_path / "hard.json", tmp_path)
    assert [(q.id, q.answer) for q in made.questions] == [("7", "Mumps")]


@pytest.mark.parametrize(("numbers", "first"), [((0, 3), 0), ((1, 4), 1)])
def test_medmcqa_tells_how_it_counts(tmp_path: Path, numbers: tuple[int, int], first: int) -> None:
    rows = [
        {
            "id": f"m{place}",
            "question": "Which?",
            **{"opa": "Gout", "opb": "Flu", "opc": "Measles", "opd": "Mumps"},
            "cop": number,
            "exp": "Long.",
            "subject_name": "Medicine",
            "topic_name": None,
        }
        for place, number in enumerate(numbers)
    ]
    made = imported(write_json_lines(tmp_path / "dev.jsonl", rows), tmp_path)
    assert [question.answer for question in made.questions] == ["Gout", "Mumps"]
    assert made.artefact.manifest.metrics["notes"] == [f"cop counts from {first}"]
    unclear = imported(write_json_lines(tmp_path / "one.jsonl", [{**rows[0], "cop": 2}]), tmp_path, count_from=1)
    assert unclear.questions[0].answer == "Flu"
    with pytest.raises(InputError, match="count-from"):
        imported(write_json_lines(tmp_path / "one.jsonl", [{**rows[0], "cop": 2}]), tmp_path)


def test_pubmedqa_of_the_authors_and_of_the_hub(tmp_path: Path) -> None:
    own = {"QUESTION": "Does it?", "CONTEXTS": ["One.", "Two."], "final_decision": "maybe", "LONG_ANSWER": "It may."}
    (tmp_path / "ori_pqal.json").write_text(json.dumps({"123": own}))
    made = imported(tmp_path / "ori_pqal.json", tmp_path)
    [question] = made.questions
    assert (question.id, question.context, question.answer) == ("123", "One.\n\nTwo.", "maybe")
    assert question.options == ("yes", "no", "maybe")
    hub = {"pubid": 123, "question": "Does it?", "context": {"contexts": ["One.", "Two."]}, "final_decision": "maybe"}
    assert imported(write_json_lines(tmp_path / "pqal.jsonl", [hub]), tmp_path).questions == made.questions


def test_transplantqa_list_and_a_plain_column(tmp_path: Path) -> None:
    listed = [{"id": "t1", "question": "May I drive?", "group": "kidney", "topics": ["daily life"]}]
    (tmp_path / "questions.json").write_text(json.dumps(listed))
    [question] = imported(tmp_path / "questions.json", tmp_path).questions
    assert question == Question(id="t1", text="May I drive?", facets={"group": "kidney", "topics": ["daily life"]})
    plain = imported(write_table(tmp_path / "list.csv", [{"question": "May I drive?"}]), tmp_path)
    assert [(q.id, q.text) for q in plain.questions] == [("list-00001", "May I drive?")]


def test_any_table_by_a_mapping(tmp_path: Path) -> None:
    rows = [{"key": "x", "q": "Which?", "a": "Gout", "b": "Flu", "gold": "b", "area": "Joints"}]
    made = imported(
        write_table(tmp_path / "t.csv", rows),
        tmp_path,
        mapping="id=key,text=q,options=a+b,answer=gold,facets.topic=area",
    )
    assert made.questions == [
        Question(id="x", text="Which?", answer="Flu", options=("Gout", "Flu"), facets={"topic": "Joints"})
    ]
    with pytest.raises(UsageError, match="no field 'z'"):
        imported(tmp_path / "t.csv", tmp_path, mapping="text=z")
    with pytest.raises(UsageError, match="does not say where the question is"):
        imported(tmp_path / "t.csv", tmp_path, mapping="id=key")


def test_a_table_names_its_documents_without_a_mapping(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "documents": "doc-1"}, {"question": "When?", "documents": ""}]
    made = imported(write_table(tmp_path / "t.csv", rows), tmp_path)
    assert [question.documents for question in made.questions] == [("doc-1",), ()]
    assert made.qrels() == {made.questions[0].id: {"doc-1": 1}}
    assert import_notes(made.artefact) == []
    texts = [{"question": "Which?", "documents": "A text of a document. " * 30}]
    made = imported(write_table(tmp_path / "texts.csv", texts), tmp_path)
    assert made.qrels() == {}
    assert "not used: documents." in import_notes(made.artefact)[0]


def test_fields_that_were_not_used_are_named(tmp_path: Path) -> None:
    rows = [{"question": "Which?", "group": "kidney", "proof": "word " * 100}]
    file = write_table(tmp_path / "t.csv", rows)
    with pytest.warns(UserWarning, match=r"not used: proof\."):
        hb.import_benchmark(file, tmp_path / "made", progress=hb.SILENT)
    with pytest.warns(UserWarning, match=r"not used: group\."):
        hb.import_benchmark(file, tmp_path / "made", mapping="text=question,context=proof", progress=hb.SILENT)


def test_rows_that_can_not_be_read_are_listed(tmp_path: Path) -> None:
    good = {"id": "1", "question": "Which?", "options": LETTERS, "answer": "A"}
    rows = [good, {**good, "id": "2", "answer": "Z"}, {**good, "question": ""}, good]
    file = write_json_lines(tmp_path / "q.jsonl", rows)
    file.write_text(file.read_text() + "{broken\n")
    made = imported(file, tmp_path)
    assert [question.id for question in made.questions] == ["1"]
    assert [reason.partition(":")[0] for reason in reasons(made)] == [
        "the answer 'Z' is not one of the options",
        "the field 'question' has no text",
        "an earlier row has the same id",
        "not readable JSON",
    ]
    counts = made.artefact.manifest.counts
    assert (counts.kept, counts.rejected) == (1, 4)


def test_a_file_without_rows_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    polars.DataFrame(CUPCASE).write_parquet(tmp_path / "whole.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "whole.parquet").read_bytes()[:200])
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "header.csv").write_text("id,clean text,final diagnosis\n")
    (tmp_path / "broken.jsonl").write_text("{\n")
    (tmp_path / "folder").mkdir()
    expected = {
        "cut.parquet": "can't read the Parquet table",
        "empty.csv": "the file is empty",
        "header.csv": "no row below its header",
        "broken.jsonl": "line 1: not readable JSON",
        "folder": "the folder has no table",
    }
    for name, words in expected.items():
        with pytest.raises(InputError, match=words) as refused:
            imported(tmp_path / name, tmp_path)
        assert refused.value.fix
    write_table(tmp_path / "cupcase.csv", CUPCASE)
    with pytest.raises(InputError) as refused:
        imported(tmp_path / "cupcase.csv", tmp_path, form="medqa")
    assert "give --as cupcase" in str(refused.value.fix)


@pytest.mark.parametrize("form", ["jsonl", "huggingface", "cupcase", "clinbench", "lm-eval", "inspect", "sourceqa"])
def test_what_hoofbeat_exports_comes_back(tmp_path: Path, bench: Benchmark, form: str) -> None:  # noqa: F811
    export_benchmark(bench, tmp_path / "out", form)
    made = imported(tmp_path / "out", tmp_path)
    asked = [(q.id, q.full_text) for q in bench.questions]
    assert [(q.id, q.full_text) for q in made.questions] == asked
    if form != "sourceqa":
        assert [(q.context, q.answer, q.options) for q in made.questions] == [
            (q.context, q.answer, q.options) for q in bench.questions
        ]
    if form in ("jsonl", "huggingface"):
        assert made.questions == bench.questions
        assert made.editions() == bench.editions()
    if form == "clinbench":
        assert Benchmark(made.artefact, "image").questions[0].images == ("images/0.png",)


def test_a_predictions_folder_is_a_benchmark(tmp_path: Path) -> None:
    row = {"id": "1", "question": "Which?", "options": LETTERS, "answer": "A", "predicted": "B", "model": "m"}
    hb.import_predictions(write_json_lines(tmp_path / "p.jsonl", [row]), tmp_path / "run")
    made = hb.import_benchmark(tmp_path / "run", tmp_path / "bench")
    assert [(q.id, q.answer, q.options) for q in made.questions] == [("1", "Gout", tuple(LETTERS.values()))]


def test_the_command_says_what_it_found_and_what_to_do(tmp_path: Path) -> None:
    file = write_table(tmp_path / "odd.csv", [{"foo": "1", "bar": "2"}])
    done = hoofbeat("benchmark", "import", str(file), "-o", "b", folder=tmp_path, code=1)
    assert "foo, bar" in done.stderr
    assert "--mapping" in done.stderr
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("A. Gout\nB. Flu", {"A": "Gout", "B": "Flu"}),
        ("(A) E. coli sepsis (B) C. difficile colitis", {"A": "E. coli sepsis", "B": "C. difficile colitis"}),
        ("A) M. canis sepsis\nB) B. fragilis sepsis", {"A": "M. canis sepsis", "B": "B. fragilis sepsis"}),
    ],
)
def test_lettered_lines(text: str, options: dict[str, str]) -> None:
    assert lettered_lines(text) == options


def test_options_and_answers_in_their_many_forms() -> None:
    assert options_of([{"key": "A", "value": "x"}, {"key": "B", "value": "y"}]) == {"A": "x", "B": "y"}
    assert options_of('["x", "y"]') == {"A": "x", "B": "y"}
    assert right_option("(b)", {"A": "x", "B": "y"}) == "y"
    assert right_option("X", {"A": "x", "B": "y"}) == "x"
    assert right_option(0, {"A": "x", "B": "y"}, 0) == "x"
    with pytest.raises(InputError, match="same text"):
        options_of(["x", "X"])


@pytest.mark.parametrize("form", ["jsonl", "huggingface", "lm-eval", "inspect"])
@pytest.mark.parametrize("options", [(), ("Gout", "Sepsis", "Scurvy")])
def test_accepted_answers_come_back(tmp_path: Path, form: str, options: tuple[str, ...]) -> None:
    accepted = AcceptedAnswer(text="Sepsis", by=("human:a", "gpt"), study="round 1", note="both hold")
    question = Question(id="q", text="Which?", answer="Gout", accepted=(accepted,), options=options)
    write_benchmark(tmp_path / "bench", [question], title="t", inputs=[], counts=Counts(kept=1))
    export_benchmark(Benchmark.open(tmp_path / "bench"), tmp_path / "out", form)
    [found] = imported(tmp_path / "out", tmp_path).questions
    assert found.right_answers == ("Gout", "Sepsis")
    if form != "inspect":  # its targets are texts
        assert found.accepted == (accepted,)


def test_a_table_may_accept_several_answers(tmp_path: Path) -> None:
    rows = [{"q": "Which?", "a": "Gout", "b": "Uric arthritis", "c": ""}]
    made = imported(write_table(tmp_path / "t.csv", rows), tmp_path, mapping="text=q,answer=a,accepted=b+c")
    assert made.questions[0].right_answers == ("Gout", "Uric arthritis")


MEDQA = {"question": "A boy coughs.\n\nWhich?", "answer": "Flu", "options": LETTERS, "answer_idx": "B"}
PUBLISHED: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "cupcase": ("test.jsonl", CUPCASE),
    "clinbench": (
        "clinbench-text.json",
        [{"id": "c1", "question_stem": "A woman.", "options": "A. Gout\nB. Flu", "answer": "B"}],
    ),
    "ogcare": (
        "ogcarebench.json",
        [
            {
                "Title": "A rare fever",
                "pmc_id": "PMC1",
                "Classification": "Cardiology",
                "Original Question": "A man.\n\nWhat next?",
                "Question": "A man, a dog.\n\nWhat next?",
                "Answer": "Echocardiography",
            }
        ],
    ),
    "medqa": ("medqa.jsonl", [MEDQA]),
    "medmcqa": (
        "dev.jsonl",
        [{"id": "m", "question": "Which?", "opa": "Gout", "opb": "Flu", "opc": "Measles", "opd": "Mumps", "cop": 0}],
    ),
    "pubmedqa": (
        "pqal.jsonl",
        [{"pubid": 1, "question": "Does it?", "context": {"contexts": ["One."]}, "final_decision": "no"}],
    ),
    "inspect": ("samples.jsonl", [{"id": "i", "input": "Which?", "choices": ["Gout", "Flu"], "target": "B"}]),
    "table": ("asked.jsonl", [{"id": "t1", "question": "May I drive?", "group": "kidney"}]),
    "beir": ("queries.jsonl", [{"_id": "q1", "text": "gout?"}]),
    "r2med": ("query.jsonl", [{"id": "q1", "text": "A case.", "answer": "Gout", "doc_id": ["d1"]}]),
}
EXPORTED = {"medqa": "lm-eval", "medmcqa": "lm-eval", "pubmedqa": "huggingface", "table": "sourceqa"}


def published(form: str, folder: Path) -> Path:
    """A file or folder in the released layout."""
    name, rows = PUBLISHED[form]
    folder.mkdir()
    path = folder / name
    path.write_text(json.dumps(rows) if path.suffix == ".json" else "".join(json.dumps(row) + "\n" for row in rows))
    if form not in ("beir", "r2med"):
        return path
    key = "_id" if form == "beir" else "id"
    write_json_lines(folder / "corpus.jsonl", [{key: f"d{n}", "title": f"T{n}", "text": "Of gout."} for n in range(2)])
    if form == "beir":
        (folder / "qrels").mkdir()
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td0\t0\n")
    else:
        write_json_lines(folder / "qrels.jsonl", [{"q_id": "q1", "p_id": "d1", "score": 1}])
    return folder


@pytest.mark.parametrize("form", PUBLISHED)
def test_each_format_is_imported_run_and_exported_again(
    tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = imported(published(form, tmp_path / "given"), tmp_path)
    assert made.artefact.manifest.settings["format"] == form
    (tmp_path / "model.jsonl").write_text('{"contains": "", "text": "The answer is B."}\n')
    run = hb.answer(made, tmp_path / "run", model="replay:model.jsonl", progress=hb.SILENT)
    assert [answer.failure for answer in run.answers] == [None] * len(made.questions)
    if made.questions[0].options:
        assert all(answer.choice for answer in run.answers)
    if made.questions[0].answer:
        assert "likert" in forms_in(tmp_path / "made"), "reviewers can rate what was imported"
    parts = ("leaks", "options")  # what is left looks at places and loads no vocabulary
    assert hb.check(made, tmp_path / "check", rules_only=True, left_out=parts).summary["questions"]
    again = EXPORTED.get(form, form)
    export_benchmark(made, tmp_path / "out", again, corpus=corpus_beside(made.artefact))
    back = Benchmark(import_benchmark(tmp_path / "out", tmp_path / "back"))
    assert [(q.full_text, q.answer, sorted(q.options)) for q in back.questions] == [
        (q.full_text, q.answer, sorted(q.options)) for q in made.questions
    ]
    assert [q.id for q in back.questions] == [q.id for q in made.questions]
    assert back.qrels() == made.qrels()
    export_benchmark(made, tmp_path / "whole", "jsonl")
    assert Benchmark(import_benchmark(tmp_path / "whole", tmp_path / "same")).questions == made.questions


def test_a_list_of_questions_serves_an_audit_and_a_run_s_questions_are_a_benchmark(tmp_path: Path) -> None:
    file = write_table(tmp_path / "list.csv", [{"question": "May I drive?"}, {"question": "May I swim?"}])
    asked, [source] = named_questions(str(file))
    assert [question.text for question in asked] == ["May I drive?", "May I swim?"]
    assert source.name == "list.csv"
    with pytest.raises(UsageError, match="a benchmark is a folder"):
        Benchmark.open(file)
    row = {"id": "1", "question": "Which?", "options": LETTERS, "answer": "A", "predicted": "B", "model": "m"}
    hb.import_predictions(write_json_lines(tmp_path / "p.jsonl", [row]), tmp_path / "run")
    assert Benchmark.open(tmp_path / "run").questions[0].answer == "Gout"
    bare = {name: value for name, value in row.items() if name != "question"}
    hb.import_predictions(write_json_lines(tmp_path / "p.jsonl", [bare]), tmp_path / "bare")
    with pytest.raises(InputError, match="do not include the text"):
        Benchmark.open(tmp_path / "bare")


def test_lineage_comes_back_from_the_hub(tmp_path: Path) -> None:
    question = Question(id="q", text="Which?", answer="Gout", lineage=(Step(name="write", model="m", note="n"),))
    write_benchmark(tmp_path / "bench", [question], title="t", inputs=[], counts=Counts(kept=1))
    export_benchmark(Benchmark.open(tmp_path / "bench"), tmp_path / "out", "huggingface")
    assert imported(tmp_path / "out", tmp_path).questions == [question]


@pytest.mark.parametrize("first", ["", "sep=;\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8-sig", "cp1252"])
def test_a_table_with_semicolons_is_read(tmp_path: Path, first: str, encoding: str) -> None:
    file = tmp_path / "asked.csv"
    rows = [
        "id;question;topic",
        'q1;"May I eat sushi; or raw fish?";food',
        "q2;Is 38,5 °C a fever, or not?;fever",
    ]
    file.write_bytes((first + "\r\n".join(rows) + "\r\n").encode(encoding))
    asked = Benchmark(import_benchmark(file, tmp_path / "made")).questions
    assert [(each.id, each.text, each.facets) for each in asked] == [
        ("q1", "May I eat sushi; or raw fish?", {"topic": "food"}),
        ("q2", "Is 38,5 °C a fever, or not?", {"topic": "fever"}),
    ]


def test_semicolons_inside_a_table_with_commas_separate_nothing(tmp_path: Path) -> None:
    file = tmp_path / "asked.csv"
    file.write_text('id,question,"topic; or field"\nq1,One; two; three; four?,food\n', "utf-8")
    [asked] = Benchmark(import_benchmark(file, tmp_path / "made")).questions
    assert (asked.id, asked.text) == ("q1", "One; two; three; four?")


def test_the_hint_names_the_field_that_looks_like_the_question(tmp_path: Path) -> None:
    table = tmp_path / "fragen.csv"
    table.write_text("Nr;Frage;Antwort\n1;Darf ich rohen Fisch essen?;nein\n", encoding="utf-8")
    with pytest.raises(InputError, match="no known question format") as refused:
        imported(table, tmp_path)
    assert "--mapping text=Frage,answer=FIELD" in str(refused.value.fix)
    made = imported(table, tmp_path, mapping="text=Frage,answer=Antwort")
    assert [each.text for each in made.questions] == ["Darf ich rohen Fisch essen?"]
