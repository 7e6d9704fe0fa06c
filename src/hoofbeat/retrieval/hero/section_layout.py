"""The document model of HERO: which children stand in which section, and what a hit among sections says of children.

Children, sections and headings are cut from the same documents and numbered as in their collections. Sections are runs
of children: those of section n are `lo[n]:hi[n]`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hoofbeat.errors import UsageError
from hoofbeat.retrieval.index.topk import Indices, Ranking
from hoofbeat.retrieval.index_set import PassageCollection


class Navigation(NamedTuple):
    """Which children each section stands for: section n for those from `lo[n]` to before `hi[n]`."""

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
    """Children and the sections they stand in, for any number of documents."""

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
        """The sections (ascending) that these children stand in."""
        return np.unique(self.section_of[children])


def _containing(children: PassageCollection, starts: Indices, sections: PassageCollection) -> Indices:
    """The section that each child begins in."""
    section_starts = np.array([passage.start for passage in sections.passages], np.int64)
    reach = 1 + max(starts.max(initial=0), section_starts.max(initial=0))
    section_keys = sections.document_of * reach + section_starts
    found: Indices = np.searchsorted(section_keys, children.document_of * reach + starts, side="right") - 1
    within: Indices = np.maximum(found, sections.bounds[children.document_of])
    return within
