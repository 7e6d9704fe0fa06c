"""Other software's answers taken in: the real file against an independent count, formats, meanings, hostile files."""

from __future__ import annotations

import csv
import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import polars
import pytest

from hoofbeat.answering import Run
from hoofbeat.answering.prediction_import import PredictionImport, import_predictions
from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.findings.option_decisions import option_decisions
from hoofbeat.findings.outcomes import choice_outcomes
from hoofbeat.judging.scorers.choice import judge_choice
from hoofbeat.records import Answer, Question
from hoofbeat.store.files import file_sha256
from tests.helpers import shared_data

OPTIONS = {"A": "Gout", "B": "Pseudogout", "C": "Septic arthritis"}


def _lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _row(**values: object) -> dict[str, object]:
    return {"id": "q1", "model": "m", "question": "Why?", "options": OPTIONS, "answer": "A", "predicted": "A", **values}


def _taken(path: Path, wanted: PredictionImport | None = None) -> Run:
    target = path.with_name("run")
    import_predictions(path, target, wanted or PredictionImport())
    return Run.open(target)


def _choices(path: Path, wanted: PredictionImport | None = None) -> list[tuple[str | None, str]]:
    return [(answer.choice, answer.reading) for answer in _taken(path, wanted).answers]


def test_the_real_file_needs_no_options_and_counts_as_computed_independently(tmp_path: Path) -> None:
    file = shared_data("mcq_predictions.jsonl.gz")
    import_predictions(file, tmp_path / "run", PredictionImport())
    run = Run.open(tmp_path / "run")
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    given = Counter(row["model"] for row in rows)
    right = Counter(row["model"] for row in rows if row["answer"] == row["predicted"])
    gold = {question.id: question.answer for question in run.questions}
    assert Counter(answer.model for answer in run.answers) == given
    assert Counter(answer.model for answer in run.answers if answer.choice == gold[answer.question]) == right
    assert len(run.questions) == len({row["id"] for row in rows}) == 594
    facets = Counter(question.facets["dataset"] for question in run.questions)
    assert facets == Counter(row["dataset"] for row in rows if row["model"] == "gpt-4o")
    texts = {row["id"]: row["question"] for row in rows if row["question"]}
    assert {question.id: question.text for question in run.questions} == texts
    assert {answer.condition for answer in run.answers} == {"given, letter"}
    manifest = run.artefact.manifest
    assert manifest.settings["models"] == list(dict.fromkeys(row["model"] for row in rows))
    spent = sum(row["tokens"]["completion_tokens"] for row in rows if row["model"] == "o3-mini")
    assert manifest.costs["o3-mini"].tokens_out == spent


def test_the_same_file_gives_the_same_bytes(tmp_path: Path) -> None:
    file = _lines(tmp_path / "p.jsonl", _row(), _row(id="q2", predicted="C"))
    for name in ("one", "two"):
        import_predictions(file, tmp_path / name, PredictionImport())
    for name in ("questions.jsonl", "answers.jsonl", "manifest.json"):
        assert file_sha256(tmp_path / "one" / name) == file_sha256(tmp_path / "two" / name)


@pytest.mark.parametrize(
    ("predicted", "choice", "how"),
    [
        ("B", "Pseudogout", "only-letter"),
        ("b", "Pseudogout", "only-letter"),
        ("(B)", "Pseudogout", "only-letter"),
        ("Pseudogout", "Pseudogout", "option-text"),
        ("The answer is B.", "Pseudogout", "closing-statement"),
        (["B"], "Pseudogout", "only-letter"),
        (["A", "B"], None, "ambiguous"),
        ("A or B", None, "ambiguous"),
        ("D", None, "none"),
        (None, None, "none"),
        ("", None, "none"),
        ("  ", None, "none"),
        (True, None, "none"),
        (0.5, None, "none"),
        ({"a": 1}, None, "none"),
        (2, None, "ambiguous"),
        ("2", None, "ambiguous"),
        ("I can't provide medical advice.", None, "none"),
    ],
)
def test_what_a_predicted_value_means(tmp_path: Path, predicted: object, choice: str | None, how: str) -> None:
    [(read, reading)] = _choices(_lines(tmp_path / "p.jsonl", _row(predicted=predicted)))
    assert (read, reading.partition(":")[0]) == (choice, how)


def test_numbers_count_from_where_it_is_said(tmp_path: Path) -> None:
    file = _lines(tmp_path / "p.jsonl", _row(options=list(OPTIONS.values()), answer=1, predicted=2))
    assert _choices(file, PredictionImport(count_from=0))[0][0] == "Septic arthritis"
    assert _choices(file, PredictionImport(count_from=1))[0][0] == "Pseudogout"
    assert _taken(file, PredictionImport(count_from=1)).questions[0].answer == "Gout"
    with pytest.raises(InputError, match="0 or from 1"):
        _taken(file)


