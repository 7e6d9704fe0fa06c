"""`hoofbeat retrieve`, `compare` and `verify retrieval`, as a user runs them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hoofbeat.teaching import cases_folder
from tests.cli.support import hoofbeat, json_of
from tests.corpus.test_corpus_import import folder_bytes
from tests.helpers import shared_data
from tests.models.fault_server import FaultServer
from tests.postgres import new_postgres_url
from tests.retrieval.stages.rerank_support import Reader
from tests.web.browse_support import Visitor, a_site

DOCUMENTS = [
    ("d1", "Rejection", "Renal transplant rejection is treated with steroids.", "kidney"),
    ("d2", "Dose", "The tacrolimus dose after a kidney transplant follows its level.", "kidney"),
    ("d3", "Cough", "Fever and cough in children are common after a lung transplant.", "lung"),
    ("d4", "Bilirubin", "Jaundice after a liver transplant may mean a bile duct stricture.", "liver"),
]
QUESTIONS = [
    ("q1", "Which dose of tacrolimus?", {"d2": 2, "d1": 1}, "drugs"),
    ("q2", "What treats rejection of a renal transplant?", {"d1": 1}, "rejection"),
    ("q3", "What does jaundice mean?", {"d4": 1}, "complications"),
]


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """An invented test collection in BEIR's layout."""
    folder = tmp_path / "invented"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": i, "title": t, "text": x, "metadata": {"organ": organ}} for i, t, x, organ in DOCUMENTS]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in corpus), encoding="utf-8")
    queries = [{"_id": i, "text": text, "topic": topic} for i, text, _, topic in QUESTIONS]
    (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in queries), encoding="utf-8")
    rows = [f"{i}\t{document}\t{grade}\n" for i, _, grades, _ in QUESTIONS for document, grade in grades.items()]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(rows), encoding="utf-8")
    return folder


def test_a_public_layout_is_ranked_and_measured_as_it_lies_there(beir: Path, tmp_path: Path) -> None:
    done = hoofbeat(
        "retrieve", "invented", "--with", "bm25", "--measure", "nDCG@10", "--measure", "AP", "--json", folder=tmp_path
    )
    value = json_of(done)
    assert value["kind"] == "rankings"
    assert value["counts"]["kept"] == 3
    assert set(value["metrics"]) == {"nDCG@10", "AP"}
    assert value["metrics"]["nDCG@10"]["n"] == 3
    run = (tmp_path / "rankings" / "run.trec").read_text(encoding="utf-8").splitlines()
    assert run[0].split()[:4] == ["q1", "Q0", "d2", "1"]
    assert not (beir / "manifest.json").exists()
    settings = json.loads((tmp_path / "rankings" / "manifest.json").read_text(encoding="utf-8"))["settings"]
    assert list(settings["collections"]) == ["whole"]  # passages that were published as such are not cut
    again = json_of(
        hoofbeat(
            "retrieve",
            "invented",
            "--with",
            "bm25",
            "--measure",
            "nDCG@10",
            "--measure",
            "AP",
            "--json",
            folder=tmp_path,
        )
    )
    assert again["metrics"] == value["metrics"]


def test_a_limited_measure_says_of_how_many_questions_it_is(beir: Path, tmp_path: Path) -> None:
    words = ["retrieve", "invented", "--limit", "2"]
    part = "Only the first 2 of 3 questions were asked"
    done = hoofbeat(*words, "--with", "bm25", "-o", "one", folder=tmp_path)
    assert part in done.stderr
    assert part in hoofbeat("show", "one", folder=tmp_path).stdout
    hoofbeat("report", "one", "-o", "report", folder=tmp_path)
    report = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert f"one: {part}" in report[: report.index("\n## ")]
    visitor = Visitor(a_site(tmp_path / "one"))
    for page in ("/rankings/one", "/rankings/one/queries", "/folders/one"):
        assert visitor.get(page).text.count(part) == 1, page
    both = hoofbeat(*words, "--with", "bm25", "--with", "bm25[b=1]", "-o", "out", folder=tmp_path)
    assert part in both.stderr
    assert part in (tmp_path / "out" / "comparison" / "report.md").read_text(encoding="utf-8")


