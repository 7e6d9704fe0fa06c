"""Near-duplicates: the same report published twice, with small changes, counts once.

Documents are taken in the order of their year, then id; each is compared with those before it, and one that resembles a
document that stays is dropped. So nothing is ever dropped in favour of something that is dropped itself. Every pair
found is reported with its score, save that in a crowd of copies only the first few dropped ones are compared further.

Two measures: the Jaccard index of five-word shingles (`minhash`: candidates by bands, then verified exactly) finds
copies with changed words; the cosine of sentence vectors (`embedding`) finds texts that say the same in other words.

A copy with one word in five changed keeps a Jaccard index of about 0.2, one in ten 0.42, one in twenty 0.63, while the
closest of 1,500 unrelated reports reach 0.07: hence the low default threshold. Shingles, signatures (under 2 kB per
document) and the keys of their bands (as much again) lie in temporary files.

Unrelated reports share a band in 3 of 10,000 pairs: five billion pairs of six million documents. So the bands are
compared apart, by processes or on a cluster, each as a join of the documents with the same key. What is left are
documents whose signature agrees with another's; the command compares those by their shingles, in order.

MinHash: a text is the set of its runs of five words. The smallest value of a set under a seeded hash is the same for
two sets with the probability of their Jaccard index, so a signature of many such values estimates it, and cutting
signatures into bands finds pairs above a threshold without comparing all.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.corpus.filter import KEPT, Documents, FilterStep, FilterTable, FilterVerdict, Judge, PreparedFilter
from hoofbeat.engine import current_engine
from hoofbeat.facets import year_of
from hoofbeat.models.encoder import Encoder, load_encoder
from hoofbeat.models.encoders.encoder_base import encoded_blocks
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.records import Document
from hoofbeat.store.files import cache_folder, output_errors

Shingles = NDArray[np.uint64]
Signature = NDArray[np.uint32]
WIDTH = 5
SEED = 20240229
MAX_SIGNATURE = 512
MISSED = 0.005
_WORD = re.compile(r"\w+")
_REMEMBERED = 200_000
_BLOCK = 2048
_CROWDED = 64
_PAIRS_AT_ONCE = 512
_ROWS_AT_ONCE = 100_000
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


class Shingler:
    """Texts to sets of hashed shingles; words' hashes are remembered, up to a limit."""

    def __init__(self, width: int = WIDTH) -> None:
        self.width = width
        self._hashes: dict[str, int] = {}

    def __call__(self, text: str) -> Shingles:
        """The distinct shingles of a text, sorted; a text shorter than one is a single shingle, an empty one none."""
        words = _WORD.findall(text.lower())
        if not words:
            return np.zeros(0, np.uint64)
        if len(self._hashes) > _REMEMBERED:
            self._hashes.clear()
        known = self._hashes
        for word in words:
            if word not in known:
                known[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
        hashes = np.fromiter((known[word] for word in words), np.uint64, len(words))
        width = min(self.width, len(words))
        mixed = np.zeros(len(words) - width + 1, np.uint64)
        for place in range(width):
            mixed = mixed * _BASE + hashes[place : place + len(mixed)]
        return np.unique(_scattered(mixed))


class Banding(Struct, frozen=True):
    """How a signature is cut: `bands` bands of `rows` values; a pair is compared when one whole band agrees."""

    bands: int
    rows: int

    @property
    def size(self) -> int:
        """The values of a signature."""
        return self.bands * self.rows

    @staticmethod
    def for_threshold(threshold: float) -> Banding:
        """The widest bands that miss fewer than one pair in 200 at the threshold, within the largest signature."""
        for rows in range(12, 1, -1):
            chance = threshold**rows
            bands = 1 if chance >= 1 else math.ceil(math.log(MISSED) / math.log1p(-chance))
            if bands * rows <= MAX_SIGNATURE:
                return Banding(max(bands, 8), rows)
        return Banding(MAX_SIGNATURE, 1)


class Signer:
    """Sets of shingles to signatures, by seeded hashes."""

    def __init__(self, banding: Banding, seed: int = SEED) -> None:
        self.banding = banding
        random = np.random.default_rng(seed)
        self._factors = random.integers(0, 2**32, banding.size, np.uint32) | np.uint32(1)
        self._offsets = random.integers(0, 2**32, banding.size, np.uint32)

    def __call__(self, shingles: Shingles) -> Signature:
        """The smallest value of the set under each hash."""
        lowest = np.full(self.banding.size, np.iinfo(np.uint32).max, np.uint32)
        values = (shingles >> np.uint64(32)).astype(np.uint32)
        for start in range(0, len(values), _BLOCK):
            block = values[start : start + _BLOCK]
            hashed = self._factors[:, None] * block[None, :]
            hashed += self._offsets[:, None]
            np.minimum(lowest, hashed.min(axis=1), out=lowest)
        return lowest

    def band_keys(self, signatures: NDArray[np.uint32]) -> Iterator[NDArray[np.uint64]]:
        """Band by band, one number for each signature: equal where the band is."""
        for start in range(0, self.banding.size, self.banding.rows):
            keys = np.zeros(len(signatures), np.uint64)
            for place in range(start, start + self.banding.rows):
                keys = _scattered(keys * _BASE + signatures[:, place].astype(np.uint64))
            yield keys


class SignTexts:
    """The work of a worker that signs: the shingles and the signature of each text."""

    def __init__(self, shingler: Shingler, signer: Signer) -> None:
        self._shingler = shingler
        self._signer = signer

    def __call__(self, texts: Sequence[str]) -> list[tuple[Shingles, Signature]]:
        """Shingles and signature of some texts."""
        return [(shingles, self._signer(shingles)) for shingles in map(self._shingler, texts)]


class SignatureFiles:
    """The signatures of all documents in a file, and the keys of each band in another, as workers map them."""

    def __init__(self, folder: Path, banding: Banding) -> None:
        self.folder = folder
        self._banding = banding

    def write(self, blocks: Iterable[Sequence[Signature]]) -> None:
        """Write the signatures, in the order of the documents."""
        with (self.folder / "signatures").open("wb") as file:
            for block in blocks:
                file.writelines(signature.tobytes() for signature in block)

    def write_keys(self, signer: Signer) -> int:
        """Write the keys, band by band; how many documents there are."""
        signatures = self.signatures()
        count = len(signatures)
        with (self.folder / "keys").open("wb") as file:
            file.truncate(8 * count * self._banding.bands)
            for start in range(0, count, _ROWS_AT_ONCE):
                for band, keys in enumerate(signer.band_keys(signatures[start : start + _ROWS_AT_ONCE])):
                    file.seek(8 * (band * count + start))
                    file.write(keys.tobytes())
        return count

    def signatures(self) -> NDArray[np.uint32]:
        """All signatures, mapped."""
        return _mapped(self.folder / "signatures", np.uint32).reshape(-1, self._banding.size)

    def keys(self, band: int) -> NDArray[np.uint64]:
        """The keys of one band, mapped."""
        keys: NDArray[np.uint64] = _mapped(self.folder / "keys", np.uint64).reshape(self._banding.bands, -1)[band]
        return keys


class FindSuspects:
    """The work of a worker that compares: documents whose signature agrees with another's that shares a band."""

    def __init__(self, files: SignatureFiles, least: float) -> None:
        self._files = files
        self._least = least

    def __call__(self, bands: Iterable[int]) -> NDArray[np.int64]:
        """Documents that agree with one in the same bucket of these bands, ascending."""
        signatures = self._files.signatures()
        found = np.zeros(len(signatures), bool)
        for band in bands:
            keys = self._files.keys(band)
            order = np.argsort(keys, kind="stable")
            ordered = keys[order]
            starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
            sizes = np.diff(np.concatenate([starts, [len(ordered)]]))
            for start, size in zip(starts[sizes > _CROWDED].tolist(), sizes[sizes > _CROWDED].tolist(), strict=True):
                self._in_crowd(order[start : start + size], signatures, found)
            at = np.flatnonzero(np.repeat(sizes <= _CROWDED, sizes))
            for distance in range(1, _CROWDED):  # the pairs of small buckets: neighbours, then next but one, ...
                at = at[at + distance < len(ordered)]
                at = at[ordered[at] == ordered[at + distance]]
                for start in range(0, len(at), _PAIRS_AT_ONCE):
                    one, other = (
                        order[at[start : start + _PAIRS_AT_ONCE]],
                        order[at[start : start + _PAIRS_AT_ONCE] + distance],
                    )
                    near = _agreement(signatures[one], signatures[other]) >= self._least
                    found[one[near]] = found[other[near]] = True
        return np.flatnonzero(found)

    def _in_crowd(self, members: NDArray[np.int64], signatures: NDArray[np.uint32], found: NDArray[np.bool_]) -> None:
        """A large bucket, such as one of many copies: a document that is found already looks for no other partner."""
        left = members
        for one in members.tolist():
            if found[one]:
                continue
            left = left[left != one]
            for start in range(0, len(left), _PAIRS_AT_ONCE):
                others = left[start : start + _PAIRS_AT_ONCE]
                near = others[_agreement(signatures[others], signatures[one]) >= self._least]
                found[near] = True
                found[one] |= len(near) > 0


def jaccard(one: Shingles, other: Shingles) -> float:
    """The exact Jaccard index of two sets of shingles; two empty ones share nothing."""
    if not len(one) or not len(other):
        return 0.0
    shared = len(np.intersect1d(one, other, assume_unique=True))
    return shared / (len(one) + len(other) - shared)


def _agreement(some: NDArray[np.uint32], other: NDArray[np.uint32]) -> NDArray[np.float64]:
    """The share of equal values of signatures, row by row."""
    share: NDArray[np.float64] = (some == other).mean(axis=1) if len(some) else np.zeros(0)
    return share


def _mapped(file: Path, kind: type[np.generic]) -> NDArray[Any]:
    return np.asarray(np.memmap(file, kind, "r")) if file.stat().st_size else np.zeros(0, kind)


def _scattered(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * _MIX[0]
    values = (values ^ (values >> np.uint64(27))) * _MIX[1]
    result: NDArray[np.uint64] = values ^ (values >> np.uint64(31))
    return result


JACCARD = 0.15
COSINE = 0.95
CROWD = 8
PAIRS = "duplicates.tsv"
HEADER = ("first", "second", "score", "kept")
WINDOW_WORDS = 150
WINDOWS = 4
_NO_YEAR = 9999
_DOCUMENTS_AT_ONCE = 512
_TEXTS_AT_ONCE = 64


class DuplicatePair(Struct, frozen=True):
    """Two documents that resemble each other: `first` is the earlier by year and id; `kept` is the one that stays.

    `kept` is empty where both resemble a third that stays.
    """

    first: str
    second: str
    score: float
    kept: str


class Duplicates(Struct, frozen=True):
    """All pairs found, and for each document that is dropped the closest one that stays, with the score."""

    pairs: tuple[DuplicatePair, ...]
    dropped: dict[str, tuple[str, float]]


def minhash_duplicates(
    documents: Iterable[Document],
    threshold: float = JACCARD,
    *,
    width: int = WIDTH,
    seed: int = SEED,
    progress: Progress = SILENT,
) -> Duplicates:
    """Documents whose shingles have a Jaccard index of at least `threshold` (above 0, up to 1)."""
    signer = Signer(Banding.for_threshold(threshold), seed)
    names = _Names()
    with _work_folder() as folder:
        files = SignatureFiles(folder, signer.banding)
        with (folder / "shingles").open("w+b") as file, progress.task("Read documents", None) as task:
            spill = _Spill(file)
            blocks = ([document.text for document in block] for block in names.noted(documents, _TEXTS_AT_ONCE))
            files.write(_signed(current_engine().map(SignTexts(Shingler(width), signer), blocks), spill, task))
            least = threshold - 4 * (threshold * (1 - threshold) / signer.banding.size) ** 0.5
            suspects = [number for number in _suspects(files, signer, least, progress) if spill.size(number)]
            signatures = files.signatures()[suspects]
            buckets = _Buckets(signer, signatures)
            found = _Found(names)
            for place in sorted(range(len(suspects)), key=lambda place: names.order_of(suspects[place])):
                near = buckets.near(place)
                agree = _agreement(signatures[near], signatures[place])
                scores = [
                    (suspects[other], score)
                    for other in near[agree >= least].tolist()
                    if (score := jaccard(spill.get(suspects[place]), spill.get(suspects[other]))) >= threshold
                ]
                buckets.enter(place, dropped=found.decide(suspects[place], scores))
    return found.result()


@contextmanager
def _work_folder() -> Iterator[Path]:
    """A folder for files that workers read, gone at the end; on a cluster in the cache, which all machines share."""
    root = Path(tempfile.gettempdir()) if current_engine().name == "local" else cache_folder("compare")
    with output_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root) as folder:
            yield Path(folder)


def _signed(
    blocks: Iterable[Sequence[tuple[Shingles, Signature]]], spill: _Spill, task: Task
) -> Iterator[list[Signature]]:
    """The signatures of blocks of texts, whose shingles are put aside."""
    for block in blocks:
        for shingles, _ in block:
            spill.add(shingles)
        yield [signature for _, signature in block]
        task.advance(len(block))


def _suspects(files: SignatureFiles, signer: Signer, least: float, progress: Progress) -> list[int]:
    """The documents that share a band with one whose signature agrees with theirs: the bands are looked at apart.

    Only they can be near-duplicates, so only they are compared by their shingles, in their order.
    """
    count = files.write_keys(signer)
    together = max(1, _ROWS_AT_ONCE // max(1, count))
    bands = signer.banding.bands
    parts = [range(first, min(first + together, bands)) for first in range(0, bands, together)] if count else []
    found = np.zeros(count, bool)
    with progress.task("Compare signatures", len(parts)) as task:
        for numbers in current_engine().map(FindSuspects(files, least), parts, sees=[files.folder]):
            found[numbers] = True
            task.advance()
    return np.flatnonzero(found).tolist()


def embedding_duplicates(
    documents: Iterable[Document], encoder: Encoder, threshold: float = COSINE, *, progress: Progress = SILENT
) -> Duplicates:
    """Documents whose vectors have a cosine of at least `threshold`; a vector is the mean over some windows of text."""
    names = _Names()
    blocks: list[NDArray[np.float32]] = []
    sizes: deque[list[int]] = deque()

    def windows() -> Iterator[list[str]]:
        for block in names.noted(documents, _DOCUMENTS_AT_ONCE):
            cut = [opening_windows(f"{document.title}\n{document.text}") for document in block]
            sizes.append(list(map(len, cut)))
            yield [text for texts in cut for text in texts]

    with progress.task("Encode documents", None) as task:
        for encoded in encoded_blocks(encoder, windows()):
            blocks.append(_mean_vectors(encoded, sizes.popleft()))
            task.advance(len(blocks[-1]))
    if not blocks:
        return Duplicates((), {})
    order = np.array(names.in_order())
    vectors = np.concatenate(blocks)[order]
    found = _Found(names)
    for start in range(0, len(order), _DOCUMENTS_AT_ONCE):
        end = min(start + _DOCUMENTS_AT_ONCE, len(order))
        cosines = vectors[start:end] @ vectors[:end].T
        for row in range(start, end):
            line = cosines[row - start, :row]
            near = np.flatnonzero(line >= threshold)
            scores = zip(order[near].tolist(), line[near].tolist(), strict=True)
            found.decide(int(order[row]), found.worth_telling(list(scores)))
    return found.result()


def opening_windows(text: str, windows: int = WINDOWS, words: int = WINDOW_WORDS) -> list[str]:
    """Up to `windows` stretches of a text, spread evenly from its beginning to its end."""
    listed = text.split()
    if len(listed) <= words:
        return [" ".join(listed)]
    count = min(windows, -(-len(listed) // words))
    starts = [round(place * (len(listed) - words) / (count - 1)) for place in range(count)]
    return [" ".join(listed[start : start + words]) for start in starts]


class _Names:
    """Ids and years of the documents in the order they came."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self._years = array("h")

    def add(self, document: Document) -> None:
        self.ids.append(document.id)
        self._years.append(year_of(document) or _NO_YEAR)

    def noted(self, documents: Iterable[Document], size: int) -> Iterator[list[Document]]:
        """The documents in blocks, each noted as it goes by."""
        stream = iter(documents)
        while block := list(islice(stream, size)):
            for document in block:
                self.add(document)
            yield block

    def order_of(self, number: int) -> tuple[int, str]:
        return self._years[number], self.ids[number]

    def in_order(self) -> list[int]:
        return sorted(range(len(self.ids)), key=self.order_of)


class _Found:
    """Pairs and decisions so far; documents come in order."""

    def __init__(self, names: _Names) -> None:
        self._ids = names.ids
        self._pairs: list[tuple[int, int, float]] = []
        self._dropped: dict[int, tuple[int, float]] = {}

    def decide(self, number: int, scores: Sequence[tuple[int, float]]) -> bool:
        """Take in what a document resembles; says whether it is dropped."""
        self._pairs += [(other, number, score) for other, score in scores]
        staying = [(score, -place, other) for place, (other, score) in enumerate(scores) if other not in self._dropped]
        if staying:
            score, _, other = max(staying)
            self._dropped[number] = other, score
        return bool(staying)

    def worth_telling(self, scores: list[tuple[int, float]]) -> list[tuple[int, float]]:
        """Those that stay, and the first few of those that do not."""
        others = [each for each in scores if each[0] in self._dropped]
        return [each for each in scores if each[0] not in self._dropped] + others[:CROWD]

    def result(self) -> Duplicates:
        ids = self._ids
        pairs = [
            DuplicatePair(ids[first], ids[second], round(score, 6), self._kept(first, second))
            for first, second, score in self._pairs
        ]
        dropped = {ids[number]: (ids[other], round(score, 6)) for number, (other, score) in self._dropped.items()}
        return Duplicates(tuple(sorted(pairs, key=lambda pair: (-pair.score, pair.first, pair.second))), dropped)

    def _kept(self, *numbers: int) -> str:
        return next((self._ids[number] for number in numbers if number not in self._dropped), "")


class _Spill:
    """The shingles of all documents in a temporary file, each to be had by number."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._ends = array("q", [0])

    def add(self, shingles: NDArray[np.uint64]) -> None:
        self._file.write(shingles.tobytes())
        self._ends.append(self._ends[-1] + shingles.nbytes)

    def size(self, number: int) -> int:
        return self._ends[number + 1] - self._ends[number]

    def get(self, number: int) -> NDArray[np.uint64]:
        self._file.flush()
        start, end = self._ends[number], self._ends[number + 1]
        return np.frombuffer(os.pread(self._file.fileno(), end - start, start), np.uint64)


class _Buckets:
    """Which documents share a band with which: only bands that at least two documents share are remembered."""

    def __init__(self, signer: Signer, signatures: NDArray[np.uint32]) -> None:
        documents: list[NDArray[np.int32]] = []
        numbers: list[NDArray[np.int32]] = []
        count = 0
        for keys in signer.band_keys(signatures):
            _, inverse, sizes = np.unique(keys, return_inverse=True, return_counts=True)
            number = np.cumsum(sizes > 1) - 1 + count
            shared = np.flatnonzero(sizes[inverse] > 1)
            documents.append(shared.astype(np.int32))
            numbers.append(number[inverse[shared]].astype(np.int32))
            count += int((sizes > 1).sum())
        owner = np.concatenate(documents)
        self._of = np.concatenate(numbers)[np.argsort(owner, kind="stable")]
        self._ends = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(signatures)))])
        self._members: dict[int, list[int]] = {}
        self._dropped: dict[int, int] = {}

    def near(self, number: int) -> NDArray[np.int64]:
        """The documents entered so far that share a bucket with this one."""
        found = {other for bucket in self._buckets(number) for other in self._members.get(bucket, ())}
        return np.array(sorted(found), np.int64)

    def enter(self, number: int, *, dropped: bool) -> None:
        """Enter a document; of dropped ones a bucket takes a few only, so that a crowd of copies costs no more."""
        for bucket in self._buckets(number):
            if dropped:
                if self._dropped.get(bucket, 0) >= CROWD:
                    continue
                self._dropped[bucket] = self._dropped.get(bucket, 0) + 1
            self._members.setdefault(bucket, []).append(number)

    def _buckets(self, number: int) -> list[int]:
        buckets: list[int] = self._of[self._ends[number] : self._ends[number + 1]].tolist()
        return buckets


