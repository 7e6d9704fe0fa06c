"""Answers that other software gave, as a run: they can be judged, reported and compared like any other.

A file is read twice: first for its questions, whose text, options and gold answer may stand on some rows only, then
for its answers, one at a time. A predicted letter becomes the option's text; what can't be read stays unread, with why.

Files are JSON lines (plain or gzipped), CSV or Parquet. The user says which field holds what, or it is guessed from the
field's name. A row that can't be read ends the reading with an error that names its line; nothing is skipped silently.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from string import ascii_uppercase

import msgspec
from msgspec import Struct, field, structs

from hoofbeat.answering.choice_reader import ParsedChoice, read_choice
from hoofbeat.answering.run_folder import KIND
from hoofbeat.errors import HostileInputError, InputError, UsageError
from hoofbeat.models.reply_text import split_reasoning
from hoofbeat.progress import SILENT, Progress
from hoofbeat.records import Answer, Failure, Question, Usage
from hoofbeat.store import Artefact, Cost, InputRef, Manifest, create, open_artefact
from hoofbeat.store.artefact import count_outcomes, file_reference
from hoofbeat.store.files import lines, open_stream
from hoofbeat.store.tables import UNREADABLE, plain_cell, read_foreign_parquet, read_jsonl, write_jsonl
from hoofbeat.text import caseless, whole_number

_MAX_ROW_BYTES = 8_000_000  # bytes of one row; no answer is longer
_MAX_CELL = 131_072
_FORMATS = (".jsonl", ".ndjson", ".csv", ".parquet")
GUESSES: dict[str, tuple[str, ...]] = {
    "id": ("id", "question_id", "qid", "realidx", "item_id"),
    "model": ("model", "model_name", "system"),
    "question": ("question", "question_text", "stem"),
    "options": ("options", "choices"),
    "answer": ("answer", "gold", "gold_answer", "correct_answer", "answer_idx", "target", "label"),
    "predicted": ("predicted", "prediction", "predicted_answer", "pred", "model_answer"),
    "text": ("text", "output", "response", "completion", "generation", "raw_output"),
    "dataset": ("dataset", "subset", "task"),
    "condition": ("condition",),
    "sample": ("sample",),
    "tokens": ("tokens", "usage", "token_usage"),
    "confidence": ("confidence", "probability", "predicted_probability"),
}
"""What a field is called where nobody says, in the order it is looked for."""


class PredictionFields(Struct, frozen=True, kw_only=True):
    """The name of the field that holds each thing; empty: no field does."""

    id: str = ""
    model: str = ""
    question: str = ""
    options: str = ""
    answer: str = ""
    predicted: str = ""
    text: str = ""
    dataset: str = ""
    condition: str = ""
    sample: str = ""
    tokens: str = ""
    confidence: str = ""


class PredictionRow(Struct, frozen=True, kw_only=True):
    """One row: its values, and where it stands (`line 12`, `row 12` of a Parquet file)."""

    values: Mapping[str, object]
    file: Path
    place: str

    @property
    def where(self) -> str:
        """File and line, for errors."""
        return f"{self.file}, {self.place}"

    def name(self, field: str) -> str:
        """A value that names something: text, or a whole number; no control characters, nothing to run. Empty: none."""
        value = self.values.get(field) if field else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise bad(self, f"the field {field!r} should hold a name but holds {_kind(value)}")
        name = str(value).strip()
        if not name.isprintable() or plain_cell(name) != name:
            raise bad(self, f"the field {field!r} holds a name with characters that are not allowed in a table")
        return name

    def text(self, field: str) -> str:
        """A value that is text; empty where there is none."""
        value = self.values.get(field) if field else None
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if not isinstance(value, str):
            raise bad(self, f"the field {field!r} should hold text but holds {_kind(value)}")
        return value


def bad(row: PredictionRow, what: str, fix: str = "correct that line, or leave it out") -> InputError:
    """The error of a row."""
    return InputError(what, where=row.where, fix=fix)


def _kind(value: object) -> str:
    kinds = {bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object", str: "text"}
    return kinds.get(type(value), type(value).__name__)


def each_row(path: Path) -> Iterator[PredictionRow]:
    """The rows of a file, one at a time."""
    names = [suffix.lower() for suffix in path.suffixes]
    plain = next((suffix for suffix in reversed(names) if suffix != ".gz"), "")
    if plain not in _FORMATS or (plain == ".parquet" and ".gz" in names[-1:]):
        raise UsageError(
            "the name of this file does not show its format",
            where=str(path),
            fix="name a .jsonl, .jsonl.gz, .csv, .csv.gz or .parquet file",
        )
    if plain == ".parquet":
        for number, values in enumerate(read_foreign_parquet(path).iter_rows(named=True), start=1):
            yield _checked(PredictionRow(values=values, file=path, place=f"row {number}"))
        return
    try:
        with open_stream(path) as stream:
            found = lines(stream, _MAX_ROW_BYTES)
            yield from (_csv_rows if plain == ".csv" else _json_rows)(path, found)
    except HostileInputError as err:
        raise HostileInputError(err.what, where=err.where or str(path), fix=err.fix) from err


def _json_rows(path: Path, found: Iterable[tuple[int, bytes]]) -> Iterator[PredictionRow]:
    decode = msgspec.json.Decoder().decode
    for number, line in found:
        if line.isspace():
            continue
        row = PredictionRow(values={}, file=path, place=f"line {number}")
        try:
            values = decode(line.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as err:
            raise bad(row, f"the line is not JSON: {err}") from err
        if not isinstance(values, dict):
            raise bad(row, f"the line should hold an object but holds {_kind(values)}")
        yield _checked(msgspec.structs.replace(row, values=values))


def _csv_rows(path: Path, found: Iterable[tuple[int, bytes]]) -> Iterator[PredictionRow]:
    from hoofbeat.store.sheets import csv_delimiter, is_delimiter_line  # noqa: PLC0415 - only where CSV is read

    where = PredictionRow(values={}, file=path, place="line 1")

    def decoded() -> Iterator[str]:
        for number, line in found:
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as err:
                raise bad(
                    PredictionRow(values={}, file=path, place=f"line {number}"), f"the line is not UTF-8: {err}"
                ) from err

    csv.field_size_limit(_MAX_CELL)  # one limit per process: a corpus that was read before may have raised it
    texts = decoded()
    first = next(texts, "")
    again = chain(["\n" if is_delimiter_line(first) else first], texts)
    reader = csv.reader(again, delimiter=csv_delimiter(first), strict=True)
    try:
        if is_delimiter_line(first):
            next(reader)
        header = next(reader, [])
        if not header or len(set(header)) < len(header):
            raise bad(where, "the header is missing, or names a column twice", "give every column a different name")
        for cells in reader:
            row = PredictionRow(values={}, file=path, place=f"line {reader.line_num}")
            if not cells:
                continue
            if len(cells) != len(header):
                raise bad(row, f"the line has {len(cells)} cells where the header has {len(header)}")
            values = {name: _cell(cell) for name, cell in zip(header, cells, strict=True)}
            yield _checked(msgspec.structs.replace(row, values=values))
    except csv.Error as err:
        raise bad(
            PredictionRow(values={}, file=path, place=f"line {reader.line_num}"), f"the line is not CSV: {err}"
        ) from err


def _cell(cell: str) -> object:
    """A cell: empty is nothing; what is a JSON object or list is read as one (options); else text."""
    if not cell.strip():
        return None
    if cell.lstrip()[:1] in "[{":
        try:
            return msgspec.json.decode(cell)
        except UNREADABLE:
            return cell
    return cell


def _checked(row: PredictionRow) -> PredictionRow:
    for name, value in row.values.items():
        if "\0" in name or (isinstance(value, str) and "\0" in value):
            raise bad(row, f"the field {plain_cell(name)[:60]!r} holds a NUL character")
    return row


def find_fields(path: Path, given: Mapping[str, str], present: Iterable[str]) -> PredictionFields:
    """Which field holds what: as given, else by the first known name that the file has."""
    names = set(present)
    lower = {name.lower(): name for name in sorted(names, reverse=True)}
    found: dict[str, str] = {}
    for role, guesses in GUESSES.items():
        said = given.get(role, "")
        if said and said not in names:
            raise UsageError(
                f"no row has the field {said!r}",
                where=str(path),
                fix=f"the fields are: {', '.join(sorted(names)[:40])}",
            )
        found[role] = said or next((lower[name] for name in guesses if name in lower), "")
    taken = [name for role, name in found.items() if given.get(role)]
    found = {role: name if given.get(role) or name not in taken else "" for role, name in found.items()}
    return PredictionFields(**found)


GIVEN = "given"
_MISSING = "the file has no answer by this system to this question"
_IN, _OUT = ("prompt_tokens", "input_tokens", "tokens_in"), ("completion_tokens", "output_tokens", "tokens_out")
_IDS = "give different questions different ids (--dataset FIELD keeps data sets apart)"
_GOLD = "correct that line; numbers need --count-from 0 or 1"
_COLUMNS = (tuple(ascii_uppercase), tuple(ascii_uppercase.lower()), ("opa", "opb", "opc", "opd", "ope"))
_DRESSED = re.compile(r"^[\s(\[\"'*]*(\w{1,3})[\s)\].:\"'*]*$")
OptionsByLetter = dict[str, str]
"""Letter (or whatever the file calls an option) to the option's text, in the order shown."""


