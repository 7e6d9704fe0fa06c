"""An audit's judge measured by people: annotators' labels become the pairs and figures of a validation.

Labels are found by the codes of their items, each is checked, and they are put together by pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.findings.relations import RelationLabels
from hoofbeat.audit.findings.silence_finds import SAYS_SO, SilenceFinds, silence_finds
from hoofbeat.audit.findings.validation_figures import RatedPair, Validation, reference, validation
from hoofbeat.audit.findings.validation_folder import VALIDATION, ValidatedPair, write_tables
from hoofbeat.audit.sample_records import SampledPair
from hoofbeat.audit.validation.packets import (
    Packets,
    answers_of,
    code_number,
    code_of,
    iter_drawable_pairs,
    label_counts,
    number_of,
)
from hoofbeat.errors import InputError
from hoofbeat.judging.blinded_sheet import UNKEYED, AnnotatorFile, blinding_secret, read_rows
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack, RelationLabel
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.sheets import refuse_lines
from hoofbeat.store.tables import content_sha256
from hoofbeat.text import caseless

_MAX_PROBLEMS = 10
_NO_LEVEL = {"", "-", "–", "none", "n/a", "na"}


_SILENT_COLUMN = ("passages answer it", "passages_answer_it", "says so", "says_so")
"""Whether the nearest passages of a silent source answer the question: in CSV and JSON, and as it was called before."""


class AnnotatorLabel(Struct, frozen=True, kw_only=True):
    """What one person said of a pair; `significance` is None where none was given or the label takes none."""

    label: str
    significance: str | None = None
    note: str = ""
    says_so: str = ""


class HumanLabels(Struct, frozen=True, kw_only=True):
    """Everything people said: by pair and annotator, what was settled between them by pair, and remarks for the user.

    `codes` has each pair's code in the files, `empty` counts, by annotator, the items of the packet that got no label.
    """

    pairs: tuple[SampledPair, ...]
    codes: dict[tuple[str, str, str], str]
    labels: dict[tuple[str, str, str], dict[str, AnnotatorLabel]]
    adjudicated: dict[tuple[str, str, str], AnnotatorLabel]
    annotators: tuple[str, ...]
    empty: dict[str, int]
    notes: tuple[str, ...]


class _Reading(Struct, frozen=True, kw_only=True):
    """What is needed to read one file."""

    pack: Pack
    known: Mapping[int, SampledPair]
    partial: bool
    settled: bool = False


class _Taken(Struct, kw_only=True):
    """What has been taken in so far: by annotator and pair, with the place where it stood."""

    said: dict[str, dict[tuple[str, str, str], AnnotatorLabel]]
    places: dict[tuple[str, tuple[str, str, str]], str]
    empty: dict[str, int]
    unasked: int = 0
    unrated: int = 0


def human_labels(
    audit: Audit,
    files: Sequence[Path],
    *,
    adjudicated: Path | None = None,
    packets: Packets | None = None,
    partial: bool = False,
    progress: Progress = SILENT,
) -> HumanLabels:
    """Read annotators' files. All that is wrong with a file is told at once, with its lines.

    Items without a label are an error unless `partial` allows them. An annotator is who the column `annotator` names,
    else the file's name. With `packets` the items must be theirs; without, they are found in the audit by their codes.
    """
    read = [_rows(path) for path in files]
    settled = _rows(adjudicated) if adjudicated else None
    known = _known(audit, [*read, *([settled] if settled else [])], packets, progress)
    how = _Reading(pack=audit.pack, known=known, partial=partial)
    taken = _Taken(said={}, places={}, empty={})
    for rows in read:
        _take(rows, how, taken)
    _refuse_copies(read)
    if packets is not None:
        _check_complete(taken, packets, partial)
    decided = _Taken(said={}, places={}, empty={})
    if settled:
        _take(settled, _Reading(pack=audit.pack, known=known, partial=True, settled=True), decided)
    final = {pair: given for rows in decided.said.values() for pair, given in rows.items()}
    by_pair: dict[tuple[str, str, str], dict[str, AnnotatorLabel]] = {}
    for annotator in sorted(taken.said):
        for pair, given in taken.said[annotator].items():
            by_pair.setdefault(pair, {})[annotator] = given
    asked = {pair.key: pair for pair in known.values()}
    order = [asked[pair] for pair in sorted(asked) if packets is not None or pair in by_pair or pair in final]
    return HumanLabels(
        pairs=tuple(order),
        codes={pair.key: code_of(number) for number, pair in known.items()},
        labels=dict(sorted(by_pair.items())),
        adjudicated=dict(sorted(final.items())),
        annotators=tuple(sorted(taken.said)),
        empty=taken.empty,
        notes=_notes(read, settled, taken, packets.design.annotators if packets else ()),
    )


def _rows(path: Path) -> AnnotatorFile:
    missing = InputError(
        "the first line does not name the columns `item` and `label`",
        where=str(path),
        fix="use the packet's own file with its first line, as CSV or JSONL",
    )
    return read_rows(path, missing)


def _refuse_copies(files: Sequence[AnnotatorFile]) -> None:
    """Refuse two files that differ in the annotator at most: one person would count as two who agree on everything."""
    seen: dict[str, Path] = {}
    for file in files:
        rows = content_sha256([{name: cells[name] for name in cells if name != "annotator"} for _, cells in file.rows])
        if rows in seen:
            raise InputError(
                f"this file has the same rows in the same order as {seen[rows]}",
                where=str(file.path),
                fix="give each person's file once; for two people who agree on everything, put all rows into one file "
                "with a column `annotator`",
            )
        seen[rows] = file.path


def _known(
    audit: Audit, files: Sequence[AnnotatorFile], packets: Packets | None, progress: Progress
) -> dict[int, SampledPair]:
    """The pairs behind the codes: those of the packets, else those of the audit that a file names."""
    if packets is not None:
        packets.check(audit)
        codes = ((code_number(row.item), row.pair) for row in packets.key)
        return {number: pair for number, pair in codes if number is not None}
    wanted = {code_number(cells.get("item", "")) for rows in files for _, cells in rows.rows}
    secrets = (blinding_secret(audit.artefact), UNKEYED)
    return {
        number: SampledPair.of(row)
        for row in iter_drawable_pairs(audit, progress, title="finding the pairs")
        for secret in secrets
        if (number := number_of(secret, row[0], row[1], row[2])) in wanted
    }


def _take(rows: AnnotatorFile, how: _Reading, taken: _Taken) -> None:
    """Take one file's labels in, or say what is wrong with its lines."""
    problems: list[str] = []
    given = 0
    for line, cells in rows.rows:
        problem = _take_row(rows.path, line, cells, how, taken)
        if problem:
            problems.append(f"line {line}: {problem}")
        given += bool(cells.get("label"))
    if not given and not problems:
        problems.append("no row has a label")
    refuse_lines(
        problems,
        rows.path,
        "correct these lines (--partial allows rows without a label); nothing was written",
    )


