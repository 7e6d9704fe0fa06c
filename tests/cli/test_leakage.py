"""`hoofbeat leakage` as it is run: planted leakage is told, controls are kept, nothing is asked twice."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from hoofbeat.benchmarks import write_benchmark
from hoofbeat.corpus.corpus import DOCUMENTS
from hoofbeat.leakage.leakage_text import plan_leakage
from hoofbeat.records import Answer, Document, Judgment, Question
from hoofbeat.store import Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl
from tests.cli.support import hoofbeat, json_of
from tests.helpers import needs_weights
from tests.leakage.leakage_model import invented_questions

QUESTIONS = invented_questions(10)
KNOWN = ("q-01", "q-04", "q-05", "q-07", "q-08")
GUID = "0f0e0d0c-0b0a-4908-8706-050403020100"


def a_corpus(target: Path) -> None:
    documents = [
        Document(
            id=q.documents[0], title=f"Report {q.id}", text=f"{q.context}\n\n{q.evidence[0].quote}", facets=q.facets
        )
        for q in QUESTIONS
    ]
    copied = f"Seen elsewhere: {QUESTIONS[2].context} benchmark canary GUID {GUID}"
    documents.append(Document(id="copy", title="A copy (invented)", text=copied))
    with create(target) as draft:
        write_jsonl(draft.path / DOCUMENTS, documents)
        draft.finish(Manifest(kind="corpus", counts=Counts(kept=len(documents))))


def a_replay(path: Path, known: Collection[str]) -> None:
    """A recorded model that goes on with the questions it knows, and has one sentence for everything else."""
    rules = [
        {"contains": item.first[-80:] + "\n</material>\n\nThe continuation:", "text": item.rest}
        for item in plan_leakage(QUESTIONS)
        if item.question.id in known
    ]
    rules.append({"contains": "", "text": "Nothing more can be said of it than has been said before now."})
    path.write_text("".join(json.dumps(rule) + "\n" for rule in rules), encoding="utf-8")


def some_judgments(target: Path, model: str) -> None:
    """Closed book right on sources up to 2021, with the source always."""
    answers, judgments = [], []
    for question in QUESTIONS:
        for condition in ("closed", "oracle"):
            right = condition == "oracle" or int(str(question.facets["year"])) <= 2021
            answers.append(Answer(question=question.id, model=model, condition=condition, text="Invented."))
            label = "equivalent" if right else "mismatch"
            judgments.append(
                Judgment(question=question.id, model=model, condition=condition, judge="judge", label=label)
            )
    with create(target) as draft:
        write_jsonl(draft.path / "questions.jsonl", QUESTIONS)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "judgments.jsonl", judgments)
        draft.finish(Manifest(kind="judgments", models={"answer": model}, counts=Counts(kept=len(judgments))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    a_corpus(tmp_path / "corpus")
    corpus = open_artefact(tmp_path / "corpus")
    write_benchmark(
        tmp_path / "bench", QUESTIONS, title="invented", inputs=[corpus.reference()], counts=Counts(kept=len(QUESTIONS))
    )
    a_replay(tmp_path / "knows.jsonl", KNOWN)
    a_replay(tmp_path / "blank.jsonl", ())
    return tmp_path


BOTH = ("--model", "replay:knows.jsonl", "--model", "replay:blank.jsonl")


def test_planted_leakage_is_told(folder: Path) -> None:
    some_judgments(folder / "judged", "replay:knows.jsonl")
    done = hoofbeat(
        "leakage", "bench", *BOTH, "--judged", "judged", "--cutoff", "replay:knows.jsonl=2021", "--json", folder=folder
    )
    summary = json_of(done)["summary"]
    shares = {row["model"]: row for row in summary["overlaps"] if row["probe"] == "continuation" and not row["by"]}
    knows, blank = shares["replay:knows.jsonl"], shares["replay:blank.jsonl"]
    assert (knows["reproduced"], blank["reproduced"]) == (len(KNOWN), 0)
    assert knows["rouge"]["value"] > blank["rouge"]["high"]  # ten questions: the intervals themselves may touch
    assert summary["near"] == {"document": 1, "question": 0}
    assert summary["canaries_found"] == 1
    assert {row["name"] for row in summary["canaries"]} == {
        "this benchmark", "BIG-bench", "found in document copy",
    }  # fmt: skip
    assert all(row["unscored"] == {"unsupported": row["planned"]} for row in summary["likelihoods"])
    dates = {row["model"]: row for row in summary["dates"]}
    assert dates["replay:knows.jsonl"]["positions"] == {"before": 6, "after": 4, "same year": 0, "undated": 0}
    assert dates["replay:blank.jsonl"]["cutoff"] is None
    by_date = {row["condition"]: row for row in summary["date_accuracies"]}
    assert (by_date["closed"]["before"], by_date["closed"]["after"]) == (1.0, 0.0)
    assert by_date["oracle"]["difference"] == 0.0
    [gap] = summary["gaps"]
    assert (gap["both"], gap["oracle_only"], gap["closed_only"]) == (6, 4, 0)
    assert gap["gap"]["paired"]["difference"] == pytest.approx(0.4)
    near = json.loads((folder / "leakage" / "near.jsonl").read_text(encoding="utf-8"))
    assert (near["question"], near["other"], near["score"]) == ("q-02", "copy", 1.0)


def test_a_cutoff_is_for_the_model_whatever_its_temperature(folder: Path) -> None:
    some_judgments(folder / "judged", "m[temperature=0.6]")
    left_out = [word for part in ("likelihood", "continuation", "rationale", "canary") for word in ("--without", part)]
    words = ["leakage", "bench", "--model", "replay:blank.jsonl", *left_out, "--judged", "judged", "--cutoff", "m=2021"]
    summary = json_of(hoofbeat(*words, "--json", folder=folder))["summary"]
    [dated] = [row for row in summary["dates"] if row["model"] == "m[temperature=0.6]"]
    assert dated["positions"]["before"] == 6
    assert {row["model"] for row in summary["date_accuracies"]} == {"m[temperature=0.6]"}


def test_the_table_and_the_caveats_are_printed(folder: Path) -> None:
    told = hoofbeat("leakage", "bench", *BOTH, folder=folder).stderr
    assert "continuation" in told
    assert "5 = 50.0%" in told
    assert "returns no log-probabilities" in told
    assert "the end of its training data is unknown" in told
    assert "consistent with" in told
    assert "canary of found in document copy: gave 0 of 16" in told


def test_the_folder_is_whole_and_the_same_again_without_a_call(folder: Path) -> None:
    first = hoofbeat("leakage", "bench", *BOTH, folder=folder).stderr
    files = {path.name: path.read_bytes() for path in (folder / "leakage").iterdir()}
    again = hoofbeat("leakage", "bench", *BOTH, folder=folder).stderr
    assert ": 0 new calls" not in first
    assert again.count(": 0 new calls") == 2
    assert {path.name: path.read_bytes() for path in (folder / "leakage").iterdir()} == files
    manifest = open_artefact(folder / "leakage", "leakage").manifest
    assert manifest.seeds == {"controls": 0, "bootstrap": 0}
    assert set(manifest.prompts) == {"continuation", "rationale", "canary"}
    assert list(manifest.costs) == ["replay:knows.jsonl", "replay:blank.jsonl"]
    sheet = (folder / "leakage" / "questions.tsv").read_text(encoding="utf-8").splitlines()
    assert len(sheet) == 1 + 2 * len(QUESTIONS)
    assert all(line.count("\t") == sheet[0].count("\t") for line in sheet)
    hoofbeat("verify", "leakage", folder=folder)
    assert "Signs of leakage over" in hoofbeat("show", "leakage", folder=folder).stdout


def test_the_estimate_asks_nothing(folder: Path) -> None:
    done = json_of(hoofbeat("leakage", "bench", *BOTH, "--estimate", "--json", folder=folder))
    assert done["estimate"]["calls"] > 2 * 2 * len(QUESTIONS)
    assert not (folder / "leakage").exists()
    few = json_of(
        hoofbeat("leakage", "bench", *BOTH, "--estimate", "--json", "--without", "likelihood", "--without", "canary",
                 "--without", "rationale", folder=folder)
    )  # fmt: skip
    assert few["estimate"]["calls"] == 2 * len(QUESTIONS)


def test_parts_can_be_left_out_and_another_benchmark_searched(folder: Path) -> None:
    theirs = [Question(id="t-1", text=QUESTIONS[6].context), Question(id="t-2", text="Something quite different here?")]
    write_benchmark(folder / "theirs", theirs, title="invented", inputs=[], counts=Counts(kept=2))
    left_out = [word for part in ("likelihood", "continuation", "rationale", "canary") for word in ("--without", part)]
    done = hoofbeat(
        "leakage", "bench", "--model", "replay:blank.jsonl", *left_out, "--against", "theirs", "--json", folder=folder
    )
    found = json_of(done)
    assert found["summary"]["near"] == {"document": 1, "question": 0, "theirs": 1}
    assert found["cost"]["calls"] == 0
    assert found["summary"]["overlaps"] == []


def test_mistakes_are_said_before_anything_is_asked(folder: Path) -> None:
    def said(*words: str) -> str:
        return hoofbeat("leakage", "bench", "--model", "replay:blank.jsonl", *words, folder=folder, code=2).stderr

    assert "not a cutoff" in said("--cutoff", "replay:blank.jsonl=soon")
    assert "neither probed nor in a run" in said("--cutoff", "other=2024-01")
    assert "no edition 'free'" in said("--control-edition", "free")
    some_judgments(folder / "judged", "m")
    told = hoofbeat("leakage", "bench", "--judged", "judged", "--judged", "judged", folder=folder, code=1).stderr
    assert "scored twice" in told
    other = [Question(id="x", text="Another?")]
    write_benchmark(folder / "other", other, title="invented", inputs=[], counts=Counts(kept=1))
    told = hoofbeat("leakage", "other", "--judged", "judged", folder=folder, code=2).stderr
    assert "has no scored answer to a question" in told
    assert not (folder / "leakage").exists()


@pytest.mark.slow
def test_the_embedded_model_scores_a_question(folder: Path) -> None:
    """Air-gapped: perplexities of the model that ships, for one question, of a hundred characters each."""
    needs_weights("demo")
    words = ("--limit", "1", "--characters", "100", "--without", "rationale", "--without", "canary", "--json")
    summary = json_of(hoofbeat("leakage", "bench", *words, folder=folder))["summary"]
    texts = {row["text"]: row for row in summary["likelihoods"] if not row["by"]}
    assert set(texts) == {"question", "reference", "explanation"}
    for row in texts.values():
        assert row["perplexity"]["n"] == 1
        assert row["perplexity"]["value"] > 1
        assert row["lowest"]["value"] < 0
    assert summary["dates"][0]["cutoff"]["kind"] == "released"
