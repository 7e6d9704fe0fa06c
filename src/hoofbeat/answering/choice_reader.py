"""Which option an output chooses: read from what models really write, or left unread with the reason.

An ordered list of readers looks for statements; a weak one counts only where nothing states an option strongly. What
names two options, contradicts its own letter or only repeats the options is ambiguous and stays unread: a guess would
be scored as if the model had said it. How often this is right is measured (`docs/reading.md`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.answering.choice_statements import (
    READERS,
    OptionStatement,
    bold_options,
    load_wording,
    mentioned_options,
    without_markup,
)
from hoofbeat.answering.option_names import OptionMention, OutputText, QuestionOptions, options_named
from hoofbeat.models.reply_text import is_refusal, split_reasoning

_SAYS = load_wording()
_BEFORE, _AFTER = 120, 160
_MAX_CHARACTERS = 100_000  # characters; of longer outputs the end is read
_CONDITION = ("ambiguous", "the answer depends on a condition")
_WITHDRAWN = ("ambiguous", "the choice is taken back")
_REPORTED = ("none", "it reports someone else's answer")
_DECOY = ("none", "the option is called a distractor")


class ParsedChoice(Struct, frozen=True):
    """The option chosen, in the option's own words, and how it was read; or None, and why.

    Where nothing was read `how` is `ambiguous` (more than one option may be meant) or `none`.
    """

    choice: str | None
    how: str
    why: str = ""

    @property
    def words(self) -> str:
        """How it was read or why not, in one string: what `Answer.reading` holds."""
        return f"{self.how}: {self.why}" if self.why else self.how


def read_choice(text: str, options: Sequence[str]) -> ParsedChoice:
    """The option that an output chooses. Options are lettered A, B, C … in the order given."""
    if not options:
        return _unread("none", "the question has no options")
    parted = split_reasoning(text)
    if not parted.text.strip():
        return _unread(
            "none", "the output ends before its reasoning does" if parted.reasoning else "the output is empty"
        )
    names = options_named(tuple(options))
    raw = parted.text[-_MAX_CHARACTERS:]
    output = OutputText(without_markup(raw))
    claims = sorted((claim for reader in READERS for claim in reader(output, names)), key=lambda claim: claim.at)
    doubted = find_doubts(output, claims)
    sound = [claim for claim, doubt in zip(claims, doubted, strict=True) if doubt is None]
    if sound:
        return _settle(output.text, sound, names)
    if claims:
        return _unread(*max(doubt for doubt in doubted if doubt))
    if is_refusal(parted.text):
        return _unread("none", "the model declines to answer")
    if _SAYS.none_fits.search(output.text):
        return _unread("none", "it says that no option fits")
    for how, found in (("bold", bold_options(raw, names)), ("only-mention", mentioned_options(output, names))):
        if len(found) > 1:
            return _unread("ambiguous", "several options are named and none is chosen")
        if found:
            return ParsedChoice(names.texts[found.pop()], how)
    if len(undecided_options(output, names)) > 1:
        return _unread("ambiguous", "several options are named and none is chosen")
    return _unread("none", "no option is named")


def _settle(text: str, claims: list[OptionStatement], names: QuestionOptions) -> ParsedChoice:
    """The option that all strong statements agree on, or that the last one settles."""
    everything = set(range(len(names.texts)))
    real = [claim for claim in claims if len(claim.named.options) < 3 or set(claim.named.options) != everything]
    if not real:
        return _unread("ambiguous", "all options are named together")
    strongest = max(claim.weight for claim in real)
    leading = [claim for claim in real if claim.weight == strongest]
    last = leading[-1]
    later = [claim for claim in real if claim.at > last.at and claim.named.options != last.named.options]
    if later and not _taken_back(text, last, later[-1]):
        return _unread("ambiguous", "its statements name different options")
    if later:
        last = later[-1]
    for claim in leading:
        narrowed = set(last.named.options) < set(claim.named.options)
        agree = set(claim.named.options) == set(last.named.options)
        if not (agree or (claim.at < last.at and (narrowed or _taken_back(text, claim, last)))):
            return _unread("ambiguous", "its statements name different options")
    if last.named.clash or _second_thought(text, last.named):
        return _unread("ambiguous", "the text beside the letter is another option's")
    if _SAYS.unsure.search(text, max(claim.named.end for claim in real)):
        return _unread("ambiguous", "the choice is taken back")
    if not last.named.options:
        return _unread("none", "no option has this letter")
    if len(last.named.options) > 1:
        return _unread("ambiguous", "several options are named as the answer")
    return ParsedChoice(names.texts[last.named.options[0]], last.how)


def _taken_back(text: str, before: OptionStatement, after: OptionStatement) -> bool:
    """Whether the words between two statements take the first back."""
    return bool(_SAYS.revised.search(text[before.named.end : after.at + 12]))


def _second_thought(text: str, named: OptionMention) -> bool:
    """Whether another letter stands in brackets right after the option."""
    beside = re.match(r"\s*\((?P<words>[^()\n]{0,30}?)\b(?P<letter>[A-Z])\)", text[named.end : named.end + 50])
    if beside is None or _SAYS.denied_before.search(beside["words"]):
        return False
    return ord(beside["letter"]) - ord("A") not in named.options


def _unread(how: str, why: str) -> ParsedChoice:
    return ParsedChoice(None, how, why)


# What weakens a statement: a condition, somebody else's words, a word that it is a decoy, or a withdrawal. Such a
# statement is not read as the output's choice, however plainly it is worded.
def find_doubts(output: OutputText, claims: Sequence[OptionStatement]) -> list[tuple[str, str] | None]:
    """For each statement, in the order they stand: None, or how the output is unread if it has no other, and why."""
    return [_doubt(output.text, claim) for claim in claims]


def _doubt(text: str, claim: OptionStatement) -> tuple[str, str] | None:
    before = text[max(0, claim.at - _BEFORE) : claim.at]
    after = text[claim.named.end : claim.named.end + _AFTER]
    if _SAYS.reported.search(before):
        return _REPORTED
    if _SAYS.decoy.match(after):
        return _DECOY
    if _SAYS.conditional.match(after):
        return _CONDITION
    return _WITHDRAWN if _SAYS.withdrawn.match(after) else None


def undecided_options(output: OutputText, names: QuestionOptions) -> set[int]:
    """The options that are said to be possible and among which none is chosen: "It could be A or B"."""
    found: set[int] = set()
    for match in _SAYS.weighed.finditer(output.text):
        named = names.at(output, match.end())
        if named is not None:
            found.update(named.options)
    return found
