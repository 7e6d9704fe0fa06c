"""What a rewriting did to a question: a list of changes, and rules that object where something needed may be lost.

A distraction changes who the patient is, how things are said, and what else the patient has. The concise core, the
facts that lead to the answer, keeps its meaning; its words may change, as in the paper (arXiv 2605.21807, step 3).
Whether the core still holds is for a model to say. Rules look at length, at numbers of the core that are gone and at
words that give the answer away. What can't stay is told to the model that rewrites; what a rule only doubts costs no
call and is told to the model that verifies.

`distraction_steps` are the two calls: another model rewrites, and what it wrote is verified and corrected. What the
rewriting adds is listed by its writer, and the verifying call says of each detail whether an expert could take it for
a cause or for a reason to decide otherwise: such a detail goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from itertools import zip_longest
from typing import Any, Literal

import msgspec
from msgspec import Struct

from hoofbeat.corpus.terms import content_forms, term_form
from hoofbeat.recipes.cases.grading_check import has_words
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.guards.text_checks import numbers, sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import PartReply, RecipeStep, ask_each
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Failure
from hoofbeat.retrieval.index.chunking import sentence_spans

_WORD = re.compile(r"\d+(?:[.,]\d+)*(?:-\w+)*|\w+(?:['’-]\w+)*|[^\w\s]")
_AGE = re.compile(
    r"\b(?:\d{1,3}|[a-z]+(?:-[a-z]+)?)[\s-]+(?:day|week|month|year|yr)s?[\s-]+old\b|\baged?\s+(?:of\s+)?\d{1,3}\b"
    r"|\b\d{1,3}\s*(?:yo|y/o)\b|\bin (?:his|her|their) (?:early |mid-?|late )?[a-z]+ties\b",
    re.IGNORECASE,
)
_SHORTEST_TELLING = 4
_STEM = 6  # letters by which inflected words are one: ultrasound and ultrasonic, resected and resection


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    demographic: frozenset[str]
    colours: frozenset[str]
    general: frozenset[str]


class TextChange(Struct, frozen=True, kw_only=True):
    """Words that were replaced, inserted or deleted, with their places in the old and the new text, and what of."""

    kind: Literal["replaced", "inserted", "deleted"]
    about: Literal["demographics", "numbers", "wording", "addition"]
    before: str
    after: str
    start: int
    end: int
    new_start: int
    new_end: int


class _Words:
    """The words of a text with their places; `forms` are what is compared."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = list(_WORD.finditer(text))
        self.forms = [match.group() for match in found]
        self.spans = [match.span() for match in found]

    def slice(self, begin: int, end: int) -> tuple[int, int]:
        """The characters from one word up to another; where there are none, the place between."""
        if begin < end:
            return self.spans[begin][0], self.spans[end - 1][1]
        place = self.spans[begin][0] if begin < len(self.spans) else len(self.text)
        return place, place


@cache
def _lists() -> _Lists:
    return msgspec.convert(word_data("distraction"), _Lists)


