"""Shards of one audit put together: the same folder as if it had been run in one, once every question is there once."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from msgspec import Struct

from hoofbeat.audit.audit_doubts import WARNINGS, audit_doubts
from hoofbeat.audit.audit_folder import ECONOMY, KIND, ORDER, PACK, PAIRS, POSITIONS, Audit, EconomyProbe, HeldPosition
from hoofbeat.audit.audit_plan import Shard, read_shard
from hoofbeat.audit.pair_table import PartWriter, TableEnums, each_question
from hoofbeat.audit.source_audit import title_of
from hoofbeat.errors import InputError, UsageError
from hoofbeat.judging.stratified_sample import ReservoirSample
from hoofbeat.progress import SILENT, Progress
from hoofbeat.prompts.packs import encode_pack
from hoofbeat.records import Question
from hoofbeat.store import Artefact, Cost, Counts, Manifest, create, open_artefact
from hoofbeat.store.files import write_bytes
from hoofbeat.store.tables import write_jsonl

if TYPE_CHECKING:
    import polars

_PART = 500_000
_TRIAL = "trial"
_SETTINGS = {"questions": "the number of questions", "pack": "the domain pack", "line": "the retriever line"}


_OfQuestion = TypeVar("_OfQuestion", EconomyProbe, HeldPosition)


class _Key(Struct, frozen=True):
    question: str
    source: str


def merge_audits(
    paths: Sequence[Path], target: Path, *, command: Sequence[str] = (), progress: Progress = SILENT
) -> Artefact:
    """Put the shards of one audit together; refused unless all are of one plan and every question is there once."""
    shards = _in_order([Audit.open(path) for path in paths])
    _refuse_own(shards, target)
    questions = _questions(shards)
    first = shards[0]
    pack = first.pack
    judges = {name for shard in shards for name in _judges(shard)}
    kinds = TableEnums.of(
        questions=(question.id for question in questions),
        sources=(source.id for source in first.sources),
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges=judges,
    )
    with create(target, replace_kind=KIND) as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "sources.jsonl", first.sources)
        write_bytes(draft.path / PACK, encode_pack(pack))
        _merge_answers(shards, draft.path / "answers.jsonl")
        _merge_pairs(shards, draft.path / PAIRS, kinds, progress)
        metrics = _sum_metrics(shards)
        settings = dict(first.artefact.manifest.settings)
        if first.artefact.has(ORDER):
            drawn = ReservoirSample[Any](
                int(cast("int", settings["probe_order"])), first.artefact.manifest.seeds["sample"]
            )
            for shard in shards:
                for probe in shard.order_probes:
                    drawn.offer((probe.question, probe.a, probe.b, 0), probe)
            write_jsonl(draft.path / ORDER, drawn.drawn())
        if first.artefact.has(ECONOMY):
            write_jsonl(draft.path / ECONOMY, _by_question(shard.economy_probes for shard in shards))
            write_jsonl(draft.path / POSITIONS, _by_question(shard.positions for shard in shards))
        settings.pop("shard")
        settings.pop("questions")
        draft.finish(_manifest(shards, len(questions), settings, metrics, command))
    return open_artefact(target, KIND)


def _refuse_own(shards: Sequence[Audit], target: Path) -> None:
    """A shard must not be written over by what is made of it."""
    for shard in shards:
        if shard.artefact.path.resolve() == target.resolve():
            raise UsageError(
                "the merged audit would overwrite one of its shards",
                where=str(target),
                fix="choose another folder with -o",
            )


def _shard_of(audit: Audit) -> Shard:
    text = audit.artefact.manifest.settings.get("shard")
    if not isinstance(text, str):
        raise UsageError(
            "this audit is not a shard", where=str(audit.artefact.path), fix="name folders made with --shard I/N"
        )
    return read_shard(text)


def _in_order(audits: Sequence[Audit]) -> list[Audit]:
    """The shards by number, once it is sure that they are all of one audit and all there."""
    if not audits:
        raise UsageError("there is nothing to merge", fix="name the folders of all shards")
    ordered = sorted(audits, key=lambda audit: _shard_of(audit).number)
    first = ordered[0].artefact.manifest
    for audit in ordered:
        if audit.artefact.manifest.settings.get("plan") != first.settings.get("plan"):
            raise InputError(
                f"this shard and {ordered[0].artefact.path.name} belong to different audits: "
                f"they differ in {', '.join(_differing(first, audit.artefact.manifest))}",
                where=str(audit.artefact.path),
                fix="make all shards with the same command; only --shard may differ",
            )
    numbers = Counter(_shard_of(audit) for audit in ordered)
    of = _shard_of(ordered[0]).of
    for audit in ordered:
        if (shard := _shard_of(audit)).of != of:
            raise InputError(
                f"this is shard {shard}, but {ordered[0].artefact.path.name} is one of {of} shards",
                where=str(audit.artefact.path),
                fix="use the same N in --shard I/N for all shards",
            )
    twice = [str(shard) for shard, count in numbers.items() if count > 1]
    if twice:
        raise InputError(f"the shard {twice[0]} appears more than once", fix="name each folder once")
    missing = [f"{number}/{of}" for number in range(1, of + 1) if Shard(number=number, of=of) not in numbers]
    if missing:
        raise InputError(f"shards are missing: {', '.join(missing)}", fix="run them with --shard, then merge all")
    return ordered


def _differing(one: Manifest, two: Manifest) -> list[str]:
    """What differs between the plans of two shards, as far as their manifests tell."""
    names = dict.fromkeys(name for each in (one, two) for name in each.settings if name not in ("shard", "plan"))
    found = [_SETTINGS.get(name, name) for name in names if one.settings.get(name) != two.settings.get(name)]
    found += [what for what in ("models", "prompts", "seeds") if getattr(one, what) != getattr(two, what)]
    files = zip_longest(one.inputs, two.inputs)
    found += [f"the file {(a or b).name}" for a, b in files if a is None or b is None or a.sha256 != b.sha256]
    return found or ["the chosen questions or sources"]


def _questions(shards: Sequence[Audit]) -> list[Question]:
    """The questions in the order of the plan: the shards take turns."""
    total = int(cast("int", shards[0].artefact.manifest.settings["questions"]))
    turns = [iter(shard.questions) for shard in shards]
    found = [next(turns[place % len(shards)], None) for place in range(total)]
    questions = [question for question in found if question is not None]
    if len(questions) != total or any(next(turn, None) is not None for turn in turns):
        raise InputError(
            f"the shards have {sum(len(shard.questions) for shard in shards)} of {total} questions",
            where=str(shards[0].artefact.path),
            fix="a shard is damaged: make it again",
        )
    return questions


def _judges(audit: Audit) -> list[str]:
    """The judges that a shard's table knows, whether they were asked or not."""
    kind = audit.frame().collect_schema()["judge"]
    return [str(name) for name in cast("polars.Enum", kind).categories]


