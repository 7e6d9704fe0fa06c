"""How the final review edits a question about a diagnosis: its case, key and options.

An edit of the case is written into the list of what was cut and reworded, so that the case of every edition follows
from it, and the places in the source stay known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set

from hoofbeat.corpus.terms import content_forms
from hoofbeat.recipes.cases.answer_options import plain_option, same, unfit
from hoofbeat.recipes.cases.case_diagnosis import VOCABULARIES, NamedDiagnosis
from hoofbeat.recipes.cases.cut_check import names_infection, not_wider
from hoofbeat.recipes.cases.item_review import TextEdit
from hoofbeat.recipes.cases.redaction import RedactedSpan, Redaction, drop_empty_headings
from hoofbeat.recipes.cases.shown_sentences import shown, with_shown
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import same_as_answer
from hoofbeat.recipes.guards.leaks import names_in_full
from hoofbeat.recipes.guards.text_checks import sound
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.trials import Show, TriedQuestion
from hoofbeat.retrieval.index.chunking import sentence_spans

_BLANKS = re.compile(r"[ \t]{2,}")

REVIEW = "final review"
"""Where an option comes from that the final review put in."""


class CaseEditor:
    """Reads and changes items with a `diagnosis`, a case (`with_shown`) and `distractors` or `options`."""

    asks = "diagnosis"

    def __init__(self, show: Show, *, max_words: int) -> None:
        self._show = show
        self._max_words = max_words

    def show(self, item: RecipeItem) -> TriedQuestion:
        """The item as an examinee sees it."""
        return self._show(item)

    def with_text(self, item: RecipeItem, edits: Sequence[TextEdit], context: RecipeContext) -> RecipeItem:
        """The item with these edits of its case, as rewordings and cuts of the source."""
        case = shown(item, context)
        text, groups = case.text, _groups(case)
        for place, (first, last, start, end) in enumerate(groups):
            mine = [edit for edit in edits if first <= edit.start < last or (not place and edit.start < first)]
            behind = [edit for edit in edits if edit.start == edit.end == last]
            if behind and not _has_blank(case, end):
                mine, behind = mine + behind, []
            if mine:
                words = _edited(text[first:last], [(max(0, e.start - first), e.end - first, e.words) for e in mine])
                why = "; ".join(edit.why for edit in mine)
                case = case.with_back(start, end).without(RedactedSpan(start, end, why, words))
            for edit in behind:  # in the blank after the sentence, which stays as it is
                hole = RedactedSpan(end, end + 1, edit.why, edit.words)
                case = case.with_back(end, end + 1).without(hole)
        return with_shown(item, drop_empty_headings(case))

    def with_question(self, item: RecipeItem, question: str) -> RecipeItem:
        """The item with this question."""
        return item.put(question=question)

    def with_answer(self, item: RecipeItem, answer: str) -> RecipeItem:
        """The item with this name of its diagnosis; the one it had is another name, and stays a leak."""
        old = str(item["diagnosis"])
        names = [each for each in dict.fromkeys((*item.get("synonyms", ()), old)) if each != answer]
        first = str(item.get("answer_in_report") or old)
        item = item.put(diagnosis=answer, synonyms=names, answer_in_report=first)
        return _renamed(item, old, answer)

    def with_option(self, item: RecipeItem, old: str, new: str) -> RecipeItem:
        """The item with another wrong option; the one that goes is listed."""
        gone = {"text": old, "origin": "option", "why": "replaced in the final review"}
        if "distractors" in item.values:
            codes = [
                "" if text == old else code
                for text, code in zip(item["distractors"], item["distractor_codes"], strict=True)
            ]
            distractors = [new if text == old else text for text in item["distractors"]]
            item = item.put(distractors=distractors, distractor_codes=codes)
        return _renamed(item, old, new, REVIEW).put(dropped=[*item.get("dropped", ()), gone])

    def leak(self, item: RecipeItem, text: str, context: RecipeContext) -> tuple[str, bool] | None:
        """Words that name the diagnosis, but for those that a model has looked at twice; sure of its full name."""
        named = NamedDiagnosis(
            item["diagnosis"], item.get("synonyms", ()), context.document(item.documents[0]), context
        )
        leaks = [leak for leak in named.leaks(text) if leak.text not in item.get("allowed", ())]
        full = [
            leak.text
            for leak in leaks
            if names_in_full(leak, item["diagnosis"]) and not _taken_out(item, set(content_forms(leak.text)))
        ]
        return (full[0], True) if full else (leaks[0].text, False) if leaks else None

    def wrong_answer(self, item: RecipeItem, answer: str, context: RecipeContext) -> str:
        """Why a name is neither another name of the diagnosis nor a wider one."""
        names = [item["diagnosis"], *map(str, item.get("synonyms", ()))]
        if names_infection(answer) and any(set(content_forms(answer)) <= set(content_forms(each)) for each in names):
            return ""  # no vocabulary has every infection: "Disseminated Talaromyces marneffei infection"
        return not_wider(answer, names, context.document(item.documents[0]), context)

    def wrong_option(self, item: RecipeItem, option: str, context: RecipeContext) -> str:
        """Why a name can't be a wrong option: it is not one, or it means the diagnosis."""
        fault = sound(option, what="option", source=str(item["stem"]), max_words=self._max_words)
        if why := (fault.reason if fault else unfit(plain_option(option))):
            return why
        loaded = [context.vocabulary(each) for each in VOCABULARIES]
        why = same_as_answer(option, item["diagnosis"], tuple(map(str, item.get("synonyms", ()))), loaded)
        return f"it means the right answer: {why}" if why else ""

    def same_option(self, one: str, other: str, context: RecipeContext) -> str:
        """Why two options mean the same."""
        return same(one, other, [context.vocabulary(each) for each in VOCABULARIES])


