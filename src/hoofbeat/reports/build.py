"""From artefact folders to a report folder: one page, the same as Markdown and LaTeX, its charts and all its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import hoofbeat
from hoofbeat.errors import UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.reports.model import Block, Card, Notice, Report
from hoofbeat.reports.sections.audits import audit_parts
from hoofbeat.reports.sections.benchmark import benchmark_part
from hoofbeat.reports.sections.common import Part
from hoofbeat.reports.sections.corpus import corpus_part
from hoofbeat.reports.sections.errors import errors_part
from hoofbeat.reports.sections.leakage import leakage_part
from hoofbeat.reports.sections.origin import origin_blocks
from hoofbeat.reports.sections.published import papers, published_part, ranking_figures
from hoofbeat.reports.sections.rankings import rankings_parts
from hoofbeat.reports.sections.runs import makes_choices, run_part
from hoofbeat.reports.sections.scores import DRAWS, SIZE, scores_parts
from hoofbeat.reports.sections.stats import stats_part
from hoofbeat.reports.sections.validation import validation_part
from hoofbeat.reports.sections.validation_ablation import ablation_part
from hoofbeat.reports.words import count_of, model_name
from hoofbeat.reports.writing import FORMATS, write_report
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.files import file_sha256

__all__ = ["KINDS", "Choices", "assemble", "build_report"]

KIND = "report"

KINDS = (
    "corpus", "stats", "benchmark", "rankings", "run", "judgments", "leakage",
    "audit", "themes", "validation", "ablation",
)  # fmt: skip
"""The kinds of artefacts a report can show, in the order of its chapters."""

_NOTICE = "Research software. Not for clinical use."
_CARDS = 8
_COUNTS = ("Documents: ", "Median length: ", "Questions in")

Planted = Mapping[tuple[str, str, str], str]


class Choices(Struct, frozen=True, kw_only=True):
    """What a report shows beside its artefacts: papers by name, files of error labels, the bootstrap of mean ± sd."""

    published: tuple[str, ...] = ()
    errors: tuple[Path, ...] = ()
    draws: int = DRAWS
    size: int = SIZE


def build_report(
    paths: Sequence[Path],
    target: Path,
    *,
    title: str,
    notes: Sequence[str] = (),
    planted: Planted | None = None,
    choices: Choices | None = None,
    formats: Sequence[str] = FORMATS,
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write a report on any mix of artefacts.

    `notes` are warnings for the first screen; `planted` maps (question, source, other source) to the label planted
    there, against which an audit's judge is set. The folder holds what the `formats` ask for: `report.html`,
    `report.md` with `charts/`, `report.tex`, and `tables/` as CSV and LaTeX.
    """
    if not paths:
        raise UsageError("a report needs at least one artefact", fix="name folders that hoofbeat commands wrote")
    chosen = choices or Choices()
    unknown = [name for name in chosen.published if name not in papers()]
    if unknown:
        raise UsageError(f"there are no published figures of {unknown[0]!r}", fix=f"there are: {', '.join(papers())}")
    artefacts = [open_artefact(path, KINDS) for path in dict.fromkeys(path.resolve() for path in paths)]
    with create(target, replace_kind=KIND) as draft:
        report = assemble(artefacts, title=title, notes=notes, planted=planted, choices=chosen, progress=progress)
        write_report(report, draft.path, formats)
        draft.finish(
            Manifest(
                kind=KIND,
                title=title,
                command=list(command),
                inputs=[
                    *(artefact.reference() for artefact in artefacts),
                    *(InputRef(name=path.name, sha256=file_sha256(path), kind="labels") for path in chosen.errors),
                ],
                settings={
                    "title": title,
                    "notes": list(notes),
                    "planted": len(planted or {}),
                    "formats": list(formats),
                    "published": list(chosen.published),
                    "draws": chosen.draws,
                    "size": chosen.size,
                },
                seeds={"bootstrap": 0},
                models=dict(report.models),
                counts=Counts(kept=len(artefacts)),
                metrics={
                    card.label: f"{card.value} ({card.detail})" if card.detail else card.value for card in report.cards
                },
            )
        )
    return open_artefact(target, KIND)


