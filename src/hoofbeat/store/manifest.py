"""The manifest: what an artefact is and everything needed to make it again.

It holds no clock time and no machine path, so that the same inputs give the same bytes; how long a run took is told
by the command, not stored with the result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, field

SCHEMA_VERSION = 1


class InputRef(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An input: its name, and the hash of its content (for an artefact, of the list of its files' hashes)."""

    name: str
    sha256: str
    kind: str = ""


class Counts(Struct, frozen=True, kw_only=True):
    """How many items came through, how many were rejected and why, how many failed and why."""

    kept: int = 0
    rejected: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)


def count_outcomes(failures: Iterable[str | None]) -> Counts:
    """Counts of a stage from each item's failure kind (None: it succeeded)."""
    tally = Counter(failures)
    kept = tally.pop(None, 0)
    kinds = {str(kind): count for kind, count in sorted(tally.items(), key=lambda pair: str(pair[0]))}
    return Counts(kept=kept, failed=sum(kinds.values()), failures=kinds)


class Cost(Struct, frozen=True, kw_only=True):
    """What the artefact's model calls cost, whether they were made now or taken from the ledger."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """Both costs together."""
        return Cost(
            calls=self.calls + other.calls,
            tokens_in=self.tokens_in + other.tokens_in,
            tokens_out=self.tokens_out + other.tokens_out,
            money=self.money + other.money,
        )


class Manifest(Struct, frozen=True, kw_only=True):
    """`manifest.json` of an artefact folder. `costs` divides `cost` by model, where several were called."""

    kind: str
    schema: int = SCHEMA_VERSION
    title: str = ""
    command: list[str] = field(default_factory=list)
    version: str = ""
    revision: str = ""
    inputs: list[InputRef] = field(default_factory=list)
    settings: dict[str, object] = field(default_factory=dict)
    seeds: dict[str, int] = field(default_factory=dict)
    models: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, str] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    cost: Cost = field(default_factory=Cost)
    costs: dict[str, Cost] = field(default_factory=dict)
    metrics: dict[str, object] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notice: str = "Research software. Not for clinical use."
