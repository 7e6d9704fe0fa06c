"""Viewers of questions, answers, pairs and grids of labels: as HTML on the page, or packed for its script.

Long viewers are packed, so that thousands of questions fit into one page that opens at once and needs no other file:
the lines of all items are one compressed piece of data, what they open to are many; the page's script unpacks a piece
when a reader opens an item in it, or searches. A viewer that fits stays plain HTML.

Both are made from a small tree of elements and texts. Every foreign text is a text node and nothing else: here it is
escaped, in the browser it never meets a parser. Only the tags and attributes that our own views use can be built.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from markupsafe import escape
from msgspec import Struct, field

from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.charts.heatmaps import abbreviations
from hoofbeat.reports.model import (
    AnswerView,
    Block,
    Entry,
    GridView,
    JudgmentView,
    Notice,
    OptionView,
    Packed,
    PairView,
    PassageView,
    QuestionView,
    SideView,
    Text,
    TraceView,
    Viewer,
    VoteView,
)
from hoofbeat.reports.tables import written
from hoofbeat.text import clean

_SHORT = 40


class Element(Struct, frozen=True):
    """An element: tag and classes (`p.prose`), what is in it, and its few attributes."""

    head: str
    children: tuple[Node, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)


Node = str | Element


def element(head: str, *children: Node | None, **attributes: str) -> Element:
    """An element of the children that are there; an attribute's underscores are hyphens."""
    there = tuple(child for child in children if child is not None)
    if not attributes:
        return Element(head, there)
    return Element(head, there, {name.replace("_", "-"): value for name, value in attributes.items()})


def markup(node: Node) -> str:
    """The node as HTML; all text is cleaned and escaped."""
    return "".join(_markup(node))


def _markup(node: Node) -> Iterator[str]:
    if isinstance(node, str):
        yield str(escape(clean(node)))
        return
    tag, _, classes = node.head.partition(".")
    named = {"class": classes.replace(".", " ")} if classes else {}
    named |= node.attributes
    written = [f' {name}="{escape(clean(value))}"' for name, value in named.items()]
    yield f"<{tag}{''.join(written)}>"
    for child in node.children:
        yield from _markup(child)
    yield f"</{tag}>"


class Shared:
    """What a piece of packed data says more than once, kept once: longer texts, and passages shown to many models."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._elements: dict[int, tuple[Element, int]] = {}
        self._kept: list[object] = []
        self.size = 0

    def text(self, text: str) -> int:
        """The number of this text."""
        if text not in self._texts:
            self._texts[text] = len(self._kept)
            self._kept.append(text)
            self.size += len(text)
        return self._texts[text]

    def element(self, element: Element) -> int:
        """The number of this very element."""
        if id(element) not in self._elements:
            data = _packed(element, self)
            self._elements[id(element)] = element, len(self._kept)
            self._kept.append(data)
        return self._elements[id(element)][1]

    def listed(self) -> list[object]:
        """Everything by its number."""
        return self._kept


def packed(node: Node, shared: Shared) -> object:
    """The node as plain data for the page's script.

    That is a text, `[head, attributes, …children]`, or the number of either in what is shared.
    """
    if isinstance(node, str):
        if len(node) < _SHORT:
            return _clean(node)
        return shared.text(clean(node))
    return shared.element(node) if node.head.startswith("blockquote") else _packed(node, shared)


def _packed(element: Element, shared: Shared) -> list[object]:
    attributes = {name: _clean(value) for name, value in element.attributes.items()}
    return [element.head, attributes or 0, *[packed(child, shared) for child in element.children]]


_clean = lru_cache(maxsize=4096)(clean)
WIDEST = 25
"""A grid of more sources is drawn by the page's script only: as elements it would outweigh the page."""

NO_LABEL, NO_PAIR = "-", "."


def grid_table(view: GridView) -> Element:
    """The grid as a table, or where it is too large for one a sentence that says so."""
    if len(view.names) > WIDEST:
        return element("p.notice", f"A grid of {len(view.names)} sources is drawn by a browser that runs scripts.")
    short, links, marks = abbreviations(view.labels), dict(view.links), dict(view.marks)
    numbers = [element("th", str(place + 1), scope="col", title=name) for place, name in enumerate(view.names)]
    rows = [element("tr", element("td"), *numbers)]
    for row, name in enumerate(view.names):
        cells: list[Node] = [element("th", element("span.no", str(row + 1)), " ", name, scope="row", dir="auto")]
        for column, other in enumerate(view.names):
            if row == column:
                cells.append(element("td.self"))
                continue
            place = grid_place(row, column, len(view.names))
            label = grid_label(view, place)
            said = f"{name} and {other}: {label or 'no label'}"
            said += f"; planted: {marks[place]}" if place in marks else ""
            tone = f".tone{tone_of(view.labels.index(label), len(view.labels))}" if label else ".blank"
            off = ".off" if place in marks else ""
            words = short.get(label, "?" if view.cells[place] == NO_LABEL else "")
            linked = (
                element(f"a.cell{tone}{off}", words, href=f"#{links[place]}", title=said) if place in links else None
            )
            cells.append(element("td", linked or element(f"span.cell{tone}{off}", words, title=said)))
        rows.append(element("tr", *cells))
    return element("div.grid", element("table", *rows, aria_label=view.title), role="group", tabindex="-1")


