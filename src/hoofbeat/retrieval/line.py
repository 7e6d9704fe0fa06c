"""The retriever line: a retriever written as one line of text, the same in the command, in Python and in a manifest.

    line  = sum { ">" sum }                 stages one after the other
    sum   = term { plus term }              fusion by reciprocal rank
    plus  = "+" [ "[" k=…, depth=… "]" ]    its constant (60), and how deep each ranking goes (1000)
    term  = [ number "*" ] atom             weighted in the fusion
    atom  = "(" line ")" | stage
    stage = name [ "[" option=value, … "]" ] [ "@" depth ]

What a stage is for decides where it may stand: query writers before `>`, one ranker (or a fusion of rankers), then
rerankers. `str()` of a parsed line is its canonical form: options in fixed order, defaults left out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Literal, NoReturn

from msgspec import Struct

from hoofbeat.errors import UsageError

__all__ = [
    "Fusion",
    "Node",
    "Option",
    "Part",
    "Pipeline",
    "Stage",
    "StageKind",
    "StageSpec",
    "parse",
    "stages",
]

StageKind = Literal["query", "ranker", "reranker"]

_DUTIES: dict[StageKind, str] = {
    "query": "writes queries, so a ranker must follow it",
    "ranker": "ranks the whole collection, so it can't follow another ranker",
    "reranker": "reorders what a ranker found, so it must follow one",
}
_MAX_NESTING = 30
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-?\.\d+(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z][\w-]*")
_OPTION_NAME = re.compile(r"[A-Za-z_]\w*")
_OPTION_VALUE = re.compile(r"[^,\[\]]*")
_DEPTH = re.compile(r"\d{1,9}")


class Option(Struct, frozen=True):
    """An option of a stage: its default, for a number its range and whether it counts, for a word what refuses it."""

    name: str
    default: float | str
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    choices: tuple[str, ...] = ()
    check: Callable[[str], object] | None = None


class StageSpec(Struct, frozen=True):
    """What is known about a stage: name, what it is for, its options, and whether `@depth` means anything to it.

    `alone` is the ranker that a query writer is followed by where a line names none.
    """

    name: str
    kind: StageKind
    options: tuple[Option, ...] = ()
    takes_depth: bool = False
    summary: str = ""
    alone: str = ""


class Stage(Struct, frozen=True):
    """One stage with the value of each of its options, in the order of its specification."""

    spec: StageSpec
    values: tuple[float | str, ...]
    depth: int | None = None

    @property
    def kind(self) -> StageKind:
        """What the stage is for."""
        return self.spec.kind

    def number(self, option: str) -> float:
        """The value of an option that is a number."""
        return float(self._value(option))

    def count(self, option: str) -> int:
        """The value of an option that is a whole number."""
        return int(self.number(option))

    def word(self, option: str) -> str:
        """The value of an option that is a word."""
        return str(self._value(option))

    def _value(self, option: str) -> float | str:
        return self.values[[known.name for known in self.spec.options].index(option)]

    def __str__(self) -> str:
        changed = [
            f"{option.name}={_number_text(value) if isinstance(value, float) else value}"
            for option, value in zip(self.spec.options, self.values, strict=True)
            if value != option.default
        ]
        options = f"[{','.join(changed)}]" if changed else ""
        return self.spec.name + options + (f"@{self.depth}" if self.depth is not None else "")


class Part(Struct, frozen=True):
    """One ranking of a fusion and its weight."""

    node: Node
    weight: float = 1.0

    def __str__(self) -> str:
        inner = str(self.node) if isinstance(self.node, Stage) else f"({self.node})"
        return inner if self.weight == 1 else f"{_number_text(self.weight)}*{inner}"


class Fusion(Struct, frozen=True):
    """Rankings joined by reciprocal rank: two or more.

    `depth` is how deep each ranking goes, whatever number of results is asked for: so top 10 is the top of top 100.
    """

    parts: tuple[Part, ...]
    constant: int = 60
    depth: int = 1000

    @property
    def kind(self) -> StageKind:
        """A fusion ranks the whole collection."""
        return "ranker"

    def __str__(self) -> str:
        changed = [f"k={self.constant}"] if self.constant != 60 else []
        changed += [f"depth={self.depth}"] if self.depth != 1000 else []
        plus = f"+[{','.join(changed)}]" if changed else "+"
        return f" {plus} ".join(map(str, self.parts))


class Pipeline(Struct, frozen=True):
    """Steps one after the other, two or more: query writers, one ranker, rerankers."""

    steps: tuple[Node, ...]

    @property
    def kind(self) -> StageKind:
        """A pipeline as a whole ranks the whole collection."""
        return "ranker"

    def __str__(self) -> str:
        return " > ".join(f"({step})" if isinstance(step, Pipeline) else str(step) for step in self.steps)


Node = Stage | Fusion | Pipeline


def parse(line: str, known: Mapping[str, StageSpec] | None = None) -> Node:
    """Read a retriever line; what is wrong with it is a `UsageError` that points at the column."""
    if known is None:
        from hoofbeat.retrieval.catalogue import STAGES  # noqa: PLC0415 (the catalogue is written in this module's words)

        known = STAGES
    return _Parser(line, known).whole_line()


def stages(node: Node) -> Iterator[Stage]:
    """Every stage of a parsed line, in the order it is written."""
    match node:
        case Stage():
            yield node
        case Fusion(parts):
            for part in parts:
                yield from stages(part.node)
        case Pipeline(steps):
            for step in steps:
                yield from stages(step)


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


_PLUS = StageSpec(
    "+", "ranker", (Option("k", 60.0, 1.0, 1e6, whole=True), Option("depth", 1000.0, 1.0, 1e6, whole=True))
)


class _Parser:
    """Recursive descent over the grammar above; `at` is the next character to read."""

    def __init__(self, line: str, known: Mapping[str, StageSpec]) -> None:
        self.text = re.sub(r"\s", " ", line)
        self.known = known
        self.at = 0
        self.nesting = 0

    def whole_line(self) -> Node:
        if not self.text.strip():
            self.fail(0, "the retriever line is empty", f"write one, for example {next(iter(self.known))}")
        node = self.line()
        if self.at < len(self.text):
            self.fail(self.at, f"{self.text[self.at]!r} is not expected here", "join stages with + or >")
        return node

    def line(self) -> Node:
        steps = [self.sum()]
        while self.take(">"):
            steps.append(self.sum())
        last = steps[-1][1]
        if isinstance(last, Stage) and last.kind == "query" and last.spec.alone:
            steps.append((steps[-1][0], _Parser(last.spec.alone, self.known).whole_line()))
        self.check_order(steps)
        if len(steps) == 1:
            return steps[0][1]
        return Pipeline(tuple(node for _, node in steps))

    def check_order(self, steps: list[tuple[int, Node]]) -> None:
        writers = [(column, node) for column, node in steps if node.kind == "query"]
        if len(writers) > 1:
            column, node = writers[1]
            self.fail(column, f"{node} would discard what {writers[0][1]} has written", "use one query writer")
        ranked = False
        for column, node in steps:
            if ranked != (node.kind == "reranker"):
                self.misplaced(column, node)
            ranked = ranked or node.kind == "ranker"
        if not ranked:
            self.misplaced(*steps[-1])

    def misplaced(self, column: int, node: Node) -> NoReturn:
        if node.kind == "query":
            self.fail(column, f"{node} {_DUTIES[node.kind]}", f"put it before one: {node} > bm25")
        rerankers = [spec.name for spec in self.known.values() if spec.kind == "reranker"]
        can = f"what can follow > is {', '.join(rerankers)}" if rerankers else "no stage known today can follow >"
        self.fail(column, f"{node} {_DUTIES[node.kind]}", f"{can}; to use two rankers together, fuse them with +")

    def sum(self) -> tuple[int, Node]:
        start = self.skip()
        terms = [self.term()]
        settings: Stage | None = None
        while self.take("+"):
            given = Stage(_PLUS, self.options(_PLUS))
            if settings is not None and given != settings:
                self.fail(self.at, "the + of one fusion differ", "write the same options at each +")
            settings = given
            terms.append(self.term())
        if len(terms) == 1:
            column, part = terms[0]
            if part.weight != 1:
                self.fail(
                    column, "a weight means something only in a fusion", "remove it, or fuse another stage with +"
                )
            return start, part.node
        for column, part in terms:
            if part.node.kind != "ranker":
                self.fail(column, f"{part.node} can't be fused: it ranks nothing by itself", "fuse rankers only")
        assert settings is not None
        return start, Fusion(tuple(part for _, part in terms), settings.count("k"), settings.count("depth"))

    def term(self) -> tuple[int, Part]:
        column = self.skip()
        number = _NUMBER.match(self.text, self.at)
        if not number:
            return column, Part(self.atom())
        self.at = number.end()
        weight = float(number[0])
        if not 0 < weight < math.inf:
            self.fail(column, f"{number[0]} is no weight", "weights are positive numbers")
        if not self.take("*"):
            self.fail(self.at, f"a stage must follow the weight {number[0]}", f"write {number[0]}*stage")
        return column, Part(self.atom(), weight)

    def atom(self) -> Node:
        column = self.skip()
        if not self.take("("):
            return self.stage()
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            self.fail(column, "the parentheses are nested too deeply", "simplify the line")
        node = self.line()
        if not self.take(")"):
            self.fail(self.at, "a closing ) is missing", "close the parenthesis")
        self.nesting -= 1
        return node

    def stage(self) -> Stage:
        column = self.skip()
        match = _NAME.match(self.text, self.at)
        if not match:
            found = repr(self.text[self.at]) if self.at < len(self.text) else "the end of the line"
            self.fail(column, f"a stage is expected here, not {found}", f"known stages: {', '.join(self.known)}")
        name = match[0].lower()
        if name not in self.known:
            self.unknown(column, f"unknown retriever stage {match[0]!r}", name, list(self.known), "stages")
        self.at = match.end()
        spec = self.known[name]
        return Stage(spec, self.options(spec), self.depth(spec))

    def depth(self, spec: StageSpec) -> int | None:
        column = self.skip()
        if not self.take("@"):
            return None
        if not spec.takes_depth:
            self.fail(column, f"{spec.name} takes no depth", "remove the @ and its number")
        self.skip()
        match = _DEPTH.match(self.text, self.at)
        if not match or int(match[0]) == 0:
            self.fail(self.at, "a depth is expected after @", f"write for example {spec.name}@100")
        self.at = match.end()
        return int(match[0])

    def options(self, spec: StageSpec) -> tuple[float | str, ...]:
        given: dict[str, float | str] = {}
        if not self.take("["):
            return tuple(option.default for option in spec.options)
        while True:
            column = self.skip()
            match = _OPTION_NAME.match(self.text, self.at)
            if not match:
                self.fail(column, f"an option of {spec.name} is expected here", _option_list(spec))
            option = next((option for option in spec.options if option.name == match[0]), None)
            if option is None:
                names = [option.name for option in spec.options]
                self.unknown(column, f"{spec.name} has no option {match[0]!r}", match[0], names, "options")
            if option.name in given:
                self.fail(column, f"the option {option.name} is given twice", "remove one")
            self.at = match.end()
            if not self.take("="):
                self.fail(self.at, f"= is expected after {option.name}", _option_list(spec))
            given[option.name] = self.value(option)
            if self.take("]"):
                return tuple(given.get(option.name, option.default) for option in spec.options)
            if not self.take(","):
                self.fail(self.at, "a closing ] is missing", "close the bracket")

    def value(self, option: Option) -> float | str:
        column = self.skip()
        match = _OPTION_VALUE.match(self.text, self.at)
        text = match[0].strip() if match else ""
        if not text:
            self.fail(column, f"the option {option.name} has no value", f"write {option.name}={option.default}")
        self.at += len(match[0]) if match else 0
        if isinstance(option.default, str):
            self.check_word(column, option, text)
            return text
        number = float(text) if _NUMBER.fullmatch(text) else math.nan
        fits = option.low <= number <= option.high and math.isfinite(number)
        if not fits or (option.whole and not number.is_integer()):
            top = f"to {_number_text(float(option.high))}" if math.isfinite(option.high) else "up"
            kind = "whole number" if option.whole else "number"
            self.fail(column, f"{option.name} can't be {text!r}", f"give a {kind} from {option.low:g} {top}")
        return number

    def check_word(self, column: int, option: Option, text: str) -> None:
        if option.choices and text not in option.choices:
            self.fail(column, f"{option.name} can't be {text!r}", f"use one of {', '.join(option.choices)}")
        if option.check is not None:
            try:
                option.check(text)
            except UsageError as err:
                self.fail(column, err.what, err.fix or "")

    def unknown(self, column: int, what: str, name: str, names: list[str], plural: str) -> NoReturn:
        close = get_close_matches(name, names, n=1, cutoff=0.4)
        guess = f"did you mean {close[0]}? " if close else ""
        self.fail(column, what, f"{guess}known {plural}: {', '.join(names) or 'none'}")

    def skip(self) -> int:
        while self.at < len(self.text) and self.text[self.at] == " ":
            self.at += 1
        return self.at

    def take(self, symbol: str) -> bool:
        self.skip()
        found = self.text.startswith(symbol, self.at)
        self.at += found
        return found

    def fail(self, column: int, what: str, fix: str) -> NoReturn:
        where = f"retriever line, column {column + 1}\n    {self.text}\n    {' ' * column}^"
        raise UsageError(what, where=where, fix=fix)


def _option_list(spec: StageSpec) -> str:
    if not spec.options:
        return f"{spec.name} has no options"
    return f"write {spec.name}[{','.join(f'{option.name}={option.default}' for option in spec.options)}]"
