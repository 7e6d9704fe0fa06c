"""`hoofbeat check` as it is run: faults that were planted are found, by rules alone or with a recorded model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import hoofbeat as hb
from hoofbeat.answering.prediction_import import PredictionImport, import_predictions
from hoofbeat.benchmarks import Benchmark, write_benchmark
from hoofbeat.errors import InputError, UsageError
from hoofbeat.recipes.answered_folders import read_answered
from hoofbeat.recipes.short_form import shorten_benchmark
from hoofbeat.records import Question
from hoofbeat.store import Counts
from tests.cli.support import hoofbeat, json_of

QUESTIONS = [
    Question(
        id="leak",
        text="What is the most likely diagnosis?",
        context="A man of 40 with fever had been told elsewhere that he had sarcoidosis.",
        answer="Sarcoidosis",
        options=("Sarcoidosis", "Gout", "Scurvy", "Brucellosis"),
    ),
    Question(
        id="twin",
        text="What is the most likely diagnosis?",
        context="A man of 50 with black nasal crusts and a blood glucose of 400 mg/dL.",
        answer="Mucormycosis",
        options=("Mucormycosis", "Zygomycosis", "Aspergillosis", "Nasal polyps"),
    ),
    Question(
        id="sound",
        text="What is the most likely diagnosis?",
        context="A woman of 30 with C-shaped crystals in her knee and a red great toe.",
        answer="Gout",
        options=("Gout", "Scurvy", "Brucellosis", "Sarcoidosis"),
    ),
    Question(id="open", text="What should be done next?", context="A man has a stone.", answer="Remove it."),
    Question(id="lost", text="Which?", answer="Nowhere", options=("Gout", "Scurvy")),
    Question(id="unanswered", text="Which?"),
]
FINE = {"reason": "another", "relation": "different", "also_right": "no", "absurd": "no", "style": "same"}


def a_replay(path: Path) -> None:
    """A recorded model; it finds Zygomycosis to be Mucormycosis, and something missing from the stone's case."""
    compared = [{"option": letter, **FINE} for letter in "ABC"]
    same = [{**each, "relation": "same", "reason": "the older name"} for each in compared]
    rules = [
        {"contains": "is withheld from", "text": {"reason": "none", "led": "no", "answer": "Anything."}},
        {"contains": "how an examination is graded",
         "text": {"grades": [{"attempt": "A", "counts": "no", "defensible": "no", "reason": "x"}], "guess": "no"}},
        {"contains": "tested for giveaways", "text": {"reason": "form", "choice": "A", "basis": "style"}},
        {"contains": "what an examinee\nanswered",
         "text": {"reason": "x", "match": "no", "supported": "no", "missing": "its size", "rival": ""}},
        {"contains": "`choice`", "text": {"reason": "f", "choice": "A", "answerable": "yes", "missing": ""}},
        {"contains": "A) Zygomycosis", "text": {"options": [same[0], *compared[1:]]}},
        {"contains": "B) Zygomycosis", "text": {"options": [compared[0], same[1], compared[2]]}},
        {"contains": "C) Zygomycosis", "text": {"options": [*compared[:2], same[2]]}},
        {"contains": "Judge every wrong option", "text": {"options": compared}},
        {"contains": "", "text": {
            "reason": "f", "answer": "Wait.", "others": [], "told": "", "answerable": "yes", "missing": ""}},
    ]  # fmt: skip
    path.write_text(
        "".join(json.dumps({**rule, "text": json.dumps(rule["text"])}) + "\n" for rule in rules), encoding="utf-8"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "bench", QUESTIONS, title="planted", inputs=[], counts=Counts(kept=len(QUESTIONS)))
    a_replay(tmp_path / "model.jsonl")
    return tmp_path


def _doubts(folder: Path) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in (folder / "check" / "checks.jsonl").read_text().splitlines()]
    return {row["question"]: [each["doubt"] for each in row.get("findings", ())] for row in rows}


def test_rules_alone_find_leaks_and_lost_answers(folder: Path) -> None:
    done = json_of(hoofbeat("check", "bench", "--rules-only", "--json", folder=folder))
    assert _doubts(folder)["leak"] == ["names its answer"]
    assert _doubts(folder)["lost"] == ["answer is not an option"]
    assert _doubts(folder)["sound"] == []
    assert done["summary"]["place"]["counts"] == [3, 0, 0, 0]
    assert done["summary"]["longest"]["observed"] == 0
    assert done["cost"]["calls"] == 0
    assert not (folder / ".hoofbeat" / "ledger.sqlite").exists() or done["summary"]["guess"] is None


def test_a_model_finds_what_rules_do_not(folder: Path) -> None:
    words = ("check", "bench", "--model", "replay:model.jsonl")
    asked = json_of(hoofbeat(*words, "--estimate", "--json", folder=folder))["estimate"]
    assert asked["calls"] == 3 * 3 + 4  # an open question is answered and guessed; both are compared
    told = hoofbeat(*words, folder=folder)
    found = _doubts(folder)
    assert "second right option" in found["twin"]
    assert found["open"] == ["not answerable", "answered wrongly"]
    summary = json.loads((folder / "check" / "summary.json").read_text())
    assert summary["trials"]["guessed from the question"] == {"of": 1, "right": 0}
    assert found["unanswered"] == []
    assert "No doubt about " in told.stderr
    table = (folder / "check" / "doubts.tsv").read_text()
    assert "Zygomycosis means the same as the answer: the older name" in table
    files = {path.name: path.read_bytes() for path in (folder / "check").iterdir()}
    again = json_of(hoofbeat(*words, "--estimate", "--json", folder=folder))["estimate"]
    assert again["calls"] == 0
    hoofbeat(*words, folder=folder)
    assert {path.name: path.read_bytes() for path in (folder / "check").iterdir()} == files
    hoofbeat("verify", "check", folder=folder)


