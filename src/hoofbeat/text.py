"""Text that others wrote: cleaned for where it goes, and brought into a normal form for what it is compared for.

Cleaning. Documents, answers and labels are foreign text. `clean` shows hidden characters by number (pages, reports);
`for_terminal` replaces what steers a terminal; `printable` drops what a reader can't see (prompts, sheets); `typed` is
what a person sent in a form; `encodable` is what tokenizers and databases take; `squeeze` makes one line of a source.

Normal forms. Each is named by its purpose, because they must differ: `caseless` for names and labels that people type,
`for_word_matching` and `for_title_matching` where only the words count, `for_quote_matching` where every folded
character must lead back to its place, `for_exact_match` as in SQuAD. Forms that need word lists or a domain's rules are
beside those: `corpus.terms.term_form`, `answering.option_names`, `audit.pair_plan.same_answer_form`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import ceil

from msgspec import Struct

# Cleaning

_CONTROLS = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f"  # without tab, line feed and carriage return
_MORE_CONTROLS = "\x80-\x9f"  # terminals obey them; old encodings have letters there
_DIRECTIONS = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_HALVES = "\ud800-\udfff"  # halves of surrogate pairs
_NO_CHARACTERS = "\ufffe\uffff"

_UNSEEN = re.compile(
    f"[{_CONTROLS}{_MORE_CONTROLS}{_DIRECTIONS}{_HALVES}{_NO_CHARACTERS}"
    "\u00ad\u200b\u2060-\u2064\u206a-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"  # invisible, and tags
)
_STEERING = re.compile(f"[{_CONTROLS}\r{_MORE_CONTROLS}{_DIRECTIONS}{_HALVES}\u2028\u2029]")
_NOT_TYPED = re.compile(f"[{_CONTROLS}{_HALVES}]")
_INVISIBLE = re.compile("[\u00ad\u200b\u200c\u200d\u2060\ufeff]")
_NOT_IN_SOURCES = re.compile(f"[\x00-\x08\x0e-\x1f\x7f{_HALVES}{_NO_CHARACTERS}]")
_BREAKS = re.compile("\r\n?|\u2028|\u2029|\u0085")


def clean(text: str) -> str:
    """The text with line breaks made one kind and every hidden character shown by its number."""
    return _UNSEEN.sub(lambda match: f"⟨U+{ord(match[0]):04X}⟩", _BREAKS.sub("\n", text))


def one_line(text: str) -> str:
    """Cleaned, with every run of spaces and line breaks as one space."""
    return " ".join(clean(text).split())


def cut(text: str, length: int) -> str:
    """One line of at most `length` characters, with an ellipsis where some are missing."""
    line = one_line(text)
    if len(line) <= length:
        return line
    space = line.rfind(" ", max(0, length - 16), length)
    return line[: space if space > 0 else length - 1].rstrip() + "…"


_MARKUP = re.compile(r"([\\`*\[\]|~$])|(?<![^\W_])(_)|(_)(?![^\W_])")
_MARKUP_START = re.compile(r"^([#+=-])|^(\d+)([.)])(?=\s)")


def plain_markdown(line: str) -> str:
    """A line as Markdown that shows it as it is: no links, pictures, headings or tags come of it."""
    plain = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    marked = _MARKUP.sub(lambda match: "\\" + match[0], plain)
    return _MARKUP_START.sub(lambda match: f"\\{match[1]}" if match[1] else f"{match[2]}\\{match[3]}", marked)


def some_of(names: Sequence[str], most: int, joint: str = ", ") -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return joint.join(names[:most]) + more


def dollars(amount: float, *, at_most: bool = False) -> str:
    """Money as people write it: `$1.00`, small amounts with four decimals; with `at_most` it is never rounded down."""
    digits = 2 if amount >= 0.1 or not amount else 4
    shown = ceil(amount * 10**digits - 1e-9) / 10**digits if at_most else amount
    return f"${shown:,.{digits}f}"


def duration(seconds: float) -> str:
    """A time in the units that people use: `8 s`, `12 min`, `3 h 20 min`, `2 days 4 h`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(hours, 24)
    return f"{days} days {hours} h" if hours else f"{days} days"


def same_name(name: str, wanted: str) -> bool:
    """Whether a name is the one that a page's address asks for: pages show names without their hidden characters."""
    return name == wanted or one_line(name) == one_line(wanted)


def for_terminal(text: str) -> str:
    """The text with every character that could steer a terminal replaced, one for one: offsets stay right."""
    return _STEERING.sub("\ufffd", text)


