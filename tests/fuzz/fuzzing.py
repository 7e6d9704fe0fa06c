"""Fuzzing: mutated inputs for everything that reads what others wrote (`targets`).

Required of each input: no error but those that Hoofbeat raises on purpose, no more than 2 s of processor time, no more
than 500 MB of memory. Inputs whose outcome is new are mutated further. Each target runs in a process of its own, which
a crash or a hang of native code ends. What is found is made small and written to `build/fuzz`, with the error; once it
is corrected, move it to `tests/fuzz/cases`, where every run of the suite reads it again.

    python -m tests.fuzz.fuzzing                                   ten seconds for each target
    python -m tests.fuzz.fuzzing --seconds 300 --only 'reader-*'   longer, some targets
    python -m tests.fuzz.fuzzing --number 500 --seed 7             so many inputs for each target
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import logging
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from hoofbeat.errors import HoofbeatError
from tests.fuzz.mutating import mutate
from tests.fuzz.targets import Target, targets

MAX_SECONDS = 2.0
MAX_MEGABYTES = 500
STUCK = 180.0
"""Seconds without a new input after which a process is given up: native code that no signal reaches."""
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


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """End what takes more processor time than this."""

    def end(*_: object) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(target: Target, data: bytes) -> Outcome:
    """Read one input."""
    before = _megabytes()
    folder = Path(tempfile.mkdtemp(prefix="hoofbeat-fuzz-"))
    try:
        with limited(MAX_SECONDS), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = target.read(data, folder)
    except HoofbeatError as err:
        return Outcome(f"{type(err).__name__} {re.sub(r'[^a-z ]+|hoofbeat-fuzz-.*', '', err.what.lower())[:60]}")
    except TooSlow:
        return Outcome("too slow", f"more than {MAX_SECONDS} s\n{traceback.format_exc()}")
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as err:  # a panic of native code is not an `Exception`
        told = traceback.format_exc()
        return Outcome(type(err).__name__, told, " ".join(":".join(found) for found in _OURS.findall(told)[-1:]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    grown = _megabytes() - before
    if grown > MAX_MEGABYTES:
        return Outcome("too large", f"{grown:.0f} MB more memory")
    return Outcome(str(result)[:200])


def _megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


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


def fuzz(target: Target, seed: int, *, seconds: float = 1e9, number: int = 10**9, begin: int = 0) -> Iterator[bytes]:
    """Run inputs in this process; every finding is written, and each input is yielded before it is run."""
    kept = list(target.seeds())
    assert kept, f"{target.name} has no inputs to begin with"
    seen = {run(target, data).signature for data in kept}
    until = time.monotonic() + seconds
    for at in range(begin, number):
        if time.monotonic() > until:
            break
        rng = random.Random(f"{seed} {target.name} {at}")
        data = mutate(rng.choice(kept), rng, kept)
        yield data
        outcome = run(target, data)
        if outcome.signature in seen:
            continue
        seen.add(outcome.signature)
        if outcome.error:
            tries = 25 if outcome.what.startswith("too") else 400
            small = minimised(data, lambda each, o=outcome: run(target, each).signature == o.signature, tries)  # type: ignore[misc]
            place = Finding(target.name, small, outcome).write()
            print(f"{target.name}: {outcome.signature} -> {place}", flush=True)
        elif len(kept) < 500:
            kept.append(data)


def _in_process(target: Target, seed: int, seconds: float, number: int) -> tuple[int, int]:
    """Fuzz in processes of their own; how many inputs were run, and how often a process died or was stuck.

    This process reads nothing itself: native threads that it had started would be missing after the fork.
    """
    until, done, lost = time.monotonic() + seconds, 0, 0
    while done < number and time.monotonic() < until:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            _be(target, seed, until - time.monotonic(), number, done, writing)
        os.close(writing)
        done, ended, data = _watch(child, reading, done)
        if ended == 0:
            break
        lost += 1
        kind = "stuck" if ended < 0 else "crash"
        place = Finding(target.name, data, Outcome(kind, f"the process ended with {ended}")).write()
        print(f"{target.name}: {kind} -> {place}", flush=True)
    return done, lost


def _be(target: Target, seed: int, seconds: float, number: int, begin: int, told: int) -> None:
    """Be the process that runs inputs: the last one is in a file, and every one of them is a byte in the pipe."""
    code = 0
    try:
        logging.disable(logging.CRITICAL)
        last = Path(tempfile.gettempdir(), f"hoofbeat-fuzz-last-{os.getpid()}")
        for data in fuzz(target, seed, seconds=seconds, number=number, begin=begin):
            last.write_bytes(data)
            os.write(told, b".")
        last.unlink(missing_ok=True)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        sys.stdout.flush()
        os._exit(code)


def _watch(child: int, told: int, done: int) -> tuple[int, int, bytes]:
    """Wait for a process: how many inputs it has run, how it ended (-1 where it was stuck), and its last input."""
    os.set_blocking(told, False)
    heard = time.monotonic()
    while True:
        with suppress(BlockingIOError):
            if found := os.read(told, 65536):
                done += len(found)
                heard = time.monotonic()
                continue
            break
        if time.monotonic() - heard > STUCK:
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.05)
    os.close(told)
    _, status = os.waitpid(child, 0)
    stuck = time.monotonic() - heard > STUCK
    last = Path(tempfile.gettempdir(), f"hoofbeat-fuzz-last-{child}")
    data = last.read_bytes() if last.exists() else b""
    last.unlink(missing_ok=True)
    return done, -1 if stuck else os.waitstatus_to_exitcode(status) and 1, data


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each target")
    parser.add_argument("--number", type=int, default=10**9, help="inputs for each target")
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
    total = 0
    rows = []
    try:
        for target in chosen:
            done, lost = _in_process(target, given.seed, given.seconds, given.number)
            total += done
            rows.append({"target": target.name, "inputs": done, "crashes": lost})
            print(f"{target.name}: {done} inputs", flush=True)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    new = set(FOUND.glob("*.error")) - before
    print(json.dumps({"inputs": total, "targets": len(rows), "found": sorted(path.stem for path in new)}, indent=1))
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
