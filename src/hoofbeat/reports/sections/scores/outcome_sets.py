"""What the chapters on scores read: folders of judgments and of runs that belong together, as one set of outcomes.

Folders of the same questions are read as one, so that conditions and models that were run apart can be compared; the
denominator is always what was planned. Answers are never held: each look at them reads the files again, and of
judgments only labels and scores are kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from hoofbeat.answering.condition_material import read_source, read_title
from hoofbeat.findings.agreement import people_majority
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.findings.outcomes import HUMAN, Outcome, SystemKey, scored_outcomes
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.records import Answer, Facets, Judgment, Question
from hoofbeat.reports.tables import model_name
from hoofbeat.store import Artefact, Cost
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

_ALL = ("instruction", "limit", "edition")
_EACH = ("temperature", "samples", "seed", "max_tokens")
_SPEC = re.compile(r"\[([^\]]*)\]$")
_LONGEST = 60


class FolderSettings(Struct, frozen=True):
    """The settings of one folder: those of all its answers, and those of each model where they are its own."""

    common: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, model: str) -> dict[str, str]:
        """What was set for one model, whether its name says so or not."""
        return {**self.common, **_written(model), **self.models.get(model, {})}

    def unwritten(self) -> dict[str, str]:
        """What no model's name says: the settings of all answers, and those that all models of the folder share."""
        found = dict(self.common)
        for name in _EACH:
            values = {mine[name] for model, mine in self.models.items() if name in mine and name not in _written(model)}
            if values:
                found[name] = " and ".join(sorted(values))
        return found


def asked_of(artefact: Artefact, given: Sequence[Artefact] = ()) -> FolderSettings:
    """What a folder's manifest says; for judgments what their run says, where it is given or they have kept it."""
    manifest = artefact.manifest
    settings, seeds = manifest.settings, manifest.seeds
    prompts = {f"prompt {name}": label for name, label in manifest.prompts.items()}
    if manifest.kind != "run":
        behind = {ref.sha256 for ref in manifest.inputs}
        run = next((each.manifest for each in given if each.reference().sha256 in behind), None)
        kept = settings.get("asked")
        settings = run.settings if run else kept if isinstance(kept, dict) else {}
        seeds = run.seeds if run else _numbers(settings.get("seeds"))
    common = {name: _told(settings[name]) for name in (*_ALL, "temperature", "samples") if name in settings}
    if "options" in seeds:
        common["seed of the options' order"] = str(seeds["options"])
    if "sampling" in seeds:
        common["seed"] = str(seeds["sampling"])
    sampling = settings.get("sampling")
    models = {
        str(model): {name: _told(mine[name]) for name in _EACH if name in mine}
        for model, mine in (sampling.items() if isinstance(sampling, Mapping) else ())
        if isinstance(mine, Mapping)
    }
    if models:
        common = {name: value for name, value in common.items() if name not in _EACH}
    return FolderSettings({**common, **prompts}, models)


def differing(folders: Sequence[tuple[str, FolderSettings]]) -> list[str]:
    """What differs between folders, a line each: the setting, and its value in which folder."""
    found = [(name, asked.unwritten()) for name, asked in folders]
    lines = []
    for setting in dict.fromkeys(key for _, values in found for key in values):
        where: dict[str, list[str]] = {}
        for name, values in found:
            if setting in values:
                where.setdefault(values[setting], []).append(name)
        if len(where) > 1:
            told = "; ".join(f"{cut(value, _LONGEST)} in {', '.join(names)}" for value, names in where.items())
            lines.append(f"{setting}: {told}")
    return lines


def clashing(one: FolderSettings, other: FolderSettings, models: Sequence[str]) -> list[str]:
    """The settings in which the same model was asked otherwise in another folder."""
    found: dict[str, None] = {}
    for model in models:
        mine, theirs = one.of(model), other.of(model)
        found.update(dict.fromkeys(name for name in mine if name in theirs and mine[name] != theirs[name]))
    return [name for name in found if name != "limit"]


def _written(model: str) -> dict[str, str]:
    """The settings that a model's name says."""
    inside = _SPEC.search(model)
    pairs = [pair.partition("=") for pair in inside[1].split(",")] if inside else []
    return {name.strip(): _told(value.strip()) for name, _, value in pairs if name.strip() in _EACH}


