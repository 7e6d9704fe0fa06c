"""Runs and judgments: who is how often right, every question with all its answers, and where to look next.

It also gives a run's answers as JSON. The index is read first; the figures follow as soon as they are worked out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup
from msgspec import Struct
from msgspec.structs import replace
from pydantic import BaseModel

from hoofbeat.errors import HoofbeatError
from hoofbeat.findings.caveats import cut_warnings
from hoofbeat.judging.criteria import answer_key
from hoofbeat.records import Answer, Judgment, Question
from hoofbeat.reports.answer_index import (
    DOUBTS,
    STATES,
    AnswerFilter,
    AnswerRow,
    AnswersIndex,
    QuestionRow,
    index_answers,
)
from hoofbeat.reports.item_views import VERDICTS, answer_view, question_view, system_name
from hoofbeat.reports.lookup import System
from hoofbeat.reports.model import Block, Heading, Notice, Text
from hoofbeat.reports.page import linked_html
from hoofbeat.reports.sections.scores.accuracy_table import leaderboard_section
from hoofbeat.reports.sections.scores.condition_grid import grid_section, pairs_section
from hoofbeat.reports.sections.scores.facet_scores import facets_section
from hoofbeat.reports.sections.scores.outcome_sets import OutcomeSet, gather
from hoofbeat.reports.tables import count_of
from hoofbeat.store.folder_library import Folder
from hoofbeat.text import cut, one_line, same_name, some_of
from hoofbeat.web.browse.corpus_search import QuestionSearch, kept_searches
from hoofbeat.web.browse.links import (
    Choices,
    PageNumber,
    PageSize,
    Picker,
    Slug,
    address,
    answered_with,
    case_of,
    choices_of,
    document_links,
    facet_key,
    facets_chosen,
    linked_folders,
    page_number,
    pickers_of,
    question_link,
    questions_with,
)
from hoofbeat.web.browse.open_folders import (
    BackgroundResult,
    artefact_of,
    figures_page,
    opened_folder,
    opened_for_script,
    prepare_in_background,
)
from hoofbeat.web.folder_titles import folder_title
from hoofbeat.web.page_rendering import (
    FOLDER_ERRORS,
    ListPage,
    not_found,
    page_of,
    render,
)
from hoofbeat.web.site import Site, site_of

router = APIRouter()

KINDS = ("run", "judgments")
SEARCH = "search"
"""The name of a search in an address."""
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
            Text("This folder has no judgments, so there are no scores. You can read the answers under Questions.")
        )
    else:
        blocks.append(Notice("This folder has no answers."))
    return RunFigures(
        judged=group.judge,
        notices=tuple(_notices(group)),
        headings=tuple(block for block in blocks if isinstance(block, Heading)),
        scores=linked_html(blocks),
        facets=linked_html(facets),
    )


def _notices(group: OutcomeSet) -> list[str]:
    """What a reader must know before the figures."""
    told = cut_warnings(group.artefacts)
    if group.self_judged:
        told.append("The judge is the model that answered. A model tends to agree with itself.")
    if group.by_people:
        labelled = sum(count.labelled for count in group.by_people.values())
        of = sum(group.tallies[system].answers for system in group.by_people)
        told.append(
            f"Labelled by people only: {labelled:,} of {count_of(of, 'planned answer')}. The others have no score."
        )
    if group.outcomes and group.unjudged:
        names = some_of([f"{model} · {condition}" for model, condition in group.unjudged], 8)
        told.append(f"Free text that nobody has judged has no accuracy: {names}.")
    return told


MARKS = {"answered" if verdict == "plain" else verdict: words for verdict, words in VERDICTS.items()}
"""How a state is written, so that colour never stands alone."""

_COLUMNS = 4
_SINGLE = 8
_UNFOLDED = 4
_TITLE = 120


class QuestionOutcomes(Struct, frozen=True):
    """A question in a list with what became of its answers: one mark a system, or how many there are of each state.

    `case` is how its case begins: many questions have the same words.
    """

    question: QuestionRow
    marks: tuple[tuple[str, str], ...]
    case: str = ""


@router.get("/runs/{slug}", response_class=HTMLResponse, include_in_schema=False)
def run_page(request: Request, slug: str) -> HTMLResponse:
    """A run: its leaderboard and the tables behind it."""
    return _overview(request, slug, "browse/run.html")


@router.get("/runs/{slug}/facets", response_class=HTMLResponse, include_in_schema=False)
def run_facets(request: Request, slug: str) -> HTMLResponse:
    """A run's scores by facet of its questions."""
    return _overview(request, slug, "browse/run_facets.html", "Scores by facet: ")


