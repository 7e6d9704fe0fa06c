"""The way back up in HERO: from the best children to their parent sections, the neighbours of those, and passages.

Sections that hold children divide a document's children into runs, so a passage that goes back to its parent and its
neighbours is a run of children too, and an exact slice of its document's text.

Children, sections and headings are cut from the same documents and numbered as in their collections. A section is one
of the document, or a part of it under a sub-heading (`retrieval/index/subsections.py`). Sections are runs of children:
those of section n are `lo[n]:hi[n]`. A hit among sections gives its score to their children.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.records import Document, Passage
from hoofbeat.retrieval.index.chunking import as_hero_reads, heading_with_columns
from hoofbeat.retrieval.index.topk import Indices, Ranking, Rankings
from hoofbeat.retrieval.index_set import PassageCollection


class Navigation(NamedTuple):
    """Which children each section represents: section n for those from `lo[n]` to before `hi[n]`."""

    lo: Indices
    hi: Indices

    def mapped(self, sections: Indices, ranks: Indices) -> tuple[Indices, Indices, Indices]:
        """Hits among sections as hits among children: child, rank, and which hit it came by.

        Every child of a section has the section's rank. Where a child is reached twice the better rank comes first.
        """
        lo = self.lo[sections]
        counts = self.hi[sections] - lo
        hit = np.repeat(np.arange(len(sections)), counts)
        within = np.arange(len(hit)) - np.repeat(np.cumsum(counts) - counts, counts)
        return lo[hit] + within, ranks[hit], hit

    def ranking(self, sections: Ranking) -> tuple[Ranking, Indices]:
        """A ranking of sections as one of children, each once, and the rank of each."""
        children, ranks, hit = self.mapped(sections.indices, np.arange(1, len(sections.indices) + 1))
        first = np.sort(np.unique(children, return_index=True)[1])
        return Ranking(children[first], sections.scores[hit[first]]), ranks[first]


class HeroLayout:
    """Children and the sections they are in, for any number of documents."""

    def __init__(self, children: PassageCollection, sections: PassageCollection, headings: PassageCollection) -> None:
        if not children.documents == sections.documents == headings.documents:
            raise UsageError("HERO's collections hold different documents", fix="cut the same documents three times")
        if len(sections.passages) != len(headings.passages):
            raise UsageError("HERO's sections and headings differ", fix="cut the same documents into both")
        self.children, self.sections, self.headings = children, sections, headings
        self.names = children.documents
        spans = np.array([(passage.start, passage.end) for passage in children.passages], np.int64).reshape(-1, 2)
        self.starts: Indices = spans[:, 0]
        self.ends: Indices = spans[:, 1]
        self.section_of = _containing(children, self.starts, sections)
        numbers = np.arange(len(sections.passages))
        self.navigation = Navigation(
            np.searchsorted(self.section_of, numbers), np.searchsorted(self.section_of, numbers, side="right")
        )

    def __len__(self) -> int:
        return len(self.starts)

    def sections_of(self, children: Indices) -> Indices:
        """The sections (ascending) that these children are in."""
        return np.unique(self.section_of[children])


def _containing(children: PassageCollection, starts: Indices, sections: PassageCollection) -> Indices:
    """The section that each child begins in."""
    section_starts = np.array([passage.start for passage in sections.passages], np.int64)
    reach = 1 + max(starts.max(initial=0), section_starts.max(initial=0))
    section_keys = sections.document_of * reach + section_starts
    found: Indices = np.searchsorted(section_keys, children.document_of * reach + starts, side="right") - 1
    within: Indices = np.maximum(found, sections.bounds[children.document_of])
    return within


_MOST_MADE = 1 << 14


class EvidenceUnit(NamedTuple):
    """A passage of evidence: children from `lo` to before `hi`, found through `child`, in the run of section `home`."""

    child: int
    home: int
    lo: int
    hi: int


class EvidenceUnits(NamedTuple):
    """The units of several searches: those of the nth are `table[n, : sizes[n]]`, a row as in `EvidenceUnit`."""

    table: Indices
    sizes: Indices

    @classmethod
    def of(cls, found: Sequence[Sequence[EvidenceUnit]], top: int) -> EvidenceUnits:
        """The units of these searches, at most `top` each."""
        table = np.full((len(found), top, 4), -1, np.int64)
        for number, units in enumerate(found):
            table[number, : len(units)] = np.array(units, np.int64).reshape(-1, 4)
        return cls(table, np.array([len(units) for units in found], np.int64))

    def units(self, number: int) -> list[EvidenceUnit]:
        """The units of the nth search."""
        return list(map(EvidenceUnit._make, self.table[number, : self.sizes[number]].tolist()))


class ParentSections:
    """The runs of children that sections are, with their headings and places; reads every document once."""

    def __init__(self, layout: HeroLayout, documents: Mapping[str, Document]) -> None:
        self._documents = documents
        self._names = layout.names
        self._bounds = layout.children.bounds
        self._made: dict[tuple[int, ...], Passage] = {}
        self._wholes: dict[int, tuple[Passage, ...]] = {}
        lo, hi = layout.navigation
        held = np.flatnonzero(lo < hi)
        self.starts: list[int] = layout.starts.tolist()
        self.ends: list[int] = layout.ends.tolist()
        self.run_of: list[int] = np.searchsorted(held, layout.section_of).tolist()
        self.run_lo: list[int] = lo[held].tolist()
        self.run_hi: list[int] = hi[held].tolist()
        self.run_document: list[int] = layout.sections.document_of[held].tolist()
        self._reach: dict[int, tuple[int, int]] = {  # the first and last run of each document
            document: (self.run_of[first], self.run_of[last - 1])
            for document, (first, last) in enumerate(pairwise(self._bounds.tolist()))
            if first < last
        }
        self.headings = [""] * len(held)
        self.pages: list[int | None] = [None] * len(held)
        self.heading_starts = [self.starts[first] for first in self.run_lo]
        self.navigation = Navigation(lo, hi.copy())
        self._describe(held, layout)
        self._arrays = _Arrays(
            starts=layout.starts,
            ends=layout.ends,
            run_of=np.array(self.run_of, np.int64),
            run_lo=lo[held],
            run_hi=hi[held],
            heading_starts=np.array(self.heading_starts, np.int64),
            reach=np.array([self._reach[document] for document in self.run_document], np.int64).reshape(-1, 2),
        )

    def _describe(self, held: Indices, layout: HeroLayout) -> None:
        """Headings and pages of the runs, where their headings begin, and what headings without own text represent."""
        at = {number: run for run, number in enumerate(held.tolist())}
        still_open: list[tuple[int, int]] = []
        document = None
        by_body: dict[int, tuple[int, int]] = {}
        for number, (passage, section) in enumerate(
            zip(layout.headings.passages, layout.sections.passages, strict=True)
        ):
            if passage.document != document:
                self._close(still_open, 0, number)
                document = passage.document
                read = as_hero_reads(self._documents[document]).sections
                by_body = {each.body: (each.start, each.level) for each in read}
            start, level = by_body.get(passage.start, (passage.start, 1))
            self._close(still_open, level, number)
            if number in at:
                run = at[number]
                self.headings[run], self.pages[run] = section.heading, section.page
                self.heading_starts[run] = min(start, self.heading_starts[run])
            else:
                still_open.append((number, level))
        self._close(still_open, 0, len(layout.headings.passages))

    def _close(self, still_open: list[tuple[int, int]], level: int, number: int) -> None:
        """A heading without its own text represents the children of the sections below it: this one is not."""
        lo, hi = self.navigation
        while still_open and still_open[-1][1] >= level:
            opened, _ = still_open.pop()
            hi[opened] = lo[number] if number < len(lo) else len(self.starts)

    def units(self, ordered: Iterable[int], top: int, parents: bool, neighbours: int, span: int) -> list[EvidenceUnit]:
        """The passages that the best children lead to: at most `top`, and no child stands in two of them.

        Each of the best children that is not shown yet brings its parent section, or as much of it around the child as
        `span` characters hold. When all have theirs, each takes whole neighbouring sections that are free and fit.
        """
        found: list[EvidenceUnit] = []
        taken: set[int] = set()  # the runs of which something is shown
        run_of, run_lo, run_hi, starts, ends = self.run_of, self.run_lo, self.run_hi, self.starts, self.ends
        for child in ordered:
            run = run_of[child]
            if run in taken and any(unit.lo <= child < unit.hi for unit in found):
                continue
            lo, hi = (run_lo[run], run_hi[run]) if parents else (child, child + 1)
            if parents and ends[hi - 1] - starts[lo] > span:
                lo, hi = self._window(child, run, found, span)
            found.append(EvidenceUnit(child, run, lo, hi))
            taken.add(run)
            if len(found) == top:
                break
        if not (parents and neighbours):
            return found
        return [
            self._widened(unit, taken, neighbours, span)
            if run_lo[unit.home] == unit.lo and run_hi[unit.home] == unit.hi
            else unit
            for unit in found
        ]

    def units_of_all(
        self, ordered: Sequence[Rankings], top: int, parents: bool, neighbours: int, span: int
    ) -> list[EvidenceUnits]:
        """For each query what `units` gives for the best children of each of its sources, for many at a time."""
        found = [self._first(each, top, parents) for each in ordered]
        edges = [0, *accumulate(len(sizes) for _, sizes in found)]
        sizes = np.concatenate([each for _, each in found])
        table = np.full((len(sizes), top, 4), -1, np.int64)
        child, home, lo, hi = np.moveaxis(table, 2, 0)
        there = np.arange(top) < sizes[:, None]
        arrays = self._arrays
        child[there] = np.concatenate([each for each, _ in found])
        home[there] = arrays.run_of[child[there]]
        lo[there] = arrays.run_lo[home[there]] if parents else child[there]
        hi[there] = arrays.run_hi[home[there]] if parents else child[there] + 1
        if parents:
            long = (there & (arrays.ends[hi - 1] - arrays.starts[lo] > span)).any(axis=1)
            if neighbours:
                arrays.widen(home, lo, hi, neighbours, span)
            for number in np.flatnonzero(long).tolist():  # sections that are cut around the child, one by one
                query = bisect(edges, number) - 1
                own = ordered[query].ranking(number - edges[query]).indices.tolist()
                units = self.units(own, top, parents, neighbours, span)
                sizes[number] = len(units)
                table[number, : len(units)] = units
        return [EvidenceUnits(table[first:last], sizes[first:last]) for first, last in pairwise(edges)]

    def _first(self, ordered: Rankings, top: int, parents: bool) -> tuple[Indices, Indices]:
        """The best child of each of the `top` best runs (or the `top` best children) of each source, and how many."""
        at = order = np.arange(len(ordered.indices))
        if parents:
            runs = self._arrays.run_of[ordered.indices]
            first = np.empty(len(self.run_lo), np.int64)
            first[runs[::-1]] = order[::-1]  # of places that are assigned twice the last value stays: the best child
            at = np.flatnonzero(first[runs] == order)
        begins = np.searchsorted(at, ordered.edges)
        counts = np.diff(begins)
        rank = np.arange(len(at)) - np.repeat(begins[:-1], counts)
        return ordered.indices[at[rank < top]], np.minimum(counts, top)

    def _window(self, child: int, run: int, shown: list[EvidenceUnit], span: int) -> tuple[int, int]:
        """The children of a long section around one of them that `span` holds, without those that are shown already."""
        beside = [unit for unit in shown if unit.home == run]
        first = max([self.run_lo[run], *(unit.hi for unit in beside if unit.hi <= child)])
        last = min([self.run_hi[run], *(unit.lo for unit in beside if unit.lo > child)])
        lo, hi, grown = child, child + 1, True
        while grown:
            grown = False
            if hi < last and self.ends[hi] - self.starts[lo] <= span:
                hi, grown = hi + 1, True
            if lo > first and self.ends[hi - 1] - self.starts[lo - 1] <= span:
                lo, grown = lo - 1, True
        return lo, hi

    def _widened(self, unit: EvidenceUnit, taken: set[int], neighbours: int, span: int) -> EvidenceUnit:
        """A whole section with the sections before and after it that nobody has taken and that fit."""
        child, home, lo, hi = unit
        begin, end = self.starts[lo], self.ends[hi - 1]
        lowest, highest = self._reach[self.run_document[home]]
        for run in range(home - 1, max(lowest, home - neighbours) - 1, -1):
            if run in taken or end - self.heading_starts[run] > span:
                break
            lo, begin = self.run_lo[run], self.heading_starts[run]
            taken.add(run)
        for run in range(home + 1, min(highest, home + neighbours) + 1):
            last = self.run_hi[run]
            if run in taken or self.ends[last - 1] - begin > span:
                break
            hi = last
            taken.add(run)
        return unit if hi - lo == unit.hi - unit.lo else EvidenceUnit(child, home, lo, hi)

    def _begin(self, home: int, lo: int) -> int:
        """Where a passage begins: a neighbour before the parent is shown with its heading, the parent's is beside."""
        return self.starts[lo] if lo >= self.run_lo[home] else self.heading_starts[self.run_of[lo]]

    def passage(self, unit: EvidenceUnit) -> Passage:
        """The unit as one passage under its parent's heading; the headings of neighbours stand in the text."""
        key = unit[1:]
        if key not in self._made:
            if len(self._made) >= _MOST_MADE:
                self._made.clear()
            self._made[key] = self._slice(unit.home, self._begin(unit.home, unit.lo), self.ends[unit.hi - 1])
        return self._made[key]

    def parts(self, unit: EvidenceUnit) -> list[Passage]:
        """The unit section by section, each under its own heading: the parent first, then its neighbours in order."""
        runs = [
            unit.home,
            *(run for run in range(self.run_of[unit.lo], self.run_of[unit.hi - 1] + 1) if run != unit.home),
        ]
        return [
            self._slice(run, self.starts[max(unit.lo, self.run_lo[run])], self.ends[min(unit.hi, self.run_hi[run]) - 1])
            for run in runs
        ]

    def whole(self, source: int) -> tuple[Passage, ...]:
        """All of a source, section by section, so that a model can still name the place."""
        if source not in self._wholes:
            self._wholes[source] = tuple(self._whole(source))
        return self._wholes[source]

    def _whole(self, source: int) -> list[Passage]:
        first, last = self._reach.get(source, (0, -1))
        runs = range(first, last + 1)
        return [self._slice(run, self.starts[self.run_lo[run]], self.ends[self.run_hi[run] - 1]) for run in runs]

    def count(self, source: int) -> int:
        """How many sections of a source hold children."""
        first, last = self._reach.get(source, (0, -1))
        return last - first + 1

    def neighbours(self, unit: EvidenceUnit) -> list[str]:
        """The headings of the neighbours that a unit took."""
        runs = range(self.run_of[unit.lo], self.run_of[unit.hi - 1] + 1)
        return [self.headings[run] for run in runs if run != unit.home]

    def _slice(self, run: int, start: int, end: int) -> Passage:
        name = self._names[self.run_document[run]]
        document = self._documents[name]
        return Passage(
            id=f"{name}#chars:{start}-{end}",
            document=name,
            text=document.text[start:end],
            start=start,
            end=end,
            heading=heading_with_columns(document, self.headings[run], start),
            page=self.pages[run],
        )


