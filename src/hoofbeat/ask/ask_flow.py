"""An ask from start to end: search, answer, compare; what is there already is told as it comes.

The model answers only from the passages that are shown beside it. A check asks whether a cited passage was shown,
shares a word with the sentence, contains the quotes, and has the same comparators, denials, directions and numbers.
Sources are documents, or groups of documents that share a facet's value (an institution with two handbooks is one
source). Those that the search finds first are asked, each from its own passages only, and every two answers are
compared as an audit does it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.answering import PlannedAnswer
from hoofbeat.answering.answer_calls import fit
from hoofbeat.ask.ask_records import (
    AUTO,
    BY_DOCUMENT,
    MAX_CHARACTERS,
    AnswerPart,
    AskRequest,
    AskResult,
    CitedAnswer,
    Doubt,
    SimilarReport,
    SourceAgreement,
    SourceReply,
)
from hoofbeat.ask.similar_reports import ASKED, SearchableCorpus, find_reports, searched_together
from hoofbeat.audit.answers_by_source import (
    WINDOW,
    PlannedSourceAnswer,
    answer_from_sources,
    is_hero,
    iter_source_plans,
    through_hero,
    through_line,
)
from hoofbeat.audit.pair_judge import compare_answers
from hoofbeat.audit.source_citations import NO_SECTION, check_citations
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_values
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_pack, load_prompt
from hoofbeat.records import Answer, Document, Failure, Passage, Question
from hoofbeat.retrieval import ENGLISH, Retriever, parse
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.retrieval.line import cost_bound
from hoofbeat.window import nothing_fits

NOT_SHOWN = "no passage has this number"
NO_WORD = "the cited passage shares no word with this sentence"
UNCITED = "the answer cites no passage"
_RANGE = r"\d{1,4}(?:\s*[-–]\s*\d{1,4})?"
_CITING = re.compile(
    rf"[\[(]\s*(?:passages?|p\.)?\s*({_RANGE}(?:\s*(?:,|;|and|&)\s*(?:passages?\s*)?{_RANGE})*)\s*[\])]", re.I
)
_BRACKETS = re.compile(r"\[|\(\s*(?:passage|p\.)", re.I)
_ONE = re.compile(r"(\d{1,4})(?:\s*[-–]\s*(\d{1,4}))?")
_MAX_WIDTH = 20
_QUOTES = {
    "quote not found": "this quote is not in the passages",
    "quote changed": "this quote changes the words of a passage",
    "quote cut": "this quote leaves out a word that reverses its meaning",
    "statement differs": "this sentence may contradict the passages",
    "quote too short": "this quote is too short to find its place",
    "section not shown": "this section was not shown to the model",
}


def check_parts(text: str, shown: Mapping[int, Passage]) -> tuple[AnswerPart, ...]:
    """An answer as parts: its words, and each citation with what is wrong with it.

    Citations are numbers in square brackets, alone or listed or as a range, or `(passage 2)` in round ones.
    """
    sentences = sentence_spans(text)
    parts: list[AnswerPart] = []
    at = 0
    for match in _CITING.finditer(text):
        if not _BRACKETS.match(match.group()):
            continue
        parts += [AnswerPart(text=text[at : match.start()])] if match.start() > at else []
        at = match.end()
        words = _sentence(text, sentences, match.start())
        parts += [
            AnswerPart(text=f"[{number}]", cites=number, doubt=_doubt(number, words, shown))
            for number in _each(match[1])
        ]
    return (*parts, AnswerPart(text=text[at:])) if at < len(text) else tuple(parts)


def _each(listed: str) -> list[int]:
    """The numbers of a list of numbers and ranges; of a range that can't be meant only its ends."""
    found: list[int] = []
    for match in _ONE.finditer(listed):
        first, last = int(match[1]), int(match[2] or match[1])
        found += range(first, last + 1) if 0 <= last - first <= _MAX_WIDTH else [first, last]
    return list(dict.fromkeys(found))


