"""The teaching handbooks with all that a model would say already in the ledger: planted answers and relations."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import msgspec

from hoofbeat import teaching
from hoofbeat.audit import AuditPlan
from hoofbeat.audit.answers_by_source import PlannedSourceAnswer, absence_request, again_request, source_request
from hoofbeat.audit.audit_plan import plan_audit
from hoofbeat.audit.pair_judge import comparison_request
from hoofbeat.audit.pair_plan import asked_order
from hoofbeat.audit.source_citations import check_citations, section_names
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.models import ChatRequest, Model
from hoofbeat.models.requests import Reply, request_key
from hoofbeat.progress import SILENT
from hoofbeat.recipes import teaching_patient_questions
from hoofbeat.records import Usage
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.ledger_base import LedgerEntry

__all__ = ["handbooks", "planted_plan", "replay"]

GOLD = {(item.question, item.source): item for item in teaching.patient_gold()}
RELATIONS = {(item.question, item.a, item.b): item for item in teaching.relations()}


def handbooks(folder: Path) -> Corpus:
    """The eight handbooks as a corpus."""
    files = [path for path in teaching.handbook_files() if path.suffix == ".md"]
    rendered = [path.parents[1] / f"{path.stem}.md" for path in teaching.handbook_files() if path.suffix == ".pdf"]
    return Corpus(import_corpus([*files, *rendered], folder / "handbooks", workers=1))


def planted_plan(corpus: Corpus) -> AuditPlan:
    """Every question to every handbook it is for, through HERO without an encoder."""
    questions = teaching_patient_questions()
    return plan_audit(corpus, questions, lambda each: index_corpus(each, SILENT), line="hero[dense=0]")


def replay(plan: AuditPlan, model: Model, ledger: Ledger) -> None:
    """Put what the handbooks were written to say, and how they relate, into the ledger as this model's replies.

    Silent handbooks are silent in two ways: no section is chosen, or the answer is empty talk that the check sees.
    """

    def entries() -> Iterable[LedgerEntry]:
        questions = {question.id: question for question in plan.questions}
        for number, item in enumerate(plan.each_planned(model)):
            yield from _answer(item, plan, model, by_call=bool(number % 2))
        for (name, a, b), relation in RELATIONS.items():
            one, two = GOLD[name, a], GOLD[name, b]
            if one.absent or two.absent:
                continue
            said = {
                "reasoning": relation.why,
                "classification": relation.label,
                "topic": relation.topic or "",
                "significance": relation.significance or "none",
            }
            texts = asked_order(one.answer, two.answer)
            yield _entry(model, comparison_request(questions[name], *texts, plan.pack), said)

    ledger.add_all(list(entries()))


def _answer(item: PlannedSourceAnswer, plan: AuditPlan, model: Model, *, by_call: bool) -> Iterable[LedgerEntry]:
    gold = GOLD[item.question.id, item.condition]
    request = source_request(item, plan.pack, plan.max_tokens)
    names = {heading: name for name, heading in section_names(item.passages).items()}
    if gold.absent and not by_call:
        yield _entry(model, request, {"passage": "none", "quote": "", "answer": "", "statement": "", "strength": ""})
        return
    if gold.absent:
        empty = f"The handbook of {item.condition} has other topics."
        yield _entry(
            model,
            request,
            {"passage": next(iter(names.values())), "quote": "", "answer": empty, "statement": "", "strength": ""},
        )
        yield _entry(model, absence_request(item.question, empty, plan.pack), {"addressed": "no"})
        return
    (evidence, *_) = gold.evidence
    said = {
        "passage": names[evidence.heading],
        "quote": evidence.quote,
        "answer": gold.answer,
        "statement": "",
        "strength": "",
    }
    yield _entry(model, request, said)
    checked = check_citations(said["passage"], said["quote"], said["answer"], item.passages, item.question.full_text)
    if checked.objections:
        written = msgspec.json.encode(said).decode()
        yield _entry(model, again_request(request, written, checked.objections, plan.pack), said)
    yield _entry(model, absence_request(item.question, gold.answer, plan.pack), {"addressed": "yes"})


def _entry(model: Model, request: ChatRequest, said: dict[str, str]) -> LedgerEntry:
    key, body = request_key(model.identity, "chat", request.content())
    reply = Reply(text=json.dumps(said), usage=Usage(tokens_in=100, tokens_out=20))
    return LedgerEntry(
        key=key,
        model=model.identity,
        operation="chat",
        prompt=request.prompt,
        request=msgspec.Raw(body),
        reply=msgspec.Raw(msgspec.json.encode(reply)),
    )
