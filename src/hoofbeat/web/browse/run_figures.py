"""Runs and folders of judgments, opened for their pages: the index first, the figures as soon as they are there."""

from __future__ import annotations

from fastapi import Request
from markupsafe import Markup
from msgspec import Struct

from hoofbeat.reports.indexes.answer_index import AnswersIndex, index_answers
from hoofbeat.reports.linked_tables import linked_html
from hoofbeat.reports.model import Block, Heading, Notice, Text
from hoofbeat.reports.sections.scores.accuracy_table import leaderboard_section
from hoofbeat.reports.sections.scores.condition_grid import grid_section, pairs_section
from hoofbeat.reports.sections.scores.facet_scores import facets_section
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, gather
from hoofbeat.reports.words import count_of
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import some_of
from hoofbeat.web.browse.open_folders import BackgroundResult, opened_folder, prepare_in_background
from hoofbeat.web.site import Site

KINDS = ("run", "judgments")
_PREFIX = "scores"


class RunFigures(Struct, frozen=True, kw_only=True):
    """What the pages on a run say: who judged, what has to be known first, its scores, and the same by facet.

    Charts and tables are kept as they stand on the page: drawing them takes longer than all else.
    """

    judged: str
    notices: tuple[str, ...]
    headings: tuple[Heading, ...]
    scores: Markup
    facets: Markup


class RunFolder(Struct, frozen=True):
    """A folder of answers: they can be found before their figures are worked out."""

    index: AnswersIndex
    figures: BackgroundResult[RunFigures]


def run_of(request: Request, slug: str) -> tuple[Folder, RunFolder]:
    """The run or judgments of a page; where they are not there, or are being read, another page is shown."""
    return opened_folder(request, slug, KINDS, "run or folder of judgments", open_run)


def open_run(site: Site, folder: Folder, *, patience: float | None = None) -> RunFolder | None:
    """The folder's index, and its figures as far as they are; None while the index is being made."""
    return prepare_in_background(site, folder, "answers", _open, patience=patience)


def _open(folder: Folder) -> RunFolder:
    artefact = folder.artefact()
    group = gather([(_PREFIX, artefact)], [])[0]
    index = index_answers(artefact, group)
    return RunFolder(index, BackgroundResult(lambda: _figures(group)))


def _figures(group: OutcomeSet) -> RunFigures:
    blocks: list[Block] = []
    facets: tuple[Block, ...] = ()
    if group.outcomes:
        whole = group.whole
        first, table = leaderboard_section(whole)
        shown = [first, grid_section(whole, table), pairs_section(whole)]
        blocks = [block for each in shown for block in each.blocks]
        facets = facets_section(whole).blocks
    elif group.tallies:
        blocks.append(
            Text("There is no judgment in this folder, so there is no score. The answers can be read one by one.")
        )
    else:
        blocks.append(Notice("This folder holds no answers."))
    return RunFigures(
        judged=group.judge,
        notices=tuple(_notices(group)),
        headings=tuple(block for block in blocks if isinstance(block, Heading)),
        scores=linked_html(blocks),
        facets=linked_html(facets),
    )


def _notices(group: OutcomeSet) -> list[str]:
    """What a reader must know before the figures."""
    told = []
    if group.self_judged:
        told.append("The judge is the model that answered; a model tends to agree with itself.")
    if group.by_people:
        labelled = sum(count.labelled for count in group.by_people.values())
        of = sum(group.tallies[system].answers for system in group.by_people)
        told.append(
            f"Labelled by people alone: {labelled:,} of {count_of(of, 'planned answer')}; the rest is unscored."
        )
    if group.outcomes and group.unjudged:
        names = some_of([f"{model} · {condition}" for model, condition in group.unjudged], 8)
        told.append(f"In free text that nobody judged for equivalence, and in no accuracy: {names}.")
    return told
