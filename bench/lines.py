"""Which line that ships offline ranks best? Chosen on development data, then run once on the sets that are published.

    python -m bench.lines            the development tables, the choice, and the published table
    python -m bench.lines --fusions  the same for ways to fuse bm25 and dense

Development data, none of it a test query of SciFact or LiveQA-Med:
- medquad: 400 question types about a condition (seeded sample), the answers of several institutions as documents. The
  answers also serve as LiveQA-Med's documents; its questions and grades play no part.
- cases: 300 case reports without their first 120 words, which are the queries: long ones.
- sentences (fusions only, in place of cases): a sentence of the last third of a case report asks for the report, of
  which the first 250 words are the document.

The choice is the line with the best mean nDCG@10 over both, ties to the simpler one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from hoofbeat.cli.console import Screen
from hoofbeat.findings.intervals import bootstrap_mean
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.models import load_encoder
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.records import Document
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.retrieval.rankings.test_collection import open_collection

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SEED = 20
W = "chunk=words:160/32"
CANDIDATES = (
    f"bm25[{W}]",
    "bm25[chunk=whole]",
    f"bm25[k1=1.2,b=0.75,{W}]",
    "bm25[k1=1.2,b=0.75,chunk=whole]",
    "bm25[query=weighted,chunk=whole]",
    f"dense[encoder=potion,{W}]",
    "dense[encoder=potion,chunk=whole]",
    f"dense[{W}]",
    "dense[chunk=whole]",
    f"dense[qchunk=tokens:128/32,{W}]",
    f"bm25[{W}] + dense[{W}]",
    "bm25[chunk=whole] + dense[chunk=whole]",
    f"bm25[chunk=whole] + dense[{W}]",
    f"bm25[k1=1.2,b=0.75,chunk=whole] + dense[{W}]",
    f"bm25[chunk=whole] +[k=10] dense[{W}]",
    f"bm25[chunk=whole] + 2*dense[{W}]",
    f"bm25[chunk=whole] + dense[{W}] + dense[chunk=whole]",
    f"bm25[k1=1.2,b=0.75,chunk=whole] + dense[{W}] + dense[chunk=whole]",
    f"bm25[chunk=whole] + dense[{W}] + 0.5*dense[encoder=potion,{W}]",
    "hero",
)

_PLAIN_FUSION = "bm25[chunk=whole] + dense[chunk=whole]"
_WHOLE, _CUT = "bm25[chunk=whole]", "dense[chunk=whole,truncate=yes]"
FUSIONS = (
    _WHOLE,
    _CUT,
    f"{_WHOLE} + {_CUT}",
    f"{_WHOLE} + 0.5*{_CUT}",
    f"{_WHOLE} + 2*{_CUT}",
    f"{_WHOLE} +[k=20] {_CUT}",
    f"{_WHOLE} +[k=10] {_CUT}",
    f"{_WHOLE} + {_CUT} + 0.5*dense[encoder=potion,chunk=whole]",
    f"{_WHOLE} +[by=scores] {_CUT}",
    f"{_WHOLE} +[by=scores] 0.7*{_CUT}",
    f"{_WHOLE} +[by=scores] 1.5*{_CUT}",
    f"{_WHOLE} +[by=scores,depth=100] {_CUT}",
)
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_NOT_A_FINDING = re.compile(r"\b(et al|Fig|Table|consent|conflict|funding|authors?)\b")


class Bed(NamedTuple):
    """Documents, queries and judgments."""

    name: str
    documents: list[Document]
    queries: list[tuple[str, str]]
    qrels: dict[str, dict[str, int]]


def rows(path: Path) -> Iterable[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def medquad() -> Bed:
    documents: dict[str, Document] = {}
    groups: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for row in rows(DATA / "medquad_multisource.jsonl.gz"):
        documents.setdefault(row["id"], Document(id=row["id"], title="", text=row["answer"]))
        key = f"{row['focus']}|{row['qtype']}"
        groups.setdefault(key, []).append(row["id"])
        texts[key] = row["question"]
    chosen = random.Random(SEED).sample(sorted(groups), 400)
    qrels = {f"q{number}": dict.fromkeys(groups[key], 1) for number, key in enumerate(chosen)}
    return Bed(
        "medquad", list(documents.values()), [(f"q{number}", texts[key]) for number, key in enumerate(chosen)], qrels
    )


def cases() -> Bed:
    documents, queries, qrels = [], [], {}
    for row in random.Random(SEED).sample(list(rows(DATA / "case_reports.jsonl.gz")), 300):
        words = row["text"].split()
        queries.append((row["pmcid"], " ".join(words[:120])))
        documents.append(Document(id=row["pmcid"], title="", text=" ".join(words[120:1400])))
        qrels[row["pmcid"]] = {row["pmcid"]: 1}
    return Bed("cases", documents, queries, qrels)


def sentences() -> Bed:
    drawn = random.Random(SEED + 1)
    documents, queries = [], []
    for row in rows(DATA / "case_reports.jsonl.gz"):
        words = row["text"].split()
        if len(words) < 600:
            continue
        documents.append(Document(id=row["pmcid"], title="", text=" ".join(words[:250])))
        found = [
            each
            for each in _SENTENCE_END.split(" ".join(words[len(words) * 2 // 3 :]))
            if 9 <= len(each.split()) <= 30 and not _NOT_A_FINDING.search(each)
        ]
        if found:
            queries.append((row["pmcid"], drawn.choice(found)))
    queries = drawn.sample(queries, 300)
    return Bed("sentences", documents, queries, {name: {name: 1} for name, _ in queries})


def published(name: str) -> Bed:
    bed = open_collection(DATA / "retrieval" / name)
    queries = [(question.id, question.full_text) for question in bed.questions]
    return Bed(name, list(bed.documents), queries, bed.qrels)


def measure(bed: Bed, lines: Iterable[str]) -> dict[str, dict[str, float]]:
    """nDCG@10 of each line for each query."""
    screen = Screen(as_json=False)
    indexes = IndexSet(
        bed.documents, encoder=lambda spec: cached_encoder(load_encoder(spec), vectors_folder()), progress=screen
    )
    table = {}
    for line in lines:
        found = Retriever(indexes, line).search(bed.queries, 100)
        result = evaluate((hit for hits in found for hit in hits), bed.qrels, ["nDCG@10"])
        table[line] = {name: values["nDCG@10"] for name, values in result.per_question.items()}
        print(f"{bed.name:10} {sum(table[line].values()) / len(table[line]):.4f}  {line}", flush=True)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only-development", action="store_true", help="stop before the published sets")
    parser.add_argument("--fusions", action="store_true", help="compare ways to fuse bm25 and dense")
    options = parser.parse_args()
    candidates, second = (FUSIONS, sentences) if options.fusions else (CANDIDATES, cases)
    development = [measure(bed, candidates) for bed in (medquad(), second())]
    means = {line: sum(sum(t[line].values()) / len(t[line]) for t in development) / 2 for line in candidates}
    best = max(candidates, key=lambda line: (round(means[line], 4), -len(line)))
    print(f"\nchosen on development data: {best} (mean nDCG@10 {means[best]:.4f})\n")
    if options.only_development:
        return 0
    plain = FUSIONS[:3] if options.fusions else ("bm25[chunk=whole]", "dense[chunk=whole]", _PLAIN_FUSION)
    shown = list(dict.fromkeys([*plain, best]))
    for name in ("scifact", "liveqa-med"):
        for line, values in measure(published(name), shown).items():
            interval = bootstrap_mean(list(values.values()), seed=0)
            mean = sum(values.values()) / len(values)
            print(f"  {name:12} {mean:.3f} [{interval.low:.3f}, {interval.high:.3f}]  n={len(values)}  {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
