"""A task file that Inspect runs as it is."""

from __future__ import annotations

from pathlib import Path

from hoofbeat.benchmarks.export import ExportBundle, ExportFormat, lettered
from hoofbeat.benchmarks.exports.lm_eval import check_answers, task_name
from hoofbeat.records import Question
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl

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


FORMAT = _Inspect()


def _sample(question: Question, choice: bool) -> dict[str, object]:
    """One sample: text, or a message of text and images; the target of a choice is its letter."""
    given: object = question.full_text
    if question.images:
        images = [{"type": "image", "image": name} for name in question.images]
        given = [{"role": "user", "content": [{"type": "text", "text": question.full_text}, *images]}]
    sample: dict[str, object] = {"id": question.id, "input": given, "metadata": question.facets}
    if choice:
        return {**sample, "choices": question.options, "target": lettered(question)[1]}
    return {**sample, "target": question.answer}
