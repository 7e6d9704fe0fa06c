"""OGCaReBench: what to do next where guidelines end, asked of rare case reports (arXiv 2605.21807).

Recent, hardly cited reports; from each its significance and decisive step, what came before it and what ruled standard
care out; a question that stops before the step; a call that compares it with the report and corrects it; one that
looks only at what was running and known at that moment; another patient with the same problem, by a second model; the
physicians' review. A report is shown as numbered sentences and the model points at them: what it points at is the
quote. What a rule objects to is told to the model once: what can't stay is rejected if it comes again. What a rule only
doubts is told to the verifying call; the model is asked first only where nobody later sees both sides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.roles import case_spans
from hoofbeat.corpus.terms import content_forms, find_abbreviations
from hoofbeat.facets import year_of
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.cut_check import cuts_table
from hoofbeat.recipes.cases.decision_moment import MomentCheck, moment_step
from hoofbeat.recipes.cases.decisive_step import (
    asks_yes_no,
    begins_at,
    fact_before,
    is_whole_name,
    lies,
    may_begin_at,
    names_step,
    no_action,
    says_before,
    step_leaks,
    told_at,
)
from hoofbeat.recipes.cases.distraction import (
    distraction_steps,
    distraction_table,
    giving_away,
    held_words,
    listed,
    telling_words,
)
from hoofbeat.recipes.cases.item_review import (
    ItemReview,
    TextEdit,
    dated,
    edits_table,
    graded_as_right,
    item_review,
    review_after_trials,
    with_edits,
)
from hoofbeat.recipes.cases.stems import names_test
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.corpus_steps import filter_steps, label_step, rarity_step
from hoofbeat.recipes.guards.text_checks import new_numbers, numbered, pointed, sound
from hoofbeat.recipes.recipe import Edition, Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ACCEPT, ReviewLabel, ReviewTask, read_rating, reviewed
from hoofbeat.recipes.steps import RecipeStep, ask, sample, together, with_calls_ahead
from hoofbeat.recipes.trials import OpenTrial, OpenTrialSettings, TriedQuestion, account_for_trials, open_trial
from hoofbeat.records import AcceptedAnswer, Document, Question, Span
from hoofbeat.retrieval.index.chunking import sentence_spans

Read = Callable[[RecipeItem, dict[str, Any], RecipeContext], Outcome | AskAgain]
_QUESTION = {"written": "ogcare-question", "facts": "ogcare-ask"}
CRITERIA = ("medical alignment", "need for expertise")
_SAME_STEP = 0.5  # of the telling words of a new key, in the old one or the step
_STILL_TOLD = 0.7  # of the words of a core fact, in a context that still tells it
_RETOLD = 0.5  # of the words of a core fact, in sentences that tell what is left of it, or that told it and are gone
_BESIDE = 400  # characters kept free for a step and the fences
_HIDDEN = {
    "significance": {"back"},
    "course": {"back", "abstract", "introduction"},
    "verify": {"back", "abstract", "introduction"},
}
_LEFT_OUT = {
    "decisive": "it tells the decisive step",
    "after": "the model says that it came after the decisive step",
    "not listed": "the model does not list it",
}
_NO_LIMITATION = (
    "You list too few limitations. Look again for what made the usual way insufficient "
    "for this patient: it failed, settled nothing, was not available, refused or too dangerous, or no guidance covers "
    "this situation. Where the step is a test, that is what the usual tests left open; where it is to withhold or stop "
    "something, why the usual treatment was not the better choice. Leave the list empty only if the report has nothing "
    "of this; the case is then used only if its step is a test."
)
_VERDICTS = {
    "answer_is_step": "the answer is not the significance",
    "supported": "the report does not show that the answer helped",
}
_REFUSED = {
    "standard-step": "only a standard procedure on a rare disease",
    "product": "promotes a product",
    "no-case": "tells of no patient's care",
}


class OgcareSettings(OpenTrialSettings, frozen=True, kw_only=True):
    """Parameters of the recipe.

    The paper's are `year`, `total`, `other`, `sample` and `min_rating`. It gives no figure for the others:
    they bound what a model may return, and were set by reading what models return for real reports.
    """

    FILES: ClassVar[tuple[str, ...]] = ("venue_list", "citations", "reviews")

    venues: Annotated[
        Literal["medical", "all", "any"],
        Meta(description="Journals to take: the medical ones of the paper's list, all of that list, or any."),
    ] = "medical"
    venue_list: Annotated[str, Meta(description="Your own .tsv in place of the paper's list of journals.")] = ""
    unknown_venue: Annotated[
        Literal["keep", "drop"], Meta(description="What to do with reports that state no journal.")
    ] = "keep"
    citations: Annotated[str, Meta(description="Citation file: citing id, cited id, whether a case report.")] = ""
    year: Annotated[int, Meta(description="Drop reports published in or before this year.", ge=0)] = 2022
    total: Annotated[int, Meta(description="Maximum articles that cite a report.", ge=0)] = 3
    other: Annotated[int, Meta(description="Maximum citing articles that are not case reports.", ge=0)] = 1
    filters: Annotated[str, Meta(description="Further corpus filters, such as unique(minhash, 0.15).")] = (
        "not retracted; not promotional"
    )
    sample: Annotated[int, Meta(description="Reports to draw after the filters; 0 takes all.", ge=0)] = 1500
    max_bad_references: Annotated[
        int,
        Meta(
            description="Maximum list entries that may refer to sentences the report does not have; they are dropped.",
            ge=0,
        ),
    ] = 0
    step_words: Annotated[int, Meta(description="Maximum words that name the decisive step.", ge=1)] = 25
    reason_words: Annotated[int, Meta(description="Maximum words of a significance or a limitation.", ge=1)] = 80
    min_events: Annotated[int, Meta(description="Minimum events before the decisive step.", ge=1)] = 2
    min_limitations: Annotated[int, Meta(description="Minimum reasons against standard care.", ge=0)] = 1
    context: Annotated[
        Literal["written", "facts"],
        Meta(description="Whether a model writes the context, or the facts before the step are used word for word."),
    ] = "written"
    min_words: Annotated[int, Meta(description="Minimum words of a context.", ge=1)] = 40
    max_words: Annotated[int, Meta(description="Maximum words of a context.", ge=1)] = 500
    question_words: Annotated[int, Meta(description="Maximum words of a question.", ge=1)] = 60
    answer_words: Annotated[int, Meta(description="Maximum words of an answer.", ge=1)] = 80
    answer_sentences: Annotated[int, Meta(description="Maximum sentences of an answer.", ge=1)] = 2
    leak_share: Annotated[
        float, Meta(description="Share of the step's content words with which one sentence gives it away.", gt=0, le=1)
    ] = 0.75
    try_question: Annotated[
        bool, Meta(description="A model guesses each answer from the question alone, without the case.")
    ] = True
    referee: Annotated[
        bool, Meta(description="A model that sees report and item says whether it may be published as it is.")
    ] = True
    item_review: ItemReview = True
    moment: MomentCheck = True
    distraction: Annotated[bool, Meta(description="Whether a second model rewrites the questions.")] = True
    on_bad_distraction: Annotated[
        Literal["reject", "keep-original"],
        Meta(description="What to do with a rewritten question that fails the checks."),
    ] = "reject"
    min_change: Annotated[float, Meta(description="Minimum share of words that a distraction changes.", ge=0)] = 0.05
    max_growth: Annotated[
        float, Meta(description="Maximum factor by which a distraction may lengthen or shorten the text.", ge=1)
    ] = 2.0
    reviews: Annotated[str, Meta(description="Physicians' ratings, JSONL or CSV; without them all questions wait.")] = (
        ""
    )
    review_rule: Annotated[
        Literal["mean", "each"], Meta(description="Whether the mean of a criterion's ratings counts, or each rating.")
    ] = "mean"
    min_rating: Annotated[float, Meta(description="Minimum rating, from 1 to 5.", ge=1, le=5)] = 4.0


def _steps(s: OgcareSettings) -> list[RecipeStep]:
    """The steps; a batch folder takes their calls in six rounds.

    Calls that do not need each other travel together: the check of the moment with the verification, the first trial
    and the distraction with the first review; what that edits is mostly edited again, so the next reviews go alone.
    Only what verification corrects, the final review edits or the trials doubt takes more rounds: these calls are asked
    anew, about the new text.
    """
    tried = open_trial(_exam, guess=s.try_question, referee=s.referee) if s.try_answer else OpenTrial()
    distracting = distraction_steps(_leak) if s.distraction else []
    moment = [moment_step()] if s.moment and s.item_review else []
    reviews = item_review(_EDITOR) if s.item_review else []
    edited = s.item_review and s.try_answer
    tried_again = open_trial(_exam, ", again", guess=s.try_question, referee=s.referee) if edited else OpenTrial()
    distracting_again = distraction_steps(_leak, ", again", when=_retried) if edited and s.distraction else []
    return [
        *filter_steps(_venue_line(s), spare=("no venue stated",) if s.unknown_venue == "keep" else ()),
        rarity_step(s.citations, RarityLimits(year=s.year, total=s.total, other=s.other)),
        *filter_steps(s.filters),
        sample("sample", s.sample),
        _extract("significance", _significance, title=lambda item, context: _report(item, context).title or "(none)"),
        _extract("course", _course, step=lambda item, _: item["step"], told=_told),
        ask("question", _QUESTION[s.context], values=_question_values, read=_question),
        with_calls_ahead(_verifying(), *moment),
        *moment,
        *(with_calls_ahead(review, *tried.solve, *distracting[:1]) for review in reviews[:1]),
        *reviews[1:],
        *together(*tried.solve, *distracting[:1]),
        *together(*tried.compare, *distracting[1:]),
        *([review_after_trials(_EDITOR)] if edited else ()),
        *together(*tried_again.solve, *distracting_again[:1]),
        *together(*tried_again.compare, *distracting_again[1:]),
        *([account_for_trials("trials", _exam)] if s.try_answer else ()),
        label_step("specialty", "ogcare"),
        reviewed("review", s.reviews, lambda _item, labels: _rated(labels, s), criteria=CRITERIA, others=(ACCEPT,)),
    ]


def _venue_line(s: OgcareSettings) -> str:
    if s.venue_list:
        return f'venue("{s.venue_list}")'
    return {"medical": "venue(medical)", "all": "venue", "any": ""}[s.venues]


def _report(item: RecipeItem, context: RecipeContext) -> Document:
    return context.document(item.documents[0])


def _shown(item: RecipeItem, context: RecipeContext, step: str) -> tuple[dict[int, Span], str]:
    """The sentences of the report that a step shows, by number, and the numbered lines."""
    document, prompt = _report(item, context), load_prompt(f"ogcare-{step}")
    written = sum(len(str(item.get(name, ""))) for name in ("significance", "context", "question", "answer"))
    written += sum(len(each["limitation"]) + len("- \n") for each in item.get("limitations", ()))
    return numbered(document, context, prompt, hidden=_HIDDEN[step], beside=len(document.title) + written + _BESIDE)


def _extract(name: str, read: Read, **beside: Callable[[RecipeItem, RecipeContext], str]) -> RecipeStep:
    """A step that shows the numbered sentences of the report, with these values beside them."""

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object] | ItemRejection:
        spans, lines = _shown(item, context, name)
        if not spans:
            return ItemRejection(reason="no sentence of the report can be shown to the model")
        return {"report": lines, **{each: value(item, context) for each, value in beside.items()}}

    return ask(name, f"ogcare-{name}", values=values, read=read)


def _verifying() -> RecipeStep:
    return _extract(
        "verify",
        _verify,
        **{name: _value(name) for name in ("significance", "step", "context", "question", "answer")},
        limitations=lambda item, _: listed([each["limitation"] for each in item["limitations"]]) or "(none)",
        remarks=lambda item, _: listed([*dated(item), *item.get("flags", ())]) or "(none)",
    )


def _insist(fault: ItemRejection, say: str, item: RecipeItem) -> AskAgain:
    """Ask again for what a rule doubts; where the model insists, the item goes on and the verifying call is told."""
    flagged = item.put(flags=[*item.get("flags", ()), f"{fault.reason}: {fault.details}"])
    return msgspec.structs.replace(fault.again(say), otherwise=flagged)


def _passing(item: RecipeItem, passed: Sequence[str]) -> RecipeItem:
    """The item with what was passed over, or what a rule doubts, among its flags."""
    return item.put(flags=list(dict.fromkeys((*item.get("flags", ()), *passed)))) if passed else item


def _wrong(fault: ItemRejection) -> AskAgain:
    """Ask again for what can't stay; where the second reply has the same fault, the item is rejected."""
    return fault.again(f"Your reply can't be used: {fault.reason} ({fault.details or 'nothing there'}).")


