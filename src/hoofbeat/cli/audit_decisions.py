"""`hoofbeat audit cases` and `gate`: disagreements as a worklist, and whether a change may pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_gate import (
    FIGURES,
    check_conditions,
    gate_findings,
    judge_condition,
    parse_condition,
    with_defaults,
)
from hoofbeat.audit.case_records import STATES, CaseDecision, CaseState, WorklistRow, newest
from hoofbeat.audit.disagreement_cases import (
    COLUMNS,
    count_states,
    decisions_json,
    find_reference,
    lost_note,
    opponents,
    read_cases,
    read_decisions,
    worklist,
    write_worklist,
)
from hoofbeat.audit.gate_formats import result_words
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.cli.console import Screen, is_replaced, note_target, replaced_note
from hoofbeat.cli.session import check_file, command_words, decisions_option, json_option, output_option
from hoofbeat.errors import OutputError, UsageError
from hoofbeat.reports.comparison.gate_page import FAILED, GATE, GateOptions, write_gate
from hoofbeat.reports.tables import Column, count_of
from hoofbeat.store import InputRef, check_target
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.files import write_bytes
from hoofbeat.text import cut

_PATH = click.Path(path_type=Path)
_SHOWN = 20
_OURS = {".csv": ",".join(COLUMNS).encode(), ".json": rb'"format": ?"hoofbeat-decisions/'}
"""What the beginning of a file of cases has, by suffix."""


class KnownDecisions(Struct, frozen=True, kw_only=True):
    """Every version of every decision, where they are from, and their file as an input."""

    versions: tuple[CaseDecision, ...]
    where: str
    inputs: tuple[InputRef, ...] = ()


def reference_option(function: Callable[..., None]) -> Callable[..., None]:
    """`--reference`: whom the team measures the others by."""
    return click.option(
        "--reference", default="", metavar="NAME",
        help="Your own protocol among the sources (id, title or institution): disagreements with it come first.",
    )(function)  # fmt: skip


def known_decisions(given: str | None) -> KnownDecisions | None:
    """The decisions that an option names; None where none is given."""
    if given is None:
        return None
    if given.endswith(".json"):
        path = Path(given)
        found = read_decisions(path)
        return KnownDecisions(versions=tuple(found), where=given, inputs=(file_reference(path, "decisions"),))
    if "://" not in given and not Path(given).is_file():
        raise UsageError(
            "no decisions found", where=given, fix="name the review store, or a .json file that `audit cases` wrote"
        )
    from hoofbeat.review.review_store import ReviewStore

    with ReviewStore.open(given) as store:
        return KnownDecisions(versions=tuple(store.case_history()), where=store.where)


def reference_words(audit: Audit, reference: frozenset[str]) -> str:
    """The reference as people call it."""
    return " and ".join(audit.names.short(source) for source in sorted(reference))


@click.command("cases")
@click.argument("audit", type=_PATH)
@decisions_option
@reference_option
@click.option("--state", "states", multiple=True, type=click.Choice(STATES),
              help="Only cases in this state. Repeat it for several.")  # fmt: skip
@click.option("-o", "--output", type=_PATH, help="Write the cases to this file, .csv or .json.")
@json_option
def cases_command(
    audit: Path,
    decisions: str | None,
    reference: str,
    states: tuple[CaseState, ...],
    output: Path | None,
    as_json: bool,
) -> None:
    """List the disagreements of AUDIT as cases, each with its state: new, open, escalated, reopened or closed.

    Write .json to carry all decisions to the next audit (--decisions), .csv for a spreadsheet.
    """
    screen = Screen(as_json=as_json, on_stdout=True)
    if output is not None:
        if output.suffix not in _OURS:
            raise UsageError(f"cases can't be written to {output.name!r}", fix="name a .csv or a .json file")
        check_file(output, output.suffix, ours=_OURS[output.suffix])
    note_target(click.get_current_context(), output)
    opened = Audit.open(audit)
    chosen = find_reference(opened, reference)
    known = known_decisions(decisions)
    versions = known.versions if known else ()
    _refuse_loss(output, versions)
    decided = newest(versions)
    cases = read_cases(opened)
    rows = worklist(opened, cases, decided, reference=chosen)
    shown = [row for row in rows if not states or row.state in states]
    without_case = len(decided.keys() - {row.case.id for row in rows})
    lost = lost_note(opened, decided)
    if lost:
        Screen(as_json=as_json).say(lost)
    if output is not None:
        if output.suffix == ".csv":
            write_worklist(output, shown, opened.names)
        else:
            write_bytes(output, decisions_json(versions, shown))
    ranked = opponents(cases, chosen, opened) if chosen else []
    if as_json:
        screen.emit(
            {
                "kind": "cases",
                "states": count_states(rows),
                "cases": msgspec.to_builtins(shown),
                "opponents": msgspec.to_builtins(ranked),
                "sources": {name.id: name.full for name in opened.names},
                "decisions": len(decided),
                "decisions_without_case": without_case,
                **({"file": str(output), "replaced": is_replaced(output)} if output else {}),
            }
        )
        return
    _show_cases(screen, opened.names, rows, shown)
    if chosen:
        screen.title(f"Who disagrees with {reference_words(opened, chosen)}")
        strongest = opened.pack.labels[-1].name
        titles = (strongest, "highest significance", "all")
        columns: list[str | Column] = ["source", *(Column(name, "count") for name in titles)]
        screen.table(columns, [(opened.names.full(o.source), o.strongest, o.serious, o.cases) for o in ranked])
    if output is not None:
        kept = ""
        if decided and output.suffix == ".json":
            outside = f" ({without_case:,} on no case of this audit)" if without_case else ""
            kept = f" and {count_of(len(decided), 'decision')}{outside}"
        click.echo(f"Wrote {len(shown):,} of {count_of(len(rows), 'case')}{kept} → {output}{replaced_note(output)}")


def _refuse_loss(output: Path | None, versions: Sequence[CaseDecision]) -> None:
    """Refuse to replace a file with decisions that are not among those that were read."""
    if output is None or output.suffix != ".json" or not output.is_file() or not output.stat().st_size:
        return
    known = set(versions)
    if lost := sum(each not in known for each in read_decisions(output)):
        raise OutputError(
            f"Not overwritten: this file has {count_of(lost, 'decision')} that this command did not read",
            where=str(output),
            fix=f"add --decisions {output}, or name another file",
        )


def _show_cases(screen: Screen, names: SourceNames, rows: Sequence[WorklistRow], shown: Sequence[WorklistRow]) -> None:
    told = ", ".join(f"{count:,} {_WORDS[state]}" for state, count in count_states(rows).items() if count)
    screen.title(f"{count_of(len(rows), 'case')}: {told}" if rows else "No sources disagree")
    if not shown:
        return
    screen.table(
        ("question", "sources", "label", "state", "status", "owner", "they differ in"),
        [
            (
                row.case.question,
                names.both(*row.case.sources),
                row.case.label,
                row.state,
                row.decision.status_words(names.short) if row.decision else "",
                row.decision.owner if row.decision else "",
                cut("; ".join(row.changes) or row.case.about, 70),
            )
            for row in shown[:_SHOWN]
        ],
    )
    if len(shown) > _SHOWN:
        screen.say(f"and {len(shown) - _SHOWN:,} more; write them all with -o cases.csv")


_WORDS: dict[CaseState, str] = {
    "reopened": "reopened",
    "escalated": "escalated",
    "new": "new",
    "open": "open",
    "closed": "closed",
    "gone": "no longer disagreeing",
}


@click.command("gate", epilog=f"Figures of a condition: {', '.join(FIGURES)}.")
@click.argument("before", type=_PATH)
@click.argument("after", type=_PATH)
@click.option("--fail-if", "conditions", multiple=True, metavar="CONDITION",
              help='Fail if this holds: "new_disagreements > 0", "share_disagree > 20% and undecided > 0". '
              "Repeat it for several.")  # fmt: skip
@decisions_option
@reference_option
@output_option("gate", renewed=True)
@json_option
def gate_command(
    before: Path,
    after: Path,
    conditions: tuple[str, ...],
    decisions: str | None,
    reference: str,
    output: Path,
    as_json: bool,
) -> None:
    """Check, in continuous integration, whether the changes from the audit BEFORE to AFTER are acceptable.

    If a condition holds, the exit code is 5. Pairs that were judged before and are not now, pairs whose call failed,
    and another judge fail the gate as well, unless a condition names lost_pairs, failed_pairs or changed_judges with
    another number. The folder has a page,
    Markdown for a pull request, JUnit XML, SARIF and JSON.
    """
    screen = Screen(as_json=as_json)
    if not conditions:
        raise UsageError("a gate needs a condition", fix='give one: --fail-if "new_disagreements > 0"')
    parsed = with_defaults([parse_condition(text) for text in conditions])
    check_conditions(parsed, decisions=decisions is not None, reference=bool(reference))
    check_target(output.resolve(), GATE)
    first, second = Audit.open(before), Audit.open(after)
    chosen = find_reference(second, reference)
    known = known_decisions(decisions)
    found = gate_findings(first, second, decisions=newest(known.versions) if known else None, reference=chosen)
    results = [judge_condition(condition, found.figures) for condition in parsed]
    if known and (lost := lost_note(second, newest(known.versions), first)):
        screen.say(lost)
    options = GateOptions(
        decisions=known.where if known else "",
        reference=reference_words(second, chosen),
        inputs=known.inputs if known else (),
    )
    artefact = write_gate(output, (first, second), found, results, options, command=command_words())
    failed = any(result.failed for result in results)
    screen.title(f"The gate {'fails' if failed else 'passes'}")
    for result in results:
        screen.say(f"{'fails' if result.failed else 'passes'}: {result_words(result)}; it fails if {result.condition}")
    screen.finish(
        artefact,
        next_step=("open", output / "report.html"),
        passed=not failed,
        conditions=msgspec.to_builtins(results),
    )
    if failed:
        click.get_current_context().exit(FAILED)