def _overview(request: Request, slug: str, template: str, before: str = "") -> HTMLResponse:
    site = site_of(request)
    folder, opened = run_of(request, slug)
    return figures_page(
        request,
        template,
        folder,
        opened.figures.within(),
        title=f"{before}{folder_title(site, folder)}",
        index=opened.index,
        tally=opened.index.tally(),
        others=[each for each in site.library.folders(*KINDS) if each != folder],
        judged=linked_folders(site, folder, "judgments"),
    )


@router.get("/runs/{slug}/questions", response_class=HTMLResponse, include_in_schema=False)
def run_questions(request: Request, slug: str) -> HTMLResponse:
    """The questions of a run with what became of their answers, found by words, system, state, facet and doubt."""
    folder, opened = run_of(request, slug)
    choices = _choices(request, opened.index)
    search = _search_of(site_of(request), slug, choices)
    if SEARCH in choices and search is None:
        return not_found(request, "this search has expired; search again")
    return _questions_page(request, folder, opened.index, choices, search)


@router.post("/runs/{slug}/search", response_class=HTMLResponse, include_in_schema=False)
def search_answers(request: Request, slug: str, text: Annotated[str, Form()] = "") -> Response:
    """Look for words in the questions and answers; the results have their own address, without the words."""
    site = site_of(request)
    folder, opened = run_of(request, slug)
    artefact = artefact_of(site, folder)
    choices = {name: value for name, value in _choices(request, opened.index).items() if name != SEARCH}
    try:
        asked = questions_with(artefact.file("questions.jsonl"), text)
        answered = answered_with(artefact.file("answers.jsonl"), text)
    except HoofbeatError as err:
        return _questions_page(request, folder, opened.index, choices, None, err)
    places = {place for name in answered if (place := opened.index.place(name)) is not None}
    numbers = tuple(sorted({*asked, *(place + 1 for place in places)}))
    name = kept_searches(site).put(QuestionSearch(folder=slug, edition="", text=text.strip(), numbers=numbers))
    return RedirectResponse(address(f"/runs/{slug}/questions", choices, search=name), status_code=303)


def _search_of(site: Site, slug: str, choices: Choices) -> QuestionSearch | None:
    """The search that an address names, unless it has expired or is another folder's."""
    found = kept_searches(site).get(choices.get(SEARCH, ""))
    return found if isinstance(found, QuestionSearch) and (found.folder, found.edition) == (slug, "") else None


def _places(index: AnswersIndex, choices: Choices, search: QuestionSearch | None) -> list[int]:
    """The places of the questions that are asked for."""
    places = index.places(answer_filter(choices))
    if search is None:
        return places
    found = set(search.numbers)
    return [place for place in places if place + 1 in found]


def _questions_page(
    request: Request, folder: Folder, index: AnswersIndex, choices: Choices, search: QuestionSearch | None,
    problem: HoofbeatError | None = None,
) -> HTMLResponse:  # fmt: skip
    paged = page_of(_places(index, choices, search), page_number(request))
    base = f"/runs/{folder.slug}/questions"
    kept = {SEARCH: choices[SEARCH]} if search else {}
    filters = {name: value for name, value in choices.items() if name != SEARCH}
    return render(
        request,
        "browse/run_questions.html",
        title=f"Questions and answers: {folder_title(site_of(request), folder)}",
        status=400 if problem else 200,
        folder=folder,
        found=search,
        problem=problem,
        kept=kept,
        searching=address(f"/runs/{folder.slug}/search", filters),
        unsearched=address(base, filters),
        index=index,
        pickers=run_pickers(index, choices),
        paged=ListPage(question_outcomes(index, paged.rows, index.systems), paged.number, paged.pages, paged.total),
        columns=index.systems if len(index.systems) <= _COLUMNS else (),
        names=[system_name(*system, len(index.models)) for system in index.systems],
        link=lambda number: address(base, choices, page=number),
        question=lambda number: address(f"{base}/{number}", choices),
        clear=address(base, kept) if filters else "",
    )