class _Arrays(NamedTuple):
    """The same places as arrays: of children, and of runs with the first and last run of their document."""

    starts: Indices
    ends: Indices
    run_of: Indices
    run_lo: Indices
    run_hi: Indices
    heading_starts: Indices
    reach: Indices

    def widen(self, home: Indices, lo: Indices, hi: Indices, neighbours: int, span: int) -> None:
        """What `ParentSections._widened` does, for all searches (rows) at a time, unit by unit (columns), in place."""
        top = home.shape[1]
        taken = np.full((len(home), top * (1 + 2 * neighbours)), -1, np.int64)
        taken[:, :top] = home
        filled = top
        for unit in range(top):
            run = home[:, unit]
            first, last = self.reach[run].T
            begin, end = self.starts[lo[:, unit]], self.ends[hi[:, unit] - 1]
            for side in (-1, 1):
                going = run >= 0
                for step in range(1, neighbours + 1):
                    beside = run + side * step
                    going = going & (beside >= first) & (beside <= last)
                    beside = np.where(going, beside, 0)
                    length = (
                        end - self.heading_starts[beside] if side < 0 else self.ends[self.run_hi[beside] - 1] - begin
                    )
                    going &= (length <= span) & ~(taken[:, :filled] == beside[:, None]).any(axis=1)
                    if side < 0:
                        lo[going, unit] = self.run_lo[beside[going]]
                        begin = np.where(going, self.heading_starts[beside], begin)
                    else:
                        hi[going, unit] = self.run_hi[beside[going]]
                    taken[going, filled] = beside[going]
                    filled += 1
