"""Whether question, key, accepted answers and the note for the grader demand the same.

Judges of real items held back two of five because the note demanded what the question did not ask for, or because an
accepted answer did not satisfy the note. Nobody sees that who reads the whole item at once. So the final review lists
what an answer must contain with the words of the question that ask for it, which answers are refused, how an expert
would defend each and the words that refute this, and whether each accepted answer satisfies the note. Rules read the
lists: what does not agree is told to the editor once. A note that still demands more than the question, or still
refuses what can be defended, is a reason to reject the item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hoofbeat.text import for_word_matching

FIELDS = ("requirements", "exclusions", "answer_check")
"""The fields of a review's reply that are read here."""

_NONE = frozenset({"", "not asked", "nothing"})
_GAP = re.compile(r"\.{3}|…|;|\s[/|+]\s|[\"“”]")  # between words that are copied from several places
_REFUSES = re.compile(
    r"\b(?:(?:does|do|is|are) not (?:count|accepted|enough|sufficient|suffice|correct|right|acceptable)"
    r"|(?:is|are) (?:wrong|incorrect|insufficient))\b",
    re.IGNORECASE,
)


class GradingCheck(NamedTuple):
    """What does not agree: objections (reason and what to tell the editor), reasons to reject, and flags."""

    objections: list[tuple[str, str]]
    mismatches: list[str]
    flags: list[str]


def check_grading(
    value: Mapping[str, Any], *, question: str, case: str, key: str, accepted: Sequence[str]
) -> GradingCheck:
    """Compare the lists of a reply with the item as it is after the edits of this reply."""
    found = GradingCheck([], [], [])
    _check_requirements(value, question, found)
    _check_exclusions(value, f"{case}\n{question}", found)
    _check_answers(value, [key, *accepted], found)
    if (accepted or value.get("grading_note")) and not value["requirements"]:
        say = (
            "`requirements` is empty: list what an answer must contain, with the words of the question that ask for it."
        )
        found.objections.append(("no requirement of the key and the note is listed", say))
    if _REFUSES.search(str(value.get("grading_note", ""))) and not value["exclusions"]:
        say = "The note refuses answers and `exclusions` is empty: list each, with the words that refute its defence."
        found.objections.append(("what the note refuses is not listed", say))
        found.flags.append("not checked: whether case and question exclude what the note refuses")
    return found


def _check_requirements(value: Mapping[str, Any], question: str, found: GradingCheck) -> None:
    for entry in value["requirements"]:
        what, words = _line(entry["requirement"]), _line(entry["question_words"])
        if for_word_matching(words) in _NONE:
            say = (
                f"Key or note demand {what!r}, and the question does not ask for it. Make it optional in the note and "
                "leave it out of the key, or ask for it without telling a part of the key."
            )
            found.objections.append(("the note demands what the question does not ask for", say))
            found.mismatches.append(f"not asked for: {what}")
        elif not has_words(question, words):
            say = f"The words {words!r} of `requirements` are not in the question: copy them, or say `not asked`."
            found.objections.append(("words of a requirement are not in the question", say))
            found.flags.append(f"the words {words!r}, said to ask for {what!r}, are not in the question")


def _check_exclusions(value: Mapping[str, Any], shown: str, found: GradingCheck) -> None:
    for entry in value["exclusions"]:
        what, words = _line(entry["answer"]), _line(entry["words"])
        if for_word_matching(words) in _NONE:
            say = (
                f"Nothing in the case or the question speaks against {what!r}. Add the fact that does, narrow the "
                "question, accept this answer, or take it out of the note."
            )
            found.objections.append(("nothing speaks against an answer that does not count", say))
            found.mismatches.append(f"can be defended and does not count: {what} ({_line(entry['defence'])})")
        elif not has_words(shown, words):
            say = (
                f"The words {words!r} of `exclusions` are not in the case or the question: copy them, or say `nothing`."
            )
            found.objections.append(("words of an exclusion are not in the item", say))


def _check_answers(value: Mapping[str, Any], wordings: Sequence[str], found: GradingCheck) -> None:
    checked = {for_word_matching(entry["answer"]) for entry in value["answer_check"]}
    for entry in value["answer_check"]:
        if entry["satisfies"] == "no":
            what, lacks = _line(entry["answer"]), _line(entry["lacks"]) or "it demands more"
            say = f"{what!r} counts as right and does not satisfy the note ({lacks}). Change the note or the wording."
            found.objections.append(("an accepted answer does not satisfy the note", say))
            found.mismatches.append(f"does not satisfy the note: {what} ({lacks})")
    left = [each for each in wordings if for_word_matching(each) not in checked]
    if left and (value["answer_check"] or len(wordings) > 1):
        say = f"`answer_check` has no entry for {'; '.join(map(repr, left))}: give one for the key and each wording."
        found.objections.append(("an accepted answer is not checked against the note", say))
        found.flags.append(f"not checked against the note: {'; '.join(left)}")


def has_words(text: str, words: str) -> bool:
    """Whether a text has these words in their order; what an ellipsis or a semicolon joins may lie apart."""
    own = f" {for_word_matching(text)} "
    parts = [part for part in map(for_word_matching, _GAP.split(words)) if part]
    return bool(parts) and all(f" {part} " in own for part in parts)


def _line(text: object) -> str:
    return " ".join(str(text).split())
