"""One folder of every kind to browse, review and sit exams on: the teaching set with records written by hand.

No model is called. Models, judges and reviewers are invented; what answers say is gold, a distractor or silence.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from hoofbeat import teaching
from hoofbeat.benchmarks.text_overlap import locate
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.recipes.benchmark_output import FUNNEL_HEADER, funnel_rows
from hoofbeat.recipes.cases.two_level_review import LEVEL_1, LEVEL_2
from hoofbeat.recipes.papers.cupcase import DISTRACTOR_CRITERIA, LEAK_CRITERIA
from hoofbeat.recipes.papers.ogcare import CRITERIA as LIKERT_CRITERIA
from hoofbeat.recipes.papers.r2med import CRITERIA as THREE_CRITERIA
from hoofbeat.recipes.recipe_items import FailedItem, RecipeFunnelStep, RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.records import Answer, Document, Failure, Judgment, Passage, Question, Span, Step, Usage
from hoofbeat.reports.report_build import build_report
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv
from tests.web.folder_audits import JUDGE, hand_written_audit, passages_of
from tests.web.folder_rankings import hand_written_ranking

__all__ = ["JUDGE", "MODELS", "hand_written_benchmark", "hand_written_ranking", "web_folders"]

MODELS = ("openai:alpha-1", "openai:beta-2")
"""The invented models that answered."""

WRITER = "openai:writer-1"
CONDITIONS = ("closed", "bm25 @3")
FACTS = {"closed": 0.45, "bm25 @3": 0.75}
_PROMPTS = {"write": "ogcare-write@4f1c0b7d2a91", "check": "ogcare-check@a91c0b7d2a44"}
_LOST = "hbt-case-24"  # the case for which the invented writer brought nothing usable
_TRAPS = ("promotional", "retracted", "near-duplicate", "standard-procedure")


def web_folders(target: Path) -> Path:
    """Make one folder of each kind below `target`; returns it."""
    handbook_files = sorted((teaching.cases_folder().parent / "handbooks").glob("*.md"))
    cases = Corpus(import_corpus([teaching.cases_folder()], target / "cases", title="Cases (invented)", workers=1))
    handbooks = Corpus(import_corpus(handbook_files, target / "handbooks", title="Handbooks (invented)", workers=1))
    bench = hand_written_benchmark(cases, target / "bench")
    questions = msgspec.json.decode(b"[" + b",".join(_lines(bench, "questions.jsonl")) + b"]", type=list[Question])
    run = _run(target / "run", bench, cases, questions)
    _judged(target / "judged", run, questions)
    for number, (name, line) in enumerate((("ranked", "bm25 + dense"), ("ranked-2", "bm25"))):
        hand_written_ranking(target / name, bench, cases, questions, line, seed=number)
    hand_written_audit(target / "audit", handbooks, MODELS[0], noise=0.0, seed=1)
    hand_written_audit(target / "audit-2", handbooks, MODELS[1], noise=0.25, seed=2)
    build_report([target / "bench", target / "judged"], target / "report", title="Invented study", formats=("html",))
    return target


def _lines(artefact: Artefact, name: str) -> list[bytes]:
    return artefact.file(name).read_bytes().splitlines()


# The benchmark: open questions and choices on cases, with what a recipe leaves beside them.


def hand_written_benchmark(corpus: Corpus, target: Path) -> Artefact:
    """A benchmark of the teaching cases: open questions with evidence, choices, a funnel and review tasks."""
    questions: list[Question] = []
    rejected: list[RejectedItem] = []
    failed: list[FailedItem] = []
    items: list[RecipeItem] = []
    for case in teaching.cases():
        document = corpus.get(case.id)
        values = {"title": case.title, "diagnosis": case.diagnosis, "specialty": case.specialty}
        made = _questions(case, document)
        if case.trap in _TRAPS:
            reason = f"the report is {case.trap}"
            begins = document.sections[0].body
            quote = document.text[begins : begins + 40]
            span = Span(document=document.id, start=begins, end=begins + 40, quote=quote)
            rejected.append(
                RejectedItem(id=case.id, step="select", reason=reason, details="Planted.", span=span, values=values,
                         documents=(case.id,))
            )  # fmt: skip
        elif not made or case.id == _LOST:
            failure = Failure(kind="schema", message="the model gave no question", attempts=2)
            failed.append(FailedItem(id=case.id, step="write", failure=failure, documents=(case.id,), values=values))
        else:
            questions += made
            items.append(RecipeItem(id=case.id, documents=(case.id,), values=values, facets=dict(made[0].facets)))
    write, select = RecipeFunnelStep(step="write"), RecipeFunnelStep(step="select")
    for each in rejected:
        select.reasons[each.reason] = select.reasons.get(each.reason, 0) + 1
    for lost in failed:
        write.failures[lost.failure.kind] = write.failures.get(lost.failure.kind, 0) + 1
    select.came = len(teaching.cases())
    select.kept = write.came = select.came - len(rejected)
    write.kept = len(items)
    return _write_benchmark(target, corpus, questions, items, rejected, failed, [select, write])


def _questions(case: teaching.CaseGold, document: Document) -> list[Question]:
    """The open question and the choice of a case."""
    made: list[Question] = []
    facets: dict[str, str | list[str]] = {
        "specialty": case.specialty,
        "rare": "yes" if case.rare else "no",
        "differentials": list(case.differentials[:2]),
    }
    lineage = (
        Step(name="select", note="the report has a decisive step"),
        Step(name="write", prompt=_PROMPTS["write"], model=WRITER, call=f"{int(case.id[-2:]):064x}"),
        Step(name="check", prompt=_PROMPTS["check"], model=WRITER, call=f"{int(case.id[-2:]) + 100:064x}"),
    )
    if case.question is not None:
        spans = [locate(document, quote) for quote in case.question.evidence]
        made.append(
            Question(
                id=f"q-{case.id}",
                text=case.question.text,
                context=case.question.context,
                answer=case.question.answer,
                documents=(case.id,),
                evidence=tuple(span for span in spans if span is not None),
                facets={**facets, "form": "open"},
                lineage=lineage,
            )
        )
    if case.mcq is not None:
        made.append(
            Question(
                id=f"m-{case.id}",
                text="What is the diagnosis?",
                context=case.mcq.stem,
                answer=case.mcq.answer,
                options=case.mcq.options,
                images=tuple(name for figure in document.figures[:1] for name in figure.files),
                documents=(case.id,),
                facets={**facets, "form": "choice"},
                lineage=lineage[:2],
            )
        )
    return made


def _write_benchmark(
    target: Path,
    corpus: Corpus,
    questions: Sequence[Question],
    items: Sequence[RecipeItem],
    rejected: Sequence[RejectedItem],
    failed: Sequence[FailedItem],
    stages: Sequence[RecipeFunnelStep],
) -> Artefact:
    plain = [replace(each, context="") for each in questions if not each.options]
    review = _review(questions)
    with create(target, replace_kind="benchmark") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "questions-plain.jsonl", plain)
        write_qrels(draft.path / "qrels.tsv", {q.id: dict.fromkeys(q.documents, 1) for q in questions}, "beir")
        write_jsonl(draft.path / "items.jsonl", items)
        write_jsonl(draft.path / "rejected.jsonl", rejected)
        write_jsonl(draft.path / "failed.jsonl", failed)
        write_jsonl(draft.path / "review.jsonl", review)
        write_tsv(draft.path / "funnel.tsv", FUNNEL_HEADER, funnel_rows(stages))
        for name in sorted({name for question in questions for name in question.images}):
            write_bytes(draft.path / name, (corpus.path / name).read_bytes())
        draft.finish(
            Manifest(
                kind="benchmark",
                title="Teaching questions (invented)",
                command=["hoofbeat", "build", "teaching", "cases"],
                inputs=[corpus.artefact.reference()],
                settings={"recipe": "teaching"},
                seeds={"recipe": 0},
                models={"writer": WRITER},
                prompts=dict(_PROMPTS),
                counts=Counts(
                    kept=len(items),
                    rejected=len(rejected),
                    failed=len(failed),
                    reasons=dict(sorted(stages[0].reasons.items())),
                    failures=dict(sorted(stages[1].failures.items())),
                ),
                cost=Cost(calls=66, tokens_in=81_220, tokens_out=9_120, money=0.0312),
                metrics={
                    "funnel": [_stage(stage) for stage in stages],
                    "steps": [{"step": "select", "prompts": []}, {"step": "write", "prompts": ["ogcare-write"]}],
                    "editions": {"plain": "the question without its case"},
                    "review": {kind: sum(task.kind == kind for task in review) for kind in _kinds(review)},
                },
            )
        )
    return open_artefact(target, "benchmark")


def _stage(stage: RecipeFunnelStep) -> dict[str, object]:
    return {
        "step": stage.step, "in": stage.came, "kept": stage.kept, "rejected": stage.rejected, "failed": stage.failed,
        "reasons": dict(stage.reasons), "failures": dict(stage.failures),
    }  # fmt: skip


def _kinds(review: Sequence[ReviewTask]) -> list[str]:
    return sorted({task.kind for task in review})


def _review(questions: Sequence[Question]) -> list[ReviewTask]:
    """Tasks of every kind that recipes leave."""
    openly = [question for question in questions if not question.options]
    choices = [question for question in questions if question.options]
    tasks = [
        ReviewTask(
            item=each.id, kind="likert", criteria=LIKERT_CRITERIA, why="every question is rated", step="review",
            question=each.full_text, shown={"answer": each.answer, "original": each.context}, documents=each.documents,
        )
        for each in openly[:6]
    ]  # fmt: skip
    tasks += [
        ReviewTask(
            item=each.id, kind="three-criteria", criteria=THREE_CRITERIA, why="first reading", step="review",
            question=each.full_text, documents=each.documents,
            shown={"answer": each.answer, "reasoning": "Invented reasoning.", "positives": ", ".join(each.documents)},
        )
        for each in openly[6:12]
    ]  # fmt: skip
    for each in choices[:6]:
        wrong = [option for option in each.options if option != each.answer]
        shown = {"stem": each.context, "options": "\n".join(each.options), "answer": each.answer}
        tasks += [
            ReviewTask(
                item=each.id, kind="leak", criteria=LEAK_CRITERIA, why="drawn by the seed", step="leak",
                question=each.context, shown={"diagnosis": each.answer, "quote": each.answer},
                documents=each.documents,
            ),
            ReviewTask(
                item=each.id, kind="distractors", criteria=DISTRACTOR_CRITERIA, why="drawn by the seed",
                step="distractors", question=each.answer, shown=dict(zip("ABCDEFGH", wrong, strict=False)),
                documents=each.documents,
            ),
        ]  # fmt: skip
        tasks += [
            ReviewTask(
                item=each.id, kind="two-level", criteria=criteria, why="every item is read", step=f"level-{level}",
                question=each.text, shown=shown, documents=each.documents,
            )
            for level, criteria in ((1, LEVEL_1), (2, LEVEL_2))
        ]  # fmt: skip
    return tasks


# The run and its judgments: two models under two conditions, some right, some wrong, some failed.


def _run(target: Path, bench: Artefact, corpus: Corpus, questions: Sequence[Question]) -> Artefact:
    rng = random.Random(7)
    answers = [
        _answer(question, model, condition, corpus, rng)
        for condition in CONDITIONS
        for model in MODELS
        for question in questions
    ]
    failed = [answer.failure.kind for answer in answers if answer.failure]
    costs = {model: Cost(calls=len(answers) // 2, tokens_in=40_000, tokens_out=4_000, money=0.2) for model in MODELS}
    with create(target, replace_kind="run") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers)
        draft.finish(
            Manifest(
                kind="run",
                title=f"answers of {', '.join(MODELS)}",
                command=["hoofbeat", "answer", "bench"],
                inputs=[bench.reference(), corpus.artefact.reference()],
                settings={"conditions": list(CONDITIONS), "models": list(MODELS), "samples": 1},
                seeds={"options": 0},
                models={f"answer: {model}": model for model in MODELS},
                prompts={"answer": "answer-closed@91aa03c4de10"},
                counts=Counts(kept=len(answers) - len(failed), failed=len(failed), failures={"refusal": len(failed)}),
                cost=costs[MODELS[0]] + costs[MODELS[1]],
                costs=costs,
            )
        )
    return open_artefact(target, "run")


def _answer(question: Question, model: str, condition: str, corpus: Corpus, rng: random.Random) -> Answer:
    shown: tuple[Passage, ...] = ()
    if condition != "closed":
        shown = passages_of(corpus.get(question.documents[0]))[:3]
    named = f"{condition}, letter" if question.options else condition
    base = Answer(question=question.id, model=model, condition=named, evidence=shown)
    if rng.random() < 0.04:
        return replace(base, failure=Failure(kind="refusal", message="the model declined"), evidence=())
    right = rng.random() < FACTS[condition] + (0.1 if model == MODELS[0] else 0.0)
    used = Usage(tokens_in=400, tokens_out=40)
    if not question.options:
        text = question.answer if right else "Start supportive care, consult the specialist and observe."
        cited = (f"{shown[0].heading}",) if shown else ()
        return replace(base, text=text, usage=used, citations=cited)
    options = list(question.options)
    rng.shuffle(options)
    choice = question.answer if right else next(each for each in options if each != question.answer)
    letter = chr(ord("A") + options.index(choice))
    return replace(
        base, protocol="letter", text=letter, options=tuple(options), choice=choice, reading="only-letter", usage=used
    )


def _judged(target: Path, run: Artefact, questions: Sequence[Question]) -> Artefact:
    gold = {question.id: question.answer for question in questions}
    answers = msgspec.json.decode(b"[" + b",".join(_lines(run, "answers.jsonl")) + b"]", type=list[Answer])
    judgments = []
    for answer in answers:
        aspect = "choice" if answer.protocol or answer.condition.endswith("letter") else "equivalence"
        base = Judgment(
            question=answer.question,
            model=answer.model,
            condition=answer.condition,
            judge="rule" if aspect == "choice" else JUDGE,
            aspect=aspect,
        )
        if answer.failure:
            judgments.append(replace(base, failure=Failure(kind="refusal", message="no answer", attempts=0)))
            continue
        right = (answer.choice or answer.text) == gold[answer.question]
        label = ("correct" if right else "wrong") if aspect == "choice" else ("equivalent" if right else "mismatch")
        why = "Both take the same step." if right else "The reference treats; the answer only observes."
        judgments.append(replace(base, label=label, reasoning=why))
    with create(target, replace_kind="judgments") as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_jsonl(draft.path / "judgments.jsonl", judgments)
        draft.finish(
            Manifest(
                kind="judgments",
                title=f"judged by {JUDGE}",
                command=["hoofbeat", "judge", "run"],
                inputs=[run.reference()],
                settings={
                    "aspect": "equivalence",
                    "positive": "equivalent",
                    "aspects": ["equivalence", "choice"],
                    "judges": {"equivalence": [JUDGE]},
                    "asked": run.manifest.settings,
                },
                models={**run.manifest.models, "judge": JUDGE},
                prompts={**run.manifest.prompts, "judge": "equivalence@77b0f2c1aa34"},
                counts=Counts(
                    kept=sum(not each.failure for each in judgments),
                    failed=sum(bool(each.failure) for each in judgments),
                    failures={"refusal": sum(bool(each.failure) for each in judgments)},
                ),
                cost=Cost(calls=len(judgments), tokens_in=48_000, tokens_out=4_100, money=0.0204),
            )
        )
    return open_artefact(target, "judgments")
