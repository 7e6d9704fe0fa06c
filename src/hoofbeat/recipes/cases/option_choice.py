"""Wrong options of a question: a model chooses them from candidates, and rules look at its choice.

The model sees the case, the right answer and numbered candidates, and gives the best in a clinician's words, in the
style of the right answer, or other options. Rules object to an option that means the right answer or another
option, to one that the case itself excludes, and to coding words. Where too few are left, or a rule objects, the model
is told and asked once more, with further candidates. An option that shares only a wider name with the right answer or
that the case excludes stays, flagged, if the model insists; one that means the right answer or another option does not.
A wording that may be another disease than its candidate, and an option that no vocabulary knows, are flagged for
reviewers and never sent back: no vocabulary has names as detailed as "Splenic rupture caused by cardiopulmonary
resuscitation". An overloaded right answer may be given a shorter wording. Every change of wording and everything that
was left out is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.corpus.terms import content_forms
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, same, unfit
from hoofbeat.recipes.cases.case_diagnosis import flagged
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import names_organism, only_by_wider_name, same_as_answer
from hoofbeat.recipes.guards.leak_patterns import main_part, words_of
from hoofbeat.recipes.guards.leak_words import worth
from hoofbeat.recipes.guards.leaks import excluded_in
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, ask

PROMPT = "case-options"
TOO_FEW = "too few options are left"
OWN = "the model's own"
"""Where an option comes from that the model named beside the candidates."""

_JARGON = re.compile(
    r"\b(?:unspecified|sequelae?|encounter|elsewhere classified|otherwise specified|NOS|NEC)\b|^other\b", re.IGNORECASE
)
_TAIL = re.compile(
    r",|\b(?:caused|due|secondary|related|attributed|associated|complicated|after|following|during|with|without|into|from"
    r"|in|of)\b",
    re.IGNORECASE,
)
_WIDER = "it shares a wider name with the right answer"
_LIKE = 0.5  # of the words, for a wording of a candidate
_NEAR = 5


class Candidate(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A disease that could be a wrong option: where it comes from, and its code where it has one."""

    text: str
    origin: str
    code: str = ""


Put = Callable[[RecipeItem, list[Candidate], RecipeContext], Outcome]


