"""What is shown of sources: HERO's evidence question by question, its trace, and sources that only just do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from hoofbeat.audit.answers.answers_by_source import iter_source_plans, source_room
from hoofbeat.audit.answers.source_evidence import CharacterBudget, hero_line, is_hero, through_hero, through_line
from hoofbeat.prompts import load_pack
from hoofbeat.records import Document, Question
from hoofbeat.retrieval import IndexSet, Retriever, parse
from tests.answering.support import a_document
from tests.retrieval.support import HashedWords

PACK = load_pack("transplant")
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


@pytest.mark.parametrize("max_groups", [0, 12])
def test_what_is_searched_together_changes_no_evidence(monkeypatch: pytest.MonkeyPatch, max_groups: int) -> None:
    monkeypatch.setattr("hoofbeat.audit.answers.source_evidence._MAX_GROUPS", max_groups)
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
