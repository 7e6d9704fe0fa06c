"""From artefact folders to a report folder: one page, the same as Markdown and LaTeX, its charts and all its tables.

The last chapter says how each artefact was made: enough to make it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from hoofbeat.errors import UsageError
from hoofbeat.findings.caveats import cut_warnings, folder_caveats, instruction_notes, limited_in_words, window_notes
from hoofbeat.models.replay import recorded_in_words
from hoofbeat.progress import SILENT, Progress
from hoofbeat.reports.model import Block, Card, Details, Heading, Lead, Notice, PlainSummary, Report, Text
from hoofbeat.reports.report_writer import FORMATS, check_formats, write_report
from hoofbeat.reports.section import Chapter, PlantedLabels, ReportInputs, ReportOptions, report_kinds, sections
from hoofbeat.reports.sections.published_section import check_papers
from hoofbeat.reports.tables import Cell, Table, columns_of, count_of, model_name, money_words, short_hash
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.tables import canonical_json
from hoofbeat.text import some_of
from hoofbeat.version import __version__
from hoofbeat.window import windows_of

_INPUTS = 50


def origin_blocks(artefacts: Sequence[Artefact]) -> list[Block]:
    """The last chapter."""
    blocks: list[Block] = [
        Heading("How this was made", "origin"),
        Text(
            "Hashes are the first twelve digits of SHA-256, of a file or of an artefact's manifest. Bootstrap "
            "intervals in this report use 1,000 samples and seed 0. The same folders always give the same report."
        ),
        _costs(artefacts),
    ]
    for number, artefact in enumerate(artefacts, start=1):
        blocks.append(Heading(f"{artefact.manifest.kind}: {artefact.path.name}", f"origin-{number}", 3, listed=False))
        blocks.append(_facts(artefact, number))
        if artefact.manifest.inputs:
            table = _inputs(artefact.manifest, number)
            few = len(artefact.manifest.inputs) <= 5
            blocks.append(table if few else Details(f"Inputs ({len(artefact.manifest.inputs)})", (table,)))
    return blocks


def _facts(artefact: Artefact, number: int) -> Table:
    manifest = artefact.manifest
    counts = manifest.counts
    rows: list[tuple[str, str]] = [
        ("title", manifest.title),
        ("command", manifest.command_text),
        ("manifest", short_hash(artefact.reference().sha256)),
        ("version", f"Hoofbeat {manifest.version}" if manifest.version else ""),
        ("revision", manifest.revision),
        ("counts", f"{counts.kept:,} kept, {counts.rejected:,} rejected, {counts.failed:,} failed"),
        *((f"model: {role}", name) for role, name in manifest.models.items()),
        *((f"prompt: {role}", name) for role, name in manifest.prompts.items()),
        *((f"seed: {name}", str(seed)) for name, seed in manifest.seeds.items()),
        *((f"window: {role}", str(window)) for role, window in windows_of(manifest.settings).items()),
        ("limited by window", limited_in_words(manifest)),
        *((f"setting: {name}", _setting(value)) for name, value in manifest.settings.items() if name != "windows"),
        ("cost", _cost(manifest.cost) if manifest.cost.calls else "no model calls"),
    ]
    kept = tuple((name, value) for name, value in rows if value)
    return Table(
        name=f"origin-{number}-{artefact.path.name}",
        caption=f"{artefact.path.name}: how it was made",
        n=counts.kept,
        unit="items kept",
        columns=columns_of("fact | value"),
        rows=kept,
    )


def _setting(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value).decode()


def _cost(cost: Cost) -> str:
    money = f", {money_words(cost.money)}" if cost.money else ""
    return f"{count_of(cost.calls, 'call')}, {cost.tokens_in:,} tokens in, {cost.tokens_out:,} out{money}"


def _inputs(manifest: Manifest, number: int) -> Table:
    rows = tuple((ref.name, ref.kind or "file", short_hash(ref.sha256)) for ref in manifest.inputs[:_INPUTS])
    total = len(manifest.inputs)
    return Table(
        name=f"origin-{number}-inputs",
        caption="Inputs",
        n=total,
        unit="inputs",
        columns=columns_of("input | kind | hash"),
        rows=rows,
        note=f"The first {_INPUTS} of {total:,}." if total > _INPUTS else "",
    )


def _costs(artefacts: Sequence[Artefact]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    total = Cost()
    for artefact in artefacts:
        cost = artefact.manifest.cost
        total += cost
        rows.append(
            (artefact.path.name, artefact.manifest.kind, cost.calls, cost.tokens_in, cost.tokens_out, cost.money)
        )
    rows.append(("all", "", total.calls, total.tokens_in, total.tokens_out, total.money))
    columns = columns_of("artefact | kind | calls:count | tokens in:count | tokens out:count | cost in $:number")
    return Table(
        name="costs",
        caption="Cost of each artefact",
        n=len(artefacts),
        unit="artefacts",
        columns=columns,
        rows=tuple(rows),
    )


KIND = "report"
_NOTICE = "Research software. Not for clinical use."
_CARDS = 8
_LEADS = 6
_SUBJECTS = 3
_MAX_NAMES = 4
_COUNTS = ("Documents: ", "Median length: ", "Questions in", "Review tasks", "Model calls")


def build_report(
    paths: Sequence[Path],
    target: Path,
    *,
    title: str = "",
    notes: Sequence[str] = (),
    planted: PlantedLabels | None = None,
    options: ReportOptions | None = None,
    formats: Sequence[str] = FORMATS,
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write a report on any mix of artefacts.

    `notes` are warnings for the first screen; `planted` maps (question, source, other source) to the label planted
    there, against which an audit's judge is set. The folder holds what the `formats` ask for: `report.html`,
    `report.md` with `charts/`, `report.tex`, and `tables/` as CSV and LaTeX; and for an office `report.xlsx`,
    `report.docx` and `summary.pdf`, which need the extra `office`.
    """
    if not paths:
        raise UsageError("a report needs at least one artefact", fix="name folders that hoofbeat commands wrote")
    chosen = options or ReportOptions()
    check_formats(formats)
    check_papers(chosen.published)
    artefacts = [open_artefact(path, report_kinds()) for path in dict.fromkeys(path.resolve() for path in paths)]
    with create(target, replace_kind=KIND) as draft:
        report = assemble(
            artefacts,
            title=title,
            notes=notes,
            planted=planted,
            options=chosen,
            progress=progress,
        )
        write_report(report, draft.path, formats)
        draft.finish(
            Manifest(
                kind=KIND,
                title=report.title,
                command=list(command),
                inputs=[
                    *(artefact.reference() for artefact in artefacts),
                    *(file_reference(path, "labels") for path in chosen.errors),
                    *chosen.decision_files,
                ],
                settings={
                    "title": report.title,
                    "notes": list(notes),
                    "planted": len(planted or {}),
                    "formats": list(formats),
                    "published": list(chosen.published),
                    "draws": chosen.draws,
                    "size": chosen.size,
                    **({"decisions": len(chosen.decisions)} if chosen.decisions is not None else {}),
                },
                seeds={"bootstrap": 0},
                models=dict(report.models),
                counts=Counts(kept=len(artefacts)),
                metrics={
                    **({"found": [lead.text for lead in report.leads]} if report.leads else {}),
                    **{
                        card.label: f"{card.value} ({card.detail})" if card.detail else card.value
                        for card in report.cards
                    },
                },
            )
        )
    return open_artefact(target, KIND)


