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
