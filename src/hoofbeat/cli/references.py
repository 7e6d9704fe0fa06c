"""`hoofbeat verify retrieval`: lines whose figures are published, run on the public sets they are published for."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct, to_builtins

from hoofbeat.cli.bed import open_bed
from hoofbeat.cli.console import Screen
from hoofbeat.cli.ranking import index_bed
from hoofbeat.errors import InputError, VerificationError
from hoofbeat.findings.ranking import evaluate
from hoofbeat.retrieval import Retriever

__all__ = ["CHECKS", "Check", "Checked", "verify_retrieval"]


class Check(Struct, frozen=True, kw_only=True):
    """A figure that must come out: within `tolerance` of `expected`, or for a floor at least that."""

    data: str
    line: str
    expected: float
    tolerance: float = 0.006
    floor: bool = False
    measure: str = "nDCG@10"
    source: str = ""


class Checked(Struct, frozen=True, kw_only=True):
    """A check and what was observed; None where its data is not there."""

    check: Check
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
CHECKS = (
    Check(data="scifact", line=_LEXICAL, expected=0.679, source="Anserini, flat index, k1 0.9, b 0.4"),
    Check(data="nfcorpus-preprocessed", line=_LEXICAL, expected=0.322, source="Anserini, flat index, k1 0.9, b 0.4"),
    Check(data="scifact", line=_DENSE, expected=0.645, source="all-MiniLM-L6-v2, published in 32 bits; ours has 8"),
    Check(
        data="scifact",
        line=f"{_LEXICAL} + {_DENSE}",
        expected=0.70,
        tolerance=0.0,
        floor=True,
        source="Hoofbeat's own floor for the fusion",
    ),
)
"""What is checked."""


def verify_retrieval(screen: Screen, data: Path) -> None:
    """Run every check whose data is there; say expected, observed and tolerance; one that fails is an error."""
    done = [Checked(check=check, observed=_observe(screen, data / check.data, check)) for check in CHECKS]
    rows = [
        [
            f"{each.check.data}: {each.check.line}",
            each.check.measure,
            f"{'at least ' if each.check.floor else ''}{each.check.expected:.3f}",
            "" if each.observed is None else f"{each.observed:.4f}",
            "" if each.check.floor else f"± {each.check.tolerance:.3f}",
            each.verdict,
        ]
        for each in done
    ]
    shown: dict[str, object] = {
        "checks": [{**to_builtins(each.check), "observed": each.observed, "verdict": each.verdict} for each in done]
    }
    if not screen.as_json:
        screen.table(["check", "measure", "expected", "observed", "tolerance", ""], rows)
    if all(each.observed is None for each in done):
        raise InputError(
            "none of the reference sets is there",
            where=str(data),
            fix=f"name the folder that holds {', '.join(dict.fromkeys(check.data for check in CHECKS))}: --data",
        )
    failed = [each for each in done if each.verdict == "FAILED"]
    if failed:
        raise VerificationError(
            f"{len(failed)} of {len(done)} reference figures did not come out",
            where="; ".join(f"{each.check.data}: {each.check.line}" for each in failed),
            fix="a change in analysis, weights or scoring has moved them: find which before trusting other figures",
            details=shown,
        )
    if screen.as_json:
        screen.emit(shown)


def _observe(screen: Screen, folder: Path, check: Check) -> float | None:
    if not (folder / "corpus.jsonl").is_file():
        return None
    bed = open_bed(folder, None, (), "test")
    retriever = Retriever(index_bed(bed, screen), check.line)
    found = retriever.search([(question.id, question.full_text) for question in bed.questions], 100)
    result = evaluate((hit for hits in found for hit in hits), bed.qrels, [check.measure])
    return result.means[check.measure]
