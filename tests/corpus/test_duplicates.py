"""Near-duplicates: planted ones are all found, unrelated ones are not, and the earlier one stays."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from hoofbeat.corpus import duplicates
from hoofbeat.corpus.duplicates import (
    CROWD,
    JACCARD,
    PAIRS,
    Banding,
    DuplicatePair,
    Duplicates,
    Shingler,
    Signer,
    embedding_duplicates,
    jaccard,
    minhash_duplicates,
    opening_windows,
    unique_embedding,
)
from hoofbeat.corpus.reader import read_file
from hoofbeat.models.encoder import EncoderBase, Vectors, load_encoder
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document
from hoofbeat.teaching import cases_folder
from tests.corpus.filter_documents import case_reports, changed_copy, document, parse_filter, split
from tests.helpers import needs_weights


def jaccard_by_hand(one: str, other: str, width: int) -> float:
    sets = []
    for text in (one, other):
        words = text.lower().split()
        sets.append({tuple(words[place : place + width]) for place in range(len(words) - width + 1)})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_shingles_and_their_jaccard_index_agree_with_sets() -> None:
    chance = random.Random(1)
    for width in (1, 3, 5):
        shingler = Shingler(width)
        for _ in range(20):
            one, other = (" ".join(chance.choices("abcd", k=60)) for _ in range(2))
            assert jaccard(shingler(one), shingler(other)) == pytest.approx(jaccard_by_hand(one, other, width))
    assert len(Shingler()("")) == 0
    assert jaccard(Shingler()(""), Shingler()("")) == 0
    assert jaccard(Shingler()("one, two"), Shingler()("One two!")) == 1


def test_signatures_estimate_the_index_without_bias() -> None:
    shingler, signer = Shingler(), Signer(Banding(128, 4))
    errors = []
    chance = random.Random(2)
    for _ in range(40):
        words = [str(chance.randrange(10**6)) for _ in range(600)]
        changed = [word if chance.random() < 0.9 else "x" + word for word in words]
        one, other = shingler(" ".join(words)), shingler(" ".join(changed))
        errors.append(float((signer(one) == signer(other)).mean()) - jaccard(one, other))
    assert abs(np.mean(errors)) < 0.02
    assert max(map(abs, errors)) < 0.12
    same, moved = signer(shingler("a b c d e f")), Signer(Banding(128, 4), seed=1)(shingler("a b c d e f"))
    assert (same == signer(shingler("A b c d e, f"))).all()
    assert not (same == moved).all()


@pytest.mark.parametrize("threshold", [0.05, 0.15, 0.3, 0.5, 0.8, 0.95, 1.0])
def test_bands_hardly_miss_a_pair_at_the_threshold(threshold: float) -> None:
    banding = Banding.for_threshold(threshold)
    assert banding.size <= 512
    assert (1 - threshold**banding.rows) ** banding.bands <= 0.005


def test_planted_copies_of_real_reports_are_all_found() -> None:
    reports = case_reports(500)
    chance = random.Random(3)
    planted = {}
    copies = []
    for number, original in enumerate(chance.sample(reports, 100)):
        share = 0.05 + 0.15 * number / 99
        copies.append(changed_copy(original, f"z{number:03}", share, seed=number))
        planted[copies[-1].id] = original.id
    mixed = reports + copies
    chance.shuffle(mixed)
    found = minhash_duplicates(mixed)
    assert {id: kept for id, (kept, _) in found.dropped.items()} == planted
    assert {(pair.first, pair.second, pair.kept) for pair in found.pairs} == {
        (original, copy, original) for copy, original in planted.items()
    }
    assert all(pair.score >= JACCARD for pair in found.pairs)
    by_id = {one.id: one for one in mixed}
    shingler = Shingler()
    for pair in found.pairs[::10]:
        exact = jaccard(shingler(by_id[pair.first].text), shingler(by_id[pair.second].text))
        assert pair.score == pytest.approx(exact, abs=1e-6)


def test_no_near_duplicates_among_the_real_reports() -> None:
    reports = case_reports()
    assert minhash_duplicates(reports) == Duplicates((), {})
    close = minhash_duplicates(reports, 0.06)
    assert [(pair.first, pair.second) for pair in close.pairs] == [
        ("PMC10071870", "PMC7021535"),
        ("PMC7334644", "PMC7557168"),
        ("PMC7334644", "PMC7452825"),
    ]


TEXT = " ".join(f"word{number}" for number in range(300))


def test_the_earlier_by_year_then_id_stays() -> None:
    documents = [
        document("late", text=TEXT, facets={"year": "2024"}),
        document("b", text=TEXT, facets={"year": "2021"}),
        document("a", text=TEXT, facets={"year": "2021"}),
        document("undated", text=TEXT),
        document("other", text="quite another text " * 20),
        document("empty", text=""),
        document("void", text=""),
    ]
    found = minhash_duplicates(documents)
    assert found.dropped == {"b": ("a", 1.0), "late": ("a", 1.0), "undated": ("a", 1.0)}
    assert DuplicatePair("a", "b", 1.0, "a") in found.pairs
    assert DuplicatePair("b", "late", 1.0, "") in found.pairs
    assert len(found.pairs) == 6
    assert minhash_duplicates(documents[::-1]) == found
    kept, rejected = split(documents, parse_filter("unique"))
    assert [each.id for each in kept] == ["a", "other", "empty", "void"]
    assert [(each.id, each.reason, each.details) for each in rejected][:1] == [
        ("late", "near-duplicate", "of a, score 1.000")
    ]


def test_nothing_is_dropped_for_something_that_is_dropped_itself() -> None:
    words = TEXT.split()
    chain = [
        document("a", text=" ".join(words[:200])),
        document("b", text=" ".join(words[60:260])),
        document("c", text=" ".join(words[120:300] + [f"x{n}" for n in range(20)])),
    ]
    found = minhash_duplicates(chain, 0.4)
    assert set(found.dropped) == {"b"}
    assert [(pair.first, pair.second, pair.kept) for pair in found.pairs] == [("a", "b", "a"), ("b", "c", "c")]


def test_a_crowd_of_copies_costs_no_square() -> None:
    found = minhash_duplicates([document(f"d{number:04}", text=TEXT) for number in range(400)])
    assert len(found.dropped) == 399
    assert all(kept == "d0000" for kept, _ in found.dropped.values())
    assert len(found.pairs) <= 400 * (CROWD + 1)


def test_large_buckets_are_compared_as_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(4)
    originals = [document(f"a{number:02}", text=" ".join(chance.choices(TEXT.split(), k=120))) for number in range(12)]
    copies = [
        changed_copy(original, f"{original.id}-{n}", 0.04 * n, seed=n) for original in originals for n in (1, 2, 3)
    ]
    mixed = [*originals, *copies, document("empty", text=""), document("void", text="")]
    usual = minhash_duplicates(mixed)
    assert len(usual.dropped) > 12
    monkeypatch.setattr(duplicates, "_CROWDED", 1)
    assert minhash_duplicates(mixed) == usual


class Letters(EncoderBase):
    """An encoder for tests: counts of letters."""

    name = identity = "letters"
    dimension = 26

    def encode(self, texts: Sequence[str], progress: Progress = SILENT) -> Vectors:
        rows = np.array([[text.lower().count(chr(97 + place)) for place in range(26)] for text in texts], np.float32)
        scaled: Vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        return scaled


def test_embedding() -> None:
    documents = [
        document("b", title="", text="aab", facets={"year": "2020"}),
        document("a", title="", text="baa", facets={"year": "2022"}),
        document("c", title="", text="zzz"),
    ]
    found = embedding_duplicates(documents, Letters(), 0.99)
    assert found == Duplicates((DuplicatePair("b", "a", 1.0, "b"),), {"a": ("b", 1.0)})
    step = unique_embedding(0.99, load=lambda _name: Letters())
    ready = step.prepare(lambda: iter(documents), SILENT)
    assert ready.models == {"encoder": "letters"}
    assert ready.tables[PAIRS].rows == (("b", "a", "1.000000", "b"),)
    assert not ready.judge(documents[1]).kept
    crowd = [document(f"d{number:04}", title="", text="abc") for number in range(700)]
    many = embedding_duplicates(crowd, Letters(), 0.9)
    assert len(many.dropped) == 699
    assert len(many.pairs) <= 700 * (CROWD + 1)
    assert embedding_duplicates([], Letters()) == Duplicates((), {})


def test_windows_reach_from_the_beginning_to_the_end() -> None:
    words = [str(number) for number in range(1000)]
    windows = opening_windows(" ".join(words), windows=3, words=100)
    assert [window.split()[0] for window in windows] == ["0", "450", "900"]
    assert windows[-1].split()[-1] == "999"
    assert opening_windows("one two") == ["one two"]
    assert len(opening_windows(" ".join(words[:101]), words=100)) == 2


def teaching_cases() -> list[Document]:
    return [one for path in sorted(cases_folder().glob("*.xml")) for one in read_file(path)]


def test_the_planted_twin_is_found_by_its_words() -> None:
    found = minhash_duplicates(teaching_cases())
    assert [(pair.first, pair.second, pair.kept) for pair in found.pairs] == [
        ("hbt-case-13", "hbt-case-22", "hbt-case-13")
    ]


@pytest.mark.slow
def test_the_planted_twin_is_found_by_its_meaning() -> None:
    needs_weights("minilm")
    found = embedding_duplicates(teaching_cases()[10:], load_encoder("minilm"))
    assert [(pair.first, pair.second) for pair in found.pairs] == [("hbt-case-13", "hbt-case-22")]
