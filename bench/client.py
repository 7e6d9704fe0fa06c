"""What a model call costs on the client's side, beside others doing the same.

    python -m bench.client [--calls 4000] [--in-flight 128] [--rounds 5] [--json]

Every client asks the same stub server (a process of its own) different questions with 128 in flight, in rounds that
take turns, so that a busy machine slows all alike. Hoofbeat's figure includes its ledger: every reply is in the SQLite
file before it counts. Its level is pinned at `--in-flight` like the others'; in use it starts at 8 and grows. The goal
is half of bare aiohttp or better. A fleet is the same client with an alias that names four servers.
openai-python and Inspect are measured where they are installed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from hoofbeat.models import CallResult, ChatRequest, Config, Message, ModelSettings, load_model
from hoofbeat.models.pacing import Pacer
from hoofbeat.store.call_ledger import Ledger

GOAL = 0.5
FLEET = 4
QUESTION = (
    "Case {number}: a 54-year-old man has fever, a new heart murmur and three positive blood cultures. Reference: "
    "start intravenous antibiotics and arrange echocardiography. Answer: antibiotics now, then echo. Are they the same?"
)
SYSTEM = "You compare an answer with a reference answer to the same clinical question and give a label."


class Timing(NamedTuple):
    """One round of one client: calls, wall seconds, CPU seconds of this process."""

    calls: int
    wall: float
    cpu: float


Client = Callable[[int, int], Timing]
"""Makes so many calls, numbered from a start: `client(start, calls)`."""


@contextmanager
def stub(rate: float = 0.0) -> Iterator[str]:
    """The stub server as a process of its own, with so many answers a second (0: no limit); gives its URL."""
    command = [sys.executable, "-m", "bench.stub_server", "--rate", str(rate)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1])
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1"
    finally:
        process.terminate()
        process.wait()


@contextmanager
def timed(calls: int, into: list[Timing]) -> Iterator[None]:
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    into.append(Timing(calls, time.perf_counter() - wall, time.process_time() - cpu))


async def in_flight(start: int, calls: int, width: int, one: Callable[[int], Awaitable[object]]) -> None:
    """The plainest way to keep so many calls in flight."""
    numbers = iter(range(start, start + calls))

    async def worker() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(worker() for _ in range(width)))


def body(number: int) -> dict[str, Any]:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION.format(number=number)}]
    return {"model": "stub", "messages": messages, "max_tokens": 300, "temperature": 0.0}


def bare_aiohttp(url: str, width: int) -> Client:
    def run(start: int, calls: int) -> Timing:
        async def go() -> None:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as session:

                async def one(number: int) -> None:
                    async with session.post(f"{url}/chat/completions", json=body(number)) as response:
                        answer = await response.json()
                        assert answer["choices"][0]["message"]["content"]

                with timed(calls, times):
                    await in_flight(start, calls, width, one)

        times: list[Timing] = []
        asyncio.run(go())
        return times[0]

    return run


def hoofbeat(url: str, width: int, ledger: Ledger, *, again: bool = False, fleet: Sequence[str] = ()) -> Client:
    """The whole of `Model.run`: pacing, budget, keys, ledger; `again` asks what the ledger has already.

    `fleet` are the servers of an alias, which are asked in place of the one.
    """
    config = Config(models={"fleet": ModelSettings(name="stub", endpoints=list(fleet))} if fleet else {})

    def run(start: int, calls: int) -> Timing:
        model = load_model("fleet" if fleet else f"{url}#stub", ledger=ledger, config=config)
        model.pacer = Pacer(start=width, max_in_flight=width)
        requests = [request(number) for number in range(start, start + calls)]
        times: list[Timing] = []
        with timed(calls, times):
            results = model.run(requests, model.chat)
        assert all(isinstance(result, CallResult) for result in results)
        assert (model.made, model.cached) == ((0, calls) if again else (calls, 0))
        return times[0]

    return run


def request(number: int) -> ChatRequest:
    messages = (Message(role="system", content=SYSTEM), Message(role="user", content=QUESTION.format(number=number)))
    return ChatRequest(messages=messages, max_tokens=300)


def openai_python(url: str, width: int) -> Client:
    import openai  # noqa: PLC0415

    def run(start: int, calls: int) -> Timing:
        async def go() -> None:
            async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

                async def one(number: int) -> None:
                    answer = await client.chat.completions.create(**body(number))
                    assert answer.choices[0].message.content

                with timed(calls, times):
                    await in_flight(start, calls, width, one)

        times: list[Timing] = []
        asyncio.run(go())
        return times[0]

    return run


def inspect_ai(url: str, width: int) -> Client:
    from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, get_model  # noqa: PLC0415

    def run(start: int, calls: int) -> Timing:
        async def go() -> None:
            config = GenerateConfig(max_connections=width, max_tokens=300, temperature=0.0)
            model = get_model("openai-api/stub/stub", base_url=url, api_key="none", config=config, memoize=False)

            async def one(number: int) -> None:
                answer = await model.generate(
                    [ChatMessageSystem(content=SYSTEM), ChatMessageUser(content=QUESTION.format(number=number))]
                )
                assert answer.completion

            with timed(calls, times):
                await in_flight(start, calls, width, one)

        times: list[Timing] = []
        asyncio.run(go())
        return times[0]

    return run


def clients(url: str, width: int, ledger: Ledger, fleet: Sequence[str] = ()) -> dict[str, tuple[Client, float]]:
    """Name to client and the share of the calls it makes: the slow ones need fewer to be measured."""
    found: dict[str, tuple[Client, float]] = {
        "bare aiohttp": (bare_aiohttp(url, width), 1.0),
        "Hoofbeat, client and ledger": (hoofbeat(url, width, ledger), 1.0),
        "Hoofbeat, all from the ledger": (hoofbeat(url, width, ledger, again=True), 1.0),
    }
    if fleet:
        found[f"Hoofbeat, fleet of {len(fleet)}"] = (hoofbeat(url, width, ledger, fleet=fleet), 1.0)
    with suppress(ImportError):
        found[f"openai-python {metadata.version('openai')}"] = (openai_python(url, width), 0.25)
    with suppress(ImportError):
        metadata.version("openai")  # Inspect speaks to such an endpoint through it
        found[f"Inspect {metadata.version('inspect_ai')}"] = (inspect_ai(url, width), 0.06)
    return found


def measure(calls: int, width: int, rounds: int) -> dict[str, list[Timing]]:
    with ExitStack() as stack:
        url, *fleet = [stack.enter_context(stub()) for _ in range(1 + FLEET)]
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        ledger = stack.enter_context(Ledger(Path(folder) / "ledger.db"))
        contestants = clients(url, width, ledger, fleet)
        times: dict[str, list[Timing]] = {name: [] for name in contestants}
        for number in range(rounds + 1):
            for name, (client, share) in contestants.items():
                timing = client(number * calls, max(width, int(calls * share)) if number else width)
                if number:  # round 0 warms up
                    times[name].append(timing)
        return times


def summary(times: dict[str, list[Timing]]) -> list[dict[str, Any]]:
    """A row a client: the median over rounds, and the median of each round's ratio to bare aiohttp in that round."""
    base = times["bare aiohttp"]
    rows = []
    for name, rounds in times.items():
        pairs = list(zip(rounds, base, strict=True))
        rows.append(
            {
                "client": name,
                "calls": sum(one.calls for one in rounds),
                "calls_per_second": statistics.median(one.calls / one.wall for one in rounds),
                "cpu_ms_per_call": 1000 * statistics.median(one.cpu / one.calls for one in rounds),
                "ratio": statistics.median(one.calls / one.wall * b.wall / b.calls for one, b in pairs),
                "cpu_ratio": statistics.median(b.cpu / b.calls * one.calls / one.cpu for one, b in pairs),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="what a model call costs on the client's side")
    parser.add_argument("--calls", type=int, default=4000, help="calls a round")
    parser.add_argument("--in-flight", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = summary(measure(options.calls, options.in_flight, options.rounds))
    ratio = next(row["ratio"] for row in rows if row["client"] == "Hoofbeat, client and ledger")
    if options.json:
        print(json.dumps({"in_flight": options.in_flight, "goal": GOAL, "met": ratio >= GOAL, "rows": rows}))
        return
    print(f"{'client':32}{'calls/s':>10}{'CPU ms/call':>13}{'to aiohttp':>12}{'by CPU':>9}")
    for row in rows:
        figures = f"{row['calls_per_second']:10,.0f}{row['cpu_ms_per_call']:13.3f}{row['ratio']:12.2f}"
        figures += f"{row['cpu_ratio']:9.2f}"
        print(f"{row['client']:32}{figures}")
    print(
        f"\ngoal: Hoofbeat at {GOAL} of bare aiohttp or better: {'met' if ratio >= GOAL else 'NOT MET'} ({ratio:.2f})"
    )


if __name__ == "__main__":
    main()
