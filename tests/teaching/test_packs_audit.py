"""All four domain packs from documents to labels: their examples are audited, and everything planted comes out.

The endpoint knows every call that the plan may make and what was planted for it; a call it does not know is refused, so
the labels can only be right if each call was put together from the right question, sources, answers and pack.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from hoofbeat import teaching
from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answer_lines import NONE_GIVEN
from hoofbeat.audit.answers_by_source import absence_request, evidence_by_search, source_request
from hoofbeat.audit.findings.pair_arrays import each_matrix, label_counts
from hoofbeat.audit.findings.relations import RelationLabels, coverage
from hoofbeat.audit.pair_judge import comparison_request
from hoofbeat.audit.pair_plan import Claim, asked_order
from hoofbeat.audit.source_names import source_dates
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.models import ChatRequest, Model
from hoofbeat.prompts import Pack, load_pack, pack_names
from hoofbeat.records import Answer
from tests.answering.support import no_search
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

Messages = tuple[tuple[str, str], ...]


class PlantedServer(FaultServer):
    """Answers each call it was told of, and refuses every other."""

    def __init__(self) -> None:
        super().__init__()
        self.planted: dict[Messages, dict[str, str]] = {}

    def tell(self, request: ChatRequest, reply: dict[str, str]) -> None:
        """What to answer to a request."""
        self.planted[tuple((message.role, str(message.content)) for message in request.messages)] = reply

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body: dict[str, Any] = await request.json()
        asked = tuple((message["role"], message["content"]) for message in body["messages"])
        if asked not in self.planted:
            return web.json_response({"error": {"message": "this call was not planted"}}, status=400)
        message = {"role": "assistant", "content": json.dumps(self.planted[asked])}
        answer = {"model": body["model"], "choices": [{"finish_reason": "stop", "message": message}]}
        return await self._play(request, body, asked[-1][1], answer)


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> dict[str, AuditPlan]:
    """The plan of each pack's example, every source shown whole."""
    found = {}
    for name in pack_names():
        example = teaching.example(name)
        corpus = Corpus(import_corpus(example.files, tmp_path_factory.mktemp("packs") / name, workers=1))
        documents = list(corpus.documents())
        found[name] = AuditPlan(
            questions=example.asked(),
            documents=documents,
            pack=load_pack(name),
            find=evidence_by_search(no_search, documents, 10**7),
            settings={"line": "whole"},
        )
    return found


def tell_all(server: PlantedServer, example: teaching.TeachingAudit, plan: AuditPlan, model: Model) -> None:
    """Tell the server what each source says to each question, and how every two of them relate."""
    gold = {(each.question, each.source): each for each in example.gold}
    asked = {question.id: question for question in plan.questions}
    for planned in plan.each_planned(model):
        said = gold[planned.question.id, planned.condition]
        request = source_request(planned, plan.pack)
        if said.absent:
            server.tell(request, {"passage": "none", "quote": "", "answer": "", "statement": "", "strength": ""})
            continue
        names: list[str] = request.schema["properties"]["passage"]["enum"]  # type: ignore[index]
        evidence = said.evidence[0]
        section = evidence.heading if evidence.heading in names else names[0]
        server.tell(
            request,
            {"passage": section, "quote": evidence.quote[:290], "answer": said.answer, "statement": "", "strength": ""},
        )
        server.tell(absence_request(planned.question, said.answer, plan.pack), {"addressed": "yes"})
    for pair in example.relations:
        if pair.label == plan.pack.absent:
            continue
        claims = {}
        for side in (pair.a, pair.b):  # no strength was written, so none is given
            answer = Answer(question=pair.question, model="", condition="", source=side, strength=NONE_GIVEN,
                            text=gold[pair.question, side].answer)  # fmt: skip
            claim = Claim.of(answer, plan.pack, source_dates(plan.sources))
            claims[claim.text] = claim
        a, b = (claims[text].shown() for text in asked_order(*claims))
        verdict = {"reasoning": pair.why, "classification": pair.label, "topic": pair.topic or "",
                   "significance": pair.significance or "none"}  # fmt: skip
        server.tell(comparison_request(asked[pair.question], a, b, plan.pack), verdict)


