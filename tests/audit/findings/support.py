"""Audits written short, as records and as the table that holds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import polars
from hypothesis import strategies as st

from hoofbeat.audit.findings.audit_changes import split_between
from hoofbeat.audit.findings.pair_arrays import label_counts
from hoofbeat.audit.findings.relations import FIVE_RELATIONS, PrevalenceIntensity, Relations
from hoofbeat.audit.findings.table_agreement import join
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.records import Comparison, Failure, Question
from tests.audit.comparison_rows import comparison_frame

NAMES = {"-": "Absent", "c": "Consistent", "m": "Complementary", "d": "Divergent", "x": "Contradictory"}
SOURCES = ("s1", "s2", "s3", "s4")
PAIRS = list(combinations(SOURCES, 2))
LEVELS = ("low", "medium", "high")
FACETS: dict[str, str | list[str]] = {
    "a": "liver",
    "b": ["liver", "lung"],
    "c": "lung",
    "d": [],
    "e": "heart",
    "f": "liver",
}
QUESTIONS = [
    Question(id=name, text=f"Question {name}?", facets={"organ": value} if value else {})
    for name, value in FACETS.items()
]

audits = st.dictionaries(st.sampled_from("abcdef"), st.text("-cmdx!", min_size=6, max_size=6), min_size=1)
"""Question to the marks of its six pairs."""


def audit(questions: dict[str, str], rated: str = "") -> list[Comparison]:
    """Question to the labels of its pairs (! failed); diverging ones get levels by `rated` (l, m, h, .) in turn."""
    found = []
    diverging = 0
    for question, marks in questions.items():
        for (a, b), mark in zip(PAIRS, marks, strict=False):
            if mark == "!":
                kind = "schema" if a == "s1" else "timeout"
                found.append(Comparison(question=question, a=a, b=b, failure=Failure(kind=kind, message="x")))  # type: ignore[arg-type]
                continue
            level = topic = None
            if mark in "dx":
                mark_of = rated[diverging % len(rated)] if rated else "."
                level = {"l": "low", "m": "medium", "h": "high", ".": None}[mark_of]
                topic = f"topic {question if diverging % 3 else 'of all'}"
                diverging += 1
            basis = "absent" if mark == "-" else "judged"
            found.append(
                Comparison(
                    question=question, a=a, b=b, label=NAMES[mark], topic=topic, significance=level, basis=basis,
                    reasoning=f"because of {a} and {b}",
                )
            )  # fmt: skip
    return found


def table(comparisons: Sequence[Comparison]) -> polars.DataFrame:
    """The table as an audit's folder holds it: enumerations, and null for what is not there."""
    kinds = TableEnums.of(
        questions=(item.question for item in comparisons),
        sources=(name for item in comparisons for name in (item.a, item.b)),
        labels=FIVE_RELATIONS.order,
        levels=LEVELS,
        judges={item.judge for item in comparisons if item.judge},
    )
    return comparison_frame(comparisons, kinds)


def plain_table(comparisons: Sequence[Comparison]) -> polars.DataFrame:
    """The same as text, as another program might write it: empty strings for what is not there, in no order."""
    names = ("question", "a", "b", "label", "failure")
    return table(comparisons[::-1]).with_columns(polars.col(name).cast(polars.String).fill_null("") for name in names)


def relations(comparisons: Iterable[Comparison], questions: Iterable[str] = ()) -> Relations:
    """The rates of some comparisons."""
    return label_counts(table(list(comparisons)), questions)


def prevalence_intensity(
    before: Sequence[Comparison], after: Sequence[Comparison], *, samples: int = 1000, seed: int = 0
) -> PrevalenceIntensity:
    """The split of the change between two audits."""
    return split_between(join(table(before), table(after)), samples=samples, seed=seed)
