"""An ask from start to end: search, answer, compare; what is there already is told as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.ask.ask_records import BY_DOCUMENT, MAX_CHARACTERS, AskRequest, AskResult
from hoofbeat.ask.cited_answer import answer_case
from hoofbeat.ask.search_corpora import SearchableCorpus
from hoofbeat.ask.similar_reports import find_reports
from hoofbeat.ask.source_answers import ask_sources
from hoofbeat.corpus import Corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import Model
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import load_pack
from hoofbeat.retrieval import parse
from hoofbeat.retrieval.line import cost_bound

NO_MODEL = "No model was chosen, so reports were searched for and nothing was answered."
_NOTHING = "Nothing was found, so the model was not asked."
_NO_WORDS = (
    "No word of the case stands in what was found: these reports are merely the nearest by meaning, if that. Encoders "
    "that come with the package read English."
)


def check_ask(ask: AskRequest) -> None:
    """Refuse, before anything is done, what can't be asked."""
    if not ask.text.strip():
        raise UsageError("there is no case to search for", fix="describe the case in a few words or sentences")
    if len(ask.text) > MAX_CHARACTERS:
        raise UsageError(
            f"the case has {len(ask.text):,} characters, and {MAX_CHARACTERS:,} can be searched for",
            fix="leave out what does not matter for the question",
        )
    if cost_bound(parse(ask.line)).calls and not ask.model:
        raise UsageError(f"the line {ask.line} asks a language model, and none is chosen", fix="choose a model")
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
            raise UsageError("a retriever line may ask the chosen model only", fix="leave model= out of the line")
        return model

    line_model = load if model is not None else None
    reports, failure = find_reports(ask, shelves, model=line_model, progress=progress)
    notes = [f"The search failed: {failure.kind}: {failure.message}"] if failure else []
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
    found = replace(found, calls=cost.calls, tokens=cost.tokens_in + cost.tokens_out)
    told(found)
    return found


def choose_by(wanted: str, shelves: Sequence[SearchableCorpus]) -> str:
    """What tells sources apart: as wanted, or for `auto` the facet `institution` where there is one, else nothing."""
    facets = [set(shelf.facets()) for shelf in shelves]
    if wanted == "auto":
        return "institution" if facets and all("institution" in each for each in facets) else ""
    if wanted in {"", "none"}:
        return ""
    if wanted != BY_DOCUMENT and not any(wanted in each for each in facets):
        known = ", ".join(sorted(set().union(*facets))) or "no facet"
        raise UsageError(f"sources can't be told apart by {wanted!r}", fix=f"use {BY_DOCUMENT}, or one of: {known}")
    return wanted
