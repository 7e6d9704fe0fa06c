# %% [markdown]
# # A first study in Python
#
# From documents to a report on the teaching set, which is invented. Research software, not for clinical use.
#
# `make notebook` turns this file into a notebook. The model is a recording: a strong model wrote the replies
# beforehand, and `replay:teaching` replays them. Name another with the environment variable `STUDY_MODEL`, for
# example `openai:NAME`, `http://host:8000/v1#NAME`, or `embedded`.

# %%
import os
from pathlib import Path

import hoofbeat as hb
from hoofbeat import teaching

MODEL = os.environ.get("STUDY_MODEL", "replay:teaching")
HERE = Path(os.environ.get("STUDY_FOLDER", "study"))

# %% [markdown]
# ## Documents and questions
#
# Every verb writes one folder and returns it as an object. A notebook shows what is in it.

# %%
corpus = hb.import_corpus(teaching.cases_folder(), HERE / "corpus", title="teaching cases (invented)")
corpus

# %%
bench = hb.build("teaching", corpus, HERE / "benchmark")
bench.questions[0].text, bench.questions[0].answer

# %% [markdown]
# ## Rankings
#
# A retriever is one line. Several lines are compared with each other.

# %%
rankings = hb.retrieve(bench, ["bm25", "bm25[k1=0.5]"], HERE / "rankings", measures=["nDCG@10", "R@1"])
rankings[0]

# %% [markdown]
# Every table of a folder is a Polars data frame, or with `.pandas(name)` a pandas one.

# %%
rankings[0].table("queries").pivot(on="measure", index="query", values="value")

# %% [markdown]
# ## Answers and judgments
#
# First what it would cost, then the answers. The ledger keeps every answer, so nothing is paid twice.

# %%
CONDITIONS = ["closed", "bm25 @2"]
ledger = HERE / "ledger.sqlite"
hb.answer(bench, model=MODEL, conditions=CONDITIONS, limit=3, ledger=ledger, estimate=True)

# %%
run = hb.answer(bench, HERE / "run", model=MODEL, conditions=CONDITIONS, limit=3, ledger=ledger)
run.table("answers").select("question", "condition", "text")

# %%
judged = hb.judge(run, HERE / "judged", by=["exact", "rouge-l"], ledger=ledger)
judged

# %% [markdown]
# ## One report
#
# A page with tables as CSV and LaTeX beside it. `await hb.aio.report(...)` does the same without blocking the notebook.

# %%
report = await hb.aio.report([corpus, bench, rankings[0], judged], HERE / "report", title="A first study")
report.page
