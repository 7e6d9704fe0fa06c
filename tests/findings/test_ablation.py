from __future__ import annotations

import msgspec
import pytest

from hoofbeat.errors import UsageError
from hoofbeat.findings.intervals import bootstrap_mean, paired_difference
from hoofbeat.findings.systems import Ablation, ablation

Rows = dict[str, dict[str, float]]


def rows(*values: float) -> Rows:
    return {f"q{number}": {"R@10": value, "RR": value / 2} for number, value in enumerate(values)}


RUNS = [
    ({"chunk": 256, "stride": 64, "model": "bge"}, rows(0.0, 0.5, 0.5)),
    ({"chunk": 512, "stride": 64, "model": "bge"}, rows(0.5, 0.5, 1.0)),
    ({"chunk": 512, "stride": 128, "model": "bge"}, rows(1.0, 1.0, 1.0)),
]


def test_two_settings_make_a_grid() -> None:
    grid = ablation(RUNS, "R@10", down="chunk", across="stride", seed=2)
    assert (grid.rows, grid.columns, grid.n, grid.left_out) == (("256", "512"), ("64", "128"), 3, 0)
    assert grid.fixed == {"model": "bge"}
    assert grid.cell("256", "128") is None
    base, best = grid.cell("256", "64"), grid.cell("512", "128")
    assert base is not None
    assert best is not None
    assert (base.baseline, base.gain, base.relative) == (True, None, None)
    assert base.mean == pytest.approx(1 / 3)
    assert best.gain == paired_difference([1, 1, 1], [0, 0.5, 0.5], seed=2)
    assert best.relative == pytest.approx(2.0)
    assert best.interval == bootstrap_mean([1, 1, 1], seed=2)
    assert msgspec.json.decode(msgspec.json.encode(grid), type=Ablation) == grid


def test_one_setting_makes_a_column() -> None:
    grid = ablation(RUNS[1:], "RR", down="stride", baseline={"stride": "128"})
    assert (grid.rows, grid.columns) == (("64", "128"), ("RR",))
    cell = grid.cell("64", "RR")
    assert cell is not None
    assert cell.gain is not None
    assert cell.gain.difference == pytest.approx(-1 / 6)


def test_only_shared_questions_count() -> None:
    runs = [({"k": 1}, rows(1.0, 0.0)), ({"k": 2}, rows(1.0, 0.5, 0.5, 0.5))]
    grid = ablation(runs, "R@10", down="k")
    assert (grid.n, grid.left_out) == (2, 2)


def test_a_baseline_of_nothing_has_no_relative_gain() -> None:
    grid = ablation([({"k": 1}, rows(0.0)), ({"k": 2}, rows(1.0))], "R@10", down="k")
    assert [cell.relative for cell in grid.cells] == [None, None]


@pytest.mark.parametrize(
    ("runs", "down", "baseline", "message"),
    [
        ([], "k", None, "no runs"),
        (RUNS, "stride", None, "two runs have stride 64: they differ in chunk"),
        ([RUNS[0], RUNS[0]], "stride", None, "all their settings are the same"),
        (RUNS, "depth", None, "no setting 'depth'"),
        (RUNS[1:], "stride", {"stride": 99}, r"0 runs have the baseline's settings \(stride 99\)"),
        (RUNS[1:], "stride", {"model": "bge"}, "2 runs have the baseline's"),
    ],
)
def test_what_makes_no_grid(
    runs: list[tuple[dict[str, object], Rows]], down: str, baseline: dict[str, object] | None, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        ablation(runs, "R@10", down=down, baseline=baseline)
