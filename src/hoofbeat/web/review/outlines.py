"""A study's items without what they show: counts, queues and plans need no texts, which may be whole documents."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from msgspec.structs import replace

from hoofbeat.web.review.records import Item

if TYPE_CHECKING:
    from hoofbeat.web.review.desk import Desk

__all__ = ["Outlines"]


class Outlines:
    """The outlines of studies' items, read again only when items were added: those that are there never change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[int, list[Item]]] = {}

    def of(self, desk: Desk, study: str) -> list[Item]:
        """The items in their order, each without what it shows."""
        last = desk.trail(study=study, what="items added", newest=True, limit=1)
        stamp = last[0].id if last else 0
        with self._lock:
            kept = self._kept.get(study)
            if kept is None or kept[0] != stamp or not kept[1]:
                kept = (stamp, [replace(item, shown=()) for item in desk.items(study)])
                self._kept[study] = kept
            return kept[1]
