"""The funnel: a filtered corpus with what went and why; and which questions have stopped being rare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from hoofbeat.benchmarks.benchmark import write_benchmark
from hoofbeat.benchmarks.rarity_aging import aging_counts, refilter
from hoofbeat.cli.corpus import aging_command, filter_command
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.citations import load_citations
from hoofbeat.corpus.filter import parse_filters
from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.funnel import (
    FunnelStep,
    filter_corpus,
    funnel_data,
    funnel_markdown,
    read_funnel,
)
from hoofbeat.errors import InputError, UsageError
from hoofbeat.records import Question
from hoofbeat.store import Counts
from hoofbeat.store.artefact import TRUST_CHANGED
from hoofbeat.teaching import cases_folder
from tests.corpus.filter_documents import document, run_filters

LINE = (
    "type=case-report; year>=2020; not retracted; not promotional; language=en; images; unique; roles=case,discussion"
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return Corpus(import_corpus([cases_folder()], tmp_path_factory.mktemp("corpus") / "cases", title="Cases"))


def folder_bytes(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_filtered_corpus(cases: Corpus, tmp_path: Path) -> None:
    artefact = filter_corpus(cases, parse_filters(LINE), tmp_path / "kept", command=["hoofbeat", "x"])
    manifest = artefact.manifest
    assert (manifest.kind, manifest.title, manifest.command) == ("corpus", "Cases", ["hoofbeat", "x"])
    assert manifest.inputs == [cases.artefact.reference()]
    assert manifest.counts == Counts(
        kept=20, rejected=4, reasons={"near-duplicate": 1, "not year>=2020": 1, "promotional": 1, "retracted": 1}
    )
    assert manifest.seeds == {"minhash": 20240229}
    steps = manifest.settings["steps"]
    assert isinstance(steps, list)
    assert steps[3] == {"step": "not promotional", "threshold": 3.0}
    lines = artefact.file("rejected.jsonl").read_text().splitlines()
    assert {(row["id"], row["step"], row["reason"]) for row in map(json.loads, lines)} == {
        ("hbt-case-18", "year>=2020", "not year>=2020"),
        ("hbt-case-20", "not promotional", "promotional"),
        ("hbt-case-21", "not retracted", "retracted"),
        ("hbt-case-22", "unique(minhash, 0.15)", "near-duplicate"),
    }
    kept = Corpus(artefact)
    assert set(kept.ids()) == set(cases.ids()) - {json.loads(line)["id"] for line in lines}
    for one in kept.documents():
        assert one == cases.get(one.id)
        for figure in one.figures:
            for name in figure.files:
                assert artefact.file(name).read_bytes() == cases.artefact.file(name).read_bytes()
    assert not any("hbt-case-20" in name for name in manifest.files)
    assert artefact.verify() == []
    funnel = artefact.file("funnel.tsv").read_text().splitlines()
    assert funnel[0] == "step\tin\tkept\trejected\treasons"
    assert funnel[2] == "year>=2020\t24\t23\t1\t1 not year>=2020"
    assert artefact.file("duplicates.tsv").read_text().splitlines()[1].startswith("hbt-case-13\thbt-case-22\t0.6")


def test_filtering_again_gives_the_same_bytes(cases: Corpus, tmp_path: Path) -> None:
    for name in ("one", "two", "one"):
        filter_corpus(cases, parse_filters(LINE), tmp_path / name)
    assert folder_bytes(tmp_path / "one") == folder_bytes(tmp_path / "two")
    assert str(tmp_path) not in (tmp_path / "one" / "manifest.json").read_text()
    again = filter_corpus(Corpus.open(tmp_path / "one"), parse_filters(LINE), tmp_path / "three")
    assert again.manifest.counts.rejected == 0
    assert (tmp_path / "three/documents.jsonl").read_bytes() == (tmp_path / "one/documents.jsonl").read_bytes()


def test_steps_are_applied_in_order_and_a_two_pass_step_sees_what_the_earlier_ones_keep() -> None:
    text = " ".join(f"word{number}" for number in range(100))
    documents = [
        document("a", text=text, facets={"year": "2019"}),
        document("b", text=text, facets={"year": "2024"}),
        document("c", text="something else entirely", facets={"year": "2024"}),
    ]
    kept, rejected, _ = run_filters(documents, parse_filters("unique; year>=2020"))
    assert [one.id for one in kept] == ["c"]
    assert [(each.id, each.step) for each in rejected] == [("a", "year>=2020"), ("b", "unique(minhash, 0.15)")]
    kept, rejected, funnel = run_filters(documents, parse_filters("year>=2020; unique; unique(minhash, 0.9)"))
    assert [one.id for one in kept] == ["b", "c"]
    assert [(each.id, each.reason) for each in rejected] == [("a", "not year>=2020")]
    assert [(step.came, step.kept, step.rejected) for step in funnel] == [(3, 2, 1), (2, 2, 0), (2, 2, 0)]


def test_tables_of_two_steps_do_not_overwrite_each_other(cases: Corpus, tmp_path: Path) -> None:
    artefact = filter_corpus(cases, parse_filters("unique(minhash, 0.9); unique"), tmp_path / "kept")
    assert len(artefact.file("duplicates.tsv").read_text().splitlines()) == 1
    assert len(artefact.file("duplicates-2.tsv").read_text().splitlines()) == 2


def test_funnel_as_data_and_markdown(cases: Corpus, tmp_path: Path) -> None:
    artefact = filter_corpus(cases, parse_filters("year>=2023"), tmp_path / "kept")
    funnel = read_funnel(artefact)
    assert funnel == [FunnelStep(step="year>=2023", came=24, kept=21, reasons={"not year>=2023": 3})]
    assert funnel_data(funnel) == [
        {"step": "year>=2023", "in": 24, "kept": 21, "rejected": 3, "reasons": {"not year>=2023": 3}}
    ]
    assert funnel_markdown(funnel).splitlines()[2] == "| `year>=2023` | 24 | 21 | 3 | 3 not year>=2023 |"
    with pytest.raises(InputError, match="was not filtered"):
        read_funnel(cases.artefact)


def test_marks_go_into_the_new_corpus_and_the_file_is_an_input(cases: Corpus, tmp_path: Path) -> None:
    file = tmp_path / "citations.csv"
    file.write_text("citing,cited,case_report\nPMC1,hbt-case-01,yes\n")
    artefact = filter_corpus(cases, parse_filters(f"rare({file})"), tmp_path / "rare")
    assert [ref.name for ref in artefact.manifest.inputs] == ["cases", "citations.csv"]
    assert Corpus(artefact).get("hbt-case-01").facets["cited_by"] == "1"
    assert Corpus(artefact).get("hbt-case-02").facets["rarity"] == "unknown"


def test_what_can_not_be_filtered(cases: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        filter_corpus(cases, parse_filters("year>=2023; year<2000"), tmp_path / "none")
    assert "`year<2000` rejects the last 21" in caught.value.what
    assert not (tmp_path / "none").exists()
    with pytest.raises(UsageError, match="no filter is given"):
        filter_corpus(cases, [], tmp_path / "none")
    with pytest.raises(UsageError, match="into itself"):
        filter_corpus(cases, parse_filters("images"), cases.path)
    assert cases.artefact.verify() == []


@pytest.mark.parametrize("name", ["../secret.png", "/etc/hostname", "images/../manifest.json", "images/gone.png", ""])
def test_images_are_taken_from_the_corpus_only(
    cases: Corpus, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(TRUST_CHANGED, "1")
    (tmp_path / "secret.png").write_bytes(b"SECRET")
    filter_corpus(cases, parse_filters("year>=2020"), tmp_path / "own")
    table = tmp_path / "own" / "documents.jsonl"
    rows = [json.loads(line) for line in table.read_text().splitlines()]
    rows[0]["figures"][0]["files"] = [name]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    artefact = filter_corpus(Corpus.open(tmp_path / "own"), parse_filters("year>=2020"), tmp_path / "out")
    assert Corpus(artefact).get(rows[0]["id"]).figures[0].files == ()
    assert artefact.manifest.metrics["images_missing"] == 1
    assert all(b"SECRET" not in data for data in folder_bytes(tmp_path / "out").values())


QUESTIONS = [
    Question(id="q1", text="?", documents=("PMC1",)),
    Question(id="q2", text="?", documents=("PMC2",)),
    Question(id="q3", text="?", documents=("PMC3", "PMC9")),
    Question(id="q4", text="?"),
]


def aging_corpus(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for number in (1, 2, 3):
        (source / f"{number}.md").write_text(f"---\nid: PMC{number}\nyear: 2024\n---\nText number {number}.\n")
    older = tmp_path / "older.csv"
    older.write_text("citing,cited,case_report\nPMC11,PMC1,yes\nPMC12,PMC2,no\n")
    corpus = Corpus(import_corpus([source], tmp_path / "all"))
    filter_corpus(corpus, parse_filters(f"rare({older})"), tmp_path / "rare")
    newer = tmp_path / "newer.csv"
    newer.write_text(older.read_text() + "PMC13,PMC1,yes\nPMC14,PMC2,no\n")
    return newer


def test_what_has_stopped_being_rare(tmp_path: Path) -> None:
    newer = aging_corpus(tmp_path)
    corpus = Corpus.open(tmp_path / "rare")
    rows = refilter(QUESTIONS, corpus.get, load_citations(newer), RarityLimits())
    assert [(row.question, row.document, row.state) for row in rows] == [
        ("q1", "PMC1", "rare"),
        ("q2", "PMC2", "not rare"),
        ("q3", "PMC3", "unknown"),
        ("q3", "PMC9", "no document"),
    ]
    assert (rows[0].cited_before, rows[0].cited_now, rows[0].why) == (1, 2, "")
    assert (rows[1].others_before, rows[1].others_now) == (1, 2)
    assert rows[1].why.startswith("cited by more than 1 article that is no case report: cited by 2")
    assert (rows[2].cited_before, rows[2].cited_now) == (None, None)
    assert aging_counts(rows) == {"rare": 1, "unknown": 1, "not rare": 1, "no document": 0}
    older = load_citations(tmp_path / "older.csv")
    given = refilter(
        QUESTIONS[:1], Corpus.open(tmp_path / "all").get, load_citations(newer), RarityLimits(), before=older
    )
    assert (given[0].cited_before, given[0].cited_now) == (1, 2)


def test_the_filter_command(cases: Corpus, tmp_path: Path) -> None:
    words = [str(cases.path), "--keep", "year>=2023; images", "--keep", "not promotional", "-o", str(tmp_path / "o")]
    shown = CliRunner().invoke(filter_command, words, catch_exceptions=False)
    assert shown.exit_code == 0
    assert "Kept 20 documents, rejected 4" in shown.stdout
    assert "not promotional" in shown.stderr
    result = CliRunner().invoke(filter_command, [*words, "--json"], catch_exceptions=False)
    printed = json.loads(result.stdout)
    assert printed["counts"] == {
        "kept": 20,
        "rejected": 4,
        "failed": 0,
        "reasons": {"not year>=2023": 3, "promotional": 1},
        "failures": {},
    }
    assert [step["in"] for step in printed["funnel"]] == [24, 21, 21]
    assert CliRunner().invoke(filter_command, [str(cases.path)]).exit_code == 2


def test_the_aging_command(tmp_path: Path) -> None:
    newer = aging_corpus(tmp_path)
    write_benchmark(tmp_path / "bench", QUESTIONS, title="B", inputs=[], counts=Counts(kept=4))
    words = [str(tmp_path / "bench"), "--corpus", str(tmp_path / "rare"), "--citations", str(newer)]
    shown = CliRunner().invoke(aging_command, [*words, "-o", str(tmp_path / "aged.tsv")], catch_exceptions=False)
    assert "4 questions: 1 rare, 1 unknown, 1 not rare" in shown.stdout
    assert "1 → 2" in next(line for line in shown.stderr.splitlines() if line.startswith("q2"))
    assert "q1" not in shown.stderr
    table = (tmp_path / "aged.tsv").read_text().splitlines()
    assert table[0].split("\t")[:3] == ["question", "document", "state"]
    assert len(table) == 5
    result = CliRunner().invoke(aging_command, [*words, "--json", "--other", "2"], catch_exceptions=False)
    printed = json.loads(result.stdout)
    assert printed["metrics"] == {"rare": 2, "unknown": 1, "not rare": 0, "no document": 0}
    assert (printed["rows"][0]["question"], printed["rows"][0]["cited_now"]) == ("q1", 2)
