"""`hoofbeat ledger`: look into, export, copy and prune the record of model calls."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import check_file, json_option, ledger_option
from hoofbeat.errors import InputError, UsageError, VerificationError
from hoofbeat.models.model_loading import load_config
from hoofbeat.store.ledger_base import CallLedger
from hoofbeat.store.ledger_places import copy_ledger, ledger_place, open_ledger
from hoofbeat.store.postgres import is_postgres
from hoofbeat.store.tables import write_jsonl


def _open(path: str | None) -> CallLedger:
    place = ledger_place(path, load_config().ledger)
    if not is_postgres(place) and not Path(place).is_file():
        raise InputError("there is no ledger", where=str(place), fix="name it with --ledger")
    return open_ledger(place)


@click.group("ledger")
def command() -> None:
    """Look into, export, copy and prune the ledger of model calls."""


@command.command("stats")
@ledger_option
@json_option
def stats_command(ledger_path: str | None, as_json: bool) -> None:
    """Calls, tokens and seconds by model, and what went wrong on the way."""
    screen = Screen(as_json=as_json)
    with _open(ledger_path) as ledger:
        stats = ledger.stats()
    if as_json:
        screen.emit(stats)
        return
    click.echo(f"{stats.calls} calls, {stats.bytes / 1e6:.1f} MB")
    for row in stats.by_model:
        click.echo(
            f"{row['model']}: {row['operation']}, {row['calls']} calls, {row['tokens_in']} tokens in, "
            f"{row['tokens_out']} out, {float(row['seconds']):.1f} s"
        )
    for model, kinds in stats.troubles.items():
        click.echo(f"{model}: attempts without a reply: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}")


@command.command("export")
@click.argument("target", type=click.Path(path_type=Path))
@ledger_option
@click.option("--model", "model", help="Only calls of this model (its identity, as stats shows it).")
@json_option
def export_command(target: Path, ledger_path: str | None, model: str | None, as_json: bool) -> None:
    """Write calls as JSON lines to TARGET; `replay:TARGET` answers from it."""
    screen = Screen(as_json=as_json)
    check_file(target, ".jsonl")
    with _open(ledger_path) as ledger:
        count = write_jsonl(target, ledger.entries(model=model), private=True)
        rows = ledger.stats().by_model
    damaged = sum(int(row["calls"]) for row in rows if model in (None, row["model"])) - count
    if damaged:
        screen.say(f"damaged calls that were left out: {damaged}. Commands that need them make them again")
    if as_json:
        screen.emit({"file": str(target), "counts": {"kept": count}})
    else:
        click.echo(f"{count} calls written to {target}")


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy_command(source: str, target: str, as_json: bool) -> None:
    """Copy all calls from one ledger to another: files, or postgresql://USER@HOST/DATABASE.

    Calls that TO has already are not copied again, so a copy that was stopped goes on. Every call is compared with its
    original.
    """
    screen = Screen(as_json=as_json)
    with _open(source) as origin, open_ledger(target) as copy:
        if origin.place == copy.place:
            raise UsageError("FROM and TO are the same ledger", where=copy.place)
        done = copy_ledger(origin, copy, screen)
        place = copy.place
    if as_json:
        screen.emit({"ledger": place, **msgspec.structs.asdict(done)})
    else:
        click.echo(f"{done.calls} calls compared, {done.new} of them new in {place}; sha256 {done.copied_sha256}")
    if done.different:
        raise VerificationError(
            f"{done.different} calls have another reply in the target; its own replies stay",
            where=place,
            fix="expected where both ledgers were used separately; otherwise copy into a new ledger",
        )


@command.command("prune")
@ledger_option
@click.option("--model", "model", help="Calls of this model.")
@click.option("--older-than", help="Calls older than this: 90d, 12h.")
@json_option
def prune_command(ledger_path: str | None, model: str | None, older_than: str | None, as_json: bool) -> None:
    """Remove calls, by model and age, and give the space back. What is removed would be called (and paid) again."""
    screen = Screen(as_json=as_json)
    if model is None and older_than is None:
        raise UsageError("nothing to prune by", fix="give --model, --older-than, or both")
    before = None if older_than is None else int(time.time() - _age(older_than))
    with _open(ledger_path) as ledger:
        removed = ledger.prune(model=model, before=before)
    if as_json:
        screen.emit({"removed": removed})
    else:
        click.echo(f"{removed} calls removed")


def _age(text: str) -> float:
    match = re.fullmatch(r"(\d+)\s*([dh])", text.strip())
    if not match:
        raise UsageError(f"an age is days or hours like 90d or 12h, not {text!r}")
    return int(match[1]) * (86400.0 if match[2] == "d" else 3600.0)
