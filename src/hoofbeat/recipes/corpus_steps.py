"""Filters of a corpus as steps of a recipe, so that venue, rarity, promotion, duplicates or licences are judged once.

A line such as `not retracted; not promotional; unique(minhash, 0.15)` becomes a step for each of its filters, named
as it is written. What a filter marks on a document (such as `rarity`) becomes facets of the item, seen by later
filters.

Labels of a scheme, such as a paper's specialties, are given by rule over the source, or by a model. Unknown is a
label: what no rule can place is labelled `unknown` and goes on. A call that brings nothing is none: such an item goes
on as `failed`, and the manifest counts them by step and kind under `label failures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from hoofbeat.corpus.filter import FilterStep, FilterVerdict, Judge, parse_filters, per_document
from hoofbeat.corpus.filters.rare import RarityLimits, rare, rarity
from hoofbeat.corpus.specialties import UNKNOWN, Scheme, gather, label_evidence, label_request, load_scheme
from hoofbeat.corpus.vocabulary import Vocabulary
from hoofbeat.models.model import StructuredReply
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.recipe_items import ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import RecipeStep, StepEstimate, check, whole
from hoofbeat.records import Document, Failure, Step


def filter_steps(line: str, *, spare: Collection[str] = ()) -> list[RecipeStep]:
    """A step for each filter of a line, in their order; an empty line has none. A wrong line is a `UsageError`.

    `spare` are reasons that reject nobody, such as `no venue stated`: the item goes on, marked unknown in a facet of
    the filter's name.
    """
    return [filter_step(each, spare=spare) for each in parse_filters(line)] if line.strip(" ;") else []


def filter_step(filter: FilterStep, *, spare: Collection[str] = ()) -> RecipeStep:
    """One filter as a step: an item stays when all its documents do. A two-pass filter sees those of all items."""

    def judge(items: Sequence[RecipeItem], context: RecipeContext) -> list[Outcome]:
        ready = filter.prepare(lambda: _documents(items, context), context.progress)
        context.roles_used.update(ready.models)
        context.files_used.update({str(path): path for path in filter.files})
        for name, table in ready.tables.items():
            context.tables[_own_name(Path(name).stem, context)] = TableFile(table.header, table.rows)
        with context.progress.task(filter.line, len(items)) as task:
            outcomes = []
            for item in items:
                outcomes.append(_judged(item, context, filter, ready.judge, spare))
                task.advance()
        return outcomes

    return whole(filter.line, judge)


def rarity_step(citations: str, limits: RarityLimits) -> RecipeStep:
    """Recent and hardly cited reports, by a citation file; without one, only the year is known and rarity is not."""
    if citations:
        return filter_step(rare(Path(citations), limits))
    line = f"rare(no citations, year>{limits.year})"
    return filter_step(per_document("rare", line, lambda document: rarity(document, None, limits)))


def _judged(
    item: RecipeItem, context: RecipeContext, filter: FilterStep, judge: Judge, spare: Collection[str]
) -> Outcome:
    for document in _marked(item, context):
        verdict: FilterVerdict = judge(document)
        if verdict.kept:
            item = item.labelled(**verdict.facets) if verdict.facets else item
        elif verdict.reason in spare:
            item = item.labelled(**{filter.name: "unknown"})
        else:
            return ItemRejection(reason=verdict.reason, details=verdict.details)
    return item


def _documents(items: Sequence[RecipeItem], context: RecipeContext) -> Iterator[Document]:
    """The documents of all items, each once."""
    seen: set[str] = set()
    for item in items:
        for document in _marked(item, context):
            if document.id not in seen:
                seen.add(document.id)
                yield document


def _marked(item: RecipeItem, context: RecipeContext) -> Iterator[Document]:
    """The item's documents with the marks that earlier filters left on it."""
    for id in item.documents:
        document = context.document(id)
        yield msgspec.structs.replace(document, facets={**document.facets, **item.facets}) if item.facets else document


def _own_name(name: str, context: RecipeContext) -> str:
    """A table's name, numbered where two steps leave one of the same name."""
    number, own = 2, name
    while own in context.tables:
        own, number = f"{name}-{number}", number + 1
    return own


FAILED = "failed"
"""The facet of an item for which the call brought no label."""
PROMPT = "specialty"
Text = Callable[[RecipeItem, RecipeContext], str]


def label_step(
    name: str,
    scheme: str,
    *,
    facet: str = "specialty",
    by: Literal["rule", "model"] = "rule",
    text: Text | None = None,
    vocabulary: str = "",
) -> RecipeStep:
    """Label every item in a scheme, as a facet. `text` says what is read, in place of the item's first document.

    With a `vocabulary`, the chapters of the codes that are found in the text count for the rule as well.
    How sure the rule was, or why the model chose so, is written as the value `FACET_why`.
    """
    chosen = load_scheme(scheme)
    if by == "rule":
        return check(
            name,
            lambda item, context: _by_rule(
                item,
                _read(item, context, text),
                chosen,
                facet,
                context.vocabulary(vocabulary) if vocabulary else None,
            ),
        )
    return RecipeStep(
        name=name,
        run=lambda items, context: _by_model(name, items, context, chosen, facet, text),
        prompts=(PROMPT,),
        calls=1,
    )


def _read(item: RecipeItem, context: RecipeContext, text: Text | None) -> Document:
    """What is labelled: the source, or the text that the recipe chose, under the item's title."""
    if text is None and item.documents:
        return context.document(item.documents[0])
    return Document(id=item.id, title=str(item.get("title", "")), text=text(item, context) if text else "")


def _by_rule(
    item: RecipeItem, document: Document, scheme: Scheme, facet: str, vocabulary: Vocabulary | None
) -> RecipeItem:
    label = label_evidence(gather(document, vocabulary), scheme)
    why = f"confidence {label.confidence:.2f}"
    if label.reasons:
        why += ": " + ", ".join(dict.fromkeys(each.text.lower() for each in label.reasons))
    if label.name == UNKNOWN and label.best != UNKNOWN:
        why += f" (leans to {label.best})"
    return item.labelled(**{facet: label.name}).put(**{f"{facet}_why": why})


def _by_model(
    name: str, items: Sequence[RecipeItem], context: RecipeContext, scheme: Scheme, facet: str, text: Text | None
) -> list[Outcome]:
    file = load_prompt(PROMPT)
    context.prompts_used[PROMPT] = file.label
    model = context.model()
    requests = [label_request(_read(item, context, text), scheme) for item in items]
    if context.estimating:
        estimate = model.estimate(requests)
        if estimate.calls:
            raise StepEstimate(name, len(items), estimate)
    results = model.run(requests, model.chat_json, title=name, progress=context.progress)
    failures = Counter(result.kind for result in results if isinstance(result, Failure))
    if failures:
        before: Any = context.metrics.get("label failures", {})
        context.metrics["label failures"] = {**before, name: dict(sorted(failures.items()))}
    return [
        _labelled(item, result, facet, Step(name=name, prompt=file.label, model=model.spec))
        for item, result in zip(items, results, strict=True)
    ]


def _labelled(item: RecipeItem, result: StructuredReply | Failure, facet: str, step: Step) -> RecipeItem:
    if isinstance(result, Failure):
        return item.labelled(**{facet: FAILED}).put(**{f"{facet}_why": f"no label: {result.kind}"}).done(step)
    label, why = str(result.value["label"]), str(result.value["reason"]).strip()
    done = msgspec.structs.replace(step, call=result.calls[-1] if result.calls else "")
    return item.labelled(**{facet: label}).put(**{f"{facet}_why": why}).done(done)
