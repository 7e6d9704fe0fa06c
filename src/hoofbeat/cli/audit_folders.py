"""`hoofbeat audit compare`, `table`, `merge`, `export` and `themes`: what can be made from the folders of audits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_gate import GateFindings, compare_folders, comparison_facets, gate_findings
from hoofbeat.audit.case_records import newest
from hoofbeat.audit.disagreement_cases import count_states, find_reference, lost_note, renamed_sources
from hoofbeat.audit.findings.audit_changes import AuditsComparison
from hoofbeat.audit.findings.divergence_themes import Theme, TopicPhrases
from hoofbeat.audit.shard_merge import merge_audits
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.audit.synthesis.audit_export import FORMS, export_audit
from hoofbeat.audit.synthesis.synthesis_table import synthesis_records, synthesis_tables
from hoofbeat.audit.themes_folder import KIND as THEMES
from hoofbeat.audit.themes_folder import (
    THRESHOLD,
    AuditThemes,
    ThemeSettings,
    find_themes,
    level_weights,
    theme_weight,
    write_themes,
)
from hoofbeat.cli.audit import institution_figures, print_audit_outcome
from hoofbeat.cli.audit_decisions import known_decisions, reference_option
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import (
    command_words,
    decisions_option,
    json_option,
    ledger_option,
    output_option,
    reasoning_option,
)
from hoofbeat.errors import UsageError
from hoofbeat.models import SPEC_HELP, load_encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.models.model_loading import open_session
from hoofbeat.reports.charts import CountBar, count_bars, sheet, standalone
from hoofbeat.reports.comparison.audits_page import AUDIT_COMPARISON, altered_settings, split_table, write_audits
from hoofbeat.reports.comparison.gate_page import case_leads
from hoofbeat.reports.sections.audits.audit_change_blocks import differing
from hoofbeat.reports.sections.audits.synthesis_blocks import cell_lines, signs_in_words
from hoofbeat.reports.tables import Column, count_of
from hoofbeat.store import check_target
from hoofbeat.text import cut, for_terminal, one_line

_SHOWN, _DRAWN, _MOVED = 12, 30, 8
_PATH = click.Path(path_type=Path)


@click.command("merge")
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...", type=click.Path(path_type=Path))
@output_option("audit")
@json_option
def merge_command(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Merge the SHARDs of one audit (made with --shard I/N). All shards are needed, each once."""
    from hoofbeat.cli.results import show_disagreements

    screen = Screen(as_json=as_json)
    artefact = merge_audits(shards, output, command=command_words(), progress=screen)
    print_audit_outcome(screen, Audit(artefact))
    show_disagreements(screen, Audit(artefact))
    screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", "report"))


@click.command("export")
@click.argument("audit", type=click.Path(path_type=Path))
@click.option("--as", "forms", multiple=True, type=click.Choice(FORMS), help="Only this form. Repeat it for several.")
@decisions_option
@output_option("audit-export")
@json_option
def export_command(audit: Path, forms: tuple[str, ...], decisions: str | None, output: Path, as_json: bool) -> None:
    """Write AUDIT for other software: who says what (CSV, JSON), one JSON file per question (labels as an N × N
    matrix, and every pair), all pairs (CSV, Parquet), and rates within and between institutions. With --decisions:
    every disagreement with your team's decision (cases.csv, cases.json)."""
    screen = Screen(as_json=as_json)
    opened, known = Audit.open(audit), known_decisions(decisions)
    made = export_audit(
        opened,
        output,
        forms or FORMS,
        decisions=known.versions if known else None,
        inputs=known.inputs if known else (),
        command=command_words(),
        progress=screen,
    )
    screen.finish(made, **(institution_figures(opened) if as_json else {}))


