"""Answers that were queries: judged from the rankings they led to, and set against how good those rankings are."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hoofbeat.errors import InputError
from hoofbeat.judging.blinded_sheet import UNKEYED
from hoofbeat.judging.criteria import answer_key
from hoofbeat.judging.humans import human_judgments, read_labels, write_sheet
from hoofbeat.judging.judge_plan import own_judges
from hoofbeat.judging.query_answers import open_answers
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.models.model_loading import UsedModels
from hoofbeat.reports.comparison.rankings import compare_rankings
from hoofbeat.retrieval.rankings.rankings_folder import rank_line
from hoofbeat.retrieval.rankings.test_collection import open_collection
from hoofbeat.store import Artefact, Ledger
from tests.answering.support import Says, ScriptedServer
from tests.judging.folders import a_judge, by_words, judged_by
from tests.models.support import a_model, ledger_in

DOCUMENTS = {
    "hill": "Invented: Hillside fever follows the bite of the red mite.",
    "low": "Invented: Lowland cough is caused by dust of the grey reed.",
}
GOLD = {"farmer": ("A farmer has bites and feels hot.", "Hillside fever", "hill"),
        "weaver": ("A weaver coughs at work.", "Lowland cough", "low")}  # fmt: skip
RIGHT = Says("", "farmer", "Bites, so mites.\nAnswer: Hillside fever of the red mite.")
WEAVER = Says("", "weaver", "Dust.\nAnswer: Lowland cough by the grey reed.")
WRONG = Says("", "weaver", "Hot?\nAnswer: Hillside fever by the red mite.")


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    monkeypatch.setenv("HOOFBEAT_CACHE", str(tmp_path / "cache"))
    with ledger_in(tmp_path) as opened:
        yield opened


def a_set(folder: Path) -> Path:
    """The two questions as R2MED publishes them."""
    folder.mkdir()
    tables: dict[str, list[dict[str, object]]] = {
        "corpus": [{"id": name, "text": text} for name, text in DOCUMENTS.items()],
        "query": [{"id": name, "text": text, "answer": gold} for name, (text, gold, _) in GOLD.items()],
        "qrels": [{"q_id": name, "p_id": document, "score": 1} for name, (*_, document) in GOLD.items()],
    }
    for name, rows in tables.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def ranked(ledger: Ledger, data: Path, target: Path, *script: Says, line: str = "reason > bm25") -> Artefact:
    collection = open_collection(data)
    with ScriptedServer(*script) as server:
        model = a_model(server.spec(), ledger)
        return rank_line(collection, collection.indexes(), line, target, models=UsedModels(lambda _: model))


def test_right_answers_are_set_against_rankings_over_several_sets(tmp_path: Path, ledger: Ledger) -> None:
    says = by_words(**{"Lowland cough by": "equivalent", "of the red mite": "equivalent", "by the red": "mismatch"})
    judge, _ = a_judge(ledger, says)
    folders, judged = [], []
    for name in ("one", "two"):
        data = a_set(tmp_path / name)
        for model, script in (("good", (RIGHT, WEAVER)), ("poor", (RIGHT, WRONG))):
            path = tmp_path / f"{model}-{name}"
            line = "reason > bm25" if model == "good" else "reason > bm25[k1=1]"
            folder = open_answers(ranked(ledger, data, path, *script, line=line).path)
            assert next(answer.reasoning for answer in folder.each_answer()) == "Bites, so mites."
            assert folder.survey.conditions == ("reason",)
            made = judged_by(folder, tmp_path / f"judged-{path.name}", aspects=("equivalence",), judges=(judge,))
            assert next(answer.text for answer in made.answers) == "Hillside fever of the red mite."
            folders.append(path)
            judged.append(made.artefact.path)
    found = compare_rankings(folders, judged=judged)
    assert [(row.model, row.n, row.accuracy) for row in found.answers] == [
        ("reason > bm25", 4, 1.0),
        ("reason > bm25[k1=1]", 4, 0.5),
    ]
    assert found.answers[1].when_right == 1.0
    assert found.answers[1].when_wrong is not None
    assert found.answers[1].when_wrong < 1.0


def test_several_documents_are_samples_and_a_failed_query_is_a_failed_answer(tmp_path: Path, ledger: Ledger) -> None:
    script = Says("", "farmer", "A passage on mites."), Says("", "weaver", "")
    made = ranked(ledger, a_set(tmp_path / "set"), tmp_path / "out", *script, line="hyde[n=2] > bm25")
    answers = list(open_answers(made.path).each_answer())
    assert [(each.question, each.sample, each.text) for each in answers[:2]] == [
        ("farmer", 0, "A passage on mites."),
        ("farmer", 1, "A passage on mites."),
    ]
    assert answers[2].failure is not None
    assert len(answers) == 3


def test_the_model_that_wrote_the_queries_is_known_as_a_judge(tmp_path: Path, ledger: Ledger) -> None:
    data = a_set(tmp_path / "set")
    collection = open_collection(data)
    with ScriptedServer(RIGHT, WEAVER) as server:
        model = a_model(server.spec(), ledger)
        used = UsedModels(lambda _: model)
        made = rank_line(collection, collection.indexes(), "reason > bm25", tmp_path / "out", models=used)
        folder = open_answers(made.path)
        assert folder.survey.models == (model.identity,)
        assert own_judges(folder, [model]) == [model.spec]


def test_a_ranking_without_written_queries_holds_no_answers(tmp_path: Path, ledger: Ledger) -> None:
    made = ranked(ledger, a_set(tmp_path / "set"), tmp_path / "out", line="bm25")
    with pytest.raises(InputError, match="no model wrote the queries"):
        open_answers(made.path)


def test_the_sheet_of_a_ranking_is_read_for_its_judgments(tmp_path: Path, ledger: Ledger) -> None:
    judge, _ = a_judge(ledger, by_words(mite="equivalent", reed="equivalent"))
    folder = open_answers(ranked(ledger, a_set(tmp_path / "data"), tmp_path / "ranked", RIGHT, WEAVER).path)
    sheet = tmp_path / "labels.csv"
    write_sheet(folder, "equivalence", 2, sheet)
    codes = [row["item"] for row in csv.DictReader(sheet.open(encoding="utf-8-sig", newline=""))]
    assert not set(codes) & {blind_code(answer_key(each), "equivalence", UNKEYED) for each in folder.each_answer()}
    sheet.write_text("\n".join(["item,label,annotator", *(f"{code},equivalent,Dr A" for code in codes)]))
    judged_by(folder, tmp_path / "judged", aspects=("equivalence",), judges=(judge,))
    for path in ("ranked", "judged"):
        made = human_judgments(open_answers(tmp_path / path), {sheet: read_labels(sheet)[0]}, "equivalence")
        assert len(made) == 2
