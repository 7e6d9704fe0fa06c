"""A hundred thousand answers: given, judged, reported and read, in bounded memory.

    python -m bench.answers [--models 10] [--conditions 10] [--questions 1000] [--folder DIR] [--json]

An invented benchmark is answered by as many models, all of them one stub endpoint on loopback, under as many
conditions, judged twice by the same stub, put into a report, and the two judges' verdicts are compared. Each is the
command a user runs, in a process of its own, whose peak memory is what the system says. The report is then opened in
Chromium, where it is installed: how long until the list can be used, until a wrong answer on the last page is open,
and until a word is searched in everything. Calls a second stand beside a bare aiohttp loop against the same stub,
measured before and after.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from bench.client import bare_aiohttp, stub
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.records import Document, Question, Span
from hoofbeat.store import Counts, Manifest, create
from hoofbeat.store.tables import write_jsonl

GOAL_MEMORY = 1024
GOAL_SECONDS = 3.0
CONDITIONS = (
    "closed", "oracle", "bm25 @3", "first 20%", "first 50%", "bm25 @1", "bm25 @2", "bm25 @4", "bm25 @5", "bm25[b=1] @3"
)  # fmt: skip
_SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")
_WORDS = ["".join(parts) for length in (1, 2, 3) for parts in product(_SYLLABLES, repeat=length)]


class Measured(NamedTuple):
    """One command: wall seconds, CPU seconds, peak memory in MiB."""

    wall: float
    cpu: float
    peak: float


def prose(rng: random.Random, characters: int) -> str:
    words: list[str] = []
    length = 0
    while length < characters:
        words.append(rng.choice(_WORDS))
        length += len(words[-1]) + 1
    return " ".join(words).capitalize() + "."


def write_invented(folder: Path, count: int) -> None:
    """A benchmark of so many questions, two for each document of a corpus."""
    questions, documents = [], []
    for number in range(count):
        rng = random.Random(number)
        if number % 2 == 0:
            quotes = [prose(rng, 120), prose(rng, 120)]
            head, middle = prose(rng, 900), prose(rng, 900)
            text = f"{head} {quotes[0]} {middle} {quotes[1]} {prose(rng, 900)}"
            documents.append(Document(id=f"document-{number // 2:05}", title=f"Invented document {number}", text=text))
        quote = quotes[number % 2]
        start = documents[-1].text.index(quote)
        questions.append(
            Question(
                id=f"invented-{number:05}",
                text=f"Invented case {number}: what is the next step?",
                context=f"{prose(rng, 800)} {quote[:60]}",
                answer=prose(rng, 80),
                documents=(documents[-1].id,),
                evidence=(Span(document=documents[-1].id, start=start, end=start + len(quote), quote=quote),),
                facets={"specialty": f"specialty {number % 12}", "rare": "rare" if number % 3 else "common"},
            )
        )
    with create(folder / "corpus", replace_kind="corpus") as draft:
        write_jsonl(draft.path / "documents.jsonl", documents)
        write_jsonl(draft.path / "rejected.jsonl", [])
        draft.finish(Manifest(kind="corpus", title="invented documents", counts=Counts(kept=len(documents))))
    write_benchmark(folder / "bench", questions, title="invented", inputs=[], counts=Counts(kept=count))


def command(folder: Path, *words: str) -> Measured:
    """Run the command in a process of its own and ask the system what it took."""
    began = time.perf_counter()
    environment = {**os.environ, "HOOFBEAT_LEDGER": str(folder / "ledger.db")}
    process = subprocess.Popen([sys.executable, "-m", "hoofbeat", *words], cwd=folder, env=environment)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"hoofbeat {words[0]} ended with {process.returncode}")
    return Measured(time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def read_in_browser(page_file: Path, questions: int) -> dict[str, float]:
    """Seconds until the list can be used, until a wrong answer on the last page is open, and until a search is done."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        return {}
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    times: dict[str, float] = {}
    with sync_playwright() as playwright, ExitStack() as stack:
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        stack.callback(browser.close)
        page = browser.new_page()
        page.set_default_timeout(180_000)
        viewer = page.locator(".viewer").first

        def told(text: str) -> None:
            page.wait_for_function("(text) => document.querySelector('.viewer output').textContent.endsWith(text)",
                                   arg=text)  # fmt: skip

        began = time.perf_counter()
        page.goto(page_file.as_uri())
        told(f"of {questions:,} shown")
        times["usable"] = time.perf_counter() - began
        began = time.perf_counter()
        viewer.locator("select[data-filter=state]").select_option("wrong")
        viewer.get_by_role("button", name="Last").click()
        last = viewer.locator(".list > details").last
        last.locator("summary").first.click()
        last.locator(".question").wait_for()
        times["wrong, last page, opened"] = time.perf_counter() - began
        began = time.perf_counter()
        viewer.locator("select[data-filter=state]").select_option("")
        viewer.locator("input").fill(f"case {questions - 1}:")
        told(f"1 of {questions:,} shown")
        times["everything searched"] = time.perf_counter() - began
        used = page.evaluate("performance.memory ? performance.memory.usedJSHeapSize / 1048576 : 0")
        times["script memory, MiB"] = float(used)
    return times


