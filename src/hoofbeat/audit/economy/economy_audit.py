"""Economy in an audit: answers are sorted into positions, few pairs are judged, and a sample bounds what is wrong.

The order of work: a model sorts the answers of every question; the judge compares one pair for every two positions; a
position whose own pair disagrees is split by comparing its answers with the plainest one, and a pair that could not be
judged speaks for nobody. Then the guarantee: of all pairs with a carried label some are drawn at random and judged.
Clopper and Pearson's upper bound on the share that takes the wrong side (agree, disagree, say nothing) must not be
above the stated risk. If it is, more pairs are judged, and a fresh sample is drawn. First every answer is compared with
the plainest one of its position, and three pairs are judged for every two positions: that costs calls by the answer,
and finds answers that were sorted wrongly. Then all pairs of the questions where a label was still wrong are judged; in
the end all pairs of all questions. Each of the three bounds holds with 98.3%, so all of them hold together with 95%.

What the check judged keeps the judge's own label. All labels are those of the judge; the model that sorts may be a
cheap one. Nothing depends on the order in which replies arrive, so the same inputs give the same labels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct, to_builtins

from hoofbeat.audit.audit_folder import EconomyProbe, HeldPosition
from hoofbeat.audit.economy.carried_labels import AskedPair, CarriedPlan, QuestionPositions, carry
from hoofbeat.audit.economy.positions import MIN_ANSWERS, Position, SortedAnswers, sort_answers
from hoofbeat.audit.pair_judge import PairJudge, judge_texts
from hoofbeat.audit.pair_plan import GROUP, Claim, PairPlan, PairVerdict, plan_pairs, shown_texts, text_classes
from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import exact_upper_bound
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Question
from hoofbeat.store.tables import seeded_number

ROUNDS = 3
CONFIDENCE = 0.95
_LEVEL = 1 - (1 - CONFIDENCE) / ROUNDS
_WRONG = (2, 30)
"""So many wrong labels in a sample of the usual size still pass, at least and at most."""

_SHARE = 0.02
"""A sample is not made larger than this share of all pairs so that more wrong labels may pass."""

Sort = Callable[[Sequence[tuple[Question, Sequence[str]]]], list[SortedAnswers]]
"""Sorts the answers of each question into positions."""

JudgeAll = Callable[[Sequence[tuple[Question, str, str]], str], list[PairVerdict]]
"""Judges pairs of texts; the second argument says why, for the progress line."""


_CarriedPair = tuple[str, AskedPair, str, str, str]
"""A pair with a carried label: the question, how it would be asked, its two sources, and the label."""


class Economy(Struct, frozen=True, kw_only=True):
    """How an audit saves calls: the risk of a carried label on the wrong side, the check's size, and who sorts."""

    sorter: Model
    risk: float = 0.05
    check: int | None = None

    def __post_init__(self) -> None:
        if not 0 < self.risk < 1:
            raise UsageError(
                f"the risk {self.risk} is not between 0 and 1", fix="give a share, for example --economy 0.05"
            )
        fewest = smallest_sample(0, self.risk)
        if self.check is not None and self.check < fewest:
            raise UsageError(
                f"{self.check} pairs can't show that the risk is at most {self.risk:g}",
                fix=f"set --economy-check to at least {fewest}, or allow a higher risk",
            )

    def sample(self, pairs: int) -> int:
        """How many carried labels the check judges, in an audit in which this many pairs are judged without it."""
        return self.check or usual_sample(pairs, self.risk)

    def describe(self) -> dict[str, object]:
        """As a manifest records it."""
        return {"risk": self.risk, "check": self.check, "sorter": self.sorter.identity}


def usual_sample(pairs: int, risk: float) -> int:
    """A sample in which two wrong labels pass, or more where there are pairs enough: a judge may have some noise."""
    fewest, most = _WRONG
    size = smallest_sample(fewest, risk)
    for wrong in range(fewest + 1, most + 1):
        larger = smallest_sample(wrong, risk)
        if larger > _SHARE * pairs:
            break
        size = larger
    return size


def smallest_sample(wrong: int, risk: float) -> int:
    """The smallest sample in which this number of wrong labels keeps the bound at or below the risk."""
    low, high = wrong, wrong + 1
    while exact_upper_bound(wrong, high, _LEVEL) > risk:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if exact_upper_bound(wrong, middle, _LEVEL) <= risk else (middle, high)
    return high


class CheckRound(Struct, frozen=True, kw_only=True):
    """One sample of carried labels: how many there were, how many were judged, and how many were wrong.

    `wrong` take the wrong side, `other_label` have another label (these included), `unscored` could not be judged.
    `bound` is the upper bound on the share of wrong ones among the carried.
    """

    carried: int
    judged: int
    wrong: int
    other_label: int
    unscored: int
    bound: float