def test_a_whole_output_is_read(tmp_path: Path) -> None:
    row = _row(text="<think>A?</think>\n\nThe answer is **B**.")
    del row["predicted"]
    answer = _taken(_lines(tmp_path / "p.jsonl", row)).answers[0]
    assert (answer.choice, answer.reading, answer.reasoning) == ("Pseudogout", "closing-statement", "A?")
    assert answer.text == "The answer is **B**."


def test_free_text_without_options_can_be_judged(tmp_path: Path) -> None:
    row = {"id": 1, "model": "m", "question": "Why?", "answer": "Gout.", "output": "Uric acid."}
    run = _taken(_lines(tmp_path / "p.jsonl", row))
    assert run.answers == [Answer(question="1", model="m", condition="given", text="Uric acid.")]
    assert run.questions == [Question(id="1", text="Why?", answer="Gout.")]


def test_options_shuffled_for_a_model_keep_their_meaning(tmp_path: Path) -> None:
    shuffled = {"A": "Septic arthritis", "B": "Gout", "C": "Pseudogout"}
    file = _lines(tmp_path / "p.jsonl", _row(), _row(model="n", options=shuffled, answer="B", predicted="A"))
    run = _taken(file)
    assert [answer.choice for answer in run.answers] == ["Gout", "Septic arthritis"]
    assert run.answers[1].options == tuple(shuffled.values())
    assert run.questions[0].answer == "Gout"


def test_equal_options_stay_two_options(tmp_path: Path) -> None:
    options = {"A": "Gout", "B": "gout", "C": "Pseudogout"}
    run = _taken(_lines(tmp_path / "p.jsonl", _row(options=options, predicted="B")))
    assert run.questions[0].answer == "A. Gout"
    assert run.answers[0].choice == "B. gout"


def test_options_that_no_row_has_are_not_made_up_from_the_letters_that_occur(tmp_path: Path) -> None:
    said = {"a": "A", "b": "(B)", "d": "d.", "none": "", "unsure": "A or B", "told": "The answer is C."}
    rows = [_row(options=None, answer="A", predicted=value, model=model) for model, value in said.items()]
    run = _taken(_lines(tmp_path / "p.jsonl", *rows))
    assert run.questions[0].options == ()
    assert run.questions[0].answer == "A"
    assert [answer.choice for answer in run.answers] == ["A", "B", "D", None, None, "C"]
    assert {(answer.protocol, answer.options) for answer in run.answers} == {("letter", ())}
    outcomes = choice_outcomes(run.questions, run.answers)
    assert [outcome.correct for outcome in outcomes] == [True, False, False, None, None, False]
    assert [outcome.unscored for outcome in outcomes[3:5]] == ["choice:none", "choice:ambiguous"]
    assert option_decisions(run.questions, run.answers) == []
    judged = [judge_choice(run.questions[0], answer).label for answer in run.answers[:2]]
    assert judged == ["correct", "incorrect"]


def test_a_whole_output_is_read_by_letters_where_options_are_not_known(tmp_path: Path) -> None:
    rows = [_row(options=None, predicted=None, text=text, model=text) for text in ("The answer is **D**.", "No idea.")]
    run = _taken(_lines(tmp_path / "p.jsonl", *rows))
    assert [answer.choice for answer in run.answers] == ["D", None]


def test_ids_of_two_data_sets_are_kept_apart(tmp_path: Path) -> None:
    rows = [_row(dataset=name, question=name) for name in ("easy", "hard")]
    run = _taken(_lines(tmp_path / "p.jsonl", *rows))
    assert [question.id for question in run.questions] == ["easy/q1", "hard/q1"]
    assert [question.facets for question in run.questions] == [{"dataset": "easy"}, {"dataset": "hard"}]


def test_conditions_and_samples_tell_answers_apart(tmp_path: Path) -> None:
    rows = [_row(condition="closed", sample=0), _row(condition="closed", sample=1), _row(condition="oracle, letter")]
    run = _taken(_lines(tmp_path / "p.jsonl", *rows))
    assert [(answer.condition, answer.sample) for answer in run.answers] == [
        ("closed, letter", 0),
        ("closed, letter", 1),
        ("oracle, letter", 0),
    ]
    file = _lines(tmp_path / "p.jsonl", _row())
    assert _taken(file, PredictionImport(condition="cot")).answers[0].condition == "cot, letter"


