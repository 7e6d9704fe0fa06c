"""Whether the cuts of a case took too much or too little: a call that sees the case before and after says so.

Rules that cut a case (`redaction`, `stems`) delete findings that an examinee needs, and leave words that give the
answer away. So no cut is final until a model has seen it. `cut_check` shows the case as numbered sentences with the
cut words marked and rewordings beside their originals. What the model names is put back, taken out or reworded, and
listed; the changed case is shown once more, and an item that is not usable even then is rejected with the model's
reason.

Where what is shown can't carry the whole answer (the species had to be hidden), the model names the most specific form
that it can carry. If rules find that it is the same disease or a wider name of it, it becomes the answer, flagged; the
item keeps the report's own under `answer_in_report`. If they don't, the model is asked once more.

Use: `*cut_check("second pass", shown=..., put=..., answer="diagnosis")` in a recipe's steps. `shown` gives an item's
case as a `Redaction`, `put` the item with another one. Put `leak_check` after it. `cuts_table(items)` in `finish` lists
everything hidden, trimmed or reworded, with its place and reason, and what was put back; it reads the item's `removed`,
as `Redaction.listed` writes it, and the `cut_check` that these steps write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence, Set
from itertools import pairwise
from typing import Any

from hoofbeat.benchmarks.text_overlap import find_quote
from hoofbeat.corpus.terms import content_forms, find_abbreviations
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, unfit
from hoofbeat.recipes.cases.case_diagnosis import VOCABULARIES, flagged
from hoofbeat.recipes.cases.redaction import RedactedSpan, Redaction
from hoofbeat.recipes.cases.rewording import (
    REFUSED,
    REWORDED,
    RewordingDoubts,
    among,
    implied_words,
    organism_words,
    rewording_doubts,
)
from hoofbeat.recipes.cases.shown_sentences import insisted, noted_rewordings
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.guards.diagnosis_names import excludes, names_organism, other_organism, same_as_answer
from hoofbeat.recipes.guards.leak_words import is_disease
from hoofbeat.recipes.guards.leaks import KEEP_FINDINGS, Leak, find_leaks, is_doubtful, names_in_full
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem, ask_again
from hoofbeat.recipes.steps import RecipeStep, ask
from hoofbeat.records import Document
from hoofbeat.retrieval.index.chunking import sentence_spans

CUT_CHECK = "cut-check"
NOT_MADE = "the case lacks a change that the model wants"
_MIN_MATCH = 0.9  # of the letters, for words that a model copied
_MIN_SHARED = 1 / 3  # of the words of a wider answer, where a model insists on it
_BESIDE = 400  # characters kept free for question, answer and fences

Shown = Callable[[RecipeItem, RecipeContext], Redaction]
Put = Callable[[RecipeItem, Redaction], RecipeItem]


def cut_check(
    name: str, *, shown: Shown, put: Put, answer: str, question: str = "What is the most likely diagnosis?"
) -> list[RecipeStep]:
    """Ask whether the cuts of a case are right, change what the model names, and ask once more where it changed.

    `answer` is the item's value that the examinee has to find. The item's `cut_check` says what was found and changed.
    Where words to put back name the answer or are not in the case, the model is told which and asked once more. If it
    insists, they are put back and the item is flagged, unless they hold the answer's full name; then the flag says that
    the case lacks words that the model wants.
    """

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        lines = "\n".join(f"{number}. {line}" for number, line in enumerate(marked(shown(item, context)), 1))
        beside = len(str(item[answer])) + len(question) + _BESIDE
        case = context.fit(lines, load_prompt(CUT_CHECK), beside=beside)
        return {"case": case, "question": question, "answer": item[answer]}

    def first(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        done, objections = changed(item, value, context)
        if not _changes(done):
            done, wrong = _derived(done, answer, value, shown(done, context), context)
            objections += wrong
        unusable = value["usable"] != "yes" and not _changes(done)
        rejected = ItemRejection(reason="the case can't be used as it is cut", details=value["reason"])
        return ask_again(objections, rejected if unusable else done)

    def changed(
        item: RecipeItem, value: dict[str, Any], context: RecipeContext
    ) -> tuple[RecipeItem, list[tuple[str, str]]]:
        """The item with the changes a model wants, flagged where a rule doubts them, and what to tell the model."""
        before = shown(item, context)
        mentions = [(entry, _mentions(item, answer, str(entry["words"]), before)) for entry in value["lost"]]
        named = [entry for entry, leaks in mentions if any(names_in_full(leak, str(item[answer])) for leak in leaks)]
        after, changes = _changed(before, {**value, "lost": [each for each in value["lost"] if each not in named]})
        after, reworded, objections = _with_rewordings(
            after,
            value["reworded"],
            lambda words: _mentions(item, answer, words, before),
            [str(item[answer]), *map(str, item.get("synonyms") or ())],
        )
        refused = [f"{each['shown']} ({each['refused']})" for each in reworded if each["refused"]]
        changes += reworded
        earlier = (item.get("cut_check") or {}).get("changes", [])
        done = put(item, after) if after != before else item
        done = done.put(cut_check={"reason": value["reason"], "changes": [*earlier, *changes]})
        if reworded and after != before:
            done = noted_rewordings(done, name)
        for entry, leaks in mentions:
            if leaks and entry not in named:
                done = insisted(done, [leak.text for leak in leaks])
        missing = [str(each["words"]) for each in (*named, *(each for each in changes if each["end"] == 0))] + refused
        done = flagged(done, *(flag for each in reworded for flag in each["flags"]))
        done = flagged(done, f"{NOT_MADE}: {'; '.join(missing)}") if missing else done
        return done, [*objections, *_told(mentions, changes, str(item[answer]))]

    def second(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
        if value["usable"] != "yes":
            wanted = (*value["lost"], *value["left"], *value["reworded"])
            named = "; ".join(f"{each.get('words') or each['text']} ({each['why']})" for each in wanted)
            details = f"{value['reason']} {named}".strip()
            return ItemRejection(reason="the case can't be used even after its cuts were changed", details=details)
        done, _ = changed(item, value, context)
        done, objections = _derived(done, answer, value, shown(done, context), context)
        return ask_again(objections, done)

    return [
        ask(name, CUT_CHECK, values=values, read=first),
        ask(f"{name}, again", CUT_CHECK, values=values, read=second, when=lambda item: _changes(item) > 0),
    ]


def _told(
    mentions: Sequence[tuple[dict[str, Any], Sequence[Leak]]], changes: Sequence[dict[str, Any]], answer: str
) -> list[tuple[str, str]]:
    """Reasons and what to tell the model of words to put back that name the answer, and of words that are not there."""
    objections = []
    for entry, found in mentions:
        if leaks := [leak for leak in found if not is_doubtful(leak, answer)]:
            told = ", ".join(dict.fromkeys(repr(leak.text) for leak in leaks))
            say = f"A word list finds the answer in words to be put back: {told} in {entry['words']!r}. "
            if any(names_in_full(leak, answer) for leak in leaks):
                say += "Name parts without it, give the sentence new words under `reworded`, or leave them out."
            else:
                say += KEEP_FINDINGS
            objections.append(("words to be put back name the answer", say))
    for change in changes:
        if change["end"] == 0:
            say = (
                f"These words are not in the case letter by letter: {change['words']!r}. A sentence that was reworded "
            )
            say += "can only be changed under `reworded`."
            objections.append(("words to be changed are not in the case", say))
    return objections


def marked(case: Redaction) -> list[str]:
    """The sentences of a case before the cuts, each on one line; the words that were cut are between {- and -}.

    Words in the place of others are between {+ and +}, the reason why a rewording was refused between {! and !}.
    """
    text = case.document.text
    lines = []
    for start, end in sentence_spans(text, case.start, case.end):
        pieces, at = [], start
        for hole in case.removed:
            low, high = max(hole.start, at), min(hole.end, end)
            if low < high:
                cut, behind = text[low:high], text[high : min(high + 1, end)]
                before = " " if cut[:1].isspace() else ""
                after = " " if cut[-1:].isspace() or behind.isalnum() else ""
                new = f" {{+{hole.shown}+}}" if hole.shown and high == hole.end else ""
                new += f" {{!{hole.why}!}}" if REFUSED in hole.why and high == hole.end else ""
                pieces += [text[at:low], before, "{-", cut.strip(), "-}", new, after]
                at = high
        lines.append(" ".join("".join((*pieces, text[at:end])).split()))
    return lines


def cuts_table(items: Sequence[RecipeItem]) -> TableFile:
    """What was hidden, trimmed, reworded, put back and refused in every item: place, reason, words, new words."""
    rows = []
    for item in items:
        cuts = [
            (each.get("kind", "hidden"), each["start"], each["end"], each["why"], each["text"], each.get("shown", ""))
            for each in item.get("removed", ())
        ]
        checked = (item.get("cut_check") or {}).get("changes", ())
        back = [
            (each["what"], each["start"], each["end"], each["why"], each["words"], "")
            for each in checked
            if each["what"] == "put back"
        ]
        back += [
            ("refused", each["start"], each["end"], f"{REFUSED}: {each['refused']}", each["words"], "")
            for each in checked
            if each.get("refused") and each["what"] == "nothing"
        ]
        rows += [(item.id, *row) for row in sorted((*cuts, *back), key=lambda row: row[1:3])]
    return TableFile(("item", "what", "start", "end", "why", "words", "shown"), rows)


def _changes(item: RecipeItem) -> int:
    return sum(each["what"] != "nothing" for each in item["cut_check"]["changes"])


def _changed(case: Redaction, value: dict[str, Any]) -> tuple[Redaction, list[dict[str, Any]]]:
    """The case as the model wants it, and what that changed; words that are not in the case change nothing."""
    changes: list[dict[str, Any]] = []
    for named, what in ((value["lost"], "put back"), (value["left"], "taken out")):
        for entry in named:
            words, why = str(entry["words"]).strip(), str(entry["why"]).strip()
            place = _place(case, int(entry["sentence"]), words)
            start, end = place or (0, 0)
            if any(hole.shown and hole.start < end and start < hole.end for hole in case.removed):
                start, end = (start, end) if _covers(case, start, end) else (0, 0)
            hole = RedactedSpan(start, end, f"the check found that it tells the answer: {why}")
            changed = case.with_back(start, end) if what == "put back" else case.without(hole)
            done = what if changed != case else "nothing"
            changes.append({"what": done, "start": start, "end": end, "words": words, "why": why})
            case = changed
    return case, changes


def _covers(case: Redaction, start: int, end: int) -> bool:
    """Whether these characters hold every reworded sentence that they touch, as a whole."""
    touched = [hole for hole in case.removed if hole.shown and hole.start < end and start < hole.end]
    return all(start <= hole.start and hole.end <= end for hole in touched)


def _with_rewordings(
    case: Redaction, wanted: Sequence[dict[str, Any]], mentions: Callable[[str], Sequence[Leak]], names: Sequence[str]
) -> tuple[Redaction, list[dict[str, Any]], list[tuple[str, str]]]:
    """The case with the rewordings a model wants, what they changed, and what to tell it of those that rules doubt.

    `names` are those of the answer, the one in use first. A rewording that the model finds wrong is hidden where its
    new words are refused.
    """
    text, sentences = case.document.text, sentence_spans(case.document.text, case.start, case.end)
    changes: list[dict[str, Any]] = []
    objections: list[tuple[str, str]] = []
    for entry in wanted:
        number, words, why = int(entry["sentence"]), " ".join(str(entry["text"]).split()), str(entry["why"]).strip()
        if not 1 <= number <= len(sentences):
            objections.append(("words to be changed are not in the case", f"There is no sentence {number}."))
            continue
        start, end = sentences[number - 1]
        was = [hole for hole in case.removed if hole.shown and hole.start < end and start < hole.end]
        if was:
            start, end = was[0].start, was[0].end
        full = [leak.text for leak in mentions(words) if names_in_full(leak, names[0])]
        doubts = rewording_doubts(case, (start, end), words, full, names) if words else RewordingDoubts()
        if say := doubts.told(number, words):
            objections.append(("a rewording adds to its sentence", say))
        if (wrong := doubts.refused) or not words:
            hole = RedactedSpan(start, end, f"{why}; {REFUSED}: {wrong}: {words!r}" if wrong else why)
            changed = case.without(hole) if was or not wrong else case
        else:
            changed = case.reworded(start, end, words, why or REWORDED)
        what = "nothing" if changed == case else "taken out" if wrong or not words else "reworded"
        place = {"start": start, "end": end, "words": text[start:end]}
        flags = [] if wrong else doubts.flags(words)
        changes.append({"what": what, **place, "shown": words, "why": why, "refused": wrong, "flags": flags})
        case = changed
    return case, changes, objections


def _derived(
    item: RecipeItem, answer: str, value: dict[str, Any], case: Redaction, context: RecipeContext
) -> tuple[RecipeItem, list[tuple[str, str]]]:
    """The item with the answer that what is shown can carry, recorded and flagged, and what a rule has against it.

    If the model insists on a name that no vocabulary connects with the answer, it counts where it shares a third of its
    words with it. Another disease, a more specific one and one that the case names never do.
    """
    full, wording = str(item[answer]), plain_option(str(value["derivable"]))
    if not wording or wording.casefold() == full.casefold():
        return item, []
    names = [full, *map(str, item.get("synonyms") or ())]
    known = _known_words(names, case.document)
    wrong = _not_usable(wording, names, known, context) or _named_in(case, wording)
    unknown = "" if wrong else _unknown(wording, names, known, context)
    objections = []
    if wrong or unknown:
        say = f"The derivable answer {wording!r} can't be used in place of {full!r}: {wrong or unknown}. Copy the "
        say += "answer, or name the same disease less specifically."
        objections = [("the derivable answer is not the same disease", say)]
    said = content_forms(wording)
    if wrong or (unknown and _MIN_SHARED * len(said) > sum(among(form, known) for form in said)):
        return flagged(item, f"what is shown carries only, says the model: {wording}"), objections
    others = [each for each in names if each.casefold() != wording.casefold()]
    first = str(item.get("answer_in_report") or full)
    changed = item.put(**{answer: wording, "synonyms": others, "answer_in_report": first})
    flags = [f"the answer is less specific than in the report: {first}", *filter(None, [unknown])]
    return flagged(changed, *flags), objections


def not_wider(wording: str, names: Sequence[str], document: Document, context: RecipeContext) -> str:
    """Why a name is neither another name of a disease nor a wider one; nothing if it is."""
    known = _known_words(names, document)
    return _not_usable(wording, names, known, context) or _unknown(wording, names, known, context)


def _known_words(names: Sequence[str], document: Document) -> frozenset[str]:
    """The words of a disease's names, of the long forms of their abbreviations, and of what its organism implies."""
    text = " ".join(names)
    longs = [long for short, long in find_abbreviations(document.text).items() if short in text]
    return frozenset(content_forms(" ".join((text, *longs)))) | implied_words(text)


