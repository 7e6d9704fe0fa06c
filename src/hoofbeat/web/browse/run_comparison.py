"""Two runs side by side: how far they differ and how sure that is, the questions that flipped, both answers to each."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from msgspec import Struct
from numpy.typing import NDArray

from hoofbeat.errors import HoofbeatError
from hoofbeat.findings.accuracy import CHANGES, Accuracy, SystemDifference, change, tone_of_change
from hoofbeat.reports.answer_index import AnswerFilter, AnswersIndex, QuestionRow
from hoofbeat.reports.comparison.answers import AnswersComparison, FolderSystem, Pair, compare_answers
from hoofbeat.reports.comparison.answers_page import warnings_of
from hoofbeat.reports.interval_words import interval_note
from hoofbeat.reports.item_views import question_view
from hoofbeat.reports.model import Card
from hoofbeat.reports.section import spread
from hoofbeat.reports.tables import triple, written
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut
from hoofbeat.web.browse.links import (
    FACET,
    Choices,
    Picker,
    address,
    case_of,
    choices_of,
    facet_key,
    facets_chosen,
    page_number,
    question_link,
    reference_of,
)
from hoofbeat.web.browse.open_folders import PageInstead, prepare_in_background, preparing_page
from hoofbeat.web.browse.run_pages import KINDS, RunFolder, answer_blocks, neighbours, open_run
from hoofbeat.web.page_rendering import not_found, page_of, render
from hoofbeat.web.site import Site, site_of

SAME = -1
"""The code of a question that did not change, or was not put to both systems."""


class SystemPairSummary(Struct, frozen=True, kw_only=True):
    """Two systems: in words, how they differ, how often each was right, and how many questions changed in which way."""

    number: int
    title: str
    pair: Pair
    difference: SystemDifference
    accuracies: tuple[Accuracy, Accuracy]
    flips: dict[str, int]


class RunComparison(Struct, frozen=True, kw_only=True):
    """The comparison of two folders; `changes` has a row a pair and a column a question, codes of `CHANGES`."""

    pairs: tuple[SystemPairSummary, ...]
    warnings: tuple[str, ...]
    questions: tuple[str, ...]
    changes: NDArray[np.int8]

    def changed(self, pair: int, how: str = "") -> list[tuple[str, str]]:
        """The questions that changed between two systems, with how they did; in one way only if that is named."""
        row = self.changes[pair]
        places = np.flatnonzero(row == CHANGES.index(how) if how in CHANGES else row != SAME)
        return [(self.questions[place], CHANGES[row[place]]) for place in places.tolist()]


def open_beside(site: Site, first: Folder, second: Folder, *, patience: float | None = None) -> RunComparison | None:
    """The comparison, kept until one of the folders changes; None while it is being made."""
    stamp = reference_of(site, second)
    return prepare_in_background(
        site, first, f"beside {second.slug} {stamp}", lambda each: _beside(each, second), patience=patience
    )


def _beside(first: Folder, second: Folder) -> RunComparison:
    compared = compare_answers([first.path, second.path])
    names = tuple(compared.questions)
    changes = np.full((len(compared.pairs), len(names)), SAME, np.int8)
    codes = {name: code for code, name in enumerate(CHANGES)}
    for row, pair in enumerate(compared.pairs):
        before, after = compared.results[pair.first], compared.results[pair.second]
        for column, name in enumerate(names):
            if name in before and name in after and (how := change(before[name], after[name])):
                changes[row, column] = codes[how]
    return RunComparison(
        pairs=tuple(_pair(compared, number, changes[number]) for number in range(len(compared.pairs))),
        warnings=tuple(warnings_of(compared)),
        questions=names,
        changes=changes,
    )


def _pair(compared: AnswersComparison, number: int, changes: NDArray[np.int8]) -> SystemPairSummary:
    pair = compared.pairs[number]
    counts = np.bincount(changes[changes != SAME], minlength=len(CHANGES)).tolist()
    scores: dict[FolderSystem, Accuracy] = compared.accuracies
    return SystemPairSummary(
        number=number,
        title=compared.title(pair),
        pair=pair,
        difference=compared.differences[number],
        accuracies=(scores[pair.first], scores[pair.second]),
        flips={name: count for name, count in zip(CHANGES, counts, strict=True) if count},
    )


router = APIRouter()
_PATH = "/side-by-side"
_ROWS = 24
_TITLE = 120


class QuestionFlip(Struct, frozen=True):
    """A question that changed: how, and what colour says so, too."""

    question: QuestionRow
    change: str
    tone: str


class _Both(Struct, frozen=True):
    """Two folders and all that is known of them."""

    folders: tuple[Folder, Folder]
    runs: tuple[RunFolder, RunFolder]
    beside: RunComparison
    chosen: SystemPairSummary
    choices: Choices


@router.get(_PATH, response_class=HTMLResponse, include_in_schema=False)
def side_by_side(request: Request) -> HTMLResponse:
    """Two folders compared, one pair of systems in full; a form to choose folders where none are named."""
    both = _opened(request)
    flips = _flips(both)
    paged = page_of(flips, page_number(request))
    ordered = sorted(both.beside.pairs, key=lambda each: (-abs(each.difference.paired.difference), each.number))
    plain = {name: both.choices[name] for name in ("a", "b")}
    places = [flip.question.number - 1 for flip in paged.rows]
    return render(
        request,
        "browse/compared.html",
        title="Two runs compared",
        folders=both.folders,
        everything=site_of(request).library.folders(*KINDS),
        beside=both.beside,
        pairs=[_row(each) for each in ordered],
        intervals=interval_note(each.difference.paired.interval for each in both.beside.pairs),
        max_rows=_ROWS,
        chosen=both.chosen,
        cards=_cards(both.chosen),
        pickers=_pickers(both),
        paged=paged,
        cases=[case_of(question) for question in both.runs[0].index.questions(places)],
        select=lambda number: address(_PATH, plain, pair=number) + "#pair",
        link=lambda number: address(_PATH, both.choices, page=number) + "#flips",
        question=lambda number: address(f"{_PATH}/questions/{number}", both.choices),
        kept={**plain, "pair": str(both.chosen.number)},
        clear=address(_PATH, plain, pair=both.chosen.number) + "#flips" if _narrowed(both.choices) else "",
        swapped=address(_PATH, {"a": plain["b"], "b": plain["a"]}),
    )


@router.get(_PATH + "/questions/{number}", response_class=HTMLResponse, include_in_schema=False)
def beside_question(request: Request, number: int) -> HTMLResponse:
    """One question with both answers beside each other."""
    both = _opened(request)
    first, second = (run.index for run in both.runs)
    if not 1 <= number <= first.count:
        return not_found(request, "The first run has no question of this number.")
    question = first.question(number - 1)
    sides = []
    for index, place in ((first, both.chosen.pair.first), (second, both.chosen.pair.second)):
        where = index.place(question.id)
        rows = [] if where is None else index.of_questions([where])[where]
        mine = [row for row in rows if row.system == place.system]
        judged = [] if where is None else index.judgments(where)
        answers = index.answers(mine)
        sides.append((place, answers, answer_blocks(question, mine, answers, judged, AnswerFilter(model=place.model))))
    flips = _flips(both)
    places = [flip.question.number - 1 for flip in flips]
    before, after = neighbours(places, number - 1)
    base = f"{_PATH}/questions"
    how = next((flip for flip in flips if flip.question.number == number), None)
    return render(
        request,
        "browse/compared_question.html",
        title=f"Both answers: {cut(question.text, _TITLE)}",
        folders=both.folders,
        question=question,
        asked=(question_view(question, [answer for _, answers, _ in sides for answer in answers]),),
        sides=[(folder, place, blocks) for folder, (place, _, blocks) in zip(both.folders, sides, strict=True)],
        flip=how,
        chosen=both.chosen,
        benchmark=question_link(site_of(request), question),
        listed=address(_PATH, both.choices) + "#flips",
        before=address(f"{base}/{before + 1}", both.choices) if before is not None else "",
        after=address(f"{base}/{after + 1}", both.choices) if after is not None else "",
    )


def _opened(request: Request) -> _Both:
    """The two folders that the address names; where they can't be shown, another page is."""
    site = site_of(request)
    choices = choices_of(request, ("a", "b", "pair", "change"))
    if "a" not in choices or "b" not in choices or choices["a"] == choices["b"]:
        raise PageInstead(_choose(request, choices))
    folders = [site.library.folder(choices[name], *KINDS) for name in ("a", "b")]
    first, second = folders
    if first is None or second is None:
        raise PageInstead(not_found(request, "This server has no run or judged answers of this name."))
    try:
        for patience in (0.0, None):  # all three are begun before any is waited for
            beside = open_beside(site, first, second, patience=patience)
            waiting = 0.0 if beside is None else patience
            opened = open_run(site, first, patience=waiting), open_run(site, second, patience=waiting)
    except HoofbeatError as err:
        raise PageInstead(_choose(request, choices, err)) from err
    if opened[0] is None or opened[1] is None or beside is None:
        raise PageInstead(preparing_page(request, first))
    number = choices.get("pair", "")
    known = {str(each.number): each for each in beside.pairs}
    largest = max(beside.pairs, key=lambda each: abs(each.difference.paired.difference))
    chosen = known.get(number, largest)
    facets = [facet_key(name) for name, _ in opened[0].index.facets]
    choices = {**choices, "pair": str(chosen.number), **choices_of(request, facets)}
    return _Both((first, second), (opened[0], opened[1]), beside, chosen, choices)


