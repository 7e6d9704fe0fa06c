"""`hoofbeat check`: any benchmark with answers through the validator that the recipes use.

Rules look for leaks, for options that mean the same, and for the place and length of the right option. The trials of
`hoofbeat.recipes.trials` answer, guess and compare. Nothing is changed: each question gets its doubts, with why.

Where answers of several systems are given, `hoofbeat.findings.answer_check` says how hard each question is, whether it
tells systems apart, and what else they say about the benchmark.

`plan_benchmark_check` is the whole verb, as the command and the Python face call it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from string import ascii_uppercase

import msgspec
from msgspec import Struct

from hoofbeat.benchmarks import Benchmark, corpus_beside
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.vocabulary import find_source
from hoofbeat.errors import UsageError
from hoofbeat.findings.answer_check import ANSWERS, ITEMS, AnswerCheck, check_answers
from hoofbeat.findings.benchmark_checks import CheckSummary, chance_test, place_test
from hoofbeat.findings.item_analysis import AGREED, NEGATIVE, NOBODY, SECOND, ItemStatistics
from hoofbeat.models import Estimate, Model
from hoofbeat.models.model_loading import Session
from hoofbeat.progress import SILENT, Progress
from hoofbeat.recipes.answered_folders import AnsweredQuestions, read_answered
from hoofbeat.recipes.cases.case_diagnosis import VOCABULARIES
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.guards.diagnosis_names import same
from hoofbeat.recipes.guards.leaks import find_leaks
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import DOUBTS, NOT_TRIED, SECOND_RIGHT
from hoofbeat.recipes.steps import RecipeStep, StepEstimate
from hoofbeat.recipes.trial_findings import (
    BY_QUESTION,
    AnswerTrial,
    GuessTrial,
    QuestionTrials,
    trial_counts,
    trial_findings,
    trials_of,
)
from hoofbeat.recipes.trials import OPEN, QUESTION, ChoiceTrialSettings, TriedQuestion, every_trial
from hoofbeat.records import Document, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl, write_tsv

KIND = "check"
RULES = ("leaks", "options", "place")
CALLS = ("answer", "guess", "compare")
PARTS = (*RULES, *CALLS)
"""What a check consists of; each part can be left out. The first three are rules and need no model."""

LEAK = "names its answer"
NO_OPTION = "answer is not an option"
ALIKE = "two options mean the same"
_USUAL_ANSWER = "word " * 30
CHECK_DOUBTS = (LEAK, NO_OPTION, *DOUBTS[:-1], ALIKE, SECOND, AGREED, NOBODY, NEGATIVE, NOT_TRIED)
"""What a check may find, the gravest first."""


class Finding(Struct, frozen=True, kw_only=True):
    """One doubt of a question, and what it rests on."""

    doubt: str
    why: str


class QuestionCheck(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `checks.jsonl`. `place` is where the right option is, from 0; `longest`: it alone is the longest."""

    question: str
    findings: tuple[Finding, ...] = ()
    place: int | None = None
    longest: bool = False
    options: int = 0
    trials: QuestionTrials = QuestionTrials()

    @property
    def doubts(self) -> tuple[str, ...]:
        """The doubts, each once, the gravest first."""
        return tuple(sorted({each.doubt for each in self.findings}, key=CHECK_DOUBTS.index))


