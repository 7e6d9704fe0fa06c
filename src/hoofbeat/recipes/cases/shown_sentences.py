"""Which sentences of a case an examinee sees: a model says what is left out, rules look at what is left.

The model sees the case sentence by sentence, with the answer, and gives the last sentence that is shown, sentences to
hide, words to cut out of a sentence, and sentences to reword: those that hold a finding together with the answer's
name, and those that would read badly. Captions of figures are among the sentences and are shown only if reworded.
Everything hidden, trimmed or reworded is listed with its place and the reason. Rules object to a rewording with facts
that the report lacks or that is vaguer than the report (`rewording`), to what still names the answer, to a case that
ends in a stub, to fragments and to too little text; the model is told and asked once more. A word that a finding only
shares with the answer is flagged, not objected to. A rewording with a number that the report lacks or with the answer's
full name is refused: its sentence is hidden, with the reason. If the answer's full name is left, the rules take it out,
and that is listed as well. Whatever else the model insists on stays, flagged. The words are data (`stubs.toml`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

from msgspec import Struct

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.case_diagnosis import NamedDiagnosis, flagged
from hoofbeat.recipes.cases.redaction import (
    RedactedSpan,
    Redaction,
    drop_empty_headings,
    redact,
    remove_mentions,
)
from hoofbeat.recipes.cases.residue import CALL_OUT, TABLE, call_outs, is_table, residue, without_call_outs
from hoofbeat.recipes.cases.rewording import REFUSED, REWORDED, RewordingDoubts, lost_numbers, rewording_doubts
from hoofbeat.recipes.cases.stems import (
    captions,
    several_patients,
    stem_spans,
    tells_outcome,
    tells_treatment,
    wordings_of,
)
from hoofbeat.recipes.context import CUT_MARK, RecipeContext
from hoofbeat.recipes.guards.leaks import KEEP_FINDINGS, Leak, is_doubtful, names_in_full
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem, ask_again
from hoofbeat.recipes.steps import RecipeStep, ask, check
from hoofbeat.recipes.wordlists import word_data
from hoofbeat.records import Document, Step
from hoofbeat.retrieval.index.chunking import sentence_spans

PROMPT = "case-shown"
GIVEN_AWAY = "the stem gives the answer away"
SHARED = "doubtful: the stem shares words with a name of the answer, which stay if they are a finding"

_BETWEEN = "neither patient information nor test results"
_AFTER, _WINDOW, _STUB = "after the last sentence that is shown", "beyond the model's window", "a stub at the end"
_WHY = {
    "diagnosis": "names the diagnosis",
    "treatment": "tells of its treatment",
    "outcome": "tells of the outcome",
    "aside": "says nothing about the illness",
}
_BY_RULE = "names the diagnosis (rule)"
_BRACKETS = re.compile(r"[(\[][^()\[\]]*[)\]]")
_CAPTION, _LOST, _ADDS = "[caption] ", "a rewording loses a number", "a rewording adds to its sentence"
_SHARED = "words shared with the answer, to keep in a finding"
_RESIDUE = "residue of the printed report is shown"
_NUMBER = re.compile(r"\d+")
_MIN_LEFT = 4
_MAX_STUBS = 3
_SHOWN = 160


class _Rules(Struct, frozen=True):
    done: re.Pattern[str]
    result: re.Pattern[str]
    begun: re.Pattern[str]
    dangling: re.Pattern[str]


@cache
def _rules() -> _Rules:
    data = word_data("stubs")
    read = {name: re.compile(data[name], re.IGNORECASE) for name in ("result", "begun", "dangling")}
    return _Rules(done=re.compile("|".join(data["done"]), re.IGNORECASE), **read)


def is_stub(sentence: str) -> bool:
    """Whether a sentence says nothing at the end of a case: a fragment, a bare heading, a test without its result."""
    if " | " in sentence:  # a row of a table
        return False
    if _is_fragment(sentence) or _rules().begun.search(sentence):
        return True
    rules, bare = _rules(), _BRACKETS.sub(" ", sentence)
    return bool(rules.done.search(bare)) and not rules.result.search(rules.done.sub(" ", bare))


def shown(item: RecipeItem, context: RecipeContext) -> Redaction:
    """The case of an item as far as it is shown."""
    start, end = item["case"]
    return redact(context.document(item.documents[0]), (int(start), int(end)), item["removed"])


def with_shown(item: RecipeItem, case: Redaction) -> RecipeItem:
    """The item with this case: its text, its places, and what is left out of it."""
    return item.put(
        case=[case.start, case.end],
        removed=case.listed(),
        stem=case.text,
        stem_spans=[list(piece) for piece in case.pieces()],
    )


def take_case(name: str) -> RecipeStep:
    """Take patient information and test results of a report as its case; a report of several patients has none.

    Sections and captions between them are left out, and listed.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        if several_patients(document):
            return ItemRejection(reason="the report describes several patients")
        spans = stem_spans(document, whole=True)
        if not spans:
            return ItemRejection(reason="no section with patient information or test results")
        gaps = [RedactedSpan(end, start, _BETWEEN) for (_, end), (start, _) in pairwise(spans)]
        return with_shown(item, redact(document, (spans[0][0], spans[-1][1])).without(*gaps))

    return check(name, judge)


