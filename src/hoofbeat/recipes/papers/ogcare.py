"""OGCaReBench: what to do next where guidelines end, asked of rare case reports (arXiv 2605.21807).

Recent, hardly cited reports; from each its significance, the timeline of care and what ruled standard care out; a
question that stops before the decisive step; another patient with the same problem, by a second model; the physicians'
review. A report is shown as numbered sentences and the model points at them: what it points at is the quote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.roles import CASE_ROLES, Role
from hoofbeat.facets import year_of
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.decisive_step import (
    asks_yes_no,
    begun_at,
    fact_before,
    first_asked,
    lies,
    no_action,
    told_at,
)
from hoofbeat.recipes.cases.distraction import (
    distraction_steps,
    distraction_table,
    giving_away,
    listed,
    without_person,
)
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.corpus_steps import filter_steps, label_step, rarity_step
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.guards.text_checks import new_numbers, numbered, pointed, sound
from hoofbeat.recipes.recipe import Edition, Recipe, RecipeOutput, from_documents
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.review_tasks import ReviewLabel, ReviewTask, read_rating, reviewed
from hoofbeat.recipes.steps import RecipeStep, ask, sample, together
from hoofbeat.recipes.trials import ExamQuestion, OpenTrialSettings, account_for_trials, open_trial
from hoofbeat.records import Document, Question, Span
from hoofbeat.retrieval.index.chunking import sentence_spans

Values = Callable[[RecipeItem, RecipeContext], dict[str, object]]
Read = Callable[[RecipeItem, dict[str, Any], RecipeContext], Outcome]
_QUESTION = {"written": "ogcare-question", "facts": "ogcare-ask"}
_CORE = "ogcare-core"
CRITERIA = ("medical alignment", "need for expertise")
_BESIDE = 400  # characters kept free for a step and the fences
_HIDDEN = {
    "significance": {"back"},
    "timeline": {"", *Role} - CASE_ROLES,
    "limitations": {"back", "abstract", "introduction"},
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
    venue_list: Annotated[str, Meta(description="A .tsv of your own in place of the paper's list of journals.")] = ""
    unknown_venue: Annotated[
        Literal["keep", "drop"], Meta(description="What to do with reports that state no journal.")
    ] = "keep"
    citations: Annotated[str, Meta(description="Citation file: citing id, cited id, whether a case report.")] = ""
    year: Annotated[int, Meta(description="Drop reports published in or before this year.", ge=0)] = 2022
    total: Annotated[int, Meta(description="Most articles that may cite a report.", ge=0)] = 3
    other: Annotated[int, Meta(description="Most citing articles that are no case reports.", ge=0)] = 1
    filters: Annotated[str, Meta(description="Further corpus filters, such as unique(minhash, 0.15).")] = (
        "not retracted; not promotional"
    )
    sample: Annotated[int, Meta(description="Reports to draw from those left; 0 takes all.", ge=0)] = 1500
    unfound: Annotated[
        int, Meta(description="Entries of a list that may point at or quote what is not there; they are dropped.", ge=0)
    ] = 0
    step_words: Annotated[int, Meta(description="Most words that name the decisive step.", ge=1)] = 15
    reason_words: Annotated[int, Meta(description="Most words of a significance or a limitation.", ge=1)] = 80
    min_events: Annotated[int, Meta(description="Fewest events before the decisive step.", ge=1)] = 2
    min_limitations: Annotated[int, Meta(description="Fewest reasons against standard care.", ge=0)] = 1
    context: Annotated[
        Literal["written", "facts"],
        Meta(description="Whether a model writes the context, or it is the facts before the step, word for word."),
    ] = "written"
    min_words: Annotated[int, Meta(description="Fewest words of a context.", ge=1)] = 40
    max_words: Annotated[int, Meta(description="Most words of a context.", ge=1)] = 400
    question_words: Annotated[int, Meta(description="Most words of a question.", ge=1)] = 60
    answer_words: Annotated[int, Meta(description="Most words of an answer.", ge=1)] = 70
    answer_sentences: Annotated[int, Meta(description="Most sentences of an answer.", ge=1)] = 2
    answer_share: Annotated[
        float, Meta(description="Share of the step's telling words that its answer must hold.", gt=0, le=1)
    ] = 0.5
    leak_share: Annotated[
        float, Meta(description="Share of the step's telling words in one sentence that gives it away.", gt=0, le=1)
    ] = 0.75
    distraction: Annotated[bool, Meta(description="Whether a second model rewrites the questions.")] = True
    on_bad_distraction: Annotated[
        Literal["reject", "keep-original"], Meta(description="What to do where a rewritten question is not fit.")
    ] = "reject"
    core_match: Annotated[float, Meta(description="How alike a fact of the core must stay.", gt=0, le=1)] = 0.75
    min_change: Annotated[float, Meta(description="Least share of words that a distraction changes.", ge=0)] = 0.05
    max_growth: Annotated[float, Meta(description="Most a distraction may lengthen or shorten, as a factor.", ge=1)] = (
        2.0
    )
    reviews: Annotated[str, Meta(description="Physicians' ratings, JSONL or CSV; without it all questions wait.")] = ""
    review_rule: Annotated[
        Literal["mean", "each"], Meta(description="Whether the mean of a criterion's ratings counts, or each rating.")
    ] = "mean"
    min_rating: Annotated[float, Meta(description="Least rating, from 1 to 5.", ge=1, le=5)] = 4.0


def _steps(s: OgcareSettings) -> list[RecipeStep]:
    """The steps; those of a group do not need each other, so that a batch folder takes the calls in six rounds."""
    tried = open_trial(_exam) if s.try_answer else ()
    distracting = distraction_steps(_leak) if s.distraction else []
    return [
        *filter_steps(_venue_line(s), spare=("no venue stated",) if s.unknown_venue == "keep" else ()),
        rarity_step(s.citations, RarityLimits(year=s.year, total=s.total, other=s.other)),
        *filter_steps(s.filters),
        sample("sample", s.sample),
        _extract("significance", _significance, title=lambda item, context: _report(item, context).title or "(none)"),
        *together(
            _extract("timeline", _timeline, step=lambda item, _: item["step"]),
            _extract("limitations", _limitations, step=lambda item, _: item["step"]),
        ),
        ask("question", _QUESTION[s.context], values=_question_values, read=_question),
        *together(
            ask("core", _CORE, values=_core_values, read=_core),
            ask("verify", "ogcare-verify", values=_of("significance", "context", "question", "answer"), read=_verify),
            *tried[:1],
        ),
        *together(*tried[1:], *distracting[:1]),
        *distracting[1:],
        *([account_for_trials("trials", _exam)] if tried else ()),
        label_step("specialty", "ogcare"),
        reviewed("review", s.reviews, lambda _item, labels: _rated(labels, s), criteria=CRITERIA),
    ]


def _venue_line(s: OgcareSettings) -> str:
    if s.venue_list:
        return f'venue("{s.venue_list}")'
    return {"medical": "venue(medical)", "all": "venue", "any": ""}[s.venues]


def _report(item: RecipeItem, context: RecipeContext) -> Document:
    return context.document(item.documents[0])


def _shown(item: RecipeItem, context: RecipeContext, step: str) -> tuple[list[Span], str]:
    """The sentences of the report that a step shows, and the numbered lines."""
    document, prompt = _report(item, context), load_prompt(f"ogcare-{step}")
    return numbered(document, context, prompt, hidden=_HIDDEN[step], beside=len(document.title) + _BESIDE)


def _extract(name: str, read: Read, **beside: Callable[[RecipeItem, RecipeContext], str]) -> RecipeStep:
    """A step that shows the numbered sentences of the report, with these values beside them."""

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object] | ItemRejection:
        spans, lines = _shown(item, context, name)
        if not spans:
            return ItemRejection(reason="no sentence of the report can be shown to the model")
        return {"report": lines, **{each: value(item, context) for each, value in beside.items()}}

    return ask(name, f"ogcare-{name}", values=values, read=read)


def _significance(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    s, document = context.settings, _report(item, context)
    spans, _ = _shown(item, context, "significance")
    significance, step = _line(value["significance"]), _line(value["step"]).rstrip(".")
    why = pointed(value["significance_sentences"], spans, "significance", tolerated=s.unfound)
    if value["kind"] in _REFUSED:
        at = None if isinstance(why, ItemRejection) else why[0]
        return ItemRejection(reason=_REFUSED[value["kind"]], details=significance, span=at)
    for what, text, maximum in (("significance", significance, s.reason_words), ("decisive step", step, s.step_words)):
        if fault := sound(text, what=what, source=document.text, max_words=maximum):
            return fault
    if fault := no_action(step):
        return fault
    done = pointed(value["step_sentences"], spans, "decisive step", tolerated=s.unfound)
    if isinstance(why, ItemRejection):
        return why
    if isinstance(done, ItemRejection):
        return done
    told = told_at(step, done, spans, document)
    if isinstance(told, ItemRejection):
        return told
    step_at = begun_at(step, told, spans, document)
    return item.proven(*why, *told).put(significance=significance, step=step, step_at=step_at)


def _timeline(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    s, step = context.settings, item["step"]
    spans, _ = _shown(item, context, "timeline")
    said: dict[Span, set[str]] = {}
    for when in ("before", "after"):
        found = pointed(value[when], spans, "timeline", tolerated=s.unfound) if value[when] else []
        if isinstance(found, ItemRejection):
            return found
        for span in found:
            said.setdefault(span, set()).add(when)
    events: list[dict[str, Any]] = []
    facts: dict[str, None] = {}
    for span in sorted(said, key=lambda span: span.start):
        when = lies(span, min(said[span]), step, item["step_at"], share=s.leak_share)
        if when != "decisive" and len(said[span]) > 1:
            reason = "a sentence is said to lie both before and after the decisive step"
            return ItemRejection(reason=reason, details=_line(span.quote), span=span)
        events.append({"quote": span.quote, "when": when, "start": span.start, "end": span.end})
        if "before" in said[span]:
            facts[fact_before(span, when, step)] = None
    facts.pop("", None)
    if len(facts) < s.min_events:
        details = f"{len(facts)} of {len(events)} events"
        return ItemRejection(reason="too few events before the decisive step", details=details)
    return item.put(timeline=events, facts=list(facts))


def _limitations(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    s = context.settings
    spans, _ = _shown(item, context, "limitations")
    found: list[dict[str, str]] = []
    faults: list[ItemRejection] = []
    for entry in value["limitations"]:
        words = _line(entry["limitation"])
        if fault := sound(words, what="limitation", source=_report(item, context).text, max_words=s.reason_words):
            return fault
        quotes = pointed(entry["sentences"], spans, "limitations", tolerated=s.unfound)
        if isinstance(quotes, ItemRejection):
            faults.append(quotes)
            continue
        item = item.proven(*quotes)
        found.append({"limitation": words, "quote": " ".join(_line(span.quote) for span in quotes)})
    if len(faults) > s.unfound:
        return faults[0]
    if len(found) < s.min_limitations:
        return ItemRejection(reason="nothing ruled the standard procedure out", details=f"{len(found)} limitations")
    return item.put(limitations=found)


def _of(*names: str) -> Values:
    """The item's values of these names, for a prompt."""
    return lambda item, _context: {name: item[name] for name in names}


