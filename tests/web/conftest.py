"""What the tests of the pages share: one folder of every kind, made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web.folders import web_folders
from tests.web.stores import store_urls  # noqa: F401 - a fixture


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds `cases`, `handbooks`, `bench`, `run`, `judged`, `ranked`,
    `ranked-2`, `audit`, `audit-2` and `report`."""
    return web_folders(tmp_path_factory.mktemp("web") / "study")
