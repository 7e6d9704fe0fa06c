"""Audits to report on: the teaching handbooks with their planted answers, and an invented one of any size."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from hoofbeat import teaching
from hoofbeat.audit import AuditSource
from hoofbeat.audit.audit_folder import PAIRS
from hoofbeat.audit.pair_table import TableEnums
from hoofbeat.audit.source_citations import check_citations
from hoofbeat.prompts import load_pack
from hoofbeat.records import Answer, Comparison, Failure, Passage, Question
from hoofbeat.store import Artefact, Counts, InputRef, Manifest, create, open_artefact
from hoofbeat.store.tables import write_jsonl, write_parquet
from tests.audit.comparison_rows import comparison_frame
from tests.reports.examples import ANSWERER, JUDGE

__all__ = ["made_audit", "teaching_audit", "wide_audit", "write_audit"]

ORGANS = ("kidney", "liver", "heart", "lung")
SILENT = "NOT ADDRESSED: this handbook does not answer the question."
TOPICS = (
    "how long to wait before driving", "whether raw fish is allowed", "the dose of the evening tablet",
    "when to call about a fever", "how soon to return to work", "whether live vaccines may be given",
    "how much to drink in a day", "bathing with a wound", "keeping a cat", "grapefruit with tacrolimus",
)  # fmt: skip


def write_audit(
    target: Path,
    questions: Sequence[Question],
    sources: Sequence[AuditSource],
    answers: Sequence[Answer],
    comparisons: Sequence[Comparison],
    *,
    models: dict[str, str] | None = None,
    settings: dict[str, object] | None = None,
) -> Artefact:
    """Write an audit's folder as the command does."""
    pack = load_pack("transplant")
    kinds = TableEnums.of(
        questions=[question.id for question in questions],
        sources=[source.id for source in sources],
        labels=[label.name for label in pack.labels],
        levels=pack.significance_levels,
        judges=[JUDGE],
    )
    with create(target) as draft:
        write_jsonl(draft.path / "questions.jsonl", questions)
        write_jsonl(draft.path / "sources.jsonl", sources)
        write_jsonl(draft.path / "answers.jsonl", answers)
        write_parquet(draft.path / PAIRS, comparison_frame(comparisons, kinds))
        draft.finish(
            Manifest(
                kind="audit",
                title=f"{len(sources)} sources, {len(questions)} questions",
                command=["hoofbeat", "audit", "handbooks", "teaching", "--model", ANSWERER, "--judge", JUDGE],
                inputs=[InputRef(name="handbooks", sha256="d" * 64, kind="corpus")],
                settings={"line": "hero", "pack": "transplant@0011aabbccdd", "mode": "full", **(settings or {})},
                models=models or {"answer": ANSWERER, "judge": JUDGE},
                counts=Counts(kept=len(comparisons)),
            )
        )
    return open_artefact(target)


@cache
def handbook_sections() -> dict[str, tuple[Passage, ...]]:
    """The sections of each teaching handbook, in order."""
    folder = Path(teaching.__file__).parent / "handbooks"
    found = {}
    for path in sorted(folder.glob("*.md")):
        parts = re.split(r"^#+ (.+)$", path.read_text("utf-8"), flags=re.MULTILINE)
        found[path.stem] = tuple(
            Passage(
                id=f"{path.stem}#{n}", document=path.stem, heading=heading.strip(), text=" ".join(text.split()), page=n
            )
            for n, (heading, text) in enumerate(zip(parts[1::2], parts[2::2], strict=True), start=1)
            if text.strip()
        )
    return found


def _flat(text: str) -> str:
    return " ".join(text.split())


def _shown(gold: teaching.PatientGold) -> tuple[Passage, ...]:
    """Five sections as retrieval would show them: those of the evidence, and their neighbours."""
    sections = handbook_sections()[gold.source]
    headings = [quote.heading for quote in gold.evidence]
    first = [section for section in sections if section.heading in headings]
    others = [section for section in sections if section not in first]
    return (*first, *others[: max(0, 5 - len(first))])


def _answer(gold: teaching.PatientGold) -> Answer:
    shown = _shown(gold)
    base = Answer(
        question=gold.question,
        model=ANSWERER,
        condition="source",
        source=gold.source,
        evidence=shown,
        absent=gold.absent,
        text=gold.answer or SILENT,
    )
    if gold.absent:
        return base
    first = gold.evidence[0]
    checked = check_citations(first.heading, first.quote, gold.answer, shown)
    return replace(base, citations=checked.citations, trace=checked.steps, warnings=checked.warnings)


def teaching_audit(target: Path, *, failing: int = 0, models: dict[str, str] | None = None) -> Artefact:
    """The handbooks' planted answers, and their planted relations as the judge's; the first `failing` pairs failed."""
    questions = [
        Question(id=q.id, text=q.text, facets={"group": q.group, "topics": list(q.topics)})
        for q in teaching.patient_questions()
    ]
    answers = [_answer(gold) for gold in teaching.patient_gold()]
    asked = {(answer.question, answer.source) for answer in answers}
    failure = Failure(kind="timeout", message="no complete answer in 60 s", attempts=3)
    comparisons: list[Comparison] = []
    for known in teaching.relations():
        if not {(known.question, known.a), (known.question, known.b)} <= asked:
            continue
        base = Comparison(question=known.question, a=known.a, b=known.b)
        silent = known.label == "Absent"
        if len(comparisons) < failing:
            comparisons.append(replace(base, judge=JUDGE, failure=failure))
            continue
        comparisons.append(
            replace(
                base,
                label=known.label,
                judge="" if silent else JUDGE,
                basis="absent" if silent else "judged",
                reasoning=known.why,
                topic=known.topic if known.label not in ("Absent", "Consistent") else None,
                significance=known.significance,
            )
        )
    names = sorted(handbook_sections())
    titles = {name: name.removeprefix("hb-").replace("-", " ").title() + " handbook (invented)" for name in names}
    sources = [AuditSource(id=name, title=titles[name], facets={"organ": name.rpartition("-")[2]}) for name in names]
    return write_audit(target, questions, sources, answers, comparisons, models=models)


