"""`hoofbeat verify`: artefact folders against their manifests, and our figures against published ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import to_builtins

from hoofbeat.cli.console import Screen
from hoofbeat.cli.session import json_option
from hoofbeat.errors import ArtefactError, InputError, VerificationError
from hoofbeat.store.artefact import folder_problems
from hoofbeat.store.folder_library import whole_tree
from hoofbeat.text import line_for_terminal, some_of

if TYPE_CHECKING:
    from hoofbeat.presets.reference_figures import ReferenceResult

_SHARED = Path("..") / "shared"
_WORDS = ("published", "retrieval", "statements")


@click.command("verify")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path),
                metavar="FOLDERS|published|retrieval|statements")  # fmt: skip
@click.option("--data", type=click.Path(path_type=Path),
              help="published: the folder with data and reference  [default: ../shared]; retrieval: the folder "
              "with the reference sets in BEIR's layout  [default: ../shared/data/retrieval].")  # fmt: skip
@click.option("--signed-by", "signers", type=click.Path(path_type=Path), metavar="SIGNERS",
              help="Check the folders' signatures as well: SIGNERS is a file with one line per signer, a name and an "
              "OpenSSH public key.")  # fmt: skip
@json_option
def command(folders: tuple[Path, ...], data: Path | None, signers: Path | None, as_json: bool) -> None:
    """Check that every file of each folder is there and unchanged. A folder of folders is checked as a whole.

    Other files in such a folder can't be checked: they are named, and with --signed-by they are an error.

    `hoofbeat verify published` recomputes published figures from the reference data and compares them.
    `hoofbeat verify retrieval` does so for rankings and sets only; `hoofbeat verify statements` for the check of
    answers against the passages they cite, on the labelled pairs of the package.
    """
    screen = Screen(as_json=as_json)
    word = str(folders[0]) if len(folders) == 1 else ""
    if word in _WORDS and not (folders[0] / "manifest.json").exists():
        _verify_figures(screen, data, word)
        return
    trees = {folder: whole_tree(folder) if folder.is_dir() else ([], []) for folder in folders}
    named = list(dict.fromkeys(each for folder, (inner, _) in trees.items() for each in inner or [folder]))
    loose = [str(each) for inner, others in trees.values() if inner for each in others]
    problems = {str(folder): folder_problems(folder) for folder in named}
    signed = _check_signatures(named, signers, problems)
    damaged = [folder for folder, found in problems.items() if found]
    if not as_json:
        for folder, found in problems.items():
            by = f", signed by {signed[folder]}" if folder in signed else ""
            click.echo(line_for_terminal(f"{folder}: {'unchanged' + by if not found else '; '.join(found)}"))
    if damaged:
        unsigned = "" if signers is None else " or are not signed by these signers"
        raise ArtefactError(
            f"{len(damaged)} of {len(named)} folders changed since Hoofbeat wrote them{unsigned}",
            where=", ".join(damaged),
            fix="restore them from a copy, or make them again",
            details={"problems": problems},
        )
    if loose and signers is not None:
        raise ArtefactError(
            "this is in no signed folder, so nobody can tell whether it is what was published",
            where=some_of(loose, 5),
            fix="move it out of the folder, or name the signed folders one by one",
            details={"problems": problems, "not checked": loose},
        )
    if as_json:
        screen.emit({"problems": problems, **({"signed": signed} if signed else {}), "not checked": loose})
        return
    click.echo(
        "1 folder checked: it is unchanged" if len(named) == 1 else f"{len(named)} folders checked: all are unchanged"
    )
    if loose:
        click.echo(line_for_terminal(f"not checked, because no manifest lists it: {some_of(loose, 5)}"))


def _check_signatures(folders: list[Path], signers: Path | None, problems: dict[str, list[str]]) -> dict[str, str]:
    """Who signed each folder; what is wrong with a signature is added to the folder's problems.

    Without a list of signers, a signature counts only where it is of another manifest: that is a change as well.
    """
    from hoofbeat.store.signatures import is_overtaken, signature_problem

    signed = {}
    for folder in folders:
        if signers is None:
            if not problems[str(folder)] and is_overtaken(folder):
                problems[str(folder)].append("its manifest is not the one that was signed")
            continue
        name, problem = signature_problem(folder, signers)
        if problem:
            problems[str(folder)].append(problem)
        else:
            signed[str(folder)] = name
    return signed


def _verify_figures(screen: Screen, data: Path | None, word: str) -> None:
    """Say expected, observed and tolerance of every figure; one that is missed is an error."""
    from hoofbeat.presets.reference_figures import RETRIEVAL, STATEMENTS, check_figures

    retrieval = word == "retrieval"
    kinds = {"retrieval": RETRIEVAL, "statements": STATEMENTS}.get(word, ())
    root = _SHARED if data is None or retrieval else data
    sets = data if data is not None and retrieval else root / "data" / "retrieval"
    done = check_figures(root, screen, sets=sets, kinds=kinds)
    shown: dict[str, object] = {
        "checks": [{**to_builtins(each.check), "observed": each.observed, "verdict": each.verdict} for each in done]
    }
    if not screen.as_json:
        screen.table(["figure", "measure", "expected", "observed", "tolerance", "verdict"], map(_row, done))
    if word != "statements" and all(each.observed is None for each in done if each.check.data):
        raise InputError(
            "no reference data was found",
            where=str(sets if retrieval else root),
            fix="name the folder with --data; it holds " + ("scifact, for example" if retrieval else "data, reference"),
        )
    failed = [each for each in done if each.verdict == "FAILED"]
    if failed:
        raise VerificationError(
            f"{len(failed)} of {len(done)} reference figures differ from the published ones",
            where="; ".join(f"{each.check.name}, {each.check.measure}" for each in failed),
            fix="a change in analysis, weights or scoring caused this: find it before you trust other figures",
            details=shown,
        )
    if screen.as_json:
        screen.emit(shown)


def _row(result: ReferenceResult) -> list[str]:
    check, whole = result.check, result.check.expected >= 2
    return [
        check.name,
        check.measure,
        f"{'at least ' if check.floor else ''}{check.expected:{',.0f' if whole else '.4f'}}",
        "" if result.observed is None else f"{result.observed:{',.0f' if whole else '.4f'}}",
        "" if check.floor else f"± {check.tolerance:g}" if check.tolerance else "exact",
        result.verdict,
    ]
