"""`hoofbeat answer` as it is typed: grids, estimates, protocols, images, and what is refused before a call."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import msgspec
import pytest

from hoofbeat import teaching
from hoofbeat.answering import Run
from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark import write_benchmark
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.recipes import build_teaching
from hoofbeat.records import Question
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Counts, Ledger, Manifest, create
from hoofbeat.store.tables import write_jsonl
from tests.cli.support import RunningCommand, hoofbeat, json_of
from tests.cli.test_kill import folder_bytes
from tests.helpers import needs_weights
from tests.models.fault_server import FaultServer

OPTIONS = ("Give aspirin.", "Wait and see.", "Operate at once.", "Give fluids.")
PNG = b"\x89PNG\r\n\x1a\n" + b"an invented picture"


def choices(target: Path, count: int = 4) -> Path:
    """A benchmark of invented questions with options."""
    questions = [
        Question(
            id=f"q{n}",
            context=f"Invented patient {n} is tired. He sleeps little. He asks for help.",
            text="What now?",
            options=OPTIONS,
            answer=OPTIONS[n % 4],
        )
        for n in range(count)
    ]
    write_benchmark(target, questions, title="invented", inputs=[], counts=Counts(kept=count))
    return target


def pictured(target: Path) -> Path:
    """A benchmark whose image edition shows a picture."""
    with create(target) as draft:
        (draft.path / "images").mkdir()
        (draft.path / "images" / "a.png").write_bytes(PNG)
        write_jsonl(draft.path / "questions.jsonl", [Question(id="q", text="What is it?")])
        shown = Question(id="q", text="What does [Figure 1] show?", images=("images/a.png",))
        write_jsonl(draft.path / "questions-image.jsonl", [shown])
        draft.finish(Manifest(kind="benchmark", counts=Counts(kept=1)))
    return target


@pytest.fixture(scope="module")
def teaching_bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The teaching cases and benchmark, in one folder."""
    folder = tmp_path_factory.mktemp("teaching")
    import_corpus([teaching.cases_folder()], folder / "cases", workers=1)
    build_teaching(Corpus.open(folder / "cases"), folder / "bench")
    return folder


# The grid


def test_free_text_is_for_another_model_to_judge(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 1)
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec("one"), "--protocol", "free", "-o", "run"]
        done = hoofbeat(*words, folder=tmp_path)
    assert "next: hoofbeat judge run --model JUDGE" in done.stderr


def test_a_grid_is_one_run_with_each_model_s_cost(tmp_path: Path) -> None:
    choices(tmp_path / "bench")
    with FaultServer() as server:
        one, two = server.spec("one"), server.spec("two") + "[temperature=0.6,samples=3,seed=7]"
        words = ["answer", "bench", "--model", one, "--model", two, "--condition", "closed", "--condition", "first 40%"]
        words += ["--protocol", "letter", "--protocol", "likelihood/byte", "--option-seed", "5", "-o", "run"]
        told = json_of(hoofbeat(*words, "--estimate", "--json", folder=tmp_path))
        assert len(server.seen) == 0
        done = hoofbeat(*words, folder=tmp_path)
        again = json_of(hoofbeat(*words, "--json", folder=tmp_path))
    systems = [(each["model"], each["condition"], each["answers"]) for each in told["systems"]]
    assert systems == [
        (model, condition, 12 if "0.6" in model and "letter" in condition else 4)
        for model in (one, two)
        for condition in (
            "closed, letter",
            "closed, likelihood/byte",
            "first 40%, letter",
            "first 40%, likelihood/byte",
        )
    ]
    assert told["estimate"]["calls"] == sum(each["estimate"]["calls"] for each in told["systems"]) == 2 * 32 + 8 + 24
    assert f"{one}: 40 new calls" in done.stderr
    assert "Leaderboard, by letter" in done.stderr
    assert again["models"][one]["made"] == 0
    assert again["models"][one]["cached"] == again["models"][one]["calls"] == 40
    run = Run.open(tmp_path / "run")
    manifest = run.artefact.manifest
    assert manifest.settings["models"] == [one, two]
    assert manifest.settings["protocols"] == ["letter", "likelihood/byte"]
    assert manifest.seeds == {f"sampling: {two}": 7, "options": 5}
    assert manifest.settings["sampling"] == {
        one: {"samples": 1, "temperature": 0.0, "seed": 0, "max_tokens": None},
        two: {"samples": 3, "temperature": 0.6, "seed": 7, "max_tokens": None},
    }
    assert "next: hoofbeat report run" in done.stderr  # nobody has to judge a choice
    assert set(manifest.costs) == {one, two}
    assert manifest.costs[two].calls == 24 + 32
    assert set(manifest.prompts) == {"answer-letter"}
    assert {answer.model for answer in run.answers} == {one, two}
    assert {answer.sample for answer in run.answers if answer.model == two} == {0, 1, 2}


