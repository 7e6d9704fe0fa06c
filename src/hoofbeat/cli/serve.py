"""`hoofbeat serve`: pages to browse what was made, and to ask."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option, ledger_option
from hoofbeat.models import SPEC_HELP
from hoofbeat.web.site import Site, SiteSettings

if TYPE_CHECKING:
    from hoofbeat.models import Model
    from hoofbeat.web.server import RunningServer


def listening_options(function: Callable[..., None]) -> Callable[..., None]:
    """`--host`, `--port`, `--url` and `--proxy`: where a server listens and where people reach it."""
    for option in (
        click.option(
            "--proxy",
            "proxies",
            metavar="ADDRESS",
            multiple=True,
            help="Trust X-Forwarded-For from this proxy, so that wrong links count per visitor. Repeat it for several.",
        ),
        click.option(
            "--url",
            default="",
            help="Public address, if a proxy is in front of the server: https://review.example.org.",
        ),
        click.option(
            "--port", type=click.IntRange(0, 65535), default=8350, show_default=True, help="Port; 0 picks a free one."
        ),
        click.option(
            "--host",
            default="127.0.0.1",
            show_default=True,
            help="Address to listen on. The default is reachable from this machine only.",
        ),
    ):
        function = option(function)
    return function


def ready_teller(screen: Screen) -> Callable[[RunningServer], None]:
    """How a server says that it listens: in words, or with `--json` as one object."""

    from hoofbeat.web.server import print_ready

    def emit(told: RunningServer) -> None:
        screen.emit({**msgspec.structs.asdict(told), "warning": told.warning()})
        sys.stdout.flush()

    return emit if screen.as_json else print_ready


def model_opener(
    specs: Sequence[str], *, ledger_path: str | None, config_path: Path | None, budget: str | None
) -> Callable[[str], Model]:
    """Opens a model in the thread that uses it, with its own ledger; a wrong name is an error right away."""
    from hoofbeat.models import Budget, load_config, load_model
    from hoofbeat.store.ledger_places import ledger_place, open_ledger

    config, limits = load_config(config_path), Budget.parse(budget)

    def opened(spec: str) -> Model:
        return load_model(
            spec, ledger=open_ledger(ledger_place(ledger_path, config.ledger)), config=config, budget=limits
        )

    for spec in specs:
        opened(spec).ledger.close()
    return opened


@click.command("serve")
@click.argument("folders", metavar="FOLDER...", nargs=-1, required=True, type=click.Path(path_type=Path))
@listening_options
@click.option(
    "--model",
    "models",
    multiple=True,
    help=f"Model for the ask page [default: none, only search]: {SPEC_HELP}. Repeat it for several.",
)
@click.option("--line", default=SiteSettings().line, show_default=True, help="Default retriever line of the ask page.")
@ledger_option
@click.option("--config", "config_path", type=click.Path(path_type=Path), help="Configuration file.")
@click.option("--budget", help="Hard limit of the ask page in dollars (2.50) or calls (200calls).")
@json_option
def command(
    folders: tuple[Path, ...],
    host: str,
    port: int,
    url: str,
    proxies: tuple[str, ...],
    models: tuple[str, ...],
    line: str,
    ledger_path: str | None,
    config_path: Path | None,
    budget: str | None,
    as_json: bool,
) -> None:
    """Show FOLDERs as pages in the browser.

    A FOLDER is any folder that Hoofbeat wrote, or a folder of such folders. Only this machine can open the pages,
    unless you set --host; then they open only with the link that is printed at the start.
    """
    from hoofbeat.retrieval import parse
    from hoofbeat.store.folder_library import FolderLibrary
    from hoofbeat.web.server import serve

    parse(line)
    site = Site(
        library=FolderLibrary(folders),
        settings=SiteSettings(models=models, line=line),
        load_model=model_opener(models, ledger_path=ledger_path, config_path=config_path, budget=budget),
    )
    serve(site, host=host, port=port, url=url, proxies=proxies, ready=ready_teller(Screen(as_json=as_json)))
