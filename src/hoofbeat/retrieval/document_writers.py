"""Query writing: a language model writes a document that answers the question, and that is searched for.

A question and the text that answers it often share no words; what a model believes to be the answer does
(generation-augmented retrieval). Each method has a fusion rule, the way question q and generated documents d1 … dn
become a search:

    method      lexical rankers search for                       dense rankers average the vectors of
    hyde        d1 … dn                                          q, d1, …, dn
    query2doc   q q q q q d1, and so on for each document        q [SEP] d1, …, q [SEP] dn
    lamer       q d1 q d2 … q dn                                 q, d1, …, dn
    reason      the final answer, as in hyde                     as in hyde

What a reasoning model thinks before it answers is kept in the trace and never searched for. If one of a query's
generations fails, the query fails: fewer documents would be another method.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar, NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.models import CallResult, Model, Reply
from hoofbeat.prompts import Prompt, load_prompt, material
from hoofbeat.records import Failure, TraceStep
from hoofbeat.retrieval.line import CostBound, Stage, StageOption
from hoofbeat.retrieval.query_tasks import DEFAULT_TASK, query_task, split_table
from hoofbeat.retrieval.stage_roles import QueryWriter, SearchQuery, StageTools
from hoofbeat.window import DEFAULT_WINDOW, room_for

FusedQuery = tuple[str, tuple[str, ...]]
"""What lexical rankers search for, and the texts whose vectors dense ones average."""

PASSAGE_TOKENS = 600
"""About the most tokens of a passage that a prompt shows, for estimates."""

_TASK = "query-task"
_VARIED = 0.7
_PROMPT_TOKENS = 500
_END_OF_TRACE = re.compile(
    r"</(?:think|thinking|reasoning)>|^#{1,6}[ \t]*final response[ \t]*:?[ \t]*$", re.IGNORECASE | re.MULTILINE
)
_FENCE = re.compile(r"</?material\b[^>\n]*>")
_LEAD = re.compile(r"^\W*(?:the )?passage(?: that answers the question)?\W*:[\s*_]*", re.IGNORECASE)


def generation_options(tokens: int, *more: StageOption) -> tuple[StageOption, ...]:
    """The options of a stage that has a model write documents of at most `tokens` tokens, and its own."""
    return (
        StageOption("n", 1, "how many documents the model writes", min_=1, max_=64),
        *more,
        StageOption(
            "task", DEFAULT_TASK, "what the model writes: answer, case, diagnosis … or FILE.toml#NAME", check=query_task
        ),
        StageOption("model", "", "the language model; by default the command's"),
        StageOption("tokens", tokens, "the maximum length of a document", min_=16, max_=65536),
        StageOption("temperature", 0.0, "sampling temperature", min_=0, max_=2),
        StageOption("seed", 0, "the seed of the first document", min_=0, max_=2.0**31 - 1),
    )


class GenerationSettings(Struct, frozen=True, kw_only=True):
    """How documents are drawn: how many, by which model, how long, and how varied.

    Document number i is drawn with the seed plus i. Several documents at temperature 0 would all be the same, so that
    then means 0.7.
    """

    model: str = ""
    n: int = 1
    tokens: int = 512
    temperature: float = 0.0
    seed: int = 0

    @classmethod
    def of(cls, stage: Stage) -> GenerationSettings:
        """As the stage's options say."""
        n, temperature = stage.count("n"), stage.number("temperature")
        return cls(
            model=stage.word("model"),
            n=n,
            tokens=stage.count("tokens"),
            temperature=temperature or (_VARIED if n > 1 else 0.0),
            seed=stage.count("seed"),
        )


class PromptDraft(NamedTuple):
    """What a query's prompt is filled with, and what was done to get it."""

    values: dict[str, object]
    steps: tuple[TraceStep, ...] = ()


class _Written(NamedTuple):
    """One generation: a document or why there is none, and its place in the trace."""

    text: str
    step: TraceStep | None
    failure: Failure | None = None


