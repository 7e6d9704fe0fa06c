"""The server: it takes a port, says where it is, and runs until it is stopped.

On loopback whoever is on this machine may look. Where other machines can reach it, the browse pages open only with a
secret that is shown at the start, and people come in with their invitations.
"""

from __future__ import annotations

import errno
import secrets
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from urllib.parse import urlsplit

from msgspec import Struct, structs

from hoofbeat.errors import UsageError
from hoofbeat.review.invitations import LINK_DAYS, secret_hash
from hoofbeat.review.review_records import in_utc
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.text import for_terminal
from hoofbeat.trust import is_this_machine
from hoofbeat.web.app import create_app
from hoofbeat.web.connections import ListeningServer, server_config
from hoofbeat.web.security import known_network
from hoofbeat.web.site import Site


class RunningServer(Struct, frozen=True, kw_only=True):
    """A server that has begun to listen: where, and the links that open it, each shown this once.

    `browse` lets a browser look at the artefacts of a public server; `come_in` signs the first admin in. `public` says
    that other machines can reach it, `encrypted` that it stands behind HTTPS, `reviews` that people review there.
    `come_in_until` is when that link ends. `admins` were invited before, if any were. `listens` is where a proxy asks
    it, if people reach it elsewhere.
    """

    address: str
    listens: str = ""
    browse: str = ""
    come_in: str = ""
    come_in_until: str = ""
    public: bool = False
    encrypted: bool = False
    reviews: bool = False
    admins: tuple[str, ...] = ()

    def warning(self) -> str:
        """What to say of a server that others can reach."""
        if not self.public:
            return ""
        said = "Other machines can reach this server. Give its links only to people who may see these folders."
        if not self.encrypted:
            said += " It does not encrypt: put it behind HTTPS, and give that address with --url https://…"
        return said


def first_admin(store: ReviewStore, name: str = "Admin", days: int = LINK_DAYS) -> tuple[str, str]:
    """The path that signs a new admin in, and when it ends, if the review store has none yet; empty if it has."""
    if any(person.role == "admin" and person.active for person in store.people()):
        return "", ""
    person, token = store.invite(name, "admin", by="", days=days)
    return f"/join/{token}", in_utc(person.link_until)


def _admins(store: ReviewStore) -> tuple[str, ...]:
    return tuple(person.name for person in store.people() if person.role == "admin" and person.active)


def serve(
    site: Site,
    *,
    host: str = "127.0.0.1",
    port: int = 8350,
    url: str = "",
    proxies: Sequence[str] = (),
    ready: Callable[[RunningServer], None] | None = None,
) -> None:
    """Serve a site until Ctrl-C. `url` is where people reach it if not by `host` and `port` (behind a proxy);
    `proxies` are the addresses of those that are believed when they say for whom they ask.

    The first admin of reviews is invited once the server has its port, so that no link is made that nobody sees.
    """
    site.settings = structs.replace(site.settings, proxies=tuple(known_network(each) for each in proxies))
    with closing(_listener(host, port)) as listener:
        settled = _settle(site, host, listener.getsockname()[1], url)
        path, until = first_admin(site.store, days=site.settings.link_days) if site.store is not None else ("", "")
        told = structs.replace(
            settled,
            come_in=f"{settled.address}{path}" if path else "",
            come_in_until=until,
            admins=() if path or site.store is None else _admins(site.store),
        )
        try:
            ListeningServer(server_config(create_app(site)), lambda: (ready or print_ready)(told)).run(
                sockets=[listener]
            )
        except KeyboardInterrupt:  # that is how it is stopped
            return


def print_ready(told: RunningServer) -> None:
    """Say where the server is, for people."""
    lines = [f"Hoofbeat is at {told.address}"]
    lines += [f"  for a proxy, it listens on {told.listens}"] if told.listens else []
    if told.browse:
        lines += [f"  to open the pages, use this link; whoever has it can look until the server stops: {told.browse}"]
    if told.come_in:
        lines += [f"  to sign in as admin, use this link once, until {told.come_in_until}: {told.come_in}"]
    if told.reviews and not told.come_in:
        names = for_terminal(", ".join(told.admins))
        lines += [
            f"  admins, who sign in with the link they got earlier: {names}",
            "  to give one of them a new link: hoofbeat review invite NAME --again",
            "  to remove one whom you don't know (a file from elsewhere may name its own): hoofbeat review revoke NAME",
        ]
    lines += ["Stop it with Ctrl-C."]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
    if warning := told.warning():
        sys.stderr.write(f"warning: {warning}\n")


def _listener(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise UsageError(f"there is no address {host!r}", fix="give --host an address of this machine") from None
    family, kind, protocol, _, place = found[0]
    listener = socket.socket(family, kind, protocol)
    try:
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(place)
        listener.listen(1024)
    except OSError as err:
        listener.close()
        raise _cant_listen(host, port, err) from None
    return listener


def _cant_listen(host: str, port: int, err: OSError) -> UsageError:
    if err.errno == errno.EADDRINUSE:
        return UsageError(
            f"port {port} is in use, perhaps by another Hoofbeat",
            fix="choose another with --port, or --port 0 for a free one",
        )
    if err.errno == errno.EACCES:
        return UsageError(f"port {port} needs administrator rights", fix="choose a port above 1023 with --port")
    if err.errno == errno.EADDRNOTAVAIL:
        return UsageError(f"{host} is not an address of this machine", fix="remove --host to serve this machine only")
    return UsageError(f"the server can't listen there: {err.strerror}", fix="check --host and --port")


def _settle(site: Site, host: str, port: int, url: str) -> RunningServer:
    """Write down in the site's settings where it is reached, and make the secret of a public one."""
    everywhere = host in ("", "0.0.0.0", "::")  # noqa: S104 - a question, not a choice
    name = socket.gethostname() if everywhere else host
    own = f"http://{f'[{name}]' if ':' in name else name}:{port}"
    address = url.rstrip("/") or own
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
        raise UsageError(f"{url!r} is not the address of a server", fix="give --url like https://review.example.org")
    public = everywhere or not (is_this_machine(host) and is_this_machine(parts.hostname))
    secret = ""
    if public and not site.settings.access:
        secret = secrets.token_urlsafe(32)
    site.settings = structs.replace(
        site.settings,
        base_url=address,
        secure=parts.scheme == "https",
        any_address=everywhere,
        access=secret_hash(secret) if secret else site.settings.access,
    )
    return RunningServer(
        address=address,
        listens="" if address == own else own,
        browse=f"{address}/enter/{secret}" if secret else "",
        public=public,
        encrypted=site.settings.secure,
        reviews=site.store is not None,
    )
