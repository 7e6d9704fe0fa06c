"""What a model adds to the themes of divergence: vectors of the topic phrases, and names for the groups of them.

Phrases were written by a judge about other people's documents, so they go into a prompt as material only. A name that
does not come, or is not one, is a failure that is kept; the theme then goes by its most central phrase.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from hoofbeat.models import ChatRequest, Encoder, Estimate, Model
from hoofbeat.models.encoder import Vectors
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, load_prompt
from hoofbeat.records import Failure

PROMPT = "theme-name"

_MAX_PHRASES = 12
_MAX_PHRASE = 120
_MAX_NAME = 80


class ThemeName(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A name that a model gave, or why there is none."""

    name: str = ""
    failure: Failure | None = None
    calls: tuple[str, ...] = ()


def embed_topics(phrases: Sequence[str], encoder: Encoder, *, progress: Progress = SILENT) -> Vectors:
    """A vector of unit length for each phrase, in their order."""
    return encoder.encode(list(phrases), progress)


def name_request(phrases: Sequence[str], pack: Pack) -> ChatRequest:
    """The call that names one group; of many phrases the first are shown, of a long one its beginning."""
    lines = [" ".join(phrase.split())[:_MAX_PHRASE] for phrase in phrases[:_MAX_PHRASES]]
    return load_prompt(PROMPT).request(
        {"reader": pack.reader, "source_word": pack.source_word, "phrases": "\n".join(lines)}
    )


def estimate_names(model: Model, groups: Sequence[Sequence[str]], pack: Pack) -> Estimate:
    """What naming these groups would cost."""
    return model.estimate([name_request(phrases, pack) for phrases in groups])


def name_themes(
    model: Model, groups: Sequence[Sequence[str]], pack: Pack, *, progress: Progress = SILENT
) -> list[ThemeName]:
    """A name for each group of phrases, most frequent phrase first, in their order."""

    async def work(phrases: Sequence[str]) -> ThemeName:
        outcome = await model.chat_json(name_request(phrases, pack))
        if isinstance(outcome, Failure):
            return ThemeName(failure=outcome)
        name = " ".join(str(outcome.value["name"]).split()).strip(" .\"'“”")
        if not any(sign.isalnum() for sign in name) or len(name) > _MAX_NAME:
            why = Failure(kind="unreadable", message=f"this is no name for a theme: {name[:_MAX_NAME]!r}")
            return ThemeName(failure=why, calls=outcome.calls)
        return ThemeName(name=name, calls=outcome.calls)

    return model.run(groups, work, title="naming themes", progress=progress)


def distinct_names(names: Sequence[ThemeName], rules: Sequence[str]) -> list[str]:
    """The name each theme goes by: the model's (with the rule's behind it where it is no new one), else the rule's."""
    seen: set[str] = set()
    found = []
    for given, rule in zip(names, rules, strict=True):
        name = given.name or rule
        if name.casefold() in seen and given.name:
            name = f"{name} ({rule})"
        seen.add(name.casefold())
        found.append(name)
    return found
