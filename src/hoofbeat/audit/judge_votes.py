"""Several judges on one pair: the majority decides, every vote is kept, and a pair without a majority has no label.

More than half of all judges must say the same, as everywhere in Hoofbeat; a judge that failed has no vote and still
counts. Where more than half agree only on whether the answers diverge, the label next to that border is taken: the
mildest of those that diverge, so that no disagreement is lost because judges differ on how bad it is. Where not even
that has a majority, the pair says who voted for what instead of having a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hoofbeat.audit.pair_plan import PairVerdict
from hoofbeat.models import Model
from hoofbeat.prompts import Pack
from hoofbeat.records import Failure

Judges = Model | Sequence[Model]
"""The judge of an audit, or several."""

NO_VOTE = ""


def judges_of(judge: Judges) -> tuple[Model, ...]:
    """The judges, of whom there is at least one."""
    return (judge,) if isinstance(judge, Model) else tuple(judge)


def judge_roles(judge: Judges) -> dict[str, Model]:
    """The judges by their roles in a manifest: `judge` for one, `judge: SPEC` for each of several."""
    models = judges_of(judge)
    return {"judge": models[0]} if len(models) == 1 else {f"judge: {model.spec}": model for model in models}


def majority_verdict(judges: Sequence[str], said: Sequence[PairVerdict], pack: Pack) -> PairVerdict:
    """What several judges make of a pair together; the reasoning is that of the first who said so."""
    votes = tuple(each.label or NO_VOTE for each in said)
    cast = Counter(vote for vote in votes if vote)
    told = ", ".join(f"{judge}: {vote or 'no label'}" for judge, vote in zip(judges, votes, strict=True))
    shared = {
        "votes": votes,
        "calls": tuple(call for each in said for call in each.calls),
        "tokens_in": sum(each.tokens_in for each in said),
        "tokens_out": sum(each.tokens_out for each in said),
    }
    if not cast:
        return PairVerdict(failure=said[0].failure, **shared)  # type: ignore[arg-type]
    label, count = cast.most_common(1)[0]
    words = f"{count} of {len(said)} judges"
    if 2 * count <= len(said):
        label, words = _by_side(votes, pack)
    if not label:
        failure = Failure(kind="no-majority", message=f"the judges do not agree ({told})", attempts=0)
        return PairVerdict(failure=failure, **shared)  # type: ignore[arg-type]
    agreeing = [each for each in said if each.label == label]
    first = agreeing[0]
    return PairVerdict(
        label=label,
        reasoning=f"{words} ({told}). {first.reasoning}".strip(),
        topic=next((each.topic for each in agreeing if each.topic), None),
        significance=_level(agreeing, pack.significance_levels),
        scanned=first.scanned,
        **shared,  # type: ignore[arg-type]
    )


def _by_side(votes: Sequence[str], pack: Pack) -> tuple[str, str]:
    """The label next to the border on the side that more than half of the judges take, and how it came about."""
    for diverges, what in ((True, "find a disagreement"), (False, "find none")):
        order = [label.name for label in pack.judged if label.diverges is diverges]
        given = [vote for vote in votes if vote in order]
        if 2 * len(given) > len(votes):
            nearest = min(given, key=order.index) if diverges else max(given, key=order.index)
            return nearest, f"{len(given)} of {len(votes)} judges {what}, but with different labels"
    return "", ""


def _level(agreeing: Sequence[PairVerdict], levels: Sequence[str]) -> str | None:
    """The significance that most of them give; among equals the higher one, for caution."""
    given = Counter(each.significance for each in agreeing if each.significance)
    return max(given, key=lambda level: (given[level], levels.index(level)), default=None)
