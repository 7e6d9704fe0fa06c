"""The demo: every stage on the real path, and the same bytes when it is run again."""

from __future__ import annotations

from pathlib import Path

import pytest

from hoofbeat.store import open_artefact
from tests.cli.support import hoofbeat, json_of
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer


@pytest.mark.slow
def test_the_demo_goes_from_documents_to_a_report_and_repeats_without_a_call(tmp_path: Path) -> None:
    needs_weights("minilm")
    with FaultServer() as server:
        words = ["demo", "--model", server.spec(), "--questions", "2", "-o", "demo", "--json"]
        done = hoofbeat(*words, folder=tmp_path)
        asked = server.asked.total()
        page = Path(tmp_path / json_of(done)["page"])
        first = page.read_bytes()
        again = hoofbeat(*words[:-1], folder=tmp_path)
        assert "or look at all of it in the browser: hoofbeat serve demo\n" in again.stderr
        assert server.asked.total() == asked
        assert page.read_bytes() == first
    text = first.decode("utf-8")
    for words_shown in ("Not for clinical use", "nDCG@10", "bm25 + dense", "hb-brook-kidney", "Contradictory"):
        assert words_shown in text
    kinds = {open_artefact(path).manifest.kind for path in (tmp_path / "demo").iterdir() if path.is_dir()}
    assert kinds == {"corpus", "benchmark", "rankings", "run", "judgments", "audit", "report"}
    for path in (tmp_path / "demo").iterdir():
        if path.is_dir():
            assert open_artefact(path).verify() == []


def test_without_weights_the_demo_says_how_to_get_them(tmp_path: Path) -> None:
    done = hoofbeat("demo", folder=tmp_path, extra={"HOOFBEAT_WEIGHTS": str(tmp_path / "empty")}, code=1)
    assert "hoofbeat weights pull" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_a_wrong_model_is_said_before_the_demo_starts(tmp_path: Path) -> None:
    needs_weights("minilm")
    done = hoofbeat("demo", "--model", "gpt", folder=tmp_path, code=1)
    assert "there is no model 'gpt'" in done.stderr