def measure(models: int, conditions: int, questions: int, folder: Path) -> dict[str, Any]:
    calls = models * conditions * questions
    write_invented(folder, questions)
    grid = [word for name in CONDITIONS[:conditions] for word in ("--condition", name)]
    with stub() as url:
        grid += [word for number in range(models) for word in ("--model", f"{url}#answering-{number}")]
        sample = min(calls, 20_000)
        bare = [bare_aiohttp(url, 128)(0, sample)]
        steps = {
            "answered": command(folder, "answer", "bench", "--corpus", "corpus", *grid, "-o", "run"),
            "judged": command(folder, "judge", "run", "--model", f"{url}#judging", "-o", "judged"),
            "judged by another": command(folder, "judge", "run", "--model", f"{url}#judging-2", "-o", "other"),
        }
        bare.append(bare_aiohttp(url, 128)(sample, sample))
    steps["reported"] = command(folder, "report", "judged", "-o", "report")
    steps["compared"] = command(folder, "compare", "judged", "other", "-o", "compared")
    html = folder / "report" / "report.html"
    rate = sum(one.calls for one in bare) / sum(one.wall for one in bare)
    return {
        "answers": calls,
        "steps": {name: step._asdict() for name, step in steps.items()},
        "bare_aiohttp_calls_per_second": rate,
        "ratios": {name: calls / steps[name].wall / rate for name in ("answered", "judged", "judged by another")},
        "html_mib": html.stat().st_size / 2**20,
        "browser": read_in_browser(html.resolve(), questions),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="answers by the hundred thousand: judged, reported, read")
    parser.add_argument("--models", type=int, default=10)
    parser.add_argument("--conditions", type=int, default=10)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--folder", type=Path, help="keep everything here")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        found = measure(options.models, options.conditions, options.questions, folder.resolve())
    if options.json:
        print(json.dumps(found))
        return
    steps = found["steps"]
    print(
        f"\n{found['answers']:,} answers{'':15}{'wall s':>9}{'CPU s':>9}{'peak MiB':>10}{'calls/s':>10}"
        f"{'to aiohttp':>12}"
    )
    for name, row in steps.items():
        rate = (
            f"{found['answers'] / row['wall']:10,.0f}{found['ratios'][name]:12.2f}" if name in found["ratios"] else ""
        )
        print(f"{name:30}{row['wall']:9.1f}{row['cpu']:9.1f}{row['peak']:10.0f}{rate}")
    print(f"bare aiohttp: {found['bare_aiohttp_calls_per_second']:,.0f} calls/s")
    print(f"report.html: {found['html_mib']:.1f} MiB")
    for name, value in found["browser"].items():
        print(f"browser, {name}: {value:.2f}")
    within = max(row["peak"] for row in steps.values()) < GOAL_MEMORY
    quick = found["browser"].get("usable", 0.0) < GOAL_SECONDS
    print(f"goal: under {GOAL_MEMORY:,} MiB each: {'met' if within else 'NOT MET'}")
    print(f"goal: usable within {GOAL_SECONDS:.0f} s: {'met' if quick else 'NOT MET'}")


if __name__ == "__main__":
    main()
