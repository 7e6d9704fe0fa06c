"""Labels of items in a scheme such as a paper's specialties: by rule over the source, or by a model.

Unknown is a label: what no rule can place is labelled `unknown` and goes on. A call that brings nothing is none: such
an item goes on as `failed`, and the manifest counts them by step and kind under `label failures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from hoofbeat.corpus.vocabularies import load_scheme
from hoofbeat.corpus.vocabularies.schemes import UNKNOWN, Scheme
from hoofbeat.corpus.vocabularies.specialty_evidence import gather
from hoofbeat.corpus.vocabularies.specialty_labels import label_evidence, label_request
from hoofbeat.models.model import StructuredReply
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.items import Item, Outcome
from hoofbeat.recipes.steps import Estimated, RecipeStep, check
from hoofbeat.records import Document, Failure, Step

__all__ = ["FAILED", "label_step"]

FAILED = "failed"
"""The facet of an item for which the call brought no label."""
PROMPT = "specialty"
Text = Callable[[Item, RecipeContext], str]


def label_step(
    name: str,
    scheme: str,
    *,
    facet: str = "specialty",
    by: Literal["rule", "model"] = "rule",
    text: Text | None = None,
) -> RecipeStep:
    """Label every item in a scheme, as a facet. `text` says what is read, in place of the item's first document.

    How sure the rule was, or why the model chose so, is written as the value `FACET_why`.
    """
    chosen = load_scheme(scheme)
    if by == "rule":
        return check(name, lambda item, context: _by_rule(item, _read(item, context, text), chosen, facet))
    return RecipeStep(
        name=name,
        run=lambda items, context: _by_model(name, items, context, chosen, facet, text),
        prompts=(PROMPT,),
        calls=1,
    )


def _read(item: Item, context: RecipeContext, text: Text | None) -> Document:
    """What is labelled: the source, or the text that the recipe chose, under the item's title."""
    if text is None and item.documents:
        return context.document(item.documents[0])
    return Document(id=item.id, title=str(item.get("title", "")), text=text(item, context) if text else "")


def _by_rule(item: Item, document: Document, scheme: Scheme, facet: str) -> Item:
    label = label_evidence(gather(document), scheme)
    why = f"confidence {label.confidence:.2f}"
    if label.reasons:
        why += ": " + ", ".join(dict.fromkeys(each.text.lower() for each in label.reasons))
    if label.name == UNKNOWN and label.best != UNKNOWN:
        why += f" (leans to {label.best})"
    return item.labelled(**{facet: label.name}).put(**{f"{facet}_why": why})


def _by_model(
    name: str, items: Sequence[Item], context: RecipeContext, scheme: Scheme, facet: str, text: Text | None
) -> list[Outcome]:
    file = load_prompt(PROMPT)
    context.prompts_used[PROMPT] = file.label
    model = context.model()
    requests = [label_request(_read(item, context, text), scheme) for item in items]
    if context.estimating:
        estimate = model.estimate(requests)
        if estimate.calls:
            raise Estimated(name, len(items), estimate)
    results = model.run(requests, model.chat_json, title=name, progress=context.progress)
    failures = Counter(result.kind for result in results if isinstance(result, Failure))
    if failures:
        before: Any = context.metrics.get("label failures", {})
        context.metrics["label failures"] = {**before, name: dict(sorted(failures.items()))}
    return [
        _labelled(item, result, facet, Step(name=name, prompt=file.label, model=model.spec))
        for item, result in zip(items, results, strict=True)
    ]


def _labelled(item: Item, result: StructuredReply | Failure, facet: str, step: Step) -> Item:
    if isinstance(result, Failure):
        return item.labelled(**{facet: FAILED}).put(**{f"{facet}_why": f"no label: {result.kind}"}).done(step)
    label, why = str(result.value["label"]), str(result.value["reason"]).strip()
    done = msgspec.structs.replace(step, call=result.calls[-1] if result.calls else "")
    return item.labelled(**{facet: label}).put(**{f"{facet}_why": why}).done(done)
