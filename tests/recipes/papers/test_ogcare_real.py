"""The recipe of OGCaReBench over real reports, with a model of simple rules."""

from __future__ import annotations

import gzip
import itertools
import re
from pathlib import Path

import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.importing import import_corpus
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.items import Failed, Rejected
from hoofbeat.recipes.papers.ogcare import RECIPE, OgcareSettings
from hoofbeat.recipes.reviewing import ReviewTask
from hoofbeat.records import Question
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.helpers import shared_data
from tests.recipes.papers.ogcare_case import GOOD
from tests.recipes.support import build, user_text


def _material(request: ChatRequest, name: str) -> str:
    found = re.search(rf'<material name="{name}[^"]*">\n(.*?)\n</material>', user_text(request), re.DOTALL)
    assert found, name
    return found[1]


def _sentences(text: str) -> list[str]:
    return [" ".join(each.split()) for each in re.findall(r"[A-Z][^.!?\n]{30,300}[.](?=\s)", text)]


def _quote(sentence: str) -> str:
    return " ".join(sentence.split()[:14])


def _by_rule(name: str, request: ChatRequest) -> object:
    """A model of simple rules: what was performed is the step, what came before it in the text the timeline."""
    if name in ("ogcare-significance", "ogcare-timeline", "ogcare-limitations"):
        told = _sentences(_material(request, "case report"))
        done = next((s for s in told if re.search(r"\b(was|were) (performed|started|administered)\b", s)), "")
    if name == "ogcare-significance":
        step = done.split(" was ")[0].split(" were ")[0].split(",")[-1].strip()[:100]
        why = next((s for s in told if re.search(r"\b(rare|first|unusual|novel)\b", s)), told[0])
        return {
            "significance": f"It reports {step}.",
            "quote": _quote(why),
            "step": step,
            "step_quote": _quote(done),
            "kind": "new-step" if done else "standard-step",
        }
    if name == "ogcare-timeline":
        first = next((n for n, s in enumerate(told) if "year-old" in s or "year old" in s), 0)
        before = [s for s in told[first : first + 6] if s != done]
        return {"events": [{"quote": _quote(s), "when": "before"} for s in before]}
    if name == "ogcare-limitations":
        against = [s for s in told if re.search(r"\b(not|failed|despite|without|unable|difficult)\b", s)][:2]
        return {"limitations": [{"limitation": "not possible", "quote": _quote(s)} for s in against]}
    if name == "ogcare-question":
        context = " ".join(line.removeprefix("- ") for line in _material(request, "facts").splitlines())
        step = _material(request, "decisive step")
        return {"answer": f"{step}.", "context": context, "question": "What should be done next?"}
    if name == "ogcare-core":
        return {"core": [_quote(sentence) for sentence in _sentences(_material(request, "case") + " ")[1:3]]}
    if name == "ogcare-distract":
        text = re.sub(r"\b(\d\d)(?=[ -]year)", lambda age: str(int(age[1]) + 3), _material(request, "case"))
        return {
            "changes": "age",
            "context": f"{text} There is also a longstanding mild seasonal allergy to pollen of grasses.",
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
    settings = OgcareSettings(sample=18, least_change=0.01)
    artefact = build(tmp_path, RECIPE, twenty, settings, _by_rule, seed=7)
    questions: list[Question] = Benchmark(artefact).questions
    originals = {question.id: question for question in Benchmark(artefact, "original").questions}
    rejected = list(read_jsonl(artefact.file("rejected.jsonl"), Rejected))
    failed = list(read_jsonl(artefact.file("failed.jsonl"), Failed))
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
    settings = OgcareSettings(sample=10, least_change=0.01)
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    first = build(one, RECIPE, twenty, settings, _by_rule, seed=3)
    second = build(two, RECIPE, twenty, settings, _by_rule, seed=3)
    assert first.manifest.files == second.manifest.files
    other = build(one, RECIPE, twenty, settings, _by_rule, seed=4)
    assert other.manifest.files["rejected.jsonl"] != first.manifest.files["rejected.jsonl"]
