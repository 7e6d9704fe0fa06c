"""Audits that grow, are cut in parts, and are put together again: what is asked again, and what stays the same."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answer_changes import word_changes
from hoofbeat.audit.answers_by_source import evidence_by_search
from hoofbeat.audit.answers_file import SourceAnswer
from hoofbeat.audit.audit_estimate import estimate_audit
from hoofbeat.audit.audit_plan import Shard, read_shard
from hoofbeat.audit.pair_plan import asked_order
from hoofbeat.audit.shard_merge import merge_audits
from hoofbeat.errors import BatchPending, HoofbeatError, InputError, UsageError
from hoofbeat.prompts import load_pack
from hoofbeat.records import Document, Question
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer, a_document, search_in
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

NAMES = ("alder", "brook", "cairn", "dune", "elm")
QUESTIONS = [Question(id=f"q{number}", text=f"May I have bath number {number}?") for number in (3, 1, 4, 2, 0)]
ADDRESSED = [
    *(
        Says(
            "passage",
            f"At {name} no bath",
            {"passage": "Bathing", "quote": "", "answer": f"{name} says wait.", "statement": "", "strength": ""},
        )
        for name in NAMES
    ),
    Says("addressed", "", {"addressed": "yes"}),
]


def a_source(name: str, weeks: int = 3) -> Document:
    return a_document(name, ("Bathing", f"At {name} no bath for {weeks} weeks."))


SOURCES = [a_source(name) for name in NAMES]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def a_plan(documents: Sequence[Document], *, shard: str = "", probe: int = 0, seed: int = 0) -> AuditPlan:
    return AuditPlan(
        questions=QUESTIONS,
        documents=documents,
        pack=load_pack("transplant"),
        find=evidence_by_search(search_in(documents), documents, 80_000),
        settings={"line": "bm25"},
        shard=read_shard(shard) if shard else None,
        probe=probe,
        seed=seed,
    )


def asked(server: ScriptedServer) -> list[int]:
    return [len(server.calls(field)) for field in ("passage", "addressed", "classification")]


def test_a_batch_carries_the_comparisons_and_their_probe_in_one_round(ledger: Ledger, tmp_path: Path) -> None:
    said = {"reasoning": "r", "classification": "Consistent", "topic": "t", "significance": "none"}
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(said)}}
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)

        def run_audit() -> None:
            judge = a_model(f"batch:{tmp_path / 'posted'}#m", ledger)
            audit_sources(a_plan(SOURCES, probe=4), model, judge, tmp_path / "audit", inputs=[])

        with pytest.raises(BatchPending) as caught:
            run_audit()
        assert (caught.value.written, caught.value.files) == (5 * 10 + 4, ("requests-001.jsonl",))
        lines = (tmp_path / "posted" / "requests-001.jsonl").read_text().splitlines()
        response = {"status_code": 200, "body": {"choices": [choice]}}
        answers = [{"custom_id": json.loads(line)["custom_id"], "response": response} for line in lines]
        assert len({answer["custom_id"] for answer in answers}) == 54
        (tmp_path / "posted" / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
        run_audit()
    audit = Audit.open(tmp_path / "audit")
    assert len(audit.order_probes) == 4


# What is asked again


@pytest.mark.parametrize("place", range(4))
def test_a_source_that_is_added_costs_its_own_answers_and_pairs(ledger: Ledger, tmp_path: Path, place: int) -> None:
    before = [source for number, source in enumerate(SOURCES[:4]) if number != place]
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(before), model, model, tmp_path / "before", inputs=[])
        known = server.asked.copy()
        server.seen.clear()
        audit_sources(a_plan(SOURCES[:4]), model, model, tmp_path / "after", inputs=[])
        assert asked(server) == [5, 5, 5 * 3]
        assert not set(known) & {seen.text for seen in server.seen}
        assert all(SOURCES[place].id in seen.text for seen in server.seen)


@pytest.mark.parametrize("probe", [0, 6])
def test_the_estimate_for_a_new_edition_is_what_it_then_costs(ledger: Ledger, tmp_path: Path, probe: int) -> None:
    """The ledger leads the estimate: only the new edition's answers, checks and pairs are announced."""
    changed = [*SOURCES[:2], a_document("cairn", ("Bathing", "At Cairn baths are fine.")), *SOURCES[3:]]
    script = [
        Says(
            "passage",
            "At Cairn baths",
            {"passage": "Bathing", "quote": "", "answer": "Go ahead, says Cairn.", "statement": "", "strength": ""},
        ),
        *ADDRESSED,
    ]
    with ScriptedServer(*script) as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(SOURCES, probe=probe), model, model, tmp_path / "before", inputs=[])
        known = len(server.seen)
        again = estimate_audit(a_plan(SOURCES, probe=probe), model, model)
        assert (again.calls, again.cached) == (0, known)
        estimate = estimate_audit(a_plan(changed, probe=probe), model, model)
        assert len(server.seen) == known
        assert estimate.calls == 5 + 5 + 5 * 4 + probe
        server.seen.clear()
        audit_sources(a_plan(changed, probe=probe), model, model, tmp_path / "after", inputs=[])
        assert estimate.calls - probe <= len(server.seen) <= estimate.calls
        assert sum(seen.body["max_tokens"] for seen in server.seen) <= estimate.max_tokens_out
        assert estimate_audit(a_plan(changed, probe=probe), model, model).calls == 0


