"""Names that search can find: a public class has one definition, modules are named by nouns, folders stay readable."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

import hoofbeat

ROOT = Path(hoofbeat.__file__).parent
MODULES = sorted(path for path in ROOT.rglob("*.py"))
MAX_MODULES = 25

PARTICIPLES = frozenset(
    re.findall(
        r"\w+",
        """
        acting agreeing aging answered answering applied applying asked asking assigned assigning changed changing
        checked checking cited citing collected collecting compared comparing corrected deciding describing
        diagnosing differing encrypting explained explaining exported exporting finding folded folding found given
        giving grading grouped grouping highlighting illustrating imported importing inverting joined joining judged
        kept labelled labelling leaking listed listing loading made making marked measuring meeting met naming
        opened opening packing parted placed placing planted posted prepared preparing publishing querying quoting
        ranked ranking reading redacting refused refusing reported reranking reviewing revised revising running said
        sampling scored scoring searched searching selected selecting serving shared shortening showing shown
        sitting stopped taken teaching told trying validating voting waiting wanted wording writing written
        """,
    )
)
"""Words that say something was or is done, not what a module holds."""


def package(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def test_a_public_class_has_one_definition() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(package(path))
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_modules_are_not_named_by_participles() -> None:
    packages = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named = [package(path) for path in MODULES if path.stem in PARTICIPLES and path.stem not in packages]
    assert named == []


def test_folders_have_few_modules() -> None:
    counts = Counter(str(path.parent.relative_to(ROOT)) for path in MODULES if path.stem != "__init__")
    del counts["cli"]  # one file per verb: the command finds them by name
    full = {folder: count for folder, count in counts.items() if count > MAX_MODULES}
    assert full == {}, "too many modules: put those that belong together into a folder"
