"""A preset: a paper's protocol as data, and how it becomes steps for the benchmark and the models at hand.

A preset adds no stage. Its steps are runs, judgments, rankings and audits as the commands make them, with the settings
that the paper names. Whatever can't be done as in the paper is a `PaperDifference`: it is told before anything is
spent, and it is in the report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from msgspec import Struct

from hoofbeat.answering.answerers import SamplingSettings, parse_answerer
from hoofbeat.answering.run_plan import RunPlan, plan_run
from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import UsageError
from hoofbeat.models.model_loading import Session
from hoofbeat.presets.protocol_steps import ProtocolStep
from hoofbeat.reports.sections.protocol_section import PaperDifference
from hoofbeat.reports.tables import count_of
from hoofbeat.text import some_of

EMBEDDED_ENCODER = "minilm"
_ANY = SamplingSettings(temperature=1.0)  # a protocol's own settings are checked when its run is planned
_NAMED = 5
_NOT_LETTERS = re.compile(r"[\W_]+")


class PaperInputs(Struct, frozen=True, kw_only=True):
    """What the user gave; `judge` is the first model where none was named."""

    paths: tuple[Path, ...]
    session: Session
    models: tuple[str, ...]
    judge: str
    retrievers: tuple[str, ...] = ()
    corpus: Path | None = None
    encoder: str = EMBEDDED_ENCODER
    limit: int | None = None
    seed: int = 0

    def bench(self, edition: str = "") -> Benchmark:
        """The one benchmark; where several folders were given, an error."""
        if len(self.paths) > 1:
            raise UsageError("this protocol takes one benchmark", fix="name one folder, and run the others separately")
        return Benchmark.open(self.paths[0], edition)

    @property
    def specs(self) -> list[str]:
        """The models that answer, without the options in their brackets."""
        return [parse_answerer(model, sampling=_ANY).spec for model in self.models]

    def able(self, need: str) -> tuple[list[str], list[str]]:
        """The models that may have this ability (`images`, `likelihoods`), and those that are known to lack it."""
        lacking = {spec for spec in self.specs if need in self.session.model(spec).lacks}
        named = list(zip(self.models, self.specs, strict=True))
        return [each for each, spec in named if spec not in lacking], [each for each, spec in named if spec in lacking]

    def plan_run(
        self,
        bench: Benchmark,
        *,
        conditions: Sequence[str],
        models: Sequence[str] = (),
        protocols: Sequence[str] = (),
        samples: int = 1,
        temperature: float = 0.0,
    ) -> RunPlan:
        """A run of the benchmark by all models, or by these, with the user's limit, seed and corpus."""
        return plan_run(
            bench,
            models=models or self.models,
            conditions=conditions,
            protocols=protocols,
            corpus=self.corpus,
            limit=self.limit,
            samples=samples,
            temperature=temperature,
            seed=self.seed,
            option_seed=self.seed,
        )


class ProtocolPlan(Struct, frozen=True, kw_only=True):
    """The steps in order, where they differ from the paper, and whether they ask a language model at all."""

    steps: tuple[ProtocolStep, ...]
    differences: tuple[PaperDifference, ...] = ()
    asks_model: bool = True


class Preset(Struct, frozen=True, kw_only=True):
    """A paper's protocol.

    `protocol` says in words what the paper did, `questions` how many it asked, and `data_format` which import reads the
    set that it released. `models` are those of its tables, `judge` is its judge where the protocol has one. `plan`
    makes the steps. `published` names the paper whose figures are set beside ours. `draws` and `size` are of its
    bootstrap.
    """

    extension_kind: ClassVar[str] = "preset"
    extension_package: ClassVar[str] = "hoofbeat.presets.papers"

    name: str
    title: str
    protocol: str
    plan: Callable[[PaperInputs], ProtocolPlan]
    questions: int = 0
    data_format: str = ""
    models: tuple[str, ...] = ()
    judge: str = ""
    published: str = ""
    draws: int = 8
    size: int = 500

    @property
    def summary(self) -> str:
        """Its title, for listings."""
        return self.title

    def differences(self, inputs: PaperInputs, *, asks_model: bool = True) -> list[PaperDifference]:
        """What may differ in any protocol: the questions, and where a model is asked, models, judge and prompts."""
        found = self._data(inputs)
        if not asks_model:
            return found
        found += self._models(inputs)
        if self.judge and not names_model(inputs.judge, [self.judge]):
            own = " (it also answered)" if inputs.judge in inputs.specs else ""
            found.append(PaperDifference("judge", self.judge, f"{inputs.judge}{own}"))
        found.append(PaperDifference("prompts", "the paper's own", "Hoofbeat's, written to the same specification"))
        return found

    def _data(self, inputs: PaperInputs) -> list[PaperDifference]:
        """Whether these are the questions of the paper, all of them."""
        theirs = f"{count_of(self.questions, 'question')} of {self.title}" if self.questions else self.title
        found = []
        for path in inputs.paths:
            if not (path / "manifest.json").is_file():
                continue  # a folder in the released layout, which the preset itself looks at
            bench = Benchmark.open(path)
            count, released = len(bench.questions), bench.manifest.settings.get("format") == self.data_format
            if not released or (self.questions and count != self.questions):
                how = "imported" if released else "not imported from the released files"
                found.append(
                    PaperDifference("data set", theirs, f"{count_of(count, 'question')} of {path.name}, {how}")
                )
            if inputs.limit is not None and inputs.limit < count:
                found.append(PaperDifference("sample", "all questions", f"the first {inputs.limit:,} of {count:,}"))
        return found

    def _models(self, inputs: PaperInputs) -> list[PaperDifference]:
        """The models that the paper's tables do not have."""
        ours = list(dict.fromkeys(inputs.specs))
        other = [spec for spec in ours if not names_model(spec, self.models)]
        if not other or not self.models:
            return []
        return [
            PaperDifference("models", some_of(self.models, _NAMED), f"{', '.join(other)}: not in the paper's tables")
        ]


def names_model(spec: str, names: Sequence[str]) -> bool:
    """Whether a model's spec names one of these models, however it is punctuated."""
    plain = _NOT_LETTERS.sub("", spec.rpartition("#")[2].rpartition(":")[2].rpartition("/")[2].casefold())
    return any(plain == _NOT_LETTERS.sub("", name.casefold()) for name in names)


def require_options(bench: Benchmark, why: str) -> None:
    """Refuse a benchmark without options for a protocol that needs them."""
    if not any(question.options for question in bench.questions):
        raise UsageError(
            f"no question of this benchmark has options: {why}",
            where=str(bench.path),
            fix="import the released files with hoofbeat benchmark import, or build a benchmark with hoofbeat build",
        )