def test_an_estimate_for_answers_that_are_given_knows_the_ledger(ledger: Ledger, tmp_path: Path) -> None:
    given = [SourceAnswer(question="q0", source=name, text=f"{name} says wait.") for name in NAMES[:3]]
    plan = AuditPlan(
        questions=QUESTIONS[-1:], pack=load_pack("transplant"), settings={"line": "given"}, given=given,
        given_sources=NAMES[:3],
    )  # fmt: skip
    with ScriptedServer(*ADDRESSED) as server:
        model = a_model(server.spec(), ledger)
        assert estimate_audit(plan, model, model).calls == 3 + 3
        audit_sources(plan, model, model, tmp_path / "audit", inputs=[])
        more = replace(plan, given=[*given, SourceAnswer(question="q0", source="dune", text="Dune says go.")],
                       given_sources=NAMES[:4])  # fmt: skip
        assert (estimate_audit(plan, model, model).calls, estimate_audit(more, model, model).calls) == (0, 1 + 3)


def test_a_source_that_changes_costs_its_own_answers_and_pairs(ledger: Ledger, tmp_path: Path) -> None:
    changed = [*SOURCES[:2], a_document("cairn", ("Bathing", "At Cairn baths are fine.")), *SOURCES[3:]]
    script = [
        Says(
            "passage",
            "At Cairn baths",
            {"passage": "Bathing", "quote": "", "answer": "Go ahead, says Cairn.", "statement": "", "strength": ""},
        ),
        *ADDRESSED,
    ]
    with ScriptedServer(*script) as server:
        model = a_model(server.spec(), ledger)
        audit_sources(a_plan(SOURCES), model, model, tmp_path / "before", inputs=[])
        server.seen.clear()
        audit_sources(a_plan(changed), model, model, tmp_path / "after", inputs=[])
    assert asked(server) == [5, 5, 5 * 4]
    found = word_changes(*(Audit.open(tmp_path / name) for name in ("before", "after")))
    assert (found.texts, found.unknown_texts) == (("cairn",), ())
    assert {(each.source, each.what) for each in found.answers} == {("cairn", ("answer",))}
    assert found.answers[0].after.answer == "Go ahead, says Cairn."
    one, two = (Audit.open(tmp_path / name).comparisons for name in ("before", "after"))
    kept = [(a, b) for a, b in zip(one, two, strict=True) if "cairn" not in (a.a, a.b)]
    assert kept
    assert all(a == b for a, b in kept)


