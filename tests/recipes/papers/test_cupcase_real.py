"""The recipe of CUPCase over real reports, with a model of simple rules."""

from __future__ import annotations

import gzip
import re
from itertools import islice
from pathlib import Path

from hoofbeat.benchmarks import Benchmark
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus_import import import_corpus
from hoofbeat.corpus.roles import assign_roles
from hoofbeat.models import ChatRequest
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.papers.cupcase import RECIPE, CupcaseSettings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.store.tables import read_jsonl, read_tsv
from tests.helpers import shared_data
from tests.recipes.case_answers import CLEAN, first_options, material
from tests.recipes.support import Script, build

FAST = CupcaseSettings()

_NAMED = re.compile(r"(?:diagnosis of|diagnosed (?:with|as))\s+(?:an? |the )?((?:[\w'’-]+ ?){1,5})", re.IGNORECASE)
_STOP = re.compile(r"\b(?:was|were|is|which|who|that|with|by|based|and|or|on|after|at|made|in|due|since|for)\b")


def _by_rule(name: str, request: ChatRequest) -> object:
    """A model of simple rules: the first sentence that says "diagnosis of ..." or "diagnosed with ..."."""
    if name == "cut-check":
        return CLEAN
    if name == "case-options":
        return first_options(request)
    shown = material(request)
    if name == "case-shown":
        numbers = re.findall(r"(?<=[ ,])(\d+) \(", shown["notes"].partition("\n")[0])
        return {
            "last": int(numbers[-1]) if numbers else len(shown["case"].split("\n")),
            "hide": [],
            "trim": [],
            "reworded": [],
        }
    body = shown["report"]
    for start, end in sentence_spans(body):
        sentence = body[start:end]
        if match := _NAMED.search(sentence):
            words = sentence[max(0, match.start() - 60) : match.end()].split()
            diagnosis = _STOP.split(match[1])[0].strip()
            return {"kind": "diagnosis", "quote": " ".join(words[1:]), "diagnosis": diagnosis, "synonyms": []}
    return {"kind": "no diagnosis", "quote": "", "diagnosis": "", "synonyms": []}


def _reports(folder: Path, count: int) -> list[Document]:
    sample = folder / "reports.jsonl"
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream, sample.open("wb") as out:
        out.writelines(islice(stream, count))
    import_corpus([sample], folder / "all")
    return [assign_roles(document) for document in Corpus.open(folder / "all").documents()]


def test_real_reports_end_to_end(tmp_path: Path) -> None:
    documents = _reports(tmp_path, 12)
    script = Script(_by_rule)
    artefact = build(tmp_path, RECIPE, documents, FAST, {"model": script})
    counts = artefact.manifest.counts
    assert counts.kept + counts.rejected + counts.failed == 12
    assert counts.failed == 0
    assert counts.kept >= 3
    came = 12
    for row in read_tsv(artefact.file("funnel.tsv")):
        assert int(row["in"]) == came
        assert int(row["in"]) == int(row["kept"]) + int(row["rejected"]) + int(row["failed"])
        came = int(row["kept"])
    by_id = {document.id: document for document in documents}
    items = {item.id: item for item in read_jsonl(artefact.file("items.jsonl"), RecipeItem)}
    for question in Benchmark(artefact).questions:
        leaks = find_leaks(question.context, question.answer, source=by_id[question.documents[0]])
        assert {leak.text for leak in leaks} <= set(items[question.id].get("allowed", ()))
        assert len(set(question.options)) == 4
    for item in read_jsonl(
        artefact.file("items.jsonl"), RecipeItem
    ):  # nothing was written, and what went is all listed
        start, end = item["case"]
        text = by_id[item.id].text
        gone = {place for each in item["removed"] for place in range(each["start"], each["end"])}
        kept = "".join(text[place] for place in range(start, end) if place not in gone)
        assert "".join(re.findall(r"\w", kept)) == "".join(re.findall(r"\w", item["stem"]))
    files, calls = dict(artefact.manifest.files), len(script.requests)
    again = build(tmp_path, RECIPE, documents, FAST, {"model": script})
    assert again.manifest.files == files
    assert len(script.requests) == calls