def test_several_lines_are_compared_on_a_page(beir: Path, tmp_path: Path) -> None:
    done = hoofbeat(
        "retrieve", "invented", "--with", "bm25", "--with", "bm25[chunk=whole,b=1]", "--page", "page.html",
        "-o", "out", "--json", folder=tmp_path,
    )  # fmt: skip
    value = json_of(done)
    assert value["kind"] == "comparison"
    assert "bm25[b=1,chunk=whole]" in value["metrics"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "01-bm25",
        "02-bm25-b-1-chunk-whole",
        "comparison",
        "lines.tsv",
    ]
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    pairs = (tmp_path / "out" / "comparison" / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert pairs[0].split("\t")[:5] == ["measure", "first", "second", "n", "second_minus_first"]
    again = hoofbeat("compare", "out/01-bm25", "out/02-bm25-b-1-chunk-whole", "--json", folder=tmp_path)
    assert json_of(again)["metrics"] == value["metrics"]
    wrong = hoofbeat("compare", "out/01-bm25", folder=tmp_path, code=2)
    assert "two folders or more" in wrong.stderr


def test_one_line_over_several_sets_has_an_average_over_them(beir: Path, tmp_path: Path) -> None:
    shutil.copytree(beir, tmp_path / "second")
    for name in ("invented", "second"):
        hoofbeat("retrieve", name, "--with", "bm25", "--with", "bm25[b=1]", "-o", f"out-{name}", folder=tmp_path)
    made = [f"out-{name}/{line}" for name in ("invented", "second") for line in ("01-bm25", "02-bm25-b-1")]
    hoofbeat("compare", *made, "-o", "sets", folder=tmp_path)
    systems = (tmp_path / "sets" / "systems.tsv").read_text(encoding="utf-8").splitlines()
    assert systems[1].split("\t")[1:3] == ["bm25", "6"]
    assert "second" in (tmp_path / "sets" / "report.md").read_text(encoding="utf-8")
    done = hoofbeat("compare", *made[:3], "-o", "sets", folder=tmp_path, code=2)
    assert "not every line was run over every set" in done.stderr


def test_shards_and_where_they_lie_change_no_byte_of_the_rankings(beir: Path, tmp_path: Path) -> None:
    words = ("retrieve", "invented", "--with", "bm25", "-o", "rankings")
    made = []
    for more in ((), ("--shards", "3", "--index=shared"), ()):
        hoofbeat(*words, *more, folder=tmp_path)
        made.append(folder_bytes(tmp_path / "rankings"))
        (tmp_path / "hoofbeat.toml").write_text('index = "by-file"\nshards = 2\n')
    assert made[0] == made[1] == made[2]
    assert len(list((tmp_path / "shared").rglob("lexical-*-of-3/manifest.json"))) == 4
    assert len(list((tmp_path / "by-file").rglob("lexical-*-of-2/manifest.json"))) == 3
    (tmp_path / "hoofbeat.toml").write_text("index = 3\n")
    assert "index must be a text" in hoofbeat(*words, folder=tmp_path, code=2).stderr
    refused = hoofbeat(*words, "--index", "s3://key:hush@bucket/x", folder=tmp_path, code=2)
    assert "contains a key or settings" in refused.stderr
    assert "hush" not in refused.stderr


def test_braces_make_an_ablation_table(beir: Path, tmp_path: Path) -> None:
    hoofbeat(
        "retrieve", "invented", "--with", "bm25[k1={0.9|1.2},chunk={whole|words:5/2}]", "-o", "out", folder=tmp_path
    )
    rows = (tmp_path / "out" / "comparison" / "ablation.tsv").read_text(encoding="utf-8").splitlines()
    assert rows[0].split("\t")[:3] == ["measure", "k1", "chunk"]
    assert len(rows) == 5


def test_means_by_facet_stand_beside_the_measures(beir: Path, tmp_path: Path) -> None:
    hoofbeat("retrieve", "invented", "--with", "bm25", folder=tmp_path)
    rows = (tmp_path / "rankings" / "facets.tsv").read_text(encoding="utf-8").splitlines()
    assert {row.split("\t")[1] for row in rows[1:]} == {"drugs", "rejection", "complications"}


def test_right_answers_are_set_against_good_rankings(tmp_path: Path) -> None:
    hoofbeat("corpus", "import", str(cases_folder()), "-o", "cases", folder=tmp_path)
    hoofbeat("build", "teaching", "cases", "-o", "bench", folder=tmp_path)
    hoofbeat("retrieve", "bench", "--with", "bm25[b={0.4|1}]", "-o", "ranked", folder=tmp_path)
    with FaultServer() as server:
        hoofbeat("answer", "bench", "--model", server.spec(), "-o", "run", folder=tmp_path)
        hoofbeat("judge", "run", "--model", server.spec(), "-o", "judged", folder=tmp_path)
    ranked = ["ranked/01-bm25", "ranked/02-bm25-b-1"]
    hoofbeat("compare", *ranked, "--judged", "judged", "--judged", "judged", "-o", "both", folder=tmp_path)
    head, *rows = (tmp_path / "both" / "answers.tsv").read_text(encoding="utf-8").splitlines()
    assert head.split("\t")[:4] == ["system", "n", "unscored", "accuracy"]
    assert [row.split("\t")[0] for row in rows] == ["bm25", "bm25[b=1]"]
    few = hoofbeat("compare", *ranked, "--judged", "judged", "-o", "both", folder=tmp_path, code=2)
    assert "give --judged once for each ranking" in few.stderr


@pytest.fixture
def corpus(beir: Path, tmp_path: Path) -> Path:
    hoofbeat("corpus", "import", "invented/corpus.jsonl", "-o", "corpus", folder=tmp_path)
    return tmp_path / "corpus"


def test_a_corpus_is_searched_and_the_hits_are_explained(corpus: Path, tmp_path: Path) -> None:
    done = hoofbeat("retrieve", "corpus", "--query", "jaundice", "--with", "bm25", "--explain", "2", folder=tmp_path)
    assert "1. d4  (bm25: rank 1," in done.stderr
    assert "Jaundice after a liver transplant" in done.stderr
    assert "query-1: jaundice" in done.stderr
    some = hoofbeat(
        "retrieve", "corpus", "--query", "transplant", "--with", "bm25", "--where", "organ=lung",
        "--where", "organ=liver", "-o", "some", "--json", folder=tmp_path,
    )  # fmt: skip
    assert json_of(some)["counts"]["kept"] == 1
    hits = (tmp_path / "some" / "hits.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(hit)["document"] for hit in hits} == {"d3", "d4"}
    few = hoofbeat("retrieve", "corpus", "--query", "transplant", "--with", "bm25", "--top", "2", folder=tmp_path)
    assert "  2. d" in few.stderr  # shown unasked, and no measure stands in the way
    assert "  3. d" not in few.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["retrieve", "corpus"], "a corpus has no questions"),
        (["retrieve", "corpus", "--query", "x", "--with", "bm26"], "did you mean bm25"),
        (["retrieve", "corpus", "--query", "x", "--with", "bm25[k1={1|2]"], "a brace is not closed"),
        (["retrieve", "corpus", "--query", "x", "--where", "organ"], "is not a facet"),
        (["retrieve", "corpus", "--query", "x", "--where", "organ=heart"], "no document has organ=heart"),
        (["retrieve", "corpus", "--query", "x", "--measure", "nGCD@10"], "unknown measure"),
        (["retrieve", "corpus", "--query", "x", "--page", "page.txt"], "must end in .html"),
        (["retrieve", "corpus", "--query", "caf\udce9", "--with", "bm25"], "not UTF-8 text"),
    ],
)
def test_wrong_words_are_pointed_at(corpus: Path, tmp_path: Path, words: list[str], said: str) -> None:
    done = hoofbeat(*words, folder=tmp_path, code=2)
    assert said in done.stderr
    assert not (tmp_path / "rankings").exists()


