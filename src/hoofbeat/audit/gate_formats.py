"""The gate's verdict for continuous integration: JUnit XML and SARIF 2.1.0.

A JUnit test case is a condition. A SARIF result is a condition that failed, a new disagreement, a case that is open
again, or a source that fell silent; it points at the question's line in the audit after the change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from xml.etree import ElementTree as ET

from hoofbeat.audit.answer_changes import SILENT
from hoofbeat.audit.audit_gate import FIGURES, ConditionResult, GateFindings
from hoofbeat.audit.case_records import DisagreementCase
from hoofbeat.text import clean, cut
from hoofbeat.version import __version__

_LISTED = 20
_TEXT = 300
_RULES = {
    "failed-condition": "A condition of the gate failed.",
    "new-disagreement": "Two sources disagree now and did not before.",
    "reopened-case": "A closed case is open again because an answer, a quote or the label changed.",
    "newly-silent": "A source that answered a question before is silent now.",
}


def figure_words(name: str, value: float | None) -> str:
    """A figure as it is written: a share in percent, a count as it is."""
    if value is None:
        return "no value"
    if name.startswith("share"):
        return f"{100 * value:+.1f} points" if name.endswith("change") else f"{100 * value:.1f}%"
    return f"{value:,.0f}"


def result_words(result: ConditionResult) -> str:
    """What a condition found: its figures in words, and why one has no value."""
    told = ", ".join(f"{name} is {figure_words(name, value)}" for name, value in result.figures.items())
    return f"{told} ({result.why})" if result.why else told


def junit_xml(results: Sequence[ConditionResult], findings: GateFindings, name: Callable[[str], str]) -> bytes:
    """One test suite with a test case for each condition; a failure lists the cases behind it."""
    failed = sum(result.failed for result in results)
    counts = {"tests": str(len(results)), "failures": str(failed), "errors": "0"}
    root = ET.Element("testsuites", {"name": "hoofbeat audit gate", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": "audit gate", **counts, "skipped": "0", "time": "0"})
    for result in results:
        case = ET.SubElement(
            suite, "testcase", {"classname": "hoofbeat.audit.gate", "name": f"not ({result.condition})", "time": "0"}
        )
        if result.failed:
            failure = ET.SubElement(case, "failure", {"type": "condition", "message": clean(result_words(result))})
            failure.text = clean("\n".join(case_lines(result, findings, name)))
        else:
            ET.SubElement(case, "system-out").text = clean(result_words(result))
    ET.indent(root, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, encoding="unicode")}\n'.encode()


def case_lines(result: ConditionResult, findings: GateFindings, name: Callable[[str], str]) -> list[str]:
    """The cases behind a condition, one line each, `_LISTED` at most."""
    lines = [f"{each}: {FIGURES[each][0]}" for each in result.figures]
    cases = [
        row.case
        for row in findings.rows
        if (row.state == "reopened" and "reopened" in result.figures)
        or (row.case.id in findings.new and any(each.startswith("new_") for each in result.figures))
    ]
    lines += [f"- {case_line(case, name)}" for case in cases[:_LISTED]]
    return [*lines, f"and {len(cases) - _LISTED} more"] if len(cases) > _LISTED else lines


def case_line(case: DisagreementCase, name: Callable[[str], str]) -> str:
    """A case in one line: question, sources, label, and what they differ in."""
    about = f": {case.about}" if case.about else ""
    level = f", {case.significance}" if case.significance else ""
    return f"{case.question}: {name(case.a.source)} and {name(case.b.source)} ({case.label}{level}){about}"


def sarif_log(
    results: Sequence[ConditionResult],
    findings: GateFindings,
    name: Callable[[str], str],
    *,
    uri: str,
    lines: Mapping[str, int],
    exit_code: int,
) -> dict[str, Any]:
    """The log as one object; `uri` is the file with the questions, `lines` the line of each question in it."""
    rules = list(_RULES)
    found = [
        {
            "ruleId": rule,
            "ruleIndex": rules.index(rule),
            "level": level,
            "message": {"text": cut(clean(text), _TEXT)},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": uri},
                        "region": {"startLine": lines.get(question, 1)},
                    },
                    **({"logicalLocations": [{"name": question, "kind": "question"}]} if question else {}),
                }
            ],
            "partialFingerprints": {"hoofbeatCase/v1": key},
        }
        for rule, level, text, question, key in _each_result(results, findings, name)
    ]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Hoofbeat",
                        "version": __version__,
                        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()],
                    }
                },
                "invocations": [{"executionSuccessful": True, "exitCode": exit_code}],
                "results": found,
            }
        ],
    }


def _each_result(
    results: Sequence[ConditionResult], findings: GateFindings, name: Callable[[str], str]
) -> Iterator[tuple[str, str, str, str, str]]:
    """Rule, level, message, question and what tells the result from others."""
    for result in results:
        if result.failed:
            text = f"The gate fails on {result.condition}: {result_words(result)}"
            yield "failed-condition", "error", text, "", result.condition
    for row in findings.rows:
        if row.state == "reopened":
            why = "; ".join(row.changes)
            yield "reopened-case", "warning", f"{case_line(row.case, name)}. {why}", row.case.question, row.case.id
        elif row.case.id in findings.new:
            yield "new-disagreement", "warning", case_line(row.case, name), row.case.question, row.case.id
    for change in findings.words.answers:
        if SILENT in change.what:
            text = f"{change.question}: {name(change.source)} answered before and is silent now"
            yield "newly-silent", "note", text, change.question, f"{change.question}/{change.source}"
