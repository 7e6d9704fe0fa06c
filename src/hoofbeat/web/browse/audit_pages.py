"""Audits: where sources agree and differ, from the figures over all pairs down to one question and two passages."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from hoofbeat.records import Answer, Comparison
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.indexes.pair_index import NO_LABEL, SILENT, AuditIndex
from hoofbeat.reports.item_views import failure_text, question_view
from hoofbeat.reports.linked_tables import label_key, label_matrix
from hoofbeat.reports.model import AnswerView, Block, PairView, SideView
from hoofbeat.reports.sections.audits.audit_facts import side_view, silent_text, state_of
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut
from hoofbeat.web.browse import audit_lists, audits_api
from hoofbeat.web.browse.address_filters import address
from hoofbeat.web.browse.audit_figures import KIND, asked_too, audit_of, open_shift, themes_html, themes_of
from hoofbeat.web.browse.audit_lists import audit_choices, ordered_places, pair_links, tone_class, wanted_pairs
from hoofbeat.web.browse.links import document_links, question_link
from hoofbeat.web.browse.open_folders import figures_page, preparing_page
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.site import site_of

router = APIRouter()
router.include_router(audits_api.router)
router.include_router(audit_lists.router)
_TOPICS = 200


@router.get("/audits/{slug}", response_class=HTMLResponse, include_in_schema=False)
def audit_page(request: Request, slug: str) -> HTMLResponse:
    """An audit: how often sources disagree, who with whom, and which disagreements are the most serious."""
    return _overview(request, slug, "browse/audit.html", slug)


@router.get("/audits/{slug}/sources", response_class=HTMLResponse, include_in_schema=False)
def audit_sources(request: Request, slug: str) -> HTMLResponse:
    """Source by source: who stands apart, and who covers what."""
    return _overview(request, slug, "browse/audit_sources.html", f"Sources of {slug}")


@router.get("/audits/{slug}/themes", response_class=HTMLResponse, include_in_schema=False)
def audit_themes(request: Request, slug: str) -> HTMLResponse:
    """What sources disagree about: themes where they were made, else the judge's wordings, counted."""
    site = site_of(request)
    folder, opened = audit_of(request, slug)
    drawn = themes_html(site, folder)
    if drawn is None:
        return preparing_page(request, folder)
    base = f"/audits/{slug}/pairs"
    named = themes_of(site, folder, opened.index).named
    return render(
        request,
        "browse/themes.html",
        title=f"Themes of {slug}",
        folder=folder,
        drawn=drawn,
        themes=[(name, count, address(base, theme=number)) for number, (name, count, _) in enumerate(named, start=1)],
        topics=[
            (words, count, address(base, topic=number))
            for number, (words, count) in enumerate(opened.index.topics[:_TOPICS], start=1)
        ],
        wordings=len(opened.index.topics),
    )


@router.get("/audits/{slug}/since/{before}", response_class=HTMLResponse, include_in_schema=False)
def audit_since(request: Request, slug: str, before: str) -> HTMLResponse:
    """What changed from one audit to another of the same questions: prevalence, intensity, and labels that moved."""
    site = site_of(request)
    folder, earlier = site.library.folder(slug, KIND), site.library.folder(before, KIND)
    if folder is None or earlier is None or earlier not in asked_too(site, folder):
        return not_found(request, "There are no two audits of the same questions of these names here.")
    shift = open_shift(site, folder, earlier)
    if shift is None:
        return preparing_page(request, folder)
    return render(
        request,
        "browse/audit_since.html",
        title=f"From {before} to {slug}",
        folder=folder,
        earlier=earlier,
        shift=shift,
    )


def _overview(request: Request, slug: str, template: str, title: str) -> HTMLResponse:
    site = site_of(request)
    folder, opened = audit_of(request, slug)
    index = opened.index
    return figures_page(
        request,
        template,
        folder,
        opened.figures.within(),
        title=title,
        index=index,
        tone=lambda label: tone_class(index, label),
        others=asked_too(site, folder),
        texts={question.id: cut(question.text, 110) for question in index.questions},
        places={question.id: number for number, question in enumerate(index.questions, start=1)},
        numbers={source.id: number for number, source in enumerate(index.sources, start=1)},
    )


BASES = {
    "judged": "judged by a call for this very pair",
    "absent": "a side is silent, so nobody was asked",
    "same": "the two answers are the same text",
    "shared": "from the call for a pair with the same two texts",
    "group": "from the call for other answers that make the same claims",
}
"""How a label came about, in words."""

_STATES = {"answered": "answers", "absent": "silent", "failed": "no answer"}
_FEW = 12
"""Of more sources than this, those that are silent are left out of a question's matrix and named below it."""


@router.get("/audits/{slug}/questions/{number}", response_class=HTMLResponse, include_in_schema=False)
def audit_question(request: Request, slug: str, number: int) -> HTMLResponse:
    """A question: the matrix of its sources, and what each of them says."""
    folder, opened = audit_of(request, slug)
    index = opened.index
    if not 1 <= number <= len(index.questions):
        return not_found(request, "There is no question of this number in this audit.")
    place = number - 1
    question = index.questions[place]
    present, cells = index.matrix(place)
    silent = [source for source in present if index.states[place, source] == SILENT]
    left = silent if len(present) > _FEW else []
    kept = [row for row, source in enumerate(present) if source not in left]
    sources = [present[row] for row in kept]
    base = f"/audits/{slug}/questions/{number}/pairs"

    def link(x: int, y: int) -> str:
        a, b = sorted((sources[x] + 1, sources[y] + 1))
        return f"{base}/{a}/{b}"

    names = [index.sources[source].id for source in sources]
    order, labels = index.domain.order, index.labels[place].tolist()
    asked = range(len(index.sources))
    listed, before, after = _listed(request, folder, index, place)
    return render(
        request,
        "browse/audit_question.html",
        title=f"{question.id} in {slug}",
        folder=folder,
        question=question,
        number=number,
        count=len(index.questions),
        asked=(question_view(question),),
        matrix=label_matrix(names, order, cells[kept][:, kept], link) if len(names) > 1 else "",
        key=label_key(order, dict(zip(order, labels[1:], strict=True))),
        judged=index.judged(place),
        diverging=index.diverging(place),
        left=[index.sources[source].id for source in left],
        answers=_answers(index, place, [source for source in asked if source not in left]),
        benchmark=question_link(site_of(request), question),
        listed=listed,
        before=before,
        after=after,
    )


