"""The pages of a benchmark: its questions by facet and word, each beside its source, and what was turned away."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import pydantic
from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from msgspec.structs import replace

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.errors import HoofbeatError
from hoofbeat.recipes.recipe_items import FailedItem, RejectedItem
from hoofbeat.records import Question
from hoofbeat.reports.item_views import question_view
from hoofbeat.reports.model import Block, Heading, QuestionView
from hoofbeat.reports.sections.benchmark_section import build_blocks, build_cards, funnel_blocks
from hoofbeat.reports.tables import short_hash
from hoofbeat.store import Artefact
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut, one_line
from hoofbeat.web.browse.corpus_pages import FacetQuery, Page, facet_choices, split_facets
from hoofbeat.web.browse.corpus_search import QuestionSearch, kept_searches
from hoofbeat.web.browse.links import (
    FACET,
    address,
    answer_locations,
    case_of,
    page_number,
    questions_with,
    sources_of,
    studies_of,
)
from hoofbeat.web.browse.open_folders import (
    LONG,
    FolderListing,
    artefact_of,
    corpus_holding,
    open_table,
    table_for_page,
)
from hoofbeat.web.browse.plain_values import value_in_words
from hoofbeat.web.page_rendering import FOLDER_ERRORS, image_file, not_found, page_of, render
from hoofbeat.web.site import Site, site_of

router = APIRouter()

_NONE = "this server has no such benchmark"
_MAX_CASE = 50_000
_MAX_VALUE = 4_000
_TITLE = 120
_TURNED_AWAY: dict[str, type[RejectedItem] | type[FailedItem]] = {"rejected": RejectedItem, "failed": FailedItem}


def _benchmark(request: Request, slug: str, file: str = "") -> Folder | None:
    """The folder, where it is a benchmark that has this file."""
    site = site_of(request)
    folder = site.library.folder(slug, "benchmark")
    return folder if folder is None or not file or artefact_of(site, folder).has(file) else None


def _questions(request: Request, slug: str, edition: str) -> FolderListing:
    """The questions of a page; where they are not here, or are being read, another page is shown."""
    folder = _benchmark(request, slug, edition and edition_file(edition))
    return table_for_page(request, folder, "questions", _NONE, edition)


def _candidates(request: Request, slug: str, table: str) -> FolderListing:
    """The same for those that were turned away."""
    folder = _benchmark(request, slug, f"{table}.jsonl") if table in _TURNED_AWAY else None
    return table_for_page(request, folder, table, "this list does not exist")


@router.get("/benchmarks/{slug}", response_class=HTMLResponse, include_in_schema=False)
def benchmark_page(request: Request, slug: str, edition: str = "", search: str = "") -> Response:
    """A benchmark: its questions, and how it was built."""
    site, opened = site_of(request), _questions(request, slug, edition)
    found = kept_searches(site).get(search) if search else None
    if search and not (isinstance(found, QuestionSearch) and (found.folder, found.edition) == (slug, edition)):
        return not_found(request, "this search has expired; search again")
    asked = found if isinstance(found, QuestionSearch) else None
    return _benchmark_page(request, opened, edition, asked, search)


def _benchmark_page(
    request: Request, opened: FolderListing, edition: str, found: QuestionSearch | None, search: str,
    problem: HoofbeatError | None = None,
) -> HTMLResponse:  # fmt: skip
    site, folder, listing, artefact = site_of(request), opened.folder, opened.listing, opened.artefact
    chosen = facet_choices(request, listing.facet_names)
    among = found.numbers if found else None
    paged = page_of(listing.matching(chosen, among), page_number(request))
    kept = {"edition": edition, "search": search, **{FACET + name: value for name, value in chosen.items()}}
    blocks = site.library.opened(folder, "built", lambda _: _built(artefact))
    return render(
        request,
        "browse/benchmark.html",
        title=_title(artefact),
        status=400 if problem else 200,
        folder=folder,
        manifest=artefact.manifest,
        listing=listing,
        edition=edition,
        editions=_editions(artefact),
        facets=listing.facets(chosen, among),
        chosen=chosen,
        search=search,
        found=found,
        problem=problem,
        paged=paged,
        rows=[(listing.listed(number), case_of(listing.record(number, Question))) for number in paged.rows],
        link=lambda number: address(f"/benchmarks/{folder.slug}", kept, page=number),
        opening={"edition": edition, "search": search},
        kept_facets={FACET + name: value for name, value in chosen.items()},
        address=address,
        corpus=corpus_holding(site, artefact),
        cards=build_cards(artefact),
        blocks=blocks,
        headings=[block for block in blocks if isinstance(block, Heading) and block.listed],
        reviews=studies_of(site, folder),
        lineage=_lineage(artefact),
    )


def _lineage(artefact: Artefact) -> list[tuple[str, str]]:
    """Which models and prompts, with their fingerprints, and which seeds made the questions."""
    manifest = artefact.manifest
    return [
        *((f"model: {role}", name) for role, name in manifest.models.items()),
        *((f"prompt: {role}", name) for role, name in manifest.prompts.items()),
        *((f"seed: {name}", str(seed)) for name, seed in manifest.seeds.items()),
        *((f"made from: {ref.kind}", f"{ref.name} ({short_hash(ref.sha256)})") for ref in manifest.inputs),
    ]


def _title(artefact: Artefact) -> str:
    return artefact.manifest.title or artefact.path.name


def _built(artefact: Artefact) -> list[Block]:
    """How it was built, without the lists of what was turned away, which have pages of their own."""
    built = [block for block in build_blocks(artefact, "benchmark") if block.kind not in ("details", "text")]
    if built:
        return built
    told = funnel_blocks(artefact.manifest.counts, "benchmark")
    return [Heading("From candidates to questions", "benchmark-fates"), *told] if told else []


def _editions(artefact: Artefact) -> dict[str, str]:
    """The other editions, and what they are."""
    before, after = edition_file("*").split("*")
    named = (name for name in artefact.manifest.files if name.startswith(before) and name.endswith(after))
    about = artefact.manifest.metrics.get("editions")
    told: Mapping[str, object] = about if isinstance(about, dict) else {}
    return {name: str(told.get(name, "")) for name in sorted(each[len(before) : -len(after)] for each in named)}


@router.post("/benchmarks/{slug}/search", response_class=HTMLResponse, include_in_schema=False)
def search_questions(
    request: Request, slug: str, text: Annotated[str, Form()] = "", edition: Annotated[str, Form()] = ""
) -> Response:
    """Look for words in the questions; the results have their own address, without the words."""
    site, opened = site_of(request), _questions(request, slug, edition)
    try:
        numbers = questions_with(opened.listing.path, text)
    except HoofbeatError as err:
        return _benchmark_page(request, opened, edition, None, "", err)
    name = kept_searches(site).put(QuestionSearch(folder=slug, edition=edition, text=text.strip(), numbers=numbers))
    chosen = {FACET + key: value for key, value in facet_choices(request, opened.listing.facet_names).items()}
    return RedirectResponse(address(f"/benchmarks/{slug}", chosen, edition=edition, search=name), status_code=303)


@router.get("/benchmarks/{slug}/questions/{number}", response_class=HTMLResponse, include_in_schema=False)
def question_page(
    request: Request, slug: str, number: int, edition: str = "", source: int = 1, part: int | None = None,
    search: str = "",
) -> Response:  # fmt: skip
    """A question beside its source."""
    site, opened = site_of(request), _questions(request, slug, edition)
    listing = opened.listing
    if not 1 <= number <= len(listing):
        return not_found(request, "this benchmark has no question of that number")
    question = listing.record(number, Question)
    earlier, later = _neighbours(request, site, opened, number, search)
    chosen = facet_choices(request, listing.facet_names)
    kept = {"edition": edition, "search": search, **{FACET + name: value for name, value in chosen.items()}}
    sources = sources_of(site, opened.artefact, question.documents, question.evidence, source - 1, part)
    return render(
        request,
        "browse/question.html",
        title=cut(one_line(question.text), _TITLE),
        folder=opened.folder,
        benchmark=_title(opened.artefact),
        question=question,
        asked=(_asked(question),),
        number=number,
        total=len(listing),
        edition=edition,
        earlier=earlier,
        later=later,
        sources=sources,
        source=min(max(source, 1), max(1, len(sources))),
        answered=answer_locations(site, question),
        back=address(f"/benchmarks/{slug}", kept),
        question_link=lambda wanted: address(f"/benchmarks/{slug}/questions/{wanted}", kept),
        source_link=lambda wanted, part="": address(
            f"/benchmarks/{slug}/questions/{number}", kept, source=wanted, part=part
        ),
        document_link=lambda shown: address(
            f"/corpora/{shown.corpus}/documents/{shown.number}", question=f"{slug}.{number}", edition=edition
        ),
    )


def _asked(question: Question) -> QuestionView:
    """The question for its page: its source beside it has the evidence, a list below it the facets."""
    case = question.context
    if len(case) > _MAX_CASE:
        case = f"{case[:_MAX_CASE]} … (the first {_MAX_CASE:,} of {len(case):,} characters)"
    return replace(question_view(question, facets=False), context=case, evidence=())


def _neighbours(request: Request, site: Site, opened: FolderListing, number: int, search: str) -> tuple[int, int]:
    """The questions before and after one in the list that the reader comes from; 0 where there is none."""
    found = kept_searches(site).get(search) if search else None
    among = found.numbers if isinstance(found, QuestionSearch) and found.folder == opened.folder.slug else None
    rows = opened.listing.matching(facet_choices(request, opened.listing.facet_names), among)
    before = max((row for row in rows if row < number), default=0) if not isinstance(rows, range) else number - 1
    after = min((row for row in rows if row > number), default=0) if not isinstance(rows, range) else number + 1
    return before, after if after <= len(opened.listing) else 0


@router.get("/benchmarks/{slug}/files/{number}/{n}", include_in_schema=False)
def question_image(request: Request, slug: str, number: int, n: int, edition: str = "") -> Response:
    """An image of a question, by the question's number and its own (from 0)."""
    folder = _benchmark(request, slug, edition and edition_file(edition))
    opened = open_table(site_of(request), folder, "questions", edition=edition, patience=LONG) if folder else None
    if opened is None or not 1 <= number <= len(opened.listing):
        return not_found(request, "this image does not exist")
    images = opened.listing.record(number, Question).images
    if not 0 <= n < len(images):
        return not_found(request, "this image does not exist")
    return image_file(request, opened.artefact, images[n])


