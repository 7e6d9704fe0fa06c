"""Notebooks from their sources (Python files with cells after `# %%`): as .ipynb, or run and rendered as Markdown.

python tools/notebook.py docs/notebooks/first_study.py out      write out/first_study.ipynb
`python -m tools.docs_refresh` runs all of docs/notebooks and writes the page of each.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat.v4

_CELL = re.compile(r"^# %%(.*)$", re.MULTILINE)
_STYLE = re.compile(r"<style.*?</style>", re.DOTALL)
_SPACE = re.compile(r">\s+<")


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


def execute(made: Any, folder: Path) -> None:
    """Run a notebook's cells in a folder; the outputs are kept in it."""
    nbclient.NotebookClient(made, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()


def rendered(made: Any, name: str) -> str:
    """A notebook that was run as a page: text, code, and what each cell returned. Progress bars are left out."""
    parts = []
    for cell in made.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            if output.output_type == "execute_result":
                parts.append(_shown(output.data))
            elif output.output_type == "stream" and output.name == "stdout":
                parts.append(f"```text\n{output.text.rstrip()}\n```")
    told = f"<!-- Written by python -m tools.docs_refresh from {name}: change that file. -->"
    return "\n\n".join([told, *parts]) + "\n"


def _shown(data: Any) -> str:
    if "text/html" in data:
        html = _SPACE.sub("><", _STYLE.sub("", data["text/html"])).strip().replace("\n", " ")
        return f'<div class="output">{html}</div>'
    return f"```text\n{data['text/plain']}\n```"


if __name__ == "__main__":
    source, folder = map(Path, sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{source.stem}.ipynb"
    nbformat.write(notebook(source), target)  # type: ignore[no-untyped-call]
    print(target)
