"""Dense search beside the matrix product it can't be quicker than, and beside faiss.

    python -m bench.dense [--rows 10000 100000] [--queries 256] [--k 10 100] [--rounds 5] [--approximate] [--json]

Rows are seeded random vectors of 384 numbers around centres. All searches take turns in one process on the same rows
and queries; the quickest of the rounds counts, and ratios are to numpy's matrix product in blocks, whose scores nobody
looks at. "Hoofbeat" is numpy alone, "Hoofbeat+numba" the same with the extra `fast`. Peak memory is that of a process
of its own which maps the rows from disk, builds one index and searches once; pages of the mapped file count too. The
goal is exact search within 20% of the matrix product. faiss is measured where it is installed. On a busy machine,
compare CPU time on one thread, which other work disturbs least:

    OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 HOOFBEAT_THREADS=1 python -m bench.dense --rows 200000
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hoofbeat.retrieval.index.dense_search import DenseSearcher, approximate

GOAL = 1.2
DIMENSION = 384
BLOCK = 16384
LIMIT = "numpy matrix product"
COMPILED = "Hoofbeat+numba"
STORES = ("float32", "float16", "int8")

Vectors = NDArray[np.float32]
Search = Callable[[], object]


class Row(NamedTuple):
    """One search of one size: the quickest of its rounds, and times the matrix product, by time and by CPU time."""

    rows: int
    k: int
    name: str
    seconds: float
    ratio: float
    cpu_ratio: float
    peak: int
    note: str = ""


class Timing(NamedTuple):
    """Wall and CPU seconds."""

    wall: float
    cpu: float


def make_rows(count: int, seed: int) -> Vectors:
    """Unit vectors around one centre for each hundred of them, made block by block."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((max(1, count // 100), DIMENSION), np.float32)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    rows = np.empty((count, DIMENSION), np.float32)
    for start in range(0, count, BLOCK):
        block = rows[start : start + BLOCK]
        block[:] = rng.standard_normal(block.shape, np.float32) / np.float32(np.sqrt(DIMENSION))
        block += centres[rng.integers(0, len(centres), len(block))]
        block /= np.linalg.norm(block, axis=1, keepdims=True)
    return rows


def make_queries(rows: Vectors, count: int, seed: int) -> Vectors:
    """Queries near some of the rows."""
    rng = np.random.default_rng(seed)
    near = rows[np.sort(rng.choice(len(rows), count))]
    queries = near + rng.standard_normal(near.shape, np.float32) / np.float32(np.sqrt(DIMENSION))
    unit: Vectors = queries / np.linalg.norm(queries, axis=1, keepdims=True)
    return unit


def multiply(rows: Vectors, queries: Vectors) -> None:
    """Every score there is, looked at by nobody."""
    room = np.empty((len(queries), BLOCK), np.float32)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        np.matmul(queries, block.T, out=room[:, : len(block)])


def faiss_flat(rows: Vectors) -> Any:
    import faiss  # noqa: PLC0415

    index = faiss.IndexFlatIP(DIMENSION)
    index.add(rows)
    return index


def searches(rows: Vectors, queries: Vectors, k: int) -> dict[str, Search]:
    """What takes turns, by name; building is not measured."""
    found: dict[str, Search] = {LIMIT: lambda: multiply(rows, queries)}
    for engine in ("Hoofbeat", *([COMPILED] if find_spec("numba") else [])):
        for store in STORES:
            index = DenseSearcher(rows, store, fast=engine == COMPILED)
            index.search(queries[:2], k)  # what is compiled, is compiled before
            found[f"{engine} exact, {store}"] = lambda index=index: index.search(queries, k)  # type: ignore[misc]
    try:
        flat = faiss_flat(rows)
    except ImportError:
        return found
    found[f"faiss {metadata.version('faiss-cpu')} flat"] = lambda: flat.search(queries, k)
    return found


def take_turns(found: dict[str, Search], rounds: int) -> dict[str, Timing]:
    """The quickest round of each, by time and by CPU time."""
    seen: dict[str, list[Timing]] = {name: [] for name in found}
    for _ in range(rounds):
        for name, search in found.items():
            wall, cpu = time.perf_counter(), time.process_time()
            search()
            seen[name].append(Timing(time.perf_counter() - wall, time.process_time() - cpu))
    return {name: Timing(min(t.wall for t in each), min(t.cpu for t in each)) for name, each in seen.items()}


