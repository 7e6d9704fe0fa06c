"""Every request passes here first: who asks, from where, with what, and whether a forged page made them ask.

- Only names this server was started for are answered, so that no foreign name can be pointed at it.
- Whatever changes something brings a token that only our own pages know, made from the visitor's cookie, and comes from
  our own pages by the browser's word. Such requests are read up to 1 MiB here; files are taken from nobody.
- A newer browser says in `Sec-Fetch-Site` whether a page of ours sent a form. Older ones don't, and none does where
  pages come over plain HTTP from another machine; they say the page's origin, or its address. Our pages let them
  (`Referrer-Policy`), and what names neither is refused.
- Behind a proxy every request comes from the proxy, which appends to `X-Forwarded-For` who asked it. That is believed
  of proxies that the server was told of, and of nobody else: whoever asks can write such a header.
- Pages of reviews need a person; browse pages need one or the site's secret, unless the server is on loopback.
- What an open study hides is hidden from everybody but its owner. The review store says what that is: no cookie, name
  or header of a request, or the lack of one, opens it.
- Every answer carries the headers that keep it from being framed, sniffed, cached or run with foreign script.
- What fails unforeseen is logged by place only. Nothing of a request is ever logged.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

from anyio import to_thread
from fastapi import HTTPException, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.review.hidden_folders import hidden_folders, hiding_studies
from hoofbeat.review.invitations import secret_hash
from hoofbeat.review.review_records import Person
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.tables import is_panic, table_trouble
from hoofbeat.web.page_rendering import log_bug, refuse, refuse_error
from hoofbeat.web.site import Site, SiteSettings, site_of, whole_site

_PORTS = {"http": 80, "https": 443}
Place = tuple[str, str, int]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_same_origin(headers: Headers, settings: SiteSettings) -> bool:
    """Whether a page of ours sent this: `Sec-Fetch-Site`, else `Origin`, else `Referer`; no two may differ."""
    said = headers.get("sec-fetch-site")
    if said is not None and said not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is not None and origin != "null":
        return _is_own(origin, headers, settings, whole=True)
    if said is not None:
        return True
    if origin == "null":  # a page that hides where it is: none of ours does
        return False
    return _is_own(headers.get("referer", ""), headers, settings)


def _is_own(address: str, headers: Headers, settings: SiteSettings, *, whole: bool = False) -> bool:
    """Whether this is an address of this server: the one people are told, or the one the browser asked for."""
    place = _place(address, whole=whole)
    if place is None:
        return False
    told = _place(settings.base_url)
    if place == told:
        return True
    asked = _place(f"{place[0]}://{headers.get('host', '')}")
    if place != asked:
        return False
    return not (settings.secure and told is not None and place[1] == told[1])  # by that name over HTTPS alone


def _place(address: str, *, whole: bool = False) -> Place | None:
    """Scheme, name and port of an address; None where it has none, or, of an origin, has more."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    if whole and (parts.path or parts.query or parts.fragment):
        return None
    return parts.scheme, parts.hostname, _PORTS[parts.scheme] if port is None else port


def own_path(location: str, headers: Headers) -> str:
    """Where an answer leads, without scheme and name if it stays here: the proxy knows them, the server may not."""
    parts = urlsplit(location)
    if not parts.netloc or parts.netloc.lower() != headers.get("host", "").lower():
        return location
    path = "/" + parts.path.lstrip("/")  # two slashes would be another site's name
    return f"{path}?{parts.query}" if parts.query else path


def known_network(given: str) -> str:
    """A proxy's address, or the network it is in, in one spelling."""
    try:
        return str(ipaddress.ip_network(given.strip(), strict=False))
    except ValueError:
        raise UsageError(
            f"{given!r} is not the address of a proxy", fix="give --proxy an address such as 127.0.0.1, or a network"
        ) from None


def client_address(peer: str, headers: Headers, proxies: Sequence[str]) -> str:
    """Who asks: the peer, or, where that is a proxy the server was told of, whom the last unknown one names.

    Each proxy appends to the right, so what is left of the first stranger is only that stranger's word.
    """
    networks = [ipaddress.ip_network(each) for each in proxies]
    if not _within(peer, networks):
        return peer
    named = [part.strip() for line in headers.getlist("x-forwarded-for") for part in line.split(",")]
    asking = peer
    for each in reversed(named):
        known = _bare(each)
        if not known:
            return asking
        asking = known
        if not _within(known, networks):
            return asking
    return asking


