"""A paper's protocol in a report: what the paper did, and wherever this run differs from it."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from hoofbeat.reports.model import Block, Lead, Notice, Text
from hoofbeat.reports.section import Chapter, ReportSection, chapter_per_artefact
from hoofbeat.reports.tables import Table, columns_of, count_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_tsv, write_tsv

KIND = "protocol"
_FILE = "differences.tsv"


class PaperDifference(Struct, frozen=True):
    """One thing that is not as in the paper: what, how it is there, and how it is here."""

    what: str
    paper: str
    here: str


def write_differences(folder: Path, differences: list[PaperDifference]) -> None:
    """Write the table of differences into a folder that is being drafted."""
    rows = [(each.what, each.paper, each.here) for each in differences]
    write_tsv(folder / _FILE, PaperDifference.__struct_fields__, rows)


def read_differences(artefact: Artefact) -> list[PaperDifference]:
    """The differences that a protocol's folder lists."""
    return [PaperDifference(row["what"], row["paper"], row["here"]) for row in read_tsv(artefact.file(_FILE))]


def protocol_chapter(artefact: Artefact, prefix: str) -> Chapter:
    """The chapter on a protocol."""
    settings, found = artefact.manifest.settings, read_differences(artefact)
    title = str(settings.get("title", artefact.path.name))
    names = list(dict.fromkeys(each.what for each in found))
    differs = (
        f"This run differs from {title} in {count_of(len(found), 'point')} ({', '.join(names)}), so its figures are "
        "comparable with the paper's only as far as these do not matter."
    )
    table = Table(
        name=f"{prefix}-differences",
        caption=f"Where this run differs from {title}",
        n=len(found),
        unit="differences",
        columns=columns_of("what | in the paper | here"),
        rows=tuple((each.what, each.paper, each.here) for each in found),
        open=True,
    )
    blocks: tuple[Block, ...] = (
        Text(str(settings.get("protocol", "")), label="The paper's protocol"),
        table if found else Notice("No difference from the paper is known."),
    )
    leads = (Lead(differs, f"#{prefix}", "See the differences"),) if found else ()
    return Chapter(title=f"The protocol of {title}", id=prefix, blocks=blocks, leads=leads)


SECTION = ReportSection(
    name="protocol",
    summary="a paper's protocol, and where a run of it differs from the paper",
    order=1,
    kinds=(KIND,),
    build=chapter_per_artefact(KIND, protocol_chapter),
)
