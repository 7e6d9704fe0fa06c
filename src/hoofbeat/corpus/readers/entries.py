"""What a reader yields: documents, and refusals of single documents where the rest of a file can go on.

A file that can't be read at all raises; a row of a table or a member of a package that can't be read is a `Refusal`
among the documents, so that one bad row never costs the others.
"""

from __future__ import annotations

from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.records import Document

__all__ = ["Entry", "Refusal", "member_of", "refusal"]


class Refusal(Struct, frozen=True, kw_only=True):
    """One document of a file that was not taken: where in the file, why, and the reason without its particulars."""

    member: str
    reason: str
    group: str


class Entry(Struct, frozen=True, kw_only=True):
    """One document of a file and where in the file it stands (empty when it is the whole file)."""

    document: Document
    member: str = ""


def refusal(member: str, err: InputError) -> Refusal:
    """An error about one member as a refusal; the group is the message up to its first colon."""
    return Refusal(member=member, reason=err.what, group=err.what.partition(":")[0])


def member_of(number: int) -> str:
    """How a row is named: by its line."""
    return f"line {number}"
