"""`hoofbeat ledger`: look into, export, copy and prune the record of model calls."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import click
import msgspec

from hoofbeat.cli.console import Screen, is_replaced, note_target, replaced_note
from hoofbeat.cli.session import check_file, json_option, ledger_option
from hoofbeat.errors import InputError, UsageError, VerificationError
from hoofbeat.models.model_loading import load_config
from hoofbeat.store.ledger_base import CallLedger, row_damage
from hoofbeat.store.ledger_places import copy_ledger, ledger_place, open_ledger
from hoofbeat.store.postgres import is_postgres
from hoofbeat.store.tables import write_jsonl
from hoofbeat.text import duration

_EXPORTED = rb'\A\{"key":"[^"]*","model":'


def _open(path: str | None) -> CallLedger:
    place = ledger_place(path, load_config().ledger)
    if not is_postgres(place) and not Path(place).is_file():
        raise InputError("there is no ledger", where=str(place), fix="name one with --ledger")
    return open_ledger(place)


@click.group("ledger")
def command() -> None:
    """Inspect, export, copy and prune the ledger of model calls."""


@command.command("stats")
@ledger_option
@json_option
def stats_command(ledger_path: str | None, as_json: bool) -> None:
    """Print calls, tokens and time by model, and attempts that failed."""
    screen = Screen(as_json=as_json)
    with _open(ledger_path) as ledger:
        stats = ledger.stats()
    if as_json:
        screen.emit(stats)
        return
    click.echo(f"{stats.calls:,} calls, {stats.bytes / 1e6:.1f} MB")
    for row in stats.by_model:
        click.echo(
            f"{row['model']}: {row['operation']}, {row['calls']:,} calls, {row['tokens_in']:,} tokens in, "
            f"{row['tokens_out']:,} out, {duration(float(row['seconds']))}"
        )
    for model, kinds in stats.troubles.items():
        click.echo(f"{model}: attempts that failed: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}")


@command.command("export")
@click.argument("target", type=click.Path(path_type=Path))
@ledger_option
@click.option("--model", "model", help="Only calls of this model, named as in `ledger stats`.")
@json_option
def export_command(target: Path, ledger_path: str | None, model: str | None, as_json: bool) -> None:
    """Write calls as JSON lines to TARGET. The model `replay:TARGET` answers from that file."""
    screen = Screen(as_json=as_json)
    check_file(target, ".jsonl", ours=_EXPORTED)
    note_target(click.get_current_context(), target)
    with _open(ledger_path) as ledger:
        count = write_jsonl(target, ledger.entries(model=model), private=True)
        rows = ledger.stats().by_model
    damaged = sum(int(row["calls"]) for row in rows if model in (None, row["model"])) - count
    if damaged:
        screen.say(f"Left out {damaged} damaged calls. Commands that need them will repeat them.")
    if as_json:
        screen.emit({"file": str(target), "counts": {"kept": count}, "replaced": is_replaced(target)})
    else:
        click.echo(f"Exported {count:,} calls → {target}{replaced_note(target)}")


@command.command("copy")
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@json_option
def copy_command(source: str, target: str, as_json: bool) -> None:
    """Copy all calls from one ledger to another: files, or postgresql://USER@HOST/DATABASE.

    Calls that TO already has are skipped, so you can continue a copy that was stopped. Every copied call is compared
    with its original.
    """
    screen = Screen(as_json=as_json)
    with _open(source) as origin, open_ledger(target) as copy:
        if origin.place == copy.place:
            raise UsageError("FROM and TO are the same ledger", where=copy.place, fix="name another TO")
        done = copy_ledger(origin, copy, screen)
        place = copy.place
    if as_json:
        screen.emit({"ledger": place, **msgspec.structs.asdict(done)})
    else:
        click.echo(f"Compared {done.calls:,} calls, {done.new:,} of them new → {place} (sha256 {done.copied_sha256})")
    if done.different:
        raise VerificationError(
            f"{done.different} calls have a different reply in TO, which was not changed",
            where=place,
            fix="this is normal if both ledgers were used separately; otherwise copy into a new ledger",
        )


@command.command("verify")
@ledger_option
@click.option("--remove", is_flag=True, help="Remove the calls that don't match. Commands that need them call again.")
@json_option
def verify_command(ledger_path: str | None, remove: bool, as_json: bool) -> None:
    """Check that every call matches its key: the hash of its request, with its model and operation.

    This finds damaged and carelessly planted calls. It can't find a reply that someone changed: use ledgers of people
    whom you trust. Commands say how many replies they took from earlier commands, and when these were made.
    """
    screen = Screen(as_json=as_json)
    with _open(ledger_path) as ledger:
        with screen.task("checking calls", ledger.stats().calls) as task:
            checked, wrong = 0, list[tuple[bytes, str]]()
            for page in ledger.pages():
                checked += len(page)
                wrong += [(row.key, why) for row in page if (why := row_damage(row))]
                task.advance(len(page))
        for key, _ in wrong if remove else ():
            ledger.remove(key.hex())
    if not wrong:
        if as_json:
            screen.emit({"checked": checked, "wrong": 0})
        else:
            click.echo(f"{checked:,} calls checked: all match their keys")
        return
    reasons = Counter(why for _, why in wrong)
    raise VerificationError(
        f"{len(wrong):,} of {checked:,} calls don't match their keys{' and were removed' if remove else ''}: "
        + "; ".join(f"{count:,} × {why}" for why, count in reasons.most_common()),
        where=", ".join(key.hex()[:16] for key, _ in wrong[:5]),
        fix="run the commands again"
        if remove
        else "remove them with hoofbeat ledger verify --remove, or restore a copy",
        details={"checked": checked, "wrong": len(wrong), "removed": len(wrong) if remove else 0},
    )


@command.command("prune")
@ledger_option
@click.option("--model", "model", help="Remove calls of this model.")
@click.option("--older-than", help="Remove calls older than this: 90d, 12h.")
@json_option
def prune_command(ledger_path: str | None, model: str | None, older_than: str | None, as_json: bool) -> None:
    """Remove calls by model or age, and free their space. Commands that need removed calls must pay for them again."""
    screen = Screen(as_json=as_json)
    if model is None and older_than is None:
        raise UsageError("no calls are selected", fix="give --model, --older-than, or both")
    before = None if older_than is None else int(time.time() - _age(older_than))
    with _open(ledger_path) as ledger:
        removed = ledger.prune(model=model, before=before)
    if as_json:
        screen.emit({"removed": removed})
    else:
        click.echo(f"Removed {removed:,} calls")


def _age(text: str) -> float:
    match = re.fullmatch(r"(\d+)\s*([dh])", text.strip())
    if not match:
        raise UsageError(f"{text!r} is not an age", fix="write days or hours, such as 90d or 12h")
    return int(match[1]) * (86400.0 if match[2] == "d" else 3600.0)
