"""How far `hoofbeat plan` is from what stages take: predicted and measured, at three sizes on this machine.

    python -m bench.plan [--times 0.25 0.5 1] [--stages import indexing ...]

Every stage of `bench.scale` runs with 2 processes or threads here. CPU seconds are compared as well as time, because on
a busy machine only they can be foretold; the model's own constants come from another run.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench.client import stub
from bench.scale import QUERIES, SIZES, Measured, measure, run
from hoofbeat.capacity import CallRate, PlannedStage, StudySize, plan_capacity
from hoofbeat.models import load_model
from hoofbeat.store.call_ledger import Ledger

CORES = 2


def predicted(stage: str, size: int, measured: Measured, folder: Path) -> PlannedStage:
    """What the plan says of the same work."""
    judging = stage == "judging"
    study = StudySize(
        articles=0 if judging else size,
        characters=measured.characters,
        passages=measured.passages,
        questions=size if judging else QUERIES,
        line="bm25 + dense",
    )
    rate = CallRate(seconds=0.001, in_flight=128, max_in_flight=128)  # a stub that answers at once
    with Ledger(folder / "ledger.sqlite") as ledger:
        found = plan_capacity(study, load_model("http://127.0.0.1:9/v1#m", ledger=ledger), rate, nodes=[1], cores=CORES)
    return next(each for each in found.stages if each.name == ("judgments" if judging else stage))


def main() -> None:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, nargs="*", default=[0.25, 0.5, 1.0], help="times the usual sizes")
    parser.add_argument("--stages", nargs="*", choices=list(SIZES), default=list(SIZES))
    options = parser.parse_args()
    print("| stage | size | CPU s, predicted | measured | error | s on 2 cores, predicted | measured | error |")
    print("|" + "---|" * 8)
    with stub() as url:
        for stage in options.stages:
            for times in options.times:
                size = max(1, round(SIZES[stage] * times))
                with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as name:
                    run(stage, "prepare", size, Path(name), url)
                    found = measure(stage, "local", size, Path(name), url)
                    plan = predicted(stage, size, found, Path(name))
                cpu, wall = 3600 * (plan.work_hours + plan.serial_hours), 3600 * plan.hours[1]
                print(
                    f"| {stage} | {size:,} | {cpu:.1f} | {found.here:.1f} | {cpu / found.here - 1:+.0%} "
                    f"| {wall:.1f} | {found.wall:.1f} | {wall / found.wall - 1:+.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
