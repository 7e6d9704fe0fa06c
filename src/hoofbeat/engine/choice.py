"""Which engine a command runs on: chosen in one place, found by every stage.

The choice is a context variable: stages lie deep below the command, and an argument through all of them would be the
same everywhere. Threads that a call starts with a copy of its context have it as well.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hoofbeat.errors import UsageError

if TYPE_CHECKING:
    from hoofbeat.engine.engine import Engine

_engine: contextvars.ContextVar[Engine | None] = contextvars.ContextVar("hoofbeat_engine", default=None)


def current_engine() -> Engine:
    """The engine that work runs on now: this machine, unless `running_on` says otherwise."""
    return _engine.get() or _engine_for("local")


@contextmanager
def running_on(where: str) -> Iterator[Engine]:
    """Run what is called inside on `local`, on `ray`, or on the cluster at `ray://HEAD:10001`.

    `ray` joins the cluster that `RAY_ADDRESS` names or that runs on this machine, else it starts one here. The cluster
    is joined when there is work for it, and left at the end.
    """
    engine = _engine_for(where)
    token = _engine.set(engine)
    try:
        yield engine
    finally:
        _engine.reset(token)
        engine.close()


def _engine_for(where: str) -> Engine:
    if where == "local":
        from hoofbeat.engine.local_engine import LocalEngine  # noqa: PLC0415 - only for work

        return LocalEngine()
    if where == "ray" or where.startswith("ray://"):
        from hoofbeat.engine.ray_engine import RayEngine  # noqa: PLC0415 - only for work on a cluster

        return RayEngine("" if where == "ray" else where)
    raise UsageError(f"work can't run on {where!r}", fix="write local, ray, or ray://HEAD:10001")
