"""Test collections in a report: R2MED's table of statistics, and the overlap of every two sets."""

from __future__ import annotations

from hoofbeat.corpus.stats import NO_TOKENIZER
from hoofbeat.reports.model import Block
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact
from hoofbeat.reports.tables import Table, columns_of
from hoofbeat.retrieval.rankings.set_statistics import KIND, OVERLAP, SETS, SetRow, SetStatistics
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv


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
                row.documents,
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
        note=f"Of the shares of the {what} of all documents: 0 is nothing in common, 1 the same distribution.",
    )


def set_statistics_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on one folder of statistics."""
    found = read_set_statistics(artefact)
    blocks: list[Block] = [sets_table(found, prefix)]
    blocks += [overlap_table(found, prefix)] if found.overlaps else []
    return Chapter(title="Test collections", id=prefix, blocks=tuple(blocks))


SECTION = ReportSection(
    name="set-statistics",
    summary="test collections: questions, documents, positives, lengths, options and images, and overlap between sets",
    order=32,
    kinds=(KIND,),
    build=chapter_per_artefact(KIND, set_statistics_chapter),
)
