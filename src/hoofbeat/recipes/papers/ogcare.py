"""OGCaReBench: what to do next where guidelines end, asked of rare case reports (arXiv 2605.21807).

Recent, hardly cited reports; from each its significance, the timeline of care and what ruled standard care out, proven
by quotes; a question that stops before the decisive step; another patient with the same problem, by a second model; the
physicians' review.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta

from hoofbeat.benchmarks.evidence import find_quote
from hoofbeat.corpus.facets import year_of
from hoofbeat.corpus.filters.rarity import RarityLimits
from hoofbeat.errors import InputError
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.checks import sound
from hoofbeat.recipes.distraction import (
    distraction_steps,
    distraction_table,
    giving_away,
    listed,
    new_numbers,
    telling_words,
)
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.labelling import label_step
from hoofbeat.recipes.leaks import find_leaks
from hoofbeat.recipes.quoting import prove
from hoofbeat.recipes.recipe import Edition, Made, Recipe, from_documents
from hoofbeat.recipes.reviewing import ReviewLabel, ReviewTask, reviewed
from hoofbeat.recipes.selecting import filter_steps, rarity_step
from hoofbeat.recipes.steps import RecipeStep, ask, sample
from hoofbeat.recipes.workshop import Settings, Workshop
from hoofbeat.records import Document, Question, Span
from hoofbeat.retrieval.sentences import sentence_spans

__all__ = ["RECIPE", "OgcareSettings"]

Values = Callable[[Item, Workshop], dict[str, object]]
CRITERIA = ("medical alignment", "need for expertise")
_POINTER = re.compile(
    r"\s*[\[(]\s*(?:(?:see )?(?:fig|table|supplement)[^\])]*|\d+(?:\s*[,–-]\s*\d+)*)\s*[\])]", re.IGNORECASE
)
_LEAST_FACT = 3
_REFUSED = {
    "standard-step": "only a standard procedure on a rare disease",
    "product": "promotes a product",
    "no-case": "tells of no patient's care",
}


class OgcareSettings(Settings, frozen=True, kw_only=True):
    """Parameters of the recipe; the defaults are the paper's."""

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
    quote_match: Annotated[float, Meta(description="How alike a quote and its source must be.", gt=0, le=1)] = 0.9
    unfound: Annotated[
        int, Meta(description="Quotes of a list that may be missing in the source; such entries are dropped.", ge=0)
    ] = 0
    step_words: Annotated[int, Meta(description="Most words that name the decisive step.", ge=1)] = 20
    least_events: Annotated[int, Meta(description="Fewest events before the decisive step.", ge=1)] = 2
    least_limitations: Annotated[int, Meta(description="Fewest reasons against standard care.", ge=0)] = 1
    least_words: Annotated[int, Meta(description="Fewest words of a context.", ge=1)] = 40
    most_words: Annotated[int, Meta(description="Most words of a context.", ge=1)] = 400
    question_words: Annotated[int, Meta(description="Most words of a question.", ge=1)] = 60
    answer_words: Annotated[int, Meta(description="Most words of an answer.", ge=1)] = 70
    answer_sentences: Annotated[int, Meta(description="Most sentences of an answer.", ge=1)] = 2
    leak_share: Annotated[
        float, Meta(description="Share of the step's telling words in one sentence that gives it away.", gt=0, le=1)
    ] = 0.75
    distraction: Annotated[bool, Meta(description="Whether a second model rewrites the questions.")] = True
    on_bad_distraction: Annotated[
        Literal["reject", "keep-original"], Meta(description="What to do where a rewritten question is not fit.")
    ] = "reject"
    core_match: Annotated[float, Meta(description="How alike a fact of the core must stay.", gt=0, le=1)] = 0.75
    least_change: Annotated[float, Meta(description="Least share of words that a distraction changes.", ge=0)] = 0.05
    most_growth: Annotated[
        float, Meta(description="Most a distraction may lengthen or shorten, as a factor.", ge=1)
    ] = 2.0
    reviews: Annotated[str, Meta(description="Physicians' ratings, JSONL or CSV; without it all questions wait.")] = ""
    review_rule: Annotated[
        Literal["mean", "each"], Meta(description="Whether the mean of a criterion's ratings counts, or each rating.")
    ] = "mean"
    least_rating: Annotated[float, Meta(description="Least rating, from 1 to 5.", ge=1, le=5)] = 4.0


