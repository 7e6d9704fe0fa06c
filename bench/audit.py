"""An audit of the paper's size against a stub endpoint: memory, throughput, and findings over millions of pairs.

    python -m bench.audit [--scale 1] [--sources 102] [--questions 1115] [--answers 48056] [--keep FOLDER]

Answers are given: 48,056 invented ones, the other sources silent, so that of 5.7 million pairs 1.2 million go to the
judge, a stub in a process of its own. Printed are the peak memory of the audit's process (goal: under 2 GiB), its
calls a second beside a bare aiohttp loop that makes calls of the same size and keeps nothing (before and after, the
mean of both), and the seconds that the findings take over the finished table. The same command over the filled ledger
is what a command costs that was killed at the very end. Last, what share of one core the client takes where the stub
gives 500 and 1,000 answers a second and no more, which is more than most judges do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from bench.client import Timing, in_flight, stub, timed
from hoofbeat.audit import Audit, AuditPlan, audit_sources
from hoofbeat.audit.answers_file import SourceAnswer
from hoofbeat.audit.findings.pair_arrays import counts_by, label_counts
from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.findings.source_profiles import outlier_sources, pair_rates
from hoofbeat.audit.pair_judge import comparison_request
from hoofbeat.models import ChatRequest, load_model
from hoofbeat.models.pacing import Pacer
from hoofbeat.prompts import load_pack
from hoofbeat.records import Question
from hoofbeat.store.call_ledger import Ledger

PACK = load_pack("transplant")
RATES = (500, 1000)
GOAL_GIB = 2.0
CALLS_A_QUESTION = 1080
SPREAD = 18.9  # of how many sources address a question: with it, as many pairs are judged as in the paper
GROUPS = ("heart", "intestine", "kidney", "liver", "lung", "general")
SYLLABLES = ("ba", "de", "fi", "go", "hu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu")


def invented(rng: random.Random, words: int) -> str:
    return " ".join("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(words)) + "."


def addressing(rng: random.Random, questions: int, sources: int, answers: int) -> list[int]:
    """How many sources address each question; together so many answers."""
    mean = answers / questions
    counts = [min(sources, max(0, round(rng.gauss(mean, SPREAD * sources / 102)))) for _ in range(questions)]
    while (left := answers - sum(counts)) != 0:
        place = rng.randrange(questions)
        counts[place] = min(sources, max(0, counts[place] + (1 if left > 0 else -1)))
    return counts


def a_plan(sources: int, questions: int, answers: int, seed: int) -> AuditPlan:
    rng = random.Random(seed)
    names = [f"source-{number:03}" for number in range(sources)]
    asked = [
        Question(id=f"q{number:04}", text=invented(rng, 18), facets={"group": GROUPS[number % len(GROUPS)]})
        for number in range(questions)
    ]
    given = []
    for question, count in zip(asked, addressing(rng, questions, sources, answers), strict=True):
        speaking = set(rng.sample(names, count))
        given += [
            SourceAnswer(
                question=question.id,
                source=name,
                text=invented(rng, 60) if name in speaking else "",
                absent=name not in speaking,
            )
            for name in names
        ]
    return AuditPlan(
        questions=asked, pack=PACK, given=given, given_sources=names, settings={"line": "given"}, seed=seed
    )


def bare_loop(url: str, width: int, request: ChatRequest, calls: int) -> Timing:
    """So many calls of this size, and nothing else."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    form = {"type": "json_schema", "json_schema": {"name": "output", "strict": True, "schema": request.schema}}

    def body(number: int) -> dict[str, Any]:
        user = {**messages[-1], "content": f"{messages[-1]['content']} {number}"}
        return {
            "model": "comparing",
            "messages": [*messages[:-1], user],
            "max_tokens": request.max_tokens,
            "temperature": 0.0,
            "response_format": form,
        }

    async def go() -> None:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

            async def one(number: int) -> None:
                async with session.post(f"{url}/chat/completions", json=body(number)) as response:
                    answer = await response.json()
                    assert json.loads(answer["choices"][0]["message"]["content"])["classification"]

            with timed(calls, times):
                await in_flight(0, calls, width, one)

    times: list[Timing] = []
    asyncio.run(go())
    return times[0]


class Steps:
    """Progress on standard output, now and then."""

    def __init__(self) -> None:
        self._done, self._told = 0, time.monotonic()

    @contextmanager
    def task(self, title: str, total: int | None) -> Iterator[Steps]:
        self._done, self._total, self._title, self._began = 0, total or 0, title, time.monotonic()
        yield self
        print(f"  {title}: {self._done:,} in {time.monotonic() - self._began:.1f} s", flush=True)

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        if time.monotonic() - self._told > 30:
            self._told = time.monotonic()
            print(f"  {self._title}: {self._done:,} of {self._total:,}", flush=True)

    def note(self, text: str) -> None:
        pass


def gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def findings(audit: Audit) -> dict[str, float]:
    """Seconds of each finding over the whole table."""
    questions = audit.questions
    asked: dict[str, Callable[[], object]] = {
        "label_counts": lambda: label_counts(audit.frame(), questions, FIVE_RELATIONS),
        "counts_by group": lambda: counts_by(audit.frame(), questions, "group", FIVE_RELATIONS),
        "odd_one_out": lambda: outlier_sources(audit.frame(), FIVE_RELATIONS),
        "pair_rates": lambda: pair_rates(audit.frame(), FIVE_RELATIONS),
    }
    seconds = {}
    for name, work in asked.items():
        began = time.perf_counter()
        work()
        seconds[name] = time.perf_counter() - began
    return seconds


