"""A model for the command: what a scripted one said of the invented teaching cases, as `replay:` reads it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hoofbeat import teaching
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.recipes.recipe import Recipe, read_settings
from tests.cli.support import hoofbeat
from tests.recipes.papers.clinbench_model import by_gold
from tests.recipes.support import build

__all__ = ["EIGHT", "answer_batch", "record", "teaching_cases"]

EIGHT = tuple(f"hbt-case-{number:02d}" for number in (1, 2, 3, 4, 6, 9, 12, 23))
"""Cases enough for tests of the command: six become questions, five with figures; steps reject two for two reasons."""


def teaching_cases(folder: Path, *names: str) -> Corpus:
    """The teaching cases, or those of these names with their figures, as the corpus `cases` in a folder."""
    source = teaching.cases_folder()
    if names:
        chosen = folder / "chosen"
        for path in [path for path in source.rglob("hbt-case-*") if path.name.startswith(names)]:
            target = chosen / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        source = chosen
    return Corpus(import_corpus([source], folder / "cases", workers=1))


def record(folder: Path, corpus: Corpus, *builds: tuple[Recipe, Mapping[str, str]]) -> None:
    """Build with the scripted model in a place of its own, and write all it said to `calls.jsonl` in the folder."""
    scratch = folder / "recorded"
    scratch.mkdir()
    for recipe, given in builds:
        build(scratch, recipe, corpus, read_settings(recipe, given), by_gold)
    hoofbeat("ledger", "export", "calls.jsonl", "--ledger", str(scratch / "ledger.sqlite"), folder=folder)


def answer_batch(calls: Path, requests: Path, answers: Path) -> int:
    """Answer a file of batch requests as the recording does; how many there were."""
    known = {_asked(line["request"]["request"]): line["reply"]["text"] for line in _lines(calls)}
    answered = []
    for request in _lines(requests):
        message = {"role": "assistant", "content": known[_asked(request["body"])]}
        body = {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
        answered.append({"custom_id": request["custom_id"], "response": {"status_code": 200, "body": body}})
    answers.write_text("".join(json.dumps(line) + "\n" for line in answered), encoding="utf-8")
    return len(answered)


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _asked(request: dict[str, Any]) -> tuple[str, ...]:
    return tuple(message["content"] for message in request["messages"])
