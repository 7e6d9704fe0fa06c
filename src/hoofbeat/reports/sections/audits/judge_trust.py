"""How far to trust an audit: who judged, how labels came about, what citations are worth, whether order matters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import polars

from hoofbeat.audit.economy.economy_audit import calls_saved
from hoofbeat.audit.findings.panel_agreement import PanelAgreement, panel_agreement
from hoofbeat.audit.findings.relations import RelationLabels, judge_agreement
from hoofbeat.audit.findings.table_agreement import SIDES, FlipRate, Trial, flip_rates
from hoofbeat.errors import InputError
from hoofbeat.findings.intervals import Interval
from hoofbeat.records import Comparison
from hoofbeat.reports.charts import number_matrix
from hoofbeat.reports.injection_table import injection_blocks
from hoofbeat.reports.model import Block, Card, Chart, Heading, Notice
from hoofbeat.reports.section import PlantedLabels, counted, spread
from hoofbeat.reports.sections.audits.audit_facts import AuditAnswers, AuditFacts, state_of
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, model_name, triple, written

"""The label planted between two sources (the lesser first) on a question."""


def planted_blocks(
    comparisons: Sequence[Comparison], planted: PlantedLabels, domain: RelationLabels, prefix: str
) -> tuple[tuple[Card, ...], list[Block]]:
    """Agreement, κ and confusion, with their key figure; nothing where nothing is planted."""
    if not planted:
        return (), []
    reference = [Comparison(question=q, a=a, b=b, label=label) for (q, a, b), label in sorted(planted.items())]
    found = judge_agreement(comparisons, reference, domain)
    interval = (found.kappa_interval.low, found.kappa_interval.high) if found.kappa_interval else None
    chart = Chart(
        name=f"{prefix}-confusion",
        caption="Pairs by planted label and by the judge's label; the diagonal is agreement.",
        wide=_confusion(found.labels, found.confusion, 700),
        narrow=_confusion(found.labels, found.confusion, 350),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (label, *line, sum(line), line[place] / sum(line) if sum(line) else None)
        for place, (label, line) in enumerate(zip(found.labels, found.confusion, strict=True))
    )
    confusion = Table(
        name=f"{prefix}-confusion",
        caption="Planted label (rows) against the judge's label (columns)",
        n=found.n,
        unit="planted pairs",
        columns=(
            Column("planted"),
            *(Column(label, "count") for label in found.labels),
            *columns_of("labelled:count | recovered:share"),
        ),
        rows=rows,
        note=f"{found.unscored:,} planted pairs got no label; they count against agreement and are left out of κ.",
    )
    summary = Table(
        name=f"{prefix}-agreement",
        caption="Agreement of the judge with the planted labels",
        n=found.n,
        unit="planted pairs",
        columns=columns_of("figure | value | 95% interval:number"),
        rows=(
            ("agreement", written(found.accuracy, "share"), None),
            ("Cohen's κ", "no value" if found.kappa is None else written(found.kappa, "number"), interval),
            ("without a label", written(found.unscored, "count"), None),
        ),
    )
    card = Card(
        label="Judge's agreement with planted labels",
        value=written(found.accuracy, "share"),
        detail=("κ has no value, " if found.kappa is None else f"κ {written(found.kappa, 'number')}, ")
        + spread(None, "share", f"{found.n:,} pairs"),
    )
    return (card,), [Heading("Against the planted labels", f"{prefix}-planted", 3), summary, chart, confusion]


def _confusion(labels: Sequence[str], counts: Sequence[Sequence[int]], width: int) -> str:
    return number_matrix(
        labels, labels, counts, title="Planted and judged labels", across="judge", down="planted", width=width
    )


_BASES = {
    "judged": "a call for this pair",
    "absent": "a side is silent: no call",
    "same": "both answers are the same text: no call",
    "shared": "the call for a pair with the same two texts",
    "group": "carried over from another pair with the same positions (economy)",
    "": "none: no label",
}
_CITATIONS = {
    "citing": "answers that cite a section that the model saw",
    "quoted": "quotes found under the section cited",
    "quote elsewhere": "quotes found under another section",
    "quote not found": "quotes that are nowhere in the text the model saw",
    "quote changed": "quotes that change a comparator, denial, direction, number or unit of the source",
    "quote cut": "quotes that end before a word that reverses their meaning",
    "statement differs": "sentences that may contradict the passages they cite",
    "asked again: changed": "answers that the model changed after an objection of the check",
    "asked again: kept": "answers that it repeated or did not improve",
    "section not shown": "named sections that the model did not see",
    "no section named": "answers that name no section",
    "quote too short": "quotes too short to locate",
}


def judged_by_answerer(facts: AuditFacts) -> bool:
    """Whether the model that judged is the one that answered."""
    manifest = facts.audit.artefact.manifest
    answered = not manifest.prompts or "answer-source" in manifest.prompts  # else the answers were given
    return answered and facts.audit.judges == [manifest.models.get("answer", "")]


def economy_of(facts: AuditFacts) -> Mapping[str, Any] | None:
    """What economy saved and what its check found, as the manifest has it; None in full mode."""
    found = facts.audit.artefact.manifest.metrics.get("economy")
    return found if isinstance(found, dict) and facts.audit.mode == "economy" else None


def mode_card(facts: AuditFacts) -> Card:
    """Which mode was used, with the bound on wrong labels that its check found."""
    check = economy_of(facts)
    label = "How pairs were judged"
    if check is None:
        return Card(label=label, value=facts.audit.mode, detail="one call for each pair of different answers")
    if not check["carried"]:
        return Card(
            label=label, value="economy", detail=f"{calls_saved(check)}; no label is carried, all are the judge's"
        )
    return Card(
        label=label,
        value="economy",
        detail=f"{calls_saved(check)}; {check['carried']:,} labels carried from other pairs, at most "
        f"{written(check['bound'], 'share')} of them on the wrong side (95% confidence)",
    )


def trust_blocks(facts: AuditFacts, said: AuditAnswers, prefix: str, *, planted: bool = False) -> list[Block]:
    """How labels came about, and the checks that were made; `planted`: the judge is set against planted labels."""
    blocks: list[Block] = [Heading("How far to trust it", f"{prefix}-trust", 3), _bases(facts, prefix)]
    if facts.found.judged:
        blocks += _trial(facts, prefix, planted=planted)
    if panel := panel_agreement(facts.frame, facts.audit.judges, facts.domain.order):
        blocks += _panel(panel, prefix)
    if facts.label_only:
        blocks.append(_label_only(facts))
    if said.slim:
        blocks.append(_answers(said, prefix))
    if said.cited.get("answers"):
        blocks.append(_citations(said.cited, prefix))
    check = economy_of(facts)
    if check is not None and check["rounds"]:
        blocks.append(_economy(facts, check, prefix))
    probes = facts.audit.order_probes
    if probes:
        labels, asked = [(probe.label, probe.swapped) for probe in probes], [probe.question for probe in probes]
        found = flip_rates(labels, facts.domain, questions=asked)
        blocks.append(_flips(found, prefix))
    return blocks


def _trial(facts: AuditFacts, prefix: str, *, planted: bool) -> list[Block]:
    """What the judge made of pairs whose relation is known, or that nobody tried it."""
    artefact = facts.audit.artefact
    kept = artefact.manifest.metrics.get("trial")
    if kept is None and planted:
        return []
    if kept is None:
        return [
            Notice(
                "The judge was not tested on pairs with a known relation (hoofbeat audit trial), so nothing here "
                "shows that it judges better than chance."
            )
        ]
    try:
        found = msgspec.convert(kept, Trial)
    except msgspec.ValidationError as err:
        raise InputError(
            f"the judge's trial in the audit can't be read: {err}",
            where=str(artefact.path),
            fix="make the audit again with --trial",
        ) from err
    span = found.two_way.accuracy_interval
    flips = found.flips
    rows: tuple[tuple[Cell, ...], ...] = (
        ("all labels", found.n, found.right, (found.right / found.n, *found.span),
         max(found.chance, found.commonest_share)),
        (f"{SIDES[1]} or not", found.n, found.two_way_right, (found.two_way.accuracy, span.low, span.high),
         max(0.5, found.two_way_share)),
        *((f"planted as {score.label}", int(score.n), int(score.right), score.recall, None) for score in found.labels),
    )  # fmt: skip
    table = Table(
        name=f"{prefix}-trial",
        caption="The judge on pairs whose relation is known",
        n=found.n,
        unit="invented pairs with a planted relation",
        columns=columns_of("question | pairs:count | right:count | share:share | chance or commonest label:share"),
        rows=rows,
        note=f"95% intervals; {found.agreement.unscored:,} pairs got no label and count as not right. With the answers "
        f"exchanged {flips.flips:,} of {flips.n:,} labels changed. These pairs are not from this audit.",
    )
    tried = injection_blocks(found.injections, f"{prefix}-injections")
    return [Notice(found.verdict), table, *_kinds(found, prefix), *tried]


def _kinds(found: Trial, prefix: str) -> list[Block]:
    """The judge on hard pairs, by kind."""
    if not found.kinds:
        return []
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (row.kind, row.n, row.right, triple(row.right / row.n, row.interval), row.both, row.missed, row.invented)
        for row in found.kinds
    )
    named = "kind | pairs:count | right:count | share:share | right in both orders:count | "
    return [
        Table(
            name=f"{prefix}-trial-kinds",
            caption="The judge on hard pairs, by kind",
            n=found.n,
            unit="invented hard pairs",
            columns=columns_of(named + "differences missed:count | differences invented:count"),
            rows=rows,
            note="95% intervals. Right is whether care differs, is the same or a side is silent; always giving one "
            "answer gets at most half.",
        )
    ]


def _panel(panel: PanelAgreement, prefix: str) -> list[Block]:
    """How far several judges agree with each other, and what became of pairs without a majority."""
    alike = panel.unanimous / panel.pairs
    rows: list[tuple[Cell, ...]] = [
        ("all judges", panel.pairs, panel.unanimous, triple(alike, panel.unanimous_interval), None)
    ]
    for two in panel.every_two.pairs:
        names = " and ".join(model_name(name) for name in (two.a, two.b))
        kappa = triple(two.kappa.value, two.kappa.interval)
        rows.append((names, two.n, two.agree, triple(two.agreement, two.agreement_interval), kappa))
    alpha = panel.every_two.nominal
    spread_of = "" if alpha.interval is None else f" ({written((alpha.interval.low, alpha.interval.high), 'number')})"
    told = "" if alpha.value is None else f" Krippendorff's α {written(alpha.value, 'number')}{spread_of}."
    table = Table(
        name=f"{prefix}-judges",
        caption="How far the judges agree with each other",
        n=panel.pairs,
        unit="pairs put to every judge",
        columns=columns_of("judges | pairs:count | same label:count | share:share | Cohen's κ:number"),
        rows=tuple(rows),
        note=f"95% intervals, questions resampled.{told} {count_of(panel.by_side, 'pair')} with a majority only "
        f"for whether the answers diverge, {count_of(panel.incomplete, 'pair')} without all votes. Agreement between "
        f"judges does not show that they are right.",
    )
    if not panel.no_majority:
        return [table]
    tied = count_of(panel.no_majority, "pair")
    return [
        table,
        Notice(f"{tied} without a majority of the judges: no label, not counted in any rate. Read them first."),
    ]


def _economy(facts: AuditFacts, check: Mapping[str, Any], prefix: str) -> Table:
    moved = Counter((each.carried, each.judged) for each in facts.audit.economy_probes if each.judged)
    told = "; ".join(f"{one} → {two} {count:,}" for (one, two), count in sorted(moved.items()) if one != two)
    names = ("carried", "judged", "unscored", "other_label", "wrong", "bound")
    whole = count_of(check["judged_whole"], "question")
    return Table(
        name=f"{prefix}-economy",
        caption="Economy: carried labels, and those that were judged to check them",
        n=check["checked"],
        unit="carried labels judged",
        columns=columns_of(
            "sample | labels carried:count | judged:count | no label:count | another label:count | wrong side:count | "
            "wrong at most:share"
        ),
        rows=tuple(
            (str(number), *(each[name] for name in names)) for number, each in enumerate(check["rounds"], start=1)
        ),
        note="Answers were sorted into positions, one pair was judged for every two positions, and its label carried "
        "to the others. Wrong side: a label says that sources agree where the judge says that they disagree, or the "
        "reverse. "
        f"The last column is Clopper and Pearson's upper bound (98.3% in each sample); the risk asked for was "
        f"{written(facts.audit.risk, 'share')}. "
        + (f"Where a sample exceeded it, all pairs of {whole} were judged. " if check["judged_whole"] else "")
        + f"{calls_saved(check)}, sorting and check included. This is agreement with the same judge, not with people. "
        + (f"Carried → judged: {told}." if told else "No label that was judged differs."),
    )


def _flips(found: FlipRate, prefix: str) -> Table:
    def row(name: str, n: int, flips: int, rate: float | None, span: Interval, to: str) -> tuple[Cell, ...]:
        return name, n, flips, triple(rate, span), to

    rows = [row("all", found.n, found.flips, found.rate, found.interval, "")]
    rows.append(
        row("between agreeing and diverging", found.n, found.crossing, found.crossing_rate, found.crossing_interval, "")
    )
    for each in found.by_label:
        to = ", ".join(f"{label} {count:,}" for label, count in each.to.items())
        rows.append(row(each.label, each.n, each.flips, each.rate, each.interval, to))
    return Table(
        name=f"{prefix}-order",
        caption="Effect of the order of the two answers",
        n=found.n + found.unscored,
        unit="pairs judged in both orders",
        columns=columns_of("first label | pairs:count | flips:count | flip rate:share | flipped to"),
        rows=tuple(rows),
        note=f"A sample of pairs was judged again with the answers exchanged; 95% Wilson intervals; "
        f"{found.unscored:,} got no label in one of the orders and are left out.",
    )


def _bases(facts: AuditFacts, prefix: str) -> Table:
    column = polars.col("basis").cast(polars.String).fill_null("")
    failed = polars.col("failure").is_not_null()
    basis = polars.when(failed).then(polars.lit("")).otherwise(column).alias("basis")
    found = facts.frame.select(basis).group_by("basis").len().collect()
    counts = dict(found.iter_rows())
    rows = [(words, counts[name]) for name, words in _BASES.items() if counts.get(name)]
    rows += [(name, count) for name, count in sorted(counts.items()) if name not in _BASES]
    caption = "Where the labels of pairs are from"
    return counted(f"{prefix}-bases", caption, "basis", rows, facts.found.pairs, "pairs")


def _label_only(facts: AuditFacts) -> Notice:
    return Notice(
        f"{count_of(facts.label_only, 'judgment')} did not follow the form, and only the label could be read by "
        f"scanning the reply. Reasons, topic and significance are missing, and the label may be one that the judge "
        f"only mentions. These labels count in every rate."
    )


def _answers(said: AuditAnswers, prefix: str) -> Table:
    states = [state_of(answer) for answer in said.slim]
    words = {"answered": "addresses the question", "absent": "silent", "failed": "failed: counted with neither"}
    rows = [(words[state], states.count(state)) for state in words if state != "failed" or state in states]
    caption = "Answers of the sources"
    return counted(f"{prefix}-answers", caption, "answer", rows, len(states), "answers")


def _citations(cited: Mapping[str, int], prefix: str) -> Table:
    answers = cited["answers"]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (words, cited.get(name, 0), cited.get(name, 0) / answers if name == "citing" else None)
        for name, words in _CITATIONS.items()
        if name == "citing" or cited.get(name)
    )
    return Table(
        name=f"{prefix}-citations",
        caption="Citations and quotes, checked against what the model was shown",
        n=answers,
        unit="answers that address their question",
        columns=columns_of("check | count:count | of answers:share"),
        rows=rows,
        note="An answer may hold several quotes, or none.",
    )
