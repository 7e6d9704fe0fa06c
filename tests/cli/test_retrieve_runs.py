"""`hoofbeat retrieve --run`: TREC runs of other software, measured beside our own lines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hoofbeat.corpus.qrels import read_qrels
from hoofbeat.findings.ranking_measures import evaluate, read_trec_run
from hoofbeat.records import Hit
from hoofbeat.store import open_artefact
from hoofbeat.store.tables import read_jsonl
from tests.cli.support import hoofbeat, json_of
from tests.cli.test_retrieve import beir

__all__ = ["beir"]

THEIRS = """\
q1 Q0 d1 1 0.5 theirs
q1 Q0 d2 2 0.9 theirs
q1 Q0 d3 3 0.5 theirs
q2 Q0 d4 1 7 theirs
q2 Q0 d1 2 6 theirs
q9 Q0 d1 1 1 theirs
q2 Q0 elsewhere 3 1e-3 theirs
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.trec"
    path.write_text(THEIRS, encoding="utf-8")
    return path


def test_a_run_alone_is_measured_and_kept_as_rankings(beir: Path, run: Path, tmp_path: Path) -> None:
    value = json_of(hoofbeat("retrieve", "invented", "--run", "theirs.trec", "--json", folder=tmp_path))
    direct = evaluate(read_trec_run(run), read_qrels(beir / "qrels" / "test.tsv"), ["nDCG@10", "RR"])
    assert value["metrics"]["nDCG@10"]["value"] == pytest.approx(direct.means["nDCG@10"], abs=1e-12)
    assert value["metrics"]["RR"]["value"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert value["metrics"]["RR"]["n"] == 3, "a judged question that the run lacks counts 0"
    folder = open_artefact(tmp_path / "rankings", "rankings")
    assert folder.verify() == []
    hits = [hit for hit in read_jsonl(folder.file("hits.jsonl"), Hit) if hit.question == "q1"]
    assert [(hit.document, hit.rank) for hit in hits] == [("d2", 1), ("d3", 2), ("d1", 3)], "as trec_eval orders them"
    said = folder.manifest.settings
    assert said["line"] == "run:theirs"
    assert said["notes"] == [
        "1 questions of the run are not in the collection; they are ignored",
        "1 questions are missing in the run; they count as 0",
        "1 documents of the run are not in the collection; they count as not relevant",
    ]
    assert [ref.name for ref in folder.manifest.inputs] == ["invented", "theirs.trec"]


def test_a_run_stands_beside_lines_in_one_comparison(beir: Path, run: Path, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "theirs.trec.gz").write_bytes(gzip.compress(THEIRS.encode(), mtime=0))
    words = ("--with", "bm25", "--run", "theirs.trec", "--run", "more/theirs.trec.gz")
    done = hoofbeat("retrieve", "invented", *words, "--page", "page.html", folder=tmp_path)
    assert "run:theirs 2" in done.stdout + done.stderr
    listed = (tmp_path / "rankings" / "lines.tsv").read_text(encoding="utf-8").splitlines()
    assert [row.split("\t")[1] for row in listed[1:]] == ["bm25", "run:theirs", "run:theirs 2"]
    assert "run:theirs" in (tmp_path / "page.html").read_text(encoding="utf-8")
    hoofbeat("compare", "rankings/01-bm25", "rankings/02-run-theirs", "-o", "compared", folder=tmp_path)


def test_only_as_much_of_a_run_counts_as_of_a_line(beir: Path, run: Path, tmp_path: Path) -> None:
    words = ("--run", "theirs.trec", "--top", "1", "--measure", "RR", "--explain", "1")
    done = hoofbeat("retrieve", "invented", *words, folder=tmp_path)
    assert "the run ranks up to 3 documents; only the first 1 count, as for the lines" in done.stderr + done.stdout
    assert "1. d2  (0.9000)" in done.stderr + done.stdout
    manifest = json.loads((tmp_path / "rankings" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["metrics"]["RR"]["value"] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ("q1 Q0 d1 1 0.5 x\nq1 Q0 d1 2 0.4 x\n", [], "ranks 'd1' twice for question 'q1'"),
        ("q1 Q0 d1 1 high x\n", [], "line 1 is not a line of a TREC run"),
        ("other Q0 d1 1 1 x\n", [], "ranks nothing for these questions; its first question is 'other'"),
        ("", [], "ranks nothing for these questions"),
        ("q1 Q0 e1 1 1 x\n", [], "no document of the run is in invented; one of its documents is 'e1'"),
        (THEIRS, ["--where", "organ=kidney"], "--where can't change what"),
        (THEIRS, ["--each-source"], "--each-source has no effect"),
    ],
)
def test_what_can_t_be_measured_is_said(beir: Path, tmp_path: Path, text: str, words: list[str], said: str) -> None:
    (tmp_path / "theirs.trec").write_text(text, encoding="utf-8")
    done = hoofbeat("retrieve", "invented", "--run", "theirs.trec", *words, folder=tmp_path, code=2 if words else 1)
    assert said in done.stderr
    assert not (tmp_path / "rankings").exists()


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("organ=heart", "organ is one of kidney, liver, lung"),
        ("organs=lung", "there is no facet organs; there are organ"),
    ],
)
def test_facets_that_no_document_has_are_told_from_those_there_are(
    beir: Path, tmp_path: Path, where: str, said: str
) -> None:
    done = hoofbeat("retrieve", "invented", "--with", "bm25", "--where", where, folder=tmp_path, code=2)
    assert f"no document has {where}" in done.stderr
    assert said in done.stderr


def test_ranks_that_are_shown_are_ranks_that_were_measured(beir: Path, tmp_path: Path) -> None:
    twins: list[dict[str, object]] = [
        {"_id": name, "title": "", "text": "Jaundice means a stricture.", "metadata": {}} for name in ("a", "z")
    ]
    (beir / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in twins), encoding="utf-8")
    (beir / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq3\ta\t1\n", encoding="utf-8")
    words = ("--with", "bm25", "--measure", "RR", "--explain", "2", "--json")
    value = json_of(hoofbeat("retrieve", "invented", *words, folder=tmp_path))
    folder = open_artefact(tmp_path / "rankings", "rankings")
    found = {hit.document: hit for hit in read_jsonl(folder.file("hits.jsonl"), Hit)}
    assert found["a"].score == found["z"].score
    assert (found["z"].rank, found["a"].rank) == (1, 2), "equal scores go by id, descending, as trec_eval has it"
    assert value["metrics"]["RR"]["value"] == 1 / found["a"].rank
