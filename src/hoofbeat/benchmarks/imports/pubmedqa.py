"""PubMedQA: abstracts without their conclusion, and whether the answer is yes, no or maybe."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark_import import ImportedBenchmark, ImportFormat, ImportRow, ImportSource
from hoofbeat.errors import InputError
from hoofbeat.records import Question

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
            raise InputError("the field context holds no passages")
        answer = row.text("final_decision", needed=False).lower()
        if answer and answer not in _ANSWERS:
            raise InputError("the answer is none of yes, no and maybe")
        return Question(
            id=source.name(row, "pubid", "id"),
            text=row.text("question", "QUESTION"),
            context="\n\n".join(passages),
            answer=answer,
            options=_ANSWERS,
            documents=(str(row.get("pubid")),) if row.get("pubid") else (),
        )


FORMAT = _Pubmedqa()


def _by_pmid(source: ImportSource) -> bool:
    values = list(source.first.values())
    return bool(values) and all(isinstance(each, dict) and "QUESTION" in each for each in values)