def choose_shown(
    name: str, *, min_words: int, min_match: float, negated: bool = True, images: bool = False
) -> RecipeStep:
    """Ask which sentences are shown, and leave the others out.

    `min_words` are left at least, `min_match` is how alike words to cut and source must be, `negated` says whether a
    denied mention of the diagnosis is one, `images` whether the examinee sees the images of the corpus.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        lines, notes, _ = _numbered(item, context, images=images)
        known_as = "\n".join(item["synonyms"]) or "none"
        return {"diagnosis": item["diagnosis"], "synonyms": known_as, "notes": notes, "sentences": lines}

    def read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        sentences = _numbered(item, context, images=images)[2]
        named = NamedDiagnosis(item["diagnosis"], item["synonyms"], context.document(item.documents[0]), context)

        def leaks_in(text: str) -> list[Leak]:
            return [leak for leak in named.leaks(text) if negated or leak.kind != "negated"]

        chosen = _Choice(shown(item, context), sentences, value, named, min_match, leaks_in)
        leaks = [leak for leak in leaks_in(chosen.case.text) if not is_doubtful(leak, item["diagnosis"])]
        left = _residue(chosen.case, _seen(chosen.case, context, images=images))
        objections = [
            *chosen.objections,
            *_objections(chosen.case, leaks, item["diagnosis"], min_words),
            *_told_residue(left),
        ]
        if not objections:
            return _first(flagged(with_shown(item, chosen.case), *chosen.flags), name)
        otherwise = _by_rule(item, chosen.case, named, leaks, min_words, negated=negated)
        if isinstance(otherwise, RecipeItem):
            doubts = [*chosen.flags, *([f"{_RESIDUE}: {'; '.join(left)}"] if left else [])]
            otherwise = _first(flagged(otherwise, *doubts), name)
        return ask_again(objections, otherwise)

    return ask(name, PROMPT, values=values, read=read)


def _numbered(item: RecipeItem, context: RecipeContext, *, images: bool) -> tuple[str, str, list[tuple[int, int]]]:
    """The sentences of a case as numbered lines, notes on them, and their places; as many as the window holds."""
    case, prompt = shown(item, context), load_prompt(PROMPT)
    document = case.document
    named = NamedDiagnosis(item["diagnosis"], item["synonyms"], document, context)
    told = [place for piece in case.pieces() for place in sentence_spans(document.text, *piece)]
    offered = _caption_sentences(case)
    places = sorted(place for place in (*told, *offered) if any(map(str.isalnum, document.text[slice(*place)])))
    notes = _notes(document, places, named, offered, _seen(case, context, images=images))
    lines = "\n".join(
        f"{n}. {_CAPTION if place in offered else ''}{' '.join(document.text[slice(*place)].split())}"
        for n, place in enumerate(places, 1)
    )
    beside = sum(len(text.encode()) for text in (notes, item["diagnosis"], *item["synonyms"]))
    fitted = context.fit(lines, prompt, beside=beside)
    if fitted == lines:
        return fitted, notes, places
    fitted = fitted.removesuffix(CUT_MARK).rpartition("\n")[0]
    return fitted + CUT_MARK, notes, places[: fitted.count("\n") + 1]


def _caption_sentences(case: Redaction) -> list[tuple[int, int]]:
    """The sentences of captions within a case, where they are left out; a bare label is none."""
    text = case.document.text
    found = [
        place
        for start, end in captions(case.document)
        if case.start <= start and end <= case.end
        for place in sentence_spans(text, start, end)
        if _left_out(case, place)
    ]
    return [place for place in dict.fromkeys(found) if len(text[slice(*place)].split()) > _MIN_LEFT]


def _notes(
    document: Document,
    places: Sequence[tuple[int, int]],
    named: NamedDiagnosis,
    offered: Sequence[tuple[int, int]],
    seen: Collection[str],
) -> str:
    """What word lists find in the sentences: the answer, treatment, outcome, and residue but for captions."""
    found: dict[str, list[str]] = {"the answer": [], _SHARED: [], "treatment": [], "outcome": [], "residue": []}
    for number, (start, end) in enumerate(places, 1):
        sentence = document.text[start:end]
        leaks = named.leaks(sentence)
        doubtful = [leak for leak in leaks if is_doubtful(leak, named.diagnosis)]
        for what, those in (("the answer", [leak for leak in leaks if leak not in doubtful]), (_SHARED, doubtful)):
            if those:
                found[what].append(f"{number} ({', '.join(dict.fromkeys(leak.text for leak in those))})")
        if tells_treatment(sentence):
            found["treatment"].append(str(number))
        if tells_outcome(sentence):
            found["outcome"].append(str(number))
        if (start, end) not in offered and (left := residue(sentence, seen)):
            found["residue"].append(f"{number} ({'; '.join(left)})")
    return "\n".join(f"{what}: {', '.join(numbers) or 'none'}" for what, numbers in found.items())


def held_images(document: Document, context: RecipeContext) -> dict[str, tuple[str, ...]]:
    """The image files that the corpus holds, by the numbers of their figures."""
    held: dict[str, tuple[str, ...]] = {}
    for figure in document.figures:
        files = tuple(file for file in figure.files if context.corpus.artefact.has(file))
        held |= {number: (*held.get(number, ()), *files) for number in _NUMBER.findall(figure.label) if files}
    return held


def _seen(case: Redaction, context: RecipeContext, *, images: bool) -> frozenset[str]:
    """What a case may point to, as the examinee sees it: numbers of figures, and tables where one is shown."""
    tables = [TABLE] if is_table(case.text) else []
    return frozenset((*tables, *(held_images(case.document, context) if images else ())))


def _residue(case: Redaction, seen: Collection[str]) -> list[str]:
    """What of a case as it is shown is residue that a rule may not take out."""
    text = case.text
    return list(dict.fromkeys(each for place in sentence_spans(text) for each in residue(text[slice(*place)], seen)))


def _told_residue(left: Sequence[str]) -> list[tuple[str, str]]:
    say = (
        f"A word list finds residue of the printed report in what is shown: {'; '.join(left)}. Reword these sentences "
    )
    say += "without it and keep every finding, or hide those that tell nothing else; of a table show what was known "
    return [(_RESIDUE, f"{say}before the diagnosis.")] if left else []


def drop_call_outs(name: str, *, images: bool = False) -> RecipeStep:
    """Cut the marks that point to figures, tables and references the examinee does not see; each is listed.

    `images` says whether the examinee sees the images of the corpus. No fact goes with a mark, so no model is asked.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        case = shown(item, context)
        text, seen = case.document.text, _seen(case, context, images=images)
        wordings = wordings_of(item)
        holes = [
            RedactedSpan(start + first, start + last, CALL_OUT)
            for start, end in case.pieces()
            if (start, end) not in wordings
            for first, last in call_outs(text[start:end], seen)
        ]
        plain = case.without(*holes)
        for each in case.removed:
            if each.shown != (words := without_call_outs(each.shown, seen)):
                plain = plain.reworded(each.start, each.end, words, each.why)
        return with_shown(item, plain) if plain != case else item

    return check(name, judge)


