"""docs/papers.md: the files that it names for each step of the five papers exist."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_docs import ROOT

SECTIONS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8").split("\n## ")[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda text: text.split(":")[0])
def test_every_step_of_a_paper_has_its_file(section: str) -> None:
    rows = re.findall(r"^\| ([^|`-][^|]*) \| ([^|]+) \|$", section, re.MULTILINE)[1:]
    assert len(rows) >= 14
    for step, cell in rows:
        named = re.findall(r"`([\w/.]+)`", cell)
        assert named, step
        assert not [name for name in named if not (ROOT / "src" / "hoofbeat" / name).is_file()], step


def test_all_five_papers_are_there() -> None:
    assert len(SECTIONS) == 5
