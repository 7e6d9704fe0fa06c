"""The final review: nothing is kept that an editor would not sign.

A trial with a strong model showed that items pass every check and still are not publishable as they are: a decisive
fact is gone, the key says more than the case can carry, the authors' reasons stand in the text, two options are right.
So the last look is that of an editor. One call sees the whole report and the whole item, lists problems, and signs,
edits or rejects. Edits point at sentences of the report. Rules object to an edit that brings a number without a source,
turns a denial round, is vaguer than its sources, names the answer or makes an option the answer; the model is told and
asked once more. Of a decisive step a denial is only flagged: "was not possible" is how the case tells what its source
calls too dangerous. What it insists on is taken and flagged, but not a number or a name. A correction of the report is
flagged as well. A new call, which does not see the earlier reviews, then reviews the edited item, at most `REVIEWS`
times. An item with options that is not signed then is rejected. The last edits of an open question are taken and
flagged, because its trials decide: a draw of 48 reports lost six of eight such items for nothing but another reviewer's
wishes, and four of these six were publishable as they were.

Use: `*item_review(editor)` where text, question and options are final, then the trials, then
`review_after_trials(editor)` for what they doubt. `editor` reads and changes the items of a recipe. `edits_table`
lists every edit with what it rests on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from hoofbeat.corpus.terms import content_forms
from hoofbeat.errors import UsageError
from hoofbeat.prompts import Prompt, load_prompt
from hoofbeat.recipes.cases.grading_check import FIELDS, check_grading
from hoofbeat.recipes.cases.residue import TABLE, residue
from hoofbeat.recipes.cases.rewording import corrected, turns_round, vaguer
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.guards.leaks import excluded_in
from hoofbeat.recipes.guards.text_checks import new_numbers, numbered_whole, sound
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem, ask_again
from hoofbeat.recipes.review_tasks import NOT_TRIED
from hoofbeat.recipes.steps import PartReply, RecipeStep, Schema, ask_each
from hoofbeat.recipes.trial_findings import trial_findings, trials_of
from hoofbeat.recipes.trials import TriedQuestion, to_grade_again, to_referee_again
from hoofbeat.records import AcceptedAnswer, Document, Span
from hoofbeat.retrieval.index.chunking import sentence_spans
from hoofbeat.window import size

PROMPT = "item-review"
REVIEWS = 3
"""How often an item is reviewed before the trials; of a question with options the last review signs or rejects."""

SIGNED, EDITED = "signed", "edited"
_KINDS = {
    "fact_lost": "a fact that the answer needs is missing",
    "leak": "the item gives the answer away",
    "key": "the answer is wrong or more than the case supports",
    "second_right": "another answer is as good",
    "altered": "the case says what the report does not",
    "conflict": "the report contradicts itself about what the answer rests on",
    "question": "the question does not ask for the answer",
    "absurd_option": "an option is absurd",
    "style": "the answer stands out among the options",
    "residue": "remains of the report or of editing",
    "other": "another problem",
}
_NO_ROOM = "not reviewed: the model's window is too small for the final review"
_OF_OPTIONS = frozenset({"absurd_option", "style"})
_OF_STEPS = frozenset({"conflict"})
_OF_OPEN_ANSWERS = ("accepted", "grading_note", *FIELDS)
_MISMATCH = "final review: question and note for the grader demand different things"
_LIGHT = frozenset({"style", "residue", "other"})
_POWER = re.compile(r"(?<=10)\s*\^\s*(?=[-−]?\d)")
_SUPERSCRIPT = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_PRONOUN = re.compile(r"\b(?:he|she|his|hers?|him|himself|herself)\b", re.IGNORECASE)
_SEEN = (TABLE,)
# Where a clause begins: a list without a verb ("no fever, chills or rash") is one with what stands before it.
_CLAUSE = re.compile(
    r"[.;:()|\[\]](?!\d)|\b(?:but|however|although|while|whereas)\b"
    r"|(?:,|\band\b)(?=[^.;:,()|]*\b(?:is|are|was|were|has|had|did|could|showed|shows|revealed|remained)\b)",
    re.IGNORECASE,
)
_BESIDE = 600  # bytes kept free for the fences

ItemReview = Annotated[
    bool, Meta(description="A model reviews each finished item as an editor, and edits or rejects it.")
]


class TextEdit(NamedTuple):
    """Characters of the shown text and the words in their place; none where whole sentences are inserted there."""

    start: int
    end: int
    words: str
    why: str


class ItemEditor(Protocol):
    """How the items of a recipe are read and changed."""

    asks: str
    """What the key is: `diagnosis` or `step`."""

    def show(self, item: RecipeItem) -> TriedQuestion:
        """The item as an examinee sees it."""

    def with_text(self, item: RecipeItem, edits: Sequence[TextEdit], context: RecipeContext) -> RecipeItem:
        """The item with these edits of its case, none within another, in their order."""

    def with_question(self, item: RecipeItem, question: str) -> RecipeItem:
        """The item with this question."""

    def with_answer(self, item: RecipeItem, answer: str) -> RecipeItem:
        """The item with this wording of its key; the earlier one is another name of it."""

    def with_option(self, item: RecipeItem, old: str, new: str) -> RecipeItem:
        """The item with another wrong option in the place of one."""

    def leak(self, item: RecipeItem, text: str, context: RecipeContext) -> tuple[str, bool] | None:
        """Words of a text that give the key away, and whether a rule is sure of it."""

    def wrong_answer(self, item: RecipeItem, answer: str, context: RecipeContext) -> str:
        """Why a wording is not one of the item's key; nothing if it is."""

    def wrong_option(self, item: RecipeItem, option: str, context: RecipeContext) -> str:
        """Why a text can't be a wrong option beside the item's key; nothing if it can."""

    def same_option(self, one: str, other: str, context: RecipeContext) -> str:
        """Why two options mean the same; nothing if they do not."""