def test_every_source_by_itself_with_its_trace(corpus: Path, tmp_path: Path) -> None:
    done = hoofbeat(
        "retrieve", "corpus", "--query", "dose of tacrolimus", "--with", "hero[dense=0,route=0,fallback=off]",
        "--each-source", "--explain", "1", "-o", "evidence", folder=tmp_path,
    )  # fmt: skip
    assert "route" in done.stderr
    rows = [json.loads(row) for row in (tmp_path / "evidence" / "evidence.jsonl").read_text("utf-8").splitlines()]
    assert [row["document"] for row in rows] == ["d1", "d2", "d3", "d4"]
    assert rows[1]["trace"]["signals"]
    assert rows[1]["passages"][0]["text"].startswith("The tacrolimus dose")


def test_a_writer_may_stand_before_hero(corpus: Path, tmp_path: Path) -> None:
    with FaultServer() as server:
        hoofbeat(
            "retrieve", "corpus", "--query", "jaundice", "--with", "query2doc > hero[dense=0,route=0]", "--each-source",
            "--model", server.spec(), "-o", "evidence", folder=tmp_path,
        )  # fmt: skip
        assert len(server.seen) == 1
    rows = [json.loads(row) for row in (tmp_path / "evidence" / "evidence.jsonl").read_text("utf-8").splitlines()]
    assert "answer" in rows[3]["trace"]["searched"]
    assert rows[3]["trace"]["searched"].count("jaundice") == 5


