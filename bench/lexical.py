"""Lexical search beside bm25s with numba and tantivy: indexing, memory, and queries of 10 and 300 terms.

    python -m bench.lexical [--passages 10000 100000] [--rounds 5] [--json]

Passages are sentences of the real case reports beside the project (`../shared/data`), recombined with a seed, each with
a number of its own so that the vocabulary goes on growing. Every engine is a process of its own, memory (children
included) sampled from outside.

Indexing: texts lie in memory; each engine splits and stems them in its own documented way, English stop words left out.
Searching: all engines index the same terms, and take turns in rounds; top 100. Rankings are compared: bm25s must agree
with Hoofbeat but for ties, tantivy (k1 1.2, b 0.75 only, lengths rounded) nearly. Hoofbeat analyses the text of its
queries while the clock runs, the others get their terms ready-made. Engines that are not installed are left out, aloud.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.corpus_import import resident
from bench.lexical_engines import (
    ENGINES,
    KINDS,
    NEEDS,
    PARAMETERS,
    QUERIES,
    REFERENCE,
    REPORTS,
    TANTIVY_PARAMETERS,
    Answers,
    lines,
    prepare,
)
from hoofbeat.engine import available_cores

TOLERANCE = 1e-4


def serve(name: str, place: Path) -> None:
    """The measured process: does what it is told, a line each, and says how long that took."""
    engine = ENGINES[name]()
    texts: list[str] = []
    for line in sys.stdin:
        what, *more = json.loads(line)
        answer: object = None
        if what == "read":
            texts = lines(place / "texts")
        elif what == "index texts":
            answer = timed(partial(engine.index_texts, texts, Path(more[0])))
        elif what == "index terms":
            engine.index_terms(place)
        elif what == "search":
            kind, threads = more
            search = engine.search(json.loads((place / kind).read_text("utf-8")), threads)
            search()
            answer = timed(search)
        elif what == "answers":
            kind, parameters = more
            answer = engine.answers(json.loads((place / kind).read_text("utf-8")), tuple(parameters))
        print(json.dumps(answer), flush=True)


def timed(what: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds, children that ended included."""

    def cpu() -> float:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(each.ru_utime + each.ru_stime for each in used)

    wall, used = time.perf_counter(), cpu()
    what()
    return time.perf_counter() - wall, cpu() - used


