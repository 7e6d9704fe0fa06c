"""Text of a web page that a visitor can't see, by what the page itself says: attributes, styles and `<style>` blocks.

A browser is not run and no style sheet is loaded, so this decides only what the page says in plain words: selectors of
one element (`p`, `.note`, `#top`, `p.note`), not of elements inside others. What may become visible (a panel that
opens, a picture that fades in) or can't be known (white words whose background a linked style sheet may set) is hidden
only where it tells a model what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lxml import etree

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.prompts.instructions import instructions_in

MIN_FONT = 2.0
FAR = 500.0
MAX_RULES = 20_000
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NEAR_COLOUR = 10
_BODY_FONT = 16.0

_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_BLOCK = re.compile(r"([^{}]*)\{([^{}]*)\}")
_SHOWN_MEDIA = re.compile(r"@media\s+(?:all|screen)\s*$", re.IGNORECASE)
_SIMPLE = re.compile(r"([a-z][a-z0-9]*|\*)?((?:[.#][\w-]+)*)", re.IGNORECASE)
_PART = re.compile(r"[.#][\w-]+")
_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*(px|pt|em|rem|ex|ch|vw|vh|%|in|cm|mm|pc)?", re.IGNORECASE)
_PIXELS = {"": 1.0, "px": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "ex": 8.0, "ch": 8.0,
           "em": 16.0, "rem": 16.0, "vw": 10.0, "vh": 8.0, "%": 10.0}  # fmt: skip
_SIZES = {"xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
          "xx-large": 32.0}  # fmt: skip
_NAMES = {
    "white": (255, 255, 255), "black": (0, 0, 0), "snow": (255, 250, 250), "ivory": (255, 255, 240),
    "whitesmoke": (245, 245, 245), "ghostwhite": (248, 248, 255), "floralwhite": (255, 250, 240),
    "silver": (192, 192, 192), "gray": (128, 128, 128), "grey": (128, 128, 128), "lightgray": (211, 211, 211),
    "lightgrey": (211, 211, 211), "darkgray": (169, 169, 169), "red": (255, 0, 0), "maroon": (128, 0, 0),
    "yellow": (255, 255, 0), "olive": (128, 128, 0), "lime": (0, 255, 0), "green": (0, 128, 0), "aqua": (0, 255, 255),
    "cyan": (0, 255, 255), "teal": (0, 128, 128), "blue": (0, 0, 255), "navy": (0, 0, 128),
    "fuchsia": (255, 0, 255), "magenta": (255, 0, 255), "purple": (128, 0, 128), "orange": (255, 165, 0),
}  # fmt: skip
_NO_CLIP = re.compile(
    r"rect\(\s*(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?[\s,]+(?:0|1)(?:px)?\s*\)"
    r"|inset\(\s*(?:[5-9]\d|\d{3,})(?:\.\d+)?%\s*\)|(?:circle|ellipse)\(\s*0(?:px|%)?[^)]*\)"
    r"|polygon\(\s*0(?:px|%)?\s+0(?:px|%)?(?:\s*,\s*0(?:px|%)?\s+0(?:px|%)?)*\s*\)",
    re.IGNORECASE,
)
_MOVED = re.compile(r"translate(?:x|y|3d)?\(\s*(-?\d+(?:\.\d+)?)(?:px|vw|vh|%)?(?:\s*,\s*(-?\d+(?:\.\d+)?))?", re.I)
_SHRUNK = re.compile(r"scale(?:x|y|3d)?\(\s*0(?:\.0+)?\s*[,)]", re.IGNORECASE)

Colour = tuple[int, int, int]
Style = dict[str, str]


class _Rule(NamedTuple):
    tag: str
    classes: frozenset[str]
    id: str
    order: int
    style: Style
    important: Style

    @property
    def weight(self) -> tuple[int, int, int, int]:
        """What decides between rules: id, classes, element, then the later one."""
        return bool(self.id), len(self.classes), bool(self.tag), self.order


class _Look(NamedTuple):
    """How text inside an element looks: inherited by what is in it."""

    font: float = _BODY_FONT
    colour: Colour | None = (0, 0, 0)
    clear: bool = False
    background: Colour | None = (255, 255, 255)
    invisible: bool = False
    outdented: bool = False


class PageStyles:
    """The styles that a page states about itself; made before its `<style>` blocks are taken out."""

    def __init__(self, root: etree._Element) -> None:
        self._rules: dict[str, list[_Rule]] = {}
        self._count = 0
        self.complete = not any("stylesheet" in (node.get("rel") or "").lower() for node in root.iter("link"))
        for node in root.iter("style"):
            self._add(_all_text(node, ""))

    def _add(self, sheet: str) -> None:
        for selectors, text in _blocks(_COMMENT.sub(" ", sheet)):
            style, important = _declarations(text)
            for selector in selectors.split(","):
                match = _SIMPLE.fullmatch(selector.strip())
                if not match or not selector.strip():
                    self.complete = self.complete and not {"background", "background-color"} & {*style, *important}
                elif self._count < MAX_RULES:
                    parts = _PART.findall(match[2])
                    tag = (match[1] or "").lower().replace("*", "")
                    classes = frozenset(part[1:] for part in parts if part[0] == ".")
                    ids = [part[1:] for part in parts if part[0] == "#"]
                    rule = _Rule(tag, classes, ids[0] if ids else "", self._count, style, important)
                    key = next((part for part in parts if part[0] == "#"), parts[0] if parts else tag)
                    self._rules.setdefault(key, []).append(rule)
                    self._count += 1

    def of(self, node: etree._Element) -> Style:
        """What is declared for one element."""
        if not self._count and not node.keys():
            return {}
        found: Style = {}
        important: Style = {}
        names = frozenset((node.get("class") or "").split())
        keys = ("", str(node.tag), f"#{node.get('id')}", *(f".{name}" for name in names))
        mine = [
            rule
            for key in keys
            for rule in self._rules.get(key, ())
            if rule.tag in {"", node.tag} and rule.id in {"", node.get("id")} and rule.classes <= names
        ]
        for rule in sorted(mine, key=lambda each: each.weight):
            found |= rule.style
            important |= rule.important
        style, insisted = _declarations(node.get("style") or "")
        attributes = {}
        if node.tag == "font" and node.get("color"):
            attributes["color"] = str(node.get("color"))
        if node.get("bgcolor"):
            attributes["background-color"] = str(node.get("bgcolor"))
        return {**attributes, **found, **style, **important, **insisted}


def _blocks(sheet: str) -> Iterator[tuple[str, str]]:
    """Selectors and declarations of a sheet; what is for other media than a screen is skipped."""
    place = 0
    while (opened := sheet.find("{", place)) >= 0:
        head = sheet[place:opened].rpartition(";")[2].strip()
        closed = sheet.find("}", opened)
        if not head.startswith("@"):
            yield head, sheet[opened + 1 : closed if closed >= 0 else len(sheet)]
            place = closed + 1 if closed >= 0 else len(sheet)
            continue
        depth, end = 1, opened + 1
        while end < len(sheet) and depth:
            depth += {"{": 1, "}": -1}.get(sheet[end], 0)
            end += 1
        if _SHOWN_MEDIA.match(head):
            for match in _BLOCK.finditer(sheet[opened + 1 : end - 1]):
                yield match[1].strip(), match[2]
        place = end


def _declarations(text: str) -> tuple[Style, Style]:
    """Properties and values in lower case: the usual ones, and those marked as important."""
    usual: Style = {}
    important: Style = {}
    for each in text.split(";"):
        name, colon, value = each.partition(":")
        if colon:
            plain, mark, _ = value.strip().lower().partition("!important")
            (important if mark else usual)[name.strip().lower()] = plain.strip()
    return usual, important


def leave_out_hidden(
    root: etree._Element, main: etree._Element, styles: PageStyles, hidden: HiddenTexts
) -> None:  # fmt: skip
    """Take out the hidden text of a page; what is outside its main part is not read, so it is not listed."""
    _Walk(main, styles, hidden).element(root, styles.of(root), _Look(), inside=root is main)


def why_hidden(tag: str, attributes: str, text: str) -> str:
    """Why one element of this text is hidden by its own attributes; empty where it is not."""
    root = etree.fromstring(f"<{tag} {attributes}></{tag}>", etree.HTMLParser(no_network=True))
    node = None if root is None else next(root.iter(tag.lower()), None)
    if node is None:
        return ""
    style = PageStyles(node).of(node)
    for why, sure in (_why_element(node, style), _why_not_seen(_inherited(_Look(), style), known=True)):
        if why and (sure or instructions_in(text)):
            return why
    return ""


class _Walk:
    """One pass over a page from the outside in; recursion is bounded by the depth of pages that are read.

    Where the whole main part is hidden, a script shows it: nobody publishes a page that nobody sees.
    """

    def __init__(self, main: etree._Element, styles: PageStyles, hidden: HiddenTexts) -> None:
        self.main = main
        self.around = {main, *main.iterancestors()}
        self.styles = styles
        self.hidden = hidden

    def element(self, node: etree._Element, style: Style, look: _Look, *, inside: bool) -> None:
        """Take out what is hidden in one element."""
        look = _inherited(look, style) if style else look
        if node in self.around:
            look = look._replace(invisible=False)
        if inside and self._is_left_out(node.text, look, node):
            node.text = " "
        for child in list(node.iterchildren(etree.Element)):
            if inside and self._is_left_out(child.tail, look, node):
                child.tail = " "
            own = self.styles.of(child)
            why = "" if child in self.around else _why_not_shown(child, own)
            if not why:
                self.element(child, own, look, inside=inside or child is self.main)
            elif inside and self.hidden.leaves_out(_place(child), why, _all_text(child)):
                without(child)

    def _is_left_out(self, text: str | None, look: _Look, node: etree._Element) -> bool:
        if not text or not text.strip():
            return False
        why, sure = _why_not_seen(look, known=self.styles.complete)
        return bool(why and (sure or instructions_in(text))) and self.hidden.leaves_out(_place(node), why, text)


def _why_not_shown(node: etree._Element, style: Mapping[str, str]) -> str:
    """Why an element is not shown with all that is in it; empty where it is, or has no words."""
    why, sure = _why_element(node, style)
    if not why:
        return ""
    text = _all_text(node)
    return why if text.strip() and (sure or instructions_in(text)) else ""


def _why_element(node: etree._Element, style: Mapping[str, str]) -> tuple[str, bool]:
    """Why an element is not shown, and whether that is sure: what changes with time may be shown later."""
    if node.get("hidden") is not None:
        return "the attribute hidden", True
    if not style:
        return "", True
    steady = not any(name.startswith(("transition", "animation")) for name in style)
    if style.get("display") == "none":
        return "display: none", True
    if (shown := _length(style.get("opacity", ""))) is not None and shown <= 0.01:
        return "opacity 0", steady
    clip = style.get("clip-path", "") or (style.get("clip", "") if style.get("position") != "static" else "")
    if clip and _NO_CLIP.search(clip):
        return "clipped to nothing", True
    if style.get("overflow", style.get("overflow-y", "")) in {"hidden", "clip"}:
        for name in ("width", "height", "max-width", "max-height"):
            size = _length(style.get(name, ""))
            if size is not None and size <= 1:
                return f"{name.removeprefix('max-')} 0", steady and (not name.startswith("max-") or size <= 0)
    if _is_far_away(style):
        return "outside the screen", True
    moved = _MOVED.search(style.get("transform", ""))
    if moved and min(float(each) for each in moved.groups() if each) <= -FAR:
        return "outside the screen", steady
    return ("scaled to nothing", steady) if _SHRUNK.search(style.get("transform", "")) else ("", True)


def _is_far_away(style: Mapping[str, str]) -> bool:
    """Whether offsets or margins put an element outside the screen."""
    names = ["margin-left", "margin-top", "margin-right"]
    if style.get("position", "static") in {"absolute", "fixed", "relative"}:
        names += ["left", "top", "right", "bottom"]
    return any((_length(style.get(name, "")) or 0) <= -FAR for name in names)


def _why_not_seen(look: _Look, *, known: bool) -> tuple[str, bool]:
    """Why text of this look can't be seen, and whether that is sure."""
    if look.invisible:
        return "visibility: hidden", True
    if look.font <= MIN_FONT:
        return f"letters of {look.font:.2g} pixels", True
    if look.outdented:
        return "outside the screen", True
    if look.clear:
        return "transparent letters", True
    if look.colour and look.background and _close(look.colour, look.background):
        return "letters in the colour of the background", known
    return "", True


