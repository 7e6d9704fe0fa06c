"""How a citation is written: the heading of a section, and its page where one is known."""

from __future__ import annotations

import re

_PAGE = re.compile(r" \(page \d+\)\Z")


def format_citation(heading: str, page: int | None) -> str:
    """The citation of a section."""
    return heading if page is None else f"{heading} (page {page})"


def cites_heading(citation: str, heading: str) -> bool:
    """Whether a citation names this heading."""
    return heading in (citation, _PAGE.sub("", citation))
