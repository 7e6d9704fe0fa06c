"""Hostile and damaged files beyond XML: each refused with a reason, quickly, and never at another file's cost."""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from pathlib import Path

import pytest

from hoofbeat.corpus import Corpus, import_corpus, read_file
from hoofbeat.errors import HostileInputError, InputError
from hoofbeat.store import files as streams_module


def sparse(path: Path, size: int, start: bytes = b"") -> None:
    with path.open("wb") as stream:
        stream.write(start)
        stream.truncate(size)


def zeros(path: Path, megabytes: int, start: bytes = b"") -> None:
    """A gzip file that grows a thousandfold: its megabytes are all the same, so that one is packed."""
    packer = zlib.compressobj(9, wbits=-15)
    head = packer.compress(start) + packer.flush(zlib.Z_FULL_FLUSH)
    block = b" " * 1_000_000
    packed = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    total = zlib.crc32(start)
    for _ in range(megabytes):
        total = zlib.crc32(block, total)
    ending = packer.flush() + struct.pack("<LL", total, len(start) + megabytes * len(block))
    path.write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + head + packed * megabytes + ending)


def many_pages(path: Path, count: int) -> None:
    """A PDF of so many empty pages, written by hand."""
    kids = " ".join(f"{number + 3} 0 R" for number in range(count))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {count} /Kids [{kids}] >>"]
    objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] >>"] * count
    data, places = b"%PDF-1.4\n", []
    pieces = [data]
    length = len(data)
    for number, content in enumerate(objects, start=1):
        places.append(length)
        pieces.append(f"{number} 0 obj {content} endobj\n".encode())
        length += len(pieces[-1])
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    pieces.append(f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}".encode())
    pieces.append(f"trailer << /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{length}\n%%EOF\n".encode())
    path.write_bytes(b"".join(pieces))


def test_every_hostile_file_is_listed_and_the_good_one_taken(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "good.txt").write_text("Good words.")
    sparse(folder / "gigabyte.xml", 1_100_000_000, b"<article><body><p>")
    sparse(folder / "gigabyte.html", 1_100_000_000, b"<p>")
    sparse(folder / "line.jsonl", 100_000_000, b'{"id": "1", "text": "')
    zeros(folder / "bomb.jsonl.gz", 80, b'{"id": "1", "text": "')
    zeros(folder / "bomb.xml.gz", 210, b"<article><body><p>")
    zeros(folder / "bomb.csv.gz", 80, b"id,text\n1,")
    many_pages(folder / "pages.pdf", 10_000)
    (folder / "columns.csv").write_bytes(b"id,text," + b"a," * 10_000_000 + b"\n1,x\n")
    (folder / "deep.jsonl").write_text('{"id": "1", "text": "x", "a": ' + "[" * 200_000 + "\n")
    (folder / "deep.html").write_text("<div>" * 100_000)
    (folder / "null.csv").write_bytes(b"id,text\n1,a\0b\n")
    (folder / "null.html").write_bytes(b"<p>a\0b</p>")
    (folder / "cut.jsonl.gz").write_bytes(gzip.compress(json.dumps({"id": "1", "text": "x" * 5_000}).encode())[:-20])
    (folder / "no.jsonl.gz").write_bytes(b"no gzip at all")
    artefact = import_corpus([folder], tmp_path / "c", workers=2)
    assert Corpus(artefact).ids() == ("good",)
    rows = map(json.loads, artefact.file("rejected.jsonl").read_text().splitlines())
    found = {row["source"].partition(":")[0]: row["reason"] for row in rows}
    expected = {
        "bomb.csv.gz": "line too long",
        "bomb.jsonl.gz": "line too long",
        "bomb.xml.gz": "compressed file refused as hostile|file too large",
        "columns.csv": "table refused as hostile",
        "cut.jsonl.gz": "the compressed file is broken or cut off",
        "deep.html": "HTML refused as hostile",
        "deep.jsonl": "JSON refused as hostile|not readable JSON",
        "gigabyte.html": "file too large",
        "line.jsonl": "line too long",
        "gigabyte.xml": "file too large",
        "no.jsonl.gz": "the compressed file is broken or cut off",
        "null.csv": "NUL bytes",
        "null.html": "NUL bytes",
        "pages.pdf": "PDF refused as hostile: 10,000 pages",
    }
    assert found.keys() == expected.keys()
    for name, reason in expected.items():
        assert any(each in found[name] for each in reason.split("|")), (name, found[name])


def test_a_bomb_of_small_rows_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "FREE_GROWTH", 100_000)
    monkeypatch.setattr(streams_module, "MAX_GROWTH", 20)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"id": "1", "text": "x"}\n' * 100_000))
    with pytest.raises(HostileInputError, match="grows more than 20-fold"):
        for _ in read_file(path):
            pass


def test_real_text_never_grows_like_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams_module, "FREE_GROWTH", 0)
    rows = [
        {"id": str(number), "text": f"Patient {number * 7919} had fever for {number} days."} for number in range(5_000)
    ]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))
    assert sum(1 for _ in read_file(path)) == 5_000


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json", "a.html", "a.zip", "a.tar.gz", "a.jsonl.gz"])
def test_empty_files_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="empty"):
        list(read_file(tmp_path / name))


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.csv", b"id,text\n", "no rows"),
        ("a.json", b"[" * 200_000, "nested too deep"),
        ("a.json", b'[{"id": "1", "text": "x"}, nonsense]', "object 2"),
        ("a.jsonl", b"\xff\xfe{\0}\0", "NUL bytes"),
        ("a.html", b"\xff\xfe<\0p\0>\0\0\0\0\0", "NUL bytes"),
        ("a.json", b'{"id": "1"}', "no field to take the text from"),
    ],
)
def test_damaged_tables_are_refused_readably(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=reason) as caught:
        list(read_file(tmp_path / name))
    assert caught.value.where == str(tmp_path / name)


def test_a_quote_never_closed_takes_the_rest_for_one_cell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'id,text\n1,"never closed\n' + b"x,y\n" * 1000)
    (document,) = read_file(tmp_path / "a.csv")
    assert document.text.count("x,y") == 1000
