"""OGCaReBench: what to do next where guidelines end, closed book, with retrieved reports, and with the source."""

from __future__ import annotations

from hoofbeat.benchmarks.benchmark import find_corpus
from hoofbeat.errors import UsageError
from hoofbeat.models import load_encoder
from hoofbeat.presets.preset import PaperInputs, Preset, ProtocolPlan
from hoofbeat.presets.protocol_steps import AnswerStep, JudgeStep, ProtocolStep, RankStep
from hoofbeat.reports.sections.protocol_section import PaperDifference
from hoofbeat.retrieval.rankings.ranking_plan import plan_rankings, read_lines
from hoofbeat.retrieval.rankings.test_collection import open_collection

_REPORTS = (1, 3, 5)
_MEASURES = ("R@1", "R@3", "R@5", "R@10", "R@20", "R@50", "R@100", "R@1000", "RR", "nDCG@10")
_TOP = 1000
_CHUNK, _SHARED = 512, 128
_CUT = f"tokens:{_CHUNK}/{_SHARED}"
_LINES = ("bm25[chunk=whole]", f"dense[chunk={_CUT},qchunk={_CUT}]")


def _plan(inputs: PaperInputs) -> ProtocolPlan:
    """Rankings of each line; closed book, the best 1, 3 and 5 reports of each line, oracle; judged and explained."""
    bench = inputs.bench()
    if not any(question.answer for question in bench.questions):
        raise UsageError(
            "no question of this benchmark has a reference answer, which OGCaReBench needs",
            where=str(bench.path),
            fix="import the released files with hoofbeat benchmark import, or build one with hoofbeat build ogcare",
        )
    differences = _differences(inputs)
    lines = inputs.retrievers or _LINES
    documents = set(find_corpus(inputs.corpus, bench.artefact).ids())
    conditions = ["closed", *(f"{line} @{count} documents" for line in lines for count in _REPORTS)]
    steps: list[ProtocolStep] = []
    sourced = any(documents.issuperset(question.documents) and question.documents for question in bench.questions)
    if sourced:
        collection = open_collection(bench.path, corpus=inputs.corpus).first(inputs.limit)
        ranked = plan_rankings(collection, read_lines(lines), top=_TOP, measures=_MEASURES, seed=inputs.seed)
        steps.append(RankStep(folder="rankings", plan=ranked, model=inputs.specs[0]))
        conditions.append("oracle")
    else:
        why = "left out, and Recall@k as well: no question names its report in this corpus"
        differences.append(PaperDifference("oracle", "the source report", why))
    answers = AnswerStep(folder="answers", plan=inputs.plan_run(bench, conditions=conditions, protocols=["free"]))
    by = ("equivalence", "failure-mode") if sourced else ("equivalence",)
    judged = JudgeStep(folder="judged", answers=answers, judge=inputs.judge, by=by, encoder=inputs.encoder)
    return ProtocolPlan(steps=(*steps, answers, judged), differences=tuple(differences))


def _differences(inputs: PaperInputs) -> list[PaperDifference]:
    """What is not as in the paper's retrieval."""
    if inputs.retrievers:
        named = "; ".join(inputs.retrievers)
        return [PaperDifference("retrievers", f"BM25, BGE-large and BMRetriever, chunks of {_CHUNK}/{_SHARED}", named)]
    found = [PaperDifference("retrievers", "BM25, BGE-large and BMRetriever", "BM25 and the embedded MiniLM")]
    window = load_encoder().window
    if 0 < window < _CHUNK:
        ours = f"the encoder reads {window} tokens: a chunk has a vector for each part"
        found.append(PaperDifference("chunks", f"{_CHUNK} tokens, read whole", ours))
    ours = "left out; give --retriever 'bm25 > rerank[with=FOLDER]@100'"
    found.append(PaperDifference("reranking", "the best 100 by MedCPT's cross-encoder", ours))
    found.append(PaperDifference("agent", "DR Tulu searches the reports", "not run: see hoofbeat answer, agent"))
    return found


PRESET = Preset(
    name="ogcare",
    title="OGCaReBench",
    protocol="Free text at temperature 0: closed book; the best 1, 3 and 5 whole reports of each retriever, which "
    "searches chunks of 512 tokens that share 128; the source report (oracle). A judge says whether an answer is "
    "equivalent to the reference, and names the failure mode of oracle errors. Recall@k, MRR and nDCG@10 of each "
    "retriever.",
    plan=_plan,
    questions=639,
    data_format="ogcare",
    models=(
        "GPT-5.2", "GPT-o4-mini", "Llama 3.3 70B Instruct", "Claude 4.5 Sonnet", "Claude 4 Sonnet", "Gemini 2.5 Pro",
        "MedGemma", "Llama 3-Med42", "OpenBioLLM",
    ),
    judge="GPT-5.2",
    published="ogcare",
)  # fmt: skip
