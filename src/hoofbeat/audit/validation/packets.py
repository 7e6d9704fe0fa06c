"""Packets for annotators: a stratified sample of an audit's pairs, blinded and shuffled for each of them.

So many pairs are drawn for every label of the judge, so rare labels are drawn more often than they occur; the key keeps
how many pairs each label has, from which what the sample says of all pairs is estimated. An annotator's folder holds
the rows in its own order, with the two answers of a pair in its own order, without labels and without the names of
sources that `name_mask` knows. The key, which undoes all of that and lists what was replaced, is outside of every
annotator's folder.

Annotators read a pair under a code that tells nothing, the two answers, and the rules.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hoofbeat.audit.audit_folder import Audit
from hoofbeat.audit.sample_records import Row, SampledPair
from hoofbeat.audit.silence import silence_proof
from hoofbeat.audit.validation.name_mask import MASK, NameMask
from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.blinded_sheet import blinding_secret
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts import Pack
from hoofbeat.records import Answer, Question
from hoofbeat.store import Artefact, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import read_bytes, write_bytes
from hoofbeat.store.tables import read_jsonl, seeded_number, write_csv, write_jsonl, write_tsv
from hoofbeat.text import printable

_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
_LENGTH = 10
_NUMBERS: int = len(_LETTERS) ** _LENGTH


def number_of(secret: bytes, question: str, a: str, b: str) -> int:
    """The number behind a pair's code: a hash of what identifies the pair, with the audit's `blinding_secret`."""
    digest = hashlib.blake2b("\x1f".join(("pair", question, a, b)).encode(), digest_size=8, key=secret).digest()
    return int.from_bytes(digest, "big") % _NUMBERS


def pair_code(secret: bytes, question: str, a: str, b: str) -> str:
    """A name for a pair that tells nothing about it, and that no spreadsheet takes for a number or a date."""
    return code_of(number_of(secret, question, a, b))


def code_of(number: int) -> str:
    """A number as a code."""
    letters = ""
    for _ in range(_LENGTH):
        number, place = divmod(number, len(_LETTERS))
        letters += _LETTERS[place]
    return f"{letters[:5]}-{letters[5:]}"


def code_number(code: str) -> int | None:
    """The number behind a code as somebody typed it; None where it is no code."""
    letters = re.sub(r"[\s\-‐-―]", "", code.upper())
    if len(letters) != _LENGTH or any(letter not in _LETTERS for letter in letters):
        return None
    number = 0
    for letter in reversed(letters):
        number = number * len(_LETTERS) + _LETTERS.index(letter)
    return number


def blinding_note() -> str:
    """What annotators are told of the names in the texts: what was done, and that some may be left."""
    return (
        f"Hoofbeat replaced the names of sources that it knows by {MASK}. Some names may remain: if you recognise a "
        "source, say so in the note, and judge by the texts."
    )


def instructions(pack: Pack, annotator: str, items: int, files: Sequence[str]) -> str:
    """The rules for one annotator, as Markdown: the pack's definitions, and how to fill the sheet in."""
    rated = [label.name for label in pack.labels if label.significance]
    lines = [
        f"# How do these answers relate? ({annotator}, {items} pairs)",
        "",
        f"Each row shows a question of {pack.reader} and what two sources say about it (each source is one "
        f"{pack.source_word}). Choose the one label that fits best and write it into `label`. Which source is A and "
        "which is B was decided at random.",
        "",
        "| label | when it fits |",
        "|---|---|",
        *(f"| {label.name} | {' '.join(label.definition.split())} |" for label in pack.labels),
        "",
        *((*pack.decision.strip().splitlines(), "") if pack.decision else ()),
        f"- Judge what {pack.reader} would do after each answer, not how it is worded.",
        "- The labels are in order. Between two neighbours, choose the later one only if you can name the difference.",
        "- Judge by the two texts alone, not by which advice is right.",
        "- Work alone, one row at a time. The rows are independent.",
        "- An answer is text to be judged. Do not follow instructions in it.",
        f"- {blinding_note()}",
    ]
    if rated and pack.significance_levels:
        lines += [
            "",
            f"Where your label is {' or '.join(rated)}, write into `significance` one of "
            f"{', '.join(pack.significance_levels)}. {' '.join(pack.significance_meaning.split())} Leave it empty "
            "elsewhere.",
        ]
    lines += [
        "",
        "Where a source is silent, its nearest passages are below. If they answer the question, write `yes` into "
        "`passages answer it`, otherwise `no`. If both sources are silent but the passages of one answer it, write "
        "`one`.",
        "",
        f"Use `note` as you like. In `annotator` you may replace {annotator} by your name. Do not change `item`. "
        f"{' and '.join(files)} have the same rows: fill in one of them and return that file.",
        "",
        "Research software. Not for clinical use.",
        "",
    ]
    return "\n".join(lines)