def _steps(s: OgcareSettings) -> list[RecipeStep]:
    return [
        *filter_steps(_venue_line(s), spare=("no venue stated",) if s.unknown_venue == "keep" else ()),
        rarity_step(s.citations, RarityLimits(year=s.year, total=s.total, other=s.other)),
        *filter_steps(s.filters),
        sample("sample", s.sample),
        ask("significance", "ogcare-significance", values=_significance_values, read=_significance),
        ask("timeline", "ogcare-timeline", values=_with_step("ogcare-timeline"), read=_timeline),
        ask("limitations", "ogcare-limitations", values=_with_step("ogcare-limitations"), read=_limitations),
        ask("question", "ogcare-question", values=_question_values, read=_question),
        ask("core", "ogcare-core", values=_of("context", "question", "answer"), read=_core),
        ask("verify", "ogcare-verify", values=_of("significance", "context", "question", "answer"), read=_verify),
        *(distraction_steps(_leak) if s.distraction else ()),
        label_step("specialty", "ogcare"),
        reviewed("review", s.reviews, lambda _item, labels: _rated(labels, s)),
    ]


def _venue_line(s: OgcareSettings) -> str:
    if s.venue_list:
        return f'venue("{s.venue_list}")'
    return {"medical": "venue(medical)", "all": "venue", "any": ""}[s.venues]


def _report(item: Item, shop: Workshop) -> Document:
    return shop.document(item.documents[0])


def _shown(item: Item, shop: Workshop, prompt: str) -> str:
    """The report without its back matter, as far as the model's window holds it."""
    document = _report(item, shop)
    kept = [document.text[each.start : each.end] for each in document.sections if each.role != "back"]
    text = "\n\n".join(part.strip() for part in kept if part.strip()) or document.text
    return shop.fit(text, load_prompt(prompt), beside=len(document.title) + 400)


def _significance_values(item: Item, shop: Workshop) -> dict[str, object]:
    return {"title": _report(item, shop).title or "(none)", "report": _shown(item, shop, "ogcare-significance")}


