"""Large invented folders to browse: a corpus, a benchmark, judged answers twice over, a ranking and an audit."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from pathlib import Path

import numpy as np
import polars
from msgspec import Struct

from hoofbeat.audit import AuditSource
from hoofbeat.audit.audit_folder import PACK, PAIRS
from hoofbeat.audit.pair_table import PartWriter, TableEnums
from hoofbeat.benchmarks import write_benchmark
from hoofbeat.findings.ranking_measures import evaluate
from hoofbeat.prompts import load_pack
from hoofbeat.prompts.packs import Pack, encode_pack
from hoofbeat.records import Answer, Document, Hit, Judgment, Passage, Question, Section
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

__all__ = ["Sizes", "build"]

_WORDS = [a + b for a, b in product(("ba", "de", "fi", "go", "hu", "ka", "le", "mi"), ("n", "ra", "sto", "vel", "x"))]
_SYSTEMS = 100
_JUDGE = "invented-judge"
_SPEAKS = 0.457  # so that about a fifth of the pairs are judged, as in the paper's audit
_TOPICS = 200


class Sizes(Struct, frozen=True, kw_only=True):
    """How large the folders are made."""

    documents: int
    answers: int
    sources: int
    asked: int
    queries: int
    hits: int
    seed: int

    @property
    def questions(self) -> int:
        """How many questions the benchmark has: a hundred systems answer each."""
        return max(2, self.answers // _SYSTEMS)

    @property
    def pairs(self) -> int:
        """How many pairs the audit has."""
        return self.asked * self.sources * (self.sources - 1) // 2


def build(folder: Path, sizes: Sizes) -> None:
    """Make all folders below `folder`."""
    corpus = _corpus(folder / "cases", sizes)
    questions = [_question(number, sizes) for number in range(sizes.questions)]
    bench = write_benchmark(
        folder / "bench", questions, title="Invented", inputs=[corpus.reference()], counts=Counts(kept=len(questions))
    )
    inputs = [bench.reference(), corpus.reference()]
    for name, seed in (("judged", sizes.seed), ("judged-2", sizes.seed + 1)):
        _judged(folder / name, questions, sizes, seed, inputs)
    _ranking(folder / "ranked", sizes, [corpus.reference()])
    _audit(folder / "audit", sizes)


def _prose(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words)).capitalize() + "."


def _corpus(target: Path, sizes: Sizes) -> Artefact:
    def documents() -> Iterator[Document]:
        for number in range(sizes.documents):
            rng = random.Random(f"{sizes.seed} document {number}")
            title, case = _prose(rng, 8), f"Case\n{_prose(rng, 150)}\n"
            text = f"{case}Discussion\n{_prose(rng, 150)}"
            sections = (
                Section(heading="Case", level=1, start=0, body=5, end=len(case), role="case"),
                Section(heading="Discussion", level=1, start=len(case), body=len(case) + 11, end=len(text)),
            )
            facets: dict[str, str | list[str]] = {
                "specialty": f"specialty {number % 24}",
                "year": str(1990 + number % 35),
            }
            yield Document(id=_document(number), title=title, text=text, sections=sections, facets=facets)

    with create(target, replace_kind="corpus") as draft:
        count = write_jsonl(draft.path / "documents.jsonl", documents())
        draft.finish(Manifest(kind="corpus", title="Invented reports", counts=Counts(kept=count)))
    return open_artefact(target)


def _document(number: int) -> str:
    return f"report-{number:06}"


def _question(number: int, sizes: Sizes) -> Question:
    rng = random.Random(f"{sizes.seed} question {number}")
    return Question(
        id=f"question-{number:06}",
        text="What is the next step?",
        context=_prose(rng, 90),
        answer=_prose(rng, 12),
        documents=(_document(number * 7 % sizes.documents),),
        facets={"specialty": f"specialty {number % 24}", "rare": "yes" if number % 3 else "no"},
    )


def _judged(
    target: Path, questions: Sequence[Question], sizes: Sizes, seed: int, inputs: Sequence[InputRef]
) -> Artefact:
    systems = [(f"model-{number // 10}", f"bm25 @{number % 10 + 1}") for number in range(_SYSTEMS)]
    planned = [(model, condition, each) for model, condition in systems for each in questions]
    rng = random.Random(seed)
    rates = {model: 0.3 + 0.05 * place for place, model in enumerate(dict.fromkeys(model for model, _ in systems))}

    def answers() -> Iterator[Answer]:
        words = random.Random(sizes.seed)
        for model, condition, question in planned:
            shown = Passage(id="p", document=question.documents[0], text=_prose(words, 40), heading="Case")
            text = _prose(words, 30)
            yield Answer(question=question.id, model=model, condition=condition, text=text, evidence=(shown,))

    def judgments() -> Iterator[Judgment]:
        for model, condition, question in planned:
            label = "equivalent" if rng.random() < rates[model] else "mismatch"
            yield Judgment(
                question=question.id, model=model, condition=condition, judge=_JUDGE, label=label, reasoning="Invented."
            )

    with create(target, replace_kind="judgments") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers())
        count = write_jsonl(draft.path / "judgments.jsonl", judgments())
        models = {"answer": "model-0", "judge": _JUDGE}
        draft.finish(
            Manifest(
                kind="judgments",
                title="Judged answers (invented)",
                inputs=list(inputs),
                models=models,
                seeds={"invented": seed},
                counts=Counts(kept=count),
            )
        )
    return open_artefact(target)


def _ranking(target: Path, sizes: Sizes, inputs: Sequence[InputRef]) -> Artefact:
    measures = ("nDCG@10", "R@10", "RR")
    questions = [_question(number, sizes) for number in range(sizes.queries)]
    most = min(sizes.hits, sizes.documents)

    def hits(question: Question) -> list[Hit]:
        rng = random.Random(f"{sizes.seed} {question.id}")
        order = [_document(number) for number in rng.sample(range(sizes.documents), most)]
        if rng.random() < 0.9 and question.documents[0] not in order:
            order[min(most - 1, int(rng.expovariate(0.2)))] = question.documents[0]
        return [
            Hit(
                question=question.id,
                document=name,
                rank=rank,
                score=1 / (60 + rank),
                passage=f"{name}#0",
                via={"bm25": (rank, 40 / rank), "dense": (rank + 1, 1 / rank)},
            )
            for rank, name in enumerate(order, start=1)
        ]

    rows: list[tuple[str, str, float]] = []
    with create(target, replace_kind="rankings") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "hits.jsonl", (hit for question in questions for hit in hits(question)))
        for question in questions:
            found = evaluate(hits(question), {question.id: dict.fromkeys(question.documents, 1)}, measures)
            rows += [(question.id, name, found.means[name]) for name in measures]
        write_tsv(draft.path / "queries.tsv", ("query", "measure", "value"), rows)
        means = {name: float(np.mean([value for _, each, value in rows if each == name])) for name in measures}
        metrics: dict[str, object] = {name: {"value": mean, "n": len(questions)} for name, mean in means.items()}
        settings: dict[str, object] = {"line": "bm25 + dense", "top": most}
        draft.finish(
            Manifest(
                kind="rankings",
                title="bm25 + dense",
                inputs=list(inputs),
                settings=settings,
                seeds={"invented": sizes.seed},
                counts=Counts(kept=len(questions)),
                metrics=metrics,
            )
        )
    return open_artefact(target)


def _audit(target: Path, sizes: Sizes) -> Artefact:
    pack = load_pack("transplant")
    rng = np.random.default_rng(sizes.seed)
    words = random.Random(sizes.seed)
    groups = ("kidney", "liver", "heart", "lung")
    sources = [
        AuditSource(id=f"source-{number:03}", title=f"Invented source {number}", facets={"organ": groups[number % 4]})
        for number in range(sizes.sources)
    ]
    questions = [
        Question(id=f"asked-{number:05}", text=f"{_prose(words, 12)[:-1]}?", facets={"group": groups[number % 4]})
        for number in range(sizes.asked)
    ]
    speaks = rng.random((sizes.asked, sizes.sources)) < _SPEAKS

    def answers() -> Iterator[Answer]:
        for place, question in enumerate(questions):
            for number, source in enumerate(sources):
                absent = not speaks[place, number]
                text = "NOT ADDRESSED: invented." if absent else _prose(words, 40)
                shown = Passage(id=f"{source.id}#1", document=source.id, text=_prose(words, 60), heading="Invented")
                yield Answer(
                    question=question.id, model="invented-model", condition="source", source=source.id, text=text,
                    absent=absent, evidence=(shown,),
                )  # fmt: skip

    kinds = TableEnums.of(
        questions=[each.id for each in questions],
        sources=[each.id for each in sources],
        labels=[each.name for each in pack.labels],
        levels=pack.significance_levels,
        judges=[_JUDGE],
    )
    with create(target, replace_kind="audit") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "sources.jsonl", sources)
        write_jsonl(draft.path / "answers.jsonl", answers())
        write_bytes(draft.path / PACK, encode_pack(pack))
        table = PartWriter(draft.path / "parts")
        for place, question in enumerate(questions):
            table.add(_pairs(question.id, sources, speaks[place], pack, kinds, rng))
        table.finish(draft.path / PAIRS, kinds)
        draft.finish(
            Manifest(
                kind="audit",
                title=f"{len(sources)} sources, {len(questions)} questions (invented)",
                settings={"line": "hero", "pack": f"{pack.name}@{pack.fingerprint}", "mode": "full"},
                seeds={"invented": sizes.seed},
                models={"answer": "invented-model", "judge": _JUDGE},
                counts=Counts(kept=sizes.pairs),
            )
        )
    return open_artefact(target)


def _pairs(
    question: str,
    sources: Sequence[AuditSource],
    speaks: np.ndarray[tuple[int], np.dtype[np.bool_]],
    pack: Pack,
    kinds: TableEnums,
    rng: np.random.Generator,
) -> polars.DataFrame:
    """All pairs of a question: absent where a side is silent, else a label by lot, a topic where they differ."""
    names = [each.name for each in pack.labels if each.name != pack.absent]
    serious = {each.name for each in pack.labels if each.significance}
    rows: list[tuple[str | None, ...]] = []
    for a, b in combinations(range(len(sources)), 2):
        if not (speaks[a] and speaks[b]):
            rows.append((pack.absent, "absent", None, None, None, None))
            continue
        label = names[int(rng.integers(len(names)))]
        rated = label in serious
        topic = f"invented topic {int(_TOPICS * rng.random() ** 3)}" if rated else None
        level = pack.significance_levels[int(rng.integers(len(pack.significance_levels)))] if rated else None
        rows.append((label, "judged", topic, level, _JUDGE, "Invented reasoning of some length for one pair."))
    pairs = list(combinations([each.id for each in sources], 2))
    told = dict(
        zip(("label", "basis", "topic", "significance", "judge", "reasoning"), zip(*rows, strict=True), strict=True)
    )
    schema = kinds.schema()
    given: dict[str, Sequence[object]] = {
        "question": [question] * len(pairs), "a": [a for a, _ in pairs], "b": [b for _, b in pairs], **told,
    }  # fmt: skip
    columns = {name: given.get(name, [None] * len(pairs)) for name in schema}
    return polars.DataFrame(columns, schema=schema)
