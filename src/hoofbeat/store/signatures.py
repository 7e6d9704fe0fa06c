"""Signatures of artefact folders, by OpenSSH keys: proof of who published a folder, and that nothing has changed since.

What is signed is `manifest.json`, which has the hash of every other file; the signature lies beside it. OpenSSH makes
and checks it (`ssh-keygen -Y`), so keys, agents, hardware tokens and lists of known signers are those that people have,
and a folder can be checked without Hoofbeat:

    ssh-keygen -Y verify -f signers -I NAME -n hoofbeat -s manifest.json.sig < manifest.json
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from hoofbeat.errors import InputError, UsageError
from hoofbeat.store.artefact import MANIFEST, SIGNATURE, open_artefact
from hoofbeat.store.files import read_bytes, write_bytes

NAMESPACE = "hoofbeat"
"""What the signature is for: one that was made for another purpose does not count."""
_SECONDS = 60


def sign_folder(folder: Path, key: Path) -> Path:
    """Sign a folder that is as its manifest says with a private key, or with a public key whose agent holds the other.

    An earlier signature is replaced. OpenSSH asks for the key's passphrase at the terminal.
    """
    problems = open_artefact(folder).verify()
    if problems:
        raise InputError(
            f"the folder is not what its manifest says: {'; '.join(problems[:3])}",
            where=str(folder),
            fix="sign a folder that is as Hoofbeat wrote it",
        )
    if not key.is_file():
        raise InputError("there is no such key", where=str(key), fix="make one with ssh-keygen -t ed25519")
    signature = folder / SIGNATURE
    with tempfile.TemporaryDirectory() as apart:  # an earlier signature stays where this one can't be made
        copy = Path(apart) / MANIFEST
        copy.write_bytes(read_bytes(folder / MANIFEST))
        done = _ssh("-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(copy))
        made = Path(apart) / SIGNATURE
        if done.returncode or not made.is_file():
            raise InputError(
                f"ssh-keygen could not sign: {_said(done)}", where=str(key), fix="check the key and its passphrase"
            )
        write_bytes(signature, made.read_bytes())
    return signature


def signature_problem(folder: Path, signers: Path) -> tuple[str, str]:
    """Who signed a folder, and what is wrong: one of them is empty.

    `signers` lists the keys that count, in OpenSSH's form: a line with a name, and the public key.
    """
    if not signers.is_file():
        raise InputError(
            "there is no such list of signers",
            where=str(signers),
            fix="write one line per signer: a name, a space, and the line of the public key file",
        )
    signature = folder / SIGNATURE
    if not signature.is_file() or signature.is_symlink():
        return "", "it is not signed"
    found = _ssh("-Y", "find-principals", "-f", str(signers), "-s", str(signature))
    if found.returncode:
        return "", "the key that signed it is not among the signers"
    name = found.stdout.decode("utf-8", "replace").splitlines()[0].strip()
    signed = read_bytes(folder / MANIFEST)
    done = _ssh(
        "-Y", "verify", "-f", str(signers), "-I", name, "-n", NAMESPACE, "-s", str(signature), data=signed
    )  # fmt: skip
    if done.returncode:
        return "", f"the signature does not fit its manifest ({_said(done)})"
    return name, ""


def is_overtaken(folder: Path) -> bool:
    """Whether the signature beside a manifest, whoever made it, is of another manifest than this one."""
    signature = folder / SIGNATURE
    if not signature.is_file() or shutil.which("ssh-keygen") is None:
        return False
    signed = read_bytes(folder / MANIFEST)
    return _ssh("-Y", "check-novalidate", "-n", NAMESPACE, "-s", str(signature), data=signed).returncode != 0


def _ssh(*words: str, data: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    program = shutil.which("ssh-keygen")
    if program is None:
        raise UsageError("signatures need ssh-keygen", fix="install OpenSSH's client (version 8.2 or newer)")
    try:
        return subprocess.run([program, *words], input=data, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as err:
        raise InputError("ssh-keygen did not answer in a minute", fix="check the key's agent or token") from err


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    lines = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].strip() if lines else f"exit code {done.returncode}"