def _merge_answers(shards: Sequence[Audit], target: Path) -> None:
    """The answers of all shards by question and source, line by line."""
    decode = msgspec.json.Decoder(_Key).decode

    def lines(audit: Audit) -> Iterator[tuple[str, str, bytes]]:
        with audit.artefact.file("answers.jsonl").open("rb") as stream:
            for line in stream:
                key = decode(line)
                yield key.question, key.source, line

    with target.open("wb") as stream:
        for _, _, line in heapq.merge(*map(lines, shards), key=itemgetter(0, 1)):
            stream.write(line)


def _merge_pairs(shards: Sequence[Audit], target: Path, kinds: TableEnums, progress: Progress) -> None:
    import polars  # noqa: PLC0415 - 0.2 s that most commands need not pay

    parts = PartWriter(target.with_name(f"{target.name}.parts"))
    schema = kinds.schema()
    streams = [each_question(shard.artefact.file(PAIRS)) for shard in shards]
    kept: list[polars.DataFrame] = []
    with progress.task("merging pairs", len(kinds.questions)) as task:
        for _, frame in heapq.merge(*streams, key=itemgetter(0)):
            other = [name for name, kind in schema.items() if frame.schema[name] != kind]
            kept.append(frame.with_columns(frame[name].cast(str).cast(schema[name]) for name in other))
            if sum(each.height for each in kept) >= _PART:
                parts.add(polars.concat(kept))
                kept = []
            task.advance()
        if kept:
            parts.add(polars.concat(kept))
    parts.finish(target, kinds)


