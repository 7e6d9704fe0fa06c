"""The synthesis table: questions down, institutions across, in each cell what that institution says, in one line.

Sources take positions on a question: sources whose pair diverges are in different positions. The largest position is
the majority, if no other is as large; who is outside it differs. A statement names a newer document that says
otherwise, if none as new agrees with it. Several documents of one institution share its column; where they take
different positions, the cell shows each of them. Questions that no document answers are named below the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

import polars
from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.audit.answer_lines import line_of
from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.citations import cites_heading
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, RelationLabels
from hoofbeat.audit.source_citations import STAGE as CITATIONS
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_value
from hoofbeat.records import Answer, Question
from hoofbeat.text import one_line, some_of

AGREES, ADDS, DIFFERS, OPPOSES, ALONE, UNKNOWN = "agrees", "adds", "differs", "opposes", "alone", "unknown"
"""How a statement relates to the others: they agree, they agree with different details, it differs, it says the
opposite of another (by the strongest label), nobody else speaks, or its pairs have no label."""

UNGROUNDED = "ungrounded"
"""An answer that would agree, but whose quote is not in the source: what it says may not be what the source says."""

ANSWERS, SILENT, FAILED, UNASKED = "answers", "silent", "failed", "not asked"
"""What a source did with a question."""

ROWS, COLUMNS = 15, 8
"""How many questions and institutions fit one printed page."""

_TOPIC_FACETS = ("topic", "topics", "group")
_EXACT = 14
_NAMED = 3
_NUMBERS = ("Two", "Three", "Four", "Five", "Six", "Seven", "Eight")
Labels = Mapping[tuple[str, str], str]


class SourceStatement(Struct, frozen=True, kw_only=True):
    """What one document says to a question, with its proof.

    `first_sentence`: the line is the answer's first sentence, for no line was asked for. `position` counts from 1, the
    largest first; 0 is none. Of a statement that differs, `shared_with` names the institutions that share its position,
    `opposite_to` those whose pair with it has the strongest label. `newer_differs` names a newer document that says
    otherwise, where no document as new agrees with it. It is not `grounded` if its quotes were looked for in the source
    and none was found.
    """

    source: str
    name: str
    state: str
    line: str = ""
    first_sentence: bool = False
    strength: str = ""
    year: str = ""
    version: str = ""
    mark: str = ""
    position: int = 0
    outlier: bool = False
    shared_with: tuple[str, ...] = ()
    opposite_to: tuple[str, ...] = ()
    newer_differs: str = ""
    answer: str = ""
    quotes: tuple[str, ...] = ()
    cited: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    url: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    warnings: tuple[str, ...] = ()
    grounded: bool = True


class SynthesisCell(Struct, frozen=True, kw_only=True):
    """What an institution says to a question: a statement for each of its documents that were asked."""

    institution: str
    statements: tuple[SourceStatement, ...]

    @property
    def state(self) -> str:
        """Whether it answers, is silent, failed, or was not asked."""
        states = [each.state for each in self.statements]
        return next((state for state in (ANSWERS, FAILED, SILENT) if state in states), UNASKED)

    @property
    def shown(self) -> list[SourceStatement]:
        """One statement for each position, the newest of those that take it."""
        found: dict[int, SourceStatement] = {}
        for each in self.statements:
            if each.state == ANSWERS and each.year >= found.get(each.position, each).year:
                found[each.position] = each
        return [found[position] for position in sorted(found)]


class SynthesisRow(Struct, frozen=True, kw_only=True):
    """One question: what each institution says, and who agrees, differs and is silent, in words."""

    question: str
    text: str
    verdict: str
    contested: bool
    cells: tuple[SynthesisCell, ...]


class SynthesisTable(Struct, frozen=True, kw_only=True):
    """The table of one topic, or a part of it that fits a page, from its `first_row` and `first_column` (from 1).

    `unanswered` are the topic's questions on which every document is silent, with the last part.
    """

    topic: str
    institutions: tuple[str, ...]
    rows: tuple[SynthesisRow, ...]
    all_rows: int
    all_columns: int
    first_row: int = 1
    first_column: int = 1
    unanswered: tuple[SynthesisRow, ...] = ()

    @property
    def part(self) -> str:
        """Which questions and institutions these are, where there are more."""
        ranges = (
            ("question", self.first_row, len(self.rows), self.all_rows),
            ("institution", self.first_column, len(self.institutions), self.all_columns),
        )
        return ", ".join(
            f"{noun}s {first} to {first + count - 1} of {total}" if count > 1 else f"{noun} {first} of {total}"
            for noun, first, count, total in ranges
            if count < total
        )

    @property
    def is_last(self) -> bool:
        """Whether no part of the topic follows."""
        row, column = self.first_row + len(self.rows), self.first_column + len(self.institutions)
        return row > self.all_rows and column > self.all_columns


def synthesis_tables(audit: Audit, most: int | None = None) -> tuple[list[SynthesisTable], int]:
    """The tables, a topic after the other, in parts that fit a page; and how many questions are left out.

    Of more than `most` questions, those with most disagreement are taken. In a topic, contested questions come first.
    """
    chosen = _chosen(audit, most)
    answers = statements_of(audit, chosen)
    labels = _labels(audit, chosen)
    domain, topics = _domain(audit), _topics(audit.questions)
    by_topic: dict[str, list[SynthesisRow]] = {}
    for question in audit.questions:
        if question.id in chosen:
            row = synthesis_row(
                question, answers.get(question.id, []), labels.get(question.id, {}), domain, audit.names
            )
            by_topic.setdefault(topics[question.id], []).append(row)
    tables = [part for topic, rows in by_topic.items() for part in _parts(topic, rows)]
    return tables, len(audit.questions) - len(chosen)


def _domain(audit: Audit) -> RelationLabels:
    try:
        return RelationLabels.of(audit.pack.labels)
    except UsageError:  # a pack that is not here any more
        return FIVE_RELATIONS


def _topics(questions: Sequence[Question]) -> dict[str, str]:
    """The topic of each question; a few questions are one page, whatever their topics."""
    found = {
        question.id: next(filter(None, (facet_value(question.facets, name) for name in _TOPIC_FACETS)), "")
        for question in questions
    }
    return found if len(questions) > ROWS or len(set(found.values())) == 1 else dict.fromkeys(found, "")


def topics_in_words(questions: Sequence[Question]) -> str:
    """The topics of questions, as a title; empty where they have none."""
    found = (next(filter(None, (facet_value(each.facets, name) for name in _TOPIC_FACETS)), "") for each in questions)
    told = listed([one_line(topic) for topic in dict.fromkeys(found) if topic])
    return told[:1].upper() + told[1:]


def _chosen(audit: Audit, most: int | None) -> set[str]:
    ids = [question.id for question in audit.questions]
    if most is None or len(ids) <= most:
        return set(ids)
    diverging = polars.col("label").cast(polars.String).is_in(list(_domain(audit).diverging))
    counts = audit.frame(["question", "label"]).filter(diverging).group_by("question").len().collect()
    apart = dict(zip(counts["question"].cast(polars.String).to_list(), counts["len"].to_list(), strict=True))
    return set(sorted(ids, key=lambda id: (-apart.get(id, 0), ids.index(id)))[:most])


def statements_of(audit: Audit, questions: Collection[str] | None = None) -> dict[str, list[SourceStatement]]:
    """What documents say to these questions (None: to all), not yet compared."""
    names = audit.names
    links = {source.id: facet_value(source.facets, "url") for source in audit.sources}
    found: dict[str, list[SourceStatement]] = {}
    for answer in audit.each_answer():
        if questions is None or answer.question in questions:
            found.setdefault(answer.question, []).append(_statement(answer, names, links.get(answer.source, "")))
    return found


def _statement(answer: Answer, names: SourceNames, url: str) -> SourceStatement:
    name = names[answer.source]
    failed = answer.failure is not None or answer.absent is None
    state = FAILED if failed else SILENT if answer.absent else ANSWERS
    base = SourceStatement(
        source=answer.source, name=name.full, state=state, year=name.year, version=name.version, url=url
    )
    if state != ANSWERS:
        return base
    line, made = line_of(answer)
    quoted = [step for step in answer.trace if step.what in ("quoted", "quote elsewhere")]
    cited = [each.id for each in answer.evidence if any(cites_heading(one, each.heading) for one in answer.citations)]
    return SourceStatement(
        source=answer.source,
        name=name.full,
        state=state,
        line=line,
        first_sentence=made,
        strength=answer.strength,
        year=name.year,
        version=name.version,
        answer=answer.text,
        quotes=tuple(step.text for step in quoted),
        cited=answer.citations,
        passages=tuple(dict.fromkeys([*(place for step in quoted for place in step.found), *cited])),
        url=url,
        warnings=answer.warnings,
        grounded=bool(quoted) or not any(step.stage == CITATIONS for step in answer.trace),
    )


def _labels(audit: Audit, chosen: Collection[str]) -> dict[str, dict[tuple[str, str], str]]:
    """The labels of every two sources, question by question."""
    text = {name: polars.col(name).cast(polars.String) for name in ("question", "a", "b", "label")}
    rows = audit.frame(list(text)).select(*text.values()).filter(text["label"].is_not_null())
    found: dict[str, dict[tuple[str, str], str]] = {}
    for question, a, b, label in rows.filter(text["question"].is_in(list(chosen))).collect().iter_rows():
        found.setdefault(question, {})[a, b] = label
    return found


def synthesis_row(
    question: Question,
    statements: Sequence[SourceStatement],
    labels: Labels,
    domain: RelationLabels,
    names: SourceNames,
) -> SynthesisRow:
    """One question with all institutions of the audit."""
    both = {**labels, **{(b, a): label for (a, b), label in labels.items()}}
    speaking = sorted(each.source for each in statements if each.state == ANSWERS)
    apart = {pair for pair, label in both.items() if label in domain.diverging}
    groups = positions_of(speaking, apart, names.institution)
    place = {source: number for number, group in enumerate(groups, start=1) for source in group}
    majority = len(groups) == 1 or (len(groups) > 1 and len(groups[0]) > len(groups[1]))

    def marked(each: SourceStatement) -> SourceStatement:
        if each.state != ANSWERS:
            return each
        source = each.source
        mine = {other: both[source, other] for other in speaking if other != source and (source, other) in both}
        outside = len(groups) > 1 and (not majority or place[source] > 1)
        mark = _mark(mine, outside=outside, alone=len(speaking) == 1, domain=domain)
        if not each.grounded and mark in (AGREES, ADDS):
            mark = UNGROUNDED
        group = groups[place[source] - 1]
        opposed = [other for other, label in mine.items() if mark == OPPOSES and label == domain.order[-1]]
        return replace(
            each,
            mark=mark,
            position=place[source],
            outlier=majority and len(groups) > 1 and len(group) == 1 and place[source] > 1,
            shared_with=_others(source, group if outside else (), names),
            opposite_to=_others(source, opposed, names),
            newer_differs=_newer(source, mine, domain, names),
            labels=tuple((names.short(other), label) for other, label in sorted(mine.items())),
        )

    by_institution: dict[str, list[SourceStatement]] = {}
    for name in names:
        by_institution.setdefault(names.institution(name.id), [])
    shown = [*map(marked, statements)]
    for each in shown:
        by_institution.setdefault(names.institution(each.source), []).append(each)
    return SynthesisRow(
        question=question.id,
        text=question.text,
        verdict=_verdict(groups, shown, names, majority=majority),
        contested=len(groups) > 1,
        cells=tuple(
            SynthesisCell(institution=name, statements=tuple(found)) for name, found in sorted(by_institution.items())
        ),
    )


def _others(source: str, others: Iterable[str], names: SourceNames) -> tuple[str, ...]:
    """The institutions of others, in order, without that of the source."""
    return tuple(sorted({names.institution(other) for other in others} - {names.institution(source)}))


def _newer(source: str, mine: Mapping[str, str], domain: RelationLabels, names: SourceNames) -> str:
    """The newest document that is newer and says otherwise; nothing where one that is at least as new agrees."""
    newer = [
        other for other, label in mine.items() if label in domain.diverging and names[source].older_than(names[other])
    ]
    newest = max(newer, key=lambda other: (names[other].year, other), default="")
    agreeing = [other for other, label in mine.items() if label not in (domain.absent, *domain.diverging)]
    if not newest or any(names[each].year and not names[each].older_than(names[newest]) for each in agreeing):
        return ""
    return f"{names.institution(newest)} {names[newest].year}"


def _mark(mine: Mapping[str, str], *, outside: bool, alone: bool, domain: RelationLabels) -> str:
    """How a source relates to the others, by its labels with them."""
    found = set(mine.values())
    if alone:
        return ALONE
    if not found - {domain.absent}:
        return UNKNOWN
    if outside:
        return OPPOSES if domain.order[-1] in found else DIFFERS
    alike = found - {domain.absent, *domain.diverging}
    return UNKNOWN if not alike else AGREES if alike == {domain.consistent} else ADDS


def positions_of(
    sources: Sequence[str], apart: Collection[tuple[str, str]], name: Callable[[str], str] = str
) -> list[tuple[str, ...]]:
    """Sources in groups of which no two diverge: the largest possible one, then the largest of the rest, and so on.

    Groups of one size are in the order of their first name, which is that of the table's columns.
    """
    left, groups = list(sources), []
    while left:
        group = _largest(left, apart)
        groups.append(group)
        left = [source for source in left if source not in group]
    return sorted(groups, key=lambda group: (-len(group), min(map(name, group)), group))


def _largest(sources: Sequence[str], apart: Collection[tuple[str, str]]) -> tuple[str, ...]:
    """The largest group without two that diverge; of many sources, one that is found by adding the least contested."""
    if len(sources) <= _EXACT:
        for size in range(len(sources), 1, -1):
            for group in combinations(sources, size):
                if not any(pair in apart for pair in combinations(group, 2)):
                    return group
        return tuple(sources[:1])
    against = {source: sum((source, other) in apart for other in sources) for source in sources}
    kept: list[str] = []
    for source in sorted(sources, key=lambda source: (against[source], source)):
        if not any((source, other) in apart for other in kept):
            kept.append(source)
    return tuple(sorted(kept))


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: `A`, `A and B`, `A, B and C`; of more, the first three and how many follow."""
    if len(names) > _NAMED:
        return some_of(names, _NAMED)
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _verdict(
    groups: Sequence[Sequence[str]], statements: Sequence[SourceStatement], names: SourceNames, *, majority: bool
) -> str:
    """Who agrees and who differs, and how many are silent, in a few words."""
    asked = {names.institution(each.source) for each in statements}
    speaking = [each for each in statements if each.state == ANSWERS]
    apart = {each.source for each in speaking if each.mark == UNKNOWN}
    compared = [[source for source in group if source not in apart] for group in groups]
    spoken = [sorted({names.institution(source) for source in group}) for group in compared if group]
    left = {names.institution(source) for source in apart}.difference(*spoken)
    quiet = {names.institution(each.source) for each in statements if each.state == SILENT}.difference(left, *spoken)
    silent = f"; {len(quiet)} silent" if quiet and len(asked) > 2 else ""
    if not spoken and left:
        return f"Answers could not be compared{silent}"
    if not spoken:
        return ("Both are silent" if len(asked) == 2 else "All are silent") if quiet else "No source was asked"
    opposed = any(each.mark == OPPOSES for each in statements)
    loose = sum(not each.grounded for each in speaking)
    more = f"{silent}; {len(left)} not compared" if left else silent
    if len(spoken) == 1 and len(spoken[0]) > 1 and loose == len(speaking):
        return f"Answers are alike but not grounded{more}"
    doubt = f"; {loose} not grounded" if loose else ""
    return f"{_views(spoken, majority=majority, opposed=opposed)}{more}{doubt}"


