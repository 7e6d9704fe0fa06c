"""Rankings: how well a retriever did, query by query; for each query its hits, what was missed, and another's hits.

It also gives the queries and hits as JSON.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct
from pydantic import BaseModel

from hoofbeat.ask.similar_reports import telling_terms, term_marks
from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import CollectionPassage, read_passages
from hoofbeat.errors import HoofbeatError
from hoofbeat.records import Hit
from hoofbeat.reports.item_views import question_view
from hoofbeat.reports.marked_document import passage_marks
from hoofbeat.retrieval.rankings.ranking_index import QueryFilter, QueryOutcome, RankingIndex, Values, index_ranking
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut, one_line
from hoofbeat.web.browse.folder_pages import FolderDetails, report_details
from hoofbeat.web.browse.links import (
    FACET,
    Choices,
    Link,
    PageNumber,
    PageSize,
    Picker,
    Slug,
    address,
    case_of,
    choices_of,
    document_places,
    facet_key,
    facets_chosen,
    inputs_of,
    page_number,
    question_link,
    read_documents,
    reference_of,
)
from hoofbeat.web.browse.open_folders import (
    PATIENCE,
    artefact_of,
    figures_page,
    opened_folder,
    opened_for_script,
    prepare_in_background,
)
from hoofbeat.web.folder_titles import folder_title
from hoofbeat.web.page_rendering import (
    FOLDER_ERRORS,
    ListPage,
    not_found,
    page_of,
    render,
)
from hoofbeat.web.site import Site, site_of

router = APIRouter()

KIND = "rankings"


class _Bench(Struct, frozen=True):
    """What a benchmark says of a ranking's documents: grades, and the passages they are where they are no documents."""

    grades: dict[str, dict[str, int]]
    pieces: dict[str, CollectionPassage]


def ranking_of(request: Request, slug: str) -> tuple[Folder, RankingIndex]:
    """The ranking of a page; where it is not there, or is being read, another page is shown."""
    return opened_folder(request, slug, (KIND,), "ranking", open_ranking)


def open_ranking(site: Site, folder: Folder, *, patience: float | None = None) -> RankingIndex | None:
    """The ranking's queries; None while they are being read."""
    bench = _benchmark(site, folder)
    purpose = f"queries {reference_of(site, bench)}" if bench else "queries"
    return prepare_in_background(site, folder, purpose, lambda each: _open(site, each, bench), patience=patience)


def ranking_figures(site: Site, folder: Folder, *, patience: float | None = None) -> FolderDetails | None:
    """The ranking's figures as a report has them; None while they are being worked out."""
    return prepare_in_background(site, folder, "figures", report_details, patience=patience)


def ranking_places(site: Site, folder: Folder, documents: Iterable[str]) -> dict[str, Link]:
    """The titles of ranked documents and where they can be read; a passage leads to the document it is of."""
    bench = _benchmark(site, folder)
    told = _read_bench(site, folder, bench)
    pieces = told.pieces if told else {}
    wanted = list(dict.fromkeys(documents))
    places = document_places(site, (pieces[name].document if name in pieces else name for name in wanted))
    found = {}
    for name in wanted:
        piece = pieces.get(name)
        place = places.get(piece.document if piece else name)
        if place is not None:
            found[name] = Link(f"{place.words} · {piece.heading}", place.href) if piece and piece.heading else place
    return found


def alike_rankings(site: Site, folder: Folder) -> list[Folder]:
    """Other rankings that were made from something this one was made from, too."""
    mine = inputs_of(site, folder)
    others = (each for each in site.library.folders(KIND) if each != folder)
    return [each for each in others if not mine.isdisjoint(inputs_of(site, each))]


def _open(site: Site, folder: Folder, bench: Folder | None) -> RankingIndex:
    told = _read_bench(site, folder, bench)
    return index_ranking(folder.artefact(), told.grades if told else None)


def _benchmark(site: Site, folder: Folder) -> Folder | None:
    """The benchmark that was searched for, where it is among the folders of this server."""
    mine = inputs_of(site, folder)
    return next((each for each in site.library.folders("benchmark") if reference_of(site, each) in mine), None)


def _read_bench(site: Site, folder: Folder, bench: Folder | None) -> _Bench | None:
    """What the benchmark says; None where there is none, or it can't be read: that is for its own page to say."""
    if bench is None:
        return None
    edition = str(artefact_of(site, folder).manifest.settings.get("edition", ""))

    def read(each: Folder) -> _Bench:
        artefact = each.artefact()
        return _Bench(Benchmark(artefact, edition).qrels(), {piece.id: piece for piece in read_passages(artefact)})

    try:
        return site.library.opened(bench, f"grades {edition}", read)
    except HoofbeatError:
        return None


