"""The documentation site: it is built without a warning, needs nothing from elsewhere, and its outputs are current."""

from __future__ import annotations

import ast
import difflib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.support import environment, printed
from tests.docs.test_docs import ROOT
from tests.helpers import needs_weights
from tools import cli_reference
from tools.docs_pages import DOCS, ROLES, TOUR, blocks, comparable, in_bash, refreshed

GENERATED = ("cli.md", "python_reference.md")
_LOADED = re.compile(
    r"""(?:<(?:script|img|link|iframe)\b[^>]*?(?:src|href)=["']|url\(["']?|@import\s+["'])(https?:)?//"""
)


@pytest.mark.slow
def test_the_site_is_built_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    words = ["-W", "--keep-going", "-q", "-b", "html", "-d", str(tmp_path / "trees"), "docs", str(tmp_path / "site")]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > len(list(DOCS.glob("*.md")))
    for page in (*pages, *(tmp_path / "site" / "_static").rglob("*.css")):
        found = _LOADED.search(page.read_text(encoding="utf-8"))
        assert found is None, f"{page.name} loads {found[0] if found else ''}"
    index = (tmp_path / "site" / "searchindex.js").read_text(encoding="utf-8")
    assert index.startswith("Search.setIndex("), "a script, so that the search works from a file as well"
    assert "ledger" in index


def test_every_page_is_in_the_table_of_contents() -> None:
    conf = (DOCS / "conf.py").read_text(encoding="utf-8")
    [listed] = [
        ast.literal_eval(node.value)
        for node in ast.parse(conf).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "CONTENTS"
    ]
    named = [name for names in listed.values() for name in names]
    pages = [str(page.relative_to(DOCS).with_suffix("")) for page in DOCS.rglob("*.md")]
    assert sorted([*named, "index"]) == sorted(pages)


def test_the_reference_of_the_command_line_is_up_to_date() -> None:
    assert cli_reference.is_current(), "run python -m tools.docs_refresh references"


def test_the_reference_has_every_command_and_option() -> None:
    text = cli_reference.PAGE.read_text(encoding="utf-8")
    names = [name for name, _ in cli_reference.commands()]
    assert len(names) > 50
    for name in names:
        assert re.search(rf"^#+ {re.escape(name)}$", text, re.MULTILINE), name
    for option in ("--economy", "--fail-if", "--stem-words", "--per-item", "--economy-check"):
        assert f"`{option}" in text


@pytest.mark.timeout(900)  # many commands: longer than others on a busy machine
@pytest.mark.slow
@pytest.mark.parametrize("names", [TOUR, ROLES], ids=["tour", "roles"])
def test_pages_run_and_print_what_they_show(names: tuple[str, ...], tmp_path: Path) -> None:
    needs_weights("demo")
    for name in names:
        text = (DOCS / name).read_text(encoding="utf-8")
        assert sum(len(block.commands) for block in blocks(text)) >= 5
        now = refreshed(text, tmp_path, by_forks)
        differences = list(difflib.unified_diff(comparable(text), comparable(now), name, "now", lineterm="", n=1))
        assert not differences, "\n".join(["run python -m tools.docs_refresh outputs", *differences])


def by_forks(line: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Most commands run in forks, which start at once; the installed script in a shell runs what makes the folder."""
    words = shlex.split(line)
    if words[0] != "hoofbeat" or words[1] in ("demo", "weights"):
        return in_bash(line, folder, environment)
    return printed(words[1:], folder, environment)


def _texts() -> list[str]:
    """Every text of the package that may be an error, with … for what is put in."""
    found = set()
    for path in (ROOT / "src" / "hoofbeat").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = [str(each.value) if isinstance(each, ast.Constant) else "…" for each in node.values]
                found.add("".join(parts))
    return sorted(found)


def test_the_errors_of_the_page_on_troubleshooting_exist() -> None:
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \| ", page, re.MULTILINE)
    assert len(quoted) >= 25
    texts = _texts()
    for error in quoted:
        wanted = error.removesuffix("…").strip()
        if not any(wanted in text for text in texts):
            close = difflib.get_close_matches(wanted, texts, 3, 0.5)
            pytest.fail(f"no error says {wanted!r} any more; the closest are {close}")


def test_the_page_on_english_has_thirty_pairs() -> None:
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", (DOCS / "english.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len([row for row in rows if row[0] not in ("before", "---")]) >= 30


def test_the_pages_stay_short() -> None:
    """Words that people wrote and others must read: text and tables, without blocks of code and without references."""
    pages = [page for page in DOCS.glob("*.md") if page.name not in GENERATED]
    texts = [re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL) for page in pages]
    words = sum(bool(re.search(r"\w", word)) for text in texts for word in text.split())
    assert words < 35_300, f"{words:,} words on all pages: shorten the pages that you changed, so that they stay below"


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) < 900
