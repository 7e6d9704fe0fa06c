"""How answers were asked for and judged, folder by folder: what differs between folders that are read together.

A difference between two systems is one between their conditions only where everything else was the same. What a model's
name says itself (`SPEC[temperature=0.6]`) is seen and needs no word; what only the manifests know is said.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct, field

from hoofbeat.store import Artefact
from hoofbeat.text import cut

__all__ = ["Asked", "asked_of", "clashing", "differing"]

_ALL = ("instruction", "limit", "edition")
_EACH = ("temperature", "samples", "seed", "max_tokens")
_SPEC = re.compile(r"\[([^\]]*)\]$")
_LONGEST = 60


class Asked(Struct, frozen=True):
    """The settings of one folder: those of all its answers, and those of each model where they are its own."""

    common: dict[str, str] = field(default_factory=dict)
    models: dict[str, dict[str, str]] = field(default_factory=dict)

    def of(self, model: str) -> dict[str, str]:
        """What was set for one model, whether its name says so or not."""
        return {**self.common, **_written(model), **self.models.get(model, {})}

    def unwritten(self) -> dict[str, str]:
        """What no model's name says: the settings of all answers, and those that all models of the folder share."""
        found = dict(self.common)
        for name in _EACH:
            values = {mine[name] for model, mine in self.models.items() if name in mine and name not in _written(model)}
            if values:
                found[name] = " and ".join(sorted(values))
        return found


def asked_of(artefact: Artefact, given: Sequence[Artefact] = ()) -> Asked:
    """What a folder's manifest says; for judgments what their run says, where it is given or they have kept it."""
    manifest = artefact.manifest
    settings, seeds = manifest.settings, manifest.seeds
    prompts = {f"prompt {name}": label for name, label in manifest.prompts.items()}
    if manifest.kind != "run":
        behind = {ref.sha256 for ref in manifest.inputs}
        run = next((each.manifest for each in given if each.reference().sha256 in behind), None)
        kept = settings.get("asked")
        settings = run.settings if run else kept if isinstance(kept, dict) else {}
        seeds = run.seeds if run else _numbers(settings.get("seeds"))
    common = {name: _told(settings[name]) for name in (*_ALL, "temperature", "samples") if name in settings}
    if "options" in seeds:
        common["seed of the options' order"] = str(seeds["options"])
    if "sampling" in seeds:
        common["seed"] = str(seeds["sampling"])
    sampling = settings.get("sampling")
    models = {
        str(model): {name: _told(mine[name]) for name in _EACH if name in mine}
        for model, mine in (sampling.items() if isinstance(sampling, Mapping) else ())
        if isinstance(mine, Mapping)
    }
    if models:
        common = {name: value for name, value in common.items() if name not in _EACH}
    return Asked({**common, **prompts}, models)


def differing(folders: Sequence[tuple[str, Asked]]) -> list[str]:
    """What differs between folders, a line each: the setting, and its value in which folder."""
    found = [(name, asked.unwritten()) for name, asked in folders]
    lines = []
    for setting in dict.fromkeys(key for _, values in found for key in values):
        where: dict[str, list[str]] = {}
        for name, values in found:
            if setting in values:
                where.setdefault(values[setting], []).append(name)
        if len(where) > 1:
            told = "; ".join(f"{cut(value, _LONGEST)} in {', '.join(names)}" for value, names in where.items())
            lines.append(f"{setting}: {told}")
    return lines


def clashing(one: Asked, other: Asked, models: Sequence[str]) -> list[str]:
    """The settings in which the same model was asked otherwise in another folder."""
    found: dict[str, None] = {}
    for model in models:
        mine, theirs = one.of(model), other.of(model)
        found.update(dict.fromkeys(name for name in mine if name in theirs and mine[name] != theirs[name]))
    return [name for name in found if name != "limit"]


def _written(model: str) -> dict[str, str]:
    """The settings that a model's name says."""
    inside = _SPEC.search(model)
    pairs = [pair.partition("=") for pair in inside[1].split(",")] if inside else []
    return {name.strip(): _told(value.strip()) for name, _, value in pairs if name.strip() in _EACH}


def _told(value: object) -> str:
    if value is None or value == "":
        return "none"
    try:
        return f"{float(str(value)):g}"
    except ValueError:
        return str(value)


def _numbers(value: object) -> dict[str, int]:
    return {str(name): each for name, each in value.items() if isinstance(each, int)} if isinstance(value, dict) else {}
