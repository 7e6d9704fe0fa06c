"""Economy inside an audit: fewer calls, rows that say so, and a sample of the spread labels judged for real."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars
import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answers_file import SourceAnswer
from hoofbeat.audit.audit_plan import read_shard
from hoofbeat.audit.economy.economy_audit import Economy
from hoofbeat.audit.economy.economy_plan import EconomySettings
from hoofbeat.audit.pair_judge import PairJudge
from hoofbeat.audit.pair_plan import Claim
from hoofbeat.audit.pair_table import TableEnums, read_comparisons
from hoofbeat.audit.shard_merge import merge_audits
from hoofbeat.audit.source_audit import judge_all
from hoofbeat.prompts import load_pack
from hoofbeat.records import Comparison, Failure, Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer
from tests.models.support import a_model, ledger_in

WAIT = [
    "Wait four weeks before you take a bath at home.",
    "Before you take a bath at home, wait four weeks.",
    "You wait four weeks at home before a bath.",
    "A bath at home: wait four weeks before you take it.",
]
GO = ["Baths are fine from the first day on.", "From the first day on, baths are fine.", "Fine from day one on: baths."]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_plan(economy: Economy | None, *, shard: str = "", probe: int = 0) -> AuditPlan:
    said = {f"s{number}": text for number, text in enumerate([*WAIT, *GO])}
    given = [
        SourceAnswer(question=question, source=source, text=text, absent=False)
        for question in ("q1", "q2")
        for source, text in sorted(said.items())
    ]
    return AuditPlan(
        questions=[Question(id=name, text=f"May I have a bath, {name}?") for name in ("q1", "q2")],
        pack=load_pack("transplant"),
        given=given,
        given_sources=sorted(said),
        settings={"line": "given"},
        economy=economy,
        seed=3,
        probe=probe,
        shard=read_shard(shard) if shard else None,
    )


class ByClaims(ScriptedServer):
    """A judge that knows the two sets of claims."""

    def __init__(self) -> None:
        def said(label: str, words: str) -> Says:
            level = "medium" if label == "Divergent" else "none"
            reply = {"classification": label, "reasoning": "So it is.", "topic": "bath", "significance": level}
            return Says("classification", words, reply)

        pairs = [(a, b) for a in WAIT for b in GO]
        script = [said("Divergent", f"{one}\n</material>\n\n<material name=\"answer of source B\">\n{two}")
                  for a, b in pairs for one, two in ((a, b), (b, a))]  # fmt: skip
        super().__init__(*script, said("Consistent", ""))


def test_economy_makes_fewer_calls_and_says_so(ledger: Ledger, tmp_path: Path) -> None:
    economy = Economy(settings=EconomySettings(likeness=0.5), check=4)
    with ByClaims() as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(economy), model, model, tmp_path / "economy", inputs=[])
        made = len(server.seen)
        audit_sources(a_plan(None), model, model, tmp_path / "full", inputs=[])
        assert made < len(server.seen) == 2 * 21
    spread, full = (Audit.open(tmp_path / name) for name in ("economy", "full"))
    labels = [{(item.question, item.a, item.b): item.label for item in audit.comparisons} for audit in (spread, full)]
    assert labels[0] == labels[1]
    assert (spread.mode, full.mode) == ("economy", "full")
    assert set(Counter(item.basis for item in spread.comparisons)) == {"judged", "group"}
    assert len(spread.economy_probes) == 4
    assert all(probe.spread == probe.judged for probe in spread.economy_probes)
    found = spread.artefact.manifest.metrics["economy"]
    assert isinstance(found, dict)
    assert (found["checked"], found["agree"], found["spread"] + found["exact"]) == (4, 4, 42)
    assert spread.artefact.manifest.seeds == {"sample": 3}
    assert full.economy_probes == []


def test_judged_pairs_are_drawn_for_the_probe_of_the_order_and_keep_their_tokens(
    ledger: Ledger, tmp_path: Path
) -> None:
    economy = Economy(settings=EconomySettings(likeness=0.5), check=0)
    with ByClaims() as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(economy, probe=5), model, model, tmp_path / "economy", inputs=[])
        audit_sources(a_plan(None), model, model, tmp_path / "full", inputs=[])
    audit, full = Audit.open(tmp_path / "economy"), Audit.open(tmp_path / "full")
    judged = {(row.question, row.a, row.b): row for row in audit.comparisons if row.basis == "judged"}
    assert len(audit.order_probes) == 5 <= len(judged)
    for probe in audit.order_probes:
        assert probe.label == probe.swapped == judged[probe.question, probe.a, probe.b].label
    rows = {(row.question, row.a, row.b): row for row in full.comparisons}
    assert all(rows[key] == row for key, row in judged.items())


def test_what_full_judging_and_economy_both_judge_is_the_same_row(ledger: Ledger, tmp_path: Path) -> None:
    """Failed and silent sources, copies, outputs of which only the label can be read: the same in both modes."""
    pack = load_pack("transplant")
    failure = Failure(kind="timeout", message="60 s", attempts=3)
    said = [WAIT[0], GO[0], f"{WAIT[0]} ", "Ask the team of your hospital first.", GO[0]]
    claims = [Claim(f"s{number}", text) for number, text in enumerate(said)]
    claims += [Claim("t", failure=failure), Claim("u", absent=True), Claim("v", failure=failure)]
    question = Question(id="q", text="May I?")
    kinds = TableEnums.of(
        questions=["q"],
        sources=[claim.source for claim in claims],
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges=["j"],
    )
    script = [Says("classification", "Ask the team", "Label: Complementary")]  # others are answered with their tokens
    tables: list[list[Comparison]] = []
    tallies = []
    with ScriptedServer(*script) as server:
        judge = PairJudge(a_model(server.spec(), ledger), pack)
        kinds = replace(kinds, judges=(judge.name,))
        for name, economy in (("full", None), ("economy", Economy())):
            table = tmp_path / f"{name}.parquet"
            tallies.append(judge_all(judge, [question], {"q": claims}, kinds, table, economy=economy))
            tables.append(list(read_comparisons(table)))
        frames = [polars.read_parquet(tmp_path / f"{name}.parquet") for name in ("full", "economy")]
    assert tables[0] == tables[1]
    assert frames[0].equals(frames[1])
    assert {row.basis for row in tables[0] if row.failure is not None} == {""}
    assert [tally.scanned for tally in tallies] == [2, 2]
    assert [tally.metrics() for tally in tallies[:1]] == [tally.metrics() for tally in tallies[1:]]
    assert frames[0]["tokens_in"].drop_nulls().len() == 1


@pytest.mark.parametrize("check", [3, 200])
def test_merged_shards_check_what_one_audit_checks(ledger: Ledger, tmp_path: Path, check: int) -> None:
    economy = Economy(settings=EconomySettings(likeness=0.5), check=check)
    with ByClaims() as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(economy, probe=2), model, model, tmp_path / "whole", inputs=[])
        for shard in (1, 2):
            plan = a_plan(economy, shard=f"{shard}/2", probe=2)
            audit_sources(plan, model, model, tmp_path / f"s{shard}", inputs=[])
    merged = merge_audits([tmp_path / "s1", tmp_path / "s2"], tmp_path / "merged")
    whole = Audit.open(tmp_path / "whole")
    assert len(whole.economy_probes) >= 3
    for name in ("comparisons.parquet", "economy.jsonl", "order.jsonl", "answers.jsonl"):
        assert (merged.path / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name
    assert merged.manifest.metrics == whole.artefact.manifest.metrics
    assert merged.manifest.counts == whole.artefact.manifest.counts
