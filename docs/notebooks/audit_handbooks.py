# %% [markdown]
# # Audit four handbooks
#
# Four invented transplant handbooks get the same six questions from patients. Who says what, who is silent, and who
# contradicts whom? Research software, not for clinical use.
#
# A strong model wrote the replies beforehand (`replay:teaching`), and this notebook replays them, so that it runs
# anywhere in seconds. With `MODEL = "openai:NAME"` the same cells call a model.

# %%
from pathlib import Path

import hoofbeat as hb
from hoofbeat import teaching

MODEL = "replay:teaching"
HERE = Path("handbooks")
corpus = hb.import_corpus(teaching.handbook_files(), HERE / "corpus", title="teaching handbooks (invented)")
corpus

# %% [markdown]
# ## Ask every handbook by itself
#
# Each answer comes from one handbook only, with the words it rests on. Then every two answers are compared.

# %%
SOURCES = ["hb-alder-kidney", "hb-brook-kidney", "hb-cairn-kidney", "hb-dune-kidney"]
QUESTIONS = ["tq-01", "tq-02", "tq-03", "tq-07", "tq-12", "tq-13"]
audit = hb.audit_sources(
    corpus, "teaching", HERE / "audit", model=MODEL, line="bm25", sources=SOURCES, question_ids=QUESTIONS,
    ledger=HERE / "ledger.sqlite",
)  # fmt: skip
audit

# %% [markdown]
# ## How the pairs relate

# %%
import polars

pairs = audit.frame(["question", "a", "b", "label", "significance"]).collect()
pairs.group_by("label").len().sort("len", descending=True)

# %% [markdown]
# ## The contradictions
#
# The most serious label first: no reader could follow both handbooks.

# %%
pairs.filter(polars.col("label") == "Contradictory").sort("question", "a", "b")

# %% [markdown]
# ## What two handbooks say
#
# A pair is only a pointer. Read both answers, and the words in the source that each rests on.

# %%
for answer in audit.answers:
    if answer.question == "tq-01" and answer.source in {"hb-alder-kidney", "hb-cairn-kidney"}:
        print(f"{answer.source}\n  {answer.text}\n  section: {', '.join(answer.citations) or 'none named'}\n")
