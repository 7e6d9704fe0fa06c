"""The demo: every stage on the real path, recorded or live."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest

from hoofbeat import teaching
from hoofbeat.cli.console import Screen
from hoofbeat.cli.demo_tour import Tour, live_plan, recorded_plan
from hoofbeat.models.model_loading import open_session
from hoofbeat.models.replay import recording_of
from hoofbeat.store import open_artefact
from hoofbeat.store.tables import read_jsonl
from tests.cli.support import hoofbeat
from tests.conftest import driven
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer


def take(tour: Tour, folder: Path) -> set[str]:
    """Take the tour to its report, in this process; returns the keys of the calls."""
    with open_session(ledger_path=folder / "ledger.sqlite") as session:
        tour.documents()
        tour.rankings()
        tour.answers(session)
        tour.audit(session)
        tour.report()
        return {entry.key for entry in session.ledger.entries(operation="chat")}


def failures(folder: Path) -> dict[str, list[str]]:
    """What failed in each folder: the question, or the question and its sources."""
    return {
        path.parent.name: [str(line) for line in read_jsonl(path, dict[str, object])]
        for path in sorted(folder.glob("*/failed.jsonl"))
        if path.stat().st_size
    }


@pytest.mark.slow
def test_every_request_of_the_demo_has_a_recorded_reply(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    needs_weights("minilm")
    tour = Tour(Screen(as_json=True), tmp_path, recorded_plan())
    used = take(tour, tmp_path)
    again = "record again with tools/record_demo.py"
    assert not failures(tmp_path), again
    for name in ("run", "judged", "audit"):
        counts = open_artefact(tmp_path / name).manifest.counts
        assert not counts.failed, f"{name}: {counts.failures}; {again}"
    lines = [line for line in read_jsonl(teaching.recorded_replies(), dict[str, object]) if "key" in line]
    unused = [f"{line['prompt']} {line['key']}" for line in lines if line["key"] not in used]
    assert not unused, f"recorded and not asked for; {again}"
    assert len(used) == len(lines)
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    recording = recording_of(teaching.recorded_replies())
    assert recording is not None
    front = text[: text.index("Who says what")]
    for words in (recording.by, recording.on, recording.how, "Not for clinical use", "nDCG@10", "19 of 20", "disagree"):
        assert words in front
    assert 3 <= len(tour.findings) <= 6
    with driven(request.getfixturevalue("launched_browser")) as browser:  # only now: no tour runs beside its loop
        page = browser.new_page()
        page.goto((tmp_path / "report" / "report.html").as_uri())
        with pypdfium2.PdfDocument(page.pdf(format="A4", prefer_css_page_size=True)) as printed:
            assert len(printed) <= 8, "what is folded stays folded on paper"
        page.close()


@pytest.mark.slow
def test_the_live_demo_goes_from_documents_to_a_report_and_repeats_without_a_call(tmp_path: Path) -> None:
    needs_weights("minilm")
    with FaultServer() as server:
        take(Tour(Screen(as_json=True), tmp_path, live_plan(server.spec(), 2)), tmp_path)
        asked = server.asked.total()
        first = (tmp_path / "report" / "report.html").read_bytes()
        take(Tour(Screen(as_json=True), tmp_path, live_plan(server.spec(), 2)), tmp_path)
        assert server.asked.total() == asked
        assert (tmp_path / "report" / "report.html").read_bytes() == first
    text = first.decode("utf-8")
    for words_shown in ("Not for clinical use", "nDCG@10", "bm25 + dense", "hb-brook-kidney", "Contradictory"):
        assert words_shown in text
    folders = [path for path in tmp_path.iterdir() if path.is_dir()]
    kinds = {open_artefact(path).manifest.kind for path in folders}
    assert kinds == {"corpus", "benchmark", "rankings", "run", "judgments", "audit", "report"}
    for path in folders:
        assert open_artefact(path).verify() == []


def test_without_weights_the_demo_says_how_to_get_them(tmp_path: Path) -> None:
    done = hoofbeat("demo", folder=tmp_path, extra={"HOOFBEAT_WEIGHTS": str(tmp_path / "empty")}, code=1)
    assert "hoofbeat weights pull" in done.stderr
    assert not (tmp_path / "demo").exists()


def test_a_wrong_model_is_said_before_the_demo_starts(tmp_path: Path) -> None:
    needs_weights("minilm")
    done = hoofbeat("demo", "--model", "gpt", folder=tmp_path, code=1)
    assert "there is no model 'gpt'" in done.stderr
