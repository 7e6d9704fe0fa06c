"""Lines whose figures are published, run on the public sets that they are published for."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.progress import SILENT, Progress
from hoofbeat.retrieval import Retriever
from hoofbeat.retrieval.rankings.test_collection import open_collection


class ReferenceFigure(Struct, frozen=True, kw_only=True):
    """A figure that must come out: within `tolerance` of `expected`, or for a floor at least that."""

    data: str
    line: str
    expected: float
    tolerance: float = 0.006
    floor: bool = False
    measure: str = "nDCG@10"
    source: str = ""


class ReferenceResult(Struct, frozen=True, kw_only=True):
    """A check and what was observed; None where its data is not there."""

    check: ReferenceFigure
    observed: float | None

    @property
    def verdict(self) -> str:
        """Whether it came out."""
        if self.observed is None:
            return "skipped: no data"
        apart = self.observed - self.check.expected
        return "ok" if (apart >= 0 and self.check.floor) or abs(apart) <= self.check.tolerance else "FAILED"


_LEXICAL = "bm25[chunk=whole]"
_DENSE = "dense[chunk=whole]"
_ANSERINI = "Anserini, flat index, k1 0.9, b 0.4"
_MINILM = "all-MiniLM-L6-v2, published in 32 bits; ours has 8"
CHECKS = (
    ReferenceFigure(data="scifact", line=_LEXICAL, expected=0.679, source=_ANSERINI),
    ReferenceFigure(data="nfcorpus-preprocessed", line=_LEXICAL, expected=0.322, source=_ANSERINI),
    ReferenceFigure(data="scifact", line=_DENSE, expected=0.645, source=_MINILM),
    ReferenceFigure(
        data="scifact",
        line=f"{_LEXICAL} + {_DENSE}",
        expected=0.70,
        tolerance=0.0,
        floor=True,
        source="Hoofbeat's own floor for the fusion",
    ),
)
"""What is checked."""


def check_figures(data: Path, progress: Progress = SILENT) -> list[ReferenceResult]:
    """Run every check whose data is in this folder."""
    return [ReferenceResult(check=check, observed=_observe(data / check.data, check, progress)) for check in CHECKS]


def _observe(folder: Path, check: ReferenceFigure, progress: Progress) -> float | None:
    if not (folder / "corpus.jsonl").is_file():
        return None
    collection = open_collection(folder)
    retriever = Retriever(collection.indexes(progress), check.line)
    found = retriever.search([(question.id, question.full_text) for question in collection.questions], 100)
    result = evaluate((hit for hits in found for hit in hits), collection.qrels, [check.measure])
    return result.means[check.measure]