def choose_options(
    name: str, *, minimum: int, maximum: int, vocabularies: Sequence[str], put: Put, shown: int, max_words: int
) -> RecipeStep:
    """Ask for `minimum` to `maximum` wrong options out of the item's `candidates`; `put` writes them into the item.

    `shown` candidates are shown at first, the others when the model is asked again.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        listed = _listed(_candidates(item)[:shown], 1)
        beside = len(listed.encode()) + len(item["diagnosis"].encode())
        return {
            "minimum": minimum,
            "maximum": maximum,
            "diagnosis": item["diagnosis"],
            "case": context.fit(item["stem"], load_prompt(PROMPT), beside=beside),
            "candidates": listed or "none",
        }

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        pool = _candidates(item)
        loaded = [context.vocabulary(each) for each in vocabularies]
        item, wrong = with_answer_wording(item, plain_option(str(value["answer_wording"])))
        choice = _Choice(item, pool, loaded, max_words)
        choice.read(value)
        objections = [*filter(None, [wrong]), *choice.objections]
        if not objections and len(choice.chosen) >= minimum:
            return put(choice.recorded(item), choice.chosen[:maximum], context)
        # A model that insists gets the full answer, and reviewers read what it would have written.
        otherwise = _finished(
            choice, flagged(item, f"a shorter answer was refused: {wrong}") if wrong else item, context
        )
        if len(choice.chosen) >= minimum:
            return AskAgain(reason="a rule objects to an option", say=" ".join(objections), otherwise=otherwise)
        say = " ".join((_few(len(choice.chosen), minimum), *objections, _more(pool, shown)))
        return AskAgain(reason=TOO_FEW, say=say, otherwise=otherwise)

    def _finished(choice: _Choice, item: RecipeItem, context: RecipeContext) -> Outcome:
        chosen, item = choice.chosen[:maximum], choice.recorded(item)
        if len(chosen) >= minimum:
            return put(item, chosen, context)
        texts = "; ".join(each.text for each in chosen) or "none"
        dropped = "; ".join(f"{each['text']} ({each['why']})" for each in item.get("dropped", ()))
        return ItemRejection(reason=TOO_FEW, details=f"{len(chosen)} of {minimum}: {texts}. Dropped: {dropped}")

    return ask(name, PROMPT, values=values, read=read)


def with_answer_wording(item: RecipeItem, wording: str) -> tuple[RecipeItem, str]:
    """The item with a shorter wording of its right answer, recorded and flagged, or why it can't have it.

    The wording keeps every word of the disease itself and has no word that the diagnosis has not; the full name becomes
    another name, so that no option may mean it.
    """
    full = str(item["diagnosis"])
    if not wording or wording.casefold() == full.casefold():
        return item, ""
    words, own = set(content_forms(wording)), set(content_forms(full))
    kept = all(words & forms for forms in words_of(main_part(full)))
    if not kept or not words <= own:
        return item, (
            f"The answer wording {wording!r} can't be used: it must keep the disease, {main_part(full)!r}, and have "
            f"only words of {full!r}. Leave it empty if the right answer can't be shortened so."
        )
    change = {"from": full, "to": wording}
    changed = item.put(diagnosis=wording, synonyms=[*item.get("synonyms", ()), full], answer_reworded=change)
    return flagged(changed, f"the right answer was shortened from: {full}"), ""


def _candidates(item: RecipeItem) -> list[Candidate]:
    return msgspec.convert(item["candidates"], list[Candidate])


def _listed(candidates: Sequence[Candidate], first: int) -> str:
    return "\n".join(f"{number}. {each.text}" for number, each in enumerate(candidates, first))


def _few(count: int, minimum: int) -> str:
    return f"Only {count} of your options can be used, and {minimum} are needed."


def _more(pool: Sequence[Candidate], shown: int) -> str:
    further = _listed(pool[shown:], shown + 1)
    more = f"Further candidates:\n{further}\n" if further else ""
    return f"{more}You may also write options of your own, as candidate 0, that fit the case better."


class _Choice:
    """The options a model chose, what rules make of each, and what the model is told about them."""

    def __init__(
        self,
        item: RecipeItem,
        pool: Sequence[Candidate],
        vocabularies: Sequence[Vocabulary],
        max_words: int,
    ) -> None:
        self.chosen: list[Candidate] = []
        self.objections: list[str] = []
        self._answer, self._synonyms = str(item["diagnosis"]), tuple(map(str, item.get("synonyms", ())))
        self._flags: list[str] = []
        self._source = str(item["stem"])
        self._pool = pool
        self._vocabularies = vocabularies
        self._max_words = max_words
        self._reworded: list[dict[str, str]] = []
        self._dropped: list[dict[str, str]] = []
        self._unfit: set[int] = set()

    def read(self, value: dict[str, Any]) -> None:
        """Take what the model chose and leave out what it finds unfit."""
        for each in value["unfit"]:
            self._leave_out(int(each["candidate"]), str(each["why"]))
        for each in value["options"]:
            self._take(int(each["candidate"]), plain_option(str(each["wording"])))

    def _leave_out(self, number: int, why: str) -> None:
        """A candidate that the model finds unfit."""
        if 1 <= number <= len(self._pool):
            candidate = self._pool[number - 1]
            self._unfit.add(number)
            self._dropped.append({"text": candidate.text, "origin": candidate.origin, "why": f"the model: {why}"})

    def _take(self, number: int, wording: str) -> None:
        """Take an option in this wording, unless a rule has something against it."""
        if number > len(self._pool) or number in self._unfit or not (wording or number):
            return
        candidate = self._pool[number - 1] if number else Candidate(text=wording, origin=OWN)
        text = wording or candidate.text
        if number and _JARGON.search(text):
            self.objections.append(f"The option {text!r} has coding words: {candidate.text!r} is taken in its place.")
            text = candidate.text
        if why := self._not_an_option(text):
            self._dropped.append({"text": text, "origin": candidate.origin, "why": why})
            self.objections.append(f"The option {text!r} is left out: {why}.")
            return
        code = candidate.code
        if number and not self._is_wording(text, candidate):
            self._flags.append(f"the option {text!r} for {candidate.text!r}: it may be another disease")
            code = ""
        if not number and not self._known(text):
            self._flags.append(f"the option {text!r}: no vocabulary knows it")
        if only_by_wider_name(text, self._answer, self._synonyms, self._vocabularies):
            self._flags.append(f"the option {text!r}: {_WIDER}")
            self.objections.append(f"The option {text!r}: {_WIDER}. Keep it only if it is clearly another disease.")
        if said := excluded_in(self._source, text):
            self._flags.append(f"the option {text!r}: the case excludes it, {said!r}")
            self.objections.append(
                f"The option {text!r}: the case itself excludes it, {said!r}. Name a disease that a clinician would "
                "still weigh after the facts shown."
            )
        if text != candidate.text:
            self._reworded.append({"from": candidate.text, "to": text, "code": candidate.code})
        self.chosen.append(Candidate(text=text, origin=candidate.origin, code=code or self._code(text)))

    def recorded(self, item: RecipeItem) -> RecipeItem:
        """The item with what was reworded and left out."""
        before = item.get("dropped", [])
        item = item.put(reworded=self._reworded, dropped=[*before, *self._dropped])
        return flagged(item, *self._flags) if self._flags else item

    def _is_wording(self, text: str, candidate: Candidate) -> bool:
        """Whether words or a vocabulary say that a wording is one of a candidate's disease, or of a kind of it."""
        names, codes = [candidate.text], {candidate.code}
        for vocabulary in self._vocabularies:
            known = [match.code for match in vocabulary.lookup(candidate.text)]
            for term in filter(None, map(vocabulary.term, filter(None, (candidate.code, *known)))):
                names += [term.name, *term.synonyms]
                codes |= {term.code, *term.parents}
        if any(same(text, each, self._vocabularies) or _alike(text, each) for each in names):
            return True
        found = {match.code for vocabulary in self._vocabularies for match in vocabulary.lookup(text)}
        for vocabulary in self._vocabularies:
            own = filter(None, map(vocabulary.term, list(found)))
            found |= {above for term in own for above in term.parents}
        return any("-" not in code and len(code) > 2 for code in found & codes)

    def _not_an_option(self, text: str) -> str:
        """Why a text can't be a wrong option here: too long, the right answer or another option once more."""
        wrong = sound(text, what="option", source=self._source, max_words=self._max_words)
        if wrong or unfit(text):
            return wrong.reason if wrong else unfit(text)
        names = (self._answer, self._synonyms, self._vocabularies)
        if (why := same_as_answer(text, *names)) and not only_by_wider_name(text, *names):
            return f"means the same as the right answer: {why}"
        for taken in self.chosen:
            if why := same(text, taken.text, self._vocabularies):
                return f"means the same as {taken.text}: {why}"
        return ""

    def _known(self, text: str) -> bool:
        """Whether a vocabulary knows a disease: by its name, by half of its words, or by all words of its head."""
        if self._code(text) or self._near(text, _LIKE):
            return True
        return any(self._code(head) or self._near(head, 1) for head in _heads(text))

    def _near(self, name: str, share: float) -> bool:
        """Whether a vocabulary has a term with so much of a name's words, in whatever inflection."""
        wanted = words_of(name)
        near = (term for vocabulary in self._vocabularies for term in vocabulary.search(name, _NEAR))
        said = (set(content_forms(each)) for term in near for each in (term.name, *term.synonyms))
        return bool(wanted) and any(
            sum(not forms.isdisjoint(words) for forms in wanted) >= share * len(wanted) for words in said
        )

    def _code(self, text: str) -> str:
        return next((match.code for each in self._vocabularies for match in each.lookup(text)), "")


def _heads(text: str) -> list[str]:
    """A disease's name without its tail ("caused by ...", "into ..."), and also without places and organisms."""
    heads = [_TAIL.split(text, maxsplit=1)[0].strip(), main_part(text)]
    words = heads[0].split()
    bare = [
        word
        for before, word in pairwise(["", *words])
        if not any(worth(form) == "site" for form in content_forms(word))
        and not names_organism(word)
        and not (before and names_organism(f"{before} {word}"))
    ]
    return [head for head in dict.fromkeys([*heads, " ".join(bare)]) if head and head != text]


def _alike(one: str, other: str) -> bool:
    """Whether two names share half of their words, of the longer one."""
    first, second = set(content_forms(one)), set(content_forms(other))
    return bool(first & second) and len(first & second) >= _LIKE * max(len(first), len(second))
