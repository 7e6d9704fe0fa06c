"""Economy: fewer calls for the pairs of one question, by judging between groups of answers that make the same claims.

Pairs grow with the square of the sources. Where sources repeat each other, most of those pairs do as well.
An answer joins a group by a call: the very comparison with the group's representative that full judging would make, and
only where the label is the consistent one. Words are a guard before that: answers whose numbers, times, thresholds or
denials differ are never in one group (`answer_facts`). Then one pair is judged for each pair of groups, and its label
spread over the others, which are marked `group`. A call that does not join two answers is not lost: it is a pair that
has to be judged anyway. So economy never makes more calls than full judging.

Everything here is pure: `plan_economy` plans, `EconomyPlan.wanted` says which pairs to judge next given those that are
judged, `EconomyPlan.spread` gives the comparisons of all pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from hoofbeat.audit.answer_facts import AnswerFacts, facts_conflict, facts_of, shared_words
from hoofbeat.audit.pair_plan import asked_ranks, explain_sides, same_answer_form
from hoofbeat.errors import UsageError
from hoofbeat.prompts import Pack
from hoofbeat.records import Answer, Comparison, Failure, Question

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors of unit length, a row each."""


class DistinctAnswers(Struct, frozen=True, kw_only=True):
    """The distinct texts of a question's answers: who says each (sorted), its facts, and the voice of each source.

    Texts are the same by `pair_plan.same_answer_form`, and the least of them is shown to a judge, as in full judging.
    Silent sources have no voice.
    """

    members: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]
    facts: tuple[AnswerFacts, ...]
    of: dict[str, int]


def voices_of(answers: Sequence[Answer]) -> DistinctAnswers:
    """The voices of the answers that say something, in the order of their first sources."""
    spoken = [item for item in answers if not item.absent and item.failure is None]
    by_text: dict[str, list[Answer]] = {}
    for answer in sorted(spoken, key=lambda item: item.source):
        by_text.setdefault(same_answer_form(answer.text), []).append(answer)
    groups = list(by_text.values())
    texts = tuple(min(item.text for item in group) for group in groups)
    return DistinctAnswers(
        members=tuple(tuple(item.source for item in group) for group in groups),
        texts=texts,
        facts=tuple(map(facts_of, texts)),
        of={item.source: number for number, group in enumerate(groups) for item in group},
    )


def likeness_of(voices: DistinctAnswers, encode: Encode | None) -> NDArray[np.float64]:
    """How alike every two voices are, from 0 to 1, rounded so that a machine's last bits decide nothing."""
    count = len(voices.texts)
    likeness: NDArray[np.float64] = np.zeros((count, count))
    if encode is not None and count:
        vectors = np.asarray(encode(voices.texts), np.float64)
        likeness[:] = np.round(np.clip(vectors @ vectors.T, 0, 1), 4)
        return likeness
    sets = [set(facts.words) for facts in voices.facts]
    for v, w in combinations(range(count), 2):
        size = (len(sets[v]) * len(sets[w])) ** 0.5
        likeness[v, w] = likeness[w, v] = round(len(sets[v] & sets[w]) / size, 4) if size else 0.0
    return likeness


SourcePair = tuple[str, str]
"""Two sources, the lesser first."""

JudgedPairs = Mapping[SourcePair, Comparison]


class EconomySettings(Struct, frozen=True, kw_only=True):
    """How groups are made.

    An answer is put to a call with a group's representative from `likeness` on (cosine of the encoder's vectors, or of
    content words without an encoder). From `sure` on it joins without a call, if it also shares `words` of its content
    words and has the same bounds; without `sure`, only a call joins. What a representative turns away is grouped anew,
    `rounds` times at most. A pair of groups whose call fails is tried with other members, `tries` calls in all.

    With `votes` above 1, an answer also needs the majority of so many members to join, and so many pairs are judged for
    two groups (where there are as many): that takes more calls, and one wrong label no longer spreads.
    """

    likeness: float = 0.75
    sure: float | None = None
    words: float = 0.8
    rounds: int = 3
    tries: int = 2
    votes: int = 1

    def __post_init__(self) -> None:
        for name, value in (("likeness", self.likeness), ("sure", self.sure), ("words", self.words)):
            if value is not None and not 0 <= value <= 1:
                raise UsageError(f"the economy setting {name} is {value}", fix="give a number from 0 to 1")
        if self.rounds < 1 or self.tries < 1:
            raise UsageError("economy needs at least one round and one try", fix="give 1 or more")
        if self.votes < 1 or self.votes % 2 == 0:
            raise UsageError(f"{self.votes} votes have no majority for economy", fix="give 1, 3 or 5")

    def describe(self) -> dict[str, object]:
        """The settings as a manifest records them."""
        return {name: getattr(self, name) for name in self.__struct_fields__}


