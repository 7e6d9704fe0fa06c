"""An audit's folder and its table: what goes in comes out, and nothing is read before it is asked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.pair_plan import Claim, PairVerdict, pair_frame, plan_pairs, same_answer_form
from hoofbeat.audit.pair_table import COLUMNS, PartWriter, TableEnums, each_question, read_comparisons
from hoofbeat.errors import InputError
from hoofbeat.prompts import load_pack
from hoofbeat.records import Comparison, Failure, Question
from hoofbeat.store import Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl
from tests.audit.comparison_rows import comparison_frame

PACK = load_pack("transplant")
KINDS = TableEnums.of(
    questions=["q1", "q2"],
    sources="abcdef",
    labels=[label.name for label in PACK.labels],
    levels=PACK.significance_levels,
    judges=["j"],
)
ROWS = [
    Comparison(question="q1", a="a", b="b", label="Absent", basis="absent"),
    Comparison(
        question="q1", a="a", b="c", label="Divergent", basis="judged", topic="time", significance="high", judge="j",
        reasoning="A waits.\n\"B\" does not.", calls=("k1", "k2"),
    ),
    Comparison(
        question="q1", a="b", b="c", basis="judged", judge="j",
        failure=Failure(kind="timeout", message="60 s", attempts=3),
    ),
    Comparison(question="q2", a="a", b="b", label="Consistent", basis="same"),
]  # fmt: skip


def written(folder: Path, rows: Sequence[Comparison], *, block: int = 3) -> Path:
    parts = PartWriter(folder / "parts")
    frame = comparison_frame(rows, KINDS)
    for start in range(0, frame.height, block):
        parts.add(frame.slice(start, block))
    parts.finish(folder / "table.parquet", KINDS)
    assert not (folder / "parts").exists()
    return folder / "table.parquet"


def an_audit(folder: Path, rows: Sequence[Comparison]) -> Audit:
    with create(folder) as draft:
        write_jsonl(draft.path / "questions.jsonl", [Question(id=name, text=f"{name}?") for name in ("q1", "q2")])
        write_jsonl(draft.path / "sources.jsonl", [AuditSource(id=name, title=name, facets={}) for name in "abc"])
        write_jsonl(draft.path / "answers.jsonl", [])
        written(draft.path, rows).rename(draft.path / "comparisons.parquet")
        draft.finish(Manifest(kind="audit", settings={"pack": "transplant@0011"}))
    return Audit(open_artefact(folder, "audit"))


def test_the_table_holds_the_records(tmp_path: Path) -> None:
    assert list(read_comparisons(written(tmp_path, ROWS), block=2)) == ROWS


def test_parts_make_the_same_bytes_however_they_are_cut(tmp_path: Path) -> None:
    found = set()
    for block in (1, 2, 4):
        (tmp_path / str(block)).mkdir()
        found.add(written(tmp_path / str(block), ROWS, block=block).read_bytes())
    assert len(found) == 1


def test_an_empty_table_has_its_columns(tmp_path: Path) -> None:
    path = written(tmp_path, [])
    assert not list(read_comparisons(path))
    assert not list(each_question(path))
    assert tuple(polars.read_parquet(path).columns) == COLUMNS


def test_a_table_that_is_none_is_said(tmp_path: Path) -> None:
    (tmp_path / "table.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match="can't read the table of pairs"):
        list(read_comparisons(tmp_path / "table.parquet"))


@pytest.mark.parametrize("block", [1, 2, 3, 100])
def test_questions_come_whole(tmp_path: Path, block: int) -> None:
    found = [(name, rows.height) for name, rows in each_question(written(tmp_path, ROWS), block=block)]
    assert found == [("q1", 3), ("q2", 1)]


def test_a_folder_opens(tmp_path: Path) -> None:
    audit = an_audit(tmp_path / "audit", ROWS)
    assert audit.comparisons == ROWS == list(audit.each_comparison())
    frame = audit.frame(["question", "label", "basis"]).collect()
    assert frame["question"].cast(str).to_list() == ["q1", "q1", "q1", "q2"]
    assert frame["label"].cast(str).to_list() == ["Absent", "Divergent", None, "Consistent"]
    assert audit.frame().collect_schema().names() == list(COLUMNS)
    assert (audit.mode, audit.pack.name, audit.order_probes) == ("full", "transplant", [])


# Pairs as arrays


@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(["silent", "failed", "Wait.", "wait", "Go!", "Ask."]), max_size=6))
def test_pairs_as_arrays_are_the_pairs_one_by_one(said: list[str]) -> None:
    failure = Failure(kind="timeout", message="60 s", attempts=2)
    claims = [
        Claim(name, text, absent=text == "silent", failure=failure if text == "failed" else None)
        for name, text in zip("abcdef", said, strict=False)
    ]
    plan = plan_pairs(Question(id="q1", text="?"), claims)
    verdicts = [PairVerdict(label="Divergent", reasoning=f"{a}{b}", calls=(f"{a}{b}",)) for a, b in plan.asked]
    frame = pair_frame(plan, verdicts, PACK, KINDS, "j")
    seen: set[frozenset[str]] = set()
    expected: list[tuple[str, str, str | None, str | None, str | None]] = []
    for one, two in combinations(claims, 2):
        texts = frozenset((same_answer_form(one.text), same_answer_form(two.text)))
        if one.absent or two.absent:
            row: tuple[str | None, ...] = ("Absent", "absent", None)
        elif one.failure or two.failure:
            row = (None, None, "timeout")
        elif len(texts) == 1:
            row = ("Consistent", "same", None)
        else:
            row = ("Divergent", "shared" if texts in seen else "judged", None)
            seen.add(texts)
        expected.append((one.source, two.source, *row))  # type: ignore[arg-type]
    found = frame.select(polars.col("a", "b", "label", "basis", "failure").cast(str)).rows()
    assert found == expected
    assert len(plan.asked) == len(seen)
    assert frame.filter(polars.col("basis") == "judged").height == len(seen)
