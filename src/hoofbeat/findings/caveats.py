"""What a reader must know before the figures of a folder, in sentences.

Only some questions were asked, answers were cut off, or passages were cut because a model's window is too small: then a
score is one of the part, the limit or the window as well as of the model. Reports and comparisons say so before their
findings; what had no such effect is a note behind them. Manifests keep it, and judgments and comparisons carry it on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from hoofbeat.store import Artefact, InputRef, Manifest
from hoofbeat.store.tables import read_jsonl
from hoofbeat.text import cut, some_of
from hoofbeat.window import LIMITED_BY_WINDOW, OTHER_MODELS, ContextWindow, windows_of

LIMIT = "limit"
IN_ALL = "questions_in_all"
CUT_OFF = "cut_off"
_USED_ELSEWHERE = "id already used in another folder"  # a reason of `corpus.corpus_import`

_WITH_ANSWERS = ("run", "judgments")
_SYSTEMS = 3
_INSTRUCTION = 200
_REMEDY = "Use a model with a larger window, or set `context` in hoofbeat.toml if its window is larger."


class _ShownLine(Struct):
    """What counting cut answers needs of an answer."""

    model: str
    condition: str
    dropped: tuple[str, ...] = ()


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


def _answers(count: int) -> str:
    return f"{count:,} answer{'s' if count != 1 else ''}"


def _cut_off_in_words(manifest: Manifest) -> str:
    found = manifest.metrics.get(CUT_OFF)
    count, tokens = (found.get("answers"), found.get("tokens")) if isinstance(found, dict) else (0, None)
    if not isinstance(count, int) or not count:
        return ""
    limits = [each for each in tokens if isinstance(each, int)] if isinstance(tokens, list) else []
    of = f" of {' or '.join(f'{each:,}' for each in limits)} tokens" if limits else ""
    were = "was" if count == 1 else "were"
    return f"{_answers(count)} {were} cut off at the output limit{of}, and only the text before the cut counts."


def caveats(manifest: Manifest) -> list[str]:
    """What to say beside the figures of a folder, a sentence each."""
    part = part_in_words(manifest)
    told = [f"Only {part} were asked, so no figure is about the whole benchmark." if part else ""]
    return [
        each
        for each in (
            *told,
            _cut_off_in_words(manifest),
            _others_in_words(manifest),
            _same_ids_in_words(manifest),
            *map(_changed_in_words, manifest.inputs),
        )
        if each
    ]


def _others_in_words(manifest: Manifest) -> str:
    found: Counter[str] = Counter()
    if isinstance(roles := manifest.settings.get(OTHER_MODELS), dict):
        for counts in roles.values():
            found.update(counts)
    named = [f"{name} ({count:,})" for name, count in found.most_common()]
    return f"Replies say that another model wrote them than the one asked for: {some_of(named, 3)}." if named else ""


def _same_ids_in_words(manifest: Manifest) -> str:
    if manifest.kind != "corpus" or not (count := manifest.counts.reasons.get(_USED_ELSEWHERE, 0)):
        return ""
    many = f"{count:,} documents were" if count != 1 else "1 document was"
    return (
        f"{many} left out, because one in another folder has the same id. To keep both, give ids in a table: a column "
        "id beside file, with --facets-from."
    )


def _changed_in_words(used: InputRef) -> str:
    if not used.changed:
        return ""
    return (
        f"Files of {used.name} had been changed since Hoofbeat wrote them, and were used: {some_of(used.changed, 3)}."
    )


def folder_caveats(artefacts: Iterable[Artefact]) -> list[str]:
    """The caveats of several folders, each with the names of its folders."""
    found: dict[str, list[str]] = {}
    for artefact in artefacts:
        changed = some_of(artefact.changed_files(), 3)
        own = (
            f"Files were changed after Hoofbeat wrote them, and are shown as they are now: {changed}."
            if changed
            else ""
        )
        for each in filter(None, (own, *caveats(artefact.manifest))):
            found.setdefault(each, []).append(artefact.path.name)
    return [f"{', '.join(dict.fromkeys(names))}: {each}" for each, names in found.items()]


def instruction_notes(artefacts: Iterable[Artefact]) -> list[str]:
    """Texts that tell a model what to do: what it then answered or judged may be their doing."""
    notes = []
    for artefact in artefacts:
        found = artefact.manifest.settings.get("instructions")
        for role, places in found.items() if isinstance(found, dict) else ():
            if isinstance(places, dict) and places:
                first = cut(next(iter(places)), _INSTRUCTION)
                count = f"{len(places):,} place{'s' if len(places) > 1 else ''}"
                notes.append(
                    f"{artefact.path.name}: {count} in the texts that the model ({role}) was shown tell a model what "
                    f"to do, so that its output may follow them. The most frequent: {first}"
                )
    return notes


def limited_in_words(manifest: Manifest) -> str:
    """What models' windows kept from being shown whole; empty where nothing was cut or searched because of them."""
    metrics = manifest.metrics
    told = []
    if isinstance(limited := metrics.get(LIMITED_BY_WINDOW), dict):
        told += [f"{_answers(count)} from a source that was {name}" for name, count in limited.items()]
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
        counts = {system: count for system, count in _cut_answers(artefact).items() if count[0]}
        return f"Text was cut in {name}: {_systems_in_words(counts, windows)}." if counts else ""
    limited, cuts = manifest.metrics.get(LIMITED_BY_WINDOW), manifest.metrics.get("cut to fit")
    if isinstance(limited, dict) and limited.get("cut"):
        return (
            f"Text was cut in {name}: for {_answers(limited['cut'])} the passages of the source did not all "
            f"fit the model's context window{_size(windows.get('answer'))}."
        )
    if isinstance(cuts, dict) and cuts:
        texts, of = (sum(each[key] for each in cuts.values()) for key in ("texts", "of"))
        size = next((_size(window) for window in windows.values()), "") if len(windows) == 1 else ""
        return f"Text was cut in {name}: {texts:,} of {of:,} texts did not fit a model's context window{size}."
    return ""


def _cut_answers(artefact: Artefact) -> dict[tuple[str, str], tuple[int, int]]:
    """For each model and condition, how many answers lack text that did not fit, and how many answers there are."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for line in read_jsonl(artefact.file("answers.jsonl"), _ShownLine):
        cut, total = found.get((line.model, line.condition), (0, 0))
        found[line.model, line.condition] = cut + bool(line.dropped), total + 1
    return found


def _systems_in_words(counts: Mapping[tuple[str, str], tuple[int, int]], windows: Mapping[str, ContextWindow]) -> str:
    """The systems with the most such answers, and the window that was too small where it is one."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1][0] / item[1][1], item[0]))
    named = [f"{cut:,} of {_answers(total)} ({model} · {condition})" for (model, condition), (cut, total) in ranked]
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
