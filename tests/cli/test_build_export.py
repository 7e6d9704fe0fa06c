"""`hoofbeat build` and `hoofbeat export`: recipes and formats by command, on the invented teaching cases."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.benchmarks.export import ExportFormat
from hoofbeat.recipes.recipe import Recipe, find_recipe
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.records import Question
from hoofbeat.registry import registry
from hoofbeat.store import Counts, open_artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.cli.recorded import EIGHT, answer_batch, record, teaching_cases
from tests.cli.support import hoofbeat, json_of

GIVEN = {"select": "", "unique": "", "stem_words": "60", "physicians": "0.3"}
WORDS = [word for name, value in GIVEN.items() for word in ("--" + name.replace("_", "-"), value)]
BUILD = ["build", "clinbench", "cases", *WORDS]
OWN = """
import re

from hoofbeat.recipes.recipe_items import ItemRejection
from hoofbeat.recipes.recipe import RecipeOutput, Recipe, from_documents
from hoofbeat.recipes.steps import check
from hoofbeat.recipes.context import RecipeSettings
from hoofbeat.records import Question

class OwnSettings(RecipeSettings, frozen=True, kw_only=True):
    max_letters: int = 90

def short(item, context):
    if len(item["title"]) > context.settings.max_letters:
        return ItemRejection(reason="a long title")
    return item

