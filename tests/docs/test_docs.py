"""The docs' commands work: those in `console` blocks are run as they are, those in `sh` blocks are parsed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.benchmark_import import ImportFormat
from hoofbeat.benchmarks.export import ExportFormat
from hoofbeat.cli import cli
from hoofbeat.models import load_config
from hoofbeat.presets.preset import Preset
from hoofbeat.recipes.recipe import Recipe, find_recipe, parameters, read_settings
from hoofbeat.registry import registry
from hoofbeat.store import open_artefact
from tests.cli.recorded import record, teaching_cases
from tests.cli.support import environment, hoofbeat
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


def run_in(folder: Path, lines: list[str]) -> None:
    """Run commands as they stand, one after the other."""
    path = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    for name, *words in map(shlex.split, lines):
        if name == "hoofbeat":
            hoofbeat(*words, folder=folder)
        else:
            subprocess.run([name, *words], cwd=folder, env=environment(path), check=True)


@pytest.mark.timeout(900)
@pytest.mark.usefixtures("recipes_only")
def test_the_recipes_page_runs_as_it_stands(tmp_path: Path) -> None:
    """Its commands, with its own recipe file, and with recorded answers behind the model that it calls `mine`."""
    page = ROOT / "docs" / "recipes.md"
    lines = commands(page, "console")
    [(_, code)] = [found for found in _BLOCK.findall(page.read_text(encoding="utf-8")) if found[0] == "python"]
    (tmp_path / "older.py").write_text(code, encoding="utf-8")
    corpus = teaching_cases(tmp_path)
    paper = {"select": "", "stem_words": "60"}
    record(
        tmp_path,
        corpus,
        (find_recipe("clinbench"), paper),
        (find_recipe(str(tmp_path / "older.py")), {"min_age": "65"}),
    )
    (tmp_path / "hoofbeat.toml").write_text('[models.mine]\nspec = "replay:calls.jsonl"\n', encoding="utf-8")
    run_in(tmp_path, lines)
    for name, least in (("bench", 15), ("older", 3)):
        counts = open_artefact(tmp_path / name, "benchmark").manifest.counts
        assert counts.kept >= least
        assert counts.failed == 0
        assert counts.kept + counts.rejected == 24


def test_the_page_of_published_benchmarks_runs_as_it_stands(tmp_path: Path) -> None:
    page = ROOT / "docs" / "benchmarks.md"
    [(_, table)] = [found for found in _BLOCK.findall(page.read_text(encoding="utf-8")) if found[0] == "csv"]
    (tmp_path / "questions.csv").write_text(table, encoding="utf-8")
    run_in(tmp_path, commands(page, "console"))
    first, again = (Benchmark.open(tmp_path / name) for name in ("bench", "again"))
    assert first.questions == again.questions
    assert first.editions() == ["free"]
    parts = page.read_text(encoding="utf-8").split("\n## ")
    rows = {part.splitlines()[0]: re.findall(r"^\| `(\w[\w-]*)` \|", part, re.MULTILINE) for part in parts}
    assert rows["Formats"] == list(registry.names(ImportFormat))
    assert rows["Run a paper's protocol"] == list(registry.names(Preset))


def section(page: str, heading: str) -> str:
    """The text under a heading of the third level."""
    return re.split(r"^##", page.split(f"\n### {heading}\n")[1], maxsplit=1, flags=re.MULTILINE)[0]


@pytest.mark.parametrize("name", registry.names(Recipe))
def test_the_page_on_recipes_names_their_steps(name: str) -> None:
    page = (ROOT / "docs" / "recipe_steps.md").read_text(encoding="utf-8")
    text, trials = section(page, name), page.split("\n## Trials\n")[1].split("\n## ")[0]
    recipe, prose = find_recipe(name), " ".join(f"{text}{trials}".split())
    for step in recipe.steps(recipe.settings()):
        told = step.name.removesuffix(", again") if not step.name.startswith("rare(") else "rare(...)"
        assert f"`{told}`" in prose or (name == "ogcare" and step.name.startswith("not ")), step.name


def test_documented_parameters_of_recipes_can_be_used() -> None:
    """Values of recipes' own options are read when a recipe runs: they are checked here."""
    checked = 0
    for page in PAGES:
        for words in map(shlex.split, commands(page, "sh")):
            if words[:2] == ["hoofbeat", "build"] and words[2] in registry.names(Recipe):
                recipe = find_recipe(words[2])
                command = cli.get_command(click.Context(cli), "build")
                assert isinstance(command, click.Group)
                inner = command.get_command(click.Context(command), words[2])
                assert inner is not None
                given = inner.make_context("hoofbeat", words[3:]).params if words[3:] != ["--help"] else {}
                own = {each.name for each in parameters(recipe)}
                read_settings(recipe, {key: value for key, value in given.items() if key in own and value is not None})
                checked += 1
    assert checked >= len(registry.names(Recipe))


def test_the_recipes_page_lists_every_export() -> None:
    text = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").split("\n## Exports\n")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `(\w[\w-]*)` \|", text, re.MULTILINE)
    assert listed == list(registry.names(ExportFormat)), "docs/recipes.md, Exports: one row per format, by name"


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
    while words[0] == "--plugin":
        words = words[2:]
    command: click.Command = cli
    context = click.Context(cli, info_name="hoofbeat")
    while isinstance(command, click.Group):
        found = command.get_command(context, words[0])
        assert found is not None, words
        command, words = found, words[1:]
    if words not in (["--help"], ["-h"]):
        command.make_context("hoofbeat", words, parent=context).close()  # --on holds until then


def test_every_verb_is_documented() -> None:
    """On a page that somebody wrote: the reference has them all by itself."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES if page.name != "cli.md")
    context = click.Context(cli)
    for verb in cli.list_commands(context):
        command = cli.get_command(context, verb)
        inner = command.list_commands(context) if isinstance(command, click.Group) else [""]
        for word in inner:
            assert f"hoofbeat {verb} {word}".strip() in text, f"hoofbeat {verb} {word} is not documented"


def test_the_models_page_s_configuration_is_read(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / "models.md").read_text())
    parts = [block for kind, block in blocks if kind == "toml"]
    parts.sort(key=lambda part: part.lstrip().startswith("["))  # keys of the file are above its tables
    (tmp_path / "hoofbeat.toml").write_text("\n".join(parts), encoding="utf-8")
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