def item_review(editor: ItemEditor) -> list[RecipeStep]:
    """Review every item until it is signed, `REVIEWS` times at most."""
    names = ("final review", "final review, second", "final review, third")
    return [
        _review_step(name, editor, last=number == REVIEWS, after_trials=False)
        for number, name in enumerate(names[:REVIEWS], 1)
    ]


def review_after_trials(editor: ItemEditor) -> RecipeStep:
    """Review once more what the trials doubt, with their words; an edited item is to be tried again."""
    return _review_step("final review, after the trials", editor, last=False, after_trials=True)


def edits_table(items: Sequence[RecipeItem]) -> TableFile:
    """Every edit of the final review: part, words before and after, sentences of the report, reason, why not taken."""
    rows = [
        (item.id, e["review"], e["part"], e["before"], e["after"], " | ".join(e["sources"]), e["why"], e["refused"])
        for item in items
        for e in item.get("edits", ())
    ]
    return TableFile(("item", "review", "part", "before", "after", "sources", "why", "refused"), rows)


def graded_as_right(item: RecipeItem) -> tuple[AcceptedAnswer, ...]:
    """The wordings that the final review counts as right beside the key, the first with the note for the grader."""
    grading = item.get("grading") or {"accepted": (), "note": ""}
    wordings = grading["accepted"] or ([item["answer"]] if grading["note"] else ())
    return tuple(
        AcceptedAnswer(text=text, by=("final review",), note="" if place else grading["note"])
        for place, text in enumerate(wordings)
    )


def dated(item: RecipeItem) -> list[str]:
    """A remark on the year of an item's report, where the recipe notes it (`year`)."""
    return [f"the report was published in {item['year']}"] if item.get("year") else []


def with_edits(item: RecipeItem, told: dict[str, str]) -> dict[str, str]:
    """What a reviewer is shown, with the edits of the final review where there are any."""
    made = [f"{e['before']}\n→ {e['after'] or '(left out)'}" for e in item.get("edits", ()) if not e["refused"]]
    return {**told, "edits": "\n\n".join(made)} if made else told


# The step


