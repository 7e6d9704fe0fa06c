"""The tour of `hoofbeat demo`: every station calls the functions that its verb calls, and names the command.

Documents in, questions, rankings, answers, judgments, an audit of three handbooks, and one report.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat import teaching
from hoofbeat.answering import PromptSettings, parse_answerer, parse_condition, plan_systems
from hoofbeat.answering.run_plan import RunPlan, plan_run
from hoofbeat.audit import Audit, audit_sources
from hoofbeat.audit.audit_plan import plan_audit
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.results import show_disagreements, show_leaderboard
from hoofbeat.cli.retrieve import show_measures
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.judging import AnswerFolder, JudgingJob, judge_folder
from hoofbeat.models import Model
from hoofbeat.models.model_loading import Session
from hoofbeat.models.replay import RECORDED_BY, recording_of
from hoofbeat.recipes import build_teaching, teaching_patient_questions
from hoofbeat.recipes.teaching_questions import SEARCH
from hoofbeat.records import Answer
from hoofbeat.reports.report_build import build_report
from hoofbeat.retrieval.corpus_index import index_corpus
from hoofbeat.retrieval.rankings.rankings_folder import rank_line
from hoofbeat.retrieval.rankings.test_collection import collection_of
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import one_line

LINES = ("bm25[pool=first]", "bm25", "bm25 + dense")  # the first is weak on purpose: it counts a first passage only
RECORDED = "replay:teaching"
LIVE_MODEL = "embedded"
_LIVE_TOKENS = 80  # enough to see the model at work


class TourPlan(Struct, frozen=True, kw_only=True):
    """What the tour asks of which model: how many case questions, and the audit's handbooks and questions.

    `line` searches the handbooks, `conditions` are those of the case questions. With `passages`, that number of each
    handbook is shown; without, whole handbooks where they are short. `notes` go to the head of the report.
    """

    spec: str
    line: str
    questions: int
    conditions: tuple[str, ...]
    sources: tuple[str, ...]
    asked: tuple[str, ...]
    passages: int = 0
    max_tokens: int | None = None
    notes: tuple[str, ...] = ()


def recorded_plan(spec: str = RECORDED) -> TourPlan:
    """The tour whose replies a strong model wrote: all questions, four handbooks."""
    recording = recording_of(teaching.recorded_replies())
    return TourPlan(
        notes=(f"How the replies were recorded. {recording.how}",) if recording and recording.how else (),
        spec=spec,
        line="bm25",  # the same passages on every processor, and so the same requests
        questions=20,
        conditions=("question", "closed", "bm25 @2"),  # without its case nothing can be known: the floor
        sources=("hb-alder-kidney", "hb-brook-kidney", "hb-cairn-kidney", "hb-dune-kidney"),
        asked=("tq-01", "tq-02", "tq-03", "tq-07", "tq-12", "tq-13"),  # agreement, each kind of difference, silence
    )


def live_plan(spec: str, questions: int, notes: Sequence[str] = ()) -> TourPlan:
    """The tour with calls to a model: as little as shows every step, because the embedded model is slow."""
    return TourPlan(
        spec=spec,
        line=LINES[-1],
        questions=questions,
        conditions=("closed", f"{LINES[-1]} @2"),
        sources=("hb-alder-kidney", "hb-brook-kidney", "hb-cairn-kidney"),
        asked=("tq-01", "tq-02", "tq-06"),  # every relation is planted at least once
        passages=2,
        max_tokens=160,
        notes=tuple(notes),
    )


class Tour:
    """The stations, in order; each writes its folder below `root`."""

    def __init__(self, screen: Screen, root: Path, plan: TourPlan) -> None:
        self._screen = screen
        self._plan = plan
        self._root = root
        self._spec = plan.spec
        self._shown: list[Path] = []
        self.models: list[Model] = []
        self.findings: list[str] = []

    def _step(self, number: int, text: str, words: list[str]) -> list[str]:
        self._screen.title(f"{number}. {text}")
        self._screen.line("   " + " ".join(f'"{word}"' if " " in word else word for word in words))
        return words

    def _at(self, name: str) -> Path:
        return self._root / name

    def documents(self) -> None:
        """Import, build."""
        cases = self._at("cases")
        command = self._step(1, "Import documents", ["hoofbeat", "corpus", "import", "CASES", "-o", str(cases)])
        imported = import_corpus(
            [teaching.cases_folder()],
            cases,
            title="teaching cases (invented)",
            progress=self._screen,
            command=command,
        )
        handbooks = import_corpus(
            teaching.handbook_files(),
            self._at("handbooks"),
            title="teaching handbooks (invented)",
            progress=self._screen,
            command=["hoofbeat", "corpus", "import", "HANDBOOKS", "-o", str(self._at("handbooks"))],
        )
        self._screen.say(f"   {imported.manifest.counts.kept} case reports, {handbooks.manifest.counts.kept} handbooks")
        self._corpus, self._handbooks = Corpus.open(cases), Corpus.open(self._at("handbooks"))
        bench = self._at("benchmark")
        command = self._step(2, "Questions", ["hoofbeat", "build", "teaching", str(cases), "-o", str(bench)])
        built = build_teaching(self._corpus, bench, command=command)
        counts = built.manifest.counts
        self._screen.say(f"   {counts.kept} questions kept, {counts.rejected} cases rejected, each with a reason")
        self._bench = Benchmark.open(bench)
        self._shown += [cases, self._at("handbooks"), bench]

    def rankings(self) -> None:
        """Index once, rank with three lines: short searches in other words, because whole cases are found by any."""
        indexes = self._indexes = index_corpus(self._corpus, self._screen)
        made: list[Artefact] = []
        bench = str(self._at("benchmark"))
        searches = collection_of(Benchmark.open(self._at("benchmark"), SEARCH), self._corpus)

        def words(line: str, target: Path) -> list[str]:
            return ["hoofbeat", "retrieve", bench, "--edition", SEARCH, "--with", line, "-o", str(target)]

        self._step(3, "Rankings: three retrievers, 20 short searches", words(LINES[-1], self._at("rankings-3")))
        for number, line in enumerate(LINES, start=1):
            target = self._at(f"rankings-{number}")
            settings: dict[str, object] = {"edition": SEARCH}
            made.append(rank_line(searches, indexes, line, target, settings=settings, command=words(line, target)))
            self._shown.append(target)
        show_measures(self._screen, made)

    def _model(self, session: Session) -> Model:
        self.models.append(session.model(self._spec))
        return self.models[-1]

    def answers(self, session: Session) -> None:
        """Answer and judge."""
        count = self._plan.questions
        run, judged = self._at("run"), self._at("judged")
        words = ["hoofbeat", "answer", str(self._at("benchmark")), "--model", self._spec, "--limit", str(count)]
        for condition in self._plan.conditions:
            words += ["--condition", condition]
        conditions = ", ".join(self._plan.conditions)
        command = self._step(4, f"Answers of {self._spec} under the conditions {conditions}", [*words, "-o", str(run)])
        if (identity := session.model(self._spec).identity).startswith(RECORDED_BY):
            self._screen.say(f"{identity}; replayed here, so no model is called", indent=3)
        questions = self._bench.first(count)
        plan = RunPlan(
            bench=self._bench,
            corpus=self._corpus,
            questions=questions,
            systems=plan_systems(
                [parse_answerer(self._spec)], [parse_condition(each) for each in self._plan.conditions], questions
            ),
            asking=PromptSettings(),
            settings={"samples": 1, "limit": count},
        )
        done = plan.write(session, run, indexes=self._indexes, command=command, progress=self._screen)
        self.models += done.grid.models.values()
        words = ["hoofbeat", "judge", str(run), "--model", self._spec, "-o", str(judged)]
        command = self._step(5, "Judge the answers against the gold answers", words)
        job = JudgingJob(aspects=("equivalence",), judges=(self._model(session),))
        made = judge_folder(AnswerFolder.open(run), job, judged, command=command, progress=self._screen)
        show_leaderboard(self._screen, made)
        self._shown.append(judged)

    def audit(self, session: Session) -> None:
        """Some handbooks, some questions."""
        plan = self._plan
        target = self._at("audit")
        words = ["hoofbeat", "audit", str(self._at("handbooks")), "teaching", "--model", self._spec]
        for source in plan.sources:
            words += ["--source", source]
        for question in plan.asked:
            words += ["--question", question]
        words += ["--with", plan.line]
        words += ["--passages", str(plan.passages), "--whole-up-to", "0"] if plan.passages else []
        words += ["--max-tokens", str(plan.max_tokens)] if plan.max_tokens else []
        words += ["-o", str(target)]
        command = self._step(6, f"Audit: ask {len(plan.sources)} handbooks the same questions", words)
        planned = plan_audit(
            self._handbooks,
            [question for question in teaching_patient_questions() if question.id in plan.asked],
            lambda corpus: index_corpus(corpus, self._screen),
            sources=plan.sources,
            line=plan.line,
            passages=plan.passages or None,
            whole_up_to=0 if plan.passages else None,
            max_tokens=plan.max_tokens,
        )
        inputs = [self._handbooks.artefact.reference()]
        model = self._model(session)
        made = audit_sources(planned, model, model, target, inputs=inputs, command=command, progress=self._screen)
        show_disagreements(self._screen, Audit(made))
        self._shown.append(target)

    def report(self) -> Artefact:
        """One page of it all."""
        target = self._at("report")
        words = ["hoofbeat", "report", *map(str, self._shown), "-o", str(target)]
        command = self._step(7, "Report", words)
        planted = {(item.question, item.a, item.b): item.label for item in teaching.relations()}
        made = build_report(
            self._shown,
            target,
            title="Hoofbeat demo: invented teaching set",
            notes=self._plan.notes,
            planted=planted,
            command=command,
        )
        self.findings = msgspec.convert(made.manifest.metrics.get("found", []), list[str])
        return made

    def live_answer(self, session: Session) -> None:
        """One answer of the embedded model, to the first question; no figure counts it."""
        model, target = f"{LIVE_MODEL}[max_tokens={_LIVE_TOKENS}]", self._at("live")
        words = ["hoofbeat", "answer", str(self._at("benchmark")), "--model", model, "--limit", "1", "-o", str(target)]
        command = self._step(8, "Live: one answer by the embedded model, now, on this machine", words)
        plan = plan_run(self._bench, models=[model], limit=1)
        done = plan.write(session, target, command=command, progress=self._screen)
        self.models += done.grid.models.values()
        [answer] = read_jsonl(done.artefact.file("answers.jsonl"), Answer)
        self._screen.say(plan.questions[0].text, indent=3)
        self._screen.say(f"its answer: {one_line(answer.text)}", indent=3)
        self._screen.say(f"right answer: {plan.questions[0].answer}", indent=3)
        self._screen.say(
            "This model has 135 million parameters. It shows that calls work; its answers are mostly wrong.", indent=3
        )
