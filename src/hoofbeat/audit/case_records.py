"""What is kept of a disagreement and of what a team decided on it; light, because the review store loads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal, get_args

from msgspec import Struct

CaseStatus = Literal["open", "accepted", "follow", "dismissed", "escalated"]
STATUSES: tuple[CaseStatus, ...] = get_args(CaseStatus)
CLOSED: tuple[CaseStatus, ...] = ("accepted", "follow", "dismissed")
"""The statuses that end the work on a case until its words change."""

CaseState = Literal["reopened", "escalated", "new", "open", "closed", "gone"]
STATES: tuple[CaseState, ...] = get_args(CaseState)
"""How a case of this audit relates to what was decided: `new` has no decision yet, `gone` disagrees no more."""


class SideWords(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one source said: its answer (empty where it was silent) and the words it quotes.

    `quotes` are in the source; `not_found` are words that the answer gives as quotes and that the source does not have
    so, or that are too short to find.
    """

    source: str
    answer: str = ""
    quotes: tuple[str, ...] = ()
    not_found: tuple[str, ...] = ()


class DisagreementCase(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question on which two sources disagree, with the words they disagree in.

    `id` follows from the question and the sources, so that the next audit finds the case again. `topic` is the
    question's group, `about` what the judge says they differ in.
    """

    id: str
    question: str
    text: str
    a: SideWords
    b: SideWords
    label: str
    significance: str = ""
    about: str = ""
    topic: str = ""
    reasoning: str = ""

    @property
    def sources(self) -> tuple[str, str]:
        """The two sources."""
        return self.a.source, self.b.source


class CaseDecision(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One version of what a team decided on a case, signed and dated; a later version follows it and changes nothing.

    `follow` is the source that is followed where the status says so, `position` what is done here, `seen` the case as
    it was when this was decided, in the audit of that name. `at` is seconds since 1970, UTC.
    """

    case: str
    version: int
    status: CaseStatus
    seen: DisagreementCase
    person: str
    name: str
    at: float
    owner: str = ""
    follow: str = ""
    position: str = ""
    note: str = ""
    audit: str = ""
    audit_sha256: str = ""

    @property
    def date(self) -> str:
        """The day and minute it was signed."""
        return datetime.fromtimestamp(self.at, UTC).strftime("%Y-%m-%d %H:%M UTC")

    def status_words(self, name: Callable[[str], str] = str) -> str:
        """The status as people say it: `follow` names whom."""
        return f"follow {name(self.follow)}" if self.status == "follow" else self.status


class WorklistRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A case of an audit with the decision on it, if any; `changes` say why a closed case is open again."""

    case: DisagreementCase
    state: CaseState
    decision: CaseDecision | None = None
    changes: tuple[str, ...] = ()
    against_reference: bool = False


def newest(decisions: Iterable[CaseDecision]) -> dict[str, CaseDecision]:
    """The last version of the decision on each case."""
    found: dict[str, CaseDecision] = {}
    for each in decisions:
        if each.case not in found or found[each.case].version < each.version:
            found[each.case] = each
    return found
