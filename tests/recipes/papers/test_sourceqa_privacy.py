"""sourceqa: nothing leads to whoever asked, limits are parameters, and what reviewers' labels make of questions."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import InputError
from hoofbeat.prompts import load_pack
from hoofbeat.recipes.papers.sourceqa import RECIPE, SourceqaSettings
from hoofbeat.recipes.recipe import read_settings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.store.tables import read_jsonl
from tests.recipes.papers.sourceqa_case import MESSAGES, built, handbooks, harvest_file, rules, turned_away
from tests.recipes.support import a_context


def test_nothing_written_depends_on_who_asked(tmp_path: Path) -> None:
    """No hash and no length of what was removed: with a list of names one could find out the right one."""
    written = []
    for name, mail in (("Ann Lee", "a@mail.org"), ("Bartholomew Miller", "bartholomew.miller@mail.org")):
        row = {"text": f"Hi, I'm {name}, write to {mail}. When may I drive my car again?", "source": name}
        artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, [row] * 4), review_share=1))
        assert len(Benchmark(artefact).questions) == 1
        written.append(dict(artefact.manifest.files))
    assert written[0] == written[1]


def test_what_was_removed_is_listed_in_one_table_that_grows(tmp_path: Path) -> None:
    settings = SourceqaSettings(harvest=harvest_file(tmp_path, MESSAGES[:3]))
    with a_context(tmp_path, handbooks(), settings, rules) as context:
        items = iter(RECIPE.begin(context))
        next(items)
        table = context.tables["anonymised"]
        first = len(table.rows)
        assert len(list(items)) == 2
        assert context.tables["anonymised"] is table, "no row makes a new table of all rows before it"
        assert len(table.rows) > first > 0


def test_a_site_is_named_when_enough_asked_there(tmp_path: Path) -> None:
    asked = (
        "May I eat sushi?",
        "When may I drive my car again?",
        "Should children be vaccinated?",
        "Is swimming safe?",
    )
    sources = ("https://reddit.com/u/a", "old.reddit.com", "Jane Miller", "Jane Miller")
    rows = [{"text": text, "source": source} for text, source in zip(asked, sources, strict=True)]
    settings = SourceqaSettings(harvest=harvest_file(tmp_path, rows), site_questions=2)
    named = Benchmark(built(tmp_path, settings)).questions
    assert [question.facets.get("site") for question in named] == ["reddit.com", "reddit.com", None, None]
    unnamed = Benchmark(built(tmp_path, msgspec.structs.replace(settings, site_questions=3))).questions
    assert not any("site" in question.facets for question in unnamed)
    assert len(unnamed) == 4


def test_a_rows_group_is_that_of_the_corpus_whatever_its_case(tmp_path: Path) -> None:
    sources = [msgspec.structs.replace(each, facets={"organ": each.title.title()}) for each in handbooks()]
    rows = [{"text": "May I eat sushi while I take tacrolimus?", "organ": "KIDNEY"}]
    artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, rows)), sources=sources)
    (question,) = Benchmark(artefact).questions
    assert question.facets["group"] == "Kidney"
    routing = artefact.manifest.metrics["routing"]
    assert isinstance(routing, dict)
    assert routing["asked"] == 1


def test_limits_of_the_harvest_are_parameters(tmp_path: Path) -> None:
    path = harvest_file(tmp_path, MESSAGES[:2])
    for limits in ({"harvest_rows": "1"}, {"harvest_bytes": "10"}):
        with pytest.raises(InputError, match=r"more than 1 rows|larger than 10 bytes") as raised:
            built(tmp_path, read_settings(RECIPE, {"harvest": path, **limits}))  # type: ignore[arg-type]
        assert next(iter(limits)) in str(raised.value.fix)
    artefact = built(tmp_path, SourceqaSettings(harvest=path, harvest_characters=20))
    assert {each.reason for each in turned_away(artefact).values()} == {"the question is longer than 20 characters"}


def test_the_manifest_names_the_pack_as_it_was(tmp_path: Path) -> None:
    artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, MESSAGES[:1])))
    pack = load_pack("transplant")
    assert pack.fingerprint
    assert artefact.manifest.metrics["pack"] == f"transplant@{pack.fingerprint}"


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("q00001,funny,yes", "criterion 'funny'"),
        ("q00001,relevant,perhaps", "neither yes nor no"),
        ("q00099,same,5", "neither yes nor no"),
        ("q00099,anonymous,5", "neither yes nor no"),
    ],
)
def test_labels_that_mean_nothing_are_refused(tmp_path: Path, line: str, what: str) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text(f"item,criterion,value\n{line}\n")
    with pytest.raises(InputError, match=what):
        built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, MESSAGES[:1]), reviews=str(labels)))


def test_a_question_has_passed_when_all_was_asked_about_it(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    settings = SourceqaSettings(harvest=harvest_file(tmp_path, MESSAGES[:1]), review_share=1, reviews=str(labels))
    said = ["item,criterion,value", "q00001,relevant,yes", "q00001,anonymous,1", "q00777,relevant,no"]
    labels.write_text("\n".join(said))
    artefact = built(tmp_path, settings)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["review"] == "waiting"
    tasks = list(read_jsonl(artefact.file("review.jsonl"), ReviewTask))
    assert {(task.item, task.criteria) for task in tasks} == {("q00001", ("stands alone",))}
    assert artefact.manifest.metrics["review labels"] == {"used": 2, "for items not here": 1}
    labels.write_text("\n".join([*said, "q00001,stands alone,true"]))
    artefact = built(tmp_path, settings)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["review"] == "passed"
    assert not list(read_jsonl(artefact.file("review.jsonl"), ReviewTask))
