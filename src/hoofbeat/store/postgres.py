"""Connections to PostgreSQL: addresses, passwords, encryption, and what went wrong in our own words.

The driver is pg8000 (BSD licence, no compiled part), from the extra `hoofbeat[postgres]`. A password comes from
`PGPASSWORD` or the password file that PostgreSQL's own tools read (`~/.pgpass`, `PGPASSFILE`). An address that a file
or a manifest may repeat must not have one.
"""

from __future__ import annotations

import os
import re
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hoofbeat.errors import OutputError, UsageError

if TYPE_CHECKING:
    from pg8000.native import Connection  # type: ignore[import-untyped]
    from sqlalchemy.engine import URL

_CONNECT_SECONDS = 10
_SCHEMES = ("postgresql://", "postgres://")
# A machine that vanished is noticed by the server after a minute: then its session ends, and its locks with it.
_KEEPALIVE = "SET tcp_keepalives_idle=30; SET tcp_keepalives_interval=10; SET tcp_keepalives_count=3"


def is_postgres(place: object) -> bool:
    """Whether this is the address of a PostgreSQL database."""
    return isinstance(place, str) and place.startswith(_SCHEMES)


def public_address(url: URL) -> str:
    """An address as it may be shown: without its password, also one with an @ in it, and without unknown settings."""
    host = (url.host or "").rpartition("@")[2] or None
    shown = url._replace(drivername="postgresql", password=None, host=host)
    return shown.difference_update_query(set(url.query) - set(_SETTINGS)).render_as_string()


_SETTINGS = ("host", "port", "sslmode", "sslrootcert")


class PostgresServer:
    """A database on a server, by its address; `where` names it without a password."""

    def __init__(self, address: str, *, password_allowed: bool = False) -> None:
        from sqlalchemy.engine import make_url  # noqa: PLC0415 - only teams need it
        from sqlalchemy.exc import ArgumentError  # noqa: PLC0415

        try:
            url = make_url(address)
        except (ArgumentError, ValueError):
            raise UsageError("this is not the address of a PostgreSQL database", fix=_ADDRESS) from None
        self.where = public_address(url)
        if url.password and not password_allowed:
            raise UsageError(
                "the database's address contains a password, which manifests and files would repeat",
                where=self.where,
                fix="leave it out: set PGPASSWORD, or add a line to ~/.pgpass",
            )
        query = {name: str(value) for name, value in url.query.items()}
        folder, port = query.pop("host", ""), int(query.pop("port", None) or url.port or 5432)
        encrypting = ssl_setting(query.pop("sslmode", ""), query.pop("sslrootcert", ""))
        if query:
            raise UsageError(
                f"the database's address has unknown settings: {', '.join(sorted(query))}",
                where=self.where,
                fix=f"only {', '.join(_SETTINGS)} can be given there; a password belongs in PGPASSWORD or ~/.pgpass",
            )
        user = url.username or os.environ.get("PGUSER") or os.environ.get("USER") or "postgres"
        self._settings: dict[str, Any] = {"user": user, "database": url.database or user, "ssl_context": encrypting}
        if folder.startswith("/"):  # a socket does not leave the machine
            self._settings |= {"unix_sock": f"{folder}/.s.PGSQL.{port}", "ssl_context": False}
        else:
            self._settings |= {"host": folder or url.host or "localhost", "port": port}
        known = known_password(self._settings.get("host", "localhost"), port, self._settings["database"], user)
        self._settings["password"] = url.password or known

    @property
    def host(self) -> str:
        """The server's machine; empty for a socket, which does not leave this one."""
        return str(self._settings.get("host", ""))

    def connect(self) -> Connection:
        """A new connection; the server is given ten seconds to answer."""
        try:
            from pg8000.native import Connection  # noqa: PLC0415 - an extra
        except ImportError:
            raise UsageError(
                "PostgreSQL needs a driver that is not installed", fix="install it: pip install 'hoofbeat[postgres]'"
            ) from None
        try:
            connection = Connection(**self._settings, timeout=_CONNECT_SECONDS, application_name="hoofbeat")
            _wait_long(connection._usock, by_network="host" in self._settings)
            connection.run(_KEEPALIVE)
        except Exception as err:
            raise self.error(err) from None
        return connection

    def error(self, err: BaseException) -> OutputError:
        """What went wrong with the server, in our words."""
        what, fix = ssl_words(err) if isinstance(err, ssl.SSLError) else server_words(err)
        return OutputError(what, where=self.where, fix=fix, details={"code": error_code(err)})


def _wait_long(line: Any, *, by_network: bool) -> None:
    """Wait for an answer as long as the server is there: building an index may take an hour.

    Linux notices within about a minute that the other machine is gone; other systems by their own settings.
    """
    line.settimeout(None)
    if by_network and sys.platform == "linux":
        for option, value in _TCP_OPTIONS.items():
            line.setsockopt(_TCP, option, value)


_TCP = 6
_TCP_OPTIONS = {4: 30, 5: 10, 6: 3, 18: 60_000}  # TCP_KEEPIDLE, _KEEPINTVL, _KEEPCNT; TCP_USER_TIMEOUT in ms
_ADDRESS = "write it as postgresql://USER@HOST/DATABASE"
_LOST = ("08", "57P")  # connection errors; the server is stopped, starts, or dropped the connection


