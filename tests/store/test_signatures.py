"""Signatures by real OpenSSH keys: who published a folder, and that nothing has changed since."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.store.artefact import SIGNATURE, open_artefact
from hoofbeat.store.signatures import sign_folder, signature_problem
from tests.cli.support import hoofbeat, json_of
from tests.store.test_artefact import make

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="OpenSSH's client is not installed")


def new_key(folder: Path, name: str) -> Path:
    key = folder / name
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True, capture_output=True
    )
    return key


def signers(folder: Path, *keys: Path) -> Path:
    file = folder / "signers"
    lines = [f"{key.name}@example.org {key.with_name(key.name + '.pub').read_text()}" for key in keys]
    file.write_text("".join(lines))
    return file


def test_a_signed_folder_tells_its_signer_and_stays_whole(tmp_path: Path) -> None:
    make(tmp_path / "run")
    key = new_key(tmp_path, "committee")
    assert sign_folder(tmp_path / "run", key).name == SIGNATURE
    assert signature_problem(tmp_path / "run", signers(tmp_path, key)) == ("committee@example.org", "")
    assert open_artefact(tmp_path / "run").verify() == [], "a signature is no added file"
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert signature_problem(tmp_path / "copy", tmp_path / "signers")[0] == "committee@example.org"


def test_what_is_not_signed_by_these_keys_is_said(tmp_path: Path) -> None:
    make(tmp_path / "run")
    key, other = new_key(tmp_path, "committee"), new_key(tmp_path, "other")
    known = signers(tmp_path, key)
    assert signature_problem(tmp_path / "run", known) == ("", "it is not signed")
    sign_folder(tmp_path / "run", other)
    assert "not among the signers" in signature_problem(tmp_path / "run", known)[1]
    sign_folder(tmp_path / "run", key)
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"kept": 1', '"kept": 2'))
    assert "does not fit its manifest" in signature_problem(tmp_path / "run", known)[1]
    told = hoofbeat("verify", "run", folder=tmp_path, code=1).stdout
    assert "its manifest is not the one that was signed" in told


def test_an_earlier_signature_stays_where_a_new_one_fails(tmp_path: Path) -> None:
    make(tmp_path / "run")
    key = new_key(tmp_path, "committee")
    known = signers(tmp_path, key)
    sign_folder(tmp_path / "run", key)
    with pytest.raises(InputError, match="could not sign"):
        sign_folder(tmp_path / "run", known)
    assert signature_problem(tmp_path / "run", known) == ("committee@example.org", "")
    assert hoofbeat("verify", "run", folder=tmp_path).stdout.startswith("run: unchanged")


def test_a_signature_for_another_purpose_does_not_count(tmp_path: Path) -> None:
    make(tmp_path / "run")
    key = new_key(tmp_path, "committee")
    manifest = tmp_path / "run" / "manifest.json"
    subprocess.run(["ssh-keygen", "-Y", "sign", "-f", key, "-n", "email", manifest], check=True, capture_output=True)
    assert signature_problem(tmp_path / "run", signers(tmp_path, key))[0] == ""


def test_a_changed_folder_and_a_missing_key_are_refused(tmp_path: Path) -> None:
    make(tmp_path / "run")
    with pytest.raises(InputError, match="no such key"):
        sign_folder(tmp_path / "run", tmp_path / "none")
    (tmp_path / "run" / "answers.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="not what its manifest says"):
        sign_folder(tmp_path / "run", new_key(tmp_path, "committee"))
    with pytest.raises(InputError, match="no such list of signers"):
        signature_problem(tmp_path / "run", tmp_path / "none")


def test_the_commands(tmp_path: Path) -> None:
    make(tmp_path / "all" / "one")
    make(tmp_path / "all" / "two", text="bye")
    key = new_key(tmp_path, "committee")
    signers(tmp_path, key)
    assert "Signed all/one" in hoofbeat("sign", "all", "--key", "committee", folder=tmp_path).stdout
    told = hoofbeat("verify", "all", "--signed-by", "signers", folder=tmp_path).stdout
    assert "all/two: unchanged, signed by committee@example.org" in told
    (tmp_path / "all" / "SUMMARY.html").write_text("nobody signed this", encoding="utf-8")
    unsigned = hoofbeat("verify", "all", "--signed-by", "signers", folder=tmp_path, code=1).stderr
    assert "this is in no signed folder" in unsigned
    assert "all/SUMMARY.html" in unsigned
    (tmp_path / "all" / "two" / "answers.jsonl").write_text("{}\n")
    damaged = json_of(hoofbeat("verify", "all", "--signed-by", "signers", "--json", folder=tmp_path, code=1))
    assert damaged["problems"]["all/two"] == ["answers.jsonl has changed since it was written"]
    (tmp_path / "all" / "one" / SIGNATURE).unlink()
    assert "it is not signed" in hoofbeat("verify", "all/one", "--signed-by", "signers", folder=tmp_path, code=1).stdout
