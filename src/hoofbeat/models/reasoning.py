"""What a reasoning model wrote before its answer, told apart from the answer.

Endpoints that know the model put its reasoning into a field of its own; others leave it in the text, each model family
between marks of its own. A block that was opened and never closed holds reasoning to its end: there is no answer.
"""

from __future__ import annotations

import re

from msgspec import Struct

__all__ = ["ReasoningSplit", "split_reasoning"]


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
    r"(?:<\|start\|>assistant)?<\|channel\|>(?P<name>\w+)[^<]*(?:<\|constrain\|>\w+)?<\|message\|>(?P<body>.*?)"
    r"(?:<\|(?:end|return|call)\|>|(?=<\|start\|>|<\|channel\|>)|(?P<open>\Z))",
    re.DOTALL,
)
_SOLUTION = re.compile(r"\A\s*<\|begin_of_solution\|>(.*?)(?:<\|end_of_solution\|>)?\s*\Z", re.DOTALL)
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
    solution = _SOLUTION.match(rest)
    text = solution.group(1).strip() if solution else rest
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