def test_a_fleet_with_a_dead_server_writes_the_same_bytes_and_says_what_each_did(tmp_path: Path) -> None:
    words = ["answer", "bench", "--model", "fleet", "--protocol", "free", "-o", "run", "--json"]
    told = {}
    with FaultServer() as one, FaultServer() as two:
        two.die()
        for name, urls in {"both": [two.url, one.url], "single": [one.url]}.items():
            choices(tmp_path / name / "bench")
            (tmp_path / name / "hoofbeat.toml").write_text(f'[models.fleet]\nname = "stub"\nendpoints = {urls}\n')
            told[name] = hoofbeat(*words, folder=tmp_path / name)
    first, second = json_of(told["both"])["endpoints"]["fleet"]
    assert (first["url"], first["set_aside"]) == (two.url, 1)
    assert first["failures"] == first["calls"] >= 1
    assert (second["url"], second["calls"], second["failures"]) == (one.url, 4, 0)
    assert "not used for a while" in told["both"].stderr
    assert folder_bytes(tmp_path / "both" / "run") == folder_bytes(tmp_path / "single" / "run")


def test_the_estimate_shows_a_table_and_one_sum(tmp_path: Path) -> None:
    choices(tmp_path / "bench")
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec("one"), "--model", server.spec("two"), "--estimate"]
        done = hoofbeat(*words, folder=tmp_path)
    assert done.stdout.count("Would make at most 8 calls") == 1
    assert done.stderr.count("closed, letter") == 2
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_a_grid_that_is_killed_goes_on_where_it_was_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    with FaultServer(delay=0.06) as server:
        words = [
            "answer",
            "bench",
            "--model",
            server.spec("one"),
            "--model",
            server.spec("two") + "[temperature=0.6,samples=2]",
        ]
        words += [
            "--condition",
            "closed",
            "--condition",
            "first 50%",
            "--protocol",
            "letter",
            "--protocol",
            "likelihood",
        ]
        words += ["-o", "out"]
        for name in ("killed", "quiet"):
            choices(tmp_path / name / "bench", 40)
        total = 2 * (40 + 160) + 2 * (80 + 160)
        for _ in range(3):
            seen = len(server.seen)
            process = RunningCommand(words, tmp_path / "killed")
            while len(server.seen) < seen + 90 and not process.ended():
                time.sleep(0.005)
            process.kill()
            assert process.code == -signal.SIGKILL
            while server.in_flight:
                time.sleep(0.005)
            assert not (tmp_path / "killed" / "out").exists()
        with Ledger(tmp_path / "killed" / ".hoofbeat" / "ledger.sqlite") as ledger:
            kept = sum(1 for _ in ledger.entries())
        assert 0 < kept < total
        seen = len(server.seen)
        hoofbeat(*words, folder=tmp_path / "killed")
        assert len([each for each in server.seen[seen:] if "content" not in each.body]) == total - kept
        hoofbeat(*words, folder=tmp_path / "quiet")
    assert folder_bytes(tmp_path / "killed" / "out") == folder_bytes(tmp_path / "quiet" / "out")
    assert not [path for path in (tmp_path / "killed").iterdir() if path.name.endswith((".draft", ".old"))]


def test_what_an_assumed_window_leaves_out_is_said(tmp_path: Path, teaching_bench: Path) -> None:
    with FaultServer() as server:
        words = ["answer", str(teaching_bench / "bench"), "--model", server.spec(), "--limit", "2"]
        done = hoofbeat(*words, "--condition", "bm25 @20 documents", "-o", "run", folder=tmp_path)
        closed = hoofbeat(*words, "-o", "closed", folder=tmp_path)
    assert done.stderr.count("Hoofbeat assumes 8,192") == 1
    assert "Hoofbeat assumes" not in closed.stderr  # nothing is fitted into a window
    manifest = Run.open(tmp_path / "run").manifest
    assert manifest.settings["windows"] == {"answer": {"tokens": 8192, "source": "assumed"}}
    shown = manifest.metrics["shown"]
    assert isinstance(shown, dict)
    assert shown["passages"] + shown["left_out"] == 40
    assert shown["left_out"] > 0
    hoofbeat("report", "run", "--format", "markdown", "-o", "report", folder=tmp_path)
    told = (tmp_path / "report" / "report.md").read_text("utf-8")
    assert "8,192 tokens, assumed" in told
    assert f"{shown['left_out']} were left out" in told
    assert "windows" not in Run.open(tmp_path / "closed").manifest.settings


