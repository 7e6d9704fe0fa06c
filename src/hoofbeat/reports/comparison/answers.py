"""Answers of two folders compared: paired tests, the questions that flipped, and how differently both were measured.

Who judged is told by the judges' identities, not by what their verdict is called: a majority of three is as many
different judges as there are threes. Of the settings, those count that could have changed this system's answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering.answer_calls import prompt_for
from hoofbeat.answering.conditions import SCORING, Condition, parse_condition
from hoofbeat.answering.run_folder import Run
from hoofbeat.errors import InputError, UsageError
from hoofbeat.findings.accuracy import Accuracy, SystemDifference, accuracies, differences, scored_systems
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.findings.outcomes import HUMAN, Outcome, choice_outcomes, scored_outcomes
from hoofbeat.judging import Aspect, JudgmentFolder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.registry import registry
from hoofbeat.reports.lookup import Lookup, System
from hoofbeat.reports.sections.scores.outcome_sets import asked_of
from hoofbeat.reports.tables import model_name, short_hash
from hoofbeat.store import Artefact, Manifest, open_artefact
from hoofbeat.text import cut, some_of

_SAMPLING = ("temperature", "seed", "max_tokens")
_NOT_KNOWN = "not recorded"
_OPTIONS = "seed of the options' order"
_PROBE = "probe of order"
_LONGEST = 60


class Measurement(Struct, frozen=True):
    """How one system's answers came about: settings by name, and the identity of the model behind them."""

    spec: str
    identity: str
    protocol: str
    settings: dict[str, str]


def measurement_of(artefact: Artefact, system: System, protocol: str) -> Measurement:
    """What a folder's manifest says of one of its systems; judgments keep what their run said."""
    model, condition = system
    asked = asked_of(artefact).of(model)
    parsed = _parsed(condition)
    chosen = {name: value for name, value in asked.items() if _matters(name, parsed, protocol, asked)}
    models = artefact.manifest.models
    return Measurement(
        model.partition("[")[0],
        model_name(models.get(f"answer: {model}", models.get("answer", ""))),
        protocol,
        {**chosen, **_shown(artefact.manifest, parsed)},
    )


def _parsed(condition: str) -> Condition | None:
    """The condition; None where another tool named it."""
    try:
        return parse_condition(condition)
    except UsageError:
        return None


def _matters(name: str, condition: Condition | None, protocol: str, asked: Mapping[str, str]) -> bool:
    """Whether a setting can have changed these answers. How many samples there are is told by the answers."""
    if name in ("limit", "edition", "samples"):
        return False
    if name == _OPTIONS:
        return protocol == "letter"
    if protocol in SCORING and name in ("instruction", *_SAMPLING):
        return False
    if name == "seed":
        return asked.get("temperature", "") != "0"
    if name.startswith("prompt "):
        return _prompts(name.removeprefix("prompt "), condition, protocol, asked.get("instruction", ""))
    return True


def _prompts(name: str, condition: Condition | None, protocol: str, instruction: str) -> bool:
    """Whether a prompt was used for these answers: the one they were asked with, or one of what showed the passages."""
    if name == _PROBE or name.startswith("judge") or name in {each.role for each in registry.all(Aspect)}:
        return False
    if condition is None:
        return True
    if name.startswith("answer-agent"):
        return condition.kind == "agent"
    if name.startswith("answer-"):
        used = protocol not in SCORING and condition.kind != "agent"
        return used and name == prompt_for(protocol, instruction, documents=condition.needs_corpus).name
    return bool(condition.line)


def _shown(manifest: Manifest, condition: Condition | None) -> dict[str, str]:
    """What decided what the model was shown: the documents, the retriever behind its line, how a part is counted."""
    kept = manifest.settings.get("asked")
    settings: Mapping[str, Any] = (
        manifest.settings if manifest.kind == "run" else kept if isinstance(kept, dict) else {}
    )
    corpora = [ref.sha256 for ref in manifest.inputs if ref.kind == "corpus"]
    documents = settings.get("documents", sorted(corpora))
    found = {}
    if condition is None or condition.needs_corpus:
        found["documents"] = ", ".join(short_hash(str(each)) for each in documents)
    if condition is not None and condition.line:
        retrievers = settings.get("retrievers")
        found["retriever"] = str(retrievers.get(condition.line, "")) if isinstance(retrievers, dict) else ""
    if condition is not None and condition.kind == "first":
        found["tokens"] = str(settings.get("tokens", ""))
    return {name: value for name, value in found.items() if value}


