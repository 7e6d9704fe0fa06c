"""What the tests of sourceqa share: invented handbooks and messages, and a model made of rules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hoofbeat.models import ChatRequest
from hoofbeat.recipes.papers.sourceqa import RECIPE, SourceqaSettings
from hoofbeat.recipes.recipe_items import RejectedItem
from hoofbeat.records import Document, Section
from hoofbeat.store import Artefact
from hoofbeat.store.tables import read_jsonl
from tests.recipes.support import build, user_text
from tests.retrieval.support import HashedWords

__all__ = ["MESSAGES", "built", "handbooks", "harvest_file", "rules", "turned_away"]


def handbooks() -> list[Document]:
    """Invented handbooks."""
    text = "Driving\nDo not drive for four weeks after the operation, and ask before you do. " + "Rest. " * 40
    section = Section(heading="Driving", level=1, start=0, body=8, end=len(text))
    return [
        Document(id=f"hb-{organ}", title=organ, text=text, sections=(section,), facets={"organ": organ})
        for organ in ("kidney", "liver")
    ]


def harvest_file(folder: Path, rows: Sequence[Mapping[str, object] | str], name: str = "asked.jsonl") -> str:
    """A harvest file of these rows; a string is a line as it stands."""
    path = folder / name
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def rules(name: str, request: ChatRequest) -> object:
    """A model made of rules: the last question of a message is its rewriting, words decide the labels."""
    fenced = re.findall(r"<material[^>]*>\n(.*?)\n</material>", user_text(request), re.DOTALL)
    shown = fenced[-1] if name == "sourceqa-group" else "\n".join(fenced)  # the groups stand before the question
    low = shown.lower()
    if name == "sourceqa-duplicate":
        new, earlier = fenced[0].lower().rstrip("?. "), re.findall(r"^([A-Z])\. (.*)$", fenced[1], re.MULTILINE)
        return {"reason": "r", "same": [letter for letter, text in earlier if text.lower().rstrip("?. ") == new]}
    if name == "sourceqa-identifiers":
        return {"found": []}
    if name == "sourceqa-relevance":
        return {"reason": "It is said so.", "verdict": "administrative" if "insurance" in low else "good"}
    if name == "sourceqa-same":
        return {"reason": "both ask the same", "verdict": "same"}
    if name == "sourceqa-rewrite":
        questions = [" ".join(part.split()) for part in re.findall(r"[^.?!\n]+\?", shown)]
        known = f"What is known about {' '.join(shown.split()[:20])}?"
        return {"question": max(questions, key=len) if questions else known}
    if name == "sourceqa-group":
        return {"reason": "r", "group": next((group for group in ("kidney", "liver") if group in low), "general")}
    if name == "sourceqa-topics":
        assert request.schema is not None
        offered = request.schema["properties"]["topics"]["items"]["enum"]  # type: ignore[index]
        return {"reason": "r", "topics": offered[:1]}
    return {"questions": ["When may I drive a car after the operation?", "Who tells me that I may drive again?"]}


def built(folder: Path, settings: SourceqaSettings, says: Any = rules, sources: Any = None, **more: Any) -> Artefact:
    """The benchmark of these handbooks (or others) and of what the model says."""
    return build(folder, RECIPE, sources or handbooks(), settings, says, encoder=HashedWords, **more)


def turned_away(artefact: Artefact) -> dict[str, RejectedItem]:
    """What was rejected, by id."""
    return {each.id: each for each in read_jsonl(artefact.file("rejected.jsonl"), RejectedItem)}


MESSAGES: list[Mapping[str, object] | str] = [
    {
        "text": "Hi, I'm Aoife from Ballina. I got my kidney on 3 May 2021. When may I drive my car again?",
        "url": "https://x.org/u/aoife77",
    },
    {
        "text": "hi I'm Aoife from ballina, I got my kidney on 3 May 2021. When may I drive my car again",
        "group": "kidney",
    },
    {"question": "Dr. Obi says no wine with my new liver. Is alcohol-free beer allowed?"},
    {"text": "Does my insurance pay for the taxi to the clinic?"},
    {"text": "Nice day everybody."},
    {"text": "ok"},
    "this is no json",
    {"text": "¿Puedo comer pescado crudo si tomo tacrolimus y me operaron hace dos meses del hígado con mucho éxito?"},
    {"text": "May I eat sushi while I take tacrolimus? Thanks, Maria Lopez, maria@mail.org", "group": "general"},
]
