"""Several judges on one pair: the majority decides, every vote is kept, and a pair without a majority has no label.

More than half of all judges must say the same, as everywhere in Hoofbeat; a judge that failed has no vote and still
counts. Where more than half agree only on whether the answers diverge, the label next to that border is taken: the
mildest of those that diverge, so that no disagreement is lost because judges differ on how bad it is. Where not even
that has a majority, the pair says who voted for what instead of having a label.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.pair_plan import PairVerdict
from hoofbeat.findings.agreement import Annotators, agreement_with_intervals
from hoofbeat.findings.intervals import Interval, share_interval
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


class PanelAgreement(Struct, frozen=True, kw_only=True):
    """How far the judges of an audit agree on the `pairs` that were put to them.

    `unanimous` of them have the same label from every judge; `by_side` have a majority only for whether the answers
    diverge, `no_majority` not even that and therefore no label; `incomplete` lack a vote. `every_two` compares every
    two judges, and all of them by Krippendorff's α.
    """

    judges: tuple[str, ...]
    pairs: int
    unanimous: int
    unanimous_interval: Interval
    by_side: int
    no_majority: int
    incomplete: int
    every_two: Annotators


def panel_agreement(audit: Audit, *, seed: int = 0) -> PanelAgreement | None:
    """The agreement of an audit's judges; None where there is one judge, or where none was asked."""
    judges = audit.judges
    if len(judges) < 2:
        return None
    columns = ["question", "a", "b", "votes", "basis", "failure", "label"]
    rows = audit.frame(columns).collect()
    asked = [row for row in rows.iter_rows() if row[3] is not None and row[4] == "judged"]
    if not asked:
        return None
    items = ["\t".join(row[:3]) for row in asked]
    clusters = {item: row[0] for item, row in zip(items, asked, strict=True)}
    ratings = {
        judge: {item: row[3][place] for item, row in zip(items, asked, strict=True) if row[3][place]}
        for place, judge in enumerate(judges)
    }
    same = [len(set(row[3])) == 1 for row in asked]
    return PanelAgreement(
        judges=tuple(judges),
        pairs=len(asked),
        unanimous=sum(same),
        unanimous_interval=share_interval(same, [row[0] for row in asked]),
        by_side=sum(row[6] is not None and 2 * row[3].count(row[6]) <= len(row[3]) for row in asked),
        no_majority=sum(row[5] == "no-majority" for row in asked),
        incomplete=sum(NO_VOTE in row[3] for row in asked),
        every_two=agreement_with_intervals(
            ratings, [label.name for label in audit.pack.labels], clusters=clusters, seed=seed
        ),
    )