def test_parts_can_be_left_out(folder: Path) -> None:
    words = ("check", "bench", "--model", "replay:model.jsonl", "--without", "answer", "--without", "leaks")
    done = json_of(hoofbeat(*words, "--without", "place", "--json", folder=folder))
    assert done["summary"]["parts"] == ["options", "guess", "compare"]
    assert done["summary"]["place"] is None
    assert done["cost"]["calls"] == 6
    every = [word for part in ("leaks", "options", "place") for word in ("--without", part)]
    told = hoofbeat("check", "bench", "--rules-only", *every, folder=folder, code=2).stderr
    assert "all parts of the check are left out" in told


def test_a_budget_stops_it_and_the_same_command_goes_on(folder: Path) -> None:
    words = ("check", "bench", "--model", "replay:model.jsonl")
    hoofbeat(*words, "--budget", "2calls", folder=folder, code=3)
    assert not (folder / "check").exists()
    assert json_of(hoofbeat(*words, "--estimate", "--json", folder=folder))["estimate"]["calls"] == 11


def test_a_report_shows_it(folder: Path) -> None:
    hoofbeat("check", "bench", "--model", "replay:model.jsonl", folder=folder)
    hoofbeat("report", "check", "-o", "report", folder=folder)
    page = (folder / "report" / "report.html").read_text(encoding="utf-8")
    for words in ("Check: bench", "second right option", "Position of the right option", "the older name"):
        assert words in page


BY_PLACE = ("--rules-only", "--without", "leaks", "--without", "options")  # no vocabulary is loaded


def planted_run(folder: Path, systems: int = 10, questions: int = 24) -> None:
    """Questions of rising difficulty, and predictions of systems of rising ability; the last question has a wrong key.

    The first system is unreadable once; one more system sees only the options.
    """
    options = ("Gout", "Scurvy", "Brucellosis", "Sarcoidosis")
    items = [
        Question(id=f"q{n}", text="Which?", context=f"Case {n}.", answer=options[n % 4], options=options)
        for n in range(questions)
    ]
    write_benchmark(folder / "exam", items, title="exam", inputs=[], counts=Counts(kept=questions))
    rows = []
    for able in range(systems):
        for n, item in enumerate(items):
            right = able * questions > n * systems * 0.9 and n < questions - 1
            said = "?" if (able, n) == (0, 3) else item.answer if right else options[(n + 1) % 4]
            rows.append({"id": item.id, "model": f"m{able}", "predicted": said, "confidence": 0.5 + able / 20})
    rows += [{"id": item.id, "model": "m9", "predicted": "Gout", "condition": "options"} for item in items]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    wanted = PredictionImport(condition="closed", benchmark=tuple(items))
    import_predictions(folder / "rows.jsonl", folder / "run", wanted)


def test_answers_tell_how_good_the_questions_are(tmp_path: Path) -> None:
    planted_run(tmp_path)
    done = hoofbeat("check", "exam", "--answers", "run", *BY_PLACE, folder=tmp_path).stderr
    assert "answers of 10 systems to 24 questions: reliability" in done
    assert "m9 under 'options, letter': 6 of 24 right (6.0 expected by chance" in done
    assert "systems agree on another option" in _doubts(tmp_path)["q23"]
    found = json.loads((tmp_path / "check" / "answers.json").read_text())
    assert [each["kind"] for each in found["calibrations"]] == ["stated"] * 10
    assert found["abstentions"][0]["unreadable"] == 1
    page = hb.report([tmp_path / "check"], tmp_path / "report", formats=["markdown"]).path / "report.md"
    for words in ("What answers say about exam", "Questions needed to separate two systems", "Confidence and right"):
        assert words in page.read_text(encoding="utf-8")


def test_a_short_benchmark_is_chosen_by_answers(tmp_path: Path) -> None:
    planted_run(tmp_path)
    told = hoofbeat("benchmark", "shorten", "exam", "--answers", "run", "--questions", "6", folder=tmp_path).stderr
    assert "held-out systems" in told
    short = Benchmark.open(tmp_path / "short")
    assert len(short.questions) == 6
    assert {question.id for question in short.questions} <= {f"q{n}" for n in range(24)}
    whole = Benchmark.open(tmp_path / "exam")
    again = shorten_benchmark(whole, [tmp_path / "run"], tmp_path / "again", questions=6)
    assert Benchmark(again.artefact).questions == short.questions
    found = shorten_benchmark(whole, [tmp_path / "run"], tmp_path / "found")
    assert 1 <= len(Benchmark(found.artefact).questions) < 24


def test_answers_to_other_questions_are_refused(tmp_path: Path) -> None:
    planted_run(tmp_path, systems=2, questions=3)
    bench = Benchmark.open(tmp_path / "exam")
    assert read_answered([tmp_path / "run"], bench.questions[:2]).others == 3
    with pytest.raises(UsageError, match="outside the benchmark"):
        read_answered([tmp_path / "run"], QUESTIONS)
    with pytest.raises(InputError, match="another answer or other options"):
        read_answered([tmp_path / "run"], [Question(id="q0", text="?", answer="Scurvy", options=("Scurvy", "Gout"))])
    with pytest.raises(UsageError, match="too few to test"):
        shorten_benchmark(bench, [tmp_path / "run"], tmp_path / "short")


def test_the_python_face_checks_too(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert hb.check("bench", rules_only=True, estimate=True).calls == 0
    found = hb.check("bench", "by-python", rules_only=True)
    assert found.summary["questions"] == len(QUESTIONS)
    assert isinstance(hb.open("by-python"), hb.CheckFolder)
