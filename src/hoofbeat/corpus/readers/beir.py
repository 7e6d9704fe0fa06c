"""The BEIR layout: `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv`, the common form of retrieval test collections.

Document ids are made safe as everywhere in a corpus; judgments name the same ids, so that rankings over the imported
corpus are measured against them as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from hoofbeat.corpus.parsers.prose import TextBuilder, lay_out_prose
from hoofbeat.corpus.parsers.rows import Row, read_rows, row_documents
from hoofbeat.corpus.qrels import Judgments, read_qrels, write_qrels
from hoofbeat.corpus.reader import DocumentEntry, Reader, Refusal, SourceFile
from hoofbeat.errors import InputError
from hoofbeat.records import Document, Facets, Question
from hoofbeat.store.tables import write_jsonl
from hoofbeat.text import safe_id, squeeze

_MAIN, _QUERIES = "corpus.jsonl", "queries.jsonl"
_R2MED_QUERIES = "query.jsonl"


class _Beir(Reader):
    name = "beir"
    summary = "BEIR folders: corpus.jsonl beside queries.jsonl"
    suffixes = (".jsonl",)
    takes_any = False
    gives_passages = True
    max_bytes = None

    def recognises(self, path: Path) -> bool:
        beside = path.parent
        return path.name == _MAIN and (beside / _QUERIES).is_file() and not (beside / _R2MED_QUERIES).is_file()

    def companions(self, names: Collection[str]) -> frozenset[str]:
        return frozenset({_QUERIES, "qrels"}) if {_MAIN, _QUERIES} <= set(names) else frozenset()

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        return read_corpus(source.path)


READER = _Beir()


class JudgedQuestions(Struct, frozen=True, kw_only=True):
    """Questions and the judgments on documents that go with them."""

    __test__ = False

    questions: tuple[Question, ...]
    judgments: Judgments


def read_corpus(path: Path) -> Iterator[DocumentEntry | Refusal]:
    """The documents of a `corpus.jsonl`, BEIR's (`_id`, `title`, `text`, `metadata`) or R2MED's (`id`, `text`)."""
    return row_documents(path, passage_document)


def passage_document(row: Row) -> Document:
    """One row of a corpus as a document; fields beyond id, title and text become facets."""
    original = row_id(row)
    builder = TextBuilder()
    lay_out_prose(str(row.get("text") or ""), builder)
    about = row.get("metadata")
    others = {**row, **(about if isinstance(about, dict) else {})}
    facets: Facets = {
        name: squeeze(str(value))
        for name, value in others.items()
        if name not in {"_id", "id", "title", "text", "metadata"} and isinstance(value, str | int | float)
        if squeeze(str(value))
    }
    if safe_id(original) != original:
        facets["source_id"] = original
    return Document(
        id=safe_id(original),
        title=squeeze(str(row.get("title") or "")),
        text=builder.text,
        kind="passage",
        sections=builder.sections(),
        facets=facets,
    )


def row_id(row: Row) -> str:
    """A row's id, `_id` or `id`."""
    value = row.get("_id", row.get("id"))
    if not isinstance(value, str | int) or not str(value).strip():
        raise InputError("a field is missing: _id", fix="correct the row")
    return str(value).strip()


def read_beir(path: Path, split: str = "test") -> JudgedQuestions:
    """The questions of a BEIR folder that `qrels/<split>.tsv` judges, and its judgments.

    A question's `documents` are those judged above 0. A damaged line is an `InputError`: half a test collection would
    measure something else.
    """
    file = path / "qrels" / f"{split}.tsv"
    if not file.is_file():
        splits = ", ".join(sorted(each.stem for each in (path / "qrels").glob("*.tsv"))) or "none"
        raise InputError(f"no judgments for the split {split}", where=str(file), fix=f"there are: {splits}")
    judgments = read_qrels(file, corpus_ids=True)
    questions = []
    for number, row in whole_rows(path / _QUERIES):
        id = row_id(row)
        if id in judgments:
            questions.append(question_of(row, id, judgments[id], number))
    return JudgedQuestions(questions=tuple(questions), judgments=judgments)


def whole_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """The rows of a table of which none may be missing."""
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), fix="name the folder of a whole test collection")
    for number, row in read_rows(path):
        if isinstance(row, Refusal):
            raise InputError(f"{row.member}: {row.reason}", where=str(path), fix="correct that line")
        yield number, row


def question_of(row: Row, id: str, grades: Mapping[str, int], number: int) -> Question:
    """A query row as a question; fields beyond id, text and answer, and those of its metadata, become facets."""
    text = row.get("text")
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"line {number}: the query {id} has no text", fix="correct that line")
    skipped = {"_id", "id", "text", "answer", "doc_id", "metadata"}
    about = row.get("metadata")
    others = {**(about if isinstance(about, dict) else {}), **row}
    facets: Facets = {
        name: value
        for name, value in others.items()
        if name not in skipped and (value.strip() if isinstance(value, str) else _all_words(value))
    }
    answer = row.get("answer")
    return Question(
        id=id,
        text=text.strip(),
        answer=answer.strip() if isinstance(answer, str) else "",
        documents=tuple(document for document, grade in grades.items() if grade > 0),
        facets=facets,
    )


def _all_words(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(each, str) for each in value)


def write_beir(
    path: Path,
    documents: Iterable[Document],
    questions: Iterable[Question] = (),
    judgments: Mapping[str, Mapping[str, int]] | None = None,
    split: str = "test",
) -> int:
    """Write a BEIR folder and return the number of documents; questions not judged count their `documents` as 1."""
    asked = list(questions)
    grades = {question.id: dict.fromkeys(question.documents, 1) for question in asked}
    grades.update({id: dict(given) for id, given in (judgments or {}).items()})
    count = write_jsonl(
        path / _MAIN,
        ({"_id": each.id, "title": each.title, "text": each.text, "metadata": each.facets} for each in documents),
    )
    write_jsonl(
        path / _QUERIES,
        ({"_id": each.id, "text": each.full_text, "answer": each.answer, "metadata": each.facets} for each in asked),
    )
    write_qrels(path / "qrels" / f"{split}.tsv", grades, "beir")
    return count
