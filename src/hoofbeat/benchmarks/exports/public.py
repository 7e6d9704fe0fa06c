"""Formats of the field at large: our own JSONL, BEIR, R2MED, the Hugging Face layout, Croissant."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hoofbeat.benchmarks.benchmark import edition_file
from hoofbeat.benchmarks.exports.bundle import Bundle
from hoofbeat.benchmarks.exports.describing import FIELDS, data_card, write_croissant_file, write_datasheet_file
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.corpus.readers.beir import write_beir
from hoofbeat.corpus.readers.r2med import write_r2med
from hoofbeat.records import Question
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import canonical_json, write_jsonl, write_parquet

__all__ = ["flat", "write_as_beir", "write_as_r2med", "write_croissant", "write_datasheet", "write_hub", "write_own"]


def write_own(bundle: Bundle, folder: Path) -> int:
    """`questions.jsonl` and its editions as Hoofbeat keeps them, with the judgments in BEIR's layout.

    An edition that was asked for is written alone, as `questions.jsonl`, with its own judgments.
    """
    for name, questions in bundle.given.items():
        write_jsonl(folder / edition_file("" if name in ("default", bundle.bench.edition) else name), questions)
        bundle.copy_images(questions, folder)
    if grades := bundle.bench.qrels():
        write_qrels(folder / "qrels.tsv", grades, "beir")
    return len(bundle.questions)


def write_as_beir(bundle: Bundle, folder: Path) -> int:
    """`corpus.jsonl`, `queries.jsonl`, `qrels/test.tsv`."""
    write_beir(folder, bundle.searched(), bundle.questions, bundle.bench.qrels())
    return len(bundle.questions)


def write_as_r2med(bundle: Bundle, folder: Path) -> int:
    """`corpus.jsonl`, `query.jsonl`, `qrels.jsonl`."""
    write_r2med(folder, bundle.searched(), bundle.questions, bundle.bench.qrels())
    return len(bundle.questions)


def flat(question: Question) -> dict[str, object]:
    """A question as one flat row under the names of `FIELDS`."""
    return {
        "id": question.id,
        "question": question.text,
        "context": question.context,
        "answer": question.answer,
        "options": list(question.options),
        "images": list(question.images),
        "documents": list(question.documents),
        "evidence": [f"{span.document}:{span.start}-{span.end}:{span.quote}" for span in question.evidence],
        "facets": canonical_json(question.facets).decode(),
    }


def write_hub(bundle: Bundle, folder: Path) -> int:
    """The Hugging Face layout: a Parquet file for each edition, a card, a datasheet, Croissant metadata."""
    files = {}
    for name, questions in bundle.given.items():
        path = folder / name / "test-00000-of-00001.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_parquet(path, questions)
        bundle.copy_images(questions, folder)
        files[name] = path
    configs = {name: path.relative_to(folder).as_posix() for name, path in files.items()}
    write_bytes(folder / "README.md", data_card(bundle, configs).encode())
    write_croissant_file(bundle, folder, files, "application/x-parquet")
    write_datasheet_file(bundle, folder)
    return len(bundle.questions)


def _write_parquet(path: Path, questions: Sequence[Question]) -> None:
    import polars  # noqa: PLC0415 - only where Parquet is written

    schema = {name: polars.List(polars.String) if many else polars.String() for name, _, many, _ in FIELDS}
    write_parquet(path, polars.DataFrame([flat(question) for question in questions], schema=schema))


def write_croissant(bundle: Bundle, folder: Path) -> int:
    """`croissant.json` (Croissant 1.1) with the questions of each edition as flat JSON lines, and a datasheet."""
    files = {}
    for name, questions in bundle.given.items():
        files[name] = folder / f"{name}.jsonl"
        write_jsonl(files[name], map(flat, questions))
        bundle.copy_images(questions, folder)
    write_croissant_file(bundle, folder, files, "application/jsonlines")
    write_datasheet_file(bundle, folder)
    return len(bundle.questions)


def write_datasheet(bundle: Bundle, folder: Path) -> int:
    """`DATASHEET.md` alone."""
    write_datasheet_file(bundle, folder)
    return len(bundle.questions)