def _value(name: str) -> Callable[[RecipeItem, RecipeContext], str]:
    return lambda item, _context: str(item[name])


def _told(item: RecipeItem, context: RecipeContext) -> str:
    """The sentences that tell the step, word for word."""
    text = _report(item, context).text
    return listed([_line(text[start:end]) for start, end in item["step_at"]])


# Significance and decisive step


def _significance(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    s, document = context.settings, _report(item, context)
    spans, _ = _shown(item, context, "significance")
    significance, step = _line(value["significance"]), _line(value["step"]).rstrip(".")
    passed: list[str] = []
    why = pointed(
        value["significance_sentences"], spans, "significance", tolerated=s.max_bad_references, passed_over=passed
    )
    if value["kind"] in _REFUSED:
        at = None if isinstance(why, ItemRejection) else why[0]
        return ItemRejection(reason=_REFUSED[value["kind"]], details=significance, span=at)
    for what, text, maximum in (("significance", significance, s.reason_words), ("decisive step", step, s.step_words)):
        if fault := sound(text, what=what, source=document.text, max_words=maximum):
            return _wrong(fault)
    done = pointed(value["step_sentences"], spans, "decisive step", tolerated=s.max_bad_references, passed_over=passed)
    if isinstance(why, ItemRejection):
        return _wrong(why)
    if isinstance(done, ItemRejection):
        return _wrong(done)
    told, doubt = told_at(step, done, list(spans.values()), document)
    step_at = [[span.start, span.end] for span in told]
    item = _passing(item.proven(*why, *told).put(significance=significance, step=step, step_at=step_at), passed)
    if not telling_words(step):
        return _wrong(ItemRejection(reason="the decisive step names nothing", details=step))
    if fault := no_action(step):
        say = f"A rule that reads words takes this for no action: {fault.reason}. Name what somebody did, if it is not."
        return _insist(fault, say, item)
    if doubt:
        say = f"A rule doubts the sentences of the step: {doubt.reason}. Point at the sentences that tell it as done."
        return _insist(doubt, say, item)
    return item


# What came before the step


def _course(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    s = context.settings
    spans, _ = _shown(item, context, "course")
    said: dict[Span, str] = {}
    both: list[Span] = []
    passed: list[str] = []
    for when in ("before", "after"):
        found = (
            pointed(value[when], spans, "timeline", tolerated=s.max_bad_references, passed_over=passed)
            if value[when]
            else []
        )
        if isinstance(found, ItemRejection):
            return _wrong(found)
        both += [span for span in found if span in said]
        said |= dict.fromkeys(found, when)  # what is said to be both is not told before the step
    limited = _limitations(item, value["limitations"], spans, context)
    if isinstance(limited, ItemRejection):
        return _wrong(limited)
    done, doubtful = _sorted(_passing(limited, passed), said, list(spans.values()), context)
    done = _passing(done, _near_the_step(done, doubtful, context))
    if len(done["facts"]) < s.min_events:
        details = f"{len(done['facts'])} of {len(said)} events"
        return _wrong(ItemRejection(reason="too few events before the decisive step", details=details))
    if len(done["limitations"]) < s.min_limitations:
        details = f"{len(done['limitations'])} limitations"
        fault = ItemRejection(reason="nothing ruled the standard procedure out", details=details)
        return _insist(fault, _NO_LIMITATION, done) if _is_test(item["step"]) else fault.again(_NO_LIMITATION)
    if both:
        fault = ItemRejection(
            reason="a sentence is said to lie both before and after the decisive step",
            details=_line(both[0].quote),
            span=both[0],
        )
        say = f"You list {_named(both, spans)} in `before` and in `after`. Put each where it belongs."
        return _insist(fault, say, done)
    return done


def _near_the_step(item: RecipeItem, doubtful: Sequence[Span], context: RecipeContext) -> list[str]:
    """Remarks on sentences of `before` that the report tells after the step, or that have nearly its words.

    They cost no call: in a draw of real reports a model was asked about six that are told after the step, and each had
    been known before it. Verification and the check of the moment see case and report.
    """
    step, asked = item["step"], {span.start for span in doubtful}
    told = [
        f"the report tells this after the step; look up whether it was known before: {_line(span.quote)}"
        for span in doubtful
    ]
    return told + [
        f"a sentence of `before` has nearly the words of the step: {_line(each['quote'])}"
        for each in item["timeline"]
        if each["when"] == "before"
        and each["start"] not in asked
        and giving_away(each["quote"], step, share=context.settings.leak_share)
        and not says_before(each["quote"], step)
    ]


def _is_test(step: str) -> bool:
    """Whether a step is an examination: it may find what nobody looked for, so that nothing usual had to fail first."""
    return any(form in ("test", "testing") or names_test(form) for form in content_forms(step))


def _named(chosen: Sequence[Span], spans: Mapping[int, Span]) -> str:
    """Sentences by their numbers, for a message to the model."""
    numbers = [str(number) for number, span in spans.items() if span in chosen]
    return f"sentence {numbers[0]}" if len(numbers) == 1 else f"sentences {', '.join(numbers)}"


def _limitations(
    item: RecipeItem, entries: Sequence[dict[str, Any]], spans: Mapping[int, Span], context: RecipeContext
) -> RecipeItem | ItemRejection:
    """The item with what ruled standard care out, each with its quote."""
    s = context.settings
    found: list[dict[str, str]] = []
    faults: list[ItemRejection] = []
    passed: list[str] = []
    for entry in entries:
        words = _line(entry["limitation"])
        if fault := sound(words, what="limitation", source=_report(item, context).text, max_words=s.reason_words):
            return fault
        quotes = pointed(entry["sentences"], spans, "limitations", tolerated=s.max_bad_references, passed_over=passed)
        if isinstance(quotes, ItemRejection):
            faults.append(quotes)
            passed.append(f"passed over: {words}: {quotes.reason} ({quotes.details})")
            continue
        item = item.proven(*quotes)
        found.append({"limitation": words, "quote": " ".join(_line(span.quote) for span in quotes)})
    return faults[0] if len(faults) > s.max_bad_references else _passing(item.put(limitations=found), passed)


def _sorted(
    item: RecipeItem, said: Mapping[Span, str], spans: Sequence[Span], context: RecipeContext
) -> tuple[RecipeItem, list[Span]]:
    """The item with its timeline, the facts before the step and what is left out, and sentences that a rule doubts."""
    document, step = _report(item, context), item["step"]
    case = case_spans(document) or ((0, len(document.text)),)
    begins = begins_at(item["step_at"], document.text)
    may_begin = may_begin_at(step, item["step_at"], spans, document)
    events: list[dict[str, Any]] = []
    facts: dict[str, None] = {}
    removed: list[dict[str, Any]] = []
    doubtful: list[Span] = []
    for span in spans:
        when = "not listed"
        if span in said:
            when, doubt = lies(
                span,
                said[span],
                step,
                item["step_at"],
                begins=begins,
                case=case,
            )
            doubtful += [span] if doubt else []
            events.append({"quote": span.quote, "when": when, "start": span.start, "end": span.end})
        fact = fact_before(span, when, step) if said.get(span) == "before" else ""
        if fact and may_begin <= span.start < item["step_at"][0][0] and names_step(span.quote, step, document):
            fact = fact_before(span, "decisive", step) or fact
        if fact:
            facts[fact] = None
        whole = when == "before" and fact == fact_before(span, when, step)
        if not whole and any(start <= span.start < end for start, end in case):
            why = _LEFT_OUT.get(when, "nothing of it is told before the decisive step")
            removed.append({"start": span.start, "end": span.end, "why": why, "text": span.quote})
    return item.put(timeline=events, facts=list(facts), removed=removed), doubtful


# Question


def _ruled_out(item: RecipeItem, context: RecipeContext, *, quotes: bool) -> list[str]:
    """What ruled standard care out, in words that do not give the step away: those of the report or the model.

    `quotes` takes the report's own words alone where they can be had.
    """
    telling = context.settings.leak_share
    told = ((each["quote"], each["limitation"]) for each in item["limitations"])
    silent = ([text for text in texts if not giving_away(text, item["step"], share=telling)] for texts in told)
    return [texts[0] if quotes else " - ".join(reversed(texts)) for texts in silent if texts]


def _question_values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    values = {"step": item["step"], "facts": listed(item["facts"])}
    if context.settings.context == "written":
        limits = listed(_ruled_out(item, context, quotes=False)) or "(none)"
        values |= {"significance": item["significance"], "limitations": limits}
    return values


def _facts_told(item: RecipeItem, context: RecipeContext) -> str:
    """The facts before the step as they stand in the report, then what ruled standard care out, if not among them."""
    facts = " ".join(item["facts"])
    limits = [limit for limit in _ruled_out(item, context, quotes=True) if limit not in facts]
    return "\n\n".join(filter(None, (facts, " ".join(limits))))


def _question(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    vignette = str(value["context"]) if context.settings.context == "written" else _facts_told(item, context)
    item = item.put(
        context=vignette.strip(),
        question=_line(value["question"]),
        answer=_line(value["answer"]),
        rationale=_line(value["rationale"]),
        core=[_line(fact) for fact in value["core"]],
        year=year_of(_report(item, context)),
    )
    return _objection(item, context) or _passing(item, _doubts(item, context))


def _objection(item: RecipeItem, context: RecipeContext) -> AskAgain | None:
    """What rules object to in an item's context, question and answer."""
    s, source = context.settings, _report(item, context).text
    vignette, question, answer = item["context"], item["question"], item["answer"]
    for what, text, maximum in (
        ("answer", answer, s.answer_words),
        ("rationale", item["rationale"], s.answer_words * 2),
        ("context", vignette, s.max_words),
        ("question", question, s.question_words),
    ):
        if fault := sound(text, what=what, source=source, max_words=maximum):
            return _wrong(fault)
    leak = _leak(item, f"{vignette}\n\n{question}", context)
    faults = [leak[0]] if leak and leak[1] else []
    if len(vignette.split()) < s.min_words:
        faults.append(ItemRejection(reason="the context is too short", details=f"{len(vignette.split())} words"))
    if not question.endswith("?"):
        faults.append(ItemRejection(reason="the question does not end as a question", details=question))
    if asks_yes_no(question):
        faults.append(ItemRejection(reason="the question proposes an answer", details=question))
    if len(sentence_spans(answer)) > s.answer_sentences:
        faults.append(ItemRejection(reason="the answer has too many sentences", details=answer))
    if invented := new_numbers(f"{vignette}\n{question}\n{answer}", f"{source}\n{item['year']}"):
        faults.append(ItemRejection(reason="a number is not in the source", details=", ".join(invented)))
    if faults:
        return _wrong(faults[0])
    if question.count("?") > 1:
        doubt = ItemRejection(reason="more than one thing is asked", details=question)
        return _insist(doubt, "Ask one thing in one sentence.", item)
    return None


def _doubts(item: RecipeItem, context: RecipeContext) -> list[str]:
    """Words of an item that may give its answer away: the next call that sees the report is told, which costs none."""
    leak = _leak(item, f"{item['context']}\n\n{item['question']}", context)
    doubts = [f"words that may tell something of the step: {leak[0].details}"] if leak else []
    if named := _named_behind(item, item["question"], context):
        doubts.append(f"the question may name the disease behind the answer: {named}")
    return doubts


def _leak(item: RecipeItem, text: str, context: RecipeContext) -> tuple[ItemRejection, bool] | None:
    """Whether a text names the decisive step, and whether that is certain: all its telling words in one sentence.

    Less than that is a doubt: some of its words, or a name that the facts before the step do not have. What they have,
    was known: used earlier, planned, running (where the step is to stop it), or what the patient was referred for.
    """
    reason, known = "the question gives the answer away", _known_facts(item, context)
    step, phrases = item["step"], (item["step"], item["answer"])
    whole = len(telling_words(step)) > 1 and not any(_has_name(fact, step) for fact in known)
    for start, end in sentence_spans(text):
        if whole and held_words(text[start:end], step) == telling_words(step):
            return ItemRejection(reason=reason, details=text[start:end].strip()), True
    for leak in step_leaks(text, step, _report(item, context)):
        if not any(_has_name(fact, leak.text) for fact in known):
            certain = leak.kind == "name" and is_whole_name(leak, step)
            return ItemRejection(reason=reason, details=f"{leak.text} ({leak.kind})"), certain
    share = context.settings.leak_share
    for phrase in phrases:
        sentence = giving_away(text, phrase, share=share)
        if sentence and not any(giving_away(fact, phrase, share=share) for fact in known):
            return ItemRejection(reason=reason, details=sentence), False
    return None


def _named_behind(item: RecipeItem, question: str, context: RecipeContext) -> str:
    """Words of a question that belong to the name of what is behind the answer, as the report has it; else nothing.

    They are two words that follow each other in a sentence of the report which speaks of the step as well ("the
    autoantibodies cause an adult-onset immunodeficiency syndrome"), and neither the case nor the facts before the step
    have both.
    """
    known = telling_words(" ".join((item["context"], *item["facts"])))
    pairs = {pair for pair in pairwise(_tokens(question)) if all(map(telling_words, pair))}
    new = {pair for pair in pairs if not telling_words(" ".join(pair)) <= known}
    text = _report(item, context).text
    for sentence in (text[start:end] for start, end in sentence_spans(text)):
        if found := new.intersection(pairwise(_tokens(sentence))):
            pair = " ".join(min(found))
            if held_words(sentence, f"{item['step']} {item['answer']}") - telling_words(pair):
                return pair
    return ""


def _tokens(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold())


def _known_facts(item: RecipeItem, context: RecipeContext) -> list[str]:
    """The facts before the step, each with the long form of every abbreviation that the report explains."""
    short = find_abbreviations(_report(item, context).text)
    words = ((fact, re.findall(r"[\w-]+", fact)) for fact in item["facts"])
    return [" ".join([fact, *(short[word] for word in held if word in short)]) for fact, held in words]


def _has_name(fact: str, name: str) -> bool:
    """Whether a fact has a name, or all its telling words: "referred for CHLT" has "heart-liver transplantation"."""
    words = telling_words(name)
    return name.casefold() in fact.casefold() or (bool(words) and held_words(fact, name) == words)


# Verification


def _verify(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome | AskAgain:
    """What the comparison with the report found; the texts as it corrected them, if rules find them sound."""
    for name, reason in _VERDICTS.items():
        if value[name] != "yes":
            return ItemRejection(reason=reason, details=value["reason"])
    spans, _ = _shown(item, context, "verify")
    missing = (
        pointed([each["sentence"] for each in value["missing"]], spans, "missing facts") if value["missing"] else []
    )
    if isinstance(missing, ItemRejection):
        return _wrong(missing)
    found = {
        "reason": value["reason"],
        "missing": [{"quote": span.quote, "start": span.start, "end": span.end} for span in missing],
        "telling": value["telling"],
        "unsupported": value["unsupported"],
    }
    names = ("context", "question", "answer")
    texts = {name: str(value[f"corrected_{name}"]).strip() for name in names}
    texts = {name: text for name, text in texts.items() if text and text != item[name]}
    faults = [kind for kind in ("missing", "telling", "unsupported") if value[kind]]
    fault = ItemRejection(
        reason=f"verification finds faults in the question: {', '.join(faults)}", details=value["reason"]
    )
    if faults and context.settings.context == "facts":
        return fault  # the context is the report's own sentences: nobody writes in it
    if faults and not texts:
        return fault.again("You list faults but give no corrected text. Give the whole text, corrected.")
    rival, item = _line(value["rival"]), item.put(verified=found, corrected={})
    if not faults and "context" in texts:
        del texts["context"]  # nothing says what the new one is to mend
        item = _passing(item, ["a corrected context is not used: verification lists no fault"])
    corrected = item.put(corrected={name: item[name] for name in texts}, **texts)
    if "context" in texts:
        corrected = corrected.put(core=_core(item["core"], item["context"], texts["context"]))
    objection = _objection(corrected, context) if texts else None
    if objection and not faults and objection.otherwise is None:
        plain = _passing(item, [f"a corrected text is not used: {objection.reason} ({objection.details})"])
        return objection if rival else msgspec.structs.replace(objection, otherwise=plain)
    if objection or rival:
        return objection or _rivalled(rival)
    return _passing(corrected, _doubts(corrected, context) if texts else ())


def _rivalled(rival: str) -> AskAgain:
    """Ask once for facts against a rival answer, or a narrower question; an item whose rival stays is rejected."""
    say = (
        f"You name an answer that is just as good: {rival}. Look once more for facts of the report, known before the "
        "step, that speak against it. If there are any, list them in `missing`, give the corrected case, and leave "
        "`rival` empty. If there are none, exclude the rival in the question by its name, not by a description that "
        "only the answer fits, and leave `rival` empty. Name it again only where most experts would choose it as well "
        "with every fact of the report before them: the item is then rejected."
    )
    return ItemRejection(reason="another answer is as good", details=rival).again(say)


# Review and questions


def _rated(labels: Mapping[str, Sequence[ReviewLabel]], s: OgcareSettings) -> ItemRejection | None:
    for criterion in CRITERIA:
        ratings = [read_rating(label, s.reviews) for label in labels.get(criterion, ())]
        if not ratings:
            continue  # the item waits until somebody has rated it on this, too
        low = min(ratings) if s.review_rule == "each" else sum(ratings) / len(ratings)
        if low < s.min_rating:
            given = ", ".join(f"{rating:g}" for rating in ratings)
            return ItemRejection(reason=f"rated below {s.min_rating:g} on {criterion}", details=f"ratings {given}")
    return None


def _finish(items: Sequence[RecipeItem], context: RecipeContext) -> RecipeOutput:
    plain = tuple(_made(item, item["context"]) for item in items)
    main = tuple(_made(item, item.get("distracted") or item["context"]) for item in items)
    editions: tuple[Edition, ...] = ()
    context.tables["cuts"] = cuts_table(items)
    context.tables["corrections"] = _corrections(items)
    if context.settings.item_review:
        context.tables["edits"] = edits_table(items)
    if context.settings.distraction:
        context.tables["distraction"] = distraction_table(items)
        editions = (Edition(name="original", about="the questions before they were distracted", questions=plain),)
    tasks = tuple(
        ReviewTask(
            item=question.id,
            kind="likert",
            criteria=CRITERIA,
            why="every question is rated from 1 to 5 by physicians",
            step="review",
            question=question.full_text,
            shown=with_edits(
                item,
                {
                    "answer": question.answer,
                    **_counted(question),
                    "rationale": item["rationale"],
                    "original": original.context,
                },
            ),
        )
        for item, question, original in zip(items, main, plain, strict=True)
        if item["review"] == "waiting"
    )
    return RecipeOutput(questions=main, editions=editions, review=tasks)


def _counted(question: Question) -> dict[str, str]:
    """What counts as right beside the answer, for reviewers; nothing where there is none."""
    lines = [f"{each.text} ({each.note})" if each.note else each.text for each in question.accepted]
    return {"accepted": "\n".join(lines)} if lines else {}


def _exam(item: RecipeItem) -> TriedQuestion:
    """The question before distraction: whether that keeps what the answer needs is verified apart."""
    grading = item.get("grading") or {"accepted": (), "note": ""}
    return TriedQuestion(
        question=item["question"],
        answer=item["answer"],
        case=item["context"],
        accepted=tuple(grading["accepted"]),
        note=grading["note"],
    )


class _Editor:
    """How the final review changes an item: its context, question and answer."""

    asks = "step"

    def show(self, item: RecipeItem) -> TriedQuestion:
        return _exam(item)

    def with_text(self, item: RecipeItem, edits: Sequence[TextEdit], _context: RecipeContext) -> RecipeItem:
        """The item with these edits; a distraction has to keep what is new, and not what is gone."""
        text, at = "", 0
        for edit in edits:
            text += item["context"][at : edit.start] + (edit.words if edit.start < edit.end else f" {edit.words} ")
            at = edit.end
        text += item["context"][at:]
        paragraphs = (_line(each) for each in re.split(r"\n\s*\n", text))
        vignette = "\n\n".join(filter(None, paragraphs))
        return item.put(context=vignette, core=_core(item["core"], item["context"], vignette))

    def with_question(self, item: RecipeItem, question: str) -> RecipeItem:
        return item.put(question=question)

    def with_answer(self, item: RecipeItem, answer: str) -> RecipeItem:
        return item.put(answer=answer)

    def with_option(self, item: RecipeItem, _old: str, _new: str) -> RecipeItem:
        return item

    def leak(self, item: RecipeItem, text: str, context: RecipeContext) -> tuple[str, bool] | None:
        if found := _leak(item, text, context):
            return found[0].details, found[1]
        named = _named_behind(item, text, context) if text.endswith("?") else ""
        return (named, False) if named else None

    def wrong_answer(self, item: RecipeItem, answer: str, _context: RecipeContext) -> str:
        """A key that is shortened is the same: its own words count, not how many of the old ones it keeps."""
        held = held_words(f"{item['step']} {item['answer']}", answer)
        same = held and len(held) >= _SAME_STEP * len(telling_words(answer))
        return "" if same else "few of its words are in the old key or the decisive step"

    def wrong_option(self, _item: RecipeItem, _option: str, _context: RecipeContext) -> str:
        return "the question has no options"

    def same_option(self, _one: str, _other: str, _context: RecipeContext) -> str:
        return ""


_EDITOR = _Editor()


def _core(core: Sequence[str], before: str, after: str) -> list[str]:
    """The core of an item whose context was changed: no fact that is gone from it, and each that is new, once.

    A fact that an edit takes out must not come back because a distraction is told to keep it. A core fact has words
    that the context lacks, so only words that are gone count. It is gone if few are left, if a new sentence tells what
    is left of it, or if the sentence that told it is gone and no other tells as much of it: its words may all be
    elsewhere. A new sentence is a fact of the core if it has new words or tells what is gone; one that was only moved
    is not.
    """
    old, new = _sentences(before), _sentences(after)
    told, left_out = [each for each in new if each not in old], [each for each in old if each not in new]
    known, left = set(content_forms(before)), set(content_forms(after))
    renewed = {form for each in told for form in content_forms(each)}
    kept: list[str] = []
    gone: set[str] = set()
    for fact in core:
        forms = content_forms(fact)
        share = _share(forms, left)
        fewer = share < _share(forms, known) and (share < _STILL_TOLD or _share(forms, renewed) >= _RETOLD)
        home = _best_share(forms, left_out)
        if fewer or (home >= _RETOLD and _best_share(forms, new) < home):
            gone |= set(forms)
        else:
            kept.append(fact)
    for fact in told:
        held = set(content_forms(fact))
        if held - known or held & gone:
            kept = [each for each in kept if not set(content_forms(each)) <= held] + [fact]
    return kept


def _sentences(text: str) -> list[str]:
    return [_line(text[start:end]) for start, end in sentence_spans(text)]


def _best_share(forms: Sequence[str], sentences: Sequence[str]) -> float:
    return max((_share(forms, set(content_forms(each))) for each in sentences), default=0.0)


def _share(forms: Sequence[str], held: set[str]) -> float:
    return sum(form in held for form in forms) / len(forms) if forms else 0.0


def _retried(item: RecipeItem) -> bool:
    """Whether the final review edited an item because of its trial: it is another text for a distraction as well."""
    return bool(item.get("retried"))


def _corrections(items: Sequence[RecipeItem]) -> TableFile:
    """Every text that the verifying call corrected, before and after, and why."""
    rows = []
    for item in items:
        told = [*item["verified"]["telling"], *item["verified"]["unsupported"]]
        named = [f"missing: {_line(each['quote'])}" for each in item["verified"]["missing"]]
        why = "; ".join([*named, *(f"{each['words']}: {each['why']}" for each in told)]) or item["verified"]["reason"]
        rows += [(item.id, name, before, item[name], why) for name, before in item["corrected"].items()]
    return TableFile(("item", "text", "before", "after", "why"), rows)


def _made(item: RecipeItem, vignette: str) -> Question:
    return Question(
        id=item.id,
        text=item["question"],
        context=vignette,
        answer=item["answer"],
        accepted=_accepted(item),
        documents=item.documents,
        evidence=item.evidence,
        facets={**item.facets, "year": str(item["year"] or "unknown")},
        lineage=item.lineage,
    )


def _accepted(item: RecipeItem) -> tuple[AcceptedAnswer, ...]:
    """What people accepted and what the final review counts as right, each wording once."""
    by_people = msgspec.convert(item.get("accepted") or (), tuple[AcceptedAnswer, ...])
    known = {each.text for each in by_people}
    return (*by_people, *(each for each in graded_as_right(item) if each.text not in known))


def _line(text: object) -> str:
    return " ".join(str(text).split())


RECIPE = Recipe(
    name="ogcare",
    title="OGCaReBench: off-guideline questions from rare case reports",
    about="Asks for the decisive step of rare case reports, where guidelines end; free-text answers.",
    settings=OgcareSettings,
    begin=from_documents,
    steps=_steps,
    finish=_finish,
)