def _take_row(path: Path, line: int, cells: Mapping[str, str], how: _Reading, taken: _Taken) -> str:
    """Take one row in; what is wrong with it, or nothing."""
    number = code_number(cells.get("item", ""))
    pair = how.known.get(number) if number is not None else None
    if not cells.get("item"):
        return "the row has no item"
    if pair is None:
        return f"there is no item {cells['item']!r} in this sample"
    who = "" if how.settled else cells.get("annotator") or path.stem
    if not cells.get("label"):
        taken.empty[who] = taken.empty.get(who, 0) + 1
        return "" if how.partial else f"{cells['item']} has no label"
    label = _label(cells["label"], how.pack)
    if label is None:
        return f"{cells['label']!r} is not one of the labels ({', '.join(each.name for each in how.pack.labels)})"
    level = cells.get("significance", "").lower()
    levels = {name.lower(): name for name in how.pack.significance_levels}
    if level not in _NO_LEVEL and level not in levels:
        return f"{cells['significance']!r} is not a level of significance ({', '.join(how.pack.significance_levels)})"
    says_so = next((cells[name] for name in _SILENT_COLUMN if cells.get(name)), "").strip().lower()
    if says_so and says_so not in SAYS_SO:
        return f"{says_so!r} is not allowed in the column `{_SILENT_COLUMN[0]}` ({', '.join(SAYS_SO)})"
    place = f"line {line} of {path.name}"
    if (who, pair.key) in taken.places:
        told = "settled" if how.settled else f"labelled by {who}"
        return f"{cells['item']} was already {told} ({taken.places[who, pair.key]})"
    taken.places[who, pair.key] = place
    taken.unasked += level in levels and not label.significance
    taken.unrated += level not in levels and label.significance
    taken.said.setdefault(who, {})[pair.key] = AnnotatorLabel(
        label=label.name,
        significance=levels.get(level) if label.significance else None,
        note=cells.get("note", ""),
        says_so=says_so,
    )
    return ""