def settings_that_differ(first: Measurement, second: Measurement) -> tuple[str, ...]:
    """In what two systems were asked otherwise, each with its value in the first and in the second.

    What only one of the folders tells is passed over, but for how answers are drawn.
    """
    a, b = first.settings, second.settings
    said = []
    for name in dict.fromkeys([*a, *b]):
        told = [each.get(name, _NOT_KNOWN) for each in (a, b)]
        if told[0] != told[1] and (_NOT_KNOWN not in told or name == "temperature"):
            said.append(f"{name} {' / '.join(_short(name, told))}")
    if first.spec == second.spec and first.identity and second.identity and first.identity != second.identity:
        said.append(f"model behind {first.spec} {first.identity} / {second.identity}")
    return tuple(said)


def _short(name: str, values: list[str]) -> list[str]:
    if name == "retriever" and len({cut(value, _LONGEST) for value in values}) == 1:
        return ["one", "another"]
    return [cut(value, _LONGEST) for value in values]


def panel_of(manifest: Manifest, specs: Iterable[str]) -> dict[str, str]:
    """The judges who voted, by name, with the identity of each as the manifest has it (else the name)."""
    voters = list(specs)
    judges = {role: identity for role, identity in manifest.models.items() if role.startswith("judge")}
    alone = [role for role in judges if ": " not in role] if len(voters) == 1 else []
    own = next((role for role in alone if "equivalence" in role), next(iter(alone), ""))
    found = {}
    for spec in voters:
        named = [identity for role, identity in judges.items() if role.endswith(f": {spec}")]
        found[spec] = model_name(named[-1] if named else judges.get(own, spec))
    return found


def judged_otherwise(first: Mapping[str, str], second: Mapping[str, str]) -> str:
    """That two panels of judges are not the same, in words; empty where they are."""
    if _set(first.values()) == _set(second.values()):
        return ""
    told = (second, first) if first.keys() != second.keys() else (_set(second.values()), _set(first.values()))
    words = [", ".join(each) or "nobody" for each in told]
    return f"judged by other judges: {words[0]} against {words[1]}"


def _set(names: Collection[str]) -> list[str]:
    return sorted(set(names))


KINDS = ("judgments", "run")
"""The kinds of folders whose answers can be compared."""

_MOST = 500


class FolderSystem(Struct, frozen=True):
    """A system in one of the folders."""

    folder: int
    model: str
    condition: str

    @property
    def key(self) -> System:
        """The system as findings name it: the same system in two folders is two."""
        return f"{self.folder}: {self.model}", self.condition

    @property
    def system(self) -> System:
        """The system as its folder names it."""
        return self.model, self.condition


class Pair(Struct, frozen=True):
    """Two systems to compare, `second` against `first`, and what stands against comparing them.

    `against` says why this is not the same measurement, `settings` in which settings the answers were asked for
    otherwise, which may be what is to be compared.
    """

    first: FolderSystem
    second: FolderSystem
    against: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def marks(self) -> tuple[str, ...]:
        """All of it in words."""
        return (*self.against, *(f"differs in: {each}" for each in self.settings))


