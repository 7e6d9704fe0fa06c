"""The tables papers print about a corpus: what it holds by specialty, year, venue, licence, and how long its texts are.

Documents are read once, in a stream; what is kept grows with the number of different values, not of documents.
Lengths are exact up to 65,536 and beyond that rounded to three digits, so that any corpus fits the same memory.

The records at the top are what reports read; they need nothing of what computes them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.filters.language import language_of
from hoofbeat.corpus.filters.licence import licence_family
from hoofbeat.corpus.specialties import SCHEMES, THRESHOLD, gather, label_evidence, load_scheme
from hoofbeat.errors import InputError
from hoofbeat.facets import facet_values, year_of
from hoofbeat.models import weight_files
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import file_sha256
from hoofbeat.store.tables import write_jsonl, write_tsv
from hoofbeat.text import whole_number

KIND = "stats"
NO_TOKENIZER = "none"
UNKNOWN = "unknown"


class Quantiles(Struct, frozen=True, kw_only=True):
    """A distribution in the numbers the papers print."""

    count: int
    total: int
    minimum: int
    maximum: int
    mean: float
    median: float
    p75: float
    p95: float


class Share(Struct, frozen=True, kw_only=True):
    """One row of a table: a value, how many documents have it, and their share of all documents."""

    value: str
    documents: int
    share: float


class CorpusStats(Struct, frozen=True, kw_only=True):
    """What a corpus holds.

    `tables` by name (year, venue, licence, kind, language, figures), `specialties` by scheme, `lengths` by unit.
    `tokenizer` names what counted the tokens; without one there is no token row.
    """

    documents: int
    tokenizer: str
    tables: dict[str, tuple[Share, ...]]
    specialties: dict[str, tuple[Share, ...]]
    lengths: dict[str, Quantiles]
    figures: Quantiles | None

    def rows(self, name: str) -> tuple[Share, ...]:
        """The rows of one table or scheme."""
        return self.tables[name] if name in self.tables else self.specialties[name]


_EXACT = 1 << 16
_BATCH = 32
_WORD = re.compile(r"\S+")
_FACETS = ("year", "venue", "licence", "kind", "language")


class Tokenizer:
    """Counts tokens as a named tokenizer would: without special tokens, and never cut short."""

    def __init__(self, name: str, path: Path) -> None:
        from tokenizers import Tokenizer as Loaded  # noqa: PLC0415 - only where tokens are counted

        try:
            self._tokenizer: Any = Loaded.from_file(str(path))
        except Exception as err:  # the library raises bare exceptions
            raise InputError(
                f"not a readable tokenizer.json: {err}", where=str(path), fix="name the tokenizer.json of a model"
            ) from err
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()
        self.name = f"{name}@{file_sha256(path)[:12]}"

    def counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has."""
        return [len(each) for each in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the tokens of a text are."""
        found: list[tuple[int, int]] = self._tokenizer.encode(text, add_special_tokens=False).offsets
        return found


def load_tokenizer(spec: str = "minilm") -> Tokenizer | None:
    """The embedded encoder's tokenizer (`minilm`), that of a tokenizer.json file, or none at all (`none`)."""
    if spec == NO_TOKENIZER:
        return None
    if spec == "minilm":
        return _tokenizer_at(spec, weight_files.find_weight(spec)["tokenizer.json"])
    path = Path(spec)
    path = path / "tokenizer.json" if path.is_dir() else path
    if not path.is_file():
        raise InputError(
            f"there is no tokenizer {spec!r}", where=spec, fix="use minilm, none, or the path of a tokenizer.json"
        )
    return _tokenizer_at(path.parent.name or path.stem, path)


def _tokenizer_at(name: str, path: Path) -> Tokenizer:
    found = path.stat()
    return _read_tokenizer(name, path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=4)
def _read_tokenizer(name: str, path: Path, size: int, changed: int) -> Tokenizer:  # noqa: ARG001 - read again if changed
    return Tokenizer(name, path)


class _Lengths:
    """A distribution kept as counts of values."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._total = self._number = 0
        self._least: int | None = None
        self._most = 0

    def add(self, value: int) -> None:
        self._number += 1
        self._total += value
        self._least = value if self._least is None else min(value, self._least)
        self._most = max(value, self._most)
        step = 1 << max(0, value.bit_length() - 12) if value > _EXACT else 1
        self._counts[value // step * step] += 1

    def quantiles(self) -> Quantiles | None:
        if self._least is None:
            return None
        ordered = sorted(self._counts.items())
        return Quantiles(
            count=self._number,
            total=self._total,
            minimum=self._least,
            maximum=self._most,
            mean=round(self._total / self._number, 3),
            median=self._at(ordered, 0.5),
            p75=self._at(ordered, 0.75),
            p95=self._at(ordered, 0.95),
        )

    def _at(self, ordered: Sequence[tuple[int, int]], share: float) -> float:
        """The value at this share, between two values in proportion (as numpy's default)."""
        place = (self._number - 1) * share
        low, part = int(place), place - int(place)
        first, second = (_nth(ordered, rank) for rank in (low, min(low + 1, self._number - 1)))
        return round(min(float(self._most), first + (second - first) * part), 3)


def quantiles(values: Iterable[int]) -> Quantiles | None:
    """The distribution of some numbers; None where there are none."""
    lengths = _Lengths()
    for value in values:
        lengths.add(value)
    return lengths.quantiles()


def _nth(ordered: Sequence[tuple[int, int]], rank: int) -> int:
    seen = 0
    for value, count in ordered:
        seen += count
        if rank < seen:
            return value
    raise AssertionError("a rank lies beyond the last value")


def compute_stats(
    documents: Iterable[Document],
    *,
    tokenizer: Tokenizer | None = None,
    schemes: Sequence[str] = tuple(SCHEMES),
    threshold: float = THRESHOLD,
    total: int | None = None,
    progress: Progress = SILENT,
) -> CorpusStats:
    """Read documents once and count. `schemes` names the specialty schemes to label by rule (none: no labelling)."""
    chosen = [load_scheme(name) for name in schemes]
    tables: dict[str, Counter[str]] = {name: Counter() for name in (*_FACETS, "figures")}
    labels: dict[str, Counter[str]] = {scheme.name: Counter() for scheme in chosen}
    lengths = {unit: _Lengths() for unit in ("characters", "words", *(["tokens"] if tokenizer else []))}
    figures = _Lengths()
    number = 0
    with progress.task("Count", total) as task:
        for batch in _batches(documents):
            number += len(batch)
            for document in batch:
                for name, value in _values(document).items():
                    tables[name][value] += 1
                figures.add(len(document.figures))
                lengths["characters"].add(len(document.text))
                lengths["words"].add(sum(1 for _ in _WORD.finditer(document.text)))
                evidence = gather(document) if chosen else []
                for scheme in chosen:
                    labels[scheme.name][label_evidence(evidence, scheme, threshold=threshold).name] += 1
                task.advance()
            if tokenizer:
                for count in tokenizer.counts([document.text for document in batch]):
                    lengths["tokens"].add(count)
    return CorpusStats(
        documents=number,
        tokenizer=tokenizer.name if tokenizer else NO_TOKENIZER,
        tables={name: _shares(name, counts, number) for name, counts in tables.items()},
        specialties={name: _shares(name, counts, number) for name, counts in labels.items()},
        lengths={unit: each for unit, kept in lengths.items() if (each := kept.quantiles())},
        figures=figures.quantiles(),
    )


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    stream = iter(documents)
    while batch := list(islice(stream, _BATCH)):
        yield batch


def _values(document: Document) -> dict[str, str]:
    year = year_of(document)
    venues = facet_values(document.facets, "journal", "venue", "institution", "developer")
    return {
        "year": UNKNOWN if year is None else str(year),
        "venue": venues[0] if venues and venues[0] else UNKNOWN,
        "licence": _family(document.licence),
        "kind": document.kind or UNKNOWN,
        "language": language_of(document),
        "figures": str(len(document.figures)),
    }


@cache
def _family(licence: str) -> str:
    return licence_family(licence) or UNKNOWN


def _shares(name: str, counts: Mapping[str, int], number: int) -> tuple[Share, ...]:
    """Years and numbers in their order, all else by how often; what is unknown stands last."""

    def place(item: tuple[str, int]) -> tuple[bool, int, str]:
        value, count = item
        number = whole_number(value) if name in ("year", "figures") else None
        return value == UNKNOWN, -count if number is None else number, value

    return tuple(
        Share(value=value, documents=count, share=round(count / number, 6))
        for value, count in sorted(counts.items(), key=place)
    )


def write_stats(target: Path, stats: CorpusStats, corpus: Corpus, *, command: Sequence[str] = ()) -> Artefact:
    """Write an artefact of kind stats: a TSV table each, and everything once more in `stats.jsonl`."""
    with create(target, replace_kind=KIND) as draft:
        for name, rows in stats.tables.items():
            write_tsv(draft.path / f"{name}.tsv", (name, "documents", "share"), _cells(rows))
        for name, rows in stats.specialties.items():
            write_tsv(draft.path / f"specialty-{name}.tsv", ("label", "documents", "share"), _cells(rows))
        header = ("unit", *Quantiles.__struct_fields__)
        measured = {**stats.lengths, **({"figures": stats.figures} if stats.figures else {})}
        lines = [(unit, *(getattr(each, field) for field in header[1:])) for unit, each in measured.items()]
        write_tsv(draft.path / "lengths.tsv", header, lines)
        write_jsonl(draft.path / "stats.jsonl", [stats])
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"statistics of {corpus.path.name}",
                command=list(command),
                inputs=[corpus.artefact.reference()],
                settings={"tokenizer": stats.tokenizer, "schemes": list(stats.specialties)},
                counts=Counts(kept=stats.documents),
                metrics={"documents": stats.documents},
            )
        )
    return open_artefact(target, KIND)


def _cells(rows: Sequence[Share]) -> Iterator[tuple[object, ...]]:
    return ((row.value, row.documents, row.share) for row in rows)
