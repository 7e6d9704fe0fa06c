"""The pages of a corpus: what it holds, its documents by facet, searches with any retriever line, and each document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import pydantic
from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.errors import HoofbeatError
from hoofbeat.records import Document, Question
from hoofbeat.reports.marked_document import Mark, document_view, evidence_marks, passage_marks, split_at_marks
from hoofbeat.reports.model import Block
from hoofbeat.reports.sections.corpus_section import funnel_blocks, funnel_of
from hoofbeat.store import Artefact
from hoofbeat.web.browse.corpus_search import (
    CorpusSearch,
    begin_search,
    kept_searches,
    offered_stages,
    searchable_corpora,
)
from hoofbeat.web.browse.links import FACET, address, backlinks_to, choices_of, page_number
from hoofbeat.web.browse.open_folders import LONG, FolderListing, artefact_of, open_table, table_for_page
from hoofbeat.web.browse.ranking_pages import KIND as RANKINGS
from hoofbeat.web.browse.ranking_pages import open_ranking
from hoofbeat.web.page_rendering import FOLDER_ERRORS, image_file, not_found, page_of, render
from hoofbeat.web.site import Site, site_of

router = APIRouter()

LINES = ("bm25", "bm25 + dense", "dense", "hero")
"""Retriever lines that are offered to begin with."""

_HITS = 20
_NO_CORPUS = "this server has no such corpus"


def _documents(request: Request, slug: str) -> FolderListing:
    """The corpus of a page; where it is not here, or is being read, another page is shown."""
    return table_for_page(request, site_of(request).library.folder(slug, "corpus"), "documents", _NO_CORPUS)


def facet_choices(request: Request, names: Sequence[str]) -> dict[str, str]:
    """The facets that are chosen in a request's address, by their own names."""
    return {key.removeprefix(FACET): value for key, value in choices_of(request, [FACET + n for n in names]).items()}


@router.get("/corpora/{slug}", response_class=HTMLResponse, include_in_schema=False)
def corpus_page(request: Request, slug: str) -> HTMLResponse:
    """A corpus: what it holds, and its documents."""
    opened = _documents(request, slug)
    return _corpus_page(request, opened, facet_choices(request, opened.listing.facet_names))


def _corpus_page(
    request: Request, opened: FolderListing, chosen: Mapping[str, str], *,
    given: CorpusSearch | None = None, problem: HoofbeatError | None = None,
) -> HTMLResponse:  # fmt: skip
    """The page of a corpus; `given` is a search that could not be begun, and `problem` says why."""
    site, folder, listing = site_of(request), opened.folder, opened.listing
    numbers = listing.matching(chosen)
    paged = page_of(numbers, page_number(request))
    kept = {FACET + name: value for name, value in chosen.items()}
    return render(
        request,
        "browse/corpus.html",
        title=_title(opened.artefact),
        status=400 if problem else 200,
        folder=folder,
        manifest=opened.artefact.manifest,
        listing=listing,
        facets=listing.facets(chosen),
        chosen=chosen,
        paged=paged,
        rows=[listing.listed(number) for number in paged.rows],
        link=lambda number: address(f"/corpora/{folder.slug}", kept, page=number),
        blocks=site.library.opened(folder, "funnel", lambda _: _funnel(opened.artefact)),
        **_form(site, given, problem),
    )


def _form(site: Site, given: CorpusSearch | None, problem: HoofbeatError | None) -> dict[str, Any]:
    """What the form to search with needs."""
    return {
        "given": given,
        "problem": problem,
        "lines": list(dict.fromkeys([*LINES, site.settings.line])),
        "stages": offered_stages(site),
        "models": site.settings.models if site.load_model else (),
    }


def _title(artefact: Artefact) -> str:
    title = artefact.manifest.title
    return title if title not in ("", "corpus") else artefact.path.name


def _funnel(artefact: Artefact) -> list[Block]:
    return funnel_blocks(artefact, funnel_of(artefact), "corpus")


