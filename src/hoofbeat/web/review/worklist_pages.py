"""The worklist: the disagreements of audits as cases that the team decides on, one by one, each decision signed.

Cases come from the audits this server shows, decisions from the review store. For adjudicators and admins.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_doubts import recorded_doubt
from hoofbeat.audit.case_records import STATES, STATUSES, CaseDecision, CaseState, DisagreementCase, WorklistRow
from hoofbeat.audit.disagreement_cases import (
    COLUMNS,
    count_states,
    decisions_json,
    find_reference,
    opponents,
    read_cases,
    same_sides,
    worklist,
    worklist_cells,
)
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.errors import InputError, UsageError
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.model import Block, PairView
from hoofbeat.reports.sections.audits.word_change_blocks import change_view, words_view
from hoofbeat.reports.tables import csv_text
from hoofbeat.review.review_records import Person
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut
from hoofbeat.web.browse.links import Choices, Picker, address, choices_of, page_number
from hoofbeat.web.browse.open_folders import opened_folder, prepare_in_background
from hoofbeat.web.page_rendering import not_found, page_of, render
from hoofbeat.web.review.task_pages import Posted, version_of
from hoofbeat.web.security import require_adjudicator
from hoofbeat.web.site import Site, site_of, store_of

router = APIRouter(include_in_schema=False)
Adjudicator = Annotated[Person, Depends(require_adjudicator)]
"""The adjudicator or admin who asks."""

_KIND = "audit"
_NAMES = ("state", "owner", "topic", "reference")
_DONE: tuple[CaseState, ...] = ("closed", "gone")
_ALL, _NOBODY = "all", "nobody"
_WORDS: dict[CaseState, str] = {
    "reopened": "open again",
    "escalated": "escalated",
    "new": "new",
    "open": "open",
    "closed": "closed",
    "gone": "no longer disagree",
}
STATUS_WORDS = {
    "open": ("Open", "Someone is working on it."),
    "accepted": ("Accepted", "The difference is known and accepted."),
    "follow": ("Follow", "You follow one of the sources."),
    "dismissed": ("Dismissed", "The sources do not disagree: the model misread them."),
    "escalated": ("Escalated", "Someone else decides."),
}
"""A status as the form says it, and what it means."""

_FIELDS = ("status", "follow", "owner", "position", "note")
_SIZE = 50


class AuditCases(Struct, frozen=True):
    """An audit with its cases, read once for as long as the folder stays the same."""

    audit: Audit
    cases: tuple[DisagreementCase, ...]
    sha256: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its domain, in order."""
        return RelationLabels.of(self.audit.pack.labels).order

    def tone(self, label: str) -> int:
        """The colour of a label, by its place in order."""
        return tone_of(self.labels.index(label), len(self.labels)) if label in self.labels else 0


def _open(site: Site, folder: Folder) -> AuditCases | None:
    return prepare_in_background(site, folder, "cases", _read)


def _read(folder: Folder) -> AuditCases:
    artefact = folder.artefact()
    audit = Audit(artefact)
    return AuditCases(audit, tuple(read_cases(audit)), artefact.reference().sha256)


def _cases_of(request: Request, slug: str) -> tuple[Folder, AuditCases]:
    return opened_folder(request, slug, (_KIND,), "audit", _open)


@router.get("/worklist", response_class=HTMLResponse)
def audits(request: Request, person: Adjudicator) -> HTMLResponse:  # noqa: ARG001 - who may look
    """The audits of this server, each with how its cases are."""
    site = site_of(request)
    decisions = store_of(request).case_decisions()
    rows = []
    for folder in site.library.folders(_KIND):
        opened = _open(site, folder)
        counts = count_states(worklist(opened.audit, opened.cases, decisions)) if opened else None
        rows.append((folder, counts))
    return render(request, "team/worklists.html", title="Worklist", rows=rows, words=_WORDS)


