"""Query writing: a language model writes what is searched for (generation-augmented retrieval).

A question and the text that answers it often share no words; what a model believes to be the answer does. Each method
has a fusion rule, the way question q and generated documents d1 … dn become a search:

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
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

import msgspec
from msgspec import Struct

from hoofbeat.models import Model, Outcome, Reply
from hoofbeat.prompts import load_prompt, material
from hoofbeat.records import Failure, TraceStep
from hoofbeat.retrieval.line import Option, Stage, StageSpec, parse
from hoofbeat.retrieval.stages import Found, SearchQuery, Tools, Writer
from hoofbeat.window import DEFAULT_WINDOW, fit_beginnings, room_for

__all__ = [
    "SPECS",
    "Drawing",
    "final_text",
    "hyde_fusion",
    "lamer_fusion",
    "make_writer",
    "prompts_of",
    "query2doc_fusion",
    "room_beside",
    "without_echo",
]

Fused = tuple[str, tuple[str, ...]]
"""What lexical rankers search for, and the texts whose vectors dense ones average."""

_VARIED = 0.7
_PROMPT_TOKENS = 500
_END_OF_TRACE = re.compile(
    r"</(?:think|thinking|reasoning)>|^#{1,6}[ \t]*final response[ \t]*:?[ \t]*$", re.IGNORECASE | re.MULTILINE
)
_ANSWER = re.compile(r"^[\s*#_`]*(?:final )?answer[*_`]*[ \t]*:[*_`]*", re.IGNORECASE | re.MULTILINE)

_FENCE = re.compile(r"</?material\b[^>\n]*>")
_LEAD = re.compile(r"^\W*(?:the )?passage(?: that answers the question)?\W*:[\s*_]*", re.IGNORECASE)

_MODEL = Option("model", "")
_SAMPLING = (Option("temperature", 0.0, 0.0, 2.0), Option("seed", 0.0, 0.0, 2.0**31 - 1, whole=True))


def _options(tokens: int, *more: Option) -> tuple[Option, ...]:
    return (
        Option("n", 1.0, 1.0, 64.0, whole=True),
        *more,
        _MODEL,
        Option("tokens", float(tokens), 16.0, 65536.0, whole=True),
        *_SAMPLING,
    )


SPECS: tuple[StageSpec, ...] = (
    StageSpec(
        "hyde",
        "query",
        _options(512),
        summary="searches for a made-up document that answers the question",
    ),
    StageSpec(
        "query2doc",
        "query",
        _options(512, Option("repeat", 5.0, 1.0, 50.0, whole=True), Option("shots", 2.0, 0.0, 4.0, whole=True)),
        summary="adds to the question a document written after worked examples",
    ),
    StageSpec(
        "lamer",
        "query",
        _options(
            512,
            Option("top", 10.0, 1.0, 100.0, whole=True),
            Option("with", "bm25", check=parse),
            Option("reads", 1200.0, 50.0, 20000.0, whole=True),
        ),
        summary="adds to the question a document written after a look at what a first search found",
    ),
    StageSpec(
        "reason",
        "query",
        _options(4096),
        summary="searches for the final answer of a model that thinks first",
    ),
)
"""The query writers of this module, for the catalogue."""

_PROMPTS = {spec.name: (spec.name,) for spec in SPECS}


class Drawing(Struct, frozen=True, kw_only=True):
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
    def of(cls, stage: Stage) -> Drawing:
        """As the stage's options say."""
        n, temperature = stage.count("n"), stage.number("temperature")
        return cls(
            model=stage.word("model"),
            n=n,
            tokens=stage.count("tokens"),
            temperature=temperature or (_VARIED if n > 1 else 0.0),
            seed=stage.count("seed"),
        )


class _Draft(NamedTuple):
    """What a query's prompt is filled with, and what was done to get it."""

    values: dict[str, object]
    steps: tuple[TraceStep, ...] = ()


class _Written(NamedTuple):
    """One generation: a document or why there is none, and its place in the trace."""

    text: str
    step: TraceStep | None
    failure: Failure | None = None


