"""The two viewers of an audit: pair by pair with both answers and their passages, and question by question as grids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars
from msgspec import Struct

from hoofbeat.audit.findings.divergence_themes import plain_topic
from hoofbeat.audit.findings.pair_arrays import each_matrix
from hoofbeat.audit.findings.relations import RelationMatrix
from hoofbeat.audit.pair_table import each_row
from hoofbeat.audit.source_names import judged_order
from hoofbeat.facets import facet_values
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.item_views import failure_text
from hoofbeat.reports.model import (
    AnswerView,
    Block,
    Entry,
    GridView,
    Notice,
    PairView,
    QuestionView,
    SideView,
    Text,
    Viewer,
)
from hoofbeat.reports.section import PlantedLabels
from hoofbeat.reports.sections.audits.audit_facts import (
    FEW,
    AnswerKey,
    AuditAnswers,
    AuditFacts,
    miss_notes,
    silent_text,
    state_of,
)
from hoofbeat.reports.tables import count_of
from hoofbeat.reports.viewers import NO_LABEL as NO_LETTER
from hoofbeat.reports.viewers import PLAIN_ENTRIES, WIDEST, viewer_of
from hoofbeat.text import cut

KEPT = 1_500
"""How many pairs a page holds at most."""

NO_LABEL = "no label"
NOT_RATED = "not rated"
_BASES = {
    "same": "the two answers are the same text",
    "shared": "from the call for a pair with the same two texts",
    "group": "carried over from another pair with the same positions",
}
_TITLE = 160
_SUBJECTS = 40

Pair = tuple[str, str, str]


class PairSelection(Struct, frozen=True, kw_only=True):
    """The pairs that the page shows, in their order, and how many there are in all."""

    pairs: tuple[Comparison, ...]
    total: int

    @property
    def answers(self) -> set[AnswerKey]:
        """The answers that they are about."""
        return {(pair.question, source) for pair in self.pairs for source in (pair.a, pair.b)}

    def anchors(self, prefix: str) -> dict[Pair, str]:
        """Where each pair stands."""
        return {
            (pair.question, pair.a, pair.b): f"#{prefix}-p{place}" for place, pair in enumerate(self.pairs, start=1)
        }


def kept_pairs(facts: AuditFacts, most: int = KEPT) -> PairSelection:
    """The pairs to show: diverging ones by significance and label, then other judged ones, failed ones, silent ones.

    Of pairs that are equally serious, the first of each question comes before the second of any.
    """
    total = facts.found.pairs
    enough = facts.found.r_div.count >= most
    levels = {level: place for place, level in enumerate(facts.levels, start=1)}
    places = {label: place for place, label in enumerate(facts.domain.order)}
    text = {name: polars.col(name).cast(polars.String) for name in ("question", "a", "b", "label", "significance")}
    diverges = text["label"].is_in(list(facts.domain.diverging))
    level = text["significance"].replace_strict(levels, default=0, return_dtype=polars.Int32)
    place = text["label"].replace_strict(places, default=0, return_dtype=polars.Int32)
    failed = polars.col("failure").is_not_null() | text["label"].is_null()
    size = len(places) + 1
    score = (
        polars.when(failed)
        .then(1)
        .when(diverges)
        .then(size * (level + 2) + place)
        .when(text["label"] == facts.domain.absent)
        .then(0)
        .otherwise(2 + place)
    )
    rows = facts.frame.select("question", "a", "b", "label", "significance", "failure").with_row_index("row")
    if enough:
        rows = rows.filter(diverges & ~failed)
    chosen = (
        rows.select("row", *(text[name] for name in ("question", "a", "b")), score.alias("score"))
        .with_columns(turn=polars.int_range(polars.len()).over("question", "score"))
        .sort("score", "turn", "question", "a", "b", descending=[True, False, False, False, False])
        .head(most)
        .collect()
    )
    numbers = chosen["row"].to_list()
    found = facts.frame.with_row_index("row").filter(polars.col("row").is_in(numbers)).collect()
    records = dict(zip(found["row"].to_list(), each_row(found), strict=True))
    return PairSelection(pairs=tuple(records[number] for number in numbers), total=total)


def pairs_viewer(
    facts: AuditFacts,
    kept: PairSelection,
    sides: Mapping[AnswerKey, SideView],
    planted: PlantedLabels,
    themes: Mapping[str, str],
    prefix: str,
) -> Viewer:
    """The pairs as a viewer: found by label, significance, group, topic or theme and source, and by any word in them.

    `themes` maps the judge's wordings to their themes; without it, the most frequent wordings are to choose from.
    """
    questions = {question.id: question for question in facts.audit.questions}
    facets = list(facts.facets[:3])
    short = facts.names.short
    sources = tuple(sorted({short(source) for pair in kept.pairs for source in (pair.a, pair.b)}))
    asked = [questions[name] for name in dict.fromkeys(pair.question for pair in kept.pairs) if name in questions]
    values: list[tuple[str, tuple[str, ...]]] = [("severity", (*reversed(facts.levels), NOT_RATED))]
    for facet in facets:
        known = sorted({value for question in asked for value in facet_values(question.facets, facet)})
        values.append((facts.title(facet), tuple(known)))
    subjects = _subjects(kept, themes)
    if subjects:
        values.append(("theme" if themes else "differ in", tuple(sorted(set(subjects.values())))))
    values += [("source", sources), ("and source", sources)]
    labels = {pair.label or NO_LABEL for pair in kept.pairs}

    def entries() -> Iterator[Entry]:
        for number, pair in enumerate(kept.pairs, start=1):
            question = questions.get(pair.question) or Question(id=pair.question, text="")
            both = (short(pair.a), short(pair.b))
            mine: list[tuple[str, ...]] = [_severity(facts, pair)]
            mine += [tuple(facet_values(question.facets, facet)) for facet in facets]
            if subjects:
                subject = subjects.get(plain_topic(pair.topic or ""))
                mine.append((subject,) if subject else ())
            yield Entry(
                id=f"{prefix}-p{number}",
                name=pair.question,
                title=cut(question.text, _TITLE),
                marks=_pair_marks(facts, pair),
                states=(pair.label or NO_LABEL,),
                values=(*mine, both, both),
                blocks=(*_asked(question), _view(facts, pair, sides, planted)),
            )

    return viewer_of(
        entries(),
        id=f"{prefix}-pairs",
        noun="pairs",
        states=[label for label in (*reversed(facts.domain.order), NO_LABEL) if label in labels],
        facets=values,
    )


def _subjects(kept: PairSelection, themes: Mapping[str, str]) -> dict[str, str]:
    """What pairs differ in, by the judge's wording: its theme, or itself if it is one of the most frequent."""
    counts = Counter(plain_topic(pair.topic) for pair in kept.pairs if pair.topic)
    if themes:
        return {wording: themes[wording] for wording in counts if wording in themes}
    frequent = sorted(counts, key=lambda wording: (-counts[wording], wording))[:_SUBJECTS]
    return {wording: cut(wording, 60) for wording in frequent if wording}


