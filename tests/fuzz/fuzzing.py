"""Fuzzing: mutated inputs for everything that reads what others wrote (`targets`).

Required of each input: no error but those that Hoofbeat raises on purpose, no more than 2 s of processor time, no more
than 500 MB of memory. Inputs whose outcome is new, or that reach a line of Hoofbeat for the first time, are mutated
further. Each target runs in a process of its own, which a crash or a hang of native code ends; a target that starts
processes (`folder-*`) gets a quarter of the time. What is found is made small and written to `build/fuzz`, with the
error; once it is corrected, move it to `tests/fuzz/cases`, where every run of the suite reads it again.

    python -m tests.fuzz.fuzzing                                   ten seconds of processor time for each target
    python -m tests.fuzz.fuzzing --seconds 300 --only 'reader-*'   longer, some targets
    python -m tests.fuzz.fuzzing --number 500 --seed 7             500 inputs for each target
    python -m tests.fuzz.fuzzing --total 10000000                  rounds of all targets, each with the next seed
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import itertools
import json
import logging
import math
import mmap
import os
import random
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import hoofbeat
from hoofbeat.errors import HoofbeatError
from tests.fuzz.mutating import MAX_BYTES, mutate
from tests.fuzz.targets import Target, targets

MAX_SECONDS = 2.0
MAX_MEGABYTES = 500
STUCK = 180.0
"""Seconds without a new input after which a process is given up: native code that no signal reaches."""
TRACED = 500
MAX_KEPT = 1000
FOUND = Path("build", "fuzz")
CASES = Path(__file__).parent / "cases"
_OURS = re.compile(r'File ".*?/(src/hoofbeat/[^"]+|tests/fuzz/[^"]+)", line (\d+), in (\w+)')


class TooSlow(BaseException):
    """An input took too long; not an `Exception`, so that no reader takes it for a damaged file."""


class Outcome(NamedTuple):
    """What an input did: a word about the result, and the error if there was one that should not be."""

    what: str
    error: str = ""
    place: str = ""

    @property
    def signature(self) -> str:
        return f"{self.what} {self.place}"


class Watch:
    """Ends an input that takes more processor time than it may, within an eighth of a second.

    One timer for all inputs: to set one for each takes longer than reading a small file.
    """

    TICK = 0.125

    def __init__(self) -> None:
        self._left = math.inf

    def __enter__(self) -> Watch:
        self._before = signal.signal(signal.SIGPROF, self._tick)
        signal.setitimer(signal.ITIMER_PROF, self.TICK, self.TICK)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, self._before)

    def begin(self, seconds: float) -> None:
        """From now on this much time is left."""
        self._left = seconds

    def _tick(self, *_: object) -> None:
        self._left -= self.TICK
        if self._left < 0:
            raise TooSlow


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes more processor time than this."""
    with Watch() as watch:
        watch.begin(seconds)
        yield


