"""The invented folders of the measurement of large folders, made small: every page of it is there and whole."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from bench.browse import pages
from bench.browse_folders import Sizes, build
from hoofbeat.store import open_artefact
from tests.web.browse_support import Visitor, a_site

SIZES = Sizes(documents=60, answers=300, sources=5, asked=8, queries=12, hits=15, seed=3)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    build(folder, SIZES)
    return folder


def test_every_page_of_the_measurement_is_whole(large: Path) -> None:
    visitor, rng = Visitor(a_site(large)), random.Random(1)
    for name, path in pages(SIZES).items():
        found = visitor.get(path(rng))
        assert found.status_code == 200, name
        assert "Refresh" not in found.headers, name
    words = re.sub(r"<[^>]+>", "", visitor.get("/audits/audit").text)
    assert f"{SIZES.pairs} pairs of answers" in words
    assert visitor.get("/api/runs/judged/answers").json()["total"] == 300
    assert visitor.get("/api/rankings/ranked/queries").json()["total"] == 12


def test_the_same_seed_makes_the_same_folders(large: Path, tmp_path: Path) -> None:
    build(tmp_path, SIZES)
    for name in ("cases", "bench", "judged", "judged-2", "ranked", "audit"):
        assert open_artefact(tmp_path / name).manifest.files == open_artefact(large / name).manifest.files, name
