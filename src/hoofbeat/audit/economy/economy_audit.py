"""Economy in an audit: pairs judged between groups of answers, and a sample of the spread labels judged for real."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.audit.audit_folder import EconomyProbe
from hoofbeat.audit.economy.economy_check import SPREAD, EconomyCheck, check_agreement, check_sample
from hoofbeat.audit.economy.economy_plan import EconomyPlan, EconomySettings, Encode, economy_compare, plan_economy
from hoofbeat.audit.pair_judge import PairJudge, judge_texts
from hoofbeat.audit.pair_plan import Claim, PairPlan, PairVerdict, asked_order, spoken_texts
from hoofbeat.audit.pair_table import TableEnums, comparison_frame, each_row, scan_table
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Comparison, Question

if TYPE_CHECKING:
    import polars

OnVerdict = Callable[[PairPlan, int, int, PairVerdict], None]
"""Told of every call: the plan, the places of the two claims in the order the judge saw them, and what it said."""

_BLOCK = 65_536


class Economy(Struct, frozen=True, kw_only=True):
    """How an audit saves calls: how groups are made, what tells how alike answers are, how many labels are checked.

    `encoder` names what `encode` is, for the manifest.
    """

    settings: EconomySettings = EconomySettings()
    encode: Encode | None = None
    encoder: str = ""
    check: int = 200

    def describe(self) -> dict[str, object]:
        """As a manifest records it."""
        return {**self.settings.describe(), "encoder": self.encoder, "check": self.check}


def compare_block(
    judge: PairJudge,
    block: Sequence[PairPlan],
    kinds: TableEnums,
    economy: Economy,
    heard: OnVerdict,
    *,
    progress: Progress = SILENT,
) -> polars.DataFrame:
    """The rows of some questions' pairs, judged between groups; rounds of calls go over all of them at once."""
    pairs = {plan.question.id: plan for plan in block}
    places = {(plan.question.id, claim.source): place for plan in block for place, claim in enumerate(plan.claims)}
    tokens: dict[tuple[str, str, str], tuple[int, int]] = {}
    plans = [
        plan_economy(
            plan.question,
            [_answer(plan.question, claim) for claim in plan.claims],
            judge.pack,
            encode=economy.encode,
            settings=economy.settings,
        )
        for plan in block
    ]

    def ask(wanted: list[tuple[EconomyPlan, tuple[str, str]]]) -> list[Comparison]:
        shown = []
        for plan, sources in wanted:
            mine = pairs[plan.question]
            a, b = (places[plan.question, source] for source in sources)
            one, two = mine.claims[a].text, mine.claims[b].text  # the date decides no order
            shown.append((mine, a, b) if asked_order(one, two)[0] == one else (mine, b, a))
        items = [(mine.question, mine.texts[a], mine.texts[b]) for mine, a, b in shown]
        said = judge_texts(judge, items, progress=progress)
        rows = []
        for (plan, (one, two)), (mine, a, b), verdict in zip(wanted, shown, said, strict=True):
            heard(mine, a, b, verdict)
            tokens[plan.question, one, two] = verdict.tokens_in, verdict.tokens_out
            rows.append(_comparison(plan.question, one, two, verdict, judge.name))
        return rows

    compared = economy_compare(plans, ask)
    return comparison_frame((row for rows in compared for row in rows), kinds, tokens)


def _answer(question: Question, claim: Claim) -> Answer:
    return Answer(
        question=question.id,
        model="",
        condition="source",
        source=claim.source,
        text=claim.text,
        absent=claim.absent,
        failure=claim.failure,
    )


def _comparison(question: str, a: str, b: str, verdict: PairVerdict, judge: str) -> Comparison:
    return Comparison(
        question=question,
        a=a,
        b=b,
        label=verdict.label,
        reasoning=verdict.reasoning,
        topic=verdict.topic,
        significance=verdict.significance,
        judge=judge,
        basis="judged",
        failure=verdict.failure,
        calls=verdict.calls,
        votes=verdict.votes,
    )


def check_economy(
    judge: PairJudge,
    questions: Mapping[str, Question],
    claims: Mapping[str, Sequence[Claim]],
    table: Path,
    size: int,
    seed: int,
    *,
    progress: Progress = SILENT,
) -> tuple[list[EconomyProbe], EconomyCheck]:
    """Judge a sample of the spread labels for real, and count how many stand."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    frame = scan_table(table)
    sample = check_sample(_rows(frame.filter(polars.col("basis") == SPREAD)), size, seed)
    spoken_by = {
        (name, claim.source): (text, claim.shown(text))
        for name in {each.question for each in sample}
        for claim, text in zip(claims[name], spoken_texts(claims[name]), strict=True)
    }
    items = []
    for each in sample:
        sides = [spoken_by[each.question, side] for side in (each.a, each.b)]
        first = asked_order(sides[0][0], sides[1][0])[0]
        a, b = sides if first == sides[0][0] else sides[::-1]
        items.append((questions[each.question], a[1], b[1]))
    said = judge_texts(judge, items, title="checking economy", progress=progress)
    real = [
        _comparison(each.question, each.a, each.b, verdict, judge.name)
        for each, verdict in zip(sample, said, strict=True)
    ]
    probes = [
        EconomyProbe(
            question=each.question,
            a=each.a,
            b=each.b,
            spread=each.label,
            judged=own.label,
            failure=f"{own.failure.kind}: {own.failure.message}" if own.failure else "",
        )
        for each, own in zip(sample, real, strict=True)
    ]
    spoken = frame.filter(polars.col("label") != judge.pack.absent)
    return probes, check_agreement(_rows(spoken), real, judge.pack.absent)


def _rows(frame: polars.LazyFrame) -> Iterator[Comparison]:
    """Rows without their texts, some at a time."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    kept = ("question", "a", "b", "label", "basis", "failure")
    rows = frame.select(kept).collect()
    for start in range(0, rows.height, _BLOCK):
        part = rows.slice(start, _BLOCK)
        empty = [
            polars.lit(None).alias(name)
            for name in (
                "topic", "significance", "judge", "reasoning", "failure_message", "failure_attempts", "calls", "votes"
            )
        ]  # fmt: skip
        yield from each_row(part.with_columns(empty))