def domain_of(pack: Pack) -> RelationLabels:
    return RelationLabels(
        order=tuple(label.name for label in pack.labels),
        absent=pack.absent,
        consistent=pack.consistent,
        diverging=tuple(label.name for label in pack.labels if label.diverges),
    )


@pytest.mark.parametrize("name", pack_names())
def test_every_pack_is_audited_and_every_planted_label_comes_out(
    plans: dict[str, AuditPlan], tmp_path: Path, name: str
) -> None:
    example, plan = teaching.example(name), plans[name]
    with PlantedServer() as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, context=2_000_000)
        tell_all(server, example, plan, model)
        audit_sources(plan, model, model, tmp_path / "audit", inputs=[])
    audit = Audit.open(tmp_path / "audit")
    planted = {(each.question, each.a, each.b): each for each in example.relations}
    rows = {(each.question, each.a, each.b): each for each in audit.comparisons}
    assert {each.failure for each in audit.answers} | {each.failure for each in audit.comparisons} == {None}
    assert {key: row.label for key, row in rows.items()} == {key: each.label for key, each in planted.items()}
    judged = {key: row for key, row in rows.items() if row.basis == "judged"}
    assert {key: (row.topic, row.significance) for key, row in judged.items()} == {
        key: (planted[key].topic, planted[key].significance) for key in judged
    }
    assert {(each.question, each.source): each.absent for each in audit.answers} == {
        (each.question, each.source): each.absent for each in example.gold
    }
    assert (audit.mode, audit.pack) == ("full", plan.pack)
    _check_findings(audit, example, plan.pack)


def _check_findings(audit: Audit, example: teaching.TeachingAudit, pack: Pack) -> None:
    """Counts, rates, matrices and coverage are those that follow from what is planted."""
    domain = domain_of(pack)
    labels = Counter(each.label for each in example.relations)
    found = label_counts(audit.frame(), audit.questions, domain)
    assert found.labels == {name: labels[name] for name in domain.order}
    spoken = len(example.relations) - labels[pack.absent]
    diverging = sum(labels[name] for name in domain.diverging)
    assert (found.judged, found.r_div.count, found.r_div.of) == (spoken, diverging, spoken)
    clashing = {each.question for each in example.relations if each.label in domain.diverging}
    assert found.any_div.count == len(clashing)
    known = {(each.question, each.a, each.b): each.label for each in example.relations}
    for matrix in each_matrix(audit.frame(), domain):
        for row, a in enumerate(matrix.sources):
            for column, b in enumerate(matrix.sources):
                expected = pack.consistent if a == b else known[matrix.question, min(a, b), max(a, b)]
                assert matrix.labels[row][column] == expected
    addressed = Counter(each.source for each in example.gold if not each.absent)
    assert {row.source: row.answered for row in coverage(audit.answers)} == {
        each.source: addressed[each.source] for each in example.gold
    }


def test_the_packs_words_reach_the_calls(plans: dict[str, AuditPlan], tmp_path: Path) -> None:
    with FaultServer() as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger, context=2_000_000)
        for plan in plans.values():
            planned = next(iter(plan.each_planned(model)))
            asking = source_request(planned, plan.pack).messages[0].content
            judging = comparison_request(plan.questions[0], "Yes.", "No.", plan.pack).messages[0].content
            assert f"You report to {plan.pack.reader} what one {plan.pack.source_word} says." in " ".join(
                asking.split()
            )
            assert all(f"- {label.name}: {label.definition}" in judging for label in plan.pack.labels)
            assert plan.pack.significance_meaning.strip() in judging
