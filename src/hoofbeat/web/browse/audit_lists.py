"""An audit's questions and pairs as lists, found by group, topic, significance, source and label."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct

from hoofbeat.facets import facet_values
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.indexes.pair_index import NO_LABEL, AuditIndex, AuditPairRow, PairFilter
from hoofbeat.reports.words import written
from hoofbeat.text import cut
from hoofbeat.web.browse.address_filters import FACET, Choices, Picker, address, choices_of, facet_key, page_number
from hoofbeat.web.browse.audit_figures import ThemeSummary, audit_of, themes_of
from hoofbeat.web.page_rendering import ListPage, page_of, render
from hoofbeat.web.site import site_of

router = APIRouter()

NAMES = ("label", "level", "a", "b", "topic", "theme")
"""What pairs can be found by, beside the facets of their questions."""

_SIZE = 50
_TOPICS = 60
_TITLE = 160
_ORDERS = (("share", "share diverging"), ("diverging", "diverging pairs"), ("number", "number"))


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
        title=f"Questions of {slug}",
        folder=folder,
        index=index,
        pickers=[*_pickers(index, choices, themes), ("order", "First", _ORDERS, order)],
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
        title=f"Pairs of {slug}",
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
        facets=tuple((name.removeprefix(FACET), value) for name, value in choices.items() if name.startswith(FACET)),
    )


def _number(words: str) -> int:
    if not words:
        return 0
    return int(words) if words.isascii() and words.isdigit() and len(words) < 8 else 10_000_000


def _pickers(index: AuditIndex, choices: Choices, found: ThemeSummary) -> list[Picker]:
    sources = tuple((str(number), source.id) for number, source in enumerate(index.sources, start=1))
    labels = tuple((label, label) for label in (*reversed(index.domain.order), NO_LABEL))
    topics = [(str(number), f"{cut(words, 60)} ({count:,})") for number, (words, count) in enumerate(index.topics, 1)]
    shown = [each for each in topics if each[0] == choices.get("topic") or int(each[0]) <= _TOPICS]
    themes = tuple((str(number), f"{cut(name, 60)} ({n:,})") for number, (name, n, _) in enumerate(found.named, 1))
    offered: list[tuple[str, str, Sequence[tuple[str, str]]]] = [
        ("label", "Label", labels),
        ("level", "Significance", tuple((level, level) for level in reversed(index.levels))),
        ("a", "Source", sources),
        ("b", "and source", sources),
        *((facet_key(name), title.capitalize(), [(v, v) for v in values]) for name, title, values in index.facets),
        ("theme", "Theme", themes),
        ("topic", "Topic", tuple(shown)),
    ]
    return [
        (name, words, tuple(values), choices.get(name, ""))
        for name, words, values in offered
        if len(values) > 1 or choices.get(name)
    ]


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
