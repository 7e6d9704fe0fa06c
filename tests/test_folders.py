"""Folders are opened by what people give: a path, its text, or a folder that holds several."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hoofbeat as hb
from hoofbeat.store import Manifest, create

KINDS = {
    hb.Corpus: "corpus",
    hb.Benchmark: "benchmark",
    hb.Run: "run",
    hb.JudgmentFolder: "judgments",
    hb.Audit: "audit",
}


def make(target: Path, kind: str) -> None:
    """An empty artefact of a kind."""
    with create(target) as draft:
        for name in ("documents.jsonl", "questions.jsonl", "answers.jsonl", "judgments.jsonl"):
            (draft.path / name).write_text("")
        draft.finish(Manifest(kind=kind))


@pytest.mark.parametrize("kind", KINDS, ids=KINDS.get)
def test_every_class_opens_a_path_and_its_text(kind: Any, tmp_path: Path) -> None:
    make(tmp_path / "made", KINDS[kind])
    for given in (tmp_path / "made", str(tmp_path / "made")):
        opened = kind.open(given)
        assert type(opened) is kind
        assert opened.path == tmp_path / "made"
    with pytest.raises(hb.HoofbeatError, match="no such folder"):
        kind.open(str(tmp_path / "none"))


def test_a_folder_of_folders_lists_them(tmp_path: Path) -> None:
    for name in ("01-bm25", "02-dense", "deep/comparison"):
        make(tmp_path / "rankings" / name, "rankings")
    with pytest.raises(hb.HoofbeatError, match="is not a result itself") as caught:
        hb.open(str(tmp_path / "rankings"))
    assert caught.value.fix == "open one of these in it: 01-bm25, 02-dense, deep/comparison"
    for number in range(20):
        make(tmp_path / "many" / f"{number:02}", "run")
    with pytest.raises(hb.HoofbeatError, match="is not a result itself") as caught:
        hb.open(tmp_path / "many")
    assert str(caught.value.fix).endswith("10, 11 and 8 more")
    (tmp_path / "empty").mkdir()
    with pytest.raises(hb.HoofbeatError, match="not a Hoofbeat artefact"):
        hb.open(tmp_path / "empty")


@pytest.mark.parametrize(("short", "longer"), [("audit", "audit_sources"), ("ask", "ask_corpora")])
def test_short_names_lead_to_the_longer_ones(short: str, longer: str) -> None:
    script = f"import hoofbeat; hoofbeat.{short}()"  # in a new process: here the packages are loaded
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert f"Did you mean hoofbeat.{longer}?" in done.stderr
