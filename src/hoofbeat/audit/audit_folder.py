"""An audit's folder, opened: its questions and sources at once, its answers and pairs when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from hoofbeat.audit.pair_table import COLUMNS, TableEnums, comparison_frame, read_comparisons, scan_table
from hoofbeat.errors import UsageError
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.prompts.packs import decode_pack
from hoofbeat.records import Answer, Comparison, Facets, Question
from hoofbeat.store import open_artefact
from hoofbeat.store.artefact_folder import ArtefactFolder
from hoofbeat.store.atomic_files import read_bytes
from hoofbeat.store.tables import read_jsonl

if TYPE_CHECKING:
    import polars

KIND = "audit"
PAIRS = "comparisons.parquet"
ORDER = "order.jsonl"
ECONOMY = "economy.jsonl"
PACK = "pack.json"
OLD_PAIRS = "comparisons.jsonl"


class AuditSource(Struct, frozen=True, kw_only=True):
    """One audited source."""

    id: str
    title: str
    facets: Facets


class OrderProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair judged twice, the second time with its answers exchanged; a label that is missing is empty."""

    question: str
    a: str
    b: str
    label: str
    swapped: str = ""
    failure: str = ""


class EconomyProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair whose label was spread over its group, judged for real; a label that is missing is empty."""

    question: str
    a: str
    b: str
    spread: str
    judged: str = ""
    failure: str = ""


class Audit(ArtefactFolder):
    """An opened audit. Lists are read when first asked for; iterators and the frame hold little at a time."""

    @staticmethod
    def open(path: Path) -> Audit:
        """Open an audit folder."""
        return Audit(open_artefact(path, KIND))

    @cached_property
    def questions(self) -> list[Question]:
        """The questions that were asked."""
        return list(read_jsonl(self.artefact.file("questions.jsonl"), Question))

    @cached_property
    def sources(self) -> list[AuditSource]:
        """The sources that were asked."""
        return list(read_jsonl(self.artefact.file("sources.jsonl"), AuditSource))

    @cached_property
    def answers(self) -> list[Answer]:
        """Every answer of every source, all of them in memory."""
        return list(self.each_answer())

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """Every pair, all of them in memory."""
        return list(self.each_comparison())

    @cached_property
    def pack(self) -> Pack:
        """The domain pack the audit was made with: the one kept in its folder, or in older ones the one it names."""
        if self.artefact.has(PACK):
            path = self.artefact.file(PACK)
            return decode_pack(read_bytes(path), str(path))
        return load_pack(str(self.artefact.manifest.settings.get("pack", "")).partition("@")[0])

    @property
    def mode(self) -> str:
        """How pairs were judged: `full`, or `economy`."""
        return str(self.artefact.manifest.settings.get("mode", "full"))

    @cached_property
    def order_probes(self) -> list[OrderProbe]:
        """Pairs that were judged again with their answers exchanged; none where no probe was asked for."""
        return list(read_jsonl(self.artefact.file(ORDER), OrderProbe)) if self.artefact.has(ORDER) else []

    @cached_property
    def economy_probes(self) -> list[EconomyProbe]:
        """Labels that economy spread and that were then judged for real."""
        return list(read_jsonl(self.artefact.file(ECONOMY), EconomyProbe)) if self.artefact.has(ECONOMY) else []

    def each_answer(self) -> Iterator[Answer]:
        """Every answer, one at a time."""
        return read_jsonl(self.artefact.file("answers.jsonl"), Answer)

    def each_comparison(self) -> Iterator[Comparison]:
        """Every pair, some at a time."""
        if self.artefact.has(PAIRS):
            return read_comparisons(self.artefact.file(PAIRS))
        return map(self._with_basis, read_jsonl(self.artefact.file(OLD_PAIRS), Comparison))

    def _with_basis(self, item: Comparison) -> Comparison:
        """A pair of an older version, which did not say how its label came about: a silent side, or a call."""
        if item.basis:
            return item
        return msgspec.structs.replace(item, basis="absent" if item.label == self._absent else "judged")

    @cached_property
    def _absent(self) -> str:
        try:
            return self.pack.absent
        except UsageError:  # a pack this version does not know
            return "Absent"

    def frame(self, columns: Sequence[str] | None = None) -> polars.LazyFrame:
        """The table of pairs as a lazy frame, or some of its columns. A folder of an older version is read whole."""
        frame = scan_table(self.artefact.file(PAIRS)) if self.artefact.has(PAIRS) else self._old_frame.lazy()
        return frame if columns is None else frame.select(list(columns))

    @cached_property
    def _old_frame(self) -> polars.DataFrame:
        rows = self.comparisons
        try:
            labels, levels = [label.name for label in self.pack.labels], self.pack.significance_levels
        except UsageError:
            labels, levels = [], []
        kinds = TableEnums.of(
            questions=(item.question for item in rows),
            sources=(name for item in rows for name in (item.a, item.b)),
            labels=list(dict.fromkeys([*labels, *sorted({item.label for item in rows if item.label})])),
            levels=list(dict.fromkeys([*levels, *sorted({item.significance for item in rows if item.significance})])),
            judges={item.judge for item in rows if item.judge},
        )
        return comparison_frame(rows, kinds).select(COLUMNS)