@click.command("table")
@click.argument("audit", type=click.Path(path_type=Path))
@json_option
def table_command(audit: Path, as_json: bool) -> None:
    """Print who says what in AUDIT: for each question one line per institution, and who agrees, differs or is silent.

    `hoofbeat report` makes this table for print, `hoofbeat audit export` for spreadsheets.
    """
    screen = Screen(as_json=as_json)
    opened = Audit.open(audit)
    tables, _ = synthesis_tables(opened)
    if as_json:
        rows = list(synthesis_records(tables))
        screen.emit({"artefact": str(audit), "kind": "synthesis", "counts": {"kept": len(rows)}, "rows": rows})
        return
    for table in tables:
        click.echo(for_terminal("\n" + ", ".join(filter(None, (table.topic or "all questions", table.part)))))
        for row in table.rows:
            click.echo(for_terminal(f"\n{row.question}: {one_line(row.text)}\n{row.verdict}"))
            for line in (line for cell in row.cells for line in cell_lines(cell)):
                click.echo(for_terminal(f"  {one_line(line)}"))
        if table.unanswered:
            click.echo(for_terminal("\nNo document answers:"))
            for row in table.unanswered:
                click.echo(for_terminal(f"  {row.question}: {one_line(row.text)}"))
    screen.say(signs_in_words(tables))
    screen.next("hoofbeat", "report", audit, "-o", "report")


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--facet", "facets", multiple=True,
              help="Also split the changes by this facet of the questions. Repeat it for several. "
              "[default: facets with few values]")  # fmt: skip
@click.option("--page-rows", type=click.IntRange(100), default=20_000, show_default=True,
              help="Maximum rows per file of changed pairs.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for the intervals.")
@decisions_option
@reference_option
@output_option("audit-comparison")
@json_option
def compare_command(
    before: Path,
    after: Path,
    facets: tuple[str, ...],
    page_rows: int,
    seed: int,
    decisions: str | None,
    reference: str,
    output: Path,
    as_json: bool,
) -> None:
    """Compare the audits BEFORE and AFTER: coverage, labels, answers and quotes, and whether sources disagree more,
    more strongly, or only more visibly. With --decisions: which cases are closed, reopened and new."""
    screen = Screen(as_json=as_json)
    check_target(output.resolve(), AUDIT_COMPARISON)
    first, second = Audit.open(before), Audit.open(after)
    chosen = comparison_facets(facets, second)
    compared, changed = compare_folders(first, second, facets=chosen, seed=seed, progress=screen)
    warnings, altered = differing(first, second), altered_settings(first, second)
    found = _gate_findings(first, second, decisions, reference)
    known = known_decisions(decisions)
    if known and (lost := lost_note(second, newest(known.versions), first)):
        screen.say(lost)
    for old, new in renamed_sources(first, second).items():
        screen.say(
            f"warning: {old} is probably {new} now. It counts as another source, so its disagreements count as new: "
            "keep the id of a document in all its editions"
        )
    for lead in case_leads(found, (first, second)):
        screen.say(lead.text)
    _show_comparison(screen, compared, second.names, warnings)
    _show_words(screen, found, second.names, decided=decisions is not None)
    for name, values in altered.items():
        screen.say(f"setting {name}: {_plain(values[0])} → {_plain(values[1])}")
    artefact = write_audits(
        output,
        (first, second),
        compared,
        changed,
        found,
        decided=decisions is not None,
        facets=chosen,
        page_rows=page_rows,
        warnings=warnings,
        seed=seed,
        command=command_words(),
    )
    screen.finish(
        artefact,
        next_step=("open", output / "report.html"),
        summary=msgspec.to_builtins(compared),
        changed=changed.height,
        changed_answers=len(found.words.answers),
        changed_texts=list(found.words.texts),
        cases=count_states(found.rows),
        altered=altered,
        warnings=warnings,
    )


def _gate_findings(first: Audit, second: Audit, decisions: str | None, reference: str) -> GateFindings:
    known = known_decisions(decisions)
    return gate_findings(
        first,
        second,
        decisions=newest(known.versions) if known else None,
        reference=find_reference(second, reference),
    )


