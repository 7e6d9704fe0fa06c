from __future__ import annotations

import gc
import threading

import pytest

from hoofbeat.models.model import reduce_collection


def test_the_collector_is_as_before_afterwards_also_after_an_error() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()

    def work() -> None:
        with reduce_collection():
            assert gc.get_threshold()[0] > before[0]
            assert gc.get_freeze_count() > frozen
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)


def test_cycles_are_still_collected_meanwhile() -> None:
    class Node:
        alive = 0

        def __init__(self) -> None:
            self.me = self
            Node.alive += 1

        def __del__(self) -> None:
            Node.alive -= 1

    with reduce_collection():
        for _ in range(200_000):
            Node()
        assert Node.alive < 150_000
    gc.collect()
    assert Node.alive == 0


def test_a_collector_that_is_off_or_set_otherwise_stays_so() -> None:
    before = gc.get_threshold()
    try:
        for chosen in ((0, 10, 10), (900_000, 5, 5)):
            gc.set_threshold(*chosen)
            with reduce_collection():
                assert gc.get_threshold() == chosen
            assert gc.get_threshold() == chosen
    finally:
        gc.set_threshold(*before)


def test_another_thread_leaves_it_alone() -> None:
    seen = []

    def work() -> None:
        with reduce_collection():
            seen.append(gc.get_threshold())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [gc.get_threshold()]
