"""Under which condition a question is asked: one string, the same in the command, the tables and in Python.

    closed                        nothing but the question
    images                        the question with its images
    options                       the options alone, without the question: a baseline
    question                      the question without its case: a baseline
    first 20%                     the question with the first 20% of its case, by tokens
    first 20% of sentences        the same by sentences
    oracle                        its source documents, whole
    bm25 + dense @3               the 3 best passages that a retriever line finds
    bm25 + dense @3 documents     the 3 best documents, whole
    agent[turns=4] over bm25      what the model finds itself, searching with a retriever line

A protocol may follow (`closed, letter`); without one it is chosen by the question: by letter where it has options.

A protocol says how an answer is taken: in free text, as the letter of an option, or as the option the model finds most
likely. The letter protocol shows the options under letters, in an order drawn for each question from a recorded seed.
Option likelihood shows no options: it measures how likely each one is as the continuation of the question, as
lm-evaluation-harness does: as a whole (its `acc`), per token, or per byte (its `acc_bytes`, and `acc_norm` for ASCII).
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from string import ascii_uppercase
from typing import Literal, NoReturn

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError, did_you_mean
from hoofbeat.prompts import material
from hoofbeat.records import Failure, OptionLikelihood, Passage, Question

FREE = ""
SCORING = ("likelihood", "likelihood/token", "likelihood/byte")
PROTOCOLS = ("free", "letter", *SCORING)
"""The protocols as they are written in a command; `free` leaves no mark in a condition's name."""

INSTRUCTIONS = ("best", "brief")
"""One best answer; the same in few words and without visible reasoning."""

TIE = "ambiguous: two options are equally likely"
_CUE = "\n\nAnswer:"  # as in the task that `hoofbeat export --as lm-eval` writes


def protocol_ending(protocol: str) -> str:
    """What a protocol adds to a condition's name."""
    return f", {protocol}" if protocol else ""


def option_trouble(question: Question, protocol: str) -> Failure | None:
    """Why a question can't be asked under a protocol."""
    if protocol == FREE:
        return None
    options = [" ".join(option.split()) for option in question.options]
    why = ""
    if len(options) < 2:
        why = "the question has no options" if not options else "the question has only one option"
    elif not all(options):
        why = "one of the question's options is empty"
    elif len({option.casefold() for option in options}) < len(options):
        why = "two of the question's options are the same"
    elif protocol == "letter" and len(options) > len(ascii_uppercase):
        why = f"{len(options)} options, but only {len(ascii_uppercase)} letters: use the protocol likelihood"
    return Failure(kind="input", message=why, attempts=0) if why else None


def ordered_options(question: Question, seed: int) -> tuple[str, ...]:
    """The options in the order they are shown: by a hash of the seed, the question's id and the option's place."""

    def key(place: int) -> bytes:
        return hashlib.sha256(f"{seed}\0{question.id}\0{place}".encode()).digest()

    return tuple(question.options[place] for place in sorted(range(len(question.options)), key=key))


def letter_options(options: Sequence[str]) -> str:
    """The options as they are shown, a line each: no option can pass for two."""
    return "\n".join(f"{letter}. {' '.join(o.split())}" for letter, o in zip(ascii_uppercase, options, strict=False))


def likelihood_context(question: str, passages: Sequence[Passage] = ()) -> str:
    """The text whose continuation by each option is measured: documents, fenced, then the question and a cue."""
    shown = [
        material(passage.text, f"passage {number}: {passage.heading}") for number, passage in enumerate(passages, 1)
    ]
    return "\n\n".join([*shown, _harmless(question)]) + _CUE


def likelihood_continuation(option: str) -> str:
    """An option as the continuation that is measured."""
    return " " + _harmless(option)


def _harmless(text: str) -> str:
    """A text in which nothing speaks the chat format, without a fence around it."""
    return material(text).partition("\n")[2].rpartition("\n")[0]