@router.post("/corpora/{slug}/search", response_class=HTMLResponse, include_in_schema=False)
def search(
    request: Request,
    slug: str,
    text: Annotated[str, Form()] = "",
    line: Annotated[str, Form()] = "bm25",
    count: Annotated[int, Form()] = _HITS,
) -> Response:
    """Begin a search; the results have an address of their own, in which nothing of the text stands."""
    site, opened = site_of(request), _documents(request, slug)
    listing = opened.listing
    chosen = facet_choices(request, listing.facet_names)
    wanted = CorpusSearch(slug, line.strip(), text, count, chosen)
    among = (lambda: [listing.ids[number - 1] for number in listing.matching(chosen)]) if chosen else None
    try:
        name = begin_search(site, searchable_corpora(site, [opened.folder])[0], wanted, among)
    except HoofbeatError as err:
        return _corpus_page(request, opened, chosen, given=wanted, problem=err)
    return RedirectResponse(f"/corpora/{slug}/searches/{name}", status_code=303)


@router.get("/corpora/{slug}/searches/{name}", response_class=HTMLResponse, include_in_schema=False)
def results(request: Request, slug: str, name: str) -> Response:
    """What a search found, or how far it is."""
    site = site_of(request)
    folder, found = site.library.folder(slug, "corpus"), kept_searches(site).get(name)
    gone = "this search has expired; search again"
    if not isinstance(found, CorpusSearch) or found.folder != slug:
        return not_found(request, gone)
    opened = table_for_page(request, folder, "documents", gone)
    rows = [(hit, opened.listing.number(hit.document)) for hit in found.found]
    page = render(
        request,
        "browse/results.html",
        title=f"Search in {_title(opened.artefact)}",
        folder=opened.folder,
        corpus=_title(opened.artefact),
        listing=opened.listing,
        search=found,
        name=name,
        chosen=found.chosen,
        rows=[(hit, opened.listing.listed(number)) for hit, number in rows if number is not None],
        pieces=split_at_marks,
        action=address(f"/corpora/{slug}/search", {FACET + key: value for key, value in found.chosen.items()}),
        **_form(site, found, None),
    )
    if found.state == "working":
        page.headers["Refresh"] = "1"
    return page


@router.get("/corpora/{slug}/documents/{number}", response_class=HTMLResponse, include_in_schema=False)
def document_page(
    request: Request, slug: str, number: int, part: int | None = None, search: str = "", hit: int = 0,
    question: str = "", edition: str = "", ranking: str = "",
) -> Response:  # fmt: skip
    """A document; a passage or evidence is marked where one comes from a search, a ranking or a question."""
    site, opened = site_of(request), _documents(request, slug)
    listing = opened.listing
    if not 1 <= number <= len(listing):
        return not_found(request, "this corpus has no document of that number")
    document = listing.record(number, Document)
    if ranking:
        marks, missing, back = _ranked_marks(site, document, ranking, hit)
    else:
        marks, missing, back = _marks(site, slug, document, (search, hit), (question, edition))
    came = {"search": search, "hit": str(hit or ""), "question": question, "edition": edition, "ranking": ranking}
    kept = came if back else {}
    return render(
        request,
        "browse/document.html",
        title=document.title or document.id,
        folder=opened.folder,
        corpus=_title(opened.artefact),
        number=number,
        total=len(listing),
        view=document_view(document, marks, part, missing),
        back=back,
        met=backlinks_to(site, opened.folder, document.id),
        link=lambda wanted: address(f"/corpora/{slug}/documents/{number}", kept, part=wanted),
    )


Marks = tuple[list[Mark], tuple[str, ...], tuple[str, str] | None]
"""What to mark in a document, quotes that are not there, and where the reader came from."""


def _ranked_marks(site: Site, document: Document, ranking: str, hit: int) -> Marks:
    """The passage for which a document was ranked; the query is given as `RANKING.NUMBER`, the hit by its rank."""
    slug, _, place = ranking.rpartition(".")
    folder = site.library.folder(slug, RANKINGS)
    if folder is None or not (place.isascii() and place.isdigit() and len(place) < 10):
        return [], (), None
    try:
        index = open_ranking(site, folder)
        found = index.hits(int(place)) if index and 1 <= int(place) <= len(index) else []
    except HoofbeatError:  # a ranking that can't be read is told on its own page
        return [], (), None
    mine = [each for each in found if each.rank == hit and each.document == document.id]
    marks = passage_marks(document, mine[0].passage) if mine else []
    return marks, (), (f"/rankings/{slug}/queries/{int(place)}#hit-{hit}", "the ranking") if mine else None


