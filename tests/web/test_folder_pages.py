"""The page on any folder, and the ways from a document or a question to where it is used."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from hoofbeat.records import Document, Question
from hoofbeat.reports.report_build import assemble
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.files import write_bytes
from hoofbeat.web.browse import folder_pages
from tests.reports.examples import rankings
from tests.web.browse_support import HOSTILE, Visitor, a_benchmark, a_corpus, a_site

DOCUMENT = Document(id="d", title="A title", text="Some words.")


@pytest.fixture(scope="module")
def visitor(folders: Path) -> Visitor:
    return Visitor(a_site(folders))


def test_a_folder_tells_what_it_was_made_from_and_into_and_how(visitor: Visitor) -> None:
    page = visitor.get("/folders/run").text
    for told in ("hoofbeat answer", "152 (", "openai:beta-2", "answers.jsonl", "4 failed", ">Open</a>"):
        assert told in page, told
    assert 'href="/benchmarks/bench"' in page
    assert "(judged answers <code>judged</code>)" in page
    assert 'href="/folders/run"' in visitor.get("/").text
    assert visitor.get("/folders/none").status_code == 404


def test_figures_failures_and_what_is_not_here_are_told(tmp_path: Path) -> None:
    corpus = a_corpus(tmp_path / "elsewhere" / "cases", [DOCUMENT])
    with create(tmp_path / "shown" / "checked") as draft:
        write_bytes(draft.path / "report.html", b"<!doctype html><title>r</title>")
        draft.finish(
            Manifest(
                kind="audit-comparison",
                title=HOSTILE,
                inputs=[corpus.reference()],
                counts=Counts(kept=3, failed=2, failures={HOSTILE: 2}),
                metrics={"rate": {"before": 0.25, "after": None, "sure": True}, "words": ["a", "b"], HOSTILE: 1234},
            )
        )
    page = Visitor(a_site(tmp_path / "shown")).get("/folders/checked").text
    for told in ("cases (not on this server)", "rate · before", "0.25", "a; b", "1,234", "2 failed", "yes"):
        assert told in page, told
    assert 'href="/reports/checked"' in page
    assert "<script>window" not in page


def test_a_ranking_has_its_figures_as_in_a_report(tmp_path: Path) -> None:
    made = rankings(tmp_path / "rank", "bm25", 0.7)
    page = Visitor(a_site(tmp_path)).get("/rankings/rank").text
    card = assemble([made], title="r").cards[0]
    assert card.label.startswith("nDCG@10")
    assert f'<dd class="value">{card.value}</dd>' in page
    assert "Measures of each retriever" in page


def test_figures_that_cant_be_read_leave_the_rest(tmp_path: Path) -> None:
    with create(tmp_path / "rank") as draft:
        write_bytes(draft.path / "hits.jsonl", b"{")
        draft.finish(Manifest(kind="rankings", title="bm25", command=["hoofbeat", "retrieve"]))
    visitor = Visitor(a_site(tmp_path))
    page = visitor.get("/rankings/rank")
    assert page.status_code == 200
    assert "The figures can&#39;t be shown" in page.text
    assert "The queries can't be shown" in page.text
    assert visitor.get("/rankings/rank/queries").status_code == 400
    assert "hoofbeat retrieve" in visitor.get("/folders/rank").text


def test_sizes_are_in_words() -> None:
    sizes = [folder_pages._size(amount) for amount in (0, 999, 1_500, 250_000, 7_250_000_000)]
    assert sizes == ["0 B", "999 B", "1.5 kB", "250 kB", "7.2 GB"]


def test_a_document_leads_to_its_questions_and_to_the_audits_that_asked_it(visitor: Visitor) -> None:
    page = visitor.get("/corpora/cases/documents/1").text
    assert (
        '<a href="/benchmarks/bench/questions/1"><bdi>What is the best next step in treatment for this patient?</bdi>'
        in page
    )
    assert '<span class="id">q-hbt-case-01</span>' in page
    handbook = visitor.get("/corpora/handbooks/documents/1").text
    assert 'href="/audits/audit/pairs?a=' in handbook
    number = handbook.partition("/audits/audit/pairs?a=")[2].partition('"')[0]
    name = handbook.partition('<span aria-current="page">')[2].partition("<")[0]
    total = visitor.get(f"/api/audits/audit/pairs?a={name}").json()["total"]
    assert f"{total:,} of " in visitor.get(f"/audits/audit/pairs?a={number}").text


def test_a_document_that_is_used_a_lot_or_not_at_all(tmp_path: Path) -> None:
    corpus = a_corpus(tmp_path / "cases", [DOCUMENT, Document(id="unused", title="", text="Other words.")])
    questions = [Question(id=f"q{number}", text="Which?", documents=("d",)) for number in range(30)]
    a_benchmark(tmp_path / "bench", questions, inputs=[corpus.reference()])
    visitor = Visitor(a_site(tmp_path))
    page = visitor.get("/corpora/cases/documents/1").text
    assert page.count("/benchmarks/bench/questions/") == 20
    assert "and 10 more" in page
    assert "Where it is used" not in visitor.get("/corpora/cases/documents/2").text
    (tmp_path / "bench" / "questions.jsonl").write_text("{")
    assert Visitor(a_site(tmp_path)).get("/corpora/cases/documents/1").status_code == 200


def test_a_question_leads_to_the_audits_that_asked_it(tmp_path: Path, folders: Path) -> None:
    first = (folders / "audit" / "questions.jsonl").read_text().splitlines()[0]
    a_benchmark(tmp_path / "bench", [msgspec.json.decode(first, type=Question)])
    page = Visitor(a_site(tmp_path, folders / "audit")).get("/benchmarks/bench/questions/1").text
    assert '<a href="/audits/audit/questions/1">' in page


def test_empty_folders_say_that_they_are_empty(tmp_path: Path) -> None:
    a_corpus(tmp_path / "cases", [])
    a_benchmark(tmp_path / "bench", [])
    visitor = Visitor(a_site(tmp_path))
    assert "This corpus has no documents." in visitor.get("/corpora/cases").text
    assert "This benchmark has no questions." in visitor.get("/benchmarks/bench").text


def test_a_page_that_is_gone_from_disk_takes_no_other_with_it(tmp_path: Path) -> None:
    corpus = a_corpus(tmp_path / "cases", [DOCUMENT])
    a_corpus(tmp_path / "others", [DOCUMENT], title="Others")
    a_benchmark(tmp_path / "bench", [Question(id="q", text="Which?", documents=("d",))], inputs=[corpus.reference()])
    visitor = Visitor(a_site(tmp_path))
    assert visitor.get("/benchmarks/bench/questions/1").status_code == 200
    assert visitor.get("/corpora/cases").status_code == 200
    shutil.rmtree(tmp_path / "cases")
    assert visitor.get("/corpora/cases").status_code == 404
    assert visitor.get("/benchmarks/bench/questions/1").status_code == 200
    assert visitor.get("/ask").status_code == 200
    assert visitor.get("/").status_code == 200
