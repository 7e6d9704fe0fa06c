"""The plan of an audit: what is asked of whom, how sources are shown, and which part is done."""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from hoofbeat.audit.answers_by_source import (
    FindEvidence,
    PlannedSourceAnswer,
    hero_line,
    is_hero,
    iter_source_plans,
    through_hero,
    through_line,
)
from hoofbeat.audit.answers_file import SourceAnswer, parse_answer_fields, read_source_answers
from hoofbeat.audit.economy.economy_audit import Economy
from hoofbeat.audit.economy.positions import PROMPT as POSITIONS
from hoofbeat.audit.judge_votes import Judges, judges_of
from hoofbeat.audit.source_groups import BY_DOCUMENT, SourceGroup, group_documents, through_groups
from hoofbeat.audit.source_names import AuditSource
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_value, facet_values, source_is_asked
from hoofbeat.models import Model
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.prompts.packs import DEFAULT_PACK
from hoofbeat.records import Document, Question
from hoofbeat.retrieval import IndexSet, Retriever, parse
from hoofbeat.retrieval.hero.hero_signals import NO_EXPANSION, load_expansions
from hoofbeat.store.tables import content_sha256
from hoofbeat.text import one_line, some_of, whole_number
from hoofbeat.window import size


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
    number, of = (whole_number(part.strip()) for part in text.partition("/")[::2])
    if number is None or of is None or not 1 <= number <= of:
        raise UsageError(f"a shard is a number like 2/8, not {text!r}", fix="count from 1/8 to 8/8")
    return Shard(number=number, of=of)


class AuditPlan(Struct, frozen=True, kw_only=True):
    """What is audited. Answers come from `documents` through `find`, or are `given`, with the `sources` that gave them.

    Where a source has several documents, `groups` has them, and `documents` has them joined under the source's name.
    `probe` pairs are judged again with their answers exchanged, drawn with `seed`; `economy` judges between positions.
    With `canary`, comparisons carry a check code (`judging.canary`).
    """

    questions: Sequence[Question]
    pack: Pack
    settings: dict[str, object]
    documents: Sequence[Document] = ()
    groups: Sequence[SourceGroup] = ()
    find: FindEvidence | None = None
    max_tokens: int | None = None
    given: Sequence[SourceAnswer] | None = None
    given_sources: Sequence[str] = ()
    left_out: dict[str, int] = field(default_factory=dict)
    economy: Economy | None = None
    probe: int = 0
    canary: bool = False
    seed: int = 0
    shard: Shard | None = None

    def __post_init__(self) -> None:
        for kind, names in (
            ("source", [item.id for item in self.documents]),
            ("question", [item.id for item in self.questions]),
        ):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise UsageError(f"the {kind} {twice[0]} appears more than once", fix=f"give each {kind} once")
        for question in self.questions:
            if not question.full_text.strip():
                raise UsageError(
                    f"the question {question.id} has no text", fix="add the text, or leave out the question"
                )

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
        if self.groups:
            return [group.source(self.pack.source_facet) for group in self.groups]
        return [AuditSource.of(item) for item in self.documents]

    @property
    def size(self) -> int:
        """How many answers are planned in this shard."""
        return self.sources_asked.total()

    @property
    def sources_asked(self) -> Counter[str]:
        """How many sources each question of this shard is put to."""
        return self._sources_of(self.own_questions)

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
        assert self.find is not None, "without given answers, a plan needs a way to find evidence"
        return iter_source_plans(
            self.own_questions,
            self.documents,
            self.pack,
            self.find,
            window=model.context,
            max_tokens=self.max_tokens,
            max_question=max((size(question.full_text) for question in self.questions), default=0),
        )

    def fingerprint(self, model: Model, judge: Judges) -> str:
        """What all shards of one audit share, as a short hash: questions, sources, answers given, models, settings."""
        content = {
            "questions": self.questions,
            "sources": [(item.id, hashlib.sha256(item.text.encode()).hexdigest()) for item in self.documents],
            "given": self.given,
            "pack": self.pack.fingerprint,
            "models": [model.identity, *(each.identity for each in judges_of(judge))],
            "prompts": [
                self.pack.prompt(name).label for name in ("answer-source", "answer-source-again", "absence", "compare")
            ],
            "settings": self.settings,
            "max_tokens": self.max_tokens,
            "economy": [self.economy.describe(), self.pack.prompt(POSITIONS).label] if self.economy else None,
            "probe": [self.probe, self.seed if self.probe or self.economy else 0],
        }
        if self.canary:
            content["canary"] = True
        if self.given is None and model.context is not None:
            content["window"] = model.context  # another window shows other parts of the sources
        return content_sha256(content)[:16]