def test_stated_confidence_is_kept(tmp_path: Path) -> None:
    file = _lines(tmp_path / "p.jsonl", _row(confidence=0.9), _row(id="q2", confidence="85%"), _row(id="q3"))
    assert [answer.confidence for answer in _taken(file).answers] == [0.9, 0.85, None]
    with pytest.raises(InputError, match="from 0 to 1"):
        _taken(_lines(tmp_path / "p.jsonl", _row(confidence=85)))


def test_with_a_benchmark_what_is_missing_is_counted(tmp_path: Path) -> None:
    bench = tuple(
        Question(id=f"q{n}", text="Why?", answer="Gout", options=("Pseudogout", "Gout", "Septic arthritis"))
        for n in (1, 2)
    )
    file = _lines(tmp_path / "p.jsonl", {"id": "q1", "model": "m", "predicted": "B"})
    run = _taken(file, PredictionImport(benchmark=bench))
    assert run.questions == list(bench)
    assert [(answer.question, answer.choice) for answer in run.answers] == [("q1", "Gout"), ("q2", None)]
    assert run.answers[1].failure is not None
    assert run.artefact.manifest.counts.failures == {"input": 1}
    shown = _lines(tmp_path / "p.jsonl", {"id": "q1", "model": "m", "predicted": "A", "options": OPTIONS})
    assert _taken(shown, PredictionImport(benchmark=bench)).answers[0].choice == "Gout"
    with pytest.raises(InputError, match="no question 'q9'"):
        _taken(
            _lines(tmp_path / "p.jsonl", {"id": "q9", "model": "m", "predicted": "A"}),
            PredictionImport(benchmark=bench),
        )


def _due(tmp_path: Path, *samples: tuple[str, int]) -> list[tuple[str, int, bool]]:
    """Two questions, of which a system has these (question, sample): what the run says of each, and how many."""
    bench = tuple(
        Question(id=name, text="Why?", answer="Gout", options=("Pseudogout", "Gout")) for name in ("q1", "q2")
    )
    rows = [{"id": name, "model": "m", "predicted": "B", "sample": sample} for name, sample in samples]
    run = _taken(_lines(tmp_path / "p.jsonl", *rows), PredictionImport(benchmark=bench))
    assert run.artefact.manifest.settings["samples"] == len({sample for _, sample in samples})
    return [(answer.question, answer.sample, answer.failure is not None) for answer in run.answers]


def test_samples_that_count_from_one_miss_nothing(tmp_path: Path) -> None:
    given = [(name, sample) for name in ("q1", "q2") for sample in (1, 2, 3)]
    assert _due(tmp_path, *given) == [(name, sample, False) for name, sample in given]


def test_a_sample_that_is_missing_is_counted(tmp_path: Path) -> None:
    found = _due(tmp_path, ("q1", 0), ("q1", 1), ("q2", 0))
    assert found == [("q1", 0, False), ("q1", 1, False), ("q2", 0, False), ("q2", 1, True)]


def test_csv_and_parquet_say_the_same_as_json_lines(tmp_path: Path) -> None:
    rows = [_row(), _row(id="q2", predicted="C"), _row(id="q3", predicted=None)]
    plain = _choices(_lines(tmp_path / "p.jsonl", *rows))
    with (tmp_path / "p.csv").open("w", newline="", encoding="utf-8-sig") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "options": json.dumps(row["options"])} for row in rows)
    assert _choices(tmp_path / "p.csv") == plain
    polars.DataFrame(rows).write_parquet(tmp_path / "p.parquet")
    assert _choices(tmp_path / "p.parquet") == plain
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress((tmp_path / "p.jsonl").read_bytes()))
    assert _choices(tmp_path / "p.jsonl.gz") == plain


def test_options_in_columns_of_their_own(tmp_path: Path) -> None:
    row = {"id": "1", "model": "m", "question": "Why?", "opa": "Gout", "opb": "Lyme", "answer": "b", "predicted": "a"}
    run = _taken(_lines(tmp_path / "p.jsonl", row))
    assert (run.questions[0].answer, run.answers[0].choice) == ("Lyme", "Gout")


