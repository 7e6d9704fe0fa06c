"""The image version of a stem: figures placed where they belong, and the text that describes what they show removed.

A figure belongs to a stem when the stem speaks of it, or when its caption stands in it and nothing speaks of it.
There a marker such as `[Figure 2]` is set. The sentence that refers to it is cut down to the examination ("CT of the
chest"), and sentences beside it that describe the same kind of image go. The rules are data (`data/imaging.toml`); a
model may name further sentences. Everything removed is kept with its place.

An item without a usable image stays in the main edition: its `no_image` says why the image edition goes without it.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.figures import figure_references
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.redaction import joint
from hoofbeat.recipes.cases.residue import without_call_outs
from hoofbeat.recipes.cases.stems import Spans, Wordings, sentences, spans_with_call_outs, wordings_of
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.recipe_items import AskAgain, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Figure

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG_SIZES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
_JPEG_ALONE = frozenset({0x01, *range(0xD0, 0xDA)})


def picture_size(content: bytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF or JPEG in pixels; None for anything else and for what is cut off."""
    if content.startswith(_PNG) and len(content) >= 24:
        width, height = struct.unpack(">II", content[16:24])
        return int(width), int(height)
    if content[:6] in (b"GIF87a", b"GIF89a") and len(content) >= 10:
        width, height = struct.unpack("<HH", content[6:10])
        return int(width), int(height)
    return _jpeg_size(content) if content.startswith(b"\xff\xd8") else None


def _jpeg_size(content: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(content):
        if content[at] != 0xFF:
            return None
        kind = content[at + 1]
        if kind == 0xFF or kind in _JPEG_ALONE:
            at += 1 if kind == 0xFF else 2
            continue
        if kind in _JPEG_SIZES:
            height, width = struct.unpack(">HH", content[at + 5 : at + 9])
            return int(width), int(height)
        at += 2 + int.from_bytes(content[at + 2 : at + 4], "big")
    return None


_NUMBER = re.compile(r"[Ss]?\d+")
_CLOSING = re.compile(r"[A-Za-z\d\s,–&-]{0,12}[)\]]|[A-Za-z]?\b")
_SPACES = re.compile(r"[ \t]{2,}")
_SPACE_BEFORE = re.compile(r"[ \t]+(?=[.,;])")
_SHOWN = 160
_LONGEST_REFERENCE = 15
_LONGEST_HEAD = 40
_SHORTEST_TAIL = 4
_LEADING = re.compile(r"\W*fig", re.IGNORECASE)
_CLAUSE = re.compile(r";\s|,\s(?:and|but|while|whereas|which)\s")


class FigurePlacement(Struct, frozen=True, kw_only=True):
    """A figure of a stem: the sentence it belongs to (as a place of the source), its marker and its image files."""

    figure: str
    marker: str
    files: tuple[str, ...]
    place: int


class RemovedText(Struct, frozen=True, kw_only=True):
    """Text taken out because it describes an image: where it stood, and whether a rule or the model said so."""

    start: int
    end: int
    text: str
    by: str


class ImageStem(Struct, frozen=True, kw_only=True):
    """A stem with its figures: text with markers, image files in their order, what was removed, quotes not found."""

    text: str
    images: tuple[str, ...]
    removed: tuple[RemovedText, ...]
    unknown: tuple[str, ...] = ()


class _Rules(Struct, frozen=True):
    suffixes: tuple[str, ...]
    not_clinical: re.Pattern[str]
    modalities: dict[str, re.Pattern[str]]
    finding: re.Pattern[str]
    weaker: re.Pattern[str]
    pointing: re.Pattern[str]
    telling: re.Pattern[str]
    continuing: re.Pattern[str]
    dangling: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = word_data("imaging")
    read = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in data["sentences"].items()}
    return _Rules(
        suffixes=tuple(data["usable"]["suffixes"]),
        not_clinical=re.compile(data["usable"]["not_clinical"], re.IGNORECASE),
        modalities={name: re.compile(pattern, re.IGNORECASE) for name, pattern in data["modalities"].items()},
        **read,
    )


def marker(figure: Figure, number: int) -> str:
    """How a figure is named in a stem: by its own number, or by its place among the figures."""
    found = _NUMBER.search(figure.label)
    return f"[Figure {found.group().upper() if found else number}]"