def _within(address: str, networks: Sequence[Network]) -> bool:
    known = _bare(address)
    return bool(known) and any(ipaddress.ip_address(known) in network for network in networks)


def _bare(address: str) -> str:
    """An address without port and brackets, an IPv4 one in its own form; empty where it is none."""
    text = address.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        known = ipaddress.ip_address(text)
    except ValueError:
        return ""
    mapped = known.ipv4_mapped if isinstance(known, ipaddress.IPv6Address) else None
    return str(mapped or known)


MAX_BYTES = 1024 * 1024
_MAX_DROPPED = 8 * MAX_BYTES
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "X-Frame-Options": "DENY",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=(), browsing-topics=()",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_OPEN = ("join", "enter", "leave")
_SECRET = ("/join/", "/enter/")
_REVIEW = ("review", "exam")
_TEAM = ("team", "worklist")
_FORM = "application/x-www-form-urlencoded"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


_NEW_LINK = "ask the person who invited you for a new link, because each link works once"
_ENTER = "open the address that the server printed when it started, or ask the person who runs it for that address"


def way_in(request: Request) -> tuple[str, str]:
    """Why somebody who is not signed in sees nothing, and what they can do; both depend on how people come in here."""
    site = whole_site(request)
    if getattr(request.state, "lapsed", False):
        return "you are no longer signed in", _NEW_LINK
    if site.store is None:
        return "this server opens only with its own link", _ENTER
    invited = f"open the link in your invitation; if you have used it before, {_NEW_LINK}"
    part = request.url.path.strip("/").removeprefix("api/").partition("/")[0]
    if site.settings.access and part not in (*_REVIEW, *_TEAM):
        return "you need a link to use this server", f"{invited}. To see folders only, {_ENTER}"
    return "this page is only for invited people", invited


def require_person(request: Request) -> Person:
    """The person who asks; a dependency of pages for everybody who was invited."""
    person: Person | None = request.state.person
    if person is None:
        raise HTTPException(401, way_in(request)[0])
    return person


def require_adjudicator(request: Request) -> Person:
    """The adjudicator or admin who asks."""
    person = require_person(request)
    if person.role not in ("adjudicator", "admin"):
        raise HTTPException(403, "only adjudicators can open this page")
    return person


def require_admin(request: Request) -> Person:
    """The admin who asks."""
    person = require_person(request)
    if person.role != "admin":
        raise HTTPException(403, "only admins can open this page")
    return person


def may_browse(request: Request) -> bool:
    """Whether whoever asks may look at the artefacts."""
    site, person = site_of(request), request.state.person
    if person is not None and person.role == "reviewer" and not site.settings.reviewers_browse:
        return False
    return not site.settings.access or person is not None or request.state.looking


def address_of(request: Request) -> str:
    """Where a request came from, for counting tries."""
    peer = request.client.host if request.client else ""
    return client_address(peer, request.headers, site_of(request).settings.proxies)


def cookie_name(settings: SiteSettings, purpose: str) -> str:
    """A cookie's name; with the port in it, since servers on one machine share their cookies."""
    if settings.secure:
        return f"__Host-hoofbeat-{purpose}"
    return f"hoofbeat-{purpose}-{urlsplit(settings.base_url).port or 80}"


def give_cookie(response: Response, settings: SiteSettings, purpose: str, value: str, *, lax: bool = False) -> None:
    """Set a cookie that no script can read and no other site can send along."""
    response.set_cookie(
        cookie_name(settings, purpose),
        value,
        max_age=settings.session_hours * 3600,
        path="/",
        secure=settings.secure,
        httponly=True,
        samesite="lax" if lax else "strict",
    )


def take_cookie(response: Response, settings: SiteSettings, purpose: str) -> None:
    """Remove a cookie."""
    name = cookie_name(settings, purpose)
    response.delete_cookie(name, path="/", secure=settings.secure, httponly=True, samesite="strict")


