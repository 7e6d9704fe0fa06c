"""A long table of records as a list: where each line begins, what a list shows of it, and the facets to filter by.

A table is read once. After that a page costs what it shows: a hundred thousand documents are a hundred thousand
offsets, ids and short titles; their text stays on disk.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from hoofbeat.facets import facet_values
from hoofbeat.records import Facets
from hoofbeat.store.tables import each_line, lines_at
from hoofbeat.text import cut

T = TypeVar("T")
Places = NDArray[np.uint32]

_TITLE = 240
_FEW = 25
_MAX_FACETS = 100
_MAX_VALUES = 1_000
_MAX_VALUE = 300
_NOTE = 2_000


class ListingLine(Protocol):
    """What is read of a line: its id, what a list calls it, its facets, and figures that are added up.

    `telling` says that only those facets can be chosen by that tell some rows from others.
    """

    telling: ClassVar[bool]
    id: str

    def titled(self) -> str:
        """What a list shows of it."""
        ...

    def labels(self) -> Facets:
        """What it can be found by."""
        ...

    def figures(self) -> Mapping[str, int]:
        """What is added up over the table."""
        ...


class DocumentLine(Struct):
    """A line of `documents.jsonl`, without its text."""

    telling: ClassVar[bool] = True
    id: str
    title: str = ""
    text: msgspec.Raw = msgspec.Raw()
    kind: str = ""
    licence: str = ""
    pictures: list[Any] = field(default_factory=list, name="figures")
    tables: list[Any] = field(default_factory=list)
    facets: Facets = field(default_factory=dict)

    def titled(self) -> str:
        """Its title, or its id."""
        return self.title or self.id

    def labels(self) -> Facets:
        """Its facets, and its kind and licence."""
        more = {name: value for name, value in (("kind", self.kind), ("licence", self.licence)) if value}
        return {**more, **self.facets}

    def figures(self) -> Mapping[str, int]:
        """Figures, tables, and how many characters its text has."""
        written = bytes(self.text)
        characters = len(msgspec.json.decode(written, type=str)) if written else 0
        return {"figures": len(self.pictures), "tables": len(self.tables), "characters": characters}


class QuestionLine(Struct):
    """A line of `questions.jsonl`."""

    telling: ClassVar[bool] = True
    id: str
    text: str
    context: msgspec.Raw = msgspec.Raw()
    answer: str = ""
    options: list[Any] = []
    images: list[Any] = []
    documents: list[Any] = []
    evidence: list[Any] = []
    facets: Facets = {}

    def titled(self) -> str:
        """The question."""
        return self.text

    def labels(self) -> Facets:
        """Its facets."""
        return self.facets

    def figures(self) -> Mapping[str, int]:
        """Whether it has a gold answer, options, images, sources and evidence."""
        return {
            "with a gold answer": bool(self.answer),
            "multiple choice": bool(self.options),
            "with images": bool(self.images),
            "with a source": bool(self.documents),
            "with evidence": bool(self.evidence),
        }


class _Candidate(Struct, kw_only=True):
    """What did not become a question."""

    telling: ClassVar[bool] = False
    id: str
    step: str
    values: dict[str, Any] = {}

    def titled(self) -> str:
        """The candidate's title, where it has one."""
        title = self.values.get("title")
        return title if isinstance(title, str) and title else self.id

    def figures(self) -> Mapping[str, int]:
        """Nothing is added up."""
        return {}


class RejectedLine(_Candidate, kw_only=True):
    """A line of `rejected.jsonl`."""

    reason: str

    def labels(self) -> Facets:
        """The step that rejected it, and why."""
        return {"step": self.step, "reason": self.reason}


class _Why(Struct):
    kind: str


class FailedLine(_Candidate, kw_only=True):
    """A line of `failed.jsonl`."""

    failure: _Why

    def labels(self) -> Facets:
        """The step at which it was lost, and the kind of failure."""
        return {"step": self.step, "failure": self.failure.kind}


class ListingRow(Struct, frozen=True):
    """One row of a list: its number from 1, id and title."""

    number: int
    id: str
    title: str


class Facet(Struct, frozen=True):
    """A facet with its values and how many rows have each, most first; `chosen` is the value that is chosen."""

    name: str
    values: tuple[tuple[str, int], ...]
    chosen: str = ""