RECIPE = Recipe(
    name="own", title="Titles", about="Asks for titles.", settings=OwnSettings, begin=from_documents,
    steps=lambda s: [check("short title", short)],
    finish=lambda items, context: RecipeOutput(questions=tuple(
        Question(id=item.id, text="What is the title?", answer=item["title"], documents=item.documents)
        for item in items
    )),
)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight teaching cases, a recorded model, and a benchmark built with it."""
    place = tmp_path_factory.mktemp("built")
    record(place, teaching_cases(place, *EIGHT), (find_recipe("clinbench"), GIVEN))
    hoofbeat(*BUILD, "-o", "bench", "--model", "replay:calls.jsonl", "--ledger", "bench.sqlite", folder=place)
    return place


# -- building


def test_every_recipe_is_a_command_with_its_parameters(tmp_path: Path) -> None:
    listed = hoofbeat("build", "--help", folder=tmp_path).stdout
    assert all(f"\n  {name} " in listed for name in (*registry.names(Recipe), "teaching"))
    shown = hoofbeat("build", "cupcase", "--help", folder=tmp_path).stdout
    for word in ("--first-rank", "[default: 2]", "--second-model", "--committee", "--estimate", "--seed"):
        assert word in shown


def test_a_benchmark_is_built_from_end_to_end(folder: Path) -> None:
    artefact = open_artefact(folder / "bench", "benchmark")
    funnel = list(read_tsv(artefact.file("funnel.tsv")))
    assert int(funnel[0]["in"]) == 8
    assert all(int(row["in"]) == sum(int(row[name]) for name in ("kept", "rejected", "failed")) for row in funnel)
    assert artefact.manifest.counts.kept == int(funnel[-1]["kept"]) == len(Benchmark(artefact).questions) == 6
    assert Benchmark(artefact).editions() == ["image"]
    assert artefact.manifest.settings["stem_words"] == 60
    assert artefact.manifest.models["model"].startswith("replay:")
    assert artefact.manifest.command[:3] == ["hoofbeat", "build", "clinbench"]
    hoofbeat("verify", "bench", folder=folder)


def test_json_says_what_was_made_and_what_it_cost(folder: Path, tmp_path: Path) -> None:
    words = [*BUILD, "-o", str(tmp_path / "again"), "--model", "replay:calls.jsonl", "--ledger", "bench.sqlite"]
    done = hoofbeat(*words, "--json", folder=folder)
    value = json_of(done)
    assert {"artefact", "kind", "counts", "cost", "seconds", "metrics"} <= set(value)
    assert value["kind"] == "benchmark"
    assert value["counts"]["kept"] + value["counts"]["rejected"] + value["counts"]["failed"] == 8
    assert value["cost"]["calls"] > 50
    assert ": 0 new calls" in done.stderr  # the ledger has them all
    first = open_artefact(folder / "bench").manifest
    assert open_artefact(tmp_path / "again").manifest.files == first.files


def test_an_estimate_names_the_step_and_leaves_nothing(folder: Path, tmp_path: Path) -> None:
    words = [
        *BUILD,
        "-o",
        str(tmp_path / "out"),
        "--model",
        "replay:calls.jsonl",
        "--ledger",
        str(tmp_path / "l.sqlite"),
    ]
    done = hoofbeat(*words, "--estimate", "--json", folder=folder)
    estimate = json_of(done)["estimate"]
    assert estimate["calls"] == 7
    assert estimate["cached"] == 0
    assert "the step “final diagnosis” (7 items)" in done.stderr
    assert not (tmp_path / "out").exists()
    words[words.index("--ledger") + 1] = "bench.sqlite"
    again = hoofbeat(*words, "--estimate", "--json", folder=folder)
    assert json_of(again)["estimate"]["calls"] == 0
    assert "the ledger already has" in again.stderr
    assert not (tmp_path / "out").exists()


def test_an_estimate_prices_all_steps_together_and_repairs(folder: Path, tmp_path: Path) -> None:
    words = [*BUILD, "-o", str(tmp_path / "out"), "--model", "openai:gpt-4o", "--ledger", str(tmp_path / "l.sqlite")]
    done = hoofbeat(*words, "--estimate", folder=folder)
    told = re.search(
        r"All steps together: at most (\d+) calls, about \$([\d.]+); with repairs at most (\d+), about \$([\d.]+)\.",
        done.stdout,
    )
    assert told
    calls, money, repaired, more = (float(part) for part in told.groups())
    by_step = [int(each) for each in re.findall(r": at most (\d+)", done.stderr.partition("Calls by step")[2])]
    assert (by_step[0], sum(by_step), repaired) == (7, calls, 2 * calls)
    first = re.search(r"Would make at most 7 calls: .* at most \$([\d.]+)", done.stdout)
    assert first
    assert money == pytest.approx(float(first[1]) * calls / 7, rel=0.1)
    assert more == pytest.approx(2 * money, rel=0.02)


def test_an_estimate_says_once_that_a_price_is_unknown(folder: Path, tmp_path: Path) -> None:
    words = [
        *BUILD,
        "-o",
        str(tmp_path / "out"),
        "--model",
        "batch:posted#free",
        "--ledger",
        str(tmp_path / "l.sqlite"),
    ]
    done = hoofbeat(*words, "--estimate", folder=folder)
    said = done.stdout + done.stderr
    assert said.count("price unknown") == 1
    assert "All steps together: at most" in said
    assert "Prices marked" not in said


def test_a_budget_stops_and_a_larger_one_goes_on(folder: Path, tmp_path: Path) -> None:
    words = [
        *BUILD,
        "-o",
        str(tmp_path / "out"),
        "--model",
        "replay:calls.jsonl",
        "--ledger",
        str(tmp_path / "l.sqlite"),
    ]
    hoofbeat(*words, "--budget", "30calls", folder=folder, code=3)
    assert not (tmp_path / "out").exists()
    done = hoofbeat(*words, "--budget", "500calls", folder=folder)
    assert "30 from the ledger" in done.stderr
    assert open_artefact(tmp_path / "out").manifest.files == open_artefact(folder / "bench").manifest.files


def test_a_batch_folder_carries_a_recipe_across_its_rounds(tmp_path: Path) -> None:
    """Of four cases: the whole set takes as many rounds, and each round runs the recipe from its start."""
    cases = teaching_cases(tmp_path, "hbt-case-01", "hbt-case-05", "hbt-case-09", "hbt-case-19")
    record(tmp_path, cases, (find_recipe("clinbench"), GIVEN))
    hoofbeat(*BUILD, "-o", "bench", "--model", "replay:calls.jsonl", "--ledger", "bench.sqlite", folder=tmp_path)
    posted = tmp_path / "posted"
    words = [*BUILD, "-o", "out", "--model", f"batch:{posted}#m", "--ledger", "l.sqlite"]
    rounds: list[int] = []
    while not (tmp_path / "out").exists():
        number = len(rounds) + 1
        done = hoofbeat(*words, folder=tmp_path, code=4)
        assert done.stdout.startswith("Waiting for a batch: ")
        assert done.stdout.endswith(f" → {posted}\n")
        assert f"requests-{number:03d}.jsonl for the step “" in done.stdout
        assert f"(round {number})" in done.stdout
        assert "error" not in done.stderr
        assert "From candidates to questions" in done.stderr
        assert (posted / "out-so-far" / "rejected.jsonl").is_file()
        requests, answers = posted / f"requests-{number:03d}.jsonl", posted / f"answers-{number}.jsonl"
        rounds.append(answer_batch(tmp_path / "calls.jsonl", requests, answers))
        if sum(rounds) == len((tmp_path / "calls.jsonl").read_text(encoding="utf-8").splitlines()):
            hoofbeat(*words, folder=tmp_path)
    # One of repairs, one of the final review and one after the trials, whose solver errs; alternatives were enough.
    assert len(rounds) == 10
    built, bench = (Benchmark.open(tmp_path / name).questions for name in ("out", "bench"))
    assert bench
    assert [(q.id, q.context, q.options) for q in built] == [(q.id, q.context, q.options) for q in bench]


def test_reviewers_labels_are_applied(folder: Path, tmp_path: Path) -> None:
    task = next(read_jsonl(folder / "bench" / "review.jsonl", ReviewTask))
    labels = tmp_path / "labels.csv"
    labels.write_text(
        f"item,criterion,value,note\n{task.item},{task.criteria[0]},lacks an age,add it\n", encoding="utf-8"
    )
    words = [*BUILD, "-o", str(tmp_path / "out"), "--model", "replay:calls.jsonl", "--ledger", "bench.sqlite"]
    value = json_of(hoofbeat(*words, "--reviews", str(labels), "--json", folder=folder))
    assert value["counts"]["reasons"]["waits for its revision"] == 1
    assert task.item not in {question.id for question in Benchmark.open(tmp_path / "out").questions}
    assert "labels.csv" in {each.name for each in open_artefact(tmp_path / "out").manifest.inputs}


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["nothing", "cases"], 2, "use one of: clinbench, cupcase, ogcare, r2med, sourceqa, teaching; or the path"),
        (["./missing.py", "cases"], 2, "there is no such recipe file"),
        (["clinbench", "cases", "--stem-word", "3"], 2, "'--stem-words'"),
        (["clinbench", "cases", "--stem-words", "many"], 2, "stem_words"),
        (["clinbench", "cases", "--stem-words", "0"], 2, "stem_words"),
        (["clinbench", "cases", "--images", "maybe"], 2, "'maybe'"),
        (["clinbench", "cases", "--select", "nonsense(3)"], 2, "unknown filter 'nonsense'"),
        (["clinbench", "cases", "--reviews", "missing.csv"], 1, "there is no such file"),
        (["ogcare", "cases", "--citations", "missing.csv"], 1, "there is no such file"),
        (["sourceqa", "cases", "--harvest", "[calls.jsonl, missing.csv]"], 1, "there is no such file"),
        (["r2med", "cases", "--task", "qa-reference"], 2, "--posts FILE"),
        (["cupcase", "nowhere"], 1, "there is no such folder"),
        (["cupcase", "cases", "--model", "replay:missing.jsonl"], 1, "missing.jsonl"),
    ],
)
def test_what_can_t_be_built_is_said_before_anything_is_done(
    folder: Path, words: list[str], code: int, told: str
) -> None:
    done = hoofbeat("build", *words, "-o", "wrong", "--ledger", "wrong.sqlite", folder=folder, code=code)
    assert told in done.stderr
    assert not (folder / "wrong").exists()


def test_an_error_is_one_json_object_too(folder: Path) -> None:
    error = json_of(hoofbeat("build", "clinbench", "cases", "--stem-words", "many", "--json", folder=folder, code=2))
    assert error["exit"] == 2
    assert "stem_words" in error["error"]


def test_a_recipe_file_of_one_s_own(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN, encoding="utf-8")
    assert "--max-letters" in hoofbeat("build", "./own.py", "--help", folder=tmp_path).stdout
    words = ["build", "./own.py", str(folder / "cases"), "-o", "out", "--max-letters", "95", "--json"]
    value = json_of(hoofbeat(*words, folder=tmp_path))
    assert value["cost"]["calls"] == 0
    inputs = open_artefact(tmp_path / "out").manifest.inputs
    assert [each.name for each in inputs if each.kind == "plugin"] == ["own.py"]
    by_name = ["--plugin", "own.py", "build"]
    assert "\n  own " in hoofbeat(*by_name, "--help", folder=tmp_path).stdout
    hoofbeat(*by_name, "own", str(folder / "cases"), "-o", "named", "--max-letters", "95", folder=tmp_path)
    assert open_artefact(tmp_path / "named").manifest.files == open_artefact(tmp_path / "out").manifest.files
    assert value["counts"]["reasons"]["a long title"] == 6
    assert sorted(len(question.answer) for question in Benchmark.open(tmp_path / "out").questions) == [82, 91]


@pytest.mark.parametrize(
    ("text", "told"), [("x = 1 / 0", "ZeroDivisionError"), ("x = 1", "defines no extension"), ("x = (", "SyntaxError")]
)
def test_a_recipe_file_that_is_none(folder: Path, tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "own.py").write_text(text, encoding="utf-8")
    assert told in hoofbeat("build", "./own.py", str(folder / "cases"), folder=tmp_path, code=2).stderr


# -- exporting


@pytest.mark.parametrize("form", sorted(set(registry.names(ExportFormat)) - {"cupcase"}))
def test_every_format_is_written(folder: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "out"
    value = json_of(hoofbeat("export", "bench", "--as", form, "-o", str(out), "--json", folder=folder))
    assert {"artefact", "kind", "counts", "cost", "seconds"} <= set(value)
    assert value["kind"] == "export"
    assert value["counts"]["kept"] == len(Benchmark.open(folder / "bench").questions)
    assert open_artefact(out, "export").manifest.settings["format"] == form
    assert any(path.name != "manifest.json" for path in out.rglob("*") if path.is_file())
    hoofbeat("verify", str(out), folder=folder)


def test_cupcase_s_format_takes_four_options(folder: Path, tmp_path: Path) -> None:
    refused = hoofbeat("export", "bench", "--as", "cupcase", "-o", "wrong", folder=folder, code=2)
    assert "holds exactly four" in refused.stderr
    assert not (folder / "wrong").exists()
    question = Question(
        id="q-1",
        text="What is it?",
        context="An invented man.",
        answer="Gout",
        options=("Gout", "Sepsis", "Lupus", "Lyme"),
    )
    write_benchmark(tmp_path / "four", [question], title="invented", inputs=[], counts=Counts(kept=1))
    hoofbeat("export", "four", "--as", "cupcase", "-o", "out", folder=tmp_path)
    assert "Sepsis" in next((tmp_path / "out").glob("*.csv")).read_text(encoding="utf-8")


def test_an_edition_is_exported(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    value = json_of(
        hoofbeat("export", "bench", "--as", "clinbench", "--edition", "image", "-o", str(out), "--json", folder=folder)
    )
    assert value["counts"]["kept"] == len(Benchmark.open(folder / "bench", "image").questions)
    assert list((out / "images").rglob("*.png"))
    assert open_artefact(out).manifest.settings["edition"] == "image"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["bench", "--as", "clinbench", "--edition", "fee"], 1, "it has image"),
        (["bench", "--as", "nothing"], 2, "huggingface"),
        (["bench"], 2, "--as"),
        (["cases", "--as", "jsonl"], 1, "corpus"),
        (["bench", "--as", "jsonl", "--corpus", "nowhere"], 1, "there is no such folder"),
    ],
)
def test_what_can_t_be_exported(folder: Path, words: list[str], code: int, told: str) -> None:
    done = hoofbeat("export", *words, "-o", "wrong", folder=folder, code=code)
    assert told in done.stderr
    assert not (folder / "wrong").exists()


def test_formats_with_documents_need_the_corpus(folder: Path, tmp_path: Path) -> None:
    bench = tmp_path / "moved"
    (folder / "bench").rename(bench)
    try:
        alone = hoofbeat("export", str(bench), "--as", "beir", "-o", "wrong", folder=tmp_path, code=2)
        assert "--corpus" in alone.stderr
        hoofbeat("export", str(bench), "--as", "jsonl", "-o", "plain", folder=tmp_path)
        words = ["export", str(bench), "--as", "beir", "--corpus", str(folder / "cases"), "-o", "full"]
        hoofbeat(*words, folder=tmp_path)
        rows = (tmp_path / "full" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()
        assert "hbt-case-02" in {json.loads(row)["_id"] for row in rows}
    finally:
        bench.rename(folder / "bench")