def assemble(
    artefacts: Sequence[Artefact],
    *,
    title: str,
    notes: Sequence[str] = (),
    planted: Planted | None = None,
    choices: Choices | None = None,
    progress: Progress = SILENT,
) -> Report:
    """The report as blocks, chapter by chapter in the order of the flow, whatever the order of the artefacts."""
    parts = _parts(artefacts, planted, choices or Choices(), progress)
    blocks: list[Block] = [block for part in parts for block in part.all_blocks()]
    if not parts:
        blocks.append(Notice("There is nothing to show."))
    blocks += origin_blocks(artefacts)
    kinds = [kind for kind in KINDS if any(artefact.manifest.kind == kind for artefact in artefacts)]
    return Report(
        title=title,
        notice=_NOTICE,
        version=hoofbeat.__version__,
        subtitle=f"{count_of(len(artefacts), 'artefact')}: {', '.join(kinds)}.",
        notes=(*notes, *(note for part in parts for note in part.notes)),
        leads=tuple(lead for part in parts for lead in part.leads),
        cards=_cards(parts),
        models=_models(artefacts),
        blocks=tuple(blocks),
        files=tuple(file for part in parts for file in part.files),
    )


def _parts(artefacts: Sequence[Artefact], planted: Planted | None, choices: Choices, progress: Progress) -> list[Part]:
    placed: dict[str, list[tuple[str, Artefact]]] = {kind: [] for kind in KINDS}
    for artefact in artefacts:
        of_kind = placed[artefact.manifest.kind]
        of_kind.append((f"{artefact.manifest.kind}-{len(of_kind) + 1}", artefact))
    behind = {ref.sha256 for _, artefact in placed["judgments"] for ref in artefact.manifest.inputs}
    judged = [prefix for prefix, artefact in placed["run"] if artefact.reference().sha256 in behind]
    scored = [(prefix, run) for prefix, run in placed["run"] if prefix not in judged and makes_choices(run)]
    parts = [corpus_part(artefact, prefix) for prefix, artefact in placed["corpus"]]
    parts += [stats_part(artefact, prefix) for prefix, artefact in placed["stats"]]
    parts += [benchmark_part(artefact, prefix) for prefix, artefact in placed["benchmark"]]
    parts += rankings_parts(placed["rankings"])
    parts += [run_part(run, prefix, prefix in judged) for prefix, run in placed["run"] if (prefix, run) not in scored]
    runs = [run for _, run in placed["run"]]
    scores, ours = scores_parts(
        placed["judgments"], scored, given=runs, draws=choices.draws, size=choices.size, progress=progress
    )
    parts += scores
    wrong = errors_part(choices.errors, [artefact for kind in ("judgments", "run") for _, artefact in placed[kind]])
    parts += [wrong] if wrong else []
    ours += ranking_figures([artefact for _, artefact in placed["rankings"]])
    parts += [part for part in [published_part(choices.published, ours)] if part]
    parts += [leakage_part(artefact, prefix) for prefix, artefact in placed["leakage"]]
    parts += audit_parts(placed["audit"], placed["themes"], planted)
    parts += [validation_part(artefact, prefix) for prefix, artefact in placed["validation"]]
    parts += [ablation_part(artefact, prefix) for prefix, artefact in placed["ablation"]]
    return parts


def _cards(parts: Sequence[Part]) -> tuple[Card, ...]:
    """The key figures, the findings' before the counts'."""
    last_first = [card for part in parts for card in part.cards]
    counts = [card for card in last_first if card.label.startswith(_COUNTS)]
    return tuple([card for card in last_first if card not in counts] + counts)[:_CARDS]


def _models(artefacts: Sequence[Artefact]) -> tuple[tuple[str, str], ...]:
    """Each role and the models that filled it."""
    roles: dict[str, dict[str, None]] = {}
    for artefact in artefacts:
        for role, identity in artefact.manifest.models.items():
            roles.setdefault(role.partition(":")[0], {})[model_name(identity)] = None
    return tuple((role, ", ".join(names)) for role, names in roles.items())