def test_conditions_over_a_corpus(tmp_path: Path, teaching_bench: Path) -> None:
    conditions = ["oracle", "bm25 @2", "bm25 @2 documents", "agent[turns=2,exclude=source]"]
    with FaultServer() as server:
        words = ["answer", str(teaching_bench / "bench"), "--model", server.spec(), "--limit", "3", "-o", "run"]
        for condition in conditions:
            words += ["--condition", condition]
        hoofbeat(*words, "--estimate", folder=tmp_path)
        hoofbeat(*words, folder=tmp_path)
    run = Run.open(tmp_path / "run")
    corpus = Corpus.open(teaching_bench / "cases")
    by_condition = {name: [a for a in run.answers if a.condition == name] for name in conditions}
    assert [len(found) for found in by_condition.values()] == [3, 3, 3, 3]
    assert all(answer.failure is None for answer in run.answers)
    sources = {question.id: set(question.documents) for question in run.questions}
    for answer in by_condition["oracle"]:
        assert {passage.document for passage in answer.evidence} == sources[answer.question]
    for answer in by_condition["bm25 @2 documents"]:
        assert [len(passage.text) for passage in answer.evidence] == [
            len(corpus.get(passage.document).text.strip()) for passage in answer.evidence
        ] or answer.dropped
    for answer in by_condition["agent[turns=2,exclude=source]"]:
        assert not sources[answer.question] & {passage.document for passage in answer.evidence}
        assert answer.trace
    settings = run.artefact.manifest.settings
    assert list(settings["retrievers"]) == ["bm25"]  # type: ignore[call-overload]
    assert {"answer-evidence", "answer-agent-step", "answer-agent-final"} <= set(run.artefact.manifest.prompts)


def test_the_brief_instruction(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 1)
    with FaultServer() as server:
        hoofbeat("answer", "bench", "--model", server.spec(), "--instruction", "brief", "--protocol", "free",
                 "--protocol", "letter", folder=tmp_path)  # fmt: skip
    manifest = Run.open(tmp_path / "run").artefact.manifest
    assert set(manifest.prompts) == {"answer-closed-brief", "answer-letter-brief"}
    assert manifest.settings["instruction"] == "brief"


def test_images_are_shown_only_where_that_is_asked(tmp_path: Path) -> None:
    pictured(tmp_path / "bench")
    with FaultServer() as server:
        words = ["answer", "bench", "--edition", "image", "--model", server.spec()]
        hoofbeat(*words, "--condition", "closed", "--condition", "images", folder=tmp_path)
    shown = {type(seen.body["messages"][-1]["content"]) for seen in server.seen}
    assert shown == {str, list}
    assert {answer.condition for answer in Run.open(tmp_path / "run").answers} == {"closed", "images"}
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--condition", "images", "--model", server.spec(), folder=tmp_path, code=1)
    assert "no question of this benchmark has images" in done.stderr


def test_a_path_trick_in_an_image_stops_before_anything_is_sent(tmp_path: Path) -> None:
    bench = Benchmark.open(pictured(tmp_path / "bench"), "image")
    (tmp_path / "secret.png").write_bytes(PNG)
    question = msgspec.structs.replace(bench.questions[0], images=("../secret.png",))
    write_jsonl(tmp_path / "bench" / "questions-image.jsonl", [question])
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--edition", "image", "--condition", "images", "--model", server.spec(),
                        "--trust-changed", folder=tmp_path, code=1)  # fmt: skip
    assert "outside its folder" in done.stderr
    assert server.seen == []


