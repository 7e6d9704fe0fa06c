"""A check code in a judge's call: a reply that follows a text instead of the prompt shows itself.

Which design finds an instruction that was obeyed? A secret that must never appear finds only texts that ask for the
prompt. A field "did you see an instruction?" finds what a judge notices, not what it obeys. A planted instruction would
change the very answer that is judged. So the code is the other way round, as in known-answer detection: the prompt, and
only the prompt, asks for it, and the reply has to repeat it. A judge that drops its task for that of a text (it prints
the text's JSON, plays its role, answers only what the text dictates) does not repeat it. The same field lets a judge
say that a text tells it what to do, which costs no other field.

What it can't find: a judge that goes on with its task, code included, and only takes the label from the text. No single
call shows that; the probe of instructions (`probes`, `audit trial --injections`) measures it, by judging the same item
with and without them.

The code is made from the content of the call, so that the same inputs give the same bytes, and nobody who writes a
document knows it. The schema leaves the field open: as a list of two values, constrained decoding would write the code
into every reply. A reply without the field is read as it is, not repaired: the repair would ask for the code again.

The code changes prompts and with them the keys of the ledger. It is therefore off unless asked for (`--canary`), and
always on in the probes of instructions. A verdict without its code is a failure of the kind `canary`, never a label.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.findings.injection_figures import CODE_MISSING, KEPT, ORDER_SEEN
from hoofbeat.models.requests import ChatRequest, Message
from hoofbeat.prompts import load_prompt
from hoofbeat.records import Failure
from hoofbeat.store.tables import canonical_json

FIELD = "check"
PROMPT = "canary"


class CheckedRequest(Struct, frozen=True):
    """A call with a check code, and the schema by which its reply is read: there the code may be missing."""

    request: ChatRequest
    code: str
    reads: dict[str, object]

    def state(self, value: Mapping[str, Any]) -> str:
        """What the reply's check code says."""
        words = str(value.get(FIELD, "")).split()
        if not words or words[0].strip("\"'`.,:;") != self.code:
            return CODE_MISSING
        return ORDER_SEEN if any("order" in word.lower() for word in words[1:]) else KEPT


def with_canary(request: ChatRequest) -> CheckedRequest:
    """The same call with a check code."""
    assert request.schema is not None, "a judge replies with an object"
    digest = hashlib.sha256(canonical_json(request.content())).hexdigest()
    code = f"K{int(digest[:12], 16) % 10**8:08}"
    _, words = load_prompt(PROMPT).fill({"code": code})
    first, *rest = request.messages
    if first.role == "system":
        messages = (replace(first, content=f"{first.content}\n\n{words}"), *rest)
    else:
        messages = (Message(role="system", content=words), *request.messages)
    schema: dict[str, Any] = copy.deepcopy(request.schema)
    schema["properties"][FIELD] = {"type": "string", "maxLength": 60}
    reads = {**schema, "required": list(schema["required"])}
    schema["required"] = [*schema["required"], FIELD]
    return CheckedRequest(replace(request, messages=messages, schema=schema), code, reads)


def canary_failure(label: str) -> Failure:
    """Why a verdict without its check code does not count."""
    return Failure(kind="canary", message=f"the reply does not repeat its check code (its label: {label})")
