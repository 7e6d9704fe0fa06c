"""A text without what printing, copying and typing change: for every folded character, which one it came from.

Case, white space, typographic quotes and dashes, ligatures, accents, soft hyphens and hyphens at line ends go; the
order of what is left stays, so that a place in the folded text is a place in the text. A raised digit after a digit
is an exponent and folds to "^" and the digit: 10⁵ is 10^5, never 105.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from functools import lru_cache

from msgspec import Struct

__all__ = ["Folded", "fold"]

_PIECE = re.compile(
    r"(?P<broken>(?<=[^\W\d_])[-\u2010\u00ad][^\S\n]*\n[^\S\n]*(?=[^\W\d_]))"  # a word broken over two lines
    r"|(?P<space>\s+)|(?P<plain>[!-,.-~]+)|(?P<other>.)",
    re.DOTALL,
)
_SIGNS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u00b4\u2032`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
    "\u2026": "...",
    "\u00d7": "x",
    "\u2264": "<=",
    "\u2265": ">=",
    "\u00f8": "o",
    "\u0142": "l",
    "\u00e6": "ae",
    "\u0153": "oe",
}
_RAISED = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")


class Folded(Struct, frozen=True):
    """The folded text, and for each of its characters where in the original that one begins."""

    original_text: str
    text: str
    starts: array[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original behind these, with the accents that belong to the last."""
        first, last = self.starts[start], self.starts[end - 1] + 1
        while last < len(self.original_text) and unicodedata.combining(self.original_text[last]):
            last += 1
        return first, last


def fold(text: str) -> Folded:
    """Fold a text. Time grows with its length, whatever it holds."""
    parts: list[str] = []
    starts = array("L")
    for piece in _PIECE.finditer(text):
        kind, begin = piece.lastgroup, piece.start()
        if kind == "plain":
            parts.append(piece.group().lower().replace("`", "'"))
            starts.extend(range(begin, piece.end()))
        elif kind == "space":
            parts.append(" ")
            starts.append(begin)
        elif kind == "other" and (sign := _folded_sign(piece.group())):
            if piece.group() in _RAISED and begin and text[begin - 1].isdecimal():
                sign = "^" + sign
            parts.append(sign)
            starts.extend([begin] * len(sign))
    return Folded(text, "".join(parts), starts)


@lru_cache(maxsize=10_000)
def _folded_sign(sign: str) -> str:
    """One character folded: none where it is a mark or a format character, several where it is a ligature."""
    folded = ""
    plain = unicodedata.normalize("NFKD", _SIGNS.get(sign, sign)).casefold()
    for each in "".join(_SIGNS.get(letter, letter) for letter in plain):
        if not unicodedata.combining(each) and (each == " " or unicodedata.category(each) not in {"Cf", "Cc", "Mn"}):
            folded += each
    return folded
