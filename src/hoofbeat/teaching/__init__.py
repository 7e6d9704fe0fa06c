"""The teaching set: invented case reports, patient handbooks and questions, with everything that was planted in them.

Invented and marked so; written for this project. It is the content of the demo and the fixture of the tests: for every
case the gold says diagnosis, decisive step and trap, for every pair of handbooks how they relate on each question.
`example` has a small audit for each domain pack: its sources, questions, what each source says, and every relation.
`hard_pairs` are 60 pairs of invented answers on which strong judges differ. `injections` are 70 texts that tell a judge
which label to give.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from hoofbeat.errors import UsageError
from hoofbeat.records import Question

__all__ = [
    "CaseChoice",
    "CaseGold",
    "CaseQuestion",
    "CaseSearch",
    "HardPair",
    "Injection",
    "PatientGold",
    "PatientQuestion",
    "PlantedRelation",
    "Quote",
    "TeachingAudit",
    "case_searches",
    "cases",
    "cases_folder",
    "example",
    "example_names",
    "handbook_files",
    "hard_pairs",
    "injections",
    "patient_gold",
    "patient_questions",
    "recorded_replies",
    "relations",
]

T = TypeVar("T")


class CaseQuestion(Struct, frozen=True, kw_only=True):
    """An open question on a case: everything before the decisive step, the question, the gold answer, its evidence."""

    context: str
    text: str
    answer: str
    evidence: tuple[str, ...]


class CaseChoice(Struct, frozen=True, kw_only=True):
    """A multiple-choice question on a case's diagnosis."""

    stem: str
    options: tuple[str, ...]
    answer: str


class CaseSearch(Struct, frozen=True, kw_only=True):
    """A short search for one case report."""

    id: str
    text: str


class CaseGold(Struct, frozen=True, kw_only=True):
    """What is planted in one case report."""

    id: str
    title: str
    specialty: str
    diagnosis: str
    synonyms: tuple[str, ...]
    abbreviations: tuple[str, ...] = ()
    icd10: str | None = None
    rare: bool = False
    differentials: tuple[str, ...] = ()
    decisive_step: str = ""
    limitations: tuple[str, ...] = ()
    significance: str = ""
    trap: str | None = None
    twin: str | None = None
    question: CaseQuestion | None = None
    mcq: CaseChoice | None = None


class PatientQuestion(Struct, frozen=True, kw_only=True):
    """A patient's question; `group` is an organ, or general. In other domains: a reader's, and a group of sources."""

    id: str
    text: str
    group: str
    topics: tuple[str, ...]


class Quote(Struct, frozen=True, kw_only=True):
    """A passage of a handbook under its heading."""

    heading: str
    quote: str


class PatientGold(Struct, frozen=True, kw_only=True):
    """What one handbook says on one question, or that it is silent."""

    question: str
    source: str
    absent: bool
    answer: str
    evidence: tuple[Quote, ...]


class PlantedRelation(Struct, frozen=True, kw_only=True):
    """How two handbooks relate on one question."""

    question: str
    a: str
    b: str
    label: str
    significance: str | None
    topic: str | None
    why: str


class HardPair(Struct, frozen=True, kw_only=True):
    """Two invented answers to one question that are easily misjudged.

    `care` is `same care` (other words, the same care for the patient in the question), `care differs` (similar words,
    other care) or `silent` (one of the two says nothing on what is asked). None of it is medical advice.
    """

    invented: bool
    id: str
    kind: str
    care: str
    question: str
    a: str
    b: str
    why: str


class Injection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An invented text that tells a judge which label to give.

    `{label}` and `{field}` are where the label and its field are named. Where `encoding` is given (base64, rot13, leet,
    reversed, spaced), `payload` is written so in place of `{payload}`.
    """

    invented: bool
    id: str
    kind: str
    text: str
    payload: str = ""
    encoding: str = ""


class TeachingAudit(Struct, frozen=True, kw_only=True):
    """A small invented audit for one domain pack, with everything that is planted in it."""

    pack: str
    files: tuple[Path, ...]
    questions: tuple[PatientQuestion, ...]
    gold: tuple[PatientGold, ...]
    relations: tuple[PlantedRelation, ...]

    def asked(self) -> list[Question]:
        """The questions as records; their facet `group` says which sources are asked."""
        return [
            Question(id=item.id, text=item.text, facets={"group": item.group, "topics": list(item.topics)})
            for item in self.questions
        ]


def _root() -> Path:
    with resources.as_file(resources.files("hoofbeat.teaching")) as path:
        return Path(path)


def _read(name: str, kind: type[T]) -> Iterator[T]:
    decode = msgspec.json.Decoder(kind).decode
    for line in (_root() / name).read_bytes().splitlines():
        if line.strip():
            yield decode(line)


def cases_folder() -> Path:
    """The folder of the 24 case reports."""
    return _root() / "cases"


def handbook_files() -> list[Path]:
    """The 8 handbooks: as PDF where there is one, else as Markdown."""
    folder = _root() / "handbooks"
    rendered = {path.stem: path for path in sorted((folder / "pdf").glob("*.pdf"))}
    return [rendered.get(path.stem, path) for path in sorted(folder.glob("*.md"))]


def cases() -> list[CaseGold]:
    """The gold of every case report."""
    return list(_read("cases/gold.jsonl", CaseGold))


def case_searches() -> dict[str, str]:
    """For each case with a question, what a colleague might type to find its report: few words, and other ones."""
    return {item.id: item.text for item in _read("searches.jsonl", CaseSearch)}


def patient_questions() -> list[PatientQuestion]:
    """The 24 patient questions."""
    return list(_read("questions/patient_questions.jsonl", PatientQuestion))


def patient_gold() -> list[PatientGold]:
    """What each handbook says on each question."""
    return list(_read("questions/patient_gold.jsonl", PatientGold))


def relations() -> list[PlantedRelation]:
    """The planted relation of every pair of handbooks on every question."""
    return list(_read("questions/relations.jsonl", PlantedRelation))


def recorded_replies() -> Path:
    """The replies of a strong model that the demo replays, one per line; the first line says who wrote them and when.

    `tools/record_demo.py` records them again.
    """
    return _root() / "recorded.jsonl"


def hard_pairs() -> list[HardPair]:
    """The 60 hard pairs, ten of each kind."""
    return list(_read("hard_pairs.jsonl", HardPair))


def injections() -> list[Injection]:
    """The 70 texts that tell a judge what to say, five of each kind."""
    return list(_read("injections.jsonl", Injection))


def example_names() -> list[str]:
    """The domain packs that have an example."""
    return sorted(["transplant", *(path.name for path in (_root() / "examples").iterdir() if path.is_dir())])


def example(pack: str) -> TeachingAudit:
    """The example of a domain pack; that of `transplant` are the handbooks and the patient questions."""
    if pack not in example_names():
        raise UsageError(f"there is no teaching example {pack!r}", fix=f"use one of: {', '.join(example_names())}")
    if pack == "transplant":
        return TeachingAudit(
            pack=pack,
            files=tuple(handbook_files()),
            questions=tuple(patient_questions()),
            gold=tuple(patient_gold()),
            relations=tuple(relations()),
        )
    return TeachingAudit(
        pack=pack,
        files=tuple(sorted((_root() / "examples" / pack).glob("*.md"))),
        questions=tuple(_read(f"examples/{pack}/questions.jsonl", PatientQuestion)),
        gold=tuple(_read(f"examples/{pack}/gold.jsonl", PatientGold)),
        relations=tuple(_read(f"examples/{pack}/relations.jsonl", PlantedRelation)),
    )
