"""How far `hoofbeat plan` is from what stages take: predicted and measured, at three sizes on this machine.

    python -m bench.plan [--times 0.4 0.8 3] [--stages import indexing ...] [--rounds 1]
    python -m bench.plan --fit

Every stage of `bench.scale` runs with 2 processes or threads here. `--fit` runs 0.25, 0.5 and 1 times the usual sizes
on every second real article and on documents of case reports' sentences, and prints the seconds to begin and by what
the other constants of `capacity.toml` would have to be multiplied to suit these runs best. Without it, runs of other
sizes and other data are compared with the plan: the other articles, and documents of guidelines' sentences, a third of
them short and a third long, with questions of half the length. Only `judging` has the same invented answers both times.
CPU seconds are compared as well as time, because on a busy machine only they can be predicted. Even they grow there, so
the plan is also made with the speed that `hoofbeat plan --probe` measures just before and after a run ("probed"). With
`--rounds` each run is repeated, and the one with the least CPU time counts, which other work has disturbed least.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np

from bench.client import stub
from bench.scale import DATA, SIZES, Measured, asked, measure, queries, run
from hoofbeat.capacity import CallRate, PlannedStage, StudySize, load_costs, plan_capacity, probe
from hoofbeat.models import load_model
from hoofbeat.store.call_ledger import Ledger

CORES = 2
FIT = (0.25, 0.5, 1.0)
TEST = (0.4, 0.8, 3.0)
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


def predicted(stage: str, size: int, measured: Measured, folder: Path, data: str) -> PlannedStage:
    """What the plan says of the same work."""
    judging = stage == "judging"
    lengths = [len(text) for text in asked(queries(size), DATA[data])] if stage == "searching" else [0]
    study = StudySize(
        articles=0 if judging else size,
        characters=measured.characters,
        passages=measured.passages,
        questions=size if judging else queries(size),
        question_characters=round(sum(lengths) / len(lengths)),
        line="bm25 + dense",
    )
    rate = CallRate(seconds=0.001, in_flight=128, max_in_flight=128)  # a stub that answers at once
    with Ledger(folder / "ledger.sqlite") as ledger:
        found = plan_capacity(study, load_model("http://127.0.0.1:9/v1#m", ledger=ledger), rate, nodes=[1], cores=CORES)
    return next(each for each in found.stages if each.name == ("judgments" if judging else stage))


def compare(stage: str, size: int, url: str, data: str, rounds: int) -> Compared:
    """Run a stage, and plan the same: the round with the least CPU time."""
    costs = load_costs()
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as name:
        run(stage, "prepare", size, Path(name), url, data=data)
        runs = []
        for _ in range(rounds):
            before = probe(costs)
            found = measure(stage, "local", size, Path(name), url, data=data)
            runs.append((found.here, (before + probe(costs)) / 2, found))
        _, speed, found = min(runs)
        plan = predicted(stage, size, found, Path(name), data)
    cpu, wall = 3600 * (plan.work_hours + plan.serial_hours), 3600 * plan.hours[1]
    return Compared(stage, size, cpu, found.here, speed, wall, found.wall)


def fitted(stage: str, rows: Sequence[Compared], *, probed: bool) -> tuple[float, float]:
    """Seconds to begin a stage, and what multiplies its other constants: the squares of relative errors are least."""
    start = load_costs().stages["calls" if stage == "judging" else stage].start
    measured = np.array([row.measured / (row.speed if probed else 1.0) for row in rows])
    grows = np.array([row.planned - start for row in rows]) / measured
    (begin, times), *_ = np.linalg.lstsq(np.stack([1 / measured, grows], axis=1), np.ones(len(rows)))
    if begin < 0:
        return 0.0, float(grows.sum() / (grows**2).sum())
    return float(begin), float(times)


def main() -> None:
    """Measure, compare and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true", help="the runs that the constants are fitted on")
    parser.add_argument("--times", type=float, nargs="*", help="times the usual sizes")
    parser.add_argument("--stages", nargs="*", choices=STAGES, default=STAGES)
    parser.add_argument("--rounds", type=int, default=1, help="repeat each run, and take the one with least CPU time")
    options = parser.parse_args()
    times = options.times or (FIT if options.fit else TEST)
    if not options.fit and (used := sorted(set(times) & set(FIT))):
        print(f"note: the constants were fitted on runs of {', '.join(map(str, used))} times the usual sizes")
    print("| stage | size | CPU s, planned | measured | error | speed, probed | error | s, planned | measured |")
    print("|" + "---|" * 9)
    probe(load_costs())  # the first loads what it needs
    rows: list[Compared] = []
    with stub() as url:
        for stage in options.stages:
            for part in times:
                size = max(1, round(SIZES[stage] * part))
                rows.append(compare(stage, size, url, "fit" if options.fit else "test", options.rounds))
                print(rows[-1].line(), flush=True)
    if options.fit:
        for stage in options.stages:
            of_stage = [row for row in rows if row.stage == stage]
            plain, probed = (fitted(stage, of_stage, probed=at_speed) for at_speed in (False, True))
            told = [f"{begin:.2f} s to begin, multiply by {times:.2f}" for begin, times in (plain, probed)]
            print(f"{stage}: {told[0]}; at the probe's speed {told[1]}")
        return
    for name, errors in (
        ("as planned", [abs(row.error) for row in rows]),
        ("with --probe", [abs(row.probed_error) for row in rows]),
    ):
        print(f"CPU time, {name}: median error {median(errors):.0%}, largest {max(errors):.0%}")


if __name__ == "__main__":
    main()
