"""The retriever line: a retriever written as one line of text, the same in the command, in Python and in a manifest.

    line  = sum { ">" sum }                 stages one after the other
    sum   = term { plus term }              fusion by reciprocal rank or by scores
    plus  = "+" [ "[" by=…, k=…, depth=… "]" ]    by ranks or scores, its constant (60), how deep rankings go (1000)
    term  = [ number "*" ] atom             weighted in the fusion
    atom  = "(" line ")" | stage
    stage = name [ "[" option=value, … "]" ] [ "@" depth ]

The role of a stage decides where it may be: query writers before `>`, one ranker (or a fusion of rankers), then
rerankers. `str()` of a parsed line is its canonical form: options in fixed order, defaults left out. The stages
themselves are files in `retrieval/stages` and in plugins.

Alternatives in braces are written out as every line they mean, each with the choices made: the settings that an
ablation table lays out.

    bm25[k1={0.9|1.2},b={0.4|0.75}]           four lines
    dense[chunk={whole|tokens:512/128}]       two lines
    bm25 + dense {|> rerank@100}              without and with reranking
"""

from __future__ import annotations

import copy
import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple, NoReturn, Self

from msgspec import Struct

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.registry import registry

Role = Literal["query writer", "ranker", "reranker"]

_DUTIES: dict[Role, str] = {
    "query writer": "only writes queries, so a ranker must follow it",
    "ranker": "ranks the whole collection, so it can't follow another ranker",
    "reranker": "reorders what a ranker found, so it must follow one",
}
_MAX_NESTING = 30
_NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|-?\.\d+(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z][\w-]*")
_OPTION_NAME = re.compile(r"[A-Za-z_]\w*")
_OPTION_VALUE = re.compile(r"[^,\[\]]*")
_PASSWORD = re.compile(r"(://[^/@:\s]*:)([^/@\s]+)(?=@)")  # in the address of a database
_DEPTH = re.compile(r"\d{1,9}")


class StageOption(Struct, frozen=True):
    """An option of a stage. The type of the default is the type of the option: whole number, number or word.

    `min_` and `max_` are the limits of a number. `choices` are the words that are allowed; `check` is called with a
    word and raises a `UsageError` if it can't be used.
    """

    name: str
    default: int | float | str
    help: str = ""
    min_: float = -math.inf
    max_: float = math.inf
    choices: tuple[str, ...] = ()
    check: Callable[[str], object] | None = None

    @property
    def value(self) -> float | str:
        """The default as a value: all numbers are floats."""
        return self.default if isinstance(self.default, str) else float(self.default)


class CostBound(Struct, frozen=True):
    """The maximum that is spent on one query: calls, tokens read in addition to the query, and tokens written."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def __add__(self, other: CostBound) -> CostBound:
        return CostBound(self.calls + other.calls, self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out)

    def __mul__(self, times: int) -> CostBound:
        return CostBound(self.calls * times, self.tokens_in * times, self.tokens_out * times)


class Stage:
    """A stage of a retriever line, with the values of its options; as its file defines it, with the defaults.

    Subclass one of the roles (`Ranker`, `QueryWriter`, `Reranker`: see `hoofbeat.retrieval.stages`), not this class.
    The methods here tell the rest of Hoofbeat what the stage uses; the defaults fit a stage that uses nothing.
    """

    extension_kind: ClassVar[str] = "stage"
    extension_package: ClassVar[str] = "hoofbeat.retrieval.stages"
    role: ClassVar[Role] = "ranker"

    name: str = ""
    """What users write in a line."""

    summary: str = ""
    """One line for help and listings."""

    options: tuple[StageOption, ...] = ()

    takes_depth: ClassVar[bool] = False
    """Whether `@N` may follow the stage."""

    followed_by: str = ""
    """The ranker that follows a query writer where a line names none."""

    notes: list[str]
    """What a reader of the results should know, as the stage noted it at work."""

    def __init__(self) -> None:
        self.values: tuple[float | str, ...] = tuple(option.value for option in self.options)
        self.depth: int | None = None
        self.reset()

    def with_options(self, options: Mapping[str, float | str], depth: int | None = None) -> Self:
        """The same stage with other values of these options."""
        made = copy.copy(self)
        given = dict(zip((option.name for option in self.options), self.values, strict=True))
        made.values = tuple({**given, **options}[option.name] for option in self.options)
        made.depth = depth if depth is not None else self.depth
        made.reset()
        return made

    def reset(self) -> None:
        """Forget what was loaded and noted: every line that names the stage begins with nothing."""
        self.notes = []

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
        return self.values[[known.name for known in self.options].index(option)]

    def prepare(self) -> None:
        """Check options that must fit each other, and load what is needed; called before the line is used.

        A stage that can't work raises a `UsageError` here, before anything is indexed or paid for.
        """

    def encoders(self) -> tuple[str, ...]:
        """The sentence encoders it uses, by name."""
        return ()

    def models(self) -> tuple[str, ...]:
        """The language models it asks, by name; an empty name is the model of the command."""
        return ()

    def prompts(self) -> dict[str, str]:
        """The prompts it uses, with their fingerprints."""
        return {}

    def folders(self) -> tuple[str, ...]:
        """Folders or files of this machine that its options name; visitors of a server can't use them."""
        return ()

    def inner(self) -> tuple[Node, ...]:
        """Lines or stages that it runs itself, such as a first search."""
        return ()

    def cost(self) -> CostBound:
        """The maximum that it spends on one query, without `inner`."""
        return CostBound()

    def searches(self) -> int:
        """The maximum number of searches per query that it makes with what follows it in the line."""
        return 0

    def describe(self) -> dict[str, object]:
        """What a manifest records of it besides the line; dictionaries of several stages are joined."""
        return {}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Stage) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.name, self.values, self.depth)

    def __repr__(self) -> str:
        return f"<{self.role} {self}>"

    def __str__(self) -> str:
        changed = [
            f"{option.name}={_number_text(value) if isinstance(value, float) else value}"
            for option, value in zip(self.options, self.values, strict=True)
            if value != option.default
        ]
        options = f"[{','.join(changed)}]" if changed else ""
        return self.name + options + (f"@{self.depth}" if self.depth is not None else "")


