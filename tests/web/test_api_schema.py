"""Schemathesis over the JSON API: whatever is sent, the answer is one that the schema describes, and never a crash."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from hypothesis.strategies import SearchStrategy
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.result import Ok

from tests.web.whole import Whole, whole_site

EXAMPLES = 6
load_all_checks()
_UNWANTED = ("positive_data_acceptance",)
NOT_MEANT: list[Any] = [CHECKS.get_one(name) for name in _UNWANTED]
"""A request can be of the right form and still name something that is not there."""


@pytest.fixture(scope="module")
def site(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Whole]:
    with whole_site(folders, str(tmp_path_factory.mktemp("api") / "review.db")) as opened:
        yield opened


def signed_in(site: Whole, token: str) -> dict[str, str]:
    """The headers of somebody who has come in."""
    with httpx.Client(base_url=site.address, headers={"Origin": site.address}) as client:
        page = client.get(f"/join/{token}")
        guard = re.search(r'name="csrf" value="([^"]+)"', page.text)
        assert guard
        assert client.post(f"/join/{token}", data={"csrf": guard[1]}).status_code == 303
        page = client.get("/review")
        guard = re.search(r'name="csrf" content="([^"]+)"', page.text)
        assert guard
        jar = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        return {"Cookie": jar, "X-CSRF-Token": guard[1], "Origin": site.address}


@pytest.mark.slow
def test_every_answer_is_described(site: Whole) -> None:
    """Each request is sent by an admin and by a reviewer: making it up takes longer than answering it."""
    people = [signed_in(site, token) for token in (site.admin, site.reviewer)]
    schema = schemathesis.openapi.from_url(f"{site.address}/openapi.json")
    names = []
    for result in schema.get_all_operations():
        assert isinstance(result, Ok), result
        operation = result.ok()
        names.append(operation.label)
        for mode in GenerationMode:
            attack(operation.as_strategy(generation_mode=mode), people)
    assert len(names) >= 8
    assert site.store.studies(), "the review store is as it was"


def attack(cases: SearchStrategy[Case[Any]], people: list[dict[str, str]]) -> None:
    @seed(8)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def told(case: Case[Any]) -> None:
        for headers in people:
            case.call_and_validate(headers=headers, excluded_checks=NOT_MEANT)

    with suppress(Unsatisfiable):  # nothing can be wrong with a request that takes nothing
        told()
