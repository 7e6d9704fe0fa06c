"""Test collections in a report: R2MED's table of statistics, and the overlap of every two sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hoofbeat.corpus.stats import NO_TOKENIZER
from hoofbeat.judging.distractor_similarity import DISTRACTORS
from hoofbeat.reports.charts import Bar, interval_bars
from hoofbeat.reports.model import Block, Heading, Notice
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact, figure
from hoofbeat.reports.tables import Table, columns_of
from hoofbeat.retrieval.rankings.set_statistics import KIND, OVERLAP, SETS, SetRow, SetStatistics
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv

_BIN = 0.05


def read_set_statistics(artefact: Artefact) -> SetStatistics:
    """The statistics as `hoofbeat benchmark stats` wrote them."""

    def number(text: str) -> float | None:
        return float(text) if text else None

    rows = tuple(
        SetRow(
            name=row["name"],
            questions=int(row["questions"]),
            documents=int(row["documents"]),
            positives=number(row["positives"]),
            question_length=number(row["question_length"]),
            document_length=number(row["document_length"]),
            options=float(row["options"]),
            images=float(row["images"]),
        )
        for row in read_tsv(artefact.file(SETS))
    )
    overlaps = tuple(
        (row["a"], row["b"], float(row["overlap"]), int(row["shared_words"]), int(row["words"]))
        for row in read_tsv(artefact.file(OVERLAP))
    )
    unit = str(artefact.manifest.settings.get("tokenizer", NO_TOKENIZER))
    return SetStatistics(unit=unit, rows=rows, overlaps=overlaps)


def sets_table(found: SetStatistics, prefix: str) -> Table:
    """One row per set; columns of options and images where some set has them."""
    unit = "words" if found.unit == NO_TOKENIZER else "tokens"
    options, images = any(row.options for row in found.rows), any(row.images for row in found.rows)
    return Table(
        name=f"{prefix}-statistics",
        caption="Statistics of the sets",
        n=sum(row.questions for row in found.rows),
        unit="questions",
        columns=columns_of(
            f"set | questions:count | documents:count | positives per question:amount | question, {unit}:amount | "
            f"document, {unit}:amount"
            + (" | options per question:amount" if options else "")
            + (" | images per question:amount" if images else "")
        ),
        rows=tuple(
            (
                row.name,
                row.questions,
                row.documents or None,
                row.positives,
                row.question_length,
                row.document_length,
                *((row.options,) if options else ()),
                *((row.images,) if images else ()),
            )
            for row in found.rows
        ),
        note="Means over questions and documents; positives are documents of grade 1 or more. "
        + ("Lengths are in words." if unit == "words" else f"Lengths are in tokens of {found.unit}."),
    )


def overlap_table(found: SetStatistics, prefix: str) -> Table:
    """Every two sets."""
    what = "words" if found.unit == NO_TOKENIZER else "tokens"
    return Table(
        name=f"{prefix}-overlap",
        caption="Overlap between sets",
        n=len(found.rows),
        unit="sets",
        columns=columns_of(f"set | other set | weighted Jaccard:number | shared {what}:count | all {what}:count"),
        rows=found.overlaps,
        note=f"Overlap of the distributions of the {what} of all documents: 0 means nothing in common, 1 the same "
        f"distribution.",
    )


def similarity_table(prefix: str, scorer: str, f1: Mapping[str, Sequence[float]]) -> Table:
    """The spread of BERTScore F1 between distractors and right options, by set."""
    return Table(
        name=f"{prefix}-distractors",
        caption="BERTScore F1 of a distractor with the right option",
        n=sum(map(len, f1.values())),
        unit="distractors",
        columns=columns_of(
            "set | distractors:count | minimum:number | 25th:number | median:number | mean:number | 75th:number | "
            "maximum:number"
        ),
        rows=tuple((name, len(values), *_spread(values)) for name, values in f1.items()),
        note=f"By {scorer}. Values of another encoder, layer or rescaling can't be compared with these.",
    )


def _spread(values: Sequence[float]) -> tuple[float, ...]:
    low, first, middle, third, high = (float(each) for each in np.quantile(values, [0, 0.25, 0.5, 0.75, 1]))
    return low, first, middle, float(np.mean(values)), third, high


def _similarity(artefact: Artefact, prefix: str) -> list[Block]:
    """The distribution as a chart for each set, and the table."""
    f1: dict[str, list[float]] = {}
    for row in read_tsv(artefact.file(DISTRACTORS)):
        f1.setdefault(row["set"], []).append(float(row["f1"]))
    if not f1:
        return [Notice("No question has an answer among its options, so there are no distractors to score.")]
    blocks: list[Block] = [Heading("Distractors", f"{prefix}-distractors", 3)]
    for number, (name, values) in enumerate(f1.items(), start=1):
        counts, edges = np.histogram(values, bins=np.arange(np.floor(min(values) / _BIN), np.ceil(1 / _BIN) + 1) * _BIN)
        bars = [Bar(label=f"{edges[n]:.2f} to {edges[n + 1]:.2f}", value=int(count)) for n, count in enumerate(counts)]
        title = f"BERTScore F1 of distractors with the right option: {name}"
        draw = partial(interval_bars, bars, title=title, form="count")
        blocks.append(figure(f"{prefix}-distractors-{number}", f"{title}; the number in each range.", draw))
    scorer = str(artefact.manifest.settings.get("distractors", "an unnamed scorer"))
    return [*blocks, similarity_table(prefix, scorer, f1)]


def set_statistics_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one folder of statistics."""
    found = read_set_statistics(artefact)
    blocks: list[Block] = [sets_table(found, prefix)]
    blocks += [overlap_table(found, prefix)] if found.overlaps else []
    if artefact.has(DISTRACTORS):
        blocks += _similarity(artefact, prefix)
    return Chapter(title="Test collections", id=prefix, blocks=tuple(blocks))


SECTION = ReportSection(
    name="set-statistics",
    summary="test collections: questions, documents, positives, lengths, options and images, and overlap between sets",
    order=212,
    kinds=(KIND,),
    build=chapter_per_artefact(KIND, set_statistics_chapter),
)