@pytest.mark.parametrize("copied", NAMES[1:4])
@pytest.mark.parametrize("name", ["aaa", "bbb", "zzz"])
def test_a_source_that_repeats_another_asks_nothing_new_and_changes_nothing(
    ledger: Ledger, tmp_path: Path, copied: str, name: str
) -> None:
    """Whether the new source comes before or after the one it repeats, and before or after the others."""
    before = given_plan({source: f"{source} says wait." for source in NAMES[1:4]})
    after = given_plan({source: f"{source} says wait." for source in NAMES[1:4]} | {name: f"{copied} says wait."})
    with FaultServer() as server:
        run(tmp_path / "before", before, ledger, server)
        server.seen.clear()
        run(tmp_path / "after", after, ledger, server)
        assert server.seen == []
    one, two = (
        {(row.question, row.a, row.b): row for row in Audit.open(tmp_path / folder).comparisons}
        for folder in ("before", "after")
    )
    assert len(one) == 3 * len(QUESTIONS)
    for key, row in one.items():
        assert replace(two[key], basis="judged") == row
    for row in two.values():
        if name in (row.a, row.b) and copied in (row.a, row.b):
            assert row.basis == "same"
        elif name in (row.a, row.b):
            other = row.b if row.a == name else row.a
            a, b = sorted((copied, other))
            twin = one[row.question, a, b]
            assert (row.label, row.topic, row.significance, row.calls) == (
                twin.label, twin.topic, twin.significance, twin.calls
            )  # fmt: skip
            assert without_sides(row.reasoning) == without_sides(twin.reasoning)
            same_way = (row.a == name) == (twin.a == copied)
            assert (row.reasoning.startswith("(A is") == twin.reasoning.startswith("(A is")) == same_way


def given_plan(said: dict[str, str]) -> AuditPlan:
    return AuditPlan(
        questions=QUESTIONS,
        pack=load_pack("transplant"),
        given=[
            SourceAnswer(question=question.id, source=source, text=text, absent=False)
            for question in QUESTIONS
            for source, text in sorted(said.items())
        ],
        given_sources=sorted(said),
        settings={"line": "given"},
    )


def without_sides(reasoning: str) -> str:
    return re.sub(r"^\(A is \w+, B is \w+\.\) ", "", reasoning)


# Shards


@pytest.mark.parametrize(
    ("text", "right"), [("1/1", True), ("3/8", True), ("0/8", False), ("9/8", False), ("x", False)]
)
def test_a_shard_is_one_of_so_many(text: str, right: bool) -> None:
    if right:
        assert str(read_shard(text)) == text
    else:
        with pytest.raises(UsageError):
            read_shard(text)


def test_every_question_is_in_one_shard() -> None:
    plans = [a_plan(SOURCES, shard=f"{number}/3") for number in (1, 2, 3)]
    found = [question.id for plan in plans for question in plan.own_questions]
    assert Counter(found) == Counter(question.id for question in QUESTIONS)
    assert plans[0].own_questions == [QUESTIONS[0], QUESTIONS[3]]


def run(folder: Path, plan: AuditPlan, ledger: Ledger, server: FaultServer, *, name: str = "stub") -> Path:
    model = a_model(f"{server.spec().partition('#')[0]}#{name}", ledger)
    audit_sources(plan, model, model, folder, inputs=[])
    return folder


@pytest.mark.parametrize("of", [1, 2, 5, 7])
def test_merged_shards_are_the_audit_itself(ledger: Ledger, tmp_path: Path, of: int) -> None:
    with ScriptedServer(*ADDRESSED) as server:
        whole = run(tmp_path / "whole", a_plan(SOURCES, probe=4), ledger, server)
        shards = [
            run(tmp_path / f"s{number}", a_plan(SOURCES, shard=f"{number}/{of}", probe=4), ledger, server)
            for number in range(of, 0, -1)
        ]
    merged = merge_audits(shards, tmp_path / "merged")
    for name in ("answers.jsonl", "comparisons.parquet", "order.jsonl", "questions.jsonl", "sources.jsonl"):
        assert (whole / name).read_bytes() == (merged.path / name).read_bytes(), name
    one, two = Audit.open(whole).artefact.manifest, merged.manifest
    assert (two.counts, two.metrics) == (one.counts, one.metrics)
    probed = sum(len(Audit.open(shard).order_probes) for shard in shards)
    assert two.cost.calls - one.cost.calls == probed - 4  # each shard draws as many, and the merged audit fewer of them
    assert {**two.settings, "merged": 0} == {**one.settings, "merged": 0}
    assert merged.verify() == []