class FolderOutcomes:
    """One of the folders: its questions, what became of every planned answer, and how that was found."""

    def __init__(self, name: str, artefact: Artefact) -> None:
        self.name = name
        self.artefact = artefact
        self.protocols: dict[System, str] = {}
        self._voters: dict[str, None] = {}
        self.free_text = 0
        answers = artefact.file("answers.jsonl")
        self.answers: Lookup[Answer] = Lookup.read(answers, Answer)
        self.judgments: Lookup[Judgment] = Lookup.held(())
        self.questions: dict[str, Question]
        self.outcomes: list[Outcome]
        if artefact.manifest.kind == "run":
            run = Run(artefact)
            self.questions = {question.id: question for question in run.questions}
            self.outcomes = choice_outcomes(self.questions.values(), self._seen(run.each_answer()))
        else:
            judged = JudgmentFolder(artefact)
            self.questions = {question.id: question for question in judged.questions}
            self.judgments = Lookup.read(artefact.file("judgments.jsonl"), Judgment)
            self.outcomes = scored_outcomes(
                self.questions.values(), self._seen(judged.each_answer()), self._heard(judged.each_judgment())
            )
        self.systems = list(dict.fromkeys((row.model, row.condition) for row in self.outcomes))
        self._scored = scored_systems(self.outcomes)
        self.judges = panel_of(artefact.manifest, self._voters)

    def _seen(self, answers: Iterable[Answer]) -> Iterator[Answer]:
        for answer in answers:
            self.protocols[answer.model, answer.condition] = answer.protocol
            self.free_text += not answer.protocol
            yield answer

    def _heard(self, judgments: Iterable[Judgment]) -> Iterator[Judgment]:
        for judgment in judgments:
            if judgment.aspect == "equivalence" and not judgment.judge.startswith(HUMAN):
                self._voters.update(dict.fromkeys([vote.judge for vote in judgment.votes] or [judgment.judge]))
            yield judgment

    def is_scored(self, system: System) -> bool:
        """Whether any answer of a system has a score."""
        return system in self._scored

    @property
    def judge_prompt(self) -> str:
        """The fingerprint of the prompt that the judge was asked with."""
        return self.artefact.manifest.prompts.get("judge", "")


def open_side(path: Path, name: str = "") -> FolderOutcomes:
    """Open a folder of judgments, or a run whose answers choose an option, and score it."""
    artefact = open_artefact(path, KINDS)
    side = FolderOutcomes(name or path.resolve().name, artefact)
    if not side.outcomes and side.free_text:
        raise UsageError(
            "these answers are free text and have not been judged",
            where=str(path),
            fix=f"judge them first: hoofbeat judge {path.name} -o judged",
        )
    if not side.outcomes:
        raise UsageError("this folder has no answers", where=str(path), fix="name another folder")
    return side


class AnswersComparison(Struct, frozen=True, kw_only=True):
    """What came of it: the folders, the pairs with their differences in the same order, and each system's accuracy.

    `apart` counts the pairs that are left out because no question was put to both of their systems; `unscored` are
    systems whose pairs are left out because none of their answers has a score.
    """

    sides: tuple[FolderOutcomes, ...]
    questions: dict[str, Question]
    pairs: tuple[Pair, ...]
    differences: tuple[SystemDifference, ...]
    accuracies: dict[FolderSystem, Accuracy]
    results: dict[FolderSystem, dict[str, list[Outcome]]]
    baseline: str
    picked: tuple[str, ...]
    seed: int
    apart: int = 0
    unscored: tuple[FolderSystem, ...] = ()

    def name(self, place: FolderSystem) -> str:
        """A system in words with its folder; the model goes without saying where there is only one."""
        return f"{self.sides[place.folder].name}: {self._system(place)}"

    def title(self, pair: Pair) -> str:
        """A pair in words."""
        if pair.first.system == pair.second.system:
            folders = [self.sides[place.folder].name for place in (pair.second, pair.first)]
            return f"{self._system(pair.first)}: {folders[0]} against {folders[1]}"
        return f"{self.name(pair.second)} against {self.name(pair.first)}"

    def _system(self, place: FolderSystem) -> str:
        models = {each.model for pair in self.pairs for each in (pair.first, pair.second)}
        return f"{place.model} · {place.condition}" if len(models) > 1 else place.condition


