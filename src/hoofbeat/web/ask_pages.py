"""The ask page: a form, what came of it, how far it is, and a way to stop it. The case is never part of an address."""

from __future__ import annotations

import copy
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Form, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec import Struct
from pydantic import BaseModel

from hoofbeat.ask.ask_flow import check_ask, choose_by, run_ask
from hoofbeat.ask.ask_jobs import AskJob, AskQueue, JobState, ServerBusyError, cancellable_model
from hoofbeat.ask.ask_records import (
    BY_DOCUMENT,
    MAX_CHARACTERS,
    NOTICE,
    AskRequest,
    agreement_view,
    model_limits,
    passage_pieces,
)
from hoofbeat.ask.similar_reports import source_facets
from hoofbeat.corpus import Corpus
from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.records import Question
from hoofbeat.store.folder_library import Folder
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut, one_line
from hoofbeat.web.browse.corpus_search import checked_line, searchable_corpora
from hoofbeat.web.page_rendering import ErrorOut, not_found, render
from hoofbeat.web.site import Site, site_of

router = APIRouter()

LINES = ("bm25 + dense", "bm25", "dense", "hero")
"""Retriever lines that the form offers beside the server's own."""

_GONE = "This case is not on the server. Cases are deleted after an hour."
_WORDS: dict[JobState, str] = {
    "waiting": "Waiting",
    "working": "Working",
    "done": "Done",
    "failed": "This did not work",
    "stopped": "Stopped",
}
_EXAMPLES = 4
_PER_FOLDER = 2
_TITLE = 110


class ExampleCase(Struct, frozen=True):
    """A case that the empty form offers: how it begins, its text, and the folder that it is from."""

    title: str
    text: str
    folder: str


class AskState(BaseModel):
    """How far an ask is. `version` goes up whenever the page has more to show."""

    state: JobState
    words: str
    step: str
    done: int
    total: int | None
    version: int
    over: bool


def asks_of(site: Site) -> AskQueue:
    """The asks of a server."""
    asks: AskQueue = site.shared.setdefault("asks", AskQueue())
    return asks


@router.get("/ask", response_class=HTMLResponse, include_in_schema=False)
def form(request: Request, example: int = 0) -> HTMLResponse:
    """The form, empty or with an example case, by its number from 1."""
    site = site_of(request)
    known = example_cases(site)
    text = known[example - 1].text if 1 <= example <= len(known) else ""
    model = site.settings.models[0] if site.settings.models and site.load_model else ""
    return _form(request, AskRequest(text=text, line=site.settings.line, model=model, by="auto"), [], examples=known)


@router.post("/ask", include_in_schema=False)
def begin(
    request: Request,
    text: Annotated[str, Form()] = "",
    corpus: Annotated[list[str] | None, Form()] = None,
    line: Annotated[str, Form()] = "",
    model: Annotated[str, Form()] = "",
    by: Annotated[str, Form()] = "auto",
    k: Annotated[str, Form()] = "5",
) -> Response:
    """Begin an ask; what can't be asked is said beside the form, which keeps what was written."""
    site = site_of(request)
    wanted = [name for name in corpus or [] if site.library.folder(name, "corpus")]
    count = int(k) if k.isascii() and k.isdigit() and len(k) < 3 else 5
    ask = AskRequest(
        text=text.replace("\r\n", "\n")[: MAX_CHARACTERS + 1],
        line=line.strip() or site.settings.line,
        model=model,
        by=by,
        k=min(20, max(1, count)),
    )
    try:
        job = _begun(site, ask, wanted)
    except HoofbeatError as err:
        return _form(request, ask, wanted, problem=err, status=429 if isinstance(err, ServerBusyError) else 400)
    return RedirectResponse(f"/ask/{job.id}", status_code=303)


def _kept_job(request: Request, name: str) -> AskJob | None:
    """An ask; one of a corpus that a study hides by now is refused."""
    site = site_of(request)
    job = asks_of(site).get(name)
    for slug in job.corpora if job is not None else ():
        site.library.folder(slug)
    return job


@router.get("/ask/{name}", response_class=HTMLResponse, include_in_schema=False)
def shown(request: Request, name: str) -> HTMLResponse:
    """What came of an ask so far."""
    job = _kept_job(request, name)
    if job is None:
        return not_found(request, _GONE)
    job = copy.copy(job)  # one moment of it: an ask that ends while its page is made would be over and without a result
    found = job.found
    page = render(
        request,
        "ask/result.html",
        title="Your case",
        job=job,
        words=_WORDS[job.state],
        found=found,
        notice=NOTICE,
        pieces=passage_pieces,
        limits=model_limits(job.ask.model) if job.ask.model else "",
        agreed=agreement_view(found.agreement) if found and found.agreement else None,
        **_choices(site_of(request), job.ask, list(job.corpora)),
    )
    page.headers["Cache-Control"] = "no-store"
    return page