def _sentence(text: str, sentences: Sequence[tuple[int, int]], at: int) -> str:
    """What a citation belongs to: the sentence it stands in; where it begins one, the sentence before it as well."""
    before = [span for span in sentences if span[0] <= at]
    words = text[slice(*before[-1])] if before else text
    if len(before) > 1 and not ENGLISH.terms(_CITING.sub(" ", text[before[-1][0] : at])):
        words = f"{text[slice(*before[-2])]} {words}"
    return _CITING.sub(" ", words)


def _doubt(number: int, words: str, shown: Mapping[int, Passage]) -> str:
    passage = shown.get(number)
    if passage is None:
        return NOT_SHOWN
    terms = set(ENGLISH.terms(f"{passage.heading} {passage.text}"))
    return NO_WORD if terms.isdisjoint(ENGLISH.terms(words)) else ""


def check_answer(text: str, parts: Sequence[AnswerPart], shown: Sequence[Passage], case: str = "") -> tuple[Doubt, ...]:
    """All that does not stand up in an answer: citations without support, quotes that are not there, none at all.

    An answer may use the numbers of the case that it is about.
    """
    doubts = [Doubt(what=part.doubt, text=part.text) for part in parts if part.doubt]
    if not any(part.cites for part in parts):
        doubts.append(Doubt(what=UNCITED))
    checked = check_citations(NO_SECTION, "", text, shown, case)
    doubts += [Doubt(what=_QUOTES[step.what], text=step.text) for step in checked.steps if step.what in _QUOTES]
    return tuple(dict.fromkeys(doubts))


PROMPT = "ask-case"
TOO_LONG = "the case and one report together are too long for this model; shorten the case and ask again"


def answer_case(
    ask: AskRequest, reports: Sequence[SimilarReport], model: Model, *, progress: Progress = SILENT
) -> CitedAnswer:
    """Ask the model, and check what it cites; a call that fails leaves an answer with its failure."""
    numbered = {
        each.number: replace(each.passage, heading=f"{report.title}: {each.passage.heading}".rstrip(": "))
        for report in reports
        for each in report.passages
    }
    question = Question(id=ASKED, text=ask.text)
    passages = list(numbered.values())
    kept, dropped = fit(passages, question.full_text, model.context, load_prompt(PROMPT).max_tokens)
    blank = Answer(
        question=question.id,
        model=model.spec,
        condition=f"{ask.line} @{len(passages)}",
        evidence=tuple(kept),
        dropped=tuple(dropped),
    )
    if nothing_fits(passages, kept, model.context) is not None:
        failure = Failure(kind="context-overflow", message=TOO_LONG, attempts=0)
        answer = replace(blank, failure=failure)
    else:
        answer = _answered(blank, ask.text, kept, model, progress)
    shown = dict(list(numbered.items())[: len(kept)])
    if answer.failure is not None:
        return CitedAnswer(answer=answer, shown=tuple(shown))
    parts = check_parts(answer.text, shown)
    return CitedAnswer(
        answer=answer,
        parts=parts,
        shown=tuple(shown),
        checks=check_citations(NO_SECTION, "", answer.text, kept, ask.text).steps,
        doubts=check_answer(answer.text, parts, kept, ask.text),
    )


def _answered(blank: Answer, case: str, passages: Sequence[Passage], model: Model, progress: Progress) -> Answer:
    """The model's statements as one text, each with the numbers of its passages behind it."""
    request = load_prompt(PROMPT).request({"case": case, "passages": passages})

    async def work(_: None) -> Answer:
        outcome = await model.chat_json(request)
        if isinstance(outcome, Failure):
            return replace(blank, failure=outcome)
        text = " ".join(filter(None, map(_statement, outcome.value["statements"])))
        used = outcome.reply.usage
        if not text:
            return replace(blank, failure=Failure(kind="unreadable", message="the model stated nothing", attempts=1))
        return replace(blank, text=text, calls=outcome.calls, usage=used)

    return model.run([None], work, title="answering", progress=progress)[0]


