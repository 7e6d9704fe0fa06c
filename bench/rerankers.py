"""What does a reranker add to BM25, and what does it cost? 50 questions of each public set, drawn by a seed.

    python -m bench.rerankers --model http://127.0.0.1:8000/v1#qwen2.5-coder-1.5b
    python -m bench.rerankers --model batch:FOLDER#NAME --set scifact --line "bm25 + dense" \
        --line "bm25 + dense > rerank[with=listwise]@20"

Each line is measured on the same questions: nDCG@10 with its interval, the difference to the first line with its
interval, and calls and tokens per question. Prices and seconds differ between endpoints; tokens do not. With a batch
folder it stops when requests are written: put the answers there and run the same command again.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from bench.lines import Bed, published
from hoofbeat.cli.console import Screen
from hoofbeat.errors import BatchPending
from hoofbeat.findings.intervals import bootstrap_mean, paired_difference
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.models import Model, load_encoder, load_model
from hoofbeat.models.encoders.vector_cache import cached_encoder, vectors_folder
from hoofbeat.retrieval import IndexSet, Retriever
from hoofbeat.store import open_ledger

SEED = 50
SETS = ("scifact", "nfcorpus-preprocessed", "liveqa-med")
FIRST = "bm25[chunk=whole]"
LINES = (
    FIRST,
    f"{FIRST} > rerank@20",
    f"{FIRST} > rerank@50",
    f"{FIRST} > rerank[with=listwise]@20",
)


def sampled(bed: Bed, count: int) -> Bed:
    """The set with a seeded sample of its questions."""
    chosen = random.Random(SEED).sample(sorted(bed.queries), min(count, len(bed.queries)))
    return bed._replace(queries=chosen, qrels={name: bed.qrels[name] for name, _ in chosen})


def measure(bed: Bed, line: str, indexes: IndexSet, model: Model) -> dict[str, float]:
    """nDCG@10 of a line for each question."""
    retriever = Retriever(indexes, line, model=lambda _: model)
    found = retriever.run(bed.queries, 100)
    result = evaluate((hit for hits in found.hits for hit in hits), bed.qrels, ["nDCG@10"])
    failed = [query.id for query in found.queries if query.failure]
    notes = retriever.describe().get("notes")
    for told in [*(notes if isinstance(notes, list) else []), *([f"failed, counted 0: {failed}"] if failed else [])]:
        print(f"{bed.name:22} note: {told}")
    return {name: values["nDCG@10"] for name, values in result.per_question.items()}


def row(bed: Bed, line: str, scores: dict[str, float], first: dict[str, float], cost: str) -> str:
    values = [scores.get(name, 0.0) for name, _ in bed.queries]
    before = [first.get(name, 0.0) for name, _ in bed.queries]
    mean, gain = bootstrap_mean(values, seed=0), paired_difference(values, before, seed=0)
    told = f"{sum(values) / len(values):.3f} [{mean.low:.3f}, {mean.high:.3f}]"
    told += f"  {gain.difference:+.3f} [{gain.interval.low:+.3f}, {gain.interval.high:+.3f}]"
    return f"{bed.name:22} {told}  {cost:38} {line}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="the model that reranks, as in hoofbeat --model")
    parser.add_argument("--questions", type=int, default=50)
    parser.add_argument("--set", action="append", choices=SETS, help="a set; repeat it for several (default: all)")
    parser.add_argument("--line", action="append", help="a line; repeat it, the first is what others are compared with")
    parser.add_argument("--ledger", default="bench/out/rerankers.sqlite")
    options = parser.parse_args()
    screen = Screen(as_json=False)
    print("set, nDCG@10, difference to the first line, calls and tokens per question, line")
    Path(options.ledger).parent.mkdir(parents=True, exist_ok=True)
    for name in options.set or SETS:
        bed = sampled(published(name), options.questions)
        indexes = IndexSet(
            bed.documents, encoder=lambda spec: cached_encoder(load_encoder(spec), vectors_folder()), progress=screen
        )
        first: dict[str, float] = {}
        for line in options.line or LINES:
            with open_ledger(options.ledger) as ledger:
                model = load_model(options.model, ledger=ledger)
                try:
                    scores = measure(bed, line, indexes, model)
                except BatchPending as pending:
                    print(pending)
                    return pending.exit_code
                cost = model.cost
            first = first or scores
            each = len(bed.queries)
            told = f"{cost.calls / each:.0f} calls, {cost.tokens_in / each:,.0f} + {cost.tokens_out / each:,.0f} tokens"
            print(row(bed, line, scores, first, told), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