def line_for_terminal(text: str, breaks: str = "\ufffd") -> str:
    """The same as one line: what names and titles of others contain can't look like a line of ours."""
    return for_terminal(text).replace("\n", breaks)


def printable(text: str) -> str:
    """The text without control, invisible and direction-changing characters."""
    text = _BREAKS.sub("\n", text)
    if not text.replace("\n", "").replace("\t", "").replace("\u00a0", "").isprintable():
        text = "".join(c if c in "\n\t\u00a0" or c.isprintable() else " " if c.isspace() else "" for c in text)
    return text.strip()


def typed(text: str) -> str:
    """What a person wrote in a form: one kind of line break, no controls, nothing around it."""
    return _NOT_TYPED.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip()


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs as question marks: nothing else takes them. Its length stays."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode("utf-8")
    return text


_MAX_DIGITS = 18


def whole_number(text: str) -> int | None:
    """The number that a text is, written in digits; None for anything else.

    `isdigit` is true of `²`, and Python reads no number of five thousand digits: both occur in damaged files.
    """
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None


_SPACES = ("\n", "\t", "\u00a0", "\u2003", "\u2009", "\u200a")
"""White space that is common in articles, beside the space."""


def squeeze(text: str) -> str:
    """Text of a source with every run of white space made one space, and invisible and control characters removed."""
    plain = text
    if not plain.isprintable():
        for space in _SPACES:
            plain = plain.replace(space, " ")
        if not plain.isprintable():
            words = " ".join(text.split())
            return (
                words if words.isprintable() else " ".join(_NOT_IN_SOURCES.sub(" ", _INVISIBLE.sub("", text)).split())
            )
    while "  " in plain:  # it has no white space but spaces, and need not be split into words
        plain = plain.replace("  ", " ")
    return plain.strip()


