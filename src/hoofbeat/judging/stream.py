"""Judging a folder of any size: answers come in blocks, and each block's judgments are written before the next is read.

The new folder stands on its own: questions and answers are copied as files, judgments that were there already come
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

from hoofbeat.errors import BatchPending
from hoofbeat.judging.asking import ask_judge
from hoofbeat.judging.aspects import Aspect, Key, answer_key, blank, unanswered
from hoofbeat.judging.bertscore import BertScorer
from hoofbeat.judging.catalogue import MODEL_ASPECTS, chosen_conditions, takes
from hoofbeat.judging.designs import LabelFile
from hoofbeat.judging.folder import HUMAN, AnswerFolder, Probe
from hoofbeat.judging.probes import probe_judge, probe_request
from hoofbeat.judging.sampling import Draw
from hoofbeat.judging.scoring import SCORERS, judge_choice, score_answers, score_bertscore
from hoofbeat.judging.voting import decide, majority_name
from hoofbeat.models import ChatRequest, Encoder, Estimate, Model, load_encoder
from hoofbeat.models.batch import BatchBackend
from hoofbeat.progress import SILENT, Progress, Task, Within
from hoofbeat.records import Answer, Judgment
from hoofbeat.store.files import atomic_write
from hoofbeat.store.tables import read_jsonl, write_jsonl

__all__ = ["BLOCK", "Job", "Judging", "Tally"]

BLOCK = 2000
_BATCH_BLOCK = 50_000  # one file of a batch folder
_encode = msgspec.json.Encoder().encode


class Job(Struct, frozen=True, kw_only=True):
    """What is to be judged, and by whom.

    `humans` are labels of people, which are written beside the judgments, `files` where they came from.
    """

    aspects: tuple[str, ...] = ()
    judges: tuple[Model, ...] = ()
    conditions: tuple[str, ...] = ()
    encoder: Callable[[], Encoder] = load_encoder
    idf: bool = False
    probes: tuple[str, ...] = ()
    probe_size: int = 50
    seed: int = 0
    humans: tuple[Judgment, ...] = ()
    files: tuple[LabelFile, ...] = ()


class Tally:
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


class Judging:
    """One pass over a folder of answers."""

    def __init__(self, folder: AnswerFolder, job: Job) -> None:
        self.folder = folder
        self.job = job
        self.tally = Tally()
        self.probes: list[Probe] = []
        self._judge = majority_name([judge.spec for judge in job.judges]) if job.judges else ""
        self._conditions = {name: chosen_conditions(folder, name, job.conditions) for name in job.aspects}
        self._probed = chosen_conditions(folder, "equivalence", job.conditions)
        self._scorer: BertScorer | None = None
        self._pending: list[BatchPending] = []
        explains = any(name in MODEL_ASPECTS and MODEL_ASPECTS[name].explains for name in job.aspects)
        self._known: dict[Key, bool | None] = folder.verdicts() if explains and folder.judged else {}

    # Without a call

    def estimate(self) -> Estimate:
        """What the judges would cost at most: what explains wrong answers is counted as if all were wrong."""
        total = Estimate()
        draw = self._draw()
        for block in _blocks(self.folder.each_answer(), BLOCK):
            self._offer(draw, block)
            for name in self.job.aspects:
                if name in MODEL_ASPECTS:
                    aspect = MODEL_ASPECTS[name]
                    chosen = [
                        answer for answer in block if self._takes(name, answer) and self._maybe_wrong(answer, aspect)
                    ]
                    for judge in self.job.judges:
                        total = total + judge.estimate(self._requests(judge, aspect, chosen))
        for judge in self.job.judges if self.job.probes else ():
            asked = [
                probe_request(probe, self.folder.questions[answer.question], answer)
                for probe in self.job.probes
                for answer in draw.drawn()
            ]
            total = total + judge.estimate(asked)
        return total

    def _requests(self, judge: Model, aspect: Aspect, answers: Iterable[Answer]) -> list[ChatRequest]:
        questions = self.folder.questions
        return [
            asked.request
            for answer in answers
            for asked in aspect.ask(questions.get(answer.question), answer, judge.context)
            if asked.request is not None
        ]

    def _maybe_wrong(self, answer: Answer, aspect: Aspect) -> bool:
        return not aspect.explains or self._known.get(answer_key(answer)) is not True

    # The pass

    def write(self, folder: Path, *, progress: Progress = SILENT) -> None:
        """Judge everything and write the tables into a folder that is being drafted."""
        artefact = self.folder.artefact
        for name in ("questions.jsonl", "answers.jsonl"):
            shutil.copyfile(artefact.file(name), folder / name)
        size = _BATCH_BLOCK if any(isinstance(judge.backend, BatchBackend) for judge in self.job.judges) else BLOCK
        draw = self._draw()
        answers = self.folder.each_answer() if self.job.aspects or self.job.probes else iter(())
        total = self.folder.survey.answers * sum(self._stages(name) for name in self.job.aspects)
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
        self._stop_if_pending()
        self._probe(draw, folder, progress)

    def _put(self, write: Callable[[bytes], object], judgment: Judgment) -> None:
        self.tally.add(judgment)
        write(_encode(judgment) + b"\n")

    def _stages(self, aspect: str) -> int:
        return len(self.job.judges) if aspect in MODEL_ASPECTS else 1

    def _takes(self, aspect: str, answer: Answer) -> bool:
        return takes(aspect, answer) and answer.condition in self._conditions[aspect]

    def _judge_block(self, block: Sequence[Answer], task: Task) -> list[Judgment]:
        judgments: list[Judgment] = []
        verdicts: dict[Key, bool | None] = {}
        questions = self.folder.questions
        for name in self.job.aspects:
            chosen = [answer for answer in block if self._takes(name, answer)]
            if name in MODEL_ASPECTS:
                aspect = MODEL_ASPECTS[name]
                if aspect.explains:
                    chosen = [answer for answer in chosen if self._right(answer, verdicts) is False]
                made = self._ask_all(aspect, chosen, len(block) - len(chosen), task)
            elif name == "choice":
                made = [judge_choice(questions.get(answer.question), answer) for answer in chosen]
            elif name in SCORERS:
                made = score_answers(name, questions, chosen)
            else:
                made = score_bertscore(self._bertscore(), questions, chosen)
            if name in ("choice", "equivalence"):
                right = {"choice": "correct", "equivalence": "equivalent"}[name]
                verdicts.update((answer_key(each), None if each.failure else each.label == right) for each in made)
            if name not in MODEL_ASPECTS:
                task.advance(len(block))
            judgments += made
        return judgments

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
        return None if choice.failure else choice.label == "correct"

    def _ask_all(self, aspect: Aspect, chosen: Sequence[Answer], others: int, task: Task) -> list[Judgment]:
        """Put an aspect of a block to every judge and make judgments of their votes."""
        said = []
        for judge in self.job.judges:
            try:
                said.append(
                    ask_judge(judge, aspect, self.folder.questions, chosen, progress=Within(task)) if chosen else []
                )
            except BatchPending as err:
                self._pending.append(err)
            task.advance(others)
        if len(said) < len(self.job.judges):
            return []  # answers of a batch are still to come: nothing is written this time
        judgments = []
        for answer, *casts in zip(chosen, *said, strict=True):
            for votes in zip(*casts, strict=True):
                base = blank(answer, aspect.name, self._judge, passage=votes[0][0])
                judgments.append(decide(base, aspect, [vote for _, vote in votes]))
        return judgments

    def _bertscore(self) -> BertScorer:
        if self._scorer is None:
            golds = [each.answer for each in self.folder.questions.values() if each.answer.strip()]
            self._scorer = BertScorer(self.job.encoder(), golds if self.job.idf else None)
        return self._scorer

    def _stop_if_pending(self) -> None:
        if self._pending:
            first = self._pending[0]
            what = "; ".join(dict.fromkeys(each.what for each in self._pending))
            raise BatchPending(what, where=first.where, fix=first.fix)

    # Probes

    def _draw(self) -> Draw[Answer]:
        return Draw(self.job.probe_size if self.job.probes else 0, self.job.seed)

    def _offer(self, draw: Draw[Answer], block: Iterable[Answer]) -> None:
        """Answers that a judge can judge are drawn from, whatever it says of them."""
        if not draw.size:
            return
        for answer in block:
            known = unanswered(self.folder.questions.get(answer.question), answer) is None
            if known and takes("equivalence", answer) and answer.condition in self._probed:
                draw.offer(answer_key(answer), answer)

    def _probe(self, draw: Draw[Answer], folder: Path, progress: Progress) -> None:
        drawn = draw.drawn()
        for judge in self.job.judges if self.job.probes else ():
            try:
                self.probes += probe_judge(judge, self.job.probes, self.folder.questions, drawn, progress=progress)
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