def _marks(site: Site, slug: str, document: Document, searched: tuple[str, int], asked: tuple[str, str]) -> Marks:
    """What a search found, by its id and the place of a hit, or the evidence of a question.

    The question is given as `BENCHMARK.NUMBER` with its edition.
    """
    name, hit = searched
    found = kept_searches(site).get(name) if name else None
    if isinstance(found, CorpusSearch) and found.folder == slug:
        passages = [each.passage for each in found.found if each.document == document.id and hit in (0, each.rank)]
        marks = [(passage.start, passage.end) for passage in passages if passage]
        return marks, (), (f"/corpora/{slug}/searches/{name}#hit-{hit}", "the search")
    (bench, _, place), edition = asked[0].rpartition("."), asked[1]
    folder = site.library.folder(bench, "benchmark")
    if folder is None or not (place.isascii() and place.isdigit() and len(place) < 10):
        return [], (), None
    if edition and not artefact_of(site, folder).has(edition_file(edition)):
        return [], (), None
    opened = open_table(site, folder, "questions", edition=edition)
    if opened is None or not 1 <= int(place) <= len(opened.listing):
        return [], (), None
    question = opened.listing.record(int(place), Question)
    marks, missing = evidence_marks(document, question.evidence)
    back = address(f"/benchmarks/{bench}/questions/{int(place)}", edition=edition)
    return marks, missing, (back, f"the question {question.id}")


@router.get("/corpora/{slug}/files/{number}/{figure}/{n}", include_in_schema=False)
def figure_file(request: Request, slug: str, number: int, figure: int, n: int) -> Response:
    """An image of a figure, by the numbers of document, figure and file."""
    site = site_of(request)
    folder = site.library.folder(slug, "corpus")
    opened = open_table(site, folder, "documents", patience=LONG) if folder else None
    if opened is None or not 1 <= number <= len(opened.listing):
        return not_found(request, "this image does not exist")
    figures = opened.listing.record(number, Document).figures
    if not (0 <= figure < len(figures) and 0 <= n < len(figures[figure].files)):
        return not_found(request, "this image does not exist")
    return image_file(request, opened.artefact, figures[figure].files[n])


class ApiDocument(pydantic.BaseModel):
    """A document of a corpus, without its text. `number` is its place, from 1; `page` where people read it."""

    number: int
    id: str
    title: str
    page: str


class ApiDocuments(pydantic.BaseModel):
    """A page of documents: `total` match, on `pages` pages."""

    page: int
    pages: int
    total: int
    documents: list[ApiDocument]


def split_facets(given: Sequence[str]) -> dict[str, str]:
    """Choices written `name=value`."""
    return {name: value for each in given for name, sign, value in [each.partition("=")] if sign}


Page = Annotated[int, Query(ge=1, le=1_000_000, description="Page of 100, from 1; past the end: the last page.")]
FacetQuery = Annotated[
    list[str],
    Query(max_length=20, description="Only rows with this value of a facet, written name=value."),
]


@router.get("/api/corpora/{slug}/documents", tags=["browse"], responses=FOLDER_ERRORS)
def documents(request: Request, slug: str, page: Page = 1, facet: FacetQuery = []) -> ApiDocuments:  # noqa: B006
    """The documents of a corpus, by facet."""
    site = site_of(request)
    folder = site.library.folder(slug, "corpus")
    if folder is None:
        raise HTTPException(404, _NO_CORPUS)
    opened = open_table(site, folder, "documents", patience=LONG)
    if opened is None:
        raise HTTPException(503, "this corpus is still being read")
    paged = page_of(opened.listing.matching(split_facets(facet)), page, 100)
    rows = [opened.listing.listed(number) for number in paged.rows]
    return ApiDocuments(
        page=paged.number,
        pages=paged.pages,
        total=paged.total,
        documents=[
            ApiDocument(number=row.number, id=row.id, title=row.title, page=f"/corpora/{slug}/documents/{row.number}")
            for row in rows
        ],
    )
