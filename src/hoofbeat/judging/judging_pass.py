"""Judging a folder of any size: answers come in blocks, and each block's judgments are written before the next is read.

The new folder is complete by itself: questions and answers are copied as files, judgments that were there already come
first, and those of every block follow in the order of the answers, aspect by aspect.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.aspects.equivalence import EQUIVALENCE
from hoofbeat.judging.canary import with_canary
from hoofbeat.judging.catalogue import all_criteria, criteria_named, explains
from hoofbeat.judging.criteria import Criterion, Key, Takes, answer_key, empty_judgment, no_answer_failure
from hoofbeat.judging.humans import LabelFile
from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder, Probe, Survey
from hoofbeat.judging.probes import probe_judge, probe_requests
from hoofbeat.judging.scorers import ScoreAnswers, Scorer, ScoringContext, scored
from hoofbeat.judging.scorers.choice import CHOICE, judge_choice
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.judging.votes import ask_judge, decide, majority_name
from hoofbeat.models import ChatRequest, Encoder, Estimate, Model, load_encoder
from hoofbeat.models.batch import BatchBackend
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.records import Answer, Judgment
from hoofbeat.store.files import atomic_write
from hoofbeat.store.tables import read_jsonl, write_jsonl


def matches(condition: str, wanted: str) -> bool:
    """Whether a condition is the one named, whatever its protocol."""
    return condition == wanted or condition.startswith(f"{wanted}, ")


def _count(survey: Survey, kind: Takes) -> int:
    counts = {"any": survey.answers, "text": survey.texts, "choice": survey.choices, "passages": survey.passages}
    return counts[kind]


_MISSING = {
    "any": ("there are no answers here", "name another folder"),
    "choice": ("these answers are free text, not choices", "use --by equivalence"),
    "text": ("these answers are choices, not free text", "use --by choice"),
    "passages": ("no passages were shown to the model", "judge a run with retrieval or oracle"),
}


def choose_aspects(folder: AnswerFolder, asked: Sequence[str]) -> tuple[str, ...]:
    """The aspects and scorers to judge by, in order: those asked for, else the defaults that there are answers for."""
    survey = folder.survey
    chosen = criteria_named(asked) or tuple(
        each
        for each in all_criteria()
        if each.default and _count(survey, each.takes) and each.name not in folder.aspects
    )
    where = str(folder.artefact.path)
    if not chosen:
        raise UsageError(
            "there is nothing left to judge: all answers are judged, or there are none",
            where=where,
            fix="name another aspect with --by",
        )
    if again := sorted({each.name for each in chosen} & folder.aspects):
        raise UsageError(
            f"these answers already have judgments of {', '.join(again)}",
            where=where,
            fix="leave out that --by, or judge the run again into another folder",
        )
    for each in chosen:
        if each.takes != "any" and not _count(survey, each.takes):
            what, fix = _MISSING[each.takes]
            raise UsageError(f"{what}, so there is nothing to judge by {each.name}", where=where, fix=fix)
    _check_verdicts(folder, chosen)
    return tuple(each.name for each in chosen)


def _check_verdicts(folder: AnswerFolder, chosen: Sequence[Criterion]) -> None:
    """What explains wrong answers needs to know which are wrong; a choice is scored on the way."""
    explaining = [each.name for each in chosen if explains(each)]
    judged = {each.name for each in chosen} | folder.scored
    verdicts = {each.name for each in all_criteria() if each.positive and each.takes != "choice"}
    if explaining and folder.survey.texts and not verdicts & judged:
        raise UsageError(
            f"{explaining[0]} is judged for wrong answers only, and it is not known yet which are wrong",
            where=str(folder.artefact.path),
            fix="add --by equivalence, or name a folder of judgments",
        )


def chosen_conditions(folder: AnswerFolder, each: Criterion, asked: Sequence[str]) -> set[str]:
    """The conditions whose answers are judged: those asked for, else those of the aspect, else all."""
    conditions = folder.survey.conditions
    for name in asked:
        if not any(matches(condition, name) for condition in conditions):
            raise UsageError(
                f"there are no answers under {name!r}",
                where=str(folder.artefact.path),
                fix=f"there are: {', '.join(conditions)}",
            )
    own = each.conditions if isinstance(each, Aspect) else ()
    wanted = tuple(asked) or own
    if not wanted:
        return set(conditions)
    found = {condition for condition in conditions if any(matches(condition, name) for name in wanted)}
    if not found:
        why = (isinstance(each, Aspect) and each.conditions_note) or f"{each.name} is judged only for {', '.join(own)}"
        raise UsageError(
            f"{why}, but there are none",
            where=str(folder.artefact.path),
            fix=f"choose other conditions with --condition: {', '.join(conditions)}",
        )
    return found


BLOCK = 2000
_BATCH_BLOCK = 50_000  # one file of a batch folder
_encode = msgspec.json.Encoder().encode


class JudgingJob(Struct, frozen=True, kw_only=True):
    """What is to be judged, and by whom.

    `humans` are labels of people, which are written beside the judgments, `files` where they came from. With `canary`,
    calls carry a check code (`canary`).
    """

    aspects: tuple[str, ...] = ()
    judges: tuple[Model, ...] = ()
    conditions: tuple[str, ...] = ()
    encoder: Callable[[], Encoder] = load_encoder
    idf: bool = False
    layer: str = "auto"
    baseline: Path | None = None
    probes: tuple[str, ...] = ()
    probe_size: int = 50
    seed: int = 0
    canary: bool = False
    humans: tuple[Judgment, ...] = ()
    files: tuple[LabelFile, ...] = ()


class JudgmentTally:
    """How many judgments there are, by aspect and label, and by what went wrong; and on how many votes they rest.

    `short` counts by aspect the judgments that some of several judges did not vote on (`2 of 3`); an answer with
    nothing to judge, which no judge was asked about, is not among them.
    """

    def __init__(self) -> None:
        self.labels: dict[str, Counter[str]] = {}
        self.short: dict[str, Counter[str]] = {}
        self.failures: Counter[str | None] = Counter()

    def add(self, judgment: Judgment) -> None:
        """Count one."""
        said = "unscored" if judgment.failure else judgment.label or "scored"
        who = " by people" if judgment.judge.startswith(HUMAN) else ""
        self.labels.setdefault(judgment.aspect + who, Counter())[said] += 1
        self.failures[judgment.failure.kind if judgment.failure else None] += 1
        cast = sum(vote.failure is None for vote in judgment.votes)
        asked = cast or any(vote.failure and vote.failure.attempts for vote in judgment.votes)
        if asked and cast < len(judgment.votes):
            self.short.setdefault(judgment.aspect, Counter())[f"{cast} of {len(judgment.votes)}"] += 1


class JudgingPass:
    """One pass over a folder of answers."""

    def __init__(self, folder: AnswerFolder, job: JudgingJob) -> None:
        self.folder = folder
        self.job = job
        self.tally = JudgmentTally()
        self.probes: list[Probe] = []
        self._judge = majority_name([judge.spec for judge in job.judges]) if job.judges else ""
        self.criteria = criteria_named(job.aspects)
        self._conditions = {each.name: chosen_conditions(folder, each, job.conditions) for each in self.criteria}
        self._probed = chosen_conditions(folder, EQUIVALENCE, job.conditions)
        self._scorers: dict[str, ScoreAnswers] = {}
        self._pending: list[BatchPending] = []
        explaining = any(map(explains, self.criteria))
        self._known: dict[Key, bool | None] = folder.verdicts() if explaining and folder.judged else {}

    @property
    def scoring(self) -> ScoringContext:
        """What scorers use."""
        job = self.job
        return ScoringContext(
            questions=self.folder.questions,
            encoder=job.encoder,
            idf=job.idf,
            layer=job.layer,
            baseline=job.baseline,
        )

    # Without a call

    def estimate(self) -> Estimate:
        """What the judges would cost at most."""
        return sum(self.estimates().values(), start=Estimate())

    def estimates(self) -> dict[str, Estimate]:
        """What each aspect, each scorer and the probes would cost at most.

        What explains wrong answers is counted as if all were wrong. Scorers make no calls.
        """
        found = {each.name: Estimate() for each in self.criteria}
        draw = self._draw()
        for block in _blocks(self.folder.each_answer(), BLOCK):
            self._offer(draw, block)
            for aspect in self.criteria:
                if isinstance(aspect, Aspect):
                    chosen = [
                        answer for answer in block if self._takes(aspect, answer) and self._maybe_wrong(answer, aspect)
                    ]
                    for judge in self.job.judges:
                        found[aspect.name] += judge.estimate(self._requests(judge, aspect, chosen))
        for judge in self.job.judges if self.job.probes else ():
            asked = probe_requests(self.job.probes, self.folder.questions, draw.drawn())
            found["probes"] = found.get("probes", Estimate()) + judge.estimate(asked)
        return found

    def _requests(self, judge: Model, aspect: Aspect, answers: Iterable[Answer]) -> list[ChatRequest]:
        questions = self.folder.questions
        return [
            with_canary(asked.request).request if self.job.canary else asked.request
            for answer in answers
            for asked in aspect.ask(questions.get(answer.question), answer, aspect.window(judge))
            if asked.request is not None
        ]

    def _maybe_wrong(self, answer: Answer, aspect: Aspect) -> bool:
        return not aspect.explains or self._known.get(answer_key(answer)) is not True

    # The pass

    def write(self, folder: Path, *, progress: Progress = SILENT) -> None:
        """Judge everything and write the tables into a folder that is being drafted."""
        artefact = self.folder.artefact
        shutil.copyfile(artefact.file("questions.jsonl"), folder / "questions.jsonl")
        self.folder.write_answers(folder / "answers.jsonl")
        if self.folder.renewed:
            write_jsonl(folder / "questions.jsonl", self.folder.questions.values())
        size = _BATCH_BLOCK if any(isinstance(judge.backend, BatchBackend) for judge in self.job.judges) else BLOCK
        draw = self._draw()
        answers = self.folder.each_answer() if self.job.aspects or self.job.probes else iter(())
        total = self.folder.survey.answers * sum(map(self._stages, self.criteria))
        with atomic_write(folder / "judgments.jsonl") as stream, progress.task("judging", total) as task:
            if self.folder.judged:
                with artefact.file("judgments.jsonl").open("rb") as before:
                    shutil.copyfileobj(before, stream, 1 << 20)
            for block in _blocks(answers, size):
                self._offer(draw, block)
                for judgment in self._judge_block(block, task):
                    self._put(stream.write, judgment)
            for judgment in self.job.humans:
                self._put(stream.write, judgment)
        self._probe(draw, folder, progress)  # its calls need no judgment, so they travel in the same round

    def _put(self, write: Callable[[bytes], object], judgment: Judgment) -> None:
        self.tally.add(judgment)
        write(_encode(judgment) + b"\n")

    def _stages(self, each: Criterion) -> int:
        return len(self.job.judges) if isinstance(each, Aspect) else 1

    def _takes(self, each: Criterion, answer: Answer) -> bool:
        return each.suits(answer) and answer.condition in self._conditions[each.name]

    def _judge_block(self, block: Sequence[Answer], task: Task) -> list[Judgment]:
        judgments: list[Judgment] = []
        verdicts: dict[Key, bool | None] = {}
        for each in self.criteria:
            chosen = [answer for answer in block if self._takes(each, answer)]
            made: list[Judgment] = []
            if isinstance(each, Aspect):
                if each.explains:
                    chosen = [answer for answer in chosen if self._right(answer, verdicts) is False]
                made = self._ask_all(each, chosen, len(block) - len(chosen), task)
            elif isinstance(each, Scorer):
                made = [scored(each, judgment) for judgment in self._score(each)(chosen)]
                task.advance(len(block))
            if each.positive:
                verdicts.update((answer_key(one), None if one.failure else one.label == each.positive) for one in made)
            judgments += made
        return judgments

    def _score(self, scorer: Scorer) -> ScoreAnswers:
        if scorer.name not in self._scorers:
            self._scorers[scorer.name] = scorer.prepare(self.scoring)
        return self._scorers[scorer.name]

    def _right(self, answer: Answer, verdicts: dict[Key, bool | None]) -> bool | None:
        """Whether an answer is right, by what was judged now or before; a choice needs no judge."""
        key = answer_key(answer)
        if key in verdicts:
            return verdicts[key]
        if key in self._known:
            return self._known[key]
        if not answer.protocol:
            return None
        choice = judge_choice(self.folder.questions.get(answer.question), answer)
        return None if choice.failure else choice.label == CHOICE.positive

    def _ask_all(self, aspect: Aspect, chosen: Sequence[Answer], others: int, task: Task) -> list[Judgment]:
        """Put an aspect of a block to every judge and make judgments of their votes."""
        said = []
        for judge in self.job.judges:
            try:
                told = Within(task)
                said.append(
                    ask_judge(judge, aspect, self.folder.questions, chosen, canary=self.job.canary, progress=told)
                    if chosen
                    else []
                )
            except BatchPending as err:
                self._pending.append(err)
            task.advance(others)
        if len(said) < len(self.job.judges):
            return []  # answers of a batch are still to come: nothing is written this time
        judgments = []
        for answer, *casts in zip(chosen, *said, strict=True):
            for votes in zip(*casts, strict=True):
                base = empty_judgment(answer, aspect.name, self._judge, passage=votes[0][0])
                judgments.append(decide(base, aspect, [vote for _, vote in votes]))
        return judgments

    def _stop_if_pending(self) -> None:
        if self._pending:
            raise BatchPending.together(self._pending)

    # Probes

    def _draw(self) -> ReservoirSample[Answer]:
        return ReservoirSample(self.job.probe_size if self.job.probes else 0, self.job.seed)

    def _offer(self, draw: ReservoirSample[Answer], block: Iterable[Answer]) -> None:
        """Answers that a judge can judge are drawn from, whatever it says of them."""
        if not draw.size:
            return
        for answer in block:
            known = no_answer_failure(self.folder.questions.get(answer.question), answer) is None
            if known and EQUIVALENCE.suits(answer) and answer.condition in self._probed:
                draw.offer(answer_key(answer), answer)

    def _probe(self, draw: ReservoirSample[Answer], folder: Path, progress: Progress) -> None:
        drawn, questions = draw.drawn(), self.folder.questions
        for judge in self.job.judges:
            for probe in self.job.probes:  # each by itself: some wait for replies of a batch longer than others
                try:
                    self.probes += probe_judge(judge, [probe], questions, drawn, progress=progress)
                except BatchPending as err:
                    self._pending.append(err)
        self._stop_if_pending()
        before = self.folder.artefact
        earlier = list(read_jsonl(before.file("probes.jsonl"), Probe)) if before.has("probes.jsonl") else []
        if earlier or self.probes:
            write_jsonl(folder / "probes.jsonl", chain(earlier, self.probes))


def _blocks(answers: Iterator[Answer], size: int) -> Iterator[list[Answer]]:
    while block := list(islice(answers, size)):
        yield block
