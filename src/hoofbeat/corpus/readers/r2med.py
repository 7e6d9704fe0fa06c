"""The R2MED layout: `query.jsonl` (id, text, answer, doc_id, body_system), `corpus.jsonl` (id, text), `qrels.jsonl`.

Its eight sets are published so, and the recipe of the same name writes it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from hoofbeat.corpus.qrels import read_qrels, write_qrels
from hoofbeat.corpus.reader import DocumentEntry, Reader, Refusal, SourceFile
from hoofbeat.corpus.readers.beir import JudgedQuestions, question_of, read_corpus, row_id, whole_rows
from hoofbeat.records import Document, Question
from hoofbeat.store.tables import write_jsonl

_MAIN, _QUERIES, _JUDGMENTS = "corpus.jsonl", "query.jsonl", "qrels.jsonl"


class _R2med(Reader):
    name = "r2med"
    summary = "R2MED folders: corpus.jsonl beside query.jsonl"
    suffixes = (".jsonl",)
    takes_any = False
    gives_passages = True
    max_bytes = None

    def recognises(self, path: Path) -> bool:
        return path.name == _MAIN and (path.parent / _QUERIES).is_file()

    def companions(self, names: Collection[str]) -> frozenset[str]:
        own = frozenset({_QUERIES, _JUDGMENTS, "qrels.txt"})
        return own if _MAIN in names and not own.isdisjoint(names) else frozenset()

    def read(self, source: SourceFile) -> Iterator[DocumentEntry | Refusal]:
        return read_corpus(source.path)


READER = _R2med()


def read_r2med(path: Path) -> JudgedQuestions:
    """The questions and judgments of an R2MED folder; `body_system` is a facet, the answer the gold answer."""
    # The repository's page names `qrels.txt`, in TREC's layout; the released sets have `qrels.jsonl`.
    trec = path / "qrels.txt"
    judged = trec if trec.is_file() and not (path / _JUDGMENTS).is_file() else path / _JUDGMENTS
    judgments = read_qrels(judged, corpus_ids=True)
    questions = []
    for number, row in whole_rows(path / _QUERIES):
        id = row_id(row)
        questions.append(question_of(row, id, judgments.get(id, {}), number))
    return JudgedQuestions(questions=tuple(questions), judgments=judgments)


def write_r2med(
    path: Path,
    documents: Iterable[Document],
    questions: Iterable[Question] = (),
    judgments: Mapping[str, Mapping[str, int]] | None = None,
) -> int:
    """Write an R2MED folder and return the number of documents."""
    asked = list(questions)
    grades = {question.id: dict.fromkeys(question.documents, 1) for question in asked}
    grades.update({id: dict(given) for id, given in (judgments or {}).items()})
    count = write_jsonl(path / _MAIN, ({"id": each.id, "text": _whole(each)} for each in documents))
    write_jsonl(
        path / _QUERIES,
        (
            {
                "id": each.id,
                "text": each.full_text,
                "answer": each.answer,
                "doc_id": [document for document, grade in grades[each.id].items() if grade > 0],
                "body_system": each.facets.get("body_system", ""),
            }
            for each in asked
        ),
    )
    write_qrels(path / _JUDGMENTS, grades, "r2med")
    return count


def _whole(document: Document) -> str:
    """R2MED has no title field: the title stands before the text."""
    return f"{document.title}\n{document.text}" if document.title else document.text
