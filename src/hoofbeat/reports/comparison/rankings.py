"""Rankings of the same questions compared: which line is better, by how much, and whether chance explains it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.breakdown import values_of
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.findings.outcomes import scored_outcomes
from hoofbeat.findings.ranking_measures import RANKINGS, TREC_RUN
from hoofbeat.findings.systems import (
    Ablation,
    AnswersAndRetrieval,
    SystemTable,
    ablation,
    answers_and_retrieval,
    compare_systems,
)
from hoofbeat.judging import JudgmentFolder
from hoofbeat.records import Question
from hoofbeat.store import Artefact, InputRef, open_artefact
from hoofbeat.store.tables import number_cell, read_jsonl, read_tsv

Values = dict[str, dict[str, float]]
"""Question to measure to value."""


class RankingsComparison(Struct, frozen=True, kw_only=True):
    """Lines set against each other by every measure they share; the first of `tables` is of the main measure.

    `sets` are the sets that questions belong to where there are several, `grid` the settings that differ where all
    lines come from one with braces, `answers` how right the answers were that go with each ranking.
    """

    folders: tuple[Artefact, ...]
    systems: dict[str, Values]
    questions: tuple[Question, ...]
    sets: dict[str, str] | None
    clusters: dict[str, str]
    tables: tuple[SystemTable, ...]
    grid: Ablation | None
    answers: tuple[AnswersAndRetrieval, ...]
    baseline: str
    seed: int

    @property
    def left_out(self) -> int:
        """How many questions are left out because not every line has a value for them."""
        return max(row.left_out for row in self.tables[0].means)


def compare_rankings(
    folders: Sequence[Path],
    *,
    baseline: str = "",
    judged: Sequence[Path] = (),
    condition: str = "",
    seed: int = 0,
) -> RankingsComparison:
    """Compare rankings folders by every measure that all of them have.

    `judged` are folders of judgments, one for each of the rankings, in their order: how right the answers were is then
    set against how good the ranking was, over all sets of a line together.
    """
    artefacts = [open_artefact(folder, RANKINGS) for folder in folders]
    common = set.intersection(*(set(artefact.manifest.metrics) for artefact in artefacts))
    measures = [name for name in artefacts[0].manifest.metrics if name in common]
    if not measures:
        raise UsageError("these rankings have no measure in common", fix="rank them with the same --measure")
    systems, asked, sets, places = _systems(artefacts)
    clusters = clusters_of(asked)
    return RankingsComparison(
        folders=tuple(artefacts),
        systems=systems,
        questions=tuple(asked),
        sets=sets,
        clusters=clusters,
        tables=tuple(
            compare_systems(systems, measure, baseline=baseline, clusters=clusters, seed=seed) for measure in measures
        ),
        grid=None if sets else _ablation(artefacts, list(systems.values()), measures[0], clusters, seed),
        answers=tuple(_answers(systems, places, judged, condition, measures[0], clusters, seed)),
        baseline=baseline,
        seed=seed,
    )


def verdicts_of(judged: JudgmentFolder, condition: str) -> dict[str, bool | None]:
    """Whether each question was answered rightly in one condition by the one model; None where that is not known."""
    found = scored_outcomes(judged.questions, judged.each_answer(), judged.each_judgment())
    conditions = list(dict.fromkeys(each.condition for each in found))
    if condition and condition not in conditions:
        raise UsageError(f"nothing was judged under {condition!r}", fix=f"there are: {', '.join(conditions)}")
    if not condition and len(conditions) > 1:
        raise UsageError(
            "answers were judged under several conditions",
            where=str(judged.artefact.path),
            fix=f"choose one with --condition: {', '.join(conditions)}",
        )
    chosen = condition or next(iter(conditions), "")
    rows = [each for each in found if each.condition == chosen and each.sample == 0]
    models = list(dict.fromkeys(each.model for each in rows))
    if len(models) > 1:
        raise UsageError(
            f"these are answers of several models: {', '.join(models)}",
            where=str(judged.artefact.path),
            fix="judge a run of one model, and give its folder",
        )
    return {each.question: each.correct for each in rows}


def _systems(
    artefacts: Sequence[Artefact],
) -> tuple[dict[str, Values], list[Question], dict[str, str] | None, list[tuple[str, str]]]:
    """Each line's measures by question, the questions, and the set that each belongs to where there are several sets.

    Last, each folder's system and what its questions' names begin with.

    Rankings of one line over several sets are one system; its questions are then named after their sets. A line that
    comes twice over one set is told apart by its folder.
    """
    for artefact in artefacts:
        if "bed" not in artefact.manifest.settings:
            raise InputError(
                "the manifest does not say which test collection was searched",
                where=str(artefact.path),
                fix="make the ranking again with: hoofbeat retrieve",
            )
    beds = list(dict.fromkeys(str(artefact.manifest.settings["bed"]) for artefact in artefacts))
    contents = {(artefact.manifest.settings["bed"], repr(_searched(artefact))) for artefact in artefacts}
    if len(contents) > len(beds):
        raise UsageError(
            "these rankings are of different questions or documents under one name",
            where=", ".join(beds),
            fix="compare rankings of the same benchmark and corpus",
        )
    times = Counter((artefact.manifest.title, artefact.manifest.settings["bed"]) for artefact in artefacts)
    systems: dict[str, Values] = {}
    asked: dict[str, Question] = {}
    sets: dict[str, str] = {}
    libraries: dict[str, int] = {}
    places: list[tuple[str, str]] = []
    for artefact in artefacts:
        title, bed = artefact.manifest.title, str(artefact.manifest.settings["bed"])
        name = title if times[title, bed] == 1 else f"{title} ({artefact.path.name})"
        values = systems.setdefault(name, {})
        before = f"{bed}: " if len(beds) > 1 else ""
        places.append((name, before))
        shelf = libraries.setdefault(_library(artefact), len(libraries))
        if not artefact.has("queries.tsv"):
            raise UsageError(f"{artefact.path} has no measures", fix="name rankings of a benchmark with judgments")
        for question in read_jsonl(artefact.file("questions.jsonl"), Question):
            asked[before + question.id] = _renamed(question, before, shelf)
            sets[before + question.id] = bed
        for row in read_tsv(artefact.file("queries.tsv")):
            values.setdefault(before + row["query"], {})[row["measure"]] = number_cell(
                row, "value", artefact.path / "queries.tsv"
            )
    if len(systems) * len(beds) != len(artefacts):
        raise UsageError(
            "not every line was run over every set, or a folder is named twice",
            where=f"{len(systems)} lines, {len(beds)} sets, {len(artefacts)} folders",
            fix="name the rankings of each line over each of the sets, once",
        )
    return systems, list(asked.values()), sets if len(beds) > 1 else None, places


def _searched(artefact: Artefact) -> list[InputRef]:
    """The questions and documents behind a rankings folder, without the run file that it was read from."""
    return [each for each in artefact.manifest.inputs if each.kind != TREC_RUN]


def _library(artefact: Artefact) -> str:
    """What holds the documents that were ranked: two sets may be of one corpus, and then share documents."""
    inputs = _searched(artefact)
    return repr([each.sha256 for each in inputs if each.kind == "corpus"] or inputs)


def _renamed(question: Question, before: str, library: int) -> Question:
    """A question named after its set; its documents are told apart from those that another library calls the same."""
    documents = tuple(f"{library}: {name}" for name in question.documents) if before else question.documents
    return replace(question, id=before + question.id, documents=documents)


def _ablation(
    artefacts: Sequence[Artefact],
    values: Sequence[Values],
    measure: str,
    clusters: Mapping[str, str] | None,
    seed: int,
) -> Ablation | None:
    """The grid of settings, where all rankings come from one line with braces."""
    settings = [artefact.manifest.settings.get("variant") for artefact in artefacts]
    named = [dict(each) for each in settings if isinstance(each, dict)]
    if len(named) != len(artefacts) or any(list(a) != list(b) for a, b in pairwise(named)) or len(named[0]) > 2:
        return None
    down, *across = named[0]
    runs: list[tuple[Mapping[str, object], Values]] = list(zip(named, values, strict=True))
    return ablation(
        runs,
        measure,
        down=down,
        across=across[0] if across else "",
        baseline=named[0],
        clusters=clusters,
        seed=seed,
    )


def _answers(
    systems: Mapping[str, Values],
    places: Sequence[tuple[str, str]],
    judged: Sequence[Path],
    condition: str,
    measure: str,
    clusters: Mapping[str, str] | None,
    seed: int,
) -> list[AnswersAndRetrieval]:
    if not judged:
        return []
    if len(judged) != len(places):
        raise UsageError(
            f"{len(places)} rankings and {len(judged)} folders of judgments", fix="give --judged once for each ranking"
        )
    verdicts: dict[str, dict[str, bool | None]] = {}
    for (name, before), path in zip(places, judged, strict=True):
        found = verdicts_of(JudgmentFolder.open(path), condition)
        verdicts.setdefault(name, {}).update({before + question: right for question, right in found.items()})
    scores = {name: values_of(values, measure) for name, values in systems.items()}
    return answers_and_retrieval(verdicts, scores, clusters=clusters, seed=seed)
