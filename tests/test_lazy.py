"""Names that packages offer and load when they are first used: each must be there."""

from __future__ import annotations

import pkgutil
from importlib import import_module

import pytest

import hoofbeat

PACKAGES = sorted(found.name for found in pkgutil.walk_packages(hoofbeat.__path__, "hoofbeat.") if found.ispkg)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_has_every_name_it_offers(name: str) -> None:
    package = import_module(name)
    assert [each for each in getattr(package, "__all__", ()) if not hasattr(package, each)] == []
