"""Completeness: `roles=case,discussion` keeps documents in which a section of each role has text.

ClinBench asks for patient information, test results, diagnosis and treatment:
`roles=patient,tests,diagnosis,treatment`.
A section counts when it or one of its subsections has text.
"""

from __future__ import annotations

from collections.abc import Iterator

from hoofbeat.corpus.filters.base import KEPT, Filter, Verdict, per_document
from hoofbeat.corpus.filters.line import Argument, Clause
from hoofbeat.corpus.roles import CASE_ROLES, Role
from hoofbeat.records import Document

__all__ = ["build_roles", "known_roles", "role_spans"]

EXAMPLE = "roles=case,discussion"


def role_spans(document: Document) -> Iterator[tuple[str, int, int]]:
    """Role, start and end of each section that has one and has text, its subsections included.

    What tells of the patient, tests, diagnosis, treatment or outcome is also part of the case.
    """
    for place, section in enumerate(document.sections):
        if not section.role:
            continue
        end, has_text = section.end, section.end > section.body
        for below in document.sections[place + 1 :]:
            if below.level <= section.level:
                break
            end, has_text = below.end, has_text or below.end > below.body
        if has_text:
            yield section.role, section.start, end
            if section.role in CASE_ROLES and section.role != Role.CASE:
                yield Role.CASE, section.start, end


def known_roles(clause: Clause, values: tuple[Argument, ...]) -> list[str]:
    """The roles that these values name; an unknown one is refused."""
    names = [str(role) for role in Role]
    for value in values:
        if value.text.lower() not in names:
            clause.unknown(value.at, f"unknown section role {value.text!r}", value.text, names)
    return [value.text.lower() for value in values]


def build_roles(clause: Clause) -> Filter:
    """A section of each role must be there."""
    clause.no_arguments(EXAMPLE)
    wanted = known_roles(clause, clause.compared(("=",), EXAMPLE))

    def judge(document: Document) -> Verdict:
        present = {role for role, _, _ in role_spans(document)}
        missing = [role for role in wanted if role not in present]
        if not missing:
            return KEPT
        return Verdict(f"no section with the role {missing[0]}", f"missing: {', '.join(missing)}")

    return per_document("roles", f"roles={','.join(wanted)}", judge, {"roles": wanted})
