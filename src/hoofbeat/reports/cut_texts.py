"""What models could not read because their context windows are too small, in sentences for readers.

A score of answers whose passages were cut is a score of the window as well as of the model. Reports and comparisons
therefore say so before their findings; what had no such effect is a note behind them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hoofbeat.answering.run_folder import AnswerArtefact, System
from hoofbeat.reports.tables import count_of
from hoofbeat.store import Artefact, Manifest
from hoofbeat.text import some_of
from hoofbeat.window import LIMITED_BY_WINDOW, ContextWindow, windows_of

_WITH_ANSWERS = ("run", "judgments")
_SYSTEMS = 3
_REMEDY = "Use a model with a larger window, or set `context` in hoofbeat.toml if its window is larger."


def limited_in_words(manifest: Manifest) -> str:
    """What models' windows kept from being shown whole; empty where nothing was cut or searched because of them."""
    metrics = manifest.metrics
    told = []
    if isinstance(limited := metrics.get(LIMITED_BY_WINDOW), dict):
        told += [f"{count_of(count, 'answer')} from a source that was {name}" for name, count in limited.items()]
    if isinstance(shown := metrics.get("shown"), dict) and (shown.get("cut") or shown.get("left_out")):
        told.append(
            f"of the passages that a search found, {shown['left_out']:,} were left out and {shown['cut']:,} cut"
        )
    if isinstance(cuts := metrics.get("cut to fit"), dict) and cuts:
        told += [f"{each['texts']:,} of {each['of']:,} texts cut for the prompt {name}" for name, each in cuts.items()]
    return "; ".join(told)


def cut_warnings(artefacts: Sequence[Artefact]) -> list[str]:
    """A sentence for each folder in which texts were cut or left out to fit a window.

    A run whose judgments are among the folders is left out: it has the same answers.
    """
    behind = {ref.sha256 for each in artefacts if each.manifest.kind == "judgments" for ref in each.manifest.inputs}
    told = [_cut_in(each) for each in artefacts if each.reference().sha256 not in behind]
    return [f"{words} {_REMEDY}" for words in told if words]


def _cut_in(artefact: Artefact) -> str:
    manifest, name = artefact.manifest, artefact.path.name
    windows = windows_of(_asked_settings(manifest))
    if manifest.kind in _WITH_ANSWERS:
        counts = {system: count for system, count in AnswerArtefact(artefact).cut_answers().items() if count[0]}
        return f"Text was cut in {name}: {_systems_in_words(counts, windows)}." if counts else ""
    limited, cuts = manifest.metrics.get(LIMITED_BY_WINDOW), manifest.metrics.get("cut to fit")
    if isinstance(limited, dict) and limited.get("cut"):
        return (
            f"Text was cut in {name}: for {count_of(limited['cut'], 'answer')} the passages of the source did not all "
            f"fit the model's context window{_size(windows.get('answer'))}."
        )
    if isinstance(cuts, dict) and cuts:
        texts, of = (sum(each[key] for each in cuts.values()) for key in ("texts", "of"))
        size = next((_size(window) for window in windows.values()), "") if len(windows) == 1 else ""
        return f"Text was cut in {name}: {texts:,} of {of:,} texts did not fit a model's context window{size}."
    return ""


def _systems_in_words(counts: Mapping[System, tuple[int, int]], windows: Mapping[str, ContextWindow]) -> str:
    """The systems with the most such answers, and the window that was too small where it is one."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0] / item[1][1], item[0]))
    named = [
        f"{cut:,} of {count_of(total, 'answer')} ({model} · {condition})" for (model, condition), (cut, total) in ranked
    ]
    models = {model for model, _ in counts}
    one = windows.get(f"answer: {next(iter(models))}", windows.get("answer")) if len(models) == 1 else None
    return (
        f"the passages did not all fit the model's context window{_size(one)} for {some_of(named, _SYSTEMS)}. These "
        "answers were given without the text that did not fit"
    )


def _size(window: ContextWindow | None) -> str:
    return f" ({window})" if window else ""


def _asked_settings(manifest: Manifest) -> Mapping[str, object]:
    """The settings under which answers were asked for; judgments keep those of their run."""
    kept = manifest.settings.get("asked")
    return kept if manifest.kind == "judgments" and isinstance(kept, dict) else manifest.settings


def window_notes(artefacts: Sequence[Artefact]) -> list[str]:
    """What a reader must know of windows beside what was cut: which are assumed or unchecked, and what was searched."""
    notes = []
    for artefact in artefacts:
        limited = limited_in_words(artefact.manifest)
        windows = windows_of(artefact.manifest.settings)
        doubtful = any(window.source in ("assumed", "unchecked") for window in windows.values())
        if _cut_in(artefact) or (not limited and not doubtful):
            continue
        told = "; ".join(f"{role}: {window}" for role, window in windows.items())
        notes.append(
            f"{artefact.path.name}: texts had to fit into the context windows of models ({told}). "
            + (f"Effect: {limited}." if limited else "Nothing was cut for that.")
        )
    return notes
