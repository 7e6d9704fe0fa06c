"""The machinery of recipes, tried with a recipe of three steps written here (which is also a recipe of one's own)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from msgspec import Meta

from hoofbeat.benchmarks import Benchmark, locate
from hoofbeat.errors import BatchPending, UsageError
from hoofbeat.models import ChatRequest, Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.requests import Trouble
from hoofbeat.prompts import load_prompt
from hoofbeat.recipes.benchmark_output import build_benchmark, estimate_calls
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe import (
    Edition,
    Recipe,
    RecipeOutput,
    find_recipe,
    from_documents,
    parameters,
    read_settings,
)
from hoofbeat.recipes.recipe_items import FailedItem, ItemRejection, Outcome, RecipeItem, RejectedItem
from hoofbeat.recipes.review_tasks import ReviewTask, drawn_for_review
from hoofbeat.recipes.steps import ask, check, sample
from hoofbeat.records import Document, Question
from hoofbeat.registry import registry
from hoofbeat.store import Ledger
from hoofbeat.store.tables import read_jsonl, read_tsv
from hoofbeat.window import ContextWindow
from tests.recipes.support import Script, a_context, a_corpus, build, user_text


class Few(RecipeSettings, frozen=True, kw_only=True):
    """Parameters of the recipe below."""

    FILES: ClassVar[tuple[str, ...]] = ()
    minimum: Annotated[int, Meta(description="Fewest characters.", ge=0)] = 10
    draw: Annotated[int, Meta(description="How many to draw; 0 takes all.", ge=0)] = 0


def _long_enough(item: RecipeItem, context: RecipeContext) -> Outcome:
    text = context.document(item.documents[0]).text
    return (
        item
        if len(text) >= context.settings.minimum
        else ItemRejection(reason="too short", details=f"{len(text)} characters")
    )


def _values(item: RecipeItem, context: RecipeContext) -> dict[str, object] | ItemRejection:
    text = context.document(item.documents[0]).text
    if "nothing" in text:
        return ItemRejection(reason="nothing to ask")
    return {"question": "What is it?", "reference": "x", "answer": text}


def _read(item: RecipeItem, value: dict[str, Any], context: RecipeContext) -> Outcome:
    span = locate(context.document(item.documents[0]), str(value["reason"]))
    if span is None:
        return ItemRejection(reason="a quote is not in the source", details=str(value["reason"]))
    return item.put(quote=span.quote).proven(span).labelled(label=str(value["label"]))


def _finish(items: Any, context: RecipeContext) -> RecipeOutput:
    made = tuple(
        Question(id=item.id, text="What is it?", answer=item["quote"], documents=item.documents,
                 evidence=item.evidence, facets=item.facets, lineage=item.lineage)
        for item in items
    )  # fmt: skip
    tasks = [
        ReviewTask(item=item.id, kind="likert", criteria=("clear",), why="drawn")
        for item in drawn_for_review(items, context, "end", 0.5)
    ]
    return RecipeOutput(
        questions=made, editions=(Edition(name="bare", about="the same", questions=made),), review=tuple(tasks)
    )


TOY = Recipe(
    name="toy",
    title="A toy",
    about="Quotes.",
    settings=Few,
    begin=from_documents,
    steps=lambda s: [
        check("length", _long_enough),
        sample("draw", s.draw),
        ask("quote", "equivalence", values=_values, read=_read),
    ],
    finish=_finish,
)


def _documents(count: int = 6) -> list[Document]:
    texts = [f"The patient {n} had a rare condition of the liver." for n in range(count)]
    return [Document(id=f"d{n}", title=f"Case {n}", text=text) for n, text in enumerate(texts)] + [
        Document(id="short", title="Short", text="Short."),
        Document(id="void", title="Void", text="There is nothing to see here."),
    ]


def _says(name: str, request: ChatRequest) -> object:
    text = user_text(request)
    if "patient 1 " in text:
        return {"reason": "words that stand nowhere", "label": "equivalent"}
    if "patient 2 " in text:
        return Trouble(kind="bad-request", message="no", retryable=False)
    if "patient 3 " in text:
        return "no JSON at all"
    return {"reason": "a  rare condition", "label": "mismatch"}


def test_every_candidate_is_accounted_for(tmp_path: Path) -> None:
    artefact = build(tmp_path, TOY, _documents(), Few(), _says)
    manifest = artefact.manifest
    assert [question.id for question in Benchmark(artefact).questions] == ["d0", "d4", "d5"]
    assert manifest.counts.kept == 3
    assert manifest.counts.reasons == {
        "a quote is not in the source": 1,
        "nothing to ask": 1,
        "too short": 1,
    }
    assert manifest.counts.failures == {"bad-request": 1, "unreadable": 1}
    funnel = list(read_tsv(artefact.file("funnel.tsv")))
    assert [(row["step"], row["in"], row["kept"], row["rejected"], row["failed"]) for row in funnel] == [
        ("length", "8", "7", "1", "0"),
        ("draw", "7", "7", "0", "0"),
        ("quote", "7", "3", "2", "2"),
    ]
    rejected = {each.id: each for each in read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)}
    assert rejected["short"].details == "6 characters"
    assert rejected["d1"].step == "quote"
    assert {each.id for each in read_jsonl(artefact.file("failed.jsonl"), FailedItem)} == {"d2", "d3"}
    assert manifest.metrics["review"] == {"likert": 2}
    assert manifest.metrics["facets"] == {"label": {"mismatch": 3}}
    assert "equivalence" in manifest.prompts
    assert manifest.cost.calls == 6  # of six calls one was refused, which costs nothing, and one repaired


def test_evidence_and_lineage_reach_the_question(tmp_path: Path) -> None:
    question = Benchmark(build(tmp_path, TOY, _documents(), Few(), _says)).questions[0]
    assert question.evidence[0].quote == "a rare condition"
    (step,) = question.lineage
    assert step.name == "quote"
    assert step.prompt.startswith("equivalence@")
    assert step.model == "scripted"
    assert step.call


def test_same_seed_and_ledger_same_bytes_and_no_more_calls(tmp_path: Path) -> None:
    script = Script(_says)
    first = build(tmp_path, TOY, _documents(), Few(draw=4), {"model": script})
    files, made = dict(first.manifest.files), len(script.requests)
    again = build(tmp_path, TOY, _documents(), Few(draw=4), {"model": script})
    assert again.manifest.files == files
    assert again.manifest.cost == first.manifest.cost
    failures = first.manifest.counts.failures.get("bad-request", 0)
    assert len(script.requests) - made == failures  # only what the endpoint refused is asked again


def test_another_seed_draws_others(tmp_path: Path) -> None:
    drawn = set()
    for seed in range(6):
        with a_context(tmp_path, _documents(20), Few(draw=5), _says, seed=seed) as context:
            outcomes = sample("draw", 5).run(list(from_documents(context)), context)
            kept = tuple(outcome.id for outcome in outcomes if isinstance(outcome, RecipeItem))
            assert len(kept) == 5
            drawn.add(kept)
    assert len(drawn) > 1


def test_an_estimate_makes_no_call_and_writes_nothing(tmp_path: Path) -> None:
    script = Script(_says)
    with a_context(tmp_path, _documents(), Few(), {"model": script}, estimating=True) as context:
        found = estimate_calls(TOY, context)
    assert found is not None
    assert found.step == "quote"
    assert found.estimate.calls == 6
    assert not script.requests
    assert not (tmp_path / "bench").exists()


def test_an_estimate_says_nothing_is_left_and_builds_nothing(tmp_path: Path) -> None:
    well = _documents(1)[:1]
    build(tmp_path, TOY, well, Few(), _says)
    shutil.rmtree(tmp_path / "bench")
    with a_context(tmp_path, well, Few(), _says, estimating=True) as context:
        assert estimate_calls(TOY, context) is None
    assert not (tmp_path / "bench").exists()


def test_what_does_not_fit_the_window_is_counted(tmp_path: Path) -> None:
    prompt = load_prompt("equivalence")

    def values(item: RecipeItem, context: RecipeContext) -> dict[str, object]:
        text = context.fit(context.document(item.documents[0]).text, prompt)
        return {"question": "What is it?", "reference": "x", "answer": text}

    recipe = msgspec.structs.replace(TOY, steps=lambda s: [ask("quote", "equivalence", values=values, read=_read)])
    long = Document(id="long", title="Long", text="A rare condition. " * 4000)
    with a_context(tmp_path, [*_documents(2)[:2], long], Few(), _says) as context:
        artefact = build_benchmark(recipe, context, tmp_path / "bench")
        left = context.left_out()["equivalence"]
    assert (left["texts"], left["of"]) == (1, 3)
    assert left["characters_left_out"] > 40_000
    assert artefact.manifest.metrics["cut to fit"] == {"equivalence": left}
    with a_context(tmp_path, _documents(), Few(), _says) as context:
        context.model().window = ContextWindow(tokens=500, source="configured")
        with pytest.raises(UsageError, match="too small for the prompt equivalence"):
            context.fit("text", prompt)


def test_committee_roles_come_in_their_order(tmp_path: Path) -> None:
    scripts = {f"committee-{number}": Script(_says, f"m{number}") for number in range(1, 12)}
    with a_context(tmp_path, _documents(), Few(), {"model": Script(_says), **scripts}) as context:
        assert context.committee() == [f"committee-{number}" for number in range(1, 12)]


def test_editions_are_opened_by_name(tmp_path: Path) -> None:
    artefact = build(tmp_path, TOY, _documents(), Few(), _says)
    assert Benchmark(artefact).editions() == ["bare"]
    assert Benchmark.open(artefact.path, "bare").questions == Benchmark(artefact).questions
    assert Benchmark.open(artefact.path, "bare").qrels() == Benchmark(artefact).qrels()
    with pytest.raises(Exception, match="no edition 'other'"):
        Benchmark.open(artefact.path, "other")


def test_parameters_are_listed_and_read() -> None:
    assert [(each.name, each.default, each.about) for each in parameters(TOY)] == [
        ("minimum", 10, "Fewest characters."),
        ("draw", 0, "How many to draw; 0 takes all."),
    ]
    assert read_settings(TOY, {"minimum": "3"}) == Few(minimum=3)
    with pytest.raises(UsageError, match="no parameter 'maximum'"):
        read_settings(TOY, {"maximum": "3"})
    with pytest.raises(UsageError, match="can't be used"):
        read_settings(TOY, {"minimum": "few"})
    with pytest.raises(UsageError, match="can't be used"):
        read_settings(TOY, {"minimum": "-1"})


@pytest.mark.usefixtures("recipes_only")
def test_a_recipe_of_ones_own_is_one_file(tmp_path: Path) -> None:
    assert find_recipe(__file__).name == "toy"
    for text, message in (("x = 1", "defines no extension"), ("1 / 0", "ZeroDivisionError"), ("def", "SyntaxError")):
        file = tmp_path / "mine.py"
        file.write_text(text)
        with pytest.raises(UsageError, match=message):
            find_recipe(str(file))
    file = tmp_path / "pair.py"
    file.write_text(OWN.replace("PLACE", "deep") + "OTHER = msgspec.structs.replace(RECIPE, name='other')\n")
    with pytest.raises(UsageError, match="defines 2 recipes"):
        find_recipe(str(file))
    assert find_recipe("other").summary == "Mine"
    with pytest.raises(UsageError, match="there is no recipe"):
        find_recipe("nonesuch")
    with pytest.raises(UsageError, match="no such recipe file"):
        find_recipe(str(tmp_path / "other.py"))


OWN = """from __future__ import annotations
from typing import Annotated, ClassVar, Literal
import msgspec
from msgspec import Meta
from hoofbeat.prompts import parse_prompt
from hoofbeat.recipes.recipe import RecipeOutput, Recipe, from_documents
from hoofbeat.recipes.steps import ask
from hoofbeat.recipes.context import RecipeSettings

