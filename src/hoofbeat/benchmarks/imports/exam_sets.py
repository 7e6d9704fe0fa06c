"""Sets of exam questions: MedQA and those that follow it, MedMCQA, PubMedQA."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import (
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    labels,
    options_of,
    right_option,
    table_rows,
)
from hoofbeat.corpus.reader import Refusal
from hoofbeat.errors import InputError
from hoofbeat.records import Question
from hoofbeat.text import whole_number

_MEDQA_FIELDS = ("id", "realidx", "question", "options", "answer", "answer_idx")


class _Medqa(ImportFormat):
    name = "medqa"
    summary = "MedQA, MedAgentsBench: question, options by letter, answer_idx (JSON lines, JSON, Parquet)"

    def surety(self, source: ImportSource) -> int:
        answered = source.has("answer_idx") or source.has("answer")
        return 2 + source.has("answer_idx") if source.has("question", "options") and answered else 0

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row."""
        options = options_of(row.get("options"))
        return Question(
            id=source.name(row, "realidx", "id"),
            text=row.text("question"),
            answer=right_option(row.text("answer_idx", "answer"), options, source.count_from),
            options=tuple(options.values()),
            facets=labels(row, _MEDQA_FIELDS),
        )


MEDQA = _Medqa()


_COLUMNS = ("opa", "opb", "opc", "opd")
_MEDMCQA_FIELDS = ("id", "question", *_COLUMNS, "cop", "exp")
_UNKNOWN = -1


class _Medmcqa(ImportFormat):
    name = "medmcqa"
    summary = "MedMCQA: question, opa to opd, cop (JSON lines, JSON, Parquet)"

    def surety(self, source: ImportSource) -> int:
        return 5 if source.has("question", *_COLUMNS) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The rows. The authors' files count `cop` from 1, those of the Hugging Face Hub from 0: a 0 or a 4 tells."""
        if source.count_from is None:
            numbers = {
                whole_number(str(row.get("cop")))
                for table in source.tables
                for _, row in table_rows(table.path)
                if not isinstance(row, Refusal)
            }
            source.count_from = 0 if 0 in numbers else 1 if len(_COLUMNS) in numbers else None
        result = super().read(source)
        result.notes.append(f"cop counts from {source.count_from}")
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row; the unlabelled test rows (cop -1 or none) have no answer. Explanations are left out."""
        options = options_of([row.text(name) for name in _COLUMNS])
        number = row.text("cop", needed=False)
        number = number.removesuffix(".0")  # a column with empty cells is read as numbers with a fraction
        answer = "" if number in ("", str(_UNKNOWN)) else right_option(number, options, source.count_from)
        return Question(
            id=source.name(row, "id"),
            text=row.text("question"),
            answer=answer,
            options=tuple(options.values()),
            facets=labels(row, _MEDMCQA_FIELDS),
        )


MEDMCQA = _Medmcqa()


_ANSWERS = ("yes", "no", "maybe")


class _Pubmedqa(ImportFormat):
    name = "pubmedqa"
    summary = "PubMedQA: the authors' JSON by PMID, or rows with pubid, question, context, final_decision"

    def surety(self, source: ImportSource) -> int:
        if source.has("question", "context") and (source.has("final_decision") or source.has("pubid")):
            return 4
        return 4 if source.has("QUESTION", "CONTEXTS") or _by_pmid(source) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """The rows, or the authors' one object whose keys are PMIDs."""
        if not _by_pmid(source):
            return super().read(source)
        result = ImportedBenchmark()
        for number, (id, values) in enumerate(source.first.items(), start=1):
            assert isinstance(values, dict)
            result.questions.append(self.question(ImportRow({"pubid": id, **values}, number), source))
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row. The abstract is the context; the long answer is left out, for it holds the conclusion."""
        given = row.get("context", "CONTEXTS")
        passages = given.get("contexts") if isinstance(given, dict) else given
        if isinstance(passages, str):
            passages = [passages]
        if not isinstance(passages, list) or not all(isinstance(each, str) for each in passages):
            raise InputError("the field context has no passages")
        answer = row.text("final_decision", needed=False).lower()
        if answer and answer not in _ANSWERS:
            raise InputError("the answer is not yes, no or maybe")
        return Question(
            id=source.name(row, "pubid", "id"),
            text=row.text("question", "QUESTION"),
            context="\n\n".join(passages),
            answer=answer,
            options=_ANSWERS,
            documents=(str(row.get("pubid")),) if row.get("pubid") else (),
        )


PUBMEDQA = _Pubmedqa()


def _by_pmid(source: ImportSource) -> bool:
    values = list(source.first.values())
    return bool(values) and all(isinstance(each, dict) and "QUESTION" in each for each in values)