def _views(spoken: Sequence[Sequence[str]], *, majority: bool, opposed: bool) -> str:
    """Who shares which view, of institutions that speak."""
    first, *rest = spoken
    everybody = sorted({name for group in spoken for name in group})
    if not rest:
        return (
            f"Only {first[0]} answers"
            if len(first) == 1
            else "Both agree"
            if len(first) == 2
            else f"All {len(first)} agree"
        )
    if len(everybody) == 1:
        return f"Documents of {first[0]} differ"
    if majority:
        others = [name for name in everybody if name not in first]
        if not others:
            return "Documents differ"
        most = f"{len(first)} others" if len(first) > 1 else first[0]
        return f"{listed(others)} {'differs' if len(others) == 1 else 'differ'} from {most}"
    if len(spoken) == len(everybody) == 2:
        return f"{listed(everybody)} {'say the opposite' if opposed else 'differ'}"
    count = _NUMBERS[len(spoken) - 2] if len(spoken) < len(_NUMBERS) + 2 else str(len(spoken))
    return f"{count} views: {' / '.join(map(listed, spoken))}"


def _parts(topic: str, rows: Sequence[SynthesisRow]) -> Iterator[SynthesisTable]:
    """The table in parts of a page each; an institution that was asked nothing of the topic has no column."""
    states = [{cell.state for cell in row.cells} for row in rows]
    unanswered = [row for row, found in zip(rows, states, strict=True) if SILENT in found <= {SILENT, UNASKED}]
    ordered = sorted((row for row in rows if row not in unanswered), key=lambda row: not row.contested)
    names = [cell.institution for cell in rows[0].cells]
    asked = [name for place, name in enumerate(names) if any(row.cells[place].state != UNASKED for row in rows)]
    for first in range(0, len(ordered) or 1, ROWS):
        some = ordered[first : first + ROWS]
        for start in range(0, len(asked), COLUMNS):
            columns = asked[start : start + COLUMNS]
            part = SynthesisTable(
                topic=topic,
                institutions=tuple(columns),
                rows=tuple(_narrowed(row, columns) for row in some),
                all_rows=len(ordered),
                all_columns=len(asked),
                first_row=first + 1,
                first_column=start + 1,
            )
            yield replace(part, unanswered=tuple(unanswered)) if part.is_last else part


