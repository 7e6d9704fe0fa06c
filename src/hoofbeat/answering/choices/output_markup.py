"""An output in plain words: markup taken away, and what only an answer stands in turned into a mark of its own."""

from __future__ import annotations

import re
import unicodedata

from hoofbeat.answering.choices.choice_wording import load_wording

_BOX, _TAG, _FIELD = "\ue000", "\ue001", "\ue002"
MARKS = {_BOX: "boxed", _TAG: "answer-tag", _FIELD: "json"}
"""The marks before what stood in a LaTeX box, an answer tag, or an answer's field of a JSON object."""

_KEYS = (
    r"final_?answer|answer(?:_?(?:choice|letter|text|option|key))?|choice|chosen|selected(?:_?(?:option|answer))?|"
    r"correct_?(?:option|answer|choice)|option|prediction|predicted|letter"
)
_VALUE = r"""(?:"([^"\n]*)"|'([^'\n]*)'|\[([^\]\n]*)\]|(\w+)(?=\s*[,}\n]))"""
_MARKUP: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[\ue000-\ue00f]|[^\S\n]+"), " "),
    (re.compile(r"\n(?: ?\n)+"), "\n\n"),
    (re.compile(r"[\u2018\u2019\u02bc]"), "'"),
    (re.compile(r"[\u201c\u201d\u00ab\u00bb「」]"), '"'),
    (re.compile(r"[\ufe0f\u200b-\u200d\ufeff]"), ""),
    (re.compile(r"<\|[^|<>]{1,40}\|>|\[/?INST\]|~~[^~\n]*~~"), " "),
    (re.compile(r"🅰"), "A"),
    (re.compile(r"🅱"), "B"),
    (re.compile(r"\\(?:text|textbf|mathbf|mathrm|textrm|mathit|bf|rm)\s*\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\boxed\s*\{((?:[^{}]|\{[^{}]{0,200}\}){0,400})\}"), rf"\n{_BOX}\1\n"),
    (
        re.compile(r"<(final_?answer|answer|choice|option)>(.{0,2000}?)</\1>", re.DOTALL | re.IGNORECASE),
        rf"\n{_TAG}\2\n",
    ),
    (re.compile(rf"""["'](?:{_KEYS})["']\s*:\s*{_VALUE}""", re.IGNORECASE), rf"\n{_FIELD}\1\2\3\4\n"),
    (re.compile(r"\\[()\[\]]|\$"), " "),
    (re.compile(r"^\s*```\w*\s*$", re.MULTILINE), ""),
    (re.compile(r"<(?![A-Z]>)/?[A-Za-z][^<>]{0,60}>"), " "),
    (re.compile(r"\*{1,3}|_{2,3}|`"), ""),
    (re.compile(r"^\s*(?:#{1,6}(?!#)\s+|>\s?(?![\s\d]))", re.MULTILINE), ""),
)


def without_markup(text: str) -> str:
    """The output without markup, up to where the model goes on to ask itself another question."""
    plain = unicodedata.normalize("NFKC", text)
    for pattern, replacement in _MARKUP:
        plain = pattern.sub(replacement, plain)
    plain = plain.strip()
    following = load_wording().next_question.search(plain, 1)
    return plain[: following.start()] if following else plain
