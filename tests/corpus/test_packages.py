"""PMC packages: articles with their images, bulk packages, and packages made to do harm."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.corpus.parsers import archive_members as members_module
from hoofbeat.corpus.readers import package as packages_module
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.store import files as streams_module

ARTICLE = (
    "<article xmlns:xlink='http://www.w3.org/1999/xlink'><front><article-meta>"
    "<article-id pub-id-type='pmc'>{id}</article-id></article-meta></front>"
    "<body><p>Text of {id}.</p>{more}</body></article>"
)
FIGURES = "".join(
    f"<fig id='f{number}'><caption><p>C</p></caption><graphic xlink:href='{name}'/></fig>"
    for number, name in enumerate(["fig-g001", "fig-g002.tif", "gone"])
)


def tar(path: Path, members: dict[str, bytes], change: Callable[[tarfile.TarInfo], None] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as package:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if change is not None:
                change(info)
            package.addfile(info, io.BytesIO(data))
    return path


def article(id: str, more: str = "") -> bytes:
    return ARTICLE.format(id=id, more=more).encode()


MEMBERS = {
    "PMC1/fig-g001.gif": b"GIF small",
    "PMC1/fig-g001.jpg": b"JPG",
    "PMC1/article.nxml": article("1", FIGURES),
    "PMC1/fig-g002.jpg": b"JPG 2",
    "PMC1/article.pdf": b"%PDF-1.4",
    "PMC1/supplement.zip": b"PK",
    "PMC1/.hidden.nxml": b"<x/>",
}


@pytest.mark.parametrize("kind", ["tar.gz", "zip"])
def test_an_article_with_its_images(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "in" / "oa"
    folder.mkdir(parents=True)
    path = folder / f"PMC1.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as package:
            for name, data in MEMBERS.items():
                package.writestr(name, data)
    else:
        tar(path, MEMBERS)
    tar(folder / "PMC2.tar.gz", {"PMC2/a.nxml": article("2")})
    artefact = import_corpus([tmp_path / "in"], tmp_path / "c")
    corpus = Corpus(artefact)
    assert set(corpus.ids()) == {"PMC1", "PMC2"}
    files = [figure.files for figure in corpus.get("PMC1").figures]
    assert files == [("images/PMC1/fig-g001.jpg",), ("images/PMC1/fig-g002.jpg",), ()]
    assert artefact.file("images/PMC1/fig-g001.jpg").read_bytes() == b"JPG"
    assert artefact.manifest.metrics == {"images": 2, "images_missing": 1}
    provenance = corpus.get("PMC1").provenance
    assert provenance is not None
    assert (provenance.source, provenance.member) == (path.name, "article.nxml")
    listed = {file.relative_to(artefact.path).as_posix() for file in artefact.path.rglob("*") if file.is_file()}
    assert listed == {"documents.jsonl", "rejected.jsonl", "manifest.json", *(file for each in files for file in each)}


def test_bulk_packages_are_read_member_by_member(tmp_path: Path) -> None:
    members = {f"PMC00/PMC{number}.xml": article(str(number)) for number in range(1, 30)}
    members["PMC00/PMC7.xml"] = b"<article>"
    artefact = import_corpus([tar(tmp_path / "bulk.tar.gz", members)], tmp_path / "c")
    assert artefact.manifest.counts.kept == 28
    (line,) = artefact.file("rejected.jsonl").read_text().splitlines()
    assert json.loads(line)["source"] == "bulk.tar.gz: PMC00/PMC7.xml"


def test_a_package_of_one_scan_says_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="PDF"):
        list(read_file(tar(tmp_path / "a.tar.gz", {"a/b.pdf": b"no pdf"})))
    with pytest.raises(InputError, match="no article in this package"):
        list(read_file(tar(tmp_path / "b.tar.gz", {"a/b.docx": b"x"})))


def _link(info: tarfile.TarInfo) -> None:
    if not info.name.endswith("xml"):
        info.type, info.linkname, info.size = tarfile.SYMTYPE, "/etc/passwd", 0


def _hard_link(info: tarfile.TarInfo) -> None:
    if not info.name.endswith("xml"):
        info.type, info.linkname, info.size = tarfile.LNKTYPE, "../../etc/passwd", 0


def _device(info: tarfile.TarInfo) -> None:
    if not info.name.endswith("xml"):
        info.type, info.size = tarfile.CHRTYPE, 0


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("../../escape.jpg", None),
        ("/tmp/escape.jpg", None),
        ("PMC1/../../escape.jpg", None),
        ("..\\escape.jpg", None),
        ("C:\\escape.jpg", None),
        ("PMC1/escape.jpg", _link),
        ("PMC1/escape.jpg", _hard_link),
        ("PMC1/escape.jpg", _device),
    ],
)
def test_packages_that_reach_out_are_refused(
    tmp_path: Path, name: str, change: Callable[[tarfile.TarInfo], None] | None
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    tar(folder / "bad.tar.gz", {"PMC1/a.nxml": article("1"), name: b"SECRET"}, change)
    (folder / "good.txt").write_text("Good.")
    before = set(tmp_path.rglob("*"))
    artefact = import_corpus([folder], tmp_path / "c")
    assert Corpus(artefact).ids() == ("good",)
    assert artefact.manifest.counts.reasons == {"package refused as hostile": 1}
    new = {path for path in set(tmp_path.rglob("*")) - before if tmp_path / "c" not in (path, *path.parents)}
    assert new == set()
    assert not Path("/tmp/escape.jpg").exists()


@pytest.mark.parametrize("name", ["../escape.xml", "/escape.xml", "a/../../escape.xml"])
def test_zip_traversal_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as package:
        package.writestr(name, article("1"))
    with pytest.raises(HostileInputError, match="hostile"):
        list(read_file(tmp_path / "a.zip"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.zip"]


def test_a_zip_link_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as package:
        info = zipfile.ZipInfo("a.xml")
        info.external_attr = 0o120777 << 16
        package.writestr(info, "/etc/passwd")
    with pytest.raises(HostileInputError, match="link"):
        list(read_file(tmp_path / "a.zip"))


def test_bombs_in_packages_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros = b"\0" * 30_000_000
    for module in (members_module, streams_module):
        monkeypatch.setattr(module, "FREE_GROWTH", 1_000_000)
    bomb = tar(tmp_path / "a.tar.gz", {"a.nxml": article("1"), "zeros.bin": zeros})
    with pytest.raises(HostileInputError, match="grows more than"):
        list(read_file(bomb))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as package:
        package.writestr("a.xml", zeros)
    with pytest.raises(HostileInputError, match="unpacks to more than"):
        list(read_file(tmp_path / "a.zip"))


def test_too_many_and_too_large_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tar(tmp_path / "a.tar.gz", {f"{number}.xml": article(str(number)) for number in range(5)})
    monkeypatch.setattr(packages_module, "MAX_MEMBERS", 4)
    with pytest.raises(HostileInputError, match="more than 4 members"):
        list(read_file(path))
    monkeypatch.undo()
    monkeypatch.setattr(packages_module, "MAX_ARTICLE", 100)
    with pytest.raises(InputError, match="too large"):
        list(read_file(path))


def test_headers_that_ask_for_memory_or_lead_backwards_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    for kind, size in (
        (tarfile.XHDTYPE, 6_000_000_000),
        (tarfile.GNUTYPE_LONGNAME, 6_000_000_000),
        (tarfile.REGTYPE, -5120),
    ):
        info = tarfile.TarInfo("a.nxml")
        info.type, info.size = kind, size
        path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + b"\0" * 20_000))
        with pytest.raises(InputError):
            list(read_file(path))


def test_broken_packages_are_said_to_be(tmp_path: Path) -> None:
    whole = tar(tmp_path / "a.tar.gz", {"a.nxml": article("1") * 1, "b.bin": bytes(range(256)) * 1000}).read_bytes()
    for number, data in enumerate((whole[: len(whole) // 2], b"\x1f\x8b garbage", b"nothing at all", whole[:5])):
        path = tmp_path / f"{number}.tar.gz"
        path.write_bytes(data)
        with pytest.raises(InputError, match="broken or cut off"):
            list(read_file(path))
    (tmp_path / "b.zip").write_bytes(b"PK\x03\x04 no")
    with pytest.raises(InputError, match="broken"):
        list(read_file(tmp_path / "b.zip"))
