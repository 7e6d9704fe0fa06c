"""What every request passes: names, tokens, sizes, sessions, and the headers of every answer."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi import APIRouter, FastAPI, Request
from msgspec.structs import replace

from hoofbeat.review.invitations import Throttle, secret_hash
from hoofbeat.review.review_records import PersonRole, in_utc
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.web import Site, SiteSettings, create_app
from hoofbeat.web.security import MAX_BYTES
from tests.review.stores import make_study
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.visitors import Visitor

SAVE = "/api/review/study/items/item-0"


class Place:
    """A server with a review store: its address, its site, the review store and everybody's tokens."""

    def __init__(self, address: str, site: Site, store: ReviewStore, tokens: dict[str, str]) -> None:
        self.address, self.site, self.store, self.tokens = address, site, store, tokens

    def visitor(self, role: str = "") -> Visitor:
        """Somebody new, who has come in where a role is named."""
        return Visitor(self.address, self.tokens[role] if role else "")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with ReviewStore.open(str(tmp_path_factory.mktemp("store") / "review.db")) as store:
        roles: tuple[PersonRole, ...] = ("reviewer", "adjudicator", "admin")
        _, _, tokens = make_study(store, people=roles)
        site = store_site(store)
        with serving(create_app(site)) as address:
            yield Place(address, site, store, {str(role): token for role, token in zip(roles, tokens, strict=True)})


def a_save(request: str, base: int = 0) -> dict[str, object]:
    values = {"medical alignment": "4", "need for expertise": "2"}
    return {"values": values, "state": "done", "reason": "", "seconds": 1.0, "base": base, "request": request}


def test_every_answer_carries_the_headers(place: Place) -> None:
    visitor = place.visitor()
    for path, status in (("/", 200), ("/none", 404), ("/static/app.js", 200), ("/api/none", 404), ("/review", 401)):
        seen = visitor.get(path)
        assert seen.status == status, path
        assert seen.headers["content-security-policy"] == (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        )
        assert seen.headers["x-content-type-options"] == "nosniff"
        assert seen.headers["referrer-policy"] == "same-origin"
        assert seen.headers["x-frame-options"] == "DENY"
        assert "camera=()" in seen.headers["permissions-policy"]
        assert seen.headers["cache-control"] == ("no-cache" if path.startswith("/static") else "no-store")
        assert "strict-transport-security" not in seen.headers


def test_the_session_cookie_is_for_this_site_alone(place: Place) -> None:
    visitor = place.visitor()
    _, token = place.store.invite("Invented newcomer", "reviewer", by="test")
    visitor.get(f"/join/{token}")
    cookie = next(each for each in visitor.post(f"/join/{token}").cookies if "-session-" in each)
    parts = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/", f"max-age={14 * 24 * 3600}"} <= parts
    assert "secure" not in parts
    assert cookie.startswith("hoofbeat-session-8350=")


