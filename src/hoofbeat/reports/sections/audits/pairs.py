"""The pairs to be read one by one: both answers, both passages, the judge's words; the most serious first.

A page can't hold a million pairs. It holds the most serious ones, spread over the questions so that one contested
question does not fill it, and says how many there are in all; the rest stay in the audit's own table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import polars
from msgspec import Struct

from hoofbeat.audit.findings.divergence_themes import plain_topic
from hoofbeat.audit.pair_table import each_row
from hoofbeat.facets import facet_values
from hoofbeat.records import Comparison, Question
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.item_views import failure_text
from hoofbeat.reports.model import Block, Entry, PairView, QuestionView, SideView, Viewer
from hoofbeat.reports.packing import viewer_of
from hoofbeat.reports.section import PlantedLabels
from hoofbeat.reports.sections.audits.facts import AnswerKey, Facts
from hoofbeat.text import cut

__all__ = ["KEPT", "Kept", "kept_pairs", "pairs_viewer"]


KEPT = 1_500
"""How many pairs a page holds at most."""

NO_LABEL = "no label"
NOT_RATED = "not rated"
_BASES = {
    "same": "the two answers are the same text",
    "shared": "from the call for a pair with the same two texts",
    "group": "from the call for other answers that make the same claims",
}
_TITLE = 160
_SUBJECTS = 40

Pair = tuple[str, str, str]


class Kept(Struct, frozen=True, kw_only=True):
    """The pairs that the page shows, in their order, of so many in all."""

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


def kept_pairs(facts: Facts, most: int = KEPT) -> Kept:
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
    return Kept(pairs=tuple(records[number] for number in numbers), total=total)


def pairs_viewer(
    facts: Facts,
    kept: Kept,
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
    sources = tuple(sorted({source for pair in kept.pairs for source in (pair.a, pair.b)}))
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
            both = (pair.a, pair.b)
            mine: list[tuple[str, ...]] = [_severity(facts, pair)]
            mine += [tuple(facet_values(question.facets, facet)) for facet in facets]
            if subjects:
                subject = subjects.get(plain_topic(pair.topic or ""))
                mine.append((subject,) if subject else ())
            yield Entry(
                id=f"{prefix}-p{number}",
                name=pair.question,
                title=cut(question.text, _TITLE),
                marks=_marks(facts, pair),
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


def _subjects(kept: Kept, themes: Mapping[str, str]) -> dict[str, str]:
    """What pairs differ in, by the judge's wording: its theme, or itself if it is one of the most frequent."""
    counts = Counter(plain_topic(pair.topic) for pair in kept.pairs if pair.topic)
    if themes:
        return {wording: themes[wording] for wording in counts if wording in themes}
    frequent = sorted(counts, key=lambda wording: (-counts[wording], wording))[:_SUBJECTS]
    return {wording: cut(wording, 60) for wording in frequent if wording}


def _severity(facts: Facts, pair: Comparison) -> tuple[str, ...]:
    if pair.significance:
        return (pair.significance,)
    return (NOT_RATED,) if pair.label in facts.domain.diverging else ()


def _marks(facts: Facts, pair: Comparison) -> tuple[tuple[str, str], ...]:
    order = facts.domain.order
    tone = f"tone{tone_of(order.index(pair.label), len(order))}" if pair.label in order else ""
    marks = [(pair.label or NO_LABEL, tone)]
    if pair.significance:
        marks.append((f"{pair.significance} significance", f"level{_level(facts.levels, pair.significance)}"))
    marks.append((f"{pair.a} and {pair.b}", ""))
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


def _view(facts: Facts, pair: Comparison, sides: Mapping[AnswerKey, SideView], planted: PlantedLabels) -> PairView:
    order = facts.domain.order
    told = [f"{pair.significance} significance"] if pair.significance else []
    told += [pair.topic] if pair.topic else []
    told += [_BASES[pair.basis]] if pair.basis in _BASES else []
    truth = planted.get((pair.question, pair.a, pair.b))
    if truth:
        told.append("as planted" if truth == pair.label else f"planted: {truth}")
    unknown = "This answer is not in the audit's table."
    return PairView(
        a=sides.get((pair.question, pair.a)) or SideView(name=pair.a, text=unknown),
        b=sides.get((pair.question, pair.b)) or SideView(name=pair.b, text=unknown),
        label=pair.label or NO_LABEL,
        tone=tone_of(order.index(pair.label), len(order)) if pair.label in order else 0,
        facts=tuple(told),
        reasoning=failure_text(pair.failure) if pair.failure else pair.reasoning,
    )
