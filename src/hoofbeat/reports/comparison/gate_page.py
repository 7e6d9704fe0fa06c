"""The gate's summary on one page, as HTML and as Markdown for a pull request, and its folder for other tools."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from hoofbeat.audit import Audit
from hoofbeat.audit.audit_gate import FIGURES, ConditionResult, GateFindings
from hoofbeat.audit.case_records import DisagreementCase, WorklistRow
from hoofbeat.audit.disagreement_cases import count_states, write_worklist
from hoofbeat.audit.gate_formats import figure_words, junit_xml, sarif_log
from hoofbeat.audit.source_names import SourceNames
from hoofbeat.reports.model import Block, Lead, Notice, Report, Text
from hoofbeat.reports.report_writer import NOTICE, report_files
from hoofbeat.reports.tables import Cell, Table, columns_of, count_of
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_tsv
from hoofbeat.text import cut
from hoofbeat.version import __version__

GATE = "gate"
"""The kind of folder that holds a gate's verdict."""

FAILED = 5
"""The exit code of a gate that fails."""

_CASES, _ANSWERS, _WORDS = 5, 3, 90
"""Rows and letters that leave the summary on one printed page, whatever changed."""

_LISTED, _NAMED = 20, 3


class GateOptions(Struct, frozen=True, kw_only=True):
    """What the figures rest on beside the two audits: decisions and a reference, in words; empty where not given."""

    decisions: str = ""
    reference: str = ""
    inputs: tuple[InputRef, ...] = ()


