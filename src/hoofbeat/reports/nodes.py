"""A small tree of elements and texts: written once, put into the page as HTML, or packed and built by its script.

Every foreign text is a text node and nothing else, in both: here it is escaped, in the browser it never meets a
parser. Only the tags and attributes that our own views use can be built.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from markupsafe import escape
from msgspec import Struct, field

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