def test_behind_https_cookies_are_sent_over_nothing_else(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, _, (token, _) = make_study(store)
        site = store_site(store, base_url="https://review.example.org", secure=True)
        with serving(create_app(site)) as address:
            visitor = Visitor(address)
            visitor.get(f"/join/{token}")
            seen = visitor.post(f"/join/{token}", Origin="https://review.example.org")
            assert seen.status == 303
            (cookie,) = (each for each in seen.cookies if "session" in each)
            assert cookie.startswith("__Host-hoofbeat-session=")
            assert {"secure", "path=/"} <= {part.strip().lower() for part in cookie.split(";")}
            assert "domain" not in cookie.lower()
            assert seen.headers["strict-transport-security"] == "max-age=31536000"
            assert visitor.get("/review", Host="review.example.org").status == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:8350", "10.0.0.1", "[::2]", "a b", "[", ""],
)
def test_a_foreign_name_is_not_answered(place: Place, host: str) -> None:
    visitor = place.visitor()
    for path in ("/", "/static/app.css", "/api/none"):
        seen = visitor.get(path, Host=host)
        assert seen.status in (400, 421), seen.text
        assert "set-cookie" not in seen.headers


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost", "[::1]:8350", "LOCALHOST:99"])
def test_names_of_this_machine_are(place: Place, host: str) -> None:
    assert place.visitor().get("/", Host=host).status == 200


def test_two_names_in_one_request_are_refused(place: Place) -> None:
    visitor = Visitor(place.address)
    with socket.create_connection((visitor.host, visitor.port), timeout=60) as line:
        line.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
        assert line.recv(100).split()[1] in (b"400", b"421")


def test_a_change_needs_the_token_of_the_session(place: Place) -> None:
    visitor, other = place.visitor("reviewer"), place.visitor("adjudicator")
    right = visitor.csrf
    for wrong in ("", "x", other.csrf, Visitor(place.address).csrf, right[:-1], right.upper(), "ü"):
        if wrong == right:
            continue
        seen = visitor.post_json(SAVE, a_save("csrf"), X_CSRF_Token=wrong)
        assert seen.status == 403, wrong
        assert "out of date" in seen.json()["error"]
        assert visitor.post("/leave", {"csrf": wrong}).status == 403
    assert place.store.label("study", "item-0", place.store.people()[0].id) is None
    body = "csrf=" + right  # JSON has no field for it: only the header counts
    assert visitor.send("POST", SAVE, body, Content_Type="application/json").status == 403


def test_a_visitor_without_a_session_has_a_token_too(place: Place) -> None:
    visitor = place.visitor()
    assert visitor.post("/leave").status == 403
    visitor.get("/")
    assert visitor.post("/leave").status == 200


def test_what_is_too_long_is_refused_before_it_is_read(place: Place) -> None:
    visitor = place.visitor("reviewer")
    assert visitor.send("POST", SAVE, b"", Content_Type="application/json", Content_Length="9" * 12).status == 413
    seen = visitor.post_json(SAVE, {"values": {"note": "x" * MAX_BYTES}})
    assert seen.status == 413
    assert "too long" in seen.json()["error"]
    head = f"POST {SAVE} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    head += "Transfer-Encoding: chunked\r\n\r\n"
    with socket.create_connection((visitor.host, visitor.port), timeout=60) as line:
        line.sendall(head.encode())
        chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
        try:
            for _ in range(160):
                line.sendall(chunk)
        except OSError:
            pass  # it hung up, which is what it should
        else:
            assert line.recv(12).split()[1] == b"413"


def test_files_and_other_formats_are_not_taken(place: Place) -> None:
    visitor = place.visitor("reviewer")
    for kind in ("multipart/form-data; boundary=x", "text/plain", "application/xml", "text/plain; application/json"):
        seen = visitor.send("POST", SAVE, "{}", Content_Type=kind, X_CSRF_Token=visitor.csrf)
        assert seen.status == 415, kind
    for method in ("PUT", "DELETE", "PATCH", "TRACE", "PROPFIND"):
        assert visitor.send(method, SAVE, X_CSRF_Token=visitor.csrf).status in (400, 405), method


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2f..%2fapp.py",
        "/static//etc/passwd",
        "/static/%2Fetc%2Fpasswd",
        "/static/..%5capp.py",
        "/static/app.js%00.css",
        "/static/app.js/",
        "/static/",
        "//etc/passwd",
        "/static/....//app.js",
        "/templates/base.html",
    ],
)
def test_only_our_own_files_have_names(place: Place, path: str) -> None:
    seen = place.visitor().get(path)
    assert seen.status in (307, 404), seen.status
    assert "create_app" not in seen.text
    assert "root:" not in seen.text


def test_a_path_that_looks_like_another_site_leads_nowhere(place: Place) -> None:
    for path in ("//evil.example/review", "/\\evil.example", "/%5Cevil.example", "//evil.example/%2e%2e"):
        seen = place.visitor().get(path)
        assert seen.status == 404
        assert 'href="//' not in seen.text
        assert "location" not in seen.headers


def test_roles_see_what_is_theirs(place: Place) -> None:
    seen = {
        role or "nobody": [place.visitor(role).get(path).status for path in ("/review", "/team/people", "/", "/ask")]
        for role in ("", "reviewer", "adjudicator", "admin")
    }
    assert seen["nobody"][:2] == [401, 401]
    assert seen["reviewer"] == [200, 403, 303, 403]  # browse pages show what reviews are blinded against
    assert seen["adjudicator"][:3] == [200, 403, 200]
    assert seen["admin"][:3] == [200, 200, 200]
    assert place.visitor("reviewer").get("/").headers["location"] == "/review"
    assert place.visitor().post_json(SAVE, {}).status == 403


def test_what_is_not_assigned_or_not_there_is_not_shown(place: Place) -> None:
    visitor = place.visitor("reviewer")
    outsider, token = place.store.invite("Outsider", "reviewer", by="test")
    stranger = Visitor(place.address)
    stranger.join(token)
    assert stranger.post_json(SAVE, a_save("x")).status in (403, 404)
    assert stranger.get("/review/study/items/item-0").status in (403, 404)
    assert place.store.labels("study", person=outsider.id) == []
    assert visitor.get("/review/study/items/none").status == 404
    assert visitor.get("/api/review/none/items/item-0").status == 404
    assert visitor.get("/api/review/study/items/item%00").status == 404


