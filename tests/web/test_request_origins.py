"""Where a request comes from: newer and older browsers, forged pages, and who asks behind a proxy."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Request, expect
from starlette.datastructures import Headers

from hoofbeat.errors import UsageError
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import SiteSettings, create_app
from hoofbeat.web.security import client_address, is_same_origin, known_network, own_path
from tests.review.stores import make_study
from tests.web.review_site import join, store_site
from tests.web.support import needs_browser, serving, tab
from tests.web.visitors import Visitor

HERE = {"host": "127.0.0.1:8350"}
PUBLIC = SiteSettings(base_url="https://review.example.org", secure=True)
OURS = "https://review.example.org"


@pytest.mark.parametrize(
    "said",
    [
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:8350"},
        {"sec-fetch-site": "same-origin", "origin": "null"},
        {"sec-fetch-site": "none"},
        {"origin": "http://127.0.0.1:8350"},  # an older browser
        {"origin": "HTTP://127.0.0.1:8350"},
        {"referer": "http://127.0.0.1:8350/review/study/items/1?x=1"},  # a still older one
        {"origin": "http://127.0.0.1:8350", "referer": "https://evil.example/"},  # the origin is what counts
    ],
)
def test_pages_of_ours_are_known(said: dict[str, str]) -> None:
    assert is_same_origin(Headers({**HERE, **said}), SiteSettings())


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": ""},
        {"sec-fetch-site": "cross-site", "origin": "null"},
        {"sec-fetch-site": "cross-site", "origin": "http://127.0.0.1:8350"},
        {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-origin", "origin": "http://127.0.0.1:1"},
        {"origin": "null"},
        {"origin": "null", "referer": "http://127.0.0.1:8350/"},
        {"origin": ""},
        {"origin": "https://evil.example"},
        {"origin": "https://evil.example", "referer": "http://127.0.0.1:8350/"},
        {"origin": "http://127.0.0.1:8350.evil.example"},
        {"origin": "http://evil.example@127.0.0.1:8350"},
        {"origin": "http://127.0.0.1:8350/path"},
        {"origin": "http://127.0.0.1"},
        {"origin": "file://127.0.0.1:8350"},
        {"origin": "http://127.0.0.1:no"},
        {"referer": ""},
        {"referer": "https://evil.example/http://127.0.0.1:8350/"},
        {"referer": "http://[127.0.0.1:8350/"},
    ],
)
def test_pages_of_others_and_of_nobody_are_refused(said: dict[str, str]) -> None:
    assert not is_same_origin(Headers({**HERE, **said}), SiteSettings())


@pytest.mark.parametrize("host", ["review.example.org", "127.0.0.1:8350", "REVIEW.example.org:443"])
def test_behind_a_proxy_the_address_that_was_told_counts(host: str) -> None:
    """Whether the proxy hands the name on or puts the server's own in its place."""

    def known(**said: str) -> bool:
        return is_same_origin(Headers({"host": host, **said}), PUBLIC)

    assert known(origin=OURS)
    assert known(origin=f"{OURS}:443")
    assert known(referer=f"{OURS}/review")
    for other in ("http://review.example.org", f"{OURS}:8443", "https://example.org", "https://review.example.org."):
        assert not known(origin=other), other
        assert not known(referer=f"{other}/"), other


def test_the_server_refuses_what_comes_from_elsewhere_even_with_the_token(tmp_path: Path) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, _, (token, _) = make_study(store)
        with serving(create_app(store_site(store))) as address:
            visitor = Visitor(address, token)
            for headers in (
                {"Origin": ""},
                {"Origin": "null"},
                {"Origin": "https://evil.example"},
                {"Origin": "", "Referer": "https://evil.example/"},
                {"Sec_Fetch_Site": "cross-site"},
            ):
                seen = visitor.post("/leave", None, **headers)
                assert seen.status == 403, headers
                assert "another site" in seen.text
            assert visitor.get("/review").status == 200
            assert visitor.post("/leave", Origin="", Referer=f"{address}/review").status == 200