@router.get("/benchmarks/{slug}/{table}", response_class=HTMLResponse, include_in_schema=False)
def turned_away(request: Request, slug: str, table: str) -> Response:
    """What a recipe rejected, or lost to a failed call, by step and reason."""
    opened = _candidates(request, slug, table)
    listing = opened.listing
    chosen = facet_choices(request, listing.facet_names)
    paged = page_of(listing.matching(chosen), page_number(request))
    kept = {FACET + name: value for name, value in chosen.items()}
    rows = [(listing.listed(number), listing.record(number, _TURNED_AWAY[table])) for number in paged.rows]
    return render(
        request,
        "browse/turned_away.html",
        title="Rejected candidates" if table == "rejected" else "Candidates whose model call failed",
        folder=opened.folder,
        table=table,
        facets=listing.facets(chosen),
        chosen=chosen,
        paged=paged,
        rows=rows,
        link=lambda number: address(f"/benchmarks/{slug}/{table}", kept, page=number),
    )


@router.get("/benchmarks/{slug}/{table}/{number}", response_class=HTMLResponse, include_in_schema=False)
def candidate_page(
    request: Request, slug: str, table: str, number: int, source: int = 1, part: int | None = None
) -> Response:
    """A candidate that was turned away: why, as it was then, and where in its source the reason stands."""
    opened = _candidates(request, slug, table)
    if not 1 <= number <= len(opened.listing):
        return not_found(request, "this benchmark has no candidate of that number")
    row = opened.listing.record(number, _TURNED_AWAY[table])
    spans = [row.span] if isinstance(row, RejectedItem) and row.span else []
    sources = sources_of(site_of(request), opened.artefact, row.documents, spans, source - 1, part)
    return render(
        request,
        "browse/candidate.html",
        title=sources[0].title if sources and sources[0].title else row.id,
        folder=opened.folder,
        table=table,
        row=row,
        number=number,
        total=len(opened.listing),
        values=[(name, value_in_words(value, _MAX_VALUE)) for name, value in row.values.items()],
        sources=sources,
        source=min(max(source, 1), max(1, len(sources))),
        source_link=lambda wanted, part="": address(
            f"/benchmarks/{slug}/{table}/{number}", {}, source=wanted, part=part
        ),
        document_link=lambda shown: f"/corpora/{shown.corpus}/documents/{shown.number}",
    )