@router.get("/worklist/{slug}", response_class=HTMLResponse)
def cases(request: Request, person: Adjudicator, slug: str) -> HTMLResponse:  # noqa: ARG001 - who may look
    """The cases of an audit, the most serious first."""
    folder, opened = _cases_of(request, slug)
    choices = choices_of(request, _NAMES)
    rows = _rows(request, opened, choices)
    shown = _chosen(rows, choices)
    reference = _reference(opened, choices)
    base = f"/worklist/{slug}"
    counts = count_states(rows)
    return render(
        request,
        "team/worklist.html",
        title=f"Worklist: {slug}",
        folder=folder,
        names=opened.audit.names,
        pickers=_pickers(opened, rows, choices),
        paged=page_of(shown, page_number(request), _SIZE),
        counts=[(_WORDS[state], counts[state], address(base, state=state)) for state in STATES if counts[state]],
        words=_WORDS,
        tone=lambda label: f"tone{opened.tone(label)}",
        texts={question.id: cut(question.text, 160) for question in opened.audit.questions},
        opponents=opponents(opened.cases, reference, opened.audit) if reference else [],
        strongest=opened.labels[-1],
        reference=opened.audit.names.short(next(iter(reference))) if reference else "",
        link=lambda number: address(base, choices, page=number),
        case=lambda row: address(f"{base}/{row.case.id}", choices),
        export=lambda suffix: address(f"{base}/cases.{suffix}", choices),
        clear=base if choices else "",
        saved=request.query_params.get("saved", "") == "yes",
    )


def _rows(request: Request, opened: AuditCases, choices: Choices) -> list[WorklistRow]:
    decisions = store_of(request).case_decisions()
    return worklist(opened.audit, opened.cases, decisions, reference=_reference(opened, choices))


def _reference(opened: AuditCases, choices: Choices) -> frozenset[str]:
    try:
        return find_reference(opened.audit, choices.get("reference", ""))
    except UsageError:  # an address somebody typed: nothing is the reference then
        return frozenset()


def _chosen(rows: Sequence[WorklistRow], choices: Choices) -> list[WorklistRow]:
    """The rows that the choices ask for; without a state, those on which there is work."""
    state, owner, topic = (choices.get(name, "") for name in ("state", "owner", "topic"))
    found = []
    for row in rows:
        mine = row.decision.owner if row.decision else ""
        in_state = row.state not in _DONE if not state else state in (_ALL, row.state)
        if in_state and (not owner or owner == (mine or _NOBODY)) and (not topic or topic == row.case.topic):
            found.append(row)
    return found


def _pickers(opened: AuditCases, rows: Sequence[WorklistRow], choices: Choices) -> list[Picker]:
    owners = Counter(row.decision.owner if row.decision else "" for row in rows)
    topics = sorted({row.case.topic for row in rows if row.case.topic})
    names = opened.audit.names
    offered = [
        ("state", "State", [(_ALL, "all"), *((state, _WORDS[state]) for state in STATES)]),
        ("owner", "Owner", [(name or _NOBODY, name or "nobody") for name in sorted(owners)]),
        ("topic", "Topic", [(topic, cut(topic, 60)) for topic in topics]),
        ("reference", "Our protocol", [(source.id, names.full(source.id)) for source in opened.audit.sources]),
    ]
    return [(name, words, tuple(values), choices.get(name, "")) for name, words, values in offered if values]


@router.get("/worklist/{slug}/cases.csv")
def as_csv(request: Request, person: Adjudicator, slug: str) -> Response:  # noqa: ARG001 - who may look
    """The cases that the list shows, for a spreadsheet."""
    _, opened = _cases_of(request, slug)
    choices = choices_of(request, _NAMES)
    rows = _chosen(_rows(request, opened, choices), choices)
    content = csv_text(COLUMNS, (worklist_cells(row, opened.audit.names) for row in rows))
    return _download(slug, "csv", "text/csv", content.encode())


@router.get("/worklist/{slug}/cases.json")
def as_json(request: Request, person: Adjudicator, slug: str) -> Response:  # noqa: ARG001 - who may look
    """The same as JSON, with every version of the decisions, as `--decisions` reads it."""
    _, opened = _cases_of(request, slug)
    choices = choices_of(request, _NAMES)
    rows = _chosen(_rows(request, opened, choices), choices)
    there = {row.case.id for row in rows}
    versions = [each for each in store_of(request).case_history() if each.case in there]
    return _download(slug, "json", "application/json", decisions_json(versions, rows))


def _download(slug: str, suffix: str, kind: str, content: bytes) -> Response:
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(slug, safe='')}-cases.{suffix}"}
    return Response(content, media_type=f"{kind}; charset=utf-8", headers=headers)


@router.get("/worklist/{slug}/{case}", response_class=HTMLResponse)
def show(request: Request, person: Adjudicator, slug: str, case: str) -> HTMLResponse:  # noqa: ARG001 - who may look
    """One case: both answers, what changed since it was decided, the form and the history."""
    folder, opened = _cases_of(request, slug)
    rows = _rows(request, opened, choices_of(request, _NAMES))
    row = next((each for each in rows if each.case.id == case), None)
    return _page(request, folder, opened, row) if row else _no_case(request)