def test_a_revoked_person_is_out_at_once(place: Place) -> None:
    person, token = place.store.invite("Leaving", "adjudicator", by="test")
    visitor = Visitor(place.address)
    visitor.join(token)
    assert visitor.get("/review").status == 200
    place.store.revoke(person.id, "test")
    assert visitor.get("/review").status == 401
    assert visitor.get(f"/join/{token}").status == 404
    seen = visitor.post_json(SAVE, a_save("late"))
    assert seen.status in (401, 403)


def test_who_is_not_signed_in_is_told_how_to_come_in_here(place: Place) -> None:
    stranger = place.visitor().get("/review").text
    assert "open the link in your invitation" in stranger
    assert "open this page again" in stranger
    person, token = place.store.invite("Signed out elsewhere", "reviewer", by="test")
    visitor = Visitor(place.address)
    visitor.join(token)
    place.store.renew(person.id, "test")
    seen = visitor.get("/review").text
    assert "You are no longer signed in" in seen
    assert "ask the person who invited you for a new link" in seen
    assert "open this page again" not in seen
    site = Site(library=FolderLibrary([]), settings=SiteSettings(access=secret_hash("invented")))
    with serving(create_app(site)) as address:
        shown = Visitor(address).get("/").text
        assert "This server opens only with its own link" in shown
        assert "the address that the server printed when it started" in shown
        assert "invit" not in shown


def test_a_session_ends(place: Place) -> None:
    visitor = Visitor(place.address, place.store.invite("Leaving soon", "admin", by="test")[1])
    cookies = dict(visitor.cookies)
    assert visitor.post("/leave").status == 200
    assert not any("session" in name for name in visitor.cookies)
    visitor.cookies = cookies  # a copy of the cookie is worth nothing afterwards
    assert visitor.get("/review").status == 401
    _, token = place.store.invite("Late", "admin", by="test")
    signed = place.store.sign_in(token, hours=0.4 / 3600)
    assert signed is not None
    time.sleep(0.5)
    visitor.cookies["hoofbeat-session-8350"] = signed[1]
    assert visitor.get("/review").status == 401


def test_a_session_goes_on_while_its_person_comes_back(place: Place) -> None:
    _, token = place.store.invite("Often here", "reviewer", by="test")
    signed = place.store.sign_in(token, hours=2)
    assert signed is not None
    visitor = Visitor(place.address)
    visitor.cookies["hoofbeat-session-8350"] = signed[1]
    seen = visitor.get("/review")
    assert any(each.startswith("hoofbeat-session-8350") and "Max-Age=1209600" in each for each in seen.cookies)
    found = place.store.session_until(signed[1])
    assert found is not None
    assert found[1] > time.time() + 13 * 24 * 3600
    assert not any("session" in each for each in visitor.get("/review").cookies), "once is enough"
    assert visitor.post("/leave").status == 200
    assert place.store.session(signed[1]) is None


def test_a_link_that_was_used_or_ended_says_so(place: Place) -> None:
    person, token = place.store.invite("Invented once", "reviewer", by="test")
    first = Visitor(place.address, token)
    other = Visitor(place.address)
    for seen in (other.get(f"/join/{token}"), other.post(f"/join/{token}")):
        assert seen.status == 410
        assert "a link works once" in seen.text
        assert "--again" in seen.text
    again = first.get(f"/join/{token}")
    assert (again.status, again.headers["location"]) == (303, "/review"), "whoever came in by it goes on"
    late = place.store.renew(person.id, "test", days=-1)
    seen = other.get(f"/join/{late}")
    assert seen.status == 410
    assert "This link ended on" in seen.text
    assert other.post(f"/join/{late}").status == 410
    assert first.get("/review").status == 401, "a new link ended the session"


def test_the_owner_sees_how_long_links_work(place: Place) -> None:
    admin = place.visitor("admin")
    admin.get("/team/people")
    made = admin.post("/team/people", {"name": "Invented guest", "role": "reviewer"})
    until = in_utc(time.time() + 7 * 24 * 3600)
    assert f"It works once, until {until[:10]}" in made.text
    listed = admin.get("/team/people").text
    assert f"link not used yet, ends on {until[:10]}" in listed
    assert "signed in with the link on" in listed
    assert "within 7 days" in listed