def usable_figures(
    document: Document, read: Mapping[str, bytes], *, min_pixels: int
) -> tuple[dict[str, tuple[str, ...]], str]:
    """The image files of each figure that can be shown, by figure id, or why there are none.

    `read` holds the bytes of the files that are there. An image must be readable, with a minimum
    width and height in pixels.
    """
    if not document.figures:
        return {}, "the report has no figures"
    if not any(figure.files for figure in document.figures):
        return {}, "the corpus has no image files of the report"
    kept: dict[str, tuple[str, ...]] = {}
    for figure in document.figures:
        files = tuple(name for name in figure.files if _usable(name, read.get(name), min_pixels))
        if files and not _rules().not_clinical.search(figure.caption):
            kept[figure.id] = files
    return kept, "" if kept else "no image of the report is usable"


def _usable(name: str, content: bytes | None, minimum: int) -> bool:
    if content is None or PurePosixPath(name).suffix.lower() not in _rules().suffixes:
        return False
    size = picture_size(content)
    return size is not None and min(size) >= minimum


def place_figures(document: Document, spans: Spans, files: Mapping[str, tuple[str, ...]]) -> list[FigurePlacement]:
    """The figures that belong to a stem, each at its first reference there or at its caption, in reading order."""
    first: dict[str, int] = {}
    spoken_of = set()
    for start, _, id in figure_references(document):
        spoken_of.add(id)
        if any(begin <= start < end for begin, end in spans):
            first.setdefault(id, start)
    starts = [start for start, _ in sentences(document, spans)]
    for each in document.figures:
        before = [start for start in starts if start < each.start < spans[-1][1]]
        if each.id not in spoken_of and before:
            first[each.id] = before[-1]
    placed = [
        FigurePlacement(figure=figure.id, marker=marker(figure, number), files=files[figure.id], place=first[figure.id])
        for number, figure in enumerate(document.figures, start=1)
        if figure.id in first and figure.id in files
    ]
    return sorted(placed, key=lambda each: each.place)


def image_stem(
    document: Document,
    spans: Spans,
    placed: Sequence[FigurePlacement],
    quotes: Sequence[str] = (),
    *,
    min_match: float = 0.9,
    wordings: Wordings = MappingProxyType({}),
) -> ImageStem:
    """The stem with its figures placed and the text that describes them removed, by rule and by quotes of a model.

    A reworded sentence stays as it is reworded or goes as a whole.
    """
    work = _Work(document, spans, placed, wordings)
    work.by_rule()
    unknown = tuple(quote for quote in quotes if not work.by_quote(quote, min_match))
    return ImageStem(
        text=work.text(),
        images=tuple(dict.fromkeys(name for each in placed for name in each.files)),
        removed=tuple(sorted(work.removed, key=lambda each: each.start)),
        unknown=unknown,
    )


