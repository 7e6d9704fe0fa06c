"""Large folders in the pages: how long the first visit takes and how long later ones, beside a trivial page.

    python -m bench.browse [--documents 100000] [--answers 100000] [--sources 102] [--asked 1115] [--queries 10000]
                           [--hits 100] [--visits 40] [--seed 0] [--folder DIR] [--json]

Invented folders are written with the store's own writers: a corpus, a benchmark, judged answers twice over, a ranking,
and an audit (102 sources and 1,115 questions are 5,743,365 pairs). They are served by a process of its own. Each page
is asked for until it is whole: the first answer may be one that says that the folder is being read. Then it is visited
again, at another place of its list each time. Ratios are to a page of one line, asked for before and after from a
server of its own. Nothing is asserted: wall times of a shared machine are for reading.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import uvicorn
from msgspec import Struct, to_builtins

from bench.browse_folders import Sizes, build
from bench.web import TRIVIAL, share
from bench.web import serving as serving_trivial
from hoofbeat.web import FolderLibrary, Site, create_app

_AGAIN = 0.2
_LONGEST = 900.0
_START = 120.0
_TRIVIAL_VISITS = 200

Address = Callable[[random.Random], str]


class Row(Struct, frozen=True, kw_only=True):
    """One page: seconds until the first answer and until it was whole, then later visits; `peak` is MiB so far."""

    page: str
    answer: float
    whole: float
    p50: float
    p95: float
    peak: float | None


def pages(sizes: Sizes) -> dict[str, Address]:
    """The main pages: where each is, somewhere else every time where it is one of many."""

    def one(count: int) -> Callable[[random.Random], int]:
        return lambda rng: rng.randint(1, max(1, count))

    listed = one(max(1, sizes.documents // 50))
    document, question, asked, query = one(sizes.documents), one(sizes.questions), one(sizes.asked), one(sizes.queries)
    return {
        "start": lambda _: "/",
        "corpus": lambda rng: f"/corpora/cases?page={listed(rng)}",
        "corpus by facet": lambda rng: f"/corpora/cases?facet.specialty=specialty%20{rng.randint(0, 23)}",
        "document": lambda rng: f"/corpora/cases/documents/{document(rng)}",
        "benchmark": lambda _: "/benchmarks/bench",
        "question beside its source": lambda rng: f"/benchmarks/bench/questions/{question(rng)}",
        "judged answers": lambda _: "/runs/judged",
        "judged, questions with wrong answers": lambda rng: (
            f"/runs/judged/questions?state=wrong&page={question(rng) // 50}"
        ),
        "judged, a question": lambda rng: f"/runs/judged/questions/{question(rng)}",
        "side by side": lambda _: "/side-by-side?a=judged&b=judged-2",
        "side by side, a question": lambda rng: f"/side-by-side/questions/{question(rng)}?a=judged&b=judged-2",
        "ranking": lambda _: "/rankings/ranked",
        "ranking, worst queries": lambda rng: f"/rankings/ranked/queries?page={query(rng) // 50}",
        "ranking, a query": lambda rng: f"/rankings/ranked/queries/{query(rng)}",
        "audit": lambda _: "/audits/audit",
        "audit, questions": lambda _: "/audits/audit/questions",
        "audit, contradictory pairs": lambda rng: f"/audits/audit/pairs?label=Contradictory&page={rng.randint(1, 99)}",
        "audit, a question": lambda rng: f"/audits/audit/questions/{asked(rng)}",
        "audit, a pair": lambda rng: f"/audits/audit/questions/{asked(rng)}/pairs/1/{rng.randint(2, sizes.sources)}",
        "audit, themes": lambda _: "/audits/audit/themes",
    }


def serve(folder: Path, port: int) -> None:
    """The server of the folders, in a process of its own."""
    uvicorn.run(
        create_app(Site(library=FolderLibrary([folder]))),
        port=port,
        log_level="warning",
        access_log=False,
        lifespan="off",
    )


@contextmanager
def serving(folder: Path) -> Iterator[tuple[str, int]]:
    """Start the server; its address, and the number of its process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "bench.browse", "--serve", str(folder), "--port", str(port)]
    process = subprocess.Popen(words)
    try:
        until = time.monotonic() + _START
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError("the server did not start")
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait(20)


