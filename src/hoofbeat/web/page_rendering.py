"""How a page is made: one environment of templates, everything foreign escaped and cleaned of hidden characters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Generic, TypeVar

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from hoofbeat.reports.page import blocks_html
from hoofbeat.text import clean
from hoofbeat.web.site import site_of

T = TypeVar("T")


class ListPage(Struct, Generic[T], frozen=True):
    """Some of a long list: `rows` of page `number` (from 1) of `pages`, of `total` in all."""

    rows: list[T]
    number: int
    pages: int
    total: int


def page_of(rows: Sequence[T], number: int, size: int = 50) -> ListPage[T]:
    """Page `number` of a sequence; one that is out of range is the nearest there is."""
    pages = max(1, -(-len(rows) // size))
    number = min(max(1, number), pages)
    return ListPage(list(rows[(number - 1) * size : number * size]), number, pages, len(rows))


def render(request: Request, template: str, *, title: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A page from a template that extends `base.html`."""
    site = site_of(request)
    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            site=site,
            title=title,
            person=getattr(request.state, "person", None),
            csrf=getattr(request.state, "csrf", ""),
            browses=getattr(request.state, "browses", False),
            path=request.url.path,
            **context,
        )
    )
    return HTMLResponse(text, status_code=status)


def not_found(request: Request, what: str) -> HTMLResponse:
    """The page for something that is not here."""
    return render(request, "error.html", title="Not here", status=404, what=what, fix="go back to the start page")


@cache
def environment() -> Environment:
    """The templates of all pages."""
    made = Environment(
        loader=PackageLoader("hoofbeat.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    made.filters["blocks"] = blocks_html
    return made


def _finalize(value: object) -> object:
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