def test_a_writer_s_failures_are_counted_apart_and_traced(corpus: Path, tmp_path: Path) -> None:
    with FaultServer() as server:
        words = [
            "retrieve",
            "corpus",
            "--query",
            "jaundice",
            "--query",
            "fault=refusal jaundice",
            "--with",
            "hyde > bm25",
        ]
        estimate = json_of(hoofbeat(*words, "--estimate", "--json", "--model", server.spec(), folder=tmp_path))
        assert estimate["estimate"]["calls"] == 2
        plain = json_of(
            hoofbeat(*words, "--estimate", "--json", "--model", server.spec(), "--reasoning", "0", folder=tmp_path)
        )
        allowed = estimate["estimate"]["max_tokens_out"] - plain["estimate"]["max_tokens_out"]
        assert allowed == 2 * 8000  # a model of which nothing is known may reason
        assert not server.seen
        value = json_of(hoofbeat(*words, "--json", "--model", server.spec(), folder=tmp_path))
        asked = len(server.seen)
        again = json_of(hoofbeat(*words, "--json", "--model", server.spec(), folder=tmp_path))
    assert (value["counts"]["kept"], value["counts"]["failed"]) == (1, 1)
    assert again["counts"] == value["counts"]
    assert asked >= 2
    traces = [json.loads(row) for row in (tmp_path / "rankings" / "traces.jsonl").read_text("utf-8").splitlines()]
    assert traces[0]["steps"][0]["what"] == "generated"
    assert traces[1]["failure"]["kind"] == "refusal"