def _not_usable(wording: str, names: Sequence[str], known: Set[str], context: RecipeContext) -> str:
    """Why a name can't be the answer whoever says so: no disease, another one, or a more specific one."""
    full, said = names[0], content_forms(wording)
    if unfit(wording) or (not _is_disease(wording, context) and _is_disease(full, context)):
        return "it names no disease"
    new = [form for form in said if not among(form, known)]
    other = not organism_words().isdisjoint(new) or not implied_words(wording) <= known
    if other or other_organism(wording, full) or excludes(wording, full):
        return "it is another disease"
    return "it is more specific" if new and len(said) > len(content_forms(full)) else ""


def _named_in(case: Redaction, wording: str) -> str:
    """Where what is shown names a disease in full: an answer that it names is no question."""
    leaks = find_leaks(case.text, wording, source=case.document)
    told = [leak.text for leak in leaks if leak.kind != "negated" and names_in_full(leak, wording)]
    return f"what is shown names it, {told[0]!r}" if told else ""


def _unknown(wording: str, names: Sequence[str], known: Set[str], context: RecipeContext) -> str:
    """Why no rule knows a name as another or wider one of a disease; nothing if one does."""
    full, *synonyms = names
    vocabularies = [context.vocabulary(name) for name in VOCABULARIES]
    if all(among(form, known) for form in content_forms(wording)):
        return ""
    if same_as_answer(wording, full, synonyms, vocabularies):
        return ""
    return "no word list or vocabulary says that it is the same disease or a wider name"


