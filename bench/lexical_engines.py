"""What `bench.lexical` measures: the passages and queries, and the engines behind one interface.

An engine can index texts in its own way and write the index to a folder, index the terms prepared for all, give back a
function that answers queries (for the clock), and answer them (for the comparison).
"""

from __future__ import annotations

import gzip
import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hoofbeat.retrieval.index.analysis import ENGLISH, Numberer
from hoofbeat.retrieval.index.lexical_search import Bm25, Postings

REPORTS = Path(__file__).resolve().parents[2] / "shared" / "data" / "case_reports.jsonl.gz"
GUIDELINES = REPORTS.with_name("guidelines.jsonl.gz")
WORDS = 150
TOP = 100
QUERIES = 100
KINDS = {"10 terms": 10, "300 terms": 300}
PARAMETERS = (0.9, 0.4)
TANTIVY_PARAMETERS = (1.2, 0.75)
SEED = 2025
REFERENCE = "bm25s+numba"

Answers = list[tuple[list[int], list[float]]]
Query = tuple[str, list[str]]


def lines(path: Path) -> list[str]:
    """The lines of a file, without holding it in memory twice."""
    with path.open(encoding="utf-8", newline="\n") as file:
        return [line[:-1] for line in file]


def sentences(source: Path = REPORTS) -> list[str]:
    """The sentences of the case reports, or of the guidelines."""
    found: list[str] = []
    with gzip.open(source, "rt", encoding="utf-8") as records:
        for line in records:
            record = json.loads(line)
            text = record.get("text") or "\n".join(section["text"] for section in record["sections"])
            split = re.split(r"(?<=[.!?])\s+", text)
            found += [" ".join(sentence.split()) for sentence in split if 3 <= sentence.count(" ") <= 60]
    return found


def passages(seed: int, pool: Sequence[str]) -> Iterator[str]:
    """Endless passages of some 150 words."""
    rng = random.Random(seed)
    number = 0
    while True:
        parts = [f"Case {number}."]
        words = 0
        while words < WORDS:
            parts.append(pool[int(rng.random() * len(pool))])
            words += parts[-1].count(" ") + 1
        yield " ".join(parts)
        number += 1


def queries(terms: int, pool: Sequence[str]) -> Iterator[Query]:
    """Endless queries of exactly so many terms: their text, and the terms."""
    stream = passages(SEED + terms, pool)
    while True:
        words: list[str] = []
        found: list[str] = []
        while len(found) < terms:
            for word in next(stream).split():
                more = ENGLISH.terms(word)
                if len(found) + len(more) <= terms:
                    words.append(word)
                    found += more
        yield " ".join(words), found


def prepare(folder: Path, count: int) -> None:
    """Write texts, the same as terms, and queries."""
    pool = sentences()
    numberer = Numberer(ENGLISH)
    stream = islice(passages(SEED, pool), count)
    with (folder / "texts").open("w", encoding="utf-8") as texts, (folder / "terms").open("w", encoding="utf-8") as out:
        while block := list(islice(stream, 4096)):
            texts.writelines(f"{text}\n" for text in block)
            terms, lengths = numberer.analyse(block)
            names = numberer.names
            ends = np.cumsum(lengths).tolist()
            words = [names[term] for term in terms.tolist()]
            out.writelines(f"{' '.join(words[begin:end])}\n" for begin, end in zip([0, *ends[:-1]], ends, strict=True))
    for kind, size in KINDS.items():
        (folder / kind).write_text(json.dumps(list(islice(queries(size, pool), QUERIES))), "utf-8")


class Hoofbeat:
    """This project, with numba or without."""

    def __init__(self, fast: bool) -> None:
        self._fast = fast

    def index_texts(self, texts: list[str], folder: Path) -> None:
        """Index texts in the documented way, and keep that."""
        Postings.build(texts).save(folder)

    def index_terms(self, place: Path) -> None:
        """Index what all engines index: here the texts that have those terms."""
        self._postings = Postings.build(lines(place / "texts"))

    def search(self, asked: list[Query], threads: int) -> Callable[[], object]:
        """A function to be timed."""
        index = Bm25(self._postings, *PARAMETERS, fast=self._fast, threads=threads)
        texts = [text for text, _ in asked]
        return lambda: index.search(texts, TOP)

    def answers(self, asked: list[Query], parameters: tuple[float, float]) -> Answers:
        """The best texts and their scores."""
        index = Bm25(self._postings, *parameters, fast=self._fast)
        found = index.search([text for text, _ in asked], TOP)
        return [(ranking.indices.tolist(), ranking.scores.tolist()) for ranking in found]