def test_guesses_are_slowed_down_and_right_links_are_not_counted(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, _, (token, _) = make_study(store)
        with serving(create_app(store_site(store, tries_per_minute=4))) as address:
            for _ in range(6):
                Visitor(address, token)
                assert Visitor(address).get(f"/join/{token}").status == 410
            visitor = Visitor(address)
            assert [visitor.get(f"/join/guess{n}").status for n in range(4)] == [404] * 4
            seen = visitor.get("/join/guess9")
            assert seen.status == 429
            assert 1 <= int(seen.headers["retry-after"]) <= 61
            assert visitor.get(f"/join/{token}").status == 429
            assert visitor.get("/enter/guess").status == 429


def test_the_throttle_counts_addresses_and_everybody() -> None:
    now = [0.0]
    throttle = Throttle(3, 5, clock=lambda: now[0])
    for _ in range(3):
        throttle.failed("2001:db8::1")
    assert throttle.wait("2001:db8::ffff") == 61  # the same network
    assert throttle.wait("192.0.2.1") == 0
    now[0] = 30.0
    throttle.failed("192.0.2.1")
    throttle.failed("192.0.2.2")
    assert throttle.wait("192.0.2.3") == 31  # five in all
    now[0] = 60.0
    assert [throttle.wait(each) for each in ("2001:db8::1", "192.0.2.1", "192.0.2.3")] == [0, 0, 0]


def test_a_server_for_others_opens_with_its_secret_only(tmp_path: Path) -> None:
    secret = "invented-secret"
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, _, tokens = make_study(store, people=["reviewer", "admin"])
        site = store_site(store, access=secret_hash(secret), any_address=True)
        with serving(create_app(site)) as address:
            visitor = Visitor(address)
            assert visitor.get("/").status == 401
            assert visitor.get("/openapi.json").status == 401
            assert 'href="//' not in visitor.get("//evil.example/review").text  # "open this page again"
            assert visitor.get("/", Host="192.0.2.7:8350").status == 401  # any address of the machine is a name
            assert visitor.get("/", Host="evil.example").status == 421
            assert visitor.get("/enter/wrong").status == 404
            assert visitor.get("/").status == 401
            seen = visitor.get(f"/enter/{secret}")
            assert (seen.status, seen.headers["location"]) == (303, "/")
            assert "HttpOnly" in seen.cookies[0]
            assert visitor.get("/").status == 200
            assert visitor.get("/review").status == 401  # reviews need a person
            visitor.cookies = {name: value + "x" for name, value in visitor.cookies.items()}
            assert visitor.get("/").status == 401
            reviewer, admin = Visitor(address), Visitor(address)
            reviewer.join(tokens[0])
            admin.join(tokens[1])
            assert (reviewer.get("/").status, admin.get("/").status) == (303, 200)
            site.settings = replace(site.settings, reviewers_browse=True)
            assert reviewer.get("/").status == 200


def test_a_site_without_reviews_has_none(tmp_path: Path) -> None:
    with serving(create_app(Site(library=FolderLibrary([]), settings=SiteSettings()))) as address:
        visitor = Visitor(address)
        for path in ("/review", "/team", "/exam", "/api/review/a/items/b", "/join/x", "/team/people"):
            assert visitor.get(path).status == 404, path


def test_a_bug_is_logged_by_its_place_and_without_a_word_of_the_request(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    app: FastAPI = create_app(Site(library=FolderLibrary([])))
    router = APIRouter()

    @router.post("/broken")
    async def broken(request: Request) -> None:
        raise RuntimeError(f"an invented patient with {(await request.body()).decode()}")

    app.include_router(router)
    with caplog.at_level(logging.INFO), serving(app) as address:
        visitor = Visitor(address)
        visitor.get("/?case=secret-in-address")
        seen = visitor.post("/broken", {"case": "secretcase"})
    assert seen.status == 500
    assert "patient" not in seen.text
    told = capfd.readouterr()
    said = caplog.text + told.out + told.err
    assert "RuntimeError at test_security.py" in said
    assert "patient" not in said
    assert "secret" not in said


def test_a_database_that_fails_is_told_without_its_place(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, _, (token, _) = make_study(store)
        with serving(create_app(store_site(store))) as address:
            visitor = Visitor(address)
            visitor.join(token)
            store.close()
            for file in tmp_path.iterdir():
                file.write_bytes(b"no database any more " * 500)
            seen = visitor.get("/review")
            assert seen.status == 503
            assert "damaged" in seen.text
            assert str(tmp_path) not in seen.text
            assert visitor.get(SAVE).json()["error"]