def is_lost(err: BaseException) -> bool:
    """Whether the connection is gone, so that a new one may do what this one could not."""
    from pg8000.exceptions import InterfaceError  # type: ignore[import-untyped] # noqa: PLC0415

    code = str(err.details["code"]) if isinstance(err, OutputError) else error_code(err)
    if code:
        return code.startswith(_LOST) or code == "53300"
    return isinstance(err, InterfaceError | OSError | OutputError)


def known_password(host: str, port: int, database: str | None, user: str | None) -> str | None:
    """The password in `PGPASSWORD`, else the one that the password file has for this server, database and user."""
    if password := os.environ.get("PGPASSWORD"):
        return password
    file = Path(os.environ.get("PGPASSFILE") or "~/.pgpass").expanduser()
    try:
        if os.name == "posix" and file.stat().st_mode & 0o077:
            return None  # as PostgreSQL's own tools: a file that others can read is not used
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    wanted = (host or "localhost", str(port), database or "", user or "")
    for line in lines:
        fields = [field.replace("\\:", ":").replace("\\\\", "\\") for field in _FIELD_END.split(line)]
        if len(fields) == 5 and all(field in ("*", value) for field, value in zip(fields, wanted, strict=False)):
            return fields[4]
    return None


_FIELD_END = re.compile(r"(?<!\\):")  # a colon inside a field has a backslash before it

MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""What `sslmode` may say; without it, `prefer`: encrypted where the server can, without checking who it is."""

_SYSTEM = "system"
_OTHER_NAME = (62, 64)  # OpenSSL's numbers: another name, another address
_TIMES = (9, 10)  # not yet, not any more


def ssl_setting(mode: str, root: str) -> ssl.SSLContext | bool | None:
    """What the driver is given: a context, True or False to insist on either, None to try.

    `root` is a file with the certificates that are trusted, or `system`; without it those of this machine are. Where it
    is given, `require` also checks the certificate.
    """
    if mode not in ("", *MODES):
        raise UsageError(f"there is no sslmode {mode!r}", fix=f"use one of: {', '.join(MODES)}")
    if mode not in ("verify-ca", "verify-full") and not (mode == "require" and root):
        if root:
            raise UsageError(
                "sslrootcert is given, but sslmode does not check the server",
                fix="add sslmode=verify-full to the address",
            )
        return {"require": True, "disable": False}.get(mode)
    try:
        context = ssl.create_default_context(cafile=None if root in ("", _SYSTEM) else str(Path(root).expanduser()))
    except ssl.SSLError:
        raise UsageError("this file has no certificate that can be read", where=root, fix="give a PEM file") from None
    except OSError as err:
        raise UsageError(
            f"the file of sslrootcert can't be read: {err.strerror}", where=root, fix="check the path in the address"
        ) from None
    context.check_hostname = mode == "verify-full"
    return context


def ssl_words(err: ssl.SSLError) -> tuple[str, str]:
    """What is wrong with the encryption, and what to do."""
    if not isinstance(err, ssl.SSLCertVerificationError):
        return "the database server and this machine can't agree on an encryption", "check the server's log"
    if err.verify_code in _OTHER_NAME:
        return (
            "the database server's certificate is for another name: this may not be the server you mean",
            "use the name in its certificate, or get a certificate for this name",
        )
    if err.verify_code in _TIMES:
        return "the database server's certificate has expired, or is not valid yet", "get a new one"
    return (
        "this machine does not trust the database server's certificate: this may not be the server you mean",
        "name the certificate of its authority in the address: sslmode=verify-full&sslrootcert=FILE",
    )


_WORDS = {
    "28P01": (
        "the database refuses the user or the password",
        "check the user in its address, and the password in PGPASSWORD or in ~/.pgpass",
    ),
    "28000": ("the database refuses this user", "check the user in its address and the server's access rules"),
    "3D000": ("there is no such database", "create it on the server first, or check its name in the address"),
    "42501": (
        "the database user lacks the rights for this",
        "give the user the right to create and change tables in this database",
    ),
    "53100": ("the database server's disk is full", "free some space on the server"),
    "53300": ("the database server takes no more connections", "wait, or raise its limit"),
    "25006": ("the database is read-only", "name the server that can be written to"),
    "57P01": ("the database server was stopped", "start it, then try again"),
    "57P03": ("the database server is starting or stopping", "try again in a moment"),
    "57014": ("the database took too long", "try again in a moment"),
}


def server_words(said: BaseException | None) -> tuple[str, str]:
    """What is wrong, and what to do, without a word of the driver's own: it may quote statements and values."""
    if code := error_code(said):
        return _WORDS.get(code, (f"the database refuses this (code {code})", "check the server's log"))
    if isinstance(said, AttributeError) or "password" in str(said):  # pg8000 without one, where the server asks for it
        return _WORDS["28P01"]
    if "SSL" in str(said):
        return "the database server does not encrypt", "leave sslmode out of the address, or set the server up for it"
    return "the database server can't be reached", "check its address, and that it is running"


def error_code(said: BaseException | None) -> str:
    """The server's code for what went wrong; the driver hides it behind its own trouble with hanging up."""
    seen: set[int] = set()
    while said is not None and id(said) not in seen:
        seen.add(id(said))
        if said.args and isinstance(said.args[0], dict):
            return str(said.args[0].get("C", ""))
        said = said.__cause__ or said.__context__
    return ""
