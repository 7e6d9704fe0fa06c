"""Stages written as one file each outside the package, run through the command."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import UsageError
from hoofbeat.models.encoder import Encoder
from hoofbeat.records import Document, Failure
from hoofbeat.registry import Registry
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.stage_roles import QueryWriter, Ranker, Reranker, SearchQuery, StageTools
from tests.cli.support import hoofbeat, json_of

PLUGINS = Path(__file__).parent / "plugins"
LINE = "abbreviations > title-words[title=3] > facet-first[value=kidney]@2"
DOCUMENTS = [
    ("d1", "Rejection", "Renal transplant rejection is treated with steroids.", "kidney"),
    ("d2", "Dose", "The tacrolimus dose follows its level.", "lung"),
    ("d3", "Cough", "Fever and cough in children.", "lung"),
    ("d4", "Tacrolimus", "Tremor is common.", "kidney"),
]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    """An invented test collection in BEIR's layout, whose question has an abbreviation."""
    folder = tmp_path / "invented"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": i, "title": t, "text": x, "metadata": {"organ": organ}} for i, t, x, organ in DOCUMENTS]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "TAC dose"}) + "\n", encoding="utf-8")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n", encoding="utf-8")
    return folder


def with_plugins(*names: str) -> list[str]:
    return [word for name in names for word in ("--plugin", str(PLUGINS / f"{name}.py"))]


def retrieve(folder: Path, *words: str) -> Any:
    """Run the command on the collection; the manifest of what it wrote."""
    json_of(hoofbeat(*words, "--json", folder=folder))
    return json.loads((folder / "rankings" / "manifest.json").read_text(encoding="utf-8"))


def ranked(folder: Path) -> list[tuple[str, float]]:
    lines = (folder / "rankings" / "run.trec").read_text(encoding="utf-8").splitlines()
    return [(line.split()[2], float(line.split()[4])) for line in lines]


def test_a_ranker_in_one_file(collection: Path, tmp_path: Path) -> None:
    words = [*with_plugins("title_words"), "retrieve", "invented", "--with", "title-words"]
    manifest = retrieve(tmp_path, *words)
    assert [name for name, _ in ranked(tmp_path)] == ["d2"]  # only `dose` is shared: 2 in the title, 1 in the text
    assert ranked(tmp_path)[0][1] == 3
    assert manifest["settings"]["line"] == "title-words"
    assert list(manifest["settings"]["collections"]) == ["whole"]
    assert manifest["models"] == {}
    assert manifest["prompts"] == {}


def test_all_three_roles_in_one_line(collection: Path, tmp_path: Path) -> None:
    plugins = ("abbreviations", "title_words", "facet_first")
    manifest = retrieve(tmp_path, *with_plugins(*plugins), "retrieve", "invented", "--with", LINE)
    assert [name for name, _ in ranked(tmp_path)] == ["d4", "d2"]  # spelled out, both are found; the kidney goes first
    assert manifest["settings"]["line"] == LINE
    assert manifest["metrics"]["nDCG@10"]["value"] == pytest.approx(0.6309, abs=1e-4)
    loaded = {each["name"]: each["sha256"] for each in manifest["inputs"] if each["kind"] == "plugin"}
    assert loaded == {
        f"{name}.py": hashlib.sha256((PLUGINS / f"{name}.py").read_bytes()).hexdigest() for name in plugins
    }
    (hit, _) = [json.loads(line) for line in (tmp_path / "rankings" / "hits.jsonl").read_text().splitlines()]
    assert set(hit["via"]) == {"title-words[title=3]", "facet-first[value=kidney]@2"}
    trace = json.loads((tmp_path / "rankings" / "traces.jsonl").read_text(encoding="utf-8"))
    assert trace["steps"] == [{"stage": "abbreviations", "what": "rewritten", "text": "tacrolimus dose"}]


def test_plugins_and_built_in_stages_in_one_line(collection: Path, tmp_path: Path) -> None:
    line = "abbreviations > bm25 + title-words > facet-first[value=kidney]"
    plugins = with_plugins("abbreviations", "title_words", "facet_first")
    manifest = retrieve(tmp_path, *plugins, "retrieve", "invented", "--with", line)
    assert manifest["settings"]["line"] == line
    assert "analysis" in manifest["settings"]["collections"]["whole"]
    assert [name for name, _ in ranked(tmp_path)] == ["d4", "d2"]


def test_help_listing_and_estimate(collection: Path, tmp_path: Path) -> None:
    plugins = with_plugins("abbreviations", "title_words", "facet_first")
    told = hoofbeat(*plugins, "retrieve", "--help", folder=tmp_path)
    assert "query writer: spells abbreviations out" in told.stdout
    assert "ranker: ranks by shared words, those in the title first" in told.stdout
    assert "reranker: puts documents with a facet first" in told.stdout
    listed = hoofbeat(*plugins, "retrieve", "--stages", folder=tmp_path).stdout
    assert "title=2.0  how much a word in the title counts [0..]" in listed
    estimate = json_of(
        hoofbeat(*plugins, "retrieve", "invented", "--with", LINE, "--estimate", "--json", folder=tmp_path)
    )
    assert estimate["estimate"]["calls"] == 0
    assert not (tmp_path / "rankings").exists()


def test_options_are_checked_and_an_unknown_stage_is_said(collection: Path, tmp_path: Path) -> None:
    words = [*with_plugins("title_words"), "retrieve", "invented", "--with"]
    wrong = hoofbeat(*words, "title-words[title=-1]", folder=tmp_path, code=2)
    assert "title can't be '-1'" in wrong.stderr
    without = hoofbeat("retrieve", "invented", "--with", "title-words", folder=tmp_path, code=2)
    assert "unknown retriever stage 'title-words'" in without.stderr


# In Python: stages that are wrong say so


def over(*texts: str) -> IndexSet:
    def none(_: str) -> Encoder:
        raise AssertionError("no encoder is needed")

    return IndexSet([Document(id=f"d{n}", title="", text=text) for n, text in enumerate(texts)], encoder=none)


class Forgetful(QueryWriter):
    """Writes one query too few."""

    name = "forgetful"

    def write(self, queries: object, tools: StageTools) -> list[SearchQuery]:
        return []


class Sparing(Reranker):
    """Scores only the first result."""

    name = "sparing"

    def score(self, query: SearchQuery, found: object, tools: StageTools) -> list[float]:
        return [1.0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("forgetful > bm25", "forgetful wrote 0 queries for 1"),
        ("bm25 > sparing", "sparing gave 1 scores for 2 results"),
        ("empty", "Empty must define rank"),
    ],
)
def test_a_stage_that_breaks_its_promise(line: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Empty(Ranker):
        name = "empty"

    known = Registry()
    known._found["stage"] = {each.name: each for each in (Forgetful(), Sparing(), Empty())}
    monkeypatch.setattr("hoofbeat.retrieval.line.registry", known)
    with pytest.raises((UsageError, NotImplementedError), match=message):
        Retriever(over("fever and cough", "fever"), line).search([("q", "fever")], 5)


def test_a_query_that_failed_is_not_scored() -> None:
    failed = SearchQuery(id="q", text="fever", failure=Failure(kind="timeout", message="late"))
    assert Sparing().rerank([failed], [[]], None) == [failed.failure]  # type: ignore[arg-type]
