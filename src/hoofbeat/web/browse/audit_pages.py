"""Audits: where sources agree and differ, from the figures over all pairs down to one question and two passages.

Questions and pairs are listed by group, topic, significance, source and label; pairs are also given as JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Query, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct
from pydantic import BaseModel

from hoofbeat.facets import facet_values
from hoofbeat.records import Answer, Comparison
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.item_views import failure_text, question_view
from hoofbeat.reports.model import AnswerView, Block, PairView, SideView
from hoofbeat.reports.page import label_key, label_matrix
from hoofbeat.reports.pair_index import NO_LABEL, SILENT, AuditIndex, AuditPairRow, PairFilter
from hoofbeat.reports.sections.audits.audit_facts import miss_notes, side_view, state_of
from hoofbeat.reports.tables import written
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut
from hoofbeat.web.browse.audit_figures import (
    KIND,
    ThemeSummary,
    asked_too,
    audit_of,
    open_audit,
    open_shift,
    themes_html,
    themes_of,
)
from hoofbeat.web.browse.links import (
    Choices,
    PageNumber,
    PageSize,
    Picker,
    Slug,
    address,
    choices_of,
    document_links,
    facet_key,
    facets_chosen,
    page_number,
    pickers_of,
    question_link,
)
from hoofbeat.web.browse.open_folders import figures_page, opened_for_script, preparing_page
from hoofbeat.web.folder_titles import folder_title
from hoofbeat.web.page_rendering import (
    FOLDER_ERRORS,
    ListPage,
    not_found,
    page_of,
    render,
)
from hoofbeat.web.site import site_of

router = APIRouter()

NAMES = ("label", "level", "a", "b", "topic", "theme")
"""What pairs can be found by, beside the facets of their questions."""

_SIZE = 50
_OFFERED_TOPICS = 60
_TITLE = 160
_ORDERS = (("share", "highest share of disagreement"), ("diverging", "most disagreeing pairs"), ("number", "number"))


class AuditQuestionRow(Struct, frozen=True, kw_only=True):
    """A question in a list: how many pairs match, were judged, and diverge; `marks` are its labels counted."""

    number: int
    id: str
    title: str
    group: str
    matching: int
    judged: int
    diverging: int
    share: str
    marks: tuple[tuple[str, str], ...]


@router.get("/audits/{slug}/questions", response_class=HTMLResponse, include_in_schema=False)
def audit_questions(request: Request, slug: str) -> HTMLResponse:
    """The questions of an audit, those with most divergence first."""
    site = site_of(request)
    folder, opened = audit_of(request, slug)
    index = opened.index
    choices = audit_choices(request, index)
    order = request.query_params.get("order", "share")
    themes = themes_of(site, folder, index)
    wanted = wanted_pairs(choices, themes)
    paged = page_of(ordered_places(index, wanted, order), page_number(request), _SIZE)
    base = f"/audits/{slug}/questions"
    kept = {**choices, **({"order": order} if order != "share" else {})}
    matching, _ = index.found(wanted)
    return render(
        request,
        "browse/audit_questions.html",
        title=f"Questions: {folder_title(site, folder)}",
        folder=folder,
        index=index,
        pickers=[*_pickers(index, choices, themes), ("order", "Order", _ORDERS, order)],
        paged=ListPage(
            [_asked(index, place, int(matching[place])) for place in paged.rows],
            paged.number, paged.pages, paged.total,
        ),
        narrowed=not wanted.everything,
        pairs=address(f"/audits/{slug}/pairs", choices),
        link=lambda number: address(base, kept, page=number),
        question=lambda number: address(f"{base}/{number}", choices, order=order),
        clear=base if choices else "",
    )  # fmt: skip


@router.get("/audits/{slug}/pairs", response_class=HTMLResponse, include_in_schema=False)
def audit_pairs(request: Request, slug: str) -> HTMLResponse:
    """The pairs of an audit, the most serious first."""
    site = site_of(request)
    folder, opened = audit_of(request, slug)
    index = opened.index
    choices = audit_choices(request, index)
    themes = themes_of(site, folder, index)
    wanted = wanted_pairs(choices, themes)
    number = page_number(request)
    rows, total = index.serious(wanted, (number - 1) * _SIZE, _SIZE)
    pages = max(1, -(-total // _SIZE))
    if number > pages:
        number = pages
        rows, total = index.serious(wanted, (number - 1) * _SIZE, _SIZE)
    base = f"/audits/{slug}/pairs"
    return render(
        request,
        "browse/audit_pairs.html",
        title=f"Pairs of sources: {folder_title(site, folder)}",
        folder=folder,
        index=index,
        pickers=_pickers(index, choices, themes),
        paged=ListPage(rows, number, pages, total),
        tone=lambda label: tone_class(index, label),
        level=lambda name: f"level{len(index.levels) - 1 - index.levels.index(name)}" if name in index.levels else "",
        texts=[cut(question.text, _TITLE) for question in index.questions],
        link=lambda page: address(base, choices, page=page),
        pair=lambda row: address(pair_links(slug, row), choices),
        questions=address(f"/audits/{slug}/questions", choices),
        clear=base if choices else "",
    )


def pair_links(slug: str, row: AuditPairRow) -> str:
    """Where a pair is."""
    return f"/audits/{slug}/questions/{row.question}/pairs/{row.a}/{row.b}"


def audit_choices(request: Request, index: AuditIndex) -> Choices:
    """What an address asks for."""
    return choices_of(request, [*NAMES, *(facet_key(name) for name, _, _ in index.facets)])


def wanted_pairs(choices: Choices, themes: ThemeSummary) -> PairFilter:
    """The same as a filter; a number that is none matches nothing."""
    a, b, topic, theme = (_number(choices.get(name, "")) for name in ("a", "b", "topic", "theme"))
    topics: tuple[int, ...] | None = themes.topics(theme) if theme else None
    if topic:
        topics = (topic - 1,) if topics is None or topic - 1 in topics else ()
    return PairFilter(
        a=a,
        b=b,
        label=choices.get("label", ""),
        level=choices.get("level", ""),
        topics=topics,
        facets=facets_chosen(choices),
    )


def _number(words: str) -> int:
    if not words:
        return 0
    return int(words) if words.isascii() and words.isdigit() and len(words) < 8 else 10_000_000


def _pickers(index: AuditIndex, choices: Choices, found: ThemeSummary) -> list[Picker]:
    sources = tuple((str(number), index.names.short(source.id)) for number, source in enumerate(index.sources, start=1))
    labels = tuple((label, label) for label in (*reversed(index.domain.order), NO_LABEL))
    topics = [(str(number), f"{cut(words, 60)} ({count:,})") for number, (words, count) in enumerate(index.topics, 1)]
    shown = [each for each in topics if each[0] == choices.get("topic") or int(each[0]) <= _OFFERED_TOPICS]
    themes = tuple((str(number), f"{cut(name, 60)} ({n:,})") for number, (name, n, _) in enumerate(found.named, 1))
    return pickers_of(
        choices,
        [
            ("label", "Label", labels),
            ("level", "Significance", tuple((level, level) for level in reversed(index.levels))),
            ("a", "Source", sources),
            ("b", "and source", sources),
            *((facet_key(name), title.capitalize(), [(v, v) for v in values]) for name, title, values in index.facets),
            ("theme", "Theme", themes),
            ("topic", "They differ in", tuple(shown)),
        ],
    )


def ordered_places(index: AuditIndex, wanted: PairFilter, order: str) -> list[int]:
    """The places of the questions that have a pair like that, as they are to be listed."""
    matching, apart = index.found(wanted)
    places = [place for place, count in enumerate(matching.tolist()) if count or wanted.everything]
    if order == "number":
        return places
    if order == "diverging":
        return sorted(places, key=lambda place: (-int(apart[place]), place))
    shares = {place: index.diverging(place) / max(1, index.judged(place)) for place in places}
    return sorted(places, key=lambda place: (-shares[place], -int(apart[place]), place))


def _asked(index: AuditIndex, place: int, matching: int) -> AuditQuestionRow:
    question = index.questions[place]
    judged, apart = index.judged(place), index.diverging(place)
    group = ", ".join(facet_values(question.facets, index.facets[0][0])) if index.facets else ""
    counts = dict(zip((NO_LABEL, *index.domain.order), index.labels[place].tolist(), strict=True))
    return AuditQuestionRow(
        number=place + 1,
        id=question.id,
        title=cut(question.text, _TITLE),
        group=group,
        matching=matching,
        judged=judged,
        diverging=apart,
        share=written(apart / judged, "share") if judged else "–",
        marks=tuple(
            (f"{label} {counts[label]:,}", tone_class(index, label))
            for label in (*index.domain.order, NO_LABEL)
            if counts[label] and label != index.domain.absent
        ),
    )


def tone_class(index: AuditIndex, label: str) -> str:
    """The colour of a label."""
    order = index.domain.order
    return f"tone{tone_of(order.index(label), len(order))}" if label in order else ""


_LISTED_TOPICS = 200


@router.get("/audits/{slug}", response_class=HTMLResponse, include_in_schema=False)
def audit_page(request: Request, slug: str) -> HTMLResponse:
    """An audit: how often sources disagree, who with whom, and which disagreements are the most serious."""
    return _overview(request, slug, "browse/audit.html")


@router.get("/audits/{slug}/sources", response_class=HTMLResponse, include_in_schema=False)
def audit_sources(request: Request, slug: str) -> HTMLResponse:
    """Source by source: who stands apart, and who covers what."""
    return _overview(request, slug, "browse/audit_sources.html", "Sources: ")


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
        title=f"What the sources disagree about: {folder_title(site, folder)}",
        folder=folder,
        drawn=drawn,
        themes=[(name, count, address(base, theme=number)) for number, (name, count, _) in enumerate(named, start=1)],
        topics=[
            (words, count, address(base, topic=number))
            for number, (words, count) in enumerate(opened.index.topics[:_LISTED_TOPICS], start=1)
        ],
        wordings=len(opened.index.topics),
    )


@router.get("/audits/{slug}/since/{before}", response_class=HTMLResponse, include_in_schema=False)
def audit_since(request: Request, slug: str, before: str) -> HTMLResponse:
    """What changed from one audit to another of the same questions: prevalence, intensity, and labels that moved."""
    site = site_of(request)
    folder, earlier = site.library.folder(slug, KIND), site.library.folder(before, KIND)
    if folder is None or earlier is None or earlier not in asked_too(site, folder):
        return not_found(request, "This server has no two audits of these names with the same questions.")
    shift = open_shift(site, folder, earlier)
    if shift is None:
        return preparing_page(request, folder)
    return render(
        request,
        "browse/audit_since.html",
        title="What changed between two audits",
        folder=folder,
        earlier=earlier,
        shift=shift,
    )


def _overview(request: Request, slug: str, template: str, before: str = "") -> HTMLResponse:
    site = site_of(request)
    folder, opened = audit_of(request, slug)
    index = opened.index
    return figures_page(
        request,
        template,
        folder,
        opened.figures.within(),
        title=f"{before}{folder_title(site, folder)}",
        index=index,
        tone=lambda label: tone_class(index, label),
        others=asked_too(site, folder),
        texts={question.id: cut(question.text, 110) for question in index.questions},
        places={question.id: number for number, question in enumerate(index.questions, start=1)},
        numbers={source.id: number for number, source in enumerate(index.sources, start=1)},
        names=index.names,
    )


BASES = {
    "judged": "the judge compared this pair",
    "absent": "a source is silent, so the judge was not asked",
    "same": "both answers have the same text",
    "shared": "label of another pair with the same two texts",
    "group": "label of another pair with the same positions",
}
"""How a label came about, in words."""

_STATES = {"answered": "answers", "absent": "silent", "failed": "no answer"}
_FEW = 12
_UNFOLDED = 4
"""Of more sources than this, those that are silent are left out of a question's matrix and named below it."""


