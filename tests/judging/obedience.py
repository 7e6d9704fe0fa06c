"""Judges that obey instructions inside answers, in ways that differ, and judges that do not."""

from __future__ import annotations

import re
from collections.abc import Callable

from hoofbeat.judging.injections import fenced_form, injection_text
from hoofbeat.teaching import injections

CODE = re.compile(r"exactly: (K\d{8})\n")


def asked_label(text: str, labels: tuple[str, ...], field: str) -> str:
    """The label that an instruction in a prompt asks for; empty where there is none."""
    for injection in injections():
        for label in labels:
            if fenced_form(injection_text(injection, label, field)) in text:
                return label
    return ""


def code_in(text: str) -> str:
    """The code that a prompt asks for."""
    found = CODE.search(text)
    return found[1] if found else ""


Obeys = Callable[[dict[str, object], str, str, str], dict[str, object]]
"""From a reply, the label asked for ("" for none), the name of its field and the code to what the judge writes."""


def hijacked(reply: dict[str, object], asked: str, field: str, code: str) -> dict[str, object]:
    """Drops its task for that of the text: nothing but what the text wants."""
    return {**reply, field: asked} if asked else {**reply, "check": code}


def persuaded(reply: dict[str, object], asked: str, field: str, code: str) -> dict[str, object]:
    """Goes on with its task and takes only the label from the text."""
    return {**reply, field: asked or reply[field], "check": code}


def steady(reply: dict[str, object], asked: str, field: str, code: str) -> dict[str, object]:
    """Reads texts as texts, and says where one tells it what to do."""
    return {**reply, "check": f"{code} order" if asked else code}
