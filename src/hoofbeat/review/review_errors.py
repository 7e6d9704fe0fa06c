"""Why the review store refuses something, with the HTTP status that a page answers with."""

from __future__ import annotations

from hoofbeat.errors import InputError, OutputError


class ReviewRefusalError(InputError):
    """The review store won't do this: unknown, not yours, closed, out of date. `status` is its HTTP status."""

    def __init__(self, what: str, *, fix: str | None = None, status: int = 400) -> None:
        super().__init__(what, fix=fix)
        self.status = status


class DatabaseError(OutputError):
    """The database can't be used: out of reach, not writable, full, or not ours."""

    status = 503


def not_here(what: str) -> ReviewRefusalError:
    """There is no such study, item or person."""
    return ReviewRefusalError(what, fix="go back and follow a link from your list", status=404)


def not_yours(what: str, fix: str = "ask whoever invited you") -> ReviewRefusalError:
    """The person may not do this."""
    return ReviewRefusalError(what, fix=fix, status=403)


def study_closed() -> ReviewRefusalError:
    """The study takes no more labels."""
    return ReviewRefusalError(
        "this study is closed and takes no more changes", fix="ask whoever leads the study if it is needed", status=409
    )
