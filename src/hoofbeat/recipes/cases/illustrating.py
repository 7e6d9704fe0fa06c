"""The steps that give a question its image version, and the account of what they did.

An item without a usable image stays in the main edition: its `no_image` says why the image edition goes without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.cases.imaging import Placed, image_stem, place_figures, usable_figures
from hoofbeat.recipes.cases.stems import spans_of
from hoofbeat.recipes.context import RecipeContext, TableFile
from hoofbeat.recipes.items import Item, Outcome
from hoofbeat.recipes.steps import RecipeStep, ask, check

__all__ = ["account_for_images", "describing_sentences", "find_figures", "image_version"]

PROMPT = "clinbench-images"


def find_figures(name: str, *, least_pixels: int) -> RecipeStep:
    """Find the figures that belong to a stem and whose images can be shown."""

    def judge(item: Item, context: RecipeContext) -> Outcome:
        document = context.document(item.documents[0])
        held = sorted(
            {file for figure in document.figures for file in figure.files if context.corpus.artefact.has(file)}
        )
        content = {file: context.corpus.path.joinpath(file).read_bytes() for file in held}
        files, why = usable_figures(document, content, least_pixels=least_pixels)
        placed = place_figures(document, spans_of(item), files)
        if not placed:
            return item.put(no_image=why or "no figure belongs to the stem")
        return item.put(figures=msgspec.to_builtins(placed))

    return check(name, judge)


def describing_sentences(name: str) -> RecipeStep:
    """Ask a model for sentences that describe what the figures show; items without figures pass by."""

    def values(item: Item, context: RecipeContext) -> dict[str, object]:
        captions = {each.id: f"{each.label}. {each.caption}" for each in context.document(item.documents[0]).figures}
        figures = "\n".join(captions[each["figure"]] for each in item["figures"])
        return {"figures": figures, "stem": context.fit(item["stem"], load_prompt(PROMPT), beside=len(figures))}

    def read(item: Item, value: dict[str, Any], _shop: RecipeContext) -> Outcome:
        return item.put(describing=[str(each) for each in value["sentences"]])

    return ask(name, PROMPT, values=values, read=read, when=lambda item: "figures" in item.values)


def image_version(name: str, *, least_words: int, least: float) -> RecipeStep:
    """Place the figures and remove what describes them, by rule and by the sentences a model named.

    A sentence it named that is not in the stem is listed under `unknown` and removes nothing.
    """

    def judge(item: Item, context: RecipeContext) -> Outcome:
        if "figures" not in item.values:
            return item
        document = context.document(item.documents[0])
        placed = msgspec.convert(item["figures"], tuple[Placed, ...])
        made = image_stem(document, spans_of(item), placed, item.get("describing", ()), least=least)
        if len(made.text.split()) < least_words:
            return item.put(no_image="too little text is left beside the images")
        return item.put(image=msgspec.to_builtins(made))

    return check(name, judge)


def account_for_images(items: Sequence[Item], context: RecipeContext) -> None:
    """Count what the image edition has, what it goes without and why; list every removed sentence."""
    left_out = Counter(str(item["no_image"]) for item in items if "no_image" in item.values)
    shown = [(item.id, item["image"]) for item in items if "image" in item.values]
    removed = [(id, each) for id, image in shown for each in image["removed"]]
    context.metrics["image edition"] = {
        "questions": len(shown),
        "left out": dict(sorted(left_out.items())),
        "images": sum(len(image["images"]) for _, image in shown),
        "sentences removed": dict(sorted(Counter(each["by"] for _, each in removed).items())),
        "quotes not in the stem": sum(len(image["unknown"]) for _, image in shown),
    }
    context.tables["removed"] = TableFile(
        ("item", "start", "end", "by", "text"),
        [(id, each["start"], each["end"], each["by"], each["text"]) for id, each in removed],
    )