def _inherited(look: _Look, style: Mapping[str, str]) -> _Look:
    """The look of text in an element, from that around it and what is declared for it."""
    if "font-size" in style:
        look = look._replace(font=_font(style["font-size"], look.font))
    elif (size := re.search(r"(?:^|\s)([\d.]+(?:px|pt|em|rem|%))", style.get("font", ""))) is not None:
        look = look._replace(font=_font(size[1], look.font))
    if "visibility" in style:
        look = look._replace(invisible=style["visibility"] in {"hidden", "collapse"})
    if "text-indent" in style:
        look = look._replace(outdented=(_length(style["text-indent"]) or 0) <= -FAR)
    if "color" in style and style["color"] not in {"inherit", "unset"}:
        colour, seen = _colour(style["color"])
        look = look._replace(colour=colour, clear=seen <= 0.02)
    ground = style.get("background-color") or style.get("background", "")
    if "background-image" in style or re.search(r"url\(|gradient", ground):
        look = look._replace(background=None)
    elif ground and ground not in {"none", "inherit", "initial", "unset"}:
        colour, seen = next(filter(lambda each: each[0], map(_colour, _words(ground))), (None, 1.0))
        if seen > 0.02:
            look = look._replace(background=colour if seen > 0.98 else None)
    return look


def _words(value: str) -> Sequence[str]:
    return re.findall(r"[a-z-]+\([^)]*\)|[^\s]+", value)


