"""Artefact folders: a corpus, a benchmark, a run, an audit, a report; each can be copied, diffed, zipped and shared.

An artefact is drafted in a hidden folder beside its place and renamed into it when its manifest is written, so a
folder with a manifest is always whole. Opening checks that it is there, is Hoofbeat's, is of the expected kind and of
a schema this version reads. A file is compared with the manifest's hash when it is about to be read (`Artefact.file`);
`Artefact.verify` compares every file. `--trust-changed` reads a changed folder all the same; the manifests of what is
made from it name the changed files.

The manifest says what an artefact is and everything needed to make it again. It holds no clock time and no machine
path, so that the same inputs give the same bytes; the command says how long a run took. `ArtefactFolder` is the folder
as an object for Python and notebooks; `Corpus`, `Benchmark`, `Run` and others are built on it.
"""

from __future__ import annotations

import html
import os
import re
import shlex
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, lru_cache
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import Struct, field

from hoofbeat.errors import ArtefactError, InputError, OutputError, UsageError, did_you_mean
from hoofbeat.registry import registry
from hoofbeat.store.files import (
    exchange_folders,
    file_sha256,
    inside,
    is_alive,
    leads_outside,
    output_errors,
    sync_folder,
    write_bytes,
)
from hoofbeat.store.tables import UNREADABLE, bare_cell, content_sha256, read_parquet, table_errors, table_reason
from hoofbeat.text import some_of
from hoofbeat.version import __version__

if TYPE_CHECKING:
    import pandas
    import polars

_MAKERS = {
    "corpus": "hoofbeat corpus import",
    "benchmark": "hoofbeat build",
    "rankings": "hoofbeat retrieve",
    "run": "hoofbeat answer",
    "judgments": "hoofbeat judge",
    "audit": "hoofbeat audit",
}
"""The command that makes a kind of folder, for who named another kind."""
SCHEMA_VERSION = 1

T = TypeVar("T")


class InputRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input: its name, and the hash of its content (for an artefact, of the list of its files' hashes).

    `changed` names files that differ from their artefact's manifest and that the user trusts (`--trust-changed`), also
    those that the artefact itself was made from, as `folder: file`.
    """

    name: str
    sha256: str
    kind: str = ""
    changed: tuple[str, ...] = ()


class Counts(Struct, frozen=True, kw_only=True):
    """How many items were kept, how many were rejected and why, how many failed and why."""

    kept: int = 0
    rejected: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)


def count_outcomes(failures: Iterable[str | None]) -> Counts:
    """Counts of a stage from each item's failure kind (None: it succeeded)."""
    tally = Counter(failures)
    kept = tally.pop(None, 0)
    kinds = {str(kind): count for kind, count in sorted(tally.items(), key=lambda pair: str(pair[0]))}
    return Counts(kept=kept, failed=sum(kinds.values()), failures=kinds)


class Cost(Struct, frozen=True, kw_only=True):
    """What the artefact's model calls cost, whether they were made now or taken from the ledger.

    Calls to encoders behind an endpoint are not in it: vectors and indexes are kept, so how many are needed depends on
    earlier commands. The command says how many it made.
    """

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Both costs together."""
        return Cost(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            money=self.money + other.money,
        )


class Manifest(Struct, frozen=True, kw_only=True):
    """`manifest.json` of an artefact folder. `costs` divides `cost` by model, where several were called."""

    kind: str
    schema: int = SCHEMA_VERSION
    title: str = ""
    command: list[str] = field(default_factory=list)
    version: str = ""
    revision: str = ""
    inputs: list[InputRef] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    cost: Cost = field(default_factory=Cost)
    costs: dict[str, Cost] = field(default_factory=dict)
    metrics: dict[str, object] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notice: str = "Research software. Not for clinical use."

    @property
    def command_text(self) -> str:
        """The command as it is typed, or the call as it was written in Python."""
        is_call = len(self.command) == 1 and self.command[0].startswith(_CALL)
        return self.command[0] if is_call else shlex.join(self.command)


_CALL = "hoofbeat."

MANIFEST = "manifest.json"
SIGNATURE = "manifest.json.sig"
"""The manifest's signature (`signatures`), which a manifest can't list."""

TRUST_CHANGED = "HOOFBEAT_TRUST_CHANGED"
"""The environment variable that `--trust-changed` sets: workers and threads read changed files as well."""


def changes_are_trusted() -> bool:
    """Whether the user has said that files are used which have changed since Hoofbeat wrote them."""
    return os.environ.get(TRUST_CHANGED, "").lower() in ("1", "yes", "true")


@lru_cache(maxsize=4096)
def _unchanged_sha256(path: Path, stamp: tuple[int, int, int]) -> str:  # noqa: ARG001 - a file that changed is read again
    return file_sha256(path)


def _current_sha256(path: Path) -> str:
    """The hash of a file as it is now; one that this process has hashed is not read again before it changes."""
    stat = path.stat()
    return _unchanged_sha256(path, (stat.st_ino, stat.st_size, stat.st_mtime_ns))


class Artefact:
    """A finished artefact folder."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest

    def file(self, name: str) -> Path:
        """The path of one of the artefact's files, to be read now.

        The manifest must list the file, and its content must be the one that the manifest gives the hash of.
        """
        if name not in self.manifest.files:
            raise ArtefactError(
                f"this {self.manifest.kind} has no {name}",
                where=str(self.path),
                fix="check that this is the right folder",
            )
        path = inside(self.path, name)
        if not changes_are_trusted() and (not path.is_file() or _current_sha256(path) != self.manifest.files[name]):
            self.refuse_replaced()
            raise ArtefactError(
                f"{name} is not what this {self.manifest.kind}'s manifest says: it has changed since it was written",
                where=str(self.path),
                fix="restore the folder or make it again; --trust-changed uses it as it is, and the result says so",
            )
        return path

    def refuse_replaced(self) -> None:
        """Refuse to go on where another folder is in this one's place: it has been replaced since it was opened."""
        try:
            now = open_artefact(self.path).manifest
        except ArtefactError:  # whoever reads it says what is wrong with it
            return
        if _content_of(now) != _content_of(self.manifest):
            raise ArtefactError(
                f"a later call replaced this {self.manifest.kind}: the folder now has other results than this object",
                where=str(self.path),
                fix="use the object that the later call returned, or open the folder again; to keep both results, "
                "make this one again in another folder (output=… in Python)",
            )

    def record(self, name: str, kind: type[T], *, what: str) -> T:
        """A JSON file of the artefact; `what` names it where it can't be read."""
        file = self.file(name)
        try:
            return msgspec.json.decode(file.read_bytes(), type=kind)
        except (OSError, *UNREADABLE) as err:
            raise ArtefactError(f"{what} can't be read: {err}", where=str(file), fix="make the artefact again") from err

    def has(self, name: str) -> bool:
        """Whether the manifest lists this file."""
        return name in self.manifest.files

    def reference(self) -> InputRef:
        """How a manifest names this artefact as an input: by the hash of its files' hashes, whatever made them."""
        files = self._current_files()
        content = content_sha256({"kind": self.manifest.kind, "files": files})
        inherited = [f"{each.name}: {name}" for each in self.manifest.inputs for name in each.changed]
        changed = (*self.changed_files(), *inherited)
        return InputRef(name=self.path.name, sha256=content, kind=self.manifest.kind, changed=changed)

    def changed_files(self) -> tuple[str, ...]:
        """The files that differ from the manifest and are used all the same, because the user trusts changes."""
        files = self._current_files()
        return tuple(name for name, sha256 in self.manifest.files.items() if sha256 != files[name])

    def _current_files(self) -> dict[str, str]:
        files = self.manifest.files
        return {name: _current_sha256(inside(self.path, name)) for name in files} if changes_are_trusted() else files

    def verify(self) -> list[str]:
        """What differs from the manifest: missing, changed and added files, as lines; empty when all is well.

        Links, pipes and the like count as added: Hoofbeat writes plain files only.
        """
        found = {
            path.relative_to(self.path).as_posix()
            for path in self.path.rglob("*")
            if path.is_symlink() or not path.is_dir()
        }
        problems = [f"{name} was added" for name in sorted(found - self.manifest.files.keys() - {MANIFEST, SIGNATURE})]
        for name, expected in sorted(self.manifest.files.items()):
            path = self.path / name
            if not path.is_file():
                problems.append(f"{name} is missing")
            elif path.is_symlink():
                problems.append(f"{name} is a link now")
            elif file_sha256(path) != expected:
                problems.append(f"{name} has changed since it was written")
        return problems


def _content_of(manifest: Manifest) -> Manifest:
    """A manifest without how the folder was made: two calls that give the same results differ only in that."""
    return msgspec.structs.replace(manifest, command=[], version="", revision="", title="")


def file_reference(path: Path, kind: str = "file") -> InputRef:
    """How a manifest names a file as an input."""
    return InputRef(name=path.name, sha256=file_sha256(path), kind=kind)


class ArtefactDraft:
    """An artefact being written: files go into `path`, and `finish` completes it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest: Manifest | None = None

    def finish(self, manifest: Manifest) -> None:
        """Hash what was written and write the manifest; the folder moves into place when the draft closes."""
        files = {
            path.relative_to(self.path).as_posix(): file_sha256(path)
            for path in sorted(self.path.rglob("*"))
            if path.is_file()
        }
        plugins = [InputRef(name=each.name, sha256=each.sha256, kind="plugin") for each in registry.plugins]
        self.manifest = msgspec.structs.replace(
            manifest,
            inputs=[*manifest.inputs, *plugins],
            files=files,
            version=__version__,
            revision=_git_revision(),
        )
        encoded = msgspec.json.format(msgspec.json.encode(self.manifest), indent=1)
        write_bytes(self.path / MANIFEST, encoded + b"\n")


@contextmanager
def create(target: Path, *, replace_kind: str | None = None) -> Iterator[ArtefactDraft]:
    """Draft an artefact for `target`. An earlier artefact there is replaced when it is of `replace_kind`.

    Anything else there is refused and not changed: Hoofbeat deletes only what it has made. It looks again before it
    replaces the folder: if somebody has added a file meanwhile, the new artefact goes beside it, and the error says so.
    """
    target = target.resolve()
    check_target(target, replace_kind)
    draft_path = target.with_name(f".{target.name}.{os.getpid()}.draft")
    with output_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        clear_abandoned(target.parent, target.name)
        draft_path.mkdir()
    draft = ArtefactDraft(draft_path)
    try:
        with output_errors(target):
            yield draft
        if draft.manifest is None:
            raise AssertionError("a draft was closed without a manifest")
        with output_errors(target):
            _put_in_place(draft_path, target, replace_kind)
    except BaseException:
        shutil.rmtree(draft_path, ignore_errors=True)
        raise


def open_artefact(path: str | Path, kind: str | tuple[str, ...] | None = None) -> Artefact:
    """Open an artefact folder, or say why it can't be opened."""
    path = Path(path)
    if not path.exists():
        raise ArtefactError("there is no such folder", where=str(path), fix="check the path")
    file = path / MANIFEST
    if not path.is_dir() or not file.is_file():
        raise ArtefactError(
            "this is not a Hoofbeat artefact: it has no manifest.json",
            where=str(path),
            fix="name a folder that a hoofbeat command wrote; import documents with hoofbeat corpus import, "
            "questions with hoofbeat benchmark import",
        )
    try:
        raw = file.read_bytes()
        header = msgspec.json.decode(raw)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise ArtefactError(
            f"the manifest can't be read: {err}", where=str(file), fix="restore the folder, or make it again"
        ) from err
    if not isinstance(header, dict) or "kind" not in header or "schema" not in header:
        raise ArtefactError(
            "manifest.json is not a Hoofbeat manifest",
            where=str(file),
            fix="name a folder that a hoofbeat command wrote",
        )
    if isinstance(header["schema"], int) and header["schema"] > SCHEMA_VERSION:
        raise ArtefactError(
            f"the folder was written by a newer Hoofbeat (schema {header['schema']}, this version reads up to "
            f"{SCHEMA_VERSION})",
            where=str(path),
            fix="upgrade Hoofbeat, or make the artefact again with this version",
        )
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except msgspec.ValidationError as err:
        raise ArtefactError(
            f"the manifest is damaged: {err}", where=str(file), fix="restore the folder, or make it again"
        ) from err
    kinds = (kind,) if isinstance(kind, str) else kind
    if kinds and manifest.kind not in kinds:
        raise ArtefactError(
            f"the kind of this folder is {manifest.kind}, but {' or '.join(kinds)} is needed here",
            where=str(path),
            fix="name another folder" + "".join(f"; {_MAKERS[each]} makes {each}" for each in kinds if each in _MAKERS),
        )
    if outside := _outside(path, manifest):
        raise ArtefactError(
            f"the manifest names files outside the folder: {', '.join(outside[:3])}",
            where=str(file),
            fix="don't use this folder; make the artefact again",
        )
    missing = [name for name in manifest.files if not (path / name).is_file()]  # after the names were looked at
    if missing:
        raise ArtefactError(
            f"the {manifest.kind} is damaged: {', '.join(missing[:5])} {'is' if len(missing) == 1 else 'are'} missing",
            where=str(path),
            fix="restore the folder from a copy, or make it again",
        )
    return Artefact(path, manifest)


def _outside(path: Path, manifest: Manifest) -> list[str]:
    """The files that are not below the folder, as their names say or as links lead; few folders hold any link."""
    folders = {str(parent) for name in manifest.files for parent in PurePosixPath(name).parents}
    linked = any((path / name).is_symlink() for name in (MANIFEST, *manifest.files, *folders))
    return [name for name in (MANIFEST, *manifest.files) if leads_outside(path if linked else None, name)]


def folder_problems(path: Path) -> list[str]:
    """What is wrong with an artefact folder: why it can't be opened, or what differs from its manifest."""
    try:
        return open_artefact(path).verify()
    except ArtefactError as err:
        return [err.what]


def check_target(target: Path, replace_kind: str | None) -> None:
    """Refuse a folder that holds something other than an earlier artefact of `replace_kind`.

    A folder that contains the current one is refused as well: it would be removed, with the ledger that may be in it.
    """
    target = target.resolve()
    if _is_around_here(target):
        raise OutputError(
            "not overwritten: this is the current folder, or the current folder is in it",
            where=str(target),
            fix="choose another folder with -o",
        )
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    try:
        found = open_artefact(target)
    except ArtefactError as err:
        raise OutputError(
            "not overwritten: not a Hoofbeat folder",
            where=str(target),
            fix="choose another folder with -o, or move this one",
        ) from err
    if found.manifest.kind != replace_kind:
        raise OutputError(
            f"not overwritten: this folder already holds other results ({found.manifest.kind})",
            where=str(target),
            fix="choose another folder with -o",
        )
    refuse_foreign(target)


def _is_around_here(folder: Path) -> bool:
    try:
        return Path.cwd().is_relative_to(folder)
    except FileNotFoundError:  # the current folder was removed
        return False


def refuse_foreign(folder: Path, *, known: Collection[str] = ()) -> None:
    """Refuse to replace or remove a folder with files that are not as Hoofbeat wrote them.

    It is an artefact, or a folder of artefacts; `known` are the names of Hoofbeat's own files beside those.
    """
    foreign = foreign_files(folder, known=known)
    if foreign:
        is_changed = any(name.endswith(_CHANGED) for name in foreign)
        raise OutputError(
            f"not overwritten: this folder has files that Hoofbeat did not write ({some_of(foreign, _NAMED)})",
            where=str(folder),
            fix="choose another folder with -o, or "
            + ("move this one" if is_changed else "move these files elsewhere; then run the command again"),
        )


def foreign_files(folder: Path, *, known: Collection[str] = ()) -> list[str]:
    """What is in a folder and not as Hoofbeat wrote it: added files, links and folders with files; changed files.

    The system's own files for its windows, empty folders and what killed commands left are nobody's.
    """
    if not (folder / MANIFEST).is_file():
        inner = {path: path.is_dir() and not path.is_symlink() for path in sorted(folder.iterdir())}
        below = [f"{path.name}/{name}" for path in inner if inner[path] for name in foreign_files(path, known=known)]
        return below + [path.name for path in inner if not inner[path] and not _is_nobodys(path.name, known)]
    files = open_artefact(folder).manifest.files
    added = _added(folder, files.keys() | {MANIFEST, SIGNATURE})
    return added + [name + _CHANGED for name, sha256 in files.items() if _current_sha256(folder / name) != sha256]


def _added(folder: Path, ours: Collection[str]) -> list[str]:
    """The files, links and folders with files that are in a folder and not among these names."""
    folders = {str(parent) for name in ours for parent in PurePosixPath(name).parents}
    found: list[str] = []
    for root, inner, files in os.walk(folder):
        here = Path(root)
        names = {name: (here / name).relative_to(folder).as_posix() for name in (*inner, *files)}
        links = [name for name in inner if (here / name).is_symlink()]
        found += [names[each] for each in (*links, *files) if names[each] not in ours and not _is_nobodys(each)]
        others = [name for name in inner if name not in links and names[name] not in folders]
        found += [f"{names[each]}/" for each in others if not _is_nobodys(each) and _has_files(here / each)]
        inner[:] = [name for name in inner if name not in links and name not in others]
    return sorted(found)


def _has_files(folder: Path) -> bool:
    return any(path.is_symlink() or not path.is_dir() for path in folder.rglob("*"))


def _is_nobodys(name: str, known: Collection[str] = ()) -> bool:
    left = _UNFINISHED.fullmatch(name)
    return name in known or name in _LITTER or (left is not None and _is_abandoned(left))


_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")
_CHANGED = " was changed"
_NAMED = 5


def _put_in_place(draft: Path, target: Path, replace_kind: str | None) -> None:
    """Let the draft take the target's place, or the next free one beside it where the target can't be replaced now."""
    try:
        check_target(target, replace_kind)
    except OutputError as err:
        free = next(place for number in count(2) if not (place := target.with_name(f"{target.name}-{number}")).exists())
        draft.rename(free)
        raise OutputError(
            err.what, where=err.where, fix=f"use {free.name} beside it, which has the new result, or {err.fix}"
        ) from err
    _swap(draft, target)


def _swap(draft: Path, target: Path) -> None:
    """Put the draft in the target's place. Where the file system can, there is no moment without a folder there."""
    if target.exists() and exchange_folders(draft, target):
        sync_folder(target.parent)
        shutil.rmtree(draft, ignore_errors=True)  # what was in the target
        return
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.rename(old)
    try:
        draft.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    sync_folder(target.parent)
    if old.exists():
        shutil.rmtree(old, ignore_errors=True)


_UNFINISHED = re.compile(r"\.(?P<name>.+)\.(?P<pid>\d+)\.(?P<suffix>draft|old|part)")


def folder_entries(folder: Path) -> list[Path]:
    """What is in a folder, without what killed commands left there (`clear_abandoned`) or running ones are writing."""
    return sorted(path for path in folder.iterdir() if not _UNFINISHED.fullmatch(path.name))


def _is_abandoned(unfinished: re.Match[str]) -> bool:
    """Whether the process that wrote this is gone; our own number was a killed process's before (containers)."""
    pid = int(unfinished["pid"])
    return pid == os.getpid() or not is_alive(pid)


def clear_abandoned(folder: Path, name: str | None = None) -> None:
    """Remove what killed commands left for this name, or for all; what running commands write is theirs."""
    for path in list(folder.iterdir()):
        found = _UNFINISHED.fullmatch(path.name)
        if found is None or name not in (None, found["name"]):
            continue
        if not _is_abandoned(found):
            continue
        if found["suffix"] == "old" and not (folder / found["name"]).exists():
            path.rename(folder / found["name"])
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif name is None and int(found["pid"]) != os.getpid():  # a part of ours may be on its way in another thread
            path.unlink(missing_ok=True)


@cache
def _git_revision() -> str:
    """The git revision of the running source tree, with `+` when it has changes; empty for an installed package."""
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists():
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        command = ["git", "-C", str(root), "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"]
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()  # noqa: S603
    return ""


_TABLES = (".jsonl", ".tsv", ".csv", ".parquet")
_SHOWN = 12


class ArtefactFolder:
    """An opened artefact folder of any kind."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact
        self.path: Path = artefact.path
        self.manifest: Manifest = artefact.manifest

    @property
    def kind(self) -> str:
        """What the folder is: corpus, benchmark, rankings, run, judgments, audit, report, ..."""
        return self.manifest.kind

    @property
    def tables(self) -> list[str]:
        """The names of the tables in the folder (JSONL, TSV, CSV and Parquet files)."""
        return [name for name in self.manifest.files if name.endswith(_TABLES)]

    def table(self, name: str) -> polars.DataFrame:
        """One table as a Polars data frame; the folder and the suffix of the file may be left out.

        Documents, questions, answers, judgments and hits have the same columns in every folder.
        """
        listed = self._table_file(name)
        file = self.artefact.file(listed)
        if file.suffix == ".parquet":
            return read_parquet(file)
        if listed == _REJECTED and not file.stat().st_size:
            return _empty_frame(self._rejected_columns())
        return _read_lines(file, listed) if file.suffix == ".jsonl" else _read_cells(file)

    def _rejected_columns(self) -> tuple[str, ...]:
        """What a table of rejected items has in a folder of this kind, also where it has no row."""
        if self.artefact.has("funnel.tsv"):  # filters and recipes: each step rejects
            return ("id", "step", "reason", "details")
        return ("source", "reason") if self.kind == "corpus" else ("id", "reason", "step")

    def pandas(self, name: str) -> pandas.DataFrame:
        """One table as a pandas data frame; pandas must be installed."""
        frame = self.table(name)
        try:
            import pandas  # noqa: PLC0415 - optional, and slow to load
        except ImportError as err:
            raise UsageError("pandas is not installed", fix="pip install pandas, or use .table() for Polars") from err
        return pandas.DataFrame(frame.to_dict(as_series=False))

    def _table_file(self, name: str) -> str:
        if name in self.tables:
            return name
        short = {each: str(PurePosixPath(each).with_suffix("")) for each in self.tables}
        same = [each for each in self.tables if short[each] == name] or [
            each for each in self.tables if name in (PurePosixPath(each).name, PurePosixPath(each).stem)
        ]
        if len(same) != 1:
            known = ", ".join(self.tables) or "none"
            which = f"{len(same)} tables are called {name}" if same else f"this {self.kind} has no table {name}"
            raise UsageError(
                which,
                where=str(self.path),
                fix=f"{did_you_mean(name, [*self.tables, *short.values()])}its tables are: {known}",
            )
        return same[0]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r}, {_counted(self.manifest)})"

    def _repr_html_(self) -> str:
        """What a notebook shows: kind, title, counts, the main figures and the tables."""
        manifest = self.manifest
        rows = [("folder", str(self.path)), ("counts", _counted(manifest))]
        rows += [("models", ", ".join(dict.fromkeys(manifest.models.values())))] if manifest.models else []
        rows += [("cost", f"{manifest.cost.calls} calls, ${manifest.cost.money:,.2f}")] * bool(manifest.cost.calls)
        rows += [(name, _figure(value)) for name, value in list(manifest.metrics.items())[:_SHOWN]]
        rows += [("tables", ", ".join(self.tables))] if self.tables else []
        cells = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(value)}</td></tr>'
            for name, value in rows
            if value
        )
        return f"<p><b>{html.escape(self.kind)}</b> {html.escape(manifest.title)}</p><table>{cells}</table>"


def _counted(manifest: Manifest) -> str:
    counts = manifest.counts
    parts = [f"{counts.kept} kept"]
    parts += [f"{counts.rejected} rejected"] if counts.rejected else []
    return ", ".join([*parts, f"{counts.failed} failed"] if counts.failed else parts)


def _figure(value: object) -> str:
    """A figure of the manifest in one line; longer lists and tables are left to the folder's own tables."""
    if isinstance(value, dict) and "value" in value:
        low, high = value.get("low"), value.get("high")
        interval = f" [{low:.3f}, {high:.3f}]" if isinstance(low, float) and isinstance(high, float) else ""
        return f"{value['value']:.3f}{interval}" if isinstance(value["value"], float) else str(value["value"])
    if isinstance(value, dict) and not any(isinstance(each, dict | list) for each in value.values()):
        return ", ".join(f"{each} {name}" for name, each in value.items())
    return "" if isinstance(value, dict | list) else str(value)


_REJECTED = "rejected.jsonl"


def _empty_frame(columns: Iterable[str]) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - as below

    return polars.DataFrame(schema=dict.fromkeys(columns, polars.String))


def _read_lines(file: Path, name: str) -> polars.DataFrame:
    """A JSONL table. Values whose types differ within a column (facets: a text or a list) come as JSON text."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    from hoofbeat.store.record_frames import record_frame, record_of  # noqa: PLC0415 - only where a table is read

    record = record_of(name)
    if not file.stat().st_size and record is None:
        return polars.DataFrame()
    try:
        if record is not None:
            return record_frame(file, record)
        return polars.read_ndjson(file, infer_schema_length=None)
    except table_errors() as err:
        raise InputError(
            f"can't read the table: {table_reason(err)}", where=str(file), fix="make the artefact again"
        ) from err


def _read_cells(file: Path) -> polars.DataFrame:
    import polars  # noqa: PLC0415 - as above

    tabs = file.suffix == ".tsv"
    try:
        frame = polars.read_csv(
            file, separator="\t" if tabs else ",", quote_char=None if tabs else '"', infer_schema_length=None
        )
    except table_errors() as err:
        raise InputError(
            f"can't read the table: {table_reason(err)}", where=str(file), fix="make the artefact again"
        ) from err
    texts = [name for name, kind in frame.schema.items() if kind == polars.String]
    return frame.with_columns(
        polars.Series(name, [None if cell is None else bare_cell(cell) for cell in frame[name]], dtype=polars.String)
        for name in texts
    )
