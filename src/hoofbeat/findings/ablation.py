"""What a setting is worth: the same retriever under several settings, as a grid, each against one named baseline.

So tables of chunking, stride, context length or reranking are made: one setting down, one across, a measure in the
cells, and beside it what it gains over the baseline, paired by question.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.findings.clusters import cluster_labels
from hoofbeat.findings.intervals import SAMPLES, Difference, Interval, bootstrap_mean, paired_difference
from hoofbeat.findings.systems import shared_values

RunSettings = Mapping[str, object]
"""The settings of one row: name to value."""


class AblationCell(Struct, frozen=True, kw_only=True):
    """One combination of settings: its mean, and what it gains over the baseline (None for the baseline itself).

    `relative` is the gain as a share of the baseline's mean; None where that is 0.
    """

    down: str
    across: str
    mean: float
    interval: Interval
    baseline: bool = False
    gain: Difference | None = None
    relative: float | None = None


class Ablation(Struct, frozen=True, kw_only=True):
    """A grid of settings by one measure over the `n` questions that all rows share.

    `rows` and `columns` are the values of the settings `down` and `across` in the order they first came; without a
    second setting there is one column, named after the measure. A combination nobody ran has no cell. `fixed` are the
    settings that all rows share. `left_out` counts questions that some rows have and others have not.
    """

    measure: str
    n: int
    down: str
    across: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: tuple[AblationCell, ...]
    fixed: dict[str, str]
    left_out: int

    def cell(self, down: str, across: str) -> AblationCell | None:
        """The cell of a row and a column, if that combination was run."""
        return next((cell for cell in self.cells if (cell.down, cell.across) == (down, across)), None)


def ablation(
    runs: Sequence[tuple[RunSettings, Mapping[str, Mapping[str, float]]]],
    measure: str,
    *,
    down: str,
    across: str = "",
    baseline: RunSettings | None = None,
    clusters: Mapping[str, str] | None = None,
    samples: int = SAMPLES,
    level: float = 0.95,
    seed: int = 0,
) -> Ablation:
    """Pivot runs (settings, question to measure to value) by one or two settings.

    `baseline` names the run that the others are set against by some of its settings; the first run if it is None.
    """
    named = {_key(settings, down, across, measure): (settings, rows) for settings, rows in runs}
    if len(named) < len(runs) or not runs:
        raise _crowded(runs, down, across, measure)
    base = _baseline(named, baseline)
    questions, values = shared_values({"\t".join(key): rows for key, (_, rows) in named.items()}, measure)
    labels = cluster_labels(questions, clusters)
    against = values["\t".join(base)]
    cells = []
    for key in named:
        mine = values["\t".join(key)]
        gain = paired_difference(mine, against, clusters=labels, samples=samples, level=level, seed=seed)
        start = float(against.mean())
        cells.append(
            AblationCell(
                down=key[0],
                across=key[1],
                mean=float(mine.mean()),
                interval=bootstrap_mean(mine, clusters=labels, samples=samples, level=level, seed=seed),
                baseline=key == base,
                gain=None if key == base else gain,
                relative=None if key == base or not start else gain.difference / start,
            )
        )
    seen = {question for _, rows in runs for question, row in rows.items() if measure in row}
    return Ablation(
        measure=measure,
        n=len(questions),
        down=down,
        across=across,
        rows=tuple(dict.fromkeys(key[0] for key in named)),
        columns=tuple(dict.fromkeys(key[1] for key in named)),
        cells=tuple(cells),
        fixed=_fixed([settings for settings, _ in runs], {down, across}),
        left_out=len(seen) - len(questions),
    )


def _key(settings: RunSettings, down: str, across: str, measure: str) -> tuple[str, str]:
    for name in filter(None, (down, across)):
        if name not in settings:
            has = ", ".join(map(str, settings)) or "none"
            raise UsageError(f"a run has no setting {name!r}", fix=f"its settings are: {has}")
    return _word(settings[down]), _word(settings[across]) if across else measure


def _word(value: object) -> str:
    """A setting's value as one line of text."""
    return " ".join(str(value).split()) or "(empty)"


def _crowded(runs: Sequence[tuple[RunSettings, object]], down: str, across: str, measure: str) -> UsageError:
    """What is wrong: no runs, or two of them in one cell, and then in which other settings they differ."""
    seen: dict[tuple[str, str], RunSettings] = {}
    for settings, _ in runs:
        key = _key(settings, down, across, measure)
        if key in seen:
            other = seen[key]
            apart = [name for name in {**other, **settings} if other.get(name) != settings.get(name)]
            place = f"{down} {key[0]}" + (f" and {across} {key[1]}" if across else "")
            differ = f"they differ in {', '.join(map(str, apart))}" if apart else "all their settings are the same"
            return UsageError(f"two runs have {place}: {differ}", fix="leave one out, or pivot by another setting")
        seen[key] = settings
    return UsageError("there are no runs to compare", fix="give at least one")


def _baseline(
    named: Mapping[tuple[str, str], tuple[RunSettings, object]], baseline: RunSettings | None
) -> tuple[str, str]:
    fitting = [
        key
        for key, (settings, _) in named.items()
        if all(name in settings and _word(settings[name]) == _word(value) for name, value in (baseline or {}).items())
    ]
    if not fitting or (baseline is not None and len(fitting) > 1):
        told = ", ".join(f"{name} {value}" for name, value in (baseline or {}).items()) or "no settings"
        raise UsageError(
            f"{len(fitting)} runs have the baseline's settings ({told})", fix="name settings that one run has alone"
        )
    return fitting[0]


def _fixed(settings: Sequence[RunSettings], pivots: set[str]) -> dict[str, str]:
    names = [name for name in settings[0] if name not in pivots and all(name in each for each in settings)]
    return {name: _word(settings[0][name]) for name in names if len({_word(each[name]) for each in settings}) == 1}
