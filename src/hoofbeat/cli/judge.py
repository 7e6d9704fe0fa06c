"""`hoofbeat judge`: judgments of a run's answers."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.answering import Run
from hoofbeat.cli.session import Calling, calling_options, command_words, output_option
from hoofbeat.judging import equivalence_request, judge_equivalence, write_judgments

__all__ = ["command"]


@click.command("judge")
@click.argument("run", type=click.Path(path_type=Path))
@output_option("judged")
@calling_options
def command(
    run: Path,
    output: Path,
    calling: Calling,
) -> None:
    """Judge the answers of RUN against the gold answers: equivalent or mismatch."""
    screen = calling.screen()
    opened = Run.open(run)
    with calling.open(screen) as session:
        judge = session.model(calling.model_spec)
        if judge.identity in opened.artefact.manifest.models.values():
            screen.say("note: the judge is the model that answered; a model tends to agree with itself")
        if calling.only_estimate:
            gold = {question.id: question for question in opened.questions}
            asked = [a for a in opened.answers if a.failure is None and gold[a.question].answer]
            screen.estimate(judge.estimate([equivalence_request(gold[a.question], a) for a in asked]))
            return
        judgments = judge_equivalence(judge, opened.questions, opened.answers, progress=screen)
        artefact = write_judgments(output, opened, judgments, judge, command=command_words())
        screen.calls(judge)
        screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", "report"))
