"""A corpus out again, in formats that others read: BEIR, R2MED, a spreadsheet, Markdown files.

Cells that a spreadsheet would run as a formula are written so that it does not; file names come from document ids,
which are path-safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.corpus import Corpus
from hoofbeat.corpus.readers.beir import write_beir
from hoofbeat.corpus.readers.r2med import write_r2med
from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Document, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_csv

__all__ = ["FORMATS", "export_corpus"]

KIND = "export"
_COLUMNS = ("id", "title", "kind", "year", "journal", "institution", "licence", "notices", "characters", "text")


def export_corpus(
    corpus: Corpus,
    target: Path,
    form: str,
    *,
    questions: Sequence[Question] = (),
    inputs: Sequence[InputRef] = (),
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write all documents of a corpus in one of `FORMATS`; BEIR and R2MED take questions and their judgments along."""
    if form not in FORMATS:
        raise UsageError(f"there is no export format {form!r}", fix=f"use one of: {', '.join(FORMATS)}")
    if questions and form not in ("beir", "r2med"):
        raise UsageError(
            f"{form} has no place for questions", fix="export to beir or r2med, or leave the questions out"
        )
    with create(target, replace_kind=KIND) as draft, progress.task("exporting", len(corpus)) as task:

        def documents() -> Iterator[Document]:
            for document in corpus.documents():
                yield document
                task.advance()

        count = FORMATS[form](draft.path, documents(), questions)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{form} export",
                command=list(command),
                inputs=[corpus.artefact.reference(), *inputs],
                settings={"format": form},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target, KIND)


def _csv(folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:  # noqa: ARG001
    rows = ([_shown(document, column) for column in _COLUMNS] for document in documents)
    return write_csv(folder / "documents.csv", _COLUMNS, rows)


def _shown(document: Document, column: str) -> str:
    if column == "characters":
        return str(len(document.text))
    if column == "notices":
        return "; ".join(document.notices)
    value = (
        document.facets.get(column, "") if column in ("year", "journal", "institution") else getattr(document, column)
    )
    return "; ".join(value) if isinstance(value, list) else str(value)


def _markdown(folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:  # noqa: ARG001
    count = 0
    for document in documents:
        write_bytes(folder / "documents" / f"{document.id}.md", _as_markdown(document).encode())
        count += 1
    return count


def _as_markdown(document: Document) -> str:
    head = {"id": document.id, "title": document.title, "licence": document.licence}
    for name, value in document.facets.items():
        head[name] = value if isinstance(value, str) else f"[{', '.join(value)}]"
    front = "\n".join(["---", *(f"{name}: {' '.join(value.split())}" for name, value in head.items() if value), "---"])
    blocks, place = [front], 0
    for section in document.sections:
        blocks.append(document.text[place : section.start])
        blocks.append("#" * min(6, section.level + 1) + " " + section.heading if section.heading else "")
        blocks.append(document.section_text(section))
        place = section.end
    blocks.append(document.text[place:])
    return "\n\n".join(block.strip() for block in blocks if block.strip()) + "\n"


FORMATS: dict[str, Callable[[Path, Iterator[Document], Sequence[Question]], int]] = {
    "beir": write_beir,
    "r2med": write_r2med,
    "csv": _csv,
    "markdown": _markdown,
}
"""Export formats by name."""
