"""`hoofbeat audit`: its commands, answers given in a file, shards, exports and what `show` shows of it."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path

import click
import pytest

from hoofbeat.audit import Audit
from hoofbeat.audit.economy.economy_audit import economy_words
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.cli import cli
from hoofbeat.cli.audit import AuditCommand
from hoofbeat.corpus import import_corpus
from hoofbeat.records import Question
from hoofbeat.store import Counts
from hoofbeat.teaching import example, handbook_files
from tests.cli.support import hoofbeat, json_of
from tests.helpers import needs_weights, shared_data
from tests.models.fault_server import FaultServer
from tests.models.gguf_files import short_copy

LINE = "hero[dense=0]"


@pytest.fixture(scope="module")
def books(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audited")
    names = ("hb-alder-kidney", "hb-cairn-kidney", "hb-dune-kidney")
    handbooks = [path.parents[1] / f"{path.stem}.md" if path.suffix == ".pdf" else path for path in handbook_files()]
    import_corpus([path for path in handbooks if path.stem in names], folder / "books", workers=1)
    return folder / "books"


def words(books: Path, server: FaultServer, *more: str) -> list[str]:
    return ["audit", str(books), "teaching", "--with", LINE, "--model", server.spec(), *more]


def test_help_names_every_command_under_audit(tmp_path: Path) -> None:
    text = hoofbeat("audit", "--help", folder=tmp_path).stdout
    for name, what in AuditCommand.under.names.items():
        assert f"audit {name}" in text
        assert what in text
    assert "--probe-order" in text


@pytest.mark.parametrize("name", sorted(AuditCommand.under.names))
def test_every_command_under_audit_is_there(tmp_path: Path, name: str) -> None:
    done = hoofbeat("audit", name, "--help", folder=tmp_path)
    assert f"hoofbeat audit {name}" in done.stdout


def test_an_audit_needs_sources_and_questions_or_answers(tmp_path: Path) -> None:
    assert "needs sources and questions" in hoofbeat("audit", folder=tmp_path, code=2).stderr
    (tmp_path / "a.jsonl").write_text("", encoding="utf-8")
    done = hoofbeat("audit", "books", "teaching", "--answers", "a.jsonl", folder=tmp_path, code=2)
    assert "leave out SOURCES and QUESTIONS" in done.stderr
    context = click.Context(cli)
    command = cli.get_command(context, "audit")
    assert command is not None
    assert command.make_context("hoofbeat audit", ["./compare", "teaching"]).params["corpus"] == Path("compare")


GIVEN = "".join(
    json.dumps({"question": question, "source": source, "answer": f"{source} says {question}"}) + "\n"
    for question, source in ("1a", "1b", "1c", "2a")
)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--answers", "a.jsonl", "--passages", "5"], "--passages has no effect here: --answers has the answers"),
        (["--answers", "a.jsonl", "--with", "hero", "--max-tokens", "9"], "--with, --max-tokens has no effect here"),
        (["--answers", "a.jsonl", "--whole-up-to", "0"], "--whole-up-to has no effect here"),
        (["books", "teaching", "--fields", "id=x"], "--fields has no effect here"),
        (["--answers", "a.jsonl", "--economy-check", "200"], "--economy-check has no effect here"),
        (["--answers", "a.jsonl", "--economy-model", "x"], "--economy-model has no effect here"),
        (["--answers", "a.jsonl", "--economy", "0.05", "--economy-check", "9"], "9 pairs can't show that the risk"),
        (["--answers", "a.jsonl", "--source", "a"], "needs at least two"),
        (["--answers", "a.jsonl", "--source", "a", "--source", "z"], "there is no answer from the source z"),
    ],
)
def test_options_that_would_do_nothing_are_refused(tmp_path: Path, more: list[str], said: str) -> None:
    (tmp_path / "a.jsonl").write_text(GIVEN, encoding="utf-8")
    done = hoofbeat("audit", *more, folder=tmp_path, code=2)
    assert said in " ".join(done.stderr.split())


def test_given_answers_of_some_sources_and_what_was_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(GIVEN, encoding="utf-8")
    chosen = ["--answers", "a.jsonl", "--source", "a", "--source", "b", "-o", "audit"]
    with FaultServer() as server:
        done = hoofbeat("audit", *chosen, "--model", server.spec(), folder=tmp_path)
    assert "left out: 1 row (only one source answers)" in done.stderr
    audit = Audit.open(tmp_path / "audit")
    assert [source.id for source in audit.sources] == ["a", "b"]
    assert [(pair.a, pair.b) for pair in audit.comparisons] == [("a", "b")]
    assert audit.artefact.manifest.settings["sources"] == ["a", "b"]


CHECKED = {
    "sorted": 20, "sort_calls": 40, "sort_failures": 0, "judged": 400, "carried": 1600, "calls": 440,
    "calls_without": 2200, "judged_whole": 0, "checked": 146, "wrong": 1, "other_label": 9, "bound": 0.0375,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"sorted": 0}, "economy: no calls could be saved, so all pairs were judged"),
        ({}, "economy: 440 calls instead of 2,200 (5.0 times fewer), including 40 to sort the answers"),
        ({}, "Of 146 checked by the judge, 1 were on the wrong side and 9 had another label"),
        ({}, "at most 3.8% of the carried labels are on the wrong side (limit: 5.0%)"),
        (
            {"judged_whole": 1},
            "wrong too often, so all pairs of 1 question were judged; 1,600 labels were carried over",
        ),
        ({"judged_whole": 20, "carried": 0}, "all pairs of 20 questions were judged; no label was carried over"),
        ({"sort_failures": 3}, "(3 of them failed, so those answers were judged one by one)"),
    ],
)
def test_what_economy_saved_and_how_far_it_can_be_trusted(changed: dict[str, int], said: str) -> None:
    assert said in economy_words({**CHECKED, **changed}, 0.05)


def test_shards_are_merged_and_exported_by_the_command(tmp_path: Path, books: Path) -> None:
    with FaultServer() as server:
        estimate = json_of(hoofbeat(*words(books, server, "--estimate", "--json"), folder=tmp_path))["estimate"]
        assert server.seen == []
        done = hoofbeat(*words(books, server, "-o", "whole", "--probe-order", "3"), folder=tmp_path)
        assert len(server.seen) <= estimate["calls"] + 3
        asked = len(server.seen)
        for number in (1, 2):
            more = ("-o", f"s{number}", "--shard", f"{number}/2", "--probe-order", "3")
            hoofbeat(*words(books, server, *more), folder=tmp_path)
        assert len(server.seen) <= asked + 3  # each shard draws its own pairs to probe
    assert "with the two answers swapped" in done.stderr
    merged = json_of(hoofbeat("audit", "merge", "s1", "s2", "-o", "merged", "--json", folder=tmp_path))
    assert merged["kind"] == "audit"
    for name in ("answers.jsonl", "comparisons.parquet", "order.jsonl"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "merged" / name).read_bytes()
    assert "shards are missing: 2/2" in hoofbeat("audit", "merge", "s1", "-o", "m", folder=tmp_path, code=1).stderr
    hoofbeat("audit", "export", "merged", "--as", "json", "-o", "out", folder=tmp_path)
    audit = Audit.open(tmp_path / "merged")
    files = sorted((tmp_path / "out" / "questions").iterdir())
    assert [path.stem for path in files] == sorted({item.question for item in audit.comparisons})
    for path in files:
        record = json.loads(path.read_text(encoding="utf-8"))
        size = len(record["sources"])
        assert len(record["comparisons"]) == size * (size - 1) // 2
        assert all(record["matrix"][n][n] == 1 for n in range(size))


def test_show_tells_how_an_answer_came_about(tmp_path: Path, books: Path) -> None:
    with FaultServer() as server:
        hoofbeat(*words(books, server, "--limit", "1", "-o", "audit"), folder=tmp_path)
    assert "tq-01: Can I eat sushi" in hoofbeat("show", "audit", folder=tmp_path).stdout
    page = hoofbeat("show", "audit", "tq-01", folder=tmp_path).stdout
    for name in ("hb-alder-kidney", "Dunehaven Regional Hospital and Cairnmoor Kidney Institute:"):
        assert name in page
    one = hoofbeat("show", "audit", "tq-01/hb-dune-kidney", folder=tmp_path).stdout
    assert "hero, route: whole" in one
    assert "shown: " in one
    assert "hb-alder-kidney and hb-cairn-kidney" not in one
    shown = json_of(hoofbeat("show", "audit", "tq-01", "--json", folder=tmp_path))
    assert len(shown["answers"]) == len(shown["pairs"]) == 3
    assert "the closest are tq-01" in hoofbeat("show", "audit", "tq-1", folder=tmp_path, code=1).stderr
    wrong = hoofbeat("show", "audit", "tq-01/hb-duna-kidney", folder=tmp_path, code=1).stderr
    assert "no source hb-duna-kidney in this audit" in wrong
    assert "such as hb-dune-kidney" in wrong


def test_questions_that_no_two_sources_are_asked_are_said_or_refused(tmp_path: Path, books: Path) -> None:
    asked = [
        Question(id="all", text="When may I drive?"),
        Question(id="typo", text="When may I swim?", facets={"group": "kidneys"}),
    ]
    write_benchmark(tmp_path / "some", asked, title="some", inputs=[], counts=Counts(kept=2))
    write_benchmark(tmp_path / "none", asked[1:], title="none", inputs=[], counts=Counts(kept=1))
    with FaultServer() as server:
        line = ["--with", LINE, "--model", server.spec()]
        done = hoofbeat("audit", str(books), "some", *line, "-o", "audit", folder=tmp_path)
        wrong = hoofbeat("audit", str(books), "none", *line, "-o", "not", folder=tmp_path, code=2)
    assert "1 of 2 questions can't be compared, because they apply to fewer than two sources: typo" in done.stderr
    assert "they are for kidneys; the sources' facet organ is kidney)" in done.stderr
    assert "no question applies to two sources, so there is nothing to compare" in " ".join(wrong.stderr.split())
    assert not (tmp_path / "not").exists()


@pytest.mark.parametrize(
    ("more", "said", "code"),
    [
        (["--question", "tq-001"], "check --question; the closest are tq-01", 2),
        (["--question", "xyz"], "check --question; the first are tq-01, tq-02, tq-03", 2),
        (["--shard", "30/40"], "the shard 30/40 has no questions: there are only 24 in total", 2),
        (["-o", "taken"], "already holds other results (corpus)", 1),
    ],
)
def test_what_can_be_seen_to_be_wrong_is_refused_before_any_call(
    tmp_path: Path, books: Path, more: list[str], said: str, code: int
) -> None:
    shutil.copytree(books, tmp_path / "taken")
    with FaultServer() as server:
        done = hoofbeat(*words(books, server, "-o", "audit", *more), folder=tmp_path, code=code)
        assert server.seen == []
    assert said in done.stderr
    assert not (tmp_path / "audit").exists()


@pytest.mark.slow
def test_answers_of_real_institutions_are_audited_without_an_answer_stage(tmp_path: Path) -> None:
    """Several hundred questions that two or more institutions answer, from the field names of the file itself."""
    path = shared_data("medquad_multisource.jsonl.gz")
    with FaultServer() as server:
        done = hoofbeat(
            "audit", "--answers", str(path), "--fields", "id=focus+qtype,facets.topic=qtype", "--pack", "guidelines",
            "--model", server.spec(), "-o", "audit", "--json", folder=tmp_path,
        )  # fmt: skip
        asked = [set(seen.body["response_format"]["json_schema"]["schema"]["properties"]) for seen in server.seen]
    audit = Audit.open(tmp_path / "audit")
    assert len(audit.questions) == 957
    sources = {answer.question: 0 for answer in audit.answers}
    for answer in audit.answers:
        sources[answer.question] += 1
    assert min(sources.values()) >= 2
    assert len(audit.comparisons) == sum(count * (count - 1) // 2 for count in sources.values())
    assert asked.count({"addressed"}) == len({(a.question, a.text) for a in audit.answers if a.calls})
    assert not any("passage" in fields for fields in asked)
    manifest = audit.artefact.manifest
    assert manifest.settings["line"] == "given"
    assert manifest.counts.reasons == {"only one source answers": 2041 - len(audit.questions)}
    assert json_of(done)["counts"]["kept"] + json_of(done)["counts"]["failed"] == len(audit.comparisons)
    assert {question.facets["topic"] for question in audit.questions} >= {"treatment", "symptoms"}


def test_the_example_of_a_pack_can_be_asked_for_by_name(tmp_path: Path) -> None:
    import_corpus(list(example("legal").files), tmp_path / "acts", workers=1)
    line = ["--pack", "legal", "--with", LINE, "--estimate", "--json"]
    found = json_of(hoofbeat("audit", "acts", "teaching:legal", *line, folder=tmp_path))
    assert found["estimate"]["calls"] > len(example("legal").questions)
    wrong = hoofbeat("audit", "acts", "teaching:lego", "--with", LINE, folder=tmp_path, code=2)
    assert "there is no teaching example 'lego'" in wrong.stderr


def test_a_pack_of_a_plugin_file_is_used_by_its_name(tmp_path: Path) -> None:
    import_corpus(list(example("legal").files), tmp_path / "acts", workers=1)
    own = (
        (files("hoofbeat.prompts.packs") / "legal.toml")
        .read_text("utf-8")
        .replace('name = "legal"', 'name = "acts"', 1)
    )
    (tmp_path / "acts.toml").write_text(own, encoding="utf-8")
    line = ["audit", "acts", "teaching:legal", "--pack", "acts", "--with", LINE, "--estimate", "--json"]
    assert "there is no pack 'acts'" in hoofbeat(*line, folder=tmp_path, code=2).stderr
    assert json_of(hoofbeat("--plugin", "acts.toml", *line, folder=tmp_path))["estimate"]["calls"] > 0


def test_the_embedded_model_audits_two_sources(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One question to two sentences: every call is made by real weights, whatever so small a model makes of it.

    The default model is loaded and may make no call; its short copy makes them.
    """
    needs_weights("smollm2-135m")
    lines = [{"id": name, "text": text} for name, text in (("north", "Eat no grapefruit."), ("south", "Eat fruit."))]
    (tmp_path / "books.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    import_corpus([tmp_path / "books.jsonl"], tmp_path / "books", mapping="id=id,text=text", workers=1)
    question = Question(id="q1", text="May I eat grapefruit?")
    write_benchmark(tmp_path / "bench", [question], title="invented", inputs=[], counts=Counts(kept=1))
    words = ("audit", "books", "bench", "--max-tokens", "24", "--json")
    default = hoofbeat(*words, "--budget", "0calls", "-o", "default", folder=tmp_path, code=3)
    assert "embedded" in default.stderr
    short = f"embedded:{short_copy(tmp_path_factory)}"
    done = hoofbeat(*words, "--model", short, folder=tmp_path, code=1)
    audit = Audit.open(tmp_path / "audit")
    assert json_of(done)["cost"]["calls"] >= 2
    assert audit.artefact.manifest.models["answer"].startswith("embedded")
    answers = list(audit.each_answer())
    assert [answer.source for answer in answers] == ["north", "south"]
    assert all(answer.text or (answer.failure and answer.failure.kind == "truncated") for answer in answers)
    assert len(audit.comparisons) == 1