class Bm25s:
    """bm25s with its numba backend."""

    def __init__(self) -> None:
        import bm25s  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415

        self._bm25s: Any = bm25s

    def index_texts(self, texts: list[str], folder: Path) -> None:
        import Stemmer  # noqa: PLC0415

        tokens = self._bm25s.tokenize(texts, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False)
        self._build(tokens)
        self._index.save(folder)

    def index_terms(self, place: Path) -> None:
        texts = lines(place / "terms")
        options: dict[str, Any] = {"token_pattern": r"\S+", "stopwords": [], "stemmer": None, "lower": False}
        self._build(self._bm25s.tokenize(texts, show_progress=False, **options))

    def _build(self, tokens: Any) -> None:
        k1, b = PARAMETERS
        self._index = self._bm25s.BM25(method="lucene", k1=k1, b=b, backend="numba")
        self._index.index(tokens, show_progress=False)

    def search(self, asked: list[Query], threads: int) -> Callable[[], object]:
        terms = [terms for _, terms in asked]
        count = 0 if threads == 1 else threads
        return lambda: self._index.retrieve(terms, k=TOP, n_threads=count, show_progress=False)

    def answers(self, asked: list[Query], parameters: tuple[float, float]) -> Answers:
        assert parameters == PARAMETERS
        found = self._index.retrieve([terms for _, terms in asked], k=TOP, show_progress=False)
        rows = zip(found.documents.tolist(), found.scores.tolist(), strict=True)
        return [([int(one) for one in documents], scores) for documents, scores in rows]


class Tantivy:
    """tantivy, all cores at indexing, one segment at searching."""

    def __init__(self) -> None:
        import tantivy  # type: ignore[import-not-found, import-untyped, unused-ignore]  # noqa: PLC0415

        self._tantivy: Any = tantivy

    def index_texts(self, texts: list[str], folder: Path) -> None:
        t = self._tantivy
        english = t.TextAnalyzerBuilder(t.Tokenizer.simple()).filter(t.Filter.lowercase())
        english = english.filter(t.Filter.stopword("english")).filter(t.Filter.stemmer("english")).build()
        self._build(texts, english, folder, threads=0)

    def index_terms(self, place: Path) -> None:
        t = self._tantivy
        self._folder = tempfile.TemporaryDirectory(prefix="hoofbeat-bench-")
        texts = lines(place / "terms")
        self._build(texts, t.TextAnalyzerBuilder(t.Tokenizer.whitespace()).build(), Path(self._folder.name), threads=1)

    def _build(self, texts: list[str], analyzer: Any, folder: Path, threads: int) -> None:
        t = self._tantivy
        builder = t.SchemaBuilder()
        builder.add_text_field("text", tokenizer_name="bench", index_option="freq")
        builder.add_integer_field("id", stored=True)
        self._schema = builder.build()
        self._index = t.Index(self._schema, path=str(folder))
        self._index.register_tokenizer("bench", analyzer)
        writer = self._index.writer(num_threads=threads)
        for number, text in enumerate(texts):
            writer.add_document(t.Document(text=text, id=number))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def _asked(self, terms: list[str]) -> Any:
        t = self._tantivy
        parts = []
        for term, times in Counter(terms).items():
            one = t.Query.term_query(self._schema, "text", term, index_option="freq")
            parts.append((t.Occur.Should, one if times == 1 else t.Query.boost_query(one, float(times))))
        return t.Query.boolean_query(parts)

    def search(self, asked: list[Query], threads: int) -> Callable[[], object]:
        assert threads == 1
        return lambda: [self._searcher.search(self._asked(terms), TOP, count=False) for _, terms in asked]

    def answers(self, asked: list[Query], parameters: tuple[float, float]) -> Answers:
        assert parameters == TANTIVY_PARAMETERS
        scale = parameters[0] + 1
        answers = []
        for _, terms in asked:
            hits = self._searcher.search(self._asked(terms), TOP, count=False).hits
            places = [int(self._searcher.doc(address)["id"][0]) for _, address in hits]
            answers.append((places, [score / scale for score, _ in hits]))
        return answers


ENGINES: dict[str, Callable[[], Any]] = {
    "Hoofbeat": lambda: Hoofbeat(fast=False),
    "Hoofbeat+numba": lambda: Hoofbeat(fast=True),
    REFERENCE: Bm25s,
    "tantivy": Tantivy,
}
NEEDS = {"Hoofbeat+numba": ["numba"], REFERENCE: ["bm25s", "numba"], "tantivy": ["tantivy"]}