def _taken_out(item: RecipeItem, words: Set[str]) -> bool:
    """Whether words belong to what the key has no more, such as the organism: "due to group A Streptococcus"."""
    now = set(content_forms(item["diagnosis"]))
    first = set(content_forms(str(item.get("answer_in_report", ""))))
    return now.isdisjoint(words) and not (first - now).isdisjoint(words)


def _renamed(item: RecipeItem, old: str, new: str, origin: str = "") -> RecipeItem:
    """The item with an option in other words, where it has its options listed."""
    if "options" not in item.values:
        return item
    options = [
        {**each, "text": new, "origin": origin or each["origin"]} if each["text"] == old else each
        for each in item["options"]
    ]
    return item.put(options=options)


def _has_blank(case: Redaction, place: int) -> bool:
    """Whether a blank of the case follows there that nothing is shown in the place of."""
    taken = any(hole.shown and hole.start <= place < hole.end for hole in case.removed)
    return place < case.end and case.document.text[place].isspace() and not taken


def _edited(text: str, edits: Sequence[tuple[int, int, str]]) -> str:
    """A text with words in the place of others; an insertion is set apart by a blank."""
    made, at = "", 0
    for start, end, words in edits:
        made += text[at:start] + (words if start < end else f" {words} ")
        at = max(at, end)
    return _BLANKS.sub(" ", made + text[at:]).strip()


def _groups(case: Redaction) -> list[tuple[int, int, int, int]]:
    """Shown sentences with their places in the source; those that share a place are one.

    Each is first and last character in the text, then in the source.
    """
    groups: list[tuple[int, int, int, int]] = []
    for first, last in sentence_spans(case.text):
        start, end = case.place(first), case.place(last - 1) + 1
        for hole in case.removed:
            if hole.shown and hole.start < end and start < hole.end:
                start, end = min(start, hole.start), max(end, hole.end)
        if groups and start < groups[-1][3]:
            before = groups.pop()
            groups.append((before[0], last, min(before[2], start), max(before[3], end)))
        else:
            groups.append((first, last, start, end))
    return groups
