"""A validation in a report: people among themselves, the judge against them, where its errors lie, corrected rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hoofbeat.audit.findings.label_scores import F1Scores, LabelScore
from hoofbeat.audit.findings.validation_figures import Validation
from hoofbeat.audit.findings.validation_folder import ValidatedPair, ValidationFolder
from hoofbeat.findings.agreement import Agreement, Annotators
from hoofbeat.reports.charts import number_matrix
from hoofbeat.reports.charts.bars import tone_of
from hoofbeat.reports.interval_words import interval_method
from hoofbeat.reports.model import (
    Block,
    Card,
    Chart,
    Details,
    Entry,
    Heading,
    Lead,
    Notice,
    PairView,
    SideView,
    Text,
    Viewer,
)
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact, share_in_words, spread
from hoofbeat.reports.sections.scores.accuracy_table import alphas_table, labellers_table
from hoofbeat.reports.sections.scores.judge_agreement import agreement_figures
from hoofbeat.reports.tables import Cell, Column, Table, columns_of, count_of, judge_name, triple, written
from hoofbeat.store import Artefact
from hoofbeat.text import cut

_ANSWER = 4_000
_TITLE = 140


def error_blocks(found: Validation, pairs: Sequence[ValidatedPair], prefix: str) -> list[Block]:
    """The table of borders, and every error."""
    lines = found.judge.borders
    heading = Heading("Where the judge errs", f"{prefix}-errors", 3)
    if not lines.errors:
        return [heading, Text("The judge makes no error on the pairs that have a reference.")]
    touched = max(lines.touching, key=lambda label: lines.touching[label])
    table = Table(
        name=f"{prefix}-borders",
        caption="Errors by the two labels that are confused",
        n=lines.errors,
        unit="errors",
        columns=columns_of(
            "between | steps:count | errors:count | of all errors:share | judge says the later:count | "
            "judge says the earlier:count | changes whether it diverges"
        ),
        rows=tuple(
            (
                f"{row.lower} / {row.upper}",
                row.steps,
                row.over + row.under,
                row.share,
                row.over,
                row.under,
                "yes" if row.crosses else "no",
            )
            for row in lines.borders
        ),
        note=f"{lines.adjacent:,} of {lines.errors:,} errors confuse neighbouring labels, "
        f"{lines.distant:,} confuse more distant ones; {lines.crossing:,} change whether a pair counts as diverging. "
        f"{touched} is involved in {lines.touching[touched]:,}.",
    )
    return [heading, table, _viewer(found, pairs, prefix)]


def _viewer(found: Validation, pairs: Sequence[ValidatedPair], prefix: str) -> Viewer:
    """The pairs on which judge and people differ, with both answers."""
    order = found.judge.agreement.labels
    entries = []
    wrong = [pair for pair in pairs if pair.reference.label is not None and pair.reference.label != pair.rated.judge]
    for number, pair in enumerate(wrong, start=1):
        rated, label = pair.rated, pair.reference.label
        said = [f"{who}: {given}" for who, given in rated.labels.items()]
        said += [f"{who} notes: {note}" for who, note in pair.notes.items()]
        said += [f"adjudicated: {rated.adjudicated}"] if rated.adjudicated else []
        view = PairView(
            a=SideView(name=rated.a, text=_cut(pair.answer_a)),
            b=SideView(name=rated.b, text=_cut(pair.answer_b)),
            label=rated.judge,
            tone=tone_of(order.index(rated.judge), len(order)),
            facts=tuple(said),
            reasoning=pair.reasoning,
        )
        entries.append(
            Entry(
                id=f"{prefix}-e{number}",
                name=rated.question,
                title=cut(pair.question, _TITLE),
                marks=((f"judge {rated.judge}", ""), (f"people {label}", "")),
                states=(f"{label}, judged {rated.judge}",),
                blocks=(view,),
            )
        )
    return Viewer(id=f"{prefix}-wrong", noun="errors", entries=tuple(entries))


def _cut(text: str) -> str:
    return text if len(text) <= _ANSWER else f"{text[:_ANSWER]}… (the first {_ANSWER:,} of {len(text):,} characters)"


def validation_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one validation."""
    folder = ValidationFolder(artefact)
    found = folder.figures
    settings = artefact.manifest.settings
    judge = judge_name(artefact.manifest.models)
    how = ", ".join(f"{count:,} {name}" for name, count in found.references.items())
    blocks: list[Block] = [
        Text(
            f"{count_of(found.pairs, 'pair')} of the audit {settings.get('audit', '')}, labelled by "
            f"{count_of(len(found.annotators), 'annotator')} who saw neither the judge's labels nor the sources' "
            f"names. The judge is {judge}. References: {how}."
        ),
        *_warnings(found, settings.get("notes")),
        *_people(found, prefix),
        *_judge(found, prefix),
        *error_blocks(found, folder.pairs, prefix),
        *_significance(found, prefix),
        *_rates(found, prefix),
        *_silence(found, prefix),
    ]
    return Chapter(
        title=f"The audit's judge against people: {artefact.path.name}",
        id=prefix,
        blocks=tuple(blocks),
        cards=_cards(found),
        leads=_leads(found, prefix),
        figures=agreement_figures("relations between sources", {"people": found.judge.agreement}),
    )