class BenchmarkCheck(Struct, frozen=True, kw_only=True):
    """A check that is planned: the questions, the parts, and what they need."""

    questions: tuple[Question, ...]
    parts: tuple[str, ...]
    context: RecipeContext
    models: tuple[Model, ...]
    inputs: tuple[InputRef, ...]
    settings: dict[str, object]
    answered: AnsweredQuestions | None = None

    def estimate(self) -> Estimate:
        """What the calls would spend; an answer that is not there yet and is to be compared counts as a usual one."""
        items, total = self._items(), Estimate()
        for step in self._steps():
            try:
                items = [each for each in step.run(items, self.context) if isinstance(each, RecipeItem)]
            except StepEstimate as found:
                total += found.estimate
                items = [_as_answered(item, step.prompts) for item in items]
        return total

    def write(self, output: Path, *, command: Sequence[str] = ()) -> tuple[Artefact, CheckSummary]:
        """Ask, sum up and write the folder."""
        items = self._items()
        for step in self._steps():
            outcomes = step.run(items, self.context)
            items = [each for each in outcomes if isinstance(each, RecipeItem)]
            assert len(items) == len(outcomes), "a trial turns nothing away"
        tried = {item.id: trials_of(item) for item in items}
        found, analysed = self._answers()
        by_question = {each.question: each for each in analysed}
        checks = [
            check_question(question, self.context, self.parts, tried.get(question.id), by_question.get(question.id))
            for question in self.questions
        ]
        summary = summarise_checks(self.questions, checks, self.parts, self.context.seed)
        return self._written(output, checks, (summary, found, analysed), command), summary

    def _answers(self) -> tuple[AnswerCheck | None, list[ItemStatistics]]:
        if self.answered is None:
            return None, []
        return check_answers(self.questions, self.answered.answers, self.answered.outcomes, seed=self.context.seed)

    def _items(self) -> list[RecipeItem]:
        return [
            RecipeItem(
                id=question.id, documents=question.documents, values={"exam": msgspec.to_builtins(_exam(question))}
            )
            for question in self.questions
            if question.answer and (not question.options or question.answer in question.options)
        ]

    def _steps(self) -> list[RecipeStep]:
        chosen = ChoiceTrialSettings(
            try_answer="answer" in self.parts,
            try_options="guess" in self.parts,
            compare_options="compare" in self.parts,
        )
        return every_trial(chosen, lambda item: msgspec.convert(item["exam"], TriedQuestion))

    def _written(
        self,
        target: Path,
        checks: Sequence[QuestionCheck],
        found: tuple[CheckSummary, AnswerCheck | None, list[ItemStatistics]],
        command: Sequence[str],
    ) -> Artefact:
        context, (summary, answers, items) = self.context, found
        with create(target, replace_kind=KIND) as draft:
            write_jsonl(draft.path / "questions.jsonl", self.questions)
            write_jsonl(draft.path / "checks.jsonl", checks)
            write_tsv(draft.path / "doubts.tsv", ("question", "doubt", "why"), _doubt_rows(checks))
            write_bytes(draft.path / "summary.json", _json(summary))
            if answers is not None:
                write_bytes(draft.path / ANSWERS, _json(answers))
                write_jsonl(draft.path / ITEMS, items)
            draft.finish(
                Manifest(
                    kind=KIND,
                    title="check of " + self.inputs[0].name,
                    command=list(command),
                    inputs=list(self.inputs),
                    settings={**self.settings, **context.model_facts()},
                    seeds={"check": context.seed},
                    models=dict(sorted(context.roles_used.items())),
                    prompts=dict(sorted(context.prompts_used.items())),
                    counts=Counts(kept=len(checks)),
                    cost=context.cost,
                    metrics={"doubts": summary.doubts, "without doubt": summary.without_doubt},
                )
            )
        return open_artefact(target, KIND)


def plan_benchmark_check(
    bench: Benchmark,
    session: Session,
    *,
    model: str = "embedded",
    second: str | None = None,
    corpus: Path | None = None,
    answered: Sequence[Path] = (),
    left_out: Sequence[str] = (),
    limit: int | None = None,
    seed: int = 0,
    estimating: bool = False,
    progress: Progress = SILENT,
) -> BenchmarkCheck:
    """Read what a check of `bench` needs, and load the models where a part that is left calls one.

    `second` answers and guesses in place of `model`; `answered` are runs and judgments of the benchmark's questions;
    `left_out` are the PARTS to leave out.
    """
    parts = tuple(part for part in PARTS if part not in left_out)
    if not parts:
        raise UsageError("all parts of the check are left out", fix=f"keep at least one of {', '.join(PARTS)}")
    for name in VOCABULARIES if {"leaks", "options"} & set(parts) else ():
        find_source(name)  # a missing extra is found before a model is paid
    documents = Corpus.open(corpus) if corpus else corpus_beside(bench.artefact)
    specs = {"model": model, **({"second": second} if second else {})} if set(parts) & set(CALLS) else {}
    loaded = {spec: session.model(spec) for spec in dict.fromkeys(specs.values())}
    settings: dict[str, object] = {"parts": list(parts), "limit": limit}
    context = RecipeContext(
        documents,
        ChoiceTrialSettings(),
        models={role: loaded[spec] for role, spec in specs.items()},
        seed=seed,
        progress=progress,
        estimating=estimating,
    )
    read = [bench.artefact.reference(), *([documents.artefact.reference()] if documents else [])]
    questions = tuple(bench.first(limit))
    given = read_answered(answered, questions) if answered else None
    read += given.inputs if given else ()
    return BenchmarkCheck(
        questions=questions,
        answered=given,
        parts=parts,
        context=context,
        models=tuple(loaded.values()),
        inputs=tuple(read),
        settings={**settings, **({"edition": bench.edition} if bench.edition else {})},
    )


def check_question(
    question: Question,
    context: RecipeContext,
    parts: Sequence[str],
    trials: QuestionTrials | None = None,
    item: ItemStatistics | None = None,
) -> QuestionCheck:
    """What rules, trials and the answers of systems find in one question."""
    options, answer = question.options, question.answer
    findings: list[Finding] = []
    if "leaks" in parts and answer:
        findings += _leaks(question, context)
    if "options" in parts and options:
        findings += _option_findings(question, context)
    tried = trials or QuestionTrials()
    findings += [Finding(doubt=doubt, why=why) for doubt, why in trial_findings(tried).items()]
    findings += _item_findings(item) if item else []
    longest = [option for option in options if len(option) == max(map(len, options))]
    return QuestionCheck(
        question=question.id,
        findings=tuple(findings),
        place=options.index(answer) if answer in options else None,
        longest=longest == [answer],
        options=len(options),
        trials=tried,
    )


def _leaks(question: Question, context: RecipeContext) -> Iterator[Finding]:
    loaded = [context.vocabulary(name) for name in VOCABULARIES]
    for leak in find_leaks(question.full_text, question.answer, source=_source(question, context), vocabularies=loaded):
        yield Finding(doubt=LEAK, why=f"“{leak.text}” ({leak.kind})")


