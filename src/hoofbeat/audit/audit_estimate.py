"""What an audit would cost: the calls that its ledger does not have yet.

The audit's own steps are gone through with the replies that the ledger has. An answer that is there leads to its check
for absence and to its pairs, word for word; only what depends on an answer that is not there is counted as the most it
can be. So a new edition of one source is estimated at its own answers and pairs.

Calls that ask again are told beside it as a range: a reply that breaks its form is asked for once more, and so is an
answer that the check of its words objects to. How many that will be depends on the model, not on the plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from hoofbeat.audit.answers_by_source import absence_request, answer_from_sources, source_request
from hoofbeat.audit.answers_file import decide_absence
from hoofbeat.audit.audit_plan import AuditPlan
from hoofbeat.audit.economy.economy_audit import CarriedLabels, prepare_economy
from hoofbeat.audit.economy.positions import ANSWERS_IN_A_CALL, positions_request, sorting_calls
from hoofbeat.audit.judge_votes import NO_VOTE, Judges, judges_of
from hoofbeat.audit.pair_judge import PairJudge, comparison_request, judge_pairs
from hoofbeat.audit.pair_plan import Claim, plan_pairs
from hoofbeat.audit.source_audit import PairToProbe, in_blocks, offer_to_probe, probe_order
from hoofbeat.audit.source_names import source_dates
from hoofbeat.judging.canary import with_canary
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.models import ChatRequest, Estimate, Model
from hoofbeat.models.model import NOT_IN_LEDGER, LedgerModel
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Answer, Failure, Question
from hoofbeat.text import dollars
from hoofbeat.window import BYTES_PER_TOKEN

_BLOCK = 256
_STATED_SHARE = 8, 150  # answers with an objection that asks again, in audits of real guidelines on eight topics
_MIN_SEEN = 20


class AuditEstimate(Estimate, frozen=True, kw_only=True):
    """What an audit would spend; `again_most` calls at most ask again, and `again_likely` by the share that is told.

    Neither they nor their tokens and money are in the other figures.
    """

    again_most: int = 0
    again_likely: int = 0
    again_share: str = ""

    @property
    def again_words(self) -> str:
        """The range in words; empty where no call is to be made."""
        if not self.again_most:
            return ""
        more = ""
        if self.max_money and self.calls and self.again_likely:
            more = f", {dollars(self.max_money / self.calls * self.again_likely, at_most=True)} more"
        return (
            f"plus 0 to {self.again_most} repeated calls, for replies in a wrong format or answers that fail a check; "
            f"probably about {self.again_likely}{more} ({self.again_share})"
        )


def estimate_audit(plan: AuditPlan, model: Model, judge: Judges) -> AuditEstimate:
    """What the audit would spend at most beside what the ledger has: an answer that is not there is never silent."""
    found, unasked = _without_again(plan, model, judge)
    again, answers, share = _again_share(model) if unasked else (0, 1, "all answers are in the ledger")
    return AuditEstimate(
        **msgspec.structs.asdict(found),
        again_most=found.calls + 2 * unasked,  # a repair of each; each answer may be asked again, with a repair
        again_likely=round(unasked * again / answers),
        again_share=share,
    )


def _again_share(model: Model) -> tuple[int, int, str]:
    """How many answers the model was asked for again, of how many, and how that is known."""
    seen = model.ledger.count_by_prompt(model.identity)
    again, answers = seen.get("answer-source-again", 0), seen.get("answer-source", 0)
    if answers >= _MIN_SEEN:
        return again, answers, f"this model had to repeat {again} of {answers} answers in the ledger"
    again, answers = _STATED_SHARE
    return (
        again,
        answers,
        f"{again} of {answers} answers were repeated in our trials; the ledger has too few by this model",
    )


def _without_again(plan: AuditPlan, model: Model, judge: Judges) -> tuple[Estimate, int]:
    """The estimate, and how many answers are still to be asked for."""
    longest = "x" * (BYTES_PER_TOKEN * (plan.max_tokens or load_prompt("answer-source").max_tokens))
    reader = LedgerModel(model)
    total = Estimate()
    claims: dict[str, list[Claim]] = {}
    dates = source_dates(plan.sources)
    open_answers: dict[str, int] = {}
    not_asked = 0
    for answer, unasked in _each_answer(plan, model, reader):
        if not _is_missing(answer.failure):
            claims.setdefault(answer.question, []).append(Claim.of(answer, plan.pack, dates))
        elif answer.text:
            spoken = replace(answer, failure=None)
            claims.setdefault(answer.question, []).append(Claim.of(spoken, plan.pack, dates))
        else:
            open_answers[answer.question] = open_answers.get(answer.question, 0) + 1
            if unasked is not None:
                not_asked += 1
                total = total + model.estimate([absence_request(unasked, f"{longest} {answer.source}", plan.pack)])
    for mine in claims.values():
        mine.sort(key=lambda each: each.source)
    judges = [LedgerModel(each) for each in judges_of(judge)]
    comparing = PairJudge(judges, plan.pack, canary=plan.canary)
    draw: ReservoirSample[PairToProbe] = ReservoirSample(plan.probe, plan.seed)
    complete = not open_answers
    carried, sorting = _sorted(plan, comparing, claims, open_answers, longest)
    total = total + sorting
    for question in sorted(plan.own_questions, key=lambda each: each.id):
        mine = claims.get(question.id, [])
        pairs = carried.plan(question) if carried else plan_pairs(question, mine)
        for (a, b), verdict in zip(pairs.asked, judge_pairs(comparing, [pairs])[0], strict=True):
            complete = complete and not _is_missing(verdict.failure) and NO_VOTE not in verdict.votes
            if verdict.failure is None:
                offer_to_probe(draw, pairs, a, b, verdict.label)
        left = open_answers.get(question.id, 0)
        speaking = sum(not each.absent and each.failure is None for each in mine)
        worst = _with_code(comparison_request(question, longest, f"{longest} ", plan.pack), plan)
        total = total + _times(judges_of(judge), worst, left * speaking + left * (left - 1) // 2)
    if plan.probe and complete:
        probe_order(comparing, draw)
    elif plan.probe:
        swapped = _with_code(comparison_request(Question(id="", text=longest), longest, longest, plan.pack), plan)
        total = total + _times(judges_of(judge), swapped, plan.probe)
    return sum((each.estimated for each in judges), total + reader.estimated), not_asked


def _with_code(request: ChatRequest, plan: AuditPlan) -> ChatRequest:
    return with_canary(request).request if plan.canary else request


def _sorted(
    plan: AuditPlan, judge: PairJudge, claims: dict[str, list[Claim]], open_answers: dict[str, int], longest: str
) -> tuple[CarriedLabels | None, Estimate]:
    """What economy makes of the answers as far as the ledger has its calls, and what sorting them would cost.

    A call that is not there sorts nothing, so that all pairs of its answers are counted.
    """
    if plan.economy is None:
        return None, Estimate()
    if not open_answers:
        sorter = LedgerModel(plan.economy.sorter)
        carried = prepare_economy(replace(plan.economy, sorter=sorter), judge, plan.own_questions, claims, plan.seed)
        return carried, sorter.estimated
    total = Estimate()
    for question in plan.own_questions:
        count = len(claims.get(question.id, ())) + open_answers.get(question.id, 0)
        worst = positions_request(question, [longest] * min(count, ANSWERS_IN_A_CALL), (), plan.pack)
        total = total + _times([plan.economy.sorter], worst, sorting_calls(count))
    return None, total


def economy_range(plan: AuditPlan, judges: int) -> str:
    """How many calls the pairs of an audit take in economy, from one position per question to no two that agree."""
    assert plan.economy is not None
    counts = [count for count in plan.sources_asked.values() if count > 1]
    pairs = sum(count * (count - 1) // 2 for count in counts)
    if not any(map(sorting_calls, counts)):
        return "economy: no question has four or more sources, so nothing can be saved; all pairs will be judged"
    sample = plan.economy.sample(pairs)
    three, six, ten = (sum(economy_calls(counts, most, sample, judges)) for most in (3, 6, 10))
    return (
        f"economy: comparing all pairs takes {pairs * judges:,} calls if every source answers. With economy it takes "
        f"{three:,} if each question has 3 positions, {six:,} with 6, {ten:,} with 10 (including sorting and check). "
        "The estimate below is the maximum, as if no two answers agree"
    )


def economy_calls(counts: Sequence[int], positions: int, sample: int, judges: int = 1) -> tuple[int, int]:
    """The calls that sort answers and those that compare pairs, where each question has that many positions.

    `counts` are the sources that answer each question, `sample` the pairs that are judged to check the others.
    """
    pairs = sum(count * (count - 1) // 2 for count in counts)
    needed = 0
    for count in counts:
        held = min(positions, count) if sorting_calls(count) else count
        needed += held * (held - 1) // 2 + min(held, count // 3) * (held < count)
    return sum(map(sorting_calls, counts)), min(needed + sample, pairs) * judges


def _each_answer(plan: AuditPlan, model: Model, reader: LedgerModel) -> Iterator[tuple[Answer, Question | None]]:
    """Every answer as far as the ledger has it; with its question where the source was not even asked."""
    if plan.given is not None:
        by_id = {question.id: question for question in plan.own_questions}
        given = [answer for answer in plan.given if answer.question in by_id]
        for block in in_blocks(iter(given), _BLOCK):
            for row, answer in zip(block, decide_absence(reader, by_id, block, plan.pack), strict=True):
                yield replace(answer, text=row.text) if _is_missing(answer.failure) else answer, None
        return
    for planned in in_blocks(plan.each_planned(model), _BLOCK):
        found = answer_from_sources(reader, planned, plan.pack, max_tokens=plan.max_tokens)
        for item, answer in zip(planned, found, strict=True):
            unasked = (
                _is_missing(answer.failure) and model.estimate([source_request(item, plan.pack, plan.max_tokens)]).calls
            )
            yield answer, item.question if unasked else None


def _is_missing(failure: Failure | None) -> bool:
    return failure is not None and failure.message == NOT_IN_LEDGER


def _times(models: Sequence[Model], request: ChatRequest, count: int) -> Estimate:
    """What that many different calls of this size to each of the models would cost."""
    return sum((model.estimate([request]) * count for model in models if count), Estimate())