def _warnings(found: Validation, notes: object) -> list[Block]:
    blocks: list[Block] = []
    if not found.judge.agreement.n:
        blocks.append(Notice("No pair has a reference, because no label was given by more than half of the people."))
    if found.judge.sensitivity:
        missing = found.pairs - found.judge.agreement.n
        blocks.append(
            Notice(
                f"{count_of(missing, 'pair')} have no reference and count in no figure of the judge. If the judge "
                f"were wrong, or right, on all of them, the agreement would be "
                f"{written(found.judge.sensitivity, 'share')}."
            )
        )
    if isinstance(notes, list) and notes:
        blocks.append(Details("Remarks on the files", tuple(Text(str(note)) for note in notes)))
    return blocks


def _leads(found: Validation, prefix: str) -> tuple[Lead, ...]:
    """How far the judge agrees with people, and how far people agree with each other."""
    agreed = found.judge.agreement
    if not agreed.n:
        return ()
    interval = agreed.accuracy_interval.low, agreed.accuracy_interval.high
    share = share_in_words(round(agreed.accuracy * agreed.n), agreed.n, interval, "pair")
    leads = [Lead(f"The judge gives the same label as people to {share}.", f"#{prefix}", "See where it errs")]
    if found.judge.sensitivity:
        leads.append(Lead(f"{count_of(found.pairs - agreed.n, 'more pair')} have no reference and count in no figure."))
    return tuple(leads)


def _cards(found: Validation) -> tuple[Card, ...]:
    agreed = found.judge.agreement
    if not agreed.n:
        return ()
    interval = (agreed.accuracy_interval.low, agreed.accuracy_interval.high)
    kappa = "κ has no value" if agreed.kappa is None else f"κ {written(agreed.kappa, 'number')}"
    beside = ""
    if found.judge.sensitivity:
        split = count_of(found.pairs - agreed.n, "more pair")
        beside = f"; {split} without a reference ({written(found.judge.sensitivity, 'share')} with them)"
    return (
        Card(
            label="Judge's agreement with people",
            value=written(agreed.accuracy, "share"),
            detail=f"{kappa}, {spread(interval, 'share', f'{agreed.n:,} pairs')}{beside}",
        ),
    )


def _people(found: Validation, prefix: str) -> list[Block]:
    if found.people is None:
        return [Notice("One annotator only: how far people agree with each other is not known.")]
    heading = Heading("Agreement between people", f"{prefix}-people", 3)
    return [heading, *annotator_tables(found.people, f"{prefix}-people", "Labels of every two annotators")]


def annotator_tables(people: Annotators, name: str, caption: str) -> list[Block]:
    """Every two annotators, and α of all of them."""
    note = "Weighted κ counts a disagreement by the distance of the labels in their order."
    pairs = labellers_table(people, name=name, caption=caption, unit="pairs", note=note)
    alphas = alphas_table(people, name=f"{name}-alpha", caption="Krippendorff's α of all annotators", unit="pairs")
    return [pairs, alphas]


