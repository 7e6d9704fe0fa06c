"""The statistics of test collections as R2MED's table 1 has them, and how far their documents overlap.

Sets that a recipe built, sets that were imported, and folders in BEIR's or R2MED's layout are counted in the same way.
Lengths are in words, or in tokens of a tokenizer that is named: R2MED counts GPT-2's. The overlap of two sets is the
weighted Jaccard similarity of their word shares, as in BEIR and R2MED.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, islice
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_tsv

if TYPE_CHECKING:  # reports read these tables and need none of what counts them
    from hoofbeat.corpus.stats import Tokenizer
    from hoofbeat.retrieval.index.chunking import Spans
    from hoofbeat.retrieval.rankings.test_collection import TestCollection

KIND = "set-stats"
"""The kind of folder that holds the statistics of test collections."""

SETS = "sets.tsv"
OVERLAP = "overlap.tsv"
OVERLAP_HEADER = ("a", "b", "overlap", "shared_words", "words")
_WORD = re.compile(r"[^\W_]+")
_LENGTH_WORD = re.compile(r"\S+")
_BATCH = 256


class SetRow(Struct, frozen=True, kw_only=True):
    """One set: its questions and documents, and means: positives per judged question, lengths, options, images."""

    name: str
    questions: int
    documents: int
    positives: float | None
    question_length: float | None
    document_length: float | None
    options: float
    images: float


class SetStatistics(Struct, frozen=True, kw_only=True):
    """The rows of the table, what lengths count (`words` or a tokenizer), and the overlap of every two sets."""

    unit: str
    rows: tuple[SetRow, ...]
    overlaps: tuple[tuple[str, str, float, int, int], ...]


def open_set(target: Path, *, corpus: Path | None = None, edition: str = "") -> TestCollection:
    """A test collection, or a benchmark whose documents are not there, of which the questions alone are counted."""
    from hoofbeat.benchmarks import Benchmark, corpus_beside  # noqa: PLC0415
    from hoofbeat.retrieval.rankings.test_collection import TestCollection, open_collection  # noqa: PLC0415

    is_artefact = (target / "manifest.json").is_file()
    whole = open_artefact(target, ("benchmark",)) if is_artefact else None
    if whole is None or corpus is not None or corpus_beside(whole) is not None:
        return open_collection(target, corpus=corpus, edition=edition)
    bench = Benchmark(whole, edition)
    return TestCollection(
        name=target.resolve().name,
        questions=bench.questions,
        qrels=bench.qrels(),
        documents=(),
        ids=frozenset(),
        content="",
        inputs=[whole.reference()],
    )


def set_statistics(
    sets: Sequence[TestCollection], *, tokenizer: Tokenizer | None = None, progress: Progress = SILENT
) -> SetStatistics:
    """Count every set, and compare every two."""
    from hoofbeat.corpus.stats import NO_TOKENIZER  # noqa: PLC0415

    rows: list[SetRow] = []
    shares: dict[str, dict[str, float]] = {}
    with progress.task("Count sets", len(sets)) as task:
        for each in sets:
            rows.append(_row(each, tokenizer))
            if len(sets) > 1 and rows[-1].documents:
                name = each.name if each.name not in shares else f"{each.name} ({len(shares) + 1})"
                shares[name] = word_shares(each.documents, tokenizer.spans if tokenizer else None)
            task.advance()
    return SetStatistics(
        unit=tokenizer.name if tokenizer else NO_TOKENIZER, rows=tuple(rows), overlaps=tuple(overlap_rows(shares))
    )


def write_set_statistics(
    target: Path,
    found: SetStatistics,
    sets: Sequence[TestCollection],
    *,
    tables: Mapping[str, tuple[Sequence[str], Iterable[Sequence[object]]]] | None = None,
    settings: Mapping[str, object] | None = None,
    command: Sequence[str] = (),
) -> Artefact:
    """Write the two tables, and others by their file's name, as a folder that `report` takes."""
    header = SetRow.__struct_fields__
    with create(target, replace_kind=KIND) as draft:
        write_tsv(
            draft.path / SETS,
            header,
            (["" if (cell := getattr(row, name)) is None else cell for name in header] for row in found.rows),
        )
        write_tsv(draft.path / OVERLAP, OVERLAP_HEADER, found.overlaps)
        for name, (heads, rows) in (tables or {}).items():
            write_tsv(draft.path / name, heads, rows)
        draft.finish(
            Manifest(
                kind=KIND,
                title="statistics of " + ", ".join(row.name for row in found.rows),
                command=list(command),
                inputs=[ref for each in sets for ref in each.inputs],
                settings={"tokenizer": found.unit, **(settings or {})},
                counts=Counts(kept=len(found.rows)),
            )
        )
    return open_artefact(target, KIND)


def _row(found: TestCollection, tokenizer: Tokenizer | None) -> SetRow:
    questions = list(found.questions)
    judged = [sum(grade > 0 for grade in found.qrels[each.id].values()) for each in questions if each.id in found.qrels]
    documents, length = _lengths((document.text for document in found.documents), tokenizer)
    number = max(1, len(questions))
    return SetRow(
        name=found.name,
        questions=len(questions),
        documents=documents,
        positives=round(sum(judged) / len(judged), 4) if judged else None,
        question_length=_lengths((each.full_text for each in questions), tokenizer)[1],
        document_length=length,
        options=round(sum(len(each.options) for each in questions) / number, 4),
        images=round(sum(len(each.images) for each in questions) / number, 4),
    )


def _lengths(texts: Iterable[str], tokenizer: Tokenizer | None) -> tuple[int, float | None]:
    """How many texts there are, and their mean length."""
    count = total = 0
    rest = iter(texts)
    while batch := list(islice(rest, _BATCH)):
        count += len(batch)
        total += sum(
            tokenizer.counts(batch) if tokenizer else (sum(1 for _ in _LENGTH_WORD.finditer(text)) for text in batch)
        )
    return count, round(total / count, 4) if count else None


def word_shares(documents: Iterable[Document], tokens: Spans | None = None) -> dict[str, float]:
    """Every word of some documents with its share of all; `tokens` are a tokenizer's, in place of whole words."""
    counts: Counter[str] = Counter()
    for document in documents:
        text = f"{document.title}\n{document.text}".lower()
        spans = tokens(text) if tokens else (match.span() for match in _WORD.finditer(text))
        counts.update(text[start:end] for start, end in spans)
    total = counts.total()
    return {word: count / total for word, count in sorted(counts.items())}


def weighted_jaccard(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    """The weighted Jaccard similarity of two collections' word shares; 0 where either has no words."""
    if not a or not b:
        return 0.0
    words = sorted(a.keys() | b.keys())
    smaller = sum(min(a.get(word, 0.0), b.get(word, 0.0)) for word in words)
    return smaller / sum(max(a.get(word, 0.0), b.get(word, 0.0)) for word in words)


def overlap_rows(shares: Mapping[str, Mapping[str, float]]) -> list[tuple[str, str, float, int, int]]:
    """Every pair of collections, each once, as rows under `OVERLAP_HEADER`."""
    return [
        (one, other, round(weighted_jaccard(a, b), 4), len(a.keys() & b.keys()), len(a.keys() | b.keys()))
        for (one, a), (other, b) in combinations(shares.items(), 2)
    ]
