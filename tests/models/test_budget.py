"""The budget is hard: it stops the command before it is exceeded, and nothing that was paid is lost."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hoofbeat.errors import BudgetSpent, UsageError
from hoofbeat.models import Budget, CallResult, Estimate, Image, Message, Price
from hoofbeat.models.budget import about_tokens
from hoofbeat.models.requests import ChatRequest
from hoofbeat.store.call_ledger import Ledger
from tests.models.fault_server import FaultServer
from tests.models.support import a_model, ask, chats, ledger_in


@pytest.fixture
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with ledger_in(tmp_path) as opened:
        yield opened


TEXTS = [f"question {number}" for number in range(40)]


def test_a_budget_in_calls_stops_exactly_and_a_larger_one_goes_on(server: FaultServer, ledger: Ledger) -> None:
    with pytest.raises(BudgetSpent) as caught:
        chats(a_model(server.spec(), ledger, budget=Budget(calls=13)), TEXTS)
    assert caught.value.exit_code == 3
    assert len(server.seen) == ledger.stats().calls == 13

    model = a_model(server.spec(), ledger, budget=Budget(calls=27))
    results = chats(model, TEXTS)
    assert all(isinstance(result, CallResult) for result in results)
    assert max(server.asked.values()) == 1
    assert (model.made, model.cached) == (27, 13)


def test_errors_that_are_not_charged_do_not_count(server: FaultServer, ledger: Ledger) -> None:
    texts = ["fault=503,ok a", "fault=429:0.1,ok b", "c"]
    results = chats(a_model(server.spec(), ledger, budget=Budget(calls=3)), texts)
    assert all(isinstance(result, CallResult) for result in results)


@pytest.mark.parametrize("fault", ["hang", "cut", "garbage"])
def test_what_may_have_been_charged_counts(server: FaultServer, ledger: Ledger, fault: str) -> None:
    model = a_model(server.spec(), ledger, budget=Budget(calls=3), timeout=0.3, attempts=6)
    with pytest.raises(BudgetSpent):
        chats(model, [f"fault={fault} a"])
    assert len(server.seen) == 3


def test_a_budget_in_money_is_never_exceeded(server: FaultServer, ledger: Ledger) -> None:
    prices: dict[str, Any] = {"price_in": 1000.0, "price_out": 1000.0}
    model = a_model(server.spec(), ledger, budget=Budget(money=0.5), **prices)
    with pytest.raises(BudgetSpent):
        chats(model, TEXTS, max_tokens=50)
    assert 0 < model.budget.spent_money <= 0.5
    assert model.cost.money == pytest.approx(model.budget.spent_money)
    assert ledger.stats().calls == len(server.seen) > 0
    while True:
        again = a_model(server.spec(), ledger, budget=Budget(money=0.5), **prices)
        try:
            chats(again, TEXTS, max_tokens=50)
            break
        except BudgetSpent:
            assert again.made > 0
    assert max(server.asked.values()) == 1


def test_the_estimate_is_a_budget_that_suffices(server: FaultServer, ledger: Ledger) -> None:
    requests = [ask(text) for text in TEXTS]
    prices: dict[str, Any] = {"price_in": 0.1, "price_out": 0.7}
    most = a_model(server.spec(), ledger, **prices).estimate(requests).max_money
    assert most is not None
    model = a_model(server.spec(), ledger, budget=Budget(money=most), **prices)
    assert all(isinstance(result, CallResult) for result in model.run(requests, model.chat))
    assert model.budget.spent_money <= most


def test_many_small_sums_are_no_more_than_their_sum() -> None:
    price = Price(tokens_in=0.1, tokens_out=0.7)
    number = 16  # so many additions round upwards
    budget = Budget(money=price.of(3 * number, 7 * number))
    for _ in range(number):
        budget.reserve("m", price, 3, 7)
    with pytest.raises(BudgetSpent):
        budget.reserve("m", price, 3000, 7000)


def test_an_endpoint_that_does_not_say_what_it_used_is_charged_the_most(server: FaultServer, ledger: Ledger) -> None:
    model = a_model(server.spec(), ledger, budget=Budget(money=1.0), price_in=1000.0, price_out=1000.0, start=1)
    with pytest.raises(BudgetSpent):
        chats(model, [f"{number} fault=no-usage" for number in range(40)], max_tokens=100)
    assert len(server.seen) <= 10


def test_a_budget_in_money_needs_a_price(server: FaultServer, ledger: Ledger) -> None:
    with pytest.raises(UsageError, match="price"):
        chats(a_model(server.spec(), ledger, budget=Budget(money=1.0)), TEXTS)
    assert not server.seen


def test_one_budget_is_shared_by_all_models_of_a_command(server: FaultServer, ledger: Ledger) -> None:
    budget = Budget(calls=5)
    chats(a_model(server.spec("a"), ledger, budget=budget), TEXTS[:4])
    with pytest.raises(BudgetSpent):
        chats(a_model(server.spec("b"), ledger, budget=budget), TEXTS[:4])
    assert len(server.seen) == 5


def test_a_batch_is_within_the_budget_too(tmp_path: Path, ledger: Ledger) -> None:
    model = a_model(f"batch:{tmp_path / 'b'}#m", ledger, budget=Budget(calls=10))
    with pytest.raises(BudgetSpent):
        chats(model, TEXTS)
    assert not list((tmp_path / "b").iterdir())


@pytest.mark.parametrize(
    ("text", "money", "calls"), [("2.50", 2.5, None), ("200calls", None, 200), (" 1 call ", None, 1), ("0", 0.0, None)]
)
def test_budgets_are_read(text: str, money: float | None, calls: int | None) -> None:
    budget = Budget.parse(text)
    assert (budget.money, budget.calls) == (money, calls)


@pytest.mark.parametrize("text", ["", "2,50", "-1", "1.5calls", "nan", "inf", "10 dollars", "1e3"])
def test_what_is_no_budget_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        Budget.parse(text)


@pytest.mark.parametrize("number", [5, 5.0, Decimal("5.00")])
def test_python_gives_money_as_a_number(number: Any) -> None:
    assert (Budget.parse(number).money, Budget.parse(number).calls) == (5.0, None)


@pytest.mark.parametrize("given", [-1, True, float("nan"), float("inf"), Decimal("nan"), [5], b"5"])
def test_what_is_no_number_of_money_is_refused_by_name(given: Any) -> None:
    with pytest.raises(UsageError, match="budget can't be"):
        Budget.parse(given)


def test_no_budget_is_no_limit() -> None:
    assert (Budget.parse(None).money, Budget.parse(None).calls) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(1, 2000), st.floats(0, 1)), max_size=40))
def test_reserving_and_settling_never_passes_the_limit(calls: list[tuple[int, int, float]]) -> None:
    budget, price = Budget(money=0.05), Price(tokens_in=2.0, tokens_out=8.0)
    open_calls: list[tuple[float, float]] = []
    for tokens_in, tokens_out, share in calls:
        try:
            worst = budget.reserve("m", price, tokens_in, tokens_out)
        except BudgetSpent:
            break
        open_calls.append((worst, worst * share))
        if len(open_calls) > 3:
            budget.settle(*open_calls.pop(0))
        assert budget.spent_money <= 0.05 + 1e-9
    for reserved, cost in open_calls:
        budget.settle(reserved, cost)
    assert budget.spent_money <= 0.05 + 1e-9


def test_images_and_other_scripts_count_as_tokens() -> None:
    picture = Image.of(b"x", "image/png")
    plain = ChatRequest(messages=(Message(role="user", content="x" * 360),))
    shown = ChatRequest(messages=(Message(role="user", content="x" * 360, images=(picture,)),))
    chinese = ChatRequest(messages=(Message(role="user", content="患者" * 180),))
    assert 120 <= about_tokens(plain) <= 130
    assert about_tokens(shown) > about_tokens(plain) + 1000
    assert about_tokens(chinese) >= 360


def test_estimates_add_up() -> None:
    priced = Estimate(calls=2, tokens_in=10, max_tokens_out=4, max_money=0.5)
    unknown = Estimate(calls=1, cached=3, tokens_in=5, max_tokens_out=1)
    nothing = Estimate(cached=7)
    both = priced + priced
    assert (both.calls, both.max_money, both.tokens_in) == (4, 1.0, 20)
    assert (priced + unknown).max_money is None
    assert (priced + nothing).max_money == 0.5
    assert (priced + unknown).cached == 3