def _judge(found: Validation, prefix: str) -> list[Block]:
    judge = found.judge
    blocks: list[Block] = [Heading("The judge against people", f"{prefix}-judge", 3), _overview(found, prefix)]
    if found.population.why:
        blocks.append(Notice(f"No estimates for all pairs: {found.population.why}."))
    blocks.append(_labels_table(judge.f1, f"{prefix}-labels", "Label by label, in the sample", judge.agreement.n))
    if found.population.f1:
        weighted = _labels_table(
            found.population.f1,
            f"{prefix}-labels-all",
            "Label by label, estimated for all pairs",
            found.population.pairs,
        )
        blocks.append(Details(weighted.caption, (weighted, _strata(found, prefix))))
    blocks += confusion_blocks(judge.agreement, f"{prefix}-confusion", ("people", "judge"))
    others = {**found.by_annotator, **({"agreed without adjudication": found.agreed} if found.agreed else {})}
    blocks.append(_against(others, f"{prefix}-each", "The judge against each annotator", "against"))
    if len(found.by_basis) > 1:
        blocks.append(_against(found.by_basis, f"{prefix}-basis", "By origin of the label", "basis"))
    return blocks


def _overview(found: Validation, prefix: str) -> Table:
    judge, whole = found.judge, found.population
    rows: list[tuple[Cell, ...]] = [
        (
            "agreement, 95% Wilson",
            _written(triple(judge.agreement.accuracy, judge.agreement.accuracy_interval), "share"),
            _written(triple(whole.agreement, whole.agreement_interval), "share"),
        ),
        (
            "Cohen's κ",
            _written(triple(judge.agreement.kappa, judge.agreement.kappa_interval)),
            _written(triple(whole.kappa, whole.kappa_interval)),
        ),
        ("κ, linear weights", _written(triple(judge.linear.value, judge.linear.interval)), None),
        ("κ, quadratic weights", _written(triple(judge.quadratic.value, judge.quadratic.interval)), None),
        (
            "macro F1",
            _written(triple(judge.f1.macro, judge.f1.macro_interval)),
            _written(triple(whole.f1.macro, whole.f1.macro_interval)) if whole.f1 else None,
        ),
        (
            "weighted F1",
            _written(triple(judge.f1.weighted, judge.f1.weighted_interval)),
            _written(triple(whole.f1.weighted, whole.f1.weighted_interval)) if whole.f1 else None,
        ),
    ]
    return Table(
        name=f"{prefix}-judge",
        caption="The judge against the reference",
        n=judge.agreement.n,
        unit="pairs",
        columns=columns_of("figure | in the sample | estimated for all pairs"),
        rows=tuple(rows),
        note="The sample is drawn by label, whatever the labels' shares. The estimates weigh each pair by how many of "
        f"the audit's {whole.pairs:,} labelled pairs it represents; {found.unlabelled:,} pairs without a label "
        "are in neither figure.",
    )


def _written(value: Cell, form: Literal["share", "number"] = "number") -> str:
    return written(value, form)


def _labels_table(scores: F1Scores, name: str, caption: str, n: int) -> Table:
    def row(each: LabelScore) -> tuple[Cell, ...]:
        f1 = triple(each.f1, each.f1_interval)
        return (
            each.label,
            round(each.n),
            round(each.given),
            round(each.right),
            each.precision,
            each.recall,
            f1,
            interval_method(each.f1_interval),
        )

    return Table(
        name=name,
        caption=caption,
        n=n,
        unit="pairs",
        columns=columns_of(
            "label | by people:count | by the judge:count | by both:count | precision:number | "
            "recall:number | F1, 95% interval:number | interval by"
        ),
        rows=tuple(row(each) for each in scores.labels),
    )


def _strata(found: Validation, prefix: str) -> Table:
    return Table(
        name=f"{prefix}-strata",
        caption="The sample by the judge's label",
        n=found.judge.agreement.n,
        unit="pairs",
        columns=columns_of(
            "judge's label | pairs in the audit:count | with a reference:count | each represents:amount | right:count"
        ),
        rows=tuple((row.label, row.pairs, row.labelled, row.weight, row.right) for row in found.population.strata),
    )


