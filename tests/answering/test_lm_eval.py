"""Option likelihood against lm-evaluation-harness: its task, its scoring rule, and an independent forward pass."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hoofbeat.answering import PlannedAnswer, answer_all
from hoofbeat.answering.answer_calls import likelihood_calls
from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.benchmarks.export import export_benchmark
from hoofbeat.models import embedded
from hoofbeat.records import Answer, Question
from hoofbeat.store import Counts
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer
from tests.models.gguf_files import f32_copy
from tests.models.llama_numpy import Llama, Weights
from tests.models.support import a_model, ledger_in

QUESTIONS = [
    Question(id="e1", context="He has fever and a new murmur.", text="Which diagnosis?",
             options=("infective endocarditis", "a sprained ankle", "gout"), answer="infective endocarditis"),
    Question(id="e2", text="Which drug treats anaphylaxis first?",
             options=("oral paracetamol", "intramuscular adrenaline", "insulin glargine"),
             answer="intramuscular adrenaline"),
    Question(id="e3", text="Two plus two is", options=("five", "four", "a very large number"), answer="four"),
    Question(id="e4", text="The capital of France is", options=("London", "Rome, in Italy", "Paris"), answer="Paris"),
    Question(id="e5", context="The ECG shows peaked T waves.", text="What is too high in the blood?",
             options=("potassium", "oxygen", "vitamin C and zinc"), answer="potassium"),
]  # fmt: skip


def planned(protocol: str) -> list[PlannedAnswer]:
    return [
        PlannedAnswer(question=q, condition=f"closed, {protocol}", protocol=protocol, options=q.options)
        for q in QUESTIONS
    ]


def harness_task(folder: Path) -> Any:
    """The task of lm-evaluation-harness that `hoofbeat export` writes for these questions."""
    tasks = pytest.importorskip("lm_eval.tasks")
    write_benchmark(folder / "bench", QUESTIONS, title="invented", inputs=[], counts=Counts(kept=len(QUESTIONS)))
    out = export_benchmark(Benchmark.open(folder / "bench"), folder / "task", "lm-eval").path
    (loaded,) = (
        tasks.TaskManager(include_path=str(out), include_defaults=False).load(["hoofbeat_bench"])["tasks"].values()
    )
    return loaded


def harness_requests(task: Any) -> dict[str, list[tuple[str, str]]]:
    """What the harness would measure for each question."""
    task.build_all_requests(limit=None, rank=0, world_size=1)
    found: dict[str, list[tuple[str, str]]] = {}
    for instance in task.instances:
        found.setdefault(instance.doc["id"], []).append(tuple(instance.args))
    return found


def harness_scores(task: Any, totals: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """The harness's own scores for these log-likelihoods."""
    return {
        document["id"]: task.process_results(document, [(total, False) for total in totals[document["id"]]])
        for document in task.test_docs()
    }


def right(answers: list[Answer]) -> dict[str, float]:
    gold = {question.id: question.answer for question in QUESTIONS}
    return {answer.question: float(answer.choice == gold[answer.question]) for answer in answers}


def test_the_harness_asks_for_the_same_continuations(tmp_path: Path) -> None:
    asked = harness_requests(harness_task(tmp_path))
    assert asked == {item.question.id: likelihood_calls(item) for item in planned("likelihood")}


def test_the_same_log_likelihoods_give_the_harness_s_accuracy(tmp_path: Path) -> None:
    """Its acc is our likelihood, its acc_norm (a character) our likelihood/byte: these options are ASCII."""
    task = harness_task(tmp_path)
    with FaultServer() as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger)
        raw, byte = (answer_all(model, planned(protocol)) for protocol in ("likelihood", "likelihood/byte"))
    scores = harness_scores(task, {a.question: [each.total for each in a.likelihoods] for a in raw})
    assert right(raw) == {id: each["acc"] for id, each in scores.items()}
    assert right(byte) == {id: each["acc_norm"] for id, each in scores.items()}
    assert len(set(right(raw).values()) | set(right(byte).values())) == 2


@pytest.mark.slow
def test_the_embedded_weights_are_scored_as_the_harness_scores_them_in_numpy(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The harness on log-likelihoods of a forward pass in numpy, ours on those of the server, the same weights."""
    needs_weights("smollm2-135m")
    task = harness_task(tmp_path)
    path = f32_copy(tmp_path_factory)
    reference = Llama(Weights(path), np.float32)
    totals: dict[str, list[float]] = {}
    with embedded.start_embedded(str(path), context=512, threads=1) as server:
        for id, calls in harness_requests(task).items():
            for context, continuation in calls:
                whole, before = (_tokens(server, text) for text in (context + continuation, context))
                value = reference.loglikelihood(whole[: len(before)], whole[len(before) :])
                totals.setdefault(id, []).append(value)
    with ledger_in(tmp_path) as ledger:
        model = a_model(f"embedded:{path}", ledger, context=512, timeout=600.0)
        raw, byte = (answer_all(model, planned(protocol)) for protocol in ("likelihood", "likelihood/byte"))
    scores = harness_scores(task, totals)
    assert right(raw) == {id: each["acc"] for id, each in scores.items()}
    assert right(byte) == {id: each["acc_norm"] for id, each in scores.items()}
    for answer in raw:
        assert [each.total for each in answer.likelihoods] == pytest.approx(totals[answer.question], abs=0.05)


def _tokens(server: embedded.EmbeddedServer, text: str) -> list[int]:
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.api_key}"}
    body = json.dumps({"content": text, "add_special": True}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{server.native_url}/tokenize", body, headers)) as response:
        found: list[int] = json.load(response)["tokens"]
    return found
