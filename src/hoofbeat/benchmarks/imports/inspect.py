"""Rows as Inspect reads them: input, choices and target, with images inside the message."""

from __future__ import annotations

from typing import Any

from hoofbeat.benchmarks.benchmark_import import (
    ImportFormat,
    ImportRow,
    ImportSource,
    case_and_question,
    labels,
    options_of,
    right_option,
)
from hoofbeat.errors import InputError
from hoofbeat.records import Question


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
        return Question(
            id=source.name(row, "id"),
            text=text,
            context=context,
            answer=right_option(row.text("target"), options) if options else row.text("target"),
            options=tuple(options.values()),
            images=images,
            facets=labels(ImportRow(about, row.number), ()) if isinstance(about, dict) else {},
        )


FORMAT = _Inspect()


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
        raise InputError("the field input holds no text")
    return "\n\n".join(texts), tuple(str(part["image"]) for part in parts if part.get("image"))
