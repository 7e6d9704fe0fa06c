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
@click.option("--judge", default="", help="Model that judges, if the paper has a judge  [default: the first --model]")
@click.option("--retriever", "retrievers", multiple=True,
              help="A retriever line in place of the preset's; several may be given.")  # fmt: skip
@click.option("--corpus", type=click.Path(path_type=Path), help="The documents, if they are not beside the benchmark.")
@click.option("--encoder", default="minilm", show_default=True, help="Encoder of BERTScore.")
@click.option("--limit", type=click.IntRange(1), help="Only the first N questions; the report says so.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of whatever is drawn.")
@output_option("paper")
@calling_options_of_several
def command(paper: str, paths: tuple[Path, ...], output: Path, calling: Calling, **options: Any) -> None:
    """Run the protocol of PAPER on a BENCHMARK that `hoofbeat benchmark import` or `hoofbeat build` wrote.

    The folder gets one report: the paper's tables, its published figures beside ours, and every difference from the
    paper. What differs is said before any model is called.
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
        report = planned.write(output, command=command_words(), progress=screen)
    for line in plain_findings(report):
        screen.say(line)
    screen.finish(report, next_step=("open", report.path / "report.html"))


def _tell_differences(screen: Screen, planned: PaperRun) -> None:
    screen.say(f"{planned.preset.title}: {planned.preset.protocol}")
    screen.say(f"This run differs from the paper in {len(planned.differences)} points:")
    for each in planned.differences:
        screen.say(f"  {each.what}: {each.paper}; here {each.here}")