class FusionPart(Struct, frozen=True):
    """One ranking of a fusion and its weight."""

    node: Node
    weight: float = 1.0

    def __str__(self) -> str:
        inner = str(self.node) if isinstance(self.node, Stage) else f"({self.node})"
        return inner if self.weight == 1 else f"{_number_text(self.weight)}*{inner}"


class Fusion(Struct, frozen=True):
    """Two or more rankings, joined by reciprocal rank or, `by` scores, by scores brought to 0 to 1 in each ranking.

    `depth` is how deep each ranking goes, whatever number of results is asked for: so top 10 is the top of top 100.
    """

    parts: tuple[FusionPart, ...]
    constant: int = 60
    depth: int = 1000
    by: str = "ranks"

    @property
    def role(self) -> Role:
        """A fusion ranks the whole collection."""
        return "ranker"

    def __str__(self) -> str:
        changed = [f"by={self.by}"] if self.by != "ranks" else []
        changed += [f"k={self.constant}"] if self.constant != 60 else []
        changed += [f"depth={self.depth}"] if self.depth != 1000 else []
        plus = f"+[{','.join(changed)}]" if changed else "+"
        return f" {plus} ".join(map(str, self.parts))


class Pipeline(Struct, frozen=True):
    """Steps one after the other, two or more: query writers, one ranker, rerankers."""

    steps: tuple[Node, ...]

    @property
    def role(self) -> Role:
        """A pipeline as a whole ranks the whole collection."""
        return "ranker"

    def __str__(self) -> str:
        return " > ".join(f"({step})" if isinstance(step, Pipeline) else str(step) for step in self.steps)


Node = Stage | Fusion | Pipeline


def parse(line: str) -> Node:
    """Read a retriever line; an error in it is a `UsageError` that points at the column."""
    return _Parser(line).whole_line()


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


def every_stage(node: Node) -> Iterator[Stage]:
    """Every stage of a parsed line, and the stages that these run themselves."""
    for stage in stages(node):
        yield stage
        for inner in stage.inner():
            yield from every_stage(inner)


def cost_bound(node: Node) -> CostBound:
    """The maximum that a line spends on one query. An agent searches with what follows it, so that counts each time."""
    match node:
        case Stage():
            return sum(map(cost_bound, node.inner()), start=node.cost())
        case Fusion(parts):
            return sum((cost_bound(part.node) for part in parts), start=CostBound())
        case Pipeline(steps):
            total = CostBound()
            for step in reversed(steps):
                total = total * (1 + (step.searches() if isinstance(step, Stage) else 0)) + cost_bound(step)
            return total