# What is refused


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--condition", "open book"], "is not a condition"),
        (["--condition", "first 0%"], "is not a condition"),
        (["--condition", "bm26 @3"], "unknown retriever stage"),
        (["--condition", "agent over bm25 > hyde"], "column"),
        (["--condition", "agent[turns=0]"], "turns can't be"),
        (["--condition", "agent", "--protocol", "likelihood"], "an agent writes its answer"),
        (["--condition", "\x1b[31mclosed"], "is not a condition"),
        (["--protocol", "letters"], "letters"),
        (["--model", "replay:none[temperature=3]"], "temperature can't be"),
        (["--model", "replay:none[samples=3]"], "would all be the same"),
        (["--samples", "3"], "would all be the same"),
        (["--instruction", "long"], "long"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(tmp_path: Path, words: list[str], says: str) -> None:
    choices(tmp_path / "bench", 1)
    done = hoofbeat("answer", "bench", *words, folder=tmp_path, code=2)
    assert says in done.stderr
    assert "\x1b" not in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_folder_that_is_taken_is_refused_before_a_call(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 1)
    with FaultServer() as server:
        done = hoofbeat("answer", "bench", "--model", server.spec(), "-o", "bench", folder=tmp_path, code=1)
    assert "already holds other results (benchmark)" in done.stderr
    assert server.seen == []


def test_nothing_of_the_user_s_in_an_earlier_run_is_deleted(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 2)
    with FaultServer() as server:
        words = ("answer", "bench", "--model", server.spec(), "-o", "run", "--ledger", "other.sqlite")
        hoofbeat(*words, folder=tmp_path)
        hoofbeat(*words, folder=tmp_path)  # a result as it was written is replaced
        calls = server.asked.total()
        ReviewStore.open(str(tmp_path / "run" / "review.db")).close()
        (tmp_path / "run" / "NOTES.txt").write_text("mine")
        before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
        done = hoofbeat(*words, "--seed", "7", folder=tmp_path, code=1)
        assert "did not write (NOTES.txt, review.db)" in done.stderr
        assert "move these files elsewhere" in done.stderr
        assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before
        assert server.asked.total() == calls, "refused before a call"


def test_an_output_folder_around_the_ledger_is_refused_before_a_call(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 2)
    with FaultServer() as server:
        words = ("answer", "../bench", "--model", server.spec())
        (tmp_path / "run").mkdir()
        for _ in range(2):  # in an empty folder, and where an earlier command has left its ledger
            done = hoofbeat(*words, "-o", ".", folder=tmp_path / "run", code=1)
            assert "current folder" in done.stderr
            (tmp_path / "run" / ".hoofbeat").mkdir(exist_ok=True)
        (tmp_path / "my.toml").write_text('ledger = "new/calls.sqlite"')
        for where in (("--ledger", "new/calls.sqlite"), ("--ledger", "new/a/b.sqlite"), ("--config", "my.toml")):
            done = hoofbeat("answer", "bench", "--model", server.spec(), "-o", "new", *where, folder=tmp_path, code=1)
            assert "the ledger is in the output folder" in done.stderr
        assert server.asked.total() == 0
    assert not (tmp_path / "new").exists()


def test_a_budget_stops_a_grid_and_a_larger_one_goes_on(tmp_path: Path) -> None:
    choices(tmp_path / "bench", 6)
    with FaultServer() as server:
        words = ["answer", "bench", "--model", server.spec("one"), "--model", server.spec("two"), "-o", "run"]
        hoofbeat(*words, "--budget", "8calls", folder=tmp_path, code=3)
        assert not (tmp_path / "run").exists()
        assert len(server.seen) == 8
        hoofbeat(*words, "--budget", "4calls", folder=tmp_path)
        assert len(server.seen) == 12


@pytest.mark.slow
def test_the_embedded_model_answers_every_way(tmp_path: Path) -> None:
    needs_weights("smollm2-135m")
    pictured(tmp_path / "pictured")
    choices(tmp_path / "bench", 1)
    words = ["--model", "embedded[max_tokens=24]", "-o", "run"]
    hoofbeat("answer", "bench", *words, "--protocol", "letter", "--protocol", "likelihood/token", folder=tmp_path)
    letter, measured = Run.open(tmp_path / "run").answers
    assert letter.failure is None
    assert letter.usage is not None
    assert letter.usage.tokens_out <= 24
    assert measured.choice in OPTIONS
    assert {each.option for each in measured.likelihoods} == set(OPTIONS)
    hoofbeat("answer", "pictured", "--edition", "image", "--condition", "images", *words, folder=tmp_path, code=1)
    (blind,) = Run.open(tmp_path / "run").answers
    assert blind.failure is not None
    assert blind.failure.kind == "unsupported"
