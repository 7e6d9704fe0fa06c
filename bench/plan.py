"""How far `hoofbeat plan` is from what stages take: predicted and measured, at three sizes on this machine.

    python -m bench.plan [--times 0.4 0.8 3] [--stages import indexing ...]

Every stage of `bench.scale` runs with 2 processes or threads here. The plan's constants were fitted on runs of 0.25,
0.5 and 1 times the usual sizes; the sizes here are others. CPU seconds are compared as well as time, because on a busy
machine only they can be foretold. Even they grow there, so the plan is also made with the speed that
`hoofbeat plan --probe` measures just before and after a run ("probed").
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.client import stub
from bench.scale import SIZES, Measured, measure, queries, run
from hoofbeat.capacity import CallRate, PlannedStage, StudySize, load_costs, plan_capacity, probe
from hoofbeat.models import load_model
from hoofbeat.store.call_ledger import Ledger

CORES = 2


FITTED = (0.25, 0.5, 1.0)
STAGES = [stage for stage in SIZES if stage != "searching shards"]


class Compared(NamedTuple):
    """A run beside its plan: CPU seconds as planned and measured, the machine's speed by the probe, and times."""

    stage: str
    size: int
    planned: float
    measured: float
    speed: float
    planned_wall: float
    wall: float

    @property
    def error(self) -> float:
        """The plan's error in CPU seconds."""
        return self.planned / self.measured - 1

    @property
    def probed_error(self) -> float:
        """The same for a plan with `--probe`."""
        return self.planned * self.speed / self.measured - 1

    def line(self) -> str:
        """A line of the table."""
        return (
            f"| {self.stage} | {self.size:,} | {self.planned:.1f} | {self.measured:.1f} | {self.error:+.0%} "
            f"| {self.speed:.2f} | {self.probed_error:+.0%} | {self.planned_wall:.1f} | {self.wall:.1f} |"
        )


def predicted(stage: str, size: int, measured: Measured, folder: Path) -> PlannedStage:
    """What the plan says of the same work."""
    judging = stage == "judging"
    study = StudySize(
        articles=0 if judging else size,
        characters=measured.characters,
        passages=measured.passages,
        questions=size if judging else queries(size),
        line="bm25 + dense",
    )
    rate = CallRate(seconds=0.001, in_flight=128, max_in_flight=128)  # a stub that answers at once
    with Ledger(folder / "ledger.sqlite") as ledger:
        found = plan_capacity(study, load_model("http://127.0.0.1:9/v1#m", ledger=ledger), rate, nodes=[1], cores=CORES)
    return next(each for each in found.stages if each.name == ("judgments" if judging else stage))


def compare(stage: str, size: int, url: str) -> Compared:
    """Run a stage, and plan the same."""
    costs = load_costs()
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as name:
        run(stage, "prepare", size, Path(name), url)
        before = probe(costs)
        found = measure(stage, "local", size, Path(name), url)
        speed = (before + probe(costs)) / 2
        plan = predicted(stage, size, found, Path(name))
    cpu, wall = 3600 * (plan.work_hours + plan.serial_hours), 3600 * plan.hours[1]
    return Compared(stage, size, cpu, found.here, speed, wall, found.wall)


def main() -> None:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=float, nargs="*", default=[0.4, 0.8, 3.0], help="times the usual sizes")
    parser.add_argument("--stages", nargs="*", choices=STAGES, default=STAGES)
    options = parser.parse_args()
    if used := sorted(set(options.times) & set(FITTED)):
        print(f"note: the constants were fitted on runs of {', '.join(map(str, used))} times the usual sizes")
    print("| stage | size | CPU s, planned | measured | error | speed, probed | error | s, planned | measured |")
    print("|" + "---|" * 9)
    probe(load_costs())  # the first loads what it needs
    rows: list[Compared] = []
    with stub() as url:
        for stage in options.stages:
            for times in options.times:
                rows.append(compare(stage, max(1, round(SIZES[stage] * times)), url))
                print(rows[-1].line(), flush=True)
    for name, errors in (
        ("as planned", [abs(row.error) for row in rows]),
        ("with --probe", [abs(row.probed_error) for row in rows]),
    ):
        print(f"CPU time, {name}: median error {median(errors):.0%}, largest {max(errors):.0%}")


if __name__ == "__main__":
    main()
