"""Documents for the tests of filters: real reports as records, and copies of them with words changed."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Sequence

from hoofbeat.corpus.filter import FilterStep, RejectedDocument, parse_filters
from hoofbeat.corpus.funnel import Funnel, FunnelStep
from hoofbeat.records import Document, Figure, Section
from tests.helpers import shared_data


def document(id: str = "d", **fields: object) -> Document:
    return Document(**{"id": id, "title": "A title", "text": "Some text.", **fields})  # type: ignore[arg-type]


def sectioned(parts: list[tuple[str, int, str]], *, figures: tuple[tuple[str, str, int], ...] = ()) -> Document:
    """A document of (role, level, text) sections; figures are (label, file, number of the section they stand in)."""
    text, sections = "", []
    for role, level, body in parts:
        start = len(text)
        text += "Heading\n\n"
        sections.append(
            Section(heading="Heading", level=level, role=role, start=start, body=len(text), end=len(text) + len(body))
        )
        text += body + "\n\n"
    placed = tuple(
        Figure(
            id=label,
            label=label,
            files=(file,) if file else (),
            start=sections[place].body if place >= 0 else len(text),
            end=sections[place].body if place >= 0 else len(text),
        )
        for label, file, place in figures
    )
    return document(text=text, sections=tuple(sections), figures=placed)


def case_reports(count: int | None = None) -> list[Document]:
    """The real case reports, all or the first so many."""
    found: list[Document] = []
    with gzip.open(shared_data("case_reports.jsonl.gz")) as stream:
        for line in stream:
            if count is not None and len(found) == count:
                break
            row = json.loads(line)
            found.append(Document(id=row["pmcid"], title="", text=row["text"]))
    return found


def changed_copy(original: Document, id: str, share: float, seed: int, **fields: object) -> Document:
    """A copy with this share of its words replaced by words of its own, at random places."""
    chance = random.Random(seed)
    words = original.text.split()
    for place in chance.sample(range(len(words)), round(share * len(words))):
        words[place] = f"{chance.choice(words)}{chance.randrange(10)}"
    return document(id, text=" ".join(words), **fields)


def parse_filter(line: str) -> FilterStep:
    """A filter line of one step."""
    (step,) = parse_filters(line)
    return step


def run_filters(
    documents: Sequence[Document], steps: Sequence[FilterStep]
) -> tuple[list[Document], list[RejectedDocument], list[FunnelStep]]:
    """What the steps keep of documents in memory, what they reject, and the funnel."""
    funnel = Funnel(lambda: iter(documents), steps)
    outcomes = list(funnel)
    kept = [each for each in outcomes if isinstance(each, Document)]
    return kept, [each for each in outcomes if isinstance(each, RejectedDocument)], funnel.steps


def split(documents: Sequence[Document], step: FilterStep) -> tuple[list[Document], list[RejectedDocument]]:
    """What one step keeps and what it rejects."""
    return run_filters(documents, [step])[:2]