class Reading:
    """Reads inputs of one target, each in a new folder, and watches time and memory.

    The folders are in memory where the machine has a place for that: most inputs are read faster than a file is made.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self._watch = Watch()
        self._opened = ExitStack()
        self._root = tempfile.mkdtemp(prefix="hoofbeat-fuzz-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
        self._count = 0
        self._peak = _forget_peak()

    def __enter__(self) -> Reading:
        self._opened.callback(shutil.rmtree, self._root, ignore_errors=True)
        self._opened.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        self._opened.enter_context(self._watch)
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def run(self, data: bytes, seconds: float = 0.0) -> Outcome:
        """Read one input."""
        self._count += 1
        folder = Path(f"{self._root}/{self._count}")
        folder.mkdir()
        began = time.perf_counter()
        try:
            self._watch.begin(seconds or MAX_SECONDS)
            try:
                outcome = Outcome(str(self.target.read(data, folder))[:200])
            finally:
                self._watch.begin(math.inf)
        except HoofbeatError as err:
            what = re.sub(r"[^a-z ]+|hoofbeat-fuzz-.*", "", err.what.lower())[:60]
            outcome = Outcome(f"{type(err).__name__} {what}")
        except TooSlow:
            outcome = Outcome("too slow", f"more than {MAX_SECONDS} s\n{traceback.format_exc()}")
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as err:  # a panic of native code is not an `Exception`
            told = traceback.format_exc()
            place = " ".join(":".join(found) for found in _OURS.findall(told)[-1:])
            outcome = Outcome(type(err).__name__, told, place)
        if time.perf_counter() - began > _FILLS:
            grown = self._grown()
            if grown > MAX_MEGABYTES and not outcome.error:
                outcome = Outcome("too large", f"{grown:.0f} MB more memory")
        _remove(folder)
        return outcome

    def _grown(self) -> float:
        """How much more memory was used than by the inputs before. A peak is forgotten: it would hide the next one."""
        grown = _megabytes() - self._peak
        if grown > 1:
            self._peak = _forget_peak()
        return grown


_FILLS = 0.005
"""Seconds in which no machine fills 500 MB of memory: asking takes longer than reading such an input."""


def run(target: Target, data: bytes) -> Outcome:
    """Read one input."""
    with Reading(target) as reading:
        return reading.run(data)


def _remove(folder: Path) -> None:
    """Remove a folder that mostly holds a file or two."""
    with os.scandir(folder) as found:
        for entry in found:
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            else:
                os.unlink(entry.path)
    folder.rmdir()


def _megabytes() -> float:
    """The most memory that this process has used since the peak was last forgotten."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _forget_peak() -> float:
    """Let the peak be what is used now, where the system can do that; that many megabytes."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", "ascii")
    return _megabytes()


class Lines:
    """The lines of Hoofbeat that inputs have reached."""

    ROOT = str(Path(hoofbeat.__file__).parent)

    def __init__(self) -> None:
        self._seen: set[tuple[CodeType, int]] = set()

    def new(self, read: Callable[[], object]) -> bool:
        """Whether a new line is reached."""
        count, before = len(self._seen), sys.gettrace()
        sys.settrace(self._enter)
        try:
            read()
        finally:
            sys.settrace(before)
        return len(self._seen) > count

    def _enter(self, frame: FrameType, event: str, value: object) -> Any:
        return self._line if frame.f_code.co_filename.startswith(self.ROOT) else None

    def _line(self, frame: FrameType, event: str, value: object) -> Any:
        self._seen.add((frame.f_code, frame.f_lineno))
        return self._line


def minimised(data: bytes, same: Callable[[bytes], bool], tries: int = 400) -> bytes:
    """A smaller input that does the same: stretches are left out, long ones first."""
    size = max(1, len(data) // 2)
    while size and tries > 0:
        at = 0
        while at < len(data) and tries > 0:
            smaller = data[:at] + data[at + size :]
            tries -= 1
            if smaller and same(smaller):
                data = smaller
            else:
                at += size
        size //= 2
    return data


class Finding(NamedTuple):
    """An input that did what it should not."""

    target: str
    data: bytes
    outcome: Outcome

    def write(self) -> Path:
        FOUND.mkdir(parents=True, exist_ok=True)
        place = FOUND / f"{self.target}--{hashlib.sha256(self.data).hexdigest()[:8]}"
        place.write_bytes(self.data)
        place.with_name(f"{place.name}.error").write_text(f"{self.outcome.signature}\n\n{self.outcome.error}", "utf-8")
        return place


def fuzz(
    target: Target,
    seed: int,
    *,
    seconds: float = 1e9,
    number: int = 10**9,
    begin: int = 0,
    traced: int = TRACED,
) -> Iterator[bytes]:
    """Run inputs in this process; every finding is written, and each input is yielded before it is run.

    The lines that the first inputs reach are watched, `traced` of them, and those of one in fifty later; with 0, none.
    """
    kept = list(target.seeds())
    assert kept, f"{target.name} has no inputs to begin with"
    lines = Lines()
    with Reading(target) as reading:
        seen = {reading.run(data).signature for data in kept}
        for data in kept if traced else ():
            lines.new(partial(reading.run, data, 10 * MAX_SECONDS))
        used = Used()
        until = used.now() + seconds
        for at in range(begin, number):
            if used.now() > until:
                break
            rng = random.Random(f"{seed} {target.name} {at}")
            data = mutate(_one_of(kept, rng), rng, kept)
            yield data
            outcome = reading.run(data)
            known, full = outcome.signature in seen, len(kept) >= MAX_KEPT
            seen.add(outcome.signature)
            if outcome.error and not known:
                _write_small(reading, data, outcome)
            elif full or outcome.error:
                continue
            elif not known:
                kept.append(data)
            elif traced and not target.slow and (at < begin + traced or rng.random() < 0.02):  # noqa: SIM102
                if lines.new(partial(reading.run, data, 10 * MAX_SECONDS)):
                    kept.append(data)


def _write_small(reading: Reading, data: bytes, outcome: Outcome) -> None:
    tries = 25 if outcome.what.startswith("too") else 400
    small = minimised(data, lambda each: reading.run(each).signature == outcome.signature, tries)
    place = Finding(reading.target.name, small, outcome).write()
    print(f"{reading.target.name}: {outcome.signature} -> {place}", flush=True)


class Used:
    """Processor time of this process and of those that it started and that have ended.

    Asked again only after a fiftieth of a second: it takes the system longer to tell than to read a small file.
    """

    def __init__(self) -> None:
        self._asked = -math.inf
        self._told = 0.0

    def now(self) -> float:
        """So many seconds, at most a little ago."""
        if (clock := time.perf_counter()) - self._asked > 0.02:
            self._asked, self._told = clock, sum(os.times()[:4])
        return self._told


def _one_of(kept: list[bytes], rng: random.Random) -> bytes:
    """One of these; mostly the smaller of two, because reading small ones takes less time and breaks as much."""
    one, other = rng.choice(kept), rng.choice(kept)
    return min(one, other, key=len) if rng.random() < 0.8 else other


class _Told:
    """What the process that runs inputs tells about itself: its count, processor time and last input, in memory."""

    _HEAD = struct.Struct("<QdQ")

    def __init__(self) -> None:
        self._shared = mmap.mmap(-1, self._HEAD.size + MAX_BYTES)

    def tell(self, done: int, used: float, data: bytes) -> None:
        begin = self._HEAD.size
        self._shared[begin : begin + len(data)] = data
        self._HEAD.pack_into(self._shared, 0, done, used, len(data))

    def heard(self) -> tuple[int, float, bytes]:
        done, used, size = self._HEAD.unpack_from(self._shared, 0)
        begin = self._HEAD.size
        return done, used, self._shared[begin : begin + size]


class Row(NamedTuple):
    """What was run of one target. `lost` is how often its process died or was stuck."""

    target: str
    inputs: int
    seconds: float
    lost: int


def _in_process(target: Target, seed: int, seconds: float, number: int) -> Row:
    """Fuzz in processes of their own.

    This process reads nothing itself: native threads that it had started would be missing after the fork.
    """
    used, done, lost = 0.0, 0, 0
    while done < number and used < seconds:
        told = _Told()
        told.tell(done, 0.0, b"")
        child = os.fork()
        if child == 0:
            _be(target, seed, seconds - used, number, done, told)
        ended = _watch(child, told)
        done, more, data = told.heard()
        used += more
        if ended == 0:
            break
        lost += 1
        kind = "stuck" if ended < 0 else "crash"
        place = Finding(target.name, data, Outcome(kind, f"the process ended with {ended}")).write()
        print(f"{target.name}: {kind} -> {place}", flush=True)
        used += 1.0  # one that dies at once, again and again, ends as well
    return Row(target.name, done, used, lost)


def _be(target: Target, seed: int, seconds: float, number: int, begin: int, told: _Told) -> None:
    """Be the process that runs inputs; what native code prints about damaged input is not shown."""
    code = 0
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        logging.disable(logging.CRITICAL)
        used = Used()
        began = used.now()
        for at, data in enumerate(fuzz(target, seed, seconds=seconds, number=number, begin=begin), begin + 1):
            told.tell(at, used.now() - began, data)
    except BaseException:
        traceback.print_exc(file=sys.stdout)
        code = 1
    finally:
        sys.stdout.flush()
        os._exit(code)


def _watch(child: int, told: _Told) -> int:
    """Wait for a process; how it ended, -1 where it was stuck."""
    heard, last = time.monotonic(), -1
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status) and 1
        if (now := told.heard()[0]) != last:
            heard, last = time.monotonic(), now
        elif time.monotonic() - heard > STUCK:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return -1
        time.sleep(0.05)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="processor time for each target")
    parser.add_argument("--number", type=int, default=10**9, help="inputs for each target")
    parser.add_argument("--total", type=int, default=0, help="rounds of all targets until this many inputs were read")
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="only targets of this name")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    chosen = [each for each in targets() if not given.only or any(fnmatch.fnmatch(each.name, p) for p in given.only)]
    if not chosen:
        parser.error(f"no target fits {' or '.join(given.only)}")
    before = set(FOUND.glob("*.error"))
    scratch = Path(tempfile.mkdtemp(prefix="hoofbeat-fuzz-"))
    os.environ |= {"HOOFBEAT_FUZZ_FOLDERS": str(scratch), "HOOFBEAT_CACHE": str(scratch / "cache")}
    if any(target.name.startswith("folder-") for target in chosen):
        subprocess.run([sys.executable, "-m", "tests.fuzz.targets"], check=True)  # not here: see `_in_process`
    rows: list[Row] = []
    try:
        for seed in itertools.count(given.seed):
            for target in chosen:
                seconds = given.seconds * _share(target, rows)
                rows.append(_in_process(target, seed, seconds, given.number))
                print(f"{target.name}, seed {seed}: {rows[-1].inputs:,} inputs", flush=True)
            if sum(row.inputs for row in rows) >= given.total:
                break
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        print(table(rows))
    new = set(FOUND.glob("*.error")) - before
    print(json.dumps({"inputs": sum(row.inputs for row in rows), "found": sorted(path.stem for path in new)}, indent=1))
    return 1 if new else 0


def _share(target: Target, rows: Sequence[Row]) -> float:
    """How much of the usual time a target gets: in the second round and later, quick ones get more."""
    own = [row for row in rows if row.target == target.name]
    if target.slow or not own:
        return 0.25 if target.slow else 1.0
    seconds = sum(row.seconds for row in rows) / sum(row.inputs for row in rows)
    return min(4.0, max(0.25, seconds / (own[0].seconds / max(1, own[0].inputs))))


def table(rows: Sequence[Row]) -> str:
    """By target: inputs, seconds of processor time, and processes that died or were stuck."""
    lines = ["| target | inputs | seconds | crashes |", "|---|---|---|---|"]
    for name in [*dict.fromkeys(row.target for row in rows), "all"]:
        of = [row for row in rows if name in (row.target, "all")]
        inputs, seconds, lost = (sum(getattr(row, field) for row in of) for field in Row._fields[1:])
        lines.append(f"| {name} | {inputs:,} | {seconds:,.0f} | {lost} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
