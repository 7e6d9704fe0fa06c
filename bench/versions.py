"""Did a change make anything slower? This version beside an older one, path by path, by CPU time.

    git worktree add ../older v0.1
    python -m bench.versions ../older [--rounds 5] [--only lexical audit] [--json]

Each path is one of the other benchmarks at a small size, run from either tree with the same interpreter. The two
versions take turns, and the smallest CPU time of the rounds counts (children included): on a shared machine that is
what other people's work disturbs least. A ratio above 1 says that this version takes more. Nothing is asserted.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

PATHS: dict[str, tuple[str, ...]] = {
    "client": ("--calls", "3000", "--rounds", "2"),
    "corpus_import": ("--articles", "600"),
    "lexical": ("--passages", "20000", "--rounds", "2"),
    "dense": ("--rows", "50000", "--rounds", "3"),
    "hero": ("--sources", "20", "--questions", "200", "--pairs", "3000", "--rounds", "2"),
    "answers": ("--models", "3", "--conditions", "4", "--questions", "250"),
    "audit": ("--scale", "0.03", "--bare", "500", "--throttled", "1"),
    "economy": ("--sources", "10", "200", "--questions", "4", "--positions", "4", "--noise", "0"),
    "browse": (
        *("--documents", "4000", "--answers", "4000", "--sources", "20", "--asked", "100"),
        *("--queries", "500", "--hits", "20", "--visits", "5"),
    ),
}
"""The benchmark of each path and its size: some seconds each."""

NOISE = 0.05


def cpu_seconds(tree: Path, path: str) -> float:
    """CPU time of one benchmark run from a tree, its children included."""
    environment = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}", "PYTHONSAFEPATH": "1"}
    with tempfile.TemporaryDirectory(prefix="hoofbeat-versions-") as scratch:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", f"bench.{path}", *PATHS[path]],
            cwd=tree,
            env={**environment, "TMPDIR": scratch},
            capture_output=True,
            text=True,
            check=False,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"bench.{path} failed in {tree}:\n{done.stderr[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print a line per path: seconds of both versions and their ratio."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("older", type=Path, help="a working tree of the older version")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=sorted(PATHS), default=sorted(PATHS))
    parser.add_argument("--json", action="store_true", help="print one JSON object per path")
    options = parser.parse_args()
    trees = {"older": options.older.resolve(), "this": Path(__file__).resolve().parent.parent}
    for path in options.only:
        seconds: dict[str, list[float]] = {name: [] for name in trees}
        for turn in range(options.rounds):
            for name in sorted(trees, reverse=bool(turn % 2)):
                seconds[name].append(cpu_seconds(trees[name], path))
        older, this = min(seconds["older"]), min(seconds["this"])
        ratio = this / older
        if options.json:
            print(json.dumps({"path": path, "older": seconds["older"], "this": seconds["this"], "ratio": ratio}))
            continue
        verdict = "slower" if ratio > 1 + NOISE else "quicker" if ratio < 1 - NOISE else "same"
        print(f"{path:15} older {older:7.2f} s   this {this:7.2f} s   × {ratio:.3f}   {verdict}", flush=True)


if __name__ == "__main__":
    main()
