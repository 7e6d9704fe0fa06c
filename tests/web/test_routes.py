"""Every route of the site, tried by everybody: one table says what each gets. A route that is not in it fails."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from msgspec import Struct

from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.invitations import secret_hash
from hoofbeat.review.review_records import Assignment, PersonRole
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from tests.review.review_studies import study_of
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.visitors import Seen, Visitor

WHO = ("nobody", "revoked", "outsider", "reviewer", "elsewhere", "adjudicator", "admin")
"""`outsider` and `elsewhere` are a reviewer and an adjudicator of another study; `revoked` had come in before."""


class Row(Struct, frozen=True):
    """A route, an address of it, and the status that each of `WHO` gets there."""

    route: str
    path: str
    expected: tuple[int, ...]
    fields: dict[str, str] = {}
    json: dict[str, Any] | None = None


def everybody(status: int) -> tuple[int, ...]:
    return (status,) * len(WHO)


def browse(status: int = 200) -> tuple[int, ...]:
    """Whoever is on this machine; a reviewer who has come in does not see what reviews are blinded against."""
    return (status, status, 403, 403, status, status, status)


def hidden(status: int = 200) -> tuple[int, ...]:
    """Of a folder that the open exam and the blinded review are about: for their admin alone."""
    return (403, 403, 403, 403, 403, 403, status)


def own(reviewer: int = 200, other: int = 404) -> tuple[int, ...]:
    """For those on whose list it is."""
    return (401, 401, other, reviewer, other, other, other)


def invited(status: int = 200) -> tuple[int, ...]:
    """For everybody who has come in."""
    return (401, 401, *(status,) * 5)


def team(status: int = 200, other: int = 404) -> tuple[int, ...]:
    """For adjudicators and admins of the study."""
    return (401, 401, 403, 403, other, status, status)


def admins(status: int = 200) -> tuple[int, ...]:
    return (401, 401, 403, 403, 403, 403, status)


def exam(first: int, other: int) -> tuple[int, ...]:
    """For everybody whose invitation is not for another study: the reviewer is at it, the others have not begun."""
    return (401, 401, 404, first, 404, other, other)


SAVE = {"values": {}, "state": "draft", "base": 0, "request": "a-save"}
ITEM = "/review/STUDY/items/ITEM"
QUESTION = "/exam/EXAM/questions/1"

TABLE = (
    Row("GET /openapi.json", "/openapi.json", browse()),
    Row("GET /static/{name}", "/static/app.js", everybody(200)),
    Row("GET /", "/", (200, 200, 303, 303, 200, 200, 200)),
    Row("GET /folders/{slug}", "/folders/cases", hidden()),
    Row("GET /api/library", "/api/library", browse()),
    Row("GET /corpora/{slug}", "/corpora/cases", hidden()),
    Row("POST /corpora/{slug}/search", "/corpora/cases/search", hidden(303), {"text": "fever", "line": "bm25"}),
    Row("GET /corpora/{slug}/searches/{name}", "/corpora/cases/searches/x", hidden(404)),
    Row("GET /corpora/{slug}/documents/{number}", "/corpora/cases/documents/1", hidden()),
    Row("GET /corpora/{slug}/files/{number}/{figure}/{n}", "/corpora/cases/files/1/99/1", hidden(404)),
    Row("GET /api/corpora/{slug}/documents", "/api/corpora/cases/documents", hidden()),
    Row("GET /benchmarks/{slug}", "/benchmarks/bench", hidden()),
    Row("POST /benchmarks/{slug}/search", "/benchmarks/bench/search", hidden(303), {"text": "fever"}),
    Row("GET /benchmarks/{slug}/questions/{number}", "/benchmarks/bench/questions/1", hidden()),
    Row("GET /benchmarks/{slug}/files/{number}/{n}", "/benchmarks/bench/files/1/99", hidden(404)),
    Row("GET /benchmarks/{slug}/{table}", "/benchmarks/bench/nothing", browse(404)),
    Row("GET /benchmarks/{slug}/{table}/{number}", "/benchmarks/bench/nothing/1", browse(404)),
    Row("GET /api/benchmarks/{slug}/questions", "/api/benchmarks/bench/questions", hidden()),
    Row("GET /api/rankings/{slug}/queries", "/api/rankings/ranked/queries", hidden()),
    Row("GET /api/rankings/{slug}/queries/{number}/hits", "/api/rankings/ranked/queries/1/hits", hidden()),
    Row("GET /rankings/{slug}", "/rankings/ranked", hidden()),
    Row("GET /rankings/{slug}/queries", "/rankings/ranked/queries", hidden()),
    Row("GET /rankings/{slug}/queries/{number}", "/rankings/ranked/queries/1", hidden()),
    Row("GET /api/runs/{slug}/answers", "/api/runs/run/answers", hidden()),
    Row("GET /reports/{slug}", "/reports/report", hidden()),
    Row("GET /runs/{slug}", "/runs/run", hidden()),
    Row("GET /runs/{slug}/facets", "/runs/run/facets", hidden()),
    Row("GET /runs/{slug}/questions", "/runs/run/questions", hidden()),
    Row("POST /runs/{slug}/search", "/runs/run/search", hidden(303), {"text": "fever"}),
    Row("GET /runs/{slug}/questions/{number}", "/runs/run/questions/1", hidden()),
    Row("GET /api/audits/{slug}/pairs", "/api/audits/audit/pairs", browse()),
    Row(
        "GET /api/audits/{slug}/questions/{number}/pairs/{a}/{b}",
        "/api/audits/audit/questions/1/pairs/1/2",
        browse(),
    ),
    Row("GET /audits/{slug}/questions", "/audits/audit/questions", browse()),
    Row("GET /audits/{slug}/pairs", "/audits/audit/pairs", browse()),
    Row("GET /audits/{slug}/questions/{number}", "/audits/audit/questions/1", browse()),
    Row("GET /audits/{slug}/questions/{number}/pairs/{a}/{b}", "/audits/audit/questions/1/pairs/1/2", browse()),
    Row("GET /audits/{slug}", "/audits/audit", browse()),
    Row("GET /audits/{slug}/sources", "/audits/audit/sources", browse()),
    Row("GET /audits/{slug}/themes", "/audits/audit/themes", browse()),
    Row("GET /audits/{slug}/since/{before}", "/audits/audit/since/audit-2", browse()),
    Row("GET /side-by-side", "/side-by-side?a=run&b=judged", hidden()),
    Row("GET /side-by-side/questions/{number}", "/side-by-side/questions/1?a=run&b=judged", hidden()),
    Row("GET /ask", "/ask", browse()),
    Row("POST /ask", "/ask", browse(400), {"text": ""}),
    Row("GET /ask/{name}", "/ask/x", browse(404)),
    Row("POST /ask/{name}/stop", "/ask/x/stop", browse(404)),
    Row("GET /api/ask/{name}", "/api/ask/x", browse(404)),
    Row("GET /join/{token}", "/join/x", everybody(404)),
    Row("POST /join/{token}", "/join/x", everybody(404)),
    Row("GET /enter/{secret}", "/enter/x", everybody(404)),
    Row("GET /team/people", "/team/people", admins()),
    Row("POST /team/people", "/team/people", admins(400), {"name": ""}),
    Row("POST /team/people/{id}/renew", "/team/people/x/renew", admins(404)),
    Row("POST /team/people/{id}/revoke", "/team/people/x/revoke", admins(404)),
    Row("GET /team/people/trail", "/team/people/trail", admins()),
    Row("GET /team/{study}/trail", "/team/STUDY/trail", admins()),
    Row("GET /api/review/{study}/items/{item}", f"/api{ITEM}", own()),
    Row("POST /api/review/{study}/items/{item}", f"/api{ITEM}", own(), json=SAVE),
    Row(
        "POST /api/review/{study}/items/{item}/undo", f"/api{ITEM}/undo", own(), json={"request": "an-undo", "base": 1}
    ),
    Row("GET /review", "/review", invited()),
    Row("GET /review/{study}", "/review/STUDY", own()),
    Row("GET /review/{study}/next", "/review/STUDY/next", invited(303)),
    Row("GET /review/{study}/items/{item}", ITEM, own()),
    Row("POST /review/{study}/items/{item}", ITEM, own(303), {"do": "draft", "base": "2"}),
    Row("GET /review/{study}/items/{item}/images/{number}", f"{ITEM}/images/1", own(404)),
    Row("GET /worklist", "/worklist", (401, 401, 403, 403, 200, 200, 200)),
    Row("GET /worklist/{slug}", "/worklist/audit", (401, 401, 403, 403, 200, 200, 200)),
    Row("GET /worklist/{slug}/cases.csv", "/worklist/audit/cases.csv", (401, 401, 403, 403, 200, 200, 200)),
    Row("GET /worklist/{slug}/cases.json", "/worklist/audit/cases.json", (401, 401, 403, 403, 200, 200, 200)),
    Row("GET /worklist/{slug}/{case}", "/worklist/audit/x", (401, 401, 403, 403, 404, 404, 404)),
    Row("POST /worklist/{slug}/{case}", "/worklist/audit/x", (401, 401, 403, 403, 404, 404, 404)),
    Row("GET /team", "/team", (401, 401, 403, 403, 200, 200, 200)),
    Row("GET /team/{study}", "/team/STUDY", team()),
    Row("POST /team/{study}/assign", "/team/STUDY/assign", admins(303)),
    Row("POST /team/{study}/close", "/team/STUDY/close", admins(400)),
    Row("POST /team/{study}/round", "/team/STUDY/round", admins(303)),
    Row("GET /team/{study}/agreement", "/team/STUDY/agreement", team()),
    Row("GET /team/{study}/labels.csv", "/team/STUDY/labels.csv", admins()),
    Row("GET /team/{study}/labels.jsonl", "/team/STUDY/labels.jsonl", admins()),
    Row("GET /team/{study}/queue", "/team/STUDY/queue", team()),
    Row("GET /team/{study}/queue/{item}", "/team/STUDY/queue/DIFFERS", team()),
    Row("GET /team/{study}/queue/{item}/images/{number}", "/team/STUDY/queue/DIFFERS/images/9", team(404)),
    Row("POST /team/{study}/queue/{item}", "/team/STUDY/queue/DIFFERS", team(400)),
    Row("POST /team/{study}/queue/{item}/open", "/team/STUDY/queue/DIFFERS/open", team(303)),
    Row("GET /api/team/{study}/progress", "/api/team/STUDY/progress", team()),
    Row("GET /api/team/{study}/agreement", "/api/team/STUDY/agreement", team()),
    Row("GET /api/team/{study}/labels", "/api/team/STUDY/labels", admins()),
    Row("GET /exam", "/exam", invited()),
    Row("GET /api/exam/{study}", "/api/exam/EXAM", exam(200, 200)),
    Row("GET /exam/{study}", "/exam/EXAM", exam(200, 200)),
    Row("GET /exam/{study}/questions/{place}", QUESTION, exam(200, 404)),
    Row("GET /exam/{study}/questions/{place}/images/{number}", f"{QUESTION}/images/9", exam(404, 404)),
    Row("POST /exam/{study}/questions/{place}/open", f"{QUESTION}/open", exam(303, 404)),
    Row("POST /api/exam/{study}/questions/{place}/draft", f"/api{QUESTION}/draft", exam(200, 404), json={"answer": ""}),
    Row("POST /exam/{study}/questions/{place}", QUESTION, exam(400, 404), {"stage": "0"}),
    Row("GET /exam/{study}/result", "/exam/EXAM/result", exam(303, 303)),
    Row("POST /exam/{study}/begin", "/exam/EXAM/begin", exam(303, 303)),
    Row("POST /exam/{study}/end", "/exam/EXAM/end", exam(303, 303)),
    Row("POST /leave", "/leave", everybody(200)),  # the last: it ends everybody's session
)


class Place(Struct, frozen=True):
    """A server, with somebody of each kind at it, and the names that stand for capitals in the table."""

    app: FastAPI
    address: str
    visitors: dict[str, Visitor]
    names: dict[str, str]

    def path(self, row: Row) -> str:
        path = row.path
        for word, name in self.names.items():
            path = path.replace(word, name)
        return path

    def ask(self, who: str, row: Row, **headers: str) -> Seen:
        visitor, path = self.visitors[who], self.path(row)
        if row.route.startswith("GET"):
            return _ready(visitor, path)
        if row.json is not None:
            return visitor.post_json(path, row.json, **headers)
        return visitor.post(path, row.fields, **headers)


def _ready(visitor: Visitor, path: str) -> Seen:
    """A page, once its folder is prepared."""
    for _ in range(2400):
        seen = visitor.get(path)
        if seen.status != 503:
            break
        time.sleep(0.05)
    return seen


@pytest.fixture
def place(tmp_path: Path, folders: Path) -> Iterator[Place]:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        study, items = study_of(folders, "likert")
        sitting, questions = exam_study(folders / "bench", per_person=3, seed=1)
        other, others = study_of(folders, "equivalence")
        for made, rows in ((study, items), (sitting, questions), (other, others)):
            store.create_study(made, rows, by="test")
        roles: dict[str, tuple[PersonRole, tuple[str, ...]]] = {
            "revoked": ("reviewer", ()),
            "outsider": ("reviewer", (other.id,)),
            "reviewer": ("reviewer", ()),
            "second": ("reviewer", (study.id,)),
            "elsewhere": ("adjudicator", (other.id,)),
            "adjudicator": ("adjudicator", ()),
            "admin": ("admin", ()),
        }
        people = {
            who: store.invite(f"Invented {who}", role, by="test", studies=of) for who, (role, of) in roles.items()
        }
        for number, who in enumerate(("reviewer", "second", "revoked")):
            person = people[who][0].id
            store.assign(
                study.id,
                [Assignment(study=study.id, item=item.id, person=person, place=item.place) for item in items],
                by="test",
            )
            values = {"medical alignment": str(number + 1), "need for expertise": "3"}
            store.save(
                study.id, items[1].id, person, values=values, state="done", seconds=1, base=0, request="said"
            )  # fmt: skip
        app = create_app(store_site(store, [folders], tries_per_minute=10_000))
        with serving(app) as address:
            visitors = {who: Visitor(address, people[who][1] if who in people else "") for who in WHO}
            visitors["nobody"].get("/")
            at = visitors["reviewer"]
            at.get(f"/exam/{sitting.id}")
            assert at.post(f"/exam/{sitting.id}/begin").status == 303
            store.revoke(people["revoked"][0].id, "test")
            visitors["revoked"].get("/")
            names = {"STUDY": study.id, "ITEM": items[0].id, "DIFFERS": items[1].id, "EXAM": sitting.id}
            yield Place(app, address, visitors, names)


def routes_of(app: FastAPI) -> set[str]:
    """All routes, those of parts as well."""
    found = set()
    for route in app.routes:
        each: Any = route
        own = each.effective_route_contexts() if hasattr(each, "effective_route_contexts") else [each]
        found |= {f"{method} {one.path}" for one in own for method in one.methods if method != "HEAD"}
    return found


def test_everybody_gets_what_the_table_says(place: Place) -> None:
    assert {row.route for row in TABLE} == routes_of(place.app)
    wrong = []
    for row in TABLE:
        seen = tuple(place.ask(who, row).status for who in WHO)
        if seen != row.expected:
            wrong.append(f"{row.route}: {dict(zip(WHO, seen, strict=True))}, not {row.expected}")
    assert not wrong, "\n".join(wrong)


def test_nothing_changes_without_the_token(place: Place) -> None:
    posts = [row for row in TABLE if row.route.startswith("POST")]
    for row in posts:
        for who in WHO:
            place.visitors[who].csrf = "0" * 64
            refused = 401 if who == "revoked" else 403  # who has a session that ended is told so
            assert place.ask(who, row).status == refused, (row.route, who)
    assert place.visitors["admin"].get("/review").status == 200, "nobody was signed out"


def test_a_server_for_others_shows_a_stranger_nothing(tmp_path: Path, folders: Path) -> None:
    opened = ("GET /static/{name}", "GET /join/{token}", "POST /join/{token}", "GET /enter/{secret}", "POST /leave")
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        app = create_app(store_site(store, [folders], access=secret_hash("the secret"), tries_per_minute=10_000))
        with serving(app) as address:
            stranger = Visitor(address)
            stranger.get("/join/x")
            shut = Place(app, address, {"nobody": stranger}, {})
            for row in TABLE:
                seen = shut.ask("nobody", row)
                assert (seen.status == 401) == (row.route not in opened), row.route
