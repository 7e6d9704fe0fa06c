"""Near-duplicates as a filter: `unique`, `unique(minhash, 0.15)`, `unique(embedding, 0.95)`.

It is two-pass: which documents are dropped is known only when all have been read. The pairs go to `duplicates.tsv`.
"""

from __future__ import annotations

from collections.abc import Callable

from hoofbeat.corpus.duplicates import (
    COSINE,
    JACCARD,
    WINDOW_WORDS,
    WINDOWS,
    Duplicates,
    embedding_duplicates,
    minhash_duplicates,
)
from hoofbeat.corpus.filters.base import KEPT, Documents, Filter, Judge, Ready, Table, Verdict
from hoofbeat.corpus.filters.line import Clause
from hoofbeat.corpus.minhash import SEED, WIDTH
from hoofbeat.models.encoder import Encoder, load_encoder
from hoofbeat.progress import Progress
from hoofbeat.records import Document

__all__ = ["PAIRS", "build_unique", "unique_embedding", "unique_minhash"]

EXAMPLE = "unique(minhash, 0.15)"
PAIRS = "duplicates.tsv"
HEADER = ("first", "second", "score", "kept")
METHODS = ("minhash", "embedding")


def unique_minhash(threshold: float = JACCARD, *, width: int = WIDTH, seed: int = SEED) -> Filter:
    """Drops documents whose words, five at a time, overlap those of an earlier one."""

    def prepare(documents: Documents, progress: Progress) -> Ready:
        found = minhash_duplicates(documents(), threshold, width=width, seed=seed, progress=progress)
        return Ready(_judge(found), {PAIRS: _table(found)})

    given = {"width": (width, WIDTH), "seed": (seed, SEED)}
    more = "".join(f", {name}={value}" for name, (value, usual) in given.items() if value != usual)
    return Filter(
        name="unique",
        line=f"unique(minhash, {threshold:g}{more})",
        prepare=prepare,
        settings={"method": "minhash", "threshold": threshold, "words": width},
        seeds={"minhash": seed},
        two_pass=True,
    )


def unique_embedding(
    threshold: float = COSINE, *, encoder: str = "minilm", load: Callable[[str], Encoder] = load_encoder
) -> Filter:
    """Drops documents that say the same as an earlier one, by the cosine of their vectors."""

    def prepare(documents: Documents, progress: Progress) -> Ready:
        loaded = load(encoder)
        found = embedding_duplicates(documents(), loaded, threshold, progress=progress)
        return Ready(_judge(found), {PAIRS: _table(found)}, {"encoder": loaded.identity})

    more = f", encoder={encoder}" if encoder != "minilm" else ""
    return Filter(
        name="unique",
        line=f"unique(embedding, {threshold:g}{more})",
        prepare=prepare,
        settings={
            "method": "embedding",
            "threshold": threshold,
            "encoder": encoder,
            "windows": WINDOWS,
            "window_words": WINDOW_WORDS,
        },
        two_pass=True,
    )


def build_unique(clause: Clause) -> Filter:
    """`unique(METHOD, THRESHOLD)`; `width=` and `seed=` for minhash, `encoder=` for embedding."""
    if clause.operator:
        clause.fail(clause.operator_at, "unique is compared with nothing", f"write {EXAMPLE}")
    plain = [argument for argument in clause.arguments if not argument.name]
    named = {argument.name: argument for argument in clause.arguments if argument.name}
    if len(plain) > 2:
        clause.fail(plain[2].at, "unique takes a method and a threshold", f"write {EXAMPLE}")
    method = plain[0].text.lower() if plain else "minhash"
    if method not in METHODS:
        clause.unknown(plain[0].at, f"unknown method {plain[0].text!r}", method, METHODS)
    known = ("width", "seed") if method == "minhash" else ("encoder",)
    for name, argument in named.items():
        if name not in known or argument.operator != "=":
            clause.unknown(argument.name_at, f"{method} has no option {name!r}", name, [f"{each}=" for each in known])
    usual = JACCARD if method == "minhash" else COSINE
    threshold = clause.number(plain[1], low=0.01, high=1) if len(plain) > 1 else usual
    if method == "embedding":
        return unique_embedding(threshold, encoder=named["encoder"].text if named else "minilm")
    width = clause.whole(named["width"], low=1) if "width" in named else WIDTH
    return unique_minhash(threshold, width=width, seed=clause.whole(named["seed"]) if "seed" in named else SEED)


def _judge(found: Duplicates) -> Judge:
    def judge(document: Document) -> Verdict:
        if document.id not in found.dropped:
            return KEPT
        other, score = found.dropped[document.id]
        return Verdict("near-duplicate", f"of {other}, score {score:.3f}")

    return judge


def _table(found: Duplicates) -> Table:
    rows = tuple((pair.first, pair.second, f"{pair.score:.6f}", pair.kept) for pair in found.pairs)
    return Table(HEADER, rows)
