"""The filter line: a selection written as one line of text, the same in the command, in Python and in a manifest.

    line     = step { ";" step }                    steps one after the other
    step     = [ "not" ] name [ "(" argument { "," argument } ")" ] [ operator value { "," value } ]
    argument = [ word operator ] value
    operator = ">=" | "<=" | ">" | "<" | "=" | "~"
    value    = "quoted text" | text without , ; ( )

This module reads the form; what a step means is said by the filter of its name (`hoofbeat.corpus.filter`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

from msgspec import Struct

from hoofbeat.errors import UsageError, did_you_mean

__all__ = ["Argument", "Clause", "read_line"]

OPERATORS = (">=", "<=", ">", "<", "=", "~")

_NAME = re.compile(r"[A-Za-z][\w.-]*")
_OPERATOR = re.compile(r">=|<=|[><=~]")
_ARGUMENT_NAME = re.compile(r"([A-Za-z_]\w*)\s*(>=|<=|[><=~])")
_QUOTED = re.compile(r'"([^"]*)"')
_PLAIN = re.compile(r"[^,;()]*")
_NUMBER = re.compile(r"\d+(\.\d+)?")


class Argument(Struct, frozen=True):
    """A value with the column it stands at; in brackets it may have a name (with a column) and an operator."""

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
            self.fail(self.operator_at, f"{self.name} is compared with nothing", f"write {example}")

    def no_arguments(self, example: str) -> None:
        """Refuse arguments."""
        if self.arguments:
            self.fail(self.arguments[0].at, f"{self.name} takes nothing in brackets", f"write {example}")

    def compared(self, operators: Iterable[str], example: str) -> tuple[Argument, ...]:
        """The values the step is compared with, by one of these operators; at least one."""
        if self.operator not in operators:
            column = self.operator_at if self.operator else self.at + len(self.name)
            self.fail(column, f"{self.name} needs {' or '.join(operators)} and a value", f"write {example}")
        return self.values

    def number(self, argument: Argument, *, low: float = 0, high: float = float("inf")) -> float:
        """The number an argument is, within bounds."""
        if not _NUMBER.fullmatch(argument.text) or not low <= float(argument.text) <= high:
            limit = f"from {low:g} to {high:g}" if high != float("inf") else f"from {low:g} up"
            self.fail(argument.at, f"{argument.text!r} is no number {limit}", f"give a number {limit}")
        return float(argument.text)

    def whole(self, argument: Argument, *, low: int = 0) -> int:
        """The whole number an argument is."""
        if not self.number(argument, low=low).is_integer():
            self.fail(argument.at, f"{argument.text} is no whole number", "give a whole number")
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
