"""Tasks that evaluation harnesses run as they are: a folder for lm-evaluation-harness, a file for Inspect."""

from __future__ import annotations

import re
from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, lettered
from hoofbeat.errors import UsageError
from hoofbeat.records import Question
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl

_LOADER = '''"""Loads the questions beside this file, wherever the harness is started from."""

from pathlib import Path

import datasets


def load(**_settings):
    path = Path(__file__).parent / "questions.jsonl"
    return datasets.load_dataset("json", data_files={"test": str(path)})
'''
_CHOICE_TASK = """task: {name}
custom_dataset: !function loading.load
test_split: test
output_type: multiple_choice
doc_to_text: "{{{{question}}}}\\n\\nAnswer:"
doc_to_choice: "{{{{options}}}}"
doc_to_target: gold
metric_list:
  - metric: acc
    aggregation: mean
    higher_is_better: true
  - metric: acc_norm
    aggregation: mean
    higher_is_better: true
metadata:
  version: 1.0
"""
_TEXT_TASK = """task: {name}
custom_dataset: !function loading.load
test_split: test
output_type: generate_until
doc_to_text: "{{{{question}}}}\\n\\nAnswer:"
doc_to_target: answer
generation_kwargs:
  until: ["\\n\\n"]
  max_gen_toks: 256
  do_sample: false
metric_list:
  - metric: exact_match
    aggregation: mean
    higher_is_better: true
    ignore_case: true
    ignore_punctuation: true
metadata:
  version: 1.0
"""


class _LmEval(ExportFormat):
    name = "lm-eval"
    summary = "a task folder for lm-evaluation-harness"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """A task for `lm_eval --include_path FOLDER`: by option likelihood where there are options, else free text."""
        check_answers(bundle)
        with_images = next((question for question in bundle.questions if question.images), None)
        if with_images is not None:
            raise UsageError(
                f"{with_images.id} has images, which lm-evaluation-harness can't show",
                where=str(bundle.bench.artefact.path),
                fix="use --as inspect, which shows images, or choose an edition without images with --edition",
            )
        choice = all(question.options for question in bundle.questions)
        rows = [
            {
                "id": question.id,
                "question": question.full_text,
                "answer": question.answer,
                **({"accepted": question.accepted} if question.accepted else {}),
                **({"options": question.options, "gold": question.options.index(question.answer)} if choice else {}),
            }
            for question in bundle.questions
        ]
        name = task_name(bundle)
        write_jsonl(folder / "questions.jsonl", rows)
        write_bytes(folder / "loading.py", _LOADER.encode())
        write_bytes(folder / f"{name}.yaml", (_CHOICE_TASK if choice else _TEXT_TASK).format(name=name).encode())
        return len(rows)


def task_name(bundle: ExportBundle) -> str:
    """A name that both harnesses take, from the recipe or the folder."""
    edition = f"_{bundle.bench.edition}" if bundle.bench.edition else ""
    recipe = str(bundle.manifest.settings.get("recipe") or bundle.bench.artefact.path.name)
    return "hoofbeat_" + re.sub(r"\W+", "_", recipe + edition).strip("_").lower()


def check_answers(bundle: ExportBundle) -> None:
    """A harness scores answers: every question must have its own, among its options where it has some."""
    where = str(bundle.bench.artefact.path)
    for question in bundle.questions:
        if not question.answer.strip():
            raise UsageError(
                f"{question.id} has no gold answer, so a harness can't score it",
                where=where,
                fix="export questions without answers as jsonl, sourceqa or beir, and ask them with hoofbeat audit",
            )
        if question.options and question.answer not in question.options:
            raise UsageError(
                f"the answer of {question.id} is not one of its options",
                where=where,
                fix="correct or rebuild the benchmark, or export it as jsonl",
            )


_INSPECT_TASK = '''"""Run with: inspect eval {file} --model ..."""

from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import json_dataset
from inspect_ai.scorer import {scorer}
from inspect_ai.solver import {solver}


@task
def {name}() -> Task:
    questions = json_dataset(str(Path(__file__).parent / "questions.jsonl"))
    return Task(dataset=questions, solver={solver}(), scorer={scorer}())
'''


class _Inspect(ExportFormat):
    name = "inspect"
    summary = "a task file for Inspect"

    def write(self, bundle: ExportBundle, folder: Path) -> int:
        """A task file for `inspect eval`; a model grades free text, and questions with images show them."""
        check_answers(bundle)
        choice = all(question.options for question in bundle.questions)
        write_jsonl(folder / "questions.jsonl", (_sample(question, choice) for question in bundle.questions))
        bundle.copy_images(bundle.questions, folder)
        name = task_name(bundle)
        solver, scorer = ("multiple_choice", "choice") if choice else ("generate", "model_graded_qa")
        code = _INSPECT_TASK.format(file=f"{name}.py", name=name, solver=solver, scorer=scorer)
        write_bytes(folder / f"{name}.py", code.encode())
        return len(bundle.questions)


FORMATS = (_LmEval(), _Inspect())


def _sample(question: Question, choice: bool) -> dict[str, object]:
    """One sample: text, or a message of text and images; the target of a choice is its letter."""
    given: object = question.full_text
    if question.images:
        images = [{"type": "image", "image": name} for name in question.images]
        given = [{"role": "user", "content": [{"type": "text", "text": question.full_text}, *images]}]
    sample: dict[str, object] = {"id": question.id, "input": given, "metadata": question.facets}
    right = question.right_answers
    if choice:
        letters = [letter for letter, option in lettered(question)[0].items() if option in right]
        return {**sample, "choices": question.options, "target": letters if len(letters) > 1 else letters[0]}
    return {**sample, "target": list(right) if len(right) > 1 else question.answer}
