"""What the tests of the model seam share: short ways to a model, a request, and many requests at once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from hoofbeat.models import Budget, CallResult, ChatRequest, Config, Message, Model, ModelSettings, load_model
from hoofbeat.models.pacing import Pacer
from hoofbeat.records import Failure
from hoofbeat.store.call_ledger import Ledger
from hoofbeat.store.ledger_base import CallLedger

SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": ["equivalent", "mismatch"]}},
    "required": ["label"],
    "additionalProperties": False,
}


def ask(text: str, **more: Any) -> ChatRequest:
    return ChatRequest(messages=(Message(role="user", content=text),), **more)


def ledger_in(folder: Path, name: str = "ledger.db") -> Ledger:
    return Ledger(folder / name)


def a_model(spec: str, ledger: CallLedger, *, budget: Budget | None = None, start: int = 8, **settings: Any) -> Model:
    """The model a user would get for this spec with these settings; impatient, and with no allowance."""
    chosen = msgspec.convert({"timeout": 5.0, "attempts": 2, "reasoning": 0, **settings}, ModelSettings)
    model = load_model(spec, ledger=ledger, config=Config(models={spec: chosen}), budget=budget)
    if start != 8:
        model.pacer = Pacer(start=start, max_in_flight=model.pacer.max_in_flight)
    return model


def chats(model: Model, texts: Sequence[str], **more: Any) -> list[CallResult | Failure]:
    return model.run([ask(text, **more) for text in texts], model.chat)


def reply_text(result: object) -> str:
    assert isinstance(result, CallResult), result
    return result.reply.text


def failure(result: object) -> Failure:
    assert isinstance(result, Failure), result
    return result