def _is_disease(name: str, context: RecipeContext) -> bool:
    known = any(context.vocabulary(each).find_phrases(name) for each in VOCABULARIES)
    return known or names_infection(name) or any(map(is_disease, content_forms(name)))


def names_infection(name: str) -> bool:
    """Whether a name is that of an infection with an organism that it names."""
    words = re.findall(r"[^\W\d_]+", name)
    known = any(map(names_organism, (*words, *map(" ".join, pairwise(words)))))
    return known and not {"infection", "coinfection"}.isdisjoint(content_forms(name))


def _mentions(item: RecipeItem, answer: str, words: str, case: Redaction) -> list[Leak]:
    """Where words name the answer, but for those that the item allows: a model has looked at them twice."""
    synonyms = tuple(map(str, item.get("synonyms") or ()))
    leaks = find_leaks(words, str(item[answer]), synonyms=synonyms, source=case.document)
    return [leak for leak in leaks if leak.text not in item.get("allowed", ())]


def _place(case: Redaction, number: int, words: str) -> tuple[int, int] | None:
    """Where these words are in the source: in the sentence of this number, or else anywhere in the case."""
    sentences = sentence_spans(case.document.text, case.start, case.end)
    within = [sentences[number - 1]] if 1 <= number <= len(sentences) else []
    for part in (*within, (case.start, case.end)):
        found = find_quote(case.document, words.replace("{-", "").replace("-}", ""), min_score=_MIN_MATCH, within=part)
        if found is not None:
            return found.spans[0].start, found.spans[-1].end
    return None
