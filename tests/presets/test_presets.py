"""Papers' protocols from a benchmark to one report: the paper's tables, published figures, and every difference."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hoofbeat as hb
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.errors import BatchPending, OutputError, UsageError
from hoofbeat.models import Model
from hoofbeat.presets.paper_run import plain_findings
from hoofbeat.presets.protocol_steps import JudgeStep
from hoofbeat.reports.sections.protocol_section import read_differences
from hoofbeat.store import Counts, open_artefact
from tests.cli.test_kill import folder_bytes
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer
from tests.models.gguf_files import short_copy

CUPCASE = """id,clean text,final diagnosis,distractor1,distractor2,distractor3
1,A gardener had a painless nodule. Others came along the forearm.,Sporotrichosis,Cat scratch,Leishmaniasis,Erysipelas
2,A cook had fever and a new murmur after a tooth was pulled.,Infective endocarditis,Rheumatic fever,Influenza,Lupus
"""


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(paper: str, bench: Any, output: str = "paper", **options: Any) -> hb.ReportFolder:
    """Run a protocol without showing what it warns of."""
    with warnings.catch_warnings(record=True):
        made: hb.ReportFolder = hb.run_paper(paper, bench, output, progress=hb.SILENT, **options)
    return made


def differences(output: str = "paper") -> dict[str, str]:
    """What differs from the paper, as the run's folder lists it."""
    return {each.what: each.here for each in read_differences(open_artefact(Path(output) / "protocol"))}


def page(output: str = "paper") -> str:
    return (Path(output) / "report" / "report.md").read_text(encoding="utf-8")


def cupcase_bench(folder: str = "bench") -> hb.Benchmark:
    Path("cupcase.csv").write_text(CUPCASE, encoding="utf-8")
    return hb.import_benchmark("cupcase.csv", folder, progress=hb.SILENT)


def test_cupcase_by_letter_likelihood_and_free_text(server: FaultServer) -> None:
    needs_weights("minilm")
    bench = cupcase_bench()
    before = len(server.seen)
    expected = hb.run_paper("cupcase", bench, model=server.spec(), estimate=True, progress=hb.SILENT)
    assert len(server.seen) == before
    made = run("cupcase", bench, model=server.spec())
    assert len(server.seen) - before == expected.calls == 2 * 5 * (1 + 4 + 1)  # letter, four likelihoods, free text
    text = page()
    for table in (
        "Leaderboard, letter",
        "Leaderboard, likelihood",
        "How much of the case does a model need?",
        "mean of 8 × 500",
    ):
        assert table in text, table
    assert "published by CUPCase" in text
    assert "letter" not in "".join(line for line in text.splitlines() if line.startswith("| bertscore |"))
    assert set(differences()) == {"data set", "models", "prompts", "encoder", "tokens"}
    assert "2 questions of bench, imported" in differences()["data set"]
    assert "differs from CUPCase in 5 points" in text
    told = plain_findings(made.artefact)
    assert [line.split(":")[0] for line in told][:2] == ["closed, letter, accuracy", "closed, likelihood, accuracy"]
    assert any(line.startswith("closed, bertscore:") for line in told)


def test_letters_and_free_text_go_into_a_batch_folder_together() -> None:
    bench = cupcase_bench()
    with pytest.raises(BatchPending) as stopped:
        run("cupcase", bench, model="batch:posted#mine")
    assert (stopped.value.files, stopped.value.written) == (("requests-001.jsonl",), 2 * 5 * 2)
    assert len(Path("posted/requests-001.jsonl").read_text(encoding="utf-8").splitlines()) == 2 * 5 * 2