def _folder_names(artefacts: Sequence[Artefact]) -> str:
    """What a report is about, where nobody says it: the names of the first folders."""
    names = list(dict.fromkeys(artefact.path.resolve().name for artefact in artefacts))
    if len(names) > _MAX_NAMES:
        return some_of(names, _MAX_NAMES)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def assemble(
    artefacts: Sequence[Artefact],
    *,
    title: str,
    notes: Sequence[str] = (),
    planted: PlantedLabels | None = None,
    options: ReportOptions | None = None,
    progress: Progress = SILENT,
) -> Report:
    """The report as blocks: findings in the order of the flow, then questions and documents, then how all was made.

    Without a title it has the subjects of its findings, else the names of the folders.
    """
    chapters = _chapters(artefacts, planted, options or ReportOptions(), progress)
    blocks: list[Block] = [block for chapter in chapters for block in chapter.all_blocks()]
    if not chapters:
        blocks.append(Notice("There is nothing to show: these folders are empty."))
    heading, *made = origin_blocks(artefacts)
    recorded = recorded_in_words(name for each in artefacts for name in each.manifest.models.values())
    kinds = [kind for kind in report_kinds() if any(artefact.manifest.kind == kind for artefact in artefacts)]
    return Report(
        title=title or _subject(chapters) or _folder_names(artefacts),
        notice=_NOTICE,
        version=__version__,
        subtitle=f"Folders: {_folder_names(artefacts)} ({', '.join(kinds)}). {recorded}".rstrip(),
        opening=tuple(block for chapter in chapters for block in chapter.opening),
        warnings=tuple(cut_warnings(artefacts)),
        notes=(
            *notes,
            *folder_caveats(artefacts),
            *(note for chapter in chapters for note in chapter.notes),
            *instruction_notes(artefacts),
            *window_notes(artefacts),
        ),
        leads=_leads(chapters),
        cards=_cards(chapters),
        models=_models(artefacts),
        blocks=tuple(blocks),
        origin=(heading, Details("Commands, models, settings, hashes and cost of each folder", tuple(made))),
        summaries=_summaries(chapters, title),
        files=tuple(file for chapter in chapters for file in chapter.files),
    )


