"""An audit's folder, opened: its answers and pairs are read when they are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from hoofbeat.audit.pair_table import read_comparisons, scan_table
from hoofbeat.audit.source_names import AuditSource, SourceNames
from hoofbeat.errors import InputError, UsageError
from hoofbeat.prompts import Pack, load_pack
from hoofbeat.prompts.packs import decode_pack
from hoofbeat.records import Answer, Comparison, Question
from hoofbeat.store import Manifest, open_artefact
from hoofbeat.store.artefact import ArtefactFolder
from hoofbeat.store.files import read_bytes
from hoofbeat.store.tables import read_jsonl

if TYPE_CHECKING:
    import polars

KIND = "audit"
PAIRS = "comparisons.parquet"
ORDER = "order.jsonl"
ECONOMY = "economy.jsonl"
POSITIONS = "positions.jsonl"
PACK = "pack.json"


class OrderProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair judged twice, the second time with its answers exchanged; a label that is missing is empty."""

    question: str
    a: str
    b: str
    label: str
    swapped: str = ""
    failure: str = ""


class EconomyProbe(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pair whose label was carried from another pair, judged for the check; a label that is missing is empty."""

    question: str
    a: str
    b: str
    carried: str
    judged: str = ""
    failure: str = ""


class HeldPosition(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A position that some sources hold on a question, in one line; answers that were not sorted have no line."""

    question: str
    line: str = ""
    sources: tuple[str, ...]


class Audit(ArtefactFolder):
    """An opened audit. Lists are read when first asked for; iterators and the frame hold little at a time."""

    @staticmethod
    def open(path: str | Path) -> Audit:
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
        """The domain pack the audit was made with: the one kept in its folder, else the one it names."""
        if self.artefact.has(PACK):
            path = self.artefact.file(PACK)
            return decode_pack(read_bytes(path), str(path))
        return load_pack(str(self.artefact.manifest.settings.get("pack", "")).partition("@")[0])

    @cached_property
    def names(self) -> SourceNames:
        """What people call the sources, by the facet that the pack names."""
        try:
            return SourceNames(self.sources, self.pack.source_facet, self.pack.group_facet)
        except UsageError:  # a pack that is not here any more
            return SourceNames(self.sources)

    @property
    def judges(self) -> list[str]:
        """The judges' identities, in the order of their votes."""
        return judge_identities(self.artefact.manifest)

    @property
    def mode(self) -> str:
        """How pairs were judged: `full`, or `economy`."""
        return str(self.artefact.manifest.settings.get("mode", "full"))

    @property
    def risk(self) -> float:
        """The share of carried labels that may be wrong, as it was asked for; 0 where none is carried."""
        economy = self.artefact.manifest.settings.get("economy", {})
        return float(economy.get("risk", 0.0)) if isinstance(economy, dict) else 0.0

    @cached_property
    def order_probes(self) -> list[OrderProbe]:
        """Pairs that were judged again with their answers exchanged; none where no probe was asked for."""
        return list(read_jsonl(self.artefact.file(ORDER), OrderProbe)) if self.artefact.has(ORDER) else []

    @cached_property
    def economy_probes(self) -> list[EconomyProbe]:
        """Pairs whose label economy carried from another pair, and that were judged for the check."""
        return list(read_jsonl(self.artefact.file(ECONOMY), EconomyProbe)) if self.artefact.has(ECONOMY) else []

    @cached_property
    def positions(self) -> list[HeldPosition]:
        """Who holds which position, where economy sorted the answers."""
        return list(read_jsonl(self.artefact.file(POSITIONS), HeldPosition)) if self.artefact.has(POSITIONS) else []

    def each_answer(self) -> Iterator[Answer]:
        """Every answer, one at a time."""
        return read_jsonl(self.artefact.file("answers.jsonl"), Answer)

    def each_comparison(self) -> Iterator[Comparison]:
        """Every pair, some at a time."""
        return read_comparisons(self._table)

    @cached_property
    def _table(self) -> Path:
        """The table of pairs, whose questions and sources are those of the audit: everything looks them up there."""
        import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

        path = self.artefact.file(PAIRS)
        frame = scan_table(path)
        kinds = frame.collect_schema()
        if any(frame.select(polars.col("question", "a", "b").null_count()).collect().row(0)):
            raise InputError("a pair has no question or source", where=str(path), fix="restore the table of pairs")
        questions, sources = {each.id for each in self.questions}, {each.id for each in self.sources}
        for name, known in (("question", questions), ("a", sources), ("b", sources)):
            kind = kinds[name]
            if isinstance(kind, polars.Enum) and known.issuperset(kind.categories):
                continue  # the categories tell without a look at the rows
            used = set(frame.select(polars.col(name).cast(polars.String)).unique().collect().to_series()) - {None}
            if unknown := sorted(used - known):
                raise InputError(
                    f"the table of pairs names {unknown[0]!r}, which is not among the audit's questions or sources",
                    where=str(path),
                    fix="restore the audit's files or make the audit again",
                )
        return path

    def frame(self, columns: Sequence[str] | None = None) -> polars.LazyFrame:
        """The table of pairs as a lazy frame, or some of its columns."""
        frame = scan_table(self._table)
        return frame if columns is None else frame.select(list(columns))


def judge_identities(manifest: Manifest) -> list[str]:
    """The judges that a manifest names: the role `judge`, or `judge: …` for each of several."""
    return [name for role, name in manifest.models.items() if role.partition(":")[0] == "judge"]
