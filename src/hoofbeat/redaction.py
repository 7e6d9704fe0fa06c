"""Secrets taken out of text before it leaves the program.

An endpoint, a proxy or a library may repeat a key in its error, and a model in its answer. Then the key would be on the
screen, in the ledger and in folders that are shared. The secrets are known: the values of environment variables that
are named like secrets, passwords in addresses there, and the keys that a client sends. Each is found as it is and
URL-encoded. This guards against an echo, not against an endpoint that hides a key in other words.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

REDACTED = "[redacted]"
_NAMED_SECRET = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE)$", re.IGNORECASE)
_OF_DATABASE = re.compile(
    r"(postgres(?:ql)?(?:\+\w+)?://[^/\s@:'\"]*):[^\s'\"]*@"
)  # its password may have any character
_IN_ADDRESS = re.compile(r"(?<!postgres://)(?<!postgresql://)(?<!pg8000://)(?<=://)[^/\s@'\"]+(?=@)")
_IN_QUERY = re.compile(r"(?<=[?&])(\w*(?:password|passwd|secret|token|key))=[^&\s'\"\]]*", re.IGNORECASE)
_MIN_LENGTH = 8  # shorter ones are words ("EMPTY", which vLLM's documentation uses), and are in every text


class Redactor:
    """Replaces secrets in texts."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = sorted({each for each in secrets if len(each) >= _MIN_LENGTH}, key=len, reverse=True)
        self._encoded = re.compile("|".join(map(_encoded, self._secrets)) or r"(?!)")

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        for secret in self._secrets:
            if secret in text:
                text = text.replace(secret, REDACTED)
        return self._encoded.sub(REDACTED, text) if "%" in text or "+" in text else text

    def in_message(self, text: str) -> str:
        """The same for an error's message, where what any address has before its @ is a secret as well.

        Of a database's address it is the password: whoever reads the message needs the user's name.
        """
        without = _OF_DATABASE.sub(rf"\1:{REDACTED}@", text)
        return self(_IN_QUERY.sub(rf"\1={REDACTED}", _IN_ADDRESS.sub(REDACTED, without)))


def without_user(address: str) -> str:
    """An address without the user and password in it."""
    return _IN_ADDRESS.sub("", address).replace("://@", "://")


def _encoded(secret: str) -> str:
    """A pattern for a secret with any of its characters URL-encoded."""
    forms = []
    for char in secret:
        bytes_of_it = "".join(f"%(?i:{byte:02x})" for byte in char.encode("utf-8", "surrogateescape"))
        forms.append(f"(?:{re.escape(char)}|{bytes_of_it}{'|[+]' if char == ' ' else ''})")
    return "".join(forms)


def environment_secrets() -> Iterator[str]:
    """The secrets among the environment's values. The path of a file with a secret is not a secret."""
    for name, value in os.environ.items():
        if _NAMED_SECRET.search(name) and not Path(value).is_absolute():
            yield value
        elif "://" in value and "@" in value:
            yield from _of_address(value)


def _of_address(address: str) -> Iterator[str]:
    """The password in an address, and user and password as a proxy is told them."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return
    if parts.password:
        user, password = unquote(parts.username or ""), unquote(parts.password)
        yield from (parts.password, password, base64.b64encode(f"{user}:{password}".encode()).decode())


def redact_message(text: str) -> str:
    """An error's message without the secrets of the environment."""
    return Redactor(environment_secrets()).in_message(text)
