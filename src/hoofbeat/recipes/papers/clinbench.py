"""ClinBench: the most likely primary diagnosis, by multiple choice, from complete case reports, in text and images.

The stem is the report's own patient information and test results, with every reworded sentence listed; wrong options
come from its discussion and from models; the image edition shows the figures in place of the sentences that describe
them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from hoofbeat.recipes.cases.case_diagnosis import MIN_SHARED, name_diagnosis
from hoofbeat.recipes.cases.case_editor import CaseEditor
from hoofbeat.recipes.cases.cut_check import cut_check, cuts_table
from hoofbeat.recipes.cases.differentials import (
    MAX_WORDS,
    discussed_alternatives,
    drop_options,
    further_alternatives,
    merge_step,
    option_steps,
    proposals_from_stem,
)
from hoofbeat.recipes.cases.image_stems import account_for_images, describing_sentences, find_figures, image_version
from hoofbeat.recipes.cases.item_review import (
    ItemReview,
    edits_table,
    item_review,
    review_after_trials,
)
from hoofbeat.recipes.cases.rare_diseases import CATALOGUES, known_names, rare_track
from hoofbeat.recipes.cases.shown_sentences import choose_shown, drop_call_outs, no_leaks, shown, take_case, with_shown
from hoofbeat.recipes.cases.stems import complete, long_enough, spans_of, stem_evidence
from hoofbeat.recipes.cases.two_level_review import draw_sample, findings_step, review_tasks, revise
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.corpus_steps import filter_steps, label_step
from hoofbeat.recipes.recipe import Edition, Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.steps import RecipeStep, sample, together
from hoofbeat.recipes.trials import ChoiceTrialSettings, TriedQuestion, choice_trials
from hoofbeat.records import Question


class ClinbenchSettings(ChoiceTrialSettings, frozen=True, kw_only=True):
    """Parameters of the recipe clinbench."""

    FILES: ClassVar[tuple[str, ...]] = ("reviews",)

    select: Annotated[str, Meta(description="Filter line that keeps reports about a diagnosis.")] = (
        "language=en; diagnosis"
    )
    completeness: Annotated[
        Literal["text", "sections"],
        Meta(description="Whether the four parts of a case may share one section (text) or need separate ones."),
    ] = "text"
    images: Annotated[
        Literal["any", "captions", "files"],
        Meta(
            description="Whether patient information or tests need images: no, by caption, or with files (the paper)."
        ),
    ] = "any"
    unique: Annotated[str, Meta(description="Filter line that drops near-duplicates.")] = "unique(minhash, 0.15)"
    draw: Annotated[int, Meta(description="How many complete reports to draw; 0 takes all.", ge=0)] = 0
    question: Annotated[str, Meta(description="The question that every stem ends with.", min_length=1)] = (
        "Which of these is the most likely primary diagnosis of this patient?"
    )
    quote_match: Annotated[float, Meta(description="Minimum similarity of a quote and its source.", ge=0.5, le=1)] = 0.9
    named_by: Annotated[
        float, Meta(description="Minimum share of a disease's words in a quote for it.", gt=0, le=1)
    ] = MIN_SHARED
    leak_match: Annotated[
        float, Meta(description="Minimum similarity of a word that counts as a leak.", ge=0.5, le=1)
    ] = 0.9
    leak_negated: Annotated[bool, Meta(description="Whether a denied mention of the diagnosis is a leak.")] = True
    diagnosis_words: Annotated[int, Meta(description="Maximum words of a diagnosis.", ge=1)] = 15
    stem_words: Annotated[int, Meta(description="Minimum words of a stem.", ge=1)] = 80
    alternatives: Annotated[int, Meta(description="Alternatives from the report's discussion.", ge=0)] = 5
    proposals: Annotated[int, Meta(description="Alternatives proposed from the stem alone.", ge=0)] = 5
    option_words: Annotated[int, Meta(description="Maximum words of an option.", ge=1)] = MAX_WORDS
    min_options: Annotated[int, Meta(description="Minimum options of a question.", ge=2)] = 6
    max_options: Annotated[int, Meta(description="Maximum options of a question.", ge=2)] = 11
    choose: Annotated[bool, Meta(description="Ask a model which candidates make good options.")] = True
    item_review: ItemReview = True
    specialty: Annotated[
        Literal["rule", "model"], Meta(description="How a diagnosis is sorted into the 11 specialties.")
    ] = "rule"
    rare_cover: Annotated[
        float, Meta(description="Minimum share of a diagnosis's words that a rare disease's name makes up.", gt=0, le=1)
    ] = 0.6
    rare_catalogues: Annotated[
        tuple[str, ...], Meta(description="Catalogues whose entries count as rare diseases.")
    ] = CATALOGUES
    vocabularies: Annotated[tuple[str, ...], Meta(description="Vocabularies that say which names mean the same.")] = (
        "icd10cm",
        "rare-diseases",
    )
    describing: Annotated[
        Literal["rule", "model"],
        Meta(description="What finds sentences that describe an image: only rules, or also a model."),
    ] = "model"
    image_pixels: Annotated[int, Meta(description="Minimum pixels of an image's shorter side.", ge=1)] = 64
    image_words: Annotated[int, Meta(description="Minimum words of a stem in the image edition.", ge=0)] = 30
    physicians: Annotated[float, Meta(description="Share of the items drawn for physicians.", ge=0, le=1)] = 0.1
    reviews: Annotated[str, Meta(description="File of reviewers' labels and revisions (JSONL or CSV).")] = ""
    findings: Annotated[
        Literal["revise", "reject"],
        Meta(description="Whether an item with findings waits for revision or is rejected."),
    ] = "revise"
    min_passed: Annotated[float, Meta(description="Minimum share of the sample that passes.", ge=0, le=1)] = 0.95


def _steps(s: ClinbenchSettings) -> list[RecipeStep]:
    editor = CaseEditor(partial(_exam, s), max_words=s.option_words)
    return [
        *filter_steps(s.select),
        complete("complete case", by=s.completeness, images=s.images),
        *filter_steps(s.unique),
        sample("draw", s.draw),
        take_case("patient and tests"),
        name_diagnosis("final diagnosis", max_words=s.diagnosis_words, min_match=s.quote_match, shared=s.named_by),
        choose_shown("what is shown", min_words=s.stem_words, min_match=s.quote_match, negated=s.leak_negated),
        *cut_check("cuts checked", shown=shown, put=with_shown, answer="diagnosis", question=s.question),
        drop_call_outs("call-outs"),
        long_enough("length", s.stem_words),
        no_leaks("leaks", min_match=s.leak_match, negated=s.leak_negated),
        *together(
            discussed_alternatives(
                "alternatives discussed",
                s.alternatives,
                min_match=s.quote_match,
                max_words=s.option_words,
                shared=s.named_by,
                vocabularies=s.vocabularies,
            ),
            proposals_from_stem("proposals", s.proposals, max_words=s.option_words, vocabularies=s.vocabularies),
        ),
        further_alternatives(
            "alternatives asked for", s.alternatives, max_words=s.option_words, vocabularies=s.vocabularies
        ),
        merge_step("candidates", vocabularies=s.vocabularies),
        *option_steps(
            "options",
            choose=s.choose,
            minimum=s.min_options,
            maximum=s.max_options,
            vocabularies=s.vocabularies,
            max_words=s.option_words,
        ),
        *(item_review(editor) if s.item_review else ()),
        *choice_trials(
            s,
            partial(_exam, s),
            partial(drop_options, minimum=s.min_options),
            review=review_after_trials(editor) if s.item_review else None,
        ),
        label_step("specialty", "clinbench", by=s.specialty, text=known_names, vocabulary="icd10cm"),
        rare_track("rare diseases", cover=s.rare_cover, catalogues=s.rare_catalogues),
        draw_sample("sample for physicians", s.physicians),
        revise("revisions", s.reviews, min_options=s.min_options, min_match=s.quote_match),
        no_leaks("leaks after revision", min_match=s.leak_match, negated=s.leak_negated),
        find_figures("figures", min_pixels=s.image_pixels),
        *([describing_sentences("image sentences", min_match=s.quote_match)] if s.describing == "model" else []),
        image_version("image version", min_words=s.image_words, min_match=s.quote_match),
        findings_step("review", s.reviews, action=s.findings, min_passed=s.min_passed),
    ]


def _finish(items: Sequence[RecipeItem], context: RecipeContext) -> RecipeOutput:
    questions = tuple(_question(item, context) for item in items)
    shown = {item.id: item["image"] for item in items if "image" in item.values}
    images = tuple(
        msgspec.structs.replace(each, context=shown[each.id]["text"], images=tuple(shown[each.id]["images"]))
        for each in questions
        if each.id in shown
    )
    _account(items, context)
    account_for_images(items, context)
    about = "Figures in place of the text that describes them; questions without a usable image are left out."
    edition = Edition(name="image", about=about, questions=images)
    context.tables["cuts"] = cuts_table(items)
    if context.settings.item_review:
        context.tables["edits"] = edits_table(items)
    tasks = review_tasks(items, context.settings.question)
    return RecipeOutput(questions=questions, editions=(edition,), review=tuple(tasks))


def _exam(s: ClinbenchSettings, item: RecipeItem) -> TriedQuestion:
    options = tuple(each["text"] for each in item["options"])
    asked = str(item.get("question") or s.question)
    return TriedQuestion(question=asked, answer=item["diagnosis"], case=item["stem"], options=options)


def _question(item: RecipeItem, context: RecipeContext) -> Question:
    document = context.document(item.documents[0])
    proven = item.proven(*stem_evidence(document, spans_of(item)))
    return Question(
        id=item.id,
        text=str(item.get("question") or context.settings.question),
        context=item["stem"],
        answer=item["diagnosis"],
        options=tuple(each["text"] for each in item["options"]),
        documents=item.documents,
        evidence=proven.evidence,
        facets=item.facets,
        lineage=item.lineage,
    )


def _account(items: Sequence[RecipeItem], context: RecipeContext) -> None:
    """How many options there are, where they come from, and what was left out and why."""
    origins = Counter(each["origin"] for item in items for each in item["options"])
    context.metrics["options"] = {
        "mean": round(sum(origins.values()) / len(items), 4) if items else None,
        "origins": dict(sorted(origins.items())),
    }
    context.tables["dropped-options"] = TableFile(
        ("item", "option", "origin", "why"),
        [(item.id, each["text"], each["origin"], each["why"]) for item in items for each in item.get("dropped", ())],
    )


RECIPE = Recipe(
    name="clinbench",
    title="ClinBench: primary diagnosis by multiple choice",
    about="Complete case reports become questions about the primary diagnosis, with six or more options and images.",
    settings=ClinbenchSettings,
    steps=_steps,
    finish=_finish,
    begin=from_documents,
    vocabularies=("icd10cm", "rare-diseases"),
)
