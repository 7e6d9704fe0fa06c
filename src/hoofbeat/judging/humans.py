"""People's labels: a blinded sheet for annotators out, and their labels in, as judgments beside the model's.

The sheet shows question, gold answer and answer under a code that tells neither model nor condition nor what a judge
said. What comes back is found by the code, or by question, model, condition and sample; a label that belongs to no
answer, is unknown, or stands twice is refused with its line.

Beside a sheet is its design, a file that says how the answers were drawn: seed, strata, chances, and the folder. It
says which codes were drawn and how many answers each stratum has, not which code belongs to which stratum: whoever
reads it while labelling stays blind.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.aspect import Aspect
from hoofbeat.judging.blinded_sheet import UNKEYED, blinding_secret, draw_answers, judge_labels, read_rows
from hoofbeat.judging.catalogue import human_aspects, labels_of
from hoofbeat.judging.criteria import Key, answer_key, answer_text
from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder
from hoofbeat.judging.stratified_sample import blind_code
from hoofbeat.records import Judgment
from hoofbeat.store import InputRef
from hoofbeat.store.files import read_bytes, write_bytes
from hoofbeat.store.sheets import refuse_lines
from hoofbeat.store.tables import write_csv

SUFFIX = ".design.json"
ENOUGH = 10
"""With fewer labels than this, hardly anything can be said of one system."""

METHOD = (
    "systems in proportion to their answers, then the judge's labels within each system, both rounded by systematic "
    "sampling from a random start; simple random sampling within each label of a system"
)


class AnswerStratum(Struct, frozen=True, kw_only=True):
    """The answers of one system with one label of the judge: how many there are, and how many were drawn.

    `inclusion` is the chance of each answer to be drawn, given how many were drawn from its system: the same for all
    of a system's answers. `weight`, one over it, is how many answers one drawn represents (None: none was drawn).
    """

    model: str
    condition: str
    judged: str
    answers: int
    drawn: int
    inclusion: float
    weight: float | None


class SheetDesign(Struct, frozen=True, kw_only=True):
    """How a sheet was drawn. `inclusion` is every answer's chance before anything was drawn, `source` the folder."""

    sheet: str
    aspect: str
    seed: int
    method: str
    asked: int
    answers: int
    drawn: int
    inclusion: float
    source: InputRef
    strata: tuple[AnswerStratum, ...]
    items: tuple[str, ...]

    @property
    def systems(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Each system's answers, and how many of them were drawn."""
        found: dict[tuple[str, str], tuple[int, int]] = {}
        for each in self.strata:
            answers, drawn = found.get((each.model, each.condition), (0, 0))
            found[each.model, each.condition] = answers + each.answers, drawn + each.drawn
        return found

    @property
    def thin(self) -> list[tuple[str, str]]:
        """The systems of which too few answers were drawn to say much about them."""
        return [system for system, (answers, drawn) in self.systems.items() if drawn < min(ENOUGH, answers)]

    def warnings(self) -> list[str]:
        """What to say of systems that get too few labels to be corrected one by one."""
        if not self.thin:
            return []
        smallest = min(answers for answers, _ in self.systems.values())
        enough = min(self.answers, math.ceil(ENOUGH * self.answers / smallest))
        return [
            f"{len(self.thin)} of {len(self.systems)} systems get fewer than {ENOUGH} answers, too few to "
            f"correct their scores reliably; a sheet of {enough} has {ENOUGH} of each"
        ]


class LabelFile(Struct, frozen=True, kw_only=True):
    """A file of labels that was taken in, and how its answers had been drawn (None: that is not known)."""

    file: str
    aspect: str
    labels: int
    design: SheetDesign | None = None


def make_design(
    sizes: Mapping[tuple[str, ...], int],
    given: Mapping[tuple[str, ...], int],
    items: Iterable[str],
    *,
    sheet: str,
    aspect: str,
    seed: int,
    asked: int,
    source: InputRef,
) -> SheetDesign:
    """The design of a sheet from each stratum's size and what it gives; strata are model, condition, judge's label."""
    of_system: dict[tuple[str, ...], tuple[int, int]] = {}
    for name, size in sizes.items():
        answers, drawn = of_system.get(name[:2], (0, 0))
        of_system[name[:2]] = answers + size, drawn + given[name]
    strata = []
    for name, size in sorted(sizes.items()):
        answers, drawn = of_system[name[:2]]
        strata.append(
            AnswerStratum(
                model=name[0],
                condition=name[1],
                judged=name[2],
                answers=size,
                drawn=given[name],
                inclusion=drawn / answers,
                weight=answers / drawn if drawn else None,
            )
        )
    answers, drawn = sum(sizes.values()), sum(given.values())
    return SheetDesign(
        sheet=sheet,
        aspect=aspect,
        seed=seed,
        method=METHOD,
        asked=asked,
        answers=answers,
        drawn=drawn,
        inclusion=drawn / answers if answers else 0.0,
        source=source,
        strata=tuple(strata),
        items=tuple(items),
    )


def design_path(sheet: Path) -> Path:
    """Where the design of a sheet lies."""
    return sheet.with_suffix(SUFFIX)


def write_design(path: Path, design: SheetDesign) -> None:
    """Write the design beside its sheet."""
    write_bytes(design_path(path), msgspec.json.format(msgspec.json.encode(design), indent=1) + b"\n")


def design_of(labels: Path, codes: Iterable[str]) -> tuple[Path, SheetDesign] | None:
    """The design that these labels' codes were drawn by: beside the file under its name, else any in that folder.

    None where no design has all the codes, or the labels have none. A damaged design under the file's own name is told.
    """
    wanted = set(codes)
    if not wanted or "" in wanted:
        return None
    own = design_path(labels)
    for path in [own, *sorted(labels.resolve().parent.glob(f"*{SUFFIX}"))]:
        if not path.is_file():
            continue
        try:
            design = msgspec.json.decode(read_bytes(path), type=SheetDesign)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            if path != own:
                continue
            raise InputError(
                f"the design of the sheet can't be read: {err}",
                where=str(path),
                fix="restore the file that was written with the sheet, or delete it",
            ) from err
        if wanted <= set(design.items):
            return path, design
    return None


_HEADER = (
    "item",
    "question",
    "gold answer",
    "answer",
    "label",
    "second label",
    "annotator",
    "note",
    "labels to choose",
)
_NAMES = {"second label": "secondary", "note": "reasoning", "reason": "reasoning"}


class HumanLabel(Struct, frozen=True, kw_only=True):
    """One line of a file of labels; the answer is named by `item`, or by the other four."""

    line: int
    label: str
    annotator: str
    item: str = ""
    question: str = ""
    model: str = ""
    condition: str = ""
    sample: int = 0
    secondary: str = ""
    reasoning: str = ""


def write_sheet(folder: AnswerFolder, aspect: str, count: int, path: Path, *, seed: int = 0) -> SheetDesign:
    """Write a blinded sheet of `count` answers, and beside it how they were drawn.

    The answers of each system are a separate random sample, in which the judge's labels are mixed as in all of them.
    Of an aspect that explains wrong answers, those are drawn that a judge has explained.
    """
    everything = not _asked_of_people(aspect).explains
    said = judge_labels(folder, aspect)
    if not everything and not said:
        raise UsageError(
            f"no answer here has a judgment of {aspect} yet, so there is nothing to check by hand",
            where=str(folder.artefact.path),
            fix=f"judge it first: hoofbeat judge FOLDER --by {aspect}",
        )
    drawn = draw_answers(folder, aspect, said, count, seed, everything=everything)
    if not drawn.answers:
        raise UsageError("there are no answers to label", where=str(folder.artefact.path), fix="name another folder")
    choose = " | ".join(labels_of(aspect))
    rows = (
        (code, question.full_text, question.reference, answer_text(answer), "", "", "", "", choose)
        for code, answer, _ in drawn.answers
        for question in (folder.questions[answer.question],)
    )
    design = make_design(
        drawn.sizes,
        drawn.given,
        [code for code, _, _ in drawn.answers],
        sheet=path.name,
        aspect=aspect,
        seed=seed,
        asked=count,
        source=folder.artefact.reference(),
    )
    write_design(path, design)
    write_csv(path, _HEADER, rows)
    return design


def _asked_of_people(aspect: str) -> Aspect:
    known = human_aspects()
    if aspect not in known:
        raise UsageError(f"{aspect!r} can't be labelled by people", fix=f"use one of: {', '.join(known)}")
    return known[aspect]


def read_labels(path: Path, *, annotator: str = "") -> tuple[list[HumanLabel], int]:
    """The labels of a CSV or JSONL file, and how many lines have none; `annotator` is for lines that name nobody."""
    found: list[HumanLabel] = []
    empty = 0
    problems: list[str] = []
    for line, cells in _rows(path):
        if not cells.get("label", "").strip():
            empty += 1
            continue
        try:
            found.append(_label(line, cells, annotator))
        except ValueError as err:
            problems.append(f"line {line}: {err}")
    refuse_lines(problems, path)
    if not found:
        raise InputError("this file has no labels", where=str(path), fix="fill in the column `label`")
    return found, empty


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    missing = InputError(
        "the file has no column `label`",
        where=str(path),
        fix="give it the columns item (or question, model, condition, sample), label and annotator",
    )
    found = read_rows(path, missing, needed=("label",))
    if found.note:  # a code page that is guessed would change what people wrote
        raise InputError("the file is not UTF-8", where=str(path), fix="save it as CSV in UTF-8")
    yield from found.rows


def _label(line: int, cells: Mapping[str, str], annotator: str) -> HumanLabel:
    named = {_NAMES.get(name, name): value.strip() for name, value in cells.items()}
    who = named.get("annotator", "") or annotator
    if not who:
        raise ValueError("the column `annotator` is empty")
    sheet = bool(named.get("item"))
    if not sheet and not all(named.get(name) for name in ("question", "model", "condition")):
        raise ValueError("it is not clear which answer this is: give item, or question, model and condition")
    sample = named.get("sample", "") or "0"
    if not sample.isdecimal():
        raise ValueError(f"the sample {sample!r} is not a number")
    return HumanLabel(
        line=line,
        label=named["label"].lower(),
        secondary=named.get("secondary", "").lower(),
        annotator=who,
        item=named.get("item", ""),
        question="" if sheet else named["question"],
        model="" if sheet else named["model"],
        condition="" if sheet else named["condition"],
        sample=int(sample),
        reasoning=named.get("reasoning", ""),
    )


def human_judgments(folder: AnswerFolder, files: Mapping[Path, Sequence[HumanLabel]], aspect: str) -> list[Judgment]:
    """The labels as judgments of `human:NAME`, in the order of the answers and then of the annotators.

    Every label is checked: its answer is in the folder, the aspect has it, and nobody labels an answer twice.
    """
    asked = _asked_of_people(aspect)
    keys = _answers_named(folder, [label for labels in files.values() for label in labels], aspect)
    allowed = asked.labels
    earlier = {
        (answer_key(each), each.judge)
        for each in folder.each_judgment()
        if each.aspect == aspect and each.judge.startswith(HUMAN)
    }
    seen: dict[tuple[Key, str], str] = {}
    made: list[tuple[int, Judgment]] = []
    for path, labels in files.items():
        problems = []
        for label in labels:
            at = keys.get(_named(label))
            who = HUMAN + label.annotator
            if at is None:
                problems.append(f"line {label.line}: {_unknown(label)}")
            elif label.label not in allowed or label.secondary not in {"", *allowed}:
                wrong = label.secondary if label.label in allowed else label.label
                problems.append(f"line {label.line}: {wrong!r} is not a label of {aspect} ({', '.join(allowed)})")
            elif label.secondary and not asked.second_label:
                problems.append(f"line {label.line}: {aspect} takes one label, not two")
            elif (at[1], who) in earlier:
                problems.append(f"line {label.line}: {label.annotator} has already labelled this answer in the folder")
            elif (at[1], who) in seen:
                first = seen[at[1], who]
                problems.append(f"line {label.line}: {label.annotator} has already labelled this answer ({first})")
            else:
                seen[at[1], who] = f"line {label.line} of {path.name}"
                made.append((at[0], _judgment(at[1], label, aspect)))
        refuse_lines(problems, path)
    made.sort(key=lambda each: (each[0], each[1].judge))
    return [judgment for _, judgment in made]


def _named(label: HumanLabel) -> object:
    return label.item or (label.question, label.model, label.condition, label.sample)


def _unknown(label: HumanLabel) -> str:
    if label.item:
        return f"there is no answer with the code {label.item} here"
    return (
        f"there is no answer by {label.model} to {label.question!r} under {label.condition!r} (sample {label.sample})"
    )


def _answers_named(folder: AnswerFolder, labels: Sequence[HumanLabel], aspect: str) -> dict[object, tuple[int, Key]]:
    """Where each answer that a label names stands, and its key."""
    wanted = {_named(label) for label in labels}
    secrets = (blinding_secret(folder), UNKEYED) if any(label.item for label in labels) else ()
    found: dict[object, tuple[int, Key]] = {}
    for place, answer in enumerate(folder.each_answer()):
        key = answer_key(answer)
        for name in (key, *(blind_code(key, aspect, secret) for secret in secrets)):
            if name in wanted:
                found[name] = (place, key)
    return found


def _judgment(key: Key, label: HumanLabel, aspect: str) -> Judgment:
    question, model, condition, sample = key
    return Judgment(
        question=question,
        model=model,
        condition=condition,
        sample=sample,
        judge=HUMAN + label.annotator,
        aspect=aspect,
        label=label.label,
        secondary="" if label.secondary == label.label else label.secondary,
        reasoning=label.reasoning,
    )
