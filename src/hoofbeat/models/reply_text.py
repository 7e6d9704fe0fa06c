"""Reading the text of a reply: reasoning before the answer, refusals, and the JSON object that was asked for.

Endpoints that know the model put its reasoning into a separate field; others leave it in the text, each model family
between its marks. A block that was opened and never closed holds reasoning to its end: there is no answer.

Endpoints report a refusal in the protocol. Where a model refuses in plain words, only a short text that opens with an
unmistakable refusal, and does not go on to answer, counts. "The handbook does not say" is an answer, not a refusal, and
so is "I can't rule out an embolism". How well this works is measured (`docs/reading.md`).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import fastjsonschema
import msgspec
from msgspec import Struct

from hoofbeat.models.requests import ChatRequest, Message, Reply
from hoofbeat.records import FailureKind
from hoofbeat.store.tables import canonical_json


class ReasoningSplit(Struct, frozen=True, kw_only=True):
    """An output in two parts; `unfinished` says that it ends inside its reasoning."""

    text: str
    reasoning: str = ""
    unfinished: bool = False


_NAMES = "think|thinking|thought|thoughts|reasoning|scratchpad|analysis|reflection|seed:think"
_BLOCK = re.compile(  # a block that begins the output; what began before a block would be the answer's own words
    rf"\s*(?:"
    rf"<\|?(?P<tag>{_NAMES})\|?>(?P<tagged>.*?)(?:<\|?/\|?(?P=tag)\|?>|(?P<open_tag>\Z))"
    rf"|\[(?P<square>THINK|THOUGHT|REASONING)\](?P<squared>.*?)(?:\[/(?P=square)\]|(?P<open_square>\Z))"
    rf"|<\|begin_of_thought\|>(?P<thought>.*?)(?:<\|end_of_thought\|>|(?P<open_thought>\Z))"
    rf"|◁think▷(?P<moon>.*?)(?:◁/think▷|(?P<open_moon>\Z))"
    rf")",
    re.DOTALL | re.IGNORECASE,
)
_CLOSED_ONLY = re.compile(r"</(?:think|thinking|seed:think)>|◁/think▷|\[/THINK\]")  # the prompt had opened it
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(?P<name>\w++)[^<]*+(?:<\|constrain\|>\w++)?<\|message\|>(?P<body>.*?)"
    r"(?:<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)|(?P<open>\Z))",
    re.DOTALL,
)
_SOLUTION = ("<|begin_of_solution|>", "<|end_of_solution|>")
_QUICK = ("<", "[", "◁")


def split_reasoning(output: str) -> ReasoningSplit:
    """Part an output's leading reasoning from its answer; without any, the text is the output as it came."""
    if "<|channel|>" in output:
        return _channels(output)
    rest, thoughts, unfinished = output, [], False
    while rest.lstrip()[:1] in _QUICK and (block := _BLOCK.match(rest)):
        parts = block.groupdict()
        thoughts.append(
            next(parts[name] for name in ("tagged", "squared", "thought", "moon") if parts[name] is not None)
        )
        unfinished = any(parts[name] is not None for name in parts if name.startswith("open_"))
        rest = rest[block.end() :].lstrip()
    if not thoughts and (closing := _last(_CLOSED_ONLY, output)):
        thoughts, rest = [output[: closing.start()]], output[closing.end() :].lstrip()
    if not thoughts:
        return ReasoningSplit(text=output)
    begin, end = _SOLUTION
    bare = rest.strip()
    text = bare.removeprefix(begin).removesuffix(end).strip() if bare.startswith(begin) else rest
    return ReasoningSplit(
        text=text, reasoning="\n\n".join(thought.strip() for thought in thoughts), unfinished=unfinished
    )


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    return max(pattern.finditer(text), key=lambda match: match.start(), default=None)


def _channels(output: str) -> ReasoningSplit:
    """Channels: what is on `final` is the answer, what is on any other is reasoning."""
    found = list(_CHANNEL.finditer(output))
    if not found:
        return ReasoningSplit(text=output)
    before = output[: found[0].start()].strip()
    final = [match["body"].strip() for match in found if match["name"] == "final"]
    others = [before, *(match["body"].strip() for match in found if match["name"] != "final")]
    return ReasoningSplit(
        text="\n".join(final),
        reasoning="\n\n".join(part for part in others if part),
        unfinished=not final and found[-1]["open"] is not None,
    )


