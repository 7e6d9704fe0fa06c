"""Choices that stand in an address: filters of lists, kept from page to page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated
from urllib.parse import quote, urlencode

from fastapi import Path, Query, Request

from hoofbeat.text import one_line

FACET = "facet."
"""How the name of a facet begins in an address."""

PAGE = "page"
_LAST = 1_000_000

Choices = dict[str, str]
"""What was chosen, by its name in the address; nothing is chosen that is not there."""

Picker = tuple[str, str, tuple[tuple[str, str], ...], str]
"""A choice to offer: its name in the address, its label, its values (value, words), and the value chosen."""

Slug = Annotated[str, Path(description="The folder's name as its page's address has it.", max_length=80)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Which page, from 1; beyond the last is the last.")]
PageSize = Annotated[int, Query(ge=1, le=200, description="How many rows a page has.")]


def choices_of(request: Request, names: Iterable[str]) -> Choices:
    """The choices in a request's address, of those that the page knows."""
    return {name: value for name in names if (value := request.query_params.get(name, "").strip())}


def facet_key(name: str) -> str:
    """The name of a facet in an address."""
    return f"{FACET}{one_line(name)}"


def page_number(request: Request) -> int:
    """The page that is asked for; the first where that is no number."""
    words = request.query_params.get(PAGE, "1")
    return min(_LAST, int(words)) if words.isascii() and words.isdigit() and len(words) < 10 else 1


def address(path: str, choices: Mapping[str, str] | None = None, **more: object) -> str:
    """A path of this site with choices behind it; what is empty is left out."""
    wanted = {**(choices or {}), **{name: str(value) for name, value in more.items()}}
    query = urlencode({name: value for name, value in wanted.items() if value}, quote_via=quote)
    return f"{path}?{query}" if query else path