class Guard:
    """The middleware around the whole site."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self.app = app
        self.site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and hand it on, or refuse it."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        scope.setdefault("state", {}).update(
            {"person": None, "csrf": "", "looking": False, "session": "", "lapsed": False, "browses": False}
        )
        scope["state"]["hidden"] = frozenset() if self.site.store is None else None  # None: all, until it is known
        request = Request(scope, receive)
        answering = _Answering(send, self.site.settings, request)
        try:
            refused, replayed = await self._check(request, scope, answering)
            if refused is not None:
                await refused(scope, receive, answering)
            else:
                await self.app(scope, replayed, answering)
        except ClientDisconnect:  # nobody waits for an answer, and nothing was done
            return
        except BaseException as err:
            if not isinstance(err, Exception) and not is_panic(err):
                raise
            await self._failed(err, request, answering)

    async def _failed(self, err: BaseException, request: Request, answering: _Answering) -> None:
        err = table_trouble(err) or err
        if not isinstance(err, HoofbeatError):
            log_bug(err)
        if answering.began:
            raise ConnectionError("an answer broke off") from None
        if isinstance(err, HoofbeatError):
            answer = refuse_error(request, err)
        else:
            answer = refuse(request, 500, "an unexpected error happened", "try again; the error is in the server's log")
        await answer(request.scope, request.receive, answering)

    async def _check(self, request: Request, scope: Scope, answering: _Answering) -> tuple[Response | None, Receive]:
        """What refuses the request, if anything, and where the application reads its body from."""
        receive = request.receive
        path: str = scope["path"]
        if not _known_host(request.headers, self.site.settings):
            return refuse(
                request,
                421,
                "this server does not answer to that host name",
                "use the address that the server printed",
            ), receive
        if path.startswith("//") or "\\" in path or not path.isprintable():
            return refuse(request, 404, "this page does not exist"), receive
        if path.startswith("/static/"):
            return None, receive
        await self._recognise(request, scope, answering)
        scope["state"]["browses"] = may_browse(request)
        if self.site.store is not None and scope["state"]["browses"]:
            scope["state"]["hidden"] = await to_thread.run_sync(self._hidden, self.site.store, request.state.person)
        if scope["method"] not in ("GET", "HEAD", "OPTIONS"):
            refused, receive = await _check_change(request)
            if refused is not None:
                return refused, receive
        return self._check_person(request, path.removeprefix("/api/").lstrip("/").partition("/")[0]), receive

    def _person_of(self, store: ReviewStore, session: str, answering: _Answering) -> Person | None:
        """Whose session this is; half-way to its end it is given its whole time again."""
        found, hours = store.session_until(session), self.site.settings.session_hours
        if found is None:
            return None
        if found[1] - time.time() < hours * 1800:
            store.prolong(session, hours=hours)
            answering.session = session
        return found[0]

    def _hidden(self, store: ReviewStore, person: Person | None) -> frozenset[str]:
        return hidden_folders(self.site.library, hiding_studies(store.studies(), person))

    async def _recognise(self, request: Request, scope: Scope, answering: _Answering) -> None:
        """Who asks, by their cookies, and the token their pages carry."""
        settings, state = self.site.settings, scope["state"]
        cookies = request.cookies
        session = cookies.get(cookie_name(settings, "session"), "")
        if self.site.store is not None and session:
            state["person"] = await to_thread.run_sync(self._person_of, self.site.store, session, answering)
        if state["person"] is None:
            state["lapsed"] = bool(session)
            session = cookies.get(cookie_name(settings, "visit"), "")
            if not session:
                session = secrets.token_urlsafe(24)
                answering.visit = session
        else:
            state["session"] = session
        state["csrf"] = _token(session)
        if settings.access:
            given = cookies.get(cookie_name(settings, "look"), "")
            state["looking"] = hmac.compare_digest(secret_hash(given), settings.access)

    def _check_person(self, request: Request, part: str) -> Response | None:
        person: Person | None = request.state.person
        if part in _OPEN and not request.url.path.startswith("/api/"):
            return None
        if part in _REVIEW or part in _TEAM:
            if self.site.store is None:
                return refuse(request, 404, "this server has no reviews", "start it with: hoofbeat review")
            if person is None:
                return refuse(request, 401, *way_in(request))
            if part in _TEAM and person.role == "reviewer":
                return refuse(
                    request, 403, "this page is only for adjudicators and admins", "continue with your own list"
                )
            return None
        if may_browse(request):
            return None
        if person is None:
            return refuse(request, 401, *way_in(request))
        if part == "" and request.method == "GET":
            return Response(status_code=303, headers={"Location": "/review"})
        return refuse(request, 403, "reviewers can only see their own list", "continue with your own list")


class _Answering:
    """Sends an answer with the headers of every answer."""

    def __init__(self, send: Send, settings: SiteSettings, request: Request) -> None:
        self._send, self._settings, self._request = send, settings, request
        self.began = False
        self.visit = ""
        self.session = ""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.began = True
            message.setdefault("headers", [])
            headers = MutableHeaders(scope=message)
            if "location" in headers:
                headers["location"] = own_path(headers["location"], self._request.headers)
            if self._request.scope["path"].startswith(_SECRET):  # of a secret address only the origin is told
                headers.setdefault("Referrer-Policy", "strict-origin")
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if self._settings.secure:
                headers.setdefault("Strict-Transport-Security", "max-age=31536000")
            if self.session and "set-cookie" not in headers:  # a page that signs out takes the cookie away
                carrier = Response()
                give_cookie(carrier, self._settings, "session", self.session)
                headers.append("set-cookie", carrier.headers["set-cookie"])
            if self.visit and headers.get("content-type", "").startswith("text/html"):
                carrier = Response()
                give_cookie(carrier, self._settings, "visit", self.visit, lax=True)
                headers.append("set-cookie", carrier.headers["set-cookie"])
        await self._send(message)


async def _check_change(request: Request) -> tuple[Response | None, Receive]:
    """Whether a request that changes something may: not too long, of a kind we take, from a page of ours."""
    receive = request.receive
    if request.method != "POST":
        return refuse(request, 405, "this action is not allowed here", headers={"Allow": "GET, POST"}), receive
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ("", "application/json", _FORM):
        return refuse(request, 415, "this server does not accept this format", "send JSON or a form"), receive
    body = await _body(request)
    if body is None:
        return refuse(request, 413, "the request is too long", "send less text", {"Connection": "close"}), receive
    if not is_same_origin(request.headers, site_of(request).settings):
        return refuse(request, 403, "the request came from another site", "use the pages of this server"), receive
    given = request.headers.get("x-csrf-token", "")
    if not given and kind == _FORM:
        given = _field(body, "csrf")
    if not hmac.compare_digest(given.encode(), request.state.csrf.encode()):
        if request.state.lapsed:
            return refuse(request, 401, *way_in(request)), receive
        return refuse(request, 403, "this page is out of date", "reload it and try again"), receive
    return None, _replaying(body, receive)


async def _body(request: Request) -> bytes | None:
    """The whole body, or None where it is too long: some more is read and dropped, so that the answer is heard."""
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > _MAX_DROPPED:
        return None
    body, length, more = bytearray(), 0, True
    while more and length <= _MAX_DROPPED:
        message = await request.receive()
        if message["type"] != "http.request":
            raise ClientDisconnect
        piece = message.get("body", b"")
        length += len(piece)
        if length <= MAX_BYTES:
            body += piece
        more = message.get("more_body", False)
    return bytes(body) if length <= MAX_BYTES else None


def _replaying(body: bytes, receive: Receive) -> Receive:
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return left.pop() if left else await receive()

    return again


def _field(body: bytes, name: str) -> str:
    try:
        found = parse_qs(body.decode(), max_num_fields=10_000).get(name, [""])
    except ValueError:
        return ""
    return found[0]


def _known_host(headers: Headers, settings: SiteSettings) -> bool:
    """Whether the name a browser asked for is one of this server's."""
    named = headers.getlist("host")
    if len(named) != 1:
        return False
    try:
        host = urlsplit(f"//{named[0]}").hostname
    except ValueError:
        return False
    if host is None:
        return False
    if host in _LOOPBACK or host == urlsplit(settings.base_url).hostname:
        return True
    return settings.any_address and _is_address(host)


def _is_address(host: str) -> bool:
    """Whether this is an address and no name: nobody can point an address somewhere else."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _token(secret: str) -> str:
    """The token of a visitor's pages: from their cookie, so it holds when the server starts anew."""
    return hmac.new(secret.encode("utf-8", "replace"), b"hoofbeat pages", hashlib.sha256).hexdigest()
