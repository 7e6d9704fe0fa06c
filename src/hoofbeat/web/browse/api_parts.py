"""What the JSON of runs and audits shares: how errors look, and how long lists are asked for."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import HTTPException, Path, Query
from pydantic import BaseModel

__all__ = ["ERRORS", "Oops", "PageNumber", "PageSize", "Slug", "busy", "missing"]


class Oops(BaseModel):
    """An error: what was wrong, and where we know it, what to do."""

    error: str
    fix: str = ""


ERRORS: dict[int | str, dict[str, Any]] = {
    400: {"model": Oops, "description": "The folder can't be read."},
    404: {"model": Oops, "description": "There is no such folder here."},
    503: {"model": Oops, "description": "The folder is being prepared; ask again after some seconds."},
}
"""The errors that the schema tells of."""

Slug = Annotated[str, Path(description="The folder's name as its page's address has it.", max_length=80)]
PageNumber = Annotated[int, Query(ge=1, le=1_000_000, description="Which page, from 1; beyond the last is the last.")]
PageSize = Annotated[int, Query(ge=1, le=200, description="How many rows a page has.")]


def missing(kind: str) -> HTTPException:
    """There is no folder of that kind and name."""
    return HTTPException(404, f"there is no {kind} of this name here")


def busy() -> HTTPException:
    """The folder is not ready yet."""
    return HTTPException(503, "the folder is being prepared", headers={"Retry-After": "3"})