class Visitor:
    """Somebody who asks for pages over one connection, as a browser does."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._line = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=_LONGEST)

    def get(self, path: str) -> tuple[float, bool]:
        """How long a page took, and whether it is whole; one that is not asks to be asked for again."""
        began = time.perf_counter()
        self._line.request("GET", path)
        answer = self._line.getresponse()
        answer.read()
        took = time.perf_counter() - began
        if answer.status not in (200, 202):
            raise RuntimeError(f"{answer.status} at {path}")
        return took, answer.getheader("Refresh") is None

    def first(self, path: str) -> tuple[float, float]:
        """How long the first answer took, and how long it was until the page was whole."""
        began = time.perf_counter()
        answer, whole = self.get(path)
        while not whole:
            if time.perf_counter() - began > _LONGEST:
                raise RuntimeError(f"{path} was not whole after {_LONGEST:.0f} s")
            time.sleep(_AGAIN)
            _, whole = self.get(path)
        return answer, time.perf_counter() - began

    def close(self) -> None:
        """Hang up."""
        self._line.close()


def peak_of(pid: int) -> float | None:
    """The most memory a process has had so far, in MiB; None where the system does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")), None)


def peak() -> float:
    """The most memory that any process started here has had, in MiB: that is the server of the folders."""
    told = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return told / (1024 * 1024 if sys.platform == "darwin" else 1024)


def measure(folder: Path, sizes: Sizes, visits: int) -> tuple[list[Row], list[float]]:
    """Every page in turn; and how long the trivial page took."""
    rng = random.Random(sizes.seed)
    rows = []
    trivial = _trivial()
    with serving(folder) as (address, pid):
        visitor = Visitor(address)
        for name, path in pages(sizes).items():
            answer, whole = visitor.first(path(rng))
            later = [visitor.get(path(rng))[0] for _ in range(visits)]
            rows.append(
                Row(
                    page=name,
                    answer=answer,
                    whole=whole,
                    p50=share(later, 0.5),
                    p95=share(later, 0.95),
                    peak=peak_of(pid),
                )
            )
        visitor.close()
    return rows, trivial + _trivial()


def _trivial() -> list[float]:
    with serving_trivial(TRIVIAL) as address:
        visitor = Visitor(address)
        took = [visitor.get("/")[0] for _ in range(_TRIVIAL_VISITS)]
        visitor.close()
    return took


def table(rows: list[Row], trivial: list[float]) -> str:
    """What was seen, as a table."""
    base50, base95 = share(trivial, 0.5), share(trivial, 0.95)
    lines = [
        "| page | first answer s | whole s | later p50 ms | p95 ms | p50 to trivial | p95 to trivial | peak MiB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        peak = "" if row.peak is None else f"{row.peak:,.0f}"
        lines.append(
            f"| {row.page} | {row.answer:.2f} | {row.whole:.2f} | {1e3 * row.p50:.1f} | {1e3 * row.p95:.1f} "
            f"| × {row.p50 / base50:.1f} | × {row.p95 / base95:.1f} | {peak} |"
        )
    return "\n".join([*lines, f"| {TRIVIAL} | | | {1e3 * base50:.1f} | {1e3 * base95:.1f} | | | |"])


def main() -> None:
    parser = argparse.ArgumentParser(description="Large folders in the pages.")
    for name, usual in (
        ("documents", 100_000), ("answers", 100_000), ("sources", 102), ("asked", 1115), ("queries", 10_000),
        ("hits", 100), ("visits", 40), ("seed", 0),
    ):  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--folder", type=Path, help="where to build; kept, and used again where it is there")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.port)
        return
    sizes = Sizes(**{name: getattr(args, name) for name in Sizes.__struct_fields__})
    with ExitStack() as stack:
        folder = args.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        began = time.perf_counter()
        if not (folder / "audit").is_dir():
            build(folder, sizes)
        built, before = time.perf_counter() - began, os.getloadavg()[0]
        rows, trivial = measure(folder, sizes, args.visits)
        load = (before, os.getloadavg()[0])
    if args.json:
        print(
            json.dumps(
                {
                    "rows": to_builtins(rows),
                    "trivial": trivial,
                    "load": load,
                    "peak": peak(),
                    "sizes": to_builtins(sizes),
                }
            )
        )
        return
    told = (
        f"{sizes.documents:,} documents",
        f"{sizes.questions * 100:,} answers judged twice",
        f"{sizes.pairs:,} pairs",
        f"{sizes.queries:,} queries with {sizes.hits} hits each",
        f"built in {built:.0f} s",
        f"load {load[0]:.1f} to {load[1]:.1f}",
    )
    print(", ".join(told) + "\n")
    print(table(rows, trivial))
    print(f"\npeak memory of the server: {peak():,.0f} MiB")


if __name__ == "__main__":
    main()