KIND = "packets"
NAMES = "key/names_replaced.tsv"
HEADER = (
    "item", "question", "answer A", "answer B", "label", "significance", "passages answer it", "note", "annotator",
    "labels to choose", "significance to choose",
)  # fmt: skip
_COLUMNS = ("question", "a", "b", "label", "significance", "basis")
_BLOCK = 100_000
_BOM = b"\xef\xbb\xbf"


class PairStratum(Struct, frozen=True, kw_only=True):
    """One label of the judge: how many pairs of the audit have it, and how many were drawn."""

    label: str
    pairs: int
    drawn: int

    @property
    def weight(self) -> float | None:
        """How many pairs of the audit a drawn pair represents; None where none was drawn."""
        return self.pairs / self.drawn if self.drawn else None


class PacketDesign(Struct, frozen=True, kw_only=True):
    """How the sample was drawn; `unlabelled` pairs of the audit have no label and can't be drawn."""

    seed: int
    annotators: tuple[str, ...]
    strata: tuple[PairStratum, ...]
    unlabelled: int
    pack: str


class KeyRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an item of the packets is: the pair, what the audit says of it, and who sees its sides exchanged."""

    item: str
    pair: SampledPair
    weight: float
    swapped: dict[str, bool]


class PacketRow(Struct, frozen=True, kw_only=True):
    """One item as an annotator sees it; the last five are to be filled in."""

    item: str
    question: str
    answer_a: str
    answer_b: str
    label: str = ""
    significance: str = ""
    passages_answer_it: str = ""
    note: str = ""
    annotator: str = ""


class _LabelRule(Struct, frozen=True, kw_only=True):
    name: str
    definition: str
    significance: bool


class PacketRules(Struct, frozen=True, kw_only=True):
    """What a page that shows the packet needs beside its rows: the labels in order, and how significance is rated."""

    annotator: str
    reader: str
    source_word: str
    labels: tuple[_LabelRule, ...]
    significance_levels: tuple[str, ...]
    significance_meaning: str
    notice: str = field(default="Research software. Not for clinical use.")


class Packets:
    """An opened folder of packets, with its key."""

    def __init__(self, artefact: Artefact) -> None:
        self.artefact = artefact

    @staticmethod
    def open(path: Path) -> Packets:
        """Open a folder of packets."""
        return Packets(open_artefact(path, KIND))

    @cached_property
    def design(self) -> PacketDesign:
        """How the sample was drawn."""
        file = self.artefact.file("key/design.json")
        try:
            return msgspec.json.decode(read_bytes(file), type=PacketDesign)
        except (msgspec.DecodeError, UnicodeDecodeError) as err:
            raise InputError(
                f"the packets' design can't be read: {err}", where=str(file), fix="restore the folder from a copy"
            ) from err

    @cached_property
    def key(self) -> list[KeyRow]:
        """What every item is."""
        return list(read_jsonl(self.artefact.file("key/key.jsonl"), KeyRow))

    @cached_property
    def names_replaced(self) -> list[tuple[str, str, int]] | None:
        """What was replaced in the answers: name, rule and times; None for packets made before that was kept."""
        if not self.artefact.has(NAMES):
            return None
        lines = read_bytes(self.artefact.file(NAMES)).decode("utf-8").splitlines()[1:]
        cells = [line.split("\t") for line in lines]
        return [(name, rule, int(times)) for name, rule, times in cells]

    def check(self, audit: Audit) -> None:
        """Refuse an audit that is not the one the packets were drawn from."""
        if (
            self.artefact.manifest.inputs[:1]
            and self.artefact.manifest.inputs[0].sha256 != audit.artefact.reference().sha256
        ):
            raise InputError(
                f"these packets do not belong to the audit {audit.artefact.path}, or it was made again later",
                where=str(self.artefact.path),
                fix="name the audit they were drawn from. If only the judgments differ, not the answers, leave out "
                "--packets to find items by their codes",
            )


def label_counts(audit: Audit) -> tuple[dict[str, int], int]:
    """How many pairs of the audit have each label, in the pack's order, and how many have none."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    rows = audit.frame(["label"]).group_by(polars.col("label").cast(polars.String)).len().collect().rows()
    counts: dict[str | None, int] = dict(rows)
    unlabelled = counts.pop(None, 0) + counts.pop("", 0)
    names = [label.name for label in audit.pack.labels]
    strange = sorted(str(name) for name in counts if name not in names)
    if strange:
        raise InputError(
            f"the audit has the label {strange[0]!r}, which the pack {audit.pack.name} does not have",
            where=str(audit.artefact.path),
            fix=f"the labels are {', '.join(names)}",
        )
    return {name: counts.get(name, 0) for name in names}, unlabelled


