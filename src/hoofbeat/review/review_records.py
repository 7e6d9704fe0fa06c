"""What the review pages keep: studies with their items, people, who is to look at what, what they said, and the trail.

A study asks people one kind of thing about items of one artefact. What a person said of an item is one `ItemLabel` with
a version; every change of it leaves the version before in the trail, so it can be undone and nothing is ever lost.
Times are seconds since 1970, UTC.

A refusal of the review store has the HTTP status that a page answers with.
"""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import Any, Literal

from msgspec import Struct, field

from hoofbeat.errors import InputError, OutputError
from hoofbeat.store.tables import canonical_json

PersonRole = Literal["reviewer", "adjudicator", "admin"]
LabelState = Literal["draft", "done", "skipped"]
KNOWN_CODE = "code"


def in_utc(seconds: float) -> str:
    """A time for people."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def item_code(*parts: object, secret: str = "") -> str:
    """A code that tells nothing about its item, and is safe in an address.

    Where the parts can be guessed, as ids can, `secret` is what reviewers can't know: the hash of the folder's content.
    """
    key = hashlib.sha256(secret.encode()).digest() if secret else b""
    return hashlib.blake2b(canonical_json(["item", *parts]), digest_size=6, key=key).hexdigest()


class Study(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task for people. `form` names what is asked; `source` is the artefact it is about (name and content hash).

    `settings` holds the plan (reviewers per item, overlap, strata, seed), the exam's rules, the pack's labels and
    whatever else the form needs; it is what exports record. `made_from` are the hashes of what the artefact was made
    from, which a study that hides its artefact hides as well.
    """

    id: str
    title: str
    form: str
    source: str
    source_sha256: str
    settings: dict[str, Any] = field(default_factory=dict)
    created: float = 0.0
    closed: bool = False
    made_from: tuple[str, ...] = ()


class ItemMaterial(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is shown with an item. `kind`: question, case, answer, gold, options, quote, source, image, note.

    `marks` are half-open ranges of `text` to be highlighted; `lines` are the entries of options or a list.
    """

    title: str
    text: str = ""
    kind: str = "case"
    lines: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()


class ReviewItem(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing to look at. `id` is blinded where the form is; `key` finds it again in the artefact, never shown.

    `criteria` are those of the form's fields that are asked of this item (empty: all), `stratum` is for assignment,
    `group` its specialty or other facet, `stage` which round of a form in several stages it belongs to.
    """

    id: str
    study: str
    place: int
    shown: tuple[ItemMaterial, ...]
    criteria: tuple[str, ...] = ()
    key: dict[str, Any] = field(default_factory=dict)
    stratum: str = ""
    group: str = ""
    stage: str = ""

    @property
    def known_code(self) -> str:
        """The code by which readers of labels find the item: where it is blinded, its id is of this study alone.

        Studies that were made before ids were of one study have that code as the id.
        """
        return str(self.key.get(KNOWN_CODE, self.id))


class Person(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Somebody with an invitation. `groups` are specialties; `studies` those the person may see (empty: all).

    The invitation's link works once, until `link_until`; `link_used` says when that was (0: not yet).
    """

    id: str
    name: str
    role: PersonRole
    groups: tuple[str, ...] = ()
    studies: tuple[str, ...] = ()
    active: bool = True
    invited: float = 0.0
    link_until: float = 0.0
    link_used: float = 0.0

    def link_trouble(self, now: float) -> str:
        """Why the link does not sign the person in; empty where it does."""
        if not self.active:
            return "access was ended"
        if self.link_used:
            return f"this link was used on {in_utc(self.link_used)}, and a link works once"
        return f"this link ended on {in_utc(self.link_until)}" if self.link_until <= now else ""

    def sees(self, study: str) -> bool:
        """Whether the person may see a study."""
        return not self.studies or study in self.studies


class Assignment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """That a person is to look at an item, as number `place` of theirs; `why`: plan, overlap, flagged, revision, ..."""

    study: str
    item: str
    person: str
    place: int
    why: str = "plan"


class ItemLabel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person says of an item: values by field. `version` counts changes from 1, `seconds` is time spent."""

    study: str
    item: str
    person: str
    values: dict[str, Any]
    state: LabelState
    version: int
    seconds: float = 0.0
    reason: str = ""
    changed: float = 0.0


class SaveResult(Struct, frozen=True, kw_only=True):
    """What became of a save: the label as it stands now; `conflict` says that it was not taken, being out of date."""

    label: ItemLabel
    conflict: bool = False


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an adjudicator settles for an item over which reviewers differ or which one of them flagged."""

    study: str
    item: str
    person: str
    values: dict[str, Any]
    note: str = ""
    changed: float = 0.0
    version: int = 1


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the trail: who did what, when, to what; `before` and `after` are what it changed."""

    id: int
    at: float
    person: str
    what: str
    study: str = ""
    item: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


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


def not_yours(what: str, fix: str = "ask the person who invited you") -> ReviewRefusalError:
    """The person may not do this."""
    return ReviewRefusalError(what, fix=fix, status=403)


def study_closed() -> ReviewRefusalError:
    """The study takes no more labels."""
    return ReviewRefusalError(
        "this study is closed and takes no more changes", fix="ask whoever leads the study if it is needed", status=409
    )