def confusion_blocks(found: Agreement, name: str, sides: tuple[str, str]) -> list[Block]:
    """How often which label of one side meets which of the other, as a chart and as a table."""
    down, across = sides

    def draw(width: int) -> str:
        title = f"Labels by {down} and by {across}"
        return number_matrix(
            found.labels, found.labels, found.confusion, title=title, across=across, down=down, width=width
        )

    chart = Chart(name=name, caption=f"Pairs by label of {down} and {across}.", wide=draw(700), narrow=draw(350))
    table = Table(
        name=name,
        caption=f"Label of {down} (rows), label of {across} (columns)",
        n=found.n - found.unscored,
        unit="pairs",
        columns=(Column(down), *(Column(label, "count") for label in found.labels)),
        rows=tuple((label, *counts) for label, counts in zip(found.labels, found.confusion, strict=True)),
    )
    return [chart, Details(table.caption, (table,))]


def _against(rows: dict[str, Agreement], name: str, caption: str, head: str) -> Table:
    return Table(
        name=name,
        caption=caption,
        n=sum(row.n for row in rows.values()),
        unit="labels",
        columns=(
            Column(head),
            *columns_of("pairs:count | agreement, 95% Wilson:share | κ, 95% interval:number | κ, interval by"),
        ),
        rows=tuple(
            (
                who,
                row.n,
                triple(row.accuracy, row.accuracy_interval) if row.n else None,
                triple(row.kappa, row.kappa_interval),
                interval_method(row.kappa_interval),
            )
            for who, row in rows.items()
        ),
    )


def _significance(found: Validation, prefix: str) -> list[Block]:
    said = found.significance
    if said is None:
        return []
    blocks: list[Block] = [Heading("Significance", f"{prefix}-significance", 3)]
    rows = {**said.by_annotator, "what people agree on": said.agreement}
    blocks.append(_against(rows, f"{prefix}-significance", "Significance: the judge against people", "against"))
    if said.annotators:
        blocks += annotator_tables(
            said.annotators, f"{prefix}-significance-people", "Significance by every two annotators"
        )
    blocks += confusion_blocks(said.agreement, f"{prefix}-significance-confusion", ("people", "judge"))
    return blocks


def _silence(found: Validation, prefix: str) -> list[Block]:
    """What reviewers found in silences, and what that makes of absence and recall."""
    seen = found.silence
    if seen is None:
        return []
    table = Table(
        name=f"{prefix}-silence",
        caption="Silences checked by reviewers",
        n=seen.silences,
        unit="silences",
        columns=columns_of("figure | as audited:share | corrected, 95%:share | what it is"),
        rows=(
            ("silences that are answers", None, (seen.found / seen.silences, seen.share.low, seen.share.high),
             f"{seen.found:,} of {seen.silences:,} silences"),
            ("absence", seen.absence, seen.corrected, f"of {seen.answered + seen.silent:,} answers"),
            ("recall", 1.0, seen.recall, "share of the sources' statements that search and model found"),
        ),
        note="A reviewer saw each silence with the nearest passages and could mark that the source does answer. The "
            "true recall may be lower: an answer outside these passages does not count as missed.",
    )  # fmt: skip
    return [Heading("Silences", f"{prefix}-silences", 3), table]


def _rates(found: Validation, prefix: str) -> list[Block]:
    scopes = {"all": "people also say what is absent", "answered": "absent is what the audit found absent"}
    table = Table(
        name=f"{prefix}-rates",
        caption="The audit's rates, corrected by people",
        n=found.population.pairs,
        unit="pairs",
        columns=columns_of(
            "rate | absence | by the judge:share | corrected, 95%:share | labelled:count | "
            "without a reference:count | range with those:share | why not"
        ),
        rows=tuple(
            (
                rate.name,
                scopes[rate.scope],
                rate.judge,
                triple(rate.estimate, rate.interval),
                rate.labelled,
                rate.without,
                rate.sensitivity,
                rate.why,
            )
            for rate in found.corrected
        ),
        note="Prediction-powered over strata: within each of the judge's labels, people's labels of the sampled "
        "pairs represent all of them. The interval is wide where a frequent label has few labelled pairs. The "
        "intervals are for this audit's pairs, not for other questions or sources. Pairs on which people are split "
        "have no reference and are in neither estimate nor interval; the range is the estimate with the rate's label "
        "on none of them and on all of them.",
    )
    return [Heading("Effect on the audit's rates", f"{prefix}-corrected", 3), table]


SECTION = ReportSection(
    name="validation",
    summary="agreement between people, the judge against people, corrected rates",
    order=110,
    kinds=("validation",),
    build=chapter_per_artefact("validation", validation_chapter),
)
