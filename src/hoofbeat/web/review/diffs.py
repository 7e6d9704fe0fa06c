"""What differs between two versions of a benchmark, as records and to be read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct

from hoofbeat.store.tables import plain_cell

__all__ = ["Difference", "Edit", "diff_markdown"]


class Edit(Struct, frozen=True, kw_only=True):
    """One thing of a question that is not as before."""

    field: str
    before: str | list[str]
    after: str | list[str]


class Difference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one question: dropped for a reason, or changed."""

    item: str
    what: Literal["dropped", "changed"]
    reason: str = ""
    details: str = ""
    edits: tuple[Edit, ...] = ()


def diff_markdown(
    differences: Sequence[Difference],
    *,
    name: str,
    version: int,
    kept: int,
    unlabelled: int,
    waits: Mapping[str, Sequence[str]],
) -> str:
    """What differs, to be read: what went and why, what changed from what to what."""
    dropped = [each for each in differences if each.what == "dropped"]
    changed = [each for each in differences if each.what == "changed"]
    lines = [
        f"# {_line(name)}: what reviewers' decisions changed",
        "",
        f"Version {version}. {kept} questions stay, {len(dropped)} went, "
        f"{len(changed)} were changed; {unlabelled} were seen by nobody.",
        "",
    ]
    if dropped:
        lines += ["## Dropped", "", "| question | why | what reviewers said |", "|---|---|---|"]
        lines += [f"| {_cell(each.item)} | {_cell(each.reason)} | {_cell(each.details)} |" for each in dropped]
        lines.append("")
    if changed:
        lines += ["## Changed", ""]
        for each in changed:
            lines += [f"### {_line(each.item)}", ""]
            for edit in each.edits:
                lines += [
                    f"{edit.field}, before:",
                    "",
                    *_quoted(edit.before),
                    "",
                    "after:",
                    "",
                    *_quoted(edit.after),
                    "",
                ]
    if waits:
        lines += ["## Waiting for an expert", ""]
        lines += [f"- {_line(id)}: {', '.join(fields)}" for id, fields in waits.items()]
        lines.append("")
    lines += ["Research software. Not for clinical use.", ""]
    return "\n".join(lines)


def _quoted(value: str | list[str]) -> list[str]:
    if isinstance(value, list):
        return [f"> - {_line(row)}" for row in value]
    return [f"> {_escaped(row)}".rstrip() for row in value.splitlines()]


def _line(text: str) -> str:
    return _escaped(" ".join(text.split()))


def _cell(text: str) -> str:
    return _line(plain_cell(text)).replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text that Markdown shows as it stands: no tags, links or emphasis of its own."""
    for mark in ("\\", "<", ">", "[", "]", "*", "_", "`", "#"):
        text = text.replace(mark, f"\\{mark}")
    return text
