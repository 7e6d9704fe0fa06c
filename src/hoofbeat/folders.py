"""Open an artefact folder as an object of its kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from pathlib import Path

import msgspec

from hoofbeat.errors import ArtefactError
from hoofbeat.records import Hit, Question
from hoofbeat.store import Artefact, Counts, Manifest, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.folder_library import artefact_folders
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import some_of

__all__ = [
    "CheckFolder",
    "LeakageFolder",
    "PathLike",
    "RankingsFolder",
    "ReportFolder",
    "folder_path",
    "folders_in",
    "open_folder",
]

PathLike = str | Path | ArtefactFolder
"""A folder, as every function takes it: its path, or the object that another function returned."""


class RankingsFolder(ArtefactFolder):
    """The rankings of one retriever line."""

    @property
    def line(self) -> str:
        """The retriever line."""
        return str(self.manifest.settings["line"])

    @cached_property
    def questions(self) -> list[Question]:
        """The questions."""
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
        """The page: one self-contained HTML file."""
        return self.artefact.file("report.html")


_LISTED = 12
_PAIRS = "pair of answers|pairs of answers"
_MADE = {
    "corpus": ("Kept {}", "document"),
    "labels": ("Labelled {}", "document"),
    "stats": ("Counted {}", "document"),
    "benchmark": ("Kept {}", "question"),
    "set-stats": ("Counted {}", "set"),
    "export": ("Exported {}", "item"),
    "index": ("Wrote an index", ""),
    "rankings": ("Ranked {}", "question"),
    "evidence": ("Searched for {}", "pair of question and source|pairs of question and source"),
    "run": ("Collected {}", "answer"),
    "judgments": ("Made {}", "judgment"),
    "check": ("Checked {}", "question"),
    "leakage": ("Looked for signs of leakage", ""),
    "audit": ("Compared {}", _PAIRS),
    "trial": ("Tried the judge on {}", _PAIRS),
    "packets": ("Drew {} for people to label", _PAIRS),
    "validation": ("Compared the judge with people on {}", _PAIRS),
    "ablation": ("Judged {} in both ways", _PAIRS),
    "themes": ("Found {}", "theme"),
    "audit-export": ("Exported {}", _PAIRS),
    "audit-comparison": ("Compared {}", _PAIRS),
    "gate": ("Checked {}", "condition"),
    "comparison": ("Wrote a comparison", ""),
    "protocol": ("Ran {} of the protocol", "step"),
    "report": ("Wrote a report on {}", "folder"),
}


def made_in_words(manifest: Manifest) -> str:
    """What a folder holds, in one sentence: `Kept 20 questions, rejected 4`."""
    counts = manifest.counts
    words, noun = _made(manifest.kind)
    said = words.format(_counted(counts.kept, noun))
    said += f", rejected {counts.rejected:,}" if counts.rejected else ""
    return f"{said}, {counts.failed:,} failed ({_kinds(counts)})" if counts.failed else said


def failed_in_words(manifest: Manifest) -> str:
    """How much of a folder failed, and what to do; empty where nothing did.

    Calls that an endpoint left unanswered are not in the ledger: the same command makes them again, and only them.
    """
    counts = manifest.counts
    if not counts.failed:
        return ""
    _, noun = _made(manifest.kind)
    in_all = counts.kept + counts.rejected + counts.failed
    said = f"{counts.failed:,} of {_counted(in_all, noun or 'item')} failed ({_kinds(counts)})."
    if _PASSING.isdisjoint(counts.failures):
        return f"{said} The same command would give the same result."
    return f"{said} Run the same command again: it makes only the calls that have no reply yet."


def result_notes(artefact: Artefact) -> list[str]:
    """What a reader must know of a folder that was just made: what the command prints as warnings at its end."""
    from hoofbeat.findings.caveats import caveats, cut_warnings, instruction_notes  # noqa: PLC0415 - not for opening

    manifest = artefact.manifest
    audited: list[str] = []
    if manifest.kind == "audit":
        from hoofbeat.audit.audit_doubts import outcome_notes  # noqa: PLC0415 - as above
        from hoofbeat.audit.audit_folder import Audit  # noqa: PLC0415 - as above

        audited = outcome_notes(Audit(artefact))
    counts = manifest.counts
    empty = ""
    if not counts.kept and not counts.failed:
        reasons = some_of([f"{reason} ({count:,})" for reason, count in counts.reasons.items()], _REASONS)
        empty = f"Nothing was kept. {made_in_words(manifest)}" + (f": {reasons}" if reasons else "")
    return [
        *cut_warnings([artefact]),
        *instruction_notes([artefact]),
        *caveats(manifest),
        *audited,
        empty,
        failed_in_words(manifest),
    ]


_REASONS = 3
_PASSING = {"connection", "garbled", "rate-limited", "server-error", "timeout"}
"""The failures after which nothing is in the ledger, and another try may succeed."""


def _made(kind: str) -> tuple[str, str]:
    return _MADE.get(kind, (f"Wrote {kind}: {{}}", "item"))


def _counted(count: int, noun: str) -> str:
    one, _, many = noun.partition("|")
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def _kinds(counts: Counts) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.failures.items()))


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
    """The path of a folder that is given as a path or as an object."""
    return folder.path if isinstance(folder, ArtefactFolder) else Path(folder)


def folders_in(paths: Iterable[Path], kinds: Sequence[str] = ()) -> list[Path]:
    """The artefact folders that some paths name: each path itself, or the folders in it, of these kinds.

    A path that is an artefact itself, or that holds none, stays as it is, whatever its kind: who opens it says what is
    wrong with it.
    """
    found: dict[Path, None] = {}
    for path in paths:
        inside = artefact_folders(path)
        if inside in ([], [path]):
            found[path] = None
            continue
        fitting = [each for each in inside if not kinds or open_artefact(each).manifest.kind in kinds]
        if not fitting:
            raise ArtefactError(
                "no folder in it can be used here", where=str(path), fix=f"name a folder of the kind {', '.join(kinds)}"
            )
        found.update(dict.fromkeys(fitting))
    return list(found)


def open_folder(folder: PathLike) -> ArtefactFolder:
    """Open an artefact folder as an object of its kind.

    Returns a `Corpus`, `Benchmark`, `RankingsFolder`, `Run`, `JudgmentFolder`, `Audit`, `CheckFolder`,
    `LeakageFolder` or `ReportFolder`, and an `ArtefactFolder` for every other kind. All have `path`, `manifest`,
    `kind`, `tables`, `table(name)` and `pandas(name)`.
    """
    path = folder_path(folder)
    inside: list[Path] = []
    with suppress(OSError):  # a folder that can't be listed is reported by who opens it
        inside = artefact_folders(path)
    if inside and inside != [path]:
        names = [each.relative_to(path).as_posix() for each in inside]
        more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
        raise ArtefactError(
            "this folder contains several results; it is not a result itself"
            if len(names) > 1
            else "the result is in a folder inside this one",
            where=str(path),
            fix=f"open one of these in it: {', '.join(names[:_LISTED])}{more}",
        )
    artefact = open_artefact(path)
    module, name = _CLASSES.get(artefact.manifest.kind, ("", ""))
    if not name:
        return ArtefactFolder(artefact)
    opened: ArtefactFolder = getattr(import_module(module), name)(artefact)
    return opened
