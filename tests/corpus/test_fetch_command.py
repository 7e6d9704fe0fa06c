"""The command `corpus fetch`: its options, what it prints, and how it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hoofbeat.cli.corpus_fetch import fetch_command
from hoofbeat.corpus import import_corpus
from hoofbeat.corpus.citations import CitationCount, load_citations
from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.teaching import cases_folder
from tests.corpus.pmc_server import PmcServer


@pytest.fixture
def server() -> Iterator[PmcServer]:
    with PmcServer() as running:
        for number, path in enumerate(sorted(cases_folder().glob("*.xml"))[:3], start=1):
            running.add_article(f"PMC{number}", {path.name: path.read_bytes()})
        yield running


def run(server: PmcServer, *words: str, email: str = "a@b.org") -> Result:
    bases = [word for name, url in server.services().items() for word in ("--base", f"{name.replace('_', '-')}={url}")]
    sender = ["--email", email] if email else []
    environment = {"HOOFBEAT_EMAIL": None, "NCBI_EMAIL": None, "NCBI_API_KEY": None}
    return CliRunner().invoke(fetch_command, [*words, *sender, "--rate", "90", *bases], env=environment)


def refused(result: Result) -> HoofbeatError:
    assert isinstance(result.exception, HoofbeatError), result.output
    return result.exception


def test_it_says_where_the_articles_are_and_what_to_run_next(server: PmcServer, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("# mine\nPMC1\n\nPMC2\nPMC9\n")
    result = run(server, "pmc", "--ids", str(ids), "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert f"Fetched 2 (2 new), 1 not available or left out, 0 failed → {tmp_path / 'out'}" in result.stdout
    assert f"hoofbeat corpus import {tmp_path / 'out' / 'articles'}" in result.stderr
    assert import_corpus([tmp_path / "out" / "articles"], tmp_path / "corpus").manifest.counts.kept == 2


def test_json_is_one_object_with_counts(server: PmcServer, tmp_path: Path) -> None:
    result = run(server, "europe-pmc", "--id", "PMC1", "-o", str(tmp_path / "out"), "--json")
    printed: dict[str, Any] = json.loads(result.stdout)
    assert {"artefact", "kind", "counts", "metrics", "cost", "seconds"} <= set(printed)
    assert printed["counts"]["kept"] == 1
    assert printed["metrics"]["new"] == 1


def test_citations_of_a_corpus_are_looked_up(server: PmcServer, tmp_path: Path) -> None:
    article = (
        "<article><front><article-meta><article-id pub-id-type='pmid'>5</article-id><title-group><article-title>T"
        "</article-title></title-group></article-meta></front><body><p>Words of a case.</p></body></article>"
    )
    (tmp_path / "a.xml").write_text(article)
    import_corpus([tmp_path / "a.xml"], tmp_path / "corpus")
    server.citations["5"] = [{"id": "6", "source": "MED", "citationType": "review"}]
    result = run(server, "citations", "--corpus", str(tmp_path / "corpus"), "-o", str(tmp_path / "out"))
    assert result.exit_code == 0, result.output
    assert load_citations(tmp_path / "out").counts(["5"]) == CitationCount(total=1, not_case_reports=1, unknown_type=0)


def test_it_asks_for_an_address_and_refuses_what_makes_no_sense(server: PmcServer, tmp_path: Path) -> None:
    target = ("-o", str(tmp_path / "out"))
    missing = refused(run(server, "pmc", "--id", "PMC1", *target, email=""))
    assert isinstance(missing, UsageError)
    assert "HOOFBEAT_EMAIL" in str(missing.fix)
    for words in (
        ("pmc", "--years", "soon"),
        ("pmc", "--years", "2026-2020"),
        ("pmc",),
        ("pmc", "--id", "PMC1", "--query", "x"),
        ("pmc", "--id", "PMC1", "--base", "nothing"),
        ("pmc", "--id", "PMC1", "--limit", "0"),
        ("citations",),
    ):
        assert isinstance(refused(run(server, *words, *target)), UsageError), words
    assert server.seen == []


def test_nothing_fetched_at_all_is_an_error(server: PmcServer, tmp_path: Path) -> None:
    server.faults["/epmc/PMC1/fullTextXML"] = ["403"]
    error = refused(run(server, "europe-pmc", "--id", "PMC1", "-o", str(tmp_path / "out")))
    assert isinstance(error, InputError)
    assert "HTTP 403" in error.what