DEFAULT_LINE = "hero"
_PASSAGES = 5
WHOLE_UP_TO = 80_000
"""A source of at most this many characters is shown whole."""

_MAX_NAMES = 8


def plan_audit(
    corpus: Corpus,
    questions: Sequence[Question],
    index: Callable[[Corpus], IndexSet],
    *,
    sources: Sequence[str] = (),
    by: str = BY_DOCUMENT,
    pack: str = DEFAULT_PACK,
    line: str = DEFAULT_LINE,
    passages: int | None = None,
    whole_up_to: int | None = None,
    max_tokens: int | None = None,
    words: Path | None = None,
    model: Callable[[str], Model] | None = None,
) -> AuditPlan:
    """Plan an audit of a corpus, or of some of its sources; `index` makes its indexes.

    A source is a document, or with `by` all documents that share the value of that facet (`institution`).
    `passages` and `whole_up_to` change what the line shows of a source. HERO expands questions with the words of the
    pack and, where a table of `words` is given, with those of the table.
    """
    domain = load_pack(pack)
    documents = _chosen(corpus, sources, by)
    groups = [] if by == BY_DOCUMENT else group_documents(documents, by, domain.group_facet)
    if len(groups or documents) < 2:
        raise _too_few(by)
    indexes = index(corpus)
    if is_hero(parse(line)):
        hero = hero_line(line, whole_up_to=whole_up_to, passages=passages, words=_words(pack, domain, words))
        retriever = Retriever(indexes, hero, model=model)
        find = through_hero(retriever)
        settings: dict[str, object] = {"line": retriever.line}
    elif words is not None:
        raise UsageError("only HERO expands questions with --words", fix="leave out --words, or retrieve with hero")
    else:
        shown = _PASSAGES if passages is None else passages
        whole = WHOLE_UP_TO if whole_up_to is None else whole_up_to
        retriever = Retriever(indexes, line, model=model)
        find = through_line(retriever, documents, shown, whole)
        settings = {"line": retriever.line, "passages": shown, "whole_up_to": whole}
    if words is not None:
        settings["words"] = load_expansions(str(words)).fingerprint
    if groups:
        find = through_groups(find, {group.id: group for group in groups}, domain.group_facet)
        documents = [group.joined(domain.source_facet) for group in groups]
        settings["by"] = by
    return AuditPlan(
        questions=questions,
        documents=documents,
        groups=groups,
        pack=domain,
        find=find,
        max_tokens=max_tokens,
        settings={**settings, "max_tokens": max_tokens},
    )


def _chosen(corpus: Corpus, sources: Sequence[str], by: str) -> list[Document]:
    """The documents of these sources, or all; where a source has several, its name or ids of documents are given."""
    if not sources:
        return list(corpus.documents())
    named: dict[str, list[Document]] = {}
    if by != BY_DOCUMENT:
        for each in corpus.documents():
            named.setdefault(one_line(facet_value(each.facets, by)), []).append(each)
    known = set(corpus.ids())
    for name in sources:
        if named and name not in named and name not in known:
            close = difflib.get_close_matches(name.casefold(), (each.casefold() for each in named), n=3, cutoff=0.5)
            near = [each for each in named if each.casefold() in close] or sorted(filter(None, named))
            raise UsageError(
                f"no {by} and no document of this corpus is called {name!r}",
                fix=f"use one of: {some_of([repr(each) for each in near], _MAX_NAMES)}",
            )
    chosen = [document for name in sources for document in named.get(name) or [corpus.get(name)]]
    return list({document.id: document for document in chosen}.values())


def _words(spec: str, pack: Pack, table: Path | None) -> str:
    """The expansion words of an audit as HERO's option names them: those of the pack, and of a user's table."""
    own = [spec] if pack.expansions else []
    if spec == DEFAULT_PACK and table is None:
        return ""  # what HERO does without being told
    return "+".join([*own, *([str(table)] if table is not None else [])]) or NO_EXPANSION