def _narrowed(row: SynthesisRow, columns: Sequence[str]) -> SynthesisRow:
    cells = {cell.institution: cell for cell in row.cells}
    return SynthesisRow(
        question=row.question,
        text=row.text,
        verdict=row.verdict,
        contested=row.contested,
        cells=tuple(cells[name] for name in columns),
    )


HEADER = (
    "topic", "question", "question_text", "verdict", "institution", "source", "source_id", "date", "version", "state",
    "agreement", "position", "outlier", "statement", "statement_from", "strength", "newer_differs", "answer", "quotes",
    "sections", "passages", "url", "labels", "warnings",
)  # fmt: skip
"""The columns of the table as a file: a row for each question and document."""


def synthesis_records(tables: Iterable[SynthesisTable]) -> Iterator[dict[str, object]]:
    """The table as records: a record for each question and document that was asked, by the columns of `HEADER`."""
    for table in tables:
        for row in (*table.rows, *table.unanswered):
            for cell in row.cells:
                for each in cell.statements:
                    values: tuple[object, ...] = (
                        table.topic, row.question, row.text, row.verdict, cell.institution, each.name, each.source,
                        each.year, each.version, each.state, each.mark, each.position, each.outlier, each.line,
                        ("first sentence" if each.first_sentence else "model") if each.line else "", each.strength,
                        each.newer_differs, each.answer, list(each.quotes), list(each.cited), list(each.passages),
                        each.url, [f"{label} with {other}" for other, label in each.labels], list(each.warnings),
                    )  # fmt: skip
                    yield dict(zip(HEADER, values, strict=True))