def _told(value: object) -> str:
    if value is None or value == "":
        return "none"
    try:
        return f"{float(str(value)):g}"
    except ValueError:
        return str(value)


def _numbers(value: object) -> dict[str, int]:
    return {str(name): each for name, each in value.items() if isinstance(each, int)} if isinstance(value, dict) else {}


_CLOSED = ("closed", "closed-book")
_PART = re.compile(r"first (?!100%)[\d.]+%")
_SUMMED = ("answers", "failed", "tokens_in", "tokens_out", "used", "own_source", "own_title", "dropped")


class SystemTally(Struct, frozen=True, kw_only=True):
    """What the answers of one system say of themselves: how many, by which protocol, how long, how much was dropped.

    `own_source` read the report that their question was made from, `own_title` another document with its title.
    """

    protocol: str
    answers: int = 0
    failed: int = 0
    samples: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    used: int = 0
    own_source: int = 0
    own_title: int = 0
    dropped: int = 0


class PeopleCount(Struct, frozen=True, kw_only=True):
    """Answers of one system that people labelled: `right` of `labelled`; `contested` are those they differ on."""

    right: int = 0
    labelled: int = 0
    contested: int = 0

    def __add__(self, label: Judgment) -> PeopleCount:
        if label.failure:
            return replace(self, contested=self.contested + 1)
        right = self.right + (label.label == EQUIVALENCE.positive)
        return replace(self, right=right, labelled=self.labelled + 1)


class OutcomeSet(Struct, kw_only=True):
    """Outcomes of the same questions: what every section on scores is made from.

    `order` are the systems in the order they were run, the closed book of a model first. `unjudged` are systems whose
    free text nobody has judged; they are in no score. `by_people` are systems whose free text only people have
    labelled, with how many answers got a label; `people` are their names. `judgments` are without reasoning and calls.
    `asked` are the settings of each folder by its name; `apart` says from which folders of the same questions this one
    was kept apart, and why.
    """

    prefix: str
    artefacts: list[Artefact]
    questions: dict[str, Question]
    tallies: dict[SystemKey, SystemTally] = field(default_factory=dict)
    judgments: list[Judgment] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    order: list[SystemKey] = field(default_factory=list)
    unjudged: list[SystemKey] = field(default_factory=list)
    by_people: dict[SystemKey, PeopleCount] = field(default_factory=dict)
    people: list[str] = field(default_factory=list)
    runs: list[Artefact] = field(default_factory=list)
    asked: list[tuple[str, FolderSettings]] = field(default_factory=list)
    apart: list[str] = field(default_factory=list)

    @property
    def models(self) -> int:
        """How many models there are; where there is one, its name goes without saying."""
        return len({model for model, _ in self.order})

    @property
    def clusters(self) -> dict[str, str]:
        """Question to what it shares with others: its source documents, and through them theirs."""
        return clusters_of(self.questions.values())

    @property
    def facets(self) -> dict[str, Facets]:
        """Question to its facets."""
        return {question.id: question.facets for question in self.questions.values()}

    @property
    def judge(self) -> str:
        """Who judged, as the folders name the model or models."""
        return next((name for each in self.artefacts if (name := _judge(each))), "")

    @property
    def care(self) -> str:
        """A word of warning for differences, where folders were asked or judged in different ways."""
        names = [line.partition(":")[0] for line in differing(self.asked)]
        if not names:
            return ""
        return f"The folders differ in {', '.join(names)}, so a difference may not be due to the condition or model."

    @property
    def self_judged(self) -> bool:
        """Whether a judge is also a model that answered."""
        for artefact in self.artefacts:
            models = artefact.manifest.models
            answering = {name for role, name in models.items() if role.partition(":")[0] == "answer"}
            judging = {name for role, name in models.items() if role.startswith("judge")}
            if answering & judging or artefact.manifest.settings.get("judges_that_answered"):
                return True
        return False

    @property
    def whole(self) -> OutcomeSet:
        """Without the systems that were shown only the first part of a case, which have a curve of their own."""
        kept = [system for system in self.order if not _PART.match(system[1])]
        return self.only(kept) if kept else self

    def protocols(self) -> list[OutcomeSet]:
        """The systems of each protocol apart, as results of two protocols are not ranked together."""
        names = list(dict.fromkeys(self.tallies[system].protocol for system in self.order))
        return [self.only([each for each in self.order if self.tallies[each].protocol == name]) for name in names]

    def only(self, systems: Sequence[SystemKey]) -> OutcomeSet:
        """Only these systems; folders, questions and judgments stay."""
        kept = set(systems)
        rows = [row for row in self.outcomes if (row.model, row.condition) in kept]
        return replace(self, order=list(systems), outcomes=rows)

    def each_answer(self) -> Iterator[Answer]:
        """Every answer of every folder, one at a time."""
        for artefact in self.artefacts:
            yield from read_jsonl(artefact.file("answers.jsonl"), Answer)

    def each_judgment(self) -> Iterator[Judgment]:
        """Every judgment in full, one at a time."""
        for artefact in self.artefacts:
            if artefact.has("judgments.jsonl"):
                yield from read_jsonl(artefact.file("judgments.jsonl"), Judgment)

    def name(self, system: SystemKey) -> str:
        """A system as it is written in charts: what all systems share goes without saying."""
        if self.models < 2:
            return system[1]
        return system[0] if len({condition for _, condition in self.order}) < 2 else f"{system[0]} · {system[1]}"

    def costs(self) -> dict[str, Cost]:
        """Model to what its answers cost, as the runs recorded it."""
        found: dict[str, Cost] = {}
        for artefact in {each.reference().sha256: each for each in (*self.runs, *self.artefacts)}.values():
            if artefact.manifest.kind != "run":
                continue
            named = artefact.manifest.costs or _only(artefact, [model for model, _ in self.order])
            for model, cost in named.items():
                found[model] = found.get(model, Cost()) + cost
        return found


