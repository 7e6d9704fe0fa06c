"""`hoofbeat run`: a paper's protocol on a benchmark, from answers to one report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hoofbeat.cli.session import Calling, calling_options_of_several, command_words, output_option
from hoofbeat.registry import registry

if TYPE_CHECKING:
    from hoofbeat.cli.console import Screen
    from hoofbeat.presets.paper_run import PaperRun


class _RunCommand(click.Command):
    """The command with the list of papers below its options; one that a plugin brings is in the list as well."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        from hoofbeat.presets.preset import Preset

        with formatter.section("Papers"):
            formatter.write_dl([(preset.name, preset.protocol) for preset in registry.all(Preset)])


@click.command("run", cls=_RunCommand)
@click.argument("paper")
@click.argument("paths", metavar="BENCHMARK...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--judge", default="", help="Model that judges, if the paper uses one  [default: the first --model]")
@click.option("--retriever", "retrievers", multiple=True,
              help="Retriever line, instead of the paper's. Repeat it for several.")  # fmt: skip
@click.option("--corpus", type=click.Path(path_type=Path), help="The corpus, if it is not beside the benchmark.")
@click.option("--encoder", default="minilm", show_default=True, help="Encoder for BERTScore.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions; the report says so.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed for all random draws.")
@output_option("paper")
@calling_options_of_several
def command(paper: str, paths: tuple[Path, ...], output: Path, calling: Calling, **options: Any) -> None:
    """Run the protocol of PAPER on a BENCHMARK that `hoofbeat benchmark import` or `hoofbeat build` wrote.

    The result is one report: the paper's tables, its published figures beside yours, and every difference from the
    paper. Hoofbeat lists the differences before it calls a model.
    """
    from hoofbeat.models import Estimate
    from hoofbeat.presets.paper_run import plain_findings, plan_paper

    screen = calling.screen()
    with calling.open() as session:
        planned = plan_paper(paper, paths, session, models=calling.model_specs, **options)
        _tell_differences(screen, planned)
        if calling.only_estimate:
            parts = planned.estimates(progress=screen)
            screen.estimate(sum(parts.values(), Estimate(max_money=0.0)), parts=parts)
            return
        calling.warn_if_tiny(screen, "reproduce a paper")
        report = planned.write(output, command=command_words(), progress=screen)
    for line in plain_findings(report):
        screen.say(line)
    screen.finish(report, next_step=("open", report.path / "report.html"))


def _tell_differences(screen: Screen, planned: PaperRun) -> None:
    from hoofbeat.reports.tables import count_of

    screen.say(f"{planned.preset.title}: {planned.preset.protocol}")
    screen.say(f"This run differs from the paper in {count_of(len(planned.differences), 'point')}:")
    for each in planned.differences:
        screen.say(f"{each.what}: in the paper {each.paper}; here {each.here}", indent=2)
