"""`hoofbeat audit merge`: the shards of one audit as one."""

from __future__ import annotations

from pathlib import Path

import click

from hoofbeat.audit import Audit
from hoofbeat.audit.shard_merge import merge_audits
from hoofbeat.cli.audit_words import say_outcome
from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import command_words, json_option, output_option

__all__ = ["command"]


@click.command("merge")
@click.argument("shards", nargs=-1, required=True, metavar="SHARD...", type=click.Path(path_type=Path))
@output_option("audit")
@json_option
def command(shards: tuple[Path, ...], output: Path, as_json: bool) -> None:
    """Put the SHARDs of one audit (made with --shard I/N) together: all must be there, each once, of the same plan."""
    screen = Screen(as_json=as_json)
    artefact = merge_audits(shards, output, command=command_words(), progress=screen)
    say_outcome(screen, Audit(artefact))
    screen.finish(artefact, next_step=("hoofbeat", "report", output, "-o", "report"))
