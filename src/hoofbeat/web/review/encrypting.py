"""How a line to PostgreSQL is encrypted, by the `sslmode` and `sslrootcert` of its address, as PostgreSQL's own do."""

from __future__ import annotations

import ssl
from pathlib import Path

from hoofbeat.errors import UsageError

__all__ = ["MODES", "ssl_setting", "ssl_words"]

MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
"""What `sslmode` may say; without it, `prefer`: encrypted where the server can, and whoever it is."""

_SYSTEM = "system"
_OTHER_NAME = (62, 64)  # OpenSSL's numbers: another name, another address
_TIMES = (9, 10)  # not yet, not any more


def ssl_setting(mode: str, root: str) -> ssl.SSLContext | bool | None:
    """What the driver is given: a context, True or False to insist on either, None to try.

    `root` is a file with the certificates that are trusted, or `system`; without it those of this machine are. Where it
    is given, `require` looks at the certificate, too.
    """
    if mode not in ("", *MODES):
        raise UsageError(f"there is no sslmode {mode!r}", fix=f"use one of: {', '.join(MODES)}")
    if mode not in ("verify-ca", "verify-full") and not (mode == "require" and root):
        if root:
            raise UsageError(
                "sslrootcert is given, and sslmode lets the server go unchecked",
                fix="add sslmode=verify-full to the address",
            )
        return {"require": True, "disable": False}.get(mode)
    try:
        context = ssl.create_default_context(cafile=None if root in ("", _SYSTEM) else str(Path(root).expanduser()))
    except ssl.SSLError:
        raise UsageError("this file has no certificate that can be read", where=root, fix="give a PEM file") from None
    except OSError as err:
        raise UsageError(
            f"the file of sslrootcert can't be read: {err.strerror}", where=root, fix="look at the path in the address"
        ) from None
    context.check_hostname = mode == "verify-full"
    return context


def ssl_words(err: ssl.SSLError) -> tuple[str, str]:
    """What is wrong with the encryption, and what to do."""
    if not isinstance(err, ssl.SSLCertVerificationError):
        return "the database server and this machine find no way to encrypt", "look at the server's log"
    if err.verify_code in _OTHER_NAME:
        return (
            "the database server's certificate is for another name: this may not be the server you mean",
            "use the name that is in its certificate, or have one made for this name",
        )
    if err.verify_code in _TIMES:
        return "the database server's certificate has run out, or is not valid yet", "have a new one made"
    return (
        "the database server's certificate is of nobody whom this machine trusts: this may not be the server you mean",
        "name the certificate of its authority in the address: sslmode=verify-full&sslrootcert=FILE",
    )
