"""Rankings: how well a retriever did, query by query; for each query its hits, what was missed, and another's hits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct

from hoofbeat.errors import HoofbeatError
from hoofbeat.records import Hit
from hoofbeat.reports.item_views import question_view
from hoofbeat.retrieval.rankings.ranking_index import QueryFilter, QueryOutcome, RankingIndex, Values
from hoofbeat.store.folder_library import Folder
from hoofbeat.web.browse import rankings_api
from hoofbeat.web.browse.address_filters import FACET, Choices, Picker, address, choices_of, facet_key, page_number
from hoofbeat.web.browse.links import Link, question_link, reference_of
from hoofbeat.web.browse.open_folders import PATIENCE, figures_page
from hoofbeat.web.browse.question_links import case_of
from hoofbeat.web.browse.ranking_figures import (
    KIND,
    alike_rankings,
    open_ranking,
    ranking_figures,
    ranking_of,
    ranking_places,
)
from hoofbeat.web.page_rendering import ListPage, not_found, page_of, render
from hoofbeat.web.site import Site, site_of

router = APIRouter()
router.include_router(rankings_api.router)

MARKS = {
    "first": ("✓ relevant first", "right"),
    "later": ("relevant by rank 10", ""),
    "deep": ("relevant below rank 10", ""),
    "missed": ("✗ none relevant", "wrong"),
    "unjudged": ("– nothing known to be relevant", "unscored"),
    "failed": ("– could not be searched", "unscored"),
}
"""How an outcome is written, and its class, so that colour never stands alone."""

_ORDERS = {"worst": "worst first", "best": "best first", "asked": "as they were asked"}
_APART = {"behind": "most behind the other", "ahead": "most ahead of the other"}
_SHOWN = 100
_WORST = 10
_FACETS = 4
_MAX_RELEVANT = 200


class HitView(Struct, frozen=True, kw_only=True):
    """A hit for a page. `grade` is None where nobody judged the document, `there` its rank in the other ranking."""

    hit: Hit
    place: Link | None
    grade: int | None
    there: int | None = None


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
    worst = index.numbers(QueryFilter(order="worst")) if index and index.measures else []
    return figures_page(
        request,
        "browse/ranking.html",
        folder,
        ranking_figures(site, folder, patience=max(0.0, PATIENCE - (time.monotonic() - began))),
        title=slug,
        index=index,
        problem=problem,
        marks=MARKS,
        worst=[(index.fared(number), case_of(index.question(number))) for number in worst[:_WORST]] if index else [],
        others=alike_rankings(site, folder),
        query=lambda number: f"/rankings/{slug}/queries/{number}",
        main=index.measures.index(index.main) if index and index.measures else 0,
    )


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
        title=f"Queries of {slug}",
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
        return not_found(request, "There is no query of this number in this ranking.")
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
    return render(
        request,
        "browse/ranking_query.html",
        title=f"{question.id} in {slug}",
        folder=folder,
        beside=beside,
        index=index,
        asked=(question_view(question, ()),),
        fared=index.fared(number),
        other=beside.index.fared(int(beside.numbers[number - 1])) if beside and beside.numbers[number - 1] else None,
        marks=MARKS,
        graded=max(index.grades(number).values(), default=0) > 1,
        judged=bool(index.grades(number)),
        relevant=[
            (name, grade, at.get(name, (0, 0)), places.get(name)) for name, grade in [*relevant.items()][:_MAX_RELEVANT]
        ],
        hits=_views(pages[0].rows, (slug, number), places, known[0], known[1] if beside else None),
        theirs=_views(pages[1].rows, _there(beside, number), places, known[0], known[2]),
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
) -> list[HitView]:
    """Hits for a page. A document opens at the passage it was ranked for, where that is known."""
    made = []
    for hit in hits:
        place = places.get(hit.document)
        if place and hit.passage.startswith(f"{hit.document}#"):
            href = address(place.href, ranking=f"{query[0]}.{query[1]}", hit=hit.rank)
            place = Link(place.words, f"{href}#mark-1")
        rank = None if there is None else there.get(hit.document, 0)
        made.append(HitView(hit=hit, place=place, grade=grades.get(hit.document), there=rank))
    return made


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
    facets = tuple((name.removeprefix(FACET), value) for name, value in choices.items() if name.startswith(FACET))
    wanted = QueryFilter(outcome=choices.get("outcome", ""), order=order, measure=measure, facets=facets)
    return index.numbers(wanted, below)


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
    return [("beside", "Beside", values, choices.get("beside", ""))] if values else []
