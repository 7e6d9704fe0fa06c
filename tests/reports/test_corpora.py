from __future__ import annotations

import csv
from pathlib import Path

import pytest
from msgspec.structs import replace

from hoofbeat.corpus.funnel import read_funnel
from hoofbeat.corpus.stats import CorpusStats, Quantiles, Share
from hoofbeat.errors import InputError
from hoofbeat.records import Document
from hoofbeat.reports.model import tables_in
from hoofbeat.reports.report_build import build_report
from hoofbeat.reports.sections.corpus_section import corpus_chapter
from hoofbeat.reports.sections.statistics_section import stats_chapter
from hoofbeat.reports.tables import Table
from hoofbeat.store import Artefact, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_tsv
from tests.reports import corpora, examples
from tests.reports.examples import HOSTILE
from tests.reports.parsing import parsed, words


def build(target: Path, *artefacts: Artefact) -> tuple[str, Artefact]:
    made = build_report([item.path for item in artefacts], target, title="A test")
    return words(parsed((made.path / "report.html").read_text("utf-8"))), made


def rows_of(report: Artefact, name: str) -> list[dict[str, str]]:
    with report.file(f"tables/{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def table_of(artefact: Artefact, name: str) -> Table:
    part = (corpus_chapter if artefact.manifest.kind == "corpus" else stats_chapter)(artefact, "p")
    return next(table for table in tables_in(part.blocks) if table.name == f"p-{name}")


def refinished(origin: Artefact, target: Path, tables: dict[str, list[object]], manifest: Manifest) -> Artefact:
    """An artefact like another with other tables and manifest."""
    with create(target, replace_kind=manifest.kind) as draft:
        for name in origin.manifest.files:
            place = draft.path / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(origin.file(name).read_bytes())
        for name, records in tables.items():
            write_jsonl(draft.path / name, records)
        draft.finish(manifest)
    return open_artefact(target)


# the funnel


def test_the_funnel_is_the_corpus_own(tmp_path: Path) -> None:
    artefact = corpora.filtered(tmp_path / "kept")
    text, made = build(tmp_path / "report", artefact)
    rows = rows_of(made, "corpus-1-funnel")
    for row, step in zip(rows, read_funnel(artefact), strict=True):
        assert (row["step"], int(row["in"]), int(row["kept"])) == (step.step, step.came, step.kept)
        assert int(row["rejected"]) == step.rejected
    assert [row["reasons"] for row in rows if "unique" in row["step"]] == ["1 near-duplicate"]
    assert made.has("charts/corpus-1-funnel.svg")
    kept = artefact.manifest.counts.kept
    assert f"4 filters rejected {25 - kept} of 25 documents" in text
    assert "Corpus: teaching cases (invented), filtered" in text
    assert f"{kept}of 25 before filtering" in text
    assert "not imported" not in text


def test_every_rejected_document_has_step_and_reason(tmp_path: Path) -> None:
    artefact = corpora.filtered(tmp_path / "kept")
    _, made = build(tmp_path / "report", artefact)
    rows = {row["document"]: row for row in rows_of(made, "corpus-1-rejected-list")}
    assert len(rows) == artefact.manifest.counts.rejected
    assert rows["z-copy"]["step"] == "unique(minhash, 0.3)"
    assert rows["z-copy"]["reason"] == "near-duplicate"
    assert "score 1.000" in rows["z-copy"]["details"]


def test_near_duplicates_with_their_scores(tmp_path: Path) -> None:
    _, made = build(tmp_path / "report", corpora.filtered(tmp_path / "kept"))
    row = rows_of(made, "corpus-1-duplicates")[0]
    first = corpora.documents()[1].id
    assert sorted((row["earlier"], row["later"])) == sorted((first, "z-copy"))
    assert float(row["score"]) == 1.0
    assert row["kept"] == first


def test_two_steps_leave_two_tables_of_pairs(tmp_path: Path) -> None:
    artefact = corpora.filtered(tmp_path / "kept", "unique(minhash, 0.9); unique(minhash, 0.2)")
    part = corpus_chapter(artefact, "p")
    captions = {table.name: table.caption for table in tables_in(part.blocks)}
    assert captions["p-duplicates"].endswith("unique(minhash, 0.9)")
    assert captions["p-duplicates-2"].endswith("unique(minhash, 0.2)")


def test_a_filter_that_rejects_nothing(tmp_path: Path) -> None:
    text, made = build(tmp_path / "report", corpora.filtered(tmp_path / "kept", "year>=1990"))
    assert "1 filter rejected 0 of 25 documents" in text
    assert not made.has("tables/corpus-1-rejected-list.csv")


def test_long_lists_are_cut_and_say_so(tmp_path: Path) -> None:
    many = [Document(id=f"d{n}", title="t", text=f"text {n}", facets={"year": str(1990 + n % 2)}) for n in range(500)]
    artefact = corpora.filtered(tmp_path / "kept", "year>=1991", many)
    table = table_of(artefact, "rejected-list")
    assert (table.n, len(table.rows)) == (250, 200)
    assert table.note == "The first 200 of 250; all are in rejected.jsonl."


def test_many_pairs_are_cut_and_most_alike_come_first(tmp_path: Path) -> None:
    origin = corpora.filtered(tmp_path / "kept")
    with create(tmp_path / "many", replace_kind="corpus") as draft:
        for name in ("documents.jsonl", "rejected.jsonl"):
            (draft.path / name).write_bytes(origin.file(name).read_bytes())
        pairs = [(f"a{n}", f"b{n}", f"{n / 1000:.6f}", "" if n == 299 else f"a{n}") for n in range(300)]
        write_tsv(draft.path / "duplicates.tsv", ("first", "second", "score", "kept"), pairs)
        draft.finish(replace(origin.manifest, files={}))
    table = table_of(open_artefact(tmp_path / "many"), "duplicates")
    assert (table.n, len(table.rows)) == (300, 200)
    assert table.rows[0] == ("a299", "b299", 0.299, "neither: a third one is kept")
    assert table.note.startswith("The 200 most alike of 300")


def test_an_imported_corpus_is_shown_as_before(tmp_path: Path) -> None:
    text, made = build(tmp_path / "report", examples.corpus(tmp_path / "cases"))
    assert "2 were not imported" in text
    assert rows_of(made, "corpus-1-rejected-list")[0]["file"] == "scans/letter-12.pdf"
    assert not made.has("tables/corpus-1-funnel.csv")


def test_a_broken_funnel_is_refused_readably(tmp_path: Path) -> None:
    origin = corpora.filtered(tmp_path / "kept")
    manifest = replace(origin.manifest, metrics={"funnel": [{"step": 1}]}, files={})
    broken = refinished(origin, tmp_path / "broken", {}, manifest)
    with pytest.raises(InputError, match="funnel in the manifest"):
        corpus_chapter(broken, "p")


@pytest.mark.parametrize("line", ["first\tsecond\na\tb\n", "first\tsecond\tscore\tkept\na\tb\tmuch\ta\n"])
def test_broken_pairs_are_refused_readably(tmp_path: Path, line: str) -> None:
    origin = corpora.filtered(tmp_path / "kept")
    with create(tmp_path / "broken", replace_kind="corpus") as draft:
        for name in ("documents.jsonl", "rejected.jsonl"):
            (draft.path / name).write_bytes(origin.file(name).read_bytes())
        (draft.path / "duplicates.tsv").write_text(line)
        draft.finish(replace(origin.manifest, files={}))
    with pytest.raises(InputError, match=r"not a table of near-duplicates|no column score"):
        corpus_chapter(open_artefact(tmp_path / "broken"), "p")


# the statistics


def test_the_papers_tables(tmp_path: Path) -> None:
    counted = corpora.counted()
    text, made = build(tmp_path / "report", corpora.stats(tmp_path / "numbers", counted))
    for name, rows in {**counted.tables, **{f"specialty-{n}": r for n, r in counted.specialties.items()}}.items():
        shown = rows_of(made, f"stats-1-{name}")
        assert [int(row["count"]) for row in shown] == [row.documents for row in rows]
        assert [float(row["share"]) for row in shown] == pytest.approx([row.share for row in rows], abs=1e-6)
    years = [row["year"] for row in rows_of(made, "stats-1-year")]
    assert years == sorted(years)
    lengths = {row["unit"]: row for row in rows_of(made, "stats-1-lengths")}
    assert float(lengths["words"]["95th"]) == pytest.approx(counted.lengths["words"].p95)
    assert set(lengths) == {"characters", "words", "figures"}
    assert "Statistics: numbers-corpus" in text
    assert "Specialties: OGCaReBench" in text


def test_each_table_of_several_values_has_a_chart(tmp_path: Path) -> None:
    _, made = build(tmp_path / "report", corpora.stats(tmp_path / "numbers"))
    charts = {Path(name).stem for name in made.manifest.files if name.startswith("charts/")}
    assert charts == {
        f"stats-1-{name}" for name in ("specialty-ogcare", "specialty-body-systems", "year", "venue", "licence", "kind")
    }


def test_what_all_documents_share_is_said_in_words(tmp_path: Path) -> None:
    nothing = (Share(value="unknown", documents=4, share=1.0),)
    same = (Share(value="en", documents=4, share=1.0),)
    only = CorpusStats(
        documents=4,
        tokenizer="none",
        tables={"year": nothing, "language": same},
        specialties={},
        lengths={},
        figures=None,
    )
    text, made = build(tmp_path / "report", corpora.stats(tmp_path / "numbers", only))
    assert "The same for all documents: language (en)." in text
    assert "Unknown for all documents: year." in text
    assert "labelled by rule" not in text
    assert made.has("tables/stats-1-language.csv")


def test_no_documents(tmp_path: Path) -> None:
    empty = CorpusStats(documents=0, tokenizer="none", tables={}, specialties={}, lengths={}, figures=None)
    text, _ = build(tmp_path / "report", corpora.stats(tmp_path / "numbers", empty))
    assert "No documents were counted." in text


def test_an_empty_file_is_refused_readably(tmp_path: Path) -> None:
    bare = examples.finish(tmp_path / "bare", Manifest(kind="stats"), {"stats.jsonl": []})
    with pytest.raises(InputError, match="statistics are empty"):
        stats_chapter(bare, "p")


def test_many_venues_are_cut_and_say_so(tmp_path: Path) -> None:
    venues = tuple(Share(value=f"Journal {n}", documents=1, share=1 / 900) for n in range(900))
    many = CorpusStats(
        documents=900, tokenizer="none", tables={"venue": venues}, specialties={}, lengths={}, figures=None
    )
    table = table_of(corpora.stats(tmp_path / "numbers", many), "venue")
    assert len(table.rows) == 200
    assert table.note == "The first 200 of 900; all are in venue.tsv."


def test_the_tokenizer_is_named(tmp_path: Path) -> None:
    length = Quantiles(count=2, total=9, minimum=4, maximum=5, mean=4.5, median=4.5, p75=4.75, p95=4.95)
    tokens = CorpusStats(
        documents=2, tokenizer="minilm@abc", tables={}, specialties={}, lengths={"tokens": length}, figures=None
    )
    text, _ = build(tmp_path / "report", corpora.stats(tmp_path / "numbers", tokens))
    assert "Tokens are those of minilm@abc." in text


def test_hostile_corpora(tmp_path: Path) -> None:
    rows = (Share(value=HOSTILE, documents=1, share=0.5), Share(value="b", documents=1, share=0.5))
    counted = CorpusStats(
        documents=2,
        tokenizer=HOSTILE,
        tables={"year": rows, "venue": rows, HOSTILE: rows},
        specialties={HOSTILE: rows, "/etc/passwd.toml": rows},
        lengths={},
        figures=None,
    )
    origin = corpora.stats(tmp_path / "plain")
    manifest = replace(origin.manifest, files={})
    stats = refinished(origin, tmp_path / "stats", {"stats.jsonl": [counted]}, manifest)
    documents = [Document(id=HOSTILE, title=HOSTILE, text="a", facets={"year": "1999", "note": HOSTILE})]
    documents.append(Document(id="b", title="b", text="b", facets={"year": "2020"}))
    kept = corpora.filtered(tmp_path / "kept", "year>=2000", documents)
    _, made = build(tmp_path / "report", stats, kept)
    tree = parsed((made.path / "report.html").read_text("utf-8"))
    assert len(tree.xpath("//script")) == 1
    assert not tree.xpath("//img")
    assert made.verify() == []
