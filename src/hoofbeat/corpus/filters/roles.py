"""Completeness: `roles=case,discussion` keeps documents in which a section of each role has text.

ClinBench asks for patient information, test results, diagnosis and treatment:
`roles=patient,tests,diagnosis,treatment`.
A section counts when it or one of its subsections has text.
"""

from __future__ import annotations

from hoofbeat.corpus.filter import KEPT, Argument, Clause, CorpusFilter, FilterStep, FilterVerdict, per_document
from hoofbeat.corpus.roles import Role, role_spans
from hoofbeat.records import Document


def known_roles(clause: Clause, values: tuple[Argument, ...]) -> list[str]:
    """The roles that these values name; an unknown one is refused."""
    names = [str(role) for role in Role]
    for value in values:
        if value.text.lower() not in names:
            clause.unknown(value.at, f"unknown section role {value.text!r}", value.text, names)
    return [value.text.lower() for value in values]


class _Roles(CorpusFilter):
    name = "roles"
    summary = "documents with a section of each role"
    example = "roles=case,discussion"

    def build(self, clause: Clause) -> FilterStep:
        """A section of each role must be there."""
        clause.no_arguments(self.example)
        wanted = known_roles(clause, clause.compared(("=",), self.example))

        def judge(document: Document) -> FilterVerdict:
            present = {role for role, _, _ in role_spans(document)}
            missing = [role for role in wanted if role not in present]
            if not missing:
                return KEPT
            return FilterVerdict(f"no section with the role {missing[0]}", f"missing: {', '.join(missing)}")

        return per_document("roles", f"roles={','.join(wanted)}", judge, {"roles": wanted})


FILTER = _Roles()