def _severity(facts: AuditFacts, pair: Comparison) -> tuple[str, ...]:
    if pair.significance:
        return (pair.significance,)
    return (NOT_RATED,) if pair.label in facts.domain.diverging else ()


def _pair_marks(facts: AuditFacts, pair: Comparison) -> tuple[tuple[str, str], ...]:
    order = facts.domain.order
    tone = f"tone{tone_of(order.index(pair.label), len(order))}" if pair.label in order else ""
    marks = [(pair.label or NO_LABEL, tone)]
    if pair.significance:
        marks.append((f"{pair.significance} significance", f"level{_level(facts.levels, pair.significance)}"))
    marks.append((facts.names.both_judged(pair.reasoning, pair.a, pair.b), ""))
    if pair.topic:
        marks.append((cut(pair.topic, 90), ""))
    return tuple(marks)


def _level(levels: Sequence[str], level: str) -> int:
    """A level's place counted from the most serious one."""
    return len(levels) - 1 - levels.index(level) if level in levels else len(levels)


def _asked(question: Question) -> list[Block]:
    """The question in full, where the line that opens it does not say all."""
    whole = not question.context and len(question.text) <= _TITLE
    return [] if whole else [QuestionView(text=question.text, context=question.context)]


def _view(facts: AuditFacts, pair: Comparison, sides: Mapping[AnswerKey, SideView], planted: PlantedLabels) -> PairView:
    order = facts.domain.order
    told = [f"{pair.significance} significance"] if pair.significance else []
    told += [pair.topic] if pair.topic else []
    told += [_BASES[pair.basis]] if pair.basis in _BASES else []
    truth = planted.get((pair.question, pair.a, pair.b))
    if truth:
        told.append("as planted" if truth == pair.label else f"planted: {truth}")
    unknown = "This answer is not in the audit's table."
    a, b = (
        sides.get((pair.question, side)) or SideView(name=facts.names.full(side), text=unknown)
        for side in judged_order(pair.reasoning, pair.a, pair.b)
    )
    return PairView(
        a=a,
        b=b,
        label=pair.label or NO_LABEL,
        tone=tone_of(order.index(pair.label), len(order)) if pair.label in order else 0,
        facts=(*told, *miss_notes(pair.label or "", facts.domain, (a, b))),
        reasoning=failure_text(pair.failure)
        if pair.failure
        else facts.names.with_names(pair.reasoning, pair.a, pair.b),
    )


