"""Rows as evaluation harnesses read them: Hoofbeat's export for lm-evaluation-harness, and Inspect's samples."""

from __future__ import annotations

from typing import Any

from hoofbeat.benchmarks.benchmark_import import (
    ImportFormat,
    ImportRow,
    ImportSource,
    case_and_question,
    labels,
    options_of,
    read_accepted,
    right_option,
)
from hoofbeat.errors import InputError
from hoofbeat.records import Question


class _LmEval(ImportFormat):
    name = "lm-eval"
    summary = "Hoofbeat's export for lm-evaluation-harness: question, answer, options, gold"

    def surety(self, source: ImportSource) -> int:
        tasks = source.path.is_dir() and (source.path / "loading.py").is_file()
        return 4 if source.has("question", "options", "gold") or (tasks and source.has("question", "answer")) else 0

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row."""
        options = options_of(row.get("options")) if row.get("options") else {}
        context, text = case_and_question(row.text("question"))
        answer = right_option(row.get("gold"), options, 0) if options else row.text("answer")
        return Question(
            id=source.name(row, "id"),
            text=text,
            context=context,
            answer=answer,
            accepted=read_accepted(row.get("accepted")),
            options=tuple(options.values()),
        )


LM_EVAL = _LmEval()


class _Inspect(ImportFormat):
    name = "inspect"
    summary = "Inspect's samples: input, choices, target (also Hoofbeat's export)"

    def surety(self, source: ImportSource) -> int:
        return 3 if source.has("input", "target") else 0

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One sample."""
        options = options_of(row.get("choices")) if row.get("choices") else {}
        whole, images = _message(row.get("input"))
        context, text = case_and_question(whole)
        about = row.get("metadata")
        target = row.get("target")
        right = [str(each).strip() for each in target] if isinstance(target, list) and target else [row.text("target")]
        answer, *others = [right_option(each, options) if options else each for each in right]
        return Question(
            id=source.name(row, "id"),
            text=text,
            context=context,
            answer=answer,
            accepted=read_accepted(others),
            options=tuple(options.values()),
            images=images,
            facets=labels(ImportRow(about, row.number), ()) if isinstance(about, dict) else {},
        )


INSPECT = _Inspect()


def _message(value: Any) -> tuple[str, tuple[str, ...]]:
    """Text and image names of an input: a text, or messages whose content has parts."""
    if isinstance(value, str) and value.strip():
        return value, ()
    parts = [
        part
        for message in (value if isinstance(value, list) else [])
        if isinstance(message, dict)
        for part in (
            message["content"] if isinstance(message.get("content"), list) else [{"text": message.get("content")}]
        )
        if isinstance(part, dict)
    ]
    texts = [str(part["text"]) for part in parts if part.get("text")]
    if not texts:
        raise InputError("the field input has no text")
    return "\n\n".join(texts), tuple(str(part["image"]) for part in parts if part.get("image"))
