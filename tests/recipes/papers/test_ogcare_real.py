"""The recipe of OGCaReBench over real reports, with a model of simple rules."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus_import import import_corpus
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.context import CUT_MARK
from hoofbeat.recipes.papers.ogcare import RECIPE, OgcareSettings
from hoofbeat.recipes.recipe_items import FailedItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.records import Question
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.helpers import shared_data
from tests.recipes.papers.ogcare_case import ADDED, GOOD
from tests.recipes.support import build, user_text


def _material(request: ChatRequest, name: str) -> str:
    found = re.search(rf'<material name="{name}[^"]*">\n(.*?)\n</material>', user_text(request), re.DOTALL)
    assert found, name
    return found[1]


def _lines(request: ChatRequest) -> dict[int, str]:
    """The numbered sentences of a report."""
    lines = _material(request, "case").removesuffix(CUT_MARK).splitlines()
    return {int(number): text for number, _, text in (line.partition(". ") for line in lines)}


def _having(told: dict[int, str], pattern: str) -> list[int]:
    return [number for number, text in told.items() if re.search(pattern, text)]


def _by_rule(name: str, request: ChatRequest) -> object:
    """A model of simple rules: what was performed is the step, what came before it in the text the timeline."""
    if name == "ogcare-significance":
        told = _lines(request)
        done = _having(told, r"\b(was|were) (performed|started|administered)\b")[:1]
        phrase = re.split(r" (?:was|were) ", told[done[0]])[0].split(",")[-1] if done else ""
        step = " ".join(phrase.split()[-10:])
        return {
            "significance": f"It reports {step}.",
            "significance_sentences": _having(told, r"\b(rare|first|unusual|novel)\b")[:2] or [1],
            "step_sentences": done or [1],
            "step": step,
            "kind": "new-step" if done else "standard-step",
        }
    if name == "ogcare-course":
        told = _lines(request)
        first = min(_having(told, "year[- ]old"), default=1)
        against = _having(told, r"\b(not|failed|despite|without|unable|difficult)\b")[:2]
        return {
            "before": [number for number in told if number >= first][:8] or [1, 2, 3],
            "after": [],
            "limitations": [{"limitation": "not possible", "sentences": [number]} for number in against],
        }
    if name == "ogcare-question":
        facts = [line.removeprefix("- ") for line in _material(request, "facts").splitlines()]
        step = _material(request, "decisive step")
        return {
            "answer": f"{step}.",
            "rationale": "The facts lead there.",
            "core": [fact[:390] for fact in facts[1:3]],
            "context": " ".join(facts),
            "question": "What should be done next?",
        }
    if name == "ogcare-distract":
        text = re.sub(r"\b(\d\d)(?=[ -]year)", lambda age: str(int(age[1]) + 3), _material(request, "case"))
        return {
            "changes": "age",
            "context": f"{text} Besides, the patient {ADDED[0]} and {ADDED[1]}.",
            "added": list(ADDED),
        }
    return GOOD[name]


@pytest.fixture(scope="module")
def twenty(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    folder = tmp_path_factory.mktemp("reports")
    sample = folder / "reports.jsonl"
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream, sample.open("wb") as out:
        out.writelines(itertools.islice(stream, 20))
    return Corpus(import_corpus([sample], folder / "corpus"))


def test_twenty_real_reports_end_to_end(tmp_path: Path, twenty: Corpus) -> None:
    settings = OgcareSettings(sample=18, min_change=0.01)
    artefact = build(tmp_path, RECIPE, twenty, settings, _by_rule, seed=7)
    questions: list[Question] = Benchmark(artefact).questions
    originals = {question.id: question for question in Benchmark(artefact, "original").questions}
    rejected = list(read_jsonl(artefact.file("rejected.jsonl"), RejectedItem))
    failed = list(read_jsonl(artefact.file("failed.jsonl"), FailedItem))
    assert len(questions) + len(rejected) + len(failed) == len(twenty) == 20
    assert sum(each.step == "sample" for each in rejected) == 2
    came = 20
    for row in read_tsv(artefact.file("funnel.tsv")):
        assert int(row["in"]) == came
        came = int(row["kept"])
        assert int(row["in"]) == came + int(row["rejected"]) + int(row["failed"])
    assert came == len(questions) == artefact.manifest.counts.kept
    assert len(questions) >= 2, artefact.manifest.counts.reasons
    assert all(each.reason for each in rejected)
    for question in questions:
        source = twenty.get(question.id).text
        assert len(question.evidence) >= 3
        assert all(source[span.start : span.end] == span.quote for span in question.evidence)
        assert question.answer == originals[question.id].answer
        assert question.context != originals[question.id].context
    assert len(list(read_jsonl(artefact.file("review.jsonl"), ReviewTask))) == len(questions)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, twenty: Corpus) -> None:
    settings = OgcareSettings(sample=10, min_change=0.01)
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    first = build(one, RECIPE, twenty, settings, _by_rule, seed=3)
    second = build(two, RECIPE, twenty, settings, _by_rule, seed=3)
    assert first.manifest.files == second.manifest.files
    other = build(one, RECIPE, twenty, settings, _by_rule, seed=4)
    assert other.manifest.files["rejected.jsonl"] != first.manifest.files["rejected.jsonl"]