class _Choice:
    """What a model's answer makes of a case, what is wrong with it, and what is flagged if the model insists."""

    def __init__(
        self,
        case: Redaction,
        places: Sequence[tuple[int, int]],
        value: dict[str, Any],
        named: NamedDiagnosis,
        min_match: float,
        leaks_in: Callable[[str], Sequence[Leak]],
    ) -> None:
        self.objections: list[tuple[str, str]] = []
        self.flags: list[str] = []
        self._diagnosis = named.diagnosis
        self._names = [named.diagnosis, *named.synonyms]
        self._leaks_in = leaks_in
        self._places = places
        last = min(int(value["last"]), len(places))
        reworded, refused = self._reworded(case, value["reworded"], last)
        hide = [(places[each["number"] - 1], _WHY[each["why"]]) for each in self._known(value["hide"])]
        holes = [RedactedSpan(a, b, why) for (a, b), why in hide if (a, b) not in reworded]
        gone = {(hole.start, hole.end) for hole in holes} | reworded.keys() | refused.keys()
        for each in self._known(value["trim"]):
            place = places[each["number"] - 1]
            if each["number"] <= last and place not in gone and not _left_out(case, place):
                holes += self._trimmed(case, each, min_match)
        over = places[last - 1][1] if last else case.start
        why = _AFTER
        if last == len(places) and case.pieces() and case.pieces()[-1][1] > over:
            why = _WINDOW
        case = case.without(*holes, RedactedSpan(over, case.end, why))
        for place, words in reworded.items():
            case = case.reworded(*place, words, REWORDED)
        for place, why in refused.items():
            case = case.reworded(*place, "", why)  # without words: hidden, with this reason
        self.case = drop_empty_headings(case)

    def _reworded(
        self, case: Redaction, given: Sequence[dict[str, Any]], last: int
    ) -> tuple[dict[tuple[int, int], str], dict[tuple[int, int], str]]:
        """The sentences to reword with their new words, and those whose rewording is refused, with the reason."""
        taken: dict[tuple[int, int], str] = {}
        refused: dict[tuple[int, int], str] = {}
        for each in self._known([{**entry, "number": entry["sentence"]} for entry in given]):
            number, words = each["number"], " ".join(str(each["text"]).split())
            place = self._places[number - 1]
            source = case.document.text[slice(*place)]
            if words == " ".join(source.split()) and number <= last and not _left_out(case, place):
                continue
            doubts = self._doubts(case, place, words)
            if doubts.refused:
                refused[place] = f"{REFUSED}: {doubts.refused}: {words[:_SHOWN]!r}"
                self._object(_ADDS, doubts.told(number, words))
                continue
            taken[place] = words
            self.flags += doubts.flags(words)
            if say := doubts.told(number, words):
                self.objections.append((_ADDS, say))
            if number > last:
                self._object(_ADDS, f"Sentence {number} is reworded although it follows `last`, {last}.")
            if lost := lost_numbers(source, words, self._diagnosis):
                self._object(_LOST, f"The rewording of sentence {number} lacks the number {lost[0]} of its sentence.")
        return taken, refused

    def _doubts(self, case: Redaction, place: tuple[int, int], words: str) -> RewordingDoubts:
        """What rules have against a rewording; without words there is nothing to show."""
        if not words:
            return RewordingDoubts(refused="it has no words; hide the sentence instead")
        full = [leak.text for leak in self._leaks_in(words) if names_in_full(leak, self._diagnosis)]
        doubts = rewording_doubts(case, place, words, full, self._names)
        if _is_fragment(words) and not doubts.refused:
            return RewordingDoubts(objection=doubts.objection or "it is not a whole sentence", remark=doubts.remark)
        return doubts

    def _object(self, reason: str, say: str) -> None:
        """Tell the model, and a reviewer if it insists."""
        self.objections.append((reason, say))
        self.flags.append(say)

    def _trimmed(self, case: Redaction, each: dict[str, Any], min_match: float) -> list[RedactedSpan]:
        """The words to cut out of a sentence; an objection where they are not in it, or leave a fragment."""
        start, end = self._places[each["number"] - 1]
        found = find_quote(case.document, each["words"], min_score=min_match, within=(start, end))
        if found is None:
            say = f"The words to cut {each['words']!r} are not in sentence {each['number']} letter by letter."
            self._object("words to cut are not in the case", say)
            return []
        cuts = [RedactedSpan(span.start, span.end, _WHY["diagnosis"]) for span in found.spans]
        left = case.without(*cuts, RedactedSpan(case.start, start, ""), RedactedSpan(end, case.end, "")).text
        if _is_fragment(left):
            say = f"Sentence {each['number']} would read {left[:_SHOWN]!r}, which is not a whole sentence. Reword it."
            self._object("a sentence is left as a fragment", say)
        return cuts

    def _known(self, given: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The entries whose sentence exists."""
        wrong = [each["number"] for each in given if each["number"] > len(self._places)]
        if wrong:
            say = f"There is no sentence {wrong[0]}; the case has {len(self._places)}."
            self._object("a sentence to hide is not in the case", say)
        return [each for each in given if each["number"] <= len(self._places)]


def _left_out(case: Redaction, place: tuple[int, int]) -> bool:
    return any(hole.start <= place[0] and place[1] <= hole.end for hole in case.removed)


def _is_fragment(left: str) -> bool:
    bare = " ".join(_BRACKETS.sub(" ", left).split()).replace(" .", ".")
    return len(bare.split()) < _MIN_LEFT or bool(_rules().dangling.search(bare))


def _objections(case: Redaction, leaks: Sequence[Leak], diagnosis: str, min_words: int) -> list[tuple[str, str]]:
    """What rules have against a case that is shown so: reasons, and what to tell the model."""
    found: list[tuple[str, str]] = []
    if leaks:
        told = "; ".join(dict.fromkeys(f"{leak.text!r} ({leak.kind} of {leak.form})" for leak in leaks))
        full = any(names_in_full(leak, diagnosis) for leak in leaks)
        do = "Hide these sentences or cut these words." if full else KEEP_FINDINGS
        say = f"A word list still finds the answer in what is shown: {told}. {do}"
        found.append((GIVEN_AWAY, say))
    words = len(case.text.split())
    if words < min_words:
        say = f"Only {words} words would be shown, and at least {min_words} are needed: show more of the findings."
        found.append(("too few words of the case before the diagnosis", say))
    elif is_stub(last := _last_sentence(case)):
        say = f"The case would end with {last[:_SHOWN]!r}, which tells no finding: hide it, or show what it led to."
        found.append(("the case ends in a stub", say))
    return found


def _last_sentence(case: Redaction) -> str:
    text = case.text
    places = sentence_spans(text)
    return text[slice(*places[-1])] if places else ""


def _by_rule(
    item: RecipeItem,
    case: Redaction,
    named: NamedDiagnosis,
    leaks: Sequence[Leak],
    min_words: int,
    *,
    negated: bool,
) -> Outcome:
    """What becomes of a case whose second version rules object to as well.

    The answer's full name and stubs go, and are listed. Other words that the model insists on stay, flagged.
    """
    kept = sorted({leak.text for leak in leaks if not names_in_full(leak, named.diagnosis)})

    def mentions(text: str) -> list[tuple[int, int]]:
        return [
            (leak.start, leak.end)
            for leak in named.leaks(text)
            if not is_doubtful(leak, named.diagnosis) and leak.text not in kept and (negated or leak.kind != "negated")
        ]

    case = drop_empty_headings(remove_mentions(case, mentions, _BY_RULE))
    for _ in range(_MAX_STUBS):
        if not is_stub(_last_sentence(case)):
            break
        start, end = case.pieces()[-1] if case.pieces() else (case.start, case.start)
        places = sentence_spans(case.document.text, start, end)
        if not places:
            break
        case = drop_empty_headings(case.without(RedactedSpan(places[-1][0], case.end, _STUB)))
    words = len(case.text.split())
    if words < min_words:
        reason = "too few words of the case before the diagnosis"
        return ItemRejection(reason=reason, details=f"{words} words")
    made = with_shown(item, case)
    return insisted(made, kept) if kept else made


def insisted(item: RecipeItem, words: Sequence[str]) -> RecipeItem:
    """The item with words that a rule takes for the answer and the model keeps: allowed, and flagged."""
    allowed = list(dict.fromkeys((*item.get("allowed", ()), *words)))
    return flagged(item.put(allowed=allowed), f"{SHARED}, says a word list: {', '.join(words)}")


def _first(item: RecipeItem, step: str) -> RecipeItem:
    """The item with its case as it is now under `first_stem`: later checks may change it, and reviewers see both."""
    return noted_rewordings(item.put(first_stem=item["stem"]), step)


def noted_rewordings(item: RecipeItem, step: str) -> RecipeItem:
    """The item with the number of its reworded sentences in its lineage, where it has any."""
    count = len(wordings_of(item))
    note = f"{count} {'sentence' if count == 1 else 'sentences'} reworded"
    return item.done(Step(name=step, note=note)) if count else item


def no_leaks(name: str, *, min_match: float = 0.9, negated: bool = True) -> RecipeStep:
    """Reject items whose stem has the answer's full name, and flag other mentions.

    Words that the model has looked at twice and kept are flagged already.
    """

    def judge(item: RecipeItem, context: RecipeContext) -> Outcome:
        named = NamedDiagnosis(item["diagnosis"], item["synonyms"], context.document(item.documents[0]), context)
        allowed = item.get("allowed", ())
        leaks = [
            leak
            for leak in named.leaks(str(item["stem"]), min_match=min_match)
            if (negated or leak.kind != "negated") and leak.text not in allowed
        ]
        if not leaks:
            return item
        if not any(names_in_full(leak, item["diagnosis"]) for leak in leaks):
            return insisted(item, sorted({leak.text for leak in leaks}))
        told = "; ".join(dict.fromkeys(f"{leak.text!r} ({leak.kind} of {leak.form})" for leak in leaks))
        return ItemRejection(reason=GIVEN_AWAY, details=told)

    return check(name, judge)
