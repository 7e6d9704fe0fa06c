"""The pairs of an audit, judged block by block: no more than one block of them is ever in memory.

A block is some questions with a few thousand pairs to judge. Its rows are written aside as one Parquet part, and the
parts become one table at the end. What was judged is in the ledger before it is used, so that a command that is killed
and given again asks for the rest only and writes the same bytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hoofbeat.audit.audit_folder import OrderProbe
from hoofbeat.audit.economy.economy_audit import Economy, compare_block
from hoofbeat.audit.pair_judge import PairJudge, judge_pairs, judge_texts
from hoofbeat.audit.pair_plan import Claim, PairPlan, PairVerdict, pair_frame, plan_pairs
from hoofbeat.audit.pair_table import PartWriter, TableEnums
from hoofbeat.errors import BatchPending
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models.batch import BatchBackend
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.records import Question

if TYPE_CHECKING:
    import polars

_ASKED = 8192  # pairs to judge in a block
_ASKED_OF_A_BATCH = 50_000
_PAIRS = 500_000  # pairs of any kind in a block


class PairTally:
    """How many pairs there are, by label, by how they came to it, and by what went wrong."""

    def __init__(self) -> None:
        self.pairs = 0
        self.labels: Counter[str] = Counter()
        self.bases: Counter[str] = Counter()
        self.failures: Counter[str] = Counter()
        self.scanned = 0

    def add(self, frame: polars.DataFrame) -> None:
        """Count the rows of a part."""
        self.pairs += frame.height
        for name, counter in (("label", self.labels), ("basis", self.bases), ("failure", self.failures)):
            counts = frame[name].drop_nulls().value_counts()
            counter.update(dict(zip(counts[name].cast(str).to_list(), counts["count"].to_list(), strict=True)))

    def metrics(self) -> dict[str, object]:
        """The counts for a manifest."""
        found: dict[str, object] = {
            "labels": dict(sorted(self.labels.items())),
            "basis": dict(sorted(self.bases.items())),
        }
        return {**found, "label_only": self.scanned} if self.scanned else found


PairToProbe = tuple[Question, tuple[str, str], tuple[str, str], str]
"""A judged pair: the question, its sources, its texts in the order the judge saw them, and the label."""


def judge_all(
    judge: PairJudge,
    questions: Sequence[Question],
    claims: Mapping[str, Sequence[Claim]],
    kinds: TableEnums,
    target: Path,
    *,
    economy: Economy | None = None,
    draw: ReservoirSample[PairToProbe] | None = None,
    progress: Progress = SILENT,
) -> PairTally:
    """Judge every pair of every question and write the table; pairs with a call of their own are offered to `draw`."""
    tally = PairTally()
    parts = PartWriter(target.with_name(f"{target.name}.parts"))
    pending: list[BatchPending] = []
    size = _ASKED_OF_A_BATCH if isinstance(judge.model.backend, BatchBackend) else _ASKED
    plans = (plan_pairs(each, claims.get(each.id, ())) for each in sorted(questions, key=lambda each: each.id))
    total = sum(len(each) * (len(each) - 1) // 2 for each in claims.values())
    with progress.task("comparing sources", total) as task:
        for block in _blocks(plans, size):
            try:
                frame = _judge_block(judge, block, kinds, economy, draw, tally, task)
            except BatchPending as err:
                pending.append(err)
                continue
            tally.add(frame)
            parts.add(frame)
    stop_if_pending(pending)
    parts.finish(target, kinds)
    return tally


def _blocks(plans: Iterator[PairPlan], size: int) -> Iterator[list[PairPlan]]:
    block: list[PairPlan] = []
    asked = pairs = 0
    for plan in plans:
        block.append(plan)
        asked += len(plan.asked)
        pairs += len(plan.a)
        if asked >= size or pairs >= _PAIRS:
            yield block
            block, asked, pairs = [], 0, 0
    if block:
        yield block


def _judge_block(
    judge: PairJudge,
    block: Sequence[PairPlan],
    kinds: TableEnums,
    economy: Economy | None,
    draw: ReservoirSample[PairToProbe] | None,
    tally: PairTally,
    task: Task,
) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    task.advance(sum(len(plan.a) - len(plan.asked) for plan in block))

    def heard(plan: PairPlan, a: int, b: int, verdict: PairVerdict) -> None:
        tally.scanned += verdict.scanned
        if draw is not None and verdict.failure is None:
            _offer(draw, plan, a, b, verdict.label)

    if economy is not None:
        return compare_block(judge, block, kinds, economy, heard, progress=Within(task))
    said = judge_pairs(judge, block, progress=Within(task))
    for plan, verdicts in zip(block, said, strict=True):
        for (a, b), verdict in zip(plan.asked, verdicts, strict=True):
            heard(plan, a, b, verdict)
    model = judge.model.spec
    return polars.concat(
        [pair_frame(plan, verdicts, judge.pack, kinds, model) for plan, verdicts in zip(block, said, strict=True)]
    )


def _offer(draw: ReservoirSample[PairToProbe], plan: PairPlan, a: int, b: int, label: str) -> None:
    sources = plan.claims[min(a, b)].source, plan.claims[max(a, b)].source
    draw.offer((plan.question.id, *sources, 0), (plan.question, sources, (plan.texts[a], plan.texts[b]), label))


def probe_order(
    judge: PairJudge, draw: ReservoirSample[PairToProbe], *, progress: Progress = SILENT
) -> list[OrderProbe]:
    """Judge the drawn pairs again with their answers exchanged."""
    drawn = draw.drawn()
    items = [(question, second, first) for question, _, (first, second), _ in drawn]
    said = judge_texts(judge, items, title="exchanging the answers", progress=progress)
    return [
        OrderProbe(
            question=question.id,
            a=a,
            b=b,
            label=label,
            swapped=verdict.label,
            failure=f"{verdict.failure.kind}: {verdict.failure.message}" if verdict.failure else "",
        )
        for (question, (a, b), _, label), verdict in zip(drawn, said, strict=True)
    ]


def stop_if_pending(pending: Sequence[BatchPending]) -> None:
    """Stop where answers of a batch are still to come, once every request of this round is written."""
    if pending:
        what = "; ".join(dict.fromkeys(each.what for each in pending))
        raise BatchPending(what, where=pending[0].where, fix=pending[0].fix)
