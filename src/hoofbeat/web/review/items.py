"""A study and its items from an artefact: what people are asked about, under codes that tell them nothing.

From a benchmark come the tasks its recipe left (`review.jsonl`), from an audit or its packets pairs of answers, from a
run or a folder of judgments answers. Codes are those of `judging.packets` and `judging.humans`, so that labels that are
given here are read like labels from a sheet. Everything drawn is drawn by the seed.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from hoofbeat.errors import UsageError
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.tables import canonical_json
from hoofbeat.web.review.forms import Form, form_names, load_form
from hoofbeat.web.review.items_answers import ANSWER_FORMS, answer_items
from hoofbeat.web.review.items_pairs import audit_items, packet_items
from hoofbeat.web.review.items_tasks import benchmark_items, waiting_forms
from hoofbeat.web.review.plans import stratified
from hoofbeat.web.review.records import Item, Study

__all__ = ["KINDS", "forms_in", "study_from"]

KINDS = ("benchmark", "audit", "packets", "run", "judgments")
"""The artefacts that people can be asked about."""


def forms_in(path: Path) -> dict[str, int]:
    """The forms for which something waits in an artefact, and how much; 0 where that is not known before the draw."""
    artefact = open_artefact(path, KINDS)
    if artefact.manifest.kind == "benchmark":
        return waiting_forms(artefact)
    return {"pair": 0} if artefact.manifest.kind in ("audit", "packets") else dict.fromkeys(ANSWER_FORMS, 0)


def study_from(
    path: Path,
    *,
    form: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    strata: str | None = None,
    title: str = "",
) -> tuple[Study, list[Item]]:
    """A study about an artefact, and its items in order.

    Without a `form`, the one that waits there; where several do, one must be named. `sample` draws that many items:
    of tasks by the strata's shares, of pairs the same number of every label, of answers as `judge` draws its sheet.
    `strata` names the facet of questions that tasks are drawn by; without it, their specialty.
    """
    artefact = open_artefact(path, KINDS)
    if sample is not None and sample < 1:
        raise UsageError(f"{sample} items can't be drawn", fix="give a sample of 1 or more")
    chosen = _chosen_form(path, form)
    settings, items = _items(artefact, chosen, sample, seed, strata)
    if not items:
        raise UsageError(f"nothing waits for {chosen} here", where=str(path), fix="name another form or folder")
    reference = artefact.reference()
    drawn_as: dict[str, Any] = {"seed": seed, "sample": sample, "strata": strata, "of": artefact.manifest.kind}
    identity = canonical_json([reference.sha256, chosen, drawn_as])
    asks = load_form(chosen, settings)
    id = f"{chosen}-{hashlib.sha256(identity).hexdigest()[:8]}"
    study = Study(
        id=id,
        title=title or _title(asks, artefact),
        form=chosen,
        source=artefact.path.name,
        source_sha256=reference.sha256,
        settings={**drawn_as, **settings},
    )
    return study, [msgspec.structs.replace(item, study=id, place=place) for place, item in enumerate(items)]


def _chosen_form(path: Path, form: str | None) -> str:
    waiting = forms_in(path)
    if form is None:
        if len(waiting) == 1 or (waiting and "equivalence" in waiting):
            return next(iter(waiting))
        told = ", ".join(f"{name} ({count})" for name, count in waiting.items())
        raise UsageError(
            "several kinds of review wait here" if waiting else "nothing waits for review here",
            where=str(path),
            fix=f"name one with --form: {told}" if waiting else "name another folder",
        )
    if form not in form_names():
        raise UsageError(f"there is no form {form!r}", fix=f"use one of: {', '.join(form_names())}")
    if form not in waiting:
        raise UsageError(
            f"nothing waits for {form} here", where=str(path), fix=f"there is: {', '.join(waiting) or 'nothing'}"
        )
    return form


def _items(
    artefact: Artefact, form: str, sample: int | None, seed: int, strata: str | None
) -> tuple[dict[str, Any], list[Item]]:
    """What the form needs in the study's settings, and the items drawn."""
    kind = artefact.manifest.kind
    if kind == "audit":
        return audit_items(artefact, sample, seed)
    if kind == "packets":
        settings, items = packet_items(artefact)
        return settings, stratified(items, sample, seed) if sample else items
    if kind in ("run", "judgments"):
        return answer_items(artefact, form, sample, seed)
    items = benchmark_items(artefact, form, strata)
    return {}, stratified(items, sample, seed) if sample else items


def _title(form: Form, artefact: Artefact) -> str:
    """What is asked, and of what, unless that could tell whose answers they are."""
    if form.blinded:
        return form.title
    return f"{form.title}{'' if form.title.endswith('?') else ':'} {artefact.manifest.title or artefact.path.name}"
