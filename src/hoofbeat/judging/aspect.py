"""What an aspect is: a question that a judge is asked about an answer, with its prompt, labels and reading."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from msgspec import Struct

from hoofbeat.judging.criteria import Criterion, answer_text, no_answer_failure
from hoofbeat.models import ChatRequest, Model
from hoofbeat.prompts import Prompt, load_prompt
from hoofbeat.records import Answer, Failure, Question


class JudgeRequest(Struct, frozen=True, kw_only=True):
    """One call to a judge, or why there is nothing to ask; `passage` is the passage that is judged, if it is one."""

    request: ChatRequest | None = None
    failure: Failure | None = None
    passage: str = ""


class JudgeReply(Struct, frozen=True, kw_only=True):
    """What a judge's object says."""

    label: str
    reasoning: str
    secondary: str = ""
    score: float | None = None


class Aspect(Criterion, frozen=True, kw_only=True):
    """One aspect that a model judges.

    `prompt` is the name of a prompt in the library, or a prompt of the aspect's file (`parse_prompt`). Without more, it
    takes `question`, `reference` and `answer` and its output has `reason` and `label`; override `values` and `read`
    where it takes or says more. `explains` means that only wrong answers are judged. `graded` means that judges give a
    score: the median counts, and `label_of` makes its label. `conditions` are those whose answers are judged where the
    user names none, and `conditions_note` says why. `second_label` means that an answer may get two labels.
    `prompt_role` is the prompt's name in a manifest.
    """

    extension_kind: ClassVar[str] = "aspect"
    extension_package: ClassVar[str] = "hoofbeat.judging.aspects"

    prompt: str | Prompt
    explains: bool = False
    graded: bool = False
    conditions: tuple[str, ...] = ()
    conditions_note: str = ""
    second_label: bool = False
    prompt_role: str = ""

    @property
    def template(self) -> Prompt:
        """The prompt."""
        return load_prompt(self.prompt) if isinstance(self.prompt, str) else self.prompt

    @property
    def for_people(self) -> bool:
        """Whether people can be asked the same of an answer: they choose a label, and judge the answer as a whole."""
        return bool(self.labels) and not self.graded and self.takes != "passages"

    @property
    def role(self) -> str:
        """What a manifest calls the prompt."""
        return self.prompt_role or f"judge of {self.name}"

    @property
    def fits_texts(self) -> bool:
        """Whether it fills its prompt in its own way, which may fit texts into the judge's window."""
        return type(self).values is not Aspect.values or type(self).ask is not Aspect.ask

    def window(self, judge: Model) -> int | None:
        """The judge's window; it is not asked for where nothing is fitted into it."""
        return judge.context if self.fits_texts else None

    def values(self, question: Question, answer: Answer, window: int | None) -> dict[str, object]:  # noqa: ARG002
        """The values of the prompt's variables, within a window of that many tokens (None: not known)."""
        return {"question": question.full_text, "reference": question.reference, "answer": answer_text(answer)}

    def request(self, question: Question, answer: Answer, window: int | None, *, sample: int = 0) -> ChatRequest:
        """The call that judges one answer; `sample` asks once more."""
        return self.template.request(self.values(question, answer, window), sample=sample)

    def ask(self, question: Question | None, answer: Answer, window: int | None) -> list[JudgeRequest]:
        """The calls about an answer, or why there are none."""
        if (failure := no_answer_failure(question, answer)) is not None or question is None:
            return [JudgeRequest(failure=failure)]
        return [JudgeRequest(request=self.request(question, answer, window))]

    def read(self, value: Mapping[str, Any]) -> JudgeReply:
        """What the judge's object says; it fits the prompt's output contract."""
        return JudgeReply(label=str(value["label"]), reasoning=str(value["reason"]).strip())

    def label_of(self, score: float) -> str:
        """The label of a score."""
        return str(score)
