"""What answers say about a benchmark, in a report: items, baselines, places, calibration, power, fewer questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from string import ascii_uppercase

from hoofbeat.findings.answer_check import ITEMS, AnswerCheck, PlaceBias, read_answer_check
from hoofbeat.findings.answer_confidence import BINS, AnswerCalibration
from hoofbeat.findings.benchmark_size import ALPHA, DIFFERENCES, POWER, PairPower
from hoofbeat.findings.item_analysis import ENOUGH, ITEM_FLAGS, ItemStatistics
from hoofbeat.findings.outcomes import SystemKey
from hoofbeat.reports.charts import CountBar, Curve, Dots, count_bars, curves, scatter
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ReportInputs, ReportSection, figure
from hoofbeat.reports.tables import Cell, Table, columns_of, count_of, triple
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut

_LISTED = 200
_PAIRS = 100
_OPTION = 120
_FEW = 12
_DIAGONAL = "On the dashed line both are the same."


class _Page:
    """One chapter on the way: its prefix, and systems by the shortest names that tell them apart."""

    def __init__(self, found: AnswerCheck, items: Sequence[ItemStatistics], prefix: str) -> None:
        self.found, self.items, self.prefix = found, items, prefix
        everyone = [(each.model, each.condition) for each in found.abstentions]
        self._one_condition = len({condition for _, condition in everyone}) < 2
        self._one_model = len({model for model, _ in everyone}) < 2

    def name(self, system: SystemKey) -> str:
        """A system in words."""
        if self._one_condition:
            return system[0]
        return system[1] if self._one_model else f"{system[0]} · {system[1]}"

    def table(self, name: str, caption: str, header: str, rows: Sequence[tuple[Cell, ...]], note: str = "") -> Table:
        """A table over the questions."""
        return Table(
            name=f"{self.prefix}-{name}",
            caption=caption,
            n=self.found.questions,
            unit="questions",
            columns=columns_of(header),
            rows=tuple(rows),
            note=note,
        )

    def blocks(self) -> list[Block]:
        """All parts that have something to show."""
        parts = (
            ("Items", "difficulty", self._items()),
            ("Baselines", "baselines", self._baselines()),
            ("Positions of options", "places", self._places()),
            ("Calibration", "calibration", self._calibration()),
            ("Unanswered", "unanswered", self._unanswered()),
            ("How many questions are needed to separate systems", "power", self._power()),
            ("Fewer questions", "short", self._short()),
        )
        return [
            block
            for title, anchor, blocks in parts
            if blocks
            for block in (Heading(title, f"{self.prefix}-{anchor}", 3), *blocks)
        ]

    def _items(self) -> list[Block]:
        draw = partial(count_bars, _difficulties(self.items), title="Difficulty of questions", total=len(self.items))
        blocks: list[Block] = [
            figure(f"{self.prefix}-difficulty", "Difficulty: questions by the share of right answers.", draw)
        ]
        known = [item for item in self.items if item.discrimination is not None]
        if known:
            points = tuple((item.difficulty or 0.0, item.discrimination or 0.0, item.question) for item in known)
            dots = partial(
                scatter,
                [Dots(name="questions", points=points)],
                title="Difficulty and discrimination",
                x="share of right answers",
                y="item-rest correlation",
                forms=("share", "number"),
            )
            words = "Difficulty and discrimination (corrected item-rest correlation). Check the questions below 0."
            blocks.append(figure(f"{self.prefix}-items", words, dots))
        unused, wrong = self.found.unused_options
        if wrong:
            blocks.append(Text(f"No system chose {unused:,} of the {wrong:,} wrong options ({unused / wrong:.0%})."))
        return [*blocks, *self._flagged()]

    def _flagged(self) -> list[Block]:
        flagged = [item for item in self.items if item.flags]
        if not flagged:
            return []
        flagged.sort(key=lambda item: ITEM_FLAGS.index(item.flags[0]))
        rows = [
            (
                item.question,
                "; ".join(item.flags),
                cut(item.suspect, _OPTION),
                triple(item.difficulty, item.difficulty_interval),
                triple(item.discrimination, item.discrimination_interval),
            )
            for item in flagged[:_LISTED]
        ]
        counts = [(flag, self.found.flags[flag]) for flag in ITEM_FLAGS if flag in self.found.flags]
        note = f"The first {_LISTED} of {len(flagged):,}; {ITEMS} has all." if len(flagged) > _LISTED else ""
        head = "question | what | option that may be right as well | share right:share | discrimination:number"
        return [
            self.table("flags", "What to check", "finding | questions:count", counts),
            Details(
                f"These questions ({len(flagged):,})",
                (self.table("flagged", "Questions to check", head, rows, note),),
            ),
        ]

    def _baselines(self) -> list[Block]:
        rows: list[tuple[Cell, ...]] = [
            (
                f"{each.model} · {each.condition}",
                each.right,
                each.n,
                each.unscored,
                each.chance.expected if each.chance else None,
                each.chance.p if each.chance else None,
                each.whole,
                triple(each.difference, each.interval),
            )
            for each in self.found.baselines
        ]
        if not rows:
            return []
        head = (
            "system | right:count | scored:count | unscored:count | expected by chance:amount | p:p | "
            "with the whole question:share | gained by the rest, points:points"
        )
        note = (
            "p is one-sided and exact: the probability of this count or more if all options are equally likely. The "
            "difference is over the questions answered in both ways, with Tango's interval."
        )
        return [self.table("baselines", "Right answers without the question or its case", head, rows, note)]

    def _places(self) -> list[Block]:
        shown = [each for each in self.found.places if each.wrong is not None or len(each.chosen) > 1]
        if not shown:
            return []
        width = max(len(each.chosen) for each in shown)
        letters = " | ".join(f"{letter}:count" for letter in ascii_uppercase[:width])
        chosen = [(self.name((each.model, each.condition)), *_padded(each.chosen, width), _p(each)) for each in shown]
        by_place = [(self.name((each.model, each.condition)), *_found(each, width)) for each in shown]
        texts = " | ".join(ascii_uppercase[:width])
        note = (
            "p: whether wrong choices are spread evenly over the positions of wrong options (Pearson's statistic, "
            "20,000 draws). It is valid only if options were shown in random order."
        )
        return [
            self.table(
                "chosen-places", "How often each position was chosen", f"system | {letters} | p:p", chosen, note
            ),
            Details(
                "Right answers by the position of the right option",
                (
                    self.table(
                        "right-places",
                        "Right answers by the position of the right option",
                        f"system | {texts}",
                        by_place,
                    ),
                ),
            ),
        ]

    def _calibration(self) -> list[Block]:
        found = self.found.calibrations
        if not found:
            return []
        rows = [
            (
                self.name((each.model, each.condition)), each.kind, each.n, each.confidence, each.accuracy, each.error,
                each.brier, each.auc, each.surest,
            )
            for each in found
        ]  # fmt: skip
        head = (
            "system | confidence by | answers:count | mean confidence:share | share right:share | "
            "calibration error:share | Brier score:number | AUC:number | right among the surest half:share"
        )
        note = (
            f"Expected calibration error with {BINS} bins of equal width; with few answers it is too large. Do not "
            f"compare different kinds of confidence."
        )
        blocks: list[Block] = [
            figure(
                f"{self.prefix}-{number}",
                f"Share right by confidence ({kind}). {_DIAGONAL}",
                self._diagram(kind),
            )
            for number, kind in enumerate(dict.fromkeys(each.kind for each in found), start=1)
        ]
        return [*blocks, self.table("calibration", "Confidence and right answers", head, rows, note)]

    def _diagram(self, kind: str) -> partial[str]:
        mine = [each for each in self.found.calibrations if each.kind == kind]
        series = [Curve(name=self.name((each.model, each.condition)), points=_points(each)) for each in mine]
        return partial(
            curves,
            series,
            diagonal=True,
            title=f"Calibration: {kind}",
            x="confidence",
            y="share right",
            forms=("share", "share"),
        )

    def _unanswered(self) -> list[Block]:
        rows = [
            (
                self.name((each.model, each.condition)), each.planned, each.refused, each.unreadable, each.failed,
                triple(each.answered, each.answered_interval), (each.low, each.high),
            )
            for each in self.found.abstentions
            if each.scored < each.planned
        ]  # fmt: skip
        if not rows:
            return [Text("Every planned answer was scored.")]
        head = (
            "system | planned:count | refused:count | unreadable:count | failed:count | right of the answered:share | "
            "right of all, unscored as wrong and as right:share"
        )
        return [self.table("unanswered", "Questions that systems did not answer", head, rows)]

    def _power(self) -> list[Block]:
        pairs = sorted(self.found.powers, key=lambda each: abs(each.difference))
        if not pairs:
            return []
        planned = " | ".join(f"for {100 * each:g} points:count" for each in DIFFERENCES)
        head = (
            "systems | questions:count | difference, points:points | differ on:share | McNemar p:p | "
            f"needed for this difference:count | {planned} | smallest difference shown:share"
        )
        note = (
            f"Questions needed for a power of {POWER:.0%} at a two-sided level of {ALPHA:.0%}, paired, at the observed "
            "share of questions that only one of the two gets right. The number for the observed difference is as "
            "uncertain as that difference. For planning, use the columns for a difference that matters."
        )
        if any(each.design_effect > 1 for each in pairs):
            note += (
                " Questions that share a source count less than independent ones (design effect); no McNemar p then."
            )
        rows = [self._pair(each) for each in pairs[:_PAIRS]]
        if len(pairs) > _PAIRS:
            note += f" The {_PAIRS} closest pairs of {len(pairs):,}."
        return [self.table("power", "Questions needed to separate two systems", head, rows, note)]

    def _pair(self, each: PairPower) -> tuple[Cell, ...]:
        span = each.interval
        return (
            f"{self.name(each.a)} against {self.name(each.b)}",
            each.n,
            (each.difference, span.low, span.high),
            each.discordance,
            each.p,
            each.needed,
            *each.planned,
            each.smallest,
        )

    def _short(self) -> list[Block]:
        forms = self.found.short_forms
        if not forms:
            return []
        held = forms[0].held_out
        series = [
            Curve(name="chosen questions", points=tuple((each.questions, each.tau) for each in forms)),
            Curve(name="random questions", points=tuple((each.questions, each.random_tau) for each in forms)),
        ]
        draw = partial(
            curves,
            series,
            title="Rankings by fewer questions",
            x="questions",
            y="Kendall's τ",
            forms=("count", "number"),
        )
        rows = [(each.questions, each.tau, each.worst, each.random_tau, each.shift) for each in forms]
        head = (
            "questions:count | τ, chosen questions:number | 5th percentile:number | τ, random questions:number | "
            "mean absolute change of accuracy:share"
        )
        note = (
            "Questions are chosen with half of the systems; the other half is ranked by them and by the whole "
            "benchmark."
            if held == "systems"
            else "With few systems, questions are chosen by difficulty alone, and systems are ranked by them and by "
            "the questions that are left out."
        )
        note += " To write a shorter benchmark: hoofbeat benchmark shorten."
        return [
            figure(f"{self.prefix}-short", f"Agreement of rankings, tested on held-out {held}.", draw),
            self.table("short", "Do fewer questions give the same ranking?", head, rows, note),
        ]


def _difficulties(items: Sequence[ItemStatistics]) -> list[CountBar]:
    """Questions by how many systems are right where those are few and the same for all, else by tenths."""
    known = [(item.difficulty, item.systems) for item in items if item.difficulty is not None]
    right = [share * systems for share, systems in known]
    sizes = {systems for _, systems in known}
    if len(sizes) == 1 and max(sizes) <= _FEW and all(abs(each - round(each)) < 1e-9 for each in right):
        n = max(sizes)
        counts = Counter(round(each) for each in right)
        return [CountBar(f"{number} of {count_of(n, 'system')} right", counts[number]) for number in range(n + 1)]
    tenths = Counter(min(9, int(share * 10)) for share, _ in known)
    return [CountBar(f"{10 * place} to {10 * place + 10}% right", tenths[place]) for place in range(10)]


def _padded(counts: Sequence[int], width: int) -> tuple[int | None, ...]:
    return (*counts, *[None] * (width - len(counts)))


def _p(bias: PlaceBias) -> float | None:
    return bias.wrong.p if bias.wrong else None


def _found(bias: PlaceBias, width: int) -> tuple[str | None, ...]:
    told = [f"{found} of {right}" if right else None for found, right in zip(bias.found, bias.right, strict=True)]
    return (*told, *[None] * (width - len(told)))


def _points(each: AnswerCalibration) -> tuple[tuple[float, float], ...]:
    return tuple(
        (row.confidence, row.accuracy) for row in each.bins if row.confidence is not None and row.accuracy is not None
    )


def items_chapter(artefact: Artefact, found: AnswerCheck, prefix: str) -> Chapter:
    """The chapter on what the answers say about one benchmark."""
    items = list(read_jsonl(artefact.file(ITEMS), ItemStatistics))
    checked = next((ref.name for ref in artefact.manifest.inputs if ref.kind == "benchmark"), artefact.path.name)
    words = f"{count_of(len(found.systems), 'system')} answered {count_of(found.questions, 'question')}."
    if found.reliability is not None:
        words += f" Reliability (Cronbach's alpha over systems): {found.reliability:.2f}"
        words += "." if len(found.systems) >= ENOUGH else f", rough with {len(found.systems)} systems."
    words += " Unscored answers count as missing here, not as wrong. Baselines are not part of the item analysis."
    notices = [Notice(warning[0].upper() + warning[1:] + ".") for warning in found.warnings]
    flagged = sum(bool(set(item.flags) - {ITEM_FLAGS[-1]}) for item in items)
    card = Card(label="Questions made doubtful by the answers", value=f"{flagged:,}", detail=f"of {len(items):,}")
    blocks = (Text(words), *notices, *_Page(found, items, prefix).blocks())
    lead = Lead(
        f"{count_of(len(found.systems), 'system')} answered {count_of(found.questions, 'question')}; the answers "
        f"make {flagged:,} of {count_of(len(items), 'question')} doubtful.",
        f"#{prefix}",
        "See which",
    )
    return Chapter(title=f"What answers say about {checked}", id=prefix, blocks=blocks, cards=(card,), leads=(lead,))


def _build(report: ReportInputs) -> list[Chapter]:
    return [
        items_chapter(artefact, found, f"{prefix}-answers")
        for prefix, artefact in report.of("check")
        if (found := read_answer_check(artefact)) is not None
    ]


SECTION = ReportSection(
    name="items",
    summary="what answers say about a benchmark: items, baselines, places, calibration, power, fewer questions",
    order=36,
    kinds=("check",),
    build=_build,
)
