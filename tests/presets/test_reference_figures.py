"""Published figures that follow from others, and those of tables beside the project."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from hoofbeat.presets.reference_figures import ReferenceResult, check_figures, reference_figures
from tests.helpers import shared_data

_ALONE = ("sum", "share", "wilson low", "wilson high")


def test_what_follows_from_other_figures_comes_out(tmp_path: Path) -> None:
    done = check_figures(tmp_path, sets=tmp_path, kinds=_ALONE)
    assert len(done) >= 9
    assert {each.verdict for each in done} == {"ok"}


def test_figures_without_data_are_skipped(tmp_path: Path) -> None:
    done = check_figures(tmp_path, sets=tmp_path)
    skipped = [each for each in done if each.check.data]
    assert len(skipped) >= 20
    assert {each.verdict for each in skipped} == {"skipped: no data"}
    assert all(each.check.source for each in done)


def test_r2med_s_averages_are_those_of_its_sets() -> None:
    root = shared_data("README.md").parents[1]
    done = check_figures(root, sets=root / "data" / "retrieval", kinds=("average",))
    assert len(done) == 71 + 15
    assert {each.verdict for each in done} == {"ok"}


def test_a_figure_that_misses_its_tolerance_fails() -> None:
    figure = next(each for each in reference_figures() if each.kind == "share")
    near, far = figure.expected + figure.tolerance / 2, figure.expected + 2 * figure.tolerance
    assert ReferenceResult(check=figure, observed=near).verdict == "ok"
    assert ReferenceResult(check=figure, observed=far).verdict == "FAILED"
    floor = replace(figure, floor=True)
    assert ReferenceResult(check=floor, observed=far).verdict == "ok"
    assert ReferenceResult(check=floor, observed=figure.expected - 1).verdict == "FAILED"