def _mean_vectors(encoded: NDArray[np.float32], sizes: Sequence[int]) -> NDArray[np.float32]:
    """A vector for each document, from those of its windows."""
    rows = []
    place = 0
    for size in sizes:
        mean = encoded[place : place + size].mean(axis=0, dtype=np.float64)
        rows.append(mean / (np.linalg.norm(mean) or 1.0))
        place += size
    return np.array(rows, np.float32)


def unique_minhash(threshold: float = JACCARD, *, width: int = WIDTH, seed: int = SEED) -> FilterStep:
    """Drops documents whose words, five at a time, overlap those of an earlier one."""

    def prepare(documents: Documents, progress: Progress) -> PreparedFilter:
        found = minhash_duplicates(documents(), threshold, width=width, seed=seed, progress=progress)
        return PreparedFilter(_judge(found), {PAIRS: _table(found)})

    given = {"width": (width, WIDTH), "seed": (seed, SEED)}
    more = "".join(f", {name}={value}" for name, (value, usual) in given.items() if value != usual)
    return FilterStep(
        name="unique",
        line=f"unique(minhash, {threshold:g}{more})",
        prepare=prepare,
        settings={"method": "minhash", "threshold": threshold, "words": width},
        seeds={"minhash": seed},
        two_pass=True,
    )


