"""CUPCase: which diagnosis a published case came to, as multiple choice and as free text (seed paper 001).

A model that sees the whole report names its diagnosis and says which sentences of the case presentation an examinee may
see, reworded where one tells a finding and the answer at once; a second pass sees the case before and after, changes
what it names, and says how specific the answer can be. Three distractors from
ICD-10-CM, chosen by the model among candidates or by the paper's ranks; a final review of the whole item; a discipline;
a share of all of it for people to check.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, ClassVar, Literal

from msgspec import Meta

from hoofbeat.corpus.roles import find_case
from hoofbeat.recipes.cases.answer_options import shuffled
from hoofbeat.recipes.cases.case_diagnosis import VOCABULARIES, name_diagnosis, with_flags
from hoofbeat.recipes.cases.case_editor import CaseEditor
from hoofbeat.recipes.cases.cut_check import cut_check, cuts_table
from hoofbeat.recipes.cases.distractors import NO_DIAGNOSES, candidate_step, distractor_step
from hoofbeat.recipes.cases.item_review import (
    ItemReview,
    edits_table,
    item_review,
    review_after_trials,
    with_edits,
)
from hoofbeat.recipes.cases.option_choice import Candidate, choose_options
from hoofbeat.recipes.cases.redaction import RedactedSpan, redact
from hoofbeat.recipes.cases.shown_sentences import (
    choose_shown,
    drop_call_outs,
    held_images,
    no_leaks,
    shown,
    with_shown,
)
from hoofbeat.recipes.cases.stems import captions, long_enough, several_patients
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.corpus_steps import filter_steps, label_step
from hoofbeat.recipes.recipe import Edition, Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, drawn_for_review, reviewed, says_yes
from hoofbeat.recipes.steps import RecipeStep, check, sample
from hoofbeat.recipes.trials import ChoiceTrialSettings, TriedQuestion, choice_trials
from hoofbeat.records import Question

QUESTION = "What is the most likely diagnosis?"
LEAK_CRITERIA = ("diagnosis is right", "diagnosis is not mentioned", "nothing after the diagnosis")
DISTRACTOR_CRITERIA = ("no distractor is the diagnosis",)
CRITERIA = (*LEAK_CRITERIA, *DISTRACTOR_CRITERIA)

_DISTRACTORS = 3
_FIGURE = re.compile(
    r"\bfig(?:ure)?s?\b\.?\s*(\d+(?:\s*[a-h])?(?:\s*(?:,|and|&|-|–|to)\s*(?:\d+\s*)?[a-h\d])*)", re.IGNORECASE
)


class CupcaseSettings(ChoiceTrialSettings, frozen=True, kw_only=True):
    """Parameters of the recipe; the defaults are the paper's where it names one."""

    FILES: ClassVar[tuple[str, ...]] = ("reviews",)

    filters: Annotated[str, Meta(description="Corpus filters for the reports, such as not retracted.")] = ""
    sample: Annotated[int, Meta(description="Reports to draw; 0 takes all.", ge=0)] = 0
    min_section_words: Annotated[int, Meta(description="Minimum words of a case presentation.", ge=1)] = 100
    min_words: Annotated[int, Meta(description="Minimum words of a case after the cuts.", ge=1)] = 50
    max_diagnosis_words: Annotated[int, Meta(description="Maximum words of a diagnosis.", ge=1)] = 20
    quote_match: Annotated[float, Meta(description="Minimum similarity of a quote and its source.", gt=0, le=1)] = 0.9
    distractors: Annotated[
        Literal["chosen", "ranks"],
        Meta(description="Whether the model chooses among candidates, or ranks of similarity decide (the paper)."),
    ] = "chosen"
    candidates: Annotated[int, Meta(description="Number of candidate distractors that the model sees.", ge=3)] = 16
    option_words: Annotated[int, Meta(description="Maximum words of a distractor.", ge=1)] = 15
    first_rank: Annotated[int, Meta(description="Rank of the first description that becomes a distractor.", ge=1)] = 2
    last_rank: Annotated[int, Meta(description="Rank of the last one, if none is skipped.", ge=1)] = 4
    deepest: Annotated[int, Meta(description="Last rank at which to look for distractors.", ge=1)] = 200
    encounters: Annotated[
        bool, Meta(description="Whether to include codes that only add an encounter to an injury.")
    ] = True
    leave_out: Annotated[
        tuple[str, ...], Meta(description="Beginnings of codes that are neither diagnoses nor distractors.")
    ] = NO_DIAGNOSES
    item_review: ItemReview = True
    labels: Annotated[Literal["rule", "model"], Meta(description="What labels the discipline.")] = "rule"
    review_share: Annotated[
        float, Meta(description="Share of the items that people check after each step.", ge=0, le=1)
    ] = 0.01
    reviews: Annotated[str, Meta(description="Reviewers' labels, JSONL or CSV; without them the drawn items wait.")] = (
        ""
    )


