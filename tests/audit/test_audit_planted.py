"""The whole audit on the teaching handbooks with what is planted in them replayed: everything must come out exactly."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import pytest

from hoofbeat.audit import Audit, audit_sources
from hoofbeat.audit.findings.pair_arrays import label_counts, question_matrix
from hoofbeat.audit.synthesis.audit_export import question_record
from hoofbeat.store.call_ledger import Ledger
from tests.audit.planted import GOLD, RELATIONS, handbooks, planted_plan, replay
from tests.models.fault_server import FaultServer
from tests.models.support import a_model


@pytest.fixture(scope="module")
def audit(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """An audit for which no call had to be made."""
    folder = tmp_path_factory.mktemp("planted")
    plan = planted_plan(handbooks(folder))
    with FaultServer() as server, Ledger(folder / "ledger.db") as ledger:
        model = a_model(server.spec(), ledger)
        replay(plan, model, ledger)
        artefact = audit_sources(plan, model, model, folder / "audit", inputs=[])
        assert server.seen == []
    return Audit.open(artefact.path)


def test_every_absence_is_as_planted(audit: Audit) -> None:
    found = {(answer.question, answer.source): answer.absent for answer in audit.answers}
    assert found == {key: gold.absent for key, gold in GOLD.items()}
    silent = [answer for answer in audit.answers if answer.absent]
    ways = Counter(len(answer.calls) for answer in silent)
    assert set(ways) == {1, 2}, "silence was seen at once, and by a call"
    assert audit.artefact.manifest.metrics["answers"] == {
        "addressed": sum(not gold.absent for gold in GOLD.values()), "silent": len(silent),
    }  # fmt: skip


def test_every_label_topic_and_significance_is_as_planted(audit: Audit) -> None:
    found = {(item.question, item.a, item.b): item for item in audit.comparisons}
    assert {key: item.label for key, item in found.items()} == {key: item.label for key, item in RELATIONS.items()}
    for key, planted in RELATIONS.items():
        item = found[key]
        if item.basis == "judged":
            assert (item.topic, item.significance) == (planted.topic, planted.significance), key
            assert item.reasoning.removeprefix(f"(A is {item.b}, B is {item.a}.) ") == planted.why
    bases = Counter(item.basis for item in audit.comparisons)
    absent = sum(GOLD[q, a].absent or GOLD[q, b].absent for q, a, b in RELATIONS)
    assert bases["absent"] == absent
    assert bases.total() == len(RELATIONS)
    assert audit.artefact.manifest.metrics["basis"] == dict(sorted(bases.items()))
    assert audit.artefact.manifest.metrics["labels"] == dict(
        sorted(Counter(item.label for item in RELATIONS.values()).items())
    )


def test_every_rate_is_that_of_the_plan(audit: Audit) -> None:
    labels = Counter(item.label for item in RELATIONS.values())
    pairs, judged = labels.total(), labels.total() - labels["Absent"]
    diverging = labels["Divergent"] + labels["Contradictory"]
    asked = [question.id for question in audit.questions]
    any_div = {item.question for item in RELATIONS.values() if item.label in ("Divergent", "Contradictory")}
    found = label_counts(audit.frame(), audit.questions)
    assert found.labels == {name: labels[name] for name in found.labels}
    for rate, count, of in (
        (found.r_abs, labels["Absent"], pairs),
        (found.r_div, diverging, judged),
        (found.r_con, labels["Consistent"], judged),
        (found.any_div, len(any_div), len(asked)),
    ):
        assert (rate.count, rate.of) == (count, of)
        assert rate.value == pytest.approx(float(Fraction(count, of)), abs=1e-12)


def test_every_matrix_is_as_planted(audit: Audit) -> None:
    order = [label.name for label in audit.pack.labels]
    frames = {rows["question"][0]: rows for rows in audit.frame().collect().partition_by("question")}
    for question in audit.questions:
        sources = sorted({name for q, name in GOLD if q == question.id})
        expected = [
            ["Consistent" if a == b else RELATIONS[question.id, min(a, b), max(a, b)].label for b in sources]
            for a in sources
        ]
        record = question_record(question, frames[question.id], audit.pack)
        assert record["sources"] == sources
        matrix = record["matrix"]
        assert isinstance(matrix, list)
        assert [[order[cell] for cell in row] for row in matrix] == expected
        assert [list(row) for row in question_matrix(audit.frame(), question.id).labels] == expected


def test_every_quote_is_found_under_the_section_that_is_cited(audit: Audit) -> None:
    spoken = [answer for answer in audit.answers if not answer.absent]
    for answer in spoken:
        gold = GOLD[answer.question, answer.source]
        assert answer.citations[0] == gold.evidence[0].heading
        assert all(each.startswith("it may differ from the source") for each in answer.warnings)
    cited = audit.artefact.manifest.metrics["citations"]
    assert isinstance(cited, dict)
    alarms = cited.pop("statement differs")
    assert cited.pop("asked again: kept", 0) <= alarms <= 0.04 * len(spoken)  # of answers that are all faithful
    assert cited == {"answers": len(spoken), "citing": len(spoken), "quoted": len(spoken)}


def test_how_evidence_was_found_is_kept_with_every_answer(audit: Audit) -> None:
    long = [answer for answer in audit.answers if answer.source == "hb-brook-kidney"]
    short = [answer for answer in audit.answers if answer.source != "hb-brook-kidney"]
    assert {answer.trace[0].what for answer in short} == {"route: whole"}
    assert {answer.trace[0].what for answer in long} == {"route: retrieved"}
    names = {step.what for answer in long for step in answer.trace if step.stage == "hero"}
    assert {"searched", "bm25", "sections", "titles", "fused", "evidence"} <= names
    assert audit.artefact.manifest.metrics["routes"] == {"retrieved": len(long), "whole": len(short)}
