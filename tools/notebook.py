"""Turn a notebook's source (a Python file with cells after `# %%`) into an .ipynb file; the source is what is kept.

python tools/notebook.py docs/notebooks/first_study.py out
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat.v4

_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)


def notebook(source: Path) -> Any:
    """The notebook of a source file."""
    _, *parts = _CELL.split(source.read_text(encoding="utf-8"))
    cells = []
    for number, (head, body) in enumerate(zip(parts[::2], parts[1::2], strict=True), start=1):
        text = body.strip("\n")
        if "[markdown]" in head:
            words = "\n".join(line.removeprefix("#").removeprefix(" ") for line in text.splitlines())
            cells.append(nbformat.v4.new_markdown_cell(words, id=f"cell-{number}"))  # type: ignore[no-untyped-call]
        else:
            cells.append(nbformat.v4.new_code_cell(text, id=f"cell-{number}"))  # type: ignore[no-untyped-call]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return nbformat.v4.new_notebook(cells=cells, metadata=kernel)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    source, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{source.stem}.ipynb"
    nbformat.write(notebook(source), target)  # type: ignore[no-untyped-call]
    print(target)
