"""What a report says of silences and of differences that may be misses."""

from __future__ import annotations

from hoofbeat.audit.findings.relations import FIVE_RELATIONS
from hoofbeat.audit.silence import silence_steps
from hoofbeat.audit.source_citations import is_grounded
from hoofbeat.audit.source_names import SourceName
from hoofbeat.records import Answer, Passage, TraceStep
from hoofbeat.reports.model import PairView, SideView
from hoofbeat.reports.sections.audits.audit_facts import miss_notes, side_view
from hoofbeat.reports.viewers import block_nodes, markup
from hoofbeat.retrieval.hero.hero_evidence import RERANKING_OFF

SHOWN = (Passage(id="d#1", document="d", heading="Bathing", text="Showers are fine. No bath for four weeks."),)
NAME = SourceName(id="d", short="Alder", institution="Alder", title="Handbook", date="")
ROUTE = (TraceStep(stage="hero", what="route: retrieved"),)


def _answer(*steps: TraceStep, absent: bool = False) -> Answer:
    return Answer(
        question="q",
        model="m",
        condition="source",
        source="d",
        text="No bath.",
        absent=absent,
        evidence=SHOWN,
        citations=("Bathing",),
        trace=(*ROUTE, *steps),
    )


def test_a_silent_side_shows_its_proof() -> None:
    view = side_view(_answer(*silence_steps("May I bath?", SHOWN, ROUTE, "Keep dry."), absent=True), NAME)
    assert "What was searched: the source was searched by hero; the model saw 1 passage" in view.text
    assert "rejected: Keep dry." in view.text
    (near,) = view.others
    assert near.source.startswith("nearest, score 1.00 of 1 · Bathing")
    assert "No bath for four weeks." in near.text


def test_a_side_that_was_searched_shows_every_layer_and_which_is_off() -> None:
    steps = [
        TraceStep(stage="hero", what=what, text=text)
        for what, text in (
            ("searched", "May I bath?"), ("document model", "5 sections, 6 children"), ("reranking", RERANKING_OFF),
        )
    ]  # fmt: skip
    view = side_view(_answer(*steps), NAME)
    assert [step.what for step in view.trace][-2:] == ["hero: document model", "hero: reranking"]
    block = PairView(a=view, b=SideView(name="Brook", text="A bath is fine."), label="Divergent", tone=3)
    page = "".join(map(markup, block_nodes(block)))
    assert "How the passages were found, without reranking (4 steps)" in page
    assert side_view(_answer(), NAME).trace == ()


def test_a_difference_may_be_a_miss_where_only_parts_were_read() -> None:
    parts, whole = side_view(_answer(), NAME), SideView(name="Brook", text="A bath is fine.")
    (told,) = miss_notes("Divergent", FIVE_RELATIONS, (parts, whole))
    assert told == f"only parts of {NAME.full} were searched and read, so the rest may say otherwise"
    assert miss_notes("Consistent", FIVE_RELATIONS, (parts, whole)) == []
    assert miss_notes("Divergent", FIVE_RELATIONS, (whole, whole)) == []


def test_a_grounded_answer_quotes_what_was_shown_and_no_check_objects() -> None:
    quoted = TraceStep(stage="citations", what="quoted", text="No bath for four weeks.", found=("d#1",))
    assert is_grounded(_answer(quoted))
    assert not is_grounded(_answer())
    assert not is_grounded(_answer(quoted, TraceStep(stage="citations", what="statement differs")))
    assert not is_grounded(_answer(quoted, absent=True))