@router.post("/ask/{name}/stop", include_in_schema=False)
def stop(request: Request, name: str) -> Response:
    """Stop an ask and show what is there."""
    job = _kept_job(request, name) and asks_of(site_of(request)).stop(name)
    return not_found(request, _GONE) if job is None else RedirectResponse(f"/ask/{job.id}", status_code=303)


@router.get("/api/ask/{name}", responses={404: {"model": ErrorOut, "description": "There is no such ask."}})
def state(request: Request, name: str) -> AskState:
    """How far an ask is."""
    job = _kept_job(request, name)
    if job is None:
        raise HTTPException(404, _GONE)
    return AskState(
        state=job.state,
        words=_WORDS[job.state],
        step=job.step,
        done=job.done,
        total=job.total,
        version=job.version,
        over=job.over,
    )


def _begun(site: Site, ask: AskRequest, wanted: list[str]) -> AskJob:
    """Check an ask and begin it. The model is opened by the thread that uses it, with its own ledger."""
    folders = [folder for folder in site.library.folders("corpus") if folder.slug in wanted]
    if not folders:
        raise UsageError("no corpus is chosen", fix="choose at least one corpus to search")
    load = site.load_model
    if ask.model and (load is None or ask.model not in site.settings.models):
        raise UsageError("this server does not offer that model", fix="choose a model from the list, or none")
    shelves = searchable_corpora(site, folders)
    by = choose_by(ask.by, shelves) if ask.model else ""
    ask = AskRequest(text=ask.text, line=str(checked_line(site, ask.line)), model=ask.model, by=by, k=ask.k)
    check_ask(ask)

    def work(job: AskJob) -> None:
        model = cancellable_model(load(ask.model), job.check) if ask.model and load is not None else None
        try:
            run_ask(ask, shelves, model=model, told=job.tell, progress=job)
        finally:
            if model is not None:
                model.ledger.close()

    return asks_of(site).start(AskJob(ask, [folder.slug for folder in folders]), work)


def _form(
    request: Request,
    ask: AskRequest,
    wanted: list[str],
    *,
    problem: HoofbeatError | None = None,
    status: int = 200,
    examples: tuple[ExampleCase, ...] = (),
) -> HTMLResponse:
    page = render(
        request,
        "ask/form.html",
        title="Ask",
        status=status,
        problem=problem,
        notice=NOTICE,
        examples=examples,
        **_choices(site_of(request), ask, wanted),
    )
    page.headers["Cache-Control"] = "no-store"
    return page


def _choices(site: Site, ask: AskRequest, wanted: list[str]) -> dict[str, Any]:
    """What the form offers, and what is chosen in it."""
    corpora = site.library.folders("corpus")
    facets = sorted({name for folder in corpora for name in site.library.opened(folder, "source-facets", _facets)})
    return {
        "ask": ask,
        "corpora": corpora,
        "wanted": wanted or [folder.slug for folder in corpora],
        "lines": list(dict.fromkeys([site.settings.line, ask.line, *LINES])),
        "models": site.settings.models if site.load_model is not None else (),
        "facets": facets,
        "by_document": BY_DOCUMENT,
        "limits_by_model": {name: model_limits(name) for name in site.settings.models},
    }


def example_cases(site: Site) -> tuple[ExampleCase, ...]:
    """Cases to begin with: questions of the audits and benchmarks on this server, else titles of documents."""
    for kinds in (("audit", "benchmark"), ("corpus",)):
        found = [site.library.opened(folder, "example cases", _asked) for folder in site.library.folders(*kinds)]
        if any(found):
            return tuple(islice((case for cases in found for case in cases), _EXAMPLES))
    return ()


def _asked(folder: Folder) -> list[ExampleCase]:
    """The first cases of a folder; none where it can't be read, which its own page says."""
    try:
        artefact = folder.artefact()
        if folder.kind != "corpus":
            questions = islice(read_jsonl(artefact.file("questions.jsonl"), Question), _PER_FOLDER)
            texts = [f"{each.context}\n\n{each.text}".strip() for each in questions]
        else:
            titles = [each.title for each in islice(Corpus(artefact).documents(), _PER_FOLDER)]
            texts = [f"Reports like this one: {title}" for title in titles if title]
    except HoofbeatError:
        return []
    return [ExampleCase(cut(one_line(text), _TITLE), text, folder.slug) for text in texts]


def _facets(folder: Folder) -> list[str]:
    return source_facets(Corpus(folder.artefact()))