def test_the_reference_figures_come_out(tmp_path: Path) -> None:
    data = shared_data("retrieval")
    few = tmp_path / "few"
    few.mkdir()
    (few / "nfcorpus-preprocessed").symlink_to(data / "nfcorpus-preprocessed")
    done = json_of(hoofbeat("verify", "retrieval", "--data", str(few), "--json", folder=tmp_path))
    verdicts = {(check["data"], check["verdict"]) for check in done["checks"]}
    assert verdicts == {
        ("scifact", "skipped: no data"), ("liveqa-med", "skipped: no data"), ("nfcorpus-preprocessed", "ok"),
    }  # fmt: skip
    none = hoofbeat("verify", "retrieval", "--data", "nowhere", folder=tmp_path, code=1)
    assert "no reference data was found" in none.stderr


def test_a_figure_that_does_not_come_out_is_an_error(beir: Path, tmp_path: Path) -> None:
    beir.rename(tmp_path / "nfcorpus-preprocessed")
    done = hoofbeat("verify", "retrieval", "--data", ".", "--json", folder=tmp_path, code=1)
    assert "differ from the published ones" in json_of(done)["error"]


def test_several_lines_replace_their_own_folders_and_no_others(beir: Path, tmp_path: Path) -> None:
    hoofbeat("retrieve", "invented", "--with", "bm25[b={0|0.5|1}]", "-o", "out", folder=tmp_path)
    hoofbeat("retrieve", "invented", "--with", "bm25[b={0|1}]", "-o", "out", folder=tmp_path)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "01-bm25-b-0", "02-bm25-b-1", "comparison", "lines.tsv",
    ]  # fmt: skip
    for place in ("invented", "out/01-bm25-b-0"):
        before = sorted(path.name for path in (tmp_path / place).iterdir())
        done = hoofbeat("retrieve", "invented", "--with", "bm25[b={0|1}]", "-o", place, folder=tmp_path, code=1)
        assert "choose another folder" in done.stderr
        assert sorted(path.name for path in (tmp_path / place).iterdir()) == before


@pytest.mark.parametrize("folder", ["01-bm25-b-0", "02-bm25-b-0.5", "comparison"])
def test_notes_beside_a_line_s_rankings_are_not_removed(beir: Path, tmp_path: Path, folder: str) -> None:
    hoofbeat("retrieve", "invented", "--with", "bm25[b={0|0.5|1}]", "-o", "out", folder=tmp_path)
    notes = tmp_path / "out" / folder / "notes.txt"
    notes.write_text("mine")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    done = hoofbeat("retrieve", "invented", "--with", "bm25[b={0|1}]", "-o", "out", folder=tmp_path, code=1)
    assert "did not write (notes.txt)" in done.stderr
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


def test_several_lines_go_on_after_a_kill_between_them(beir: Path, tmp_path: Path) -> None:
    words = ["retrieve", "invented", "--with", "bm25", "--with", "bm25[k1=1.2]", "-o", "lines"]
    hoofbeat(*words, folder=tmp_path)
    whole = {path: path.read_bytes() for path in sorted((tmp_path / "lines").rglob("*")) if path.is_file()}
    second = tmp_path / "lines" / "02-bm25-k1-1.2"
    assert second.is_dir()
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    second.rename(second.with_name(f".{second.name}.{dead.stdout.strip()}.draft"))  # as kill -9 leaves it
    (tmp_path / "lines" / f".lines.tsv.{dead.stdout.strip()}.part").write_text("folder")
    hoofbeat(*words, folder=tmp_path)
    assert {path: path.read_bytes() for path in sorted((tmp_path / "lines").rglob("*")) if path.is_file()} == whole


