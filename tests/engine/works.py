"""Work for the tests of the engines: functions that other processes can load."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from hoofbeat.errors import InputError


def square(number: int) -> int:
    return number * number


def slow_square(number: int) -> int:
    time.sleep(0.2)
    return number * number


def refuse(number: int) -> int:
    if number == 3:
        raise InputError("three is no good", where="part 3", fix="leave it out")
    return number


def broken(number: int) -> float:
    return 1 / (number - 2)


class KillsOnce:
    """Squares; the process that first works on a part of this number is killed."""

    def __init__(self, mark: Path, number: int, *, always: bool = False) -> None:
        self.mark, self.number, self.always = mark, number, always

    def __call__(self, number: int) -> int:
        if number == self.number and (self.always or not self.mark.exists()):
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return number * number


def gpu_numbers(_: object) -> list[str]:
    """The GPUs that Ray has given to this worker."""
    import ray  # noqa: PLC0415 - an extra

    return [str(each) for each in ray.get_runtime_context().get_accelerator_ids()["GPU"]]


def lose_the_owner(_: object) -> None:
    """What Ray raises inside a worker when the command that sent it work is gone."""
    from ray.exceptions import OwnerDiedError  # noqa: PLC0415 - an extra

    raise OwnerDiedError("00ff", None, "")
