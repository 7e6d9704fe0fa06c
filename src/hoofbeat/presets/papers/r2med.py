"""R2MED: documents found by reasoning, over eight sets, by every class of retriever."""

from __future__ import annotations

from hoofbeat.errors import UsageError
from hoofbeat.presets.preset import PaperInputs, Preset, ProtocolPlan
from hoofbeat.presets.protocol_steps import RankStep
from hoofbeat.reports.sections.protocol_section import PaperDifference
from hoofbeat.reports.tables import count_of
from hoofbeat.retrieval.line import every_stage, parse
from hoofbeat.retrieval.rankings.ranking_plan import plan_rankings, read_lines
from hoofbeat.retrieval.rankings.test_collection import TestCollection, open_collection
from hoofbeat.text import some_of

_QUERIES = {
    "Biology": 103, "Bioinformatics": 77, "Medical-Sciences": 88, "MedXpertQA-Exam": 97, "MedQA-Diag": 118,
    "PMC-Treatment": 150, "PMC-Clinical": 114, "IIYi-Clinical": 129,
}  # fmt: skip
"""The sets and their queries, as the paper's Table 1 has them."""
_SPARSE = "bm25[query=weighted]"  # the paper's BM25 weighs query terms, too
_LINES = (
    _SPARSE,
    "dense",
    f"{_SPARSE} > rerank@10",
    f"hyde > {_SPARSE}",
    f"query2doc[repeat=2] > {_SPARSE}",
    f"lamer > {_SPARSE}",
    f"reason > {_SPARSE}",
    f"search-o1 > {_SPARSE}",
    f"search-r1 > {_SPARSE}",
)
_MEASURES = ("nDCG@10", "P@10", "R@10")


def _plan(inputs: PaperInputs) -> ProtocolPlan:
    """Every line over every set."""
    if len(inputs.models) > 1:
        raise UsageError(
            "R2MED takes one model, which writes the queries", fix="run each model separately, each with its own -o"
        )
    collections = [open_collection(path, corpus=inputs.corpus) for path in inputs.paths]
    for each, path in zip(collections, inputs.paths, strict=True):
        if not each.qrels:
            raise UsageError(
                "no question of this benchmark has a judged document, which R2MED needs to measure rankings",
                where=str(path),
                fix="name folders in R2MED's layout, or benchmarks with documents",
            )
    lines = read_lines(inputs.retrievers or _LINES)
    model = inputs.specs[0]
    steps = [
        RankStep(
            folder=f"rankings-{each.name}",
            plan=plan_rankings(each.first(inputs.limit), lines, measures=_MEASURES, seed=inputs.seed),
            model=model,
        )
        for each in collections
    ]
    return ProtocolPlan(
        steps=tuple(steps),
        differences=tuple(_differences(inputs, collections)),
        asks_model=any(stage.models() for each in lines for stage in every_stage(parse(each.line))),
    )


def _differences(inputs: PaperInputs, collections: list[TestCollection]) -> list[PaperDifference]:
    found = []
    sizes = {each.name: len(list(each.questions)) for each in collections}
    if sizes != _QUERIES:
        told = some_of([f"{name} ({count})" for name, count in sizes.items()], len(_QUERIES))
        theirs = f"{len(_QUERIES)} sets, {count_of(sum(_QUERIES.values()), 'query', 'queries')}"
        found.append(PaperDifference("sets", theirs, f"{count_of(len(sizes), 'set')}: {told}"))
    released = [each for each, path in zip(collections, inputs.paths, strict=True) if (path / "query.jsonl").is_file()]
    if inputs.limit is not None and any(inputs.limit < sizes[each.name] for each in released):
        found.append(PaperDifference("sample", "all queries", f"the first {inputs.limit:,} of each set"))
    if inputs.retrievers:
        theirs = "15 retrievers, 3 rerankers, 3 query writers, reasoning models, search agents"
        return [*found, PaperDifference("retrievers", theirs, "; ".join(inputs.retrievers))]
    return [
        *found,
        PaperDifference("encoders", "14 dense retrievers", "the embedded MiniLM; --retriever 'dense[encoder=…]'"),
        PaperDifference("reranking", "MonoBERT, BGE-Reranker and RankLLaMA; the best 10 and 100", "Yes or No; 10"),
        PaperDifference("retriever behind queries", "BM25, BGE-Large and NV-Embed-v2", "BM25"),
        PaperDifference("search agents", "search other documents (MedCorp)", "search the set's own documents"),
    ]


PRESET = Preset(
    name="r2med",
    title="R2MED",
    protocol="Sparse and dense retrieval, reranking, queries written by a model (HyDE, Query2Doc, LameR), by a "
    "reasoning model and by search agents (Search-o1, Search-R1), over each set's own documents. nDCG@10, P@10 and "
    "R@10 by set, and the average over sets with equal weights.",
    plan=_plan,
    data_format="r2med",
    models=(
        "GPT-4o", "Qwen2.5-7B-Instruct", "Qwen2.5-32B-Instruct", "Qwen2.5-72B-Instruct", "Llama3.1-70B-Instruct",
        "DeepSeek-R1-Distill-Qwen-32B", "DeepSeek-R1-Distill-Llama-70B", "QwQ-32B", "HuatuoGPT-o1-70B", "Qwen3-32B",
    ),
    published="r2med",
)  # fmt: skip
