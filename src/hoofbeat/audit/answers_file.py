"""Answers given elsewhere, source by source: a file of question, source and answer in the place of an answer stage.

Rows with the same question are the answers of several sources to it. Which field holds what can be said; several fields
joined by `+` name a thing together (a condition and a kind of question, say).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.answering.prediction_import import PredictionRow, bad, each_row
from hoofbeat.audit.answers_by_source import absence_request, is_silent
from hoofbeat.audit.silence import STAGE, TURNED_DOWN
from hoofbeat.errors import InputError, UsageError
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Answer, Facets, Failure, Question, TraceStep

GIVEN = "given"
_KNOWN = ("id", "question", "source", "answer", "absent")
_FACET = "facets."
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_JOINED = ": "


class SourceAnswer(Struct, frozen=True, kw_only=True):
    """What one source answers to one question; `absent` where the file says whether it is silent."""

    question: str
    source: str
    text: str
    absent: bool | None = None


class SourceAnswerFile(Struct, frozen=True, kw_only=True):
    """A file of answers: its questions, its sources, every answer, and how many rows could not be compared, and why."""

    questions: tuple[Question, ...]
    sources: tuple[str, ...]
    answers: tuple[SourceAnswer, ...]
    left_out: dict[str, int]


def parse_answer_fields(text: str) -> dict[str, tuple[str, ...]]:
    """`question=focus+qtype,source=site,facets.topic=qtype` as what each thing is called in the file."""
    found: dict[str, tuple[str, ...]] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, fields = (piece.strip() for piece in part.partition("="))
        names = tuple(field.strip() for field in fields.split("+"))
        known = name in _KNOWN or (name.startswith(_FACET) and name != _FACET)
        if not equals or not all(names) or not known:
            raise UsageError(
                f"--fields can't be read at {part!r}",
                fix=f"write name=field; names: {', '.join(_KNOWN)}, {_FACET}NAME; join fields with +: focus+qtype",
            )
        found[name] = names
    return found


def read_source_answers(
    path: Path, fields: Mapping[str, Sequence[str]] | None = None, sources: Collection[str] = ()
) -> SourceAnswerFile:
    """Read a file of answers (.jsonl, .csv, .parquet, gzipped or not), or those of some `sources` in it.

    Rows belong to one question where their `id` is the same, or the question's text where no `id` is named; case and
    white space do not count, and the first spelling is shown. A question that one source answers is left out.
    """
    names = {name: tuple((fields or {}).get(name, (name,))) for name in _KNOWN if name not in ("id", "absent")}
    names |= {name: tuple(found) for name, found in (fields or {}).items()}
    texts: dict[str, str] = {}
    facets: dict[str, Facets] = {}
    rows: dict[str, dict[str, SourceAnswer]] = {}
    there: set[str] = set()
    for row in each_row(path):
        text = _joined(row, names["question"])
        key = _joined(row, names["id"]) if "id" in names else text
        source = _joined(row, names["source"])
        for what, value in (("question", text), ("question's id", key), ("source", source)):
            if not value:
                raise bad(row, f"the row has no {what}", "name the field that holds it: --fields")
        there.add(source)
        if sources and source not in sources:
            continue
        id = _identifier(key.casefold())
        texts.setdefault(id, text)
        facets.setdefault(id, _facets(row, names))
        mine = rows.setdefault(id, {})
        if source in mine:
            raise bad(row, f"the source {source} answers this question twice: {text[:80]}")
        answer = "\n\n".join(filter(None, (row.text(field).strip() for field in names["answer"])))
        mine[source] = SourceAnswer(question=id, source=source, text=answer, absent=_absent(row, names))
    if not there:
        raise InputError("the file has no answers", where=str(path), fix="write one row per answer and source")
    if unknown := sorted(set(sources) - there):
        raise UsageError(
            f"there is no answer from the source {', '.join(unknown)}", fix=f"check --source; {_listed(there)}"
        )
    compared = {id: answers for id, answers in rows.items() if len(answers) > 1}
    if not compared:
        raise InputError(
            "no question has answers from two sources", where=str(path), fix="check the fields with --fields"
        )
    alone = len(rows) - len(compared)
    return SourceAnswerFile(
        questions=tuple(Question(id=id, text=texts[id], facets=facets[id]) for id in compared),
        sources=tuple(sorted({source for answers in compared.values() for source in answers})),
        answers=tuple(answers[source] for _, answers in sorted(compared.items()) for source in sorted(answers)),
        left_out={"only one source answers": alone} if alone else {},
    )


def _listed(names: Collection[str]) -> str:
    """Some of the names there are."""
    some = sorted(names)
    return f"sources: {', '.join(some[:8])}{', …' if len(some) > 8 else ''}"


def _joined(row: PredictionRow, fields: Sequence[str]) -> str:
    missing = [field for field in fields if field not in row.values]
    if missing:
        raise bad(row, f"the row has no field {missing[0]!r}", "name the field that holds it: --fields")
    return _JOINED.join(filter(None, (" ".join(row.text(field).split()) for field in fields)))


def _identifier(key: str) -> str:
    """A short name for a question, in lower case, safe as a file's name: some of its words, a hash of all of it."""
    words = re.sub(r"[^a-z0-9]+", "-", key).strip("-")[:48].strip("-")
    return f"{words or 'question'}-{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:8]}"


def _facets(row: PredictionRow, names: Mapping[str, Sequence[str]]) -> Facets:
    return {
        name.removeprefix(_FACET): _joined(row, fields) for name, fields in names.items() if name.startswith(_FACET)
    }


def _absent(row: PredictionRow, names: Mapping[str, Sequence[str]]) -> bool | None:
    """Whether the file says that the source is silent; None where it does not say."""
    value = row.values.get(names.get("absent", ("absent",))[0])
    if value is None or isinstance(value, bool):
        return value
    known = _TRUTHS.get(str(value).strip().lower())
    if known is None and str(value).strip():
        raise bad(row, f"the field `absent` holds {str(value)[:40]!r}", "write true or false there, or leave it empty")
    return known


def decide_absence(
    model: Model,
    questions: Mapping[str, Question],
    answers: Sequence[SourceAnswer],
    pack: Pack,
    *,
    progress: Progress = SILENT,
) -> list[Answer]:
    """Given answers as answers of sources: silence as the file says, by the sentence of absence, or by a call."""

    async def work(item: SourceAnswer) -> Answer:
        base = Answer(
            question=item.question, model=GIVEN, condition="source", source=item.source, text=item.text, absent=False
        )
        if item.absent or is_silent(item.text, pack):
            return msgspec.structs.replace(base, text=item.text or pack.not_addressed, absent=True)
        if item.absent is False:
            return base
        check = await model.chat_json(absence_request(questions[item.question], item.text, pack))
        if isinstance(check, Failure):
            return msgspec.structs.replace(base, text="", absent=None, failure=check)
        silent = check.value["addressed"] == "no"
        proof = (TraceStep(stage=STAGE, what=TURNED_DOWN, text=item.text),) if silent else ()
        return msgspec.structs.replace(base, absent=silent, trace=proof, calls=check.calls, usage=check.reply.usage)

    return model.run(answers, work, title="checking for missing answers", progress=progress)