class PredictionImport(Struct, frozen=True, kw_only=True):
    """How a file is to be taken.

    `fields` says which field holds what (others are guessed), `model` and `condition` what is not in a field,
    `benchmark` the questions that were answered: every one of them is then due from every system. `count_from` is the
    number of the first option where options are named by numbers.
    """

    fields: Mapping[str, str] = field(default_factory=dict)
    model: str = GIVEN
    condition: str = GIVEN
    benchmark: tuple[Question, ...] | None = None
    count_from: int | None = None


def import_predictions(
    path: Path,
    target: Path,
    wanted: PredictionImport,
    *,
    inputs: Sequence[InputRef] = (),
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Write the run folder of a file of predictions."""
    importing = _Importing(path, wanted)
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", (item.question for item in importing.items.values()))
        write_jsonl(draft.path / "answers.jsonl", importing.answers(progress))
        own = file_reference(path, "predictions")
        draft.finish(importing.manifest([own, *inputs], command))
    return open_artefact(target, KIND)


def gold_note(run: Artefact) -> str:
    """That nothing can be judged, where no question of a run has a gold answer; else empty."""
    if any(question.reference for question in read_jsonl(run.file("questions.jsonl"), Question)):
        return ""
    return (
        "no question has a gold answer, so nothing can be judged. Give the benchmark (--benchmark FOLDER), or the "
        "field that has the gold answers (--answer FIELD)"
    )


class _Importing:
    """One file on its way into a run; what is counted of the answers is complete once all have been handed out."""

    def __init__(self, path: Path, wanted: PredictionImport) -> None:
        self.path, self.wanted = path, wanted
        self.fields = find_fields(path, wanted.fields, {name for row in each_row(path) for name in row.values})
        if not self.fields.predicted and not self.fields.text:
            raise UsageError(
                "no field with predictions was recognised",
                where=str(path),
                fix="name it: --predicted FIELD (a letter or an option), or --text FIELD (a model's whole output)",
            )
        self.items = self._gather()
        self.protocol = "letter" if any(item.options or item.lettered for item in self.items.values()) else ""
        self.outcomes: Counter[str | None] = Counter()
        self.systems: dict[tuple[str, str], Counter[str]] = {}
        self.costs: dict[str, Cost] = {}
        self.samples: dict[tuple[str, str], set[int]] = {}

    def _gather(self) -> dict[str, PredictedQuestion]:
        """The questions of the file, or of the benchmark."""
        known = self.wanted.benchmark
        items = {question.id: PredictedQuestion(question.id, known=question) for question in known or ()}
        owners: dict[str, tuple[str, str]] = {}
        for row in each_row(self.path):
            name, dataset = self._question(row)
            if known is not None and name not in items:
                raise bad(row, f"the benchmark has no question {name!r}", "name the benchmark that was answered")
            if owners.setdefault(name, (dataset, row.name(self.fields.id))) != (dataset, row.name(self.fields.id)):
                raise bad(row, f"two questions would get the id {name!r}", "give each question its own id")
            item = items.setdefault(name, PredictedQuestion(name, dataset))
            gold, predicted = (row.values.get(of) if of else None for of in (self.fields.answer, self.fields.predicted))
            item.learn(row, row.text(self.fields.question), options_of(row, self.fields.options), gold, predicted)
        if not owners:
            raise InputError("the file has no rows", where=str(self.path), fix="name a file of predictions")
        for item in items.values():
            item.settle(self.wanted.count_from)
        return items

    def _question(self, row: PredictionRow) -> tuple[str, str]:
        """A row's question by its name in the run, and its data set: ids are unique within a data set only."""
        name, dataset = row.name(self.fields.id), row.name(self.fields.dataset)
        if not name:
            raise bad(row, "the row does not say which question it answers", "name the field that does: --id FIELD")
        if not dataset or name.startswith(dataset) or self.wanted.benchmark is not None:
            return name, dataset
        return f"{dataset}/{name}", dataset

    def answers(self, progress: Progress) -> Iterator[Answer]:
        """Every answer of the file in its order, then those that are due and missing."""
        seen: set[tuple[str, str, str, int]] = set()
        with progress.task("reading predictions", sum(item.rows for item in self.items.values())) as task:
            for row in each_row(self.path):
                answer = self._answer(row)
                key = (answer.question, answer.model, answer.condition, answer.sample)
                if key in seen:
                    raise bad(
                        row,
                        f"{answer.model} answers {answer.question!r} twice",
                        "remove one, or name the field in which they differ: --sample, --condition-field",
                    )
                seen.add(key)
                self._count(answer)
                task.advance()
                yield answer
        if self.wanted.benchmark is None:
            return
        for answer in self._missing(seen):
            self._count(answer)
            yield answer

    def _missing(self, seen: set[tuple[str, str, str, int]]) -> Iterator[Answer]:
        """The answers that are due and not there: every sample that a system has of any question, of every question."""
        failure = Failure(kind="input", message=_MISSING, attempts=0)
        for (model, condition), samples in list(self.samples.items()):
            for name in self.items:
                for sample in sorted(samples):
                    if (name, model, condition, sample) not in seen:
                        yield Answer(
                            question=name,
                            model=model,
                            condition=condition,
                            sample=sample,
                            protocol=self.protocol,
                            failure=failure,
                        )

    def _answer(self, row: PredictionRow) -> Answer:
        name, _ = self._question(row)
        item = self.items[name]
        parted = split_reasoning(row.text(self.fields.text))
        value = row.values.get(self.fields.predicted) if self.fields.predicted else None
        base = Answer(
            question=name,
            model=self._model(row),
            condition=self._condition(row),
            sample=_sample(row, self.fields.sample),
            protocol=self.protocol,
            text=parted.text or (str(value) if isinstance(value, str | int) else ""),
            reasoning=parted.reasoning,
            usage=_usage(row, self.fields.tokens),
            confidence=_confidence(row, self.fields.confidence),
        )
        if not self.protocol:
            return base
        shown = options_of(row, self.fields.options)
        options = tuple(item.shown(shown).values())
        if value is not None and value != "":
            found = item.chosen(value, shown, self.wanted.count_from)
        elif self.fields.text and row.values.get(self.fields.text) is not None:
            found = read_choice(row.text(self.fields.text), tuple(ascii_uppercase) if item.lettered else options)
        else:
            found = ParsedChoice(None, "none", "the prediction is empty")
        return structs.replace(base, options=options, choice=found.choice, reading=found.words)

    def _model(self, row: PredictionRow) -> str:
        """Who answered. Only an exam gives answers of people: a file can't say that a model is one of them."""
        from hoofbeat.findings.outcomes import HUMAN  # noqa: PLC0415 - not for help

        name = row.name(self.fields.model) or self.wanted.model
        if name.startswith(HUMAN):
            raise bad(
                row,
                f"the name {name!r} begins with {HUMAN!r}, which only people who took an exam get",
                "give another name; people's answers come from an exam: hoofbeat review export EXAM",
            )
        return name

    def _condition(self, row: PredictionRow) -> str:
        said = row.name(self.fields.condition) or self.wanted.condition
        ending = f", {self.protocol}" if self.protocol else ""
        return said if said.endswith(ending) else said + ending

    def _count(self, answer: Answer) -> None:
        tally = self.systems.setdefault((answer.model, answer.condition), Counter())
        unread = self.protocol and answer.choice is None and answer.failure is None
        tally["missing" if answer.failure else answer.reading.partition(":")[0] if unread else "read"] += 1
        self.outcomes[answer.failure.kind if answer.failure else None] += 1
        self.samples.setdefault((answer.model, answer.condition), set()).add(answer.sample)
        if answer.usage is not None:
            used = Cost(calls=1, tokens_in=answer.usage.tokens_in, tokens_out=answer.usage.tokens_out)
            self.costs[answer.model] = self.costs.get(answer.model, Cost()) + used

    def manifest(self, inputs: list[InputRef], command: Sequence[str]) -> Manifest:
        """How the run came about. The models are known by the names the file gives them, and by nothing else."""
        models = list(dict.fromkeys(model for model, _ in self.systems))
        roles = {"answer" if len(models) == 1 else f"answer: {model}": f"given:{model}" for model in models}
        read = [{"model": m, "condition": c, **dict(sorted(tally.items()))} for (m, c), tally in self.systems.items()]
        return Manifest(
            kind=KIND,
            title=f"answers of {', '.join(models)}, from {self.path.name}",
            command=list(command),
            inputs=inputs,
            settings={
                "models": models,
                "conditions": list(dict.fromkeys(condition for _, condition in self.systems)),
                "protocols": [self.protocol or "free"],
                "samples": max(map(len, self.samples.values())),
                "fields": {role: name for role, name in structs.asdict(self.fields).items() if name},
                **({} if self.wanted.count_from is None else {"count from": self.wanted.count_from}),
            },
            models=roles,
            counts=count_outcomes(self.outcomes.elements()),
            cost=sum(self.costs.values(), Cost()),
            costs=self.costs,
            metrics={"reading": read},
        )


def _sample(row: PredictionRow, name: str) -> int:
    value = row.values.get(name) if name else None
    said = row.name(name) if value is not None else "0"
    number = whole_number(said)
    if number is None:
        raise bad(row, f"the field {name!r} should hold the number of the sample")
    return number


def _confidence(row: PredictionRow, field: str) -> float | None:
    """How sure the answer states to be, from 0 to 1 or in percent (`85%`); None where nothing is stated."""
    value = row.values.get(field) if field else None
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return None
    said = str(value).strip()
    try:
        number = float(said.removesuffix("%")) / (100 if said.endswith("%") else 1)
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 <= number <= 1:
        raise bad(row, f"the field {field!r} should hold a confidence from 0 to 1, or a percentage with %")
    return number


def _usage(row: PredictionRow, name: str) -> Usage | None:
    """What the row says was used, where it says it in a way that is known."""
    value = row.values.get(name) if name else None
    if not isinstance(value, dict):
        return None
    spent = [next((value[key] for key in keys if isinstance(value.get(key), int)), 0) for keys in (_IN, _OUT)]
    return Usage(tokens_in=max(0, spent[0]), tokens_out=max(0, spent[1])) if any(spent) else None


# A question while the rows of the file are gathered. Rows of one question may have been shown the options in different
# orders: a row's letters are those of its own options where it has them, else those of the question.
def options_of(row: PredictionRow, field: str) -> OptionsByLetter:
    """The options on a row: an object of letters, a list, or a column each; nothing where the row has none."""
    value = row.values.get(field) if field else _from_columns(row)
    if value is None:
        return {}
    from hoofbeat.benchmarks.benchmark_import import options_by_letter  # noqa: PLC0415 - not for help

    try:
        return _distinct(options_by_letter(value))
    except InputError as err:
        raise bad(row, err.what) from err


def _from_columns(row: PredictionRow) -> dict[str, object] | None:
    for names in _COLUMNS:
        cells = [row.values[name] for name in names if name in row.values]
        if len(cells) > 1:
            return dict(zip(ascii_uppercase, cells, strict=False))
    return None


def _distinct(shown: OptionsByLetter) -> OptionsByLetter:
    """The options, with the letter before those whose texts are the same: a choice between them must stay one."""
    folded = [caseless(text) for text in shown.values()]
    return {
        key: f"{key}. {text}" if folded.count(plain) > 1 else text
        for (key, text), plain in zip(shown.items(), folded, strict=True)
    }


class PredictedQuestion:
    """A question while its rows are gathered; `question` is there once it is settled."""

    def __init__(self, name: str, dataset: str = "", known: Question | None = None) -> None:
        self.name = name
        self.dataset = dataset
        self.known = known
        self.text = ""
        self.options: OptionsByLetter = {}
        self.rows = 0
        self.question = known or Question(id=name, text="")
        self._golds: dict[tuple[object, tuple[tuple[str, str], ...]], PredictionRow] = {}
        self._letters: set[str] = set()
        self.lettered = False
        if known is not None:
            self.text = known.text
            self.options = dict(zip(ascii_uppercase, known.options, strict=False))

    def learn(self, row: PredictionRow, text: str, shown: OptionsByLetter, gold: object, predicted: object) -> None:
        """Take in what a row says of the question; what contradicts an earlier row is refused."""
        self.rows += 1
        if text and self.known is None:
            if self.text and self.text != text:
                raise bad(row, f"the question {self.name!r} has a different text on an earlier line", _IDS)
            self.text = text
        if shown and not self.options and self.known is None:
            self.options = shown
        elif shown and sorted(map(caseless, shown.values())) != sorted(map(caseless, self.options.values())):
            raise bad(row, f"the question {self.name!r} has different options on another line", _IDS)
        if gold is not None and self.known is None:
            self._golds.setdefault((_hashable(row, gold), tuple(shown.items())), row)
        if isinstance(predicted, str) and predicted.strip():
            self._letters.add(_letter(predicted))

    def settle(self, count_from: int | None) -> None:
        """Make the question. Where no row has its options and its gold answer is a letter, letters are compared.

        Its options stay unknown then: how many there were can't be told from the letters that occur.
        """
        if self.known is not None:
            return
        golds = {_letter(gold) if isinstance(gold, str) else "" for gold, _ in self._golds}
        self.lettered = not self.options and "" not in (golds or self._letters or {""})
        answer = ""
        for (gold, shown), row in self._golds.items():
            found = self._gold(gold, dict(shown), count_from, row)
            if answer and found != answer:
                raise bad(row, f"the question {self.name!r} has a different gold answer on an earlier line", _IDS)
            answer = found
        facets: dict[str, str | list[str]] = {"dataset": self.dataset} if self.dataset else {}
        options = tuple(self.options.values())
        self.question = Question(id=self.name, text=self.text, answer=answer, options=options, facets=facets)

    def _gold(self, value: object, shown: OptionsByLetter, count_from: int | None, row: PredictionRow) -> str:
        if self.lettered:
            return _letter(str(value))
        if not self.options:
            return str(value)
        found = self.chosen(value, shown, count_from)
        if found.choice is None:
            raise bad(row, f"the gold answer of {self.name!r} is not one of its options: {found.why}", _GOLD)
        return found.choice

    def shown(self, row_options: OptionsByLetter) -> OptionsByLetter:
        """The options in the order of the row, in the question's words."""
        own = {caseless(text): text for text in self.options.values()}
        return {key: own[caseless(text)] for key, text in row_options.items()} if row_options else self.options

    def chosen(self, value: object, row_options: OptionsByLetter, count_from: int | None) -> ParsedChoice:
        """The option that a predicted (or gold) value means; its letter where the options are not known."""
        shown = {letter: letter for letter in ascii_uppercase} if self.lettered else self.shown(row_options)
        texts = list(shown.values())
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            return ParsedChoice(None, "ambiguous", "several options are predicted")
        if isinstance(value, bool) or not isinstance(value, str | int):
            return ParsedChoice(None, "none", "the prediction is neither a letter nor text")
        said = str(value).strip()
        if not said:
            return ParsedChoice(None, "none", "the prediction is empty")
        dressed = _DRESSED.match(said)
        for key in (said, said.upper(), dressed[1] if dressed else "", dressed[1].upper() if dressed else ""):
            if key in shown:
                return ParsedChoice(shown[key], "only-letter")
        number = whole_number(dressed[1]) if dressed else None
        if dressed and number is not None and dressed[1] not in texts:
            return _numbered(number, texts, count_from)
        return read_choice(said, texts)


def _letter(value: str) -> str:
    """The letter that a value is, be it in brackets or with a full stop; empty where it is none."""
    dressed = _DRESSED.match(value)
    letter = dressed[1].upper() if dressed else ""
    return letter if len(letter) == 1 and letter in ascii_uppercase else ""


def _numbered(number: int, texts: list[str], count_from: int | None) -> ParsedChoice:
    if count_from is None:
        return ParsedChoice(None, "ambiguous", "it is not known whether numbers count from 0 or from 1")
    place = number - count_from
    if not 0 <= place < len(texts):
        return ParsedChoice(None, "none", "no option has this number")
    return ParsedChoice(texts[place], "number")


def _hashable(row: PredictionRow, gold: object) -> object:
    if isinstance(gold, str | int) and not isinstance(gold, bool):
        return gold
    raise bad(row, "the gold answer should be a letter, a number or text")
