"""`hoofbeat audit` is one command with others under its name: without one of their names, it is the audit itself."""

from __future__ import annotations

from hoofbeat.cli.groups import Under, VerbWithOthers

__all__ = ["SUBCOMMANDS", "AuditCommand", "epilog"]

SUBCOMMANDS = {
    "trial": "put pairs whose relation is known to a judge, before it is trusted",
    "compare": "set two audits of the same questions against each other",
    "validate": "have people label a sample of the pairs, and measure the judge by them",
    "ablate": "judge a sample again with the label alone, and compare",
    "merge": "put the shards of one audit together",
    "export": "write matrices by question, and tables",
    "themes": "group what sources differ in into themes",
}


class AuditCommand(VerbWithOthers):
    """The audit itself, unless its first word names one of the commands under it."""

    under = Under("audit", SUBCOMMANDS, "a corpus")


def epilog() -> str:
    """What else stands under `audit`, for its help."""
    return AuditCommand.under.epilog()