def _label(text: str, pack: Pack) -> RelationLabel | None:
    folded = caseless(text)
    return next((label for label in pack.labels if label.name.casefold() == folded), None)


def _check_complete(taken: _Taken, packets: Packets, partial: bool) -> None:
    """Every item of the packets must be labelled by everybody, unless a part will do."""
    items = {row.pair.key: row.item for row in packets.key}
    for annotator, said in sorted(taken.said.items()):
        left = sorted(items[pair] for pair in items.keys() - said.keys())
        taken.empty[annotator] = len(left)
        if left and not partial:
            told = ", ".join(left[:_MAX_PROBLEMS]) + (" …" if len(left) > _MAX_PROBLEMS else "")
            raise InputError(
                f"{annotator} has no label for {len(left)} of {len(items)} items: {told}",
                where=str(packets.artefact.path),
                fix="label them, or continue without them: --partial",
            )


def _notes(
    read: Sequence[AnnotatorFile], settled: AnnotatorFile | None, taken: _Taken, named: Sequence[str]
) -> tuple[str, ...]:
    notes = [f"{rows.path.name}: {rows.note}" for rows in [*read, *([settled] if settled else [])] if rows.note]
    notes += [
        f"{who or 'nobody'}: {count} items without a label" for who, count in sorted(taken.empty.items()) if count
    ]
    if named and (others := sorted(taken.said.keys() - set(named))):
        notes.append(
            f"names that the packets do not have: {', '.join(others)}. A person with two names counts as two people"
        )
    if taken.unasked:
        notes.append(f"{taken.unasked} ratings of significance are ignored: their labels take none")
    if taken.unrated:
        notes.append(f"{taken.unrated} labels need a significance but have none")
    if len(taken.said) == 1:
        notes.append("only one annotator: agreement between people can't be measured")
    return tuple(notes)


def validate_audit(
    audit: Audit,
    given: HumanLabels,
    target: Path,
    *,
    files: Sequence[Path],
    packets: Packets | None = None,
    partial: bool = False,
    seed: int = 0,
    command: Sequence[str] = (),
) -> tuple[Artefact, Validation]:
    """Write the folder of a validation, and give its figures; `files` are those that the labels came from."""
    counts, unlabelled = label_counts(audit)
    pairs = validated_pairs(audit, given, counts)
    figures = validation(
        [pair.rated for pair in pairs],
        counts,
        RelationLabels.of(audit.pack.labels),
        audit.pack.significance_levels,
        unlabelled=unlabelled,
        seed=seed,
    )
    figures = replace(figures, silence=_finds(audit, given))
    split = len([pair for pair in pairs if pair.reference.label is None])
    manifest = audit.artefact.manifest
    with create(target, replace_kind=VALIDATION) as draft:
        write_tables(draft.path, pairs, figures)
        draft.finish(
            Manifest(
                kind=VALIDATION,
                title=f"{len(given.annotators)} annotators, {len(pairs)} pairs",
                command=list(command),
                inputs=_inputs(audit, packets, files),
                settings={
                    "pack": manifest.settings.get("pack", ""),
                    "audit": audit.artefact.path.name,
                    "mode": audit.mode,
                    "partial": partial,
                    "notes": list(given.notes),
                },
                seeds={"bootstrap": seed},
                models={role: name for role, name in manifest.models.items() if role.partition(":")[0] == "judge"},
                counts=Counts(
                    kept=len(pairs) - split, rejected=split, reasons={"no reference": split} if split else {}
                ),
                metrics=_summary(figures),
            )
        )
    return open_artefact(target, VALIDATION), figures


