"""A corpus as Markdown files with front matter, named by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from hoofbeat.corpus.corpus import CorpusFormat
from hoofbeat.records import Document, Question
from hoofbeat.store.files import inside, write_bytes


class _MarkdownFiles(CorpusFormat):
    name = "markdown"
    summary = "a Markdown file per document"

    def write(self, folder: Path, documents: Iterator[Document], questions: Sequence[Question]) -> int:  # noqa: ARG002
        count = 0
        for document in documents:
            write_bytes(inside(folder / "documents", f"{document.id}.md"), _as_markdown(document).encode())
            count += 1
        return count


FORMAT = _MarkdownFiles()


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
