"""What `hoofbeat retrieve` does: many lines, and runs of other software, ranked and measured on one test collection."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from hoofbeat.errors import BatchPending, OutputError, UsageError
from hoofbeat.findings.ranking_measures import RANKINGS, Measure
from hoofbeat.models import Estimate, Model
from hoofbeat.models.model import LedgerModel
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Question
from hoofbeat.retrieval.hero.hero_evidence import HeroEvidence, SourceEvidence
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.line import Variant, cost_bound, every_stage, parse, variants
from hoofbeat.retrieval.rankings.rankings_folder import (
    MEASURES,
    TrecRun,
    asked_models,
    line_facts,
    measure_run,
    rank_line,
    read_trec_runs,
)
from hoofbeat.retrieval.rankings.test_collection import TestCollection
from hoofbeat.retrieval.retriever import Retriever
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.artefact import clear_abandoned, count_outcomes, folder_entries, refuse_foreign
from hoofbeat.store.files import output_errors
from hoofbeat.store.tables import read_tsv, write_jsonl, write_tsv
from hoofbeat.window import tokens_at_most

_COMPARISON = "comparison"
_LISTING = "lines.tsv"
_EMBEDDED_AT_ONCE = 32
_PASSAGE_TOKENS = 250
_PASSAGE_CHARACTERS = 800
_EVIDENCE = "evidence"
_PASSAGES = 5


class RankingPlan(Struct, frozen=True, kw_only=True):
    """Lines and runs to be measured on one test collection, checked. `documents` are those among which is searched."""

    collection: TestCollection
    systems: tuple[Variant, ...]
    runs: tuple[TrecRun, ...] = ()
    documents: tuple[str, ...] | None = None
    top: int = 100
    measures: tuple[str, ...] = MEASURES
    seed: int = 0
    edition: str = ""
    command: tuple[str, ...] = ()

    def estimate(self, load: Callable[[str], Model], progress: Progress = SILENT) -> Estimate:
        """The maximum of calls that the lines can make, by what their stages may ask for each question.

        `load` gives the models that the lines ask, for their allowances for reasoning and their prices. Of several
        models of a line, the largest counts for all of its calls. Calls that the ledger has are not counted: where it
        has some with a line's prompts, the line is gone through with its replies, which needs the indexes.
        """
        questions = list(self.collection.questions)
        asked = int(sum(tokens_at_most(question.full_text) for question in questions))
        total = Estimate()
        for system in self.systems:
            bound = estimate_line(system.line, len(questions), asked, self._encoded(system.line), load)
            total = total + _less(bound, self._paid(system.line, questions, load, progress))
        return total

    def language_models(self) -> tuple[str, ...]:
        """The language models that the lines ask, by name; an empty name is the model of the command."""
        asking = (stage for system in self.systems for stage in every_stage(parse(system.line)) if stage.prompts())
        return tuple(dict.fromkeys(name for stage in asking for name in stage.models()))

    def _paid(self, line: str, questions: Sequence[Question], load: Callable[[str], Model], progress: Progress) -> int:
        """How many calls of a line the ledger has already, as far as its replies lead."""
        asking = [stage for stage in every_stage(parse(line)) if stage.models()]
        if encodes_by_endpoint(line) or not any(
            model.ledger.count_by_prompt(model.identity).keys() & stage.prompts().keys()
            for stage in asking
            for model in map(load, stage.models())
        ):
            return 0
        readers: dict[str, LedgerModel] = {}

        def read(spec: str) -> Model:
            return readers.setdefault(spec, LedgerModel(load(spec)))

        retriever = Retriever(self.collection.indexes(progress, models=UsedModels(load)), line, model=read)
        retriever.run([(question.id, question.full_text) for question in questions], self.top, self.documents)
        return sum(reader.estimated.cached for reader in readers.values())

    def _encoded(self, line: str) -> int:
        """About how many texts an embeddings endpoint would encode for a line; none where it names no endpoint."""
        if not encodes_by_endpoint(line):
            return 0
        passages = sum(passages_of(len(document.text)) for document in self.collection.documents)
        return len(list(self.collection.questions)) + passages


def _less(bound: Estimate, paid: int) -> Estimate:
    """An estimate without calls that are paid already; tokens and money go down with the number of calls."""
    known = min(paid, bound.calls)
    if not known:
        return bound
    left = (bound.calls - known) / bound.calls
    return Estimate(
        calls=bound.calls - known,
        cached=known,
        tokens_in=math.ceil(bound.tokens_in * left),
        max_tokens_out=math.ceil(bound.max_tokens_out * left),
        max_money=None if bound.max_money is None else bound.max_money * left,
    )


def encodes_by_endpoint(line: str) -> bool:
    """Whether a line names an encoder that is an endpoint."""
    return any(":" in spec for stage in every_stage(parse(line)) for spec in stage.encoders())


def passages_of(characters: int) -> int:
    """About how many passages a text of that length is cut into."""
    return 1 + characters // _PASSAGE_CHARACTERS


def estimate_line(line: str, questions: int, asked: int, encoded: int, load: Callable[[str], Model]) -> Estimate:
    """The maximum that a line spends on that many questions of `asked` tokens together, and on texts to encode."""
    bound = cost_bound(parse(line))
    stages_asking = [stage for stage in every_stage(parse(line)) if stage.models()]
    models = [load(name) for name in dict.fromkeys(name for each in stages_asking for name in each.models())]
    allowance = max((model.reasoning for model in models), default=0)
    tokens_in = bound.calls * asked + bound.tokens_in * questions + encoded * _PASSAGE_TOKENS
    tokens_out = (bound.tokens_out + bound.calls * allowance) * questions
    prices = [model.price.of(tokens_in, tokens_out) if model.price else None for model in models]
    known = [price for price in prices if price is not None]
    return Estimate(
        calls=bound.calls * questions + -(-encoded // _EMBEDDED_AT_ONCE),
        tokens_in=tokens_in,
        max_tokens_out=tokens_out,
        max_money=None if encoded or len(known) < len(models) or not models else max(known),
    )


class RankedLine(NamedTuple):
    """The rankings folder of one line or run, and the models that the line asked."""

    artefact: Artefact
    models: tuple[Model, ...]


def read_lines(lines: Sequence[str]) -> tuple[Variant, ...]:
    """Every line that these give, in canonical form; the same line twice counts once."""
    systems = {str(parse(variant.line)): variant for line in lines for variant in variants(line)}
    return tuple(Variant(line, variant.settings) for line, variant in systems.items())


def plan_rankings(
    collection: TestCollection,
    systems: Sequence[Variant],
    *,
    runs: Sequence[Path] = (),
    where: Sequence[str] = (),
    top: int = 100,
    measures: Sequence[str] = MEASURES,
    seed: int = 0,
    edition: str = "",
    command: Sequence[str] = (),
) -> RankingPlan:
    """Check what is to be ranked before anything is done; `read_lines` gives the systems."""
    parsed = [Measure.parse(measure) for measure in measures]
    if runs and not collection.qrels:
        raise UsageError("a run can't be measured without judgments", fix="name a benchmark with judgments")
    if runs and where:
        raise UsageError("--where can't change what an existing run ranks", fix="leave one of the two out")
    documents = collection.chosen(where)
    if collection.qrels:
        _check_depth(parsed, top)
    return RankingPlan(
        collection=collection,
        systems=tuple(systems),
        runs=tuple(read_trec_runs(runs, collection, top)),
        documents=None if documents is None else tuple(documents),
        top=top,
        measures=tuple(dict.fromkeys(map(str, parsed))),
        seed=seed,
        edition=edition,
        command=tuple(command),
    )


def rank(
    plan: RankingPlan, indexes: IndexSet, output: Path, *, load: Callable[[str], Model], encoders: UsedModels
) -> Iterator[RankedLine]:
    """Rank and measure one line after the other, then the runs; each has a folder when it is yielded.

    `load` gives language models by name, `encoders` are the endpoints behind the encoders of the indexes.
    """
    names = [*plan.systems, *(Variant(run.name, {}) for run in plan.runs)]
    for system in plan.systems if len(names) > 1 else ():
        Retriever(indexes, system.line, model=UsedModels(load)).prepare()
    places = _places(output, names)
    pending: list[BatchPending] = []
    for folder, system in places[: len(plan.systems)]:
        models = UsedModels(load)
        try:
            artefact = rank_line(
                plan.collection,
                indexes,
                system.line,
                folder,
                top=plan.top,
                measures=plan.measures,
                documents=plan.documents,
                seed=plan.seed,
                models=models,
                encoders=encoders,
                settings=_settings(system, plan.edition),
                command=plan.command,
            )
        except BatchPending as err:  # the other lines' requests are answered in the same round
            pending.append(err)
            continue
        yield RankedLine(artefact, tuple(models.used.values()))
    for run, (folder, system) in zip(plan.runs, places[len(plan.systems) :], strict=True):
        artefact = measure_run(
            plan.collection,
            run,
            folder,
            top=plan.top,
            measures=plan.measures,
            seed=plan.seed,
            settings=_settings(system, plan.edition),
            command=plan.command,
        )
        yield RankedLine(artefact, ())
    if pending:
        raise BatchPending.together(pending)
    _tidy(output, places)


def _settings(variant: Variant, edition: str) -> dict[str, object]:
    """What the manifest says of a line besides the line itself."""
    said = {"variant": variant.settings, "edition": edition}
    return {name: value for name, value in said.items() if value}


def _check_depth(measures: Sequence[Measure], top: int) -> None:
    """A measure that looks deeper than the rankings go would measure the limit, not the line."""
    deepest = max((measure for measure in measures if measure.cutoff), key=lambda each: each.cutoff or 0, default=None)
    if deepest is not None and deepest.cutoff is not None and deepest.cutoff > top:
        raise UsageError(
            f"{deepest} needs more than the {top} documents that are ranked",
            fix=f"use --top {deepest.cutoff}, or other measures (--measure)",
        )


def _places(output: Path, systems: Sequence[Variant]) -> list[tuple[Path, Variant]]:
    """Where each line's rankings go: the output folder itself, or for several lines folders in it.

    The folder of several lines lists them in `lines.tsv`. What is listed from before stays until the new rankings are
    there (`_tidy`); a folder that holds anything else is left alone and refused.
    """
    if len(systems) == 1:
        return [(output, systems[0])]
    listing = output / _LISTING
    before = {row["folder"]: row["line"] for row in read_tsv(listing)} if listing.is_file() else {}
    known = {*before, _LISTING, _COMPARISON}
    found = [path.name for path in folder_entries(output)] if output.is_dir() else []
    strange = [name for name in found if name not in known]
    if strange or (output.exists() and not output.is_dir()):
        raise OutputError(
            f"not overwritten: not an earlier run of several lines ({', '.join(strange[:3]) or 'a file'})",
            where=str(output),
            fix="choose another folder with -o",
        )
    for name in found:
        if (output / name).is_dir():
            refuse_foreign(output / name)
    places = [(output / f"{number:02d}-{_slug(each.line)}", each) for number, each in enumerate(systems, start=1)]
    with output_errors(output):
        output.mkdir(parents=True, exist_ok=True)
        clear_abandoned(output)
    listed = before | {folder.name: each.line for folder, each in places}
    write_tsv(listing, ("folder", "line"), sorted(listed.items()))
    return places


def _tidy(output: Path, places: Sequence[tuple[Path, Variant]]) -> None:
    """Remove what an earlier run of several lines left and this one did not replace."""
    if len(places) < 2:
        return
    listing = output / _LISTING
    now = {folder.name: each.line for folder, each in places}
    for name in {_COMPARISON, *(row["folder"] for row in read_tsv(listing))} - set(now):
        folder = output / Path(name).name
        if folder.is_dir():
            open_artefact(folder, (RANKINGS, _COMPARISON))
            refuse_foreign(folder)
            shutil.rmtree(folder)
    write_tsv(listing, ("folder", "line"), list(now.items()))


def _slug(line: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", line.lower()).strip("-")[:60] or RANKINGS


def find_evidence(
    plan: RankingPlan, indexes: IndexSet, target: Path, *, models: UsedModels, encoders: UsedModels
) -> Artefact:
    """Find the evidence of every document by itself for every question, by the plan's one line; write its folder."""
    if len(plan.systems) > 1:
        raise UsageError("evidence can be found with one line at a time", fix="give one --with, without braces")
    retriever = Retriever(indexes, plan.systems[0].line, model=models)
    queries = [(question.id, question.full_text) for question in plan.collection.questions]
    names = list(indexes.documents if plan.documents is None else plan.documents)
    outcomes: list[str | None] = []
    routes: dict[str, int] = {}

    def found() -> Iterator[SourceEvidence]:
        for each in retriever.evidence(queries, names, _PASSAGES):
            outcomes.append(each.failure.kind if each.failure else None)
            routes[each.route] = routes.get(each.route, 0) + 1
            yield each.record() if isinstance(each, HeroEvidence) else each

    with create(target, replace_kind=_EVIDENCE) as draft:
        write_jsonl(draft.path / "evidence.jsonl", found())
        draft.finish(
            Manifest(
                kind=_EVIDENCE,
                title=f"{retriever.line}, per source",
                command=list(plan.command),
                inputs=plan.collection.inputs,
                settings={
                    **retriever.describe(),
                    "bed": plan.collection.name,
                    **plan.collection.part,
                    "sources": len(names),
                    "passages": _PASSAGES,
                    **line_facts(models),
                },
                models=asked_models(retriever, models, encoders),
                prompts=retriever.prompts,
                counts=count_outcomes(outcomes),
                metrics={"routes": dict(sorted(routes.items()))},
                cost=models.cost,
            )
        )
    return open_artefact(target, _EVIDENCE)
