"""Exams: what is drawn for whom, the clock, stages, what counts at the end, and the run it becomes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from hoofbeat.answering import Run
from hoofbeat.answering.condition_material import shorten
from hoofbeat.answering.conditions import ordered_options
from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.errors import HoofbeatError, UsageError
from hoofbeat.findings.outcomes import INSIDE, OUTSIDE, choice_outcomes
from hoofbeat.judging.judgments_folder import JudgmentFolder
from hoofbeat.records import Answer, Question
from hoofbeat.review.exam_items import (
    ExamRules,
    assign_exam,
    exam_assignments,
    exam_study,
    question_of,
    rules_of,
)
from hoofbeat.review.exam_results import (
    ExamRow,
    exam_answers,
    exam_rows,
    model_lines,
    model_outcomes,
    result_of,
    write_exam_run,
)
from hoofbeat.review.exam_sitting import (
    ExamSitting,
    begin_exam,
    end_exam,
    load_sitting,
    open_question,
    save_draft,
    submit_answer,
    visible_case,
)
from hoofbeat.review.review_records import Person, ReviewItem, ReviewRefusalError, Study
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store import Counts
from hoofbeat.store.folder_library import FolderLibrary
from tests.answering.support import ScriptedServer
from tests.cli.support import hoofbeat
from tests.review.stores import store_urls

__all__ = ["store_urls"]

T0 = 1_800_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ReviewStore]:
    with ReviewStore.open(str(tmp_path / "exam.db")) as opened:
        yield opened


def setting(store: ReviewStore, bench: Path, name: str = "Dr Invented", **rules: object) -> tuple[Study, Person]:
    study, items = exam_study(bench, **{"per_person": 4, "seed": 5, **rules})  # type: ignore[arg-type]
    store.create_study(study, items, by="test")
    person, _ = store.invite(name, "reviewer", by="test", groups=("endocrinology",))
    return study, person


def first_choice(sitting: ExamSitting) -> int:
    """The place of the first question with options."""
    return next(entry.place for entry in sitting.entries if entry.options)


def right(sitting: ExamSitting, place: int) -> str:
    entry = sitting.entries[place - 1]
    return "ABCDEFGHIJ"[entry.options.index(entry.question.answer)] if entry.options else "Words."


def wrong(sitting: ExamSitting, place: int) -> str:
    entry = sitting.entries[place - 1]
    return next(
        letter for letter, option in zip("ABCDEFGHIJ", entry.options, strict=False) if option != entry.question.answer
    )


# What is asked


def test_an_exam_tells_nothing_of_its_answers(folders: Path) -> None:
    study, items = exam_study(folders / "bench", seed=1)
    bench = Benchmark.open(folders / "bench")
    assert study.form == "exam"
    assert study.source_sha256 == bench.artefact.reference().sha256
    assert [question_of(item) for item in items] == bench.questions
    for item in items:
        shown = msgspec.json.encode(item.shown).decode()
        question = question_of(item)
        assert question.id not in item.id + shown
        assert not any(part.kind == "gold" for part in item.shown)
        if not question.options:
            assert question.answer not in shown
    assert exam_study(folders / "bench", seed=1) == (study, items)
    assert exam_study(folders / "bench", seed=2)[0].id != study.id


def test_questions_that_cannot_be_asked_are_left_out(tmp_path: Path) -> None:
    questions = [
        Question(id="fine", text="Which?", options=("a", "b"), answer="a"),
        Question(id="same", text="Which?", options=("a", "A"), answer="a"),
        Question(id="foreign", text="Which?", options=("a", "b"), answer="c"),
        Question(id="no-answer", text="What?"),
    ]
    write_benchmark(tmp_path / "bench", questions, title="t", inputs=[], counts=Counts(kept=4))
    study, items = exam_study(tmp_path / "bench")
    assert [question_of(item).id for item in items] == ["fine"]
    assert study.settings["left_out"] == 3


@pytest.mark.parametrize(
    "rules",
    [
        {"per_person": 10_000},
        {"per_person": -1},
        {"inside": 1.5},
        {"minutes": -3},
        {"stages": (40, 20, 100)},
        {"stages": (20, 40)},
        {"stages": (0, 100)},
    ],
)
def test_rules_that_cannot_be_kept_are_refused(folders: Path, rules: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        exam_study(folders / "bench", **rules)  # type: ignore[arg-type]


def item(number: int, group: str) -> ReviewItem:
    return ReviewItem(id=f"i{number}", study="s", place=number, shown=(), group=group, key={"groups": [group]})


@pytest.mark.parametrize(
    ("inside", "there", "expected"),
    [(0.5, 20, 5), (0.3, 20, 3), (1.0, 4, 4), (0.0, 20, 0), (0.2, 35, 5)],
)
def test_so_many_are_inside_the_specialty(inside: float, there: int, expected: int) -> None:
    items = [item(n, "cardiology" if n < there else "surgery") for n in range(40)]
    rules = ExamRules(per_person=10, inside=inside, seed=7)
    study = Study(id="s", title="", form="exam", source="b", source_sha256="0", settings={"exam": rules.recorded()})
    person = Person(id="p", name="P", role="reviewer", groups=("Cardiology",))
    rows = exam_assignments(study, items, person)
    assert len({row.item for row in rows}) == 10
    assert [row.place for row in rows] == list(range(10))
    assert sum(row.why == INSIDE for row in rows) == expected
    assert sum(row.why == OUTSIDE for row in rows) == 10 - expected
    assert exam_assignments(study, items, person) == rows
    other = exam_assignments(study, items, msgspec.structs.replace(person, id="q"))
    assert [row.item for row in other] != [row.item for row in rows]
    plain = exam_assignments(study, items, msgspec.structs.replace(person, groups=()))
    assert {row.why for row in plain} == {"plan"}


def test_assignment_is_made_once_and_stands_in_the_trail(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench")
    mine = assign_exam(store, study, person, by="test")
    assert len(mine) == 4
    assert assign_exam(store, study, person, by="test") == mine
    told = [event for event in store.trail(study=study.id) if event.what == "assigned"]
    assert len(told) == 1
    assert told[0].after == {"person": person.id, "items": [row.item for row in mine]}


def test_options_stand_in_an_order_of_each_person_and_the_seed_is_kept(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", per_person=0)
    other, _ = store.invite("Dr Other", "reviewer", by="test")
    one, two = (begin_exam(store, study, each, T0) for each in (person, other))
    orders = {entry.question.id: entry.options for entry in two.entries}
    assert any(entry.options != orders[entry.question.id] for entry in one.entries)
    for entry in one.entries:
        assert sorted(entry.options) == sorted(entry.question.options)
        assert entry.options == ordered_options(entry.question, entry.seed)
    opened = load_sitting(store, study, person, T0).entries[0]
    assert opened.kept.seed == opened.seed
    assert opened.kept.options == opened.options


# The exam itself, on both kinds of database


def test_a_whole_exam_on_each_kind_of_database(store_urls: str, folders: Path) -> None:
    with ReviewStore.open(store_urls) as store:
        study, person = setting(store, folders / "bench", minutes=10)
        sitting = begin_exam(store, study, person, T0)
        assert sitting.remaining == 600
        for number, entry in enumerate(sitting.entries):
            moment = T0 + 30 * (number + 1)
            sitting = open_question(store, load_sitting(store, study, person, moment - 10), entry)
            sitting = load_sitting(store, study, person, moment)
            said = right(sitting, entry.place)
            sitting = submit_answer(store, sitting, sitting.entries[number], said, 8.0, 0)
        assert sitting.over
        answers = exam_answers(store, study)
        assert len(answers) == 4
        assert all(answer.model == "human:Dr Invented" for answer in answers)
        assert all(outcome.correct for outcome in choice_outcomes([e.question for e in sitting.entries], answers))
        assert [entry.kept.given[0].seconds for entry in sitting.entries] == [8.0] * 4
        other = wrong(sitting, 1) if sitting.entries[0].options else "Other words."
        with pytest.raises(ReviewRefusalError):
            submit_answer(store, sitting, sitting.entries[0], other, 9.0, 0)


def test_a_late_answer_is_refused_and_what_was_marked_before_counts(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", minutes=1, per_person=6, inside=1.0)
    sitting = begin_exam(store, study, person, T0)
    place = first_choice(sitting)
    sitting = open_question(store, sitting, sitting.entries[place - 1])
    marked = save_draft(store, sitting, sitting.entries[place - 1], right(sitting, place), 20.0, 0)
    late = load_sitting(store, study, person, T0 + 60.0)
    assert late.time_up
    assert late.remaining == 0
    for act in (submit_answer, save_draft):
        with pytest.raises(ReviewRefusalError, match="time is up") as refused:
            act(store, late, late.entries[place - 1], wrong(late, place), 61.0, 0)
        assert refused.value.status == 409
    assert load_sitting(store, study, person, T0 + 61).entries[place - 1].kept == marked.entries[place - 1].kept
    before = {answer.question: answer for answer in exam_answers(store, study, now=T0 + 61)}
    ended = end_exam(store, late)
    after = {answer.question: answer for answer in exam_answers(store, study, now=T0 + 90)}
    assert before == after, "the same, whether the person came back or not"
    entry = ended.entries[place - 1]
    assert after[entry.question.id].choice == entry.question.answer
    assert after[entry.question.id].warnings == ("marked and not given when the exam ended",)
    others = [answer for name, answer in after.items() if name != entry.question.id]
    assert all(answer.failure is not None and answer.choice is None for answer in others)
    assert exam_answers(store, study, now=T0 + 30) == list(after.values()), "once ended, the moment does not matter"


def test_stages_show_more_and_more_and_earlier_answers_stay(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", stages=(20, 60, 100), per_person=0)
    sitting = begin_exam(store, study, person, T0)
    place = first_choice(sitting)
    sitting = open_question(store, sitting, sitting.entries[place - 1])
    seen = []
    for stage, share in enumerate((20, 60, 100)):
        entry = sitting.entries[place - 1]
        assert (entry.stage, entry.share) == (stage, share)
        case, asked = visible_case(entry)
        whole = f"{case}\n\n{asked}" if case else asked
        assert whole == shorten(entry.question, share, by_sentences=True).text
        seen.append(len(case))
        answer = wrong(sitting, place) if stage < 2 else right(sitting, place)
        later = load_sitting(store, study, person, T0 + 6.0 * (stage + 1))
        sitting = submit_answer(store, later, entry, answer, 5.0 * (stage + 1), stage)
        if stage < 2:
            with pytest.raises(ReviewRefusalError, match="can't be changed"):
                submit_answer(store, sitting, sitting.entries[place - 1], right(sitting, place), 9.0, stage)
    assert seen == sorted(seen)
    assert seen[0] < seen[2]
    entry = sitting.entries[place - 1]
    assert entry.done
    assert [each.seconds for each in entry.kept.given] == [5.0, 5.0, 5.0]
    end_exam(store, sitting)
    mine = [answer for answer in exam_answers(store, study) if answer.question == entry.question.id]
    assert [answer.condition for answer in mine] == [f"first {n}% of sentences, letter" for n in (20, 60, 100)]
    assert [answer.choice == entry.question.answer for answer in mine] == [False, False, True]


def test_the_same_answer_twice_is_one_and_another_is_refused(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", per_person=0)
    sitting = begin_exam(store, study, person, T0)
    place = first_choice(sitting)
    open_question(store, sitting, sitting.entries[place - 1])
    tabs = [load_sitting(store, study, person, T0 + 5) for _ in range(3)]
    submit_answer(store, tabs[0], tabs[0].entries[place - 1], right(sitting, place), 3.0, 0)
    events = len(store.trail(study=study.id))
    again = submit_answer(store, tabs[1], tabs[1].entries[place - 1], right(sitting, place), 4.0, 0)
    assert again.entries[place - 1].kept.given[0].seconds == 3.0
    assert len(store.trail(study=study.id)) == events
    with pytest.raises(ReviewRefusalError):
        save_draft(store, tabs[2], tabs[2].entries[place - 1], wrong(sitting, place), 4.0, 0)
    assert load_sitting(store, study, person, T0 + 6).entries[place - 1].kept.answer == right_text(again, place)


def right_text(sitting: ExamSitting, place: int) -> str:
    return sitting.entries[place - 1].question.answer


@pytest.mark.parametrize("said", ["Z", "AB", "é", "<script>"])
def test_what_is_no_option_is_refused(store: ReviewStore, folders: Path, said: str) -> None:
    study, person = setting(store, folders / "bench", per_person=0)
    sitting = begin_exam(store, study, person, T0)
    place = first_choice(sitting)
    sitting = open_question(store, sitting, sitting.entries[place - 1])
    with pytest.raises(ReviewRefusalError, match="not one of the options"):
        submit_answer(store, sitting, sitting.entries[place - 1], said, None, 0)


def test_a_closed_study_takes_nothing_and_what_is_there_counts(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", per_person=6, inside=1.0)
    sitting = begin_exam(store, study, person, T0)
    place = first_choice(sitting)
    sitting = open_question(store, sitting, sitting.entries[place - 1])
    submit_answer(store, sitting, sitting.entries[place - 1], right(sitting, place), 2.0, 0)
    assert exam_answers(store, study) == [], "nobody has finished"
    store.close_study(study.id, "test")
    closed = store.study(study.id)
    assert closed is not None
    with pytest.raises(HoofbeatError, match="closed"):
        save_draft(store, load_sitting(store, closed, person, T0 + 9), sitting.entries[0], "A", None, 0)
    answers = exam_answers(store, closed)
    assert len(answers) == 6
    assert sum(answer.failure is None for answer in answers) == 1


# What becomes of it


def test_the_run_joins_the_models_in_their_tables(store: ReviewStore, folders: Path, tmp_path: Path) -> None:
    study, person = setting(store, folders / "bench", per_person=0, literature=False)
    other, _ = store.invite("Dr Other", "reviewer", by="test")
    waiting, _ = store.invite("Dr Waiting", "reviewer", by="test")
    begin_exam(store, study, waiting, T0)
    for one, good in ((person, True), (other, False)):
        sitting = begin_exam(store, study, one, T0)
        for number, entry in enumerate(sitting.entries):
            sitting = open_question(store, sitting, sitting.entries[number])
            said = "Words." if not entry.options else (right if good else wrong)(sitting, entry.place)
            sitting = submit_answer(store, sitting, sitting.entries[number], said, 4.0, 0)
    artefact = write_exam_run(store, study, tmp_path / "people", command=["hoofbeat", "review", "export"])
    assert not artefact.verify()
    run = Run(artefact)
    assert run.questions == Benchmark.open(folders / "bench").questions
    assert artefact.manifest.inputs[0].sha256 == study.source_sha256
    assert artefact.manifest.settings["unfinished"] == 1
    assert artefact.manifest.seeds == {"exam": 5}
    rows = exam_rows(store, study)
    assert len(rows) == len(run.answers)
    assert {row.why for row in rows} == {INSIDE, OUTSIDE, "plan"}
    assert all(ordered_options(q, r.order) == a.options for q, r, a in lined_up(run, rows))
    blind = exam_answers(store, study, blind=True)
    named = {answer.model for answer in blind}
    assert len(named) == 2
    assert named < {"human:Reviewer 1", "human:Reviewer 2", "human:Reviewer 3"}
    again = write_exam_run(store, study, tmp_path / "people", command=["hoofbeat", "review", "export"])
    assert again.reference() == artefact.reference(), "the same bytes"
    hoofbeat("compare", str(folders / "run"), str(tmp_path / "people"), "-o", "compared", folder=tmp_path)
    assert "human:Dr Invented" in read(tmp_path / "compared" / "report.html")
    with ScriptedServer() as server:
        hoofbeat("judge", "people", "--model", server.spec("judge"), "-o", "judged", folder=tmp_path)
    judged = JudgmentFolder.open(tmp_path / "judged")
    assert {each.model for each in judged.judgments} == {"human:Dr Invented", "human:Dr Other"}
    hoofbeat("report", "judged", "-o", "report", folder=tmp_path)
    page = read(tmp_path / "report" / "report.html")
    assert "human:Dr Invented" in page
    assert "human:Dr Other" in page


def lined_up(run: Run, rows: list[ExamRow]) -> Iterator[tuple[Question, ExamRow, Answer]]:
    questions = {question.id: question for question in run.questions}
    for answer, row in zip(run.answers, rows, strict=True):
        yield questions[answer.question], row, answer


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def test_the_result_counts_inside_and_outside_and_shows_models(store: ReviewStore, folders: Path) -> None:
    study, person = setting(store, folders / "bench", per_person=12, inside=0.5)
    sitting = begin_exam(store, study, person, T0)
    for number, entry in enumerate(sitting.entries):
        sitting = open_question(store, sitting, sitting.entries[number])
        if entry.options:
            said = right(sitting, entry.place) if entry.why == INSIDE else wrong(sitting, entry.place)
            sitting = load_sitting(store, study, person, T0 + 20.0 * (number + 1))
            sitting = submit_answer(store, sitting, sitting.entries[number], said, 10.0, 0)
    sitting = end_exam(store, sitting)
    result = result_of(sitting)
    chosen = [entry for entry in sitting.entries if entry.options]
    inside = sum(entry.why == INSIDE for entry in chosen)
    assert (result.overall[0].right, result.overall[0].of) == (inside, len(chosen))
    assert [(line.right, line.of) for line in result.parts] == [(inside, inside), (0, len(chosen) - inside)]
    assert result.unanswered == len(sitting.entries) - len(chosen)
    assert result.seconds == 10.0 * len(chosen)
    library = FolderLibrary([folders / "bench", folders / "run", folders / "judged"])
    lines = model_lines(sitting, [(each.slug, model_outcomes(each)) for each in library.folders("run", "judgments")])
    assert len(lines) == 4, "two invented models under two conditions, each once"
    asked = {entry.question.id for entry in chosen}
    run = Run.open(folders / "run")
    for line in lines:
        mine = [a for a in run.answers if (a.model, a.condition) == (line.name, line.how) and a.question in asked]
        assert line.of == len(mine)
        assert line.right == sum(o.correct is True for o in choice_outcomes(run.questions, mine))


def test_rules_are_kept_with_the_study(folders: Path) -> None:
    study, _ = exam_study(folders / "bench", per_person=3, inside=0.25, minutes=7.5, stages=(50, 100), seed=9)
    assert rules_of(study) == ExamRules(
        per_person=3, inside=0.25, minutes=7.5, stages=(50, 100), seed=9, images=True, literature=True
    )
    assert rules_of(study).condition(50, "letter") == "first 50% of sentences, letter"
    assert ExamRules(literature=False).condition(100, "letter") == "closed, letter"
    assert ExamRules(literature=False, images=True).condition(100, "") == "images"
    assert ExamRules().condition(100, "letter") == "literature, letter"