class CarriedLabels:
    """The positions of an audit's questions, the judgments made so far, and the plan of pairs that follows."""

    def __init__(
        self,
        questions: Sequence[Question],
        claims: Mapping[str, Sequence[Claim]],
        pack: Pack,
        *,
        risk: float,
        seed: int,
    ) -> None:
        self.pack = pack
        self.risk = risk
        self.seed = seed
        self.known: dict[str, dict[AskedPair, PairVerdict]] = {}
        self.probes: list[EconomyProbe] = []
        self.rounds: list[CheckRound] = []
        self.sort_calls = self.sort_failures = self.sorted = 0
        self._questions = sorted(questions, key=lambda each: each.id)
        self._by_id = {each.id: each for each in questions}
        self._claims = claims
        self._held: dict[str, QuestionPositions] = {}
        self._judged_whole: set[str] = set()

    def plan(self, question: Question) -> PairPlan:
        """The pairs of a question, with what is still asked of them."""
        held = self._held.get(question.id)
        return self._whole(question) if held is None else self._carried(question).plan

    @cached_property
    def whole_pairs(self) -> dict[str, int]:
        """For each question how many pairs would be judged without economy."""
        found = {}
        for question in self._questions:
            count = len(self._voices(question))
            found[question.id] = count * (count - 1) // 2
        return found

    def _voices(self, question: Question) -> list[int]:
        """The places of the claims with different texts, in the order in which they are shown to a model that sorts."""
        claims = self._claims.get(question.id, ())
        first: dict[int, int] = {}
        for place, number in enumerate(text_classes(claims).tolist()):
            if number >= 0:
                first.setdefault(number, place)
        return sorted(
            first.values(), key=lambda place: seeded_number("position", self.seed, question.id, claims[place].source)
        )

    @cached_property
    def sortable(self) -> list[Question]:
        """The questions with enough answers to be sorted."""
        return [each for each in self._questions if len(self._voices(each)) >= MIN_ANSWERS]

    @property
    def sortable_pairs(self) -> int:
        """How many pairs they would take without economy; where the check takes as many, nothing can be saved."""
        return sum(self.whole_pairs[each.id] for each in self.sortable)

    def sort(self, sort: Sort) -> None:
        """Have the answers sorted of all questions with enough of them."""
        questions = self.sortable
        voices = {each.id: self._voices(each) for each in questions}
        asked = []
        for each in questions:
            claims = self._claims[each.id]
            texts = shown_texts(claims)
            asked.append((each, [texts[place] for place in voices[each.id]]))
        for each, found in zip(questions, sort(asked), strict=True):
            places = voices[each.id]
            self.sort_calls += found.calls
            self.sort_failures += found.failed
            self._held[each.id] = QuestionPositions(
                [Position(tuple(places[member] for member in one.members), one.line) for one in found.positions]
            )
        self.sorted = len(questions)

    def judge_positions(self, judged: JudgeAll) -> None:
        """Judge one pair for every two positions; where it can't speak for the others, more are judged."""
        waiting = [each for each in self._questions if each.id in self._held]
        while waiting:
            self._judge({each.id: self.plan(each).asked for each in waiting}, judged)
            doubts = {each.id: self._doubts(each) for each in waiting}
            self._split({name: broken for name, (broken, _) in doubts.items() if broken}, judged)
            for name, (_, silent) in doubts.items():
                self._held[name].own.update(silent)
            waiting = [each for each in waiting if any(doubts[each.id])]

    def _doubts(self, question: Question) -> tuple[list[int], set[AskedPair]]:
        """Positions whose own pair disagrees, and pairs to judge because that which speaks for them has no label."""
        held, known = self._held[question.id], self.known[question.id]
        whole, carried = self._whole(question), self._carried(question)
        broken: set[int] = set()
        silent: set[int] = set()
        speaking, pairs = np.unique(carried.asked_by[carried.asked_by >= 0], return_counts=True)
        for number in speaking[pairs > 1].tolist():
            verdict = known[whole.asked[number]]
            if verdict.failure is not None:
                silent.add(number)
            elif carried.inside(number) and not self._agrees(verdict):
                broken.add(carried.homes[number][0])
        unspoken = {pair for pair, by in zip(whole.asked, carried.asked_by.tolist(), strict=True) if by in silent}
        return sorted(broken), unspoken - held.own

    def _confirm(self, judged: JudgeAll) -> None:
        """Compare every answer with the plainest one of its position, and let a majority speak for two positions."""
        self._split({name: range(len(held.positions)) for name, held in self._held.items()}, judged)
        for held in self._held.values():
            held.confirmed = True
        self.judge_positions(judged)

    def _split(self, positions: Mapping[str, Sequence[int]], judged: JudgeAll) -> None:
        """Compare the answers of these positions with the plainest; those that disagree form a position, and so on."""
        while positions:
            wanted: dict[str, list[tuple[int, int, AskedPair]]] = {}
            for name, numbers in positions.items():
                classes = text_classes(self._claims[name]).tolist()
                asked = {
                    frozenset(classes[place] for place in pair): pair for pair in self._whole(self._by_id[name]).asked
                }
                members = [(number, self._held[name].positions[number].members) for number in numbers]
                wanted[name] = [
                    (number, place, asked[frozenset((classes[first], classes[place]))])
                    for number, (first, *others) in members
                    for place in others
                ]
            pairs = {name: [pair for _, _, pair in each] for name, each in wanted.items()}
            self._judge(pairs, judged, "confirming positions")
            positions = {}
            for name, each in wanted.items():
                held, known = self._held[name], self.known[name]
                held.own.update(pairs[name])
                leaving: dict[int, list[int]] = {}
                for number, place, pair in each:
                    if not self._agrees(known[pair]):
                        leaving.setdefault(number, []).append(place)
                if leaving:
                    positions[name] = [held.split(number, places) for number, places in leaving.items()]

    def _agrees(self, verdict: PairVerdict) -> bool:
        return verdict.failure is None and self._side(verdict.label) == self._side(self.pack.consistent)

    def check(self, sample: int, judged: JudgeAll) -> None:
        """Judge samples of the carried labels until the bound is at the risk or below, or nothing is carried."""
        for turn in range(1, ROUNDS + 1):
            drawn = self._draw(sample, turn)
            if not drawn.seen:
                return
            found, concerned = self._check_round(drawn, judged)
            self.rounds.append(found)
            if found.bound <= self.risk:
                return
            if turn == 1:
                self._confirm(judged)
            else:
                self._judge_whole(concerned if turn < ROUNDS else set(self._held))

    def _draw(self, size: int, turn: int) -> ReservoirSample[_CarriedPair]:
        """A random sample of the pairs with a carried label, each with that label."""
        drawn: ReservoirSample[_CarriedPair] = ReservoirSample(size, self.seed)
        for question in self._questions:
            if question.id not in self._held:
                continue
            whole = self._whole(question)
            plan, known = self._carried(question).plan, self.known[question.id]
            for row in np.flatnonzero(plan.basis == GROUP).tolist():
                by = plan.by[row]
                label = self.pack.consistent if by < 0 else known[plan.asked[by]].label
                a, b = plan.claims[plan.a[row]].source, plan.claims[plan.b[row]].source
                drawn.offer((question.id, a, b, turn), (question.id, whole.asked[whole.by[row]], a, b, label))
        return drawn

    def _check_round(self, drawn: ReservoirSample[_CarriedPair], judged: JudgeAll) -> tuple[CheckRound, set[str]]:
        sample = sorted(drawn.drawn(), key=lambda each: (each[0], each[2], each[3]))
        asked: dict[str, list[AskedPair]] = {}
        for name, pair, *_ in sample:
            asked.setdefault(name, []).append(pair)
        self._judge(asked, judged, "checking carried labels")
        wrong = other = unscored = 0
        concerned = set()
        for name, pair, a, b, label in sample:
            verdict = self.known[name][pair]
            self._held[name].own.add(pair)
            reason = f"{verdict.failure.kind}: {verdict.failure.message}" if verdict.failure else ""
            self.probes.append(
                EconomyProbe(question=name, a=a, b=b, carried=label, judged=verdict.label, failure=reason)
            )
            unscored += bool(verdict.failure)
            other += not verdict.failure and verdict.label != label
            if not verdict.failure and self._side(verdict.label) != self._side(label):
                wrong += 1
                concerned.add(name)
        scored = len(sample) - unscored
        complete = len(sample) == drawn.seen  # nothing is carried any more
        bound = 0.0 if complete else exact_upper_bound(wrong, scored, _LEVEL) if scored else 1.0
        found = CheckRound(
            carried=drawn.seen, judged=scored, wrong=wrong, other_label=other, unscored=unscored, bound=round(bound, 6)
        )
        return found, concerned

    def _judge_whole(self, names: set[str]) -> None:
        for name in names:
            del self._held[name]
        self._judged_whole |= names

    def _judge(
        self, wanted: Mapping[str, Sequence[AskedPair]], judged: JudgeAll, title: str = "comparing positions"
    ) -> None:
        """Judge these pairs, as far as they are not judged yet."""
        new: list[tuple[str, AskedPair]] = []
        items = []
        for name, pairs in wanted.items():
            known = self.known.setdefault(name, {})
            texts = shown_texts(self._claims[name])
            for pair in dict.fromkeys(pairs):
                if pair not in known:
                    new.append((name, pair))
                    items.append((self._by_id[name], texts[pair[0]], texts[pair[1]]))
        for (name, pair), verdict in zip(new, judged(items, title), strict=True):
            self.known[name][pair] = verdict

    def _carried(self, question: Question) -> CarriedPlan:
        return carry(self._whole(question), self._held[question.id], self.known.get(question.id, {}))

    def _whole(self, question: Question) -> PairPlan:
        return plan_pairs(question, self._claims.get(question.id, ()))

    def _side(self, label: str) -> str:
        """Whether a label says that answers agree, that they diverge, or that one says nothing."""
        if label == self.pack.absent:
            return label
        return "diverges" if self.pack.label(label).diverges else "agrees"

    # What is told of it

    def held_positions(self) -> list[HeldPosition]:
        """Who holds which position, question by question, the largest first."""
        found = []
        for question in self._questions:
            if (held := self._held.get(question.id)) is None:
                continue
            claims = self._claims[question.id]
            classes = text_classes(claims).tolist()
            for position in sorted(held.positions, key=lambda each: (-len(each.members), each.members)):
                mine = {classes[place] for place in position.members}
                sources = [claim.source for claim, number in zip(claims, classes, strict=True) if number in mine]
                found.append(HeldPosition(question=question.id, line=position.line, sources=tuple(sources)))
        return found

    def metrics(self, judges: int) -> dict[str, object]:
        """The counts for a manifest: calls with and without economy, and what the check found."""
        plans = [self.plan(each) for each in self._questions]
        pairs, judged = sum(self.whole_pairs.values()), sum(len(plan.asked) for plan in plans)
        carried = sum(int((plan.basis == GROUP).sum()) for plan in plans)
        return {
            "sorted": self.sorted,
            "positions": sum(len(each.positions) for each in self._held.values()),
            "sort_calls": self.sort_calls,
            "sort_failures": self.sort_failures,
            "judged": judged,
            "carried": carried,
            "calls": judged * judges + self.sort_calls,
            "calls_without": pairs * judges,
            "judged_whole": len(self._judged_whole),
            "checked": sum(each.judged for each in self.rounds),
            "wrong": sum(each.wrong for each in self.rounds),
            "other_label": sum(each.other_label for each in self.rounds),
            "unscored": sum(each.unscored for each in self.rounds),
            "bound": self.rounds[-1].bound if carried else 0.0,
            "rounds": [to_builtins(each) for each in self.rounds],
        }


