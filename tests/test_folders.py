"""Folders are opened by what people give: a path, its text, or a folder that holds several."""

from __future__ import annotations

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
