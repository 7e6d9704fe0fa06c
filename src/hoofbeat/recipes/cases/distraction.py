"""What a rewriting did to a question: a list of changes, and checks that nothing needed was lost or turned round.

A distraction changes who the patient is, how things are said, and what else the patient has. The concise core, the
facts that lead to the answer, must stay: each is looked for in the new text, and where it stands neither a number nor a
word that turns a fact round (no, left, elevated, ...) may have come or gone. The word lists are data.

`distraction_steps` are the two calls with these checks: another model rewrites, and what it wrote is verified.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from functools import cache
from typing import Literal

import msgspec
from msgspec import Struct
from rapidfuzz import fuzz

from hoofbeat.corpus.vocabularies.terms import term_form
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.guards.text_checks import numbers, sound
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
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
_BEFORE = 2
_LONGER = 3
_MIN_WORDS = 0.5
_SAME_WORD = 80
_SHORTEST_TELLING = 4
_OPENING = 12  # words at the beginning of a sentence within which it says who the patient is
_MIN_FACT = 4  # words that are left of a sentence without its person


class _Lists(Struct, frozen=True, forbid_unknown_fields=True):
    turning: frozenset[str]
    demographic: frozenset[str]
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
    spans += [match.span() for match in _WORD.finditer(text) if match.group().lower() in _lists().demographic]
    return sorted(spans)


def without_person(sentence: str) -> str:
    """A sentence from where it stops saying who the patient is: a rewriting may make that another person.

    "A 66-year-old man presented with fever and jaundice" becomes "presented with fever and jaundice". The sentence
    stays as it is where it tells no person at its beginning, or hardly anything else.
    """
    opening = [match.end() for match in _WORD.finditer(sentence)][:_OPENING]
    ends = [end for _, end in demographics(sentence) if opening and end <= opening[-1]]
    rest = sentence[max(ends) :].lstrip(" ,;:-") if ends else sentence
    return rest if len(rest.split()) >= _MIN_FACT else sentence


def check_rewriting(
    before: str, after: str, core: Sequence[str], *, min_core: float, min_change: float, max_growth: float
) -> ItemRejection | None:
    """Whether a rewritten text still holds the core, has changed at all, and has kept its measure."""
    old, new = _Words(before).forms, _Words(after).forms
    if len(new) > max_growth * len(old) or len(old) > max_growth * len(new):
        return ItemRejection(
            reason="the distraction changes the length too much", details=f"{len(old)} words became {len(new)}"
        )
    touched = 1.0 - SequenceMatcher(None, old, new, autojunk=False).ratio()
    if touched < min_change or not touched:
        return ItemRejection(reason="the distraction changes next to nothing", details=f"{touched:.1%} of the words")
    return check_core(core, before, after, min_match=min_core)


def check_core(core: Sequence[str], before: str, after: str, *, min_match: float) -> ItemRejection | None:
    """Whether every fact of the core still stands in the new text, with its numbers and the sense it had."""
    for fact in core:
        score, now, around = _place(fact, after)
        if score < min_match:
            return ItemRejection(
                reason="the distraction drops a fact of the core", details=f"{fact} (best match {score:.2f}: {now})"
            )
        if Counter(numbers(fact)) - Counter(numbers(around)):
            return ItemRejection(
                reason="the distraction alters a number of the core", details=f"{fact} became {around}"
            )
        _, _, was = _place(fact, before)
        if _turning(was) != _turning(around):
            return ItemRejection(
                reason="the distraction turns a fact of the core round", details=f"{was} became {around}"
            )
    return None


def _place(fact: str, text: str) -> tuple[float, str, str]:
    """Where a fact stands in a text: how well it fits, the words there, and these with what leads into them.

    The place is the stretch, about as long as the fact, that holds most of its words of weight and is most like it. One
    that holds less than half of these words does not count: "no fever" is not "of severe".
    """
    words, facts = _Words(text), _Words(fact.lower())
    wanted = " ".join(facts.forms)
    weighty = [form for form in facts.forms if form[0].isalnum() and form not in _lists().general] or facts.forms
    forms = [form.lower() for form in words.forms]
    meant = [{place for place, own in enumerate(weighty) if fuzz.ratio(own, form) >= _SAME_WORD} for form in forms]
    best = (0.0, 0.0, 0, 0)
    for size in range(max(1, len(facts.forms) - 1), len(facts.forms) + _LONGER + 1):
        for begin in range(max(1, len(forms) - size + 1)):
            share = len(set().union(*meant[begin : begin + size])) / len(weighty) if weighty else 0.0
            if share >= max(_MIN_WORDS, best[0]):
                likeness = fuzz.ratio(wanted, " ".join(forms[begin : begin + size])) / 100
                best = max(best, (share, likeness, begin, begin + size))
    _, score, begin, end = best
    first = begin
    while first > max(0, begin - _BEFORE) and words.forms[first - 1] not in ".;!?":
        first -= 1
    (start, stop), (lead, _) = words.slice(begin, min(end, len(forms))), words.slice(first, min(end, len(forms)))
    return score, text[start:stop], text[lead:stop]


def _turning(text: str) -> Counter[str]:
    words = (part for form in _Words(text.lower()).forms for part in (form, *form.split("-")[: form.count("-")]))
    return Counter(word for word in words if word in _lists().turning)


def telling_words(phrase: str) -> set[str]:
    """The words of a phrase that could give it away, in one form: no general ones, short ones if abbreviations."""
    general = {term_form(word) for word in _lists().general}
    words = [
        word
        for word in re.findall(r"[^\W_]+", phrase)
        if len(word) >= _SHORTEST_TELLING or sum(map(str.isupper, word)) > 1
    ]
    return {form for form in map(term_form, words) if form not in general and not form.isdigit()}


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


Leak = Callable[[RecipeItem, str, RecipeContext], ItemRejection | None]


def distraction_steps(leak: Leak) -> list[RecipeStep]:
    """Rewrite an item's `context` without touching its `question` and `answer`, and verify what was written.

    The items have a `core`; `leak` says whether a text gives an item's answer away. The settings say how much may
    change (`core_match`, `min_change`, `max_growth`, `max_words`) and what becomes of an item whose distraction is
    not fit (`on_bad_distraction`). What was written is `distracted`, its list of changes `changes`.
    """

    def read(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome:
        return _distracted(item, answers[0], context, leak)

    return [
        ask_each(
            "distract",
            "ogcare-distract",
            parts=lambda _item, _context: (None,),
            values=lambda item, _part, _context: {
                "context": item["context"],
                "question": item["question"],
                "core": listed(item["core"]),
            },
            read=read,
            role="second",
        ),
        ask_each(
            "verify distraction",
            "ogcare-verify-distraction",
            parts=lambda _item, _context: (None,),
            values=lambda item, _part, _context: {
                "before": item["context"],
                "after": item["distracted"],
                "question": item["question"],
                "answer": item["answer"],
                "core": listed(item["core"]),
            },
            read=_verified,
            when=lambda item: bool(item["distracted"]),
        ),
    ]


def distraction_table(items: Sequence[RecipeItem]) -> TableFile:
    """Every change of every item, as a table."""
    rows = [
        (item.id, each["kind"], each["before"], each["after"], each["about"])
        for item in items
        for each in item["changes"]
    ]
    return TableFile(("item", "kind", "before", "after", "about"), rows)


def _distracted(item: RecipeItem, answer: PartReply, context: RecipeContext, leak: Leak) -> Outcome:
    s = context.settings
    if answer.value is None:
        return _unfit(item, answer.failure, context)
    after = str(answer.value["context"]).strip()
    fault = sound(after, what="distraction", source=item["context"], max_words=int(s.max_words * s.max_growth))
    fault = fault or check_rewriting(
        item["context"],
        after,
        item["core"],
        min_core=s.core_match,
        min_change=s.min_change,
        max_growth=s.max_growth,
    )
    fault = fault or leak(item, after, context)
    if fault:
        return _unfit(item, fault, context)
    listed = msgspec.to_builtins(changes(item["context"], after))
    return item.put(distracted=after, changes=listed).labelled(distracted="yes")


def _verified(item: RecipeItem, answers: Sequence[PartReply], context: RecipeContext) -> Outcome:
    value = answers[0].value
    if value is None:
        return _unfit(item, answers[0].failure, context)
    for name, wanted, reason in (
        ("core_kept", "yes", "verification finds the core altered"),
        ("answer_holds", "yes", "verification finds the answer altered"),
        ("given_away", "no", "verification finds that the distraction gives the answer away"),
    ):
        if value[name] != wanted:
            return _unfit(item, ItemRejection(reason=reason, details=value["reason"]), context)
    return item.put(distraction_verified=value["reason"])


def _unfit(item: RecipeItem, why: ItemRejection | Failure | None, context: RecipeContext) -> Outcome:
    """A distraction that can't be used: the item goes, or goes on with its original question."""
    assert why is not None, "a call brings a value or a failure"
    if context.settings.on_bad_distraction == "reject":
        return why
    words = f"{why.kind}: {why.message}" if isinstance(why, Failure) else f"{why.reason}: {why.details}"
    return item.put(distracted="", changes=[], distraction_refused=words).labelled(distracted="no")


def listed(texts: Sequence[str]) -> str:
    """Texts as lines of a list, for a prompt."""
    return "\n".join(f"- {text}" for text in texts)
