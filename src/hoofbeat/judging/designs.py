"""How the answers of a sheet for people were drawn, in a file beside it: seed, strata, chances, and the folder.

The file tells which codes were drawn and how many answers each stratum has, not which code belongs to which stratum:
whoever reads it while labelling stays blind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError
from hoofbeat.store import InputRef
from hoofbeat.store.atomic_files import read_bytes, write_bytes

SUFFIX = ".design.json"
ENOUGH = 10
"""With fewer labels than this, hardly anything can be said of one system."""

METHOD = (
    "systems in proportion to their answers, then the judge's labels within each system, both rounded by systematic "
    "sampling from a random start; simple random sampling within each label of a system"
)


class AnswerStratum(Struct, frozen=True, kw_only=True):
    """The answers of one system with one label of the judge: how many there are, and how many were drawn.

    `inclusion` is the chance of each answer to be drawn, given how many were drawn from its system: the same for all
    of a system's answers. `weight`, one over it, is how many answers one drawn stands for (None: none was drawn).
    """

    model: str
    condition: str
    judged: str
    answers: int
    drawn: int
    inclusion: float
    weight: float | None


class SheetDesign(Struct, frozen=True, kw_only=True):
    """How a sheet was drawn. `inclusion` is every answer's chance before anything was drawn, `source` the folder."""

    sheet: str
    aspect: str
    seed: int
    method: str
    asked: int
    answers: int
    drawn: int
    inclusion: float
    source: InputRef
    strata: tuple[AnswerStratum, ...]
    items: tuple[str, ...]

    @property
    def systems(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Each system's answers, and how many of them were drawn."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for each in self.strata:
            answers, drawn = found.get((each.model, each.condition), (0, 0))
            found[each.model, each.condition] = answers + each.answers, drawn + each.drawn
        return found

    @property
    def thin(self) -> list[tuple[str, str]]:
        """The systems of which too few answers were drawn to say much about them."""
        return [system for system, (answers, drawn) in self.systems.items() if drawn < min(ENOUGH, answers)]

    def warnings(self) -> list[str]:
        """What to say of systems that get too few labels to be corrected one by one."""
        if not self.thin:
            return []
        smallest = min(answers for answers, _ in self.systems.values())
        enough = min(self.answers, math.ceil(ENOUGH * self.answers / smallest))
        return [
            f"{len(self.thin)} of {len(self.systems)} systems get fewer than {ENOUGH} answers, which says little of "
            f"their corrected scores; a sheet of {enough} has {ENOUGH} of each"
        ]


class LabelFile(Struct, frozen=True, kw_only=True):
    """A file of labels that was taken in, and how its answers had been drawn (None: that is not known)."""

    file: str
    aspect: str
    labels: int
    design: SheetDesign | None = None


def make_design(
    sizes: Mapping[tuple[str, ...], int],
    given: Mapping[tuple[str, ...], int],
    items: Iterable[str],
    *,
    sheet: str,
    aspect: str,
    seed: int,
    asked: int,
    source: InputRef,
) -> SheetDesign:
    """The design of a sheet from each stratum's size and what it gives; strata are model, condition, judge's label."""
    of_system: dict[tuple[str, ...], tuple[int, int]] = {}
    for name, size in sizes.items():
        answers, drawn = of_system.get(name[:2], (0, 0))
        of_system[name[:2]] = answers + size, drawn + given[name]
    strata = []
    for name, size in sorted(sizes.items()):
        answers, drawn = of_system[name[:2]]
        strata.append(
            AnswerStratum(
                model=name[0],
                condition=name[1],
                judged=name[2],
                answers=size,
                drawn=given[name],
                inclusion=drawn / answers,
                weight=answers / drawn if drawn else None,
            )
        )
    answers, drawn = sum(sizes.values()), sum(given.values())
    return SheetDesign(
        sheet=sheet,
        aspect=aspect,
        seed=seed,
        method=METHOD,
        asked=asked,
        answers=answers,
        drawn=drawn,
        inclusion=drawn / answers if answers else 0.0,
        source=source,
        strata=tuple(strata),
        items=tuple(items),
    )


def design_path(sheet: Path) -> Path:
    """Where the design of a sheet lies."""
    return sheet.with_suffix(SUFFIX)


def write_design(path: Path, design: SheetDesign) -> None:
    """Write the design beside its sheet."""
    write_bytes(design_path(path), msgspec.json.format(msgspec.json.encode(design), indent=1) + b"\n")


def design_of(labels: Path, codes: Iterable[str]) -> tuple[Path, SheetDesign] | None:
    """The design that these labels' codes were drawn by: beside the file under its name, else any in that folder.

    None where no design has all the codes, or the labels have none. A damaged design under the file's own name is told.
    """
    wanted = set(codes)
    if not wanted or "" in wanted:
        return None
    own = design_path(labels)
    for path in [own, *sorted(labels.resolve().parent.glob(f"*{SUFFIX}"))]:
        if not path.is_file():
            continue
        try:
            design = msgspec.json.decode(read_bytes(path), type=SheetDesign)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            if path != own:
                continue
            raise InputError(
                f"the design of the sheet can't be read: {err}",
                where=str(path),
                fix="put back the file that was written with the sheet, or take it away",
            ) from err
        if wanted <= set(design.items):
            return path, design
    return None
