"""Markdown: what institutions' handbooks and leaflets are usually kept in.

It is read for its structure (headings, lists, tables, images) and its text without markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from hoofbeat.corpus.hidden_text import HiddenTexts
from hoofbeat.corpus.parsers.prose import TextBuilder, assemble, is_item, list_items, split_front_matter
from hoofbeat.corpus.reader import DocumentEntry, Reader, SourceFile
from hoofbeat.records import Document
from hoofbeat.text import raised, squeeze

_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)\s*$")
_RULE = re.compile(r" {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_QUOTE = re.compile(r" {0,3}>[ \t]?")
_IMAGE = re.compile(r"!\[([^\]\[]{0,2000})\]\(\s*<?([^()\s<>]{1,2000})>?(?:\s+\"[^\"]{0,500}\")?\s*\)")
_LABEL = re.compile(r"((?:Figure|Fig\.?|Table|Box)\s*\w{1,6})\s*[.:]\s+", re.IGNORECASE)
_INLINE = (
    (re.compile(r"\[([^\]\[]{0,2000})\]\([^()]{0,2000}\)"), r"\1"),
    (re.compile(r"\[([^\]\[]{1,2000})\]\[[^\]\[]{0,200}\]"), r"\1"),
    (re.compile(r"<((?:https?://|mailto:)[^<>\s]{1,2000})>"), r"\1"),
    (re.compile(r"</?(?:br|div|p)(?:\s[^<>]{0,1000})?/?>", re.IGNORECASE), " "),
    (re.compile(r"</?(?:a|b|em|i|span|strong|sub|sup|u)(?:\s[^<>]{0,1000})?/?>", re.IGNORECASE), ""),
    (re.compile(r"(?<![\\*])\*(?=[^\s*])([^*]+?)(?<=[^\s\\])\*(?!\*)"), r"\1"),
    (re.compile(r"\*\*(?=\S)([^*]+?)(?<=\S)\*\*"), r"\1"),
    (re.compile(r"(?<![\w\\])(_{1,3})(?=[^\s_])([^_]+?)(?<=[^\s\\])\1(?!\w)"), r"\2"),
    (re.compile(r"~~(?=\S)([^~]+?)(?<=\S)~~"), r"\1"),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)
_SUP = re.compile(r"(.{0,4})(?:<sup>([^<>]{1,6})</sup>|\^([+−–-]?\d{1,3})\^)", re.IGNORECASE)
_BACKQUOTES = re.compile(r"`+")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STYLED = re.compile(
    r"<(a|b|div|em|font|i|p|section|small|span|strong|u)\b([^<>]{0,1000}\b(?:style|hidden|color)\b[^<>]{0,1000}+)>",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r" {0,3}\[[^\]\[]{1,200}\]:\s+\S")


class _Markdown(Reader):
    name = "markdown"
    summary = "Markdown with front matter: handbooks and leaflets of institutions"
    version = 2
    suffixes = (".md", ".markdown")

    def read(self, source: SourceFile) -> Iterator[DocumentEntry]:
        yield DocumentEntry(document=read_markdown(source.text(), source.stem, source.hidden))


def read_markdown(text: str, stem: str, hidden: HiddenTexts | None = None) -> Document:
    """The one document of a Markdown file; `hidden` takes what its HTML hides."""
    front, rest = split_front_matter(text)
    lines = _MarkdownLines()
    rest = _COMMENT.sub("", rest)
    if _STYLED.search(rest):
        rest = "".join(_shown(rest, hidden or HiddenTexts()))
    lines.read(rest.expandtabs(4).split("\n"))
    return assemble(front, lines.builder, stem)


def _shown(text: str, hidden: HiddenTexts) -> Iterator[str]:
    """A text without the HTML elements that hide what is in them. The end of each is looked for once."""
    from hoofbeat.corpus.parsers.html_hidden import why_hidden  # noqa: PLC0415 - lxml, only for styled elements

    place, open_ended = 0, set[str]()
    for begin in _STYLED.finditer(text):
        tag = begin[1].lower()
        if begin.start() < place or tag in open_ended:
            continue
        end = re.compile(rf"</{tag}\s*+>", re.IGNORECASE).search(text, begin.end())
        if end is None:
            open_ended.add(tag)
            continue
        inner = text[begin.end() : end.start()]
        why = why_hidden(begin[1], begin[2], inner)
        left_out = why and hidden.leaves_out(f"<{tag}>", why, inner)
        yield text[place : begin.start() if left_out else end.end()]
        place = end.end()
    yield text[place:]


def _plain(text: str) -> str:
    """Text without inline markup; what stands in backquotes is kept as it is."""
    return squeeze("".join(piece if is_code else _unmarked(piece) for piece, is_code in _code_spans(text)))


def _unmarked(text: str) -> str:
    text = _SUP.sub(lambda match: match[1] + raised(match[1], match[2] or match[3]), text)
    for pattern, replacement in _INLINE:
        text = pattern.sub(replacement, text)
    return html.unescape(text)


def _code_spans(text: str) -> Iterator[tuple[str, bool]]:
    """The text in pieces, each with whether it is code: what stands between two runs of equally many backquotes.

    One pass over the runs: a pattern would try every length of every run, which takes minutes where there are many.
    """
    runs = [match.span() for match in _BACKQUOTES.finditer(text)]
    next_of: dict[int, int] = {}
    closing: list[int | None] = [None] * len(runs)
    for number in range(len(runs) - 1, -1, -1):
        length = runs[number][1] - runs[number][0]
        closing[number] = next_of.get(length)
        next_of[length] = number
    place = number = 0
    while number < len(runs):
        end = closing[number]
        if end is None:
            number += 1
            continue
        yield text[place : runs[number][0]], False
        yield text[runs[number][1] : runs[end][0]], True
        place, number = runs[end][1], end + 1
    yield text[place:], False


class _MarkdownLines:
    """Reads lines into blocks."""

    def __init__(self) -> None:
        self.builder = TextBuilder()
        self._run: list[str] = []

    def read(self, lines: list[str]) -> None:
        """Read all lines."""
        place = 0
        while place < len(lines):
            place = self._step(lines, place)
        self._flush()

    def _step(self, lines: list[str], place: int) -> int:
        """Take the line at `place` (or the whole block that begins there) and return where to go on."""
        line = _QUOTE.sub("", lines[place]) if _QUOTE.match(lines[place]) else lines[place]
        heading = _HEADING.match(line.rstrip())
        fence = _FENCE.match(line)
        if heading or fence or not line.strip():
            self._flush()
        if heading:
            if text := _plain((heading.group(2) or "").rstrip(" #")):
                self.builder.nested_heading(text, len(heading.group(1)))
        elif fence:
            return self._code(lines, place, fence.group(1))
        elif "|" in line:
            return self._table(lines, place)
        elif len(self._run) == 1 and (underline := _UNDERLINE.match(line)) and _is_words(self._run[0]):
            if text := _plain(self._run.pop()):
                self.builder.nested_heading(text, 1 if underline.group(1)[0] == "=" else 2)
        elif _RULE.match(line) or _REFERENCE.match(line):
            self._flush()
        elif line.strip():
            if is_item(line) and self._run and not is_item(self._run[0]):
                self._flush()
            self._run.append(line)
        return place + 1

    def _code(self, lines: list[str], place: int, fence: str) -> int:
        end = place + 1
        while end < len(lines) and not lines[end].strip().startswith(fence):
            end += 1
        kept = [line.rstrip() for line in lines[place + 1 : end] if line.strip()]
        self.builder.paragraph("\n".join(kept).strip())  # a section begins and ends with text
        return end + 1

    def _table(self, lines: list[str], place: int) -> int:
        rule = set(lines[place + 1].strip()) if place + 1 < len(lines) else set()
        if not {"|", "-"} <= rule <= set("|:- "):
            self._run.append(lines[place])
            return place + 1
        caption = _plain(" ".join(self._run)) if len(self._run) == 1 and _LABEL.match(self._run[0]) else ""
        self._run = [] if caption else self._run
        self._flush()
        end = place + 2
        while end < len(lines) and "|" in lines[end]:
            end += 1
        rows = [_cells(line) for line in (lines[place], *lines[place + 2 : end])]
        label, words = _labelled(caption)
        self.builder.table((row for row in rows if any(row)), label=label, caption=words)
        return end

    def _flush(self) -> None:
        """End the paragraph or list under way; images in it follow it as figures."""
        lines, self._run = self._run, []
        if not lines:
            return
        images = _IMAGE.findall("\n".join(lines))
        if images:
            lines = [line for line in _IMAGE.sub("", "\n".join(lines)).split("\n") if line.strip()]
        if any(is_item(line) for line in lines):
            self.builder.paragraph("\n".join(list_items(lines, _plain)))
        else:
            self.builder.paragraph(_plain(" ".join(lines)))
        for caption, file in images:
            label, words = _labelled(_plain(caption))
            self.builder.figure(label=label, caption=words, files=[html.unescape(file)])


def _is_words(line: str) -> bool:
    return not is_item(line) and not _IMAGE.search(line)


def _labelled(caption: str) -> tuple[str, str]:
    match = _LABEL.match(caption)
    return (match.group(1), caption[match.end() :]) if match else ("", caption)


def _cells(line: str) -> tuple[str, ...]:
    text = line.strip().removeprefix("|")
    if text.endswith("|") and not text.endswith("\\|"):
        text = text[:-1]
    return tuple(_plain(cell.replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", text))


READER = _Markdown()
