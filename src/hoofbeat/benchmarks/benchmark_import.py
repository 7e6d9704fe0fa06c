"""Questions that others published, as a benchmark: `benchmarks/imports` has one file per format.

A format sees an `ImportSource`: one file, or a folder whose tables it finds by their names. It says how surely it
recognises the source, and reads it. A row that can't be read as a question is listed with its reason and costs nothing
but itself. Images are copied by name, and only from below the folder that was named; those that lie inside a table are
written out.
"""

from __future__ import annotations

import hashlib
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from string import ascii_uppercase
from typing import Any, ClassVar, NamedTuple

import msgspec
from msgspec import Struct, field

from hoofbeat.benchmarks.benchmark import KIND, edition_file
from hoofbeat.corpus.parsers.rows import ROW_SUFFIXES, Row, read_rows, table_suffix
from hoofbeat.corpus.qrels import write_qrels
from hoofbeat.corpus.reader import Refusal
from hoofbeat.errors import HoofbeatError, InputError, UsageError
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import AcceptedAnswer, Facets, Question
from hoofbeat.registry import registry
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.artefact import file_reference
from hoofbeat.store.files import inside, leads_outside
from hoofbeat.store.tables import (
    UNREADABLE,
    bare_cell,
    check_survived,
    read_foreign_parquet,
    seeded_number,
    table_errors,
    table_reason,
    write_jsonl,
)
from hoofbeat.text import caseless, squeeze, whole_number

MAX_LABEL = 300
"""Characters of a field that may become a facet; longer ones are text."""

_PARQUET, _ARROW = ".parquet", ".arrow"
_SUFFIXES = (*ROW_SUFFIXES, _PARQUET, _ARROW)
_DEPTH = 4
_NOT_QUESTIONS = frozenset(
    {"dataset_info.json", "dataset_infos.json", "dataset_dict.json", "state.json", "croissant.json", "manifest.json"}
)
_SHARD = re.compile(r"^(?P<split>.+?)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?$")
_SPLITS = ("train", "validation", "dev", "test")
_CACHED = re.compile(rf".+-({'|'.join(_SPLITS)})")
_IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_LETTER = re.compile(r"[\s(\[]*(\w{1,3})[\s)\].:]*")


class RejectedRow(Struct, frozen=True, kw_only=True):
    """A row that did not become a question, and why; in the layout that recipes list rejected candidates in."""

    id: str
    reason: str
    step: str = "import"


class ImportRow(NamedTuple):
    """One row of a table, with its number from 1."""

    values: Row
    number: int

    def get(self, *names: str) -> Any:
        """The value of the first of these fields that is there and not empty; None where none is."""
        for name in names:
            value = self.values.get(name)
            if value is not None and value != "" and value == value:  # noqa: PLR0124 - NaN is an empty cell in Parquet
                return value
        return None

    def text(self, *names: str, needed: bool = True) -> str:
        """The text of the first of these fields that has one; an `InputError` where one is needed and none has."""
        value = self.get(*names)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return str(value).strip()
        if needed or value is not None:
            raise InputError(f"the field {names[0]!r} has no text", fix="correct the row")
        return ""


class QuestionTable(NamedTuple):
    """One table of a source: its file, and which configuration and split it belongs to (empty where none is named)."""

    path: Path
    config: str
    split: str


