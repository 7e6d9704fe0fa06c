"""An exam from a benchmark: every question that can be asked becomes an item that tells nothing of its answer.

A person gets a number of questions, a share of them inside the person's specialty, drawn by the exam's seed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from hoofbeat.answering.condition_material import check_images
from hoofbeat.answering.conditions import FREE, option_trouble, parse_condition, protocol_ending
from hoofbeat.benchmarks import Benchmark
from hoofbeat.errors import InputError, UsageError
from hoofbeat.facets import facet_values
from hoofbeat.findings.outcomes import EXAM, INSIDE, OUTSIDE
from hoofbeat.records import Question
from hoofbeat.review.review_records import Assignment, ItemMaterial, Person, ReviewItem, Study, item_code
from hoofbeat.review.review_store import ReviewStore
from hoofbeat.store.files import slug
from hoofbeat.store.tables import content_sha256

FORM = EXAM
"""The form of every exam."""

Clock = Callable[[], float]
"""The server's clock: seconds since 1970."""

_WHOLE = 100
_MAX_MINUTES = 7 * 24 * 60


class ExamRules(Struct, frozen=True, kw_only=True):
    """What holds for everybody in an exam.

    A person gets `per_person` questions (0: all), the share `inside` of them from their own specialty where there are
    enough: `facet` is the questions' facet that says so. `minutes` is for all of them together (0: no limit). `stages`
    are the percents of the case that are shown one after the other, an answer each; none: the whole case at once.
    `literature` says that books and papers may be used. `images`: some questions have images. `seed` draws questions
    and the order of options, each person's own way.
    """

    per_person: int = 0
    inside: float = 0.5
    minutes: float = 0.0
    stages: tuple[int, ...] = ()
    literature: bool = True
    images: bool = False
    facet: str = "specialty"
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what can't be kept."""
        if self.per_person < 0:
            raise UsageError(f"{self.per_person} is not a number of questions", fix="give 1 or more, or 0 for all")
        if not 0 <= self.inside <= 1:
            raise UsageError(f"{self.inside:g} is not a share of questions", fix="give a number from 0 to 1")
        if not 0 <= self.minutes <= _MAX_MINUTES:
            raise UsageError(f"{self.minutes:g} minutes can't be a limit", fix="give more than 0, or 0 for no limit")
        ascending = all(a < b for a, b in zip(self.stages, self.stages[1:], strict=False))
        if self.stages and (self.stages[0] < 1 or self.stages[-1] != _WHOLE or not ascending):
            raise UsageError(
                f"{', '.join(map(str, self.stages))} can't be stages",
                fix="give percents that rise to 100: 20 40 60 80 100",
            )

    @property
    def shares(self) -> tuple[int, ...]:
        """The percents of the case for which there is an answer."""
        return self.stages or (_WHOLE,)

    def condition(self, share: int, protocol: str) -> str:
        """The condition under which an answer stands in tables: as a model's would, or `literature`."""
        if self.stages:
            return parse_condition(f"first {share}% of sentences").by(protocol).name
        base = "literature" if self.literature else "images" if self.images else "closed"
        return base + protocol_ending(protocol or FREE)

    def recorded(self) -> dict[str, Any]:
        """The rules as a study's settings keep them."""
        kept: dict[str, Any] = msgspec.to_builtins(self)
        return kept


def rules_of(study: Study) -> ExamRules:
    """The rules that a study was made with."""
    return msgspec.convert(study.settings.get(FORM, {}), ExamRules)


def person_seed(rules: ExamRules, study: str, person: str) -> int:
    """The seed of everything drawn for one person; kept with each of their answers."""
    digest = hashlib.blake2b(f"{rules.seed}\0{study}\0{person}".encode(), digest_size=6).digest()
    return int.from_bytes(digest, "big")


UNKNOWN = "plan"
"""Why a question is assigned: it is of the person's specialty, it is not, or the person has named none."""


def exam_assignments(study: Study, items: Sequence[ReviewItem], person: Person) -> list[Assignment]:
    """A person's questions in their order; the same study and person give the same.

    Where the specialty has too few questions, others fill the list, and the other way round.
    """
    rules = rules_of(study)
    seed = person_seed(rules, study.id, person.id)
    drawn = sorted(items, key=lambda item: _number(seed, "draw", item.id))
    wanted = rules.per_person or len(items)
    chosen = _chosen(drawn, person, rules, wanted)
    mixed = sorted(chosen, key=lambda item: _number(seed, "order", item.id))
    return [
        Assignment(study=study.id, item=item.id, person=person.id, place=place, why=_why(item, person))
        for place, item in enumerate(mixed)
    ]