def _number_text(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


class _Plus(Stage):
    """The sign of a fusion, which has options as a stage has."""

    name = "+"
    options = (
        StageOption("by", "ranks", choices=("ranks", "scores")),
        StageOption("k", 60, min_=1, max_=1e6),
        StageOption("depth", 1000, min_=1, max_=1e6),
    )


_PLUS = _Plus()


class _Parser:
    """Recursive descent over the grammar above; `at` is the next character to read."""

    def __init__(self, line: str) -> None:
        self.text = re.sub(r"\s", " ", line)
        self.at = 0
        self.nesting = 0

    def whole_line(self) -> Node:
        if not self.text.strip():
            self.fail(0, "the retriever line is empty", f"write one, for example {_known()[0]}")
        node = self.line()
        if self.at < len(self.text):
            self.fail(self.at, f"{self.text[self.at]!r} is not expected here", "join stages with + or >")
        return node

    def line(self) -> Node:
        steps = [self.sum()]
        while self.take(">"):
            steps.append(self.sum())
        last = steps[-1][1]
        if isinstance(last, Stage) and last.role == "query writer" and last.followed_by:
            steps.append((steps[-1][0], _Parser(last.followed_by).whole_line()))
        self.check_order(steps)
        if len(steps) == 1:
            return steps[0][1]
        return Pipeline(tuple(node for _, node in steps))

    def check_order(self, steps: list[tuple[int, Node]]) -> None:
        writers = [(column, node) for column, node in steps if node.role == "query writer"]
        if len(writers) > 1:
            column, node = writers[1]
            self.fail(column, f"{node} would discard the queries of {writers[0][1]}", "use one query writer")
        ranked = False
        for column, node in steps:
            if ranked != (node.role == "reranker"):
                self.misplaced(column, node)
            ranked = ranked or node.role == "ranker"
        if not ranked:
            self.misplaced(*steps[-1])

    def misplaced(self, column: int, node: Node) -> NoReturn:
        if node.role == "query writer":
            self.fail(column, f"{node} {_DUTIES[node.role]}", f"put it before one: {node} > bm25")
        rerankers = [stage.name for stage in registry.all(Stage) if stage.role == "reranker"]
        can = f"what can follow > is {', '.join(rerankers)}"
        self.fail(column, f"{node} {_DUTIES[node.role]}", f"{can}; to use two rankers together, fuse them with +")

    def sum(self) -> tuple[int, Node]:
        start = self.skip()
        terms = [self.term()]
        settings: Stage | None = None
        while self.take("+"):
            given = _PLUS.with_options(self.options(_PLUS))
            if settings is not None and given != settings:
                self.fail(
                    self.at, "the + signs of one fusion have different options", "write the same options after each +"
                )
            settings = given
            terms.append(self.term())
        if len(terms) == 1:
            column, part = terms[0]
            if part.weight != 1:
                self.fail(column, "only a fusion can have weights", "remove it, or fuse another stage with +")
            return start, part.node
        for column, part in terms:
            if part.node.role != "ranker":
                self.fail(column, f"{part.node} can't be fused: it does not rank by itself", "fuse rankers only")
        assert settings is not None
        by, constant = settings.word("by"), settings.count("k")
        if by == "scores" and constant != 60:
            self.fail(start, "k is for fusion by ranks, and this one is by scores", "leave out k, or by=scores")
        return start, Fusion(tuple(part for _, part in terms), constant, settings.count("depth"), by)

    def term(self) -> tuple[int, FusionPart]:
        column = self.skip()
        number = _NUMBER.match(self.text, self.at)
        if not number:
            return column, FusionPart(self.atom())
        self.at = number.end()
        weight = float(number[0])
        if not 0 < weight < math.inf:
            self.fail(column, f"{number[0]} is not a weight", "weights are positive numbers")
        if not self.take("*"):
            self.fail(self.at, f"a stage must follow the weight {number[0]}", f"write {number[0]}*stage")
        return column, FusionPart(self.atom(), weight)

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
            self.fail(column, f"a stage is expected here, not {found}", f"known stages: {', '.join(_known())}")
        try:
            stage = registry.get(Stage, match[0].lower())
        except UsageError:
            self.unknown(column, f"unknown retriever stage {match[0]!r}", match[0].lower(), _known(), "stages")
        self.at = match.end()
        return stage.with_options(self.options(stage), self.depth(stage))

    def depth(self, stage: Stage) -> int | None:
        column = self.skip()
        if not self.take("@"):
            return None
        if not stage.takes_depth:
            self.fail(column, f"{stage.name} has no depth", "remove the @ and its number")
        self.skip()
        match = _DEPTH.match(self.text, self.at)
        if not match or int(match[0]) == 0:
            self.fail(self.at, "a depth is expected after @", f"write for example {stage.name}@100")
        self.at = match.end()
        return int(match[0])

    def options(self, stage: Stage) -> dict[str, float | str]:
        given: dict[str, float | str] = {}
        if not self.take("["):
            return given
        while True:
            column = self.skip()
            match = _OPTION_NAME.match(self.text, self.at)
            if not match:
                self.fail(column, f"an option of {stage.name} is expected here", _option_list(stage))
            option = next((option for option in stage.options if option.name == match[0]), None)
            if option is None:
                names = [option.name for option in stage.options]
                self.unknown(column, f"{stage.name} has no option {match[0]!r}", match[0], names, "options")
            if option.name in given:
                self.fail(column, f"the option {option.name} is given twice", "remove one")
            self.at = match.end()
            if not self.take("="):
                self.fail(self.at, f"= is expected after {option.name}", _option_list(stage))
            given[option.name] = self.value(option)
            if self.take("]"):
                return given
            if not self.take(","):
                self.fail(self.at, "a closing ] is missing", "close the bracket")

    def value(self, option: StageOption) -> float | str:
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
        whole = isinstance(option.default, int)
        fits = option.min_ <= number <= option.max_ and math.isfinite(number)
        if not fits or (whole and not number.is_integer()):
            top = f"to {_number_text(float(option.max_))}" if math.isfinite(option.max_) else "up"
            kind = "whole number" if whole else "number"
            self.fail(column, f"{option.name} can't be {text!r}", f"give a {kind} from {option.min_:g} {top}")
        return number

    def check_word(self, column: int, option: StageOption, text: str) -> None:
        if option.choices and text not in option.choices:
            self.fail(column, f"{option.name} can't be {text!r}", f"use one of {', '.join(option.choices)}")
        if option.check is not None:
            try:
                option.check(text)
            except UsageError as err:
                self.fail(column, err.what, err.fix or "")

    def unknown(self, column: int, what: str, name: str, names: list[str], plural: str) -> NoReturn:
        self.fail(column, what, f"{did_you_mean(name, names)}known {plural}: {', '.join(names) or 'none'}")

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
        shown = _PASSWORD.sub(lambda match: match[1] + "*" * len(match[2]), self.text)
        where = f"retriever line, column {column + 1}\n    {shown}\n    {' ' * column}^"
        raise UsageError(what, where=where, fix=fix)


def _known() -> list[str]:
    return list(registry.names(Stage))


def _option_list(stage: Stage) -> str:
    if not stage.options:
        return f"{stage.name} has no options"
    return f"write {stage.name}[{','.join(f'{option.name}={option.default}' for option in stage.options)}]"


_BRACES = re.compile(r"\{([^{}]*)\}")
_OPTION_BEFORE = re.compile(r"(\w+)\s*=\s*$")
_MOST = 500


class Variant(NamedTuple):
    """A line, and what was chosen for it at each brace."""

    line: str
    settings: dict[str, str]


def variants(text: str) -> list[Variant]:
    """Every line that a text with braces gives, in the order they are written; a text without gives itself."""
    pieces = _BRACES.split(text)
    outside, inside = pieces[::2], [piece.split("|") for piece in pieces[1::2]]
    if any("{" in piece or "}" in piece for piece in outside):
        raise UsageError("a brace is not closed, or is inside another", where=text, fix="write {one|other}")
    if any(len(choices) < 2 for choices in inside):
        raise UsageError("braces must hold at least two alternatives", where=text, fix="write {one|other}")
    count = 1
    for choices in inside:
        count *= len(choices)
    if count > _MOST:
        raise UsageError(
            f"the braces give {count} lines", where=text, fix=f"use braces that give at most {_MOST} lines"
        )
    names = _names(outside[:-1])
    made = []
    for chosen in itertools.product(*inside):
        line = "".join(part for pair in itertools.zip_longest(outside, chosen, fillvalue="") for part in pair)
        settings = {name: choice.strip() or "without" for name, choice in zip(names, chosen, strict=True)}
        made.append(Variant(" ".join(line.split()), settings))
    return made


def _names(before: list[str]) -> list[str]:
    """A name for each brace: the option whose value it is, else its number; a name that comes twice is numbered."""
    names: list[str] = []
    for number, text in enumerate(before, start=1):
        match = _OPTION_BEFORE.search(text)
        name = match[1] if match else f"choice {number}"
        names.append(f"{name} ({number})" if name in names else name)
    return names
