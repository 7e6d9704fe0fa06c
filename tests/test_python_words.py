"""Messages in Python name arguments, where the command names options."""

from __future__ import annotations

from pathlib import Path

import pytest

import hoofbeat as hb
from hoofbeat.python_words import python_words
from tests.cli.support import invented_benchmark


def verb(
    corpus: str, *, lines: str = "", by: str = "", limit: int = 0, conditions: str = "", queries: str = ""
) -> None:
    """A verb with arguments like those of the Python face."""


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("name it: --corpus", "name it: `corpus`"),
        ("use --by equivalence", "use `by='equivalence'`"),
        ("give --limit 1 or more", "give `limit=1` or more"),
        ("ask with --query TEXT, or name a benchmark", "ask with `queries=TEXT`, or name a benchmark"),
        ("choose others with --condition: a, b", "choose others with `conditions`: a, b"),
        ("give one --with, without braces", "give one `lines`, without braces"),
        ("leave --limit out, or give more", "leave `limit` out, or give more"),
        ("--corpus and --by go together", "`corpus` and `by` go together"),
        ("load a file that defines it with --plugin", "load a file that defines it with `hb.load_plugin`"),
        ("judge it first: hoofbeat judge FOLDER --by x", "judge it first: hoofbeat judge FOLDER --by x"),
        (
            "test it: hoofbeat audit trial --judge http://127.0.0.1:1/v1#m --by x. Or leave --by out",
            "test it: hoofbeat audit trial --judge http://127.0.0.1:1/v1#m --by x. Or leave `by` out",
        ),
        ("add --unknown to it", "add --unknown to it"),
        ("choose another folder with -o", "choose another folder with `output`"),
        ("build it: hoofbeat build teaching x -o y", "build it: hoofbeat build teaching x -o y"),
        ("Run the same command again", "Run the same call again"),
        ("--trust-changed uses it", "`HOOFBEAT_TRUST_CHANGED=1` uses it"),
    ],
)
def test_options_are_arguments(told: str, expected: str) -> None:
    assert python_words(told, verb) == expected


def test_an_error_of_a_verb_names_its_arguments(tmp_path: Path) -> None:
    bench = invented_benchmark(tmp_path / "bench", 2)
    with pytest.raises(hb.HoofbeatError) as raised:
        hb.retrieve(bench, "bm25", tmp_path / "out", queries="jaundice", progress=hb.SILENT)
    assert "`queries`" in str(raised.value)
    assert "--" not in str(raised.value)
    with pytest.raises(hb.HoofbeatError, match="`exam`"):
        hb.create_study(bench, database=str(tmp_path / "review.db"), form="leak", minutes=5)