@needs_browser
def test_a_browser_that_does_not_say_where_a_form_is_from_can_still_send_it(browser: Browser, tmp_path: Path) -> None:
    """As older browsers do, and every browser where the server is another machine without HTTPS."""
    told: list[dict[str, str]] = []
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        _, people, (token, _) = make_study(store)
        with serving(create_app(store_site(store))) as address, tab(browser) as page:

            def strip(route: object, request: Request) -> None:
                headers = {k: v for k, v in request.all_headers().items() if not k.startswith("sec-fetch")}
                if request.method == "POST":
                    told.append(headers)
                route.continue_(headers=headers)  # type: ignore[attr-defined]

            page.route("**/*", strip)
            join(page, address, token)
            page.goto(f"{address}/review/study/items/item-0")
            page.get_by_role("radio").nth(3).check()
            expect(page.get_by_role("status").filter(has_text="Draft saved")).to_be_visible()
            page.once("dialog", lambda dialog: dialog.accept())
            page.get_by_role("button", name="Sign out").click()
            expect(page.get_by_role("heading", name="You are signed out")).to_be_visible()
            assert store.label("study", "item-0", people[0].id) is not None
    assert len(told) >= 3
    assert all("sec-fetch-site" not in headers for headers in told)
    assert {headers["origin"] for headers in told} == {address}
    assert not any(token in headers.get("referer", "") for headers in told)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("192.0.2.9", ["203.0.113.5"], "192.0.2.9"),  # no proxy of ours: what it says is nothing
        ("127.0.0.1", [], "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.5"], "203.0.113.5"),
        ("127.0.0.1", ["198.51.100.1, 203.0.113.5"], "203.0.113.5"),  # the left one is the client's own word
        ("127.0.0.1", ["198.51.100.1", "203.0.113.5"], "203.0.113.5"),
        ("127.0.0.1", ["203.0.113.5, 10.1.2.3"], "203.0.113.5"),  # two proxies of ours
        ("127.0.0.1", ["10.1.2.3"], "10.1.2.3"),
        ("127.0.0.1", ["203.0.113.5, rubbish"], "127.0.0.1"),
        ("127.0.0.1", ["203.0.113.5:4711"], "203.0.113.5"),
        ("127.0.0.1", ["[2001:db8::5]:4711"], "2001:db8::5"),
        ("::ffff:127.0.0.1", ["2001:db8::5"], "2001:db8::5"),
        ("", ["203.0.113.5"], ""),
    ],
)
def test_who_asks_behind_a_proxy(peer: str, forwarded: list[str], client: str) -> None:
    headers = Headers(raw=[(b"x-forwarded-for", each.encode()) for each in forwarded])
    proxies = tuple(known_network(each) for each in ("127.0.0.1", "10.0.0.0/8"))
    assert client_address(peer, headers, proxies) == client
    assert client_address(peer, headers, ()) == peer


def test_an_address_of_a_proxy_is_one() -> None:
    assert known_network(" 10.1.2.3/8") == "10.0.0.0/8"
    with pytest.raises(UsageError, match="not the address of a proxy"):
        known_network("proxy.example.org")


def test_where_an_answer_leads_is_told_without_scheme_and_name() -> None:
    headers = Headers({"host": "127.0.0.1:8350"})
    assert own_path("http://127.0.0.1:8350/review?a=1", headers) == "/review?a=1"
    assert own_path("http://127.0.0.1:8350//evil.example", headers) == "/evil.example"
    assert own_path("https://doi.example/10", headers) == "https://doi.example/10"
    assert own_path("/team", headers) == "/team"


@pytest.mark.parametrize(("proxies", "statuses"), [(("127.0.0.1/32",), [404] * 6), ((), [404] * 4 + [429] * 2)])
def test_wrong_links_are_counted_by_the_client_of_a_known_proxy_alone(
    tmp_path: Path, proxies: tuple[str, ...], statuses: list[int]
) -> None:
    with ReviewStore.open(str(tmp_path / "review.db")) as store:
        site = store_site(store, tries_per_minute=4, proxies=proxies)
        with serving(create_app(site)) as address:
            visitor = Visitor(address)
            seen = [visitor.get(f"/join/guess{n}", X_Forwarded_For=f"192.0.2.{n}").status for n in range(6)]
            assert seen == statuses
            own = [visitor.get(f"/join/guess{n}", X_Forwarded_For=f"192.0.2.{n}, 203.0.113.5").status for n in range(6)]
            assert own[-2:] == [429, 429]  # the client's own addition changes nothing
