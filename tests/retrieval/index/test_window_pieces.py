"""Passages longer than an encoder's window: nothing is left out of vectors, unless the line says so."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.index.dense_search import DenseSearcher
from hoofbeat.retrieval.index.kept_parts import PartPlace
from hoofbeat.retrieval.index.window_pieces import PieceSearcher, texts_to_encode
from hoofbeat.retrieval.index_set import IndexSet
from hoofbeat.retrieval.retriever import Retriever
from tests.retrieval.support import HashedWords

PLANTED = "Lychee haematuria resolved zinc promptly"
FILLER = "the patient was seen and examined again later"


class ShortSighted(HashedWords):
    """Reads no more than 256 tokens of a text, as sentence encoders do, without a word."""

    name = identity = "short-sighted"
    window = 256
    dimension = 1 << 15  # no two of the words below share a number

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> NDArray[np.float32]:
        return super().encode([" ".join(text.split()[: self.window]) for text in texts], progress)


def _words(count: int, seed: int) -> str:
    return " ".join(f"{FILLER.split()[number % 8]}{(number + seed) % 97}" for number in range(count))


DOCUMENTS = [
    Document(id="planted", title="Case", text=f"{_words(300, 1)} {PLANTED} {_words(200, 2)}"),
    *(Document(id=f"other{number}", title="Case", text=_words(505, 7 * number)) for number in range(8)),
]
SHORT = [Document(id=f"short{number}", title="Case", text=_words(100, number)) for number in range(4)]


def a_retriever(line: str, documents: Sequence[Document] = DOCUMENTS, folder: Path | None = None) -> Retriever:
    content = "c" * 24 if folder else ""
    return Retriever(
        IndexSet(
            documents, encoder=lambda _: ShortSighted(), place=PartPlace(folder) if folder else None, content=content
        ),
        line,
    )


@pytest.mark.parametrize("line", ["dense[chunk=tokens:512/128]", "dense[chunk=whole]", "dense[chunk=whole,search=ivf]"])
def test_a_sentence_behind_the_window_is_found(line: str, tmp_path: Path) -> None:
    retriever = a_retriever(line, folder=tmp_path)
    (hit, *_) = retriever.search([("q", PLANTED)], 3)[0]
    assert hit.document == "planted"
    assert len({each.document for each in retriever.search([("q", PLANTED)], 9)[0]}) == 9
    assert PLANTED in retriever.indexes.passage(hit.passage).text  # the passage is as long as the line asks for
    (note,) = retriever.notes
    assert "9 of 9 passages are longer than the 256 tokens that short-sighted reads" in note
    assert "a vector for each part" in note
    again = a_retriever(line, folder=tmp_path)  # from the kept index
    assert again.search([("q", PLANTED)], 3) == retriever.search([("q", PLANTED)], 3)
    assert again.notes == retriever.notes


def test_only_the_beginning_is_read_where_the_line_says_so() -> None:
    retriever = a_retriever("dense[chunk=tokens:512/128,truncate=yes]")
    (hit, *_) = retriever.search([("q", PLANTED)], 1)[0]
    assert hit.document != "planted" or hit.score < 0.01
    (note,) = retriever.notes
    assert "no vector covers 49.4% of the text" in note


def test_nothing_changes_where_every_passage_fits() -> None:
    read, cut = (a_retriever(line, SHORT) for line in ("dense", "dense[truncate=yes]"))
    found = [
        [(hit.document, hit.score) for hit in each.search([("q", "patient3 seen4")], 4)[0]] for each in (read, cut)
    ]
    assert found[0] == found[1]
    assert read.notes == []
    assert "rows" not in str(read.describe())


def test_a_query_longer_than_the_window_is_pointed_out() -> None:
    retriever = a_retriever("dense", SHORT)
    retriever.search([("q", _words(300, 5))], 2)
    assert "queries longer than the 256 tokens that short-sighted reads were cut" in " ".join(retriever.notes)
    pieces = a_retriever("dense[qchunk=tokens:256]", SHORT)
    pieces.search([("q", _words(300, 5))], 2)
    assert pieces.notes == []


def test_an_encoder_that_does_not_say_what_it_reads_is_pointed_out() -> None:
    retriever = Retriever(IndexSet(SHORT, encoder=lambda _: HashedWords()), "dense")
    retriever.search([("q", "patient")], 2)
    assert "the window of hashed-words is unknown" in " ".join(retriever.notes)


def test_hero_searches_behind_the_window() -> None:
    long = [Document(id=each.id, title=f"{'A long heading of a section ' * 30}", text=each.text) for each in DOCUMENTS]
    hero = a_retriever("hero[bm25=0,sections=0,titles=0,route=0,fallback=off,expand=none,parents=off]", long)
    found = {each.document: each for each in hero.evidence([("q", PLANTED)], [each.id for each in long])}
    assert PLANTED.split(maxsplit=1)[0] in found["planted"].passages[0].text


def test_parts_cover_the_passage_and_fit_the_window() -> None:
    text = _words(1000, 3)
    passage = Passage(id="p", document="d", heading="Course of the disease", text=text, end=len(text))
    encoder = ShortSighted()
    made = texts_to_encode([passage], encoder, "passage: ", truncate=False)
    assert made.tally is not None
    assert (made.tally.longer, made.tally.tokens, made.tally.behind) == (1, 1004, 1004 - 255)
    assert all(len(encoder.token_spans(f"passage: {each}")) <= 256 for each in made.texts)
    assert all(each.startswith("Course of the disease\n") for each in made.texts)
    words = [each.split("\n")[1].split() for each in made.texts]
    joined = words[0] + [word for before, part in pairwise(words) for word in _new(before, part)]
    assert joined == text.split()


def _new(before: list[str], part: list[str]) -> list[str]:
    shared = next(count for count in range(len(part), -1, -1) if before[-count:] == part[:count] or not count)
    return part[shared:]


def test_rows_of_one_passage_count_once() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(40, 8)).astype(np.float32)
    owners = np.sort(rng.integers(0, 12, 40))
    owners = np.unique(owners, return_inverse=True)[1].astype(np.int64)
    queries = rng.normal(size=(5, 8)).astype(np.float32)
    search = PieceSearcher(DenseSearcher(vectors), owners)
    count = int(owners[-1]) + 1
    best = np.full((5, count), -np.inf)
    np.maximum.at(best.T, owners, (queries @ vectors.T).T)
    for k in (1, 3, count):
        for query, ranking in enumerate(search.search(queries, k)):
            assert ranking.indices.tolist() == np.argsort(-best[query], kind="stable")[:k].tolist()
    bounds = np.array([0, 4, 4, 9, count])
    for query, found in enumerate(search.search_parts(queries, 3, bounds, [0, 1, 3])):
        for number, part in enumerate((0, 1, 3)):
            here = np.arange(bounds[part], bounds[part + 1])
            expected = here[np.argsort(-best[query][here], kind="stable")[:3]]
            assert found.ranking(number).indices.tolist() == expected.tolist()
    allowed = np.array([1, 5, 7])
    assert set(search.search(queries, 3, allowed)[0].indices.tolist()) == {1, 5, 7}
