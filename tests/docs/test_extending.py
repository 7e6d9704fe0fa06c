"""docs/extending.md: every file of it is written out, and its commands are run as they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.docs.test_docs import ROOT, commands, run_in
from tests.helpers import needs_weights

PAGE = ROOT / "docs" / "extending.md"
_FILE = re.compile(r"^File `([\w.]+)`:\n\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    return {name: text for name, _, text in _FILE.findall(PAGE.read_text(encoding="utf-8"))}


def plugins(manifest: Path) -> list[str]:
    return [each["name"] for each in json.loads(manifest.read_text())["inputs"] if each.get("kind") == "plugin"]


@pytest.mark.parametrize("name", [name for name in files() if name.endswith((".py", ".toml"))])
def test_an_example_is_short(name: str) -> None:
    assert len(files()[name].splitlines()) < 40


@pytest.mark.timeout(900)  # many commands: longer than others on a busy machine
@pytest.mark.slow
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    needs_weights("smollm2-135m")
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    run_in(tmp_path, commands(PAGE, "console"))
    used = {
        "ranked": "title_words.py", "fused": "title_words.py", "spelled": "abbreviations.py",
        "recent": "recent_first.py",
        "wards": "records.py", "with-figures": "figures.py", "polite": "politeness.py", "scored": "jaccard.py",
        "lengths": "longest.py", "cards": "cards.py", "deck": "deck.py", "by-title": "titles.py",
    }  # fmt: skip
    for folder, plugin in used.items():
        assert plugins(tmp_path / folder / "manifest.json") == [plugin]
    assert len((tmp_path / "cards" / "cards.tsv").read_text(encoding="utf-8").splitlines()) == 20
    assert "Longest documents: cases" in (tmp_path / "lengths" / "report.md").read_text(encoding="utf-8")
    assert "Jaccard similarity of words" in (tmp_path / "scores" / "report.html").read_text(encoding="utf-8")
