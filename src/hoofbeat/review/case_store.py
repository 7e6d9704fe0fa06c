"""Decisions on the disagreements of audits, kept by the review store: every version is a row that nothing changes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, insert, select

from hoofbeat.audit.case_records import STATUSES, CaseDecision, DisagreementCase, newest
from hoofbeat.review.database import case_decisions, events, people
from hoofbeat.review.review_labels import REQUEST
from hoofbeat.review.review_records import ReviewRefusalError, not_yours
from hoofbeat.review.store_base import StoreBase, from_json, storable_text, to_json

_MAX_NAME = 200
_MAX_TEXT = 4000


class CaseStore(StoreBase):
    """The decisions on cases in the review store."""

    def decide_case(
        self,
        seen: DisagreementCase,
        person: str,
        *,
        status: str,
        owner: str = "",
        follow: str = "",
        position: str = "",
        note: str = "",
        audit: str = "",
        audit_sha256: str = "",
        base: int = 0,
        request: str,
    ) -> CaseDecision:
        """Decide on a case as it is `seen` now: a new version beside all earlier ones.

        `base` is the version that the page showed (0: none yet); a stale one is refused. `request` names this save.
        """
        if not REQUEST.fullmatch(request):
            raise ReviewRefusalError("a save needs an id", fix="letters, digits and . _ : - up to 100 of them")
        kept = _checked(seen, status=status, owner=owner, follow=follow, position=position, note=note)
        body = to_json(seen)

        def job(connection: Connection) -> CaseDecision:
            earlier = connection.execute(
                select(events.c.what, events.c.item, events.c.after).where(
                    events.c.person == person, events.c.request == request
                )
            ).one_or_none()
            name = _may_decide(connection, person)
            rows = connection.execute(
                select(case_decisions).where(case_decisions.c.case == seen.id).order_by(case_decisions.c.version)
            ).all()
            if earlier is not None:
                return _repeated(earlier, rows, seen.id)
            if base != (rows[-1].version if rows else 0):
                raise ReviewRefusalError(
                    "someone else has decided on this case", fix="reload the page to see the decision", status=409
                )
            made = CaseDecision(
                case=seen.id,
                version=base + 1,
                seen=seen,
                person=person,
                name=name,
                at=time.time(),
                audit=storable_text(audit),
                audit_sha256=audit_sha256,
                **kept,
            )
            connection.execute(insert(case_decisions), {**msgspec.structs.asdict(made), "seen": body})
            before = _short(_decision_of(rows[-1])) if rows else None
            self._note(
                connection,
                "case decided",
                by=person,
                item=seen.id,
                before=before,
                after=_short(made),
                request=request,
                at=made.at,
            )
            return made

        return self._database.together(job)

    def case_history(self, case: str | None = None) -> list[CaseDecision]:
        """Every version of the decision on a case, or on all cases, the first first."""
        query = select(case_decisions).order_by(case_decisions.c.case, case_decisions.c.version)
        if case is not None:
            query = query.where(case_decisions.c.case == case)
        with self._database.read() as connection:
            return [_decision_of(row) for row in connection.execute(query)]

    def case_decisions(self) -> dict[str, CaseDecision]:
        """The newest decision on each case."""
        return newest(self.case_history())


def _checked(seen: DisagreementCase, *, status: str, **texts: str) -> dict[str, Any]:
    """What is kept of a decision; a status that needs more words than it has is refused."""
    if status not in STATUSES:
        raise ReviewRefusalError(f"there is no status {status!r}", fix=f"one of {', '.join(STATUSES)}")
    kept = {name: storable_text(text).strip() for name, text in texts.items()}
    if status == "follow" and not kept["follow"]:
        raise ReviewRefusalError("no source to follow is chosen", fix=f"choose {seen.a.source} or {seen.b.source}")
    if status != "follow":
        kept["follow"] = ""
    elif kept["follow"] not in seen.sources:
        raise ReviewRefusalError(
            "the source to follow is not one of the two that disagree", fix=f"choose {seen.a.source} or {seen.b.source}"
        )
    for name, text in kept.items():
        limit = _MAX_NAME if name in ("owner", "follow") else _MAX_TEXT
        if len(text) > limit:
            raise ReviewRefusalError(f"the {name} is too long", fix=f"at most {limit} characters")
    return {"status": status, **kept}


def _may_decide(connection: Connection, person: str) -> str:
    """The name of a person who may decide; others are refused."""
    row = connection.execute(select(people).where(people.c.id == person, people.c.active)).one_or_none()
    if row is None:
        raise not_yours("your invitation is no longer valid")
    if row.role not in ("adjudicator", "admin"):
        raise not_yours("only adjudicators and admins decide on cases")
    return str(row.name)


def _repeated(earlier: Row[Any, Any, Any], rows: Sequence[Row[Any]], case: str) -> CaseDecision:
    """The decision that this very request made before."""
    if (earlier.what, earlier.item) != ("case decided", case):
        raise ReviewRefusalError("this id was used for another save", fix="reload the page", status=409)
    version = from_json(earlier.after, dict[str, Any])["version"]
    return next(_decision_of(row) for row in rows if row.version == version)


def _short(decision: CaseDecision) -> dict[str, Any]:
    """A decision as the trail tells it: without the case's own words, which the version holds."""
    names = ("status", "owner", "follow", "position", "note", "audit", "version")
    return {name: value for name in names if (value := getattr(decision, name))}


def _decision_of(row: Row[Any]) -> CaseDecision:
    columns = dict(row._mapping)
    return CaseDecision(**{**columns, "seen": from_json(columns["seen"], DisagreementCase)})