def grid_place(row: int, column: int, count: int) -> int:
    """The place of two sources' letter in the cells of a grid of this size."""
    low, high = sorted((row, column))
    return low * count - low * (low + 1) // 2 + high - low - 1


def grid_label(view: GridView, place: int) -> str:
    """The label of one pair, empty where it has none."""
    letter = view.cells[place]
    return "" if letter in (NO_LABEL, NO_PAIR) else view.labels[ord(letter) - ord("a")]


def packed_grid(view: GridView) -> list[object]:
    """The grid as plain data for the page's script: a few bytes a pair."""
    short = abbreviations(view.labels)
    labels = [
        [clean(label), clean(short[label]), tone_of(place, len(view.labels))] for place, label in enumerate(view.labels)
    ]
    links = [part for place, anchor in view.links for part in (place, anchor)]
    marks = [part for place, planted in view.marks for part in (place, clean(planted))]
    names = [clean(name) for name in view.names]
    return ["grid", 0, clean(view.title), names, labels, view.cells, links, marks]


def block_nodes(block: Block) -> list[Node]:
    """What a block of a viewer's item looks like. Tables and charts stand in the page itself, never here."""
    match block:
        case QuestionView():
            return [element("div.question", *_question(block))]
        case AnswerView():
            return [_answer(block)]
        case Text():
            return [*_labelled(block.label), _prose(block.text)]
        case Notice():
            return [element("p.notice", block.text)]
        case PairView():
            return [element("div.pair", *_pair(block))]
        case GridView():
            return [grid_table(block)]
        case _:
            raise TypeError(f"a {block.kind} can't be packed")


def _question(view: QuestionView) -> Iterator[Node]:
    if view.context:
        yield from _labelled("Case")
        yield _prose(view.context)
    yield from _labelled("Question")
    yield _prose(view.text, "p.prose.asked")
    if view.options:
        items = (_option(OptionView(text=option, gold=option == view.gold)) for option in view.options)
        yield element("ol.options", *items, type="A")
    if view.gold and view.gold not in view.options:
        yield from _labelled("Gold answer")
        yield _prose(view.gold, "p.prose.gold")
    if view.evidence:
        yield from _labelled("Evidence")
        yield from map(_passage, view.evidence)
    if view.facts:
        yield element("p.facts", " · ".join(view.facts), dir="auto")


def _answer(view: AnswerView) -> Element:
    who = (element("span.system", view.system), " ", element(f"span.mark.{view.verdict}", view.verdict_text))
    places = {"data-system": " ".join(map(str, view.places))} if view.places else {}
    places |= {"id": view.id} if view.id else {}
    if view.folded:
        inside = element("div.inside", *_said(view))
        return Element(f"details.answer.folded.{view.verdict}", (element("summary.who", *who), inside), places)
    return Element(f"div.answer.{view.verdict}", (element("p.who", *who), *_said(view)), places)


def _said(view: AnswerView) -> Iterator[Node]:
    if view.options:
        bars = any(option.share is not None for option in view.options)
        yield element(f"ol.options{'.bars' if bars else ''}", *map(_option, view.options), type="A")
    if view.text:
        yield _prose(view.text)
    if view.reading:
        yield element("p.reading", view.reading, dir="auto")
    if view.failure:
        yield element("p.failure", view.failure, dir="auto")
    for warning in view.warnings:
        yield element("p.warning", warning, dir="auto")
    yield from map(_judgment, view.judgments)
    if view.reasoning:
        yield _folded("Reasoning of the model", [_prose(view.reasoning)])
    if view.trace:
        yield _trace(view.trace)
    yield from map(_passage, (each for each in view.passages if each.cited))
    if rest := [each for each in view.passages if not each.cited]:
        yield _folded(f"Passages shown ({len(rest)})", map(_passage, rest))
    if view.dropped:
        listed = (element("li", name, dir="auto") for name in view.dropped)
        yield _folded(f"Documents that did not fit ({len(view.dropped)})", [element("ul", *listed)])


