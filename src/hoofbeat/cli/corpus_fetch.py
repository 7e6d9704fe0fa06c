"""`hoofbeat corpus fetch`: open-access articles and their citations, from the services that have them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import cast

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.fetch.articles import SOURCES, fetch_articles, read_names
from hoofbeat.corpus.fetch.cited_by import CITATIONS, CitationSource, citation_ids, fetch_citations
from hoofbeat.corpus.fetch.client import ArticleSelection, Connection
from hoofbeat.corpus.fetch.fetch_folder import ARTICLES, FetchResult
from hoofbeat.errors import InputError, UsageError
from hoofbeat.store import Cost

_CITATIONS = "citations"


@click.command("fetch")
@click.argument("source", type=click.Choice((*SOURCES, _CITATIONS)))
@click.option("-o", "--output", type=click.Path(path_type=Path), default=Path("fetched"), show_default=True,
              help="Folder for the articles.")  # fmt: skip
@click.option(
    "--id",
    "single_ids",
    multiple=True,
    metavar="ID",
    help="Article by PMC id (for citations also PMID, DOI). Repeat it for several.",
)
@click.option("--ids", "id_file", type=click.Path(path_type=Path), help="File with one id per line.")
@click.option("--query", default="", help="Query in the syntax of the service (Entrez, Europe PMC).")
@click.option("--venue", "venues", multiple=True, help="Journal title or abbreviation. Repeat it for several.")
@click.option("--venues", "venue_file", type=click.Path(path_type=Path), help="File with one venue per line.")
@click.option("--years", metavar="FIRST-LAST", help="Years of publication: 2023-2026, or one year.")
@click.option(
    "--licence", "licences", multiple=True, help="Only this licence: 'CC BY', 'CC0', … Repeat it for several."
)
@click.option("--limit", type=int, help="Maximum number of articles.")
@click.option("--file-list", type=click.Path(path_type=Path), help="Your copy of oa_file_list.csv or PMC-ids.csv(.gz).")
@click.option("--images/--no-images", default=True, show_default=True, help="pmc: also fetch images.")
@click.option("--corpus", type=click.Path(path_type=Path), help="citations: look up the documents of this corpus.")
@click.option("--from", "citation_source", type=click.Choice(("europe-pmc", "icite", "elink")), default="europe-pmc",
              show_default=True, help="citations: the service to ask.")  # fmt: skip
@click.option("--email", help="Your e-mail address, which the services ask for (or set HOOFBEAT_EMAIL).")
@click.option("--rate", type=float, help="Requests per second [default: 3; with NCBI_API_KEY 10].")
@click.option("--connections", type=int, default=3, show_default=True, help="Maximum number of simultaneous requests.")
@click.option("--allow-host", "hosts", multiple=True, help="Also allow redirects to this host. Repeat it for several.")
@click.option(
    "--base", "bases", multiple=True, metavar="SERVICE=URL", help="Use another address (a mirror) for a service."
)
@click.option("--refresh", is_flag=True, help="Fetch the list again; for citations, look all of them up again.")
@json_option
def fetch_command(
    source: str,
    output: Path,
    single_ids: tuple[str, ...],
    id_file: Path | None,
    query: str,
    venues: tuple[str, ...],
    venue_file: Path | None,
    years: str | None,
    licences: tuple[str, ...],
    limit: int | None,
    file_list: Path | None,
    images: bool,
    corpus: Path | None,
    citation_source: str,
    email: str | None,
    rate: float | None,
    connections: int,
    hosts: tuple[str, ...],
    bases: tuple[str, ...],
    refresh: bool,
    as_json: bool,
) -> None:
    """Fetch open-access articles (pmc, pmc-packages, europe-pmc), or the articles that cite them (citations).

    You can stop at any time: the same command continues. not_fetched.jsonl lists what the services do not have, what
    the selection left out and what failed.
    """
    screen = Screen(as_json=as_json)
    began = time.monotonic()
    connection = Connection.chosen(
        email=email, rate=rate, connections=connections, allowed_hosts=hosts, services=dict(map(_base, bases))
    )
    ids = (*single_ids, *(read_names(id_file) if id_file else ()))
    if source == _CITATIONS:
        named = (*ids, *(citation_ids(Corpus.open(corpus)) if corpus else ()))[:limit]
        result = fetch_citations(
            named,
            output,
            connection,
            source=cast(CitationSource, citation_source),
            refresh=refresh,
            progress=screen,
        )
    else:
        selection = ArticleSelection(
            ids=ids,
            query=query,
            venues=(*venues, *(read_names(venue_file) if venue_file else ())),
            years=_years(years),
            licences=licences,
            limit=limit,
        )
        result = fetch_articles(
            source,
            selection,
            output,
            connection,
            images=images,
            file_list=file_list,
            refresh=refresh,
            progress=screen,
        )
    _finish(screen, source, result, time.monotonic() - began)


def _finish(screen: Screen, source: str, result: FetchResult, seconds: float) -> None:
    counts = result.counts
    metrics = {"new": result.new, "requests": result.requests, "bytes": result.bytes}
    if counts.failed and not counts.kept:
        reason = next(iter(counts.failures))
        raise InputError(f"nothing was fetched: {reason}", where=str(result.path), fix="run the same command again")
    if screen.as_json:
        screen.emit(
            {
                "artefact": str(result.path),
                "kind": "fetch",
                "counts": msgspec.to_builtins(counts),
                "metrics": metrics,
                "cost": msgspec.to_builtins(Cost()),
                "seconds": round(seconds, 3),
            }
        )
        return
    for reason, count in (*counts.reasons.items(), *counts.failures.items()):
        screen.say(f"not fetched: {count} × {reason}")
    said = f"Fetched {counts.kept:,} ({result.new:,} new), {counts.rejected:,} not available or left out, "
    click.echo(f"{said}{counts.failed:,} failed → {result.path}")
    if counts.failed:
        screen.say("next: run the same command again to fetch what failed")
    elif source == _CITATIONS:
        screen.line(f"next: hoofbeat corpus filter CORPUS --keep 'rare({result.path / CITATIONS})' -o rare")
    else:
        screen.line(f"next: hoofbeat corpus import {result.path / ARTICLES} -o corpus")


def _years(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    first, _, last = text.replace(" ", "").partition("-")
    if not first.isdecimal() or not (last or first).isdecimal():
        raise UsageError(
            f"{text!r} is not a range of years", fix="write, for example, --years 2023-2026 or --years 2024"
        )
    return int(first), int(last or first)


def _base(text: str) -> tuple[str, str]:
    name, separator, url = text.partition("=")
    if not separator:
        raise UsageError(f"{text!r} is not an address of a service", fix="write --base SERVICE=URL")
    return name.strip().replace("-", "_"), url.strip()
