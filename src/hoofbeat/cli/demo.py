"""`hoofbeat demo`: a newcomer's first minutes, on the real path: the same functions that the other verbs call.

Documents in, questions, rankings, answers, judgments, an audit of handbooks, and one report. Every step says which
command does it, so that the demo doubles as a tour. The replies are recorded ones of a strong model, because the model
that is small enough to be shipped shows the flow and no quality; it gives one answer at the end. `--live` has it, or
another model, do everything.
"""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import click

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option, output_option
from hoofbeat.errors import OutputError
from hoofbeat.models import SPEC_HELP
from hoofbeat.text import duration

TINY = (
    "The default model is tiny (135 million parameters): it shows the flow, not quality. Its answers and judgments are "
    "mostly wrong. For useful ones: hoofbeat weights pull qwen2.5-coder-1.5b && hoofbeat demo --model "
    "embedded:qwen2.5-coder-1.5b, or name any endpoint."
)


@click.command("demo")
@click.option("--live", is_flag=True, help="Call a model for every step instead of replaying recorded replies.")
@click.option("--model", "spec", help=f"With --live, which it implies: {SPEC_HELP}.  [default: embedded]")
@click.option("--questions", type=click.IntRange(1, 20), default=5, show_default=True,
              help="With --live: number of case questions.")  # fmt: skip
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file.")
@output_option("demo")
@json_option
def command(
    live: bool, spec: str | None, questions: int, config_path: Path | None, output: Path, as_json: bool
) -> None:
    """Run the whole flow on the invented teaching set, from documents to a report.

    Hoofbeat replays recorded replies of a strong model; the embedded model gives one live answer.
    """
    from hoofbeat.cli.demo_tour import LIVE_MODEL, Tour, live_plan, recorded_plan
    from hoofbeat.models import weight_files
    from hoofbeat.models.model_loading import open_session
    from hoofbeat.models.replay import RECORDED_BY
    from hoofbeat.store import Cost

    screen = Screen(as_json=as_json)
    began = time.monotonic()
    weight_files.find_weight("minilm")
    screen.say("Hoofbeat demo: invented cases and handbooks. Research software, not for clinical use.")
    if (output / "manifest.json").exists():
        raise OutputError(
            "Not overwritten: a Hoofbeat folder is there already",
            where=str(output),
            fix="choose another folder with -o",
        )
    live = live or spec is not None
    chosen = spec or "embedded"
    plan = live_plan(chosen, questions, [TINY] if chosen == "embedded" else []) if live else recorded_plan()
    tour = Tour(screen, output, plan)
    with open_session(ledger_path=output / "ledger.sqlite", config_path=config_path) as session:
        session.model(chosen if live else LIVE_MODEL)  # a wrong name is said before any work is done
        tour.documents()
        tour.rankings()
        tour.answers(session)
        tour.audit(session)
        report = tour.report()
        if not live:
            tour.live_answer(session)
        replayed = [model for model in tour.models if model.identity.startswith(RECORDED_BY)]
        if replayed:
            screen.say(f"\nReplayed {sum(model.cost.calls for model in replayed):,} recorded replies")
        screen.calls(*(model for model in tour.models if model not in replayed))
    screen.title("What was found")
    for sentence in tour.findings:
        screen.say(f"- {sentence}")
    for note in plan.notes:
        screen.say(f"\nnote: {note}")
    screen.say(f"Done in {duration(time.monotonic() - began)}")
    page = report.path / "report.html"
    screen.finish(
        report,
        cost=sum((model.cost for model in tour.models), Cost()),
        page=str(page),
        next_step=("open", page),
    )
    screen.line(f"or see everything in the browser: {shlex.join(['hoofbeat', 'serve', str(output)])}")