def test_a_line_that_can_t_run_costs_no_other_its_results(beir: Path, tmp_path: Path) -> None:
    hoofbeat("retrieve", "invented", "--with", "bm25[b={0|1}]", "-o", "out", folder=tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for line, code in (("dense[encoder=nowhere]", 2), ("hyde > bm25", 1)):
        words = ("--with", "bm25[b=0.5]", "--with", line, "--model", "nobody")
        hoofbeat("retrieve", "invented", *words, "-o", "out", folder=tmp_path, code=code)
        hoofbeat("retrieve", "invented", *words, "-o", "new", folder=tmp_path, code=code)
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["--with", "bm25", "--page", "p.html"], "needs two lines and judgments", 2),
        (["--with", "bm25[b={0|1}]", "--page", "no/p.html"], "this folder does not exist", 1),
        (["--with", "bm25[b={0|1}]", "--page", "mine.html"], "not a file that Hoofbeat wrote", 1),
        (["--with", "bm25", "--measure", "R@200"], "--top 200", 2),
        (["--with", "bm25", "--query", "x"], "has its own questions", 2),
        (["--with", "hyde > query2doc > bm25"], "would discard the queries of hyde", 2),
    ],
)
def test_what_can_t_work_is_said_before_any_work(
    beir: Path, tmp_path: Path, words: list[str], said: str, code: int
) -> None:
    (tmp_path / "mine.html").write_text("<p>mine</p>", encoding="utf-8")
    done = hoofbeat("retrieve", "invented", *words, folder=tmp_path, code=code)
    assert said in done.stderr
    assert not (tmp_path / "rankings").exists()
    assert (tmp_path / "mine.html").read_text(encoding="utf-8") == "<p>mine</p>"


