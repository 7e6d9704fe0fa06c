"""What calls cost, and the hard limit on it.

A price is money per million tokens, in the currency of the price table. The budget is checked before each call with
what the call may cost at worst, so it is never exceeded; calls taken from the ledger cost nothing.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from msgspec import Struct

from hoofbeat.errors import BudgetSpent, UsageError
from hoofbeat.models.requests import ChatRequest
from hoofbeat.window import tokens_at_most

_TOKENS_AN_IMAGE = 1500
_ROUNDING = 1e-9


class Price(Struct, frozen=True, kw_only=True):
    """Money per million tokens in and out; `source` says where a price that nobody configured is from."""

    tokens_in: float
    tokens_out: float
    source: str = ""

    def of(self, tokens_in: int, tokens_out: int) -> float:
        """The cost of these tokens."""
        return (tokens_in * self.tokens_in + tokens_out * self.tokens_out) / 1e6


class Estimate(Struct, frozen=True, kw_only=True):
    """What a command would do: calls it would make, calls the ledger has already, tokens, money (None: no price)."""

    calls: int = 0
    cached: int = 0
    tokens_in: int = 0
    max_tokens_out: int = 0
    max_money: float | None = None

    def __add__(self, other: Estimate) -> Estimate:
        """Both estimates together; a missing price makes the sum's money unknown, unless there is nothing to call."""
        moneys = [part.max_money for part in (self, other) if part.calls]
        return Estimate(
            calls=self.calls + other.calls,
            cached=self.cached + other.cached,
            tokens_in=self.tokens_in + other.tokens_in,
            max_tokens_out=self.max_tokens_out + other.max_tokens_out,
            max_money=None if None in moneys else sum(money for money in moneys if money is not None),
        )

    def __mul__(self, count: int) -> Estimate:
        """That many different calls of this size."""
        return Estimate(
            calls=count * self.calls,
            tokens_in=count * self.tokens_in,
            max_tokens_out=count * self.max_tokens_out,
            max_money=None if self.max_money is None else count * self.max_money,
        )


def about_tokens(request: ChatRequest) -> int:
    """An upper estimate of the tokens in a request's messages, for estimates, the budget and pacing."""
    tokens = 0.0
    for message in request.messages:
        tokens += 8 + tokens_at_most(message.content) + _TOKENS_AN_IMAGE * len(message.images)
    return int(tokens)


def _amount(given: object) -> float:
    """An amount of money that Python gave as a number: whole, broken or decimal."""
    if isinstance(given, int | float | Decimal) and not isinstance(given, bool) and 0 <= float(given) < math.inf:
        return float(given)
    raise UsageError(
        f"budget can't be {given!r}",
        fix='give an amount of 0 or more, such as 2.50, or a number of calls as text, such as "200calls"',
    )


class Budget:
    """A hard limit on cost or calls, shared by all models of a command."""

    def __init__(self, *, money: float | None = None, calls: int | None = None) -> None:
        self.money = money
        self.calls = calls
        self.spent_money = 0.0
        self.spent_calls = 0
        self._reserved = 0.0

    @staticmethod
    def parse(text: str | float | None) -> Budget:
        """`2.50` is money in the price table's currency, `200calls` a number of calls; None is no limit.

        Python may give the money as a number.
        """
        if text is None:
            return Budget()
        if not isinstance(text, str):
            return Budget(money=_amount(text))
        match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(calls?)?\s*", text)
        if not match or (match.group(2) and "." in match.group(1)):
            raise UsageError(f"a budget is an amount such as 2.50 or a number of calls such as 200calls, not {text!r}")
        if match.group(2):
            return Budget(calls=int(match.group(1)))
        return Budget(money=float(match.group(1)))

    def reserve(self, model: str, price: Price | None, tokens_in: int, max_tokens_out: int) -> float:
        """Reserve the maximum cost of the next call; raises `BudgetSpent` where the budget would not cover it."""
        if self.calls is not None and self.spent_calls >= self.calls:
            raise BudgetSpent(
                f"the budget of {self.calls} calls is spent",
                fix="run the same command with a larger --budget: the calls made so far are kept and not repeated",
            )
        worst = price.of(tokens_in, max_tokens_out) if price else 0.0
        if self.money is not None:
            if price is None:
                raise UsageError(
                    f"a budget such as 2.50 needs a price for {model}",
                    fix="give price_in and price_out for it in hoofbeat.toml, or a budget in calls (--budget 200calls)",
                )
            if self.spent_money + self._reserved + worst > self.money + _ROUNDING:
                raise BudgetSpent(
                    f"the budget of {self.money:.2f} would be exceeded: {self.spent_money:.4f} is spent, and the next "
                    f"call may cost {worst:.4f}",
                    fix="run the same command with a larger --budget: the calls made so far are kept",
                )
        self.spent_calls += 1
        self._reserved += worst
        return worst

    def settle(self, reserved: float, cost: float) -> None:
        """A call is done: its real cost replaces the reserved one."""
        self._reserved -= reserved
        self.spent_money += cost

    def release(self, reserved: float) -> None:
        """A call brought no reply: release the reserved cost."""
        self._reserved -= reserved
        self.spent_calls -= 1
