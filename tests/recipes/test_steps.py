"""Steps that ask: a rule that objects is told to the model once, and independent steps share a round of a batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from hoofbeat.errors import BatchPending
from hoofbeat.models import ChatRequest, Model
from hoofbeat.models.batch import BatchBackend
from hoofbeat.models.requests import Trouble
from hoofbeat.recipes.context import RecipeContext, RecipeSettings
from hoofbeat.recipes.recipe_items import AskAgain, ItemRejection, Outcome, RecipeItem
from hoofbeat.recipes.steps import PartReply, RecipeStep, StepEstimate, ask, ask_each, together, with_calls_ahead
from hoofbeat.records import Failure
from hoofbeat.store import Ledger
from tests.recipes.support import Script, a_context, a_corpus, user_text

OBJECTION = "The label must be “mismatch”: the two texts do not say the same."


def _values(item: RecipeItem, _context: RecipeContext) -> dict[str, object]:
    return {"question": "What is it?", "reference": "x", "answer": item.id}


def _read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> Outcome | AskAgain:
    if value["label"] != "mismatch":
        return ItemRejection(reason="a wrong label", details=str(value["label"])).again(OBJECTION)
    return item.put(label=value["label"], reason=value["reason"])


def _step(name: str = "label", read: Any = _read) -> RecipeStep:
    return ask(name, "equivalence", values=_values, read=read)


def _stubborn(_name: str, request: ChatRequest) -> object:
    """Item b mends its label when told, item c does not, and of item d the second reply never comes."""
    text, repair = user_text(request), len(request.messages) > 2
    if "\nd\n" in text and repair:
        return Trouble(kind="bad-request", message="no", retryable=False)
    mended = "\na\n" in text or ("\nb\n" in text and repair)
    return {"reason": "second" if repair else "first", "label": "mismatch" if mended else "equivalent"}


def _items(names: str = "abcd") -> list[RecipeItem]:
    return [RecipeItem(id=name) for name in names]


def _run(folder: Path, step: RecipeStep, says: Any, items: Sequence[RecipeItem]) -> tuple[list[Outcome], RecipeContext]:
    with a_context(folder, [], RecipeSettings(), says) as context:
        return list(step.run(items, context)), context


def test_an_objection_is_told_to_the_model_once(tmp_path: Path) -> None:
    script = Script(_stubborn)
    (a, b, c, d), context = _run(tmp_path, _step(), {"model": script}, _items())
    assert isinstance(a, RecipeItem)
    assert a.lineage[0].note == ""
    assert isinstance(b, RecipeItem)
    assert b["reason"] == "second"
    assert b.lineage[0].note == "2 calls; asked again: a wrong label"
    assert isinstance(c, ItemRejection)
    assert c.reason == "a wrong label"
    assert c.details.splitlines() == [
        "equivalent",
        'first reply: {"label":"equivalent","reason":"first"}',
        'second reply: {"label":"equivalent","reason":"second"}',
    ]
    assert isinstance(d, Failure)
    assert script.count("equivalence") == 7  # four, and three repairs
    assert context.asked_again == {"label": {"items": 3, "kept": 1}}
    repair = next(request for _, request in script.requests if len(request.messages) > 2)
    assert json.loads(repair.messages[-2].content) == {"label": "equivalent", "reason": "first"}
    assert repair.messages[-1].content.startswith(OBJECTION)


def test_asking_again_is_resumed_from_the_ledger(tmp_path: Path) -> None:
    first, _ = _run(tmp_path, _step(), _stubborn, _items("abc"))
    script = Script(_stubborn)
    second, _ = _run(tmp_path, _step(), {"model": script}, _items("abc"))
    assert second == first
    assert not script.requests


def test_a_model_that_insists_may_be_believed(tmp_path: Path) -> None:
    def read(item: RecipeItem, value: dict[str, Any], _context: RecipeContext) -> Outcome | AskAgain:
        flagged = item.put(flag="the model insists", reason=value["reason"])
        return AskAgain(reason="a wrong label", say=OBJECTION, otherwise=flagged)

    (kept,), _ = _run(tmp_path, _step(read=read), _stubborn, _items("c"))
    assert isinstance(kept, RecipeItem)
    assert kept["reason"] == "second"


def test_only_the_parts_that_are_objected_to_are_asked_again(tmp_path: Path) -> None:
    def read(item: RecipeItem, answers: Sequence[PartReply], _context: RecipeContext) -> Outcome | AskAgain:
        wrong = tuple(n for n, each in enumerate(answers) if each.value and each.value["label"] != "mismatch")
        if wrong:
            return AskAgain(reason="a wrong label", say=OBJECTION, places=wrong)
        return item.put(labels=[each.value["reason"] for each in answers if each.value])

    step = ask_each(
        "label",
        "equivalence",
        parts=lambda _item, _context: ("a", "b"),
        values=lambda _item, part, _context: {"question": "What is it?", "reference": "x", "answer": part},
        read=read,
        maximum=2,
    )
    script = Script(_stubborn)
    (kept,), _ = _run(tmp_path, step, {"model": script}, _items("x"))
    assert isinstance(kept, RecipeItem)
    assert kept["labels"] == ["first", "second"]
    assert len(script.requests) == 3


def test_an_estimate_counts_repairs_once_the_replies_are_known(tmp_path: Path) -> None:
    says = {"model": Script(lambda name, request: Trouble(kind="bad-request", message="no", retryable=False)
                            if len(request.messages) > 2 else _stubborn(name, request))}  # fmt: skip
    _run(tmp_path, _step(), says, _items())
    with (
        a_context(tmp_path, [], RecipeSettings(), _stubborn, estimating=True) as context,
        pytest.raises(StepEstimate) as found,
    ):
        _step().run(_items(), context)
    assert found.value.estimate.calls == 3


def _rounds(folder: Path, steps: Sequence[RecipeStep], items: Sequence[RecipeItem]) -> tuple[int, list[Outcome]]:
    """Run the steps against a batch folder until they end; how often it was filled, and the outcomes."""
    corpus = a_corpus(folder, [])
    for number in range(20):
        with Ledger(folder / "ledger.sqlite") as ledger:
            model = Model(spec="batch", backend=BatchBackend(folder / "batch", "m"), ledger=ledger)
            context = RecipeContext(corpus, RecipeSettings(), models={"model": model})
            try:
                outcomes: list[Outcome] = list(items)
                for step in steps:
                    outcomes = list(step.run([each for each in outcomes if isinstance(each, RecipeItem)], context))
            except BatchPending:
                _answer(folder / "batch", number + 1)
                continue
            return number, outcomes
    raise AssertionError("it never ends")


def _answer(folder: Path, number: int) -> None:
    asked = [json.loads(line) for line in (folder / f"requests-{number:03d}.jsonl").read_text().splitlines()]
    lines = []
    for each in asked:
        label = "mismatch" if len(each["body"]["messages"]) > 2 else "equivalent"
        message = {"role": "assistant", "content": json.dumps({"reason": "so", "label": label})}
        body = {"choices": [{"finish_reason": "stop", "message": message}]}
        lines.append({"custom_id": each["custom_id"], "response": {"status_code": 200, "body": body}})
    (folder / f"answers-{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(("joined", "rounds"), [(lambda *steps: steps, 4), (together, 2)])
def test_independent_steps_and_their_repairs_travel_together(
    tmp_path: Path, joined: Callable[..., Sequence[RecipeStep]], rounds: int
) -> None:
    other = ask(
        "other",
        "equivalence",
        values=lambda item, _context: {"question": "And what else?", "reference": "x", "answer": item.id},
        read=_read,
    )
    taken, outcomes = _rounds(tmp_path, joined(_step(), other), _items("ab"))
    assert taken == rounds
    assert [out.id for out in outcomes if isinstance(out, RecipeItem)] == ["a", "b"]


def test_calls_sent_ahead_to_another_folder_do_not_hide_the_round_of_the_step(tmp_path: Path) -> None:
    later = ask("later", "equivalence", values=_values, read=_read, role="second")
    step = with_calls_ahead(_step(), later)
    context = a_corpus(tmp_path, [])

    def waits() -> BatchPending:
        with Ledger(tmp_path / "ledger.sqlite") as ledger:
            models = {
                role: Model(spec=role, backend=BatchBackend(tmp_path / role, role), ledger=ledger)
                for role in ("model", "second")
            }
            with pytest.raises(BatchPending) as found:
                step.run(_items("ab"), RecipeContext(context, RecipeSettings(), models=models))
        return found.value

    first = waits()
    assert (first.written, first.waiting, first.round) == (4, 0, 1)
    assert first.folder == str(tmp_path / "model")
    assert first.files == ("requests-001.jsonl", f"{tmp_path / 'second'}/requests-001.jsonl")
    _answer(tmp_path / "model", 1)  # both answers meet an objection: two repairs are written
    repairs = waits()
    assert (repairs.folder, repairs.files) == (str(tmp_path / "model"), ("requests-002.jsonl",))
    assert (repairs.written, repairs.waiting, repairs.round, repairs.step) == (2, 2, 2, "label")
    again = waits()
    assert (again.written, again.waiting, again.folder) == (0, 4, str(tmp_path / "model"))


def test_a_model_that_answers_at_once_is_not_asked_about_what_a_step_rejected(tmp_path: Path) -> None:
    def reject(_item: RecipeItem, _value: dict[str, Any], _context: RecipeContext) -> Outcome:
        return ItemRejection(reason="no")

    first, other = together(_step(read=reject), _step("other"))
    script = Script(_stubborn)
    outcomes, _ = _run(tmp_path, first, {"model": script}, _items("ab"))
    assert all(isinstance(out, ItemRejection) for out in outcomes)
    assert len(script.requests) == 2
    assert other.name == "other"
    assert together() == []
