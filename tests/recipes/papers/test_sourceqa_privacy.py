"""sourceqa: nothing leads to whoever asked, limits are parameters, and what reviewers' labels make of questions."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import msgspec
import pytest

from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import InputError
from hoofbeat.models import ChatRequest
from hoofbeat.prompts import load_pack
from hoofbeat.recipes.papers.sourceqa import RECIPE, SourceqaSettings
from hoofbeat.recipes.recipe import read_settings
from hoofbeat.recipes.recipe_items import RecipeItem
from hoofbeat.recipes.review_tasks import ReviewTask
from hoofbeat.store.tables import read_jsonl
from tests.recipes.papers.sourceqa_case import MESSAGES, built, handbooks, harvest_file, rules, turned_away
from tests.recipes.planted import planted_words
from tests.recipes.support import Script, a_context, user_text

_EVERYWHERE = frozenset(
    {"little", "royal", "high", "primary", "extra", "school", "doctor", "sister", "clinic", "ward", "group"}
)
"""Words of planted identifiers that say nothing by themselves, and that other texts use."""


def test_nothing_written_depends_on_who_asked(tmp_path: Path) -> None:
    """No hash and no length of what was removed: with a list of names one could find out the right one."""
    written = []
    for name, mail in (("Ann Lee", "a@mail.org"), ("Bartholomew Miller", "bartholomew.miller@mail.org")):
        row = {"text": f"Hi, I'm {name}, write to {mail}. When may I drive my car again?", "source": name}
        artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, [row] * 4), review_share=1))
        assert len(Benchmark(artefact).questions) == 1
        written.append(dict(artefact.manifest.files))
    assert written[0] == written[1]


def test_a_message_is_in_no_item_before_a_model_has_looked_at_it(tmp_path: Path) -> None:
    settings = SourceqaSettings(harvest=harvest_file(tmp_path, MESSAGES[:3]))
    with a_context(tmp_path, handbooks(), settings, rules) as context:
        items = list(RECIPE.begin(context))
        assert not any("message" in item.values for item in items)
        assert not context.tables["anonymised"].rows
        step = next(each for each in RECIPE.steps(settings) if each.name == "identifiers")
        outcomes = step.run(items, context)
        assert all(isinstance(each, RecipeItem) and each["message"] for each in outcomes)
        assert {row[0] for row in context.tables["anonymised"].rows} == {"q00001", "q00002", "q00003"}


def _by_hand(planted: dict[str, set[str]], name: str, request: ChatRequest) -> object:
    """A model that finds every identifier, and whose later replies go wrong in every way."""
    told = user_text(request)
    if name == "sourceqa-identifiers":
        numbered = re.findall(r"(\d+):(\S+)", told)
        key = max(planted, key=lambda text: len(set(text.split()) & {word for _, word in numbered}))
        hits = [int(n) for n, word in numbered if planted[key] & set(re.findall(r"\w+", word.lower()))]
        return {"found": [{"first": n, "last": n, "kind": "name"} for n in hits]}
    turn = sum(map(ord, told)) % 7
    if name == "sourceqa-rewrite" and turn < 2:
        return {"question": " ".join(re.findall(r"\w+", told)[-12:]) + "?"} if turn else "no json at all"
    if name == "sourceqa-relevance" and turn == 2:
        return {"reason": f"It says {told[-60:]}", "verdict": "off-topic"}
    if name == "sourceqa-same" and turn == 3:
        return {"reason": f"The message says {told[:80]}", "verdict": "different"}
    return rules(name, request)


def test_no_file_holds_what_a_model_found(tmp_path: Path) -> None:
    """Every planted identifier that rules left is in no file of the folder, whatever became of its message."""
    planted = {text: words for text, words in planted_words() if words}
    rows = [{"text": text} for text in planted]
    script = Script(partial(_by_hand, planted))
    settings = SourceqaSettings(harvest=harvest_file(tmp_path, rows), review_share=1)
    artefact = built(tmp_path, settings, {"model": script})
    assert len(Benchmark(artefact).questions) > 10
    assert artefact.manifest.counts.rejected > 5
    assert artefact.manifest.counts.failed > 3
    innocent = {"the", "of", "and", "in", "at", "on"}
    for path in sorted(artefact.path.rglob("*")):
        if path.is_file():
            held = set(re.findall(r"\w+", path.read_text().lower()))
            left = {word for words in planted.values() for word in words if len(word) > 3} - innocent
            assert not (left & held) - _EVERYWHERE, (path.name, sorted((left & held) - _EVERYWHERE))


def test_a_word_that_looks_like_a_name_is_asked_about_twice_and_the_model_decides(tmp_path: Path) -> None:
    def says(name: str, request: ChatRequest) -> object:
        if name != "sourceqa-identifiers":
            return rules(name, request)
        objection = request.messages[-1].content if len(request.messages) > 2 else ""
        if objection:
            assert "Zorbak" in objection
            assert "Prograf" not in objection  # a medicine is no name
            return {"found": [{"first": 3, "last": 3, "kind": "name"}]}
        return {"found": []}

    rows = [{"text": "Yesterday dear Zorbak told me to stop my Prograf. Is that safe after a kidney transplant?"}]
    script = Script(says)
    artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, rows)), {"model": script})
    assert script.count("sourceqa-identifiers") == 2
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["message"].startswith("Yesterday dear [name] told me to stop my Prograf.")


def test_words_that_the_sources_use_are_not_marked_without_an_objection(tmp_path: Path) -> None:
    def says(name: str, request: ChatRequest) -> object:
        if name != "sourceqa-identifiers":
            return rules(name, request)
        told = len(request.messages) > 2 and "ordinary words: 4 to 4 (drive)" in request.messages[-1].content
        return {"found": [] if told else [{"first": 4, "last": 4, "kind": "place"}]}

    rows = [{"text": "When may I drive again after the operation?"}]
    artefact = built(tmp_path, SourceqaSettings(harvest=harvest_file(tmp_path, rows)), says)
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["message"] == "When may I drive again after the operation?"


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
