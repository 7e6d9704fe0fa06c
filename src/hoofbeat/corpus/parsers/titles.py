"""What a document is called: the first of several candidates that is a title.

Software fills the title field with what it has at hand: `about:blank`, `Microsoft Word - letter.doc`, `Slide 1`, an
address, a file's name. Papers without a title begin with "Introduction". Lists and pages of sources then show these.
`data/titles.toml` lists what is not a title, in one place for all formats. The next best candidate is taken instead:
the first heading, then a first line that is written like a heading, then the file's name.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources

from hoofbeat.records import Section
from hoofbeat.text import for_word_matching, squeeze

MAX_TITLE = 300
_LETTERS = re.compile(r"[^\W\d_]")


@cache
def _not_titles() -> re.Pattern[str]:
    raw = resources.files("hoofbeat.corpus").joinpath("data/titles.toml").read_text(encoding="utf-8")
    data: dict[str, list[str]] = tomllib.loads(raw)
    names = "|".join(re.escape(name) for name in data["names"])
    numbered = "|".join(re.escape(name) for name in data["numbered"])
    suffixes = "|".join(map(re.escape, data["suffixes"]))
    patterns = "|".join(data["patterns"])
    sections = "|".join(re.escape(name) for name in data["sections"])
    return re.compile(
        rf"[\[<(]?(?:{names})[\])>]?|(?:{names}|{numbered})[\s_-]*\(?\d{{1,4}}\)?|\S.*\.(?:{suffixes})|{patterns}"
        rf"|(?:(?:\d{{1,2}}|[ivx]{{1,4}})[.):]?\s+)?(?:{sections})\s*[:.]?",
        re.IGNORECASE,
    )


def is_title(text: str) -> bool:
    """Whether a text can be a document's title: it has letters, and it is not what software writes there itself."""
    words = squeeze(text)
    return bool(_LETTERS.search(words)) and len(words) > 1 and not _not_titles().fullmatch(words)


def best_title(candidates: Iterable[str], sections: Sequence[Section], first_line: str, stem: str) -> str:
    """The first candidate that is a title, else the first heading that is one, else the first line, else the name."""
    headings = (section.heading for section in sections if section.heading)
    for words in map(squeeze, (*candidates, *headings, first_line)):
        if is_title(words) and len(words) <= MAX_TITLE:
            return words
    return stem


def stated_or_shown(stated: str, shown: str, text: str) -> str:
    """The title that a file states, unless its first page shows another one; empty where neither is a title.

    Files made from older ones keep the older title in their properties: then the text lacks its words.
    """
    if is_title(stated) and is_title(shown):
        return stated if set(for_word_matching(stated).split()) <= set(for_word_matching(text).split()) else shown
    return next(filter(is_title, (stated, shown)), "")
