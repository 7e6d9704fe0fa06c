from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from hoofbeat.store import Manifest, create
from hoofbeat.store.files import write_bytes
from hoofbeat.web import create_app
from tests.web.browse_support import Visitor, a_site
from tests.web.support import needs_browser, serving, tab

HASH = "'sha256-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA='"


def a_report(target: Path, page: str) -> None:
    with create(target, replace_kind="report") as draft:
        write_bytes(draft.path / "report.html", page.encode())
        draft.finish(Manifest(kind="report", title="A report"))


def test_a_report_comes_as_it_is_with_a_policy_of_its_own(folders: Path) -> None:
    visitor = Visitor(a_site(folders))
    found = visitor.get("/reports/report")
    assert found.content == (folders / "report" / "report.html").read_bytes()
    policy = found.headers["content-security-policy"]
    own = re.search(r'Content-Security-Policy" content="([^"]+)"', found.text)
    assert own
    hashes = re.findall(r"sha256-[\w+/=]+", own[1])
    assert len(hashes) == 2
    assert re.findall(r"sha256-[\w+/=]+", policy) == hashes
    assert "default-src 'none'" in policy
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "unsafe-inline" not in visitor.get("/runs/judged").headers["content-security-policy"]
    assert "sha256" not in visitor.get("/runs/judged").headers["content-security-policy"]


@pytest.mark.parametrize(
    ("own", "scripts"),
    [
        (f"script-src {HASH}", HASH),
        ("script-src 'unsafe-inline' * data:", "'none'"),
        (f"default-src *; script-src 'unsafe-eval' {HASH} https://evil.example", HASH),
        ("", "'none'"),
        (f"style-src {HASH}", "'none'"),
    ],
)
def test_only_hashes_of_a_reports_own_policy_count(tmp_path: Path, own: str, scripts: str) -> None:
    meta = f'<meta http-equiv="Content-Security-Policy" content="{own}">' if own else ""
    a_report(tmp_path / "report", f"<!doctype html><html><head>{meta}</head></html>")
    policy = Visitor(a_site(tmp_path)).get("/reports/report").headers["content-security-policy"]
    assert f"; script-src {scripts};" in policy
    assert "evil" not in policy
    assert "unsafe" not in policy


@needs_browser
def test_a_reports_script_runs_in_a_box_of_its_own(folders: Path, browser: Browser) -> None:
    with serving(create_app(a_site(folders))) as url, tab(browser) as page:
        page.goto(f"{url}/reports/report")
        assert page.locator(".viewer .filter").first.is_visible()  # the page's script shows it
        assert page.evaluate("self.origin") == "null"
        assert page.locator("h1").inner_text() == "Invented study"