def plan_audit_of_answers(path: Path, fields: str, pack: str, sources: Sequence[str] = ()) -> AuditPlan:
    """Plan an audit of answers that are given in a file, or of those of some of its sources."""
    if len(set(sources)) == 1:
        raise _too_few()
    named = parse_answer_fields(fields)
    given = read_source_answers(path, named, sources)
    chosen = {"sources": sorted(set(sources))} if sources else {}
    return AuditPlan(
        questions=given.questions,
        pack=load_pack(pack),
        given=given.answers,
        given_sources=given.sources,
        left_out=given.left_out,
        settings={"line": "given", "fields": {name: "+".join(each) for name, each in named.items()}, **chosen},
    )


def _too_few(by: str = BY_DOCUMENT) -> UsageError:
    one = "" if by == BY_DOCUMENT else f", but all documents here have the same {by}"
    fix = "name more of them with --source" + (f", or use --by {BY_DOCUMENT}" if one else "")
    return UsageError(f"an audit compares sources, so it needs at least two{one}", fix=fix)


def narrowed_plan(
    plan: AuditPlan,
    *,
    ids: Sequence[str] = (),
    limit: int | None = None,
    shard: str | None = None,
    probe_order: int = 0,
    canary: bool = False,
    economy: Economy | None = None,
    seed: int = 0,
) -> AuditPlan:
    """The plan for some questions or one shard (`1/4`), with how pairs are judged: probes, and by positions to save."""
    narrowed = replace(
        plan,
        questions=chosen_questions(plan.questions, ids, limit),
        shard=read_shard(shard) if shard else None,
        probe=probe_order,
        canary=canary,
        seed=seed,
        economy=economy,
    )
    if narrowed.shard is not None and not narrowed.own_questions:
        raise UsageError(
            f"the shard {narrowed.shard} has no questions: there are only {len(narrowed.questions)} in total",
            fix=f"make at most {len(narrowed.questions)} shards",
        )
    return narrowed


_PACK_WORDS = ("transplant", "graft", "anti-rejection", "tacrolimus")


def pack_note(pack: Pack, questions: Sequence[Question], sources: Sequence[AuditSource]) -> str:
    """Which domain pack is used because none was named, and a warning where nothing here is about its domain."""
    asked = [_is_of_domain(question.full_text) for question in questions]
    titles = (text for each in sources for text in (each.title, *facet_values(each.facets, pack.source_facet)))
    here = any(map(_is_of_domain, titles)) or 2 * sum(asked) > len(asked)
    told = f"domain pack: {pack.name} (the default), written for {pack.reader}; choose another with --pack"
    if here:
        return told
    return (
        f"warning: {told}. The sources' titles and most questions are not about transplants: models will be "
        f"told that the reader is {pack.reader}. For guidelines use --pack guidelines or --pack clinicians"
    )


def _is_of_domain(text: str) -> bool:
    return any(word in text.casefold() for word in _PACK_WORDS)


def uncompared_note(plan: AuditPlan) -> str:
    """Which questions nothing can be compared on, and why (empty: none); a plan that has no others is refused."""
    alone = plan.uncompared
    if not alone:
        return ""
    groups = _named({name for question in alone for name in facet_values(question.facets, "group") or ["general"]})
    facet = plan.pack.group_facet
    there = _named({name for source in plan.sources for name in facet_values(source.facets, facet) if name})
    why = f"they are for {groups}; the sources' facet {facet} is {there or 'not given'}"
    if len(alone) == len(plan.questions):
        raise UsageError(
            f"no question applies to two sources, so there is nothing to compare ({why})",
            fix="name more sources, or correct the facets",
        )
    return (
        f"note: {len(alone):,} of {len(plan.questions):,} questions can't be compared, because they apply to fewer "
        f"than two sources: {_named([question.id for question in alone])} ({why})"
    )


def _named(names: Collection[str]) -> str:
    """Some of the names, and how many more there are; those that come in no order are sorted."""
    return some_of(sorted(names) if isinstance(names, set) else list(names), _MAX_NAMES)


def chosen_questions(questions: Sequence[Question], ids: Sequence[str], limit: int | None) -> list[Question]:
    """The questions of these ids (all where none is named), at most the first `limit`."""
    known = [question.id for question in questions]
    unknown = sorted(set(ids) - set(known))
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
        some = f"the closest are {', '.join(close)}" if close else f"the first are {', '.join(known[:3])}"
        raise UsageError(f"there is no question {', '.join(unknown)}", fix=f"check --question; {some}")
    return [question for question in questions if not ids or question.id in ids][:limit]
