"""The threat model names the test behind each defence: each of them is there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_proof_of_the_threat_model_is_there() -> None:
    page = (ROOT / "docs" / "threat_model.md").read_text("utf-8")
    named = re.findall(r"`(tests/[^`]+)`", page)
    assert len(named) > 20
    assert not [name for name in named if not (ROOT / name).is_file()]
    targets = (ROOT / "Makefile").read_text("utf-8")
    assert all(f"\n{name}:" in targets for name in re.findall(r"`make (\w+)`", page))
    rows = [line for line in page.partition("## What defends")[2].splitlines() if line.startswith("| ")]
    lacking = [row for row in rows if not row.startswith(("| threat", "|---")) and "`" not in row.split("|")[3]]
    assert not lacking, "a defence without proof"


def test_how_to_report_names_no_address_of_a_person() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "Report a\nvulnerability" in text
    assert not re.search(r"\S+@\S+", text)
