"""How the answers of two sources relate: five ordered labels, from absent to contradictory, with a structured record.

A pair with a silent side is Absent without a call; a judge that finds no answer to what is asked says Absent as well,
like the paper's judge. Every pair stands once, the lesser source first; the same two texts are judged once, whichever
source has which. Output that can't be read gets one repair; where that can't be read either,
the label is taken if the output is little more than a label, without any other field; else the pair has failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec

from hoofbeat.audit.judge_votes import Judges, judges_of, majority_verdict
from hoofbeat.audit.pair_plan import PairPlan, PairVerdict, claims_by_question, pair_frame, plan_pairs
from hoofbeat.audit.pair_table import TableEnums, each_row
from hoofbeat.errors import BatchPending
from hoofbeat.findings.injection_figures import CODE_MISSING
from hoofbeat.judging.canary import CheckedRequest, canary_failure, with_canary
from hoofbeat.models import ChatRequest, Message, Model
from hoofbeat.models.reply_text import UnreadableOutput, read_object, repair_request
from hoofbeat.progress import SILENT, Progress, Within
from hoofbeat.prompts import Pack
from hoofbeat.prompts.instructions import text_instructions
from hoofbeat.prompts.library import material
from hoofbeat.records import Answer, Comparison, Failure, Question

AnswerPair = tuple[Question, Answer, Answer]

_A, _B = "⁅first answer⁆", "⁅second answer⁆"
_KEY = re.compile(r"""["']classification\\?["']""", re.I)
_VALUE = re.compile(r"""["']classification\\?["']\s*:\s*\\?["']([^"'\\\n]*)\\?["']""", re.I)
_GIVEN = re.compile(
    r"^(?:[^\S\n]|[*_#>-])*+(?:(?:the|my|final)\s+){0,2}(?:label|classification)[*_`]*\s*[:=]([^\n]*)$", re.I | re.M
)
_MARKS = " \t\r*_`\"'.“”‘’"
_FILLERS = frozenset(
    ("a", "an", "answer", "answers", "are", "as", "between", "classification", "classify", "final", "i", "is", "it",
     "label", "my", "pair", "relation", "relationship", "say", "so", "sources", "the", "their", "therefore", "these",
     "they", "this", "thus", "two", "verdict", "would")
)  # fmt: skip
_OTHERS = 8


def pairs_of(questions: Sequence[Question], answers: Sequence[Answer]) -> list[AnswerPair]:
    """Every pair of sources that were asked the same question, in order."""
    by_question: dict[str, list[Answer]] = {}
    for answer in answers:
        by_question.setdefault(answer.question, []).append(answer)
    return [
        (question, a, b)
        for question in questions
        for a, b in combinations(sorted(by_question.get(question.id, []), key=lambda item: item.source), 2)
    ]


def comparison_request(question: Question, a: str, b: str, pack: Pack) -> ChatRequest:
    """The call that compares two answers, with the pack's labels in its output contract."""
    prompt = pack.prompt("compare")
    with_significance = " and ".join(label.name for label in pack.labels if label.significance)
    note = f"Give it for {with_significance} only, else none." if with_significance else "Always write none."
    values = {
        "question": question.full_text,
        "answer_a": a,
        "answer_b": b,
        "labels": pack.choices,
        "decision": pack.decision.strip(),
        "reader": pack.reader,
        "significance_meaning": pack.significance_meaning.strip(),
        "schema_note": note,
    }
    assert prompt.schema is not None
    schema = msgspec.json.decode(msgspec.json.encode(prompt.schema))
    schema["properties"]["classification"]["enum"] = [label.name for label in pack.choices]
    schema["properties"]["significance"]["enum"] = ["none", *pack.significance_levels]
    return prompt.request(values, schema=schema)


class PairJudge:
    """A judge on many pairs, or several of whom the majority decides.

    What the calls of a question share is laid out once: there may be a million of them. With `canary`, calls carry a
    check code, and a verdict without it is a failure.
    """

    def __init__(self, judge: Judges, pack: Pack, *, canary: bool = False) -> None:
        self.models = judges_of(judge)
        self.pack = pack
        self.canary = canary
        self._question: Question | None = None
        self._request: ChatRequest | None = None
        self._parts: tuple[str, str, str] = ("", "", "")

    @property
    def name(self) -> str:
        """The judge of a pair: the one there is, or `majority of N`."""
        from hoofbeat.judging.votes import majority_name  # noqa: PLC0415 - `ask` compares without loading aspects

        return majority_name([model.spec for model in self.models])

    def request(self, question: Question, a: str, b: str) -> ChatRequest:
        """The same call as `comparison_request` makes; `a` and `b` are texts laid out by `fenced_text`."""
        if self._question is not question:
            self._lay_out(question)
        assert self._request is not None
        head, between, tail = self._parts
        user = Message(role="user", content=f"{head}{a}{between}{b}{tail}")
        flags = dict.fromkeys((*self._request.flags, *text_instructions(a), *text_instructions(b)))
        return msgspec.structs.replace(self._request, messages=(*self._request.messages[:-1], user), flags=tuple(flags))

    def _lay_out(self, question: Question) -> None:
        request = comparison_request(question, _A, _B, self.pack)
        text = request.messages[-1].content
        before, _, after = text.rpartition(_A)  # the question stands before the answers, whatever it says
        between, _, tail = after.partition(_B)
        self._question, self._request, self._parts = question, request, (before, between, tail)

    async def judge(self, request: ChatRequest, model: Model) -> PairVerdict:
        """What one of the judges says of one pair."""
        if not self.canary:
            return await self._ask(request, model, None)
        said = await self.judge_checked(request, model)
        if said.check == CODE_MISSING:
            return PairVerdict(failure=canary_failure(said.label), calls=said.calls, check=said.check)
        return said

    async def judge_checked(self, request: ChatRequest, model: Model) -> PairVerdict:
        """What a judge says in a call with a check code, whatever became of the code."""
        checked = with_canary(request)
        return await self._ask(checked.request, model, checked)

    async def _ask(self, request: ChatRequest, model: Model, checked: CheckedRequest | None) -> PairVerdict:
        """One call, with one repair."""
        reads = checked.reads if checked else request.schema
        assert reads is not None
        first = await model.chat(request)
        if isinstance(first, Failure):
            return PairVerdict(failure=first)
        usage = first.reply.usage
        value = read_object(first.reply, reads)
        if not isinstance(value, UnreadableOutput):
            return self._verdict(value, first.calls, (usage.tokens_in, usage.tokens_out), checked)
        second = await model.chat(repair_request(request, first.reply, value))
        if isinstance(second, Failure):
            return PairVerdict(failure=msgspec.structs.replace(second, attempts=second.attempts + 1))
        calls = first.calls + second.calls
        tokens = usage.tokens_in + second.reply.usage.tokens_in, usage.tokens_out + second.reply.usage.tokens_out
        repaired = read_object(second.reply, reads)
        if not isinstance(repaired, UnreadableOutput):
            return self._verdict(repaired, calls, tokens, checked)
        whole = [each.reply.text for each in (second, first) if each.reply.finish != "length"]
        label = next(filter(None, (scan_label(text, self.pack) for text in whole)), "")
        if label:
            check = CODE_MISSING if checked else ""
            return PairVerdict(
                label=label, calls=calls, tokens_in=tokens[0], tokens_out=tokens[1], scanned=True, check=check
            )
        return PairVerdict(failure=Failure(kind=repaired.kind, message=repaired.message, attempts=2))

    def _verdict(
        self,
        value: dict[str, object],
        calls: tuple[str, ...],
        tokens: tuple[int, int],
        checked: CheckedRequest | None,
    ) -> PairVerdict:
        label = self.pack.label(str(value["classification"]))
        level = str(value["significance"])
        return PairVerdict(
            label=label.name,
            reasoning=str(value["reasoning"]).strip(),
            topic=str(value["topic"]).strip() or None if label.topic else None,
            significance=level if label.significance and level != "none" else None,
            calls=calls,
            tokens_in=tokens[0],
            tokens_out=tokens[1],
            check=checked.state(value) if checked else "",
        )


def fenced_text(text: str) -> str:
    """A text as it stands inside its fence in a prompt: what `material` makes of it, without the fence."""
    return material(text).partition("\n")[2].rpartition("\n")[0]


def scan_label(text: str, pack: Pack) -> str:
    """The one label that an unreadable but whole output gives; empty where that is not beyond doubt.

    Where it has a field `classification`, the label is that field's value, or none. Else it is on a separate line
    after "label:" or "classification:", or the output is that label and a few words that can't deny it.
    """
    names = {label.name.casefold(): label.name for label in pack.labels}
    if _KEY.search(text):
        values = _VALUE.findall(text)
        return _one([names.get(value.strip().casefold(), "") for value in values])
    given = _GIVEN.findall(text)
    if given:
        return _one([names.get(value.strip(_MARKS).casefold(), "") for value in given])
    either = "|".join(re.escape(label.name) for label in pack.labels)
    parts = re.split(rf"(?<![\w-])({either})(?![\w-])", text, flags=re.IGNORECASE)
    if len(parts) != 3:
        return ""
    rest = f"{parts[0]} {parts[2]}"
    words = re.findall(r"\w+", rest.casefold())
    plain = not re.search(r"[^\w\s*`\"'.,:;(){}\[\]#>“”‘’-]", rest)
    return names[parts[1].casefold()] if plain and len(words) <= _OTHERS and _FILLERS.issuperset(words) else ""


def _one(found: Sequence[str]) -> str:
    """The only one of these, however often it stands there."""
    return found[0] if len(set(found)) == 1 else ""


def compare_answers(
    model: Judges,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    pack: Pack,
    *,
    dates: Mapping[str, str] | None = None,
    progress: Progress = SILENT,
) -> list[Comparison]:
    """Compare every pair of answers to each question, all of them in memory; `dates` are those of the sources."""
    claims = claims_by_question(answers, pack, dates)
    plans = [plan_pairs(question, claims.get(question.id, ())) for question in questions]
    judge = PairJudge(model, pack)
    verdicts = judge_pairs(judge, plans, progress=progress)
    kinds = TableEnums.of(
        questions=(question.id for question in questions),
        sources=(answer.source for answer in answers),
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges=[judge.name],
    )
    return [
        comparison
        for plan, said in zip(plans, verdicts, strict=True)
        for comparison in each_row(pair_frame(plan, said, pack, kinds, judge.name))
    ]


def judge_pairs(
    judge: PairJudge,
    plans: Sequence[PairPlan],
    *,
    known: Sequence[Mapping[tuple[int, int], PairVerdict]] = (),
    progress: Progress = SILENT,
) -> list[list[PairVerdict]]:
    """What the judge says of the pairs that these plans ask, plan by plan; `known` is what it said before."""
    before = known or [{} for _ in plans]
    items = [
        (plan.question, plan.texts[a], plan.texts[b])
        for plan, mine in zip(plans, before, strict=True)
        for a, b in plan.asked
        if (a, b) not in mine
    ]
    said = iter(judge_texts(judge, items, progress=progress))
    return [
        [mine[pair] if pair in mine else next(said) for pair in plan.asked]
        for plan, mine in zip(plans, before, strict=True)
    ]


def judge_texts(
    judge: PairJudge,
    items: Sequence[tuple[Question, str, str]],
    *,
    title: str = "comparing sources",
    progress: Progress = SILENT,
) -> list[PairVerdict]:
    """What the judge says of each (question, answer, answer), as many in flight as helps; answers in this order."""
    if not items:
        return []
    texts: dict[str, str] = {}
    for _, a, b in items:
        for text in (a, b):
            if text not in texts:
                texts[text] = fenced_text(text)

    said: list[list[PairVerdict]] = []
    pending: list[BatchPending] = []
    for place, model in enumerate(judge.models, start=1):

        async def work(item: tuple[Question, str, str], model: Model = model) -> PairVerdict:
            question, a, b = item
            return await judge.judge(judge.request(question, texts[a], texts[b]), model)

        # inside another task every pair is one step, whatever the number of judges
        told = SILENT if isinstance(progress, Within) and place < len(judge.models) else progress
        try:
            said.append(model.run(items, work, title=title, progress=told))
        except BatchPending as err:
            pending.append(err)
    if pending:
        raise BatchPending.together(pending)
    if len(said) == 1:
        return said[0]
    judges = [model.spec for model in judge.models]
    return [majority_verdict(judges, votes, judge.pack) for votes in zip(*said, strict=True)]
