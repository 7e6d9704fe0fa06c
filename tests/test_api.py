"""The Python face: the same folders as the command writes, inside and outside an event loop, awaited or not."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import math
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import polars
import pytest

import hoofbeat as hb
from hoofbeat import aio, api, teaching
from hoofbeat.calls import asynchronous, verb
from hoofbeat.python_arguments import ANY_SEED, LIMITS
from tests.cli.support import hoofbeat
from tests.models.fault_server import FaultServer

HANDBOOKS = ("hb-alder-kidney", "hb-brook-kidney")


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(scope="module")
def given_answers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers of three sources to one question, in a file."""
    path = tmp_path_factory.mktemp("given") / "answers.csv"
    path.write_text("question,source,answer\nWhen?,a,In May.\nWhen?,b,In June.\nWhen?,c,Never.\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def by_command(tmp_path_factory: pytest.TempPathFactory, server: FaultServer, given_answers: Path) -> Path:
    """What the command writes from documents to a report."""
    root = tmp_path_factory.mktemp("command")
    model = ("--model", server.spec())
    cases, books = str(teaching.cases_folder()), [str(path) for path in teaching.handbook_files()[:3]]
    sources = [word for source in HANDBOOKS for word in ("--source", source)]
    for words in (
        ("corpus", "import", cases, "-o", "cases", "--facet", "set=teaching"),
        ("corpus", "import", *books, "-o", "handbooks"),
        ("corpus", "filter", "cases", "--keep", "words>=200", "-o", "filtered"),
        ("build", "teaching", "cases", "-o", "bench"),
        ("retrieve", "bench", "--with", "bm25", "--with", "bm25[k1=0.5]", "-o", "rankings"),
        ("answer", "bench", *model, "--condition", "closed", "--condition", "bm25 @2", "--limit", "3", "-o", "run"),
        ("judge", "run", *model, "--by", "equivalence", "--by", "exact", "-o", "judged"),
        ("audit", "handbooks", "teaching", *model, *sources, "--question", "tq-01", "--with", "bm25", "-o", "audit"),
        ("retrieve", "bench", "--with", "bm25", "--each-source", "--limit", "2", "-o", "evidence"),
        ("audit", "--answers", str(given_answers), *model, "--economy", "0.5", "--economy-check", "6", "-o", "given"),
        ("leakage", "bench", *model, "--limit", "3", "--cutoff", f"{server.spec()}=2023", "-o", "leakage"),
        ("compare", "rankings/01-bm25", "rankings/02-bm25-k1-0.5", "-o", "compared"),
        ("export", "bench", "--as", "beir", "-o", "beir"),
        ("corpus", "export", "cases", "--format", "beir", "-o", "documents"),
        ("report", "bench", "judged", "audit", "-o", "report", "--title", "A study"),
    ):
        hoofbeat(*words, folder=root)
    return root


async def _walk(verbs: Any, spec: str, given_answers: Path) -> None:
    """The same study in Python; `verbs` are those of `hoofbeat.aio`, or wrapped ones."""
    cases = await verbs.import_corpus(teaching.cases_folder(), "cases", facets={"set": "teaching"})
    books = await verbs.import_corpus(teaching.handbook_files()[:3], "handbooks")
    await verbs.filter_corpus(cases, "words>=200", "filtered")
    bench = await verbs.build("teaching", "cases", "bench")
    rankings = await verbs.retrieve(bench, ["bm25", "bm25[k1=0.5]"], "rankings")
    assert [each.line for each in rankings] == ["bm25", "bm25[k1=0.5]"]
    options = {"model": spec, "conditions": ["closed", "bm25 @2"], "limit": 3}
    estimate = await verbs.answer(bench, estimate=True, **options)
    assert estimate.calls == 6
    run = await verbs.answer(bench, "run", **options)
    with pytest.warns(UserWarning, match="also wrote answers here"):
        judged = await verbs.judge(run, "judged", judge=spec, by=["equivalence", "exact"])
    audit = await verbs.audit_sources(
        books, "teaching", "audit", model=spec, sources=HANDBOOKS, question_ids="tq-01", line="bm25"
    )
    await verbs.find_evidence(bench, "bm25", "evidence", limit=2)
    given = {"model": spec, "economy": 0.5, "economy_check": 6}
    assert (await verbs.audit_answers(given_answers, estimate=True, **given)).calls > 0
    await verbs.audit_answers(given_answers, "given", **given)
    leakage = await verbs.check_leakage(bench, "leakage", model=spec, limit=3, cutoffs=f"{spec}=2023")
    assert leakage.summary["questions"] == 3
    await verbs.compare(rankings, "compared")
    await verbs.export(bench, "beir", form="beir")
    await verbs.export(cases, "documents", form="beir")
    await verbs.report([bench, judged, audit], "report", title="A study")
    assert not any((await verbs.verify([bench, run, judged, audit, "report"])).values())


class _Plain:
    """The synchronous verbs behind `await`: called inside the running loop, or one that is hidden."""

    def __init__(self, inside: bool) -> None:
        self._inside = inside

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(hb, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return function(*args, **kwargs)
            return await asyncio.to_thread(function, *args, **kwargs)

        return call


@pytest.mark.parametrize("way", ["plain", "inside a loop", "awaited"])
def test_folders_are_those_of_the_command(
    way: str,
    by_command: Path,
    server: FaultServer,
    given_answers: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    verbs = {"plain": _Plain(False), "inside a loop": _Plain(True), "awaited": hb.aio}[way]
    asyncio.run(_walk(verbs, server.spec(), given_answers))
    written = {path.relative_to(by_command) for path in by_command.rglob("*") if path.is_file()}
    ours = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert {path for path in ours ^ written if path.parts[0] != ".hoofbeat"} == set()
    for path in sorted(written):
        if path.parts[0] == ".hoofbeat":
            continue
        expected, found = (by_command / path).read_bytes(), (tmp_path / path).read_bytes()
        if path.name == "manifest.json":
            expected, found = _without_command(expected), _without_command(found)
        if path.parts[0] not in {"report", "compared"}:  # a page says how each folder was made
            assert found == expected, path
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["command"] == [
        f"hoofbeat.answer('bench', 'run', model={server.spec()!r}, conditions=['closed', 'bm25 @2'], limit=3)"
    ]


def _without_command(manifest: bytes) -> bytes:
    decoded = json.loads(manifest)
    del decoded["command"]
    return json.dumps(decoded).encode()


def test_folders_open_as_what_they_are(by_command: Path) -> None:
    kinds = {
        "cases": hb.Corpus, "bench": hb.Benchmark, "rankings/01-bm25": hb.RankingsFolder, "run": hb.Run,
        "judged": hb.JudgmentFolder, "audit": hb.Audit, "leakage": hb.LeakageFolder,
        "report": hb.ReportFolder, "beir": hb.ArtefactFolder,
    }  # fmt: skip
    for name, kind in kinds.items():
        opened = hb.open(by_command / name)
        assert type(opened) is kind, name
        assert opened.kind in opened._repr_html_()
        for table in opened.tables:
            opened.table(table)
    ranked = hb.open(str(by_command / "rankings" / "01-bm25"))
    assert isinstance(ranked, hb.RankingsFolder)
    assert ranked.hits[0].question == ranked.questions[0].id
    report = hb.open(by_command / "report")
    assert isinstance(report, hb.ReportFolder)
    assert report.page.is_file()


def test_a_case_is_asked_without_a_model(by_command: Path) -> None:
    found = hb.ask_corpora(by_command / "cases", "fever and a rash after travel", line="bm25")
    assert found.reports
    assert found.cited is None


def test_other_errors_and_results_come_out_of_a_loop() -> None:
    async def inside() -> None:
        with pytest.raises(hb.HoofbeatError, match="no such folder"):
            hb.answer("nowhere")
        with pytest.raises(hb.HoofbeatError, match="no such folder"):
            await hb.aio.answer("nowhere")

    asyncio.run(inside())


def test_a_cancelled_task_stops_its_work() -> None:
    ended: list[str] = []
    begun = threading.Event()

    @verb
    def endless() -> None:
        begun.set()
        try:
            while True:
                time.sleep(0.01)
        finally:
            ended.append("stopped")

    async def inside() -> None:
        task = asyncio.ensure_future(asynchronous(endless)())
        await asyncio.to_thread(begun.wait, 10)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(500):
            if ended:
                return
            await asyncio.sleep(0.01)

    asyncio.run(inside())
    assert ended == ["stopped"]


def test_a_budget_is_a_number_or_text_for_every_verb(tmp_path: Path) -> None:
    verbs = {name: inspect.signature(getattr(api, name)).parameters for name in api.__all__}
    budgets = {name: str(found["budget"].annotation) for name, found in verbs.items() if "budget" in found}
    assert set(budgets.values()) == {"str | float | None"}, budgets
    corpus = hb.import_corpus(teaching.cases_folder(), tmp_path / "corpus", progress=hb.SILENT)
    options: dict[str, Any] = {"corpus": corpus, "lines": "bm25", "queries": "fever", "progress": hb.SILENT}
    assert hb.retrieve(corpus, output=tmp_path / "ranked", budget=5.0, **options)[0].hits
    for wrong in ([5], True, "much"):
        with pytest.raises(hb.HoofbeatError, match="budget"):
            hb.retrieve(corpus, output=tmp_path / "wrong", budget=wrong, **options)
        with pytest.raises(hb.HoofbeatError, match="budget"):
            hb.build("ogcare", corpus, tmp_path / "wrong", budget=wrong)
    assert not (tmp_path / "wrong").exists()


def test_measures_of_questions_without_documents_are_refused(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("question\nWhich fever follows travel?\n", encoding="utf-8")
    corpus = hb.import_corpus(teaching.cases_folder(), tmp_path / "corpus", progress=hb.SILENT)
    bench = hb.import_benchmark(tmp_path / "asked.csv", tmp_path / "bench", progress=hb.SILENT)
    options: dict[str, Any] = {"corpus": corpus, "progress": hb.SILENT}
    with pytest.raises(hb.HoofbeatError, match="no question names a relevant document"):
        hb.retrieve(bench, "bm25", tmp_path / "ranked", measures=["nDCG@10"], **options)
    assert not (tmp_path / "ranked").exists()
    with pytest.warns(UserWarning, match="can't be measured") as caught:
        [ranked] = hb.retrieve(bench, "bm25", tmp_path / "ranked", **options)
    assert caught[0].filename == __file__, "the warning points at the caller"
    assert ranked.hits


def test_public_names_are_listed_documented_and_loaded_late() -> None:
    for name in hb.__all__:
        assert getattr(hb, name) is not None
        assert name in dir(hb)
        if name not in {"__version__", "SILENT"}:
            assert inspect.getdoc(getattr(hb, name)), name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hb.nothing  # noqa: B018
    assert set(aio.__all__) == set(api.__all__) - {"load_plugin"}
    assert set(api.__all__) < set(hb.__all__)
    told = (
        "import sys, hoofbeat; print(hoofbeat.__version__); "
        "print(sorted(name for name in sys.modules if name.startswith('hoofbeat')))"
    )
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [hb.__version__, "['hoofbeat', 'hoofbeat.version']"]


def test_limits_of_numbers_are_those_of_the_command() -> None:
    verbs = {
        "corpus": "import_corpus", "build": "build", "retrieve": "retrieve", "answer": "answer", "judge": "judge",
        "audit": "audit_sources", "check": "check", "leakage": "check_leakage", "report": "report", "run": "run_paper",
        "ask": "ask_corpora", "compare": "compare", "benchmark": "import_benchmark",
    }  # fmt: skip
    compared = set()
    for command, verb_name in verbs.items():
        found: Any = importlib.import_module(f"hoofbeat.cli.{command}").command
        if command in ("corpus", "benchmark"):
            found = found.commands["import"]
        elif command == "build":
            found = found.get_command(click.Context(found), "ogcare")
        arguments = inspect.signature(getattr(api, verb_name)).parameters
        for option in found.params:
            kind = option.type
            if option.name in arguments and isinstance(kind, click.IntRange | click.FloatRange):
                limits = LIMITS[option.name]
                assert (kind.min, kind.max) == tuple(None if math.isinf(each) else each for each in limits[:2]), option
                assert limits.open == (kind.min_open and kind.max_open), option
                compared.add(option.name)
            if option.name == "seed":
                assert isinstance(kind, click.IntRange) == (verb_name not in ANY_SEED), verb_name
    assert compared == LIMITS.keys() - {"count_from"}


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("retrieve", {"limit": -1}, "limit can't be -1"),
        ("find_evidence", {"limit": 0}, "give a whole number of 1 or more"),
        ("build", {"corpus": "none", "limit": 0}, "limit can't be 0"),
        ("audit_sources", {"questions": "none", "limit": -1}, "limit can't be -1"),
        ("audit_sources", {"questions": "none", "economy": 1.0}, "give a number between 0 and 1"),
        ("answer", {"instruction": "short"}, "use one of: best, brief"),
        ("answer", {"protocols": "lettr"}, "did you mean letter"),
        ("answer", {"samples": 0}, "samples can't be 0"),
        ("answer", {"samples": 2.0}, "samples can't be 2.0"),
        ("answer", {"temperature": -1}, "give a number from 0 to 2"),
        ("answer", {"temperature": "hot"}, "temperature can't be 'hot'"),
        ("answer", {"seed": "a"}, "seed can't be 'a'"),
        ("answer", {"limit": "2"}, "limit can't be '2'"),
        ("answer", {"reasoning": -5}, "reasoning can't be -5"),
        ("answer", {"conditions": [3]}, "conditions can't be"),
        ("answer", {"progress": True}, "progress=hb.SILENT for none"),
        ("answer", {"estimate": "yes"}, "give True or False"),
        ("answer", {"model": lambda text: text}, "hb.import_predictions"),
        ("retrieve", {"lines": [object()]}, "hb.load_plugin"),
        ("check", {"left_out": ["laeks"]}, "did you mean leaks"),
        ("check_leakage", {"left_out": ["naer"]}, "did you mean near"),
        ("judge", {"probes": "ordre"}, "did you mean order"),
        ("judge", {"probe_size": -5}, "probe_size can't be -5"),
        ("judge", {"humans": [3]}, "a path"),
        ("import_corpus", {"facets": ["a"]}, "a dictionary of texts"),
        ("import_corpus", {"mapping": {"id": 3}}, "a dictionary of texts"),
    ],
)
def test_values_that_the_command_refuses_are_refused(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(hb.HoofbeatError) as raised:
        getattr(hb, name)("nowhere", **options)
    assert said in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__


def test_tables_in_memory_are_refused_with_what_to_do() -> None:
    frame = polars.DataFrame({"question": ["When?"]})
    calls: tuple[Callable[[Any], object], ...] = (hb.import_benchmark, hb.import_predictions, hb.import_corpus)
    for call in calls:
        with pytest.raises(hb.HoofbeatError, match="write_csv"):
            call(frame)
    with pytest.raises(hb.HoofbeatError, match="not a list of 2"):
        hb.judge(["a", "b"])  # type: ignore[call-overload]


def test_one_path_stands_for_a_list(by_command: Path, tmp_path: Path) -> None:
    def refused(call: Callable[[], object]) -> str:
        with pytest.raises(hb.HoofbeatError) as raised:
            call()
        return str(raised.value)

    bench, run, rankings = by_command / "bench", by_command / "run", by_command / "rankings"
    both = [rankings / "01-bm25", rankings / "02-bm25-k1-0.5"]
    there = str(tmp_path / "none.csv")
    assert "none.csv" in refused(lambda: hb.judge(run, tmp_path / "a", humans=there, progress=hb.SILENT))
    assert "none.csv" in refused(lambda: hb.report(run, tmp_path / "a", errors=there, progress=hb.SILENT))
    assert "none.csv" in refused(lambda: hb.retrieve(bench, output=tmp_path / "a", runs=there, progress=hb.SILENT))
    assert "none.csv" in refused(lambda: hb.check(bench, tmp_path / "a", answers=there, progress=hb.SILENT))
    assert "judg" in refused(lambda: hb.compare(both, tmp_path / "a", judged=there, progress=hb.SILENT))


def test_a_mapping_may_be_a_dictionary(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("qid,q,a\n7,Which fever follows travel?,malaria\n", encoding="utf-8")
    fields = {"id": "qid", "text": "q", "answer": "a"}
    bench = hb.import_benchmark(tmp_path / "asked.csv", tmp_path / "bench", mapping=fields, progress=hb.SILENT)
    assert [each.id for each in bench.questions] == ["7"]
    same = hb.import_benchmark(
        tmp_path / "asked.csv", tmp_path / "same", mapping="id=qid,text=q,answer=a", progress=hb.SILENT
    )
    assert same.manifest.settings == bench.manifest.settings


def test_an_object_whose_folder_was_replaced_is_refused(
    by_command: Path, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"model": server.spec(), "ledger": tmp_path / "ledger.sqlite", "progress": hb.SILENT}
    with warnings.catch_warnings(action="ignore"):
        first = hb.answer(by_command / "bench", limit=2, **options)
        same = hb.answer(str(by_command / "bench"), "run", limit=2, **options)
        assert first.answers == same.answers, "the same results, written in another way"
        first = hb.open(first)
        second = hb.answer(by_command / "bench", limit=2, conditions="bm25 @1", **options)
        assert isinstance(first, hb.Run)
        for use in (
            lambda: hb.judge(first, "judged", by="rouge-l", progress=hb.SILENT),
            lambda: hb.report([first], "report", progress=hb.SILENT),
            lambda: first.answers,
            lambda: first.table("answers"),
        ):
            with pytest.raises(hb.HoofbeatError, match="a later call replaced this run"):
                use()
        assert hb.judge(second, "judged", by="rouge-l", progress=hb.SILENT).judgments


def _warned(call: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert {each.filename for each in caught} <= {__file__}
    return [str(each.message) for each in caught]


def test_what_the_command_warns_of_is_a_python_warning(
    by_command: Path, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options: dict[str, Any] = {"ledger": tmp_path / "ledger.sqlite", "progress": hb.SILENT}
    asked: dict[str, Any] = {"sources": HANDBOOKS, "question_ids": "tq-01", "line": "bm25"}
    asked_csv = tmp_path / "asked.csv"
    asked_csv.write_text("question,answer\nfault=policy 1?,a\nfault=policy 2?,b\nLast?,c\n", encoding="utf-8")
    refused = hb.import_benchmark(asked_csv, "refused", progress=hb.SILENT)
    told = _warned(lambda: hb.answer(refused, "failed", model=server.spec(), limit=2, **options))
    assert any("2 of 2 answers failed" in each and "The same call" in each for each in told), told
    assert any("Only the first 2 of 3 questions" in each for each in told), told
    told = _warned(
        lambda: hb.audit_sources(by_command / "handbooks", "teaching", model=server.spec(), **asked, **options)
    )
    assert any(each.startswith("No two sources answer the same question") for each in told), told
    told = _warned(lambda: hb.judge("failed", "small", by="equivalence", **options))
    assert any("is too small to judge answers" in each for each in told), told
    empty = hb.import_corpus(teaching.handbook_files()[:1], "books", progress=hb.SILENT)
    told = _warned(lambda: hb.build("teaching", empty, "empty"))
    assert [each.partition(",")[0] for each in told] == ["Nothing was kept. Kept 0 questions"]


@pytest.mark.parametrize("way", ["inside a loop", "awaited", "in a task"])
def test_warnings_point_at_the_caller_from_any_thread(way: str, by_command: Path, tmp_path: Path) -> None:
    bench = by_command / "bench"

    async def walk() -> None:
        options: dict[str, Any] = {"lines": "bm25", "limit": 2, "progress": hb.SILENT}
        if way == "inside a loop":
            hb.retrieve(bench, output=tmp_path / "a", **options)
        elif way == "awaited":
            await hb.aio.retrieve(bench, output=tmp_path / "a", **options)
        else:
            await asyncio.gather(hb.aio.retrieve(bench, output=tmp_path / "a", **options))

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        asyncio.run(walk())
    ours = [each for each in caught if "Only the first 2" in str(each.message)]
    assert [each.filename for each in ours] == [__file__]
    assert "hb." in Path(__file__).read_text(encoding="utf-8").splitlines()[ours[0].lineno - 1]


def test_the_leaderboard_has_accuracy_with_its_interval(by_command: Path) -> None:
    found = hb.leaderboard(by_command / "judged")
    assert found.columns == [
        "protocol", "model", "condition", "accuracy", "low", "high", "right", "planned", "unscored", "questions",
        "clusters",
    ]  # fmt: skip
    assert found.height == 2
    assert set(found["planned"]) == {3}
    for row in found.iter_rows(named=True):
        if row["accuracy"] is not None:
            assert row["low"] <= row["accuracy"] == row["right"] / row["planned"] <= row["high"]


def test_a_table_is_found_without_its_folder(by_command: Path) -> None:
    report = hb.open(by_command / "report")
    whole = next(name for name in report.tables if name.endswith("leaderboard.csv"))
    short = Path(whole)
    assert short.parent.name
    for name in (short.stem, short.name, whole):
        assert report.table(name).equals(report.table(whole))


def test_an_empty_table_of_rejected_items_has_its_columns(by_command: Path) -> None:
    assert hb.open(by_command / "cases").table("rejected").columns == ["source", "reason"]
    assert set(hb.open(by_command / "filtered").table("rejected").columns) >= {"id", "step", "reason"}


def test_a_report_shows_a_call_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "asked.csv").write_text("question\nWhich fever follows travel?\n", encoding="utf-8")
    bench = hb.import_benchmark(str(tmp_path / "asked.csv"), tmp_path / "bench", progress=hb.SILENT)
    [call] = bench.manifest.command
    assert bench.manifest.command_text == call
    report = hb.report(bench, tmp_path / "report", formats="markdown", progress=hb.SILENT)
    assert call in report.artefact.file("report.md").read_text(encoding="utf-8")


def test_teaching_takes_no_options_and_costs_nothing(by_command: Path, tmp_path: Path) -> None:
    cases = by_command / "cases"
    assert hb.build("teaching", cases, tmp_path / "a", estimate=True).calls == 0
    with pytest.raises(hb.HoofbeatError, match="does not use limit"):
        hb.build("teaching", cases, tmp_path / "a", limit=3)
    with pytest.raises(hb.HoofbeatError, match="has no split 'nope'"):
        hb.retrieve(by_command / "bench", "bm25", tmp_path / "a", split="nope", progress=hb.SILENT)
    assert not (tmp_path / "a").exists()


def test_names_of_sources_are_shown(by_command: Path) -> None:
    audit = hb.open(by_command / "audit")
    assert isinstance(audit, hb.Audit)
    assert all(source in repr(audit.names) for source in HANDBOOKS)


def test_only_public_names_are_offered() -> None:
    assert {name for name in dir(hb) if not name.startswith("__")} == set(hb.__all__) - {"__version__"}
