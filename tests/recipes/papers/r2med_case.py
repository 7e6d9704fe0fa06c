"""What the tests of the recipe r2med share: corpora, questions, and a model that answers by rule."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import collection_documents, read_passages
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.corpus_import import import_corpus
from hoofbeat.corpus.readers.beir import write_beir
from hoofbeat.corpus.readers.r2med import write_r2med
from hoofbeat.findings.ranking_measures import Measure, evaluate
from hoofbeat.models import ChatRequest
from hoofbeat.models.encoders.encoder_base import EncoderBase, Vectors
from hoofbeat.recipes.papers.r2med import RECIPE, R2medSettings
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.index.chunking import Chunking
from hoofbeat.retrieval.rankings.test_collection import open_collection
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv
from tests.helpers import shared_data
from tests.recipes.support import build, user_text

_PART = re.compile(r'<material name="([^"]*)">\n(.*?)\n</material>', re.DOTALL)
_NAMED = re.compile(
    r"\b(?:diagnos(?:is of|ed with)|cases? of) (tuberculosis|acute myocarditis|ulcerative colitis|diabetic ketoacidosis"
    r"|acute pancreatitis|pulmonary embolism|multiple myeloma|sarcoidosis)\b",
    re.IGNORECASE,
)


class Words(EncoderBase):
    """Stands in for the encoder's tokenizer: a token is a word."""

    identity = "words"
    dimension = 1

    def token_spans(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in re.finditer(r"\S+", text)]

    def encode(self, texts: Any, progress: Any = None) -> Vectors:
        raise AssertionError("nothing is encoded here")


def parts(request: ChatRequest) -> dict[str, str]:
    """What the user message holds between its material tags, by name."""
    return dict(_PART.findall(user_text(request)))


def by_rule(name: str, request: ChatRequest) -> object:
    """A model of simple rules: words in common make a document relevant."""
    told = parts(request)
    if name == "case-diagnosis":
        found = _NAMED.search(told["report"])
        diagnosis = found[1].lower() if found else "nothing"
        quote = found[0] if found else "words of no report"
        return {"kind": "diagnosis", "quote": quote, "diagnosis": diagnosis, "synonyms": []}
    if name == "case-shown":
        return show_by_rule(told)
    if name == "cut-check":
        return {
            "lost": [],
            "left": [],
            "reworded": [],
            "derivable": "",
            "reason": "nothing is missing",
            "usable": "yes",
        }
    if name == "r2med-quality":
        letters = re.findall(r"^Case ([A-Z])$", told["other cases"], re.MULTILINE)
        return {"reason": "told in full", "focus": 8, "completeness": 6, "similarity": dict.fromkeys(letters, 9)}
    if name == "r2med-type":
        kinds = {"diagnosis": "diagnos", "treatment": "treatment|management|therapy", "examination": "test|next step"}
        found_kind = (kind for kind, words in kinds.items() if re.search(words, told["question"][-200:]))
        return {"reason": "by its last words", "type": next(found_kind, "other")}
    if name == "r2med-rules":
        short = len(told["right answer"].split()) <= 5
        return {"reason": "by its length", "reasoning": "yes", "entity": "yes" if short else "no"}
    if name == "r2med-try":
        return {"choice": "A"}
    if name == "r2med-open":
        return {"question": told["sentence"].replace("Which of the following", "What").rstrip("?:. ") + "?"}
    if name == "r2med-reasoning":
        answer = " ".join(told["right answer"].split()[:40])
        return {
            "steps": ["The findings belong together.", "One thing explains them."],
            "conclusion": f"It is {answer}.",
        }
    if name.startswith("r2med-grade"):
        return grade_by_rule(told)
    if name == "specialty":
        return {"reason": "by its organ", "label": "Respiratory"}
    raise AssertionError(name)