def _trace(steps: Sequence[TraceView]) -> Element:
    """Steps one after the other; of a search by HERO the title says whether its layer of reranking is off."""
    title = "What the agent did"
    if any(step.what == "hero: document model" for step in steps):
        off = any(step.what == "hero: reranking" and step.text.startswith("off") for step in steps)
        title = f"How the passages were found{', without reranking' if off else ''}"
    return _folded(f"{title} ({len(steps)} steps)", [element("ol.trace", *map(_step, steps))])


def _pair(view: PairView) -> Iterator[Node]:
    facts: list[Node] = [element(f"span.mark.tone{view.tone}", view.label)]
    if view.facts:
        facts += [" ", element("span.fact", " · ".join(view.facts))]
    yield element("p.who", *facts, dir="auto")
    if view.reasoning:
        yield _prose(view.reasoning)
    yield element("div.columns", _side(view.a), _side(view.b))


def _side(view: SideView) -> Element:
    small: list[Node] = [" ", element("span.fact", view.id)] if view.id not in ("", view.name) else []
    text = element("p.prose", *_marked(view.text, view.marks), dir="auto") if view.marks else _prose(view.text)
    parts: list[Node] = [element("p.side", view.name, *small), text]
    parts += [element("p.warning", warning, dir="auto") for warning in view.warnings]
    parts += map(_passage, view.cited)
    if view.others:
        more = f", {view.unshown:,} more not kept here" if view.unshown else ""
        cited = "Other passages" if view.cited else "Passages"
        parts.append(_folded(f"{cited} the model was shown ({len(view.others)}{more})", map(_passage, view.others)))
    if view.trace:
        parts.append(_trace(view.trace))
    return element("div", *parts)


def _option(option: OptionView) -> Element:
    tags = [name for name, is_so in (("chosen", option.chosen), ("gold", option.gold)) if is_so]
    head = "".join(["li", *(f".{tag}" for tag in tags)])
    marks: list[Node] = [part for tag in tags for part in (" ", element(f"span.tag.{tag}", tag))]
    bar: list[Node] = []
    if option.share is not None:
        share = written(option.share, "share")
        meter = element("meter", share, value=f"{option.share:.4f}", max="1", aria_label=f"probability {share}")
        bar = [element("div.bar", meter, element("span.figure", f"{share} · {option.figure}"))]
    return element(head, option.text, *marks, *bar, dir="auto")


def _judgment(view: JudgmentView) -> Element:
    by = view.aspect if view.judge in ("", view.aspect) else f"{view.aspect}, {view.judge}"
    line: list[Node] = [element("span.by", f"{by}:"), " "]
    line.append(element(f"span.mark.{view.tone}", view.label))
    if view.reasoning:
        line += [" ", view.reasoning]
    said = element("p", *line, dir="auto")
    if not view.votes:
        return element("div.judge", said)
    tally = ", ".join(f"{count} {label}" for label, count in Counter(vote.label for vote in view.votes).items())
    return element("div.judge", said, _folded(f"{len(view.votes)} votes: {tally}", map(_vote, view.votes)))


def _vote(vote: VoteView) -> Element:
    reasoning = f". {vote.reasoning}" if vote.reasoning else None
    return element("p", element("span.by", f"{vote.judge}:"), " ", vote.label, reasoning, dir="auto")


def _step(step: TraceView) -> Element:
    found = element("p.found", f"Found: {', '.join(step.found)}") if step.found else None
    thought = element("p.prose.thought", step.reasoning, dir="auto") if step.reasoning else None
    return element("li", element("span.by", step.what), thought, _prose(step.text) if step.text else None, found)


@lru_cache(maxsize=4096)
def _passage(item: PassageView) -> Element:
    if item.before or item.after:
        parts = [part for part in (item.before, element("mark", item.text), item.after) if part]
    else:
        parts = _marked(item.text, item.marks)
    if item.cited:
        source = element("footer", item.source, " ", element("span.tag.cited", "cited"))
        return element("blockquote.cited", element("p", *parts), source, dir="auto")
    return element("blockquote", element("p", *parts), element("footer", item.source), dir="auto")


def _marked(text: str, marks: Sequence[tuple[int, int]]) -> list[Node]:
    """A text with its marked parts."""
    parts: list[Node] = []
    place = 0
    for start, end in marks:
        parts += [text[place:start], element("mark", text[start:end])]
        place = end
    return [part for part in (*parts, text[place:]) if part]


def _folded(summary: str, inside: Iterable[Node]) -> Element:
    return element("details.more", element("summary", summary), element("div.inside", *inside))


def _labelled(label: str) -> list[Node]:
    return [element("p.label", label)] if label else []


def _prose(text: str, head: str = "p.prose") -> Element:
    return element(head, text, dir="auto")


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