def base_condition(condition: str, protocol: str) -> str:
    """The condition without the protocol at its end."""
    return condition.removesuffix(f", {protocol}") if protocol else condition


def is_closed(condition: str, protocol: str) -> bool:
    """Whether this is the closed book."""
    return base_condition(condition, protocol) in _CLOSED


def gather(
    judged: Sequence[tuple[str, Artefact]], runs: Sequence[tuple[str, Artefact]], given: Sequence[Artefact] = ()
) -> list[OutcomeSet]:
    """Folders of judgments, and runs whose choices need no judge, as sets that can be read together.

    `given` are all runs of the report, for what their answers cost.
    """
    groups: list[OutcomeSet] = []
    kept: list[set[tuple[str, str, str, int]]] = []
    for prefix, artefact in [*judged, *runs]:
        questions = {each.id: each for each in read_jsonl(artefact.file("questions.jsonl"), Question)}
        keys, tallies = _tallied(artefact)
        named = (artefact.path.name, asked_of(artefact, given))
        apart: list[str] = []
        for place, group in enumerate(groups):
            if not _together(group, artefact, questions):
                continue
            clash = _clash(group, tallies, named[1])
            apart += clash
            if not clash and keys.isdisjoint(kept[place]):
                group.artefacts.append(artefact)
                group.questions.update(questions)
                group.tallies = _added(group.tallies, tallies)
                group.asked.append(named)
                kept[place] |= keys
                break
        else:
            made = OutcomeSet(prefix=prefix, artefacts=[artefact], questions=questions, tallies=tallies)
            made.asked, made.apart = [named], apart
            groups.append(made)
            kept.append(keys)
    for group in groups:
        _score(group)
        behind = {ref.sha256 for each in group.artefacts for ref in each.manifest.inputs}
        group.runs = [run for run in given if run.reference().sha256 in behind]
    return groups


def _tallied(artefact: Artefact) -> tuple[set[tuple[str, str, str, int]], dict[SystemKey, SystemTally]]:
    """The keys of a folder's answers, and what they say of themselves, system by system."""
    keys: set[tuple[str, str, str, int]] = set()
    counts: dict[SystemKey, Counter[str]] = {}
    protocols: dict[SystemKey, str] = {}
    for answer in read_jsonl(artefact.file("answers.jsonl"), Answer):
        keys.add((answer.question, answer.model, answer.condition, answer.sample))
        system = answer.model, answer.condition
        protocols[system] = answer.protocol
        count = counts.setdefault(system, Counter())
        count["answers"] += 1
        count["failed"] += answer.failure is not None
        count["samples"] = max(count["samples"], answer.sample + 1)
        count["own_source"] += read_source(answer)
        count["own_title"] += read_title(answer)
        count["dropped"] += bool(answer.dropped)
        if answer.usage:
            count["used"] += 1
            count["tokens_in"] += answer.usage.tokens_in
            count["tokens_out"] += answer.usage.tokens_out
    return keys, {system: SystemTally(protocol=protocols[system], **count) for system, count in counts.items()}