def _source(question: Question, context: RecipeContext) -> Document | None:
    if not context.has_corpus or not question.documents or question.documents[0] not in context.corpus:
        return None
    return context.document(question.documents[0])


def _option_findings(question: Question, context: RecipeContext) -> Iterator[Finding]:
    """What rules see in the options: no answer among them, or two that mean the same."""
    loaded = [context.vocabulary(name) for name in VOCABULARIES]
    if question.answer and question.answer not in question.options:
        yield Finding(doubt=NO_OPTION, why=question.answer)
    for one, other in combinations(question.options, 2):
        if why := "the same words" if one == other else same(one, other, loaded):
            second = question.answer in (one, other)
            yield Finding(doubt=SECOND_RIGHT if second else ALIKE, why=f"{one} / {other}: {why}")


def _item_findings(item: ItemStatistics) -> list[Finding]:
    """What the answers of systems make doubtful; that every system is right is no doubt."""
    why = {
        NOBODY: f"{item.systems} systems answered",
        SECOND: item.suspect,
        AGREED: item.suspect,
        NEGATIVE: f"correlation with the other questions {item.discrimination or 0:.2f} over {item.systems} systems",
    }
    return [Finding(doubt=flag, why=why[flag]) for flag in item.flags if flag in why]


def summarise_checks(
    questions: Sequence[Question], checks: Sequence[QuestionCheck], parts: Sequence[str], seed: int
) -> CheckSummary:
    """Counts and tests over all questions."""
    placed = [(each.place, each) for each in checks if each.place is not None and each.options > 1]
    sizes = [each.options for _, each in placed]
    guessed = [each for each in checks if each.options and each.trials.guess and not each.trials.guess.failure]
    doubts = Counter(doubt for each in checks for doubt in each.doubts)
    tried = [each for each in checks if each.trials != QuestionTrials()]
    return CheckSummary(
        questions=len(checks),
        with_options=sum(each.options > 0 for each in checks),
        without_answer=sum(not question.answer for question in questions),
        parts=tuple(parts),
        without_doubt=sum(not each.findings for each in checks),
        doubts={doubt: doubts[doubt] for doubt in CHECK_DOUBTS if doubts[doubt]},
        place=place_test([place for place, _ in placed], sizes, seed) if "place" in parts else None,
        longest=chance_test([each.longest for _, each in placed], sizes) if "options" in parts else None,
        guess=chance_test(
            [bool(each.trials.guess and each.trials.guess.right) for each in guessed],
            [each.options for each in guessed],
        ),
        trials=trial_counts([each.trials for each in tried], [each.options for each in tried]) if tried else {},
    )


def summary_lines(summary: CheckSummary) -> list[str]:
    """The tests over all questions in words."""
    lines = []
    if summary.place is not None:
        spread = ", ".join(
            f"{letter} {count}" for letter, count in zip(ascii_uppercase, summary.place.counts, strict=False)
        )
        lines.append(f"position of the right option: {spread} (p = {summary.place.p:.3g} if positions are random)")
    for what, test in (
        ("the right option is the longest", summary.longest),
        ("guessed correctly from the options alone", summary.guess),
    ):
        if test is not None:
            chance = f"{test.expected:.1f} expected by chance, p = {test.p:.3g}"
            lines.append(f"{what}: {test.observed} of {test.n} ({chance})")
    answered = summary.trials.get("answered")
    if isinstance(answered, dict):
        lines.append(f"answered correctly from the case: {answered['right']} of {answered['of']}")
    return lines


def _json(record: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def _doubt_rows(checks: Sequence[QuestionCheck]) -> list[tuple[object, ...]]:
    """Every finding, the questions with the gravest first."""
    doubtful = sorted((each for each in checks if each.findings), key=lambda each: CHECK_DOUBTS.index(each.doubts[0]))
    return [(each.question, found.doubt, found.why) for each in doubtful for found in each.findings]


def _as_answered(item: RecipeItem, prompts: Sequence[str]) -> RecipeItem:
    """The item as if a solver had answered it, or guessed from its question, where these are the prompts of a step."""
    found, exam = trials_of(item), item["exam"]
    if exam.get("options"):
        return item
    answer, guess = found.answer, found.guess
    if OPEN in prompts:
        answer = answer or AnswerTrial(said=_USUAL_ANSWER, others=(_USUAL_ANSWER,))
    if QUESTION in prompts and exam.get("case"):
        guess = guess or GuessTrial(said=_USUAL_ANSWER, basis=BY_QUESTION)
    return item.put(trials=msgspec.to_builtins(msgspec.structs.replace(found, answer=answer, guess=guess)))


def _exam(question: Question) -> TriedQuestion:
    return TriedQuestion(
        question=question.text,
        answer=question.answer,
        case=question.context,
        options=question.options if len(question.options) <= len(ascii_uppercase) else (),
        accepted=tuple(each.text for each in question.accepted),
        note=" ".join(filter(None, (each.note for each in question.accepted))),
    )
