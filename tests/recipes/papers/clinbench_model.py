"""A model for the tests of ClinBench that follows simple rules, or the gold of the teaching cases, or a test's word."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from hoofbeat import teaching
from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus.vocabulary import load_vocabulary
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.papers.clinbench import ClinbenchSettings
from hoofbeat.recipes.recipe_items import FailedItem, RejectedItem
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.recipes.case_answers import CLEAN, first_options, material

__all__ = ["GOLD", "TEACHING", "adds_up", "by_gold", "by_rules", "saying", "shown_to"]

TEACHING = ClinbenchSettings(select="", unique="", stem_words=60, physicians=0.3)
GOLD = {case.id: case for case in teaching.cases()}
_STATED = re.compile(
    r"diagnos(?:is of|ed with|ed as) (?:an? |the )?([A-Za-z][A-Za-z' -]{6,60}?)(?=[.,;(]| was| and | in )"
)


def shown_to(request: ChatRequest) -> dict[str, str]:
    return material(request)


def by_rules(name: str, request: ChatRequest) -> object:
    """Answers any report: the first diagnosis it states, other conditions it names, and a fixed list of proposals."""
    shown = shown_to(request)
    match name:
        case "case-diagnosis":
            found = _STATED.search(shown["report"])
            stated = found[1].strip() if found else "no statement"
            return {"kind": "diagnosis", "quote": found[0] if found else stated, "diagnosis": stated, "synonyms": []}
        case "case-shown":
            return _showing(shown)
        case "cut-check":
            return CLEAN
        case "clinbench-differentials":
            return {"alternatives": list(_named(shown["report"]))[:5]}
        case "clinbench-further" | "clinbench-proposals":
            proposals = ["Sarcoidosis", "Tuberculosis", "Multiple myeloma", "Lyme disease", "Amyloidosis", "Gout"]
            further = ["Brucellosis", "Scurvy", "Syphilis", "Syphilis", "Scurvy"]
            return {"diagnoses": proposals if name.endswith("proposals") else further}
        case "case-options":
            return first_options(request, 10)
        case "clinbench-images":
            return {"sentences": []}
    raise AssertionError(name)


def _showing(shown: dict[str, str]) -> dict[str, object]:
    """Show the case up to the first sentence in which the notes say that the answer or the outcome is told."""
    notes = dict(line.split(": ", 1) for line in shown["notes"].split("\n"))
    noted = [int(number) for number in re.findall(r"(?:^|, )(\d+)(?= \()", notes["the answer"])]
    outcome = re.findall(r"\d+", notes["outcome"])
    last = min([*noted, *map(int, outcome), 1 + len(shown["case"].split("\n"))]) - 1
    return {"last": last, "hide": [], "trim": [], "reworded": []}


def _named(text: str) -> Iterator[dict[str, str]]:
    vocabulary = load_vocabulary("icd10cm")
    for start, end in sentence_spans(text):
        for match in vocabulary.find_phrases(text[start:end]):
            if len(match.text.split()) > 1:
                yield {"quote": text[max(start, start + match.start - 30) : start + match.end], "name": match.text}


def by_gold(name: str, request: ChatRequest) -> object:
    """Answers the teaching cases as their gold says."""
    shown = shown_to(request)
    text = "\n".join(shown.values())
    if name == "case-diagnosis":
        case = next(case for case in GOLD.values() if case.title == shown["title"])
        known_as = [case.diagnosis, *case.synonyms, *case.abbreviations]
        quote = next(each for each in known_as if each.lower() in shown["report"].lower())
        return {"kind": "diagnosis", "quote": quote, "diagnosis": case.diagnosis, "synonyms": known_as[1:]}
    if name == "clinbench-differentials":
        case = next(case for case in GOLD.values() if case.diagnosis == shown["real diagnosis"])
        quoted = [each for each in case.differentials if each.lower() in text.lower()]
        return {"alternatives": [{"quote": each.lower(), "name": each} for each in quoted]}
    return by_rules(name, request)


def saying(**answers: Any) -> Callable[[str, ChatRequest], object]:
    """Answers by gold, but for these prompts (their last word) as given."""

    def says(name: str, request: ChatRequest) -> object:
        word = name.removeprefix("clinbench-").removeprefix("case-").replace("-", "_")
        if word in answers:
            return answers[word](request) if callable(answers[word]) else answers[word]
        return by_gold(name, request)

    return says


def adds_up(artefact: Artefact, documents: int) -> None:
    rows = list(read_tsv(artefact.file("funnel.tsv")))
    assert int(rows[0]["in"]) == documents
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        assert int(row["in"]) == int(row["kept"]) + int(row["rejected"]) + int(row["failed"])
        assert after is None or after["in"] == row["kept"]
    counts = artefact.manifest.counts
    assert counts.kept + counts.rejected + counts.failed == documents
    assert counts.kept == len(Benchmark(artefact).questions)
    assert counts.rejected == len(list(read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)))
    assert counts.failed == len(list(read_jsonl(artefact.file("failed.jsonl"), FailedItem)))
