"""How a report's artefacts were made: enough, for each of them, to make it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from hoofbeat.reports.model import Block, Details, Heading, Text
from hoofbeat.reports.tables import Cell, Column, Table
from hoofbeat.reports.words import count_of, short_hash
from hoofbeat.store import Artefact, Cost, Manifest
from hoofbeat.store.tables import canonical_json

_INPUTS = 50


def origin_blocks(artefacts: Sequence[Artefact]) -> list[Block]:
    """The last chapter."""
    blocks: list[Block] = [
        Heading("How this was made", "origin"),
        Text(
            "Hashes are the first twelve digits of SHA-256, of a file or of an artefact's manifest. Bootstrap "
            "intervals in this report use 1,000 samples and seed 0. The same artefacts give the same bytes."
        ),
        _costs(artefacts),
    ]
    for number, artefact in enumerate(artefacts, start=1):
        blocks.append(Heading(f"{artefact.manifest.kind}: {artefact.path.name}", f"origin-{number}", 3, listed=False))
        blocks.append(_facts(artefact, number))
        if artefact.manifest.inputs:
            table = _inputs(artefact.manifest, number)
            few = len(artefact.manifest.inputs) <= 5
            blocks.append(table if few else Details(f"Inputs ({len(artefact.manifest.inputs)})", (table,)))
    return blocks


def _facts(artefact: Artefact, number: int) -> Table:
    manifest = artefact.manifest
    counts = manifest.counts
    rows: list[tuple[str, str]] = [
        ("title", manifest.title),
        ("command", shlex.join(manifest.command)),
        ("manifest", short_hash(artefact.reference().sha256)),
        ("version", f"Hoofbeat {manifest.version}" if manifest.version else ""),
        ("revision", manifest.revision),
        ("counts", f"{counts.kept:,} kept, {counts.rejected:,} rejected, {counts.failed:,} failed"),
        *((f"model: {role}", name) for role, name in manifest.models.items()),
        *((f"prompt: {role}", name) for role, name in manifest.prompts.items()),
        *((f"seed: {name}", str(seed)) for name, seed in manifest.seeds.items()),
        *((f"setting: {name}", _setting(value)) for name, value in manifest.settings.items()),
        ("cost", _cost(manifest.cost) if manifest.cost.calls else "no model calls"),
    ]
    kept = tuple((name, value) for name, value in rows if value)
    return Table(
        name=f"origin-{number}-{artefact.path.name}",
        caption=f"{artefact.path.name}: how it was made",
        n=counts.kept,
        unit="items kept",
        columns=(Column("fact"), Column("value")),
        rows=kept,
    )


def _setting(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _cost(cost: Cost) -> str:
    money = f", {cost.money:,.4f} in money" if cost.money else ""
    return f"{count_of(cost.calls, 'call')}, {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out{money}"


def _inputs(manifest: Manifest, number: int) -> Table:
    rows = tuple((ref.name, ref.kind or "file", short_hash(ref.sha256)) for ref in manifest.inputs[:_INPUTS])
    total = len(manifest.inputs)
    return Table(
        name=f"origin-{number}-inputs",
        caption="Inputs",
        n=total,
        unit="inputs",
        columns=(Column("input"), Column("kind"), Column("hash")),
        rows=rows,
        note=f"The first {_INPUTS} of {total:,}." if total > _INPUTS else "",
    )


def _costs(artefacts: Sequence[Artefact]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    total = Cost()
    for artefact in artefacts:
        cost = artefact.manifest.cost
        total += cost
        rows.append(
            (artefact.path.name, artefact.manifest.kind, cost.calls, cost.tokens_in, cost.tokens_out, cost.money)
        )
    rows.append(("all", "", total.calls, total.tokens_in, total.tokens_out, total.money))
    columns = (
        Column("artefact"),
        Column("kind"),
        Column("calls", "count"),
        Column("tokens in", "count"),
        Column("tokens out", "count"),
        Column("money", "number"),
    )
    return Table(
        name="costs",
        caption="Cost of each artefact",
        n=len(artefacts),
        unit="artefacts",
        columns=columns,
        rows=tuple(rows),
    )