def _review_step(name: str, editor: ItemEditor, *, last: bool, after_trials: bool) -> RecipeStep:
    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        shown = _item_lines(item, editor.show(item))
        return {"report": _report(item, context, editor.asks, shown)[1], "asks": editor.asks, **shown}

    def schema(item: RecipeItem) -> Schema:
        contract: Any = load_prompt(PROMPT).schema
        options = editor.show(item).options
        properties = dict(contract["properties"])
        if options:
            letters = list(ascii_uppercase[: len(options)])
            properties["new_options"] = _with_choices(properties["new_options"], "option", letters)
            properties = {field: each for field, each in properties.items() if field not in _OF_OPEN_ANSWERS}
        else:
            del properties["new_options"]
        unused = (frozenset() if options else _OF_OPTIONS) | (frozenset() if editor.asks == "step" else _OF_STEPS)
        kinds = [each for each in _KINDS if each not in unused]
        properties["problems"] = _with_choices(properties["problems"], "kind", kinds)
        return {**contract, "properties": properties, "required": [n for n in contract["required"] if n in properties]}

    def parts(item: RecipeItem, context: RecipeContext) -> tuple[None, ...]:
        """None where the window does not even hold the item: it goes on, flagged."""
        shown = _item_lines(item, editor.show(item))
        try:
            context.room(_as_asked(editor.asks, shown), beside=_size(shown))
        except UsageError:
            return ()
        return (None,)

    def read(item: RecipeItem, replies: Sequence[PartReply], context: RecipeContext) -> Outcome | AskAgain:
        if not replies:
            return item.put(flags=list(dict.fromkeys((*item.get("flags", ()), _NO_ROOM))))
        if replies[0].failure is not None:
            return replies[0].failure
        value = replies[0].value or {}
        spans, _ = _report(item, context, editor.asks, _item_lines(item, editor.show(item)))
        review = _Review(item, value, editor, context, spans, name)
        review.read()
        return ask_again(review.objections, review.outcome(last=last, after_trials=after_trials))

    def due(item: RecipeItem) -> bool:
        if after_trials:
            return any(doubt != NOT_TRIED for doubt in trials_of(item).doubts)
        return (item.get("item_review") or {}).get("state") != SIGNED

    return ask_each(
        name,
        PROMPT,
        parts=parts,
        values=lambda item, _part, context: values(item, context),
        read=read,
        schema=lambda item, _part, _context: schema(item),
        when=due,
    )


def _with_choices(listed: Any, name: str, choices: Sequence[str]) -> dict[str, Any]:
    """The schema of a list in whose entries this field is one of these choices."""
    fields = {**listed["items"]["properties"], name: {"type": "string", "enum": [*choices]}}
    return {**listed, "items": {**listed["items"], "properties": fields}}


def _item_lines(item: RecipeItem, exam: TriedQuestion) -> dict[str, str]:
    """The item as the prompt shows it; what is left of the window is for the report."""
    places = enumerate(sentence_spans(exam.case), 1)
    return {
        "case": "\n".join(f"{number}. {_line(exam.case[start:end])}" for number, (start, end) in places),
        "question": exam.question,
        "options": _lettered(exam),
        "answer": exam.answer,
        "remarks": _remarks(item, exam) or "(none)",
    }


def _size(shown: Mapping[str, str]) -> int:
    return sum(map(size, shown.values())) + _BESIDE


def _lettered(exam: TriedQuestion) -> str:
    """The options by letter, in the order they are given, with the key marked."""
    return "\n".join(
        f"{letter}) {text}{'  [key]' if text == exam.answer else ''}"
        for letter, text in zip(ascii_uppercase, sorted(exam.options), strict=False)
    )


def _remarks(item: RecipeItem, exam: TriedQuestion) -> str:
    """What rules, trials, earlier reviews and a recipe's own checks (`remarks`) noted, as lines of a list."""
    told = [f"a rule: {each}" for each in item.get("flags", ())]
    told += [f"a trial: {doubt}: {why}" for doubt, why in trial_findings(trials_of(item)).items()]
    told += dated(item)
    told += item.get("remarks", ())
    if grading := item.get("grading"):
        accepted = "; ".join(map(repr, grading["accepted"])) or "(none)"
        told.append(f"an earlier review accepts {accepted}; its note for the grader: {grading['note'] or '(none)'}")
    others = [len(each.split()) for each in exam.options if each != exam.answer]
    if others and len(exam.answer.split()) > max(others):
        told.append(f"a rule: the key is the longest option ({len(exam.answer.split())} words, others {max(others)})")
    first = str(item.get("answer_in_report") or exam.answer)
    if exam.options and first != exam.answer:
        told.append(f"a rule: the report's diagnosis is {first!r}; the question must ask for what the key is")
    if not exam.options and (found := _PRONOUN.search(f"{exam.question} {exam.answer}")):
        told.append(f'a rule: question or key says {found[0]!r}; say "the patient" instead')
    told += [f"a rule: {each}" for a, b in sentence_spans(exam.case) for each in residue(exam.case[a:b], _SEEN)]
    for each in item.get("edits", ()):
        done = f"not made ({each['refused']})" if each["refused"] else "made"
        told.append(f"an edit of an earlier review, {done}: {each['before']!r} became {each['after']!r}: {each['why']}")
    return "\n".join(f"- {each}" for each in told)


