"""CUPCase: which diagnosis a published case came to, as multiple choice and as free text (seed paper 001).

The case presentation of each report; a model says where its final diagnosis is stated, and rules take that, every other
mention and all that follows out of the text; a second pass sees the text before and after, and puts back or takes out
what it names; three distractors from the nearest ICD-10-CM descriptions; a discipline; a share of all of it for people
to check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from hoofbeat.corpus.roles import find_case
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.answer_options import plain_option, shuffled
from hoofbeat.recipes.cases.case_diagnosis import (
    VOCABULARIES,
    names,
    not_one_diagnosis,
    other_names,
    words_stand,
    written_out,
)
from hoofbeat.recipes.cases.cut_check import cut_check, cuts_table
from hoofbeat.recipes.cases.distractors import NO_DIAGNOSES, distractor_step
from hoofbeat.recipes.cases.redaction import (
    RedactedSpan,
    Redaction,
    cut_after_diagnosis,
    drop_empty_headings,
    find_made,
    is_provisional,
    last_said_made,
    redact,
    remove_mentions,
    sentence_at,
)
from hoofbeat.recipes.cases.stems import long_enough, several_patients
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.corpus_steps import filter_steps, label_step
from hoofbeat.recipes.guards.leaks import Leak, find_leaks, leak_check
from hoofbeat.recipes.guards.text_checks import prove
from hoofbeat.recipes.recipe import Edition, Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, drawn_for_review, reviewed, says_yes
from hoofbeat.recipes.steps import RecipeStep, ask, check, sample
from hoofbeat.recipes.trials import ChoiceTrialSettings, ExamQuestion, choice_trials
from hoofbeat.records import Document, Question

QUESTION = "What is the most likely diagnosis?"
LEAK_CRITERIA = ("diagnosis is right", "diagnosis is not mentioned", "nothing after the diagnosis")
DISTRACTOR_CRITERIA = ("no distractor is the diagnosis",)
CRITERIA = (*LEAK_CRITERIA, *DISTRACTOR_CRITERIA)

_MIN_AROUND = 100
_FIGURE = re.compile(
    r"\bfig(?:ure)?s?\b\.?\s*(\d+(?:\s*[a-h])?(?:\s*(?:,|and|&|-|–|to)\s*(?:\d+\s*)?[a-h\d])*)", re.IGNORECASE
)


class CupcaseSettings(ChoiceTrialSettings, frozen=True, kw_only=True):
    """Parameters of the recipe; the defaults are the paper's where it names one."""

    FILES: ClassVar[tuple[str, ...]] = ("reviews",)

    filters: Annotated[str, Meta(description="Corpus filters for the reports, such as not retracted.")] = ""
    sample: Annotated[int, Meta(description="Reports to draw; 0 takes all.", ge=0)] = 0
    min_section_words: Annotated[int, Meta(description="Fewest words of a case presentation.", ge=1)] = 100
    min_words: Annotated[int, Meta(description="Fewest words left of a case.", ge=1)] = 50
    max_diagnosis_words: Annotated[int, Meta(description="Most words of a diagnosis.", ge=1)] = 20
    quote_match: Annotated[float, Meta(description="How alike a quote and its source must be.", gt=0, le=1)] = 0.9
    first_rank: Annotated[int, Meta(description="Rank of the nearest description that is a distractor.", ge=1)] = 2
    last_rank: Annotated[int, Meta(description="Rank of the last one, if none is passed over.", ge=1)] = 4
    deepest: Annotated[int, Meta(description="How far down the ranks distractors are looked for.", ge=1)] = 200
    encounters: Annotated[
        bool, Meta(description="Whether codes that only add an encounter to an injury are among the descriptions.")
    ] = True
    leave_out: Annotated[
        tuple[str, ...], Meta(description="Beginnings of codes that are no diagnoses and no distractors.")
    ] = NO_DIAGNOSES
    labels: Annotated[Literal["rule", "model"], Meta(description="Who labels the discipline.")] = "rule"
    review_share: Annotated[
        float, Meta(description="Share of the items that people check after each step.", ge=0, le=1)
    ] = 0.01
    reviews: Annotated[str, Meta(description="What reviewers said, JSONL or CSV; without it the drawn ones wait.")] = ""


def _steps(s: CupcaseSettings) -> list[RecipeStep]:
    return [
        *filter_steps(s.filters),
        sample("sample", s.sample),
        check("case presentation", _case),
        ask("first pass", "cupcase-diagnosis", values=_case_shown, read=_first_pass),
        leak_check("leaks after the first pass"),
        *cut_check("second pass", shown=_case_of, put=_with_case, answer="diagnosis", question=QUESTION),
        leak_check("leaks after the second pass"),
        long_enough("length", s.min_words),
        distractor_step(
            "distractors",
            ranks=(s.first_rank, max(s.first_rank, s.last_rank)),
            encounters=s.encounters,
            deepest=s.deepest,
            leave_out=s.leave_out,
            guards=VOCABULARIES,
        ),
        *choice_trials(s, _exam),
        label_step("discipline", "cupcase", facet="discipline", by=s.labels),
        reviewed("review", s.reviews, lambda _item, labels: _reviewed(labels, s.reviews), criteria=CRITERIA),
    ]


