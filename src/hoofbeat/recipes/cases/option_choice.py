"""Wrong options of a question: a model chooses them from candidates, and rules look at its choice.

The model sees the case, the right answer and numbered candidates, and gives the best in a clinician's words, in the
style of the right answer. Rules object to an option that means the right answer or another option, to a wording that
means another disease than its candidate, to coding words, and to a disease that no vocabulary knows. Where too few are
left, or a wording is wrong, the model is told and asked once more, with further candidates. What it insists on stays,
flagged, unless it means the right answer or another option. An overloaded right answer may be given a shorter wording.
Every change of wording and everything that was left out is recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.corpus.terms import content_forms
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, same, unfit
from hoofbeat.recipes.cases.case_diagnosis import flagged
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import same_as_answer
from hoofbeat.recipes.guards.leak_patterns import main_part, words_of
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
        insisted = _Choice(item, pool, loaded, max_words, insisted=True)
        insisted.read(value)
        otherwise = _finished(insisted, item, context)
        if len(choice.chosen) >= minimum:
            return AskAgain(reason="an option's wording is wrong", say=" ".join(objections), otherwise=otherwise)
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
    return f"{more}You may also name diseases of your own, as candidate 0, that fit the case better."


class _Choice:
    """The options a model chose, what rules make of each, and what the model is told about them."""

    def __init__(
        self,
        item: RecipeItem,
        pool: Sequence[Candidate],
        vocabularies: Sequence[Vocabulary],
        max_words: int,
        *,
        insisted: bool = False,
    ) -> None:
        self.chosen: list[Candidate] = []
        self.objections: list[str] = []
        self._answer, self._synonyms = str(item["diagnosis"]), tuple(map(str, item.get("synonyms", ())))
        self._insisted = insisted
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
        if number and (why := self._not_its_wording(text, candidate)):
            self.objections.append(f"The wording {text!r} for candidate {number}, {candidate.text!r}: {why}.")
            if self._insisted and not _JARGON.search(text):
                self._flags.append(f"the option {text!r} for {candidate.text!r}: {why}")
            else:
                text = candidate.text
        if not number and not self._known(text):
            why = "no vocabulary knows it by this name"
            self.objections.append(f"The option {text!r}: {why}.")
            self._flags.append(f"the option {text!r}: {why}")
        if why := self._not_an_option(text):
            self._dropped.append({"text": text, "origin": candidate.origin, "why": why})
            self.objections.append(f"The option {text!r} is left out: {why}.")
            return
        if text != candidate.text:
            self._reworded.append({"from": candidate.text, "to": text, "code": candidate.code})
        self.chosen.append(Candidate(text=text, origin=candidate.origin, code=candidate.code or self._code(text)))

    def recorded(self, item: RecipeItem) -> RecipeItem:
        """The item with what was reworded and left out."""
        before = item.get("dropped", [])
        item = item.put(reworded=self._reworded, dropped=[*before, *self._dropped])
        return flagged(item, *self._flags) if self._flags else item

    def _not_its_wording(self, text: str, candidate: Candidate) -> str:
        """Why a wording is not one of a candidate's disease, or is a coder's."""
        if _JARGON.search(text):
            return "it has coding words"
        names, codes = [candidate.text], {candidate.code}
        for vocabulary in self._vocabularies:
            known = [match.code for match in vocabulary.lookup(candidate.text)]
            for term in filter(None, map(vocabulary.term, filter(None, (candidate.code, *known)))):
                names += [term.name, *term.synonyms]
                codes |= {term.code, *term.parents}
        if any(same(text, each, self._vocabularies) or _alike(text, each) for each in names):
            return ""
        found = {match.code for vocabulary in self._vocabularies for match in vocabulary.lookup(text)}
        for vocabulary in self._vocabularies:
            own = filter(None, map(vocabulary.term, list(found)))
            found |= {above for term in own for above in term.parents}
        shared = {code for code in found & codes if "-" not in code and len(code) > 2}
        return "" if shared else "it does not mean the same disease, or no vocabulary says so"

    def _not_an_option(self, text: str) -> str:
        """Why a text can't be a wrong option here: too long, the right answer or another option once more."""
        wrong = sound(text, what="option", source=self._source, max_words=self._max_words)
        if wrong or unfit(text):
            return wrong.reason if wrong else unfit(text)
        if why := same_as_answer(text, self._answer, self._synonyms, self._vocabularies):
            return f"means the same as the right answer: {why}"
        for taken in self.chosen:
            if why := same(text, taken.text, self._vocabularies):
                return f"means the same as {taken.text}: {why}"
        return ""

    def _known(self, text: str) -> bool:
        """Whether a vocabulary knows a disease by its name, or has a term with half of its words."""
        wanted = set(content_forms(text))
        near = (term for vocabulary in self._vocabularies for term in vocabulary.search(text, _NEAR))
        return bool(self._code(text)) or any(
            len(wanted & set(content_forms(name))) >= _LIKE * len(wanted)
            for term in near
            for name in (term.name, *term.synonyms)
        )

    def _code(self, text: str) -> str:
        return next((match.code for each in self._vocabularies for match in each.lookup(text)), "")


def _alike(one: str, other: str) -> bool:
    """Whether two names share half of their words, of the longer one."""
    first, second = set(content_forms(one)), set(content_forms(other))
    return bool(first & second) and len(first & second) >= _LIKE * max(len(first), len(second))
