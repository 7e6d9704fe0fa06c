"""Long viewers, packed: thousands of questions in one page that opens at once and needs no other file.

The lines of all items are one compressed piece of data, what they open to are many; the page's script unpacks a piece
when a reader opens an item in it, or searches. A viewer that fits stays plain HTML.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from hoofbeat.reports.grids import packed_grid
from hoofbeat.reports.model import Block, Entry, GridView, Packed, Viewer
from hoofbeat.reports.nodes import Node, Shared, packed
from hoofbeat.reports.views import block_nodes
from hoofbeat.text import clean

PLAIN_CHARACTERS = 1_500_000
"""About how much a viewer holds as plain HTML; browsers slow down with more."""

PLAIN_ENTRIES = 200
"""How many items a viewer lists without pages."""

_FIRST = 25
_PIECE = 400_000
_LEVEL = 6


def viewer_of(
    entries: Iterable[Entry],
    *,
    id: str,
    noun: str,
    states: Sequence[str] = (),
    systems: Sequence[str] = (),
    system_noun: str = "system",
    facets: Sequence[tuple[str, tuple[str, ...]]] = (),
    characters: int = PLAIN_CHARACTERS,
    most: int = PLAIN_ENTRIES,
) -> Viewer:
    """A viewer of items that are made one at a time: plain while they fit, else packed. None is left out."""
    bare = Viewer(
        id=id,
        noun=noun,
        entries=(),
        states=tuple(states),
        systems=tuple(systems),
        system_noun=system_noun,
        facets=tuple(facets),
    )
    coming = iter(entries)
    plain: list[Entry] = []
    while characters >= 0 and len(plain) <= most:
        entry = next(coming, None)
        if entry is None:
            return msgspec.structs.replace(bare, entries=tuple(plain))
        plain.append(entry)
        characters -= sum(_weight(node) for block in entry.blocks for node in block_nodes(block))
    first = tuple(plain[:_FIRST])
    return msgspec.structs.replace(bare, entries=first, packed=_pack(bare, _all(plain, coming)))


def codes_of(viewer: Viewer, entry: Entry) -> list[int]:
    """An item's states under each system (one where there are none) as the sum of the states' bits."""
    bits = {state: 1 << place for place, state in enumerate(viewer.all_states)}
    return [sum(bits[state] for state in set(states)) for states in entry.outcomes or (entry.states,)]


def places_of(viewer: Viewer, entry: Entry) -> list[list[int]]:
    """The numbers of an item's values in each of the viewer's facets."""
    return [
        [values.index(value) for value in mine if value in values]
        for (_, values), mine in zip(viewer.facets, entry.values, strict=False)
    ]


def _all(plain: list[Entry], coming: Iterator[Entry]) -> Iterator[Entry]:
    """What was made already, let go of one by one, then the rest."""
    plain.reverse()
    while plain:
        yield plain.pop()
    yield from coming


def _pack(viewer: Viewer, entries: Iterable[Entry]) -> Packed:
    heads: list[object] = []
    bodies: list[bytes] = []
    starts: list[int] = []
    piece: list[msgspec.Raw] = []
    shared, size = Shared(), 0
    for entry in entries:
        if not piece:
            starts.append(len(heads))
        heads.append(_head(viewer, entry))
        nodes = [part for block in entry.blocks for part in _parts(block, shared)]
        piece.append(msgspec.Raw(msgspec.json.encode(nodes)))
        size += len(piece[-1])
        if size + shared.size > _PIECE:
            bodies.append(_data([shared.listed(), piece]))
            piece, shared, size = [], Shared(), 0
    if piece:
        bodies.append(_data([shared.listed(), piece]))
    return Packed(total=len(heads), heads=_data([starts, heads]), bodies=tuple(bodies))


def _parts(block: Block, shared: Shared) -> list[object]:
    if isinstance(block, GridView):
        return [packed_grid(block)]
    return [packed(node, shared) for node in block_nodes(block)]


def _head(viewer: Viewer, entry: Entry) -> list[object]:
    marks = [[clean(text), tone] for text, tone in entry.marks]
    return [
        entry.id, clean(entry.name), clean(entry.title), marks, codes_of(viewer, entry), places_of(viewer, entry)
    ]  # fmt: skip


def _weight(node: Node) -> int:
    """About how many characters a node takes."""
    return len(node) if isinstance(node, str) else 30 + sum(map(_weight, node.children))


def _data(value: object) -> bytes:
    return zlib.compress(msgspec.json.encode(value), _LEVEL)