class AnswerGroup(Struct, frozen=True, kw_only=True):
    """Answers that make the same claims: the source that speaks for them, and all of them, sorted.

    `unsure` are those that a call with the representative has yet to confirm.
    """

    representative: str
    members: tuple[str, ...]
    unsure: tuple[str, ...] = ()


class AnswerGroups(Struct, frozen=True, kw_only=True):
    """The groups of one question's answers. Silent sources and failed answers are in none."""

    question: str
    groups: tuple[AnswerGroup, ...]


class EconomyPlan:
    """The plan of one question: which pairs to judge, round by round, and how their labels spread."""

    def __init__(
        self,
        question: str,
        answers: Sequence[Answer],
        pack: Pack,
        likeness: NDArray[np.float64],
        voices: DistinctAnswers,
        settings: EconomySettings,
    ) -> None:
        self.question = question
        self.answers = tuple(sorted(answers, key=lambda item: item.source))
        self.pack = pack
        self.settings = settings
        self._likeness = likeness
        self._voices = voices
        self._ranks = asked_ranks(voices.texts)
        self._clashes: dict[tuple[int, int], bool] = {}

    @property
    def pairs(self) -> tuple[SourcePair, ...]:
        """The pairs of the first round; `wanted` has those of the later ones."""
        return self.wanted({})

    @property
    def spoken_pairs(self) -> int:
        """How many pairs full judging would have to label: those with two answers."""
        n = len(self._voices.of)
        return n * (n - 1) // 2

    def wanted(self, judged: JudgedPairs) -> tuple[SourcePair, ...]:
        """The pairs to judge next, given those judged so far; none when everything needed is there."""
        groups, unconfirmed = self._resolve(judged)
        if unconfirmed:
            return tuple(sorted(set(unconfirmed)))
        return tuple(sorted(pair for g, h in combinations(groups, 2) for pair in self._between(g, h, judged)[1]))

    def groups(self, judged: JudgedPairs) -> AnswerGroups:
        """The groups as far as the judged pairs confirm them."""
        named = self._voices.members
        found = []
        for group in self._resolve(judged)[0]:
            sources = sorted(source for voice in group for source in named[voice])
            found.append(AnswerGroup(representative=named[group[0]][0], members=tuple(sources)))
        return AnswerGroups(question=self.question, groups=tuple(sorted(found, key=lambda group: group.members)))

    def spread(self, judged: JudgedPairs) -> list[Comparison]:
        """The comparison of every pair of the question, in order. A pair that was judged keeps its own judgment.

        What the judge said comes as it was said: its A is the source whose text `pairs.asked_order` puts first.
        """
        missing = self.wanted(judged)
        if missing:
            raise UsageError(
                f"{len(missing)} pairs of question {self.question!r} are still to be judged", fix="judge `wanted` first"
            )
        groups, _ = self._resolve(judged)
        home = {voice: number for number, group in enumerate(groups) for voice in group}
        between = {
            (g, h): self._between(groups[g], groups[h], judged)[0] for g, h in combinations(range(len(groups)), 2)
        }
        rows = []
        for a, b in combinations(self.answers, 2):
            pair = (a.source, b.source)
            if pair in judged:
                rows.append(replace(judged[pair], reasoning=self._told(judged[pair], pair)))
                continue
            row = self._unspoken(a, b)
            if row is None:
                v, w = (self._voices.of[side] for side in pair)
                g, h = home[v], home[w]
                if v != w and self._pair(v, w) in judged:
                    row = self._spread(pair, v, w, judged[self._pair(v, w)])
                elif g == h:
                    row = self._within(pair, v, w, groups[g][0], judged)
                else:
                    row = self._spread(pair, v, w, between[min(g, h), max(g, h)])
            rows.append(row)
        return rows

    # Groups

    def first_groups(self) -> AnswerGroups:
        """The groups that answers may form, before any call."""
        named = self._voices.members
        found = []
        for group in self._gather(range(len(named))):
            unsure = [voice for voice in group[1:] if not self._sure(group[0], voice)]
            found.append(
                AnswerGroup(
                    representative=named[group[0]][0],
                    members=tuple(sorted(source for voice in group for source in named[voice])),
                    unsure=tuple(sorted(source for voice in unsure for source in named[voice])),
                )
            )
        return AnswerGroups(question=self.question, groups=tuple(sorted(found, key=lambda group: group.members)))

    def _resolve(self, judged: JudgedPairs) -> tuple[list[list[int]], list[SourcePair]]:
        """The groups, representative first, as far as judged pairs confirm them; and what has to be judged first."""
        pool: Sequence[int] = range(len(self._voices.facts))
        groups: list[list[int]] = []
        for _ in range(self.settings.rounds):
            turned_away: list[int] = []
            missing: list[SourcePair] = []
            for candidates in self._gather(pool):
                group, needed = self._confirmed(candidates, 1, judged)
                if not needed and self.settings.votes > 1:
                    group, needed = self._confirmed(group, self.settings.votes, judged)
                groups.append(group)
                missing += needed
                turned_away += [voice for voice in candidates if voice not in group]
            if missing:
                return groups, missing
            pool = sorted(turned_away)
        return groups + [[voice] for voice in pool], []

    def _confirmed(self, group: list[int], votes: int, judged: JudgedPairs) -> tuple[list[int], list[SourcePair]]:
        """The representative and those that it, or most of the first members, agree with; and what is to be judged."""
        kept, missing = [group[0]], []
        for voice in group[1:]:
            voters = [self._pair(voice, other) for other in group if other != voice][:votes]
            needed = [pair for pair in voters if pair not in judged]
            if self._sure(group[0], voice):
                kept.append(voice)
            elif needed:
                missing += needed
            elif self._agreed([judged[pair] for pair in voters]):
                kept.append(voice)
        return kept, missing

    def _gather(self, pool: Sequence[int]) -> list[list[int]]:
        """Groups of answers that may make the same claims, each round the one with the most; representative first."""
        left = list(pool)
        near = {v: [w for w in left if w != v and self._alike(v, w)] for v in left}
        groups = []
        while left:
            chosen = max(left, key=lambda v: (len(near[v]), sum(self._likeness[v, w] for w in near[v]), -v))
            group = [chosen]
            for voice in sorted(near[chosen], key=lambda w: (-self._likeness[chosen, w], w)):
                if not any(self._clash(voice, member) for member in group):
                    group.append(voice)
            groups.append(group)
            taken = set(group)
            left = [v for v in left if v not in taken]
            near = {v: [w for w in near[v] if w not in taken] for v in left}
        return groups

    def _alike(self, v: int, w: int) -> bool:
        return bool(self._likeness[v, w] >= self.settings.likeness) and not self._clash(v, w)

    def _clash(self, v: int, w: int) -> bool:
        key = (min(v, w), max(v, w))
        if key not in self._clashes:
            self._clashes[key] = bool(facts_conflict(self._voices.facts[v], self._voices.facts[w]))
        return self._clashes[key]

    def _sure(self, v: int, w: int) -> bool:
        sure, one, two = self.settings.sure, self._voices.facts[v], self._voices.facts[w]
        return (
            sure is not None
            and bool(self._likeness[v, w] >= sure)
            and one.quantities == two.quantities
            and shared_words(one, two) >= self.settings.words
        )

    # Labels

    def _pair(self, v: int, w: int) -> SourcePair:
        a, b = sorted((self._voices.members[v][0], self._voices.members[w][0]))
        return a, b

    def _agreed(self, votes: Sequence[Comparison]) -> bool:
        """Whether more than half of the votes that could be read are for agreement."""
        read = [vote.label for vote in votes if vote.failure is None]
        return 2 * read.count(self.pack.consistent) > len(read)

    def _between(self, g: list[int], h: list[int], judged: JudgedPairs) -> tuple[Comparison | None, list[SourcePair]]:
        """The judgment that speaks for two groups, or the pairs to judge for it; after too many failures, a failure.

        Representatives come first, then pairs of members as far apart in the groups as can be.
        """
        votes, read, missing = self.settings.votes, [], []
        failed: Comparison | None = None
        ranked = sorted((max(x, y), x + y, x, y) for x in range(len(g)) for y in range(len(h)))
        for _, _, x, y in ranked[: votes + self.settings.tries - 1]:
            pair = self._pair(g[x], h[y])
            if pair not in judged:
                missing.append(pair)
            elif judged[pair].failure is None:
                read.append(judged[pair])
            else:
                failed = judged[pair]
            if len(read) + len(missing) == votes:
                break
        if missing or not read:
            return (None, missing) if missing else (failed, [])
        most = Counter(row.label for row in read).most_common(1)[0][0]  # among equals, the representatives' label
        return next(row for row in read if row.label == most), []

    def _unspoken(self, a: Answer, b: Answer) -> Comparison | None:
        """The comparison of two sources of which one is silent or has no answer."""
        base = Comparison(question=self.question, a=a.source, b=b.source)
        if a.absent or b.absent:
            return replace(base, label=self.pack.absent, basis="absent")
        for side in (a, b):
            if side.failure is not None:
                message = f"no answer of {side.source}: {side.failure.message}"
                return replace(base, failure=Failure(kind=side.failure.kind, message=message, attempts=0))
        return None

    def _within(self, pair: SourcePair, v: int, w: int, representative: int, judged: JudgedPairs) -> Comparison:
        """Two answers of one group: the same text, or each found consistent with the representative."""
        base = Comparison(question=self.question, a=pair[0], b=pair[1], label=self.pack.consistent)
        if v == w:
            return replace(base, basis="same")
        confirming = [self._pair(representative, side) for side in (v, w) if side != representative]
        calls = [judged[each] for each in confirming if each in judged]
        name = self._voices.members[representative][0]
        return replace(
            base,
            basis="group",
            reasoning=f"Both make the claims of {name}'s answer.",
            judge=calls[0].judge if calls else "",
            calls=tuple(dict.fromkeys(key for call in calls for key in call.calls)),
        )

    def _spread(self, pair: SourcePair, v: int, w: int, judgment: Comparison | None) -> Comparison:
        """The judgment between two groups as that of one more pair of theirs."""
        assert judgment is not None
        told = (judgment.a, judgment.b)
        shared = {v, w} == {self._voices.of[side] for side in told}
        first, second = reversed(told) if self._exchanged(told) else told
        why = f"As between {first} (A) and {second} (B): {judgment.reasoning}" if judgment.reasoning else ""
        failure = judgment.failure
        if shared:
            why = self._told(judgment, pair)
        elif failure is not None:
            message = f"as between {told[0]} and {told[1]}: {failure.message}"
            failure = Failure(kind=failure.kind, message=message, attempts=0)
        basis = "shared" if shared else "group"
        return replace(judgment, a=pair[0], b=pair[1], basis=basis, reasoning=why, failure=failure)

    def _told(self, judgment: Comparison, pair: SourcePair) -> str:
        """What the judge said of the two texts of a pair."""
        return explain_sides(judgment.reasoning, *pair, exchanged=self._exchanged(pair))

    def _exchanged(self, pair: SourcePair) -> bool:
        """Whether a judge is shown the text of the second source first."""
        one, two = (self._ranks[self._voices.of[side]] for side in pair)
        return one > two


