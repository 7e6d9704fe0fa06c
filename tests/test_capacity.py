"""Capacity: calls by the stages' formulas, hours by Amdahl and by the servers' rate, and what was assumed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.audit.audit_estimate import economy_calls
from hoofbeat.capacity import CallRate, CapacityPlan, PlannedStage, StudySize, load_costs, plan_capacity, rate_of
from hoofbeat.models import Model, load_model
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.ledger_base import LedgerEntry

RATE = CallRate(seconds=2.0, in_flight=10, max_in_flight=512, source="given")
SIX_MILLION = StudySize(
    articles=6_000_000, characters=80_000_000_000, passages=100_000_000, questions=10_000, sources=500
)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        yield load_model("http://127.0.0.1:9/v1#m", ledger=ledger)


def stages_of(plan: CapacityPlan) -> dict[str, PlannedStage]:
    return {stage.name: stage for stage in plan.stages}


def test_calls_of_an_audit(model: Model) -> None:
    found = stages_of(plan_capacity(SIX_MILLION, model, RATE))
    assert found["audit: answers"].amount == 5_000_000
    assert found["audit: pairs"].amount == 10_000 * 500 * 499 // 2
    assert "audit: sorting" not in found
    assert found["audit: table and findings"].amount == found["audit: pairs"].amount
    economy = stages_of(plan_capacity(msgspec.structs.replace(SIX_MILLION, positions=6), model, RATE))
    assert economy["audit: sorting"].amount == 10_000 * 25
    sorting, pairs = economy_calls([500] * 10_000, 6, 0)
    assert sorting == economy["audit: sorting"].amount
    assert pairs == 10_000 * (15 + 6)
    assert pairs < economy["audit: pairs"].amount < 1.1 * pairs  # with the sample that checks the others
    table = economy["audit: table and findings"]
    assert table.amount == 10_000 * 500 * 499 // 2, "labels that are copied are rows as well"
    assert len(set(table.hours.values())) == 1, "the command does it alone, so no cluster is joined"


def test_an_audit_shows_whole_sources_where_they_are_short(model: Model) -> None:
    """Five institutions of 55,000 characters took 2.3 times the tokens that were planned."""
    handbooks = StudySize(articles=15, characters=273_000, passages=345, questions=200, sources=5)
    plan = plan_capacity(handbooks, model, RATE)
    answers = stages_of(plan)["audit: answers"].estimate
    assert answers is not None
    assert 200 * 5 * 54_600 / 4 < answers.tokens_in < 1.5 * 200 * 5 * 54_600 / 3
    assert any("its whole source (54,600 characters" in each for each in plan.assumptions)
    long = plan_capacity(msgspec.structs.replace(handbooks, characters=5 * 80_001), model, RATE)
    assert long.tokens_in < plan.tokens_in / 2
    assert any("5 passages of 800 characters" in each for each in long.assumptions)


def test_hours_are_serial_work_and_the_servers_rate(model: Model) -> None:
    found = stages_of(plan_capacity(SIX_MILLION, model, RATE, cores=10))
    costs = load_costs()
    encoding, cost = found["encoding"], costs.stages["encoding"]
    assert encoding.hours[1] * 3600 == pytest.approx(cost.start + 100_000 * (cost.serial + cost.work / 10))
    begin = cost.start + costs.joining
    assert encoding.hours[8] * 3600 == pytest.approx(begin + 100_000 * (cost.serial + cost.work / 80))
    answers = found["audit: answers"]
    assert answers.hours[1] * 3600 == pytest.approx(5_000_000 / (10 / 2))
    assert answers.hours[8] * 3600 == pytest.approx(5_000_000 / (80 / 2))
    assert answers.hours[64] * 3600 == pytest.approx(5_000_000 / (512 / 2)), "a fleet's calls in flight are limited"
    assert answers.estimate is not None
    assert answers.estimate.tokens_in > 5_000_000 * 5 * 800 / 6


def test_more_nodes_are_never_slower_on_a_large_study(model: Model) -> None:
    plan = plan_capacity(SIX_MILLION, model, RATE, nodes=[1, 2, 8, 64, 512])
    for stage in plan.stages:
        hours = [stage.hours[count] for count in plan.nodes]
        assert hours == sorted(hours, reverse=True)
        assert hours[-1] >= stage.serial_hours, "more nodes do not shorten"
    assert plan.hours[64] == pytest.approx(sum(stage.hours[64] for stage in plan.stages))


def test_costs_grow_with_the_study(model: Model) -> None:
    small = StudySize(articles=1000, characters=20_000_000, passages=25_000, questions=10, line="bm25")
    plan = plan_capacity(small, model, RATE)
    assert list(stages_of(plan)) == ["import", "near-duplicates", "cutting", "indexing", "searching", "answers",
                                     "judgments"]  # fmt: skip
    assert plan.calls == 20
    large = plan_capacity(msgspec.structs.replace(small, articles=2000, characters=40_000_000), model, RATE)
    assert large.hours[1] > plan.hours[1]
    assert sum(large.disk.values()) > sum(plan.disk.values())
    assert plan.disk["vectors, in the index and in the cache"] == 0
    assert any("cores" in each for each in plan.assumptions)


def test_a_line_that_asks_a_model_is_counted_by_its_bound(model: Model) -> None:
    study = StudySize(articles=100, characters=2_000_000, passages=2500, questions=10, line="hyde > bm25")
    found = stages_of(plan_capacity(study, model, RATE))
    assert found["retrieval"].amount == 10


def test_the_rate_is_given_or_from_the_ledger_or_a_guess(model: Model) -> None:
    def rate(seconds: float | None = None, servers: int | None = None) -> CallRate:
        return rate_of(model, load_costs(), seconds=seconds, in_flight=None, servers=servers, fleet_limit=512)

    assert "guess" in rate().source
    assert rate(seconds=0.5).per_second(1) == rate(seconds=0.5).in_flight / 0.5
    assert isinstance(model.ledger, Ledger)
    model.ledger.add_all(entry(model.identity, number) for number in range(20))
    found = rate()
    assert (found.seconds, found.tokens_out) == (3.0, 50.0)
    assert "20 calls in the ledger" in found.source
    assert rate(servers=4).per_second(64) == rate(servers=4).per_second(8)


def entry(identity: str, number: int) -> LedgerEntry:
    return LedgerEntry(key=f"{number:064x}", model=identity, operation="chat", request=msgspec.Raw(b"{}"),
                       reply=msgspec.Raw(b"{}"), tokens_in=100, tokens_out=50, seconds=3.0)  # fmt: skip
