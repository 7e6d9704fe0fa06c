"""Several at once, and what goes wrong amid a save: nothing is lost, nothing is doubled, on both databases."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import event

from hoofbeat.review.review_records import ReviewRefusalError
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web import create_app
from tests.review.stores import make_study
from tests.web.review_site import store_site
from tests.web.support import serving
from tests.web.visitors import Visitor

COUNT_UP = """
import sys
from hoofbeat.review.review_store import ReviewStore
url, person, name, times = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
with ReviewStore.open(url) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for item in ("item-0", name):
        done = tries = 0
        while done < times:
            label = store.label("study", item, person)
            count, base = (label.values["count"], label.version) if label else (0, 0)
            tries += 1
            saved = store.save("study", item, person, values={"count": count + 1}, state="draft",
                              seconds=0, base=base, request=f"{name}-{item}-{tries}")
            done += not saved.conflict
"""

DIE_WITHIN = """
import os, signal, sys
from hoofbeat.review.review_store import ReviewStore
def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)
ReviewStore._note = die
with ReviewStore.open(sys.argv[1]) as store:
    store.save("study", "item-0", sys.argv[2], values={"half": 1}, state="done", seconds=0, base=1, request="dies")
"""

SERVE = """
import json, sys
from hoofbeat.store.folder_library import FolderLibrary
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.web.server import serve
from hoofbeat.web.site import Site
url, port = sys.argv[1], int(sys.argv[2])
def ready(told):
    print(json.dumps(told.address), flush=True)