def peak_of(name: str, path: Path, queries: int, k: int) -> int:
    """Peak memory in MiB of a process that does just this."""
    command = [sys.executable, "-m", "bench.dense", "--peak", name, "--file", str(path)]
    command += ["--queries", str(queries), "--k", str(k)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    return int(result.stdout)


def print_peak(name: str, path: Path, queries: int, k: int) -> None:
    rows: Vectors = np.load(path, mmap_mode="r")
    asked = make_queries(rows, queries, 1)
    if name == LIMIT:
        multiply(rows, asked)
    elif name.startswith("faiss"):
        faiss_flat(rows).search(asked, k)
    else:
        DenseSearcher(rows, name.rpartition(" ")[2], fast=name.startswith(COMPILED)).search(asked, k)
    # not getrusage: its peak includes that of the process which started this one
    status = Path("/proc/self/status").read_text(encoding="ascii")
    print(int(status.partition("VmHWM:")[2].split()[0]) // 1024)


def exact_rows(count: int, queries: int, ks: list[int], rounds: int) -> list[Row]:
    rows = make_rows(count, 0)
    asked = make_queries(rows, queries, 1)
    table: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        np.save(path, rows)
        for k in ks:
            best = take_turns(searches(rows, asked, k), rounds)
            limit = best[LIMIT]
            for name, timing in best.items():
                peak = peak_of(name, path, queries, k) if k == ks[-1] else 0
                table.append(Row(count, k, name, timing.wall, timing.wall / limit.wall, timing.cpu / limit.cpu, peak))
    return table


def approximate_rows(count: int, queries: int, k: int, rounds: int, kinds: list[str]) -> list[Row]:
    """Build time and recall beside the time of a search."""
    rows = make_rows(count, 0)
    asked = make_queries(rows, queries, 1)
    limit = take_turns({LIMIT: lambda: multiply(rows, asked)}, rounds)[LIMIT]
    table = []
    for kind in kinds:
        started = time.perf_counter()
        index = approximate(rows, kind)
        built = time.perf_counter() - started
        recall = index.measure(asked)
        timing = take_turns({kind: lambda index=index: index.search(asked, k)}, rounds)[kind]  # type: ignore[misc]
        settings = ", ".join(f"{name} {value}" for name, value in index.settings().items())
        note = f"built in {built:.0f} s ({settings}), recall@10 {recall:.3f}"
        table.append(Row(count, k, kind, timing.wall, timing.wall / limit.wall, timing.cpu / limit.cpu, 0, note))
    return table


def show(table: list[Row], queries: int) -> None:
    print(f"{queries} queries at a time, vectors of {DIMENSION} numbers\n")
    print("| rows | k | search | ms a query | to the matrix product | by CPU | peak MiB | |")
    print("|---|---|---|---|---|---|---|---|")
    for row in table:
        cells = [f"{row.rows:,}", str(row.k), row.name, f"{1000 * row.seconds / queries:.3f}", f"× {row.ratio:.2f}"]
        cells += [f"× {row.cpu_ratio:.2f}"]
        print("| " + " | ".join([*cells, str(row.peak or ""), row.note]) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=256)
    parser.add_argument("--k", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--approximate", nargs="*", metavar="KIND", help="also ivf, hnsw, … (default: both)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # faiss' idle threads must sleep, or they slow all others down
    if given.peak:
        print_peak(given.peak, given.file, given.queries, given.k[0])
        return
    table: list[Row] = []
    for count in given.rows:
        table += exact_rows(count, given.queries, given.k, given.rounds)
        if given.approximate is not None:
            kinds = given.approximate or ["ivf", "hnsw"]
            table += approximate_rows(count, given.queries, given.k[0], given.rounds, kinds)
    if given.json:
        print(json.dumps([row._asdict() for row in table]))
        return
    show(table, given.queries)
    size, k = max(given.rows), min(given.k, key=lambda k: abs(k - 100))
    ours = next(row for row in table if (row.rows, row.k) == (size, k) and row.name.endswith("float32"))
    print(f"\n{ours.name}, {size:,} rows, {k} results: × {ours.ratio:.2f}, by CPU × {ours.cpu_ratio:.2f}")
    print(f"the goal is × {GOAL:.2f}")


if __name__ == "__main__":
    main()