def _as_asked(asks: str, shown: Mapping[str, str]) -> Prompt:
    """The prompt with what it says of this kind of item alone: the rest takes no room."""
    prompt = load_prompt(PROMPT)
    system, _ = prompt.fill({**dict.fromkeys(prompt.variables, ""), "asks": asks, "options": shown["options"]})
    return msgspec.structs.replace(prompt, system=system)


def _report(item: RecipeItem, context: RecipeContext, asks: str, beside: Mapping[str, str]) -> tuple[list[Span], str]:
    """The sentences of the report and the numbered lines that show them."""
    document = context.document(item.documents[0])
    spans, shown = numbered_whole(document, context, _as_asked(asks, beside), beside=_size(beside))
    return list(spans.values()), shown


def _line(text: object) -> str:
    return " ".join(str(text).split())


# What a reply makes of an item


class _Review:
    """A reply, what rules have against it, and the item with those edits that can stand."""

    def __init__(
        self,
        item: RecipeItem,
        value: Mapping[str, Any],
        editor: ItemEditor,
        context: RecipeContext,
        report: Sequence[Span],
        name: str,
    ) -> None:
        self.objections: list[tuple[str, str]] = []
        self._item = item
        self._value = value
        self._editor = editor
        self._context = context
        self._document: Document = context.document(item.documents[0])
        self._report = report
        self._name = name
        self._records: list[dict[str, Any]] = []
        self._flags: list[str] = []
        self._mismatches: list[str] = []
        self._regraded = False

    @property
    def _taken(self) -> bool:
        return any(not each["refused"] for each in self._records)

    def read(self) -> None:
        """Apply the edits that rules let pass, and note what they object to."""
        if self._value["verdict"] == "reject":
            return
        self._read_answer_and_options()
        self._read_question()
        self._read_text()
        if not self._editor.show(self._item).options:
            self._read_grading()
        verdict, problems = self._value["verdict"], self._value["problems"]
        if verdict == "edit" and not self._records and not self._regraded:
            self._object("an edit is wanted and none is given", "Your verdict is `edit`, and there is no edit.")
        if verdict == "sign" and problems and not self._records:
            say = "You sign and list problems. Mend them with edits, or list none if you would publish the item so."
            self._object("it is signed with problems", say, flag=_told(problems))

    def outcome(self, *, last: bool, after_trials: bool) -> Outcome:
        """What becomes of the item."""
        value, problems = self._value, self._value["problems"]
        if value["verdict"] == "reject":
            return _rejected(problems, f"{value['reason']} {_told(problems)}".strip())
        if self._mismatches:
            return ItemRejection(reason=_MISMATCH, details="; ".join(self._mismatches))
        signed = value["verdict"] == "sign" and not self._records
        light = all(each["kind"] in _LIGHT for each in problems) and (self._taken or self._regraded)
        if last and not signed and not light and self._editor.asks != "step":
            reason = "final review: not signed after two edits"
            return ItemRejection(reason=reason, details=f"{value['reason']} {_told(problems)}".strip())
        found = {
            "state": SIGNED if signed or last else EDITED,
            "reviews": (self._item.get("item_review") or {}).get("reviews", 0) + 1,
            "reason": value["reason"],
            "problems": [dict(each) for each in problems],
        }
        if last and not signed:
            self._flags.append("the last edits of the final review were not reviewed again")
        flags = [f"final review: {each}" for each in self._flags]
        item = self._item.put(item_review=found, edits=[*self._item.get("edits", ()), *self._records])
        item = item.put(flags=list(dict.fromkeys((*item.get("flags", ()), *flags)))) if flags else item
        if self._taken and (after_trials or "trials" in item.values):
            return item.put(trials={}, retried=after_trials)  # they are about another text
        if after_trials and self._regraded:
            return to_grade_again(item).put(retried=True)
        return to_referee_again(item, str(value["reason"])) if after_trials else item

    # Parts of an item

    def _read_text(self) -> None:
        text = self._editor.show(self._item).case
        places = sentence_spans(text)
        new: dict[int, str] = {}
        after: dict[int, list[str]] = {}
        whys: dict[int, list[str]] = {}
        for edit in self._value["edits"]:
            number, words = int(edit["sentence"]), "" if edit["do"] == "delete" else str(edit["text"]).strip()
            if (
                number > len(places)
                or (number == 0 and edit["do"] != "insert")
                or (not words and edit["do"] != "delete")
            ):
                say = f"The edit {edit['do']} {number} {words!r} can't be made: the case has {len(places)} sentences."
                self._object("an edit is of no sentence", say)
                self._record("case", "", words, [], str(edit["why"]), f"there is no sentence {number} to {edit['do']}")
                continue
            before = "" if edit["do"] == "insert" else _line(text[slice(*places[number - 1])])
            if number in new and edit["do"] != "insert":
                self._object("a sentence is edited twice", f"Sentence {number} of the case is edited twice.")
                self._record("case", before, words, [], str(edit["why"]), "the sentence is edited already")
                continue
            sources, refused = self._check_sentence(edit, before, words)
            self._record("case", before, words, sources, str(edit["why"]), refused)
            if refused:
                continue
            whys.setdefault(number, []).append(str(edit["why"]))
            if edit["do"] == "insert":
                after.setdefault(number, []).append(words)
            else:
                new[number] = words
        edits = []
        for number, (start, end) in enumerate([(0, 0), *places]):
            if number in new:
                edits.append(TextEdit(start, end, new[number], _because(whys[number])))
            if number in after:
                edits.append(TextEdit(end, end, " ".join(after[number]), _because(whys[number])))
        if edits:
            self._item = self._editor.with_text(self._item, edits, self._context)

    def _check_sentence(self, edit: Mapping[str, Any], before: str, words: str) -> tuple[list[Span], str]:
        """The sources of an edit, and why it is refused where a rule is sure that it can't stand."""
        numbers = [int(each) for each in edit["sources"]]
        sources = [self._report[each - 1] for each in numbers if 1 <= each <= len(self._report)]
        if not words:
            return sources, ""
        where = f"The new sentence {words!r}"
        if len(sources) < len(numbers):
            say = f"{where} names sources that are not there: the report has {len(self._report)} sentences."
            self._object("a source of an edit is not in the report", say)
        told = [before, *(span.quote for span in sources)]
        if fault := sound(words, what="edit", source=self._document.text):
            self._object("an edit can't be used", f"{where} can't be used: {fault.reason}.")
            return sources, fault.reason
        if added := _new_numbers(words, "\n".join(told)):
            self._object("an edit has a number without a source", f"{where}: {added[0]} is not in its sources.")
            if unknown := _new_numbers(words, self._document.text):
                return sources, f"the number {unknown[0]} is not in the report"
            self._flags.append(f"the number {added[0]} is not in the sources of the edit {words!r}")
        if not sources and set(content_forms(words)) - set(content_forms(self._editor.show(self._item).case)):
            say = f"{where} has new words and no sources."
            self._object("an edit has no source", say, flag=say)
        if _turned_round(told, words):
            say = f"{where} denies what its sources say, or says what they deny."
            if self._editor.asks == "step":
                self._flags.append(say)
            else:
                self._object("an edit turns a denial round", say, flag=say)
        quoted = "\n".join(span.quote for span in sources)
        if self._editor.asks == "diagnosis" and (why := vaguer(quoted, words, (self._editor.show(self._item).answer,))):
            say = f"{where} is vaguer than its sources: {why}."
            self._object("an edit makes a finding vague", say, flag=say)
        if change := corrected("\n".join((quoted, before)), words) or _said_correction(edit):
            self._flags.append(f"{words!r}: {change}")
        return sources, self._leaks(words, where)

    def _leaks(self, words: str, where: str) -> str:
        leak = self._editor.leak(self._item, words, self._context)
        if leak is None:
            return ""
        said, sure = leak
        if not sure:  # no call for this: whoever reviews the edited item next is told
            self._flags.append(
                f"{where} shares words with a name of the answer, says a word list: {said!r}; they stay if they are a "
                "finding."
            )
            return ""
        say = f"{where} has words that name the answer, says a word list: {said!r}."
        self._object("an edit names the answer", say)
        return f"it names the answer: {said}"

    def _read_question(self) -> None:
        words, before = _line(self._value["new_question"]), self._editor.show(self._item).question
        if not words or words == before:
            return
        fault = sound(words, what="question", source=self._document.text)
        refused = fault.reason if fault else "" if words.endswith("?") else "the question does not end as a question"
        if refused:
            self._object("the new question can't be used", f"The new question {words!r} can't be used: {refused}.")
        refused = refused or self._leaks(words, "The new question")
        self._record("question", before, words, [], _why(self._value, "question"), refused)
        if not refused:
            self._item = self._editor.with_question(self._item, words)

    def _read_grading(self) -> None:
        """What a grader counts as right beside the key, and a note for the grader; a later review replaces both.

        Both are compared with the item as edited. Earlier ones do not outlive a new question or key.
        """
        accepted = []
        for wording in map(_line, self._value["accepted"]):
            if fault := sound(wording, what="accepted answer", source=self._document.text):
                say = f"The accepted answer {wording!r} can't be used: {fault.reason}."
                self._object("an accepted answer can't be used", say)
            else:
                accepted.append(wording)
        note, exam = _line(self._value["grading_note"]), self._editor.show(self._item)
        renewed = any(each["part"] in ("question", "answer") and not each["refused"] for each in self._records)
        if accepted or note or (renewed and self._item.get("grading")):
            lists = {name: self._value[name] for name in FIELDS}
            before = self._item.get("grading")
            self._regraded = before is not None and (before["accepted"], before["note"]) != (accepted, note)
            self._item = self._item.put(grading={"accepted": accepted, "note": note, **lists})
        question = _line(self._value["new_question"]) or exam.question
        found = check_grading(self._value, question=question, case=exam.case, key=exam.answer, accepted=accepted)
        self.objections += found.objections
        self._flags += found.flags
        self._mismatches += found.mismatches

    def _read_answer_and_options(self) -> None:
        """The key first: options are compared with the key as it will be."""
        item, editor, context = self._item, self._editor, self._context
        exam = editor.show(item)
        key = _line(self._value["new_answer"])
        key = key.rstrip(".") if exam.options else key
        changed = item
        refused = ""
        if key and key != exam.answer:
            changed, refused = self._new_key(key)
        letters = dict(zip(ascii_uppercase, sorted(exam.options), strict=False))
        options = [each for each in exam.options if each != exam.answer]
        for entry in self._value.get("new_options", ()):
            old, new = letters.get(str(entry["option"]), ""), _line(entry["text"]).rstrip(".")
            if old not in options or not new or new == old:
                self._not_an_option(old, new, exam.answer)
                continue
            why = editor.wrong_option(changed, new, context)
            others = [each for each in options if each != old]
            why = why or next(
                (f"it means {o!r}: {w}" for o in others if (w := editor.same_option(new, o, context))), ""
            )
            if why:
                self._object("a new option can't be used", f"The new option {new!r} can't be used: {why}.")
            elif self._editor.asks == "diagnosis" and (said := excluded_in(exam.case, new)):
                say = f"The new option {new!r}: the case itself excludes it, {said!r}."
                self._object("a new option is excluded by the case", say, flag=say)
            self._record("option", old, new, [], _why(self._value, "option"), why)
            if not why:
                options = [new if each == old else each for each in options]
                changed, item = (editor.with_option(each, old, new) for each in (changed, item))
        if key and key != exam.answer:
            clash = next((each for each in options if editor.wrong_option(changed, each, context)), "")
            if exam.options and clash and not refused:
                refused = f"the option {clash!r} would mean the same"
                self._object("the new key means an option", f"The new key {key!r} can't be used: {refused}.")
            self._record("answer", exam.answer, key, [], _why(self._value, "key"), refused)
        self._item = item if refused else changed

    def _not_an_option(self, old: str, new: str, answer: str) -> None:
        """Record a new option that is in the place of the key, or of an option that is replaced already."""
        if not new or new == old:
            return
        why = "the option is replaced already"
        if old == answer:
            why = "the key is changed in `new_answer` alone"
            self._object("the key is among the new options", "The key is changed in `new_answer` alone.")
        self._record("option", old, new, [], _why(self._value, "option"), why)

    def _new_key(self, key: str) -> tuple[RecipeItem, str]:
        """The item with another wording of its key, or why it can't have it."""
        if fault := sound(key, what="answer", source=self._document.text):
            self._object("the new key can't be used", f"The new key {key!r} can't be used: {fault.reason}.")
            return self._item, fault.reason
        if added := _new_numbers(key, self._document.text):
            self._object("the new key has a number without a source", f"The new key: {added[0]} is not in the report.")
            return self._item, f"the number {added[0]} is not in the report"
        if why := self._editor.wrong_answer(self._item, key, self._context):
            say = f"The new key {key!r} is not the old one in other words, says a rule: {why}."
            self._object("the new key is another answer", say, flag=say)
        return self._editor.with_answer(self._item, key), ""

    # Records

    def _object(self, reason: str, say: str, *, flag: str = "") -> None:
        self.objections.append((reason, say))
        if flag:
            self._flags.append(flag)

    def _record(self, part: str, before: str, after: str, sources: Sequence[Span], why: str, refused: str) -> None:
        """Keep what an edit is, and the places it rests on as evidence where it is taken."""
        self._records.append(
            {
                "review": self._name,
                "part": part,
                "before": before,
                "after": after,
                "sources": [_line(span.quote) for span in sources],
                "why": why,
                "refused": refused,
            }
        )
        if not refused:
            self._item = self._item.proven(*sources)