def _together(group: OutcomeSet, artefact: Artefact, questions: Mapping[str, Question]) -> bool:
    """Whether a folder's answers can be compared with those of the group: the same questions, and no second judge."""
    shared = [each for each in questions.values() if each.id in group.questions]
    judge, judges = _judge(artefact), {_judge(each) for each in group.artefacts} - {""}
    return (
        bool(shared)
        and all(group.questions[each.id] == each for each in shared)
        and (not judge or not judges or judges == {judge})
    )


def _clash(group: OutcomeSet, tallies: Mapping[SystemKey, SystemTally], asked: FolderSettings) -> list[str]:
    """Why a folder can't join: a system of the group was asked or judged in another way there."""
    models = list(dict.fromkeys(model for model, _ in tallies.keys() & group.tallies.keys()))
    return [f"{name} ({', '.join(found)})" for name, other in group.asked if (found := clashing(asked, other, models))]


def _added(
    one: Mapping[SystemKey, SystemTally], other: Mapping[SystemKey, SystemTally]
) -> dict[SystemKey, SystemTally]:
    """The tallies of two folders; a system of both has the answers of both."""
    found = dict(one)
    for system, tally in other.items():
        before = found.get(system, SystemTally(protocol=tally.protocol))
        counts = {name: getattr(before, name) + getattr(tally, name) for name in _SUMMED}
        found[system] = replace(tally, **counts, samples=max(before.samples, tally.samples))
    return found


def _score(group: OutcomeSet) -> None:
    group.judgments = [_slim(each) for each in group.each_judgment()]
    mine = [each for each in group.judgments if each.aspect == EQUIVALENCE.name]
    decided = {(each.model, each.condition) for each in mine if not each.judge.startswith(HUMAN)}
    alone = [each for each in mine if (each.model, each.condition) not in decided]
    labels = people_majority(alone)
    group.people = list(dict.fromkeys(each.judge.removeprefix(HUMAN) for each in alone))
    for label in labels:
        system = label.model, label.condition
        if not group.tallies[system].protocol:
            group.by_people[system] = group.by_people.get(system, PeopleCount()) + label
    scored = {
        system
        for system, tally in group.tallies.items()
        if tally.protocol or system in decided or system in group.by_people
    }
    answers = (answer for answer in group.each_answer() if (answer.model, answer.condition) in scored)
    group.outcomes = scored_outcomes(list(group.questions.values()), answers, [*group.judgments, *labels])
    models = list(dict.fromkeys(model for model, _ in group.tallies))
    places = list(group.tallies)
    group.order = sorted(
        scored,
        key=lambda system: (
            models.index(system[0]),
            not is_closed(system[1], group.tallies[system].protocol),
            places.index(system),
        ),
    )
    group.unjudged = [system for system in places if system not in scored]


def _slim(judgment: Judgment) -> Judgment:
    votes = tuple(replace(vote, reasoning="", calls=()) for vote in judgment.votes)
    return replace(judgment, reasoning="", calls=(), votes=votes)


def _judge(artefact: Artefact) -> str:
    """The judge, or several in order: the roles `judge` and `judge: NAME` of the manifest."""
    models = artefact.manifest.models
    return ", ".join(model_name(name) for role, name in models.items() if role.partition(":")[0] == "judge")


def _only(artefact: Artefact, models: Sequence[str]) -> dict[str, Cost]:
    """The cost of a run of one model; a run of several that does not divide its cost names none."""
    settings = artefact.manifest.settings.get("models")
    named = [str(each) for each in settings] if isinstance(settings, list) else list(dict.fromkeys(models))
    return {named[0]: artefact.manifest.cost} if len(named) == 1 else {}