def write_gate(
    target: Path,
    audits: tuple[Audit, Audit],
    findings: GateFindings,
    results: Sequence[ConditionResult],
    options: GateOptions,
    *,
    command: Sequence[str] = (),
) -> Artefact:
    """Write `report.html`, `report.md`, `junit.xml`, `gate.sarif` and `gate.json`."""
    after = audits[1]
    failed = any(result.failed for result in results)
    names = after.names
    report = gate_report(audits, findings, results, options)
    lines = {question.id: number for number, question in enumerate(after.questions, start=1)}
    log = sarif_log(
        results, findings, names.short, uri=_uri(after), lines=lines, exit_code=FAILED if failed else 0
    )  # fmt: skip
    told = {
        "passed": not failed,
        "conditions": results,
        "figures": _given(findings, options),
        "new": [row.case for row in findings.rows if row.case.id in findings.new],
        "reopened": [row for row in findings.rows if row.state == "reopened"],
        "resolved": findings.resolved,
        "changed_answers": findings.words.answers,
        "changed_texts": findings.words.texts,
        "sources": {name.id: name.full for name in names},
    }
    with create(target, replace_kind=GATE) as draft:
        for name, content in report_files(report, ("html", "markdown", "csv")):
            write_bytes(draft.path / name, content)
        write_bytes(draft.path / "junit.xml", junit_xml(results, findings, names.short))
        write_bytes(draft.path / "gate.sarif", msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n")
        write_bytes(draft.path / "gate.json", msgspec.json.format(msgspec.json.encode(told), indent=1) + b"\n")
        draft.finish(
            Manifest(
                kind=GATE,
                title=report.title,
                command=list(command),
                inputs=[*(audit.artefact.reference() for audit in audits), *options.inputs],
                settings={
                    "conditions": [result.condition for result in results],
                    "reference": options.reference,
                },
                counts=Counts(kept=len(results)),
                metrics={"passed": not failed, **_given(findings, options)},
            )
        )
    return open_artefact(target, GATE)


def _uri(audit: Audit) -> str:
    """The file with the questions, as a tool finds it from here; a folder elsewhere goes by its name."""
    place = Path(os.path.relpath(audit.artefact.path.resolve() / "questions.jsonl"))
    parts = (audit.artefact.path.resolve().name, place.name) if ".." in place.parts else place.parts
    return PurePosixPath("/", *parts).as_uri().removeprefix("file:///")


def _given(findings: GateFindings, options: GateOptions) -> dict[str, float | None]:
    """The figures that have what they need."""
    there = {"--decisions": bool(options.decisions), "--reference": bool(options.reference), "": True}
    return {name: value for name, value in findings.figures.items() if there[FIGURES[name][1]]}


def gate_report(
    audits: tuple[Audit, Audit], findings: GateFindings, results: Sequence[ConditionResult], options: GateOptions
) -> Report:
    """The page: the verdict, each condition, what is new or open again, and the words that changed."""
    before, after = (audit.artefact.path.resolve().name for audit in audits)
    names = audits[1].names
    failed = [result for result in results if result.failed]
    verdict = "fails" if failed else "passes"
    lead = (
        f"The gate fails on {count_of(len(failed), 'condition')}: {'; '.join(result.condition for result in failed)}."
        if failed
        else f"The gate passes: it meets none of its {count_of(len(results), 'condition')} for failing."
    )
    blocks: list[Block] = [_conditions(results), Text(_in_words(findings), label="Disagreements")]
    if options.reference:
        blocks.append(Text(f"Disagreements with {options.reference} are listed first.", label="Reference"))
    blocks += case_blocks(findings, names, decided=bool(options.decisions), limit=_CASES)
    blocks += _word_blocks(findings, names)
    return Report(
        title=f"Audit gate {verdict}: {before} → {after}",
        notice=NOTICE,
        version=__version__,
        leads=(Lead(lead), *(Lead(each) for each in (_unseen(findings), _other_judges(audits)) if each)),
        blocks=tuple(blocks),
        compact=True,
    )


def _in_words(findings: GateFindings) -> str:
    """How many disagreements there are, how many are new, and their share of judged pairs."""
    figures = findings.figures
    told = (
        f"{figures['disagreements']:,.0f} in total: {figures['new_disagreements']:,.0f} new, "
        f"{figures['resolved_disagreements']:,.0f} resolved since before."
    )
    if figures["share_disagree"] is None:
        return f"{told} No pair was judged."
    share = figure_words("share_disagree", figures["share_disagree"])
    before = figures["share_disagree_change"]
    change = "" if before is None else f" ({figure_words('share_disagree_change', before)})"
    return f"{told} {share} of the judged pairs disagree{change}."


def _unseen(findings: GateFindings) -> str:
    """How many pairs nobody can say anything about, in words; nothing if all were judged."""
    lost, failed = (int(findings.figures[name] or 0) for name in ("lost_pairs", "failed_pairs"))
    told = []
    if lost:
        told.append(f"{count_of(lost, 'pair')} judged before {'is' if lost == 1 else 'are'} not judged now")
    if failed:
        told.append(f"{count_of(failed, 'pair')} {'has' if failed == 1 else 'have'} no label because a call failed")
    return f"{'; '.join(told)}. Whether these sources disagree is not known." if told else ""


def _other_judges(audits: tuple[Audit, Audit]) -> str:
    """Who judged before and who judged now, in words, if they are not the same."""
    before, after = ([*audit.judges, *(["--economy"] if audit.mode != "full" else [])] for audit in audits)
    if set(before) == set(after):
        return ""
    return (
        f"Judged before by {', '.join(before) or 'nobody'}, now by {', '.join(after) or 'nobody'}. Another judge gives "
        "other labels to the same answers, so a difference need not come from the sources."
    )


def _conditions(results: Sequence[ConditionResult]) -> Table:
    rows = tuple(
        (
            "fails" if result.failed else "passes",
            result.condition,
            ", ".join(figure_words(*figure) for figure in result.figures.items())
            + (f" ({result.why})" if result.why else ""),
            "; ".join(FIGURES[name][0] for name in result.figures),
        )
        for result in results
    )
    return Table(
        name="conditions", caption="The gate fails if any condition is met", n=len(rows), unit="conditions",
        columns=columns_of("verdict | fail if | found | what is counted"), rows=rows,
    )  # fmt: skip


def case_blocks(findings: GateFindings, names: SourceNames, *, decided: bool, limit: int = _LISTED) -> list[Block]:
    """The cases that are open again and the disagreements that are new, the most serious first."""
    reopened = [row for row in findings.rows if row.state == "reopened"]
    new = [row for row in findings.rows if row.case.id in findings.new]
    blocks: list[Block] = []
    if decided:
        counts = count_states(findings.rows)
        told = ", ".join(f"{counts[state]:,} {state}" for state in ("closed", "reopened", "escalated", "open", "new"))
        blocks.append(Text(f"{told}; {counts['gone']:,} no longer disagree.", label="Cases by what was decided"))
    if reopened:
        rows = tuple(
            (*_named(row, names), _signed(row, names), cut("; ".join(row.changes), _WORDS)) for row in reopened[:limit]
        )
        blocks += [
            Table(
                name="reopened", caption="Closed cases whose words changed", n=len(reopened), unit="cases",
                columns=columns_of("question | sources | label | decided | what changed"), rows=rows,
                note=_more(len(reopened), limit),
            ),
        ]  # fmt: skip
    if new:
        rows = tuple(
            (*_named(row, names), row.case.significance or "–", cut(row.case.about, _WORDS)) for row in new[:limit]
        )
        blocks += [
            Table(
                name="new", caption="Pairs of sources that did not disagree before", n=len(new), unit="cases",
                columns=columns_of("question | sources | label | significance | they differ in"), rows=rows,
                note=_more(len(new), limit),
            ),
        ]  # fmt: skip
    if not reopened and not new:
        among = " among the pairs that were judged" if _unseen(findings) else ""
        blocks.append(Notice(f"There is no new disagreement and no reopened case{among}."))
    return blocks


def case_leads(findings: GateFindings, audits: tuple[Audit, Audit]) -> tuple[Lead, ...]:
    """What is new and what is gone, in sentences that name the most serious; nothing where nothing is."""
    new = [row.case for row in findings.rows if row.case.id in findings.new]
    told = []
    for cases, names, what, link in (
        (new, audits[1].names, "new", "#cases"),
        (findings.resolved, audits[0].names, "gone", "#cases"),
    ):
        if cases:
            more = f" and {len(cases) - _NAMED:,} more" if len(cases) > _NAMED else ""
            listed = "; ".join(_in_short(case, names) for case in cases[:_NAMED])
            told.append(
                Lead(f"{count_of(len(cases), 'disagreement is', 'disagreements are')} {what}: {listed}{more}.", link)
            )
    return tuple(told)


def _in_short(case: DisagreementCase, names: SourceNames) -> str:
    level = f", {case.significance} significance" if case.significance else ""
    about = f", about {cut(case.about, _WORDS)}" if case.about else ""
    return f"“{cut(case.text, _WORDS)}” ({names.both(*case.sources)}: {case.label.lower()}{level}{about})"


def write_changes(folder: Path, findings: GateFindings, names: SourceNames, *, decided: bool) -> None:
    """Tables of answers that changed, of pairs that keep their label over it, and of cases."""
    words = findings.words
    write_tsv(
        folder / "answers.tsv",
        ("question", "source", "source_name", "what", "before", "after", "quotes_before", "quotes_after",
         "labels_changed", "labels_kept"),
        [
            (each.question, each.source, names.full(each.source), ", ".join(each.what), each.before.answer,
             each.after.answer, " … ".join(each.before.quotes), " … ".join(each.after.quotes), each.moved, each.kept)
            for each in words.answers
        ],
    )  # fmt: skip
    write_tsv(
        folder / "same-label.tsv",
        ("question", "a", "b", "a_name", "b_name", "label", "answers_changed"),
        [
            (each.question, each.a, each.b, names.full(each.a), names.full(each.b), each.label, ", ".join(each.changed))
            for each in words.same_label
        ],
    )
    new = [row for row in findings.rows if row.case.id in findings.new]
    write_worklist(folder / "cases.csv", findings.rows if decided else new, names)


def _named(row: WorklistRow, names: SourceNames) -> tuple[Cell, ...]:
    return row.case.question, names.both(*row.case.sources), row.case.label


def _signed(row: WorklistRow, names: SourceNames) -> str:
    decision = row.decision
    return f"{decision.status_words(names.short)}, {decision.name}, {decision.date[:10]}" if decision else ""


def _more(count: int, limit: int) -> str:
    return f"The first {limit} of {count:,}; all are in the folder's files." if count > limit else ""


def _word_blocks(findings: GateFindings, names: SourceNames) -> list[Block]:
    words = findings.words
    blocks: list[Block] = []
    if words.texts:
        told = "; ".join(names.full(source) for source in words.texts[:_CASES])
        more = f"; and {len(words.texts) - _CASES} more" if len(words.texts) > _CASES else ""
        blocks.append(Text(f"{told}{more}.", label="Sources whose text changed"))
    if words.answers:
        shown = sorted(words.answers, key=lambda each: (-each.moved, each.question, each.source))[:_ANSWERS]
        rows = tuple(
            (
                each.question,
                names.short(each.source),
                cut(each.before.answer, _WORDS) or "silent",
                cut(each.after.answer, _WORDS) or "silent",
            )
            for each in shown
        )
        count = len(words.answers)
        blocks += [
            Table(
                name="answers", caption="Answers of the sources before and now", n=count, unit="answers",
                columns=columns_of("question | source | before | after"), rows=rows,
                note=f"The first {_ANSWERS} of {count:,}; audit compare shows all." if count > _ANSWERS else "",
            ),
        ]  # fmt: skip
    return blocks
