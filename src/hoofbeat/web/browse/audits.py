"""Audits: what sources say alike and what they don't, from the figures for all of them down to two passages."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from hoofbeat.text import cut
from hoofbeat.web.browse import audit_lists, audit_pages, audits_api
from hoofbeat.web.browse.address_filters import address
from hoofbeat.web.browse.audit_folders import KIND, asked_too, audit_of, open_shift, themes_html, themes_of
from hoofbeat.web.browse.audit_lists import tone_class
from hoofbeat.web.browse.preparing import figures_page, preparing_page
from hoofbeat.web.page_rendering import not_found, render
from hoofbeat.web.site import site_of

__all__ = ["router"]

router = APIRouter()
router.include_router(audits_api.router)
router.include_router(audit_lists.router)
router.include_router(audit_pages.router)

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
