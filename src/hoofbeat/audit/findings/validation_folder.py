"""The folders of a validation and of an ablation: every pair with what was said of it, and the figures."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct, field

from hoofbeat.audit.findings.protocol_comparison import ProtocolAgreement
from hoofbeat.audit.findings.validation_figures import RatedPair, Reference, Validation
from hoofbeat.audit.sample_records import PairJudgedTwice
from hoofbeat.errors import InputError
from hoofbeat.store import Artefact, open_artefact
from hoofbeat.store.files import read_bytes, write_bytes
from hoofbeat.store.tables import read_jsonl, write_jsonl

VALIDATION = "validation"
ABLATION = "ablation"
_PAIRS = "pairs.jsonl"
_FIGURES = "figures.json"

T = TypeVar("T")


class ValidatedPair(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A pair of the sample with its texts, what everybody said of it, and how many pairs of the audit it represents."""

    rated: RatedPair
    reference: Reference
    weight: float | None
    question: str
    answer_a: str
    answer_b: str
    reasoning: str = ""
    notes: dict[str, str] = field(default_factory=dict)


class ValidationFolder:
    """An opened validation."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact

    @staticmethod
    def open(path: Path) -> ValidationFolder:
        """Open a validation's folder."""
        return ValidationFolder(open_artefact(path, VALIDATION))

    @cached_property
    def pairs(self) -> list[ValidatedPair]:
        """Every pair of the sample."""
        return list(read_jsonl(self.artefact.file(_PAIRS), ValidatedPair))

    @cached_property
    def figures(self) -> Validation:
        """What the validation says."""
        return _figures(self.artefact, Validation)


class AblationFolder:
    """An opened ablation."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact

    @staticmethod
    def open(path: Path) -> AblationFolder:
        """Open an ablation's folder."""
        return AblationFolder(open_artefact(path, ABLATION))

    @cached_property
    def pairs(self) -> list[PairJudgedTwice]:
        """Every pair, judged both ways."""
        return list(read_jsonl(self.artefact.file(_PAIRS), PairJudgedTwice))

    @cached_property
    def figures(self) -> ProtocolAgreement:
        """What the ablation says."""
        return _figures(self.artefact, ProtocolAgreement)


def write_tables(folder: Path, pairs: Sequence[object], figures: object) -> None:
    """Write the pairs and the figures into a draft."""
    write_jsonl(folder / _PAIRS, pairs)
    write_bytes(folder / _FIGURES, msgspec.json.format(msgspec.json.encode(figures), indent=1) + b"\n")


def _figures(artefact: Artefact, kind: type[T]) -> T:
    file = artefact.file(_FIGURES)
    try:
        return msgspec.json.decode(read_bytes(file), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
        raise InputError(
            f"the figures can't be read: {err}", where=str(file), fix="restore the folder, or make it again"
        ) from err
