"""What a plain form of the review pages brings: its fields, and the version its page showed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import Depends, Request
from starlette.datastructures import FormData

from hoofbeat.review.forms import FormField

__all__ = ["Posted", "form_values", "version_of"]

_PREFIX = "v:"


async def _posted(request: Request) -> FormData:
    return await request.form()


Posted = Annotated[FormData, Depends(_posted)]
"""The fields of a plain form."""


def form_values(fields: Iterable[FormField], form: FormData) -> dict[str, Any]:
    """The values of a plain form by field; ticked boxes come as several of one name."""
    return {
        field.name: [str(each) for each in form.getlist(_PREFIX + field.name)]
        if field.kind == "options"
        else str(form.get(_PREFIX + field.name, ""))
        for field in fields
    }


def version_of(form: FormData) -> int:
    """The version that the form's page showed; 0 where it says none."""
    text = str(form.get("base") or "0")
    return int(text) if text.isdecimal() and len(text) < 10 else 0
