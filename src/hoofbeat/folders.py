"""Open an artefact folder as an object of its kind."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from importlib import import_module
from pathlib import Path

import msgspec

from hoofbeat.records import Hit, Question
from hoofbeat.store import open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.tables import read_jsonl

__all__ = ["CheckFolder", "LeakageFolder", "PathLike", "RankingsFolder", "ReportFolder", "folder_path", "open_folder"]

PathLike = str | Path | ArtefactFolder
"""A folder, as every verb takes it: its path, or the object that another verb returned."""


class RankingsFolder(ArtefactFolder):
    """The rankings of one retriever line."""

    @property
    def line(self) -> str:
        """The retriever line."""
        return str(self.manifest.settings["line"])

    @cached_property
    def questions(self) -> list[Question]:
        """The questions that were searched for."""
        return list(read_jsonl(self.artefact.file("questions.jsonl"), Question))

    @cached_property
    def hits(self) -> list[Hit]:
        """Every hit of every question, all of them in memory."""
        return list(self.each_hit())

    def each_hit(self) -> Iterator[Hit]:
        """Every hit, one at a time."""
        return read_jsonl(self.artefact.file("hits.jsonl"), Hit)


class CheckFolder(ArtefactFolder):
    """A check of a benchmark."""

    @cached_property
    def summary(self) -> dict[str, object]:
        """The counts and tests, as `summary.json` holds them."""
        return msgspec.json.decode(self.artefact.file("summary.json").read_bytes(), type=dict[str, object])


class LeakageFolder(ArtefactFolder):
    """A leakage check."""

    @cached_property
    def summary(self) -> dict[str, object]:
        """The figures, as `summary.json` holds them."""
        return msgspec.json.decode(self.artefact.file("summary.json").read_bytes(), type=dict[str, object])


class ReportFolder(ArtefactFolder):
    """A report, or a comparison: a page with its tables."""

    @property
    def page(self) -> Path:
        """The page, one self-contained HTML file."""
        return self.artefact.file("report.html")


_CLASSES = {
    "corpus": ("hoofbeat.corpus", "Corpus"),
    "benchmark": ("hoofbeat.benchmarks", "Benchmark"),
    "rankings": ("hoofbeat.folders", "RankingsFolder"),
    "run": ("hoofbeat.answering", "Run"),
    "judgments": ("hoofbeat.judging", "JudgmentFolder"),
    "audit": ("hoofbeat.audit", "Audit"),
    "check": ("hoofbeat.folders", "CheckFolder"),
    "leakage": ("hoofbeat.folders", "LeakageFolder"),
    "report": ("hoofbeat.folders", "ReportFolder"),
    "comparison": ("hoofbeat.folders", "ReportFolder"),
}


def folder_path(folder: PathLike) -> Path:
    """The path of a folder, however it was given."""
    return folder.path if isinstance(folder, ArtefactFolder) else Path(folder)


def open_folder(folder: PathLike) -> ArtefactFolder:
    """Open an artefact folder as an object of its kind.

    Returns a `Corpus`, `Benchmark`, `RankingsFolder`, `Run`, `JudgmentFolder`, `Audit`, `CheckFolder`,
    `LeakageFolder` or `ReportFolder`, and an `ArtefactFolder` for every other kind. All have `path`, `manifest`,
    `kind`, `tables`, `table(name)` and `pandas(name)`.
    """
    artefact = open_artefact(folder_path(folder))
    module, name = _CLASSES.get(artefact.manifest.kind, ("", ""))
    if not name:
        return ArtefactFolder(artefact)
    opened: ArtefactFolder = getattr(import_module(module), name)(artefact)
    return opened