def show_by_rule(told: dict[str, str]) -> dict[str, object]:
    """Show everything before the first sentence that names the answer or treats it."""
    numbered = re.findall(r"^(\d+)\. (.*)$", told["case"], re.MULTILINE)
    answer = rf"{re.escape(told['answer'])}|was (?:diagnosed|treated|discharged)"
    telling = [int(number) for number, text in numbered if re.search(answer, text, re.IGNORECASE)]
    last = min(telling, default=len(numbered) + 1) - 1
    while last and not re.search(r"\b(?:was|were|showed|revealed|had|came|presented)\b", numbered[last - 1][1]):
        last -= 1
    return {"last": last, "hide": [], "trim": [], "reworded": []}


def grade_by_rule(told: dict[str, str]) -> dict[str, object]:
    document = told.get("passage") or told["the other case"]
    wanted = set(re.findall(r"[a-z]{4,}", told["answer"].lower()))
    share = len(wanted & set(re.findall(r"[a-z]{4,}", document.lower()))) / max(1, len(wanted))
    return {"reason": f"{share:.2f} of its words", "relevance": round(10 * share), "support": round(9 * share + 1)}


# Real inputs


def shared_lines(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(shared_data(name)) as stream:
        yield from map(json.loads, stream)


def imported(tmp_path: Path, rows: list[dict[str, Any]]) -> Corpus:
    file = tmp_path / "documents.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_corpus([file], tmp_path / "source")
    return Corpus.open(tmp_path / "source")


def real_reports(tmp_path: Path) -> Corpus:
    """Reports that name one of eight diagnoses, and as many that don't."""
    rows = list(shared_lines("case_reports.jsonl.gz"))
    named = [row for row in rows if _NAMED.search(row["text"])][:60]
    return imported(tmp_path, named + [row for row in rows if not _NAMED.search(row["text"])][: len(named)])


def invented_reports(tmp_path: Path) -> Corpus:
    """Six invented reports: three patients with sarcoidosis, three with tuberculosis."""
    rows = []
    for number, (disease, told) in enumerate(product(("sarcoidosis", "tuberculosis"), ("cough", "fever", "rash"))):
        course = f"A {30 + number}-year-old man came with {told} that had lasted for weeks and kept him from his work."
        more = "He lived with a cat, ate well and smoked a pipe. On examination he was pale and his lungs were clear."
        tests = (
            "The calcium was 2.9 mmol/L and the sedimentation rate was 80 mm. A chest film showed large hilar nodes."
        )
        end = f"He was diagnosed with {disease}. He was treated and went home."
        rows.append({"pmcid": f"PMC{number}", "text": f"Case presentation\n\n{course} {more} {tests} {end}\n\n"
                     f"Discussion\n\nInvented cases of {disease} are told here."})  # fmt: skip
    return imported(tmp_path, rows)


def cited_pages(tmp_path: Path) -> tuple[Corpus, Path]:
    """Answers of institutions as pages; a post asks what one of them answers and cites another's page."""
    rows = list(shared_lines("medquad_multisource.jsonl.gz"))[:240]
    posts: list[dict[str, Any]] = []
    seen: set[str] = set()
    for row in rows:
        fellow = next(
            (each for each in rows if each["focus"] == row["focus"] and each["source"] != row["source"]), None
        )
        if row["focus"] not in seen and fellow is not None:
            seen.add(row["focus"])
            first = " ".join(row["answer"].split()[:60])
            posts.append({"id": f"post-{len(posts)}", "title": row["question"], "answer": first, "votes": 5,
                          "documents": [fellow["url"]]})  # fmt: skip
    posts[1]["votes"] = 3
    posts[2]["documents"] = ["https://nowhere.example/page"]
    file = tmp_path / "posts.jsonl"
    file.write_text("".join(json.dumps(post) + "\n" for post in posts[:20]))
    return imported(tmp_path, rows), file


def exam_questions(tmp_path: Path) -> tuple[Corpus, Path]:
    asked = [row for row in shared_lines("mcq_predictions.jsonl.gz") if row["question"] and row["dataset"] == "medqa"]
    file = tmp_path / "exam.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in asked))
    return imported(
        tmp_path, [row for row, _ in zip(shared_lines("guidelines.jsonl.gz"), range(150), strict=False)]
    ), file


def task_inputs(tmp_path: Path, task: str, **more: Any) -> tuple[Corpus, R2medSettings]:
    """The corpus of a task and its settings."""
    settings: dict[str, Any] = {"task": task, "retrievers": ("bm25",), **more}
    if task == "invented":
        corpus, settings["task"], settings["min_words"] = invented_reports(tmp_path), "clinical-case", 30
    elif task == "clinical-case":
        corpus = real_reports(tmp_path)
    elif task == "qa-reference":
        corpus, posts = cited_pages(tmp_path)
        settings["posts"] = str(posts)
    else:
        corpus, questions = exam_questions(tmp_path)
        settings["questions"] = str(questions)
    return corpus, R2medSettings(**settings)


def built_task(tmp_path: Path, task: str, says: Any = by_rule, **more: Any) -> tuple[Artefact, Corpus]:
    corpus, settings = task_inputs(tmp_path, task, **more)
    return build(tmp_path, RECIPE, corpus, settings, says, encoder=Words), corpus


# What every task must hold


def adds_up(artefact: Artefact) -> None:
    manifest = artefact.manifest
    funnel = list(read_tsv(artefact.file("funnel.tsv")))
    for before, after in pairwise(funnel):
        assert after["in"] == before["kept"]
    for row in funnel:
        assert int(row["in"]) == int(row["kept"]) + int(row["rejected"]) + int(row["failed"])
    assert int(funnel[0]["in"]) == manifest.counts.kept + manifest.counts.rejected + manifest.counts.failed
    assert manifest.counts.kept == len(Benchmark(artefact).questions)


def holds_together(artefact: Artefact, corpus: Corpus) -> None:
    """Judgments name what is searched; positives are where questions say; doubtful ones are nowhere."""
    bench = Benchmark(artefact)
    pieces = {piece.id: piece for piece in read_passages(artefact)}
    pool = list(read_tsv(artefact.file("pool.tsv")))
    kept = {question.id for question in bench.questions}
    positives = {row["document"] for row in pool if row["item"] in kept and row["verdict"] == "positive"}
    for question in bench.questions:
        qrels = bench.qrels()[question.id]
        assert set(qrels) <= set(pieces)
        found = [id for id, grade in qrels.items() if grade]
        assert found
        assert tuple(dict.fromkeys(pieces[id].document for id in found)) == question.documents
        for id in found:
            span = pieces[id].span(corpus.get(pieces[id].document))
            assert span in question.evidence
    for row in pool:
        low, high = (f(int(row["relevance"]), int(row["support"])) for f in (min, max))
        expected = "positive" if low >= 8 else "negative" if high <= 4 else "discarded"
        assert row["verdict"] == expected
        if row["item"] in kept:
            judged = bench.qrels()[row["item"]].get(row["document"])
            assert judged in {"positive": (1,), "negative": (0, None), "discarded": (None,)}[expected]
            assert expected != "discarded" or row["document"] not in pieces or row["document"] in positives


def searchable(artefact: Artefact, corpus: Corpus, tmp_path: Path) -> float:
    """Its layouts are read back, and what is searched can be ranked and measured by the judgments."""
    bench = Benchmark(artefact)
    documents = list(collection_documents(artefact, corpus))
    own = open_collection(artefact.path, corpus=corpus.path)
    assert own.qrels == bench.qrels()
    assert own.ids == {document.id for document in documents} == {document.id for document in own.documents}
    for layout, write in (("r2med", write_r2med), ("beir", write_beir)):
        folder = tmp_path / layout
        folder.mkdir()
        write(folder, documents, bench.questions, bench.qrels())
        found = open_collection(folder)
        assert found.qrels == bench.qrels()
        assert [question.text for question in found.questions] == [question.text for question in bench.questions]
    indexes = IndexSet(documents, encoder=lambda spec: Words(), auto=Chunking("whole"))
    retriever = Retriever(indexes, "bm25")
    hits = retriever.search([(question.id, question.answer) for question in bench.questions], 10)
    result = evaluate([hit for row in hits for hit in row], bench.qrels(), [Measure.parse("nDCG@10")])
    return result.means["nDCG@10"]
