"""Asking judges and deciding by their votes: a label needs more than half of the judges asked.

A judge whose call failed does not vote, and is not forgotten either: one vote of three is no majority of three. Where
no label has the votes of more than half of the judges asked, the answer is unscored (`no-majority`), every vote kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hoofbeat.findings.injection_figures import CODE_MISSING
from hoofbeat.judging.aspect import Aspect, JudgeRequest
from hoofbeat.judging.canary import canary_failure, with_canary
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Judgment, Question, Vote

if TYPE_CHECKING:
    from hoofbeat.models.model import Model, StructuredReply
    from hoofbeat.models.requests import ChatRequest


JudgeVote = tuple[str, Vote]
"""The passage that was judged (empty: the answer itself), and the vote."""


def ask_judge(
    model: Model,
    aspect: Aspect,
    questions: Mapping[str, Question],
    answers: Sequence[Answer],
    *,
    canary: bool = False,
    title: str = "judging",
    progress: Progress = SILENT,
) -> list[list[JudgeVote]]:
    """What one judge says of each answer: a vote each, or one for each passage of it.

    With `canary`, calls carry a check code, and a vote without it is a failure.
    """

    async def work(answer: Answer) -> list[JudgeVote]:
        asked = aspect.ask(questions.get(answer.question), answer, aspect.window(model))
        return [(each.passage, await cast_vote(model, aspect, each, canary=canary)) for each in asked]

    return model.run(answers, work, title=title, progress=progress)


async def cast_vote(model: Model, aspect: Aspect, asked: JudgeRequest, *, canary: bool = False) -> Vote:
    """One vote: what the judge says, or why it says nothing."""
    if asked.request is None:
        return Vote(judge=model.spec, failure=asked.failure)
    if canary:
        vote, check = await checked_vote(model, aspect, asked.request)
        if check == CODE_MISSING:
            return Vote(judge=model.spec, failure=canary_failure(vote.label), calls=vote.calls)
        return vote
    outcome = await model.chat_json(asked.request)
    return _vote(model, aspect, outcome)


async def checked_vote(model: Model, aspect: Aspect, request: ChatRequest) -> tuple[Vote, str]:
    """A vote on a call with a check code, and what became of the code; empty where there is no reply."""
    checked = with_canary(request)
    outcome = await model.chat_json(checked.request, reads=checked.reads)
    return _vote(model, aspect, outcome), "" if isinstance(outcome, Failure) else checked.state(outcome.value)


def _vote(model: Model, aspect: Aspect, outcome: StructuredReply | Failure) -> Vote:
    if isinstance(outcome, Failure):
        return Vote(judge=model.spec, failure=outcome)
    reply = aspect.read(outcome.value)
    return Vote(
        judge=model.spec,
        label=reply.label,
        secondary=reply.secondary,
        score=reply.score,
        reasoning=reply.reasoning,
        calls=outcome.calls,
    )


def majority_name(judges: Sequence[str]) -> str:
    """The judge of a judgment: the one there is, or `majority of N`."""
    return judges[0] if len(judges) == 1 else f"majority of {len(judges)}"


def decide(base: Judgment, aspect: Aspect, votes: Sequence[Vote]) -> Judgment:
    """The judgment these votes make: the only vote as it is, the majority of several."""
    if len(votes) == 1:
        vote = votes[0]
        return replace(
            base,
            label=vote.label,
            secondary=vote.secondary,
            score=vote.score,
            reasoning=vote.reasoning,
            failure=vote.failure,
            calls=vote.calls,
        )
    cast = [vote for vote in votes if vote.failure is None]
    base = replace(base, votes=tuple(votes))
    voted = f"{len(cast)} of {len(votes)} judges voted"
    if not cast:
        return replace(base, failure=_all_failed(votes))
    if 2 * len(cast) <= len(votes):
        return replace(base, failure=_no_majority(cast, f"too few judges voted ({voted})"))
    if aspect.graded:
        score = float(median(vote.score or 0.0 for vote in cast))
        grades = ", ".join(f"{vote.score:g}" for vote in cast if vote.score is not None)
        return replace(base, label=aspect.label_of(score), score=score, reasoning=f"{voted}; median of {grades}")
    label, count = Counter(vote.label for vote in cast).most_common(1)[0]
    if 2 * count <= len(votes):
        return replace(base, failure=_no_majority(cast, f"the judges do not agree ({voted})"))
    return replace(
        base, label=label, secondary=_secondary(votes, label), reasoning=f"{voted}, {count} of them for {label}"
    )


def _no_majority(cast: Sequence[Vote], why: str) -> Failure:
    said = ", ".join(f"{vote.judge}: {vote.label}" for vote in cast)
    return Failure(kind="no-majority", message=f"{why}: {said}", attempts=0)


def _secondary(votes: Sequence[Vote], primary: str) -> str:
    """The second label that more than half of the judges name, if there is one."""
    named = Counter(vote.secondary for vote in votes if vote.secondary not in {"", primary})
    label, count = named.most_common(1)[0] if named else ("", 0)
    return label if 2 * count > len(votes) else ""


def _all_failed(votes: Sequence[Vote]) -> Failure:
    failures = [vote.failure for vote in votes if vote.failure is not None]
    said = "; ".join(f"{vote.judge}: {vote.failure.message}" for vote in votes if vote.failure is not None)
    return Failure(
        kind=failures[0].kind,
        message=f"none of the {len(votes)} judges gave a verdict: {said}",
        attempts=sum(failure.attempts for failure in failures),
    )
