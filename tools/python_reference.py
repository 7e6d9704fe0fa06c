"""Write docs/python_reference.md from the docstrings and signatures of the public names.

python tools/python_reference.py            write it
python tools/python_reference.py --check    exit with 1 where it is not up to date
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

import hoofbeat
from hoofbeat import registry
from hoofbeat.ask import ask_records
from hoofbeat.review import new_study

PAGE = Path(__file__).parents[1] / "docs" / "python_reference.md"
HEAD = """\
# Python reference

Every public name of `import hoofbeat as hb`, written from the code by `tools/python_reference.py`.
[Python](python.md) says how they are used.
"""
VERBS = (
    "open", "import_corpus", "filter_corpus", "build", "retrieve", "find_evidence", "answer", "import_predictions",
    "judge", "leaderboard", "audit_sources", "audit_answers", "check", "check_leakage", "compare", "report",
    "run_paper", "ask_corpora", "import_benchmark", "export", "create_study", "export_labels", "export_exam",
    "apply_reviews", "verify", "load_plugin",
)  # fmt: skip
FOLDERS = (
    "ArtefactFolder", "Corpus", "Benchmark", "RankingsFolder", "Run", "JudgmentFolder", "Audit", "CheckFolder",
    "LeakageFolder", "ReportFolder",
)  # fmt: skip
RECORDS = (
    "Document", "Passage", "Span", "Question", "Hit", "Answer", "Judgment", "Comparison", "Failure", "Estimate",
)  # fmt: skip
ERRORS = ("HoofbeatError", "BudgetSpent", "BatchPending")
FUNCTIONS = ("keeping_indexes", "running_on")
OTHERS = {
    "aio": "the same verbs to be awaited: `await hb.aio.answer(...)`.",
    "SILENT": "for `progress=`: shows nothing.",
    "__version__": "the version of Hoofbeat.",
}
TYPES = {
    "PathLike": "a path as text or `pathlib.Path`, or a folder object that another verb returned.",
    "Names": "one name as text, or a list of names.",
    "Paths": "one `PathLike`, or a list of them.",
    "FieldNames": "text such as `id=key,text=question`, or a dictionary of texts.",
    "Progress": "an object with a method `task` that shows long work; `hb.SILENT` is one.",
}
"""Names in signatures that are not classes of Hoofbeat's own."""

RESULTS = {"AskResult": ask_records, "StudyCreation": new_study, "StudyOptions": new_study, "Plugin": registry}
"""Classes in signatures that have no public name, with the modules that have them."""


def reference() -> str:
    """The reference, as Markdown."""
    parts = [HEAD, "\n## Verbs\n"]
    parts += [part for name in VERBS for part in _function(name, getattr(hoofbeat, name))]
    parts += ["\n## Folders\n"]
    parts += [part for name in FOLDERS for part in _class(name, getattr(hoofbeat, name))]
    parts += ["\n## Records\n"]
    parts += [part for name in RECORDS for part in _record(name, getattr(hoofbeat, name))]
    parts += ["\n## Errors\n"]
    parts += [f"- `hb.{name}`: {_first(getattr(hoofbeat, name))}\n" for name in ERRORS]
    parts += ["\n## Other names\n"]
    parts += [part for name in FUNCTIONS for part in _function(name, getattr(hoofbeat, name))]
    parts += ["\n", *(f"- `hb.{name}`: {told}\n" for name, told in OTHERS.items())]
    parts += ["\n## Names in signatures\n\n", *(f"- `{name}`: {told}\n" for name, told in TYPES.items())]
    for name, module in RESULTS.items():
        kind = getattr(module, name)
        fields = ", ".join(f"`{each}`" for each in getattr(kind, "_fields", kind.__annotations__))
        parts.append(f"\n### `{name}`\n\n{inspect.getdoc(kind)}\n\nFields: {fields}.\n")
    return "".join(parts)


def _function(name: str, function: Callable[..., object]) -> Iterator[str]:
    yield f"\n### `hb.{name}`\n\n```python\n{_call(f'hb.{name}', function)}\n```\n\n{inspect.getdoc(function)}\n"


def _call(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    shown = [str(each) for each in signature.parameters.values()]
    star = next(
        (place for place, each in enumerate(signature.parameters.values()) if each.kind is each.KEYWORD_ONLY), None
    )
    if star is not None:
        shown.insert(star, "*")
    lines = "".join(f"    {re.sub(chr(39), '', each) if '=' not in each else _plain(each)},\n" for each in shown)
    returned = str(signature.return_annotation).strip("'")
    return f"{name}(\n{lines}) -> {returned}"


def _plain(parameter: str) -> str:
    """A parameter without the quotes that postponed annotations have; those of a default stay."""
    annotated, equals, default = parameter.partition(" = ")
    return annotated.replace("'", "") + equals + default


def _class(name: str, kind: type[object]) -> Iterator[str]:
    base = f" A kind of `{kind.__mro__[1].__name__}`." if kind.__mro__[1] is not object else ""
    yield f"\n### `hb.{name}`\n\n{inspect.getdoc(kind)}{base}\n\n"
    for member, value in vars(kind).items():
        if member.startswith("_"):
            continue
        bare = value.__func__ if isinstance(value, staticmethod | classmethod) else value
        if inspect.isfunction(bare):
            takes = [each for each in inspect.signature(bare).parameters if each not in ("self", "cls")]
            yield f"- `.{member}({', '.join(takes)})`: {_first(bare)}\n"
        elif inspect.getdoc(bare):
            yield f"- `.{member}`: {_first(bare)}\n"


def _record(name: str, kind: Any) -> Iterator[str]:
    fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(kind))
    yield f"\n### `hb.{name}`\n\n{inspect.getdoc(kind)}\n\nFields: {fields}.\n"


def _first(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def is_current() -> bool:
    """Whether the page is what would be written now."""
    return PAGE.is_file() and PAGE.read_text(encoding="utf-8") == reference()


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(not is_current())
    PAGE.write_text(reference(), encoding="utf-8")
