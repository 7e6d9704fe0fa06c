"""docs/extending.md: every file of it is written out, and its commands are run as they are."""

from __future__ import annotations

import json
import re
import runpy
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.cli.support import hoofbeat
from tests.docs.test_docs import ROOT, commands, run_in
from tests.helpers import needs_weights

PAGE = ROOT / "docs" / "extending.md"
_FILE = re.compile(r"^File `([\w.]+)`:\n\n```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def files() -> dict[str, str]:
    return {name: text for name, _, text in _FILE.findall(PAGE.read_text(encoding="utf-8"))}


def plugins(manifest: Path) -> list[str]:
    return [each["name"] for each in json.loads(manifest.read_text())["inputs"] if each.get("kind") == "plugin"]


@pytest.mark.parametrize("name", [name for name in files() if name.endswith((".py", ".toml"))])
def test_an_example_is_short(name: str) -> None:
    assert len(files()[name].splitlines()) < 40


class SearchService(BaseHTTPRequestHandler):
    """A small service that answers as OpenSearch's `_search` does: documents by the number of shared words."""

    documents: ClassVar[dict[str, str]] = {
        "d1": "renal transplant rejection",
        "d2": "the tacrolimus dose follows its level",
        "d3": "fever and cough",
        "d4": "tacrolimus tremor",
    }

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        search = body["query"]["bool"]
        wanted = {*search["must"]["multi_match"]["query"].lower().split()}
        allowed = search.get("filter", {"ids": {"values": list(self.documents)}})["ids"]["values"]
        scores = {name: float(len(wanted & {*self.documents[name].split()})) for name in allowed}
        best = sorted((name for name in scores if scores[name]), key=lambda name: (-scores[name], name))
        hits = [{"_id": name, "_score": scores[name]} for name in best[: body["size"]]]
        found = self.path == "/cases/_search"
        answer = json.dumps({"hits": {"hits": hits}} if found else {"error": "index_not_found_exception"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), SearchService) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_search_service_elsewhere_joins_a_line(service: str, tmp_path: Path) -> None:
    (tmp_path / "opensearch.py").write_text(files()["opensearch.py"], encoding="utf-8")
    (tmp_path / "cases" / "qrels").mkdir(parents=True)
    rows = [{"_id": name, "title": "", "text": text} for name, text in SearchService.documents.items()]
    (tmp_path / "cases" / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "cases" / "queries.jsonl").write_text(json.dumps({"_id": "q1", "text": "tacrolimus dose"}))
    (tmp_path / "cases" / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td2\t1\n")

    def retrieve(line: str, code: int = 0) -> str:
        words = ["--plugin", "opensearch.py", "retrieve", "cases", "--with", line, "-o", "out"]
        return hoofbeat(*words, folder=tmp_path, code=code).stderr

    def ranked() -> list[tuple[str, float]]:
        lines = [line.split() for line in (tmp_path / "out" / "run.trec").read_text().splitlines()]
        return [(line[2], float(line[4])) for line in lines]

    retrieve(f"opensearch[index={service}/cases]")
    assert ranked() == [("d2", 2.0), ("d4", 1.0)]
    retrieve(f"opensearch[index={service}/cases] + bm25")
    assert [name for name, _ in ranked()] == ["d2", "d4"]
    assert "404" in retrieve(f"opensearch[index={service}/wrong]", code=1)
    assert "check the address" in retrieve("opensearch[index=http://127.0.0.1:1/cases]", code=1)
    stage = runpy.run_path(str(tmp_path / "opensearch.py"))["STAGE"]
    stage.word = lambda _: f"{service}/cases"
    assert stage.ask("tacrolimus dose", 10, ["d4", "d3"]) == {"d4": 1.0}, "a search in some documents only"


@pytest.mark.timeout(900)  # many commands: longer than others on a busy machine
@pytest.mark.slow
def test_the_page_runs_as_it_stands(tmp_path: Path) -> None:
    needs_weights("smollm2-135m")
    for name, text in files().items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    run_in(tmp_path, commands(PAGE, "console"))
    used = {
        "ranked": "title_words.py", "fused": "title_words.py", "spelled": "abbreviations.py",
        "recent": "recent_first.py",
        "wards": "records.py", "with-figures": "figures.py", "polite": "politeness.py", "scored": "jaccard.py",
        "lengths": "longest.py", "cards": "cards.py", "deck": "deck.py", "by-title": "titles.py",
    }  # fmt: skip
    for folder, plugin in used.items():
        assert plugins(tmp_path / folder / "manifest.json") == [plugin]
    assert len((tmp_path / "cards" / "cards.tsv").read_text(encoding="utf-8").splitlines()) == 20
    assert "Longest documents: cases" in (tmp_path / "lengths" / "report.md").read_text(encoding="utf-8")
    assert "Jaccard similarity of words" in (tmp_path / "scores" / "report.html").read_text(encoding="utf-8")