MARKS = {
    "first": ("✓ relevant first", "right"),
    "later": ("relevant by rank 10", ""),
    "deep": ("relevant below rank 10", ""),
    "missed": ("✗ none relevant", "wrong"),
    "unjudged": ("– no relevant document known", "unscored"),
    "failed": ("– search failed", "unscored"),
}
"""How an outcome is written, and its class, so that colour never stands alone."""

_ORDERS = {"worst": "worst first", "best": "best first", "asked": "in the order of the benchmark"}
_APART = {"behind": "furthest behind the other", "ahead": "furthest ahead of the other"}
_SHOWN = 100
_TITLE = 120
_SNIPPETS = 25
"""So many of a page's hits have a snippet: each means a document to read."""
_SNIPPET = 240
_BEFORE = 60
_WORST = 10
_FACETS = 4
_MAX_RELEVANT = 200


Snippet = tuple[tuple[str, bool], ...]
"""Some of a passage in pieces, each with whether it is marked."""


class HitView(Struct, frozen=True, kw_only=True):
    """A hit for a page. `grade` is None where nobody judged the document, `there` its rank in the other ranking."""

    hit: Hit
    place: Link | None
    grade: int | None
    there: int | None = None
    snippet: Snippet = ()


class _Beside(Struct, frozen=True):
    """Another ranking beside this one: for each query of this one its number there, 0 where it was not asked there."""

    folder: Folder
    index: RankingIndex
    numbers: np.ndarray[Any, np.dtype[np.int64]]

    def values(self, measure: str) -> Values:
        """The other's values of a measure for the queries of this one."""
        if measure not in self.index.measures:
            return np.full(len(self.numbers), np.nan)
        padded = np.concatenate([[np.nan], self.index.values(measure)])
        found: Values = padded[self.numbers]
        return found


@router.get("/rankings/{slug}", response_class=HTMLResponse, include_in_schema=False)
def ranking_page(request: Request, slug: str) -> HTMLResponse:
    """A ranking: its measures, how its queries fared, and the worst of them."""
    site = site_of(request)
    problem: HoofbeatError | None = None
    index: RankingIndex | None = None
    folder = site.library.folder(slug, KIND)
    began = time.monotonic()
    if folder is not None:
        ranking_figures(site, folder, patience=0)  # they are begun, and worked out while the queries are read
    try:
        folder, index = ranking_of(request, slug)
    except HoofbeatError as err:
        if folder is None:
            raise
        problem = err
    return figures_page(
        request,
        "browse/ranking.html",
        folder,
        ranking_figures(site, folder, patience=max(0.0, PATIENCE - (time.monotonic() - began))),
        title=folder_title(site, folder),
        index=index,
        problem=problem,
        marks=MARKS,
        worst=_worst(index) if index else [],
        others=alike_rankings(site, folder),
        query=lambda number: f"/rankings/{slug}/queries/{number}",
        main=index.measures.index(index.main) if index and index.measures else 0,
    )


def _worst(index: RankingIndex) -> list[tuple[QueryOutcome, str]]:
    """The worst queries with their cases; none that could not be better."""
    if not index.measures:
        return []
    main = index.measures.index(index.main)
    fared = [index.fared(number) for number in index.numbers(QueryFilter(order="worst"))[:_WORST]]
    return [(each, case_of(index.question(each.number))) for each in fared if each.values[main] != 1]


@router.get("/rankings/{slug}/queries", response_class=HTMLResponse, include_in_schema=False)
def ranking_queries(request: Request, slug: str) -> HTMLResponse:
    """The queries of a ranking, found by how they fared and by facet, the worst first."""
    site = site_of(request)
    folder, index = ranking_of(request, slug)
    choices = _choices(request, index)
    beside = _beside(site, folder, index, choices)
    measure = _measure(index, choices)
    numbers = _numbers(index, choices, beside)
    paged = page_of(numbers, page_number(request))
    base = f"/rankings/{slug}/queries"
    return render(
        request,
        "browse/ranking_queries.html",
        title=f"Queries: {folder_title(site, folder)}",
        folder=folder,
        index=index,
        pickers=_pickers(index, choices, alike_rankings(site, folder)),
        paged=ListPage(_rows(index, paged.rows, measure, beside), paged.number, paged.pages, paged.total),
        cases=[case_of(index.question(number)) for number in paged.rows],
        measure=measure,
        beside=beside,
        marks=MARKS,
        unchosen={"order": _ORDERS["worst"], "measure": index.main, "beside": "nothing"},
        narrowed=any(name == "outcome" or name.startswith(FACET) for name in choices),
        link=lambda number: address(base, choices, page=number),
        query=lambda number: address(f"{base}/{number}", choices),
        clear=base if choices else "",
    )


