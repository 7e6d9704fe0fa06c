"""An aspect and a scorer in one file outside the package: asked for by name, listed, estimated, recorded, reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.judging import JudgmentFolder
from tests.cli.support import hoofbeat, json_of
from tests.judging.folders import a_run, said
from tests.models.fault_server import FaultServer

ASPECT = '''
from hoofbeat.judging import Aspect
from hoofbeat.prompts import parse_prompt

PROMPT = """+++
purpose = "whether an answer is polite"
variables = ["question", "reference", "answer"]
max_tokens = 200
temperature = 0.0
+++
## system
Say whether the answer is polite. Reason first.
## user
{{ question | material("question") }}
{{ reference | material("reference") }}
{{ answer | material("answer") }}
## output
{"type": "object", "additionalProperties": false, "required": ["reason", "label"], "properties":
 {"reason": {"type": "string"}, "label": {"type": "string", "enum": ["polite", "blunt"]}}}
"""

POLITENESS = Aspect(
    name="politeness",
    summary="whether the answer is polite",
    title="Politeness",
    labels=("polite", "blunt"),
    prompt=parse_prompt("politeness", PROMPT),
)
'''

SCORER = """
from hoofbeat.judging import Scorer


def shared(text: str, reference: str) -> float:
    one, two = set(text.lower().split()), set(reference.lower().split())
    return 10 * len(one & two) / len(one | two)


JACCARD = Scorer(
    name="jaccard",
    summary="share of the words of both texts that are in both",
    method="Jaccard similarity of words, times ten",
    score=shared,
    scale=(0.0, 10.0),
)
"""


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


def test_a_plugin_aspect_and_a_plugin_scorer_from_help_to_report(tmp_path: Path, server: FaultServer) -> None:
    (tmp_path / "politeness.py").write_text(ASPECT)
    (tmp_path / "jaccard.py").write_text(SCORER)
    a_run(tmp_path / "run", [said(f"Not for {n} weeks", sample=n) for n in range(6)])
    plugins = ("--plugin", "politeness.py", "--plugin", "jaccard.py")
    shown = hoofbeat(*plugins, "judge", "--help", folder=tmp_path).stdout
    assert "politeness    whether the answer is polite (asks a model)" in shown
    assert "jaccard       share of the words of both texts" in shown
    words = ("judge", "run", "--by", "politeness", "--by", "jaccard", "--model", server.spec())
    would = json_of(hoofbeat(*plugins, *words, "--estimate", "--json", folder=tmp_path))
    assert {name: each["calls"] for name, each in would["parts"].items()} == {"jaccard": 0, "politeness": 6}
    done = json_of(hoofbeat(*plugins, *words, "--json", folder=tmp_path))
    assert sum(done["metrics"]["labels"]["politeness"].values()) == 6
    judged = JudgmentFolder.open(tmp_path / "judged")
    assert Counter(each.aspect for each in judged.judgments) == {"jaccard": 6, "politeness": 6}
    assert {each.label for each in judged.judgments if each.aspect == "politeness"} <= {"polite", "blunt"}
    assert all(each.score is not None for each in judged.judgments if each.aspect == "jaccard")
    manifest = judged.artefact.manifest
    assert {ref.name for ref in manifest.inputs if ref.kind == "plugin"} == {"politeness.py", "jaccard.py"}
    assert manifest.prompts["judge of politeness"].startswith("politeness@")
    assert manifest.settings["aspects"] == ["jaccard", "politeness"]
    for more in (plugins, ()):
        hoofbeat(*more, "report", "judged", "-o", f"report{len(more)}", folder=tmp_path)
        page = next((tmp_path / f"report{len(more)}").glob("*.html")).read_text()
        assert "Politeness" in page
        assert "Jaccard similarity of words, times ten" in page


def test_a_name_of_both_kinds_is_refused(tmp_path: Path) -> None:
    (tmp_path / "twice.py").write_text(SCORER.replace('name="jaccard"', 'name="equivalence"'))
    a_run(tmp_path / "run", [said("Wait.")])
    told = hoofbeat("judge", "run", "--plugin", "twice.py", "--by", "equivalence", folder=tmp_path, code=2)
    assert "both an aspect and a scorer" in told.stderr