class Process:
    """A measured process and what it can be told."""

    def __init__(self, name: str, place: Path) -> None:
        command = [sys.executable, "-m", "bench.lexical", "--serve", name, str(place)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
        )
        self.name = name

    def tell(self, *what: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} failed at: {what}")
        return json.loads(line)

    def watched(self, *what: object) -> tuple[Any, float]:
        """As `tell`, with the peak memory meanwhile in MiB."""
        peak = 0
        done = threading.Event()

        def watch() -> None:
            nonlocal peak
            while not done.wait(0.05):
                peak = max(peak, resident(self._process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            return self.tell(*what), peak / 2**20
        finally:
            done.set()
            watcher.join()

    def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Indexing(NamedTuple):
    """Indexing by one engine: seconds, CPU seconds, peak MiB (texts included), MiB on disk."""

    wall: float
    cpu: float
    peak: float
    disk: float


class Took(NamedTuple):
    """Milliseconds a query by the clock and of CPU time."""

    wall: float
    cpu: float


def index_all(names: Sequence[str], place: Path, rounds: int) -> dict[str, Indexing]:
    """Each engine indexes in its own way, in a fresh process; medians of rounds that take turns."""
    runs: dict[str, list[Indexing]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            process = Process(name, place)
            with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-", dir=place) as folder:
                process.tell("read")
                (wall, cpu), peak = process.watched("index texts", folder)
                disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            process.stop()
            runs[name].append(Indexing(wall, cpu, peak, disk / 2**20))
    return {name: Indexing(*map(statistics.median, zip(*found, strict=True))) for name, found in runs.items()}


def search_all(
    names: Sequence[str], place: Path, rounds: int, threads: Sequence[int]
) -> tuple[dict[str, dict[str, Took]], list[str]]:
    """What a query took by engine and kind, medians of rounds that take turns; and what the comparison found."""
    processes = {name: Process(name, place) for name in names}
    times: dict[str, dict[str, list[Took]]] = {name: {} for name in names}
    try:
        for process in processes.values():
            process.tell("index terms")
        for _ in range(rounds):
            for kind in KINDS:
                for count in threads:
                    for name, process in processes.items():
                        if count == 1 or name in {REFERENCE, "Hoofbeat+numba"}:
                            took = process.tell("search", kind, count)
                            label = f"{kind}, {count} thread{'s' * (count > 1)}"
                            times[name].setdefault(label, []).append(Took(*(1000 * each / QUERIES for each in took)))
        verdicts = compare_all(processes)
    finally:
        for process in processes.values():
            process.stop()
    medians = {
        name: {kind: Took(*map(statistics.median, zip(*found, strict=True))) for kind, found in kinds.items()}
        for name, kinds in times.items()
    }
    return medians, verdicts


def compare_all(processes: dict[str, Process]) -> list[str]:
    """What each engine's rankings have in common with Hoofbeat's."""
    verdicts = []
    for kind in KINDS:
        for name, parameters in (
            (REFERENCE, PARAMETERS),
            ("Hoofbeat+numba", PARAMETERS),
            ("tantivy", TANTIVY_PARAMETERS),
        ):
            if name in processes:
                ours = processes["Hoofbeat"].tell("answers", kind, parameters)
                theirs = processes[name].tell("answers", kind, parameters)
                verdicts.append(f"{kind}, {name}: {compare(ours, theirs, exact=name != 'tantivy')}")
    return verdicts


def compare(ours: Answers, theirs: Answers, *, exact: bool) -> str:
    """How far two lists of rankings agree; where they should be equal, anything but ties ends the run."""
    same = sum(one[0] == other[0] for one, other in zip(ours, theirs, strict=True))
    worst, shared = 0.0, 0
    for (our_places, our_scores), (their_places, their_scores) in zip(ours, theirs, strict=True):
        size = min(len(our_scores), len(their_scores))
        mine, other = np.array(our_scores[:size]), np.array(their_scores[:size])
        worst = max(worst, float(np.abs(mine / other - 1).max(initial=0)))
        shared += len(set(our_places) & set(their_places))
        if exact:
            border = our_scores[-1] * (1 + TOLERANCE)
            sure = {place for place, score in zip(our_places, our_scores, strict=True) if score > border}
            if len(our_places) != len(their_places) or worst > TOLERANCE or not sure <= set(their_places):
                raise SystemExit("the rankings differ by more than ties: the figures mean nothing")
    total = sum(len(places) for places, _ in ours)
    return (
        f"{same} of {len(ours)} in the same order, {shared / total:.2%} of hits shared, scores differ by ≤ {worst:.1e}"
    )


def bench(count: int, rounds: int, index_rounds: int) -> dict[str, Any]:
    """All measurements at one size."""
    names = [name for name in ENGINES if all(importlib.util.find_spec(module) for module in NEEDS.get(name, []))]
    with tempfile.TemporaryDirectory(prefix="hoofbeat-bench-") as folder:
        place = Path(folder)
        prepare(place, count)
        size = (place / "texts").stat().st_size / 2**20
        indexing = index_all([name for name in names if name != "Hoofbeat+numba"], place, index_rounds)
        cores = available_cores()
        searching, verdicts = search_all(names, place, rounds, [1] if cores == 1 else [1, cores])
    return {
        "passages": count,
        "mebibytes": size,
        "indexing": {name: found._asdict() for name, found in indexing.items()},
        "searching": searching,
        "verdicts": verdicts,
    }


def show(figures: dict[str, Any]) -> None:
    """The figures of one size as tables, with ratios to bm25s."""
    print(f"\n{figures['passages']:,} passages, {figures['mebibytes']:.0f} MiB of text\n")
    indexing, searching = figures["indexing"], figures["searching"]
    base = indexing.get(REFERENCE)
    print("| indexing | s | CPU s | peak MiB | MiB on disk | speed to bm25s | by CPU | memory to bm25s |")
    print("|---|---|---|---|---|---|---|---|")
    for name, one in indexing.items():
        figures_ = f"{one['wall']:.1f} | {one['cpu']:.1f} | {one['peak']:.0f} | {one['disk']:.0f}"
        ratios = (
            f"{base['wall'] / one['wall']:.2f} | {base['cpu'] / one['cpu']:.2f} | {one['peak'] / base['peak']:.2f}"
            if base
            else "– | – | –"
        )
        print(f"| {name} | {figures_} | {ratios} |")
    kinds = list(searching.get(REFERENCE, searching["Hoofbeat"]))
    print("\n| ms a query (speed to bm25s; by CPU) |", " | ".join(kinds), "|")
    print("|---|" + "---|" * len(kinds))
    for name, one in searching.items():
        cells = []
        for kind in kinds:
            cell = f"{one[kind].wall:.2f}" if kind in one else "–"
            if kind in one and REFERENCE in searching:
                other = searching[REFERENCE][kind]
                cell += f" ({other.wall / one[kind].wall:.2f}; {other.cpu / one[kind].cpu:.2f})"
            cells.append(cell)
        print(f"| {name} | {' | '.join(cells)} |")
    print()
    for verdict in figures["verdicts"]:
        print(f"- {verdict}")


def show_growth(sizes: Sequence[dict[str, Any]]) -> None:
    """How time and memory grow from the smallest size to the largest."""
    first, last = sizes[0], sizes[-1]
    print(
        f"\nFrom {first['passages']:,} to {last['passages']:,} passages (× {last['passages'] / first['passages']:g}):"
    )
    for name, one in last["indexing"].items():
        before = first["indexing"][name]
        memory, cpu = one["peak"] / before["peak"], one["cpu"] / before["cpu"]
        print(f"- {name}: indexing CPU time × {cpu:.1f}, peak memory × {memory:.1f}")
    for name, one in last["searching"].items():
        grown = [f"{kind} × {took.cpu / first['searching'][name][kind].cpu:.1f}" for kind, took in one.items()]
        print(f"- {name}, CPU time a query: {'; '.join(grown)}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark, or (inside it) one engine."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passages", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--index-rounds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", nargs=2, metavar=("ENGINE", "FOLDER"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.serve[0], Path(options.serve[1]))
        return
    if not REPORTS.is_file():
        raise SystemExit("needs ../shared/data/case_reports.jsonl.gz, which is not here")
    for name, modules in NEEDS.items():
        if missing := [module for module in modules if importlib.util.find_spec(module) is None]:
            print(f"{name} is left out: {', '.join(missing)} not installed", file=sys.stderr)
    print("Pyserini is left out: it needs Java 21 and a CUDA build of torch", file=sys.stderr)
    sizes = []
    for count in options.passages:
        sizes.append(bench(count, options.rounds, options.index_rounds))
        if not options.json:
            show(sizes[-1])
    if options.json:
        print(json.dumps(sizes))
    elif len(sizes) > 1:
        show_growth(sizes)


if __name__ == "__main__":
    main()
