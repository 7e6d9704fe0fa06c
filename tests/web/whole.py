"""A whole site: a folder of every kind, a study of every form, an exam, people of every role; also poisoned."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars
from msgspec import Struct

from hoofbeat.review.assignments import AssignmentPlan, assign_items
from hoofbeat.review.exam_items import exam_study
from hoofbeat.review.review_records import Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import FolderLibrary, Site, create_app
from tests.review.review_studies import ANSWERS, FORMS, study_of, task_folders
from tests.web.support import serving

__all__ = ["ATTACKS", "Whole", "poisoned", "whole_site"]

ATTACKS = (
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=2">',
    "'><svg onload=window.pwned=3>",
    "</title></textarea></script><script>window.pwned=4</script>",
    "javascript:window.pwned=5",
    '<a href="javascript:window.pwned=6">x</a>',
    '" autofocus onfocus="window.pwned=7" x="',
    "<iframe srcdoc='<script>parent.pwned=8</script>'></iframe>",
    "{{ 7 * 191 }}{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}",
    "&lt;script&gt;window.pwned=9&lt;/script&gt;\u202e\u2066\x1b[31m",
    "<form action=//evil.invalid><button>Send</button></form>",
    "<meta http-equiv=refresh content='0;url=//evil.invalid'><base href=//evil.invalid>",
)
"""Ways to smuggle script or a way out into a page."""

_TEXTS = {
    "text", "title", "caption", "heading", "label", "answer", "context", "reasoning", "topic", "note", "licence",
    "options", "facets", "citations", "quote", "message", "values", "reason", "question", "shown", "choice", "warnings",
}  # fmt: skip
_KEYS = {"question", "label", "choice", "quote"}
"""Fields that are also looked up by: poisoned only where that breaks nothing."""


class Whole(Struct, frozen=True):
    """A running site: its address, and a token of an admin, an adjudicator and a reviewer with work in each study."""

    address: str
    store: ReviewStore
    admin: str
    adjudicator: str
    reviewer: str
    studies: tuple[Study, ...]


@contextmanager
def whole_site(folders: Path, database: str, *, hostile: bool = False) -> Iterator[Whole]:
    """Serve everything; with `hostile`, the names of people and studies attack as well."""
    names = itertools.cycle(ATTACKS)

    def name(text: str) -> str:
        return f"{text} {next(names)}"[:120] if hostile else text

    task_folders(folders)
    with ReviewStore.open(database) as store:
        reviewers = [store.invite(name(f"Invented reviewer {n}"), "reviewer", by="test") for n in (1, 2)]
        _, adjudicator = store.invite(name("Invented adjudicator"), "adjudicator", by="test")
        _, admin = store.invite(name("Invented admin"), "admin", by="test")
        studies = []
        for form in FORMS:
            study, items = study_of(folders, form, title=name(f"Study of {form}"))
            store.create_study(study, items[:4], by="test")
            assign_items(store, study, [person for person, _ in reviewers], AssignmentPlan(per_item=2), by="test")
            _label(store, study, reviewers[0][0].id, reviewers[1][0].id)
            studies.append(study)
        study, items = exam_study(folders / "bench", per_person=4, stages=(50, 100), title=name("Exam"))
        store.create_study(study, items, by="test")
        assign_items(store, study, [person for person, _ in reviewers], AssignmentPlan(per_item=2), by="test")
        studies.append(study)
        site = Site(library=FolderLibrary([folders]), store=store)
        with serving(create_app(site)) as address:
            yield Whole(address, store, admin, adjudicator, reviewers[0][1], tuple(studies))


def _label(store: ReviewStore, study: Study, one: str, other: str) -> None:
    """Both have said something of the first item, one of them has skipped the second."""
    values = ANSWERS[study.form]
    for person, item in ((one, 0), (other, 0)):
        rows = store.assignments(study.id, person)
        if len(rows) > item:
            store.save(
                study.id, rows[item].item, person,
                values=values, state="done", seconds=30, base=0, request=f"{study.id}-{person}-{item}",
            )  # fmt: skip
    rows = store.assignments(study.id, one)
    if len(rows) > 1:
        store.save(
            study.id, rows[1].item, one,
            values={}, state="skipped", seconds=3, base=0, request=f"{study.id}-skip", reason=f"unclear {ATTACKS[0]}",
        )  # fmt: skip


def poisoned(folders: Path, target: Path) -> Path:
    """A copy of the folders in which every text carries an attack at its end; the manifests agree with it."""
    shutil.copytree(folders, target)
    attacks = itertools.cycle(ATTACKS)
    for manifest in sorted(target.glob("*/manifest.json")):
        folder = manifest.parent
        told = json.loads(manifest.read_text("utf-8"))
        if told["kind"] == "report":  # a page of its own, tested where it is made
            continue
        for path in sorted(folder.glob("*.jsonl")):
            rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            path.write_text("".join(json.dumps(_poison(row, attacks)) + "\n" for row in rows), encoding="utf-8")
        for path in sorted(folder.glob("comparisons.parquet")):
            frame = polars.read_parquet(path)
            attack = polars.Series(list(itertools.islice(attacks, len(frame))))
            for column in ("topic", "reasoning"):
                text = frame[column].cast(polars.String)
                frame = frame.with_columns((text + " " + attack).alias(column))
            frame.write_parquet(path)
        told["title"] = f"{told.get('title', '')} {next(attacks)}"
        for name in told["files"]:
            told["files"][name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        manifest.write_text(json.dumps(told), encoding="utf-8")
    return target


def _poison(value: Any, attacks: Iterator[str], key: str = "") -> Any:
    if isinstance(value, dict):
        return {
            name: _poison(each, attacks, name if name in _TEXTS or not key else key) for name, each in value.items()
        }
    if isinstance(value, list):
        return [_poison(each, attacks, key) for each in value]
    if isinstance(value, str) and key in _TEXTS and key not in _KEYS and value:
        return f"{value} {next(attacks)}"
    return value