def _choose(request: Request, choices: Choices, problem: HoofbeatError | None = None) -> HTMLResponse:
    """The form to choose two folders with; `problem` is why those that were chosen can't be compared."""
    return render(
        request,
        "browse/compared_choose.html",
        title="Compare two runs",
        status=400 if problem else 200,
        everything=site_of(request).library.folders(*KINDS),
        chosen=[choices.get("a", ""), choices.get("b", "")],
        same="a" in choices and choices.get("a") == choices.get("b"),
        problem=problem,
    )


def _narrowed(choices: Choices) -> bool:
    return any(name == "change" or name.startswith(FACET) for name in choices)


def _flips(both: _Both) -> list[QuestionFlip]:
    """The questions that changed between the chosen systems, as they are asked for."""
    index: AnswersIndex = both.runs[0].index
    how = both.choices.get("change", "")
    name = CHANGES[int(how)] if how.isdigit() and int(how) < len(CHANGES) else ""
    facets = facets_chosen(both.choices)
    kept = set(index.places(AnswerFilter(facets=facets))) if facets else None
    found = {}
    for question, how_changed in both.beside.changed(both.chosen.number, name):
        place = index.place(question)
        if place is not None and (kept is None or place in kept):
            found[place] = how_changed
    places = sorted(found)
    return [
        QuestionFlip(listed, found[place], tone_of_change(found[place]))
        for place, listed in zip(places, index.listed(places), strict=True)
    ]


