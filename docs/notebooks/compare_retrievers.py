# %% [markdown]
# # Compare retrievers
#
# Three retriever lines on the teaching set's short searches: which one finds more, and is the difference more than
# chance? The cases and searches are invented. Research software, not for clinical use.
#
# Download this page's source, `docs/notebooks/compare_retrievers.py`, or make a notebook of it:
# `make notebook NOTEBOOK=compare_retrievers`.

# %%
from pathlib import Path

import hoofbeat as hb
from hoofbeat import teaching

HERE = Path("retrievers")
corpus = hb.import_corpus(teaching.cases_folder(), HERE / "corpus", title="teaching cases (invented)")
bench = hb.build("teaching", corpus, HERE / "benchmark")
bench

# %% [markdown]
# ## Rank and measure
#
# A retriever is one line of text. The first line is weak on purpose: it looks only at the first passage of each report.
# The edition `search` asks in other words than the reports use.

# %%
LINES = ["bm25[pool=first]", "bm25", "bm25[k1=0.5,b=0.2]"]
rankings = hb.retrieve(bench, LINES, HERE / "rankings", edition="search", measures=["nDCG@10", "R@1"])
rankings[1]

# %% [markdown]
# ## Question by question
#
# Each row is one search; 1 means that its report is on top. `null` would mean that nobody judged it.

# %%
import polars

values = polars.concat(
    each.table("queries").with_columns(line=polars.lit(line)) for line, each in zip(LINES, rankings, strict=True)
)
values.filter(polars.col("measure") == "nDCG@10").pivot(on="line", index="query", values="value").head(8)

# %% [markdown]
# ## Is the difference more than chance?
#
# Each pair of lines is compared on the same questions: the second minus the first. `interval_by` names the
# method of the interval; p is corrected for the number of comparisons (Holm). An interval that includes 0 means: these
# 20 questions can't distinguish the two.

# %%
compared = hb.compare(rankings, HERE / "comparison")
compared.table("pairs").filter(polars.col("measure") == "nDCG@10").select(
    "first", "second", "second_minus_first", "low", "high", "interval_by", "p_holm"
)
