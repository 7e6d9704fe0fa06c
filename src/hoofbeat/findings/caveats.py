"""What a reader must know before the figures of a folder: only some questions were asked, or answers were cut off.

A manifest keeps both, and judgments and comparisons carry them on, so that no figure of a part reads like one of the
whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hoofbeat.store import Artefact, Manifest

LIMIT = "limit"
IN_ALL = "questions_in_all"
CUT_OFF = "cut_off"


def part_settings(asked: int, in_all: int) -> dict[str, object]:
    """For the settings of a manifest: that only the first questions were asked; nothing where all were."""
    return {LIMIT: asked, IN_ALL: in_all} if asked < in_all else {}


def part_in_words(manifest: Manifest) -> str:
    """`the first 2 of 20 questions`, where only those were asked; of judgments, where their run asked only those."""
    settings: Mapping[str, object] = manifest.settings
    if IN_ALL not in settings and isinstance(kept := settings.get("asked"), dict):
        settings = kept
    limit, in_all = settings.get(LIMIT), settings.get(IN_ALL)
    if not isinstance(limit, int) or not isinstance(in_all, int):
        return ""
    return f"the first {limit:,} of {in_all:,} questions"


def cut_off_metrics(answers: int, limits: Iterable[int]) -> dict[str, object]:
    """For the metrics of a manifest: how many answers an output limit cut off, and the limits; nothing without any."""
    return {CUT_OFF: {"answers": answers, "tokens": sorted(set(limits))}} if answers else {}


def _cut_off_in_words(manifest: Manifest) -> str:
    found = manifest.metrics.get(CUT_OFF)
    count, tokens = (found.get("answers"), found.get("tokens")) if isinstance(found, dict) else (0, None)
    if not isinstance(count, int) or not count:
        return ""
    limits = [each for each in tokens if isinstance(each, int)] if isinstance(tokens, list) else []
    of = f" of {' or '.join(f'{each:,}' for each in limits)} tokens" if limits else ""
    were = "1 answer was" if count == 1 else f"{count:,} answers were"
    return f"{were} cut off at the output limit{of}, and only what came before counts."


def caveats(manifest: Manifest) -> list[str]:
    """What to say beside the figures of a folder, a sentence each."""
    part = part_in_words(manifest)
    told = [f"Only {part} were asked, so no figure is about the whole benchmark." if part else ""]
    return [each for each in (*told, _cut_off_in_words(manifest)) if each]


def folder_caveats(artefacts: Iterable[Artefact]) -> list[str]:
    """The caveats of several folders, each with the names of its folders."""
    found: dict[str, list[str]] = {}
    for artefact in artefacts:
        for each in caveats(artefact.manifest):
            found.setdefault(each, []).append(artefact.path.name)
    return [f"{', '.join(dict.fromkeys(names))}: {each}" for each, names in found.items()]
