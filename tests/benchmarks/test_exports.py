"""Every export is written and loaded back, with the library it is made for."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import KIND
from hoofbeat.benchmarks.export import ExportFormat, export_benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.qrels import read_qrels, write_qrels
from hoofbeat.corpus.readers.beir import read_beir
from hoofbeat.corpus.readers.r2med import read_r2med
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Document, Question, Span
from hoofbeat.registry import registry
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import read_jsonl, write_jsonl
from tests.recipes.support import a_corpus

os.environ["HF_HUB_OFFLINE"] = "1"
_IMAGE = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001a5f64540"
    "0000000049454e44ae426082"
)


def _question(number: int, **more: Any) -> Question:
    given: dict[str, Any] = {
        "id": f"q{number}",
        "text": "What is the most likely diagnosis?",
        "context": f"An invented patient, number {number}, with fever.\nA second line, “quoted” and with = signs.",
        "answer": "=Sarcoidosis",
        "options": ("Tuberculosis", "=Sarcoidosis", "Lymphoma", "Histoplasmosis"),
        "documents": (f"d{number}",),
        "evidence": (Span(document=f"d{number}", start=0, end=5, quote="A man"),),
        "facets": {"specialty": "Pulmonology", "topics": ["a", "b"], "group": "lung"},
    }
    return Question(**{**given, **more})


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    documents = [Document(id=f"d{n}", title=f"Case {n}", text="A man had a fever.", licence="CC BY") for n in range(3)]
    return a_corpus(tmp_path, documents)


@pytest.fixture
def bench(tmp_path: Path, corpus: Corpus) -> Benchmark:
    return Benchmark(_written(tmp_path / "bench", corpus, [_question(n) for n in range(3)]))


def _written(target: Path, corpus: Corpus, questions: list[Question]) -> Any:
    free = [_question(n, options=()) for n in range(len(questions))]
    images = [_question(n, images=(f"images/{n}.png",)) for n in range(1)]
    with create(target) as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "questions-free.jsonl", free)
        write_jsonl(draft.path / "questions-image.jsonl", images)
        write_jsonl(draft.path / "questions-original.jsonl", [_question(0, context="Before.")])
        values = {"title": "Kept title", "distractors": ["Lymphoma", "Tuberculosis", "Histoplasmosis"]}
        write_jsonl(draft.path / "items.jsonl", [{"id": "q0", "values": values}])
        write_qrels(draft.path / "qrels.tsv", {"q0": {"d0": 2, "d1": 0}, "q1": {"d1": 1}, "q2": {"d2": 1}}, "beir")
        (draft.path / "images").mkdir()
        (draft.path / "images" / "0.png").write_bytes(_IMAGE)
        draft.finish(
            Manifest(
                kind=KIND,
                title="A benchmark | for a test",
                settings={"recipe": "cupcase"},
                inputs=[corpus.artefact.reference()],
                models={"model": "scripted"},
                prompts={"cupcase-diagnosis": "cupcase-diagnosis@abc"},
                counts=Counts(kept=3, rejected=4, failed=1, reasons={"too short": 4}, failures={"schema": 1}),
                metrics={
                    "funnel": [{"step": "length", "in": 8, "kept": 4, "rejected": 4, "failed": 0}],
                    "tokens": {"tokenizer": "minilm", "question": {"minimum": 3, "median": 4.0}},
                    "facets": {"specialty": {"Pulmonology": 3}},
                    "review": {"leak": 1},
                },
            )
        )
    return open_artefact(target, KIND)


def _export(bench: Benchmark, form: str, corpus: Corpus | None, tmp_path: Path) -> Path:
    artefact = export_benchmark(bench, tmp_path / "out" / form, form, corpus=corpus)
    assert artefact.verify() == []
    assert artefact.manifest.counts.kept == len(bench.questions)
    return artefact.path


def test_own_format(bench: Benchmark, tmp_path: Path) -> None:
    folder = _export(bench, "jsonl", None, tmp_path)
    assert list(read_jsonl(folder / "questions.jsonl", Question)) == bench.questions
    assert (folder / "questions-free.jsonl").is_file()
    assert (folder / "images" / "0.png").read_bytes() == _IMAGE


def test_every_edition_with_every_judgment_or_one_with_its_own(
    bench: Benchmark, corpus: Corpus, tmp_path: Path
) -> None:
    whole = _export(bench, "jsonl", None, tmp_path)
    assert set(read_qrels(whole / "qrels.tsv")) == {"q0", "q1", "q2"}
    image = Benchmark(bench.artefact, "image")
    one = _export(image, "jsonl", None, tmp_path / "one")
    assert list(read_jsonl(one / "questions.jsonl", Question)) == image.questions
    assert read_qrels(one / "qrels.tsv") == {"q0": {"d0": 2, "d1": 0}}
    assert [path.name for path in one.glob("questions*")] == ["questions.jsonl"]
    hub = _export(image, "huggingface", corpus, tmp_path / "one")
    assert [path.parent.name for path in hub.rglob("*.parquet")] == ["image"]
    assert "config_name: default" not in (hub / "README.md").read_text()
    assert "1 questions in image (1)." in (hub / "DATASHEET.md").read_text()
    croissant = json.loads((_export(image, "croissant", corpus, tmp_path / "one") / "croissant.json").read_text())
    assert [records["name"] for records in croissant["recordSet"]] == ["image"]
    assert "1 questions" in croissant["description"]


def test_beir_and_r2med_come_back_with_their_grades(bench: Benchmark, corpus: Corpus, tmp_path: Path) -> None:
    beir = read_beir(_export(bench, "beir", corpus, tmp_path))
    assert beir.judgments["q0"] == {"d0": 2, "d1": 0}
    assert [question.text for question in beir.questions] == [question.full_text for question in bench.questions]
    r2med = read_r2med(_export(bench, "r2med", corpus, tmp_path))
    assert r2med.judgments["q0"]["d0"] == 2
    with pytest.raises(UsageError, match="includes the documents"):
        export_benchmark(bench, tmp_path / "none", "beir")
    assert not (tmp_path / "none").exists()


def test_ogcare(bench: Benchmark, corpus: Corpus, tmp_path: Path) -> None:
    folder = _export(bench, "ogcare", corpus, tmp_path)
    with (folder / "ogcarebench.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["Title"] for row in rows] == ["Kept title", "Case 1", "Case 2"]
    assert rows[0]["pmc_id"] == "d0"
    assert rows[0]["Classification"] == "Pulmonology"
    assert rows[0]["Original Question"].startswith("Before.")
    assert rows[1]["Original Question"] == rows[1]["Question"] == bench.questions[1].full_text
    assert rows[0]["Answer"] == "'=Sarcoidosis"  # no spreadsheet runs it
    listed = json.loads((folder / "ogcarebench.json").read_text())
    assert listed[0]["Answer"] == "=Sarcoidosis"


def test_cupcase(bench: Benchmark, tmp_path: Path) -> None:
    folder = _export(bench, "cupcase", None, tmp_path)
    with (folder / "cupcase.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert rows[0]["correct_diagnosis"] == "'=Sarcoidosis"
    assert [rows[0][f"distractor{n}"] for n in (2, 3, 4)] == ["Lymphoma", "Tuberculosis", "Histoplasmosis"]
    assert rows[0]["clean_case_presentation"] == bench.questions[0].context
    with pytest.raises(UsageError, match="no options"):
        export_benchmark(Benchmark(bench.artefact, "free"), tmp_path / "none", "cupcase")


@pytest.mark.parametrize("options", [("=Sarcoidosis", "a", "b", "c", "d"), ("a", "b", "c", "d"), ("=Sarcoidosis", "a")])
def test_cupcase_has_room_for_four_options(corpus: Corpus, tmp_path: Path, options: tuple[str, ...]) -> None:
    refused = _refused(tmp_path, corpus, "cupcase", options=options)
    assert "holds exactly four" in refused.what
    assert "--last-rank" in str(refused.fix)  # a benchmark of the recipe cupcase may have others: say what sets it


def test_clinbench(bench: Benchmark, tmp_path: Path) -> None:
    folder = _export(bench, "clinbench", None, tmp_path)
    entries = json.loads((folder / "clinbench-text.json").read_text())
    assert set(entries[0]) == {"id", "question_stem", "options", "answer"}
    assert entries[0]["options"].splitlines()[1] == "B. =Sarcoidosis"
    assert entries[0]["answer"] == "B"
    (shown,) = json.loads((folder / "clinbench-mm.json").read_text())
    assert (folder / shown["image"]).read_bytes() == _IMAGE


def test_the_image_edition_of_clinbench_is_the_image_benchmark_alone(bench: Benchmark, tmp_path: Path) -> None:
    folder = _export(Benchmark(bench.artefact, "image"), "clinbench", None, tmp_path)
    (shown,) = json.loads((folder / "clinbench-mm.json").read_text())
    assert (folder / shown["image"]).read_bytes() == _IMAGE
    assert not (folder / "clinbench-text.json").exists()


def test_sourceqa(bench: Benchmark, tmp_path: Path) -> None:
    rows = json.loads((_export(bench, "sourceqa", None, tmp_path) / "questions.json").read_text())
    assert rows[0]["group"] == "lung"
    assert rows[0]["topics"] == ["a", "b"]


def test_lm_evaluation_harness_runs_it(bench: Benchmark, tmp_path: Path) -> None:
    tasks = pytest.importorskip("lm_eval.tasks")
    manager = tasks.TaskManager(include_path=str(_export(bench, "lm-eval", None, tmp_path)), include_defaults=False)
    task = manager.load(["hoofbeat_cupcase"])["tasks"]["hoofbeat_cupcase"]
    documents = list(task.test_docs())
    assert [document["id"] for document in documents] == ["q0", "q1", "q2"]
    assert task.doc_to_choice(documents[0]) == list(bench.questions[0].options)
    assert task.doc_to_target(documents[0]) == 1
    assert task.doc_to_text(documents[0]).startswith(bench.questions[0].full_text)


def test_lm_evaluation_harness_takes_free_text(bench: Benchmark, tmp_path: Path) -> None:
    tasks = pytest.importorskip("lm_eval.tasks")
    folder = _export(Benchmark(bench.artefact, "free"), "lm-eval", None, tmp_path)
    manager = tasks.TaskManager(include_path=str(folder), include_defaults=False)
    task = manager.load(["hoofbeat_cupcase_free"])["tasks"]["hoofbeat_cupcase_free"]
    assert task.doc_to_target(next(iter(task.test_docs()))) == "=Sarcoidosis"


@pytest.mark.parametrize("edition", ["", "free", "image"])
def test_inspect_runs_it(bench: Benchmark, tmp_path: Path, edition: str) -> None:
    pytest.importorskip("inspect_ai")
    folder = _export(Benchmark(bench.artefact, edition), "inspect", None, tmp_path)
    (file,) = folder.glob("*.py")
    space: dict[str, Any] = {"__file__": str(file), "__name__": "exported"}
    exec(compile(file.read_text(), str(file), "exec"), space)
    task = space[file.stem]()
    sample = task.dataset[0]
    assert sample.id == "q0"
    assert sample.target == ("B" if edition != "free" else "=Sarcoidosis")
    if edition == "image":
        assert Path(sample.input[0].content[1].image).name == "0.png"
    assert len(task.dataset) == len(Benchmark(bench.artefact, edition).questions)
    assert bool(sample.choices) == (edition != "free")


def _refused(tmp_path: Path, corpus: Corpus, form: str, **question: Any) -> UsageError:
    bench = Benchmark(_written(tmp_path / "odd", corpus, [_question(0), _question(1, **question)]))
    with pytest.raises(UsageError) as caught:
        export_benchmark(bench, tmp_path / "none", form)
    assert not (tmp_path / "none").exists()
    assert caught.value.fix
    return caught.value


@pytest.mark.parametrize("form", ["lm-eval", "inspect"])
def test_harnesses_refuse_what_they_cannot_score(corpus: Corpus, tmp_path: Path, form: str) -> None:
    without = _refused(tmp_path / "a", corpus, form, answer="", options=())
    assert "q1 has no gold answer" in without.what
    assert "sourceqa" in str(without.fix)
    assert "not one of its options" in _refused(tmp_path / "b", corpus, form, answer="Gout").what


def test_lm_evaluation_harness_refuses_images(bench: Benchmark, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="q0 has images") as caught:
        export_benchmark(Benchmark(bench.artefact, "image"), tmp_path / "none", "lm-eval")
    assert "--as inspect" in str(caught.value.fix)


def test_more_options_than_letters_are_refused_with_a_way_out(corpus: Corpus, tmp_path: Path) -> None:
    options = ("=Sarcoidosis", *(f"Disease {number}" for number in range(26)))
    for form in ("clinbench", "inspect"):
        refused = _refused(tmp_path / form, corpus, form, options=options)
        assert "27 options" in refused.what
        assert "26" in str(refused.fix)


def test_inspect_asks_all_freely_where_some_have_no_options(corpus: Corpus, tmp_path: Path) -> None:
    mixed = Benchmark(_written(tmp_path / "mixed", corpus, [_question(0), _question(1, options=())]))
    folder = _export(mixed, "inspect", None, tmp_path)
    rows = [json.loads(line) for line in (folder / "questions.jsonl").read_text().splitlines()]
    assert [row["target"] for row in rows] == ["=Sarcoidosis", "=Sarcoidosis"]
    assert not any("choices" in row for row in rows)
    assert "model_graded_qa" in next(folder.glob("*.py")).read_text()


def test_hugging_face_loads_every_edition(bench: Benchmark, corpus: Corpus, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    folder = _export(bench, "huggingface", corpus, tmp_path)
    loaded = datasets.load_dataset(str(folder), "default", split="test", cache_dir=str(tmp_path / "cache"))
    assert loaded["id"][:] == ["q0", "q1", "q2"]
    assert loaded[0]["options"] == list(bench.questions[0].options)
    assert json.loads(loaded[0]["facets"])["topics"] == ["a", "b"]
    free = datasets.load_dataset(str(folder), "free", split="test", cache_dir=str(tmp_path / "cache"))
    assert free[0]["options"] == []
    assert 'config_name: "image"' in (folder / "README.md").read_text()


@pytest.mark.parametrize("form", ["croissant", "huggingface"])
def test_croissant_is_valid_and_its_records_load(bench: Benchmark, corpus: Corpus, tmp_path: Path, form: str) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    folder = _export(bench, form, corpus, tmp_path)
    described = mlcroissant.Dataset(jsonld=str(folder / "croissant.json"))
    assert not described.metadata.ctx.issues.errors
    assert described.metadata.to_json()["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    rows = list(described.records("default"))
    assert [row["default/id"].decode() for row in rows] == ["q0", "q1", "q2"]
    assert rows[0]["default/answer"].decode() == "=Sarcoidosis"


def test_datasheet_is_filled_from_the_manifest(bench: Benchmark, corpus: Corpus, tmp_path: Path) -> None:
    text = (_export(bench, "datasheet", corpus, tmp_path) / "DATASHEET.md").read_text()
    for said in ("too short | 4", "failed: schema | 1", "cupcase-diagnosis@abc", "Pulmonology | 3", "1 leak", "CC BY",
                 "length | 8 | 4 | 4 | 0", "free (3)", "Not for clinical use"):  # fmt: skip
        assert said in text, said
    assert "| reason for rejection | candidates |\n| --- | --- |\n| too short | 4 |" in text


_FORGED = "Safe\n\n## Licence and maintenance\n\nCC0. ![x](https://example.org/x.png) <img src=x>"


def test_what_a_folder_says_of_itself_forges_no_part_of_its_card(corpus: Corpus, tmp_path: Path) -> None:
    """A benchmark of somebody else: its title, notice, models and the names of its editions are in its manifest."""
    with create(tmp_path / "bench") as draft:
        write_jsonl(draft.path / "questions.jsonl", [_question(0)])
        write_jsonl(draft.path / "questions-x: y\nlicense: mit.jsonl", [_question(0)])
        draft.finish(
            Manifest(kind=KIND, title=_FORGED, notice=_FORGED, models={"writer": _FORGED}, settings={"recipe": _FORGED})
        )
    folder = _export(Benchmark(open_artefact(tmp_path / "bench")), "huggingface", corpus, tmp_path)
    card, sheet = ((folder / name).read_text() for name in ("README.md", "DATASHEET.md"))
    assert sheet.count("\n## Licence and maintenance") == 1
    assert "\n## Licence" not in card
    assert "![x]" not in card + sheet
    assert "<img" not in card + sheet
    assert not [line for line in card.splitlines() if line.startswith("license:")]


def test_same_benchmark_same_bytes(bench: Benchmark, corpus: Corpus, tmp_path: Path) -> None:
    for form in registry.names(ExportFormat):
        first = export_benchmark(bench, tmp_path / "a" / form, form, corpus=corpus).manifest.files
        assert export_benchmark(bench, tmp_path / "b" / form, form, corpus=corpus).manifest.files == first


def test_an_empty_benchmark_and_an_unknown_format_are_refused(corpus: Corpus, tmp_path: Path) -> None:
    empty = Benchmark(_written(tmp_path / "empty", corpus, []))
    with pytest.raises(InputError, match="no questions"):
        export_benchmark(empty, tmp_path / "none", "jsonl")
    with pytest.raises(UsageError, match="no export format"):
        export_benchmark(empty, tmp_path / "none", "xml")
