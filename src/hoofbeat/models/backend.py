"""The one seam: what stands behind a model name. Everything else in Hoofbeat speaks to a `Backend` through `Model`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hoofbeat.models.requests import ChatRequest, Likelihood, Reply
from hoofbeat.models.wire import Trouble


class ReplyPending(Exception):
    """The request was written down and will be answered later (batch folders)."""


class Backend(Protocol):
    """One attempt at a time: no retries, no ledger, no budget; those are `Model`'s."""

    identity: str
    max_in_flight: int

    async def open(self) -> None:
        """Get ready inside the running event loop."""

    async def close(self) -> None:
        """Let go of connections; for batch folders, write the requests that wait."""

    async def abandon(self) -> None:
        """Let go of connections after an error or Ctrl-C; nothing is written."""

    async def chat(self, request: ChatRequest, key: str) -> Reply | Trouble:
        """Continue a conversation."""
        ...

    async def loglikelihood(self, context: str, continuation: str, *, exact: bool = False) -> Likelihood | Trouble:
        """The log-probability of a continuation."""
        ...

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32] | Trouble:
        """Embed texts, one row each."""
        ...
