"""How an answer is taken: in free text, as the letter of an option, or as the option the model finds most likely.

The letter protocol shows the options under letters, in an order drawn for each question from a recorded seed. Option
likelihood shows no options: it measures how likely each one is as the continuation of the question, as
lm-evaluation-harness does, by the whole (its `acc`), a token, or a byte (its `acc_bytes`, and `acc_norm` for ASCII).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from string import ascii_uppercase

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
        why = "the question has no options" if not options else "the question has one option only"
    elif not all(options):
        why = "one of the question's options is empty"
    elif len({option.casefold() for option in options}) < len(options):
        why = "two of the question's options are the same"
    elif protocol == "letter" and len(options) > len(ascii_uppercase):
        why = f"{len(options)} options are more than there are letters: ask by likelihood"
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