@router.get("/audits/{slug}/questions/{number}", response_class=HTMLResponse, include_in_schema=False)
def audit_question(request: Request, slug: str, number: int) -> HTMLResponse:
    """A question: the matrix of its sources, and what each of them says."""
    folder, opened = audit_of(request, slug)
    index = opened.index
    if not 1 <= number <= len(index.questions):
        return not_found(request, "This audit has no question of this number.")
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

    names = [index.names.short(index.sources[source].id) for source in sources]
    order, labels = index.domain.order, index.labels[place].tolist()
    asked = range(len(index.sources))
    listed, before, after = _listed(request, folder, index, place)
    return render(
        request,
        "browse/audit_question.html",
        title=cut(question.text, _TITLE),
        folder=folder,
        question=question,
        number=number,
        count=len(index.questions),
        asked=(question_view(question),),
        matrix=label_matrix(names, order, cells[kept][:, kept], link) if len(names) > 1 else "",
        key=label_key(order, dict(zip(order, labels[1:], strict=True))),
        judged=index.judged(place),
        diverging=index.diverging(place),
        left=[index.names.short(index.sources[source].id) for source in left],
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
        title=f"{index.names.both_judged(pair.reasoning, pair.a, pair.b)}: {cut(index.questions[place].text, _TITLE)}",
        folder=folder,
        number=number,
        question=index.questions[place],
        pair=pair,
        names=index.names,
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
        side = side_view(answer, index.names[answer.source])
        cited = f"Cites: {'; '.join(answer.citations)}" if answer.citations and state == "answered" else ""
        views.append(
            AnswerView(
                id=f"source-{source + 1}",
                system=index.names.full(index.sources[source].id),
                verdict="unscored" if state == "failed" else "plain",
                verdict_text=_STATES[state],
                text=answer.text if state == "answered" else side.text,
                folded=len(sources) > _UNFOLDED,
                reading=cited,
                warnings=answer.warnings,
                passages=side.others if answer.absent else side.cited,
                trace=side.trace,
            )
        )
    return tuple(views)


def _view(index: AuditIndex, pair: Comparison, sides: Sequence[int], answers: Sequence[Answer | None]) -> PairView:
    views = [
        side_view(answer, index.names[answer.source])
        if answer
        else SideView(name=index.names.full(index.sources[source].id), text="The audit has no answer of this source.")
        for source, answer in zip(sides, answers, strict=True)
    ]
    order = index.domain.order
    return PairView(
        a=views[0],
        b=views[1],
        label=pair.label or NO_LABEL,
        tone=tone_of(order.index(pair.label), len(order)) if pair.label in order else 0,
        facts=(*_facts(index, pair), *miss_notes(pair.label or "", index.domain, views)),
        reasoning=failure_text(pair.failure)
        if pair.failure
        else index.names.with_names(pair.reasoning, pair.a, pair.b),
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
        told.append(f"judged again with the answers swapped: {same}")
    if economy:
        real = economy.judged or f"no label ({economy.failure or 'failed'})"
        told.append(f"label {economy.carried} taken from another pair; the check by the judge: {real}")
    return told


Name = Annotated[str, Query(max_length=500)]
Number = Annotated[int, Path(ge=1, le=10_000_000)]
_NOWHERE = 10_000_000


class PairOut(BaseModel):
    """A pair: its question and sources by id and by number (from 1), the sources' names, the label and topic."""

    question: str
    number: int
    a: str
    b: str
    numbers: tuple[int, int]
    names: tuple[str, str]
    label: str
    significance: str
    topic: str


class PairsOut(BaseModel):
    """A page of pairs, the most serious first, of `total` that match."""

    page: int
    pages: int
    total: int
    pairs: list[PairOut]


class PairDetailOut(PairOut):
    """A pair in full."""

    reasoning: str
    judge: str
    basis: str
    failure: str | None


@router.get("/api/audits/{slug}/pairs", responses=FOLDER_ERRORS, tags=["audits"])
def pairs(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    question: Name = "",
    a: Name = "",
    b: Name = "",
    label: Name = "",
    significance: Name = "",
) -> PairsOut:
    """The pairs of an audit by question, sources (`a`, `b`: in any order), label and significance."""
    index = _index(request, slug)
    names = {each.id: number for number, each in enumerate(index.sources, start=1)}
    asked = {each.id: number for number, each in enumerate(index.questions, start=1)}
    wanted = PairFilter(
        question=asked.get(question, _NOWHERE) if question else 0,
        a=names.get(a, _NOWHERE) if a else 0,
        b=names.get(b, _NOWHERE) if b else 0,
        label=label,
        level=significance,
    )
    rows, total = index.serious(wanted, (page - 1) * size, size)
    pages = max(1, -(-total // size))
    if page > pages:
        page = pages
        rows, total = index.serious(wanted, (page - 1) * size, size)
    return PairsOut(page=page, pages=pages, total=total, pairs=[_out(index, row) for row in rows])


@router.get(
    "/api/audits/{slug}/questions/{number}/pairs/{a}/{b}",
    responses=FOLDER_ERRORS,
    response_model=PairDetailOut,
    tags=["audits"],
)
def pair(request: Request, slug: Slug, number: Number, a: Number, b: Number) -> PairDetailOut:
    """One pair in full: two sources by their numbers on a question by its number."""
    index = _index(request, slug)
    most = len(index.sources)
    inside = number <= len(index.questions) and a <= most and b <= most
    row = index.row_of(number - 1, a - 1, b - 1) if inside else None
    if row is None:
        raise HTTPException(404, "these two sources were not compared on a question of this number")
    whole = index.comparison(row)
    return PairDetailOut(
        **_out(index, index.pair_row(row)).model_dump(),
        reasoning=whole.reasoning,
        judge=whole.judge,
        basis=whole.basis,
        failure=whole.failure.kind if whole.failure else None,
    )


def _index(request: Request, slug: str) -> AuditIndex:
    return opened_for_script(request, slug, (KIND,), "audit", open_audit).index


def _out(index: AuditIndex, row: AuditPairRow) -> PairOut:
    a, b = (index.names[index.sources[place - 1].id] for place in (row.a, row.b))
    return PairOut(
        question=index.questions[row.question - 1].id,
        number=row.question,
        a=a.id,
        b=b.id,
        numbers=(row.a, row.b),
        names=(a.full, b.full),
        label=row.label,
        significance=row.level,
        topic=row.topic,
    )