def _statement(said: Mapping[str, Any]) -> str:
    """One statement with its numbers before its full stop, but for those that its own words have already."""
    text = str(said["text"]).strip()
    there = {part.cites for part in check_parts(text, {})}
    numbers = [number for number in dict.fromkeys(said["passages"]) if number > 0 and number not in there]
    cited = "".join(f"[{number}]" for number in numbers)
    if not text or not cited:
        return text
    stop = text[-1] if text[-1] in ".!?" else "."
    return f"{text.removesuffix(stop)} {cited}{stop}"


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
    if ask.by == AUTO:
        return SourceAgreement(by="", labels=(), diverging=(), sources=(), why_not=_NO_INSTITUTION)
    having = [shelf for shelf in shelves if ask.by == BY_DOCUMENT or ask.by in shelf.facets()]
    found = _sources(ask, having, line_model, progress)
    chosen = found[: ask.max_sources]
    empty = SourceAgreement(
        by=ask.by,
        labels=tuple(label.name for label in pack.labels),
        diverging=tuple(label.name for label in pack.labels if label.diverges),
        sources=(),
        left_out=len(found) - len(chosen),
        corpora_left_out=tuple(shelf.name for shelf in shelves if shelf not in having),
    )
    if len(chosen) < 2:
        only = f"the search found only one, {chosen[0].name}" if chosen else "the search found none"
        return replace(empty, why_not=only)
    question = Question(id=ASKED, text=ask.text)
    planned = _plans(ask, question, chosen, model, pack, line_model, progress)
    answers = answer_from_sources(model, planned, pack, progress=progress)
    said = [
        SourceReply(name=source.name, documents=tuple(each.id for each in source.documents), answer=answer)
        for source, answer in zip(chosen, answers, strict=True)
    ]
    dates = _dates(chosen, answers) if "date" in pack.answer_details else None
    compared = compare_answers(model, [question], answers, pack, dates=dates, progress=progress)
    return replace(empty, sources=tuple(said), comparisons=tuple(compared))


def _dates(chosen: Sequence[_Source], answers: Sequence[Answer]) -> dict[str, str]:
    """The dates that the documents of each source state."""
    from hoofbeat.audit.source_names import stated_date  # noqa: PLC0415 - most packs show no date

    return {
        answer.source: "; ".join(sorted({stated_date(each)[0] for each in source.documents} - {""}))
        for source, answer in zip(chosen, answers, strict=True)
    }


def _sources(
    ask: AskRequest, shelves: Sequence[SearchableCorpus], line_model: Callable[[str], Model] | None, progress: Progress
) -> list[_Source]:
    """The sources in the order of their best documents, over all corpora together."""
    if not shelves:
        return []
    together = searched_together(shelves)
    with together.searching(ask.line, model=line_model, progress=progress) as retriever:
        hits = retriever.search([(ASKED, ask.text)], _DEPTH)[0]
    groups: dict[tuple[str, str], _Source] = {}
    for hit in hits:
        shelf, id = together.origin(hit.document)
        document = shelf.corpus.get(id)
        names = [document.id] if ask.by == BY_DOCUMENT else facet_values(document.facets, ask.by)
        for name in names:
            before = groups.get((shelf.name, name), _Source(name=name, shelf=shelf, documents=()))
            groups[shelf.name, name] = replace(before, documents=(*before.documents, document))
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


NO_MODEL = "No model was chosen: Hoofbeat searched for reports, and did not answer or compare sources."
_NOTHING = "The search found nothing, so the model was not asked."
_NO_WORDS = (
    "No report contains a word of the case. These reports are only the nearest in meaning, and may have nothing to do "
    "with it. The encoders that come with Hoofbeat read English."
)
_NO_INSTITUTION = (
    "these documents do not say which institution they are from. To compare document by document, choose “each "
    "document by itself” (at the terminal: --by document)"
)


def check_ask(ask: AskRequest) -> None:
    """Refuse, before anything is done, what can't be asked."""
    if not ask.text.strip():
        raise UsageError("there is no case to search for", fix="describe the case in a few words or sentences")
    if len(ask.text) > MAX_CHARACTERS:
        raise UsageError(
            f"the case has {len(ask.text):,} characters; the maximum is {MAX_CHARACTERS:,}",
            fix="leave out what does not matter for the question",
        )
    if cost_bound(parse(ask.line)).calls and not ask.model:
        raise UsageError(f"the line {ask.line} asks a language model, but no model is chosen", fix="choose a model")
    if ask.by and ask.model:
        load_pack(ask.pack)


