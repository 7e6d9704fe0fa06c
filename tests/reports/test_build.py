from __future__ import annotations

import csv
import re
from itertools import pairwise
from pathlib import Path

import pytest
from lxml import etree
from msgspec import structs
from msgspec.structs import replace

from hoofbeat.errors import ArtefactError, OutputError, UsageError
from hoofbeat.records import Answer, Document, Failure, Question
from hoofbeat.reports.item_views import answers_viewer
from hoofbeat.reports.model import Viewer, tables_in
from hoofbeat.reports.report_build import assemble, build_report
from hoofbeat.reports.tables import Table
from hoofbeat.store import Artefact, InputRef, Manifest, create, open_artefact
from tests.reports import examples
from tests.reports.examples import HOSTILE
from tests.reports.parsing import packed_ids, parsed, words


def build(target: Path, *artefacts: Artefact, **more: object) -> tuple[str, Artefact]:
    made = build_report([item.path for item in artefacts], target, title="A test", **more)  # type: ignore[arg-type]
    return words(parsed((made.path / "report.html").read_text("utf-8"))), made


def rows_of(report: Artefact, name: str) -> list[dict[str, str]]:
    with report.file(f"tables/{name}.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_report_folder_is_whole(report: Artefact, study: list[Path]) -> None:
    assert report.manifest.kind == "report"
    assert {"report.html", "report.md"} <= set(report.manifest.files)
    assert report.verify() == []
    assert [ref.name for ref in report.manifest.inputs] == [path.name for path in study]
    assert all(open_artefact(path).reference() in report.manifest.inputs for path in study)
    for name in report.manifest.files:
        if name.endswith(".svg"):
            etree.parse(str(report.path / name))


def test_the_same_artefacts_give_the_same_bytes(report: Artefact, study: list[Path], tmp_path: Path) -> None:
    notes = ["The default model is tiny."]
    again = build_report(study, tmp_path / "again", title="An invented study", notes=notes, planted=examples.planted())
    assert again.manifest.files == report.manifest.files


def test_links_ids_and_headings_of_a_whole_report(report: Artefact) -> None:
    tree = parsed((report.path / "report.html").read_text("utf-8"))
    ids = tree.xpath("//@id")
    assert len(ids) == len(set(ids))
    links = {link.removeprefix("#").partition("?")[0] for link in tree.xpath("//a/@href")}
    assert links <= {*ids, *packed_ids(tree)}
    assert len(packed_ids(tree)) == len(set(packed_ids(tree)))
    levels = [int(node.tag[1]) for node in tree.xpath("//h1|//h2|//h3")]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_first_screen_and_origin(report: Artefact) -> None:
    tree = parsed((report.path / "report.html").read_text("utf-8"))
    front = words(tree.xpath("//header")[0])
    assert "Research software. Not for clinical use." in front
    assert "The default model is tiny." in front
    assert examples.JUDGE in front
    text = words(tree)
    origin = text[text.rindex("How this was made") :]
    for told in ("hoofbeat judge run", "answer-closed@91aa03c4de10", "bootstrap", "dddddddddddd", "440", "Hoofbeat 0."):
        assert told in origin


def test_every_table_states_n(study: list[Path]) -> None:
    report = assemble([open_artefact(path) for path in study], title="t", planted=examples.planted())
    tables = list(tables_in(report.blocks))
    assert len(tables) > 20
    assert all(table.unit for table in tables)
    assert all(len(row) == len(table.columns) for table in tables for row in table.rows)
    assert all(not table.links or len(table.links) == len(table.rows) for table in tables)


def test_conditions_judged_apart_are_compared(report: Artefact) -> None:
    scores = {row["condition"]: row for row in rows_of(report, "judgments-1-leaderboard")}
    assert list(scores) == ["oracle", "bm25 + dense @3", "closed"]
    for row in scores.values():
        low, value, high = (float(row[f"accuracy, 95% interval{end}"]) for end in (" low", "", " high"))
        assert low <= value <= high
        assert value == pytest.approx(int(row["right"]) / int(row["planned"]))
    against = rows_of(report, "judgments-1-differences")
    assert [(row["condition"], row["against"]) for row in against] == [
        ("bm25 + dense @3", "closed"),
        ("oracle", "closed"),
    ]
    assert all(0 <= float(row["p"]) <= float(row["Holm p"]) <= 1 for row in against)


def test_rankings_of_one_corpus_stand_together(tmp_path: Path) -> None:
    a = examples.rankings(tmp_path / "a", "bm25", 0.5)
    b = examples.rankings(tmp_path / "b", "dense", 0.6, seed=2)
    c = examples.rankings(tmp_path / "c", "bm25", 0.6, searched="other")
    text, made = build(tmp_path / "report", a, b, c)
    assert [row["retriever"] for row in rows_of(made, "rankings-1-measures")] == ["bm25", "dense"]
    assert [row["retriever"] for row in rows_of(made, "rankings-3-measures")] == ["bm25"]
    assert "Retrieval: cases" in text
    assert "Retrieval: other, nDCG@10 of bm25" in text
    assert "dense is the better of two retrievers" in text
    assert re.search(r"The other, bm25, has 0\.\d+[^.]*: dense is ahead by 0\.\d+ \(95% interval", text)


def test_the_second_and_the_worst_retriever_are_told_with_how_far_the_best_is_ahead(tmp_path: Path) -> None:
    """A demo said that the crippled baseline is clearly worse, and nothing of the plain one."""
    lines = (("a", 0.8, 1), ("b", 0.79, 2), ("c", 0.2, 3))
    made = [examples.rankings(tmp_path / name, name, mean, seed=seed) for name, mean, seed in lines]
    text, report = build(tmp_path / "report", *made)
    found = report.manifest.metrics["found"]
    assert isinstance(found, list)
    told = str(found[1])
    second, _, worst = told.partition("The worst, c, has 0.")
    assert second.startswith("The second, b, has 0.7")
    assert "do not show that it is worse: a is ahead by 0.0" in second
    assert "is clearly worse: a is ahead by 0.5" in worst
    assert "is the best of 3 retrievers" in text


def test_lines_over_one_published_folder_share_a_chapter(tmp_path: Path) -> None:
    made = []
    for line in ("bm25", "dense"):
        origin = examples.rankings(tmp_path / line, line, 0.5)
        inputs = [InputRef(name="Biology", sha256="c" * 64, kind="r2med")]
        tables = {name: origin.file(name).read_bytes() for name in ("hits.jsonl", "queries.tsv")}
        with create(tmp_path / f"{line}-set", replace_kind="rankings") as draft:
            for name, content in tables.items():
                (draft.path / name).write_bytes(content)
            draft.finish(structs.replace(origin.manifest, inputs=inputs))
        made.append(tmp_path / f"{line}-set")
    text = build_report(made, tmp_path / "report", title="t").file("report.md").read_text("utf-8")
    assert text.count("Retrieval: Biology") >= 1
    assert "2 retrievers searched Biology" in text


def test_rankings_without_measures(tmp_path: Path) -> None:
    bare = examples.finish(tmp_path / "bare", Manifest(kind="rankings", settings={"line": "bm25"}), {"hits.jsonl": []})
    text, _ = build(tmp_path / "report", bare)
    assert "Nothing was measured" in text


def test_audit_figures_match_the_planted_relations(tmp_path: Path) -> None:
    audit = examples.audit(tmp_path / "audit", noise=0.0, failing=0.0)
    text, made = build(tmp_path / "report", audit, planted=examples.planted())
    rates = {row["rate"]: row for row in rows_of(made, "audit-1-rates")}
    planted = examples.planted().values()
    absent = sum(label == "Absent" for label in planted)
    diverging = sum(label in ("Divergent", "Contradictory") for label in planted)
    assert int(rates["R_abs"]["count"]) == absent
    assert int(rates["R_div"]["count"]) == diverging
    assert int(rates["R_div"]["of"]) == len(planted) - absent
    assert "Judge's agreement with planted labels100.0%" in text
    assert [row["value"] for row in rows_of(made, "audit-1-agreement")] == ["100.0%", "1.000", "0"]


def test_planted_labels_outside_of_the_audit_do_not_count(tmp_path: Path) -> None:
    audit = examples.audit(tmp_path / "audit", limit=2, noise=0.0, failing=0.0)
    _, made = build(tmp_path / "report", audit, planted=examples.planted())
    assert sum(int(row["labelled"]) for row in rows_of(made, "audit-1-confusion")) == 56


def test_a_pair_can_be_reached_from_grid_and_table(report: Artefact) -> None:
    tree = parsed((report.path / "report.html").read_text("utf-8"))
    pairs = {name for name in packed_ids(tree) if name.startswith("audit-1-p")}
    assert len(pairs) == 320
    from_grids = [link.removeprefix("#") for link in tree.xpath("//div[@class='grid']//a/@href")]
    assert set(from_grids) == pairs
    assert len(from_grids) == 2 * len(pairs)
    from_tables = {link.removeprefix("#") for link in tree.xpath("//div[@class='table']//a/@href")}
    assert {link for link in from_tables if link.startswith("audit-1-p") and "?" not in link} <= pairs
    assert "audit-1-pairs?source=Alder%20Kidney%20transplant%20handbook" in from_tables


def test_a_run_without_judgments(tmp_path: Path) -> None:
    text, made = build(tmp_path / "report", examples.run(tmp_path / "run", examples.answered("closed", failing=0.3)))
    assert "none has been judged" in text
    row = rows_of(made, "run-1-answered")[0]
    assert int(row["answered"]) + int(row["failed"]) == int(row["planned"]) == 20


def test_a_run_whose_judgments_are_there_is_not_shown_twice(tmp_path: Path) -> None:
    answers = examples.answered("closed")
    run = examples.run(tmp_path / "run", answers)
    judged = examples.judged(tmp_path / "judged", answers, inputs=[run.reference()])
    text, _ = build(tmp_path / "report", run, judged)
    assert "shown with their judgments" in text
    assert text.count("Question by question") == 2  # contents and heading


def test_judge_that_answered_is_pointed_out(tmp_path: Path) -> None:
    judged = examples.judged(tmp_path / "judged", examples.answered("closed"), judge=examples.ANSWERER)
    text, _ = build(tmp_path / "report", judged)
    assert "a model tends to agree with itself" in text


def test_two_judges_of_one_run_are_two_chapters(tmp_path: Path) -> None:
    answers = examples.answered("closed")
    one = examples.judged(tmp_path / "one", answers)
    two = examples.judged(tmp_path / "two", answers, judge="openai:other")
    _, made = build(tmp_path / "report", one, two)
    assert made.has("tables/judgments-1-leaderboard.csv")
    assert made.has("tables/judgments-2-leaderboard.csv")


def test_nothing_at_all_still_makes_a_report(tmp_path: Path) -> None:
    empty = [
        examples.corpus(tmp_path / "corpus", []),
        examples.benchmark(tmp_path / "benchmark", []),
        examples.run(tmp_path / "run", [], []),
        examples.judged(tmp_path / "judged", [], questions=[]),
        examples.audit(tmp_path / "audit", limit=0),
    ]
    text, _ = build(tmp_path / "report", *empty, planted=examples.planted())
    for told in (
        "This corpus has no documents",
        "This benchmark has no questions",
        "This run has no answers",
        "There are no answers to score",
        "there is nothing to compare",
    ):
        assert told in text


def test_when_everything_failed(tmp_path: Path) -> None:
    answers = examples.answered("closed", failing=1.0)
    text, made = build(
        tmp_path / "report",
        examples.run(tmp_path / "run", answers),
        examples.judged(tmp_path / "judged", answers),
        examples.audit(tmp_path / "audit", failing=1.0),
        planted=examples.planted(),
    )
    assert "Every call failed" in text
    assert "No answer could be scored" in text
    assert "Every comparison failed" in text
    assert rows_of(made, "judgments-1-leaderboard")[0]["unscored"] == "20"
    assert rows_of(made, "audit-1-rates")[1]["value"] == ""


def test_no_judgment_came_through(tmp_path: Path) -> None:
    judged = examples.judged(tmp_path / "judged", examples.answered("oracle"), failing=1.0)
    text, _ = build(tmp_path / "report", judged)
    assert "No answer could be scored" in text
    assert "no answer could be scored (20 planned)" in text  # on the first screen, instead of 0 of 20
    assert "0 of 20 (0.0%" not in text
    some = examples.judged(tmp_path / "some", examples.answered("oracle"), failing=0.5)
    text, _ = build(tmp_path / "report-of-some", some)
    assert "without a score were right" in text
    assert "judgment: unreadable" in text


def test_hostile_artefacts(tmp_path: Path) -> None:
    question = Question(id=HOSTILE, text=HOSTILE, context=HOSTILE, answer=HOSTILE, facets={HOSTILE: HOSTILE})
    other = replace(question, id="plain", facets={HOSTILE: "other"})
    failure = Failure(kind="refusal", message=HOSTILE)
    answers = [
        Answer(question=HOSTILE, model=HOSTILE, condition=HOSTILE, text=HOSTILE),
        Answer(question="plain", model=HOSTILE, condition=HOSTILE, failure=failure),
    ]
    document = Document(id=HOSTILE, title=HOSTILE, text=HOSTILE, facets={HOSTILE: [HOSTILE, "b"]}, licence=HOSTILE)
    artefacts = [
        examples.corpus(tmp_path / "corpus", [document]),
        examples.benchmark(tmp_path / "benchmark", [question, other]),
        examples.judged(tmp_path / "judged", answers, questions=[question, other], judge=HOSTILE),
    ]
    made = build_report([a.path for a in artefacts], tmp_path / "report", title=HOSTILE, notes=[HOSTILE])
    tree = parsed((made.path / "report.html").read_text("utf-8"))
    assert len(tree.xpath("//script")) == 1
    assert not tree.xpath("//img")
    assert made.verify() == []


def test_a_page_holds_only_so_much() -> None:
    questions = [Question(id=f"q{n}", text="x" * 1000) for n in range(50)]
    answers = [Answer(question=q.id, model="m", condition="closed", text="y" * 1000) for q in questions]
    viewer = answers_viewer("p", questions, answers, {}, {}, budget=10_000)
    assert isinstance(viewer, Viewer)
    assert 0 < len(viewer.entries) < 50
    assert viewer.total == 50
    assert viewer.left_out == 0


def test_wrong_inputs_are_refused_readably(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="at least one"):
        build_report([], tmp_path / "report", title="t")
    with pytest.raises(ArtefactError, match="no such folder"):
        build_report([tmp_path / "nowhere"], tmp_path / "report", title="t")
    run = examples.run(tmp_path / "run", [], [])
    _, made = build(tmp_path / "report", run)
    with pytest.raises(ArtefactError, match="kind of this folder is report"):
        build_report([made.path], tmp_path / "second", title="t")
    with pytest.raises(OutputError, match="already holds other results"):
        build_report([run.path], run.path, title="t")


def test_markdown_of_a_report(report: Artefact) -> None:
    text = report.file("report.md").read_text("utf-8")
    assert text.startswith("# An invented study\n")
    assert "## Source audit: " in text
    for line in text.splitlines():
        if line.startswith("!["):
            assert (report.path / line.rpartition("(")[2].removesuffix(")")).is_file()


def test_table_names_are_safe_files(tmp_path: Path) -> None:
    judged = examples.judged(tmp_path / "judged .. x", examples.answered("closed"))
    _, made = build(tmp_path / "report", judged)
    names = [name for name in made.manifest.files if name.startswith("tables/")]
    assert len(names) == len(set(names))
    assert all(set(Path(name).stem) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") for name in names)


def test_links_of_tables_are_anchors(study: list[Path]) -> None:
    report = assemble([open_artefact(path) for path in study], title="t")
    for table in tables_in(report.blocks):
        assert isinstance(table, Table)
        assert all(not link or link.startswith("#") for link in table.links)