class _DocumentWriter:
    """What the methods share: draw n documents for every query, then fuse them with it."""

    def __init__(self, stage: Stage, fuse: Callable[[str, Sequence[str]], Fused]) -> None:
        self.name = str(stage)
        self.prompt = load_prompt(stage.spec.name)
        self.drawing = Drawing.of(stage)
        self.fuse = fuse

    def write(self, queries: Sequence[SearchQuery], tools: Tools) -> list[SearchQuery]:
        """The queries rewritten, in order; one without text, or that has failed before, stays as it is."""
        places = [place for place, query in enumerate(queries) if query.text.strip() and query.failure is None]
        if not places:
            return list(queries)
        model = tools.model(self.drawing.model)
        drafts = self.drafts([queries[place] for place in places], tools, model)
        plan = [(draft, sample) for draft in drafts for sample in range(self.drawing.n)]

        async def work(item: tuple[_Draft, int]) -> _Written:
            return await self._draw(model, *item)

        written = iter(model.run(plan, work, title=f"writing queries: {self.name}", progress=tools.progress))
        results = list(queries)
        for place, draft in zip(places, drafts, strict=True):
            results[place] = self._fused(queries[place], draft, list(islice(written, self.drawing.n)))
        return results

    def drafts(self, queries: Sequence[SearchQuery], tools: Tools, model: Model) -> list[_Draft]:  # noqa: ARG002
        """What each query's prompt is filled with."""
        return [_Draft({"question": query.text}) for query in queries]

    def read(self, reply: Reply) -> tuple[str, str]:
        """The document in a reply, and what was thought before it."""
        return final_text(reply)

    async def _draw(self, model: Model, draft: _Draft, sample: int) -> _Written:
        drawing = self.drawing
        request = self.prompt.request(
            draft.values,
            max_tokens=drawing.tokens,
            temperature=drawing.temperature,
            seed=drawing.seed if drawing.temperature else None,
            sample=sample,
        )
        outcome = await model.chat(request)
        if isinstance(outcome, Failure):
            return _Written("", None, outcome)
        return self._written(outcome, str(draft.values["question"]))

    def _written(self, outcome: Outcome, question: str) -> _Written:
        text, reasoning = self.read(outcome.reply)
        text = without_echo(text, question)
        step = TraceStep(stage=self.name, what="generated", text=text, reasoning=reasoning, calls=outcome.calls)
        if text:
            return _Written(text, step)
        cut = outcome.reply.finish == "length"
        why = "the output limit was reached before the text began" if cut else "the model wrote nothing of its own"
        return _Written("", step, Failure(kind="truncated" if cut else "unreadable", message=why))

    def _fused(self, query: SearchQuery, draft: _Draft, written: Sequence[_Written]) -> SearchQuery:
        steps = (*query.steps, *draft.steps, *(one.step for one in written if one.step is not None))
        failure = next((one.failure for one in written if one.failure is not None), None)
        if failure is not None:
            return msgspec.structs.replace(query, steps=steps, failure=failure)
        lexical, dense = self.fuse(query.text, [one.text for one in written])
        return msgspec.structs.replace(query, lexical=lexical, dense=dense, steps=steps)


class _Query2Doc(_DocumentWriter):
    """The document is written after worked examples."""

    def __init__(self, stage: Stage) -> None:
        repeat = stage.count("repeat")
        super().__init__(stage, lambda question, documents: query2doc_fusion(question, documents, repeat))
        self.shots = stage.count("shots")

    def drafts(self, queries: Sequence[SearchQuery], tools: Tools, model: Model) -> list[_Draft]:  # noqa: ARG002
        """The question and how many examples are shown."""
        return [_Draft({"question": query.text, "shots": self.shots}) for query in queries]


class _LameR(_DocumentWriter):
    """The document is written after a look at what a first search found."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage, lamer_fusion)
        self.line = str(parse(stage.word("with")))
        self.top = stage.count("top")
        self.reads = stage.count("reads")

    def drafts(self, queries: Sequence[SearchQuery], tools: Tools, model: Model) -> list[_Draft]:
        """The question and the passages of a first search that fit the model's window."""
        plain = [SearchQuery(id=query.id, text=query.text) for query in queries]
        return [
            self._draft(query, found, model)
            for query, found in zip(queries, tools.search(self.line, plain, self.top), strict=True)
        ]

    def _draft(self, query: SearchQuery, found: Sequence[Found], model: Model) -> _Draft:
        room = room_beside(model.context, self.drawing.tokens, [query.text])
        passages = fit_beginnings((one.passage for one in found), self.reads, room)
        searched = TraceStep(
            stage=self.name, what="searched", text=query.text, found=tuple(one.passage.id for one in found)
        )
        read = TraceStep(stage=self.name, what="read", found=tuple(passage.id for passage in passages))
        return _Draft({"question": query.text, "passages": passages}, (searched, read))


class _Reason(_DocumentWriter):
    """Only the final answer is used, whether the model thinks in a block of its own or before `Answer:`."""

    def read(self, reply: Reply) -> tuple[str, str]:
        """The final answer in a reply, and all that came before it; thinking that was cut off has no answer."""
        text, reasoning = final_text(reply)
        marks = list(_ANSWER.finditer(text))
        if marks:
            thought = "\n".join(part for part in (reasoning, text[: marks[-1].start()].strip()) if part)
            return text[marks[-1].end() :].strip(), thought
        return (text, reasoning) if reasoning or reply.finish != "length" else ("", text)


def make_writer(stage: Stage) -> Writer:
    """The query writer for a stage of a line; an option that makes no sense is a `UsageError`."""
    match stage.spec.name:
        case "hyde":
            return _DocumentWriter(stage, hyde_fusion)
        case "query2doc":
            return _Query2Doc(stage)
        case "lamer":
            return _LameR(stage)
        case "reason":
            return _Reason(stage, hyde_fusion)
    raise AssertionError(f"{stage} is no query writer of this module")


def prompts_of(stage: Stage) -> tuple[str, ...]:
    """The names of the prompts a stage uses, for the manifest."""
    return _PROMPTS[stage.spec.name]


def hyde_fusion(question: str, documents: Sequence[str]) -> Fused:
    """The documents replace the question for lexical rankers and are averaged with it for dense ones."""
    return "\n".join(documents), (question, *documents)


def query2doc_fusion(question: str, documents: Sequence[str], repeat: int) -> Fused:
    """The question, repeated so that the longer document does not drown it, and the document; joined for dense ones."""
    lexical = "\n".join(" ".join([*[question] * repeat, document]) for document in documents)
    return lexical, tuple(f"{question} [SEP] {document}" for document in documents)


def lamer_fusion(question: str, documents: Sequence[str]) -> Fused:
    """The question before each document for lexical rankers, averaged with them for dense ones."""
    return "\n".join(f"{question} {document}" for document in documents), (question, *documents)


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
