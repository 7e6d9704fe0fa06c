"""Models for the tests of leakage: one that has memorised some questions, and one that has not."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from pathlib import Path

from hoofbeat.leakage.leakage_text import LeakageItem, plan_leakage
from hoofbeat.models import ChatRequest, Likelihood, Model
from hoofbeat.models.requests import Trouble
from hoofbeat.records import Question, Span
from hoofbeat.store import Ledger
from hoofbeat.store.files import slug
from tests.recipes.support import Script, user_text

__all__ = ["Remembering", "invented_questions", "model_of"]

_WORDS = """
fever rash swelling ankle scan shadow liver kidney spleen thyroid pulse pressure cough sputum blood urine sugar sodium
weight travel river garden horse cattle tablet cream drip dose morning evening week month year sister brother mother
clinic ward nurse surgeon letter photograph ring spot band node vessel nerve muscle bone skin hair
"""
_VAGUE = "The patient was then examined further and treated according to what was found, with a good outcome after all."


def invented_questions(count: int = 12) -> list[Question]:
    """Invented cases that share little wording, each with a source, an answer and evidence for it."""
    made = []
    for number in range(count):
        drawn = random.Random(number)

        def sentence(opening: str, drawn: random.Random = drawn) -> str:
            return f"{opening} {' '.join(drawn.choices(_WORDS.split(), k=14))}."

        openings = (f"Invented person {number} had", "Later came", "Then there was", "In the end only")
        context = " ".join(map(sentence, openings))
        proof = sentence("It helps because of")
        made.append(
            Question(
                id=f"q-{number:02d}",
                context=context,
                text="What should be done next?",
                answer=sentence("Give remedy"),
                documents=(f"d-{number:02d}",),
                evidence=(Span(document=f"d-{number:02d}", start=0, end=len(proof), quote=proof),),
                facets={"specialty": "surgery" if number % 2 else "medicine", "year": str(2018 + number % 8)},
            )
        )
    return made


class Remembering(Script):
    """A scripted model: knows some questions word for word, finds their texts likely, and nothing else."""

    def __init__(self, questions: Iterable[Question], known: Collection[str], name: str, *, likelihoods: bool = True):
        self.items: list[LeakageItem] = plan_leakage(list(questions))
        self.known = set(known)
        self.scored = 0
        self._likelihoods = likelihoods
        super().__init__(self._reply, name)

    def _reply(self, prompt: str, request: ChatRequest) -> object:
        shown = user_text(request)
        for item in self.items:
            if item.question.id in self.known and item.question.context[:60] in shown:
                if prompt == "leakage-continue":
                    return item.rest
                if prompt == "leakage-rationale":
                    return f"{item.reference} {item.explanation}"
        return "No idea." if prompt == "leakage-canary" else _VAGUE

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        self.scored += 1
        if not self._likelihoods:
            return Trouble(kind="unsupported", message="no log-probabilities here")
        words = tuple(continuation.split())
        texts = {t.strip() for i in self.items if i.question.id in self.known for t in (i.rest, i.reference)}
        each = -0.1 if continuation.strip() in texts else -3.0
        return Likelihood(total=each * len(words), tokens=words, logprobs=(each,) * len(words))


def model_of(script: Script, folder: Path) -> Model:
    """The script as a model with a ledger of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    return Model(spec=script.identity, backend=script, ledger=Ledger(folder / f"{slug(script.identity)}.sqlite"))
