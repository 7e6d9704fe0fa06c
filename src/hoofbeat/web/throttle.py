"""How often somebody may try a secret that is wrong."""

from __future__ import annotations

import ipaddress
import threading
import time
from collections import deque
from collections.abc import Callable

__all__ = ["Throttle"]

_MINUTE = 60.0
_MAX_ADDRESSES = 4096


class Throttle:
    """Counts wrong tries of the last minute, per address and in all; whoever is over the limit has to wait.

    Right tries don't count: a whole clinic behind one address may come in at once.
    """

    def __init__(self, per_address: int, in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_address, self._in_all, self._clock = per_address, in_all, clock
        self._tries: dict[str, deque[float]] = {}
        self._all: deque[float] = deque()
        self._lock = threading.Lock()

    def wait(self, address: str) -> int:
        """Seconds until this address may try again; 0 when it may now."""
        with self._lock:
            now = self._clock()
            own = _recent(self._tries.get(_network(address), deque()), now)
            everyone = _recent(self._all, now)
            left = 0.0
            if len(own) >= self._per_address:
                left = own[-self._per_address] + _MINUTE - now
            if len(everyone) >= self._in_all:
                left = max(left, everyone[-self._in_all] + _MINUTE - now)
            return int(left) + 1 if left > 0 else 0

    def failed(self, address: str) -> None:
        """Count a wrong try."""
        with self._lock:
            now = self._clock()
            _recent(self._all, now).append(now)
            if len(self._tries) >= _MAX_ADDRESSES:
                self._tries = {name: tries for name, tries in self._tries.items() if _recent(tries, now)}
            _recent(self._tries.setdefault(_network(address), deque()), now).append(now)


def _recent(tries: deque[float], now: float) -> deque[float]:
    while tries and tries[0] <= now - _MINUTE:
        tries.popleft()
    return tries


def _network(address: str) -> str:
    """An address as it is counted: one customer has a whole /64 of IPv6."""
    try:
        known = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(ipaddress.ip_network((known, 64), strict=False)) if known.version == 6 else address