serve(Site(library=FolderLibrary([]), store=ReviewStore.open(url)), port=port, ready=ready)
"""


def count_up(store: ReviewStore, person: str, item: str, name: str, times: int) -> int:
    """Add one `times` times to what stands; a save that is out of date begins again. How many were out of date."""
    conflicts = done = 0
    while done < times:
        label = store.label("study", item, person)
        count, base = (label.values["count"], label.version) if label else (0, 0)
        saved = store.save(
            "study",
            item,
            person,
            values={"count": count + 1},
            state="draft",
            seconds=0,
            base=base,
            request=f"{name}-{done}-{conflicts}",
        )
        done, conflicts = done + (not saved.conflict), conflicts + saved.conflict
    return conflicts


def check_trail(store: ReviewStore, study: str = "study") -> None:
    """Every label is what its last line in the trail says, and its versions are all there, once each."""
    for label in store.labels(study):
        told = store.trail(study=study, item=label.item, person=label.person, limit=10_000)
        after = [event.after or {} for event in told]
        assert [each["version"] for each in after] == list(range(1, label.version + 1))
        assert (after[-1]["values"], after[-1]["state"]) == (label.values, label.state)
        assert [(event.before or {}).get("version", 0) for event in told] == list(range(label.version))
    said = {(event.item, event.person) for event in store.trail(study=study, what="saved", limit=10_000)}
    assert said == {(label.item, label.person) for label in store.labels(study)}


def test_tabs_and_people_in_many_threads(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, ben), _ = make_study(store)
        jobs = [(ada.id, "item-0", f"tab{n}") for n in range(4)]  # one person, one item, four tabs
        jobs += [(ben.id, "item-0", "ben"), (ada.id, "item-1", "other"), (ben.id, "item-2", "own")]
        start = threading.Barrier(len(jobs))

        def work(job: tuple[str, str, str]) -> int:
            start.wait(20)
            return count_up(store, job[0], job[1], job[2], 8)

        with ThreadPoolExecutor(len(jobs)) as pool:
            conflicts = sum(pool.map(work, jobs))
        counts = {(label.person, label.item): (label.values["count"], label.version) for label in store.labels("study")}
        assert counts == {
            (ada.id, "item-0"): (32, 32),
            (ben.id, "item-0"): (8, 8),
            (ada.id, "item-1"): (8, 8),
            (ben.id, "item-2"): (8, 8),
        }
        assert len(store.trail(what="saved")) == 56
        assert conflicts > 0
        check_trail(store)


def test_the_same_save_sent_by_many_at_once_is_one(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, _), _ = make_study(store)
        start = threading.Barrier(6)

        def work(_: int) -> tuple[int, bool]:
            start.wait(20)
            given: dict[str, Any] = {"values": {"count": 1}, "state": "done", "seconds": 1, "base": 0}
            saved = store.save("study", "item-0", ada.id, request="once", **given)
            return saved.label.version, saved.conflict

        with ThreadPoolExecutor(6) as pool:
            assert list(pool.map(work, range(6))) == [(1, False)] * 6
        assert len(store.trail(what="saved")) == 1


@pytest.mark.parametrize("wrong", [0, 2])
def test_saves_that_wait_together_are_committed_together_and_fail_alone(store_urls: str, wrong: int) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, ben), _ = make_study(store, items=10)
        commits: list[object] = []
        event.listen(store._database._writer, "commit", commits.append)

        def work(place: int) -> str:
            item = f"item-{place}" if place >= wrong else "none"
            given: dict[str, Any] = {"values": {"count": place}, "state": "done", "seconds": 1, "base": 0}
            try:
                return f"version {store.save('study', item, ada.id, request=f'r{place}', **given).label.version}"
            except ReviewRefusalError as err:
                return err.what

        with ThreadPoolExecutor(10) as pool:
            with store._database._turn:  # everybody comes while another writes
                futures = [pool.submit(work, place) for place in range(10)]
                while len(store._database._queue) < 10:
                    time.sleep(0.001)
            results = [future.result(60) for future in futures]
        assert results == ["there is no such item"] * wrong + ["version 1"] * (10 - wrong)
        assert {label.item: label.values["count"] for label in store.labels("study")} == {
            f"item-{place}": place for place in range(wrong, 10)
        }
        assert len(commits) == (10 - wrong if wrong else 1)
        assert store.labels("study", person=ben.id) == []
        check_trail(store)


def test_two_processes_on_one_database(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, _), _ = make_study(store)
        running = [
            subprocess.Popen(
                [sys.executable, "-c", COUNT_UP, store_urls, ada.id, name, "15"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for name in ("item-1", "item-2")
        ]
        for each in running:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in running:  # both at once
            assert each.stdin is not None
            each.stdin.write("go\n")
            each.stdin.flush()
        for each in running:
            each.communicate(timeout=120)
        assert [each.returncode for each in running] == [0, 0]
        counts = {label.item: (label.values["count"], label.version) for label in store.labels("study")}
        assert counts == {"item-0": (30, 30), "item-1": (15, 15), "item-2": (15, 15)}
        check_trail(store)


def test_a_lost_connection_and_the_same_save_again_make_one_version(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, ben), tokens = make_study(store)
        with serving(create_app(store_site(store))) as address:
            visitors = [Visitor(address) for _ in tokens]
            for visitor, token in zip(visitors, tokens, strict=True):
                assert visitor.join(token).status == 303
            for n in range(6):
                path, body = f"/api/review/study/items/item-{n}", a_save(f"r{n}", "4")
                visitors[0].post_and_hang_up(path, body)
                answer = visitors[0].post_json(path, body)
                assert answer.status == 200, answer.text
                assert answer.json()["label"]["version"] == 1
                other = visitors[1].post_json(
                    path, a_save(f"r{n}", "2")
                )  # the same id by another person is another save
                assert other.json()["label"]["values"]["medical alignment"] == "2"
            assert visitors[0].post_json("/api/review/study/items/item-0", a_save("new", "1")).status == 409
        assert [label.version for label in store.labels("study")] == [1] * 12
        assert len(store.trail(what="saved", person=ada.id)) == len(store.trail(what="saved", person=ben.id)) == 6
        check_trail(store)


def test_a_process_killed_between_label_and_trail_leaves_neither(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, (ada, _), _ = make_study(store)
        given: dict[str, Any] = {"state": "draft", "seconds": 0}
        first = store.save("study", "item-0", ada.id, values={"whole": 1}, base=0, request="r1", **given)
        died = subprocess.run([sys.executable, "-c", DIE_WITHIN, store_urls, ada.id], timeout=120, check=False)
        assert died.returncode == -signal.SIGKILL
        assert store.label("study", "item-0", ada.id) == first.label
        check_trail(store)
        again = store.save("study", "item-0", ada.id, values={"whole": 2}, base=1, request="dies", **given)
        assert (again.conflict, again.label.version) == (False, 2)
        check_trail(store)


def a_save(request: str, value: str, base: int = 0) -> dict[str, Any]:
    values = {"medical alignment": value, "need for expertise": value}
    return {"values": values, "state": "done", "reason": "", "seconds": 3.5, "base": base, "request": request}


@contextmanager
def server_process(url: str, port: int = 0) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of its own process, and its address; killed at the end, if it still runs."""
    running = subprocess.Popen([sys.executable, "-c", SERVE, url, str(port)], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        yield running, json.loads(running.stdout.readline())
    finally:
        running.kill()
        running.communicate(timeout=30)


def test_a_server_killed_amid_saves_has_all_it_said_it_had(store_urls: str) -> None:
    with ReviewStore.open(store_urls) as store:
        _, people, tokens = make_study(store, items=3, people=["reviewer"] * 4)
    acknowledged: dict[tuple[str, str], dict[str, Any]] = {}
    sent: dict[tuple[str, str], dict[str, Any]] = {}
    with server_process(store_urls) as (running, address):
        visitors = [Visitor(address) for _ in tokens]
        for visitor, token in zip(visitors, tokens, strict=True):
            visitor.join(token)
        begun = threading.Event()

        def work(place: int) -> None:
            for n in range(10_000):
                item = f"item-{n % 3}"
                key = (item, people[place].id)
                last = acknowledged.get(key)
                body = a_save(f"k{n}", str(n % 5 + 1), base=last["base"] + 1 if last else 0)
                sent[key] = body
                try:
                    answer = visitors[place].post_json(f"/api/review/study/items/{item}", body)
                except (OSError, http.client.HTTPException):
                    return
                assert answer.status == 200, answer.text
                acknowledged[key] = body
                if n > 4:
                    begun.set()

        threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
        for thread in threads:
            thread.start()
        assert begun.wait(60)
        time.sleep(0.2)
        os.kill(running.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(60)
    assert len(acknowledged) >= 4
    with ReviewStore.open(store_urls) as store:
        check_trail(store)
        kept = {(label.item, label.person): label for label in store.labels("study")}
        for key, body in acknowledged.items():
            label = kept[key]
            # What stands is the save that was answered, or the one after it, whose answer never came.
            known = {body["base"] + 1: body["values"], sent[key]["base"] + 1: sent[key]["values"]}
            assert label.values == known[label.version]
    with server_process(store_urls, int(address.rpartition(":")[2])) as (_, again):
        assert again == address
        for place, person in enumerate(people):  # open pages go on: cookies and tokens still hold
            for key in [key for key in sent if key[1] == person.id]:
                answer = visitors[place].post_json(f"/api/review/study/items/{key[0]}", sent[key])
                assert answer.status == 200, answer.text
                assert answer.json()["label"]["version"] == sent[key]["base"] + 1
    with ReviewStore.open(store_urls) as store:
        check_trail(store)
        for key, body in sent.items():
            label_now = store.label("study", *key)
            assert label_now is not None
            assert (label_now.version, label_now.values) == (body["base"] + 1, body["values"])