def _by_question(rows: Iterable[Sequence[_OfQuestion]]) -> Iterator[_OfQuestion]:
    return heapq.merge(*rows, key=lambda each: each.question)


def _sum_metrics(shards: Sequence[Audit]) -> dict[str, object]:
    """Counts of all shards, added up; what the trial of the judge found is the same for all and is kept as it is."""

    def added(one: object, two: object) -> object:
        if isinstance(one, dict) and isinstance(two, dict):
            names = sorted({*one, *two})
            return {name: added(one.get(name, 0), two.get(name, 0)) for name in names}
        if isinstance(one, list) or isinstance(two, list):
            return [*cast("list[object]", one or []), *cast("list[object]", two or [])]
        if isinstance(one, dict) or isinstance(two, dict):
            return one or two
        return cast("int", one) + cast("int", two)

    own = (_TRIAL, WARNINGS)
    total: dict[str, Any] = {}
    for shard in shards:
        counts = shard.artefact.manifest.metrics
        total = cast("dict[str, Any]", added(total, {name: value for name, value in counts.items() if name not in own}))
    if "economy" in total:  # each shard was checked by itself: what holds for all is the bound of the worst
        bounds = [cast("dict[str, Any]", shard.artefact.manifest.metrics["economy"])["bound"] for shard in shards]
        total["economy"]["bound"] = max(bounds)
    tried = [shard.artefact.manifest.metrics[_TRIAL] for shard in shards if _TRIAL in shard.artefact.manifest.metrics]
    doubts = _doubts(shards, total)
    return {**total, **({_TRIAL: tried[0]} if tried else {}), **({WARNINGS: doubts} if doubts else {})}


def _doubts(shards: Sequence[Audit], total: Mapping[str, Any]) -> list[str]:
    """Why the merged audit can't tell that its sources agree: what holds for a shard may not hold for all."""
    labels = cast("dict[str, int]", total.get("labels", {}))
    counts = [shard.artefact.manifest.counts for shard in shards]
    found = audit_doubts(
        shards[0].artefact.manifest.models,
        cast("dict[str, int]", total.get("citations", {})),
        judged=sum(labels.values()) - labels.get(shards[0].pack.absent, 0),
        pairs=sum(each.kept + each.failed for each in counts),
        questions=sum(len(shard.questions) for shard in shards),
    )
    return list(found)


def _manifest(
    shards: Sequence[Audit],
    questions: int,
    settings: dict[str, object],
    metrics: dict[str, object],
    command: Sequence[str],
) -> Manifest:
    first = shards[0].artefact.manifest
    cost = Cost()
    failures: Counter[str] = Counter()
    for shard in shards:
        cost = cost + shard.artefact.manifest.cost
        failures.update(shard.artefact.manifest.counts.failures)
    return Manifest(
        kind=KIND,
        title=title_of(len(shards[0].sources), questions),
        command=list(command),
        inputs=[*first.inputs, *(shard.artefact.reference() for shard in shards)],
        settings={**settings, "merged": len(shards)},
        seeds=first.seeds,
        models=first.models,
        prompts=first.prompts,
        counts=Counts(
            kept=sum(shard.artefact.manifest.counts.kept for shard in shards),
            rejected=first.counts.rejected,
            failed=failures.total(),
            reasons=first.counts.reasons,
            failures=dict(sorted(failures.items())),
        ),
        cost=cost,
        metrics=metrics,
    )