# The case


def _case(item: RecipeItem, context: RecipeContext) -> Outcome:
    """The section that presents the case, without its heading and without captions; references to figures stay."""
    document = context.document(item.documents[0])
    span = find_case(document)
    if span is None:
        return ItemRejection(reason="no case presentation")
    if several_patients(document):
        return ItemRejection(reason="the report tells of several patients")
    start = next((section.body for section in document.sections if section.start == span[0]), span[0])
    captions = (RedactedSpan(f.start, f.end, "a figure's caption") for f in document.figures if f.start < f.end)
    case = redact(document, (start, span[1])).without(*captions)
    count = len(case.text.split())
    if count < context.settings.min_section_words:
        return ItemRejection(reason="the case presentation is too short", details=f"{count} words")
    return _with_case(item, case)


def _with_case(item: RecipeItem, case: Redaction) -> RecipeItem:
    case = drop_empty_headings(case)
    return item.put(case=[case.start, case.end], removed=case.listed(), stem=case.text)


def _case_of(item: RecipeItem, context: RecipeContext) -> Redaction:
    start, end = item["case"]
    return redact(context.document(item.documents[0]), (int(start), int(end)), item["removed"])


def _case_shown(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    return {"case": context.fit(str(item["stem"]), load_prompt("cupcase-diagnosis"))}


# First pass


def _first_pass(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    """The diagnosis, proven by a quote; everything after it was made and every mention of it are taken out."""
    s: CupcaseSettings = context.settings
    case = _case_of(item, context)
    document = case.document
    diagnosis = written_out(plain_option(str(value["diagnosis"])), document)
    if wrong := not_one_diagnosis(diagnosis, document, context, max_words=s.max_diagnosis_words):
        return wrong
    named = _Named(diagnosis, other_names(value["also_called"], diagnosis, document), document, context)
    if not named.mentions(document.text) and not words_stand(diagnosis, document.text):
        return ItemRejection(reason="the diagnosis is not named in the source", details=diagnosis)
    proven = _quoted(item, str(value["quote"]), named, case, s.quote_match)
    if isinstance(proven, ItemRejection):
        return proven
    stated = next(span.start for span in proven.evidence if span not in item.evidence)
    cut = cut_after_diagnosis(case, stated, named.mentions, s.min_words)
    if cut is None:
        details = str(proven["diagnosis_quote"])[:300]
        return ItemRejection(reason="too little of the case is told before the diagnosis", details=details)
    clean = remove_mentions(cut, named.mentions, "mentions the diagnosis")
    kept = proven.put(diagnosis=diagnosis[:1].upper() + diagnosis[1:], synonyms=named.synonyms)
    first = _with_case(kept, clean)
    return first.put(first_stem=first["stem"])


def _quoted(
    item: RecipeItem, quote: str, named: _Named, case: Redaction, min_match: float
) -> RecipeItem | ItemRejection:
    """The item with the words that state its diagnosis: the model's quote, or the sentence a rule finds."""
    proven = prove(item, case.document, [quote], "diagnosis", min_match=min_match, within=(case.start, case.end))
    if isinstance(proven, RecipeItem):
        stated = next(span.start for span in proven.evidence if span not in item.evidence)
        sentence = sentence_at(case, stated)
        if named.in_words(f"{sentence} {quote}", sentence):
            if is_provisional(quote):
                return ItemRejection(reason="the quoted diagnosis stood for a while only", details=quote[:300])
            if named.denied(sentence if named.mentions(sentence) else quote):
                return ItemRejection(reason="the quoted diagnosis is denied", details=quote[:300])
            return proven.put(diagnosis_quote=quote, quote_by="model")
        details = f"{named.diagnosis}: {quote[:300]}"
        proven = ItemRejection(reason="the quote for the diagnosis does not name it", details=details)
    place = find_made(case, named.affirmed) if named.discussed(case) else None
    if place is None:
        return proven
    sentence = case.document.text[slice(*place)]
    found = prove(item, case.document, [sentence], "diagnosis", within=place)
    return found.put(diagnosis_quote=sentence, quote_by="rule") if isinstance(found, RecipeItem) else proven


class _Named:
    """A diagnosis with its other names: where a text mentions it, and whether it denies it."""

    def __init__(self, diagnosis: str, synonyms: list[str], document: Document, context: RecipeContext) -> None:
        self.diagnosis = diagnosis
        self.synonyms = synonyms
        self._document = document
        self._vocabularies = [context.vocabulary(name) for name in VOCABULARIES]

    def mentions(self, text: str) -> list[tuple[int, int]]:
        """Every mention, a denied one too."""
        return [(leak.start, leak.end) for leak in self._leaks(text)]

    def affirmed(self, sentence: str) -> list[tuple[int, int]]:
        """The mentions that are not denied and have the name's own words or a short form of it."""
        kept = [leak for leak in self._leaks(sentence) if not self._denies(sentence, leak)]
        return [(leak.start, leak.end) for leak in kept if names(leak.text, self.diagnosis, self._document)]

    def denied(self, sentence: str) -> bool:
        """Whether a sentence mentions it only to deny it."""
        leaks = self._leaks(sentence)
        return bool(leaks) and all(self._denies(sentence, leak) for leak in leaks)

    def in_words(self, text: str, sentence: str) -> bool:
        """Whether a sentence mentions it, or the text has most of its words."""
        return bool(self._leaks(sentence)) or names(text, self.diagnosis, self._document)

    def discussed(self, case: Redaction) -> bool:
        """Whether the report names it outside its case too, as it does no passing finding; a bare case need not."""
        text = case.document.text
        around = f"{case.document.title}\n\n{text[: case.start]}\n\n{text[case.end :]}"
        return len(around.split()) < _MIN_AROUND or bool(self._leaks(around))

    def _leaks(self, text: str) -> list[Leak]:
        return find_leaks(
            text, self.diagnosis, synonyms=self.synonyms, source=self._document, vocabularies=self._vocabularies
        )

    def _denies(self, sentence: str, leak: Leak) -> bool:
        if leak.kind != "negated":
            return False
        after = last_said_made(sentence, leak.start)
        rest = [] if after is None else self._leaks(sentence[after:])
        return after is None or not any(each.start == leak.start - after and each.kind != "negated" for each in rest)


# Review and questions


def _reviewed(labels: Mapping[str, Sequence[ReviewLabel]], where: str) -> ItemRejection | None:
    """One reviewer who says no to a criterion is enough."""
    for criterion in CRITERIA:
        for label in labels.get(criterion, ()):
            if not says_yes(label, where):
                return ItemRejection(reason=f"a reviewer said no to: {criterion}", details=label.note)
    return None


def _finish(items: Sequence[RecipeItem], context: RecipeContext) -> RecipeOutput:
    choice = tuple(_question(item, context, options=True) for item in items)
    free = tuple(_question(item, context, options=False) for item in items)
    context.tables["cuts"] = cuts_table(items)
    return RecipeOutput(
        questions=choice,
        editions=(Edition(name="free", about="The same cases without options: free text.", questions=free),),
        review=tuple(_tasks(items, context)),
    )


def _exam(item: RecipeItem) -> ExamQuestion:
    options = (item["diagnosis"], *item["distractors"])
    return ExamQuestion(question=QUESTION, answer=item["diagnosis"], case=item["stem"], options=options)


def _question(item: RecipeItem, context: RecipeContext, *, options: bool) -> Question:
    every = (item["diagnosis"], *item["distractors"])
    return Question(
        id=item.id,
        text=QUESTION,
        context=item["stem"],
        answer=item["diagnosis"],
        options=shuffled(every, context.rng("options", item.id)) if options else (),
        images=_images(item, context),
        documents=item.documents,
        evidence=item.evidence,
        facets=item.facets,
        lineage=item.lineage,
    )


def _images(item: RecipeItem, context: RecipeContext) -> tuple[str, ...]:
    """The images of the figures that the case still refers to, where the corpus holds them."""
    numbers = {number for match in _FIGURE.finditer(item["stem"]) for number in re.findall(r"\d+", match[1])}
    document = context.document(item.documents[0])
    files = [f for each in document.figures if numbers & set(re.findall(r"\d+", each.label)) for f in each.files]
    return tuple(file for file in dict.fromkeys(files) if context.corpus.artefact.has(file))


def _tasks(items: Sequence[RecipeItem], context: RecipeContext) -> list[ReviewTask]:
    """A seeded share after each step: the case after both passes, and the distractors."""
    tasks: list[ReviewTask] = []
    for step, stem in (("first pass", "first_stem"), ("second pass", "stem")):
        tasks += [
            ReviewTask(
                item=item.id, kind="leak", criteria=LEAK_CRITERIA, why="drawn by the seed", step=step,
                question=item[stem], shown={"diagnosis": item["diagnosis"], "quote": item["diagnosis_quote"]},
            )
            for item in _drawn(items, context, step)
        ]  # fmt: skip
    tasks += [
        ReviewTask(
            item=item.id, kind="distractors", criteria=DISTRACTOR_CRITERIA, why="drawn by the seed",
            step="distractors", question=item["diagnosis"],
            shown={chr(ord("A") + place): text for place, text in enumerate(item["distractors"])},
        )
        for item in _drawn(items, context, "distractors")
    ]  # fmt: skip
    return tasks


def _drawn(items: Sequence[RecipeItem], context: RecipeContext, step: str) -> list[RecipeItem]:
    waiting = [item for item in items if item.get("review") == "waiting"]
    drawn = {item.id for item in drawn_for_review(items, context, step, context.settings.review_share)}
    return [item for item in waiting if item.id in drawn]


RECIPE = Recipe(
    name="cupcase",
    title="CUPCase: the diagnosis of uncommon cases",
    about="Case presentations without their diagnosis, as multiple choice with three ICD-10-CM neighbours and as free "
    "text (edition free).",
    settings=CupcaseSettings,
    begin=from_documents,
    steps=_steps,
    finish=_finish,
)