def most_likely(likelihoods: Sequence[OptionLikelihood], protocol: str) -> tuple[str | None, str]:
    """The most likely option and how it was found; none, and why, where two are equally likely."""
    scores = [_score(each, protocol) for each in likelihoods]
    best = max(scores)
    if not math.isfinite(best) or scores.count(best) > 1:
        return None, TIE
    return likelihoods[scores.index(best)].option, "most likely"


def _score(likelihood: OptionLikelihood, protocol: str) -> float:
    match protocol:
        case "likelihood/token":
            return likelihood.total / max(1, likelihood.tokens)
        case "likelihood/byte":
            return likelihood.total / max(1, likelihood.bytes)
        case _:
            return likelihood.total


BASELINES = ("options", "question")
"""Conditions that leave out what the answer should be read from."""

ConditionKind = Literal["closed", "images", "options", "question", "first", "oracle", "retrieved", "agent"]
AGENT_LINE = "bm25"
"""What an agent searches with where its condition does not say."""

_WORDS_OF_CONDITIONS = ("closed", "oracle", "images", "options", "question", "agent")
_FORMS = (
    "use closed, oracle, images, options, question, 'first 20%', 'first 20% of sentences', a retriever line with the "
    "number of passages ('bm25 + dense @3') or documents ('bm25 + dense @3 documents'), or 'agent over bm25 + dense'; "
    "a protocol may follow: 'closed, letter'"
)
_MAX_CHARACTERS = 2000
_PROTOCOL = re.compile(rf"(?P<base>.*?)\s*,\s*(?P<protocol>{'|'.join(map(re.escape, PROTOCOLS))})", re.DOTALL)
_FIRST = re.compile(r"first\s+(?P<percent>\d{1,3})\s*%(?:\s+of\s+(?P<unit>tokens|sentences))?")
_AGENT = re.compile(r"agent\s*(?:\[(?P<options>[^\[\]]*)\])?(?:\s+over\s+(?P<line>.+))?", re.DOTALL)
_RETRIEVED = re.compile(r"(?P<line>.+?)\s*@\s*(?P<top>\d{1,3})(?P<whole>\s+documents)?")
_NUMBERS = {"turns": (1, 50), "top": (1, 100), "reads": (50, 20_000), "tokens": (256, 262_144)}
_WORDS = {"exclude": ("none", "source"), "condense": ("yes", "no")}


class AgentOptions(Struct, frozen=True, kw_only=True):
    """How an agent works: see `retrieval.search_agents.AgentSettings`.

    `exclude` is `source` where searches never bring the question's own source documents.
    """

    turns: int = 5
    top: int = 10
    reads: int = 800
    tokens: int = 4096
    condense: str = "yes"
    exclude: str = "none"

    def __str__(self) -> str:
        values = msgspec.structs.asdict(self)
        changed = [f"{name}={value}" for name, value in values.items() if value != getattr(_AS_USUAL, name)]
        return f"agent[{','.join(changed)}]" if changed else "agent"


_AS_USUAL = AgentOptions()


class Condition(Struct, frozen=True, kw_only=True):
    """A parsed condition.

    `line` is set where something is searched, `top` how many of what it finds are shown, as whole documents where
    `whole`. `percent` is how much of the case is shown, by sentences where `sentences`. `protocol` is None until it
    is known whether the question has options.
    """

    name: str
    line: str = ""
    top: int = 0
    whole: bool = False
    percent: int = 0
    sentences: bool = False
    agent: AgentOptions | None = None
    protocol: str | None = None

    @property
    def kind(self) -> ConditionKind:
        """What sort of condition it is."""
        if self.agent is not None:
            return "agent"
        if self.line:
            return "retrieved"
        if self.percent:
            return "first"
        match self.base:
            case "oracle" | "images" | "options" | "question" as named:
                return named
            case _:
                return "closed"

    @property
    def base(self) -> str:
        """The name without its protocol."""
        return self.name.removesuffix(protocol_ending(self.protocol or FREE))

    @property
    def needs_corpus(self) -> bool:
        """Whether documents are shown to the model."""
        return self.kind in ("oracle", "retrieved", "agent")

    def by(self, protocol: str) -> Condition:
        """The same condition under a protocol; a combination that can't be is a `UsageError`."""
        if protocol.startswith("likelihood") and self.kind in ("agent", "images"):
            what = "an agent writes its answer" if self.kind == "agent" else "the model can't be shown images"
            raise UsageError(
                f"{self.base} can't be combined with option likelihood: {what}",
                fix=f"write '{self.base}, letter', or leave this condition out",
            )
        if protocol == FREE and self.kind == "options":
            raise UsageError(
                "free text can't be combined with options: the model does not see the question",
                fix="write 'options, letter'",
            )
        return msgspec.structs.replace(self, name=self.base + protocol_ending(protocol), protocol=protocol)


