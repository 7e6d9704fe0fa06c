"""Whether a text that a model wrote can be in a benchmark at all, before anyone asks whether it is good.

It must be sound, must not invent or change numbers, and must be proven: by quotes that are in the source, or by the
numbers of its sentences. A model that points at sentences copies nothing, so nothing is miscopied. Each sentence is
on a line by itself; no text within a document can begin a line, nor take another's number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from itertools import islice

from msgspec import Struct

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.filters.language import detect_language
from hoofbeat.corpus.terms import word_lists
from hoofbeat.prompts import Prompt
from hoofbeat.recipes.context import CUT_MARK, RecipeContext
from hoofbeat.recipes.recipe_items import ItemRejection, RecipeItem
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Section, Span
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.text import caseless

_READ = 100_000
_SHOWN = 120
_AROUND = 30
_OFTEN = 3  # times the same sentence stands in a text that repeats itself
_MIN_REPEATED = 5  # words of a sentence that counts there


class _Patterns(Struct, frozen=True):
    instructions: tuple[re.Pattern[str], ...]
    leftovers: tuple[re.Pattern[str], ...]


@cache
def _patterns() -> _Patterns:
    data = word_data("injections")
    flags = re.IGNORECASE | re.MULTILINE
    return _Patterns(
        tuple(re.compile(each, flags) for each in data["instructions"]),
        tuple(re.compile(each, flags) for each in data["leftovers"]),
    )


def sound(text: str, *, what: str, source: str = "", max_words: int = 0) -> ItemRejection | None:
    """Why a text can't be used as the `what` (a stem, an answer, ...), or nothing.

    `source` is what it was made from: the text must be in its language. `max_words` is a limit, 0 is none.
    """
    if not any(map(str.isalnum, text)):
        return ItemRejection(reason=f"the {what} is empty")
    words = len(text.split())
    if max_words and words > max_words:
        return ItemRejection(reason=f"the {what} is far too long", details=f"{words} words, at most {max_words}")
    read = text[:_READ]
    for pattern in _patterns().instructions:
        if found := pattern.search(read):
            return ItemRejection(reason=f"the {what} holds an instruction to a model", details=_shown(read, found))
    for pattern in _patterns().leftovers:
        if found := pattern.search(read):
            return ItemRejection(
                reason=f"the {what} holds leftovers of a template or a chat", details=_shown(read, found)
            )
    return _wrong_language(text, what, source) or _repeats(read, what)


def _repeats(text: str, what: str) -> ItemRejection | None:
    """Whether a text says the same sentence over and over, as a model that has lost its thread does."""
    said = Counter(caseless(text[start:end]) for start, end in sentence_spans(text))
    sentence, times = said.most_common(1)[0] if said else ("", 0)
    if times < _OFTEN or len(sentence.split()) < _MIN_REPEATED:
        return None
    return ItemRejection(reason=f"the {what} repeats itself", details=f"{times} times: {sentence[:_SHOWN]}")


def _wrong_language(text: str, what: str, source: str) -> ItemRejection | None:
    """Whether the plain words of a text are of another language: of a list of values, "L" is a unit and no article."""
    expected = detect_language(source) if source else "unknown"
    found = detect_language(" ".join(_WORD.findall(text)))
    if "unknown" in (expected, found) or expected == found:
        return None
    return ItemRejection(
        reason=f"the {what} is in another language than its source", details=f"{found}, the source is in {expected}"
    )


def _shown(text: str, found: re.Match[str]) -> str:
    start, end = max(0, found.start() - _AROUND), min(len(text), found.end() + _AROUND)
    return " ".join(text[start:end].split())[:_SHOWN]


_NUMBER = re.compile(r"(?<![\w.])(?<![A-Za-z]-)\d{1,3}(?:[, \u00a0\u2009\u202f]\d{3})+(?!\d)(?:\.\d+)?|"
                     r"(?<![\w.])(?<![A-Za-z]-)\d+(?:[.,]\d+)?")  # fmt: skip


_SPELT = re.compile(r"[a-z]+|[^\sa-z]")
_TWENTY, _HUNDRED = 20, 100
_BROKEN_NUMBER = re.compile(r"(?<![\d.,])(\d{1,3})(?:,\s|\s,\s?)(?=(\d{3})(?!\d))")
_BROKEN_DECIMAL = re.compile(r"(?<![\d.,])(\d+)(?:[.\u00b7]\s|\s[.\u00b7]\s?|\u00b7)(?=(\d{1,2})(?![\d.]))")
_RAISED_POWER = re.compile(r"[\u00d7x*]\s?10(\d{1,2})\s?/")
_DEGREES = re.compile(r"(\d+)\s?\u00b0")
_POINTS_FOR_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?![\d,])")


def numbers(text: str) -> list[str]:
    """The numbers of a text in one form, in their order; digits that belong to a name (COVID-19, CD34) are none."""
    return [_number(match.group()) for match in _NUMBER.finditer(text)]


def new_numbers(text: str, source: str) -> list[str]:
    """Numbers of a text that its source does not hold: in digits, in words, or broken by print."""
    held = {_number(piece) for piece in re.findall(r"\d+(?:[.,]\d+)*", source)} | set(numbers(source))
    held |= {part for piece in re.findall(r"\d+(?:[.,]\d+)*", source) for part in re.findall(r"\d+", piece)}
    held |= _spelt_numbers(source) | _mended_numbers(source)
    held |= {degrees for degrees in _DEGREES.findall(text) if degrees + "0" in held}  # "(900)" for 90\u00b0
    return [number for number in dict.fromkeys(numbers(text)) if number not in held]


def _spelt_numbers(text: str) -> set[str]:
    """The numbers that a text has as words, each word alone and those of several words together.

    "Twenty-eight" is 28, "one hundred and twenty" 120; "two or three" and "two, three" are two numbers.
    """
    spelt: dict[str, str] = word_data("numbers")
    found: set[str] = set()
    total, joined = 0, False
    for word in _SPELT.findall(text.lower()):
        if word not in spelt:
            joined = joined and (word == "-" or (word == "and" and total >= _HUNDRED))
            continue
        value, rest = int(spelt[word]), total % _HUNDRED
        if joined and value == _HUNDRED and 0 < total < _HUNDRED:
            total *= _HUNDRED
        elif joined and (
            (total >= _HUNDRED > value and not rest) or (rest >= _TWENTY and not rest % 10 and value < 10)
        ):
            total += value
        else:
            total = value
        joined = True
        found |= {spelt[word], str(total)}
    return found


def _mended_numbers(source: str) -> set[str]:
    """What numbers of a source may mean that print broke or that are written as elsewhere.

    1137 for "1, 137, 470, and 620 cells", 11.5 for "11. 5 g/dl" and "11·5 g/dl", 380000 for "380.000/mm3", 10 and 9
    for "12.94 × 109/L". A text may have the number either way: whoever mends a misprint does not invent one.
    """
    thousands = {head + rest for head, rest in _BROKEN_NUMBER.findall(source)}
    decimals = {_number(f"{head}.{rest}") for head, rest in _BROKEN_DECIMAL.findall(source)}
    powers = {each for exponent in _RAISED_POWER.findall(source) for each in ("10", exponent)}
    return thousands | decimals | powers | {each.replace(".", "") for each in _POINTS_FOR_THOUSANDS.findall(source)}


def _number(text: str) -> str:
    """A number as it is compared: without separators of thousands, with a point, without idle zeros."""
    plain = re.sub(r"(?<=\d)[, \u00a0\u2009\u202f](?=\d{3}(?!\d))", "", text).replace(",", ".")
    return (plain.rstrip("0").rstrip(".") if plain.count(".") == 1 else plain) or "0"


_WORD = re.compile(r"[^\W_]{2,}")
_QUOTE_SHOWN = 300


def prove(
    item: RecipeItem,
    document: Document,
    quotes: Sequence[str],
    what: str,
    *,
    min_match: float = 0.9,
    within: tuple[int, int] | None = None,
) -> RecipeItem | ItemRejection:
    """The item with the spans of all quotes as evidence, or a rejection for the first that is not in the source.

    `what` names what the quotes are for ("significance"). No quote at all, or one of little words, proves nothing.
    """
    if not quotes:
        return ItemRejection(reason=f"there is no quote for the {what}")
    for quote in quotes:
        if not _tells(quote):
            return ItemRejection(reason=f"a quote for the {what} says nothing", details=quote[:_QUOTE_SHOWN])
        found = find_quote(document, quote, min_score=min_match, within=within)
        if found is None:
            return ItemRejection(reason=f"a quote for the {what} is not in the source", details=quote[:_QUOTE_SHOWN])
        item = item.proven(*found.spans)
    return item


def _tells(quote: str) -> bool:
    return any(word not in word_lists().little for word in map(str.lower, _WORD.findall(quote)))


_MIN_WORDS = 3  # fewer are a heading or a name, and state nothing
_BESIDE_TEXT = "Legends, tables and headings"


class ReportSentence(Struct, frozen=True):
    """A sentence of a report, its section, and whether it stands beside the text: a caption, a table or a heading."""

    span: Span
    section: Section | None
    beside: bool


def report_sentences(document: Document) -> list[ReportSentence]:
    """The sentences of a report in the order that numbers them, the same in every prompt that shows the report.

    Those beside the text come last: captions stand anywhere and tell of any time. The references are left out.
    """
    text = document.text
    captions = [(figure.start, figure.end) for figure in document.figures]
    captions += [(table.start, table.end) for table in document.tables]
    parts: list[tuple[Section | None, int, int]] = []
    parts += [(each, each.body, each.end) for each in document.sections if each.role != "back"]
    found = []
    for section, first, last in parts or [(None, 0, len(text))]:
        for start, end in sentence_spans(text, first, last):
            span = Span(document=document.id, start=start, end=end, quote=text[start:end])
            short = len(span.quote.split()) < _MIN_WORDS
            if any(map(str.isalnum, span.quote)):
                found.append(ReportSentence(span, section, short or any(a <= start < b for a, b in captions)))
    return sorted(found, key=lambda each: each.beside)


def numbered(
    document: Document, context: RecipeContext, prompt: Prompt, *, hidden: Collection[str] = (), beside: int = 0
) -> tuple[dict[int, Span], str]:
    """The sentences of a document by number and the lines that show them, as far as the model's window holds them.

    Sections of the `hidden` roles are left out, unless nothing else is there, and always what stands beside the text;
    the other sentences have their numbers all the same. `beside` are characters to keep free.
    """
    told = [(at, each) for at, each in enumerate(report_sentences(document), 1) if not each.beside]
    seen = [(at, each) for at, each in told if each.section is None or each.section.role not in hidden] or told
    spans = {at: each.span for at, each in seen}
    lines = "\n".join(f"{number}. {' '.join(span.quote.split())}" for number, span in spans.items())
    shown = context.fit(lines, prompt, beside=beside)
    if shown == lines:
        return spans, shown
    shown = shown.removesuffix(CUT_MARK).rpartition("\n")[0]
    count = shown.count("\n") + 1 if shown else 0
    return dict(islice(spans.items(), count)), shown + CUT_MARK


def numbered_whole(
    document: Document, context: RecipeContext, prompt: Prompt, *, beside: int
) -> tuple[dict[int, Span], str]:
    """All sentences of a report by number and the lines that show them, under their headings, legends last.

    They are as many as the model's window holds besides the prompt and `beside` bytes.
    """
    lines, under = [], ""
    spans: dict[int, Span] = {}
    for number, each in enumerate(report_sentences(document), 1):
        heading = _BESIDE_TEXT if each.beside else each.section.heading if each.section else ""
        if heading and heading != under:
            lines.append(f"[{' '.join(heading.split())}]")
        under = heading
        lines.append(f"{number}. {' '.join(each.span.quote.split())}")
        spans[number] = each.span
    whole = "\n".join(lines)
    shown = context.fit(whole, prompt, beside=beside)
    if shown == whole:
        return spans, shown
    shown = shown.removesuffix(CUT_MARK).rpartition("\n")[0]
    count = sum(not line.startswith("[") for line in shown.split("\n")) if shown else 0
    return dict(islice(spans.items(), count)), shown + CUT_MARK


def pointed(
    numbers: Sequence[int],
    spans: Mapping[int, Span],
    what: str,
    *,
    tolerated: int = 0,
    passed_over: list[str] | None = None,
) -> list[Span] | ItemRejection:
    """The sentences of these numbers, each once, or why not: more wrong ones than are tolerated, or none at all.

    A sentence that talks to a model is a wrong one. `what` names what the sentences are to prove. Wrong ones that are
    tolerated are added to `passed_over`.
    """
    faults: list[ItemRejection] = []
    found: dict[int, Span] = {}
    for number in map(int, numbers):
        if number not in spans:
            details = f"number {number}; the numbers are {min(spans, default=0)} to {max(spans, default=0)}"
            faults.append(ItemRejection(reason=f"a sentence for the {what} is not in the source", details=details))
        elif fault := sound(spans[number].quote, what=f"quote for the {what}"):
            faults.append(fault)
        else:
            found[number] = spans[number]
    if len(faults) > tolerated:
        return faults[0]
    if passed_over is not None:
        passed_over += [f"passed over: {fault.reason} ({fault.details})" for fault in faults]
    return list(found.values()) or ItemRejection(reason=f"there is no quote for the {what}")
