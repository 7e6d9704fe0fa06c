"""`hoofbeat verify`: artefact folders against their manifests, and retrieval against published figures."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import to_builtins

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option
from hoofbeat.errors import ArtefactError, InputError, VerificationError
from hoofbeat.store.artefact import folder_problems

_DATA = Path("..") / "shared" / "data" / "retrieval"


@click.command("verify")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FOLDERS|retrieval")
@click.option("--data", type=click.Path(path_type=Path), default=_DATA, show_default=True,
              help="For retrieval: where the reference sets lie, a folder each in BEIR's layout.")  # fmt: skip
@json_option
def command(folders: tuple[Path, ...], data: Path, as_json: bool) -> None:
    """Check that every file of each artefact folder is there and unchanged.

    `hoofbeat verify retrieval` runs retriever lines with published figures on the reference sets instead, and says for
    each what was expected and what was observed.
    """
    screen = Screen(as_json=as_json)
    if folders == (Path("retrieval"),) and not (folders[0] / "manifest.json").exists():
        _verify_retrieval(screen, data)
        return
    problems = {str(folder): folder_problems(folder) for folder in folders}
    damaged = [folder for folder, found in problems.items() if found]
    if not as_json:
        for folder, found in problems.items():
            click.echo(f"{folder}: {'as written' if not found else '; '.join(found)}")
    if damaged:
        raise ArtefactError(
            f"{len(damaged)} of {len(folders)} folders are not as they were written",
            where=", ".join(damaged),
            fix="restore them from a copy, or make them again",
            details={"problems": problems},
        )
    if as_json:
        screen.emit({"problems": problems})


def _verify_retrieval(screen: Screen, data: Path) -> None:
    """Say expected, observed and tolerance of every published figure; one that is missed is an error."""
    from hoofbeat.retrieval.rankings.test_collection import CHECKS, check_figures

    done = check_figures(data, screen)
    rows = [
        [
            f"{each.check.data}: {each.check.line}",
            each.check.measure,
            f"{'at least ' if each.check.floor else ''}{each.check.expected:.3f}",
            "" if each.observed is None else f"{each.observed:.4f}",
            "" if each.check.floor else f"± {each.check.tolerance:.3f}",
            each.verdict,
        ]
        for each in done
    ]
    shown: dict[str, object] = {
        "checks": [{**to_builtins(each.check), "observed": each.observed, "verdict": each.verdict} for each in done]
    }
    if not screen.as_json:
        screen.table(["check", "measure", "expected", "observed", "tolerance", ""], rows)
    if all(each.observed is None for each in done):
        raise InputError(
            "none of the reference sets is there",
            where=str(data),
            fix=f"name the folder that holds {', '.join(dict.fromkeys(check.data for check in CHECKS))}: --data",
        )
    failed = [each for each in done if each.verdict == "FAILED"]
    if failed:
        raise VerificationError(
            f"{len(failed)} of {len(done)} reference figures did not come out",
            where="; ".join(f"{each.check.data}: {each.check.line}" for each in failed),
            fix="a change in analysis, weights or scoring has moved them: find which before trusting other figures",
            details=shown,
        )
    if screen.as_json:
        screen.emit(shown)
