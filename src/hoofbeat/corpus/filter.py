"""Filters: which documents of a corpus are kept, and why the others are not. `corpus/filters` has one file per filter.

A selection is written as one line of text, the same in the command, in Python and in a manifest:
`year>=2023; not retracted; unique(minhash, 0.15)`.

    line     = step { ";" step }                    steps one after the other
    step     = [ "not" ] name [ "(" argument { "," argument } ")" ] [ operator value { "," value } ]
    argument = [ word operator ] value
    operator = ">=" | "<=" | ">" | "<" | "=" | "~"
    value    = "quoted text" | text without , ; ( )

`parse_filters` makes steps of it: the filter of that name says what a step means; `hoofbeat.corpus.funnel` applies it.
A step sees one document at a time and remembers nothing, so a corpus of any size streams through. One that must compare
documents with each other is `two_pass`: it reads the whole stream once before it can judge. Steps are pure: the same
documents in the same order give the same verdicts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, NoReturn

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.progress import Progress
from hoofbeat.records import Document, Facets
from hoofbeat.registry import registry
from hoofbeat.text import some_of

_NAME = re.compile(r"[A-Za-z][\w.-]*")
_OPERATOR = re.compile(r">=|<=|[><=~]")
_ARGUMENT_NAME = re.compile(r"([A-Za-z_]\w*)\s*(>=|<=|[><=~])")
_QUOTED = re.compile(r'"([^"]*)"')
_PLAIN = re.compile(r"[^,;()]*")
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Argument(Struct, frozen=True):
    """A value with its column; in brackets it may have a name (with a column) and an operator."""

    text: str
    at: int
    name: str = ""
    name_at: int = 0
    operator: str = ""


class Clause(Struct, frozen=True):
    """One step as it was written: its parts, and the whole line for pointing at what is wrong."""

    line: str
    name: str
    at: int
    negated: bool = False
    arguments: tuple[Argument, ...] = ()
    operator: str = ""
    operator_at: int = 0
    values: tuple[Argument, ...] = ()

    def fail(self, column: int, what: str, fix: str) -> NoReturn:
        """Refuse the line, with a mark under the column."""
        _fail(self.line, column, what, fix)

    def unknown(self, column: int, what: str, word: str, known: Iterable[str]) -> NoReturn:
        """Refuse a word, and name the closest of those that are known."""
        _unknown(self.line, column, what, word, tuple(known))

    def alone(self, example: str) -> None:
        """Refuse arguments and values."""
        self.no_arguments(example)
        if self.operator:
            self.fail(self.operator_at, f"{self.name} can't be compared with a value", f"write {example}")

    def no_arguments(self, example: str) -> None:
        """Refuse arguments."""
        if self.arguments:
            self.fail(self.arguments[0].at, f"{self.name} takes no arguments", f"write {example}")

    def compared(self, operators: Iterable[str], example: str) -> tuple[Argument, ...]:
        """The values the step is compared with, by one of these operators; at least one."""
        if self.operator not in operators:
            column = self.operator_at if self.operator else self.at + len(self.name)
            self.fail(column, f"{self.name} needs {' or '.join(operators)} and a value", f"write {example}")
        return self.values

    def number(self, argument: Argument, *, low: float = 0, high: float = float("inf")) -> float:
        """The number an argument is, within bounds."""
        if not _NUMBER.fullmatch(argument.text) or not low <= float(argument.text) <= high:
            limit = f"from {low:g} to {high:g}" if high != float("inf") else f"of at least {low:g}"
            self.fail(argument.at, f"{argument.text!r} is not a number {limit}", f"give a number {limit}")
        return float(argument.text)

    def whole(self, argument: Argument, *, low: int = 0) -> int:
        """The whole number an argument is."""
        if not self.number(argument, low=low).is_integer():
            self.fail(argument.at, f"{argument.text} is not a whole number", "give a whole number")
        return int(float(argument.text))


def read_line(line: str, known: Iterable[str], accepts: Callable[[str], bool]) -> list[Clause]:
    """The steps of a line; what is wrong with it is a `UsageError` that points at the column.

    `accepts` says whether a name is that of a filter; `known` are the names that messages list.
    """
    return _Reader(line, tuple(known), accepts).steps()


class _Reader:
    """Reads the grammar above from left to right; `at` is the next character to read."""

    def __init__(self, line: str, known: tuple[str, ...], accepts: Callable[[str], bool]) -> None:
        self.text = re.sub(r"\s", " ", line)
        self.known = known
        self.accepts = accepts
        self.at = 0

    def steps(self) -> list[Clause]:
        if not self.text.strip(" ;"):
            _fail(self.text, 0, "the filter line is empty", f"write one of {', '.join(self.known)}")
        found = [self.step()]
        while self.take(";"):
            if self.skip() < len(self.text):
                found.append(self.step())
        if self.at < len(self.text):
            _fail(self.text, self.at, f"{self.text[self.at]!r} is not expected here", "separate steps with ;")
        return found

    def step(self) -> Clause:
        column = self.skip()
        word = self.word(column)
        negated = word == "not"
        if negated:
            column = self.skip()
            word = self.word(column)
        if not self.accepts(word):
            _unknown(self.text, column, f"unknown filter {word!r}", word, self.known)
        arguments = self.arguments() if self.take("(") else ()
        operator_at = self.skip()
        operator = _OPERATOR.match(self.text, self.at)
        values: tuple[Argument, ...] = ()
        if operator:
            self.at = operator.end()
            values = self.values()
        return Clause(
            line=self.text,
            name=word,
            at=column,
            negated=negated,
            arguments=arguments,
            operator=operator[0] if operator else "",
            operator_at=operator_at,
            values=values,
        )

    def word(self, column: int) -> str:
        match = _NAME.match(self.text, column)
        if not match:
            found = repr(self.text[column]) if column < len(self.text) else "the end of the line"
            _fail(self.text, column, f"a filter is expected here, not {found}", f"known: {', '.join(self.known)}")
        self.at = match.end()
        return match[0].rstrip(".")

    def arguments(self) -> tuple[Argument, ...]:
        if self.take(")"):
            return ()
        found = [self.argument()]
        while self.take(","):
            found.append(self.argument())
        if not self.take(")"):
            _fail(self.text, self.at, "a closing ) is missing", "close the bracket")
        return tuple(found)

    def argument(self) -> Argument:
        column = self.skip()
        named = _ARGUMENT_NAME.match(self.text, column)
        if not named:
            return self.value()
        self.at = named.end()
        value = self.value()
        return Argument(value.text, value.at, named[1].lower(), column, named[2])

    def values(self) -> tuple[Argument, ...]:
        found = [self.value()]
        while self.take(","):
            found.append(self.value())
        return tuple(found)

    def value(self) -> Argument:
        column = self.skip()
        quoted = _QUOTED.match(self.text, column)
        if quoted:
            self.at = quoted.end()
            text = quoted[1].strip()
        else:
            if column < len(self.text) and self.text[column] == '"':
                _fail(self.text, column, "the quotation mark is not closed", 'write "…"')
            plain = _PLAIN.match(self.text, column)
            text = plain[0].strip() if plain else ""
            self.at = column + len(text)
        if not text:
            _fail(self.text, column, "a value is expected here", 'give one; with commas or brackets in it, as "…"')
        return Argument(text, column)

    def skip(self) -> int:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.at

    def take(self, symbol: str) -> bool:
        self.skip()
        found = self.text.startswith(symbol, self.at)
        self.at += found
        return found


def _unknown(line: str, column: int, what: str, word: str, known: tuple[str, ...]) -> NoReturn:
    _fail(line, column, what, f"{did_you_mean(word, known)}known: {', '.join(known)}")


def _fail(line: str, column: int, what: str, fix: str) -> NoReturn:
    raise UsageError(what, where=f"filter line, column {column + 1}\n    {line}\n    {' ' * column}^", fix=fix)


class FilterVerdict(Struct, frozen=True):
    """What a filter says of a document.

    `reason` is empty when the document is kept; else it is in words that many documents share, so that it can be
    counted. `details` says what in this document made it so. `facets` are marks that the document carries on.
    """

    reason: str = ""
    details: str = ""
    facets: Facets = field(default_factory=dict)

    @property
    def kept(self) -> bool:
        """Whether the document stays."""
        return not self.reason


_NEEDS_QUOTES = re.compile(r'[,;()"]')

KEPT = FilterVerdict()

Judge = Callable[[Document], FilterVerdict]
Documents = Callable[[], Iterator[Document]]


class FilterTable(Struct, frozen=True):
    """Rows that a filter leaves beside its verdicts, such as the pairs of near-duplicates."""

    header: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


class PreparedFilter(Struct, frozen=True):
    """A filter ready to judge, with the tables and the model it used, by name."""

    judge: Judge
    tables: Mapping[str, FilterTable] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)


class FilterStep(Struct, frozen=True, kw_only=True):
    """One step of a selection. `line` is how it is written, `settings` everything that can change its verdicts.

    `files` are what it reads besides the documents. `prepare` makes it ready; it may call the documents (again and
    again) only when the filter is `two_pass`. `remark` says a line about the documents that the whole selection kept.
    """

    name: str
    line: str
    prepare: Callable[[Documents, Progress], PreparedFilter]
    settings: Mapping[str, object] = field(default_factory=dict)
    seeds: Mapping[str, int] = field(default_factory=dict)
    files: tuple[Path, ...] = ()
    two_pass: bool = False
    remark: Callable[[Iterable[Document]], str] | None = None

    def __str__(self) -> str:
        return self.line


class RejectedDocument(Struct, frozen=True, kw_only=True):
    """A document that a step did not keep."""

    id: str
    step: str
    reason: str
    details: str = ""


def per_document(name: str, line: str, judge: Judge, settings: Mapping[str, object] | None = None) -> FilterStep:
    """A filter that needs nothing but the document before it."""
    return FilterStep(
        name=name, line=line, prepare=lambda _documents, _progress: PreparedFilter(judge), settings=settings or {}
    )


def judged(document: Document, step: str, judge: Judge) -> Document | RejectedDocument:
    """The document as the step leaves it (with its marks), or as rejected."""
    verdict = judge(document)
    if verdict.reason:
        return RejectedDocument(id=document.id, step=step, reason=verdict.reason, details=verdict.details)
    if verdict.facets:
        return msgspec.structs.replace(document, facets={**document.facets, **verdict.facets})
    return document


class CorpusFilter:
    """A filter that can be named in a line. A subclass sets the attributes and defines `build`; one object is enough.

    `summary` says what it keeps, `example` shows how it is written.
    """

    extension_kind: ClassVar[str] = "filter"
    extension_package: ClassVar[str] = "hoofbeat.corpus.filters"

    name: str
    summary: str
    example: str
    negatable: bool = True
    """Whether `not` makes sense before it."""

    def accepts(self, name: str) -> bool:
        """Whether a name in a line means this filter."""
        return name == self.name

    def build(self, clause: Clause) -> FilterStep:
        """The step that a clause of a line asks for; a `UsageError` points at what is wrong with it."""
        raise NotImplementedError


def parse_filters(line: str) -> list[FilterStep]:
    """The steps of a filter line, in their order; what is wrong with it is a `UsageError` that points at the column."""
    clauses = read_line(line, registry.names(CorpusFilter), lambda name: _filter_of(name) is not None)
    return [_built(clause) for clause in clauses]


def _filter_of(name: str) -> CorpusFilter | None:
    return next((each for each in registry.all(CorpusFilter) if each.accepts(name)), None)


def _built(clause: Clause) -> FilterStep:
    found = _filter_of(clause.name)
    assert found is not None  # the line was read with these names
    if clause.negated and not found.negatable:
        clause.fail(clause.at, f"{clause.name} can't be negated with not", "what it drops is listed in rejected.jsonl")
    built = found.build(clause)
    return _negated(built) if clause.negated else built


def _negated(inner: FilterStep) -> FilterStep:
    """Keeps what the filter rejects, and the other way round."""

    def prepare(documents: Documents, progress: Progress) -> PreparedFilter:
        ready = inner.prepare(documents, progress)
        return PreparedFilter(_opposite(ready.judge, inner.line), ready.tables, ready.models)

    return msgspec.structs.replace(inner, line=f"not {inner.line}", prepare=prepare)


def _opposite(judge: Judge, line: str) -> Judge:
    def opposite(document: Document) -> FilterVerdict:
        verdict = judge(document)
        return FilterVerdict(line, verdict.details) if verdict.kept else FilterVerdict()

    return opposite


def word_starts(words: Sequence[str]) -> re.Pattern[str]:
    """Finds words that begin with one of these; a space in one matches any white space."""
    parts = (r"\s+".join(map(re.escape, word.split())) for word in words)
    return re.compile(rf"(?<!\w)(?:{'|'.join(parts)})", re.IGNORECASE)


def quoted_value(value: str) -> str:
    """A value as it is written in a filter line."""
    return f'"{value}"' if _NEEDS_QUOTES.search(value) else value


def listed_values(values: Sequence[str]) -> str:
    """Values for a rejection's details, not more than a few."""
    return some_of([value if len(value) <= 80 else value[:79] + "…" for value in values], 3)


def compared_values(
    name: str, operator: str, values: list[str], field: Callable[[Document], list[str]], *, details: bool = True
) -> FilterStep:
    """Keeps documents with a value in the field that is one of these (`=`), or has a word that begins so (`~`)."""
    pattern = word_starts(values)
    whole = {value.casefold() for value in values}

    def matches(text: str) -> bool:
        return text.casefold() in whole if operator == "=" else bool(pattern.search(text))

    def judge(document: Document) -> FilterVerdict:
        found = [value for value in field(document) if value]
        if any(map(matches, found)):
            return KEPT
        if not found:
            return FilterVerdict(f"no {name}")
        return FilterVerdict(f"{name} does not match", listed_values(found) if details else "")

    line = f"{name}{operator}{','.join(map(quoted_value, values))}"
    return per_document(name, line, judge, {"values": values})
