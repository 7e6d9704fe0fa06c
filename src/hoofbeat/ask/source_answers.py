"""What each source by itself answers to a case, and whether the sources agree.

Sources are documents, or groups of documents that share a facet's value (an institution with two handbooks is one
source). Those that the search finds first are asked, each from its own passages only, and every two answers are
compared as an audit does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering import PlannedAnswer
from hoofbeat.answering.answer_calls import fit
from hoofbeat.ask.ask_records import BY_DOCUMENT, AskRequest, SourceAgreement, SourceReply
from hoofbeat.ask.search_corpora import SearchableCorpus
from hoofbeat.ask.similar_reports import ASKED
from hoofbeat.audit.answers_by_source import (
    PlannedSourceAnswer,
    answer_from_sources,
    is_hero,
    iter_source_plans,
    through_hero,
    through_line,
)
from hoofbeat.audit.pair_judge import compare_answers
from hoofbeat.facets import facet_values
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_pack, load_prompt
from hoofbeat.records import Document, Question
from hoofbeat.retrieval import Retriever

_DEPTH = 50
_PASSAGES = 5
_WHOLE_UP_TO = 80_000
_READER = "a physician"


class _Source(Struct, frozen=True, kw_only=True):
    """One source: its name, the corpus it lies in, and the documents of it that were found."""

    name: str
    shelf: SearchableCorpus
    documents: tuple[Document, ...]


def ask_sources(
    ask: AskRequest,
    shelves: Sequence[SearchableCorpus],
    model: Model,
    *,
    line_model: Callable[[str], Model] | None = None,
    progress: Progress = SILENT,
) -> SourceAgreement:
    """Put the case to each of the sources found first, and compare what they answer."""
    pack = replace(load_pack(ask.pack), reader=_READER)
    found = _sources(ask, shelves, line_model, progress)
    chosen = found[: ask.max_sources]
    empty = SourceAgreement(
        by=ask.by,
        labels=tuple(label.name for label in pack.labels),
        diverging=tuple(label.name for label in pack.labels if label.diverges),
        sources=(),
        left_out=len(found) - len(chosen),
    )
    if len(chosen) < 2:
        only = f"only {chosen[0].name} was found" if chosen else "no source was found"
        return replace(empty, why_not=f"{only}, so there is nothing to compare")
    question = Question(id=ASKED, text=ask.text)
    planned = _plans(ask, question, chosen, model, pack, line_model, progress)
    answers = answer_from_sources(model, planned, pack, progress=progress)
    said = [
        SourceReply(name=source.name, documents=tuple(each.id for each in source.documents), answer=answer)
        for source, answer in zip(chosen, answers, strict=True)
    ]
    compared = compare_answers(model, [question], answers, pack, progress=progress)
    return replace(empty, sources=tuple(said), comparisons=tuple(compared))


def _sources(
    ask: AskRequest, shelves: Sequence[SearchableCorpus], line_model: Callable[[str], Model] | None, progress: Progress
) -> list[_Source]:
    """The sources in the order their best documents are found; those of several corpora take turns."""
    ranked: list[tuple[int, int, SearchableCorpus, Document]] = []
    for number, shelf in enumerate(shelves):
        with shelf.searching(ask.line, model=line_model, progress=progress) as retriever:
            hits = retriever.search([(ASKED, ask.text)], _DEPTH)[0]
        ranked += [(hit.rank, number, shelf, shelf.corpus.get(hit.document)) for hit in hits]
    groups: dict[tuple[int, str], _Source] = {}
    for _, number, shelf, document in sorted(ranked, key=lambda each: each[:2]):
        names = [document.id] if ask.by == BY_DOCUMENT else facet_values(document.facets, ask.by)
        for name in names:
            before = groups.get((number, name), _Source(name=name, shelf=shelf, documents=()))
            groups[number, name] = replace(before, documents=(*before.documents, document))
    return _told_apart(list(groups.values()))


def _told_apart(sources: Sequence[_Source]) -> list[_Source]:
    """Sources of two corpora that have the same name, told apart by the corpus."""
    count: dict[str, int] = {}
    for source in sources:
        count[source.name] = count.get(source.name, 0) + 1
    return [
        replace(source, name=f"{source.name} ({source.shelf.name})") if count[source.name] > 1 else source
        for source in sources
    ]


def _plans(
    ask: AskRequest,
    question: Question,
    sources: Sequence[_Source],
    model: Model,
    pack: Pack,
    line_model: Callable[[str], Model] | None,
    progress: Progress,
) -> list[PlannedAnswer]:
    """What is shown of each source: one document as an audit shows it, several by their best passages together."""
    planned: list[PlannedAnswer] = []
    for source in sources:
        with source.shelf.searching(ask.line, model=line_model, progress=progress) as retriever:
            if len(source.documents) == 1:
                plan = _of_document(retriever, question, source.documents[0], model.context, pack)
            else:
                plan = _of_group(retriever, question, source, model.context)
        planned.append(replace(plan, condition=source.name))
    return planned


def _of_document(
    retriever: Retriever, question: Question, document: Document, window: int | None, pack: Pack
) -> PlannedSourceAnswer:
    find = through_hero(retriever) if is_hero(retriever.tree) else None
    find = find or through_line(retriever, [document], _PASSAGES, _WHOLE_UP_TO)
    return next(iter(iter_source_plans([question], [document], pack, find, window=window)))


def _of_group(retriever: Retriever, question: Question, source: _Source, window: int | None) -> PlannedSourceAnswer:
    names = [document.id for document in source.documents]
    titles = {document.id: document.title or document.id for document in source.documents}
    searched = retriever.run([(ASKED, question.full_text)], _PASSAGES, names, by_document=False)
    passages = [retriever.indexes.passage(hit.passage) for hit in searched.hits[0]]
    named = [replace(each, heading=f"{titles[each.document]}: {each.heading}".rstrip(": ")) for each in passages]
    kept, dropped = fit(named, question.full_text, window, load_prompt("answer-source").max_tokens)
    return PlannedSourceAnswer(
        question=question,
        condition=source.name,
        passages=kept,
        dropped=dropped,
        failure=searched.failures.get(ASKED),
    )