def _pickers(both: _Both) -> list[Picker]:
    flips = both.chosen.flips
    changes = tuple((str(CHANGES.index(name)), f"{name} ({count:,})") for name, count in flips.items())
    facets = both.runs[0].index.facets
    return [
        ("change", "Change", changes, both.choices.get("change", "")),
        *(
            (facet_key(name), name.capitalize(), tuple((v, v) for v in values), both.choices.get(facet_key(name), ""))
            for name, values in facets
        ),
    ]


def _row(each: SystemPairSummary) -> tuple[SystemPairSummary, Sequence[str]]:
    """A pair of systems with its figures in words."""
    row: SystemDifference = each.difference
    span = row.paired.interval
    return each, (
        written(row.accuracy_b, "share"),
        written(row.accuracy_a, "share"),
        written(triple(row.paired.difference, span), "points"),
        span.by,
        written(row.p, "p"),
        written(row.p_holm, "p"),
        written(row.only_b),
        written(row.only_a),
        f"{row.unscored:,}",
        f"{row.paired.n:,}",
    )


def _cards(each: SystemPairSummary) -> list[Card]:
    row = each.difference
    span = row.paired.interval
    worse, better = each.flips.get("right → wrong", 0), each.flips.get("wrong → right", 0)
    could = f"; {written(row.sensitivity, 'points')} depending on the unscored answers" if row.sensitivity else ""
    return [
        Card(
            label="Difference in accuracy, points (second minus first)",
            value=written(row.paired.difference, "points"),
            detail=f"{spread((span.low, span.high), 'points', f'{row.paired.n:,} questions', span.method)}{could}",
        ),
        Card(label=row.test, value=f"p {_p(row.p)}", detail=f"{_p(row.p_holm)} with Holm's correction over all pairs"),
        Card(label="Right → wrong", value=f"{worse:,}", detail="questions that only the first got right"),
        Card(label="Wrong → right", value=f"{better:,}", detail="questions that only the second got right"),
    ]


def _p(value: float) -> str:
    words = written(value, "p")
    return words if words.startswith("<") else f"= {words}"
