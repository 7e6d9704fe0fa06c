"""What a folder of corpus statistics holds: records that reports read without what computes them."""

from __future__ import annotations

from msgspec import Struct

KIND = "stats"
NO_TOKENIZER = "none"
UNKNOWN = "unknown"


class Quantiles(Struct, frozen=True, kw_only=True):
    """A distribution in the numbers the papers print."""

    count: int
    total: int
    minimum: int
    maximum: int
    mean: float
    median: float
    p75: float
    p95: float


class Share(Struct, frozen=True, kw_only=True):
    """One row of a table: a value, how many documents have it, and their share of all documents."""

    value: str
    documents: int
    share: float


class CorpusStats(Struct, frozen=True, kw_only=True):
    """What a corpus holds.

    `tables` by name (year, venue, licence, kind, language, figures), `specialties` by scheme, `lengths` by unit.
    `tokenizer` names what counted the tokens; without one there is no token row.
    """

    documents: int
    tokenizer: str
    tables: dict[str, tuple[Share, ...]]
    specialties: dict[str, tuple[Share, ...]]
    lengths: dict[str, Quantiles]
    figures: Quantiles | None

    def rows(self, name: str) -> tuple[Share, ...]:
        """The rows of one table or scheme."""
        return self.tables[name] if name in self.tables else self.specialties[name]
