"""What the tests of recipes share: a small corpus, and a context whose model says what a test wants said."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hoofbeat.corpus import Corpus
from hoofbeat.models import ChatRequest, Encoder, Likelihood, Model, Reply
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.benchmark_output import build_benchmark
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe import Recipe
from hoofbeat.records import Document, Usage
from hoofbeat.store import Artefact, Counts, Ledger, Manifest, create
from hoofbeat.store.tables import write_jsonl
from hoofbeat.window import ContextWindow

__all__ = ["Script", "a_context", "a_corpus", "build", "passing_trial", "user_text"]

Says = Callable[[str, ChatRequest], object]


class Script:
    """A backend behind the model seam: `says` is given the prompt's name and the request, and returns what to answer.

    A dictionary is answered as JSON, a string as it is, a `Trouble` as what went wrong. Every request is kept, except
    those of the trials and the review that every question goes through: `trials` answers these, and by default finds
    nothing wrong.
    """

    max_in_flight = 8

    def __init__(self, says: Says, name: str = "scripted", *, trials: Says | None = None) -> None:
        self.identity = name
        self.requests: list[tuple[str, ChatRequest]] = []
        self._says = says
        self._trials = trials or passing_trial

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def abandon(self) -> None: ...

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        name = request.prompt.partition("@")[0]
        tries = name.startswith(("trial-", "item-review"))
        if not tries:
            self.requests.append((name, request))
        said = (self._trials if tries else self._says)(name, request)
        if isinstance(said, Trouble):
            return said
        text = said if isinstance(said, str) else json.dumps(said)
        return Reply(text=text, usage=Usage(tokens_in=10, tokens_out=5))

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        return Trouble(kind="unsupported", message="a script gives no likelihoods")

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        return Trouble(kind="unsupported", message="a script gives no embeddings")

    async def relevance(self, query: str, texts: Sequence[str]) -> list[float] | Trouble:
        return Trouble(kind="unsupported", message="a script gives no relevance scores")

    def count(self, name: str) -> int:
        """How many calls were made with this prompt."""
        return sum(called == name for called, _ in self.requests)


def passing_trial(name: str, request: ChatRequest) -> object:
    """What trial and review say of a question that has nothing wrong with it; the solvers choose the first option."""
    if name == "item-review":
        edits = {"problems": [], "edits": [], "new_question": "", "new_answer": "", "new_options": []}
        signed = {**edits, "accepted": [], "grading_note": "", "verdict": "sign", "reason": "fit to be published"}
        signed |= {"requirements": [], "exclusions": [], "answer_check": []}
        wanted: Any = (request.schema or {})["properties"]
        return {field: signed[field] for field in wanted}
    if name == "trial-compare":
        listed: Any = (request.schema or {})["properties"]
        letters = listed["options"]["items"]["properties"]["option"]["enum"]
        fine = {
            "reason": "another disease",
            "relation": "different",
            "also_right": "no",
            "absurd": "no",
            "style": "same",
        }
        return {"options": [{"option": letter, **fine} for letter in letters]}
    if name == "trial-referee":
        return {"faults": [], "publish": "yes"}
    if name == "trial-grading":
        return {"grades": _grades(request), "guess": "no"}
    fields: dict[str, object] = {"reason": "the findings", "answerable": "yes", "missing": ""}
    return {
        "trial-choice": {**fields, "choice": "A"},
        "trial-options": {"reason": "nothing points to it", "choice": "A", "basis": "chance"},
        "trial-open": {**fields, "answer": "What the case calls for.", "others": [], "told": ""},
        "trial-question": {"reason": "nothing points to it", "led": "no", "answer": "Something else."},
        "trial-match": {"reason": "the same", "match": "yes", "supported": "yes", "missing": "", "rival": ""},
    }[name]


def _grades(request: ChatRequest) -> list[dict[str, str]]:
    """Every answer that is to be graded is plainly another one."""
    wanted: Any = (request.schema or {})["properties"]
    letters = wanted["grades"]["items"]["properties"]["attempt"].get("enum", ())
    return [{"attempt": each, "counts": "no", "defensible": "no", "reason": "another step"} for each in letters]


def user_text(request: ChatRequest) -> str:
    """What the user message says."""
    return next(message.content for message in request.messages if message.role == "user")


def a_corpus(folder: Path, documents: Sequence[Document]) -> Corpus:
    """A corpus folder of these documents."""
    target = folder / "corpus"
    with create(target, replace_kind="corpus") as draft:
        write_jsonl(draft.path / "documents.jsonl", documents)
        draft.finish(Manifest(kind="corpus", title="for a test", counts=Counts(kept=len(documents))))
    return Corpus.open(target)


@contextmanager
def a_context(
    folder: Path,
    documents: Sequence[Document] | Corpus,
    settings: RecipeSettings,
    says: Says | Mapping[str, Script],
    *,
    encoder: Callable[[], Encoder] | None = None,
    seed: int = 0,
    estimating: bool = False,
    window: ContextWindow | None = None,
) -> Iterator[RecipeContext]:
    """A context over these documents. `says` scripts the one model, or gives scripts by role."""
    corpus = documents if isinstance(documents, Corpus) else a_corpus(folder, documents)
    scripts = says if isinstance(says, Mapping) else {"model": Script(says)}
    with Ledger(folder / "ledger.sqlite") as ledger:
        models = {
            role: Model(spec=each.identity, backend=each, ledger=ledger, window=window)
            for role, each in scripts.items()
        }
        yield RecipeContext(corpus, settings, models=models, encoder=encoder, seed=seed, estimating=estimating)


def build(
    folder: Path,
    recipe: Recipe,
    documents: Sequence[Document] | Corpus,
    settings: RecipeSettings,
    says: Any,
    **more: Any,
) -> Artefact:
    """Build a benchmark in `folder/bench`."""
    with a_context(folder, documents, settings, says, **more) as context:
        return build_benchmark(recipe, context, folder / "bench")