def _steps(s: CupcaseSettings) -> list[RecipeStep]:
    editor = CaseEditor(_exam, max_words=s.option_words)
    return [
        *filter_steps(s.filters),
        sample("sample", s.sample),
        check("case presentation", _case),
        name_diagnosis("final diagnosis", max_words=s.max_diagnosis_words, min_match=s.quote_match),
        choose_shown("first pass", min_words=s.min_words, min_match=s.quote_match, images=True),
        *cut_check("second pass", shown=shown, put=with_shown, answer="diagnosis", question=QUESTION),
        drop_call_outs("call-outs", images=True),
        no_leaks("leaks"),
        long_enough("length", s.min_words),
        *_distractors(s),
        *(item_review(editor) if s.item_review else ()),
        *choice_trials(s, _exam, _with_others, review=review_after_trials(editor) if s.item_review else None),
        label_step("discipline", "cupcase", facet="discipline", by=s.labels),
        reviewed("review", s.reviews, lambda _item, labels: _reviewed(labels, s.reviews), criteria=CRITERIA),
    ]


def _distractors(s: CupcaseSettings) -> list[RecipeStep]:
    if s.distractors == "ranks":
        by_ranks = distractor_step(
            "distractors",
            ranks=(s.first_rank, max(s.first_rank, s.last_rank)),
            encounters=s.encounters,
            deepest=s.deepest,
            leave_out=s.leave_out,
            guards=VOCABULARIES,
        )
        return [by_ranks]
    return [
        candidate_step("candidates", count=2 * s.candidates, leave_out=s.leave_out, guards=VOCABULARIES),
        choose_options(
            "distractors",
            minimum=_DISTRACTORS,
            maximum=2 * _DISTRACTORS,
            vocabularies=VOCABULARIES,
            put=_with_distractors,
            shown=s.candidates,
            max_words=s.option_words,
        ),
    ]


def _with_distractors(item: RecipeItem, chosen: list[Candidate], _context: RecipeContext) -> RecipeItem:
    """The first three are the distractors; the others are spare, for one that turns out bad."""
    taken, spare = chosen[:_DISTRACTORS], chosen[_DISTRACTORS:]
    return item.put(
        distractors=[each.text for each in taken],
        distractor_codes=[each.code for each in taken],
        spare=[each.text for each in spare],
    )


def _with_others(item: RecipeItem, faults: Mapping[str, str], _context: RecipeContext) -> Outcome:
    """Spare distractors in the place of those that are also right; what goes is listed."""
    kept = [(text, code) for text, code in zip(item["distractors"], item["distractor_codes"], strict=True)]
    kept = [each for each in kept if each[0] not in faults]
    spare = list(item.get("spare", ()))
    needed = len(item["distractors"]) - len(kept)
    if len(spare) < needed:
        details = "; ".join(f"{option} {why}" for option, why in faults.items())
        return ItemRejection(reason="too few distractors that exclude the diagnosis", details=details)
    taken = [*kept, *((text, "") for text in spare[:needed])]
    gone = [{"text": option, "origin": "distractor", "why": why} for option, why in faults.items()]
    return item.put(
        distractors=[text for text, _ in taken],
        distractor_codes=[code for _, code in taken],
        spare=spare[needed:],
        dropped=[*item.get("dropped", ()), *gone],
    )


# The case


def _case(item: RecipeItem, context: RecipeContext) -> Outcome:
    """The section that presents the case, without its heading and without captions; references to figures stay."""
    document = context.document(item.documents[0])
    span = find_case(document)
    if span is None:
        return ItemRejection(reason="no case presentation")
    if several_patients(document):
        return ItemRejection(reason="the report describes several patients")
    start = next((section.body for section in document.sections if section.start == span[0]), span[0])
    holes = (RedactedSpan(*place, "a figure's caption") for place in captions(document))
    case = redact(document, (start, span[1])).without(*holes)
    count = len(case.text.split())
    if count < context.settings.min_section_words:
        return ItemRejection(reason="the case presentation is too short", details=f"{count} words")
    return with_shown(item, case)


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
    if context.settings.item_review:
        context.tables["edits"] = edits_table(items)
    return RecipeOutput(
        questions=choice,
        editions=(Edition(name="free", about="The same cases without options: free text.", questions=free),),
        review=tuple(_tasks(items, context)),
    )


def _asked(item: RecipeItem) -> str:
    return str(item.get("question") or QUESTION)


def _exam(item: RecipeItem) -> TriedQuestion:
    options = (item["diagnosis"], *item["distractors"])
    return TriedQuestion(question=_asked(item), answer=item["diagnosis"], case=item["stem"], options=options)


def _question(item: RecipeItem, context: RecipeContext, *, options: bool) -> Question:
    every = (item["diagnosis"], *item["distractors"])
    return Question(
        id=item.id,
        text=_asked(item),
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
    held = held_images(context.document(item.documents[0]), context)
    return tuple(dict.fromkeys(file for number, files in held.items() if number in numbers for file in files))


def _tasks(items: Sequence[RecipeItem], context: RecipeContext) -> list[ReviewTask]:
    """A seeded share after each step: the case after both passes, and the distractors."""
    tasks: list[ReviewTask] = []
    for step, stem in (("first pass", "first_stem"), ("second pass", "stem")):
        tasks += [
            ReviewTask(
                item=item.id, kind="leak", criteria=LEAK_CRITERIA, why="drawn by the seed", step=step,
                question=item[stem],
                shown=with_edits(
                    item, with_flags(item, {"diagnosis": item["diagnosis"], "quote": item["diagnosis_quote"]})
                ),
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
    about="Case presentations without their diagnosis, as multiple choice with three distractors from ICD-10-CM and as "
    "free text (edition free).",
    settings=CupcaseSettings,
    begin=from_documents,
    steps=_steps,
    finish=_finish,
    vocabularies=VOCABULARIES,
)
