"""Certificates made for a test, by openssl: an authority of its own, and servers that it vouches for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct

__all__ = ["Certificate", "make_authority", "make_certificate"]


class Certificate(Struct, frozen=True):
    """A certificate and its key, as files."""

    certificate: Path
    key: Path


def make_authority(folder: Path, name: str = "authority") -> Certificate:
    """A root certificate that nobody else has."""
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    _openssl(*_new(made, f"/CN=Invented {name}"), "-addext", "keyUsage=critical,keyCertSign,cRLSign")
    return made


def make_certificate(folder: Path, names: str, authority: Certificate, name: str = "server") -> Certificate:
    """The certificate of a server; `names` are those it goes by, such as `DNS:localhost,IP:127.0.0.1`."""
    made = Certificate(folder / f"{name}.pem", folder / f"{name}.key")
    by = ("-CA", str(authority.certificate), "-CAkey", str(authority.key))
    is_server = ("-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName={names}")
    _openssl(*_new(made, "/CN=Invented server"), *by, *is_server)
    made.key.chmod(0o600)
    return made


def _new(made: Certificate, subject: str) -> tuple[str, ...]:
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(made.key))
    return ("req", "-x509", *key, "-days", "2", "-subj", subject, "-out", str(made.certificate))


def _openssl(*words: str) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs openssl, which is not installed here")
    subprocess.run([openssl, *words], check=True, capture_output=True, timeout=60)
