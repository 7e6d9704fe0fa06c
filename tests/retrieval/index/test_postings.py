from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.errors import ArtefactError, OutputError
from hoofbeat.retrieval.index import analysis, postings
from hoofbeat.retrieval.index.analysis import ENGLISH, Analyzer
from hoofbeat.retrieval.index.lexical_search import Bm25
from hoofbeat.retrieval.index.postings import Postings

WORDS = st.sampled_from(["heart", "liver", "kidneys", "fever", "the", "心不全", "IL-6"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=25)


class Recorder:
    """Progress that remembers what it was told."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Recorder]:
        self.total = total
        yield self

    def advance(self, steps: int = 1) -> None:
        self.done += steps

    def note(self, text: str) -> None:
        pass


def some_texts(count: int = 400) -> list[str]:
    rng = np.random.default_rng(5)
    return [" ".join(f"w{word}" for word in rng.zipf(1.3, 30) if word < 5000) for _ in range(count)]


def same(one: Postings, other: Postings) -> bool:
    return (
        one.vocabulary == other.vocabulary
        and list(one.vocabulary.terms) == list(other.vocabulary.terms)
        and all(
            getattr(one, name).dtype == getattr(other, name).dtype
            and np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("starts", "texts", "counts", "lengths")
        )
    )


@settings(deadline=None)
@given(TEXTS)
def test_rows_hold_every_term_of_every_text(texts: list[str]) -> None:
    postings = Postings.build(texts)
    analysed = [ENGLISH.terms(text) for text in texts]
    assert postings.lengths.tolist() == [len(terms) for terms in analysed]
    assert list(postings.vocabulary.terms) == sorted({term for terms in analysed for term in terms})
    for term, number in postings.vocabulary.terms.items():
        row = slice(postings.starts[number], postings.starts[number + 1])
        expected = [(place, terms.count(term)) for place, terms in enumerate(analysed) if term in terms]
        assert list(zip(postings.texts[row].tolist(), postings.counts[row].tolist(), strict=True)) == expected


def test_neither_threads_nor_blocks_nor_forgetting_change_the_index(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = some_texts()
    expected = Postings.build(texts, threads=1)
    monkeypatch.setattr(postings, "_BLOCK_CHARACTERS", 2000)
    monkeypatch.setattr(postings, "_IN_MEMORY", 1000)
    assert same(Postings.build(iter(texts), threads=3, count=len(texts)), expected)
    monkeypatch.setattr(analysis, "_REMEMBERED", 50)
    assert same(Postings.build(texts, threads=1), expected)
    assert same(Postings.build(texts, threads=3), expected)


def test_more_terms_in_a_block_than_sixteen_bits_number() -> None:
    words = [f"w{number}" for number in range(70_000)]
    postings = Postings.build([" ".join(words), " ".join(words[::-2]), "w69999 w3 w69999"])
    assert list(postings.vocabulary.terms) == sorted(words)
    for word, expected in {
        "w69999": [(0, 1), (1, 1), (2, 2)],
        "w3": [(0, 1), (1, 1), (2, 1)],
        "w68000": [(0, 1)],
    }.items():
        number = postings.vocabulary.terms[word]
        row = slice(postings.starts[number], postings.starts[number + 1])
        assert list(zip(postings.texts[row].tolist(), postings.counts[row].tolist(), strict=True)) == expected
    assert postings.lengths.tolist() == [70_000, 35_000, 3]


def test_what_goes_wrong_in_a_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_BLOCK_CHARACTERS", 10)
    with pytest.raises((AttributeError, TypeError)):
        Postings.build(["some words", "and some more", b"no text at all"], threads=2)  # type: ignore[list-item]


def test_many_repeats_and_lone_surrogates_are_kept(tmp_path: Path) -> None:
    analyzer = Analyzer(pattern=r"\S+", stemmer="none")
    Postings.build(["a " + "word " * 70_000, "\ud800 word", ""], analyzer).save(tmp_path)
    postings = Postings.load(tmp_path, analyzer)
    number = postings.vocabulary.terms["word"]
    assert postings.counts[postings.starts[number] : postings.starts[number + 1]].tolist() == [70_000, 1]
    assert "\ud800" in postings.vocabulary.terms


def test_progress_counts_all_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "_BLOCK_CHARACTERS", 100)
    steps = Recorder()
    Postings.build(some_texts(50), progress=steps)
    assert steps.total == steps.done == 50


@pytest.mark.parametrize("texts", [[], [""], ["the of"], some_texts(50)])
def test_saved_and_loaded_is_the_same(texts: list[str], tmp_path: Path) -> None:
    built = Postings.build(texts)
    built.save(tmp_path / "new" / "index")
    loaded = Postings.load(tmp_path / "new" / "index")
    assert same(built, loaded)
    (before,) = Bm25(built).search(["w1 w2 w3 fever"], 10)
    (after,) = Bm25(loaded).search(["w1 w2 w3 fever"], 10)
    assert before.indices.tolist() == after.indices.tolist()
    assert before.scores.tolist() == after.scores.tolist()


def test_saving_again_replaces(tmp_path: Path) -> None:
    Postings.build(some_texts(50)).save(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    other = Postings.build(some_texts(60))
    other.save(tmp_path)
    assert same(Postings.load(tmp_path), other)
    assert (tmp_path / "manifest.json").read_text() == "{}"


def test_a_file_in_the_way_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="can't be written"):
        Postings.build(["x"]).save(tmp_path / "file")


@pytest.fixture
def saved(tmp_path: Path) -> Iterator[Path]:
    Postings.build(some_texts(50)).save(tmp_path)
    assert len(Postings.load(tmp_path).lengths) == 50
    yield tmp_path
    with pytest.raises(ArtefactError):
        Postings.load(tmp_path)


def meta(folder: Path, **changes: object) -> None:
    path = folder / "postings.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_folder_without_an_index_is_refused(saved: Path) -> None:
    (saved / "postings.json").unlink()
    with pytest.raises(ArtefactError, match="lexical index is missing"):
        Postings.load(saved)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"format": "one"}', "\ufffe"])
def test_a_damaged_description_is_refused(saved: Path, content: str) -> None:
    (saved / "postings.json").write_text(content, "utf-8")
    with pytest.raises(ArtefactError, match="can't be read"):
        Postings.load(saved)


def test_another_format_is_refused(saved: Path) -> None:
    meta(saved, format=99)
    with pytest.raises(ArtefactError, match="format 99"):
        Postings.load(saved)


def test_another_analysis_is_refused(saved: Path) -> None:
    with pytest.raises(ArtefactError, match=r"another analysis \(stemmer"):
        Postings.load(saved, Analyzer(stemmer="none"))
    (saved / "postings.json").unlink()


@pytest.mark.parametrize("name", ["starts.npy", "texts.npy", "counts.npy", "lengths.npy", "terms.json"])
@pytest.mark.parametrize("how", ["cut", "gone", "empty"])
def test_damaged_files_are_refused(saved: Path, name: str, how: str) -> None:
    path = saved / name
    data = path.read_bytes()
    path.unlink()
    if how != "gone":
        path.write_bytes(data[:-3] if how == "cut" else b"")
    with pytest.raises(ArtefactError, match="damaged"):
        Postings.load(saved)


def test_files_of_another_kind_are_refused(saved: Path) -> None:
    np.save(saved / "texts.npy", np.zeros((3, 3)))
    sizes = {path.name: path.stat().st_size for path in saved.glob("*") if path.name != "postings.json"}
    meta(saved, sizes=sizes)
    with pytest.raises(ArtefactError, match=r"texts.npy does not hold a list"):
        Postings.load(saved)


def test_files_that_do_not_belong_together_are_refused(saved: Path) -> None:
    meta(saved, texts=3)
    with pytest.raises(ArtefactError, match="do not match"):
        Postings.load(saved)


def test_rows_that_go_backwards_are_refused(saved: Path) -> None:
    starts = np.load(saved / "starts.npy")
    starts[3] = starts[5]
    np.save(saved / "starts.npy", starts)
    with pytest.raises(ArtefactError, match="does not ascend"):
        Postings.load(saved)


def test_rows_that_name_texts_that_are_not_there_are_refused_when_searched(tmp_path: Path) -> None:
    Postings.build(["fever", "fever"]).save(tmp_path)
    path = tmp_path / "texts.npy"
    np.save(path, np.array([0, 7], np.int32))
    with pytest.raises(ArtefactError, match="that don't exist"):
        Bm25(Postings.load(tmp_path)).search(["fever"], 1)