PROMPT = parse_prompt("mine", '''+++
purpose = "Name the colour."
variables = ["text"]
+++
## user
{{ text | material("text") }}
## output
{"type": "object", "properties": {"colour": {"type": "string"}}, "required": ["colour"]}
''')


class Mine(RecipeSettings, frozen=True, kw_only=True):
    FILES: ClassVar[tuple[str, ...]] = ()
    shade: Annotated[Literal["light", "dark"], Meta(description="Which.")] = "light"
    PLACE: Annotated[bool, Meta(description="Whether.")] = True


RECIPE = Recipe(
    name="mine", title="Mine", about="Colours.", settings=Mine, begin=from_documents,
    steps=lambda s: [ask("colour", PROMPT, values=lambda item, context: {"text": context.document(item.id).text},
                         read=lambda item, value, context: item.put(colour=value["colour"]))],
    finish=lambda items, context: RecipeOutput(questions=()),
)
"""


@pytest.mark.usefixtures("recipes_only")
def test_a_recipe_of_ones_own_brings_its_own_prompt_and_choices(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN.replace("PLACE", "deep"))
    recipe = find_recipe(str(file))
    assert [each.choices for each in parameters(recipe)] == [("dark", "light"), ("true", "false")]
    with pytest.raises(UsageError, match="shade can't be 'pale'"):
        read_settings(recipe, {"shade": "pale"})
    settings = read_settings(recipe, {"shade": "dark", "deep": "no"})
    artefact = build(tmp_path, recipe, _documents(1)[:1], settings, lambda name, _request: {"colour": name})
    (item,) = read_jsonl(artefact.file("items.jsonl"), RecipeItem)
    assert item["colour"] == "mine"
    assert artefact.manifest.prompts["mine"].startswith("mine@")
    assert artefact.manifest.settings["deep"] is False


@pytest.mark.usefixtures("recipes_only")
def test_a_recipe_of_ones_own_must_not_take_a_common_option(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN.replace("PLACE", "seed"))
    with pytest.raises(UsageError, match="called seed"):
        find_recipe(str(file))


def test_shipped_recipes_load_and_document_their_parameters() -> None:
    for name in registry.names(Recipe):
        recipe = find_recipe(name)
        assert recipe.name == name
        steps = recipe.steps(recipe.settings())
        assert len({step.name for step in steps}) == len(steps)
        assert all(parameter.about for parameter in parameters(recipe)), f"{name} has a parameter without a meaning"


def test_a_batch_folder_carries_a_recipe_across_its_rounds(tmp_path: Path) -> None:
    """Each step that asks is a round: requests are written, answered elsewhere, and the same command goes on."""
    again = ask(
        "again",
        "equivalence",
        values=lambda item, _context: {"question": item["quote"], "reference": "x", "answer": item.id},
        read=lambda item, value, _context: item.put(second=str(value["label"])),
    )
    recipe = msgspec.structs.replace(TOY, steps=lambda s: [*TOY.steps(s), again])
    corpus = a_corpus(tmp_path, _documents())
    folder = tmp_path / "batch"
    rounds = 0
    told: list[BatchPending] = []
    funnels: list[list[str]] = []
    refused: list[list[RejectedItem]] = []
    while True:
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            model = Model(spec="batch", backend=BatchBackend(folder, "m"), ledger=ledger)
            context = RecipeContext(corpus, Few(), models={"model": model})
            try:
                artefact = build_benchmark(recipe, context, tmp_path / "bench")
                break
            except BatchPending as pending:
                rounds += 1
                assert not (tmp_path / "bench").exists()
                told.append(pending)
                funnels.append((folder / "bench-so-far" / "funnel.tsv").read_text().splitlines())
                refused.append(list(read_jsonl(folder / "bench-so-far" / "rejected.jsonl", RejectedItem)))
                _answer(folder, rounds)
    assert rounds == 3  # the first step, its repair, the second step
    assert funnels[0] == funnels[1], "the repair belongs to the same step"
    assert funnels[0][0].split("\t")[-1] == "waiting"
    assert [each.round for each in told] == [1, 2, 3]
    assert {each.details["so_far"] for each in told} == {str(folder / "bench-so-far")}
    assert int(funnels[2][-1].split("\t")[-1]) == int(funnels[2][-1].split("\t")[1]) > 0
    assert {line.split("\t")[-1] for line in funnels[2][1:-1]} == {"0"}
    assert len(refused[2]) == artefact.manifest.counts.rejected > len(refused[0])
    assert not (folder / "bench-so-far").exists(), "the benchmark has it all"
    assert artefact.manifest.counts.kept == 4
    assert [item.values["second"] for item in read_jsonl(artefact.file("items.jsonl"), RecipeItem)] == ["mismatch"] * 4


def _answer(folder: Path, number: int) -> None:
    lines = []
    for line in (folder / f"requests-{number:03d}.jsonl").read_text().splitlines():
        asked = json.loads(line)
        user = next(message["content"] for message in asked["body"]["messages"] if message["role"] == "user")
        text = "no JSON" if "patient 3 " in user else json.dumps({"reason": "a rare condition", "label": "mismatch"})
        if "patient 1 " in user:
            text = json.dumps({"reason": "words that stand nowhere", "label": "mismatch"})
        body = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}
        lines.append({"custom_id": asked["custom_id"], "response": {"status_code": 200, "body": body}})
    (folder / f"answers-{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


RECIPE = TOY