def changes(before: str, after: str) -> list[TextChange]:
    """What became of a text, word by word, in its order; empty where no word changed."""
    old, new = _Words(before), _Words(after)
    people = [(text, demographics(text)) for text in (before, after)]
    found: list[TextChange] = []
    for tag, a, b, c, d in SequenceMatcher(None, old.forms, new.forms, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        (start, end), (new_start, new_end) = old.slice(a, b), new.slice(c, d)
        who = _touches(people[0][1], start, end) or _touches(people[1][1], new_start, new_end)
        was, now = before[start:end], after[new_start:new_end]
        if who:
            about: Literal["demographics", "numbers", "wording", "addition"] = "demographics"
        elif numbers(was) != numbers(now):
            about = "numbers"
        else:
            about = "addition" if tag == "insert" else "wording"
        kind: Literal["replaced", "inserted", "deleted"] = (
            "replaced" if tag == "replace" else "inserted" if tag == "insert" else "deleted"
        )
        found.append(
            TextChange(
                kind=kind,
                about=about,
                before=was,
                after=now,
                start=start,
                end=end,
                new_start=new_start,
                new_end=new_end,
            )
        )
    return found


def demographics(text: str) -> list[tuple[int, int]]:
    """Where a text says who the patient is: age, sex, origin, occupation."""
    spans = [match.span() for match in _AGE.finditer(text)]
    words = list(_WORD.finditer(text))
    for word, after in zip_longest(words, words[1:]):
        form, follows = word.group().lower(), after.group().lower() if after else ""
        if form in _lists().demographic or (
            form in _lists().colours and follows in _lists().demographic | {"patient", "person"}
        ):
            spans.append(word.span())
    return sorted(spans)


def check_rewriting(before: str, after: str, *, min_change: float, max_growth: float) -> ItemRejection | None:
    """Whether a rewritten text has changed at all, and has kept its measure."""
    old, new = _Words(before).forms, _Words(after).forms
    if len(new) > max_growth * len(old) or len(old) > max_growth * len(new):
        return ItemRejection(
            reason="the distraction changes the length too much", details=f"{len(old)} words became {len(new)}"
        )
    touched = 1.0 - SequenceMatcher(None, old, new, autojunk=False).ratio()
    if touched < min_change or not touched:
        return ItemRejection(reason="the distraction changes next to nothing", details=f"{touched:.1%} of the words")
    return None


def lost_numbers(core: Sequence[str], before: str, after: str) -> list[str]:
    """Numbers of the core that a text had and its rewriting has not; an age may become another."""
    ages = {number for start, end in demographics(before) for number in numbers(before[start:end])}
    held, new = set(numbers(before)), set(numbers(after))
    told = (number for fact in core for number in numbers(fact))
    return [number for number in dict.fromkeys(told) if number in held - new - ages]


def telling_words(phrase: str) -> set[str]:
    """The words of a phrase that could give it away, in one form: no general ones, short ones if abbreviations."""
    general = {term_form(word) for word in _lists().general}
    words = [
        word
        for word in re.findall(r"[^\W_]+", phrase)
        if len(word) >= _SHORTEST_TELLING or sum(map(str.isupper, word)) > 1
    ]
    return {form for form in map(term_form, words) if form not in general and not form.isdigit()}


def held_words(text: str, phrase: str) -> set[str]:
    """The telling words of a phrase that a text has, inflected or not."""
    held = telling_words(text)
    long = {word[:_STEM] for word in held if len(word) >= _STEM}
    return {word for word in telling_words(phrase) if word in held or (len(word) >= _STEM and word[:_STEM] in long)}


def giving_away(text: str, phrase: str, *, share: float) -> str:
    """The sentence of a text that holds this share or more of a phrase's telling words; empty where none does."""
    wanted = telling_words(phrase)
    if not wanted:
        return ""
    for start, end in sentence_spans(text):
        held = {term_form(form) for form in re.findall(r"[^\W_]+", text[start:end])}
        if len(wanted & held) >= share * len(wanted):
            return text[start:end].strip()
    return ""


def _touches(spans: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    return any(first < end and start < last for first, last in spans)


Leak = Callable[[RecipeItem, str, RecipeContext], tuple[ItemRejection, bool] | None]
"""Whether a text gives an item's answer away: what speaks for it, and whether that is certain."""


def distraction_steps(
    leak: Leak, which: str = "", *, when: Callable[[RecipeItem], bool] = lambda _item: True
) -> list[RecipeStep]:
    """Rewrite an item's `context` without touching its `question` and `answer`, and verify what was written.

    The items have a `core`; `leak` says whether a text gives an item's answer away. The settings say how much may
    change (`min_change`, `max_growth`, `max_words`) and what becomes of an item whose distraction is not fit
    (`on_bad_distraction`). What was written is `distracted`, its list of changes `changes`. `which` is what the names
    of later steps end with, `when` says for which items they are.
    """

    def rewritten(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        answer = answers[0]
        if answer.value is None:
            return _unfit(item, answer.failure, context)
        item = item.put(distraction_added=[_line(each) for each in answer.value["added"]])
        return _taken(item, str(answer.value["context"]).strip(), context, leak)

    def verified(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        value = answers[0].value
        return _unfit(item, answers[0].failure, context) if value is None else _verified(item, value, context, leak)

    return [
        ask_each(
            f"distract{which}",
            "ogcare-distract",
            parts=lambda _item, _context: (None,),
            values=lambda item, _part, _context: {
                "context": item["context"],
                "question": item["question"],
                "core": listed(_facts_to_keep(item)),
            },
            read=rewritten,
            role="second",
            when=when,
        ),
        ask_each(
            f"verify distraction{which}",
            "ogcare-verify-distraction",
            parts=lambda _item, _context: (None,),
            values=lambda item, _part, _context: {
                "before": item["context"],
                "after": item["distracted"],
                "question": item["question"],
                "answer": item["answer"],
                "core": listed([*_facts_to_keep(item), *_words_against(item)]),
                "added": listed(item["distraction_added"]) or "(nothing)",
                "remarks": listed(item["distraction_remarks"]) or "(none)",
            },
            read=verified,
            when=lambda item: when(item) and bool(item["distracted"]),
        ),
    ]


def _verified(item: RecipeItem, value: Mapping[str, Any], context: RecipeContext, leak: Leak) -> Outcome | AskAgain:
    """What becomes of an item whose rewritten case was verified; one that is wrong gets the corrected case."""
    wrong = [(reason, value["reason"]) for name, wanted, reason in _VERDICTS if value[name] != wanted]
    matters = [each for each in value["added"] if "yes" in (each["cause"], each["decision"])]
    wrong += [(_MATTERS, f"{_line(each['words'])} ({_line(each['why'])})") for each in matters]
    corrected = str(value["corrected"]).strip()
    item = item.put(distraction_verified=value["reason"], distraction_remarks=[])
    if not wrong:
        return _all_checked(item, value["added"])
    fault = ItemRejection(reason=wrong[0][0], details=wrong[0][1])
    left = [_line(each["words"]) for each in matters if has_words(corrected, each["words"])]
    if not corrected or left:
        say = "You find the rewritten case wrong but give no corrected one. Give the whole corrected case."
        if left:
            say = f"The corrected case still has what you find not neutral: {'; '.join(left)}. Leave it out."
        return msgspec.structs.replace(fault.again(say), otherwise=_unfit(item, fault, context))
    faults = [": ".join(each) for each in wrong]
    taken = _taken(item.put(distraction_faults=faults), corrected, context, leak, last=True)
    return _all_checked(taken, value["added"]) if isinstance(taken, RecipeItem) else taken


_VERDICTS = (
    ("core_kept", "yes", "verification finds the core altered"),
    ("answer_holds", "yes", "verification finds the answer altered"),
    ("possible", "yes", "verification finds a patient who can't exist"),
    ("given_away", "no", "verification finds that the distraction gives the answer away"),
)
_MATTERS = "verification finds that an added detail is not neutral"
_NAMED = 0.5  # of the words of an added detail, in an entry that is about it


def distraction_table(items: Sequence[RecipeItem]) -> TableFile:
    """Every change of every item, as a table."""
    rows = [
        (item.id, each["kind"], each["before"], each["after"], each["about"])
        for item in items
        for each in item["changes"]
    ]
    return TableFile(("item", "kind", "before", "after", "about"), rows)


def _facts_to_keep(item: RecipeItem) -> list[str]:
    """The core without facts that have a word of the answer which the case and the question avoid.

    "Lying on the stomach was not possible" for the answer "lie on the stomach": a case that has to keep such a fact
    gives the answer away, and one that lacks it does not keep its core.
    """
    shown = f"{item['context']} {item['question']}"
    known = held_words(shown, item["answer"])
    return [fact for fact in item["core"] if held_words(fact, item["answer"]) <= known]


def _words_against(item: RecipeItem) -> list[str]:
    """The words of the case on which the final review rests that another answer does not count, each once."""
    entries = (item.get("grading") or {}).get("exclusions", ())
    words = dict.fromkeys(_line(each["words"]) for each in entries)
    core = "\n".join(item["core"])
    return [each for each in words if has_words(item["context"], each) and not has_words(core, each)]


def _all_checked(item: RecipeItem, entries: Sequence[Mapping[str, str]]) -> RecipeItem | AskAgain:
    """The item, if the verifying call lists each detail that its writer names as added; else it is asked once."""
    listed_words = [set(content_forms(each["words"])) for each in entries]
    left = [
        detail
        for detail in item["distraction_added"]
        if (forms := set(content_forms(detail)))
        and has_words(item["distracted"], detail)
        and not any(len(forms & words) >= _NAMED * len(forms) for words in listed_words)
    ]
    if not left:
        return item
    reason, told = "an added detail is not checked", "; ".join(left)
    return AskAgain(
        reason=reason,
        details=told,
        say=f"The writer names as added, and `added` does not have: {told}. Say of each whether it is neutral.",
        otherwise=item.put(flags=[*item.get("flags", ()), f"distraction: {reason}: {told}"]),
    )


def _taken(
    item: RecipeItem, after: str, context: RecipeContext, leak: Leak, *, last: bool = False
) -> Outcome | AskAgain:
    """The item with this text as its distraction, or what rules object to in it; doubts are asked about at last."""
    s, before = context.settings, item["context"]
    fault = sound(after, what="distraction", source=before, max_words=int(s.max_words * s.max_growth))
    fault = fault or check_rewriting(before, after, min_change=s.min_change, max_growth=s.max_growth)
    told = None if fault else leak(item, after, context)
    if told and told[1]:
        fault = told[0]
    if fault:
        say = (
            f"A rule objects to the rewritten case: {fault.reason} ({fault.details}). Write it so that this is mended."
        )
        return msgspec.structs.replace(fault.again(say), otherwise=_unfit(item, fault, context))
    kept = item.put(
        distracted=after, changes=msgspec.to_builtins(changes(before, after)), distraction_remarks=[]
    ).labelled(distracted="yes")
    gone = lost_numbers(_facts_to_keep(item), before, after)
    doubts = [f"numbers of the core are gone: {', '.join(gone)}"] if gone else []
    doubts += [f"{told[0].reason}: {told[0].details}"] if told else []
    if not doubts or not last:
        return kept.put(distraction_remarks=doubts)
    say = f"A rule doubts the rewritten case: {'; '.join(doubts)}. Mend it where the rule is right."
    return AskAgain(
        reason="a rule doubts the distraction",
        details="; ".join(doubts),
        say=say,
        otherwise=kept.put(distraction_remarks=doubts),
    )


def _unfit(item: RecipeItem, why: ItemRejection | Failure | None, context: RecipeContext) -> Outcome:
    """A distraction that can't be used: the item goes, or goes on with its original question."""
    assert why is not None, "a call brings a value or a failure"
    if context.settings.on_bad_distraction == "reject":
        return why
    words = f"{why.kind}: {why.message}" if isinstance(why, Failure) else f"{why.reason}: {why.details}"
    kept = item.put(distracted="", changes=[], distraction_remarks=[], distraction_refused=words)
    return kept.labelled(distracted="no")


def _line(text: object) -> str:
    return " ".join(str(text).split())


def listed(texts: Sequence[str]) -> str:
    """Texts as lines of a list, for a prompt."""
    return "\n".join(f"- {text}" for text in texts)
