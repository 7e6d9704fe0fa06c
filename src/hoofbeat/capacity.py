"""What a study would take before it is begun: calls, tokens, money, hours, memory and disk, here and on a cluster.

Work of the machine is measured once (`capacity.toml`, by `bench/plan.py`): for each stage the CPU seconds of its parts
and those of the command itself, which more machines don't shorten (Amdahl). Calls are counted by the formulas of the
stages' own estimates, and priced by their own requests; they take as long as the model's servers need for them.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, structs

from hoofbeat.answering import PlannedAnswer
from hoofbeat.answering.answer_calls import request_for
from hoofbeat.audit.answers_by_source import absence_request, source_request
from hoofbeat.audit.audit_estimate import economy_calls
from hoofbeat.audit.audit_plan import WHOLE_UP_TO
from hoofbeat.audit.economy.economy_audit import usual_sample
from hoofbeat.audit.economy.positions import ANSWERS_IN_A_CALL, positions_request
from hoofbeat.audit.pair_judge import comparison_request
from hoofbeat.corpus.duplicates import JACCARD, Banding, Shingler, Signer, SignTexts
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.models.http_backend import EmbeddedBackend
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Passage, Question
from hoofbeat.retrieval.index.postings import Postings
from hoofbeat.retrieval.line import every_stage, parse
from hoofbeat.retrieval.rankings.ranking_plan import encodes_by_endpoint, estimate_line
from hoofbeat.retrieval.stage_roles import Ranker
from hoofbeat.teaching import cases_folder
from hoofbeat.window import tokens_at_most

RISK = 0.05
"""The risk of economy that a plan counts with."""

_MIN_SEEN = 20
_PROBED = 4
_PASSAGE = 850  # characters of the passages that encoding was measured with
_HOUR = 3600.0
_GB = 1e9


class StageCost(Struct, frozen=True, forbid_unknown_fields=True):
    """CPU seconds for one unit of a stage, of its parts and of the command, and those to begin it.

    `at_most` is how many parts can run side by side.
    """

    work: float
    serial: float
    start: float = 0.5
    at_most: int = 1 << 30


class Costs(Struct, frozen=True, forbid_unknown_fields=True):
    """The measured costs in `capacity.toml`."""

    measured: str
    joining: float
    merge: float
    question: float
    text_per_article: int
    stages: dict[str, StageCost]
    pairs: dict[str, float]
    bytes: dict[str, float]
    probe: dict[str, float]
    texts: dict[str, int]
    models: dict[str, float]


def load_costs() -> Costs:
    """The measured costs."""
    return msgspec.convert(tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8")), Costs)


class StudySize(Struct, frozen=True, kw_only=True):
    """What is planned: documents, questions, sources that answer every question, and how passages are found.

    `characters` are those of all articles together, `question_characters` those of a question (0: as usual).
    `positions` is how many positions the answers to a question have, for an audit in economy; without it all pairs are
    judged.
    """

    articles: int
    characters: int
    passages: int
    questions: int = 0
    question_characters: int = 0
    sources: int = 0
    line: str = "bm25 + dense"
    positions: int | None = None


class CallRate(Struct, frozen=True, kw_only=True):
    """How quickly a model answers: seconds per call with `in_flight` calls at each server; `max_in_flight` in all.

    `servers` is their number; None is one on each node. `tokens_out` of a call is None where it is not known.
    """

    seconds: float
    in_flight: int
    max_in_flight: int
    servers: int | None = None
    tokens_out: float | None = None
    source: str = ""

    def per_second(self, nodes: int) -> float:
        """Calls per second of all servers."""
        return min((self.servers or nodes) * self.in_flight, self.max_in_flight) / self.seconds


class PlannedStage(Struct, frozen=True, kw_only=True):
    """A stage: how much of what, CPU hours of its parts and of the command, and hours by number of nodes."""

    name: str
    amount: int
    unit: str
    work_hours: float = 0.0
    serial_hours: float = 0.0
    hours: dict[int, float]
    estimate: Estimate | None = None


class CapacityPlan(Struct, frozen=True, kw_only=True):
    """All stages, what they take together by number of nodes, and what was assumed. Sizes are in GB."""

    stages: list[PlannedStage]
    nodes: list[int]
    cores: int
    calls: int
    tokens_in: int
    tokens_out: int
    money: float | None
    hours: dict[int, float]
    memory: dict[str, float]
    disk: dict[str, float]
    assumptions: list[str]


def rate_of(
    model: Model, costs: Costs, *, seconds: float | None, in_flight: int | None, servers: int | None, fleet_limit: int
) -> CallRate:
    """A model's rate: as stated by the user, else from the ledger, else assumed.

    Servers are on each node, but not a provider's, nor the embedded model, which takes no calls at once.
    """
    embedded = in_flight is None and isinstance(model.backend, EmbeddedBackend)
    if embedded or model.identity.startswith("openai:"):
        servers = servers or 1
    rows = [
        row for row in model.ledger.stats().by_model if (row["model"], row["operation"]) == (model.identity, "chat")
    ]
    row = rows[0] if rows and int(rows[0]["calls"]) >= _MIN_SEEN else None
    seen = int(row["calls"]) if row else 0
    if seconds is not None:
        source = f"{seconds:g} s per call, as given"
    elif row:
        source = f"{float(row['seconds']) / seen:.2f} s per call, the mean of {seen:,} calls in the ledger"
    else:
        source = f"{costs.models['seconds']:g} s per call is a guess: the ledger has too few calls of {model.spec}"
    limit = model.pacer.max_in_flight
    return CallRate(
        seconds=seconds or (float(row["seconds"]) / seen if row else costs.models["seconds"]),
        in_flight=in_flight or min(int(costs.models["in_flight"]), limit),
        max_in_flight=limit if servers == 1 else max(limit, fleet_limit),
        servers=servers,
        tokens_out=float(row["tokens_out"]) / seen if row else None,
        source=source,
    )


class _Planner:
    """The stages of a study, one after the other."""

    def __init__(self, costs: Costs, rate: CallRate, nodes: Sequence[int], cores: int, speed: float) -> None:
        self.stages: list[PlannedStage] = []
        self._costs = costs
        self._rate = rate
        self._nodes = nodes
        self._cores = cores
        self._speed = speed

    def work(self, name: str, amount: int, unit: str, units: float, *, more: float = 0.0, merged: int = 0) -> None:
        """A stage of the machine: `units` times its cost, and `more` CPU seconds of parts beside.

        Where shards are searched, their results on `merged` questions are put together by the command: the number of
        shards is the one that ends soonest.
        """
        if not amount:
            return
        cost = self._costs.stages[name]
        work = (units * cost.work + more) * self._speed
        serial = (cost.start + units * cost.serial + merged * self._costs.question) * self._speed
        merging = merged * self._costs.merge * self._speed
        hours = {}
        for nodes in self._nodes:
            cores = float(min(self._cores * nodes, cost.at_most))
            if nodes > 1 and merging:
                cores = min(cores, max(float(self._cores), (work / merging) ** 0.5))
            joining = self._costs.joining + merging * cores if nodes > 1 and work else 0.0
            hours[nodes] = (joining + serial + work / cores) / _HOUR
        self.stages.append(
            PlannedStage(
                name=name,
                amount=amount,
                unit=unit,
                work_hours=work / _HOUR,
                serial_hours=serial / _HOUR,
                hours=hours,
            )
        )

    def calls(self, name: str, estimate: Estimate) -> None:
        """Model calls: as quick as the servers, or as one command can make them."""
        if not estimate.calls:
            return
        cost = self._costs.stages["calls"]
        serial = (cost.start + estimate.calls * cost.serial) * self._speed
        hours = {nodes: max(estimate.calls / self._rate.per_second(nodes), serial) / _HOUR for nodes in self._nodes}
        self.stages.append(
            PlannedStage(name=name, amount=estimate.calls, unit="calls", serial_hours=serial / _HOUR, hours=hours,
                         estimate=estimate)
        )  # fmt: skip


def plan_capacity(
    study: StudySize,
    model: Model,
    rate: CallRate,
    *,
    nodes: Sequence[int] = (1, 8, 64),
    cores: int = 16,
    speed: float = 1.0,
    load: Callable[[str], Model] | None = None,
) -> CapacityPlan:
    """What a study takes on these numbers of nodes with that many cores each; the first is one machine.

    `speed` multiplies the measured seconds of this machine's work; `load` gives the models that the line names.
    """
    costs = load_costs()
    planner = _Planner(costs, rate, nodes, cores, speed)
    _plan_corpus(planner, study, costs)
    _plan_search(planner, study, costs, load or (lambda _: model))
    for name, found in _estimates(study, model, costs).items():
        planner.calls(name, found)
    planner.work("audit: table and findings", _pairs(study), "pairs", _pairs(study) / 1e6)
    total = sum((stage.estimate for stage in planner.stages if stage.estimate is not None), Estimate())
    tokens_out = total.max_tokens_out if rate.tokens_out is None else round(total.calls * rate.tokens_out)
    money = model.price.of(total.tokens_in, tokens_out) if model.price else None
    return CapacityPlan(
        stages=planner.stages,
        nodes=list(nodes),
        cores=cores,
        calls=total.calls,
        tokens_in=total.tokens_in,
        tokens_out=tokens_out,
        money=money if total.calls else 0.0,
        hours={count: sum(stage.hours[count] for stage in planner.stages) for count in nodes},
        memory=_memory(study, costs),
        disk=_disk(study, costs, total.calls),
        assumptions=_assumptions(study, costs, rate, cores, speed),
    )


def _pairs(study: StudySize) -> int:
    """The pairs of an audit, whether a model judges them or not."""
    return study.questions * study.sources * (study.sources - 1) // 2


def _plan_corpus(planner: _Planner, study: StudySize, costs: Costs) -> None:
    text = study.characters / 1e6
    pairs = study.articles * (study.articles - 1) / 2 * costs.pairs["share"]
    planner.work("import", study.articles, "articles", text)
    planner.work("near-duplicates", study.articles, "articles", text, more=pairs * costs.pairs["seconds"])
    planner.work("cutting", study.articles, "articles", text)


def _plan_search(planner: _Planner, study: StudySize, costs: Costs, load: Callable[[str], Model]) -> None:
    """Indexes and searches of the line; an endpoint that encodes is called as other models are."""
    lexical, dense = _indexes(study.line)
    by_endpoint = encodes_by_endpoint(study.line)
    thousands, searched = study.passages / 1e3, study.questions * study.passages / 1e6
    asking = study.questions if study.passages else 0
    length = study.question_characters or costs.texts["question"]
    if lexical:
        planner.work("indexing", study.passages, "passages", thousands)
    if dense and not by_endpoint:
        planner.work("encoding", study.passages, "passages", thousands)
    if lexical:
        planner.work("searching", asking, "questions", searched * length / 1e3, merged=asking)
    if dense:
        encoding = 0.0 if by_endpoint else asking / 1e3 * length / _PASSAGE * costs.stages["encoding"].work
        planner.work("dense search", asking, "questions", searched, more=encoding, merged=asking)
    encoded = study.passages + study.questions if by_endpoint else 0
    asked = study.questions * int(tokens_at_most("x" * length))
    planner.calls("retrieval", estimate_line(study.line, study.questions, asked, encoded, load))


def _indexes(line: str) -> tuple[bool, bool]:
    """Whether a line searches by words, and by vectors."""
    uses = [use for stage in every_stage(parse(line)) if isinstance(stage, Ranker) for use in stage.index_uses()]
    return any(use.lexical for use in uses), any(use.vectors for use in uses)


def _estimates(study: StudySize, model: Model, costs: Costs) -> dict[str, Estimate]:
    """The calls of answers and judgments, or with several sources of an audit: each by its stage's own request."""
    pack = load_pack("clinicians")
    sizes = costs.texts | ({"question": study.question_characters} if study.question_characters else {})
    shown = {name: "x" * size for name, size in sizes.items()}
    question = Question(id="q", text=shown["question"], answer=shown["answer"])
    passages = tuple(
        Passage(id=f"d#{number}", document="d", text=shown["passage"]) for number in range(costs.texts["passages"])
    )
    planned = PlannedAnswer(question=question, condition=study.line, passages=passages)

    def of(request: ChatRequest, count: int) -> Estimate:
        return model.estimate([request]) * count if count else Estimate()

    if study.sources < 2:
        answer = Answer(question="q", model=model.spec, condition=study.line, text=shown["answer"])
        return {
            "answers": of(request_for(planned), study.questions),
            "judgments": of(EQUIVALENCE.request(question, answer, None), study.questions),
        }
    if whole := _whole_source(study):
        planned = structs.replace(planned, passages=(Passage(id="d#0", document="d", text="x" * whole),))
    answers, pairs = study.questions * study.sources, _pairs(study)
    sorting = 0
    if study.positions is not None:
        counts = [study.sources] * study.questions
        sorting, pairs = economy_calls(counts, study.positions, usual_sample(pairs, RISK))
    together = [shown["answer"]] * min(study.sources, ANSWERS_IN_A_CALL)
    return {
        "audit: answers": of(source_request(planned, pack), answers),
        "audit: checks for silence": of(absence_request(question, shown["answer"], pack), answers),
        "audit: sorting": of(positions_request(question, together, (), pack), sorting),
        "audit: pairs": of(comparison_request(question, shown["answer"], shown["answer"], pack), pairs),
    }