def _summaries(chapters: Sequence[Chapter], title: str) -> tuple[tuple[str, PlainSummary], ...]:
    """The pages in plain sentences. They have the title that the user gave, if there is one."""
    found = [(chapter.id, chapter.summary) for chapter in chapters if chapter.summary]
    if not title:
        return tuple(found)
    if len(found) > 1:
        return tuple((name, replace(each, title=f"{title}: {each.title}")) for name, each in found)
    return tuple((name, replace(each, title=title, subtitle=f"{each.title}. {each.subtitle}")) for name, each in found)


def _chapters(
    artefacts: Sequence[Artefact], planted: PlantedLabels | None, options: ReportOptions, progress: Progress
) -> list[Chapter]:
    """The chapters of all sections that have something to show, in order."""
    placed: dict[str, list[tuple[str, Artefact]]] = {}
    for artefact in artefacts:
        of_kind = placed.setdefault(artefact.manifest.kind, [])
        of_kind.append((f"{artefact.manifest.kind}-{len(of_kind) + 1}", artefact))
    chapters: list[Chapter] = []
    for section in sections():
        if section.kinds and placed.keys().isdisjoint(section.kinds):
            continue
        made = section.build(
            ReportInputs(artefacts=placed, options=options, planted=planted, progress=progress, chapters=chapters)
        )
        taken = {each.id for each in chapters}
        if doubled := [each.id for each in made if each.id in taken]:
            raise UsageError(
                f"the section {section.name} makes a chapter with the id {doubled[0]!r}, which is already used",
                fix="let the section write another id, such as the artefact's prefix and the section's name",
            )
        chapters += made
    return chapters


def _subject(chapters: Sequence[Chapter]) -> str:
    """What the report is about: the subjects of its findings, where they are few and each has one."""
    findings = [chapter for chapter in chapters if not chapter.background] or chapters
    subjects = list(dict.fromkeys(chapter.subject for chapter in findings))
    return "; ".join(subjects) if all(subjects) and len(subjects) <= _SUBJECTS else ""


def _leads(chapters: Sequence[Chapter]) -> tuple[Lead, ...]:
    """At most six sentences: the first of every chapter, then the second, findings before what they rest on."""
    ranked = sorted(
        (chapter.background, place, number)
        for number, chapter in enumerate(chapters)
        for place in range(len(chapter.leads))
    )
    chosen = {(number, place) for _, place, number in ranked[:_LEADS]}
    return tuple(
        lead
        for number, chapter in enumerate(chapters)
        for place, lead in enumerate(chapter.leads)
        if (number, place) in chosen
    )


def _cards(chapters: Sequence[Chapter]) -> tuple[Card, ...]:
    """The key figures, the findings' before the counts'."""
    last_first = [card for chapter in chapters for card in chapter.cards]
    counts = [card for card in last_first if card.label.startswith(_COUNTS)]
    return tuple([card for card in last_first if card not in counts] + counts)[:_CARDS]


def _models(artefacts: Sequence[Artefact]) -> tuple[tuple[str, str], ...]:
    """Each role and the models that filled it."""
    roles: dict[str, dict[str, None]] = {}
    for artefact in artefacts:
        for role, identity in artefact.manifest.models.items():
            roles.setdefault(role.partition(":")[0], {})[model_name(identity)] = None
    return tuple((role, ", ".join(names)) for role, names in roles.items())
