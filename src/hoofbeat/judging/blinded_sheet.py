"""What every blinded sheet shares: the answers that are drawn for it under codes, and the rows that come back.

Sheets for people, packets of an audit's pairs and studies on the review pages show items under codes that tell nothing
of where they come from. A code is a hash with a secret, or else whoever guesses the ids of sources and models could
compute all codes. The same answers are drawn for a sheet and for a study, and every file that comes back is read here,
whatever program saved it (`store.sheets`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from hoofbeat.errors import InputError
from hoofbeat.judging.catalogue import takes
from hoofbeat.judging.criteria import Key, answer_key, no_answer_failure
from hoofbeat.judging.judgments_folder import HUMAN, AnswerFolder
from hoofbeat.judging.stratified_sample import Name, ReservoirSample, allot_within, blind_code
from hoofbeat.records import Answer
from hoofbeat.store import Artefact
from hoofbeat.store.sheets import sheet_rows, sheet_text

UNKEYED = b""
"""The secret of codes that were made before codes had one. Labels under such codes are still read."""


def blinding_secret(of: Artefact | AnswerFolder) -> bytes:
    """What the codes of a folder's answers are keyed with: the hash of all its answers, which only its owner has.

    It is the same in a run and in the judgments of it, and in an audit that was judged again: labels are found in both.
    No page and no file for annotators shows it.
    """
    sha256 = of.answers_sha256 if isinstance(of, AnswerFolder) else of.manifest.files["answers.jsonl"]
    return hashlib.sha256(f"blind {sha256}".encode()).digest()


class DrawnAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers for people to label, in the order of their codes, each with its code and its stratum.

    A stratum is a system's answers with one label of the judge: `sizes` says how many it has, `given` how many it gave.
    """

    answers: tuple[tuple[str, Answer, Name], ...]
    sizes: dict[Name, int]
    given: dict[Name, int]


def judge_labels(folder: AnswerFolder, aspect: str) -> dict[Key, str]:
    """What judges other than people said of each answer."""
    return {
        answer_key(each): "unscored" if each.failure else each.label
        for each in folder.each_judgment()
        if each.aspect == aspect and not each.judge.startswith(HUMAN)
    }


def draw_answers(
    folder: AnswerFolder, aspect: str, said: Mapping[Key, str], count: int, seed: int, *, everything: bool
) -> DrawnAnswers:
    """Draw `count` answers: of each system in proportion, and within it of each label of the judge (`said`).

    With `everything`, answers that nobody has judged are drawn as well.
    """
    draws: dict[Name, ReservoirSample[Answer]] = {}
    secret = blinding_secret(folder)
    for answer in folder.each_answer():
        key = answer_key(answer)
        shown = no_answer_failure(folder.questions.get(answer.question), answer) is None and takes(aspect, answer)
        if shown and (everything or key in said):
            stratum = (answer.model, answer.condition, said.get(key, "unjudged"))
            draws.setdefault(stratum, ReservoirSample(count, seed)).offer(key, answer)
    sizes = {stratum: draw.seen for stratum, draw in draws.items()}
    given = allot_within(sizes, count, seed)
    drawn = [
        (blind_code(answer_key(answer), aspect, secret), answer, stratum)
        for stratum, draw in draws.items()
        for answer in draw.drawn(given[stratum])
    ]
    return DrawnAnswers(answers=tuple(sorted(drawn, key=lambda each: each[0])), sizes=sizes, given=given)


class AnnotatorFile(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of one file, each with its line; `note` says what had to be guessed to read them."""

    path: Path
    rows: tuple[tuple[int, dict[str, str]], ...]
    note: str = ""


def read_rows(path: Path, missing: InputError, needed: Sequence[str] = ("item", "label")) -> AnnotatorFile:
    """The rows of a CSV or JSONL file without blank ones; `missing` is raised where `needed` columns are not named."""
    text, note = sheet_text(path)
    is_json = path.suffix.lower() in {".jsonl", ".ndjson"}
    found = _json_rows(path, text) if is_json else sheet_rows(path, text, needed, missing)
    rows = tuple((line, cells) for line, cells in found if any(cells.values()))
    if not rows:
        raise InputError("this file has no rows", where=str(path), fix="give the completed file")
    return AnnotatorFile(path=path, rows=rows, note=note)


def _json_rows(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for number, record in enumerate(text.split("\n"), start=1):
        if not record.strip():
            continue
        try:
            value = msgspec.json.decode(record, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as err:
            raise InputError(f"line {number} can't be read: {err}", where=str(path), fix="correct that line") from err
        yield number, {name.strip().lower(): _cell(cell) for name, cell in value.items()}


def _cell(value: object) -> str:
    return value.strip() if isinstance(value, str) else "" if value is None else str(value)
