"""The audit question by question: a grid of sources whose cells open the pair, and what each source says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hoofbeat.audit.findings import each_matrix
from hoofbeat.audit.findings.relations import RelationMatrix
from hoofbeat.facets import facet_values
from hoofbeat.records import Answer, Question
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.grids import NO_LABEL as NO_LETTER
from hoofbeat.reports.grids import WIDEST
from hoofbeat.reports.model import AnswerView, Block, Entry, GridView, Notice, QuestionView, Text, Viewer
from hoofbeat.reports.packing import PLAIN_ENTRIES, viewer_of
from hoofbeat.reports.section import PlantedLabels
from hoofbeat.reports.sections.audits.evidence import silent_text
from hoofbeat.reports.sections.audits.facts import FEW, AnswerKey, Facts, Said, state_of
from hoofbeat.reports.words import count_of
from hoofbeat.text import cut

__all__ = ["ANSWERS", "grid_of", "questions_shown", "questions_viewer"]


ANSWERS = 12_000
"""How many answers a page holds in short beside the pairs; the questions with most divergence come first."""

_TITLE = 160
_STATES = {"answered": "answers", "absent": "silent", "failed": "no answer"}

Pair = tuple[str, str, str]


def questions_shown(facts: Facts, most: int = ANSWERS) -> set[str]:
    """The questions whose answers are kept in the page."""
    diverging = facts.pairs.by_question(facts.pairs.diverging)
    order = sorted(range(len(diverging)), key=lambda place: (-diverging[place], facts.pairs.questions[place]))
    spoken = facts.pairs.by_question(~facts.pairs.has([facts.domain.absent]))
    kept: set[str] = set()
    for place in order:
        most -= round((2 * int(spoken[place])) ** 0.5) + 1  # so many sources that speak have so many pairs
        if most < 0 and kept:
            break
        kept.add(facts.pairs.questions[place])
    return kept | {question.id for question in facts.audit.questions if len(facts.audit.questions) < PLAIN_ENTRIES}


def questions_viewer(
    facts: Facts,
    anchors: Mapping[Pair, str],
    said: Said,
    planted: PlantedLabels,
    prefix: str,
) -> Viewer:
    """Every question with its grid; found by label, source, group and topic, and by any word in it."""
    questions = facts.audit.questions
    sources = [source.id for source in facts.audit.sources]
    facets = list(facts.facets[:3])
    values = [
        (facts.title(facet), tuple(sorted({v for question in questions for v in facet_values(question.facets, facet)})))
        for facet in facets
    ]
    grids = {matrix.question: matrix for matrix in each_matrix(facts.pairs, facts.domain)}
    states = said.states
    wide = any(len(matrix.sources) > WIDEST for matrix in grids.values())

    def entries() -> Iterator[Entry]:
        for number, question in enumerate(questions, start=1):
            grid = grids.get(question.id)
            yield Entry(
                id=f"{prefix}-q{number}",
                name=question.id,
                title=cut(question.text, _TITLE),
                marks=_marks(facts, grid),
                outcomes=_outcomes(sources, grid),
                values=tuple(tuple(facet_values(question.facets, facet)) for facet in facets),
                blocks=(
                    *_grid(facts, question, grid, anchors, planted, states),
                    *_answers(question, sources, said.texts),
                ),
            )

    return viewer_of(
        entries(),
        id=f"{prefix}-viewer",
        noun="questions",
        states=[*reversed(facts.domain.order), "no label"],
        systems=sources,
        system_noun="source",
        facets=values,
        most=0 if wide else PLAIN_ENTRIES,
    )


def grid_of(facts: Facts, matrix: RelationMatrix, anchors: Mapping[Pair, str], planted: PlantedLabels) -> GridView:
    """The grid of one question."""
    letters = {label: chr(ord("a") + place) for place, label in enumerate(facts.domain.order)}
    letters[""] = NO_LETTER
    cells: list[str] = []
    links, marks = [], []
    for row, a in enumerate(matrix.sources):
        line = matrix.labels[row]
        for column in range(row + 1, len(line)):
            label, place = line[column], len(cells)
            cells.append(letters[label])
            pair = matrix.question, a, matrix.sources[column]
            if pair in anchors:
                links.append((place, anchors[pair].removeprefix("#")))
            if planted and planted.get(pair, label) != label:
                marks.append((place, planted[pair]))
    return GridView(
        title=f"How sources relate on {matrix.question}",
        names=matrix.sources,
        labels=facts.domain.order,
        cells="".join(cells),
        links=tuple(links),
        marks=tuple(marks),
    )


def _grid(
    facts: Facts,
    question: Question,
    matrix: RelationMatrix | None,
    anchors: Mapping[Pair, str],
    planted: PlantedLabels,
    states: Mapping[AnswerKey, str],
) -> list[Block]:
    whole = not question.context and len(question.text) <= _TITLE
    asked: list[Block] = [] if whole else [QuestionView(text=question.text, context=question.context)]
    if matrix is None:
        return [*asked, Notice("Fewer than two sources were asked this question.")]
    silent = [source for source in matrix.sources if states.get((question.id, source)) == "absent"]
    if len(matrix.sources) <= FEW or not silent:
        return [*asked, grid_of(facts, matrix, anchors, planted)]
    spoken = (
        f"{count_of(len(silent), 'source is', 'sources are')} silent and left out of the grid: {', '.join(silent)}."
    )
    if len(matrix.sources) - len(silent) < 2:
        return [*asked, Text(spoken)]
    return [*asked, grid_of(facts, _without(matrix, set(silent)), anchors, planted), Text(spoken)]


def _without(matrix: RelationMatrix, silent: set[str]) -> RelationMatrix:
    """The matrix of the sources that speak."""
    places = [place for place, source in enumerate(matrix.sources) if source not in silent]
    return RelationMatrix(
        question=matrix.question,
        sources=tuple(matrix.sources[place] for place in places),
        labels=tuple(tuple(matrix.labels[row][column] for column in places) for row in places),
    )


def _marks(facts: Facts, matrix: RelationMatrix | None) -> tuple[tuple[str, str], ...]:
    order = facts.domain.order
    counts = dict.fromkeys((*order, ""), 0)
    for row, line in enumerate(matrix.labels if matrix else ()):
        for label in line[row + 1 :]:
            counts[label] += 1
    marks = [
        (f"{label} {counts[label]:,}", f"tone{tone_of(place, len(order))}")
        for place, label in enumerate(order)
        if counts[label]
    ]
    return tuple([*marks, (f"no label {counts['']:,}", "")] if counts[""] else marks)


def _outcomes(sources: Sequence[str], matrix: RelationMatrix | None) -> tuple[tuple[str, ...], ...]:
    """The labels that each source has on the question."""
    found: dict[str, tuple[str, ...]] = {}
    if matrix:
        for row, source in enumerate(matrix.sources):
            line = matrix.labels[row]
            found[source] = tuple(sorted(label or "no label" for label in {*line[:row], *line[row + 1 :]}))
    return tuple(found.get(source, ()) for source in sources)


def _answers(question: Question, sources: Sequence[str], texts: Mapping[AnswerKey, Answer]) -> list[Block]:
    views: list[Block] = []
    for place, source in enumerate(sources):
        answer = texts.get((question.id, source))
        if answer is None:
            continue
        state = state_of(answer)
        cited = f"Cites: {'; '.join(answer.citations)}" if answer.citations and state == "answered" else ""
        views.append(
            AnswerView(
                system=source,
                verdict="unscored" if state == "failed" else "plain",
                verdict_text=_STATES[state],
                text=silent_text(answer) or answer.text,
                places=(place,),
                folded=True,
                reading=cited,
            )
        )
    return [Text("", label=f"What each source says ({len(views)})"), *views] if views else []