class ImportedBenchmark(Struct, kw_only=True):
    """What a format made of a source."""

    questions: list[Question] = field(default_factory=list)
    editions: dict[str, list[Question]] = field(default_factory=dict)
    qrels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    rejected: list[RejectedRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    """The files that were read, where they are not the source's tables."""
    has_documents: bool = False
    """Whether the source is a folder whose documents are a corpus (BEIR, R2MED)."""


class ImportSource:
    """A file or folder that is to be imported, and how."""

    def __init__(
        self,
        path: Path,
        *,
        mapping: str = "",
        split: str = "",
        count_from: int | None = None,
        seed: int = 0,
    ) -> None:
        if not path.exists():
            raise InputError("there is no such file or folder", where=str(path), fix="check the path")
        self.path = path
        self.folder = path if path.is_dir() else path.parent
        self.mapping = mapping
        self.wanted_split = split
        self.count_from = count_from
        self.seed = seed
        self.embedded: dict[str, bytes] = {}

    @cached_property
    def tables(self) -> tuple[QuestionTable, ...]:
        """The tables to read: the file itself, or those of the folder that belong to one split."""
        if self.path.is_file():
            return (QuestionTable(self.path, "", ""),)
        found = [
            _table_file(self.path, path)
            for path in sorted(self.path.rglob("*"))
            if table_suffix(path) in _SUFFIXES
            and path.name not in _NOT_QUESTIONS
            and len(path.relative_to(self.path).parts) <= _DEPTH
            and path.is_file()
        ]
        splits = sorted({table.split for table in found})
        wanted = self.wanted_split or ("test" if "test" in splits else splits[0] if len(splits) == 1 else None)
        if wanted is None and found:
            raise UsageError(
                f"the folder has {len(splits)} splits, and no split is called test",
                where=str(self.path),
                fix=f"name one: --split {' | '.join(filter(None, splits))}",
            )
        if self.wanted_split and self.wanted_split not in splits:
            named = ", ".join(filter(None, splits)) or "no named ones"
            raise UsageError(
                f"there is no split {self.wanted_split!r}", where=str(self.path), fix=f"there are: {named}"
            )
        return tuple(table for table in found if table.split == wanted)

    def only(self, tables: Sequence[QuestionTable]) -> ImportSource:
        """The same source with these of its tables."""
        part = ImportSource(
            self.path, mapping=self.mapping, split=self.wanted_split, count_from=self.count_from, seed=self.seed
        )
        part.tables = tuple(tables)
        part.embedded = self.embedded
        return part

    @cached_property
    def first(self) -> Row:
        """The first row that can be read, of any table; empty where there is none."""
        for table in self.tables:
            try:
                for _, row in table_rows(table.path):
                    if not isinstance(row, Refusal):
                        return row
            except HoofbeatError:
                continue
        return {}

    def why_nothing(self) -> InputError:
        """Why no row can be read: there is no table, a table is broken, or none has a row."""
        if not self.tables:
            kinds = ", ".join(_SUFFIXES)
            return InputError("the folder has no table", where=str(self.path), fix=f"Hoofbeat reads {kinds}")
        for table in self.tables:
            try:
                for _, row in table_rows(table.path):
                    if isinstance(row, Refusal):
                        return InputError(f"{row.member}: {row.reason}", where=str(table.path), fix="correct the file")
            except HoofbeatError as err:
                return InputError(err.what, where=str(table.path), fix="download the file again, or correct it")
        named = self.tables[0].path
        what = "the file is empty" if not named.stat().st_size else "the table has no row below its header"
        return InputError(what, where=str(named), fix="check that the file was copied completely")

    def has(self, *names: str) -> bool:
        """Whether the first row has all of these fields."""
        return all(name in self.first for name in names)

    def name(self, row: ImportRow, *fields: str) -> str:
        """A question's id: the first of these fields that has one, else the source's name and the row's number."""
        value = row.get(*fields)
        if isinstance(value, str | int) and not isinstance(value, bool) and str(value).strip().isprintable():
            return str(value).strip()
        return f"{self.path.name.partition('.')[0]}-{row.number:05d}"

    def shuffled(self, id: str, options: Sequence[str]) -> tuple[str, ...]:
        """Options in an order that depends on the seed and the question's id alone."""
        order = list(options)
        random.Random(seeded_number("option order", self.seed, id)).shuffle(order)  # noqa: S311 - an order, no secret
        return tuple(order)

    def images(self, value: object) -> tuple[str, ...]:
        """The names of a row's images: files below the folder, or contents inside the table, which are kept by hash."""
        found = []
        for each in value if isinstance(value, list) else [value]:
            content = each.get("bytes") if isinstance(each, dict) else None
            name = str((each.get("path") if isinstance(each, dict) else each) or "").strip()
            if isinstance(content, bytes) and content:
                suffix = PurePosixPath(name).suffix.lower()
                name = f"images/{hashlib.sha256(content).hexdigest()[:16]}{suffix if suffix in _IMAGES else '.png'}"
                self.embedded[name] = content
            if name:
                found.append(name)
        return tuple(found)

    def each(self, read: Callable[[ImportRow], Question], result: ImportedBenchmark) -> Iterator[Question]:
        """The question of every row of every table; rows that give none, or an id that is taken, are listed."""
        seen: set[str] = set()
        number = 0
        for table in self.tables:
            for place, row in table_rows(table.path):
                number += 1
                try:
                    if isinstance(row, Refusal):
                        raise InputError(row.reason)
                    question = read(ImportRow(row, number))
                    if question.id in seen:
                        raise InputError("an earlier row has the same id")
                    for image in question.images:
                        if image not in self.embedded:
                            check_image(self.folder, image)
                except InputError as err:
                    name = table.path.relative_to(self.folder).as_posix()
                    result.rejected.append(RejectedRow(id=f"{name} row {place}", reason=err.what))
                    continue
                seen.add(question.id)
                yield question


class ImportFormat:
    """A format of published questions. A subclass sets the attributes and defines `surety` and `read`."""

    extension_kind: ClassVar[str] = "import format"
    extension_package: ClassVar[str] = "hoofbeat.benchmarks.imports"

    name: str
    summary: str

    def surety(self, source: ImportSource) -> int:
        """How surely this is the format: the number of fields or files that show it; 0 if it is not."""
        raise NotImplementedError

    def read(self, source: ImportSource) -> ImportedBenchmark:
        """Read the source."""
        result = ImportedBenchmark()
        result.questions = list(source.each(lambda row: self.question(row, source), result))
        return result

    def question(self, row: ImportRow, source: ImportSource) -> Question:
        """One row as a question, for formats that are a table; an `InputError` says why it can't be one."""
        raise NotImplementedError


def table_rows(path: Path) -> Iterator[tuple[int, Row | Refusal]]:
    """The rows of a table of any kind that is read, with their numbers."""
    suffix = table_suffix(path)
    if suffix == _PARQUET:
        yield from enumerate(read_foreign_parquet(path).iter_rows(named=True), start=1)
    elif suffix == _ARROW:
        import polars  # noqa: PLC0415 - only where Arrow files are read

        check_survived(path, "an Arrow file")
        try:
            try:
                frame = polars.read_ipc_stream(path)
            except polars.exceptions.ComputeError:
                frame = polars.read_ipc(path)
        except table_errors() as err:
            raise InputError(
                f"not readable as an Arrow file: {table_reason(err)}", where=str(path), fix="save it again"
            ) from err
        yield from enumerate(frame.iter_rows(named=True), start=1)
    elif suffix in (".csv", ".tsv"):
        for number, row in read_rows(path):
            yield (
                number,
                row if isinstance(row, Refusal) else {name: bare_cell(str(cell)) for name, cell in row.items()},
            )
    elif suffix in ROW_SUFFIXES:
        yield from read_rows(path)
    else:
        raise UsageError(
            "the file's suffix does not say what it is", where=str(path), fix=f"name a file of: {', '.join(_SUFFIXES)}"
        )


def _table_file(root: Path, path: Path) -> QuestionTable:
    """Which split and configuration a file of a folder is, as the Hugging Face layouts name them."""
    parents = path.relative_to(root).parts[:-1]
    stem = path.name.partition(".")[0]
    shard = _SHARD.match(stem)
    if shard and shard["split"] == "data":  # what `save_to_disk` leaves: SPLIT/data-00000-of-00001.arrow
        return QuestionTable(path, "", parents[-1] if parents else "")
    split = shard["split"] if shard else stem
    if path.suffix == _ARROW and (named := _CACHED.fullmatch(split)):
        split = named[1]  # what the cache of `datasets` holds: NAME-SPLIT.arrow
    split = split if shard or split in _SPLITS else ""
    return QuestionTable(path, parents[-1] if parents and parents[-1] != "data" else "", split)


def options_by_letter(value: object) -> dict[str, str]:
    """Options by letter: from an object, a list, a list of objects with key and value, or a text of lettered lines."""
    if value is None:
        raise InputError("the row has no options")
    if isinstance(value, str):
        value = _decoded(value) if value.lstrip()[:1] in ("[", "{") else lettered_lines(value)
    if isinstance(value, list) and value and all(isinstance(each, dict) and "key" in each for each in value):
        value = {str(each["key"]): each.get("value") for each in value}
    if isinstance(value, list):
        if len(value) > len(ascii_uppercase):
            raise InputError(f"the row has {len(value)} options, more than there are letters")
        value = dict(zip(ascii_uppercase, value, strict=False))
    if not isinstance(value, dict):
        raise InputError("the options are not an object, a list or lettered lines")
    given = {str(key).strip(): text for key, text in value.items() if text is not None and str(text).strip()}
    if any(isinstance(text, bool) or not isinstance(text, str | int | float) for text in given.values()):
        raise InputError("an option is not text")
    keys = sorted(given, key=lambda key: (len(key), key)) if all(len(key) <= 2 for key in given) else list(given)
    return {key: str(given[key]).strip() for key in keys}


def options_of(value: object) -> dict[str, str]:
    """Options by letter, each with a different text: of two equal texts both would be right."""
    options = options_by_letter(value)
    if len({caseless(text) for text in options.values()}) < len(options):
        raise InputError("two options have the same text")
    return options


def _decoded(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except UNREADABLE as err:
        raise InputError(f"the options are not readable JSON: {err}") from err


def lettered_lines(text: str) -> dict[str, str]:
    """Options of a text such as `A. one\\nB. two`: each letter is looked for after the one before it."""
    options: dict[str, str] = {}
    place, rest = 0, text.strip()
    for letter in ascii_uppercase:
        found = re.compile(rf"(?:^|\s)\(?{letter}[.):]\s*").search(rest, place)
        if found is None:
            break
        if options:
            options[list(options)[-1]] = rest[place : found.start()].strip()
        elif found.start() > 0:
            raise InputError("the options do not begin with A")
        options[letter] = ""
        place = found.end()
    if len(options) < 2:
        raise InputError("the options are not lettered lines (A. …, B. …)")
    options[list(options)[-1]] = rest[place:].strip()
    return options


def right_option(value: object, options: Mapping[str, str], count_from: int | None = None) -> str:
    """The text of the option that a value names by its text, its letter or its number."""
    said = str(value).strip()
    by_text = {caseless(text): text for text in options.values()}
    if caseless(said) in by_text:
        return by_text[caseless(said)]
    letter = _LETTER.fullmatch(said)
    key = letter[1] if letter else ""
    for known in (key, key.upper()):
        if known in options:
            return options[known]
    if (number := whole_number(key)) is not None:
        if count_from is None:
            raise InputError("the answer is a number, which may count from 0 or from 1: say which with --count-from")
        if 0 <= number - count_from < len(options):
            return list(options.values())[number - count_from]
    raise InputError(f"the answer {said[:60]!r} is not one of the options")


def read_accepted(value: object) -> tuple[AcceptedAnswer, ...]:
    """Answers that count as right beside the gold answer: texts, or objects as `AcceptedAnswer` has them."""
    if value is None or value == "":
        return ()
    found = [
        {"text": each} if isinstance(each, str) else each for each in (value if isinstance(value, list) else [value])
    ]
    try:
        accepted = msgspec.convert(found, tuple[AcceptedAnswer, ...])
    except msgspec.ValidationError as err:
        raise InputError(f"the accepted answers can't be read: {err}") from err
    return tuple(each for each in accepted if each.text.strip())


def labels(row: ImportRow, taken: Sequence[str]) -> Facets:
    """The short fields that are not taken, as facets under their own names."""
    found: Facets = {}
    for name, value in row.values.items():
        if name in taken or not name.strip():
            continue
        if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
            found[name] = [squeeze(each) for each in value]
        elif isinstance(value, str | int) and not isinstance(value, bool):
            text = squeeze(str(value))
            if text and len(text) <= MAX_LABEL:
                found[name] = text
    return found


def case_and_question(text: str) -> tuple[str, str]:
    """Context and question of a text whose last paragraph asks; no context where it does not."""
    before, _, last = text.strip().rpartition("\n\n")
    return (before, last) if before and last.rstrip().endswith("?") else ("", text.strip())


def find_format(source: ImportSource, name: str = "") -> ImportFormat:
    """The format of this name, or the one that recognises the source most surely."""
    if name:
        return registry.get(ImportFormat, name)
    found = [(each.surety(source), each) for each in registry.all(ImportFormat)]
    best = max((sure for sure, _ in found), default=0)
    if not best:
        if not source.first:
            raise source.why_nothing()
        fields = ", ".join(list(source.first)[:20])
        longest = max(source.first, key=lambda name: len(str(source.first[name])))
        raise InputError(
            f"no known question format has these fields: {fields}",
            where=str(source.path),
            fix="call the column of questions 'question', or say which field holds what: "
            f"hoofbeat benchmark import FILE --mapping text={longest},answer=FIELD",
        )
    return next(each for sure, each in found if sure == best)


def read_questions(path: Path) -> list[Question]:
    """The questions of a published file, or of a plain list with a column of questions, without writing a benchmark."""
    source = ImportSource(path)
    form = find_format(source)
    return _read_by(form, source).questions


def _read_by(form: ImportFormat, source: ImportSource) -> ImportedBenchmark:
    made = form.read(source)
    if not made.questions:
        reasons = "; ".join(dict.fromkeys(row.reason for row in made.rejected[:3])) or "it has no rows"
        best = max(registry.all(ImportFormat), key=lambda each: each.surety(source))
        fix = "correct the rows, or name the fields with --mapping"
        if best is not form and best.surety(source) > form.surety(source):
            fix = f"the fields are those of {best.name}: give --as {best.name}, or leave out --as"
        raise InputError(f"no question could be read as {form.name}: {reasons}", where=str(source.path), fix=fix)
    return made


def import_benchmark(
    path: Path,
    target: Path,
    *,
    form: str = "",
    mapping: str = "",
    split: str = "",
    count_from: int | None = None,
    seed: int = 0,
    title: str = "",
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write the benchmark of a published file or folder; documents that come with it go into `TARGET-corpus`."""
    source = ImportSource(path, mapping=mapping, split=split, count_from=count_from, seed=seed)
    chosen = find_format(source, form or ("table" if mapping else ""))
    with progress.task("Read questions", None):
        made = _read_by(chosen, source)
    inputs = [file_reference(path) for path in made.files or [table.path for table in source.tables]]
    if made.has_documents:
        from hoofbeat.corpus import import_corpus  # noqa: PLC0415 - only for folders with documents

        corpus = import_corpus([path], target.with_name(f"{target.name}-corpus"), command=command, progress=progress)
        inputs.append(corpus.reference())
    with create(target, replace_kind=KIND) as draft:
        for name, questions in {"": made.questions, **made.editions}.items():
            write_jsonl(draft.path / edition_file(name), questions)
            _copy_images(source, questions, draft.path)
        grades = made.qrels or {q.id: dict.fromkeys(q.documents, 1) for q in made.questions if q.documents}
        if grades:
            write_qrels(draft.path / "qrels.tsv", grades, "beir")
        write_jsonl(draft.path / "rejected.jsonl", made.rejected)
        given = [row.reason for row in made.rejected]
        draft.finish(
            Manifest(
                kind=KIND,
                title=title or f"{path.name}, imported as {chosen.name}",
                command=list(command),
                inputs=inputs,
                settings={
                    "format": chosen.name,
                    **{
                        k: v
                        for k, v in (("mapping", mapping), ("split", split), ("count from", count_from))
                        if v not in ("", None)
                    },
                },
                seeds={"option order": seed},
                counts=Counts(
                    kept=len(made.questions),
                    rejected=len(given),
                    reasons=dict(Counter(given)),
                ),
                metrics={"notes": made.notes} if made.notes else {},
            )
        )
    return open_artefact(target, KIND)


def import_notes(artefact: Artefact) -> list[str]:
    """What a reader of an imported benchmark should know."""
    notes = artefact.manifest.metrics.get("notes", ())
    return [str(note) for note in notes] if isinstance(notes, list) else []


def check_image(root: Path, name: str) -> Path:
    """The file of an image below a folder. A name that leads outside, or to a link, is refused."""
    place = root / name
    if leads_outside(root, name) or place.is_symlink():
        raise InputError("an image is outside the imported folder")
    if not place.is_file():
        raise InputError("an image is missing")
    return place


def _copy_images(source: ImportSource, questions: Sequence[Question], target: Path) -> None:
    for name in sorted({name for question in questions for name in question.images}):
        copy = inside(target, name)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if name in source.embedded:
            copy.write_bytes(source.embedded[name])
        else:
            shutil.copyfile(check_image(source.folder, name), copy)