def prepare_economy(
    economy: Economy,
    judge: PairJudge,
    questions: Sequence[Question],
    claims: Mapping[str, Sequence[Claim]],
    seed: int,
    *,
    progress: Progress = SILENT,
) -> CarriedLabels:
    """Sort, judge the positions and check; what is left to judge is in the plans of the result."""
    labels = CarriedLabels(questions, claims, judge.pack, risk=economy.risk, seed=seed)
    sample = economy.sample(labels.sortable_pairs)
    if labels.sortable_pairs <= sample:
        return labels

    def judged(items: Sequence[tuple[Question, str, str]], title: str) -> list[PairVerdict]:
        return judge_texts(judge, items, title=title, progress=progress)

    labels.sort(lambda asked: sort_answers(economy.sorter, asked, judge.pack, progress=progress))
    labels.judge_positions(judged)
    labels.check(sample, judged)
    return labels


def calls_saved(check: Mapping[str, Any]) -> str:
    """How many calls economy made instead of how many, with those that sort and check."""
    made, without = check["calls"], check["calls_without"]
    return f"{made:,} calls instead of {without:,} ({without / max(made, 1):.1f} times fewer)"


def economy_words(check: Mapping[str, Any], risk: float) -> str:
    """What economy saved in an audit, and how far its labels can be trusted."""
    if not check["sorted"]:
        return (
            "economy: no calls could be saved, so all pairs were judged (economy needs questions with at least four "
            f"different answers, and more pairs than the check judges); {check['calls']:,} calls"
        )
    told = f"economy: {calls_saved(check)}, including {check['sort_calls']:,} to sort the answers"
    if check["sort_failures"]:
        told += f" ({check['sort_failures']:,} of them failed, so those answers were judged one by one)"
    if check["judged_whole"]:
        told += (
            f"; carried labels were wrong too often, so all pairs of {check['judged_whole']:,} "
            f"question{'s' * (check['judged_whole'] != 1)} were judged"
        )
    if not check["carried"]:
        return f"{told}; no label was carried over: the judge gave all labels"
    return (
        f"{told}; {check['carried']:,} labels were carried over. Of {check['checked']:,} checked by the "
        f"judge, {check['wrong']:,} were on the wrong side and {check['other_label']:,} had another label: with 95% "
        f"confidence, at most {check['bound']:.1%} of the carried labels are on the wrong side (limit: {risk:.1%})"
    )