_MAX_LENGTH = 400
_REGRET = (
    r"(?:(?:i['’]?m|i am) (?:very |so |really |truly )?(?:sorry|afraid)(?: (?:that )?you['’]?re [^.,]{0,40})?|sorry|"
    r"i (?:apologi[sz]e|regret(?: that)?)|unfortunately|for \w+ reasons|please (?:see|consult) [^.]{0,40}\.|"
    r"as an? (?:ai|artificial|large|language)\b[^.]{0,60}?|"
    r"(?:i['’]?m|i am) (?:just |only )?(?:an ai|not a (?:doctor|physician|clinician))[^.,]{0,30}?)"
)
_ADVICE = (
    r"(?:you )?(?:with )?(?:medical|clinical|that\b|this\b|any|guidance|advice|the help|diagnoses|opinions?|"
    r"an? (?:medical |clinical )?(?:diagnosis|answer|opinion|recommendation|response)(?! of\b))"
)
_HELP = (
    r"(?:(?:be able to )?(?:assist|help|comply|respond|fulfill?|discuss|engage|continue with|diagnose)\b|"
    rf"(?:provide|give|offer|make) {_ADVICE}|"
    r"answer\b(?= (?:that|this|medical|any|the question|questions)|\s*[.!]))"
)
_CAN_T = (
    r"(?:(?:can(?:no|['’]| no)t|am unable to|am not able to|won['’]?t|will not|must decline to|"
    r"(?:have|need) to (?:decline|refuse) to)|['’]d rather not|['’]?m (?:unable|not able) to|"
    r"(?:don['’]?t|do not) have the ability to)"
)
_OPENINGS = (
    rf"(?:{_REGRET}[\s,;:.]*)?(?:and |but )?(?:i ?)?{_CAN_T}\s+{_HELP}",
    rf"(?:{_REGRET}[\s,;:.]*)?(?:but )?that['’]?s not something i(?:['’]?m able to| can)\b",
    r"i(?: do not|['’]? ?don['’]t)? feel (?:un)?comfortable (?:answering|giving|providing|with)\b",
    r"(?:i['’]?m|i am) (?:un|not )(?:comfortable|qualified) "
    r"(?:answering|giving|providing|with|to (?:give|provide|answer))",
    r"it (?:would|is) not (?:be )?appropriate for me to\b",
    r"my (?:guidelines|policies|instructions) (?:don['’]?t|do not) (?:allow|permit)\b",
    r"th(?:is|at) request violates\b",
    r"es tut mir leid,? (?:aber )?[^.]{0,30}kann ich (?:\w+ )?nicht\b",
    r"(?:das|dabei) kann ich (?:\w+ )?nicht (?:helfen|beantworten)",
    r"(?:je suis désolée?,? (?:mais )?)?je ne (?:peux|suis) pas (?:en mesure de )?"
    r"(?:fournir|donner|répondre|vous aider)",
    r"(?:lo siento,? (?:pero )?)?no puedo (?:dar|ofrecer|proporcionar|ayudar)",
    r"(?:(?:很|非常)?抱歉[,，。\s]*)?(?:但)?我(?:无法|不能)(?:提供|回答|协助)",
)
_OPENING = re.compile(rf"^\W*(?:{'|'.join(_OPENINGS)})", re.IGNORECASE)
_GOES_ON = re.compile(  # … and answers all the same
    r"\b(?:but|however|that said|nevertheless|still)\b.*\b(?:answer|diagnosis|option|choice|likely|suggests?|best)\b"
    r"|\b(?:answer|diagnosis)(?: is|:)",
    re.IGNORECASE | re.DOTALL,
)


def is_refusal(text: str) -> bool:
    """Whether a short text opens with a refusal and leaves it at that."""
    if len(text) > _MAX_LENGTH:
        return False
    opening = _OPENING.match(text)
    return opening is not None and not _GOES_ON.search(text, opening.end())


_BEGINNING = 160  # characters that are shown again of an output that was cut off
_CUT_OFF = "That ran on and was cut off. Write the whole JSON object again, and keep every text in it short."
_FENCE = re.compile(r"```(?:json)?(.*?)```", re.DOTALL)  # white space is left to the decoder: \s* before .*? is slow

_OBJECT = re.compile(r"""\{\s*+["'“]""")  # what begins like an object


class UnreadableOutput(msgspec.Struct, frozen=True):
    """Why an output is not the object that was asked for."""

    kind: FailureKind
    message: str


def without_limits(schema: Any) -> Any:
    """The schema without string lengths: they guide small models, but a long answer is not a broken one."""
    if isinstance(schema, dict):
        return {key: without_limits(value) for key, value in schema.items() if key not in ("minLength", "maxLength")}
    if isinstance(schema, list):
        return [without_limits(value) for value in schema]
    return schema