def plan_economy(
    question: Question,
    answers: Sequence[Answer],
    pack: Pack,
    *,
    encode: Encode | None = None,
    settings: EconomySettings | None = None,
) -> EconomyPlan:
    """Plan the pairs of one question. Answers of the same text speak with one voice."""
    chosen = settings or EconomySettings()
    mine = [answer for answer in answers if answer.question == question.id]
    if len({answer.source for answer in mine}) < len(mine):
        raise UsageError(f"a source has two answers to question {question.id!r}", fix="give one answer a source")
    voices = voices_of(mine)
    return EconomyPlan(question.id, mine, pack, likeness_of(voices, encode), voices, chosen)


def plan_groups(
    question: Question,
    answers: Sequence[Answer],
    pack: Pack,
    encode: Encode | None = None,
    settings: EconomySettings | None = None,
) -> AnswerGroups:
    """The groups that a question's answers may form, before any call: `unsure` members are to be confirmed."""
    return plan_economy(question, answers, pack, encode=encode, settings=settings).first_groups()


def economy_compare(
    plans: Sequence[EconomyPlan], judge: Callable[[list[tuple[EconomyPlan, SourcePair]]], Iterable[Comparison]]
) -> list[list[Comparison]]:
    """Judge the wanted pairs of all plans, round by round, and spread them: the comparisons of each plan, in order.

    `judge` is given the pairs of one round over all questions and returns a comparison for each, in their order.
    """
    judged: list[dict[SourcePair, Comparison]] = [{} for _ in plans]
    numbers = {id(plan): number for number, plan in enumerate(plans)}
    waiting = list(plans)
    while True:
        wanted = [(plan, pair) for plan in waiting for pair in plan.wanted(judged[numbers[id(plan)]])]
        if not wanted:
            return [plan.spread(known) for plan, known in zip(plans, judged, strict=True)]
        for (plan, pair), comparison in zip(wanted, judge(wanted), strict=True):
            judged[numbers[id(plan)]][pair] = comparison
        asked = {id(plan) for plan, _ in wanted}
        waiting = [plan for plan in waiting if id(plan) in asked]
