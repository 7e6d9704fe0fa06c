"""What is shown of a case: the source's own text, less what is hidden, with single sentences reworded, all listed.

A model that rewrites a case may add to it. So a model says what gives the diagnosis away, and the rules here take it
out; where it rewords a sentence, rules compare the two (`rewording`). Rules alone take out the mentions that a model
leaves. Of a sentence such as "the biopsy showed granulomas, consistent with sarcoidosis (Fig. 2)" only the telling end
goes then; references to figures stay. The words that lead up to a diagnosis are data (`redacting.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import sentence_spans

Places = Sequence[tuple[int, int]]

_OPENING = re.compile(r"[\s,;:(–—-]+$")
_NO_SPACE = frozenset(".,;:)]")
_MIN_KEPT = 4
_NEAR = 80
_MAX_ROUNDS = 6
_LONGEST = 80


class _Rules(Struct, frozen=True):
    leading: re.Pattern[str]
    begun: re.Pattern[str]
    reference: re.Pattern[str]
    provisional: re.Pattern[str]
    says: re.Pattern[str]
    not_now: re.Pattern[str]
    clause: re.Pattern[str]
    turned_round: re.Pattern[str]
    confirmed_suspicion: re.Pattern[str]
    suspected: re.Pattern[str]
    old: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = word_data("redacting")
    leading = "|".join(f"(?:{each})" for each in data["leading"])
    return _Rules(
        leading=re.compile(rf"(?:^|(?<=[\s,;(]))(?:{leading})(?=\s)", re.IGNORECASE),
        begun=re.compile(data["begun"], re.IGNORECASE),
        reference=re.compile(data["reference"], re.IGNORECASE),
        provisional=re.compile(data["provisional"], re.IGNORECASE),
        says=re.compile("|".join([*data["made"], *data["found"]]), re.IGNORECASE),
        not_now=re.compile("|".join([*data["not_yet"], *data["not_now"]]), re.IGNORECASE),
        clause=re.compile(data["clause"], re.IGNORECASE),
        turned_round=re.compile(data["turned_round"], re.IGNORECASE),
        confirmed_suspicion=re.compile(data["confirmed_suspicion"], re.IGNORECASE),
        suspected=re.compile(data["suspected"], re.IGNORECASE),
        old=re.compile(data["old"], re.IGNORECASE),
    )


def joint(gap: str, words: str) -> str:
    """What joins a piece to the one before it: paragraphs and lines stay apart, pieces of a sentence are joined."""
    if "\n" in gap:
        return "\n\n" if "\n\n" in gap else "\n"
    return "" if words[:1] in _NO_SPACE else " "


class RedactedSpan(Struct, frozen=True):
    """Characters of the source that are not shown, and why; `shown` are the words in their place, mostly none."""

    start: int
    end: int
    why: str
    shown: str = ""


class Redaction(Struct, frozen=True, kw_only=True):
    """A stretch of a document with holes and rewordings.

    `text` is what an examinee sees of it; `place` leads back into the source.
    """

    document: Document
    start: int
    end: int
    removed: tuple[RedactedSpan, ...] = ()

    def without(self, *holes: RedactedSpan) -> Redaction:
        """With these holes too; one that lies in a hole already adds nothing, one in reworded words takes them all."""
        kept = list(self.removed)
        for hole in holes:
            low, high = max(hole.start, self.start), min(hole.end, self.end)
            touched = [old for old in kept if old.shown and old.start < high and low < old.end]
            if touched:
                kept = [old for old in kept if old not in touched]
                low, high = min(low, touched[0].start), max(high, touched[-1].end)
            if low < high and not any(old.start <= low and high <= old.end for old in kept):
                kept.append(RedactedSpan(low, high, hole.why, hole.shown))
        ordered = tuple(sorted(kept, key=lambda each: (each.start, each.end)))
        return Redaction(document=self.document, start=self.start, end=self.end, removed=ordered)

    def with_back(self, start: int, end: int) -> Redaction:
        """With these characters shown again; a hole that reaches beyond them keeps its other parts."""
        parts = [
            RedactedSpan(first, last, hole.why, hole.shown if (first, last) == (hole.start, hole.end) else "")
            for hole in self.removed
            for first, last in ((hole.start, min(hole.end, start)), (max(hole.start, end), hole.end))
            if first < last
        ]
        return Redaction(document=self.document, start=self.start, end=self.end).without(*parts)

    def reworded(self, start: int, end: int, words: str, why: str) -> Redaction:
        """With these characters shown in other words, whatever was left out of them before."""
        return self.with_back(start, end).without(RedactedSpan(start, end, why, " ".join(words.split())))

    def pieces(self) -> list[tuple[int, int]]:
        """What is shown, reworded or not, without white space at the edges and pieces of punctuation alone."""
        left: list[tuple[int, int]] = []
        at = self.start
        for hole in (*self.removed, RedactedSpan(self.end, self.end, "")):
            if hole.start > at:
                piece = self.document.text[at : hole.start]
                first, last = at + len(piece) - len(piece.lstrip()), at + len(piece.rstrip())
                if first < last and (any(map(str.isalnum, piece)) or (left and piece.strip() in _NO_SPACE)):
                    left.append((first, last))
            if hole.shown:
                left.append((hole.start, hole.end))
            at = max(at, hole.end)
        return left

    @property
    def text(self) -> str:
        """What is left as it is shown: paragraphs stay apart, pieces of a sentence are joined."""
        return "".join(words for words, _, _ in self._shown())

    def place(self, offset: int) -> int:
        """Where the source has a character of `text`; for one of new words, a place in the words that they replace."""
        for words, start, end in self._shown():
            if offset < len(words):
                return min(start + offset, max(start, end - 1))
            offset -= len(words)
        return self.end

    def _shown(self) -> list[tuple[str, int, int]]:
        """The pieces and what joins them, each with its place in the source."""
        new = {(each.start, each.end): each.shown for each in self.removed if each.shown}
        shown: list[tuple[str, int, int]] = []
        for start, end in self.pieces():
            words = new.get((start, end)) or self.document.text[start:end]
            if shown:
                before = shown[-1][2]
                shown.append((joint(self.document.text[before:start], words), before, start))
            shown.append((words, start, end))
        return shown

    def listed(self) -> list[dict[str, Any]]:
        """What was hidden, trimmed or reworded as plain data: place, reason, words, and the words in their place."""
        text = self.document.text
        sentences = sentence_spans(text, self.start, self.end)
        return [
            {
                "start": each.start,
                "end": each.end,
                "kind": _kind(each, sentences, text),
                "why": each.why,
                "text": text[each.start : each.end],
                **({"shown": each.shown} if each.shown else {}),
            }
            for each in self.removed
        ]


def _kind(span: RedactedSpan, sentences: Places, text: str) -> str:
    """Whether words were reworded, hidden with their sentences, or trimmed from one."""
    if span.shown:
        return "reworded"
    for start, end in sentences:
        before, after = text[start : max(start, span.start)], text[min(end, span.end) : end]
        if start < span.end and span.start < end and any(map(str.isalnum, before + after)):
            return "trimmed"
    return "hidden"


def redact(document: Document, span: tuple[int, int], removed: Sequence[dict[str, Any]] = ()) -> Redaction:
    """A stretch of a document, with what `listed` said was removed before."""
    holes = (RedactedSpan(int(r["start"]), int(r["end"]), str(r["why"]), str(r.get("shown", ""))) for r in removed)
    return Redaction(document=document, start=span[0], end=span[1]).without(*holes)


def find_made(redaction: Redaction, mentions: Callable[[str], Places]) -> tuple[int, int] | None:
    """The first sentence that names the diagnosis as made, of this patient and now. `mentions` leaves out denied ones.

    The word that says so ("diagnosed", "revealed") stands in one clause with the name, and nothing in that clause makes
    it provisional, old, unsure or somebody else's.
    """
    text = redaction.document.text
    for start, end in sentence_spans(text, redaction.start, redaction.end):
        sentence = text[start:end]
        if len(sentence.split()) > _LONGEST:  # a table or a list, which shows no place
            continue
        for first, last in mentions(sentence):
            hidden = any(hole.start <= start + first < hole.end for hole in redaction.removed)
            if not hidden and _says_made(_clause(sentence, first, last)):
                return start, end
    return None


def _clause(sentence: str, first: int, last: int) -> str:
    """The clause that a mention stands in."""
    ends = list(_rules().clause.finditer(sentence))
    begin = max((end.end() for end in ends if end.end() <= first), default=0)
    return sentence[begin : min((end.start() for end in ends if end.start() >= last), default=len(sentence))]


def _says_made(clause: str) -> bool:
    rules = _rules()
    return bool(rules.says.search(clause)) and not rules.not_now.search(clause) and not rules.provisional.search(clause)


def last_said_made(sentence: str, before: int) -> int | None:
    """Where the last word before a place ends that says a diagnosis was made; None where it is turned round or missing.

    What is denied before such a word is something else: "there was no fever and the biopsy revealed sarcoidosis".
    """
    rules = _rules()
    last = max(rules.says.finditer(sentence, 0, before), key=lambda match: match.start(), default=None)
    if last is None or rules.turned_round.search(sentence[: last.start()]):
        return None
    return last.end()


def is_old(quote: str) -> bool:
    """Whether these words tell of a diagnosis that was made before the illness a case is about."""
    return bool(_rules().old.search(quote))


def is_suspected(quote: str) -> bool:
    """Whether these words only suspect what they name, or rule it out."""
    return bool(_rules().suspected.search(_rules().confirmed_suspicion.sub(" ", quote)))


def is_provisional(quote: str) -> bool:
    """Whether these words speak of a diagnosis that stood for a while only: a working or an initial one."""
    return bool(_rules().provisional.search(quote))


def remove_mentions(redaction: Redaction, mentions: Callable[[str], Places], why: str) -> Redaction:
    """Without the words that `mentions` finds in what is left, nor the clause or sentence they stand in.

    What is found again after several rounds is left for the leak check to see.
    """
    text = redaction.document.text
    sentences = sentence_spans(text, redaction.start, redaction.end)
    for _ in range(_MAX_ROUNDS):
        shown = redaction.text
        places = [(redaction.place(start), redaction.place(max(start, end - 1)) + 1) for start, end in mentions(shown)]
        if not places:
            break
        holes = [hole for first, last in places for hole in _holes(redaction, sentences, first, last, why)]
        less = redaction.without(*holes)
        if less.removed == redaction.removed:
            break
        redaction = less
    return redaction


def drop_empty_headings(redaction: Redaction) -> Redaction:
    """Without headings under which nothing is left, subsections counted."""
    inside = [s for s in redaction.document.sections if redaction.start < s.start < redaction.end and s.heading]
    words = redaction.pieces()
    for place, section in reversed(list(enumerate(inside))):
        below = next((other.start for other in inside[place + 1 :] if other.level <= section.level), redaction.end)
        if not any(start < below and end > section.body for start, end in words):
            redaction = redaction.without(RedactedSpan(section.start, section.body, "a heading with nothing under it"))
            words = redaction.pieces()
    return redaction


def _holes(redaction: Redaction, sentences: Places, first: int, last: int, why: str) -> list[RedactedSpan]:
    """What to take out for a mention: the end of its sentence where the rest can stand alone, else all of it."""
    text = redaction.document.text
    start, end = next(((s, e) for s, e in sentences if s <= first < e), (first, last))
    end = max(end, last)
    touched = any(hole.start < end and start < hole.end <= first for hole in redaction.removed)
    begin = start if touched else _leading_up(text, start, first)
    if begin > start and text[end - 1] == ".":
        end -= 1
    return _around_references(text, begin, end, why, (first, last))


def _leading_up(text: str, start: int, first: int) -> int:
    """Where the words begin that lead up to a mention; the sentence's start where too little stands before them."""
    found = [match.start() for match in _rules().leading.finditer(text, max(start, first - _NEAR), first)]
    for begin in reversed(found):
        before = text[start:begin]
        if len(before.split()) >= _MIN_KEPT and not _rules().begun.search(before):
            opening = _OPENING.search(before)
            return start + opening.start() if opening else begin
    return start


def _around_references(
    text: str, start: int, end: int, why: str, mention: tuple[int, int] = (-1, -1)
) -> list[RedactedSpan]:
    """These characters, but for the references to figures in them, unless the mention stands in one."""
    holes, at = [], start
    for match in _rules().reference.finditer(text, start, end):
        if match.start() < mention[1] and mention[0] < match.end():
            continue
        holes.append(RedactedSpan(at, match.start(), why))
        at = match.end()
    holes.append(RedactedSpan(at, end, why))
    return [hole for hole in holes if any(map(str.isalnum, text[hole.start : hole.end]))]