def _ruled_out(item: RecipeItem, context: RecipeContext) -> list[str]:
    """What ruled standard care out, in words that do not give the step away: the report's own where they can be had."""
    telling = context.settings.leak_share
    told = ((each["quote"], each["limitation"]) for each in item["limitations"])
    silent = ([text for text in texts if not giving_away(text, item["step"], share=telling)] for texts in told)
    return [texts[0] for texts in silent if texts]


def _question_values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    values = {"step": item["step"], "facts": listed(item["facts"])}
    if context.settings.context == "written":
        limits = listed(_ruled_out(item, context)) or "(none)"
        values |= {"significance": item["significance"], "limitations": limits}
    return values


def _facts_told(item: RecipeItem, context: RecipeContext) -> str:
    """The facts before the step as they stand in the report, then what ruled standard care out, if not among them."""
    facts = " ".join(item["facts"])
    limits = [limit for limit in _ruled_out(item, context) if limit not in facts]
    return "\n\n".join(filter(None, (facts, " ".join(limits))))


def _question(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    s, source = context.settings, _report(item, context).text
    vignette = str(value["context"]).strip() if s.context == "written" else _facts_told(item, context)
    question, answer = first_asked(_line(value["question"])), _line(value["answer"])
    for what, text, maximum in (
        ("answer", answer, s.answer_words),
        ("context", vignette, s.max_words),
        ("question", question, s.question_words),
    ):
        if fault := sound(text, what=what, source=source, max_words=maximum):
            return fault
    if len(vignette.split()) < s.min_words:
        return ItemRejection(reason="the context is too short", details=f"{len(vignette.split())} words")
    if not question.endswith("?"):
        return ItemRejection(reason="the question does not end as a question", details=question)
    if len(sentence_spans(answer)) > s.answer_sentences:
        return ItemRejection(reason="the answer has too many sentences", details=answer)
    if not giving_away(answer, item["step"], share=s.answer_share):
        return ItemRejection(reason="the answer is not the decisive step", details=f"{answer} (step: {item['step']})")
    if invented := new_numbers(f"{vignette}\n{question}\n{answer}", source):
        return ItemRejection(reason="a number is not in the source", details=", ".join(invented))
    item = item.put(context=vignette, question=question, answer=answer)
    if leak := _leak(item, f"{vignette}\n\n{question}", context):
        return leak
    return ItemRejection(reason="the question proposes an answer", details=question) if asks_yes_no(question) else item


def _leak(item: RecipeItem, text: str, context: RecipeContext) -> ItemRejection | None:
    """Whether a text names the decisive step, whole or by its telling words; single words known before it do not."""
    reason, known = "the question gives the answer away", " ".join(item["facts"]).casefold()
    for leak in find_leaks(text, item["step"], source=_report(item, context)):
        if " " in leak.text or leak.text.casefold() not in known:
            return ItemRejection(reason=reason, details=f"{leak.text} ({leak.kind})")
    for phrase in (item["step"], item["answer"]):
        if sentence := giving_away(text, phrase, share=context.settings.leak_share):
            return ItemRejection(reason=reason, details=sentence)
    return None


def _core_shown(item: RecipeItem, context: RecipeContext) -> tuple[list[Span], str]:
    """The sentences of the vignette, and the numbered lines."""
    vignette = Document(id=item.id, title="", text=item["context"])
    beside = len(item["question"]) + len(item["answer"]) + _BESIDE
    return numbered(vignette, context, load_prompt(_CORE), beside=beside)


def _core_values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
    return {"context": _core_shown(item, context)[1], "question": item["question"], "answer": item["answer"]}


def _core(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    found = pointed(value["core"], _core_shown(item, context)[0], "core", tolerated=context.settings.unfound)
    if isinstance(found, ItemRejection):
        return found
    core = [without_person(_line(span.quote)) for span in found]
    return item.put(core=list(dict.fromkeys(core)))


def _verify(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> Outcome:
    if value["answer_is_significance"] != "yes":
        return ItemRejection(reason="the answer is not the significance", details=value["reason"])
    if value["given_away"] != "no":
        return ItemRejection(
            reason="verification finds that the question gives the answer away", details=value["reason"]
        )
    return item.put(verified=value["reason"])


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
    plain = tuple(_made(item, item["context"], context) for item in items)
    main = tuple(_made(item, item.get("distracted") or item["context"], context) for item in items)
    editions: tuple[Edition, ...] = ()
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
            shown={"answer": question.answer, "original": original.context},
        )
        for item, question, original in zip(items, main, plain, strict=True)
        if item["review"] == "waiting"
    )
    return RecipeOutput(questions=main, editions=editions, review=tasks)


def _exam(item: RecipeItem) -> ExamQuestion:
    """The question before distraction: whether that keeps what the answer needs is verified apart."""
    return ExamQuestion(question=item["question"], answer=item["answer"], case=item["context"])


def _made(item: RecipeItem, vignette: str, context: RecipeContext) -> Question:
    year = year_of(_report(item, context))
    return Question(
        id=item.id,
        text=item["question"],
        context=vignette,
        answer=item["answer"],
        documents=item.documents,
        evidence=item.evidence,
        facets={**item.facets, "year": str(year) if year else "unknown"},
        lineage=item.lineage,
    )


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