@router.get("/audits/{slug}/questions/{number}/pairs/{a}/{b}", response_class=HTMLResponse, include_in_schema=False)
def audit_pair(request: Request, slug: str, number: int, a: int, b: int) -> HTMLResponse:
    """Two sources on one question: what the judge says, both answers, and the passages behind them."""
    folder, opened = audit_of(request, slug)
    index = opened.index
    most = len(index.sources)
    inside = 1 <= number <= len(index.questions) and 1 <= a <= most and 1 <= b <= most
    row = index.row_of(number - 1, a - 1, b - 1) if inside else None
    if row is None:
        return not_found(request, "These two sources were not compared on a question of this number.")
    place = number - 1
    pair = index.comparison(row)
    listed = index.pair_row(row)
    choices = audit_choices(request, index)
    site = site_of(request)
    before, after = index.neighbours(wanted_pairs(choices, themes_of(site, folder, index)), row)
    sides = [listed.a - 1, listed.b - 1]
    answers = index.answers(place, sides)
    documents = [passage.document for answer in answers if answer for passage in answer.evidence]
    return render(
        request,
        "browse/pair.html",
        title=f"{pair.a} and {pair.b} on {pair.question}",
        folder=folder,
        number=number,
        question=index.questions[place],
        pair=pair,
        view=(_view(index, pair, sides, answers),),
        sources=[(index.sources[source], source + 1) for source in sides],
        documents=document_links(site, [*(index.sources[source].id for source in sides), *documents]),
        listed=address(f"/audits/{slug}/pairs", choices),
        before=address(pair_links(slug, index.pair_row(before)), choices) if before is not None else "",
        after=address(pair_links(slug, index.pair_row(after)), choices) if after is not None else "",
    )


def _listed(request: Request, folder: Folder, index: AuditIndex, place: int) -> tuple[str, str, str]:
    """The list that a question was found in, and the questions before and after it there; by number if in none."""
    choices = audit_choices(request, index)
    order = request.query_params.get("order", "") if choices else request.query_params.get("order", "number")
    wanted = wanted_pairs(choices, themes_of(site_of(request), folder, index))
    places = ordered_places(index, wanted, order)
    here = places.index(place) if place in places else None
    kept = {**choices, **({"order": order} if order and (choices or "order" in request.query_params) else {})}
    base = f"/audits/{folder.slug}/questions"

    def link(step: int) -> str:
        there = here is not None and 0 <= here + step < len(places)
        return address(f"{base}/{places[here + step] + 1}", kept) if there and here is not None else ""

    return address(base, kept), link(-1), link(1)


def _answers(index: AuditIndex, question: int, sources: Sequence[int]) -> tuple[Block, ...]:
    """What each source says, behind its name."""
    views = []
    for source, answer in zip(sources, index.answers(question, sources), strict=True):
        if answer is None:
            continue
        state = state_of(answer)
        cited = f"Cites: {'; '.join(answer.citations)}" if answer.citations and state == "answered" else ""
        views.append(
            AnswerView(
                system=index.sources[source].id,
                verdict="unscored" if state == "failed" else "plain",
                verdict_text=_STATES[state],
                text=silent_text(answer) or answer.text,
                folded=True,
                reading=cited,
                warnings=answer.warnings,
            )
        )
    return tuple(views)


def _view(index: AuditIndex, pair: Comparison, sides: Sequence[int], answers: Sequence[Answer | None]) -> PairView:
    views = [
        side_view(answer, index.sources[source].title)
        if answer
        else SideView(name=index.sources[source].id, text="This answer is not in the audit's table.")
        for source, answer in zip(sides, answers, strict=True)
    ]
    order = index.domain.order
    return PairView(
        a=views[0],
        b=views[1],
        label=pair.label or NO_LABEL,
        tone=tone_of(order.index(pair.label), len(order)) if pair.label in order else 0,
        facts=tuple(_facts(index, pair)),
        reasoning=failure_text(pair.failure) if pair.failure else pair.reasoning,
    )


def _facts(index: AuditIndex, pair: Comparison) -> list[str]:
    """What is known of the pair beside its label, in words."""
    order, economy = index.probes(pair)
    told = [f"{pair.significance} significance"] if pair.significance else []
    told += [f"they differ in: {pair.topic}"] if pair.topic else []
    told += [f"judge: {pair.judge}"] if pair.judge else []
    told += [BASES.get(pair.basis, pair.basis)] if pair.basis else []
    if order:
        again = order.swapped or f"no label ({order.failure or 'failed'})"
        same = "the same label" if order.swapped == order.label else f"{again}, not {order.label}"
        told.append(f"judged again with the answers exchanged: {same}")
    if economy:
        real = economy.judged or f"no label ({economy.failure or 'failed'})"
        told.append(f"judged for real, as a sample: {'the same label' if real == economy.spread else real}")
    return told
