"""Economy inside an audit: fewer calls, rows that say so, and a check that finds out a model which sorts badly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answers_file import SourceAnswer
from hoofbeat.audit.audit_estimate import economy_range, estimate_audit
from hoofbeat.audit.audit_plan import read_shard
from hoofbeat.audit.economy.economy_audit import ROUNDS, CarriedLabels, Economy, economy_words
from hoofbeat.audit.economy.positions import Position, SortedAnswers
from hoofbeat.audit.pair_plan import PairVerdict
from hoofbeat.audit.shard_merge import merge_audits
from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.prompts import load_pack
from hoofbeat.records import Failure, Question
from hoofbeat.store.call_ledger import Ledger
from tests.audit.economy.support import InMemory, PlantedServer, planted, position_of, relation, said
from tests.models.support import a_model, ledger_in

PACK = load_pack("clinicians")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_plan(
    economy: Economy | None, positions: str, questions: int = 2, *, shard: str = "", probe: int = 0
) -> AuditPlan:
    names = [f"q{number}" for number in range(questions)]
    given = [
        SourceAnswer(
            question=name,
            source=f"s{place:03}",
            text="" if letter == "." else said(letter, f"s{place:03}"),
            absent=letter == ".",
        )
        for name in names
        for place, letter in enumerate(positions)
    ]
    return AuditPlan(
        questions=[Question(id=name, text=f"From what age, {name}?") for name in names],
        pack=PACK,
        given=given,
        given_sources=[f"s{place:03}" for place in range(len(positions))],
        settings={"line": "given"},
        economy=economy,
        seed=3,
        probe=probe,
        shard=read_shard(shard) if shard else None,
    )


def figures(audit: Audit) -> dict[str, Any]:
    return cast("dict[str, Any]", audit.artefact.manifest.metrics["economy"])


def test_planted_positions_take_few_calls_and_every_label_is_right(ledger: Ledger, tmp_path: Path) -> None:
    positions = "aaaaaabbbb.iii"
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        plan = a_plan(Economy(sorter=model, risk=0.2), positions)
        audit_sources(plan, model, model, tmp_path / "economy", inputs=[])
        made = len(server.seen)
        audit_sources(a_plan(None, positions), model, model, tmp_path / "full", inputs=[])
    carried, full = (Audit.open(tmp_path / name) for name in ("economy", "full"))
    labels = [{(item.question, item.a, item.b): item.label for item in audit.comparisons} for audit in (carried, full)]
    assert labels[0] == labels[1]
    assert (carried.mode, full.mode) == ("economy", "full")
    assert set(Counter(item.basis for item in carried.comparisons)) == {"judged", "group", "absent"}
    found = figures(carried)
    assert found["sort_calls"] == 2
    assert found["calls"] == made < found["calls_without"] == 2 * 78
    assert found["calls"] == 2 + 2 * 6 + found["checked"]
    assert (found["wrong"], found["other_label"], found["judged_whole"]) == (0, 0, 0)
    assert 0 < found["bound"] <= 0.2
    assert len(carried.economy_probes) == found["checked"]
    assert {each.line: len(each.sources) for each in carried.positions if each.question == "q0"} == {
        "a": 6,
        "b": 4,
        "i": 3,
    }
    manifest = carried.artefact.manifest
    assert (manifest.seeds, "positions" in manifest.prompts, "sort" in manifest.models) == ({"sample": 3}, True, True)
    assert (full.economy_probes, full.positions) == ([], [])


def test_a_cheap_model_may_sort_and_the_strong_one_judges(ledger: Ledger, tmp_path: Path) -> None:
    with PlantedServer() as cheap, PlantedServer() as strong:
        judge = a_model(strong.spec(), ledger)
        economy = Economy(sorter=a_model(cheap.spec(), ledger), risk=0.3)
        audit_sources(a_plan(economy, "aaaaabbbbb"), judge, judge, tmp_path / "audit", inputs=[])
        assert (len(cheap.calls("positions")), len(cheap.seen)) == (2, 2)
        assert not strong.calls("positions")


def test_several_judges_vote_on_the_pairs_that_are_judged(ledger: Ledger, tmp_path: Path) -> None:
    with PlantedServer() as one, PlantedServer() as two, PlantedServer() as three:
        judges: list[Model] = [a_model(server.spec(), ledger) for server in (one, two, three)]
        economy = Economy(sorter=judges[0], risk=0.3)
        audit_sources(a_plan(economy, "aaaaabbbbb"), judges[0], judges, tmp_path / "audit", inputs=[])
        made = sum(len(server.seen) for server in (one, two, three))
    audit = Audit.open(tmp_path / "audit")
    assert figures(audit)["calls"] == made
    assert figures(audit)["calls_without"] == 3 * 2 * 45
    assert {len(row.votes) for row in audit.comparisons if row.basis == "judged"} == {3}


@pytest.mark.parametrize("positions", ["aab", "ab.", "aaabbb"])
def test_few_sources_are_all_judged_and_the_words_say_so(ledger: Ledger, tmp_path: Path, positions: str) -> None:
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        plan = a_plan(Economy(sorter=model, risk=0.05), positions)
        told = economy_range(plan, 1)
        audit_sources(plan, model, model, tmp_path / "economy", inputs=[])
        assert not server.calls("positions")
        audit_sources(a_plan(None, positions), model, model, tmp_path / "full", inputs=[])
    assert ("nothing can be saved" in told) == (len(positions) < 4)
    assert "no calls could be saved, so all pairs were judged" in economy_words(
        figures(Audit.open(tmp_path / "economy")), 0.05
    )
    tables = [(tmp_path / name / "comparisons.parquet").read_bytes() for name in ("economy", "full")]
    assert tables[0] == tables[1]


def labels_of(found: CarriedLabels, questions: list[Question]) -> Iterator[tuple[str, str, str]]:
    """For each pair its label, and the positions of its sides."""
    for question in questions:
        plan = found.plan(question)
        known = found.known.get(question.id, {})
        for a, b, by in zip(plan.a.tolist(), plan.b.tolist(), plan.by.tolist(), strict=True):
            one, two = (position_of(plan.texts[place]) for place in (a, b))
            pair = plan.asked[by] if by >= 0 else None
            own = known[pair].label if pair in known else relation(one, two)  # what is not known will be judged
            yield PACK.consistent if by < 0 else own, one, two


@pytest.mark.parametrize("seed", range(5))
def test_a_model_that_takes_two_positions_for_one_is_found_out(seed: int) -> None:
    """`b` and `c` disagree, and are sorted into one position: their pairs and those with the others are wrong."""
    questions = [Question(id=f"q{number:02}", text="From what age?") for number in range(20)]
    claims = {
        each.id: planted("aaaaaabbbbccc" if place < 15 else "aaaaaabbbbiii") for place, each in enumerate(questions)
    }
    models = InMemory(lambda letter: "b" if letter == "c" else letter)
    found = CarriedLabels(questions, claims, PACK, risk=0.02, seed=seed)
    found.sort(models.sort)
    found.judge_positions(models.judge)
    found.check(400, models.judge)
    assert len(found.rounds) == ROUNDS or found.rounds[-1].bound <= 0.02
    labels = list(labels_of(found, questions))
    wrong = sum((label == "Consistent") != (one == two) for label, one, two in labels)
    assert wrong / len(labels) <= 0.02


def test_answers_that_are_sorted_wrongly_are_found_by_a_call_each_and_not_by_judging_all_pairs() -> None:
    """One answer in twelve is taken for another position: after the first sample every answer is confirmed."""
    questions = [Question(id=f"q{number:02}", text="From what age?") for number in range(12)]
    claims = {each.id: planted("aaaaaaaaaaaaabbbbbbbbbbbbbbbbi") for each in questions}

    class Slips(InMemory):
        def sort(self, asked: Sequence[tuple[Question, Sequence[str]]]) -> list[SortedAnswers]:
            found = []
            for _, texts in asked:
                groups: dict[str, list[int]] = {}
                for place, text in enumerate(texts):
                    right = position_of(text)
                    groups.setdefault(right if place % 12 else {"a": "b", "b": "a"}.get(right, "a"), []).append(place)
                found.append(SortedAnswers(tuple(Position(tuple(each)) for each in groups.values()), 2))
            return found

    models = Slips()
    found = CarriedLabels(questions, claims, PACK, risk=0.05, seed=1)
    found.sort(models.sort)
    found.judge_positions(models.judge)
    found.check(150, models.judge)
    assert [each.bound <= 0.05 for each in found.rounds] == [False, True]
    told = found.metrics(1)
    assert (told["judged_whole"], told["calls_without"]) == (0, 12 * 435)
    assert models.judged + 24 == told["calls"]
    assert told["calls"] < 12 * 435 / 4
    assert all(label == relation(one, two) for label, one, two in labels_of(found, questions))


@pytest.mark.parametrize(("positions", "calls"), [("abcdef", 15), ("aaaaaaaaaabbbbbbbbbb", 28)])
def test_a_position_whose_own_pair_disagrees_is_split(positions: str, calls: int) -> None:
    questions = [Question(id="q", text="From what age?")]
    models = InMemory(lambda _: "all")
    found = CarriedLabels(questions, {"q": planted(positions)}, PACK, risk=0.05, seed=0)
    found.sort(models.sort)
    found.judge_positions(models.judge)
    assert len(found.plan(questions[0]).asked) == models.judged <= calls
    assert all(label == relation(one, two) for label, one, two in labels_of(found, questions))


def test_a_pair_that_can_not_be_judged_speaks_for_no_other() -> None:
    class Failing(InMemory):
        def judge(self, items, title):  # type: ignore[no-untyped-def]
            failure = Failure(kind="timeout", message="60 s", attempts=3)
            said = super().judge(items, title)
            return [PairVerdict(failure=failure) if self.judged <= 4 and not n else each for n, each in enumerate(said)]

    questions = [Question(id="q", text="From what age?")]
    models = Failing()
    found = CarriedLabels(questions, {"q": planted("aaaabbbb")}, PACK, risk=0.05, seed=0)
    found.sort(models.sort)
    found.judge_positions(models.judge)
    plan = found.plan(questions[0])
    failed = [pair for pair, verdict in found.known["q"].items() if verdict.failure is not None]
    assert len(failed) == 1
    assert plan.by.tolist().count(plan.asked.index(failed[0])) == 1


def test_a_check_that_is_too_small_for_the_risk_is_refused(ledger: Ledger) -> None:
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        plain = Economy(sorter=model, risk=0.05)
        assert 100 < plain.sample(500) < plain.sample(10_000) < plain.sample(10**6) < 1100
        with pytest.raises(UsageError, match="20 pairs can't show that the risk"):
            Economy(sorter=model, risk=0.05, check=20)
        with pytest.raises(UsageError, match="is not between 0 and 1"):
            Economy(sorter=model, risk=0.0)


def test_the_estimate_counts_sorting_and_knows_what_the_ledger_has(ledger: Ledger, tmp_path: Path) -> None:
    positions = "aaaaaabbbbiii"
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        plan = a_plan(Economy(sorter=model, risk=0.2), positions)
        before = estimate_audit(plan, model, model)
        assert server.seen == []
        assert before.calls == 2 + 2 * 78
        assert "comparing all pairs takes 156 calls" in economy_range(plan, 1)
        audit_sources(plan, model, model, tmp_path / "audit", inputs=[])
        assert len(server.seen) < before.calls
        after = estimate_audit(plan, model, model)
    assert (after.calls, after.cached) == (0, len(server.seen))


def test_started_again_it_writes_the_same_bytes_without_a_call(ledger: Ledger, tmp_path: Path) -> None:
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        plan = a_plan(Economy(sorter=model, risk=0.2), "aaaaaabbbbiii", probe=4)
        for name in ("one", "two"):
            audit_sources(plan, model, model, tmp_path / name, inputs=[])
            made = len(server.seen)
        assert made == len(server.seen) == figures(Audit.open(tmp_path / "two"))["calls"] + 4
    for name in ("comparisons.parquet", "economy.jsonl", "positions.jsonl", "order.jsonl"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_merged_shards_keep_what_each_was_checked_for(ledger: Ledger, tmp_path: Path) -> None:
    with PlantedServer() as server:
        model = a_model(server.spec(), ledger)
        economy = Economy(sorter=model, risk=0.2)
        for shard in (1, 2):
            plan = a_plan(economy, "aaaaaabbbbiii", 4, shard=f"{shard}/2")
            audit_sources(plan, model, model, tmp_path / f"s{shard}", inputs=[])
    parts = [Audit.open(tmp_path / name) for name in ("s1", "s2")]
    merged = Audit(merge_audits([tmp_path / "s1", tmp_path / "s2"], tmp_path / "merged"))
    assert figures(merged)["bound"] == max(figures(each)["bound"] for each in parts)
    for name in ("calls", "calls_without", "carried", "checked", "sort_calls"):
        assert figures(merged)[name] == sum(figures(each)[name] for each in parts)
    assert len(merged.economy_probes) == sum(len(each.economy_probes) for each in parts)
    assert [each.question for each in merged.positions] == sorted(each.question for each in merged.positions)
    assert len(figures(merged)["rounds"]) == 2