class _Work:
    """One stem under work: its sentences, and for each what is taken out of it and the markers set after it."""

    def __init__(self, document: Document, spans: Spans, placed: Sequence[FigurePlacement], wordings: Wordings) -> None:
        self.document = document
        self.spans = spans
        self.placed = placed
        self.wordings = wordings
        self.sentences = [
            each for span in spans for each in ([span] if span in wordings else sentences(document, (span,)))
        ]
        self.cuts: dict[int, tuple[int, int]] = {}
        self.removed: list[RemovedText] = []
        markers = {each.figure: each.marker for each in placed}
        self.references = [(start, end, markers[id]) for start, end, id in figure_references(document) if id in markers]
        self.kinds = self._kinds()

    def by_rule(self) -> None:
        """Shorten the sentences that refer to a placed figure; remove those about them that describe such an image."""
        described: dict[int, bool] = {}
        for number, (start, end) in enumerate(self.sentences):
            text = self.document.text[start:end]
            last = max((stop for first, stop, _ in self.references if start <= first < end), default=None)
            if last is not None:
                cut = _shortened(text, last - start)
                if cut and (start, end) in self.wordings:
                    cut = (0, end - start)
                described[number] = cut is not None
                if cut:
                    self._cut(number, start + cut[0], start + cut[1], "rule")
        for number in range(len(self.sentences)):
            if number not in described and self._beside(number, described) and self._describes(number, described):
                described[number] = True
                self._cut(number, *self.sentences[number], "rule")

    def by_quote(self, quote: str, min_match: float) -> bool:
        """Remove the sentence a quote begins, unless it refers to a figure; False where the stem does not have it."""
        if not self.spans:
            return False
        within = (self.spans[0][0], self.spans[-1][1])
        found = find_quote(self.document, quote, min_score=min_match, within=within)
        at = found.spans[0].start if found else -1
        said = " ".join(quote.split())
        number = next((n for n, (start, end) in enumerate(self.sentences) if start <= at < end), None)
        for other, span in enumerate(self.sentences):
            if said and said in self.wordings.get(span, ""):
                number = other
        if number is None:
            return False
        start, end = self.sentences[number]
        if number not in self.cuts and not any(start <= first < end for first, _, _ in self.references):
            self._cut(number, start, end, "model")
        return True

    def text(self) -> str:
        """The stem as it is shown."""
        text, before = "", 0
        for start, end in self.spans:
            if words := self._span_text(start, end):
                text += (joint(self.document.text[before:start], words) if text else "") + words
                before = end
        return text

    def _span_text(self, start: int, end: int) -> str:
        pieces: list[str] = []
        at = start
        for number, (first, last) in enumerate(self.sentences):
            if not start <= first < end:
                continue
            pieces.append(self.document.text[at:first])
            pieces.append(self._sentence_text(number))
            at = last
        pieces.append(self.document.text[at:end])
        lines = (_SPACE_BEFORE.sub("", _SPACES.sub(" ", line)).strip() for line in "".join(pieces).split("\n"))
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()

    def _sentence_text(self, number: int) -> str:
        start, end = self.sentences[number]
        text = self.document.text
        markers = " ".join(dict.fromkeys(each.marker for each in self.placed if start <= each.place < end))
        if number not in self.cuts:
            return f"{self.wordings.get((start, end)) or text[start:end]} {markers}".strip()
        if not markers and self.cuts[number][0] > start:  # named before: what is left still says where to look
            again = dict.fromkeys(name for first, _, name in self.references if start <= first < end)
            markers = " ".join(f"({name.strip('[]')})" for name in again)
        first, last = self.cuts[number]
        head, tail = text[start:first].rstrip(), text[last:end]
        closed = f"{head} {markers}".strip() + tail
        return closed if not closed or closed[-1] in ".!?" or closed == markers else f"{closed}."

    def _cut(self, number: int, start: int, end: int, by: str) -> None:
        self.cuts[number] = (start, end)
        while start < end and self.document.text[start] in " \n":
            start += 1
        self.removed.append(RemovedText(start=start, end=end, text=self.document.text[start:end], by=by))

    def _kinds(self) -> set[str]:
        """The kinds of examination that the placed figures show: by caption, where they are named, or just before."""
        captions = {figure.id: figure.caption for figure in self.document.figures}
        kinds: set[str] = set()
        for each in self.placed:
            said = [self.document.text[start:end] for start, end in self.sentences if start <= each.place]
            for text in (captions[each.figure], *reversed(said[-2:])):
                if found := set(_kinds_in(text)):
                    kinds |= found
                    break
        return kinds

    def _beside(self, number: int, described: Mapping[int, bool]) -> bool:
        """Whether a sentence stands in one paragraph with a sentence that refers to a placed figure."""
        start, end = self.sentences[number]
        for other in described:
            first, last = self.sentences[other]
            if "\n" not in self.document.text[min(end, last) : max(start, first)]:
                return True
        return False

    def _describes(self, number: int, described: Mapping[int, bool]) -> bool:
        start, end = self.sentences[number]
        text = self.document.text[start:end]
        rules = _rules()
        kinds = set(_kinds_in(text))
        if kinds & self.kinds and rules.finding.search(text) and not rules.pointing.search(text):
            return True
        return described.get(number - 1, False) and not kinds and bool(rules.continuing.search(text))


def _kinds_in(text: str) -> Iterator[str]:
    return (name for name, pattern in _rules().modalities.items() if pattern.search(text))


def _shortened(text: str, reference: int) -> tuple[int, int] | None:
    """What to cut from a sentence that refers to a figure at this place; None where it only points to it.

    From where the description begins to the reference; to the end where what follows is short or goes on describing.
    """
    rules = _rules()
    points = rules.pointing.search(text) is not None and not rules.finding.search(rules.pointing.sub("", text))
    if points and len(text.split()) <= _LONGEST_REFERENCE:
        return None
    after = rules.finding.search(text, reference)
    if after and any(_kinds_in(text[:reference])) and not rules.finding.search(text, 0, reference):
        return len(rules.dangling.sub("", text[: after.start()])), len(text)
    closing = _CLOSING.match(text, reference)
    stop = closing.end() if closing else reference
    tail = text[stop:]
    if len(tail.split()) < _SHORTEST_TAIL or rules.finding.search(tail) or any(_kinds_in(tail)):
        stop = len(text)
    head = rules.dangling.sub("", text[: _description(text, reference)])
    if len(head.split()) > _LONGEST_HEAD:
        head = ""
    if not head and _LEADING.match(text):
        return 0, len(text)
    return None if not head and rules.telling.search(text) else (len(head), stop)