def prepare_ask(ask: AskRequest, folders: Sequence[Path]) -> tuple[AskRequest, list[SearchableCorpus]]:
    """Check what is asked, open the corpora, and settle what tells their sources apart (`by`: also `auto`, `none`)."""
    check_ask(replace(ask, by=""))
    load_pack(ask.pack)
    names = [folder.name or str(folder) for folder in folders]
    shelves = [
        SearchableCorpus(str(folder) if names.count(name) > 1 else name, Corpus.open(folder))
        for name, folder in zip(names, folders, strict=True)
    ]
    return replace(ask, by=choose_by(ask.by, shelves)), shelves


def run_ask(
    ask: AskRequest,
    shelves: Sequence[SearchableCorpus],
    *,
    model: Model | None = None,
    told: Callable[[AskResult], None] = lambda _: None,
    progress: Progress = SILENT,
) -> AskResult:
    """Search, then answer and compare where there is a model; `told` gets what is there after each step."""
    check_ask(ask)

    def load(spec: str) -> Model:
        if model is None or spec:
            raise UsageError("a retriever line may use only the chosen model", fix="remove model= from the line")
        return model

    line_model = load if model is not None else None
    reports, failure = find_reports(ask, shelves, model=line_model, progress=progress)
    notes = [f"The search failed: {failure.message} ({failure.kind})."] if failure else []
    if reports and not any(each.marks for report in reports for each in report.passages):
        notes.append(_NO_WORDS)
    if model is None:
        notes.append(NO_MODEL)
    found = AskResult(
        line=str(parse(ask.line)), model=model.identity if model else "", reports=reports, notes=tuple(notes)
    )
    if model is None:
        told(found)
        return found
    if not reports:
        found = replace(found, notes=(*found.notes, _NOTHING))
        told(found)
        return found
    told(found)
    found = replace(found, cited=answer_case(ask, reports, model, progress=progress))
    told(found)
    if ask.by:
        found = replace(found, agreement=ask_sources(ask, shelves, model, line_model=line_model, progress=progress))
    cost = model.cost
    found = replace(
        found,
        calls=cost.calls,
        tokens=cost.tokens_in + cost.tokens_out,
        notes=(*found.notes, *_window_notes(found, model)),
    )
    told(found)
    return found


def _window_notes(found: AskResult, model: Model) -> list[str]:
    """What the model's window kept from being shown, and whether its size is assumed or unchecked."""
    told = []
    if found.cited is not None and found.cited.answer.dropped:
        left, shown = len(found.cited.answer.dropped), len(found.cited.answer.evidence)
        told.append(f"the model saw {shown} passages; {left} more did not fit completely")
    replies = found.agreement.sources if found.agreement is not None else ()
    searched = [each.name for each in replies if any(step.stage == WINDOW for step in each.answer.trace)]
    cut = [each.name for each in replies if each.answer.dropped]
    told += [f"too long to show whole, so searched: {', '.join(searched)}"] if searched else []
    told += [f"some passages did not fit: {', '.join(cut)}"] if cut else []
    if not told and model.window.source not in ("assumed", "unchecked"):
        return []
    return [f"The model's context window ({model.window}): {'; '.join(told) or 'everything fitted'}."]


def choose_by(wanted: str, shelves: Sequence[SearchableCorpus]) -> str:
    """What tells sources apart: as wanted; `auto` becomes `institution` where a corpus has that facet."""
    facets = [set(shelf.facets()) for shelf in shelves]
    if wanted == "auto":
        return "institution" if any("institution" in each for each in facets) else AUTO
    if wanted in {"", "none"}:
        return ""
    if wanted != BY_DOCUMENT and not any(wanted in each for each in facets):
        known = ", ".join(sorted(set().union(*facets))) or "no facet"
        raise UsageError(f"sources can't be distinguished by {wanted!r}", fix=f"use {BY_DOCUMENT}, or one of: {known}")
    return wanted
