"""Filters of a corpus as steps of a recipe, so that venue, rarity, promotion, duplicates or licences are judged once.

A line such as `not retracted; not promotional; unique(minhash, 0.15)` becomes a step for each of its filters, named as
it is written. What a filter marks on a document (such as `rarity`) becomes facets of the item, seen by later filters.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from hoofbeat.corpus.filter import FilterStep, FilterVerdict, Judge, parse_filters, per_document
from hoofbeat.corpus.filters.rare import RarityLimits, rare, rarity
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.items import Item, Outcome, Rejection
from hoofbeat.recipes.steps import RecipeStep, whole
from hoofbeat.records import Document

__all__ = ["filter_step", "filter_steps", "rarity_step"]


def filter_steps(line: str, *, spare: Collection[str] = ()) -> list[RecipeStep]:
    """A step for each filter of a line, in their order; an empty line has none. A wrong line is a `UsageError`.

    `spare` are reasons that reject nobody, such as `no venue stated`: the item goes on, marked unknown in a facet of
    the filter's name.
    """
    return [filter_step(each, spare=spare) for each in parse_filters(line)] if line.strip(" ;") else []


def filter_step(filter: FilterStep, *, spare: Collection[str] = ()) -> RecipeStep:
    """One filter as a step: an item stays when all its documents do. A two-pass filter sees those of all items."""

    def judge(items: Sequence[Item], context: RecipeContext) -> list[Outcome]:
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


def _judged(item: Item, context: RecipeContext, filter: FilterStep, judge: Judge, spare: Collection[str]) -> Outcome:
    for document in _marked(item, context):
        verdict: FilterVerdict = judge(document)
        if verdict.kept:
            item = item.labelled(**verdict.facets) if verdict.facets else item
        elif verdict.reason in spare:
            item = item.labelled(**{filter.name: "unknown"})
        else:
            return Rejection(reason=verdict.reason, details=verdict.details)
    return item


def _documents(items: Sequence[Item], context: RecipeContext) -> Iterator[Document]:
    """The documents of all items, each once."""
    seen: set[str] = set()
    for item in items:
        for document in _marked(item, context):
            if document.id not in seen:
                seen.add(document.id)
                yield document


def _marked(item: Item, context: RecipeContext) -> Iterator[Document]:
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