def made_audit(target: Path, sources: int, questions: int, *, seed: int = 7, text: str = "") -> Artefact:
    """An invented audit: sources in camps on each question, one source that mostly stands alone, and much silence."""
    rng = random.Random(seed)
    names = [f"centre-{number:03}" for number in range(1, sources + 1)]
    organs = {name: rng.choice(ORGANS) for name in names}
    asked = []
    for number in range(1, questions + 1):
        group = rng.choice(("general", *ORGANS))
        topic = TOPICS[number % len(TOPICS)]
        words = text or f"Invented question {number}: {topic}, what does my handbook say?"
        facets: dict[str, str | list[str]] = {"group": group, "topics": [topic.split()[-1]]}
        asked.append(Question(id=f"q{number:04}", text=words, facets=facets))
    answers: list[Answer] = []
    comparisons: list[Comparison] = []
    for question in asked:
        topic = TOPICS[int(question.id[1:]) % len(TOPICS)]
        mine = [name for name in names if question.facets["group"] in ("general", organs[name])]
        contested, level = rng.random() ** 2, rng.choice(("low", "medium", "medium", "high"))
        camps = {}
        for place, name in enumerate(mine):
            silent = rng.random() < 0.25 + 0.5 * ((hash_of(name) % 7) / 7)
            odd = name == names[0] and rng.random() < 0.6
            camps[name] = None if silent else 9 if odd else int(rng.random() < contested / 2)
            shown = tuple(
                Passage(
                    id=f"{name}#{part}", document=name, heading=f"Section {part}", page=part,
                    text=f"Section {part} of the invented handbook of {name}. " + f"{topic}: see below. " * 8,
                )
                for part in range(1, 4)
            )  # fmt: skip
            answers.append(
                Answer(
                    question=question.id, model=ANSWERER, condition="source", source=name, evidence=shown,
                    text=SILENT if silent else text or f"On {topic}: advice of camp {camps[name]}, form {place % 5}.",
                    absent=silent, citations=() if silent else ("Section 2 (page 2)",),
                )
            )  # fmt: skip
        for a, b in combinations(mine, 2):
            comparisons.append(_made(question.id, a, b, camps, topic, level, rng, text))
    made = [
        AuditSource(id=name, title=f"Invented handbook of {name}", facets={"organ": organs[name]}) for name in names
    ]
    return write_audit(target, asked, made, answers, comparisons)


def _made(
    question: str,
    a: str,
    b: str,
    camps: dict[str, int | None],
    topic: str,
    level: str,
    rng: random.Random,
    text: str,
) -> Comparison:
    if camps[a] is None or camps[b] is None:
        return Comparison(question=question, a=a, b=b, label="Absent", basis="absent")
    if rng.random() < 0.004:
        failure = Failure(kind="schema", message="the judge gave no label", attempts=2)
        return Comparison(question=question, a=a, b=b, judge=JUDGE, failure=failure)
    differ = camps[a] != camps[b]
    label = rng.choice(("Divergent", "Contradictory") if differ else ("Consistent", "Consistent", "Complementary"))
    return Comparison(
        question=question,
        a=a,
        b=b,
        label=label,
        basis="judged",
        judge=JUDGE,
        reasoning=text or f"{a} gives the advice of camp {camps[a]}, {b} that of camp {camps[b]}.",
        topic=(text or topic) if label != "Consistent" else None,
        significance=level if differ else None,
    )


def hash_of(name: str) -> int:
    """A number for a name, the same in every process."""
    return sum(map(ord, name))


def wide_audit(target: Path) -> Artefact:
    """Ten questions of one topic and eight institutions: one differs on every second question, some are silent."""
    names = [f"s{number}" for number in range(1, 9)]
    line = "Start treatment at 140/90 mmHg in adults under 80 years and aim for less"
    asked = [
        Question(id=f"q{number}", text=f"At which blood pressure should drug treatment be started in group {number}?",
                 facets={"topic": "Blood pressure"})
        for number in range(10)
    ]  # fmt: skip
    sources = [
        AuditSource(id=name, title="Guideline on the management of raised blood pressure in adults",
                    facets={"institution": f"Invented Institution {name[1:]} for Health and Care",
                            "date": f"20{10 + place} Mar"})
        for place, name in enumerate(names)
    ]  # fmt: skip
    answers = [
        Answer(question=each.id, model=ANSWERER, condition="source", source=name, text=line, statement=line,
               strength="Strong recommendation, low-quality evidence", absent=(row + column) % 7 == 6)
        for row, each in enumerate(asked)
        for column, name in enumerate(names)
    ]  # fmt: skip
    silent = {(each.question, each.source) for each in answers if each.absent}
    made = []
    for row, each in enumerate(asked):
        for a, b in combinations(names, 2):
            odd = row % 2 and (a == names[row % 8]) != (b == names[row % 8])
            label = "Absent" if {(each.id, a), (each.id, b)} & silent else "Divergent" if odd else "Consistent"
            basis = "absent" if label == "Absent" else "judged"
            made.append(Comparison(question=each.id, a=a, b=b, label=label, basis=basis, judge=JUDGE))
    return write_audit(target, asked, sources, answers, made)
