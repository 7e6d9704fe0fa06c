"""Artefact folders, their tables, and the ledger of model calls: everything Hoofbeat keeps on disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hoofbeat.lazy import lazy_names

if TYPE_CHECKING:
    from hoofbeat.store.artefact import (
        Artefact,
        ArtefactDraft,
        Cost,
        Counts,
        InputRef,
        Manifest,
        check_target,
        create,
        open_artefact,
    )
    from hoofbeat.store.call_ledger import Ledger
    from hoofbeat.store.ledger_base import CallLedger
    from hoofbeat.store.ledger_places import open_ledger

__all__ = [
    "Artefact", "ArtefactDraft", "CallLedger", "Cost", "Counts", "InputRef", "Ledger", "Manifest", "check_target",
    "create", "open_artefact", "open_ledger",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    {
        "artefact": "Artefact ArtefactDraft Cost Counts InputRef Manifest check_target create open_artefact",
        "call_ledger": "Ledger",
        "ledger_base": "CallLedger",
        "ledger_places": "open_ledger",
    },
)