def compare_answers(
    paths: Sequence[Path],
    *,
    baseline: str = "",
    systems: Sequence[str] = (),
    seed: int = 0,
    progress: Progress = SILENT,
) -> AnswersComparison:
    """Compare the answers of folders of judgments, or of runs that choose options.

    `baseline` names the one system that all others are compared with, `systems` those that take part: by model, by
    condition, or by both as `MODEL · CONDITION`.
    """
    if len({path.resolve() for path in paths}) < max(2, len(paths)):
        raise UsageError("a comparison needs two folders or more, each named once", fix="name another folder")
    sides: list[FolderOutcomes] = []
    with progress.task("reading answers", len(paths)) as task:
        for path, name in zip(paths, _names(paths), strict=True):
            sides.append(open_side(path, name))
            task.advance()
    questions = _questions(sides)
    wanted = _pairs(sides, baseline, systems)
    scored = _scored(wanted, sides)
    pairs = _meeting(scored, sides)
    used = list(dict.fromkeys(place for pair in pairs for place in (pair.first, pair.second)))
    results: dict[FolderSystem, dict[str, list[Outcome]]] = {place: {} for place in used}
    for number, side in enumerate(sides):
        for row in side.outcomes:
            place = FolderSystem(number, row.model, row.condition)
            if place in results:
                results[place].setdefault(row.question, []).append(row)
    pairs = [replace(pair, against=_against(pair, sides, results), settings=_settings(pair, sides)) for pair in pairs]
    rows = [
        replace(row, model=place.key[0])
        for place, asked in results.items()
        for answers in asked.values()
        for row in answers
    ]
    clusters = clusters_of(questions.values())
    found = differences(rows, [(pair.second.key, pair.first.key) for pair in pairs], clusters=clusters, seed=seed)
    scores = {(row.model, row.condition): row for row in accuracies(rows, clusters=clusters, seed=seed)}
    return AnswersComparison(
        sides=tuple(sides),
        questions=questions,
        pairs=tuple(pairs),
        differences=tuple(found),
        accuracies={place: scores[place.key] for place in used},
        results=results,
        baseline=baseline,
        picked=tuple(systems),
        seed=seed,
        apart=len(scored) - len(pairs),
        unscored=tuple(
            dict.fromkeys(
                place
                for pair in wanted
                if pair not in scored
                for place in (pair.first, pair.second)
                if not sides[place.folder].is_scored(place.system)
            )
        ),
    )


def _scored(pairs: Sequence[Pair], sides: Sequence[FolderOutcomes]) -> list[Pair]:
    """The pairs of systems that both have answers with a score: a system that nobody could score is not worse."""
    found = [
        pair for pair in pairs if all(sides[each.folder].is_scored(each.system) for each in (pair.first, pair.second))
    ]
    if not found:
        silent = [side.name for side in sides if not any(map(side.is_scored, side.systems))]
        raise UsageError(
            "one of the two systems has no answer with a score, so there is no difference to give",
            where=", ".join(silent or [side.name for side in sides]),
            fix="judge the answers again: hoofbeat judge RUN --model JUDGE; or name other folders",
        )
    return found


def _meeting(pairs: Sequence[Pair], sides: Sequence[FolderOutcomes]) -> list[Pair]:
    """The pairs of systems that were asked a question in common; without any there is nothing to compare."""
    asked: dict[FolderSystem, set[str]] = {}
    for number, side in enumerate(sides):
        for row in side.outcomes:
            asked.setdefault(FolderSystem(number, row.model, row.condition), set()).add(row.question)
    found = [pair for pair in pairs if not asked[pair.first].isdisjoint(asked[pair.second])]
    if not found:
        raise UsageError(
            "no two systems answered the same question",
            where=", ".join(side.name for side in sides),
            fix="compare answers to one benchmark, by one protocol",
        )
    return found


def _names(paths: Sequence[Path]) -> list[str]:
    """A folder's own name, with its parent's before it where two folders have the same."""
    names = [path.resolve().name for path in paths]
    times = Counter(names)
    return [
        f"{path.resolve().parent.name}/{name}" if times[name] > 1 else name
        for path, name in zip(paths, names, strict=True)
    ]


def _questions(sides: Sequence[FolderOutcomes]) -> dict[str, Question]:
    """The questions of all folders; one that reads otherwise in another folder stops the comparison."""
    known: dict[str, tuple[Question, str]] = {}
    wrong: list[str] = []
    first = ""
    for side in sides:
        for question in side.questions.values():
            before, where = known.setdefault(question.id, (question, side.name))
            differs = _differs(before, question)
            if differs:
                wrong.append(question.id)
                first = first or f"{question.id!r} has {' and '.join(differs)} in {side.name} than in {where}"
    if wrong:
        raise InputError(
            f"{len(wrong)} questions are not the same in these folders: {first}",
            where=", ".join(side.name for side in sides),
            fix="compare answers to one benchmark",
        )
    shared = set.intersection(*(set(side.questions) for side in sides))
    if not shared:
        raise UsageError(
            "these folders have no question in common",
            where=", ".join(side.name for side in sides),
            fix="compare answers to one benchmark",
        )
    return {name: question for name, (question, _) in known.items()}