def parse_condition(text: str) -> Condition:
    """Read a condition; its retriever line is checked when the retriever is made."""
    if len(text) > _MAX_CHARACTERS:
        _refuse(text)
    words = text.strip()
    ending = _PROTOCOL.fullmatch(words)
    condition = _parse_base(text, ending["base"].strip() if ending else words)
    if not ending:
        return condition
    return condition.by(FREE if ending["protocol"] == "free" else ending["protocol"])


def _parse_base(text: str, words: str) -> Condition:
    if words in ("closed", "oracle", "images", *BASELINES):
        return Condition(name=words)
    if first := _FIRST.fullmatch(words):
        return _first(text, first)
    if agent := _AGENT.fullmatch(words):
        options = _agent_options(text, agent["options"])
        line = (agent["line"] or AGENT_LINE).strip()
        over = f" over {line}" if line != AGENT_LINE else ""
        return Condition(name=f"{options}{over}", line=line, agent=options)
    match = _RETRIEVED.fullmatch(words)
    if not match or not 1 <= int(match["top"]) <= 100:
        _refuse(text)
    name = f"{match['line']} @{int(match['top'])}" + (" documents" if match["whole"] else "")
    return Condition(name=name, line=match["line"], top=int(match["top"]), whole=bool(match["whole"]))


def _first(text: str, match: re.Match[str]) -> Condition:
    percent = int(match["percent"])
    if not 1 <= percent <= 100:
        _refuse(text)
    by_sentences = match["unit"] == "sentences"
    ending = " of sentences" if by_sentences else ""
    return Condition(name=f"first {percent}%{ending}", percent=percent, sentences=by_sentences)


def _agent_options(text: str, written: str | None) -> AgentOptions:
    """The options between an agent's brackets; each once, in its range."""
    if written is None:
        return AgentOptions()
    given: dict[str, int | str] = {}
    for part in written.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        known = name in _NUMBERS or name in _WORDS
        if not known or not equals or name in given:
            problem = "is given twice" if name in given else "is not one of its options"
            raise UsageError(
                f"{text!r} is not a condition: {part.strip()!r} {problem}",
                fix=f"use {', '.join([*_NUMBERS, *_WORDS])}, for example: agent[turns=4,exclude=source] over bm25",
            )
        given[name] = _agent_value(text, name, value)
    return msgspec.convert(given, AgentOptions)


def _agent_value(text: str, name: str, value: str) -> int | str:
    if name in _WORDS:
        if value in _WORDS[name]:
            return value
        allowed = " or ".join(_WORDS[name])
    else:
        low, high = _NUMBERS[name]
        if value.isascii() and value.isdigit() and len(value) <= 7 and low <= int(value) <= high:
            return int(value)
        allowed = f"a whole number from {low} to {high}"
    raise UsageError(f"{text!r} is not a condition: {name} can't be {value!r}", fix=f"give {name} as {allowed}")


def _refuse(text: str) -> NoReturn:
    guess = did_you_mean(text.strip(), _WORDS_OF_CONDITIONS)
    if "@" not in text and text.strip() not in _WORDS_OF_CONDITIONS and not guess and text.strip():
        guess = f"for the 3 best passages that a retriever line finds, write '{text.strip()[:80]} @3'; otherwise "
    raise UsageError(f"{text!r} is not a condition", fix=f"{guess}{_FORMS}")
