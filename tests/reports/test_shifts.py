"""Two audits of the same questions in one report."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hoofbeat.audit import Audit
from hoofbeat.records import Question
from hoofbeat.reports.model import Notice, tables_in
from hoofbeat.reports.report_build import assemble
from hoofbeat.reports.sections.audits import shift_chapters
from hoofbeat.reports.sections.audits.audit_change_blocks import change_in_words
from hoofbeat.reports.tables import Table
from hoofbeat.store import InputRef, create, open_artefact
from hoofbeat.store.tables import write_jsonl
from tests.audit.findings.support import prevalence_intensity
from tests.cli.audit_folders import invented_pairs
from tests.reports import examples


def tables(*paths: Path) -> dict[str, Table]:
    report = assemble([open_artefact(path) for path in paths], title="x")
    return {table.name: table for table in tables_in(report.blocks)}


def test_two_audits_are_split_into_prevalence_and_intensity(tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    examples.audit(before, noise=0.0, failing=0.0)
    examples.audit(after, noise=0.6, failing=0.05)
    found = tables(before, after)
    rows = {row[0]: row for row in found["audit-2-shift-rates"].rows}
    split = prevalence_intensity(Audit.open(before).comparisons, Audit.open(after).comparisons)
    assert rows["intensity"][1:3] == (split.intensity.before, split.intensity.after)
    assert rows["prevalence"][1:3] == (split.prevalence.before, split.prevalence.after)
    change, coverage = rows["pct_any_div"][3], rows["by coverage"][3]
    assert isinstance(change, tuple)
    assert isinstance(coverage, tuple)
    assert coverage[0] == pytest.approx(float(change[0] or 0) - (split.prevalence.change or 0))
    value, low, high = (float(each or 0) for each in coverage)
    assert low <= value <= high
    moved = found["audit-2-shift-labels"]
    assert moved.n == len(Audit.open(after).comparisons)
    assert sum(int(str(cell)) for row in moved.rows for cell in row[1:]) == moved.n
    groups = next(table for name, table in found.items() if name.startswith("audit-2-shift-by-"))
    assert sum(int(str(row[1])) for row in groups.rows) >= split.questions


def changed(path: Path, target: Path, questions: list[Question] | None = None, **fields: object) -> Path:
    """A copy of an audit with other questions or other fields in its manifest."""
    audit = open_artefact(path)
    with create(target) as draft:
        for name in audit.manifest.files:
            (draft.path / name).write_bytes((audit.path / name).read_bytes())
        if questions is not None:
            write_jsonl(draft.path / "questions.jsonl", questions)
        draft.finish(msgspec.structs.replace(audit.manifest, files={}, **fields))
    return target


def test_what_else_differs_is_said_before_the_figures(tmp_path: Path) -> None:
    before = tmp_path / "before"
    examples.audit(before)
    old = open_artefact(before).manifest
    inputs = [InputRef(name="books", sha256=sign * 64, kind="corpus") for sign in "ab"]
    first = changed(before, tmp_path / "first", inputs=inputs[:1])
    models = {**old.models, "judge": "another-judge"}
    second = changed(before, tmp_path / "second", inputs=inputs[1:], models=models)
    told = notices(first, second)
    assert len(told) == 2
    assert "then another-judge): this may have changed labels." in told[0]
    assert told[1].startswith("The texts of the sources are not the same in both")
    assert notices(before, changed(before, tmp_path / "same")) == []


def test_other_questions_under_the_same_names_are_not_set_against_each_other(tmp_path: Path) -> None:
    before = tmp_path / "before"
    examples.audit(before)
    (first, *rest) = Audit.open(before).questions
    reworded = [msgspec.structs.replace(first, text="Something else?"), *rest]
    after = changed(before, tmp_path / "after", reworded)
    (told,) = notices(before, after)
    assert f"the same id for different questions ({first.id})" in told
    assert not [name for name in tables(before, after) if "shift" in name]


def notices(*paths: Path) -> list[str]:
    """What is said beside the figures of the chapter on two audits."""
    (part,) = shift_chapters([(f"audit-{number}", open_artefact(path)) for number, path in enumerate(paths, start=1)])
    return [block.text for block in part.blocks if isinstance(block, Notice)]


def test_the_first_screen_of_two_audits_says_what_changed_and_names_each(tmp_path: Path) -> None:
    before, after, other = (tmp_path / name for name in ("old", "new", "other"))
    examples.audit(before, noise=0.0, failing=0.0)
    examples.audit(after, noise=0.6, failing=0.0)
    report = assemble([open_artefact(before), open_artefact(after)], title="x")
    split = prevalence_intensity(Audit.open(before).comparisons, Audit.open(after).comparisons)
    shown = {card.label: card for card in report.cards}
    assert len(shown) == len(report.cards) == 5
    intensity = shown["Pairs that disagree, of those judged in both (intensity)"]
    assert intensity.value == f"{split.intensity.before:.1%} → {split.intensity.after:.1%}"
    points = f"{100 * (split.intensity.change or 0):+.1f} points (95% interval ".replace("-", "\N{MINUS SIGN}")
    assert intensity.detail.startswith(f"From old to new: {points}")
    assert [lead.text.partition(":")[0] for lead in report.leads] == ["old", "old", "new", "new", "From old to new"]
    questions = [msgspec.structs.replace(each, text=f"{each.text} Really?") for each in Audit.open(before).questions]
    changed(before, other, questions)
    apart = assemble([open_artefact(before), open_artefact(other)], title="x").cards
    assert [card.label.partition(":")[0] for card in apart] == ["old"] * 3 + ["other"] * 3
    three = assemble([open_artefact(path) for path in (before, after, changed(before, tmp_path / "newest"))], title="x")
    assert len({card.label for card in three.cards}) == len(three.cards) == 8


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("c" * 6, "d" * 6, "disagree clearly more often: +100.0 points"),
        ("d" * 6, "c" * 6, "disagree clearly less often: \N{MINUS SIGN}100.0 points"),
        ("c-----", "cddddd", "show no clear change: 0.0 points"),
        ("-" * 6, "d" * 6, "No pair was judged in both audits"),
    ],
)
def test_the_change_in_words(before: str, after: str, said: str) -> None:
    asked = [f"q{number}" for number in range(5)]
    first, second = (invented_pairs(dict.fromkeys(asked, marks), "abcd") for marks in (before, after))
    assert said in change_in_words(prevalence_intensity(first, second))


def test_one_audit_has_nothing_to_be_set_against(tmp_path: Path) -> None:
    examples.audit(tmp_path / "only")
    assert not [name for name in tables(tmp_path / "only") if "shift" in name]
