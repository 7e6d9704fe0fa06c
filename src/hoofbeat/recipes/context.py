"""What the steps of a recipe work with: the corpus, models by their role, the encoder, seeds, a place for tables.

A step never loads anything itself. What it takes from here is recorded in the benchmark's manifest.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Prompt
from hoofbeat.records import Document
from hoofbeat.store import Cost
from hoofbeat.window import DEFAULT_WINDOW, beginning, room_for, size

if TYPE_CHECKING:
    from hoofbeat.corpus import Corpus
    from hoofbeat.corpus.vocabulary import Vocabulary
    from hoofbeat.models import Model
    from hoofbeat.models.encoder import Encoder

CUT_MARK = "\n[The text goes on. The rest does not fit and is not shown.]"
"""The end of a text that was cut to fit a model's window."""

_SPARE_TOKENS = 200
_KEPT_DOCUMENTS = 256
_MIN_ROOM = 400


class RecipeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parameters of a recipe: every threshold, with its default, its bounds and what it means."""


class TableFile(Struct, frozen=True):
    """A table that a recipe leaves in the benchmark's folder beside the questions."""

    header: tuple[str, ...]
    rows: Sequence[Sequence[object]]


class RecipeContext:
    """One run of a recipe.

    `models` are by role: `model` always, `second` where a second one is given, `committee-1` and so on for steps that
    ask several. A role that is not filled falls back to `model`; `roles_used` says what served for what. With `limit`
    only the first candidates are taken.
    """

    def __init__(
        self,
        corpus: Corpus | None,
        settings: RecipeSettings,
        *,
        models: Mapping[str, Model],
        encoder: Callable[[], Encoder] | None = None,
        seed: int = 0,
        progress: Progress = SILENT,
        estimating: bool = False,
        limit: int | None = None,
    ) -> None:
        self._corpus = corpus
        self.limit = limit
        self.settings: Any = settings
        self.seed = seed
        self.progress = progress
        self.estimating = estimating
        self.tables: dict[str, TableFile] = {}
        self.metrics: dict[str, object] = {}
        self.asked_again: dict[str, dict[str, int]] = {}
        self.prompts_used: dict[str, str] = {}
        self.roles_used: dict[str, str] = {}
        self.vocabularies_used: dict[str, str] = {}
        self.files_used: dict[str, Path] = {}
        self.unwritten: dict[str, str] = {}  # texts by item that steps read and no file may hold
        self._counting = False
        self._fitted: Counter[str] = Counter()
        self._cut: dict[str, dict[str, int]] = {}
        self._models = dict(models)
        self._load_encoder = encoder
        self._encoder: Encoder | None = None
        self._vocabularies: dict[str, Vocabulary] = {}
        self._document = lru_cache(maxsize=_KEPT_DOCUMENTS)(self._read_document)

    @property
    def has_corpus(self) -> bool:
        """Whether there is a corpus: a benchmark can be checked without one."""
        return self._corpus is not None

    @property
    def corpus(self) -> Corpus:
        """The corpus."""
        if self._corpus is None:
            raise UsageError("this recipe needs a corpus", fix="name it: --corpus")
        return self._corpus

    def document(self, id: str) -> Document:
        """A document of the corpus."""
        return self._document(id)

    def _read_document(self, id: str) -> Document:
        return self.corpus.get(id)

    def model(self, role: str = "model") -> Model:
        """The model that serves for a role."""
        model = self._models.get(role) or self._models.get("model")
        if model is None:
            raise UsageError(f"this recipe needs a model ({role})", fix="name one: --model")
        self.roles_used[role] = model.identity
        return model

    def model_facts(self) -> dict[str, object]:
        """The windows and prices of the models that served, as a manifest records them."""
        from hoofbeat.models.model import model_facts  # noqa: PLC0415 - where there are models, it is loaded already

        return model_facts({role: self.model(role) for role in sorted(self.roles_used) if role != "encoder"})

    @property
    def batch_folders(self) -> list[Path]:
        """The batch folders of its models."""
        found = (getattr(model.backend, "folder", None) for model in self._models.values())
        return list(dict.fromkeys(folder for folder in found if isinstance(folder, Path)))

    def committee(self) -> list[str]:
        """The roles of the models that steps ask in turn; empty where no committee was given."""
        roles = [role for role in self._models if role.startswith("committee-")]
        return sorted(roles, key=lambda role: int(role.rpartition("-")[2]))

    def encoder(self) -> Encoder:
        """The sentence encoder."""
        if self._encoder is None:
            if self._load_encoder is None:
                raise UsageError("this recipe needs a sentence encoder", fix="name one: --encoder")
            self._encoder = self._load_encoder()
            self.roles_used["encoder"] = self._encoder.identity
        return self._encoder

    def vocabulary(self, name: str) -> Vocabulary:
        """A vocabulary by its name, such as `icd10cm`."""
        from hoofbeat.corpus.vocabulary import load_vocabulary  # noqa: PLC0415 - lxml, only where codes are looked up

        if name not in self._vocabularies:
            self._vocabularies[name] = load_vocabulary(name)
            self.vocabularies_used[name] = self._vocabularies[name].release
        return self._vocabularies[name]

    def rng(self, *words: object) -> random.Random:
        """A separate random generator for these words (a step, an item): its numbers depend on nothing else."""
        return random.Random(":".join(map(str, (self.seed, *words))))  # noqa: S311 - seeded sampling, no secret

    def fit(self, text: str, prompt: Prompt, role: str = "model", *, beside: int = 0) -> str:
        """As much of a text's beginning as the model's window holds, besides the prompt and `beside` bytes.

        A text that is cut says so at its end: a model that checks a claim against half a report would call what it
        can't see unsupported. What is cut is counted in the metric `cut to fit`, by prompt.
        """
        room = self.room(prompt, role, beside=beside)
        if self._counting:
            self._fitted[prompt.name] += 1
        if size(text) <= room:
            return text
        cut = beginning(text, room - len(CUT_MARK))
        cut = cut[: cut.rfind(" ")] if " " in cut else cut
        if self._counting:
            entry = self._cut.setdefault(prompt.name, {"texts": 0, "characters_left_out": 0})
            entry["texts"] += 1
            entry["characters_left_out"] += len(text) - len(cut)
        return cut + CUT_MARK

    def room(self, prompt: Prompt, role: str = "model", *, beside: int = 0) -> int:
        """How many bytes of material the model's window holds, besides the prompt and `beside` bytes."""
        model = self.model(role)
        own = (prompt.system, prompt.user, msgspec.json.encode(prompt.schema or {}).decode())
        room = room_for(model.context, prompt=_SPARE_TOKENS, output=prompt.max_tokens, beside=own) - beside
        if room < _MIN_ROOM:
            raise UsageError(
                f"the window of {model.spec} ({model.context or DEFAULT_WINDOW} tokens) is too small for the prompt "
                f"{prompt.name}",
                fix="use a model with a larger window, or set its context in hoofbeat.toml",
            )
        return room

    @contextmanager
    def counting(self) -> Iterator[None]:
        """While a step is planned, what `fit` leaves out is counted; when calls are made again it is not."""
        self._counting = True
        try:
            yield
        finally:
            self._counting = False

    def left_out(self) -> dict[str, dict[str, int]]:
        """What did not fit the models' windows, by prompt: texts that were cut, of how many, and characters."""
        return {name: {**entry, "of": self._fitted[name]} for name, entry in sorted(self._cut.items())}

    @property
    def cost(self) -> Cost:
        """What all models used so far cost."""
        distinct = {id(model): model for model in self._models.values()}
        return sum((model.cost for model in distinct.values()), Cost())


def fit_all(texts: Mapping[str, str], prompt: Prompt, context: RecipeContext, role: str = "model") -> dict[str, str]:
    """The texts as a prompt takes them: short ones whole, and of the long ones as much as fits beside the rest.

    A text that is no longer than its fair share of the window is short. The longest gets what the others leave.
    """
    share = context.room(prompt, role) // max(1, len(texts))
    fitted: dict[str, str] = {}
    waiting = sorted(texts, key=lambda name: size(texts[name]))
    while waiting:
        name = waiting.pop(0)
        text = texts[name]
        if size(text) > share or not waiting:
            beside = sum(map(size, fitted.values())) + share * len(waiting)
            text = context.fit(text, prompt, role, beside=beside)
        fitted[name] = text
    return {name: fitted[name] for name in texts}
