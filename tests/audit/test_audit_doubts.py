"""When an audit must not be read as agreement: the reasons, and that every first line gives them."""

from __future__ import annotations

import io
from pathlib import Path

import docx

from hoofbeat.audit import Audit, AuditSource
from hoofbeat.audit.audit_doubts import audit_doubts, doubt_words
from hoofbeat.records import Answer, Comparison, Question, TraceStep
from hoofbeat.reports.model import SynthesisView
from hoofbeat.reports.office.word_document import to_docx
from hoofbeat.reports.report_build import assemble
from hoofbeat.reports.text_formats import to_markdown
from tests.reports.audits import write_audit

TINY = "embedded:smollm2-135m@b179c9523d0e;ctx=4096"
GOOD = {"answer": "openai:large", "judge": "openai:other"}
CITED = {"answers": 20, "citing": 20, "quoted": 20, "statement differs": 1}


def test_a_sound_audit_has_no_doubts() -> None:
    assert audit_doubts(GOOD, CITED, judged=25, pairs=36, questions=6) == ()
    assert doubt_words(()) == ""


def test_answers_of_a_file_were_never_checked_and_give_no_doubt() -> None:
    assert audit_doubts(GOOD, {"answers": 20, "citing": 0}, judged=25, pairs=36, questions=6) == ()


def test_each_reason_is_given() -> None:
    (small,) = audit_doubts({"answer": "openai:large", "judge: a": TINY}, CITED, judged=25, pairs=36, questions=6)
    assert small.startswith("the model that compared the answers has 135 million parameters")
    loose = {"answers": 3, "citing": 3, "quote not found": 3}
    assert audit_doubts(GOOD, loose, judged=25, pairs=36, questions=6) == (
        "none of the 3 answers quotes words that were found in its source",
    )
    # two quotes of the same answer do not make up for an answer without one
    several = {"answers": 4, "citing": 4, "quoted": 6, "quote not found": 3}
    assert "only 1 of 4" in audit_doubts(GOOD, several, judged=25, pairs=36, questions=6)[0]
    assert audit_doubts(GOOD, CITED, judged=1, pairs=6, questions=2) == (
        "only 1 of 6 pairs of answers could be compared",
    )
    assert "only 4 of 60" in audit_doubts(GOOD, CITED, judged=4, pairs=60, questions=10)[0]


def _audit(path: Path, models: dict[str, str], step: str) -> Audit:
    """Two invented guidelines that say the same to three questions."""
    questions = [Question(id=f"q{number}", text=f"Question {number}?") for number in range(3)]
    sources = [AuditSource(id=name, title=f"{name} (invented)", facets={}) for name in ("elm", "oak")]
    answers = [
        Answer(
            question=question.id, model="m", condition="source", source=source.id, text="Rest.", absent=False,
            citations=("Rest",), trace=(TraceStep(stage="citations", what=step, text="Rest."),),
        )
        for question in questions
        for source in sources
    ]  # fmt: skip
    pairs = [Comparison(question=each.id, a="elm", b="oak", label="Consistent", basis="same") for each in questions]
    return Audit(write_audit(path, questions, sources, answers, pairs, models=models))


def test_a_committee_is_not_told_that_nothing_has_to_be_decided_if_the_audit_cannot_tell(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "a", {"answer": TINY, "judge": TINY}, "quote not found")
    report = assemble([audit.artefact], title="")
    ((_, page),) = report.summaries
    assert page.asked[0].startswith("The institutions and their documents are invented")
    assert page.warning.startswith("This audit can't say how far the sources agree, because the model that answered")
    assert "none of the 6 answers quotes words" in page.warning
    assert not any("Nothing has to be decided" in each for each in page.todo)
    assert report.leads[0].text == page.warning
    (table,) = [block for block in report.opening if isinstance(block, SynthesisView)]
    assert {row.verdict for row in table.rows} == {"Answers are alike but not grounded"}
    said = [each for row in table.rows for _, statements in row.cells for each in statements]
    assert {(each.sign, each.tag) for each in said} == {("!", "NOT GROUNDED")}
    assert to_markdown(report).index("This audit can't say") < to_markdown(report).index("Who says what")
    words = [each.text for each in docx.Document(io.BytesIO(to_docx(report))).paragraphs]
    assert words.index(page.warning) < 6


def test_nothing_has_to_be_decided_where_grounded_answers_agree(tmp_path: Path) -> None:
    audit = _audit(tmp_path / "a", {"answer": "openai:large", "judge": "openai:other"}, "quoted")
    ((_, page),) = assemble([audit.artefact], title="").summaries
    assert page.warning == ""
    assert page.todo[0].startswith("Nothing has to be decided")