def _finds(audit: Audit, given: HumanLabels) -> SilenceFinds | None:
    """What people found in silences; of an adjudicated pair, the adjudication."""
    said = {pair: [each.says_so for each in views.values() if each.says_so] for pair, views in given.labels.items()} | {
        pair: [each.says_so] for pair, each in given.adjudicated.items() if each.says_so
    }
    silent = {
        (each.question, each.source): bool(each.absent) for each in audit.each_answer() if each.absent is not None
    }
    sides = {
        pair.key: sum(silent.get((pair.question, side), False) for side in (pair.a, pair.b)) for pair in given.pairs
    }
    count = sum(silent.values())
    return silence_finds(said, sides, answered=len(silent) - count, silent=count)


def _inputs(audit: Audit, packets: Packets | None, files: Sequence[Path]) -> list[InputRef]:
    """The audit, the packets where they were named, and every file of labels."""
    inputs = [audit.artefact.reference(), *([packets.artefact.reference()] if packets else [])]
    return inputs + [file_reference(path, "labels") for path in files]


def _summary(found: Validation) -> dict[str, object]:
    """The key figures for the manifest."""
    judge = found.judge
    people = found.people.pairs[0] if found.people and len(found.people.pairs) == 1 else None
    return {
        "pairs": found.pairs,
        "references": found.references,
        "annotators_kappa": people.kappa.value if people else None,
        "annotators_alpha": found.people.nominal.value if found.people else None,
        "agreement": judge.agreement.accuracy if judge.agreement.n else None,
        "kappa": judge.agreement.kappa,
        "macro_f1": judge.f1.macro,
        "weighted_f1": judge.f1.weighted,
        "population_agreement": found.population.agreement,
        "significance_kappa": found.significance.agreement.kappa if found.significance else None,
        **({"silences": found.silence.silences, "silences_that_say_so": found.silence.found} if found.silence else {}),
        "corrected": {f"{rate.name} ({rate.scope})": rate.estimate for rate in found.corrected},
    }


def validated_pairs(audit: Audit, given: HumanLabels, counts: Mapping[str, int]) -> list[ValidatedPair]:
    """The sample as records: what people gave beside what the audit has."""
    questions = {question.id: question for question in audit.questions}
    answers = answers_of(audit, given.pairs)
    reasons = _reasons(audit, given.pairs)
    rated = [_rated(pair, given) for pair in given.pairs]
    known = [reference(row) for row in rated]
    labelled = [row.judge for row, said in zip(rated, known, strict=True) if said.label is not None]
    return [
        ValidatedPair(
            rated=row,
            reference=said,
            weight=counts[row.judge] / labelled.count(row.judge) if said.label is not None else None,
            question=questions[row.question].full_text,
            answer_a=answers[row.question, row.a].text,
            answer_b=answers[row.question, row.b].text,
            reasoning=reasons.get((row.question, row.a, row.b), ""),
            notes={
                who: each.note for who, each in given.labels.get((row.question, row.a, row.b), {}).items() if each.note
            },
        )
        for row, said in zip(rated, known, strict=True)
    ]


def _rated(pair: SampledPair, given: HumanLabels) -> RatedPair:
    said = given.labels.get(pair.key, {})
    settled = given.adjudicated.get(pair.key)
    return RatedPair(
        item=given.codes[pair.key],
        question=pair.question,
        a=pair.a,
        b=pair.b,
        judge=pair.label,
        judge_significance=pair.significance,
        basis=pair.basis,
        labels={who: each.label for who, each in said.items()},
        significances={who: each.significance for who, each in said.items() if each.significance},
        adjudicated=settled.label if settled else "",
        adjudicated_significance=settled.significance if settled else None,
    )


def _reasons(audit: Audit, pairs: Sequence[SampledPair]) -> dict[tuple[str, str, str], str]:
    """The judge's reasoning on these pairs."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    wanted = {pair.key for pair in pairs}
    asked = polars.col("question").cast(polars.String).is_in(sorted({pair.question for pair in pairs}))
    rows = audit.frame(["question", "a", "b", "reasoning"]).filter(asked).collect()
    return {(q, a, b): reasoning or "" for q, a, b, reasoning in rows.iter_rows() if (q, a, b) in wanted}