def _significance(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
    s, document = shop.settings, _report(item, shop)
    significance, step = _line(value["significance"]), _line(value["step"])
    if value["kind"] in _REFUSED:
        found = find_quote(document, value["quote"], least=s.quote_match)
        return Rejection(reason=_REFUSED[value["kind"]], details=significance, span=found.spans[0] if found else None)
    for what, text, most in (("significance", significance, 80), ("decisive step", step, s.step_words)):
        if fault := sound(text, what=what, source=document.text, most_words=most):
            return fault
    if not telling_words(step):
        return Rejection(reason="the decisive step names nothing", details=step)
    for quote in (value["quote"], value["step_quote"]):
        if fault := sound(quote, what="quote for the significance", most_words=80):
            return fault
    proven = prove(item, document, [value["quote"], value["step_quote"]], "significance", least=s.quote_match)
    if isinstance(proven, Rejection):
        return proven
    if not telling_words(step) & telling_words(value["step_quote"]):
        return Rejection(reason="the quote does not tell the decisive step", details=f"{value['step_quote']} ({step})")
    taken = find_quote(document, value["step_quote"], least=s.quote_match)
    assert taken is not None, "it was proven above"
    return proven.put(significance=significance, step=step, step_at=[[span.start, span.end] for span in taken.spans])


def _with_step(prompt: str) -> Values:
    """The decisive step and the report, for a prompt."""
    return lambda item, shop: {"step": item["step"], "report": _shown(item, shop, prompt)}


def _timeline(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
    located = _located(value["events"], "timeline", _report(item, shop), shop)
    if isinstance(located, Rejection):
        return located
    ordered = sorted(located, key=lambda pair: pair[1][0].start)
    events = [{**entry, "when": _when(entry, spans, item, shop)} for entry, spans in ordered]
    facts = _facts(_report(item, shop), [entry for entry in events if entry["when"] == "before"], item["step"], shop)
    if len(facts) < shop.settings.least_events:
        return Rejection(
            reason="too few events before the decisive step", details=f"{len(facts)} of {len(events)} events"
        )
    return item.put(timeline=events, facts=facts)


def _when(entry: Mapping[str, Any], spans: Sequence[Span], item: Item, shop: Workshop) -> str:
    """How an event lies to the decisive step: what tells the step is it; what only is said to be lies by its place."""
    step_at = item["step_at"]
    if any(span.start < end and start < span.end for span in spans for start, end in step_at) or giving_away(
        entry["quote"], item["step"], share=shop.settings.leak_share
    ):
        return "decisive"
    if entry["when"] == "decisive":
        return "before" if spans[0].start < step_at[0][0] else "after"
    return str(entry["when"])


def _limitations(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
    located = _located(value["limitations"], "limitations", _report(item, shop), shop)
    if isinstance(located, Rejection):
        return located
    if len(located) < shop.settings.least_limitations:
        return Rejection(reason="nothing ruled the standard procedure out", details=f"{len(located)} limitations")
    item = item.proven(*(span for _, spans in located for span in spans))
    return item.put(limitations=[entry for entry, _ in located])


def _located(
    entries: Sequence[Mapping[str, str]], what: str, document: Document, shop: Workshop
) -> list[tuple[dict[str, Any], tuple[Span, ...]]] | Rejection:
    """Entries with where their quotes stand; more than the tolerated number of missing quotes turns the item away."""
    found: list[tuple[dict[str, Any], tuple[Span, ...]]] = []
    missing: list[Rejection] = []
    for entry in entries:
        for text in entry.values():
            if fault := sound(text, what=what, most_words=80):
                return fault
        proven = prove(Item(id=document.id), document, [entry["quote"]], what, least=shop.settings.quote_match)
        if isinstance(proven, Rejection):
            missing.append(proven)
        else:
            first, last = proven.evidence[0], proven.evidence[-1]
            found.append(({**entry, "start": first.start, "end": last.end}, proven.evidence))
    return missing[0] if len(missing) > shop.settings.unfound else found


def _facts(document: Document, events: Sequence[Mapping[str, Any]], step: str, shop: Workshop) -> list[str]:
    """The sentences of the report that tell these events, each once, in its order; less where one tells the step."""
    sentences = sentence_spans(document.text)
    facts: dict[str, None] = {}
    for event in events:
        whole = [document.text[a:b] for a, b in sentences if a < event["end"] and event["start"] < b]
        for text in (_POINTER.sub("", _line(each)) for each in (" ".join(whole), event["quote"])):
            if len(text.split()) >= _LEAST_FACT and not giving_away(text, step, share=shop.settings.leak_share):
                facts[text] = None
                break
    return list(facts)


def _of(*names: str) -> Values:
    """The item's values of these names, for a prompt."""
    return lambda item, _shop: {name: item[name] for name in names}


def _question_values(item: Item, shop: Workshop) -> dict[str, object]:
    telling = shop.settings.leak_share
    limits = [
        each["limitation"] if giving_away(each["quote"], item["step"], share=telling) else each["quote"]
        for each in item["limitations"]
    ]
    return {
        "significance": item["significance"],
        "step": item["step"],
        "facts": listed(item["facts"]),
        "limitations": listed(limits) or "(none)",
    }


def _question(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
    s, source = shop.settings, _report(item, shop).text
    context, question, answer = str(value["context"]).strip(), _line(value["question"]), _line(value["answer"])
    for what, text, most in (
        ("answer", answer, s.answer_words),
        ("context", context, s.most_words),
        ("question", question, s.question_words),
    ):
        if fault := sound(text, what=what, source=source, most_words=most):
            return fault
    if len(context.split()) < s.least_words:
        return Rejection(reason="the context is too short", details=f"{len(context.split())} words")
    if not question.endswith("?"):
        return Rejection(reason="the question does not end as a question", details=question)
    if len(sentence_spans(answer)) > s.answer_sentences:
        return Rejection(reason="the answer has too many sentences", details=answer)
    if not giving_away(answer, item["step"], share=0.5):
        return Rejection(reason="the answer is not the decisive step", details=f"{answer} (step: {item['step']})")
    if invented := new_numbers(f"{context}\n{question}\n{answer}", source):
        return Rejection(reason="a number is not in the source", details=", ".join(invented))
    item = item.put(context=context, question=question, answer=answer)
    return _leak(item, f"{context}\n\n{question}", shop) or item


def _leak(item: Item, text: str, shop: Workshop) -> Rejection | None:
    """Whether a text names the decisive step, whole or by its telling words; single words known before it do not."""
    reason, known = "the question gives the answer away", " ".join(item["facts"]).casefold()
    for leak in find_leaks(text, item["step"], source=_report(item, shop)):
        if " " in leak.text or leak.text.casefold() not in known:
            return Rejection(reason=reason, details=f"{leak.text} ({leak.kind})")
    for phrase in (item["step"], item["answer"]):
        if sentence := giving_away(text, phrase, share=shop.settings.leak_share):
            return Rejection(reason=reason, details=sentence)
    return None


def _core(item: Item, value: dict[str, Any], shop: Workshop) -> Outcome:
    context = Document(id=item.id, title="", text=item["context"])
    found: list[str] = []
    missing: list[str] = []
    for fact in map(_line, value["core"]):
        place = find_quote(context, fact, least=shop.settings.quote_match)
        if place is None or len(fact.split()) < _LEAST_FACT:
            missing.append(fact)
        else:
            found.extend(span.quote for span in place.spans)
    if len(missing) > shop.settings.unfound:
        return Rejection(reason="a fact of the core is not a statement of the context", details=missing[0])
    if not found:
        return Rejection(reason="no fact of the context leads to the answer")
    return item.put(core=list(dict.fromkeys(found)))


def _verify(item: Item, value: dict[str, Any], _shop: Workshop) -> Outcome:
    if value["answer_is_significance"] != "yes":
        return Rejection(reason="the answer is not the significance", details=value["reason"])
    if value["given_away"] != "no":
        return Rejection(reason="verification finds that the question gives the answer away", details=value["reason"])
    return item.put(verified=value["reason"])


def _rated(labels: Mapping[str, Sequence[ReviewLabel]], s: OgcareSettings) -> Rejection | None:
    for criterion in CRITERIA:
        ratings = [_rating(label, s.reviews) for label in labels.get(criterion, ())]
        low = min(ratings, default=5.0) if s.review_rule == "each" else sum(ratings) / len(ratings) if ratings else 5.0
        if low < s.least_rating:
            given = ", ".join(f"{rating:g}" for rating in ratings)
            return Rejection(reason=f"rated below {s.least_rating:g} on {criterion}", details=f"ratings {given}")
    return None


def _rating(label: ReviewLabel, path: str) -> float:
    try:
        rating = float(label.value)
    except ValueError:
        rating = 0.0
    if not 1 <= rating <= 5:
        raise InputError(f"{label.value!r} is no rating for {label.item}", where=path, fix="give a number from 1 to 5")
    return rating


def _finish(items: Sequence[Item], shop: Workshop) -> Made:
    plain = tuple(_made(item, item["context"], shop) for item in items)
    main = tuple(_made(item, item.get("distracted") or item["context"], shop) for item in items)
    editions: tuple[Edition, ...] = ()
    if shop.settings.distraction:
        shop.tables["distraction"] = distraction_table(items)
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
    return Made(questions=main, editions=editions, review=tasks)


def _made(item: Item, context: str, shop: Workshop) -> Question:
    year = year_of(_report(item, shop))
    return Question(
        id=item.id,
        text=item["question"],
        context=context,
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
