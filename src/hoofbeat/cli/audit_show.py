"""`hoofbeat show AUDIT`: the questions of an audit, what each source says to one, and what that answer rests on."""

from __future__ import annotations

import difflib

from rich.console import Console
from rich.text import Text

from hoofbeat.audit import Audit
from hoofbeat.audit.pair_table import each_row
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.cli.console import Screen
from hoofbeat.cli.folder_overview import show_folder
from hoofbeat.errors import InputError
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.text import cut, for_terminal

_FIRST = 10


def show_audit(audit: Audit, id: str | None, *, as_json: bool) -> None:
    """Show an audit, one question (`ID`), or one answer with its evidence (`ID/SOURCE`)."""
    screen = Screen(as_json=as_json)
    if id is None:
        _listing(audit, screen, as_json)
        return
    name, source = _split(audit, id)
    question = next(question for question in audit.questions if question.id == name)
    answers = [
        answer for answer in audit.each_answer() if answer.question == name and (not source or answer.source == source)
    ]
    pairs = [pair for pair in _pairs(audit, name) if not source or source in (pair.a, pair.b)]
    if as_json:
        screen.emit({"artefact": str(audit.artefact.path), "question": question, "answers": answers, "pairs": pairs})
        return
    _Page(audit.names).question(question, answers, pairs, whole=bool(source))
    if not source and answers:
        screen.next("hoofbeat", "show", audit.artefact.path, f"{name}/{answers[0].source}")


def _listing(audit: Audit, screen: Screen, as_json: bool) -> None:
    ids = [question.id for question in audit.questions]
    if as_json:
        screen.emit({"artefact": str(audit.artefact.path), "numbers": {"questions": len(ids)}, "first": ids[:_FIRST]})
        return
    page = Screen(as_json=False, on_stdout=True)
    show_folder(page, audit.artefact)
    page.title("Questions")
    for question in audit.questions[:_FIRST]:
        page.say(f"{question.id}: {cut(question.text, 100)}")
    if len(ids) > _FIRST:
        page.say(f"and {len(ids) - _FIRST:,} more")
    screen.next("hoofbeat", "show", audit.artefact.path, *ids[:1])


def _split(audit: Audit, id: str) -> tuple[str, str]:
    """The question, and the source where one is named."""
    questions = {question.id for question in audit.questions}
    if id in questions:
        return id, ""
    for source in audit.sources:
        name = id.removesuffix(f"/{source.id}")
        if name != id and name in questions:
            return name, source.id
    asked = next((name for name in questions if id.startswith(f"{name}/")), None)
    if asked is not None:
        sources = [source.id for source in audit.sources]
        close = difflib.get_close_matches(id.removeprefix(f"{asked}/"), sources, n=3, cutoff=0.3) or sources[:3]
        raise InputError(
            f"no source {id.removeprefix(f'{asked}/')} in this audit",
            where=str(audit.artefact.path),
            fix=f"name one of its {len(sources)} sources, such as {', '.join(close)}",
        )
    close = difflib.get_close_matches(id.partition("/")[0], questions, n=3, cutoff=0.5)
    raise InputError(
        f"no question {id} in this audit",
        where=str(audit.artefact.path),
        fix=f"the closest are {', '.join(close)}" if close else "name a question, or QUESTION/SOURCE",
    )


def _pairs(audit: Audit, question: str) -> list[Comparison]:
    import polars

    return list(each_row(audit.frame().filter(polars.col("question").cast(polars.String) == question).collect()))


class _Page:
    """One question on the terminal."""

    def __init__(self, names: SourceNames) -> None:
        self._console = Console(highlight=False)
        self._names = names

    def question(self, question: Question, answers: list[Answer], pairs: list[Comparison], *, whole: bool) -> None:
        """The question, what sources say, and how they relate; `whole`: with evidence and trace."""
        self._line(f"{question.id}: {question.full_text}", "bold")
        for answer in answers:
            self._answer(answer, whole=whole)
        for pair in pairs:
            self._pair(pair)

    def _answer(self, answer: Answer, *, whole: bool) -> None:
        who = self._names[answer.source]
        self._line(f"\n{who.full}" + ("" if who.full == who.id else f" ({who.id})"), "bold")
        if answer.failure is not None:
            self._line(f"failed: {answer.failure.kind}: {answer.failure.message}", "red")
        else:
            self._line("does not address the question" if answer.absent else answer.text)
        if answer.citations:
            self._line(f"cites: {', '.join(answer.citations)}", "dim")
        for warning in answer.warnings:
            self._line(f"doubtful: {warning}", "yellow")
        if not whole:
            return
        for step in answer.trace:
            self._line(f"{step.stage}, {step.what}: {step.text}", "dim")
            for found in step.found:
                self._line(f"    {found}", "dim")
        for passage in answer.evidence:
            self._line(f"passage: {passage.heading or 'untitled'} ({passage.id})", "bold")
            self._line(passage.text)
        for name in answer.dropped:
            self._line(f"did not fit: {name}", "yellow")

    def _pair(self, pair: Comparison) -> None:
        both = self._names.both_judged(pair.reasoning, pair.a, pair.b)
        if pair.failure is not None:
            self._line(f"\n{both}: no label ({pair.failure.kind}: {pair.failure.message})", "red")
            return
        facts = "; ".join(part for part in (pair.significance, pair.topic, pair.basis) if part)
        self._line(f"\n{both}: {pair.label} ({facts})")
        if pair.reasoning:
            self._line(self._names.with_names(pair.reasoning, pair.a, pair.b), "dim")

    def _line(self, text: str, style: str = "") -> None:
        self._console.print(Text(for_terminal(text), style=style), soft_wrap=not self._console.is_terminal)
