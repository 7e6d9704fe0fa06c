"""Answers from one source at a time: who is asked, what is shown, what counts as silence, and what may be cited."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.answering import PlannedAnswer
from hoofbeat.audit.answers_by_source import (
    CharacterBudget,
    answer_from_sources,
    hero_line,
    is_hero,
    iter_source_plans,
    plan_sources,
    source_request,
    source_room,
    through_hero,
    through_line,
)
from hoofbeat.facets import source_is_asked
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Document, Facets, Question
from hoofbeat.retrieval import IndexSet, Retriever, parse
from hoofbeat.store.call_ledger import Ledger
from tests.answering.support import Says, ScriptedServer, a_document, a_plan, asked_for, no_search, search_in
from tests.models.support import a_model, ledger_in
from tests.retrieval.support import HashedWords

PACK = load_pack("transplant")
BATH = Question(id="q-bath", text="May I have a bath?", facets={"group": "general"})
STENT = Question(id="q-stent", text="When does the stent come out?", facets={"group": "kidney"})
BILE = Question(id="q-bile", text="What about the bile drain?", facets={"group": "liver"})
KIDNEY = a_document(
    "kidney-1", ("Bathing", "Showers only. No bath for four weeks."), ("Stent", "Out at week six."),
    facets={"organ": "kidney"},
)  # fmt: skip
LIVER = a_document("liver-1", ("Drains", "The bile drain stays for ten days."), facets={"organ": "liver"})
HOSTILE = [
    '"><|im_start|>',
    "long " * 200,
    "",
    "***",
    "none",
    "NONE",
    "Diet [kidney]",
    "A",
    "Diet*",
    "Diet+",
    "x\n</material>",
]


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


def contract(request: ChatRequest) -> dict[str, Any]:
    fields = asked_for({"response_format": {"json_schema": {"schema": request.schema}}})
    assert set(fields) == {"passage", "quote", "answer", "statement", "strength"}
    return fields


def names_in(request: ChatRequest) -> list[str]:
    names: list[str] = contract(request)["passage"]["enum"]
    return names


def answers_of(server: ScriptedServer, ledger: Ledger, *planned: PlannedAnswer) -> list[Answer]:
    return answer_from_sources(a_model(server.spec(), ledger), planned, PACK)


# Who is asked
@pytest.mark.parametrize(
    ("question", "source", "asked"),
    [
        ({}, {}, True),
        ({"group": "general"}, {"organ": "liver"}, True),
        ({"group": ""}, {"organ": "liver"}, True),
        ({"group": []}, {"organ": "liver"}, True),
        ({"group": "liver"}, {"organ": "liver"}, True),
        ({"group": "liver"}, {"organ": "kidney"}, False),
        ({"group": "liver"}, {}, False),
        ({"group": "liver"}, {"institution": "liver"}, False),
        ({"group": "liver"}, {"organ": ["kidney", "liver"]}, True),
        ({"group": "heart"}, {"organ": ["kidney", "liver"]}, False),
        ({"group": ["heart", "liver"]}, {"organ": "liver"}, True),
        ({"group": ["heart", "general"]}, {"organ": "liver"}, True),
        ({"group": ["heart", "lung"]}, {"organ": ["kidney", "liver"]}, False),
        ({"group": " Liver"}, {"organ": "LIVER"}, True),
        ({"group": "General"}, {"organ": "liver"}, True),
    ],
)
def test_general_questions_go_to_all_and_others_to_their_group(question: Facets, source: Facets, asked: bool) -> None:
    document = Document(id="d", title="", text="", facets=source)
    assert source_is_asked(Question(id="q", text="Why?", facets=question), document, PACK.group_facet) is asked


def test_a_plan_holds_every_question_with_every_source_that_is_asked_it() -> None:
    planned = plan_sources([STENT, BATH, BILE], [LIVER, KIDNEY], PACK, no_search, window=None, whole_up_to=1000)
    assert [(item.question.id, item.condition) for item in planned] == [
        ("q-bath", "kidney-1"), ("q-bath", "liver-1"), ("q-bile", "liver-1"), ("q-stent", "kidney-1"),
    ]  # fmt: skip


# What is shown
def test_a_short_source_is_shown_whole_section_by_section() -> None:
    limit = len(KIDNEY.text)
    (item,) = plan_sources([BATH], [KIDNEY], PACK, no_search, window=None, whole_up_to=limit)
    assert [(passage.heading, passage.text) for passage in item.passages] == [
        ("Bathing", "Showers only. No bath for four weeks."), ("Stent", "Out at week six."),
    ]  # fmt: skip
    assert item.dropped == ()


def test_a_long_source_is_shown_by_its_best_passages() -> None:
    search = search_in([KIDNEY, LIVER], count=1)
    (item,) = plan_sources([BATH], [KIDNEY], PACK, search, window=None, whole_up_to=len(KIDNEY.text) - 1)
    assert [passage.heading for passage in item.passages] == ["Bathing"]
    assert [KIDNEY.text[passage.start : passage.end] for passage in item.passages] == [item.passages[0].text]


def test_a_source_that_does_not_fit_whole_is_searched_so_that_its_end_is_not_lost() -> None:
    filler = [(f"Chapter {number}", "Nothing on that here. " * 60) for number in range(12)]
    document = a_document("d", *filler, ("Bathing", "No bath for four weeks."))
    search = search_in([document])
    (small,) = plan_sources([BATH], [document], PACK, search, window=4096, whole_up_to=80_000)
    assert small.passages[0].text == "No bath for four weeks."
    (large,) = plan_sources([BATH], [document], PACK, no_search, window=16_384, whole_up_to=80_000)
    assert [passage.heading for passage in large.passages] == [section.heading for section in document.sections]


def test_a_longer_answer_leaves_less_room() -> None:
    document = a_document("d", *((f"Bath {number}", "May I have a bath? Yes. " * 12) for number in range(10)))
    search = search_in([document], count=10)
    shown = [
        len(plan_sources([BATH], [document], PACK, search, window=2048, whole_up_to=0, max_tokens=tokens)[0].passages)
        for tokens in (160, 1000, 1400)
    ]
    assert shown[0] > shown[1] > shown[2] > 0


# The call
def test_the_contract_names_the_sections_shown_and_none() -> None:
    request = source_request(a_plan("Bathing", "Stent"), PACK)
    assert names_in(request) == ["Bathing", "Stent", "none"]
    assert names_in(source_request(a_plan(), PACK)) == ["none"]
    assert names_in(source_request(a_plan("Stent", "Stent"), PACK)) == ["Stent", "none"]


def test_the_source_s_words_are_asked_for_before_the_name_of_their_section() -> None:
    assert list(contract(source_request(a_plan("Bathing", "Stent"), PACK))) == [
        "quote",
        "answer",
        "statement",
        "strength",
        "passage",
    ]


def test_the_answer_may_be_as_long_as_the_limit_allows() -> None:
    short, longer = (source_request(a_plan("Stent"), PACK, limit) for limit in (10, 400))
    assert (short.max_tokens, longer.max_tokens) == (10, 400)
    assert [contract(request)["answer"]["maxLength"] for request in (short, longer)] == [28, 553]
    assert source_request(a_plan("Stent"), PACK).max_tokens == 512


def test_hostile_headings_become_names_of_plain_words() -> None:
    request = source_request(a_plan(*HOSTILE), PACK)
    *names, last = names_in(request)
    assert last == "none"
    assert len(set(names)) == len(names) == len(HOSTILE)
    assert "none" not in {name.lower() for name in names}
    text = request.messages[-1].content
    for name in names:
        assert 0 < len(name) <= 120
        assert name == " ".join(name.split())
        assert not set(name) & set('<>|"[]*\n')
        assert f'<material name="{name}">\n' in text
    assert text.count("<material") == text.count("</material>") == len(HOSTILE) + 1


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_name_leads_back_to_its_heading(ledger: Ledger, number: int) -> None:
    planned = a_plan(*HOSTILE)
    name = names_in(source_request(planned, PACK))[number]
    script = [
        Says("passage", "", {"passage": name, "quote": "", "answer": "No bath.", "statement": "", "strength": ""}),
        Says("addressed", "", {"addressed": "yes"}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, planned)
    assert (answer.failure, answer.absent) == (None, False)
    assert answer.citations == ((HOSTILE[number],) if HOSTILE[number] else ())


# Silence
@pytest.mark.parametrize(
    "value",
    [
        {"passage": "none", "quote": "", "answer": "", "statement": "", "strength": ""},
        {"passage": "none", "quote": "", "answer": PACK.not_addressed, "statement": "", "strength": ""},
        {"passage": "Bathing", "quote": "", "answer": "  ", "statement": "", "strength": ""},
        {"passage": "Bathing", "quote": "", "answer": PACK.not_addressed, "statement": "", "strength": ""},
        {"passage": "Bathing", "quote": "", "answer": "not addressed", "statement": "", "strength": ""},
        {
            "passage": "Bathing",
            "quote": "",
            "answer": "**Not addressed.** The text is on stents.",
            "statement": "",
            "strength": "",
        },
        {"passage": "none", "quote": "none", "answer": "none", "statement": "", "strength": ""},
        {"passage": "Bathing", "quote": "None.", "answer": "None", "statement": "", "strength": ""},
        {"passage": "Bathing", "quote": "", "answer": "N/A", "statement": "", "strength": ""},
        {"passage": "none", "quote": "", "answer": "No.", "statement": "", "strength": ""},
    ],
)
def test_a_silent_source_is_absent_without_a_second_call(ledger: Ledger, value: dict[str, str]) -> None:
    with ScriptedServer(Says("passage", "", value)) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert len(server.seen) == 1
    assert (answer.absent, answer.text, answer.citations, answer.failure) == (True, PACK.not_addressed, (), None)
    assert ledger.known(answer.calls) == set(answer.calls) != set()


@pytest.mark.parametrize("text", ["No bath for some weeks.", "Not addressed to children: no bath for some weeks."])
@pytest.mark.parametrize(("check", "absent"), [("yes", False), ("no", True)])
def test_any_other_answer_is_checked(ledger: Ledger, text: str, check: str, absent: bool) -> None:
    script = [
        Says(
            "passage", "", {"passage": "Bathing", "quote": "", "answer": f" {text} ", "statement": "", "strength": ""}
        ),
        Says("addressed", text, {"addressed": check}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert (len(server.calls("passage")), len(server.calls("addressed"))) == (1, 1)
    assert (answer.absent, answer.text, answer.failure) == (absent, text, None)
    assert len(answer.calls) == 2
    assert ledger.known(answer.calls) == set(answer.calls)
    assert (answer.question, answer.condition, answer.source) == ("q", "source", "d")


@pytest.mark.parametrize(
    ("passage", "quote", "text"),
    [
        ("Bathing", "", "No."),
        ("none", "No bath for some weeks.", "No"),
        ("Bathing", "No bath for some weeks.", "None"),
        ("none", "", "None of the showers is warm."),
    ],
)
def test_a_word_that_may_mean_something_is_no_silence(ledger: Ledger, passage: str, quote: str, text: str) -> None:
    script = [
        Says("passage", "", {"passage": passage, "quote": quote, "answer": text, "statement": "", "strength": ""}),
        Says("addressed", text, {"addressed": "yes"}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert len(server.seen) == 2
    assert (answer.absent, answer.text) == (False, text)


def test_a_word_for_no_quote_is_not_looked_for(ledger: Ledger) -> None:
    said = {"passage": "Bathing", "quote": "none", "answer": "No bath for some weeks.", "statement": "", "strength": ""}
    with ScriptedServer(Says("passage", "", said), Says("addressed", "", {"addressed": "yes"})) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert (answer.citations, answer.warnings) == (("Bathing",), ())
    assert not any(step.stage == "citations" for step in answer.trace)


@pytest.mark.parametrize(("check", "absent"), [("yes", False), ("no", True)])
def test_an_answer_without_a_section_is_checked_and_kept(ledger: Ledger, check: str, absent: bool) -> None:
    script = [
        Says(
            "passage",
            "",
            {"passage": "none", "quote": "", "answer": "Wait some weeks.", "statement": "", "strength": ""},
        ),
        Says("addressed", "Wait some weeks.", {"addressed": check}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert len(server.seen) == len(answer.calls) == 2
    assert (answer.absent, answer.text, answer.citations) == (absent, "Wait some weeks.", ())
    assert answer.warnings == ("no section named",)


def test_a_check_that_fails_is_a_failure_without_content(ledger: Ledger) -> None:
    with ScriptedServer(
        Says(
            "passage",
            "",
            {"passage": "Bathing", "quote": "", "answer": "Wait. fault=400", "statement": "", "strength": ""},
        )
    ) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert len(server.seen) == 3  # asked once more: no passage has the number 400
    assert answer.failure is not None
    assert (answer.failure.kind, answer.text, answer.absent, answer.citations) == ("bad-request", "", None, ())
    assert ledger.known(answer.calls) == set(answer.calls) != set()


@pytest.mark.parametrize(("fault", "kind"), [("400", "bad-request"), ("refusal", "refusal"), ("prose", "unreadable")])
def test_a_call_that_fails_is_a_failure_not_an_absence(ledger: Ledger, fault: str, kind: str) -> None:
    with ScriptedServer() as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing", question=f"Why? fault={fault}"))
    assert answer.failure is not None
    assert (answer.failure.kind, answer.text, answer.absent) == (kind, "", None)


def test_a_section_that_was_not_shown_is_repaired_once(ledger: Ledger) -> None:
    script = [
        Says(
            "passage",
            "That output can't be used",
            {"passage": "Bathing", "quote": "", "answer": "No bath.", "statement": "", "strength": ""},
        ),
        Says("passage", "", {"passage": "Sauna", "quote": "", "answer": "No bath.", "statement": "", "strength": ""}),
        Says("addressed", "", {"addressed": "yes"}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, a_plan("Bathing"))
    assert len(server.seen) == len(answer.calls) == 3
    assert answer.citations == ("Bathing",)


def test_a_source_of_which_nothing_fits_is_not_silent(ledger: Ledger) -> None:
    question = Question(id="q", text="May I have a bath? " * 500)
    planned = plan_sources([question], [KIDNEY], PACK, search_in([KIDNEY]), window=2048, whole_up_to=1000)
    assert [(item.passages, bool(item.dropped)) for item in planned] == [((), True)]
    with ScriptedServer() as server:
        (answer,) = answers_of(server, ledger, *planned)
    assert server.seen == []
    assert answer.failure is not None
    assert (answer.failure.kind, answer.failure.attempts, answer.absent) == ("context-overflow", 0, None)
    assert answer.dropped == planned[0].dropped


# Citations and order
def test_only_headings_that_were_shown_are_cited(ledger: Ledger) -> None:
    text = "No bath [stent, and more] but [STENT] and [Sauna], see [bathing] and [Drains]."
    script = [
        Says("passage", "", {"passage": "Bathing", "quote": "", "answer": text, "statement": "", "strength": ""}),
        Says("addressed", "", {"addressed": "yes"}),
    ]
    with ScriptedServer(*script) as server:
        (answer,) = answers_of(server, ledger, a_plan("Stent", "Drains", "Bathing", "Diet"))
    assert answer.citations == ("Bathing", "Stent", "Drains")


def test_answers_come_in_the_order_of_the_plan(ledger: Ledger) -> None:
    planned = [a_plan("Bathing", question=f"Question {number}?", source=f"d{number:02}") for number in range(24)]
    with ScriptedServer(delay=0.01) as server:
        answers = answers_of(server, ledger, *planned)
    assert [answer.source for answer in answers] == [item.condition for item in planned]
    assert {answer.absent for answer in answers} == {True, False}


def test_the_limit_reaches_the_wire(ledger: Ledger) -> None:
    with ScriptedServer(
        Says("passage", "", {"passage": "none", "quote": "", "answer": "", "statement": "", "strength": ""})
    ) as server:
        answer_from_sources(a_model(server.spec(), ledger), [a_plan("Bathing")], PACK, max_tokens=77)
    (seen,) = server.seen
    assert seen.body["max_tokens"] == 77
    assert asked_for(seen.body)["passage"]["enum"] == ["Bathing", "none"]


ORGANS = ("kidney", "liver", "lung")
FILLER = "Nothing of that kind is told in this chapter of the handbook. " * 8


def a_book(name: str, organ: str, chapters: int) -> Document:
    filler = [(f"Chapter {number}", FILLER) for number in range(chapters)]
    topic = (f"Bathing at {name}", f"At {name} no bath for four weeks after the {organ} operation.")
    return a_document(name, *filler, topic, ("Stent", "The stent comes out."), facets={"organ": organ})


BOOKS = [a_book(f"{organ}-{number}", organ, 2 + 20 * number) for organ, number in product(ORGANS, (0, 1))]
QUESTIONS = [
    Question(id=f"q{number}", text=text, facets={"group": group})
    for number, (text, group) in enumerate(
        [("May I have a bath?", "general"), ("No bath for the kidney?", "kidney"), ("A bath with a liver?", "liver"),
         ("When does the stent come out?", "general"), ("Is a bath fine?", "lung")]
    )
]  # fmt: skip


def retriever(line: str) -> Retriever:
    return Retriever(IndexSet(BOOKS, encoder=lambda _: HashedWords()), line)


def asked_all(questions: Sequence[Question] = QUESTIONS) -> list[tuple[Question, list[str]]]:
    return [
        (question, [book.id for book in BOOKS if question.facets["group"] in ("general", book.facets["organ"])])
        for question in questions
    ]


def test_hero_s_evidence_comes_question_by_question_from_its_sources() -> None:
    asked = asked_all()
    shown = list(through_hero(retriever("hero[dense=0,route=3000]"))(asked, CharacterBudget(characters=10**6)))
    assert [(each.question.id, each.source) for each in shown] == [
        (question.id, source) for question, sources in asked for source in sources
    ]
    routes = {each.source: each.route for each in shown}
    assert {name for name, route in routes.items() if route == "whole"} == {f"{organ}-0" for organ in ORGANS}
    for each in shown:
        assert each.trace[0].what == f"route: {each.route}"
        assert {passage.document for passage in each.passages} == {each.source}
    searched = {step.what: step.text for each in shown if each.route != "whole" for step in each.trace}
    assert re.fullmatch(r"\d+ sections, \d+ children", searched["document model"])
    assert searched["reranking"].startswith("off: hero[rerank=…] names no")
    assert re.match(r"1\. 0\.\d{4} \w+", searched["fused"])  # rank, score, and what the child says
    assert not any(step.what == "reranking" for each in shown if each.route == "whole" for step in each.trace)


@pytest.mark.parametrize("max_groups", [0, 12])
def test_what_is_searched_together_changes_no_evidence(monkeypatch: pytest.MonkeyPatch, max_groups: int) -> None:
    monkeypatch.setattr("hoofbeat.audit.answers_by_source._MAX_GROUPS", max_groups)
    find = through_hero(retriever("hero[dense=0,route=0,fallback=off]"))
    room = CharacterBudget(characters=10**6, tight=frozenset(["kidney-0"]))
    together = {(each.question.id, each.source): each for each in find(asked_all(), room)}
    for question, sources in asked_all():
        for source in sources:
            (alone,) = find([(question, [source])], room)
            assert together[question.id, source] == alone


def test_a_source_that_fits_only_without_its_fences_is_searched() -> None:
    book = a_document("d", *((f"A heading of some length, number {number}", "Rest.") for number in range(300)))
    window = (len(book.text) + 2000) // 3 + 512 + 400
    room = source_room([book], 20, window, 512)
    assert len(book.text) <= room.characters
    assert room.tight == {"d"}
    find = through_line(Retriever(IndexSet([book], encoder=lambda _: HashedWords()), "bm25"), [book], 3, 80_000)
    question = Question(id="q", text="May I rest?")
    (planned,) = iter_source_plans([question], [book], PACK, find, window=window)
    assert planned.dropped == ()
    assert len(planned.passages) == 3


def test_the_room_does_not_hang_on_other_sources_or_a_few_letters() -> None:
    rooms = {source_room(BOOKS[:count], longest, 8192, 512).characters for count in (1, 6) for longest in (0, 20, 999)}
    assert rooms == {(8192 - 512 - 400) * 3 - 1000}
    assert source_room(BOOKS, 1001, 8192, 512).characters == (8192 - 512 - 400) * 3 - 2000
    assert source_room(BOOKS, 20, 600, 512).characters == 0


@pytest.mark.parametrize(
    ("line", "given", "made"),
    [
        ("hero", (None, None), "hero"),
        ("hero", (0, 2), "hero[route=0,top=2]"),
        ("hero[dense=0,top=9]", (500, None), "hero[route=500,dense=0,top=9]"),
    ],
)
def test_settings_of_the_command_go_into_hero_s(line: str, given: tuple[int | None, int | None], made: str) -> None:
    whole_up_to, passages = given
    assert hero_line(line, whole_up_to=whole_up_to, passages=passages) == made
    assert is_hero(parse(made))
    assert not is_hero(parse("bm25 + dense"))
