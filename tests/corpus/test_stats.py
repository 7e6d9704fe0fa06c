"""Statistics of a corpus, and one document on the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat import teaching
from hoofbeat.cli.corpus_show import show_command, stats_command
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.stats import Quantiles, compute_stats, load_tokenizer, write_stats
from hoofbeat.errors import ArtefactError, InputError, UsageError
from hoofbeat.records import Document, Figure
from hoofbeat.store.tables import read_tsv
from hoofbeat.text import for_terminal
from tests.helpers import needs_weights

ESCAPES = "\x1b[31mred\x1b]0;title\x07\x9b2J\u202egnp.exe\r"


def a_document(number: int, length: int = 10) -> Document:
    facets: dict[str, str | list[str]] = {"year": str(2020 + number % 3), "journal": "J One" if number % 2 else "J Two"}
    figures = tuple(Figure(id=f"f{place}") for place in range(number % 4))
    text = "word " * length
    return Document(id=f"d{number}", title="t", text=text.strip(), facets=facets, figures=figures, kind="case-report")


def tokenizer_file(folder: Path) -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: PLC0415

    made = Tokenizer(models.WordLevel({"word": 0, "?": 1}, unk_token="?"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.enable_truncation(4)
    folder.mkdir(exist_ok=True)
    made.save(str(folder / "tokenizer.json"))
    return folder / "tokenizer.json"


@given(st.lists(st.integers(0, 60_000), min_size=1, max_size=60))
def test_quantiles_are_numpy_s(lengths: list[int]) -> None:
    documents = [Document(id=str(n), title="", text="x" * (length % 997)) for n, length in enumerate(lengths)]
    values = [length % 997 for length in lengths]
    seen = compute_stats(documents, schemes=()).lengths["characters"]
    expected = [float(np.quantile(values, share)) for share in (0.5, 0.75, 0.95)]
    assert [seen.median, seen.p75, seen.p95] == pytest.approx(expected, abs=0.001)
    assert (seen.minimum, seen.maximum, seen.total, seen.count) == (min(values), max(values), sum(values), len(values))
    assert seen.mean == pytest.approx(sum(values) / len(values), abs=0.001)


def test_very_long_texts_are_counted_in_bounded_detail() -> None:
    lengths = [1_000_003, 2_000_029, 5_000_011]
    seen = compute_stats((Document(id=str(n), title="", text="x" * n) for n in lengths), schemes=()).lengths
    quantiles = seen["characters"]
    assert (quantiles.minimum, quantiles.maximum) == (1_000_003, 5_000_011)
    assert quantiles.median == pytest.approx(2_000_029, rel=0.001)


def test_tables_and_their_order() -> None:
    stats = compute_stats([a_document(n) for n in range(10)], schemes=("ogcare",))
    assert stats.documents == 10
    assert [(row.value, row.documents) for row in stats.rows("year")] == [("2020", 4), ("2021", 3), ("2022", 3)]
    assert [row.value for row in stats.rows("venue")] == ["J One", "J Two"]
    assert [(row.value, row.documents, row.share) for row in stats.rows("kind")] == [("case-report", 10, 1.0)]
    assert [row.value for row in stats.rows("figures")] == ["0", "1", "2", "3"]
    assert [(row.value, row.documents) for row in stats.rows("ogcare")] == [("unknown", 10)]
    assert stats.figures == Quantiles(count=10, total=13, minimum=0, maximum=3, mean=1.3, median=1.0, p75=2.0, p95=3.0)
    assert stats.lengths["words"].median == 10
    assert "tokens" not in stats.lengths


def test_what_is_unknown_stands_last() -> None:
    documents = [Document(id=str(n), title="", text="x") for n in range(3)] + [a_document(1)]
    stats = compute_stats(documents, schemes=())
    assert [(row.value, row.documents) for row in stats.rows("year")] == [("2021", 1), ("unknown", 3)]
    assert stats.rows("licence")[-1].value == "unknown"


def test_no_documents() -> None:
    stats = compute_stats([], schemes=("cupcase",))
    assert (stats.documents, stats.lengths, stats.figures) == (0, {}, None)
    assert stats.rows("cupcase") == ()


def test_documents_are_streamed() -> None:
    alive = 0
    most = 0

    class Watched(Document, frozen=True):
        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def stream() -> Iterator[Document]:
        nonlocal alive, most
        for number in range(500):
            alive += 1
            most = max(most, alive)
            yield Watched(id=str(number), title="", text="x")

    assert compute_stats(stream(), schemes=()).documents == 500
    assert most < 100


def test_tokens_of_a_named_tokenizer(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(str(tokenizer_file(tmp_path / "mine")))
    assert tokenizer is not None
    assert tokenizer.name.startswith("mine@")
    assert tokenizer.counts(["word word, word", ""]) == [4, 0]
    stats = compute_stats([a_document(1, 20)], tokenizer=tokenizer, schemes=())
    assert (stats.tokenizer, stats.lengths["tokens"].total) == (tokenizer.name, 20)
    assert load_tokenizer("none") is None
    assert load_tokenizer(str(tmp_path / "mine")) is not None
    (tmp_path / "bad.json").write_text("{}")
    for wrong in ("nothing", str(tmp_path / "bad.json")):
        with pytest.raises(InputError, match="tokenizer"):
            load_tokenizer(wrong)


def test_tokens_of_the_embedded_encoder() -> None:
    needs_weights("minilm")
    tokenizer = load_tokenizer()
    assert tokenizer is not None
    assert tokenizer.name == "minilm@be50c3628f2b"
    assert tokenizer.counts(["A patient with sarcoidosis. " * 200])[0] > 1000


# The commands


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    hostile = folder / "in" / "hostile.md"
    hostile.parent.mkdir()
    hostile.write_text(f"---\nid: hostile\njournal: {ESCAPES.strip()}\n---\n# Bad {ESCAPES}\n\nText {ESCAPES} end.\n")
    import_corpus([teaching.cases_folder(), hostile], folder / "c")
    return folder / "c"


def run(command: object, *words: object) -> Result:
    result = CliRunner().invoke(command, [str(word) for word in words])  # type: ignore[arg-type]
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result


def test_stats_command(corpus: Path, tmp_path: Path) -> None:
    words = ("--tokenizer", tokenizer_file(tmp_path), "--scheme", "ogcare", "--json")
    seen = json.loads(run(stats_command, corpus, *words, "-o", tmp_path / "s").stdout)
    assert (seen["kind"], seen["counts"]["kept"]) == ("stats", len(Corpus.open(corpus)))
    assert {"artefact", "metrics", "cost", "seconds", "stats"} <= set(seen)
    rows = list(read_tsv(tmp_path / "s" / "specialty-ogcare.tsv"))
    assert sum(int(row["documents"]) for row in rows) == seen["counts"]["kept"]
    assert rows[0]["label"] == "Internal Medicine"
    years = [row["year"] for row in read_tsv(tmp_path / "s" / "year.tsv")]
    assert years == sorted(years)
    units = [row["unit"] for row in read_tsv(tmp_path / "s" / "lengths.tsv")]
    assert units == ["characters", "words", "tokens", "figures"]
    plain = run(stats_command, corpus, "--tokenizer", "none", "--scheme", "none").stdout
    assert "OGCaReBench" not in plain
    assert "75th" in plain
    assert "\x1b" not in plain
    listed = json.loads(run(stats_command, corpus, "--tokenizer", "none", "--scheme", "none", "--json").stdout)
    assert listed["stats"]["tokenizer"] == "none"


def test_the_same_corpus_gives_the_same_tables(corpus: Path, tmp_path: Path) -> None:
    opened = Corpus.open(corpus)
    for name in ("one", "two"):
        write_stats(tmp_path / name, compute_stats(opened.documents(), schemes=("clinbench",)), opened)
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert "venue.tsv" in files
    assert all((tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes() for name in files)
    write_stats(tmp_path / "one", compute_stats([], schemes=()), opened)
    assert list(read_tsv(tmp_path / "one" / "year.tsv")) == []


def test_show_command(corpus: Path) -> None:
    document = Corpus.open(corpus).get("hbt-case-05")
    shown = run(show_command, corpus, "hbt-case-05", "--find", "duodenal varix").stdout
    assert shown.startswith(document.title)
    assert "# Case presentation  [case]" in shown
    assert "keywords: ectopic varices; endoscopic ultrasound; portal vein thrombosis" in shown
    place = document.figures[0]
    assert f"▣ {document.text[place.start : place.end]}" in shown
    for section in document.sections:
        for paragraph in document.section_text(section).split("\n\n"):
            assert shown.count(paragraph) >= 1
    marks = [line.split("\t") for line in shown.splitlines() if "\t" in line]
    assert marks
    for span, words in marks:
        start, _, end = span.partition("-")
        assert document.text[int(start) : int(end)] == words
        assert words.lower().startswith(("duodenal var",))


def test_show_as_json_gives_the_record(corpus: Path, tmp_path: Path) -> None:
    table = tmp_path / "own.tsv"
    table.write_text("code\tname\nV1\tduodenal varix\n")
    words = ("--vocabulary", table, "--find", "patient", "--json")
    seen = json.loads(run(show_command, corpus, "hbt-case-05", *words).stdout)
    document = Corpus.open(corpus).get("hbt-case-05")
    assert seen["document"]["text"] == document.text
    assert [section["heading"] for section in seen["document"]["sections"]] == [s.heading for s in document.sections]
    matches = seen["matches"][str(table)]
    assert {match["code"] for match in matches} == {"V1"}
    assert all(document.text[m["start"] : m["end"]] == m["text"] for m in matches)


def test_a_document_cannot_steer_the_terminal(corpus: Path) -> None:
    for result in (
        run(show_command, corpus, "hostile", "--find", "red"),
        run(stats_command, corpus, "--tokenizer", "none", "--scheme", "none"),
    ):
        assert not set(result.output) & set("\x1b\x07\x9b\u202e\r")
    assert for_terminal(ESCAPES).isprintable()
    assert len(for_terminal(ESCAPES)) == len(ESCAPES)
    assert for_terminal("a\tb\nc é “x”") == "a\tb\nc é “x”"


def test_highlights_on_a_terminal(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = CliRunner().invoke(show_command, [str(corpus), "hbt-case-05", "--find", "varix"], color=True).stdout
    assert "\x1b[30;43m" in shown
    assert max(len(line) for line in shown.splitlines() if "\x1b" not in line and "\t" not in line) <= 100


def test_what_is_not_there_is_said(corpus: Path) -> None:
    for command, words, error in (
        (show_command, [corpus, "hbt-case-5"], InputError),
        (show_command, [corpus, "hbt-case-05", "--vocabulary", "nothing"], UsageError),
        (stats_command, [corpus, "--scheme", "nothing"], UsageError),
        (stats_command, [corpus.parent], ArtefactError),
    ):
        result = CliRunner().invoke(command, [str(word) for word in words])
        assert isinstance(result.exception, error), result.output