ANSWERS = 12_000
"""How many answers a page holds in short beside the pairs; the questions with most divergence come first."""

_STATES = {"answered": "answers", "absent": "silent", "failed": "no answer"}


def questions_shown(facts: AuditFacts, most: int = ANSWERS) -> set[str]:
    """The questions whose answers are kept in the page."""
    diverging = facts.pairs.by_question(facts.pairs.diverging)
    order = sorted(range(len(diverging)), key=lambda place: (-diverging[place], facts.pairs.questions[place]))
    spoken = facts.pairs.by_question(~facts.pairs.has([facts.domain.absent]))
    kept: set[str] = set()
    for place in order:
        most -= round((2 * int(spoken[place])) ** 0.5) + 1  # the pairs of the sources that speak
        if most < 0 and kept:
            break
        kept.add(facts.pairs.questions[place])
    return kept | {question.id for question in facts.audit.questions if len(facts.audit.questions) < PLAIN_ENTRIES}


def questions_viewer(
    facts: AuditFacts,
    anchors: Mapping[Pair, str],
    said: AuditAnswers,
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
                marks=_question_marks(facts, grid),
                outcomes=_outcomes(sources, grid),
                values=tuple(tuple(facet_values(question.facets, facet)) for facet in facets),
                blocks=(
                    *_grid(facts, question, grid, anchors, planted, states),
                    *_answers(facts, question, sources, said.texts),
                ),
            )

    return viewer_of(
        entries(),
        id=f"{prefix}-viewer",
        noun="questions",
        states=[*reversed(facts.domain.order), "no label"],
        systems=[facts.names.short(source) for source in sources],
        system_noun="source",
        facets=values,
        most=0 if wide else PLAIN_ENTRIES,
    )


def grid_of(facts: AuditFacts, matrix: RelationMatrix, anchors: Mapping[Pair, str], planted: PlantedLabels) -> GridView:
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
        names=tuple(map(facts.names.short, matrix.sources)),
        labels=facts.domain.order,
        cells="".join(cells),
        links=tuple(links),
        marks=tuple(marks),
    )


def _grid(
    facts: AuditFacts,
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
        f"{count_of(len(silent), 'source is', 'sources are')} silent and not in the grid: "
        f"{', '.join(map(facts.names.short, silent))}."
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


def _question_marks(facts: AuditFacts, matrix: RelationMatrix | None) -> tuple[tuple[str, str], ...]:
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


def _answers(
    facts: AuditFacts, question: Question, sources: Sequence[str], texts: Mapping[AnswerKey, Answer]
) -> list[Block]:
    views: list[Block] = []
    for place, source in enumerate(sources):
        answer = texts.get((question.id, source))
        if answer is None:
            continue
        state = state_of(answer)
        cited = f"Cites: {'; '.join(answer.citations)}" if answer.citations and state == "answered" else ""
        views.append(
            AnswerView(
                system=facts.names.full(source),
                verdict="unscored" if state == "failed" else "plain",
                verdict_text=_STATES[state],
                text=silent_text(answer) or answer.text,
                places=(place,),
                folded=True,
                reading=cited,
            )
        )
    return [Text("", label=f"What each source says ({len(views)})"), *views] if views else []