def _differs(a: Question, b: Question) -> list[str]:
    """In what a question is not the same; one that has options in one folder only is (the protocol says so)."""
    said = []
    if a.full_text != b.full_text:
        said.append("another text")
    if a.options and b.options and sorted(a.options) != sorted(b.options):
        said.append("other options")
    if a.right_answers != b.right_answers:
        said.append("another gold answer")
    return said


def _pairs(sides: Sequence[FolderOutcomes], baseline: str, picked: Sequence[str]) -> list[Pair]:
    places = [FolderSystem(number, *system) for number, side in enumerate(sides) for system in side.systems]
    for name in picked:
        if not any(_called(place, name) for place in places):
            raise UsageError(f"there is no system {name!r}", fix=f"there are: {_listed(places)}")
    base = _baseline(places, baseline) if baseline else None
    chosen = [place for place in places if not picked or any(_called(place, name) for name in picked)]
    if base:
        pairs = [Pair(base, place) for place in chosen if place != base]
    else:
        pairs = []
        for number in range(1, len(sides)):
            first = [place for place in chosen if place.folder == 0]
            second = [place for place in chosen if place.folder == number]
            same = {place.system: place for place in second}
            both = [Pair(place, same[place.system]) for place in first if place.system in same]
            pairs += both or [Pair(a, b) for a in first for b in second]
    if not pairs:
        raise UsageError("with these names there is nothing to compare", fix=f"there are: {_listed(places)}")
    if len(pairs) > _MOST:
        raise UsageError(
            f"these are {len(pairs):,} pairs of systems, too many for one table",
            fix="choose with --baseline SYSTEM or --system SYSTEM (a model, a condition, or 'MODEL · CONDITION')",
        )
    return pairs


def _called(place: FolderSystem, name: str) -> bool:
    return name in {place.model, place.condition, f"{place.model} · {place.condition}"}


def _baseline(places: Sequence[FolderSystem], name: str) -> FolderSystem:
    """The system of that name, in the first folder that has it."""
    called = [place for place in places if _called(place, name)]
    found = [place for place in called if place.folder == called[0].folder]
    if len(found) != 1:
        several = "several systems are" if found else "no system is"
        raise UsageError(f"{several} called {name!r}", fix=f"name one of: {_listed(found or places)}")
    return found[0]


def _listed(places: Iterable[FolderSystem]) -> str:
    names = list(dict.fromkeys(f"{place.model} · {place.condition}" for place in places))
    return some_of(names, 12)


def _against(
    pair: Pair, sides: Sequence[FolderOutcomes], results: Mapping[FolderSystem, Mapping[str, Sequence[Outcome]]]
) -> tuple[str, ...]:
    """What stands against comparing two systems."""
    first, second = sides[pair.first.folder], sides[pair.second.folder]
    how = [first.protocols[pair.first.system], second.protocols[pair.second.system]]
    said = []
    if how[0] != how[1]:
        said.append(f"{how[1] or 'free text'} against {how[0] or 'free text'}")
    if not how[0] and not how[1]:
        others = judged_otherwise(first.judges, second.judges)
        if others:
            said.append(others)
        elif first.judge_prompt != second.judge_prompt:
            said.append(f"judged with the prompt {second.judge_prompt} against {first.judge_prompt}")
    samples = [max(map(len, results[place].values())) for place in (pair.first, pair.second)]
    if samples[0] != samples[1]:
        said.append(f"{samples[1]} answers per question against {samples[0]}")
    return tuple(said)


def _settings(pair: Pair, sides: Sequence[FolderOutcomes]) -> tuple[str, ...]:
    """In what two systems were asked otherwise."""
    both = [
        measurement_of(side.artefact, place.system, side.protocols[place.system])
        for place in (pair.first, pair.second)
        for side in (sides[place.folder],)
    ]
    return settings_that_differ(*both)