def _show_words(screen: Screen, found: GateFindings, names: SourceNames, *, decided: bool) -> None:
    figures, words = found.figures, found.words
    screen.say(
        f"{count_of(len(words.answers), 'answer')} changed (answers.tsv); {count_of(len(words.same_label), 'pair')} "
        f"kept the label even so (same-label.tsv); "
        f"{count_of(int(figures['new_disagreements'] or 0), 'disagreement is', 'disagreements are')} new"
    )
    if words.texts:
        screen.say(f"sources whose text changed: {'; '.join(map(names.full, words.texts))}")
    if decided:
        counts = count_states(found.rows)
        told = ", ".join(f"{counts[state]:,} {state}" for state in ("closed", "reopened", "escalated", "open", "new"))
        screen.say(f"cases: {told}; {counts['gone']:,} no longer disagree")


def _plain(value: object) -> str:
    """A setting in words: none, or the parts of one that has parts."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return "none" if value is None else str(value)


def _show_comparison(screen: Screen, compared: AuditsComparison, names: SourceNames, warnings: Sequence[str]) -> None:
    split = compared.split
    screen.title(
        f"{compared.questions} questions and {compared.sources} sources in both; {split.pairs_in_both:,} pairs judged "
        "in both (95% intervals)"
    )
    rates = split_table(split)
    screen.table(("", *rates.columns[1:-1]), [row[:-1] for row in rates.rows])
    moved = sorted(
        (row for row in compared.coverage if row.change), key=lambda row: (-abs(row.change or 0), row.source)
    )
    if moved:
        screen.table(
            (
                "coverage",
                *(Column(name, "share") for name in ("before", "after")),
                *(Column(name, "count") for name in ("gained", "lost")),
            ),
            [(names.short(row.source), *row.coverage, row.gained, row.lost) for row in moved[:_MOVED]],
        )
    if len(moved) > _MOVED:
        screen.say(f"and {len(moved) - _MOVED} more sources, in coverage.tsv")
    for what, only in (("sources", compared.sources_only), ("questions", compared.questions_only)):
        if any(only):
            screen.say(f"{what} in one audit only: {len(only[0])} before, {len(only[1])} after (only.tsv)")
    screen.say(f"{compared.shift.pairs - compared.shift.same:,} pairs changed their label (changed/)")
    for warning in warnings:
        screen.say(f"[!] {warning}")


class _ThemeOptions(Struct, frozen=True, kw_only=True):
    """The options, as given."""

    model_spec: str | None
    named: int
    encoder: str
    threshold: float | None
    k: int | None
    labels: tuple[str, ...]
    weights: str
    examples: int
    ledger_path: str | None
    config_path: Path | None
    budget: str | None
    reasoning: int | None
    only_estimate: bool
    output: Path


@click.command("themes")
@click.argument("audit", type=_PATH)
@click.option("--model", "model_spec", help=f"Let this model name the themes [default: named by rule]: {SPEC_HELP}.")
@click.option("--named", type=click.IntRange(1), default=100, show_default=True,
              help="The model names the N largest themes.", metavar="N")  # fmt: skip
@click.option("--encoder", default="minilm", show_default=True, help="Sentence encoder for the topics.")
@click.option("--threshold", type=click.FloatRange(-1, 1),
              help=f"Minimum mean cosine similarity within a theme [default: {THRESHOLD}].")  # fmt: skip
@click.option("--themes", "k", type=click.IntRange(1), metavar="N", help="Make N themes instead.")
@click.option(
    "--label", "labels", multiple=True, help="Use topics of pairs with this label [default: labels that diverge]."
)
@click.option("--weights", default="", metavar="LEVEL=W,…",
              help="Weights of the significance levels [default: 1 for the lowest, 2 for the next, …].")  # fmt: skip
@click.option("--examples", type=click.IntRange(0, 20), default=3, show_default=True, help="Example pairs per theme.")
@ledger_option
@click.option("--config", "config_path", type=_PATH, help="Configuration file.")
@click.option("--budget", help="Hard limit in dollars (2.50) or calls (200calls).")
@reasoning_option
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Estimate the cost of naming, and stop: nothing is called."
)
@output_option("themes")
@json_option
def themes_command(audit: Path, as_json: bool, **options: object) -> None:
    """Group the topics on which the sources of AUDIT disagree into themes."""
    wanted = _ThemeOptions(**options)  # type: ignore[arg-type]
    screen = Screen(as_json=as_json)
    check_target(wanted.output.resolve(), THEMES)
    opened = Audit.open(audit)
    weights = level_weights(wanted.weights, opened.pack)
    if wanted.threshold is not None and wanted.k is not None:
        raise UsageError("--threshold and --themes can't be used together", fix="give one of them")
    settings = ThemeSettings(
        encoder=wanted.encoder,
        threshold=wanted.threshold,
        k=wanted.k,
        labels=wanted.labels,
        named=wanted.named,
        examples=wanted.examples,
    )
    with open_session(
        ledger_path=wanted.ledger_path,
        config_path=wanted.config_path,
        budget=wanted.budget,
        reasoning=wanted.reasoning,
        tell=screen.say,
        output=wanted.output,
    ) as session:
        found = find_themes(
            opened,
            lambda: cached_encoder(load_encoder(wanted.encoder, model=session.model), vectors_folder()),
            settings,
            model=session.model(wanted.model_spec) if wanted.model_spec else None,
            progress=screen,
        )
        if wanted.only_estimate:
            screen.estimate(found.estimate(opened.pack))
            return
        found = found.with_names(opened.pack, progress=screen)
        _show_themes(screen, found, weights)
        chart = _theme_chart(found.themes, found.topics)
        artefact = write_themes(found, opened, wanted.output, weights=weights, chart=chart, command=command_words())
        if found.model:
            screen.calls(found.model)
        screen.finish(
            artefact,
            next_step=("open", wanted.output / "themes.svg"),
            themes=[msgspec.to_builtins(msgspec.structs.replace(t, phrases=t.phrases[:_SHOWN])) for t in found.themes],
        )


def _show_themes(screen: Screen, found: AuditThemes, weights: Mapping[str, float]) -> None:
    topics = found.topics
    screen.title(
        f"{count_of(len(found.themes), 'theme')} of {count_of(len(topics.phrases), 'phrase')} in "
        f"{count_of(sum(topics.counts), 'pair')}"
    )
    screen.table(
        ["theme", "pairs", "weight", "questions", "sources", "phrases"],
        [
            [cut(theme.name, 60), f"{theme.count:,}", f"{theme_weight(theme, weights):g}", f"{theme.questions}",
             f"{theme.sources}", f"{theme.different}"]
            for theme in found.themes[:_SHOWN]
        ],
    )  # fmt: skip
    if len(found.themes) > _SHOWN:
        screen.say(f"and {len(found.themes) - _SHOWN:,} more themes, in themes.tsv")
    if topics.without:
        screen.say(f"{count_of(topics.without, 'pair')} have no topic and are in no theme")
    if found.parted:
        screen.say(f"the model split {count_of(found.parted, 'group')} whose questions are about different things")
    elif found.model is None:
        screen.say("topics were grouped by their words alone; with --model a model also reads their questions")


def _theme_chart(found: Sequence[Theme], topics: TopicPhrases) -> str:
    """The largest themes as bars."""
    shown = found[:_DRAWN]
    tallies = [CountBar(theme.name, theme.count) for theme in shown]
    if rest := found[_DRAWN:]:
        tallies.append(CountBar(f"{len(rest):,} more", sum(theme.count for theme in rest), rest=True))
    title = f"What sources disagree about: {count_of(len(found), 'theme')}, {count_of(sum(topics.counts), 'pair')}"
    chart = count_bars(tallies, title=title, total=sum(topics.counts))
    return standalone(sheet([("", chart)], title=title))
