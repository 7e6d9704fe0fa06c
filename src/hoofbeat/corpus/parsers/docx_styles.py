"""How a Word document says what a paragraph is: styles, outline levels and numbering.

Headings are told by the outline level of the paragraph or its style, else by the style's name, in English or as Office
calls it in another language (`data/word_styles.toml`). Numbers of lists and headings are not in the text: Word counts
them when it shows the page, and `Numbering` counts in the same way, so that "see section 3.2" still leads somewhere.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib import resources

from lxml import etree
from msgspec import Struct

from hoofbeat.corpus.parsers.office_package import NAMES, marked_by, qualified
from hoofbeat.text import squeeze

BULLET = "-"
MAX_LEVEL = 6
_VAL = qualified("w:val")
_OFF = frozenset({"0", "false", "off", "none"})
_MAX_CHAIN = 20
_LEVELS = 9
_NAMED_LEVEL = re.compile(r"(?P<level>[1-9])(?:\s*(?:char|zchn|car))?\Z")
_PLACE = re.compile(r"%([1-9])")


def value(node: etree._Element | None, path: str, default: str = "") -> str:
    """The `w:val` of an element below a node."""
    found = node.find(path, NAMES) if node is not None else None
    return default if found is None else found.get(_VAL, default)


def switched(node: etree._Element | None, path: str) -> bool | None:
    """A property that is on, off or not mentioned."""
    found = node.find(path, NAMES) if node is not None else None
    return None if found is None else (found.get(_VAL) or "1").lower() not in _OFF


def whole_number(text: str | None, default: int) -> int:
    """A number written in an attribute, within reason."""
    return int(text) if text and re.fullmatch(r"-?\d{1,9}", text) else default


class _NamedStyles(Struct, frozen=True):
    heading: frozenset[str]
    title: frozenset[str]
    caption: frozenset[str]
    contents: frozenset[str]


@cache
def _named() -> _NamedStyles:
    raw = resources.files("hoofbeat.corpus").joinpath("data/word_styles.toml").read_text(encoding="utf-8")
    return _NamedStyles(**{kind: frozenset(names) for kind, names in tomllib.loads(raw).items()})


class _Style(Struct, frozen=True, kw_only=True):
    """A style as the file has it; None where it leaves a property to the one it is based on."""

    name: str
    base: str
    outline: int | None
    num: str | None
    depth: int | None
    bold: bool | None
    hidden: bool | None
    size: int | None
    language: str


class StyleLook(Struct, frozen=True, kw_only=True):
    """What a style makes of its text. `level` is 0 for body text; `size` is in half points, 0 where nothing says."""

    is_title: bool = False
    is_caption: bool = False
    is_contents: bool = False
    level: int = 0
    num: str = ""
    depth: int | None = None
    list_step: int = 0
    bold: bool = False
    hidden: bool = False
    size: int = 0
    language: str = ""


class Styles:
    """The styles of a document by id."""

    def __init__(self, root: etree._Element | None) -> None:
        self._styles: dict[str, _Style] = {}
        self._looks: dict[str, StyleLook] = {}
        self.default = ""
        self.size = 0
        self.language = ""
        if root is None:
            return
        defaults = root.find("w:docDefaults/w:rPrDefault/w:rPr", NAMES)
        self.size = whole_number(value(defaults, "w:sz"), 0)
        self.language = _language(value(defaults, "w:lang"))
        for node in root.iterfind("w:style", NAMES):
            id = node.get(qualified("w:styleId")) or ""
            self._styles.setdefault(id, _style(node))
            if node.get(qualified("w:type")) == "paragraph" and node.get(qualified("w:default")) in {"1", "true"}:
                self.default = id

    def look(self, id: str) -> StyleLook:
        """What a style makes of its text, with what it inherits."""
        if id not in self._looks:
            self._looks[id] = self._resolve(id)
        return self._looks[id]

    def _chain(self, id: str) -> list[_Style]:
        chain: list[_Style] = []
        seen: set[str] = set()
        while id in self._styles and id not in seen and len(chain) < _MAX_CHAIN:
            seen.add(id)
            chain.append(self._styles[id])
            id = chain[-1].base
        return chain

    def _resolve(self, id: str) -> StyleLook:
        chain = self._chain(id)
        names = [style.name for style in chain] or [id.lower()]
        named = _named()
        steps = [found for each in names if (found := _numbered(each))]
        outline = next((style.outline for style in chain if style.outline is not None), None)
        by_name = next((level for name, level in steps if name in named.heading), 0)
        level = by_name if outline is None else outline
        own = names[0]
        contents = own in named.contents or any(name in named.contents for name, _ in steps[:1])
        return StyleLook(
            is_title=not level and own in named.title,
            is_caption=any(name in named.caption for name in names),
            is_contents=contents,
            level=0 if contents else level,
            num=next((style.num for style in chain if style.num is not None), ""),
            depth=next((style.depth for style in chain if style.depth is not None), None),
            list_step=next((step - 1 for name, step in steps if "list" in name), 0),
            bold=next((style.bold for style in chain if style.bold is not None), False),
            hidden=next((style.hidden for style in chain if style.hidden is not None), False),
            size=next((style.size for style in chain if style.size is not None), self.size),
            language=next((style.language for style in chain if style.language), self.language),
        )


def _numbered(name: str) -> tuple[str, int] | None:
    """The two parts of a style's name such as `heading 2`."""
    found = _NAMED_LEVEL.search(name)
    if found is None:
        return None
    end = found.start()
    while end and (name[end - 1].isspace() or name[end - 1] in "_-"):
        end -= 1
    return name[:end].lstrip(), int(found["level"])


