"""Bring everything in docs/ up to date that is made from the code: references, outputs, notebooks, pictures.

python -m tools.docs_refresh                       all of it, about five minutes
python -m tools.docs_refresh references outputs    only these; also: notebooks, pictures

Run it after a change of help, messages, pages or reports, look at `git diff docs`, and commit what is meant.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tools import cli_reference, python_reference
from tools.docs_pages import DOCS, ROLES, TOUR, refreshed
from tools.notebook import execute, notebook, rendered

NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.py"))


def references() -> None:
    """docs/cli.md and docs/python_reference.md."""
    for reference in (cli_reference, python_reference):
        reference.PAGE.write_text(reference.reference(), encoding="utf-8")
        print(reference.PAGE)


def outputs() -> None:
    """What the commands of the tour and of the pages by role print."""
    for names in (TOUR, ROLES):
        with tempfile.TemporaryDirectory() as folder:
            for name in names:
                page = DOCS / name
                page.write_text(refreshed(page.read_text(encoding="utf-8"), Path(folder)), encoding="utf-8")
                print(page)


def notebooks() -> None:
    """The pages of the notebooks, with what their cells return."""
    for source in NOTEBOOKS:
        made = notebook(source)
        with tempfile.TemporaryDirectory() as folder:
            execute(made, Path(folder))
        page = source.with_suffix(".md")
        page.write_text(rendered(made, f"docs/notebooks/{source.name}"), encoding="utf-8")
        print(page)


def pictures() -> None:
    """docs/images."""
    from tools.docs_pictures import take_pictures  # noqa: PLC0415  # needs a browser

    with tempfile.TemporaryDirectory() as folder:
        for picture in take_pictures(Path(folder), DOCS / "images"):
            print(picture)


PARTS: dict[str, Callable[[], None]] = {
    "references": references,
    "outputs": outputs,
    "notebooks": notebooks,
    "pictures": pictures,
}


if __name__ == "__main__":
    wanted = sys.argv[1:] or list(PARTS)
    if unknown := [name for name in wanted if name not in PARTS]:
        sys.exit(f"there is no part {unknown[0]!r}; the parts are {', '.join(PARTS)}")
    for name in wanted:
        PARTS[name]()
