"""`hoofbeat show`: questions, rejected and failed candidates, documents, with their evidence marked in the source."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hoofbeat.benchmarks import write_benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.recipes.recipe_items import FailedItem, RecipeItem, RejectedItem
from hoofbeat.records import Document, Failure, Question, Section, Span, Step
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl
from tests.cli.support import environment, hoofbeat, json_of
from tests.recipes.support import a_corpus

TEXT = (
    "Case\nAn invented man came with a red knee. \x1b[31mThe joint was aspirated\x07 and crystals were seen.\n\n"
    "Discussion\nGout was the diagnosis, and colchicine was given."
)
DOCUMENT = Document(
    id="doc-1",
    title="An invented report",
    text=TEXT,
    sections=(
        Section(heading="Case", level=1, start=0, body=5, end=TEXT.index("Discussion") - 2, role="case"),
        Section(heading="Discussion", level=1, start=TEXT.index("Discussion"), body=TEXT.index("Gout"), end=len(TEXT)),
    ),
)


def span(words: str) -> Span:
    start = TEXT.index(words)
    return Span(document="doc-1", start=start, end=start + len(words), quote=words)


QUESTION = Question(
    id="q-001",
    text="What is it?",
    context="A man with a red knee.\x1b]0;owned\x07",
    answer="Gout",
    options=("Sepsis", "Gout"),
    documents=("doc-1",),
    evidence=(span("crystals were seen"), span("Gout was the diagnosis")),
    facets={"specialty": "Rheumatology", "topics": ["joints", "crystals"]},
    lineage=(Step(name="extract", prompt="case-extract@1a2b", model="scripted", note="2 calls"),),
)
REJECTED = RejectedItem(
    id="q-002",
    step="leaks",
    reason="the stem gives the answer away",
    details="'Gout' (name of Gout)",
    span=span("Gout"),
    documents=("doc-1",),
    values={"stem": "A man has gout.", "options": ["a", "b"]},
)
FAILED = FailedItem(id="q-003", step="rewrite", failure=Failure(kind="timeout", message="no answer in 60 s"))


def a_benchmark(target: Path, corpus: Artefact) -> None:
    with create(target, replace_kind="benchmark") as draft:
        write_jsonl(draft.path / "questions.jsonl", [QUESTION])
        write_jsonl(
            draft.path / "questions-free.jsonl", [Question(id="q-001", text="Freely: what is it?", answer="Gout")]
        )
        write_jsonl(draft.path / "rejected.jsonl", [REJECTED])
        write_jsonl(draft.path / "failed.jsonl", [FAILED])
        write_jsonl(draft.path / "items.jsonl", [RecipeItem(id="q-001"), RecipeItem(id="q-004", values={"kept": True})])
        draft.finish(
            Manifest(
                kind="benchmark", title="For a test", inputs=[corpus.reference()], counts=Counts(kept=1, rejected=1)
            )
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("shown")
    a_benchmark(place / "bench", a_corpus(place, [DOCUMENT]).artefact)
    return place


def test_a_question_is_shown_with_its_evidence_in_the_source(folder: Path) -> None:
    shown = hoofbeat("show", "bench", "q-001", folder=folder).stdout
    for words in (
        "A man with a red knee.",
        "What is it?",
        "B. Gout  (answer)",
        "specialty: Rheumatology",
        "topics: joints; crystals",
        "step: extract · case-extract@1a2b · scripted · 2 calls",
        "documents: doc-1",
    ):
        assert words in shown
    place = TEXT.index("crystals")
    assert f"evidence 1: doc-1, characters {place} to {place + 18}, Case" in shown
    assert "aspirated\ufffd and »crystals were seen«." in shown
    assert "»Gout was the diagnosis«, and colchicine was given." in shown
    assert ", Discussion" in shown


def test_nothing_shown_steers_the_terminal(folder: Path) -> None:
    for words in (("bench", "q-001"), ("corpus", "doc-1"), ("bench", "q-002")):
        done = hoofbeat("show", *words, folder=folder)
        assert "\x1b" not in done.stdout + done.stderr
        assert "\x07" not in done.stdout + done.stderr


def test_colours_are_for_terminals(folder: Path) -> None:
    coloured = hoofbeat("show", "bench", "q-001", folder=folder, extra={"FORCE_COLOR": "1", "COLUMNS": "400"}).stdout
    assert "\x1b[30;43mcrystals were seen\x1b[0m" in coloured
    assert "»" not in coloured
    assert "\x1b[31mThe joint" not in coloured


def test_context_is_as_long_as_asked_for(folder: Path) -> None:
    shown = hoofbeat("show", "bench", "q-001", "--around", "0", folder=folder).stdout
    assert "»crystals were seen«\n" in shown
    assert "colchicine" not in shown


def test_an_edition(folder: Path) -> None:
    shown = hoofbeat("show", "bench", "q-001", "--edition", "free", folder=folder).stdout
    assert "Freely: what is it?" in shown
    assert "answer:\nGout" in shown
    wrong = hoofbeat("show", "bench", "q-001", "--edition", "fee", folder=folder, code=1)
    assert "it has free" in wrong.stderr


def test_a_rejected_candidate_is_shown_with_why_and_where(folder: Path) -> None:
    shown = hoofbeat("show", "bench", "q-002", folder=folder).stdout
    assert "rejected at leaks: the stem gives the answer away" in shown
    assert "'Gout' (name of Gout)" in shown
    assert "stem:\nA man has gout." in shown
    assert 'options:\n["a","b"]' in shown
    assert "»Gout« was the diagnosis" in shown


def test_a_failed_candidate_and_one_without_a_question(folder: Path) -> None:
    assert "failed at rewrite: timeout: no answer in 60 s" in hoofbeat("show", "bench", "q-003", folder=folder).stdout
    assert "passed every step" in hoofbeat("show", "bench", "q-004", folder=folder).stdout


def test_without_an_id_the_first_ids_and_counts(folder: Path) -> None:
    shown = hoofbeat("show", "bench", folder=folder)
    assert "1 questions: q-001" in shown.stdout
    assert "1 rejected: q-002" in shown.stdout
    assert "1 failed: q-003" in shown.stdout
    assert "other editions: free" in shown.stdout
    assert "hoofbeat show bench q-001" in shown.stderr
    assert "1 documents: doc-1" in hoofbeat("show", "corpus", folder=folder).stdout


def test_a_wrong_id_names_the_closest(folder: Path) -> None:
    done = hoofbeat("show", "bench", "q-01", folder=folder, code=1)
    assert "no item q-01 in this benchmark" in done.stderr
    assert "the closest ids are q-0" in done.stderr
    assert "the closest ids are doc-1" in hoofbeat("show", "corpus", "doc", folder=folder, code=1).stderr


def test_a_wrong_id_that_is_like_none_names_none(folder: Path) -> None:
    done = hoofbeat("show", "bench", "zzzzzz", folder=folder, code=1)
    assert "closest" not in done.stderr
    assert "look for it: hoofbeat show bench" in done.stderr
    done = hoofbeat("show", "corpus", "zzzzzz", folder=folder, code=1)
    assert "closest" not in done.stderr
    assert "is this the right corpus?" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="terminals of this kind are POSIX")
def test_ids_in_errors_do_not_steer_the_terminal(tmp_path: Path) -> None:
    import pty  # noqa: PLC0415 - POSIX only

    hostile = "q1\x1b]0;OWNED\x07\x1b[31m\x9b2J\u202e"
    write_benchmark(tmp_path / "bench", [Question(id=hostile, text="Q")], title="", inputs=[], counts=Counts(kept=1))
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "hoofbeat", "show", "bench", "q1]0;OWNED[31"]
    done = subprocess.run(words, cwd=tmp_path, env=environment(), stdout=theirs, stderr=theirs, check=False)
    os.close(theirs)
    said = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 1
    assert "the closest ids are q1\ufffd]0;OWNED" in said
    assert not {"\x07", "\x9b", "\u202e"} & set(said)
    assert "\x1b]" not in said
    assert said.index("closest") > said.rindex("\x1b")  # colours of our own only: before the word error


def test_the_next_command_is_quoted(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "b", [Question(id="q; echo x", text="Q")], title="", inputs=[], counts=Counts(kept=1))
    assert "hoofbeat show b 'q; echo x'" in hoofbeat("show", "b", folder=tmp_path).stderr


def test_tables_do_not_steer_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    Screen(as_json=False).table(["name"], [["a\x1b[31m[b]\x9b2J"]])
    assert capfd.readouterr().err.split() == ["name", "a\ufffd[31m[b]\ufffd2J"]


def test_one_json_object(folder: Path) -> None:
    value = json_of(hoofbeat("show", "bench", "q-001", "--json", folder=folder))
    assert value["state"] == "question"
    assert value["item"]["answer"] == "Gout"
    assert [place["span"]["quote"] for place in value["evidence"]] == ["crystals were seen", "Gout was the diagnosis"]
    assert value["evidence"][0]["heading"] == "Case"
    assert json_of(hoofbeat("show", "bench", "q-002", "--json", folder=folder))["state"] == "rejected"
    listed = json_of(hoofbeat("show", "bench", "--json", folder=folder))
    assert listed["numbers"] == {"questions": 1, "rejected": 1, "failed": 1}
    assert listed["first"]["rejected"] == ["q-002"]
    assert json_of(hoofbeat("show", "corpus", "doc-1", "--json", folder=folder))["document"]["id"] == "doc-1"
    error = hoofbeat("show", "bench", "nothing", "--json", folder=folder, code=1)
    assert "no item nothing" in json.loads(error.stdout)["error"]


def test_a_document_is_shown_as_corpus_show_does(folder: Path) -> None:
    ours = hoofbeat("show", "corpus", "doc-1", folder=folder).stdout
    assert ours == hoofbeat("corpus", "show", "corpus", "doc-1", folder=folder).stdout
    assert "[case]" in ours


def test_without_its_corpus_the_quotes_are_shown_alone(folder: Path, tmp_path: Path) -> None:
    a_benchmark(tmp_path / "bench", open_artefact(folder / "corpus"))
    shown = hoofbeat("show", "bench", "q-001", folder=tmp_path).stdout
    assert "shown without its context" in shown
    assert "»crystals were seen«" in shown
    with_corpus = hoofbeat("show", "bench", "q-001", "--corpus", str(folder / "corpus"), folder=tmp_path).stdout
    assert "»crystals were seen«." in with_corpus
    hoofbeat("show", "bench", "q-001", "--corpus", "nowhere", folder=tmp_path, code=1)


def test_another_corpus_is_noticed(folder: Path, tmp_path: Path) -> None:
    other = Document(id="doc-1", title="", text="Something else altogether stands here.")
    a_corpus(tmp_path, [other])
    shown = hoofbeat("show", str(folder / "bench"), "q-001", "--corpus", "corpus", folder=tmp_path).stdout
    assert "the document has another text there" in shown
    a_corpus(tmp_path, [Document(id="doc-9", title="", text="x")])
    shown = hoofbeat("show", str(folder / "bench"), "q-001", "--corpus", "corpus", folder=tmp_path).stdout
    assert "no document doc-1 in this corpus" in shown


def test_other_folders_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    hoofbeat("show", "x", folder=tmp_path, code=1)
    hoofbeat("show", "bench", "q", "--around", "-1", folder=tmp_path, code=2)