def clinbench_bench(*, text: bool = True) -> hb.Benchmark:
    Path("clinbench/images").mkdir(parents=True)
    Path("clinbench/images/a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"an invented picture")
    row = {"question_stem": "A woman has a swollen toe.", "options": "A. Gout\nB. Sepsis\nC. Flu", "answer": "A"}
    rows = [{"id": f"c{number}", **row, "question_stem": f"Case {number}. {row['question_stem']}"} for number in (1, 2)]
    if text:
        Path("clinbench/clinbench-text.json").write_text(json.dumps(rows), encoding="utf-8")
    shown = [{**each, "image": "images/a.png"} for each in rows]
    Path("clinbench/clinbench-mm.json").write_text(json.dumps(shown), encoding="utf-8")
    return hb.import_benchmark("clinbench", "bench", progress=hb.SILENT)


def test_clinbench_as_text_and_with_images(server: FaultServer) -> None:
    bench = clinbench_bench()
    spec, before = f"{server.spec()}[samples=2]", len(server.seen)
    parts = hb.run_paper("clinbench", bench, model=spec, judge=server.spec("judge"), estimate=True, progress=hb.SILENT)
    run("clinbench", bench, model=spec, judge=server.spec("judge"))
    seen = server.seen[before:]
    answers = [each for each in seen if each.body["model"] == "stub"]
    assert len(answers) == 2 * 2 * 2  # questions, runs, versions
    assert {each.body["temperature"] for each in answers} == {0.6}
    assert len(seen) <= parts.calls == 2 * 2 * 2 + 2 * 2  # every wrong answer to the text could need an error type
    text = page()
    for table in (
        "Right every time",
        "Text against images",
        "Sensitivity and specificity",
        "Runs and bootstrap samples",
    ):
        assert table in text, table
    assert {"runs", "worst@k", "human experts", "leakage", "judge"} <= set(differences())
    assert differences()["worst@k"].startswith("k = 1 to 2")
    assert "published by ClinBench" in text


def test_models_that_read_no_images_are_not_shown_any() -> None:
    bench = clinbench_bench(text=False)
    answers = Path("answers.jsonl")
    answers.write_text('{"contains": "", "text": "A"}\n', encoding="utf-8")
    made = run("clinbench", bench, model=f"replay:{answers}", limit=1)
    assert "Case 1." in page()
    assert differences()["text version"] == "not in this benchmark"
    assert [line.partition(":")[0] for line in plain_findings(made.artefact)] == ["images, letter, accuracy"]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three short documents as `documents`, questions on them as `bench`, and questions alone as `asked`."""
    folder = tmp_path_factory.mktemp("sources")
    (folder / "texts").mkdir()
    for name, word in (("a", "gout"), ("b", "sepsis"), ("c", "influenza")):
        (folder / "texts" / f"{name}.md").write_text(f"# {word}\n\nA man with {word} was told to rest and to drink.\n")
    corpus = hb.import_corpus(folder / "texts", folder / "documents", workers=1, progress=hb.SILENT)
    asked = [
        hb.Question(id=f"q{n}", text=f"What next in {document.title}?", answer="rest", documents=(document.id,))
        for n, document in enumerate(corpus.documents())
    ]
    write_benchmark(
        folder / "bench", asked, title="invented", inputs=[corpus.artefact.reference()], counts=Counts(kept=3)
    )
    (folder / "asked.csv").write_text("question\nMay I rest?\nWhen may I drink?\n", encoding="utf-8")
    hb.import_benchmark(folder / "asked.csv", folder / "asked", progress=hb.SILENT)
    return folder


def test_ogcare_closed_retrieved_and_oracle(server: FaultServer, sources: Path) -> None:
    needs_weights("minilm")
    options: dict[str, Any] = {"model": server.spec(), "judge": server.spec("judge"), "limit": 2}
    before = len(server.seen)
    expected = hb.run_paper("ogcare", sources / "bench", estimate=True, progress=hb.SILENT, **options)
    assert len(server.seen) == before
    made = run("ogcare", sources / "bench", **options)
    run_folder, judged = hb.open("paper/answers"), hb.open("paper/judged")
    assert run_folder.manifest.counts.kept == 2 * (1 + 2 * 3 + 1)  # closed, 1, 3 and 5 reports of two lines, oracle
    assert len(server.seen) - before <= expected.calls == run_folder.manifest.cost.calls + 16 + 2  # judged, explained
    assert judged.manifest.settings["aspects"] == ["equivalence", "failure-mode"]
    text = page()
    for table in ("R@1000", "Differences to the closed book", "oracle"):
        assert table in text, table
    found = differences()
    assert "254 tokens" in found["chunks"]
    assert found["judge"] == server.spec("judge")
    assert {"retrievers", "reranking", "agent", "sample", "data set"} <= set(found)
    assert any(line.startswith("oracle, accuracy:") for line in plain_findings(made.artefact))


def r2med_set(name: str, shift: int) -> Path:
    folder = Path("sets") / name
    folder.mkdir(parents=True)
    words = ["gout", "sepsis", "influenza", "lupus", "malaria"]
    rows: dict[str, list[dict[str, object]]] = {
        "query": [
            {
                "id": f"q{n}",
                "text": f"A case of {words[n + shift]}",
                "answer": words[n + shift],
                "doc_id": [f"d{n + shift}"],
            }
            for n in range(2)
        ],
        "corpus": [{"id": f"d{n}", "text": f"All about {word} and its treatment."} for n, word in enumerate(words)],
        "qrels": [{"q_id": f"q{n}", "p_id": f"d{n + shift}", "score": 1} for n in range(2)],
    }
    for file, lines in rows.items():
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"{file}.jsonl").write_text(text, encoding="utf-8")
    return folder


def test_r2med_over_sets_by_every_class_of_retriever(server: FaultServer) -> None:
    needs_weights("minilm")
    sets = [r2med_set("Biology", 0), r2med_set("IIYi-Clinical", 2)]
    made = run("r2med", sets, model=server.spec())
    text = page()
    assert "nDCG@10 by set, 9 lines" in text
    assert "| Biology | IIYi-Clinical | nDCG@10, average |" in text
    assert "published by R2MED" in text
    found = differences()
    assert found["sets"] == "2 sets: Biology (2), IIYi-Clinical (2)"
    assert {"encoders", "reranking", "search agents", "models"} <= set(found)
    told = plain_findings(made.artefact)
    assert told[0].partition(":")[0] == "nDCG@10, average"
    again = run("r2med", sets, "lines", model=server.spec(), retrievers=["bm25", "dense"], limit=1)
    assert again.manifest.counts.kept == 1 + 2 * 2
    assert differences("lines")["sample"] == "the first 1 of each set"
    assert {"models", "prompts"}.isdisjoint(differences("lines"))  # these lines ask no model


def test_lines_of_all_sets_go_into_a_batch_folder_together() -> None:
    sets = [r2med_set("Biology", 0), r2med_set("IIYi-Clinical", 2)]
    with pytest.raises(BatchPending) as stopped:
        run("r2med", sets, model="batch:posted#mine", retrievers=["bm25", "hyde > bm25", "reason > bm25"])
    assert (stopped.value.files, stopped.value.written) == (("requests-001.jsonl",), 2 * 2 * 2)  # sets, queries, lines


def test_transplantqa_is_the_audit(server: FaultServer, sources: Path) -> None:
    needs_weights("minilm")
    asked = sources / "asked"
    options: dict[str, Any] = {"model": server.spec(), "corpus": sources / "documents"}
    before = len(server.seen)
    expected = hb.run_paper("transplantqa", asked, estimate=True, progress=hb.SILENT, **options)
    made = run("transplantqa", asked, **options)
    assert 0 < len(server.seen) - before <= expected.calls
    assert hb.open("paper/audit").kind == "audit"
    found = differences()
    assert found["sources"] == "3 sources of documents"
    assert "it also answered" in found["judge"]
    assert "published by TransplantQA" in page()
    assert plain_findings(made.artefact)
    with pytest.raises(UsageError, match="one model and one retriever"):
        run("transplantqa", asked, "two", **{**options, "model": [server.spec("a"), server.spec("b")]})


def embedded_case(paper: str, sources: Path) -> dict[str, Any]:
    """The smallest benchmark that a protocol takes, and its options."""
    match paper:
        case "cupcase":
            return {"bench": cupcase_bench()}
        case "clinbench":
            return {"bench": clinbench_bench()}
        case "ogcare":
            return {"bench": sources / "bench", "retrievers": ["bm25[chunk=whole]"]}
        case "r2med":
            return {
                "bench": r2med_set("Biology", 0),
                "retrievers": ["bm25", "hyde > bm25", "search-r1[turns=1] > bm25"],
            }
        case _:
            return {"bench": sources / "asked", "corpus": sources / "documents"}


@pytest.mark.parametrize("paper", ["cupcase", "clinbench", "ogcare", "r2med", "transplantqa"])
def test_every_protocol_with_the_embedded_model(
    paper: str, sources: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Real weights answer and judge one question; what so small a model writes in a few tokens does not matter.

    ClinBench asks the default model, whole; the others ask its short copy.
    """
    needs_weights("minilm")
    model = f"embedded:{short_copy(tmp_path_factory)}"
    monkeypatch.setattr(Model, "limit", lambda *_: 12)
    options = {} if paper == "clinbench" else {"model": model}
    made = run(paper, **embedded_case(paper, sources), **options, limit=1)
    assert made.manifest.kind == "report"
    folders = [folder for folder in Path("paper").iterdir() if folder.name not in ("protocol", "report")]
    costs = [open_artefact(path.parent).manifest.cost for each in folders for path in each.rglob("manifest.json")]
    assert sum(cost.calls for cost in costs) > 0
    assert "Where this run differs from" in page()


def test_a_protocol_that_was_stopped_ends_with_the_same_bytes(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_weights("minilm")
    results = []
    for place in ("stopped", "quiet"):
        (tmp_path / place).mkdir()
        monkeypatch.chdir(tmp_path / place)
        bench = cupcase_bench()
        if place == "stopped":
            with monkeypatch.context() as patch:
                patch.setattr(JudgeStep, "write", _stop)
                with pytest.raises(KeyboardInterrupt):
                    run("cupcase", bench, model=server.spec())
            assert not Path("paper/report").exists()
            made = len(server.seen)
            run("cupcase", bench, model=server.spec(), judge=server.spec())
            assert len(server.seen) == made
        else:
            run("cupcase", bench, model=server.spec(), judge=server.spec())
        results.append(folder_bytes(Path("paper")))
    assert results[0] == results[1]


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_an_endpoint_lacks_is_said_and_not_an_error(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_weights("minilm")
    bench = cupcase_bench()
    monkeypatch.setattr("hoofbeat.models.http_backend.score_by_echo", _unsupported)
    run("cupcase", bench, model=server.spec("silent"), limit=1)
    found = differences()
    assert "no log-probabilities here" in found["not answered"]
    assert found["sample"] == "the first 1 of 2"


async def _unsupported(*_: object) -> object:
    from hoofbeat.models.requests import Trouble  # noqa: PLC0415 - only this test speaks as a backend

    return Trouble(kind="unsupported", message="no log-probabilities here")


def test_a_benchmark_of_another_kind_is_refused(server: FaultServer) -> None:
    Path("asked.csv").write_text("question\nMay I swim?\n", encoding="utf-8")
    bench = hb.import_benchmark("asked.csv", "asked", progress=hb.SILENT)
    with pytest.raises(UsageError, match="no question of this benchmark has options"):
        run("cupcase", bench, model=server.spec())
    with pytest.raises(UsageError, match="no question of this benchmark has options"):
        run("clinbench", bench, model=server.spec())
    with pytest.raises(UsageError, match="no question of this benchmark has a reference answer"):
        run("ogcare", bench, model=server.spec())
    with pytest.raises(UsageError, match="the documents are needed"):
        run("r2med", bench, model=server.spec())
    with pytest.raises(UsageError, match="takes one benchmark"):
        run("cupcase", [bench, bench], model=server.spec())
    with pytest.raises(UsageError, match="there is no preset 'cupcake'"):
        run("cupcake", bench, model=server.spec())
    assert not Path("paper").exists()


def test_a_folder_of_something_else_is_left_alone(server: FaultServer) -> None:
    bench = cupcase_bench()
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OutputError, match="not an earlier run"):
        run("cupcase", bench, "mine", model=server.spec())
    assert Path("mine/notes.txt").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize("folder", ["choices", "free", "report", "earlier"])
def test_notes_in_an_earlier_run_are_found_before_a_call(server: FaultServer, folder: str) -> None:
    bench = cupcase_bench()
    run("cupcase", bench, model=server.spec())
    known = sorted(path.name for path in Path("paper").iterdir())
    if folder == "earlier":  # a step that this protocol does not have
        manifest = Path("paper/protocol/manifest.json")
        told = json.loads(manifest.read_text(encoding="utf-8"))
        told["settings"]["folders"].append("earlier")
        manifest.write_text(json.dumps(told), encoding="utf-8")
        shutil.copytree("paper/report", "paper/earlier")
    assert folder in (*known, "earlier"), known
    notes = Path("paper") / folder / "notes.txt"
    notes.write_text("mine", encoding="utf-8")
    before = server.asked.total()
    with pytest.raises(OutputError, match=r"did not write \(notes\.txt\)"):
        run("cupcase", bench, model=server.spec(), seed=3)
    assert notes.read_text(encoding="utf-8") == "mine"
    assert server.asked.total() == before
    notes.unlink()
    run("cupcase", bench, model=server.spec())
    assert sorted(path.name for path in Path("paper").iterdir()) == known
