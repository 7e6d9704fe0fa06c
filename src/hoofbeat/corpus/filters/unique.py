"""Near-duplicates as a filter: `unique`, `unique(minhash, 0.15)`, `unique(embedding, 0.95)`.

It is two-pass: which documents are dropped is known only when all have been read. The pairs go to `duplicates.tsv`.
"""

from __future__ import annotations

from hoofbeat.corpus.filter import Clause, CorpusFilter, FilterStep

METHODS = ("minhash", "embedding")


class _Unique(CorpusFilter):
    name = "unique"
    summary = "one of each set of near-duplicates"
    example = "unique(minhash, 0.15)"
    negatable = False

    def build(self, clause: Clause) -> FilterStep:
        """`unique(METHOD, THRESHOLD)`; `width=` and `seed=` for minhash, `encoder=` for embedding."""
        from hoofbeat.corpus import duplicates  # noqa: PLC0415 - NumPy, only where documents are compared

        if clause.operator:
            clause.fail(clause.operator_at, "unique can't be compared with a value", f"write {self.example}")
        plain = [argument for argument in clause.arguments if not argument.name]
        named = {argument.name: argument for argument in clause.arguments if argument.name}
        if len(plain) > 2:
            clause.fail(plain[2].at, "unique takes a method and a threshold", f"write {self.example}")
        method = plain[0].text.lower() if plain else "minhash"
        if method not in METHODS:
            clause.unknown(plain[0].at, f"unknown method {plain[0].text!r}", method, METHODS)
        known = ("width", "seed") if method == "minhash" else ("encoder",)
        for name, argument in named.items():
            if name not in known or argument.operator != "=":
                clause.unknown(
                    argument.name_at, f"{method} has no option {name!r}", name, [f"{each}=" for each in known]
                )
        usual = duplicates.JACCARD if method == "minhash" else duplicates.COSINE
        threshold = clause.number(plain[1], low=0.01, high=1) if len(plain) > 1 else usual
        if method == "embedding":
            return duplicates.unique_embedding(threshold, encoder=named["encoder"].text if named else "minilm")
        width = clause.whole(named["width"], low=1) if "width" in named else duplicates.WIDTH
        seed = clause.whole(named["seed"]) if "seed" in named else duplicates.SEED
        return duplicates.unique_minhash(threshold, width=width, seed=seed)


FILTER = _Unique()