def _chosen(drawn: Sequence[ReviewItem], person: Person, rules: ExamRules, wanted: int) -> list[ReviewItem]:
    if not person.groups:
        return list(drawn[:wanted])
    inside = [item for item in drawn if _why(item, person) == INSIDE]
    outside = [item for item in drawn if _why(item, person) == OUTSIDE]
    share = round(wanted * rules.inside)
    first = max(min(share, len(inside)), min(wanted - len(outside), len(inside)))
    return inside[:first] + outside[: wanted - first]


def _why(item: ReviewItem, person: Person) -> str:
    mine = {group.casefold() for group in person.groups}
    of = {str(group).casefold() for group in item.key.get("groups", [item.group])}
    return UNKNOWN if not mine else OUTSIDE if mine.isdisjoint(of) else INSIDE


def _number(seed: int, what: str, item: str) -> bytes:
    return hashlib.blake2b(f"{seed}\0{what}\0{item}".encode(), digest_size=8).digest()


def assign_exam(store: ReviewStore, study: Study, person: Person, *, by: str) -> list[Assignment]:
    """The questions of a person, given to them now where they have none yet; the trail says which."""
    mine = store.assignments(study.id, person.id)
    if mine:
        return mine
    store.assign(study.id, exam_assignments(study, store.items(study.id), person), by=by)
    return store.assignments(study.id, person.id)


def exam_study(
    benchmark: Path,
    *,
    per_person: int = 0,
    inside: float = 0.5,
    minutes: float = 0.0,
    stages: Sequence[int] = (),
    seed: int = 0,
    title: str = "",
    edition: str = "",
    facet: str = "specialty",
    literature: bool = True,
) -> tuple[Study, list[ReviewItem]]:
    """An exam on a benchmark, and its items: multiple choice where a question has options, else free text.

    A question whose options can't be told apart is left out, and counted in the settings; one without an answer can't
    be scored and is left out as well.
    """
    bench = Benchmark.open(benchmark, edition)
    check_images(bench.artefact, bench.questions)
    asked = [question for question in bench.questions if question.answer and not _trouble(question)]
    if not asked:
        raise InputError(
            "no question of this benchmark can be asked in an exam",
            where=str(benchmark),
            fix="name a benchmark whose questions have answers",
        )
    if per_person > len(asked):
        raise UsageError(
            f"{per_person} questions per person are more than the {len(asked)} that exist",
            fix=f"give {len(asked)} or 0",
        )
    rules = ExamRules(
        per_person=per_person,
        inside=inside,
        minutes=minutes,
        stages=tuple(stages),
        literature=literature,
        images=any(question.images for question in asked),
        facet=facet,
        seed=seed,
    )
    reference = bench.artefact.reference()
    identity = content_sha256([reference.sha256, edition, rules.recorded(), title])
    study = Study(
        id=f"{slug(bench.artefact.path.name)[:40]}-{FORM}-{identity[:6]}",
        title=title or f"Exam: {bench.artefact.manifest.title or bench.artefact.path.name}",
        form=FORM,
        source=bench.artefact.path.name,
        source_sha256=reference.sha256,
        made_from=tuple(ref.sha256 for ref in bench.artefact.manifest.inputs),
        settings={
            "of": bench.artefact.manifest.kind,
            "seed": seed,
            "edition": edition,
            "left_out": len(bench.questions) - len(asked),
            FORM: rules.recorded(),
        },
    )
    return study, [_item(study, place, question, rules) for place, question in enumerate(asked)]


def _trouble(question: Question) -> bool:
    return bool(question.options) and (
        option_trouble(question, "letter") is not None or question.answer not in question.options
    )


def _item(study: Study, place: int, question: Question, rules: ExamRules) -> ReviewItem:
    """A question under a code; all of it stands in the key, which no page shows."""
    shown = [ItemMaterial(title="Case", text=question.context, kind="case")] if question.context else []
    shown.append(ItemMaterial(title="Question", text=question.text, kind="question"))
    if question.options:
        shown.append(ItemMaterial(title="Options", kind="options", lines=question.options))
    groups = facet_values(question.facets, rules.facet)
    first = next(iter(groups), "")
    return ReviewItem(
        id=item_code(FORM, study.id, question.id, secret=study.source_sha256),
        study=study.id,
        place=place,
        shown=tuple(shown),
        key={"question": msgspec.to_builtins(question), "images": list(question.images), "groups": groups},
        stratum=first,
        group=first,
    )


def question_of(item: ReviewItem) -> Question:
    """The benchmark's question behind an item."""
    return msgspec.convert(item.key["question"], Question)


def protocol_of(question: Question) -> str:
    """How its answer is taken: by letter, or in free text."""
    return "letter" if question.options else FREE