_EXPONENT = re.compile(r"[+\-−–]?\d{1,3}")
_POWERS = str.maketrans("0123456789+-−–", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁻")
_LONGEST_BASE = 4
"""Three letters of a unit and the character before them: the end of a long text is all that is looked at."""
_BASE = re.compile(r"[\d⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻]\Z|(?<![^\W\d_])(?:[kcdmµμ]?m|s|h|min|[dm]?l|k?g|mg)\Z", re.IGNORECASE)


def raised(before: str, text: str) -> str:
    """Superscript text after `before`: an exponent as superscript digits (10⁹, m²), other text unchanged.

    Without it "10<sup>9</sup>" would be read as 109. A superscript number after a word is a note mark and stays one.
    """
    power = text.strip()
    return power.translate(_POWERS) if _EXPONENT.fullmatch(power) and _BASE.search(before[-_LONGEST_BASE:]) else text


# Normal forms


def without_accents(text: str) -> str:
    """The text with its letters and signs taken apart, and without their marks: é is e, ﬁ is fi, ² is 2."""
    if text.isascii():
        return text
    return "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))


def ascii_letters(text: str) -> str:
    """The text with what ASCII has of it: é is e, ß is gone. For names of files and ids."""
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def caseless(text: str) -> str:
    """For names and labels that people type: case and white space do not count, punctuation does."""
    return " ".join(text.casefold().split())


def for_word_matching(text: str) -> str:
    """The words alone, in small letters: punctuation does not count either, accents do."""
    return " ".join(re.findall(r"\w+", text.casefold()))


def for_title_matching(text: str) -> str:
    """The words alone, without case and accents: catalogues and references drop them."""
    return for_word_matching(without_accents(text))


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
_STRUCK = frozenset("\u0335\u0336\u0337\u0338\u20d2\u20d3\u20e5")  # through a sign, they negate it: ≯ is not >
_STROKE = "\u0338"
_MEGA = re.compile(r"\d\s?M(?=(?i:IU|U|Bq|Hz|Pa|J|W|eV)\b)")  # 5 MU is not 5 mU


class Folded(Struct, frozen=True):
    """A folded text, and for each of its characters where in the original that one begins."""

    original_text: str
    text: str
    starts: array[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the original behind these, with the accents that belong to the last."""
        first, last = self.starts[start], self.starts[end - 1] + 1
        while last < len(self.original_text) and unicodedata.combining(self.original_text[last]):
            last += 1
        return first, last


def for_quote_matching(text: str) -> Folded:
    """A text without what printing, copying and typing change: for every character, which one it came from.

    Case, white space, typographic quotes and dashes, ligatures, accents, soft hyphens and hyphens at line ends go; the
    order of what is left stays, so that a place in the folded text is a place in the text. A raised digit after a digit
    is an exponent and folds to "^" and the digit: 10⁵ is 10^5, never 105. What negates a sign stays (≯, ≠), and so does
    the capital of a million units (MU). Time grows with the text's length.
    """
    parts: list[str] = []
    starts = array("L")
    mega = {found.end() - 1 for found in _MEGA.finditer(text)}
    for piece in _PIECE.finditer(text):
        kind, begin = piece.lastgroup, piece.start()
        if kind == "plain":
            small = piece.group().lower().replace("`", "'")
            for place in mega.intersection(range(begin, piece.end())) if mega else ():
                small = f"{small[: place - begin]}M{small[place - begin + 1 :]}"
            parts.append(small)
            starts.extend(range(begin, piece.end()))
        elif kind == "space":
            parts.append(" ")
            starts.append(begin)
        elif piece.group() in _STRUCK and begin and not text[begin - 1].isalnum():
            parts.append(_STROKE)
            starts.append(begin)
        elif kind == "other" and (sign := _folded_sign(piece.group())):
            if piece.group() in _RAISED and begin and text[begin - 1].isdecimal():
                sign = "^" + sign
            parts.append(sign)
            starts.extend([begin] * len(sign))
    return Folded(text, "".join(parts), starts)


def negated_signs(text: str) -> Counter[str]:
    """The signs with a stroke through them, such as ≯, ≠ and ∉, however they are written."""
    if text.isascii():
        return Counter()
    return Counter(re.findall(rf"[^\w\s]{_STROKE}", for_quote_matching(text).text))


def large_units(text: str) -> Counter[str]:
    """Numbers in millions of a unit, such as 5 MU, which is not 5 mU."""
    return Counter("".join(each.split()) for each in _MEGA.findall(text))


@lru_cache(maxsize=10_000)
def _folded_sign(sign: str) -> str:
    """One character folded: none where it is a mark or a format character, several where it is a ligature."""
    folded = ""
    plain = unicodedata.normalize("NFKD", _SIGNS.get(sign, sign)).casefold()
    for each in "".join(_SIGNS.get(letter, letter) for letter in plain):
        if each in _STRUCK and folded and not folded.isalnum():
            folded += _STROKE
        elif not unicodedata.combining(each) and (each == " " or unicodedata.category(each) not in {"Cf", "Cc", "Mn"}):
            folded += each
    return folded


_UNSAFE_IN_IDS = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_ID = 120


def safe_id(text: str) -> str:
    """An identifier that is safe as a file name: ASCII letters, digits, `.`, `_`, `-`, never empty or a dot path."""
    name = _UNSAFE_IN_IDS.sub("_", ascii_letters(text)).lstrip("._-").rstrip("._")
    if not name:
        name = "document-" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]
    if len(name) > _MAX_ID:
        name = name[: _MAX_ID - 13] + "-" + hashlib.sha256(name.encode()).hexdigest()[:12]
    return name


# How alike two texts are

_TOKEN = re.compile(r"(?<!\w)[-−]?\d+(?:[.,]\d+)*|[^\W_]+|[^\w\s]")
_MEANINGFUL = {"%", "‰"}
_ARTICLES = {"a", "an", "the"}


def for_exact_match(text: str) -> str:
    """The words, numbers and signs of a text: case, punctuation, articles and the width of characters left out.

    Unlike the other normal forms it follows SQuAD's exact match: accents and spelling count. A number keeps its sign
    and decimals and is separate from its unit; signs that carry meaning (%, <, ±) stay.
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("−", "-")
    return " ".join(token for token in _TOKEN.findall(folded) if token not in _ARTICLES and _has_meaning(token))


def _has_meaning(token: str) -> bool:
    return len(token) > 1 or token.isalnum() or token in _MEANINGFUL or unicodedata.category(token).startswith("S")


def fuzzy_match(text: str, reference: str) -> float:
    """rapidfuzz's `token_sort_ratio` of the normalised texts, over 100.

    The words are sorted, and the characters compared: 2M / (length + length), where M is the length of the longest
    common subsequence of characters.
    """
    from rapidfuzz import fuzz  # noqa: PLC0415 - few that clean a text compare one

    one, two = for_exact_match(text), for_exact_match(reference)
    return fuzz.token_sort_ratio(one, two) / 100 if one and two else 0.0
