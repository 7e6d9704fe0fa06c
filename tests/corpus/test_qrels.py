"""Judgments in TREC's, BEIR's and R2MED's layout, read and written in one place."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.corpus.qrels import QrelsLayout, read_qrels, write_qrels
from hoofbeat.errors import InputError, UsageError

GRADES = {"q1": {"d1": 2, "d2": 0}, "-q2": {"=d1": -1, "é": 1}}


@pytest.mark.parametrize("layout", get_args(QrelsLayout))
def test_judgments_read_back(tmp_path: Path, layout: QrelsLayout) -> None:
    path = tmp_path / "qrels"
    assert write_qrels(path, GRADES, layout) == 4
    assert read_qrels(path) == GRADES
    first = path.read_bytes()
    write_qrels(path, read_qrels(path), layout)
    assert path.read_bytes() == first


@given(
    st.dictionaries(
        st.from_regex(r"'{0,2}[=+@\-\w.]{1,6}", fullmatch=True),
        st.dictionaries(
            st.from_regex(r"'{0,2}[=+@\-\w.]{1,6}", fullmatch=True), st.integers(-9, 9), min_size=1, max_size=4
        ),
        max_size=4,
    )
)
def test_any_names_read_back_in_every_layout(
    tmp_path_factory: pytest.TempPathFactory, grades: dict[str, dict[str, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-qrels"
    for layout in get_args(QrelsLayout):
        write_qrels(path, grades, layout)
        assert read_qrels(path) == grades


@pytest.mark.parametrize(
    "text",
    [
        "q1 0 d1 2\nq1 0 d2 0\n",
        "\ufeffq1\t0\td1\t2\r\n\r\nq1  Q0\td2   0",
        "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n",
        "query-id\tcorpus-id\tscore\r\n\r\nq1\td1\t2.0\r\n  \r\nq1\td2\t0",
        "score\tnote\tcorpus-id\tquery-id\n2\tx\td1\tq1\n0\t\td2\tq1\n",
        '{"q_id": "q1", "p_id": "d1", "score": 2}\r\n\n{"q_id": "q1", "p_id": "d2", "score": 0.0, "by": "x"}',
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_the_layout_is_seen_from_the_first_line(tmp_path: Path, text: str, zipped: bool) -> None:
    path = tmp_path / ("qrels.gz" if zipped else "qrels")
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert read_qrels(path) == {"q1": {"d1": 2, "d2": 0}}


@pytest.mark.parametrize("content", [b"", b"\n \r\n"])
def test_no_judgments(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "qrels").write_bytes(content)
    assert read_qrels(tmp_path / "qrels") == {}


def test_numbers_as_names(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text('{"q_id": 7, "p_id": 8, "score": "1"}\n')
    assert read_qrels(tmp_path / "qrels") == {"7": {"8": 1}}


def test_the_highest_of_several_grades_counts(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 d 3\nq 0 d 1\nr 0 d -2\nr 0 d -1\n")
    assert read_qrels(tmp_path / "qrels") == {"q": {"d": 3}, "r": {"d": -1}}


def test_documents_by_the_names_of_a_corpus(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("q 0 a/b:c.txt 1\n")
    assert read_qrels(tmp_path / "qrels", corpus_ids=True) == {"q": {"a_b_c.txt": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("query-id\tcorpus-id\tscore\nq\td\thigh\n", "line 2.*'high' is not a whole number"),
        ("query-id\tcorpus-id\tscore\nq\td\t1\n\nq\td\n", "line 4.*2 cells"),
        ("query-id\tcorpus-id\tscore\n\td\t1\n", "line 2 names no question"),
        ("query\tdoc\tscore\nq\td\t1\n", "line 1.*3 columns"),
        ("q 0 d 1\nq 0 d\n", "line 2.*3 columns"),
        ("q 0 d 0.5\n", "line 1.*whole number"),
        ("q 0 d nan\n", "line 1.*whole number"),
        ("q 0 d 1e9\n", "line 1.*usual range"),
        (f"q 0 d {'9' * 9000}\n", "line 1.*usual range"),
        ('{"q_id": "q", "p_id": "d"}\n', "line 1.*score"),
        ('{"q_id": null, "p_id": "d", "score": 1}\n', "line 1.*q_id"),
        ('{"q_id": "q", "p_id": "d", "score": 1}\n{broken\n', "line 2"),
        ("[" * 100_000, "line 1"),
        ('{"q_id":' + "[" * 100_000, "line 1"),
        ("q 0 d\x00 1\n", "NUL"),
    ],
)
def test_damaged_lines_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "qrels"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        read_qrels(path)
    assert caught.value.where == str(path)
    assert caught.value.fix


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_qrels(tmp_path / "qrels")
    with pytest.raises(InputError, match="no such file"):
        read_qrels(tmp_path)


@pytest.mark.parametrize("name", ["two words", "", "tab\tbed", " lead"])
def test_names_that_blanks_would_tear(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="can't hold"):
        write_qrels(tmp_path / "qrels", {name: {"d": 1}}, "trec")
    assert not (tmp_path / "qrels").exists()


def test_unknown_layouts(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no layout 'csv'"):
        write_qrels(tmp_path / "qrels", GRADES, "csv")  # type: ignore[arg-type]
