"""What the answers of several systems say about a benchmark: items, baselines, places, calibration, how many questions.

Baselines are conditions that leave out what the answer should be read from: the options alone, the question without its
case. They are no examinees, so items, power and short forms are computed without them.

A system's place bias is looked for among its wrong choices: a system that errs without regard to place chooses each
wrong option's place equally often, whatever the order of the right ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.answer_confidence import Abstention, AnswerCalibration, abstentions, calibrations
from hoofbeat.findings.benchmark_checks import ChanceTest, PlaceTest, chance_test, place_test
from hoofbeat.findings.benchmark_size import MIN_RANKED, PairPower, ShortForm, enough_to_rank, pair_powers, short_forms
from hoofbeat.findings.intervals import Interval, clusters_of, tango
from hoofbeat.findings.item_analysis import (
    CORRELATED,
    ENOUGH,
    EVERYBODY,
    ItemStatistics,
    ScoreMatrix,
    cronbach_alpha,
    item_statistics,
    score_matrix,
)
from hoofbeat.findings.outcomes import Outcome, SystemKey, by_system
from hoofbeat.records import Answer, Question
from hoofbeat.store import Artefact

BASELINES = ("options", "question")
"""The conditions that `hoofbeat.answering.conditions` calls so; findings know no conditions but by their names."""

ANSWERS, ITEMS = "answers.json", "items.jsonl"
"""The files of a check that hold what is found here, and the statistics of each question."""

_PLACED = "letter"


class BaselineResult(Struct, frozen=True, kw_only=True):
    """A system that saw only a part of each question: how many it got right, against chance and against the whole.

    `chance` is None where a question's options are not known. `whole` is the share right of the same model by the same
    protocol with the whole question, over the `shared` questions that both have one scored answer to; `difference` is
    the whole minus the part.
    """

    model: str
    condition: str
    n: int
    right: int
    unscored: int
    chance: ChanceTest | None = None
    shared: int = 0
    whole: float | None = None
    difference: float | None = None
    interval: Interval | None = None


class PlaceBias(Struct, frozen=True, kw_only=True):
    """Where one system's choices are among the options as shown, by place from the first.

    `right` and `found` count questions whose right option was at this place, and those answered rightly; `wrong` tests
    whether its wrong choices are spread evenly over the places of wrong options.
    """

    model: str
    condition: str
    n: int
    chosen: tuple[int, ...]
    right: tuple[int, ...]
    found: tuple[int, ...]
    wrong: PlaceTest | None


class AnswerCheck(Struct, frozen=True, kw_only=True):
    """All of it; `warnings` say what is rough or was left out."""

    systems: tuple[SystemKey, ...]
    questions: int
    reliability: float | None
    flags: dict[str, int]
    unused_options: tuple[int, int]
    """How many wrong options no system chose, and how many wrong options there are."""
    baselines: tuple[BaselineResult, ...]
    places: tuple[PlaceBias, ...]
    calibrations: tuple[AnswerCalibration, ...]
    abstentions: tuple[Abstention, ...]
    powers: tuple[PairPower, ...]
    short_forms: tuple[ShortForm, ...]
    warnings: tuple[str, ...] = ()


def is_baseline(condition: str) -> bool:
    """Whether a condition leaves out what the answer should be read from."""
    return condition.partition(",")[0].strip() in BASELINES


def examinee_scores(results: Iterable[Outcome]) -> ScoreMatrix:
    """The scores of all systems but the baselines."""
    return score_matrix(row for row in results if not is_baseline(row.condition))


def check_answers(
    questions: Sequence[Question], answers: Sequence[Answer], results: Sequence[Outcome], *, seed: int = 0
) -> tuple[AnswerCheck, list[ItemStatistics]]:
    """Every finding, and the statistics of each question in the order of the benchmark."""
    asked = {question.id: question for question in questions}
    matrix = examinee_scores(results)
    items = item_statistics(matrix, asked, (answer for answer in answers if answer.protocol))
    order = {name: place for place, name in enumerate(asked)}
    items.sort(key=lambda each: order[each.question])
    known = [item for item in items if asked[item.question].options]
    wrong = sum(not option.right for item in known for option in item.options)
    flags: dict[str, int] = {}
    for flag in (flag for item in items for flag in item.flags):
        flags[flag] = flags.get(flag, 0) + 1
    found = AnswerCheck(
        systems=matrix.systems,
        questions=len(items),
        reliability=cronbach_alpha(matrix),
        flags=flags,
        unused_options=(sum(item.unused for item in known), wrong),
        baselines=tuple(_baselines(asked, results)),
        places=tuple(place_biases(asked, answers, seed)),
        calibrations=tuple(calibrations(answers, results)),
        abstentions=tuple(abstentions(results)),
        powers=tuple(pair_powers(matrix, clusters_of(questions))),
        short_forms=tuple(short_forms(matrix, seed=seed)),
        warnings=tuple(_warnings(matrix)),
    )
    return found, items


def _warnings(matrix: ScoreMatrix) -> list[str]:
    n, told = len(matrix.systems), []
    if n < CORRELATED:
        told.append(f"{n} systems: discrimination and reliability need at least {CORRELATED}")
    elif n < ENOUGH:
        told.append(f"{n} systems: discrimination is only rough; intervals need at least {ENOUGH}")
    if n < MIN_RANKED:
        told.append(f"{n} systems: testing short forms needs at least {MIN_RANKED}")
    if matrix.left_out:
        names = ", ".join(f"{model} ({condition})" for model, condition in matrix.left_out)
        told.append(f"left out of the item analysis because fewer than half of the questions have scores: {names}")
    return told


def _baselines(questions: Mapping[str, Question], results: Sequence[Outcome]) -> list[BaselineResult]:
    systems = by_system(results)
    found = []
    for (model, condition), rows in systems.items():
        if not is_baseline(condition):
            continue
        scored = [row for row in rows if row.correct is not None]
        sizes = [len(questions[row.question].options) for row in scored]
        _, comma, protocol = condition.partition(",")
        whole = systems.get((model, f"closed{comma}{protocol}"), [])
        found.append(
            _against_whole(
                scored,
                whole,
                BaselineResult(
                    model=model,
                    condition=condition,
                    n=len(scored),
                    right=sum(row.correct is True for row in scored),
                    unscored=len(rows) - len(scored),
                    chance=chance_test([row.correct is True for row in scored], sizes) if all(sizes) else None,
                ),
            )
        )
    return found


def _against_whole(part: Sequence[Outcome], whole: Sequence[Outcome], found: BaselineResult) -> BaselineResult:
    """A baseline with what the same model gets right with the whole question, over what both answered."""
    first = {row.question: row.correct for row in part if row.sample == 0}
    pairs = [
        (bool(row.correct), bool(first[row.question]))
        for row in whole
        if row.sample == 0 and row.correct is not None and row.question in first
    ]
    if not pairs:
        return found
    only_whole, only_part = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    return replace(
        found,
        shared=len(pairs),
        whole=sum(a for a, _ in pairs) / len(pairs),
        difference=(only_whole - only_part) / len(pairs),
        interval=tango(only_whole, only_part, len(pairs)),
    )


def place_biases(questions: Mapping[str, Question], answers: Iterable[Answer], seed: int = 0) -> list[PlaceBias]:
    """Where each system that chose by letter chose; options whose order is not known are passed over."""
    rows: dict[SystemKey, list[tuple[int, int, int]]] = {}
    for answer in answers:
        question = questions.get(answer.question)
        if question is None or answer.protocol != _PLACED or answer.choice not in answer.options:
            continue
        if question.answer in answer.options and len(answer.options) > 1:
            key = answer.choice if answer.choice in question.right_answers else question.answer
            places = answer.options.index(answer.choice), answer.options.index(key)
            rows.setdefault((answer.model, answer.condition), []).append((*places, len(answer.options)))
    return [_bias(system, mine, seed) for system, mine in rows.items()]


def _bias(system: SystemKey, rows: Sequence[tuple[int, int, int]], seed: int) -> PlaceBias:
    width = range(max(size for _, _, size in rows))
    wrong = [row for row in rows if row[0] != row[1] and row[2] > 2]  # of two options, a wrong one has one place only
    return PlaceBias(
        model=system[0],
        condition=system[1],
        n=len(rows),
        chosen=tuple(sum(chosen == place for chosen, _, _ in rows) for place in width),
        right=tuple(sum(key == place for _, key, _ in rows) for place in width),
        found=tuple(sum(chosen == key == place for chosen, key, _ in rows) for place in width),
        wrong=place_test([row[0] for row in wrong], [row[2] for row in wrong], seed, not_at=[row[1] for row in wrong]),
    )


def read_answer_check(artefact: Artefact) -> AnswerCheck | None:
    """What the answers said in a check folder; None where it was made without answers."""
    if not artefact.has(ANSWERS):
        return None
    return artefact.record(ANSWERS, AnswerCheck, what=ANSWERS)


def answer_lines(found: AnswerCheck) -> list[str]:
    """The main results in words."""
    lines = [f"answers of {len(found.systems)} systems to {found.questions} questions"]
    if found.reliability is not None:
        lines[0] += f": reliability (Cronbach's alpha) {found.reliability:.2f}"
    if EVERYBODY in found.flags:
        easy = f"{found.flags[EVERYBODY]} of {found.questions} questions"
        lines.append(f"{EVERYBODY} on {easy}: these do not help to rank systems")
    unused, wrong = found.unused_options
    if wrong:
        lines.append(f"wrong options that no system chose: {unused} of {wrong}")
    for each in found.baselines:
        chance = f" ({each.chance.expected:.1f} expected by chance, p = {each.chance.p:.3g})" if each.chance else ""
        lines.append(f"{each.model} under '{each.condition}': {each.right} of {each.n} right{chance}")
    short = enough_to_rank(found.short_forms)
    if short is not None:
        lines.append(
            f"{short.questions} questions give the same ranking (τ {short.tau:.2f} on held-out {short.held_out})"
        )
    return [*lines, *(f"[!] {warning}" for warning in found.warnings)]
