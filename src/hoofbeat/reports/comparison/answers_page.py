"""The page and the tables of a comparison of answers: warnings, differences, and the questions that flipped.

A question flips where it is right in one system and wrong, or without a score, in the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.accuracy import CHANGES, Accuracy, change, flips, standing, tone_of_change
from hoofbeat.findings.caveats import cut_warnings, folder_caveats
from hoofbeat.findings.intervals import clusters_of
from hoofbeat.records import Answer, Judgment, Question, Span
from hoofbeat.reports.charts import interval_bar, interval_bars
from hoofbeat.reports.comparison.answers import AnswersComparison, FolderSystem, Pair
from hoofbeat.reports.interval_words import interval_note, method_words, questions_in
from hoofbeat.reports.item_views import answer_key, answer_view, question_view
from hoofbeat.reports.model import Block, Card, Entry, Heading, Lead, Report, Text, Viewer, tables_in
from hoofbeat.reports.report_writer import KIND, NOTICE, write_comparison
from hoofbeat.reports.section import figure, reasons_text, spread
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, flat_rows, triple, written
from hoofbeat.reports.viewers import viewer_of
from hoofbeat.store import Artefact, Counts, Manifest
from hoofbeat.text import cut
from hoofbeat.version import __version__


class FlippedSide(Struct, frozen=True, kw_only=True):
    """One side of a flip: the system, how it stands, its answers and all judgments of them.

    Of the passages that were shown, only the ids are here; their text is in the folder.
    """

    folder: str
    model: str
    condition: str
    standing: str
    shown: tuple[str, ...]
    answers: tuple[Answer, ...]
    judgments: tuple[Judgment, ...]


class FlippedQuestion(Struct, frozen=True, kw_only=True):
    """A question that flipped, with everything needed to see why: one line of `flipped.jsonl`."""

    question: str
    change: str
    context: str
    text: str
    options: tuple[str, ...]
    gold: str
    evidence: tuple[Span, ...]
    first: FlippedSide
    second: FlippedSide


def flips_of(compared: AnswersComparison, pair: Pair) -> Counter[str]:
    """How often each change happened between two systems, over the questions planned for both."""
    return flips(compared.results[pair.first], compared.results[pair.second])


def each_flipped(compared: AnswersComparison) -> Iterator[FlippedQuestion]:
    """Every flip, question by question; answers and judgments are read when it is their turn."""
    for question, found in _by_question(compared):
        read = _Read(compared, question)
        for pair, how in found:
            yield FlippedQuestion(
                question=question.id,
                change=how,
                context=question.context,
                text=question.text,
                options=question.options,
                gold=question.reference,
                evidence=question.evidence,
                first=read.side(pair.first),
                second=read.side(pair.second),
            )


def flips_viewer(compared: AnswersComparison, prefix: str) -> Viewer:
    """The flipped questions with both answers and their judgments; it can be filtered by pair and change."""
    seen = {name for pair in compared.pairs for name in flips_of(compared, pair)}
    return viewer_of(
        _entries(compared, prefix),
        id=f"{prefix}-viewer",
        noun="questions that flipped",
        states=[name for name in CHANGES if name in seen],
        systems=[compared.title(pair) for pair in compared.pairs],
        system_noun="pair",
    )


def _entries(compared: AnswersComparison, prefix: str) -> Iterator[Entry]:
    numbers = {pair: number for number, pair in enumerate(compared.pairs)}
    for count, (question, found) in enumerate(_by_question(compared), start=1):
        read = _Read(compared, question)
        outcomes: list[tuple[str, ...]] = [() for _ in numbers]
        for pair, how in found:
            outcomes[numbers[pair]] = (how,)
        places = list(dict.fromkeys(place for pair, _ in found for place in (pair.first, pair.second)))
        said = [answer for place in places for answer in read.answers(place)]
        blocks: list[Block] = [question_view(question, said)]
        if len(compared.pairs) > 1:
            listed = "\n".join(f"{compared.title(pair)}: {how}" for pair, how in found)
            blocks.append(Text(listed, label="What changed"))
        for place in places:
            rows = {answer_key(row): row for row in compared.results[place][question.id]}
            blocks += [
                answer_view(
                    question,
                    answer,
                    compared.name(place),
                    rows.get(answer_key(answer)),
                    [each for each in read.judgments(place) if answer_key(each) == answer_key(answer)],
                    places=tuple(numbers[pair] for pair, _ in found if place in (pair.first, pair.second)),
                    folded=len(said) > 4,
                )
                for answer in read.answers(place)
            ]
        tally = Counter(how for _, how in found)
        yield Entry(
            id=f"{prefix}-q{count}",
            name=question.id,
            title=cut(question.text, 160),
            marks=tuple(
                (f"{how} {times:,}" if times > 1 else how, tone_of_change(how)) for how, times in tally.items()
            ),
            outcomes=tuple(outcomes),
            blocks=tuple(blocks),
        )


def _by_question(compared: AnswersComparison) -> Iterator[tuple[Question, list[tuple[Pair, str]]]]:
    """The questions that flipped in some pair, in the order they were asked, with how they did."""
    for question in compared.questions.values():
        found = []
        for pair in compared.pairs:
            before = compared.results[pair.first].get(question.id)
            after = compared.results[pair.second].get(question.id)
            if before and after and (how := change(before, after)):
                found.append((pair, how))
        if found:
            yield question, found


class _Read:
    """Answers and judgments of one question, read once for all pairs."""

    def __init__(self, compared: AnswersComparison, question: Question) -> None:
        self._compared = compared
        self._question = question
        self._answers: dict[int, list[Answer]] = {}
        self._judgments: dict[int, list[Judgment]] = {}

    def answers(self, place: FolderSystem) -> list[Answer]:
        if place.folder not in self._answers:
            self._answers[place.folder] = self._compared.sides[place.folder].answers.of(self._question.id)
        return [each for each in self._answers[place.folder] if (each.model, each.condition) == place.system]

    def judgments(self, place: FolderSystem) -> list[Judgment]:
        if place.folder not in self._judgments:
            self._judgments[place.folder] = self._compared.sides[place.folder].judgments.of(self._question.id)
        return [each for each in self._judgments[place.folder] if (each.model, each.condition) == place.system]

    def side(self, place: FolderSystem) -> FlippedSide:
        answers = self.answers(place)
        return FlippedSide(
            folder=self._compared.sides[place.folder].name,
            model=place.model,
            condition=place.condition,
            standing=standing(self._compared.results[place][self._question.id]),
            shown=tuple(dict.fromkeys(passage.id for answer in answers for passage in answer.evidence)),
            answers=tuple(replace(answer, evidence=()) for answer in answers),
            judgments=tuple(self.judgments(place)),
        )


_DRAWN = 40


def write_answers(target: Path, compared: AnswersComparison, *, command: Sequence[str] = ()) -> Artefact:
    """Write the folder: `pairs.tsv`, `systems.tsv`, `flips.tsv`, `flipped.jsonl`, and the report with its tables."""
    report = answers_report(compared)
    manifest = Manifest(
        kind=KIND,
        title=f"answers of {', '.join(side.name for side in compared.sides)} compared",
        command=list(command),
        inputs=[side.artefact.reference() for side in compared.sides],
        settings={
            "folders": [side.name for side in compared.sides],
            "baseline": compared.baseline,
            "systems": list(compared.picked),
            "warnings": warnings_of(compared),
        },
        seeds={"bootstrap and randomisation": compared.seed},
        counts=Counts(kept=len(compared.pairs)),
        metrics={
            "pairs": _metrics(compared),
            "flipped": sum(flips_of(compared, pair).total() for pair in compared.pairs),
        },
    )
    sheets = ((table.name, *flat_rows(table)) for table in tables_in(report.blocks))
    return write_comparison(target, report, manifest, sheets, flipped=each_flipped(compared))


def warnings_of(compared: AnswersComparison) -> list[str]:
    """What a reader must know before reading a difference; what was cut comes first."""
    return [*_cut(compared), *_others(compared)]


def _cut(compared: AnswersComparison) -> list[str]:
    return cut_warnings([side.artefact for side in compared.sides])


def _others(compared: AnswersComparison) -> list[str]:
    many = count_of(len(compared.pairs), "pair")
    against = Counter(reason for pair in compared.pairs for reason in pair.against)
    settings = Counter(reason for pair in compared.pairs for reason in pair.settings)
    told = folder_caveats(side.artefact for side in compared.sides)
    told += [
        f"NOT MEASURED IN THE SAME WAY in {times} of {many}: {reason}. Such a difference is not between the systems "
        f"alone."
        for reason, times in against.items()
    ]
    told += [
        f"ASKED DIFFERENTLY in {times} of {many}: differs in {reason} (first / second). Unless you compare exactly "
        f"that, such a difference is not between the systems alone."
        for reason, times in settings.items()
    ]
    if compared.apart:
        told.append(f"Left out, without a question in common: {count_of(compared.apart, 'pair')} of systems.")
    unpaired = max(row.unpaired for row in compared.differences)
    if unpaired:
        told.append(f"Up to {count_of(unpaired, 'question')} per pair went to one system only and are left out.")
    told += [
        f"{count_of(side.free_text, 'answer')} in {side.name} are free text without a judgment and are left out."
        for side in compared.sides
        if side.artefact.manifest.kind == "run" and side.free_text
    ]
    return told + [
        f"No answer of {compared.name(place)} could be scored, so no difference is given for it."
        for place in compared.unscored
    ]


def answers_report(compared: AnswersComparison) -> Report:
    """The page."""
    blocks = _difference_blocks(compared)
    blocks += [Heading("Each system", "systems"), _systems_table(compared)]
    blocks += [Heading("Questions that flipped", "flipped"), _flips_table(compared)]
    viewer = flips_viewer(compared, "flipped")
    blocks.append(viewer if viewer.total else Text("No question flipped."))
    n = max(row.paired.n for row in compared.differences)
    return Report(
        title=compared.title(compared.pairs[0]) if len(compared.pairs) == 1 else "Answers compared",
        notice=NOTICE,
        version=__version__,
        subtitle=f"{', '.join(side.name for side in compared.sides)}: {count_of(len(compared.pairs), 'pair')} of "
        f"systems, paired over up to {count_of(n, 'question')}.",
        warnings=tuple(_cut(compared)),
        notes=tuple(_others(compared)),
        leads=_leads(compared, viewer.total),
        cards=_cards(compared, viewer.total),
        blocks=tuple(blocks),
    )


def _leads(compared: AnswersComparison, flipped: int) -> tuple[Lead, ...]:
    """The largest difference and how sure it is, how many differences are sure, and how many questions flipped."""
    rows = list(zip(compared.pairs, compared.differences, strict=True))
    pair, most = max(rows, key=lambda item: abs(item[1].paired.difference))
    span, p = most.paired.interval, written(most.p_holm, "p")
    said = f"{'The largest difference' if len(rows) > 1 else 'The difference'} in accuracy is "
    said += f"{written(most.paired.difference, 'points')} points ({compared.title(pair)}"
    if not most.paired.difference:
        said = f"{'All pairs' if len(rows) > 1 else 'Both systems'} have the same accuracy ({compared.title(pair)}"
    first = f"{said}; 95% interval {written((span.low, span.high), 'points')}, {count_of(most.paired.n, 'question')})."
    sure = sum(row.p_holm < 0.05 for row in compared.differences)
    if len(rows) > 1:
        told = (
            f"{sure} of {len(rows)} differences are larger than chance explains (p < 0.05, corrected for their number)."
        )
    else:
        told = f"It is {'larger' if sure else 'not larger'} than chance explains (p {p if '<' in p else f'= {p}'})."
    leads = [Lead(first, "#systems", "See each system"), Lead(told)]
    return (*leads, Lead(_flipped_in_words(compared, flipped), "#flipped", "Read them"))


def _flipped_in_words(compared: AnswersComparison, flipped: int) -> str:
    """How many questions flipped, and between one pair also how."""
    if not flipped:
        return "No question flipped: each has the same outcome for both systems of a pair."
    told = f"{count_of(flipped, 'question')} flipped"
    if len(compared.pairs) > 1:
        return f"{told} in at least one pair."
    counts = flips_of(compared, compared.pairs[0])
    return f"{told}: {', '.join(f'{counts[name]:,} × {name}' for name in CHANGES if counts[name])}."


def _cards(compared: AnswersComparison, flipped: int) -> tuple[Card, ...]:
    rows = list(zip(compared.pairs, compared.differences, strict=True))
    pair, largest = max(rows, key=lambda item: abs(item[1].paired.difference))
    sure = sum(row.p_holm < 0.05 for row in compared.differences)
    span = largest.paired.interval
    return (
        Card(
            label=f"{'Largest difference' if len(rows) > 1 else 'Difference'}, points: {compared.title(pair)}",
            value=written(largest.paired.difference, "points"),
            detail=spread((span.low, span.high), "points", f"{largest.paired.n:,} questions"),
        ),
        Card(
            label="Differences larger than chance explains",
            value=f"{sure} of {len(rows)}",
            detail="p < 0.05, Holm-corrected over the table",
        ),
        Card(label="Questions that flipped", value=f"{flipped:,}", detail="in at least one pair"),
    )


def _difference_blocks(compared: AnswersComparison) -> list[Block]:
    rows = list(zip(compared.pairs, compared.differences, strict=True))
    shown = sorted(rows, key=lambda item: -abs(item[1].paired.difference))[:_DRAWN] if len(rows) > _DRAWN else rows
    bars = [
        interval_bar(("[!] " if pair.marks else "") + compared.title(pair), row.paired.difference, row.paired.interval)
        for pair, row in shown
    ]
    reach = max([0.1, *(abs(end) for bar in bars for end in (bar.low or 0.0, bar.high or 0.0))])
    methods = method_words((compared.title(pair), row.paired.interval) for pair, row in shown)
    caption = f"Difference in accuracy (second − first) in percentage points, with 95% intervals ({methods})."
    if any(pair.marks for pair, _ in shown):
        caption += " [!] marks pairs that were not measured in the same way."
    if len(shown) < len(rows):
        caption += f" The {_DRAWN} largest of {len(rows)}; all are in the table."
    chart = figure(
        "differences",
        caption,
        lambda width: interval_bars(
            bars, title="Differences in accuracy", form="points", limits=(-reach, reach), width=width
        ),
    )
    return [Heading("Differences", "differences"), chart, _pairs_table(compared)]


def _pairs_table(compared: AnswersComparison) -> Table:
    columns = columns_of(
        "second | against first | same measurement | questions:count | accuracy, first:share | "
        "accuracy, second:share | second − first, points:points | interval by | only second right:count | "
        "only first right:count | p:p | Holm p:p | unscored:count | sensitivity:points | test"
    )
    rows: list[tuple[Cell, ...]] = []
    for pair, row in zip(compared.pairs, compared.differences, strict=True):
        span = row.paired.interval
        rows.append(
            (
                compared.name(pair.second),
                compared.name(pair.first),
                _same(pair),
                row.paired.n,
                row.accuracy_b,
                row.accuracy_a,
                triple(row.paired.difference, span),
                span.by,
                row.only_a,
                row.only_b,
                row.p,
                row.p_holm,
                row.unscored,
                row.sensitivity,
                row.test,
            )
        )
    return Table(
        name="pairs",
        caption="Second against first, paired by question",
        n=max(row.paired.n for row in compared.differences),
        unit=_unit(compared),
        columns=columns,
        rows=tuple(rows),
        note=f"{interval_note((row.paired.interval for row in compared.differences), seed=compared.seed)} "
        "Questions with the same documents stay together. "
        "Holm's correction over this table. Unscored answers stay in the denominator. Where they exceed 1%, "
        "sensitivity is the range that the difference could take.",
    )


def _unit(compared: AnswersComparison) -> str:
    return questions_in(compared.questions, clusters_of(compared.questions.values()))


def _same(pair: Pair) -> str:
    """Whether two systems were measured in the same way, and what differs."""
    parts = [f"NO: {'; '.join(pair.against)}"] if pair.against else []
    parts += [f"differs in: {'; '.join(pair.settings)}"] if pair.settings else []
    return "; ".join(parts) or "yes"


def _systems_table(compared: AnswersComparison) -> Table:
    columns = columns_of(
        "folder | model | condition | protocol | planned:count | right:count | unscored:count | "
        "accuracy, 95% interval:share | interval by | 95% Wilson:share | sensitivity:share | why unscored"
    )
    rows: list[tuple[Cell, ...]] = []
    for place, row in compared.accuracies.items():
        side = compared.sides[place.folder]
        rows.append(
            (
                side.name,
                place.model,
                place.condition,
                side.protocols[place.system] or "free text",
                row.planned,
                row.correct,
                _lost(row),
                triple(row.accuracy, row.bootstrap),
                row.bootstrap.by,
                (row.wilson.low, row.wilson.high),
                row.sensitivity,
                reasons_text(row.unscored),
            )
        )
    return Table(
        name="systems",
        caption="Accuracy of each system, over all questions planned for it",
        n=len(compared.questions),
        unit=_unit(compared),
        columns=columns,
        rows=tuple(rows),
    )


def _flips_table(compared: AnswersComparison) -> Table:
    counts = [flips_of(compared, pair) for pair in compared.pairs]
    changes = [name for name in CHANGES if any(count[name] for count in counts)]
    return Table(
        name="flips",
        caption="How many questions flipped, from first to second",
        n=max(row.paired.n for row in compared.differences),
        unit="questions",
        columns=(*columns_of("second | against first"), *(Column(name, "count") for name in changes)),
        rows=tuple(
            (compared.name(pair.second), compared.name(pair.first), *(count[name] for name in changes))
            for pair, count in zip(compared.pairs, counts, strict=True)
        ),
    )


def _lost(row: Accuracy) -> int:
    return sum(row.unscored.values())


def _metrics(compared: AnswersComparison) -> dict[str, object]:
    """What `--json` prints of each pair."""
    return {
        compared.title(pair): {
            "difference": row.paired.difference,
            "low": row.paired.interval.low,
            "high": row.paired.interval.high,
            "n": row.paired.n,
            "accuracy_first": row.accuracy_b,
            "accuracy_second": row.accuracy_a,
            "only_second_right": row.only_a,
            "only_first_right": row.only_b,
            "unscored": row.unscored,
            "sensitivity": row.sensitivity,
            "test": row.test,
            "p": row.p,
            "p_holm": row.p_holm,
            "flips": dict(flips_of(compared, pair)),
            "not_comparable": list(pair.marks),
        }
        for pair, row in zip(compared.pairs, compared.differences, strict=True)
    }