class ApiQuestion(pydantic.BaseModel):
    """A question of a benchmark. `number` is its place, from 1; `page` where people read it beside its source."""

    number: int
    id: str
    text: str
    answer: str
    options: list[str]
    documents: list[str]
    facets: dict[str, str | list[str]]
    page: str


class ApiQuestions(pydantic.BaseModel):
    """A page of questions: `total` match, on `pages` pages."""

    page: int
    pages: int
    total: int
    questions: list[ApiQuestion]


@router.get("/api/benchmarks/{slug}/questions", tags=["browse"], responses=FOLDER_ERRORS)
def questions(
    request: Request,
    slug: str,
    page: Page = 1,
    facet: FacetQuery = [],  # noqa: B006
    edition: Annotated[str, Query(max_length=100, description="Another edition of the questions.")] = "",
) -> ApiQuestions:
    """The questions of a benchmark, by facet."""
    folder = _benchmark(request, slug, edition and edition_file(edition))
    if folder is None:
        raise HTTPException(404, _NONE)
    opened = open_table(site_of(request), folder, "questions", edition=edition, patience=LONG)
    if opened is None:
        raise HTTPException(503, "this benchmark is still being read")
    paged = page_of(opened.listing.matching(split_facets(facet)), page, 100)
    rows = [(number, opened.listing.record(number, Question)) for number in paged.rows]
    return ApiQuestions(
        page=paged.number,
        pages=paged.pages,
        total=paged.total,
        questions=[
            ApiQuestion(
                number=number,
                id=row.id,
                text=row.text,
                answer=row.answer,
                options=list(row.options),
                documents=list(row.documents),
                facets=row.facets,
                page=address(f"/benchmarks/{slug}/questions/{number}", edition=edition),
            )
            for number, row in rows
        ],
    )
