"""Secrets are taken out of text as they are and URL-encoded; ordinary words stay."""

from __future__ import annotations

from urllib.parse import quote, quote_plus

import pytest

from hoofbeat.cli import _tell
from hoofbeat.redaction import REDACTED, Redactor, environment_secrets, redact_message

KEY = "sk-Secret/42+of=the house"


@pytest.mark.parametrize(
    "form", [KEY, quote(KEY), quote(KEY, safe=""), quote_plus(KEY), quote(KEY).replace("%2B", "%2b")]
)
def test_a_secret_is_found_in_every_form(form: str) -> None:
    assert Redactor([KEY])(f"key: {form}.") == f"key: {REDACTED}."


def test_every_byte_may_be_encoded() -> None:
    every = "".join(f"%{byte:02x}" for byte in KEY.encode())
    assert Redactor([KEY])(every) == REDACTED
    assert Redactor(["pässwörter"])(quote("pässwörter")) == REDACTED


def test_words_and_short_values_stay() -> None:
    redact = Redactor(["EMPTY", "", "sk-longer-1"])
    text = "The urinary bladder was EMPTY (100%)."
    assert redact(text) == text


def test_a_secret_within_a_longer_one_leaves_no_rest() -> None:
    assert Redactor(["abcdefgh", "abcdefghijkl"])("abcdefghijkl") == REDACTED


def test_the_environment_says_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GATEWAY_API_KEY", "gateway-1234")
    monkeypatch.setenv("HTTPS_PROXY", "http://horse:staple%2Fbattery@proxy.example:3128")
    monkeypatch.setenv("SIGNING_KEY", "/etc/keys/signing.pem")
    found = list(environment_secrets())
    assert "gateway-1234" in found
    assert {"staple%2Fbattery", "staple/battery"} <= set(found)
    assert "/etc/keys/signing.pem" not in found
    message = "407 from http://horse:staple%2Fbattery@proxy.example:3128 for staple/battery, gateway-1234"
    assert redact_message(message) == f"407 from http://{REDACTED}@proxy.example:3128 for {REDACTED}, {REDACTED}"


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ("https://me:pw@host/x and http://a/b@c", f"https://{REDACTED}@host/x and http://a/b@c"),
        ("https://token@host/x", f"https://{REDACTED}@host/x"),
        ("write postgresql://USER@HOST/DATABASE", "write postgresql://USER@HOST/DATABASE"),
        ("postgresql://me:pw@db/x, and more", f"postgresql://me:{REDACTED}@db/x, and more"),
        ("postgresql+pg8000://me:p@s/s:w@rd@db/x", f"postgresql+pg8000://me:{REDACTED}@db/x"),
        ("postgres://me@db/x?password=pw&port=5433", f"postgres://me@db/x?password={REDACTED}&port=5433"),
        ("dense[store=postgresql://db/x?password=pw]", f"dense[store=postgresql://db/x?password={REDACTED}]"),
        ("http://host/v1?api_key=12&n=3", f"http://host/v1?api_key={REDACTED}&n=3"),
    ],
)
def test_secrets_in_any_address_leave_a_message(told: str, shown: str) -> None:
    assert redact_message(told) == shown


def test_an_error_on_the_screen_and_in_json_is_without_secrets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GATEWAY_API_KEY", "gateway-1234")
    assert _tell(True, 3, "no gateway-1234", "http://me:pw@host", "try gateway-1234", {"more": ["gateway-1234"]}) == 3
    told = capsys.readouterr()
    assert "gateway-1234" not in told.out + told.err
    assert "me:pw" not in told.out + told.err