def _whole_source(study: StudySize) -> int:
    """How many characters an audit shows of each source where it shows it whole, else 0."""
    if study.sources < 2:
        return 0
    each = study.characters // study.sources
    return each if each <= WHOLE_UP_TO else 0


def _shown_of_a_source(study: StudySize, costs: Costs) -> str:
    shown = f"{costs.texts['passages']} passages of {costs.texts['passage']} characters of its source"
    if whole := _whole_source(study):
        shown = f"its whole source ({whole:,} characters: the text divided by the sources)"
    return f"an answer is shown {shown}; hoofbeat audit --estimate counts your own documents"


def _memory(study: StudySize, costs: Costs) -> dict[str, float]:
    """GB that the command needs for each kind of work, and those that a machine should have to search quickly."""
    size, (lexical, dense) = costs.bytes, _indexes(study.line)
    encoding = study.passages * (size["vector"] + study.characters / max(1, study.passages))
    parts = {
        "import": size["article"] * study.articles,
        "indexing": size["inverting"] * study.passages if lexical else 0.0,
        "encoding": encoding if dense else 0.0,
        "findings": size["pair"] * _pairs(study),
        "searching": study.passages
        * (size["place"] + (size["postings"] if lexical else 0) + (size["vector"] if dense else 0)),
    }
    return {name: (size["command"] + held) / _GB for name, held in parts.items() if held}


