"""`hoofbeat ask`: a case in free text, similar reports, an answer with its citations, and whether sources agree."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import click
import msgspec

from hoofbeat.ask.ask_flow import prepare_ask, run_ask
from hoofbeat.ask.ask_records import (
    MAX_CHARACTERS,
    NOTICE,
    AskRequest,
    AskResult,
    CitedAnswer,
    SimilarReport,
    agreement_view,
)
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option, ledger_option, reasoning_option
from hoofbeat.errors import UsageError
from hoofbeat.models import SPEC_HELP, Model
from hoofbeat.models.model_loading import Session, open_session
from hoofbeat.text import for_terminal

_WIDTH = 400
_LISTS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")
_PATH = 1000


@click.command("ask")
@click.argument("words", metavar="CORPUS... TEXT", nargs=-1, required=True)
@click.option("--line", default="bm25 + dense", show_default=True, help="Retriever line.")
@click.option(
    "--model", "model_spec", default="", help=f"Model that answers [default: none, only search]: {SPEC_HELP}."
)
@click.option("--by", default="auto", show_default=True, metavar="FACET",
              help="How to distinguish sources: a facet, document, or none; auto uses institution.")  # fmt: skip
@click.option("--k", type=click.IntRange(1, 20), default=5, show_default=True, help="Number of reports to show.")
@click.option(
    "--pack", default="guidelines", show_default=True, help="Domain pack with the labels for how sources relate."
)
@ledger_option
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--budget", help="Hard limit in dollars (2.50) or calls (200calls).")
@reasoning_option
@json_option
def command(
    words: tuple[str, ...],
    line: str,
    model_spec: str,
    by: str,
    k: int,
    pack: str,
    ledger_path: str | None,
    config_path: Path | None,
    budget: str | None,
    reasoning: int | None,
    as_json: bool,
) -> None:
    """Search CORPUS folders for reports like the case in TEXT, and answer it from them.

    TEXT is the last argument: the case in quotes, - for standard input, or a file with a list of questions (CSV, JSON
    lines), which are asked one after the other. Without --model, Hoofbeat searches for reports and gives no answer.
    """
    screen = Screen(as_json=as_json)
    if len(words) < 2:
        raise UsageError("ask needs a corpus and a case", fix='hoofbeat ask CORPUS "a man of 40 with fever"')
    *folders, text = words
    texts = _texts(text)
    first, shelves = prepare_ask(
        AskRequest(text=texts[0], line=line, model=model_spec, by=by, k=k, pack=pack),
        [Path(each) for each in folders],
    )
    asks = [msgspec.structs.replace(first, text=each) for each in texts]
    opened = open_session(ledger_path=ledger_path, config_path=config_path, budget=budget, reasoning=reasoning)
    with _model(model_spec, opened) as model:
        results = [run_ask(ask, shelves, model=model, progress=screen) for ask in asks]
        if model is not None:
            screen.calls(model)
    if as_json:
        told = [
            {"ask": msgspec.to_builtins(ask), **msgspec.to_builtins(each)}
            for ask, each in zip(asks, results, strict=True)
        ]
        screen.emit({"notice": NOTICE, **(told[0] if len(told) == 1 else {"asks": told})})
        return
    for ask, each in zip(asks, results, strict=True):
        if len(asks) > 1:
            click.echo(for_terminal(f"\nQUESTION\n{ask.text}\n"))
        _show(each)


def _texts(text: str) -> list[str]:
    """The case, from standard input where it is `-` (no more than could be searched for), or a file's questions."""
    if text == "-":
        return [sys.stdin.read(MAX_CHARACTERS + 1)]
    if len(text) < _PATH and "\n" not in text and Path(text).suffix in _LISTS and Path(text).is_file():
        from hoofbeat.benchmarks.benchmark_import import read_questions

        return [question.full_text for question in read_questions(Path(text))]
    return [text]


@contextmanager
def _model(spec: str, opened: AbstractContextManager[Session]) -> Iterator[Model | None]:
    if not spec:
        yield None
        return
    with opened as session:
        yield session.model(spec)


def _show(found: AskResult) -> None:
    """The results on standard output: the notice, the answer, the sources, the reports."""
    lines = [NOTICE]
    lines += [f"\n{note}" for note in found.notes]
    lines += _answer(found.cited) if found.cited else []
    lines += _sources(found) if found.agreement else []
    lines += ["\nSIMILAR REPORTS"] if found.reports else ["\nNo similar report was found."]
    lines += [line for report in found.reports for line in _report(report)]
    click.echo(for_terminal("\n".join(lines)))


def _answer(cited: CitedAnswer) -> list[str]:
    answer = cited.answer
    if answer.failure is not None:
        return ["\nANSWER", f"The model gave no answer: {answer.failure.message} ({answer.failure.kind})."]
    text = "".join(f"{part.text}(?)" if part.doubt else part.text for part in cited.parts)
    doubts = [f"  (?) {doubt.text + ': ' if doubt.text else ''}{doubt.what}" for doubt in cited.doubts]
    return [
        f"\nANSWER by {answer.model}",
        text,
        *(["Hoofbeat checked the citations. Not supported:", *doubts] if doubts else []),
    ]


def _sources(found: AskResult) -> list[str]:
    assert found.agreement is not None
    view = agreement_view(found.agreement)
    lines = ["\nDO THE SOURCES AGREE?", view.sentence]
    for source in view.sources:
        answer = source.answer
        says = "(does not address it)" if answer.absent else answer.text
        lines.append(f"  {source.name}: {answer.failure.message if answer.failure else says}")
        lines += [f"      (?) {warning}" for warning in answer.warnings]
    for _, pair in view.pairs:
        label = "could not be compared" if pair.failure else pair.label
        about = "; ".join(filter(None, (pair.topic, pair.significance and f"{pair.significance} significance")))
        lines.append(f"  {pair.a} / {pair.b}: {label}{f' ({about})' if about else ''}")
    return lines


def _report(report: SimilarReport) -> list[str]:
    ways = "; ".join(f"{stage}: place {place}, {score:.4f}" for stage, (place, score) in report.via.items())
    lines = [f"\n{report.rank}. {report.title}", f"   {report.corpus}/{report.document}  ({ways})"]
    for each in report.passages:
        text = " ".join(each.passage.text.split())
        cut = f"{text[:_WIDTH]}…" if len(text) > _WIDTH else text
        lines.append(f"   [{each.number}] {each.passage.heading}: {cut}")
    return lines
