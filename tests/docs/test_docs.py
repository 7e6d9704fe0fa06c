"""The docs' commands work: those in `console` blocks are run as they stand, those in `sh` blocks are parsed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hoofbeat.cli import cli
from hoofbeat.models import load_config
from tests.cli.support import environment
from tests.helpers import needs_weights

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def commands(page: Path, language: str) -> list[str]:
    blocks = [body for kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]
    lines = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    if language == "console":
        assert all(line.startswith("$ ") for line in lines), page
        return [line.removeprefix("$ ") for line in lines]
    return lines


@pytest.mark.slow
def test_the_tour_runs_as_it_stands(tmp_path: Path) -> None:
    needs_weights("demo")
    tour = commands(ROOT / "docs" / "tour.md", "console")
    assert len(tour) > 10
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    for line in tour:
        done = subprocess.run(
            shlex.split(line), cwd=tmp_path, env=environment(path), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "report" / "report.html").stat().st_size > 10_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_documented_commands_parse(page: Path) -> None:
    for line in commands(page, "sh"):
        words = shlex.split(line)
        if words[0] != "hoofbeat":
            assert words[0] in ("make", "git", "pip", "cd"), line
            continue
        parse(words[1:])


def parse(words: list[str]) -> None:
    """Let click read the words without running anything; a wrong option or verb raises."""
    command: click.Command = cli
    context = click.Context(cli, info_name="hoofbeat")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    if words not in (["--help"], ["-h"]):
        command.make_context("hoofbeat", words, parent=context)


def test_every_verb_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    context = click.Context(cli)
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        inner = command.list_commands(context) if isinstance(command, click.Group) else [""]
        for word in inner:
            assert f"hoofbeat {verb} {word}".strip() in text, f"hoofbeat {verb} {word} is not documented"


def test_the_models_page_s_configuration_is_read(tmp_path: Path) -> None:
    [(_, text)] = [found for found in _BLOCK.findall((ROOT / "docs" / "models.md").read_text()) if found[0] == "toml"]
    (tmp_path / "hoofbeat.toml").write_text(text, encoding="utf-8")
    assert load_config(tmp_path / "hoofbeat.toml").models["judge"].price_out == 10.0


@pytest.mark.parametrize("name", ["models.md", "corpora.md", "retrieval.md"])
def test_the_pages_python_runs(tmp_path: Path, name: str) -> None:
    needs_weights("smollm2-135m")
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    [(_, code)] = [found for found in _BLOCK.findall(page) if found[0] == "python"]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