class _Latest:
    """The last schema that was used and its validator: a thousand replies in a row are for one and the same."""

    def __init__(self) -> None:
        self._known: tuple[dict[str, object], Callable[[object], object]] | None = None

    def validator(self, schema: dict[str, object]) -> Callable[[object], object]:
        known = self._known
        if known is None or known[0] is not schema:
            known = self._known = schema, _validator(canonical_json(schema))
        return known[1]


_LATEST = _Latest()


@lru_cache(maxsize=256)
def _validator(schema: bytes) -> Callable[[object], object]:
    compiled: Callable[[object], object] = fastjsonschema.compile(without_limits(msgspec.json.decode(schema)))
    return compiled


def read_object(reply: Reply, schema: dict[str, object]) -> dict[str, Any] | UnreadableOutput:
    """The JSON object in a reply: plain, in a code fence, or after other words; checked against its schema.

    A reply with several different objects, or with a key twice in one, can't be read: one may be a quotation.
    """
    value = _find_object(reply.text)
    if isinstance(value, UnreadableOutput):
        return value
    if value is None:
        if reply.finish == "length":
            return UnreadableOutput("truncated", "the reply ends before its JSON does: it reached the output limit")
        return UnreadableOutput("unreadable", f"no JSON object in: {reply.text[:120]!r}")
    try:
        _LATEST.validator(schema)(value)
    except fastjsonschema.JsonSchemaValueException as err:
        return UnreadableOutput("schema", str(err.message))
    return value


def _find_object(text: str) -> dict[str, Any] | UnreadableOutput | None:
    for candidate in (text, _braced(text)):
        value = _decoded(candidate)
        if value is not None:  # one that begins behind it and never ends may be the model's own
            return None if _OBJECT.search(text, text.rfind("}")) else value
    fences = [fence for fence in _FENCE.findall(text) if _OBJECT.search(fence)]
    found = [_decoded(_braced(fence)) for fence in fences]
    first = next((each for each in found if each is not None), None)
    if first is None or isinstance(first, UnreadableOutput):
        return first
    rest = _FENCE.sub(" ", text)
    others = [*found, *([_decoded(_braced(rest))] if _OBJECT.search(rest) else [])]
    if any(each != first for each in others):
        return UnreadableOutput("unreadable", "it has several different JSON objects")
    return first


def _braced(text: str) -> str:
    """From the first opening brace to the last closing one."""
    return text[text.find("{") : text.rfind("}") + 1] if "{" in text else ""


def _decoded(text: str) -> dict[str, Any] | UnreadableOutput | None:
    """The object that a text is, and nothing else; what is wrong with one that has a key twice."""
    try:
        value = msgspec.json.decode(text)
        if not isinstance(value, dict):
            return None
        json.loads(text, object_pairs_hook=_single_keys, parse_int=str)
    except _DoubledKey as err:
        return UnreadableOutput("unreadable", f"it has the key {err.args[0]!r} twice")
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None
    return value


class _DoubledKey(Exception):
    pass


def _single_keys(pairs: list[tuple[str, Any]]) -> None:
    names = [name for name, _ in pairs]
    for name, count in Counter(names).items() if len(set(names)) < len(names) else ():
        if count > 1:
            raise _DoubledKey(name)


def repair_request(request: ChatRequest, reply: Reply, problem: UnreadableOutput) -> ChatRequest:
    """The one repair: the conversation so far, what was wrong, and the contract again.

    An output that ran on until it was cut off is asked for once more in short, and only its beginning is shown: shown
    all of it, a model would go on with it. Endpoints that take no string lengths do not hold outputs to them.
    """
    said = f"{reply.text[:_BEGINNING]} …" if reply.text and reply.finish == "length" else reply.text[:4000]
    ask = _CUT_OFF
    if problem.kind != "truncated":
        schema = canonical_json(request.schema).decode()
        ask = (
            f"That output can't be used: {problem.message}. Write the same answer again as one JSON object that fits "
            f"this schema, and nothing else: {schema}"
        )
    messages = (
        *request.messages,
        Message(role="assistant", content=said or "(nothing)"),
        Message(role="user", content=ask),
    )
    return msgspec.structs.replace(request, messages=messages)


_EDITION = re.compile(r"[-:@](?:v?\d[\d.-]*|latest|preview)(?:[-:@](?:\d[\d.-]*|latest|preview))*")


def same_model(asked: str, said: str) -> bool:
    """Whether the model that a reply names is the one asked for: the same name, with a date or a maker or without.

    A reply that names none, and a backend whose models have no name there, say nothing.
    """
    if not asked or not said:
        return True
    one, two = (name.casefold().rpartition("/")[2] for name in (asked, said))
    short, long = sorted((one, two), key=len)
    return long.startswith(short) and (long == short or _EDITION.fullmatch(long[len(short) :]) is not None)