def test_what_does_not_fit_together_is_not_merged(ledger: Ledger, tmp_path: Path) -> None:
    with FaultServer() as server:
        one, two = (run(tmp_path / f"s{n}", a_plan(SOURCES, shard=f"{n}/2"), ledger, server) for n in (1, 2))
        three = run(tmp_path / "s3", a_plan(SOURCES, shard="2/3"), ledger, server)
        other = run(tmp_path / "other", a_plan(SOURCES[:4], shard="2/2"), ledger, server)
        probed = run(tmp_path / "probed", a_plan(SOURCES, shard="2/2", probe=3, seed=4), ledger, server)
        judged = run(tmp_path / "judged", a_plan(SOURCES, shard="2/2"), ledger, server, name="another")
        plain = run(tmp_path / "plain", a_plan(SOURCES), ledger, server)
    wrong: list[tuple[list[Path], type[HoofbeatError], str]] = [
        ([one], InputError, "shards are missing: 2/2"),
        ([one, two, two], InputError, "the shard 2/2 appears more than once"),
        ([one, other], InputError, "and s1 belong to different audits: they differ in the chosen questions or sources"),
        ([one, probed], InputError, "they differ in probe_order, seeds\n"),
        ([one, judged], InputError, "they differ in models\n"),
        ([one, three], InputError, "this is shard 2/3, but s1 is one of 2"),
        ([plain], UsageError, "not a shard"),
        ([], UsageError, "nothing to merge"),
    ]
    for paths, kind, words in wrong:
        with pytest.raises(kind, match=words):
            merge_audits(paths, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()
    before = {path.name: path.read_bytes() for path in one.iterdir()}
    with pytest.raises(UsageError, match="would overwrite one of its shards"):
        merge_audits([one, two], one / ".." / one.name)
    assert {path.name: path.read_bytes() for path in one.iterdir()} == before


def test_a_seed_that_nothing_is_drawn_with_parts_no_shards(ledger: Ledger, tmp_path: Path) -> None:
    with FaultServer() as server:
        shards = [run(tmp_path / f"s{n}", a_plan(SOURCES, shard=f"{n}/2", seed=n), ledger, server) for n in (1, 2)]
    assert len(Audit(merge_audits(shards, tmp_path / "merged")).questions) == len(QUESTIONS)


# Probes of the order


def test_a_probe_judges_a_seeded_sample_with_the_answers_exchanged(ledger: Ledger, tmp_path: Path) -> None:
    with ScriptedServer(*ADDRESSED) as server:
        for name, seed in (("one", 0), ("two", 0), ("three", 1)):
            run(tmp_path / name, a_plan(SOURCES, probe=6, seed=seed), ledger, server)
    audits = [Audit.open(tmp_path / name) for name in ("one", "two", "three")]
    one, two, three = (audit.order_probes for audit in audits)
    assert one == two != three
    assert len(one) == len(three) == 6
    assert len(server.calls("classification")) == 50 + len({(p.question, p.a, p.b) for p in [*one, *three]})
    labels = {(item.question, item.a, item.b): item.label for item in audits[0].comparisons}
    texts = {seen.text for seen in server.calls("classification")}
    for probe in one:
        assert probe.label == labels[probe.question, probe.a, probe.b]
        first, second = asked_order(f"{probe.a} says wait.", f"{probe.b} says wait.")
        assert any(0 < text.find(second) < text.find(first) and text_of(probe.question) in text for text in texts)
    assert audits[0].artefact.manifest.seeds == {"sample": 0}


def text_of(id: str) -> str:
    return next(question.text for question in QUESTIONS if question.id == id)


def test_a_shard_counts_places_from_one() -> None:
    assert [Shard(number=2, of=3).has(place) for place in range(6)] == [False, True, False, False, True, False]