def measure(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    sizes = options.sources, round(options.questions * options.scale), round(options.answers * options.scale)
    plan = a_plan(*sizes, options.seed)
    assert plan.given is not None
    texts = [answer.text for answer in plan.given if answer.text][:2]
    sample = comparison_request(plan.questions[0], texts[0], texts[1], PACK)
    with stub() as url, Ledger(folder / "ledger.sqlite") as ledger:
        width, calls = options.in_flight, options.bare
        before = bare_loop(url, width, sample, calls)
        model = load_model(f"{url}#comparing", ledger=ledger)
        model.pacer = Pacer(start=width, max_in_flight=width)
        wall, cpu = time.perf_counter(), time.process_time()
        artefact = audit_sources(plan, model, model, folder / "audit", inputs=[], progress=Steps())
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        peak = gib()
        after = bare_loop(url, width, sample, calls)
        again = time.perf_counter()
        replay = load_model(f"{url}#comparing", ledger=ledger)
        repeated = audit_sources(plan, replay, replay, folder / "again", inputs=[])
        again = time.perf_counter() - again
        same = artefact.manifest.files == repeated.manifest.files and replay.made == 0
    bare_rate = statistics.mean(each.calls / each.wall for each in (before, after))
    bare_cpu = statistics.mean(each.cpu / each.calls for each in (before, after))
    audit = Audit(artefact)
    return {
        "sources": sizes[0],
        "questions": sizes[1],
        "answers": sizes[2],
        "pairs": artefact.manifest.counts.kept,
        "judged": model.made,
        "failed": artefact.manifest.counts.failed,
        "seconds": wall,
        "calls_per_second": model.made / wall,
        "bare_per_second": bare_rate,
        "ratio": model.made / wall / bare_rate,
        "cpu_ratio": bare_cpu / (cpu / max(1, model.made)),
        "cpu_ms_per_call": 1000 * cpu / max(1, model.made),
        "peak_gib": peak,
        "met": peak < GOAL_GIB,
        "again_seconds": again,
        "again_same_bytes": same,
        "ledger_mib": (folder / "ledger.sqlite").stat().st_size / 2**20,
        "table_mib": artefact.file("comparisons.parquet").stat().st_size / 2**20,
        "findings": findings(audit),
        "at_rates": [at_rate(rate, options.throttled, options.in_flight, options.seed) for rate in RATES],
    }


def at_rate(rate: int, seconds: float, width: int, seed: int) -> dict[str, float]:
    """An audit of a few seconds against a stub that gives so many answers a second: what the client takes for it."""
    questions = max(1, round(rate * seconds / CALLS_A_QUESTION))
    plan = a_plan(102, questions, 43 * questions, seed)
    with tempfile.TemporaryDirectory() as folder, stub(rate) as url, Ledger(Path(folder) / "ledger.sqlite") as ledger:
        model = load_model(f"{url}#comparing", ledger=ledger)
        model.pacer = Pacer(start=width, max_in_flight=width)
        wall, cpu = time.perf_counter(), time.process_time()
        audit_sources(plan, model, model, Path(folder) / "audit", inputs=[])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"asked": rate, "calls_per_second": model.made / wall, "core": cpu / wall}


def show(found: dict[str, Any]) -> None:
    print(
        f"{found['sources']} sources, {found['questions']:,} questions, {found['answers']:,} answers: "
        f"{found['pairs']:,} pairs, {found['judged']:,} judged, {found['failed']:,} failed"
    )
    print(f"audit            {found['seconds']:10.1f} s   {found['calls_per_second']:8,.0f} calls/s")
    print(f"bare aiohttp                   {found['bare_per_second']:8,.0f} calls/s")
    print(f"audit to aiohttp {found['ratio']:10.2f}     by CPU {found['cpu_ratio']:.2f}")
    print(f"CPU a call       {found['cpu_ms_per_call']:10.3f} ms")
    goal = f"goal: under {GOAL_GIB:g}: {'met' if found['met'] else 'NOT MET'}"
    print(f"peak memory      {found['peak_gib']:10.2f} GiB ({goal})")
    print(f"from the ledger  {found['again_seconds']:10.1f} s   same bytes, no call: {found['again_same_bytes']}")
    print(f"ledger {found['ledger_mib']:,.0f} MiB, table {found['table_mib']:,.1f} MiB")
    for name, seconds in found["findings"].items():
        print(f"{name:17}{seconds:10.2f} s")
    for each in found["at_rates"]:
        share = f"{100 * each['core']:.0f}% of one core"
        print(
            f"a stub of {each['asked']:,} answers/s: {each['calls_per_second']:,.0f} calls/s, the client takes {share}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="an audit of the paper's size against a stub endpoint")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the questions and answers")
    parser.add_argument("--sources", type=int, default=102)
    parser.add_argument("--questions", type=int, default=1115)
    parser.add_argument("--answers", type=int, default=48_056)
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--bare", type=int, default=10_000, help="calls of each bare aiohttp round")
    parser.add_argument("--throttled", type=float, default=15.0, help="seconds of each round against a slow stub")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="write ledger and audit here, and leave them")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        found = measure(options, options.keep)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(options, Path(folder))
    if options.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
