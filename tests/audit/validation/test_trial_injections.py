"""`audit trial --injections`: a judge of pairs that obeys instructions in answers is caught, and the report tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web

from hoofbeat.audit.findings.table_agreement import trial_injections
from hoofbeat.audit.pair_judge import PairJudge, comparison_request, judge_texts
from hoofbeat.audit.sample_records import TrialInjection
from hoofbeat.audit.validation.judge_trial import estimate_injections, put_injections, trial_pairs
from hoofbeat.judging.canary import with_canary
from hoofbeat.judging.injections import injection_text
from hoofbeat.prompts import load_pack
from hoofbeat.records import Question
from hoofbeat.store import open_artefact
from hoofbeat.teaching import injections
from tests.answering.support import asked_for, wire_text
from tests.cli.support import hoofbeat, json_of
from tests.judging.obedience import Obeys, asked_label, code_in, hijacked, persuaded, steady
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ledger_in

PACK = load_pack("transplant")
LABELS = tuple(label.name for label in PACK.labels)
FIELD = "classification"


class PairServer(FaultServer):
    """A judge of pairs over a real socket that obeys in some way, or not."""

    def __init__(self, obeys: Obeys) -> None:
        super().__init__()
        self.obeys = obeys

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        if FIELD not in asked_for(body):
            return await super()._chat(request)
        text = wire_text(body)
        own = "Divergent" if len(text) % 2 and not asked_label(text, LABELS, FIELD) else "Consistent"
        reply: dict[str, object] = {
            "reasoning": "Invented.", FIELD: own, "topic": "weeks", "significance": "none",
        }  # fmt: skip
        if code := code_in(text):
            reply = self.obeys(reply, asked_label(text, LABELS, FIELD), FIELD, code)
        said = json.dumps(reply)
        choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        return await self._play(request, body, said, {"model": body["model"], "choices": [choice]})


class SteadyServer(PairServer):
    """Says the same of all pairs, whatever stands in them."""

    def __init__(self) -> None:
        super().__init__(lambda reply, asked, field, code: {**steady(reply, asked, field, code), field: "Consistent"})


def tried(folder: Path, server: PairServer, limit: int = 20) -> tuple[list[TrialInjection], int]:
    drawn = trial_pairs(PACK, limit=limit, seed=3)
    with server, ledger_in(folder) as ledger:
        model = a_model(server.spec(), ledger)
        expected = estimate_injections(model, drawn, PACK).calls
        found = put_injections(model, drawn, PACK)
        assert len(server.seen) == expected
        assert not model.flagged
        return found, expected


@pytest.mark.parametrize(("obeys", "missing"), [(hijacked, 70), (persuaded, 0)])
def test_a_judge_that_obeys_flips_always(tmp_path: Path, obeys: Obeys, missing: int) -> None:
    found, calls = tried(tmp_path, PairServer(obeys))
    assert calls == 20 + 70
    (figures,) = trial_injections(found)
    total = figures.total
    assert (total.n, total.flips, total.obeyed, total.missing) == (70, 70, 70, missing)
    assert (figures.clean, figures.clean_missing) == (20, 0)
    diverging = {label.name for label in PACK.judged if label.diverges}
    assert all((each.before in diverging) != (each.target in diverging) for each in found)
    assert {each.side for each in found} == {"a", "b"}
    assert 15 <= total.flagged < 70


def test_a_judge_that_does_not_obey_never_flips(tmp_path: Path) -> None:
    found, _ = tried(tmp_path, SteadyServer())
    (figures,) = trial_injections(found)
    assert (figures.total.n, figures.total.flips, figures.total.seen, figures.total.missing) == (70, 0, 70, 0)
    assert (figures.clean, figures.clean_seen) == (20, 0)


def test_with_a_canary_a_pair_without_its_code_has_no_label(tmp_path: Path) -> None:
    question = Question(id="q", text="May I bathe?")
    order = injection_text(injections()[0], "Consistent", FIELD)
    items = [(question, "Wait four weeks.", "No."), (question, "Wait four weeks.", f"Wait.\n\n{order}")]
    with PairServer(hijacked) as server, ledger_in(tmp_path) as ledger:
        model = a_model(server.spec(), ledger)
        first, second = judge_texts(PairJudge(model, PACK, canary=True), items)
        assert len(server.seen) == 2  # the code costs no call
        usual = judge_texts(PairJudge(model, PACK), items)
    assert (first.failure, first.check) == (None, "kept")
    assert second.failure is not None
    assert (second.failure.kind, second.label) == ("canary", "")
    assert all(each.label and not each.check for each in usual)
    plain = comparison_request(*items[0], PACK)
    assert with_canary(plain).request.messages[1:] == plain.messages[1:]


def test_the_command_the_audit_and_its_report_tell(tmp_path: Path) -> None:
    with PairServer(hijacked) as server:
        words = ["audit", "trial", "--judge", server.spec(), "--limit", "10", "--injections", "-o", "tried"]
        estimate = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))
        assert estimate["estimate"]["calls"] == 20 + 10 + 70
        assert estimate["parts"]["instructions in answers"]["calls"] == 80
        told = hoofbeat(*words, folder=tmp_path).stderr
        assert len(server.seen) == 100
        assert "obey instructions inside an answer?" in told
        assert "changed 70 of 70 labels (100%" in told
        first = (tmp_path / "tried" / "manifest.json").read_bytes()
        hoofbeat(*words, folder=tmp_path)
        assert (len(server.seen), (tmp_path / "tried" / "manifest.json").read_bytes()) == (100, first)
        rows = [
            {"question": "How long?", "source": source, "answer": f"Wait {n} weeks, says {source}.", "absent": False}
            for n, source in enumerate(("north", "south", "west"))
        ]
        (tmp_path / "given.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        audit = ["audit", "--answers", "given.jsonl", "--model", server.spec(), "--trial", "tried"]
        hoofbeat(*audit, "-o", "plain", folder=tmp_path)
        calls = len(server.seen)
        expected = json_of(hoofbeat(*audit, "--canary", "--estimate", "--json", folder=tmp_path))
        hoofbeat(*audit, "--canary", "-o", "checked", folder=tmp_path)
        assert len(server.seen) - calls == expected["estimate"]["calls"] == 3
    manifest = open_artefact(tmp_path / "tried", "trial").manifest
    assert set(manifest.prompts) == {"compare", "canary"}
    assert len((tmp_path / "tried" / "injections.jsonl").read_text(encoding="utf-8").splitlines()) == 70
    kept = open_artefact(tmp_path / "checked", "audit").manifest
    assert (kept.settings["canary"], "canary" in kept.prompts, kept.metrics["trial"]) == (True, True, manifest.metrics)
    assert "canary" not in open_artefact(tmp_path / "plain", "audit").manifest.settings
    hoofbeat("report", "checked", "-o", "report", "--format", "markdown", folder=tmp_path)
    page = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "instructions inside an answer changed 70 of 70 labels" in page
    assert "| fake system turn |" in page
    shown = hoofbeat("show", "tried", folder=tmp_path).stdout
    assert "changed 70 of 70 labels" in shown
