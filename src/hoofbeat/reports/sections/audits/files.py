"""What of an audit stands in files beside the page: its matrices, and diverging pairs the page has no room for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import polars

from hoofbeat.audit.findings import each_matrix, pair_rates
from hoofbeat.reports.sections.audits.facts import Facts
from hoofbeat.reports.tables import csv_text
from hoofbeat.store.atomic_files import slug

__all__ = ["LISTED", "has_grids", "listed_pairs", "matrix_files", "pairs_file"]

LISTED = 50_000
"""How many diverging pairs the file of pairs holds at most."""

CELLS = 2_000_000
"""Question grids of more cells than this in all are not written beside a report; `audit export` writes them."""


def has_grids(facts: Facts) -> bool:
    """Whether each question's own grid is written beside the report."""
    return 2 * facts.found.pairs <= CELLS


def matrix_files(
    facts: Facts, strips: Mapping[str, Sequence[str]], order: Sequence[str], prefix: str
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file; in a cell without figure or label stands nothing."""
    rates = pair_rates(facts.pairs, facts.domain)
    squares = (
        ("judged", rates.judged),
        ("diverging", rates.diverging),
        ("strongest", rates.contradictory),
        ("share", [[rates.share(x, y) for y in range(len(rates.sources))] for x in range(len(rates.sources))]),
    )
    for name, square in squares:
        rows = ([source, *line] for source, line in zip(rates.sources, square, strict=True))
        yield f"matrices/{prefix}/sources-{name}.csv", csv_text(["source", *rates.sources], rows).encode()
    lines = ([question, *labels] for question, labels in strips.items())
    yield f"matrices/{prefix}/questions-by-sources.csv", csv_text(["question", *order], lines).encode()
    if not has_grids(facts):
        return
    for number, matrix in enumerate(each_matrix(facts.pairs, facts.domain), start=1):
        rows = ([source, *line] for source, line in zip(matrix.sources, matrix.labels, strict=True))
        name = f"matrices/{prefix}/questions/{number:05}-{slug(matrix.question)}.csv"
        yield name, csv_text([matrix.question, *matrix.sources], rows).encode()


def listed_pairs(facts: Facts) -> int:
    """How many pairs the file of diverging pairs holds."""
    return min(LISTED, facts.found.r_div.count)


def pairs_file(facts: Facts, prefix: str, most: int = LISTED) -> tuple[str, bytes]:
    """The diverging pairs by significance, label, question and sources, with the judge's words."""
    names = ("question", "a", "b", "label", "significance", "topic", "basis", "reasoning")
    levels = {level: place for place, level in enumerate(facts.levels, start=1)}
    labels = {label: place for place, label in enumerate(facts.domain.order)}
    text = {name: polars.col(name).cast(polars.String) for name in names}
    level = text["significance"].replace_strict(levels, default=0, return_dtype=polars.Int32)
    label = text["label"].replace_strict(labels, default=0, return_dtype=polars.Int32)
    numbered = facts.frame.with_row_index("row")
    chosen = (
        numbered.filter(text["label"].is_in(list(facts.domain.diverging)) & polars.col("failure").is_null())
        .select("row", text["question"], text["a"], text["b"], level.alias("level"), label.alias("place"))
        .sort("level", "place", "question", "a", "b", descending=[True, True, False, False, False])
        .head(most)
        .collect()
    )
    order = {row: place for place, row in enumerate(chosen["row"].to_list())}
    rows = numbered.filter(polars.col("row").is_in(list(order))).select("row", *text.values()).collect().rows()
    rows.sort(key=lambda row: order[row[0]])
    return f"pairs/{prefix}-diverging.csv", csv_text(names, (row[1:] for row in rows)).encode()