@router.get("/runs/{slug}/questions/{number}", response_class=HTMLResponse, include_in_schema=False)
def run_question(request: Request, slug: str, number: int) -> HTMLResponse:
    """One question with every answer to it; before and after it stand its neighbours in the list it was found in."""
    site = site_of(request)
    folder, opened = run_of(request, slug)
    index = opened.index
    if not 1 <= number <= index.count:
        return not_found(request, "This folder has no question of this number.")
    place = number - 1
    choices = _choices(request, index)
    rows = index.of_questions([place])[place]
    question = index.question(place)
    answers = index.answers(rows)
    before, after = neighbours(_places(index, choices, _search_of(site, slug, choices)), place)
    base = f"/runs/{slug}/questions"
    shown = [passage.document for answer in answers for passage in answer.evidence]
    return render(
        request,
        "browse/run_question.html",
        title=cut(one_line(question.text), _TITLE),
        folder=folder,
        question=question,
        asked=(question_view(question, answers),),
        marks=_tallied(rows),
        blocks=answer_blocks(question, rows, answers, index.judgments(place), answer_filter(choices)),
        benchmark=question_link(site, question),
        sources=document_links(site, question.documents),
        shown=[each for each in document_links(site, shown) if each.id not in question.documents],
        listed=address(base, choices),
        before=address(f"{base}/{before + 1}", choices) if before is not None else "",
        after=address(f"{base}/{after + 1}", choices) if after is not None else "",
        number=number,
        count=index.count,
    )


def answer_filter(choices: Choices) -> AnswerFilter:
    """What the choices of a page ask for."""
    plain = {name: choices.get(name, "") for name in ("model", "condition", "state", "doubt")}
    return AnswerFilter(**plain, facets=facets_chosen(choices))


def _choices(request: Request, index: AnswersIndex) -> Choices:
    names = [SEARCH, "model", "condition", "state", "doubt", *(facet_key(name) for name, _ in index.facets)]
    return choices_of(request, names)


def run_pickers(index: AnswersIndex, choices: Choices) -> list[Picker]:
    """What the questions of a run can be found by."""
    return pickers_of(
        choices,
        [
            ("state", "State", [(state, MARKS[state]) for state in index.states]),
            ("model", "Model", [(name, name) for name in index.models]),
            ("condition", "Condition", [(name, name) for name in index.conditions]),
            ("doubt", "Doubts", [(DOUBTS[0], "with warnings"), (DOUBTS[1], "failed or unscored")]),
            *((facet_key(name), name.capitalize(), [(each, each) for each in values]) for name, values in index.facets),
        ],
    )


def question_outcomes(index: AnswersIndex, places: Sequence[int], systems: Sequence[System]) -> list[QuestionOutcomes]:
    """Questions for a list: a mark (words, state) a system where there are few, else one a state."""
    found = index.of_questions(places)
    made = []
    for question, whole in zip(index.listed(places), index.questions(places), strict=True):
        rows, case = found[question.number - 1], case_of(whole)
        if len(systems) > _SINGLE:
            made.append(QuestionOutcomes(question, _tallied(rows), case))
            continue
        marks = _by_system(rows, systems)
        if len(systems) > _COLUMNS:
            names = [system_name(*system, len(index.models)) for system in systems]
            named = zip(names, marks, strict=True)
            marks = tuple((f"{name}: {words}", state) for name, (words, state) in named if state)
        made.append(QuestionOutcomes(question, marks, case))
    return made


def _by_system(rows: Sequence[AnswerRow], systems: Sequence[System]) -> tuple[tuple[str, str], ...]:
    marks = []
    for system in systems:
        mine = [row.state for row in rows if row.system == system]
        if len(mine) < 2:
            marks.append((MARKS[mine[0]], mine[0]) if mine else ("not asked", ""))
            continue
        right = mine.count("right")
        marks.append((f"{right} of {len(mine)} right", "right" if 2 * right > len(mine) else "wrong"))
    return tuple(marks)


