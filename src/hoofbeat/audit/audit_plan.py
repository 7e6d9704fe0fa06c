"""The plan of an audit: what is asked of whom, how sources are shown, which part is done, and what it may cost."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct, field

from hoofbeat.audit.answers.answers_by_source import (
    PlannedSourceAnswer,
    absence_request,
    iter_source_plans,
    source_request,
)
from hoofbeat.audit.answers.answers_file import SourceAnswer
from hoofbeat.audit.answers.source_evidence import FindEvidence
from hoofbeat.audit.audit_folder import AuditSource
from hoofbeat.audit.economy.economy_audit import Economy
from hoofbeat.audit.pair_judge import comparison_request
from hoofbeat.errors import UsageError
from hoofbeat.facets import source_is_asked
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Document, Question
from hoofbeat.store.tables import content_sha256
from hoofbeat.window import BYTES_PER_TOKEN, size


class Shard(Struct, frozen=True, kw_only=True):
    """One of several parts of an audit: every question belongs to one of them, by its place among the questions."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def has(self, place: int) -> bool:
        """Whether the question at this place, counted from 0, is in the shard."""
        return place % self.of == self.number - 1


def read_shard(text: str) -> Shard:
    """`2/8` as the second of eight."""
    number, slash, of = text.partition("/")
    if not slash or not number.strip().isdigit() or not of.strip().isdigit() or not 1 <= int(number) <= int(of):
        raise UsageError(f"a shard is a number like 2/8, not {text!r}", fix="count from 1/8 to 8/8")
    return Shard(number=int(number), of=int(of))


class AuditPlan(Struct, frozen=True, kw_only=True):
    """What is audited. Answers come from `documents` through `find`, or are `given`, with the `sources` that gave them.

    `probe` pairs are judged again with their answers exchanged, drawn with `seed`; `economy` judges between groups.
    """

    questions: Sequence[Question]
    pack: Pack
    settings: dict[str, object]
    documents: Sequence[Document] = ()
    find: FindEvidence | None = None
    max_tokens: int | None = None
    given: Sequence[SourceAnswer] | None = None
    given_sources: Sequence[str] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    economy: Economy | None = None
    probe: int = 0
    seed: int = 0
    shard: Shard | None = None

    def __post_init__(self) -> None:
        for kind, names in (
            ("source", [item.id for item in self.documents]),
            ("question", [item.id for item in self.questions]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise UsageError(f"the {kind} {twice[0]} is there more than once", fix=f"give each {kind} once")
        for question in self.questions:
            if not question.full_text.strip():
                raise UsageError(f"the question {question.id} has no text", fix="write it, or leave the question out")

    @property
    def own_questions(self) -> list[Question]:
        """The questions of this shard, or all."""
        return [
            question for place, question in enumerate(self.questions) if self.shard is None or self.shard.has(place)
        ]

    @property
    def sources(self) -> list[AuditSource]:
        """All sources, whether they have a say in this shard or not."""
        if self.given is not None:
            return [AuditSource(id=name, title=name, facets={}) for name in self.given_sources]
        return [AuditSource(id=item.id, title=item.title, facets=item.facets) for item in self.documents]

    @property
    def size(self) -> int:
        """How many answers are planned in this shard."""
        return sum(self._sources_of(self.own_questions).values())

    @property
    def uncompared(self) -> list[Question]:
        """The questions, of all shards, that are put to fewer than two sources: nothing can be compared on them."""
        count = self._sources_of(self.questions)
        return [question for question in self.questions if count[question.id] < 2]

    def _sources_of(self, questions: Sequence[Question]) -> Counter[str]:
        """How many sources each of the questions is put to."""
        if self.given is not None:
            names = {question.id for question in questions}
            return Counter(answer.question for answer in self.given if answer.question in names)
        return Counter(
            {
                each.id: sum(source_is_asked(each, document, self.pack.group_facet) for document in self.documents)
                for each in questions
            }
        )

    def each_planned(self, model: Model) -> Iterator[PlannedSourceAnswer]:
        """Every (question, source) of this shard with what will be shown, in order."""
        assert self.find is not None, "a plan without given answers finds evidence"
        return iter_source_plans(
            self.own_questions,
            self.documents,
            self.pack,
            self.find,
            window=model.context,
            max_tokens=self.max_tokens,
            max_question=max((size(question.full_text) for question in self.questions), default=0),
        )

    def fingerprint(self, model: Model, judge: Model) -> str:
        """What all shards of one audit share, as a short hash: questions, sources, answers given, models, settings."""
        content = {
            "questions": self.questions,
            "sources": [(item.id, hashlib.sha256(item.text.encode()).hexdigest()) for item in self.documents],
            "given": self.given,
            "pack": self.pack.fingerprint,
            "models": [model.identity, judge.identity],
            "prompts": [load_prompt(name).label for name in ("answer-source", "absence", "compare")],
            "settings": self.settings,
            "max_tokens": self.max_tokens,
            "economy": self.economy.describe() if self.economy else None,
            "probe": [self.probe, self.seed if self.probe or self.economy else 0],
        }
        return content_sha256(content)[:16]

    def estimate(self, model: Model, judge: Model) -> Estimate:
        """What the audit would cost at most: every answer is checked for absence, no pair is absent or the same."""
        longest = "x" * (BYTES_PER_TOKEN * (self.max_tokens or load_prompt("answer-source").max_tokens))
        total = Estimate()
        texts: dict[str, int] = {}
        if self.given is not None:
            by_id = {question.id: question for question in self.own_questions}
            mine = [answer for answer in self.given if answer.question in by_id]
            open_ones = [answer for answer in mine if answer.absent is None]
            total = total + model.estimate([absence_request(by_id[each.question], each.text) for each in open_ones])
            for answer in mine:
                texts[answer.question] = max(texts.get(answer.question, 0), len(answer.text))
        else:
            for planned in self.each_planned(model):
                worst = absence_request(planned.question, f"{longest} {planned.condition}")
                request = source_request(planned, self.pack, self.max_tokens)
                total = total + model.estimate([request]) + model.estimate([worst])
        own = self.own_questions
        count = self._sources_of(own)
        for question in own:
            text = "x" * texts.get(question.id, len(longest))
            pairs = count[question.id] * (count[question.id] - 1) // 2
            total = total + _times(judge, comparison_request(question, text, f"{text} ", self.pack), pairs)
        swapped = comparison_request(Question(id="", text=longest), longest, longest, self.pack)
        return total + _times(judge, swapped, self.probe)


def _times(model: Model, request: ChatRequest, count: int) -> Estimate:
    """What so many different calls of this size would cost."""
    one = model.estimate([request])
    return Estimate(
        calls=count * one.calls,
        tokens_in=count * one.tokens_in,
        max_tokens_out=count * one.max_tokens_out,
        max_money=None if one.max_money is None else count * one.max_money,
    )
