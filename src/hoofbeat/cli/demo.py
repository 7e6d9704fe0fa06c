"""`hoofbeat demo`: a newcomer's first minutes, on the real path: the same functions that the other verbs call.

Documents in, questions, rankings, answers, judgments, an audit of three handbooks, and one report. Every step says
which command does it, so that the demo doubles as a tour.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from hoofbeat import teaching
from hoofbeat.answering import PromptSettings, parse_answerer, parse_condition, plan_systems
from hoofbeat.answering.run_plan import RunPlan
from hoofbeat.audit import audit_sources
from hoofbeat.audit.plan_sources import plan_audit
from hoofbeat.benchmarks import Benchmark
from hoofbeat.cli.console import Screen
from hoofbeat.cli.retrieve import show_measures
from hoofbeat.cli.session import json_option, output_option
from hoofbeat.corpus import Corpus, import_corpus
from hoofbeat.errors import OutputError
from hoofbeat.judging import AnswerFolder, JudgingJob, judge_folder
from hoofbeat.models import SPEC_HELP, Model, weight_files
from hoofbeat.models.session import Session, open_session
from hoofbeat.recipes import build_teaching, teaching_patient_questions
from hoofbeat.reports.build import build_report
from hoofbeat.retrieval.rankings import collection_of, index_corpus, rank_line
from hoofbeat.store import Artefact, Cost

__all__ = ["command"]

LINES = ("bm25", "dense", "bm25 + dense")
CONDITIONS = ("closed", "bm25 + dense @2")
AUDITED = ("hb-alder-kidney", "hb-brook-kidney", "hb-cairn-kidney")
AUDIT_QUESTIONS = ("tq-01", "tq-02", "tq-06")  # among these three handbooks every relation is planted at least once
TINY = (
    "The default model is tiny (135 million parameters): it shows the flow, not quality. Its answers and judgments are "
    "mostly wrong. For useful ones: hoofbeat weights pull qwen2.5-coder-1.5b && hoofbeat demo --model "
    "embedded:qwen2.5-coder-1.5b, or name any endpoint."
)


@click.command("demo")
@click.option("--model", "spec", default="embedded", show_default=True, help=f"Model: {SPEC_HELP}.")
@click.option("--questions", type=click.IntRange(1, 20), default=5, show_default=True, help="Case questions to answer.")
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file.")
@output_option("demo")
@json_option
def command(spec: str, questions: int, config_path: Path | None, output: Path, as_json: bool) -> None:
    """The whole flow on the invented teaching set, from documents to a report."""
    screen = Screen(as_json=as_json)
    began = time.monotonic()
    weight_files.find_weight("minilm")
    screen.say("Hoofbeat demo: invented cases and handbooks. Research software, not for clinical use.")
    if (output / "manifest.json").exists():
        raise OutputError(
            "an artefact stands there already", where=str(output), fix="choose another folder for the demo with -o"
        )
    tour = _Tour(screen, output, spec)
    with open_session(ledger_path=output / "ledger.sqlite", config_path=config_path) as session:
        session.model(spec)  # a wrong name is said before any work is done
        tour.documents()
        tour.rankings()
        tour.answers(session, questions)
        tour.audit(session)
        report = tour.report()
        screen.calls(*tour.models)
    if spec == "embedded":
        screen.say(f"\nnote: {TINY}")
    screen.say(f"done in {time.monotonic() - began:.0f} s")
    page = report.path / "report.html"
    screen.finish(
        report,
        cost=sum((model.cost for model in tour.models), Cost()),
        page=str(page),
        next_step=("open", page),
    )
    screen.say(f"or look at all of it in the browser: {shlex.join(['hoofbeat', 'serve', str(output)])}")


class _Tour:
    def __init__(self, screen: Screen, root: Path, spec: str) -> None:
        self._screen = screen
        self._root = root
        self._spec = spec
        self._shown: list[Path] = []
        self.models: list[Model] = []

    def _step(self, number: int, text: str, words: list[str]) -> list[str]:
        self._screen.title(f"{number}. {text}")
        self._screen.say("   " + " ".join(f'"{word}"' if " " in word else word for word in words))
        return words

    def _at(self, name: str) -> Path:
        return self._root / name

    def documents(self) -> None:
        """Import, build."""
        cases = self._at("cases")
        command = self._step(1, "Documents in", ["hoofbeat", "corpus", "import", "CASES", "-o", str(cases)])
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
        self._screen.say(f"   {counts.kept} questions kept, {counts.rejected} cases rejected, each with its reason")
        self._bench = Benchmark.open(bench)
        self._shown += [cases, self._at("handbooks"), bench]

    def rankings(self) -> None:
        """Index once, rank with three lines."""
        indexes = self._indexes = index_corpus(self._corpus, self._screen)
        made: list[Artefact] = []
        bench = str(self._at("benchmark"))
        shown = ["hoofbeat", "retrieve", bench, "--with", LINES[-1], "-o", str(self._at("rankings-3"))]
        self._step(3, "Rankings: " + ", ".join(LINES), shown)
        for number, line in enumerate(LINES, start=1):
            target = self._at(f"rankings-{number}")
            command = ["hoofbeat", "retrieve", bench, "--with", line, "-o", str(target)]
            made.append(rank_line(collection_of(self._bench, self._corpus), indexes, line, target, command=command))
            self._shown.append(target)
        show_measures(self._screen, made)

    def _model(self, session: Session) -> Model:
        self.models.append(session.model(self._spec))
        return self.models[-1]

    def answers(self, session: Session, count: int) -> None:
        """Answer and judge."""
        run, judged = self._at("run"), self._at("judged")
        words = ["hoofbeat", "answer", str(self._at("benchmark")), "--model", self._spec, "--limit", str(count)]
        for condition in CONDITIONS:
            words += ["--condition", condition]
        command = self._step(4, f"Answers of {self._spec}, closed book and with retrieval", [*words, "-o", str(run)])
        questions = self._bench.first(count)
        plan = RunPlan(
            bench=self._bench,
            corpus=self._corpus,
            questions=questions,
            systems=plan_systems([parse_answerer(self._spec)], [parse_condition(c) for c in CONDITIONS], questions),
            asking=PromptSettings(),
            settings={"samples": 1, "limit": count},
        )
        done = plan.write(session, run, indexes=self._indexes, command=command, progress=self._screen)
        self.models += done.grid.models.values()
        words = ["hoofbeat", "judge", str(run), "--model", self._spec, "-o", str(judged)]
        command = self._step(5, "Judgments against the gold answers", words)
        job = JudgingJob(aspects=("equivalence",), judges=(self._model(session),))
        judge_folder(AnswerFolder.open(run), job, judged, command=command, progress=self._screen)
        self._shown.append(judged)

    def audit(self, session: Session) -> None:
        """Three handbooks, some questions."""
        target = self._at("audit")
        words = ["hoofbeat", "audit", str(self._at("handbooks")), "teaching", "--model", self._spec]
        for source in AUDITED:
            words += ["--source", source]
        for question in AUDIT_QUESTIONS:
            words += ["--question", question]
        words += ["--with", LINES[-1], "--passages", "2", "--whole-up-to", "0", "--max-tokens", "160"]
        words += ["-o", str(target)]
        command = self._step(6, "Audit: the same questions to three handbooks", words)
        asked = [question for question in teaching_patient_questions() if question.id in AUDIT_QUESTIONS]
        plan = plan_audit(
            self._handbooks,
            asked,
            lambda corpus: index_corpus(corpus, self._screen),
            sources=AUDITED,
            line=LINES[-1],
            passages=2,
            whole_up_to=0,
            max_tokens=160,
        )
        inputs = [self._handbooks.artefact.reference()]
        model = self._model(session)
        audit_sources(plan, model, model, target, inputs=inputs, command=command, progress=self._screen)
        self._shown.append(target)

    def report(self) -> Artefact:
        """One page of it all."""
        target = self._at("report")
        words = ["hoofbeat", "report", *map(str, self._shown), "-o", str(target)]
        command = self._step(7, "Report", words)
        planted = {(item.question, item.a, item.b): item.label for item in teaching.relations()}
        return build_report(
            self._shown,
            target,
            title="Hoofbeat demo: invented teaching set",
            notes=[TINY] if self._spec == "embedded" else [],
            planted=planted,
            command=command,
        )