class Listing:
    """A table that was read once. Rows are counted from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.ids: list[str] = []
        self.titles: list[str] = []
        self.totals: dict[str, int] = {}
        self.left_out: dict[str, str] = {}
        """Facets that rows can't be filtered by, and why."""
        self._offsets = array("Q")
        self._numbers: dict[str, int] | None = None
        self._values: dict[str, dict[str, Places]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def number(self, id: str) -> int | None:
        """The number of the row with this id."""
        if self._numbers is None:
            self._numbers = {name: number for number, name in enumerate(self.ids, start=1)}
        return self._numbers.get(id)

    def listed(self, number: int) -> ListingRow:
        """A row as a list shows it."""
        return ListingRow(number, self.ids[number - 1], self.titles[number - 1])

    def record(self, number: int, kind: type[T]) -> T:
        """A row, read from its table."""
        return lines_at(self.path, [self._offsets[number - 1]], kind)[0]

    def matching(self, chosen: Mapping[str, str], among: Sequence[int] | None = None) -> Sequence[int]:
        """The numbers of the rows that have all of these values, in order; `among` some rows only."""
        if not chosen:
            return range(1, len(self) + 1) if among is None else among
        places: Places = self._places(next(iter(chosen.items())))
        for each in list(chosen.items())[1:]:
            places = np.intersect1d(places, self._places(each), assume_unique=True)
        if among is not None:
            places = np.intersect1d(places, np.asarray(among, dtype=np.uint32) - 1)
        return [int(place) + 1 for place in places]

    def _places(self, choice: tuple[str, str]) -> Places:
        return self._values.get(choice[0], {}).get(choice[1], np.empty(0, dtype=np.uint32))

    @property
    def facet_names(self) -> list[str]:
        """The facets that rows can be chosen by."""
        return list(self._values)

    def facets(self, chosen: Mapping[str, str], among: Sequence[int] | None = None) -> list[Facet]:
        """Each facet with how many of the rows have each value that all other choices leave; `among` some rows only."""
        found = []
        for name, values in self._values.items():
            others = {key: value for key, value in chosen.items() if key != name}
            counts = {value: len(places) for value, places in values.items()}
            if others or among is not None:
                here = np.zeros(len(self), dtype=bool)
                here[np.fromiter(self.matching(others, among), dtype=np.int64) - 1] = True
                counts = {value: int(here[places].sum()) for value, places in values.items()}
            kept = [(value, count) for value, count in counts.items() if count or value == chosen.get(name)]
            kept.sort(key=lambda pair: (-pair[1], pair[0]))
            found.append(Facet(name, tuple(kept), chosen.get(name, "")))
        return found


def read_listing(
    path: Path, kind: type[ListingLine], *, told: Callable[[int], None] = lambda _: None, note: int = _NOTE
) -> Listing:
    """Read a table once; `told` hears every now and then how many bytes have been read."""
    made = Listing(path)
    collected = _Collected()
    for place, (offset, line) in enumerate(each_line(path, kind)):
        made.ids.append(line.id)
        made.titles.append(cut(line.titled()[: 4 * _TITLE], _TITLE))
        made._offsets.append(offset)
        collected.add(place, line.labels())
        for name, number in line.figures().items():
            made.totals[name] = made.totals.get(name, 0) + number
        if (place + 1) % note == 0:
            told(offset)
    made._values, made.left_out = collected.done(len(made), telling=kind.telling)
    return made


class _Collected:
    """Facets as a table is read: which rows have which value; a facet of too many or too long values is let go."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, array[int]]] = {}
        self._left_out: dict[str, str] = {}

    def add(self, place: int, facets: Facets) -> None:
        """Take in one row."""
        for name in facets:
            if name in self._left_out:
                continue
            rows = self._rows.get(name)
            if rows is None:
                if len(self._rows) >= _MAX_FACETS:
                    continue
                rows = self._rows[name] = {}
            for each in facet_values(facets, name):
                known = rows.get(each)
                if known is None:
                    if len(rows) >= _MAX_VALUES or len(each) > _MAX_VALUE:
                        why = "too many values" if len(each) <= _MAX_VALUE else "values that are whole texts"
                        self._left_out[name] = why
                        del self._rows[name]
                        break
                    known = rows[each] = array("I")
                known.append(place)

    def done(self, count: int, *, telling: bool) -> tuple[dict[str, dict[str, Places]], dict[str, str]]:
        """Facets by name; one that tells no rows apart, or every row from every other, can't be chosen by.

        Those with few values come first."""
        found: dict[str, dict[str, Places]] = {}
        for name in sorted(self._rows):
            rows = self._rows[name]
            if telling and count > 1 and len(rows) >= count:
                self._left_out[name] = "a different value in every row"
            elif telling and count > 1 and len(rows) == 1 and len(next(iter(rows.values()))) == count:
                self._left_out[name] = f"all rows have {next(iter(rows))!r}"
            elif rows:
                found[name] = {value: np.array(places, dtype=np.uint32) for value, places in sorted(rows.items())}
        few = sorted(found, key=lambda name: (len(found[name]) > _FEW, name))
        return {name: found[name] for name in few}, dict(sorted(self._left_out.items()))