def test_what_lowers_a_measure_is_said(beir: Path, tmp_path: Path) -> None:
    with (beir / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("q9\td1\t1\n")
    done = hoofbeat("retrieve", "invented", "--with", "bm25", "--where", "organ=kidney", folder=tmp_path)
    assert "1 question without a relevant document among those ranked, counted as 0 (" in done.stderr
    assert "1 judged question left out: not asked by this benchmark" in done.stderr


def test_ids_with_spaces_cost_only_the_trec_file(beir: Path, tmp_path: Path) -> None:
    for name in ("queries.jsonl", "qrels/test.tsv"):
        path = beir / name
        path.write_text(path.read_text(encoding="utf-8").replace("q1", "q one"), encoding="utf-8")
    done = hoofbeat("retrieve", "invented", "--with", "bm25", folder=tmp_path)
    assert "no run.trec was written" in done.stderr
    assert not (tmp_path / "rankings" / "run.trec").exists()
    (beir / "queries.jsonl").write_text('{"_id": "q2", "text": "a"}\n{"_id": "q2", "text": "b"}\n', encoding="utf-8")
    twice = hoofbeat("retrieve", "invented", "--with", "bm25", folder=tmp_path, code=1)
    assert "two questions have the id 'q2'" in twice.stderr


def test_rankings_of_different_data_under_one_name_are_not_compared(beir: Path, tmp_path: Path) -> None:
    hoofbeat("retrieve", "invented", "--with", "bm25", "-o", "a", folder=tmp_path)
    shutil.copytree(beir, tmp_path / "other" / "invented")
    with (tmp_path / "other" / "invented" / "qrels" / "test.tsv").open("a", encoding="utf-8") as stream:
        stream.write("q3\td1\t1\n")
    hoofbeat("retrieve", "other/invented", "--with", "bm25[b=1]", "-o", "b", folder=tmp_path)
    done = hoofbeat("compare", "a", "b", folder=tmp_path, code=2)
    assert "different questions or documents under one name" in done.stderr


def test_a_corpus_edited_in_place_is_indexed_anew(corpus: Path, tmp_path: Path) -> None:
    words = ["retrieve", "corpus", "--query", "zebrafish", "--with", "bm25", "--explain", "1"]
    hoofbeat(*words, folder=tmp_path)
    documents = corpus / "documents.jsonl"
    documents.write_text(documents.read_text(encoding="utf-8").replace("Jaundice", "Zebrafish"), encoding="utf-8")
    assert "has changed since it was written" in hoofbeat(*words, folder=tmp_path, code=1).stderr
    assert "1. d4" in hoofbeat(*words, "--trust-changed", folder=tmp_path).stderr


def test_a_cache_that_can_t_be_written_only_costs_time(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    words = ["retrieve", "corpus", "--query", "jaundice", "--with", "bm25", "--explain", "1"]
    done = hoofbeat(*words, folder=tmp_path, extra={"HOOFBEAT_CACHE": str(tmp_path / "file")})
    assert "HOOFBEAT_CACHE can name another folder" in done.stderr or "HOOFBEAT_CACHE to a folder" in done.stderr
    assert "1. d4" in done.stderr


def test_an_embeddings_endpoint_is_estimated_counted_and_recorded(corpus: Path, tmp_path: Path) -> None:
    with FaultServer() as server:
        words = ["retrieve", "corpus", "--query", "jaundice", "--with", f"dense[encoder={server.spec()}]", "--json"]
        assert json_of(hoofbeat(*words, "--estimate", folder=tmp_path))["estimate"]["calls"] == 1
        first = hoofbeat(*words, folder=tmp_path)
        written = folder_bytes(tmp_path / "rankings")
        second = hoofbeat(*words, folder=tmp_path)
    assert "3 new calls" in first.stderr  # the documents, the query, and a text that tells the dimension
    assert "0 new calls" in second.stderr, "vectors are kept"
    assert folder_bytes(tmp_path / "rankings") == written
    manifest = json.loads((tmp_path / "rankings" / "manifest.json").read_text(encoding="utf-8"))
    assert any(name.startswith("encoder ") for name in manifest["models"])


def test_a_graph_in_postgresql_prints_its_recall(corpus: Path, tmp_path: Path) -> None:
    store = new_postgres_url()
    with FaultServer() as server:
        line = f"dense[encoder={server.spec()},store={store},search=hnsw]"
        done = hoofbeat("retrieve", "corpus", "--query", "jaundice", "--with", line, folder=tmp_path)
    [told] = [each for each in done.stderr.splitlines() if "of what exact search finds" in each]
    assert "100.0% of what exact search finds (recall@10)" in told, "the graph holds two passages"


def test_what_a_model_wrote_does_not_steer_the_terminal(corpus: Path, tmp_path: Path) -> None:
    done = hoofbeat(
        "retrieve",
        "corpus",
        "--query",
        "jaundice \x1b[31m[bold]red",
        "--with",
        "bm25",
        "--explain",
        "1",
        folder=tmp_path,
    )
    assert "\x1b" not in done.stderr
    assert "jaundice \ufffd[31m[bold]red" in done.stderr


@pytest.mark.parametrize(("method", "most"), [("yesno", 3), ("listwise", 1)])
def test_an_estimate_leaves_out_reranking_that_is_paid(beir: Path, tmp_path: Path, method: str, most: int) -> None:
    with Reader() as server:
        words = [
            "retrieve",
            "invented",
            "--with",
            f"bm25 > rerank[with={method}]@3",
            "--model",
            server.spec(),
            "--json",
        ]
        before = json_of(hoofbeat(*words, "--estimate", folder=tmp_path))["estimate"]
        assert (before["calls"], before["cached"]) == (3 * most, 0)
        hoofbeat(*words, "--limit", "2", folder=tmp_path)
        made = len(server.seen)
        assert made
        after = json_of(hoofbeat(*words, "--estimate", folder=tmp_path))["estimate"]
        assert (after["calls"], after["cached"]) == (3 * most - made, made)
        assert 0 < after["tokens_in"] < before["tokens_in"]
        assert len(server.seen) == made, "an estimate calls nothing"


def test_reranking_with_the_tiny_model_is_warned_of(beir: Path, tmp_path: Path) -> None:
    words = ["retrieve", "invented", "--with", "bm25 > rerank@1", "--limit", "1"]
    assert "too small to rerank" in hoofbeat(*words, folder=tmp_path).stderr
    assert "too small to rerank" not in hoofbeat("retrieve", "invented", "--with", "bm25", folder=tmp_path).stderr
