"""A visitor without a browser: keeps cookies and the token of the last page, and says exactly what is sent."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

__all__ = ["Seen", "Visitor"]

_TOKEN = re.compile(r'name="csrf" (?:content|value)="([^"]+)"')


class Seen(Struct, frozen=True):
    """An answer."""

    status: int
    headers: dict[str, str]
    cookies: tuple[str, ...]
    content: bytes

    @property
    def text(self) -> str:
        """The answer as text."""
        return self.content.decode("utf-8", "replace")

    def json(self) -> Any:
        """The answer's JSON."""
        return json.loads(self.text)


_CAME_IN: dict[tuple[int, str], dict[str, str]] = {}
"""The cookies of those who came in, by port and token: a link works once, and several visitors are one browser."""


class Visitor:
    """Somebody at a server, who has come in where a token is given; with the same token again, in the same browser."""

    def __init__(self, address: str, token: str = "") -> None:
        parts = urlsplit(address)
        self.host, self.port = str(parts.hostname), int(parts.port or 80)
        self.cookies: dict[str, str] = {}
        self.csrf = ""
        if token and (self.port, token) in _CAME_IN:
            self.cookies.update(_CAME_IN[self.port, token])
            self.get("/review")
        elif token:
            assert self.join(token).status == 303
            _CAME_IN[self.port, token] = dict(self.cookies)

    def send(self, method: str, path: str, body: bytes | str = b"", **headers: str) -> Seen:
        """Send a request as it is given; header names have underscores for hyphens, an empty one is left out.

        What changes something says by itself that it comes from the server's own pages.
        """
        here = f"{self.host}:{self.port}"
        given = {"Host": here, **self._cookie_header(), **({"Origin": f"http://{here}"} if method == "POST" else {})}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(self.host, self.port, timeout=120)
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            data = body.encode() if isinstance(body, str) else body
            if data or method == "POST":
                given.setdefault("Content-Length", str(len(data)))
            for name, value in given.items():
                if value:
                    connection.putheader(name, value)
            connection.endheaders(data or None)
            answer = connection.getresponse()
            content = answer.read()
            cookies = tuple(value for name, value in answer.getheaders() if name.lower() == "set-cookie")
            seen = Seen(answer.status, {name.lower(): value for name, value in answer.getheaders()}, cookies, content)
        finally:
            connection.close()
        self._remember(seen)
        return seen

    def get(self, path: str, **headers: str) -> Seen:
        """Open a page."""
        return self.send("GET", path, **headers)

    def post(self, path: str, fields: Mapping[str, object] | None = None, **headers: str) -> Seen:
        """Send a form, with the token of the last page unless `csrf` is among the fields."""
        body = urlencode({"csrf": self.csrf, **(fields or {})}, doseq=True)
        return self.send("POST", path, body, **{"Content_Type": "application/x-www-form-urlencoded", **headers})

    def post_json(self, path: str, value: object, **headers: str) -> Seen:
        """Send JSON as our own script does."""
        given = {"Content_Type": "application/json", "X_CSRF_Token": self.csrf, **headers}
        return self.send("POST", path, json.dumps(value), **given)

    def join(self, token: str) -> Seen:
        """Come in with an invitation."""
        self.get(f"/join/{token}")
        seen = self.post(f"/join/{token}")
        self.get("/review")
        return seen

    def post_and_hang_up(self, path: str, value: object) -> None:
        """Send a whole request and close the line without reading what comes back."""
        body = json.dumps(value).encode()
        cookies = self._cookie_header().get("Cookie", "")
        head = (
            f"POST {path} HTTP/1.1\r\nHost: {self.host}:{self.port}\r\nCookie: {cookies}\r\n"
            f"Origin: http://{self.host}:{self.port}\r\n"
            f"Content-Type: application/json\r\nX-CSRF-Token: {self.csrf}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection((self.host, self.port), timeout=60) as line:
            line.sendall(head.encode() + body)

    def _cookie_header(self) -> dict[str, str]:
        jar = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        return {"Cookie": jar} if jar else {}

    def _remember(self, seen: Seen) -> None:
        for cookie in seen.cookies:
            name, _, rest = cookie.partition("=")
            value = rest.partition(";")[0].strip('"')
            if value and "Max-Age=0" not in cookie:
                self.cookies[name] = value
            else:
                self.cookies.pop(name, None)
        if found := _TOKEN.search(seen.text):
            self.csrf = found[1]