def unique_embedding(
    threshold: float = COSINE, *, encoder: str = "minilm", load: Callable[[str], Encoder] = load_encoder
) -> FilterStep:
    """Drops documents that say the same as an earlier one, by the cosine of their vectors."""

    def prepare(documents: Documents, progress: Progress) -> PreparedFilter:
        loaded = load(encoder)
        found = embedding_duplicates(documents(), loaded, threshold, progress=progress)
        return PreparedFilter(_judge(found), {PAIRS: _table(found)}, {"encoder": loaded.identity})

    more = f", encoder={encoder}" if encoder != "minilm" else ""
    return FilterStep(
        name="unique",
        line=f"unique(embedding, {threshold:g}{more})",
        prepare=prepare,
        settings={
            "method": "embedding",
            "threshold": threshold,
            "encoder": encoder,
            "windows": WINDOWS,
            "window_words": WINDOW_WORDS,
        },
        two_pass=True,
    )


def _judge(found: Duplicates) -> Judge:
    def judge(document: Document) -> FilterVerdict:
        if document.id not in found.dropped:
            return KEPT
        other, score = found.dropped[document.id]
        return FilterVerdict("near-duplicate", f"of {other}, score {score:.3f}")

    return judge


def _table(found: Duplicates) -> FilterTable:
    rows = tuple((pair.first, pair.second, f"{pair.score:.6f}", pair.kept) for pair in found.pairs)
    return FilterTable(HEADER, rows)
