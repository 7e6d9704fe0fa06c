"""Any table of questions, fields given their meaning by a mapping or by well-known names.

A mapping is one line of text: `id=key,text=question,options=a+b+c+d,answer=gold,facets.topic=subject`. On the left is
what the question gets (`id`, `text`, `context`, `answer`, `accepted`, `options`, `distractors`, `images`, `documents`,
`facets.NAME`), on the right the row's field; `a+b` takes several fields, as options have a column each in many tables.
A list of questions alone, such as TransplantQA's, needs no answer: `audit` and `ask` take it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hoofbeat.benchmarks.benchmark_import import (
    MAX_LABEL,
    ImportedBenchmark,
    ImportFormat,
    ImportRow,
    ImportSource,
    labels,
    options_of,
    read_accepted,
    right_option,
)
from hoofbeat.errors import UsageError
from hoofbeat.records import Facets, Question

_PARTS = ("id", "text", "context", "answer", "accepted", "options", "distractors", "images", "documents")
_KNOWN: dict[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "_id", "key"),
    "text": ("question", "text", "query", "prompt", "question_text", "Question"),
    "context": ("context", "case", "vignette", "passage"),
    "answer": ("answer", "gold", "gold_answer", "correct_answer", "reference", "Answer"),
    "accepted": ("accepted_answers", "also_accepted"),
    "options": ("options", "choices"),
}

Mapping = dict[str, tuple[str, ...]]
"""What a question gets, from which fields of the row."""


class _Table(ImportFormat):
    name = "table"
    summary = "any table of questions, such as TransplantQA's list (--mapping names the fields)"

    def surety(self, source: ImportSource) -> int:
        return 1 if any(source.has(name) for name in _KNOWN["text"]) else 0

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """Every row, by the mapping that was given or guessed from the first row."""
        mapping = parse_question_mapping(source.mapping) if source.mapping else _guessed(source)
        missing = sorted({name for names in mapping.values() for name in names if not source.has(name)})
        if missing and source.mapping:
            raise UsageError(
                f"the first row has no field {missing[0]!r}",
                where=str(source.path),
                fix=f"its fields are: {', '.join(list(source.first)[:30])}",
            )
        result = ImportedBenchmark()
        result.questions = list(source.each(lambda row: _question(row, source, mapping), result))
        result.notes = _unused(source, mapping, result.questions)
        return result


FORMAT = _Table()


def parse_question_mapping(line: str) -> Mapping:
    """A mapping from its one line; a `UsageError` says what is wrong with it."""
    mapping: Mapping = {}
    for piece in filter(None, (piece.strip() for piece in line.split(","))):
        target, separator, sources = (part.strip() for part in piece.partition("="))
        names = tuple(filter(None, (name.strip() for name in sources.split("+"))))
        if not separator or not names:
            raise UsageError(
                f"a mapping is TARGET=FIELD,...: {piece!r} is not of this form", fix="write e.g. id=key,text=question"
            )
        if target not in _PARTS and not (target.startswith("facets.") and target.removeprefix("facets.")):
            raise UsageError(f"a mapping can't set {target!r}", fix=f"use {', '.join(_PARTS)}, or facets.NAME")
        mapping[target] = names
    if "text" not in mapping:
        raise UsageError("the mapping does not say where the question is", fix="add text=FIELD")
    return mapping


def _guessed(source: ImportSource) -> Mapping:
    found = {part: next((name for name in names if source.has(name)), "") for part, names in _KNOWN.items()}
    guessed: Mapping = {part: (name,) for part, name in found.items() if name}
    if source.has("documents") and _names_documents(source.first["documents"]):
        guessed["documents"] = ("documents",)
    return guessed


def _names_documents(value: object) -> bool:
    """Whether a field can be the ids of documents: some tables have the texts of documents under this name."""
    given = value if isinstance(value, list) else [value]
    return all(each is None or (isinstance(each, str | int) and len(str(each)) <= MAX_LABEL) for each in given)


def _unused(source: ImportSource, mapping: Mapping, questions: Sequence[Question]) -> list[str]:
    """A note that names the fields of which no question has anything."""
    used = {name for names in mapping.values() for name in names}
    if not source.mapping:
        used.update(name for question in questions for name in question.facets)
    unused = [name for name in source.first if name.strip() and name not in used]
    if not questions or not unused:
        return []
    names = ", ".join(unused)
    return [f"fields that were not used: {names}. A mapping says what a field means (documents={unused[0]})"]


def _question(row: ImportRow, source: ImportSource, mapping: Mapping) -> Question:
    def words(part: str, *, needed: bool = False) -> str:
        texts = [row.text(name, needed=needed) for name in mapping.get(part, ())]
        return "\n\n".join(filter(None, texts))

    def several(part: str) -> tuple[str, ...]:
        found: list[str] = []
        for name in mapping.get(part, ()):
            value = row.get(name)
            found += [
                str(each).strip() for each in (value if isinstance(value, list) else [value]) if value is not None
            ]
        return tuple(found)

    id = source.name(row, *mapping.get("id", ()))
    answer = words("answer")
    options: tuple[str, ...] = ()
    if "options" in mapping:
        fields = mapping["options"]
        given = options_of(row.get(fields[0]) if len(fields) == 1 else list(several("options")))
        options = tuple(given.values())
        answer = right_option(answer, given, source.count_from) if answer else ""
    elif wrong := several("distractors"):
        options = source.shuffled(id, tuple(options_of([answer, *wrong]).values()))
    named: Facets = {
        target.removeprefix("facets."): text
        for target in mapping
        if target.startswith("facets.") and (text := words(target))
    }
    taken = [name for names in mapping.values() for name in names]
    return Question(
        id=id,
        text=words("text", needed=True),
        context=words("context"),
        answer=answer,
        accepted=read_accepted([text for text in several("accepted") if text]),
        options=options,
        images=tuple(name for field in mapping.get("images", ()) for name in source.images(row.get(field))),
        documents=tuple(name for name in several("documents") if name),
        facets=named if source.mapping else labels(row, taken),
    )
