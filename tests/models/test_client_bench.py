"""The client benchmark runs and says what it should; how fast is told by the benchmark, not by a test."""

from __future__ import annotations

from bench.client import Timing, measure, summary


def test_rates_and_ratios() -> None:
    times = {
        "bare aiohttp": [Timing(100, 1.0, 0.5), Timing(100, 2.0, 0.5), Timing(100, 1.0, 0.5)],
        "other": [Timing(50, 1.0, 1.0), Timing(50, 1.0, 1.0), Timing(50, 2.0, 1.0)],
    }
    bare, other = summary(times)
    assert (bare["ratio"], bare["cpu_ratio"], bare["calls_per_second"]) == (1.0, 1.0, 100.0)
    assert (other["calls_per_second"], other["cpu_ms_per_call"], other["calls"]) == (50.0, 20.0, 150)
    assert (other["ratio"], other["cpu_ratio"]) == (0.5, 0.25)


def test_a_small_round_of_every_client() -> None:
    times = measure(calls=64, width=8, rounds=1)
    assert {"bare aiohttp", "Hoofbeat, client and ledger", "Hoofbeat, all from the ledger"} <= set(times)
    assert all(rounds[0].calls >= 8 and rounds[0].wall > 0 for rounds in times.values())