def _style(node: etree._Element) -> _Style:
    paragraph, run = node.find("w:pPr", NAMES), node.find("w:rPr", NAMES)
    outline = value(paragraph, "w:outlineLvl")
    size = value(run, "w:sz")
    numbering = paragraph.find("w:numPr", NAMES) if paragraph is not None else None
    return _Style(
        name=squeeze(value(node, "w:name")).lower(),
        base=value(node, "w:basedOn"),
        outline=outline_level(outline) if outline else None,
        num=value(numbering, "w:numId") or None,
        depth=whole_number(value(numbering, "w:ilvl"), 0) if value(numbering, "w:ilvl") else None,
        bold=switched(run, "w:b"),
        hidden=switched(run, "w:vanish"),
        size=whole_number(size, 0) if size else None,
        language=_language(value(run, "w:lang")),
    )


def outline_level(text: str) -> int:
    """An outline level as the level of a heading: the file counts from 0, and 9 is body text."""
    level = whole_number(text, _LEVELS) + 1
    return level if 1 <= level <= _LEVELS else 0


def _language(tag: str) -> str:
    return "" if tag.lower() in {"x-none", "zxx"} else squeeze(tag)[:20]


class _Level(Struct, frozen=True, kw_only=True):
    """One level of a numbered list: how its number is written, the text around it, where it starts."""

    form: str
    text: str
    start: int
    legal: bool


class Numbering:
    """Counts the numbers of lists and headings, in the order of the text."""

    def __init__(self, root: etree._Element | None) -> None:
        self._lists: dict[str, tuple[str, dict[int, _Level]]] = {}
        self._restarts: dict[str, dict[int, int]] = {}
        self._counts: dict[str, list[int | None]] = {}
        self._started: set[str] = set()
        if root is None:
            return
        abstract = {
            node.get(qualified("w:abstractNumId")) or "": node for node in root.iterfind("w:abstractNum", NAMES)
        }
        by_style = {link: node for node in abstract.values() if (link := value(node, "w:styleLink"))}
        for node in root.iterfind("w:num", NAMES):
            id, kind = node.get(qualified("w:numId")) or "", value(node, "w:abstractNumId")
            source = abstract.get(kind)
            if source is not None and (link := value(source, "w:numStyleLink")) in by_style:
                source = by_style[link]
            levels = dict(map(_level, source.iterfind("w:lvl", NAMES))) if source is not None else {}
            self._restarts[id] = {}
            for override in node.iterfind("w:lvlOverride", NAMES):
                place = whole_number(override.get(qualified("w:ilvl")), 0)
                levels |= dict(map(_level, override.iterfind("w:lvl", NAMES)))
                if start := value(override, "w:startOverride"):
                    self._restarts[id][place] = whole_number(start, 1)
            self._lists[id] = kind, levels

    def next_mark(self, num: str, depth: int) -> str | None:
        """The mark of the next paragraph of a list: `-`, `3.`, `(b)`; None for a paragraph that is in no list."""
        if num not in self._lists or not 0 <= depth < _LEVELS:
            return None
        kind, levels = self._lists[num]
        level = levels.get(depth)
        if level is None:
            return BULLET
        if level.form == "bullet":
            return BULLET
        counts = self._counts.setdefault(kind, [None] * _LEVELS)
        if num not in self._started:
            self._started.add(num)
            for place, start in self._restarts[num].items():
                if 0 <= place < _LEVELS:
                    counts[place:] = [start - 1, *([None] * (_LEVELS - place - 1))]
        before = counts[depth]
        counts[depth:] = [level.start if before is None else before + 1, *([None] * (_LEVELS - depth - 1))]

        def shown(match: re.Match[str]) -> str:
            place = int(match[1]) - 1
            other = levels.get(place, level)
            count = counts[place]
            return marked_by(other.start if count is None else count, "decimal" if level.legal else other.form)

        return squeeze(_PLACE.sub(shown, level.text)) or None


def _level(node: etree._Element) -> tuple[int, _Level]:
    return whole_number(node.get(qualified("w:ilvl")), 0), _Level(
        form=value(node, "w:numFmt", "decimal"),
        text="" if value(node, "w:numFmt") == "none" else value(node, "w:lvlText")[:100],
        start=whole_number(value(node, "w:start"), 1),
        legal=bool(switched(node, "w:isLgl")),
    )
