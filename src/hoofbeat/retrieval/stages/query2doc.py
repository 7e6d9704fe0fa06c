"""`query2doc`: adds to the question a document that the model writes from examples (Wang, Yang and Wei 2023)."""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.retrieval.document_writers import DocumentWriter, FusedQuery, PromptDraft, generation_options
from hoofbeat.retrieval.line import StageOption
from hoofbeat.retrieval.query_tasks import query_task
from hoofbeat.retrieval.stage_roles import SearchQuery, StageTools


class Query2DocStage(DocumentWriter):
    """The document is written after worked examples, and searched for together with the question."""

    name = "query2doc"
    summary = "adds to the question a document that the model writes from examples"
    options = generation_options(
        512,
        StageOption("repeat", 5, "how often the question is repeated for lexical rankers", min_=1, max_=50),
        StageOption("shots", 2, "how many examples the prompt shows", min_=0, max_=4),
    )

    def prepare(self) -> None:
        """Say where the task has fewer examples than are to be shown."""
        task, shots = query_task(self.word("task")), self.count("shots")
        if task is not None and len(task.examples) < shots:
            raise UsageError(
                f"the task {self.word('task')} has {len(task.examples)} examples, but shots={shots}",
                where=f"retriever line, {self}",
                fix=f"give shots={len(task.examples)}, or more examples in your own file: task=FILE.toml#NAME",
            )

    def drafts(self, queries: Sequence[SearchQuery], tools: StageTools, model: Model) -> list[PromptDraft]:  # noqa: ARG002
        """The question and how many examples are shown."""
        return [PromptDraft({"question": query.text, "shots": self.count("shots")}) for query in queries]

    def fuse(self, question: str, documents: Sequence[str]) -> FusedQuery:
        """The question several times, and each document."""
        return query2doc_fusion(question, documents, self.count("repeat"))


def query2doc_fusion(question: str, documents: Sequence[str], repeat: int) -> FusedQuery:
    """The question, repeated so that the longer document does not drown it, and the document; joined for dense ones."""
    lexical = "\n".join(" ".join([*[question] * repeat, document]) for document in documents)
    return lexical, tuple(f"{question} [SEP] {document}" for document in documents)


STAGE = Query2DocStage()