def _no_case(request: Request) -> HTMLResponse:
    return not_found(request, "This audit does not have this case.")


def _page(
    request: Request,
    folder: Folder,
    opened: AuditCases,
    row: WorklistRow,
    *,
    given: Mapping[str, str] | None = None,
    problem: InputError | None = None,
) -> HTMLResponse:
    store, audit, names = store_of(request), opened.audit, opened.audit.names
    decision = row.decision
    values = given or (_values(decision) if decision else {"status": "open"})
    choices = choices_of(request, _NAMES)
    base = f"/worklist/{folder.slug}"
    order = {question.id: number for number, question in enumerate(audit.questions, start=1)}
    places = {source.id: number for number, source in enumerate(audit.sources, start=1)}
    a, b = sorted(places[source] for source in row.case.sources)
    owners = sorted({each.owner for each in store.case_decisions().values() if each.owner})
    return render(
        request,
        "team/case.html",
        title=f"Case {row.case.question}: {names.both(*row.case.sources)}",
        status=200 if problem is None else getattr(problem, "status", 400),
        folder=folder,
        row=row,
        names=names,
        words=_WORDS,
        view=(_pair(opened, row),),
        changes=_changes(row, opened),
        history=store.case_history(row.case.id)[::-1],
        statuses=[(status, *STATUS_WORDS[status]) for status in STATUSES],
        sources=[(source, names.full(source)) for source in row.case.sources],
        doubt=recorded_doubt(audit.artefact.manifest.metrics),
        values={name: values.get(name, "") for name in _FIELDS},
        people=sorted({*owners, *(each.name for each in store.people() if each.active)}),
        version=decision.version if decision else 0,
        request_id=secrets.token_urlsafe(16),
        problem=problem,
        listed=address(base, choices),
        action=address(f"{base}/{row.case.id}", choices),
        pair=f"/audits/{folder.slug}/questions/{order[row.case.question]}/pairs/{a}/{b}",
    )


def _values(decision: CaseDecision) -> dict[str, str]:
    return {name: getattr(decision, name) for name in _FIELDS}


def _pair(opened: AuditCases, row: WorklistRow) -> PairView:
    names, case = opened.audit.names, row.case
    facts = [
        *([f"significance {case.significance}"] if case.significance else []),
        *([case.about] if case.about else []),
    ]
    return PairView(
        a=words_view(case.a, names[case.a.source]),
        b=words_view(case.b, names[case.b.source]),
        label=case.label,
        tone=opened.tone(case.label),
        facts=tuple(fact for fact in facts if fact),
        reasoning=names.with_names(case.reasoning, *case.sources),
    )


def _changes(row: WorklistRow, opened: AuditCases) -> tuple[Block, ...]:
    """The words a closed case was decided on beside those of now, for each side that changed."""
    if row.state != "reopened" or row.decision is None:
        return ()
    seen, names = row.decision.seen, opened.audit.names
    when = row.decision.audit or "earlier", opened.audit.artefact.path.name
    return tuple(
        change_view(old, new, f"{names.full(new.source)}", when)
        for old, new in same_sides(seen, row.case)
        if old != new
    )


@router.post("/worklist/{slug}/{case}")
def decide(request: Request, person: Adjudicator, slug: str, case: str, form: Posted) -> Response:
    """Keep a decision, then go on to the next open case, or back to the list."""
    folder, opened = _cases_of(request, slug)
    choices = choices_of(request, _NAMES)
    rows = _rows(request, opened, choices)
    row = next((each for each in rows if each.case.id == case), None)
    if row is None:
        return _no_case(request)
    given = {name: str(form.get(name, "")) for name in _FIELDS}
    try:
        store_of(request).decide_case(
            row.case,
            person.id,
            **given,
            audit=folder.slug,
            audit_sha256=opened.sha256,
            base=version_of(form),
            request=str(form.get("request", "")) or secrets.token_urlsafe(16),
        )
    except InputError as err:
        again = next((each for each in _rows(request, opened, choices) if each.case.id == case), row)
        return _page(request, folder, opened, again, given=given, problem=err)
    base = f"/worklist/{slug}"
    after = rows[rows.index(row) + 1 :] + rows[: rows.index(row)]
    following = next(iter(_chosen(after, {**choices, "state": ""})), None)
    if form.get("then") == "next" and following is not None:
        return RedirectResponse(address(f"{base}/{following.case.id}", choices), status_code=303)
    return RedirectResponse(address(base, choices, saved="yes"), status_code=303)
