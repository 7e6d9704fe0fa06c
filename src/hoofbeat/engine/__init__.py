"""Where work runs: on this machine, or on a Ray cluster. The one seam for every stage whose work splits into parts.

A stage says what is to be done with a part and gives the parts; `current_engine().map(work, parts)` gives the results
in the order of the parts. Order decides, never arrival: the results are the same at any number of workers, here and on
a cluster. Placement, retries and spilling on a cluster are Ray's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.engine.choice import current_engine, running_on
    from hoofbeat.engine.engine import Engine, PartGuard, available_cores
    from hoofbeat.engine.worker import beat

__all__ = ["Engine", "PartGuard", "available_cores", "beat", "current_engine", "running_on"]

__getattr__ = lazy_names(
    __name__,
    {
        "choice": "current_engine running_on",
        "engine": "Engine PartGuard available_cores",
        "worker": "beat",
    },
)