def _description(text: str, reference: int) -> int:
    """Where the description begins: at the verb after the examination, else at its clause, else with the sentence."""
    rules = _rules()
    kinds = [match.end() for each in rules.modalities.values() for match in each.finditer(text, 0, reference)]
    if kinds:
        verb = rules.finding.search(text, max(kinds), reference) or rules.weaker.search(text, max(kinds), reference)
        if verb:
            return verb.start()
    verb = rules.finding.search(text, 0, reference)
    if verb and kinds:
        return verb.start()
    return max((match.start() for match in _CLAUSE.finditer(text, 0, reference)), default=0)


PROMPT = "clinbench-images"


def find_figures(name: str, *, min_pixels: int) -> RecipeStep:
    """Find the figures that belong to a stem and whose images can be shown."""

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        held = sorted(
            {file for figure in document.figures for file in figure.files if context.corpus.artefact.has(file)}
        )
        content = {file: context.corpus.artefact.file(file).read_bytes() for file in held}
        files, why = usable_figures(document, content, min_pixels=min_pixels)
        placed = place_figures(document, spans_with_call_outs(item), files)
        if not placed:
            return item.put(no_image=why or "no figure belongs to the stem")
        return item.put(figures=msgspec.to_builtins(placed))

    return check(name, judge)


def describing_sentences(name: str, *, min_match: float) -> RecipeStep:
    """Ask a model for sentences that describe what the figures show; items without figures pass by.

    Where the stem has no such sentence, the model is told and asked once more.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        captions = {each.id: f"{each.label}. {each.caption}" for each in context.document(item.documents[0]).figures}
        figures = "\n".join(captions[each["figure"]] for each in item["figures"])
        return {"figures": figures, "stem": context.fit(item["stem"], load_prompt(PROMPT), beside=len(figures))}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        done = item.put(describing=[str(each) for each in value["sentences"] if str(each).strip()])
        unknown = _image_stem(done, context, min_match).unknown
        if not unknown:
            return done
        told = "; ".join(f"{each[:_SHOWN]!r}" for each in unknown)
        say = f"These sentences are not in the case: {told}. Copy the beginning of each sentence letter by letter."
        return AskAgain(reason="a sentence is not in the stem", details=told, say=say, otherwise=done)

    return ask(name, PROMPT, values=values, read=read, when=lambda item: "figures" in item.values)


def image_version(name: str, *, min_words: int, min_match: float) -> RecipeStep:
    """Place the figures and remove what describes them, by rule and by the sentences a model named.

    A sentence it named that is not in the stem is listed under `unknown` and removes nothing.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        if "figures" not in item.values:
            return item
        made = _image_stem(item, context, min_match)
        if len(made.text.split()) < min_words:
            return item.put(no_image="too little text is left beside the images")
        return item.put(image=msgspec.to_builtins(made))

    return check(name, judge)


def _image_stem(item: RecipeItem, context: RecipeContext, min_match: float) -> ImageStem:
    """The image version of an item's stem, without marks for figures that are not placed."""
    document = context.document(item.documents[0])
    placed = msgspec.convert(item["figures"], tuple[FigurePlacement, ...])
    quotes, wordings = item.get("describing", ()), wordings_of(item)
    made = image_stem(document, spans_with_call_outs(item), placed, quotes, min_match=min_match, wordings=wordings)
    seen = {number for each in placed for number in _NUMBER.findall(each.marker)}
    return msgspec.structs.replace(made, text=without_call_outs(made.text, seen))


def account_for_images(items: Sequence[RecipeItem], context: RecipeContext) -> None:
    """Count what the image edition has, what it goes without and why; list every removed sentence."""
    left_out = Counter(str(item["no_image"]) for item in items if "no_image" in item.values)
    shown = [(item.id, item["image"]) for item in items if "image" in item.values]
    removed = [(id, each) for id, image in shown for each in image["removed"]]
    context.metrics["image edition"] = {
        "questions": len(shown),
        "left out": dict(sorted(left_out.items())),
        "images": sum(len(image["images"]) for _, image in shown),
        "sentences removed": dict(sorted(Counter(each["by"] for _, each in removed).items())),
        "quotes not in the stem": sum(len(image["unknown"]) for _, image in shown),
    }
    context.tables["removed"] = TableFile(
        ("item", "start", "end", "by", "text"),
        [(id, each["start"], each["end"], each["by"], each["text"]) for id, each in removed],
    )
