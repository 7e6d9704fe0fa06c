"""What the tests of judging share: run folders of invented answers, and judges that say what a test wants said."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from hoofbeat.judging import AnswerFolder, JudgingJob, JudgmentFolder, judge_folder
from hoofbeat.models import ChatRequest, Model
from hoofbeat.records import Answer, Passage, Question
from hoofbeat.store import Counts, Ledger, Manifest, create
from hoofbeat.store.tables import write_jsonl
from tests.recipes.support import Script, user_text

__all__ = ["QUESTIONS", "a_judge", "a_run", "by_words", "chose", "judged_by", "said", "user_text"]

QUESTIONS = [
    Question(id="bath", text="May I have a bath?", answer="Not for four weeks.", documents=("d",)),
    Question(id="drug", text="Which drug?", answer="Rituximab", options=("Rituximab", "Aspirin", "None")),
    Question(id="open", text="May I have a sauna?"),
]


def said(text: str, *, question: str = "bath", model: str = "m", condition: str = "closed", sample: int = 0) -> Answer:
    """An answer in free text; under oracle, with what was shown."""
    shown = (Passage(id="d#0", document="d", text="Invented: no baths for a month."),) if condition == "oracle" else ()
    return Answer(question=question, model=model, condition=condition, sample=sample, text=text, evidence=shown)


def chose(choice: str | None, *, model: str = "m", sample: int = 0, reading: str = "only-letter") -> Answer:
    """An answer that chooses an option of the question `drug`."""
    return Answer(
        question="drug",
        model=model,
        condition="closed, letter",
        protocol="letter",
        sample=sample,
        text="I weighed them all.",
        reasoning="Aspirin thins the blood.",
        options=("Aspirin", "None", "Rituximab"),
        choice=choice,
        reading=reading,
    )


def a_run(
    path: Path,
    answers: Iterable[Answer],
    *,
    questions: Sequence[Question] = QUESTIONS,
    models: Mapping[str, str] | None = None,
) -> AnswerFolder:
    """A run folder of these answers."""
    with create(path, replace_kind="run") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        count = write_jsonl(draft.path / "answers.jsonl", answers)
        roles = dict(models or {"answer": "the model that answered"})
        draft.finish(Manifest(kind="run", title="invented", models=roles, counts=Counts(kept=count)))
    return AnswerFolder.open(path)


def by_words(**labels: str) -> Callable[[str, ChatRequest], object]:
    """A judge that knows the label by a word of the answer; what no word fits gets the first allowed label."""

    def says(prompt: str, request: ChatRequest) -> object:
        text = user_text(request)
        assert request.schema is not None
        allowed = request.schema["properties"]["label"]["enum"]  # type: ignore[index]
        label = next((label for word, label in labels.items() if word in text and label in allowed), allowed[0])
        object_ = {"reason": f"seen by {prompt}", "label": label}
        return {**object_, "secondary": "none"} if prompt == "failure-mode" else object_

    return says


def a_judge(ledger: Ledger, says: Callable[[str, ChatRequest], object], name: str = "judge") -> tuple[Model, Script]:
    """A judge behind the model seam, and what it was asked."""
    script = Script(says, name)
    return Model(spec=name, backend=script, ledger=ledger), script


def judged_by(folder: AnswerFolder, target: Path, **job: object) -> JudgmentFolder:
    """Judge a folder and open the result."""
    judge_folder(folder, JudgingJob(**job), target)  # type: ignore[arg-type]
    return JudgmentFolder.open(target)
