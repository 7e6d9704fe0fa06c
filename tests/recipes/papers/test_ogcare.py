"""The recipe of OGCaReBench, stage by stage over an invented report."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.benchmarks.rarity_aging import aging_counts, refilter
from hoofbeat.corpus import Corpus
from hoofbeat.corpus.citations import load_citations
from hoofbeat.corpus.filters.rare import RarityLimits
from hoofbeat.corpus.specialties import load_scheme
from hoofbeat.errors import BatchPending, InputError
from hoofbeat.models import Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.requests import Trouble
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.benchmark_output import build_benchmark
from hoofbeat.recipes.build_plan import BuildPlan
from hoofbeat.recipes.context import RecipeContext
from hoofbeat.recipes.papers.ogcare import CRITERIA, RECIPE, OgcareSettings
from hoofbeat.recipes.recipe import read_settings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.records import Figure, Section
from hoofbeat.store import Artefact, Ledger
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.window import ContextWindow
from tests.recipes.case_answers import material
from tests.recipes.papers.ogcare_case import CONTEXT, DISTRACTED, GOOD, REPORT, altered, build_one, ending, says
from tests.recipes.support import Script, a_corpus, build, user_text


def test_a_question_and_its_original(tmp_path: Path) -> None:
    first, second = Script(says(), "first"), Script(says(), "second")
    artefact = build_one(tmp_path, {"model": first, "second": second})
    (question,) = Benchmark(artefact).questions
    (original,) = Benchmark(artefact, "original").questions
    assert (question.context, original.context) == (DISTRACTED, CONTEXT)
    assert question.answer == original.answer == GOOD["ogcare-question"]["answer"]
    assert question.id == original.id == REPORT.id
    assert question.documents == (REPORT.id,)
    quotes = [span.quote for span in question.evidence]
    assert quotes == [
        "To our knowledge this is the first fistula sealed with a cardiac septal occluder through the skin.",
        "A cardiac septal occluder was deployed across the tract under fluoroscopy.",
        "Surgery was ruled out because of portal hypertension, and fibrin glue was washed away twice.",
        "Octreotide and 3 weeks of parenteral nutrition failed to reduce the output of 900 mL a day.",
    ]
    assert all(REPORT.text[span.start : span.end] == span.quote for span in question.evidence)
    assert question.facets["rarity"] == "unknown"
    assert question.facets["year"] == "2024"
    assert question.facets["specialty"] in {*load_scheme("ogcare").names, "unknown"}
    assert [name for name, _ in second.requests] == ["ogcare-distract"]
    assert first.count("ogcare-distract") == 0
    assert artefact.manifest.models == {"model": "first", "second": "second"}
    assert Benchmark(artefact).qrels() == {REPORT.id: {REPORT.id: 1}}


def test_what_was_changed_is_listed(tmp_path: Path) -> None:
    artefact = build_one(tmp_path)
    rows = list(read_tsv(artefact.file("distraction.tsv")))
    assert ("replaced", "54-year-old man presented", "61-year-old woman came in", "demographics") in [
        (row["kind"], row["before"], row["after"], row["about"]) for row in rows
    ]
    assert any(row["kind"] == "inserted" and "dry eyes" in row["after"] for row in rows)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert len(item["changes"]) == len(rows)
    for change in item["changes"]:
        assert DISTRACTED[change["new_start"] : change["new_end"]] == change["after"]


def test_the_writer_sees_what_came_before_the_step_and_nothing_that_tells_it(tmp_path: Path) -> None:
    script = Script(says())
    artefact = build_one(tmp_path, {"model": script})
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert [event["when"] for event in item["timeline"]] == ["before", "before", "before", "decisive", "after"]
    facts = "\n".join(item["facts"])
    assert "38,000" in facts
    assert "occluder" not in facts
    assert "output stopped" not in facts
    distracting = next(request for name, request in script.requests if name == "ogcare-distract")
    assert "occluder" not in user_text(distracting)


def test_the_report_is_shown_as_numbered_sentences(tmp_path: Path) -> None:
    script = Script(says())
    build_one(tmp_path, {"model": script})
    shown = {name: user_text(request) for name, request in script.requests}
    for name in ("ogcare-significance", "ogcare-course", "ogcare-verify"):
        assert "\n2. To our knowledge" in shown[name]
        assert "\n8. A cardiac septal occluder was deployed" in shown[name]
        assert "Case presentation" not in shown[name]


def test_each_step_is_shown_the_sections_it_reads(tmp_path: Path) -> None:
    text = REPORT.text
    starts = [text.index(word) for word in ("Introduction", "Case presentation", "Discussion")]
    sections = tuple(
        Section(heading=name, level=1, start=start, body=start + len(name), end=end, role=role)
        for name, role, start, end in zip(
            ("Introduction", "Case presentation", "Discussion"),
            ("introduction", "case", "discussion"),
            starts,
            (*starts[1:], len(text)),
            strict=True,
        )
    )
    limited = [{"sentences": [6, 7], "limitation": "not possible"}]
    course = altered("ogcare-course", before=[3, 5, 6], after=[], limitations=limited)
    script = Script(says(course))
    artefact = build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, sections=sections))
    assert len(Benchmark(artefact).questions) == 1
    shown = {name: user_text(request) for name, request in script.requests}
    assert "\n1. Enterocutaneous" in shown["ogcare-significance"]
    for name in ("ogcare-course", "ogcare-verify"):  # without the introduction, with the same numbers
        assert "\n3. A 54-year-old man" in shown[name]
        assert "Enterocutaneous" not in shown[name]
        assert "remains the standard of care" in shown[name]


def test_wrong_numbers_are_tolerated_where_the_parameter_says_so(tmp_path: Path) -> None:
    script = says(altered("ogcare-course", before=[3, 5, 6, 99]))
    assert ending(build_one(tmp_path, script)) == ("course", "a sentence for the timeline is not in the source")
    artefact = build_one(tmp_path, script, max_bad_references=1)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert len(item["timeline"]) == 4
    (flag,) = [each for each in item["flags"] if each.startswith("passed over")]
    assert "number 99;" in flag


def test_a_repeated_number_counts_once(tmp_path: Path) -> None:
    artefact = build_one(tmp_path, says(altered("ogcare-course", before=[3, 3, 3])))
    assert ending(artefact) == ("course", "too few events before the decisive step")


def test_of_a_sentence_that_tells_the_step_what_leads_up_to_it_is_kept(tmp_path: Path) -> None:
    told = "Surgery was ruled out because of portal hypertension, so a percutaneous cardiac septal occluder was chosen."
    text = REPORT.text.replace("Surgery was ruled out because of portal hypertension, and", f"{told} Before that,")
    script = says({**altered("ogcare-significance", step_sentences=[9]), **altered("ogcare-course", before=[3, 6, 7])})
    artefact = build_one(tmp_path, script, msgspec.structs.replace(REPORT, text=text))
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["facts"][-1] == "Surgery was ruled out because of portal hypertension."


@pytest.mark.parametrize("number", [9, 7, 4, 1])
def test_a_step_named_rightly_is_found_where_the_case_tells_it(tmp_path: Path, number: int) -> None:
    """The sentence pointed at is another one: next to it, or elsewhere, stands the one that tells the step."""
    pointed = altered("ogcare-significance", step_sentences=[number], step="septal occluder under fluoroscopy")
    artefact = build_one(tmp_path, says(pointed), distraction=False)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert [REPORT.text[start:end] for start, end in item["step_at"]] == [
        "A cardiac septal occluder was deployed across the tract under fluoroscopy."
    ]
    assert "A cardiac septal occluder was deployed" in " ".join(span.quote for span in item.evidence)


@pytest.mark.parametrize(
    "changed",
    [
        altered("ogcare-distract", context="A woman came in."),
        altered("ogcare-verify-distraction", core_kept="no"),
        {"ogcare-distract": Trouble(kind="bad-request", message="no", retryable=False)},
    ],
)
def test_an_unfit_distraction_can_leave_the_original(tmp_path: Path, changed: dict[str, object]) -> None:
    artefact = build_one(tmp_path, says(changed), on_bad_distraction="keep-original")
    (question,) = Benchmark(artefact).questions
    assert question.context == CONTEXT
    assert question.facets["distracted"] == "no"
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["distraction_refused"]
    assert list(read_tsv(artefact.file("distraction.tsv"))) == []


def test_distraction_can_be_left_out(tmp_path: Path) -> None:
    script = Script(says())
    artefact = build_one(tmp_path, {"model": script}, distraction=False)
    assert Benchmark(artefact).questions[0].context == CONTEXT
    assert Benchmark(artefact).editions() == []
    assert not artefact.has("distraction.tsv")
    assert script.count("ogcare-distract") == script.count("ogcare-verify-distraction") == 0


@pytest.mark.parametrize(
    ("ratings", "rule", "kept"),
    [
        (((5, 4), (4, 4)), "mean", True),
        (((5, 3), (4, 5)), "mean", True),
        (((5, 3), (4, 5)), "each", False),
        (((5, 4), (4, 3)), "mean", False),
        (((2, 3), (5, 5)), "mean", False),
    ],
)
def test_physicians_ratings(tmp_path: Path, ratings: tuple[tuple[int, ...], ...], rule: str, kept: bool) -> None:
    waiting = list(read_jsonl(build_one(tmp_path).file("review.jsonl"), ReviewTask))
    assert [(task.item, task.kind, task.criteria) for task in waiting] == [(REPORT.id, "likert", CRITERIA)]
    file = tmp_path / "ratings.csv"
    rows = [
        f"{REPORT.id},{criterion},{value},r{number}"
        for criterion, given in zip(CRITERIA, ratings, strict=True)
        for number, value in enumerate(given)
    ]
    file.write_text("item,criterion,value,reviewer\n" + "\n".join(rows))
    artefact = build_one(tmp_path, reviews=str(file), review_rule=rule)
    assert len(Benchmark(artefact).questions) == kept
    assert list(read_jsonl(artefact.file("review.jsonl"), ReviewTask)) == []
    if not kept:
        assert ending(artefact)[0] == "review"


@pytest.mark.parametrize("value", ["good", "6", "0", "nan"])
def test_a_rating_that_is_none_is_named(tmp_path: Path, value: str) -> None:
    file = tmp_path / "ratings.csv"
    file.write_text(f"item,criterion,value\n{REPORT.id},{CRITERIA[0]},{value}\n")
    with pytest.raises(InputError, match="is not a rating"):
        build_one(tmp_path, reviews=str(file))


def test_venue_year_and_promotion_come_before_any_call(tmp_path: Path) -> None:
    script = Script(says())
    for facets, settings, step in (
        ({"year": "2024", "journal": "Nature"}, {}, "venue(medical)"),
        ({"year": "2024"}, {"unknown_venue": "drop"}, "venue(medical)"),
        ({"year": "2022"}, {}, "rare(no citations, year>2022)"),
        ({"year": "2024"}, {"filters": "words>=5000"}, "words>=5000"),
    ):
        document = msgspec.structs.replace(REPORT, facets=facets)
        artefact = build_one(tmp_path, {"model": script}, document, **settings)
        assert ending(artefact)[0] == step
    assert not script.requests
    unknown = build_one(tmp_path, None, msgspec.structs.replace(REPORT, facets={}))
    assert Benchmark(unknown).questions[0].facets["venue"] == "unknown"
    assert Benchmark(unknown).questions[0].facets["year"] == "unknown"


def test_questions_age(tmp_path: Path) -> None:
    """Built on citations of its day, a benchmark is asked again of newer ones."""
    other = msgspec.structs.replace(REPORT, id="invented-2")
    then, now = tmp_path / "then.csv", tmp_path / "now.csv"
    then.write_text("citing,cited,case_report\na,invented-1,yes\nb,invented-2,yes\n")
    now.write_text(then.read_text() + "".join(f"n{n},invented-1,no\n" for n in range(4)))
    artefact = build(tmp_path, RECIPE, [REPORT, other], OgcareSettings(citations=str(then)), says())
    questions = Benchmark(artefact).questions
    assert [question.facets["rarity"] for question in questions] == ["rare", "rare"]
    assert [question.facets["cited_by"] for question in questions] == ["1", "1"]
    corpus = Corpus.open(tmp_path / "corpus")
    rows = refilter(questions, corpus.get, load_citations(now), RarityLimits(), before=load_citations(then))
    assert [(row.question, row.state, row.cited_before, row.cited_now) for row in rows] == [
        ("invented-1", "not rare", 1, 5),
        ("invented-2", "rare", 1, 1),
    ]
    assert aging_counts(rows)["not rare"] == 1
    again = build(tmp_path, RECIPE, [REPORT, other], OgcareSettings(citations=str(now)), says())
    assert [question.id for question in Benchmark(again).questions] == ["invented-2"]


def test_parameters_are_read_from_words() -> None:
    settings = read_settings(RECIPE, {"distraction": "false", "year": "2020", "review_rule": "each"})
    assert settings == OgcareSettings(distraction=False, year=2020, review_rule="each")


def test_what_is_told_after_the_step_is_remarked_and_costs_no_call(tmp_path: Path) -> None:
    """Invented, like six sentences that a model was asked about and that had all been known before the step."""
    text = REPORT.text.replace("within 2 days.", "within 2 days. The family had refused an operation from the outset.")
    script = Script(says(altered("ogcare-course", before=[3, 5, 6, 8, 10], after=[9])))
    artefact = build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    assert script.count("ogcare-course") == 1
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert "The family had refused an operation from the outset." in item["facts"]
    (shown,) = [material(request) for name, request in script.requests if name == "ogcare-verify"]
    assert (
        "tells this after the step; look up whether it was known before: The family had" in shown["remarks of a rule"]
    )


def test_what_is_left_out_of_the_case_is_listed(tmp_path: Path) -> None:
    artefact = build_one(tmp_path)
    rows = {row["words"]: row["why"] for row in read_tsv(artefact.file("cuts.tsv"))}
    assert rows["A cardiac septal occluder was deployed across the tract under fluoroscopy."] == (
        "it tells the decisive step"
    )
    assert rows["The output stopped within 2 days."] == "the model says that it came after the decisive step"
    assert rows["He had cirrhosis and no fever."] == "the model does not list it"


def test_the_verifying_call_puts_back_what_is_missing(tmp_path: Path) -> None:
    short = CONTEXT.replace("He had cirrhosis and no fever. ", "")
    said = {
        **altered("ogcare-question", context=short),
        **altered(
            "ogcare-verify",
            missing=[{"sentence": 4, "why": "cirrhosis makes surgery dangerous"}],
            corrected_context=CONTEXT,
        ),
    }
    artefact = build_one(tmp_path, says(said), distraction=False)
    (question,) = Benchmark(artefact).questions
    assert question.context == CONTEXT
    (row,) = read_tsv(artefact.file("corrections.tsv"))
    assert (row["text"], row["before"], row["after"]) == ("context", short, CONTEXT)
    assert row["why"] == "missing: He had cirrhosis and no fever."


@pytest.mark.parametrize(
    "answer",
    [
        "Seal the fistula with a device made for holes in the wall of the heart.",
        "Deploy an occlusion device of interventional cardiology across the fistula through the skin.",
        "Under fluoroscopy, plug the tract with an umbrella device.",
    ],
)
def test_a_paraphrase_of_the_step_is_an_answer(tmp_path: Path, answer: str) -> None:
    """Whether it is the step is for the verifying call to say, not for a comparison of words."""
    artefact = build_one(tmp_path, says(altered("ogcare-question", answer=answer)), distraction=False)
    assert [question.answer for question in Benchmark(artefact).questions] == [answer]


def test_the_core_keeps_its_reasons_and_may_be_told_in_other_words(tmp_path: Path) -> None:
    core = ["contrast imaging was not possible because of anaphylaxis to contrast", "white blood cell count of 900"]
    other = DISTRACTED.replace("no fever", "a normal temperature").replace("washed away twice", "flushed out two times")
    script = Script(says({**altered("ogcare-question", core=core), **altered("ogcare-distract", context=other)}))
    artefact = build_one(tmp_path, {"model": script})
    assert Benchmark(artefact).questions[0].context == other
    shown = [user_text(request) for name, request in script.requests if "distract" in name]
    assert all("because of anaphylaxis to contrast" in text and "white blood cell count" in text for text in shown)


def test_a_fact_that_names_the_answer_need_not_be_kept(tmp_path: Path) -> None:
    """A keep list held "it was impossible" of the answer itself: to keep it gives the answer away."""
    core = ["octreotide failed to reduce 900 mL a day", "an occluder could not be placed at first for lack of 1 device"]
    script = Script(says(altered("ogcare-question", core=core)))
    artefact = build_one(tmp_path, {"model": script})
    shown = [material(request) for name, request in script.requests if "distract" in name]
    assert [each.get("keep") or each["facts that must hold"] for each in shown] == [f"- {core[0]}"] * 2
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["core"] == core


def test_a_sentence_in_the_words_of_the_step_is_remarked_and_costs_no_call(tmp_path: Path) -> None:
    text = REPORT.text.replace("A cardiac", "A percutaneous cardiac septal occluder is rarely used. A cardiac")
    changed = {
        **altered("ogcare-significance", step_sentences=[9]),
        **altered("ogcare-course", before=[3, 5, 6, 8], after=[10]),
    }
    script = Script(says(changed))
    build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    assert script.count("ogcare-course") == 1
    (shown,) = [material(request) for name, request in script.requests if name == "ogcare-verify"]
    assert "has nearly the words of the step: A percutaneous cardiac septal" in shown["remarks of a rule"]


def test_a_changed_number_of_the_core_is_told_to_the_verifying_call(tmp_path: Path) -> None:
    script = Script(says(altered("ogcare-distract", context=DISTRACTED.replace("900 mL", "90 mL"))))
    build_one(tmp_path, {"model": script})
    assert script.count("ogcare-distract") == 1
    shown = next(user_text(request) for name, request in script.requests if name == "ogcare-verify-distraction")
    assert "numbers of the core are gone: 900" in shown


def test_the_verifying_call_corrects_a_distraction(tmp_path: Path) -> None:
    wrong = DISTRACTED.replace("left flank", "right flank")
    said = {
        **altered("ogcare-distract", context=wrong),
        **altered("ogcare-verify-distraction", core_kept="no", corrected=DISTRACTED),
    }
    artefact = build_one(tmp_path, says(said))
    assert Benchmark(artefact).questions[0].context == DISTRACTED
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["distraction_faults"]


def _rounds(folder: Path, answers: Callable[[frozenset[str]], dict[str, object] | None]) -> tuple[Artefact, list[str]]:
    """The benchmark by a batch folder, and the steps of every round; `answers` answers by the fields of a request."""
    corpus, batch = a_corpus(folder, [REPORT]), folder / "batch"
    steps: list[str] = []
    while len(steps) < 12:
        with Ledger(folder / "ledger.sqlite") as ledger:
            window = ContextWindow(tokens=32_000, source="known")
            model = Model(spec="batch", backend=BatchBackend(batch, "m"), ledger=ledger, window=window)
            context = RecipeContext(corpus, OgcareSettings(), models={"model": model})
            try:
                return build_benchmark(RECIPE, context, folder / "bench"), steps
            except BatchPending as pending:
                steps.append(pending.step)
                _answer_batch(batch, len(steps), answers)
    raise AssertionError(steps)


def _answer_batch(folder: Path, number: int, answers: Callable[[frozenset[str]], dict[str, object] | None]) -> None:
    """Answer a round; where `answers` says nothing, the request stays without an answer."""
    lines = []
    for line in (folder / f"requests-{number:03d}.jsonl").read_text().splitlines():
        asked = json.loads(line)
        said = answers(frozenset(asked["body"]["response_format"]["json_schema"]["schema"]["properties"]))
        if said is None:
            continue
        body = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": json.dumps(said)}}]}
        lines.append({"custom_id": asked["custom_id"], "response": {"status_code": 200, "body": body}})
    (folder / f"answers-{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _good(fields: frozenset[str]) -> dict[str, object]:
    """The good answers, by the fields that a request asks for."""
    told = next((said for said in GOOD.values() if frozenset(said) == fields), None)
    if "verdict" in fields:
        told = {"verdict": "sign"} | {name: "" if name in _TEXTS else [] for name in fields - {"verdict"}}
    others = {"rival": "", "others": [], "told": "", "led": "no", "grades": [_RIGHT], "guess": "no", "faults": []}
    return told or {**dict.fromkeys(fields, "yes"), **{name: others[name] for name in fields & set(others)}}


_RIGHT = {"attempt": "A", "counts": "yes", "defensible": "yes", "reason": "the same"}
_TEXTS = {"reason", "grading_note", "new_question", "new_answer"}
_FIRST = ["significance", "course", "question", "verify, moment"]
_REVIEWED = "final review, try the question, guess from the question, distract"
_COMPARED = "compare the answer, grade other answers, referee, verify distraction"


def test_a_batch_folder_takes_six_rounds(tmp_path: Path) -> None:
    artefact, rounds = _rounds(tmp_path, _good)
    assert len(Benchmark(artefact).questions) == 1
    assert rounds == [*_FIRST, _REVIEWED, _COMPARED]


def test_what_is_corrected_or_edited_is_asked_anew_in_one_round_more_each(tmp_path: Path) -> None:
    """Verification changes the case, and the first review as well: the calls sent ahead were about another text."""
    short = CONTEXT.replace("He had cirrhosis and no fever. ", "")
    edit = {"do": "delete", "sentence": 5, "text": "", "sources": [], "why": "not needed"}
    problem = {"kind": "residue", "problem": "too long"}
    reviews = iter([{"verdict": "edit", "edits": [edit], "problems": [problem]}])

    def answers(fields: frozenset[str]) -> dict[str, object]:
        said = _good(fields)
        if "verdict" in fields:
            return {**said, **next(reviews, {})}
        if "corrected_context" in fields:
            return {**said, "missing": [{"sentence": 4, "why": "it matters"}], "corrected_context": CONTEXT}
        return {**said, "context": short} if "rationale" in fields else said

    artefact, rounds = _rounds(tmp_path, answers)
    (original,) = Benchmark(artefact, "original").questions
    assert original.context == CONTEXT[: CONTEXT.index(" Surgery was ruled out")]
    tried = _REVIEWED.removeprefix("final review, ")
    assert rounds == [*_FIRST, "moment", _REVIEWED, "final review, second", tried, _COMPARED]


def test_a_step_does_not_wait_for_the_calls_that_were_sent_ahead(tmp_path: Path) -> None:
    """Who answers the reviews first, because they may edit, gets on with it; what is needed then is asked then."""

    def answers(fields: frozenset[str]) -> dict[str, object] | None:
        ahead = bool(fields & {"answerable", "changes", "led"})
        return None if ahead and next(first, None) else _good(fields)

    first = iter([1, 1, 1])  # the three calls that travel with the first review
    artefact, rounds = _rounds(tmp_path, answers)
    assert len(Benchmark(artefact).questions) == 1
    assert rounds == [*_FIRST, _REVIEWED, _REVIEWED.removeprefix("final review, "), _COMPARED]


def test_the_bound_of_the_estimate_counts_calls_that_a_batch_folder_sends_ahead(tmp_path: Path) -> None:
    corpus = a_corpus(tmp_path, [REPORT])
    bounds = []
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        for backend in (Script(says()), BatchBackend(tmp_path / "batch", "m")):
            model = Model(spec="any", backend=backend, ledger=ledger)
            context = RecipeContext(corpus, OgcareSettings(), models={"model": model}, estimating=True)
            told = BuildPlan(recipe=RECIPE, context=context, models=(model,)).estimate().headline
            bounds.append(int(told.partition("at most ")[2].split()[0]))
    assert bounds[1] - bounds[0] == 1 + 3  # the moment with verification; two trials and distraction with the review


def test_a_name_known_before_the_step_gives_nothing_away(tmp_path: Path) -> None:
    """The step may be named after what the patient has; it must not be told by a name that only the step has."""
    text = REPORT.text.replace("bile flowing", "a Zenker pouch and bile flowing")
    said = {
        **altered("ogcare-significance", step="Zenker's septal occluder"),
        **altered("ogcare-question", context=f"{CONTEXT} He has a Zenker pouch."),
    }
    for number, document in enumerate((msgspec.structs.replace(REPORT, text=text), REPORT)):
        (tmp_path / str(number)).mkdir()
        artefact = build_one(tmp_path / str(number), says(said), document, distraction=False)
        (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
        doubts = [flag for flag in item.get("flags", ()) if "Zenker" in flag]
        assert len(doubts) == number, doubts


def test_pointers_to_figures_and_references_do_not_reach_the_writer(tmp_path: Path) -> None:
    text = REPORT.text.replace("for 6 weeks.", "for 6 weeks (Fig. 1, arrow) [3, 4].")
    artefact = build_one(tmp_path, says(), msgspec.structs.replace(REPORT, text=text))
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["facts"][0].endswith("in the left flank for 6 weeks.")


def test_a_context_can_be_the_facts_word_for_word(tmp_path: Path) -> None:
    artefact = build_one(tmp_path, says(), context="facts", distraction=False)
    (question,) = Benchmark(artefact).questions
    told, limits = question.context.split("\n\n")
    for sentence in (*told.split(". "), limits):
        assert sentence.rstrip(".") in " ".join(REPORT.text.split())
    assert "septal occluder" not in question.context
    assert "washed away twice" in limits
    assert question.answer == GOOD["ogcare-ask"]["answer"]


def test_a_model_that_asks_several_things_is_asked_for_one(tmp_path: Path) -> None:
    said = iter(["What should be done next? Why is that so?", "What should be done next?"])
    script = Script(lambda name, _: {**GOOD[name], "question": next(said)} if name == "ogcare-question" else GOOD[name])
    (question,) = Benchmark(build_one(tmp_path, {"model": script}, distraction=False)).questions
    assert question.text == "What should be done next?"


def test_captions_are_no_sentences_of_the_case(tmp_path: Path) -> None:
    caption = "Figure 2 shows the tract after the device was placed."
    start = len(REPORT.text) + 1
    figure = Figure(id="f", label="Figure 2", caption=caption, start=start, end=start + len(caption))
    report = msgspec.structs.replace(REPORT, text=f"{REPORT.text}\n{caption}", figures=(figure,))
    script = Script(says())
    build_one(tmp_path, {"model": script}, report, distraction=False)
    seen = [name for name, request in script.requests if "after the device was placed" in user_text(request)]
    assert seen == ["ogcare-moment"]  # it compares legends with the text


def test_a_number_that_the_source_breaks_at_its_separator_is_in_the_source(tmp_path: Path) -> None:
    """The source has a stray space ("1, 137, 470, and 620"); the editor who writes 1,137 is right."""
    counts = "CD3+, CD4+, CD8+ counts were 1, 137, 470, and 620 cells/L. He had cirrhosis"
    report = msgspec.structs.replace(REPORT, text=REPORT.text.replace("He had cirrhosis", counts))
    pointing = {
        **altered("ogcare-significance", step_sentences=[9]),
        **altered("ogcare-course", before=[3, 4, 6, 7], after=[10]),
    }
    for number, asked in (("1,137", 1), ("1,138", 2)):
        context = CONTEXT.replace("He had", f"The CD3 count was {number} cells/L. He had")
        script = Script(says({**pointing, **altered("ogcare-question", context=context)}))
        (tmp_path / number).mkdir()
        build_one(tmp_path / number, {"model": script}, report, distraction=False)
        assert script.count("ogcare-question") == asked


@pytest.mark.parametrize(("fact", "asked"), [("was referred for CHLT with", 1), ("presented with", 2)])
def test_what_the_patient_was_referred_for_may_be_named(tmp_path: Path, fact: str, asked: int) -> None:
    text = REPORT.text.replace("presented with", fact).replace(
        "Enterocutaneous", "Combined heart-liver transplantation (CHLT) is rare. Enterocutaneous"
    )
    text = text.replace("A cardiac septal", "A heart-liver transplant on ECMO was done and a cardiac septal")
    step = "heart-liver transplantation with conversion of bypass to ECMO"
    limits = [{"sentences": [8], "limitation": "surgery too risky"}]
    context = CONTEXT.replace("presented", "awaits heart-liver transplantation and came")
    moved = {
        **altered("ogcare-significance", significance_sentences=[3], step_sentences=[9], step=step),
        **altered("ogcare-course", before=[4, 6, 7], after=[10], limitations=limits),
        **altered("ogcare-question", context=context),
    }
    script = Script(says(moved))
    build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    assert script.count("ogcare-question") == asked


def test_a_model_that_lists_no_limitation_is_asked_what_made_the_usual_way_insufficient(tmp_path: Path) -> None:
    """For a step that is a test (bedside ultrasound finds a guidewire) a limitation has no natural content."""
    said = iter([[], GOOD["ogcare-course"]["limitations"]])
    script = Script(
        lambda name, _: {**GOOD[name], "limitations": next(said)} if name == "ogcare-course" else GOOD[name]
    )
    artefact = build_one(tmp_path, {"model": script}, distraction=False)
    assert len(Benchmark(artefact).questions) == 1
    again = [request for name, request in script.requests if name == "ogcare-course"][1]
    assert "what the usual tests left open" in again.messages[-1].content


def test_a_step_that_is_a_test_may_have_no_limitation_if_the_model_insists(tmp_path: Path) -> None:
    """Ultrasound was done for the volume status and found the guidewire by chance."""
    text = REPORT.text.replace("A cardiac septal occluder was deployed", "Bedside ultrasound was done")
    said = {
        **altered("ogcare-significance", step="bedside ultrasound of the tract"),
        **altered("ogcare-course", limitations=[]),
        **altered("ogcare-question", answer="Do a bedside ultrasound of the tract."),
    }
    script = Script(says(said))
    artefact = build_one(tmp_path, {"model": script}, msgspec.structs.replace(REPORT, text=text), distraction=False)
    assert len(Benchmark(artefact).questions) == 1
    assert script.count("ogcare-course") == 2
    shown = next(user_text(request) for called, request in script.requests if called == "ogcare-verify")
    assert "nothing ruled the standard procedure out" in shown


def test_for_a_text_without_a_patient_the_step_may_be_none(tmp_path: Path) -> None:
    said = altered("ogcare-significance", kind="no-case", step="none", step_sentences=[1])
    script = Script(says(said))
    assert ending(build_one(tmp_path, {"model": script})) == ("significance", "tells of no patient's care")
    assert script.count("ogcare-significance") == 1


def test_a_question_whose_rival_stays_is_rejected(tmp_path: Path) -> None:
    """Facts first, then a narrower question; most experts would choose the rival with every fact: rejected."""
    script = Script(says(altered("ogcare-verify", rival="an oxidative burst test")))
    artefact = build_one(tmp_path, {"model": script}, distraction=False)
    assert ending(artefact) == ("verify", "another answer is as good")
    assert script.count("ogcare-verify") == 2
    again = [request for name, request in script.requests if name == "ogcare-verify"][1]
    assert "just as good: an oxidative burst test" in again.messages[-1].content
    assert "most experts would choose it as well with every fact" in again.messages[-1].content


def test_a_question_with_a_rival_answer_is_narrowed_by_facts_of_the_report(tmp_path: Path) -> None:
    narrowed = CONTEXT.replace("He had cirrhosis", "He had cirrhosis that forbids an operation")
    missing = [{"sentence": 7, "why": "speaks against surgery"}]
    replies: list[dict[str, object]] = [{"rival": "surgery"}, {"missing": missing, "corrected_context": narrowed}]
    said = iter(replies)
    script = Script(lambda name, _: {**GOOD[name], **(next(said) if name == "ogcare-verify" else {})})
    (question,) = Benchmark(build_one(tmp_path, {"model": script}, distraction=False)).questions
    assert (question.context, question.facets["doubts"]) == (narrowed, "none")


def test_a_corrected_question_is_used_without_any_listed_fault(tmp_path: Path) -> None:
    narrowed = "Which device should close the tract, beyond drugs and glue?"
    said = altered("ogcare-verify", corrected_question=narrowed, corrected_context=f"{CONTEXT} He felt well.")
    artefact = build_one(tmp_path, says(said), distraction=False)
    (question,) = Benchmark(artefact).questions
    assert (question.text, question.context) == (narrowed, CONTEXT)
    (row,) = read_tsv(artefact.file("corrections.tsv"))
    assert (row["text"], row["after"], row["why"]) == ("question", narrowed, "It is what was new.")
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["flags"] == ["a corrected context is not used: verification lists no fault"]


def test_a_corrected_question_that_can_not_stay_leaves_the_question_as_it_was(tmp_path: Path) -> None:
    script = Script(says(altered("ogcare-verify", corrected_question="Close the tract.")))
    artefact = build_one(tmp_path, {"model": script}, distraction=False)
    assert script.count("ogcare-verify") == 2
    assert Benchmark(artefact).questions[0].text == GOOD["ogcare-question"]["question"]
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert "a corrected text is not used: the question does not end as a question" in item["flags"][0]


def test_what_the_question_is_asked_for_is_not_what_the_final_review_takes_out() -> None:
    asked = load_prompt("ogcare-question").system
    assert "reasons against usual care" not in asked
    assert "the patient's state at the moment of the decision" in asked
    assert 'without "he", "she", "his" or "her"' in asked


@pytest.mark.parametrize("prompt", ["ogcare-verify", "item-review"])
@pytest.mark.parametrize(
    "asked",
    [
        "Check for each value and finding that the case gives it at the time at which the report gives it",
        "may lower the risk of a relapse",
        "a part of the name, of the disease, syndrome or procedure behind the",
        "other than drugs and before any transfusion",
        "most experts would choose",
        "with every fact of the report before them",
        "still conscious",
    ],
)
def test_verification_and_final_review_ask_for_the_same(prompt: str, asked: str) -> None:
    words = " ".join((load_prompt(prompt).system or "").split())
    assert asked in words


def test_values_told_at_another_time_are_mended(tmp_path: Path) -> None:
    """Values of the day of transfer were told as values at discharge."""
    moved = CONTEXT.replace("Bilirubin was", "After parenteral nutrition, bilirubin was")
    said = altered(
        "ogcare-verify",
        unsupported=[{"words": "After parenteral nutrition, bilirubin was 4.2", "why": "it was measured on arrival"}],
        corrected_context=CONTEXT,
    )
    artefact = build_one(tmp_path, says({**altered("ogcare-question", context=moved), **said}), distraction=False)
    assert Benchmark(artefact).questions[0].context == CONTEXT
    (row,) = read_tsv(artefact.file("corrections.tsv"))
    assert "it was measured on arrival" in row["why"]


@pytest.mark.parametrize(
    ("question", "doubted"),
    [
        ("Which test shows the adult-onset immunodeficiency behind this infection?", True),
        ("Which test shows an acquired defect of immunity behind this infection?", False),
        ("What should be done about the septal defect of the drain site?", False),
    ],
)
def test_a_name_of_the_disease_behind_the_answer_is_told_to_the_verifying_call(
    tmp_path: Path, question: str, doubted: bool
) -> None:
    """ "Adult-onset immunodeficiency" names the disease whose test is the answer."""
    known = "Fistulas that need an occluder belong to an adult-onset immunodeficiency syndrome."
    document = msgspec.structs.replace(REPORT, text=f"{REPORT.text} {known}")
    script = Script(says(altered("ogcare-question", question=question)))
    artefact = build_one(tmp_path, {"model": script}, document, distraction=False)
    assert script.count("ogcare-question") == 1
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert ("the question may name the disease behind the answer: adult onset" in str(item.get("flags"))) == doubted


def test_a_word_of_a_part_of_the_step_is_no_certain_leak(tmp_path: Path) -> None:
    """A rule rejected the case of a lost guidewire for "line", a name that it made from the last words of the step."""
    step = "percutaneous cardiac septal occluder of the tract and line"
    changed = {
        **altered("ogcare-significance", step=step),
        **altered("ogcare-question", question="What should be done next at this line?"),
    }
    artefact = build_one(tmp_path, says(changed), distraction=False)
    assert len(Benchmark(artefact).questions) == 1


def test_the_verifying_call_sees_why_the_report_was_published(tmp_path: Path) -> None:
    script = Script(says())
    build_one(tmp_path, {"model": script}, distraction=False)
    shown = next(user_text(request) for name, request in script.requests if name == "ogcare-verify")
    assert str(GOOD["ogcare-significance"]["significance"]) in shown