def _disk(study: StudySize, costs: Costs, calls: int) -> dict[str, float]:
    """GB of each kind of file; those of near-duplicates are there only while documents are compared."""
    size, (lexical, dense) = costs.bytes, _indexes(study.line)
    parts = {
        "corpus": size["document"] * study.characters,
        "passages": size["passage"] * study.characters,
        "lexical index": size["postings"] * study.passages if lexical else 0.0,
        "vectors, in the index and in the cache": 2 * size["vector"] * study.passages if dense else 0.0,
        "near-duplicates, temporary": size["signature"] * study.articles + size["shingles"] * study.characters,
        "audit": size["pair_row"] * _pairs(study),
        "ledger": size["call"] * calls,
    }
    return {name: held / _GB for name, held in parts.items()}


def _assumptions(study: StudySize, costs: Costs, rate: CallRate, cores: int, speed: float) -> list[str]:
    servers = "one model server" + (" on each node" if rate.servers is None else "")
    if (rate.servers or 1) > 1:
        servers = f"{rate.servers} model servers"
    out = "the maximum of each call" if rate.tokens_out is None else f"{rate.tokens_out:.0f} per call, as in the ledger"
    audit = "all pairs are judged" if study.positions is None else f"economy, {study.positions} positions per question"
    return [
        f"work of the machine: {costs.measured}"
        + (f"; this machine takes {speed:.2f} times as long (probed)" if speed != 1 else ""),
        f"each node has {cores} such cores; joining a cluster takes {costs.joining:g} s per stage",
        f"{study.characters:,} characters of text in {study.articles:,} articles and {study.passages:,} passages",
        "more nodes do not shorten the command's own work (Amdahl's law)",
        "on a cluster an index has the number of shards that finishes first, and its memory is divided among them",
        f"model: {rate.source}",
        f"{servers} with {rate.in_flight} calls in flight each, at most {rate.max_in_flight} together; calls take "
        "equally long on every server",
        f"tokens out: {out}; no call fails or is repeated, and the ledger is empty",
        *(
            [f"audit: every source answers every question; {audit}; {_shown_of_a_source(study, costs)}"]
            if study.sources > 1
            else []
        ),
        "vectors of 384 numbers (all-MiniLM-L6-v2); vectors and postings are in memory during a search",
        "disks and networks are never the bottleneck; building a benchmark is not included (hoofbeat build --estimate)",
    ]


def probe(costs: Costs) -> float:
    """How many times the measured seconds this machine takes: it signs and indexes the teaching set's reports."""
    texts = [path.read_text("utf-8") for path in sorted(cases_folder().iterdir()) if path.is_file()] * _PROBED
    millions = sum(map(len, texts)) / 1e6
    began = time.process_time()
    SignTexts(Shingler(), Signer(Banding.for_threshold(JACCARD)))(texts)
    Postings.build(texts)
    return (time.process_time() - began) / millions / costs.probe["seconds"]
