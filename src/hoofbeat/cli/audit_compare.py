"""`hoofbeat audit compare`: two audits of the same questions, before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from hoofbeat.audit import Audit
from hoofbeat.audit.findings import AuditsComparison, AuditSide, changed_pairs, compare_audits, slim_answers
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option
from hoofbeat.errors import UsageError
from hoofbeat.facets import facet_names
from hoofbeat.prompts import Pack
from hoofbeat.reports.comparison.audits_page import AUDIT_COMPARISON, altered_settings, split_table, write_audits
from hoofbeat.reports.sections.audits.differing import differing
from hoofbeat.reports.tables import Column
from hoofbeat.store import check_target

__all__ = ["command"]

_FACETS = 4
_SHOWN = 8


@click.command("compare")
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--facet", "facets", multiple=True,
              help="Split the changes by this facet of the questions, too; several may be given "
              "[default: those that make few groups].")  # fmt: skip
@click.option("--page-rows", type=click.IntRange(100), default=20_000, show_default=True,
              help="Rows of one file of the list of changed pairs.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the intervals.")
@output_option("audit-comparison")
@json_option
def command(
    before: Path, after: Path, facets: tuple[str, ...], page_rows: int, seed: int, output: Path, as_json: bool
) -> None:
    """Compare the audits BEFORE and AFTER: coverage, labels, and whether disagreement became more frequent, stronger,
    or only visible."""
    screen = Screen(as_json=as_json)
    check_target(output.resolve(), AUDIT_COMPARISON)
    first, second = Audit.open(before), Audit.open(after)
    pack = _pack(first, second)
    domain = RelationLabels.of(pack.labels)
    chosen = _facets(facets, second)
    with screen.task("comparing audits", 3) as task:
        sides = []
        for audit in (first, second):
            sides.append(_side(audit))
            task.advance()
        compared, joined = compare_audits(sides[0], sides[1], domain, facets=chosen, seed=seed)
        changed = changed_pairs(joined, sides[0].table, sides[1].table)
        task.advance()
    warnings, altered = differing(first, second), altered_settings(first, second)
    _show(screen, compared, warnings)
    for name, values in altered.items():
        screen.say(f"{name}: {_plain(values[0])}, then {_plain(values[1])}")
    artefact = write_audits(
        output,
        (first, second),
        compared,
        changed,
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
        altered=altered,
        warnings=warnings,
    )


def _pack(first: Audit, second: Audit) -> Pack:
    """The pack of both; audits of different domains are refused."""
    if first.pack.name != second.pack.name or first.pack.labels != second.pack.labels:
        raise UsageError(
            f"the audits have different domain packs: {first.pack.name} and {second.pack.name}",
            where=f"{first.artefact.path}, {second.artefact.path}",
            fix="compare audits that were judged with the same labels",
        )
    return second.pack


def _facets(wanted: Sequence[str], audit: Audit) -> list[str]:
    if not wanted:
        return facet_names(question.facets for question in audit.questions)[:_FACETS]
    known = {name for question in audit.questions for name in question.facets}
    if unknown := [name for name in wanted if name not in known]:
        raise UsageError(
            f"no question has the facet {unknown[0]!r}", fix=f"there are: {', '.join(sorted(known)) or 'none'}"
        )
    return list(dict.fromkeys(wanted))


def _side(audit: Audit) -> AuditSide:
    return AuditSide(
        table=audit.frame(),
        questions=audit.questions,
        sources=[source.id for source in audit.sources],
        answers=slim_answers(audit.each_answer()),
    )


def _plain(value: object) -> str:
    """A setting in words: none, or the parts of one that has parts."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(part)}" for name, part in value.items())
    return "none" if value is None else str(value)


def _show(screen: Screen, compared: AuditsComparison, warnings: Sequence[str]) -> None:
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
            [(row.source, *row.coverage, row.gained, row.lost) for row in moved[:_SHOWN]],
        )
    if len(moved) > _SHOWN:
        screen.say(f"and {len(moved) - _SHOWN} sources more, in coverage.tsv")
    for what, only in (("sources", compared.sources_only), ("questions", compared.questions_only)):
        if any(only):
            screen.say(f"{what} in one audit only: {len(only[0])} before, {len(only[1])} after (only.tsv)")
    screen.say(f"{compared.shift.pairs - compared.shift.same:,} pairs have another label now (changed/)")
    for warning in warnings:
        screen.say(f"[!] {warning}")