GOOD = json.dumps(_row())
HOSTILE = [
    ([GOOD, "{broken"], "line 2"),
    ([GOOD, "[1, 2]"], "line 2"),
    ([GOOD, "\0"], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", question="a\0b"))], "line 2"),
    ([GOOD, json.dumps(_row(id=["q2"]))], "line 2"),
    ([GOOD, json.dumps(_row(id=None))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", model={"a": 1}))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", model="=cmd|' /C calc'!A0"))], "line 2"),
    ([GOOD, json.dumps(_row(id="@SUM(A1)"))], "line 2"),
    ([GOOD, json.dumps(_row(id="q\u001b[31m"))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", question=7))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", options="Gout"))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", options={"A": ["x"]}))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", options=["x"] * 40))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", answer="Z"))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", answer={"a": 1}))], "line 2"),
    ([GOOD, json.dumps(_row(model="n", answer="B"))], "line 2"),
    ([GOOD, json.dumps(_row(model="n", question="Who?"))], "line 2"),
    ([GOOD, json.dumps(_row(model="n", options={"A": "Lyme"}))], "line 2"),
    ([GOOD, json.dumps(_row(id="q2", sample="first"))], "line 2"),
    ([GOOD, "", GOOD], "line 3"),
    ([GOOD, '{"id": "q2", "question": "' + "x" * 9_000_000 + '"}'], "p.jsonl"),
    ([GOOD, "[" * 100_000], "line 2"),
    ([GOOD, '{"id": "\udcff"}'], "line 2"),
    ([], "p.jsonl"),
]


@pytest.mark.parametrize(("lines", "place"), HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_file_is_refused_by_file_and_line_and_nothing_is_written(
    tmp_path: Path, lines: Sequence[str], place: str
) -> None:
    file = tmp_path / "p.jsonl"
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogateescape"))
    with pytest.raises(HoofbeatError) as caught:
        import_predictions(file, tmp_path / "run", PredictionImport())
    assert "p.jsonl" in (caught.value.where or "")
    assert place in (caught.value.where or "")
    assert caught.value.fix
    assert [path.name for path in tmp_path.iterdir()] == ["p.jsonl"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("id,model,predicted\nq1,m\n", "line 2"),
        ('id,model,predicted\nq1,m,"A\n', "line"),
        ("id,id\n1,2\n", "line 1"),
        ("", "line 1"),
        ("id,model,predicted\n=1+1,m,A\n", "line 2"),
        ("id,model,predicted\nq1,m,A\0\n", "line 2"),
        ("id,model,predicted\nq1,m," + "x" * 200_000 + "\n", "line"),
    ],
)
def test_a_hostile_csv_is_refused_by_line(tmp_path: Path, text: str, place: str) -> None:
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    with pytest.raises(HoofbeatError) as caught:
        import_predictions(tmp_path / "p.csv", tmp_path / "run", PredictionImport())
    assert place in (caught.value.where or "")
    assert not (tmp_path / "run").exists()


def test_files_of_other_kinds_and_fields_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "p.txt").write_text("B")
    with pytest.raises(UsageError, match="does not show its format"):
        _taken(tmp_path / "p.txt")
    with pytest.raises(InputError):
        _taken(tmp_path / "absent.jsonl")
    (tmp_path / "p.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError):
        _taken(tmp_path / "p.parquet")
    (tmp_path / "p.jsonl.gz").write_bytes(gzip.compress(b"{}" * 100)[:-6])
    with pytest.raises(InputError):
        _taken(tmp_path / "p.jsonl.gz")
    file = _lines(tmp_path / "p.jsonl", _row())
    with pytest.raises(UsageError, match="'guess'") as caught:
        _taken(file, PredictionImport(fields={"predicted": "guess"}))
    assert "predicted" in (caught.value.fix or "")
    with pytest.raises(UsageError, match="no field with predictions"):
        _taken(_lines(tmp_path / "p.jsonl", {"id": "q1", "model": "m"}))


def test_fields_are_named_where_names_are_unusual(tmp_path: Path) -> None:
    row = {"nr": 1, "who": "m", "q": "Why?", "o": list(OPTIONS.values()), "truth": "C", "said": "C"}
    fields = {"id": "nr", "model": "who", "question": "q", "options": "o", "answer": "truth", "predicted": "said"}
    run = _taken(_lines(tmp_path / "p.jsonl", row), PredictionImport(fields=fields))
    assert (run.questions[0].answer, run.answers[0].choice, run.answers[0].model) == ("Septic arthritis",) * 2 + ("m",)


@pytest.mark.parametrize("first", ["", "sep=;\n"])
def test_a_table_with_semicolons_is_read(tmp_path: Path, first: str) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(first + "id;question;prediction;answer\nq1;Which, of these?;Beta, or so;Beta\n", "utf-8")
    run = Run(import_predictions(file, tmp_path / "run", PredictionImport()))
    assert [(each.question, each.text) for each in run.answers] == [("q1", "Beta, or so")]