def _turned_round(sources: Sequence[str], words: str) -> bool:
    """Whether an edit turns a denial round, judged by the clauses of its sources that have most of its words.

    A sentence that denies one thing tells another ("was normal, and there was no fatty liver"), and a table is one long
    sentence. Words that are whole clauses of a source never turn it round.
    """
    if not turns_round(sources, words):
        return False
    told = [clause for source in sources for clause in _CLAUSE.split(source) if content_forms(clause)]
    for clause in filter(content_forms, _CLAUSE.split(words)):
        said = set(content_forms(clause))
        shared = [len(said.intersection(content_forms(each))) for each in told]
        nearest = [each for each, count in zip(told, shared, strict=True) if count == max(shared)]
        if turns_round(nearest, clause):
            return True
    return False


def _rejected(problems: Sequence[Mapping[str, Any]], details: str) -> ItemRejection:
    """A rejection by its problems, each kind once, the gravest first."""
    kinds = {each["kind"] for each in problems}
    told = "; ".join(words for kind, words in _KINDS.items() if kind in kinds) or "it can't be made publishable"
    return ItemRejection(reason=f"final review: {told}", details=details)


def _told(problems: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(f"{each['kind']}: {each['problem']}" for each in problems)


def _why(value: Mapping[str, Any], part: str) -> str:
    """The problems that a change of the question, the key or an option answers, else the reason of the review."""
    wanted = {
        "question": {"question", "second_right"},
        "key": {"key", "style", "second_right"},
        "option": {"second_right", "absurd_option", "style"},
    }[part]
    found = [each["problem"] for each in value["problems"] if each["kind"] in wanted]
    return "; ".join(found) or str(value["reason"])


def _said_correction(edit: Mapping[str, Any]) -> str:
    """What an edit corrects in the report, as its reason says; nothing if it says none."""
    why = _line(edit["why"])
    return f"it corrects the report, says its editor: {why}" if why.casefold().startswith("correct") else ""


def _because(whys: Sequence[str]) -> str:
    return f"final review: {'; '.join(whys)}"


def _new_numbers(words: str, source: str) -> list[str]:
    """Numbers that a source lacks; one that it has broken or run together ("×103" for 10 to the third) is there."""
    plain = _POWER.sub("", words.translate(_SUPERSCRIPT))
    return new_numbers(plain, f"{source}\n{_POWER.sub('', source.translate(_SUPERSCRIPT))}")