def _font(value: str, around: float) -> float:
    if value in _SIZES:
        return _SIZES[value]
    match = _LENGTH.fullmatch(value)
    if not match:
        return around
    number, unit = float(match[1]), (match[2] or "").lower()
    if not unit and number:
        return around  # not a length
    if unit in {"em", "%"}:
        return around * (number if unit == "em" else number / 100)
    return number * _PIXELS[unit]


def _length(value: str) -> float | None:
    match = _LENGTH.fullmatch(value)
    return float(match[1]) * _PIXELS[(match[2] or "").lower()] if match else None


def _colour(value: str) -> tuple[Colour | None, float]:
    """A colour and how much of it is seen; None where it can't be told."""
    if value == "transparent":
        return (0, 0, 0), 0.0
    if value in _NAMES:
        return _NAMES[value], 1.0
    if match := re.fullmatch(r"#([0-9a-f]{3,8})", value):
        digits = match[1] if len(match[1]) > 4 else "".join(each * 2 for each in match[1])
        parts = [int(digits[place : place + 2], 16) for place in range(0, len(digits) - 1, 2)]
        if len(parts) in {3, 4}:
            return (parts[0], parts[1], parts[2]), parts[3] / 255 if len(parts) == 4 else 1.0
    if match := re.fullmatch(r"rgba?\(([^)]*)\)", value):
        numbers = re.findall(r"(\d+\.?\d*|\.\d+)(%?)", match[1])
        if len(numbers) in {3, 4}:
            red, green, blue = (min(255, round(float(n) * (2.55 if p else 1))) for n, p in numbers[:3])
            seen = float(numbers[3][0]) / (100 if numbers[3][1] else 1) if len(numbers) == 4 else 1.0
            return (red, green, blue), seen
    return None, 1.0


def _close(one: Colour, two: Colour) -> bool:
    return max(abs(a - b) for a, b in zip(one, two, strict=True)) <= _NEAR_COLOUR


def _all_text(node: etree._Element, joint: str = " ") -> str:
    return joint.join(map(str, node.itertext()))


def _place(node: etree._Element) -> str:
    return f"line {node.sourceline}, <{node.tag}>"


def without(node: etree._Element) -> None:
    """Take an element out of its page; the text after it stays."""
    parent, before, tail = node.getparent(), node.getprevious(), node.tail or ""
    assert parent is not None
    if before is None:
        parent.text = _storable((parent.text or "") + tail)
    else:
        before.tail = _storable((before.tail or "") + tail)
    parent.remove(node)


def _storable(text: str) -> str:
    """Text as lxml takes it. It reads control characters, also written as references, but does not take them back."""
    return _NOT_XML.sub(" ", text)
