"""Planning an audit of the documents of a corpus, or of answers in a file."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.audit.answers.answers_file import parse_answer_fields, read_source_answers
from hoofbeat.audit.answers.source_evidence import hero_line, is_hero, through_hero, through_line
from hoofbeat.audit.audit_plan import AuditPlan, read_shard
from hoofbeat.audit.economy.economy_audit import Economy
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.models import Model, load_encoder
from hoofbeat.prompts import load_pack
from hoofbeat.records import Document, Question
from hoofbeat.retrieval import IndexSet, Retriever, parse
from hoofbeat.text import some_of

DEFAULT_LINE = "hero"
_PASSAGES = 5
_WHOLE_UP_TO = 80_000
_MAX_NAMES = 8


def plan_audit(
    corpus: Corpus,
    questions: Sequence[Question],
    index: Callable[[Corpus], IndexSet],
    *,
    sources: Sequence[str] = (),
    pack: str = "transplant",
    line: str = DEFAULT_LINE,
    passages: int | None = None,
    whole_up_to: int | None = None,
    max_tokens: int | None = None,
    model: Callable[[str], Model] | None = None,
) -> AuditPlan:
    """Plan an audit of a corpus, or of some of its documents; `index` makes its indexes.

    `passages` and `whole_up_to` change what the line shows of a source.
    """
    documents: list[Document] = (
        [corpus.get(name) for name in dict.fromkeys(sources)] if sources else list(corpus.documents())
    )
    if len({document.id for document in documents}) < 2:
        raise _too_few()
    indexes = index(corpus)
    if is_hero(parse(line)):
        retriever = Retriever(indexes, hero_line(line, whole_up_to=whole_up_to, passages=passages), model=model)
        find = through_hero(retriever)
        settings: dict[str, object] = {"line": retriever.line}
    else:
        shown = _PASSAGES if passages is None else passages
        whole = _WHOLE_UP_TO if whole_up_to is None else whole_up_to
        retriever = Retriever(indexes, line, model=model)
        find = through_line(retriever, documents, shown, whole)
        settings = {"line": retriever.line, "passages": shown, "whole_up_to": whole}
    return AuditPlan(
        questions=questions,
        documents=documents,
        pack=load_pack(pack),
        find=find,
        max_tokens=max_tokens,
        settings={**settings, "max_tokens": max_tokens},
    )


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


def _too_few() -> UsageError:
    return UsageError("an audit compares sources, so it needs at least two", fix="name more of them with --source")


def narrowed_plan(
    plan: AuditPlan,
    *,
    ids: Sequence[str] = (),
    limit: int | None = None,
    shard: str | None = None,
    probe_order: int = 0,
    economy: bool = False,
    economy_check: int = 200,
    seed: int = 0,
) -> AuditPlan:
    """The plan for some questions or one shard (`1/4`), with how pairs are judged: probes, and by groups to save."""
    narrowed = replace(
        plan,
        questions=chosen_questions(plan.questions, ids, limit),
        shard=read_shard(shard) if shard else None,
        probe=probe_order,
        seed=seed,
        economy=_economy(economy_check) if economy else None,
    )
    if narrowed.shard is not None and not narrowed.own_questions:
        raise UsageError(
            f"the shard {narrowed.shard} has no question: there are {len(narrowed.questions)} in all",
            fix=f"make at most {len(narrowed.questions)} shards",
        )
    return narrowed


def uncompared_note(plan: AuditPlan) -> str:
    """Which questions nothing can be compared on, and why (empty: none); a plan that has no others is refused."""
    alone = plan.uncompared
    if not alone:
        return ""
    groups = _named({name for question in alone for name in facet_values(question.facets, "group") or ["general"]})
    facet = plan.pack.group_facet
    there = _named({name for source in plan.sources for name in facet_values(source.facets, facet) if name})
    why = f"their facet group is {groups}, the facet {facet} of the sources is {there or 'not given'}"
    if len(alone) == len(plan.questions):
        raise UsageError(
            f"no question is put to two sources, so there is nothing to compare ({why})",
            fix="name more sources, or correct the facets",
        )
    return (
        f"note: {len(alone):,} of {len(plan.questions):,} questions can't be compared, because fewer than two sources "
        f"are asked: {_named([question.id for question in alone])} ({why})"
    )


def _named(names: Collection[str]) -> str:
    """Some of the names, and how many more there are; those that come in no order are sorted."""
    return some_of(sorted(names) if isinstance(names, set) else list(names), _MAX_NAMES)


def _economy(check: int) -> Economy:
    encoder = load_encoder()
    return Economy(encode=encoder.encode, encoder=encoder.identity, check=check)


def chosen_questions(questions: Sequence[Question], ids: Sequence[str], limit: int | None) -> list[Question]:
    """The questions of these ids (all where none is named), at most the first `limit`."""
    known = [question.id for question in questions]
    unknown = sorted(set(ids) - set(known))
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, n=3, cutoff=0.5)
        some = f"the closest are {', '.join(close)}" if close else f"the first are {', '.join(known[:3])}"
        raise UsageError(f"there is no question {', '.join(unknown)}", fix=f"check --question; {some}")
    return [question for question in questions if not ids or question.id in ids][:limit]