class DocumentWriter(QueryWriter):
    """What the methods share: draw n documents for every query, then fuse them with it.

    The prompt has the name of the stage; where a task is named, what is written is the task's (`query_tasks.toml`).
    """

    options = generation_options(512)
    thinks: ClassVar[bool] = False
    """Whether the model thinks before it writes."""

    def models(self) -> tuple[str, ...]:
        """The model that writes."""
        return (self.word("model"),)

    def prompts(self) -> dict[str, str]:
        """The prompt, and the task that fills it where one is named."""
        task = query_task(self.word("task"))
        if task is None:
            return {self.name: load_prompt(self.name).label}
        return {_TASK: load_prompt(_TASK).label, f"task {self.word('task')}": task.fingerprint}

    def folders(self) -> tuple[str, ...]:
        """The file of the task, where it is the user's."""
        path, _ = split_table(self.word("task"))
        return (str(path),) if path else ()

    def cost(self) -> CostBound:
        """A call for each document."""
        count = self.count("n")
        return CostBound(count, 0, count * self.count("tokens"))

    def fuse(self, question: str, documents: Sequence[str]) -> FusedQuery:
        """The search for a question and its documents; as in HyDE."""
        return hyde_fusion(question, documents)

    def write(self, queries: Sequence[SearchQuery], tools: StageTools) -> list[SearchQuery]:
        """The queries rewritten, in order; one without text, or that has failed before, stays as it is."""
        places = [place for place, query in enumerate(queries) if query.text.strip() and query.failure is None]
        if not places:
            return list(queries)
        settings = GenerationSettings.of(self)
        model = tools.model(settings.model)
        drafts = self.drafts([queries[place] for place in places], tools, model)
        plan = [(draft, sample) for draft in drafts for sample in range(settings.n)]

        async def work(item: tuple[PromptDraft, int]) -> _Written:
            return await self._draw(model, settings, *item)

        written = iter(model.run(plan, work, title=f"Write queries: {self}", progress=tools.progress))
        results = list(queries)
        for place, draft in zip(places, drafts, strict=True):
            results[place] = self._fused(queries[place], draft, list(islice(written, settings.n)))
        return results

    def drafts(self, queries: Sequence[SearchQuery], tools: StageTools, model: Model) -> list[PromptDraft]:  # noqa: ARG002
        """What each query's prompt is filled with."""
        return [PromptDraft({"question": query.text}) for query in queries]

    def read(self, reply: Reply) -> tuple[str, str]:
        """The document in a reply, and what was thought before it."""
        return final_text(reply)

    async def _draw(self, model: Model, settings: GenerationSettings, draft: PromptDraft, sample: int) -> _Written:
        prompt, values = self._filled(draft.values)
        request = prompt.request(
            values,
            max_tokens=settings.tokens,
            temperature=settings.temperature,
            seed=settings.seed if settings.temperature else None,
            sample=sample,
        )
        outcome = await model.chat(request)
        if isinstance(outcome, Failure):
            return _Written("", None, outcome)
        return self._written(outcome, str(draft.values["question"]))

    def _filled(self, values: dict[str, object]) -> tuple[Prompt, dict[str, object]]:
        """The stage's own prompt; or that of tasks, with the same passages and as many of the task's examples."""
        task = query_task(self.word("task"))
        if task is None:
            return load_prompt(self.name), values
        shots = int(str(values.get("shots", 0)))
        more = {"passages": values.get("passages", ()), "examples": task.examples[:shots], "think": self.thinks}
        return load_prompt(_TASK), {"question": values["question"], "write": task.write, **more}

    def _written(self, outcome: CallResult, question: str) -> _Written:
        text, reasoning = self.read(outcome.reply)
        text = without_echo(text, question)
        step = TraceStep(stage=str(self), what="generated", text=text, reasoning=reasoning, calls=outcome.calls)
        if text:
            return _Written(text, step)
        cut = outcome.reply.finish == "length"
        why = "the output limit was reached before the text began" if cut else "the model wrote no new text"
        return _Written("", step, Failure(kind="truncated" if cut else "unreadable", message=why))

    def _fused(self, query: SearchQuery, draft: PromptDraft, written: Sequence[_Written]) -> SearchQuery:
        steps = (*query.steps, *draft.steps, *(one.step for one in written if one.step is not None))
        failure = next((one.failure for one in written if one.failure is not None), None)
        if failure is not None:
            return msgspec.structs.replace(query, steps=steps, failure=failure)
        lexical, dense = self.fuse(query.text, [one.text for one in written])
        return msgspec.structs.replace(query, lexical=lexical, dense=dense, steps=steps)


def hyde_fusion(question: str, documents: Sequence[str]) -> FusedQuery:
    """The documents replace the question for lexical rankers and are averaged with it for dense ones."""
    return "\n".join(documents), (question, *documents)


def final_text(reply: Reply) -> tuple[str, str]:
    """What a model wrote after its thinking, and the thinking.

    The model layer splits blocks that are opened and closed. Chat templates that open the block themselves leave only
    its end in the text, and some models end their thinking with a heading.
    """
    text, reasoning = reply.text, reply.reasoning
    ends = list(_END_OF_TRACE.finditer(text))
    if ends:
        reasoning = f"{reasoning}\n{text[: ends[-1].start()]}"
        text = text[ends[-1].end() :]
    return text.strip(), reasoning.strip()


def without_echo(text: str, question: str) -> str:
    """A text without what small models repeat of their prompt: the question in its fence, fences, "The passage:"."""
    return _LEAD.sub("", _FENCE.sub("", text.replace(material(question, "question"), "")).strip())


def room_beside(window: int | None, output_tokens: int, texts: Iterable[str]) -> int:
    """How many bytes of passages a prompt has room for beside these texts; an answer takes at most a quarter."""
    output = min(output_tokens, (window or DEFAULT_WINDOW) // 4)
    return room_for(window, prompt=_PROMPT_TOKENS, output=output, beside=texts)