def iter_drawable_pairs(audit: Audit, progress: Progress, *, judged: bool = False, title: str) -> Iterator[Row]:
    """Every pair with a label as a row, some at a time; with `judged`, only those that a judge had to look at."""
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    frame = audit.frame(_COLUMNS).filter(polars.col("label").is_not_null())
    if judged:
        label, basis = (polars.col(name).cast(polars.String) for name in ("label", "basis"))
        looked_at = basis.fill_null("judged").is_in(["judged", "shared", "group"])
        frame = frame.filter((label != audit.pack.absent) & looked_at)
    table = frame.collect()
    with progress.task(title, table.height) as task:
        for block in table.iter_slices(_BLOCK):
            yield from block.iter_rows()
            task.advance(block.height)


def draw_pairs(
    audit: Audit, wanted: Mapping[str, int], *, seed: int = 0, judged: bool = False, progress: Progress = SILENT
) -> tuple[list[SampledPair], dict[str, int]]:
    """So many pairs of every label, in the order of labels and then of the draw; and how many pairs each label has.

    The draw depends on seed and pair alone: pairs that are added to an audit do not change which others are drawn
    before them.
    """
    draws = {label: ReservoirSample[Row](count, seed) for label, count in wanted.items()}
    for row in iter_drawable_pairs(audit, progress, judged=judged, title="drawing pairs"):
        if row[3] in draws:
            draws[row[3]].offer((row[0], row[1], row[2], 0), row)
    drawn = [SampledPair.of(row) for draw in draws.values() for row in draw.drawn()]
    return drawn, {name: each.seen for name, each in draws.items()}


def answers_of(audit: Audit, pairs: Sequence[SampledPair]) -> dict[tuple[str, str], Answer]:
    """The answers behind these pairs, by question and source."""
    needed = {(pair.question, source) for pair in pairs for source in (pair.a, pair.b)}
    found = {
        (answer.question, answer.source): answer
        for answer in audit.each_answer()
        if (answer.question, answer.source) in needed
    }
    missing = sorted(needed - found.keys())
    if missing:
        raise InputError(
            f"the audit has no answer from {missing[0][1]!r} to {missing[0][0]!r}",
            where=str(audit.artefact.path),
            fix="check the audit: hoofbeat verify",
        )
    return found


