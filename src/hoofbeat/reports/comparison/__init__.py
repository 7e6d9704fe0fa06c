"""Comparisons of systems: rankings or answers of the same questions, as figures, a page and a folder.

`compare_folders` is what `hoofbeat compare` does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from hoofbeat.errors import UsageError
from hoofbeat.findings.ranking_measures import RANKINGS
from hoofbeat.progress import SILENT, Progress
from hoofbeat.reports.comparison.answers import KINDS as ANSWERS
from hoofbeat.reports.comparison.answers import AnswersComparison, compare_answers
from hoofbeat.reports.comparison.answers_page import write_answers
from hoofbeat.reports.comparison.rankings import RankingsComparison, compare_rankings
from hoofbeat.reports.comparison.rankings_page import write_rankings
from hoofbeat.store import Artefact, open_artefact


class FolderComparison(NamedTuple):
    """What was compared: rankings or answers."""

    found: RankingsComparison | AnswersComparison

    def write(self, output: Path, *, command: Sequence[str] = ()) -> Artefact:
        """Write the folder with its page."""
        if isinstance(self.found, RankingsComparison):
            return write_rankings(output, self.found, command=command)
        return write_answers(output, self.found, command=command)


def compare_folders(
    folders: Sequence[Path],
    *,
    baseline: str = "",
    systems: Sequence[str] = (),
    judged: Sequence[Path] = (),
    condition: str = "",
    seed: int = 0,
    progress: Progress = SILENT,
) -> FolderComparison:
    """Compare folders of one kind; an option that goes with the other kind is refused."""
    if len(folders) < 2:
        raise UsageError(
            "a comparison needs two folders or more",
            fix="name another folder; hoofbeat report FOLDER compares the systems inside one folder",
        )
    if _are_rankings(folders):
        if systems:
            raise UsageError("--system chooses among answers, and these are rankings", fix="leave --system out")
        return FolderComparison(
            compare_rankings(folders, baseline=baseline, judged=judged, condition=condition, seed=seed)
        )
    if judged or condition:
        raise UsageError("--judged and --condition go with rankings, and these are answers", fix="choose with --system")
    return FolderComparison(compare_answers(folders, baseline=baseline, systems=systems, seed=seed, progress=progress))


def _are_rankings(folders: Sequence[Path]) -> bool:
    """Whether these are rankings (or answers); a mix is refused."""
    kinds = [open_artefact(folder, (RANKINGS, *ANSWERS)).manifest.kind for folder in folders]
    ranked = [kind == RANKINGS for kind in kinds]
    if any(ranked) and not all(ranked):
        named = ", ".join(f"{folder.name} ({kind})" for folder, kind in zip(folders, kinds, strict=True))
        raise UsageError(
            "rankings and answers can't be compared with each other",
            where=named,
            fix="name folders of one kind (answers that go with rankings are given with --judged)",
        )
    return all(ranked)