def _tallied(rows: Sequence[AnswerRow]) -> tuple[tuple[str, str], ...]:
    counts = Counter(row.state for row in rows)
    return tuple((f"{MARKS[state]} {counts[state]:,}", state) for state in STATES if counts[state])


def neighbours(places: Sequence[int], place: int) -> tuple[int | None, int | None]:
    """What stands before and after a place in a sorted list, whether or not it is in it itself."""
    before = [each for each in places if each < place]
    return before[-1] if before else None, next((each for each in places if each > place), None)


def answer_blocks(
    question: Question,
    rows: Sequence[AnswerRow],
    answers: Sequence[Answer],
    judgments: Sequence[Judgment],
    wanted: AnswerFilter | None = None,
) -> tuple[Block, ...]:
    """Every answer with all that is known of it; of many, those that were asked for come first, some of them open."""
    judged: dict[tuple[str, str, str, int], list[Judgment]] = {}
    for judgment in judgments:
        judged.setdefault(answer_key(judgment), []).append(judgment)
    models = len({answer.model for answer in answers})
    few = len(answers) <= _UNFOLDED
    asked = wanted is not None and not replace(wanted, facets=()).everything
    first: list[Block] = []
    rest: list[Block] = []
    for row, answer in zip(rows, answers, strict=True):
        hit = few or (asked and wanted is not None and _is(row, wanted))
        outcome = AnswersIndex.outcome(question.id, row)
        name = system_name(answer.model, answer.condition, models)
        mine = judged.get(answer_key(answer), ())
        folded = not few and (not hit or len(first) >= _UNFOLDED)
        view = answer_view(question, answer, name, outcome, mine, folded=folded)
        (first if hit else rest).append(view)
    return (*first, *rest)


def _is(row: AnswerRow, wanted: AnswerFilter) -> bool:
    doubtful = {"": True, "warnings": row.warned, "failures": row.state == "unscored"}.get(wanted.doubt, True)
    return (
        (not wanted.model or same_name(row.system[0], wanted.model))
        and (not wanted.condition or same_name(row.system[1], wanted.condition))
        and wanted.state in ("", row.state)
        and doubtful
    )


Name = Annotated[str, Query(max_length=500)]


class AnswerOut(BaseModel):
    """An answer and what became of it; `number` is its question's, `why` says why it has no score."""

    number: int
    question: str
    model: str
    condition: str
    sample: int
    label: str
    why: str
    text: str
    choice: str | None
    citations: list[str]
    warnings: list[str]
    failure: str | None


class AnswersOut(BaseModel):
    """A page of answers, of `total` that match."""

    page: int
    pages: int
    total: int
    answers: list[AnswerOut]


@router.get("/api/runs/{slug}/answers", responses=FOLDER_ERRORS, tags=["runs"])
def answers(
    request: Request,
    slug: Slug,
    page: PageNumber = 1,
    size: PageSize = 50,
    question: Name = "",
    model: Name = "",
    condition: Name = "",
    label: Literal["", "right", "wrong", "unscored", "answered"] = "",
    doubt: Literal["", "warnings", "failures"] = "",
) -> AnswersOut:
    """The answers of a run or folder of judgments, by question, system and what became of them."""
    index = opened_for_script(request, slug, KINDS, "run", open_run).index
    wanted = AnswerFilter(question=question, model=model, condition=condition, state=label, doubt=doubt)
    total = index.matching(wanted)
    pages = max(1, -(-total // size))
    page = min(page, pages)
    rows = index.found(wanted, (page - 1) * size, size)
    made = [_out(row, answer) for row, answer in zip(rows, index.answers(rows), strict=True)]
    return AnswersOut(page=page, pages=pages, total=total, answers=made)


def _out(row: AnswerRow, answer: Answer) -> AnswerOut:
    return AnswerOut(
        number=row.question + 1,
        question=answer.question,
        model=answer.model,
        condition=answer.condition,
        sample=answer.sample,
        label=row.state,
        why=row.why,
        text=answer.text,
        choice=answer.choice,
        citations=list(answer.citations),
        warnings=list(answer.warnings),
        failure=answer.failure.kind if answer.failure else None,
    )
