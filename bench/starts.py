"""What a verb loads before it works: modules and import time, for each verb in a fresh process.

    python -m bench.starts                         this tree
    python -m bench.starts --against ../other      beside another checkout, as ratios

"help" is `hoofbeat VERB --help`: what is loaded before anything is known of the work. "run" is a small real command on
the teaching set, for verbs that need no language model. Counts are exact; times are the median of some starts on a
machine that others use as well, so read them as ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERBS = (
    "demo", "corpus", "build", "export", "show", "retrieve", "compare", "answer", "predictions", "judge", "leakage",
    "audit", "report", "serve", "review", "ask", "verify", "weights", "ledger",
)  # fmt: skip
RUNS: dict[str, list[str]] = {
    "corpus": ["corpus", "import", "{cases}", "-o", "cases", "--workers", "1"],
    "build": ["build", "teaching", "cases", "-o", "bench"],
    "retrieve": ["retrieve", "bench", "--with", "bm25", "-o", "ranked"],
    "export": ["export", "bench", "--as", "jsonl", "-o", "exported"],
    "verify": ["verify", "bench"],
    "report": ["report", "bench", "ranked", "-o", "paged"],
    "ask": ["ask", "cases", "fever and a new murmur", "--line", "bm25"],
    "weights": ["weights", "list"],
}

_CHILD = """
import contextlib, io, json, sys, time
words = json.loads(sys.argv[1])
began = time.perf_counter()
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    from hoofbeat.cli import main
    try:
        main(words)
    except SystemExit as err:
        code = err.code
seconds = time.perf_counter() - began
ours = sum(1 for name in sys.modules if name.split(".")[0] == "hoofbeat")
print(json.dumps({"ours": ours, "all": len(sys.modules), "seconds": seconds, "code": code}))
"""


def start(tree: Path, words: list[str], folder: Path) -> dict[str, float]:
    """One fresh process of a tree's command: what it loaded, and how long it took."""
    env = {**os.environ, "PYTHONPATH": str(tree / "src"), "HOOFBEAT_CACHE": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CHILD, json.dumps(words)],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)} failed in {tree}:\n{done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure(tree: Path, rounds: int) -> dict[str, dict[str, float]]:
    """For each verb, what help and a small run load."""
    rows: dict[str, dict[str, float]] = {}
    cases = tree / "src" / "hoofbeat" / "teaching" / "cases"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for verb in VERBS:
            helps = [start(tree, [verb, "--help"], folder) for _ in range(rounds)]
            rows[verb] = {
                "help": helps[0]["ours"],
                "help, all": helps[0]["all"],
                "ms": 1000 * statistics.median(each["seconds"] for each in helps),
            }
        for verb, words in RUNS.items():
            ran = start(tree, [word.format(cases=cases) for word in words], folder)
            if ran["code"]:
                raise SystemExit(f"{' '.join(words)} ended with {ran['code']:.0f} in {tree}")
            rows[verb]["run"] = ran["ours"]
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="another checkout of the project")
    parser.add_argument("--rounds", type=int, default=3, help="starts per verb")
    given = parser.parse_args()
    here = measure(ROOT, given.rounds)
    there = measure(given.against.resolve(), given.rounds) if given.against else None
    columns = ("help", "run", "help, all", "ms")
    print("| verb | " + " | ".join(columns) + " |")
    print("|---" * (len(columns) + 1) + "|")
    for verb, row in here.items():
        cells = []
        for column in columns:
            value = row.get(column)
            before = (there or {}).get(verb, {}).get(column)
            text = "" if value is None else f"{value:.0f}"
            cells.append(f"{text} ({before:.0f}, × {value / before:.2f})" if value is not None and before else text)
        print(f"| {verb} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
