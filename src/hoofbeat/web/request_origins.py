"""Where a request comes from: from which page, by the browser's word, and from which machine, by the proxy's.

A newer browser says in `Sec-Fetch-Site` whether a page of ours sent a form. Older ones don't, and none does where pages
come over plain HTTP from another machine; they say the page's origin, or its address. Our pages let them
(`Referrer-Policy`), and what names neither is refused.

Behind a proxy every request comes from the proxy, which appends to `X-Forwarded-For` who asked it. That is believed of
proxies that the server was told of, and of nobody else: whoever asks can write such a header.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from hoofbeat.errors import UsageError
from hoofbeat.web.site import SiteSettings

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
            f"{given!r} is no address of a proxy", fix="give --proxy an address such as 127.0.0.1, or a network"
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