@router.get("/rankings/{slug}/queries/{number}", response_class=HTMLResponse, include_in_schema=False)
def ranking_query(request: Request, slug: str, number: int) -> HTMLResponse:
    """One query: its hits in order, the relevant documents with the ranks they got, and its neighbours in the list."""
    site = site_of(request)
    folder, index = ranking_of(request, slug)
    if not 1 <= number <= len(index):
        return not_found(request, "This ranking has no query of this number.")
    choices = _choices(request, index)
    beside = _beside(site, folder, index, choices)
    numbers = _numbers(index, choices, beside)
    place = numbers.index(number) if number in numbers else None
    question, hits, relevant = index.question(number), index.hits(number), index.relevant(number)
    theirs = beside.index.hits(int(beside.numbers[number - 1])) if beside and beside.numbers[number - 1] else []
    places = ranking_places(site, folder, [*(hit.document for hit in (*hits, *theirs)), *relevant])
    pages = [page_of(each, page_number(request), _SHOWN) for each in (hits, theirs)]
    base = f"/rankings/{slug}/queries"
    at = {hit.document: (hit.rank, place // _SHOWN + 1) for place, hit in enumerate(hits)}
    known = [index.grades(number), *({hit.document: hit.rank for hit in each} for each in (theirs, hits))]
    snippets = _snippets(site, [hit for each in pages for hit in each.rows[:_SNIPPETS]], question.full_text)
    return render(
        request,
        "browse/ranking_query.html",
        title=cut(one_line(question.text), _TITLE),
        folder=folder,
        beside=beside,
        index=index,
        question=question,
        asked=(question_view(question, ()),),
        fared=index.fared(number),
        other=beside.index.fared(int(beside.numbers[number - 1])) if beside and beside.numbers[number - 1] else None,
        marks=MARKS,
        graded=max(index.grades(number).values(), default=0) > 1,
        judged=bool(index.grades(number)),
        relevant=[
            (name, grade, at.get(name, (0, 0)), places.get(name)) for name, grade in [*relevant.items()][:_MAX_RELEVANT]
        ],
        hits=_views(pages[0].rows, (slug, number), places, known[0], known[1] if beside else None, snippets),
        theirs=_views(pages[1].rows, _there(beside, number), places, known[0], known[2], snippets),
        paged=max(pages, key=lambda each: each.pages),
        trace=index.trace(number),
        benchmark=question_link(site, question),
        listed=address(base, choices),
        before=address(f"{base}/{numbers[place - 1]}", choices) if place else "",
        after=address(f"{base}/{numbers[place + 1]}", choices) if place is not None and number != numbers[-1] else "",
        link=lambda page: address(f"{base}/{number}", choices, page=page),
        pickers=_beside_pickers(choices, alike_rankings(site, folder)),
        unchosen={"beside": "nothing"},
        kept={name: value for name, value in choices.items() if name != "beside"},
    )


def _there(beside: _Beside | None, number: int) -> tuple[str, int]:
    return (beside.folder.slug, int(beside.numbers[number - 1])) if beside else ("", 0)


def _views(
    hits: Sequence[Hit],
    query: tuple[str, int],
    places: Mapping[str, Link],
    grades: Mapping[str, int],
    there: Mapping[str, int] | None,
    snippets: Mapping[str, Snippet],
) -> list[HitView]:
    """Hits for a page. A document opens at the passage it was ranked for, where that is known."""
    made = []
    for hit in hits:
        place = places.get(hit.document)
        if place and hit.passage.startswith(f"{hit.document}#"):
            href = address(place.href, ranking=f"{query[0]}.{query[1]}", hit=hit.rank)
            place = Link(place.words, f"{href}#mark-1")
        rank = None if there is None else there.get(hit.document, 0)
        snippet = snippets.get(hit.passage, ())
        made.append(HitView(hit=hit, place=place, grade=grades.get(hit.document), there=rank, snippet=snippet))
    return made


def _snippets(site: Site, hits: Sequence[Hit], query: str) -> dict[str, Snippet]:
    """How the passages of hits begin, from shortly before the first word of the query; by the ids of the passages."""
    known = read_documents(site, [hit.document for hit in hits if hit.passage.startswith(f"{hit.document}#")])
    texts = {}
    for hit in hits:
        document = known.get(hit.document)
        for start, end in passage_marks(document, hit.passage) if document else ():
            texts[hit.passage] = document.text[start:end] if document else ""
    wanted = telling_terms(query, list(texts.values()))
    return {passage: _snippet(text, wanted) for passage, text in texts.items()}


def _snippet(text: str, wanted: frozenset[str]) -> Snippet:
    marks = term_marks(text, wanted)
    begin = text.rfind(" ", 0, max(0, marks[0][0] - _BEFORE)) + 1 if marks else 0
    end = begin + _SNIPPET
    pieces, at = [("… ", False)] if begin else [], begin
    for first, last in (mark for mark in marks if begin <= mark[0] and mark[1] <= end):
        pieces += [(text[at:first], False), (text[first:last], True)]
        at = last
    pieces += [(text[at:end], False), ("…" if end < len(text) else "", False)]
    return tuple(piece for piece in pieces if piece[0])


def _choices(request: Request, index: RankingIndex) -> Choices:
    names = ["outcome", "order", "measure", "beside", *(facet_key(name) for name in index.listing.facet_names)]
    usual = {"order": "worst", "measure": index.main}
    return {name: value for name, value in choices_of(request, names).items() if usual.get(name) != value}


def _measure(index: RankingIndex, choices: Choices) -> str:
    named = choices.get("measure", "")
    return named if named in index.measures else index.main


def _numbers(index: RankingIndex, choices: Choices, beside: _Beside | None) -> list[int]:
    """The queries that are asked for, in order."""
    order, below = choices.get("order", ""), None
    measure = _measure(index, choices)
    if beside and measure and order in _APART:
        below = index.values(measure) - beside.values(measure)
        order = "worst" if order == "behind" else "best"
    outcome, facets = choices.get("outcome", ""), facets_chosen(choices)
    return index.numbers(QueryFilter(outcome=outcome, order=order, measure=measure, facets=facets), below)


def _beside(site: Site, folder: Folder, index: RankingIndex, choices: Choices) -> _Beside | None:
    """The other ranking that is asked for; none while it is being read."""
    other = next((each for each in alike_rankings(site, folder) if each.slug == choices.get("beside")), None)
    theirs = open_ranking(site, other) if other else None
    if other is None or theirs is None:
        return None

    def match(_: Folder) -> _Beside:
        numbers = []
        for name, title in zip(index.listing.ids, index.listing.titles, strict=True):
            number = theirs.listing.number(name)
            numbers.append(number if number and theirs.listing.titles[number - 1] == title else 0)
        return _Beside(other, theirs, np.array(numbers, dtype=np.int64))

    return site.library.opened(folder, f"beside {other.slug} {reference_of(site, other)}", match)


def _rows(
    index: RankingIndex, numbers: Sequence[int], measure: str, beside: _Beside | None
) -> list[tuple[QueryOutcome, tuple[str, ...]]]:
    """Queries for a list, with their values of a measure: this ranking's, and the other's with the difference."""
    theirs = beside.values(measure) if beside and measure else None
    rows = []
    for number in numbers:
        cells: tuple[str, ...] = ()
        if measure:
            mine = float(index.values(measure)[number - 1])
            cells = (_figure(mine),)
            if theirs is not None:
                other = float(theirs[number - 1])
                apart = mine - other
                cells = (*cells, _figure(other), "–" if np.isnan(apart) else f"{apart:+.3f}".replace("-", "−"))
        rows.append((index.fared(number), cells))
    return rows


def _figure(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def _pickers(index: RankingIndex, choices: Choices, others: Sequence[Folder]) -> list[Picker]:
    """What queries can be found, put in order and set beside."""
    tally = index.tally()
    orders = {**_ORDERS, **(_APART if "beside" in choices else {})} if index.measures else {}
    orders.pop("worst", None)  # as they come
    offered: list[tuple[str, str, list[tuple[str, str]]]] = [
        ("outcome", "Outcome", [(name, f"{MARKS[name][0]} ({count:,})") for name, count in tally.items()]),
        ("measure", "Measure", [(name, name) for name in index.measures if name != index.main]),
        ("order", "Order", list(orders.items())),
    ]
    for facet in index.listing.facets({})[:_FACETS]:
        values = [(value, f"{value} ({count:,})") for value, count in facet.values]
        offered.append((facet_key(facet.name), facet.name.capitalize(), values))
    found = [
        (name, words, tuple(values), choices.get(name, ""))
        for name, words, values in offered
        if (values and (len(values) > 1 or name in ("measure", "order"))) or choices.get(name)
    ]
    return [*found, *_beside_pickers(choices, others)]


def _beside_pickers(choices: Choices, others: Sequence[Folder]) -> list[Picker]:
    values = tuple((each.slug, each.slug) for each in others)
    return [("beside", "Compare with", values, choices.get("beside", ""))] if values else []


Name = Annotated[str, Query(max_length=500)]
Number = Annotated[int, Path(ge=1, le=10_000_000)]


class QueryOut(BaseModel):
    """A query and how it fared; `first` is the rank of its first relevant document, None where none was found."""

    number: int
    query: str
    text: str
    outcome: str
    hits: int
    relevant: int
    found: int
    first: int | None
    measures: dict[str, float | None]


class QueriesOut(BaseModel):
    """A page of queries, of `total` that match."""

    page: int
    pages: int
    total: int
    queries: list[QueryOut]


class StageOut(BaseModel):
    """Where a stage of the retriever put a hit."""

    stage: str
    rank: int
    score: float


class HitOut(BaseModel):
    """A hit; `grade` is None where nobody judged the document."""

    rank: int
    document: str
    score: float
    grade: int | None
    passage: str
    via: list[StageOut]


class MissedOut(BaseModel):
    """A relevant document that is not among the hits."""

    document: str
    grade: int


class HitsOut(BaseModel):
    """A query with some of its hits, in order, and all relevant documents that are not among them."""

    query: QueryOut
    page: int
    pages: int
    total: int
    hits: list[HitOut]
    missed: list[MissedOut]


@router.get("/api/rankings/{slug}/queries", responses=FOLDER_ERRORS, tags=["rankings"])
def queries(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    outcome: Literal["", "first", "later", "deep", "missed", "unjudged", "failed"] = "",
    order: Literal["worst", "best", "asked"] = "asked",
    measure: Name = "",
) -> QueriesOut:
    """The queries of a ranking by how they fared, in the order of a measure or as they were asked."""
    index = _index(request, slug)
    numbers = index.numbers(QueryFilter(outcome=outcome, order=order, measure=measure))
    pages = max(1, -(-len(numbers) // size))
    page = min(page, pages)
    shown = [_query(index, index.fared(number)) for number in numbers[(page - 1) * size : page * size]]
    return QueriesOut(page=page, pages=pages, total=len(numbers), queries=shown)


@router.get("/api/rankings/{slug}/queries/{number}/hits", responses=FOLDER_ERRORS, tags=["rankings"])
def hits(request: Request, slug: Slug, number: Number, page: PageNumber = 1, size: PageSize = 100) -> HitsOut:
    """The hits of a query, in order, and the relevant documents that are not among them."""
    index = _index(request, slug)
    if number > len(index):
        raise HTTPException(404, "this ranking has no query of this number")
    found, grades = index.hits(number), index.grades(number)
    pages = max(1, -(-len(found) // size))
    page = min(page, pages)
    here = {hit.document for hit in found}
    return HitsOut(
        query=_query(index, index.fared(number)),
        page=page,
        pages=pages,
        total=len(found),
        hits=[
            HitOut(
                rank=hit.rank,
                document=hit.document,
                score=hit.score,
                grade=grades.get(hit.document),
                passage=hit.passage,
                via=[StageOut(stage=stage, rank=rank, score=score) for stage, (rank, score) in hit.via.items()],
            )
            for hit in found[(page - 1) * size : page * size]
        ],
        missed=[
            MissedOut(document=name, grade=grade) for name, grade in index.relevant(number).items() if name not in here
        ],
    )


def _index(request: Request, slug: str) -> RankingIndex:
    return opened_for_script(request, slug, (KIND,), "ranking", open_ranking)


def _query(index: RankingIndex, fared: QueryOutcome) -> QueryOut:
    return QueryOut(
        number=fared.number,
        query=fared.id,
        text=fared.title,
        outcome=fared.outcome,
        hits=fared.hits,
        relevant=fared.relevant,
        found=fared.found,
        first=fared.first or None,
        measures=dict(zip(index.measures, fared.values, strict=True)),
    )