def write_packets(
    audit: Audit,
    target: Path,
    *,
    annotators: int = 2,
    per_label: int = 40,
    of_label: Mapping[str, int] | None = None,
    seed: int = 0,
    command: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Artefact:
    """Draw the sample and write a packet for every annotator, and the key apart from them.

    `of_label` are labels of which another number is drawn. Of a label with fewer pairs all are taken.
    """
    pack = audit.pack
    wanted = _wanted(pack, per_label, of_label or {})
    counts, unlabelled = label_counts(audit)
    pairs, _ = draw_pairs(audit, {name: count for name, count in wanted.items() if count}, seed=seed, progress=progress)
    if not pairs:
        raise UsageError("there are no pairs to label", where=str(audit.artefact.path), fix="name another audit")
    names = tuple(f"annotator-{number}" for number in range(1, annotators + 1))
    drawn = {name: sum(pair.label == name for pair in pairs) for name in counts}
    strata = tuple(PairStratum(label=name, pairs=count, drawn=drawn[name]) for name, count in counts.items())
    design = PacketDesign(
        seed=seed, annotators=names, strata=strata, unlabelled=unlabelled, pack=f"{pack.name}@{pack.fingerprint}"
    )
    weights = {stratum.label: stratum.weight or 0.0 for stratum in strata}
    secret = blinding_secret(audit.artefact)
    codes = {pair.key: pair_code(secret, *pair.key) for pair in pairs}
    key = sorted(
        (_key_row(codes[pair.key], pair, weights[pair.label], design) for pair in pairs), key=lambda row: row.item
    )
    texts = blinded_texts(audit, pairs)
    with create(target, replace_kind=KIND) as draft:
        for name in names:
            _write_packet(draft.path / name, name, key, texts, (pack, seed))
        write_bytes(
            draft.path / "key" / "design.json", msgspec.json.format(msgspec.json.encode(design), indent=1) + b"\n"
        )
        write_jsonl(draft.path / "key" / "key.jsonl", key)
        write_tsv(draft.path / NAMES, ("name", "rule", "times"), texts.replaced)
        draft.finish(
            Manifest(
                kind=KIND,
                title=f"{len(pairs)} pairs for {annotators} annotators",
                command=list(command),
                inputs=[audit.artefact.reference()],
                settings={"annotators": annotators, "per_label": wanted, "pack": design.pack},
                seeds={"packets": seed},
                counts=Counts(kept=len(pairs)),
                metrics={
                    "strata": msgspec.to_builtins(strata),
                    "unlabelled": unlabelled,
                    "names replaced": sum(times for _, _, times in texts.replaced),
                },
            )
        )
    return open_artefact(target, KIND)


def _wanted(pack: Pack, per_label: int, of_label: Mapping[str, int]) -> dict[str, int]:
    names = [label.name for label in pack.labels]
    unknown = [name for name in of_label if name not in names]
    if unknown:
        raise UsageError(f"there is no label {unknown[0]!r}", fix=f"the labels are {', '.join(names)}")
    return {name: of_label.get(name, per_label) for name in names}


def _key_row(item: str, pair: SampledPair, weight: float, design: PacketDesign) -> KeyRow:
    swapped = {name: bool(seeded_number("sides", design.seed, name, item) & 1) for name in design.annotators}
    return KeyRow(item=item, pair=pair, weight=weight, swapped=swapped)


class BlindedTexts(Struct, frozen=True, kw_only=True):
    """What annotators read: questions by id, answers by question and source.

    `replaced` lists the names that were replaced in them: the name, the rule that knows it, and how often.
    """

    questions: dict[str, str]
    answers: dict[tuple[str, str], str]
    replaced: list[tuple[str, str, int]]


def _shown(answer: Answer, pack: Pack) -> str:
    """What annotators read of an answer: its text, and for a silent source what was searched and found.

    The strength is below the text where the judge sees it. The date is not: it would help to recognise the source.
    """
    from hoofbeat.audit.pair_plan import Claim  # noqa: PLC0415 - `review` draws packets without planning pairs

    text = answer.text if answer.absent else Claim.of(answer, pack).text
    return "\n".join([text, *silence_proof(answer)])


def blinded_texts(audit: Audit, pairs: Sequence[SampledPair]) -> BlindedTexts:
    """The texts of these pairs without the names of sources that are known."""
    questions: dict[str, Question] = {question.id: question for question in audit.questions}
    texts = {pair: printable(_shown(answer, audit.pack)) for pair, answer in answers_of(audit, pairs).items()}
    # of the whole audit: the same words in every sample
    every = [_shown(answer, audit.pack) for answer in audit.each_answer()]
    mask = NameMask(audit.sources, audit.pack.source_facet, every)
    return BlindedTexts(
        questions={pair.question: printable(questions[pair.question].full_text) for pair in pairs},
        answers={pair: mask(text) for pair, text in texts.items()},
        replaced=mask.rows(),
    )


def _write_packet(
    folder: Path,
    name: str,
    key: Sequence[KeyRow],
    texts: BlindedTexts,
    how: tuple[Pack, int],
) -> None:
    pack, seed = how
    questions, answers = texts.questions, texts.answers
    rows = []
    for row in sorted(key, key=lambda row: seeded_number("order", seed, name, row.item)):
        pair = row.pair
        sides = (pair.b, pair.a) if row.swapped[name] else (pair.a, pair.b)
        first, second = (answers[pair.question, side] for side in sides)
        rows.append(
            PacketRow(item=row.item, question=questions[pair.question], answer_a=first, answer_b=second, annotator=name)
        )
    labels, levels = " | ".join(label.name for label in pack.labels), " | ".join(pack.significance_levels)
    table = folder / f"{name}.csv"
    write_csv(
        table,
        HEADER,
        ((row.item, row.question, row.answer_a, row.answer_b, "", "", "", "", name, labels, levels) for row in rows),
    )
    write_bytes(table, _BOM + read_bytes(table))  # by which spreadsheets know that it is UTF-8
    write_jsonl(folder / f"{name}.jsonl", rows)
    rules = PacketRules(
        annotator=name,
        reader=pack.reader,
        source_word=pack.source_word,
        labels=tuple(
            _LabelRule(name=label.name, definition=" ".join(label.definition.split()), significance=label.significance)
            for label in pack.labels
        ),
        significance_levels=tuple(pack.significance_levels),
        significance_meaning=" ".join(pack.significance_meaning.split()),
    )
    write_bytes(folder / "rules.json", msgspec.json.format(msgspec.json.encode(rules), indent=1) + b"\n")
    told = instructions(pack, name, len(rows), (f"`{name}.csv`", f"`{name}.jsonl`"))
    write_bytes(folder / "instructions.md", told.encode())
