"""Diagnosis keywords: ClinBench takes reports whose tags say that they are about reaching a diagnosis.

The tags are looked for in keywords, subjects, title and headings; a document that has none of the first two (plain
text) is also searched in its abstract, or else in its first characters.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources

from hoofbeat.corpus.filter import (
    Clause,
    CorpusFilter,
    FilterStep,
    FilterVerdict,
    per_document,
    quoted_value,
    word_starts,
)
from hoofbeat.facets import facet_values
from hoofbeat.records import Document

OPENING = 3000


@cache
def diagnosis_words() -> tuple[str, ...]:
    """The words (and beginnings of words) that mark a diagnostic case."""
    raw = resources.files("hoofbeat.corpus").joinpath("data/diagnosis.toml").read_text(encoding="utf-8")
    return tuple(tomllib.loads(raw)["words"])


class _Diagnosis(CorpusFilter):
    name = "diagnosis"
    summary = "reports tagged as being about a diagnosis"
    example = "diagnosis"

    def build(self, clause: Clause) -> FilterStep:
        """`diagnosis`: one of our words must be there; `diagnosis(word, word)`: one of these."""
        if clause.operator:
            clause.alone(self.example)
        given = [argument.text for argument in clause.arguments]
        words = given or list(diagnosis_words())
        pattern = word_starts(words)

        def judge(document: Document) -> FilterVerdict:
            for place, text in _fields(document):
                if match := pattern.search(text):
                    return FilterVerdict(details=f"{match.group()} in {place}")
            return FilterVerdict("no diagnosis keyword")

        line = f"diagnosis({', '.join(map(quoted_value, given))})" if given else "diagnosis"
        return per_document("diagnosis", line, judge, {"words": words})


FILTER = _Diagnosis()


def _fields(document: Document) -> list[tuple[str, str]]:
    tags = facet_values(document.facets, "keywords", "subjects", "mesh")
    fields = [("keywords", tag) for tag in tags]
    fields.append(("title", document.title))
    fields += [("headings", section.heading) for section in document.sections]
    if not tags:
        abstract = [document.section_text(section) for section in document.sections if section.role == "abstract"]
        fields += [("abstract", text) for text in abstract] or [("opening", document.text[:OPENING])]
    return fields
